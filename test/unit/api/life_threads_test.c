/* life_threads_test.c: all that can be done with one model and one instance of it, at once: calls
 * in eval mode and in training, attributes got and set, saving, freezing, loading the same file and
 * letting go of it. Each is done or gets KILN_BUSY; ThreadSanitizer looks for the rest. */
#include <pthread.h>

#include "base/sanitize.h"
#include "test/unit/api/values.h"

enum { ROUNDS = KILN_SANITIZED ? 40 : 15 };
#define PATH TEST_DATA "/own/flags/model.pt" /* two batch norms */

static kiln_model *model;
static kiln_instance *instance;

/* Whether it was done. */
static bool is_done(kiln_status *status) {
  const kiln_code code = kiln_status_code(status);
  if (code != KILN_OK && code != KILN_BUSY) {
    print_error("%s\n", kiln_status_report(status));
    abort(); /* cmocka's asserts are for its own thread */
  }
  kiln_status_destroy(status);
  return code == KILN_OK;
}

static bool call_it(kiln_instance *in, int rows) {
  const int64_t sizes[2] = {rows, 3};
  kiln_value *x = NULL, *result = NULL;
  is_done(kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, NULL, &x));
  const bool done = is_done(kiln_instance_call(in, "forward", &x, 1, NULL, &result));
  kiln_value_destroy(result);
  kiln_value_destroy(x);
  return done;
}

/* -- What threads do: round i; true when it was done -- */

static bool do_call(int i) { return call_it(instance, 2 + i % 4); }

static bool do_get(int i) {
  static const char *const names[] = {"first.norm.running_mean", "second.norm.num_batches_tracked",
                                      "first.norm.training", "first"};
  kiln_value *value = NULL;
  const bool done = is_done(kiln_instance_get(instance, names[i % 4], &value));
  if (done) (void)kiln_value_kind(value);
  kiln_value_destroy(value);
  return done;
}

static bool do_set(int i) {
  kiln_value *value = NULL;
  is_done(kiln_value_bool(context, i % 2, &value));
  const bool done = is_done(kiln_instance_set(instance, "first.norm.training", value));
  kiln_value_destroy(value);
  return done;
}

static int take(void *user, const void *data, size_t size) {
  (void)data;
  *(size_t *)user += size;
  return 0;
}
static bool do_save(int i) {
  size_t size = 0;
  return is_done(i % 2 ? kiln_instance_save_to(instance, take, &size, NULL)
                       : kiln_model_save_to(model, take, &size, NULL));
}

static bool do_freeze(int i) {
  const kiln_freeze_options options = {.eval = 1};
  kiln_model *frozen = NULL;
  kiln_instance *of_it = NULL;
  if (!is_done(i % 2 ? kiln_instance_freeze(instance, &options, &frozen)
                     : kiln_model_freeze(model, &options, &frozen))) {
    return false;
  }
  is_done(kiln_instance_create(frozen, &of_it));
  kiln_model_release(frozen);
  const bool done = call_it(of_it, 2);
  kiln_instance_release(of_it);
  return done;
}

static bool do_load(int i) {
  kiln_model *other = NULL;
  kiln_instance *of_it = NULL;
  is_done(kiln_model_load(context, PATH, NULL, &other));
  is_done(kiln_instance_create(other, &of_it));
  if (i % 2) kiln_model_release(other);
  const bool done = call_it(of_it, 2) && call_it(of_it, 3);
  kiln_instance_release(of_it);
  if (i % 2 == 0) kiln_model_release(other);
  return done;
}

static bool do_count(int i) {
  kiln_counters counters;
  kiln_model_counters(model, &counters);
  (void)kiln_context_bytes(context);
  const char *old = NULL;
  is_done(kiln_context_set(context, "jit", i % 2 ? "on" : "off", &old));
  return true;
}

/* -- At once -- */

typedef struct worker {
  bool (*act)(int i);
  pthread_t thread;
  int done;
} worker;

static void *work(void *arg) {
  worker *w = arg;
  for (int i = 0; i < ROUNDS; i++) w->done += w->act(i);
  return NULL;
}

static void test_all_at_once(void **state) {
  static bool (*const acts[])(int) = {do_call, do_call,   do_get,  do_set,
                                      do_save, do_freeze, do_load, do_count};
  enum { COUNT = sizeof acts / sizeof *acts };
  worker workers[COUNT];
  (void)state;
  assert_ok(kiln_model_load(context, PATH, NULL, &model));
  assert_ok(kiln_instance_create(model, &instance));
  for (int i = 0; i < COUNT; i++) {
    workers[i] = (worker){.act = acts[i]};
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (int i = 0; i < COUNT; i++) pthread_join(workers[i].thread, NULL);
  assert_int_equal(workers[6].done, ROUNDS); /* nobody else has these */
  assert_int_equal(workers[7].done, ROUNDS);
  assert_true(do_call(0) && do_get(0) && do_set(0) && do_save(1) && do_freeze(1)); /* usable */
  kiln_instance_release(instance);
  kiln_model_release(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_at_once)};
  return cmocka_run_group_tests(tests, open_context, close_context);
}
