/* odd_strides.h: tensors in which dimensions of one element have strides that lead nowhere.
 *
 * Such a stride says nothing: x.transpose(0, 1) of sizes [1, 5, 4] has sizes [5, 1, 4], strides
 * [4, 20, 1], and is contiguous. A kernel that walks over its rows by 20 reads other memory. */
#pragma once

#include "runtime/kernels/support.h"
#include "test/unit/unit.h"

/* Takes the tensor. */
static inline kiln_tensor *odd_strides(kiln_tensor *t) {
  int64_t strides[KILN_MAX_RANK];
  kiln_tensor *view;
  for (int d = 0; d < kiln_tensor_rank(t); d++)
    strides[d] = kiln_tensor_sizes(t)[d] == 1 ? 7654321 + d : kiln_tensor_strides(t)[d];
  assert_ok(kiln_tensor_view(NULL, t, kiln_tensor_rank(t), kiln_tensor_sizes(t), strides, t->offset,
                             &view));
  kiln_tensor_release(t);
  return view;
}
