/* explain.c: `kiln explain`: where the time of a call goes, which groups were made, what guards and
 * fallbacks did, what was refused and why; what costs most stands first. */
#include <stdlib.h>
#include <string.h>

#include "kiln/debug.h"
#include "tools/commands.h"
#include "tools/session.h"
#include "tools/times.h"

typedef struct explain_options {
  const char *method;
  tool_list inputs, input;
  int64_t calls, seed;
  bool json;
  tool_limits limits;
  tool_settings settings;
} explain_options;

#define FIELD(name) offsetof(explain_options, name)
static const tool_option options_table[] = {
    {"--method", TOOL_TEXT, FIELD(method), "NAME", 0, "what to call (forward)"},
    {"--inputs", TOOL_LIST, FIELD(inputs), "FILE.pt", 0,
     "arguments; given several times, each file has its calls in turn"},
    {"--input", TOOL_LIST, FIELD(input), "SPEC", 0,
     "one argument, instead of --inputs; see kiln run --help"},
    {"--calls", TOOL_INT, FIELD(calls), "N", 1, "calls with each file (3)"},
    {"--seed", TOOL_INT, FIELD(seed), "N", 0, "seed of random inputs (0)"},
    {"--json", TOOL_SWITCH, FIELD(json), NULL, 0, "print one object"},
    TOOL_LIMIT_OPTIONS(explain_options, limits),
    TOOL_SETTINGS_OPTIONS(explain_options, settings),
};

static void set_defaults(void *options) {
  explain_options *o = options;
  o->method = "forward";
  o->calls = 3;
  o->settings.compile = "sync";
}

/* -- What is told -- */

typedef struct refused {
  const char *reason, *sentence, *detail, *file;
  int line;
  uint64_t count, places;
  uint64_t ns; /* of the operator, where it is named */
} refused;

typedef struct report {
  tool_rows times, groups, misses, ledger;
  tool_time *spent;
  int spent_count;
  refused *refused;
  int refused_count;
  uint64_t total_ns, group_ns;
} report;

static uint64_t cell_number(const tool_rows *rows, int row, int column) {
  return strtoull(tool_rows_cell(rows, row, column), NULL, 10);
}

static void sum_times(report *r) {
  r->spent = tool_times_of(&r->times, &r->spent_count);
  for (int i = 0; i < r->spent_count; i++) {
    r->total_ns += r->spent[i].ns;
    if (strcmp(r->spent[i].kind, "group") == 0) r->group_ns += r->spent[i].ns;
  }
}

static uint64_t time_of(const report *r, const char *name) {
  return tool_times_ns(r->spent, r->spent_count, name);
}

static int by_cost(const void *a, const void *b) {
  const refused *x = a, *y = b;
  if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
  if (x->count != y->count) return x->count < y->count ? 1 : -1;
  return strcmp(x->reason, y->reason);
}

/* Sums by reason and operator. */
static void sum_refusals(report *r, kiln_model *model) {
  kiln_debug_refusal_info info;
  kiln_status *status = NULL;
  for (int i = 0; !(status = kiln_debug_refusal(model, i, &info)); i++) {
    refused *at = r->refused, *end = at + r->refused_count;
    while (at < end &&
           (strcmp(at->reason, info.reason) != 0 || strcmp(at->detail, info.detail) != 0))
      at++;
    if (at == end) {
      r->refused = tool_grow(r->refused, sizeof *r->refused * (size_t)(r->refused_count + 1));
      at = &r->refused[r->refused_count++];
      *at = (refused){.reason = info.reason,
                      .sentence = info.sentence,
                      .detail = info.detail,
                      .file = info.file,
                      .line = info.line,
                      .ns = time_of(r, info.detail)};
    }
    at->count += info.count;
    at->places++;
  }
  kiln_status_destroy(status);
  if (r->refused_count) qsort(r->refused, (size_t)r->refused_count, sizeof *r->refused, by_cost);
}

static kiln_status *make_report(report *r, kiln_model *model) {
  kiln_status *status = kiln_debug_model_times(model, tool_rows_add, &r->times);
  if (!status) status = kiln_debug_model_groups(model, tool_rows_add, &r->groups);
  if (!status) status = kiln_debug_model_misses(model, tool_rows_add, &r->misses);
  if (!status) status = kiln_debug_model_ledger(model, tool_rows_add, &r->ledger);
  if (status) return status;
  sum_times(r);
  sum_refusals(r, model);
  return NULL;
}

static void free_report(report *r) {
  free(r->spent);
  free(r->refused);
  tool_rows_free(&r->times);
  tool_rows_free(&r->groups);
  tool_rows_free(&r->misses);
  tool_rows_free(&r->ledger);
}

/* -- As text -- */

