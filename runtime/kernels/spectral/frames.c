/* frames.c: short-time Fourier transforms of signals, and back (stft, istft). */
#include <math.h>
#include <string.h>

#include "runtime/kernels/composite.h"

typedef struct frames {
  const char *name;
  int64_t n, hop, length; /* points of a transform, between frames, of the window */
  kiln_tensor *window;    /* of n; NULL: ones */
} frames;

/* n_fft, hop_length, win_length, window: arguments 1 to 4 */
static void read_frames(kiln__composite *r, const kiln_ivalue *args, const char *name, frames *f) {
  *f = (frames){.name = name, .n = kiln_arg_int(args, 1)};
  f->hop = kiln_arg_int_or(args, 2, f->n / 4);
  f->length = kiln_arg_int_or(args, 3, f->n);
  f->window = kiln_arg_tensor_opt(args, 4);
  if (f->n <= 0) FAIL(r, "%s: expected n_fft > 0, but got %lld", name, (long long)f->n);
  if (f->hop <= 0) {
    FAIL(r, "%s: expected hop_length > 0, but got hop_length=%lld", name, (long long)f->hop);
  }
  if (f->length <= 0 || f->length > f->n) {
    FAIL(r, "%s: expected 0 < win_length <= n_fft, but got win_length=%lld", name,
         (long long)f->length);
  }
  if (f->window && (kiln_tensor_rank(f->window) != 1 || f->window->numel != f->length)) {
    FAIL(r,
         "%s: expected a 1D window tensor of size equal to win_length=%lld, but got "
         "window with %lld elements",
         name, (long long)f->length, (long long)f->window->numel);
  }
}
/* The window in the middle of n points. */
static void center_window(kiln__composite *r, kiln_dtype dtype, frames *f) {
  if (r->status) return;
  if (!f->window) {
    if (f->length == f->n) return;
    f->window = KILN_STEP(r, ones, INTS(f->length), I(dtype), NONE, NONE, NONE);
  }
  const int64_t left = (f->n - f->length) / 2;
  if (f->length < f->n) {
    f->window =
        KILN_STEP(r, constant_pad_nd, T(f->window), INTS(left, f->n - f->length - left), I(0));
  }
}

/* -- There -- */

/* `rest`: normalized, onesided, return_complex, align_to_window: frames begin where the window,
 * which may be shorter, begins to be in the signal */
