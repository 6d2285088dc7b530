/* beside.c: compile=async: what calls run while their plans are made, and the jobs that make them.
 *
 * The first call of a method makes the instrumented plan on its own thread, since there is nothing
 * else to run; where a job that a profile of another process has started makes it, the call runs
 * without JIT. From then on a call never compiles: what no variant serves runs the executor's
 * `interim` plan. That is the instrumented plan from when a level begins until its variant is
 * published, and the plan of calls without JIT otherwise; a region has that one from the job that
 * made it. A call that finds enough recorded, or no variant that fits, asks for a job: the
 * executor's, which is in the queue once.
 *
 * Threads A and B call a region with a new shape. Both find no variant at version 4. A asks, and
 * copies its shapes for the job; B sees that somebody has asked. Both run the interim plan. The job
 * makes the next level's instrumented plan, which records a later call, C. D asks for the job that
 * compiles it. A call that looked before the variant was published, and asks after it, asks for
 * version 4 still: the job sees that the executor is at 5, and does nothing. */
#include "jit/levels.h"

/* -- What is kept of a call's arguments -- */

static kiln_arguments_seen *see(kiln_mem *mem, const kiln_ivalue *args, int count, uint64_t hash) {
  size_t dims = 0;
  for (int i = 0; i < count; i++) {
    if (args[i].tag == KILN_TAG_TENSOR) dims += 2 * (size_t)kiln_tensor_rank(args[i].u.tensor);
  }
  const size_t head = sizeof(kiln_arguments_seen) + (size_t)count * sizeof(kiln_shape_seen);
  const size_t bytes = head + dims * sizeof(kiln_dim);
  kiln_arguments_seen *seen = kiln_mem_alloc(mem, bytes);
  if (!seen) return NULL;
  *seen = (kiln_arguments_seen){.hash = hash, .count = count, .bytes = bytes};
  kiln_dim *next = (kiln_dim *)(void *)((char *)seen + head);
  for (int i = 0; i < count; i++) {
    seen->tensors[i] = (kiln_shape_seen){.rank = -1};
    if (args[i].tag != KILN_TAG_TENSOR) continue;
    const kiln_tensor *t = args[i].u.tensor;
    const int rank = kiln_tensor_rank(t);
    if (rank) memcpy(next, t->dims, 2 * (size_t)rank * sizeof *next);
    seen->tensors[i] = (kiln_shape_seen){rank, next};
    next += 2 * rank;
  }
  return seen;
}

/* -- Jobs -- */

/* What the job has worked with goes, and another one may be asked for. */
static void end_job(kiln_executor *ex) {
  if (ex->seen_then) kiln_mem_free(ex->jit->env.mem, ex->seen_then, ex->seen_then->bytes);
  ex->seen_then = NULL;
  kiln_weights_destroy(ex->weights_then);
  ex->weights_then = NULL;
  ex->preparing = NULL;
  ex->trial_then = ex->varied_then = false;
  kiln_ivalue_release(ex->self_then);
  ex->self_then = kiln_none();
  __atomic_store_n(&ex->asked, false, __ATOMIC_RELEASE);
}

static kiln_executor *executor_of(kiln_queued_job *job) {
  return (kiln_executor *)(void *)((char *)job - offsetof(kiln_executor, job));
}
static void drop_job(kiln_queued_job *job) { end_job(executor_of(job)); }

/* One step, under the root's lock. False: there is nothing more to do. */
static bool run_step(kiln__request *q, kiln__plan_maker *make) {
  kiln_executor *ex = q->ex;
  kiln_status *status = kiln__run_locked(q, false, make);
  const kiln_code code = kiln_status_code(status);
  const bool orphaned = code == KILN_UNSUPPORTED; /* what it needs is the fork's parent's */
  if (code == KILN_LIMIT || code == KILN_CANCELLED || (q->preparing && !orphaned)) {
    kiln_status_destroy(status); /* it is noted, or the model goes, or the first run will tell */
  } else if (status) {
    __atomic_store_n(&ex->given_up, true, __ATOMIC_RELEASE);
    kiln__tell_failure(ex, status);
  }
  return code == KILN_OK;
}

/* From a profile of another process up to a variant whose first run is as fast as any. */
static void run_start(kiln__request *q, kiln_ivalue self) {
  kiln_executor *ex = q->ex;
  kiln_weights *weights = NULL;
  q->args = &self;
  q->arg_count = 1;
  if (!run_step(q, kiln__start_beside)) return;
  kiln_profile *profile = __atomic_load_n(&ex->profiling, __ATOMIC_ACQUIRE);
  if (!profile || !kiln_profile_is_ready(profile) || !run_step(q, kiln__make_beside)) return;
  kiln_variant *v = __atomic_load_n(&ex->variants, __ATOMIC_ACQUIRE);
  if (!v || !(__atomic_load_n(&v->state, __ATOMIC_ACQUIRE) & KILN_VARIANT_UNPREPARED)) return;
  kiln_status *status = kiln_weights_collect(v->plan, ex->jit->env.mem, &self, 1, &weights);
  kiln_status_destroy(status);
  q->preparing = v;
  q->weights = weights;
  q->version = ex->version;
  (void)run_step(q, kiln__prepare_beside);
  kiln_weights_destroy(weights);
}

