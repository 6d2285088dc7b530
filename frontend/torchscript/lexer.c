/* lexer.c: tokens. One pass over the bytes, no lookahead beyond a token's own end. */
#include "frontend/torchscript/lexer.h"

#include <stdio.h>

kiln_status *kiln_source_error(const kiln_source *source, uint32_t begin, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  kiln_status *status = kiln_status_create_v(KILN_INVALID_FILE, __FILE__, __LINE__, fmt, args);
  va_end(args);
  kiln_source_range range = {.source = source, .begin = begin, .end = begin};
  return kiln_status_at(status, kiln_source_range_loc(&range));
}

void kiln_lexer_init(kiln_lexer *lexer, kiln_arena *arena, const kiln_source *source) {
  memset(lexer, 0, sizeof *lexer);
  lexer->source = source;
  lexer->arena = arena;
  lexer->line_start = true;
  lexer->indent_count = 1; /* column 0 */
}

enum { MAX_COLUMN = 1 << 20 }; /* beyond, indentations are taken as equal */

static int peek(const kiln_lexer *lexer, uint32_t ahead) {
  size_t at = (size_t)lexer->at + ahead;
  return at < lexer->source->text.len ? (unsigned char)lexer->source->text.data[at] : -1;
}

static bool is_name_start(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(int c) { return c >= '0' && c <= '9'; }

/* -- Spaces and lines -- */

/* Skips to the next character that matters. Returns the column when a line's first is met. */
static void skip_blank(kiln_lexer *lexer, bool *out_newline) {
  *out_newline = false;
  for (;;) {
    int c = peek(lexer, 0);
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      lexer->at++;
    } else if (c == '#') {
      while (peek(lexer, 0) != '\n' && peek(lexer, 0) >= 0) lexer->at++;
    } else if (c == '\\' && peek(lexer, 1) == '\n') {
      lexer->at += 2;
    } else if (c == '\\' && peek(lexer, 1) == '\r' && peek(lexer, 2) == '\n') {
      lexer->at += 3;
    } else if (c == '\n' && lexer->brackets > 0) {
      lexer->at++;
    } else {
      *out_newline = c == '\n';
      return;
    }
  }
}

/* The indentation of the next line that is not blank; the cursor is then on its first character. */
static int measure_indent(kiln_lexer *lexer) {
  for (;;) {
    int column = 0;
    while (peek(lexer, 0) == ' ' || peek(lexer, 0) == '\t') {
      if (column < MAX_COLUMN) column += peek(lexer, 0) == '\t' ? 8 - column % 8 : 1;
      lexer->at++;
    }
    bool newline;
    skip_blank(lexer, &newline);
    if (peek(lexer, 0) < 0) return 0;
    if (!newline) return column;
    lexer->at++;
  }
}

static kiln_status *start_line(kiln_lexer *lexer, kiln_token *out_token, bool *out_given) {
  int column = measure_indent(lexer);
  lexer->line_start = false;
  *out_given = true;
  *out_token = (kiln_token){.begin = lexer->at, .end = lexer->at};
  if (column > lexer->indents[lexer->indent_count - 1]) {
    if (lexer->indent_count == KILN_LEXER_MAX_NESTING) {
      return kiln_source_error(lexer->source, lexer->at, "blocks are nested deeper than %d",
                               KILN_LEXER_MAX_NESTING);
    }
    lexer->indents[lexer->indent_count++] = column;
    out_token->kind = KILN_TOKEN_INDENT;
    return NULL;
  }
  while (column < lexer->indents[lexer->indent_count - 1]) {
    lexer->indent_count--;
    lexer->pending++;
  }
  if (column != lexer->indents[lexer->indent_count - 1]) {
    return kiln_source_error(lexer->source, lexer->at, "the indentation fits no open block");
  }
  *out_given = false;
  return NULL;
}

/* -- Numbers -- */

static kiln_status *lex_hex(kiln_lexer *lexer, kiln_token *token) {
  uint64_t value = 0;
  uint32_t digits = 0;
  for (lexer->at += 2;; lexer->at++, digits++) {
    int c = peek(lexer, 0);
    int digit = is_digit(c)            ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
    if (digit < 0) break;
    value = value << 4 | (unsigned)digit;
  }
  if (digits == 0 || digits > 16) {
    return kiln_source_error(lexer->source, token->begin, "not a number");
  }
  token->kind = KILN_TOKEN_INT;
  token->integer = value;
  return NULL;
}

static bool parse_decimal(kiln_str text, uint64_t *out) {
  uint64_t value = 0;
  for (size_t i = 0; i < text.len; i++) {
    if (__builtin_mul_overflow(value, 10u, &value) ||
        __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value)) {
      return false;
    }
  }
  *out = value;
  return true;
}

static kiln_status *lex_number(kiln_lexer *lexer, kiln_token *token) {
  if (peek(lexer, 0) == '0' && (peek(lexer, 1) == 'x' || peek(lexer, 1) == 'X')) {
    return lex_hex(lexer, token);
  }
  bool floating = false;
  while (is_digit(peek(lexer, 0))) lexer->at++;
  if (peek(lexer, 0) == '.') {
    floating = true;
    lexer->at++;
    while (is_digit(peek(lexer, 0))) lexer->at++;
  }
  int e = peek(lexer, 0);
  if (e == 'e' || e == 'E') {
    uint32_t sign = peek(lexer, 1) == '+' || peek(lexer, 1) == '-' ? 1 : 0;
    if (is_digit(peek(lexer, 1 + sign))) {
      floating = true;
      lexer->at += 1 + sign;
      while (is_digit(peek(lexer, 0))) lexer->at++;
    }
  }
  kiln_str text = kiln_str_make(lexer->source->text.data + token->begin, lexer->at - token->begin);
  bool imaginary = peek(lexer, 0) == 'j';
  if (imaginary) lexer->at++;
  token->kind = imaginary ? KILN_TOKEN_IMAGINARY : floating ? KILN_TOKEN_FLOAT : KILN_TOKEN_INT;
  bool ok = token->kind == KILN_TOKEN_INT ? parse_decimal(text, &token->integer)
                                          : kiln_str_parse_f64(text, &token->number);
  if (!ok || is_name_start(peek(lexer, 0))) {
    return kiln_source_error(lexer->source, token->begin, "not a number, or out of range");
  }
  return NULL;
}

