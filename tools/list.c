/* list.c: `kiln list`: prints a table of the library, columns aligned. */
#include <stdlib.h>
#include <string.h>

#include "kiln/debug.h"
#include "tools/commands.h"
#include "tools/json.h"

typedef struct list_options {
  bool json;
} list_options;

static const tool_option options_table[] = {
    {"--json", TOOL_SWITCH, offsetof(list_options, json), NULL, 0,
     "print an array of objects, keyed by the titles"},
};

enum { MAX_COLUMNS = 16 };
typedef struct rows {
  char *(*items)[MAX_COLUMNS];
  int count, columns;
} rows;

static void add_row(void *user, const char *const *columns, int count) {
  rows *r = user;
  if (count > MAX_COLUMNS) count = MAX_COLUMNS;
  r->items = tool_grow(r->items, sizeof *r->items * (size_t)(r->count + 1));
  for (int i = 0; i < MAX_COLUMNS; i++) {
    r->items[r->count][i] = i < count ? tool_format("%s", columns[i]) : NULL;
  }
  if (count > r->columns) r->columns = count;
  r->count++;
}

static const char *cell(const rows *r, int row, int column) {
  const char *text = r->items[row][column];
  return text ? text : "";
}

static void print_aligned(const rows *r) {
  int width[MAX_COLUMNS] = {0};
  for (int i = 0; i < r->count; i++) {
    for (int c = 0; c < r->columns; c++) {
      int len = (int)strlen(cell(r, i, c));
      if (len > width[c]) width[c] = len;
    }
  }
  for (int i = 0; i < r->count; i++) {
    int last = r->columns - 1;
    while (last > 0 && !*cell(r, i, last)) last--;
    for (int c = 0; c < last; c++) printf("%-*s  ", width[c], cell(r, i, c));
    printf("%s\n", cell(r, i, last));
  }
}

static void print_json(const rows *r) {
  cJSON *json = cJSON_CreateArray();
  for (int i = 1; i < r->count; i++) {
    cJSON *row = cJSON_CreateObject();
    for (int c = 0; c < r->columns; c++) {
      cJSON_AddStringToObject(row, cell(r, 0, c), cell(r, i, c));
    }
    cJSON_AddItemToArray(json, row);
  }
  tool_json_print(json, stdout);
}

static int run(const void *options, int count, char *const *operands) {
  const list_options *o = options;
  tool_settings settings = {0};
  kiln_context *context = NULL;
  rows r = {0};
  (void)count;
  kiln_status *status = tool_context(&settings, &context);
  if (!status) status = kiln_debug_list(context, operands[0], add_row, &r);
  int exit_status = status ? tool_report(status) : TOOL_GOOD;
  if (exit_status == TOOL_GOOD) {
    if (o->json) {
      print_json(&r);
    } else {
      print_aligned(&r);
    }
  }
  for (int i = 0; i < r.count; i++) {
    for (int c = 0; c < MAX_COLUMNS; c++) free(r.items[i][c]);
  }
  free(r.items);
  kiln_context_release(context);
  return exit_status;
}

const tool_command tool_command_list = {
    .name = "list",
    .usage = "kiln list passes|ops|flags|reasons [--json]",
    .summary = "list passes, operators, flags or reasons",
    .options = options_table,
    .option_count = sizeof options_table / sizeof options_table[0],
    .options_size = sizeof(list_options),
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
