/* freeze_test.c: frozen models: what becomes a constant and what stays, by results and by what an
 * instance still has. Expected numbers are worked out by hand; that PyTorch runs frozen archives
 * with the same results is test/make/convert.py's to tell. */
#include "api/internal.h"
#include "test/unit/api/built.h"
#include "test/unit/api/values.h"
#include "test/unit/sweep.h"

/* -- Helpers -- */

static void assert_has(kiln_instance *instance, const char *name, bool has) {
  kiln_value *value = NULL;
  kiln_status *status = kiln_instance_get(instance, name, &value);
  assert_int_equal(kiln_status_code(status), has ? KILN_OK : KILN_NOT_FOUND);
  kiln_status_destroy(status);
  kiln_value_destroy(value);
}

static kiln_model *freeze(kiln_model *model, const char *preserve, bool eval) {
  const kiln_freeze_options options = {
      .preserve = &preserve, .preserve_count = preserve ? 1 : 0, .eval = eval};
  kiln_model *frozen = NULL;
  assert_ok(kiln_model_freeze(model, &options, &frozen));
  return frozen;
}

/* x * w + n, where n counts the calls from 5; `training` says nothing. */
static kiln_model *counting(bool training) {
  static const float two_three[] = {2, 3};
  kiln_builder *b = create_builder(context);
  kiln_value *flag = NULL, *one = int_of(1);
  assert_ok(kiln_value_bool(context, training, &flag));
  const kiln_var x = input_of(b, "x", "Tensor");
  const kiln_var w = attribute_of(b, "w", vector_of(2, two_three));
  const kiln_var n = attribute_of(b, "n", int_of(5));
  (void)attribute_of(b, "training", flag);
  const kiln_builder_arg add[2] = {{.var = n}, {.value = one}};
  assert_ok(kiln_builder_set(b, "n", call_with(b, "aten::add", add, 2)));
  kiln_value_destroy(one);
  return finish_with(b, call_of(b, "aten::add", call_of(b, "aten::mul", x, w), n));
}

/* -- Tests -- */

/* [1, 1] * [2, 3] + 5, then + 6. */
static void test_state(void **state) {
  static const float ones[] = {1, 1};
  kiln_model *model = counting(false), *frozen = freeze(model, NULL, false);
  kiln_instance *instance = instance_of(frozen), *old = instance_of(model);
  kiln_value *x = vector_of(2, ones);
  (void)state;
  assert_has(instance, "w", false);
  assert_has(instance, "training", false);
  assert_has(instance, "n", true);
  assert_calls(instance, &x, 1, 1, "tensor([7., 8.], dtype=float32)");
  assert_calls(instance, &x, 1, 1, "tensor([8., 9.], dtype=float32)");
  kiln_model_release(frozen);
  /* Of an instance: as it is now. */
  assert_calls(old, &x, 1, 1, "tensor([7., 8.], dtype=float32)");
  assert_ok(kiln_instance_freeze(old, NULL, &frozen));
  kiln_instance_release(instance);
  instance = instance_of(frozen);
  assert_calls(instance, &x, 1, 1, "tensor([8., 9.], dtype=float32)");
  kiln_value_destroy(x);
  kiln_instance_release(instance);
  kiln_instance_release(old);
  kiln_model_release(frozen);
  kiln_model_release(model);
}

static void test_preserved(void **state) {
  static const float ones[] = {1, 1}, tens[] = {10, 10};
  kiln_model *model = counting(false), *frozen = freeze(model, "w", false);
  kiln_instance *instance = instance_of(frozen);
  kiln_value *x = vector_of(2, ones), *w = vector_of(2, tens);
  (void)state;
  assert_has(instance, "w", true);
  assert_calls(instance, &x, 1, 1, "tensor([7., 8.], dtype=float32)");
  assert_ok(kiln_instance_set(instance, "w", w));
  assert_calls(instance, &x, 1, 1, "tensor([16., 16.], dtype=float32)");
  kiln_value_destroy(x);
  kiln_value_destroy(w);
  kiln_instance_release(instance);
  kiln_model_release(frozen);
  kiln_model_release(model);
}

/* What is written stays, and what nobody writes does not: a += x, a + c. */
static void test_written(void **state) {
  static const float zeros[] = {0, 0}, ones[] = {1, 1};
  kiln_builder *b = create_builder(context);
  kiln_value *x = vector_of(2, ones);
  (void)state;
  const kiln_var vx = input_of(b, "x", "Tensor");
  const kiln_var a = attribute_of(b, "a", vector_of(2, zeros));
  const kiln_var c = attribute_of(b, "c", vector_of(2, ones));
  (void)call_of(b, "aten::add_", a, vx);
  kiln_model *model = finish_with(b, call_of(b, "aten::add", a, c));
  kiln_model *frozen = freeze(model, NULL, false);
  kiln_instance *instance = instance_of(frozen);
  assert_has(instance, "a", true);
  assert_has(instance, "c", false);
  assert_calls(instance, &x, 1, 1, "tensor([2., 2.], dtype=float32)");
  assert_calls(instance, &x, 1, 1, "tensor([3., 3.], dtype=float32)");
  kiln_value_destroy(x);
  kiln_instance_release(instance);
  kiln_model_release(frozen);
  kiln_model_release(model);
}

