/* ir.h: graphs: values, nodes, blocks, use lists, attributes. SSA with nested blocks.
 *
 * A graph owns an arena; nodes, values, attributes and strings die with it. Constants that need a
 * reference (tensors, lists, strings) are kept in the graph's list and released with it. Functions
 * here allocate from the arena, so they run inside a scope (base/scope.h).
 *
 * Structure (reference: PyTorch's ir.h, and torch/csrc/jit/OVERVIEW.md). prim::If(cond): two blocks
 * without inputs. prim::Loop(max_trip, cond, carried…): one block with inputs (i, carried…) and
 * results (cond, carried…). A block's inputs are the outputs of its `param` node, its results the
 * inputs of its `ret` node; both are pseudo nodes that stand outside the list. Constants may stand
 * anywhere before their uses. */
#pragma once

#include "ir/op.h"
#include "runtime/source.h"

typedef struct kiln_graph kiln_graph;
typedef struct kiln_block kiln_block;
typedef struct kiln_ir_value kiln_ir_value;

/* One input slot of a node: an element of the value's use list. */
typedef struct kiln_use {
  kiln_ir_value *value;
  kiln_node *user;
  int index; /* in user->inputs */
  struct kiln_use *prev, *next;
} kiln_use;

struct kiln_ir_value {
  kiln_node *node; /* that defines it (a block's param node for block inputs) */
  int index;       /* among the node's outputs */
  const kiln_type *type;
  kiln_str name; /* debug name without the %: "x.1", or "" for a number */
  uint32_t id;   /* unique in the graph; printed when there is no name */
  /* Of a graph's input: whoever calls the graph always gives the same, an attribute or a constant.
   * Not printed. */
  bool weight;
  kiln_use *uses; /* first; order is not meaningful */
  int use_count;
  void *data; /* of the pass at work; NULL between passes */
};

typedef enum kiln_attr_kind {
  KILN_ATTR_VALUE, /* an ivalue (owned by the graph): numbers, strings, tensors, lists */
  KILN_ATTR_TYPE,
  KILN_ATTR_TYPES,
  KILN_ATTR_GRAPH,
  KILN_ATTR_POINTER, /* of the executor (a fallback); not printed */
} kiln_attr_kind;

typedef struct kiln_attr {
  const char *name; /* in the arena */
  kiln_attr_kind kind;
  union {
    kiln_ivalue value;
    const kiln_type *type;
    struct {
      const kiln_type **data;
      int count;
    } types;
    kiln_graph *graph; /* lives in the owner graph's arena or is retained by it */
    void *pointer;
  } u;
  struct kiln_attr *next; /* insertion order */
} kiln_attr;

struct kiln_node {
  const kiln_op *op; /* NULL: unknown operator; `name` tells */
  kiln_str name;     /* "aten::add", "prim::If", "aten::nosuch" */
  kiln_graph *graph;
  kiln_block *block; /* that it stands in; NULL when not inserted */
  kiln_node *prev, *next;
  kiln_use **inputs;
  int input_count, input_capacity;
  kiln_ir_value **outputs;
  int output_count, output_capacity;
  kiln_block **blocks;
  int block_count;
  kiln_attr *attrs;
  const kiln_source_range *range; /* NULL: unknown */
  kiln_str scope;                 /* "__module.c", or "" */
  int64_t position;               /* order within the block, for kiln_node_is_before */
  uint32_t mark;                  /* of the pass at work */
};

struct kiln_block {
  kiln_graph *graph;
  kiln_node *owner;       /* NULL for the graph's top block */
  kiln_node *param, *ret; /* pseudo nodes */
  kiln_node *first, *last;
};

struct kiln_graph {
  kiln_arena *arena;
  bool owns_arena; /* subgraphs share their parent's */
  const kiln_registry *registry;
  kiln_type_table *types; /* where new types of this graph go; borrowed */
  kiln_block *top;
  kiln_graph *root; /* owner of the arena and of constants; itself when owns_arena */
  uint32_t next_id;
  kiln_map names;        /* debug name -> value */
  kiln_map suffixes;     /* base name -> next suffix to try, stored + 1 */
  const kiln_map *facts; /* numbers that the pass at work knows: value -> kiln_ivalue; or NULL */
  const kiln_map *sizes; /* and those that are expressions: value -> kiln_dim; or NULL */
  const struct kiln_shape_history
      *history;      /* of a DYNAMIC level (guards.h); NULL: of a STATIC one */
  bool owns_sources; /* ranges live in the arena (graphs from text): copies copy them */
  /* Both keep room for one more, so that what is given to them is owned before memory can run out.
   */
  KILN_VEC(kiln_ivalue) owned;     /* of roots only */
  KILN_VEC(kiln_graph *) retained; /* of roots only: other graphs that attributes point to */
  int refs;                        /* atomic; of roots only */
};

