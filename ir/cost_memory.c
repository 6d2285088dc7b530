/* cost_memory.c: how many bytes of results live at once, if each is given back after its last use
 * and none is placed over another.
 *
 * Nodes are numbered in the order of the text. A value lives from its node to its last use; what is
 * used within a branch or loop lives to its end, since a loop comes back; views, lists and tuples
 * keep what they are made of. Inputs, attributes and constants are not counted. */
#include "ir/cost.h"

typedef struct life {
  uint64_t bytes;
  int begin, end;
} life;

typedef struct lives {
  kiln_arena *arena;
  kiln_map ends; /* node -> number of the last node within it + 1 */
  kiln_map last; /* value -> last use + 1 */
  KILN_VEC(life) found;
  int count;
} lives;

static void number_block(lives *l, const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    l->count++;
    for (int i = 0; i < n->block_count; i++) number_block(l, n->blocks[i]);
    kiln_map_set_ptr(&l->ends, n, (void *)(intptr_t)l->count);
  }
}

static int end_of(const lives *l, const kiln_node *node) {
  return (int)(intptr_t)kiln_map_find_ptr(&l->ends, node);
}

static int last_use(const lives *l, const kiln_ir_value *value) {
  return (int)(intptr_t)kiln_map_find_ptr(&l->last, value);
}

/* The user's results may hold or share the value. */
static bool passes_on(const kiln_node *user) {
  if (!user->op) return true;
  if (!user->op->schema || user->op->cost == KILN_COST_view) return true;
  for (int i = 0; i < user->op->schema->result_count; i++) {
    const kiln_schema_arg *r = &user->op->schema->results[i];
    if (r->alias.present || r->elem_alias.present) return true;
  }
  return false;
}

static void find_last_use(lives *l, kiln_ir_value *value, const kiln_block *block) {
  int last = end_of(l, value->node);
  for (const kiln_use *u = value->uses; u; u = u->next) {
    kiln_node *inside = u->user == block->ret ? NULL : kiln_node_in_block(u->user, block);
    int end = inside ? end_of(l, inside) : l->count + 1; /* a result of the block */
    if (inside && inside == u->user && passes_on(inside)) {
      for (int i = 0; i < inside->output_count; i++) {
        int kept = last_use(l, inside->outputs[i]) - 1;
        if (kept > end) end = kept;
      }
    }
    if (end > last) last = end;
  }
  kiln_map_set_ptr(&l->last, value, (void *)(intptr_t)(last + 1));
}

static bool makes_memory(const kiln_node *node, int index) {
  if (!node->op || !node->op->schema || node->op->cost == KILN_COST_view) return false;
  return index >= node->op->schema->result_count || !node->op->schema->results[index].alias.present;
}

/* Backwards, so that users come first. */
static void measure_block(lives *l, const kiln_block *block) {
  for (kiln_node *n = block->last; n; n = n->prev) {
    for (int b = n->block_count - 1; b >= 0; b--) measure_block(l, n->blocks[b]);
    for (int i = 0; i < n->output_count; i++) {
      uint64_t numel, bytes;
      find_last_use(l, n->outputs[i], block);
      if (!makes_memory(n, i) || !kiln_cost_sizes(n->outputs[i], &numel, &bytes)) continue;
      life one = {bytes, end_of(l, n), last_use(l, n->outputs[i])};
      kiln_vec_push(l->arena, &l->found, one);
    }
  }
}

uint64_t kiln__cost_peak(kiln_arena *arena, const kiln_graph *graph) {
  lives l = {.arena = arena};
  l.ends = kiln_map_in(arena);
  l.last = kiln_map_in(arena);
  number_block(&l, graph->top);
  measure_block(&l, graph->top);
  int64_t *change = KILN_NEW_ARRAY(arena, int64_t, l.count + 4);
  for (int i = 0; i < l.found.count; i++) {
    const life *one = &l.found.data[i];
    int end = one->end > l.count + 2 ? l.count + 2 : one->end;
    change[one->begin] += (int64_t)one->bytes;
    change[end] -= (int64_t)one->bytes;
  }
  int64_t now = 0, peak = 0;
  for (int i = 0; i <= l.count + 2; i++) {
    now += change[i];
    if (now > peak) peak = now;
  }
  return (uint64_t)peak;
}
