/* slices.c: whole slices along a dimension, written at places that an index has: index_add,
 * index_copy, index_fill, and scatter_add with one index for each slice. */
#include "runtime/kernels/index/index.h"

#include <string.h>

#include "runtime/kernels/factory/factory.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/shape/view.h"
#include "runtime/strides.h"

/* -- Of dense tensors: rows of neighbours -- */

/* Row i of `from`, for i < count, goes to row at[i] of `to`; of each of `outer` parts. */
typedef struct dense_rows {
  kiln_tensor *to;
  const kiln_tensor *from;
  const int64_t *at;
  int64_t outer, inner, count, limit, given; /* elements of a row; rows of a part: used, of `to`,
                                                of `from` */
} dense_rows;

/* False: they lie otherwise, or where they would be read after they were written. */
static bool find_rows(kiln_tensor *to, int dim, const kiln_tensor *from, dense_rows *out) {
  const int rank = kiln_tensor_rank(to);
  const int64_t *sizes = kiln_tensor_sizes(to), *others = kiln_tensor_sizes(from);
  if (rank == 0 || kiln_tensor_rank(from) != rank || !kiln_tensor_is_contiguous(to) ||
      !kiln_tensor_is_contiguous(from) || to->storage == from->storage)
    return false;
  *out = (dense_rows){
      .to = to, .from = from, .outer = 1, .inner = 1, .limit = sizes[dim], .given = others[dim]};
  for (int d = 0; d < rank; d++) {
    if (d != dim && sizes[d] != others[d]) return false;
    if (d < dim) out->outer *= sizes[d];
    if (d > dim) out->inner *= sizes[d];
  }
  return true;
}

/* The first index that is out of bounds; `count`: there is none. */
static int64_t find_wrong(const int64_t *at, int64_t count, int64_t limit) {
  int64_t i = 0;
  while (i < count && (uint64_t)at[i] < (uint64_t)limit) i++;
  return i;
}

/* The loop that adds elements as they are stored; NULL: they are computed in another type. */
static kiln_pw_loop adding_loop(const kiln_call *call, kiln_dtype dtype) {
  const int ctype = kiln__native_ctypes[(unsigned)dtype & 31] - 1;
  return ctype < 0 ? NULL : call->dispatch->loops[ctype][KILN_PW_add_alpha];
}
/* All places are within bounds. `loop` NULL: they are copied. */
static void write_rows(const dense_rows *r, kiln_pw_loop loop, kiln_pw_params *params) {
  const int64_t item = (int64_t)kiln_tensor_item_size(r->to), row = r->inner * item;
  char *to = (char *)(uintptr_t)kiln_tensor_data(r->to);
  char *from = (char *)(uintptr_t)kiln_tensor_data(r->from);
  const int64_t strides[] = {item, item, item};
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t part = 0; part < r->outer; part++, to += r->limit * row, from += r->given * row) {
    for (int64_t i = 0; i < r->count; i++) {
      if (kiln_budget_spent(&left, 4 + r->inner / 4)) return;
      char *data[] = {to + r->at[i] * row, to + r->at[i] * row, from + i * row};
      if (loop)
        loop(data, strides, r->inner, params);
      else
        memcpy(data[0], data[2], (size_t)row);
    }
  }
}

