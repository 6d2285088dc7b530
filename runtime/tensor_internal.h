/* tensor_internal.h: between storage.c, tensor.c, tensor_copy.c and tensor_print.c only. */
#ifndef KILN_RUNTIME_TENSOR_INTERNAL_H
#define KILN_RUNTIME_TENSOR_INTERNAL_H

#include "runtime/tensor.h"

void kiln__storage_init(kiln_storage *s, kiln_mem *mem, void *data, size_t bytes, size_t alloc_size,
                        size_t block_offset);
/* When the last reference is gone. */
void kiln__storage_destroy(kiln_storage *s, kiln_cache *cache);

#endif