static double ms(uint64_t ns) { return (double)ns * 1e-6; }
static double share(const report *r, uint64_t ns) {
  return r->total_ns ? 100.0 * (double)ns / (double)r->total_ns : 0;
}

static void print_totals(const kiln_model *model, const report *r) {
  kiln_counters c;
  kiln_model_counters(model, &c);
  printf("%llu call%s, %llu run%s that recorded types (fallbacks' too), %llu group%s, %llu "
         "kernel%s in %.3f ms, "
         "%llu failed\n",
         (unsigned long long)c.calls, tool_plural(c.calls), (unsigned long long)c.profiled_runs,
         tool_plural(c.profiled_runs), (unsigned long long)c.groups, tool_plural(c.groups),
         (unsigned long long)c.compiles, tool_plural(c.compiles), (double)c.compile_ns * 1e-6,
         (unsigned long long)c.compile_failures);
  printf("guards held %llu time%s and failed %llu; %llu fallback call%s, deepest level %u, "
         "%llu executor%s used up\n",
         (unsigned long long)c.guard_hits, tool_plural(c.guard_hits),
         (unsigned long long)c.guard_misses, (unsigned long long)c.fallback_calls,
         tool_plural(c.fallback_calls), c.max_depth, (unsigned long long)c.simple_plans,
         tool_plural(c.simple_plans));
  printf("time: %.3f ms in plans that serve, %.1f %% of it in groups, %.1f %% outside\n",
         ms(r->total_ns), share(r, r->group_ns), share(r, r->total_ns - r->group_ns));
}

static void print_outside(const report *r) {
  enum { MOST = 20 };
  int shown = 0, left = 0;
  uint64_t left_ns = 0;
  for (int i = 0; i < r->spent_count; i++) {
    const tool_time *s = &r->spent[i];
    if (strcmp(s->kind, "group") == 0) continue;
    if (shown == MOST) {
      left++;
      left_ns += s->ns;
      continue;
    }
    if (shown++ == 0) puts("\noutside of groups, the longest first:");
    printf("  %9.3f ms %5.1f %%  %llu run%s  %s%s%s%s%s\n", ms(s->ns), share(r, s->ns),
           (unsigned long long)s->count, tool_plural(s->count), s->name, *s->file ? ", " : "",
           s->file, *s->file ? ":" : "", s->line);
  }
  if (left) printf("  %9.3f ms %5.1f %%  %d more\n", ms(left_ns), share(r, left_ns), left);
}

typedef struct group_line {
  kiln_group_counters counters;
  int row;
  uint64_t ns;
} group_line;

static int by_group_time(const void *a, const void *b) {
  const group_line *x = a, *y = b;
  return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : x->row - y->row;
}

/* Groups with their times, the longest first; *out_count of them, freed by the caller. */
static group_line *sort_groups(const report *r, const kiln_model *model, int *out_count) {
  group_line *lines = tool_alloc(sizeof *lines * (size_t)(r->groups.count + 1));
  int count = 0;
  for (int row = 1; row < r->groups.count; row++) {
    group_line *g = &lines[count];
    kiln_status *status = kiln_model_group(model, row - 1, &g->counters);
    if (!status) {
      g->row = row;
      g->ns = time_of(r, g->counters.name);
      count++;
    }
    kiln_status_destroy(status);
  }
  qsort(lines, (size_t)count, sizeof *lines, by_group_time);
  *out_count = count;
  return lines;
}

static void print_groups(const report *r, const kiln_model *model) {
  int count = 0;
  group_line *lines = sort_groups(r, model, &count);
  puts(count ? "\ngroups, the longest first:" : "\nno group was formed");
  for (int i = 0; i < count; i++) {
    const kiln_group_counters *g = &lines[i].counters;
    const int row = lines[i].row;
    const char *file = tool_rows_cell(&r->groups, row, 3);
    printf("  %9.3f ms %5.1f %%  group %s, level %u: %u operator%s (%s) -> %s", ms(lines[i].ns),
           share(r, lines[i].ns), g->name, g->depth, g->operators, tool_plural(g->operators),
           tool_rows_cell(&r->groups, row, 1), tool_rows_cell(&r->groups, row, 2));
    if (*file) printf(", %s:%s", file, tool_rows_cell(&r->groups, row, 4));
    printf("; %llu run%s, guard %llu hit%s, %llu miss%s", (unsigned long long)g->runs,
           tool_plural(g->runs), (unsigned long long)g->guard_hits, tool_plural(g->guard_hits),
           (unsigned long long)g->guard_misses, g->guard_misses == 1 ? "" : "es");
    if (g->reason) {
      printf("; not compiled: %s\n", g->reason);
    } else {
      const char *schedule = tool_rows_cell(&r->groups, row, 5);
      printf("; compiled in %.3f ms, %.8s%s%s\n", (double)g->compile_ns * 1e-6, g->hash,
             *schedule ? "; schedule: " : "", schedule);
    }
  }
  free(lines);
}

