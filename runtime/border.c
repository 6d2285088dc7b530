/* border.c: tensors with zeros around them. */
#include "runtime/border.h"

#include <string.h>

#include "runtime/kernel_abi.h"

/* Elements of all images. */
static bool count_all(const int64_t *sizes, const int64_t *strides, int64_t *out_count) {
  return kiln_checked_mul_i64(sizes[0], strides[0], out_count);
}

static int64_t first_of(int rank, const int64_t *strides, int border) {
  int64_t sum = 0;
  for (int d = 2; d < rank; d++) sum += strides[d];
  return border * sum;
}

/* Where row `row` of all images begins, counted without those of zeros. */
static int64_t row_at(int rank, const int64_t *sizes, const int64_t *strides, int border,
                      int64_t row) {
  int64_t at = first_of(rank, strides, border);
  for (int d = rank - 2; d >= 2; d--) {
    at += row % sizes[d] * strides[d];
    row /= sizes[d];
  }
  return at + row * strides[0];
}

/* Zeros are all that is in front of a row and behind the one before. */
static void clear_border(char *data, size_t item, int rank, const int64_t *sizes,
                         const int64_t *strides, int border) {
  const size_t width = (size_t)(sizes[rank - 1] * strides[rank - 1]) * item;
  int64_t rows = sizes[0];
  for (int d = 2; d < rank - 1; d++) rows *= sizes[d];
  char *from = data, *end = data + (size_t)(sizes[0] * strides[0]) * item;
  for (int64_t row = 0; row < rows; row++) {
    char *to = data + (size_t)row_at(rank, sizes, strides, border, row) * item;
    memset(from, 0, (size_t)(to - from));
    from = to + width;
  }
  memset(from, 0, (size_t)(end - from));
}

kiln_status *kiln_border_create(kiln_mem *mem, kiln_cache *cache, kiln_dtype dtype, int rank,
                                const int64_t *sizes, const int64_t *strides, int border,
                                kiln_tensor **out_tensor) {
  const size_t item = kiln_dtype_bytes(dtype);
  kiln_storage *storage;
  int64_t count;
  size_t bytes;
  if (!count_all(sizes, strides, &count) || !kiln_checked_mul_size((size_t)count, item, &bytes) ||
      bytes > SIZE_MAX - KILN_KERNEL_PACK_BEHIND)
    return kiln_status_oom();
  KILN_TRY(kiln_storage_create(mem, cache, bytes + KILN_KERNEL_PACK_BEHIND, &storage));
  kiln_status *status = kiln_tensor_create_on(mem, cache, storage, dtype, rank, sizes, strides,
                                              first_of(rank, strides, border), out_tensor);
  if (!status) clear_border(storage->data, item, rank, sizes, strides, border);
  kiln_storage_release_to(cache, storage);
  return status;
}

bool kiln_border_is_around(const kiln_tensor *t, int border) {
  const int64_t *sizes = kiln_tensor_sizes(t), *strides = kiln_tensor_strides(t);
  const int rank = kiln_tensor_rank(t);
  int64_t count, expected = rank < 3 ? 0 : sizes[1];
  if (rank < 3 || strides[1] != 1 || !count_all(sizes, strides, &count)) return false;
  for (int d = rank - 1; d >= 2; d--) {
    if (strides[d] != expected) return false;
    expected *= sizes[d] + 2 * border;
  }
  return strides[0] == expected && t->offset == first_of(rank, strides, border) &&
         t->storage->bytes == (size_t)count * kiln_tensor_item_size(t) + KILN_KERNEL_PACK_BEHIND;
}

void *kiln_border_begin(const kiln_tensor *t) { return t->storage->data; }
