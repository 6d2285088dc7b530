/* call.c: the state of one call: cache, limits, random numbers.
 *
 * Limits are asked every few operations (base/budget.h) and before a tensor is made. */
#include "runtime/call.h"

#include "base/arena_limit.h"
#include "base/workspace.h"
#include "runtime/binding.h"
#include "runtime/type.h"

/* Of what one operator writes as text, where kiln_limits does not name less: 4 GiB with what is
 * copied as it grows. */
#define MAX_SCRATCH ((size_t)4 << 30)
/* What a limited call lends to compiling, beside a part of its limits. */
enum { COMPILE_MS = 200, COMPILE_BYTES = 24 << 20 };
enum { CACHE_KEEP_BYTES = 64 << 20 };

kiln_status *kiln_call_create_for(kiln_env *env, const struct kiln_dispatch *dispatch,
                                  kiln_call **out_call) {
  kiln_call *call = kiln_mem_alloc_zero(env->mem, sizeof *call);
  if (!call) return kiln_status_oom();
  kiln_cache_init(&call->cache, env->mem, CACHE_KEEP_BYTES);
  kiln_status *status = kiln_workspace_open(&call->cache);
  if (!status) status = kiln_arena_create(env->mem, &call->scratch);
  if (status) {
    kiln_cache_deinit(&call->cache);
    kiln_mem_free(env->mem, call, sizeof *call);
    return status;
  }
  call->env = env;
  call->pool = env->pool;
  call->facts = kiln_mem_facts(env->mem);
  call->dispatch = dispatch;
  kiln_call_begin(call, NULL);
  *out_call = call;
  return NULL;
}

void kiln_call_destroy(kiln_call *call) {
  if (!call) return;
  if (call->destroy_frames) call->destroy_frames(call);
  kiln_tally_end(&call->tally);
  kiln_binding_destroy(call);
  kiln_mem *mem = call->env->mem;
  kiln_arena_destroy(call->scratch);
  kiln_possible_roots_deinit(mem, &call->roots);
  kiln_random_release(call->own_random);
  kiln_mem_retain(mem); /* the cache lets go of it before the struct is given back */
  kiln_cache_deinit(&call->cache);
  kiln_mem_free(mem, call, sizeof *call);
  kiln_mem_release(mem);
}

size_t kiln_call_bytes(const kiln_call *call) { return kiln_budget_bytes(&call->budget); }

void kiln_call_begin(kiln_call *call, const kiln_limits *limits) {
  call->limits = limits ? *limits : (kiln_limits){0};
  call->recursion = 0;
  kiln_workspace_begin_run(&call->cache, call->plans_memory);
  kiln_budget_begin(&call->budget, "the call", call->env->mem, limits);
  call->budget.cache = &call->cache;
  if (call->limits.bytes) call->budget.held_at_start -= call->cache.bytes;
  if (call->timed) call->budget.grant = call->budget.granted = call->budget.fuel = 0;
  const uint64_t ms = call->limits.time_ms, bytes = call->limits.bytes;
  call->compile_ns = ms ? (COMPILE_MS + ms / 2) * 1000000 : UINT64_MAX;
  call->compile_bytes =
      bytes ? (bytes / 4 > COMPILE_BYTES ? bytes / 4 : COMPILE_BYTES) : UINT64_MAX;
}

kiln_status *kiln_call_check(kiln_call *call, uint64_t work) {
  return kiln_budget_work(&call->budget, work);
}

kiln_status *kiln_call_tensor(kiln_call *call, kiln_dtype dtype, int rank, const int64_t *sizes,
                              kiln_tensor **out_tensor) {
  if (kiln_budget_may_end(&call->budget)) KILN_TRY(kiln_budget_check(&call->budget, 0));
  return kiln_tensor_create(call->env->mem, &call->cache, dtype, rank, sizes, out_tensor);
}

/* -- Text -- */

static size_t scratch_limit(const kiln_call *call) {
  if (call->limits.bytes == 0) return MAX_SCRATCH;
  const size_t held = kiln_call_bytes(call);
  if (held >= call->limits.bytes) return 1;
  return call->limits.bytes - held < MAX_SCRATCH ? (size_t)call->limits.bytes - held : MAX_SCRATCH;
}

typedef kiln_status *text_body(kiln_call *call, kiln_text *text, void *arg);

static kiln_status *write_text(kiln_call *call, text_body *body, void *arg) {
  kiln_text text = kiln_text_in(call->scratch);
  return body(call, &text, arg);
}
static kiln_status *try_text(kiln_call *call, text_body *body, void *arg) {
  KILN_PROTECT(write_text(call, body, arg));
}

kiln_status *kiln_call_text(kiln_call *call, text_body *body, void *arg) {
  if (call->scratch_users++ == 0) kiln_arena_set_limit(call->scratch, scratch_limit(call));
  kiln_status *status = try_text(call, body, arg);
  bool limit_met = kiln_arena_limit_met(call->scratch);
  if (--call->scratch_users == 0) kiln_arena_reset(call->scratch);
  if (!status || !limit_met) return status;
  kiln_status_destroy(status);
  KILN_TRY(kiln_budget_room(&call->budget, SIZE_MAX));
  return KILN_ERROR(KILN_LIMIT, "a text would be larger than 2 GiB");
}

/* -- Random numbers -- */

kiln_status *kiln_call_random(kiln_call *call, kiln_random **out_random) {
  if (!call->random) {
    KILN_TRY(kiln_random_create(call->env->mem, KILN_RANDOM_SEED, &call->own_random));
    call->random = call->own_random;
  }
  *out_random = call->random;
  return NULL;
}
