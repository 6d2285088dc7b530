/* value_test.c: containers, equality, cloning, types of values, and that nothing leaks. */
#include <math.h>

#include "base/sanitize.h"
#include "runtime/value.h"
#include "test/unit/runtime/tables.h"
#include "test/unit/sweep.h"

static kiln_ivalue str_of(kiln_mem *mem, const char *text) {
  kiln_string *s;
  assert_ok(kiln_string_create(mem, kiln_str_from(text), &s));
  return kiln_of_box(s);
}
static kiln_ivalue complex_of(kiln_mem *mem, double re, double im) {
  kiln_complex *c;
  assert_ok(kiln_complex_create(mem, re, im, &c));
  return kiln_of_box(c);
}
static kiln_ivalue tuple_of(kiln_mem *mem, kiln_ivalue a, kiln_ivalue b) {
  kiln_tuple *t;
  assert_ok(kiln_tuple_create(mem, NULL, 2, &t));
  t->items[0] = a, t->items[1] = b;
  return kiln_of_box(t);
}

static void equality_is_pythons(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_ivalue one_c = complex_of(mem, 1, 0), i = complex_of(mem, 0, 1), s = str_of(mem, "a");
  kiln_ivalue s2 = str_of(mem, "a"), s3 = str_of(mem, "b");
  const struct {
    kiln_ivalue a, b;
    bool equal;
  } cases[] = {
      {kiln_int(1), kiln_float(1.0), true},
      {kiln_bool(true), kiln_int(1), true},
      {kiln_bool(true), one_c, true},
      {kiln_int(0), kiln_float(-0.0), true},
      {kiln_int(1), i, false},
      {kiln_float(NAN), kiln_float(NAN), false},
      {kiln_int((INT64_C(1) << 53) + 1), kiln_float(0x1p53), false}, /* no rounding */
      {kiln_int(INT64_MAX), kiln_float(0x1p63), false},
      {kiln_int(INT64_MIN), kiln_float(-0x1p63), true},
      {kiln_none(), kiln_none(), true},
      {kiln_none(), kiln_int(0), false},
      {s, s2, true},
      {s, s3, false},
      {s, kiln_int(1), false},
      {kiln_device_value(KILN_CPU), kiln_device_value((kiln_device_id){KILN_DEVICE_CPU, 0}), false},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    if (kiln_ivalue_equal(cases[k].a, cases[k].b) != cases[k].equal) {
      print_error("case %zu\n", k);
      fail();
    }
    assert_int_equal(kiln_ivalue_equal(cases[k].b, cases[k].a), cases[k].equal);
  }
  assert_true(kiln_ivalue_is(kiln_none(), kiln_none()));
  assert_false(kiln_ivalue_is(kiln_none(), kiln_int(0)));
  assert_false(kiln_ivalue_is(kiln_int(1), kiln_bool(true)));
  kiln_ivalue all[] = {one_c, i, s, s2, s3};
  for (int k = 0; k < 5; k++) kiln_ivalue_release(all[k]);
  kiln_mem_release(mem);
}

static void dict_keeps_order(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_dict *d;
  assert_ok(kiln_dict_create(mem, NULL, NULL, &d));
  for (int i = 0; i < 1000; i++) {
    char key[16];
    snprintf(key, sizeof key, "key%d", i);
    assert_ok(kiln_dict_set(d, str_of(mem, key), kiln_int(i)));
  }
  for (int i = 0; i < 1000; i++) {
    if (i % 3 == 0) continue;
    char key[16];
    snprintf(key, sizeof key, "key%d", i);
    kiln_ivalue k = str_of(mem, key);
    assert_true(kiln_dict_remove(d, k));
    assert_false(kiln_dict_remove(d, k));
    assert_null(kiln_dict_find(d, k));
    kiln_ivalue_release(k);
  }
  assert_int_equal(d->live, 334);
  /* A replaced value keeps its place, a removed and new key goes to the end. */
  assert_ok(kiln_dict_set(d, str_of(mem, "key3"), kiln_int(-3)));
  assert_ok(kiln_dict_set(d, str_of(mem, "key1"), kiln_int(-1)));
  int64_t at = 0, n = 0;
  kiln_ivalue *key, *value;
  while (kiln_dict_next(d, &at, &key, &value)) {
    int64_t want = n == 1 ? -3 : n == 334 ? -1 : 3 * n;
    assert_int_equal(value->u.i, want);
    n++;
  }
  assert_int_equal(n, 335);
  kiln_dict_clear(d);
  assert_int_equal(d->live, 0);
  assert_ok(kiln_dict_set(d, kiln_int(1), kiln_int(10)));
  kiln_ivalue_release(kiln_of_box(d));
  kiln_mem_release(mem);
}

