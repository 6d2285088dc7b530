/* compose_index.c: reductions into indexed places, searches in order, counts.
 *
 * Elements are worked on as int64 or double and rounded once at the end. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/iter.h"
#include "runtime/kernels/recipe.h"

#define SELF kiln_arg_tensor(args, 0)
#define ARG(i) kiln_arg_tensor(args, i)

static kiln_dtype work_dtype(kiln_dtype dtype) {
  return kiln_dtype_is_int(dtype, true) ? KILN_DTYPE_I64 : KILN_DTYPE_F64;
}
static bool check_real(kiln__recipe *r, const kiln_tensor *t) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  return kiln__recipe_ok(r, kiln_dtype_is_complex(dtype) ? kiln__not_implemented(r->call, dtype)
                                                         : kiln__check_dtype(r->call, dtype));
}

/* -- Reductions into places -- */

typedef enum how { SUM, PROD, MEAN, AMAX, AMIN, HOW_UNKNOWN } how;
static how read_how(kiln__recipe *r, kiln_str text) {
  static const char *const names[] = {"sum", "prod", "mean", "amax", "amin"};
  for (int i = 0; i < HOW_UNKNOWN; i++) {
    if (kiln_str_is(text, names[i])) return (how)i;
  }
  KILN_RECIPE_FAIL(
      r, "reduce argument must be either sum, prod, mean, amax or amin, got " KILN_STR_FMT,
      KILN_STR_ARG(text));
  return HOW_UNKNOWN;
}
static void combine_whole(how h, int64_t *to, int64_t x) {
  if (h == PROD)
    *to = (int64_t)((uint64_t)*to * (uint64_t)x);
  else if (h == AMAX)
    *to = x > *to ? x : *to;
  else if (h == AMIN)
    *to = x < *to ? x : *to;
  else
    *to = (int64_t)((uint64_t)*to + (uint64_t)x);
}
static void combine_real(how h, double *to, double x) {
  if (h == PROD)
    *to *= x;
  else if (h == AMAX)
    *to = x > *to || x != x ? x : *to;
  else if (h == AMIN)
    *to = x < *to || x != x ? x : *to;
  else
    *to += x;
}
/* index and src have a rank with self; index says where along dim each element of src goes, and
 * only as much of src as index has is read. */
