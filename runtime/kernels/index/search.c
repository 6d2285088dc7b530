/* search.c: searches in sorted rows and in sets: searchsorted, bucketize, isin. */
#include <math.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/composite.h"

/* Numbers that are compared: in their common dtype, then as int64 or double. */
typedef struct compared {
  kiln_tensor *a, *b; /* contiguous */
  bool whole;
} compared;
static compared compare_as(kiln__composite *r, kiln_ivalue a, kiln_ivalue b) {
  const kiln_pw both = {.in_count = 2, .in = {kiln_pw_arg_of(a), kiln_pw_arg_of(b)}};
  const kiln_dtype common = kiln_pw_promote(&both, 0), work = kiln__composite_work_dtype(common);
  kiln_tensor *t[2];
  for (int i = 0; i < 2; i++) {
    t[i] = kiln__composite_operand(r, i ? b : a, common);
    if (r->status || !kiln__composite_check_real(r, t[i])) return (compared){0};
    t[i] = kiln__composite_to(r, kiln__composite_to(r, t[i], common), work);
  }
  if (r->status) return (compared){0};
  return (compared){t[0], t[1], work == KILN_DTYPE_I64};
}
enum { SEARCH = 16 }; /* what such a search takes, in items of a budget */
/* First place in n ascending elements from `from` on whose element is not less than x's element i
 * (right: is greater); `order` may be NULL. What is compared with NaN comes
 * before. */
static int64_t bound(const compared *c, int64_t from, const int64_t *order, int64_t n, int64_t i,
                     bool right) {
  const int64_t *whole = kiln_tensor_data(c->a), *x = kiln_tensor_data(c->b); /* or doubles */
  const double *real = kiln_tensor_data(c->a), *real_x = kiln_tensor_data(c->b);
  int64_t low = 0, high = n;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2, at = from + (order ? order[middle] : middle);
    const bool after = c->whole ? (right ? whole[at] > x[i] : whole[at] >= x[i])
                                : (right ? real[at] > real_x[i] : real[at] >= real_x[i]);
    if (after)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}
static kiln_tensor *search(kiln__composite *r, kiln_tensor *sorted, kiln_ivalue values,
                           kiln_tensor *sorter, bool narrow, bool right) {
  kiln_tensor *order_tensor, *result;
  const compared c = compare_as(r, kiln_of_tensor(sorted), values);
  if (r->status || !c.b) return NULL;
  const int rank = kiln_tensor_rank(sorted), out_rank = kiln_tensor_rank(c.b);
  bool fits = rank >= 1 && (rank == 1 || rank == out_rank);
  for (int d = 0; fits && rank > 1 && d + 1 < rank; d++) {
    fits = kiln_tensor_sizes(sorted)[d] == kiln_tensor_sizes(c.b)[d];
  }
  if (!fits || (sorter && (kiln_tensor_rank(sorter) != rank || sorter->numel != sorted->numel))) {
    return FAIL(r, "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
                   "dimensions of boundaries tensor and input value tensor must match");
  }
  const int64_t *order =
      sorter ? kiln__composite_read(r, sorter, KILN_DTYPE_I64, &order_tensor) : NULL;
  int64_t *to = kiln__composite_new(r, KILN_DTYPE_I64, out_rank, kiln_tensor_sizes(c.b), &result);
  if (r->status) return NULL;
  const int64_t n = kiln__composite_size(sorted, -1),
                m = rank > 1 ? kiln__composite_size(c.b, -1) : 0;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; order && i < sorter->numel && !kiln_budget_spent(&left, 1); i++) {
    if (order[i] < 0 || order[i] >= n) {
      return FAIL(r, "torch.searchsorted(): sorter index out of range");
    }
  }
  if (!kiln__composite_goes_on(r)) return NULL; /* not all of the sorter was seen */
  for (int64_t i = 0; i < c.b->numel && !kiln_budget_spent(&left, SEARCH); i++) {
    const int64_t row = rank > 1 ? i / m : 0;
    to[i] = bound(&c, row * n, order ? order + row * n : NULL, n, i, right);
  }
  return narrow ? kiln__composite_to(r, result, KILN_DTYPE_I32) : result;
}
/* sorted, values, out_int32, right, side, sorter */
KILN_COMPOSITE(searchsorted) {
  bool right = kiln_arg_bool(args, 3);
  if (!kiln_arg_is_none(args, 4)) {
    const bool side = kiln_str_is(kiln_arg_str(args, 4), "right");
    if ((!side && !kiln_str_is(kiln_arg_str(args, 4), "left")) || (right && !side)) {
      return FAIL(r, "torch.searchsorted(): side and right can't be set to "
                     "opposites, and side can only be 'left' or 'right'");
    }
    right = side;
  }
  return search(r, SELF, args[1], kiln_arg_tensor_opt(args, 5), kiln_arg_bool(args, 2), right);
}
/* values, boundaries, out_int32, right */
KILN_COMPOSITE(bucketize) {
  kiln_tensor *boundaries = ARG(1);
  if (kiln_tensor_rank(boundaries) != 1) {
    return FAIL(r, "boundaries tensor must be 1 dimension, but got dim(%d)",
                kiln_tensor_rank(boundaries));
  }
  return search(r, boundaries, args[0], NULL, kiln_arg_bool(args, 2), kiln_arg_bool(args, 3));
}
/* elements, test_elements, assume_unique, invert */
KILN_COMPOSITE(isin) {
  for (int i = 0; i < 2; i++) {
    if (args[i].tag != KILN_TAG_TENSOR || kiln_tensor_dtype(ARG(i)) != KILN_DTYPE_BOOL) continue;
    return FAIL(r, "Unsupported input type encountered for isin(): Bool");
  }
  compared c = compare_as(r, args[1], args[0]);
  if (r->status || !c.b) return NULL;
  int64_t n = kiln__composite_numel(c.a);
  c.a = kiln__composite_flat(r, c.a);
  kiln_tensor *sorted[2], *found;
  KILN_STEP_MANY(r, sort_stable, 2, sorted, T(c.a), B(true), I(0), B(false));
  if (r->status) return NULL;
  c.a = sorted[0];
  while (!c.whole && n > 0 && isnan(kiln__element_f64(c.a, n - 1))) n--; /* NaN is in nothing */
  bool *to = kiln__composite_new(r, KILN_DTYPE_BOOL, kiln_tensor_rank(c.b), kiln_tensor_sizes(c.b),
                                 &found);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; to && i < c.b->numel && !kiln_budget_spent(&left, SEARCH); i++) {
    const int64_t at = bound(&c, 0, NULL, n, i, false);
    const bool same = at < n && (c.whole ? kiln__element_i64(c.a, at) == kiln__element_i64(c.b, i)
                                         : kiln__element_f64(c.a, at) == kiln__element_f64(c.b, i));
    to[i] = same != kiln_arg_bool(args, 3);
  }
  return found;
}