static void dict_keys_are_equal_as_in_python(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_dict *d;
  assert_ok(kiln_dict_create(mem, NULL, NULL, &d));
  assert_ok(kiln_dict_set(d, kiln_int(1), kiln_int(10)));
  assert_ok(kiln_dict_set(d, kiln_float(1.0), kiln_int(20)));
  assert_ok(kiln_dict_set(d, kiln_bool(true), kiln_int(30)));
  assert_ok(kiln_dict_set(d, complex_of(mem, 1, 0), kiln_int(40)));
  assert_int_equal(d->live, 1);
  assert_int_equal(d->entries[0].key.tag, KILN_TAG_INT); /* the first key stays */
  assert_int_equal(kiln_dict_find(d, kiln_int(1))->u.i, 40);
  assert_ok(kiln_dict_set(d, kiln_float(0.5), kiln_int(1)));
  assert_non_null(kiln_dict_find(d, kiln_float(0.5)));
  assert_null(kiln_dict_find(d, kiln_int(0)));
  kiln_tensor *t, *u;
  assert_ok(kiln_tensor_scalar_i64(mem, KILN_DTYPE_I64, 1, &t));
  assert_ok(kiln_tensor_scalar_i64(mem, KILN_DTYPE_I64, 1, &u));
  assert_ok(kiln_dict_set(d, kiln_of_tensor(t), kiln_int(2)));
  assert_non_null(kiln_dict_find(d, kiln_of_tensor(t)));
  assert_null(kiln_dict_find(d, kiln_of_tensor(u)));
  kiln_tensor_release(u);
  assert_error(kiln_dict_set(d, tuple_of(mem, kiln_int(1), kiln_int(2)), kiln_none()),
               KILN_INVALID_ARGUMENT, "dict key");
  kiln_ivalue_release(kiln_of_box(d));
  kiln_mem_release(mem);
}

/* Two million tuples, one in the other: released in a loop. */
static void deep_values_are_released(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_ivalue v = kiln_none();
  for (int i = 0; i < 2000000; i++) v = tuple_of(mem, v, kiln_int(i));
  kiln_ivalue w, shallow = tuple_of(mem, kiln_none(), kiln_int(1));
  assert_false(kiln_ivalue_equal(v, shallow));
  assert_error(kiln_ivalue_clone(mem, v, &w), KILN_INVALID_ARGUMENT, "levels deep");
  kiln_ivalue_release(shallow);
  kiln_ivalue_release(v);
  assert_int_equal(kiln_mem_bytes(mem), 0);
  kiln_mem_release(mem);
}

static void clone_keeps_aliasing(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  int64_t n = 3000, half = 1500, one = 1;
  kiln_tensor *t, *v;
  kiln_list *inner, *outer;
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, 1, &n, &t));
  memset(t->storage->data, 0, t->storage->bytes);
  t->key.f.requires_grad = 1;
  assert_ok(kiln_tensor_view(NULL, t, 1, &half, &one, 1500, &v));
  assert_ok(kiln_list_create(mem, NULL, 0, &inner));
  assert_ok(kiln_list_push(inner, kiln_of_tensor(t)));
  assert_ok(kiln_list_push(inner, kiln_of_tensor(v)));
  assert_ok(kiln_list_create(mem, NULL, 0, &outer));
  assert_ok(kiln_list_push(outer, kiln_of_box(inner)));
  assert_ok(kiln_list_push(outer, kiln_ivalue_retain(kiln_of_box(inner))));
  assert_ok(kiln_list_push(outer, str_of(mem, "text")));
  kiln_ivalue copy;
  assert_ok(kiln_ivalue_clone(mem, kiln_of_box(outer), &copy));
  kiln_list *c = copy.u.list, *ci = c->items[0].u.list;
  assert_ptr_not_equal(c, outer);
  assert_ptr_not_equal(ci, inner);
  assert_ptr_equal(ci, c->items[1].u.list);
  assert_ptr_equal(c->items[2].u.string, outer->items[2].u.string);
  kiln_tensor *ct = ci->items[0].u.tensor, *cv = ci->items[1].u.tensor;
  assert_ptr_equal(ct->storage, cv->storage);
  assert_ptr_not_equal(ct->storage, t->storage);
  assert_int_equal(ct->key.f.requires_grad, 1);
  assert_ptr_equal(kiln_tensor_data(ct), kiln_tensor_data(t)); /* memory is shared until ... */
  void *data;
  assert_ok(kiln_tensor_writable_data(ct, &data));
  ((float *)data)[1500] = 5; /* ... a write, which the copy's view sees and the source does not */
  assert_true(*(const float *)kiln_tensor_data(cv) == 5);
  assert_true(*(const float *)kiln_tensor_data(v) == 0);
  kiln_ivalue_release(copy);
  kiln_ivalue_release(kiln_of_box(outer));
  assert_int_equal(kiln_mem_bytes(mem), 0);
  kiln_mem_release(mem);
}

