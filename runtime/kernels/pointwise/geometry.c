/* geometry.c: whether the memory of two tensors overlaps (iter.h). */
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/strides.h"

static bool is_dense(const kiln_tensor *t) {
  const kiln_strided dims = kiln_tensor_strided(t);
  return kiln_tensor_is_contiguous(t) || kiln_strides_are_dense(&dims);
}

kiln_status *kiln__check_overlap(const kiln_tensor *dest, const kiln_tensor *source) {
  if (dest == source) {
    int rank = kiln_tensor_rank(dest);
    if (kiln_tensor_is_contiguous(dest)) return NULL;
    for (int i = 0; i < rank; i++) {
      if (kiln_tensor_sizes(dest)[i] > 1 && kiln_tensor_strides(dest)[i] == 0) {
        return KILN_OP_FAIL(
            "unsupported operation: more than one element of the written-to tensor refers to a "
            "single memory location. Please clone() the tensor before performing the operation.");
      }
    }
    return NULL;
  }
  if (dest->storage != source->storage || dest->numel == 0 || source->numel == 0) return NULL;
  if (!is_dense(dest) || !is_dense(source)) return NULL;
  size_t item = kiln_tensor_item_size(dest), item2 = kiln_tensor_item_size(source);
  size_t begin = (size_t)dest->offset * item, end = begin + (size_t)dest->numel * item;
  size_t begin2 = (size_t)source->offset * item2, end2 = begin2 + (size_t)source->numel * item2;
  if (begin == begin2 && end == end2) {
    int rank = kiln_tensor_rank(dest);
    if (rank == kiln_tensor_rank(source) &&
        memcmp(kiln_tensor_strides(dest), kiln_tensor_strides(source),
               sizeof(int64_t) * (size_t)rank) == 0) {
      return NULL;
    }
  } else if (end <= begin2 || end2 <= begin) {
    return NULL;
  }
  return KILN_OP_FAIL(
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to "
      "a single memory location. Please clone() the tensor before performing the operation.");
}