/* own/saved: rows is written, columns is a view of it, and stays too; second is read only. */
static void test_ties(void **state) {
  kiln_model *model = NULL;
  (void)state;
  assert_ok(kiln_model_load(context, TEST_DATA "/own/saved/model.pt", NULL, &model));
  kiln_model *frozen = freeze(model, "z", true);
  kiln_instance *instance = instance_of(frozen);
  assert_has(instance, "rows", true);
  assert_has(instance, "columns", true);
  assert_has(instance, "z", true);
  assert_has(instance, "halves", false);
  assert_has(instance, "second", false);
  kiln_instance_release(instance);
  kiln_model_release(frozen);
  kiln_model_release(model);
}

static void test_refused(void **state) {
  kiln_model *model = counting(true), *frozen = NULL;
  const char *const names[] = {"forward", "nosuch"};
  const kiln_freeze_options options = {.preserve = names, .preserve_count = 2, .eval = 1},
                            none = {.preserve_count = 1, .eval = 1};
  (void)state;
  assert_error(kiln_model_freeze(model, NULL, &frozen), KILN_INVALID_ARGUMENT, "eval mode");
  assert_null(frozen);
  assert_error(kiln_model_freeze(model, &options, &frozen), KILN_INVALID_ARGUMENT, "'nosuch'");
  assert_error(kiln_model_freeze(model, &none, &frozen), KILN_INVALID_ARGUMENT, "none is given");
  frozen = freeze(model, NULL, true);
  kiln_model_release(frozen);
  kiln_model_release(model);
}

/* An attribute that __setstate__ has left without a value, in use and only kept. */
static void test_unset(void **state) {
  const char *const kept = "s";
  const kiln_freeze_options options = {.preserve = &kept, .preserve_count = 1, .eval = 1};
  kiln_model *model = NULL, *frozen = NULL;
  kiln_value *value = NULL;
  (void)state;
  assert_ok(kiln_model_load(context, TEST_DATA "/load/unset.pt", NULL, &model));
  assert_error(kiln_model_freeze(model, &(kiln_freeze_options){.eval = 1}, &frozen),
               KILN_INVALID_ARGUMENT, "attribute 'w' of an object of __torch__.S is not set");
  assert_ok(kiln_model_freeze(model, &options, &frozen)); /* by __getstate__ and __setstate__ */
  kiln_model_release(frozen);
  kiln_instance *instance = instance_of(model);
  assert_error(kiln_instance_get(instance, "s.w", &value), KILN_NOT_FOUND, "is not set yet");
  kiln_instance_release(instance);
  kiln_model_release(model);
}

/* relu(x @ w + b) of an archive: the same results, and no weights left in the module. */
static void test_archive(void **state) {
  static const float data[] = {1, -2, 3, 0.5f, 0, 2};
  kiln_model *model = NULL;
  (void)state;
  assert_ok(kiln_model_load(context, TEST_DATA "/own/relu_linear/model.pt", NULL, &model));
  kiln_model *frozen = freeze(model, NULL, true);
  kiln_instance *old = instance_of(model), *instance = instance_of(frozen);
  kiln_value *x = matrix_of(2, 3, data), *result = NULL;
  char *want = NULL;
  kiln_model_release(model); /* the frozen one stands by itself */
  assert_ok(kiln_instance_call(old, "forward", &x, 1, NULL, &result));
  assert_ok(kiln_value_print(result, 100, &want));
  kiln_instance_release(old);
  assert_has(instance, "w", false);
  assert_has(instance, "b", false);
  for (int i = 0; i < 3; i++) assert_calls(instance, &x, 1, 1, want);
  kiln_text_free(want);
  kiln_value_destroy(result);
  kiln_value_destroy(x);
  kiln_instance_release(instance);
  kiln_model_release(frozen);
}

static kiln_status *freeze_once(kiln_mem *mem, void *arg) {
  kiln_model *frozen = NULL;
  (void)mem;
  kiln_status *status = kiln_model_freeze(arg, NULL, &frozen);
  kiln_model_release(frozen);
  return status;
}

/* Tolerant: what cannot be folded is left. */
static void test_memory(void **state) {
  (void)state;
  kiln_model *model = counting(false);
  kiln_status_destroy(freeze_once(NULL, model)); /* types that it makes stay with the context */
  sweep__run(context->env->mem, freeze_once, model, true);
  kiln_model_release(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_state),   cmocka_unit_test(test_preserved),
      cmocka_unit_test(test_refused), cmocka_unit_test(test_unset),
      cmocka_unit_test(test_written), cmocka_unit_test(test_ties),
      cmocka_unit_test(test_archive), cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
