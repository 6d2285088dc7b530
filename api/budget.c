/* budget.c: what the JIT has made for a context's models stays within the flag jit_memory: what was
 * made for the model that was called longest ago goes.
 *
 * When a model was called is known from its count of calls, which is looked at whenever something
 * was made: no call writes a line that others read. So "longest ago" is by such looks: of models A,
 * B and C, all called before D is compiled, and of which only C is called until E is, A or B goes.
 */
#include "api/internal.h"
#include "base/timeline.h"
#include "codegen/codegen.h"

/* Which models were called since the last look, and what each has; gives the sum. */
static uint64_t look(kiln_context *context) {
  uint64_t sum = 0;
  context->looks++;
  for (kiln_model *m = context->models; m; m = m->next) {
    const uint64_t calls = m->jit ? kiln_jit_calls(m->jit) : 0;
    if (calls != m->calls_then) m->called_at = context->looks;
    m->calls_then = calls;
    m->made_bytes = m->jit ? kiln_jit_bytes(m->jit) : 0;
    sum += m->made_bytes;
  }
  return sum;
}

/* Of those that were called before `but`'s last call; NULL: there is none with anything. */
static kiln_model *longest_ago(kiln_context *context, const kiln_model *but) {
  kiln_model *oldest = NULL;
  for (kiln_model *m = context->models; m; m = m->next) {
    if (m == but || m->made_bytes == 0) continue;
    if (!oldest || m->called_at < oldest->called_at) oldest = m;
  }
  return oldest;
}

static void tell(kiln_context *context, kiln_event event, const char *name, uint64_t bytes,
                 uint64_t most) {
  const kiln_timeline_arg args[] = {{"option", .text = "jit_memory"},
                                    {"bytes", .number = (int64_t)bytes},
                                    {"most", .number = (int64_t)most}};
  kiln_timeline_mark(context->env->timeline, event, name, 3, args);
}

/* Under the context's lock, so that no model goes. `but` (may be NULL) keeps what it has. */
static kiln_status *trim(kiln_context *context, uint64_t most, const kiln_model *but) {
  uint64_t held = look(context);
  const char *name = NULL;
  for (const kiln_model *m = context->models; m; m = m->next)
    if (m == but) name = m->name;
  for (kiln_model *m; held > most && (m = longest_ago(context, but));) {
    KILN_TRY(kiln_jit_drop(m->jit));
    tell(context, KILN_EVENT_evicted, m->name, m->made_bytes, most);
    held -= m->made_bytes; /* what calls under way have of it goes when they end */
    m->made_bytes = 0;
  }
  if (held > most && name) tell(context, KILN_EVENT_limit, name, held, most);
  return NULL;
}

kiln_status *kiln_context_trim(kiln_context *context, uint64_t bytes) {
  KILN_NEEDS(context);
  pthread_mutex_lock(&context->lock);
  kiln_status *status = trim(context, bytes, NULL);
  pthread_mutex_unlock(&context->lock);
  if (!status) kiln_mem_give_back(context->env->mem);
  return status;
}

/* -- Whenever something was made -- */

static void keep_within(kiln_context *context) {
  pthread_mutex_lock(&context->lock);
  const uint64_t most = (uint64_t)context->env->flags.jit_memory;
  kiln_status *status = most ? trim(context, most, context->made_last) : NULL;
  pthread_mutex_unlock(&context->lock);
  kiln_status_destroy(status); /* without memory for a new beginning all stays as it is */
}

static kiln_context *context_of(kiln_queued_job *job) {
  return (kiln_context *)(void *)((char *)job - offsetof(kiln_context, trim_job));
}
static void drop_trim(kiln_queued_job *job) {
  __atomic_store_n(&context_of(job)->trim_asked, false, __ATOMIC_RELEASE);
}
static void run_trim(kiln_queued_job *job) {
  drop_trim(job); /* what is made from here on asks anew */
  keep_within(context_of(job));
}
static uint64_t worth_most(const kiln_queued_job *job) {
  (void)job;
  return UINT64_MAX;
}

void kiln__context_made(kiln_model *model) {
  kiln_context *context = model->context;
  pthread_mutex_lock(&context->lock);
  context->made_last = model;
  pthread_mutex_unlock(&context->lock);
  if (model->flags.compile != KILN_COMPILE_ASYNC) {
    keep_within(context);
  } else if (!__atomic_exchange_n(&context->trim_asked, true, __ATOMIC_ACQ_REL)) {
    context->trim_job = (kiln_queued_job){
        .run = run_trim, .drop = drop_trim, .worth = worth_most, .owner = &context->trimmer};
    if (!kiln_job_queue_add(context->env->jobs, &context->trim_job)) drop_trim(&context->trim_job);
  }
}

void kiln__context_enter_jobs(kiln_context *context) {
  kiln_job_queue_enter(context->env->jobs, &context->trimmer);
}
void kiln__context_leave_jobs(kiln_context *context) {
  if (context->env) kiln_job_queue_leave(context->env->jobs, &context->trimmer);
}
