/* compile.c: what compile jobs make: from an executor's graph to the plans of its states.
 *
 * Graphs are copied, with types of their own. Whatever is made is put into the job at once, so that
 * a failure, memory included, leaves an owner for everything. */
#include "guards/guards.h"
#include "jit/compile_job.h"
#include "jit/forks.h"
#include "jit/fusion.h"
#include "jit/heavy.h"

/* -- Plans -- */

static kiln_status *find_callable(void *job, kiln_function *function, const kiln_callable **out) {
  return kiln_jit_callable(((kiln_compile_job *)job)->jit, function, out);
}

static kiln_status *get_group_plan(const kiln_callable *self, kiln_call *call,
                                   const kiln_ivalue *args, int arg_count,
                                   const kiln_plan **out_plan) {
  (void)call, (void)args, (void)arg_count;
  *out_plan = ((const kiln_group_info *)(const void *)self)->plan; /* its callable is first */
  return NULL;
}

static kiln_status *emit(kiln_compile_job *j, const kiln_graph *graph, const char *name,
                         kiln_profile_sink *sink, const kiln_guard_desc *guard,
                         kiln_plan **out_plan);

static kiln_status *describe_group(void *job, const kiln_node *node, const kiln_guard_desc *guard,
                                   kiln_arena *arena, kiln_group *out,
                                   const kiln_callable **out_interpreted) {
  const kiln_attr *attr = kiln_node_attr(node, KILN_ATTR_INFO);
  KILN_CHECK(attr && attr->kind == KILN_ATTR_POINTER);
  kiln_group_info *info = attr->u.pointer;
  info->hits = guard ? guard->hits : 0;
  info->misses = guard ? guard->misses : 0;
  if (info->code) KILN_TRY(kiln_group_describe(node, info, arena, out));
  if (info->code && !info->code->info.can_fault && !info->code->info.pack_count && !info->is_heavy)
    return NULL;
  info->callable = (kiln_callable){.name = info->name,
                                   .get_plan = get_group_plan,
                                   .arg_count = node->input_count,
                                   .is_part = true};
  *(info->code ? &out->interpreted : out_interpreted) = &info->callable;
  kiln_compile_job *j = job;
  kiln_graph *body = kiln__layouts_undone(kiln_node_graph(node, "Subgraph"), j->loops);
  return emit(j, body, info->name, NULL, NULL, &info->plan);
}

static kiln_guard_maker guard_maker(const kiln_compile_job *j) {
  kiln_jit *jit = j->jit;
  return (kiln_guard_maker){.book = &jit->book,
                            .misses = &jit->misses,
                            .site = j->site ? j->site : "",
                            .stress = jit->env.flags.stress_bailout};
}

static bool *find_warned(void *job, const kiln_source_range *range) {
  return kiln__jit_warned(((kiln_compile_job *)job)->jit, range);
}

/* `guard`: asked before the plan starts; or NULL. */
static kiln_status *emit(kiln_compile_job *j, const kiln_graph *graph, const char *name,
                         kiln_profile_sink *sink, const kiln_guard_desc *guard,
                         kiln_plan **out_plan) {
  kiln_jit *jit = j->jit;
  kiln_bytecode_env env = {.env = &jit->env,
                           .name = name,
                           .types = jit->unit->types,
                           .user = j,
                           .callable = find_callable,
                           .group = describe_group,
                           .warned = find_warned,
                           .methods = &jit->methods,
                           .sink = sink,
                           .quantised = jit->unit->quantised,
                           .guards = guard_maker(j),
                           .guard = guard,
                           .timed = __atomic_load_n(&jit->timed, __ATOMIC_RELAXED),
                           .structured = jit->unit->structured};
  return kiln_bytecode_emit(graph, &env, out_plan);
}

/* The variant's plan, from the job's graph. */
static kiln_status *emit_variant(kiln_compile_job *j) {
  const char *name = j->ex->callable.name;
  return emit(j, j->program.graph, name, NULL, j->v->guard, &j->v->plan);
}

