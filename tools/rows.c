/* rows.c: tables given row by row. */
#include "tools/rows.h"

#include <stdlib.h>
#include <string.h>

void tool_rows_add(void *user, const char *const *columns, int count) {
  tool_rows *r = user;
  if (count > TOOL_MAX_COLUMNS) count = TOOL_MAX_COLUMNS;
  r->items = tool_grow(r->items, sizeof *r->items * (size_t)(r->count + 1));
  for (int i = 0; i < TOOL_MAX_COLUMNS; i++) {
    r->items[r->count][i] = i < count ? tool_format("%s", columns[i]) : NULL;
  }
  if (count > r->columns) r->columns = count;
  r->count++;
}

const char *tool_rows_cell(const tool_rows *rows, int row, int column) {
  const char *text = rows->items[row][column];
  return text ? text : "";
}

/* The first `columns` of each row; `after` a row, if not NULL, prints what follows it. */
static void print_columns(const tool_rows *r, int columns,
                          void (*after)(const tool_rows *rows, int row)) {
  int width[TOOL_MAX_COLUMNS] = {0};
  for (int i = 0; i < r->count; i++) {
    for (int c = 0; c < columns; c++) {
      int len = (int)strlen(tool_rows_cell(r, i, c));
      if (len > width[c]) width[c] = len;
    }
  }
  for (int i = 0; i < r->count; i++) {
    int last = columns - 1;
    while (last > 0 && !*tool_rows_cell(r, i, last)) last--;
    for (int c = 0; c < last; c++) printf("%-*s  ", width[c], tool_rows_cell(r, i, c));
    printf("%s\n", tool_rows_cell(r, i, last));
    if (after) after(r, i);
  }
}

void tool_rows_print(const tool_rows *r) { print_columns(r, r->columns, NULL); }

static void print_last_wrapped(const tool_rows *r, int row) {
  enum { WIDTH = 76 };
  const char *text = tool_rows_cell(r, row, r->columns - 1);
  while (*text && row > 0) {
    size_t len = strlen(text);
    if (len > WIDTH) {
      for (len = WIDTH; len > 0 && text[len] != ' ';) len--;
      if (len == 0) len = strcspn(text, " ");
    }
    printf("    %.*s\n", (int)len, text);
    text += len;
    text += strspn(text, " ");
  }
}

void tool_rows_print_wrapped(const tool_rows *r) {
  print_columns(r, r->columns - 1, print_last_wrapped);
}

cJSON *tool_rows_json(const tool_rows *r) {
  cJSON *json = cJSON_CreateArray();
  for (int i = 1; i < r->count; i++) {
    cJSON *row = cJSON_CreateObject();
    for (int c = 0; c < r->columns; c++) {
      cJSON_AddStringToObject(row, tool_rows_cell(r, 0, c), tool_rows_cell(r, i, c));
    }
    cJSON_AddItemToArray(json, row);
  }
  return json;
}

void tool_rows_free(tool_rows *r) {
  for (int i = 0; i < r->count; i++) {
    for (int c = 0; c < TOOL_MAX_COLUMNS; c++) free(r->items[i][c]);
  }
  free(r->items);
  *r = (tool_rows){0};
}
