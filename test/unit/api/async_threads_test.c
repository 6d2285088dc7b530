/* async_threads_test.c: calls beside their caller: results for who waits, callbacks, owners that go
 * first, limits, forks. */
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <time.h>

#include "base/sanitize.h"
#include "test/unit/api/fixture.h"

#define METHODS TEST_DATA "/own/calls/model.pt"

static subject open_with(const char *at_a_time) {
  subject s = {.context = context_with("async_calls", at_a_time)};
  load_subject(&s, METHODS);
  return s;
}

static kiln_value *int_in(const subject *s, int64_t i) {
  kiln_value *v = NULL;
  assert_ok(kiln_value_int(s->context, i, &v));
  return v;
}

static kiln_pending *begin(const subject *s, const char *method, int64_t argument,
                           const kiln_limits *limits) {
  const kiln_call_options options = {.limits = limits ? *limits : (kiln_limits){0},
                                     .struct_size = sizeof options};
  kiln_value *value = int_in(s, argument);
  kiln_pending *pending = NULL;
  assert_ok(
      kiln_instance_call_async(s->instance, method, &value, 1, &options, NULL, NULL, &pending));
  kiln_value_destroy(value); /* the call has its own */
  return pending;
}

static int64_t result_of(kiln_pending *pending) {
  kiln_value *result = NULL;
  int64_t got = -1;
  assert_ok(kiln_pending_wait(pending, -1, &result));
  got = kiln_value_as_int(result);
  kiln_value_destroy(result);
  kiln_pending_release(pending);
  return got;
}

static int64_t spun(int64_t n) { /* what spin(n) answers where no call has counted */
  int64_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += i % 3;
  return sum;
}

/* A call that runs until it is cancelled. */
typedef struct held {
  kiln_cancel *cancel;
  kiln_pending *pending;
} held;
static held hold(const subject *s) {
  held h;
  assert_ok(kiln_cancel_create(&h.cancel));
  h.pending = begin(s, "forever", 1, &(kiln_limits){.cancel = h.cancel});
  return h;
}
static void let_go(held *h) {
  kiln_call_cancel(h->cancel);
  assert_error(kiln_pending_wait(h->pending, -1, NULL), KILN_CANCELLED, NULL);
  kiln_pending_release(h->pending);
  kiln_cancel_destroy(h->cancel);
}

/* Each result goes to one. */
static void who_waits_has_the_result(void **state) {
  enum { CALLS = 100 };
  kiln_pending *all[CALLS];
  subject s = open_with("4");
  kiln_value *result = NULL;
  (void)state;
  for (int i = 0; i < CALLS; i++) all[i] = begin(&s, "spin", i * 10, NULL);
  for (int i = 1; i < CALLS; i++) assert_int_equal(result_of(all[i]), spun(i * 10));
  assert_ok(kiln_pending_wait(all[0], -1, NULL)); /* who does not ask for it takes it too */
  assert_error(kiln_pending_wait(all[0], -1, &result), KILN_INVALID_ARGUMENT, NULL);
  assert_null(result);
  kiln_pending_release(all[0]);
  close_subject(&s);
}

/* One at a time: in their order, and who waits for the second one does so for some time only. */
static void calls_stand_in_line(void **state) {
  subject s = open_with("1");
  (void)state;
  held first = hold(&s);
  kiln_pending *second = begin(&s, "spin", 10, NULL);
  kiln_pending *late = begin(&s, "spin", 10, &(kiln_limits){.time_ms = 5});
  assert_error(kiln_pending_wait(second, 0, NULL), KILN_LIMIT, NULL);
  assert_error(kiln_pending_wait(second, 20, NULL), KILN_LIMIT, NULL);
  let_go(&first);
  assert_int_equal(result_of(second), spun(10));
  assert_error(kiln_pending_wait(late, -1, NULL), KILN_LIMIT,
               NULL); /* its time began in the line */
  kiln_pending_release(late);
  close_subject(&s);
}

static void errors_are_told(void **state) {
  subject s = open_with("2");
  kiln_pending *pending = NULL;
  kiln_value *bad = NULL;
  (void)state;
  assert_error(kiln_instance_call_async(s.instance, "none", NULL, 0, NULL, NULL, NULL, &pending),
               KILN_NOT_FOUND, NULL);
  assert_null(pending);
  assert_ok(kiln_value_string(s.context, "x", 1, &bad));
  assert_ok(kiln_instance_call_async(s.instance, "spin", &bad, 1, NULL, NULL, NULL, &pending));
  kiln_value_destroy(bad);
  assert_error(kiln_pending_wait(pending, -1, NULL), KILN_INVALID_ARGUMENT, NULL);
  kiln_pending_release(pending);
  close_subject(&s);
}

