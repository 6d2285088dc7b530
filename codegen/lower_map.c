/* lower_map.c: index maps: sums and quotients of what moves with loops. */
#include "codegen/lower.h"

/* -- Sums -- */

/* Most steps are 0. */
static kiln_dim times(kiln_dims *dims, kiln_dim a, kiln_dim factor) {
  return a == 0 ? 0 : kiln_dim_product(dims, a, factor);
}
static kiln_dim plus(kiln_dims *dims, kiln_dim a, kiln_dim b) {
  return a == 0 ? b : b == 0 ? a : kiln_dim_plus(dims, a, b);
}

kiln__lower_dim kiln__lower_times(kiln__lowering *l, const kiln__lower_dim *index,
                                  kiln_dim factor) {
  kiln__lower_dim r = {.offset = times(l->fn->dims, index->offset, factor),
                       .check = index->check,
                       .times = times(l->fn->dims, index->times, factor)};
  for (int k = 0; k < KILN_LOOP_MAX_RANK; k++)
    r.steps[k] = times(l->fn->dims, index->steps[k], factor);
  return r;
}

/* What a check adds at most. */
static kiln_sum most_of_check(kiln__lowering *l, const kiln__lower_dim *index) {
  kiln_dims *dims = l->fn->dims;
  const kiln_sum extent = kiln_sum_of(dims, l->nest->body.data[index->check - 1].offset);
  const kiln_sum most = kiln_sum_minus(extent, kiln_sum_number(1));
  return kiln_sum_product(dims, most, kiln_sum_of(dims, index->times));
}
static int times_check(kiln__lowering *l, const kiln__lower_dim *index) {
  if (index->times == 1) return (int)index->check - 1;
  const int times = kiln__lower_size(l, KILN_DTYPE_I64, index->times);
  return kiln__lower_op(l, KILN_LOOP_mul, (int)index->check - 1, times, -1);
}
/* Two checks, that add to one place, as one, which holds if they do. */
static void join_checks(kiln__lowering *l, const kiln__lower_dim *a, const kiln__lower_dim *b,
                        kiln__lower_dim *sum) {
  const kiln_sum most = kiln_sum_plus(most_of_check(l, a), most_of_check(l, b));
  const kiln_dim extent = kiln_sum_dim(l->fn->dims, kiln_sum_plus(most, kiln_sum_number(1)));
  const int place = kiln__lower_op(l, KILN_LOOP_add, times_check(l, a), times_check(l, b), -1);
  if (!kiln_dim_is_known(extent)) (void)kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  if (l->reason != KILN_REASON_none) return;
  sum->check = kiln_loop_check(l->fn, l->nest, place, extent) + 1;
  sum->times = 1;
}

kiln__lower_dim kiln__lower_plus(kiln__lowering *l, const kiln__lower_dim *a,
                                 const kiln__lower_dim *b) {
  kiln__lower_dim r = {.offset = plus(l->fn->dims, a->offset, b->offset),
                       .check = a->check ? a->check : b->check,
                       .times = plus(l->fn->dims, a->times, b->times)};
  if (a->check && b->check && a->check != b->check) join_checks(l, a, b, &r);
  for (int k = 0; k < KILN_LOOP_MAX_RANK; k++)
    r.steps[k] = plus(l->fn->dims, a->steps[k], b->steps[k]);
  return r;
}

kiln__lower_dim kiln__lower_moved(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim more,
                                  kiln_dim less) {
  kiln_dims *dims = l->fn->dims;
  kiln__lower_dim r = *index;
  const kiln_sum sum = kiln_sum_plus(kiln_sum_of(dims, r.offset), kiln_sum_of(dims, more));
  r.offset = kiln_sum_dim(dims, kiln_sum_minus(sum, kiln_sum_of(dims, less)));
  return r;
}

kiln_dim kiln__lower_place(kiln__lowering *l, kiln_dim size, int64_t at) {
  kiln_dims *dims = l->fn->dims;
  if (at >= 0) return at;
  const kiln_sum sum = kiln_sum_plus(kiln_sum_of(dims, size), kiln_sum_number(at));
  return kiln_sum_is_natural(dims, sum) ? kiln_sum_dim(dims, sum) : KILN_DIM_UNKNOWN;
}

