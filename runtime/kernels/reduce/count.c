/* count.c: how often numbers occur: bincount, histc. */
#include <math.h>

#include "runtime/kernels/composite.h"

/* self, weights, minlength */
KILN_COMPOSITE(bincount) {
  kiln_tensor *weights = kiln_arg_tensor_opt(args, 1), *at, *dense = NULL, *result;
  int64_t bins = kiln_arg_int(args, 2);
  if (!kiln_dtype_is_int(kiln_tensor_dtype(SELF), false)) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, kiln_tensor_dtype(SELF)));
  } else if (kiln_tensor_rank(SELF) != 1) {
    FAIL(r, "bincount only supports 1-d non-negative integral inputs.");
  } else if (bins < 0) {
    FAIL(r, "minlength should be >= 0");
  } else if (SELF->numel == 0) {
    weights = NULL; /* nor looked at */
  } else if (weights && (kiln_tensor_rank(weights) != 1 || weights->numel != SELF->numel)) {
    FAIL(r, "weights should be 1-d and have the same length as input");
  }
  if (r->status) return NULL;
  const int64_t *index = kiln__composite_read(r, SELF, KILN_DTYPE_I64, &at);
  const double *w = weights ? kiln__composite_read(r, weights, KILN_DTYPE_F64, &dense) : NULL;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; index && i < SELF->numel && !kiln_budget_spent(&left, 1); i++) {
    if (index[i] < 0 || index[i] == INT64_MAX) {
      return FAIL(r, "bincount only supports 1-d non-negative integral inputs.");
    }
    if (index[i] >= bins) bins = index[i] + 1;
  }
  void *to = kiln__composite_new(r, w ? KILN_DTYPE_F64 : KILN_DTYPE_I64, 1, &bins, &result);
  if (r->status) return NULL;
  kiln__zero(to, (size_t)bins * sizeof(int64_t));
  KILN_ASSERT(index || SELF->numel == 0);
  for (int64_t i = 0; i < SELF->numel && !kiln_budget_spent(&left, 1); i++) {
    if (w)
      ((double *)to)[index[i]] += w[i];
    else
      ((int64_t *)to)[index[i]]++;
  }
  const bool narrow = weights && kiln_tensor_dtype(weights) == KILN_DTYPE_F32;
  return narrow ? kiln__composite_to(r, result, KILN_DTYPE_F32) : result;
}
/* self, bins, min, max: equal bins; outside of the range is not counted */
KILN_COMPOSITE(histc) {
  const int64_t bins = kiln_arg_int(args, 1), n = SELF->numel;
  double low = kiln__number(args[2]).f, high = kiln__number(args[3]).f;
  kiln_tensor *dense, *result;
  if (!kiln_dtype_is_float(kiln_tensor_dtype(SELF))) {
    return kiln__composite_fail(r, kiln__not_implemented(r->call, kiln_tensor_dtype(SELF)));
  }
  const double *x = kiln__composite_read(r, SELF, KILN_DTYPE_F64, &dense);
  if (r->status) return NULL;
  if (low == high && n > 0) {
    low = high = x[0];
    for (int64_t i = 0, end; (end = kiln_budget_piece(i, n)) > i;) {
      for (; i < end; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
      }
    }
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  if (bins <= 0) {
    FAIL(r, "torch.histogram(): bins must be > 0, but got %lld for dimension 0", (long long)bins);
  } else if (!isfinite(low) || !isfinite(high)) {
    FAIL(r, "torch.histc: range of [%g, %g] is not finite", low, high);
  } else if (low > high) {
    FAIL(r, "torch.histc: max must be larger than min");
  }
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, 1, &bins, &result);
  if (!to) return NULL;
  kiln__zero(to, (size_t)bins * sizeof *to);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < n && !kiln_budget_spent(&left, 2); i++) {
    if (!(x[i] >= low && x[i] <= high)) continue;
    to[kiln__place_within((x[i] - low) / (high - low) * (double)bins, bins - 1)]++;
  }
  return kiln__composite_to(r, result, kiln_tensor_dtype(SELF));
}
