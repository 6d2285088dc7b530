/* jit.c: a model's executors as a whole: making, ending, calling, counting. */
#include "jit/jit.h"

#include <stdio.h>

#include "jit/levels.h"

/* -- Making -- */

static kiln_status *find_method(const kiln_method_lookup *self, const kiln_type *cls, kiln_str name,
                                const kiln_callable **out) {
  kiln_jit *jit = (kiln_jit *)((char *)(uintptr_t)self - offsetof(kiln_jit, methods));
  kiln_function *method = cls->cls ? kiln_class_find_method(cls, name) : NULL;
  if (!method) {
    return KILN_ERROR(KILN_NOT_FOUND, "'" KILN_STR_FMT "' has no method '" KILN_STR_FMT "'",
                      KILN_STR_ARG(cls->name), KILN_STR_ARG(name));
  }
  return kiln_jit_callable(jit, method, out);
}

kiln_status *kiln_jit_create(const kiln_env *env, const kiln_flags *flags, kiln_unit *unit,
                             struct kiln_codegen *codegen, kiln_jit **out_jit) {
  kiln_jit *jit = kiln_mem_alloc_zero(env->mem, sizeof *jit);
  if (!jit) return kiln_status_oom();
  jit->env = *env;
  jit->env.flags = *flags;
  jit->unit = unit;
  jit->codegen = codegen;
  jit->methods.find = find_method;
  if (flags->compile == KILN_COMPILE_ASYNC && flags->compat != KILN_COMPAT_TORCH)
    jit->jobs = env->jobs;
  kiln_status *status = kiln_arena_create(env->mem, &jit->arena);
  kiln_counter_book_init(&jit->book, env->mem);
  jit->calls = kiln_counter_book_new(&jit->book, 1);
  if (!status && !jit->calls) status = kiln_status_oom();
  if (!status) status = kiln_cancel_create(&jit->abandon);
  if (!status) status = kiln_pass_quota_init(&jit->quota, &jit->env);
  if (status) {
    kiln_cancel_destroy(jit->abandon);
    kiln_counter_book_deinit(&jit->book);
    kiln_arena_destroy(jit->arena);
    kiln_mem_free(env->mem, jit, sizeof *jit);
    return status;
  }
  jit->refusal_index = kiln_map_in(jit->arena);
  jit->warned = kiln_map_in(jit->arena);
  jit->sites = kiln_map_in(jit->arena);
  jit->slots = kiln_map_in(jit->arena);
  kiln_job_lock_init(&jit->lock);
  kiln_guard_misses_init(&jit->misses, &jit->env, &jit->book, jit->calls);
  kiln_epoch_init(&jit->epoch, env->mem);
  jit->strategy = kiln_flags_strategy(&jit->env.flags);
  jit->depth = kiln_strategy_depth(&jit->strategy);
  if (jit->jobs) kiln_codegen_watch_exit();
  kiln__packs_begin(jit);
  status = kiln__generation_begin(jit);
  if (status) {
    kiln_jit_destroy(jit);
    return status;
  }
  *out_jit = jit;
  return NULL;
}

void kiln_jit_destroy(kiln_jit *jit) {
  if (!jit) return;
  kiln_mem *mem = jit->env.mem;
  kiln__leave_jobs(jit);
  kiln__packs_end(jit);
  kiln_arena_destroy(jit->profile_arena);
  kiln_cancel_destroy(jit->abandon);
  kiln_epoch_deinit(&jit->epoch);
  kiln_guard_misses_deinit(&jit->misses);
  kiln_counter_book_deinit(&jit->book);
  kiln__generations_end(jit);
  kiln_job_lock_deinit(&jit->lock);
  kiln_arena_destroy(jit->arena);
  kiln_mem_free(mem, jit, sizeof *jit);
}

/* -- Callables -- */

void kiln__jit_give_lock(void *jit) { kiln_job_lock_give(&((kiln_jit *)jit)->lock); }

