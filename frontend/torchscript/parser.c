/* parser.c: expressions: recursive descent, with precedence climbing (Pratt) for operators.
 *
 * Reference for what is accepted: torch/csrc/jit/frontend/parser.cpp. Depth is counted while
 * descending and in the finished tree (left-deep chains), so no input exhausts the C stack. */
#include "frontend/torchscript/parser.h"

enum { TOKENS_PER_CHECK = 1024 };

/* -- Tokens -- */

kiln_status *kiln__parse_begin(kiln_parser *p, kiln_arena *arena, const kiln_source *source,
                               const kiln_ast_check *check) {
  memset(p, 0, sizeof *p);
  p->arena = arena;
  p->source = source;
  p->check = check;
  kiln_lexer_init(&p->lexer, arena, source);
  return kiln__parse_advance(p);
}

kiln_status *kiln__parse_advance(kiln_parser *p) {
  if (p->check && ++p->tokens % TOKENS_PER_CHECK == 0) KILN_TRY(p->check->fn(p->check->user));
  p->last_end = p->token.end;
  return kiln_lexer_next(&p->lexer, &p->token);
}

bool kiln__parse_at_op(const kiln_parser *p, uint32_t op) {
  return p->token.kind == KILN_TOKEN_OP && p->token.op == op;
}

bool kiln__parse_at_word(const kiln_parser *p, const char *word) {
  return p->token.kind == KILN_TOKEN_NAME && kiln_str_is(p->token.text, word);
}

static const char *describe(kiln_parser *p) {
  switch (p->token.kind) {
    case KILN_TOKEN_END: return "the end of the file";
    case KILN_TOKEN_NEWLINE: return "the end of the line";
    case KILN_TOKEN_INDENT: return "a deeper indentation";
    case KILN_TOKEN_DEDENT: return "the end of the block";
    default: break;
  }
  int length = (int)(p->token.end - p->token.begin);
  return kiln_arena_printf(p->arena, "'%.*s'", length > 60 ? 60 : length,
                           p->source->text.data + p->token.begin);
}

kiln_status *kiln__parse_unexpected(kiln_parser *p, const char *wanted) {
  return kiln_source_error(p->source, p->token.begin, "syntax error: expected %s but found %s",
                           wanted, describe(p));
}

kiln_status *kiln__parse_expect_op(kiln_parser *p, uint32_t op, const char *name) {
  if (!kiln__parse_at_op(p, op)) return kiln__parse_unexpected(p, name);
  return kiln__parse_advance(p);
}

kiln_status *kiln__parse_expect_word(kiln_parser *p, const char *word) {
  if (kiln__parse_at_word(p, word)) return kiln__parse_advance(p);
  return kiln__parse_unexpected(p, kiln_arena_printf(p->arena, "'%s'", word));
}

kiln_status *kiln__parse_accept_op(kiln_parser *p, uint32_t op, bool *out_found) {
  *out_found = kiln__parse_at_op(p, op);
  return *out_found ? kiln__parse_advance(p) : NULL;
}

bool kiln__parse_is_keyword(kiln_str name) {
  static const char *const words[] = {
      "and",  "as",    "assert", "break", "class",  "continue", "def",    "del",     "elif", "else",
      "for",  "from",  "global", "if",    "import", "in",       "is",     "lambda",  "not",  "or",
      "pass", "raise", "return", "while", "with",   "try",      "except", "finally", "yield"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (name.len && name.data[0] == words[i][0] && kiln_str_is(name, words[i])) return true;
  }
  return false;
}

kiln_status *kiln__parse_expect_name(kiln_parser *p, kiln_str *out_name) {
  if (p->token.kind != KILN_TOKEN_NAME || kiln__parse_is_keyword(p->token.text)) {
    return kiln__parse_unexpected(p, "a name");
  }
  *out_name = p->token.text;
  return kiln__parse_advance(p);
}

/* -- Nodes -- */

kiln_ast *kiln__parse_make(kiln_parser *p, kiln_ast_kind kind, uint32_t begin, int count) {
  kiln_ast *node = KILN_NEW(p->arena, kiln_ast);
  node->kind = (uint8_t)kind;
  node->begin = begin;
  node->end = p->last_end;
  node->count = count;
  node->kids = count ? KILN_NEW_ARRAY(p->arena, kiln_ast *, count) : NULL;
  return node;
}

