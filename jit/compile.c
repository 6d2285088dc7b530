/* compile.c: compile jobs: from an executor's graph to the plans of its states.
 *
 * Every job works on a copy of the graph with its own arena and type table. Whatever a job makes is
 * put into the variant at once, so that a failure, memory included, leaves an owner for everything.
 */
#include <stdio.h>

#include "guards/guards.h"
#include "jit/executor.h"
#include "jit/forks.h"

kiln_status *kiln__program_copy(kiln_jit *jit, const kiln_graph *graph, kiln_program *out) {
  KILN_TRY(kiln_type_table_create(jit->env.mem, jit->unit->types, &out->types));
  out->graph = kiln_graph_copy(graph, jit->env.mem, out->types);
  return NULL;
}

/* -- Plans -- */

static kiln_status *find_callable(void *user, kiln_function *function, const kiln_callable **out) {
  return kiln__jit_callable(((kiln_executor *)user)->jit, function, out);
}

static kiln_status *describe_group(void *user, const kiln_node *node, const kiln_guard_desc *guard,
                                   kiln_arena *arena, kiln_group *out) {
  const kiln_attr *attr = kiln_node_attr(node, KILN_ATTR_RECORD);
  (void)user;
  KILN_CHECK(attr && attr->kind == KILN_ATTR_POINTER);
  kiln_group_record *record = attr->u.pointer;
  record->hits = guard ? guard->hits : 0;
  record->misses = guard ? guard->misses : 0;
  return kiln_group_describe(node, record, arena, out);
}

static kiln_guard_maker guard_maker(const kiln_executor *ex) {
  kiln_jit *jit = ex->jit;
  return (kiln_guard_maker){.book = &jit->book,
                            .misses = &jit->misses,
                            .site = ex->site ? ex->site : "",
                            .stress = jit->env.flags.stress_bailout};
}

/* Under the jit's lock. */
static bool *find_warned(void *user, const kiln_source_range *range) {
  kiln_jit *jit = ((kiln_executor *)user)->jit;
  char key[64];
  const int len = snprintf(key, sizeof key, "%p:%u", (const void *)range->source, range->begin);
  const kiln_str name = kiln_str_make(key, (size_t)len);
  bool *told = kiln_map_find(&jit->warned, name);
  if (told) return told;
  told = KILN_NEW(jit->arena, bool);
  kiln_map_set(&jit->warned, kiln_str_make(kiln_arena_strndup(jit->arena, key, name.len), name.len),
               told);
  return told;
}

/* `guard`: asked before the plan starts; or NULL. */
static kiln_status *emit(kiln_executor *ex, kiln_program *code, kiln_profile_sink *sink,
                         const kiln_guard_desc *guard) {
  kiln_jit *jit = ex->jit;
  kiln_bytecode_env env = {.env = &jit->env,
                           .name = ex->callable.name,
                           .types = jit->unit->types,
                           .user = ex,
                           .callable = find_callable,
                           .group = describe_group,
                           .warned = find_warned,
                           .methods = &jit->methods,
                           .sink = sink,
                           .quantised = jit->unit->quantised,
                           .guards = guard_maker(ex),
                           .guard = guard,
                           .timed = jit->timed,
                           .structured = jit->unit->structured};
  return kiln_bytecode_emit(code->graph, &env, &code->plan);
}

/* -- Where executors start -- */

/* Method, and the digest of the canonical graph. */
static void name_site(kiln_executor *ex) {
  kiln_arena *scratch = ex->jit->runner.scratch;
  char hex[33];
  kiln_digest_format(kiln_profile_digest(ex->source.graph, scratch), hex);
  kiln_arena_reset(scratch);
  const kiln_function *function = ex->root->function;
  ex->site = kiln_arena_printf(ex->jit->arena, "%s#%.16s",
                               function ? function->qualname : ex->callable.name, hex);
}

/* Gives every fork of the block, whose graph is an attribute, an executor for it; copies of the
 * graph share it. */
