/* network.h: nodes that take an operator's place, for what takes operators apart
 * (decompose_composites.c and decompose_*.c). Macros want a `kiln__maker *m`. */
#pragma once

#include "ir/ir.h"
#include "ir/pass.h"

/* Where nodes are put: before `anchor`, or at the end of `block`. */
typedef struct kiln__maker {
  kiln_graph *graph;
  kiln_block *block;
  kiln_node *anchor;     /* NULL: the block's end */
  const kiln_node *from; /* whose place in the source they have */
  int given;             /* results, so far */
} kiln__maker;

/* APART(x): puts the operator's network at m, which is before it, and gives its results. False:
 * its arguments are such that it stays, and nothing was put. */
typedef bool (*kiln__apart_fn)(kiln__maker *m, kiln_node *n);
#define KILN__APART_TYPE(name) bool kiln__apart_##name(kiln__maker *m, kiln_node *n)
#define KILN__APART(name) \
  KILN__APART_TYPE(name); \
  KILN__APART_TYPE(name)

/* -- Nodes -- */

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
static inline const kiln_type *kiln__maker_list(const kiln__maker *m, kiln_type_kind kind) {
  return kiln_type_list(m->graph->types, kiln_type_basic(kind));
}
#define COUNT(...) ((int)(sizeof((kiln_ir_value *[]){__VA_ARGS__}) / sizeof(kiln_ir_value *)))
#define MAKE(op, type, ...) \
  kiln__maker_step(m, KILN_OP_##op, type, COUNT(__VA_ARGS__), (kiln_ir_value *[]){__VA_ARGS__})
#define ASK(op, kind, ...) MAKE(op, kiln_type_basic(KILN_TYPE_##kind), __VA_ARGS__)
#define STEP(op, ...) ASK(op, TENSOR, __VA_ARGS__)
#define LIST_OF(kind, ...) \
  MAKE(prim_ListConstruct, kiln__maker_list(m, KILN_TYPE_##kind), __VA_ARGS__)
#define LIST(...) LIST_OF(INT, __VA_ARGS__)
#define SUM(a, b) STEP(add_Tensor, a, b, INT(1))
#define DIFFERENCE(a, b) STEP(sub_Tensor, a, b, INT(1))

static inline kiln_ir_value *kiln__maker_constant(const kiln__maker *m, kiln_ivalue value,
                                                  kiln_type_kind kind) {
  return m->anchor ? kiln_insert_constant_before(m->anchor, value, kiln_type_basic(kind))
                   : kiln_append_constant(m->block, value, kiln_type_basic(kind));
}
#define INT(i) kiln__maker_constant(m, kiln_int(i), KILN_TYPE_INT)
#define FLOAT(f) kiln__maker_constant(m, kiln_float(f), KILN_TYPE_FLOAT)
#define BOOL(b) kiln__maker_constant(m, kiln_bool(b), KILN_TYPE_BOOL)
#define NONE kiln__maker_constant(m, kiln_none(), KILN_TYPE_NONE)
#define IN(i) kiln_node_input(n, i)

/* -- Questions: what runs decides -- */

/* The first may be NULL, which is true. As all here it is a list, whose elements are made in order.
 */
static inline kiln_ir_value *kiln__both(const kiln__maker *m, kiln_ir_value *const *of) {
  return of[0] ? ASK(__and___bool, BOOL, of[0], of[1]) : of[1];
}
#define BOTH(a, b) kiln__both(m, (kiln_ir_value *[]){a, b})
#define EQUAL(a, b) ASK(eq_int, BOOL, a, b)
#define RANK(t) ASK(dim, INT, t)
#define SIZE(t, dim) ASK(size_int, INT, t, INT(dim))
/* What is asked where another answer is yes: m goes into that branch, and out of it. */
void kiln__ask_where(kiln__maker *m, kiln_ir_value *condition);
kiln_ir_value *kiln__asked(kiln__maker *m, const kiln__maker *outside, kiln_ir_value *answer);

/* -- Results -- */

/* Only where the condition holds is the network to take the place of n's first results; else n
 * itself gives them: it has the complaints. m goes into that branch, n into the other. */
void kiln__apart_where(kiln__maker *m, kiln_node *n, int results, kiln_ir_value *condition);
/* The next result. */
void kiln__apart_give(kiln__maker *m, kiln_node *n, kiln_ir_value *result);
#define GIVE(result) kiln__apart_give(m, n, result)

/* -- Arguments -- */

/* Nobody reads a result but the first. */
bool kiln__only_first_read(const kiln_node *n);
/* The node that makes a list of tensors, which nobody changes; NULL: it is not known. */
const kiln_node *kiln__list_of_tensors(const kiln_node *n, int input);
/* A tensor, or None, for certain. */
bool kiln__is_decided(const kiln_node *n, int input);
