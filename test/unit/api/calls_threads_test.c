/* calls_threads_test.c: calls that meet on one instance: methods that write no attribute run side
 * by side, others get KILN_BUSY; several instances and models share a context. */
#include <pthread.h>

#include "test/unit/api/values.h"

enum { THREADS = 4, SPINS = 20000, LONG_SPIN = 3000000 };

static kiln_model *model;
static kiln_instance *instance;

static int open_model(void **state) {
  open_context(state);
  assert_ok(kiln_model_load(context, TEST_DATA "/own/calls/model.pt", NULL, &model));
  assert_ok(kiln_instance_create(model, &instance));
  return 0;
}

static int close_model(void **state) {
  kiln_instance_release(instance);
  kiln_model_release(model);
  return close_context(state);
}

typedef struct caller {
  pthread_t thread;
  kiln_instance *instance;
  const char *method;
  int64_t n, result;
  int repeat;
  kiln_status *status;
} caller;

static void *run(void *arg) {
  caller *c = arg;
  kiln_value *n = NULL;
  c->status = kiln_value_int(context, c->n, &n);
  for (int i = 0; !c->status && i < c->repeat; i++) {
    kiln_value *result = NULL;
    c->status = kiln_instance_call(c->instance, c->method, &n, 1, NULL, &result);
    /* meets_busy looks at it meanwhile */
    __atomic_store_n(&c->result, kiln_value_as_int(result), __ATOMIC_RELAXED);
    kiln_value_destroy(result);
  }
  kiln_value_destroy(n);
  return NULL;
}

static void start(caller *c, kiln_instance *on, const char *method, int64_t n, int repeat) {
  *c = (caller){.instance = on, .method = method, .n = n, .repeat = repeat};
  assert_int_equal(pthread_create(&c->thread, NULL, run, c), 0);
}

/* s = sum of i % 3 for i < n */
static int64_t spun(int64_t n) { return n / 3 * 3 + (n % 3 == 2 ? 1 : 0); }

static void test_readers_run_side_by_side(void **state) {
  caller callers[THREADS];
  (void)state;
  for (int i = 0; i < THREADS; i++) start(&callers[i], instance, "spin", SPINS + i, 5);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(callers[i].thread, NULL);
    assert_ok(callers[i].status);
    assert_int_equal(callers[i].result, spun(SPINS + i));
  }
}

/* While one call is under way, asks for another until it is refused or the first is over. */
static bool meets_busy(const char *first, const char *second) {
  caller c;
  kiln_value *one = NULL, *result = NULL;
  bool busy = false;
  assert_ok(kiln_value_int(context, 1, &one));
  start(&c, instance, first, LONG_SPIN, 1);
  for (int i = 0; i < 1000000 && !busy; i++) {
    kiln_status *status = kiln_instance_call(instance, second, &one, 1, NULL, &result);
    kiln_value_destroy(result);
    result = NULL;
    busy = kiln_status_code(status) == KILN_BUSY;
    if (!busy) assert_ok(status);
    if (!busy && __atomic_load_n(&c.result, __ATOMIC_RELAXED) != 0) break;
    if (busy) kiln_status_destroy(status);
  }
  pthread_join(c.thread, NULL);
  bool first_busy = kiln_status_code(c.status) == KILN_BUSY;
  kiln_status_destroy(c.status);
  kiln_value_destroy(one);
  return busy || first_busy;
}

static void test_writers_are_alone(void **state) {
  (void)state;
  assert_true(meets_busy("spin_and_write", "spin"));
  assert_true(meets_busy("spin", "spin_and_write"));
}

static void test_in_place_writers_are_alone(void **state) {
  caller c;
  (void)state;
  start(&c, instance, "spin_and_write_in_place", 1, 1);
  pthread_join(c.thread, NULL);
  assert_ok(c.status);
  assert_true(meets_busy("spin", "spin_and_write_in_place"));
}

static void test_instances_do_not_meet(void **state) {
  caller callers[THREADS];
  kiln_instance *instances[THREADS];
  (void)state;
  for (int i = 0; i < THREADS; i++) {
    assert_ok(kiln_instance_create(model, &instances[i]));
    start(&callers[i], instances[i], "spin_and_write", SPINS + i, 3);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(callers[i].thread, NULL);
    assert_ok(callers[i].status);
    assert_int_equal(callers[i].result, SPINS + i - 1);
    kiln_instance_release(instances[i]);
  }
}

static void test_setting_during_a_call(void **state) {
  caller c;
  kiln_value *one = NULL;
  bool busy = false;
  (void)state;
  assert_ok(kiln_value_int(context, 0, &one));
  start(&c, instance, "spin", LONG_SPIN, 1);
  for (int i = 0; i < 10000000 && !busy; i++) {
    kiln_status *status = kiln_instance_set(instance, "count", one);
    busy = kiln_status_code(status) == KILN_BUSY;
    kiln_status_destroy(status);
  }
  pthread_join(c.thread, NULL);
  bool call_busy = kiln_status_code(c.status) == KILN_BUSY; /* it met the setter instead */
  kiln_status_destroy(c.status);
  assert_true(busy || call_busy);
  kiln_value_destroy(one);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_readers_run_side_by_side), cmocka_unit_test(test_writers_are_alone),
      cmocka_unit_test(test_in_place_writers_are_alone),
      cmocka_unit_test(test_instances_do_not_meet), cmocka_unit_test(test_setting_during_a_call)};
  return cmocka_run_group_tests(tests, open_model, close_model);
}
