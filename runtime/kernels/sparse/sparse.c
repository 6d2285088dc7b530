/* sparse.c: sparse tensors (COO): made of indices and values, made dense again, taken apart.
 *
 * Equal places are summed in their order (coalesce), as PyTorch does. Indices are checked when a
 * tensor is made, and never afterwards. */
#include "runtime/kernels/sparse/sparse.h"

#include <string.h>

#include "runtime/kernels/nn/nn.h"

const kiln_sparse *kiln__sparse_arg(kiln__composite *r, const kiln_tensor *t) {
  const kiln_sparse *s = kiln_tensor_sparse(t);
  if (!s && !r->status) {
    const kiln_str name = kiln__op_name(r->call);
    FAIL(r, KILN_STR_FMT " expected sparse coordinate tensor layout but got Strided",
         KILN_STR_ARG(name));
  }
  return s;
}
kiln_tensor *kiln__sparse_new(kiln__composite *r, int rank, const int64_t *sizes,
                              kiln_tensor *indices, kiln_tensor *values, bool coalesced) {
  kiln_tensor *out;
  if (r->status || !indices || !values) return NULL;
  const bool fine = kiln__composite_ok(
      r, kiln_sparse_tensor(r->call->env->mem, &r->call->cache, rank, sizes, indices, values,
                            coalesced || kiln_tensor_sizes(indices)[1] < 2, &out));
  return fine ? kiln__composite_keep(r, out) : NULL;
}
kiln_tensor *kiln__sparse_with(kiln__composite *r, const kiln_tensor *t, kiln_tensor *values) {
  const kiln_sparse *s = kiln_tensor_sparse(t);
  return kiln__sparse_new(r, kiln_tensor_rank(t), kiln_tensor_sizes(t), s->indices, values,
                          s->coalesced);
}

/* -- Making -- */

/* Sizes that hold every index, where none were given. */
static int infer_sizes(kiln__composite *r, kiln_tensor *indices, kiln_tensor *values,
                       int64_t sizes[KILN_MAX_RANK]) {
  const int64_t dims = kiln__composite_size(indices, 0), count = kiln__composite_size(indices, 1);
  const int rank = (int)dims + kiln_tensor_rank(values) - 1;
  const int64_t *at = r->status ? NULL : kiln_tensor_data(indices);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t d = 0; d < dims && at; d++) {
    int64_t most = -1;
    for (int64_t i = 0; i < count && !kiln_budget_spent(&left, 1); i++, at++) {
      most = *at > most ? *at : most;
    }
    if (most == INT64_MAX) {
      FAIL(r, "an index is too large");
      return rank;
    }
    sizes[d] = most + 1;
  }
  for (int d = (int)dims; d < rank; d++) sizes[d] = kiln_tensor_sizes(values)[d - dims + 1];
  return rank;
}
static bool check_parts(kiln__composite *r, const kiln_tensor *indices, const kiln_tensor *values) {
  const kiln_dtype dtype = kiln_tensor_dtype(indices);
  if (kiln_tensor_is_structured(indices) || kiln_tensor_is_structured(values)) {
    FAIL(r, "expected values and indices to be dense tensors");
  } else if (dtype != KILN_DTYPE_I64 && dtype != KILN_DTYPE_I32) {
    FAIL(r, "indices must be an int64 tensor");
  } else if (kiln_tensor_rank(indices) != 2) {
    FAIL(r, "indices must be sparse_dim x nnz, but got: %s", kiln__sizes_of(indices).text);
  } else if (kiln_tensor_rank(values) < 1 ||
             kiln_tensor_sizes(values)[0] != kiln_tensor_sizes(indices)[1]) {
    FAIL(r,
         "indices and values must have same nnz, but got nnz from indices: %lld, "
         "nnz from values: %lld",
         (long long)kiln_tensor_sizes(indices)[1],
         kiln_tensor_rank(values) ? (long long)kiln_tensor_sizes(values)[0] : 0LL);
  } else if (kiln_tensor_sizes(indices)[0] + kiln_tensor_rank(values) - 1 > KILN_MAX_RANK) {
    FAIL(r, "a sparse tensor has at most %d dimensions", (int)KILN_MAX_RANK);
  }
  return !r->status;
}
static bool check_geometry(kiln__composite *r, const kiln_tensor *indices,
                           const kiln_tensor *values, int rank, const int64_t *sizes) {
  const int64_t dims = kiln_tensor_sizes(indices)[0], count = kiln_tensor_sizes(indices)[1];
  if (rank != dims + kiln_tensor_rank(values) - 1) {
    return FAIL(r,
                "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) "
                "= %d, sparse_dim = %lld, dense_dim = %d",
                rank, (long long)dims, kiln_tensor_rank(values) - 1);
  }
  int64_t wanted[KILN_MAX_RANK + 1] = {count};
  bool fits = true;
  for (int d = 0; d < rank; d++) {
    fits = fits && sizes[d] >= 0;
    if (d >= dims) wanted[d - dims + 1] = sizes[d];
  }
  const int parts = kiln_tensor_rank(values);
  if (!fits || memcmp(wanted, kiln_tensor_sizes(values), sizeof *wanted * (size_t)parts) != 0) {
    return FAIL(r, "values has incorrect size, expected %s, got %s",
                kiln__sizes(parts, wanted).text, kiln__sizes_of(values).text);
  }
  const int64_t *at = kiln_tensor_data(indices);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t d = 0; d < dims; d++) {
    for (int64_t i = 0; i < count && !kiln_budget_spent(&left, 1); i++, at++) {
      if (*at >= 0 && *at < sizes[d]) continue;
      if (*at < 0) {
        FAIL(r, "found negative index %lld for dim %lld", (long long)*at, (long long)d);
      } else {
        FAIL(r,
             "size is inconsistent with indices: for dim %lld, size is %lld but found "
             "index %lld",
             (long long)d, (long long)sizes[d], (long long)*at);
      }
      return false;
    }
  }
  return true;
}
/* `at`: where indices stand among the arguments, values after them; size: where the sizes are, or
 * -1; dtype: where it stands, `coalesced` 4 further. */
