/* levels.c: the state machine of executor.h: what makes the plans of an executor's levels. */
#include "jit/levels.h"

#define BIT(state) (1u << KILN_EXECUTOR_##state)
const uint8_t kiln_executor_moves[KILN_EXECUTOR__COUNT] = {
    [KILN_EXECUTOR_EMPTY] = BIT(PROFILING) | BIT(NOOP) | BIT(SIMPLE) | BIT(FAILED),
    [KILN_EXECUTOR_PROFILING] = BIT(QUEUED),
    [KILN_EXECUTOR_QUEUED] = BIT(COMPILED) | BIT(FAILED) | BIT(SIMPLE),
    [KILN_EXECUTOR_COMPILED] = BIT(EMPTY) | BIT(SIMPLE),
    [KILN_EXECUTOR_SIMPLE] = BIT(EMPTY),
};
#undef BIT

const char *kiln_executor_state_name(kiln_executor_state state) {
  static const char *const names[] = {
#define STATE_NAME(name, meaning) #name,
      KILN_EXECUTOR_STATES(STATE_NAME)
#undef STATE_NAME
  };
  return names[state];
}

static void move_to(kiln_executor *ex, kiln_executor_state state) {
  KILN_ASSERT(kiln_executor_moves[ex->state] >> state & 1);
  KILN_LOG(&ex->jit->env.log, profile, 2, "%s: level %d: %s -> %s", ex->callable.name, ex->level,
           kiln_executor_state_name(ex->state), kiln_executor_state_name(state));
  const kiln_timeline_arg args[] = {{"from", .text = kiln_executor_state_name(ex->state)},
                                    {"to", .text = kiln_executor_state_name(state)},
                                    {"level", .number = ex->level}};
  kiln_timeline_mark(ex->jit->env.timeline, KILN_EVENT_level, ex->callable.name, 3, args);
  ex->state = state;
}

void kiln__tell_failure(kiln_executor *ex, kiln_status *status) {
  const kiln_reason reason = kiln_status_code(status) == KILN_OUT_OF_MEMORY
                                 ? KILN_REASON_out_of_memory
                                 : KILN_REASON_check_failed;
  KILN_LOG(&ex->jit->env.log, warn, 1, "%s: %s", ex->callable.name, kiln_status_report(status));
  __atomic_fetch_add(&ex->jit->compile_failures, 1, __ATOMIC_RELAXED);
  kiln__jit_refuse(ex, reason, kiln_status_message(status));
  kiln_status_destroy(status);
}

/* -- Levels; under the root's lock -- */

static kiln_compile_job job_of(const kiln__request *q) {
  return (kiln_compile_job){.ex = q->ex,
                            .allowance = &q->allowance,
                            .args = q->args,
                            .arg_count = q->arg_count,
                            .seen = q->seen};
}
static kiln_compile_job level_job_of(const kiln__request *q) {
  kiln_compile_job job = job_of(q);
  job.depth = q->ex->victim ? q->ex->victim->depth : q->ex->level;
  return job;
}

/* A job ended for its budget: it may be tried again. */
static bool is_unfinished(const kiln_status *status) {
  kiln_code code = kiln_status_code(status);
  return code == KILN_LIMIT || code == KILN_CANCELLED;
}

static void publish_source(kiln_compile_job *job) {
  kiln_executor *ex = job->ex;
  if (job->source.graph) { /* a fork's takes the place of what it was made of */
    kiln_program_destroy(&ex->source);
    ex->source = job->source;
  }
  kiln__ledger_measure(ex, ex->source.graph ? ex->source.graph : ex->function->graph);
  __atomic_store_n(&ex->frozen, job->frozen, __ATOMIC_RELEASE);
  ex->site = job->site;
}

static void publish_plain(kiln_compile_job *job) {
  __atomic_store_n(&job->ex->plain, job->v, __ATOMIC_RELEASE);
}