static void reduce_into(kiln__recipe *r, kiln_tensor *self, int dim, kiln_tensor *index,
                        kiln_tensor *src, how h, bool include_self, kiln_ivalue *outs) {
  const kiln_dtype dtype = kiln_tensor_dtype(self), work = work_dtype(dtype);
  const int rank = kiln_tensor_rank(self) ? kiln_tensor_rank(self) : 1;
  kiln_tensor *to = NULL, *from, *at, *count_tensor;
  int64_t strides[KILN_MAX_RANK], src_strides[KILN_MAX_RANK], place[KILN_MAX_RANK] = {0};
  int64_t *data = kiln__recipe_new(r, work, kiln_tensor_rank(self), kiln_tensor_sizes(self), &to);
  const int64_t *values = kiln__recipe_read(r, src, work, &from);
  const int64_t *indices = kiln__recipe_read(r, index, KILN_DTYPE_I64, &at);
  int64_t *counts = kiln__recipe_new(r, KILN_DTYPE_I64, 1, &self->numel, &count_tensor);
  if (r->status || !kiln__recipe_ok(r, kiln_tensor_copy(to, self))) return;
  for (int64_t i = 0, end; (end = kiln_budget_piece(i, self->numel)) > i;) {
    for (; i < end; i++) counts[i] = include_self;
  }
  kiln_strides_contiguous(kiln_tensor_rank(to), kiln_tensor_sizes(to), strides);
  kiln_strides_contiguous(kiln_tensor_rank(from), kiln_tensor_sizes(from), src_strides);
  if (kiln_tensor_rank(to) == 0) strides[0] = 1;
  if (kiln_tensor_rank(from) == 0) src_strides[0] = 1;
  const int64_t limit = kiln_tensor_rank(self) ? kiln_tensor_sizes(self)[dim] : 1;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t e = 0; e < index->numel && !kiln_budget_spent(&left, 4); e++) {
    int64_t mine = 0, theirs = 0;
    if (indices[e] < 0 || indices[e] >= limit) {
      KILN_RECIPE_FAIL(r, "index %lld is out of bounds for dimension %d with size %lld",
                       (long long)indices[e], dim, (long long)limit);
      return;
    }
    for (int d = 0; d < rank; d++) {
      mine += (d == dim ? indices[e] : place[d]) * strides[d];
      theirs += place[d] * src_strides[d];
    }
    if (counts[mine]++ == 0)
      data[mine] = values[theirs]; /* 8 bytes of either kind */
    else if (work == KILN_DTYPE_I64)
      combine_whole(h, &data[mine], values[theirs]);
    else
      combine_real(h, (double *)(void *)data + mine,
                   ((const double *)(const void *)values)[theirs]);
    for (int d = rank - 1; d >= 0; d--) {
      if (++place[d] < kiln__recipe_size(index, d)) break;
      place[d] = 0;
    }
  }
  for (int64_t i = 0; h == MEAN && i < self->numel && !kiln_budget_spent(&left, 2); i++) {
    if (counts[i] < 2) continue;
    if (work == KILN_DTYPE_I64) {
      const int64_t q = data[i] / counts[i];
      data[i] = data[i] % counts[i] < 0 ? q - 1 : q;
    } else {
      ((double *)(void *)data)[i] /= (double)counts[i];
    }
  }
  kiln__recipe_give(r, outs, kiln__recipe_to(r, to, dtype));
}
/* self, dim, index, src, reduce, include_self */
KILN_RECIPE(scatter_reduce_two) {
  kiln_tensor *index = kiln_arg_tensor(args, 2), *src = kiln_arg_tensor(args, 3);
  const int rank = kiln_tensor_rank(SELF), dim = kiln__recipe_dim(r, kiln_arg_int(args, 1), rank);
  const how h = r->status ? HOW_UNKNOWN : read_how(r, kiln_arg_str(args, 4));
  if (r->status || !check_real(r, SELF)) return;
  if (kiln_tensor_dtype(SELF) != kiln_tensor_dtype(src)) {
    KILN_RECIPE_FAIL(r, "scatter(): Expected self.dtype to be equal to src.dtype");
    return;
  }
  if (index->numel == 0) {
    kiln__recipe_give(r, outs, kiln__recipe_copy(r, SELF));
    return;
  }
  if (kiln_tensor_dtype(index) != KILN_DTYPE_I64 && kiln_tensor_dtype(index) != KILN_DTYPE_I32) {
    KILN_RECIPE_FAIL(r, "scatter(): Expected dtype int32/int64 for index");
    return;
  }
  const int ranks = rank ? rank : 1, index_rank = kiln_tensor_rank(index),
            src_rank = kiln_tensor_rank(src);
  bool fits = (index_rank ? index_rank : 1) == ranks && (src_rank ? src_rank : 1) == ranks;
  for (int d = 0; fits && d < ranks; d++) {
    const int64_t n = kiln__recipe_size(index, d);
    fits = n <= kiln__recipe_size(src, d) && (d == dim || n <= kiln__recipe_size(SELF, d));
  }
  if (!fits) {
    KILN_RECIPE_FAIL(r,
                     "Expected index to be smaller than self apart from dimension %d and to be "
                     "smaller size than src",
                     dim);
    return;
  }
  reduce_into(r, SELF, dim, index, src, h, kiln_arg_bool(args, 5), outs);
}
/* self, dim, index (one dimension), source, reduce, include_self */
KILN_RECIPE(index_reduce) {
  kiln_tensor *index = kiln_arg_tensor(args, 2), *src = kiln_arg_tensor(args, 3);
  const int rank = kiln_tensor_rank(SELF), dim = kiln__recipe_dim(r, kiln_arg_int(args, 1), rank);
  const how h = r->status ? HOW_UNKNOWN : read_how(r, kiln_arg_str(args, 4));
  if (r->status || !check_real(r, SELF)) return;
  bool fits = kiln_tensor_rank(index) <= 1 && kiln_tensor_rank(src) == rank &&
              kiln_dtype_is_int(kiln_tensor_dtype(index), false) &&
              kiln_tensor_dtype(src) == kiln_tensor_dtype(SELF) &&
              kiln__recipe_size(src, dim) == index->numel;
  for (int d = 0; fits && d < rank; d++) {
    fits = d == dim || kiln__recipe_size(src, d) == kiln__recipe_size(SELF, d);
  }
  if (!fits) {
    KILN_RECIPE_FAIL(r,
                     "index_reduce(): Number of indices should be equal to source.size(dim), and "
                     "the other dimensions those of self");
    return;
  }
  int64_t sizes[KILN_MAX_RANK];
  for (int d = 0; d < rank; d++) sizes[d] = d == dim ? index->numel : 1;
  index = kiln__recipe_reshape(r, index, rank, sizes);
  index =
      KILN_COOK(r, expand, T(index), kiln__recipe_ints(r, rank, kiln_tensor_sizes(src)), B(false));
  if (index) reduce_into(r, SELF, dim, index, src, h, kiln_arg_bool(args, 5), outs);
}

