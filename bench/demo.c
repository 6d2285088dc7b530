/* demo.c: what `./dev demo` shows: an LSTM being loaded, profiled, compiled and run, and what a new
 * batch size costs.
 *
 *   demo [FOLDER of a recorded case]
 *
 * Every result is compared with the recorded one; the demo fails if one differs or if nothing ran
 * compiled. It stands on include/kiln alone. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kiln/kiln.h"

enum { MOST_SETS = 8, MOST_ARGUMENTS = 16, STEADY_RUNS = 300, FIRST_CALLS = 4 };
static const double relative = 1e-4, absolute = 1.2e-5;

typedef struct input_set {
  kiln_value *inputs, *expected;
  kiln_value *arguments[MOST_ARGUMENTS];
  int argument_count;
  char shape[64]; /* of the first argument */
} input_set;

typedef struct runner {
  kiln_context *context;
  kiln_model *model;
  kiln_instance *instance;
  input_set sets[MOST_SETS];
  int set_count;
  double load_ms;
} runner;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const char *what, const char *why) {
  fprintf(stderr, "demo: %s: %s\n", what, why);
  exit(1);
}

static void check(kiln_status *status, const char *what) {
  if (!status) return;
  die(what, kiln_status_report(status));
}

/* -- Comparing -- */

static int64_t element_count(const kiln_value *tensor) {
  int64_t count = 1;
  for (int i = 0; i < kiln_value_rank(tensor); i++) count *= kiln_value_sizes(tensor)[i];
  return count;
}

static bool is_close_tensor(const kiln_value *got, const kiln_value *want) {
  if (kiln_value_dtype(got) != KILN_DTYPE_F32 || kiln_value_dtype(want) != KILN_DTYPE_F32)
    return false;
  if (kiln_value_rank(got) != kiln_value_rank(want)) return false;
  for (int i = 0; i < kiln_value_rank(want); i++) {
    if (kiln_value_sizes(got)[i] != kiln_value_sizes(want)[i]) return false;
  }
  size_t count = (size_t)element_count(want);
  float *x = malloc(count * sizeof *x), *y = malloc(count * sizeof *y);
  if (!x || !y) die("compare", "no memory");
  check(kiln_value_copy_data(got, x, count * sizeof *x), "compare");
  check(kiln_value_copy_data(want, y, count * sizeof *y), "compare");
  bool close = true;
  for (size_t i = 0; i < count; i++) {
    double a = (double)x[i], b = (double)y[i];
    if (!(fabs(a - b) <= absolute + relative * fabs(b))) close = false;
  }
  free(x);
  free(y);
  return close;
}

/* Tensors of f32 in tuples and lists. */
static bool is_close(const kiln_value *got, const kiln_value *want) {
  kiln_kind kind = kiln_value_kind(want);
  if (kiln_value_kind(got) != kind) return false;
  if (kind == KILN_KIND_TENSOR) return is_close_tensor(got, want);
  if (kind != KILN_KIND_TUPLE && kind != KILN_KIND_LIST) return false;
  int count = kiln_value_count(want);
  bool close = kiln_value_count(got) == count;
  for (int i = 0; close && i < count; i++) {
    kiln_value *a = NULL, *b = NULL;
    check(kiln_value_item(got, i, &a), "compare");
    check(kiln_value_item(want, i, &b), "compare");
    close = is_close(a, b);
    kiln_value_destroy(a);
    kiln_value_destroy(b);
  }
  return close;
}

/* -- Loading and calling -- */

static void read_set(runner *r, const char *folder, int index) {
  input_set *set = &r->sets[index];
  char path[4096];
  snprintf(path, sizeof path, "%s/inputs_%d.pt", folder, index);
  check(kiln_value_read(r->context, path, &set->inputs), path);
  snprintf(path, sizeof path, "%s/expected_%d.pt", folder, index);
  check(kiln_value_read(r->context, path, &set->expected), path);
  set->argument_count = kiln_value_count(set->inputs);
  if (set->argument_count > MOST_ARGUMENTS) die(path, "too many arguments");
  for (int i = 0; i < set->argument_count; i++)
    check(kiln_value_item(set->inputs, i, &set->arguments[i]), path);
  const kiln_value *first = set->argument_count ? set->arguments[0] : NULL;
  size_t used = 0;
  for (int i = 0; first && i < kiln_value_rank(first) && used < sizeof set->shape; i++)
    used += (size_t)snprintf(set->shape + used, sizeof set->shape - used, "%s%lld", i ? "x" : "",
                             (long long)kiln_value_sizes(first)[i]);
}

static bool is_file(const char *folder, int index) {
  char path[4096];
  snprintf(path, sizeof path, "%s/inputs_%d.pt", folder, index);
  FILE *file = fopen(path, "rb");
  if (file) fclose(file);
  return file != NULL;
}

