/* object_store.h: kernels in files (the flag cache_dir): what one process has compiled, others
 * load. For codegen/ only.
 *
 * A file is one object of LLVM's, by what the object depends on: the kernel's name, which is the
 * digest of its loop IR and schedule, the generator's version and the instruction set. A process
 * that finds all its kernels never opens libLLVM. What is read is compared with its checksum, and
 * folders that others may write to are not used (folder.h). What cannot be read is compiled, and
 * written anew; where nothing can be written, the first failure is told, and none is tried after
 * it.
 *
 * Processes A and B compile the same kernel at the same time: both write it, whole, and the second
 * file takes the first one's name. */
#pragma once

#include <pthread.h>

#include "base/env.h"
#include "base/folder.h"

typedef struct kiln__object_store {
  kiln_env *env;
  const char *folder; /* of the flag; "": there is none */
  uint64_t most;      /* bytes, likewise; 0: no limit */
  pid_t maker;
  pthread_mutex_t lock; /* of all below */
  bool read_only;       /* writing has failed */
  uint64_t bytes;       /* of all files, when they were last counted, and what was written since */
  bool counted;
} kiln__object_store;

void kiln__object_store_init(kiln__object_store *store, kiln_env *env);
void kiln__object_store_deinit(kiln__object_store *store);
/* The object of that name, in env->mem; false: there is none that can be used. */
bool kiln__object_store_read(kiln__object_store *store, const char *name, void **out_bytes,
                             size_t *out_size);
void kiln__object_store_write(kiln__object_store *store, const char *name, const void *bytes,
                              size_t size);
