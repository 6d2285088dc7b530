/* run.c: `kiln run`: loads a model, calls a method, prints or writes the result. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "kiln/kiln_op.h"
#include "tools/commands.h"
#include "tools/compare.h"
#include "tools/json.h"
#include "tools/session.h"

typedef struct run_options {
  const char *method, *inputs, *out, *expect;
  double rtol, atol;
  tool_list input;
  int64_t repeat, seed, max_elements;
  bool json, counters;
  tool_limits limits;
  tool_settings settings;
} run_options;

#define FIELD(name) offsetof(run_options, name)
static const tool_option options_table[] = {
    {"--method", TOOL_TEXT, FIELD(method), "NAME", 0, "what to call (forward)"},
    {"--inputs", TOOL_TEXT, FIELD(inputs), "FILE.pt", 0,
     "arguments: torch.save of the tuple of positional arguments, or a .npz in its order"},
    {"--input", TOOL_LIST, FIELD(input), "SPEC", 0, "one argument; may be given several times"},
    {"--out", TOOL_TEXT, FIELD(out), "FILE", 0,
     "write the result as .pt, or one tensor as .npy; - and -.npy are standard output"},
    {"--expect", TOOL_TEXT, FIELD(expect), "FILE", 0,
     "compare the result with a value of torch.save or .npy, instead of printing it"},
    {"--rtol", TOOL_REAL, FIELD(rtol), "R", 0, "relative tolerance of --expect (1e-4)"},
    {"--atol", TOOL_REAL, FIELD(atol), "A", 0, "absolute tolerance of --expect (1e-5)"},
    {"--repeat", TOOL_INT, FIELD(repeat), "N", 1, "call N times, and tell each time on stderr"},
    {"--seed", TOOL_INT, FIELD(seed), "N", 0, "seed of random inputs (0)"},
    {"--elements", TOOL_INT, FIELD(max_elements), "N", 0, "elements printed of a tensor (1000)"},
    TOOL_LIMIT_OPTIONS(run_options, limits),
    {"--counters", TOOL_SWITCH, FIELD(counters), NULL, 0, "tell the JIT's counters on stderr"},
    {"--json", TOOL_SWITCH, FIELD(json), NULL, 0, "print result, times and counters as JSON"},
    TOOL_SETTINGS_OPTIONS(run_options, settings),
};

/* Ctrl-C ends the load or the call; once more, the process. */
static kiln_cancel *interrupt;
static void on_interrupt(int number) {
  (void)number;
  kiln_call_cancel(interrupt);
}
static void catch_interrupts(void) {
  struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
  kiln_status_destroy(kiln_cancel_create(&interrupt));
  if (interrupt) sigaction(SIGINT, &action, NULL);
}

static void set_defaults(void *options) {
  run_options *o = options;
  o->method = "forward";
  o->repeat = 1;
  o->rtol = 1e-4;
  o->atol = 1e-5;
  o->max_elements = 1000;
}

static void print_counters(const kiln_model *model) {
  kiln_counters c;
  kiln_model_counters(model, &c);
  fprintf(stderr,
          "%llu call%s, %llu profiled run%s, %llu group%s, %llu compiled in %.3f ms (%llu failed), "
          "%llu compiled run%s, guards held %llu time%s and failed %llu, depth %u\n",
          (unsigned long long)c.calls, tool_plural(c.calls), (unsigned long long)c.profiled_runs,
          tool_plural(c.profiled_runs), (unsigned long long)c.groups, tool_plural(c.groups),
          (unsigned long long)c.compiles, (double)c.compile_ns * 1e-6,
          (unsigned long long)c.compile_failures, (unsigned long long)c.compiled_runs,
          tool_plural(c.compiled_runs), (unsigned long long)c.guard_hits, tool_plural(c.guard_hits),
          (unsigned long long)c.guard_misses, c.max_depth);
  if (c.jobs)
    fprintf(stderr,
            "%llu job%s beside calls; %llu call%s waited too long for the JIT, the longest wait "
            "took %.3f ms\n",
            (unsigned long long)c.jobs, tool_plural(c.jobs), (unsigned long long)c.stalls,
            tool_plural(c.stalls), (double)c.worst_stall_ns * 1e-6);
}

