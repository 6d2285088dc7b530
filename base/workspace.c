/* workspace.c: the memory plan of a cache: records, places, and what leaves its run.
 *
 * The registry of a mem's workspaces is for blocks that come back without their cache: rare, and
 * under a lock. All else is the cache's own. */
#include "base/workspace.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory_plan.h"
#include "base/sanitize.h"

enum {
  UNIT = 320, /* no power of two: neighbours begin at other lines of their pages */
  LEAST = 4096,
  REQUESTS = 4096, /* of a run; later ones have no place */
  SLOTS = 2 * REQUESTS,
  PLANS = 4,
  MOST = 64 << 20,
  MOST_LEFT = 8, /* workspaces that may be left to blocks before the cache plans no more */
};
#define NOWHERE UINT32_MAX

struct kiln_workspace {
  kiln_workspace *next; /* in the registry */
  char *data;
  uint32_t units, lent; /* blocks; of one that was left, under the registry's lock */
  uint32_t strayed;     /* blocks that came back without the cache: under that lock */
  bool left;            /* the cache has another: whoever gives the last block back frees it */
  size_t free_bytes;    /* counted in the cache's */
  uint64_t taken[];     /* a bit a unit */
};

typedef struct place {
  size_t bytes;
  uint64_t before; /* the order up to here */
  uint32_t at;     /* in units; or NOWHERE */
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
  kiln_workspace *workspace;
  plan plans[PLANS];
  int newest, left;
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
static uint32_t units_of(size_t bytes) { return (uint32_t)((bytes + UNIT - 1) / UNIT); }

/* -- Bits -- */

/* The bits of word w among [from, from + count). */
static uint64_t mask_of(uint32_t w, uint32_t from, uint32_t count) {
  uint64_t mask = ~(uint64_t)0;
  if (w == from / 64) mask <<= from % 64;
  if (w == (from + count - 1) / 64) mask &= ~(uint64_t)0 >> (63 - (from + count - 1) % 64);
  return mask;
}
static bool is_free(const uint64_t *bits, uint32_t from, uint32_t count) {
  uint64_t any = 0;
  for (uint32_t w = from / 64; w <= (from + count - 1) / 64; w++)
    any |= bits[w] & mask_of(w, from, count);
  return any == 0;
}
static void flip(uint64_t *bits, uint32_t from, uint32_t count) {
  for (uint32_t w = from / 64; w <= (from + count - 1) / 64; w++)
    bits[w] ^= mask_of(w, from, count);
}

/* -- Workspaces -- */

static size_t struct_bytes(uint32_t units) {
  return sizeof(kiln_workspace) + ((size_t)units + 63) / 64 * sizeof(uint64_t);
}
static void free_workspace(kiln_mem *mem, kiln_workspace *workspace) {
  kiln_asan_unpoison(workspace->data, (size_t)workspace->units * UNIT);
  kiln_mem_free(mem, workspace->data, (size_t)workspace->units * UNIT);
  kiln_mem_free(mem, workspace, struct_bytes(workspace->units));
}
static kiln_workspace *new_workspace(kiln_mem *mem, uint32_t units) {
  kiln_workspace *workspace = kiln_mem_alloc_zero(mem, struct_bytes(units));
  char *data = workspace ? kiln_mem_alloc(mem, (size_t)units * UNIT) : NULL;
  if (!data) {
    kiln_status_refused(0, 0);
    if (workspace) kiln_mem_free(mem, workspace, struct_bytes(units));
    return NULL;
  }
  workspace->data = data;
  workspace->units = units;
  workspace->free_bytes = (size_t)units * UNIT;
  kiln_asan_poison(data, workspace->free_bytes);
  kiln__workspace_list *list = kiln__mem_workspaces(mem);
  pthread_mutex_lock(&list->lock);
  workspace->next = list->first;
  list->first = workspace;
  pthread_mutex_unlock(&list->lock);
  return workspace;
}
static void unlink_workspace(kiln__workspace_list *list, const kiln_workspace *workspace) {
  kiln_workspace **link = &list->first;
  while (*link != workspace) link = &(*link)->next;
  *link = workspace->next;
}
static bool holds(const kiln_workspace *workspace, const void *block) {
  const uintptr_t at = (uintptr_t)block, data = (uintptr_t)workspace->data;
  return at >= data && at - data < (size_t)workspace->units * UNIT;
}

/* Between two runs: the workspace has nothing lent, or is left to what it lent. */
static void settle(kiln_cache *cache) {
  kiln_workspaces *s = cache->workspaces;
  kiln_workspace *workspace = s->workspace;
  if (!workspace || workspace->lent == 0) return;
  kiln__workspace_list *list = kiln__mem_workspaces(cache->mem);
  pthread_mutex_lock(&list->lock);
  workspace->lent -= workspace->strayed;
  workspace->strayed = 0;
  workspace->left = workspace->lent > 0;
  pthread_mutex_unlock(&list->lock);
  cache->bytes -= workspace->free_bytes;
  if (workspace->left) {
    s->workspace = NULL;
    s->left++;
    return;
  }
  memset(workspace->taken, 0, struct_bytes(workspace->units) - sizeof *workspace);
  workspace->free_bytes = (size_t)workspace->units * UNIT;
  cache->bytes += workspace->free_bytes;
}
void kiln_workspace_trim(kiln_cache *cache) {
  kiln_workspaces *s = cache->workspaces;
  if (!s || !s->workspace || s->workspace->lent > 0) return;
  kiln_workspace *workspace = s->workspace;
  kiln__workspace_list *list = kiln__mem_workspaces(cache->mem);
  pthread_mutex_lock(&list->lock);
  unlink_workspace(list, workspace);
  pthread_mutex_unlock(&list->lock);
  cache->bytes -= workspace->free_bytes;
  s->workspace = NULL;
  free_workspace(cache->mem, workspace);
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
    w->lives[i] = (kiln_lifetime){
        .from = b->from, .to = b->to, .size = units_of(b->bytes), .number = (uint32_t)number};
  }
  p->bytes = (size_t)kiln_memory_plan(w->lives, count) * UNIT;
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
    p->blocks[i].offset = (size_t)w->lives[i].at * UNIT;
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
  uint32_t units = 0;
  for (int i = 0; i < PLANS; i++)
    if (units_of(s->plans[i].bytes) > units) units = units_of(s->plans[i].bytes);
  if (s->workspace && s->workspace->units < units) kiln_workspace_trim(cache);
  if (s->workspace || units == 0) return;
  kiln_cache_trim(cache); /* what it keeps had the blocks that the workspace will have */
  kiln_mem_drop_kept(cache->mem);
  s->workspace = new_workspace(cache->mem, units);
  if (s->workspace) cache->bytes += s->workspace->free_bytes;
}

