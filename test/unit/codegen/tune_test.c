/* tune_test.c: searching for schedules: what is tried is legal and computes the same, what was
 * found is kept and used again, and whatever a file holds the kernel has a legal schedule. */
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/budget.h"
#include "codegen/loop/schedule.h"
#include "codegen_support.h"
#include "runtime/pack.h"
#include "test/unit/files.h"
#include "test/unit/sweep.h"

enum { PATH = 512, FILE_BYTES = 1 << 17, MOST_MOVES = 64 };

/* relu(x @ w.t()), worth a search. */
static const char product[] =
    "kernel {\n in b0: f32[160, 96] [96, 1]\n in b1: f32[80, 96] [96, 1]\n"
    " out b2: f32[160, 80] [80, 1]\n nest [160, 80] {\n reduce 96 {\n"
    " %1 = load f32 b0 + 0 [96, 0, 1]\n %2 = load f32 b1 + 0 [0, 96, 1]\n"
    " %3 = contract f32 %1, %2 over 1\n }\n %5 = const f32 0\n %6 = max f32 %3, %5\n"
    " store f32 b2 + 0 [80, 1], %6\n }\n}\n";
static const char softmax[] =
    "kernel {\n in b0: f32[64, 500] [500, 1]\n out b1: f32[64, 500] [500, 1]\n"
    " local b2: f32[500] [1]\n nest [64] {\n reduce 500 {\n %1 = load f32 b0 + 0 [500, 1]\n"
    " %2 = amax f32 %1 over 1\n }\n reduce 500 {\n %5 = load f32 b0 + 0 [500, 1]\n"
    " %6 = sub f32 %5, %2\n %7 = exp f32 %6\n store f32 b2 + 0 [0, 1], %7\n"
    " %9 = sum f32 %7 over 1\n }\n for 500 {\n %12 = load f32 b2 + 0 [0, 1]\n"
    " %13 = div f32 %12, %9\n store f32 b1 + 0 [500, 1], %13\n }\n }\n}\n";
static const char turned[] =
    "kernel {\n in b0: f32[300, 200] [200, 1]\n in b1: f32[200] [1]\n"
    " out b2: f32[200, 300] [300, 1]\n nest [200, 300] {\n %0 = load f32 b0 + 0 [1, 200]\n"
    " %1 = load f32 b1 + 0 [1, 0]\n %2 = exp f32 %0\n %3 = add f32 %2, %1\n"
    " store f32 b2 + 0 [300, 1], %3\n }\n}\n";
static const char pixels[] = /* a window of 3 x 3 over 40 channels, channels last */
    "kernel {\n in b0: f32[14, 14, 40] [560, 40, 1]\n in b1: f32[40, 3, 3] [9, 3, 1]\n"
    " out b2: f32[12, 12, 40] [480, 40, 1]\n nest [12, 12, 40] {\n reduce 3 {\n reduce 3 {\n"
    " %2 = load f32 b0 + 0 [560, 40, 1, 560, 40]\n %3 = load f32 b1 + 0 [0, 0, 9, 3, 1]\n"
    " %4 = contract f32 %2, %3 over 2\n }\n }\n store f32 b2 + 0 [480, 40, 1], %4\n }\n}\n";
static const char gathered[] =
    "kernel {\n in b0: f32[5, 1000] [1000, 1]\n in b1: i64[200] [1]\n"
    " out b2: f32[200, 1000] [1000, 1]\n nest [200, 1000] {\n %0 = load i64 b1 + 0 [1, 0]\n"
    " %1 = check i64 %0 below 5\n %2 = gather f32 b0 + 0 [0, 1] at %1 * 1000\n %3 = exp f32 %2\n"
    " store f32 b2 + 0 [1000, 1], %3\n }\n}\n";
