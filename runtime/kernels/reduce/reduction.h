/* reduction.h: reductions, as other kernels need them. Sums follow the rule of reduce.h. */
#pragma once

#include "runtime/kernels/composite.h"

/* A contiguous tensor seen as [outer, length, inner] around the reduced dimensions. */
typedef struct kiln_folded {
  kiln_tensor *tensor; /* owned: contiguous, of the compute dtype */
  int64_t outer, length, inner;
} kiln_folded;

/* Folds t, converted to `compute`, around the dimensions of `mask`; the element order within a
 * reduction is row-major over them. A copy is made where the layout needs one. */
kiln_status *kiln__fold(kiln_call *call, kiln_tensor *t, uint64_t mask, kiln_dtype compute,
                        kiln_folded *out) KILN_MUST_USE;
/* The same, kept by the composite: the elements; NULL after a failure. */
const void *kiln__composite_fold(kiln__composite *r, kiln_tensor *t, uint64_t mask,
                                 kiln_dtype compute, kiln_folded *out);
/* Sizes of the result. */
void kiln__reduced_sizes(const kiln_tensor *t, uint64_t mask, bool keepdim, int *out_rank,
                         int64_t *out_sizes);
/* A new contiguous tensor of the compute dtype. `shift` serves KILN_REDUCE_SUMSQ: a tensor of the
 * result's element count, or NULL for 0. */
kiln_status *kiln__reduce(kiln_call *call, kiln_reduce_op op, kiln_tensor *t, uint64_t mask,
                          bool keepdim, kiln_dtype compute, const kiln_tensor *shift,
                          kiln_tensor **out) KILN_MUST_USE;
static inline uint64_t kiln__all_dims(const kiln_tensor *t) {
  int rank = kiln_tensor_rank(t);
  return rank >= 64 ? ~0ull : (1ull << rank) - 1;
}
/* The dtype whose compute type is its own: F32 for f16, I32 for the small integers. */
static inline kiln_dtype kiln__compute_dtype(kiln_dtype dtype) {
  return kiln_ctype_dtype(kiln_ctype_of(dtype));
}
/* Rounds `value` (taken) to `dtype` and makes it the result. */
kiln_status *kiln__finish_as(kiln_call *call, kiln_ivalue *out, kiln_tensor *value,
                             kiln_dtype dtype) KILN_MUST_USE;
