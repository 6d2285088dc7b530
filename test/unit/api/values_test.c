/* values_test.c: makers and readers of values, containers, copies, files. */
#include <math.h>

#include "test/unit/api/built.h"
#include "test/unit/api/values.h"

static void test_plain(void **state) {
  kiln_value *v = NULL;
  double re, im;
  size_t size;
  (void)state;
  assert_ok(kiln_value_none(context, &v));
  assert_int_equal(kiln_value_kind(v), KILN_KIND_NONE);
  assert_string_equal(kiln_value_type(v), "NoneType");
  kiln_value_destroy(v);
  v = int_of(INT64_MIN);
  assert_int_equal(kiln_value_kind(v), KILN_KIND_INT);
  assert_true(kiln_value_as_int(v) == INT64_MIN);
  assert_true(kiln_value_as_float(v) == 0); /* the wrong reader */
  assert_null(kiln_value_as_string(v, NULL));
  assert_prints(v, "-9223372036854775808");
  kiln_value_destroy(v);
  assert_ok(kiln_value_float(context, 0.1, &v));
  assert_true(kiln_value_as_float(v) == 0.1);
  assert_prints(v, "0.1");
  kiln_value_destroy(v);
  assert_ok(kiln_value_bool(context, 7, &v));
  assert_int_equal(kiln_value_as_bool(v), 1);
  assert_prints(v, "True");
  kiln_value_destroy(v);
  assert_ok(kiln_value_complex(context, 1.5, -2, &v));
  kiln_value_as_complex(v, &re, &im);
  assert_true(re == 1.5 && im == -2);
  kiln_value_destroy(v);
  assert_ok(kiln_value_string(context, "a\0b", 3, &v));
  assert_memory_equal(kiln_value_as_string(v, &size), "a\0b", 4);
  assert_int_equal(size, 3);
  kiln_value_destroy(v);
  assert_int_equal(kiln_value_kind(NULL), KILN_KIND_NONE);
  kiln_value_destroy(NULL);
}

static void test_tensor(void **state) {
  const float data[6] = {1, 2, 3, 4, 5.5f, -INFINITY};
  const int64_t sizes[2] = {2, 3}, negative[1] = {-1}, huge[2] = {INT64_MAX, 4};
  float copy[6];
  kiln_value *v = NULL;
  (void)state;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, data, &v));
  assert_int_equal(kiln_value_kind(v), KILN_KIND_TENSOR);
  assert_int_equal(kiln_value_dtype(v), KILN_DTYPE_F32);
  assert_int_equal(kiln_value_rank(v), 2);
  assert_int_equal(kiln_value_sizes(v)[1], 3);
  assert_int_equal(kiln_value_strides(v)[0], 3);
  assert_int_equal((uintptr_t)kiln_value_data(v) % 64, 0);
  assert_int_equal(kiln_value_requires_grad(v), 0);
  assert_ok(kiln_value_copy_data(v, copy, sizeof copy));
  assert_memory_equal(copy, data, sizeof data);
  assert_error(kiln_value_copy_data(v, copy, 5), KILN_INVALID_ARGUMENT, "24 bytes, not 5");
  assert_string_equal(kiln_value_type(v), "Tensor");
  assert_string_equal(kiln_value_type(v), "Tensor"); /* the kept text */
  assert_prints(v, "tensor([[1., 2., 3.],\n        [4., 5.5, -inf]], dtype=float32)");
  kiln_value_destroy(v);
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_I64, 0, NULL, NULL, &v));
  assert_prints(v, "tensor(0, dtype=int64)");
  kiln_value_destroy(v);
  v = (kiln_value *)1;
  assert_error(kiln_value_tensor(context, KILN_DTYPE_F32, 1, negative, NULL, &v),
               KILN_INVALID_ARGUMENT, "negative size -1");
  assert_null(v);
  assert_error(kiln_value_tensor(context, KILN_DTYPE_F32, 2, huge, NULL, &v), KILN_INVALID_ARGUMENT,
               "too large");
  assert_error(kiln_value_tensor(context, KILN_DTYPE_F32, 2, NULL, NULL, &v), KILN_INVALID_ARGUMENT,
               "the sizes of a tensor of 2 dimensions are NULL");
  assert_error(kiln_value_tensor(context, KILN_DTYPE_F32, 65, sizes, NULL, &v),
               KILN_INVALID_ARGUMENT, "65");
  assert_error(kiln_value_tensor(context, (kiln_dtype)99, 2, sizes, NULL, &v),
               KILN_INVALID_ARGUMENT, "99 is no dtype");
}

