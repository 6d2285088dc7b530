/* rule.h: what the passes made of local rewrite rules share (peephole.c, simplify.c).
 *
 * Each rule is a row: the operator at its root, the function that tries it (of several rules: with
 * what differs), and examples, from which its test is made (test/meta/rules.py tells how they are
 * written). The rules for rules: a rule keeps the type of the value it replaces, makes the graph
 * smaller or its values cheaper, changes no bit, and crosses no effect; a rule that makes two
 * values one memory asks the alias analysis first. A rule returns the value that takes over, or
 * NULL. Folding a known operator of constants is constant_propagation's, not theirs. */
#pragma once

#include "ir/pass.h"

/* A node that a rule is tried on, and what the rule's row has beside the function. */
typedef struct kiln__trial {
  kiln_pass *pass;
  kiln_node *node;
  int64_t arg;
} kiln__trial;

/* The rows are a switch over the operator's id, in a function of this type; it gives what the row
 * has for the node's result, or NULL. */
typedef kiln_ir_value *kiln__rules_fn(kiln_pass *pass, kiln_node *node);
#define RULE_OF(op, apply, arg, examples) \
  case KILN_OP_##op: return apply(&(kiln__trial){pass, node, arg})
#define RULE(op, apply, examples) RULE_OF(op, apply, 0, examples)

/* What the row of the node's operator, if there is one, has for its result. */
static inline kiln_ir_value *kiln__rule_try(kiln__rules_fn *rules, kiln_pass *pass,
                                            kiln_node *node) {
  return node->op && node->op->variant == KILN_VARIANT_NONE ? rules(pass, node) : NULL;
}
/* The value takes the place of the node's result. */
static inline void kiln__rule_take(kiln_pass *pass, kiln_node *node, kiln_ir_value *value) {
  pass->changed = true;
  if (value->node == node) return; /* rewritten in place */
  kiln_ir_value_replace_uses(kiln_node_output(node, 0), value);
  kiln_node_destroy(node);
}

/* trace_numbers.c: the int in a tensor that a trace computed of ints. */
kiln_ir_value *kiln__rule_number_of_trace(const kiln__trial *t);

static inline kiln_ir_value *kiln__rule_input(const kiln__trial *t, int i) {
  return kiln_node_input(t->node, i);
}
/* A constant int that is this one. */
static inline bool kiln__rule_is_int(const kiln_ir_value *value, int64_t wanted) {
  int64_t i;
  return kiln_ir_value_const_int(value, &i) && i == wanted;
}
/* What is known of a tensor value; NULL when nothing is. */
static inline const kiln_tensor_detail *kiln__rule_detail(const kiln_ir_value *value) {
  return value->type->kind == KILN_TYPE_TENSOR ? value->type->detail : NULL;
}
/* The list is built here and nobody changes it. */
static inline const kiln_node *kiln__rule_list(kiln_pass *pass, const kiln_ir_value *list) {
  if (!kiln_node_is(list->node, KILN_OP_prim_ListConstruct)) return NULL;
  return kiln_alias_has_writers(kiln_pass_alias(pass), list) ? NULL : list->node;
}
/* x may take the place of the result: the same dtype, and nobody could tell the memory apart. */
static inline bool kiln__rule_may_replace(kiln_pass *pass, const kiln_ir_value *x,
                                          const kiln_ir_value *result) {
  const kiln_alias *alias = kiln_pass_alias(pass);
  return !kiln_alias_has_writers(alias, x) && !kiln_alias_has_writers(alias, result) &&
         !kiln_alias_is_wildcard(alias, result);
}
/* The dtype of x op c is x's: x is floating point, or c an integer and x not bool. */
static inline bool kiln__rule_keeps_dtype(const kiln_ir_value *x, const kiln_ivalue *c) {
  const kiln_tensor_detail *d = kiln__rule_detail(x);
  if (!d || d->dtype == KILN_DTYPE_NONE) return false;
  kiln_dtype dtype = (kiln_dtype)d->dtype;
  return kiln_dtype_is_float(dtype) || (c->tag == KILN_TAG_INT && kiln_dtype_is_int(dtype, false));
}
