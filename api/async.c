/* async.c: calls beside their caller: threads of the context run them, and somebody is told, or
 * waits.
 *
 * A pending call has handles of its own on the arguments, so the host may give its own back at
 * once. It has two references: the host's, and the run's. The run's goes with the end, so that who
 * has waited and then gives its own back gives all back. */
#include "api/internal.h"

#include <unistd.h>

#include "base/thread.h"
#include "base/workers.h"

struct kiln_pending {
  kiln_queued_task task;   /* first */
  kiln_instance *instance; /* retained */
  pid_t process;
  kiln__method *method;
  kiln_call_options options;
  uint64_t came_ns;
  kiln_done_fn done;
  void *user;
  pthread_mutex_t lock; /* of what follows */
  pthread_cond_t ended;
  int refs;
  bool has_ended, is_taken;
  kiln_status *status;
  kiln_value *result;
  uint64_t alone;       /* of the outputs */
  int count;            /* of arguments; behind them stand */
  kiln_value *values[]; /* options.outputs; owned, until the run has ended */
};

static int count_values(const kiln_pending *p) { return p->count + p->options.output_count; }
static size_t size_of(const kiln_pending *p) {
  return sizeof *p + (size_t)count_values(p) * sizeof *p->values;
}

static void release_values(kiln_pending *p) {
  for (int i = 0; i < count_values(p); i++) {
    kiln_value_destroy(p->values[i]);
    p->values[i] = NULL;
  }
}

/* The last reference has gone. */
static void destroy(kiln_pending *p) {
  kiln_instance *instance = p->instance;
  kiln_status_destroy(p->status);
  kiln_value_destroy(p->result);
  pthread_cond_destroy(&p->ended);
  pthread_mutex_destroy(&p->lock);
  kiln_mem_free(instance->model->context->env->mem, p, size_of(p));
  kiln_instance_release(instance);
}

void kiln_pending_release(kiln_pending *p) {
  if (!p || p->process != getpid()) return; /* a fork's parent has it, and perhaps its lock */
  pthread_mutex_lock(&p->lock);
  const bool last = --p->refs == 0;
  pthread_mutex_unlock(&p->lock);
  if (last) destroy(p);
}

/* What the call may close a circle in is looked through when the host's handle goes. */
static kiln_status *share_values(kiln_pending *p, kiln_value *const *arguments,
                                 kiln_value *const *outputs) {
  for (int i = 0; i < count_values(p); i++) {
    kiln_value *given = i < p->count ? arguments[i] : outputs[i - p->count];
    if (given && given->v.tag >= KILN_TAG__COUNTED && given->v.tag != KILN_TAG_TENSOR)
      kiln__value_set_cyclic(given);
    if (given) KILN_TRY(kiln_value_share(given, &p->values[i]));
  }
  return NULL;
}

/* Whoever waits finds what the call ended with, or that its callback has had it. The run's
 * reference goes: perhaps the last that held the context, with this thread. */
static void tell_end(kiln_pending *p, kiln_status *status, kiln_value *result) {
  if (p->done) p->done(p->user, status, result);
  pthread_mutex_lock(&p->lock);
  p->status = p->done ? NULL : status;
  p->result = p->done ? NULL : result;
  p->is_taken = p->done;
  p->has_ended = true;
  const bool last = --p->refs == 0;
  pthread_cond_broadcast(&p->ended);
  pthread_mutex_unlock(&p->lock);
  if (last) destroy(p);
}

static void run(kiln_queued_task *task) {
  kiln_pending *p = (kiln_pending *)(void *)task;
  kiln_value *result = NULL;
  kiln_status *status = kiln__instance_run(p->instance, p->method, p->values, p->count, &p->options,
                                           p->alone, kiln_now_ns() - p->came_ns, &result);
  release_values(p);
  tell_end(p, status, result);
}

static kiln_status *make(kiln_instance *instance, kiln__method *method, int count,
                         const kiln_call_options *options, kiln_pending **out) {
  kiln_pending *p = *out =
      kiln_mem_alloc_zero(instance->model->context->env->mem,
                          sizeof *p + (size_t)(count + options->output_count) * sizeof *p->values);
  if (!p) return kiln_status_oom();
  *p = (kiln_pending){.task = {.run = run},
                      .refs = 1,
                      .instance = kiln__instance_retain(instance),
                      .process = getpid(),
                      .method = method,
                      .options = *options,
                      .alone = kiln__outputs_alone(options),
                      .came_ns = kiln_now_ns(),
                      .count = count};
  p->options.outputs = p->values + count;
  pthread_mutex_init(&p->lock, NULL);
  kiln__condition_init(&p->ended);
  return NULL;
}

kiln_status *kiln_instance_call_async(kiln_instance *instance, const char *method,
                                      kiln_value *const *arguments, int argument_count,
                                      const kiln_call_options *given, kiln_done_fn done, void *user,
                                      kiln_pending **out_pending) {
  KILN_NEEDS(instance && (done || out_pending));
  kiln__method *m;
  kiln_call_options options;
  kiln_pending *p;
  if (out_pending) *out_pending = NULL;
  KILN_TRY(
      kiln__call_check(instance->model, method, arguments, argument_count, given, &m, &options));
  KILN_TRY(make(instance, m, argument_count, &options, &p));
  kiln_status *status = share_values(p, arguments, options.outputs);
  if (status) {
    release_values(p);
    kiln_pending_release(p);
    return status;
  }
  p->done = done;
  p->user = user;
  p->refs = out_pending ? 2 : 1;
  if (out_pending) *out_pending = p;
  if (!kiln_workers_add(instance->model->context->callers, &p->task)) run(&p->task); /* then here */
  return NULL;
}

/* With the lock: until the call has ended, or the time is over. */
static void wait_until(kiln_pending *p, int64_t time_ms) {
  enum { MS_NS = 1000000 };
  const int64_t most_ms = INT64_MAX / MS_NS / 2;
  const struct timespec until =
      kiln__moment_in(CLOCK_MONOTONIC, (time_ms < most_ms ? time_ms : most_ms) * MS_NS);
  while (!p->has_ended) {
    if (time_ms < 0)
      pthread_cond_wait(&p->ended, &p->lock);
    else if (pthread_cond_timedwait(&p->ended, &p->lock, &until) != 0)
      break;
  }
}

kiln_status *kiln_pending_wait(kiln_pending *p, int64_t time_ms, kiln_value **out_result) {
  KILN_NEEDS(p);
  if (out_result) *out_result = NULL;
  if (p->process != getpid())
    return KILN_ERROR(KILN_UNSUPPORTED, "%s() runs in the parent of this process", p->method->name);
  kiln_value *result = NULL;
  pthread_mutex_lock(&p->lock);
  wait_until(p, time_ms);
  kiln_status *status = p->status;
  if (!p->has_ended) {
    status = KILN_ERROR(KILN_LIMIT, "%s() has not ended in %lld ms", p->method->name,
                        (long long)time_ms);
  } else if (p->is_taken) {
    if (!p->done)
      status =
          KILN_ERROR(KILN_INVALID_ARGUMENT, "the result of %s() was taken before", p->method->name);
  } else {
    result = p->result;
    p->result = NULL;
    p->status = NULL;
    p->is_taken = true;
  }
  pthread_mutex_unlock(&p->lock);
  if (out_result)
    *out_result = result;
  else
    kiln_value_destroy(result); /* now: it may be an output, which is to be alone */
  return status;
}
