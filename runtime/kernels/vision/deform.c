/* deform.c: torchvision's deformable convolution: every tap of a window is sampled where an
 * offset moves it, and weighted by a mask; then one product for each group of channels. */
#include <math.h>

#include "runtime/kernels/nn/nn.h"

typedef struct deform {
  int64_t images, channels, height, width; /* of the input */
  int64_t out_channels, kernel[2], out[2];
  int64_t stride[2], pad[2], dilation[2], groups, offset_groups;
  const char *data, *weight, *offset, *mask; /* mask NULL: none */
} deform;

static kiln_status *check_deform(const deform *p, const kiln_tensor *const t[5], bool use_mask) {
  for (int i = 0; i < 5; i++) {
    if (i == 3 && !use_mask) continue;
    if (kiln_tensor_rank(t[i]) != (i == 4 ? 1 : 4)) {
      return KILN_OP_FAIL("deform_conv2d: an argument has %d dimensions", kiln_tensor_rank(t[i]));
    }
    if (kiln_tensor_dtype(t[i]) != kiln_tensor_dtype(t[0])) {
      return KILN_OP_FAIL("deform_conv2d: expected all arguments to have the same dtype");
    }
  }
  for (int i = 0; i < 2; i++) {
    const int64_t most = INT32_MAX;
    if (p->stride[i] <= 0 || p->stride[i] > most) return KILN_OP_FAIL("stride must be positive");
    if (p->pad[i] < 0 || p->pad[i] > most) return KILN_OP_FAIL("padding must not be negative");
    if (p->dilation[i] <= 0 || p->dilation[i] > most || p->kernel[i] > most) {
      return KILN_OP_FAIL("dilation must be positive");
    }
    if (p->kernel[i] <= 0) return KILN_OP_FAIL("the weight has no elements");
  }
  if (p->groups <= 0 || p->offset_groups <= 0) return KILN_OP_FAIL("groups must be positive");
  return NULL;
}
static kiln_status *check_shapes(const deform *p, const kiln_tensor *const t[5], bool use_mask) {
  const int64_t *w = kiln_tensor_sizes(t[1]), *offset = kiln_tensor_sizes(t[2]);
  const int64_t taps = p->kernel[0] * p->kernel[1];
  if (p->channels % p->groups != 0 || w[1] != p->channels / p->groups) {
    return KILN_OP_FAIL("Expected weight.size(1) * n_weight_grps == input.size(1), got %lld * "
                        "%lld and %lld",
                        (long long)w[1], (long long)p->groups, (long long)p->channels);
  }
  if (p->out_channels % p->groups != 0) {
    return KILN_OP_FAIL("weight.size(0) must be a multiple of the groups");
  }
  if (offset[1] % 2 != 0 || offset[1] / 2 % taps != 0 || offset[1] / 2 / taps != p->offset_groups) {
    return KILN_OP_FAIL("offset.shape[1] is not valid: got: %lld expected: 2 * %lld * %lld",
                        (long long)offset[1], (long long)p->offset_groups, (long long)taps);
  }
  if (p->channels % p->offset_groups != 0) {
    return KILN_OP_FAIL("input channels must be a multiple of the offset groups");
  }
  if (p->out[0] <= 0 || p->out[1] <= 0) {
    return KILN_OP_FAIL("Calculated output size too small - out_h: %lld out_w: %lld",
                        (long long)p->out[0], (long long)p->out[1]);
  }
  for (int i = 2; i < (use_mask ? 4 : 3); i++) {
    const int64_t *s = kiln_tensor_sizes(t[i]);
    const bool fits = s[0] == p->images && s[2] == p->out[0] && s[3] == p->out[1];
    if (!fits || (i == 3 && s[1] != offset[1] / 2)) {
      return KILN_OP_FAIL("%s has a shape that is not valid: got %s", i == 2 ? "offset" : "mask",
                          kiln__sizes_of(t[i]).text);
    }
  }
  return kiln_tensor_sizes(t[4])[0] == p->out_channels
             ? NULL
             : KILN_OP_FAIL("invalid bias shape: got %s", kiln__sizes_of(t[4]).text);
}
/* 0 outside; what lies less than a pixel outside fades. */
static double sample(const kiln__nn *nn, const deform *p, const char *plane, double y, double x) {
  if (!(y > -1 && y < (double)p->height && x > -1 && x < (double)p->width)) return 0;
  const int64_t top = (int64_t)floor(y), left = (int64_t)floor(x);
  const double dy = y - (double)top, dx = x - (double)left;
  double sum = 0;
  for (int i = 0; i < 4; i++) {
    const int64_t row = top + i / 2, column = left + i % 2;
    if (row < 0 || row >= p->height || column < 0 || column >= p->width) continue;
    sum += (i / 2 ? dy : 1 - dy) * (i % 2 ? dx : 1 - dx) *
           kiln__nn_get(nn, plane, row * p->width + column);
  }
  return sum;
}
/* One row for a channel and tap: [channels * taps, positions] of an image. */
static kiln_status *fill_columns(kiln__nn *nn, const deform *p, int64_t image, char *columns) {
  const int64_t taps = p->kernel[0] * p->kernel[1], positions = p->out[0] * p->out[1];
  const int64_t share = p->channels / p->offset_groups;
  for (int64_t c = 0; c < p->channels; c++) {
    const char *plane =
        p->data + (size_t)((image * p->channels + c) * p->height * p->width) * nn->item;
    for (int64_t tap = 0; tap < taps; tap++) {
      const int64_t row = (image * p->offset_groups + c / share) * taps + tap;
      const int64_t ky = tap / p->kernel[1] * p->dilation[0];
      const int64_t kx = tap % p->kernel[1] * p->dilation[1];
      KILN_TRY(kiln_call_check(nn->call, 1));
      for (int64_t at = 0; at < positions; at++) {
        const int64_t line = at / p->out[1], column = at % p->out[1];
        const double y = (double)(line * p->stride[0] - p->pad[0] + ky) +
                         kiln__nn_get(nn, p->offset, 2 * row * positions + at);
        const double x = (double)(column * p->stride[1] - p->pad[1] + kx) +
                         kiln__nn_get(nn, p->offset, (2 * row + 1) * positions + at);
        const double factor = p->mask ? kiln__nn_get(nn, p->mask, row * positions + at) : 1;
        const double value = factor * sample(nn, p, plane, y, x);
        kiln__nn_set(nn, columns, (c * taps + tap) * positions + at, value);
      }
    }
  }
  return NULL;
}
static kiln_status *multiply(kiln__nn *nn, const deform *p, const char *columns, const char *bias,
                             char *to) {
  const int64_t positions = p->out[0] * p->out[1], m = p->out_channels / p->groups;
  const int64_t k = p->channels / p->groups * p->kernel[0] * p->kernel[1];
  if (m == 0 || positions == 0) return NULL;
  for (int64_t g = 0; g < p->groups; g++) {
    kiln_gemm_args gemm = {.m = m,
                           .n = positions,
                           .k = k,
                           .a = p->weight + (size_t)(g * m * k) * nn->item,
                           .b = columns + (size_t)(g * k * positions) * nn->item,
                           .c = to + (size_t)(g * m * positions) * nn->item,
                           .a_row = k,
                           .a_col = 1,
                           .b_row = positions,
                           .b_col = 1,
                           .c_row = positions,
                           .c_col = 1,
                           .alpha = 1,
                           .beta = 1,
                           .init = bias + (size_t)(g * m) * nn->item,
                           .init_row = 1,
                           .init_col = 0};
    KILN_TRY(kiln__nn_gemm(nn, &gemm));
  }
  return NULL;
}
/* input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w,
 * groups, offset_groups, use_mask */
