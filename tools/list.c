/* list.c: `kiln list`: prints a table of the library, columns aligned. */
#include "kiln/debug.h"
#include "tools/commands.h"
#include "tools/rows.h"

typedef struct list_options {
  bool json;
} list_options;

static const tool_option options_table[] = {
    {"--json", TOOL_SWITCH, offsetof(list_options, json), NULL, 0,
     "print an array of objects, keyed by the titles"},
};

static int run(const void *options, int count, char *const *operands) {
  const list_options *o = options;
  tool_settings settings = {0};
  kiln_context *context = NULL;
  tool_rows rows = {0};
  (void)count;
  kiln_status *status = tool_context(&settings, &context);
  if (!status) status = kiln_debug_list(context, operands[0], tool_rows_add, &rows);
  int exit_status = status ? tool_report(status) : TOOL_GOOD;
  if (exit_status == TOOL_GOOD && o->json) tool_json_print(tool_rows_json(&rows), stdout);
  if (exit_status == TOOL_GOOD && !o->json) tool_rows_print(&rows);
  tool_rows_free(&rows);
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
