/* control_flow.c: branches and loops that constants or their own structure decide: what
 * constant_propagation and remove_unused do to them. */
#include "ir/pass.h"

/* Moves the branch's nodes before the If; returns the first node moved, or what follows the If. */
kiln_node *kiln_branch_splice(kiln_node *node, int side) {
  const kiln_block *branch = node->blocks[side];
  kiln_node *first = branch->first ? branch->first : node->next;
  while (branch->first) {
    kiln_node *n = branch->first;
    kiln_node_detach(n);
    kiln_node_insert_before(n, node);
  }
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value_replace_uses(kiln_node_output(node, i), kiln_block_output(branch, i));
  }
  kiln_node_destroy(node);
  return first;
}

static bool same_constant(const kiln_ir_value *a, const kiln_ir_value *b) {
  const kiln_ivalue *x = kiln_ir_value_constant(a), *y = kiln_ir_value_constant(b);
  if (!x || !y || x->tag != y->tag || a->type != b->type) return false;
  return x->tag == KILN_TAG_NONE || (x->tag == KILN_TAG_BOOL && x->u.b == y->u.b) ||
         (x->tag == KILN_TAG_INT && x->u.i == y->u.i);
}

/* Results that are one value on both sides. */
static void share_if_results(kiln_pass *pass, kiln_node *node) {
  for (int i = node->output_count - 1; i >= 0; i--) {
    kiln_ir_value *a = kiln_block_output(node->blocks[0], i);
    kiln_ir_value *b = kiln_block_output(node->blocks[1], i);
    if (a != b && !same_constant(a, b)) continue;
    if (a != b) { /* equal constants, each in its branch: one before the If */
      kiln_ivalue value = kiln_ivalue_retain(*kiln_ir_value_constant(a));
      a = kiln_insert_constant_before(node, value, a->type);
    }
    kiln_ir_value_replace_uses(kiln_node_output(node, i), a);
    kiln_node_remove_output(node, i);
    kiln_block_remove_output(node->blocks[0], i);
    kiln_block_remove_output(node->blocks[1], i);
    pass->changed = true;
  }
}

bool kiln_loop_is_counted(const kiln_node *node) {
  return kiln_node_is(node, KILN_OP_prim_Loop) &&
         kiln_ir_value_is_bool(kiln_node_input(node, 1), true) &&
         kiln_ir_value_is_bool(kiln_block_output(node->blocks[0], 0), true);
}

static bool loop_never_runs(const kiln_node *loop) {
  int64_t trips;
  return (kiln_ir_value_const_int(kiln_node_input(loop, 0), &trips) && trips <= 0) ||
         kiln_ir_value_is_bool(kiln_node_input(loop, 1), false);
}

static void remove_loop(kiln_node *loop) {
  for (int i = 0; i < loop->output_count; i++) {
    kiln_ir_value_replace_uses(kiln_node_output(loop, i), kiln_node_input(loop, 2 + i));
  }
  kiln_node_destroy(loop);
}

/* A carried value that the body hands on as it came, or as it started, never changes. */
static void share_loop_carried(kiln_pass *pass, kiln_node *loop) {
  kiln_block *body = loop->blocks[0];
  for (int i = loop->output_count - 1; i >= 0; i--) {
    kiln_ir_value *in = kiln_block_input(body, 1 + i), *next = kiln_block_output(body, 1 + i);
    kiln_ir_value *start = kiln_node_input(loop, 2 + i);
    if (next != in && next != start) continue;
    kiln_ir_value_replace_uses(kiln_node_output(loop, i), start);
    kiln_ir_value_replace_uses(in, start);
    kiln_node_remove_output(loop, i);
    kiln_block_remove_output(body, 1 + i);
    kiln_block_remove_input(body, 1 + i);
    kiln_node_remove_input(loop, 2 + i);
    pass->changed = true;
  }
}

/* What is gone over, and what becomes of nodes that are neither If nor Loop. */
typedef struct visitor {
  kiln_pass *pass;
  bool (*fold)(kiln_pass *pass, kiln_node *node);
} visitor;
static void visit_block(const visitor *v, kiln_block *block);

/* Returns the node to go on with. */
static kiln_node *visit_if(const visitor *v, kiln_node *node) {
  for (int side = 0; side < 2; side++) {
    if (!kiln_ir_value_is_bool(kiln_node_input(node, 0), side == 0)) continue;
    v->pass->changed = true;
    return kiln_branch_splice(node, side);
  }
  visit_block(v, node->blocks[0]);
  visit_block(v, node->blocks[1]);
  share_if_results(v->pass, node);
  return node->next;
}

static kiln_node *visit_loop(const visitor *v, kiln_node *loop) {
  kiln_node *next = loop->next;
  if (loop_never_runs(loop)) {
    remove_loop(loop);
    v->pass->changed = true;
    return next;
  }
  share_loop_carried(v->pass, loop);
  visit_block(v, loop->blocks[0]);
  share_loop_carried(v->pass, loop);
  return next;
}

static void visit_block(const visitor *v, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    if (kiln_node_is(n, KILN_OP_prim_If)) {
      next = visit_if(v, n);
    } else if (kiln_node_is(n, KILN_OP_prim_Loop)) {
      next = visit_loop(v, n);
    } else {
      next = n->next;
      for (int b = 0; b < n->block_count; b++) visit_block(v, n->blocks[b]);
      if (v->fold && !kiln_node_is(n, KILN_OP_prim_Constant) && v->fold(v->pass, n))
        v->pass->changed = true;
    }
  }
}

void kiln_simplify_control_flow(kiln_pass *pass, bool (*fold)(kiln_pass *pass, kiln_node *node)) {
  const visitor v = {pass, fold};
  visit_block(&v, pass->graph->top);
}
