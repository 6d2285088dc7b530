/* match.h: overload resolution: whether a call's arguments fit a schema, and how.
 *
 * The frontend and builders match calls (with keywords and implicit conversions), the IR's parser
 * matches nodes. Matching may make types; it inserts no nodes: a fit says what kiln_fill_args has
 * to insert. */
#pragma once

#include "ir/ir.h"
#include "ir/op.h"

/* -- Type variables -- */

enum { KILN_MAX_TYPE_VARS = 8 };
typedef struct kiln_type_env {
  kiln_type_table *types;
  int count;
  struct {
    kiln_str name;
    const kiln_type *type;
  } vars[KILN_MAX_TYPE_VARS];
} kiln_type_env;

/* Binds the variables of `formal` so that it becomes `actual` or a supertype; a variable that is
 * bound already is widened to the join. A tuple fits a list formal when its elements join. False
 * when the structure differs; a formal without variables always matches. */
bool kiln_type_env_match(kiln_type_env *env, const kiln_type *formal, const kiln_type *actual);
/* `formal` with its variables replaced; NULL when one is not bound. */
const kiln_type *kiln_type_env_eval(kiln_type_env *env, const kiln_type *formal);

/* -- One argument -- */

/* What the caller does with a value to pass it. */
typedef enum kiln_fit {
  KILN_FIT_NO,
  KILN_FIT_SAME,          /* passes as it is: a subtype */
  KILN_FIT_REPEAT,        /* an int or float for int[N], float[N]: a list of N times the value */
  KILN_FIT_TUPLE_TO_LIST, /* unpack, and make a list of `type` */
  KILN_FIT_EMPTY_LIST,    /* a literal []: make it an empty list of `type` */
  KILN_FIT_COLLECT,       /* `collect` positional arguments become one list of `type` */
  KILN_FIT_DEFAULT,       /* not given: the schema's default */
  /* Implicit conversions (the second pass only); the operator to insert: */
  KILN_FIT_TENSOR_TO_INT,     /* aten::IntImplicit */
  KILN_FIT_TENSOR_TO_FLOAT,   /* aten::FloatImplicit */
  KILN_FIT_TENSOR_TO_COMPLEX, /* aten::ComplexImplicit */
  KILN_FIT_TENSOR_TO_NUMBER,  /* aten::ScalarImplicit */
  KILN_FIT_NUMBER_TO_INT,     /* aten::Int.Scalar */
  KILN_FIT_NUMBER_TO_FLOAT,   /* aten::Float.Scalar */
  KILN_FIT_NUMBER_TO_COMPLEX, /* aten::Complex.Scalar */
  KILN_FIT_BOOL_TO_INT,       /* aten::Int.bool */
  KILN_FIT_STR_TO_DEVICE,     /* aten::device */
} kiln_fit;

/* The name of the operator to insert ("aten::IntImplicit"), or NULL. */
const char *kiln_fit_op_name(kiln_fit fit);

/* Fits one value to one formal (COLLECT and DEFAULT are for whole schemas). `empty_list`: the value
 * is a literal []. *out_type is the formal's type with variables replaced. */
kiln_fit kiln_match_arg(kiln_type_env *env, const kiln_schema_arg *formal, const kiln_type *actual,
                        bool empty_list, bool convert, const kiln_type **out_type);

/* -- Schemas -- */

typedef struct kiln_actual {
  kiln_str keyword; /* "" for a positional one; these come first */
  const kiln_type *type;
  bool empty_list;
} kiln_actual;

typedef struct kiln_match_slot {
  kiln_fit fit;
  int actual;  /* first of the actuals that go here; -1 if and only if DEFAULT */
  int collect; /* how many, for COLLECT */
  const kiln_type *type;
} kiln_match_slot;

/* The type of the elements of the list that a slot takes. */
static inline const kiln_type *kiln_match_elem(const kiln_match_slot *slot) {
  const kiln_type *type = slot->type;
  return (type->kind == KILN_TYPE_OPTIONAL ? type->elems[0] : type)->elems[0];
}

/* Fits a whole call. `slots` has one entry for each argument of the schema. *out_varargs is the
 * first actual that goes to a `...`, or `count`. With `why`, a failure is told there in a line. */
bool kiln_match_schema(kiln_type_env *env, const kiln_schema *schema, const kiln_actual *actuals,
                       int count, bool convert, kiln_match_slot *slots, int *out_varargs,
                       kiln_text *why);

/* The first overload that fits: without conversions, then with them (a single candidate: with them
 * at once). NULL when none does; `why` (may be NULL) then lists each candidate and its complaint.
 * `slots` has room for the longest argument list of the set: kiln_op_set_max_args. env is reset. */
const kiln_op *kiln_match_overloads(kiln_type_env *env, const kiln_op_set *set,
                                    const kiln_actual *actuals, int count, kiln_match_slot *slots,
                                    int *out_varargs, kiln_text *why);
int kiln_op_set_max_args(const kiln_op_set *set);

/* -- Calls -- */

/* One argument of a call. */
typedef struct kiln_arg {
  kiln_str keyword;
  kiln_ir_value *value;
  bool empty_list; /* a literal [] */
} kiln_arg;

/* What matching asks of them, in `arena`. */
kiln_actual *kiln_args_actuals(kiln_arena *arena, kiln_type_table *types, const kiln_arg *args,
                               int count);

/* Who fills in a call: where its nodes go. */
typedef struct kiln_filler {
  void *user;
  kiln_graph *graph;
  kiln_arena *arena;
  void (*append)(void *user, kiln_node *node);
  /* Calls the operator `op`, whose result is of `type`; `op` NULL: it cannot be converted. */
  kiln_status *(*convert)(void *user, const char *op, kiln_ir_value *value, const kiln_type *type,
                          kiln_ir_value **out_value);
} kiln_filler;
/* The inputs of a node that calls `schema` as it was matched, varargs last, with the nodes that
 * make them fit, as PyTorch's compiler inserts them. */
kiln_status *kiln_fill_args(const kiln_filler *f, const kiln_schema *schema,
                            const kiln_match_slot *slots, const kiln_arg *args, int count,
                            int varargs, kiln_ir_value ***out_inputs, int *out_count) KILN_MUST_USE;

/* -- Nodes -- */

/* The overload of `set` whose arguments are exactly these inputs, one for each (IR nodes spell all
 * arguments out); structural operators take any. NULL when none fits. */
const kiln_op *kiln_match_node(kiln_type_table *types, const kiln_op_set *set,
                               const kiln_type *const *inputs, int count);
