/* profile_file.h: what profiling runs saw, in files: of one process for the next ones.
 *
 * A file holds profiles of any number of models. A profile belongs to a site, the digest of the
 * graph that was profiled, and has one record for each of the graph's prim::profile nodes; what a
 * site has seen in different ways is kept apart, with how often it was. Nothing depends on the CPU,
 * or on the version beyond the graphs. Files of a fleet are merged by reading one after the other.
 *
 * What is read decides what is compiled, never what is true: guards ask each call. */
#pragma once

#include "base/folder.h"
#include "base/map.h"
#include "profiler/profile.h"

/* How often a file may be split: profiles of one site that are kept, the most frequent first. */
enum { KILN_PROFILE_WAYS = 4 };

typedef struct kiln_kept_profile {
  struct kiln_kept_profile *next; /* of the same site, as frequent or less */
  const char *site;
  int count;
  kiln_type_record *records;
  int64_t times; /* that a process has seen it */
} kiln_kept_profile;

/* In an arena; zeroed but for `arena` and `sites`. */
typedef struct kiln_profile_file {
  kiln_arena *arena;
  kiln_map sites;   /* site -> kiln_kept_profile */
  kiln_map methods; /* those that any begins with */
  KILN_VEC(const char *) names;
  bool changed; /* it has profiles that were not read */
} kiln_profile_file;

/* All in a scope. */
kiln_profile_file kiln_profile_file_in(kiln_arena *arena);
/* The most frequent profile of a site that has so many records, or NULL. */
const kiln_kept_profile *kiln_profile_file_find(const kiln_profile_file *file, const char *site,
                                                int count);
/* Whether a method has any: its sites begin with its name and '#'. */
bool kiln_profile_file_knows(const kiln_profile_file *file, const char *method);
/* Counts a profile, `times` more. */
void kiln_profile_file_add(kiln_profile_file *file, const char *site,
                           const kiln_type_record *records, int count, int64_t times);
void kiln_profile_file_add_all(kiln_profile_file *file, const kiln_profile_file *from);
/* Adds what the file of that path has. KILN_NOT_FOUND: there is none; KILN_INVALID_FILE says why it
 * is not used. */
kiln_status *kiln_profile_file_read(kiln_profile_file *file, const char *path) KILN_MUST_USE;
/* Writes all. */
kiln_status *kiln_profile_file_write(const kiln_profile_file *file, const char *path) KILN_MUST_USE;
