/* cursor.h: where a parser stands in its text. What reads a token skips the blanks before it:
 * spaces, tabs, line ends, and comments where the text has them. */
#pragma once

#include "base/str.h"

typedef struct kiln_cursor {
  const char *begin, *at, *end;
  char comment; /* begins one that goes to the end of its line; 0: nothing does */
} kiln_cursor;

static inline kiln_cursor kiln_cursor_of(kiln_str text) {
  return (kiln_cursor){text.data, text.data, text.data + text.len, 0};
}

/* The byte here, -1 at the end. */
static inline int kiln_cursor_peek(const kiln_cursor *c) {
  return c->at < c->end ? (unsigned char)*c->at : -1;
}

static inline kiln_str kiln_cursor_rest(const kiln_cursor *c) {
  return kiln_str_make(c->at, (size_t)(c->end - c->at));
}

static inline void kiln_cursor_skip(kiln_cursor *c) {
  for (; c->at < c->end; c->at++) {
    if (c->comment && *c->at == c->comment) {
      while (c->at < c->end && *c->at != '\n') c->at++;
      if (c->at == c->end) return;
    } else if (*c->at != ' ' && *c->at != '\n' && *c->at != '\t' && *c->at != '\r') {
      return;
    }
  }
}

/* Skips, then moves behind the token if it stands here. */
static inline bool kiln_cursor_accept(kiln_cursor *c, const char *token) {
  kiln_cursor_skip(c);
  if (!kiln_str_starts(kiln_cursor_rest(c), token)) return false;
  c->at += strlen(token);
  return true;
}

/* The bytes from here on that `belongs` takes, perhaps none. Skips nothing. */
static inline kiln_str kiln_cursor_take(kiln_cursor *c, bool (*belongs)(char)) {
  const char *begin = c->at;
  while (c->at < c->end && belongs(*c->at)) c->at++;
  return kiln_str_make(begin, (size_t)(c->at - begin));
}
