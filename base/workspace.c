/* workspace.c: the memory plan of a cache: records and places, and the pool of runs without one. */
#include "base/workspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/chunk.h"
#include "base/memory_plan.h"

enum {
  LEAST = 4096,
  REQUESTS = 4096, /* of a run; later ones have no place */
  SLOTS = 2 * REQUESTS,
  PLANS = 4,
  MOST = 64 << 20,
  /* Bytes of a pool, to begin with and at most; of the next; the largest block is a quarter. What
     is free in it serves this cache alone: it takes an eighth of the room that a limit leaves. */
  POOL = 128 << 10,
  POOL_GROWS = 4,
  POOL_MOST = 8 << 20,
};
#define NOWHERE UINT32_MAX

typedef struct place {
  size_t bytes;
  uint64_t before; /* the order up to here */
  uint32_t at;     /* in grains; or NOWHERE */
} place;
typedef struct plan {
  int asked; /* requests of a run */
  uint64_t order;
  place *places;
  kiln_workspace_block *blocks;
  int block_count;
  size_t bytes, least;
  uint64_t runs;
} plan;

/* What a run asks for, while it is recorded. */
typedef struct record {
  kiln_workspace_block blocks[REQUESTS]; /* to is 0: not given back */
  const void *keys[SLOTS];               /* where blocks lie, by hash */
  int16_t numbers[SLOTS];
  uint32_t clock;
} record;

typedef struct kiln_workspaces {
  kiln_chunk *workspace; /* of the plans' places */
  kiln_chunk *pool;      /* of blocks that no plan knows */
  bool planned;          /* may have both */
  plan plans[PLANS];
  int newest;
  plan *current; /* as the run has asked so far; or NULL */
  plan *latest;  /* of the last run that went by one */
  record *record;
  int asked, last_asked;
  int number; /* of the last request; -1: it does not count */
  uint64_t order, last_order;
} kiln_workspaces;

static uint64_t order_with(uint64_t order, size_t bytes) {
  return (order ^ bytes) * 0x9e3779b97f4a7c15u + (order >> 29);
}

/* -- Chunks -- */

static kiln_chunk *new_chunk(kiln_cache *cache, uint32_t grains) {
  kiln_chunk *chunk = kiln_chunk_create(cache->mem, grains);
  if (chunk) cache->bytes += kiln_chunk_bytes(grains);
  return chunk;
}
/* What is lent keeps it. */
static void drop_chunk(kiln_cache *cache, kiln_chunk **chunk) {
  if (!*chunk) return;
  cache->bytes -= kiln_chunk_bytes(kiln_chunk_free(*chunk));
  kiln_chunk_leave(*chunk);
  *chunk = NULL;
}
static void collect(kiln_cache *cache, kiln_chunk *chunk) {
  if (!chunk) return;
  const uint32_t before = kiln_chunk_free(chunk);
  kiln_chunk_collect(chunk);
  cache->bytes += kiln_chunk_bytes(kiln_chunk_free(chunk) - before);
}
/* A block of it was lent. */
static void *lent(kiln_cache *cache, void *block, size_t bytes) {
  if (block) cache->bytes -= kiln_chunk_bytes(kiln_chunk_grains(bytes));
  return block;
}

void kiln_workspace_trim(kiln_cache *cache) {
  kiln_workspaces *s = cache->workspaces;
  if (!s) return;
  collect(cache, s->workspace);
  collect(cache, s->pool);
  if (s->workspace && !kiln_chunk_lends(s->workspace)) drop_chunk(cache, &s->workspace);
  if (s->pool && !kiln_chunk_lends(s->pool)) drop_chunk(cache, &s->pool);
}