/* -- Graphs -- */

/* With an arena of its own. */
kiln_graph *kiln_graph_create(kiln_mem *mem, const kiln_registry *registry, kiln_type_table *types);
/* In the arena of `parent`, for Subgraph attributes; dies with it. Its constants are owned, and its
 * references counted, by the root. */
kiln_graph *kiln_graph_create_sub(kiln_graph *parent);
kiln_graph *kiln_graph_retain(kiln_graph *graph);
void kiln_graph_release(kiln_graph *graph);
/* Makes the release a cleanup of the scope (base/scope.h). */
void kiln_graph_defer(kiln_graph *graph, kiln_cleanup *releasing);
/* A deep copy, subgraphs included, with an arena of its own; new types go to `types`. Names, ids
 * and the order of nodes are kept. */
kiln_graph *kiln_graph_copy(const kiln_graph *graph, kiln_mem *mem, kiln_type_table *types);
/* A copy, in `arena`, of a range of the graph's nodes that may outlive the graph, with what it was
 * inlined at. `copies`: original -> copy, of what was copied into the arena before. */
const kiln_source_range *kiln_graph_copy_range(const kiln_graph *graph,
                                               const kiln_source_range *range, kiln_arena *arena,
                                               kiln_map *copies);
/* `type` as a type of the graph's table: tensor details of another graph's table are made anew. All
 * that copies nodes between graphs does it. */
const kiln_type *kiln_graph_import_type(kiln_graph *graph, const kiln_graph *from,
                                        const kiln_type *type);
static inline int kiln_graph_input_count(const kiln_graph *g) {
  return g->top->param->output_count;
}
static inline kiln_ir_value *kiln_graph_input(const kiln_graph *g, int i) {
  return g->top->param->outputs[i];
}
static inline int kiln_graph_output_count(const kiln_graph *g) { return g->top->ret->input_count; }
static inline kiln_ir_value *kiln_graph_output(const kiln_graph *g, int i) {
  return g->top->ret->inputs[i]->value;
}
kiln_ir_value *kiln_graph_add_input(kiln_graph *graph, const char *name, const kiln_type *type);
void kiln_graph_add_output(kiln_graph *graph, kiln_ir_value *value);
/* Takes `value`: it is released with the graph. Returns it. */
kiln_ivalue kiln_graph_own(kiln_graph *graph, kiln_ivalue value);

/* -- Blocks -- */

kiln_block *kiln_node_add_block(kiln_node *node);
kiln_ir_value *kiln_block_add_input(kiln_block *block, const char *name, const kiln_type *type);
void kiln_block_add_output(kiln_block *block, kiln_ir_value *value);
static inline int kiln_block_input_count(const kiln_block *b) { return b->param->output_count; }
static inline kiln_ir_value *kiln_block_input(const kiln_block *b, int i) {
  return b->param->outputs[i];
}
static inline int kiln_block_output_count(const kiln_block *b) { return b->ret->input_count; }
static inline kiln_ir_value *kiln_block_output(const kiln_block *b, int i) {
  return b->ret->inputs[i]->value;
}
void kiln_block_remove_output(kiln_block *block, int index);
void kiln_block_remove_input(kiln_block *block, int index); /* it has no uses */
/* Copies src's nodes to the end of dst. map: value -> value, for what is defined outside or as
 * inputs; it is extended with what is copied. Values not in the map are kept as they are. */
void kiln_block_copy_into(kiln_block *dst, const kiln_block *src, kiln_map *map);

/* -- Nodes -- */

/* Not inserted yet. `op` may be NULL for an unknown operator, then `name` is used. */
kiln_node *kiln_node_create(kiln_graph *graph, const kiln_op *op);
kiln_node *kiln_node_create_id(kiln_graph *graph, kiln_op_id id);
/* In the graph of another node, with its range and scope: what stands for it, or for a part. */
kiln_node *kiln_node_create_like(const kiln_node *node, kiln_op_id id);
kiln_node *kiln_node_create_unknown(kiln_graph *graph, kiln_str name);
/* Copies op, attributes (graphs deeply), range and scope, and blocks through `map`; inputs are
 * mapped; outputs are new, with types and names. */