/* -- Where executors start -- */

/* Method, and the digest of the canonical graph. */
static void name_site(kiln_compile_job *j, const kiln_graph *graph) {
  char hex[33];
  kiln_digest_format(kiln_profile_digest(graph, j->scratch), hex);
  kiln_arena_reset(j->scratch);
  j->site = kiln_arena_printf(j->arena, "%s#%.16s", j->ex->root->callable.name, hex);
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

/* Executors for the forks of a graph that was made from a function's. */
static kiln_status *prepare(kiln_compile_job *j, kiln_graph *graph) {
  bool found = false;
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
  if (j->source.graph) {
    KILN_TRY(kiln_pipeline_run(&j->runner, graph, KILN_PIPELINE_preoptimize));
    KILN_TRY(prepare(j, graph));
  }
  name_site(j, graph);
  return NULL;
}

/* The job's graph, of which the variant's plan will be made. */
static kiln_status *make_graph(kiln_compile_job *j, kiln_pipeline_id pipeline) {
  kiln_program_destroy(&j->program);
  KILN_TRY(kiln__program_make(j->ex, NULL, pipeline, &j->runner, &j->program));
  j->v->made_by = pipeline;
  j->v->fingerprint = kiln__program_fingerprint(&j->program);
  return NULL;
}

static kiln_status *compile_plain(kiln_compile_job *j, kiln_pipeline_id pipeline) {
  if (j->ex->function) KILN_TRY(kiln_unit_ensure(j->ex->function));
  KILN_TRY(make_graph(j, pipeline));
  KILN_TRY(prepare(j, j->program.graph));
  return emit_variant(j);
}
kiln_status *kiln__compile_plain(kiln_compile_job *j) {
  return compile_plain(j, KILN_PIPELINE_noopt);
}
kiln_status *kiln__compile_bare(kiln_compile_job *j) {
  return compile_plain(j, KILN_PIPELINE_bare);
}

kiln_status *kiln__compile_simple(kiln_compile_job *j) {
  KILN_TRY(make_graph(j, KILN_PIPELINE_simple));
  return emit_variant(j);
}

/* What takes another variant's place serves some calls, not all. A region's first one may serve all
 * and have regions inside, but those not ever deeper ones. */
static kiln_status *require_guard(const kiln_compile_job *j) {
  const bool serves_all = !j->ex->victim && j->depth < 2 * j->jit->depth;
  if (!j->ex->renewing || j->v->guard || serves_all) return NULL;
  return KILN_ERROR(KILN_UNSUPPORTED, "no guard in front of the plan");
}

kiln_status *kiln__compile_profiling(kiln_compile_job *j) {
  kiln_variant *v = j->v;
  KILN_TRY(make_graph(j, KILN_PIPELINE_profile));
  const int sites = kiln_profile_each(j->program.graph->top, NULL, NULL);
  if (sites == 0 && j->ex->renewing) return KILN_ERROR(KILN_UNSUPPORTED, "no kernel");
  if (sites == 0) return kiln__compile_simple(j);
  const int runs = (int)j->jit->env.flags.num_profiled_runs;
  KILN_TRY(kiln_profile_create(j->jit->env.mem, sites, runs, &v->profile));
  KILN_TRY(
      emit(j, j->program.graph, j->ex->callable.name, &v->profile->sink, NULL, &v->instrumented));
  v->recorded = j->program;
  j->program = (kiln_program){0};
  return NULL;
}

/* -- Fallbacks -- */

static kiln_shape_seen copy_seen(kiln_arena *arena, int rank, const kiln_dim *sizes,
                                 const kiln_dim *strides) {
  kiln_dim *dims = KILN_NEW_ARRAY(arena, kiln_dim, 2 * rank + 1);
  if (rank) memcpy(dims, sizes, (size_t)rank * sizeof *dims);
  if (rank) memcpy(dims + rank, strides, (size_t)rank * sizeof *dims);
  return (kiln_shape_seen){rank, dims};
}

static kiln_shape_seen *create_seen(kiln_arena *arena, int input_count) {
  kiln_shape_seen *seen = KILN_NEW_ARRAY(arena, kiln_shape_seen, input_count + 1);
  for (int i = 0; i < input_count; i++) seen[i].rank = -1;
  return seen;
}

/* What the guard before a FallbackGraph asks of the values that it hands on. */
static const kiln_shape_seen *find_seen(kiln_compile_job *j, const kiln_node *fallback) {
  const kiln_node *branch = fallback->block->owner;
  KILN_ASSERT(branch && kiln_node_is(branch, KILN_OP_prim_If));
  const kiln_node *check = kiln_node_input(branch, 0)->node;
  if (!kiln_node_is_type_check(check)) return NULL;
  const kiln_guard_checks checks = kiln_guard_checks_of(j->scratch, check);
  kiln_map types = kiln_map_in(j->scratch);
  for (int i = 0; i < checks.values.count; i++)
    kiln_map_set_ptr(&types, checks.values.data[i], (void *)(uintptr_t)checks.types.data[i]);
  kiln_shape_seen *seen = create_seen(j->arena, fallback->input_count);
  for (int i = 0; i < fallback->input_count; i++) {
    const kiln_type *type = kiln_map_find_ptr(&types, kiln_node_input(fallback, i));
    if (!type || !kiln_type_has_dims(type)) continue;
    const kiln_tensor_detail *d = type->detail;
    seen[i] = copy_seen(j->arena, d->rank, d->sizes, d->strides);
  }
  return seen;
}

/* The executor of what a FallbackGraph holds: its results become one tuple. */
static kiln_status *make_region(kiln_compile_job *j, const kiln_node *node, kiln_graph *subgraph,
                                kiln_executor **out) {
  kiln_executor *region = add_executor(j, "fallback_function");
  region->base_depth = region->level = j->depth + 1;
  region->callable.call_counter = kiln_counter_book_new(&j->jit->book, 1);
  region->callable.arg_count = kiln_graph_input_count(subgraph);
  region->callable.is_part = true;
  region->seen = find_seen(j, node);
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
  const kiln_type *type = kiln_type_tuple(subgraph->types, elems, count);
  kiln_graph_add_output(subgraph, kiln_node_add_output(tuple, type));
  kiln__ledger_measure(region, subgraph);
  return kiln__program_copy(j->jit, subgraph, &region->source);
}

/* Its callable is the region's first field. */
static kiln_ir_value *append_fallback_constant(kiln_node *before, kiln_executor *region) {
  kiln_graph *graph = before->graph;
  kiln_node *node = kiln_node_create_id(graph, KILN_OP_prim_Constant);
  kiln_node_set_str(node, "name", KILN_STR("fallback_function"));
  kiln_node_set_int(node, "fallback", 1);
  kiln_node_set_pointer(node, KILN_ATTR_CALLABLE, region);
  kiln_node_insert_before(node, before);
  return kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_FUNCTION));
}

