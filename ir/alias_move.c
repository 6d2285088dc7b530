/* alias_move.c: moving a node within its block, where the order of effects and data allows it.
 *
 * Moving towards the anchor meets the nodes in between one by one. Those that must keep their order
 * with the moved node, or with one collected before, are collected too (moving down: what depends
 * on it; moving up: what it depends on); the others stay, since they may be passed. In the end the
 * anchor itself is asked: what has to cross it must not conflict with it. Nothing is changed before
 * that. Going towards the anchor once, with a mark on the nodes that are collected (down) or needed
 * (up), costs the number of edges met; memory is compared only where somebody writes. The case that
 * defeats looking at the two nodes alone is a chain: x = f(p); y = g(x); anchor(y), moving p's
 * writer. */
#include "ir/alias_internal.h"

typedef struct mover {
  kiln_alias *a;
  kiln_block *block;
  bool down;
  uint32_t generation;         /* of order_mark; counted by the graph, since analyses come and go */
  bool effects, random;        /* among the collected */
  KILN_VEC(kiln_node *) nodes; /* collected, the moved node first */
  KILN_VEC(kiln_node *) writers; /* of them */
} mover;

/* -- Marks -- */

/* Marks the nodes of the block that `node`, or a node in it, takes values from. */
static void mark_producers(mover *m, const kiln_node *node) {
  for (int i = 0; i < node->input_count; i++) {
    kiln_node *producer = kiln_node_in_block(kiln_node_input(node, i)->node, m->block);
    if (producer) producer->order_mark = m->generation;
  }
  for (int b = 0; b < node->block_count; b++) {
    mark_producers(m, node->blocks[b]->ret);
    for (const kiln_node *n = node->blocks[b]->first; n; n = n->next) mark_producers(m, n);
  }
}

static bool uses_marked(const mover *m, const kiln_node *node) {
  for (int i = 0; i < node->input_count; i++) {
    const kiln_node *producer = kiln_node_in_block(kiln_node_input(node, i)->node, m->block);
    if (producer && producer->order_mark == m->generation) return true;
  }
  for (int b = 0; b < node->block_count; b++) {
    if (uses_marked(m, node->blocks[b]->ret)) return true;
    for (const kiln_node *n = node->blocks[b]->first; n; n = n->next) {
      if (uses_marked(m, n)) return true;
    }
  }
  return false;
}

/* -- The collected nodes -- */

static void collect(mover *m, kiln_node *node) {
  kiln_arena *arena = m->a->arena;
  kiln_vec_push(arena, &m->nodes, node);
  if (kiln_alias_node_writes(m->a, node)) kiln_vec_push(arena, &m->writers, node);
  m->effects |= kiln_node_has_side_effects(node);
  m->random |= kiln_node_is_nondeterministic(node);
  if (m->down)
    node->order_mark = m->generation;
  else
    mark_producers(m, node);
}

/* Conflicts with one of the collected from number `first` on. With first > 0 the marks say too much
 * (those of the moved node are among them), so data is asked pair by pair. */
static bool conflicts(const mover *m, const kiln_node *node, int first) {
  if (first > 0) {
    for (int i = first; i < m->nodes.count; i++) {
      if (kiln_alias_must_keep_order(m->a, m->nodes.data[i], node)) return true;
    }
    return false;
  }
  if (m->down ? uses_marked(m, node) : node->order_mark == m->generation) return true;
  if (m->effects && kiln_node_has_side_effects(node)) return true;
  if (m->random && kiln_node_is_nondeterministic(node)) return true;
  bool writes = kiln_alias_node_writes(m->a, node);
  int count = writes ? m->nodes.count : m->writers.count;
  for (int i = 0; i < count; i++) {
    const kiln_node *other = writes ? m->nodes.data[i] : m->writers.data[i];
    if (kiln__alias_memory_conflict(m->a, other, node)) return true;
  }
  return false;
}

/* -- Moving -- */

static void replace_before(kiln_node *node, kiln_node *anchor) {
  kiln_node_detach(node);
  kiln_node_insert_before(node, anchor);
}

static void replace_after(kiln_node *node, kiln_node *anchor) {
  kiln_node_detach(node);
  kiln_node_insert_after(node, anchor);
}

/* Puts the collected nodes where they belong; `before`: the moved node in front of the anchor. */
static void rearrange(mover *m, kiln_node *anchor, bool before) {
  kiln_node *moved = m->nodes.data[0];
  if (before)
    replace_before(moved, anchor);
  else
    replace_after(moved, anchor);
  kiln_node *place = m->down ? (before ? anchor : moved) : (before ? moved : anchor);
  for (int i = 1; i < m->nodes.count; i++) { /* collected in order of meeting */
    if (m->down)
      replace_after(m->nodes.data[i], place);
    else
      replace_before(m->nodes.data[i], place);
    place = m->nodes.data[i];
  }
}

static bool move(kiln_alias *a, kiln_node *node, kiln_node *anchor, bool before) {
  if (node == anchor) return true;
  KILN_ASSERT(node->block == anchor->block);
  mover m = {.a = a, .block = node->block, .down = kiln_node_is_before(node, anchor)};
  m.generation = ++node->graph->order_generation;
  if (before ? node->next == anchor : anchor->next == node) return true;
  collect(&m, node);
  for (kiln_node *n = m.down ? node->next : node->prev; n && n != anchor;
       n = m.down ? n->next : n->prev) {
    if (conflicts(&m, n, 0)) collect(&m, n);
  }
  /* The moved node itself crosses the anchor only when it ends on the other side of it. */
  bool crosses = m.down != before;
  if (crosses ? conflicts(&m, anchor, 0) : m.nodes.count > 1 && conflicts(&m, anchor, 1)) {
    return false;
  }
  rearrange(&m, anchor, before);
  return true;
}

bool kiln_alias_move_before(kiln_alias *a, kiln_node *node, kiln_node *anchor) {
  if (anchor == anchor->block->ret) { /* behind everything */
    kiln_node *last = anchor->block->last;
    return last == node || move(a, node, last, false);
  }
  return move(a, node, anchor, true);
}

bool kiln_alias_move_after(kiln_alias *a, kiln_node *node, kiln_node *anchor) {
  if (anchor == anchor->block->param) { /* in front of everything */
    kiln_node *first = anchor->block->first;
    return first == node || move(a, node, first, true);
  }
  return move(a, node, anchor, false);
}