static kiln_status *prepare_forks(kiln_executor *ex, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) KILN_TRY(prepare_forks(ex, n->blocks[b]));
    if (!kiln_node_is(n, KILN_OP_prim_fork) || kiln_node_attr(n, KILN_ATTR_CALLABLE)) continue;
    const kiln_graph *subgraph = kiln_node_graph(n, "Subgraph");
    KILN_CHECK(subgraph);
    kiln_executor *forked = kiln__executor_create(ex->jit, NULL, "forked_function");
    forked->root = ex->root;
    KILN_TRY(kiln__program_copy(ex->jit, subgraph, &forked->source));
    forked->callable.fork = KILN_FORK_UNKNOWN;
    kiln_node_set_pointer(n, KILN_ATTR_CALLABLE, (void *)(uintptr_t)&forked->callable);
  }
  return NULL;
}

static kiln_executor *executor_of_fork(const kiln_node *n) {
  if (!kiln_node_is(n, KILN_OP_prim_fork)) return NULL;
  const kiln_attr *attr = kiln_node_attr(n, KILN_ATTR_CALLABLE);
  return attr ? attr->u.pointer : NULL; /* the callable is its first field */
}

/* Calls of the functions that were forked here for the first time, inlined. */
static kiln_status *inline_forks(kiln_jit *jit, kiln_block *block, bool *out_found) {
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) {
      KILN_TRY(inline_forks(jit, n->blocks[b], out_found));
    }
    kiln_executor *forked = executor_of_fork(n);
    if (!forked || forked->callable.fork != KILN_FORK_UNKNOWN) continue;
    KILN_TRY(kiln_pass_run(&jit->runner, forked->source.graph, KILN_PASS_inline));
    *out_found = true;
  }
  return NULL;
}
static void find_purity(kiln_arena *scratch, const kiln_graph *graph, const kiln_alias *alias,
                        const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) find_purity(scratch, graph, alias, n->blocks[b]);
    kiln_executor *forked = executor_of_fork(n);
    if (!forked || forked->callable.fork != KILN_FORK_UNKNOWN) continue;
    forked->callable.fork = kiln__fork_purity(scratch, graph, alias, n, forked->source.graph);
  }
}

static kiln_status *prepare(kiln_executor *ex, kiln_graph *graph, kiln_pipeline_id pipeline) {
  kiln_arena *scratch = ex->jit->runner.scratch;
  bool found = false;
  KILN_TRY(kiln_pipeline_run(&ex->jit->runner, graph, pipeline));
  KILN_TRY(prepare_forks(ex, graph->top));
  KILN_TRY(inline_forks(ex->jit, graph->top, &found));
  if (!found) return NULL;
  find_purity(scratch, graph, kiln_alias_create(scratch, graph), graph->top);
  kiln_arena_reset(scratch);
  return NULL;
}

/* A method's graph with the caller's flags in it. */
static kiln_status *freeze(kiln_executor *ex, kiln_graph *graph, const kiln_ivalue *args,
                           int arg_count, kiln_frozen **out_frozen) {
  kiln_jit *jit = ex->jit;
  if (arg_count < 1 || !ex->function->owner || jit->env.flags.compat == KILN_COMPAT_TORCH)
    return NULL;
  KILN_TRY(kiln_pass_run(&jit->runner, graph, KILN_PASS_inline));
  *out_frozen = kiln__freeze_flags(graph, args[0], jit->arena, jit->runner.scratch);
  return NULL;
}

kiln_status *kiln__compile_source(kiln_executor *ex, const kiln_ivalue *args, int arg_count) {
  if (ex->function) {
    KILN_TRY(kiln_unit_ensure(ex->function));
    kiln_program_destroy(&ex->source); /* of a job that was not finished */
    kiln_frozen *frozen = NULL;
    KILN_TRY(kiln__program_copy(ex->jit, ex->function->graph, &ex->source));
    KILN_TRY(freeze(ex, ex->source.graph, args, arg_count, &frozen));
    KILN_TRY(prepare(ex, ex->source.graph, KILN_PIPELINE_preoptimize));
    __atomic_store_n(&ex->frozen, frozen, __ATOMIC_RELEASE);
  } else if (ex->base_depth == 0) {
    KILN_TRY(prepare(ex, ex->source.graph, KILN_PIPELINE_preoptimize));
  }
  name_site(ex);
  return NULL;
}

