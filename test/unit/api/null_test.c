/* null_test.c: NULL where a pointer is wanted is a status, or harmless; it never crashes. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln/debug.h"
#include "kiln/dlpack.h"
#include "kiln/kiln_graph.h"
#include "kiln/kiln_op.h"
#include "test/unit/api/values.h"

typedef struct null_call {
  const char *name;
  void (*call)(void);
} null_call;

/* Good arguments. */
static struct {
  kiln_context *context;
  kiln_options *options;
  kiln_pool *pool;
  kiln_model *model;
  kiln_instance *instance;
  kiln_value *value;
  kiln_builder *builder;
  const char *names[2];
  int64_t sizes[2];
  int number; /* for indexes, counts and sizes */
  /* zeroed: what is written by a function, or read as a struct of options */
  _Alignas(max_align_t) char room[8192];
} the;

static void on_row(void *user, const char *const *columns, int count) {
  (void)user;
  (void)columns;
  (void)count;
}
static void on_print(void *user, const char *text, size_t size) {
  (void)user;
  (void)text;
  (void)size;
}
static void on_log(void *user, const char *channel, int level, const char *line) {
  (void)user;
  (void)channel;
  (void)level;
  (void)line;
}
static int on_write(void *user, const void *data, size_t size) {
  (void)user;
  (void)data;
  (void)size;
  return 0;
}
static void on_event(void *user, const char *json) { (void)user, (void)json; }
static void on_done(void *user, kiln_status *status, kiln_value *result) {
  (void)user;
  kiln_status_destroy(status);
  kiln_value_destroy(result);
}

#include "null_calls.h" /* made by test/make/null_calls.py */

enum { CALLS = sizeof null_calls / sizeof null_calls[0] };

static int count_crashes(void) {
  int crashed = 0;
  for (int i = 0; i < CALLS; i++) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      alarm(20);
      null_calls[i].call();
      _exit(0);
    }
    int ended = 0;
    assert_int_equal(waitpid(child, &ended, 0), child);
    if (WIFEXITED(ended) && WEXITSTATUS(ended) == 0) continue;
    print_error("%s is NULL, with %d: crashed\n", null_calls[i].name, the.number);
    crashed++;
  }
  return crashed;
}

/* So that there are groups and refusals to ask for. */
static void make_calls(void) {
  const int64_t sizes[] = {2, 3};
  kiln_value *x, *result;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, NULL, &x));
  for (int i = 0; i < 3; i++) {
    assert_ok(kiln_instance_call(the.instance, "forward", &x, 1, NULL, &result));
    kiln_value_destroy(result);
  }
  kiln_value_destroy(x);
}

static void survives_null(void **state) {
  open_context(state);
  the.context = context;
  the.names[0] = the.names[1] = "forward";
  the.sizes[0] = the.sizes[1] = 1;
  assert_ok(kiln_options_create(&the.options));
  assert_ok(kiln_pool_create(1, &the.pool));
  assert_ok(kiln_model_load(context, TEST_DATA "/own/relu_linear/model.pt", NULL, &the.model));
  assert_ok(kiln_instance_create(the.model, &the.instance));
  make_calls();
  assert_ok(kiln_builder_create(context, &the.builder));
  int crashed = 0;
  const int64_t one = 1;
  kiln_value *tensor, *list;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_U8, 1, &one, NULL, &tensor));
  assert_ok(kiln_value_list(context, &tensor, 1, &list));
  the.value = tensor;
  for (the.number = 0; the.number < 2; the.number++) crashed += count_crashes();
  the.value = list;
  for (the.number = 0; the.number < 2; the.number++) crashed += count_crashes();
  assert_true(CALLS > 300);
  assert_int_equal(crashed, 0);
  kiln_builder_destroy(the.builder);
  kiln_value_destroy(list);
  kiln_value_destroy(tensor);
  kiln_instance_release(the.instance);
  kiln_model_release(the.model);
  kiln_pool_release(the.pool);
  kiln_options_destroy(the.options);
  close_context(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(survives_null)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
