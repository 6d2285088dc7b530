/* calls_test.c: models, instances, arguments, attributes, errors and limits of calls.
 *
 * test/data/own/calls has a method for every kind of argument (test/make/calls.py). */
#include "test/unit/api/values.h"
#include "test/unit/files.h"

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

static kiln_value *tensor_of(float a, float b, float c) {
  return vector_of(3, (const float[]){a, b, c});
}
static kiln_value *list_of(int64_t a, int64_t b) {
  kiln_value *items[2] = {int_of(a), int_of(b)}, *v = NULL;
  assert_ok(kiln_value_list(context, items, 2, &v));
  kiln_value_destroy(items[0]);
  kiln_value_destroy(items[1]);
  return v;
}
static kiln_value *pair_of(kiln_value *a, kiln_value *b) { /* takes both */
  kiln_value *items[2] = {a, b}, *v = NULL;
  assert_ok(kiln_value_tuple(context, items, 2, &v));
  kiln_value_destroy(a);
  kiln_value_destroy(b);
  return v;
}

/* Calls with one or two arguments (taken); the second may be NULL. */
static kiln_status *try_call(const char *method, kiln_value *a, kiln_value *b, kiln_value **out) {
  kiln_value *args[2] = {a, b};
  int count = b ? 2 : a ? 1 : 0;
  kiln_status *status = kiln_instance_call(instance, method, args, count, NULL, out);
  kiln_value_destroy(a);
  kiln_value_destroy(b);
  return status;
}

static void assert_call(const char *method, kiln_value *a, kiln_value *b, const char *want) {
  kiln_value *result = NULL;
  char *text = NULL;
  assert_ok(try_call(method, a, b, &result));
  assert_ok(kiln_value_print(result, 10, &text));
  assert_string_equal(text, want);
  kiln_text_free(text);
  kiln_value_destroy(result);
}

static void assert_refused(const char *method, kiln_value *a, kiln_value *b, const char *words) {
  kiln_value *result = (kiln_value *)1;
  assert_error(try_call(method, a, b, &result), KILN_INVALID_ARGUMENT, words);
  assert_null(result);
}

static void test_methods(void **state) {
  kiln_argument argument;
  bool found = false;
  (void)state;
  for (int i = 0; i < kiln_model_method_count(model); i++) {
    found = found || strcmp(kiln_model_method_name(model, i), "numbers") == 0;
  }
  assert_true(found);
  assert_null(kiln_model_method_name(model, kiln_model_method_count(model)));
  assert_null(kiln_model_method_name(model, -1));
  assert_null(kiln_model_method_schema(model, "nothing"));
  assert_string_equal(kiln_model_method_schema(model, "numbers"),
                      "numbers(float[] fs, float more=0.5) -> float[]");
  assert_ok(kiln_model_argument(model, "numbers", 1, &argument));
  assert_string_equal(argument.name, "more");
  assert_string_equal(argument.type, "float");
  assert_int_equal(argument.has_default, 1);
  assert_error(kiln_model_argument(model, "numbers", 2, &argument), KILN_NOT_FOUND, NULL);
  assert_error(kiln_model_argument(model, "nothing", 0, &argument), KILN_NOT_FOUND, "nothing");
}

static void test_numbers(void **state) {
  (void)state;
  assert_call("number", float_of(1.25), NULL, "2.5");
  assert_call("number", int_of(3), NULL, "6.0");
  assert_refused("number", string_of("3"), NULL,
                 "number() argument 'f' (position 1) must be float, not str");
  assert_refused("spin", float_of(3), NULL, "must be int, not float");
  assert_refused("number", NULL, NULL, "number() is missing its argument 'f' of type float");
  assert_refused("number", int_of(1), int_of(2), "number() takes 1 argument, but 2 were given");
}

