/* lower_simple_tuples.c: pass `lower_simple_tuples`: tuple elements are forwarded past the tuple.
 *
 * An Unpack, Index or Slice of a TupleConstruct takes the elements themselves. Tuples that cross an
 * If or a Loop are first taken apart: the node carries the elements, and a TupleConstruct behind it
 * (or at the start of the loop's body) makes the tuple for those who still want it. That is done
 * only where some side would profit: a block builds the tuple, or the body takes it apart. The dead
 * constructs are left to dce. A tuple that is not initialised on some way may so be taken apart on
 * it: the interpreter gives nothing for its elements. */
#include "ir/pass.h"

static bool is_tuple(const kiln_ir_value *value) { return value->type->kind == KILN_TYPE_TUPLE; }

static bool is_construct(const kiln_ir_value *value) {
  return kiln_node_is(value->node, KILN_OP_prim_TupleConstruct);
}

static bool is_taken_apart(const kiln_ir_value *value) {
  for (const kiln_use *u = value->uses; u; u = u->next) {
    if (kiln_node_is(u->user, KILN_OP_prim_TupleUnpack) ||
        kiln_node_is(u->user, KILN_OP_prim_TupleIndex) ||
        kiln_node_is(u->user, KILN_OP_prim_TupleSlice)) {
      return true;
    }
  }
  return false;
}

/* -- Local forwarding -- */

static bool forward_unpack(kiln_node *node) {
  const kiln_node *construct = kiln_node_input(node, 0)->node;
  if (construct->input_count != node->output_count) return false;
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value_replace_uses(kiln_node_output(node, i), kiln_node_input(construct, i));
  }
  kiln_node_destroy(node);
  return true;
}

static bool forward_index(kiln_node *node) {
  const kiln_node *construct = kiln_node_input(node, 0)->node;
  int64_t i;
  if (!kiln_ir_value_const_int(kiln_node_input(node, 1), &i)) return false;
  if (i < 0) i += construct->input_count;
  if (i < 0 || i >= construct->input_count) return false;
  kiln_ir_value_replace_uses(kiln_node_output(node, 0), kiln_node_input(construct, (int)i));
  kiln_node_destroy(node);
  return true;
}

static bool forward_slice(kiln_node *node) {
  const kiln_node *construct = kiln_node_input(node, 0)->node;
  int64_t begin = kiln_node_int(node, "beg", 0);
  int64_t end = kiln_node_int(node, "end", construct->input_count);
  if (begin < 0 || end > construct->input_count || begin > end) return false;
  kiln_node *slice = kiln_node_create_id(node->graph, KILN_OP_prim_TupleConstruct);
  for (int64_t i = begin; i < end; i++) {
    kiln_node_add_input(slice, kiln_node_input(construct, (int)i));
  }
  kiln_ir_value *out = kiln_node_add_output(slice, kiln_node_output(node, 0)->type);
  slice->range = node->range;
  kiln_node_insert_before(slice, node);
  kiln_ir_value_replace_uses(kiln_node_output(node, 0), out);
  kiln_node_destroy(node);
  return true;
}

/* The elements of a value that no run looks at are no more looked at than the value. */
static bool forward_uninitialized(kiln_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    kiln_node *nothing = kiln_node_create_id(node->graph, KILN_OP_prim_Uninitialized);
    kiln_ir_value *old = kiln_node_output(node, i);
    kiln_ir_value *out = kiln_node_add_output(nothing, old->type);
    nothing->range = node->range;
    kiln_node_insert_before(nothing, node);
    kiln_ir_value_replace_uses(old, out);
  }
  kiln_node_destroy(node);
  return true;
}

static bool forward(kiln_node *node) {
  if (node->input_count == 0) return false;
  if (kiln_node_is(node, KILN_OP_prim_TupleUnpack) &&
      kiln_node_is(kiln_node_input(node, 0)->node, KILN_OP_prim_Uninitialized)) {
    return forward_uninitialized(node);
  }
  if (!is_construct(kiln_node_input(node, 0))) return false;
  if (kiln_node_is(node, KILN_OP_prim_TupleUnpack)) return forward_unpack(node);
  if (kiln_node_is(node, KILN_OP_prim_TupleIndex)) return forward_index(node);
  if (kiln_node_is(node, KILN_OP_prim_TupleSlice)) return forward_slice(node);
  return false;
}

/* -- Across If and Loop -- */

