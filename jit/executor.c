/* executor.c: dispatch, and the state machine of executor.h. */
#include "jit/compile_job.h"

enum { HINTS = 8, MANY_VARIANTS = 2 };

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
  kiln_timeline_mark(ex->jit->env.timeline, "level", ex->callable.name, 3, args);
  ex->state = state;
}

/* -- Ends -- */

void kiln__variant_deinit(kiln_variant *v) {
  kiln_plan_destroy(v->plan);
  v->plan = NULL;
  kiln_plan_destroy(v->instrumented);
  v->instrumented = NULL;
  kiln_program_destroy(&v->recorded);
  kiln_profile_destroy(v->profile);
  v->profile = NULL;
}

void kiln__executor_deinit(kiln_executor *ex) {
  if (ex->building) kiln__variant_deinit(ex->building);
  for (kiln_variant *v = ex->variants; v; v = v->next) kiln__variant_deinit(v);
  if (ex->plain) kiln__variant_deinit((kiln_variant *)(uintptr_t)ex->plain);
  kiln_program_destroy(&ex->source);
  if (ex->root == ex) kiln_job_lock_deinit(&ex->lock);
}

/* A level failed: why, in one word where one fits. */
static void tell_failure(kiln_executor *ex, kiln_status *status) {
  const kiln_reason reason = kiln_status_code(status) == KILN_OUT_OF_MEMORY
                                 ? KILN_REASON_out_of_memory
                                 : KILN_REASON_check_failed;
  KILN_LOG(&ex->jit->env.log, warn, 1, "%s: %s", ex->callable.name, kiln_status_report(status));
  __atomic_fetch_add(&ex->jit->compile_failures, 1, __ATOMIC_RELAXED);
  kiln__jit_refuse(ex, reason, kiln_status_message(status));
  kiln_status_destroy(status);
}

/* -- Dispatch -- */

static bool variant_holds(const kiln_variant *v, kiln_call *call, const kiln_ivalue *args) {
  return !v->guard || kiln_guard_check(v->guard, args, NULL, call);
}

/* Counts a call that variant `taken` serves (NULL: none): those before it missed. Where it has
 * given way in the meantime, the one in its place has its counters. */
static void count_dispatch(kiln_call *call, const kiln_executor *ex, const kiln_variant *taken) {
  const uint32_t hits = taken && taken->guard ? taken->guard->hits : 0;
  kiln_variant *v = __atomic_load_n(&ex->variants, __ATOMIC_ACQUIRE);
  for (; v; v = __atomic_load_n(&v->next, __ATOMIC_ACQUIRE)) {
    const bool is_taken = v == taken || (hits && v->guard && v->guard->hits == hits);
    if (v->guard) kiln_count(&call->tally, is_taken ? v->guard->hits : v->guard->misses);
    if (is_taken) return;
  }
}

static kiln_variant *variant_at(kiln_variant *v, int place) {
  for (; v && place > 0; place--) v = __atomic_load_n(&v->next, __ATOMIC_ACQUIRE);
  return v;
}

/* The variant that serves these arguments, or NULL. */
static kiln_variant *find_variant(kiln_executor *ex, kiln_call *call, const kiln_ivalue *args,
                                  int arg_count) {
  kiln_variant *first = __atomic_load_n(&ex->variants, __ATOMIC_ACQUIRE), *v = first;
  if (!v || !v->guard) return v; /* the usual case of a function: one variant without a guard */
  int tried = 0;
  for (; v && tried < MANY_VARIANTS; tried++) {
    if (variant_holds(v, call, args)) return v;
    v = __atomic_load_n(&v->next, __ATOMIC_ACQUIRE);
  }
  if (!v) return NULL;
  uint16_t *hint = &ex->hints[kiln_guard_hash(args, arg_count, call->grad_mode) % HINTS];
  kiln_variant *guess = variant_at(first, __atomic_load_n(hint, __ATOMIC_RELAXED));
  if (guess && variant_holds(guess, call, args)) return guess;
  for (; v; v = __atomic_load_n(&v->next, __ATOMIC_ACQUIRE), tried++) {
    if (!variant_holds(v, call, args)) continue;
    /* Not of what always holds: a variant that takes another's place is to be found before it. */
    if (v->guard) __atomic_store_n(hint, (uint16_t)tried, __ATOMIC_RELAXED);
    return v;
  }
  return NULL;
}

/* -- Levels; under the root's lock -- */

/* What one call asks for, and the jobs that it needs may take. */
typedef struct request {
  kiln_executor *ex;
  kiln_call *call;
  const kiln_ivalue *args;
  int arg_count;
  kiln_compile_step *plain; /* kiln__compile_plain, or bare */
  kiln_compile_allowance allowance;
  const kiln_plan *plan; /* the answer */
} request;

