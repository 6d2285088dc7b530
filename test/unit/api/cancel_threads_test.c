/* cancel_threads_test.c: tokens that another thread cancels, in calls and loads; limits that
 * compiling is not charged to; limits that name themselves. */
#include <pthread.h>
#include <unistd.h>

#include "test/unit/api/built.h"

static kiln_context *context;
static kiln_cancel *cancel;

static int set_up(void **state) {
  (void)state;
  context = context_with(NULL, NULL);
  assert_ok(kiln_cancel_create(&cancel));
  return 0;
}
static int tear_down(void **state) {
  (void)state;
  kiln_cancel_destroy(cancel);
  kiln_context_release(context);
  return 0;
}

static void *cancel_soon(void *arg) {
  usleep(30000);
  kiln_call_cancel(arg);
  return NULL;
}

static kiln_instance *load_instance(kiln_context *in, const char *path) {
  subject s = {.context = in};
  load_subject(&s, path);
  kiln_model_release(s.model);
  return s.instance;
}

static kiln_value *tensor(kiln_context *in, int64_t rows, int64_t columns) {
  const int64_t sizes[2] = {rows, columns};
  kiln_value *value = NULL;
  assert_ok(kiln_value_tensor(in, KILN_DTYPE_F32, 2, sizes, NULL, &value));
  return value;
}

/* The call ends soon after it was cancelled from another thread, and the next one is as ever. */
static void assert_cancelled(kiln_instance *instance, const char *method, kiln_value *argument) {
  const kiln_call_options options = {.limits = {.cancel = cancel}};
  kiln_value *result = NULL;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
  double begin = now_ms();
  assert_error(kiln_instance_call(instance, method, &argument, 1, &options, &result),
               KILN_CANCELLED, "the call was cancelled");
  assert_true(now_ms() - begin < 5000); /* 30 ms and some, on a machine that does other things */
  pthread_join(thread, NULL);
  assert_true(kiln_cancel_is_asked(cancel));
  assert_error(kiln_instance_call(instance, method, &argument, 1, &options, &result),
               KILN_CANCELLED, NULL); /* it stays so */
  kiln_cancel_reset(cancel);
}

static void loops_are_cancelled(void **state) {
  (void)state;
  kiln_instance *instance = load_instance(context, TEST_DATA "/own/calls/model.pt");
  kiln_value *one = NULL;
  assert_ok(kiln_value_int(context, 1, &one));
  assert_cancelled(instance, "forever", one);
  kiln_value_destroy(one);
  kiln_instance_release(instance);
}

/* One operator that would take hours. */
static void products_are_cancelled(void **state) {
  static const char text[] = "graph(%x : Tensor):\n"
                             "  %sizes : int[] = prim::Constant[value=[2, 1099511627776]]()\n"
                             "  %no : bool = prim::Constant[value=0]()\n"
                             "  %wide : Tensor = aten::expand(%x, %sizes, %no)\n"
                             "  %tall : Tensor = aten::t(%wide)\n"
                             "  %y : Tensor = aten::mm(%wide, %tall)\n"
                             "  return (%y)\n";
  (void)state;
  kiln_model *model = parse_model(context, text, sizeof text - 1);
  kiln_instance *instance = instance_of(model);
  kiln_model_release(model);
  kiln_value *x = tensor(context, 1, 1), *y = NULL;
  assert_cancelled(instance, "forward", x);
  const kiln_call_options quick = {.limits = {.time_ms = 50}};
  double begin = now_ms();
  assert_error(kiln_instance_call(instance, "forward", &x, 1, &quick, &y), KILN_LIMIT,
               "limit of 50 ms (time_ms)");
  assert_true(now_ms() - begin < 5000);
  kiln_value_destroy(x);
  kiln_instance_release(instance);
}

/* A method of so many lines that compiling it looks at the budget again and again: cancelled at the
 * first look, at the second, fourth, eighth, ... until a call comes through. */
static int cancel_until_it_runs(kiln_instance *instance, kiln_value *x) {
  const kiln_call_options options = {.limits = {.cancel = cancel}};
  for (int cancelled = 0;; cancelled++) {
    kiln_value *y = NULL;
    kiln_cancel_at_look(cancel, (uint64_t)1 << cancelled);
    kiln_status *status = kiln_instance_call(instance, "forward", &x, 1, &options, &y);
    kiln_cancel_at_look(cancel, 0);
    kiln_cancel_reset(cancel);
    if (!status) {
      assert_true(((const float *)kiln_value_data(y))[0] == 0);
      kiln_value_destroy(y);
      return cancelled;
    }
    assert_error(status, KILN_CANCELLED, "was cancelled");
  }
}