static const char symbolic[] =
    "kernel {\n in b0: f32[n0, n1] [n1, 1]\n out b1: f32[n0, n1] [n1, 1]\n nest [n0, n1] {\n"
    " %0 = load f32 b0 + 0 [n1, 1]\n %1 = exp f32 %0\n store f32 b1 + 0 [n1, 1], %1\n }\n}\n";

/* -- A folder, and contexts that use it -- */

static fixture f;
static char root[PATH], folder[PATH + 16];
static int warnings;
static char last_warning[1024];

static void on_log(void *user, const char *channel, int level, const char *line) {
  (void)user, (void)level;
  if (strcmp(channel, "warn") != 0) return;
  warnings++;
  snprintf(last_warning, sizeof last_warning, "%s", line);
}

static void remove_all(void) {
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[2 * PATH];
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.' && unlink(path) != 0) (void)rmdir(path);
  }
  if (d) closedir(d);
  (void)rmdir(folder);
}

static int set_up(void **state) {
  (void)state;
  fixture_open(&f);
  strcpy(root, "/tmp/kiln_tune_XXXXXX");
  assert_non_null(mkdtemp(root));
  snprintf(folder, sizeof folder, "%s/a/b", root);
  f.env->log.callback = on_log;
  warnings = 0;
  return 0;
}
static int tear_down(void **state) {
  char path[PATH + 16];
  (void)state;
  remove_all();
  snprintf(path, sizeof path, "%s/a", root);
  (void)rmdir(path);
  assert_int_equal(rmdir(root), 0);
  fixture_close(&f);
  return 0;
}

static kiln_codegen *open_codegen(const char *autotune) {
  kiln_codegen *codegen;
  assert_ok(kiln_flags_set(&f.env->flags, "autotune", autotune));
  assert_ok(kiln_flags_set(&f.env->flags, "autotune_dir", folder));
  assert_ok(kiln_codegen_create(f.env, &codegen));
  return codegen;
}

static kiln_digest digest_of(const kiln_loop_fn *fn) {
  const kiln_str text = kiln_loop_print(fn, f.arena);
  return kiln_digest_bytes(text.data, text.len);
}

/* What a context with that flag knows of the kernel. */
static kiln_tuned tune_with(const char *autotune, const kiln_loop_fn *fn, const int64_t *symbols) {
  kiln_codegen *codegen = open_codegen(autotune);
  (void)kiln_codegen_tune(codegen, fn, symbols, true);
  const kiln_tuned tuned = kiln_codegen_tuned(codegen, digest_of(fn));
  kiln_codegen_destroy(codegen);
  return tuned;
}

/* How many files there are; the path of one. */
static int count_files(char out_path[2 * PATH]) {
  int count = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.') continue;
    count++;
    if (out_path) snprintf(out_path, 2 * PATH, "%s/%s", folder, e->d_name);
  }
  if (d) closedir(d);
  return count;
}

static char *read_text(const char *path) {
  char *text = calloc(1, FILE_BYTES);
  assert_non_null(text);
  (void)read_file(path, text, FILE_BYTES - 1);
  return text;
}

/* The head of the file that a search leaves for the kernel, with other times; where it lies. */
static char *plant_head(const kiln_loop_fn *fn, char out_path[2 * PATH]) {
  assert_true(tune_with("on", fn, NULL).is_known);
  assert_int_equal(count_files(out_path), 1);
  char *text = read_text(out_path), *times = strstr(text, "; rules ");
  assert_non_null(times);
  strcpy(times, "; rules 2000 ns, this 1000 ns, of 3 tried\n");
  return text;
}

static void plant(const kiln_loop_fn *fn, const char *schedule) {
  char path[2 * PATH], *text = plant_head(fn, path);
  strcat(text, schedule);
  write_file(path, text, strlen(text));
  free(text);
}

/* -- Running -- */

