/* lexer.h: tokens of the printed TorchScript dialect and of the Python subset around it.
 *
 * Lines inside brackets join; indentation gives INDENT and DEDENT. A token's text is in the source,
 * except a string's, which is unescaped into the arena. Reference: torch/csrc/jit/frontend/lexer.h
 * and parse_string_literal.h. */
#pragma once

#include "runtime/source.h"

typedef enum kiln_token_kind {
  KILN_TOKEN_END,
  KILN_TOKEN_NEWLINE,
  KILN_TOKEN_INDENT,
  KILN_TOKEN_DEDENT,
  KILN_TOKEN_NAME, /* keywords too */
  KILN_TOKEN_INT,  /* magnitude up to 2^63: the parser folds the sign */
  KILN_TOKEN_FLOAT,
  KILN_TOKEN_IMAGINARY,
  KILN_TOKEN_STRING,
  KILN_TOKEN_OP,
} kiln_token_kind;

/* Operators are their characters: KILN_TOKEN_OP2('*', '*'). */
#define KILN_OP2(a, b) ((uint32_t)(a) | (uint32_t)(b) << 8)
#define KILN_OP3(a, b, c) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16)

typedef struct kiln_token {
  kiln_token_kind kind;
  uint32_t op; /* of OP */
  uint32_t begin, end;
  kiln_str text; /* NAME; STRING unescaped */
  uint64_t integer;
  double number;
} kiln_token;

enum { KILN_LEXER_MAX_NESTING = 1000 };

typedef struct kiln_lexer {
  const kiln_source *source;
  kiln_arena *arena; /* for strings */
  uint32_t at;
  int brackets; /* open (, [ and { */
  int pending;  /* DEDENTs still to give */
  bool line_start;
  int indent_count;
  int indents[KILN_LEXER_MAX_NESTING];
} kiln_lexer;

/* The source has at most UINT32_MAX - 1 bytes. */
void kiln_lexer_init(kiln_lexer *lexer, kiln_arena *arena, const kiln_source *source);
kiln_status *kiln_lexer_next(kiln_lexer *lexer, kiln_token *out_token) KILN_MUST_USE;

/* KILN_INVALID_FILE at a place of the source. */
kiln_status *kiln_source_error(const kiln_source *source, uint32_t begin, const char *fmt, ...)
    KILN_PRINTF(3, 4) KILN_MUST_USE KILN__NOT_NULL;
