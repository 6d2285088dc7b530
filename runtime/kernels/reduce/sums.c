/* sums.c: sums and differences of other kernels, as composites. */
#include <string.h>

#include "runtime/kernels/composite.h"

/* -- Sums -- */

static kiln_tensor *without_nan(kiln__composite *r, kiln_tensor *t) {
  return KILN_STEP(r, masked_fill, T(t), T(KILN_STEP(r, isnan, T(t))), I(0));
}
KILN_COMPOSITE(nansum) {
  const kiln_ivalue list = kiln_arg_is_none(args, 1) ? kiln__composite_no_list(r) : args[1];
  return KILN_STEP(r, sum_dim, T(without_nan(r, SELF)), list, args[2], args[3]);
}
KILN_COMPOSITE(nanmean) {
  const kiln_ivalue list = kiln_arg_is_none(args, 1) ? kiln__composite_no_list(r) : args[1];
  if (!kiln_dtype_is_float(kiln_tensor_dtype(SELF)) &&
      !kiln_dtype_is_complex(kiln_tensor_dtype(SELF))) {
    FAIL(r,
         "nanmean(): expected input to have floating point or complex dtype but got "
         "%s",
         kiln_dtype_ir_name(kiln_tensor_dtype(SELF)));
  }
  kiln_tensor *fine = KILN_STEP(r, logical_not, T(KILN_STEP(r, isnan, T(SELF))));
  kiln_tensor *count = KILN_STEP(r, sum_dim, T(fine), list, args[2], NONE);
  kiln_tensor *sum = KILN_STEP(r, sum_dim, T(without_nan(r, SELF)), list, args[2], args[3]);
  return KILN_STEP(r, div, T(sum), T(count));
}
KILN_COMPOSITE(sum_to_size) {
  int64_t sizes[KILN_MAX_RANK], over[KILN_MAX_RANK];
  int rank, count = 0;
  const int have = kiln_tensor_rank(SELF);
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 1, sizes, &rank))) return NULL;
  bool fits = rank <= have;
  for (int d = 0; fits && d < have; d++) {
    const int64_t n = kiln_tensor_sizes(SELF)[d];
    if (d < have - rank || (sizes[d - (have - rank)] == 1 && n != 1))
      over[count++] = d;
    else
      fits = sizes[d - (have - rank)] == n;
  }
  if (!fits) return FAIL(r, "size {} is not expandable to size of the tensor");
  kiln_tensor *t = rank ? SELF : KILN_STEP(r, sum, T(SELF), NONE);
  if (rank && count) {
    t = KILN_STEP(r, sum_dim, T(t), kiln__composite_ints(r, count, over), B(true), NONE);
    t = kiln__composite_reshape(r, t, rank, sizes);
  }
  return t;
}
/* The mean of neighbours times their distance: y, dx or x, dim */
static kiln_tensor *strips(kiln__composite *r, kiln_tensor *y, kiln_tensor *x, kiln_ivalue dx,
                           int64_t wanted) {
  const int dim = kiln__composite_dim(r, wanted, kiln__composite_rank(y));
  if (kiln__composite_rank(y) == 0) {
    return FAIL(r, "Dimension specified as %lld but tensor has no dimensions", (long long)wanted);
  }
  const int64_t n = kiln__composite_size(y, dim) > 0 ? kiln__composite_size(y, dim) - 1 : 0;
  kiln_tensor *low = kiln__composite_narrow(r, y, dim, 0, n);
  kiln_tensor *high = kiln__composite_narrow(r, y, dim, kiln__composite_size(y, dim) - n, n);
  kiln_tensor *sum = KILN_STEP(r, add, T(low), T(high), I(1));
  if (!x) return KILN_STEP(r, div, T(KILN_STEP(r, mul, T(sum), dx)), F(2));
  /* x has y's rank, or is along the dimension alone. */
  const int at =
      kiln__composite_rank(x) == 1 ? 0 : dim - kiln__composite_rank(y) + kiln__composite_rank(x);
  if (at < 0 || kiln__composite_size(x, at) != kiln__composite_size(y, dim)) {
    return FAIL(r, "trapezoid: There must be one `x` value for each sample point");
  }
  kiln_tensor *step = KILN_STEP(r, sub, T(kiln__composite_narrow(r, x, at, n ? 1 : 0, n)),
                                T(kiln__composite_narrow(r, x, at, 0, n)), I(1));
  if (kiln__composite_rank(x) == 1 && step) {
    int64_t sizes[KILN_MAX_RANK];
    for (int d = 0; d < kiln__composite_rank(y); d++) sizes[d] = d == dim ? n : 1;
    step = kiln__composite_reshape(r, step, kiln__composite_rank(y), sizes);
  }
  return KILN_STEP(r, div, T(KILN_STEP(r, mul, T(sum), T(step))), F(2));
}
static kiln_tensor *trapezoid(kiln__composite *r, kiln_tensor *y, kiln_tensor *x, kiln_ivalue dx,
                              int64_t dim) {
  const int at = kiln__composite_dim(r, dim, kiln__composite_rank(y));
  const bool none = !r->status && kiln__composite_rank(y) && kiln__composite_size(y, at) == 0;
  /* Of no samples x is not looked at, and the dtype stays. */
  kiln_tensor *t = none ? y : strips(r, y, x, dx, dim);
  kiln_ivalue dtype = none ? I(kiln_tensor_dtype(y)) : NONE;
  return KILN_STEP(r, sum_dim, T(t), INTS(dim), B(false), dtype);
}
KILN_COMPOSITE(trapezoid_x) { return trapezoid(r, SELF, ARG(1), NONE, kiln_arg_int(args, 2)); }
KILN_COMPOSITE(trapezoid_dx) { return trapezoid(r, SELF, NULL, args[1], kiln_arg_int(args, 2)); }
KILN_COMPOSITE(cumulative_trapezoid_x) {
  kiln_tensor *t = strips(r, SELF, ARG(1), NONE, kiln_arg_int(args, 2));
  return KILN_STEP(r, cumsum, T(t), args[2], NONE);
}
KILN_COMPOSITE(cumulative_trapezoid_dx) {
  kiln_tensor *t = strips(r, SELF, NULL, args[1], kiln_arg_int(args, 2));
  return KILN_STEP(r, cumsum, T(t), args[2], NONE);
}