static kiln_compile_job job_of(const request *q) {
  return (kiln_compile_job){.ex = q->ex,
                            .allowance = &q->allowance,
                            .args = q->args,
                            .arg_count = q->arg_count,
                            .depth = q->ex->victim ? q->ex->victim->depth : q->ex->level};
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
  __atomic_store_n(&ex->frozen, job->frozen, __ATOMIC_RELEASE);
  ex->site = job->site;
}

static void publish_plain(kiln_compile_job *job) {
  __atomic_store_n(&job->ex->plain, job->v, __ATOMIC_RELEASE);
}

static void publish_variant(kiln_compile_job *job) {
  kiln_executor *ex = job->ex;
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
    return;
  }
  while (*link) link = &(*link)->next;
  __atomic_store_n(link, job->v, __ATOMIC_RELEASE);
}

static void publish_profiling(kiln_compile_job *job) {
  if (!job->v->profile) {
    publish_variant(job);
  } else {
    job->ex->building = job->v;
  }
}

static void destroy_plan(void *plan) { kiln_plan_destroy(plan); }

/* Runs that began while the level was profiling may still be in the instrumented plan. */
static void retire_profiling(kiln_executor *ex, kiln_variant *v) {
  kiln_plan *plan = v->instrumented;
  if (plan && kiln_epoch_retire(&ex->jit->epoch, destroy_plan, plan)) v->instrumented = NULL;
}

/* Runs a job of a level. */
static kiln_status *run_job(kiln_compile_job *job, kiln_compile_step *make,
                            void (*publish)(kiln_compile_job *job)) {
  const uint64_t begin = kiln_now_ns();
  kiln_status *status = kiln__job_run(job, make, publish);
  kiln__renewal_charge(job->ex, kiln_now_ns() - begin);
  return status;
}

/* Goes to a state that stays: the plain interpreter, over the graph that needs no profile. */
static kiln_status *settle(const request *q, kiln_executor_state state) {
  kiln_executor *ex = q->ex;
  kiln_compile_job job = job_of(q);
  kiln_status *status = kiln__job_run(&job, kiln__compile_simple, publish_variant);
  if (is_unfinished(status)) return status;
  if (status) { /* even that: the graph as it was loaded */
    tell_failure(ex, status);
    job = job_of(q);
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
    tell_failure(ex, status);
  }
  if (building && kiln_job_lock_look(&ex->jit->lock)) {
    ex->building = NULL;
    kiln__variant_retire(ex, building);
    kiln_job_lock_give(&ex->jit->lock);
  }
  kiln__renewal_end(ex, NULL);
  move_to(ex, KILN_EXECUTOR_SIMPLE);
}

static kiln_status *begin_level(const request *q) {
  kiln_executor *ex = q->ex;
  kiln_compile_job job = job_of(q);
  if (!ex->site) KILN_TRY(kiln__job_run(&job, kiln__compile_source, publish_source));
  if (ex->level >= ex->jit->depth && !ex->renewing) return settle(q, KILN_EXECUTOR_SIMPLE);
  job = job_of(q);
  if (!ex->renewing) ex->level_ns = 0;
  kiln_status *status = run_job(&job, kiln__compile_profiling, publish_profiling);
  if (is_unfinished(status)) return status;
  if (status && ex->renewing) {
    end_renewal(ex, status);
    return NULL;
  }
  if (status) {
    tell_failure(ex, status);
    return settle(q, KILN_EXECUTOR_FAILED);
  }
  move_to(ex, ex->building ? KILN_EXECUTOR_PROFILING : KILN_EXECUTOR_NOOP);
  return NULL;
}

/* A level of static shapes pays where they come again. Where the call that asks for it has other
 * ones than the last that was recorded, the first DYNAMIC level takes its place, if there is one:
 * of the sizes 8, 5, 3 only 8 gets a kernel of its own. Not the first level, and not under
 * KILN_COMPAT=torch, as PyTorch's executor knows no such thing. */
static void skip_static_levels(const request *q) {
  kiln_executor *ex = q->ex;
  const kiln_jit *jit = ex->jit;
  int level = ex->level;
  if (level == 0 || ex->renewing || jit->env.flags.compat == KILN_COMPAT_TORCH) return;
  if (ex->recorded == kiln_guard_hash(q->args, q->arg_count, q->call->grad_mode)) return;
  while (level < jit->depth && !kiln_strategy_is_dynamic(&jit->strategy, jit->depth - level))
    level++;
  if (level < jit->depth) ex->level = level;
}