static kiln__plan_maker *next_step(const kiln__request *q) {
  if (!q->preparing) return kiln__make_beside;
  return q->ex->trial_then ? kiln__try_beside : kiln__prepare_beside;
}

static void run_job(kiln_queued_job *job) {
  kiln_executor *ex = executor_of(job);
  kiln_jit *jit = ex->jit;
  const kiln_generation *of = ex->of;
  kiln__request q = {.ex = ex,
                     .seen = ex->seen_then,
                     .preparing = ex->preparing,
                     .weights = ex->weights_then,
                     .lent_bytes = ex->lent_then,
                     .varied = ex->varied_then,
                     .version = ex->version_then};
  const uint64_t ticket = kiln_epoch_enter(&jit->epoch, 0);
  if (__atomic_load_n(&of->is_over, __ATOMIC_ACQUIRE)) {
    /* Nobody wants it any more, and who frees it waits for this job. */
  } else if (ex->self_then.tag == KILN_TAG_OBJECT) {
    run_start(&q, ex->self_then);
  } else {
    (void)run_step(&q, next_step(&q));
  }
  kiln_epoch_leave(&jit->epoch, ticket);
  end_job(ex);
  /* What calls would have to free; but a generation that goes waits for its jobs, this one too. */
  if (!__atomic_load_n(&of->is_over, __ATOMIC_ACQUIRE)) (void)kiln_epoch_collect(&jit->epoch);
}

static uint64_t worth_of(const kiln_queued_job *job) {
  return kiln__ledger_worth(executor_of((kiln_queued_job *)(uintptr_t)job));
}

static void set_job(kiln_executor *ex, uint32_t version, uint64_t lent_bytes) {
  ex->version_then = version;
  ex->lent_then = lent_bytes;
  ex->job = (kiln_queued_job){.run = run_job,
                              .drop = drop_job,
                              .worth = worth_of,
                              .owner = &ex->of->owner,
                              .is_counted = true};
}

static bool has_profile(kiln_jit *jit, const char *method) {
  if (!kiln_job_lock_look(&jit->lock)) return false;
  const bool known = jit->profile_arena && kiln_profile_file_knows(&jit->profiles, method);
  kiln_job_lock_give(&jit->lock);
  return known;
}

/* Now, as far as it needs no compiler: a process that finds all kernels begins with them. */
static bool start_from_files(kiln_executor *ex) {
  kiln__request q = {.ex = ex, .lent_bytes = UINT64_MAX, .is_quick = true};
  run_start(&q, ex->self_then);
  return __atomic_load_n(&ex->variants, __ATOMIC_ACQUIRE);
}

static void start(kiln_jit *jit, const kiln_callable *callable, kiln_ivalue self,
                  bool may_take_time) {
  kiln_executor *ex = (kiln_executor *)(uintptr_t)callable; /* the callable is its first field */
  if (!jit->env.flags.jit || !has_profile(jit, callable->name) ||
      __atomic_exchange_n(&ex->asked, true, __ATOMIC_ACQ_REL))
    return;
  ex->self_then = kiln_ivalue_retain(self);
  set_job(ex, __atomic_load_n(&ex->version, __ATOMIC_ACQUIRE), UINT64_MAX);
  if (!jit->jobs) {
    run_job(&ex->job);
  } else if ((may_take_time && start_from_files(ex)) || !kiln_job_queue_add(jit->jobs, &ex->job)) {
    end_job(ex);
  }
}

void kiln_jit_start(kiln_jit *jit, kiln_function *function, kiln_ivalue self, bool may_take_time) {
  const kiln_callable *callable;
  const uint64_t ticket = kiln_epoch_enter(&jit->epoch, 0);
  kiln_status *status = kiln_jit_callable(jit, function, &callable);
  if (!status) start(jit, callable, self, may_take_time);
  kiln_epoch_leave(&jit->epoch, ticket);
  kiln_status_destroy(status); /* its first call will tell */
}

static void tell_misses(const kiln_executor *ex, const kiln_call *call, const kiln_ivalue *args) {
  const kiln_variant *v = __atomic_load_n(&ex->variants, __ATOMIC_ACQUIRE);
  for (; v && v->guard; v = __atomic_load_n(&v->next, __ATOMIC_ACQUIRE))
    kiln_guard_tell(v->guard, args, call);
}

static bool begin_asking(kiln_executor *ex) {
  return !__atomic_load_n(&ex->given_up, __ATOMIC_ACQUIRE) &&
         !__atomic_load_n(&ex->asked, __ATOMIC_RELAXED) &&
         !__atomic_exchange_n(&ex->asked, true, __ATOMIC_ACQ_REL);
}

/* Takes `status`: of what the job needs. Where no job can be, a later call asks again. */
static void end_asking(kiln_executor *ex, kiln_call *call, uint32_t version, kiln_status *status) {
  kiln_jit *jit = ex->jit;
  set_job(ex, version, call->compile_bytes);
  kiln_codegen_watch_exit();
  __atomic_fetch_add(&jit->asks, 1, __ATOMIC_RELAXED);
  if (status || !kiln_job_queue_add(jit->jobs, &ex->job)) end_job(ex);
  kiln_status_destroy(status);
}

