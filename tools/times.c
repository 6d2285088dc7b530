/* times.c: see times.h. */
#include "tools/times.h"

#include <stdlib.h>
#include <string.h>

static uint64_t cell_number(const tool_rows *rows, int row, int column) {
  return strtoull(tool_rows_cell(rows, row, column), NULL, 10);
}

static int by_place(const void *a, const void *b) {
  const tool_time *x = a, *y = b;
  int order = strcmp(x->kind, y->kind);
  if (order == 0) order = strcmp(x->name, y->name);
  if (order == 0) order = strcmp(x->file, y->file);
  return order ? order : strcmp(x->line, y->line);
}
static int by_time(const void *a, const void *b) {
  const tool_time *x = a, *y = b;
  return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : by_place(a, b);
}

tool_time *tool_times_of(const tool_rows *rows, int *out_count) {
  tool_time *all = tool_alloc(sizeof *all * (size_t)(rows->count + 1));
  int count = 0, kept = 0;
  for (int i = 1; i < rows->count; i++) {
    const uint64_t runs = cell_number(rows, i, 7);
    all[count++] = (tool_time){.kind = tool_rows_cell(rows, i, 0),
                               .name = tool_rows_cell(rows, i, 1),
                               .file = tool_rows_cell(rows, i, 4),
                               .line = tool_rows_cell(rows, i, 5),
                               .ns = cell_number(rows, i, 6),
                               .count = runs,
                               .flops = runs * cell_number(rows, i, 8),
                               .bytes = runs * cell_number(rows, i, 9)};
  }
  qsort(all, (size_t)count, sizeof *all, by_place);
  for (int i = 0; i < count; i++) {
    tool_time *last = kept ? &all[kept - 1] : NULL;
    if (!last || by_place(last, &all[i]) != 0) {
      all[kept++] = all[i];
      continue;
    }
    last->ns += all[i].ns;
    last->count += all[i].count;
    last->flops += all[i].flops;
    last->bytes += all[i].bytes;
  }
  qsort(all, (size_t)kept, sizeof *all, by_time);
  *out_count = kept;
  return all;
}

uint64_t tool_times_ns(const tool_time *times, int count, const char *name) {
  uint64_t ns = 0;
  for (int i = 0; *name && i < count; i++)
    if (strcmp(times[i].name, name) == 0) ns += times[i].ns;
  return ns;
}