static kiln_tensor *make(kiln__composite *r, const kiln_ivalue *args, int at, int size, int dtype) {
  kiln_tensor *given = ARG(at), *values = kiln_arg_tensor(args, at + 1);
  int64_t sizes[KILN_MAX_RANK];
  int rank = 0;
  if (!check_parts(r, given, values)) return NULL;
  /* Copies: later writes to the arguments are not seen. */
  kiln_tensor *indices = kiln__composite_copy(r, kiln__composite_to(r, given, KILN_DTYPE_I64));
  const kiln_dtype to = kiln__arg_dtype_or(args, dtype, kiln_tensor_dtype(values));
  values = to == kiln_tensor_dtype(values) ? kiln__composite_copy(r, values)
                                           : kiln__composite_to(r, values, to);
  if (r->status) return NULL;
  if (size >= 0) {
    if (!kiln__composite_ok(r, kiln__arg_int_list(args, size, sizes, &rank))) return NULL;
  } else {
    rank = infer_sizes(r, indices, values, sizes);
  }
  if (r->status || !check_geometry(r, indices, values, rank, sizes)) return NULL;
  const bool coalesced = !kiln_arg_is_none(args, dtype + 4) && kiln_arg_bool(args, dtype + 4);
  return kiln__sparse_new(r, rank, sizes, indices, values, coalesced);
}
KILN_COMPOSITE(sparse_coo_tensor_indices) { return make(r, args, 0, -1, 2); }
KILN_COMPOSITE(sparse_coo_tensor) { return make(r, args, 0, 2, 3); }
/* sparse_dim, dense_dim, size, indices, values, ... */
KILN_COMPOSITE(_sparse_coo_tensor_with_dims_and_tensors) { return make(r, args, 3, 2, 5); }

static kiln_tensor *make_empty(kiln__composite *r, const kiln_ivalue *args, int size,
                               int64_t dims) {
  int64_t sizes[KILN_MAX_RANK], parts[KILN_MAX_RANK + 1] = {0};
  int rank;
  kiln_tensor *indices, *values;
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, size, sizes, &rank))) return NULL;
  if (dims < 0) dims = rank;
  if (dims > rank) {
    return FAIL(r, "number of dimensions must be sparse_dim + dense_dim");
  }
  for (int d = 0; d < rank; d++) {
    if (sizes[d] < 0) {
      return FAIL(r, "Trying to create tensor with negative dimension %lld", (long long)sizes[d]);
    }
    if (d >= dims) parts[d - dims + 1] = sizes[d];
  }
  const kiln_dtype dtype = kiln__arg_dtype_or(args, size + 1, KILN_DTYPE_F32);
  if (!kiln__composite_ok(r, kiln__check_dtype(r->call, dtype))) return NULL;
  (void)kiln__composite_new(r, KILN_DTYPE_I64, 2, (const int64_t[]){dims, 0}, &indices);
  (void)kiln__composite_new(r, dtype, rank - (int)dims + 1, parts, &values);
  return kiln__sparse_new(r, rank, sizes, indices, values, true);
}
KILN_COMPOSITE(sparse_coo_tensor_size) { return make_empty(r, args, 0, -1); }
/* sparse_dim, dense_dim, size, dtype, ... */
KILN_COMPOSITE(_sparse_coo_tensor_with_dims) {
  const int64_t dims = kiln_arg_int(args, 0), dense = kiln_arg_int(args, 1);
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 2, sizes, &rank))) return NULL;
  if (dims < 0 || dense < 0 || dims > rank || dense != rank - dims) {
    return FAIL(r, "number of dimensions must be sparse_dim (%lld) + dense_dim (%lld), but got %d",
                (long long)dims, (long long)dense, rank);
  }
  return make_empty(r, args, 2, dims);
}

