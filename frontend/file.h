/* file.h: a file mapped into memory, as an owner that storages keep alive. */
#ifndef KILN_FRONTEND_FILE_H
#define KILN_FRONTEND_FILE_H

#include "runtime/tensor.h"

typedef struct kiln_mapping {
  kiln_owner owner; /* unmapped when its last reference goes */
  kiln_mem *mem;    /* retained */
  const void *data; /* read only; "" of size 0 for an empty file */
  size_t size;
} kiln_mapping;

/* Maps a regular file; counts one reference (kiln_owner_release(&m->owner)). KILN_INVALID_FILE when
 * it cannot be opened or is no regular file. */
kiln_status *kiln_mapping_open(kiln_mem *mem, const char *path,
                               kiln_mapping **out_mapping) KILN_MUST_USE;
/* The same interface over memory of the host, which stays valid until the last reference goes. */
kiln_status *kiln_mapping_wrap(kiln_mem *mem, const void *data, size_t size,
                               kiln_mapping **out_mapping) KILN_MUST_USE;

#endif
