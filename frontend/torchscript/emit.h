/* emit.h: SSA construction: syntax trees to graphs; what the emit*.c files share.
 *
 * SSA is made directly. A scope is a block with the names assigned in it; the end of an If or Loop
 * joins its scopes' names into outputs. break, continue and return that are not last become flags
 * (names with a $), and what follows them is put under an If on the flag; a scope whose end cannot
 * be reached is dead and joins with anything.
 *
 * An operator that is not known, or of which no overload fits, stays as a node without op, whose
 * result is typed Tensor and "loose": where another type is needed it is cast, unchecked. Such a
 * node fails when it is reached. Reference: torch/csrc/jit/frontend/ir_emitter.cpp. */
#pragma once

#include "frontend/torchscript/loader.h"
#include "ir/match.h"

typedef struct kiln_var {
  kiln_ir_value *value;      /* NULL: a closure, or not defined on every way here (why) */
  const kiln_type *declared; /* by an annotation, or NULL */
  const kiln_ast *closure;   /* a nested def, for fork */
  const char *why;
} kiln_var;

typedef struct kiln_var_scope {
  struct kiln_var_scope *outer;
  kiln_block *block;
  kiln_map vars; /* name -> kiln_var */
  bool dead;
} kiln_var_scope;

/* The loop that break and continue mean. Level 0 is the function. */
typedef struct kiln_exit_level {
  struct kiln_exit_level *outer;
  kiln_str skip; /* name of the flag "the rest of this body is skipped" */
  kiln_str stop; /* "the loop ends"; empty at level 0 */
  /* What the loop carries, and the names that keep the values which an exit leaves with. */
  int carried_count;
  const kiln_str *carried, *kept;
  const kiln_type *const *types;
} kiln_exit_level;

typedef struct kiln__script_emitter {
  kiln_loader *l;
  kiln_function *function;
  kiln_code_file *file;
  const kiln_source *source;
  kiln_graph *graph;
  kiln_arena *arena;
  kiln_var_scope *scope;
  kiln_exit_level *level;
  const kiln_type *return_type;       /* NULL in a closure: whatever is returned */
  kiln_ir_value *result;              /* of a function that returns only at its end */
  bool flags;                         /* returns set $return and $value */
  kiln_map loose;                     /* values whose type is a guess */
  struct kiln__script_emitter *outer; /* of a closure */
  kiln_node *capturing;               /* the fork node that captures outer values */
  const kiln_ast *last_ast;           /* with its range, which its nodes share */
  const kiln_source_range *last_range;
  int depth;
  int rests; /* blocks for what follows an exit, one in the other */
} kiln__script_emitter;

/* What an expression can be besides a value. */
typedef enum kiln_sugar_kind {
  KILN_SUGAR_VALUE,
  KILN_SUGAR_VALUES,    /* several results of one node */
  KILN_SUGAR_TORCH,     /* torch */
  KILN_SUGAR_OPS,       /* ops */
  KILN_SUGAR_NAMESPACE, /* ops.<name> */
  KILN_SUGAR_OP,        /* name: "aten::add"; value: self, or NULL */
  KILN_SUGAR_CONSTANTS,
  KILN_SUGAR_PATH,     /* name: "__torch__.m" */
  KILN_SUGAR_CLASS,    /* type */
  KILN_SUGAR_NEW,      /* type: T.__new__ */
  KILN_SUGAR_FUNCTION, /* function; a method named through its class too */
  KILN_SUGAR_METHOD,   /* value, function */
  KILN_SUGAR_BUILTIN,  /* name: int, len, annotate, … */
  KILN_SUGAR_CLOSURE,  /* closure */
} kiln_sugar_kind;

typedef struct kiln_sugar {
  kiln_sugar_kind kind;
  kiln_ir_value *value;
  kiln_node *node; /* VALUES */
  kiln_str name;
  const kiln_type *type;
  kiln_function *function;
  const kiln_ast *closure;
} kiln_sugar;

typedef KILN_VEC(kiln_arg) kiln_args;

/* -- Nodes (emit.c) -- */

kiln_status *kiln__ts_error(kiln__script_emitter *e, const kiln_ast *ast, const char *fmt, ...)
    KILN_PRINTF(3, 4) KILN_MUST_USE KILN__NOT_NULL;
/* Values and their count as two arguments: KILN_VALUES(self, index). */
#define KILN_VALUES(...)                 \
  (kiln_ir_value *const[]){__VA_ARGS__}, \
      (int)(sizeof((kiln_ir_value *const[]){__VA_ARGS__}) / sizeof(kiln_ir_value *))
/* A node of a structural operator at the end of the present block, with the range of `ast`. */
kiln_node *kiln__ts_node(kiln__script_emitter *e, const kiln_ast *ast, kiln_op_id id,
                         kiln_ir_value *const *inputs, int count);
