/* watch.c: what `kiln explain` asks for: why guards failed, and what instructions took.
 *
 * The first misses of a guard are kept with the two types, all of them where the log's channel
 * `guard` is on; after that a guard only counts, since a shape that alternates misses each time. */
#include <inttypes.h>

#include "jit/executor.h"

enum { KEPT_MISSES = 8, MAX_MISSES = 1024 };

/* -- Guards -- */

typedef struct watch {
  kiln_guard_watch base;
  kiln_executor *ex;
  kiln_source_loc loc;
  uint32_t told;       /* atomic: misses that were */
  const char *names[]; /* of the guarded values */
} watch;

static bool is_same(const kiln_jit_guard_miss *a, const kiln_jit_guard_miss *b) {
  return strcmp(a->site, b->site) == 0 && strcmp(a->value, b->value) == 0 &&
         strcmp(a->expected, b->expected) == 0 && strcmp(a->seen, b->seen) == 0;
}

static void keep_miss(kiln_jit *jit, const kiln_jit_guard_miss *given) {
  for (kiln_guard_miss *m = jit->misses; m; m = m->next) {
    if (!is_same(&m->public, given)) continue;
    m->public.count++;
    return;
  }
  if (jit->miss_count >= MAX_MISSES) return;
  kiln_guard_miss *m = KILN_NEW(jit->arena, kiln_guard_miss);
  m->public = *given;
  m->public.expected = kiln_arena_strdup(jit->arena, given->expected);
  m->public.seen = kiln_arena_strdup(jit->arena, given->seen);
  if (jit->last_miss) {
    jit->last_miss->next = m;
  } else {
    jit->misses = m;
  }
  jit->last_miss = m;
  jit->miss_count++;
}

static kiln_status *tell_miss(const watch *w, const kiln_guard_desc *guard,
                              const kiln_ivalue *values, bool grad_mode) {
  kiln_jit *jit = w->ex->jit;
  kiln_arena *scratch = kiln_arena_scoped(jit->env.mem);
  kiln_text expected, seen;
  kiln_text_init(&expected, scratch);
  kiln_text_init(&seen, scratch);
  const int i = kiln_guard_explain(guard, values, grad_mode, &expected, &seen);
  if (i >= 0) { /* else the flag stress_bailout made it fail */
    const kiln_jit_guard_miss miss = {
        .site = w->ex->site ? w->ex->site : "",
        .value = w->names[i],
        .expected = expected.data,
        .seen = seen.data,
        .loc = w->loc,
        .call = kiln_jit_calls(jit),
        .count = 1,
    };
    KILN_LOG(&jit->env.log, guard, 1, "%s: call %" PRIu64 ": %%%s is %s, not %s as recorded",
             miss.site, miss.call, miss.value, miss.seen, miss.expected);
    keep_miss(jit, &miss);
  }
  kiln_arena_destroy(scratch);
  return NULL;
}
static kiln_status *try_miss(const watch *w, const kiln_guard_desc *guard,
                             const kiln_ivalue *values, bool grad_mode) {
  KILN_PROTECT(tell_miss(w, guard, values, grad_mode));
}

/* The first ones write; a shape that alternates only reads. */
static bool wants_miss(watch *w) {
  if (__atomic_load_n(&w->told, __ATOMIC_RELAXED) < KEPT_MISSES) {
    __atomic_fetch_add(&w->told, 1, __ATOMIC_RELAXED);
    return true;
  }
  return kiln_log_on(&w->ex->jit->env.log, KILN_LOG_guard, 1);
}

/* From the interpreter, without the lock. */
static void missed(kiln_guard_watch *self, const kiln_guard_desc *guard, const kiln_ivalue *values,
                   bool grad_mode) {
  watch *w = (watch *)(void *)self; /* its first field */
  kiln_jit *jit = w->ex->jit;
  if (!wants_miss(w)) return;
  kiln_status *status = kiln_job_lock_take(&jit->lock, kiln_budget_current());
  if (!status) {
    status = try_miss(w, guard, values, grad_mode);
    kiln_job_lock_give(&jit->lock);
  }
  kiln_status_destroy(status); /* without memory or time: not told */
}

static watch *make_watch(kiln_executor *ex, kiln_arena *arena, int count) {
  watch *w = kiln_arena_alloc(arena, sizeof *w + sizeof *w->names * (size_t)count);
  *w = (watch){.base = {missed}, .ex = ex};
  return w;
}

static const char *value_name(kiln_arena *arena, const kiln_ir_value *v) {
  return v->name.len ? kiln_arena_strndup(arena, v->name.data, v->name.len)
                     : kiln_arena_printf(arena, "%u", v->id);
}