/* The output, of `count` floats, whose owner is the caller. */
static float *run(const kiln_compiled *code, const kiln_loop_fn *fn, int64_t count) {
  enum { BYTES = 1 << 20 };
  void *data[4] = {0}, *owned[8] = {0};
  int owns = 0;
  float *out = NULL;
  for (int i = 0; i < fn->input_count + fn->output_count; i++) {
    float *x = owned[owns++] = data[i] = aligned_alloc(64, BYTES);
    assert_non_null(x);
    for (int k = 0; k < BYTES / 4; k++) x[k] = (float)(k * 7919 % 257) / 128 - 1;
    if (i == fn->input_count) out = x;
  }
  for (int i = 0; i < code->info.pack_count; i++) {
    size_t bytes;
    const kiln_kernel_pack *pack = &code->info.packs[i];
    assert_true(kiln_pack_bytes(pack, &bytes));
    void *copy = owned[owns++] = aligned_alloc(64, (bytes + 63) / 64 * 64);
    kiln_pack_copy(pack, data[pack->input], copy);
    data[pack->input] = copy;
  }
  void *scratch = aligned_alloc(64, (code->info.work.scratch_bytes + 64) / 64 * 64);
  const kiln_kernel_args args = {.data = data, .scratch = scratch};
  code->fn(&args, &code->info.work.grid);
  float *result = malloc(sizeof *result * (size_t)count);
  assert_non_null(result);
  memcpy(result, out, sizeof *result * (size_t)count);
  for (int i = 0; i < owns; i++) free(owned[i]);
  free(scratch);
  return result;
}

static void assert_near(const float *x, const float *y, int64_t count, float tolerance) {
  for (int64_t i = 0; i < count; i++) {
    const float error = fabsf(x[i] - y[i]), bound = tolerance * (1 + fabsf(y[i]));
    if (!(error <= bound)) fail_msg("element %d is %g, not %g", (int)i, (double)x[i], (double)y[i]);
  }
}

/* -- What is tried -- */

typedef struct moved {
  kiln_codegen *codegen;
  const kiln_loop_fn *fn;
  kiln_schedule rules, moves[MOST_MOVES];
  int count;
} moved;
static kiln_status *find_moves(moved *m) {
  kiln_machine machine;
  KILN_TRY(kiln_machine_describe(f.env->isa, KILN_STR(""), &machine));
  m->rules = kiln_schedule_choose(m->fn, &machine, f.arena);
  m->count = kiln_schedule_moves(m->fn, &machine, &m->rules, MOST_MOVES, f.arena, m->moves);
  for (int i = 0; i < m->count; i++) KILN_TRY(kiln_schedule_verify(m->fn, &m->moves[i], f.arena));
  return NULL;
}
static kiln_status *try_moves(moved *m) { KILN_PROTECT(find_moves(m)); }

/* Every move of the rules' schedule computes what that computes. */
static void check_moves(const char *text, int least, int64_t count, float tolerance) {
  moved m = {.codegen = open_codegen("off"), .fn = parse_loop(&f, text, true, NULL)};
  kiln_compiled *code;
  kiln_reason reason;
  assert_ok(try_moves(&m));
  assert_in_range(m.count, least, MOST_MOVES);
  assert_ok(kiln_codegen_compile_as(m.codegen, m.fn, &m.rules, &reason, &code));
  float *want = run(code, m.fn, count);
  kiln_compiled_release(code);
  for (int i = 0; i < m.count; i++) {
    assert_null(kiln_schedule_beyond(&m.moves[i], &m.rules));
    assert_ok(kiln_codegen_compile_as(m.codegen, m.fn, &m.moves[i], &reason, &code));
    float *got = run(code, m.fn, count);
    assert_near(got, want, count, tolerance);
    free(got);
    kiln_compiled_release(code);
  }
  free(want);
  kiln_codegen_destroy(m.codegen);
}

static void moves_compute_the_same(void **state) {
  (void)state;
  check_moves(product, 5, 160 * 80, 1e-4f);
  check_moves(pixels, 5, 12 * 12 * 40, 1e-4f);
  check_moves(softmax, 5, 64 * 500, 0);
  check_moves(turned, 5, 200 * 300, 0);
}

