/* geometry.c: whether the memory of two tensors overlaps (iter.h). */
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/strides.h"

static bool is_dense(const kiln_tensor *t) {
  const kiln_strided dims = kiln_tensor_strided(t);
  return kiln_tensor_is_contiguous(t) || kiln_strides_are_dense(&dims);
}

bool kiln__repeats(const kiln_tensor *t) {
  bool repeats = false;
  for (int i = 0; i < kiln_tensor_rank(t) && !kiln_tensor_is_contiguous(t); i++)
    repeats |= kiln_tensor_sizes(t)[i] > 1 && kiln_tensor_strides(t)[i] == 0;
  return repeats;
}

kiln_status *kiln__once(kiln_call *call, kiln_tensor *t, kiln_tensor **out) {
  const int rank = kiln_tensor_rank(t);
  const int64_t *strides = kiln_tensor_strides(t);
  int64_t sizes[KILN_MAX_RANK];
  for (int i = 0; i < rank; i++) {
    const int64_t size = kiln_tensor_sizes(t)[i];
    sizes[i] = size > 1 && strides[i] == 0 ? 1 : size;
  }
  if (kiln__repeats(t))
    return kiln_tensor_view(&call->cache, t, rank, sizes, strides, t->offset, out);
  *out = kiln_tensor_retain(t);
  return NULL;
}

kiln_status *kiln__check_overlap(const kiln_tensor *dest, const kiln_tensor *source) {
  if (dest == source) {
    if (kiln__repeats(dest)) {
      return KILN_OP_FAIL(
          "unsupported operation: more than one element of the written-to tensor refers to a "
          "single memory location. Please clone() the tensor before performing the operation.");
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
