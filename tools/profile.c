/* profile.c: `kiln profile`: where the time of a call goes: its groups and operators, what each
 * computes and moves, and how near that is to the most that this machine does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kiln/debug.h"
#include "tools/commands.h"
#include "tools/hardware.h"
#include "tools/memory.h"
#include "tools/peak.h"
#include "tools/session.h"
#include "tools/times.h"

enum { WARM_CALLS = 10, LEAST_CALLS = 10 };

typedef struct profile_options {
  const char *method, *inputs;
  tool_list input;
  int64_t calls, seed, top;
  bool json, counters;
  tool_limits limits;
  tool_settings settings;
} profile_options;

#define FIELD(name) offsetof(profile_options, name)
static const tool_option options_table[] = {
    {"--method", TOOL_TEXT, FIELD(method), "NAME", 0, "what to call (forward)"},
    {"--inputs", TOOL_TEXT, FIELD(inputs), "FILE.pt", 0, "the tuple of positional arguments"},
    {"--input", TOOL_LIST, FIELD(input), "SPEC", 0, "one argument, as `kiln run` takes it"},
    {"--seed", TOOL_INT, FIELD(seed), "N", 0, "seed of random inputs (0)"},
    {"--calls", TOOL_INT, FIELD(calls), "N", 1, "calls that are timed (20)"},
    {"--top", TOOL_INT, FIELD(top), "N", 0, "rows that are told (20; 0: all)"},
    {"--counters", TOOL_SWITCH, FIELD(counters), NULL, 0,
     "what the processor counts in a call, where the system allows it"},
    {"--json", TOOL_SWITCH, FIELD(json), NULL, 0, "print one object"},
    TOOL_LIMIT_OPTIONS(profile_options, limits),
    TOOL_SETTINGS_OPTIONS(profile_options, settings),
};

static void set_defaults(void *options) {
  profile_options *o = options;
  o->method = "forward";
  o->calls = 20;
  o->top = 20;
  o->settings.compile = "sync";
}

/* -- The machine -- */

/* What holds up to so many bytes, and GB/s of reading it. */
typedef struct level {
  const char *name;
  double bytes, rate;
} level;
enum { SIZES = 256 }; /* from a byte on, four to a doubling */
typedef struct machine {
  double gflops; /* of all threads */
  level levels[4];
  int level_count, threads;
  double rates[SIZES]; /* of reading so many bytes; 0: not measured */
} machine;

static void add_level(machine *m, const char *name, double bytes, size_t tried) {
  if (bytes > 0) m->levels[m->level_count++] = (level){name, bytes, tool_peak_read(tried)};
}

/* Each of several threads has a core of its own, and so has its caches; memory they share. */
static machine measure_machine(int threads) {
  machine m = {.gflops = threads * tool_peak_fma(tool_isa_of_cpu(), TOOL_PEAK_RUNS),
               .threads = threads};
  const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE), far = l3 > 0 ? 2 * l3 : 64 << 20;
  add_level(&m, "L1", (double)l1, (size_t)l1 / 2);
  add_level(&m, "L2", (double)l2, (size_t)l2 / 2);
  add_level(&m, "L3", (double)l3, (size_t)l3 / 2);
  for (int i = 0; i < m.level_count; i++) m.levels[i].rate *= threads;
  add_level(&m, "memory", INFINITY, (size_t)far);
  return m;
}

/* Reading as many bytes: between two caches neither's rate is. */
static double rate_at(machine *m, double bytes, const level *holder) {
  const int index = (int)ceil(4 * log2(fmax(bytes, 256)));
  if (index >= SIZES || holder == &m->levels[m->level_count - 1]) return holder->rate;
  if (m->rates[index] == 0)
    m->rates[index] = m->threads * tool_peak_read((size_t)exp2(index / 4.0));
  return m->rates[index];
}

/* -- What is told -- */

typedef struct report {
  double call_ms, timed_ms; /* medians, of calls without and with times */
  int threads;
  int64_t calls;
  machine machine;
  tool_rows times, groups;
  kiln_debug_memory memory; /* no tensors: no plan */
  tool_time *spent;
  int count;
  uint64_t total_ns;
  tool_hardware hardware;
  double counted_calls;
} report;