/* -- What is kept -- */

static void keeps_what_it_found(void **state) {
  char path[2 * PATH];
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  const kiln_tuned found = tune_with("on", fn, NULL);
  assert_true(found.is_known && found.tried > 0 && found.rule_ns > 0);
  assert_true(found.best_ns <= found.rule_ns);
  assert_int_equal(count_files(path), 1);
  struct stat s;
  assert_int_equal(stat(path, &s), 0);
  assert_int_equal(s.st_mode & 0777, 0600);
  const kiln_tuned again = tune_with("use", fn, NULL), more = tune_with("on", fn, NULL);
  assert_memory_equal(&again, &found, sizeof found);
  assert_memory_equal(&more, &found, sizeof found); /* it was not searched for again */
  assert_int_equal(warnings, 0);
}

static void writes_nothing_when_off(void **state) {
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  assert_false(tune_with("off", fn, NULL).is_known);
  assert_false(tune_with("use", fn, NULL).is_known);
  assert_int_equal(access(folder, F_OK), -1);
  plant(fn, "schedule {\n nest 0: vector i1 4\n}\n");
  assert_false(tune_with("off", fn, NULL).is_known);
  assert_int_equal(warnings, 0);
}

/* The parts of a call that has limits have no time for it. */
static void searches_only_where_it_may(void **state) {
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  kiln_codegen *codegen = open_codegen("on");
  (void)kiln_codegen_tune(codegen, fn, NULL, false);
  assert_false(kiln_codegen_tuned(codegen, digest_of(fn)).is_known);
  (void)kiln_codegen_tune(codegen, fn, NULL, true);
  assert_true(kiln_codegen_tuned(codegen, digest_of(fn)).is_known);
  kiln_codegen_destroy(codegen);
  assert_ok(kiln_flags_set(&f.env->flags, "exact", "on")); /* sums would have other bits */
  assert_false(tune_with("use", fn, NULL).is_known);
  assert_true(tune_with("on", parse_loop(&f, softmax, true, NULL), NULL).is_known);
}

/* What is little work, of any kind. */
static void searches_what_is_worth_it(void **state) {
  (void)state;
  const char *small =
      "kernel { in b0: f32[64] [1] out b1: f32[64] [1] nest [64] {\n %0 = load f32 b0 + 0 [1]\n"
      " %1 = neg f32 %0\n store f32 b1 + 0 [1], %1 } }";
  assert_false(tune_with("on", parse_loop(&f, small, true, NULL), NULL).is_known);
  const int64_t sizes[] = {300, 700};
  const kiln_loop_fn *fn = parse_loop(&f, symbolic, true, NULL);
  assert_false(tune_with("on", fn, NULL).is_known); /* of which sizes? */
  assert_int_equal(count_files(NULL), 0);
  assert_true(tune_with("on", fn, sizes).is_known);
  assert_true(tune_with("on", parse_loop(&f, gathered, true, NULL), NULL).is_known);
  assert_int_equal(count_files(NULL), 2);
}

static void ends_with_its_time(void **state) {
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  assert_ok(kiln_flags_set(&f.env->flags, "autotune_time", "0"));
  assert_false(tune_with("on", fn, NULL).is_known);
  assert_ok(kiln_flags_set(&f.env->flags, "autotune_time", "1")); /* less than one kernel takes */
  (void)tune_with("on", fn, NULL);
  assert_int_equal(count_files(NULL), 0);
}

static void works_apart(void **state) {
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  assert_ok(kiln_flags_set(&f.env->flags, "compile_process", "on"));
  kiln_codegen *codegen = open_codegen("on");
  kiln_codegen_begin(codegen, 0);
  (void)kiln_codegen_tune(codegen, fn, NULL, true);
  kiln_codegen_end(codegen);
  assert_true(kiln_codegen_tuned(codegen, digest_of(fn)).is_known);
  assert_true(kiln_codegen_tuned(codegen, digest_of(fn)).tried > 0);
  assert_false(kiln_codegen_llvm_is_open(codegen));
  kiln_codegen_destroy(codegen);
}

