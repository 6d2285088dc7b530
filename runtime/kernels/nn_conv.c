/* nn_conv.c: convolutions over 1 to 3 dimensions, transposed ones too, by im2col and a product for
 * each image and group. Geometry is padded to 3 dimensions at the front. */
#include <string.h>

#include "runtime/kernels/nn.h"

typedef struct conv {
  int nd;
  bool transposed, lone; /* lone: the input has no batch dimension */
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[3], out[3], k[3], stride[3], pad[3], dilation[3], out_pad[3];
  bool same; /* padding="same": pad holds what goes before; the output is as large as the input */
} conv;

/* -- Geometry -- */

/* A list of nd numbers, or one for all, into the last of three. */
static kiln_status *read_spatial(const kiln_ivalue *args, int i, const char *name, int nd,
                                 int64_t fallback, int64_t out[3]) {
  int64_t values[KILN_MAX_RANK];
  int count;
  KILN_TRY(kiln__arg_int_list(args, i, values, &count));
  if (count != 1 && count != nd) {
    return KILN_OP_FAIL(
        "expected %s to be a single integer value or a list of %d values to match the "
        "convolution dimensions, but got a list of %d",
        name, nd, count);
  }
  for (int d = 0; d < 3; d++) {
    const int at = d - (3 - nd);
    out[d] = at < 0 ? fallback : values[count == 1 ? 0 : at];
  }
  return NULL;
}
static kiln_status *check_shapes(conv *c, kiln_tensor *input, kiln_tensor *weight,
                                 kiln_tensor *bias) {
  const int rank = kiln_tensor_rank(input);
  if (kiln_tensor_rank(weight) != c->nd + 2 || (rank != c->nd + 2 && rank != c->nd + 1)) {
    return KILN_OP_FAIL(
        "Expected %dD (unbatched) or %dD (batched) input to conv%s%dd, but got input "
        "of size: %s",
        c->nd + 1, c->nd + 2, c->transposed ? "_transpose" : "", c->nd, kiln__sizes_of(input).text);
  }
  c->lone = rank == c->nd + 1;
  const int64_t *is = kiln_tensor_sizes(input), *ws = kiln_tensor_sizes(weight);
  c->batch = c->lone ? 1 : is[0];
  if (!c->lone) is++;
  c->in_channels = is[0];
  if (c->groups <= 0) return KILN_OP_FAIL("non-positive groups is not supported");
  c->out_channels = c->transposed ? ws[1] * c->groups : ws[0];
  const int64_t expected = c->transposed ? ws[0] : ws[1] * c->groups;
  if (c->in_channels != expected) {
    return KILN_OP_FAIL("Given %s=%lld, weight of size %s, expected input%s to have %lld channels, "
                        "but got %lld channels instead",
                        c->transposed ? "transposed=1, groups" : "groups", (long long)c->groups,
                        kiln__sizes_of(weight).text, kiln__sizes_of(input).text,
                        (long long)expected, (long long)c->in_channels);
  }
  if (ws[0] % c->groups != 0) {
    return KILN_OP_FAIL(
        "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, "
        "but got weight of size %s instead",
        (long long)c->groups, (long long)c->groups, kiln__sizes_of(weight).text);
  }
  if (bias && (kiln_tensor_rank(bias) != 1 || bias->numel != c->out_channels)) {
    return KILN_OP_FAIL("Given weight of size %s, expected bias to be 1-dimensional with %lld "
                        "elements, but got bias of size %s instead",
                        kiln__sizes_of(weight).text, (long long)c->out_channels,
                        kiln__sizes_of(bias).text);
  }
  if (kiln_tensor_dtype(weight) != kiln_tensor_dtype(input) ||
      (bias && kiln_tensor_dtype(bias) != kiln_tensor_dtype(input))) {
    return KILN_OP_FAIL(
        "expected scalar type %s but found %s", kiln_dtype_ir_name(kiln_tensor_dtype(input)),
        kiln_dtype_ir_name(kiln_tensor_dtype(
            kiln_tensor_dtype(weight) != kiln_tensor_dtype(input) ? weight : bias)));
  }
  for (int d = 0; d < 3; d++) {
    const int at = d - (3 - c->nd);
    c->in[d] = at < 0 ? 1 : is[1 + at];
    c->k[d] = at < 0 ? 1 : ws[2 + at];
  }
  return NULL;
}
static kiln_status *output_sizes(conv *c) {
  for (int d = 0; d < 3; d++) {
    if (c->stride[d] <= 0) return KILN_OP_FAIL("non-positive stride is not supported");
    if (c->dilation[d] <= 0) return KILN_OP_FAIL("dilation should be greater than zero");
    if (c->pad[d] < 0) return KILN_OP_FAIL("negative padding is not supported");
    if (c->transposed &&
        (c->out_pad[d] < 0 || (c->out_pad[d] >= c->stride[d] && c->out_pad[d] >= c->dilation[d]))) {
      return KILN_OP_FAIL("output padding must be smaller than either stride or dilation");
    }
    if (c->stride[d] > INT32_MAX || c->dilation[d] > INT32_MAX || c->pad[d] > INT32_MAX) {
      return KILN_OP_FAIL("convolution: stride, dilation or padding is too large");
    }
    int64_t reach, padded, size;
    bool fits = !__builtin_mul_overflow(c->dilation[d], c->k[d] - 1, &reach) &&
                !__builtin_mul_overflow(c->pad[d], 2, &padded) &&
                !__builtin_add_overflow(padded, c->in[d], &padded);
    if (fits && c->transposed) {
      fits = !__builtin_mul_overflow(c->in[d] - 1, c->stride[d], &size) &&
             !__builtin_add_overflow(size, reach + 1 + c->out_pad[d], &size) &&
             !__builtin_sub_overflow(size, 2 * c->pad[d], &size);
    } else if (fits) {
      size = c->same ? c->in[d] : (padded - reach - 1) / c->stride[d] + 1;
      if (!c->same && padded < reach + 1) {
        return KILN_OP_FAIL(
            "Calculated padded input size per channel: (%lld). Kernel size: (%lld). "
            "Kernel size can't be greater than actual input size",
            (long long)padded, (long long)(reach + 1));
      }
    }
    if (!fits || size < 0 || c->k[d] < 1) {
      return KILN_OP_FAIL("convolution: the output size is not positive");
    }
    c->out[d] = size;
  }
  return NULL;
}
static int64_t volume(const int64_t sizes[3]) { return sizes[0] * sizes[1] * sizes[2]; }

