/* check.c: `kiln check`: finds recorded cases, runs them, tells a verdict for each. */
#include "tools/check.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/json.h"

static const char default_skips[] = "test/SKIPPED.md";

#define FIELD(name) offsetof(check_options, name)
static const tool_option options_table[] = {
    {"--repeat", TOOL_INT, FIELD(repeat), "N", 1, "run every input set N times (5)"},
    {"--rtol", TOOL_REAL, FIELD(rtol), "R", 0, "tighten the cases' relative tolerance to R"},
    {"--atol", TOOL_REAL, FIELD(atol), "A", 0, "tighten the cases' absolute tolerance to A"},
    {"--require-compiled", TOOL_SWITCH, FIELD(require_compiled), NULL, 0,
     "fail a case whose groups did not all compile and run, or that has none"},
    {"--async", TOOL_SWITCH, FIELD(async), NULL, 0,
     "compile beside the calls: N of each set that wait for nothing, then N one by one"},
    {"--skips", TOOL_TEXT, FIELD(skips), "FILE", 0,
     "cases that cannot run yet (test/SKIPPED.md, where it is there)"},
    {"--strict", TOOL_SWITCH, FIELD(strict), NULL, 0, "a skip is a failure"},
    {"--json", TOOL_SWITCH, FIELD(json), NULL, 0, "print the verdicts as JSON"},
    {"--timeout", TOOL_INT, FIELD(timeout_s), "S", 1, "seconds that one case may take (600)"},
    {"--in-process", TOOL_SWITCH, FIELD(in_process), NULL, 0,
     "run the cases in this process, for debuggers: a crash ends the check"},
    TOOL_SETTINGS_OPTIONS(check_options, settings),
};

static void set_defaults(void *options) {
  check_options *o = options;
  o->repeat = 5;
  o->timeout_s = 600;
  o->rtol = o->atol = -1;
  o->settings.compile = "sync";
}

/* -- Finding cases -- */

typedef struct case_list {
  check_case *items;
  int count;
} case_list;

static void add_case(case_list *list, const char *folder, const char *path) {
  size_t size = 0;
  char *error = NULL, *text = tool_read_file(path, &size, &error);
  check_case c = {.folder = tool_format("%s", folder)};
  c.json = text ? cJSON_ParseWithLength(text, size) : NULL;
  if (!text) {
    c.complaint = tool_format("%s", error);
  } else if (!cJSON_IsObject(c.json)) {
    c.complaint = tool_format("case.json is not a JSON object");
  } else {
    c.complaint = check_keys(c.json);
  }
  size_t len = strlen(folder);
  while (len > 1 && folder[len - 1] == '/') len--;
  const char *last = memrchr(folder, '/', len);
  const char *name = last ? last + 1 : folder;
  char *folder_name = tool_format("%.*s", (int)(folder + len - name), name);
  c.name = tool_format("%s", check_text(c.json, "name", folder_name));
  c.category = tool_format("%s", check_text(c.json, "category", ""));
  free(folder_name);
  free(error);
  free(text);
  list->items = tool_grow(list->items, sizeof *list->items * (size_t)(list->count + 1));
  list->items[list->count++] = c;
}

static int is_visible(const struct dirent *entry) { return entry->d_name[0] != '.'; }

/* A folder with case.json is a case; in others the sub-folders are searched, in order of name. */
static void find_cases(case_list *list, const char *folder, int depth) {
  char *path = tool_join(folder, "case.json");
  struct dirent **entries = NULL;
  if (tool_exists(path)) {
    add_case(list, folder, path);
  } else if (depth < 16) {
    int count = scandir(folder, &entries, is_visible, alphasort);
    for (int i = 0; i < count; i++) {
      char *sub = tool_join(folder, entries[i]->d_name);
      if (tool_is_directory(sub)) find_cases(list, sub, depth + 1);
      free(sub);
      free(entries[i]);
    }
    free(entries);
  }
  free(path);
}

static void free_cases(case_list *list) {
  for (int i = 0; i < list->count; i++) {
    check_case *c = &list->items[i];
    free(c->folder);
    free(c->name);
    free(c->category);
    free(c->complaint);
    cJSON_Delete(c->json);
  }
  free(list->items);
}

/* -- Verdicts -- */

typedef struct tally {
  const check_options *options;
  const check_case *cases;
  check_skips skips;
  int passed, failed, skipped;
  cJSON *json; /* array; NULL when lines are printed */
} tally;

/* What --require-compiled finds wrong; NULL: nothing. */
static char *compile_complaint(const tally *t, const check_case *c, const check_result *r) {
  const kiln_counters *n = &r->counters;
  if (n->compile_failures > 0) {
    return tool_format("%llu kernel%s failed to compile", (unsigned long long)n->compile_failures,
                       tool_plural(n->compile_failures));
  }
  if (n->groups_never_run > 0) {
    return tool_format("%llu group%s reached but never ran compiled",
                       (unsigned long long)n->groups_never_run,
                       n->groups_never_run == 1 ? " was" : "s were");
  }
  if (!r->exempt_from_groups && n->groups == 0 && !check_skips_find(&t->skips, c, true)) {
    return tool_format("no group was formed");
  }
  return NULL;
}

