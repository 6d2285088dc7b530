/* streams.c: a model over a stream of shapes: what calls cost with the JIT and without it, in one
 * run, and what is compiled on the way.
 *
 * bench_streams MODEL.pt INPUT... [--sizes A,B] [--shapes N] [--passes N] [--seed N] [--side S]
 *
 * INPUT is a dtype and sizes, numbers or letters: f32[n,256], i64[1,n]. Letters are drawn from
 * A to B (--sizes, 2,128) for each of N shapes (--shapes, 60); each pass (--passes, 3) calls the
 * model with all of them, in the same order. Integers are drawn below 100. Told are too the share
 * of calls of a pass in which compiled groups ran and nothing was profiled, and the context's
 * memory after 1,000 calls and in the end. With --side, on or off, one of the two is called alone,
 * so that what compiles beside calls has no more time than these take. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "kiln/kiln.h"

enum { MAX_INPUTS = 8, MAX_RANK = 8 };

typedef struct input {
  kiln_dtype dtype;
  int rank;
  int64_t sizes[MAX_RANK]; /* below 0: that letter, -'n' */
} input;

static struct {
  int64_t least, most;
  int shapes, passes, input_count;
  uint64_t seed;
  const char *side; /* NULL: both */
  input inputs[MAX_INPUTS];
} asked = {2, 128, 60, 3, 0, 1, NULL, {{0}}};

static void must(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "%s\n", kiln_status_report(status));
  exit(1);
}

static void usage(void) {
  fputs("usage: bench_streams MODEL.pt f32[n,256] ... [--sizes A,B] [--shapes N] [--passes N] "
        "[--seed N]\n",
        stderr);
  exit(2);
}

static input read_input(const char *text) {
  input in = {.dtype = KILN_DTYPE_F32};
  if (strncmp(text, "i64[", 4) == 0) in.dtype = KILN_DTYPE_I64;
  if (strncmp(text, "f32[", 4) != 0 && in.dtype == KILN_DTYPE_F32) usage();
  for (const char *at = text + 4; *at != ']' && in.rank < MAX_RANK;) {
    char *end = NULL;
    if (*at >= 'a' && *at <= 'z') {
      in.sizes[in.rank++] = -*at++;
    } else {
      in.sizes[in.rank++] = strtoll(at, &end, 10);
      if (end == at) usage();
      at = end;
    }
    if (*at == ',') at++;
  }
  return in;
}