/* Elements that are not 0; the first `dims` dimensions are sparse. */
static kiln_tensor *from_dense(kiln__composite *r, kiln_tensor *t, int64_t dims) {
  const int rank = kiln_tensor_rank(t);
  if (dims < 0 || dims > rank || (dims == 0 && rank > 0)) {
    return FAIL(r,
                "dense_to_sparse: sparse_dim argument must be in [0,%d] range, but %lld is given",
                rank, (long long)dims);
  }
  const int64_t *sizes = kiln_tensor_sizes(t);
  int64_t parts[KILN_MAX_RANK + 1] = {1}, inner = 1;
  for (int d = 0; d < rank; d++) {
    if (d < dims) {
      parts[0] *= sizes[d];
    } else {
      parts[d - dims + 1] = sizes[d];
      inner *= sizes[d];
    }
  }
  kiln_tensor *flat = kiln__composite_reshape(r, t, rank - (int)dims + 1, parts);
  kiln_tensor *rows = kiln__composite_reshape(r, t, 2, (const int64_t[]){parts[0], inner}),
              *indices;
  kiln_tensor *wanted = KILN_STEP(r, nonzero, T(KILN_STEP(r, any_dim, T(rows), I(1), B(false))));
  const int64_t count = kiln__composite_size(wanted, 0);
  wanted = kiln__composite_flat(r, wanted);
  kiln_tensor *values = KILN_STEP(r, index_select, T(flat), I(0), T(wanted));
  int64_t *to = kiln__composite_new(r, KILN_DTYPE_I64, 2, (const int64_t[]){dims, count}, &indices);
  if (r->status) return NULL;
  const int64_t *key = kiln_tensor_data(wanted);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < count && !kiln_budget_spent(&left, 4 * dims); i++) {
    int64_t rest = key[i];
    for (int64_t d = dims - 1; d >= 0; d--) {
      to[d * count + i] = rest % sizes[d];
      rest /= sizes[d];
    }
  }
  return kiln__sparse_new(r, rank, sizes, indices, values, true);
}
KILN_COMPOSITE(to_sparse_dims) {
  if (kiln_tensor_sparse(SELF)) return SELF;
  return from_dense(r, SELF, kiln_arg_int(args, 1));
}
/* self, layout, blocksize, dense_dim */
KILN_COMPOSITE(to_sparse) {
  enum { SPARSE_COO = 1 };
  if (kiln_arg_int_or(args, 1, SPARSE_COO) != SPARSE_COO || !kiln_arg_is_none(args, 2)) {
    return FAIL(r, "to_sparse: only the layout torch.sparse_coo is supported");
  }
  if (kiln_tensor_sparse(SELF)) return SELF;
  const int64_t rank = kiln_tensor_rank(SELF), dense = kiln_arg_int_or(args, 3, 0);
  return from_dense(r, SELF, dense < 0 || dense > rank ? -1 : rank - dense);
}

/* -- Coalescing and back -- */

