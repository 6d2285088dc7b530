/* cache.c: `kiln cache`: the kernels that are kept in files (the option cache_dir). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kiln/debug.h"
#include "tools/json.h"
#include "tools/rows.h"
#include "tools/session.h"

typedef struct cache_options {
  const char *method;
  tool_list inputs, input;
  int64_t calls, seed, bytes;
  bool json;
  tool_limits limits;
  tool_settings settings;
} cache_options;

#define FIELD(name) offsetof(cache_options, name)
static const tool_option options_table[] = {
    {"--bytes", TOOL_INT, FIELD(bytes), "N", 0,
     "prune: remove the longest unused until the rest have at most N bytes (0: no limit)"},
    {"--method", TOOL_TEXT, FIELD(method), "NAME", 0, "why-miss: what to call (forward)"},
    {"--inputs", TOOL_LIST, FIELD(inputs), "FILE.pt", 0,
     "why-miss: arguments; given several times, each file has its calls in turn"},
    {"--input", TOOL_LIST, FIELD(input), "SPEC", 0,
     "why-miss: one argument, instead of --inputs; see kiln run --help"},
    {"--calls", TOOL_INT, FIELD(calls), "N", 1, "why-miss: calls with each file (3)"},
    {"--seed", TOOL_INT, FIELD(seed), "N", 0, "seed of random inputs (0)"},
    {"--json", TOOL_SWITCH, FIELD(json), NULL, 0, "print an array of objects"},
    TOOL_LIMIT_OPTIONS(cache_options, limits),
    TOOL_SETTINGS_OPTIONS(cache_options, settings),
};

static void set_defaults(void *options) {
  cache_options *o = options;
  o->method = "forward";
  o->calls = 3;
  o->settings.compile = "sync";
}

/* -- The files -- */

enum { FILE_NAME, BYTES, USED, CPU, KERNEL, GROUP, UNUSED, USELESS };

static void print_file(const tool_rows *rows, int i) {
  const char *why = tool_rows_cell(rows, i, UNUSED), *group = tool_rows_cell(rows, i, GROUP);
  const time_t used = (time_t)strtoll(tool_rows_cell(rows, i, USED), NULL, 10);
  struct tm when;
  char day[32] = "";
  if (localtime_r(&used, &when)) strftime(day, sizeof day, "%Y-%m-%d %H:%M", &when);
  printf("%s  %9s bytes  used %s  %-8s  group %.8s%s%s\n", tool_rows_cell(rows, i, FILE_NAME),
         tool_rows_cell(rows, i, BYTES), day, tool_rows_cell(rows, i, CPU), *group ? group : "?",
         *why ? "  not used: " : "", why);
}

/* `bad`: only what is of no use to any CPU, and an exit status that says so. */
static int show(const cache_options *o, kiln_context *context, bool bad) {
  tool_rows rows = {0};
  uint64_t bytes = 0;
  int unused = 0, useless = 0;
  kiln_status *status = kiln_debug_cache(context, tool_rows_add, &rows);
  if (status) return tool_report(status);
  for (int i = 1; i < rows.count; i++) {
    const bool is_bad = *tool_rows_cell(&rows, i, USELESS);
    bytes += strtoull(tool_rows_cell(&rows, i, BYTES), NULL, 10);
    unused += *tool_rows_cell(&rows, i, UNUSED) != 0;
    useless += is_bad;
    if (!o->json && (is_bad || !bad)) print_file(&rows, i);
  }
  if (o->json) {
    tool_json_print(tool_rows_json(&rows), stdout);
  } else {
    const int files = rows.count > 0 ? rows.count - 1 : 0;
    printf("%d kernel%s, %llu bytes; %d of them not used\n", files, tool_plural((uint64_t)files),
           (unsigned long long)bytes, unused);
  }
  tool_rows_free(&rows);
  return bad && useless ? TOOL_DIFFERENT : TOOL_GOOD;
}