/* The columns of kiln_debug_model_ledger. */
enum {
  FUNCTION,
  SITE,
  LEVEL,
  MADE,
  INTERPRETED,
  INTERPRETED_RUNS,
  COMPILED,
  COMPILED_RUNS,
  RETIRED
};

static void print_ledger(const report *r) {
  for (int i = 1; i < r->ledger.count; i++) {
    const tool_rows *l = &r->ledger;
    const uint64_t plain = cell_number(l, i, INTERPRETED), own = cell_number(l, i, COMPILED);
    const uint64_t made = cell_number(l, i, MADE);
    if (i == 1) puts("\nlevels, what they took and what they save in a run:");
    printf("  %9.3f ms  %s, level %s: ", ms(made), tool_rows_cell(l, i, FUNCTION),
           tool_rows_cell(l, i, LEVEL));
    if (!plain || !own) {
      puts("no runs to compare");
      continue;
    }
    printf("interpreted %.3f ms, compiled %.3f (the best of %s and %s)", ms(plain), ms(own),
           tool_rows_cell(l, i, INTERPRETED_RUNS), tool_rows_cell(l, i, COMPILED_RUNS));
    if (own < plain) {
      const uint64_t even = made / (plain - own) + 1;
      printf("; breaks even after %llu run%s\n", (unsigned long long)even, tool_plural(even));
    } else {
      puts(*tool_rows_cell(l, i, RETIRED) ? "; retired: the interpreter serves"
                                          : "; saves nothing");
    }
  }
}

static void print_misses(const report *r) {
  for (int i = 1; i < r->misses.count; i++) {
    const tool_rows *m = &r->misses;
    if (i == 1) puts("\nguards that failed:");
    printf("  call %s: %%%s was recorded as %s and is %s", tool_rows_cell(m, i, 6),
           tool_rows_cell(m, i, 1), tool_rows_cell(m, i, 2), tool_rows_cell(m, i, 3));
    if (*tool_rows_cell(m, i, 4)) {
      printf(", %s:%s", tool_rows_cell(m, i, 4), tool_rows_cell(m, i, 5));
    }
    if (cell_number(m, i, 7) > 1) printf(" (%s times)", tool_rows_cell(m, i, 7));
    printf(", in %s\n", tool_rows_cell(m, i, 0));
  }
}

static void print_refusals(const report *r) {
  for (int i = 0; i < r->refused_count; i++) {
    const refused *f = &r->refused[i];
    if (i == 0) puts("\nrefused, the costliest first:");
    printf("  %9.3f ms  %s: %s%s%s", ms(f->ns), f->reason, f->detail, *f->detail ? ": " : "",
           f->sentence);
    if (f->count > 1) printf(" (%llu times)", (unsigned long long)f->count);
    if (f->file) printf(", %s%s:%d", f->places > 1 ? "first " : "", f->file, f->line);
    puts("");
  }
}

/* -- As JSON -- */

static cJSON *groups_json(const report *r, const kiln_model *model) {
  cJSON *all = cJSON_CreateArray();
  int count = 0;
  group_line *lines = sort_groups(r, model, &count);
  for (int i = 0; i < count; i++) {
    const kiln_group_counters *g = &lines[i].counters;
    const int row = lines[i].row;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "name", g->name);
    cJSON_AddStringToObject(json, "operators", tool_rows_cell(&r->groups, row, 1));
    cJSON_AddStringToObject(json, "shapes", tool_rows_cell(&r->groups, row, 2));
    cJSON_AddStringToObject(json, "file", tool_rows_cell(&r->groups, row, 3));
    cJSON_AddItemToObject(json, "line", tool_json_int((int64_t)cell_number(&r->groups, row, 4)));
    cJSON_AddItemToObject(json, "level", tool_json_int(g->depth));
    cJSON_AddItemToObject(json, "runs", tool_json_int((int64_t)g->runs));
    cJSON_AddNumberToObject(json, "ms", ms(lines[i].ns));
    cJSON_AddItemToObject(json, "guard_hits", tool_json_int((int64_t)g->guard_hits));
    cJSON_AddItemToObject(json, "guard_misses", tool_json_int((int64_t)g->guard_misses));
    cJSON_AddNumberToObject(json, "compile_ms", (double)g->compile_ns * 1e-6);
    cJSON_AddStringToObject(json, "hash", g->hash);
    cJSON_AddStringToObject(json, "schedule", tool_rows_cell(&r->groups, row, 5));
    cJSON_AddItemToObject(json, "reason",
                          g->reason ? cJSON_CreateString(g->reason) : cJSON_CreateNull());
    cJSON_AddItemToArray(all, json);
  }
  free(lines);
  return all;
}

