/* guard_test.c: records of what flowed, and guards made from them. */
#include "runtime/guard.h"

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

static kiln_guard_entry entry_of(kiln_ivalue v) {
  const kiln_tensor *t = v.u.tensor;
  return (kiln_guard_entry){.key_word = t->key.word,
                            .key_mask = UINT64_MAX,
                            .rank = (uint8_t)kiln_tensor_rank(t),
                            .check_dims = true,
                            .dims = t->dims};
}

static const char *explain(kiln_arena *arena, const kiln_guard_desc *guard,
                           const kiln_ivalue *values) {
  kiln_text text, expected, seen;
  kiln_text_init(&text, arena);
  kiln_text_init(&expected, arena);
  kiln_text_init(&seen, arena);
  const int input = kiln_guard_explain(guard, values, true, &expected, &seen);
  if (input < 0) return "every input is as expected";
  kiln_text_printf(&text, "input %d is %s where %s was expected", input, seen.data, expected.data);
  return text.data;
}

static kiln_status *guards(void *arg) {
  kiln_arena *arena = arg;
  kiln_mem *mem = kiln_arena_mem(arena);
  int64_t a[2] = {2, 3}, b[2] = {4, 3}, turned[2] = {1, 2}, nchw[4] = {2, 3, 4, 5};
  int64_t nhwc[4] = {60, 1, 15, 3};
  kiln_ivalue x = tensor(mem, KILN_DTYPE_F32, 2, a), x2 = tensor(mem, KILN_DTYPE_F32, 2, a);
  kiln_ivalue y = tensor(mem, KILN_DTYPE_F32, 2, b), d = tensor(mem, KILN_DTYPE_F64, 2, a);
  kiln_ivalue four = tensor(mem, KILN_DTYPE_F32, 4, nchw), last = kiln_none(), t = kiln_none();
  kiln_tensor *raw, *undefined;
  assert_ok(kiln_tensor_create_strided(mem, NULL, KILN_DTYPE_F32, 2, a, turned, &raw));
  t = kiln_of_tensor(raw);
  assert_ok(kiln_tensor_create_strided(mem, NULL, KILN_DTYPE_F32, 4, nchw, nhwc, &raw));
  last = kiln_of_tensor(raw);
  assert_ok(kiln_tensor_undefined(mem, &undefined));
  kiln_guard_entry entries[2] = {entry_of(x), entry_of(four)};
  kiln_guard_desc guard = {.count = 2, .entries = entries};
  guard.hash = kiln_guard_entries_hash(entries, 2);
  kiln_ivalue good[2] = {x2, four}, batch[2] = {y, four}, dtype[2] = {d, four};
  kiln_ivalue strides[2] = {t, four}, layout[2] = {x, last}, none[2] = {kiln_none(), four};
  kiln_ivalue undef[2] = {kiln_of_tensor(undefined), four};
  assert_true(kiln_guard_holds(&guard, good, true));
  assert_true(kiln_guard_hash(good, 2, true) == guard.hash);
  kiln_ivalue *bad[] = {batch, dtype, strides, layout, none, undef};
  for (int i = 0; i < 6; i++) {
    assert_false(kiln_guard_holds(&guard, bad[i], true));
    assert_true(kiln_guard_hash(bad[i], 2, true) != guard.hash);
  }
  assert_string_equal(explain(arena, &guard, good), "every input is as expected");
  assert_string_equal(explain(arena, &guard, batch),
                      "input 0 is Float(4, 3, strides=[3, 1], requires_grad=0, device=cpu) where "
                      "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) was expected");
  assert_non_null(strstr(explain(arena, &guard, layout), ", channels last where"));
  assert_non_null(strstr(explain(arena, &guard, none), "input 0 is None where"));
  assert_non_null(strstr(explain(arena, &guard, undef), "input 0 is Tensor"));
  /* What is masked out is neither looked at nor told. */
  kiln_tensor_key mask = {.word = UINT64_MAX};
  mask.f.dtype = 0;
  entries[0].key_mask = mask.word;
  assert_true(kiln_guard_holds(&guard, dtype, true));
  entries[0].check_dims = false;
  assert_true(kiln_guard_holds(&guard, batch, true));
  x2.u.tensor->key.f.requires_grad = 1;
  assert_true(kiln_guard_holds(&guard, good, false)); /* outside grad mode nothing requires one */
  assert_false(kiln_guard_holds(&guard, good, true));
  assert_string_equal(explain(arena, &guard, good),
                      "input 0 is Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu) where "
                      "Tensor(*, *, requires_grad=0, device=cpu) was expected");
  kiln_ivalue all[] = {x, x2, y, d, four, last, t, undef[0]};
  for (int i = 0; i < 8; i++) kiln_ivalue_release(all[i]);
  return NULL;
}

static void guards_hold_and_explain(void **state) {
  (void)state;
  kiln_mem *mem = test_mem();
  kiln_arena *arena;
  assert_ok(kiln_arena_create(mem, &arena));
  assert_ok(guards(arena));
  kiln_arena_destroy(arena);
  kiln_mem_release(mem);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(records_keep_what_agrees),
      cmocka_unit_test(guards_hold_and_explain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
