/* structure.h: tensors whose elements are not those of their storage: sparse ones (COO: indices and
 * values) and nested ones (rows of different lengths, padded).
 *
 * Their layout class says so, which is part of the guard word; the rest is a side structure. No
 * kernel knows of it but those of kernels/sparse/: in a unit where such tensors may be
 * (kiln_unit.structured) every operator is wrapped, and does what its columns SPARSE and NESTED
 * say, or refuses. What the storage of a sparse tensor holds is one zero, with strides of 0; a
 * nested tensor's is the padded tensor: a kernel that read one by mistake would read wrong numbers,
 * never foreign memory. */
#pragma once

#include "runtime/kernel.h"

/* Immutable, shared. */
typedef struct kiln_sparse {
  kiln_side side;
  kiln_mem *mem;
  kiln_tensor *indices; /* [sparse dimensions, count], I64, contiguous, within the sizes */
  kiln_tensor *values;  /* [count, dense dimensions...] */
  bool coalesced;       /* indices rise, none occurs twice */
} kiln_sparse;

/* Immutable, shared. */
typedef struct kiln_nested {
  kiln_side side;
  kiln_mem *mem;
  int64_t count;     /* rows: the first dimension */
  int64_t lengths[]; /* of each, at most the second dimension */
} kiln_nested;

static inline bool kiln_tensor_is_structured(const kiln_tensor *t) {
  return t->key.f.layout >= KILN_LAYOUT_SPARSE;
}
/* Borrowed; NULL for tensors that are not. */
static inline const kiln_sparse *kiln_tensor_sparse(const kiln_tensor *t) {
  return (const kiln_sparse *)(const void *)kiln_tensor_side(t, KILN_SIDE_SPARSE);
}
static inline const kiln_nested *kiln_tensor_nested(const kiln_tensor *t) {
  return (const kiln_nested *)(const void *)kiln_tensor_side(t, KILN_SIDE_NESTED);
}
/* Whether it is such a tensor, or a container with one. */
bool kiln_ivalue_holds_structured(kiln_ivalue v);

/* A sparse tensor; indices and values (retained) were checked by the caller. */
kiln_status *kiln_sparse_tensor(kiln_mem *mem, kiln_cache *cache, int rank, const int64_t *sizes,
                                kiln_tensor *indices, kiln_tensor *values, bool coalesced,
                                kiln_tensor **out_tensor) KILN_MUST_USE;
/* Another tensor on the padded elements of `padded`, of which row i has lengths[i]. */
kiln_status *kiln_nested_tensor(kiln_mem *mem, kiln_cache *cache, const kiln_tensor *padded,
                                const int64_t *lengths, kiln_tensor **out_tensor) KILN_MUST_USE;

/* The kernel to run where such tensors may be; itself where it never sees an element. */
const kiln_kernel *kiln_structure_wrap(kiln_arena *arena, const kiln_kernel *kernel);