/* NULL stands for an argument that is left out: its default, or a complaint. */
static void test_null_is_left_out(void **state) {
  (void)state;
  kiln_value *args[2] = {NULL, float_of(2)}, *result = NULL;
  char *text = NULL;
  assert_error(kiln_instance_call(instance, "numbers", args, 2, NULL, &result),
               KILN_INVALID_ARGUMENT, "argument 'fs' is a NULL handle");
  kiln_value_destroy(args[1]);
  args[0] = list_of(1, 2), args[1] = NULL;
  assert_ok(kiln_instance_call(instance, "numbers", args, 2, NULL, &result));
  assert_ok(kiln_value_print(result, 10, &text));
  assert_string_equal(text, "[1.0, 2.0, 0.5]");
  kiln_text_free(text);
  kiln_value_destroy(result);
  kiln_value_destroy(args[0]);
}

static void test_lists(void **state) {
  kiln_value *list = list_of(1, 2), *empty = NULL, *share = NULL;
  (void)state;
  /* The method's change is seen in a list that was passed as it is... */
  assert_ok(kiln_value_share(list, &share));
  assert_call("ints", share, NULL, "3");
  assert_int_equal(kiln_value_count(list), 3);
  /* ... not in one whose elements had to be converted. */
  assert_ok(kiln_value_share(list, &share));
  assert_call("numbers", share, NULL, "[1.0, 2.0, 9.0, 0.5]");
  assert_int_equal(kiln_value_count(list), 3);
  kiln_value_destroy(list);
  /* An empty list takes its element type from the schema. */
  assert_ok(kiln_value_list(context, NULL, 0, &empty));
  assert_call("numbers", empty, float_of(4), "[4.0]");
  assert_ok(kiln_value_list(context, NULL, 0, &empty));
  assert_call("optional", empty, NULL, "0");
  assert_call("optional", NULL, NULL, "-1");
  assert_call("optional", list_of(5, 6), NULL, "2");
  assert_refused("ints", pair_of(int_of(1), int_of(2)), NULL, "must be int[], not");
  assert_refused("ints", string_of("12"), NULL, "must be int[], not str");
}

static void test_containers(void **state) {
  kiln_value *key = string_of("k"), *list = list_of(7, 8), *dict = NULL, *none = NULL;
  (void)state;
  assert_call("point", pair_of(float_of(0.5), int_of(2)), NULL, "2.5");
  assert_call("point", pair_of(int_of(1), int_of(2)), NULL, "3.0");
  assert_refused("point", pair_of(int_of(1), float_of(2)), NULL, "argument 'p'");
  assert_ok(kiln_value_dict(context, &key, &list, 1, &dict));
  assert_call("table", dict, string_of("k"), "7");
  assert_ok(kiln_value_dict(context, NULL, NULL, 0, &dict));
  kiln_value *result = NULL;
  kiln_status *status = try_call("table", dict, string_of("k"), &result);
  assert_int_not_equal(kiln_status_code(status), KILN_OK); /* no such key */
  assert_int_not_equal(kiln_status_code(status), KILN_INVALID_ARGUMENT);
  kiln_status_destroy(status);
  assert_ok(kiln_value_dict(context, &list, &key, 0, &dict));
  assert_refused("table", list, string_of("k"), "argument 't'");
  kiln_value_destroy(dict);
  kiln_value_destroy(key);
  assert_ok(kiln_value_none(context, &none));
  assert_call("tensors", pair_of(tensor_of(1, 2, 3), none), NULL,
              "tensor([1., 2., 3.], dtype=float32)");
}

static void test_instances_are_apart(void **state) {
  kiln_instance *other = NULL;
  kiln_value *x = tensor_of(1, 2, 3), *result = NULL, *total = NULL, *count = NULL;
  char *text = NULL;
  (void)state;
  assert_ok(kiln_instance_create(model, &other));
  for (int i = 0; i < 2; i++) {
    kiln_value_destroy(result);
    assert_ok(kiln_instance_call(other, "forward", &x, 1, NULL, &result));
  }
  assert_ok(kiln_value_print(result, 10, &text));
  /* total is 2x, then 2 total + x */
  assert_string_equal(text, "(tensor([5., 10., 15.], dtype=float32), 2)");
  kiln_text_free(text);
  kiln_value_destroy(result);
  assert_ok(kiln_instance_get(other, "count", &count));
  assert_int_equal(kiln_value_as_int(count), 2);
  kiln_value_destroy(count);
  assert_ok(kiln_instance_get(instance, "count", &count));
  assert_int_equal(kiln_value_as_int(count), 0);
  kiln_value_destroy(count);
  assert_ok(kiln_instance_get(instance, "part.total", &total));
  assert_true(((const float *)kiln_value_data(total))[0] == 0);
  kiln_value_destroy(total);
  kiln_instance_release(other);
  kiln_value_destroy(x);
}

