/* quantile.c: sorted rows and their quantiles. */
#include <math.h>

#include "runtime/kernels/composite.h"
#include "runtime/kernels/reduce/order.h"

/* -- Quantiles -- */

enum { FEW = 4 }; /* up to so many levels their neighbours are selected, else rows are sorted */

/* Elements `below` and `above`, which is that or the next, of the n of a row in their order. */
static void neighbours(const double *row, int64_t *order, int64_t n, int64_t below, int64_t above,
                       int64_t *left, double *lower, double *upper) {
  const kiln__keys keys = {.real = row, .left = left};
  for (int64_t i = 0; i < n; i++) order[i] = i;
  kiln__order_first(&keys, order, n, below + 1, false);
  *lower = *upper = row[order[below]];
  if (above == below) return;
  *upper = INFINITY;
  for (int64_t i = above; i < n; i++) {
    if (row[order[i]] < *upper) *upper = row[order[i]];
  }
}
/* self, q, dim, keepdim, interpolation; along the last dimension */
static kiln_tensor *quantile(kiln__composite *r, const kiln_ivalue *args, bool skip_nan) {
  const kiln_str way = kiln_arg_str(args, 4);
  kiln_tensor *t = SELF, *q = args[1].tag == KILN_TAG_TENSOR ? args[1].u.tensor : NULL, *result;
  kiln_tensor *levels = kiln__composite_operand(r, args[1], KILN_DTYPE_F64), *level_data, *dense,
              *places;
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const int rank = kiln_tensor_rank(t), q_rank = q ? kiln_tensor_rank(q) : 0;
  const bool flat = kiln_arg_is_none(args, 2), keep = kiln_arg_bool(args, 3);
  const int dim = flat ? 0 : kiln__composite_dim(r, kiln_arg_int(args, 2), rank);
  int64_t sizes[KILN_MAX_RANK + 1];
  int out_rank = 0;
  if (r->status) return NULL;
  if (t->numel == 0) FAIL(r, "quantile() input tensor must be non-empty");
  if (q_rank > 1) FAIL(r, "quantile() q must be a scalar or 1D tensor");
  if (dtype != KILN_DTYPE_F32 && dtype != KILN_DTYPE_F64) {
    FAIL(r, "quantile() input tensor must be either float or double dtype");
  }
  if (r->status) return NULL;
  for (int d = 0; d < rank; d++) {
    const bool gone = flat || d == dim;
    if (!gone || keep) sizes[out_rank++] = gone ? 1 : kiln_tensor_sizes(t)[d];
  }
  if (q_rank) sizes[out_rank++] = q->numel; /* side by side; they are moved to the front */
  const int64_t n = flat ? t->numel : kiln__composite_size(t, dim), rows = t->numel / n;
  KILN_ASSERT(levels);
  const bool few = levels->numel <= FEW;
  if (flat) {
    t = kiln__composite_flat(r, t);
  } else if (rank > 0) { /* the others keep their order */
    t = KILN_STEP(r, movedim, T(t), I(dim), I(-1));
  }
  if (!few) t = KILN_STEP(r, sort_stable, T(t), B(true), I(-1), B(false));
  const double *x = kiln__composite_read(r, t, KILN_DTYPE_F64, &dense);
  const double *level = kiln__composite_read(r, levels, KILN_DTYPE_F64, &level_data);
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, out_rank, sizes, &result);
  int64_t *order = kiln__composite_new(r, KILN_DTYPE_I64, 1, &n, &places);
  if (r->status) return NULL;
  int64_t left = KILN_BUDGET_ITEMS;
  const int64_t width = levels->numel;
  for (int64_t e = 0; e < width * rows && !kiln_budget_spent(&left, n); e++) {
    const double *row = x + e / width * n, p = level[e % width];
    int64_t count = n;
    if (!(p >= 0 && p <= 1)) {
      return FAIL(r,
                  args[1].tag == KILN_TAG_TENSOR
                      ? "quantile() q values must be in the range [0, 1]"
                      : "quantile() q must be in the range [0, 1] but got %g",
                  p);
    }
    for (int64_t i = 0; i < n; i++) count -= row[i] != row[i];
    if (count == 0 || (!skip_nan && count < n)) {
      to[e] = NAN;
      continue;
    }
    const double at = p * (double)(count - 1);
    const int64_t below = (int64_t)floor(at), above = (int64_t)ceil(at);
    const double rest = at - (double)below;
    double lower = row[below], upper = row[above];
    if (few) neighbours(row, order, n, below, above, &left, &lower, &upper);
    if (kiln_str_is(way, "lower"))
      to[e] = lower;
    else if (kiln_str_is(way, "higher"))
      to[e] = upper;
    else if (kiln_str_is(way, "nearest"))
      to[e] = (int64_t)nearbyint(at) == below ? lower : upper;
    else if (kiln_str_is(way, "midpoint"))
      to[e] = lower + (upper - lower) * (rest > 0 ? 0.5 : 0);
    else
      to[e] = lower + (upper - lower) * rest;
  }
  result = kiln__composite_to(r, result, dtype);
  return q_rank ? KILN_STEP(r, movedim, T(result), I(-1), I(0)) : result;
}
KILN_COMPOSITE(quantile) { return quantile(r, args, false); }
KILN_COMPOSITE(nanquantile) { return quantile(r, args, true); }

/* -- Elements -- */

KILN_COMPOSITE(msort) { return KILN_STEP(r, sort_stable, T(SELF), B(true), I(0), B(false)); }