/* FallbackGraph(x…) -> CallFunction(%fallback_function, x…), TupleUnpack. */
static kiln_status *replace_fallback(kiln_node *node, kiln_arena *scratch, kiln_compile_job *j) {
  kiln_graph *graph = node->graph, *subgraph = kiln_node_graph(node, "Subgraph");
  kiln_executor *region = NULL;
  KILN_CHECK(subgraph);
  const kiln_type **elems = KILN_NEW_ARRAY(scratch, const kiln_type *, node->output_count + 1);
  for (int i = 0; i < node->output_count; i++) elems[i] = kiln_node_output(node, i)->type;
  if (j) KILN_TRY(make_region(j, node, subgraph, &region));
  kiln_ir_value *function = append_fallback_constant(node, region);
  kiln_node *call = kiln_node_create_id(graph, KILN_OP_prim_CallFunction);
  kiln_node *unpack = kiln_node_create_id(graph, KILN_OP_prim_TupleUnpack);
  call->range = unpack->range = node->range;
  kiln_node_add_input(call, function);
  for (int i = 0; i < node->input_count; i++) kiln_node_add_input(call, kiln_node_input(node, i));
  kiln_node_insert_before(call, node);
  kiln_node_insert_before(unpack, node);
  const kiln_type *type = kiln_type_tuple(graph->types, elems, node->output_count);
  kiln_node_add_input(unpack, kiln_node_add_output(call, type));
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value_replace_uses(kiln_node_output(node, i), kiln_node_add_output(unpack, elems[i]));
  }
  kiln_node_destroy(node);
  return NULL;
}