static void test_attributes(void **state) {
  kiln_value *v = NULL, *x = tensor_of(10, 20, 30), *result = NULL;
  char *text = NULL;
  (void)state;
  assert_error(kiln_instance_get(instance, "nothing", &v), KILN_NOT_FOUND, "nothing");
  assert_error(kiln_instance_get(instance, "count.x", &v), KILN_NOT_FOUND, "count");
  assert_error(kiln_instance_get(instance, "part.nothing", &v), KILN_NOT_FOUND, "nothing");
  assert_error(kiln_instance_set(instance, "count", x), KILN_INVALID_ARGUMENT, "count");
  assert_ok(kiln_instance_set(instance, "part.total", x));
  v = int_of(41);
  assert_ok(kiln_instance_set(instance, "count", v));
  kiln_value_destroy(v);
  kiln_value *zero = tensor_of(0, 0, 0);
  assert_error(kiln_instance_call(instance, "forward", NULL, 1, NULL, &result),
               KILN_INVALID_ARGUMENT, "forward(): the array of the 1 argument is NULL");
  assert_ok(kiln_instance_call(instance, "forward", &zero, 1, NULL, &result));
  assert_ok(kiln_value_print(result, 10, &text));
  assert_string_equal(text, "(tensor([20., 40., 60.], dtype=float32), 42)");
  kiln_text_free(text);
  kiln_value_destroy(result);
  kiln_value_destroy(zero);
  kiln_value_destroy(x);
}

static void test_gradients_are_refused(void **state) {
  (void)state;
  const kiln_call_options options = {.grad = 1};
  kiln_value *result = NULL;
  assert_error(
      kiln_instance_call(instance, kiln_model_method_name(model, 0), NULL, 0, &options, &result),
      KILN_UNSUPPORTED, "gradients");
  assert_null(result);
}

static void test_limits(void **state) {
  const kiln_call_options few = {.limits = {.operations = 1000}},
                          quick = {.limits = {.time_ms = 20}};
  kiln_value *one = int_of(1), *result = NULL;
  (void)state;
  assert_error(kiln_instance_call(instance, "forever", &one, 1, &few, &result), KILN_LIMIT, "1000");
  assert_error(kiln_instance_call(instance, "forever", &one, 1, &quick, &result), KILN_LIMIT, "20");
  kiln_value_destroy(one);
  assert_call("number", float_of(1), NULL, "2.0"); /* the instance is usable */
}

static void test_errors(void **state) {
  kiln_value *result = NULL, *null[1] = {NULL}, *x = NULL;
  const int64_t sizes[1] = {4};
  (void)state;
  assert_error(kiln_instance_call(instance, "nothing", NULL, 0, NULL, &result), KILN_NOT_FOUND,
               "no method 'nothing'");
  assert_error(kiln_instance_call(instance, NULL, NULL, 0, NULL, &result), KILN_NOT_FOUND, NULL);
  assert_error(kiln_instance_call(instance, "number", null, 1, NULL, &result),
               KILN_INVALID_ARGUMENT, "NULL");
  assert_error(kiln_instance_call(instance, "number", NULL, 1, NULL, &result),
               KILN_INVALID_ARGUMENT, NULL);
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 1, sizes, NULL, &x));
  kiln_status *status = kiln_instance_call(instance, "forward", &x, 1, NULL, &result);
  assert_int_equal(kiln_status_code(status), KILN_OP_ERROR);
  assert_non_null(strstr(kiln_status_message(status), "size of tensor a (3)"));
  assert_non_null(strstr(kiln_status_report(status), "forward")); /* the model's traceback */
  kiln_status_destroy(status);
  kiln_value_destroy(x);
}