/* -- Elements by their place in row-major order -- */

KILN_RECIPE(take) {
  kiln_tensor *index = kiln_arg_tensor(args, 1), *at, *safe;
  const int64_t n = SELF->numel;
  if (kiln_tensor_dtype(index) != KILN_DTYPE_I64) {
    KILN_RECIPE_FAIL(r, "take(): Expected a long tensor for index, but got %s",
                     kiln_dtype_ir_name(kiln_tensor_dtype(index)));
    return;
  }
  const int64_t *from = kiln__recipe_read(r, index, KILN_DTYPE_I64, &at);
  int64_t *to = kiln__recipe_new(r, KILN_DTYPE_I64, 1, &index->numel, &safe);
  if (r->status) return;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < index->numel && !kiln_budget_spent(&left, 1); i++) {
    if (from[i] < -n || from[i] >= n) {
      KILN_RECIPE_FAIL(r, "out of range: tried to access index %lld on a tensor of %lld elements.",
                       (long long)from[i], (long long)n);
      return;
    }
    to[i] = from[i] < 0 ? from[i] + n : from[i];
  }
  kiln_tensor *flat = kiln__recipe_reshape(r, SELF, 1, &n);
  flat = KILN_COOK(r, index_select, T(flat), I(0), T(safe));
  kiln__recipe_give(
      r, outs, kiln__recipe_reshape(r, flat, kiln_tensor_rank(index), kiln_tensor_sizes(index)));
}
/* self, index, source, accumulate */
KILN_RECIPE(put) {
  kiln_tensor *index = kiln_arg_tensor(args, 1), *src = kiln_arg_tensor(args, 2);
  const int64_t n = SELF->numel, m = index->numel;
  if (kiln_tensor_dtype(index) != KILN_DTYPE_I64) {
    KILN_RECIPE_FAIL(r, "put_(): Expected a long tensor for index, but got %s",
                     kiln_dtype_ir_name(kiln_tensor_dtype(index)));
  } else if (kiln_tensor_dtype(src) != kiln_tensor_dtype(SELF)) {
    KILN_RECIPE_FAIL(r, "put_(): self and source expected to have the same dtype");
  } else if (src->numel != m) {
    KILN_RECIPE_FAIL(r, "put_(): Expected source and index to have the same number of elements");
  }
  if (r->status) return;
  kiln_tensor *flat = kiln__recipe_reshape(r, kiln__recipe_copy(r, SELF), 1, &n);
  index = kiln__recipe_reshape(r, index, 1, &m);
  src = kiln__recipe_reshape(r, src, 1, &m);
  if (r->status) return;
  const kiln_ivalue list = kiln__recipe_tensors(r, 1, &index);
  flat = KILN_COOK(r, index_put, T(flat), list, T(src), args[3]);
  kiln__recipe_give(r, outs,
                    kiln__recipe_reshape(r, flat, kiln_tensor_rank(SELF), kiln_tensor_sizes(SELF)));
}
/* `to` and the mask, of its sizes, are contiguous. */
static void scatter_masked(kiln__recipe *r, kiln_tensor *to, kiln_tensor *mask, kiln_tensor *src) {
  kiln_tensor *flags, *from;
  int64_t next = 0;
  const uint8_t *flag = kiln__recipe_read(r, mask, KILN_DTYPE_BOOL, &flags);
  const char *data = kiln__recipe_read(r, src, kiln__recipe_dtype(src), &from);
  void *target = NULL;
  if (r->status || !kiln__recipe_ok(r, kiln_tensor_writable_data(to, &target))) return;
  const size_t item = kiln_tensor_item_size(to);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < to->numel && !kiln_budget_spent(&left, 1); i++) {
    if (!flag[i]) continue;
    if (next == src->numel) {
      KILN_RECIPE_FAIL(r, "masked_scatter: Number of elements of source < number of ones in mask");
      return;
    }
    memcpy((char *)target + (size_t)i * item, data + (size_t)next++ * item, item);
  }
}
/* self, mask, source: elements of source where the mask holds, in row-major order. (Versions before
 * 2 went in the order of self's memory where self was written.) */