/* In front of a request for which the pool has no room. */
static bool grow_pool(kiln_cache *cache, size_t bytes) {
  kiln_workspaces *s = cache->workspaces;
  const size_t had = s->pool ? kiln_chunk_bytes(kiln_chunk_size(s->pool)) : 0;
  size_t size = POOL;
  while (size <= had + had / 2 || size < 4 * bytes) size *= POOL_GROWS;
  if (size > POOL_MOST || size > kiln_mem_room(cache->mem) / 8) return false;
  kiln_chunk *pool = new_chunk(cache, (uint32_t)(size / KILN_CHUNK_GRAIN));
  if (!pool) return false;
  drop_chunk(cache, &s->pool);
  s->pool = pool;
  return true;
}
static void *take_of_pool(kiln_cache *cache, size_t bytes) {
  kiln_workspaces *s = cache->workspaces;
  if (!s->planned || bytes > POOL_MOST / 4) return NULL;
  void *block = s->pool ? kiln_chunk_take(s->pool, bytes) : NULL;
  if (!block && s->pool) {
    collect(cache, s->pool);
    block = kiln_chunk_take(s->pool, bytes);
  }
  if (!block && grow_pool(cache, bytes)) block = kiln_chunk_take(s->pool, bytes);
  return lent(cache, block, bytes);
}

/* -- Plans -- */

static void drop_plan(kiln_mem *mem, plan *p) {
  if (p->places) kiln_mem_free(mem, p->places, sizeof *p->places * (size_t)p->asked);
  if (p->blocks) kiln_mem_free(mem, p->blocks, sizeof *p->blocks * (size_t)p->block_count);
  *p = (plan){0};
}
static void drop_record(kiln_cache *cache) {
  if (cache->workspaces->record)
    kiln_mem_free(cache->mem, cache->workspaces->record, sizeof *cache->workspaces->record);
  cache->workspaces->record = NULL;
}

typedef struct candidate {
  size_t bytes;
  int number;
} candidate;
static int by_falling_bytes(const void *a, const void *b) {
  const candidate *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
  return x->number < y->number ? -1 : x->number > y->number;
}
/* The greatest blocks that came back, up to KILN_MEMORY_PLAN_MOST. */
static int choose(const record *rec, int asked, candidate *chosen) {
  int count = 0;
  for (int i = 0; i < asked; i++)
    if (rec->blocks[i].to > 0) chosen[count++] = (candidate){rec->blocks[i].bytes, i};
  qsort(chosen, (size_t)count, sizeof *chosen, by_falling_bytes);
  return count < KILN_MEMORY_PLAN_MOST ? count : KILN_MEMORY_PLAN_MOST;
}

/* The most bytes that are lent at once. */
static size_t least_bytes(const kiln_workspace_block *blocks, int count, uint32_t clock,
                          int64_t *changes) {
  memset(changes, 0, sizeof *changes * ((size_t)clock + 1));
  for (int i = 0; i < count; i++) {
    changes[blocks[i].from] += (int64_t)blocks[i].bytes;
    changes[blocks[i].to] -= (int64_t)blocks[i].bytes;
  }
  int64_t lent = 0, most = 0;
  for (uint32_t t = 0; t <= clock; t++) {
    lent += changes[t];
    if (lent > most) most = lent;
  }
  return (size_t)most;
}