static void make_lines(kiln_model **out_model, kiln_instance **out_instance) {
  enum { LINES = 4000, LINE = 64 };
  char *text = malloc((size_t)(LINES + 4) * LINE), *at = text;
  assert_non_null(text);
  at += snprintf(at, LINE, "graph(%%x0 : Tensor):\n");
  for (int i = 0; i < LINES; i++) {
    at += snprintf(at, LINE, "  %%x%d : Tensor = aten::mul(%%x%d, %%x0)\n", i + 1, i);
  }
  at += snprintf(at, LINE, "  return (%%x%d)\n", LINES);
  *out_model = parse_model(context, text, (size_t)(at - text));
  free(text);
  *out_instance = instance_of(*out_model);
}

static void compiling_is_cancelled(void **state) {
  kiln_model *model = NULL;
  kiln_instance *instance = NULL;
  kiln_counters counters;
  (void)state;
  make_lines(&model, &instance);
  kiln_value *x = tensor(context, 2, 3);
  assert_true(cancel_until_it_runs(instance, x) > 4); /* the instrumented plan */
  kiln_model_counters(model, &counters);
  assert_int_equal(counters.groups, 0);
  assert_true(cancel_until_it_runs(instance, x) > 4); /* the groups */
  kiln_model_counters(model, &counters);
  assert_int_equal(counters.compile_failures, 0);
  assert_true(counters.compiled_runs > 0);
  const uint64_t groups = counters.groups;
  kiln_instance_release(instance);
  kiln_model_release(model);
  make_lines(&model, &instance); /* jobs that were cancelled have left none */
  for (int i = 0; i < 2; i++) {
    kiln_value *y = NULL;
    assert_ok(kiln_instance_call(instance, "forward", &x, 1, NULL, &y));
    kiln_value_destroy(y);
  }
  kiln_model_counters(model, &counters);
  assert_int_equal(counters.groups, groups);
  kiln_value_destroy(x);
  kiln_instance_release(instance);
  kiln_model_release(model);
}

static void loads_are_cancelled(void **state) {
  (void)state;
  kiln_model *model = NULL;
  kiln_call_cancel(cancel);
  assert_error(kiln_model_load(context, TEST_DATA "/own/relu_linear/model.pt",
                               &(kiln_limits){.cancel = cancel}, &model),
               KILN_CANCELLED, "the load was cancelled");
  kiln_cancel_reset(cancel);
  int pipes[2];
  pthread_t thread;
  assert_int_equal(pipe(pipes), 0);
  double begin = now_ms();
  assert_error(kiln_model_load_fd(context, pipes[0], &(kiln_limits){.time_ms = 50}, &model),
               KILN_LIMIT, "limit of 50 ms");
  assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
  assert_error(kiln_model_load_fd(context, pipes[0], &(kiln_limits){.cancel = cancel}, &model),
               KILN_CANCELLED, NULL);
  assert_true(now_ms() - begin < 5000);
  pthread_join(thread, NULL);
  kiln_cancel_reset(cancel);
  close(pipes[0]);
  close(pipes[1]);
}

/* The second call compiles, for longer than it may take itself. */
static void compiling_is_not_charged(void **state) {
  (void)state;
  kiln_instance *instance = load_instance(context, TEST_DATA "/own/relu_linear/model.pt");
  kiln_value *x = tensor(context, 2, 3), *y = NULL;
  const kiln_call_options quick = {.limits = {.bytes = 1 << 20, .time_ms = 50}};
  for (int i = 0; i < 4; i++) {
    assert_ok(kiln_instance_call(instance, "forward", &x, 1, &quick, &y));
    kiln_value_destroy(y);
  }
  kiln_value_destroy(x);
  kiln_instance_release(instance);
}

/* What the host's log holds up while a group is compiled. */
static struct {
  bool armed, compiling, over; /* atomic */
} held_up;
static bool is_set(const bool *flag) { return __atomic_load_n(flag, __ATOMIC_ACQUIRE); }
static void set(bool *flag) { __atomic_store_n(flag, true, __ATOMIC_RELEASE); }