kiln_status *kiln__compile_plain(kiln_executor *ex, bool bare, kiln_program *out) {
  const kiln_graph *graph = ex->source.graph;
  if (ex->function) {
    KILN_TRY(kiln_unit_ensure(ex->function));
    graph = ex->function->graph;
  }
  KILN_TRY(kiln__program_copy(ex->jit, graph, out));
  KILN_TRY(prepare(ex, out->graph, bare ? KILN_PIPELINE_bare : KILN_PIPELINE_noopt));
  return emit(ex, out, NULL, NULL);
}

kiln_status *kiln__compile_simple(kiln_executor *ex, kiln_variant *v) {
  KILN_TRY(kiln__program_copy(ex->jit, ex->source.graph, &v->shown));
  KILN_TRY(kiln_pipeline_run(&ex->jit->runner, v->shown.graph, KILN_PIPELINE_simple));
  return emit(ex, &v->shown, NULL, NULL);
}

kiln_status *kiln__compile_profiling(kiln_executor *ex, kiln_variant *v, int *out_sites) {
  kiln_jit *jit = ex->jit;
  KILN_TRY(kiln__program_copy(jit, ex->source.graph, &v->profiled));
  KILN_TRY(kiln_pipeline_run(&jit->runner, v->profiled.graph, KILN_PIPELINE_simple));
  KILN_TRY(kiln_pipeline_run(&jit->runner, v->profiled.graph, KILN_PIPELINE_profile));
  *out_sites = kiln_profile_each(v->profiled.graph->top, NULL, NULL);
  if (*out_sites == 0) return NULL;
  int runs = (int)jit->env.flags.num_profiled_runs;
  KILN_TRY(kiln_profile_create(jit->env.mem, *out_sites, runs, &v->profile));
  return emit(ex, &v->profiled, &v->profile->sink, NULL);
}

/* -- The optimised plan -- */

typedef struct job {
  kiln_executor *ex;
  kiln_variant *v;
  kiln_graph *graph;
  kiln_arena *scratch;
} job;

static int count_operators(const kiln_graph *group) {
  int count = 0;
  for (const kiln_node *n = group->top->first; n; n = n->next) {
    count +=
        !kiln_node_is(n, KILN_OP_prim_Constant) && !kiln_node_is(n, KILN_OP_prim_ListConstruct);
  }
  return count;
}

static kiln_group_record *add_record(job *j, const kiln_node *node) {
  const kiln_graph *group = kiln_node_graph(node, "Subgraph");
  kiln_jit *jit = j->ex->jit;
  kiln_executor *root = (kiln_executor *)(uintptr_t)j->ex->root;
  kiln_group_record *record = KILN_NEW(jit->arena, kiln_group_record);
  const kiln_function *function = root->function;
  record->name = kiln_arena_printf(
      jit->arena, KILN_STR_FMT "/TensorExprGroup_%d",
      KILN_STR_ARG(function ? function->name : kiln_str_from(root->callable.name)),
      root->group_count++);
  record->site = &j->ex->callable;
  record->depth = (uint32_t)j->v->depth;
  record->runs = kiln_counter_book_new(&jit->book, 1);
  record->operators = (uint32_t)count_operators(group);
  kiln_group_tell(node, jit->arena, record);
  if (jit->last_group) {
    jit->last_group->next = record;
  } else {
    jit->groups = record;
  }
  jit->last_group = record;
  return record;
}

void kiln__drop_unfinished_groups(kiln_jit *jit) {
  kiln_executor *root = jit->before_job.root;
  if (!root) return;
  kiln_group_record *last = jit->before_job.last_group;
  kiln_group_record **from = last ? &last->next : &jit->groups;
  if (*from) {
    jit->last_group->next = jit->spare_groups;
    jit->spare_groups = *from;
    *from = NULL;
  }
  jit->last_group = last;
  root->group_count = jit->before_job.group_count;
  jit->before_job.root = NULL;
}

static kiln_status *give_up_group(job *j, kiln_node *node, const kiln_group_record *record) {
  kiln__jit_refuse(j->ex->jit, j->ex, record->reason, record->name,
                   kiln_source_range_loc(node->range));
  kiln_group_dissolve(node, j->scratch);
  return NULL;
}