void kiln__ts_append(kiln__script_emitter *e, const kiln_ast *ast, kiln_node *node);
kiln_ir_value *kiln__ts_constant(kiln__script_emitter *e, const kiln_ast *ast, kiln_ivalue value,
                                 const kiln_type *type); /* takes value */
kiln_ir_value *kiln__ts_none(kiln__script_emitter *e, const kiln_ast *ast);
kiln_ir_value *kiln__ts_int(kiln__script_emitter *e, const kiln_ast *ast, int64_t value);
kiln_ir_value *kiln__ts_bool(kiln__script_emitter *e, const kiln_ast *ast, bool value);
kiln_status *kiln__ts_string(kiln__script_emitter *e, const kiln_ast *ast, kiln_str text,
                             kiln_ir_value **out) KILN_MUST_USE;
kiln_ir_value *kiln__ts_list(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *elem,
                             kiln_ir_value *const *items, int count);
kiln_ir_value *kiln__ts_tuple(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *type,
                              kiln_ir_value *const *items, int count);
kiln_ir_value *kiln__ts_cast(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *value,
                             const kiln_type *type);
kiln_ir_value *kiln__ts_uninitialized(kiln__script_emitter *e, const kiln_ast *ast,
                                      const kiln_type *type);
const char *kiln__ts_type_name(kiln__script_emitter *e, const kiln_type *type);
bool kiln__is_loose(const kiln__script_emitter *e, const kiln_ir_value *value);
void kiln__make_loose(kiln__script_emitter *e, const kiln_ir_value *value);
/* The value as one of `type`: a subtype, a loose one cast; else an error that names `what`. */
kiln_status *kiln__ts_convert(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *value,
                              const kiln_type *type, const char *what,
                              kiln_ir_value **out) KILN_MUST_USE;

/* -- Names -- */

kiln_var *kiln__find_var(kiln__script_emitter *e, kiln_str name);
kiln_var *kiln__set_var(kiln__script_emitter *e, kiln_str name, kiln_ir_value *value);
void kiln__push_scope(kiln__script_emitter *e, kiln_var_scope *scope, kiln_block *block);
void kiln__pop_scope(kiln__script_emitter *e);
/* After both branches of an If were emitted: outputs for the names that differ. */
kiln_status *kiln__join_branches(kiln__script_emitter *e, const kiln_ast *ast, kiln_node *node,
                                 kiln_var_scope *a, kiln_var_scope *b) KILN_MUST_USE;

/* -- Statements (emit_stmt.c, emit_loop.c) -- */

kiln_status *kiln__ts_statements(kiln__script_emitter *e, kiln_ast *const *items,
                                 int count) KILN_MUST_USE;
kiln_status *kiln__ts_assign(kiln__script_emitter *e, const kiln_ast *target, kiln_sugar source,
                             const kiln_type *declared) KILN_MUST_USE;
kiln_status *kiln__ts_assign_value(kiln__script_emitter *e, const kiln_ast *target,
                                   kiln_ir_value *value) KILN_MUST_USE;
kiln_status *kiln__ts_raise(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *message,
                            const char *class_name) KILN_MUST_USE;
kiln_status *kiln__ts_for(kiln__script_emitter *e, const kiln_ast *ast) KILN_MUST_USE;
kiln_status *kiln__ts_while(kiln__script_emitter *e, const kiln_ast *ast) KILN_MUST_USE;
kiln_status *kiln__ts_comprehension(kiln__script_emitter *e, const kiln_ast *ast,
                                    const kiln_type *hint, kiln_ir_value **out) KILN_MUST_USE;
/* Whether it holds a return, or a break or continue of the loop around it. */
bool kiln__may_exit(const kiln_ast *ast);
bool kiln__may_return(const kiln_ast *ast);

/* -- Expressions (emit_expr.c) -- */

/* `hint`: the type that is wanted, for literals; NULL: none. */
kiln_status *kiln__ts_value(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                            kiln_ir_value **out) KILN_MUST_USE;
kiln_status *kiln__ts_sugar(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                            kiln_sugar *out) KILN_MUST_USE;
/* One value of what is one or several. */
kiln_status *kiln__sugar_value(kiln__script_emitter *e, const kiln_ast *ast,
                               const kiln_sugar *sugar, kiln_ir_value **out) KILN_MUST_USE;
/* A bool. */
kiln_status *kiln__ts_condition(kiln__script_emitter *e, const kiln_ast *ast,
                                kiln_ir_value **out) KILN_MUST_USE;
kiln_status *kiln__to_bool(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *value,
                           kiln_ir_value **out) KILN_MUST_USE;