/* -- Columns: [channels * kernel, positions]; `image` is the larger side, `at` the smaller -- */

static void walk_columns(const kiln__nn *nn, const conv *c, int64_t channels, const int64_t *image,
                         const int64_t *at, char *columns, char *data, bool to_image) {
  const size_t item = nn->item;
  char *column = columns;
  for (int64_t row = 0; row < channels * volume(c->k); row++) {
    const int64_t kw = row % c->k[2], kh = row / c->k[2] % c->k[1];
    const int64_t kd = row / (c->k[2] * c->k[1]) % c->k[0], channel = row / volume(c->k);
    char *plane = data + (size_t)(channel * volume(image)) * item;
    for (int64_t p = 0; p < at[0] * at[1]; p++) {
      const int64_t d = p / at[1] * c->stride[0] - c->pad[0] + kd * c->dilation[0];
      const int64_t h = p % at[1] * c->stride[1] - c->pad[1] + kh * c->dilation[1];
      const bool inside = d >= 0 && d < image[0] && h >= 0 && h < image[1];
      for (int64_t q = 0; q < at[2]; q++, column += item) {
        const int64_t w = q * c->stride[2] - c->pad[2] + kw * c->dilation[2];
        char *pixel = plane + (size_t)((d * image[1] + h) * image[2] + w) * item;
        if (!inside || w < 0 || w >= image[2]) {
          if (!to_image) memset(column, 0, item);
        } else if (to_image) {
          kiln__nn_set(nn, pixel, 0, kiln__nn_get(nn, pixel, 0) + kiln__nn_get(nn, column, 0));
        } else {
          memcpy(column, pixel, item);
        }
      }
    }
  }
}
/* One group of one image: weight [o, i * kernel]. */
static kiln_status *conv_group(kiln__nn *nn, const conv *c, char *in, char *weight, char *columns,
                               char *out) {
  const int64_t inputs = c->in_channels / c->groups, outputs = c->out_channels / c->groups;
  if (!c->transposed) {
    const int64_t k = inputs * volume(c->k), n = volume(c->out);
    walk_columns(nn, c, inputs, c->in, c->out, columns, in, false);
    kiln_gemm_args gemm = {.m = outputs,
                           .n = n,
                           .k = k,
                           .a = weight,
                           .b = columns,
                           .c = out,
                           .a_row = k,
                           .a_col = 1,
                           .b_row = n,
                           .b_col = 1,
                           .c_row = n,
                           .c_col = 1,
                           .alpha = 1,
                           .beta = 0};
    return kiln__nn_gemm(nn, &gemm);
  }
  /* The gradient of a convolution: products go to columns, and columns add up to the image. */
  const int64_t m = outputs * volume(c->k), n = volume(c->in);
  kiln_gemm_args gemm = {.m = m,
                         .n = n,
                         .k = inputs,
                         .a = weight,
                         .b = in,
                         .c = columns,
                         .a_row = 1,
                         .a_col = m,
                         .b_row = n,
                         .b_col = 1,
                         .c_row = n,
                         .c_col = 1,
                         .alpha = 1,
                         .beta = 0};
  KILN_TRY(kiln__nn_gemm(nn, &gemm));
  walk_columns(nn, c, outputs, c->out, c->in, columns, out, true);
  return NULL;
}
static void add_bias(const kiln__nn *nn, const conv *c, const char *bias, char *out) {
  const int64_t n = volume(c->out);
  for (int64_t i = 0; i < c->batch * c->out_channels; i++) {
    char *row = out + (size_t)(i * n) * nn->item;
    kiln__nn_loop2(nn, KILN_PW_add, row, row, bias + (size_t)(i % c->out_channels) * nn->item,
                   false, n);
  }
}
static kiln_status *run_conv(kiln__nn *nn, conv *c, const kiln_ivalue *args, kiln_ivalue *outs) {
  kiln_tensor *input = kiln_arg_tensor(args, 0), *weight = kiln_arg_tensor(args, 1), *result;
  KILN_TRY(output_sizes(c));
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(input)));
  int64_t sizes[5], columns_size;
  int rank = 0;
  if (!c->lone) sizes[rank++] = c->batch;
  sizes[rank++] = c->out_channels;
  for (int d = 3 - c->nd; d < 3; d++) sizes[rank++] = c->out[d];
  const char *in, *w, *bias;
  char *out, *columns;
  KILN_TRY(kiln__nn_dense(nn, input, &in));
  KILN_TRY(kiln__nn_dense(nn, weight, &w));
  KILN_TRY(kiln__nn_dense(nn, kiln_arg_tensor_opt(args, 2), &bias));
  KILN_TRY(kiln__nn_new(nn, rank, sizes, &result, &out));
  memset(out, 0, (size_t)result->numel * nn->item);
  const int64_t inputs = c->in_channels / c->groups, outputs = c->out_channels / c->groups;
  if (result->numel > 0 && input->numel > 0 && weight->numel > 0) {
    const int64_t rows = c->transposed ? outputs : inputs;
    if (__builtin_mul_overflow(rows * volume(c->k), volume(c->transposed ? c->in : c->out),
                               &columns_size)) {
      return KILN_OP_FAIL("convolution: the sizes are too large");
    }
    kiln_tensor *temp;
    KILN_TRY(kiln__nn_new(nn, 1, &columns_size, &temp, &columns));
    const size_t in_step = (size_t)(inputs * volume(c->in)) * nn->item;
    const size_t out_step = (size_t)(outputs * volume(c->out)) * nn->item;
    const size_t w_step = (size_t)(weight->numel / c->groups) * nn->item;
    for (int64_t i = 0; i < c->batch * c->groups; i++) {
      KILN_TRY(conv_group(nn, c, (char *)(uintptr_t)in + (size_t)i * in_step,
                          (char *)(uintptr_t)w + (size_t)(i % c->groups) * w_step, columns,
                          out + (size_t)i * out_step));
    }
  }
  if (bias && result->numel > 0) add_bias(nn, c, bias, out);
  return kiln__nn_give(nn, result, kiln_tensor_dtype(input), outs);
}