kiln_node *kiln_node_copy(kiln_graph *graph, const kiln_node *node, kiln_map *map);
void kiln_node_append(kiln_block *block, kiln_node *node);
void kiln_node_prepend(kiln_block *block, kiln_node *node);
void kiln_node_insert_before(kiln_node *node, kiln_node *anchor);
void kiln_node_insert_after(kiln_node *node, kiln_node *anchor);
/* Unlinks it from its block, keeping inputs and outputs. */
void kiln_node_detach(kiln_node *node);
/* Detaches it, drops its inputs and everything in its blocks. Its outputs have no uses. */
void kiln_node_destroy(kiln_node *node);
/* Same block: a stands before b. */
bool kiln_node_is_before(const kiln_node *a, const kiln_node *b);
/* a's value is available at b: a stands before b in b's block or an enclosing one. */
bool kiln_node_dominates(const kiln_node *a, const kiln_node *b);

int kiln_node_add_input(kiln_node *node, kiln_ir_value *value);
void kiln_node_insert_input(kiln_node *node, int index, kiln_ir_value *value);
void kiln_node_set_input(kiln_node *node, int index, kiln_ir_value *value);
void kiln_node_remove_input(kiln_node *node, int index);
void kiln_node_remove_all_inputs(kiln_node *node);
static inline kiln_ir_value *kiln_node_input(const kiln_node *n, int i) {
  return n->inputs[i]->value;
}
kiln_ir_value *kiln_node_add_output(kiln_node *node, const kiln_type *type);
void kiln_node_remove_output(kiln_node *node, int index); /* it has no uses */
static inline kiln_ir_value *kiln_node_output(const kiln_node *n, int i) { return n->outputs[i]; }

static inline bool kiln_node_is(const kiln_node *node, kiln_op_id id) {
  return node->op && node->op->id == (int)id && node->op->variant == KILN_VARIANT_NONE;
}
static inline bool kiln_node_is_group(const kiln_node *node) {
  return kiln_node_is(node, KILN_OP_prim_TensorExprGroup);
}
/* Whether nothing comes behind it: it ends in prim::RaiseException. */
static inline bool kiln_block_raises(const kiln_block *b) {
  return b->last && kiln_node_is(b->last, KILN_OP_prim_RaiseException);
}
/* By its schema, or by what it calls; its blocks left out. */
bool kiln_node_may_write(const kiln_node *node);
/* x[:] */
bool kiln_node_is_whole_slice(const kiln_node *node);
/* A guard of types, whose outputs are its inputs, and a bool: of numbers or of symbols. */
static inline bool kiln_node_is_type_check(const kiln_node *node) {
  return kiln_node_is(node, KILN_OP_prim_TypeCheck) ||
         kiln_node_is(node, KILN_OP_prim_TensorExprDynamicGuard);
}
/* Its flag, or that of what its blocks hold. */
bool kiln_node_has_side_effects(const kiln_node *node);
bool kiln_node_is_nondeterministic(const kiln_node *node);
/* What its own arguments hold may make it raise, whatever their types (column RAISES); of a group:
 * one of its nodes. */
bool kiln_node_raises(const kiln_node *node);
/* The node of `block` that is `node` or holds it in its blocks; NULL when there is none. */
kiln_node *kiln_node_in_block(kiln_node *node, const kiln_block *block);

/* Attributes. Setting replaces; an ivalue is taken by the graph; names are copied. */
void kiln_node_set_value(kiln_node *node, const char *name, kiln_ivalue value);
void kiln_node_set_int(kiln_node *node, const char *name, int64_t value);
void kiln_node_set_type(kiln_node *node, const char *name, const kiln_type *type);
void kiln_node_set_types(kiln_node *node, const char *name, const kiln_type *const *types,
                         int count);
void kiln_node_set_graph(kiln_node *node, const char *name, kiln_graph *graph);
void kiln_node_set_pointer(kiln_node *node, const char *name, void *pointer);
void kiln_node_set_str(kiln_node *node, const char *name, kiln_str value);
kiln_attr *kiln_node_attr(const kiln_node *node, const char *name); /* NULL when absent */
int64_t kiln_node_int(const kiln_node *node, const char *name, int64_t fallback);
kiln_str kiln_node_str(const kiln_node *node, const char *name); /* "" when absent */
kiln_graph *kiln_node_graph(const kiln_node *node, const char *name);

/* -- Values -- */

