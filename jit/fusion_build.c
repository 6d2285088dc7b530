/* fusion_build.c: puts a partition into its block.
 *
 * Each group stands where its last member stood, or earlier where something between needs it; all
 * other nodes keep their order. */
#include "jit/fusion.h"

#include "guards/guards.h"

static kiln_ir_value *copy_constant(kiln_graph *sub, const kiln_ir_value *v, kiln_map *map) {
  kiln_node *copy = kiln_node_copy(sub, v->node, map);
  kiln_node_append(sub->top, copy);
  return kiln_node_output(copy, 0);
}

/* The group's graph; its inputs and outputs in the order of `values`. */
static kiln_graph *build_subgraph(kiln_fusion *f, const kiln_fusion_cluster *c,
                                  const kiln_fusion_values *values) {
  kiln_graph *sub = kiln_graph_create_sub(f->pass->graph);
  kiln_map map = kiln_map_in(f->arena);
  for (int i = 0; i < values->inputs.count; i++) {
    kiln_ir_value *v = values->inputs.data[i];
    kiln_ir_value *input = kiln_graph_add_input(sub, "", v->type);
    if (v->name.len) kiln_ir_value_set_name(input, v->name);
    kiln_map_set_ptr(&map, v, input);
  }
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member) {
    const kiln_node *n = f->nodes[m].node;
    for (int i = 0; i < n->input_count; i++) {
      const kiln_ir_value *v = kiln_node_input(n, i);
      if (kiln__fusion_is_inline(v) && !kiln_map_find_ptr(&map, v)) {
        kiln_map_set_ptr(&map, v, copy_constant(sub, v, &map));
      }
    }
  }
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member) {
    const kiln_node *n = f->nodes[m].node;
    for (int i = 0; i < n->input_count; i++)
      kiln__fusion_copy_sizes(sub, kiln_node_input(n, i), &map);
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

static void emit_group(kiln_fusion *f, const kiln_fusion_cluster *c) {
  kiln_fusion_values values;
  kiln__fusion_values(f, c, &values);
  kiln_node *group = kiln_node_create_id(f->pass->graph, KILN_OP_prim_TensorExprGroup);
  const kiln_node *last = f->nodes[c->last].node;
  group->range = last->range;
  group->scope = last->scope;
  group->mark = (uint32_t)c->first + 1; /* later clusters look its cluster up by it */
  kiln_node_set_graph(group, "Subgraph", build_subgraph(f, c, &values));
  for (int i = 0; i < values.inputs.count; i++) kiln_node_add_input(group, values.inputs.data[i]);
  kiln_node_append(f->block, group);
  for (int i = 0; i < values.outputs.count; i++) {
    kiln_ir_value *old = values.outputs.data[i];
    kiln_ir_value *out = kiln_node_add_output(group, old->type);
    if (old->name.len) kiln_ir_value_set_name(out, old->name);
    kiln_ir_value_replace_uses(old, out);
  }
  /* Inside the group there are only copies: what members read of each other goes first. */
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member) {
    kiln_node_remove_all_inputs(f->nodes[m].node);
  }
  for (int m = c->first; m >= 0; m = f->nodes[m].next_member) kiln_node_destroy(f->nodes[m].node);
  f->pass->changed = true;
}

static void emit_cluster(kiln_fusion *f, int index) {
  if (f->clusters[index].is_group) {
    emit_group(f, &f->clusters[index]);
    return;
  }
  kiln_node_detach(f->nodes[index].node);
  kiln_node_append(f->block, f->nodes[index].node);
}

typedef struct visit {
  int cluster, member, prev; /* what it needs next */
} visit;
typedef KILN_VEC(visit) visit_stack;

static void begin_visit(kiln_fusion *f, visit_stack *stack, int cluster) {
  if (f->clusters[cluster].emitted) return;
  f->clusters[cluster].emitted = true;
  visit v = {cluster, f->clusters[cluster].first, 0};
  kiln_vec_push(f->arena, stack, v);
}

/* What the cluster needs first, then the cluster. Clusters form no cycle, so this ends. */
static void emit_in_order(kiln_fusion *f, visit_stack *stack, int cluster) {
  begin_visit(f, stack, cluster);
  while (stack->count) {
    visit *top = &kiln_vec_last(stack);
    if (top->member < 0) {
      emit_cluster(f, kiln_vec_pop(stack).cluster);
      continue;
    }
    const kiln_fusion_node *n = &f->nodes[top->member];
    if (top->prev < n->prev.count) {
      begin_visit(f, stack, f->nodes[n->prev.data[top->prev++]].cluster);
    } else {
      top->member = n->next_member;
      top->prev = 0;
    }
  }
}

void kiln__fusion_build(kiln_fusion *f) {
  visit_stack stack = {0};
  for (int i = 0; i < f->count; i++) {
    int cluster = f->nodes[i].cluster;
    if (f->clusters[cluster].last == i) emit_in_order(f, &stack, cluster);
  }
}

kiln_node *kiln__fusion_insert_copy(kiln_node *reader, kiln_ir_value *v, kiln_node *anchor) {
  kiln_graph *body = kiln_graph_create_sub(reader->graph);
  kiln_node *group = kiln_node_create_like(reader, KILN_OP_prim_TensorExprGroup);
  kiln_graph_add_output(body, kiln_graph_add_input(body, NULL, v->type));
  kiln_node_set_graph(group, "Subgraph", body);
  const kiln_str where = kiln_node_str(reader, KILN_ATTR_WHERE); /* its sizes are those */
  if (where.len) kiln_node_set_str(group, KILN_ATTR_WHERE, where);
  kiln_node_add_input(group, v);
  kiln_node_insert_before(group, anchor);
  kiln_node_add_output(group, v->type);
  return group;
}
