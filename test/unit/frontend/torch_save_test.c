/* torch_save_test.c: values written and read back, and files that torch wrote. */
#include <stdlib.h>
#include <unistd.h>

#include "frontend/torch_save.h"
#include "test/unit/unit.h"

typedef struct fixture {
  kiln_env *env;
  kiln_type_table *types;
  char path[64];
} fixture;

static int set_up(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_ok(kiln_env_create(NULL, &f->env));
  assert_ok(kiln_type_table_create(f->env->mem, NULL, &f->types));
  strcpy(f->path, "torch_save_test.XXXXXX");
  int fd = mkstemp(f->path);
  assert_true(fd >= 0);
  close(fd);
  *state = f;
  return 0;
}

static int tear_down(void **state) {
  fixture *f = *state;
  unlink(f->path);
  kiln_type_table_destroy(f->types);
  kiln_env_destroy(f->env);
  free(f);
  return 0;
}

static kiln_ivalue string(fixture *f, const char *text) {
  kiln_string *out = NULL;
  assert_ok(kiln_string_create(f->env->mem, kiln_str_from(text), &out));
  return kiln_of_box(out);
}

static kiln_tensor *iota(fixture *f, kiln_dtype dtype) {
  kiln_tensor *t = NULL;
  void *data = NULL;
  assert_ok(kiln_tensor_create(f->env->mem, NULL, dtype, 2, (int64_t[]){2, 3}, &t));
  assert_ok(kiln_tensor_writable_data(t, &data));
  for (size_t i = 0; i < 6 * kiln_dtype_size(dtype); i++) ((char *)data)[i] = (char)(i % 2);
  return t;
}

/* Every kind of value, in a tuple; two tensors on one storage, one list twice. */
static kiln_status *read_file(const fixture *f, const char *path, kiln_ivalue *out_value) {
  kiln_mapping *mapping = NULL;
  KILN_TRY(kiln_mapping_open(f->env->mem, path, NULL, &mapping));
  kiln_status *status = kiln_torch_save_read(f->env, f->types, mapping, NULL, out_value);
  kiln_owner_release(&mapping->owner);
  return status;
}

static void round_trip(void **state) {
  fixture *f = *state;
  kiln_mem *mem = f->env->mem;
  kiln_tuple *all = NULL;
  kiln_list *list = NULL;
  kiln_dict *dict = NULL;
  kiln_complex *complex = NULL;
  kiln_tensor *base = iota(f, KILN_DTYPE_F32), *view = NULL;
  assert_ok(kiln_tensor_view(NULL, base, 1, (int64_t[]){2}, (int64_t[]){3}, 1, &view));
  view->key.f.requires_grad = 1;
  assert_ok(kiln_tuple_create(mem, NULL, 13, &all));
  assert_ok(kiln_list_create(mem, kiln_type_basic(KILN_TYPE_INT), 2, &list));
  assert_ok(kiln_list_push(list, kiln_int(1)));
  assert_ok(kiln_list_push(list, kiln_int(INT64_MIN)));
  assert_ok(kiln_dict_create(mem, NULL, NULL, &dict));
  assert_ok(kiln_dict_set(dict, string(f, "b"), kiln_int(1)));
  assert_ok(kiln_dict_set(dict, string(f, "a"), kiln_int(2)));
  assert_ok(kiln_complex_create(mem, 1.5, -2, &complex));
  kiln_ivalue items[] = {kiln_none(),
                         kiln_int(-3),
                         kiln_int((int64_t)1 << 40),
                         kiln_float(-0.1),
                         kiln_bool(true),
                         string(f, "h\xc3\xa9llo"),
                         kiln_of_box(complex),
                         kiln_of_box(list),
                         kiln_ivalue_retain(kiln_of_box(list)),
                         kiln_of_box(dict),
                         kiln_of_tensor(base),
                         kiln_of_tensor(view),
                         kiln_device_value(KILN_CPU)};
  memcpy(all->items, items, sizeof items);
  assert_ok(kiln_torch_save_write(f->env, kiln_of_box(all), f->path));
  kiln_ivalue back = kiln_none();
  assert_ok(read_file(f, f->path, &back));
  assert_int_equal(back.tag, KILN_TAG_TUPLE);
  kiln_ivalue *got = back.u.tuple->items;
  for (int i = 0; i < 10; i++) assert_true(kiln_ivalue_equal(got[i], all->items[i]));
  assert_ptr_equal(got[7].u.list, got[8].u.list);
  assert_ptr_equal(got[7].u.list->elem_type, kiln_type_basic(KILN_TYPE_INT));
  int64_t index = 0;
  kiln_ivalue *key, *value;
  assert_true(kiln_dict_next(got[9].u.dict, &index, &key, &value));
  assert_string_equal(key->u.string->data, "b");
  kiln_tensor *a = got[10].u.tensor, *b = got[11].u.tensor;
  assert_ptr_equal(a->storage, b->storage);
  assert_int_equal(b->offset, 1);
  assert_int_equal(kiln_tensor_strides(b)[0], 3);
  assert_int_equal(b->key.f.requires_grad, 1);
  assert_int_equal(a->key.f.requires_grad, 0);
  assert_memory_equal(kiln_tensor_data(a), kiln_tensor_data(base), 24);
  assert_int_equal((uintptr_t)kiln_tensor_data(a) % 64, 0);
  assert_int_equal(got[12].tag, KILN_TAG_DEVICE);
  kiln_ivalue_release(back);
  kiln_ivalue_release(kiln_of_box(all));
}

