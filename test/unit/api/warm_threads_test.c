/* warm_threads_test.c: models before their first request: warmed up, started from profiles of other
 * processes; and what calls wait for. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "api/internal.h"
#include "codegen/codegen.h"
#include "runtime/pack.h"
#include "test/unit/api/fixture.h"
#include "test/unit/files.h"

#define CASE TEST_DATA "/own/mlp/"

static char folder[] = "/tmp/kiln_warm_XXXXXX", path[64];

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(path, sizeof path, "%s/profile", folder);
  return 0;
}
static void empty_folder(void) {
  DIR *dir = opendir(folder);
  assert_non_null(dir);
  for (const struct dirent *d; (d = readdir(dir));)
    if (*d->d_name != '.') assert_int_equal(unlinkat(dirfd(dir), d->d_name, 0), 0);
  closedir(dir);
}
static int remove_folder(void **state) {
  (void)state;
  empty_folder();
  return rmdir(folder);
}

/* What calls have spent until a level pays: few do so here, so nothing, or for ever. */
static const char *compile_after = "0";
/* "llvm" takes its time, and finds kernels in the folder. */
static const char *codegen = "eval";

static subject open_with(const char *compile, const char *profile) {
  const setting settings[] = {
      {"codegen", codegen},        {"cache_dir", *codegen == 'l' ? folder : NULL},
      {"log", "warn=0"},           {"compile", compile},
      {"max_stall_us", "1000000"}, {"compile_after", compile_after},
      {"profile", profile},        {NULL, NULL}};
  subject s = {.context = context_of(settings)};
  load_subject(&s, CASE "model.pt");
  return s;
}

static kiln_value *input(const subject *s) {
  return take_first(read_recorded(s->context, CASE "inputs_0.pt"));
}

static kiln_counters counters(const subject *s) { return counters_of(s->model); }

/* One call, whose answer is the recorded one; how many groups it ran compiled. */
static uint64_t call(const subject *s) {
  const uint64_t before = counters(s).compiled_runs;
  kiln_value *want = read_recorded(s->context, CASE "expected_0.pt"), *x = input(s), *got;
  assert_ok(kiln_instance_call(s->instance, "forward", &x, 1, NULL, &got));
  assert_close(got, want, 1e-4f, 1e-5f);
  kiln_value_destroy(got);
  kiln_value_destroy(x);
  kiln_value_destroy(want);
  return counters(s).compiled_runs - before;
}

static void warm_up(const subject *s) {
  kiln_value *x = input(s);
  assert_ok(kiln_model_warm_up(s->model, "forward", &x, 1, NULL));
  kiln_value_destroy(x);
}

/* The first request runs what all later ones run. */
static void warmed_up_models_are_fast_at_once(void **state) {
  static const char *const ways[] = {"sync", "async"};
  (void)state;
  compile_after = "100000";
  for (int i = 0; i < 2; i++) {
    subject s = open_with(ways[i], NULL);
    warm_up(&s);
    const uint64_t groups = counters(&s).groups, jobs = counters(&s).jobs;
    assert_true(groups > 0);
    assert_int_equal(call(&s), groups);
    assert_int_equal(call(&s), groups);
    assert_int_equal(counters(&s).jobs, jobs);
    assert_int_equal(counters(&s).stalls, 0);
    close_subject(&s);
  }
  compile_after = "0";
}

static void warming_up_complains_as_calls_do(void **state) {
  (void)state;
  subject s = open_with("async", NULL);
  assert_error(kiln_model_warm_up(s.model, "backward", NULL, 0, NULL), KILN_NOT_FOUND, "backward");
  assert_error(kiln_model_warm_up(s.model, "forward", NULL, 0, NULL), KILN_INVALID_ARGUMENT, "x");
  assert_error(kiln_model_warm_up(s.model, "forward", NULL, 1, NULL), KILN_INVALID_ARGUMENT, "");
  const kiln_limits limits = {.time_ms = 1};
  assert_ok(kiln_model_wait_idle(s.model, &limits)); /* nothing was asked for */
  close_subject(&s);
}

/* Calls go on while weights are packed: none of it is theirs. Of eight of them each answers right,
 * and behind the jobs all run compiled. */
static void calls_meet_jobs(void **state) {
  (void)state;
  for (int wait = 0; wait < 2; wait++) {
    subject s = open_with("async", NULL);
    uint64_t last = 0;
    for (int i = 0; i < 8; i++) {
      last = call(&s);
      if (wait) assert_ok(kiln_model_wait_idle(s.model, NULL));
    }
    if (wait) assert_int_equal(last, counters(&s).groups);
    assert_int_equal(counters(&s).stalls, 0);
    close_subject(&s);
  }
}