/* Ends a node whose children are set: its depth and its end. */
kiln_status *kiln__parse_finish(kiln_parser *p, kiln_ast *node, kiln_ast **out_node) {
  int depth = 0;
  for (int i = 0; i < node->count; i++) {
    if (node->kids[i] && node->kids[i]->depth > depth) depth = node->kids[i]->depth;
  }
  if (depth + 1 > KILN_AST_MAX_DEPTH) {
    return kiln_source_error(p->source, node->begin, "the source is nested deeper than %d",
                             KILN_AST_MAX_DEPTH);
  }
  node->depth = (uint16_t)(depth + 1);
  node->end = p->last_end;
  *out_node = node;
  return NULL;
}

kiln_status *kiln__parse_make_list(kiln_parser *p, kiln_ast_kind kind, uint32_t begin,
                                   const kiln_ast_list *items, kiln_ast **out_node) {
  kiln_ast *node = kiln__parse_make(p, kind, begin, items->count);
  for (int i = 0; i < items->count; i++) node->kids[i] = items->data[i];
  return kiln__parse_finish(p, node, out_node);
}

static kiln_status *make2(kiln_parser *p, kiln_ast_kind kind, uint32_t op, kiln_ast *a, kiln_ast *b,
                          kiln_ast **out_node) {
  kiln_ast *node = kiln__parse_make(p, kind, a->begin, 2);
  node->op = op;
  node->kids[0] = a;
  node->kids[1] = b;
  return kiln__parse_finish(p, node, out_node);
}

kiln_status *kiln__parse_enter(kiln_parser *p) {
  if (++p->depth > KILN_AST_MAX_DEPTH) {
    return kiln_source_error(p->source, p->token.begin, "the source is nested deeper than %d",
                             KILN_AST_MAX_DEPTH);
  }
  return NULL;
}

/* -- Expressions -- */

static kiln_status *parse_binary(kiln_parser *p, int min_level, kiln_ast **out);

/* `for TARGET in ITERABLE [if CONDITION]` and the closing bracket of a comprehension, whose
 * element, or key and value, `items` has. */
static kiln_status *parse_comprehension(kiln_parser *p, kiln_ast_kind kind, uint32_t begin,
                                        kiln_ast_list *items, kiln_ast **out) {
  kiln_ast *target, *iterable, *condition = NULL;
  KILN_TRY(kiln__parse_enter(p));
  KILN_TRY(kiln__parse_advance(p)); /* for */
  KILN_TRY(kiln__parse_target_list(p, &target));
  KILN_TRY(kiln__parse_expect_word(p, "in"));
  KILN_TRY(parse_binary(p, 0, &iterable));
  if (kiln__parse_at_word(p, "if")) {
    KILN_TRY(kiln__parse_advance(p));
    KILN_TRY(parse_binary(p, 0, &condition));
  }
  p->depth--;
  kiln_vec_push(p->arena, items, target);
  kiln_vec_push(p->arena, items, iterable);
  kiln_vec_push(p->arena, items, condition);
  const bool dict = kind == KILN_AST_DICT_COMP;
  KILN_TRY(kiln__parse_expect_op(p, dict ? '}' : ']', dict ? "'}'" : "']'"));
  return kiln__parse_make_list(p, kind, begin, items, out);
}

/* What stands between commas, and the bracket that closes it; a trailing comma is allowed. */
static kiln_status *parse_between(kiln_parser *p, char close,
                                  kiln_status *(*parse)(kiln_parser *p, kiln_ast **out),
                                  kiln_ast_list *items, bool *out_trailing_comma) {
  *out_trailing_comma = false;
  while (!kiln__parse_at_op(p, (uint32_t)close)) {
    kiln_ast *item = NULL;
    KILN_TRY(parse(p, &item));
    kiln_vec_push(p->arena, items, item);
    KILN_TRY(kiln__parse_accept_op(p, ',', out_trailing_comma));
    if (!*out_trailing_comma) break;
  }
  return kiln__parse_expect_op(p, (uint32_t)close, (char[]){'\'', close, '\'', 0});
}