static void publish_variant(kiln_compile_job *job) {
  kiln_executor *ex = job->ex;
  if (ex->jit->jobs && kiln_plan_wants_preparation(job->v->plan))
    job->v->state = KILN_VARIANT_UNPREPARED;
  kiln_variant *building = ex->building, **link = &ex->variants;
  if (building) {
    job->v->profile = building->profile;
    job->v->instrumented = building->instrumented;
    job->v->recorder = building;
    kiln_program_destroy(&building->recorded);
    ex->building = NULL;
  }
  if (ex->renewing) {
    kiln__renewal_replace(ex, job->v);
  } else {
    while (*link) link = &(*link)->next;
    __atomic_store_n(link, job->v, __ATOMIC_RELEASE);
  }
  __atomic_fetch_add(&ex->version, 1, __ATOMIC_RELEASE);
}

static void publish_profiling(kiln_compile_job *job) {
  kiln_executor *ex = job->ex;
  if (!job->v->profile) {
    publish_variant(job);
  } else {
    ex->building = job->v;
    __atomic_store_n(&ex->interim, job->v->instrumented, __ATOMIC_RELEASE);
    __atomic_store_n(&ex->profiling, job->v->profile, __ATOMIC_RELEASE);
  }
}

void kiln__end_interim(kiln_executor *ex, const kiln_variant *v) {
  if (!v->profile || __atomic_load_n(&ex->profiling, __ATOMIC_RELAXED) != v->profile) return;
  const kiln_variant *plain = __atomic_load_n(&ex->plain, __ATOMIC_ACQUIRE);
  __atomic_store_n(&ex->profiling, NULL, __ATOMIC_RELEASE);
  __atomic_store_n(&ex->interim, plain ? plain->plan : NULL, __ATOMIC_RELEASE);
}

static void destroy_plan(void *plan) { kiln_plan_destroy(plan); }

/* Runs that began while the level was profiling may still be in the instrumented plan. */
static void retire_profiling(kiln_executor *ex, kiln_variant *v) {
  kiln_plan *plan = v->instrumented;
  kiln__end_interim(ex, v);
  if (plan && kiln_epoch_retire(&ex->jit->epoch, destroy_plan, plan)) v->instrumented = NULL;
}

/* Runs a job of a level; *out_ns: what it took. */
static kiln_status *run_job(kiln_compile_job *job, kiln_compile_step *make,
                            void (*publish)(kiln_compile_job *job), uint64_t *out_ns) {
  const uint64_t begin = kiln_now_ns();
  kiln_status *status = kiln__job_run(job, make, publish);
  *out_ns = kiln_now_ns() - begin;
  kiln__renewal_charge(job->ex, *out_ns);
  return status;
}

/* Goes to a state that stays: the plain interpreter, over the graph that needs no profile. */
static kiln_status *settle(const kiln__request *q, kiln_executor_state state) {
  kiln_executor *ex = q->ex;
  kiln_compile_job job = level_job_of(q);
  kiln_status *status = kiln__job_run(&job, kiln__compile_simple, publish_variant);
  if (is_unfinished(status)) return status;
  if (status) { /* even that: the graph as it was loaded */
    kiln__tell_failure(ex, status);
    job = level_job_of(q);
    KILN_TRY(kiln__job_run(&job, kiln__compile_plain, publish_variant));
  }
  retire_profiling(ex, job.v);
  move_to(ex, state);
  if (state == KILN_EXECUTOR_SIMPLE) {
    __atomic_fetch_add(&ex->jit->simple_plans, 1, __ATOMIC_RELAXED);
    kiln__jit_refuse(ex, KILN_REASON_depth_used_up, "");
    kiln__renewal_used_up(ex);
  }
  return NULL;
}

/* What was to be made beyond the strategy is not; a variant that was to give way stays. */
static void end_renewal(kiln_executor *ex, kiln_status *status) {
  kiln_variant *building = ex->building;
  if (kiln_status_code(status) == KILN_UNSUPPORTED) {
    __atomic_store_n(&ex->is_renewable, false, __ATOMIC_RELEASE);
    kiln_status_destroy(status);
  } else {
    kiln__tell_failure(ex, status);
  }
  if (building && kiln_job_lock_look(&ex->jit->lock)) {
    ex->building = NULL;
    kiln__variant_retire(ex, building);
    kiln_job_lock_give(&ex->jit->lock);
  }
  kiln__renewal_end(ex, NULL);
  move_to(ex, KILN_EXECUTOR_SIMPLE);
}

