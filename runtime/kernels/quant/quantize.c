/* quantize.c: to quantised tensors and back, and questions about them.
 *
 * q = clamp(zero_point + nearbyint(x * (1 / scale))), all in float, ties to even; x = (q -
 * zero_point) * scale in float: what PyTorch computes on every engine. NaN becomes the lowest
 * value, as after its clamping. */
#include <math.h>

#include "runtime/kernels/composite.h"
#include "runtime/quant.h"

/* -- Quantising -- */

static void store(kiln_dtype dtype, void *to, int64_t i, float q) {
  switch (dtype) {
    case KILN_DTYPE_QU8: ((uint8_t *)to)[i] = (uint8_t)fminf(fmaxf(q, 0), UINT8_MAX); break;
    case KILN_DTYPE_QI8: ((int8_t *)to)[i] = (int8_t)fminf(fmaxf(q, INT8_MIN), INT8_MAX); break;
    default:
      ((int32_t *)to)[i] = q >= 0x1p31f ? INT32_MAX : q >= -0x1p31f ? (int32_t)q : INT32_MIN;
      break;
  }
}

/* `inner`: elements between neighbours along the axis of a tensor quantised by channels. */
static void quantize_all(const float *from, const kiln_quant *quant, kiln_dtype dtype,
                         int64_t numel, int64_t inner, void *to) {
  const bool channels = quant->scheme == KILN_QSCHEME_PER_CHANNEL;
  float inverse = 1.0f / (float)quant->scale, zero_point = (float)quant->zero_point;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < numel && !kiln_budget_spent(&left, 2); i++) {
    if (channels && i % inner == 0) {
      const int64_t c = i / inner % quant->count;
      inverse = 1.0f / (float)quant->scales[c];
      zero_point = (float)quant->zero_points[c];
    }
    store(dtype, to, i, zero_point + nearbyintf(from[i] * inverse));
  }
}

static int64_t inner_of(const kiln_tensor *t, const kiln_quant *quant) {
  int64_t inner = 1;
  for (int d = quant->axis + 1; d < kiln_tensor_rank(t); d++) inner *= kiln_tensor_sizes(t)[d];
  return inner > 0 ? inner : 1;
}

/* A quantised tensor of self's sizes: of its numbers, which are quantised, or (`integers`) of its
 * integers as they are. Takes `quant`. */
static kiln_status *make(kiln_call *call, kiln_tensor *self, kiln_quant *quant, kiln_dtype dtype,
                         bool integers, kiln_ivalue *outs) {
  kiln_tensor *from = NULL, *to = NULL;
  void *data;
  kiln_status *status = kiln__contiguous(call, self, &from);
  if (!status) {
    status = kiln_call_tensor(call, dtype, kiln_tensor_rank(self), kiln_tensor_sizes(self), &to);
  }
  if (status) {
    kiln_side_release(&quant->side);
  } else {
    kiln__give(outs, to);
    kiln_tensor_attach(to, &quant->side);
    if (to->numel > 0) status = kiln_tensor_writable_data(to, &data);
    if (!status && to->numel > 0 && integers) {
      kiln__move(data, kiln_tensor_data(from), (size_t)to->numel * kiln_dtype_bytes(dtype));
    } else if (!status && to->numel > 0) {
      quantize_all(kiln_tensor_data(from), quant, dtype, to->numel, inner_of(self, quant), data);
    }
  }
  kiln_tensor_release_to(&call->cache, from);
  return status;
}

static kiln_status *check_float(const kiln_tensor *t) {
  if (!kiln_tensor_is_undefined(t) && kiln_tensor_dtype(t) == KILN_DTYPE_F32) return NULL;
  return KILN_OP_FAIL("Quantize only works on Float Tensor, got %s",
                      kiln_dtype_ir_name(kiln_tensor_dtype(t)));
}

KILN_KERNEL(quantize_per_tensor) {
  const kiln_dtype dtype = (kiln_dtype)kiln_arg_int(args, 3);
  kiln_quant *quant = NULL;
  KILN_TRY(check_float(SELF));
  KILN_TRY(kiln_quant_create(call->env->mem, dtype, kiln_arg_float(args, 1), kiln_arg_int(args, 2),
                             &quant));
  return make(call, SELF, quant, dtype, false, outs);
}
KILN_KERNEL(quantize_per_tensor_qparams) {
  const kiln_dtype dtype = (kiln_dtype)kiln_arg_int(args, 3);
  kiln_quant *quant = NULL;
  double scale;
  int64_t zero_point;
  KILN_TRY(check_float(SELF));
  KILN_TRY(kiln_tensor_item_f64(args[1].u.tensor, &scale));
  KILN_TRY(kiln_tensor_item_i64(args[2].u.tensor, &zero_point));
  KILN_TRY(kiln_quant_create(call->env->mem, dtype, scale, zero_point, &quant));
  return make(call, SELF, quant, dtype, false, outs);
}