void kiln_ir_value_replace_uses(kiln_ir_value *value, kiln_ir_value *with);
/* Gives the value a debug name (copied). As in PyTorch, names are unique in a graph and the latest
 * owner keeps the plain one: another value of that name becomes "x.1", "x.2", … An empty or
 * all-digit name goes back to the number. */
void kiln_ir_value_set_name(kiln_ir_value *value, kiln_str base);
/* The constant behind a value, or NULL (prim::Constant only; None constants give a None ivalue). */
const kiln_ivalue *kiln_ir_value_constant(const kiln_ir_value *value);
/* Whether it is the same in each run, as far as the graph tells: an attribute, a constant, what a
 * guard makes of one, or a result that is kept (attribute `kept`: jit/keep_constants.c). */
bool kiln_ir_value_is_weight(const kiln_ir_value *value);
bool kiln_ir_value_is_none(const kiln_ir_value *value); /* constant None */
/* A constant, a weight, or a list of such that nobody writes: x[None, i] reads one. */
bool kiln_ir_value_is_of_weights(const kiln_ir_value *value);
/* Whether a batch norm updates running statistics: it has some, and trains or may. */
bool kiln_node_writes_stats(const kiln_node *node);
/* A constant tensor of no dimensions may stand for a number of Python's, which a trace keeps that
 * way (`wrapped=1`); ir/pass/unwrap_numbers.c tells what it matters for. No constant is one by its
 * looks: the reader of an archive says so. Does nothing to other constants. */
bool kiln_ir_value_is_wrapped_number(const kiln_ir_value *value);
void kiln_ir_value_set_wrapped_number(kiln_ir_value *value);
/* The int behind a constant value; false when it is not one. */
bool kiln_ir_value_const_int(const kiln_ir_value *value, int64_t *out_int);
bool kiln_ir_value_is_bool(const kiln_ir_value *value, bool wanted);        /* a constant one */
bool kiln_ir_value_is_text(const kiln_ir_value *value, const char *wanted); /* a constant one */
/* A constant int or float that is that number. */
bool kiln_ir_value_is_number(const kiln_ir_value *value, int64_t wanted);
/* The dtype that stands for a Python number of the type, which may be Scalar, where `constant` (may
 * be NULL) tells: I64, F64, BOOL, C128; NONE where it is not known, or no number. */
kiln_dtype kiln_ir_number_kind(const kiln_type *type, const kiln_ivalue *constant);

/* -- Building -- */

/* A prim::Constant of the value (taken), not inserted; None has no attribute. */
kiln_node *kiln_node_create_constant(kiln_graph *graph, kiln_ivalue value, const kiln_type *type);
/* prim::TupleUnpack of a tuple. */
kiln_node *kiln_node_create_unpack(kiln_ir_value *tuple);
/* Makes a constant of the value (taken) before `anchor`, or at the end of `block`. */
kiln_ir_value *kiln_insert_constant_before(kiln_node *anchor, kiln_ivalue value,
                                           const kiln_type *type);
kiln_ir_value *kiln_insert_int_before(kiln_node *anchor, int64_t value);
/* A prim::ListConstruct of nothing before `anchor`; its value, once it is full. */
kiln_node *kiln_insert_list_before(kiln_node *anchor);
kiln_ir_value *kiln_list_give(kiln_node *list, const kiln_type *elem);
kiln_ir_value *kiln_append_constant(kiln_block *block, kiln_ivalue value, const kiln_type *type);

/* -- Text -- */

/* PyTorch's textual form; verbosity as kiln_type_print; ranges as "# file:line:col" comments. */
void kiln_graph_print(kiln_text *text, const kiln_graph *graph, int verbosity, bool with_ranges);
void kiln_node_print(kiln_text *text, const kiln_node *node, int verbosity);
/* Parses that form; print(parse(print(g))) == print(g). Overloads are found from the argument
 * types; unknown operators are kept as such. Errors give line and column. */
kiln_status *kiln_graph_parse(kiln_mem *mem, const kiln_registry *registry, kiln_type_table *types,
                              kiln_str source, kiln_graph **out_graph) KILN_MUST_USE;
/* Graphviz. */
void kiln_graph_print_dot(kiln_text *text, const kiln_graph *graph);

/* -- Verifier -- */

/* Use lists, dominance, block shapes, argument counts and types against schemas, constants' types,
 * guards before effects. KILN_INTERNAL with the complaint and the node. */
kiln_status *kiln_graph_verify(const kiln_graph *graph) KILN_MUST_USE;
