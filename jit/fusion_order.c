/* fusion_order.c: what orders the nodes of a block: data, memory as the alias analysis sees it,
 * side effects and random numbers.
 *
 * Only neighbours in an order get an edge: a read follows the last write of its memory, a write all
 * reads since, so there are as many edges as accesses. Where nodes have too many of them, or it is
 * not known what they touch, all that writes or has effects stays in its place between the others.
 */
#include "jit/fusion.h"

enum { ACCESSES_PER_NODE = 64 };

int kiln__fusion_index(const kiln_fusion *f, const kiln_node *user) {
  while (user->block != f->block) {
    if (!user->block->owner) return -1;
    user = user->block->owner;
  }
  return user == f->block->ret ? -1 : (int)user->mark - 1;
}

static void add_edge(kiln_fusion *f, int from, int to) {
  if (from == to || from < 0 || to < 0) return;
  kiln_vec_push(f->arena, &f->nodes[from].next, to);
  kiln_vec_push(f->arena, &f->nodes[to].prev, from);
  f->edges++;
}

static void add_data_edges(kiln_fusion *f) {
  for (int i = 0; i < f->count; i++) {
    kiln_node *n = f->nodes[i].node;
    for (int k = 0; k < n->output_count; k++) {
      for (const kiln_use *use = n->outputs[k]->uses; use; use = use->next) {
        add_edge(f, i, kiln__fusion_index(f, use->user));
      }
    }
  }
}

/* An index out of bounds is told between the effects before and behind: what has raised has left
 * no more of them than the plain interpreter leaves. */
static void add_fault_edges(kiln_fusion *f) {
  const kiln_alias *alias = kiln_pass_alias(f->pass);
  int effect = -1;
  kiln_vec_int since = {0};
  for (int i = 0; i < f->count; i++) {
    const kiln_node *n = f->nodes[i].node;
    if (kiln_node_has_side_effects(n) || kiln_alias_node_writes(alias, n)) {
      for (int k = 0; k < since.count; k++) add_edge(f, since.data[k], i);
      kiln_vec_clear(&since);
      effect = i;
    } else if (f->nodes[i].fusible && n->op->flags & KILN_OP_GATHERS) {
      add_edge(f, effect, i);
      kiln_vec_push(f->arena, &since, i);
    }
  }
}

/* Side effects keep their order, and so do random numbers. */
static void add_effect_edges(kiln_fusion *f) {
  int effect = -1, random = -1;
  for (int i = 0; i < f->count; i++) {
    if (kiln_node_has_side_effects(f->nodes[i].node)) {
      add_edge(f, effect, i);
      effect = i;
    }
    if (kiln_node_is_nondeterministic(f->nodes[i].node)) {
      add_edge(f, random, i);
      random = i;
    }
  }
}

typedef struct place {
  int writer; /* the last one, and 1 */
  kiln_vec_int readers;
} place;

static place *find_place(kiln_fusion *f, kiln_map *places, int location) {
  place *p = kiln_map_find_id(places, (uint64_t)location);
  if (p) return p;
  p = KILN_NEW(f->arena, place);
  kiln_map_set_id(places, (uint64_t)location, p);
  return p;
}

static void add_accesses(kiln_fusion *f, kiln_map *places, const kiln_alias_accesses *accesses,
                         int node) {
  for (int k = 0; k < accesses->reads.count; k++) {
    place *p = find_place(f, places, accesses->reads.data[k]);
    if (p->readers.count && kiln_vec_last(&p->readers) == node) continue;
    add_edge(f, p->writer - 1, node);
    kiln_vec_push(f->arena, &p->readers, node);
  }
  for (int k = 0; k < accesses->writes.count; k++) {
    place *p = find_place(f, places, accesses->writes.data[k]);
    add_edge(f, p->writer - 1, node);
    for (int r = 0; r < p->readers.count; r++) add_edge(f, p->readers.data[r], node);
    kiln_vec_clear(&p->readers);
    p->writer = node + 1;
  }
}

/* False: not all of it could be told. */
static bool add_memory_edges(kiln_fusion *f) {
  const kiln_alias *alias = kiln_pass_alias(f->pass);
  kiln_map places = kiln_map_in(f->arena);
  kiln_alias_accesses accesses = {0};
  int64_t steps = (int64_t)ACCESSES_PER_NODE * (f->count + 64);
  for (int i = 0; i < f->count; i++) {
    if (!kiln_alias_collect(alias, f->arena, f->nodes[i].node, &steps, &accesses)) return false;
    add_accesses(f, &places, &accesses, i);
  }
  return true;
}

static void add_barriers(kiln_fusion *f) {
  const kiln_alias *alias = kiln_pass_alias(f->pass);
  int barrier = -1;
  for (int i = 0; i < f->count; i++) {
    const kiln_node *n = f->nodes[i].node;
    add_edge(f, barrier, i);
    if (!kiln_alias_node_writes(alias, n) && !kiln_node_has_side_effects(n)) continue;
    for (int k = barrier + 1; k < i; k++) add_edge(f, k, i);
    barrier = i;
  }
}

void kiln__fusion_order(kiln_fusion *f) {
  add_data_edges(f);
  add_effect_edges(f);
  add_fault_edges(f);
  if (!add_memory_edges(f)) add_barriers(f);
}
