/* parser_stmt.c: statements, functions, classes, files. */
#include "frontend/torchscript/parser.h"

static kiln_status *parse_statement(kiln_parser *p, kiln_ast **out);

static kiln_status *expect_newline(kiln_parser *p) {
  if (p->token.kind == KILN_TOKEN_END) return NULL;
  if (p->token.kind == KILN_TOKEN_NEWLINE) return kiln__parse_advance(p);
  bool semicolon;
  KILN_TRY(kiln__parse_accept_op(p, ';', &semicolon));
  if (!semicolon) return kiln__parse_unexpected(p, "the end of the line");
  if (p->token.kind == KILN_TOKEN_NEWLINE) return kiln__parse_advance(p);
  return NULL;
}

/* `:` and the statements of a block, indented or on the same line. */
static kiln_status *parse_suite(kiln_parser *p, kiln_ast **out) {
  KILN_TRY(kiln__parse_expect_op(p, ':', "':'"));
  KILN_TRY(kiln__parse_enter(p));
  uint32_t begin = p->token.begin;
  kiln_ast_list items = {0};
  kiln_ast *item;
  if (p->token.kind != KILN_TOKEN_NEWLINE) {
    KILN_TRY(parse_statement(p, &item));
    kiln_vec_push(p->arena, &items, item);
  } else {
    KILN_TRY(kiln__parse_advance(p));
    if (p->token.kind != KILN_TOKEN_INDENT) return kiln__parse_unexpected(p, "an indented block");
    KILN_TRY(kiln__parse_advance(p));
    while (p->token.kind != KILN_TOKEN_DEDENT && p->token.kind != KILN_TOKEN_END) {
      KILN_TRY(parse_statement(p, &item));
      kiln_vec_push(p->arena, &items, item);
    }
    if (p->token.kind == KILN_TOKEN_DEDENT) KILN_TRY(kiln__parse_advance(p));
  }
  p->depth--;
  return kiln__parse_make_list(p, KILN_AST_BLOCK, begin, &items, out);
}

/* -- Compound statements -- */

static kiln_status *parse_if(kiln_parser *p, kiln_ast **out) {
  kiln_ast *node = kiln__parse_make(p, KILN_AST_IF, p->token.begin, 3);
  KILN_TRY(kiln__parse_enter(p));
  KILN_TRY(kiln__parse_advance(p)); /* if, elif */
  KILN_TRY(kiln__parse_expression(p, &node->kids[0]));
  KILN_TRY(parse_suite(p, &node->kids[1]));
  if (kiln__parse_at_word(p, "elif")) {
    kiln_ast_list one = {0};
    uint32_t begin = p->token.begin;
    kiln_ast *inner;
    KILN_TRY(parse_if(p, &inner));
    kiln_vec_push(p->arena, &one, inner);
    KILN_TRY(kiln__parse_make_list(p, KILN_AST_BLOCK, begin, &one, &node->kids[2]));
  } else if (kiln__parse_at_word(p, "else")) {
    KILN_TRY(kiln__parse_advance(p));
    KILN_TRY(parse_suite(p, &node->kids[2]));
  }
  p->depth--;
  return kiln__parse_finish(p, node, out);
}

static kiln_status *parse_for(kiln_parser *p, kiln_ast **out) {
  kiln_ast *node = kiln__parse_make(p, KILN_AST_FOR, p->token.begin, 3);
  KILN_TRY(kiln__parse_advance(p));
  KILN_TRY(kiln__parse_target_list(p, &node->kids[0]));
  KILN_TRY(kiln__parse_expect_word(p, "in"));
  KILN_TRY(kiln__parse_expression_list(p, &node->kids[1]));
  KILN_TRY(parse_suite(p, &node->kids[2]));
  return kiln__parse_finish(p, node, out);
}

static kiln_status *parse_while(kiln_parser *p, kiln_ast **out) {
  kiln_ast *node = kiln__parse_make(p, KILN_AST_WHILE, p->token.begin, 2);
  KILN_TRY(kiln__parse_advance(p));
  KILN_TRY(kiln__parse_expression(p, &node->kids[0]));
  KILN_TRY(parse_suite(p, &node->kids[1]));
  return kiln__parse_finish(p, node, out);
}

static kiln_status *parse_with(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_ast_list items = {0};
  kiln_vec_push(p->arena, &items, NULL); /* the body's place */
  bool comma;
  KILN_TRY(kiln__parse_advance(p));
  do {
    kiln_ast *context, *target = NULL;
    KILN_TRY(kiln__parse_expression(p, &context));
    if (kiln__parse_at_word(p, "as")) {
      KILN_TRY(kiln__parse_advance(p));
      KILN_TRY(kiln__parse_postfix(p, &target));
    }
    kiln_vec_push(p->arena, &items, context);
    kiln_vec_push(p->arena, &items, target);
    KILN_TRY(kiln__parse_accept_op(p, ',', &comma));
  } while (comma);
  KILN_TRY(parse_suite(p, &items.data[0]));
  return kiln__parse_make_list(p, KILN_AST_WITH, begin, &items, out);
}

/* -- Functions and classes -- */