static kiln_status *compile_level(const request *q) {
  kiln_executor *ex = q->ex;
  skip_static_levels(q);
  kiln_compile_job job = job_of(q);
  KILN_ASSERT(ex->building); /* as in PROFILING, which comes before */
  __atomic_store_n(&ex->recording, false, __ATOMIC_RELAXED); /* others need not wait for the lock */
  kiln_status *status = run_job(&job, kiln__compile_optimized, publish_variant);
  __atomic_store_n(&ex->recording, ex->renewing && is_unfinished(status), __ATOMIC_RELAXED);
  if (is_unfinished(status)) return status;
  if (status && ex->renewing) {
    end_renewal(ex, status);
    return NULL;
  }
  if (status) {
    tell_failure(ex, status);
    return settle(q, KILN_EXECUTOR_FAILED);
  }
  move_to(ex, KILN_EXECUTOR_COMPILED);
  retire_profiling(ex, job.v);
  if (ex->renewing) {
    if (ex->victim) kiln__jit_refuse(ex, KILN_REASON_variant_gave_way, "");
    kiln__renewal_end(ex, job.v);
    move_to(ex, KILN_EXECUTOR_SIMPLE);
  }
  kiln__dump_files(ex, job.v, job.groups);
  return NULL;
}

/* Moves on until there is a plan for these arguments. */
static kiln_status *advance(request *q) {
  kiln_executor *ex = q->ex;
  for (;;) {
    switch (ex->state) {
      case KILN_EXECUTOR_EMPTY: KILN_TRY(begin_level(q)); break;
      case KILN_EXECUTOR_PROFILING:
        KILN_ASSERT(ex->building);
        if (!kiln_profile_is_ready(ex->building->profile)) {
          count_dispatch(q->call, ex, NULL);
          ex->recorded = kiln_guard_hash(q->args, q->arg_count, q->call->grad_mode);
          q->plan = ex->building->instrumented;
          return NULL;
        }
        move_to(ex, KILN_EXECUTOR_QUEUED);
        break;
      case KILN_EXECUTOR_QUEUED: KILN_TRY(compile_level(q)); break;
      default: {
        kiln_variant *v = find_variant(ex, q->call, q->args, q->arg_count);
        const bool renew = v && !v->guard && kiln__renewal_wants(ex, q->call);
        if (v && !(renew && kiln__renewal_begin(ex))) {
          count_dispatch(q->call, ex, v);
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

/* -- The callable -- */

/* The object that a method is called on has the flags that its plans were made for. Its first job
 * finds out which they are, so before it any may do. */
static bool flags_hold(const kiln_executor *ex, const kiln_ivalue *args, int arg_count) {
  const kiln_frozen *frozen = __atomic_load_n(&ex->frozen, __ATOMIC_ACQUIRE);
  return !frozen || (arg_count > 0 && kiln__frozen_holds(frozen, args[0]));
}

static kiln_status *make_plain(request *q) {
  kiln_compile_job job = job_of(q);
  job.depth = 0;
  if (!q->ex->plain) KILN_TRY(kiln__job_run(&job, q->plain, publish_plain));
  q->plan = q->ex->plain->plan;
  return NULL;
}

/* Without a plan where another thread has made `ex` for other flags than the caller's. */
static kiln_status *make_level(request *q) {
  return flags_hold(q->ex, q->args, q->arg_count) ? advance(q) : NULL;
}

/* A job that ran out of its budget is noted on the executor. */
static void note_limit(const request *q, const kiln_status *status) {
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
  kiln__jit_refuse(ex, KILN_REASON_compile_budget, "");
}

typedef kiln_status *plan_maker(request *q);

static kiln_status *try_make(request *q, plan_maker *make) { KILN_PROTECT(make(q)); }

/* Under the root's lock and a budget for compiling. `needs`: the call cannot go on without. */
static kiln_status *run_locked(request *q, bool needs, plan_maker *make) {
  kiln_jit *jit = q->ex->jit;
  kiln_job_lock *lock = &q->ex->root->lock;
  kiln__compile_begin(&q->allowance, jit, q->call, needs);
  kiln_status *status = kiln_job_lock_take(lock, &q->allowance.budget);
  if (!status) {
    kiln_budget *outer = kiln_budget_enter(&q->allowance.budget);
    kiln_codegen_begin(jit->codegen, (uint64_t)jit->env.flags.compile_memory);
    status = try_make(q, make);
    kiln_codegen_end(jit->codegen);
    kiln_budget_leave(NULL); /* the note is nobody's */
    if (make == make_level && kiln_status_code(status) == KILN_LIMIT) note_limit(q, status);
    kiln_budget_leave(outer);
    kiln_job_lock_give(lock);
  }
  kiln__compile_end(&q->allowance);
  return status;
}

/* The plan of calls without JIT; where inlining takes too long, one without it. */
static kiln_status *get_plain(request *q, const kiln_plan **out_plan) {
  const kiln_variant *plain = __atomic_load_n(&q->ex->plain, __ATOMIC_ACQUIRE);
  if (__builtin_expect(plain != NULL, 1)) {
    *out_plan = plain->plan;
    return NULL;
  }
  q->plain = kiln__compile_plain;
  kiln_status *status = run_locked(q, false, make_plain);
  if (kiln_status_code(status) == KILN_LIMIT) {
    kiln_status_destroy(status);
    q->plain = kiln__compile_bare;
    status = run_locked(q, true, make_plain);
  }
  if (!status) *out_plan = q->plan;
  return status;
}

static kiln_status *get_plan(const kiln_callable *self, kiln_call *call, const kiln_ivalue *args,
                             int arg_count, const kiln_plan **out_plan);

/* Under the lock, like all that is told of an executor. */
static kiln_status *tell_flags(request *q) {
  kiln__jit_refuse(q->ex, KILN_REASON_flags_changed, "");
  return NULL;
}

static request request_of(kiln_executor *ex, kiln_call *call, const kiln_ivalue *args,
                          int arg_count) {
  return (request){
      .ex = ex, .call = call, .args = args, .arg_count = arg_count, .plain = kiln__compile_plain};
}

/* The plan for flags that are not those of `ex`. Its own function: the frame of a request is large.
 */
static __attribute__((noinline)) kiln_status *get_other(kiln_executor *ex, kiln_call *call,
                                                        const kiln_ivalue *args, int arg_count,
                                                        const kiln_plan **out_plan) {
  kiln_executor *other = __atomic_load_n(&ex->other, __ATOMIC_ACQUIRE);
  if (!other) KILN_TRY(kiln__jit_other(ex, &other));
  if (other) return get_plan(&other->callable, call, args, arg_count, out_plan);
  request q = request_of(ex, call, args, arg_count);
  if (!__atomic_load_n(&ex->plain, __ATOMIC_ACQUIRE))
    kiln_status_destroy(run_locked(&q, false, tell_flags)); /* or it is not told */
  return get_plain(&q, out_plan);
}

/* The same. */
static __attribute__((noinline)) kiln_status *make_plan(kiln_executor *ex, kiln_call *call,
                                                        const kiln_ivalue *args, int arg_count,
                                                        bool plain, const kiln_plan **out_plan) {
  request q = request_of(ex, call, args, arg_count);
  if (plain) return get_plain(&q, out_plan);
  if (!flags_hold(ex, args, arg_count)) return get_other(ex, call, args, arg_count, out_plan);
  kiln_status *status = run_locked(&q, false, make_level);
  if (kiln_status_code(status) == KILN_LIMIT) {
    kiln_status_destroy(status);
    return get_plain(&q, out_plan);
  }
  if (!status && !q.plan) return get_other(ex, call, args, arg_count, out_plan);
  *out_plan = q.plan;
  return status;
}

static kiln_status *get_plan(const kiln_callable *self, kiln_call *call, const kiln_ivalue *args,
                             int arg_count, const kiln_plan **out_plan) {
  kiln_executor *ex = (kiln_executor *)(uintptr_t)self; /* the callable is its first field */
  /* Specialised plans record no gradients, so a call that wants them runs plain. */
  bool plain = !call->jit || !ex->jit->env.flags.jit || call->grad_mode;
  kiln_variant *v = plain ? NULL : find_variant(ex, call, args, arg_count);
  if (v && !v->guard && kiln__renewal_wants(ex, call)) v = NULL;
  if (__builtin_expect(v != NULL, 1)) { /* what it takes for granted was published before it */
    if (!flags_hold(ex, args, arg_count)) return get_other(ex, call, args, arg_count, out_plan);
    count_dispatch(call, ex, v);
    *out_plan = v->plan;
    return NULL;
  }
  plain = plain || __atomic_load_n(&ex->given_up, __ATOMIC_ACQUIRE);
  const kiln_variant *made = plain ? __atomic_load_n(&ex->plain, __ATOMIC_ACQUIRE) : NULL;
  if (made) {
    *out_plan = made->plan;
    return NULL;
  }
  return make_plan(ex, call, args, arg_count, plain, out_plan);
}

kiln_executor *kiln__executor_create(kiln_jit *jit, kiln_arena *arena, kiln_executor *root,
                                     const char *name) {
  kiln_executor *ex = KILN_NEW(arena, kiln_executor);
  ex->callable = (kiln_callable){.name = name, .get_plan = get_plan};
  ex->jit = jit;
  ex->root = root ? root : ex;
  if (!root) kiln_job_lock_init(&ex->lock);
  return ex;
}
