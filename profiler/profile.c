/* profile.c: profiles: records merged over runs, and put into graphs. */
#include "profiler/profile.h"

#include <string.h>

/* -- Sites -- */

typedef struct walk {
  void (*visit)(void *user, kiln_node *node, int number);
  void *user;
  int count;
} walk;

static void walk_block(walk *w, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) walk_block(w, n->blocks[b]);
    if (!kiln_node_is(n, KILN_OP_prim_profile) || n->input_count == 0) continue;
    int number = w->count++;
    if (w->visit) w->visit(w->user, n, number);
  }
}

int kiln_profile_each(kiln_block *block, void (*visit)(void *user, kiln_node *node, int number),
                      void *user) {
  walk w = {.visit = visit, .user = user};
  walk_block(&w, block);
  return w.count;
}

kiln_digest kiln_profile_digest(const kiln_graph *graph, kiln_arena *scratch) {
  kiln_text text = kiln_text_in(scratch);
  kiln_graph_print(&text, graph, 0, false);
  return kiln_digest_bytes(text.data, text.len);
}

/* -- Profiles -- */

static void set_runs(kiln_profile *p, int runs) {
  __atomic_store_n(&p->sink.is_full, runs >= p->wanted_runs, __ATOMIC_RELAXED);
  __atomic_store_n(&p->runs, runs, __ATOMIC_RELEASE);
}

static void commit(kiln_profile_sink *self, const kiln_type_record *records, int count) {
  kiln_profile *p = (kiln_profile *)self; /* the sink is its first field */
  pthread_mutex_lock(&p->lock);
  if (p->runs < p->wanted_runs) { /* runs that began before the last one ended are not needed */
    for (int i = 0; i < count && i < p->count; i++) {
      kiln_type_record_merge(&p->records[i], &records[i]);
    }
    set_runs(p, p->runs + 1);
  }
  pthread_mutex_unlock(&p->lock);
}

kiln_status *kiln_profile_create(kiln_mem *mem, int sites, int wanted_runs,
                                 kiln_profile **out_profile) {
  kiln_profile *p = kiln_mem_alloc_zero(mem, sizeof *p);
  if (!p) return kiln_status_oom();
  p->records = kiln_mem_alloc(mem, (size_t)sites * sizeof *p->records);
  if (!p->records) {
    kiln_mem_free(mem, p, sizeof *p);
    return kiln_status_oom();
  }
  for (int i = 0; i < sites; i++) kiln_type_record_init(&p->records[i]);
  p->sink.commit = commit;
  p->mem = mem;
  p->count = sites;
  p->wanted_runs = wanted_runs;
  pthread_mutex_init(&p->lock, NULL);
  *out_profile = p;
  return NULL;
}

void kiln_profile_destroy(kiln_profile *p) {
  if (!p) return;
  pthread_mutex_destroy(&p->lock);
  kiln_mem_free(p->mem, p->records, (size_t)p->count * sizeof *p->records);
  kiln_mem_free(p->mem, p, sizeof *p);
}

int kiln_profile_runs(kiln_profile *p) { return __atomic_load_n(&p->runs, __ATOMIC_ACQUIRE); }

void kiln_profile_fill(kiln_profile *p, const kiln_type_record *records, int count) {
  pthread_mutex_lock(&p->lock);
  if (p->runs < p->wanted_runs && p->count == count) {
    if (count) memcpy(p->records, records, (size_t)count * sizeof *records);
    set_runs(p, p->wanted_runs);
  }
  pthread_mutex_unlock(&p->lock);
}

bool kiln_profile_is_ready(kiln_profile *p) { return kiln_profile_runs(p) >= p->wanted_runs; }

/* Only when ready: nothing merges into the records any more. */
static void annotate(void *user, kiln_node *node, int number) {
  const kiln_profile *p = user;
  const kiln_type *type = kiln_type_basic(KILN_TYPE_TENSOR);
  int64_t seen_none = 0;
  if (number < p->count) {
    const kiln_type_record *r = &p->records[number];
    if (kiln_type_record_has_tensor(r)) {
      kiln_tensor_detail detail = kiln_type_record_detail(r);
      type = kiln_type_tensor(node->graph->types, &detail);
    }
    seen_none = r->seen_none;
  }
  kiln_node_set_type(node, "profiled_type", type);
  kiln_node_set_int(node, "seen_none", seen_none);
}

void kiln_profile_annotate(kiln_profile *profile, kiln_graph *graph) {
  kiln_profile_each(graph->top, annotate, profile);
}
