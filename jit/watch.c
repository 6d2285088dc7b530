/* watch.c: what `kiln explain` asks for: calls, groups in words, and what instructions took. */
#include "jit/executor.h"

bool kiln_jit_guard_miss_at(kiln_jit *jit, int index, kiln_guard_miss *out) {
  return kiln_guard_miss_at(&jit->misses, index, out);
}

kiln_env *kiln_jit_env(kiln_jit *jit) { return &jit->env; }

void kiln_jit_count_call(kiln_jit *jit, kiln_call *call) {
  kiln_tally_begin(&call->tally, &jit->book);
  kiln_count(&call->tally, jit->calls);
}
uint64_t kiln_jit_calls(kiln_jit *jit) { return kiln_counter_sum(&jit->book, jit->calls); }

void kiln_jit_each_group(kiln_jit *jit, void (*each)(void *user, const kiln_jit_group_words *words),
                         void *user) {
  if (!kiln_job_lock_look(&jit->lock)) return;
  for (const kiln_group_info *g = jit->now->groups.first; g; g = g->next)
    each(user, &(kiln_jit_group_words){g->name, g->words, g->shapes, g->loc, g->tuned});
  kiln_job_lock_give(&jit->lock);
}

/* -- Times -- */

void kiln_jit_time(kiln_jit *jit) { __atomic_store_n(&jit->timed, true, __ATOMIC_RELAXED); }

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
  for (int i = 0; plan && plan->times && i < plan->code_count; i++) {
    const kiln_instr_time *t = &plan->times[i];
    kiln_jit_time_row row = {.function = ex->root->callable.name,
                             .depth = depth,
                             .ns = __atomic_load_n(&t->ns, __ATOMIC_RELAXED),
                             .count = __atomic_load_n(&t->count, __ATOMIC_RELAXED),
                             .flops = t->flops,
                             .bytes = __atomic_load_n(&t->bytes, __ATOMIC_RELAXED),
                             .tag = t};
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
  for (const kiln_executor *ex = jit->now->executors.first; ex; ex = ex->next) {
    for (const kiln_variant *v = ex->variants; v; v = v->next) {
      tell_times(&job, ex, v->depth, v->plan);
    }
    if (ex->plain) tell_times(&job, ex, 0, ex->plain->plan);
  }
  kiln_job_lock_give(&jit->lock);
}
