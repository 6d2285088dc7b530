/* program.c: graphs with their types, and how each of an executor's is made.
 *
 * A plan needs nothing of its graph, so a variant does not keep one: what a print asks for is made
 * again here, from the executor's source and the variant's profile, by the pipelines that made it
 * first. They depend on nothing else but limits (pass_limit, fold_memory), and whether those came
 * in between the fingerprint tells. */
#include "jit/compile_job.h"

void kiln_program_destroy(kiln_program *program) {
  kiln_graph_release(program->graph);
  kiln_type_table_destroy(program->types);
  *program = (kiln_program){0};
}

kiln_status *kiln__program_copy(kiln_jit *jit, const kiln_graph *graph, kiln_program *out) {
  KILN_TRY(kiln_type_table_create(jit->env.mem, jit->unit->types, &out->types));
  out->graph = kiln_graph_copy(graph, jit->env.mem, out->types);
  return NULL;
}

kiln_status *kiln__program_make(const kiln_executor *ex, const kiln_variant *of,
                                kiln_pipeline_id id, kiln_pass_runner *runner, kiln_program *out) {
  /* A function's plain plan is made beside the job that makes its source. */
  const bool of_function = ex->function && (id == KILN_PIPELINE_noopt || id == KILN_PIPELINE_bare);
  const kiln_graph *origin = of_function ? ex->function->graph : ex->source.graph;
  switch (id) {
    case KILN_PIPELINE_profile:
      KILN_TRY(kiln__program_make(ex, NULL, KILN_PIPELINE_simple, runner, out));
      KILN_TRY(kiln_pipeline_run(runner, out->graph, id));
      if (of) kiln_profile_annotate(of->profile, out->graph);
      return NULL;
    case KILN_PIPELINE_optimize:
      KILN_TRY(kiln__program_make(ex, of, KILN_PIPELINE_profile, runner, out));
      KILN_TRY(kiln_pipeline_run(runner, out->graph, id));
      return kiln__program_guard(out->graph, of->history, runner);
    default: break;
  }
  KILN_TRY(kiln__program_copy(ex->jit, origin, out));
  return kiln_pipeline_run(runner, out->graph, id);
}

kiln_status *kiln__program_guard(kiln_graph *graph, const kiln_shape_history *history,
                                 kiln_pass_runner *runner) {
  graph->history = history;
  kiln_status *status = kiln_pipeline_run(runner, graph, KILN_PIPELINE_guard);
  graph->history = NULL;
  return status;
}

static uint64_t hash_block(const kiln_block *block, uint64_t hash) {
  for (const kiln_node *n = block->first;; n = n->next) {
    if (!n) n = block->ret;
    hash = kiln_hash_bytes(hash, n->name.data, n->name.len);
    for (int i = 0; i < n->input_count; i++) hash = kiln_hash_mix(hash, kiln_node_input(n, i)->id);
    for (int b = 0; b < n->block_count; b++) hash = hash_block(n->blocks[b], hash);
    if (n == block->ret) return hash;
  }
}

uint64_t kiln__program_fingerprint(const kiln_program *program) {
  return hash_block(program->graph->top, program->graph->next_id);
}
