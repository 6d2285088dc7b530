/* executor.c: dispatch, and the state machine of executor.h. */
#include "jit/executor.h"

enum { HINTS = 8, MANY_VARIANTS = 2, MAX_REFUSALS = 4096 };

#define BIT(state) (1u << KILN_EXECUTOR_##state)
const uint8_t kiln_executor_moves[KILN_EXECUTOR__COUNT] = {
    [KILN_EXECUTOR_EMPTY] = BIT(PROFILING) | BIT(NOOP) | BIT(SIMPLE) | BIT(FAILED),
    [KILN_EXECUTOR_PROFILING] = BIT(QUEUED),
    [KILN_EXECUTOR_QUEUED] = BIT(COMPILED) | BIT(FAILED),
    [KILN_EXECUTOR_COMPILED] = BIT(EMPTY),
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
  ex->state = state;
}

/* -- Ends -- */

void kiln_program_destroy(kiln_program *code) {
  kiln_plan_destroy(code->plan);
  kiln_graph_release(code->graph);
  kiln_type_table_destroy(code->types);
  *code = (kiln_program){0};
}

static void variant_deinit(kiln_variant *v) {
  if (!v) return;
  kiln_program_destroy(&v->code);
  kiln_program_destroy(&v->shown);
  kiln_program_destroy(&v->profiled);
  kiln_profile_destroy(v->profile);
  v->profile = NULL;
}

void kiln__executor_destroy(kiln_executor *ex) {
  variant_deinit(ex->building);
  for (kiln_variant *v = ex->variants; v; v = v->next) variant_deinit(v);
  if (ex->plain) kiln_program_destroy(ex->plain);
  kiln_program_destroy(&ex->draft);
  kiln_program_destroy(&ex->source);
}

/* -- Refusals -- */

void kiln__jit_refuse(kiln_jit *jit, const kiln_executor *ex, kiln_reason reason,
                      const char *detail, kiln_source_loc loc) {
  const char *site = ex && ex->site ? ex->site : "";
  KILN_LOG(&jit->env.log, fusion, 1, "%s: %s%s%s", site, detail, *detail ? ": " : "",
           kiln_reason_sentence(reason));
  uint64_t hash = kiln_hash_mix(jit->refusal_index.seed + (uint64_t)loc.line, (uint64_t)reason);
  hash = kiln_hash_bytes(kiln_hash_bytes(hash, site, strlen(site)), detail, strlen(detail));
  kiln_refusal *same_hash = kiln_map_find_id(&jit->refusal_index, hash);
  for (kiln_refusal *r = same_hash; r; r = r->same_hash) {
    if (r->public.reason == reason && r->public.loc.line == loc.line &&
        strcmp(r->public.site, site) == 0 && strcmp(r->public.detail, detail) == 0) {
      r->public.count++;
      return;
    }
  }
  if (jit->refusals.count >= MAX_REFUSALS) return;
  kiln_refusal *r = KILN_NEW(jit->arena, kiln_refusal);
  r->public = (kiln_jit_refusal){.site = site,
                                 .reason = reason,
                                 .detail = kiln_arena_strdup(jit->arena, detail),
                                 .loc = loc,
                                 .count = 1};
  if (loc.file) r->public.loc.file = kiln_arena_strdup(jit->arena, loc.file);
  r->same_hash = same_hash;
  kiln_vec_push(jit->arena, &jit->refusals, r);
  kiln_map_set_id(&jit->refusal_index, hash, r);
}

static kiln_status *refuse(const kiln_executor *ex, kiln_reason reason, const char *detail) {
  kiln__jit_refuse(ex->jit, ex, reason, detail, (kiln_source_loc){0});
  return NULL;
}
static kiln_status *try_refuse(const kiln_executor *ex, kiln_reason reason, const char *detail) {
  KILN_PROTECT(refuse(ex, reason, detail));
}

/* For those who hold a status: without memory the refusal is not told. */
static void refuse_if_possible(const kiln_executor *ex, kiln_reason reason, const char *detail) {
  kiln_status_destroy(try_refuse(ex, reason, detail));
}

/* A level failed: why, in one word where one fits. */
static void tell_failure(kiln_executor *ex, kiln_status *status) {
  kiln_code code = kiln_status_code(status);
  kiln_reason reason =
      code == KILN_OUT_OF_MEMORY ? KILN_REASON_out_of_memory : KILN_REASON_check_failed;
  KILN_LOG(&ex->jit->env.log, warn, 1, "%s: %s", ex->callable.name, kiln_status_report(status));
  ex->jit->compile_failures++;
  ex->jit->current = NULL;
  kiln_arena_reset(ex->jit->runner.scratch);
  refuse_if_possible(ex, reason, kiln_status_message(status));
  kiln_status_destroy(status);
}

