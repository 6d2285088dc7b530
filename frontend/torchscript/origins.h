/* origins.h: source maps: from an archive's printed code to the lines of Python behind it.
 *
 * A code file may have a table beside it (m.py.debug_pkl): for bytes of the printed code, ranges of
 * the original text, with its file and first line. It is read when an error is first told, never at
 * the load, by the pickle reader with nothing allowed but lists of ints; what does not have the
 * expected form is as if it were not there. Thread-safe. */
#pragma once

#include "frontend/file.h"
#include "runtime/source.h"
#include "runtime/type.h"

/* The origins of one code file. Lives in `arena`; `env`, `mapping` and `types` outlive it.
 * `entry` is copied: "code/__torch__/m.py.debug_pkl". */
kiln_source_origin *kiln__origins_create(kiln_arena *arena, kiln_env *env, kiln_mapping *mapping,
                                         kiln_type_table *types, kiln_str entry);
/* Gives back what was read. NULL is fine. */
void kiln__origins_deinit(kiln_source_origin *origin);