/* What a binary operator is called. */
typedef struct kiln__ts_operator {
  uint32_t op;
  const char *name,
      *in_place;      /* a + b; a += b of a tensor or list: NULL when it has no such form */
  const char *method; /* of an object */
  /* number + tensor as `swapped` of the tensor, after `first` where it says so, and the number. */
  const char *first, *swapped;
} kiln__ts_operator;
/* NULL: an unknown one. */
const kiln__ts_operator *kiln__ts_find_operator(uint32_t op);
/* The type that `list` names, or each type of the tuple that it is: of isinstance. */
kiln_status *kiln__ts_types(kiln__script_emitter *e, const kiln_ast *list,
                            const kiln_type ***out_types, int *out_count) KILN_MUST_USE;
/* Names get narrower types in a branch: `x is None`, isinstance(x, T). */
kiln_status *kiln__ts_refinements(kiln__script_emitter *e, const kiln_ast *condition,
                                  bool branch) KILN_MUST_USE;

/* -- Calls (emit_call.c, emit_builtin.c), subscripts (emit_index.c) -- */

kiln_status *kiln__ts_op(kiln__script_emitter *e, const kiln_ast *ast, const char *name,
                         const kiln_arg *args, int count, kiln_sugar *out) KILN_MUST_USE;
/* The same with plain values and one result. */
kiln_status *kiln__ts_op_values(kiln__script_emitter *e, const kiln_ast *ast, const char *name,
                                kiln_ir_value *const *values, int count,
                                kiln_ir_value **out) KILN_MUST_USE;
/* remap.c: what stands for a call that makes a device, or moves to one, by the load's rules; NULL
 * when the operator itself does. */
kiln_status *kiln__ts_map_device(kiln__script_emitter *e, const kiln_ast *ast, const char *name,
                                 const kiln_arg *args, int count,
                                 kiln_ir_value **out) KILN_MUST_USE;
/* upgrade.c: the function that stands for the operator in an archive of this version; NULL when the
 * operator itself is meant. */
kiln_status *kiln__ts_find_upgrade(kiln__script_emitter *e, const char *name,
                                   const kiln_op_set *set, const kiln_actual *actuals, int count,
                                   kiln_function **out_function) KILN_MUST_USE;
kiln_status *kiln__ts_call(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                           kiln_sugar *out) KILN_MUST_USE;
kiln_status *kiln__ts_method(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *self,
                             kiln_function *method, const kiln_arg *args, int count,
                             kiln_ir_value **out) KILN_MUST_USE;
/* The method `name` of an object, called; *out is NULL when the value has none. */
kiln_status *kiln__ts_magic(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *self,
                            const char *name, kiln_ir_value *const *values, int count,
                            kiln_ir_value **out) KILN_MUST_USE;
/* isinstance, annotate, …: `ast` is the call. False when `name` is no builtin. */
bool kiln__is_builtin(kiln_str name);
kiln_status *kiln__ts_builtin(kiln__script_emitter *e, const kiln_ast *ast, kiln_str name,
                              const kiln_type *hint, kiln_sugar *out) KILN_MUST_USE;
/* x.tolist() of the value, to the type `hint`. */
kiln_status *kiln__ts_tolist(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *value,
                             const kiln_type *hint, kiln_ir_value **out) KILN_MUST_USE;
kiln_status *kiln__ts_args(kiln__script_emitter *e, const kiln_ast *call,
                           kiln_args *out) KILN_MUST_USE;
/* emit_sort.c: whether `op` sorts a list of objects by their __lt__, and that; `reverse` may be
 * NULL.
 */
bool kiln__sorts_objects(const kiln_op *op, const kiln_ir_value *list);
kiln_status *kiln__ts_sort(kiln__script_emitter *e, const kiln_ast *ast, const kiln_op *op,
                           kiln_ir_value *list, kiln_ir_value *reverse,
                           kiln_ir_value **out) KILN_MUST_USE;
kiln_status *kiln__ts_fork(kiln__script_emitter *e, const kiln_ast *ast, const kiln_ast *closure,
                           kiln_ir_value **out) KILN_MUST_USE;
kiln_status *kiln__ts_index(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                            kiln_ir_value **out) KILN_MUST_USE;
kiln_status *kiln__ts_index_assign(kiln__script_emitter *e, const kiln_ast *target,
                                   kiln_ir_value *value) KILN_MUST_USE;
kiln_status *kiln__ts_delete(kiln__script_emitter *e, const kiln_ast *target) KILN_MUST_USE;
kiln_status *kiln__ts_attribute(kiln__script_emitter *e, const kiln_ast *ast, kiln_sugar base,
                                kiln_str name, kiln_sugar *out) KILN_MUST_USE;