/* -- Dispatch -- */

static bool variant_holds(const kiln_variant *v, kiln_call *call, const kiln_ivalue *args) {
  return !v->guard || kiln_guard_check(v->guard, args, NULL, call);
}

/* Counts a call that variant `taken` serves (NULL: none): those before it missed. */
static void count_dispatch(kiln_call *call, kiln_variant *first, const kiln_variant *taken) {
  for (kiln_variant *v = first; v; v = __atomic_load_n(&v->next, __ATOMIC_ACQUIRE)) {
    if (v->guard) kiln_count(&call->tally, v == taken ? v->guard->hits : v->guard->misses);
    if (v == taken) return;
  }
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
  kiln_variant **hint = &ex->hints[kiln_guard_hash(args, arg_count, call->grad_mode) % HINTS];
  kiln_variant *guess = __atomic_load_n(hint, __ATOMIC_ACQUIRE);
  if (guess && variant_holds(guess, call, args)) return guess;
  for (; v; v = __atomic_load_n(&v->next, __ATOMIC_ACQUIRE)) {
    if (variant_holds(v, call, args)) {
      __atomic_store_n(hint, v, __ATOMIC_RELEASE);
      return v;
    }
  }
  return NULL;
}

static void publish(kiln_executor *ex, kiln_variant *variant) {
  kiln_variant **link = &ex->variants;
  while (*link) link = &(*link)->next;
  __atomic_store_n(link, variant, __ATOMIC_RELEASE);
}

/* -- Levels -- */

/* A job ended for its budget: it may be tried again. */
static bool is_unfinished(const kiln_status *status) {
  kiln_code code = kiln_status_code(status);
  return code == KILN_LIMIT || code == KILN_CANCELLED;
}

/* What cannot be compiled for memory or time goes to the interpreter. */
static kiln_status *try_simple(kiln_executor *ex, kiln_variant *v) {
  KILN_PROTECT(kiln__compile_simple(ex, v));
}
static kiln_status *try_profiling(kiln_executor *ex, kiln_variant *v, int *out_sites) {
  KILN_PROTECT(kiln__compile_profiling(ex, v, out_sites));
}
static kiln_status *try_optimized(kiln_executor *ex, kiln_variant *v) {
  KILN_PROTECT(kiln__compile_optimized(ex, v));
}

/* Goes to a state that stays: the plain interpreter, over the graph that needs no profile. */
static kiln_status *settle(kiln_executor *ex, kiln_executor_state state) {
  kiln_variant *v = ex->building;
  if (v) {
    kiln_program_destroy(&v->code);
    kiln_program_destroy(&v->shown);
  } else {
    v = ex->building = KILN_NEW(ex->jit->arena, kiln_variant);
  }
  v->guard = NULL;
  v->depth = ex->level;
  v->is_simple = true;
  kiln_status *status = try_simple(ex, v);
  if (is_unfinished(status)) return status;
  if (status) { /* even that: the graph as it was loaded */
    tell_failure(ex, status);
    kiln_program_destroy(&v->shown);
    KILN_TRY(kiln__compile_plain(ex, false, &v->shown));
  }
  __atomic_store_n(&ex->profiling_plan, NULL, __ATOMIC_RELEASE);
  move_to(ex, state);
  publish(ex, v);
  ex->building = NULL;
  if (state == KILN_EXECUTOR_SIMPLE) {
    ex->jit->simple_plans++;
    kiln__jit_refuse(ex->jit, ex, KILN_REASON_depth_used_up, "", (kiln_source_loc){0});
  }
  return NULL;
}

static kiln_status *begin_level(kiln_executor *ex, const kiln_ivalue *args, int arg_count) {
  kiln_jit *jit = ex->jit;
  if (!ex->site) KILN_TRY(kiln__compile_source(ex, args, arg_count));
  if ((uint32_t)ex->level > jit->max_depth) jit->max_depth = (uint32_t)ex->level;
  if (ex->level >= jit->depth) return settle(ex, KILN_EXECUTOR_SIMPLE);
  if (!ex->building) ex->building = KILN_NEW(jit->arena, kiln_variant);
  variant_deinit(ex->building); /* of a job that was not finished */
  *ex->building = (kiln_variant){.depth = ex->level};
  int sites = 0;
  kiln_status *status = try_profiling(ex, ex->building, &sites);
  if (is_unfinished(status)) return status;
  if (status) {
    tell_failure(ex, status);
    return settle(ex, KILN_EXECUTOR_FAILED);
  }
  if (sites == 0) return settle(ex, KILN_EXECUTOR_NOOP);
  __atomic_store_n(&ex->profiling_plan, ex->building->profiled.plan, __ATOMIC_RELEASE);
  move_to(ex, KILN_EXECUTOR_PROFILING);
  return NULL;
}

