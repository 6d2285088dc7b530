/* alias_access.c: what a node does to the memory that the graph writes, as numbers of locations:
 * for passes that put many nodes in order and cannot ask about each pair. */
#include "ir/alias_internal.h"

typedef struct collector {
  const kiln_alias *alias;
  kiln_arena *arena;
  kiln_alias_accesses *out;
  int64_t *steps;
} collector;

static bool add_all(collector *c, const loc_set *set, kiln_vec_int *out) {
  if ((*c->steps -= set->count) < 0) return false;
  for (int i = 0; i < set->count; i++) kiln_vec_push(c->arena, out, set->items[i]);
  return true;
}

static bool add_reads(collector *c, const kiln_node *node) {
  for (int i = 0; i < node->input_count; i++) {
    bool all;
    const loc_set *points = kiln__alias_points(c->alias, kiln_node_input(node, i), &all);
    if (all || (*c->steps -= points->count) < 0) return false;
    for (int k = 0; k < points->count; k++) {
      const location *loc = &c->alias->locs.data[points->items[k]];
      if (!add_all(c, &loc->written_deep, &c->out->reads)) return false;
    }
  }
  for (int b = 0; b < node->block_count; b++) {
    if (!add_reads(c, node->blocks[b]->ret)) return false;
    for (const kiln_node *n = node->blocks[b]->first; n; n = n->next) {
      if (!add_reads(c, n)) return false;
    }
  }
  return true;
}

bool kiln_alias_collect(const kiln_alias *a, kiln_arena *arena, const kiln_node *node,
                        int64_t *steps, kiln_alias_accesses *out) {
  collector c = {a, arena, out, steps};
  kiln_vec_clear(&out->reads);
  kiln_vec_clear(&out->writes);
  bool all;
  const loc_set *written = kiln__alias_writes(a, node, &all);
  return !all && add_all(&c, written, &out->writes) && add_reads(&c, node);
}
