/* border.h: images and volumes with zeros around them in memory, `border` pixels wide in each of
 * their dimensions, channels last: what a
 * convolution with that padding reads is the memory itself, and no copy. Such tensors are between
 * two kernels of one plan; a host sees none.
 *
 * Of 2 x 2 pixels with a border of 1 memory has 4 x 4, and the tensor's first element is pixel (1,
 * 1) of these. Behind them are bytes that kernels may read (KILN_KERNEL_PACK_BEHIND). */
#pragma once

#include "runtime/tensor.h"

/* Of batch, channels and at least one dimension more; the strides are those of such memory
 * (kiln_physical_strides). The zeros are there, the elements not. */
kiln_status *kiln_border_create(kiln_mem *mem, kiln_cache *cache, kiln_dtype dtype, int rank,
                                const int64_t *sizes, const int64_t *strides, int border,
                                kiln_tensor **out_tensor);
/* Whether the tensor has such memory. */
bool kiln_border_is_around(const kiln_tensor *t, int border);
/* The first pixel in memory. */
void *kiln_border_begin(const kiln_tensor *t);