static void works_on_threads(void **state) {
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  kiln_env *one = f.env;
  char *const options[] = {"KILN_THREADS=2", NULL};
  assert_true(tune_with("on", fn, NULL).is_known);
  assert_ok(kiln_env_create_with(NULL, options, &f.env));
  f.env->log.callback = on_log;
  assert_false(tune_with("use", fn, NULL).is_known); /* they are another machine */
  assert_true(tune_with("on", fn, NULL).is_known);
  assert_int_equal(count_files(NULL), 2);
  assert_int_equal(warnings, 0);
  kiln_env_destroy(f.env);
  f.env = one;
}

/* Both get the one schedule that is found. */
typedef struct asker {
  pthread_t thread;
  kiln_codegen *codegen;
  const kiln_loop_fn *fn;
} asker;
static void *ask(void *arg) {
  const asker *a = arg;
  (void)kiln_codegen_tune(a->codegen, a->fn, NULL, true);
  return NULL;
}
static void searches_once_for_threads(void **state) {
  (void)state;
  asker askers[3];
  kiln_codegen *codegen = open_codegen("on");
  const kiln_loop_fn *fn = parse_loop(&f, softmax, true, NULL);
  for (int i = 0; i < 3; i++) {
    askers[i] = (asker){.codegen = codegen, .fn = fn};
    assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
  }
  for (int i = 0; i < 3; i++) pthread_join(askers[i].thread, NULL);
  const kiln_tuned tuned = kiln_codegen_tuned(codegen, digest_of(fn));
  assert_true(tuned.is_known);
  assert_int_equal(count_files(NULL), 1);
  kiln_codegen_destroy(codegen);
  const kiln_tuned again = tune_with("use", fn, NULL);
  assert_memory_equal(&again, &tuned, sizeof tuned);
}

/* -- What files hold -- */

typedef struct told {
  kiln_tuned tuned;
  kiln_str schedule;
} told;

/* The schedule that serves, and the kernel's result. */
static told serve(const kiln_loop_fn *fn, float **out_result, int64_t count) {
  kiln_codegen *codegen = open_codegen("use");
  kiln_compiled *code;
  kiln_reason reason;
  told t;
  (void)kiln_codegen_tune(codegen, fn, NULL, true);
  assert_ok(kiln_codegen_compile(codegen, fn, KILN_BACKEND_LLVM, &reason, &code, NULL));
  t.tuned = kiln_codegen_tuned(codegen, code->digest);
  assert_ok(kiln_codegen_dump(codegen, fn, KILN_STAGE_SCHEDULE, f.arena, &t.schedule));
  *out_result = run(code, fn, count);
  kiln_compiled_release(code);
  kiln_codegen_destroy(codegen);
  return t;
}

static void uses_what_is_planted(void **state) {
  static const char other[] =
      "schedule {\n  nest 0: panel i1 8, pack b1, tile i0 3\n  nest 0: vector i1 4\n}\n";
  float *want, *got;
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  const told rules = serve(fn, &want, 160 * 80);
  assert_false(rules.tuned.is_known);
  assert_non_null(strstr(rules.schedule.data, "; the rules'\n"));
  plant(fn, other);
  const told planted = serve(fn, &got, 160 * 80);
  assert_true(planted.tuned.is_known);
  assert_int_equal(planted.tuned.rule_ns, 2000);
  assert_int_equal(planted.tuned.best_ns, 1000);
  assert_non_null(strstr(planted.schedule.data, other));
  assert_non_null(
      strstr(planted.schedule.data, "; autotune's, 1.00 us; the rules' take 2.00 us\n"));
  assert_near(got, want, 160 * 80, 1e-4f);
  assert_int_equal(warnings, 0);
  free(want), free(got);
}

