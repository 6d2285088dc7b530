/* sparse.h: sparse tensors (COO), for the kernels that know them. */
#pragma once

#include "runtime/kernels/composite.h"
#include "runtime/structure.h"

static inline int kiln__sparse_dims(const kiln_sparse *s) {
  return (int)kiln_tensor_sizes(s->indices)[0];
}
static inline int64_t kiln__sparse_count(const kiln_sparse *s) {
  return kiln_tensor_sizes(s->indices)[1];
}
/* Row d of the indices. */
static inline const int64_t *kiln__sparse_row(const kiln_sparse *s, int d) {
  return (const int64_t *)kiln_tensor_data(s->indices) + d * kiln__sparse_count(s);
}
/* The structure of a sparse argument; fails the composite where the tensor is dense. */
const kiln_sparse *kiln__sparse_arg(kiln__composite *r, const kiln_tensor *t);
/* A sparse tensor of checked indices and values, kept by the composite. */
kiln_tensor *kiln__sparse_new(kiln__composite *r, int rank, const int64_t *sizes,
                              kiln_tensor *indices, kiln_tensor *values, bool coalesced);
/* The same tensor with other values. */
kiln_tensor *kiln__sparse_with(kiln__composite *r, const kiln_tensor *t, kiln_tensor *values);
/* The place of each element among those of the first `dims` dimensions, row-major: I64 [count]. */
kiln_tensor *kiln__sparse_keys(kiln__composite *r, const kiln_sparse *s, const int64_t *sizes,
                               int dims);
kiln_tensor *kiln__sparse_coalesced(kiln__composite *r, kiln_tensor *t);
kiln_tensor *kiln__sparse_dense(kiln__composite *r, kiln_tensor *t);
/* Elements of the dense `t` where the sparse `mask` has some: [count, dense dimensions...]. */
kiln_tensor *kiln__sparse_gather(kiln__composite *r, kiln_tensor *t, const kiln_tensor *mask);
