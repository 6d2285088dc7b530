/* remove_profile_nodes.c: takes profile nodes out again, without or with what they saw.
 *
 * Specialising. A value gets the type that its profiled uses saw; where two uses saw different
 * things, only what they agree on stays. A use that never ran (plain Tensor) says nothing. The
 * types are claims from then on, which only a guard makes true. */
#include "profiler/profile.h"

static void remove_site(kiln_node *site) {
  kiln_ir_value_replace_uses(kiln_node_output(site, 0), kiln_node_input(site, 0));
  kiln_node_destroy(site);
}

static void remove_counters(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    if (!kiln_node_is(n, KILN_OP_prim_profile) || n->input_count) continue;
    kiln_node_destroy(n);
    pass->changed = true;
  }
}

static void drop_site(void *user, kiln_node *node, int number) {
  (void)number;
  ((kiln_pass *)user)->changed = true;
  remove_site(node);
}

static void unshape(kiln_pass *pass, kiln_node *node) {
  if (kiln_node_is(node, KILN_OP_prim_Constant)) return;
  for (int i = 0; i < node->output_count; i++) {
    const kiln_type *plain = kiln_type_unshaped(pass->graph->types, node->outputs[i]->type);
    if (plain == node->outputs[i]->type) continue;
    node->outputs[i]->type = plain;
    pass->changed = true;
  }
}

static void unshape_block(kiln_pass *pass, kiln_block *block) {
  unshape(pass, block->param);
  for (kiln_node *n = block->first; n; n = n->next) {
    unshape(pass, n);
    for (int b = 0; b < n->block_count; b++) unshape_block(pass, n->blocks[b]);
  }
}

kiln_status *kiln_pass_remove_profile_nodes(kiln_pass *pass) {
  kiln_profile_each(pass->graph->top, drop_site, pass);
  remove_counters(pass, pass->graph->top);
  unshape_block(pass, pass->graph->top);
  return NULL;
}

/* What a value's other uses have said so far is its type, so the merge is pairwise. */
static void specialize_site(void *user, kiln_node *node, int number) {
  kiln_pass *pass = user;
  kiln_ir_value *v = kiln_node_input(node, 0);
  const kiln_attr *attr = kiln_node_attr(node, "profiled_type");
  (void)number;
  pass->changed = true;
  if (attr && attr->kind == KILN_ATTR_TYPE && attr->u.type->detail) {
    const kiln_type *seen = attr->u.type;
    v->type = v->type->detail ? kiln_type_merge_tensor(pass->graph->types, v->type, seen) : seen;
  }
  remove_site(node);
}

kiln_status *kiln_pass_specialize_types(kiln_pass *pass) {
  kiln_profile_each(pass->graph->top, specialize_site, pass);
  remove_counters(pass, pass->graph->top);
  return NULL;
}
