/* record_test.c: records of what flowed. */
#include "runtime/record.h"

#include "test/unit/runtime/tables.h"

static kiln_ivalue tensor(kiln_mem *mem, kiln_dtype dtype, int rank, const int64_t *sizes) {
  kiln_tensor *t;
  assert_ok(kiln_tensor_create(mem, NULL, dtype, rank, sizes, &t));
  return kiln_of_tensor(t);
}

static void records_keep_what_agrees(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_type_record r;
  kiln_type_record_init(&r);
  assert_false(kiln_type_record_has_tensor(&r));
  assert_int_equal(kiln_type_record_detail(&r).dtype, KILN_DTYPE_NONE);
  int64_t a[2] = {2, 3}, b[2] = {4, 3}, c[3] = {2, 3, 1}, high[9] = {1, 1, 1, 1, 1, 1, 1, 1, 2};
  kiln_ivalue x = tensor(mem, KILN_DTYPE_F32, 2, a), y = tensor(mem, KILN_DTYPE_F32, 2, b);
  kiln_ivalue z = tensor(mem, KILN_DTYPE_F64, 3, c), w = tensor(mem, KILN_DTYPE_F32, 9, high);
  x.u.tensor->key.f.requires_grad = 1;
  kiln_type_record_add(&r, kiln_none(), false);
  kiln_type_record_add(&r, kiln_int(3), false);
  assert_false(kiln_type_record_has_tensor(&r));
  kiln_type_record_add(&r, x, false); /* requires_grad counts only in grad mode */
  kiln_tensor_detail d = kiln_type_record_detail(&r);
  assert_true(d.dtype == KILN_DTYPE_F32 && d.rank == 2 && d.requires_grad == 0 && d.device == 0);
  assert_true(d.has_strides && d.sizes[0] == 2 && d.strides[0] == 3);
  kiln_type_record_add(&r, y, false);
  d = kiln_type_record_detail(&r);
  assert_true(d.sizes[0] == KILN_DIM_UNKNOWN && d.sizes[1] == 3 && d.strides[0] == 3);
  assert_true(r.seen == 4 && r.seen_none == 1 && r.seen_other == 1);
  kiln_type_record other;
  kiln_type_record_init(&other);
  kiln_type_record_add(&other, x, true);
  kiln_type_record_merge(&other, &r); /* another run */
  d = kiln_type_record_detail(&other);
  assert_true(d.requires_grad == -1 && d.dtype == KILN_DTYPE_F32 && d.sizes[0] == -1);
  assert_int_equal(other.seen, 5);
  kiln_type_record_add(&other, z, false);
  d = kiln_type_record_detail(&other);
  assert_true(d.dtype == KILN_DTYPE_NONE && d.rank == -1 && !d.has_strides && d.device == 0);
  kiln_type_record_init(&r);
  kiln_type_record_add(&r, w, false); /* too many dimensions to keep */
  d = kiln_type_record_detail(&r);
  assert_true(d.rank == -1 && d.dtype == KILN_DTYPE_F32);
  r.seen = UINT32_MAX;
  kiln_type_record_add(&r, w, false);
  assert_true(r.seen == UINT32_MAX); /* saturates */
  kiln_ivalue all[] = {x, y, z, w};
  for (int i = 0; i < 4; i++) kiln_ivalue_release(all[i]);
  kiln_mem_release(mem);
}

/* Two runs that saw a scalar saw the same type. */
static void scalars_agree(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_type_record r, other;
  kiln_type_record_init(&r);
  kiln_type_record_init(&other);
  kiln_ivalue x = tensor(mem, KILN_DTYPE_F32, 0, NULL);
  kiln_type_record_add(&r, x, false);
  kiln_type_record_add(&other, x, false);
  kiln_type_record_merge(&r, &other);
  kiln_tensor_detail d = kiln_type_record_detail(&r);
  assert_true(d.rank == 0 && d.has_strides && d.dtype == KILN_DTYPE_F32);
  kiln_ivalue_release(x);
  kiln_mem_release(mem);
}

/* Devices of one kind are two devices. */
static void devices_differ_by_number(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_type_record r, other;
  kiln_type_record_init(&r);
  kiln_type_record_init(&other);
  kiln_ivalue x = tensor(mem, KILN_DTYPE_F32, 0, NULL);
  kiln_type_record_add(&r, x, false);
  kiln_type_record_add(&other, x, false);
  other.device_index++;
  kiln_type_record_merge(&r, &other);
  kiln_tensor_detail d = kiln_type_record_detail(&r);
  assert_true(d.device == -1 && d.dtype == KILN_DTYPE_F32 && d.rank == 0);
  kiln_ivalue_release(x);
  kiln_mem_release(mem);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(records_keep_what_agrees),
      cmocka_unit_test(scalars_agree),
      cmocka_unit_test(devices_differ_by_number),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
