/* effects.c: may a method change the attributes of its instance?
 *
 * Answered on an inlined copy of the method's graph by alias analysis: it may when it sets an
 * attribute of anything but an object it made itself, when something writes memory that an
 * attribute may share, or when it calls what cannot be looked into. Asked only when two calls meet
 * on one instance, and kept. */
#include "api/internal.h"
#include "ir/pass.h"

typedef struct effects_job {
  kiln_model *model;
  kiln_graph *graph;
  kiln_arena *scratch;
  kiln_call *call;
  bool writes;
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

static kiln_status *inline_and_look(void *arg) {
  effects_job *job = arg;
  kiln_pass pass = {.graph = job->graph,
                    .scratch = job->scratch,
                    .env = job->model->context->env,
                    .call = job->call};
  KILN_TRY(kiln_pass_inline(&pass));
  kiln_alias *alias = kiln_alias_create(job->scratch, job->graph);
  job->writes = block_writes(alias, job->graph->top);
  return NULL;
}

static kiln_status *in_scratch(void *arg) {
  effects_job *job = arg;
  return kiln_arena_run(job->graph->arena, inline_and_look, job);
}

static kiln_status *look(kiln_model *model, const kiln__method *method, bool *out_writes) {
  kiln_mem *mem = model->context->env->mem;
  kiln_unit *unit = model->script->unit;
  kiln_type_table *types = NULL;
  effects_job job = {.model = model, .writes = true};
  KILN_TRY(kiln_unit_ensure(method->function));
  kiln_status *status = kiln_type_table_create(mem, unit->types, &types);
  if (!status) status = kiln_arena_create(mem, &job.scratch);
  if (!status) status = kiln_graph_copy(method->function->graph, mem, types, &job.graph);
  if (!status) status = kiln__model_make_call(model, &job.call);
  if (!status) status = kiln_arena_run(job.scratch, in_scratch, &job);
  kiln_call_destroy(job.call);
  if (job.graph) kiln_graph_release(job.graph);
  kiln_arena_destroy(job.scratch);
  kiln_type_table_destroy(types);
  *out_writes = job.writes;
  return status;
}

bool kiln__method_writes(kiln_model *model, kiln__method *method) {
  int known = __atomic_load_n(&method->writes, __ATOMIC_RELAXED);
  if (known >= 0) return known;
  bool writes = true;
  kiln_status *status = look(model, method, &writes);
  if (status) { /* not known: the careful answer, and asked again next time */
    kiln_status_destroy(status);
    return true;
  }
  __atomic_store_n(&method->writes, writes, __ATOMIC_RELAXED);
  return writes;
}
