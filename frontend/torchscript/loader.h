/* loader.h: what the loader's files share: names to definitions (loader.c, classes.c), annotations
 * to types (resolve.c), literals to values (literal.c). emit.h stands on it.
 *
 * A load is one thread's. Source texts, classes, functions and schemas live in the unit's arena;
 * syntax trees in one that is freed when all bodies are compiled. Code files are parsed when a name
 * of theirs is first needed, classes and functions defined likewise. */
#pragma once

#include "frontend/torchscript/ast.h"
#include "frontend/torchscript/torchscript.h"
#include "frontend/zip.h"
#include "runtime/type_weight.h"

/* Parts of a type that source may make, beside 16 for each field: a type in which the same one is
 * met twice doubles with every line. */
enum { KILN_TS_MAX_TYPE_WEIGHT = 4096 };

typedef struct kiln_code_file {
  kiln_source source; /* named "code/__torch__/m.py" */
  kiln_str qualifier; /* "__torch__.m" */
  const kiln_ast *ast;
  kiln_map names; /* top-level name -> kiln_ast CLASS or DEF */
  bool builtin;   /* of Kiln, not of the archive */
  bool broken;    /* it could not be read */
} kiln_code_file;

/* A function's body until it is compiled: kiln_function.pending. */
typedef struct kiln_pending_body {
  kiln_code_file *file;
  const kiln_ast *def;
  bool schema_open;                /* its schema is being resolved */
  KILN_VEC(kiln_function *) calls; /* statically known callees, to find recursion */
  int color;
} kiln_pending_body;

typedef struct kiln_loader {
  kiln_env *env;
  const kiln_registry *registry;
  kiln_unit *unit;
  kiln_arena *arena;     /* the unit's */
  kiln_arena *ast_arena; /* for syntax trees */
  kiln_type_table *types;
  kiln_zip *zip;
  kiln_mapping *mapping;
  kiln_torchscript *model;
  kiln_map files;        /* qualifier -> kiln_code_file */
  kiln_map defining;     /* qualname of classes under way -> itself */
  kiln_ivalue constants; /* tuple of constants.pkl, borrowed from the model */
  int depth;             /* of classes that define classes */
  bool lenient;
  kiln_budget budget;
  uint64_t memory;                /* bytes that trees, graphs and objects may take together */
  size_t graph_bytes;             /* of the graphs that are done */
  size_t object_bytes;            /* of what a pickle has made */
  unsigned functions, statements; /* compiled */
} kiln_loader;

/* -- Names (loader.c) -- */

/* At most one is set. A NamedTuple is a TUPLE type. */
typedef struct kiln_found {
  const kiln_type *type;
  kiln_function *function;
} kiln_found;

/* -- Classes that are written in C++ (custom_class.c): of packed weights, mostly -- */

static inline bool kiln__is_custom_class(kiln_str qualname) {
  return kiln_str_starts(qualname, "__torch__.torch.classes.");
}
/* All that the archive's source names, "A, B"; where it names none, the one that was met. They are
 * looked for once. */
const char *kiln__custom_classes(kiln_loader *l, kiln_str qualname);
/* A class without attributes and methods, for a look at the archive. */
const kiln_type *kiln__define_custom_class(kiln_loader *l, kiln_str qualname);

/* Defines what "__torch__.m.C" names, if it names something. */
kiln_status *kiln__loader_find(kiln_loader *l, kiln_str qualname,
                               kiln_found *out_found) KILN_MUST_USE;
/* The function's schema, resolved when first asked for. */
kiln_status *kiln__loader_schema(kiln_loader *l, kiln_function *function) KILN_MUST_USE;
/* Compiles every body defined so far and those that they need. */
kiln_status *kiln__loader_compile_all(kiln_loader *l) KILN_MUST_USE;
/* KILN_LIMIT when the load's time is over, or what it has made, with `more` bytes, is too much. */
kiln_status *kiln__loader_check(const kiln_loader *l, size_t more) KILN_MUST_USE;

/* upgrade.c: what old meanings of operators are written in. The archive's own names begin with
 * "__torch__", so this qualifier is nobody else's. */
#define KILN_UPGRADE_QUALIFIER "__upgrade__"
kiln_str kiln__upgrade_source(void);

/* classes.c: defines a class of a file; *out_type is registered in the unit. */
kiln_status *kiln__define_class(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                                kiln_str qualname, const kiln_type **out_type) KILN_MUST_USE;
/* Declares a function or method whose body is `def`. */
kiln_function *kiln__declare(kiln_loader *l, kiln_code_file *file, const kiln_ast *def,
                             kiln_str qualname, const kiln_type *owner);

/* -- Types (resolve.c) -- */

kiln_status *kiln__resolve_type(kiln_loader *l, const kiln_source *source, const kiln_ast *ast,
                                const kiln_type **out_type) KILN_MUST_USE;
/* "a.b.c" of NAME and ATTR nodes into `arena`; an empty view when it is something else. */
kiln_str kiln__dotted_name(kiln_arena *arena, const kiln_ast *ast);

/* -- Literals (literal.c) -- */

/* The value of a constant expression: literals, tuples, lists, dicts, CONSTANTS, enum members.
 * Borrowed from the unit. With `type`, lists get its element type and ints become floats. */
kiln_status *kiln__eval_literal(kiln_loader *l, kiln_code_file *file, const kiln_ast *ast,
                                const kiln_type *type, kiln_ivalue *out_value) KILN_MUST_USE;
/* CONSTANTS.c<i>, borrowed. */
kiln_status *kiln__loader_constant(kiln_loader *l, const kiln_source *source, const kiln_ast *ast,
                                   kiln_ivalue *out_value) KILN_MUST_USE;

/* -- Bodies (emit.c) -- */

/* Compiles the function's body into function->graph. */
kiln_status *kiln__ts_function(kiln_loader *l, kiln_function *function) KILN_MUST_USE;
