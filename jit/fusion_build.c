/* fusion_build.c: puts a partition into its block.
 *
 * Each group stands where its last member stood, or earlier where something between needs it; all
 * other nodes keep their order. */
#include "jit/fusion.h"

static kiln_ir_value *copy_constant(kiln_graph *sub, const kiln_ir_value *v, kiln_map *map) {
  kiln_node *copy = kiln_node_copy(sub, v->node, map);
  kiln_node_append(sub->top, copy);
  return kiln_node_output(copy, 0);
}

/* The group's graph; its inputs and outputs in the order of `values`. */
static kiln_graph *build_subgraph(kiln_fusion *f, const kiln_fusion_cluster *c,
                                  const kiln_fusion_values *values) {
  kiln_graph *sub = kiln_graph_create_sub(f->pass->graph);
  kiln_map map;
  kiln_map_init(&map, f->arena);
  for (int i = 0; i < values->inputs.count; i++) {
    kiln_ir_value *v = values->inputs.data[i];
    kiln_ir_value *input = kiln_graph_add_input(sub, "", v->type);
    if (v->name.len) kiln_ir_value_set_name(input, v->name);
    kiln_map_set_ptr(&map, v, input);
  }
  for (int m = 0; m < c->members.count; m++) {
    const kiln_node *n = f->nodes[c->members.data[m]].node;
    for (int i = 0; i < n->input_count; i++) {
      const kiln_ir_value *v = kiln_node_input(n, i);
      if (kiln__fusion_is_inline(v) && !kiln_map_find_ptr(&map, v)) {
        kiln_map_set_ptr(&map, v, copy_constant(sub, v, &map));
      }
    }
  }
  for (int m = 0; m < c->members.count; m++) {
    const kiln_node *n = f->nodes[c->members.data[m]].node;
    kiln_node *copy = kiln_node_copy(sub, n, &map);
    kiln_node_append(sub->top, copy);
    for (int i = 0; i < n->output_count; i++) {
      kiln_map_set_ptr(&map, n->outputs[i], copy->outputs[i]);
    }
  }
  for (int i = 0; i < values->outputs.count; i++) {
    kiln_graph_add_output(sub, kiln_map_find_ptr(&map, values->outputs.data[i]));
  }
  return sub;
}

static void emit_group(kiln_fusion *f, kiln_fusion_cluster *c) {
  kiln_fusion_values values;
  kiln__fusion_values(f, c->members.data, c->members.count, &values);
  kiln_node *group = kiln_node_create_id(f->pass->graph, KILN_OP_prim_TensorExprGroup);
  kiln_node *last = f->nodes[kiln_vec_last(&c->members)].node;
  group->range = last->range;
  group->scope = last->scope;
  group->mark = (uint32_t)c->members.data[0] + 1; /* later clusters look its cluster up by it */
  kiln_node_set_graph(group, "Subgraph", build_subgraph(f, c, &values));
  for (int i = 0; i < values.inputs.count; i++) kiln_node_add_input(group, values.inputs.data[i]);
  kiln_node_append(f->block, group);
  for (int i = 0; i < values.outputs.count; i++) {
    kiln_ir_value *old = values.outputs.data[i];
    kiln_ir_value *out = kiln_node_add_output(group, old->type);
    if (old->name.len) kiln_ir_value_set_name(out, old->name);
    kiln_ir_value_replace_uses(old, out);
  }
  for (int m = c->members.count - 1; m >= 0; m--) {
    kiln_node_destroy(f->nodes[c->members.data[m]].node);
  }
  f->pass->changed = true;
}

/* What the cluster needs first, then the cluster. Clusters form no cycle, so this ends. */
static void emit_cluster(kiln_fusion *f, int index) {
  kiln_fusion_cluster *c = &f->clusters[index];
  if (c->emitted) return;
  c->emitted = true;
  for (int m = 0; m < c->members.count; m++) {
    const kiln_fusion_node *n = &f->nodes[c->members.data[m]];
    for (int k = 0; k < n->prev.count; k++) emit_cluster(f, f->nodes[n->prev.data[k]].cluster);
  }
  if (c->is_group) {
    emit_group(f, c);
    return;
  }
  kiln_node *node = f->nodes[c->members.data[0]].node;
  kiln_node_detach(node);
  kiln_node_append(f->block, node);
}

void kiln__fusion_build(kiln_fusion *f) {
  bool any = false;
  for (int i = 0; i < f->count; i++) any |= f->clusters[i].is_group;
  if (!any) return;
  for (int i = 0; i < f->count; i++) {
    int index = f->nodes[i].cluster;
    const kiln_fusion_cluster *c = &f->clusters[index];
    if (!c->is_group || kiln_vec_last(&c->members) == i) emit_cluster(f, index);
  }
  kiln_pass_forget_alias(f->pass);
}
