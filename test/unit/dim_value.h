/* dim_value.h: what a dimension is worth for given symbols, worked out from its text. */
#pragma once

#include <ctype.h>
#include <stdlib.h>

#include "runtime/dim.h"
#include "test/unit/unit.h"

static int64_t dim_value_sum(const char **at, const int64_t *symbols);

static int64_t dim_value_number(const char **at) {
  char *end;
  assert_true(isdigit((unsigned char)**at));
  const int64_t value = strtoll(*at, &end, 10);
  *at = end;
  return value;
}

static int64_t dim_value_atom(const char **at, const int64_t *symbols) {
  if (**at == 's' || **at == 'n') {
    ++*at;
    return symbols[dim_value_number(at)];
  }
  if (**at != '(') return dim_value_number(at);
  ++*at;
  const int64_t value = dim_value_sum(at, symbols);
  assert_int_equal(*(*at)++, ')');
  return value;
}

/* The product is divided, not its last factor, and rounded down. */
static int64_t dim_value_term(const char **at, const int64_t *symbols) {
  int64_t value = dim_value_atom(at, symbols);
  while (**at == '*') {
    ++*at;
    value *= dim_value_atom(at, symbols);
  }
  while (strncmp(*at, "//", 2) == 0) {
    *at += 2;
    const int64_t by = dim_value_number(at);
    value = (value - (value % by + by) % by) / by;
  }
  return value;
}

static int64_t dim_value_sum(const char **at, const int64_t *symbols) {
  int64_t value = 0;
  bool minus = **at == '-';
  *at += minus;
  for (;;) {
    const int64_t term = dim_value_term(at, symbols);
    value += minus ? -term : term;
    if (strncmp(*at, " + ", 3) != 0 && strncmp(*at, " - ", 3) != 0) return value;
    minus = (*at)[1] == '-';
    *at += 3;
  }
}

/* `d` is known; `symbols` has all that stand in it. */
static int64_t dim_value(kiln_arena *arena, const kiln_dims *dims, kiln_dim d,
                         const int64_t *symbols) {
  kiln_text text = kiln_text_in(arena);
  kiln_dim_print(&text, dims, d);
  const char *at = text.data;
  const int64_t value = dim_value_sum(&at, symbols);
  assert_int_equal(*at, 0);
  return value;
}
