/* perf.h: tells Linux's `perf` of generated kernels, as the flag of that name asks: what it reads
 * to name code that lies in no file. For codegen/ only.
 *
 *   map      a line for each kernel in /tmp/perf-PID.map, "START SIZE NAME" in hexadecimal
 *            (tools/perf/Documentation/jit-interface.txt of Linux)
 *   jitdump  its code too, in jit-PID.dump of a folder of its own, for `perf inject --jit`, which
 *            makes files of it that `perf annotate` shows (jitdump-specification.txt)
 *
 * Kernels are named kiln_HASH, the hash that `kiln explain` and `kiln graph --site` know. Calls may
 * come from several threads. A child of a fork tells nothing. */
#pragma once

#include "base/mem.h"

typedef struct kiln__perf kiln__perf;

/* NULL where the flag is off. What cannot be opened, or is not the user's own file, is refused. */
kiln_status *kiln__perf_open(kiln_mem *mem, int kind, kiln__perf **out) KILN_MUST_USE;
/* A kernel that was loaded; NULL is fine. What cannot be written is left out. */
void kiln__perf_tell(kiln__perf *perf, const char *name, const void *code, size_t size);
void kiln__perf_close(kiln__perf *perf);
