/* sweep_test.c: the sweep itself must find leaks and lost failures. Each case runs in a child
 * process, whose cmocka must say that it failed. */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/sweep.h"

static kiln_status *good(kiln_mem *mem, void *arg) {
  (void)arg;
  void *a = kiln_mem_alloc(mem, 10);
  if (!a) return kiln_status_oom();
  void *b = kiln_mem_alloc(mem, 20);
  kiln_mem_free(mem, b, 20);
  kiln_mem_free(mem, a, 10);
  return b ? NULL : kiln_status_oom();
}

static kiln_status *leaks_on_failure(kiln_mem *mem, void *arg) {
  (void)arg;
  void *a = kiln_mem_alloc(mem, 10);
  if (!a) return kiln_status_oom();
  void *b = kiln_mem_alloc(mem, 20);
  if (!b) return kiln_status_oom(); /* a is lost */
  kiln_mem_free(mem, b, 20);
  kiln_mem_free(mem, a, 10);
  return NULL;
}

static kiln_status *hides_failure(kiln_mem *mem, void *arg) {
  (void)arg;
  void *a = kiln_mem_alloc(mem, 10);
  kiln_mem_free(mem, a, 10);
  return NULL;
}

static kiln_status *names_another_error(kiln_mem *mem, void *arg) {
  (void)arg;
  void *a = kiln_mem_alloc(mem, 10);
  if (!a) return KILN_ERROR(KILN_INVALID_FILE, "no");
  kiln_mem_free(mem, a, 10);
  return NULL;
}

static sweep_body chosen;
static void run_chosen(void **state) { (void)state, sweep(chosen, NULL); }
static void run_tolerant(void **state) { (void)state, sweep_tolerant(chosen, NULL); }

/* Whether cmocka calls the sweep of `body` good. */
static bool passes(sweep_body body, void (*run)(void **)) {
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(null, 2);
    chosen = body;
    const struct CMUnitTest tests[] = {{"child", run, NULL, NULL, NULL}};
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    _exit(failures == 0 ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void finds_what_it_must(void **state) {
  (void)state;
  assert_true(passes(good, run_chosen));
  assert_false(passes(leaks_on_failure, run_chosen));
  assert_false(passes(hides_failure, run_chosen));
  assert_false(passes(names_another_error, run_chosen));
  assert_true(passes(hides_failure, run_tolerant));
  assert_false(passes(leaks_on_failure, run_tolerant));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(finds_what_it_must)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
