/* compose_tensor.c: rearrangements and differences, as recipes of other kernels. */
#include "runtime/kernels/recipe.h"

/* -- Differences -- */

/* self, n, dim, prepend, append */
KILN_RECIPE(diff) {
  kiln_tensor *t = kiln_arg_tensor(args, 0), *parts[3];
  int64_t n = kiln_arg_int(args, 1);
  int count = 0;
  const int rank = kiln_tensor_rank(t), dim = kiln__recipe_dim(r, kiln_arg_int(args, 2), rank);
  if (!r->status && rank == 0) {
    KILN_RECIPE_FAIL(r, "diff expects input to be at least one-dimensional");
  }
  if (!r->status && n < 0) {
    KILN_RECIPE_FAIL(r, "order must be non-negative but got %lld", (long long)n);
  }
  if (r->status) return;
  if (n == 0) { /* what would be put around is not looked at */
    kiln__recipe_give(r, outs, kiln__recipe_copy(r, t));
    return;
  }
  if (!kiln_arg_is_none(args, 3)) parts[count++] = kiln_arg_tensor(args, 3);
  parts[count++] = t;
  if (!kiln_arg_is_none(args, 4)) parts[count++] = kiln_arg_tensor(args, 4);
  if (count > 1) t = KILN_COOK(r, cat, kiln__recipe_tensors(r, count, parts), I(dim));
  if (n > kiln__recipe_size(t, dim)) n = kiln__recipe_size(t, dim);
  if (n == 0) t = kiln__recipe_copy(r, t);
  for (int64_t i = 0; i < n && !r->status; i++) {
    const int64_t rest = kiln__recipe_size(t, dim) > 0 ? kiln__recipe_size(t, dim) - 1 : 0;
    kiln_tensor *high = kiln__recipe_narrow(r, t, dim, rest ? 1 : 0, rest);
    kiln_tensor *low = kiln__recipe_narrow(r, t, dim, 0, rest);
    t = kiln__recipe_dtype(t) == KILN_DTYPE_BOOL ? KILN_COOK(r, ne, T(high), T(low))
                                                 : KILN_COOK(r, sub, T(high), T(low), I(1));
  }
  kiln__recipe_give(r, outs, t);
}