static char *pass_text(const check_result *r) {
  const kiln_counters *n = &r->counters;
  return tool_format("%llu groups, %llu compiled runs, %llu bailouts, %llu compile failures, "
                     "worst error %.3g of tolerance",
                     (unsigned long long)n->groups, (unsigned long long)n->compiled_runs,
                     (unsigned long long)n->guard_misses, (unsigned long long)n->compile_failures,
                     r->worst);
}

static void tell_json(tally *t, const check_case *c, const char *verdict, const char *reason,
                      const check_result *r) {
  cJSON *json = cJSON_CreateObject();
  cJSON_AddStringToObject(json, "name", c->name);
  cJSON_AddStringToObject(json, "category", c->category);
  cJSON_AddStringToObject(json, "folder", c->folder);
  cJSON_AddStringToObject(json, "verdict", verdict);
  if (reason) cJSON_AddStringToObject(json, "reason", reason);
  cJSON_AddItemToObject(json, "worst_error", tool_json_number(r->worst));
  cJSON_AddItemToObject(json, "counters", tool_json_counters(&r->counters));
  cJSON_AddItemToArray(t->json, json);
}

/* Reasons are one line. */
static void flatten(char *text) {
  for (char *p = text; *p; p++) {
    if (*p == '\n' || *p == '\r') *p = ' ';
  }
}

static void tell(void *user, int index, const check_result *result) {
  tally *t = user;
  const check_case *c = &t->cases[index];
  const check_skip *skip = check_skips_find(&t->skips, c, false);
  char *reason = result->reason ? tool_format("%s", result->reason) : NULL;
  if (!reason && t->options->require_compiled) reason = compile_complaint(t, c, result);
  const char *verdict = "PASS";
  if (reason && skip) {
    verdict = "SKIP";
    free(reason);
    reason = tool_format("%s", skip->reason);
    t->skipped++;
  } else if (skip) {
    verdict = "FAIL";
    reason = tool_format("passes, but the skips list '%s'", skip->name);
    t->failed++;
  } else if (reason) {
    verdict = "FAIL";
    t->failed++;
  } else {
    t->passed++;
  }
  if (reason) flatten(reason);
  if (t->json) {
    tell_json(t, c, verdict, reason, result);
  } else if (reason) {
    printf("%s %s: %s\n", verdict, c->name, reason);
  } else {
    char *text = pass_text(result);
    printf("PASS %s (%s)\n", c->name, text);
    free(text);
  }
  fflush(stdout);
  free(reason);
}

static int conclude(tally *t) {
  if (t->json) {
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "cases", t->json);
    cJSON_AddNumberToObject(json, "passed", t->passed);
    cJSON_AddNumberToObject(json, "failed", t->failed);
    cJSON_AddNumberToObject(json, "skipped", t->skipped);
    tool_json_print(json, stdout);
  } else {
    printf("%d passed, %d failed, %d skipped\n", t->passed, t->failed, t->skipped);
  }
  bool good = t->failed == 0 && !(t->options->strict && t->skipped > 0);
  return good ? TOOL_GOOD : TOOL_DIFFERENT;
}

/* -- The command -- */

/* Finds faults of the settings, and warns of unknown variables, once and before any case. */
static int check_settings(const check_options *o) {
  kiln_context *context = NULL;
  kiln_status *status = tool_context(&o->settings, &context);
  if (status) return tool_report(status);
  kiln_context_release(context);
  return -1;
}

static int run(const void *options, char *const *operands) {
  const check_options *o = options;
  case_list list = {0};
  tally t = {.options = o};
  int exit_status = check_settings(o);
  for (int i = 0; exit_status < 0 && operands[i]; i++) {
    int before = list.count;
    if (!tool_is_directory(operands[i])) {
      exit_status = tool_usage_error(
          "'%s' is no folder of recorded cases (one result is compared by kiln run --expect)",
          operands[i]);
      break;
    }
    find_cases(&list, operands[i], 0);
    if (list.count == before) {
      exit_status = tool_usage_error("no case.json in or below '%s'", operands[i]);
    }
  }
  const char *skips = o->skips ? o->skips : tool_exists(default_skips) ? default_skips : NULL;
  if (exit_status < 0 && skips && !check_skips_read(skips, &t.skips)) exit_status = TOOL_USAGE;
  if (exit_status < 0) {
    t.cases = list.items;
    t.json = o->json ? cJSON_CreateArray() : NULL;
    bool good_end = check_run_all(o, list.items, list.count, tell, &t);
    exit_status = conclude(&t);
    if (!good_end) exit_status = TOOL_INTERNAL;
  }
  check_skips_free(&t.skips);
  free_cases(&list);
  return exit_status;
}

const tool_command tool_command_check = {
    .name = "check",
    .usage = "kiln check DIR... [--repeat N] [--jit on|off] [--require-compiled] [options]",
    .summary = "run recorded cases and compare their results",
    .details =
        "A DIR with case.json is a case; else the folders below it are searched. Every input set\n"
        "is run N times, then all sets in turn, with synchronous compilation, if not --async;\n"
        "results are compared with the case's own tolerance. A case that the skips list is SKIP\n"
        "when it fails, and FAIL when it passes.\n",
    TOOL_OPTIONS(options_table, check_options),
    .defaults = set_defaults,
    .min_operands = 1,
    .max_operands = -1,
    .run = run,
};