KILN_RECIPE(masked_scatter) {
  kiln_tensor *mask = kiln_arg_tensor(args, 1), *src = kiln_arg_tensor(args, 2);
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  if (kiln_tensor_dtype(src) != kiln_tensor_dtype(SELF)) {
    KILN_RECIPE_FAIL(r,
                     "masked_scatter: expected self and source to have same dtypes but got %s "
                     "and %s",
                     kiln_dtype_ir_name(kiln_tensor_dtype(SELF)),
                     kiln_dtype_ir_name(kiln_tensor_dtype(src)));
    return;
  }
  if (kiln_tensor_dtype(mask) != KILN_DTYPE_BOOL && kiln_tensor_dtype(mask) != KILN_DTYPE_U8) {
    KILN_RECIPE_FAIL(r, "masked_scatter: expected BoolTensor or ByteTensor for mask");
    return;
  }
  const bool in_place = kiln__dest(outs) && r->call->kernel && r->call->kernel->dest_arg == 0;
  if (in_place) {
    rank = kiln_tensor_rank(SELF);
    memcpy(sizes, kiln_tensor_sizes(SELF), sizeof *sizes * (size_t)rank);
  } else if (!kiln__recipe_ok(r, kiln_broadcast(kiln_tensor_rank(SELF), kiln_tensor_sizes(SELF),
                                                kiln_tensor_rank(mask), kiln_tensor_sizes(mask),
                                                &rank, sizes))) {
    return;
  }
  const kiln_ivalue wide = kiln__recipe_ints(r, rank, sizes);
  kiln_tensor *to = KILN_COOK(r, expand, T(SELF), wide, B(false));
  mask = KILN_COOK(r, expand, T(mask), wide, B(false));
  to = kiln__recipe_copy(r, to);
  if (to) scatter_masked(r, to, mask, src);
  kiln__recipe_give(r, outs, to);
}

/* -- Searches -- */