static void destroy_plan(void *plan) { kiln_plan_destroy(plan); }

static kiln_status *compile_level(kiln_executor *ex) {
  kiln_variant *v = ex->building;
  KILN_ASSERT(v); /* as in PROFILING, which comes before */
  kiln_status *status = try_optimized(ex, v);
  if (is_unfinished(status)) return status;
  if (status) {
    tell_failure(ex, status);
    return settle(ex, KILN_EXECUTOR_FAILED);
  }
  __atomic_store_n(&ex->profiling_plan, NULL, __ATOMIC_RELEASE);
  move_to(ex, KILN_EXECUTOR_COMPILED);
  publish(ex, v);
  ex->building = NULL;
  /* Runs that began while the level was profiling may still be in the instrumented plan. */
  if (kiln_epoch_retire(&ex->jit->epoch, destroy_plan, v->profiled.plan)) v->profiled.plan = NULL;
  return NULL;
}

/* Moves on until there is a plan for these arguments. */
static kiln_status *advance(kiln_executor *ex, kiln_call *call, const kiln_ivalue *args,
                            int arg_count, const kiln_plan **out_plan) {
  for (;;) {
    switch (ex->state) {
      case KILN_EXECUTOR_EMPTY: KILN_TRY(begin_level(ex, args, arg_count)); break;
      case KILN_EXECUTOR_PROFILING:
        KILN_ASSERT(ex->building);
        if (!kiln_profile_is_ready(ex->building->profile)) {
          count_dispatch(call, ex->variants, NULL);
          *out_plan = ex->profiling_plan;
          return NULL;
        }
        move_to(ex, KILN_EXECUTOR_QUEUED);
        break;
      case KILN_EXECUTOR_QUEUED: KILN_TRY(compile_level(ex)); break;
      default: {
        kiln_variant *v = find_variant(ex, call, args, arg_count);
        if (v) {
          count_dispatch(call, ex->variants, v);
          *out_plan = v->code.plan ? v->code.plan : v->shown.plan;
          return NULL;
        }
        KILN_CHECK(ex->state == KILN_EXECUTOR_COMPILED); /* the others have one that always holds */
        for (v = ex->variants; v; v = v->next) kiln_guard_tell(v->guard, args, call);
        ex->level++;
        move_to(ex, KILN_EXECUTOR_EMPTY);
        break;
      }
    }
  }
}

/* -- The callable -- */

typedef struct plan_job {
  kiln_executor *ex;
  kiln_call *call;
  const kiln_ivalue *args;
  int arg_count;
  bool bare; /* plain_job: without inlining */
  const kiln_plan *plan;
} plan_job;

/* The object that a method is called on has the flags that its plans were made for. */
static bool flags_hold(const kiln_executor *ex, const kiln_ivalue *args, int arg_count) {
  const kiln_frozen *frozen = __atomic_load_n(&ex->frozen, __ATOMIC_ACQUIRE);
  return !frozen || (arg_count > 0 && kiln__frozen_holds(frozen, args[0]));
}

static kiln_status *make_plain(plan_job *job) {
  kiln_executor *ex = job->ex;
  if (!ex->plain) {
    kiln_program_destroy(&ex->draft); /* of a job that was not finished */
    kiln_program *plain = KILN_NEW(ex->jit->arena, kiln_program);
    kiln_status *status = kiln__compile_plain(ex, job->bare, &ex->draft);
    if (status) {
      kiln_program_destroy(&ex->draft);
      return status;
    }
    *plain = ex->draft;
    ex->draft = (kiln_program){0};
    __atomic_store_n(&ex->plain, plain, __ATOMIC_RELEASE);
  }
  job->plan = ex->plain->plan;
  return NULL;
}

static kiln_status *make_level(plan_job *job) {
  if (!flags_hold(job->ex, job->args, job->arg_count)) {
    kiln__jit_refuse(job->ex->jit, job->ex, KILN_REASON_flags_changed, "", (kiln_source_loc){0});
    return make_plain(job);
  }
  return advance(job->ex, job->call, job->args, job->arg_count, &job->plan);
}

/* What a job that was not finished has made goes; a level keeps its profile. */
static void drop_unfinished(kiln_executor *ex) {
  kiln_variant *v = ex->building;
  kiln__drop_unfinished_groups(ex->jit);
  if (!ex->site && ex->function) kiln_program_destroy(&ex->source);
  if (!v) return;
  kiln_program_destroy(&v->code);
  kiln_program_destroy(&v->shown);
  if (ex->state != KILN_EXECUTOR_EMPTY) return;
  variant_deinit(v);
}

