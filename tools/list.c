/* list.c: `kiln list`: prints a table of the library, columns aligned. */
#include "kiln/debug.h"
#include <string.h>

#include "tools/commands.h"
#include "tools/rows.h"

typedef struct list_options {
  bool json;
  tool_settings settings;
} list_options;

static const tool_option options_table[] = {
    {"--json", TOOL_SWITCH, offsetof(list_options, json), NULL, 0,
     "print an array of objects, keyed by the titles"},
    TOOL_SETTINGS_OPTIONS(list_options, settings),
};

typedef struct list_job {
  tool_rows rows;
  const char *word; /* rows whose name holds it; NULL: all */
} list_job;

static void add_row(void *user, const char *const *columns, int count) {
  list_job *job = user;
  const bool is_title = job->rows.count == 0;
  if (is_title || !job->word || strstr(columns[0], job->word)) {
    tool_rows_add(&job->rows, columns, count);
  }
}

/* For people: what a flag is now and who said so, in 80 columns; and the channels of the log. */
static kiln_status *print_flags(kiln_context *context, const tool_rows *flags) {
  static const int shown[] = {0, 2, 3, 5, 6}; /* variable, value, source, values, meaning */
  enum { SHOWN = sizeof shown / sizeof shown[0] };
  tool_rows some = {0}, channels = {0};
  for (int i = 0; i < flags->count; i++) {
    const char *columns[SHOWN];
    for (int c = 0; c < SHOWN; c++) columns[c] = tool_rows_cell(flags, i, shown[c]);
    tool_rows_add(&some, columns, SHOWN);
  }
  tool_rows_print_wrapped(&some);
  kiln_status *status = kiln_debug_list(context, "channels", tool_rows_add, &channels);
  if (!status) printf("\nchannels of KILN_LOG:\n");
  if (!status) tool_rows_print(&channels);
  tool_rows_free(&channels);
  tool_rows_free(&some);
  return status;
}

static int run(const void *options, char *const *operands) {
  const list_options *o = options;
  kiln_context *context = NULL;
  list_job job = {.word = operands[1]};
  kiln_status *status = tool_context(&o->settings, &context);
  if (!status) status = kiln_debug_list(context, operands[0], add_row, &job);
  if (!status && o->json) {
    tool_json_print(tool_rows_json(&job.rows), stdout);
  } else if (!status && strcmp(operands[0], "flags") == 0) {
    status = print_flags(context, &job.rows);
  } else if (!status) {
    tool_rows_print(&job.rows);
  }
  const int exit_status = status ? tool_report(status) : TOOL_GOOD;
  tool_rows_free(&job.rows);
  kiln_context_release(context);
  return exit_status;
}

const tool_command tool_command_list = {
    .name = "list",
    .usage = "kiln list passes|ops|flags|channels|reasons|events [WORD] [--json]",
    .summary = "list passes, operators, flags, log channels, reasons or events",
    .details = "With WORD only rows whose name holds it.\n",
    TOOL_OPTIONS(options_table, list_options),
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
