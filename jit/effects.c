/* effects.c: the analysis of ir/pass/effects.c on an inlined copy of the function's graph, in which
 * the instance's bool attributes are constants that decide branches. Asked only when two calls meet
 * on one instance. */
#include "jit/effects.h"

#include "jit/frozen.h"
#include "jit/pass_run.h"

struct kiln_effects {
  kiln_arena *arena;   /* that it lies in */
  kiln_frozen *frozen; /* the flags; NULL: whatever they are */
  bool writes;
  kiln_effects *next;
};

/* What is looked at, and what it takes. */
typedef struct looking {
  kiln_type_table *types;
  kiln_graph *graph;
  kiln_pass_runner runner;
  kiln_effects *effects; /* in an arena of its own */
} looking;

/* `self`: whose flags hold. */
static kiln_status *look(looking *l, kiln_function *function, kiln_ivalue self) {
  kiln_mem *mem = l->runner.env->mem;
  kiln_arena *kept = kiln_arena_scoped(mem), *scratch = kiln_arena_scoped(mem);
  kiln_effects *effects = KILN_NEW(kept, kiln_effects);
  KILN_TRY(kiln_unit_ensure(function));
  KILN_TRY(kiln_type_table_create(mem, function->unit->types, &l->types));
  l->graph = kiln_graph_copy(function->graph, mem, l->types);
  KILN_TRY(kiln_pass_run(&l->runner, l->graph, KILN_PASS_inline));
  effects->frozen = kiln__freeze_flags(l->graph, self, kept, scratch);
  if (effects->frozen) {
    KILN_TRY(kiln_pass_run(&l->runner, l->graph, KILN_PASS_constant_propagation));
  }
  effects->writes = kiln_graph_writes_attributes(kiln_alias_create(scratch, l->graph), l->graph);
  effects->arena = kept;
  kiln_arena_keep(kept);
  l->effects = effects;
  return NULL;
}
static kiln_status *try_look(looking *l, kiln_function *function, kiln_ivalue self) {
  KILN_PROTECT(look(l, function, self));
}

/* -- What is known -- */

enum { MOST_KNOWN = 16 }; /* settings of the flags, of one function */

/* Where nothing is known of these flags: NULL, and *out_count is how many others are. */
static const kiln_effects *find(kiln_effects *const *known, kiln_ivalue self, int *out_count) {
  const kiln_effects *e = __atomic_load_n(known, __ATOMIC_ACQUIRE);
  for (*out_count = 0; e; e = e->next, ++*out_count) {
    if (!e->frozen || kiln__frozen_holds(e->frozen, self)) return e;
  }
  return NULL;
}

bool kiln_effects_may_write(kiln_effects **known, kiln_env *env, kiln_function *function,
                            kiln_ivalue self) {
  looking l = {0};
  int count;
  const kiln_effects *found = find(known, self, &count);
  if (found) return found->writes;
  if (count >= MOST_KNOWN) return true;
  kiln_status *status = kiln_pass_runner_init(&l.runner, env, NULL);
  if (!status) status = try_look(&l, function, self);
  kiln_status_destroy(status);
  kiln_pass_runner_deinit(&l.runner);
  kiln_graph_release(l.graph);
  kiln_type_table_destroy(l.types);
  kiln_effects *e = l.effects;
  if (!e) return true; /* not known: the careful answer, and asked again next time */
  e->next = __atomic_load_n(known, __ATOMIC_RELAXED);
  while (
      !__atomic_compare_exchange_n(known, &e->next, e, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
  return e->writes;
}

void kiln_effects_destroy(kiln_effects *known) {
  for (kiln_effects *e = known, *next; e; e = next) {
    next = e->next;
    kiln_arena_destroy(e->arena);
  }
}
