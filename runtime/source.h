/* source.h: where in a model's source something stands; plain data shared by IR and plans.
 * Sources and ranges live as long as the model (or the graph's arena) that made them. */
#pragma once

#include "base/base.h"

/* A line of the program that a model was made from: the expression's first line. */
typedef struct kiln_original {
  char file[1024];
  char text[400]; /* of the line, cut where it is longer */
  int line, column;
  int64_t end; /* column after what is to be marked, from 0 */
} kiln_original;

/* Finds the original of byte `at`; false: not known. Filled from above; thread-safe. */
typedef struct kiln_source_origin {
  bool (*find)(struct kiln_source_origin *self, uint32_t at, kiln_original *out);
} kiln_source_origin;

typedef struct kiln_source {
  kiln_str name;  /* "code/__torch__/m.py", or the Python file where the archive tells it;
                     terminated */
  kiln_str text;  /* whole text; ranges are bytes of it */
  int first_line; /* number of the text's first line, usually 1 */
  kiln_source_origin *origin; /* of printed code: where it comes from; or NULL */
  const uint32_t *lines;      /* where each line begins; or NULL: they are counted when asked for */
  int line_count;
} kiln_source;

/* Fills `lines`, of a source that is asked for many places; memory in `arena`. */
void kiln_source_index_lines(kiln_source *source, kiln_arena *arena);

/* A range, and the call through which it was inlined. */
typedef struct kiln_source_range {
  const kiln_source *source; /* NULL: unknown */
  uint32_t begin, end;
  const char *function;                       /* qualified name of the function it stands in */
  const struct kiln_source_range *inlined_at; /* the call site, or NULL */
} kiln_source_range;

/* Line and column of the range's first byte; NULL and unknown sources give zeros. */
kiln_source_loc kiln_source_range_loc(const kiln_source_range *range);
/* Adds one traceback frame for `range`, then one for each call site around it, outwards, and the
 * same of the original program where it is known. Takes and returns `status`. */
kiln_status *kiln_source_range_trace(const kiln_source_range *range,
                                     kiln_status *status) KILN_MUST_USE;
