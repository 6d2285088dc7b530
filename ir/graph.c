/* graph.c: graphs and blocks: making, ending, inputs and outputs, what a graph owns.
 *
 * A root graph owns an arena, in which it lives itself; sub graphs share it and hand their
 * constants to the root. The two lists of what is not arena memory (constants, other graphs) keep
 * room for one element more: so kiln_graph_own takes its value before it allocates, and nothing
 * leaks when memory runs out. */
#include "ir/internal.h"

enum { FIRST_OWNED = 4 };

/* -- Graphs -- */

static kiln_graph *graph_init(kiln_arena *arena, const kiln_registry *registry,
                              kiln_type_table *types, kiln_graph *root) {
  kiln_graph *graph = KILN_NEW(arena, kiln_graph);
  graph->arena = arena;
  graph->registry = registry;
  graph->types = types;
  graph->owns_arena = root == NULL;
  graph->root = root ? root : graph;
  graph->owns_sources = root && root->owns_sources;
  graph->refs = 1;
  graph->names = kiln_map_in(arena);
  graph->suffixes = kiln_map_in(arena);
  if (!root) {
    kiln_vec_reserve(arena, &graph->owned, FIRST_OWNED);
    kiln_vec_reserve(arena, &graph->retained, 1);
  }
  graph->top = kiln__block_create(graph, NULL);
  return graph;
}

kiln_graph *kiln_graph_create(kiln_mem *mem, const kiln_registry *registry,
                              kiln_type_table *types) {
  kiln_arena *arena = kiln_arena_scoped(mem);
  kiln_graph *graph = graph_init(arena, registry, types, NULL);
  kiln_arena_keep(arena);
  return graph;
}

kiln_graph *kiln_graph_create_sub(kiln_graph *parent) {
  return graph_init(parent->arena, parent->registry, parent->types, parent->root);
}

kiln_graph *kiln_graph_retain(kiln_graph *graph) {
  __atomic_fetch_add(&graph->root->refs, 1, __ATOMIC_RELAXED);
  return graph;
}

void kiln_graph_release(kiln_graph *graph) {
  if (!graph) return;
  kiln_graph *root = graph->root;
  if (__atomic_sub_fetch(&root->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
  for (int i = 0; i < root->owned.count; i++) kiln_ivalue_release(root->owned.data[i]);
  for (int i = 0; i < root->retained.count; i++) kiln_graph_release(root->retained.data[i]);
  kiln_arena_destroy(root->arena);
}

static void release(void *graph) { kiln_graph_release(graph); }

void kiln_graph_defer(kiln_graph *graph, kiln_cleanup *releasing) {
  kiln_scope_defer(releasing, release, graph);
}

kiln_ivalue kiln_graph_own(kiln_graph *graph, kiln_ivalue value) {
  if (value.tag < KILN_TAG__COUNTED) return value;
  kiln_graph *root = graph->root;
  if (root->owned.count == root->owned.capacity) { /* an earlier call ran out of memory */
    kiln_ivalue_release(value);
    kiln_scope_oom();
  }
  root->owned.data[root->owned.count++] = value;
  kiln_vec_reserve(root->arena, &root->owned, root->owned.count + 1);
  return value;
}

kiln_ir_value *kiln_graph_add_input(kiln_graph *graph, const char *name, const kiln_type *type) {
  return kiln_block_add_input(graph->top, name, type);
}

void kiln_graph_add_output(kiln_graph *graph, kiln_ir_value *value) {
  kiln_block_add_output(graph->top, value);
}

/* -- Values and blocks -- */

kiln_ir_value *kiln__value_create(kiln_graph *graph, const kiln_type *type) {
  kiln_ir_value *value = KILN_NEW(graph->arena, kiln_ir_value);
  value->type = type;
  value->id = graph->next_id++;
  return value;
}

static kiln_node *pseudo_node(kiln_block *block, kiln_str name, int64_t position) {
  kiln_node *node = KILN_NEW(block->graph->arena, kiln_node);
  node->name = name;
  node->graph = block->graph;
  node->block = block;
  node->position = position;
  return node;
}

kiln_block *kiln__block_create(kiln_graph *graph, kiln_node *owner) {
  kiln_block *block = KILN_NEW(graph->arena, kiln_block);
  block->graph = graph;
  block->owner = owner;
  block->param = pseudo_node(block, KILN_STR("prim::Param"), INT64_MIN);
  block->ret = pseudo_node(block, KILN_STR("prim::Return"), INT64_MAX);
  return block;
}

kiln_block *kiln_node_add_block(kiln_node *node) {
  kiln_graph *graph = node->graph;
  kiln_block *block = kiln__block_create(graph, node);
  kiln_block **blocks = KILN_NEW_ARRAY(graph->arena, kiln_block *, node->block_count + 1);
  if (node->block_count) {
    memcpy(blocks, node->blocks, sizeof *blocks * (size_t)node->block_count);
  }
  blocks[node->block_count++] = block;
  node->blocks = blocks;
  return block;
}

kiln_ir_value *kiln_block_add_input(kiln_block *block, const char *name, const kiln_type *type) {
  kiln_ir_value *value = kiln_node_add_output(block->param, type);
  if (name && *name) kiln_ir_value_set_name(value, kiln_str_from(name));
  return value;
}

void kiln_block_add_output(kiln_block *block, kiln_ir_value *value) {
  kiln_node_add_input(block->ret, value);
}

void kiln_block_remove_output(kiln_block *block, int index) {
  kiln_node_remove_input(block->ret, index);
}

void kiln_block_remove_input(kiln_block *block, int index) {
  kiln_node_remove_output(block->param, index);
}
