/* spec.h: one argument of a call from a SPEC of --input. */
#pragma once

#include "tools/tool.h"

extern const char tool_spec_help[];

/* Makes a value of `text`, the VALUE of `spec` (which complaints name). Not a VALUE: *out_is_value
 * is false. A complaint that was made already leaves *out_value NULL. `seed` makes the elements of
 * random tensors and moves on. */
kiln_status *tool_spec_make(kiln_context *context, const char *spec, const char *text,
                            uint64_t *seed, bool *out_is_value, kiln_value **out_value);
/* What is wrong with a `text` that is no VALUE; `name` is what stands before it ("n=", ""). Freed
 * by the caller. */
char *tool_spec_advice(const char *name, const char *text);
