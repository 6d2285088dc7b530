/* statistics.c: covariances and correlations, as composites. */
#include "runtime/kernels/composite.h"

/* self [n, m] or [m], correction, fweights, aweights */
KILN_COMPOSITE(cov) {
  kiln_tensor *x = SELF, *w = NULL;
  const int rank = kiln_tensor_rank(x);
  if (rank > 2) {
    return FAIL(
        r,
        "cov(): expected input to have two or fewer dimensions but got an input with %d dimensions",
        rank);
  }
  const int64_t n = rank == 0 ? 1 : kiln__composite_size(x, -1),
                rows = rank == 2 ? kiln__composite_size(x, 0) : 1;
  x = kiln__composite_as_float(r, kiln__composite_reshape(r, x, 2, (const int64_t[]){rows, n}));
  if (!kiln_arg_is_none(args, 2)) w = ARG(2);
  if (!kiln_arg_is_none(args, 3)) {
    w = w ? KILN_STEP(r, mul, T(w), args[3]) : ARG(3);
  }
  kiln_tensor *count, *mean, *weighted;
  if (w) {
    count = KILN_STEP(r, sum, T(w), NONE);
    weighted = KILN_STEP(r, mul, T(x), T(w));
    mean =
        KILN_STEP(r, div, T(KILN_STEP(r, sum_dim, T(weighted), INTS(1), B(true), NONE)), T(count));
  } else {
    count = kiln__composite_operand(r, I(n), KILN_DTYPE_I64);
    mean = KILN_STEP(r, div, T(KILN_STEP(r, sum_dim, T(x), INTS(1), B(true), NONE)), T(count));
  }
  kiln_tensor *norm;
  const kiln_ivalue correction = args[1];
  if (w && !kiln_arg_is_none(args, 3) && kiln__number(correction).f != 0) {
    kiln_tensor *wa = KILN_STEP(r, sum, T(KILN_STEP(r, mul, T(w), args[3])), NONE);
    wa = KILN_STEP(r, mul, T(KILN_STEP(r, div, T(wa), T(count))), correction);
    norm = KILN_STEP(r, sub, T(count), T(wa), I(1));
  } else {
    norm = KILN_STEP(r, sub, T(count), correction, I(1));
  }
  norm = KILN_STEP(r, clamp_min, T(norm), I(0));
  x = KILN_STEP(r, sub, T(x), T(mean), I(1));
  kiln_tensor *y = w ? KILN_STEP(r, mul, T(x), T(w)) : x;
  y = KILN_STEP(r, transpose, T(y), I(0), I(1));
  if (kiln_dtype_is_complex(kiln__composite_dtype(y))) y = KILN_STEP(r, conj, T(y));
  kiln_tensor *c = KILN_STEP(r, mm, T(x), T(y));
  c = KILN_STEP(r, div, T(c), T(norm));
  if (rows == 1) c = kiln__composite_reshape(r, c, 0, NULL);
  return c;
}
KILN_COMPOSITE(corrcoef) {
  kiln_tensor *c = KILN_STEP(r, cov, T(SELF), I(1), NONE, NONE);
  if (kiln__composite_rank(c) == 0) return KILN_STEP(r, div, T(c), T(c));
  const bool complex = kiln_dtype_is_complex(kiln__composite_dtype(c));
  kiln_tensor *d = KILN_STEP(r, diagonal, T(c), I(0), I(0), I(1));
  if (complex) d = KILN_STEP(r, real, T(d));
  d = KILN_STEP(r, sqrt, T(d));
  c = KILN_STEP(r, div, T(c), T(KILN_STEP(r, unsqueeze, T(d), I(1))));
  c = KILN_STEP(r, div, T(c), T(KILN_STEP(r, unsqueeze, T(d), I(0))));
  if (complex) {
    c = KILN_STEP(r, complex, T(KILN_STEP(r, clamp, T(KILN_STEP(r, real, T(c))), I(-1), I(1))),
                  T(KILN_STEP(r, clamp, T(KILN_STEP(r, imag, T(c))), I(-1), I(1))));
  } else {
    c = KILN_STEP(r, clamp, T(c), I(-1), I(1));
  }
  return c;
}