/* A job that ran out of its budget is noted on the executor. */
static void note_limit(kiln_executor *ex, const kiln_status *status) {
  drop_unfinished(ex);
  const bool last = ++ex->tries >= KILN__MAX_TRIES || !ex->jit->allowance->is_limited;
  if (last) {
    __atomic_store_n(&ex->given_up, true, __ATOMIC_RELEASE);
    ex->jit->compile_failures++;
  }
  KILN_LOG(&ex->jit->env.log, compile, 1, "%s: %s%s", ex->callable.name,
           kiln_status_message(status), last ? "" : "; to be tried again");
  refuse_if_possible(ex, KILN_REASON_compile_budget, "");
}

typedef kiln_status *plan_maker(plan_job *job);

static kiln_status *try_make(plan_job *job, plan_maker *make) { KILN_PROTECT(make(job)); }

/* Under the lock and a budget for compiling. `needs`: the call cannot go on without. */
static kiln_status *run_locked(plan_job *job, bool needs, plan_maker *make) {
  kiln_jit *jit = job->ex->jit;
  kiln_compile_allowance allowance;
  kiln__compile_begin(&allowance, jit, job->call, needs);
  kiln_status *status = kiln_job_lock_take(&jit->lock, &allowance.budget);
  if (!status) {
    kiln_budget *outer = kiln_budget_enter(&allowance.budget);
    jit->allowance = &allowance;
    kiln_codegen_begin(jit->codegen, (uint64_t)jit->env.flags.compile_memory);
    status = try_make(job, make);
    jit->current = NULL;
    kiln_arena_reset(jit->runner.scratch);
    kiln_codegen_end(jit->codegen);
    kiln_budget_leave(NULL); /* the note is nobody's */
    if (make == make_level && kiln_status_code(status) == KILN_LIMIT) note_limit(job->ex, status);
    kiln_budget_leave(outer);
    jit->allowance = NULL;
    kiln_job_lock_give(&jit->lock);
  }
  kiln__compile_end(&allowance);
  return status;
}

/* The plan of calls without JIT; where inlining takes too long, one without it. */
static kiln_status *get_plain(plan_job *job, const kiln_plan **out_plan) {
  const kiln_program *plain = __atomic_load_n(&job->ex->plain, __ATOMIC_ACQUIRE);
  if (__builtin_expect(plain != NULL, 1)) {
    *out_plan = plain->plan;
    return NULL;
  }
  kiln_status *status = run_locked(job, false, make_plain);
  if (kiln_status_code(status) == KILN_LIMIT) {
    kiln_status_destroy(status);
    job->bare = true;
    status = run_locked(job, true, make_plain);
  }
  if (!status) *out_plan = job->plan;
  return status;
}

static kiln_status *get_plan(const kiln_callable *self, kiln_call *call, const kiln_ivalue *args,
                             int arg_count, const kiln_plan **out_plan) {
  kiln_executor *ex = (kiln_executor *)(uintptr_t)self; /* the callable is its first field */
  plan_job job = {.ex = ex, .call = call, .args = args, .arg_count = arg_count};
  /* Specialised plans record no gradients, so a call that wants them runs plain. */
  if (!call->jit || !ex->jit->env.flags.jit || call->grad_mode) return get_plain(&job, out_plan);
  kiln_variant *v = find_variant(ex, call, args, arg_count);
  if (__builtin_expect(v != NULL, 1)) { /* what it takes for granted was published before it */
    if (!flags_hold(ex, args, arg_count)) return get_plain(&job, out_plan);
    if (ex->base_depth > 0) count_dispatch(call, ex->variants, v);
    *out_plan = v->code.plan ? v->code.plan : v->shown.plan;
    return NULL;
  }
  if (__atomic_load_n(&ex->given_up, __ATOMIC_ACQUIRE)) return get_plain(&job, out_plan);
  kiln_status *status = run_locked(&job, false, make_level);
  if (kiln_status_code(status) == KILN_LIMIT) {
    kiln_status_destroy(status);
    return get_plain(&job, out_plan);
  }
  *out_plan = job.plan;
  return status;
}

kiln_executor *kiln__executor_create(kiln_jit *jit, kiln_function *function, const char *name) {
  kiln_executor *ex = KILN_NEW(jit->arena, kiln_executor);
  ex->callable = (kiln_callable){.name = name, .get_plan = get_plan};
  ex->jit = jit;
  ex->function = function;
  ex->root = ex;
  if (jit->last_executor) {
    jit->last_executor->next = ex;
  } else {
    jit->executors = ex;
  }
  jit->last_executor = ex;
  return ex;
}