kiln__lower_map *kiln__lower_new_map(kiln__lowering *l, int rank) {
  kiln__lower_map *map = KILN_NEW(l->arena, kiln__lower_map);
  map->rank = rank;
  return map;
}
kiln__lower_map *kiln__lower_copied(kiln__lowering *l, const kiln__lower_map *map) {
  kiln__lower_map *copy = KILN_NEW(l->arena, kiln__lower_map);
  *copy = *map;
  return copy;
}

kiln__lower_map kiln__lower_renumbered(const kiln__lower_map *map, const int *to, int count) {
  kiln__lower_map r = {.rank = map->rank};
  for (int d = 0; d < map->rank; d++) {
    r.dims[d].offset = map->dims[d].offset;
    for (int k = 0; k < count; k++)
      if (map->dims[d].steps[k] != 0) r.dims[d].steps[to[k]] = map->dims[d].steps[k];
  }
  return r;
}

/* -- Ranges -- */

static bool is_less(const kiln_dims *dims, kiln_sum a, kiln_sum b) {
  const kiln_sum apart = kiln_sum_minus(kiln_sum_minus(b, a), kiln_sum_number(1));
  return apart.known && kiln_sum_is_natural(dims, apart);
}

/* The greatest value. */
static kiln_sum greatest(kiln__lowering *l, const kiln__lower_dim *index) {
  kiln_dims *dims = l->fn->dims;
  kiln_sum sum = kiln_sum_of(dims, index->offset);
  for (int k = 0; k < KILN_LOOP_MAX_RANK; k++) {
    if (index->steps[k] == 0) continue;
    const kiln_sum steps = kiln_sum_minus(kiln_sum_of(dims, l->extents[k]), kiln_sum_number(1));
    sum = kiln_sum_plus(sum, kiln_sum_product(dims, steps, kiln_sum_of(dims, index->steps[k])));
  }
  return index->check ? kiln_sum_plus(sum, most_of_check(l, index)) : sum;
}

/* The loop of the greatest step; -1: none moves it, or data does, or the steps are no numbers. How
 * many do. */
static int coarsest(const kiln__lowering *l, const kiln__lower_dim *index, int *out_count) {
  int found = -1;
  *out_count = 0;
  if (index->check) return -1;
  for (int k = 0; k < KILN_LOOP_MAX_RANK; k++) {
    if (index->steps[k] == 0 || l->extents[k] == 1) continue;
    if (!kiln_dim_is_number(index->steps[k])) return -1;
    if (found < 0 || index->steps[k] > index->steps[found]) found = k;
    ++*out_count;
  }
  return found;
}

static bool want(kiln__lowering *l, kiln__lower_want what) {
  if (l->reason == KILN_REASON_none) l->want = what;
  return kiln__lower_refuse(l, KILN_REASON_no_affine_map) == 0;
}

/* Iterations of loop k that stay below `end`, that loop alone moving the index: an expression that
 * is proved to part the loop so, of which each part may be none. Windows of 3 in steps of 2 over a
 * padded s0 reach its end after s0//2 of (s0 - 1)//2 + 1. */
static kiln_dim symbols_below(kiln__lowering *l, const kiln__lower_dim *index, kiln_sum gap,
                              int k) {
  kiln_dims *dims = l->fn->dims;
  const int64_t step = index->steps[k];
  const kiln_sum extent = kiln_sum_of(dims, l->extents[k]);
  const kiln_sum at = kiln_sum_divided(dims, kiln_sum_plus(gap, kiln_sum_number(step - 1)), step);
  const kiln_sum moved = kiln_sum_times(at, step);
  const kiln_sum inside = kiln_sum_plus(kiln_sum_minus(gap, moved), kiln_sum_number(step - 1));
  const kiln_sum before = kiln_sum_number(at.constant < 0 ? -at.constant : 0);
  const bool parts = at.known && kiln_sum_is_natural(dims, kiln_sum_minus(extent, at)) &&
                     kiln_sum_is_natural(dims, inside) &&
                     kiln_sum_is_natural(dims, kiln_sum_minus(moved, gap)) &&
                     kiln_dims_prove(dims, before, kiln_sum_plus(at, before));
  return parts ? kiln_sum_dim(dims, at) : KILN_DIM_UNKNOWN;
}

