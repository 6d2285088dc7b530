/* audio.c: torchaudio's loops over time: the recursive part of lfilter, overdrive's. Each element
 * needs those before it, so they are computed in order, in the tensors' own float type. */
#include "runtime/kernels/nn/nn.h"
#include "runtime/kernels/composite.h"

static kiln_status *check_alike(kiln__nn *nn, kiln_tensor *const *t, int count) {
  for (int i = 0; i < count; i++) {
    if (kiln_tensor_dtype(t[i]) != kiln_tensor_dtype(t[0])) {
      return KILN_OP_FAIL("expected tensors of one dtype, got %s and %s",
                          kiln_dtype_ir_name(kiln_tensor_dtype(t[0])),
                          kiln_dtype_ir_name(kiln_tensor_dtype(t[i])));
    }
  }
  return kiln__nn_begin(nn, kiln_tensor_dtype(t[0]));
}
/* An own copy of what is written; `finish_written` copies it back. */
static kiln_status *written(kiln__nn *nn, kiln_tensor *t, kiln_tensor **out, char **data) {
  KILN_TRY(kiln__nn_new(nn, kiln_tensor_rank(t), kiln_tensor_sizes(t), out, data));
  return kiln_tensor_copy(*out, t);
}
static kiln_status *finish_written(kiln_tensor *t, const kiln_tensor *copy, kiln_ivalue *out) {
  KILN_TRY(kiln_tensor_copy(t, copy));
  if (out->tag == KILN_TAG_NONE) *out = kiln_of_tensor(kiln_tensor_retain(t));
  return NULL;
}

/* input_signal_windows (N, C, L), a_coeff_flipped (C, order), padded_output_waveform (N, C, L +
 * order - 1), written: y[i + order - 1] = x[i] - sum of a[k] y[i + k] */
KILN_NN_KERNEL(torchaudio_lfilter_core_loop) {
  kiln_tensor *t[3], *result;
  const char *x, *a;
  char *y;
  for (int i = 0; i < 3; i++) t[i] = ARG(i);
  if (kiln_tensor_rank(t[0]) != 3 || kiln_tensor_rank(t[1]) != 2 || kiln_tensor_rank(t[2]) != 3) {
    return KILN_OP_FAIL("_lfilter_core_loop expects signals of 3 dimensions and coefficients of 2");
  }
  const int64_t *in = kiln_tensor_sizes(t[0]), *padded = kiln_tensor_sizes(t[2]);
  const int64_t channels = in[1], length = in[2], order = kiln_tensor_sizes(t[1])[1];
  if (kiln_tensor_sizes(t[1])[0] != channels || padded[0] != in[0] || padded[1] != channels ||
      order < 1 || padded[2] != length + order - 1) {
    return KILN_OP_FAIL("_lfilter_core_loop: a signal of %s does not fit an output of %s",
                        kiln__sizes_of(t[0]).text, kiln__sizes_of(t[2]).text);
  }
  KILN_TRY(check_alike(nn, t, 3));
  KILN_TRY(kiln__nn_dense(nn, t[0], &x));
  KILN_TRY(kiln__nn_dense(nn, t[1], &a));
  KILN_TRY(written(nn, t[2], &result, &y));
  for (int64_t row = 0; row < in[0] * channels; row++) {
    const int64_t from = row * length, to = row * padded[2], at = row % channels * order;
    for (int64_t i = 0; i < length; i++) {
      if (i % 4096 == 0) KILN_TRY(kiln_call_check(nn->call, 1));
      double sum = kiln__nn_get(nn, x, from + i);
      for (int64_t k = 0; k < order; k++) {
        sum -= kiln__nn_get(nn, a, at + k) * kiln__nn_get(nn, y, to + i + k);
        if (nn->dtype == KILN_DTYPE_F32) sum = (float)sum;
      }
      kiln__nn_set(nn, y, to + i + order - 1, sum);
    }
  }
  return finish_written(t[2], result, outs);
}

