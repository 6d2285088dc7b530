/* tensor_internal.h: between storage.c, tensor*.c and value_print.c only. */
#pragma once

#include "runtime/tensor.h"

/* More flags of a storage. INLINE: the data stands behind the struct, in its block; where it lies
 * does not tell, an allocator may give neighbours. PLANNED: in a workspace (base/workspace.h). */
enum { KILN__STORAGE_INLINE = 2, KILN__STORAGE_PLANNED = 4 };

static inline void kiln__storage_init(kiln_storage *s, const kiln_device *device, kiln_mem *mem,
                                      void *data, size_t bytes, size_t alloc_size,
                                      uint16_t block_offset) {
  s->refs = 1;
  s->flags = alloc_size - block_offset - sizeof *s >= bytes ? KILN__STORAGE_INLINE : 0;
  s->version = 0;
  s->block_offset = block_offset;
  s->holds = 0;
  s->data = data;
  s->bytes = bytes;
  s->mem = mem;
  s->device = device;
  s->owner = NULL;
  s->alloc_size = alloc_size;
}
static inline bool kiln__storage_is_inline(const kiln_storage *s) {
  return s->flags & KILN__STORAGE_INLINE;
}
/* When the last reference is gone. */
void kiln__storage_destroy(kiln_storage *s, kiln_cache *cache);

/* snprintf(fmt, width, precision, value) with a dot whatever the locale. */
void kiln__text_number(kiln_text *text, const char *fmt, int width, int precision, double value)
    __attribute__((format(printf, 2, 0)));