static void test_empty_tensor(void **state) {
  const int64_t sizes[3] = {2, 0, 3};
  kiln_value *v = NULL;
  (void)state;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F64, 3, sizes, NULL, &v));
  assert_null(kiln_value_data(v));
  assert_ok(kiln_value_copy_data(v, NULL, 0));
  assert_prints(v, "tensor([], size=(2, 0, 3), dtype=float64)");
  kiln_value_destroy(v);
}

static void count_release(void *user) { ++*(int *)user; }

static void test_tensor_over(void **state) {
  float data[8] = {0, 1, 2, 3, 4, 5, 6, 7}, copy[6];
  const int64_t sizes[2] = {3, 2}, columns[2] = {1, 4}, far[2] = {1, 6}, back[2] = {-2, 1};
  kiln_value *v = NULL, *other = NULL;
  int released = 0;
  (void)state;
  assert_ok(kiln_value_tensor_over(context, KILN_DTYPE_F32, 2, sizes, columns, data, sizeof data,
                                   count_release, &released, &v));
  assert_ptr_equal(kiln_value_data(v), data);
  assert_ok(kiln_value_copy_data(v, copy, sizeof copy));
  const float want[6] = {0, 4, 1, 5, 2, 6};
  assert_memory_equal(copy, want, sizeof want);
  assert_ok(kiln_value_share(v, &other));
  kiln_value_destroy(v);
  assert_int_equal(released, 0);
  kiln_value_destroy(other);
  assert_int_equal(released, 1);
  assert_error(kiln_value_tensor_over(context, KILN_DTYPE_F32, 2, sizes, back, data, sizeof data,
                                      count_release, &released, &v),
               KILN_INVALID_ARGUMENT, "dimension 0 has the negative stride -2");
  /* Beyond the memory: refused, and the memory stays the caller's. */
  assert_error(kiln_value_tensor_over(context, KILN_DTYPE_F32, 2, sizes, far, data, sizeof data,
                                      count_release, &released, &v),
               KILN_OP_ERROR, NULL);
  assert_error(kiln_value_tensor_over(context, KILN_DTYPE_F32, 2, sizes, columns, (char *)data + 1,
                                      sizeof data - 1, count_release, &released, &v),
               KILN_INVALID_ARGUMENT, "aligned");
  assert_int_equal(released, 1);
}

static void test_containers(void **state) {
  kiln_value *items[2] = {int_of(3), int_of(4)}, *list = NULL, *tuple = NULL, *item = NULL;
  (void)state;
  assert_ok(kiln_value_list(context, items, 2, &list));
  assert_string_equal(kiln_value_type(list), "int[]");
  assert_int_equal(kiln_value_count(list), 2);
  assert_ok(kiln_value_item(list, 1, &item));
  assert_int_equal(kiln_value_as_int(item), 4);
  kiln_value_destroy(item);
  assert_error(kiln_value_item(list, 2, &item), KILN_INVALID_ARGUMENT, "no element 2");
  assert_error(kiln_value_item(list, -1, &item), KILN_INVALID_ARGUMENT, NULL);
  assert_error(kiln_value_item(items[0], 0, &item), KILN_INVALID_ARGUMENT, NULL);
  assert_error(kiln_value_key(list, 0, &item), KILN_INVALID_ARGUMENT, "int[] has no keys");
  kiln_value *mixed[2] = {list, items[0]};
  assert_ok(kiln_value_tuple(context, mixed, 2, &tuple));
  assert_string_equal(kiln_value_type(tuple), "(int[], int)");
  assert_prints(tuple, "([3, 4], 3)");
  kiln_value_destroy(tuple);
  assert_ok(kiln_value_tuple(context, items, 1, &tuple));
  assert_prints(tuple, "(3,)");
  kiln_value_destroy(tuple);
  kiln_value_destroy(list);
  assert_ok(kiln_value_list(context, NULL, 0, &list));
  assert_prints(list, "[]");
  kiln_value_destroy(list);
  assert_error(kiln_value_list(context, NULL, 2, &list), KILN_INVALID_ARGUMENT, NULL);
  for (int i = 0; i < 2; i++) kiln_value_destroy(items[i]);
}

