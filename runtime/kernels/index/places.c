/* places.c: indices as results: where elements are not zero, of triangles, repeated. */
#include "runtime/kernels/composite.h"

KILN_COMPOSITE(argwhere) { return KILN_STEP(r, nonzero, T(SELF)); }
/* self, size, fill_value: as many rows as asked for */
KILN_COMPOSITE(nonzero_static) {
  const int64_t size = kiln_arg_int(args, 1), rank = kiln_tensor_rank(SELF);
  if (size < 0) {
    return FAIL(r, "nonzero_static: 'size' must be an non-negative integer");
  }
  kiln_tensor *places = KILN_STEP(r, nonzero, T(SELF));
  const int64_t have = kiln__composite_size(places, 0);
  if (have >= size) return kiln__composite_copy(r, kiln__composite_narrow(r, places, 0, 0, size));
  kiln_tensor *to =
      KILN_STEP(r, full, INTS(size, rank), args[2], I(KILN_DTYPE_I64), NONE, NONE, NONE);
  kiln_tensor *part = kiln__composite_narrow(r, to, 0, 0, have);
  (void)KILN_STEP(r, copy_, T(part), T(places), B(false));
  return to;
}
/* rows, columns, offset, dtype: the places of a triangle, row by row */
static kiln_tensor *triangle(kiln__composite *r, const kiln_ivalue *args, bool upper) {
  const int64_t n = kiln_arg_int(args, 0), m = kiln_arg_int(args, 1), k = kiln_arg_int(args, 2);
  if (n < 0 || m < 0 || k > INT32_MAX || k < -INT32_MAX) {
    return FAIL(r, "row and col must be non-negative");
  }
  kiln_tensor *ones = KILN_STEP(r, ones, INTS(n, m), I(KILN_DTYPE_BOOL), NONE, NONE, NONE);
  ones = upper ? KILN_STEP(r, triu, T(ones), I(k)) : KILN_STEP(r, tril, T(ones), I(k));
  kiln_tensor *t = KILN_STEP(r, nonzero, T(ones));
  t = kiln__composite_copy(r, KILN_STEP(r, transpose, T(t), I(0), I(1)));
  return kiln__composite_to(r, t, kiln__arg_dtype_or(args, 3, KILN_DTYPE_I64));
}
KILN_COMPOSITE(tril_indices) { return triangle(r, args, false); }
KILN_COMPOSITE(triu_indices) { return triangle(r, args, true); }
/* self, repeats (a tensor), dim, output_size */
KILN_COMPOSITE(repeat_interleave_tensor) {
  kiln_tensor *t = SELF, *repeats = ARG(1), *counts, *index;
  int dim = 0;
  if (kiln_arg_is_none(args, 2)) {
    t = kiln__composite_flat(r, t);
  } else {
    dim = kiln__composite_dim(r, kiln_arg_int(args, 2), kiln_tensor_rank(t));
  }
  if (kiln_tensor_dtype(repeats) != KILN_DTYPE_I64 &&
      kiln_tensor_dtype(repeats) != KILN_DTYPE_I32) {
    FAIL(r, "repeats has to be Long or Int tensor");
  }
  const int64_t n = kiln__composite_size(t, dim),
                *count = kiln__composite_read(r, repeats, KILN_DTYPE_I64, &counts);
  const bool one = repeats->numel == 1;
  if (!r->status && !one && (kiln_tensor_rank(repeats) != 1 || repeats->numel != n)) {
    FAIL(r, "repeats must have the same size as input along dim");
  }
  if (r->status) return NULL;
  int64_t total = 0;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < n && !kiln_budget_spent(&left, 1); i++) {
    const int64_t c = count[one ? 0 : i];
    if (c < 0 || !kiln_checked_add_i64(total, c, &total)) {
      return FAIL(r, "repeats can not be negative");
    }
  }
  int64_t *to = kiln__composite_new(r, KILN_DTYPE_I64, 1, &total, &index);
  for (int64_t i = 0; to && i < n && !kiln_budget_spent(&left, 1); i++) {
    for (int64_t k = count[one ? 0 : i]; k > 0 && !kiln_budget_spent(&left, 1); k--) *to++ = i;
  }
  return KILN_STEP(r, index_select, T(t), I(dim), T(index));
}
KILN_COMPOSITE(repeat_interleave_counts) {
  kiln_tensor *range = KILN_STEP(r, arange, I(SELF->numel), NONE, NONE, NONE, NONE);
  if (kiln_tensor_rank(SELF) != 1) {
    FAIL(r, "repeat_interleave only accept 1D vector as repeat");
  }
  if (r->status) return NULL;
  return KILN_STEP(r, repeat_interleave_tensor, T(range), T(SELF), I(0), NONE);
}