/* Of a method whose first types were recorded: whether it is to be compiled for these now. Where
 * other shapes come the next call decides: of 8, 5, 5 the first has a kernel of its own, then 5; of
 * 8, 5, 3 one kernel is made for all. */
static bool is_decided(kiln_executor *ex, uint64_t hash, bool *out_varied) {
  uint64_t other = 0;
  *out_varied = false;
  if (__atomic_load_n(&ex->version, __ATOMIC_RELAXED) > 0 || ex->root != ex ||
      !__atomic_load_n(&ex->profiling, __ATOMIC_ACQUIRE) ||
      hash == __atomic_load_n(&ex->recorded, __ATOMIC_RELAXED))
    return true;
  if (__atomic_compare_exchange_n(&ex->other_hash, &other, hash, false, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED))
    return false;
  *out_varied = other != hash;
  return true;
}

static void ask_level(kiln_executor *ex, kiln_call *call, const kiln_ivalue *args, int arg_count,
                      uint64_t hash, uint32_t version) {
  bool varied;
  if (!kiln__ledger_pays(ex) || !is_decided(ex, hash, &varied) || !begin_asking(ex)) return;
  ex->varied_then = varied;
  const uint64_t begin = kiln_now_ns();
  ex->seen_then = see(ex->jit->env.mem, args, arg_count, hash);
  if (!__atomic_load_n(&ex->profiling, __ATOMIC_ACQUIRE)) tell_misses(ex, call, args);
  end_asking(ex, call, version, ex->seen_then ? NULL : kiln_status_oom());
  call->waited_ns += kiln_now_ns() - begin;
}

static void ask_preparation(kiln_executor *ex, kiln_call *call, const kiln_ivalue *args,
                            int arg_count, kiln_variant *v, uint32_t version) {
  if (!begin_asking(ex)) return;
  const uint64_t begin = kiln_now_ns();
  ex->preparing = v;
  end_asking(ex, call, version,
             kiln_weights_collect(v->plan, ex->jit->env.mem, args, arg_count, &ex->weights_then));
  call->waited_ns += kiln_now_ns() - begin;
}

void kiln__ask_trial(kiln_executor *ex, kiln_call *call, kiln_variant *v, uint32_t version) {
  if (!begin_asking(ex)) return;
  ex->preparing = v;
  ex->trial_then = true;
  end_asking(ex, call, version, NULL);
}

void kiln__leave_jobs(kiln_jit *jit) {
  if (!jit->jobs) return;
  kiln_call_cancel(jit->abandon);
  kiln__generations_leave(jit);
}

kiln_status *kiln_jit_wait_idle(kiln_jit *jit, const kiln_budget *budget) {
  if (!jit->jobs) return NULL;
  const uint64_t ticket = kiln_epoch_enter(&jit->epoch, 0);
  kiln_generation *now = __atomic_load_n(&jit->now, __ATOMIC_ACQUIRE);
  kiln_status *status = kiln_job_queue_wait(jit->jobs, &now->owner, budget);
  if (!status) status = kiln_job_queue_wait(jit->jobs, &jit->packs_owner, budget);
  kiln_epoch_leave(&jit->epoch, ticket);
  return status;
}

void kiln_jit_hurry(kiln_jit *jit, bool on) {
  __atomic_fetch_add(&jit->eager, on ? 1 : -1, __ATOMIC_RELAXED);
}

uint64_t kiln_jit_asks(kiln_jit *jit) { return __atomic_load_n(&jit->asks, __ATOMIC_RELAXED); }

/* -- Calls -- */

const kiln_plan *kiln__serve_beside(kiln_executor *ex, kiln_call *call, const kiln_ivalue *args,
                                    int arg_count, kiln_variant *serving, uint32_t version) {
  kiln_profile *profile = __atomic_load_n(&ex->profiling, __ATOMIC_ACQUIRE);
  const kiln_plan *interim = __atomic_load_n(&ex->interim, __ATOMIC_ACQUIRE);
  const bool records = profile && !kiln_profile_is_ready(profile);
  const bool unprepared =
      serving && (__atomic_load_n(&serving->state, __ATOMIC_ACQUIRE) & KILN_VARIANT_UNPREPARED);
  if (!interim && !serving) return NULL;
  const uint64_t hash = kiln_guard_hash(args, arg_count, call->grad_mode);
  if (records) {
    __atomic_store_n(&ex->recorded, hash, __ATOMIC_RELAXED);
  } else if (unprepared) {
    ask_preparation(ex, call, args, arg_count, serving, version);
  } else {
    ask_level(ex, call, args, arg_count, hash, version);
  }
  const bool stays = serving && !(interim && (records || unprepared));
  kiln__count_dispatch(call, ex, stays ? serving : NULL);
  if (!stays) kiln__ledger_meter(ex, call, hash);
  return stays ? serving->plan : interim;
}