/* A job of the level has failed: it may be tried again, or the level ends. */
static kiln_status *fail_level(const kiln__request *q, kiln_status *status) {
  if (is_unfinished(status)) return status;
  if (q->ex->renewing) {
    end_renewal(q->ex, status);
    return NULL;
  }
  kiln__tell_failure(q->ex, status);
  return settle(q, KILN_EXECUTOR_FAILED);
}

static kiln_status *begin_level(const kiln__request *q) {
  kiln_executor *ex = q->ex;
  kiln_compile_job job = level_job_of(q);
  uint64_t ns;
  if (!ex->site) KILN_TRY(kiln__job_run(&job, kiln__compile_source, publish_source));
  if (ex->level >= ex->jit->depth && !ex->renewing) return settle(q, KILN_EXECUTOR_SIMPLE);
  job = level_job_of(q);
  if (!ex->renewing) ex->level_ns = 0;
  kiln_status *status = run_job(&job, kiln__compile_profiling, publish_profiling, &ns);
  if (status) return fail_level(q, status);
  move_to(ex, ex->building ? KILN_EXECUTOR_PROFILING : KILN_EXECUTOR_NOOP);
  return NULL;
}

static uint64_t hash_of(const kiln__request *q) {
  return q->seen ? q->seen->hash : kiln_guard_hash(q->args, q->arg_count, q->call->grad_mode);
}

/* A level of static shapes pays where they come again. Where the call that asks for it has other
 * ones than the last that was recorded, the first DYNAMIC level takes its place, if there is one:
 * of the sizes 8, 5, 3 only 8 gets a kernel of its own; beside the calls, where a third shape came
 * before the first was compiled, none does. Not the first level otherwise, and not under
 * KILN_COMPAT=torch, as PyTorch's executor knows no such thing. */
static void skip_static_levels(const kiln__request *q) {
  kiln_executor *ex = q->ex;
  const kiln_jit *jit = ex->jit;
  int level = ex->level;
  if ((level == 0 && !q->varied) || ex->renewing || jit->env.flags.compat == KILN_COMPAT_TORCH)
    return;
  const uint64_t recorded = __atomic_load_n(&ex->recorded, __ATOMIC_RELAXED);
  if (recorded == hash_of(q)) return;
  while (level < jit->depth && !kiln_strategy_is_dynamic(&jit->strategy, jit->depth - level))
    level++;
  if (level < jit->depth) ex->level = level;
}

static kiln_status *compile_level(const kiln__request *q) {
  kiln_executor *ex = q->ex;
  skip_static_levels(q);
  kiln_compile_job job = level_job_of(q);
  KILN_ASSERT(ex->building); /* as in PROFILING, which comes before */
  __atomic_store_n(&ex->recording, false, __ATOMIC_RELAXED); /* others need not wait for the lock */
  uint64_t ns;
  kiln_status *status = run_job(&job, kiln__compile_optimized, publish_variant, &ns);
  __atomic_store_n(&ex->recording, ex->renewing && is_unfinished(status), __ATOMIC_RELAXED);
  if (status) return fail_level(q, status);
  move_to(ex, KILN_EXECUTOR_COMPILED);
  kiln__ledger_open(ex, job.v, ns);
  const uint8_t state = __atomic_load_n(&job.v->state, __ATOMIC_RELAXED);
  if (!(state & KILN_VARIANT_UNPREPARED)) retire_profiling(ex, job.v); /* or it serves on */
  if (ex->renewing) {
    if (ex->victim) kiln__jit_refuse(ex, KILN_REASON_variant_gave_way, "");
    kiln__renewal_end(ex, job.v);
    move_to(ex, KILN_EXECUTOR_SIMPLE);
  }
  kiln__dump_files(ex, job.v, job.groups);
  return NULL;
}

