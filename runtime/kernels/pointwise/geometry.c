/* geometry.c: where elements lie: the memory order of new results, and whether the memory of two
 * tensors overlaps (iter.h). */
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"

/* -- Memory order -- */

/* Whether dimension a must lie inside b: -1 no, 1 yes, 0 no operand says. */
static int compare_dims(int a, int b, const int64_t *sizes, int count,
                        const int64_t (*strides)[KILN_MAX_RANK]) {
  for (int k = 0; k < count; k++) {
    int64_t x = strides[k][a], y = strides[k][b];
    if (x == 0 || y == 0) continue;
    if (x < y) return -1;
    if (x > y) return 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

/* An insertion sort, as the order is partial. */
void kiln__pw_order_dims(int rank, const int64_t *sizes, int count,
                         const int64_t (*strides)[KILN_MAX_RANK], int *out_order) {
  for (int i = 0; i < rank; i++) out_order[i] = rank - 1 - i;
  for (int i = 1; i < rank; i++) {
    int at = i;
    for (int j = i - 1; j >= 0; j--) {
      int order = compare_dims(out_order[j], out_order[at], sizes, count, strides);
      if (order > 0) {
        int swap = out_order[j];
        out_order[j] = out_order[at];
        out_order[at] = swap;
        at = j;
      } else if (order < 0) {
        break;
      }
    }
  }
}

void kiln__pw_strides(int rank, const int64_t *sizes, int count,
                      const int64_t (*strides)[KILN_MAX_RANK], int64_t *out_strides) {
  int order[KILN_MAX_RANK];
  kiln__pw_order_dims(rank, sizes, count, strides, order);
  bool plain = true;
  for (int i = 0; i < rank; i++) plain = plain && order[i] == rank - 1 - i;
  if (plain) {
    kiln_strides_contiguous(rank, sizes, out_strides);
    return;
  }
  int64_t step = 1;
  for (int i = 0; i < rank; i++) {
    out_strides[order[i]] = step;
    step *= sizes[order[i]]; /* 0 from an empty dimension on, as in PyTorch */
  }
}

/* -- Overlap -- */

bool kiln__non_overlapping_dense(const kiln_tensor *t) {
  if (kiln_tensor_is_contiguous(t)) return true;
  int rank = kiln_tensor_rank(t), order[KILN_MAX_RANK];
  int64_t strides[1][KILN_MAX_RANK], expect = 1;
  memcpy(strides[0], kiln_tensor_strides(t), sizeof(int64_t) * (size_t)rank);
  kiln__pw_order_dims(rank, kiln_tensor_sizes(t), 1, (const int64_t(*)[KILN_MAX_RANK])strides,
                      order);
  for (int i = 0; i < rank; i++) {
    int64_t size = kiln_tensor_sizes(t)[order[i]];
    if (size < 2) continue;
    if (strides[0][order[i]] != expect) return false;
    expect *= size;
  }
  return true;
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
  if (!kiln__non_overlapping_dense(dest) || !kiln__non_overlapping_dense(source)) return NULL;
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
