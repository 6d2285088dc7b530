/* object_store.h: kernels in files (the flag cache_dir): what one process has compiled, others
 * load. For codegen/ only.
 *
 * A file is one object of LLVM's, by what the object depends on: the kernel's name, which is the
 * digest of its loop IR and schedule, the generator's version and the instruction set; and by the
 * hash of its group, which is the same for all of these. A process
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

/* Which object: the kernel's name, and its group's hash. */
typedef struct kiln__object_name {
  const char *kernel;
  char group[33];
} kiln__object_name;

/* One that was asked for. */
typedef struct kiln__object_lookup {
  kiln__object_name name;
  const char *why; /* it was not used; "": there is no such file; NULL: it was found */
} kiln__object_lookup;

typedef struct kiln__object_store {
  kiln_env *env;
  const char *folder; /* of the flag; "": there is none */
  uint64_t most;      /* bytes, likewise; 0: no limit */
  pid_t maker;
  pthread_mutex_t lock; /* of all below */
  bool read_only;       /* writing has failed */
  uint64_t bytes;       /* of all files, when they were last counted, and what was written since */
  bool counted;
  bool watched;                          /* lookups are kept, in: */
  kiln_arena *arena;                     /* NULL: none was */
  KILN_VEC(kiln__object_lookup) lookups; /* of the first few thousand */
} kiln__object_store;

/* Of a context's code generator; for api/ too. */
struct kiln_codegen;
kiln__object_store *kiln__codegen_store(struct kiln_codegen *codegen);

void kiln__object_store_init(kiln__object_store *store, kiln_env *env);
void kiln__object_store_deinit(kiln__object_store *store);
/* The object of that name, in env->mem; false: there is none that can be used. */
bool kiln__object_store_read(kiln__object_store *store, const kiln__object_name *name,
                             void **out_bytes, size_t *out_size);
void kiln__object_store_write(kiln__object_store *store, const kiln__object_name *name,
                              const void *bytes, size_t size);

/* -- For those who look at the folder (kiln cache) -- */

typedef struct kiln__object_file {
  kiln_folder_file file;
  const char *generator, *isa, *kernel, *group; /* "" where it does not say */
  const char *why; /* this Kiln does not use it, on this CPU; NULL: it does */
  bool is_useless; /* to any CPU: damaged, or another generator's */
} kiln__object_file;
typedef KILN_VEC(kiln__object_file) kiln__object_files;

/* All files of the folder, read and checked; in a scope. */
kiln_status *kiln__object_store_list(const kiln__object_store *store, kiln_arena *arena,
                                     kiln__object_files *out_files) KILN_MUST_USE;
/* Removes those that are of no use, and then the longest unused until the rest have at most `most`
 * bytes; how many files. */
kiln_status *kiln__object_store_prune(const kiln__object_store *store, uint64_t most,
                                      int *out_removed) KILN_MUST_USE;
/* From here on lookups are kept, and nothing is written. */
void kiln__object_store_watch(kiln__object_store *store);