kiln_tensor *kiln__sparse_keys(kiln__composite *r, const kiln_sparse *s, const int64_t *sizes,
                               int dims) {
  const int64_t count = kiln__sparse_count(s);
  kiln_tensor *keys;
  int64_t *to = kiln__composite_new(r, KILN_DTYPE_I64, 1, &count, &keys), all;
  if (!to) return NULL;
  if (!kiln_numel(dims, sizes, &all)) {
    return FAIL(r, "the sizes of a sparse tensor are too large to be numbered");
  }
  kiln__zero(to, (size_t)count * sizeof *to);
  for (int d = 0; d < dims; d++) {
    const int64_t *row = kiln__sparse_row(s, d);
    for (int64_t i = 0, end; (end = kiln_budget_piece(i, count)) > i;) {
      for (; i < end; i++) to[i] = to[i] * sizes[d] + row[i];
    }
  }
  return keys;
}
/* The number of the group of equal keys that each element is in; *firsts: where each begins. */
static int64_t number_groups(const int64_t *keys, int64_t count, int64_t *numbers,
                             int64_t *firsts) {
  int64_t groups = 0;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < count && !kiln_budget_spent(&left, 2); i++) {
    if (i == 0 || keys[i] != keys[i - 1]) firsts[groups++] = i;
    numbers[i] = groups - 1;
  }
  return groups;
}
kiln_tensor *kiln__sparse_coalesced(kiln__composite *r, kiln_tensor *t) {
  const kiln_sparse *s = kiln_tensor_sparse(t);
  if (s->coalesced) return t;
  const int dims = kiln__sparse_dims(s);
  const int64_t count = kiln__sparse_count(s);
  kiln_tensor *keys = kiln__sparse_keys(r, s, kiln_tensor_sizes(t), dims), *sorted[2];
  kiln_tensor *numbers, *firsts, *indices, *sums;
  KILN_STEP_MANY(r, sort_stable, 2, sorted, T(keys), B(true), I(0), B(false));
  int64_t *number = kiln__composite_new(r, KILN_DTYPE_I64, 1, &count, &numbers);
  int64_t *first = kiln__composite_new(r, KILN_DTYPE_I64, 1, &count, &firsts);
  kiln_tensor *values = KILN_STEP(r, index_select, T(s->values), I(0), T(sorted[1]));
  if (r->status) return NULL;
  const int64_t groups = number_groups(kiln_tensor_data(sorted[0]), count, number, first);
  const int64_t *order = kiln_tensor_data(sorted[1]);
  int64_t *to =
      kiln__composite_new(r, KILN_DTYPE_I64, 2, (const int64_t[]){dims, groups}, &indices);
  int64_t sizes[KILN_MAX_RANK];
  memcpy(sizes, kiln_tensor_sizes(values), sizeof *sizes * (size_t)kiln_tensor_rank(values));
  sizes[0] = groups;
  void *zero =
      kiln__composite_new(r, kiln_tensor_dtype(values), kiln_tensor_rank(values), sizes, &sums);
  if (r->status) return NULL;
  if (sums->numel > 0) kiln__zero(zero, (size_t)sums->numel * kiln_tensor_item_size(sums));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int d = 0; d < dims; d++) {
    const int64_t *row = kiln__sparse_row(s, d);
    for (int64_t g = 0; g < groups && !kiln_budget_spent(&left, 2); g++) {
      *to++ = row[order[first[g]]];
    }
  }
  if (groups < count) values = KILN_STEP(r, index_add, T(sums), I(0), T(numbers), T(values), I(1));
  return kiln__sparse_new(r, kiln_tensor_rank(t), kiln_tensor_sizes(t), indices, values, true);
}
KILN_COMPOSITE(coalesce) {
  return kiln__sparse_arg(r, SELF) ? kiln__sparse_coalesced(r, SELF) : NULL;
}
kiln_tensor *kiln__sparse_dense(kiln__composite *r, kiln_tensor *t) {
  const kiln_sparse *s = kiln_tensor_sparse(t);
  const int dims = kiln__sparse_dims(s), rank = kiln_tensor_rank(t);
  int64_t parts[KILN_MAX_RANK + 1] = {1};
  kiln_tensor *zeros;
  kiln_tensor *keys = kiln__sparse_keys(r, s, kiln_tensor_sizes(t), dims);
  if (r->status) return NULL;
  for (int d = 0; d < dims; d++) parts[0] *= kiln_tensor_sizes(t)[d];
  for (int d = dims; d < rank; d++) parts[d - dims + 1] = kiln_tensor_sizes(t)[d];
  void *data = kiln__composite_new(r, kiln_tensor_dtype(t), rank - dims + 1, parts, &zeros);
  if (r->status) return NULL;
  if (zeros->numel > 0) kiln__zero(data, (size_t)zeros->numel * kiln_tensor_item_size(zeros));
  kiln_tensor *sum = KILN_STEP(r, index_add, T(zeros), I(0), T(keys), T(s->values), I(1));
  return kiln__composite_reshape(r, sum, rank, kiln_tensor_sizes(t));
}
/* self, dtype, masked_grad */
KILN_COMPOSITE(sparse_to_dense) {
  kiln_tensor *t = kiln__sparse_dense(r, SELF);
  return kiln__composite_to(r, t, kiln__arg_dtype_or(args, 1, kiln__composite_dtype(t)));
}
kiln_tensor *kiln__sparse_gather(kiln__composite *r, kiln_tensor *t, const kiln_tensor *mask) {
  const kiln_sparse *s = kiln_tensor_sparse(mask);
  const int dims = kiln__sparse_dims(s), rank = kiln_tensor_rank(mask);
  const int64_t *sizes = kiln_tensor_sizes(mask);
  int64_t parts[KILN_MAX_RANK + 1] = {1};
  if (!kiln_tensor_same_sizes(t, mask)) {
    return FAIL(r, "expected a dense and a sparse tensor of the same sizes");
  }
  for (int d = 0; d < dims; d++) parts[0] *= sizes[d];
  for (int d = dims; d < rank; d++) parts[d - dims + 1] = sizes[d];
  kiln_tensor *flat = kiln__composite_reshape(r, t, rank - dims + 1, parts);
  return KILN_STEP(r, index_select, T(flat), I(0), T(kiln__sparse_keys(r, s, sizes, dims)));
}
/* self, mask: the dense self where mask has elements */
KILN_COMPOSITE(sparse_mask) {
  kiln_tensor *mask = ARG(1);
  if (!kiln__sparse_arg(r, mask)) return NULL;
  if (kiln_tensor_is_structured(SELF)) {
    return FAIL(r, "sparse_mask: only a dense tensor can be masked");
  }
  mask = kiln__sparse_coalesced(r, mask);
  if (!mask) return NULL;
  kiln_tensor *values = kiln__sparse_gather(r, SELF, mask);
  return values ? kiln__sparse_with(r, mask, values) : NULL;
}