static void open_runner(runner *r, const char *folder, const char *jit) {
  char path[4096];
  kiln_options *options = NULL;
  check(kiln_options_create(&options), "options");
  check(kiln_options_set(options, "jit", jit), "options");
  check(kiln_options_set(options, "compile", "sync"), "options");
  check(kiln_context_create(options, &r->context), "context");
  kiln_options_destroy(options);
  snprintf(path, sizeof path, "%s/model.pt", folder);
  double start = now_ms();
  check(kiln_model_load(r->context, path, NULL, &r->model), path);
  check(kiln_instance_create(r->model, &r->instance), path);
  r->load_ms = now_ms() - start;
  for (r->set_count = 0; r->set_count < MOST_SETS && is_file(folder, r->set_count); r->set_count++)
    read_set(r, folder, r->set_count);
  if (r->set_count == 0) die(folder, "there is no inputs_0.pt");
}

static void close_runner(runner *r) {
  for (int s = 0; s < r->set_count; s++) {
    input_set *set = &r->sets[s];
    for (int i = 0; i < set->argument_count; i++) kiln_value_destroy(set->arguments[i]);
    kiln_value_destroy(set->inputs);
    kiln_value_destroy(set->expected);
  }
  kiln_instance_release(r->instance);
  kiln_model_release(r->model);
  kiln_context_release(r->context);
}

/* Milliseconds of one call, whose result must be the recorded one. */
static double call(runner *r, int s) {
  input_set *set = &r->sets[s];
  kiln_value *result = NULL;
  double start = now_ms();
  check(kiln_instance_call(r->instance, "forward", set->arguments, set->argument_count, NULL,
                           &result),
        "call");
  double ms = now_ms() - start;
  if (!is_close(result, set->expected)) die("call", "the result is not the recorded one");
  kiln_value_destroy(result);
  return ms;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double steady(runner *r, int s) {
  double times[STEADY_RUNS];
  for (int i = 0; i < STEADY_RUNS; i++) times[i] = call(r, s);
  qsort(times, STEADY_RUNS, sizeof *times, compare_doubles);
  return times[STEADY_RUNS / 2];
}

/* -- The table -- */

static void row(const char *what, const char *shape, double ms, const char *note) {
  printf("  %-26s %-10s %9.3f ms  %s\n", what, shape, ms, note);
}

/* One call and what the counters say about it. */
static void counted_call(runner *r, int s, int number) {
  kiln_counters before, after;
  char what[32], note[128] = "";
  kiln_model_counters(r->model, &before);
  double ms = call(r, s);
  kiln_model_counters(r->model, &after);
  size_t used = 0;
  if (after.guard_misses > before.guard_misses)
    used += (size_t)snprintf(note + used, sizeof note - used, "%llu guard missed; ",
                             (unsigned long long)(after.guard_misses - before.guard_misses));
  if (after.profiled_runs > before.profiled_runs)
    used += (size_t)snprintf(note + used, sizeof note - used, "profiled; ");
  if (after.compiles > before.compiles)
    used += (size_t)snprintf(note + used, sizeof note - used, "%llu groups compiled in %.2f ms; ",
                             (unsigned long long)(after.compiles - before.compiles),
                             (double)(after.compile_ns - before.compile_ns) / 1e6);
  if (after.compiled_runs > before.compiled_runs)
    snprintf(note + used, sizeof note - used, "%llu group runs",
             (unsigned long long)(after.compiled_runs - before.compiled_runs));
  snprintf(what, sizeof what, "call %d", number);
  row(what, r->sets[s].shape, ms, note);
}

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : "test/data/rnn/lstm_cell_loop";
  static runner on, off;
  open_runner(&on, folder, "on");
  open_runner(&off, folder, "off");
  printf("%s, Kiln %s\n", folder, kiln_version());
  row("load", "", on.load_ms, "");
  for (int i = 1; i <= FIRST_CALLS; i++) counted_call(&on, 0, i);
  double off_ms = steady(&off, 0), on_ms = steady(&on, 0);
  row("steady, JIT off", off.sets[0].shape, off_ms, "median of 300");
  char note[64];
  snprintf(note, sizeof note, "median of 300, %.2f times as fast", off_ms / on_ms);
  row("steady, JIT on", on.sets[0].shape, on_ms, note);
  int other = 0;
  for (int s = 1; s < on.set_count && !other; s++) {
    if (strcmp(on.sets[s].shape, on.sets[0].shape) != 0) other = s;
  }
  if (other) {
    printf("  a new shape:\n");
    for (int i = 1; i <= FIRST_CALLS; i++) counted_call(&on, other, i);
    row("steady, JIT on", on.sets[other].shape, steady(&on, other), "median of 300");
    row("steady, JIT on", on.sets[0].shape, steady(&on, 0), "the first shape again");
  }
  kiln_counters counters;
  kiln_model_counters(on.model, &counters);
  printf(
      "  %llu groups, %llu compiles in %.2f ms, %llu compile failures, %llu fallbacks, depth %u\n",
      (unsigned long long)counters.groups, (unsigned long long)counters.compiles,
      (double)counters.compile_ns / 1e6, (unsigned long long)counters.compile_failures,
      (unsigned long long)counters.fallback_calls, counters.max_depth);
  bool compiled = counters.compiled_runs > 0 && counters.compile_failures == 0;
  close_runner(&on);
  close_runner(&off);
  if (!compiled) die("end", "nothing ran compiled, or a compile failed");
  return 0;
}