static int prune(const cache_options *o, kiln_context *context) {
  int removed = 0;
  kiln_status *status = kiln_debug_cache_prune(context, (uint64_t)o->bytes, &removed);
  if (status) return tool_report(status);
  printf("%d file%s removed\n", removed, tool_plural((uint64_t)removed));
  return show(o, context, false);
}

/* -- Why kernels are compiled -- */

static int print_lookups(const cache_options *o, kiln_context *context) {
  tool_rows rows = {0};
  int found = 0;
  kiln_status *status = kiln_debug_cache_lookups(context, tool_rows_add, &rows);
  if (status) return tool_report(status);
  for (int i = 1; i < rows.count; i++) {
    const bool is_found = *tool_rows_cell(&rows, i, 2);
    found += is_found;
    if (!o->json)
      printf("group %.8s: %s\n", tool_rows_cell(&rows, i, 0),
             is_found ? "found" : tool_rows_cell(&rows, i, 3));
  }
  if (o->json) {
    tool_json_print(tool_rows_json(&rows), stdout);
  } else {
    const int asked = rows.count > 0 ? rows.count - 1 : 0;
    printf("%d of %d kernel%s found\n", found, asked, tool_plural((uint64_t)asked));
  }
  tool_rows_free(&rows);
  return TOOL_GOOD;
}

static int why_miss(const cache_options *o, const char *model) {
  const kiln_limits limits = tool_limits_of(&o->limits);
  tool_session s = {0};
  int exit_status = tool_session_open(&s, &o->settings, model, &limits, tool_print_to_stderr);
  if (exit_status < 0) {
    kiln_status *status = kiln_debug_cache_watch(s.context);
    if (status) exit_status = tool_report(status);
  }
  if (exit_status < 0)
    exit_status =
        tool_session_call_all(&s, o->method, &o->inputs, &o->input, o->seed, o->calls, &limits);
  if (exit_status < 0) exit_status = print_lookups(o, s.context);
  tool_session_close(&s);
  return exit_status;
}

static int run_in(const cache_options *o, const char *what, kiln_context *context) {
  if (strcmp(what, "ls") == 0) return show(o, context, false);
  if (strcmp(what, "verify") == 0) return show(o, context, true);
  return prune(o, context);
}

static int run(const void *options, char *const *operands) {
  const cache_options *o = options;
  const char *what = operands[0], *model = operands[1];
  const bool calls = strcmp(what, "why-miss") == 0;
  if (!calls && strcmp(what, "ls") != 0 && strcmp(what, "verify") != 0 &&
      strcmp(what, "prune") != 0)
    return tool_usage_error("cache: '%s' is not ls, verify, prune or why-miss", what);
  if (calls != (model != NULL))
    return tool_usage_error(calls ? "cache why-miss: give a model" : "cache %s: no model is wanted",
                            what);
  if (o->inputs.count && o->input.count)
    return tool_usage_error("cache: give --inputs or --input, not both");
  if (calls) return why_miss(o, model);
  kiln_context *context = NULL;
  kiln_status *status = tool_context(&o->settings, &context);
  const int exit_status = status ? tool_report(status) : run_in(o, what, context);
  kiln_context_release(context);
  return exit_status;
}

const tool_command tool_command_cache = {
    .name = "cache",
    .usage = "kiln cache ls|verify|prune|why-miss [MODEL] [options]",
    .summary = "look at the kernels that are kept in files (KILN_CACHE_DIR)",
    .details =
        "ls tells of each file when it was used last, and why it is not, where it is not:\n"
        "damaged, another CPU's, or another Kiln's. verify prints what no CPU can use, and exits\n"
        "with 1 where there is any. prune removes that, and with --bytes the longest unused. "
        "why-miss calls a\n"
        "model and tells of each kernel whether it was found, or why not; it writes nothing.\n",
    TOOL_OPTIONS(options_table, cache_options),
    .defaults = set_defaults,
    .min_operands = 1,
    .max_operands = 2,
    .run = run,
};
