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

/* A node that the analysis did not see (passes make some) and that may write. */
static bool writes_unseen(const kiln_node *node) {
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
    default: break;
  }
  for (int b = 0; b < node->block_count; b++) {
    for (const kiln_node *n = node->blocks[b]->first; n; n = n->next) {
      if (writes_unseen(n)) return true;
    }
  }
  return false;
}

const loc_set *kiln__alias_writes(const kiln_alias *a, const kiln_node *node, bool *out_all) {
  const loc_set *known = kiln_map_find_ptr(&a->writes, node);
  *out_all = !known && writes_unseen(node);
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

static bool is_plain(const kiln_ir_value *value) { return !kiln__alias_mask(value->type); }

bool kiln_alias_may_alias(const kiln_alias *a, const kiln_ir_value *x, const kiln_ir_value *y) {
  bool all_x, all_y;
  const loc_set *px = kiln__alias_points(a, x, &all_x), *py = kiln__alias_points(a, y, &all_y);
  if (is_plain(x) || is_plain(y)) return false;
  return all_x || all_y || kiln__locs_meet(px, py);
}

/* Something that `points` reach is in `locs`. */
static bool deep_meets(const kiln_alias *a, const loc_set *points, const loc_set *locs) {
  for (int i = 0; i < points->count; i++) {
    if (kiln__locs_meet(&a->locs.data[points->items[i]].deep, locs)) return true;
  }
  return false;
}

bool kiln_alias_may_contain(const kiln_alias *a, const kiln_ir_value *x, const kiln_ir_value *y) {
  bool all_x, all_y;
  const loc_set *px = kiln__alias_points(a, x, &all_x), *py = kiln__alias_points(a, y, &all_y);
  if (is_plain(x) || is_plain(y)) return false;
  if (all_x || all_y) return true;
  for (int i = 0; i < px->count; i++) {
    if (deep_meets(a, py, &a->locs.data[px->items[i]].deep)) return true;
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

void kiln_alias_copy_facts(kiln_alias *a, const kiln_ir_value *from, kiln_ir_value *to) {
  alias_var *var = kiln_map_find_ptr(&a->vars, from);
  if (var) kiln_map_set_ptr(&a->vars, to, var);
}

/* -- Nodes -- */

bool kiln_alias_writes_to(const kiln_alias *a, const kiln_node *node, const kiln_ir_value *value) {
  bool all_written, all;
  const loc_set *written = kiln__alias_writes(a, node, &all_written);
  if (!all_written && written->count == 0) return false;
  if (is_plain(value)) return false;
  const loc_set *points = kiln__alias_points(a, value, &all);
  return all || all_written || deep_meets(a, points, written);
}

/* `writer` writes what the node, or a node in it, reads. */
static bool writes_what_is_read(const kiln_alias *a, const kiln_node *writer,
                                const kiln_node *node) {
  for (int i = 0; i < node->input_count; i++) {
    if (kiln_alias_writes_to(a, writer, kiln_node_input(node, i))) return true;
  }
  for (int b = 0; b < node->block_count; b++) {
    if (writes_what_is_read(a, writer, node->blocks[b]->ret)) return true;
    for (const kiln_node *n = node->blocks[b]->first; n; n = n->next) {
      if (writes_what_is_read(a, writer, n)) return true;
    }
  }
  return false;
}

bool kiln__alias_memory_conflict(const kiln_alias *a, const kiln_node *x, const kiln_node *y) {
  bool all_x, all_y;
  const loc_set *wx = kiln__alias_writes(a, x, &all_x), *wy = kiln__alias_writes(a, y, &all_y);
  bool x_writes = all_x || wx->count, y_writes = all_y || wy->count;
  if (!x_writes && !y_writes) return false;
  if (x_writes && y_writes && (all_x || all_y || kiln__locs_meet(wx, wy))) return true;
  return (x_writes && writes_what_is_read(a, x, y)) || (y_writes && writes_what_is_read(a, y, x));
}

/* `user`, or a node in it, uses a result of `node`. */
static bool uses_result(const kiln_node *user, const kiln_node *node) {
  for (int o = 0; o < node->output_count; o++) {
    for (const kiln_use *u = node->outputs[o]->uses; u; u = u->next) {
      if (kiln_node_in_block(u->user, user->block) == user) return true;
    }
  }
  return false;
}

bool kiln_alias_must_keep_order(const kiln_alias *a, const kiln_node *node,
                                const kiln_node *other) {
  if (kiln_node_has_side_effects(node) && kiln_node_has_side_effects(other)) return true;
  if (kiln_node_is_nondeterministic(node) && kiln_node_is_nondeterministic(other)) return true;
  return uses_result(node, other) || uses_result(other, node) ||
         kiln__alias_memory_conflict(a, node, other);
}
