/* source.h: where in a model's source something stands; plain data shared by IR and plans.
 * Sources and ranges live as long as the model (or the graph's arena) that made them. */
#ifndef KILN_RUNTIME_SOURCE_H
#define KILN_RUNTIME_SOURCE_H

#include "base/base.h"

typedef struct kiln_source {
  kiln_str name;  /* "code/__torch__/m.py", or the Python file where the archive tells it;
                     terminated */
  kiln_str text;  /* whole text; ranges are bytes of it */
  int first_line; /* number of the text's first line, usually 1 */
} kiln_source;

/* A range, and the call through which it was inlined. */
typedef struct kiln_source_range {
  const kiln_source *source; /* NULL: unknown */
  uint32_t begin, end;
  const char *function;                       /* qualified name of the function it stands in */
  const struct kiln_source_range *inlined_at; /* the call site, or NULL */
} kiln_source_range;

/* Line and column of the range's first byte; NULL and unknown sources give zeros. */
kiln_source_loc kiln_source_range_loc(const kiln_source_range *range);
/* Adds one traceback frame for `range`, then one for each call site around it, outwards. Takes and
 * returns `status`. */
kiln_status *kiln_source_range_trace(const kiln_source_range *range,
                                     kiln_status *status) KILN_MUST_USE;

#endif
