/* border.c: tensors with zeros around them. */
#include "runtime/border.h"

#include <string.h>

#include "runtime/kernel_abi.h"

/* Elements of all images. */
static bool count_all(const int64_t *sizes, const int64_t *strides, int64_t *out_count) {
  return kiln_checked_mul_i64(sizes[0], strides[0], out_count);
}

static int64_t first_of(const int64_t *strides, int border) {
  return border * (strides[2] + strides[3]);
}

/* The zeros lie in front of the first row, from the end of each row to the begin of the next, and
 * behind the last. */
static void clear_border(char *data, size_t item, const int64_t *sizes, const int64_t *strides,
                         int border) {
  const size_t row = (size_t)strides[2] * item, pixel = (size_t)strides[3] * item;
  const size_t side = (size_t)border * pixel, ends = (size_t)border * row + side;
  const size_t image = (size_t)strides[0] * item, width = (size_t)sizes[3] * pixel;
  for (int64_t n = 0; n < sizes[0]; n++, data += image) {
    char *end = data + ends + width;
    memset(data, 0, ends);
    for (int64_t h = 1; h < sizes[2]; h++, end += row) memset(end, 0, 2 * side);
    memset(end, 0, ends);
  }
}

kiln_status *kiln_border_create(kiln_mem *mem, kiln_cache *cache, kiln_dtype dtype,
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
  kiln_status *status = kiln_tensor_create_on(mem, cache, storage, dtype, 4, sizes, strides,
                                              first_of(strides, border), out_tensor);
  if (!status) clear_border(storage->data, item, sizes, strides, border);
  kiln_storage_release_to(cache, storage);
  return status;
}

bool kiln_border_is_around(const kiln_tensor *t, int border) {
  const int64_t *sizes = kiln_tensor_sizes(t), *strides = kiln_tensor_strides(t);
  int64_t count;
  if (kiln_tensor_rank(t) != 4 || !count_all(sizes, strides, &count)) return false;
  return strides[1] == 1 && strides[3] == sizes[1] &&
         strides[2] == (sizes[3] + 2 * border) * strides[3] &&
         strides[0] == (sizes[2] + 2 * border) * strides[2] &&
         t->offset == first_of(strides, border) &&
         t->storage->bytes == (size_t)count * kiln_tensor_item_size(t) + KILN_KERNEL_PACK_BEHIND;
}

void *kiln_border_begin(const kiln_tensor *t) { return t->storage->data; }
