/* reader.c: the lowest part of the graph parser: cursor, tokens, complaints. */
#include "ir/reader.h"

#include <stdio.h>

kiln_status *kiln__reader_fail(const kiln__reader *r, const char *fmt, ...) {
  int line = 1, column = 1;
  for (const char *p = r->c.begin; p < r->c.at; p++) {
    column++;
    if (*p == '\n') line++, column = 1;
  }
  char what[256];
  va_list args;
  va_start(args, fmt);
  vsnprintf(what, sizeof what, fmt, args);
  va_end(args);
  return KILN_ERROR(KILN_INVALID_FILE, "line %d, column %d: %s", line, column, what);
}

kiln_status *kiln__reader_expect(kiln__reader *r, const char *token) {
  if (kiln_cursor_accept(&r->c, token)) return NULL;
  return kiln__reader_fail(r, "expected '%s'", token);
}

static bool is_word(char c) { return kiln_is_word(c) || c == '.' || c == ':'; }

kiln_str kiln__reader_word(kiln__reader *r) { return kiln_cursor_take(&r->c, is_word); }

kiln_status *kiln__reader_type(kiln__reader *r, const kiln_type **out_type) {
  kiln_cursor_skip(&r->c);
  const char *cursor = r->c.at;
  kiln_status *status = kiln_type_parse(r->types, &cursor, r->c.end, true, out_type);
  if (status) {
    kiln_status *told = kiln__reader_fail(r, "%s", kiln_status_message(status));
    if (kiln_status_code(status) == KILN_OUT_OF_MEMORY) {
      kiln_status_destroy(told);
      return status;
    }
    kiln_status_destroy(status);
    return told;
  }
  r->c.at = cursor;
  return NULL;
}
