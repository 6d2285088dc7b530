/* values.h: for units that run in one context, `context`: makers of values in it, and values
 * compared as text. Makers return what the caller destroys. */
#pragma once

#include "test/unit/api/fixture.h"

static kiln_context *context;

static inline int open_context(void **state) {
  (void)state;
  context = context_with(NULL, NULL);
  return 0;
}

static inline int open_eval(void **state) {
  (void)state;
  context = context_with("codegen", "eval");
  return 0;
}

static inline int close_context(void **state) {
  (void)state;
  kiln_context_release(context);
  return 0;
}

static inline kiln_value *int_of(int64_t i) {
  kiln_value *v = NULL;
  assert_ok(kiln_value_int(context, i, &v));
  return v;
}

static inline kiln_value *float_of(double f) {
  kiln_value *v = NULL;
  assert_ok(kiln_value_float(context, f, &v));
  return v;
}

static inline kiln_value *string_of(const char *text) {
  kiln_value *v = NULL;
  assert_ok(kiln_value_string(context, text, strlen(text), &v));
  return v;
}

/* Of float32: vector_of(3, (float[]){1, 2, 3}). */
static inline kiln_value *vector_of(int count, const float *data) {
  const int64_t sizes[1] = {count};
  kiln_value *v = NULL;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 1, sizes, data, &v));
  return v;
}

static inline kiln_value *matrix_of(int rows, int columns, const float *data) {
  const int64_t sizes[2] = {rows, columns};
  kiln_value *v = NULL;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, data, &v));
  return v;
}

static inline void assert_prints(const kiln_value *value, const char *want) {
  char *text = NULL;
  assert_ok(kiln_value_print(value, 100, &text));
  assert_string_equal(text, want);
  kiln_text_free(text);
}

/* So many calls of forward, so that it is profiled and compiled. */
static inline void assert_calls(kiln_instance *instance, kiln_value *const *args, int count,
                                int calls, const char *want) {
  for (int i = 0; i < calls; i++) {
    kiln_value *result = NULL;
    assert_ok(kiln_instance_call(instance, "forward", args, count, NULL, &result));
    assert_prints(result, want);
    kiln_value_destroy(result);
  }
}