/* The fields of a NamedTuple have names; those of a plain tuple have none. */
static void test_names_of_fields(void **state) {
  static const char text[] =
      "graph(%x : Tensor):\n"
      "  %y : NamedTuple(a : Tensor, b : Tensor) = prim::TupleConstruct(%x, %x)\n"
      "  return (%y)\n";
  kiln_model *model = parse_model(context, text, sizeof text - 1);
  kiln_instance *instance = instance_of(model);
  kiln_value *x = vector_of(2, (const float[]){1, 2}), *y = NULL, *name = NULL, *pair = NULL;
  (void)state;
  assert_ok(kiln_instance_call(instance, "forward", &x, 1, NULL, &y));
  assert_ok(kiln_value_key(y, 1, &name));
  assert_string_equal(kiln_value_as_string(name, NULL), "b");
  kiln_value_destroy(name);
  assert_error(kiln_value_key(y, 2, &name), KILN_INVALID_ARGUMENT, "no key 2: it holds 2");
  assert_ok(kiln_value_tuple(context, &x, 1, &pair));
  assert_error(kiln_value_key(pair, 0, &name), KILN_INVALID_ARGUMENT, "(Tensor) has no keys");
  kiln_value_destroy(pair);
  kiln_value_destroy(y);
  kiln_value_destroy(x);
  kiln_instance_release(instance);
  kiln_model_release(model);
}

static void test_dict(void **state) {
  kiln_value *keys[3] = {string_of("b"), string_of("a"), string_of("b")};
  kiln_value *values[3] = {int_of(1), int_of(2), int_of(3)}, *dict = NULL, *part = NULL;
  (void)state;
  assert_ok(kiln_value_dict(context, keys, values, 3, &dict));
  assert_int_equal(kiln_value_count(dict), 2); /* the last of equal keys wins, in the first place */
  assert_prints(dict, "{'b': 3, 'a': 2}");
  assert_string_equal(kiln_value_type(dict), "Dict(str, int)");
  assert_ok(kiln_value_key(dict, 1, &part));
  assert_string_equal(kiln_value_as_string(part, NULL), "a");
  kiln_value_destroy(part);
  kiln_value_destroy(dict);
  kiln_value *none = NULL;
  assert_ok(kiln_value_none(context, &none));
  assert_error(kiln_value_dict(context, &none, values, 1, &dict), KILN_INVALID_ARGUMENT, "key 0");
  kiln_value_destroy(none);
  for (int i = 0; i < 3; i++) {
    kiln_value_destroy(keys[i]);
    kiln_value_destroy(values[i]);
  }
}

static void test_values_outlive_their_context(void **state) {
  kiln_context *other = NULL;
  kiln_value *v = NULL;
  (void)state;
  assert_ok(kiln_context_create(NULL, &other));
  assert_ok(kiln_value_string(other, "still here", 10, &v));
  kiln_context_release(other);
  assert_string_equal(kiln_value_as_string(v, NULL), "still here");
  kiln_value_destroy(v);
}

static void round_trip(const kiln_value *value, const char *ending, const char *want) {
  char path[64];
  kiln_value *back = NULL;
  temporary_file(path, sizeof path, ending);
  assert_ok(kiln_value_write(value, path));
  assert_ok(kiln_value_read(context, path, &back));
  assert_prints(back, want);
  kiln_value_destroy(back);
  unlink(path);
}

static void test_files(void **state) {
  const double data[3] = {1, NAN, -0.25};
  const int64_t sizes[1] = {3};
  kiln_value *items[4] = {NULL}, *tuple = NULL, *v = NULL;
  (void)state;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F64, 1, sizes, data, &items[0]));
  assert_ok(kiln_value_none(context, &items[1]));
  items[2] = string_of("\xc3\xa4\n");
  items[3] = int_of(-1);
  assert_ok(kiln_value_tuple(context, items, 4, &tuple));
  round_trip(tuple, ".pt", "(tensor([1., nan, -0.25], dtype=float64), None, '\xc3\xa4\\n', -1)");
  round_trip(items[0], ".npy", "tensor([1., nan, -0.25], dtype=float64)");
  assert_error(kiln_value_write(tuple, "/tmp/kiln_none.npy"), KILN_INVALID_ARGUMENT,
               "only a tensor");
  assert_error(kiln_value_write(tuple, "/nowhere/x.pt"), KILN_INVALID_FILE, "/nowhere/x.pt");
  assert_error(kiln_value_read(context, "/nowhere/x.pt", &v), KILN_INVALID_FILE, "/nowhere/x.pt");
  assert_error(kiln_value_read(context, "/nowhere/x.npy", &v), KILN_INVALID_FILE, "/nowhere/x.npy");
  kiln_value_destroy(tuple);
  for (int i = 0; i < 4; i++) kiln_value_destroy(items[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plain),        cmocka_unit_test(test_tensor),
      cmocka_unit_test(test_empty_tensor), cmocka_unit_test(test_tensor_over),
      cmocka_unit_test(test_containers),   cmocka_unit_test(test_names_of_fields),
      cmocka_unit_test(test_dict),         cmocka_unit_test(test_values_outlive_their_context),
      cmocka_unit_test(test_files)};
  return cmocka_run_group_tests(tests, open_context, close_context);
}
