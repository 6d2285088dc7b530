/* insert_guards.c: wraps compiled groups: TypeCheck, If, the group, and the fallback.
 *
 * What must be checked is every tensor input whose type is a claim of the profile. Constants are
 * exempt: their type is a fact. The fallback is the group's own graph with the types taken off,
 * over the unrefined inputs, so that it makes no claim at all. */
#include "guards/guards.h"

static bool needs_check(const kiln_ir_value *v) {
  return kiln_type_is_tensor(v->type) && !kiln_node_is(v->node, KILN_OP_prim_Constant);
}

bool kiln_guards_is_hit(const kiln_block *block) {
  const kiln_node *owner = block->owner;
  if (!owner || !kiln_node_is(owner, KILN_OP_prim_If) || owner->blocks[0] != block) return false;
  return kiln_node_is(kiln_node_input(owner, 0)->node, KILN_OP_prim_TypeCheck);
}

/* A copy of the group's graph, in the same arena, whose values have no tensor details. */
static kiln_graph *copy_unshaped(kiln_graph *graph, const kiln_graph *from) {
  kiln_graph *copy = kiln_graph_copy_sub(graph, from);
  for (int i = 0; i < kiln_graph_input_count(copy); i++) {
    kiln_ir_value *v = kiln_graph_input(copy, i);
    v->type = kiln_type_unshaped(graph->types, v->type);
  }
  for (kiln_node *n = copy->top->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_Constant)) continue;
    for (int i = 0; i < n->output_count; i++) {
      n->outputs[i]->type = kiln_type_unshaped(graph->types, n->outputs[i]->type);
    }
  }
  return copy;
}

/* The check before `group`; refined[i] is the refined input i, or NULL. NULL: nothing to check. */
static kiln_node *insert_check(kiln_node *group, kiln_arena *scratch, kiln_ir_value **refined) {
  kiln_graph *graph = group->graph;
  KILN_VEC(const kiln_type *) types = {0};
  kiln_node *check = kiln_node_create_id(graph, KILN_OP_prim_TypeCheck);
  for (int i = 0; i < group->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(group, i);
    if (!needs_check(v)) continue;
    kiln_node_add_input(check, v);
    refined[i] = kiln_node_add_output(check, v->type);
    kiln_vec_push(scratch, &types, v->type);
  }
  if (!check->input_count) return NULL;
  check->range = group->range;
  kiln_node_add_output(check, kiln_type_basic(KILN_TYPE_BOOL));
  kiln_node_set_types(check, "types", types.data, types.count);
  kiln_node_insert_before(check, group);
  return check;
}

static void guard_group(kiln_pass *pass, kiln_node *group) {
  kiln_graph *graph = pass->graph;
  kiln_ir_value **refined = KILN_NEW_ARRAY(pass->scratch, kiln_ir_value *, group->input_count + 1);
  kiln_node *check = insert_check(group, pass->scratch, refined);
  if (!check) return;
  kiln_node *branch = kiln_node_create_id(graph, KILN_OP_prim_If);
  branch->range = group->range;
  kiln_node_add_input(branch, kiln_node_output(check, check->output_count - 1));
  kiln_node_insert_after(branch, check);
  kiln_block *hit = kiln_node_add_block(branch), *miss = kiln_node_add_block(branch);
  kiln_node *fallback = kiln_node_create_id(graph, KILN_OP_prim_FallbackGraph);
  fallback->range = group->range;
  kiln_graph *subgraph = kiln_node_graph(group, "Subgraph");
  kiln_node_set_graph(fallback, "Subgraph", copy_unshaped(graph, subgraph));
  for (int i = 0; i < group->input_count; i++) {
    kiln_node_add_input(fallback, kiln_node_input(group, i));
  }
  kiln_node_append(miss, fallback);
  for (int i = 0; i < group->output_count; i++) {
    kiln_ir_value *old = kiln_node_output(group, i);
    kiln_ir_value *out = kiln_node_add_output(branch, old->type);
    kiln_ir_value_replace_uses(old, out);
    kiln_block_add_output(
        miss, kiln_node_add_output(fallback, kiln_type_unshaped(graph->types, old->type)));
  }
  kiln_node_detach(group);
  kiln_node_append(hit, group);
  for (int i = 0; i < group->input_count; i++) {
    if (refined[i]) kiln_node_set_input(group, i, refined[i]);
  }
  for (int i = 0; i < group->output_count; i++) {
    kiln_block_add_output(hit, kiln_node_output(group, i));
  }
  pass->changed = true;
}

static void guard_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    if (kiln_node_is(n, KILN_OP_prim_TensorExprGroup)) {
      if (!kiln_guards_is_hit(n->block)) guard_group(pass, n);
      continue;
    }
    for (int b = 0; b < n->block_count; b++) guard_block(pass, n->blocks[b]);
  }
}

kiln_status *kiln_pass_insert_guards(kiln_pass *pass) {
  guard_block(pass, pass->graph->top);
  return NULL;
}
