/* canonicalize_ops.c: pass `canonicalize_ops`: one form where the language has several.
 *
 * `aten::chunk` with constant arguments whose list is only taken apart becomes prim::ConstantChunk,
 * which fusion understands. */
#include "ir/pass.h"

static bool to_constant_chunk(kiln_node *node) {
  if (!kiln_node_is(node, KILN_OP_chunk)) return false;
  int64_t chunks, dim;
  kiln_ir_value *list = kiln_node_output(node, 0);
  if (!kiln_ir_value_const_int(kiln_node_input(node, 1), &chunks) ||
      !kiln_ir_value_const_int(kiln_node_input(node, 2), &dim) || list->use_count != 1) {
    return false;
  }
  KILN_ASSERT(list->uses);
  kiln_node *unpack = list->uses->user;
  if (!kiln_node_is(unpack, KILN_OP_prim_ListUnpack) || unpack->output_count != chunks)
    return false;
  kiln_node *chunk = kiln_node_create_id(node->graph, KILN_OP_prim_ConstantChunk);
  kiln_node_add_input(chunk, kiln_node_input(node, 0));
  kiln_node_set_int(chunk, "chunks", chunks);
  kiln_node_set_int(chunk, "dim", dim);
  chunk->range = node->range;
  chunk->scope = node->scope;
  kiln_node_insert_before(chunk, node);
  for (int i = 0; i < unpack->output_count; i++) {
    kiln_ir_value *old = kiln_node_output(unpack, i);
    kiln_ir_value *out = kiln_node_add_output(chunk, old->type);
    if (old->name.len > 0) kiln_ir_value_set_name(out, old->name);
    kiln_ir_value_replace_uses(old, out);
  }
  kiln_node_destroy(unpack);
  kiln_node_destroy(node);
  return true;
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    next = n->next;
    if (!n->op) continue;
    /* The unpack that goes with the chunk may be the next node. */
    bool next_is_user = next && n->output_count == 1 && kiln_node_output(n, 0)->uses &&
                        kiln_node_output(n, 0)->uses->user == next;
    kiln_node *after = next_is_user ? next->next : next;
    if (to_constant_chunk(n)) {
      next = after;
      pass->changed = true;
    }
  }
}

kiln_status *kiln_pass_canonicalize_ops(kiln_pass *pass) {
  visit_block(pass, pass->graph->top);
  return NULL;
}
