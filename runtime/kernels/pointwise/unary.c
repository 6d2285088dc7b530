/* unary.c: the kernels of pointwise operators on one tensor, activations included. */
#include <math.h>
#include <string.h>

#include "runtime/half.h"
#include "runtime/kernels/pointwise/alike.h"
#include "runtime/kernels/pointwise/iter.h"

static inline void begin_one(kiln_pw *pw, kiln_pw_functor functor, kiln_tensor *t) {
  pw->functor = functor;
  pw->in_count = 1;
  pw->fixed_shape = pw->select = false;
  pw->in[0].tensor = t;
  pw->params.fault = false;
  pw->common = kiln_tensor_dtype(t);
}
static __attribute__((noinline)) kiln_status *general(kiln_call *call, kiln_pw_functor functor,
                                                      const kiln_ivalue *args, kiln_ivalue *out) {
  kiln_pw pw;
  begin_one(&pw, functor, SELF);
  return kiln_pw_run(call, &pw, out);
}
static __attribute__((noinline)) kiln_status *same(kiln_call *call, kiln_pw_functor functor,
                                                   const kiln_ivalue *args, kiln_ivalue *out) {
  kiln_status *status = NULL;
  if (kiln__pw_alike(call, functor, args, 1, out, &status)) return status;
  return general(call, functor, args, out);
}
static inline kiln_status *floating(kiln_call *call, kiln_pw_functor functor,
                                    const kiln_ivalue *args, kiln_ivalue *out) {
  kiln_dtype dtype = kiln_tensor_dtype(SELF);
  if (dtype == KILN_DTYPE_F32 || dtype == KILN_DTYPE_F64) return same(call, functor, args, out);
  kiln_pw pw;
  begin_one(&pw, functor, SELF);
  pw.common = kiln_dtype_to_float(pw.common);
  return kiln_pw_run(call, &pw, out);
}
/* Integers are left as they are. */
static inline kiln_status *rounding(kiln_call *call, kiln_pw_functor functor,
                                    const kiln_ivalue *args, kiln_ivalue *out) {
  bool whole = kiln_dtype_is_int(kiln_tensor_dtype(SELF), false);
  return same(call, whole ? KILN_PW_copy : functor, args, out);
}

