/* network.h: nodes that take an operator's place, for passes that take operators apart. Macros want
 * a `const kiln__maker *m`. */
#pragma once

#include "ir/ir.h"

/* Where nodes are put: before `anchor`, or at the end of `block`. */
typedef struct kiln__maker {
  kiln_graph *graph;
  kiln_block *block;
  kiln_node *anchor;     /* NULL: the block's end */
  const kiln_node *from; /* whose place in the source they have */
} kiln__maker;

static inline kiln_ir_value *kiln__maker_put(const kiln__maker *m, kiln_node *node,
                                             const kiln_type *type) {
  node->range = m->from->range;
  node->scope = m->from->scope;
  if (m->anchor) {
    kiln_node_insert_before(node, m->anchor);
  } else {
    kiln_node_append(m->block, node);
  }
  return kiln_node_add_output(node, type);
}
static inline kiln_ir_value *kiln__maker_step(const kiln__maker *m, kiln_op_id op,
                                              const kiln_type *type, int count,
                                              kiln_ir_value *const *inputs) {
  kiln_node *node = kiln_node_create_id(m->graph, op);
  for (int i = 0; i < count; i++) kiln_node_add_input(node, inputs[i]);
  return kiln__maker_put(m, node, type);
}
#define COUNT(...) ((int)(sizeof((kiln_ir_value *[]){__VA_ARGS__}) / sizeof(kiln_ir_value *)))
#define STEP(op, ...)                                                                      \
  kiln__maker_step(m, KILN_OP_##op, kiln_type_basic(KILN_TYPE_TENSOR), COUNT(__VA_ARGS__), \
                   (kiln_ir_value *[]){__VA_ARGS__})
#define ASK(op, type, ...)                                                                 \
  kiln__maker_step(m, KILN_OP_##op, kiln_type_basic(KILN_TYPE_##type), COUNT(__VA_ARGS__), \
                   (kiln_ir_value *[]){__VA_ARGS__})
#define LIST(...)                                                                   \
  kiln__maker_step(m, KILN_OP_prim_ListConstruct,                                   \
                   kiln_type_list(m->graph->types, kiln_type_basic(KILN_TYPE_INT)), \
                   COUNT(__VA_ARGS__), (kiln_ir_value *[]){__VA_ARGS__})

static inline kiln_ir_value *kiln__maker_constant(const kiln__maker *m, kiln_ivalue value,
                                                  kiln_type_kind kind) {
  return m->anchor ? kiln_insert_constant_before(m->anchor, value, kiln_type_basic(kind))
                   : kiln_append_constant(m->block, value, kiln_type_basic(kind));
}
#define INT(i) kiln__maker_constant(m, kiln_int(i), KILN_TYPE_INT)
#define FLOAT(f) kiln__maker_constant(m, kiln_float(f), KILN_TYPE_FLOAT)
#define BOOL(b) kiln__maker_constant(m, kiln_bool(b), KILN_TYPE_BOOL)
#define NONE kiln__maker_constant(m, kiln_none(), KILN_TYPE_NONE)

/* Takes einsum of three and more apart; false: it stays. (decompose_einsum.c) */
bool kiln__decompose_einsum(kiln_node *n);
/* A branch that takes n's place, with n on its other side: its first side, which is to be filled.
 * (decompose_composites.c) */
kiln_block *kiln__branch_around(kiln_node *n, kiln_ir_value *condition);