/* A lone expression without a comma is itself. */
static kiln_status *one_or_tuple(kiln_parser *p, uint32_t begin, const kiln_ast_list *items,
                                 bool comma, kiln_ast **out) {
  *out = items->count == 1 ? items->data[0] : NULL;
  if (*out && !comma) return NULL;
  return kiln__parse_make_list(p, KILN_AST_TUPLE, begin, items, out);
}

static kiln_status *parse_parenthesis(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_ast_list items = {0};
  bool trailing;
  KILN_TRY(kiln__parse_advance(p));
  KILN_TRY(parse_between(p, ')', kiln__parse_expression, &items, &trailing));
  return one_or_tuple(p, begin, &items, trailing, out);
}

static kiln_status *parse_list(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_ast_list items = {0};
  KILN_TRY(kiln__parse_advance(p));
  if (!kiln__parse_at_op(p, ']')) {
    kiln_ast *first;
    KILN_TRY(kiln__parse_expression(p, &first));
    kiln_vec_push(p->arena, &items, first);
    if (kiln__parse_at_word(p, "for")) {
      return parse_comprehension(p, KILN_AST_LIST_COMP, begin, &items, out);
    }
    bool comma;
    KILN_TRY(kiln__parse_accept_op(p, ',', &comma));
    if (!comma && !kiln__parse_at_op(p, ']')) return kiln__parse_unexpected(p, "',' or ']'");
  }
  bool trailing;
  KILN_TRY(parse_between(p, ']', kiln__parse_expression, &items, &trailing));
  return kiln__parse_make_list(p, KILN_AST_LIST, begin, &items, out);
}

static kiln_status *parse_dict(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_ast_list items = {0};
  KILN_TRY(kiln__parse_advance(p));
  while (!kiln__parse_at_op(p, '}')) {
    kiln_ast *key, *value;
    KILN_TRY(kiln__parse_expression(p, &key));
    KILN_TRY(kiln__parse_expect_op(p, ':', "':'"));
    KILN_TRY(kiln__parse_expression(p, &value));
    kiln_vec_push(p->arena, &items, key);
    kiln_vec_push(p->arena, &items, value);
    if (items.count == 2 && kiln__parse_at_word(p, "for")) {
      return parse_comprehension(p, KILN_AST_DICT_COMP, begin, &items, out);
    }
    bool comma;
    KILN_TRY(kiln__parse_accept_op(p, ',', &comma));
    if (!comma) break;
  }
  KILN_TRY(kiln__parse_expect_op(p, '}', "'}'"));
  return kiln__parse_make_list(p, KILN_AST_DICT, begin, &items, out);
}

static kiln_status *parse_strings(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_text text;
  kiln_str whole = p->token.text;
  KILN_TRY(kiln__parse_advance(p));
  if (p->token.kind == KILN_TOKEN_STRING) { /* adjacent literals are one */
    text = kiln_text_in(p->arena);
    kiln_text_put(&text, whole);
    while (p->token.kind == KILN_TOKEN_STRING) {
      kiln_text_put(&text, p->token.text);
      KILN_TRY(kiln__parse_advance(p));
    }
    whole = kiln_text_str(&text);
  }
  kiln_ast *node = kiln__parse_make(p, KILN_AST_STRING, begin, 0);
  node->text = whole;
  return kiln__parse_finish(p, node, out);
}

/* `sign` is -1 after a minus, so that -9223372036854775808 is in range. */
static kiln_status *parse_number(kiln_parser *p, int sign, kiln_ast **out) {
  kiln_token token = p->token;
  KILN_TRY(kiln__parse_advance(p));
  kiln_ast *node = kiln__parse_make(p, KILN_AST_INT, token.begin, 0);
  if (token.kind == KILN_TOKEN_INT) {
    uint64_t limit = sign < 0 ? (uint64_t)1 << 63 : INT64_MAX;
    if (token.integer > limit) {
      return kiln_source_error(p->source, token.begin, "an integer beyond 64 bits");
    }
    node->u.integer = (int64_t)(sign < 0 ? 0 - token.integer : token.integer);
  } else {
    node->kind = token.kind == KILN_TOKEN_FLOAT ? KILN_AST_FLOAT : KILN_AST_IMAGINARY;
    node->u.number = sign < 0 ? -token.number : token.number;
  }
  return kiln__parse_finish(p, node, out);
}

