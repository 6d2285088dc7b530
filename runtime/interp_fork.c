/* interp_fork.c: forked functions as tasks of the pool.
 *
 * A callable says whether it may run beside the rest of the frame that forks it: nothing that one
 * of them writes can be seen by the other (jit/forks.c). With more than one thread it becomes a
 * task, with a call of its own that has the parent's limits: its deadline, its bytes, what is left
 * of its recursion. WAIT waits for it, or runs it if nobody has begun it. Calls with a limit of
 * operations and calls that record gradients stay on one thread, in PyTorch's inline order.
 *
 * A frame ends only when its tasks have ended, so the parent's call, plans and constants outlive
 * them; a task that nobody can wait for any more is not begun. The task's memory is its future's.
 */
#include "runtime/interp_internal.h"

#include "base/pool.h"

struct kiln_fork {
  kiln_task task;
  kiln_future *future; /* whose `fork` this is */
  kiln_call *parent;   /* read only; the frame that forked is in it */
  const kiln_callable *callable;
  kiln_fork *next; /* in the frame's list */
  size_t bytes, held_at_start;
  uint32_t recursion;
  bool abandoned;            /* atomic */
  kiln_possible_roots roots; /* that it left */
  int count;
  kiln_ivalue args[]; /* owned until it has run */
};

/* A call for the task, as its parent's stood at the fork. */
static kiln_status *make_call(const kiln_fork *fork, kiln_call **out_call) {
  const kiln_call *parent = fork->parent;
  kiln_call *call;
  KILN_TRY(kiln_call_create_for(parent->env, parent->dispatch, &call));
  kiln_tally_begin(&call->tally, parent->tally.book);
  kiln_call_begin(call, &parent->limits);
  call->pool = parent->pool;
  call->budget.deadline_ns = parent->budget.deadline_ns;
  call->budget.held_at_start = fork->held_at_start;
  call->compile_ns = parent->compile_ns;
  call->compile_bytes = parent->compile_bytes;
  call->recursion = fork->recursion;
  call->jit = parent->jit;
  call->print = parent->print;
  call->print_user = parent->print_user;
  call->host = parent->host;
  call->types = parent->types;
  call->random = parent->random;
  *out_call = call;
  return NULL;
}

static kiln_status *run_callable(kiln_fork *fork, kiln_ivalue *out_value) {
  kiln_call *call;
  KILN_TRY(make_call(fork, &call));
  kiln_budget *outer = kiln_budget_enter(&call->budget);
  kiln_status *status = kiln_interp_run(call, fork->callable, fork->args, fork->count, out_value);
  kiln_budget_leave(outer);
  fork->roots = call->roots;
  call->roots = (kiln_possible_roots){0};
  kiln_call_destroy(call);
  return status;
}

static void release_args(kiln_fork *fork) {
  for (int i = 0; i < fork->count; i++) kiln_ivalue_release(fork->args[i]);
  fork->count = 0;
}

static void run_fork(void *data) {
  kiln_fork *fork = data;
  if (!__atomic_load_n(&fork->abandoned, __ATOMIC_RELAXED)) {
    kiln_ivalue value = kiln_none();
    fork->future->error = run_callable(fork, &value);
    fork->future->value = value;
  }
  release_args(fork);
}

bool kiln__future_complete(const kiln_future *future) {
  return !future->fork || kiln_task_done(&future->fork->task);
}

void kiln__fork_destroy(kiln_mem *mem, kiln_fork *fork) {
  if (!fork) return;
  release_args(fork);
  kiln_mem_free(mem, fork, fork->bytes);
}

bool kiln__fork_is_worth(const kiln_call *call, const kiln_callable *callable) {
  return (callable->fork == KILN_FORK_BESIDE || callable->fork == KILN_FORK_INDEPENDENT) &&
         kiln_pool_threads(call->pool) > 1 && !call->grad_mode && call->limits.operations == 0;
}

/* Drops the frame's oldest forks that have run. */
static void prune(kiln_call *call, kiln_frame *f) {
  while (f->forks && kiln_task_done(&f->forks->task)) {
    kiln_fork *fork = f->forks;
    f->forks = fork->next;
    kiln_possible_roots_take(&call->roots, &fork->roots);
    kiln_ivalue_release_to(&call->cache, kiln_of_box(fork->future));
  }
}

kiln_status *kiln__fork_start(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                              const kiln_ivalue *args, kiln_ivalue *out_future) {
  const kiln_callable *callable = f->plan->callables[in->x];
  const int count = in->in_count;
  KILN_TRY(kiln_call_check(call, 1));
  prune(call, f);
  const size_t bytes = sizeof(kiln_fork) + (size_t)count * sizeof(kiln_ivalue);
  kiln_fork *fork = kiln_mem_alloc_zero(call->env->mem, bytes);
  if (!fork) return kiln_status_oom();
  kiln_future *future;
  kiln_status *status =
      kiln_future_create(call->env->mem, kiln__fork_type(f->plan, in), kiln_none(), NULL, &future);
  if (status) {
    kiln_mem_free(call->env->mem, fork, bytes);
    return status;
  }
  future->fork = fork;
  *fork = (kiln_fork){
      .task = {.fn = run_fork, .data = fork, .lone = callable->fork == KILN_FORK_INDEPENDENT},
      .future = future,
      .parent = call,
      .callable = callable,
      .bytes = bytes,
      .held_at_start = call->budget.held_at_start + call->cache.bytes,
      .recursion = call->recursion,
      .count = count};
  for (int i = 0; i < count; i++) fork->args[i] = kiln_ivalue_retain(args[i]);
  *(f->forks ? &f->last_fork->next : &f->forks) = fork; /* with a handle of its own */
  f->last_fork = fork;
  *out_future = kiln_ivalue_retain(kiln_of_box(future));
  kiln_pool_submit(call->pool, &fork->task);
  return NULL;
}

void kiln__fork_wait(kiln_call *call, kiln_future *future) {
  if (future->fork) kiln_pool_wait(call->pool, &future->fork->task);
}

void kiln__fork_join(kiln_call *call, kiln_frame *f) {
  for (kiln_fork *fork = f->forks; fork; fork = fork->next) {
    if (__atomic_load_n(&fork->future->box.refs, __ATOMIC_ACQUIRE) == 1) {
      __atomic_store_n(&fork->abandoned, true, __ATOMIC_RELAXED);
    }
    kiln_pool_wait(call->pool, &fork->task);
  }
  while (f->forks) {
    kiln_fork *fork = f->forks;
    f->forks = fork->next;
    kiln_possible_roots_take(&call->roots, &fork->roots);
    kiln_ivalue_release_to(&call->cache, kiln_of_box(fork->future));
  }
}