/* Numbers that are compared: in their common dtype, then as int64 or double. */
typedef struct compared {
  kiln_tensor *a, *b; /* contiguous */
  bool whole;
} compared;
static compared compare_as(kiln__recipe *r, kiln_ivalue a, kiln_ivalue b) {
  const kiln_pw both = {.in_count = 2, .in = {kiln_pw_arg_of(a), kiln_pw_arg_of(b)}};
  const kiln_dtype common = kiln_pw_promote(&both, 0), work = work_dtype(common);
  kiln_ivalue v[2] = {a, b};
  for (int i = 0; i < 2; i++) {
    if (v[i].tag != KILN_TAG_TENSOR) {
      v[i] = T(KILN_COOK(r, full, kiln__recipe_no_list(r), v[i], I(common), NONE, NONE, NONE));
    }
    if (r->status || !check_real(r, v[i].u.tensor)) return (compared){0};
    v[i] = T(kiln__recipe_to(r, kiln__recipe_to(r, v[i].u.tensor, common), work));
  }
  if (r->status) return (compared){0};
  return (compared){v[0].u.tensor, v[1].u.tensor, work == KILN_DTYPE_I64};
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
static void search(kiln__recipe *r, kiln_tensor *sorted, kiln_ivalue values, kiln_tensor *sorter,
                   bool narrow, bool right, kiln_ivalue *outs) {
  kiln_tensor *order_tensor, *result;
  const compared c = compare_as(r, kiln_of_tensor(sorted), values);
  if (r->status || !c.b) return;
  const int rank = kiln_tensor_rank(sorted), out_rank = kiln_tensor_rank(c.b);
  bool fits = rank >= 1 && (rank == 1 || rank == out_rank);
  for (int d = 0; fits && rank > 1 && d + 1 < rank; d++) {
    fits = kiln_tensor_sizes(sorted)[d] == kiln_tensor_sizes(c.b)[d];
  }
  if (!fits || (sorter && (kiln_tensor_rank(sorter) != rank || sorter->numel != sorted->numel))) {
    KILN_RECIPE_FAIL(
        r, "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
           "dimensions of boundaries tensor and input value tensor must match");
    return;
  }
  const int64_t *order =
      sorter ? kiln__recipe_read(r, sorter, KILN_DTYPE_I64, &order_tensor) : NULL;
  int64_t *to = kiln__recipe_new(r, KILN_DTYPE_I64, out_rank, kiln_tensor_sizes(c.b), &result);
  if (r->status) return;
  const int64_t n = kiln__recipe_size(sorted, -1), m = rank > 1 ? kiln__recipe_size(c.b, -1) : 0;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; order && i < sorter->numel && !kiln_budget_spent(&left, 1); i++) {
    if (order[i] < 0 || order[i] >= n) {
      KILN_RECIPE_FAIL(r, "torch.searchsorted(): sorter index out of range");
      return;
    }
  }
  if (!kiln__recipe_goes_on(r)) return; /* not all of the sorter was seen */
  for (int64_t i = 0; i < c.b->numel && !kiln_budget_spent(&left, SEARCH); i++) {
    const int64_t row = rank > 1 ? i / m : 0;
    to[i] = bound(&c, row * n, order ? order + row * n : NULL, n, i, right);
  }
  kiln__recipe_give(r, outs, narrow ? kiln__recipe_to(r, result, KILN_DTYPE_I32) : result);
}
/* sorted, values, out_int32, right, side, sorter */
KILN_RECIPE(searchsorted) {
  bool right = kiln_arg_bool(args, 3);
  if (!kiln_arg_is_none(args, 4)) {
    const bool side = kiln_str_is(kiln_arg_str(args, 4), "right");
    if ((!side && !kiln_str_is(kiln_arg_str(args, 4), "left")) || (right && !side)) {
      KILN_RECIPE_FAIL(
          r, "torch.searchsorted(): side and right can't be set to opposites, and side can only be "
             "'left' or 'right'");
      return;
    }
    right = side;
  }
  search(r, SELF, args[1], kiln_arg_tensor_opt(args, 5), kiln_arg_bool(args, 2), right, outs);
}
/* values, boundaries, out_int32, right */
KILN_RECIPE(bucketize) {
  kiln_tensor *boundaries = kiln_arg_tensor(args, 1);
  if (kiln_tensor_rank(boundaries) != 1) {
    KILN_RECIPE_FAIL(r, "boundaries tensor must be 1 dimension, but got dim(%d)",
                     kiln_tensor_rank(boundaries));
    return;
  }
  search(r, boundaries, args[0], NULL, kiln_arg_bool(args, 2), kiln_arg_bool(args, 3), outs);
}
/* elements, test_elements, assume_unique, invert */
KILN_RECIPE(isin) {
  for (int i = 0; i < 2; i++) {
    if (args[i].tag != KILN_TAG_TENSOR || kiln_tensor_dtype(ARG(i)) != KILN_DTYPE_BOOL) continue;
    KILN_RECIPE_FAIL(r, "Unsupported input type encountered for isin(): Bool");
    return;
  }
  compared c = compare_as(r, args[1], args[0]);
  if (r->status || !c.b) return;
  int64_t n = kiln__recipe_numel(c.a);
  c.a = kiln__recipe_reshape(r, c.a, 1, &n);
  kiln_tensor *sorted[2], *found;
  kiln__recipe_cook_many(r, kiln__kernel_sort_stable,
                         (const kiln_ivalue[]){T(c.a), B(true), I(0), B(false)}, 2, sorted);
  if (r->status) return;
  c.a = sorted[0];
  while (!c.whole && n > 0 && isnan(kiln__element_f64(c.a, n - 1))) n--; /* NaN is in nothing */
  bool *to =
      kiln__recipe_new(r, KILN_DTYPE_BOOL, kiln_tensor_rank(c.b), kiln_tensor_sizes(c.b), &found);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; to && i < c.b->numel && !kiln_budget_spent(&left, SEARCH); i++) {
    const int64_t at = bound(&c, 0, NULL, n, i, false);
    const bool same = at < n && (c.whole ? kiln__element_i64(c.a, at) == kiln__element_i64(c.b, i)
                                         : kiln__element_f64(c.a, at) == kiln__element_f64(c.b, i));
    to[i] = same != kiln_arg_bool(args, 3);
  }
  kiln__recipe_give(r, outs, found);
}