static void convolve(const subject *s) {
  kiln_value *x = take_first(read_recorded(s->context, TEST_DATA "/own/layouts/inputs_0.pt")), *got;
  assert_ok(kiln_instance_call(s->instance, "forward", &x, 1, NULL, &got));
  kiln_value_destroy(got);
  kiln_value_destroy(x);
}

static uint64_t packed(const subject *s) {
  return kiln__pack_store_made(kiln_codegen_packs(s->context->codegen));
}

/* What the kernels want of weights, the second job makes: calls make nothing. */
static void weights_are_packed_by_jobs(void **state) {
  subject s = {.context = context_with("compile", "async")};
  (void)state;
  assert_ok(kiln_context_set(s.context, "compile_after", "0", NULL));
  load_subject(&s, TEST_DATA "/own/layouts/model.pt");
  for (int i = 0; i < 2; i++) {
    convolve(&s);
    assert_ok(kiln_model_wait_idle(s.model, NULL));
  }
  if (counters(&s).groups == 0) skip(); /* without LLVM there are none */
  assert_int_equal(packed(&s), 0);
  convolve(&s);
  assert_int_equal(counters(&s).compiled_runs, 0);
  assert_ok(kiln_model_wait_idle(s.model, NULL));
  const uint64_t copies = packed(&s);
  assert_true(copies > 4);
  for (int i = 0; i < 3; i++) convolve(&s);
  assert_int_equal(packed(&s), copies);
  assert_true(counters(&s).compiled_runs > 0);
  close_subject(&s);
}

static void profiles_start_models(void **state) {
  static const char *const ways[] = {"sync", "async"};
  (void)state;
  subject first = open_with("sync", NULL);
  warm_up(&first);
  const uint64_t groups = counters(&first).groups;
  assert_ok(kiln_model_save_profile(first.model, path));
  close_subject(&first);
  for (int i = 0; i < 2; i++) {
    subject s = open_with(ways[i], NULL);
    assert_ok(kiln_model_load_profile(s.model, path));
    assert_ok(kiln_model_wait_idle(s.model, NULL));
    assert_int_equal(counters(&s).groups, groups);
    assert_int_equal(call(&s), groups);
    assert_ok(kiln_model_load_profile(s.model, path)); /* once more changes nothing */
    assert_int_equal(call(&s), groups);
    assert_ok(kiln_model_save_profile(s.model, path));
    close_subject(&s);
  }
  subject called = open_with("sync", NULL); /* what calls have begun goes on */
  call(&called);
  assert_ok(kiln_model_load_profile(called.model, path));
  call(&called);
  assert_int_equal(call(&called), groups);
  close_subject(&called);
}

/* A host that calls at once meets the job that starts from the profile, where a compiler is needed;
 * where kernels are found it is not, and the first call runs them. */
static void calls_meet_starts(void **state) {
  static char text[1 << 16];
  (void)state;
  codegen = "llvm";
  const size_t size = read_file(path, text, sizeof text);
  for (int i = 0; i < 12; i++) {
    empty_folder();
    write_file(path, text, size);
    subject s = open_with("async", NULL);
    assert_ok(kiln_model_load_profile(s.model, path));
    for (int k = 0; k < i % 4; k++) call(&s);
    if (i % 2) assert_ok(kiln_model_wait_idle(s.model, NULL));
    call(&s);
    assert_int_equal(counters(&s).compile_failures, 0);
    assert_ok(kiln_model_wait_idle(s.model, NULL));
    const uint64_t groups = counters(&s).groups;
    close_subject(&s);
    subject found = open_with("async", NULL);
    assert_ok(kiln_model_load_profile(found.model, path));
    assert_int_equal(counters(&found).groups, groups);
    assert_int_equal(call(&found), groups);
    assert_int_equal(counters(&found).compiles, 0);
    assert_false(kiln_codegen_llvm_is_open(found.context->codegen));
    close_subject(&found);
  }
  codegen = "eval";
}

typedef struct errand {
  void (*run)(void *data);
  void *data;
} errand;
static void *run_errand(void *arg) {
  const errand e = *(errand *)arg;
  free(arg);
  e.run(e.data);
  return NULL;
}
/* A thread for each. */
static void submit(void *user, void (*run)(void *data), void *data) {
  int *count = user;
  errand *e = malloc(sizeof *e);
  pthread_t thread;
  assert_non_null(e);
  *e = (errand){run, data};
  ++*count;
  assert_int_equal(pthread_create(&thread, NULL, run_errand, e), 0);
  pthread_detach(thread);
}