/* Iterations of loop k that stay below `end`, about: at least 1, not all. */
static kiln_dim iterations_below(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim end,
                                 int k, bool alone) {
  kiln_dims *dims = l->fn->dims;
  const kiln_sum extent = kiln_sum_of(dims, l->extents[k]);
  const kiln_sum gap = kiln_sum_minus(kiln_sum_of(dims, end), kiln_sum_of(dims, index->offset));
  const int64_t step = index->steps[k];
  if (alone && step == 1 && is_less(dims, kiln_sum_number(0), gap) && is_less(dims, gap, extent))
    return kiln_sum_dim(dims, gap);
  if (gap.count > 0 || extent.count > 0)
    return alone ? symbols_below(l, index, gap, k) : KILN_DIM_UNKNOWN;
  int64_t at = (gap.constant + (alone ? step - 1 : 0)) / step;
  if (at > extent.constant - 1) at = extent.constant - 1;
  return at < 1 ? 1 : at;
}

bool kiln__lower_is_behind(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim begin) {
  kiln_dims *dims = l->fn->dims;
  const kiln_sum over = kiln_sum_minus(kiln_sum_of(dims, index->offset), kiln_sum_of(dims, begin));
  return over.known && kiln_sum_is_natural(dims, over);
}

int kiln__lower_side(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim end) {
  kiln_dims *dims = l->fn->dims;
  const kiln_sum limit = kiln_sum_of(dims, end);
  int count;
  const kiln_sum most = greatest(l, index);
  if (is_less(dims, most, limit)) return -1;
  if (kiln__lower_is_behind(l, index, end)) return 1;
  const int k = coarsest(l, index, &count);
  if (count == 0 && !index->check) /* a guard may ask for it */
    (void)kiln_dims_prove(dims, kiln_sum_plus(most, kiln_sum_number(1)), limit);
  const kiln_dim at = k < 0 ? KILN_DIM_UNKNOWN : iterations_below(l, index, end, k, count == 1);
  const bool known = kiln_dim_is_known(at);
  (void)want(l, (kiln__lower_want){known ? KILN__WANT_CUT : KILN__WANT_NOTHING, k, at, 0});
  return 0;
}

/* -- Quotients -- */

/* a / n where that is a dimension; else KILN_DIM_UNKNOWN. */
static kiln_dim exact(kiln__lowering *l, kiln_dim a, kiln_dim n) {
  kiln_dims *dims = l->fn->dims;
  const kiln_sum q = kiln_sum_quotient(dims, kiln_sum_of(dims, a), kiln_sum_of(dims, n));
  return kiln_sum_is_natural(dims, q) ? kiln_sum_dim(dims, q) : KILN_DIM_UNKNOWN;
}

/* Asks for loops on which the remainder stays below `size`: of 24 elements in rows of 6 the loop is
 * one of 4 and one of 6; of elements 4 up to 15 the first two stand alone. */
static bool want_finer(kiln__lowering *l, const kiln__lower_dim *rest, kiln_dim outer,
                       kiln_dim size) {
  int count;
  const int k = coarsest(l, rest, &count);
  if (k < 0) return want(l, (kiln__lower_want){0});
  const kiln_dim step = rest->steps[k], extent = l->extents[k];
  const bool all = step == 1 && rest->offset == 0 && count == 1 && kiln_dim_is_known(outer);
  if (all && extent == kiln_dim_product(l->fn->dims, outer, size))
    return want(l, (kiln__lower_want){KILN__WANT_SPLIT, k, outer, size});
  if (!kiln_dim_is_number(extent) || !kiln_dim_is_number(size) || size % step != 0 ||
      !kiln_dim_is_number(rest->offset)) {
    return want(l, (kiln__lower_want){0});
  }
  const int64_t inner = size / step;
  kiln__lower_dim fine = *rest;
  fine.steps[k] = 0;
  const bool aligned = is_less(l->fn->dims, greatest(l, &fine), kiln_sum_of(l->fn->dims, step));
  if (aligned && extent % inner == 0)
    return want(l, (kiln__lower_want){KILN__WANT_SPLIT, k, extent / inner, inner});
  if (aligned) return want(l, (kiln__lower_want){KILN__WANT_CUT, k, extent - extent % inner, 0});
  (void)kiln__lower_side(l, rest, size);
  return false;
}

