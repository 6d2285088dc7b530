/* reader.c: the lowest part of the graph parser: cursor, tokens, complaints. */
#include "ir/reader.h"

#include <stdio.h>

kiln_status *kiln__reader_fail(const kiln__reader *r, const char *fmt, ...) {
  int line = 1, column = 1;
  for (const char *p = r->begin; p < r->p; p++) {
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

void kiln__reader_skip(kiln__reader *r) {
  for (; r->p < r->end; r->p++) {
    if (*r->p == '#') {
      while (r->p < r->end && *r->p != '\n') r->p++;
      if (r->p == r->end) return;
    } else if (*r->p != ' ' && *r->p != '\n' && *r->p != '\t' && *r->p != '\r') {
      return;
    }
  }
}

bool kiln__reader_accept(kiln__reader *r, const char *token) {
  kiln__reader_skip(r);
  size_t n = strlen(token);
  if ((size_t)(r->end - r->p) < n || memcmp(r->p, token, n) != 0) return false;
  r->p += n;
  return true;
}

kiln_status *kiln__reader_expect(kiln__reader *r, const char *token) {
  if (kiln__reader_accept(r, token)) return NULL;
  return kiln__reader_fail(r, "expected '%s'", token);
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == ':';
}

kiln_str kiln__reader_word(kiln__reader *r) {
  const char *begin = r->p;
  while (r->p < r->end && is_word(*r->p)) r->p++;
  return kiln_str_make(begin, (size_t)(r->p - begin));
}

kiln_status *kiln__reader_type(kiln__reader *r, const kiln_type **out_type) {
  kiln__reader_skip(r);
  const char *cursor = r->p;
  kiln_status *status = kiln_type_parse(r->types, &cursor, r->end, true, out_type);
  if (status) {
    kiln_status *told = kiln__reader_fail(r, "%s", kiln_status_message(status));
    if (kiln_status_code(status) == KILN_OUT_OF_MEMORY) {
      kiln_status_destroy(told);
      return status;
    }
    kiln_status_destroy(status);
    return told;
  }
  r->p = cursor;
  return NULL;
}