kiln_status *kiln_workspace_open(kiln_cache *cache) {
  cache->workspaces = kiln_mem_alloc_zero(cache->mem, sizeof *cache->workspaces);
  return cache->workspaces ? NULL : kiln_status_oom();
}

static void forget(kiln_cache *cache) {
  kiln_workspaces *s = cache->workspaces;
  kiln_workspace_trim(cache);
  for (int i = 0; i < PLANS; i++) drop_plan(cache->mem, &s->plans[i]);
  s->latest = NULL;
  drop_record(cache);
}
void kiln_workspace_begin_run(kiln_cache *cache, bool planned) {
  kiln_workspaces *s = cache->workspaces;
  if (s->asked == 0 && planned) return;
  const bool plans = planned && s->left < MOST_LEFT;
  if (plans) end_run(cache);
  settle(cache);
  s->current = NULL;
  s->asked = 0;
  s->order = 0;
  if (plans) {
    find_workspace(cache);
  } else {
    forget(cache);
  }
}

void kiln_workspace_deinit(kiln_cache *cache) {
  kiln_workspaces *s = cache->workspaces;
  if (!s) return;
  settle(cache);
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

void *kiln__workspace_take(kiln_cache *cache, size_t bytes) {
  kiln_workspaces *s = cache->workspaces;
  s->number = -1;
  if (bytes < LEAST || s->asked == REQUESTS) return NULL;
  const plan *p = s->current;
  if (!p || s->asked >= p->asked || p->places[s->asked].bytes != bytes)
    p = s->current = plan_for(s, bytes);
  const uint32_t at = p ? p->places[s->asked].at : NOWHERE;
  record *rec = s->record;
  if (rec)
    rec->blocks[s->asked] =
        (kiln_workspace_block){.bytes = bytes, .from = rec->clock++, .tag = cache->tag};
  s->order = order_with(s->order, bytes);
  s->number = s->asked++;
  kiln_workspace *workspace = s->workspace;
  if (at == NOWHERE || !workspace) return NULL;
  const uint32_t units = units_of(bytes);
  if (at + units > workspace->units || !is_free(workspace->taken, at, units)) return NULL;
  flip(workspace->taken, at, units);
  workspace->lent++;
  workspace->free_bytes -= (size_t)units * UNIT;
  cache->bytes -= (size_t)units * UNIT;
  char *block = workspace->data + (size_t)at * UNIT;
  kiln_asan_unpoison(block, bytes);
  kiln__mem_fill(cache->mem, block, bytes);
  return block;
}

/* From elsewhere: the last block of a workspace that was left takes it along. */
static void give_stray(kiln_mem *mem, const void *block) {
  kiln__workspace_list *list = kiln__mem_workspaces(mem);
  pthread_mutex_lock(&list->lock);
  kiln_workspace *workspace = list->first;
  while (!holds(workspace, block)) workspace = workspace->next;
  bool last = false;
  if (!workspace->left) {
    workspace->strayed++;
  } else if (--workspace->lent == 0) {
    unlink_workspace(list, workspace);
    last = true;
  }
  pthread_mutex_unlock(&list->lock);
  if (last) free_workspace(mem, workspace);
}
void kiln_workspace_give(kiln_mem *mem, kiln_cache *cache, void *block, size_t bytes) {
  kiln_asan_poison(block, bytes);
  kiln_workspace *workspace =
      cache && cache->mem == mem && cache->workspaces ? cache->workspaces->workspace : NULL;
  if (!workspace || !holds(workspace, block)) {
    give_stray(mem, block);
    return;
  }
  const uint32_t units = units_of(bytes);
  flip(workspace->taken, (uint32_t)((size_t)((char *)block - workspace->data) / UNIT), units);
  workspace->lent--;
  workspace->free_bytes += (size_t)units * UNIT;
  cache->bytes += (size_t)units * UNIT;
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
