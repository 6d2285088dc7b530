/* dtype_test.c: promotion against tables that PyTorch 1.13 made, and float16. */
#include "runtime/dtype.h"

#include <math.h>

#include "runtime/half.h"
#include "test/unit/runtime/tables.h"

static void add_operand(kiln_promotion *p, const char *operand) {
  kiln_dtype dtype = table_dtype(operand + 1);
  if (operand[0] == 'n') {
    kiln_promotion_add_number(p, dtype);
  } else {
    kiln_promotion_add_tensor(p, dtype, operand[0] == 'd' ? 1 : 0);
  }
}

static void agrees_with_pytorch(void **state) {
  (void)state;
  FILE *file = open_table("promotion.txt");
  char what[16], a[16], b[16], result[16];
  int rows = 0, wrong = 0;
  while (fscanf(file, "%15s %15s %15s %15s", what, a, b, result) == 4) {
    int got, want;
    if (!strcmp(what, "can_cast")) {
      got = kiln_dtype_can_cast(table_dtype(a), table_dtype(b));
      want = atoi(result);
    } else if (!strcmp(what, "promote")) {
      got = kiln_dtype_promote(table_dtype(a), table_dtype(b));
      want = table_dtype(result);
    } else {
      kiln_promotion p = KILN_PROMOTION_INIT;
      add_operand(&p, a);
      add_operand(&p, b);
      got = kiln_promotion_result(&p);
      want = table_dtype(result);
    }
    if (got != want) {
      print_error("%s %s %s: %d where PyTorch has %d\n", what, a, b, got, want);
      wrong++;
    }
    rows++;
  }
  fclose(file);
  assert_int_equal(rows, 2 * 13 * 13 + 30 * 30);
  assert_int_equal(wrong, 0);
}

static kiln_dtype fold(const char *operands) {
  char copy[64];
  snprintf(copy, sizeof copy, "%s", operands);
  kiln_promotion p = KILN_PROMOTION_INIT;
  for (char *o = strtok(copy, " "); o; o = strtok(NULL, " ")) add_operand(&p, o);
  return kiln_promotion_result(&p);
}

static void many_operands(void **state) {
  (void)state;
  assert_int_equal(fold(""), KILN_DTYPE_NONE);
  assert_int_equal(fold("dI32 zF64 nF64"), KILN_DTYPE_F64); /* a higher category decides by class */
  assert_int_equal(fold("dF16 zF64 nF64"), KILN_DTYPE_F16);
  assert_int_equal(fold("dBOOL zBOOL nI64"), KILN_DTYPE_I64);
  assert_int_equal(fold("dU8 zI64 nI64"), KILN_DTYPE_U8);
  assert_int_equal(fold("dU8 dI8 zF32"), KILN_DTYPE_F32);
  assert_int_equal(fold("dQI8 dF32"), KILN_DTYPE_NONE); /* does not promote, also not later */
  assert_int_equal(fold("dQI8 dF32 nC128"), KILN_DTYPE_NONE);
  assert_int_equal(kiln_dtype_promote(KILN_DTYPE_U16, KILN_DTYPE_F16), KILN_DTYPE_F16);
  assert_int_equal(kiln_dtype_promote(KILN_DTYPE_U16, KILN_DTYPE_I32), KILN_DTYPE_NONE);
}

static void facts(void **state) {
  (void)state;
  assert_false(kiln_dtype_is_valid(-1));
  assert_false(kiln_dtype_is_valid(16));
  assert_false(kiln_dtype_is_valid(30));
  assert_false(kiln_dtype_is_valid(INT64_MAX));
  assert_int_equal(kiln_dtype_size(KILN_DTYPE_NONE), 0);
  assert_null(kiln_dtype_name((kiln_dtype)22));
  assert_string_equal(kiln_dtype_name(KILN_DTYPE_C64), "complex64");
  assert_string_equal(kiln_dtype_ir_name(KILN_DTYPE_BF16), "BFloat16");
  assert_string_equal(kiln_dtype_short_name(KILN_DTYPE_I64), "long");
  for (int i = 0; i < KILN_DTYPE__COUNT; i++) {
    if (!kiln_dtype_is_valid(i)) continue;
    kiln_dtype d = (kiln_dtype)i;
    assert_int_equal(kiln_dtype_from_ir_name(kiln_str_from(kiln_dtype_ir_name(d))), d);
    assert_int_equal(kiln_dtype_bytes(d), kiln_dtype_size(d));
    assert_int_equal(kiln_dtype_promote(d, d), d);
  }
  assert_int_equal(kiln_dtype_from_ir_name(KILN_STR("float")), KILN_DTYPE_NONE);
  assert_int_equal(kiln_dtype_to_float(KILN_DTYPE_BOOL), KILN_DTYPE_F32);
  assert_int_equal(kiln_dtype_to_float(KILN_DTYPE_F16), KILN_DTYPE_F16);
  assert_int_equal(kiln_dtype_real(KILN_DTYPE_C128), KILN_DTYPE_F64);
  assert_true(kiln_dtype_is_int(KILN_DTYPE_BOOL, true));
  assert_false(kiln_dtype_is_int(KILN_DTYPE_BOOL, false));
}

/* Between two neighbours the nearer one is the result, in the middle the even one. */
static void halves_are_the_nearest(void **state) {
  (void)state;
  for (uint16_t h = 0; h < 0x7c00; h++) {
    const int exponent = h >> 10, mantissa = h & 1023;
    const double x = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
    const double next = exponent ? x + ldexp(1, exponent - 25) : x + ldexp(1, -24);
    const float middle = (float)((x + next) / 2);
    assert_true((double)kiln_half_to_float(h) == x);
    assert_true((double)kiln_half_to_float(h | 0x8000) == -x);
    assert_int_equal(kiln_float_to_half((float)x), h);
    assert_int_equal(kiln_float_to_half(nextafterf(middle, 0)), h);
    assert_int_equal(kiln_float_to_half(middle), h + (h & 1));
    assert_int_equal(kiln_float_to_half(-middle), (h + (h & 1)) | 0x8000);
    assert_int_equal(kiln_float_to_half(nextafterf(middle, INFINITY)), h + 1);
  }
  assert_int_equal(kiln_float_to_half(INFINITY), 0x7c00);
  assert_int_equal(kiln_float_to_half(0x1p127f), 0x7c00);
  assert_true(isinf(kiln_half_to_float(0xfc00)) && kiln_half_to_float(0xfc00) < 0);
  assert_true(isnan(kiln_half_to_float(0x7c01)) && isnan(kiln_half_to_float(0x7e00)));
  assert_int_equal(kiln_float_to_half(nanf("")) & 0x7fff, 0x7e00);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(halves_are_the_nearest),
      cmocka_unit_test(agrees_with_pytorch),
      cmocka_unit_test(many_operands),
      cmocka_unit_test(facts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