static kiln_tensor *there(kiln__composite *r, kiln_tensor *t, const kiln_ivalue *args,
                          const kiln_ivalue *rest, const char *pad_mode) {
  frames f;
  const int rank = kiln_tensor_rank(t);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  read_frames(r, args, "stft", &f);
  if (!kiln_dtype_is_float(dtype) && !kiln__is_complex(t)) {
    FAIL(r, "stft: expected a tensor of floating point or complex values");
  }
  if (rank < 1 || rank > 2) FAIL(r, "stft: expected a 1D or 2D tensor");
  const bool whole = kiln__is_complex(t) || kiln__is_complex(f.window);
  const bool half = rest[1].tag == KILN_TAG_BOOL ? rest[1].u.b : !whole;
  const bool as_complex = rest[2].tag == KILN_TAG_BOOL ? rest[2].u.b : whole;
  if (!r->status && half && whole) {
    FAIL(r, "Cannot have onesided output if window or input is complex");
  }
  if (r->status) return NULL;
  if (rank == 1) t = KILN_STEP(r, unsqueeze, T(t), I(0));
  const bool aligned = rest[3].tag == KILN_TAG_BOOL && rest[3].u.b && f.n > f.length;
  if (pad_mode && rest[3].tag == KILN_TAG_BOOL) {
    return FAIL(r, "stft align_to_window should only be set when center = false");
  }
  if (aligned) {
    const int64_t side = (f.n - f.length) / 2;
    t = KILN_STEP(r, constant_pad_nd, T(t), INTS(side, side), I(0));
  }
  if (pad_mode) {
    t = KILN_STEP(r, unsqueeze, T(t), I(0));
    const kiln_ivalue padding = INTS(f.n / 2, f.n / 2), mode = kiln__composite_text(r, pad_mode);
    t = KILN_STEP(r, pad, T(t), padding, mode, NONE);
    t = KILN_STEP(r, select, T(t), I(0), I(0));
  }
  const int64_t length = kiln__composite_size(t, -1);
  if (!r->status && f.n > length) {
    FAIL(r, "stft: expected 0 < n_fft < %lld, but got n_fft=%lld", (long long)length,
         (long long)f.n);
  }
  center_window(r, kiln_dtype_real(dtype), &f);
  t = KILN_STEP(r, contiguous, T(t), I(0));
  if (r->status) return NULL;
  t = KILN_STEP(r, as_strided, T(t),
                INTS(kiln__composite_size(t, 0), 1 + (length - f.n) / f.hop, f.n),
                INTS(length, f.hop, 1), NONE);
  if (f.window) t = KILN_STEP(r, mul, T(t), T(f.window));
  const kiln_ivalue last = INTS(2), norm = I(rest[0].u.b ? 1 : 0);
  t = whole ? KILN_STEP(r, _fft_c2c, T(t), last, norm, B(true))
            : KILN_STEP(r, _fft_r2c, T(t), last, norm, B(half));
  t = KILN_STEP(r, transpose, T(t), I(1), I(2));
  if (rank == 1) t = KILN_STEP(r, squeeze_dim, T(t), I(0));
  if (!as_complex) t = KILN_STEP(r, view_as_real, T(t));
  return t;
}
/* self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex */
KILN_COMPOSITE(stft) { return there(r, SELF, args, args + 5, NULL); }
/* ..., window, center, pad_mode, normalized, onesided, return_complex */
KILN_COMPOSITE(stft_center) {
  char mode[16] = "";
  const kiln_str name = kiln_arg_str(args, 6);
  if (name.len < sizeof mode) memcpy(mode, name.data, name.len);
  return there(r, SELF, args, args + 7, kiln_arg_bool(args, 5) ? mode : NULL);
}

/* -- Back -- */

/* Frames [batch, count, n] added up at their places: [batch, n + (count - 1) * hop]. */
static kiln_tensor *add_up(kiln__composite *r, kiln_tensor *t, const frames *f) {
  kiln_tensor *in, *out;
  const int64_t batch = kiln__composite_size(t, 0), count = kiln__composite_size(t, 1);
  const int64_t sizes[] = {batch, f->n + (count - 1) * f->hop};
  const int parts = kiln__is_complex(t) ? 2 : 1;
  const kiln_dtype dtype = parts == 2 ? KILN_DTYPE_C128 : KILN_DTYPE_F64;
  const double *from = kiln__composite_read(r, t, dtype, &in);
  double *to = kiln__composite_new(r, dtype, 2, sizes, &out);
  if (r->status) return NULL;
  kiln__zero(to, sizeof *to * (size_t)(out->numel * parts));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < batch * count && !kiln_budget_spent(&left, f->n * parts); i++) {
    double *start = to + (i / count * sizes[1] + i % count * f->hop) * parts;
    for (int64_t k = 0; k < f->n * parts; k++) start[k] += from[i * f->n * parts + k];
  }
  return out;
}
/* self, n_fft, hop_length, win_length, window, center, normalized, onesided, length,
 * return_complex */