static kiln_status *parse_param(kiln_parser *p, bool keyword_only, kiln_ast **out) {
  kiln_ast *node = kiln__parse_make(p, KILN_AST_PARAM, p->token.begin, 2);
  node->op = keyword_only;
  bool found;
  KILN_TRY(kiln__parse_expect_name(p, &node->text));
  KILN_TRY(kiln__parse_accept_op(p, ':', &found));
  if (found) KILN_TRY(kiln__parse_expression(p, &node->kids[0]));
  KILN_TRY(kiln__parse_accept_op(p, '=', &found));
  if (found) KILN_TRY(kiln__parse_expression(p, &node->kids[1]));
  return kiln__parse_finish(p, node, out);
}

static kiln_status *parse_def(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_ast_list items = {0};
  kiln_str name;
  bool found, keyword_only = false;
  kiln_vec_push(p->arena, &items, NULL); /* return type */
  kiln_vec_push(p->arena, &items, NULL); /* body */
  KILN_TRY(kiln__parse_advance(p));
  KILN_TRY(kiln__parse_expect_name(p, &name));
  KILN_TRY(kiln__parse_expect_op(p, '(', "'('"));
  while (!kiln__parse_at_op(p, ')')) {
    if (!keyword_only && kiln__parse_at_op(p, '*')) {
      keyword_only = true;
      KILN_TRY(kiln__parse_advance(p));
    } else {
      kiln_ast *param;
      KILN_TRY(parse_param(p, keyword_only, &param));
      kiln_vec_push(p->arena, &items, param);
    }
    KILN_TRY(kiln__parse_accept_op(p, ',', &found));
    if (!found) break;
  }
  KILN_TRY(kiln__parse_expect_op(p, ')', "')'"));
  KILN_TRY(kiln__parse_accept_op(p, KILN_OP2('-', '>'), &found));
  if (found) KILN_TRY(kiln__parse_expression(p, &items.data[0]));
  KILN_TRY(parse_suite(p, &items.data[1]));
  KILN_TRY(kiln__parse_make_list(p, KILN_AST_DEF, begin, &items, out));
  (*out)->text = name;
  return NULL;
}

static kiln_status *parse_class(kiln_parser *p, kiln_ast **out) {
  kiln_ast *node = kiln__parse_make(p, KILN_AST_CLASS, p->token.begin, 2);
  KILN_TRY(kiln__parse_advance(p));
  KILN_TRY(kiln__parse_expect_name(p, &node->text));
  bool found;
  KILN_TRY(kiln__parse_accept_op(p, '(', &found));
  if (found) {
    if (!kiln__parse_at_op(p, ')')) KILN_TRY(kiln__parse_expression(p, &node->kids[0]));
    KILN_TRY(kiln__parse_expect_op(p, ')', "')'"));
  }
  KILN_TRY(parse_suite(p, &node->kids[1]));
  return kiln__parse_finish(p, node, out);
}

/* -- Simple statements -- */

static bool augmented_operator(const kiln_parser *p, uint32_t *out_op) {
  if (p->token.kind != KILN_TOKEN_OP) return false;
  switch (p->token.op) {
    case KILN_OP2('+', '='):
    case KILN_OP2('-', '='):
    case KILN_OP2('*', '='):
    case KILN_OP2('/', '='):
    case KILN_OP2('%', '='):
    case KILN_OP2('@', '='):
    case KILN_OP2('&', '='):
    case KILN_OP2('|', '='):
    case KILN_OP2('^', '='): *out_op = p->token.op & 0xff; return true;
    case KILN_OP3('*', '*', '='):
    case KILN_OP3('/', '/', '='):
    case KILN_OP3('<', '<', '='):
    case KILN_OP3('>', '>', '='): *out_op = p->token.op & 0xffff; return true;
    default: return false;
  }
}

/* An expression, or what it turns out to begin: assignment, declaration, augmented assignment. */
static kiln_status *parse_expression_statement(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin, op;
  kiln_ast *first, *type = NULL;
  KILN_TRY(kiln__parse_expression_list(p, &first));
  if (augmented_operator(p, &op)) {
    kiln_ast *node = kiln__parse_make(p, KILN_AST_AUGMENTED, begin, 2);
    node->op = op;
    node->kids[0] = first;
    KILN_TRY(kiln__parse_advance(p));
    KILN_TRY(kiln__parse_expression_list(p, &node->kids[1]));
    return kiln__parse_finish(p, node, out);
  }
  bool found;
  KILN_TRY(kiln__parse_accept_op(p, ':', &found));
  if (found) {
    KILN_TRY(kiln__parse_expression(p, &type));
    if (!kiln__parse_at_op(p, '=')) {
      kiln_ast *node = kiln__parse_make(p, KILN_AST_DECLARE, begin, 2);
      node->kids[0] = first;
      node->kids[1] = type;
      return kiln__parse_finish(p, node, out);
    }
  }
  kiln_ast_list items = {0};
  kiln_vec_push(p->arena, &items, NULL);
  kiln_vec_push(p->arena, &items, type);
  kiln_ast *last = first;
  while (kiln__parse_at_op(p, '=')) {
    kiln_vec_push(p->arena, &items, last);
    KILN_TRY(kiln__parse_advance(p));
    KILN_TRY(kiln__parse_expression_list(p, &last));
  }
  if (items.count == 2) {
    kiln_ast *node = kiln__parse_make(p, KILN_AST_EXPR, begin, 1);
    node->kids[0] = first;
    return kiln__parse_finish(p, node, out);
  }
  items.data[0] = last;
  return kiln__parse_make_list(p, KILN_AST_ASSIGN, begin, &items, out);
}