static kiln_status *parse_word(kiln_parser *p, kiln_ast **out) {
  kiln_token token = p->token;
  if (kiln__parse_is_keyword(token.text)) return kiln__parse_unexpected(p, "an expression");
  KILN_TRY(kiln__parse_advance(p));
  kiln_ast_kind kind = kiln_str_is(token.text, "True")    ? KILN_AST_TRUE
                       : kiln_str_is(token.text, "False") ? KILN_AST_FALSE
                       : kiln_str_is(token.text, "None")  ? KILN_AST_NONE
                                                          : KILN_AST_NAME;
  kiln_ast *node = kiln__parse_make(p, kind, token.begin, 0);
  node->text = token.text;
  return kiln__parse_finish(p, node, out);
}

static kiln_status *parse_primary(kiln_parser *p, kiln_ast **out) {
  switch (p->token.kind) {
    case KILN_TOKEN_NAME: return parse_word(p, out);
    case KILN_TOKEN_INT:
    case KILN_TOKEN_FLOAT:
    case KILN_TOKEN_IMAGINARY: return parse_number(p, 1, out);
    case KILN_TOKEN_STRING: return parse_strings(p, out);
    default: break;
  }
  if (kiln__parse_at_op(p, '(')) return parse_parenthesis(p, out);
  if (kiln__parse_at_op(p, '[')) return parse_list(p, out);
  if (kiln__parse_at_op(p, '{')) return parse_dict(p, out);
  if (kiln__parse_at_op(p, KILN_OP3('.', '.', '.'))) {
    uint32_t begin = p->token.begin;
    KILN_TRY(kiln__parse_advance(p));
    return kiln__parse_finish(p, kiln__parse_make(p, KILN_AST_ELLIPSIS, begin, 0), out);
  }
  return kiln__parse_unexpected(p, "an expression");
}

/* One argument of a call: value, name=value or *value. */
static kiln_status *parse_argument(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_ast *value;
  bool star;
  KILN_TRY(kiln__parse_accept_op(p, '*', &star));
  KILN_TRY(kiln__parse_expression(p, &value));
  kiln_ast *node;
  if (star) {
    node = kiln__parse_make(p, KILN_AST_STAR, begin, 1);
    node->kids[0] = value;
  } else if (kiln__parse_at_op(p, '=') && value->kind == KILN_AST_NAME) {
    node = kiln__parse_make(p, KILN_AST_KEYWORD, begin, 1);
    node->text = value->text;
    KILN_TRY(kiln__parse_advance(p));
    KILN_TRY(kiln__parse_expression(p, &node->kids[0]));
  } else {
    *out = value;
    return NULL;
  }
  return kiln__parse_finish(p, node, out);
}

static kiln_status *parse_call(kiln_parser *p, kiln_ast *callee, kiln_ast **out) {
  kiln_ast_list items = {0};
  kiln_vec_push(p->arena, &items, callee);
  KILN_TRY(kiln__parse_advance(p));
  bool trailing;
  KILN_TRY(parse_between(p, ')', parse_argument, &items, &trailing));
  return kiln__parse_make_list(p, KILN_AST_CALL, callee->begin, &items, out);
}

static kiln_status *parse_subscript(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_ast *parts[3] = {NULL, NULL, NULL};
  bool colon = false;
  if (!kiln__parse_at_op(p, ':')) KILN_TRY(kiln__parse_expression(p, &parts[0]));
  KILN_TRY(kiln__parse_accept_op(p, ':', &colon));
  if (!colon) {
    *out = parts[0];
    return NULL;
  }
  for (int i = 1; i < 3; i++) {
    if (!kiln__parse_at_op(p, ':') && !kiln__parse_at_op(p, ',') && !kiln__parse_at_op(p, ']')) {
      KILN_TRY(kiln__parse_expression(p, &parts[i]));
    }
    if (i == 1) {
      KILN_TRY(kiln__parse_accept_op(p, ':', &colon));
      if (!colon) break;
    }
  }
  kiln_ast *node = kiln__parse_make(p, KILN_AST_SLICE, begin, 3);
  for (int i = 0; i < 3; i++) node->kids[i] = parts[i];
  return kiln__parse_finish(p, node, out);
}

