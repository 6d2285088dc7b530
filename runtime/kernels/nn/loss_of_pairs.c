/* loss_of_pairs.c: losses as composites; the last argument is the reduction. */
#include <math.h>

#include "runtime/kernels/composite.h"

KILN_COMPOSITE(kl_div) {
  kiln_tensor *x = SELF, *y = ARG(1), *loss;
  if (kiln_arg_bool(args, 3)) {
    loss = KILN_STEP(r, mul, T(KILN_STEP(r, exp, T(y))), T(KILN_STEP(r, sub, T(y), T(x), I(1))));
  } else {
    kiln_tensor *product = KILN_STEP(r, mul, T(y), T(x));
    loss = KILN_STEP(r, sub, T(KILN_STEP(r, xlogy, T(y), T(y))), T(product), I(1));
  }
  return kiln__composite_reduced(r, loss, kiln_arg_int(args, 2));
}
KILN_COMPOSITE(margin_ranking_loss) {
  kiln_tensor *t = KILN_STEP(r, sub, T(SELF), T(ARG(1)), I(1));
  t = KILN_STEP(r, mul, T(KILN_STEP(r, neg, args[2])), T(t));
  t = KILN_STEP(r, clamp_min, T(KILN_STEP(r, add, T(t), args[3], I(1))), I(0));
  return kiln__composite_reduced(r, t, kiln_arg_int(args, 4));
}
KILN_COMPOSITE(hinge_embedding_loss) {
  kiln_tensor *margin =
      KILN_STEP(r, sub, T(KILN_STEP(r, neg, T(SELF))), F(-kiln_arg_float(args, 2)), I(1));
  margin = KILN_STEP(r, clamp_min, T(margin), I(0));
  kiln_tensor *zero = KILN_STEP(r, zeros_like, T(SELF), NONE, NONE, NONE, NONE, NONE);
  kiln_tensor *a = KILN_STEP(r, where, T(KILN_STEP(r, ne, T(ARG(1)), I(1))), T(margin), T(zero));
  kiln_tensor *b = KILN_STEP(r, where, T(KILN_STEP(r, ne, T(ARG(1)), I(-1))), T(SELF), T(zero));
  return kiln__composite_reduced(r, KILN_STEP(r, add, T(a), T(b), I(1)), kiln_arg_int(args, 3));
}
KILN_COMPOSITE(soft_margin_loss) {
  kiln_tensor *t = KILN_STEP(r, mul, T(KILN_STEP(r, neg, T(ARG(1)))), T(SELF));
  t = KILN_STEP(r, log1p, T(KILN_STEP(r, exp, T(t))));
  if (t && kiln_arg_int(args, 2) == 0 && kiln_tensor_same_sizes(t, SELF)) { /* as -self lies */
    kiln_tensor *const operands[] = {SELF};
    t = kiln__composite_lay_pointwise(r, t, kiln_tensor_dtype(t), 1, operands);
  }
  return kiln__composite_reduced(r, t, kiln_arg_int(args, 2));
}
KILN_COMPOSITE(poisson_nll_loss) {
  kiln_tensor *x = SELF, *y = ARG(1), *loss;
  if (kiln_arg_bool(args, 2)) {
    loss = KILN_STEP(r, sub, T(KILN_STEP(r, exp, T(x))), T(KILN_STEP(r, mul, T(y), T(x))), I(1));
  } else {
    kiln_tensor *log = KILN_STEP(r, log, T(KILN_STEP(r, add, T(x), args[4], I(1))));
    loss = KILN_STEP(r, sub, T(x), T(KILN_STEP(r, mul, T(y), T(log))), I(1));
  }
  if (kiln_arg_bool(args, 3)) { /* Stirling's approximation where the target is above 1 */
    kiln_tensor *log = KILN_STEP(r, log, T(y));
    kiln_tensor *half = KILN_STEP(r, log, T(KILN_STEP(r, mul, T(y), F(2 * M_PI))));
    kiln_tensor *term = KILN_STEP(r, sub, T(KILN_STEP(r, mul, T(y), T(log))), T(y), I(1));
    term = KILN_STEP(r, add, T(term), T(KILN_STEP(r, mul, T(half), F(0.5))), I(1));
    term = KILN_STEP(r, masked_fill, T(term), T(KILN_STEP(r, le, T(y), I(1))), I(0));
    loss = KILN_STEP(r, add, T(loss), T(term), I(1));
  }
  return kiln__composite_reduced(r, loss, kiln_arg_int(args, 5));
}
