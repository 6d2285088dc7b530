/* composed.c: functions of elements that are made of others, as composites. */
#include <math.h>

#include "runtime/kernels/composite.h"

/* -- Elements -- */

/* In double, or complex double. */
KILN_COMPOSITE(float_power) {
  kiln_ivalue both[2];
  bool complex = false;
  for (int i = 0; i < 2; i++) {
    complex |= args[i].tag == KILN_TAG_TENSOR
                   ? kiln_dtype_is_complex(kiln_tensor_dtype(args[i].u.tensor))
                   : args[i].tag == KILN_TAG_COMPLEX;
  }
  const kiln_dtype dtype = complex ? KILN_DTYPE_C128 : KILN_DTYPE_F64;
  for (int i = 0; i < 2; i++) {
    kiln_tensor *t = args[i].tag == KILN_TAG_TENSOR ? args[i].u.tensor : NULL;
    both[i] = t ? T(kiln__composite_lay_like(r, t, dtype, t)) : args[i];
  }
  return KILN_STEP(r, pow, both[0], both[1]);
}
/* log2(2^a + 2^b), of real numbers that are not whole. */
KILN_COMPOSITE(logaddexp2) {
  kiln_tensor *a = SELF, *b = ARG(1);
  const kiln_dtype dtype = kiln_dtype_promote(kiln_tensor_dtype(a), kiln_tensor_dtype(b));
  if (!kiln_dtype_is_float(dtype))
    return kiln__composite_fail(r, kiln__not_implemented(r->call, dtype));
  kiln_tensor *most = KILN_STEP(r, maximum, T(a), T(b));
  kiln_tensor *gap =
      KILN_STEP(r, neg, T(KILN_STEP(r, abs, T(KILN_STEP(r, sub, T(a), T(b), I(1))))));
  kiln_tensor *rest =
      KILN_STEP(r, mul, T(KILN_STEP(r, log1p, T(KILN_STEP(r, exp2, T(gap))))), F(M_LOG2E));
  kiln_tensor *sum = KILN_STEP(r, add, T(most), T(rest), I(1));
  kiln_tensor *infinite = KILN_STEP(r, eq, T(a), T(b));
  infinite = KILN_STEP(r, logical_and, T(infinite),
                       T(KILN_STEP(r, logical_not, T(KILN_STEP(r, isfinite, T(a))))));
  return KILN_STEP(r, where, T(infinite), T(a), T(sum));
}
/* A number where the mask is true; in t's order of memory, which masked_fill does not keep. */
static kiln_tensor *where_number(kiln__composite *r, kiln_tensor *mask, double number,
                                 kiln_tensor *t) {
  kiln_tensor *other = kiln__composite_operand(r, F(number), kiln__composite_dtype(t));
  return KILN_STEP(r, where, T(mask), T(other), T(t));
}
KILN_COMPOSITE(special_xlog1py) {
  const bool number = args[1].tag != KILN_TAG_TENSOR;
  const kiln_dtype dtype = number ? kiln_dtype_to_float(kiln_tensor_dtype(SELF)) : KILN_DTYPE_F32;
  kiln_tensor *y = kiln__composite_operand(r, args[1], dtype);
  kiln_tensor *log = KILN_STEP(r, log1p, T(y));
  kiln_tensor *x = kiln__composite_operand(r, args[0], kiln__composite_dtype(log));
  kiln_tensor *product = KILN_STEP(r, mul, T(x), T(log)), *zero = KILN_STEP(r, eq, T(x), I(0));
  zero = KILN_STEP(r, logical_and, T(zero),
                   T(KILN_STEP(r, logical_not, T(KILN_STEP(r, isnan, T(y))))));
  product = where_number(r, zero, 0, product);
  kiln_tensor *const operands[] = {kiln_arg_tensor_opt(args, 0), kiln_arg_tensor_opt(args, 1)};
  return kiln__composite_lay_pointwise(r, product, kiln__composite_dtype(product), 2, operands);
}
/* -x log x, 0 at 0, -inf below */
KILN_COMPOSITE(special_entr) {
  kiln_tensor *x = kiln__composite_as_float(r, SELF);
  kiln_tensor *t = KILN_STEP(r, neg, T(KILN_STEP(r, mul, T(x), T(KILN_STEP(r, log, T(x))))));
  t = where_number(r, KILN_STEP(r, eq, T(x), I(0)), 0, t);
  return where_number(r, KILN_STEP(r, lt, T(x), I(0)), -INFINITY, t);
}
/* The normal distribution function. */
KILN_COMPOSITE(special_ndtr) {
  kiln_tensor *x = KILN_STEP(r, mul, T(kiln__composite_as_float(r, SELF)), F(-M_SQRT1_2));
  return KILN_STEP(r, mul, T(KILN_STEP(r, erfc, T(x))), F(0.5));
}
KILN_COMPOSITE(mvlgamma) {
  const int64_t p = kiln_arg_int(args, 1);
  if (p < 1 || p > 1 << 20) return FAIL(r, "p has to be greater than or equal to 1");
  const kiln_dtype dtype = kiln_dtype_to_float(kiln_tensor_dtype(SELF));
  kiln_tensor *x = kiln__composite_to(r, SELF, dtype), *sum = NULL; /* row-major, as PyTorch's */
  for (int64_t k = 0; k < p && !r->status; k++) {
    kiln_tensor *t = KILN_STEP(r, lgamma, T(KILN_STEP(r, sub, T(x), F((double)k / 2), I(1))));
    sum = sum ? KILN_STEP(r, add, T(sum), T(t), I(1)) : t;
  }
  return KILN_STEP(r, add, T(sum), F((double)(p * (p - 1)) * log(M_PI) / 4), I(1));
}

/* -- Layers by their inner names -- */

/* self -> output, buffer exp(-|x|) */
KILN_COMPOSITE(log_sigmoid_forward) {
  kiln_tensor *x = kiln__composite_to(r, SELF, kiln_tensor_dtype(SELF));
  kiln_tensor *size = KILN_STEP(r, abs, T(x));
  kiln__composite_give(r, &outs[0], KILN_STEP(r, log_sigmoid, T(x)));
  kiln__composite_give(r, &outs[1], KILN_STEP(r, exp, T(KILN_STEP(r, neg, T(size)))));
  return NULL;
}
KILN_COMPOSITE(_prelu_kernel) {
  kiln_tensor *above = KILN_STEP(r, gt, args[0], I(0));
  return KILN_STEP(r, where, T(above), args[0], T(KILN_STEP(r, mul, args[0], args[1])));
}

/* -- At least so many dimensions -- */

KILN_COMPOSITE(positive) {
  if (kiln_tensor_dtype(SELF) == KILN_DTYPE_BOOL) {
    FAIL(r, "The `+` operator, on a bool tensor is not supported.");
  }
  return SELF;
}

/* -- Written in place -- */

#define IN_PLACE(name)                           \
  KILN_KERNEL(name##_inplace) {                  \
    kiln__give(outs, kiln_tensor_retain(SELF));  \
    return KILN_BODY_OF(name)(call, args, outs); \
  }
IN_PLACE(bitwise_and)
IN_PLACE(bitwise_or)
IN_PLACE(bitwise_xor)
IN_PLACE(shift_left)
IN_PLACE(shift_right)
IN_PLACE(float_power)
