/* oom_test.c: a model's life through the public API with the N-th request for memory failing, for
 * each N: loaded, instantiated, called until it is compiled, its result copied out. */
#include "api/internal.h"
#include "test/unit/api/fixture.h"
#include "test/unit/sweep.h"

static kiln_context *context;
static uint64_t compiles; /* the most of one life */

static kiln_status *call_often(kiln_instance *instance) {
  static const float data[] = {1, -2, 3, 0.5f, 0, 2};
  kiln_value *x = NULL;
  kiln_status *status =
      kiln_value_tensor(context, KILN_DTYPE_F32, 2, (const int64_t[]){2, 3}, data, &x);
  for (int i = 0; !status && i < 3; i++) {
    kiln_value *result = NULL;
    float copy[6] = {0};
    status = kiln_instance_call(instance, "forward", (kiln_value *const[]){x}, 1, NULL, &result);
    if (!status) status = kiln_value_copy_data(result, copy, sizeof copy);
    for (int k = 0; !status && k < 6; k++) {
      if (copy[k] != 3 * data[k]) status = KILN_ERROR(KILN_INTERNAL, "not x + x + x");
    }
    kiln_value_destroy(result);
  }
  kiln_value_destroy(x);
  return status;
}

static kiln_status *live(kiln_mem *mem, void *arg) {
  kiln_model *model = NULL;
  kiln_instance *instance = NULL;
  (void)mem;
  kiln_status *status = kiln_model_load(context, arg, NULL, &model);
  if (!status) status = kiln_instance_create(model, &instance);
  if (!status) status = call_often(instance);
  if (!status) {
    kiln_counters counters = {0};
    kiln_model_counters(model, &counters);
    if (counters.compiles > compiles) compiles = counters.compiles;
  }
  kiln_instance_release(instance);
  kiln_model_release(model);
  return status;
}

/* Tolerant: what could not be compiled is interpreted. */
static void test_life(void **state) {
  (void)state;
  context = context_with("code_cache", "0"); /* each life compiles, and leaves nothing */
  assert_ok(kiln_context_set(context, "codegen", "eval", NULL));
  context->env->log.level[KILN_LOG_warn] = 0;
  static char path[] = TEST_DATA "/own/triple_add/model.pt";
  assert_ok(live(NULL, path)); /* the operators' schemas are there from then on */
  sweep__run(context->env->mem, live, path, true);
  assert_true(compiles > 0);
  kiln_context_release(context);
}

static kiln_status *print_and_copy(kiln_mem *mem, void *arg) {
  kiln_value *items[2] = {NULL, NULL}, *list = NULL, *copy = NULL;
  char *text = NULL;
  (void)mem, (void)arg;
  kiln_status *status = kiln_value_string(context, "text", 4, &items[0]);
  if (!status) status = kiln_value_string(context, "more", 4, &items[1]);
  if (!status) status = kiln_value_list(context, items, 2, &list);
  if (!status) status = kiln_value_clone(list, &copy);
  if (!status) status = kiln_value_print(copy, 100, &text);
  if (text) kiln_text_free(text);
  kiln_value_destroy(copy);
  kiln_value_destroy(list);
  kiln_value_destroy(items[0]);
  kiln_value_destroy(items[1]);
  return status;
}

static void test_values(void **state) {
  (void)state;
  context = context_with(NULL, NULL);
  sweep__run(context->env->mem, print_and_copy, NULL, false);
  kiln_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_life), cmocka_unit_test(test_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
