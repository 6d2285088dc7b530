/* fuzz.h: the fuzz targets, one function each, for libFuzzer (main.c) and for the replay of what
 * was found (replay_test.c).
 *
 * A target takes any bytes and returns; what must never be (a crash, an internal error, a graph
 * that does not verify, memory that stays) ends the process with a report. Targets keep a context
 * between inputs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kiln/kiln.h"

/* X(name, how inputs are changed, what an input is) */
#define FUZZ_TARGETS(X)                                                           \
  X(zip, bytes, "a file given to the loader as it is")                            \
  X(pickle, bytes, "data.pkl of an archive with some classes")                    \
  X(source, text, "a code file of an archive")                                    \
  X(graph, text, "IR text: parsed, verified, printed, parsed again")              \
  X(values, bytes, "a torch.save archive, or .npy")                               \
  X(archive, archive, "an archive: loaded and run under limits")                  \
  X(program, text, "source of a module: loaded and its methods run under limits") \
  X(operators, operator, "an operator and a seed: one call with and without the JIT")

#define FUZZ_DECLARE(name, change, meaning) void fuzz_##name(const uint8_t *data, size_t size);
FUZZ_TARGETS(FUZZ_DECLARE)
#undef FUZZ_DECLARE

/* Reports and aborts unless `status` is NULL; takes it. */
void fuzz_must(kiln_status *status);
/* Takes a status that may be an error, but none of Kiln's own faults. */
void fuzz_may(kiln_status *status);
/* Loads the archive, makes an instance and calls its methods (archive.c). */
void fuzz_run_archive(const uint8_t *data, size_t size);
