/* custom_fixture.h: the model of test/data/custom in a context that has its operators, and its
 * calls with recorded arguments. */
#pragma once

#include <math.h>

#include "test/unit/api/custom_ops.h"
#include "test/unit/api/fixture.h"

#define DATA TEST_DATA "/custom/"

static inline void open_context(subject *h, const char *jit) {
  *h = (subject){.context = context_with("jit", jit)};
}

static inline void open_subject(subject *h, const char *jit, custom_count *counts) {
  open_context(h, jit);
  assert_ok(custom_register_all(h->context, counts));
  load_subject(h, DATA "model.pt");
}

/* -- Values -- */

static inline kiln_value *read_value(const subject *h, const char *name, const char *ending) {
  char path[512];
  kiln_value *v = NULL;
  snprintf(path, sizeof path, DATA "%s%s", name, ending);
  assert_ok(kiln_value_read(h->context, path, &v));
  return v;
}

static inline kiln_value *item(const kiln_value *v, int i) {
  kiln_value *out = NULL;
  assert_ok(kiln_value_item(v, i, &out));
  return out;
}

static inline void assert_close(const kiln_value *got, const kiln_value *want) {
  assert_int_equal(kiln_value_kind(got), kiln_value_kind(want));
  if (kiln_value_kind(want) == KILN_KIND_TUPLE) {
    assert_int_equal(kiln_value_count(got), kiln_value_count(want));
    for (int i = 0; i < kiln_value_count(want); i++) {
      kiln_value *a = item(got, i), *b = item(want, i);
      assert_close(a, b);
      kiln_value_destroy(a);
      kiln_value_destroy(b);
    }
    return;
  }
  if (kiln_value_kind(want) == KILN_KIND_INT) {
    assert_int_equal(kiln_value_as_int(got), kiln_value_as_int(want));
    return;
  }
  float a[256], b[256];
  size_t n = 1;
  assert_int_equal(kiln_value_rank(got), kiln_value_rank(want));
  for (int i = 0; i < kiln_value_rank(want); i++) {
    assert_int_equal(kiln_value_sizes(got)[i], kiln_value_sizes(want)[i]);
    n *= (size_t)kiln_value_sizes(want)[i];
  }
  assert_true(n <= 256);
  assert_ok(kiln_value_copy_data(got, a, n * sizeof(float)));
  assert_ok(kiln_value_copy_data(want, b, n * sizeof(float)));
  for (size_t i = 0; i < n; i++) assert_true(fabsf(a[i] - b[i]) <= 2e-6f + 2e-6f * fabsf(b[i]));
}

/* Calls with the recorded arguments; *out_result may be NULL on failure. */
static inline kiln_status *call_recorded(const subject *h, const char *method, const char *name,
                                         kiln_value **out_result) {
  kiln_value *tuple = read_value(h, name, "_in.pt"), *args[4];
  int count = kiln_value_count(tuple);
  for (int i = 0; i < count; i++) args[i] = item(tuple, i);
  kiln_status *status = kiln_instance_call(h->instance, method, args, count, NULL, out_result);
  for (int i = 0; i < count; i++) kiln_value_destroy(args[i]);
  kiln_value_destroy(tuple);
  return status;
}

static inline void check_recorded(const subject *h, const char *method, const char *name) {
  kiln_value *result = NULL, *want = read_value(h, name, "_out.pt");
  assert_ok(call_recorded(h, method, name, &result));
  assert_close(result, want);
  kiln_value_destroy(result);
  kiln_value_destroy(want);
}

/* `fails` gives back what mine::fail gives, of x + 1. */
static inline kiln_status *call_fails(const subject *h, kiln_value **out_result) {
  const float data[6] = {1, 2, 3, 4, 5, 6};
  const int64_t sizes[2] = {2, 3};
  kiln_value *x = NULL;
  *out_result = NULL;
  assert_ok(kiln_value_tensor(h->context, KILN_DTYPE_F32, 2, sizes, data, &x));
  kiln_status *status = kiln_instance_call(h->instance, "fails", &x, 1, NULL, out_result);
  kiln_value_destroy(x);
  return status;
}
