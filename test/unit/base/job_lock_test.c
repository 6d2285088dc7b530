/* job_lock_test.c: locks of compile jobs: who waits, for how long, and what a fork's child sees. */
#include "base/job_lock.h"

#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/unit.h"

typedef struct holder {
  pthread_t thread;
  kiln_job_lock lock;
  bool has, give; /* atomic */
} holder;

static void *hold(void *arg) {
  holder *h = arg;
  assert_ok(kiln_job_lock_take(&h->lock, NULL));
  __atomic_store_n(&h->has, true, __ATOMIC_RELEASE);
  while (!__atomic_load_n(&h->give, __ATOMIC_ACQUIRE)) usleep(1000);
  kiln_job_lock_give(&h->lock);
  return NULL;
}
static void start(holder *h) {
  kiln_job_lock_init(&h->lock);
  assert_int_equal(pthread_create(&h->thread, NULL, hold, h), 0);
  while (!__atomic_load_n(&h->has, __ATOMIC_ACQUIRE)) usleep(1000);
}
static void stop(holder *h) {
  __atomic_store_n(&h->give, true, __ATOMIC_RELEASE);
  pthread_join(h->thread, NULL);
  kiln_job_lock_deinit(&h->lock);
}

/* The exit status of a child that does this; one that waits for ever is killed by its alarm. */
static int in_child(int (*what)(void *lock, pid_t parent), void *lock) {
  const pid_t parent = getpid(), child = fork();
  int status = 0;
  assert_true(child >= 0);
  if (child == 0) {
    alarm(20);
    _exit(what(lock, parent));
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}
static int take(void *lock, pid_t parent) {
  (void)parent;
  kiln_status *status = kiln_job_lock_take(lock, NULL);
  const kiln_code code = kiln_status_code(status);
  kiln_status_destroy(status);
  if (code == KILN_OK) kiln_job_lock_give(lock);
  return code == KILN_OK && !kiln_job_lock_look(lock) ? KILN_INTERNAL : (int)code;
}
static int take_short(void *lock, pid_t parent) {
  kiln_status *status = kiln_short_lock_take(lock, parent);
  const kiln_code code = kiln_status_code(status);
  kiln_status_destroy(status);
  return (int)code;
}

static void a_child_waits_for_nobody(void **state) {
  holder h = {.has = false};
  (void)state;
  start(&h);
  assert_int_equal(in_child(take, &h.lock), KILN_UNSUPPORTED);
  assert_int_equal(in_child(take_short, &h.lock.mutex), KILN_UNSUPPORTED);
  stop(&h);
  kiln_job_lock_init(&h.lock);
  assert_ok(kiln_job_lock_take(&h.lock, NULL));
  kiln_job_lock_give(&h.lock);
  assert_int_equal(in_child(take, &h.lock), KILN_OK);
  assert_int_equal(in_child(take_short, &h.lock.mutex), KILN_OK);
  kiln_job_lock_deinit(&h.lock);
}

static void waiting_ends_with_the_budget(void **state) {
  holder h = {.has = false};
  kiln_budget budget;
  (void)state;
  kiln_budget_begin(&budget, "the test", NULL, &(kiln_limits){.time_ms = 20});
  start(&h);
  assert_error(kiln_job_lock_take(&h.lock, &budget), KILN_LIMIT, "20 ms");
  __atomic_store_n(&h.give, true, __ATOMIC_RELEASE);
  assert_true(kiln_job_lock_look(&h.lock)); /* waits until it is given */
  kiln_job_lock_give(&h.lock);
  stop(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_child_waits_for_nobody),
      cmocka_unit_test(waiting_ends_with_the_budget),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
