/* text_test.c: numbers and text from and to each other, in any locale. */
#include <locale.h>
#include <math.h>
#include <stdlib.h>

#include "test/unit/sweep.h"

static bool reads_i64(const char *text, int64_t wanted) {
  int64_t value = 77;
  return kiln_str_parse_i64(kiln_str_from(text), &value) && value == wanted;
}

static void parses_integers(void **state) {
  (void)state;
  assert_true(reads_i64("0", 0));
  assert_true(reads_i64("-0", 0));
  assert_true(reads_i64("+12", 12));
  assert_true(reads_i64("9223372036854775807", INT64_MAX));
  assert_true(reads_i64("-9223372036854775808", INT64_MIN));
  static const char *const wrong[] = {"",
                                      "-",
                                      "+",
                                      " 1",
                                      "1 ",
                                      "0x1",
                                      "1.",
                                      "--1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    int64_t value = 77;
    assert_false(kiln_str_parse_i64(kiln_str_from(wrong[i]), &value));
    assert_int_equal(value, 77);
  }
  int64_t value;
  assert_true(kiln_str_parse_i64(kiln_str_make("123", 2), &value) && value == 12);
}

static bool reads_f64(const char *text, double wanted) {
  double value = 77;
  if (!kiln_str_parse_f64(kiln_str_from(text), &value)) return false;
  return memcmp(&value, &wanted, sizeof value) == 0; /* signs of zero too */
}

static void parses_doubles(void **state) {
  (void)state;
  assert_true(reads_f64("1", 1));
  assert_true(reads_f64("1.", 1));
  assert_true(reads_f64(".5", 0.5));
  assert_true(reads_f64("-0.0", -0.0));
  assert_true(reads_f64("1e-05", 1e-05));
  assert_true(reads_f64("2.5E+3", 2500));
  assert_true(reads_f64("inf", (double)INFINITY));
  assert_true(reads_f64("-inf", -(double)INFINITY));
  assert_true(reads_f64("5e-324", 5e-324));
  assert_true(reads_f64("1e-400", 0));
  double nan_value;
  assert_true(kiln_str_parse_f64(KILN_STR("nan"), &nan_value) && isnan(nan_value));
  static const char *const wrong[] = {"",     ".",    "e5", "1e",   "1e+",      "1,5", " 1",
                                      "0x10", "1.2.", "1f", "nan(", "infinity", "--1", "1e999"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    double value = 77;
    assert_false(kiln_str_parse_f64(kiln_str_from(wrong[i]), &value));
    assert_true(value == 77);
  }
}

static void knows_utf8(void **state) {
  (void)state;
  static const char *const good[] = {"",
                                     "ascii",
                                     "\xc3\xa9",
                                     "\xe2\x82\xac",
                                     "\xf0\x9f\x94\xa5",
                                     "\xed\x9f\xbf",
                                     "\xf4\x8f\xbf\xbf"};
  static const char *const bad[] = {"\x80",         "\xc0\x80",     "\xc3",
                                    "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                    "\xff",         "a\xe2\x82",    "\xf8\x88\x80\x80\x80"};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++)
    assert_true(kiln_str_is_utf8(kiln_str_from(good[i])));
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_false(kiln_str_is_utf8(kiln_str_from(bad[i])));
  assert_true(kiln_str_is_utf8(kiln_str_make("\0", 1)));
}

static void views_compare(void **state) {
  (void)state;
  assert_true(kiln_str_equal(KILN_STR("ab"), kiln_str_make("abc", 2)));
  assert_false(kiln_str_equal(KILN_STR("ab"), KILN_STR("ac")));
  assert_true(kiln_str_equal((kiln_str){0}, KILN_STR("")));
  assert_true(kiln_str_is(KILN_STR("x"), "x"));
  assert_true(kiln_str_starts(KILN_STR("aten::add"), "aten::"));
  assert_false(kiln_str_starts(KILN_STR("at"), "aten::"));
}

/* -- Doubles to text -- */

/* Expected texts are what Python's repr gives, but for "1." and the exponents of %g. */
static const struct {
  double value;
  const char *digits, *script;
} doubles[] = {
    {0, "0", "0."},
    {-0.0, "-0", "-0."},
    {1, "1", "1."},
    {-3, "-3", "-3."},
    {0.1, "0.1", "0.1"},
    {1e-05, "1e-05", "1e-05"},
    {123456789, "123456789", "123456789."},
    {1e15, "1e+15", "1e+15"},
    {1e22, "1e+22", "1e+22"},
    {0.30000000000000004, "0.30000000000000004", "0.30000000000000004"},
    {1.0 / 3, "0.3333333333333333", "0.3333333333333333"},
    {2.0 / 3, "0.6666666666666666", "0.6666666666666666"},
    {5e-324, "4.94065645841247e-324", "4.94065645841247e-324"},
    {1.7976931348623157e308, "1.7976931348623157e+308", "1.7976931348623157e+308"},
};

static kiln_status *prints_doubles_body(kiln_arena *arena, void *arg) {
  (void)arg;
  for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
    char digits[32];
    int len = kiln_format_double(doubles[i].value, digits);
    if (len != (int)strlen(digits) || strcmp(digits, doubles[i].digits) != 0)
      return KILN_ERROR(KILN_INTERNAL, "%s is not %s", digits, doubles[i].digits);
    kiln_text text = kiln_text_in(arena);
    kiln_text_double(&text, doubles[i].value);
    if (!kiln_str_is(kiln_text_str(&text), doubles[i].script))
      return KILN_ERROR(KILN_INTERNAL, "%s is not %s", text.data, doubles[i].script);
    KILN_CHECK(reads_f64(text.data, doubles[i].value));
  }
  kiln_text text = kiln_text_in(arena);
  kiln_text_double(&text, (double)INFINITY);
  kiln_text_putc(&text, ' ');
  kiln_text_double(&text, -(double)INFINITY);
  kiln_text_putc(&text, ' ');
  kiln_text_double(&text, -(double)NAN);
  KILN_CHECK(kiln_str_is(kiln_text_str(&text), "inf -inf nan"));
  return NULL;
}