static kiln_status *compile_group(job *j, kiln_node *node) {
  kiln_jit *jit = j->ex->jit;
  const kiln_graph *group = kiln_node_graph(node, "Subgraph");
  if (!jit->codegen) {
    kiln_group_dissolve(node, j->scratch);
    return NULL;
  }
  KILN_TRY(kiln_budget_check(kiln_budget_current(), 0));
  const kiln_compile_allowance *allowance = jit->allowance;
  const bool late =
      allowance && allowance->groups_until_ns && kiln_now_ns() > allowance->groups_until_ns;
  if (late && allowance->is_limited && j->ex->tries + 1 < KILN__MAX_TRIES) {
    return KILN_ERROR(KILN_LIMIT, "the groups took too long"); /* a later job finds their kernels */
  }
  kiln_group_record *record = add_record(j, node);
  if (late || j->ex->root->group_count > jit->env.flags.max_groups) {
    record->reason = late ? KILN_REASON_compile_budget : KILN_REASON_too_many_groups;
    return give_up_group(j, node, record);
  }
  kiln_group_compile(&jit->env, jit->codegen, group, jit->arena, record);
  jit->compile_ns += record->compile_ns;
  if (record->code) {
    jit->compiles += !record->shares;
    j->v->cost += record->code->info.cost * (double)record->code->info.extent;
    kiln_node_set_pointer(node, KILN_ATTR_RECORD, record);
    return NULL;
  }
  const kiln_budget *budget = kiln_budget_current();
  if (budget && kiln_cancel_is_asked(budget->cancel)) return kiln_budget_check(budget, 0);
  jit->compile_failures++;
  return give_up_group(j, node, record);
}

static kiln_status *compile_groups(job *j, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) KILN_TRY(compile_groups(j, n->blocks[b]));
    if (kiln_node_is(n, KILN_OP_prim_TensorExprGroup)) KILN_TRY(compile_group(j, n));
  }
  return NULL;
}

/* -- Fallbacks -- */

/* The executor of what a FallbackGraph holds: its results become one tuple. */
static kiln_status *make_region(job *j, kiln_graph *subgraph, kiln_executor **out) {
  kiln_jit *jit = j->ex->jit;
  kiln_executor *region = kiln__executor_create(jit, NULL, "fallback_function");
  region->root = j->ex->root;
  region->base_depth = region->level = j->v->depth + 1;
  region->callable.call_counter = kiln_counter_book_new(&jit->book, 1);
  region->callable.arg_count = kiln_graph_input_count(subgraph);
  *out = region;
  kiln_node *tuple = kiln_node_create_id(subgraph, KILN_OP_prim_TupleConstruct);
  int count = kiln_graph_output_count(subgraph);
  const kiln_type **elems = KILN_NEW_ARRAY(j->scratch, const kiln_type *, count + 1);
  for (int i = 0; i < count; i++) {
    elems[i] = kiln_graph_output(subgraph, i)->type;
    kiln_node_add_input(tuple, kiln_graph_output(subgraph, i));
  }
  kiln_node_append(subgraph->top, tuple);
  for (int i = count - 1; i >= 0; i--) kiln_block_remove_output(subgraph->top, i);
  const kiln_type *type = kiln_type_tuple(j->graph->types, elems, count);
  kiln_graph_add_output(subgraph, kiln_node_add_output(tuple, type));
  return kiln__program_copy(jit, subgraph, &region->source);
}

static kiln_ir_value *append_fallback_constant(kiln_node *before, const kiln_executor *region) {
  kiln_graph *graph = before->graph;
  kiln_node *node = kiln_node_create_id(graph, KILN_OP_prim_Constant);
  kiln_node_set_str(node, "name", KILN_STR("fallback_function"));
  kiln_node_set_int(node, "fallback", 1);
  kiln_node_set_pointer(node, KILN_ATTR_CALLABLE, (void *)(uintptr_t)&region->callable);
  kiln_node_insert_before(node, before);
  return kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_FUNCTION));
}

/* FallbackGraph(x…) -> CallFunction(%fallback_function, x…), TupleUnpack. `region` NULL: a new one.
 */