kiln_guard_watch *kiln__jit_watch(void *executor, const kiln_node *check, kiln_arena *arena) {
  watch *w = make_watch(executor, arena, check->input_count);
  if (check->range) w->loc = kiln_source_range_loc(check->range);
  for (int i = 0; i < check->input_count; i++) {
    w->names[i] = value_name(arena, kiln_node_input(check, i));
  }
  return &w->base;
}

kiln_guard_watch *kiln__jit_watch_inputs(kiln_executor *ex, const kiln_graph *graph,
                                         const int *checked, int count) {
  watch *w = make_watch(ex, ex->jit->arena, count);
  for (int i = 0; i < count; i++) {
    w->names[i] = value_name(ex->jit->arena, kiln_graph_input(graph, checked[i]));
  }
  return &w->base;
}

void kiln__jit_tell_miss(const kiln_guard_desc *guard, const kiln_ivalue *values, bool grad_mode) {
  const watch *w = (const watch *)(const void *)guard->watch;
  if (!w) return;
  (void)!tell_miss(w, guard, values, grad_mode);
}

bool kiln_jit_guard_miss_at(kiln_jit *jit, int index, kiln_jit_guard_miss *out) {
  if (!kiln_job_lock_look(&jit->lock)) return false;
  const kiln_guard_miss *m = jit->misses;
  for (int i = 0; m && i < index; i++) m = m->next;
  const bool found = m && index >= 0;
  if (found) *out = m->public;
  kiln_job_lock_give(&jit->lock);
  return found;
}

const kiln_log *kiln_jit_log(const kiln_jit *jit) { return &jit->env.log; }

void kiln_jit_count_call(kiln_jit *jit, kiln_call *call) {
  kiln_tally_begin(&call->tally, &jit->book);
  kiln_count(&call->tally, jit->calls);
}
uint64_t kiln_jit_calls(kiln_jit *jit) { return kiln_counter_sum(&jit->book, jit->calls); }

bool kiln_jit_group_words_at(kiln_jit *jit, int index, kiln_jit_group_words *out) {
  if (!kiln_job_lock_look(&jit->lock)) return false;
  const kiln_group_record *g = jit->groups;
  for (int i = 0; g && i < index; i++) g = g->next;
  const bool found = g && index >= 0;
  if (found) *out = (kiln_jit_group_words){g->name, g->words, g->shapes, g->loc};
  kiln_job_lock_give(&jit->lock);
  return found;
}

/* -- Times -- */

void kiln_jit_time(kiln_jit *jit) {
  if (!kiln_job_lock_look(&jit->lock)) return;
  jit->timed = true;
  kiln_job_lock_give(&jit->lock);
}

typedef struct time_job {
  void (*each)(void *user, const kiln_jit_time_row *row);
  void *user;
} time_job;

static void name_instr(const kiln_plan *plan, const kiln_instr *in, kiln_jit_time_row *row) {
  if (kiln_instr_is_op(in)) {
    row->kind = "operator";
    row->name = plan->kernels[in->x]->name;
  } else if (in->op == KILN_INSTR_GROUP) {
    row->kind = "group";
    row->name = plan->groups[in->x].name;
  } else {
    row->kind = "interpreter";
    row->name = kiln_instr_name((kiln_instr_op)in->op);
  }
}

static void tell_times(const time_job *job, const kiln_executor *ex, int depth,
                       const kiln_plan *plan) {
  const kiln_function *function = ex->root->function;
  for (int i = 0; plan && plan->times && i < plan->code_count; i++) {
    const kiln_instr_time *t = &plan->times[i];
    kiln_jit_time_row row = {.function = function ? function->qualname : ex->root->callable.name,
                             .depth = depth,
                             .ns = __atomic_load_n(&t->ns, __ATOMIC_RELAXED),
                             .count = __atomic_load_n(&t->count, __ATOMIC_RELAXED)};
    if (row.count == 0) continue;
    name_instr(plan, &plan->code[i], &row);
    if (plan->ranges && plan->ranges[i]) row.loc = kiln_source_range_loc(plan->ranges[i]);
    job->each(job->user, &row);
  }
}

void kiln_jit_each_time(kiln_jit *jit, void (*each)(void *user, const kiln_jit_time_row *row),
                        void *user) {
  const time_job job = {each, user};
  if (!kiln_job_lock_look(&jit->lock)) return;
  for (const kiln_executor *ex = jit->executors; ex; ex = ex->next) {
    for (const kiln_variant *v = ex->variants; v; v = v->next) {
      tell_times(&job, ex, v->depth, v->code.plan ? v->code.plan : v->shown.plan);
    }
    if (ex->plain) tell_times(&job, ex, 0, ex->plain->plan);
  }
  kiln_job_lock_give(&jit->lock);
}