kiln_status *kiln__replace_fallbacks(kiln_block *block, kiln_arena *scratch, kiln_compile_job *j) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) {
      KILN_TRY(kiln__replace_fallbacks(n->blocks[b], scratch, j));
    }
    if (kiln_node_is(n, KILN_OP_prim_FallbackGraph)) KILN_TRY(replace_fallback(n, scratch, j));
  }
  return NULL;
}

/* -- The optimised plan, step by step -- */

/* The arguments of the call that a level is made for, which may have other sizes than those that
 * were recorded. */
static const kiln_shape_seen *see_arguments(kiln_compile_job *j, int input_count) {
  kiln_shape_seen *seen = create_seen(j->arena, input_count);
  for (int i = 0; j->seen && i < input_count && i < j->seen->count; i++) {
    const kiln_shape_seen *then = &j->seen->tensors[i];
    if (then->rank >= 0)
      seen[i] = copy_seen(j->arena, then->rank, then->dims, then->dims + then->rank);
  }
  for (int i = 0; i < input_count && i < j->arg_count; i++) {
    if (j->args[i].tag != KILN_TAG_TENSOR) continue;
    const kiln_tensor *t = j->args[i].u.tensor;
    const int rank = kiln_tensor_rank(t);
    seen[i] = copy_seen(j->arena, rank, t->dims, t->dims + rank);
  }
  return seen;
}

/* What the guard before a region and those of earlier variants have of the graph's inputs, and what
 * the call has; NULL: the level has static shapes. Copied: variants give way (jit/renewal.c). Under
 * KILN_COMPAT=torch nothing is remembered. */
static kiln_shape_history *find_history(kiln_compile_job *j, int input_count) {
  const int level = j->ex->renewing ? j->jit->depth - 1 : j->depth; /* the last one is made again */
  if (!kiln_strategy_is_dynamic(&j->jit->strategy, j->jit->depth - level)) return NULL;
  kiln_shape_history *history = KILN_NEW(j->arena, kiln_shape_history);
  KILN_VEC(const kiln_shape_seen *) levels = {0};
  const bool remember = j->jit->env.flags.compat != KILN_COMPAT_TORCH;
  if (remember && j->ex->seen) kiln_vec_push(j->arena, &levels, j->ex->seen);
  for (const kiln_variant *v = j->ex->variants; remember && v; v = v->next) {
    if (!v->guard) continue;
    kiln_shape_seen *seen = create_seen(j->arena, input_count);
    for (int i = 0; i < v->guard->count; i++) {
      const kiln_guard_entry *entry = &v->guard->entries[i];
      const kiln_operand at = v->guard->at[i];
      if (entry->check_dims && at < (kiln_operand)input_count)
        seen[at] = copy_seen(j->arena, entry->rank, entry->dims, entry->dims + entry->rank);
    }
    kiln_vec_push(j->arena, &levels, seen);
  }
  if (levels.count > 0) kiln_vec_push(j->arena, &levels, see_arguments(j, input_count));
  history->levels = levels.data;
  history->level_count = levels.count;
  history->from_one = levels.count > 0;
  return history;
}