/* -- Strings -- */

static kiln_status *unescape(kiln_lexer *lexer, char *out) {
  static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
  int c = peek(lexer, 0);
  const char *known = c > 0 ? strchr(from, c) : NULL;
  if (known) {
    *out = to[known - from];
    lexer->at++;
    return NULL;
  }
  int value = 0;
  for (uint32_t i = 0; i < 3; i++) {
    int digit = peek(lexer, i);
    if (digit < '0' || digit > '7') {
      return kiln_source_error(lexer->source, lexer->at, "an unknown escape in a string");
    }
    value = value * 8 + (digit - '0');
  }
  if (value > 255) return kiln_source_error(lexer->source, lexer->at, "an escape beyond a byte");
  lexer->at += 3;
  *out = (char)value;
  return NULL;
}

static kiln_status *lex_string(kiln_lexer *lexer, kiln_token *token) {
  int quote = peek(lexer, 0);
  lexer->at++;
  uint32_t begin = lexer->at;
  while (peek(lexer, 0) != quote && peek(lexer, 0) >= 0 && peek(lexer, 0) != '\n') {
    lexer->at += peek(lexer, 0) == '\\' && peek(lexer, 1) >= 0 ? 2 : 1;
  }
  if (peek(lexer, 0) != quote) {
    return kiln_source_error(lexer->source, token->begin, "a string without end");
  }
  uint32_t end = lexer->at;
  char *out = kiln_arena_alloc(lexer->arena, (size_t)(end - begin) + 1);
  size_t length = 0;
  lexer->at = begin;
  while (lexer->at < end) {
    char c = lexer->source->text.data[lexer->at++];
    if (c == '\\') KILN_TRY(unescape(lexer, &c));
    out[length++] = c;
  }
  lexer->at = end + 1;
  token->kind = KILN_TOKEN_STRING;
  token->text = kiln_str_make(out, length);
  return NULL;
}

/* -- Operators -- */

static kiln_status *lex_operator(kiln_lexer *lexer, kiln_token *token) {
  static const char *const three[] = {"**=", "//=", "<<=", ">>=", "..."};
  static const char *const two[] = {"**", "//", "<<", ">>", "<=", ">=", "==", "!=", "->", "+=",
                                    "-=", "*=", "/=", "%=", "@=", "&=", "|=", "^=", ":="};
  int a = peek(lexer, 0), b = peek(lexer, 1), c = peek(lexer, 2);
  token->kind = KILN_TOKEN_OP;
  for (size_t i = 0; i < sizeof three / sizeof *three; i++) {
    if (a == three[i][0] && b == three[i][1] && c == three[i][2]) {
      token->op = KILN_OP3(a, b, c);
      lexer->at += 3;
      return NULL;
    }
  }
  for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
    if (a == two[i][0] && b == two[i][1]) {
      token->op = KILN_OP2(a, b);
      lexer->at += 2;
      return NULL;
    }
  }
  if (a <= 0 || !strchr("+-*/%@&|^~<>=()[]{},:.;", a)) {
    return kiln_source_error(lexer->source, lexer->at, "an unexpected character");
  }
  if (a == '(' || a == '[' || a == '{') lexer->brackets++;
  if ((a == ')' || a == ']' || a == '}') && lexer->brackets > 0) lexer->brackets--;
  token->op = (uint32_t)a;
  lexer->at++;
  return NULL;
}

kiln_status *kiln_lexer_next(kiln_lexer *lexer, kiln_token *out_token) {
  if (lexer->line_start && lexer->brackets == 0) {
    bool given;
    KILN_TRY(start_line(lexer, out_token, &given));
    if (given) return NULL;
  }
  if (lexer->pending > 0) {
    lexer->pending--;
    *out_token = (kiln_token){.kind = KILN_TOKEN_DEDENT, .begin = lexer->at, .end = lexer->at};
    return NULL;
  }
  bool newline;
  skip_blank(lexer, &newline);
  kiln_token token = {.begin = lexer->at};
  int c = peek(lexer, 0);
  kiln_status *status = NULL;
  if (c < 0) {
    token.kind = KILN_TOKEN_END;
  } else if (newline) {
    token.kind = KILN_TOKEN_NEWLINE;
    lexer->at++;
    lexer->line_start = true;
  } else if (is_name_start(c)) {
    while (is_name_start(peek(lexer, 0)) || is_digit(peek(lexer, 0))) lexer->at++;
    token.kind = KILN_TOKEN_NAME;
    token.text = kiln_str_make(lexer->source->text.data + token.begin, lexer->at - token.begin);
  } else if (is_digit(c) || (c == '.' && is_digit(peek(lexer, 1)))) {
    status = lex_number(lexer, &token);
  } else if (c == '"' || c == '\'') {
    status = lex_string(lexer, &token);
  } else {
    status = lex_operator(lexer, &token);
  }
  token.end = lexer->at;
  *out_token = token;
  return status;
}
