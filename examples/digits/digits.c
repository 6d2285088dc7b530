/* digits.c: what `./dev demo` shows: handwritten digits being read by a model (model.py) that is
 * loaded, profiled, specialised, compiled, and specialised again for a new batch size.
 *
 *   digits [FOLDER of digits.pt and test.pt]
 *
 * Every answer is compared with the one that PyTorch gave when the model was made (train.py); the
 * demo fails if one differs or if nothing ran compiled. It stands on include/kiln alone. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kiln/kiln.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, SHOWN = 8, A_ROW = 4 };
enum { BATCH = 40, STEADY_RUNS = 300, STEADY_MS = 1000, FIRST_CALLS = 5 };
static const double confidence_tolerance = 1e-4;

/* What test.pt holds: (images, labels, digits, confidences), the last two being PyTorch's. */
typedef struct test_set {
  kiln_value *tensors[4];
  const uint8_t *images;
  const int64_t *labels, *digits;
  const float *confidences;
  int count;
} test_set;

typedef struct answer {
  int digit;
  double confidence;
} answer;

typedef struct reader {
  kiln_context *context;
  kiln_model *model;
  kiln_instance *instance;
  double load_ms;
} reader;

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void check(kiln_status *status, const char *what) {
  if (!status) return;
  fprintf(stderr, "digits: %s: %s\n", what, kiln_status_report(status));
  exit(1);
}

/* -- Loading and calling -- */

static void open_reader(reader *r, const char *folder, const char *jit) {
  char path[4096];
  kiln_options *options = NULL;
  check(kiln_options_create(&options), "options");
  check(kiln_options_set(options, "jit", jit), "options");
  check(kiln_context_create(options, &r->context), "context");
  kiln_options_destroy(options);
  snprintf(path, sizeof path, "%s/digits.pt", folder);
  double start = now_ms();
  check(kiln_model_load(r->context, path, NULL, &r->model), path);
  check(kiln_instance_create(r->model, &r->instance), path);
  r->load_ms = now_ms() - start;
}

static void close_reader(reader *r) {
  kiln_instance_release(r->instance);
  kiln_model_release(r->model);
  kiln_context_release(r->context);
}

static void open_test_set(test_set *t, kiln_context *context, const char *folder) {
  static const kiln_dtype dtypes[] = {KILN_DTYPE_U8, KILN_DTYPE_I64, KILN_DTYPE_I64,
                                      KILN_DTYPE_F32};
  char path[4096];
  kiln_value *all = NULL;
  snprintf(path, sizeof path, "%s/test.pt", folder);
  check(kiln_value_read(context, path, &all), path);
  for (int i = 0; i < 4; i++) {
    check(kiln_value_item(all, i, &t->tensors[i]), path);
    const kiln_value *tensor = t->tensors[i];
    if (kiln_value_dtype(tensor) != dtypes[i] || kiln_value_rank(tensor) != (i ? 1 : 4) ||
        kiln_value_sizes(tensor)[0] != kiln_value_sizes(t->tensors[0])[0]) {
      fprintf(stderr, "digits: %s: item %d is not what train.py writes\n", path, i);
      exit(1);
    }
  }
  kiln_value_destroy(all);
  t->count = (int)kiln_value_sizes(t->tensors[0])[0];
  t->images = kiln_value_data(t->tensors[0]);
  t->labels = kiln_value_data(t->tensors[1]);
  t->digits = kiln_value_data(t->tensors[2]);
  t->confidences = kiln_value_data(t->tensors[3]);
}

/* Images [first, first + count) as the model wants them: count x 1 x 8 x 8, 0 to 1. */
static kiln_value *batch_of(reader *r, const test_set *t, int first, int count) {
  static float pixels[BATCH * PIXELS];
  const int64_t sizes[] = {count, 1, SIDE, SIDE};
  for (int i = 0; i < count * PIXELS; i++) pixels[i] = (float)t->images[first * PIXELS + i] / 16.0f;
  kiln_value *batch = NULL;
  check(kiln_value_tensor(r->context, KILN_DTYPE_F32, 4, sizes, pixels, &batch), "batch");
  return batch;
}