/* The profile's types on the values, and fusible neighbours in groups. */
static kiln_status *fuse(kiln_compile_job *j) {
  const kiln_variant *building = j->ex->building;
  KILN_TRY(kiln__program_copy(j->jit, building->recorded.graph, &j->program));
  kiln_profile_annotate(building->profile, j->program.graph);
  return kiln_pipeline_run(&j->runner, j->program.graph, KILN_PIPELINE_optimize);
}

/* Less is known of sizes that may be 1. Where that keeps groups apart, or from symbols, they are
 * numbers while they are 1. */
static kiln_status *guard_regions(kiln_compile_job *j) {
  kiln_shape_history *history = find_history(j, kiln_graph_input_count(j->program.graph));
  const int before = j->refusals.count;
  j->v->history = history;
  if (!history || !history->from_one)
    return kiln__program_guard(j->program.graph, history, &j->runner);
  kiln_program *other = &j->other;
  KILN_TRY(kiln__program_copy(j->jit, j->program.graph, other));
  KILN_TRY(kiln__program_guard(j->program.graph, history, &j->runner));
  const int middle = j->refusals.count;
  if (middle > before) {
    history->from_one = false;
    KILN_TRY(kiln__program_guard(other->graph, history, &j->runner));
    history->from_one = j->refusals.count - middle >= middle - before;
  }
  if (history->from_one) {
    j->refusals.count = middle;
  } else {
    const kiln_program kept = *other;
    *other = j->program;
    j->program = kept;
    for (int i = middle; i < j->refusals.count; i++)
      j->refusals.data[before + i - middle] = j->refusals.data[i];
    j->refusals.count -= middle - before;
  }
  kiln_program_destroy(other);
  return NULL;
}

/* Groups in regions behind guards: of a fallback one before its plan, where that is possible. */
static kiln_status *guard(kiln_compile_job *j) {
  KILN_TRY(guard_regions(j));
  j->v->made_by = KILN_PIPELINE_optimize;
  j->v->fingerprint = kiln__program_fingerprint(&j->program);
  if (j->ex->base_depth == 0 || j->jit->env.flags.compat == KILN_COMPAT_TORCH) return NULL;
  kiln_guard_maker maker = guard_maker(j);
  if (j->ex->victim) maker.counters = j->ex->victim->guard->hits;
  j->v->guard = kiln_guard_lift(&maker, j->arena, j->program.graph, j->scratch);
  kiln_arena_reset(j->scratch);
  return require_guard(j);
}

static void add_group(kiln_compile_job *j, const kiln_graph *graph, kiln_node *node) {
  kiln_group_info *info = KILN_NEW(j->arena, kiln_group_info);
  info->slot = kiln__job_slot(j);
  info->name = info->slot->name;
  info->variant = j->v;
  info->number = j->group_count++;
  info->site = &j->ex->callable;
  info->depth = (uint32_t)j->depth;
  info->graph = graph;
  info->weights = kiln__heavy_weights(node);
  info->where = kiln_arena_str(j->arena, kiln_node_str(node, KILN_ATTR_WHERE)).data;
  const kiln_attr *now = kiln_node_attr(node, KILN_ATTR_NOW);
  info->symbols = now ? now->u.pointer : NULL;
  info->runs = info->slot->runs;
  kiln_group_tell(info, j->arena);
  kiln_node_set_pointer(node, KILN_ATTR_INFO, info);
  kiln_groups_append(&j->groups, (kiln_group_list){info, info});
}

static void find_groups(kiln_compile_job *j, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) find_groups(j, n->blocks[b]);
    if (!kiln_node_is_group(n)) continue;
    add_group(j, kiln_node_graph(n, "Subgraph"), n);
  }
}

/* The group as loop IR. */
static kiln_status *lower(kiln_compile_job *j, kiln_group_info *g) {
  const uint64_t until = j->allowance->groups_until_ns;
  const bool late = until && kiln_now_ns() > until + j->tune_ns;
  KILN_TRY(kiln_budget_check(kiln_budget_current(), 0));
  if (late && j->allowance->is_limited && j->ex->tries + 1 < KILN__MAX_TRIES) {
    return KILN_ERROR(KILN_LIMIT, "the groups took too long"); /* a later job finds their kernels */
  }
  if (late) {
    g->reason = KILN_REASON_compile_budget;
  } else {
    kiln_group_lower(&j->jit->env, j->loops, g);
  }
  return NULL;
}

