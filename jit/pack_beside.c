/* pack_beside.c: copies of weights in the order that kernels want, made beside the calls: where a
 * variant meets weights that its preparation (beside.c) did not, as those that a host has set.
 *   call 1 after kiln_instance_set: no copy is there; the groups' operators run
 *   call 2: the same weights again: the copies are asked for, the operators run
 *   call n: they are in the context's store: the kernels run
 * A copy that was made is held here until a slot has it, or nobody has taken it for HELD_NS. */
#include <unistd.h>

#include "jit/levels.h"

#define HELD_NS UINT64_C(10000000000)

struct kiln_asked_pack {
  kiln_queued_job job; /* first */
  struct kiln_asked_pack *next;
  kiln_jit *jit;
  kiln_pack_store *store;
  kiln_kernel_pack pack;
  kiln_tensor *view;  /* of the weight; owned */
  kiln__packed *held; /* NULL: not made yet */
  uint64_t made_ns;
  bool is_over; /* its job has run, or never will */
};

static void destroy(kiln_asked_pack *a) {
  if (a->held) kiln_pack_store_give(a->store, a->held);
  kiln_tensor_release(a->view);
  kiln_mem_free(a->jit->env.mem, a, sizeof *a);
}

/* Takes out what has been held for long, and what never was made. With the lock. */
static kiln_asked_pack *take_old(kiln_jit *jit, uint64_t before) {
  kiln_asked_pack *old = NULL;
  for (kiln_asked_pack **link = &jit->asked_packs, *a; (a = *link);) {
    if (a->is_over && a->made_ns <= before) {
      *link = a->next;
      a->next = old;
      old = a;
    } else {
      link = &a->next;
    }
  }
  return old;
}

static void destroy_all(kiln_asked_pack *a) {
  for (kiln_asked_pack *next; a; a = next) {
    next = a->next;
    destroy(a);
  }
}

/* False in a fork's child where a thread of the parent has it. */
static bool lock(kiln_jit *jit) {
  kiln_status *status = kiln_short_lock_take(&jit->packs_lock, jit->packs_maker);
  kiln_status_destroy(status);
  return !status;
}

static void end(kiln_queued_job *job, kiln__packed *held) {
  kiln_asked_pack *a = (kiln_asked_pack *)(void *)job;
  kiln_jit *jit = a->jit;
  if (!lock(jit)) return;
  a->held = held;
  a->made_ns = held ? kiln_now_ns() : 0;
  a->is_over = true;
  pthread_mutex_unlock(&jit->packs_lock);
}
static void drop(kiln_queued_job *job) { end(job, NULL); }

/* What fails, a later call asks for again. */
static void run(kiln_queued_job *job) {
  kiln_asked_pack *a = (kiln_asked_pack *)(void *)job;
  kiln_jit *jit = a->jit;
  kiln_call *call = NULL;
  kiln__packed *held = NULL;
  kiln_status *status = kiln_call_create(&jit->env, &call);
  if (!status) {
    call->pool = NULL;
    status = kiln_pack_store_add(call, a->store, &a->pack, a->view, &held);
  }
  kiln_call_destroy(call);
  kiln_status_destroy(status);
  end(job, held);
}

/* Behind kernels, whose saving is known. */
static uint64_t worth(const kiln_queued_job *job) {
  (void)job;
  return 1;
}

/* Whether it is under way, or held. With the lock. */
static bool is_asked(const kiln_jit *jit, const kiln_kernel_pack *pack, const kiln_tensor *t) {
  for (const kiln_asked_pack *a = jit->asked_packs; a; a = a->next) {
    if (kiln_tensor_data(a->view) == kiln_tensor_data(t) && kiln_pack_is_same(&a->pack, pack))
      return true;
  }
  return false;
}

static void ask(kiln_packer *packer, kiln_pack_store *store, const kiln_kernel_pack *pack,
                const kiln_tensor *t) {
  kiln_jit *jit = (kiln_jit *)(void *)((char *)packer - offsetof(kiln_jit, packer));
  kiln_asked_pack *a = kiln_mem_alloc_zero(jit->env.mem, sizeof *a), *old = NULL;
  if (!a) return;
  a->jit = jit;
  a->store = store;
  a->pack = *pack;
  kiln_status *status = kiln_weight_view(jit->env.mem, t, &a->view);
  a->job = (kiln_queued_job){.run = run, .drop = drop, .worth = worth, .owner = &jit->packs_owner};
  bool is_new = false;
  if (lock(jit)) {
    old = take_old(jit, kiln_now_ns() - HELD_NS);
    is_new = !status && a->view && !is_asked(jit, pack, t);
    if (is_new) {
      a->next = jit->asked_packs;
      jit->asked_packs = a;
    }
    pthread_mutex_unlock(&jit->packs_lock);
  }
  kiln_status_destroy(status);
  destroy_all(old);
  if (!is_new) {
    destroy(a);
    return;
  }
  __atomic_fetch_add(&jit->asks, 1, __ATOMIC_RELAXED);
  if (!kiln_job_queue_add(jit->jobs, &a->job)) drop(&a->job);
}

/* Of the model, once: its generations have jobs too, and the same calls. */
static int count_calls(kiln_job_owner *owner) {
  const kiln_jit *jit = (kiln_jit *)(void *)((char *)owner - offsetof(kiln_jit, packs_owner));
  return (int)kiln_epoch_runs(&jit->epoch);
}

void kiln__packs_begin(kiln_jit *jit) {
  pthread_mutex_init(&jit->packs_lock, NULL);
  jit->packs_maker = getpid();
  if (!jit->jobs) return;
  jit->packer.ask = ask;
  jit->packs_owner.count_calls = count_calls;
  kiln_job_queue_enter(jit->jobs, &jit->packs_owner);
}

void kiln__packs_end(kiln_jit *jit) {
  if (jit->jobs) kiln_job_queue_leave(jit->jobs, &jit->packs_owner);
  destroy_all(take_old(jit, UINT64_MAX));
  pthread_mutex_destroy(&jit->packs_lock);
}
