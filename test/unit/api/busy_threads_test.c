/* busy_threads_test.c: calls that meet on one instance whose flags decide whether they write, and
 * calls that wait for each other (busy=wait). */
#include <pthread.h>
#include <time.h>

#include "test/unit/api/values.h"

enum { THREADS = 8, CALLS = 10 };

static kiln_model *load(const char *name, bool wait) {
  kiln_model *model = NULL;
  assert_ok(kiln_context_set(context, "busy", wait ? "wait" : "refuse", NULL));
  assert_ok(kiln_model_load(context, name, NULL, &model));
  return model;
}
#define LAYERS TEST_DATA "/own/flags/model.pt" /* two batch norms */
#define METHODS TEST_DATA "/own/calls/model.pt"

typedef struct caller {
  pthread_t thread;
  kiln_instance *instance;
  const char *method;
  kiln_value *argument;
  kiln_call_options options;
  int repeat, fine;
  kiln_status *status; /* of the call that failed; none is made after it */
  bool done;           /* atomic */
} caller;
static void *run(void *arg) {
  caller *c = arg;
  for (; !c->status && c->fine < c->repeat; c->fine += !c->status) {
    kiln_value *result = NULL;
    c->status = kiln_instance_call(c->instance, c->method, &c->argument, 1, &c->options, &result);
    kiln_value_destroy(result);
  }
  __atomic_store_n(&c->done, true, __ATOMIC_RELEASE);
  return NULL;
}
static void start(caller *c) { assert_int_equal(pthread_create(&c->thread, NULL, run, c), 0); }
static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL); }