/* One warning, that has those words; the rules' schedule serves. */
static void assert_ignored(const kiln_loop_fn *fn, const char *words) {
  float *result;
  warnings = 0;
  const told t = serve(fn, &result, 1);
  free(result);
  assert_false(t.tuned.is_known);
  assert_non_null(strstr(t.schedule.data, "; the rules'\n"));
  assert_int_equal(warnings, 1);
  if (!strstr(last_warning, words)) fail_msg("\"%s\" lacks \"%s\"", last_warning, words);
  assert_null(strchr(last_warning, '\n'));
}

static void ignores_what_is_wrong(void **state) {
  static const struct {
    const char *schedule, *words;
  } wrong[] = {
      {"schedule {\n nest 0: vector i7 8\n}\n", "there is no loop i7"},
      {"schedule {\n nest 0: vector i0 8\n}\n", "which is not the last loop"},
      {"schedule {\n nest 3: vector i1 8\n}\n", "schedule, line"},
      {"schedule {\n nest 0: vector i1", "schedule, line"},
      {"schedule { } schedule { }", "more behind the schedule"},
      {"schedule {\n nest 0: panel i1 8, tile i0 3\n}\n", "packs other inputs"},
      {"schedule {\n nest 0: panel i0 8, pack b0, tile i1 3\n}\n", "packs other inputs"},
      {"\xff\xfe", "schedule, line"},
  };
  char path[2 * PATH];
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  char *head = plant_head(fn, path), *text = malloc(FILE_BYTES);
  assert_non_null(text);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const int len = snprintf(text, FILE_BYTES, "%s%s", head, wrong[i].schedule);
    write_file(path, text, (size_t)len);
    assert_ignored(fn, wrong[i].words);
  }
  write_file(path, "", 0);
  assert_ignored(fn, "0 bytes");
  write_file(path, "#!/bin/sh\n", 10);
  assert_ignored(fn, "no schedule of Kiln's");
  write_file(path, head, (size_t)(strstr(head, "; rules") - head));
  assert_ignored(fn, "times cannot be read");
  write_file(path, head, (size_t)(strstr(head, "kernel") - head));
  assert_ignored(fn, "another kernel");
  strcpy(text, head);
  strstr(text, "threads=1")[strlen("threads=")] = '9';
  write_file(path, text, strlen(text));
  assert_ignored(fn, "another kernel, machine or Kiln");
  memset(text, ' ', FILE_BYTES - 1);
  memcpy(text, head, strlen(head));
  write_file(path, text, FILE_BYTES - 1);
  assert_ignored(fn, "bytes");
  free(head), free(text);
}

/* Bytes of a good file, changed at random: a legal schedule of the kernel, or none. */
static void survives_any_bytes(void **state) {
  char path[2 * PATH];
  uint64_t seed = random_seed(7);
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  assert_true(tune_with("on", fn, NULL).is_known);
  assert_int_equal(count_files(path), 1);
  char *good = read_text(path), *text = malloc(FILE_BYTES);
  const size_t size = strlen(good), behind = (size_t)(strstr(good, "schedule {") - good);
  f.env->log.level[KILN_LOG_warn] = 0;
  for (int i = 0; i < 500; i++) {
    memcpy(text, good, size);
    for (int k = 1 + random_below(&seed, 4); k > 0; k--) {
      const size_t at = behind + (size_t)random_below(&seed, (int)(size - behind));
      text[at] =
          random_below(&seed, 2) ? (char)('0' + random_below(&seed, 10)) : (char)random_next(&seed);
    }
    write_file(path, text, size);
    (void)tune_with("use", fn, NULL);
  }
  free(good), free(text);
}

