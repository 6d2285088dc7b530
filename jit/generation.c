/* generation.c: what calls of a model have had made goes as a whole, where its memory is wanted.
 *
 * A generation has the executors of the model's functions and their regions, with plans, kernels
 * and packed weights. The next one begins empty: functions get new executors when they are called,
 * which start from the profile of those before, and find kernels that the context still keeps.
 *   thread A: in forward(), of generation 1
 *   thread B: begins generation 2; forward() has no executor from here on
 *   thread C: calls forward(): an executor of generation 2 is made
 * A ends in the plans that it is in, makes levels of them if it wants to, and what it made goes
 * with generation 1, when no run and no job has that any more (base/epoch.h). */
#include "jit/levels.h"

static void leave(kiln_generation *g) {
  if (g->jit->jobs && !g->has_left) kiln_job_queue_leave(g->jit->jobs, &g->owner);
  g->has_left = true;
}

/* No call finds it by its function from here on. */
static void forget_callable(const kiln_executor *ex) {
  const kiln_callable *own = &ex->callable;
  if (ex->function)
    (void)__atomic_compare_exchange_n(&ex->function->callable, &own, NULL, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED);
}

/* The executors and all that lies in the arenas of their jobs. */
static void destroy_parts(kiln_generation *g) {
  for (kiln_executor *ex = g->executors.first; ex; ex = ex->next) kiln__executor_deinit(ex);
  kiln_groups_release(g->groups);
  for (kiln_kept_arena *kept = g->kept, *next; kept; kept = next) {
    next = kept->next;
    kiln_arena_destroy(kept->arena);
  }
  kiln_arena_destroy(g->arena);
  kiln_mem_free(g->jit->env.mem, g, sizeof *g);
}

/* No run has it; a job that was under way is waited for. */
static void destroy_over(void *generation) {
  kiln_generation *g = generation;
  kiln_jit *jit = g->jit;
  leave(g);
  if (kiln_job_lock_look(&jit->lock)) {
    kiln_generation **link = &jit->over;
    while (*link && *link != g) link = &(*link)->older;
    if (*link) *link = g->older;
    for (const kiln_executor *ex = g->executors.first; ex; ex = ex->next)
      for (int i = 0; i < ex->slots.count; i++) ex->slots.data[i]->is_used = false;
    kiln_job_lock_give(&jit->lock);
  }
  destroy_parts(g);
}

/* Under the lock: counts and profiles of what goes stay. */
static void keep_counts(kiln_jit *jit) {
  kiln_counters c = {0};
  kiln__jit_count(jit, &c);
  jit->gone.groups += c.groups;
  jit->gone.profiled_runs += c.profiled_runs;
  jit->gone.never_run += c.groups_never_run;
  jit->gone.fallback_calls += c.fallback_calls;
  jit->gone.hits += c.guard_hits;
  jit->gone.misses += c.guard_misses;
  jit->gone.times++;
}

/* Under the lock. No call finds one of its executors from here on but those that are in it. */
static void end_now(kiln_jit *jit) {
  kiln_generation *g = jit->now;
  for (const kiln_executor *ex = g->executors.first; ex; ex = ex->next) forget_callable(ex);
  keep_counts(jit);
  kiln_status_destroy(kiln__jit_keep_profiles(jit)); /* without memory it is profiled again */
  __atomic_store_n(&g->is_over, true, __ATOMIC_RELEASE);
  g->older = jit->over;
  jit->over = g;
}

kiln_status *kiln__generation_begin(kiln_jit *jit) {
  kiln_generation *g = kiln_mem_alloc_zero(jit->env.mem, sizeof *g);
  if (!g) return kiln_status_oom();
  kiln_status *status = kiln_arena_create(jit->env.mem, &g->arena);
  if (!status && jit->now) status = kiln_job_lock_take(&jit->lock, NULL);
  if (status) {
    kiln_arena_destroy(g->arena);
    kiln_mem_free(jit->env.mem, g, sizeof *g);
    return status;
  }
  g->jit = jit;
  if (jit->jobs) kiln_job_queue_enter(jit->jobs, &g->owner);
  kiln_generation *before = jit->now;
  if (before) end_now(jit);
  __atomic_store_n(&jit->now, g, __ATOMIC_RELEASE);
  if (!before) return NULL;
  kiln_job_lock_give(&jit->lock);
  kiln_epoch_retire_in(&jit->epoch, &before->retired, destroy_over, before);
  return NULL;
}

void kiln__generations_leave(kiln_jit *jit) {
  for (kiln_generation *g = jit->over; g; g = g->older) leave(g);
  if (jit->now) leave(jit->now);
}

void kiln__generations_end(kiln_jit *jit) {
  if (!jit->now) return;
  for (const kiln_executor *ex = jit->now->executors.first; ex; ex = ex->next) forget_callable(ex);
  destroy_parts(jit->now);
  jit->now = NULL;
}

/* -- Its bytes -- */

static uint64_t packed_bytes(const kiln_jit *jit) {
  uint64_t bytes = 0;
  for (const kiln_group_info *g = jit->now->groups.first; g; g = g->next)
    for (int i = 0; i < KILN_GROUP_PACKS; i++) bytes += kiln_pack_slot_bytes(&g->packs[i]);
  return bytes;
}

uint64_t kiln_jit_bytes(kiln_jit *jit) {
  kiln_counters c = {0};
  uint64_t bytes = 0;
  /* Packed copies go when no run has them any more. */
  const uint64_t ticket = kiln_epoch_enter(&jit->epoch, 0);
  if (kiln_job_lock_look(&jit->lock)) {
    kiln__jit_count(jit, &c);
    bytes = c.groups ? c.plan_bytes + c.code_bytes + packed_bytes(jit) : 0;
    kiln_job_lock_give(&jit->lock);
  }
  kiln_epoch_leave(&jit->epoch, ticket);
  return bytes;
}

uint64_t kiln_jit_made(const kiln_jit *jit) {
  return __atomic_load_n(&jit->made_ns, __ATOMIC_RELAXED);
}

/* -- What lasts -- */

const char *kiln__jit_site(kiln_jit *jit, const char *site) {
  const kiln_str name = kiln_str_from(site);
  char *known = kiln_map_find(&jit->sites, name);
  if (known) return known;
  known = kiln_arena_strdup(jit->arena, site);
  kiln_map_set(&jit->sites, kiln_str_from(known), known);
  return known;
}
