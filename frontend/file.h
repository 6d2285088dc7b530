/* file.h: mapped files, which the storages on them keep alive.
 *
 * A regular file is mapped, read only, and its pages belong to the file, not to us; small files,
 * and all with KILN_MAP_COPY, are read into memory of ours. A table remembers what is open: who
 * opens the same file again (the same file in the file system, with the same size and time of
 * change) gets the same mapping, so that weights are there once.
 *
 * A mapped file must not be written or cut while it is mapped: the system gives a reader of pages
 * that are gone a SIGBUS, which no library can turn into a status without taking over the host's
 * signals. kiln_mapping_check sees a file that has been changed before its pages are read, which
 * turns most accidents into a status; KILN_MAP_COPY is safe from all. Replacing a file by renaming
 * another to its name is always safe. Tables are thread-safe. */
#pragma once

#include <sys/stat.h>

#include "runtime/tensor.h"

typedef enum kiln_map_mode {
  KILN_MAP_AUTO, /* map what is larger than KILN_MAP_MIN */
  KILN_MAP_COPY,
} kiln_map_mode;
enum { KILN_MAP_MIN = 64 << 10 };

typedef struct kiln_file_table kiln_file_table;

typedef struct kiln_mapping {
  kiln_owner owner; /* unmapped, or freed, when its last reference goes */
  kiln_mem *mem;    /* retained */
  const void *data; /* read only; "" of size 0 for an empty file */
  size_t size;
  int fd;                 /* of a mapped file, to see that it does not change; else -1 */
  size_t block;           /* bytes of data's block, when it is one of mem; else 0 */
  struct stat info;       /* of the file when it was opened */
  kiln_file_table *table; /* retained; NULL: in none */
  struct kiln_mapping *next;
  int64_t checked_at; /* atomic: ticks of the last kiln_mapping_check */
} kiln_mapping;

kiln_status *kiln_file_table_create(kiln_mem *mem, kiln_file_table **out_table) KILN_MUST_USE;
void kiln_file_table_release(kiln_file_table *table);
/* Bytes of the files that are mapped (not copied) now, each counted once. */
uint64_t kiln_file_table_mapped_bytes(kiln_file_table *table);

/* How a file is opened; all zero is right. */
typedef struct kiln_file_options {
  kiln_map_mode mode;
  kiln_file_table *table;    /* NULL: not shared */
  uint64_t max_copy;         /* more bytes are not read into memory: KILN_LIMIT; 0: no limit */
  const kiln_budget *budget; /* how long is read, or a stream waited for; NULL: no limit */
} kiln_file_options;

/* Opens a regular file; counts one reference (kiln_owner_release(&m->owner)). KILN_INVALID_FILE
 * when it cannot be opened or is no regular file. `options` may be NULL. */
kiln_status *kiln_mapping_open(kiln_mem *mem, const char *path, const kiln_file_options *options,
                               kiln_mapping **out_mapping) KILN_MUST_USE;
/* The same of a descriptor, which stays the caller's and is not moved. What is no regular file (a
 * pipe) is read to its end. */
kiln_status *kiln_mapping_open_fd(kiln_mem *mem, int fd, const kiln_file_options *options,
                                  kiln_mapping **out_mapping) KILN_MUST_USE;
/* The same interface over memory of the host, which stays valid until the last reference goes. */
kiln_status *kiln_mapping_wrap(kiln_mem *mem, const void *data, size_t size,
                               kiln_mapping **out_mapping) KILN_MUST_USE;
/* The mapping whose memory `owner` (may be NULL) lends, or NULL. */
kiln_mapping *kiln_mapping_of(kiln_owner *owner);
/* KILN_INVALID_FILE when a mapped file has been written or cut since. Cheap: it looks again only
 * after some milliseconds, unless `now`. */
kiln_status *kiln_mapping_check(kiln_mapping *mapping, bool now) KILN_MUST_USE;
