/* effects.c: may a method change the attributes of its instance?
 *
 * Answered on an inlined copy of the method's graph, in which the instance's bool attributes
 * (`training` and its like) are constants that decide branches, by alias analysis: it may when it
 * sets an attribute of anything but an object it made itself, when something writes memory that an
 * attribute may share, or when it calls what cannot be looked into. Asked only when two calls meet
 * on one instance, and kept with the flags that it was asked under. */
#include "api/internal.h"
#include "ir/pass.h"
#include "jit/frozen.h"

typedef struct effects_job {
  kiln_ivalue self; /* whose flags hold */
  kiln_pass pass;
  kiln_arena *scratch, *kept;
  kiln_status *(*step)(void *arg);
  kiln__effects *effects; /* in `kept` */
} effects_job;

static bool node_writes(const kiln_alias *alias, const kiln_node *node);

static bool block_writes(const kiln_alias *alias, const kiln_block *block) {
  for (const kiln_node *node = block->first; node; node = node->next) {
    if (node_writes(alias, node)) return true;
  }
  return false;
}

static bool node_writes(const kiln_alias *alias, const kiln_node *node) {
  if (kiln_node_is(node, KILN_OP_prim_SetAttr)) {
    return !kiln_node_is(kiln_node_input(node, 0)->node, KILN_OP_prim_CreateObject);
  }
  if (kiln_node_is(node, KILN_OP_prim_CallMethod) ||
      kiln_node_is(node, KILN_OP_prim_CallFunction)) {
    return true;
  }
  if (kiln_node_is(node, KILN_OP_prim_GetAttr) &&
      kiln_alias_has_writers(alias, kiln_node_output(node, 0))) {
    return true;
  }
  for (int i = 0; i < node->block_count; i++) {
    if (block_writes(alias, node->blocks[i])) return true;
  }
  return false;
}

static kiln_status *inline_calls(void *arg) {
  effects_job *job = arg;
  return kiln_pass_inline(&job->pass);
}
static kiln_status *splice_and_look(void *arg) {
  effects_job *job = arg;
  if (job->effects->frozen) KILN_TRY(kiln_pass_constant_propagation(&job->pass));
  const kiln_alias *alias = kiln_alias_create(job->scratch, job->pass.graph);
  job->effects->writes = block_writes(alias, job->pass.graph->top);
  return NULL;
}
static kiln_status *in_graph(void *arg) {
  effects_job *job = arg;
  return kiln_arena_run(job->pass.graph->arena, job->step, job);
}
/* Runs a step with both arenas open, and empties the scratch one. */
static kiln_status *run_step(effects_job *job, kiln_status *(*step)(void *arg)) {
  job->step = step;
  kiln_status *status = kiln_arena_run(job->scratch, in_graph, job);
  kiln_arena_reset(job->scratch);
  return status;
}
static kiln_status *freeze_flags(void *arg) {
  effects_job *job = arg;
  job->effects = KILN_NEW(job->kept, kiln__effects);
  *job->effects = (kiln__effects){.arena = job->kept};
  return kiln__freeze_flags(job->pass.graph, job->self, job->kept, job->scratch,
                            &job->effects->frozen);
}

static kiln_status *look(kiln_model *model, const kiln__method *method, effects_job *job) {
  kiln_mem *mem = model->context->env->mem;
  kiln_unit *unit = model->script->unit;
  kiln_type_table *types = NULL;
  kiln_call *call = NULL;
  job->pass.env = model->context->env;
  KILN_TRY(kiln_unit_ensure(method->function));
  kiln_status *status = kiln_type_table_create(mem, unit->types, &types);
  if (!status) status = kiln_arena_create(mem, &job->scratch);
  if (!status) status = kiln_graph_copy(method->function->graph, mem, types, &job->pass.graph);
  if (!status) status = kiln__model_make_call(model, &call);
  job->pass.scratch = job->scratch;
  job->pass.call = call;
  if (!status) status = run_step(job, inline_calls);
  if (!status) status = kiln_arena_run(job->kept, freeze_flags, job);
  if (!status) status = run_step(job, splice_and_look);
  kiln_call_destroy(call);
  if (job->pass.graph) kiln_graph_release(job->pass.graph);
  kiln_arena_destroy(job->scratch);
  kiln_type_table_destroy(types);
  return status;
}

/* -- What is known -- */

enum { MOST_KNOWN = 16 }; /* settings of the flags, of one method */

/* Where nothing is known of these flags: NULL, and *out_count is how many others are. */
static const kiln__effects *find(const kiln__method *method, kiln_ivalue self, int *out_count) {
  const kiln__effects *e = __atomic_load_n(&method->effects, __ATOMIC_ACQUIRE);
  for (*out_count = 0; e; e = e->next, ++*out_count) {
    if (!e->frozen || kiln__frozen_holds(e->frozen, self)) return e;
  }
  return NULL;
}

bool kiln__method_writes(kiln_model *model, kiln__method *method, kiln_ivalue self) {
  effects_job job = {.self = self};
  int count;
  const kiln__effects *known = find(method, self, &count);
  if (known) return known->writes;
  if (count >= MOST_KNOWN) return true;
  kiln_status *status = kiln_arena_create(model->context->env->mem, &job.kept);
  if (!status) status = look(model, method, &job);
  if (status) { /* not known: the careful answer, and asked again next time */
    kiln_status_destroy(status);
    kiln_arena_destroy(job.kept);
    return true;
  }
  kiln__effects *e = job.effects;
  e->next = __atomic_load_n(&method->effects, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&method->effects, &e->next, e, false, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  return e->writes;
}

void kiln__method_forget(kiln__method *method) {
  for (kiln__effects *e = method->effects, *next; e; e = next) {
    next = e->next;
    kiln_arena_destroy(e->arena);
  }
}