/* The whole filter, of newer versions: waveform (N, C, L), a_coeffs (C, order), b_coeffs. */
KILN_COMPOSITE(torchaudio_lfilter) {
  kiln_tensor *wave = SELF, *a = ARG(1);
  kiln_tensor *b = ARG(2);
  const int64_t order = kiln__composite_size(a, 1), channels = kiln__composite_size(wave, 1);
  const int64_t length = kiln__composite_size(wave, 2);
  if (kiln_tensor_rank(wave) != 3 || kiln_tensor_rank(a) != 2 || kiln_tensor_rank(b) != 2 ||
      kiln__composite_size(b, 1) != order || order < 1) {
    return FAIL(r, "_lfilter expects a waveform of 3 dimensions and coefficients of 2");
  }
  kiln_tensor *last = kiln__composite_reshape(r, kiln__composite_narrow(r, a, 1, 0, 1), 3,
                                              (const int64_t[]){1, channels, 1});
  kiln_tensor *padded = KILN_STEP(r, constant_pad_nd, T(wave), INTS(order - 1, 0), F(0));
  kiln_tensor *taps = KILN_STEP(r, unsqueeze, T(KILN_STEP(r, flip, T(b), INTS(1))), I(1));
  kiln_tensor *fir =
      KILN_STEP(r, conv1d, T(padded), T(taps), NONE, INTS(1), INTS(0), INTS(1), I(channels));
  kiln_tensor *x = KILN_STEP(r, div, T(fir), T(last));
  kiln_tensor *row = kiln__composite_reshape(r, last, 2, (const int64_t[]){channels, 1});
  kiln_tensor *coefficients = KILN_STEP(r, flip, T(KILN_STEP(r, div, T(a), T(row))), INTS(1)), *y;
  const int64_t sizes[] = {kiln__composite_size(wave, 0), channels, length + order - 1};
  void *data = kiln__composite_new(r, kiln_tensor_dtype(wave), 3, sizes, &y);
  if (r->status) return NULL;
  if (y->numel > 0) kiln__zero(data, (size_t)y->numel * kiln_tensor_item_size(y));
  (void)KILN_STEP(r, torchaudio_lfilter_core_loop, T(x), T(coefficients), T(y));
  return kiln__composite_copy(r, kiln__composite_narrow(r, y, 2, order - 1, length));
}

/* waveform (C, L), temp (C, L), last_in (C), last_out (C), output_waveform (C, L); the last three
 * are written */
KILN_NN_KERNEL(torchaudio_overdrive_core_loop) {
  kiln_tensor *t[5], *copy[3];
  const char *wave, *temp;
  char *in, *out, *to;
  for (int i = 0; i < 5; i++) {
    t[i] = ARG(i);
    const bool state = i == 2 || i == 3;
    const int64_t *sizes = kiln_tensor_sizes(t[i]), *first = kiln_tensor_sizes(t[0]);
    if (kiln_tensor_rank(t[0]) != 2 || kiln_tensor_rank(t[i]) != (state ? 1 : 2) ||
        sizes[0] != first[0] || (!state && sizes[1] != first[1])) {
      return KILN_OP_FAIL("_overdrive_core_loop: an argument of shape %s does not fit",
                          kiln__sizes_of(t[i]).text);
    }
  }
  KILN_TRY(check_alike(nn, t, 5));
  KILN_TRY(kiln__nn_dense(nn, t[0], &wave));
  KILN_TRY(kiln__nn_dense(nn, t[1], &temp));
  KILN_TRY(written(nn, t[2], &copy[0], &in));
  KILN_TRY(written(nn, t[3], &copy[1], &out));
  KILN_TRY(written(nn, t[4], &copy[2], &to));
  const int64_t channels = kiln_tensor_sizes(t[0])[0], length = kiln_tensor_sizes(t[0])[1];
  for (int64_t c = 0; c < channels; c++) {
    double last_in = kiln__nn_get(nn, in, c), last_out = kiln__nn_get(nn, out, c);
    for (int64_t i = c * length; i < (c + 1) * length; i++) {
      if (i % 4096 == 0) KILN_TRY(kiln_call_check(nn->call, 1));
      const double now = kiln__nn_get(nn, temp, i);
      last_out = now - last_in + 0.995 * last_out;
      if (nn->dtype == KILN_DTYPE_F32) last_out = (float)last_out;
      last_in = now;
      kiln__nn_set(nn, to, i, kiln__nn_get(nn, wave, i) * 0.5 + last_out * 0.75);
    }
    kiln__nn_set(nn, in, c, last_in);
    kiln__nn_set(nn, out, c, last_out);
  }
  for (int i = 0; i < 3; i++) KILN_TRY(finish_written(t[2 + i], copy[i], &outs[i]));
  return NULL;
}