/* What a method does to its arguments is seen, as in a call of the caller's thread. */
static void arguments_are_the_hosts(void **state) {
  subject s = open_with("2");
  kiln_value *one = int_in(&s, 7), *list = NULL, *last = NULL;
  kiln_pending *pending = NULL;
  int64_t got = 0;
  (void)state;
  assert_ok(kiln_value_list(s.context, &one, 1, &list));
  assert_ok(kiln_instance_call_async(s.instance, "ints", &list, 1, NULL, NULL, NULL, &pending));
  assert_int_equal(result_of(pending), 2);
  assert_int_equal(kiln_value_count(list), 2);
  assert_ok(kiln_value_item(list, 1, &last));
  got = kiln_value_as_int(last);
  assert_int_equal(got, 9);
  kiln_value_destroy(last);
  kiln_value_destroy(list);
  kiln_value_destroy(one);
  close_subject(&s);
}

/* -- Callbacks -- */

typedef struct told {
  sem_t arrived, go_on, ended;
  bool holds;
  kiln_code code;
  int64_t result;
} told;

static void note(void *user, kiln_status *status, kiln_value *result) {
  told *t = user;
  if (t->holds) {
    sem_post(&t->arrived);
    while (sem_wait(&t->go_on) != 0) continue;
  }
  t->code = kiln_status_code(status);
  kiln_status_destroy(status);
  if (result) t->result = kiln_value_as_int(result);
  kiln_value_destroy(result);
  sem_post(&t->ended);
}

static void make_told(told *t, bool holds) {
  *t = (told){.holds = holds, .code = KILN_INTERNAL, .result = -1};
  sem_init(&t->arrived, 0, 0);
  sem_init(&t->go_on, 0, 0);
  sem_init(&t->ended, 0, 0);
}

/* Waiting ends behind the callback. */
static void a_callback_has_the_result(void **state) {
  subject s = open_with("2");
  kiln_value *n = int_in(&s, 10), *result = NULL;
  kiln_pending *pending = NULL;
  told t;
  (void)state;
  make_told(&t, true);
  assert_ok(kiln_instance_call_async(s.instance, "spin", &n, 1, NULL, note, &t, &pending));
  while (sem_wait(&t.arrived) != 0) continue;
  assert_error(kiln_pending_wait(pending, 0, &result), KILN_LIMIT, NULL);
  sem_post(&t.go_on);
  assert_ok(kiln_pending_wait(pending, -1, &result));
  assert_null(result);
  assert_int_equal(t.code, KILN_OK);
  assert_int_equal(t.result, spun(10));
  kiln_pending_release(pending);
  kiln_value_destroy(n);
  close_subject(&s);
}

/* The host gives all back while the call runs, so that the context goes with its own thread. */
static void all_owners_may_go(void **state) {
  (void)state;
  for (int round = 0; round < 20; round++) {
    subject s = open_with(round % 2 ? "1" : "3");
    kiln_value *n = int_in(&s, 100 + round);
    kiln_pending *other = begin(&s, "spin", 10, NULL);
    told t;
    make_told(&t, round % 4 > 1);
    assert_ok(kiln_instance_call_async(s.instance, "spin", &n, 1, NULL, note, &t, NULL));
    kiln_value_destroy(n);
    kiln_pending_release(other);
    close_subject(&s);
    sem_post(&t.go_on);
    while (sem_wait(&t.ended) != 0) continue;
    assert_int_equal(t.code, KILN_OK);
    assert_int_equal(t.result, spun(100 + round));
  }
  nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL); /* the last thread ends */
}

/* -- Threads -- */

static void *ask_many(void *arg) {
  const subject *s = arg;
  for (int i = 0; i < 200; i++) {
    kiln_pending *two[] = {begin(s, "spin", i, NULL), begin(s, "spin", i + 1, NULL)};
    assert_int_equal(result_of(two[1]), spun(i + 1));
    assert_int_equal(result_of(two[0]), spun(i));
  }
  return NULL;
}

static void many_ask(void **state) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  subject s = open_with("3");
  (void)state;
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, ask_many, &s);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  close_subject(&s);
}

/* The child has no call of the parent's, and may make its own. */
static void a_child_asks_anew(void **state) {
  subject s = open_with("2");
  int exited = 0;
  (void)state;
  if (KILN_TSAN) skip(); /* test/SKIPPED.md */
  held h = hold(&s);
  kiln_instance *other = NULL;
  assert_ok(kiln_instance_create(s.model, &other)); /* of which no call runs */
  const pid_t child = fork();
  if (child == 0) {
    kiln_status *status = kiln_pending_wait(h.pending, -1, NULL);
    bool good = kiln_status_code(status) == KILN_UNSUPPORTED;
    kiln_status_destroy(status);
    s.instance = other;
    good = good && result_of(begin(&s, "spin", 10, NULL)) == spun(10);
    _exit(good ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &exited, 0), child);
  assert_int_equal(exited, 0);
  let_go(&h);
  kiln_instance_release(other);
  close_subject(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(who_waits_has_the_result),
      cmocka_unit_test(calls_stand_in_line),
      cmocka_unit_test(errors_are_told),
      cmocka_unit_test(arguments_are_the_hosts),
      cmocka_unit_test(a_callback_has_the_result),
      cmocka_unit_test(all_owners_may_go),
      cmocka_unit_test(many_ask),
      cmocka_unit_test(a_child_asks_anew),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