/* -- Counts -- */

/* self, weights, minlength */
KILN_RECIPE(bincount) {
  kiln_tensor *weights = kiln_arg_tensor_opt(args, 1), *at, *dense = NULL, *result;
  int64_t bins = kiln_arg_int(args, 2);
  if (!kiln_dtype_is_int(kiln_tensor_dtype(SELF), false)) {
    (void)kiln__recipe_ok(r, kiln__not_implemented(r->call, kiln_tensor_dtype(SELF)));
  } else if (kiln_tensor_rank(SELF) != 1) {
    KILN_RECIPE_FAIL(r, "bincount only supports 1-d non-negative integral inputs.");
  } else if (bins < 0) {
    KILN_RECIPE_FAIL(r, "minlength should be >= 0");
  } else if (SELF->numel == 0) {
    weights = NULL; /* nor looked at */
  } else if (weights && (kiln_tensor_rank(weights) != 1 || weights->numel != SELF->numel)) {
    KILN_RECIPE_FAIL(r, "weights should be 1-d and have the same length as input");
  }
  if (r->status) return;
  const int64_t *index = kiln__recipe_read(r, SELF, KILN_DTYPE_I64, &at);
  const double *w = weights ? kiln__recipe_read(r, weights, KILN_DTYPE_F64, &dense) : NULL;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; index && i < SELF->numel && !kiln_budget_spent(&left, 1); i++) {
    if (index[i] < 0 || index[i] == INT64_MAX) {
      KILN_RECIPE_FAIL(r, "bincount only supports 1-d non-negative integral inputs.");
      return;
    }
    if (index[i] >= bins) bins = index[i] + 1;
  }
  void *to = kiln__recipe_new(r, w ? KILN_DTYPE_F64 : KILN_DTYPE_I64, 1, &bins, &result);
  if (r->status) return;
  kiln__zero(to, (size_t)bins * sizeof(int64_t));
  KILN_ASSERT(index || SELF->numel == 0);
  for (int64_t i = 0; i < SELF->numel && !kiln_budget_spent(&left, 1); i++) {
    if (w)
      ((double *)to)[index[i]] += w[i];
    else
      ((int64_t *)to)[index[i]]++;
  }
  const bool narrow = weights && kiln_tensor_dtype(weights) == KILN_DTYPE_F32;
  kiln__recipe_give(r, outs, narrow ? kiln__recipe_to(r, result, KILN_DTYPE_F32) : result);
}
/* self, bins, min, max: equal bins; outside of the range is not counted */
KILN_RECIPE(histc) {
  const int64_t bins = kiln_arg_int(args, 1), n = SELF->numel;
  double low = kiln__number(args[2]).f, high = kiln__number(args[3]).f;
  kiln_tensor *dense, *result;
  if (!kiln_dtype_is_float(kiln_tensor_dtype(SELF))) {
    (void)kiln__recipe_ok(r, kiln__not_implemented(r->call, kiln_tensor_dtype(SELF)));
    return;
  }
  const double *x = kiln__recipe_read(r, SELF, KILN_DTYPE_F64, &dense);
  if (r->status) return;
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
    KILN_RECIPE_FAIL(r, "torch.histogram(): bins must be > 0, but got %lld for dimension 0",
                     (long long)bins);
  } else if (!isfinite(low) || !isfinite(high)) {
    KILN_RECIPE_FAIL(r, "torch.histc: range of [%g, %g] is not finite", low, high);
  } else if (low > high) {
    KILN_RECIPE_FAIL(r, "torch.histc: max must be larger than min");
  }
  double *to = kiln__recipe_new(r, KILN_DTYPE_F64, 1, &bins, &result);
  if (!to) return;
  kiln__zero(to, (size_t)bins * sizeof *to);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < n && !kiln_budget_spent(&left, 2); i++) {
    if (!(x[i] >= low && x[i] <= high)) continue;
    const int64_t at = (int64_t)((x[i] - low) / (high - low) * (double)bins);
    to[at < bins ? at : bins - 1]++;
  }
  kiln__recipe_give(r, outs, kiln__recipe_to(r, result, kiln_tensor_dtype(SELF)));
}