/* Of one run. */
typedef struct rates {
  double ns, gflops, gbs;
  const level *level; /* what holds the bytes; NULL: none are known */
  double share;       /* of the most: of products, or of reading, whichever is nearer; NAN */
  const char *limit;  /* "FMA", or the level's name */
} rates;

static rates rates_of(report *r, const tool_time *t) {
  machine *m = &r->machine;
  const double runs = (double)t->count, bytes = (double)t->bytes / runs;
  rates x = {.ns = (double)t->ns / runs, .share = NAN, .limit = ""};
  x.gflops = (double)t->flops / runs / x.ns;
  x.gbs = bytes / x.ns;
  for (int i = 0; i < m->level_count && t->bytes && !x.level; i++)
    if (bytes <= m->levels[i].bytes) x.level = &m->levels[i];
  if (t->flops) x.share = x.gflops / m->gflops, x.limit = "FMA";
  const double read = x.level ? x.gbs / rate_at(m, bytes, x.level) : 0;
  if (x.level && !(x.share >= read)) x.share = read, x.limit = x.level->name;
  return x;
}

/* A group's operators and results; "" for what is none. */
static const char *words_of(const report *r, const tool_time *t, int column) {
  for (int i = 1; i < r->groups.count && strcmp(t->kind, "group") == 0; i++)
    if (strcmp(tool_rows_cell(&r->groups, i, 0), t->name) == 0)
      return tool_rows_cell(&r->groups, i, column);
  return "";
}

/* Why an operator stands outside of groups, or a group is not near the most; freed by the caller.
 */
static char *why(kiln_model *model, const tool_time *t, const rates *x) {
  enum { SHORT_NS = 2000 };
  kiln_debug_refusal_info info;
  kiln_status *status = NULL;
  char *text = NULL;
  if (strcmp(t->kind, "operator") == 0) {
    for (int i = 0; !text && !(status = kiln_debug_refusal(model, i, &info)); i++)
      if (info.detail && strcmp(info.detail, t->name) == 0) text = tool_format("%s", info.sentence);
    kiln_status_destroy(status);
  } else if (strcmp(t->kind, "group") == 0 && !(x->share >= 0.5) && x->ns < (double)SHORT_NS) {
    text = tool_format("short: a run takes %.0f ns", x->ns);
  }
  return text ? text : tool_format("%s", "");
}

/* -- As text -- */

static void print_machine(const report *r) {
  const machine *m = &r->machine;
  printf("this machine does %.0f GFLOP/s and reads", m->gflops);
  for (int i = 0; i < m->level_count; i++)
    printf("%s %.0f GB/s of %s", i ? "," : "", m->levels[i].rate, m->levels[i].name);
  printf(", %d thread%s\n", r->threads, tool_plural((uint64_t)r->threads));
}

static void print_hardware(const report *r) {
  double count;
  int told = 0;
  for (int i = 0; i < TOOL_EVENT__COUNT; i++)
    if (tool_hardware_read(&r->hardware, (tool_event)i, &count))
      printf("%s %.4g %s", told++ ? "," : "a call:", count / r->counted_calls, tool_event_names[i]);
  if (told) puts("");
  if (r->hardware.error)
    printf("the system refuses %s counters: %s\n", told ? "other" : "all",
           strerror(r->hardware.error));
}

static void print_row(report *r, kiln_model *model, const tool_time *t) {
  const rates x = rates_of(r, t);
  const char *words = words_of(r, t, 1);
  char *reason = why(model, t, &x);
  char limit[32] = "";
  if (!isnan(x.share)) snprintf(limit, sizeof limit, "%.0f %% %s", 100 * x.share, x.limit);
  printf("%10.2f %6.1f %% %6.4g %9.1f %8.1f  %-12s %s", (double)t->ns * 1e-3 / (double)r->calls,
         100.0 * (double)t->ns / (double)r->total_ns, (double)t->count / (double)r->calls, x.gflops,
         x.gbs, limit, t->name);
  if (*words) printf(": %s -> %s", words, words_of(r, t, 2));
  if (*t->file) printf(", %s:%s", t->file, t->line);
  printf("%s%s\n", *reason ? "; " : "", reason);
  free(reason);
}