/* Moves on until there is a plan for these arguments. */
static kiln_status *advance(kiln__request *q) {
  kiln_executor *ex = q->ex;
  for (;;) {
    switch (ex->state) {
      case KILN_EXECUTOR_EMPTY: KILN_TRY(begin_level(q)); break;
      case KILN_EXECUTOR_PROFILING:
        KILN_ASSERT(ex->building);
        if (!kiln_profile_is_ready(ex->building->profile)) {
          kiln__count_dispatch(q->call, ex, NULL);
          __atomic_store_n(&ex->recorded, hash_of(q), __ATOMIC_RELAXED);
          kiln__ledger_meter(ex, q->call, hash_of(q));
          q->plan = ex->building->instrumented;
          return NULL;
        }
        move_to(ex, KILN_EXECUTOR_QUEUED);
        break;
      case KILN_EXECUTOR_QUEUED: KILN_TRY(compile_level(q)); break;
      default: {
        kiln_variant *v = kiln__find_variant(ex, q->call, q->args, q->arg_count);
        const bool renew = v && !v->guard && kiln__renewal_wants(ex, q->call);
        if (v && !(renew && kiln__renewal_begin(ex))) {
          kiln__count_dispatch(q->call, ex, v);
          q->plan = v->plan;
          return NULL;
        }
        KILN_CHECK(v || ex->state == KILN_EXECUTOR_COMPILED); /* others: one that always holds */
        for (v = ex->variants; v && v->guard; v = v->next)
          kiln_guard_tell(v->guard, q->args, q->call);
        ex->level += !ex->renewing;
        move_to(ex, KILN_EXECUTOR_EMPTY);
        break;
      }
    }
  }
}

kiln_status *kiln__make_beside(kiln__request *q) {
  kiln_executor *ex = q->ex;
  if (__atomic_load_n(&ex->version, __ATOMIC_ACQUIRE) != q->version) return NULL; /* it was made */
  if (ex->state == KILN_EXECUTOR_PROFILING) {
    if (!kiln_profile_is_ready(ex->building->profile)) return NULL;
    move_to(ex, KILN_EXECUTOR_QUEUED);
  }
  if (ex->state == KILN_EXECUTOR_QUEUED) return compile_level(q);
  if (ex->state != KILN_EXECUTOR_EMPTY) {
    if (ex->state != KILN_EXECUTOR_COMPILED && !kiln__renewal_begin(ex)) return NULL;
    ex->level += !ex->renewing;
    move_to(ex, KILN_EXECUTOR_EMPTY);
  }
  return begin_level(q);
}

kiln_status *kiln__start_beside(kiln__request *q) {
  kiln_executor *ex = q->ex;
  kiln_jit *jit = ex->jit;
  if (ex->state != KILN_EXECUTOR_EMPTY || ex->site) return NULL;
  KILN_TRY(begin_level(q));
  if (ex->state != KILN_EXECUTOR_PROFILING) return NULL;
  kiln_profile *profile = ex->building->profile;
  KILN_TRY(kiln_job_lock_take(&jit->lock, NULL));
  const kiln_kept_profile *kept = kiln_profile_file_find(&jit->profiles, ex->site, profile->count);
  if (kept) kiln_profile_fill(profile, kept->records, kept->count);
  kiln_job_lock_give(&jit->lock);
  return NULL;
}

kiln_status *kiln__prepare_beside(kiln__request *q) {
  kiln_executor *ex = q->ex;
  kiln_variant *v = q->preparing;
  kiln_call *call = NULL;
  const uint64_t begin = kiln_now_ns();
  if (__atomic_load_n(&ex->version, __ATOMIC_ACQUIRE) != q->version) return NULL; /* or v is gone */
  kiln_status *status = kiln_call_create(&ex->jit->env, &call);
  if (!status) {
    call->pool = NULL;
    call->epoch = &ex->jit->epoch;
    call->types = ex->jit->unit->types;
    status = kiln_plan_prepare(v->plan, call, q->weights);
  }
  kiln_call_destroy(call);
  __atomic_fetch_add(&v->entry.made_ns, kiln_now_ns() - begin, __ATOMIC_RELAXED);
  __atomic_fetch_and(&v->state, (uint8_t)~KILN_VARIANT_UNPREPARED, __ATOMIC_RELEASE);
  retire_profiling(ex, v);
  return status;
}

/* -- Under a lock and a budget -- */

static kiln_status *make_plain(kiln__request *q) {
  kiln_compile_job job = job_of(q);
  if (!q->ex->plain) KILN_TRY(kiln__job_run(&job, q->plain, publish_plain));
  q->plan = q->ex->plain->plan;
  return NULL;
}