static void test_memory_model(void **state) {
  static char bytes[1 << 16];
  kiln_model *small = NULL;
  kiln_instance *one = NULL;
  kiln_value *x = NULL, *y = NULL;
  const int64_t sizes[2] = {2, 3};
  (void)state;
  const size_t size = read_file(TEST_DATA "/bad/good/model.pt", bytes, sizeof bytes);
  assert_ok(kiln_model_load_memory(context, bytes, size, NULL, &small));
  assert_ok(kiln_instance_create(small, &one));
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, NULL, &x));
  assert_ok(kiln_instance_call(one, "forward", &x, 1, NULL, &y));
  kiln_instance_release(one);
  kiln_model_release(small); /* the result keeps what it needs */
  const float want[6] = {1, 2, 3, 4, 5, 6};
  assert_memory_equal(kiln_value_data(y), want, sizeof want);
  kiln_value_destroy(x);
  kiln_value_destroy(y);
}

static void collect(void *user, const char *text, size_t size) { strncat(user, text, size); }

static void test_counters_and_callbacks(void **state) {
  char printed[64] = "";
  kiln_counters before, after;
  kiln_group_counters group;
  (void)state;
  kiln_context_set_print(context, collect, printed);
  kiln_model_counters(model, &before);
  assert_call("number", float_of(1), NULL, "2.0");
  kiln_model_counters(model, &after);
  assert_int_equal(after.calls, before.calls + 1);
  assert_error(kiln_model_group(model, 1 << 20, &group), KILN_NOT_FOUND, NULL);
  assert_string_equal(printed, "");
  kiln_context_set_print(context, NULL, NULL);
}

/* A nested tensor does not leave its model, not by a list of the host's either. */
static void test_nested_tensors_stay(void **state) {
  (void)state;
  static const int64_t sizes[] = {2, 2, 1};
  static const float x[4] = {1, 2, 3, 4};
  static const bool mask[4] = {true, false, true, true};
  kiln_model *nested = NULL;
  kiln_instance *maker = NULL;
  kiln_value *args[3] = {NULL}, *out = NULL, *item = NULL;
  assert_ok(kiln_model_load(context, TEST_DATA "/language/layouts_215/model.pt", NULL, &nested));
  assert_ok(kiln_instance_create(nested, &maker));
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 3, sizes, x, &args[0]));
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_BOOL, 2, sizes, mask, &args[1]));
  assert_ok(kiln_value_list(context, args, 1, &args[2]));
  assert_ok(kiln_instance_call(maker, "t_through_lists", args, 3, NULL, &out));
  assert_int_equal(kiln_value_count(args[2]), 2);
  kiln_status *status = kiln_value_item(args[2], 1, &item);
  assert_int_equal(kiln_status_code(status), KILN_UNSUPPORTED);
  assert_null(item);
  kiln_status_destroy(status);
  kiln_value_destroy(out);
  for (int i = 0; i < 3; i++) kiln_value_destroy(args[i]);
  kiln_instance_release(maker);
  kiln_model_release(nested);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_methods),
                                     cmocka_unit_test(test_numbers),
                                     cmocka_unit_test(test_null_is_left_out),
                                     cmocka_unit_test(test_lists),
                                     cmocka_unit_test(test_containers),
                                     cmocka_unit_test(test_instances_are_apart),
                                     cmocka_unit_test(test_attributes),
                                     cmocka_unit_test(test_limits),
                                     cmocka_unit_test(test_gradients_are_refused),
                                     cmocka_unit_test(test_errors),
                                     cmocka_unit_test(test_nested_tensors_stay),
                                     cmocka_unit_test(test_memory_model),
                                     cmocka_unit_test(test_counters_and_callbacks)};
  return cmocka_run_group_tests(tests, open_model, close_model);
}
