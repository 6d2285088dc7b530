/* complex_math.c: kernels of several families for complex numbers, as composites, and logsumexp. */
#include <math.h>

#include "runtime/kernels/composite.h"
#include "runtime/kernels/reduce/reduction.h"

/* Each part by itself. */
KILN_COMPOSITE(complex_nan_to_num) {
  kiln_tensor *parts = KILN_STEP(r, view_as_real, T(SELF));
  parts = KILN_STEP(r, nan_to_num, T(parts), args[1], args[2], args[3]);
  return KILN_STEP(r, view_as_complex, T(parts));
}
KILN_COMPOSITE(complex_l1_loss) {
  kiln_tensor *t = KILN_STEP(r, abs, T(KILN_STEP(r, sub, T(SELF), T(ARG(1)), I(1))));
  return kiln__composite_reduced(r, t, kiln_arg_int(args, 2));
}
/* Greatest real parts are taken out before exp; those that are not finite stay in. */
static kiln_tensor *finite_or_0(kiln__composite *r, kiln_tensor *t) {
  kiln_tensor *fine = KILN_STEP(r, isfinite, T(t));
  return KILN_STEP(r, masked_fill, T(t), T(KILN_STEP(r, logical_not, T(fine))), I(0));
}
static kiln_tensor *exp_above(kiln__composite *r, kiln_tensor *t, kiln_tensor *top) {
  return KILN_STEP(r, exp, T(KILN_STEP(r, sub, T(t), T(top), I(1))));
}
/* The one with the greater real part plus log(1 + exp(the other minus it)), so the imaginary part
 * may leave (-pi, pi]. */
KILN_COMPOSITE(complex_logaddexp) {
  kiln_tensor *a = SELF, *b = ARG(1);
  kiln_tensor *real_a = kiln__is_complex(a) ? KILN_STEP(r, real, T(a)) : a,
              *real_b = kiln__is_complex(b) ? KILN_STEP(r, real, T(b)) : b;
  kiln_tensor *less = KILN_STEP(r, lt, T(real_a), T(real_b));
  kiln_tensor *top = KILN_STEP(r, where, T(less), T(b), T(a)),
              *low = KILN_STEP(r, where, T(less), T(a), T(b));
  kiln_tensor *sum = KILN_STEP(r, add, T(exp_above(r, low, finite_or_0(r, top))), I(1), I(1));
  return KILN_STEP(r, add, T(KILN_STEP(r, log, T(sum))), T(top), I(1));
}
/* log(sum(exp(x))) of any numbers; complex ones are not widened. */
KILN_COMPOSITE(logsumexp) {
  kiln_tensor *t = SELF, *top = NULL;
  const kiln_dtype dtype = kiln_dtype_to_float(kiln_tensor_dtype(t));
  const bool complex = kiln__is_complex(t);
  if (!kiln__composite_ok(r, kiln__check_dtype(r->call, dtype))) return NULL;
  if (!complex) t = kiln__composite_to(r, t, kiln__compute_dtype(dtype));
  if (t && t->numel > 0) { /* else the logarithm of 0, where there is a result */
    top = KILN_STEP(r, amax, T(complex ? KILN_STEP(r, real, T(t)) : t), args[1], B(true));
    top = finite_or_0(r, top);
    t = exp_above(r, t, top);
  }
  kiln_tensor *sum = KILN_STEP(r, sum_dim, T(t), args[1], args[2], NONE);
  kiln_tensor *log = KILN_STEP(r, log, T(sum));
  if (top && !r->status) {
    top = kiln__composite_reshape(r, top, kiln_tensor_rank(sum), kiln_tensor_sizes(sum));
    log = KILN_STEP(r, add, T(log), T(top), I(1));
  }
  return kiln__composite_to(r, log, dtype);
}
/* base, a, b, beta, alpha; beta 0: the base is not looked at */
KILN_COMPOSITE(complex_product_sum) {
  kiln_tensor *a = ARG(1), *b = ARG(2);
  const kiln_number beta = kiln__number(args[3]);
  if (!kiln__is_complex(a) || !kiln__is_complex(SELF)) {
    FAIL(r, "value cannot be converted to type float without overflow");
  }
  kiln_tensor *t = KILN_STEP(r, matmul, T(a), T(b));
  const kiln_dtype dtype = kiln__composite_dtype(t);
  t = KILN_STEP(r, mul, T(t), T(kiln__composite_operand(r, args[4], dtype)));
  if (beta.f != 0 || beta.im != 0) {
    kiln_tensor *base = KILN_STEP(r, mul, T(SELF), T(kiln__composite_operand(r, args[3], dtype)));
    t = KILN_STEP(r, add, T(t), T(base), I(1));
  }
  return t;
}
