/* parser.h: what the parser's two files share: parser.c (tokens, expressions) and
 * parser_stmt.c (statements, classes). */
#pragma once

#include "frontend/torchscript/ast.h"

typedef struct kiln_parser {
  kiln_arena *arena;
  const kiln_source *source;
  kiln_lexer lexer;
  kiln_token token; /* the next one */
  uint32_t last_end;
  int depth;
  const kiln_ast_check *check; /* may be NULL */
  unsigned tokens;
} kiln_parser;

typedef KILN_VEC(kiln_ast *) kiln_ast_list;

/* Begins at the first token. */
kiln_status *kiln__parse_begin(kiln_parser *p, kiln_arena *arena, const kiln_source *source,
                               const kiln_ast_check *check) KILN_MUST_USE;
kiln_status *kiln__parse_advance(kiln_parser *p) KILN_MUST_USE;
bool kiln__parse_at_op(const kiln_parser *p, uint32_t op);
bool kiln__parse_at_word(const kiln_parser *p, const char *word);
/* "syntax error: expected WANTED but found …" */
kiln_status *kiln__parse_unexpected(kiln_parser *p,
                                    const char *wanted) KILN_MUST_USE KILN__NOT_NULL;
kiln_status *kiln__parse_expect_op(kiln_parser *p, uint32_t op, const char *name) KILN_MUST_USE;
kiln_status *kiln__parse_expect_word(kiln_parser *p, const char *word) KILN_MUST_USE;
kiln_status *kiln__parse_accept_op(kiln_parser *p, uint32_t op, bool *out_found) KILN_MUST_USE;
bool kiln__parse_is_keyword(kiln_str name);
kiln_status *kiln__parse_expect_name(kiln_parser *p, kiln_str *out_name) KILN_MUST_USE;
/* Counts a level of recursion; the caller counts it back. */
kiln_status *kiln__parse_enter(kiln_parser *p) KILN_MUST_USE;

kiln_ast *kiln__parse_make(kiln_parser *p, kiln_ast_kind kind, uint32_t begin, int count);
/* Ends a node whose children are set: its depth and its end. */
kiln_status *kiln__parse_finish(kiln_parser *p, kiln_ast *node, kiln_ast **out_node) KILN_MUST_USE;
kiln_status *kiln__parse_make_list(kiln_parser *p, kiln_ast_kind kind, uint32_t begin,
                                   const kiln_ast_list *items, kiln_ast **out_node) KILN_MUST_USE;

kiln_status *kiln__parse_expression(kiln_parser *p, kiln_ast **out) KILN_MUST_USE;
/* a, b without brackets: a TUPLE; a lone expression stays itself. */
kiln_status *kiln__parse_expression_list(kiln_parser *p, kiln_ast **out) KILN_MUST_USE;
kiln_status *kiln__parse_target_list(kiln_parser *p, kiln_ast **out) KILN_MUST_USE;
kiln_status *kiln__parse_postfix(kiln_parser *p, kiln_ast **out) KILN_MUST_USE;
