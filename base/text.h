/* text.h: building text in an arena. The result is always terminated. Independent of the locale. */
#pragma once

#include "base/arena.h"
#include "base/str.h"

typedef struct kiln_text {
  kiln_arena *arena; /* borrowed */
  char *data;        /* terminated; "" when empty */
  size_t len, capacity;
} kiln_text;

kiln_text kiln_text_in(kiln_arena *arena);
void kiln_text_putc(kiln_text *text, char c);
void kiln_text_puts(kiln_text *text, const char *s);
void kiln_text_put(kiln_text *text, kiln_str s);
void kiln_text_printf(kiln_text *text, const char *fmt, ...) KILN_PRINTF(2, 3);
/* `count` spaces. */
void kiln_text_indent(kiln_text *text, int count);
/* A quoted string with the escapes of TorchScript's printer (\n, \t, \", \\, 3-digit octal). */
void kiln_text_quote(kiln_text *text, kiln_str s);
/* A double in the fewest digits that read back the same ("0.1", "1e-05", "1.", "inf", "nan"). */
void kiln_text_double(kiln_text *text, double value);
/* Likewise of a float, which reads back the same as a float; an exponent where Python has one. */
void kiln_text_float(kiln_text *text, double value);
static inline kiln_str kiln_text_str(const kiln_text *text) {
  return kiln_str_make(text->data, text->len);
}

/* The digits of `value` that read back the same, as %.{15,16,17}g would print them; returns the
 * length. `buffer` holds at least 32 bytes. */
int kiln_format_double(double value, char *buffer);
/* "64 MiB" where it is a whole number of those, else "1000 bytes"; `buffer` holds 32 bytes. */
void kiln_format_bytes(uint64_t bytes, char *buffer);
/* What stands behind the noun of a number: "%d argument%s". */
static inline const char *kiln_plural(uint64_t count) { return count == 1 ? "" : "s"; }