/* -- Under a mask: indices are clamped into the dimensions, in their order -- */

static kiln_ivalue clamped_indices(kiln__recipe *r, const kiln_tensor *t, const kiln_list *from) {
  const kiln_ivalue found = kiln__recipe_tensors(r, 0, NULL);
  for (int64_t i = 0; !r->status && i < from->count; i++) {
    const int64_t n = kiln__recipe_size(t, (int)(i < kiln_tensor_rank(t) ? i : 0));
    kiln_ivalue index = from->items[i];
    if (index.tag == KILN_TAG_TENSOR) index = T(KILN_COOK(r, clamp, index, I(-n), I(n - 1)));
    if (!r->status)
      (void)kiln__recipe_ok(r, kiln_list_push(found.u.list, kiln_ivalue_retain(index)));
  }
  return found;
}
/* self, mask, indices, fill */
KILN_RECIPE(_unsafe_masked_index) {
  kiln_tensor *hidden = KILN_COOK(r, logical_not, args[1]);
  const kiln_ivalue indices = clamped_indices(r, SELF, kiln_arg_list(args, 2));
  kiln_tensor *found = KILN_COOK(r, index, args[0], indices);
  kiln__recipe_give(r, outs, KILN_COOK(r, masked_fill, T(found), T(hidden), args[3]));
}
/* self, mask, indices, values */
KILN_RECIPE(_unsafe_masked_index_put_accumulate) {
  kiln_tensor *hidden = KILN_COOK(r, logical_not, args[1]);
  kiln_tensor *added = KILN_COOK(r, masked_fill, args[3], T(hidden), I(0));
  if (SELF->numel == 0) {
    kiln__recipe_give(r, outs, kiln__recipe_copy(r, SELF));
    return;
  }
  const kiln_ivalue indices = clamped_indices(r, SELF, kiln_arg_list(args, 2));
  kiln__recipe_give(r, outs, KILN_COOK(r, index_put, args[0], indices, T(added), B(true)));
}
static kiln_tensor *value_of(kiln__recipe *r, kiln_ivalue v) {
  if (v.tag == KILN_TAG_TENSOR) return v.u.tensor;
  return KILN_COOK(r, full, kiln__recipe_no_list(r), v, I(KILN_DTYPE_F64), NONE, NONE, NONE);
}

/* -- Quantiles -- */