static void prints_doubles(void **state) { (void)state, sweep_arena(prints_doubles_body, NULL); }

/* Expected are the digits of numpy's float32, with a point or an exponent where Python's float has
 * one. */
static const struct {
  float value;
  const char *text;
} floats[] = {
    {0, "0."},
    {-0.0F, "-0."},
    {1, "1."},
    {0.1F, "0.1"},
    {1.0F / 3, "0.33333334"},
    {16777216, "16777216."},
    {1e16F, "1e+16"},
    {2.5e-05F, "2.5e-05"},
    {1e-45F, "1e-45"},
    {3.4028235e38F, "3.4028235e+38"},
    {-INFINITY, "-inf"},
    {NAN, "nan"},
    {-NAN, "nan"},
};
static kiln_status *prints_floats_body(kiln_arena *arena, void *arg) {
  (void)arg;
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
    kiln_text text = kiln_text_in(arena);
    kiln_text_float(&text, (double)floats[i].value);
    if (!kiln_str_is(kiln_text_str(&text), floats[i].text))
      return KILN_ERROR(KILN_INTERNAL, "%s is not %s", text.data, floats[i].text);
  }
  return NULL;
}
static void prints_floats(void **state) { (void)state, sweep_arena(prints_floats_body, NULL); }

static void random_doubles_read_back(void **state) {
  (void)state;
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < 20000; i++) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    double value;
    memcpy(&value, &random, sizeof value);
    if (!isfinite(value)) continue;
    char digits[32];
    kiln_format_double(value, digits);
    assert_true(reads_f64(digits, value));
  }
}

static void locale_changes_nothing(void **state) {
  (void)state;
  /* A comma as decimal point, where such a locale is installed. */
  static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
  bool found = false;
  setenv("LOCPATH", TEST_LOCALES, 1);
  for (size_t i = 0; i < 4 && !found; i++) found = setlocale(LC_ALL, names[i]) != NULL;
  unsetenv("LOCPATH");
  if (!found) skip();
  char local[8];
  snprintf(local, sizeof local, "%.1f", 0.5);
  assert_string_equal(local, "0,5"); /* the locale is at work */
  random_doubles_read_back(state);
  prints_doubles(state);
  prints_floats(state);
  parses_doubles(state);
  setlocale(LC_ALL, "C");
}

/* -- Building text -- */

