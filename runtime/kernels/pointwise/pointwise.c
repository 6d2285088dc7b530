/* pointwise.c: the kernels of binary pointwise operators: which functor, in which dtype. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/composite.h"
#include "runtime/kernels/pointwise/alike.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/shape/view.h"

static inline void set_in(kiln_pw *pw, int i, kiln_ivalue v) {
  if (v.tag == KILN_TAG_TENSOR) {
    kiln_tensor *t = v.u.tensor;
    KILN_ASSERT(t);
    pw->in[i].tensor = t;
  } else {
    pw->in[i] = kiln_pw_arg_of(v);
  }
}

/* The dtype of both operands where it needs no thought: equal ones, or a float tensor and a real
 * number. */
static inline kiln_dtype common_of_two(const kiln_pw *pw) {
  const kiln_tensor *a = pw->in[0].tensor, *b = pw->in[1].tensor;
  if (a && b && kiln_tensor_dtype(a) == kiln_tensor_dtype(b)) return kiln_tensor_dtype(a);
  if (a && !b && kiln_tensor_dtype(a) == KILN_DTYPE_F32 &&
      pw->in[1].number.kind != KILN_DTYPE_C128) {
    return KILN_DTYPE_F32;
  }
  return kiln_pw_promote(pw, 0);
}

static inline void begin_two(kiln_pw *pw, kiln_pw_functor functor, const kiln_ivalue *args) {
  pw->functor = functor;
  pw->in_count = 2;
  pw->fixed_shape = false;
  pw->select = false;
  pw->params.fault = false;
  pw->in[0].tensor = pw->in[1].tensor = NULL;
  set_in(pw, 0, args[0]);
  set_in(pw, 1, args[1]);
  pw->common = common_of_two(pw);
}

static __attribute__((noinline)) kiln_status *general(kiln_call *call, kiln_pw_functor functor,
                                                      const kiln_ivalue *args, kiln_ivalue *out) {
  kiln_pw pw;
  begin_two(&pw, functor, args);
  return kiln_pw_run(call, &pw, out);
}
static __attribute__((noinline)) kiln_status *binary(kiln_call *call, kiln_pw_functor functor,
                                                     const kiln_ivalue *args, kiln_ivalue *out) {
  kiln_status *status = NULL;
  if (kiln__pw_alike(call, functor, args, 2, out, &status)) return status;
  return general(call, functor, args, out);
}
/* In the default float dtype where both are integers. */
static inline kiln_status *binary_float(kiln_call *call, kiln_pw_functor functor,
                                        const kiln_ivalue *args, kiln_ivalue *out) {
  if (args[0].tag == KILN_TAG_TENSOR && kiln_tensor_dtype(args[0].u.tensor) == KILN_DTYPE_F32) {
    return binary(call, functor, args, out); /* then the common dtype is a float one */
  }
  kiln_pw pw;
  begin_two(&pw, functor, args);
  pw.common = kiln_dtype_to_float(pw.common);
  return kiln_pw_run(call, &pw, out);
}

/* -- Sums: an alpha besides -- */