static void every_dtype(void **state) {
  fixture *f = *state;
  static const kiln_dtype dtypes[] = {
      KILN_DTYPE_U8,   KILN_DTYPE_I8,   KILN_DTYPE_I16,    KILN_DTYPE_I32,    KILN_DTYPE_I64,
      KILN_DTYPE_F16,  KILN_DTYPE_F32,  KILN_DTYPE_F64,    KILN_DTYPE_C64,    KILN_DTYPE_C128,
      KILN_DTYPE_BOOL, KILN_DTYPE_BF16, KILN_DTYPE_F8E5M2, KILN_DTYPE_F8E4M3, KILN_DTYPE_U16,
      KILN_DTYPE_U32,  KILN_DTYPE_U64};
  for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
    kiln_tensor *t = iota(f, dtypes[i]);
    assert_ok(kiln_torch_save_write(f->env, kiln_of_tensor(t), f->path));
    kiln_ivalue back = kiln_none();
    assert_ok(read_file(f, f->path, &back));
    assert_int_equal(back.tag, KILN_TAG_TENSOR);
    assert_int_equal(kiln_tensor_dtype(back.u.tensor), dtypes[i]);
    assert_memory_equal(kiln_tensor_data(back.u.tensor), kiln_tensor_data(t),
                        6 * kiln_dtype_size(dtypes[i]));
    kiln_ivalue_release(back);
    kiln_tensor_release(t);
  }
}

/* inputs_0.pt of lstm_cell_loop: a tuple of a tensor and a tuple of two. */
static void reads_torch(void **state) {
  fixture *f = *state;
  kiln_ivalue v = kiln_none();
  assert_ok(read_file(f, KILN_TEST_DATA "/rnn/lstm_cell_loop/inputs_0.pt", &v));
  assert_int_equal(v.tag, KILN_TAG_TUPLE);
  assert_int_equal(v.u.tuple->count, 2);
  assert_int_equal(v.u.tuple->items[0].tag, KILN_TAG_TENSOR);
  assert_int_equal(kiln_tensor_rank(v.u.tuple->items[0].u.tensor), 3);
  assert_int_equal(v.u.tuple->items[1].tag, KILN_TAG_TUPLE);
  assert_int_equal(v.u.tuple->items[1].u.tuple->count, 2);
  kiln_ivalue_release(v);
}

static void refuses(void **state) {
  fixture *f = *state;
  kiln_ivalue v = kiln_none();
  kiln_list *list = NULL;
  assert_error(kiln_torch_save_write(f->env, kiln_none(), "/nonexistent/x.pt"), KILN_INVALID_FILE,
               "cannot write");
  assert_error(read_file(f, f->path, &v), KILN_INVALID_FILE, "an empty file");
  /* A nest that is too deep. */
  assert_ok(kiln_list_create(f->env->mem, NULL, 0, &list));
  for (int i = 0; i < 600; i++) {
    kiln_list *outer = NULL;
    assert_ok(kiln_list_create(f->env->mem, NULL, 1, &outer));
    assert_ok(kiln_list_push(outer, kiln_of_box(list)));
    list = outer;
  }
  assert_error(kiln_torch_save_write(f->env, kiln_of_box(list), f->path), KILN_INVALID_ARGUMENT,
               "deeper");
  kiln_ivalue_release(kiln_of_box(list));
}

int main(void) {
  const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
      TEST(round_trip), TEST(every_dtype), TEST(reads_torch), TEST(refuses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
