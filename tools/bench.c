/* bench.c: `kiln bench`: what loading, the first calls and steady calls cost. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/commands.h"
#include "tools/json.h"
#include "tools/session.h"

enum { FIRST_CALLS = 10, MIN_STEADY = 10 };

typedef struct bench_options {
  const char *method, *inputs, *json;
  tool_list input;
  double duration;
  int64_t seed;
  tool_settings settings;
} bench_options;

#define FIELD(name) offsetof(bench_options, name)
static const tool_option options_table[] = {
    {"--method", TOOL_TEXT, FIELD(method), "NAME", 0, "what to call (forward)"},
    {"--inputs", TOOL_TEXT, FIELD(inputs), "FILE.pt", 0, "the tuple of positional arguments"},
    {"--input", TOOL_LIST, FIELD(input), "SPEC", 0, "one argument, as `kiln run` takes it"},
    {"--seed", TOOL_INT, FIELD(seed), "N", 0, "seed of random inputs (0)"},
    {"--duration", TOOL_REAL, FIELD(duration), "S", 0, "seconds of steady calls (3)"},
    {"--json", TOOL_TEXT, FIELD(json), "FILE", 0, "write the figures as JSON; - is stdout"},
    TOOL_SETTINGS_OPTIONS(bench_options, settings),
};

static void set_defaults(void *options) {
  bench_options *o = options;
  o->method = "forward";
  o->duration = 3;
}

typedef struct figures {
  int threads;
  double load_ms;
  double began_ms, settled_ms; /* the first call; from there until nothing is left to compile */
  double first[FIRST_CALLS];   /* call 1, then 2 to k */
  int first_count;
  double *steady;
  int64_t count, capacity;
  kiln_counters counters;
  cJSON *kernels_ms; /* of each group that was compiled, in order */
} figures;

static kiln_status *timed_call(const tool_session *s, const char *method, double *out_ms) {
  kiln_value *result = NULL;
  double start = tool_now_ms();
  kiln_status *status =
      kiln_instance_call(s->instance, method, s->inputs.values, s->inputs.count, NULL, &result);
  kiln_value_destroy(result);
  *out_ms = tool_now_ms() - start;
  return status;
}

/* All that such calls run compiled is made, also what would not pay yet. */
static kiln_status *settle(const bench_options *o, const tool_session *s, figures *f) {
  kiln_status *status =
      kiln_model_warm_up(s->model, o->method, s->inputs.values, s->inputs.count, NULL);
  f->settled_ms = tool_now_ms() - f->began_ms;
  return status;
}

static kiln_status *measure(const bench_options *o, const tool_session *s, figures *f) {
  f->began_ms = tool_now_ms();
  for (f->first_count = 0; f->first_count < FIRST_CALLS; f->first_count++) {
    kiln_status *status = timed_call(s, o->method, &f->first[f->first_count]);
    if (status) return status;
  }
  kiln_status *settled = settle(o, s, f);
  if (settled) return settled;
  double end = tool_now_ms() + o->duration * 1e3;
  while (f->count < MIN_STEADY || tool_now_ms() < end) {
    if (f->count == f->capacity) {
      f->capacity = f->capacity * 2 + 1024;
      f->steady = tool_grow(f->steady, sizeof *f->steady * (size_t)f->capacity);
    }
    kiln_status *status = timed_call(s, o->method, &f->steady[f->count]);
    if (status) return status;
    f->count++;
  }
  return NULL;
}

static cJSON *kernel_times(const kiln_model *model) {
  cJSON *times = cJSON_CreateArray();
  kiln_group_counters g;
  kiln_status *status = NULL;
  for (int i = 0; !(status = kiln_model_group(model, i, &g)); i++) {
    if (!g.reason) cJSON_AddItemToArray(times, cJSON_CreateNumber((double)g.compile_ns * 1e-6));
  }
  kiln_status_destroy(status);
  return times;
}

/* -- Telling -- */

static double percentile(const figures *f, double part) {
  return f->steady[(int64_t)ceil(part * (double)f->count) - 1];
}

static double peak_rss(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return (double)usage.ru_maxrss * 1024;
}

static void print_figures(const bench_options *o, const figures *f) {
  const kiln_counters *c = &f->counters;
  printf("kiln %s, JIT %s, %d thread%s\n", kiln_version(), o->settings.jit ? o->settings.jit : "on",
         f->threads, tool_plural((uint64_t)f->threads));
  printf("load          %10.3f ms\n", f->load_ms);
  printf("call 1        %10.3f ms\n", f->first[0]);
  for (int i = 1; i < f->first_count; i++)
    printf("call %-2d       %10.3f ms\n", i + 1, f->first[i]);
  printf("settled after %10.3f ms\n", f->settled_ms);
  printf("steady median %10.4f ms, p90 %.4f, p99 %.4f (%lld call%s)\n", percentile(f, 0.5),
         percentile(f, 0.9), percentile(f, 0.99), (long long)f->count,
         tool_plural((uint64_t)f->count));
  printf("compiled      %10llu kernel%s in %.3f ms, %llu group%s, %llu bailout%s\n",
         (unsigned long long)c->compiles, tool_plural(c->compiles), (double)c->compile_ns * 1e-6,
         (unsigned long long)c->groups, tool_plural(c->groups), (unsigned long long)c->guard_misses,
         tool_plural(c->guard_misses));
  printf("peak memory   %10.1f MB\n", peak_rss() * 1e-6);
}