static kiln_status *type_of_values(void *arg) {
  kiln_type_table *table = arg;
  kiln_mem *mem = test_mem();
  kiln_list *ints, *empty, *mixed;
  kiln_tensor *t;
  int64_t sizes[2] = {2, 3};
  const kiln_type *int_type = kiln_type_basic(KILN_TYPE_INT);
  assert_ok(kiln_list_create(mem, int_type, 0, &ints));
  assert_ok(kiln_list_create(mem, NULL, 0, &empty));
  assert_ok(kiln_list_create(mem, NULL, 0, &mixed));
  assert_ok(kiln_list_push(mixed, kiln_int(1)));
  assert_ok(kiln_list_push(mixed, kiln_none()));
  assert_ok(kiln_tensor_create(mem, NULL, KILN_DTYPE_F32, 2, sizes, &t));
  kiln_ivalue pair = tuple_of(mem, kiln_of_tensor(t), kiln_bool(true));
  static const struct {
    const char *type;
    unsigned fits; /* bit per value: ints, empty, mixed, pair, int, float, None, bool, str */
  } cases[] = {
      {"int[]", 1 | 2},
      {"int?[]", 2 | 4},
      {"Any[]", 2 | 4},
      {"float[]", 2},
      {"list", 1 | 2 | 4},
      {"(Tensor, bool)", 8},
      {"(Tensor, int)", 0},
      {"(Tensor, bool, int)", 0},
      {"(Any, Union(int, bool))", 8},
      {"tuple", 8},
      {"Scalar", 16 | 32},
      {"int?", 16 | 64},
      {"float?", 32 | 64},
      {"bool", 128},
      {"Union(int[], str)", 1 | 2 | 256},
      {"Any", 511},
      {"Dict(str, int)", 0},
  };
  kiln_ivalue text = str_of(mem, "x");
  kiln_ivalue values[] = {
      kiln_of_box(ints), kiln_of_box(empty), kiln_of_box(mixed), pair, kiln_int(1),
      kiln_float(1),     kiln_none(),        kiln_bool(false),   text};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *at = cases[i].type;
    const kiln_type *type;
    assert_ok(kiln_type_parse(table, &at, at + strlen(at), false, &type));
    empty->elem_type = mixed->elem_type = NULL;
    for (unsigned k = 0; k < 9; k++) {
      if (kiln_ivalue_matches(values[k], type) != (cases[i].fits >> k & 1)) {
        print_error("%s and value %u\n", cases[i].type, k);
        fail();
      }
    }
  }
  /* The first question decides what an empty list is. */
  empty->elem_type = NULL;
  assert_true(kiln_ivalue_matches(values[1], kiln_type_list(table, int_type)));
  assert_false(
      kiln_ivalue_matches(values[1], kiln_type_list(table, kiln_type_basic(KILN_TYPE_STR))));
  assert_true(kiln_ivalue_matches(values[1], kiln_type_list(table, int_type)));
  empty->elem_type = mixed->elem_type = NULL;
  static const char *const names[] = {
      "int[]",    "Tensor[]",
      "int?[]",   "(Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu), bool)",
      "int",      "float",
      "NoneType", "bool",
      "str"};
  static const char *const short_names[] = {
      "List[int]", "List[]", "List[int]", "Tuple[Tensor, bool]", "int", "float",
      "None",      "bool",   "str"};
  for (int k = 0; k < 9; k++) {
    kiln_text out = kiln_text_in(kiln_type_table_arena(table));
    kiln_type_print(&out, kiln_ivalue_type(table, values[k]), 3);
    assert_string_equal(out.data, names[k]);
    out = kiln_text_in(kiln_type_table_arena(table));
    kiln_ivalue_type_name(&out, values[k]);
    assert_string_equal(out.data, short_names[k]);
  }
  for (int k = 0; k < 9; k++) kiln_ivalue_release(values[k]);
  kiln_mem_release(mem);
  return NULL;
}