/* What planning works on. */
typedef struct work {
  candidate chosen[REQUESTS];
  kiln_lifetime lives[KILN_MEMORY_PLAN_MOST];
  int64_t changes[2 * REQUESTS + 1];
} work;
static void fill_plan(plan *p, const record *rec, work *w, int count) {
  for (int i = 0; i < count; i++) {
    const int number = w->chosen[i].number;
    const kiln_workspace_block *b = &rec->blocks[number];
    w->lives[i] = (kiln_lifetime){.from = b->from,
                                  .to = b->to,
                                  .size = kiln_chunk_grains(b->bytes),
                                  .number = (uint32_t)number};
  }
  p->bytes = kiln_chunk_bytes(kiln_memory_plan(w->lives, count));
  uint64_t order = 0;
  for (int i = 0; i < p->asked; i++) {
    p->places[i] = (place){.bytes = rec->blocks[i].bytes, .before = order, .at = NOWHERE};
    order = order_with(order, rec->blocks[i].bytes);
  }
  p->order = order;
  for (int i = 0; i < count; i++) {
    const uint32_t number = w->lives[i].number;
    p->places[number].at = w->lives[i].at;
    p->blocks[i] = rec->blocks[number];
    p->blocks[i].offset = kiln_chunk_bytes(w->lives[i].at);
  }
  p->least = least_bytes(p->blocks, count, rec->clock, w->changes);
  if (p->bytes <= MOST) return;
  for (int i = 0; i < p->asked; i++) p->places[i].at = NOWHERE;
  p->bytes = 0;
}
/* A plan of the run that was recorded, in the place of the oldest. */
static void plan_run(kiln_cache *cache) {
  kiln_workspaces *s = cache->workspaces;
  kiln_mem *mem = cache->mem;
  work *w = kiln_mem_alloc(mem, sizeof *w);
  const int count = w ? choose(s->record, s->asked, w->chosen) : 0;
  plan *p = &s->plans[s->newest = (s->newest + 1) % PLANS];
  drop_plan(mem, p);
  if (s->latest == p) s->latest = NULL;
  p->asked = s->asked;
  p->block_count = count;
  p->places = kiln_mem_alloc(mem, sizeof *p->places * (size_t)p->asked);
  p->blocks = count ? kiln_mem_alloc(mem, sizeof *p->blocks * (size_t)count) : NULL;
  if (w && p->places && (p->blocks || count == 0)) {
    fill_plan(p, s->record, w, count);
  } else {
    kiln_status_refused(0, 0);
    drop_plan(mem, p);
  }
  if (w) kiln_mem_free(mem, w, sizeof *w);
}

/* One whose run has asked for the same so far, and would ask for this now. */
static plan *plan_for(kiln_workspaces *s, size_t bytes) {
  for (int i = 0; i < PLANS; i++) {
    plan *p = &s->plans[i];
    if (s->asked < p->asked && p->places[s->asked].bytes == bytes &&
        p->places[s->asked].before == s->order)
      return p;
  }
  return NULL;
}

/* -- Runs -- */

static void begin_record(kiln_cache *cache) {
  record *rec = cache->workspaces->record = kiln_mem_alloc(cache->mem, sizeof *rec);
  if (!rec) {
    kiln_status_refused(0, 0);
    return;
  }
  memset(rec->keys, 0, sizeof rec->keys);
  rec->clock = 0;
}
static void end_run(kiln_cache *cache) {
  kiln_workspaces *s = cache->workspaces;
  const bool again = s->asked == s->last_asked && s->order == s->last_order;
  const bool planned = s->current && s->current->asked == s->asked && s->current->order == s->order;
  const bool recorded = s->record && again;
  if (planned) {
    s->latest = s->current;
    s->latest->runs++;
  } else if (recorded) {
    plan_run(cache);
  }
  drop_record(cache);
  if (again && !planned && !recorded) begin_record(cache);
  s->last_asked = s->asked;
  s->last_order = s->order;
}
/* A workspace in which every plan finds room. */
static void find_workspace(kiln_cache *cache) {
  kiln_workspaces *s = cache->workspaces;
  size_t bytes = 0;
  for (int i = 0; i < PLANS; i++)
    if (s->plans[i].bytes > bytes) bytes = s->plans[i].bytes;
  if (bytes == 0 || (s->workspace && kiln_chunk_bytes(kiln_chunk_size(s->workspace)) >= bytes))
    return;
  drop_chunk(cache, &s->workspace);
  drop_chunk(cache, &s->pool);
  kiln_cache_trim(cache); /* what it keeps had the blocks that the workspace will have */
  kiln_mem_drop_kept(cache->mem);
  s->workspace = new_chunk(cache, (uint32_t)(bytes / KILN_CHUNK_GRAIN));
}

kiln_status *kiln_workspace_open(kiln_cache *cache) {
  cache->workspaces = kiln_mem_alloc_zero(cache->mem, sizeof *cache->workspaces);
  return cache->workspaces ? NULL : kiln_status_oom();
}

