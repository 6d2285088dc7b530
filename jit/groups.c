/* groups.c: compiles a group, describes it to the interpreter, or takes it apart again. */
#include "jit/groups.h"

/* -- Compiling -- */

static void forget(void *status) { kiln_status_destroy(status); }

/* What was lowered and has no kernel can be looked at, but not made again: its nodes go back. */
static void keep_text(const kiln_loop_fn *fn, kiln_arena *arena, kiln_group_record *record,
                      kiln_status *why) {
  kiln_cleanup forgetting;
  kiln_scope_defer(&forgetting, forget, why);
  const kiln_str text = kiln_loop_print(fn, arena);
  kiln_scope_undefer(&forgetting);
  record->loop_ir = text.data;
  kiln_digest_format(kiln_digest_bytes(text.data, text.len), record->hash);
}

static kiln_status *compile(kiln_env *env, struct kiln_codegen *codegen, const kiln_graph *graph,
                            kiln_arena *arena, kiln_group_record *record, bool *out_made) {
  kiln_arena *scratch = kiln_arena_scoped(env->mem);
  kiln_loop_fn *fn = NULL;
  KILN_TRY(kiln_codegen_lower(graph, scratch, &record->reason, &fn));
  const kiln_backend backend = (kiln_backend)env->flags.codegen;
  kiln_status *status =
      kiln_codegen_compile(codegen, fn, backend, &record->reason, &record->code, out_made);
  if (status) {
    keep_text(fn, arena, record, status);
    return status;
  }
  kiln_digest_format(record->code->digest, record->hash);
  if (*out_made) record->compile_ns = (uint64_t)record->code->compile_ns;
  return NULL;
}
static kiln_status *try_compile(kiln_env *env, struct kiln_codegen *codegen,
                                const kiln_graph *graph, kiln_arena *arena,
                                kiln_group_record *record, bool *out_made) {
  KILN_PROTECT(compile(env, codegen, graph, arena, record, out_made));
}

bool kiln_group_compile(kiln_env *env, struct kiln_codegen *codegen, const kiln_graph *graph,
                        kiln_arena *arena, kiln_group_record *record) {
  bool made = false;
  record->reason = KILN_REASON_none;
  kiln_status *status = try_compile(env, codegen, graph, arena, record, &made);
  if (!status) {
    KILN_LOG(&env->log, compile, 1, "%s: %u operator%s, kernel %.8s, %.2f ms", record->name,
             record->operators, kiln_plural(record->operators), record->hash,
             (double)record->compile_ns * 1e-6);
    return made;
  }
  if (record->reason == KILN_REASON_none) {
    const kiln_code code = kiln_status_code(status);
    record->reason = code == KILN_OUT_OF_MEMORY                     ? KILN_REASON_out_of_memory
                     : code == KILN_LIMIT || code == KILN_CANCELLED ? KILN_REASON_compile_budget
                                                                    : KILN_REASON_check_failed;
  }
  KILN_LOG(&env->log, compile, 1, "%s: not compiled: %s", record->name, kiln_status_report(status));
  kiln_status_destroy(status);
  return false;
}

void kiln_groups_release(kiln_group_list groups) {
  for (const kiln_group_record *g = groups.first; g; g = g->next) kiln_compiled_release(g->code);
}

/* -- Telling -- */

enum { TOLD_NAMES = 12, TOLD_SHAPES = 4 };

static void tell_operators(const kiln_graph *graph, kiln_text *text) {
  kiln_str names[TOLD_NAMES];
  int counts[TOLD_NAMES] = {0}, known = 0;
  bool more = false;
  for (const kiln_node *n = graph->top->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_Constant) || kiln_node_is(n, KILN_OP_prim_ListConstruct)) {
      continue;
    }
    int i = 0;
    while (i < known && !kiln_str_equal(names[i], n->name)) i++;
    more = more || i == TOLD_NAMES;
    if (i == TOLD_NAMES) continue;
    if (i == known) names[known++] = n->name;
    counts[i]++;
  }
  for (int i = 0; i < known; i++) {
    const char *colons = memchr(names[i].data, ':', names[i].len);
    const size_t space = colons ? (size_t)(colons - names[i].data) + 2 : 0;
    if (i > 0) kiln_text_puts(text, ", ");
    kiln_text_put(text, kiln_str_make(names[i].data + space, names[i].len - space));
    if (counts[i] > 1) kiln_text_printf(text, " %d times", counts[i]);
  }
  if (more) kiln_text_puts(text, ", ...");
}

void kiln_group_tell(const kiln_node *node, kiln_arena *arena, kiln_group_record *record) {
  const kiln_graph *graph = kiln_node_graph(node, "Subgraph");
  kiln_text words, shapes;
  kiln_text_init(&words, arena);
  kiln_text_init(&shapes, arena);
  tell_operators(graph, &words);
  for (int i = 0; i < kiln_graph_output_count(graph); i++) {
    const kiln_type *type = kiln_graph_output(graph, i)->type;
    if (i > 0) kiln_text_puts(&shapes, ", ");
    if (i == TOLD_SHAPES) {
      kiln_text_puts(&shapes, "...");
      break;
    }
    kiln_type_print(&shapes, type, 1);
  }
  record->words = words.data;
  record->shapes = shapes.data;
  record->loc = (kiln_source_loc){0};
  for (const kiln_node *n = graph->top->first; n && !record->loc.line; n = n->next) {
    if (!kiln_node_is(n, KILN_OP_prim_Constant) && n->range) {
      record->loc = kiln_source_range_loc(n->range);
    }
  }
  if (record->loc.file) record->loc.file = kiln_arena_strdup(arena, record->loc.file);
}

