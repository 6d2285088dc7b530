/* conv.c: the convolution operators, over 1 to 3 dimensions, transposed ones too: arguments,
 * geometry (padded to 3 dimensions at the front), and how they become a kiln_conv (conv.h). */
#include <string.h>

#include "runtime/kernels/heavy/conv_columns.h"
#include "runtime/kernels/heavy/gemm.h"
#include "runtime/kernels/heavy/taps.h"

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
  int64_t grouped;
  if (!kiln_checked_mul_i64(ws[1], c->groups, &grouped)) {
    return KILN_OP_FAIL("%lld groups are too many", (long long)c->groups);
  }
  c->out_channels = c->transposed ? grouped : c->in_channels == 0 ? 0 : ws[0]; /* as PyTorch */
  const int64_t expected = c->transposed ? ws[0] : grouped;
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
  if (ws[0] < c->groups) {
    return KILN_OP_FAIL(
        "Given groups=%lld, expected weight to be at least %lld at dimension 0, but "
        "got weight of size %s instead",
        (long long)c->groups, (long long)c->groups, kiln__sizes_of(weight).text);
  }
  if (c->transposed && ws[1] == 0) {
    return KILN_OP_FAIL("non-empty weight tensor expected, but got: %s",
                        kiln__sizes_of(weight).text);
  }
  if (c->transposed && input->numel == 0 && c->batch > 0 && c->in_channels > 0) {
    return KILN_OP_FAIL(
        "Only zero batch or zero channel inputs are supported, but got input shape: "
        "%s",
        kiln__sizes_of(input).text);
  }
  if (bias && (kiln_tensor_rank(bias) != 1 || bias->numel != (c->transposed ? grouped : ws[0]))) {
    return KILN_OP_FAIL("Given weight of size %s, expected bias to be 1-dimensional with %lld "
                        "elements, but got bias of size %s instead",
                        kiln__sizes_of(weight).text, (long long)(c->transposed ? grouped : ws[0]),
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

/* -- Running -- */

/* Input, weight and bias in the dtype that is computed in. Integers and complex numbers take the
 * plain loops. */
static kiln_status *read_operands(kiln__nn *nn, const kiln_ivalue *args, kiln_tensor *t[3]) {
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  switch (kiln_dtype_category_of(dtype)) {
    case KILN_CATEGORY_INT: nn->dtype = KILN_DTYPE_I64; break;
    case KILN_CATEGORY_COMPLEX: nn->dtype = KILN_DTYPE_C128; break;
    default: KILN_TRY(kiln__nn_begin(nn, dtype));
  }
  nn->item = kiln_dtype_size(nn->dtype);
  for (int i = 0; i < 3; i++) {
    t[i] = kiln_arg_tensor_opt(args, i);
    /* Other strides of the input are followed; rows of pixels are worth a copy. */
    const bool turns = t[i] && t[i]->key.f.layout == KILN_LAYOUT_CHANNELS_LAST;
    if (!t[i] || (i == 0 && dtype == nn->dtype && !turns)) continue;
    KILN_TRY(kiln__nn_as(nn, t[i], nn->dtype, &t[i]));
  }
  return NULL;
}
/* All of the problem that does not change from phase to phase. */
static void set_problem(const conv *c, kiln_tensor *const t[3], char *out, kiln_conv *p) {
  const int64_t *strides = kiln_tensor_strides(t[0]), taps = volume(c->k);
  *p = (kiln_conv){.batch = c->batch,
                   .groups = c->groups,
                   .channels = c->in_channels / c->groups,
                   .outputs = c->out_channels / c->groups,
                   .in = kiln_tensor_data(t[0]),
                   .weight = kiln_tensor_data(t[1]),
                   .bias = t[2] ? kiln_tensor_data(t[2]) : NULL,
                   .out = out};
  p->in_batch = c->lone ? 0 : *strides++;
  p->in_channel = *strides++;
  p->out_channel = volume(c->out);
  p->out_batch = c->out_channels * p->out_channel;
  p->w_group = t[1]->numel / c->groups;
  p->w_output = c->transposed ? taps : taps * p->channels;
  p->w_channel = c->transposed ? taps * p->outputs : taps;
  int64_t out_stride = 1, w_tap = 1, first = 1;
  for (int d = 2; d >= 0; d--) {
    const int at = d - (3 - c->nd);
    kiln_conv_axis *a = &p->axis[d];
    a->in = c->in[d];
    a->in_stride = at < 0 ? first : strides[at];
    if (at >= 0) first = a->in * a->in_stride;
    a->out = c->out[d];
    a->out_stride = out_stride;
    a->step = c->stride[d];
    a->first = -c->pad[d];
    a->taps = c->k[d];
    a->tap_step = c->dilation[d];
    a->w_tap = w_tap;
    out_stride *= c->out[d];
    w_tap *= c->k[d];
  }
}
/* One position, where one tap looks at one: a row of channels times the weights, as in the gates
 * of squeeze-and-excitation. */
static bool is_product(const kiln_conv *p) {
  bool is = p->groups == 1 && p->batch > 0 && p->channels > 0 && p->outputs > 0;
  for (int d = 0; d < 3; d++) {
    const kiln_conv_axis *a = &p->axis[d];
    is = is && a->out == 1 && a->taps == 1 && a->first == 0 && a->in > 0;
  }
  return is;
}

static kiln_status *multiply(const kiln__nn *nn, const kiln_conv *p) {
  const kiln_gemm_args g = {.m = p->batch,
                            .n = p->outputs,
                            .k = p->channels,
                            .a = p->in,
                            .a_row = p->in_batch,
                            .a_col = p->in_channel,
                            .b = p->weight,
                            .b_row = p->w_channel,
                            .b_col = p->w_output,
                            .c = p->out,
                            .c_row = p->out_batch,
                            .c_col = p->out_channel,
                            .alpha = 1,
                            .beta = p->bias ? 1 : 0,
                            .init = p->bias,
                            .init_col = 1};
  return kiln__gemm_run(nn->call, nn->dtype, &g);
}

/* -- Taps that read nothing -- */

static bool reads_input(const kiln_conv_axis *a, int64_t tap) {
  return kiln_tap_reads(a->first + tap * a->tap_step, a->step, a->out, a->in);
}
/* Of an image of 6 x 6, with dilation and padding 12, all taps but the middle one read zeros alone:
 * they are no part of the sum. */
static kiln_conv without_idle_taps(const kiln_conv *whole, size_t item) {
  kiln_conv p = *whole;
  for (int d = 0; d < 3; d++) {
    kiln_conv_axis *a = &p.axis[d];
    while (a->taps > 0 && !reads_input(a, a->taps - 1)) a->taps--;
    int64_t idle = 0;
    while (idle < a->taps && !reads_input(a, idle)) idle++;
    a->first += idle * a->tap_step;
    a->taps -= idle;
    p.weight = (const char *)p.weight + idle * a->w_tap * (int64_t)item;
  }
  return p;
}

static kiln_status *solve(kiln__nn *nn, const kiln_conv *whole) {
  const kiln_conv cut = without_idle_taps(whole, nn->item), *p = &cut;
  if (nn->dtype != KILN_DTYPE_F32 && nn->dtype != KILN_DTYPE_F64) {
    kiln__conv_reference(nn->dtype, p);
    return NULL;
  }
  if (is_product(p)) return multiply(nn, p);
  const kiln_dispatch *dispatch = nn->call->dispatch;
  const int threads = kiln_conv_threads(p, kiln_pool_threads(nn->call->pool));
  kiln_conv_plan plan;
  kiln_conv_make_plan(p, dispatch, nn->item, threads, &plan);
  const int64_t items = (int64_t)(kiln_conv_scratch(&plan, threads) / nn->item);
  kiln_tensor *block;
  void *scratch;
  KILN_TRY(kiln_call_tensor(nn->call, nn->dtype, 1, &items, &block));
  kiln_status *status = kiln_tensor_writable_data(block, &scratch);
  if (!status) {
    kiln_conv_run(p, &plan, nn->dtype == KILN_DTYPE_F64 ? dispatch->conv_f64 : dispatch->conv_f32,
                  threads > 1 ? nn->call->pool : NULL, scratch);
  }
  kiln_tensor_release_to(&nn->call->cache, block);
  return status;
}
/* One axis of the outputs r, r + stride, r + 2 stride and so on of a transposed convolution: tap k
 * adds to output o from the input at (o + pad - k dilation) / stride, where that divides. Of the
 * taps that reach this phase, which are `period` apart, the last comes first: its input is the
 * least. False: there is no such output. */
static bool set_phase(const conv *c, int d, int64_t r, const kiln_conv_axis *whole,
                      kiln_conv_axis *a, int64_t *out_at, int64_t *w_at) {
  const int64_t stride = c->stride[d], dilation = c->dilation[d];
  *a = *whole;
  if (r >= c->out[d]) return false;
  int64_t period = 0, tap = -1;
  for (int64_t k = 0; k < c->k[d] && k < 2 * stride; k++) {
    if ((r + c->pad[d] - k * dilation) % stride != 0) continue;
    if (tap < 0)
      tap = k;
    else if (!period)
      period = k - tap;
  }
  a->out = (c->out[d] - 1 - r) / stride + 1;
  a->out_stride = whole->out_stride * stride;
  a->step = 1;
  a->taps = tap < 0 ? 0 : period ? (c->k[d] - 1 - tap) / period + 1 : 1;
  a->tap_step = period ? period * dilation / stride : 1;
  const int64_t last = tap + (a->taps - 1) * period;
  a->first = a->taps ? (r + c->pad[d] - last * dilation) / stride : 0;
  a->w_tap = -period * whole->w_tap;
  *out_at += r * whole->out_stride;
  if (a->taps) *w_at += last * whole->w_tap;
  return true;
}
static kiln_status *solve_transposed(kiln__nn *nn, const conv *c, const kiln_conv *whole) {
  int64_t count[3], index[3];
  const bool is_real = nn->dtype == KILN_DTYPE_F32 || nn->dtype == KILN_DTYPE_F64;
  if (is_real && kiln__conv_has_columns(whole, nn->item)) return kiln__conv_by_columns(nn, whole);
  for (int d = 0; d < 3; d++) count[d] = c->stride[d] < c->out[d] ? c->stride[d] : c->out[d];
  for (index[0] = 0; index[0] < count[0]; index[0]++) {
    for (index[1] = 0; index[1] < count[1]; index[1]++) {
      for (index[2] = 0; index[2] < count[2]; index[2]++) {
        kiln_conv part = *whole;
        int64_t out_at = 0, w_at = 0;
        for (int d = 0; d < 3; d++) {
          if (!set_phase(c, d, index[d], &whole->axis[d], &part.axis[d], &out_at, &w_at)) break;
        }
        part.out = (char *)whole->out + out_at * (int64_t)nn->item;
        part.weight = (const char *)whole->weight + w_at * (int64_t)nn->item;
        KILN_TRY(solve(nn, &part));
        KILN_TRY(kiln_call_check(nn->call, 1));
      }
    }
  }
  return NULL;
}
static kiln_status *run_conv(kiln__nn *nn, conv *c, const kiln_ivalue *args, kiln_ivalue *outs) {
  kiln_tensor *t[3], *result;
  KILN_TRY(output_sizes(c));
  KILN_TRY(read_operands(nn, args, t));
  int64_t sizes[5];
  int rank = 0;
  if (!c->lone) sizes[rank++] = c->batch;
  sizes[rank++] = c->out_channels;
  for (int d = 3 - c->nd; d < 3; d++) sizes[rank++] = c->out[d];
  char *out;
  KILN_TRY(kiln__nn_new(nn, rank, sizes, &result, &out));
  if (result->numel > 0) {
    kiln_conv problem;
    set_problem(c, t, out, &problem);
    if (t[0]->numel == 0) problem.channels = 0;
    KILN_TRY(c->transposed ? solve_transposed(nn, c, &problem) : solve(nn, &problem));
  }
  return kiln__nn_give(nn, result, kiln_tensor_dtype(SELF), outs);
}

/* -- The operators -- */

/* Where an operator has its arguments; -1: it has none. */
typedef struct conv_args {
  int stride, padding, dilation, out_padding, groups;
} conv_args;

static kiln_status *read_conv(conv *c, const kiln_ivalue *args, conv_args at) {
  kiln_tensor *input = SELF, *weight = ARG(1);
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
  const int nd = kiln_tensor_rank(ARG(1)) - 2;
  if (nd < 1 || nd > 3) return KILN_OP_FAIL("weight should have at least three dimensions");
  return conv_nd(nn, nd, kiln_arg_bool(args, 6), args, general, outs);
}
