/* fault_test.c: an index out of bounds in the groups of a recorded model: the whole complaint, with
 * the way through the source, is the plain interpreter's wherever the call runs. */
#include "test/unit/api/fixture.h"

enum { KINDS = 2 };

/* Kind `bad` is among those of 2 x `length` words. */
static char *complaint(const subject *s, int64_t length, int64_t bad) {
  const int64_t both[] = {2, length}, square[] = {length, length};
  int64_t kinds[64] = {0}, zeros[64] = {0};
  float x[1024] = {0};
  kiln_value *args[4], *result = NULL;
  kinds[1] = bad;
  assert_ok(kiln_value_tensor(s->context, KILN_DTYPE_I64, 2, both, zeros, &args[0]));
  assert_ok(kiln_value_tensor(s->context, KILN_DTYPE_I64, 2, both, kinds, &args[1]));
  assert_ok(kiln_value_tensor(s->context, KILN_DTYPE_I64, 1, &length, zeros, &args[2]));
  assert_ok(kiln_value_tensor(s->context, KILN_DTYPE_F32, 2, square, x, &args[3]));
  kiln_status *status = kiln_instance_call(s->instance, "forward", args, 4, NULL, &result);
  char *report = status ? strdup(kiln_status_report(status)) : NULL;
  kiln_status_destroy(status);
  kiln_value_destroy(result);
  for (int i = 0; i < 4; i++) kiln_value_destroy(args[i]);
  return report;
}

/* Of the sizes before, which are compiled, or of new ones, which miss. */
static char *complaint_of(const char *flag, const char *value, int64_t length) {
  subject s = {.context = context_with(flag, value)};
  load_subject(&s, TEST_DATA "/own/gathers/model.pt");
  for (int i = 0; i < 3; i++) assert_null(complaint(&s, 6, i % KINDS));
  char *report = complaint(&s, length, KINDS);
  assert_non_null(report);
  assert_non_null(strstr(report, "index out of range in self"));
  assert_non_null(strstr(report, "embed"));
  close_subject(&s);
  return report;
}

static void test_complaints(void **state) {
  (void)state;
  static const int64_t lengths[] = {6, 7};
  for (int i = 0; i < 2; i++) {
    char *plain = complaint_of("jit", "off", lengths[i]);
    char *eval = complaint_of("codegen", "eval", lengths[i]);
    char *missing = complaint_of("llvm", "/nowhere", lengths[i]); /* groups without kernels */
    assert_string_equal(eval, plain);
    assert_string_equal(missing, plain);
    free(plain);
    free(eval);
    free(missing);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_complaints)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
