/* str.c: numbers and UTF-8 from text, whatever the locale. */
#include "base/str.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

bool kiln_str_parse_i64(kiln_str text, int64_t *out) {
  size_t i = 0;
  bool negative = false;
  if (i < text.len && (text.data[i] == '-' || text.data[i] == '+'))
    negative = text.data[i++] == '-';
  if (i == text.len) return false;
  int64_t value = 0; /* counted downwards: INT64_MIN has no positive twin */
  for (; i < text.len; i++) {
    if (!kiln_is_digit(text.data[i])) return false;
    if (__builtin_mul_overflow(value, 10, &value)) return false;
    if (__builtin_sub_overflow(value, (int64_t)(text.data[i] - '0'), &value)) return false;
  }
  if (!negative && value == INT64_MIN) return false;
  *out = negative ? value : -value;
  return true;
}

/* Digits with at most one point, an exponent perhaps: what strtod reads in the C locale, without
 * hexadecimals, "nan(...)", and blanks. */
static bool is_decimal(kiln_str text) {
  size_t i = 0, digits = 0;
  while (i < text.len && kiln_is_digit(text.data[i])) i++, digits++;
  if (i < text.len && text.data[i] == '.') {
    i++;
    while (i < text.len && kiln_is_digit(text.data[i])) i++, digits++;
  }
  if (digits == 0) return false;
  if (i == text.len) return true;
  if (text.data[i] != 'e' && text.data[i] != 'E') return false;
  i++;
  if (i < text.len && (text.data[i] == '-' || text.data[i] == '+')) i++;
  if (i == text.len) return false;
  while (i < text.len && kiln_is_digit(text.data[i])) i++;
  return i == text.len;
}

bool kiln_str_parse_f64(kiln_str text, double *out) {
  kiln_str body = text;
  bool negative = false;
  if (body.len > 0 && (body.data[0] == '-' || body.data[0] == '+')) {
    negative = body.data[0] == '-';
    body = kiln_str_make(body.data + 1, body.len - 1);
  }
  double value;
  if (kiln_str_is(body, "inf")) {
    value = HUGE_VAL;
  } else if (kiln_str_is(body, "nan")) {
    value = (double)NAN;
  } else {
    char copy[2048];
    if (!is_decimal(body) || body.len >= sizeof copy) return false;
    memcpy(copy, body.data, body.len);
    copy[body.len] = 0;
    /* glibc's "C" locale object is static: nothing is allocated. */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!c_locale) return false;
    value = strtod_l(copy, NULL, c_locale);
    freelocale(c_locale);
    if (isinf(value)) return false;
  }
  *out = negative ? -value : value;
  return true;
}

double kiln_str_scan_f64(const char *text, const char **out_end) {
  locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  *out_end = NULL;
  if (!c_locale) return 0;
  int saved = errno;
  char *end;
  errno = 0;
  double value = strtod_l(text, &end, c_locale);
  if (end != text && errno != ERANGE) *out_end = end;
  errno = saved;
  freelocale(c_locale);
  return value;
}

/* Bytes of the UTF-8 sequence at `s`, 0 if it is not one (RFC 3629: shortest form, no surrogates).
 */
static size_t utf8_len(const unsigned char *s, size_t left) {
  static const struct {
    unsigned char first, last, second_min, second_max, len;
  } forms[] = {
      {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
      {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
      {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
  };
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (s[0] < forms[i].first || s[0] > forms[i].last) continue;
    size_t len = forms[i].len;
    if (len > left) return 0;
    if (len > 1 && (s[1] < forms[i].second_min || s[1] > forms[i].second_max)) return 0;
    for (size_t k = 2; k < len; k++) {
      if ((s[k] & 0xc0) != 0x80) return 0;
    }
    return len;
  }
  return 0;
}

bool kiln_str_is_utf8(kiln_str text) {
  for (size_t i = 0; i < text.len;) {
    size_t len = utf8_len((const unsigned char *)text.data + i, text.len - i);
    if (len == 0) return false;
    i += len;
  }
  return true;
}

bool kiln_str_parse_bytes(kiln_str text, int64_t *out) {
  static const char units[] = "KMGT";
  const char *unit = text.len ? memchr(units, text.data[text.len - 1] & ~0x20, 4) : NULL;
  int64_t n;
  if (!kiln_str_parse_i64(kiln_str_make(text.data, text.len - (unit ? 1 : 0)), &n)) return false;
  return !__builtin_mul_overflow(n, (int64_t)1 << (unit ? 10 * (unit - units + 1) : 0), out);
}
