/* python_print.h: graphs and classes back to the source that archives hold: what the
 * python_print*.c files share.
 *
 * The dialect is that of PyTorch's printer, which PyTorch (1.4 to 2.x) and Kiln read. Reading it
 * back gives the same graph, but for names, the place of constants, and branches that a constant
 * decides. Operators lose their overload names, so each call is matched again with the arguments
 * that are written: one that would mean something else is refused (KILN_UNSUPPORTED).
 * Reference: torch/csrc/jit/serialization/python_print.cpp. */
#pragma once

#include "base/text.h"
#include "ir/unit.h"

/* -- For save.c -- */

/* "code/__torch__/m.py" and its text. */
typedef struct kiln_printed_file {
  kiln_str name;
  kiln_text text;
} kiln_printed_file;

/* Everything in the arena; constants are borrowed from the graphs. */
typedef struct kiln_printed {
  KILN_VEC(kiln_printed_file *) files;
  KILN_VEC(kiln_ivalue) constants; /* CONSTANTS.c<i> */
  int64_t version;                 /* in which the operators used have today's meaning */
} kiln_printed;

/* Prints the class of the object `root`, and all that it, or what it holds, needs. Where two
 * classes have one name, the first that is reached by attributes is printed. In `arena`. */
kiln_status *kiln__python_print(kiln_arena *arena, kiln_ivalue root,
                                kiln_printed *out) KILN_MUST_USE;

/* -- Between the files -- */

/* A definition: a class, enum, interface or NamedTuple, or else a function. */
typedef struct kiln_printed_item {
  kiln_str qualname; /* with the prefix that all names of an archive have */
  const kiln_type *type;
  kiln_function *function;
} kiln_printed_item;

typedef struct kiln_printer {
  kiln_arena *arena;
  kiln_printed *out;
  KILN_VEC(kiln_printed_item) items; /* in order of discovery */
  kiln_map known;                    /* qualname -> kiln_printer */
  kiln_map constants;                /* address of a tensor or box -> index + 1 */
  kiln_map strings;                  /* bytes of a constant string -> index + 1 */
} kiln_printer;

/* A body under way: a function, with the closures in it. */
typedef struct kiln_body {
  kiln_printer *p;
  kiln_text *text;
  const kiln_graph *graph; /* the function's, or the closure's that is being printed */
  int indent;
  kiln_map names;    /* value -> char *: what stands for it */
  kiln_map used;     /* names that are taken */
  kiln_map suffixes; /* base -> next suffix to try */
  int temporaries;
  /* Values whose expressions were read but not written yet, in order of evaluation. */
  KILN_VEC(const kiln_ir_value *) pending;
  KILN_VEC(const kiln_ir_value *) contexts; /* of the `with` that are open */
  KILN_VEC(size_t) bodies;                  /* where their text begins */
  const kiln_function *function;
} kiln_body;

/* python_print_value.c */
bool kiln__is_identifier(kiln_str name);
/* A name like `base`, which nobody has. */
char *kiln__body_name(kiln_body *b, kiln_str base);
char *kiln__body_temporary(kiln_body *b);
/* A constant as an expression; with `type`, containers are of that type. */
kiln_status *kiln__print_literal(kiln_printer *p, kiln_text *text, kiln_ivalue v,
                                 const kiln_type *type) KILN_MUST_USE;
/* A type as an annotation; what it names will be printed too. */
kiln_status *kiln__print_type(kiln_printer *p, kiln_text *text,
                              const kiln_type *type) KILN_MUST_USE;
/* The same between two texts. */
kiln_status *kiln__print_type_between(kiln_printer *p, kiln_text *text, const char *open,
                                      const kiln_type *type, const char *close) KILN_MUST_USE;
/* Definitions that will be printed. */
void kiln__need_type(kiln_printer *p, const kiln_type *type);
kiln_str kiln__need_function(kiln_printer *p, kiln_function *function);

/* python_print_expr.c: the right side of a node's statement. Operands stand in b->names. */
kiln_status *kiln__print_expression(kiln_body *b, kiln_text *text,
                                    const kiln_node *node) KILN_MUST_USE;
/* The value as an operand: its name, a constant. */
kiln_status *kiln__print_operand(kiln_body *b, kiln_text *text,
                                 const kiln_ir_value *value) KILN_MUST_USE;
kiln_status *kiln__print_operand_between(kiln_body *b, kiln_text *text, const char *open,
                                         const kiln_ir_value *value,
                                         const char *close) KILN_MUST_USE;
/* upgrade.c: the first archive version in which all overloads of "aten::div" have today's meaning,
 * 3 at least. */
int64_t kiln__upgrade_first_version(kiln_str op);

/* python_print_body.c: the names of the arguments, then the body below the `def` line. */
void kiln__body_begin(kiln_body *b, kiln_printer *p, kiln_text *text, const kiln_function *function,
                      int indent);
kiln_status *kiln__print_body(kiln_body *b) KILN_MUST_USE;
