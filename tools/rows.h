/* rows.h: tables that the library gives row by row (kiln_debug_row_fn), kept, printed, or as JSON.
 */
#pragma once

#include "tools/json.h"

enum { TOOL_MAX_COLUMNS = 16 };

/* Starts as {0}. The first row holds the titles. */
typedef struct tool_rows {
  char *(*items)[TOOL_MAX_COLUMNS];
  int count, columns;
} tool_rows;

/* A kiln_debug_row_fn; `user` is the tool_rows. */
void tool_rows_add(void *user, const char *const *columns, int count);
/* "" where the row is shorter. */
const char *tool_rows_cell(const tool_rows *rows, int row, int column);
/* Columns aligned. */
void tool_rows_print(const tool_rows *rows);
/* Columns aligned but for the last, which stands below its row, indented and broken at blanks, so
 * that lines have at most 80 columns. */
void tool_rows_print_wrapped(const tool_rows *rows);
/* An array of objects, keyed by the titles. */
cJSON *tool_rows_json(const tool_rows *rows);
void tool_rows_free(tool_rows *rows);