static void types(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_type_table *table;
  assert_ok(kiln_type_table_create(mem, NULL, &table));
  assert_ok(type_of_values(table));
  kiln_type_table_destroy(table);
  kiln_mem_release(mem);
}

/* A dict of a list of strings, tensors and a future, and its clone. */
static kiln_status *build(kiln_mem *mem, kiln_dict *d) {
  for (int i = 0; i < 12; i++) {
    kiln_list *list;
    kiln_string *s;
    kiln_tensor *t;
    kiln_future *f;
    KILN_TRY(kiln_list_create(mem, NULL, i % 3, &list));
    kiln_ivalue owned = kiln_of_box(list);
    kiln_status *status = kiln_string_create(mem, KILN_STR("abc"), &s);
    if (!status) status = kiln_list_push(list, kiln_of_box(s));
    if (!status) status = kiln_tensor_scalar_f64(mem, KILN_DTYPE_F32, i, &t);
    if (!status) status = kiln_list_push(list, kiln_of_tensor(t));
    if (!status) status = kiln_future_create(mem, NULL, kiln_int(i), NULL, &f);
    if (!status) status = kiln_list_push(list, kiln_of_box(f));
    if (status) {
      kiln_ivalue_release(owned);
      return status;
    }
    KILN_TRY(kiln_dict_set(d, kiln_int(i), owned));
  }
  return NULL;
}

static kiln_status *life(kiln_mem *mem, void *arg) {
  (void)arg;
  kiln_dict *d;
  KILN_TRY(kiln_dict_create(mem, NULL, NULL, &d));
  kiln_status *status = build(mem, d);
  kiln_ivalue copy = kiln_none();
  if (!status) status = kiln_ivalue_clone(mem, kiln_of_box(d), &copy);
  kiln_ivalue_release(copy);
  kiln_ivalue_release(kiln_of_box(d));
  return status;
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  sweep(life, NULL);
}

/* A cache that took back what it does not give out would only grow. */
static void boxes_go_back_to_the_mem(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_cache cache;
  kiln_cache_init(&cache, mem, 1 << 20);
  kiln_dict *d;
  assert_ok(kiln_dict_create(mem, NULL, NULL, &d));
  assert_ok(kiln_dict_set(d, str_of(mem, "key"), complex_of(mem, 1, 2)));
  kiln_ivalue_release_to(&cache, kiln_of_box(d));
  assert_int_equal(cache.bytes, 0);
  kiln_cache_deinit(&cache);
  assert_int_equal(kiln_mem_bytes(mem), 0);
  kiln_mem_release(mem);
}

/* Lists and tuples of a call come out of its cache the second time; in whichever way they came,
 * they can go back in any. */
static void lists_come_from_the_cache(void **state) {
  (void)state;
  enum { WAYS = 2 };
  kiln_mem *mem = test_mem();
  kiln_cache cache;
  kiln_cache_init(&cache, mem, 1 << 20);
  for (int from = 0; from < WAYS; from++) {
    for (int to = 0; to < WAYS; to++) {
      for (int turn = 0; turn < 2; turn++) {
        kiln_list *list;
        kiln_tuple *tuple;
        kiln_cache *made_in = from ? &cache : NULL, *dropped_in = to ? &cache : NULL;
        const size_t before = kiln_mem_bytes(mem);
        assert_ok(kiln_list_create_in(mem, made_in, NULL, 3, &list));
        for (int i = 0; i < 100; i++) assert_ok(kiln_list_push_in(list, made_in, kiln_int(i)));
        assert_ok(kiln_tuple_create_in(mem, made_in, NULL, 3, &tuple));
        if (from && to && turn && !KILN_SANITIZED) assert_int_equal(kiln_mem_bytes(mem), before);
        kiln_ivalue_release_to(dropped_in, kiln_of_box(list));
        kiln_ivalue_release_to(dropped_in, kiln_of_box(tuple));
      }
    }
  }
  kiln_cache_deinit(&cache);
  assert_int_equal(kiln_mem_bytes(mem), 0);
  kiln_mem_release(mem);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equality_is_pythons),
      cmocka_unit_test(dict_keeps_order),
      cmocka_unit_test(dict_keys_are_equal_as_in_python),
      cmocka_unit_test(deep_values_are_released),
      cmocka_unit_test(clone_keeps_aliasing),
      cmocka_unit_test(types),
      cmocka_unit_test(survives_lack_of_memory),
      cmocka_unit_test(boxes_go_back_to_the_mem),
      cmocka_unit_test(lists_come_from_the_cache),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
