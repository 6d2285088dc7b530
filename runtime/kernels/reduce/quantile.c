/* quantile.c: sorted rows and their quantiles. */
#include <math.h>

#include "runtime/kernels/composite.h"

/* -- Under a mask: indices are clamped into the dimensions, in their order -- */

enum { PLACE = 16 }; /* what finding a place takes, in items of a budget */

/* -- Quantiles -- */

/* self, q, dim, keepdim, interpolation; along the last dimension after a sort */
static kiln_tensor *quantile(kiln__composite *r, const kiln_ivalue *args, bool skip_nan) {
  const kiln_str way = kiln_arg_str(args, 4);
  kiln_tensor *t = SELF, *q = args[1].tag == KILN_TAG_TENSOR ? args[1].u.tensor : NULL, *result;
  kiln_tensor *levels = kiln__composite_operand(r, args[1], KILN_DTYPE_F64), *level_data, *dense;
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
  if (q_rank) sizes[out_rank++] = q->numel;
  for (int d = 0; d < rank; d++) {
    const bool gone = flat || d == dim;
    if (!gone || keep) sizes[out_rank++] = gone ? 1 : kiln_tensor_sizes(t)[d];
  }
  const int64_t n = flat ? t->numel : kiln__composite_size(t, dim), rows = t->numel / n;
  if (flat) {
    t = kiln__composite_flat(r, t);
  } else if (rank > 0) { /* the others keep their order */
    t = KILN_STEP(r, movedim, T(t), I(dim), I(-1));
  }
  t = KILN_STEP(r, sort_stable, T(t), B(true), I(-1), B(false));
  const double *x = kiln__composite_read(r, t, KILN_DTYPE_F64, &dense);
  const double *level = kiln__composite_read(r, levels, KILN_DTYPE_F64, &level_data);
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, out_rank, sizes, &result);
  if (r->status) return NULL;
  KILN_ASSERT(levels);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t e = 0; e < levels->numel * rows && !kiln_budget_spent(&left, PLACE); e++) {
    const double *row = x + e % rows * n, p = level[e / rows];
    int64_t count = n;
    if (!(p >= 0 && p <= 1)) {
      return FAIL(r,
                  args[1].tag == KILN_TAG_TENSOR
                      ? "quantile() q values must be in the range [0, 1]"
                      : "quantile() q must be in the range [0, 1] but got %g",
                  p);
    }
    while (count > 0 && row[count - 1] != row[count - 1]) count--;
    if (count == 0 || (!skip_nan && count < n)) {
      to[e] = NAN;
      continue;
    }
    const double at = p * (double)(count - 1);
    const int64_t below = (int64_t)floor(at), above = (int64_t)ceil(at);
    const double rest = at - (double)below;
    if (kiln_str_is(way, "lower"))
      to[e] = row[below];
    else if (kiln_str_is(way, "higher"))
      to[e] = row[above];
    else if (kiln_str_is(way, "nearest"))
      to[e] = row[(int64_t)nearbyint(at)];
    else if (kiln_str_is(way, "midpoint"))
      to[e] = row[below] + (row[above] - row[below]) * (rest > 0 ? 0.5 : 0);
    else
      to[e] = row[below] + (row[above] - row[below]) * rest;
  }
  return kiln__composite_to(r, result, dtype);
}
KILN_COMPOSITE(quantile) { return quantile(r, args, false); }
KILN_COMPOSITE(nanquantile) { return quantile(r, args, true); }

/* -- Elements -- */

KILN_COMPOSITE(msort) { return KILN_STEP(r, sort_stable, T(SELF), B(true), I(0), B(false)); }
