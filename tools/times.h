/* times.h: what calls that were timed spent (kiln_debug_model_times), a place of the source at a
 * time. */
#pragma once

#include "tools/rows.h"

/* All runs of an operator, a group or a step of the interpreter at one line. Strings lie in the
 * rows. */
typedef struct tool_time {
  const char *kind, *name, *file, *line;
  uint64_t ns, count;
  uint64_t flops, bytes; /* of all runs; 0: none, or not known */
} tool_time;

/* The longest first; *out_count of them, which the caller frees. */
tool_time *tool_times_of(const tool_rows *rows, int *out_count);
/* Of all that have the name. */
uint64_t tool_times_ns(const tool_time *times, int count, const char *name);
