/* folder.h: small files in a folder that nobody but the user writes.
 *
 * What such files hold decides what this process runs, so they are read only where another user can
 * have written neither the file nor its folder, and never through a link. A file is written under
 * another name and then renamed: processes that share the folder see whole files. */
#pragma once

#include "base/arena.h"
#include "base/status.h"
#include "base/vec.h"

enum { KILN_FOLDER_PATH = 4096, KILN_FOLDER_NAME = 64 };

/* The whole file, of at most `most` bytes. KILN_NOT_FOUND: there is no such file; KILN_INVALID_FILE
 * says why it is not used. */
kiln_status *kiln_folder_read(const char *folder, const char *name, size_t most, kiln_arena *arena,
                              kiln_str *out_text) KILN_MUST_USE;
/* Makes the folder, with all that it lies in, and the file, of these parts. */
kiln_status *kiln_folder_write(const char *folder, const char *name, const kiln_str *parts,
                               int part_count) KILN_MUST_USE;
typedef struct kiln_folder_file {
  const char *name;
  int64_t used_ns; /* since 1970: written, or touched */
  uint64_t bytes;
} kiln_folder_file;
typedef KILN_VEC(kiln_folder_file) kiln_folder_files;

/* The files whose names end so, the longest unused first, in `arena`; KILN_INVALID_FILE where
 * others may write to the folder. None where there is no folder. In a scope. */
kiln_status *kiln_folder_list(const char *folder, const char *suffix, kiln_arena *arena,
                              kiln_folder_files *out_files) KILN_MUST_USE;
/* False: it is still there, if it was. */
bool kiln_folder_remove(const char *folder, const char *name);
/* The file was used: it is the last to go. */
void kiln_folder_touch(const char *folder, const char *name);
/* Removes files whose names end so, the longest unused first, until the rest have at most `bytes`;
 * gives what is left, and how many it has removed. In a scope. */
uint64_t kiln_folder_trim(const char *folder, const char *suffix, uint64_t bytes,
                          kiln_arena *scratch, int *out_removed);
