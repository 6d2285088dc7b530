/* dlpack_test.c: tensors out to a consumer of DLPack and in from a producer. */
#include "kiln/dlpack.h"

#include "test/unit/api/values.h"

static void test_out(void **state) {
  const int32_t data[6] = {1, 2, 3, 4, 5, 6};
  const int64_t sizes[2] = {3, 2};
  kiln_value *v = NULL;
  DLManagedTensor *out = NULL;
  (void)state;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_I32, 2, sizes, data, &v));
  assert_ok(kiln_value_to_dlpack(v, &out));
  kiln_value_destroy(v); /* the export keeps the memory */
  const DLTensor *t = &out->dl_tensor;
  assert_int_equal(t->device.device_type, kDLCPU);
  assert_int_equal(t->dtype.code, kDLInt);
  assert_int_equal(t->dtype.bits, 32);
  assert_int_equal(t->dtype.lanes, 1);
  assert_int_equal(t->ndim, 2);
  assert_int_equal(t->shape[0], 3);
  assert_int_equal(t->strides[0], 2);
  assert_memory_equal((char *)t->data + t->byte_offset, data, sizeof data);
  out->deleter(out);
  assert_ok(kiln_value_int(context, 1, &v));
  assert_error(kiln_value_to_dlpack(v, &out), KILN_INVALID_ARGUMENT, "tensor");
  kiln_value_destroy(v);
}

typedef struct producer {
  DLManagedTensor managed;
  int deleted;
} producer;

static void count_delete(DLManagedTensor *self) { ((producer *)self->manager_ctx)->deleted++; }

static void produce(producer *p, void *data, int64_t *shape, int64_t *strides) {
  *p = (producer){.managed = {.dl_tensor = {.data = data,
                                            .device = {kDLCPU, 0},
                                            .ndim = 2,
                                            .dtype = {kDLFloat, 32, 1},
                                            .shape = shape,
                                            .strides = strides},
                              .deleter = count_delete}};
  p->managed.manager_ctx = p;
}

static void test_in(void **state) {
  float data[7] = {-1, 0, 1, 2, 3, 4, 5}, copy[6];
  int64_t shape[2] = {2, 3}, transposed[2] = {1, 2};
  producer p;
  kiln_value *v = NULL;
  (void)state;
  produce(&p, data, shape, NULL);
  p.managed.dl_tensor.byte_offset = 4;
  assert_ok(kiln_value_from_dlpack(context, &p.managed, &v));
  assert_ptr_equal(kiln_value_data(v), data + 1);
  assert_int_equal(p.deleted, 0);
  kiln_value_destroy(v);
  assert_int_equal(p.deleted, 1);
  produce(&p, data, shape, transposed);
  assert_ok(kiln_value_from_dlpack(context, &p.managed, &v));
  assert_ok(kiln_value_copy_data(v, copy, sizeof copy));
  const float want[6] = {-1, 1, 3, 0, 2, 4};
  assert_memory_equal(copy, want, sizeof want);
  kiln_value_destroy(v);
  assert_int_equal(p.deleted, 1);
}

static void test_refused(void **state) {
  float data[6] = {0};
  int64_t shape[2] = {2, 3}, backwards[2] = {-3, 1}, negative[2] = {-2, 3};
  producer p;
  kiln_value *v = NULL;
  (void)state;
  produce(&p, data, shape, NULL);
  p.managed.dl_tensor.device.device_type = kDLCUDA;
  assert_error(kiln_value_from_dlpack(context, &p.managed, &v), KILN_INVALID_ARGUMENT, "CPU");
  produce(&p, data, shape, NULL);
  p.managed.dl_tensor.dtype.lanes = 4;
  assert_error(kiln_value_from_dlpack(context, &p.managed, &v), KILN_INVALID_ARGUMENT, "lanes");
  produce(&p, data, shape, backwards);
  assert_error(kiln_value_from_dlpack(context, &p.managed, &v), KILN_INVALID_ARGUMENT, "strides");
  produce(&p, data, negative, NULL);
  assert_error(kiln_value_from_dlpack(context, &p.managed, &v), KILN_INVALID_ARGUMENT, "negative");
  assert_int_equal(p.deleted, 0); /* a refused tensor stays the caller's */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_out), cmocka_unit_test(test_in),
                                     cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, open_context, close_context);
}
