/* cache.c: a hash table of kernels, and a list of them by last use. */
#include "codegen/cache.h"

#include <unistd.h>

void kiln__cache_init(kiln__cache *cache, const kiln_env *env, uint64_t budget) {
  *cache = (kiln__cache){.env = env, .maker = getpid(), .budget = budget};
  pthread_mutex_init(&cache->lock, NULL);
}

/* -- Entries; under the lock -- */

static kiln__cache_entry **slot_of(kiln__cache *cache, kiln_digest key) {
  kiln__cache_entry **slot = &cache->slots[key.lo % KILN__CACHE_SLOTS];
  while (*slot && !kiln_digest_equal((*slot)->key, key)) slot = &(*slot)->same_slot;
  return slot;
}

static void unlist(kiln__cache *cache, kiln__cache_entry *e) {
  *(e->older ? &e->older->newer : &cache->oldest) = e->newer;
  *(e->newer ? &e->newer->older : &cache->newest) = e->older;
}

static void list_newest(kiln__cache *cache, kiln__cache_entry *e) {
  e->older = cache->newest;
  e->newer = NULL;
  *(cache->newest ? &cache->newest->newer : &cache->oldest) = e;
  cache->newest = e;
}

static void remove_entry(kiln__cache *cache, kiln__cache_entry *e) {
  *slot_of(cache, e->key) = e->same_slot;
  unlist(cache, e);
  cache->bytes -= e->bytes;
  kiln_compiled_release(e->code);
  kiln_job_lock_deinit(&e->making);
  kiln_mem_free(cache->env->mem, e, sizeof *e);
}

static kiln_status *find_or_add(kiln__cache *cache, kiln_digest key, kiln__cache_entry **out) {
  kiln__cache_entry **slot = slot_of(cache, key), *e = *slot;
  if (e) {
    unlist(cache, e);
  } else {
    e = kiln_mem_alloc_zero(cache->env->mem, sizeof *e);
    if (!e) return kiln_status_oom();
    e->key = key;
    kiln_job_lock_init(&e->making);
    *slot = e;
  }
  list_newest(cache, e);
  e->users++;
  *out = e;
  return NULL;
}

/* One user less; what is over the budget goes, and an entry that nobody could fill. */
static void settle(kiln__cache *cache, kiln__cache_entry *e, bool has_it) {
  char name[33];
  if (has_it && e->code && !e->bytes) {
    e->bytes = sizeof *e + e->code->code_bytes + e->code->object_bytes;
    cache->bytes += e->bytes;
  }
  if (has_it) kiln_job_lock_give(&e->making); /* now: the next one may write `code` */
  if (--e->users == 0 && !e->code) remove_entry(cache, e);
  for (kiln__cache_entry *old = cache->oldest, *next; old && cache->bytes > cache->budget;
       old = next) {
    next = old->newer;
    if (old->users > 0) continue;
    const kiln_timeline_arg args[] = {{"bytes", .number = (int64_t)old->bytes},
                                      {"code_cache", .number = (int64_t)cache->budget}};
    kiln_digest_format(old->key, name);
    kiln_timeline_mark(cache->env->timeline, KILN_EVENT_evicted, name, 2, args);
    remove_entry(cache, old);
  }
}

void kiln__cache_deinit(kiln__cache *cache) {
  while (cache->oldest) remove_entry(cache, cache->oldest);
  pthread_mutex_destroy(&cache->lock);
}

/* -- For threads -- */

/* Without the lock, in a child of a fork, the entry stays with its user. */
static void leave(kiln__cache *cache, kiln__cache_entry *e, bool has_it) {
  kiln_status *status = kiln_short_lock_take(&cache->lock, cache->maker);
  if (!status) {
    settle(cache, e, has_it);
    pthread_mutex_unlock(&cache->lock);
  }
  kiln_status_destroy(status);
}

kiln_status *kiln__cache_enter(kiln__cache *cache, kiln_digest key, kiln__cache_entry **out) {
  KILN_TRY(kiln_short_lock_take(&cache->lock, cache->maker));
  kiln_status *status = find_or_add(cache, key, out);
  pthread_mutex_unlock(&cache->lock);
  KILN_TRY(status);
  status = kiln_job_lock_take(&(*out)->making, kiln_budget_current());
  if (status) leave(cache, *out, false);
  return status;
}

void kiln__cache_leave(kiln__cache *cache, kiln__cache_entry *e) { leave(cache, e, true); }