#define SAME(name, functor) \
  KILN_KERNEL(name) { return same(call, KILN_PW_##functor, args, outs); }
#define FLOATING(name) \
  KILN_KERNEL(name) { return floating(call, KILN_PW_##name, args, outs); }
#define ROUNDING(name) \
  KILN_KERNEL(name) { return rounding(call, KILN_PW_##name, args, outs); }

FLOATING(exp)
FLOATING(exp2)
FLOATING(expm1)
FLOATING(log)
FLOATING(log2)
FLOATING(log10)
FLOATING(log1p)
FLOATING(sqrt)
FLOATING(rsqrt)
FLOATING(reciprocal)
FLOATING(sin)
FLOATING(cos)
FLOATING(tan)
FLOATING(asin)
FLOATING(acos)
FLOATING(atan)
FLOATING(sinh)
FLOATING(cosh)
FLOATING(tanh)
FLOATING(asinh)
FLOATING(acosh)
FLOATING(atanh)
FLOATING(erf)
FLOATING(erfc)
FLOATING(erfinv)
FLOATING(lgamma)
FLOATING(digamma)
FLOATING(sigmoid)
FLOATING(sinc)
ROUNDING(floor)
ROUNDING(ceil)
ROUNDING(trunc)
ROUNDING(round)
SAME(abs, abs)
SAME(sign, sign)
SAME(frac, frac)
SAME(relu, relu)
SAME(silu, silu)
SAME(mish, mish)
SAME(hardsigmoid, hardsigmoid)
SAME(hardswish, hardswish)
/* row-major, as PyTorch's */
KILN_KERNEL(log_sigmoid) {
  if (kiln__dest(outs) || kiln_tensor_is_contiguous(SELF))
    return same(call, KILN_PW_log_sigmoid, args, outs);
  kiln_pw pw;
  begin_one(&pw, KILN_PW_log_sigmoid, SELF);
  return kiln_pw_run_rows(call, &pw, outs);
}
SAME(bitwise_not, not)
SAME(logical_not, logical_not)

/* pow(x, 2): a bool's is an int64. */
KILN_KERNEL(square) {
  kiln_pw pw;
  begin_one(&pw, KILN_PW_square, SELF);
  if (pw.common == KILN_DTYPE_BOOL) pw.common = KILN_DTYPE_I64;
  return kiln_pw_run(call, &pw, outs);
}
KILN_KERNEL(neg) {
  if (kiln_tensor_dtype(SELF) == KILN_DTYPE_BOOL) {
    return KILN_OP_FAIL("Negation, the `-` operator, on a bool tensor is not supported. If you are "
                        "trying to invert "
                        "a mask, use the `~` or `logical_not()` operator instead.");
  }
  return same(call, KILN_PW_neg, args, outs);
}

/* -- Questions: constant for dtypes that cannot be so -- */

static kiln_status *question(kiln_call *call, kiln_pw_functor functor, bool otherwise,
                             const kiln_ivalue *args, kiln_ivalue *out) {
  kiln_tensor *t = SELF;
  if (!kiln_dtype_is_int(kiln_tensor_dtype(t), true)) return same(call, functor, args, out);
  kiln_tensor *result;
  KILN_TRY(
      kiln__result(call, out, KILN_DTYPE_BOOL, kiln_tensor_rank(t), kiln_tensor_sizes(t), &result));
  return kiln_pw_fill(call, result, kiln__number_int(otherwise));
}
KILN_KERNEL(isnan) { return question(call, KILN_PW_isnan, false, args, outs); }
KILN_KERNEL(isinf) { return question(call, KILN_PW_isinf, false, args, outs); }
KILN_KERNEL(isposinf) { return question(call, KILN_PW_isposinf, false, args, outs); }
KILN_KERNEL(isneginf) { return question(call, KILN_PW_isneginf, false, args, outs); }
KILN_KERNEL(isfinite) { return question(call, KILN_PW_isfinite, true, args, outs); }
KILN_KERNEL(signbit) {
  bool is_bool = kiln_tensor_dtype(SELF) == KILN_DTYPE_BOOL;
  if (is_bool) return question(call, KILN_PW_signbit, false, args, outs);
  return same(call, KILN_PW_signbit, args, outs);
}

/* -- With numbers -- */

/* A functor on a float tensor with up to three numbers. */
static kiln_status *with_params(kiln_call *call, kiln_pw_functor functor, const kiln_ivalue *args,
                                int count, const double *numbers, kiln_ivalue *out) {
  kiln_pw pw = {.functor = functor, .in_count = 1, .in = {{.tensor = SELF}}};
  pw.common = kiln_tensor_dtype(pw.in[0].tensor);
  for (int i = 0; i < count; i++) KILN_TRY(kiln_pw_param(&pw, i, kiln__number_float(numbers[i])));
  return kiln_pw_run(call, &pw, out);
}

/* A bound outside of an integral dtype: one that nothing reaches becomes the dtype's own, one that
 * all would have to pass cannot be stored. */
static kiln_status *fit_bound(kiln_dtype dtype, bool is_low, kiln_number *bound) {
  if (!kiln_dtype_is_int(dtype, false) || bound->kind == KILN_DTYPE_F64) return NULL;
  const int bits = 8 * (int)kiln_dtype_bytes(dtype);
  const bool is_unsigned = dtype == KILN_DTYPE_U8;
  const int64_t high = (int64_t)(UINT64_MAX >> (is_unsigned ? 64 - bits : 65 - bits));
  const int64_t low = is_unsigned ? 0 : -high - 1;
  if (bound->i >= low && bound->i <= high) return NULL;
  if (is_low == (bound->i < low)) {
    *bound = kiln__number_int(is_low ? low : high);
    return NULL;
  }
  return KILN_OP_FAIL("Clamp %s value %lld is outside the representable range of %s",
                      is_low ? "min" : "max", (long long)bound->i, kiln_dtype_ir_name(dtype));
}

/* Bounds take part in promotion. Tensors as bounds are operands. */
static kiln_status *clamp(kiln_call *call, kiln_ivalue self, kiln_ivalue low, kiln_ivalue high,
                          kiln_ivalue *out) {
  bool has_low = low.tag != KILN_TAG_NONE, has_high = high.tag != KILN_TAG_NONE;
  if (!has_low && !has_high) {
    return KILN_OP_FAIL("torch.clamp: At least one of 'min' or 'max' must not be None");
  }
  kiln_pw pw = {.in_count = 1, .in = {{.tensor = self.u.tensor}}};
  bool tensors = low.tag == KILN_TAG_TENSOR || high.tag == KILN_TAG_TENSOR;
  if (has_low) pw.in[pw.in_count++] = kiln_pw_arg_of(low);
  if (has_high) pw.in[pw.in_count++] = kiln_pw_arg_of(high);
  pw.common = kiln_pw_promote(&pw, 0);
  if (kiln_dtype_is_complex(pw.common)) {
    return KILN_OP_FAIL("clamp is not supported for complex types");
  }
  if (tensors) {
    pw.functor = has_low && has_high ? KILN_PW_clamp_between
                 : has_low           ? KILN_PW_maximum
                                     : KILN_PW_minimum;
    return kiln_pw_run(call, &pw, out);
  }
  pw.in_count = 1;
  double bounds[2] = {kiln__number(low).f, kiln__number(high).f};
  if ((has_low && isnan(bounds[0])) || (has_high && isnan(bounds[1]))) {
    kiln_tensor *t = self.u.tensor, *result;
    KILN_TRY(
        kiln__result(call, out, pw.common, kiln_tensor_rank(t), kiln_tensor_sizes(t), &result));
    return kiln_pw_fill(call, result, kiln__number_float(NAN));
  }
  pw.functor = has_low && has_high ? KILN_PW_clamp
               : has_low           ? KILN_PW_clamp_min
                                   : KILN_PW_clamp_max;
  kiln_number least = kiln__number(low), most = kiln__number(high);
  if (has_low) {
    KILN_TRY(fit_bound(pw.common, true, &least));
    KILN_TRY(kiln_pw_param(&pw, 0, least));
  }
  if (has_high) {
    KILN_TRY(fit_bound(pw.common, false, &most));
    KILN_TRY(kiln_pw_param(&pw, has_low ? 1 : 0, most));
  }
  return kiln_pw_run(call, &pw, out);
}
KILN_KERNEL(clamp) { return clamp(call, args[0], args[1], args[2], outs); }
KILN_KERNEL(clamp_min) { return clamp(call, args[0], args[1], kiln_none(), outs); }
KILN_KERNEL(clamp_max) { return clamp(call, args[0], kiln_none(), args[1], outs); }
/* Bounds in the dtype of self. */
static kiln_status *clamp_in_self(kiln_call *call, const kiln_ivalue *args, kiln_number low,
                                  kiln_number high, kiln_ivalue *out) {
  kiln_pw pw = {.functor = KILN_PW_clamp, .in_count = 1, .in = {{.tensor = SELF}}};
  pw.common = kiln_tensor_dtype(pw.in[0].tensor);
  KILN_TRY(fit_bound(pw.common, true, &low));
  KILN_TRY(fit_bound(pw.common, false, &high));
  KILN_TRY(kiln_pw_param(&pw, 0, low));
  KILN_TRY(kiln_pw_param(&pw, 1, high));
  return kiln_pw_run(call, &pw, out);
}
KILN_KERNEL(relu6) {
  return clamp_in_self(call, args, kiln__number_int(0), kiln__number_int(6), outs);
}
KILN_KERNEL(hardtanh) {
  kiln_dtype dtype = kiln_tensor_dtype(SELF);
  if (dtype == KILN_DTYPE_BOOL) return KILN_OP_FAIL("Bool inputs not supported for hardtanh");
  kiln_number low = kiln__number(args[1]), high = kiln__number(args[2]);
  if (kiln_dtype_is_int(dtype, false)) { /* bounds are cut */
    KILN_TRY(kiln__number_fits(low, KILN_DTYPE_I64));
    KILN_TRY(kiln__number_fits(high, KILN_DTYPE_I64));
    low = kiln__number_int(kiln__number_i64(low));
    high = kiln__number_int(kiln__number_i64(high));
    if (dtype == KILN_DTYPE_U8 && low.i < 0) low.i = 0;
    if (dtype == KILN_DTYPE_U8 && high.i < 0) high.i = 0;
  }
  return clamp_in_self(call, args, low, high, outs);
}
KILN_KERNEL(leaky_relu) {
  double slope = kiln__number(args[1]).f;
  return with_params(call, KILN_PW_leaky_relu, args, 1, &slope, outs);
}
KILN_KERNEL(threshold) {
  kiln_pw pw = {.functor = KILN_PW_threshold, .in_count = 1, .in = {{.tensor = SELF}}};
  pw.common = kiln_tensor_dtype(pw.in[0].tensor);
  for (int i = 0; i < 2; i++) KILN_TRY(kiln_pw_param(&pw, i, kiln__number(args[1 + i])));
  return kiln_pw_run(call, &pw, outs);
}
KILN_KERNEL(hardshrink) {
  double lambda = kiln__number(args[1]).f;
  return with_params(call, KILN_PW_hardshrink, args, 1, &lambda, outs);
}
KILN_KERNEL(softshrink) {
  double lambda = kiln__number(args[1]).f;
  if (lambda < 0) {
    return KILN_OP_FAIL("lambda must be greater or equal to 0, but found to be %g.", lambda);
  }
  return with_params(call, KILN_PW_softshrink, args, 1, &lambda, outs);
}
KILN_KERNEL(softplus) {
  double numbers[2] = {kiln__number(args[1]).f, kiln__number(args[2]).f};
  return with_params(call, KILN_PW_softplus, args, 2, numbers, outs);
}
KILN_KERNEL(elu) {
  double alpha = kiln__number(args[1]).f, scale = kiln__number(args[2]).f;
  double numbers[3] = {alpha * scale, scale, kiln__number(args[3]).f};
  return with_params(call, KILN_PW_elu, args, 3, numbers, outs);
}
KILN_KERNEL(celu) {
  double alpha = kiln__number(args[1]).f;
  if (alpha == 0) return KILN_OP_FAIL("ZeroDivisionError: alpha cannot be 0 for CELU");
  double numbers[3] = {alpha, 1, 1 / alpha};
  return with_params(call, KILN_PW_elu, args, 3, numbers, outs);
}
KILN_KERNEL(selu) {
  const double alpha = 1.6732632423543772848170429916717, scale = 1.0507009873554804934193349852946;
  double numbers[3] = {alpha * scale, scale, 1};
  return with_params(call, KILN_PW_elu, args, 3, numbers, outs);
}
KILN_KERNEL(gelu) {
  kiln_str how = kiln_arg_str(args, 1);
  if (kiln_str_is(how, "none")) return same(call, KILN_PW_gelu, args, outs);
  if (kiln_str_is(how, "tanh")) return same(call, KILN_PW_gelu_tanh, args, outs);
  return KILN_OP_FAIL("approximate argument must be either none or tanh.");
}
KILN_KERNEL(logit) {
  double eps = kiln_arg_is_none(args, 1) ? -1 : kiln_arg_float(args, 1);
  kiln_pw pw = {.functor = KILN_PW_logit, .in_count = 1, .in = {{.tensor = SELF}}};
  pw.common = kiln_dtype_to_float(kiln_tensor_dtype(pw.in[0].tensor));
  KILN_TRY(kiln_pw_param(&pw, 0, kiln__number_float(eps)));
  return kiln_pw_run(call, &pw, outs);
}
KILN_KERNEL(round_decimals) {
  int64_t decimals = kiln_arg_int(args, 1);
  if (decimals == 0) return rounding(call, KILN_PW_round, args, outs);
  double numbers[2] = {pow(10, fabs((double)decimals)), decimals < 0};
  return with_params(call, KILN_PW_round_scaled, args, 2, numbers, outs);
}
KILN_KERNEL(nan_to_num) {
  kiln_dtype dtype = kiln_tensor_dtype(SELF);
  if (kiln_dtype_is_int(dtype, true)) return same(call, KILN_PW_copy, args, outs);
  if (kiln_dtype_is_complex(dtype)) return KILN_BODY_OF(complex_nan_to_num)(call, args, outs);
  double numbers[3] = {0, kiln_float_greatest(dtype), -kiln_float_greatest(dtype)};
  for (int i = 0; i < 3; i++) {
    if (!kiln_arg_is_none(args, i + 1)) numbers[i] = kiln_arg_float(args, i + 1);
  }
  return with_params(call, KILN_PW_nan_to_num, args, 3, numbers, outs);
}
static kiln_status *scaled(kiln_call *call, const kiln_ivalue *args, double factor,
                           kiln_ivalue *out) {
  kiln_pw pw = {.functor = KILN_PW_mul, .in_count = 2, .in = {{.tensor = SELF}}};
  pw.in[1].number = kiln__number_float(factor);
  pw.common = kiln_pw_promote(&pw, 0);
  return kiln_pw_run(call, &pw, out);
}
KILN_KERNEL(deg2rad) { return scaled(call, args, M_PI / 180, outs); }
KILN_KERNEL(rad2deg) { return scaled(call, args, 180 / M_PI, outs); }
KILN_KERNEL(prelu) {
  kiln_tensor *x = SELF, *w = ARG(1), *view = NULL;
  if (kiln_tensor_rank(w) > 1) {
    return KILN_OP_FAIL("prelu: Expected `weight` to be a scalar or 1D tensor, but got ndim = %d",
                        kiln_tensor_rank(w));
  }
  kiln_pw pw = {.functor = KILN_PW_prelu, .in_count = 2, .in = {{.tensor = x}, {.tensor = w}}};
  pw.common = kiln_tensor_dtype(x);
  int rank = kiln_tensor_rank(x);
  if (w->numel != 1 || rank == 0) {
    int64_t channels = rank > 1 ? kiln_tensor_sizes(x)[1] : 1, sizes[KILN_MAX_RANK],
            strides[KILN_MAX_RANK] = {0};
    if (rank == 0 && w->numel != 1) return KILN_OP_FAIL("Not allow zero-dim input tensor.");
    if (channels != w->numel) {
      return KILN_OP_FAIL("Mismatch of parameter numbers and input channel size. Found parameter "
                          "numbers = %lld and channel size = %lld.",
                          (long long)w->numel, (long long)channels);
    }
    for (int i = 0; i < rank; i++) sizes[i] = 1;
    sizes[rank > 1 ? 1 : 0] = w->numel;
    strides[rank > 1 ? 1 : 0] = kiln_tensor_rank(w) ? kiln_tensor_strides(w)[0] : 1;
    KILN_TRY(kiln_tensor_view(&call->cache, w, rank, sizes, strides, w->offset, &view));
    pw.in[1].tensor = view;
  }
  kiln_status *status = kiln_pw_run(call, &pw, outs);
  kiln_tensor_release_to(&call->cache, view);
  return status;
}
KILN_KERNEL(copy_) {
  if (SELF != ARG(1)) KILN_TRY(kiln_pw_copy(call, SELF, ARG(1)));
  return kiln__give(outs, kiln_tensor_retain(SELF));
}
KILN_KERNEL(fill_) {
  kiln_tensor *value = kiln_arg_tensor_opt(args, 1);
  if (value && kiln_tensor_rank(value) != 0) {
    return KILN_OP_FAIL("fill_ only supports 0-dimension value tensor but got tensor with %d "
                        "dimensions.",
                        kiln_tensor_rank(value));
  }
  kiln_tensor *once;
  KILN_TRY(kiln__once(call, SELF, &once));
  kiln_status *status = value ? kiln_pw_copy(call, once, value)
                              : kiln_pw_fill_fitting(call, once, kiln__number(args[1]));
  kiln_tensor_release_to(&call->cache, once);
  return status ? status : kiln__give(outs, kiln_tensor_retain(SELF));
}
KILN_KERNEL(zero_) {
  KILN_TRY(kiln_pw_fill(call, SELF, kiln__number_int(0)));
  return kiln__give(outs, kiln_tensor_retain(SELF));
}