/* self, q, dim, keepdim, interpolation; along the last dimension after a sort */
static void quantile(kiln__recipe *r, const kiln_ivalue *args, bool skip_nan, kiln_ivalue *outs) {
  const kiln_str way = kiln_arg_str(args, 4);
  kiln_tensor *t = SELF, *q = args[1].tag == KILN_TAG_TENSOR ? args[1].u.tensor : NULL, *result;
  kiln_tensor *levels = value_of(r, args[1]), *level_data, *dense;
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const int rank = kiln_tensor_rank(t), q_rank = q ? kiln_tensor_rank(q) : 0;
  const bool flat = kiln_arg_is_none(args, 2), keep = kiln_arg_bool(args, 3);
  const int dim = flat ? 0 : kiln__recipe_dim(r, kiln_arg_int(args, 2), rank);
  int64_t sizes[KILN_MAX_RANK + 1];
  int out_rank = 0;
  if (r->status) return;
  if (t->numel == 0) KILN_RECIPE_FAIL(r, "quantile() input tensor must be non-empty");
  if (q_rank > 1) KILN_RECIPE_FAIL(r, "quantile() q must be a scalar or 1D tensor");
  if (dtype != KILN_DTYPE_F32 && dtype != KILN_DTYPE_F64) {
    KILN_RECIPE_FAIL(r, "quantile() input tensor must be either float or double dtype");
  }
  if (r->status) return;
  if (q_rank) sizes[out_rank++] = q->numel;
  for (int d = 0; d < rank; d++) {
    const bool gone = flat || d == dim;
    if (!gone || keep) sizes[out_rank++] = gone ? 1 : kiln_tensor_sizes(t)[d];
  }
  const int64_t n = flat ? t->numel : kiln__recipe_size(t, dim), rows = t->numel / n;
  t = flat ? kiln__recipe_reshape(r, t, 1, &t->numel)
           : KILN_COOK(r, transpose, T(t), I(dim), I(-1));
  if (!flat && dim != rank - 1) { /* the others keep their order */
    int64_t order[KILN_MAX_RANK];
    int at = 0;
    for (int d = 0; d < rank; d++) {
      if (d != dim) order[at++] = d;
    }
    order[at] = dim;
    t = KILN_COOK(r, permute, T(SELF), kiln__recipe_ints(r, rank, order));
  }
  t = KILN_COOK(r, sort_stable, T(t), B(true), I(-1), B(false));
  const double *x = kiln__recipe_read(r, t, KILN_DTYPE_F64, &dense);
  const double *level = kiln__recipe_read(r, levels, KILN_DTYPE_F64, &level_data);
  double *to = kiln__recipe_new(r, KILN_DTYPE_F64, out_rank, sizes, &result);
  if (r->status) return;
  KILN_ASSERT(levels);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t e = 0; e < levels->numel * rows && !kiln_budget_spent(&left, SEARCH); e++) {
    const double *row = x + e % rows * n, p = level[e / rows];
    int64_t count = n;
    if (!(p >= 0 && p <= 1)) {
      KILN_RECIPE_FAIL(r,
                       args[1].tag == KILN_TAG_TENSOR
                           ? "quantile() q values must be in the range [0, 1]"
                           : "quantile() q must be in the range [0, 1] but got %g",
                       p);
      return;
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
  kiln__recipe_give(r, outs, kiln__recipe_to(r, result, dtype));
}
KILN_RECIPE(quantile) { quantile(r, args, false, outs); }
KILN_RECIPE(nanquantile) { quantile(r, args, true, outs); }

/* -- Convolution with its padding as a word -- */

kiln_status *kiln__kernel_conv1d(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);
kiln_status *kiln__kernel_conv2d(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);
kiln_status *kiln__kernel_conv3d(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);
KILN_KERNEL(_convolution_mode) {
  switch (kiln_tensor_rank(kiln_arg_tensor(args, 1))) {
    case 3: return kiln__kernel_conv1d(call, args, outs);
    case 4: return kiln__kernel_conv2d(call, args, outs);
    case 5: return kiln__kernel_conv3d(call, args, outs);
    default: return KILN_OP_FAIL("convolution expects a weight of 3 to 5 dimensions");
  }
}