static kiln_status *replace_fallback(job *j, kiln_node *node, kiln_executor *region) {
  kiln_graph *subgraph = kiln_node_graph(node, "Subgraph");
  KILN_CHECK(subgraph);
  const kiln_type **elems = KILN_NEW_ARRAY(j->scratch, const kiln_type *, node->output_count + 1);
  for (int i = 0; i < node->output_count; i++) elems[i] = kiln_node_output(node, i)->type;
  if (!region) KILN_TRY(make_region(j, subgraph, &region));
  kiln_ir_value *function = append_fallback_constant(node, region);
  kiln_node *call = kiln_node_create_id(j->graph, KILN_OP_prim_CallFunction);
  kiln_node *unpack = kiln_node_create_id(j->graph, KILN_OP_prim_TupleUnpack);
  call->range = unpack->range = node->range;
  kiln_node_add_input(call, function);
  for (int i = 0; i < node->input_count; i++) kiln_node_add_input(call, kiln_node_input(node, i));
  kiln_node_insert_before(call, node);
  kiln_node_insert_before(unpack, node);
  const kiln_type *type = kiln_type_tuple(j->graph->types, elems, node->output_count);
  kiln_node_add_input(unpack, kiln_node_add_output(call, type));
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value_replace_uses(kiln_node_output(node, i), kiln_node_add_output(unpack, elems[i]));
  }
  kiln_node_destroy(node);
  return NULL;
}

static kiln_status *replace_fallbacks(job *j, kiln_block *block, kiln_executor *region) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) {
      KILN_TRY(replace_fallbacks(j, n->blocks[b], region));
    }
    if (kiln_node_is(n, KILN_OP_prim_FallbackGraph)) KILN_TRY(replace_fallback(j, n, region));
  }
  return NULL;
}

/* -- The whole job -- */

static void tell_dynamic(kiln_executor *ex) {
  kiln_jit *jit = ex->jit;
  if (!kiln_strategy_is_dynamic(&jit->strategy, jit->depth - ex->level)) return;
  kiln__jit_refuse(jit, ex, KILN_REASON_dynamic_as_static, "", (kiln_source_loc){0});
  if (jit->told_dynamic) return;
  jit->told_dynamic = true;
  KILN_LOG(&jit->env.log, profile, 1, "%s", kiln_reason_sentence(KILN_REASON_dynamic_as_static));
}

kiln_status *kiln__compile_optimized(kiln_executor *ex, kiln_variant *v) {
  kiln_jit *jit = ex->jit;
  kiln_pass_runner *runner = &jit->runner;
  kiln_executor *root = (kiln_executor *)(uintptr_t)ex->root;
  tell_dynamic(ex);
  kiln__drop_unfinished_groups(jit);
  jit->before_job.root = root;
  jit->before_job.group_count = root->group_count;
  jit->before_job.last_group = jit->last_group;
  kiln_program_destroy(&v->shown); /* of a job that was not finished */
  kiln_program_destroy(&v->code);
  v->guard = NULL;
  v->cost = 0;
  KILN_TRY(kiln__program_copy(jit, v->profiled.graph, &v->shown));
  job j = {.ex = ex, .v = v, .graph = v->shown.graph, .scratch = runner->scratch};
  kiln_profile_annotate(v->profile, j.graph);
  jit->current = ex;
  KILN_TRY(kiln_pipeline_run(runner, j.graph, KILN_PIPELINE_optimize));
  KILN_TRY(compile_groups(&j, j.graph->top));
  KILN_TRY(kiln_pipeline_run(runner, j.graph, KILN_PIPELINE_guard));
  jit->current = NULL;
  if (ex->base_depth > 0 && jit->env.flags.compat != KILN_COMPAT_TORCH) {
    const kiln_guard_maker maker = guard_maker(ex);
    v->guard = kiln_guard_lift(&maker, jit->arena, j.graph, runner->scratch);
  }
  KILN_TRY(replace_fallbacks(&j, j.graph->top, v->guard ? ex : NULL));
  kiln_arena_reset(runner->scratch);
  KILN_TRY(kiln_graph_verify(j.graph));
  kiln_program *code = &v->shown;
  if (v->guard) {
    KILN_TRY(kiln__program_copy(jit, j.graph, &v->code));
    KILN_TRY(kiln_pass_run(runner, v->code.graph, KILN_PASS_assume_guards));
    code = &v->code;
  }
  KILN_TRY(emit(ex, code, NULL, v->guard));
  kiln__dump_files(ex, v);
  jit->before_job.root = NULL;
  return NULL;
}