/* The index, whose other dimensions all say the same, as a vector; it is the caller's. */
static kiln_status *vector_of(kiln_call *call, kiln_tensor *index, int dim, kiln_tensor **out) {
  const int64_t size = kiln_tensor_sizes(index)[dim], stride = kiln_tensor_strides(index)[dim];
  kiln_tensor *view;
  KILN_TRY(kiln_tensor_create_on(call->env->mem, &call->cache, index->storage,
                                 kiln_tensor_dtype(index), 1, &size, &stride, index->offset,
                                 &view));
  kiln_status *status = kiln__as_index(call, view, out);
  kiln_tensor_release_to(&call->cache, view);
  return status;
}
kiln_status *kiln__add_expanded(kiln_call *call, kiln_tensor *to, int dim, kiln_tensor *index,
                                const kiln_tensor *from, bool *out_added) {
  const kiln_dtype dtype = kiln_tensor_dtype(index);
  const kiln_pw_loop loop = adding_loop(call, kiln_tensor_dtype(to));
  kiln_pw pw = {.functor = KILN_PW_add_alpha, .common = kiln_tensor_dtype(to)};
  dense_rows rows;
  kiln_tensor *places;
  *out_added = false;
  if (!loop || (dtype != KILN_DTYPE_I64 && dtype != KILN_DTYPE_I32) ||
      kiln_tensor_rank(index) != kiln_tensor_rank(to) || index->numel == 0 ||
      !find_rows(to, dim, from, &rows))
    return NULL;
  for (int d = 0; d < kiln_tensor_rank(index); d++) {
    const int64_t size = kiln_tensor_sizes(index)[d];
    if (d == dim ? size > rows.given : size != kiln_tensor_sizes(to)[d]) return NULL;
    if (d != dim && size != 1 && kiln_tensor_strides(index)[d] != 0) return NULL;
  }
  void *unused;
  if (index->storage == to->storage) return NULL;
  KILN_TRY(kiln_pw_param(&pw, 0, (kiln_number){KILN_DTYPE_I64, 1, 1, 0}));
  KILN_TRY(kiln_tensor_writable_data(to, &unused));
  KILN_TRY(vector_of(call, index, dim, &places));
  rows.at = kiln_tensor_data(places);
  rows.count = places->numel;
  *out_added = find_wrong(rows.at, rows.count, rows.limit) == rows.count;
  if (*out_added) write_rows(&rows, loop, &pw.params); /* else whoever looks again complains */
  kiln_tensor_release_to(&call->cache, places);
  return NULL;
}

/* -- Whole slices -- */

