/* zip.h: the entries of a zip archive in memory (torch's container).
 *
 * minizip reads the structure (end records, zip64, central directory, local headers) through
 * callbacks over the mapping; members are then used in place where they are stored, and inflated
 * by libdeflate where they are deflated. Nothing that the archive says is believed: names, offsets
 * and sizes are checked against the bytes, deflated members give exactly the size that the
 * directory states, and all inflated bytes together stay below a cap. Every entry's CRC-32 is
 * compared, by libdeflate's carry-less multiplication.
 *
 * Layout of torch's archives: every entry lies below one folder, the prefix, which is that of the
 * first entry of the directory; names here are without it. Entries outside it are ignored. The
 * options may say that there is none. */
#pragma once

#include "base/env.h"
#include "base/budget.h"
#include "frontend/file.h"

typedef struct kiln_zip_entry {
  kiln_str name;         /* below the prefix */
  uint64_t header;       /* where its local header is */
  uint64_t packed, size; /* bytes in the file, and inflated */
  uint32_t crc;
  bool deflated;
  bool read;     /* data is valid and its sum was compared */
  kiln_str data; /* in the mapping, or in the zip's arena */
} kiln_zip_entry;

typedef struct kiln_zip kiln_zip;

/* A name that can mislead nobody: no NUL, backslash, absolute path or parent folder. */
bool kiln_zip_name_is_safe(kiln_str name);

typedef struct kiln_zip_options {
  const kiln_budget *budget; /* of the load; NULL: none */
  uint64_t inflate_cap;      /* bytes that may be inflated in all; 0: 4 GiB */
  bool crc_warns;            /* a wrong sum is counted, not refused */
  bool flat;                 /* entries lie in no folder: numpy.savez */
} kiln_zip_options;

/* Reads the directory. In `arena`, in which names and inflated data live; it can be used until the
 * scope is left, which closes it, and no longer than the arena. The mapping is borrowed. */
kiln_status *kiln_zip_open(kiln_arena *arena, const kiln_mapping *mapping,
                           const kiln_zip_options *options, kiln_zip **out_zip) KILN_MUST_USE;

/* Compares the sums of all entries, also of those that nobody reads. */
kiln_status *kiln_zip_check_all(kiln_zip *zip) KILN_MUST_USE;
/* Warns of the wrong sums so far, if there were any (with crc_warns). */
void kiln_zip_report(const kiln_zip *zip, kiln_env *env);

int kiln_zip_count(const kiln_zip *zip);
kiln_zip_entry *kiln_zip_at(kiln_zip *zip, int index);
/* By the name below the prefix; NULL when absent. */
kiln_zip_entry *kiln_zip_find(kiln_zip *zip, kiln_str name);
/* The entry's bytes: in place, or inflated into the arena (once). */
kiln_status *kiln_zip_read(kiln_zip *zip, kiln_zip_entry *entry, kiln_str *out_data) KILN_MUST_USE;
