/* compile_budget.c: what compiling on a call's thread may take, and what of it the call pays.
 *
 * A call lends compiling some time and memory beside its own limits (runtime/call.c), so that a
 * short limit does not keep a model from ever being compiled, and a call under time_ms T returns
 * within 1.5 T and half a second. Memory is that of the job's arenas: what other threads take does
 * not count. */
#include "jit/compile_job.h"

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* A limit of a budget, in which 0 would be none: where nothing is left there is room for nothing.
 */
static uint64_t limit_of(uint64_t bytes) { return bytes ? bytes : 1; }

void kiln__compile_begin(kiln_compile_allowance *allowance, const kiln_jit *jit, kiln_call *call,
                         uint64_t lent, bool needs) {
  const kiln_flags *flags = &jit->env.flags;
  const uint64_t now = kiln_now_ns();
  uint64_t own = flags->compile_time ? (uint64_t)flags->compile_time * 1000000 : UINT64_MAX;
  const uint64_t time = call ? least(call->compile_ns, own) : own;
  *allowance = (kiln_compile_allowance){
      .call = call, .begin_ns = now, .held = kiln_mem_bytes_of_calls(jit->env.mem)};
  kiln_budget *b = &allowance->budget;
  kiln_budget_begin(b, needs ? "the call" : "the compilation", NULL, NULL);
  b->cancel = call ? call->budget.cancel : jit->abandon;
  b->time_ms = needs ? call->limits.time_ms : (uint32_t)(time / 1000000);
  if (needs) {
    if (call->limits.bytes) {
      uint64_t used = least(kiln_call_bytes(call), call->limits.bytes);
      b->bytes = limit_of(call->limits.bytes - used + call->compile_bytes);
    }
    b->deadline_ns = call->budget.deadline_ns ? call->budget.deadline_ns + call->compile_ns : 0;
    return;
  }
  allowance->is_limited = (call && call->compile_ns < own) || lent < UINT64_MAX;
  b->bytes =
      limit_of(least(lent, flags->compile_memory ? (uint64_t)flags->compile_memory : UINT64_MAX));
  if (b->bytes == UINT64_MAX) b->bytes = 0;
  if (time == UINT64_MAX) return;
  b->deadline_ns = now + time;
  allowance->groups_until_ns = now + time - time / 4; /* guards and emission come after them */
}

void kiln__compile_end(kiln_compile_allowance *allowance) {
  kiln_call *call = allowance->call;
  if (!call) return;
  const size_t held = kiln_mem_bytes_of_calls(call->env->mem), more = held - allowance->held;
  const size_t grown = more <= SIZE_MAX / 2 ? more : 0;
  const uint64_t spent = kiln_now_ns() - allowance->begin_ns, time = least(spent, call->compile_ns);
  const size_t bytes = (size_t)least(grown, call->compile_bytes);
  call->ticked_at += spent; /* it is no time of the instruction that called */
  if (call->unserved_since) /* nor of regions that wait for a variant */
    call->unserved_since = least(call->unserved_since + spent, allowance->begin_ns + spent);
  if (call->budget.deadline_ns) {
    call->budget.deadline_ns += time;
    call->compile_ns -= time;
  }
  call->budget.held_at_start += bytes;
  if (call->limits.bytes) call->compile_bytes -= bytes;
}