typedef enum slice_write { SLICE_ADD, SLICE_COPY, SLICE_FILL } slice_write;
/* A number is its own slice. */
static kiln_status *slice_of(kiln_call *call, kiln_tensor *t, int dim, int64_t i,
                             kiln_tensor **out) {
  if (kiln_tensor_rank(t) > 0) return kiln__select(call, t, dim, i, out);
  *out = kiln_tensor_retain(t);
  return NULL;
}
static kiln_status *check_slices(const kiln_ivalue *args, int dim, slice_write what) {
  const kiln_tensor *self = SELF, *index = ARG(2);
  const kiln_tensor *source = args[3].tag == KILN_TAG_TENSOR ? args[3].u.tensor : NULL;
  const char *name = what == SLICE_ADD    ? "index_add_"
                     : what == SLICE_COPY ? "index_copy_"
                                          : "index_fill_";
  const int rank = kiln_tensor_rank(self), ranks = source ? kiln_tensor_rank(source) : 0;
  if (kiln_tensor_rank(index) > 1) {
    return KILN_OP_FAIL("%s(): Index should have dimension 1 or 0 (got %d)", name,
                        kiln_tensor_rank(index));
  }
  if (what == SLICE_FILL) {
    return ranks == 0 ? NULL
                      : KILN_OP_FAIL("index_fill_ only supports a 0-dimensional value tensor, but "
                                     "got tensor with %d dimension(s).",
                                     ranks);
  }
  const int64_t slices = ranks > dim ? kiln_tensor_sizes(source)[dim] : 1;
  if (index->numel != slices) {
    return KILN_OP_FAIL("%s(): Number of indices (%lld) should be equal to source.size(dim) (%lld)",
                        name, (long long)index->numel, (long long)slices);
  }
  if (kiln_tensor_dtype(self) != kiln_tensor_dtype(source)) {
    return KILN_OP_FAIL("%s(): self and source expected to have the same dtype, but got %s and %s",
                        name, kiln_dtype_ir_name(kiln_tensor_dtype(self)),
                        kiln_dtype_ir_name(kiln_tensor_dtype(source)));
  }
  bool fits = rank == ranks || (rank <= 1 && ranks <= 1); /* a number is a vector of one element */
  for (int d = 0; fits && rank > 1 && d < rank; d++) {
    fits = d == dim || kiln_tensor_sizes(self)[d] == kiln_tensor_sizes(source)[d];
  }
  if (fits) return NULL;
  return KILN_OP_FAIL("%s(): source tensor shape must match self tensor shape, excluding the "
                      "specified dimension. Got self.shape = %s source.shape = %s",
                      name, kiln__sizes_of(self).text, kiln__sizes_of(source).text);
}
/* Part k of `to` gets the value, or slice i of the source. */
static kiln_status *write_slice(kiln_call *call, const kiln_ivalue *args, slice_write what,
                                kiln_tensor *part, int dim, int64_t i) {
  if (what == SLICE_FILL) {
    return args[3].tag == KILN_TAG_TENSOR ? kiln_pw_copy(call, part, args[3].u.tensor)
                                          : kiln_pw_fill_fitting(call, part, kiln__number(args[3]));
  }
  kiln_tensor *from = NULL;
  KILN_TRY(slice_of(call, ARG(3), dim, i, &from));
  kiln_status *status = NULL;
  if (what == SLICE_COPY) {
    status = kiln_pw_copy(call, part, from);
  } else {
    kiln_pw pw = {.functor = KILN_PW_add_alpha,
                  .in_count = 2,
                  .common = kiln_tensor_dtype(part),
                  .in = {{.tensor = part}, {.tensor = from}}};
    kiln_ivalue result = kiln_of_tensor(part);
    status = kiln_pw_param(&pw, 0, kiln__number(args[4]));
    if (!status) status = kiln_pw_run(call, &pw, &result);
  }
  kiln_tensor_release_to(&call->cache, from);
  return status;
}
/* Where both lie densely. */
static kiln_status *write_dense(kiln_call *call, const kiln_ivalue *args, slice_write what,
                                kiln_tensor *to, int dim, const kiln_tensor *index,
                                bool *out_written) {
  kiln_pw pw = {.functor = KILN_PW_add_alpha, .common = kiln_tensor_dtype(to)};
  const kiln_pw_loop loop = adding_loop(call, pw.common);
  dense_rows rows;
  *out_written = false;
  if (what == SLICE_FILL || (what == SLICE_ADD && !loop) || !find_rows(to, dim, ARG(3), &rows) ||
      index->storage == to->storage)
    return NULL;
  if (what == SLICE_ADD) KILN_TRY(kiln_pw_param(&pw, 0, kiln__number(args[4])));
  rows.at = kiln_tensor_data(index);
  rows.count = index->numel;
  if (find_wrong(rows.at, rows.count, rows.limit) < rows.count) return NULL;
  write_rows(&rows, what == SLICE_ADD ? loop : NULL, &pw.params);
  *out_written = true;
  return NULL;
}
/* self (in place or a copy), dim, index, source or value */
static kiln_status *write_slices(kiln_call *call, const kiln_ivalue *args, slice_write what,
                                 kiln_ivalue *out) {
  kiln_tensor *self = SELF, *to = kiln__dest(out), *index;
  int dim, rank = kiln_tensor_rank(self);
  void *unused;
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &dim));
  KILN_TRY(check_slices(args, dim, what));
  if (!to) {
    const kiln_dtype dtype = kiln_tensor_dtype(self);
    KILN_TRY(what == SLICE_FILL
                 ? kiln__empty_like(call, self, dtype, KILN_FORMAT_PRESERVE, &to)
                 : kiln_call_tensor(call, dtype, rank, kiln_tensor_sizes(self), &to));
    kiln__give(out, to);
  }
  if (what != SLICE_FILL) KILN_TRY(kiln__check_overlap(to, to));
  if (to != self) KILN_TRY(kiln_pw_copy(call, to, self));
  KILN_TRY(kiln__as_index(call, ARG(2), &index));
  int64_t size = rank ? kiln_tensor_sizes(self)[dim] : 1;
  kiln_status *status = kiln_tensor_writable_data(to, &unused); /* index may share its storage */
  bool is_done = false;
  if (!status) status = write_dense(call, args, what, to, dim, index, &is_done);
  const int64_t *at = kiln_tensor_data(index);
  const int64_t count = is_done ? 0 : what == SLICE_ADD && self->numel == 0 ? 0 : index->numel;
  const int64_t work = 64 + (size ? to->numel / size : 0);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < count && !status && !kiln_budget_spent(&left, work); i++) {
    int64_t k = at[i] < 0 && what == SLICE_FILL ? at[i] + size : at[i];
    kiln_tensor *part = NULL;
    if (k < 0 || k >= size) {
      status = KILN_OP_FAIL("index out of range in self");
      break;
    }
    status = slice_of(call, to, dim, k, &part);
    if (!status) status = write_slice(call, args, what, part, dim, i);
    kiln_tensor_release_to(&call->cache, part);
  }
  kiln_tensor_release_to(&call->cache, index);
  return status;
}
KILN_KERNEL(index_add) { return write_slices(call, args, SLICE_ADD, outs); }
KILN_KERNEL(index_copy) { return write_slices(call, args, SLICE_COPY, outs); }
KILN_KERNEL(index_fill) { return write_slices(call, args, SLICE_FILL, outs); }