KILN_COMPOSITE(istft) {
  frames f;
  kiln_tensor *t = SELF;
  read_frames(r, args, "istft", &f);
  if (!kiln__is_complex(t) && kiln_dtype_is_float(kiln_tensor_dtype(t))) {
    t = KILN_STEP(r, view_as_complex, T(KILN_STEP(r, contiguous, T(t), I(0))));
  }
  const int rank = kiln__composite_rank(t);
  const bool center = kiln_arg_bool(args, 5), as_complex = kiln_arg_bool(args, 9);
  if (r->status) return NULL;
  if (rank < 2 || rank > 3 || t->numel == 0) {
    return FAIL(r,
                "istft: expected a non-empty tensor with 3 or 4 dimensions with parts, but got %d",
                rank + 1);
  }
  const int64_t points = kiln__composite_size(t, -2), count = kiln__composite_size(t, -1);
  const bool half = args[7].tag == KILN_TAG_BOOL ? args[7].u.b : points != f.n;
  if (points != (half ? f.n / 2 + 1 : f.n)) {
    FAIL(r,
         "istft: expected the frequency dimension (3rd to the last) of the input "
         "tensor to match n_fft%s, but got %lld",
         half ? " / 2 + 1 when onesided=True" : " when onesided=False", (long long)points);
  }
  if (f.hop > f.length) {
    FAIL(r, "istft: expected 0 < hop_length <= win_length");
  }
  if (as_complex && half) {
    FAIL(r, "Cannot have onesided output if window or input is complex");
  }
  if (!as_complex && kiln__is_complex(f.window)) {
    FAIL(r, "Complex windows are incompatible with return_complex=False");
  }
  if (r->status) return NULL; /* numbers that were refused are not computed with */
  const kiln_dtype dtype = kiln__composite_dtype(t), part = kiln_dtype_real(dtype);
  center_window(r, part, &f);
  if (!r->status && !f.window) f.window = KILN_STEP(r, ones, INTS(f.n), I(part), NONE, NONE, NONE);
  if (rank == 2) t = KILN_STEP(r, unsqueeze, T(t), I(0));
  t = KILN_STEP(r, transpose, T(t), I(1), I(2));
  const kiln_ivalue last = INTS(2), norm = I(kiln_arg_bool(args, 6) ? 1 : 2);
  t = as_complex ? KILN_STEP(r, _fft_c2c, T(t), last, norm, B(false))
                 : KILN_STEP(r, _fft_c2r, T(t), last, norm, I(f.n));
  t = KILN_STEP(r, mul, T(t), T(f.window));
  const kiln_dtype result = kiln__composite_dtype(t);
  kiln_tensor *square = KILN_STEP(r, mul, T(f.window), T(f.window));
  square = KILN_STEP(r, expand, T(square), INTS(1, count, f.n), B(false));
  t = add_up(r, t, &f);
  square = add_up(r, square, &f);
  const int64_t whole = f.n + (count - 1) * f.hop, start = center ? f.n / 2 : 0;
  const bool limited = !kiln_arg_is_none(args, 8);
  int64_t end = center ? whole - f.n / 2 : whole;
  if (limited && !kiln_checked_add_i64(start, kiln_arg_int(args, 8), &end)) end = INT64_MAX;
  t = KILN_STEP(r, slice, T(t), I(1), I(start), I(end), I(1));
  square = KILN_STEP(r, slice, T(square), I(1), I(start), I(end), I(1));
  if (r->status) return NULL;
  kiln_tensor *dense;
  const double *weights = kiln__composite_read(
      r, kiln__is_complex(square) ? KILN_STEP(r, abs, T(square)) : square, KILN_DTYPE_F64, &dense);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; weights && i < dense->numel && !kiln_budget_spent(&left, 1); i++) {
    if (fabs(weights[i]) > 1e-11) continue;
    return FAIL(r, "istft: window overlap add min: %g is too small", weights[i]);
  }
  t = KILN_STEP(r, div, T(t), T(square));
  if (end > whole) t = KILN_STEP(r, constant_pad_nd, T(t), INTS(0, end - whole), I(0));
  if (rank == 2) t = KILN_STEP(r, squeeze_dim, T(t), I(0));
  return kiln__composite_to(r, t, result);
}