static uint64_t next(uint64_t *state) {
  *state += 0x9e3779b97f4a7c15u;
  uint64_t x = *state;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

static kiln_value *make(kiln_context *context, const input *in, uint64_t *state,
                        const int64_t *letters) {
  int64_t sizes[MAX_RANK], numel = 1;
  for (int d = 0; d < in->rank; d++) {
    sizes[d] = in->sizes[d] < 0 ? letters[-in->sizes[d] - 'a'] : in->sizes[d];
    numel *= sizes[d];
  }
  void *data = calloc((size_t)numel + 1, 8);
  kiln_value *out = NULL;
  if (!data) exit(1);
  for (int64_t i = 0; i < numel; i++) {
    const uint64_t n = next(state);
    if (in->dtype == KILN_DTYPE_I64) ((int64_t *)data)[i] = (int64_t)(n % 100);
    if (in->dtype == KILN_DTYPE_F32) ((float *)data)[i] = (float)(n >> 40) * 0x1p-23f - 1;
  }
  must(kiln_value_tensor(context, in->dtype, in->rank, sizes, data, &out));
  free(data);
  return out;
}

/* -- Sides: the JIT and the plain interpreter -- */

typedef struct side {
  kiln_context *context;
  kiln_model *model;
  kiln_instance *instance;
} side;

static side open_side(const char *path, const char *jit) {
  side s = {0};
  kiln_options *options = NULL;
  must(kiln_options_create(&options));
  if (jit) must(kiln_options_set(options, "jit", jit));
  must(kiln_context_create(options, &s.context));
  kiln_options_destroy(options);
  must(kiln_model_load(s.context, path, NULL, &s.model));
  must(kiln_instance_create(s.model, &s.instance));
  return s;
}

static void close_side(side *s) {
  kiln_instance_release(s->instance);
  kiln_model_release(s->model);
  kiln_context_release(s->context);
}

static double time_call(side *s, uint64_t state) {
  kiln_value *inputs[MAX_INPUTS], *result = NULL;
  int64_t letters[26];
  for (int i = 0; i < 26; i++)
    letters[i] = asked.least + (int64_t)(next(&state) % (uint64_t)(asked.most - asked.least + 1));
  for (int i = 0; i < asked.input_count; i++)
    inputs[i] = make(s->context, &asked.inputs[i], &state, letters);
  const double begin = bench_seconds();
  must(kiln_instance_call(s->instance, "forward", inputs, asked.input_count, NULL, &result));
  const double taken = bench_seconds() - begin;
  kiln_value_destroy(result);
  for (int i = 0; i < asked.input_count; i++) kiln_value_destroy(inputs[i]);
  return taken;
}

static bool is_asked(const char *which) { return !asked.side || strcmp(asked.side, which) == 0; }

static void run(const char *path) {
  side on = open_side(path, NULL), off = open_side(path, "off");
  kiln_counters now;
  size_t early = 0;
  printf("%-5s %10s %10s %7s %9s %9s %9s %9s %10s\n", "pass", "JIT ms", "plain ms", "ratio",
         "profiled", "compiles", "misses", "compiled", "KiB");
  for (int pass = 0; pass < asked.passes; pass++) {
    double with = 0, without = 0;
    uint64_t last = 0, before = 0, compiled_calls = 0;
    for (int i = 0; i < asked.shapes; i++) {
      uint64_t state = asked.seed * 1000003 + (uint64_t)i;
      kiln_counters begin;
      kiln_model_counters(on.model, &begin);
      if (is_asked("on")) with += time_call(&on, state);
      if (is_asked("off")) without += time_call(&off, state);
      kiln_model_counters(on.model, &now);
      compiled_calls +=
          now.compiled_runs > begin.compiled_runs && now.profiled_runs == begin.profiled_runs;
      if (pass * asked.shapes + i == 999) early = kiln_context_bytes(on.context);
      if (now.profiled_runs + now.compiles != before) last = (uint64_t)i + 1;
      before = now.profiled_runs + now.compiles;
    }
    printf("%-5d %10.2f %10.2f %7.3f %9llu %9llu %9llu %8.3f%% %10zu", pass + 1, with * 1e3,
           without * 1e3, with / without, (unsigned long long)now.profiled_runs,
           (unsigned long long)now.compiles, (unsigned long long)now.guard_misses,
           100.0 * (double)compiled_calls / asked.shapes, kiln_context_bytes(on.context) >> 10);
    if (pass == 0) printf("   nothing new after shape %llu", (unsigned long long)last);
    putchar('\n');
  }
  printf("%llu groups, %.2f ms of compiling, deepest level %u\n", (unsigned long long)now.groups,
         (double)now.compile_ns * 1e-6, now.max_depth);
  if (early)
    printf("%+lld bytes since call 1000\n",
           (long long)kiln_context_bytes(on.context) - (long long)early);
  close_side(&on);
  close_side(&off);
}

int main(int argc, char **argv) {
  const char *path = NULL;
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (strncmp(argv[i], "--", 2) != 0) {
      if (!path) {
        path = argv[i];
      } else if (asked.input_count < MAX_INPUTS) {
        asked.inputs[asked.input_count++] = read_input(argv[i]);
      }
      continue;
    }
    if (strcmp(argv[i], "--shapes") == 0) asked.shapes = atoi(value);
    if (strcmp(argv[i], "--side") == 0) asked.side = value;
    if (strcmp(argv[i], "--passes") == 0) asked.passes = atoi(value);
    if (strcmp(argv[i], "--seed") == 0) asked.seed = strtoull(value, NULL, 10);
    if (strcmp(argv[i], "--sizes") == 0 &&
        sscanf(value, "%lld,%lld", (long long *)&asked.least, (long long *)&asked.most) != 2)
      usage();
    i++;
  }
  if (!path || asked.input_count == 0 || asked.least < 0 || asked.most < asked.least) usage();
  run(path);
  return 0;
}