bool kiln__lower_divide(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim outer,
                        kiln_dim size, kiln__lower_dim *quotient, kiln__lower_dim *remainder) {
  kiln__lower_dim q = {0}, r = {0};
  kiln_dim whole = exact(l, index->offset, size);
  if (kiln_dim_is_number(index->offset) && kiln_dim_is_number(size)) whole = index->offset / size;
  if (!kiln_dim_is_known(whole)) whole = 0;
  q.offset = whole;
  r = kiln__lower_moved(l, index, 0, kiln_dim_product(l->fn->dims, whole, size));
  for (int k = 0; k < KILN_LOOP_MAX_RANK; k++) {
    if (index->steps[k] == 0) continue;
    whole = l->extents[k] == 1 ? 0 : exact(l, index->steps[k], size);
    if (!kiln_dim_is_known(whole)) continue;
    q.steps[k] = whole;
    r.steps[k] = 0;
  }
  whole = r.check ? exact(l, r.times, size) : KILN_DIM_UNKNOWN;
  if (kiln_dim_is_known(whole)) {
    q.check = r.check;
    q.times = whole;
    r.check = r.times = 0;
  }
  *quotient = q;
  *remainder = r;
  if (is_less(l->fn->dims, greatest(l, &r), kiln_sum_of(l->fn->dims, size))) return true;
  return want_finer(l, &r, outer, size);
}

/* -- Domains -- */

void kiln__domain_split(kiln_dims *dims, kiln__lower_domain *part, int k, kiln_dim outer,
                        kiln_dim inner) {
  int to[KILN_LOOP_MAX_RANK];
  for (int i = part->rank++; i > k + 1; i--) part->extents[i] = part->extents[i - 1];
  part->extents[k] = outer;
  part->extents[k + 1] = inner;
  for (int i = 0; i < part->rank - 1; i++) to[i] = i <= k ? i : i + 1;
  part->map = kiln__lower_renumbered(&part->map, to, part->rank - 1);
  for (int d = 0; d < part->map.rank; d++) {
    kiln_dim *steps = part->map.dims[d].steps;
    steps[k + 1] = steps[k];
    steps[k] = kiln_dim_product(dims, steps[k], inner);
  }
}

kiln__lower_domain kiln__domain_cut(kiln_dims *dims, kiln__lower_domain *part, int k, kiln_dim at) {
  kiln__lower_domain front = *part;
  front.extents[k] = at;
  part->extents[k] = kiln_sum_dim(
      dims, kiln_sum_minus(kiln_sum_of(dims, part->extents[k]), kiln_sum_of(dims, at)));
  for (int d = 0; d < part->map.rank; d++) {
    kiln__lower_dim *dim = &part->map.dims[d];
    dim->offset = kiln_dim_plus(dims, dim->offset, kiln_dim_product(dims, dim->steps[k], at));
  }
  return front;
}

kiln__lower_domain kiln__domain_of(kiln_dims *dims, const kiln_loop_buffer *b) {
  kiln__lower_domain domain = {.rank = b->rank, .map = {.rank = b->rank}};
  int order[KILN_LOOP_MAX_RANK];
  bool numbers = true;
  for (int d = 0; d < b->rank; d++) {
    numbers &= kiln_dim_is_number(b->strides[d]);
  }
  if (numbers)
    kiln_loop_memory_order(b, order);
  else if (!kiln_loop_dense_order(dims, b, order))
    for (int d = 0; d < b->rank; d++) order[d] = d;
  for (int k = 0; k < b->rank; k++) {
    const int d = order[k];
    domain.extents[k] = b->sizes[d];
    if (b->sizes[d] != 1) domain.map.dims[d] = kiln__lower_along(k); /* as what broadcasts has it */
  }
  return domain;
}