/* Parameters by channels from two tensors. */
static kiln_status *read_channels(kiln_call *call, const kiln_tensor *self, kiln_dtype dtype,
                                  kiln_tensor *scales, kiln_tensor *zero_points, int64_t axis,
                                  kiln_quant **out_quant) {
  kiln_tensor *s = NULL, *z = NULL;
  if (kiln_tensor_is_undefined(scales) || kiln_tensor_is_undefined(zero_points) ||
      kiln_tensor_rank(scales) != 1 || kiln_tensor_rank(zero_points) != 1) {
    return KILN_OP_FAIL("scale and zero_point tensors must have dimension 1");
  }
  if (axis < 0 || axis >= kiln_tensor_rank(self)) {
    return KILN_OP_FAIL("Channel axis out of range in per channel affine quantization. Got: %lld "
                        "Expected: [0, %d)",
                        (long long)axis, kiln_tensor_rank(self));
  }
  if (scales->numel != kiln_tensor_sizes(self)[axis] || zero_points->numel != scales->numel) {
    return KILN_OP_FAIL("length of scales must equal to channel");
  }
  KILN_TRY(kiln__as_dtype(call, scales, KILN_DTYPE_F64, &s));
  kiln_status *status = kiln__as_dtype(call, zero_points, KILN_DTYPE_I64, &z);
  if (!status && s->numel > 0) {
    status = kiln_quant_create_channels(call->env->mem, dtype, (int)axis, s->numel,
                                        kiln_tensor_data(s), kiln_tensor_data(z), out_quant);
  } else if (!status) {
    status = KILN_OP_FAIL("a tensor without channels cannot be quantized by them");
  }
  kiln_tensor_release_to(&call->cache, s);
  kiln_tensor_release_to(&call->cache, z);
  return status;
}

KILN_KERNEL(quantize_per_channel) {
  const kiln_dtype dtype = (kiln_dtype)kiln_arg_int(args, 4);
  kiln_quant *quant = NULL;
  KILN_TRY(check_float(SELF));
  KILN_TRY(read_channels(call, SELF, dtype, args[1].u.tensor, args[2].u.tensor,
                         kiln_arg_int(args, 3), &quant));
  return make(call, SELF, quant, dtype, false, outs);
}

static kiln_status *quant_of_integers(const kiln_tensor *t, kiln_dtype *out) {
  switch (kiln_tensor_is_undefined(t) ? KILN_DTYPE_NONE : kiln_tensor_dtype(t)) {
    case KILN_DTYPE_U8: *out = KILN_DTYPE_QU8; return NULL;
    case KILN_DTYPE_I8: *out = KILN_DTYPE_QI8; return NULL;
    case KILN_DTYPE_I32: *out = KILN_DTYPE_QI32; return NULL;
    default: return KILN_OP_FAIL("a quantized tensor is made of uint8, int8 or int32");
  }
}

KILN_KERNEL(make_per_tensor) {
  kiln_quant *quant = NULL;
  kiln_dtype dtype;
  KILN_TRY(quant_of_integers(SELF, &dtype));
  KILN_TRY(kiln_quant_create(call->env->mem, dtype, kiln_arg_float(args, 1), kiln_arg_int(args, 2),
                             &quant));
  return make(call, SELF, quant, dtype, true, outs);
}
KILN_KERNEL(make_per_channel) {
  kiln_quant *quant = NULL;
  kiln_dtype dtype;
  KILN_TRY(quant_of_integers(SELF, &dtype));
  KILN_TRY(read_channels(call, SELF, dtype, args[1].u.tensor, args[2].u.tensor,
                         kiln_arg_int(args, 3), &quant));
  return make(call, SELF, quant, dtype, true, outs);
}

/* -- Back -- */

static kiln_status *dequantize(kiln_call *call, kiln_tensor *t, kiln_tensor **out) {
  if (kiln_tensor_is_undefined(t)) return KILN_OP_FAIL("dequantize: the tensor is undefined");
  if (!kiln_tensor_is_quant(t)) return kiln__as_dtype(call, t, KILN_DTYPE_F32, out);
  return kiln_tensor_dequantize(call->env->mem, &call->cache, t, out);
}

