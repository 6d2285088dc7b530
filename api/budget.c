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

static uint64_t bytes_of(kiln_model *m) { return m->jit ? kiln_jit_bytes(m->jit) : 0; }

/* What the models were called since the last look. */
static void look(kiln_context *context) {
  context->looks++;
  for (kiln_model *m = context->models; m; m = m->next) {
    const uint64_t calls = m->jit ? kiln_jit_calls(m->jit) : 0;
    if (calls != m->calls_then) m->called_at = context->looks;
    m->calls_then = calls;
  }
}

/* Of those that were called before `but`'s last call; NULL: there is none with anything. */
static kiln_model *longest_ago(kiln_context *context, const kiln_model *but) {
  kiln_model *oldest = NULL;
  for (kiln_model *m = context->models; m; m = m->next) {
    if (m == but || m->has_dropped || bytes_of(m) == 0) continue;
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
  uint64_t held = 0;
  look(context);
  for (kiln_model *m = context->models; m; m = m->next) {
    held += bytes_of(m);
    m->has_dropped = false;
  }
  for (kiln_model *m; held > most && (m = longest_ago(context, but));) {
    const uint64_t bytes = bytes_of(m);
    KILN_TRY(kiln_jit_drop(m->jit));
    m->has_dropped = true; /* what calls under way have of it goes when they end */
    tell(context, KILN_EVENT_evicted, m->name, bytes, most);
    held -= bytes < held ? bytes : held;
  }
  if (held > most && but) tell(context, KILN_EVENT_limit, but->name, held, most);
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

void kiln__context_made(kiln_model *model) {
  kiln_context *context = model->context;
  pthread_mutex_lock(&context->lock);
  const uint64_t most = (uint64_t)context->env->flags.jit_memory;
  kiln_status *status = most ? trim(context, most, model) : NULL;
  pthread_mutex_unlock(&context->lock);
  kiln_status_destroy(status); /* without memory for a new beginning all stays as it is */
}