static kiln_status *parse_index(kiln_parser *p, kiln_ast *object, kiln_ast **out) {
  kiln_ast_list items = {0};
  kiln_vec_push(p->arena, &items, object);
  KILN_TRY(kiln__parse_advance(p));
  bool trailing;
  if (kiln__parse_at_op(p, ']')) return kiln__parse_unexpected(p, "a subscript");
  KILN_TRY(parse_between(p, ']', parse_subscript, &items, &trailing));
  return kiln__parse_make_list(p, KILN_AST_INDEX, object->begin, &items, out);
}

kiln_status *kiln__parse_postfix(kiln_parser *p, kiln_ast **out) {
  kiln_ast *node;
  KILN_TRY(parse_primary(p, &node));
  for (;;) {
    if (kiln__parse_at_op(p, '.')) {
      KILN_TRY(kiln__parse_advance(p));
      kiln_ast *attr = kiln__parse_make(p, KILN_AST_ATTR, node->begin, 1);
      attr->kids[0] = node;
      if (p->token.kind != KILN_TOKEN_NAME) return kiln__parse_unexpected(p, "a name");
      attr->text = p->token.text; /* keywords too: torch.__and__ is fine, so is x.is */
      KILN_TRY(kiln__parse_advance(p));
      KILN_TRY(kiln__parse_finish(p, attr, &node));
    } else if (kiln__parse_at_op(p, '(')) {
      KILN_TRY(parse_call(p, node, &node));
    } else if (kiln__parse_at_op(p, '[')) {
      KILN_TRY(parse_index(p, node, &node));
    } else {
      *out = node;
      return NULL;
    }
  }
}

/* Levels of binary operators, from the loosest; 0 to 3 are or, and, not, comparisons. */
enum { LEVEL_OR, LEVEL_AND, LEVEL_NOT, LEVEL_COMPARE, LEVEL_BITOR, LEVEL_UNARY = 10, LEVEL_POWER };

static int binary_level(const kiln_parser *p) {
  if (p->token.kind != KILN_TOKEN_OP) return -1;
  switch (p->token.op) {
    case '|': return LEVEL_BITOR;
    case '^': return LEVEL_BITOR + 1;
    case '&': return LEVEL_BITOR + 2;
    case KILN_OP2('<', '<'):
    case KILN_OP2('>', '>'): return LEVEL_BITOR + 3;
    case '+':
    case '-': return LEVEL_BITOR + 4;
    case '*':
    case '/':
    case '%':
    case '@':
    case KILN_OP2('/', '/'): return LEVEL_BITOR + 5;
    case KILN_OP2('*', '*'): return LEVEL_POWER;
    default: return -1;
  }
}

static kiln_status *parse_power(kiln_parser *p, kiln_ast **out);

/* -x, +x, ~x; a minus before a number literal belongs to it. */
static kiln_status *parse_unary(kiln_parser *p, kiln_ast **out) {
  if (!kiln__parse_at_op(p, '-') && !kiln__parse_at_op(p, '+') && !kiln__parse_at_op(p, '~'))
    return parse_power(p, out);
  uint32_t op = p->token.op, begin = p->token.begin;
  KILN_TRY(kiln__parse_enter(p));
  KILN_TRY(kiln__parse_advance(p));
  kiln_ast *value;
  bool number = p->token.kind == KILN_TOKEN_INT || p->token.kind == KILN_TOKEN_FLOAT;
  if (op == '-' && number) {
    KILN_TRY(parse_number(p, -1, &value));
    if (!kiln__parse_at_op(p, KILN_OP2('*', '*')) && !kiln__parse_at_op(p, '.') &&
        !kiln__parse_at_op(p, '[')) {
      value->begin = begin;
      p->depth--;
      *out = value;
      return NULL;
    }
    /* -2 ** x is -(2 ** x): give the sign back. */
    if (value->kind == KILN_AST_INT) {
      if (value->u.integer == INT64_MIN) {
        return kiln_source_error(p->source, begin, "an integer beyond 64 bits");
      }
      value->u.integer = -value->u.integer;
    } else {
      value->u.number = -value->u.number;
    }
    KILN_TRY(kiln__parse_advance(p));
    kiln_ast *exponent;
    KILN_TRY(parse_unary(p, &exponent));
    KILN_TRY(make2(p, KILN_AST_BINARY, KILN_OP2('*', '*'), value, exponent, &value));
  } else {
    KILN_TRY(parse_unary(p, &value));
  }
  kiln_ast *node = kiln__parse_make(p, KILN_AST_UNARY, begin, 1);
  node->op = op;
  node->kids[0] = value;
  p->depth--;
  return kiln__parse_finish(p, node, out);
}