static void print(report *r, kiln_model *model, const profile_options *o) {
  uint64_t left = 0;
  int more = 0;
  printf("a call takes %.4f ms, %.4f with times: of %lld such calls\n", r->call_ms, r->timed_ms,
         (long long)r->calls);
  char words[TOOL_MEMORY_WORDS];
  if (r->memory.tensors) printf("%s\n", tool_memory_words(words, &r->memory));
  print_machine(r);
  if (o->counters) print_hardware(r);
  puts("\n        us    share   runs   GFLOP/s     GB/s  of the most  what");
  for (int i = 0; i < r->count; i++) {
    if (o->top == 0 || i < o->top) {
      print_row(r, model, &r->spent[i]);
    } else {
      left += r->spent[i].ns;
      more++;
    }
  }
  if (more)
    printf("%10.2f %6.1f %%  %d more (--top 0 tells all)\n", (double)left * 1e-3 / (double)r->calls,
           100.0 * (double)left / (double)r->total_ns, more);
}

/* -- As JSON -- */

static cJSON *machine_json(const machine *m) {
  cJSON *json = cJSON_CreateObject();
  cJSON_AddNumberToObject(json, "gflops", m->gflops);
  cJSON *levels = cJSON_AddObjectToObject(json, "read_gbs");
  for (int i = 0; i < m->level_count; i++)
    cJSON_AddNumberToObject(levels, m->levels[i].name, m->levels[i].rate);
  return json;
}

static cJSON *row_json(report *r, kiln_model *model, const tool_time *t) {
  const rates x = rates_of(r, t);
  char *reason = why(model, t, &x);
  cJSON *json = cJSON_CreateObject();
  cJSON_AddStringToObject(json, "kind", t->kind);
  cJSON_AddStringToObject(json, "name", t->name);
  cJSON_AddStringToObject(json, "operators", words_of(r, t, 1));
  cJSON_AddStringToObject(json, "shapes", words_of(r, t, 2));
  cJSON_AddStringToObject(json, "file", t->file);
  cJSON_AddItemToObject(json, "line", tool_json_int(strtoll(t->line, NULL, 10)));
  cJSON_AddNumberToObject(json, "us", (double)t->ns * 1e-3 / (double)r->calls);
  cJSON_AddNumberToObject(json, "share", (double)t->ns / (double)r->total_ns);
  cJSON_AddNumberToObject(json, "runs", (double)t->count / (double)r->calls);
  cJSON_AddNumberToObject(json, "gflops", x.gflops);
  cJSON_AddNumberToObject(json, "gbs", x.gbs);
  cJSON_AddItemToObject(json, "of_the_most", tool_json_number(x.share));
  cJSON_AddStringToObject(json, "limit", x.limit);
  cJSON_AddStringToObject(json, "why", reason);
  free(reason);
  return json;
}

static void print_json(report *r, kiln_model *model, const profile_options *o) {
  cJSON *json = cJSON_CreateObject();
  cJSON_AddNumberToObject(json, "call_ms", r->call_ms);
  cJSON_AddNumberToObject(json, "timed_call_ms", r->timed_ms);
  cJSON_AddItemToObject(json, "calls", tool_json_int(r->calls));
  cJSON_AddItemToObject(json, "threads", tool_json_int(r->threads));
  cJSON_AddItemToObject(json, "machine", machine_json(&r->machine));
  cJSON *counters = o->counters ? cJSON_AddObjectToObject(json, "counters") : NULL;
  for (int i = 0; counters && i < TOOL_EVENT__COUNT; i++) {
    double count;
    if (tool_hardware_read(&r->hardware, (tool_event)i, &count))
      cJSON_AddNumberToObject(counters, tool_event_names[i], count / r->counted_calls);
  }
  if (r->memory.tensors) {
    cJSON *memory = cJSON_AddObjectToObject(json, "memory");
    cJSON_AddItemToObject(memory, "tensors", tool_json_int((int64_t)r->memory.tensors));
    cJSON_AddItemToObject(memory, "bytes", tool_json_int((int64_t)r->memory.bytes));
    cJSON_AddItemToObject(memory, "least", tool_json_int((int64_t)r->memory.least));
  }
  cJSON *rows = cJSON_AddArrayToObject(json, "rows");
  for (int i = 0; i < r->count && (o->top == 0 || i < o->top); i++)
    cJSON_AddItemToArray(rows, row_json(r, model, &r->spent[i]));
  tool_json_print(json, stdout);
}