/* -- The operators -- */

/* Where an operator has its arguments; -1: it has none. */
typedef struct conv_args {
  int stride, padding, dilation, out_padding, groups;
} conv_args;

static kiln_status *read_conv(conv *c, const kiln_ivalue *args, conv_args at) {
  kiln_tensor *input = kiln_arg_tensor(args, 0), *weight = kiln_arg_tensor(args, 1);
  c->groups = kiln_arg_int(args, at.groups);
  KILN_TRY(check_shapes(c, input, weight, kiln_arg_tensor_opt(args, 2)));
  KILN_TRY(read_spatial(args, at.stride, "stride", c->nd, 1, c->stride));
  KILN_TRY(read_spatial(args, at.dilation, "dilation", c->nd, 1, c->dilation));
  memset(c->out_pad, 0, sizeof c->out_pad);
  if (at.out_padding >= 0) {
    KILN_TRY(read_spatial(args, at.out_padding, "output_padding", c->nd, 0, c->out_pad));
  }
  if (args[at.padding].tag != KILN_TAG_STRING) {
    return read_spatial(args, at.padding, "padding", c->nd, 0, c->pad);
  }
  const kiln_str padding = kiln_arg_str(args, at.padding);
  c->same = kiln_str_is(padding, "same");
  if (!c->same && !kiln_str_is(padding, "valid")) {
    return KILN_OP_FAIL("Invalid padding string: '" KILN_STR_FMT "'", KILN_STR_ARG(padding));
  }
  for (int d = 0; d < 3; d++) {
    if (c->same && c->stride[d] != 1) {
      return KILN_OP_FAIL("padding='same' is not supported for strided convolutions");
    }
    c->pad[d] = c->same ? c->dilation[d] * (c->k[d] - 1) / 2 : 0;
  }
  return NULL;
}
static kiln_status *conv_nd(kiln__nn *nn, int nd, bool transposed, const kiln_ivalue *args,
                            conv_args at, kiln_ivalue *outs) {
  conv c = {.nd = nd, .transposed = transposed};
  KILN_TRY(read_conv(&c, args, at));
  return run_conv(nn, &c, args, outs);
}
static const conv_args plain = {3, 4, 5, -1, 6}, general = {3, 4, 5, 7, 8},
                       transposed_args = {3, 4, 7, 5, 6};
KILN_NN_KERNEL(conv1d) { return conv_nd(nn, 1, false, args, plain, outs); }
KILN_NN_KERNEL(conv2d) { return conv_nd(nn, 2, false, args, plain, outs); }
KILN_NN_KERNEL(conv3d) { return conv_nd(nn, 3, false, args, plain, outs); }
KILN_NN_KERNEL(conv_transpose1d) { return conv_nd(nn, 1, true, args, transposed_args, outs); }
KILN_NN_KERNEL(conv_transpose2d) { return conv_nd(nn, 2, true, args, transposed_args, outs); }
KILN_NN_KERNEL(conv_transpose3d) { return conv_nd(nn, 3, true, args, transposed_args, outs); }
KILN_NN_KERNEL(convolution) {
  const int nd = kiln_tensor_rank(kiln_arg_tensor(args, 1)) - 2;
  if (nd < 1 || nd > 3) return KILN_OP_FAIL("weight should have at least three dimensions");
  return conv_nd(nn, nd, kiln_arg_bool(args, 6), args, general, outs);
}