static cJSON *outside_json(const report *r) {
  cJSON *all = cJSON_CreateArray();
  for (int i = 0; i < r->spent_count; i++) {
    const tool_time *s = &r->spent[i];
    if (strcmp(s->kind, "group") == 0) continue;
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "kind", s->kind);
    cJSON_AddStringToObject(json, "name", s->name);
    cJSON_AddStringToObject(json, "file", s->file);
    cJSON_AddItemToObject(json, "line", tool_json_int(strtoll(s->line, NULL, 10)));
    cJSON_AddItemToObject(json, "runs", tool_json_int((int64_t)s->count));
    cJSON_AddNumberToObject(json, "ms", ms(s->ns));
    cJSON_AddItemToArray(all, json);
  }
  return all;
}

static cJSON *refusals_json(const report *r) {
  cJSON *all = cJSON_CreateArray();
  for (int i = 0; i < r->refused_count; i++) {
    const refused *f = &r->refused[i];
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "reason", f->reason);
    cJSON_AddStringToObject(json, "sentence", f->sentence);
    cJSON_AddStringToObject(json, "detail", f->detail);
    cJSON_AddStringToObject(json, "file", f->file ? f->file : "");
    cJSON_AddItemToObject(json, "line", tool_json_int(f->line));
    cJSON_AddItemToObject(json, "count", tool_json_int((int64_t)f->count));
    cJSON_AddNumberToObject(json, "ms", ms(f->ns));
    cJSON_AddItemToArray(all, json);
  }
  return all;
}

static void print_json(const report *r, const kiln_model *model) {
  kiln_counters counters;
  kiln_model_counters(model, &counters);
  cJSON *json = cJSON_CreateObject();
  cJSON_AddItemToObject(json, "counters", tool_json_counters(&counters));
  cJSON_AddNumberToObject(json, "ms", ms(r->total_ns));
  cJSON_AddNumberToObject(json, "ms_in_groups", ms(r->group_ns));
  cJSON_AddItemToObject(json, "outside", outside_json(r));
  cJSON_AddItemToObject(json, "groups", groups_json(r, model));
  cJSON_AddItemToObject(json, "ledger", tool_rows_json(&r->ledger));
  cJSON_AddItemToObject(json, "guards_failed", tool_rows_json(&r->misses));
  cJSON_AddItemToObject(json, "refusals", refusals_json(r));
  tool_json_print(json, stdout);
}

/* -- The command -- */

static void print(const report *r, const kiln_model *model) {
  print_totals(model, r);
  print_outside(r);
  print_groups(r, model);
  print_ledger(r);
  print_misses(r);
  print_refusals(r);
}

static int make_calls(const explain_options *o, tool_session *s, const kiln_limits *limits) {
  kiln_status *status = kiln_debug_model_time(s->model, 1);
  if (status) return tool_report(status);
  return tool_session_call_all(s, o->method, &o->inputs, &o->input, o->seed, o->calls, limits);
}

static int run(const void *options, char *const *operands) {
  const explain_options *o = options;
  const kiln_limits limits = tool_limits_of(&o->limits);
  tool_session s = {0};
  report r = {0};
  if (o->inputs.count && o->input.count) {
    return tool_usage_error("explain: give --inputs or --input, not both");
  }
  int exit_status = tool_session_open(&s, &o->settings, operands[0], &limits, tool_print_to_stderr);
  if (exit_status < 0) exit_status = make_calls(o, &s, &limits);
  if (exit_status < 0) {
    kiln_status *status = make_report(&r, s.model);
    if (!status && o->json) print_json(&r, s.model);
    if (!status && !o->json) print(&r, s.model);
    exit_status = status ? tool_report(status) : TOOL_GOOD;
  }
  free_report(&r);
  tool_session_close(&s);
  return exit_status;
}

const tool_command tool_command_explain = {
    .name = "explain",
    .usage = "kiln explain MODEL [--inputs FILE.pt | --input SPEC ...] [--calls N] [options]",
    .summary = "tell every group, guard, fallback and refusal with its reason",
    .details =
        "Calls are timed instruction by instruction, which adds some 50 ns to each. Times are\n"
        "those of the plans that serve at the end. Not in them are compiling and the runs that\n"
        "recorded types: before each level of the method, and of a fallback after a guard failed,\n"
        "is compiled, it runs once (--set num_profiled_runs) and looks at what comes.\n",
    TOOL_OPTIONS(options_table, explain_options),
    .defaults = set_defaults,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
