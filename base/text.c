/* text.c: text that grows in an arena, and the shortest digits of numbers. */
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kiln_text kiln_text_in(kiln_arena *arena) {
  static const char empty[1] = ""; /* not written: the capacity is 0 */
  return (kiln_text){.arena = arena, .data = (char *)(uintptr_t)empty};
}

/* Makes room for `more` bytes and the terminator. A long text is asked for in time, not only when
 * it grows. */
static char *reserve(kiln_text *text, size_t more) {
  size_t need;
  kiln_arena_step(text->arena);
  if (__builtin_add_overflow(text->len + 1, more, &need)) kiln_scope_oom();
  if (need > text->capacity) {
    size_t capacity = text->capacity ? text->capacity * 2 : 64;
    if (capacity < need) capacity = need;
    char *data = kiln_arena_alloc(text->arena, capacity);
    memcpy(data, text->data, text->len + 1);
    text->data = data;
    text->capacity = capacity;
  }
  return text->data + text->len;
}

static void put_bytes(kiln_text *text, const char *data, size_t len) {
  if (len == 0) return;
  char *at = reserve(text, len);
  memcpy(at, data, len);
  at[len] = 0;
  text->len += len;
}

void kiln_text_putc(kiln_text *text, char c) { put_bytes(text, &c, 1); }

void kiln_text_puts(kiln_text *text, const char *s) { put_bytes(text, s, strlen(s)); }

void kiln_text_put(kiln_text *text, kiln_str s) { put_bytes(text, s.data, s.len); }

void kiln_text_printf(kiln_text *text, const char *fmt, ...) {
  char piece[256];
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int len = vsnprintf(piece, sizeof piece, fmt, args);
  if (len >= (int)sizeof piece) {
    char *at = reserve(text, (size_t)len);
    vsnprintf(at, (size_t)len + 1, fmt, again);
    text->len += (size_t)len;
  } else if (len > 0) {
    put_bytes(text, piece, (size_t)len);
  }
  va_end(again);
  va_end(args);
}

void kiln_text_indent(kiln_text *text, int count) {
  if (count <= 0) return;
  char *at = reserve(text, (size_t)count);
  memset(at, ' ', (size_t)count);
  at[count] = 0;
  text->len += (size_t)count;
}

void kiln_text_quote(kiln_text *text, kiln_str s) {
  static const char plain[] = "\\\'\"\a\b\f\n\r\t\v", escaped[] = "\\\'\"abfnrtv";
  kiln_text_putc(text, '"');
  for (size_t i = 0; i < s.len; i++) {
    unsigned char c = (unsigned char)s.data[i];
    const char *found = c ? strchr(plain, c) : NULL;
    if (found) {
      char pair[2] = {'\\', escaped[found - plain]};
      put_bytes(text, pair, 2);
    } else if (c >= 0x20 && c < 0x7f) {
      kiln_text_putc(text, (char)c);
    } else {
      kiln_text_printf(text, "\\%03o", c);
    }
  }
  kiln_text_putc(text, '"');
}

/* -- Doubles -- */

/* Puts '.' where the locale's point is: whatever %g does not print in the C locale. */
static int fix_point(char *buffer) {
  static const char known[] = "+-0123456789einfa.";
  char *point = buffer + strspn(buffer, known);
  if (!*point) return (int)strlen(buffer);
  char *after = point + strcspn(point, known);
  *point = '.';
  memmove(point + 1, after, strlen(after) + 1);
  return (int)strlen(buffer);
}

int kiln_format_double(double value, char *buffer) {
  if (isnan(value)) return snprintf(buffer, 32, "nan"); /* without a sign */
  int len = 0;
  for (int digits = 15; digits <= 17; digits++) {
    char local[64];
    double back;
    snprintf(local, sizeof local, "%.*g", digits, value);
    len = fix_point(local);
    memcpy(buffer, local, (size_t)len + 1);
    if (kiln_str_parse_f64(kiln_str_make(local, (size_t)len), &back) && back == value) break;
  }
  return len;
}

void kiln_format_bytes(uint64_t bytes, char *buffer) {
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes && bytes % 1024 == 0 && unit < 4; unit++) bytes /= 1024;
  snprintf(buffer, 32, "%llu %s", (unsigned long long)bytes, units[unit]);
}

void kiln_text_double(kiln_text *text, double value) {
  char digits[32];
  int len = kiln_format_double(value, digits);
  put_bytes(text, digits, (size_t)len);
  if (isfinite(value) && strcspn(digits, ".e") == (size_t)len) kiln_text_putc(text, '.');
}

/* Whether `value` reads back as the same float from 1 + `precision` digits, which are left there.
 */
static bool reads_back(double value, int precision, char digits[64]) {
  double back = 0;
  snprintf(digits, 64, "%.*e", precision, value);
  const size_t len = (size_t)fix_point(digits);
  return kiln_str_parse_f64(kiln_str_make(digits, len), &back) && (float)back == (float)value;
}

void kiln_text_float(kiln_text *text, double value) {
  char digits[64];
  int precision = 8, too_few = -1, exponent = 0; /* nine digits always read back */
  if (!isfinite(value)) {
    kiln_text_double(text, value);
    return;
  }
  while (precision - too_few > 1) {
    const int middle = (precision + too_few) / 2;
    if (reads_back(value, middle, digits)) {
      precision = middle;
    } else {
      too_few = middle;
    }
  }
  (void)reads_back(value, precision, digits);
  exponent = atoi(strchr(digits, 'e') + 1);
  if (exponent >= -4 && exponent < 16) {
    int decimals = precision - exponent;
    snprintf(digits, sizeof digits, "%.*f", decimals > 0 ? decimals : 0, value);
    fix_point(digits);
  }
  kiln_text_puts(text, digits);
  if (!strpbrk(digits, ".e")) kiln_text_putc(text, '.');
}
