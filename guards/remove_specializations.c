/* remove_specializations.c: after guards stand, tensor types outside of guarded regions are mere
 * claims of the profile; no later pass may build on them. Facts stay: the types of constants, of
 * what a check refined, of a group's results, and of what else stands on the checked side. */
#include "guards/guards.h"

static bool type_is_fact(const kiln_node *node) {
  return kiln_node_is(node, KILN_OP_prim_Constant) || kiln_node_is(node, KILN_OP_prim_TypeCheck) ||
         kiln_node_is(node, KILN_OP_prim_TensorExprGroup) || kiln_guards_is_hit(node->block);
}

static void remove_from_node(kiln_pass *pass, kiln_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value *v = node->outputs[i];
    if (!kiln_type_is_tensor(v->type) || !v->type->detail) continue;
    v->type = kiln_type_basic(KILN_TYPE_TENSOR);
    pass->changed = true;
  }
}

static void remove_from_block(kiln_pass *pass, kiln_block *block) {
  remove_from_node(pass, block->param);
  for (kiln_node *n = block->first; n; n = n->next) {
    if (!type_is_fact(n)) remove_from_node(pass, n);
    for (int b = 0; b < n->block_count; b++) remove_from_block(pass, n->blocks[b]);
  }
}

kiln_status *kiln_pass_remove_type_specializations(kiln_pass *pass) {
  remove_from_block(pass, pass->graph->top);
  return NULL;
}
