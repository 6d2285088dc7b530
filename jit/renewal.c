/* renewal.c: what a region does when its strategy is used up: its least used variant gives way to
 * one for what runs now, where that pays. A region that had no level left from its beginning, for
 * it stands inside of other regions' variants, makes its first one.
 *
 * Until then the plain interpreter serves what no variant fits. What that takes is measured (the
 * model's unserved time: of each such call from there to its end), and compiling may take a
 * SHARE-th of it: of 32 seconds that calls spent so, one. That bound holds for all regions of a
 * model together, so a stream of ever new shapes is slowed down by three percent at most.
 *
 * A region thinks of it after SHARE times what its last level took to make, its window. Then the
 * variant with the fewest hits in the window gives way, if more calls than that were unserved.
 * Where the one that was made last has not taken over a SHARE-th of the calls, the next window is
 * twice as long, up to MOST_PATIENCE times. Of 12 variants under calls of 100 shapes in turn each
 * new one serves a hundredth, and windows grow; where the host goes over to two new shapes, both
 * run compiled two windows later.
 *
 * The new variant takes the old one's place in the list, its depth, and its counters; what it is
 * made of is what the deepest level of the strategy says, with the history of all variants, the one
 * that goes included. Names of its groups are used again too, so that nothing grows. The old one is
 * freed when no run has it (base/epoch.h). Not under KILN_COMPAT=torch, and only where all variants
 * are guarded in front of their plans: others have regions of their own inside, which renew
 * themselves. A first variant may be such a one, down to twice the strategy's depth. */
#include "jit/compile_job.h"

enum { SHARE = 32, MOST_PATIENCE = 1024 };

/* -- Windows; under the root's lock -- */

static uint64_t hits_of(const kiln_executor *ex, const kiln_variant *v) {
  return kiln_counter_sum(&ex->jit->book, v->guard->hits) - v->hits_before;
}

/* Of the last guard: of calls that no variant served. */
static uint64_t unserved_sum(const kiln_executor *ex) {
  const kiln_guard_desc *last = NULL;
  for (const kiln_variant *v = ex->variants; v; v = v->next) {
    if (v->guard) last = v->guard;
  }
  return last ? kiln_counter_sum(&ex->jit->book, last->misses) : 0;
}

static uint64_t unserved_ns(const kiln_jit *jit) {
  return __atomic_load_n(&jit->unserved_ns, __ATOMIC_RELAXED);
}
/* The unserved time from which the model may make the region's next variant. */
static uint64_t affordable_ns(const kiln_executor *ex) {
  return SHARE * (__atomic_load_n(&ex->jit->renewal_ns, __ATOMIC_RELAXED) + ex->level_ns);
}

static void begin_window(kiln_executor *ex) {
  for (kiln_variant *v = ex->variants; v; v = v->next) {
    if (v->guard) v->hits_before = kiln_counter_sum(&ex->jit->book, v->guard->hits);
  }
  ex->unserved_before = unserved_sum(ex);
  uint64_t due = unserved_ns(ex->jit) + SHARE * ex->level_ns * ex->patience;
  if (due < affordable_ns(ex)) due = affordable_ns(ex);
  __atomic_store_n(&ex->renewal_due_ns, due, __ATOMIC_RELAXED);
}

static void lose_patience(kiln_executor *ex) {
  if (ex->patience < MOST_PATIENCE) ex->patience *= 2;
}

/* What a level may take that was never made: as long as a kernel of the model did. */
static uint64_t guess_level_ns(const kiln_jit *jit) {
  enum { LEAST_NS = 1000000 };
  const uint64_t count = __atomic_load_n(&jit->compiles, __ATOMIC_RELAXED);
  const uint64_t mean = count ? __atomic_load_n(&jit->compile_ns, __ATOMIC_RELAXED) / count : 0;
  return mean > LEAST_NS ? mean : LEAST_NS;
}

void kiln__renewal_used_up(kiln_executor *ex) {
  bool any = false, all = true;
  for (const kiln_variant *v = ex->variants; v && v->next;
       v = v->next) { /* the last one serves all */
    any = true;
    all = all && v->guard;
  }
  if (!all || ex->function || ex->jit->env.flags.compat == KILN_COMPAT_TORCH) return;
  if (!any) ex->level_ns = guess_level_ns(ex->jit);
  ex->patience = 1;
  begin_window(ex);
  __atomic_store_n(&ex->is_renewable, true, __ATOMIC_RELEASE);
}