static kiln_executor *make_root(kiln_generation *of, kiln_function *function, const char *name) {
  kiln_executor *ex = kiln__executor_create(of->jit, of->arena, NULL, name);
  ex->of = of;
  ex->function = function;
  ex->callable.arg_count = function->schema ? function->schema->arg_count : 0;
  kiln__executors_append(&of->executors, (kiln_executor_list){ex, ex});
  return ex;
}
static kiln_status *make_callable(kiln_jit *jit, kiln_function *function) {
  const kiln_executor *ex = make_root(jit->now, function, function->qualname);
  __atomic_store_n(&function->callable, &ex->callable, __ATOMIC_RELEASE);
  return NULL;
}
static kiln_status *try_callable(kiln_jit *jit, kiln_function *function) {
  KILN_PROTECT(make_callable(jit, function));
}

kiln_status *kiln_jit_callable(kiln_jit *jit, kiln_function *function, const kiln_callable **out) {
  kiln_status *status = NULL;
  *out = __atomic_load_n(&function->callable, __ATOMIC_ACQUIRE);
  if (*out) return NULL;
  KILN_TRY(kiln_job_lock_take(&jit->lock, kiln_budget_current()));
  if (!function->callable) status = try_callable(jit, function);
  *out = function->callable; /* with the lock: it may go with the next generation */
  kiln_job_lock_give(&jit->lock);
  return status;
}

static kiln_status *make_other(kiln_executor *root) {
  const int setting = root->setting + 1;
  const char *name =
      kiln_arena_printf(root->of->arena, "%s@%d", root->function->qualname, setting + 1);
  kiln_executor *other = make_root(root->of, root->function, name);
  other->setting = setting;
  __atomic_store_n(&root->other, other, __ATOMIC_RELEASE);
  return NULL;
}
static kiln_status *try_other(kiln_executor *root) { KILN_PROTECT(make_other(root)); }

kiln_status *kiln__jit_other(kiln_executor *root, kiln_executor **out_other) {
  kiln_status *status = NULL;
  *out_other = NULL;
  if (root->setting + 1 >= KILN__MAX_SETTINGS) return NULL;
  KILN_TRY(kiln_job_lock_take(&root->jit->lock, kiln_budget_current()));
  if (!root->other) status = try_other(root);
  kiln_job_lock_give(&root->jit->lock);
  *out_other = root->other;
  return status;
}

bool *kiln__jit_warned(kiln_jit *jit, const kiln_source_range *range) {
  char key[64];
  const int len = snprintf(key, sizeof key, "%p:%u", (const void *)range->source, range->begin);
  const kiln_str name = kiln_str_make(key, (size_t)len);
  kiln_cleanup unlocking;
  kiln_status *status = kiln_job_lock_take(&jit->lock, kiln_budget_current());
  if (status) kiln_scope_fail(status);
  kiln_scope_defer(&unlocking, kiln__jit_give_lock, jit);
  bool *told = kiln_map_find(&jit->warned, name);
  if (!told) {
    told = KILN_NEW(jit->arena, bool);
    kiln_map_set(&jit->warned, kiln_arena_str(jit->arena, name), told);
  }
  kiln_scope_undefer(&unlocking);
  kiln_job_lock_give(&jit->lock);
  return told;
}

