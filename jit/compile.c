/* compile.c: what compile jobs make: from an executor's graph to the plans of its states.
 *
 * Graphs are copied, with types of their own. Whatever is made is put into the job at once, so that
 * a failure, memory included, leaves an owner for everything. */
#include "guards/guards.h"
#include "jit/compile_job.h"
#include "jit/forks.h"

kiln_status *kiln__program_copy(kiln_jit *jit, const kiln_graph *graph, kiln_program *out) {
  KILN_TRY(kiln_type_table_create(jit->env.mem, jit->unit->types, &out->types));
  out->graph = kiln_graph_copy(graph, jit->env.mem, out->types);
  return NULL;
}

/* -- Plans -- */

static kiln_status *find_callable(void *user, kiln_function *function, const kiln_callable **out) {
  return kiln_jit_callable(((kiln_executor *)user)->jit, function, out);
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

static bool *find_warned(void *user, const kiln_source_range *range) {
  return kiln__jit_warned(((kiln_executor *)user)->jit, range);
}

/* `guard`: asked before the plan starts; or NULL. */
static kiln_status *emit(kiln_compile_job *j, kiln_program *code, kiln_profile_sink *sink,
                         const kiln_guard_desc *guard) {
  kiln_executor *ex = j->ex;
  kiln_jit *jit = j->jit;
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
                           .timed = __atomic_load_n(&jit->timed, __ATOMIC_RELAXED),
                           .structured = jit->unit->structured};
  return kiln_bytecode_emit(code->graph, &env, &code->plan);
}

/* -- Where executors start -- */

/* Method, and the digest of the canonical graph. */
static void name_site(kiln_compile_job *j, const kiln_graph *graph) {
  char hex[33];
  kiln_digest_format(kiln_profile_digest(graph, j->scratch), hex);
  kiln_arena_reset(j->scratch);
  const kiln_function *function = j->ex->root->function;
  j->site = kiln_arena_printf(j->arena, "%s#%.16s",
                              function ? function->qualname : j->ex->callable.name, hex);
}

/* A region or a fork; its maker fills in the source. */
static kiln_executor *add_executor(kiln_compile_job *j, const char *name) {
  kiln_executor *ex = kiln__executor_create(j->jit, j->arena, j->ex->root, name);
  kiln__executors_append(&j->executors, (kiln_executor_list){ex, ex});
  return ex;
}

/* Gives every fork of the block, whose graph is an attribute, an executor for it; copies of the
 * graph share it. */
static kiln_status *prepare_forks(kiln_compile_job *j, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) KILN_TRY(prepare_forks(j, n->blocks[b]));
    if (!kiln_node_is(n, KILN_OP_prim_fork) || kiln_node_attr(n, KILN_ATTR_CALLABLE)) continue;
    const kiln_graph *subgraph = kiln_node_graph(n, "Subgraph");
    KILN_CHECK(subgraph);
    kiln_executor *forked = add_executor(j, "forked_function");
    KILN_TRY(kiln__program_copy(j->jit, subgraph, &forked->source));
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
static kiln_status *inline_forks(kiln_compile_job *j, kiln_block *block, bool *out_found) {
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) {
      KILN_TRY(inline_forks(j, n->blocks[b], out_found));
    }
    kiln_executor *forked = executor_of_fork(n);
    if (!forked || forked->callable.fork != KILN_FORK_UNKNOWN) continue;
    KILN_TRY(kiln_pass_run(&j->runner, forked->source.graph, KILN_PASS_inline));
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

static kiln_status *prepare(kiln_compile_job *j, kiln_graph *graph, kiln_pipeline_id pipeline) {
  bool found = false;
  KILN_TRY(kiln_pipeline_run(&j->runner, graph, pipeline));
  KILN_TRY(prepare_forks(j, graph->top));
  KILN_TRY(inline_forks(j, graph->top, &found));
  if (!found) return NULL;
  find_purity(j->scratch, graph, kiln_alias_create(j->scratch, graph), graph->top);
  kiln_arena_reset(j->scratch);
  return NULL;
}

/* A method's graph with the caller's flags in it. */
static kiln_status *freeze(kiln_compile_job *j, kiln_graph *graph) {
  if (j->arg_count < 1 || !j->ex->function->owner || j->jit->env.flags.compat == KILN_COMPAT_TORCH)
    return NULL;
  KILN_TRY(kiln_pass_run(&j->runner, graph, KILN_PASS_inline));
  j->frozen = kiln__freeze_flags(graph, j->args[0], j->arena, j->scratch);
  return NULL;
}