kiln_status *kiln__try_beside(kiln__request *q) {
  if (__atomic_load_n(&q->ex->version, __ATOMIC_ACQUIRE) != q->version) return NULL;
  q->plain = kiln__compile_plain;
  KILN_TRY(make_plain(q));
  kiln__ledger_try(q->preparing);
  return NULL;
}

kiln_status *kiln__make_level(kiln__request *q) {
  if (!kiln__flags_hold(q->ex, q->args, q->arg_count)) return NULL;
  const kiln_plan *interim = __atomic_load_n(&q->ex->interim, __ATOMIC_ACQUIRE);
  if (!q->ex->jit->jobs || !interim) return advance(q);
  q->plan = interim; /* another thread has made it while this one waited */
  kiln__count_dispatch(q->call, q->ex, NULL);
  return NULL;
}

/* A job that ran out of its budget is noted on the executor. */
static void note_limit(const kiln__request *q, const kiln_status *status) {
  kiln_executor *ex = q->ex;
  const bool last = ++ex->tries >= KILN__MAX_TRIES || !q->allowance.is_limited;
  if (last && ex->renewing) {
    ex->tries = 0;
    end_renewal(ex, KILN_ERROR(KILN_LIMIT, "%s", kiln_status_message(status)));
  } else if (last) {
    __atomic_store_n(&ex->given_up, true, __ATOMIC_RELEASE);
    __atomic_fetch_add(&ex->jit->compile_failures, 1, __ATOMIC_RELAXED);
  }
  KILN_LOG(&ex->jit->env.log, compile, 1, "%s: %s%s", ex->callable.name,
           kiln_status_message(status), last ? "" : "; to be tried again");
  const kiln_timeline_arg args[] = {{"message", .text = kiln_status_message(status)},
                                    {"tries", .number = ex->tries}};
  kiln_timeline_mark(ex->jit->env.timeline, KILN_EVENT_limit, ex->callable.name, 2, args);
  kiln__jit_refuse(ex, KILN_REASON_compile_budget, "");
}

static kiln_status *try_make(kiln__request *q, kiln__plan_maker *make) { KILN_PROTECT(make(q)); }

kiln_status *kiln__run_locked(kiln__request *q, bool needs, kiln__plan_maker *make) {
  kiln_jit *jit = q->ex->jit;
  /* A function's plain plan depends on nothing that its levels change. */
  const bool alone = make == make_plain && q->ex->function;
  kiln_job_lock *lock = alone ? &q->ex->plain_lock : &q->ex->root->lock;
  kiln__compile_begin(&q->allowance, jit, q->call, q->call ? q->call->compile_bytes : q->lent_bytes,
                      needs);
  q->allowance.budget.is_quick = q->is_quick;
  kiln_status *status = kiln_job_lock_take(lock, &q->allowance.budget);
  if (!status) {
    kiln_budget *outer = kiln_budget_enter(&q->allowance.budget);
    kiln_codegen_begin(jit->codegen, (uint64_t)jit->env.flags.compile_memory);
    status = try_make(q, make);
    kiln_codegen_end(jit->codegen);
    kiln_budget_leave(NULL); /* the note is nobody's */
    const bool makes_level = make != make_plain && !q->preparing;
    if (makes_level && kiln_status_code(status) == KILN_LIMIT) note_limit(q, status);
    kiln_budget_leave(outer);
    kiln_job_lock_give(lock);
  }
  kiln__compile_end(&q->allowance);
  return status;
}

kiln_status *kiln__plan_without_jit(kiln__request *q, const kiln_plan **out_plan) {
  const kiln_variant *plain = __atomic_load_n(&q->ex->plain, __ATOMIC_ACQUIRE);
  if (__builtin_expect(plain != NULL, 1)) {
    *out_plan = plain->plan;
    return NULL;
  }
  q->plain = kiln__compile_plain;
  kiln_status *status = kiln__run_locked(q, false, make_plain);
  if (kiln_status_code(status) == KILN_LIMIT) {
    kiln_status_destroy(status);
    q->plain = kiln__compile_bare;
    status = kiln__run_locked(q, true, make_plain);
  }
  if (!status) *out_plan = q->plan;
  return status;
}