/* -- Differences -- */

/* self, n, dim, prepend, append */
KILN_COMPOSITE(diff) {
  kiln_tensor *t = SELF, *parts[3];
  int64_t n = kiln_arg_int(args, 1);
  int count = 0;
  const int rank = kiln_tensor_rank(t), dim = kiln__composite_dim(r, kiln_arg_int(args, 2), rank);
  if (!r->status && rank == 0) {
    FAIL(r, "diff expects input to be at least one-dimensional");
  }
  if (!r->status && n < 0) {
    FAIL(r, "order must be non-negative but got %lld", (long long)n);
  }
  if (r->status) return NULL;
  if (n == 0) { /* what would be put around is not looked at */
    return kiln__composite_copy(r, t);
  }
  if (!kiln_arg_is_none(args, 3)) parts[count++] = ARG(3);
  parts[count++] = t;
  if (!kiln_arg_is_none(args, 4)) parts[count++] = ARG(4);
  if (count > 1) t = KILN_STEP(r, cat, kiln__composite_tensors(r, count, parts), I(dim));
  if (n > kiln__composite_size(t, dim)) n = kiln__composite_size(t, dim);
  if (n == 0) t = kiln__composite_copy(r, t);
  for (int64_t i = 0; i < n && !r->status; i++) {
    const int64_t rest = kiln__composite_size(t, dim) > 0 ? kiln__composite_size(t, dim) - 1 : 0;
    kiln_tensor *high = kiln__composite_narrow(r, t, dim, rest ? 1 : 0, rest);
    kiln_tensor *low = kiln__composite_narrow(r, t, dim, 0, rest);
    t = kiln__composite_dtype(t) == KILN_DTYPE_BOOL ? KILN_STEP(r, ne, T(high), T(low))
                                                    : KILN_STEP(r, sub, T(high), T(low), I(1));
  }
  return t;
}