static kiln_status *parse_power(kiln_parser *p, kiln_ast **out) {
  kiln_ast *base;
  KILN_TRY(kiln__parse_postfix(p, &base));
  if (!kiln__parse_at_op(p, KILN_OP2('*', '*'))) {
    *out = base;
    return NULL;
  }
  KILN_TRY(kiln__parse_enter(p));
  KILN_TRY(kiln__parse_advance(p));
  kiln_ast *exponent;
  KILN_TRY(parse_unary(p, &exponent)); /* right associative */
  p->depth--;
  return make2(p, KILN_AST_BINARY, KILN_OP2('*', '*'), base, exponent, out);
}

/* Reads a comparison operator: 0 when there is none. */
static kiln_status *accept_comparison(kiln_parser *p, uint32_t *out_op) {
  *out_op = 0;
  if (kiln__parse_at_word(p, "in")) {
    *out_op = KILN_COMPARE_IN;
  } else if (kiln__parse_at_word(p, "not")) {
    KILN_TRY(kiln__parse_advance(p));
    if (!kiln__parse_at_word(p, "in")) return kiln__parse_unexpected(p, "'in'");
    *out_op = KILN_COMPARE_NOT_IN;
  } else if (kiln__parse_at_word(p, "is")) {
    KILN_TRY(kiln__parse_advance(p));
    *out_op = KILN_COMPARE_IS;
    if (!kiln__parse_at_word(p, "not")) return NULL;
    *out_op = KILN_COMPARE_IS_NOT;
  } else if (p->token.kind == KILN_TOKEN_OP) {
    switch (p->token.op) {
      case '<':
      case '>':
      case KILN_OP2('<', '='):
      case KILN_OP2('>', '='):
      case KILN_OP2('=', '='):
      case KILN_OP2('!', '='): *out_op = p->token.op; break;
      default: return NULL;
    }
  } else {
    return NULL;
  }
  return kiln__parse_advance(p);
}

/* a < b < c is a < b and b < c. */
static kiln_status *parse_comparison(kiln_parser *p, kiln_ast **out) {
  kiln_ast *left, *chain = NULL;
  KILN_TRY(parse_binary(p, LEVEL_BITOR, &left));
  for (;;) {
    uint32_t op;
    kiln_ast *right, *compare = NULL;
    KILN_TRY(accept_comparison(p, &op));
    if (!op) break;
    KILN_TRY(parse_binary(p, LEVEL_BITOR, &right));
    KILN_TRY(make2(p, KILN_AST_COMPARE, op, left, right, &compare));
    if (chain) {
      KILN_TRY(make2(p, KILN_AST_AND, 0, chain, compare, &chain));
    } else {
      chain = compare;
    }
    left = right;
  }
  *out = chain ? chain : left;
  return NULL;
}

static kiln_status *parse_not(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  KILN_TRY(kiln__parse_enter(p));
  KILN_TRY(kiln__parse_advance(p));
  kiln_ast *value;
  KILN_TRY(parse_binary(p, LEVEL_NOT, &value));
  kiln_ast *node = kiln__parse_make(p, KILN_AST_NOT, begin, 1);
  node->kids[0] = value;
  p->depth--;
  return kiln__parse_finish(p, node, out);
}