/* Its kernel. Without one it is interpreted as it stands. A call with limits has no time for
 * searches. */
static kiln_status *compile(kiln_compile_job *j, kiln_group_info *g) {
  kiln_jit *jit = j->jit;
  const kiln_budget *budget = kiln_budget_current();
  const bool search = !j->allowance->is_limited;
  const bool made = g->loops && kiln_group_compile(&jit->env, jit->codegen, g, search);
  if (search) j->tune_ns += g->tune_ns;
  if (g->code && kiln_group_rounds(g))
    g->words = kiln_arena_printf(j->arena, "%s; factors in bf16", g->words);
  if (g->code && g->is_heavy)
    g->words =
        kiln_arena_printf(j->arena, "%s; %s", g->words, kiln__heavy_name(&g->heavy, j->arena));
  g->loops = NULL;
  g->graph = NULL;
  g->symbols = NULL;
  kiln_arena_reset(j->loops);
  if (budget && budget->has_left) return KILN_ERROR(KILN_CANCELLED, "compiling is left to a job");
  if (g->code) {
    j->kernel_count++;
    __atomic_fetch_add(&jit->compiles, made, __ATOMIC_RELAXED);
    __atomic_fetch_add(&jit->compile_ns, g->compile_ns, __ATOMIC_RELAXED);
    return NULL;
  }
  if (budget && kiln_cancel_is_asked(budget->cancel)) return kiln_budget_check(budget, 0);
  __atomic_fetch_add(&jit->compile_failures, 1, __ATOMIC_RELAXED);
  kiln__job_refuse(j, g->reason, g->name, g->loc);
  return NULL;
}

/* Plans for the new regions, of the plain interpreter: what a guard that fails finds at once, where
 * the region's own levels are made beside calls. */
static kiln_status *prepare_regions(kiln_compile_job *j) {
  for (kiln_executor *ex = j->executors.first; ex; ex = ex->next) {
    kiln_variant *plain = KILN_NEW(j->arena, kiln_variant);
    ex->plain = plain;
    plain->made_by = KILN_PIPELINE_noopt;
    KILN_TRY(kiln__program_make(ex, NULL, KILN_PIPELINE_noopt, &j->runner, &j->other));
    plain->fingerprint = kiln__program_fingerprint(&j->other);
    KILN_TRY(emit(j, j->other.graph, ex->callable.name, NULL, NULL, &plain->plan));
    ex->interim = plain->plan;
    kiln_program_destroy(&j->other);
  }
  return NULL;
}

/* The plan, to be published. Guards that no kernel stands behind are of no use. */
static kiln_status *finish(kiln_compile_job *j) {
  if (j->group_count > 0 && j->kernel_count == 0) {
    j->v->guard = NULL;
    KILN_TRY(require_guard(j));
    return kiln__compile_simple(j);
  }
  if (!j->v->guard) KILN_TRY(kiln__replace_fallbacks(j->program.graph->top, j->scratch, j));
  kiln_arena_reset(j->scratch);
  KILN_TRY(kiln_graph_verify(j->program.graph));
  KILN_TRY(emit_variant(j));
  return j->jit->jobs ? prepare_regions(j) : NULL;
}

kiln_status *kiln__compile_optimized(kiln_compile_job *j) {
  j->site = j->ex->site;
  KILN_TRY(fuse(j));
  KILN_TRY(guard(j));
  find_groups(j, j->program.graph->top);
  for (kiln_group_info *g = j->groups.first; g; g = g->next) {
    KILN_TRY(lower(j, g));
    KILN_TRY(compile(j, g));
  }
  return finish(j);
}