static void a_host_compiles(void **state) {
  int count = 0;
  const kiln_host_jobs jobs = {.user = &count, .submit = submit, .struct_size = sizeof jobs};
  (void)state;
  subject s = open_with("async", NULL);
  assert_error(kiln_context_set_jobs(s.context, &(kiln_host_jobs){0}), KILN_INVALID_ARGUMENT,
               "submit");
  assert_ok(kiln_context_set_jobs(s.context, &jobs));
  for (int i = 0; i < 2000 && call(&s) == 0; i++) usleep(1000);
  assert_true(call(&s) > 0);
  assert_true(count > 0);
  assert_int_equal(counters(&s).stalls, 0);
  warm_up(&s);
  close_subject(&s);
}

/* Only this, and nothing is lost. */
static bool is_fine(kiln_status *status) {
  const kiln_code code = kiln_status_code(status);
  if (code) assert_int_equal(code, KILN_OUT_OF_MEMORY);
  kiln_status_destroy(status);
  return !code;
}

/* Memory that runs out, at each request in turn, while a model is loaded, started from a profile
 * beside its calls, prepared and called: right answers, or a status; and behind it all is well. */
static void memory_runs_out_at_the_start(void **state) {
  (void)state;
  subject s = open_with("async", NULL);
  kiln_mem *mem = s.context->env->mem;
  bool failed = true;
  for (uint64_t n = 1; failed; n += n < 256 ? 1 : 5) {
    kiln_value *x = input(&s), *result = NULL;
    kiln_instance_release(s.instance);
    kiln_model_release(s.model);
    s.instance = NULL;
    s.model = NULL;
    (void)kiln_mem_fail_at(mem, n);
    if (is_fine(kiln_model_load(s.context, CASE "model.pt", NULL, &s.model)) &&
        is_fine(kiln_model_load_profile(s.model, path)) &&
        is_fine(kiln_instance_create(s.model, &s.instance))) {
      for (int i = 0; i < 4; i++) {
        (void)is_fine(kiln_instance_call(s.instance, "forward", &x, 1, NULL, &result));
        kiln_value_destroy(result);
        assert_ok(kiln_model_wait_idle(s.model, NULL));
      }
    }
    failed = kiln_mem_fail_at(mem, 0) >= n;
    if (!s.model) assert_ok(kiln_model_load(s.context, CASE "model.pt", NULL, &s.model));
    if (!s.instance) assert_ok(kiln_instance_create(s.model, &s.instance));
    call(&s);
    kiln_value_destroy(x);
  }
  close_subject(&s);
}

/* Calls that compile for themselves have waited; the first of a method is not among them. */
static void waits_are_measured(void **state) {
  (void)state;
  subject s = open_with("sync", NULL);
  call(&s);
  assert_int_equal(counters(&s).worst_stall_ns, 0);
  call(&s);
  assert_true(counters(&s).worst_stall_ns > 0);
  close_subject(&s);
}

static void the_option_does_both(void **state) {
  (void)state;
  unlink(path);
  subject s = open_with("sync", path);
  assert_int_equal(call(&s), 0);
  const uint64_t runs = call(&s);
  assert_true(runs > 0);
  close_subject(&s);
  struct stat was, is;
  assert_int_equal(stat(path, &was), 0);
  s = open_with("sync", path);
  assert_int_equal(call(&s), runs);
  close_subject(&s);
  assert_int_equal(stat(path, &is), 0);
  assert_int_equal(is.st_ino, was.st_ino); /* nothing new was seen: it was not written */
}

/* A file that is not one is told of, and the model goes on without. */
static void what_is_no_profile(void **state) {
  (void)state;
  write_file(path, "kiln profile 1\nand more", 23);
  subject s = open_with("async", path);
  assert_error(kiln_model_load_profile(s.model, path), KILN_INVALID_FILE, "ends early");
  assert_error(kiln_model_load_profile(s.model, "/nonexistent/x"), KILN_NOT_FOUND, "no folder");
  assert_error(kiln_model_save_profile(s.model, "/proc/x"), KILN_INVALID_FILE, "");
  call(&s);
  close_subject(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(warmed_up_models_are_fast_at_once),
      cmocka_unit_test(warming_up_complains_as_calls_do),
      cmocka_unit_test(calls_meet_jobs),
      cmocka_unit_test(weights_are_packed_by_jobs),
      cmocka_unit_test(profiles_start_models),
      cmocka_unit_test(calls_meet_starts),
      cmocka_unit_test(a_host_compiles),
      cmocka_unit_test(waits_are_measured),
      cmocka_unit_test(memory_runs_out_at_the_start),
      cmocka_unit_test(the_option_does_both),
      cmocka_unit_test(what_is_no_profile),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
