/* reduce_into.c: reductions of elements into indexed places.
 *
 * Elements are worked on as int64 or double and rounded once at the end. */
#include "runtime/kernels/composite.h"

typedef enum how { SUM, PROD, MEAN, AMAX, AMIN, HOW_UNKNOWN } how;
static how read_how(kiln__composite *r, kiln_str text) {
  static const char *const names[] = {"sum", "prod", "mean", "amax", "amin"};
  for (int i = 0; i < HOW_UNKNOWN; i++) {
    if (kiln_str_is(text, names[i])) return (how)i;
  }
  FAIL(r, "reduce argument must be either sum, prod, mean, amax or amin, got " KILN_STR_FMT,
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
static kiln_tensor *reduce_into(kiln__composite *r, kiln_tensor *self, int dim, kiln_tensor *index,
                                kiln_tensor *src, how h, bool include_self) {
  const kiln_dtype dtype = kiln_tensor_dtype(self), work = kiln__composite_work_dtype(dtype);
  const int rank = kiln_tensor_rank(self) ? kiln_tensor_rank(self) : 1;
  kiln_tensor *to = NULL, *from, *at, *count_tensor;
  int64_t strides[KILN_MAX_RANK], src_strides[KILN_MAX_RANK], place[KILN_MAX_RANK] = {0};
  int64_t *data =
      kiln__composite_new(r, work, kiln_tensor_rank(self), kiln_tensor_sizes(self), &to);
  const int64_t *values = kiln__composite_read(r, src, work, &from);
  const int64_t *indices = kiln__composite_read(r, index, KILN_DTYPE_I64, &at);
  int64_t *counts = kiln__composite_new(r, KILN_DTYPE_I64, 1, &self->numel, &count_tensor);
  if (r->status || !kiln__composite_ok(r, kiln_tensor_copy(to, self))) return NULL;
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
      return FAIL(r, "index %lld is out of bounds for dimension %d with size %lld",
                  (long long)indices[e], dim, (long long)limit);
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
      if (++place[d] < kiln__composite_size(index, d)) break;
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
  return kiln__composite_to(r, to, dtype);
}
/* self, dim, index, src, reduce, include_self */
KILN_COMPOSITE(scatter_reduce_two) {
  kiln_tensor *index = ARG(2), *src = ARG(3);
  const int rank = kiln_tensor_rank(SELF),
            dim = kiln__composite_dim(r, kiln_arg_int(args, 1), rank);
  const how h = r->status ? HOW_UNKNOWN : read_how(r, kiln_arg_str(args, 4));
  if (r->status || !kiln__composite_check_real(r, SELF)) return NULL;
  if (kiln_tensor_dtype(SELF) != kiln_tensor_dtype(src)) {
    return FAIL(r, "scatter(): Expected self.dtype to be equal to src.dtype");
  }
  if (index->numel == 0) return kiln__composite_copy(r, SELF);
  if (kiln_tensor_dtype(index) != KILN_DTYPE_I64 && kiln_tensor_dtype(index) != KILN_DTYPE_I32) {
    return FAIL(r, "scatter(): Expected dtype int32/int64 for index");
  }
  const int ranks = rank ? rank : 1, index_rank = kiln_tensor_rank(index),
            src_rank = kiln_tensor_rank(src);
  bool fits = (index_rank ? index_rank : 1) == ranks && (src_rank ? src_rank : 1) == ranks;
  for (int d = 0; fits && d < ranks; d++) {
    const int64_t n = kiln__composite_size(index, d);
    fits = n <= kiln__composite_size(src, d) && (d == dim || n <= kiln__composite_size(SELF, d));
  }
  if (!fits) {
    return FAIL(r,
                "Expected index to be smaller than self apart from dimension %d and "
                "to be smaller size than src",
                dim);
  }
  return reduce_into(r, SELF, dim, index, src, h, kiln_arg_bool(args, 5));
}
/* self, dim, index (one dimension), source, reduce, include_self */
KILN_COMPOSITE(index_reduce) {
  kiln_tensor *index = ARG(2), *src = ARG(3);
  const int rank = kiln_tensor_rank(SELF),
            dim = kiln__composite_dim(r, kiln_arg_int(args, 1), rank);
  const how h = r->status ? HOW_UNKNOWN : read_how(r, kiln_arg_str(args, 4));
  if (r->status || !kiln__composite_check_real(r, SELF)) return NULL;
  bool fits = kiln_tensor_rank(index) <= 1 && kiln_tensor_rank(src) == rank &&
              kiln_dtype_is_int(kiln_tensor_dtype(index), false) &&
              kiln_tensor_dtype(src) == kiln_tensor_dtype(SELF) &&
              kiln__composite_size(src, dim) == index->numel;
  for (int d = 0; fits && d < rank; d++) {
    fits = d == dim || kiln__composite_size(src, d) == kiln__composite_size(SELF, d);
  }
  if (!fits) {
    return FAIL(r, "index_reduce(): Number of indices should be equal to "
                   "source.size(dim), and the other dimensions those of self");
  }
  int64_t sizes[KILN_MAX_RANK];
  for (int d = 0; d < rank; d++) sizes[d] = d == dim ? index->numel : 1;
  index = kiln__composite_reshape(r, index, rank, sizes);
  index = KILN_STEP(r, expand, T(index), kiln__composite_ints(r, rank, kiln_tensor_sizes(src)),
                    B(false));
  return index ? reduce_into(r, SELF, dim, index, src, h, kiln_arg_bool(args, 5)) : NULL;
}