static bool at_end_of_statement(const kiln_parser *p) {
  return p->token.kind == KILN_TOKEN_NEWLINE || p->token.kind == KILN_TOKEN_END ||
         kiln__parse_at_op(p, ';');
}

/* A word with up to `max` expressions after it, the rest NULL. */
static kiln_status *parse_word_statement(kiln_parser *p, kiln_ast_kind kind, int max,
                                         kiln_ast **out) {
  kiln_ast *node = kiln__parse_make(p, kind, p->token.begin, max);
  KILN_TRY(kiln__parse_advance(p));
  for (int i = 0; i < max && !at_end_of_statement(p); i++) {
    if (kind == KILN_AST_RETURN) {
      KILN_TRY(kiln__parse_expression_list(p, &node->kids[i]));
    } else {
      KILN_TRY(kiln__parse_expression(p, &node->kids[i]));
    }
    bool comma;
    KILN_TRY(kiln__parse_accept_op(p, ',', &comma));
    if (!comma) break;
  }
  if (kind == KILN_AST_ASSERT && !node->kids[0]) {
    return kiln__parse_unexpected(p, "an expression");
  }
  return kiln__parse_finish(p, node, out);
}

static kiln_status *parse_delete(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_ast_list items = {0};
  bool comma;
  KILN_TRY(kiln__parse_advance(p));
  do {
    kiln_ast *item;
    KILN_TRY(kiln__parse_postfix(p, &item));
    kiln_vec_push(p->arena, &items, item);
    KILN_TRY(kiln__parse_accept_op(p, ',', &comma));
  } while (comma);
  return kiln__parse_make_list(p, KILN_AST_DELETE, begin, &items, out);
}

/* `import a.b as c`, `from a import b`: read over. */
static kiln_status *parse_import(kiln_parser *p, kiln_ast **out) {
  kiln_ast *node = kiln__parse_make(p, KILN_AST_IMPORT, p->token.begin, 0);
  while (!at_end_of_statement(p)) KILN_TRY(kiln__parse_advance(p));
  return kiln__parse_finish(p, node, out);
}

typedef kiln_status *(*statement_parser)(kiln_parser *p, kiln_ast **out);

static kiln_status *parse_statement(kiln_parser *p, kiln_ast **out) {
  static const struct {
    const char *word;
    statement_parser parse;
  } compound[] = {{"if", parse_if},     {"for", parse_for}, {"while", parse_while},
                  {"with", parse_with}, {"def", parse_def}, {"class", parse_class}};
  static const struct {
    const char *word;
    kiln_ast_kind kind;
    int max;
  } words[] = {{"return", KILN_AST_RETURN, 1}, {"raise", KILN_AST_RAISE, 1},
               {"assert", KILN_AST_ASSERT, 2}, {"pass", KILN_AST_PASS, 0},
               {"break", KILN_AST_BREAK, 0},   {"continue", KILN_AST_CONTINUE, 0}};
  if (p->token.kind == KILN_TOKEN_NAME) {
    for (size_t i = 0; i < sizeof compound / sizeof *compound; i++) {
      if (!kiln__parse_at_word(p, compound[i].word)) continue;
      KILN_TRY(kiln__parse_enter(p));
      KILN_TRY(compound[i].parse(p, out));
      p->depth--;
      return NULL;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
      if (!kiln__parse_at_word(p, words[i].word)) continue;
      KILN_TRY(parse_word_statement(p, words[i].kind, words[i].max, out));
      return expect_newline(p);
    }
  }
  if (kiln__parse_at_word(p, "import") || kiln__parse_at_word(p, "from")) {
    KILN_TRY(parse_import(p, out));
  } else if (kiln__parse_at_word(p, "del")) {
    KILN_TRY(parse_delete(p, out));
  } else {
    KILN_TRY(parse_expression_statement(p, out));
  }
  return expect_newline(p);
}

kiln_status *kiln_ast_parse(kiln_arena *arena, const kiln_source *source,
                            const kiln_ast_check *check, kiln_ast **out_file) {
  kiln_parser *p = KILN_NEW(arena, kiln_parser);
  kiln_ast_list items = {0};
  KILN_TRY(kiln__parse_begin(p, arena, source, check));
  while (p->token.kind != KILN_TOKEN_END) {
    kiln_ast *item;
    if (p->token.kind == KILN_TOKEN_NEWLINE) {
      KILN_TRY(kiln__parse_advance(p));
      continue;
    }
    KILN_TRY(parse_statement(p, &item));
    kiln_vec_push(arena, &items, item);
  }
  return kiln__parse_make_list(p, KILN_AST_BLOCK, 0, &items, out_file);
}