/* -- Describing -- */

static void describe_output(kiln_arena *arena, const kiln_tensor_detail *d,
                            kiln_group_output *out) {
  size_t rank = (size_t)d->rank, bytes = rank * sizeof(int64_t);
  int64_t *dims = KILN_NEW_ARRAY(arena, int64_t, 3 * rank + 1), *contiguous = dims + 2 * rank;
  if (rank) {
    memcpy(dims, d->sizes, bytes);
    memcpy(dims + rank, d->strides, bytes);
    kiln_strides_contiguous(d->rank, d->sizes, contiguous);
  }
  *out = (kiln_group_output){.dtype = (kiln_dtype)d->dtype,
                             .rank = d->rank,
                             .sizes = dims,
                             .strides = dims + rank,
                             .donor = -1,
                             .contiguous = memcmp(dims + rank, contiguous, bytes) == 0};
}

/* Which inputs of the group's node are the tensors `numbers`, bits both; of the first 32. */
static uint32_t operands_of(const kiln_graph *graph, uint32_t numbers) {
  uint32_t operands = 0;
  for (int i = 0, number = 0; i < kiln_graph_input_count(graph) && i < 32; i++) {
    if (!kiln_type_is_complete_tensor(kiln_graph_input(graph, i)->type)) continue;
    operands |= (numbers >> number++ & 1) << i;
  }
  return operands;
}

kiln_status *kiln_group_describe(const kiln_node *node, kiln_group_record *record,
                                 kiln_arena *arena, kiln_group *out) {
  const kiln_graph *graph = kiln_node_graph(node, "Subgraph");
  const kiln_kernel_info *info = &record->code->info;
  record->graph = graph;
  KILN_CHECK(graph && info->input_count + info->scalar_count == node->input_count &&
             info->output_count == node->output_count);
  kiln_group_output *outputs = KILN_NEW_ARRAY(arena, kiln_group_output, node->output_count + 1);
  for (int i = 0; i < node->output_count; i++) {
    const kiln_type *type = kiln_graph_output(graph, i)->type;
    KILN_CHECK(kiln_type_is_complete_tensor(type));
    describe_output(arena, type->detail, &outputs[i]);
    if (i < KILN_KERNEL_DONORS) outputs[i].donors = operands_of(graph, info->donors[i]);
  }
  *out = (kiln_group){.name = record->name,
                      .device = &kiln_device_cpu, /* what codegen has a target for */
                      .fn = record->code->fn,
                      .closure = record->code->closure,
                      .input_count = node->input_count,
                      .output_count = node->output_count,
                      .outputs = outputs,
                      .scratch_bytes = info->scratch_bytes,
                      .grid = info->grid,
                      .axis = info->axis,
                      .grain = info->grain,
                      .runs = record->runs};
  return NULL;
}

/* -- Taking apart -- */

void kiln_group_dissolve(kiln_node *group, kiln_arena *scratch) {
  const kiln_graph *sub = kiln_node_graph(group, "Subgraph");
  kiln_map map;
  kiln_map_init(&map, scratch);
  for (int i = 0; i < group->input_count; i++) {
    kiln_map_set_ptr(&map, kiln_graph_input(sub, i), kiln_node_input(group, i));
  }
  for (const kiln_node *n = sub->top->first; n; n = n->next) {
    kiln_node *copy = kiln_node_copy(group->graph, n, &map);
    kiln_node_insert_before(copy, group);
    for (int i = 0; i < n->output_count; i++) {
      kiln_map_set_ptr(&map, n->outputs[i], copy->outputs[i]);
    }
  }
  for (int i = 0; i < group->output_count; i++) {
    kiln_ir_value_replace_uses(kiln_node_output(group, i),
                               kiln_map_find_ptr(&map, kiln_graph_output(sub, i)));
  }
  kiln_node_destroy(group);
}

/* -- Text -- */

/* The loop IR of a kernel is made again. */
static kiln_status *print_loop(const kiln_group_record *record, kiln_arena *arena,
                               kiln_loop_fn **out_fn, kiln_str *out_text) {
  kiln_reason reason;
  KILN_TRY(kiln_codegen_lower(record->graph, arena, &reason, out_fn));
  *out_text = kiln_loop_print(*out_fn, arena);
  return NULL;
}

kiln_status *kiln_group_dump(struct kiln_codegen *codegen, const kiln_group_record *record,
                             kiln_jit_stage stage, kiln_text *text) {
  const bool has_code = record->graph && record->code->backend == KILN_BACKEND_LLVM;
  if (stage != KILN_JIT_STAGE_LOOP && !has_code) {
    kiln_text_printf(
        text, "; %s: no LLVM code: %s\n", record->name,
        record->code ? "it runs in the evaluator" : kiln_reason_sentence(record->reason));
    return NULL;
  }
  kiln_arena *scratch = kiln_arena_scoped(kiln_arena_mem(text->arena));
  kiln_loop_fn *fn = NULL;
  kiln_str out = kiln_str_from(record->loop_ir ? record->loop_ir : "; not lowered\n");
  if (record->graph) KILN_TRY(print_loop(record, scratch, &fn, &out));
  if (stage != KILN_JIT_STAGE_LOOP) {
    const kiln_codegen_stage of = stage == KILN_JIT_STAGE_LLVM ? KILN_STAGE_LLVM : KILN_STAGE_ASM;
    KILN_TRY(kiln_codegen_dump(codegen, fn, of, scratch, &out));
    kiln_text_printf(text, "; %s %s\n", record->name, record->hash);
  }
  kiln_text_put(text, out);
  kiln_arena_destroy(scratch);
  return NULL;
}