static void forget(kiln_cache *cache) {
  kiln_workspaces *s = cache->workspaces;
  drop_chunk(cache, &s->workspace);
  drop_chunk(cache, &s->pool);
  for (int i = 0; i < PLANS; i++) drop_plan(cache->mem, &s->plans[i]);
  s->latest = NULL;
  drop_record(cache);
}
void kiln_workspace_begin_run(kiln_cache *cache, bool planned) {
  kiln_workspaces *s = cache->workspaces;
  s->planned = planned;
  if (s->asked == 0 && planned) return;
  if (planned) end_run(cache);
  collect(cache, s->workspace);
  collect(cache, s->pool);
  s->current = NULL;
  s->asked = 0;
  s->order = 0;
  if (planned) {
    find_workspace(cache);
  } else {
    forget(cache);
  }
}

void kiln_workspace_deinit(kiln_cache *cache) {
  kiln_workspaces *s = cache->workspaces;
  if (!s) return;
  forget(cache);
  cache->workspaces = NULL;
  kiln_mem_free(cache->mem, s, sizeof *s);
}

bool kiln_workspace_plan_of(const kiln_cache *cache, kiln_workspace_plan *out_plan) {
  const plan *p = cache->workspaces ? cache->workspaces->latest : NULL;
  if (!p || p->bytes == 0) return false;
  *out_plan = (kiln_workspace_plan){.count = p->block_count,
                                    .blocks = p->blocks,
                                    .bytes = p->bytes,
                                    .least = p->least,
                                    .runs = p->runs};
  return true;
}

/* -- Blocks -- */

/* The request is the run's next; the plan that knows it, or NULL. */
static const plan *count_request(kiln_cache *cache, size_t bytes, uint32_t *out_at) {
  kiln_workspaces *s = cache->workspaces;
  const plan *p = s->current;
  if (!p || s->asked >= p->asked || p->places[s->asked].bytes != bytes)
    p = s->current = plan_for(s, bytes);
  *out_at = p ? p->places[s->asked].at : NOWHERE;
  record *rec = s->record;
  if (rec)
    rec->blocks[s->asked] =
        (kiln_workspace_block){.bytes = bytes, .from = rec->clock++, .tag = cache->tag};
  s->order = order_with(s->order, bytes);
  s->number = s->asked++;
  return p;
}
void *kiln__workspace_take(kiln_cache *cache, size_t bytes) {
  kiln_workspaces *s = cache->workspaces;
  s->number = -1;
  if (bytes < LEAST) return NULL;
  uint32_t at = NOWHERE;
  const plan *p = s->asked < REQUESTS ? count_request(cache, bytes, &at) : NULL;
  if (!p) return take_of_pool(cache, bytes);
  if (at == NOWHERE || !s->workspace) return NULL;
  return lent(cache, kiln_chunk_take_at(s->workspace, at, bytes), bytes);
}

void kiln_workspace_give(kiln_cache *cache, void *block, size_t bytes) {
  const kiln_workspaces *s = cache ? cache->workspaces : NULL;
  kiln_chunk *chunk = kiln_chunk_of(block);
  if (!s || (chunk != s->workspace && chunk != s->pool)) {
    kiln_chunk_give_stray(block, bytes);
    return;
  }
  kiln_chunk_give(chunk, block, bytes);
  cache->bytes += kiln_chunk_bytes(kiln_chunk_grains(bytes));
}

/* -- Records -- */

/* Where the table has a block's number, or will have it. */
static int slot_of(const record *rec, const void *block) {
  uint32_t slot = (uint32_t)(((uint64_t)(uintptr_t)block * 0x9e3779b97f4a7c15u) >> 32) % SLOTS;
  while (rec->keys[slot] && rec->keys[slot] != block) slot = (slot + 1) % SLOTS;
  return (int)slot;
}
void kiln__workspace_note(kiln_cache *cache, const void *block) {
  const kiln_workspaces *s = cache->workspaces;
  record *rec = s->record;
  if (!rec || s->number < 0) return;
  const int slot = slot_of(rec, block);
  rec->keys[slot] = block;
  rec->numbers[slot] = (int16_t)s->number;
}
void kiln__workspace_gone(kiln_cache *cache, const void *block) {
  record *rec = cache->workspaces->record;
  if (!rec) return;
  const int slot = slot_of(rec, block);
  if (!rec->keys[slot]) return;
  kiln_workspace_block *b = &rec->blocks[rec->numbers[slot]];
  if (b->to == 0) b->to = rec->clock++;
}
