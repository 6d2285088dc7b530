/* counters_threads_test.c: threads that run one model at the same time count all that they do. */
#include <pthread.h>

#include "test/unit/api/values.h"

enum { THREADS = 8, CALLS = 300 };

typedef struct runner {
  kiln_instance *instance;
  kiln_value *argument;
  int fine;
} runner;

static void call_once(runner *r) {
  kiln_value *result = NULL;
  kiln_status *status = kiln_instance_call(r->instance, "forward", &r->argument, 1, NULL, &result);
  r->fine += status == NULL;
  kiln_status_destroy(status);
  kiln_value_destroy(result);
}
static void *run(void *arg) {
  for (int i = 0; i < CALLS; i++) call_once(arg);
  return NULL;
}

/* Half of the threads share an instance, the others have one each; each of these ends with it. */
static void test_threads_count_all(void **state) {
  kiln_model *model = NULL;
  pthread_t threads[THREADS];
  runner runners[THREADS], first = {0};
  (void)state;
  assert_ok(kiln_model_load(context, TEST_DATA "/own/mlp/model.pt", NULL, &model));
  assert_ok(kiln_instance_create(model, &first.instance));
  first.argument = take_first(read_recorded(context, TEST_DATA "/own/mlp/inputs_0.pt"));
  for (int i = 0; i < 5; i++) call_once(&first);
  assert_int_equal(first.fine, 5);
  const kiln_counters warm = counters_of(model);
  call_once(&first);
  const kiln_counters one = counters_of(model);
  const uint64_t runs = one.compiled_runs - warm.compiled_runs;
  const uint64_t hits = one.guard_hits - warm.guard_hits;
  assert_int_equal(one.calls, 6);
  assert_true(runs > 0 && hits > 0);
  for (int i = 0; i < THREADS; i++) {
    runners[i] = first;
    runners[i].fine = 0;
    if (i % 2) assert_ok(kiln_instance_create(model, &runners[i].instance));
    pthread_create(&threads[i], NULL, run, &runners[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    assert_int_equal(runners[i].fine, CALLS);
    if (i % 2) kiln_instance_release(runners[i].instance);
  }
  const kiln_counters all = counters_of(model);
  assert_int_equal(all.calls, 6 + THREADS * CALLS);
  assert_int_equal(all.compiled_runs - one.compiled_runs, runs * THREADS * CALLS);
  assert_int_equal(all.guard_hits - one.guard_hits, hits * THREADS * CALLS);
  assert_int_equal(all.guard_misses, one.guard_misses);
  kiln_value_destroy(first.argument);
  kiln_instance_release(first.instance);
  kiln_model_release(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_count_all)};
  return cmocka_run_group_tests(tests, open_context, close_context);
}
