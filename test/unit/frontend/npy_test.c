/* npy_test.c: .npy files as numpy writes them, read; and written as numpy would. */
#include "frontend/npy.h"

#include <stdlib.h>
#include <unistd.h>

#include "test/unit/sweep.h"
#include "test/unit/unit.h"

static kiln_env *env;

static int open_env(void **state) {
  (void)state;
  assert_ok(kiln_env_create(NULL, &env));
  return 0;
}

static int close_env(void **state) {
  (void)state;
  kiln_env_destroy(env);
  return 0;
}

/* A file of numpy: the dict padded so that the elements start at byte 128. */
static kiln_str make_file(char *buffer, int version, const char *dict, const void *data,
                          size_t size) {
  size_t start = version == 1 ? 10 : 12;
  memset(buffer, ' ', 128);
  memcpy(buffer, "\x93NUMPY", 6);
  buffer[6] = (char)version;
  memset(buffer + 7, 0, start - 7);
  buffer[8] = (char)(128 - start);
  memcpy(buffer + start, dict, strlen(dict));
  buffer[127] = '\n';
  memcpy(buffer + 128, data, size);
  return kiln_str_make(buffer, 128 + size);
}

static void assert_reads(kiln_str file, kiln_dtype dtype, int rank, const int64_t *sizes,
                         const void *want, size_t size) {
  kiln_tensor *tensor = NULL;
  assert_ok(kiln_npy_read(env, file, &tensor));
  assert_int_equal(kiln_tensor_dtype(tensor), dtype);
  assert_int_equal(kiln_tensor_rank(tensor), rank);
  for (int i = 0; i < rank; i++) assert_int_equal(kiln_tensor_sizes(tensor)[i], sizes[i]);
  assert_true(kiln_tensor_is_contiguous(tensor));
  if (size > 0) assert_memory_equal(kiln_tensor_data(tensor), want, size);
  kiln_tensor_release(tensor);
}

static void test_read(void **state) {
  static char buffer[512];
  const int64_t sizes[2] = {2, 3}, two[1] = {2}, empty[2] = {0, 3};
  (void)state;
  /* np.array([[1,2,3],[4,5,6]], '>i2') */
  const int16_t ints[6] = {1, 2, 3, 4, 5, 6};
  assert_reads(make_file(buffer, 1, "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }",
                         "\0\1\0\2\0\3\0\4\0\5\0\6", 12),
               KILN_DTYPE_I16, 2, sizes, ints, sizeof ints);
  /* np.asfortranarray(np.array([[1,2,3],[4,5,6]], '<f4')) */
  const float floats[6] = {1, 2, 3, 4, 5, 6};
  assert_reads(make_file(buffer, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                         "\0\0\x80?\0\0\x80@\0\0\0@\0\0\xa0@\0\0@@\0\0\xc0@", 24),
               KILN_DTYPE_F32, 2, sizes, floats, sizeof floats);
  /* np.array([True, False]), in version 2; a byte other than 0 is true */
  assert_reads(
      make_file(buffer, 2, "{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", "\7\0", 2),
      KILN_DTYPE_BOOL, 1, two, "\1\0", 2);
  /* np.array(3.5), and np.zeros((0, 3), '<c16') */
  const double number = 3.5;
  assert_reads(make_file(buffer, 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
                         "\0\0\0\0\0\0\x0c@", 8),
               KILN_DTYPE_F64, 0, NULL, &number, 8);
  assert_reads(
      make_file(buffer, 3, "{'descr': '<c16', 'fortran_order': False, 'shape': (0, 3), }", "", 0),
      KILN_DTYPE_C128, 2, empty, NULL, 0);
}

static void test_damaged(void **state) {
  static const char *const dicts[] = {
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)",
      "{'descr': '<f4', 'fortran_order': False}",
      "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, -3), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", /* longer than the file */
      "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
      "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
      "{'descr': '<U8', 'fortran_order': False, 'shape': (2,), }",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }",
      "",
  };
  static char buffer[512], data[24];
  kiln_tensor *tensor = NULL;
  (void)state;
  for (size_t i = 0; i < sizeof dicts / sizeof dicts[0]; i++) {
    kiln_str file = make_file(buffer, 1, dicts[i], data, sizeof data);
    assert_error(kiln_npy_read(env, file, &tensor), KILN_INVALID_FILE, NULL);
    assert_null(tensor);
  }
  kiln_str good = make_file(buffer, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}",
                            data, sizeof data);
  for (size_t len = 0; len < good.len; len++) {
    kiln_status *status = kiln_npy_read(env, kiln_str_make(buffer, len), &tensor);
    assert_error(status, KILN_INVALID_FILE, NULL);
  }
  buffer[6] = 4;
  assert_error(kiln_npy_read(env, good, &tensor), KILN_INVALID_FILE, "version 4");
}

static void test_write(void **state) {
  char path[] = "/tmp/kiln_npy_XXXXXX", written[256];
  const int64_t sizes[1] = {2};
  kiln_tensor *tensor = NULL, *back = NULL;
  void *data = NULL;
  (void)state;
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  assert_ok(kiln_tensor_create(env->mem, NULL, KILN_DTYPE_I32, 1, sizes, &tensor));
  assert_ok(kiln_tensor_writable_data(tensor, &data));
  memcpy(data, "\1\0\0\0\2\0\0\0", 8);
  assert_ok(kiln_npy_write_file(tensor, path));
  assert_int_equal(read(descriptor, written, sizeof written), 136);
  assert_memory_equal(written,
                      "\x93NUMPY\1\0v\0"
                      "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), } ",
                      68);
  assert_int_equal(written[127], '\n');
  assert_memory_equal(written + 128, "\1\0\0\0\2\0\0\0", 8);
  assert_ok(kiln_npy_read_file(env, path, &back));
  kiln_tensor_release(back);
  kiln_tensor_release(tensor);
  close(descriptor);
  unlink(path);
  assert_error(kiln_npy_read_file(env, path, &back), KILN_INVALID_FILE, NULL);
}

static kiln_status *read_body(kiln_env *in, void *arg) {
  kiln_tensor *tensor = NULL;
  KILN_TRY(kiln_npy_read(in, *(kiln_str *)arg, &tensor));
  kiln_tensor_release(tensor);
  return NULL;
}

static void test_dtype_without_tensors(void **state) {
  static char buffer[512];
  kiln_tensor *tensor = NULL;
  kiln_str file =
      make_file(buffer, 1, "{'descr': '<U3', 'fortran_order': False, 'shape': (1,), }", "", 0);
  (void)state;
  kiln_status *status = kiln_npy_read(env, file, &tensor);
  assert_string_equal(kiln_status_message(status),
                      ".npy: an array of dtype '<U3', which no tensor has");
  kiln_status_destroy(status);
}

static void test_memory_runs_out(void **state) {
  static char buffer[512];
  kiln_str file = make_file(buffer, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
                            "123456789012345678901234", 24);
  (void)state;
  sweep_env(read_body, &file, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_read), cmocka_unit_test(test_damaged), cmocka_unit_test(test_write),
      cmocka_unit_test(test_dtype_without_tensors), cmocka_unit_test(test_memory_runs_out)};
  return cmocka_run_group_tests(tests, open_env, close_env);
}