KILN_KERNEL(dequantize) {
  kiln_tensor *out = NULL;
  KILN_TRY(dequantize(call, SELF, &out));
  return kiln__give(outs, out);
}
KILN_KERNEL(dequantize_list) {
  const kiln_list *list = kiln_arg_list(args, 0);
  kiln_list *made;
  KILN_TRY(kiln__new_list(call, KILN_TYPE_TENSOR, list->count, &made));
  *outs = kiln_of_box(made);
  for (int64_t i = 0; i < list->count; i++) {
    kiln_tensor *out = NULL;
    KILN_TRY(dequantize(call, list->items[i].u.tensor, &out));
    KILN_TRY(kiln_list_push(made, kiln_of_tensor(out)));
  }
  return NULL;
}

static kiln_status *need(const kiln_tensor *t, const char *what, int scheme,
                         const kiln_quant **out) {
  *out = kiln_tensor_quant(t);
  if (!*out) return KILN_OP_FAIL("%s needs a quantized tensor", what);
  if (scheme < 0 || (int)(*out)->scheme == scheme) return NULL;
  return KILN_OP_FAIL("%s: the tensor is quantized %s", what,
                      scheme == KILN_QSCHEME_PER_TENSOR ? "by channels" : "as a whole");
}

KILN_COMPOSITE(int_repr) {
  const kiln_quant *quant;
  kiln_tensor *t = SELF;
  if (!kiln__composite_ok(r, need(t, "int_repr", -1, &quant))) return NULL;
  const kiln_dtype dtype = kiln_quant_integers(kiln_tensor_dtype(t));
  kiln_tensor *integers =
      KILN_OWN(r, kiln_tensor_create_on(r->call->env->mem, &r->call->cache, t->storage, dtype,
                                        kiln_tensor_rank(t), kiln_tensor_sizes(t),
                                        kiln_tensor_strides(t), t->offset, &own_tensor));
  return kiln__composite_copy(r, integers);
}

/* -- Questions -- */

KILN_KERNEL(is_quantized) { return kiln__give_bool(outs, kiln_tensor_is_quant(SELF)); }
KILN_KERNEL(q_scale) {
  const kiln_quant *quant;
  KILN_TRY(need(SELF, "q_scale", KILN_QSCHEME_PER_TENSOR, &quant));
  return kiln__give_float(outs, quant->scale);
}
KILN_KERNEL(q_zero_point) {
  const kiln_quant *quant;
  KILN_TRY(need(SELF, "q_zero_point", KILN_QSCHEME_PER_TENSOR, &quant));
  return kiln__give_int(outs, quant->zero_point);
}
KILN_KERNEL(qscheme) {
  const kiln_quant *quant;
  KILN_TRY(need(SELF, "qscheme", -1, &quant));
  return kiln__give_int(outs, quant->scheme);
}
KILN_KERNEL(q_per_channel_axis) {
  const kiln_quant *quant;
  KILN_TRY(need(SELF, "q_per_channel_axis", KILN_QSCHEME_PER_CHANNEL, &quant));
  return kiln__give_int(outs, quant->axis);
}

static kiln_status *channel_tensor(kiln_call *call, kiln_dtype dtype, const void *values,
                                   int64_t count, kiln_ivalue *outs) {
  kiln_tensor *t;
  void *data;
  KILN_TRY(kiln_call_tensor(call, dtype, 1, &count, &t));
  kiln__give(outs, t);
  KILN_TRY(kiln_tensor_writable_data(t, &data));
  memcpy(data, values, (size_t)count * 8);
  return NULL;
}
KILN_KERNEL(q_per_channel_scales) {
  const kiln_quant *quant;
  KILN_TRY(need(SELF, "q_per_channel_scales", KILN_QSCHEME_PER_CHANNEL, &quant));
  return channel_tensor(call, KILN_DTYPE_F64, quant->scales, quant->count, outs);
}
KILN_KERNEL(q_per_channel_zero_points) {
  const kiln_quant *quant;
  KILN_TRY(need(SELF, "q_per_channel_zero_points", KILN_QSCHEME_PER_CHANNEL, &quant));
  return channel_tensor(call, KILN_DTYPE_I64, quant->zero_points, quant->count, outs);
}
