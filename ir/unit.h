/* unit.h: kiln_unit, everything that one archive's code defines: functions, classes with methods
 * (PyTorch's CompilationUnit). Made by a frontend, immutable afterwards. */
#pragma once

#include "ir/ir.h"

/* A function or method with its graph. The executor hangs on it. */
typedef struct kiln_function {
  kiln_str name;          /* "forward" */
  const char *qualname;   /* "__torch__.m.Linear.forward" */
  const kiln_type *owner; /* class of a method, NULL for a function; then arg 0 is self */
  kiln_schema *schema;
  kiln_graph *graph;                    /* NULL until its body is compiled (kiln_unit_ensure) */
  const struct kiln_callable *callable; /* filled by api from jit; what CALL instructions use */
  struct kiln_unit *unit;
  void *pending;      /* of the frontend: the parsed body; NULL when done or failed */
  kiln_status *error; /* why the body did not compile; reported when it is called */
  int state;          /* 0 declared, 1 being compiled (recursion), 2 done */
} kiln_function;

/* What the IR knows of a class: hangs on kiln_class_info.ir. */
typedef struct kiln_class {
  const kiln_type *type;
  struct kiln_unit *unit;
  kiln_map methods;   /* name -> kiln_function* */
  kiln_map constants; /* Final name -> kiln_ivalue* (owned by the unit) */
  KILN_VEC(kiln_function *) forward_pre_hooks;
  KILN_VEC(kiln_function *) forward_hooks;
  kiln_graph *call_graph; /* of kiln_class_call; the unit's */
} kiln_class;

typedef struct kiln_unit {
  kiln_arena *arena;
  kiln_env *env;
  const kiln_registry *registry;
  kiln_type_table *types; /* the model's; owned */
  kiln_map functions;     /* qualname -> kiln_function* */
  kiln_map classes;       /* qualname -> kiln_class* */
  KILN_VEC(kiln_ivalue) owned;
  KILN_VEC(kiln_function *) all; /* functions and methods, in order of definition */
  /* Compiles a function's body on demand; set by the frontend. NULL: all bodies are there. */
  kiln_status *(*ensure)(struct kiln_unit *unit, kiln_function *function);
  bool structured; /* sparse or nested tensors may be among its values (runtime/structure.h) */
  const char *custom_classes; /* of C++, "A, B", that were met; NULL: none */
  bool quantised; /* quantised tensors may be among its values: operators ask (runtime/quant.h) */
  void *frontend; /* its state, released by `release_frontend` */
  void (*release_frontend)(struct kiln_unit *unit);
} kiln_unit;

kiln_unit *kiln_unit_create(kiln_env *env, const kiln_registry *registry);
void kiln_unit_destroy(kiln_unit *unit);
/* Compiles the body if that is still to do; the function's error otherwise (a copy). */
kiln_status *kiln_unit_ensure(kiln_function *function) KILN_MUST_USE;
/* In the unit's arena. */
kiln_function *kiln_unit_add_function(kiln_unit *unit, kiln_str qualname, const kiln_type *owner);
kiln_class *kiln_unit_add_class(kiln_unit *unit, kiln_type_kind kind, kiln_str qualname);
kiln_function *kiln_unit_find_function(const kiln_unit *unit, kiln_str qualname);
/* What calling a module of the class runs: its forward(), among its forward hooks. Once a class.
 * *out NULL: no forward(). KILN_INVALID_FILE: hooks that do not fit it. */
kiln_status *kiln_class_call(kiln_class *cls, kiln_function **out) KILN_MUST_USE;
/* Of a CLASS or INTERFACE type; NULL when it has no such method. */
kiln_function *kiln_class_find_method(const kiln_type *type, kiln_str name);
/* A constant that names a function: prim::Constant[name="qualname"] with the pointer attribute
 * "function". Input 0 of prim::CallFunction. */
kiln_ir_value *kiln_append_function(kiln_block *block, kiln_function *function);
/* What a prim::CallFunction or prim::CallMethod[name] calls; NULL where only the run knows
 * (interfaces, function values) and for fallbacks. */
kiln_function *kiln_call_callee(const kiln_node *call);
static inline kiln_class *kiln_class_of(const kiln_type *type) {
  return (kiln_class *)type->cls->ir;
}
