/* life_threads_test.c: all that can be done with one model and one instance of it, at once: calls
 * in eval mode and in training, attributes got and set, saving, freezing, loading the same file and
 * letting go of it. Each is done or gets KILN_BUSY; ThreadSanitizer looks for the rest. Then values
 * that outlive all that they came from. */
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

static bool do_save(int i) {
  size_t size = 0;
  return is_done(i % 2 ? kiln_instance_save_to(instance, count_bytes, &size, NULL)
                       : kiln_model_save_to(model, count_bytes, &size, NULL));
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
  char *old = NULL;
  is_done(kiln_context_set(context, "jit", i % 2 ? "on" : "off", &old));
  const bool read = strcmp(old, "on") == 0 || strcmp(old, "off") == 0;
  kiln_text_free(old);
  return read;
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

/* -- What outlives what -- */

enum { HOLDERS = 4 };

/* A thread that holds a value, a list of it and memory that it lent, and one of the three handles.
 */
typedef struct holder {
  int i, round;
  subject *of;
  pthread_barrier_t *meeting;
  pthread_t thread;
  int given; /* how often the lent memory was given back */
} holder;

static void count_given(void *user) { (*(int *)user)++; }

/* What comes of values when their context's handle may be gone. */
static void use_values(const holder *h, kiln_value *value, kiln_value *list) {
  kiln_value *part = NULL, *same = NULL;
  is_done(kiln_value_item(list, 0, &part));
  if ((h->i + h->round) % 2) kiln_value_destroy(value);
  kiln_value_destroy(list);
  is_done(kiln_value_share(part, &same));
  kiln_value_destroy(part);
  if (!kiln_value_data(same)) abort();
  if ((h->i + h->round) % 2 == 0) kiln_value_destroy(value);
  kiln_value_destroy(same);
}

static void *hold(void *arg) {
  static float data[2 * 3];
  holder *h = arg;
  const int64_t sizes[2] = {2, 3};
  kiln_value *x = NULL, *value = NULL, *list = NULL;
  is_done(kiln_value_tensor_over(h->of->context, KILN_DTYPE_F32, 2, sizes, NULL, data, sizeof data,
                                 count_given, &h->given, &x));
  is_done(kiln_instance_call(h->of->instance, "forward", &x, 1, NULL, &value));
  is_done(kiln_value_list(h->of->context, &value, 1, &list));
  pthread_barrier_wait(h->meeting); /* from here on the handles go */
  switch ((h->i + h->round) % HOLDERS) {
    case 0: kiln_context_release(h->of->context); break;
    case 1: kiln_model_release(h->of->model); break;
    case 2: kiln_instance_release(h->of->instance); break;
    default: kiln_value_destroy(x); x = NULL;
  }
  use_values(h, value, list);
  kiln_value_destroy(x);
  return NULL;
}

static void test_values_outlive(void **state) {
  pthread_barrier_t meeting;
  (void)state;
  pthread_barrier_init(&meeting, NULL, HOLDERS);
  for (int round = 0; round < ROUNDS; round++) {
    subject of = {.context = context_with(NULL, NULL)};
    holder holders[HOLDERS];
    load_subject(&of, PATH);
    for (int i = 0; i < HOLDERS; i++) {
      holders[i] = (holder){.i = i, .round = round, .of = &of, .meeting = &meeting};
      assert_int_equal(pthread_create(&holders[i].thread, NULL, hold, &holders[i]), 0);
    }
    for (int i = 0; i < HOLDERS; i++) {
      pthread_join(holders[i].thread, NULL);
      assert_int_equal(holders[i].given, 1);
    }
  }
  pthread_barrier_destroy(&meeting);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_at_once),
                                     cmocka_unit_test(test_values_outlive)};
  return cmocka_run_group_tests(tests, open_context, close_context);
}
