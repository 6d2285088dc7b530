/* malloc_test.c: memory that runs out for the whole process, and so for LLVM, in the middle of a
 * model's life. With compile_process on, the N-th request of the process to malloc fails, alone or
 * with all that follow, in this process and in the one that compiles: every call gives a status or
 * the right result. Without it, this holds where the address space has an end. */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test/unit/api/fixture.h"

/* -- The malloc of this program -- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);

static long requests, fail_at; /* counted while fail_at > 0 */
static bool fail_on;           /* those after it, too */

static bool is_failing(void) {
  if (__atomic_load_n(&fail_at, __ATOMIC_RELAXED) == 0) return false;
  const long n = __atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
  if (n != fail_at && !(fail_on && n > fail_at)) return false;
  errno = ENOMEM;
  return true;
}

/* For libLLVM, too. */
#pragma GCC visibility push(default)
void *malloc(size_t size) { return is_failing() ? NULL : __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return is_failing() ? NULL : __libc_calloc(count, size); }
void *realloc(void *block, size_t size) {
  return size && is_failing() ? NULL : __libc_realloc(block, size);
}
void *aligned_alloc(size_t align, size_t size) {
  return is_failing() ? NULL : __libc_memalign(align, size);
}
int posix_memalign(void **out, size_t align, size_t size) {
  if (is_failing()) return ENOMEM;
  *out = __libc_memalign(align, size);
  return *out ? 0 : ENOMEM;
}
#pragma GCC visibility pop

/* -- A life -- */

typedef struct outcome {
  uint64_t compiles;
  int results; /* that were right */
} outcome;

static kiln_status *make_context(const char *name, kiln_context **out) {
  kiln_options *options = NULL;
  kiln_status *status = kiln_options_create(&options);
  if (options) kiln_options_ignore_environment(options);
  if (!status) status = kiln_options_set(options, "alloc", "system");
  if (!status) status = kiln_options_set(options, "compile", "sync");
  if (!status) status = kiln_options_set(options, "log", "warn=0");
  if (!status) status = kiln_options_set(options, "compile_process", name);
  if (!status) status = kiln_context_create(options, out);
  kiln_options_destroy(options);
  return status;
}

static kiln_status *call_once(kiln_context *context, kiln_instance *instance, int *out_wrong) {
  static const float data[] = {1, -2, 3, 0.5f, 0, 2};
  float copy[6] = {0};
  kiln_value *x = NULL, *result = NULL;
  kiln_status *status =
      kiln_value_tensor(context, KILN_DTYPE_F32, 2, (const int64_t[]){2, 3}, data, &x);
  if (!status) status = kiln_instance_call(instance, "forward", &x, 1, NULL, &result);
  if (!status) status = kiln_value_copy_data(result, copy, sizeof copy);
  for (int i = 0; !status && i < 6; i++) *out_wrong += copy[i] != 3 * data[i];
  kiln_value_destroy(result);
  kiln_value_destroy(x);
  return status;
}

/* Loaded, called until it is compiled, and once more. Errors are KILN_OUT_OF_MEMORY; anything else
 * ends the program, for cmocka's asserts need memory. `limit`, if given, holds from the second call
 * on. */
static outcome live(const char *process, const struct rlimit *limit) {
  outcome made = {0};
  kiln_context *context = NULL;
  kiln_model *model = NULL;
  kiln_instance *instance = NULL;
  kiln_cancel *cancel = NULL;
  int wrong = 0, calls = 0;
  kiln_status *status = make_context(process, &context);
  if (!status) {
    status = kiln_model_load(context, TEST_DATA "/own/triple_add/model.pt", NULL, &model);
  }
  if (!status) status = kiln_instance_create(model, &instance);
  if (!status) status = kiln_cancel_create(&cancel);
  for (; !status && calls < 3; calls++) {
    if (calls == 1 && limit) setrlimit(RLIMIT_AS, limit);
    status = call_once(context, instance, &wrong);
    made.results += !status;
  }
  kiln_counters counters = {0};
  if (model) kiln_model_counters(model, &counters);
  made.compiles = counters.compiles;
  const bool left = waitpid(-1, NULL, WNOHANG) != -1; /* a process, after its job */
  kiln_cancel_destroy(cancel);
  kiln_instance_release(instance);
  kiln_model_release(model);
  kiln_context_release(context);
  const kiln_code code = kiln_status_code(status);
  const bool fine = !code || code == KILN_OUT_OF_MEMORY;
  if (wrong || left || !fine) {
    fprintf(stderr, "call %d: %s, %d wrong numbers%s\n", calls, kiln_status_report(status), wrong,
            left ? ", and a process is left" : "");
    abort();
  }
  kiln_status_destroy(status);
  return made;
}

static outcome live_failing(long at, bool on) {
  requests = 0;
  fail_on = on;
  __atomic_store_n(&fail_at, at, __ATOMIC_RELAXED);
  const outcome made = live("on", NULL);
  __atomic_store_n(&fail_at, 0, __ATOMIC_RELAXED);
  return made;
}

/* -- Every request -- */

static void sweep(bool on, int step) {
  enum { FAR = 1 << 30, COMPILER_REQUESTS = 12000 };
  const outcome whole = live_failing(FAR, on);
  const long ours = requests;
  int uncompiled = 0;
  assert_int_equal(whole.results, 3);
  assert_true(whole.compiles > 0);
  for (long n = 1; n <= ours; n += step) live_failing(n, on);
  /* Beyond them only the process that compiles is met: it counts on from where it was forked. */
  for (long n = ours + 1; n < ours + COMPILER_REQUESTS; n += n < 2 * ours ? step * 5 : 800) {
    const outcome made = live_failing(n, on);
    assert_int_equal(made.results, 3);
    uncompiled += made.compiles == 0;
  }
  assert_true(uncompiled > 0);
}

static void one_request_fails(void **state) {
  (void)state;
  sweep(false, 1);
}
static void all_requests_fail_from_one_on(void **state) {
  (void)state;
  sweep(true, 5);
}

/* -- An end of the address space, compiling in this process -- */

static uint64_t address_bytes(void) {
  unsigned long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (!file) abort();
  assert_int_equal(fscanf(file, "%llu", &pages), 1);
  fclose(file);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Each in a fork: an end is found, and the limit goes with it. */
static void address_space_ends(void **state) {
  enum { MIB = 1 << 20, FIRST = 100, LAST = 260 }; /* libLLVM has 190 */
  int compiled = 0;
  (void)state;
  for (int i = FIRST; i < LAST; i++) {
    const pid_t pid = fork();
    if (pid == 0) {
      const struct rlimit limit = {address_bytes() + (uint64_t)i * MIB, RLIM_INFINITY};
      _exit(live("off", &limit).compiles > 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status)) print_error("%d MiB: signal %d\n", i, WTERMSIG(status));
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    compiled += WEXITSTATUS(status);
  }
  assert_in_range(compiled, 1, LAST - FIRST - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_request_fails),
      cmocka_unit_test(all_requests_fail_from_one_on),
      cmocka_unit_test(address_space_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
