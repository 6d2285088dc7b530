/* statistics.c: covariances and correlations, as recipes. */
#include "runtime/kernels/recipe.h"

#define SELF kiln_arg_tensor(args, 0)

/* self [n, m] or [m], correction, fweights, aweights */
KILN_RECIPE(cov) {
  kiln_tensor *x = SELF, *w = NULL;
  const int rank = kiln_tensor_rank(x);
  if (rank > 2) {
    KILN_RECIPE_FAIL(r,
                     "cov(): expected input to have two or fewer dimensions but got an input with "
                     "%d dimensions",
                     rank);
    return;
  }
  const int64_t n = rank == 0 ? 1 : kiln__recipe_size(x, -1),
                rows = rank == 2 ? kiln__recipe_size(x, 0) : 1;
  x = kiln__recipe_as_float(r, kiln__recipe_reshape(r, x, 2, (const int64_t[]){rows, n}));
  if (!kiln_arg_is_none(args, 2)) w = kiln_arg_tensor(args, 2);
  if (!kiln_arg_is_none(args, 3)) {
    w = w ? KILN_COOK(r, mul, T(w), args[3]) : kiln_arg_tensor(args, 3);
  }
  kiln_tensor *count, *mean, *weighted;
  if (w) {
    count = KILN_COOK(r, sum, T(w), NONE);
    weighted = KILN_COOK(r, mul, T(x), T(w));
    mean =
        KILN_COOK(r, div, T(KILN_COOK(r, sum_dim, T(weighted), INTS(1), B(true), NONE)), T(count));
  } else {
    count = KILN_COOK(r, full, kiln__recipe_no_list(r), I(n), I(KILN_DTYPE_I64), NONE, NONE, NONE);
    mean = KILN_COOK(r, div, T(KILN_COOK(r, sum_dim, T(x), INTS(1), B(true), NONE)), T(count));
  }
  kiln_tensor *norm;
  const kiln_ivalue correction = args[1];
  if (w && !kiln_arg_is_none(args, 3) && kiln__number(correction).f != 0) {
    kiln_tensor *wa = KILN_COOK(r, sum, T(KILN_COOK(r, mul, T(w), args[3])), NONE);
    wa = KILN_COOK(r, mul, T(KILN_COOK(r, div, T(wa), T(count))), correction);
    norm = KILN_COOK(r, sub, T(count), T(wa), I(1));
  } else {
    norm = KILN_COOK(r, sub, T(count), correction, I(1));
  }
  norm = KILN_COOK(r, clamp_min, T(norm), I(0));
  x = KILN_COOK(r, sub, T(x), T(mean), I(1));
  kiln_tensor *y = w ? KILN_COOK(r, mul, T(x), T(w)) : x;
  y = KILN_COOK(r, transpose, T(y), I(0), I(1));
  if (kiln_dtype_is_complex(kiln__recipe_dtype(y))) y = KILN_COOK(r, conj, T(y));
  kiln_tensor *c = KILN_COOK(r, mm, T(x), T(y));
  c = KILN_COOK(r, div, T(c), T(norm));
  if (rows == 1) c = kiln__recipe_reshape(r, c, 0, NULL);
  kiln__recipe_give(r, outs, c);
}
KILN_RECIPE(corrcoef) {
  kiln_tensor *c = KILN_COOK(r, cov, T(SELF), I(1), NONE, NONE);
  if (kiln__recipe_rank(c) == 0) {
    kiln__recipe_give(r, outs, KILN_COOK(r, div, T(c), T(c)));
    return;
  }
  const bool complex = kiln_dtype_is_complex(kiln__recipe_dtype(c));
  kiln_tensor *d = KILN_COOK(r, diagonal, T(c), I(0), I(0), I(1));
  if (complex) d = KILN_COOK(r, real, T(d));
  d = KILN_COOK(r, sqrt, T(d));
  c = KILN_COOK(r, div, T(c), T(KILN_COOK(r, unsqueeze, T(d), I(1))));
  c = KILN_COOK(r, div, T(c), T(KILN_COOK(r, unsqueeze, T(d), I(0))));
  if (complex) {
    c = KILN_COOK(r, complex, T(KILN_COOK(r, clamp, T(KILN_COOK(r, real, T(c))), I(-1), I(1))),
                  T(KILN_COOK(r, clamp, T(KILN_COOK(r, imag, T(c))), I(-1), I(1))));
  } else {
    c = KILN_COOK(r, clamp, T(c), I(-1), I(1));
  }
  kiln__recipe_give(r, outs, c);
}