static int write_json(const bench_options *o, const figures *f, FILE *file) {
  const kiln_counters *c = &f->counters;
  cJSON *json = cJSON_CreateObject();
  cJSON_AddNumberToObject(json, "load_ms", f->load_ms);
  cJSON_AddNumberToObject(json, "first_ms", f->first[0]);
  cJSON *calls = cJSON_AddArrayToObject(json, "calls_ms");
  for (int i = 0; i < f->first_count; i++) {
    cJSON_AddItemToArray(calls, cJSON_CreateNumber(f->first[i]));
  }
  cJSON_AddNumberToObject(json, "settled_ms", f->settled_ms);
  cJSON *steady = cJSON_AddObjectToObject(json, "steady");
  cJSON_AddNumberToObject(steady, "median_ms", percentile(f, 0.5));
  cJSON_AddNumberToObject(steady, "p90_ms", percentile(f, 0.9));
  cJSON_AddNumberToObject(steady, "p99_ms", percentile(f, 0.99));
  cJSON_AddItemToObject(steady, "runs", tool_json_int(f->count));
  cJSON_AddItemToObject(json, "peak_rss_bytes", tool_json_int((int64_t)peak_rss()));
  cJSON_AddItemToObject(json, "compiles", tool_json_int((int64_t)c->compiles));
  cJSON_AddNumberToObject(json, "compile_ms", (double)c->compile_ns * 1e-6);
  cJSON_AddItemToObject(json, "kernels_ms", cJSON_Duplicate(f->kernels_ms, true));
  cJSON_AddItemToObject(json, "stalls", tool_json_int((int64_t)c->stalls));
  cJSON_AddNumberToObject(json, "worst_stall_ms", (double)c->worst_stall_ns * 1e-6);
  cJSON_AddItemToObject(json, "bailouts", tool_json_int((int64_t)c->guard_misses));
  cJSON_AddItemToObject(json, "groups", tool_json_int((int64_t)c->groups));
  cJSON *config = cJSON_AddObjectToObject(json, "config");
  cJSON_AddStringToObject(config, "version", kiln_version());
  cJSON_AddStringToObject(config, "method", o->method);
  cJSON_AddStringToObject(config, "jit", o->settings.jit ? o->settings.jit : "on");
  cJSON_AddItemToObject(config, "threads", tool_json_int(f->threads));
  cJSON_AddNumberToObject(config, "duration_s", o->duration);
  tool_json_print(json, file);
  if (fflush(file) != 0) return tool_usage_error("cannot write '%s'", o->json);
  return TOOL_GOOD;
}

/* -- The command -- */

static int bench_model(const bench_options *o, const tool_session *s, figures *f, FILE *file) {
  kiln_status *status = measure(o, s, f);
  if (status) return tool_report(status);
  f->threads = kiln_context_threads(s->context);
  f->load_ms = s->load_ms;
  kiln_model_counters(s->model, &f->counters);
  f->kernels_ms = kernel_times(s->model);
  qsort(f->steady, (size_t)f->count, sizeof *f->steady, tool_by_size);
  if (!o->json || strcmp(o->json, "-") != 0) print_figures(o, f);
  return file ? write_json(o, f, file) : TOOL_GOOD;
}

static int run(const void *options, char *const *operands) {
  const bench_options *o = options;
  figures f = {0};
  tool_session s = {0};
  if (o->inputs && o->input.count) {
    return tool_usage_error("bench: give --inputs or --input, not both");
  }
  /* Opened first: a name that cannot be written is told before the time is spent. */
  const bool on_stdout = o->json && strcmp(o->json, "-") == 0;
  FILE *file = on_stdout ? stdout : o->json ? fopen(o->json, "w") : NULL;
  if (o->json && !file) return tool_usage_error("cannot write '%s': %s", o->json, strerror(errno));
  int exit_status = tool_session_open(&s, &o->settings, operands[0], NULL, tool_print_to_stderr);
  if (exit_status < 0) {
    exit_status = tool_session_prepare(&s, o->method, o->inputs, &o->input, o->seed);
  }
  if (exit_status < 0) exit_status = bench_model(o, &s, &f, file);
  if (file && !on_stdout) fclose(file);
  cJSON_Delete(f.kernels_ms);
  free(f.steady);
  tool_session_close(&s);
  return exit_status;
}

const tool_command tool_command_bench = {
    .name = "bench",
    .usage = "kiln bench MODEL --inputs FILE.pt [--threads N] [--duration S] [--json FILE]",
    .summary = "measure loading, the first calls and steady calls",
    .details =
        "The first ten calls are told one by one and do not count as steady. The arguments are\n"
        "the same objects in every call. Pin the process (taskset -c 0) for figures to compare.\n",
    TOOL_OPTIONS(options_table, bench_options),
    .defaults = set_defaults,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