static kiln_status *check_alpha(const kiln_pw *pw, kiln_number alpha) {
  if (alpha.kind == KILN_DTYPE_BOOL && pw->common != KILN_DTYPE_BOOL) {
    return KILN_OP_FAIL("Boolean alpha only supported for Boolean results.");
  }
  if (kiln_dtype_is_int(pw->common, true) && alpha.kind != KILN_DTYPE_I64 &&
      alpha.kind != KILN_DTYPE_BOOL) {
    return KILN_OP_FAIL(
        "For integral input tensors, argument alpha must not be a floating point number.");
  }
  if (alpha.kind == KILN_DTYPE_C128 && !kiln_dtype_is_complex(pw->common)) {
    return KILN_OP_FAIL(
        "For non-complex input tensors, argument alpha must not be a complex number.");
  }
  return NULL;
}
static __attribute__((noinline)) kiln_status *scaled_sum(kiln_call *call, kiln_pw_functor functor,
                                                         const kiln_ivalue *args,
                                                         kiln_ivalue *out) {
  kiln_pw pw;
  begin_two(&pw, functor, args);
  kiln_number alpha = kiln__number(args[2]);
  KILN_TRY(check_alpha(&pw, alpha));
  memset(&pw.params, 0, sizeof pw.params);
  KILN_TRY(kiln_pw_param(&pw, 0, alpha));
  return kiln_pw_run(call, &pw, out);
}
static inline kiln_status *sum_of_two(kiln_call *call, kiln_pw_functor plain,
                                      kiln_pw_functor scaled, const kiln_ivalue *args,
                                      kiln_ivalue *out) {
  if (__builtin_expect(args[2].tag == KILN_TAG_INT && args[2].u.i == 1, 1)) {
    return binary(call, plain, args, out);
  }
  return scaled_sum(call, scaled, args, out);
}
static kiln_status *check_sub(const kiln_ivalue *args) {
  bool a = args[0].tag == KILN_TAG_BOOL, b = args[1].tag == KILN_TAG_BOOL;
  if (args[0].tag == KILN_TAG_TENSOR) a = kiln_tensor_dtype(args[0].u.tensor) == KILN_DTYPE_BOOL;
  if (args[1].tag == KILN_TAG_TENSOR) b = kiln_tensor_dtype(args[1].u.tensor) == KILN_DTYPE_BOOL;
  /* A bool number is fine with a tensor of another dtype. */
  if ((!a && !b) || (args[1].tag == KILN_TAG_BOOL && !a)) return NULL;
  if (a && b) {
    return KILN_OP_FAIL(
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead.");
  }
  return KILN_OP_FAIL(
      "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
      "invert a mask, use the `~` or `logical_not()` operator instead.");
}
KILN_KERNEL(add) { return sum_of_two(call, KILN_PW_add, KILN_PW_add_alpha, args, outs); }
KILN_KERNEL(sub) {
  KILN_TRY(check_sub(args));
  return sum_of_two(call, KILN_PW_sub, KILN_PW_sub_alpha, args, outs);
}
/* other - alpha * self */
KILN_KERNEL(rsub) {
  KILN_TRY(check_sub(args));
  return scaled_sum(call, KILN_PW_rsub, args, outs);
}

/* -- Products and quotients -- */

KILN_KERNEL(mul) { return binary(call, KILN_PW_mul, args, outs); }
KILN_KERNEL(div) { return binary_float(call, KILN_PW_div, args, outs); }
KILN_KERNEL(floor_divide) { return binary(call, KILN_PW_div_floor, args, outs); }
KILN_KERNEL(div_mode) {
  if (kiln_arg_is_none(args, 2)) return binary_float(call, KILN_PW_div, args, outs);
  kiln_str mode = kiln_arg_str(args, 2);
  if (kiln_str_is(mode, "trunc")) return binary(call, KILN_PW_div_trunc, args, outs);
  if (kiln_str_is(mode, "floor")) return binary(call, KILN_PW_div_floor, args, outs);
  return KILN_OP_FAIL(
      "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '" KILN_STR_FMT
      "'",
      KILN_STR_ARG(mode));
}
KILN_KERNEL(remainder) { return binary(call, KILN_PW_remainder, args, outs); }
KILN_KERNEL(fmod) { return binary(call, KILN_PW_fmod, args, outs); }

/* -- Power -- */

/* The cheap functor of x^e; pow where there is none. */
static kiln_pw_functor power_of(kiln_dtype common, double e) {
  if (e == 1) return KILN_PW_copy;
  if (e == 2) return KILN_PW_square;
  if (e == 3) return KILN_PW_cube;
  if (kiln_dtype_is_int(common, true)) return KILN_PW_pow;
  if (e == 0.5) return KILN_PW_sqrt;
  if (e == -0.5) return KILN_PW_rsqrt;
  if (e == -1) return KILN_PW_reciprocal;
  if (e == -2 && !kiln_dtype_is_complex(common)) return KILN_PW_rsquare;
  return KILN_PW_pow;
}
KILN_KERNEL(pow) {
  kiln_pw pw;
  begin_two(&pw, KILN_PW_pow, args);
  if (!pw.in[1].tensor) {
    kiln_number e = pw.in[1].number;
    if (kiln_dtype_is_int(pw.common, true) && e.f < 0) {
      return KILN_OP_FAIL("Integers to negative integer powers are not allowed.");
    }
    const bool half = kiln_dtype_is_half(pw.common);
    if (half) KILN_TRY(kiln__number_fits(e, pw.common));
    if (e.im == 0) {
      pw.functor = power_of(pw.common, e.f);
      if (pw.functor != KILN_PW_pow) pw.in_count = 1;
    }
  }
  /* PyTorch's result of a number's power is row-major */
  if (!pw.in[0].tensor && !kiln_tensor_is_contiguous(pw.in[1].tensor))
    return kiln_pw_run_rows(call, &pw, outs);
  return kiln_pw_run(call, &pw, outs);
}
KILN_KERNEL(pow_inplace) {
  kiln__give(outs, kiln_tensor_retain(args[0].u.tensor));
  return kiln__kernel_pow(call, args, outs);
}

/* -- Comparisons -- */

#define COMPARE(name) \
  KILN_KERNEL(name) { return binary(call, KILN_PW_##name, args, outs); }
COMPARE(eq)
COMPARE(ne)
COMPARE(lt)
COMPARE(le)
COMPARE(gt)
COMPARE(ge)
COMPARE(logical_and)
COMPARE(logical_or)
COMPARE(logical_xor)

/* -- Bits -- */

KILN_KERNEL(bitwise_and) { return binary(call, KILN_PW_and, args, outs); }
KILN_KERNEL(bitwise_or) { return binary(call, KILN_PW_or, args, outs); }
KILN_KERNEL(bitwise_xor) { return binary(call, KILN_PW_xor, args, outs); }
static kiln_status *shift(kiln_call *call, kiln_pw_functor functor, const kiln_ivalue *args,
                          kiln_ivalue *out) {
  kiln_pw pw;
  begin_two(&pw, functor, args);
  memset(&pw.params, 0, sizeof pw.params);
  pw.params.i[0] = (int64_t)kiln_dtype_bytes(pw.common) * 8;
  return kiln_pw_run(call, &pw, out);
}
KILN_KERNEL(shift_left) { return shift(call, KILN_PW_shl, args, outs); }
KILN_KERNEL(shift_right) { return shift(call, KILN_PW_shr, args, outs); }

/* -- Others of two -- */

COMPARE(maximum)
COMPARE(minimum)
COMPARE(fmax)
COMPARE(fmin)
COMPARE(heaviside)
COMPARE(gcd)
COMPARE(lcm)
COMPARE(hypot)
COMPARE(nextafter)
KILN_KERNEL(logaddexp) {
  if (kiln__is_complex(SELF) || kiln__is_complex(ARG(1))) {
    return KILN_BODY_OF(complex_logaddexp)(call, args, outs);
  }
  return binary(call, KILN_PW_logaddexp, args, outs);
}
KILN_KERNEL(atan2) { return binary_float(call, KILN_PW_atan2, args, outs); }
KILN_KERNEL(copysign) { return binary_float(call, KILN_PW_copysign, args, outs); }
KILN_KERNEL(xlogy) { return binary_float(call, KILN_PW_xlogy, args, outs); }

/* self * 2^other */
KILN_KERNEL(ldexp_tensor) {
  kiln_pw pw;
  begin_two(&pw, KILN_PW_mul, args);
  kiln_dtype common = kiln_dtype_to_float(pw.common);
  kiln_pw power = {.functor = KILN_PW_pow, .in_count = 2, .common = common};
  power.in[0].number = kiln__number_float(2);
  power.in[1].tensor = ARG(1);
  kiln_ivalue scale = kiln_none();
  kiln_status *status = kiln_pw_run_rows(call, &power, &scale);
  if (!status) {
    pw.common = common;
    pw.in[1].tensor = scale.u.tensor;
    status = kiln_pw_run(call, &pw, outs);
  }
  kiln_ivalue_release_to(&call->cache, scale);
  return status;
}
KILN_COMPOSITE(outer) {
  kiln_tensor *a = SELF, *b = ARG(1);
  if (kiln_tensor_rank(a) != 1 || kiln_tensor_rank(b) != 1) {
    return FAIL(r, "outer: Expected 1-D argument, but got %d-D",
                kiln_tensor_rank(kiln_tensor_rank(a) != 1 ? a : b));
  }
  return KILN_STEP(r, mul, T(KILN_STEP(r, unsqueeze, T(a), I(1))), T(b));
}

/* -- Selection -- */

KILN_KERNEL(where) {
  kiln_tensor *condition = SELF;
  kiln_dtype dtype = kiln_tensor_dtype(condition);
  if (dtype != KILN_DTYPE_BOOL && dtype != KILN_DTYPE_U8) {
    return KILN_OP_FAIL("where expected condition to be a boolean tensor, but got a tensor with "
                        "dtype %s",
                        kiln_dtype_ir_name(dtype));
  }
  kiln_pw pw = {.functor = KILN_PW_where, .in_count = 3, .select = true};
  for (int i = 0; i < 3; i++) pw.in[i] = kiln_pw_arg_of(args[i]);
  pw.common = kiln_pw_promote(&pw, 1);
  return kiln_pw_run(call, &pw, outs);
}
/* Where a place has several elements, the mask of any of them counts. */
static kiln_status *fill_places(kiln_call *call, kiln_tensor *self, kiln_tensor *mask,
                                kiln_number number) {
  const int rank = kiln_tensor_rank(self);
  const int64_t *sizes = kiln_tensor_sizes(self);
  const size_t item = kiln_tensor_item_size(self);
  double raw[2];
  kiln_tensor *all, *dense = NULL;
  void *data;
  KILN_TRY(kiln__expand(call, mask, rank, sizes, &all));
  kiln_status *status = kiln__contiguous(call, all, &dense);
  kiln_tensor_release_to(&call->cache, all);
  if (!status) status = kiln_tensor_writable_data(self, &data);
  if (status) goto end;
  kiln__number_store(number, kiln_tensor_dtype(self), raw);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < self->numel && !kiln_budget_spent(&left, 8); i++) {
    if (!((const uint8_t *)kiln_tensor_data(dense))[i]) continue;
    const int64_t at = kiln__offset_of(rank, sizes, kiln_tensor_strides(self), i);
    memcpy((char *)data + (size_t)at * item, raw, item);
  }
end:
  kiln_tensor_release_to(&call->cache, dense);
  return status;
}
/* masked_fill(self, mask, value): value where the mask holds, in self's dtype and broadcast shape.
 */
static kiln_status *fill_where(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *out) {
  kiln_tensor *self = SELF, *mask = ARG(1);
  kiln_dtype dtype = kiln_tensor_dtype(mask);
  if (dtype != KILN_DTYPE_BOOL && dtype != KILN_DTYPE_U8) {
    return KILN_OP_FAIL("masked_fill_ only supports boolean masks, but got mask with dtype %s",
                        kiln_dtype_short_name(dtype));
  }
  kiln_pw pw = {.functor = KILN_PW_where, .in_count = 3, .select = true, .fixed_shape = true};
  pw.in[0].tensor = mask;
  pw.in[1] = kiln_pw_arg_of(args[2]);
  pw.in[2].tensor = self;
  pw.common = kiln_tensor_dtype(self);
  if (pw.in[1].tensor && kiln_tensor_rank(pw.in[1].tensor) != 0) {
    return KILN_OP_FAIL("masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
                        "with %d dimension(s).",
                        kiln_tensor_rank(pw.in[1].tensor));
  }
  const kiln_tensor *value = pw.in[1].tensor;
  if (value && kiln_tensor_is_undefined(value)) return KILN_OP_FAIL("the value is undefined");
  const kiln_number number = !value ? pw.in[1].number
                             : kiln_dtype_is_int(kiln_tensor_dtype(value), true)
                                 ? kiln__number_int(kiln__element_i64(value, 0))
                                 : kiln__number_float(kiln__element_f64(value, 0));
  KILN_TRY(kiln__number_fits(number, pw.common));
  bool complex = pw.in[1].tensor ? kiln_dtype_is_complex(kiln_tensor_dtype(pw.in[1].tensor))
                                 : pw.in[1].number.kind == KILN_DTYPE_C128;
  if (complex && !kiln_dtype_is_complex(pw.common)) {
    return KILN_OP_FAIL("value cannot be converted to type %s without overflow",
                        kiln_dtype_short_name(pw.common));
  }
  if (kiln__dest(out) == self && kiln__repeats(self)) return fill_places(call, self, mask, number);
  return kiln_pw_run(call, &pw, out);
}
/* A new result is row-major, whatever the layout of self. */
KILN_KERNEL(masked_fill) {
  kiln_tensor *self = SELF, *mask = ARG(1), *result;
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  if (kiln__dest(outs)) return fill_where(call, args, outs);
  KILN_TRY(kiln_tensor_broadcast(self, mask, &rank, sizes));
  KILN_TRY(kiln__result(call, outs, kiln_tensor_dtype(self), rank, sizes, &result));
  return fill_where(call, args, outs);
}

/* -- Of three -- */

static kiln_status *ternary(kiln_call *call, kiln_pw_functor functor, const kiln_ivalue *args,
                            const kiln_ivalue *value, kiln_ivalue *out) {
  kiln_pw pw = {.functor = functor, .in_count = 3};
  for (int i = 0; i < 3; i++) pw.in[i] = kiln_pw_arg_of(args[i]);
  pw.common = kiln_pw_promote(&pw, 0);
  if (value) KILN_TRY(kiln_pw_param(&pw, 0, kiln__number(*value)));
  return kiln_pw_run(call, &pw, out);
}
KILN_KERNEL(addcmul) { return ternary(call, KILN_PW_addcmul, args, &args[3], outs); }
KILN_KERNEL(addcdiv) { return ternary(call, KILN_PW_addcdiv, args, &args[3], outs); }
/* Ends are of one dtype; only a weight without dimensions may have another one. */
static kiln_status *check_lerp(const kiln_ivalue *args, int i, const char *name) {
  const kiln_dtype self = kiln_tensor_dtype(args[0].u.tensor);
  const kiln_dtype dtype = kiln_tensor_dtype(args[i].u.tensor);
  if (dtype == self) return NULL;
  return KILN_OP_FAIL("expected dtype %s for `%s` but got dtype %s", kiln_dtype_name(self), name,
                      kiln_dtype_name(dtype));
}
KILN_KERNEL(lerp) {
  KILN_TRY(check_lerp(args, 1, "end"));
  kiln_pw pw = {.functor = KILN_PW_lerp, .in_count = 3};
  for (int i = 0; i < 3; i++) pw.in[i] = kiln_pw_arg_of(args[i]);
  if (args[2].tag == KILN_TAG_TENSOR) {
    if (kiln_tensor_rank(args[2].u.tensor) > 0) KILN_TRY(check_lerp(args, 2, "weight"));
    pw.common = kiln_pw_promote(&pw, 0);
  } else {
    pw.common = kiln_tensor_dtype(args[0].u.tensor);
    if (pw.in[2].number.im != 0 && !kiln_dtype_is_complex(pw.common)) {
      return KILN_OP_FAIL("value cannot be converted to type %s without overflow",
                          kiln_dtype_name(pw.common));
    }
  }
  return kiln_pw_run(call, &pw, outs);
}
