/* custom_fixture.h: the model of test/data/custom in a context that has its operators, and its
 * calls with recorded arguments. */
#pragma once

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

/* Calls with the recorded arguments; *out_result may be NULL on failure. */
static inline kiln_status *call_recorded(const subject *h, const char *method, const char *name,
                                         kiln_value **out_result) {
  kiln_value *args[4];
  const int count = take_items(read_recorded(h->context, DATA "%s_in.pt", name), args, 4);
  kiln_status *status = kiln_instance_call(h->instance, method, args, count, NULL, out_result);
  destroy_values(args, count);
  return status;
}

static inline void check_recorded(const subject *h, const char *method, const char *name) {
  kiln_value *result = NULL, *want = read_recorded(h->context, DATA "%s_out.pt", name);
  assert_ok(call_recorded(h, method, name, &result));
  assert_close(result, want, 2e-6f, 2e-6f);
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