/* The elements of `tuple`, available before `anchor`. */
static kiln_node *unpack_before(kiln_ir_value *tuple, kiln_node *anchor) {
  kiln_node *unpack = kiln_node_create_unpack(tuple);
  kiln_node_insert_before(unpack, anchor);
  return unpack;
}

/* A tuple of `count` values that the callers add as inputs; takes over the uses of `old`. */
static kiln_node *construct_for(kiln_ir_value *old) {
  kiln_node *construct = kiln_node_create_id(old->node->graph, KILN_OP_prim_TupleConstruct);
  kiln_ir_value_replace_uses(old, kiln_node_add_output(construct, old->type));
  return construct;
}

/* Block result `index` becomes its elements, appended at the end of the results. */
static void split_block_output(kiln_block *block, int index) {
  kiln_node *unpack = unpack_before(kiln_block_output(block, index), block->ret);
  for (int i = 0; i < unpack->output_count; i++) {
    kiln_block_add_output(block, kiln_node_output(unpack, i));
  }
  kiln_block_remove_output(block, index);
}

/* Result `index` of the node becomes a tuple built of new results at the end. */
static void split_node_output(kiln_node *node, int index) {
  kiln_ir_value *old = kiln_node_output(node, index);
  kiln_node *construct = construct_for(old);
  for (int i = 0; i < old->type->elem_count; i++) {
    kiln_node_add_input(construct, kiln_node_add_output(node, old->type->elems[i]));
  }
  kiln_node_insert_after(construct, node);
  kiln_node_remove_output(node, index);
}

static bool split_if(kiln_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value *out = kiln_node_output(node, i);
    if (!is_tuple(out)) continue;
    kiln_ir_value *a = kiln_block_output(node->blocks[0], i);
    kiln_ir_value *b = kiln_block_output(node->blocks[1], i);
    if (a->type->kind != KILN_TYPE_TUPLE || b->type->kind != KILN_TYPE_TUPLE) continue;
    if (!is_construct(a) && !is_construct(b) && !is_taken_apart(out)) continue;
    split_block_output(node->blocks[0], i);
    split_block_output(node->blocks[1], i);
    split_node_output(node, i);
    return true;
  }
  return false;
}

static bool split_loop(kiln_node *loop) {
  kiln_block *body = loop->blocks[0];
  for (int i = 0; i < loop->output_count; i++) {
    kiln_ir_value *out = kiln_node_output(loop, i), *in = kiln_block_input(body, 1 + i);
    kiln_ir_value *start = kiln_node_input(loop, 2 + i), *next = kiln_block_output(body, 1 + i);
    if (!is_tuple(out) || !is_tuple(in) || !is_tuple(start) || !is_tuple(next)) continue;
    if (!is_construct(next) && !is_taken_apart(in)) continue;
    kiln_node *elements = unpack_before(start, loop);
    for (int e = 0; e < elements->output_count; e++) {
      kiln_node_add_input(loop, kiln_node_output(elements, e));
    }
    kiln_node_remove_input(loop, 2 + i);
    kiln_node *construct = construct_for(in);
    for (int e = 0; e < in->type->elem_count; e++) {
      kiln_node_add_input(construct, kiln_block_add_input(body, "", in->type->elems[e]));
    }
    kiln_node_prepend(body, construct);
    kiln_block_remove_input(body, 1 + i);
    split_block_output(body, 1 + i);
    split_node_output(loop, i);
    return true;
  }
  return false;
}

/* One walk; true when something changed. Splitting leaves an Unpack behind the walk, at the end of
 * a block or before a loop, so the walk is repeated: each time some tuple has lost a level. */
static bool visit_block(kiln_block *block) {
  bool changed = false;
  for (kiln_node *n = block->first, *next; n; n = next) {
    if (kiln_node_is(n, KILN_OP_prim_Loop)) {
      while (split_loop(n)) changed = true;
    }
    for (int b = 0; b < n->block_count; b++) {
      if (visit_block(n->blocks[b])) changed = true;
    }
    if (kiln_node_is(n, KILN_OP_prim_If)) {
      while (split_if(n)) changed = true;
    }
    next = n->next;
    if (forward(n)) changed = true;
  }
  return changed;
}

kiln_status *kiln_pass_lower_simple_tuples(kiln_pass *pass) {
  while (visit_block(pass->graph->top)) pass->changed = true;
  return NULL;
}