kiln_status *kiln__compile_source(kiln_compile_job *j) {
  const kiln_executor *ex = j->ex;
  kiln_graph *graph = ex->source.graph;
  if (ex->function) {
    KILN_TRY(kiln_unit_ensure(ex->function));
    KILN_TRY(kiln__program_copy(j->jit, ex->function->graph, &j->source));
    graph = j->source.graph;
    KILN_TRY(freeze(j, graph));
  } else if (ex->base_depth == 0) {
    KILN_TRY(kiln__program_copy(j->jit, ex->source.graph, &j->source));
    graph = j->source.graph;
  }
  if (j->source.graph) KILN_TRY(prepare(j, graph, KILN_PIPELINE_preoptimize));
  name_site(j, graph);
  return NULL;
}

static kiln_status *compile_plain(kiln_compile_job *j, kiln_pipeline_id pipeline) {
  const kiln_executor *ex = j->ex;
  if (ex->function) KILN_TRY(kiln_unit_ensure(ex->function));
  j->v->is_simple = true;
  KILN_TRY(kiln__program_copy(j->jit, ex->function ? ex->function->graph : ex->source.graph,
                              &j->v->shown));
  KILN_TRY(prepare(j, j->v->shown.graph, pipeline));
  return emit(j, &j->v->shown, NULL, NULL);
}
kiln_status *kiln__compile_plain(kiln_compile_job *j) {
  return compile_plain(j, KILN_PIPELINE_noopt);
}
kiln_status *kiln__compile_bare(kiln_compile_job *j) {
  return compile_plain(j, KILN_PIPELINE_bare);
}

kiln_status *kiln__compile_simple(kiln_compile_job *j) {
  j->v->is_simple = true;
  KILN_TRY(kiln__program_copy(j->jit, j->ex->source.graph, &j->v->shown));
  KILN_TRY(kiln_pipeline_run(&j->runner, j->v->shown.graph, KILN_PIPELINE_simple));
  return emit(j, &j->v->shown, NULL, NULL);
}

kiln_status *kiln__instrument(const kiln_executor *ex, kiln_pass_runner *runner,
                              kiln_program *out) {
  KILN_TRY(kiln__program_copy(ex->jit, ex->source.graph, out));
  KILN_TRY(kiln_pipeline_run(runner, out->graph, KILN_PIPELINE_simple));
  return kiln_pipeline_run(runner, out->graph, KILN_PIPELINE_profile);
}

kiln_status *kiln__compile_profiling(kiln_compile_job *j) {
  kiln_variant *v = j->v;
  KILN_TRY(kiln__instrument(j->ex, &j->runner, &v->profiled));
  const int sites = kiln_profile_each(v->profiled.graph->top, NULL, NULL);
  if (sites == 0) {
    kiln_program_destroy(&v->profiled);
    return kiln__compile_simple(j);
  }
  const int runs = (int)j->jit->env.flags.num_profiled_runs;
  KILN_TRY(kiln_profile_create(j->jit->env.mem, sites, runs, &v->profile));
  return emit(j, &v->profiled, &v->profile->sink, NULL);
}

/* -- The optimised plan -- */

static int count_operators(const kiln_graph *group) {
  int count = 0;
  for (const kiln_node *n = group->top->first; n; n = n->next) {
    count +=
        !kiln_node_is(n, KILN_OP_prim_Constant) && !kiln_node_is(n, KILN_OP_prim_ListConstruct);
  }
  return count;
}

static kiln_group_record *add_record(kiln_compile_job *j, const kiln_node *node) {
  const kiln_executor *root = j->ex->root;
  const kiln_function *function = root->function;
  kiln_group_record *record = KILN_NEW(j->arena, kiln_group_record);
  record->name = kiln_arena_printf(
      j->arena, KILN_STR_FMT "/TensorExprGroup_%d",
      KILN_STR_ARG(function ? function->name : kiln_str_from(root->callable.name)),
      root->group_count + j->group_count++);
  record->site = &j->ex->callable;
  record->depth = (uint32_t)j->depth;
  record->runs = kiln_counter_book_new(&j->jit->book, 1);
  record->operators = (uint32_t)count_operators(kiln_node_graph(node, "Subgraph"));
  kiln_group_tell(node, j->arena, record);
  kiln_groups_append(&j->groups, (kiln_group_list){record, record});
  return record;
}

static kiln_status *give_up_group(kiln_compile_job *j, kiln_node *node,
                                  const kiln_group_record *record) {
  kiln__job_refuse(j, record->reason, record->name, kiln_source_range_loc(node->range));
  kiln_group_dissolve(node, j->scratch);
  return NULL;
}

