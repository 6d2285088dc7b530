/* alias.c: the questions that passes ask the alias analysis. */
#include "ir/alias_internal.h"

static const loc_set no_locs;

const loc_set *kiln__alias_points(const kiln_alias *a, const kiln_ir_value *value, bool *out_all) {
  *out_all = false;
  const alias_var *var = kiln_map_find_ptr(&a->vars, value);
  if (var) return &var->points;
  *out_all = kiln__alias_mask(value->type) != 0; /* made after the analysis */
  return &no_locs;
}

bool kiln_node_may_write(const kiln_node *node) {
  if (!node->op) return true;
  if (node->op->schema) return node->op->flags & KILN_OP_WRITES;
  switch (node->op->id) {
    case KILN_OP_prim_SetAttr:
    case KILN_OP_prim_CallFunction:
    case KILN_OP_prim_CallMethod:
    case KILN_OP_prim_Enter:
    case KILN_OP_prim_Exit:
    case KILN_OP_prim_fork:
    case KILN_OP_wait: return true;
    default: return false;
  }
}

/* A node that the analysis did not see (passes make some) and that may write. */
static bool writes_unseen(const kiln_alias *a, const kiln_node *node) {
  if (kiln_node_may_write(node)) return true;
  for (int b = 0; b < node->block_count; b++) {
    if (kiln_map_find_ptr(&a->quiet, node->blocks[b])) continue;
    for (const kiln_node *n = node->blocks[b]->first; n; n = n->next) {
      if (writes_unseen(a, n)) return true;
    }
  }
  return false;
}

const loc_set *kiln__alias_writes(const kiln_alias *a, const kiln_node *node, bool *out_all) {
  const loc_set *known = kiln_map_find_ptr(&a->writes, node);
  *out_all = !known && writes_unseen(a, node);
  return known ? known : &no_locs;
}

bool kiln_alias_node_writes(const kiln_alias *a, const kiln_node *node) {
  bool all;
  return kiln__alias_writes(a, node, &all)->count > 0 || all;
}

/* -- Values -- */

bool kiln_alias_has_writers(const kiln_alias *a, const kiln_ir_value *value) {
  bool all;
  const loc_set *points = kiln__alias_points(a, value, &all);
  if (all) return a->writes.count > 0;
  for (int i = 0; i < points->count; i++) {
    if (a->locs.data[points->items[i]].written_deep.count) return true;
  }
  return false;
}

static bool holds_no_memory(const kiln_ir_value *value) { return !kiln__alias_mask(value->type); }

/* Something that `points` reach is in `locs`. */
static bool deep_meets(const kiln_alias *a, const loc_set *points, const loc_set *locs) {
  for (int i = 0; i < points->count; i++) {
    if (kiln__locs_meet(&a->locs.data[points->items[i]].deep, locs)) return true;
  }
  return false;
}

bool kiln_alias_is_wildcard(const kiln_alias *a, const kiln_ir_value *value) {
  bool all;
  const loc_set *points = kiln__alias_points(a, value, &all);
  if (all) return true;
  for (int i = 0; i < points->count; i++) {
    const location *loc = &a->locs.data[points->items[i]];
    if (loc->escaped || loc->leaves) return true;
  }
  return false;
}

/* -- Nodes -- */

bool kiln_alias_writes_to(const kiln_alias *a, const kiln_node *node, const kiln_ir_value *value) {
  bool all_written, all;
  const loc_set *written = kiln__alias_writes(a, node, &all_written);
  if (!all_written && written->count == 0) return false;
  if (holds_no_memory(value)) return false;
  const loc_set *points = kiln__alias_points(a, value, &all);
  return all || all_written || deep_meets(a, points, written);
}

kiln_alias_marks kiln_alias_marks_create(const kiln_alias *a, kiln_arena *arena) {
  return (kiln_alias_marks){.marked = KILN_NEW_ARRAY(arena, bool, a->locs.count + 1)};
}

void kiln_alias_mark_writes(const kiln_alias *a, const kiln_node *node, kiln_alias_marks *marks) {
  bool all;
  const loc_set *written = kiln__alias_writes(a, node, &all);
  marks->all |= all;
  for (int i = 0; i < written->count; i++) marks->marked[written->items[i]] = true;
}

bool kiln_alias_is_marked(const kiln_alias *a, const kiln_alias_marks *marks,
                          const kiln_ir_value *value) {
  bool all;
  if (holds_no_memory(value)) return false;
  const loc_set *points = kiln__alias_points(a, value, &all);
  for (int i = 0; i < points->count; i++) {
    const loc_set *deep = &a->locs.data[points->items[i]].deep;
    for (int k = 0; k < deep->count; k++)
      if (marks->marked[deep->items[k]]) return true;
  }
  return all || marks->all;
}
