/* abi_test.c: options of older, newer and careless hosts. */
#include "base/abi.h"

#include "test/unit/sweep.h"

typedef struct known {
  int first;
  size_t struct_size;
  int second;
} known;
/* The same of a later version. */
typedef struct later {
  known old;
  int third;
} later;

static kiln_status *read_known(const void *given, size_t size, known *out) {
  return kiln_abi_read("known", given, size, offsetof(known, second), sizeof *out, out);
}

static void expect_code(kiln_status *status, kiln_code code) {
  assert_int_equal(kiln_status_code(status), code);
  kiln_status_destroy(status);
}

static void test_read(void **state) {
  (void)state;
  known out = {1, 1, 1};
  expect_code(read_known(NULL, 0, &out), KILN_OK);
  assert_int_equal(out.first | out.second, 0);
  const known same = {.first = 3, .second = 4};
  expect_code(read_known(&same, 0, &out), KILN_OK);
  assert_int_equal(out.second, 4);
  /* A host of an earlier version: what it did not know is 0. */
  expect_code(read_known(&same, offsetof(known, second), &out), KILN_OK);
  assert_int_equal(out.first, 3);
  assert_int_equal(out.second, 0);
  /* One of a later version, which asks for nothing new, and for something. */
  later more = {.old = same};
  expect_code(read_known(&more, sizeof more, &out), KILN_OK);
  assert_int_equal(out.second, 4);
  more.third = 1;
  expect_code(read_known(&more, sizeof more, &out), KILN_UNSUPPORTED);
  /* What nobody has set. */
  expect_code(read_known(&same, 3, &out), KILN_INVALID_ARGUMENT);
  expect_code(read_known(&same, SIZE_MAX / 2, &out), KILN_INVALID_ARGUMENT);
}

static void test_write(void **state) {
  (void)state;
  const known ours = {.first = 3, .second = 4};
  later out = {.old = {9, 9, 9}, .third = 9};
  kiln_abi_write(&out, offsetof(known, second), &ours, sizeof ours);
  assert_int_equal(out.old.first, 3);
  assert_int_equal(out.old.second, 9);
  kiln_abi_write(&out, sizeof out, &ours, sizeof ours);
  assert_int_equal(out.old.second, 4);
  assert_int_equal(out.third, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_write)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
