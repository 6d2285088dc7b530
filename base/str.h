/* str.h: string views. A kiln_str borrows its bytes, is not terminated, and may hold any byte. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct kiln_str {
  const char *data;
  size_t len;
} kiln_str;

#define KILN_STR(literal) ((kiln_str){"" literal, sizeof(literal) - 1})
#define KILN_STR_FMT "%.*s"
#define KILN_STR_ARG(s) (int)(s).len, (s).data

static inline kiln_str kiln_str_make(const char *data, size_t len) { return (kiln_str){data, len}; }
static inline kiln_str kiln_str_from(const char *text) {
  return (kiln_str){text, text ? strlen(text) : 0};
}
static inline bool kiln_str_equal(kiln_str a, kiln_str b) {
  return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}
static inline bool kiln_str_is(kiln_str a, const char *text) {
  return kiln_str_equal(a, kiln_str_from(text));
}
static inline bool kiln_str_starts(kiln_str a, const char *prefix) {
  size_t n = strlen(prefix);
  return a.len >= n && memcmp(a.data, prefix, n) == 0;
}
static inline bool kiln_str_ends(kiln_str a, const char *suffix) {
  size_t n = strlen(suffix);
  return a.len >= n && memcmp(a.data + a.len - n, suffix, n) == 0;
}

/* ASCII, whatever the locale. */
static inline bool kiln_is_digit(char c) { return c >= '0' && c <= '9'; }
static inline bool kiln_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
/* What names are made of: letters, digits, underscores. */
static inline bool kiln_is_word(char c) {
  return kiln_is_letter(c) || kiln_is_digit(c) || c == '_';
}

/* Where what stands behind the last `c` begins; 0 where there is none. */
static inline size_t kiln_str_behind_last(kiln_str text, char c) {
  size_t at = text.len;
  while (at > 0 && text.data[at - 1] != c) at--;
  return at;
}
static inline kiln_str kiln_str_without(kiln_str text, size_t first) {
  return kiln_str_make(text.data + first, text.len - first);
}
/* "C" of "__torch__.m.C". */
static inline kiln_str kiln_str_last_part(kiln_str name) {
  return kiln_str_without(name, kiln_str_behind_last(name, '.'));
}

/* Parse the whole view; false when it is not exactly such a number or out of range.
 * Independent of the locale. */
bool kiln_str_parse_i64(kiln_str text, int64_t *out);
/* An integer, or one of KiB, MiB, GiB or TiB: "1000", "64M", "1G". */
bool kiln_str_parse_bytes(kiln_str text, int64_t *out);
bool kiln_str_parse_f64(kiln_str text, double *out);
/* What strtod reads at the start of a terminated text in the C locale: blanks, hexadecimals and
 * "infinity" too. *out_end is where it stopped, NULL where there is no number or none of its size.
 */
double kiln_str_scan_f64(const char *text, const char **out_end);
/* True when the bytes are valid UTF-8. */
bool kiln_str_is_utf8(kiln_str text);