/* Milliseconds of one call; its answers, which must be PyTorch's, go to `answers`. */
static double read_digits(reader *r, const test_set *t, int first, int count, answer *answers) {
  kiln_value *batch = batch_of(r, t, first, count), *result = NULL, *table = NULL;
  double start = now_ms();
  check(kiln_instance_call(r->instance, "forward", &batch, 1, NULL, &result), "call");
  double ms = now_ms() - start;
  check(kiln_value_item(result, 0, &table), "result");
  float p[BATCH * CLASSES];
  check(kiln_value_copy_data(table, p, sizeof(float) * CLASSES * (size_t)count), "result");
  for (int i = 0; i < count; i++) {
    answer best = {0, 0};
    for (int c = 0; c < CLASSES; c++) {
      if ((double)p[i * CLASSES + c] > best.confidence)
        best = (answer){c, (double)p[i * CLASSES + c]};
    }
    const double recorded = (double)t->confidences[first + i];
    if (best.digit != t->digits[first + i] ||
        !(fabs(best.confidence - recorded) <= confidence_tolerance)) {
      fprintf(stderr, "digits: image %d: %d (%.6f), but PyTorch said %d (%.6f)\n", first + i,
              best.digit, best.confidence, (int)t->digits[first + i], recorded);
      exit(1);
    }
    if (answers) answers[i] = best;
  }
  kiln_value_destroy(table);
  kiln_value_destroy(result);
  kiln_value_destroy(batch);
  return ms;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of as many calls as fit into STEADY_MS, and their number: a machine or a build may be
 * slow. */
static double steady(reader *r, const test_set *t, int count, int *runs) {
  double times[STEADY_RUNS];
  const double start = now_ms();
  *runs = 0;
  while (*runs < STEADY_RUNS && now_ms() - start < (double)STEADY_MS)
    times[(*runs)++] = read_digits(r, t, 0, count, NULL);
  qsort(times, (size_t)*runs, sizeof *times, compare_doubles);
  return times[*runs / 2];
}

/* -- The picture -- */

/* A row of images, with what the model says of each and whether that is wrong. */
static void draw(const test_set *t, const int *images, const answer *answers) {
  static const char *const shades[] = {" ", "░", "▒", "▓", "█"};
  for (int y = 0; y < SIDE; y++) {
    for (int i = 0; i < A_ROW; i++) {
      printf("  ");
      for (int x = 0; x < SIDE; x++) {
        const char *shade = shades[(t->images[images[i] * PIXELS + y * SIDE + x] + 3) / 4];
        printf("%s%s", shade, shade);
      }
    }
    printf("\n");
  }
  for (int i = 0; i < A_ROW; i++) {
    char text[32];
    const int label = (int)t->labels[images[i]];
    int used =
        snprintf(text, sizeof text, "%d (%.1f %%)", answers[i].digit, 100 * answers[i].confidence);
    if (answers[i].digit != label)
      snprintf(text + used, sizeof text - (size_t)used, ": is %d", label);
    printf("  %-16s", text);
  }
  printf("\n\n");
}

/* The first images, and the one of which PyTorch was least sure. */
static void show_digits(reader *r, const test_set *t) {
  int images[SHOWN], least = 0;
  answer answers[SHOWN];
  for (int i = 0; i < t->count; i++) {
    if (t->confidences[i] < t->confidences[least]) least = i;
  }
  for (int i = 0; i < SHOWN; i++) {
    images[i] = i < SHOWN - 1 ? i : least;
    read_digits(r, t, images[i], 1, &answers[i]);
  }
  printf("Digits that the model never saw in training, read by Kiln %s:\n\n", kiln_version());
  for (int i = 0; i < SHOWN; i += A_ROW) draw(t, images + i, answers + i);
}

/* -- The table -- */

static void row(const char *what, int batch, double ms, const char *note) {
  char images[24] = "";
  if (batch) snprintf(images, sizeof images, "batch %d", batch);
  printf("  %-16s %-9s %9.3f ms  %s\n", what, images, ms, note);
}

/* One call and what the counters say about it. */
static void counted_call(reader *r, const test_set *t, int count, int number) {
  kiln_counters before, after;
  char what[32], note[160] = "";
  kiln_model_counters(r->model, &before);
  double ms = read_digits(r, t, 0, count, NULL);
  check(kiln_model_wait_idle(r->model, NULL),
        "wait"); /* so that the next call finds what this asked for */
  kiln_model_counters(r->model, &after);
  size_t used = 0;
  if (after.fallback_calls > before.fallback_calls)
    used += (size_t)snprintf(note + used, sizeof note - used, "guard failed, fallback called");
  if (after.profiled_runs > before.profiled_runs)
    used += (size_t)snprintf(note + used, sizeof note - used, "%stypes recorded", used ? "; " : "");
  if (after.compiles > before.compiles)
    used += (size_t)snprintf(
        note + used, sizeof note - used, "%sasked for kernels: %llu compiled beside it, in %.2f ms",
        used ? "; " : "", (unsigned long long)(after.compiles - before.compiles),
        (double)(after.compile_ns - before.compile_ns) / 1e6);
  if (after.compiled_runs > before.compiled_runs)
    snprintf(note + used, sizeof note - used, "%s%llu runs of fused kernels", used ? "; " : "",
             (unsigned long long)(after.compiled_runs - before.compiled_runs));
  snprintf(what, sizeof what, "call %d", number);
  row(what, count, ms, note);
}

static void show_groups(reader *r) {
  kiln_group_counters group;
  for (int i = 0;; i++) {
    kiln_status *status = kiln_model_group(r->model, i, &group);
    if (status) {
      kiln_status_destroy(status);
      return;
    }
    printf("  %s, level %u: %u operators in one kernel, run %llu times\n", group.name, group.depth,
           group.operators, (unsigned long long)group.runs);
  }
}

/* Calls until they run kernels: how many it takes hangs on what making these costs here and now. */
static void settle(reader *r, const test_set *t, int count) {
  enum { MOST_MS = 10000, CALLS = 10 };
  const double start = now_ms();
  kiln_counters before, after;
  kiln_model_counters(r->model, &before);
  do {
    for (int i = 0; i < CALLS; i++) read_digits(r, t, 0, count, NULL);
    check(kiln_model_wait_idle(r->model, NULL), "wait");
    read_digits(r, t, 0, count, NULL);
    kiln_model_counters(r->model, &after);
  } while (after.compiled_runs == before.compiled_runs && now_ms() - start < (double)MOST_MS);
}

static void show_batch_size(reader *on, reader *off, const test_set *t, int count) {
  for (int i = 1; i <= FIRST_CALLS; i++) counted_call(on, t, count, i);
  settle(on, t, count);
  int off_runs, on_runs;
  double off_ms = steady(off, t, count, &off_runs), on_ms = steady(on, t, count, &on_runs);
  char note[64];
  snprintf(note, sizeof note, "median of %d", off_runs);
  row("steady, JIT off", count, off_ms, note);
  snprintf(note, sizeof note, "median of %d, %.2f times as fast", on_runs, off_ms / on_ms);
  row("steady, JIT on", count, on_ms, note);
}

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : "examples/digits";
  reader on, off;
  test_set test;
  open_reader(&on, folder, "on");
  open_reader(&off, folder, "off");
  open_test_set(&test, on.context, folder);
  show_digits(&off, &test);
  row("load", 0, on.load_ms, "");
  show_batch_size(&on, &off, &test, 1);
  printf("  a new batch size:\n");
  show_batch_size(&on, &off, &test, BATCH);
  show_groups(&on);

  int right = 0;
  for (int first = 0; first < test.count; first += BATCH)
    read_digits(&on, &test, first, test.count - first < BATCH ? test.count - first : BATCH, NULL);
  for (int i = 0; i < test.count; i++) right += test.digits[i] == test.labels[i];
  printf("  all %d test digits: the same answers as PyTorch's, %d of them right\n", test.count,
         right);
  kiln_counters counters;
  kiln_model_counters(on.model, &counters);
  for (int i = 0; i < 4; i++) kiln_value_destroy(test.tensors[i]);
  close_reader(&on);
  close_reader(&off);
  if (counters.compiled_runs == 0 || counters.compile_failures > 0) {
    fprintf(stderr, "digits: nothing ran compiled, or a compile failed\n");
    return 1;
  }
  return 0;
}