static void trusts_only_its_user(void **state) {
  char path[2 * PATH], other[PATH + 16];
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  assert_true(tune_with("on", fn, NULL).is_known);
  assert_int_equal(count_files(path), 1);
  assert_int_equal(chmod(path, 0666), 0);
  assert_ignored(fn, "others may write to it");
  assert_int_equal(chmod(path, 0620), 0);
  assert_ignored(fn, "others may write to it");
  assert_int_equal(chmod(path, 0600), 0);
  assert_int_equal(chmod(folder, 0777), 0);
  assert_ignored(fn, "others may write to it");
  assert_int_equal(chmod(folder, 0700), 0);
  assert_true(tune_with("use", fn, NULL).is_known);
  if (geteuid() == 0) {
    assert_int_equal(chown(path, 12345, 12345), 0);
    assert_ignored(fn, "another user's");
    assert_int_equal(chown(path, 0, 0), 0);
  }
  snprintf(other, sizeof other, "%s/moved", root);
  assert_int_equal(rename(path, other), 0);
  assert_int_equal(symlink(other, path), 0);
  assert_ignored(fn, path);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_ignored(fn, "no file");
  assert_int_equal(unlink(other), 0);
}

/* A search is not lost where nothing can be kept. */
static void goes_on_without_a_folder(void **state) {
  (void)state;
  const kiln_loop_fn *fn = parse_loop(&f, product, true, NULL);
  snprintf(folder, sizeof folder, "/dev/null/kiln");
  assert_true(tune_with("on", fn, NULL).is_known);
  assert_int_equal(warnings, 2); /* it can be neither read nor written */
  assert_non_null(strstr(last_warning, "nothing is kept"));
}

/* -- Lack of memory -- */

/* What fails, the rules' schedule serves: there is no complaint. */
static kiln_status *tune_in(kiln_env *env, void *fn) {
  kiln_codegen *codegen;
  env->log.level[KILN_LOG_warn] = 0;
  KILN_TRY(kiln_flags_set(&env->flags, "autotune", f.env->flags.autotune == 1 ? "on" : "use"));
  KILN_TRY(kiln_flags_set(&env->flags, "autotune_dir", folder));
  KILN_TRY(kiln_codegen_create(env, &codegen));
  (void)kiln_codegen_tune(codegen, fn, NULL, true);
  kiln_codegen_destroy(codegen);
  return NULL;
}

static void survives_lack_of_memory(void **state) {
  enum { SAMPLES = 12 };
  (void)state;
  kiln_loop_fn *fn = parse_loop(&f, softmax, true, NULL);
  plant(fn, "schedule {\n nest 0: vector l 8\n}\n");
  assert_ok(kiln_flags_set(&f.env->flags, "autotune", "use"));
  sweep_env(tune_in, fn, true);
  remove_all();
  assert_ok(kiln_flags_set(&f.env->flags, "autotune", "on"));
  kiln_env *env;
  assert_ok(kiln_env_create(NULL, &env));
  const size_t before = kiln_mem_bytes(env->mem);
  kiln_mem_fail_at(env->mem, 0);
  assert_ok(tune_in(env, fn));
  const uint64_t requests = kiln_mem_fail_at(env->mem, 0);
  for (uint64_t i = 0; i < SAMPLES; i++) {
    remove_all();
    kiln_mem_fail_at(env->mem, 1 + i * requests / SAMPLES);
    kiln_status_destroy(tune_in(env, fn));
    kiln_mem_fail_at(env->mem, 0);
    assert_int_equal(kiln_mem_bytes(env->mem), before);
  }
  kiln_env_destroy(env);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(moves_compute_the_same),
      TEST(keeps_what_it_found),
      TEST(writes_nothing_when_off),
      TEST(searches_only_where_it_may),
      TEST(searches_what_is_worth_it),
      TEST(ends_with_its_time),
      TEST(works_apart),
      TEST(works_on_threads),
      TEST(uses_what_is_planted),
      TEST(ignores_what_is_wrong),
      TEST(survives_any_bytes),
      TEST(trusts_only_its_user),
      TEST(goes_on_without_a_folder),
      TEST(searches_once_for_threads),
      TEST(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