KILN_NN_KERNEL(torchvision_deform_conv2d) {
  kiln_tensor *t[5], *result, *scratch;
  const char *bias;
  char *to, *columns;
  for (int i = 0; i < 5; i++) t[i] = ARG(i);
  const bool use_mask = kiln_arg_bool(args, 13);
  if (kiln_tensor_rank(t[0]) != 4 || kiln_tensor_rank(t[1]) != 4) {
    return KILN_OP_FAIL("deform_conv2d expects an input and a weight of 4 dimensions");
  }
  const int64_t *in = kiln_tensor_sizes(t[0]), *w = kiln_tensor_sizes(t[1]);
  deform p = {in[0], in[1], in[2], in[3], w[0], .groups = kiln_arg_int(args, 11)};
  p.offset_groups = kiln_arg_int(args, 12);
  for (int i = 0; i < 2; i++) {
    p.kernel[i] = w[2 + i];
    p.stride[i] = kiln_arg_int(args, 5 + i);
    p.pad[i] = kiln_arg_int(args, 7 + i);
    p.dilation[i] = kiln_arg_int(args, 9 + i);
  }
  KILN_TRY(check_deform(&p, (const kiln_tensor *const *)t, use_mask));
  for (int i = 0; i < 2; i++) {
    const int64_t reach = p.dilation[i] * (p.kernel[i] - 1) + 1;
    p.out[i] =
        in[2 + i] + 2 * p.pad[i] < reach ? 0 : (in[2 + i] + 2 * p.pad[i] - reach) / p.stride[i] + 1;
  }
  KILN_TRY(check_shapes(&p, (const kiln_tensor *const *)t, use_mask));
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(t[0])));
  KILN_TRY(kiln__nn_dense(nn, t[0], &p.data));
  KILN_TRY(kiln__nn_dense(nn, t[1], &p.weight));
  KILN_TRY(kiln__nn_dense(nn, t[2], &p.offset));
  KILN_TRY(kiln__nn_dense(nn, use_mask ? t[3] : NULL, &p.mask));
  KILN_TRY(kiln__nn_dense(nn, t[4], &bias));
  const int64_t sizes[] = {p.images, p.out_channels, p.out[0], p.out[1]};
  const int64_t rows[] = {p.channels, p.kernel[0] * p.kernel[1], p.out[0] * p.out[1]};
  KILN_TRY(kiln__nn_new(nn, 4, sizes, &result, &to));
  KILN_TRY(kiln__nn_new(nn, 3, rows, &scratch, &columns));
  for (int64_t i = 0; i < p.images; i++) {
    KILN_TRY(kiln_call_check(nn->call, 0));
    KILN_TRY(fill_columns(nn, &p, i, columns));
    KILN_TRY(multiply(nn, &p, columns, bias,
                      to + (size_t)(i * p.out_channels * p.out[0] * p.out[1]) * nn->item));
  }
  return kiln__nn_give(nn, result, kiln_tensor_dtype(t[0]), outs);
}
