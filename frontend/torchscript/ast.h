/* ast.h: the syntax tree of a source file, and its parser.
 *
 * Nodes are uniform: a kind, a text or number, and children. Everything lives in an arena. Trees
 * are not deeper than KILN_AST_MAX_DEPTH, so that others may recurse over them. */
#pragma once

#include "frontend/torchscript/lexer.h"

enum { KILN_AST_MAX_DEPTH = 400 };

/* After each kind: its text or number, then its children; [x] may be NULL, x… any number. */
typedef enum kiln_ast_kind {
  /* -- Expressions -- */
  KILN_AST_NAME,      /* text */
  KILN_AST_INT,       /* integer */
  KILN_AST_FLOAT,     /* number */
  KILN_AST_IMAGINARY, /* number */
  KILN_AST_STRING,    /* text */
  KILN_AST_TRUE,
  KILN_AST_FALSE,
  KILN_AST_NONE,
  KILN_AST_ELLIPSIS,
  KILN_AST_ATTR,      /* text: name | object */
  KILN_AST_CALL,      /* callee, argument… (KEYWORD and STAR among them) */
  KILN_AST_KEYWORD,   /* text: name | value */
  KILN_AST_STAR,      /* *value */
  KILN_AST_INDEX,     /* object, subscript… (SLICE among them) */
  KILN_AST_SLICE,     /* [start], [stop], [step] */
  KILN_AST_TUPLE,     /* item… */
  KILN_AST_LIST,      /* item… */
  KILN_AST_DICT,      /* key, value, … */
  KILN_AST_BINARY,    /* op | left, right */
  KILN_AST_COMPARE,   /* op | left, right; `in`, `is` and their negations have ops below */
  KILN_AST_UNARY,     /* op: - + ~ | value */
  KILN_AST_NOT,       /* value */
  KILN_AST_AND,       /* left, right */
  KILN_AST_OR,        /* left, right */
  KILN_AST_TERNARY,   /* condition, then, else */
  KILN_AST_LIST_COMP, /* element, target, iterable, [condition] */
  KILN_AST_DICT_COMP, /* key, value, target, iterable, [condition] */
  /* -- Statements -- */
  KILN_AST_EXPR,      /* value */
  KILN_AST_ASSIGN,    /* value, [type], target…: chained when there are several targets */
  KILN_AST_DECLARE,   /* target, type: an annotation without value */
  KILN_AST_AUGMENTED, /* op | target, value */
  KILN_AST_IF,        /* condition, then, [else] */
  KILN_AST_FOR,       /* target, iterable, body */
  KILN_AST_WHILE,     /* condition, body */
  KILN_AST_WITH,      /* body, (context, [target])… */
  KILN_AST_RETURN,    /* [value] */
  KILN_AST_RAISE,     /* [value] */
  KILN_AST_ASSERT,    /* condition, [message] */
  KILN_AST_DELETE,    /* target… */
  KILN_AST_PASS,
  KILN_AST_BREAK,
  KILN_AST_CONTINUE,
  KILN_AST_BLOCK,  /* statement… */
  KILN_AST_DEF,    /* text: name | [return type], body, parameter… */
  KILN_AST_PARAM,  /* text: name, op 1: keyword only | [type], [default] */
  KILN_AST_CLASS,  /* text: name | [base], body */
  KILN_AST_IMPORT, /* of old archives; no meaning */
} kiln_ast_kind;

enum { KILN_COMPARE_IN = 1, KILN_COMPARE_NOT_IN, KILN_COMPARE_IS, KILN_COMPARE_IS_NOT };

typedef struct kiln_ast {
  uint8_t kind; /* kiln_ast_kind */
  uint16_t depth;
  uint32_t op;
  uint32_t begin, end; /* bytes of the source */
  int count;
  struct kiln_ast **kids;
  kiln_str text;
  union {
    int64_t integer;
    double number;
  } u;
} kiln_ast;

/* Asked now and then while parsing; an error ends it. */
typedef struct kiln_ast_check {
  kiln_status *(*fn)(void *user);
  void *user;
} kiln_ast_check;

/* A file: a BLOCK of CLASS, DEF, IMPORT and ASSIGN, in `arena`. `check` may be NULL. */
kiln_status *kiln_ast_parse(kiln_arena *arena, const kiln_source *source,
                            const kiln_ast_check *check, kiln_ast **out_file) KILN_MUST_USE;
/* One expression: a type in a pickle. */
kiln_status *kiln_ast_parse_expression(kiln_arena *arena, const kiln_source *source,
                                       kiln_ast **out_expr) KILN_MUST_USE;