/* -- Questions -- */

/* Indices are checked once: whoever writes into what is given here writes into a copy. Values share
 * their memory, as in PyTorch, but not the tensor, whose geometry resize_ changes. */
static kiln_tensor *give_part(kiln__composite *r, const kiln_tensor *t, bool indices, bool any,
                              kiln_ivalue *out) {
  const kiln_sparse *s = kiln__sparse_arg(r, t);
  kiln_tensor *part;
  if (!s) return NULL;
  if (!any && !s->coalesced) {
    return FAIL(r, "Cannot get %s on an uncoalesced tensor, please call .coalesce() first",
                indices ? "indices" : "values");
  }
  if (indices) return kiln__composite_copy(r, s->indices);
  if (kiln__composite_ok(r, kiln_tensor_alias(&r->call->cache, s->values, &part))) {
    kiln__give(out, part);
  }
  return NULL;
}
KILN_COMPOSITE(sparse_indices) { return give_part(r, SELF, true, false, outs); }
KILN_COMPOSITE(sparse_values) { return give_part(r, SELF, false, false, outs); }
KILN_COMPOSITE(_sparse_indices) { return give_part(r, SELF, true, true, outs); }
KILN_COMPOSITE(_sparse_values) { return give_part(r, SELF, false, true, outs); }
KILN_COMPOSITE(_nnz) {
  const kiln_sparse *s = kiln__sparse_arg(r, SELF);
  if (s) *outs = kiln_int(kiln__sparse_count(s));
  return NULL;
}
KILN_KERNEL(sparse_dim) {
  const kiln_sparse *s = kiln_tensor_sparse(SELF);
  return kiln__give_int(outs, s ? kiln__sparse_dims(s) : 0);
}
KILN_KERNEL(dense_dim) {
  const kiln_sparse *s = kiln_tensor_sparse(SELF);
  return kiln__give_int(outs, s ? kiln_tensor_rank(s->values) - 1 : kiln_tensor_rank(SELF));
}
KILN_COMPOSITE(is_coalesced) {
  const kiln_sparse *s = kiln__sparse_arg(r, SELF);
  if (s) *outs = kiln_bool(s->coalesced);
  return NULL;
}
KILN_KERNEL(is_sparse) { return kiln__give_bool(outs, kiln_tensor_sparse(SELF) != NULL); }
KILN_KERNEL(sparse_layout) {
  *outs = kiln_int(1); /* torch.sparse_coo */
  return NULL;
}