static void hold_up(void *user, const char *channel, int level, const char *line) {
  (void)user;
  (void)level;
  (void)line;
  if (!is_set(&held_up.armed) || strcmp(channel, "compile") != 0) return;
  set(&held_up.compiling);
  for (double begin = now_ms(); !is_set(&held_up.over) && now_ms() - begin < 10000;) usleep(1000);
}

static void *call_five_rows(void *instance) {
  kiln_value *x = tensor(context, 5, 3), *y = NULL;
  assert_ok(kiln_instance_call(instance, "forward", &x, 1, NULL, &y));
  kiln_value_destroy(y);
  kiln_value_destroy(x);
  return NULL;
}

/* Another thread compiles, and a guard fails in a call that has little time. */
static void failed_guards_do_not_wait(void **state) {
  (void)state;
  kiln_context_release(context);
  context = context_with("log", "compile=1");
  kiln_context_set_log(context, hold_up, NULL);
  kiln_instance *instance = load_instance(context, TEST_DATA "/own/relu_linear/model.pt");
  kiln_value *two = tensor(context, 2, 3), *seven = tensor(context, 7, 3), *y = NULL;
  const kiln_call_options quick = {.limits = {.time_ms = 50}};
  pthread_t thread;
  for (int i = 0; i < 2; i++) {
    assert_ok(kiln_instance_call(instance, "forward", &two, 1, NULL, &y));
    kiln_value_destroy(y);
  }
  (void)call_five_rows(instance);
  set(&held_up.armed);
  assert_int_equal(pthread_create(&thread, NULL, call_five_rows, instance), 0);
  while (!is_set(&held_up.compiling)) usleep(1000);
  const double begin = now_ms();
  assert_error(kiln_instance_call(instance, "forward", &seven, 1, &quick, &y), KILN_LIMIT,
               "limit of 50 ms");
  assert_true(now_ms() - begin < 5000);
  set(&held_up.over);
  pthread_join(thread, NULL);
  kiln_value_destroy(two);
  kiln_value_destroy(seven);
  kiln_instance_release(instance);
}

static void straight_lines_count(void **state) {
  (void)state;
  kiln_instance *instance = load_instance(context, TEST_DATA "/own/relu_linear/model.pt");
  kiln_value *x = tensor(context, 2, 3), *y = NULL;
  const kiln_call_options few = {.limits = {.operations = 2}};
  assert_error(kiln_instance_call(instance, "forward", &x, 1, &few, &y), KILN_LIMIT,
               "limit of 2 operations (operations)");
  kiln_value_destroy(x);
  kiln_instance_release(instance);
}

static void the_memory_limit_is_named(void **state) {
  (void)state;
  kiln_context *small = context_with("memory_limit", "8M");
  kiln_instance *instance = load_instance(small, TEST_DATA "/own/relu_linear/model.pt");
  kiln_value *x = tensor(small, 300000, 3), *y = NULL;
  assert_error(kiln_instance_call(instance, "forward", &x, 1, NULL, &y), KILN_OUT_OF_MEMORY,
               "memory_limit of 8 MiB is reached: 4");
  kiln_value_destroy(x);
  const int64_t sizes[2] = {4000, 1000}, many[2] = {INT64_C(1) << 30, INT64_C(1) << 30};
  assert_error(kiln_value_tensor(small, KILN_DTYPE_F32, 2, sizes, NULL, &x), KILN_OUT_OF_MEMORY,
               "memory_limit of 8 MiB is reached: 15");
  kiln_context_release(small);
  small = context_with("memory_limit", "0");
  assert_error(kiln_value_tensor(small, KILN_DTYPE_F32, 2, many, NULL, &x), KILN_OUT_OF_MEMORY,
               "out of memory: 4");
  kiln_instance_release(instance);
  kiln_context_release(small);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(loops_are_cancelled, set_up, tear_down),
      cmocka_unit_test_setup_teardown(products_are_cancelled, set_up, tear_down),
      cmocka_unit_test_setup_teardown(compiling_is_cancelled, set_up, tear_down),
      cmocka_unit_test_setup_teardown(loads_are_cancelled, set_up, tear_down),
      cmocka_unit_test_setup_teardown(compiling_is_not_charged, set_up, tear_down),
      cmocka_unit_test_setup_teardown(failed_guards_do_not_wait, set_up, tear_down),
      cmocka_unit_test_setup_teardown(straight_lines_count, set_up, tear_down),
      cmocka_unit_test_setup_teardown(the_memory_limit_is_named, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