bool kiln__renewal_wants(const kiln_executor *ex, kiln_call *call) {
  if (!__atomic_load_n(&ex->is_renewable, __ATOMIC_ACQUIRE)) return false;
  if (!call->unserved_since) call->unserved_since = kiln_now_ns();
  return __atomic_load_n(&ex->recording, __ATOMIC_RELAXED) ||
         unserved_ns(ex->jit) >= __atomic_load_n(&ex->renewal_due_ns, __ATOMIC_RELAXED);
}

bool kiln__renewal_begin(kiln_executor *ex) {
  if (unserved_ns(ex->jit) < __atomic_load_n(&ex->renewal_due_ns, __ATOMIC_RELAXED)) return false;
  kiln_variant *least = NULL;
  for (kiln_variant *v = ex->variants; v; v = v->next) {
    if (v->guard && (!least || hits_of(ex, v) < hits_of(ex, least))) least = v;
  }
  const uint64_t unserved = unserved_sum(ex) - ex->unserved_before;
  const bool pays =
      unserved_ns(ex->jit) >= affordable_ns(ex) && (!least || hits_of(ex, least) < unserved);
  if (ex->newest && SHARE * hits_of(ex, ex->newest) < unserved) {
    lose_patience(ex);
  } else {
    ex->patience = 1;
  }
  if (!pays) {
    begin_window(ex);
    return false;
  }
  ex->renewing = true;
  ex->victim = least;
  ex->level_ns = 0;
  __atomic_store_n(&ex->renewal_due_ns, UINT64_MAX, __ATOMIC_RELAXED); /* recording says it now */
  __atomic_store_n(&ex->recording, true, __ATOMIC_RELAXED);
  return true;
}

void kiln__renewal_end(kiln_executor *ex, kiln_variant *made) {
  if (!made) lose_patience(ex);
  if (made && !made->guard) __atomic_store_n(&ex->is_renewable, false, __ATOMIC_RELEASE);
  ex->newest = made;
  ex->renewing = false;
  ex->victim = NULL;
  __atomic_store_n(&ex->recording, false, __ATOMIC_RELAXED);
  begin_window(ex);
}

void kiln__renewal_charge(kiln_executor *ex, uint64_t ns) {
  ex->level_ns += ns;
  if (ex->renewing) __atomic_fetch_add(&ex->jit->renewal_ns, ns, __ATOMIC_RELAXED);
}

/* -- Giving way; under the model's lock as well -- */

/* The variant with all that lies in the arenas of its jobs. */
static void destroy_variant(void *variant) {
  kiln_variant *v = variant;
  const kiln_group_list groups = v->groups;
  kiln_arena *own = v->arena, *of_recorder = v->recorder ? v->recorder->arena : NULL;
  kiln__variant_deinit(v);
  kiln_groups_release(groups);
  kiln_arena_destroy(of_recorder);
  kiln_arena_destroy(own);
}

static void forget_arena(kiln_generation *of, const kiln_arena *arena) {
  for (kiln_kept_arena **link = &of->kept; *link; link = &(*link)->next) {
    if ((*link)->arena != arena) continue;
    *link = (*link)->next;
    return;
  }
}

void kiln__variant_retire(kiln_executor *ex, kiln_variant *v) {
  kiln_jit *jit = ex->jit;
  kiln_group_list stay = {0};
  kiln__end_interim(ex, v);
  for (kiln_group_info *g = ex->of->groups.first, *next; g; g = next) {
    next = g->next;
    g->next = NULL;
    kiln_groups_append(g->variant == v ? &v->groups : &stay, (kiln_group_list){g, g});
    if (g->variant != v) continue;
    g->slot->is_used = false;
    __atomic_fetch_sub(&ex->root->group_count, 1, __ATOMIC_RELAXED);
    jit->gone.groups++;
  }
  ex->of->groups = stay;
  if (v->profile) jit->gone.profiled_runs += (uint64_t)kiln_profile_runs(v->profile);
  forget_arena(ex->of, v->arena);
  if (v->recorder) forget_arena(ex->of, v->recorder->arena);
  kiln_epoch_retire_in(&jit->epoch, &v->retired, destroy_variant, v);
}

void kiln__renewal_replace(kiln_executor *ex, kiln_variant *v) {
  kiln_variant *victim = ex->victim, **link = &ex->variants;
  while (victim && *link != victim) link = &(*link)->next;
  v->next = victim ? victim->next : *link; /* which the victim keeps, for who stands at it */
  __atomic_store_n(link, v, __ATOMIC_RELEASE);
  if (victim) kiln__variant_retire(ex, victim);
}
