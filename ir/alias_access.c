/* alias_access.c: what a node does to the memory that the graph writes, as numbers of locations:
 * for passes that put many nodes in order, or look for those that write live memory, and cannot ask
 * about each pair. */
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

/* -- Nodes that write live memory -- */

typedef struct writer {
  kiln_node *node;
  bool told; /* or about to be */
} writer;
typedef KILN_VEC(int) writer_list;

struct kiln_alias_watch {
  const kiln_alias *alias;
  kiln_arena *arena;
  KILN_VEC(writer) writers;
  writer_list ready;
  writer_list unknown; /* which may write anything */
  writer_list *of_loc; /* which write a location */
  bool *live, *seen;   /* locations; those whose contents were looked at */
  bool has_memory;     /* some value has memory */
  bool has_unknown;    /* of some it is not known which */
};

kiln_alias_watch *kiln_alias_watch_create(const kiln_alias *a, kiln_arena *arena) {
  kiln_alias_watch *w = KILN_NEW(arena, kiln_alias_watch);
  w->alias = a;
  w->arena = arena;
  w->of_loc = KILN_NEW_ARRAY(arena, writer_list, a->locs.count + 1);
  w->live = KILN_NEW_ARRAY(arena, bool, a->locs.count + 1);
  w->seen = KILN_NEW_ARRAY(arena, bool, a->locs.count + 1);
  return w;
}

static void tell(kiln_alias_watch *w, int i) {
  if (w->writers.data[i].told) return;
  w->writers.data[i].told = true;
  kiln_vec_push(w->arena, &w->ready, i);
}
static void tell_all(kiln_alias_watch *w, writer_list *list) {
  while (list->count > 0) tell(w, kiln_vec_pop(list));
}

void kiln_alias_watch_node(kiln_alias_watch *w, kiln_node *node) {
  bool all;
  const loc_set *written = kiln__alias_writes(w->alias, node, &all);
  const int i = w->writers.count;
  if (!all && written->count == 0) return;
  kiln_vec_push(w->arena, &w->writers, ((writer){.node = node}));
  if (all) kiln_vec_push(w->arena, &w->unknown, i);
  if (w->has_unknown || (all && w->has_memory)) tell(w, i);
  for (int k = 0; k < written->count; k++) {
    const int loc = written->items[k];
    if (w->live[loc]) tell(w, i);
    if (!w->live[loc]) kiln_vec_push(w->arena, &w->of_loc[loc], i);
  }
}

void kiln_alias_watch_value(kiln_alias_watch *w, const kiln_ir_value *value) {
  bool all;
  if (!kiln__alias_mask(value->type)) return;
  const loc_set *points = kiln__alias_points(w->alias, value, &all);
  w->has_memory = true;
  tell_all(w, &w->unknown);
  if (all && !w->has_unknown) {
    w->has_unknown = true;
    for (int i = 0; i < w->writers.count; i++) tell(w, i);
  }
  for (int i = 0; i < points->count; i++) {
    if (w->seen[points->items[i]]) continue;
    w->seen[points->items[i]] = true;
    const loc_set *written = &w->alias->locs.data[points->items[i]].written_deep;
    for (int k = 0; k < written->count; k++) {
      w->live[written->items[k]] = true;
      tell_all(w, &w->of_loc[written->items[k]]);
    }
  }
}

kiln_node *kiln_alias_watch_next(kiln_alias_watch *w) {
  return w->ready.count > 0 ? w->writers.data[kiln_vec_pop(&w->ready)].node : NULL;
}
