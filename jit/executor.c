/* executor.c: dispatch: which plan serves a call. */
#include "jit/levels.h"

enum { HINTS = 8, MANY_VARIANTS = 2 };

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
  if (ex->root == ex) kiln_job_lock_deinit(&ex->plain_lock);
}

/* -- Dispatch -- */

static bool variant_holds(const kiln_variant *v, kiln_call *call, const kiln_ivalue *args) {
  return !v->guard || kiln_guard_check(v->guard, args, NULL, call);
}

/* Counts a call that variant `taken` serves (NULL: none): those before it missed. Where it has
 * given way in the meantime, the one in its place has its counters. */
void kiln__count_dispatch(kiln_call *call, const kiln_executor *ex, const kiln_variant *taken) {
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
kiln_variant *kiln__find_variant(kiln_executor *ex, kiln_call *call, const kiln_ivalue *args,
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

/* -- The callable -- */

/* The object that a method is called on has the flags that its plans were made for. Its first job
 * finds out which they are, so before it any may do. */
bool kiln__flags_hold(const kiln_executor *ex, const kiln_ivalue *args, int arg_count) {
  const kiln_frozen *frozen = __atomic_load_n(&ex->frozen, __ATOMIC_ACQUIRE);
  return !frozen || (arg_count > 0 && kiln__frozen_holds(frozen, args[0]));
}

static kiln_status *get_plan(const kiln_callable *self, kiln_call *call, const kiln_ivalue *args,
                             int arg_count, const kiln_plan **out_plan);

/* Specialised plans record no gradients, so a call that wants them runs plain. */
static bool runs_plain(const kiln_executor *ex, const kiln_call *call) {
  return !call->jit || !ex->jit->env.flags.jit || call->grad_mode;
}

/* Under the lock, like all that is told of an executor. */
static kiln_status *tell_flags(kiln__request *q) {
  kiln__jit_refuse(q->ex, KILN_REASON_flags_changed, "");
  return NULL;
}

static kiln__request request_of(kiln_executor *ex, kiln_call *call, const kiln_ivalue *args,
                                int arg_count) {
  return (kiln__request){
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
  kiln__request q = request_of(ex, call, args, arg_count);
  if (!__atomic_load_n(&ex->plain, __ATOMIC_ACQUIRE))
    kiln_status_destroy(kiln__run_locked(&q, false, tell_flags)); /* or it is not told */
  return kiln__plan_without_jit(&q, out_plan);
}

/* The same. */
static __attribute__((noinline)) kiln_status *make_plan(kiln_executor *ex, kiln_call *call,
                                                        const kiln_ivalue *args, int arg_count,
                                                        bool plain, const kiln_plan **out_plan) {
  kiln__request q = request_of(ex, call, args, arg_count);
  if (plain) return kiln__plan_without_jit(&q, out_plan);
  if (!kiln__flags_hold(ex, args, arg_count)) return get_other(ex, call, args, arg_count, out_plan);
  kiln_status *status = kiln__run_locked(&q, false, kiln__make_level);
  if (kiln_status_code(status) == KILN_LIMIT) {
    kiln_status_destroy(status);
    return kiln__plan_without_jit(&q, out_plan);
  }
  if (!status && !q.plan) return get_other(ex, call, args, arg_count, out_plan);
  *out_plan = q.plan;
  return status;
}

/* A job makes its first plan, from a profile of another process: that takes a while, and calls do
 * not wait for it. A method's variants hold for all calls: where none was found there is none. */
static bool is_being_started(const kiln_executor *ex) {
  return ex->jit->jobs && ex->function && __atomic_load_n(&ex->asked, __ATOMIC_ACQUIRE) &&
         !__atomic_load_n(&ex->interim, __ATOMIC_ACQUIRE);
}

/* What no variant serves, or one that holds for all while a better one is wanted; `version` is from
 * before it was looked for. */
static __attribute__((noinline)) kiln_status *get_slowly(kiln_executor *ex, kiln_call *call,
                                                         const kiln_ivalue *args, int arg_count,
                                                         kiln_variant *serving, uint32_t version,
                                                         const kiln_plan **out_plan) {
  bool plain = runs_plain(ex, call);
  if (!plain && ex->jit->jobs) {
    if (!kiln__flags_hold(ex, args, arg_count))
      return get_other(ex, call, args, arg_count, out_plan);
    *out_plan = kiln__serve_beside(ex, call, args, arg_count, serving, version);
    if (*out_plan) return NULL;
    if (version != __atomic_load_n(&ex->version, __ATOMIC_ACQUIRE)) /* a variant has come */
      return get_plan(&ex->callable, call, args, arg_count, out_plan);
  }
  plain = plain || __atomic_load_n(&ex->given_up, __ATOMIC_ACQUIRE) || is_being_started(ex);
  const kiln_variant *made = plain ? __atomic_load_n(&ex->plain, __ATOMIC_ACQUIRE) : NULL;
  if (made) {
    *out_plan = made->plan;
    return NULL;
  }
  const bool is_first = !__atomic_load_n(&ex->interim, __ATOMIC_RELAXED) &&
                        !__atomic_load_n(&ex->variants, __ATOMIC_RELAXED);
  const uint64_t begin = kiln_now_ns();
  kiln_status *status = make_plan(ex, call, args, arg_count, plain, out_plan);
  if (!is_first) call->waited_ns += kiln_now_ns() - begin;
  return status;
}

/* A variant that holds and may be run, of which the ledger wants to know something. */
static __attribute__((noinline)) kiln_status *get_metered(kiln_executor *ex, kiln_call *call,
                                                          const kiln_ivalue *args, int arg_count,
                                                          kiln_variant *v, uint32_t version,
                                                          const kiln_plan **out_plan) {
  bool doubtful = false;
  if (!kiln__flags_hold(ex, args, arg_count)) return get_other(ex, call, args, arg_count, out_plan);
  const uint64_t hash = kiln_guard_hash(args, arg_count, call->grad_mode);
  kiln__count_dispatch(call, ex, v);
  *out_plan = kiln__ledger_choose(ex, call, hash, v, &doubtful);
  if (doubtful) kiln__ask_trial(ex, call, v, version);
  return NULL;
}

/* It is not to be run yet, or holds for all where one for these arguments would pay. */
static bool wants_better(const kiln_executor *ex, kiln_call *call, const kiln_variant *v,
                         uint8_t state) {
  return (state & KILN_VARIANT_UNPREPARED) || (!v->guard && kiln__renewal_wants(ex, call));
}

static kiln_status *get_plan(const kiln_callable *self, kiln_call *call, const kiln_ivalue *args,
                             int arg_count, const kiln_plan **out_plan) {
  kiln_executor *ex = (kiln_executor *)(uintptr_t)self; /* the callable is its first field */
  const uint32_t version = __atomic_load_n(&ex->version, __ATOMIC_ACQUIRE);
  const bool plain = runs_plain(ex, call);
  kiln_variant *v = plain ? NULL : kiln__find_variant(ex, call, args, arg_count);
  const uint8_t state = v ? __atomic_load_n(&v->state, __ATOMIC_ACQUIRE) : 0;
  if (__builtin_expect(!v || wants_better(ex, call, v, state), 0))
    return get_slowly(ex, call, args, arg_count, v, version, out_plan);
  if (__builtin_expect(state != 0, 0))
    return get_metered(ex, call, args, arg_count, v, version, out_plan);
  if (!kiln__flags_hold(ex, args, arg_count)) /* they were published before it */
    return get_other(ex, call, args, arg_count, out_plan);
  kiln__count_dispatch(call, ex, v);
  *out_plan = v->plan;
  return NULL;
}

kiln_executor *kiln__executor_of(const kiln_callable *callable) {
  return callable->get_plan == get_plan ? (kiln_executor *)(uintptr_t)callable : NULL;
}

kiln_executor *kiln__executor_create(kiln_jit *jit, kiln_arena *arena, kiln_executor *root,
                                     const char *name) {
  kiln_executor *ex = KILN_NEW(arena, kiln_executor);
  ex->callable = (kiln_callable){.name = name, .get_plan = get_plan};
  ex->jit = jit;
  ex->root = root ? root : ex;
  ex->of = root ? root->of : NULL;
  if (!root) kiln_job_lock_init(&ex->lock);
  if (!root) kiln_job_lock_init(&ex->plain_lock);
  return ex;
}
