/* compare.h: is a result what was recorded? |got - want| <= atol + rtol * |want|, NaN equals NaN;
 * dtypes, shapes, ints, strings, dict order and lists exactly. */
#pragma once

#include "tools/tool.h"

typedef struct tool_comparison {
  double rtol, atol;
  double worst; /* largest error so far as a part of its tolerance */
  char *reason; /* why the values differ; NULL: they do not. Freed by the caller */
} tool_comparison;

/* Adds to `worst`; false with `reason` when the values differ. `where` names the value: "result".
 */
bool tool_compare(tool_comparison *c, const char *where, const kiln_value *want,
                  const kiln_value *got);