static kiln_status *builds_text_body(kiln_arena *arena, void *arg) {
  (void)arg;
  kiln_text text = kiln_text_in(arena);
  KILN_CHECK(text.data[0] == 0 && text.len == 0);
  kiln_text_indent(&text, 2);
  kiln_text_puts(&text, "a");
  kiln_text_put(&text, KILN_STR("b"));
  kiln_text_put(&text, (kiln_str){0});
  kiln_text_printf(&text, "%d", 42);
  kiln_text_indent(&text, 0);
  kiln_text_indent(&text, -3);
  KILN_CHECK(kiln_str_is(kiln_text_str(&text), "  ab42"));
  for (int i = 0; i < 2000; i++) kiln_text_putc(&text, 'x');
  kiln_text_printf(&text, "%0700d", 1);
  kiln_text_printf(&text, "%0300d", 1);
  KILN_CHECK(text.len == 6 + 2000 + 1000 && strlen(text.data) == text.len);

  text = kiln_text_in(arena);
  kiln_text_quote(&text, kiln_str_make("a\n\t\"\\'\a\b\f\r\v\0\1\x7f\xc3\xa9z", 17));
  const char *wanted = "\"a\\n\\t\\\"\\\\\\'\\a\\b\\f\\r\\v\\000\\001\\177\\303\\251z\"";
  if (!kiln_str_is(kiln_text_str(&text), wanted))
    return KILN_ERROR(KILN_INTERNAL, "%s is not %s", text.data, wanted);
  return NULL;
}

static void builds_text(void **state) { (void)state, sweep_arena(builds_text_body, NULL); }

/* -- Hashes -- */

static void hashes_differ_and_last(void **state) {
  (void)state;
  /* XXH3 of no bytes, from xxHash's own published test values. */
  assert_int_equal(kiln_hash_bytes(0, "", 0), 0x2d06800538d394c2u);
  char hex[33];
  kiln_digest_format(kiln_digest_bytes("", 0), hex);
  assert_string_equal(hex, "99aa06d3014798d86001c324468d497f");
  kiln_digest a = kiln_digest_bytes("kiln", 4), b = kiln_digest_bytes("kilm", 4);
  assert_true(kiln_digest_equal(a, kiln_digest_bytes("kiln", 4)));
  assert_false(kiln_digest_equal(a, b));
  assert_int_not_equal(kiln_hash_mix(1, 2), kiln_hash_mix(2, 1));
}

/* Which ids and texts share a slot of a table depends on the seed. */
static void a_seed_decides_who_meets(void **state) {
  (void)state;
  int both_id = 0, both_text = 0;
  for (uint64_t id = 1; id < 1 << 14; id++) {
    uint64_t first = (kiln_hash_id(7, id) ^ kiln_hash_id(7, 0)) & 63;
    uint64_t second = (kiln_hash_id(8, id) ^ kiln_hash_id(8, 0)) & 63;
    both_id += first == 0 && second == 0;
    first = (kiln_hash_bytes(7, &id, sizeof id) ^ kiln_hash_bytes(7, "12345678", 8)) & 63;
    second = (kiln_hash_bytes(8, &id, sizeof id) ^ kiln_hash_bytes(8, "12345678", 8)) & 63;
    both_text += first == 0 && second == 0;
  }
  assert_in_range(both_id, 0, 32); /* 4 are expected, and 256 if the seed did nothing */
  assert_in_range(both_text, 0, 32);
}

static void checked_arithmetic_reports(void **state) {
  (void)state;
  int64_t i = 5;
  assert_false(kiln_checked_add_i64(INT64_MAX, 1, &i));
  assert_false(kiln_checked_mul_i64(INT64_MIN, -1, &i));
  assert_int_equal(i, 5);
  assert_true(kiln_checked_mul_i64(1 << 30, 1 << 30, &i) && i == (int64_t)1 << 60);
  size_t n = 5;
  assert_false(kiln_checked_add_size(SIZE_MAX, 1, &n));
  assert_false(kiln_checked_mul_size(SIZE_MAX, 2, &n));
  assert_int_equal(n, 5);
  assert_true(kiln_checked_add_size(2, 3, &n) && n == 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parses_integers),
      cmocka_unit_test(parses_doubles),
      cmocka_unit_test(knows_utf8),
      cmocka_unit_test(views_compare),
      cmocka_unit_test(prints_doubles),
      cmocka_unit_test(prints_floats),
      cmocka_unit_test(random_doubles_read_back),
      cmocka_unit_test(locale_changes_nothing),
      cmocka_unit_test(builds_text),
      cmocka_unit_test(hashes_differ_and_last),
      cmocka_unit_test(a_seed_decides_who_meets),
      cmocka_unit_test(checked_arithmetic_reports),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