/* -- The command -- */

/* The median of so many calls. */
static kiln_status *call_often(const tool_session *s, const char *method, const kiln_limits *limits,
                               int64_t calls, double *out_ms) {
  double *times = tool_alloc(sizeof *times * (size_t)calls);
  kiln_status *status = NULL;
  for (int64_t i = 0; i < calls && !status; i++) {
    kiln_value *result = NULL;
    status = tool_session_call(s, method, limits, &result, &times[i]);
    kiln_value_destroy(result);
  }
  qsort(times, (size_t)calls, sizeof *times, tool_by_size);
  *out_ms = times[calls / 2];
  free(times);
  return status;
}

/* Plans get room for times before the first call; only the last calls are timed. */
static kiln_status *measure(report *r, const profile_options *o, const tool_session *s,
                            const kiln_limits *limits) {
  double ms;
  kiln_status *status = call_often(s, o->method, limits, WARM_CALLS, &ms);
  if (status) return status;
  r->calls = o->calls;
  r->counted_calls = (double)(o->calls > LEAST_CALLS ? o->calls : LEAST_CALLS);
  if (o->counters) tool_hardware_run(&r->hardware, true);
  status = call_often(s, o->method, limits, (int64_t)r->counted_calls, &r->call_ms);
  if (o->counters) tool_hardware_run(&r->hardware, false);
  kiln_status_destroy(kiln_debug_instance_memory(s->instance, &r->memory, NULL, NULL));
  if (!status) status = kiln_debug_model_time(s->model, 1);
  if (!status) status = call_often(s, o->method, limits, o->calls, &r->timed_ms);
  if (!status) status = kiln_debug_model_time(s->model, 0);
  if (!status) status = kiln_debug_model_times(s->model, tool_rows_add, &r->times);
  if (!status) status = kiln_debug_model_groups(s->model, tool_rows_add, &r->groups);
  if (status) return status;
  r->threads = kiln_context_threads(s->context);
  r->machine = measure_machine(r->threads);
  r->spent = tool_times_of(&r->times, &r->count);
  for (int i = 0; i < r->count; i++) r->total_ns += r->spent[i].ns;
  return NULL;
}

static int run(const void *options, char *const *operands) {
  const profile_options *o = options;
  const kiln_limits limits = tool_limits_of(&o->limits);
  tool_session s = {0};
  report r = {0};
  if (o->inputs && o->input.count)
    return tool_usage_error("profile: give --inputs or --input, not both");
  if (o->counters) tool_hardware_open(&r.hardware);
  int exit_status = tool_session_open(&s, &o->settings, operands[0], &limits, tool_print_to_stderr);
  if (exit_status < 0) {
    kiln_status *status = kiln_debug_model_time(s.model, UINT32_MAX);
    exit_status = status ? tool_report(status)
                         : tool_session_prepare(&s, o->method, o->inputs, &o->input, o->seed);
  }
  if (exit_status < 0) {
    kiln_status *status = measure(&r, o, &s, &limits);
    if (!status && o->json) print_json(&r, s.model, o);
    if (!status && !o->json) print(&r, s.model, o);
    exit_status = status ? tool_report(status) : TOOL_GOOD;
  }
  if (o->counters) tool_hardware_close(&r.hardware);
  free(r.spent);
  tool_rows_free(&r.times);
  tool_rows_free(&r.groups);
  tool_session_close(&s);
  return exit_status;
}

const tool_command tool_command_profile = {
    .name = "profile",
    .usage = "kiln profile MODEL [--inputs FILE.pt | --input SPEC ...] [--calls N] [options]",
    .summary = "tell where the time of a call goes, beside what the machine can do",
    .details =
        "Ten calls warm up, others tell what a call takes, and then --calls are timed step by\n"
        "step, which adds some 50 ns to each. GFLOP/s and GB/s are of what a step computes, and\n"
        "of the tensors that go in and out; `of the most` is its share of what fused products\n"
        "give, or of what reading as many bytes does, whichever is nearer. Both are measured\n"
        "here. Winograd's convolutions compute less than is counted.\n",
    TOOL_OPTIONS(options_table, profile_options),
    .defaults = set_defaults,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