/* THREADS times CALLS calls on one instance: how many went well; the others got KILN_BUSY. */
static int crowd(kiln_instance *instance) {
  const float data[] = {1, 2, 3, -1, -2, -3};
  caller callers[THREADS];
  int fine = 0;
  for (int i = 0; i < THREADS; i++) {
    callers[i] = (caller){.instance = instance,
                          .method = "forward",
                          .argument = matrix_of(2, 3, data),
                          .repeat = CALLS};
    start(&callers[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(callers[i].thread, NULL);
    fine += callers[i].fine;
    if (callers[i].status) assert_int_equal(kiln_status_code(callers[i].status), KILN_BUSY);
    kiln_status_destroy(callers[i].status);
    kiln_value_destroy(callers[i].argument);
  }
  return fine;
}
static void set_training(kiln_instance *instance, bool on) {
  static const char *const names[] = {"first.norm.training", "second.norm.training"};
  kiln_value *value = NULL;
  assert_ok(kiln_value_bool(context, on, &value));
  for (int i = 0; i < 2; i++) assert_ok(kiln_instance_set(instance, names[i], value));
  kiln_value_destroy(value);
}
static void assert_batches(kiln_instance *instance, int count) {
  kiln_value *seen = NULL;
  assert_ok(kiln_instance_get(instance, "first.norm.num_batches_tracked", &seen));
  assert_int_equal(*(const int64_t *)kiln_value_data(seen), count);
  kiln_value_destroy(seen);
}

/* What training would write does not count in eval mode. */
static void test_eval_mode_never_meets(void **state) {
  kiln_model *model = load(LAYERS, false);
  kiln_instance *instance = NULL;
  (void)state;
  assert_ok(kiln_instance_create(model, &instance));
  assert_int_equal(crowd(instance), THREADS * CALLS);
  assert_batches(instance, 0);
  set_training(instance, true);
  const int fine = crowd(instance);
  assert_true(fine >= 1);
  assert_batches(instance, fine);
  set_training(instance, false);
  assert_int_equal(crowd(instance), THREADS * CALLS);
  assert_batches(instance, fine);
  kiln_instance_release(instance);
  kiln_model_release(model);
}
/* One instance of a model trains while another one does not. */
static void test_writers_wait(void **state) {
  kiln_model *model = load(LAYERS, true);
  kiln_instance *trained = NULL, *plain = NULL;
  (void)state;
  assert_ok(kiln_instance_create(model, &trained));
  assert_ok(kiln_instance_create(model, &plain));
  set_training(trained, true);
  assert_int_equal(crowd(trained), THREADS * CALLS);
  assert_batches(trained, THREADS * CALLS);
  assert_int_equal(crowd(plain), THREADS * CALLS);
  assert_batches(plain, 0);
  kiln_instance_release(plain);
  kiln_instance_release(trained);
  kiln_model_release(model);
}
/* Attributes are not read beside a call that writes them, also where calls would wait. */
static void test_readers_meet_a_writer(void **state) {
  kiln_model *model = load(METHODS, true), *frozen = NULL;
  kiln_instance *instance = NULL;
  kiln_cancel *cancel = NULL;
  kiln_value *often = int_of((int64_t)1 << 40), *seen = NULL;
  size_t written = 0;
  kiln_status *status = NULL;
  (void)state;
  assert_ok(kiln_instance_create(model, &instance));
  assert_ok(kiln_cancel_create(&cancel));
  caller writer = {
      .instance = instance, .method = "spin_and_write", .argument = often, .repeat = 1};
  writer.options.limits.cancel = cancel;
  start(&writer);
  while (!(status = kiln_instance_get(instance, "count", &seen))) { /* until it has begun */
    kiln_value_destroy(seen);
    nap();
  }
  assert_error(status, KILN_BUSY, "while the instance is in spin_and_write");
  assert_null(seen);
  assert_error(kiln_instance_set(instance, "count", often), KILN_BUSY, "kiln_instance_set");
  assert_error(kiln_instance_save_to(instance, count_bytes, &written, NULL), KILN_BUSY, "save");
  assert_error(kiln_instance_freeze(instance, NULL, &frozen), KILN_BUSY, "freeze");
  kiln_call_cancel(cancel);
  pthread_join(writer.thread, NULL);
  assert_error(writer.status, KILN_CANCELLED, "");
  assert_ok(kiln_instance_get(instance, "count", &seen));
  kiln_value_destroy(seen);
  kiln_value_destroy(often);
  kiln_cancel_destroy(cancel);
  kiln_instance_release(instance);
  kiln_model_release(model);
}
/* Waiting counts for the time of a call, and can be cancelled. */
static void test_waiting_ends(void **state) {
  kiln_model *model = load(METHODS, true);
  kiln_instance *instance = NULL;
  kiln_cancel *cancel = NULL;
  kiln_value *forever = int_of(1), *once = int_of(1), *result = NULL;
  (void)state;
  assert_ok(kiln_instance_create(model, &instance));
  assert_ok(kiln_cancel_create(&cancel));
  caller first = {.instance = instance, .method = "spin_and_write", .argument = once, .repeat = 1};
  kiln_value_destroy(forever);
  first.argument = forever = int_of((int64_t)1 << 40);
  first.options.limits.cancel = cancel;
  start(&first);
  const kiln_call_options brief = {.limits = {.time_ms = 20}};
  kiln_status *status = NULL;
  for (;;) { /* the other may not have begun yet */
    status = kiln_instance_call(instance, "spin", &once, 1, &brief, &result);
    kiln_value_destroy(result);
    if (status) break;
    nap();
  }
  assert_error(status, KILN_LIMIT, "longer than its limit of 20 ms");
  caller second = {.instance = instance, .method = "spin", .argument = once, .repeat = 1};
  second.options.limits.cancel = cancel;
  start(&second);
  nap();
  assert_false(__atomic_load_n(&second.done, __ATOMIC_ACQUIRE));
  kiln_call_cancel(cancel);
  pthread_join(first.thread, NULL);
  pthread_join(second.thread, NULL);
  assert_error(first.status, KILN_CANCELLED, "");
  assert_error(second.status, KILN_CANCELLED, "");
  assert_ok(kiln_instance_call(instance, "spin", &once, 1, NULL, &result)); /* usable */
  kiln_value_destroy(result);
  kiln_value_destroy(once);
  kiln_value_destroy(forever);
  kiln_cancel_destroy(cancel);
  kiln_instance_release(instance);
  kiln_model_release(model);
}
/* Readers that come while a writer waits stand behind it, or it would never have its turn. */
static void test_writers_have_their_turn(void **state) {
  kiln_model *model = load(METHODS, true);
  kiln_instance *instance = NULL;
  kiln_cancel *cancel = NULL;
  kiln_value *n = int_of(5000);
  caller readers[4];
  (void)state;
  assert_ok(kiln_cancel_create(&cancel));
  assert_ok(kiln_instance_create(model, &instance));
  for (int i = 0; i < 4; i++) {
    readers[i] =
        (caller){.instance = instance, .method = "spin", .argument = n, .repeat = INT32_MAX};
    readers[i].options.limits.cancel = cancel;
    start(&readers[i]);
  }
  caller writer = {.instance = instance, .method = "spin_and_write", .argument = n, .repeat = 20};
  start(&writer);
  pthread_join(writer.thread, NULL);
  assert_ok(writer.status);
  kiln_call_cancel(cancel);
  for (int i = 0; i < 4; i++) {
    pthread_join(readers[i].thread, NULL);
    assert_error(readers[i].status, KILN_CANCELLED, "");
  }
  kiln_value_destroy(n);
  kiln_cancel_destroy(cancel);
  kiln_instance_release(instance);
  kiln_model_release(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_eval_mode_never_meets), cmocka_unit_test(test_writers_wait),
      cmocka_unit_test(test_readers_meet_a_writer), cmocka_unit_test(test_waiting_ends),
      cmocka_unit_test(test_writers_have_their_turn)};
  return cmocka_run_group_tests(tests, open_context, close_context);
}