static kiln_status *compile_group(kiln_compile_job *j, kiln_node *node) {
  kiln_jit *jit = j->jit;
  if (!jit->codegen) {
    kiln_group_dissolve(node, j->scratch);
    return NULL;
  }
  KILN_TRY(kiln_budget_check(kiln_budget_current(), 0));
  const uint64_t until = j->allowance->groups_until_ns;
  const bool late = until && kiln_now_ns() > until;
  if (late && j->allowance->is_limited && j->ex->tries + 1 < KILN__MAX_TRIES) {
    return KILN_ERROR(KILN_LIMIT, "the groups took too long"); /* a later job finds their kernels */
  }
  kiln_group_record *record = add_record(j, node);
  if (late || j->ex->root->group_count + j->group_count > jit->env.flags.max_groups) {
    record->reason = late ? KILN_REASON_compile_budget : KILN_REASON_too_many_groups;
    return give_up_group(j, node, record);
  }
  const kiln_graph *group = kiln_node_graph(node, "Subgraph");
  const bool made = kiln_group_compile(&jit->env, jit->codegen, group, j->arena, record);
  if (record->code) {
    __atomic_fetch_add(&jit->compiles, made, __ATOMIC_RELAXED);
    __atomic_fetch_add(&jit->compile_ns, record->compile_ns, __ATOMIC_RELAXED);
    j->v->cost += record->code->info.cost;
    kiln_node_set_pointer(node, KILN_ATTR_RECORD, record);
    return NULL;
  }
  const kiln_budget *budget = kiln_budget_current();
  if (budget && kiln_cancel_is_asked(budget->cancel)) return kiln_budget_check(budget, 0);
  __atomic_fetch_add(&jit->compile_failures, 1, __ATOMIC_RELAXED);
  return give_up_group(j, node, record);
}

static kiln_status *compile_groups(kiln_compile_job *j, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) KILN_TRY(compile_groups(j, n->blocks[b]));
    if (kiln_node_is(n, KILN_OP_prim_TensorExprGroup)) KILN_TRY(compile_group(j, n));
  }
  return NULL;
}

/* -- Fallbacks -- */

/* The executor of what a FallbackGraph holds: its results become one tuple. */
static kiln_status *make_region(kiln_compile_job *j, kiln_graph *subgraph, kiln_executor **out) {
  kiln_executor *region = add_executor(j, "fallback_function");
  region->base_depth = region->level = j->depth + 1;
  region->callable.call_counter = kiln_counter_book_new(&j->jit->book, 1);
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
  return kiln__program_copy(j->jit, subgraph, &region->source);
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
static kiln_status *replace_fallback(kiln_compile_job *j, kiln_node *node, kiln_executor *region) {
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

static kiln_status *replace_fallbacks(kiln_compile_job *j, kiln_block *block,
                                      kiln_executor *region) {
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

static void tell_dynamic(kiln_compile_job *j) {
  kiln_jit *jit = j->jit;
  if (!kiln_strategy_is_dynamic(&jit->strategy, jit->depth - j->depth)) return;
  kiln__job_refuse(j, KILN_REASON_dynamic_as_static, "", (kiln_source_loc){0});
  if (__atomic_exchange_n(&jit->told_dynamic, true, __ATOMIC_RELAXED)) return;
  KILN_LOG(&jit->env.log, profile, 1, "%s", kiln_reason_sentence(KILN_REASON_dynamic_as_static));
}

kiln_status *kiln__compile_optimized(kiln_compile_job *j) {
  kiln_executor *ex = j->ex;
  kiln_variant *v = j->v;
  j->site = ex->site;
  tell_dynamic(j);
  KILN_TRY(kiln__program_copy(j->jit, ex->building->profiled.graph, &v->shown));
  j->graph = v->shown.graph;
  kiln_profile_annotate(ex->building->profile, j->graph);
  KILN_TRY(kiln_pipeline_run(&j->runner, j->graph, KILN_PIPELINE_optimize));
  KILN_TRY(compile_groups(j, j->graph->top));
  KILN_TRY(kiln_pipeline_run(&j->runner, j->graph, KILN_PIPELINE_guard));
  if (ex->base_depth > 0 && j->jit->env.flags.compat != KILN_COMPAT_TORCH) {
    const kiln_guard_maker maker = guard_maker(ex);
    v->guard = kiln_guard_lift(&maker, j->arena, j->graph, j->scratch);
  }
  KILN_TRY(replace_fallbacks(j, j->graph->top, v->guard ? ex : NULL));
  kiln_arena_reset(j->scratch);
  KILN_TRY(kiln_graph_verify(j->graph));
  kiln_program *code = &v->shown;
  if (v->guard) {
    KILN_TRY(kiln__program_copy(j->jit, j->graph, &v->code));
    KILN_TRY(kiln_pass_run(&j->runner, v->code.graph, KILN_PASS_assume_guards));
    code = &v->code;
  }
  KILN_TRY(emit(j, code, NULL, v->guard));
  return NULL;
}
