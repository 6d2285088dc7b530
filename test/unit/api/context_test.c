/* context_test.c: options, the environment, changing settings, callbacks, accounting. */
#include <stdlib.h>

#include "kiln/kiln.h"
#include "test/unit/unit.h"

static void set(kiln_context *context, const char *name, const char *value, const char *before) {
  char *old = NULL;
  assert_ok(kiln_context_set(context, name, value, &old));
  assert_string_equal(old, before);
  kiln_text_free(old);
}

static void test_options(void **state) {
  kiln_options *options = NULL;
  kiln_context *context = NULL;
  (void)state;
  assert_ok(kiln_options_create(&options));
  assert_error(kiln_options_set(options, "frobnicate", "1"), KILN_INVALID_ARGUMENT, "frobnicate");
  assert_error(kiln_options_set(options, "jit", "perhaps"), KILN_INVALID_ARGUMENT, "perhaps");
  assert_error(kiln_options_set(options, "log", "nowhere=1"), KILN_INVALID_ARGUMENT, "nowhere");
  assert_error(kiln_options_set(options, "jit", NULL), KILN_INVALID_ARGUMENT, NULL);
  assert_ok(kiln_options_set(options, "num_profiled_runs", "3"));
  assert_ok(kiln_options_set(options, "num_profiled_runs", "4")); /* the later one wins */
  assert_ok(kiln_context_create(options, &context));
  kiln_options_destroy(options);
  set(context, "num_profiled_runs", "5", "4");
  set(context, "num_profiled_runs", "6", "5");
  assert_error(kiln_context_set(context, "num_profiled_runs", "many", NULL), KILN_INVALID_ARGUMENT,
               "many");
  assert_error(kiln_context_set(context, "nothing", "1", NULL), KILN_INVALID_ARGUMENT, "nothing");
  assert_error(kiln_context_set(context, NULL, "1", NULL), KILN_INVALID_ARGUMENT, "NULL");
  assert_error(kiln_context_set(context, "jit", NULL, NULL), KILN_INVALID_ARGUMENT, "NULL");
  assert_error(kiln_context_set(NULL, "jit", "on", NULL), KILN_INVALID_ARGUMENT, "NULL");
  for (int i = 0; i < kiln_flag_count; i++) {
    const kiln_flag_info *info = &kiln_flag_table[i];
    if (strstr(info->meaning, "when a context is made"))
      assert_error(kiln_context_set(context, info->name, info->default_text, NULL),
                   KILN_INVALID_ARGUMENT, "fixed");
  }
  kiln_context_release(context);
}

static void keeps_old_value(void **state) {
  static const struct {
    const char *name, *bad, *value;
    kiln_code code;
  } cases[] = {
      {"log", "nowhere=1", "", KILN_INVALID_ARGUMENT},
      {"dump", "/proc/none/at/all", "", KILN_INVALID_FILE},
      {"exact", "maybe", "off", KILN_INVALID_ARGUMENT},
      {"memory_limit", "-1", "0", KILN_INVALID_ARGUMENT},
  };
  kiln_context *context = NULL;
  (void)state;
  assert_ok(kiln_context_create(NULL, &context));
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *name = cases[i].name, *value = cases[i].value;
    assert_error(kiln_context_set(context, name, cases[i].bad, NULL), cases[i].code, name);
    set(context, name, value, value);
  }
  kiln_context_release(context);
}

static void test_environment(void **state) {
  kiln_options *options = NULL;
  kiln_context *context = NULL;
  (void)state;
  setenv("KILN_NUM_PROFILED_RUNS", "7", 1);
  assert_ok(kiln_context_create(NULL, &context));
  set(context, "num_profiled_runs", "1", "7");
  kiln_context_release(context);
  assert_ok(kiln_options_create(&options));
  assert_ok(kiln_options_set(options, "num_profiled_runs", "2")); /* wins over the environment */
  assert_ok(kiln_context_create(options, &context));
  set(context, "num_profiled_runs", "1", "2");
  kiln_context_release(context);
  setenv("KILN_NUM_PROFILED_RUNS", "none", 1);
  assert_error(kiln_context_create(NULL, &context), KILN_INVALID_ARGUMENT, "none");
  assert_null(context);
  kiln_options_destroy(options);
  assert_ok(kiln_options_create(&options));
  kiln_options_ignore_environment(options);
  assert_ok(kiln_context_create(options, &context));
  set(context, "num_profiled_runs", "1", "1");
  kiln_context_release(context);
  kiln_options_destroy(options);
  unsetenv("KILN_NUM_PROFILED_RUNS");
}

static void test_bytes(void **state) {
  kiln_context *context = NULL;
  kiln_value *v = NULL;
  const int64_t sizes[1] = {1 << 20};
  (void)state;
  assert_ok(kiln_context_create(NULL, &context));
  size_t before = kiln_context_bytes(context);
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 1, sizes, NULL, &v));
  assert_true(kiln_context_bytes(context) >= before + (4u << 20));
  kiln_value_destroy(v);
  assert_int_equal(kiln_context_bytes(context), before);
  assert_true(kiln_context_peak_bytes(context) >= before + (4u << 20));
  assert_ok(kiln_context_set(context, "memory_limit", "1000000", NULL));
  assert_error(kiln_value_tensor(context, KILN_DTYPE_F32, 1, sizes, NULL, &v), KILN_OUT_OF_MEMORY,
               NULL);
  kiln_context_release(context);
}

static void test_loading_refused(void **state) {
  kiln_context *context = NULL;
  kiln_model *model = NULL;
  (void)state;
  assert_ok(kiln_context_create(NULL, &context));
  size_t before = kiln_context_bytes(context);
  assert_error(kiln_model_load(context, TEST_DATA "/nowhere.pt", NULL, &model), KILN_INVALID_FILE,
               "nowhere.pt");
  assert_error(kiln_model_load(context, TEST_DATA "/bad/truncated/model.pt", NULL, &model),
               KILN_INVALID_FILE, NULL);
  assert_error(kiln_model_load(context, NULL, NULL, &model), KILN_INVALID_ARGUMENT, NULL);
  assert_error(kiln_model_load_memory(context, "PK", 2, NULL, &model), KILN_INVALID_FILE, NULL);
  assert_error(kiln_model_load_memory(context, NULL, 0, NULL, &model), KILN_INVALID_FILE, NULL);
  assert_null(model);
  assert_int_equal(kiln_context_bytes(context), before);
  kiln_context_release(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_options), cmocka_unit_test(keeps_old_value),
      cmocka_unit_test(test_environment), cmocka_unit_test(test_bytes),
      cmocka_unit_test(test_loading_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