/* Where text goes: standard output may be JSON's, or a value's. */
static FILE *text_file(const run_options *o) {
  return o->json || (o->out && tool_is_stdout(o->out)) ? stderr : stdout;
}

/* Good, or different with the place of the first difference. */
static int compare_with(const run_options *o, kiln_context *context, const kiln_value *result) {
  tool_comparison c = {.rtol = o->rtol, .atol = o->atol};
  kiln_value *want = NULL;
  kiln_status *status = tool_read_value(context, o->expect, &want);
  if (status) return tool_report(status);
  const bool same = tool_compare(&c, "result", want, result);
  if (same) {
    fprintf(text_file(o), "as expected (worst error %.3g of tolerance)\n", c.worst);
  } else {
    fprintf(stderr, "kiln: the result is not as expected: %s\n", c.reason);
  }
  free(c.reason);
  kiln_value_destroy(want);
  return same ? TOOL_GOOD : TOOL_DIFFERENT;
}

static int finish(const run_options *o, const tool_session *s, const kiln_value *result,
                  cJSON *times) {
  const int exit_status = o->out ? tool_write_value(result, o->out) : -1;
  if (exit_status >= 0) return exit_status;
  if (o->counters) print_counters(s->model);
  if (o->json) {
    kiln_counters counters;
    kiln_model_counters(s->model, &counters);
    cJSON *value = tool_json_value(result);
    if (!value)
      return tool_report(kiln_op_error(KILN_UNSUPPORTED, "the result has no end as JSON"));
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "result", value);
    cJSON_AddItemToObject(json, "calls_ms", cJSON_Duplicate(times, true));
    cJSON_AddItemToObject(json, "counters", tool_json_counters(&counters));
    tool_json_print(json, stdout);
  } else if (!o->out && !o->expect) {
    char *text = NULL;
    kiln_status *status = kiln_value_print(result, (int)o->max_elements, &text);
    if (status) return tool_report(status);
    puts(text);
    kiln_text_free(text);
  }
  return o->expect ? compare_with(o, s->context, result) : TOOL_GOOD;
}

static int call_and_finish(const run_options *o, const tool_session *s, const kiln_limits *limits) {
  kiln_value *result = NULL;
  cJSON *times = cJSON_CreateArray();
  kiln_status *status = NULL;
  for (int64_t i = 0; !status && i < o->repeat; i++) {
    double ms = 0;
    kiln_value_destroy(result);
    result = NULL;
    status = tool_session_call(s, o->method, limits, &result, &ms);
    if (status) break;
    cJSON_AddItemToArray(times, cJSON_CreateNumber(ms));
    if (o->repeat > 1 && !o->json) fprintf(stderr, "call %lld: %.3f ms\n", (long long)i + 1, ms);
  }
  int exit_status = status ? tool_report(status) : finish(o, s, result, times);
  kiln_value_destroy(result);
  cJSON_Delete(times);
  return exit_status;
}

static int run(const void *options, char *const *operands) {
  const run_options *o = options;
  if (o->inputs && o->input.count > 0) {
    return tool_usage_error("run: give --inputs or --input, not both");
  }
  if (o->json && o->out && tool_is_stdout(o->out)) {
    return tool_usage_error("run: --json and --out %s both write to standard output", o->out);
  }
  const int exit_wrong = o->out ? tool_check_output("--out", o->out, ".npy") : -1;
  if (exit_wrong >= 0) return exit_wrong;
  tool_session s = {0};
  kiln_limits limits = tool_limits_of(&o->limits);
  catch_interrupts();
  limits.cancel = interrupt;
  int exit_status = tool_session_open(&s, &o->settings, operands[0], &limits,
                                      text_file(o) == stderr ? tool_print_to_stderr : NULL);
  if (exit_status < 0) {
    exit_status = tool_session_prepare(&s, o->method, o->inputs, &o->input, o->seed);
  }
  if (exit_status < 0) exit_status = call_and_finish(o, &s, &limits);
  tool_session_close(&s);
  return exit_status;
}

const tool_command tool_command_run = {
    .name = "run",
    .usage = "kiln run MODEL [--method NAME] [--inputs FILE.pt | --input SPEC ...] [options]",
    .summary = "call a method of a model and print or write the result",
    .details = tool_spec_help,
    TOOL_OPTIONS(options_table, run_options),
    .defaults = set_defaults,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