/* An expression of operators at `min_level` and tighter. */
static kiln_status *parse_binary(kiln_parser *p, int min_level, kiln_ast **out) {
  kiln_ast *left;
  if (min_level <= LEVEL_AND) {
    bool is_or = min_level == LEVEL_OR;
    KILN_TRY(parse_binary(p, min_level + 1, &left));
    while (kiln__parse_at_word(p, is_or ? "or" : "and")) {
      kiln_ast *right;
      KILN_TRY(kiln__parse_advance(p));
      KILN_TRY(parse_binary(p, min_level + 1, &right));
      KILN_TRY(make2(p, is_or ? KILN_AST_OR : KILN_AST_AND, 0, left, right, &left));
    }
    *out = left;
    return NULL;
  }
  if (min_level == LEVEL_NOT && kiln__parse_at_word(p, "not")) return parse_not(p, out);
  if (min_level <= LEVEL_COMPARE) return parse_comparison(p, out);
  KILN_TRY(parse_unary(p, &left));
  for (;;) {
    int level = binary_level(p);
    if (level < min_level || level == LEVEL_POWER) break;
    uint32_t op = p->token.op;
    kiln_ast *right;
    KILN_TRY(kiln__parse_advance(p));
    KILN_TRY(parse_binary(p, level + 1, &right));
    KILN_TRY(make2(p, KILN_AST_BINARY, op, left, right, &left));
  }
  *out = left;
  return NULL;
}

/* a if c else b, over `or`. */
kiln_status *kiln__parse_expression(kiln_parser *p, kiln_ast **out) {
  KILN_TRY(kiln__parse_enter(p));
  kiln_ast *value;
  KILN_TRY(parse_binary(p, LEVEL_OR, &value));
  if (kiln__parse_at_word(p, "if")) {
    kiln_ast *node = kiln__parse_make(p, KILN_AST_TERNARY, value->begin, 3);
    KILN_TRY(kiln__parse_advance(p));
    KILN_TRY(parse_binary(p, LEVEL_OR, &node->kids[0]));
    KILN_TRY(kiln__parse_expect_word(p, "else"));
    node->kids[1] = value;
    KILN_TRY(kiln__parse_expression(p, &node->kids[2]));
    KILN_TRY(kiln__parse_finish(p, node, &value));
  }
  p->depth--;
  *out = value;
  return NULL;
}

/* a, b or a, b, without brackets: a TUPLE; a lone expression stays itself. */
kiln_status *kiln__parse_expression_list(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_ast_list items = {0};
  bool comma = false;
  do {
    kiln_ast *item;
    KILN_TRY(kiln__parse_expression(p, &item));
    kiln_vec_push(p->arena, &items, item);
    KILN_TRY(kiln__parse_accept_op(p, ',', &comma));
    /* A trailing comma ends the list. */
  } while (comma && p->token.kind != KILN_TOKEN_NEWLINE && p->token.kind != KILN_TOKEN_END &&
           !kiln__parse_at_op(p, '='));
  return one_or_tuple(p, begin, &items, comma, out);
}

/* Targets of a for: names, perhaps several or in brackets; `in` ends them. */
kiln_status *kiln__parse_target_list(kiln_parser *p, kiln_ast **out) {
  uint32_t begin = p->token.begin;
  kiln_ast_list items = {0};
  bool comma;
  do {
    kiln_ast *item;
    KILN_TRY(kiln__parse_postfix(p, &item));
    kiln_vec_push(p->arena, &items, item);
    KILN_TRY(kiln__parse_accept_op(p, ',', &comma));
  } while (comma && !kiln__parse_at_word(p, "in"));
  return one_or_tuple(p, begin, &items, comma, out);
}

kiln_status *kiln_ast_parse_expression(kiln_arena *arena, const kiln_source *source,
                                       kiln_ast **out_expr) {
  kiln_parser *p = KILN_NEW(arena, kiln_parser);
  KILN_TRY(kiln__parse_begin(p, arena, source, NULL));
  KILN_TRY(kiln__parse_expression(p, out_expr));
  if (p->token.kind == KILN_TOKEN_NEWLINE) KILN_TRY(kiln__parse_advance(p));
  return p->token.kind == KILN_TOKEN_END ? NULL : kiln__parse_unexpected(p, "the end");
}