static void note_wait(kiln_jit *jit, kiln_call *call, const char *name) {
  const uint64_t ns = call->waited_ns;
  uint64_t worst = __atomic_load_n(&jit->worst_stall_ns, __ATOMIC_RELAXED);
  call->waited_ns = 0;
  while (ns > worst && !__atomic_compare_exchange_n(&jit->worst_stall_ns, &worst, ns, true,
                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
  if (ns <= (uint64_t)jit->env.flags.max_stall_us * 1000) return;
  __atomic_fetch_add(&jit->stalls, 1, __ATOMIC_RELAXED);
  const kiln_timeline_arg args[] = {{"waited_us", .number = (int64_t)(ns / 1000)},
                                    {"max_stall_us", .number = jit->env.flags.max_stall_us}};
  kiln_timeline_mark(jit->env.timeline, KILN_EVENT_stall, name, 2, args);
}

/* A method that is called first since its executors went starts from what they had seen. */
static kiln_status *find_callable(kiln_jit *jit, kiln_function *function, const kiln_ivalue *args,
                                  int arg_count, const kiln_callable **out) {
  *out = __atomic_load_n(&function->callable, __ATOMIC_ACQUIRE);
  if (__builtin_expect(*out != NULL, 1)) return NULL;
  KILN_TRY(kiln_jit_callable(jit, function, out));
  if (__atomic_load_n(&jit->has_kept_profiles, __ATOMIC_RELAXED) && arg_count > 0 &&
      args[0].tag == KILN_TAG_OBJECT)
    kiln_jit_start(jit, function, args[0], false);
  return NULL;
}

/* The epoch is entered before the function's executor is looked for: then it does not go. */
static kiln_status *call_in_epoch(kiln_jit *jit, kiln_call *call, kiln_function *function,
                                  const kiln_ivalue *args, int arg_count, kiln_ivalue *out_result) {
  const kiln_callable *callable;
  KILN_TRY(find_callable(jit, function, args, arg_count, &callable));
  kiln_budget **place = kiln_budget_place(), *outer = *place;
  kiln_epoch *outer_epoch = call->epoch;
  *place = &call->budget;
  call->epoch = &jit->epoch;
  call->packer = jit->jobs ? &jit->packer : NULL;
  kiln_status *status = kiln_interp_run(call, callable, args, arg_count, out_result);
  *place = outer;
  call->epoch = outer_epoch;
  if (__builtin_expect(call->waited_ns != 0, 0)) note_wait(jit, call, callable->name);
  return status;
}

kiln_status *kiln_jit_call(kiln_jit *jit, kiln_call *call, kiln_function *function,
                           const kiln_ivalue *args, int arg_count, kiln_ivalue *out_result) {
  kiln_tally_begin(&call->tally, &jit->book);
  const kiln_counter_page *page = call->tally.page;
  const uint64_t ticket = kiln_epoch_enter(&jit->epoch, page ? page->stripe : 0);
  kiln_status *status = call_in_epoch(jit, call, function, args, arg_count, out_result);
  kiln_epoch_leave(&jit->epoch, ticket);
  if (__builtin_expect(call->unserved_since != 0, 0)) {
    const uint64_t ns = kiln_now_ns() - call->unserved_since;
    __atomic_fetch_add(&jit->unserved_ns, ns, __ATOMIC_RELAXED);
    call->unserved_since = 0;
  }
  bool waiting = __atomic_load_n(&jit->epoch.retired, __ATOMIC_RELAXED) != NULL;
  if (__builtin_expect(waiting, 0)) (void)kiln_epoch_collect(&jit->epoch);
  return status;
}

kiln_status *kiln_jit_drop(kiln_jit *jit) {
  KILN_TRY(kiln__generation_begin(jit));
  (void)kiln_epoch_collect(&jit->epoch);
  (void)kiln_epoch_collect(&jit->epoch); /* two epochs old, where no call is under way */
  return NULL;
}

/* -- Counters -- */

static void count_guard(kiln_jit *jit, const kiln_guard_desc *guard, kiln_counters *c) {
  c->guard_hits += kiln_counter_sum(&jit->book, guard->hits);
  c->guard_misses += kiln_counter_sum(&jit->book, guard->misses);
}

static uint64_t count_kept(const kiln_generation *g) {
  uint64_t bytes = kiln_arena_bytes(g->arena);
  for (const kiln_kept_arena *kept = g->kept; kept; kept = kept->next)
    bytes += kiln_arena_bytes(kept->arena);
  return bytes;
}

static void count_variant(kiln_jit *jit, const kiln_variant *v, kiln_counters *c) {
  if (v->plan) c->plan_bytes += kiln_arena_bytes(v->plan->arena);
  if (v->profile) c->profiled_runs += (uint64_t)kiln_profile_runs(v->profile);
  const kiln_plan *plan = v->plan;
  for (int i = 0; plan && i < plan->guard_count; i++) count_guard(jit, &plan->guards[i], c);
  if (v->guard) count_guard(jit, v->guard, c);
}

void kiln__jit_count(kiln_jit *jit, kiln_counters *c) {
  c->plan_bytes += count_kept(jit->now);
  for (kiln_executor *ex = jit->now->executors.first; ex; ex = ex->next) {
    c->fallback_calls += kiln_counter_sum(&jit->book, ex->callable.call_counter);
    if (ex->building) count_variant(jit, ex->building, c);
    for (const kiln_variant *v = ex->variants; v; v = v->next) count_variant(jit, v, c);
  }
  for (const kiln_group_info *g = jit->now->groups.first; g; g = g->next) {
    const bool ran = kiln_counter_sum(&jit->book, g->runs) > g->before.runs;
    c->groups++;
    if (g->code) c->code_bytes += g->code->code_bytes + g->code->object_bytes;
    c->groups_never_run +=
        !ran && (!g->code || kiln_counter_sum(&jit->book, g->hits) > g->before.hits);
  }
}

void kiln_jit_counters(kiln_jit *jit, kiln_counters *c) {
  *c = (kiln_counters){.calls = kiln_jit_calls(jit)};
  if (!kiln_job_lock_look(&jit->lock)) return;
  c->compiles = __atomic_load_n(&jit->compiles, __ATOMIC_RELAXED);
  c->compile_failures = __atomic_load_n(&jit->compile_failures, __ATOMIC_RELAXED);
  c->compile_ns = __atomic_load_n(&jit->compile_ns, __ATOMIC_RELAXED);
  c->jobs = kiln_jit_asks(jit);
  c->stalls = __atomic_load_n(&jit->stalls, __ATOMIC_RELAXED);
  c->worst_stall_ns = __atomic_load_n(&jit->worst_stall_ns, __ATOMIC_RELAXED);
  c->retired = __atomic_load_n(&jit->retired, __ATOMIC_RELAXED);
  c->simple_plans = __atomic_load_n(&jit->simple_plans, __ATOMIC_RELAXED);
  c->max_depth = jit->max_depth;
  kiln__jit_count(jit, c);
  c->plan_bytes += kiln_arena_bytes(jit->arena);
  c->groups += jit->gone.groups;
  c->profiled_runs += jit->gone.profiled_runs;
  c->groups_never_run += jit->gone.never_run;
  c->fallback_calls += jit->gone.fallback_calls;
  c->guard_hits += jit->gone.hits;
  c->guard_misses += jit->gone.misses;
  c->dropped = jit->gone.times;
  for (int i = 0; i < jit->all_slots.count; i++)
    c->compiled_runs += kiln_counter_sum(&jit->book, jit->all_slots.data[i]->runs);
  kiln_job_lock_give(&jit->lock);
}

kiln_status *kiln_jit_group(kiln_jit *jit, int index, kiln_group_counters *out) {
  kiln_status *status = NULL;
  KILN_TRY(kiln_job_lock_take(&jit->lock, NULL));
  const kiln_group_info *g = jit->now->groups.first;
  for (int i = 0; g && i < index; i++) g = g->next;
  if (g && index >= 0) {
    *out = (kiln_group_counters){
        .name = g->name,
        .hash = g->slot->hash,
        .reason = g->code ? NULL : kiln_reason_sentence(g->reason),
        .depth = g->depth,
        .operators = g->operators,
        .guard_hits = kiln_counter_sum(&jit->book, g->hits) - g->before.hits,
        .guard_misses = kiln_counter_sum(&jit->book, g->misses) - g->before.misses,
        .runs = kiln_counter_sum(&jit->book, g->runs) - g->before.runs,
        .compile_ns = g->compile_ns,
    };
  } else {
    status = KILN_ERROR(KILN_NOT_FOUND, "no group number %d", index);
  }
  kiln_job_lock_give(&jit->lock);
  return status;
}

bool kiln_jit_refusal_at(kiln_jit *jit, int index, kiln_jit_refusal *out) {
  if (!kiln_job_lock_look(&jit->lock)) return false;
  bool found = index >= 0 && index < jit->refusals.count;
  if (found) *out = jit->refusals.data[index]->public;
  kiln_job_lock_give(&jit->lock);
  return found;
}
