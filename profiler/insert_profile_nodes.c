/* insert_profile_nodes.c: prim::profile before the uses whose types specialisation wants to know.
 *
 * One site for each tensor input of a node that asks for it (pointwise operators, views, those
 * flagged PROFILED, lists of tensors, chunks), and for each tensor result of a block, so that the
 * same value is seen where it is used: a use that never ran says nothing. Last comes
 * prim::profile() without an input, the counter of runs. Tensor details that stand on values are
 * taken off first: nothing that was true of another run may stay. */
#include "profiler/profile.h"

static bool wants_profile(const kiln_node *n) {
  if (!n->op) return false;
  if (kiln_node_is(n, KILN_OP_prim_ListConstruct) || kiln_node_is(n, KILN_OP_prim_ConstantChunk)) {
    return true;
  }
  if (!n->op->schema) return false;
  return n->op->cost == KILN_COST_pointwise || n->op->cost == KILN_COST_view ||
         (n->op->flags & KILN_OP_PROFILED);
}

static void profile_input(kiln_pass *pass, kiln_block *block, kiln_node *user, int index) {
  kiln_ir_value *v = kiln_node_input(user, index);
  if (!kiln_type_is_tensor(v->type)) return;
  kiln_node *site = kiln_node_create_id(pass->graph, KILN_OP_prim_profile);
  kiln_node_add_input(site, v);
  kiln_ir_value *out = kiln_node_add_output(site, kiln_type_basic(KILN_TYPE_TENSOR));
  site->range = user->range;
  if (user == block->ret) {
    kiln_node_append(block, site);
  } else {
    kiln_node_insert_before(site, user);
  }
  kiln_node_set_input(user, index, out);
  pass->changed = true;
}

static void instrument(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    if (wants_profile(n)) {
      for (int i = 0; i < n->input_count; i++) profile_input(pass, block, n, i);
    }
    for (int b = 0; b < n->block_count; b++) instrument(pass, n->blocks[b]);
  }
  for (int i = 0; i < kiln_block_output_count(block); i++) {
    profile_input(pass, block, block->ret, i);
  }
}

static bool is_instrumented(const kiln_graph *graph) {
  for (const kiln_node *n = graph->top->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_profile) && n->input_count == 0) return true;
  }
  return false;
}

kiln_status *kiln_pass_insert_profile_nodes(kiln_pass *pass) {
  if (is_instrumented(pass->graph)) return NULL;
  KILN_TRY(kiln_pass_remove_profile_nodes(pass));
  instrument(pass, pass->graph->top);
  kiln_node_append(pass->graph->top, kiln_node_create_id(pass->graph, KILN_OP_prim_profile));
  pass->changed = true;
  return NULL;
}
