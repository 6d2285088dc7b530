/* view.h: views, as other kernels need them. Results are owned by the caller. */
#pragma once

#include "runtime/kernels/support.h"

/* Elements [start, start + length) of a dimension, which the tensor must have. */
kiln_status *kiln__narrow(kiln_call *call, kiln_tensor *t, int dim, int64_t start, int64_t length,
                          kiln_tensor **out) KILN_MUST_USE;
/* One element of a dimension, which goes away. */
kiln_status *kiln__select(kiln_call *call, kiln_tensor *t, int dim, int64_t index,
                          kiln_tensor **out) KILN_MUST_USE;
kiln_status *kiln__unsqueeze(kiln_call *call, kiln_tensor *t, int dim,
                             kiln_tensor **out) KILN_MUST_USE;
kiln_status *kiln__transpose(kiln_call *call, kiln_tensor *t, int a, int b,
                             kiln_tensor **out) KILN_MUST_USE;
/* dims: a permutation, wrapped already. */
kiln_status *kiln__permute(kiln_call *call, kiln_tensor *t, const int *dims,
                           kiln_tensor **out) KILN_MUST_USE;
kiln_status *kiln__expand(kiln_call *call, kiln_tensor *t, int rank, const int64_t *sizes,
                          kiln_tensor **out) KILN_MUST_USE;
/* Other sizes over the same elements; a copy where strides do not allow a view. sizes may hold one
 * -1. */
kiln_status *kiln__reshape(kiln_call *call, kiln_tensor *t, int rank, const int64_t *sizes,
                           kiln_tensor **out) KILN_MUST_USE;
/* Replaces one -1; KILN_OP_ERROR where the elements do not fit. */
kiln_status *kiln__infer_size(int64_t numel, int rank, const int64_t *sizes,
                              int64_t *out_sizes) KILN_MUST_USE;
/* Strides of a view with new sizes; false: there are none. */
bool kiln__view_strides(const kiln_tensor *t, int rank, const int64_t *sizes, int64_t *out_strides);
