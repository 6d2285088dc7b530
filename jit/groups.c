/* groups.c: lowers and compiles a group, and describes it to the interpreter and to people. */
#include "jit/groups.h"

#include "jit/heavy.h"
#include "jit/layouts.h"

/* -- Kernels -- */

static void fail(kiln_env *env, kiln_group_info *info, kiln_status *status) {
  if (info->reason == KILN_REASON_none) {
    const kiln_code code = kiln_status_code(status);
    info->reason = code == KILN_OUT_OF_MEMORY                     ? KILN_REASON_out_of_memory
                   : code == KILN_LIMIT || code == KILN_CANCELLED ? KILN_REASON_compile_budget
                                                                  : KILN_REASON_check_failed;
  }
  KILN_LOG(&env->log, compile, 1, "%s: not compiled: %s", info->name, kiln_status_report(status));
  kiln_status_destroy(status);
}

static kiln_status *try_lower(const kiln_graph *graph, kiln_factor_type factors, kiln_arena *arena,
                              kiln_reason *reason, kiln_loop_fn **out_fn) {
  KILN_PROTECT(kiln_codegen_lower(graph, factors, arena, reason, out_fn));
}

/* Behind its guard: what that asks for is so. */
static kiln_status *lower(const kiln_group_info *info, const kiln_graph *graph, kiln_arena *arena,
                          kiln_reason *reason, kiln_loop_fn **out_fn) {
  kiln_dims *dims = kiln_type_table_dims(graph->types);
  kiln_dim_order orders[KILN_DIMS_ASSUMED];
  int count;
  KILN_CHECK(kiln_dim_orders_parse(dims, kiln_str_from(info->where), orders, &count));
  for (int i = 0; i < count; i++) (void)kiln_dims_assume(dims, orders[i]);
  kiln_status *status = try_lower(graph, info->factors, arena, reason, out_fn);
  kiln_dims_forget(dims, 0);
  return status;
}

/* What is left of a group without its contraction, where its kernel can go over rows. */
static kiln_status *lower_rest(kiln_env *env, kiln_arena *arena, kiln_group_info *info) {
  kiln_reason reason;
  kiln_kernel_info about;
  if (!kiln__heavy_choose(env, info->graph, info->weights, &info->heavy)) return NULL;
  const kiln_graph *rest =
      kiln__heavy_rest((kiln_graph *)(uintptr_t)info->graph, &info->heavy, arena);
  KILN_TRY(lower(info, rest, arena, &reason, &info->loops));
  KILN_TRY(kiln_loop_info(info->loops, KILN_LOOP_LANES, 0, arena, &about));
  info->is_heavy = info->loops->nests.count == 1 && kiln__heavy_fits(&info->heavy, &about);
  return NULL;
}
static kiln_status *try_rest(kiln_env *env, kiln_arena *arena, kiln_group_info *info) {
  KILN_PROTECT(lower_rest(env, arena, info));
}

/* The outputs' sizes and strides as one program, of a kernel for many sizes; firsts[i]: where those
 * of output i begin. NULL: a call has no room for as many. */
static const kiln_dim_program *sizes_of_outputs(kiln_arena *arena, const kiln_graph *graph,
                                                int *firsts) {
  kiln_dim all[KILN_GROUP_DIMS];
  kiln_dims *dims = kiln_type_table_dims(graph->types);
  int count = 0;
  for (int i = 0; i < kiln_graph_output_count(graph); i++) {
    const kiln_tensor_detail *d = kiln_graph_output(graph, i)->type->detail;
    kiln_place place;
    firsts[i] = count;
    if (count + 2 * d->rank + 1 > KILN_GROUP_DIMS) return NULL;
    for (int k = 0; k < d->rank; k++) all[count++] = d->sizes[k];
    if (d->physical)
      kiln_physical_dims(dims, (kiln_physical)d->physical, d->rank, d->sizes, all + count);
    else if (d->rank)
      memcpy(all + count, d->strides, sizeof *all * (size_t)d->rank);
    count += d->rank;
    if (!kiln_codegen_place(graph, i, &place)) continue;
    all[count] = kiln_dim_product(dims, all[count - d->rank + place.dim], place.begin);
    count++;
  }
  const kiln_dim_program *program = kiln_dim_program_create(arena, dims, all, count);
  return kiln_dim_program_room(program) <= KILN_GROUP_DIMS ? program : NULL;
}

/* What fusion put together is within the limit of values; passes behind it may add some. */
static bool has_room(kiln_arena *arena, const kiln_graph *graph) {
  int firsts[KILN_GROUP_VALUES];
  bool fixed = true;
  if (kiln_graph_input_count(graph) + kiln_graph_output_count(graph) > KILN_GROUP_VALUES)
    return false;
  for (int i = 0; i < kiln_graph_output_count(graph); i++) {
    const kiln_type *type = kiln_graph_output(graph, i)->type;
    if (!kiln_type_has_dims(type)) return true; /* which lowering refuses */
    fixed &= kiln_type_is_complete_tensor(type);
  }
  return fixed || sizes_of_outputs(arena, graph, firsts);
}

void kiln_group_lower(kiln_env *env, kiln_arena *arena, kiln_group_info *info) {
  info->factors = (kiln_factor_type)env->flags.matmul;
  if (!has_room(arena, info->graph)) {
    info->reason = KILN_REASON_too_many_values;
    fail(env, info,
         KILN_ERROR(KILN_UNSUPPORTED, "its inputs and results, or their sizes, are too many"));
    return;
  }
  kiln_status_destroy(try_rest(env, arena, info)); /* else it is lowered whole */
  if (info->is_heavy) return;
  kiln_status *status = lower(info, info->graph, arena, &info->reason, &info->loops);
  if (status) fail(env, info, status);
}

static void hash_loops(kiln_env *env, kiln_group_info *info) {
  kiln_arena *scratch = kiln_arena_scoped(env->mem);
  const kiln_str text = kiln_loop_print(info->loops, scratch);
  kiln_digest_format(kiln_digest_bytes(text.data, text.len), info->hash);
  kiln_arena_destroy(scratch);
}

static bool is_bf16(const kiln_loop_nest *nest, int value) {
  const kiln_loop_inst *inst = &nest->body.data[value];
  return inst->op == KILN_LOOP_cast && nest->body.data[inst->args[0]].dtype == KILN_DTYPE_BF16;
}

bool kiln_group_rounds(const kiln_group_info *info) {
  const kiln_kernel_pack *pack = &info->heavy.pack;
  if (info->is_heavy && pack->transform == KILN_TRANSFORM_BLOCKED)
    return kiln_blocked_is_tiles((kiln_blocked_form)pack->form);
  for (int n = 0; info->factors == KILN_FACTORS_BF16 && n < info->loops->nests.count; n++) {
    const kiln_loop_nest *nest = info->loops->nests.data[n];
    for (int i = 0; i < nest->body.count; i++) {
      const kiln_loop_inst *inst = &nest->body.data[i];
      if (inst->op == KILN_LOOP_contract && is_bf16(nest, inst->args[0])) return true;
    }
  }
  return false;
}

static void forget(void *status) { kiln_status_destroy(status); }

/* What is left beside the core's kernels goes over rows, as the rules' schedule cuts them. */
static kiln_status *compile_loops(kiln_env *env, struct kiln_codegen *codegen,
                                  kiln_group_info *info, bool search, bool *out_made) {
  const kiln_backend backend = (kiln_backend)env->flags.codegen;
  if (info->is_heavy)
    return kiln_codegen_compile_ruled(codegen, info->loops, backend, &info->reason, &info->code,
                                      out_made);
  if (backend == KILN_BACKEND_LLVM)
    info->tune_ns = kiln_codegen_tune(codegen, info->loops, info->symbols, search);
  KILN_TRY(
      kiln_codegen_compile(codegen, info->loops, backend, &info->reason, &info->code, out_made));
  info->tuned = kiln_codegen_tuned(codegen, info->code->digest);
  return NULL;
}

static kiln_status *compile(kiln_env *env, struct kiln_codegen *codegen, kiln_group_info *info,
                            bool search, bool *out_made) {
  kiln_status *status = compile_loops(env, codegen, info, search, out_made);
  if (!status && info->is_heavy && !kiln__heavy_fits(&info->heavy, &info->code->info)) {
    kiln_compiled_release(info->code); /* its schedule cuts something else than rows */
    info->code = NULL;
    info->is_heavy = false;
    KILN_TRY(lower(info, info->graph, info->loops->arena, &info->reason, &info->loops));
    status = compile_loops(env, codegen, info, search, out_made);
  }
  if (status) { /* what was lowered can be looked at */
    kiln_cleanup forgetting;
    kiln_scope_defer(&forgetting, forget, status);
    hash_loops(env, info);
    kiln_scope_undefer(&forgetting);
    return status;
  }
  for (int i = 0; i < KILN_GROUP_PACKS; i++) info->packs[i].store = kiln_codegen_packs(codegen);
  kiln_digest_format(info->code->digest, info->hash);
  if (*out_made) info->compile_ns = (uint64_t)info->code->compile_ns;
  return NULL;
}
static kiln_status *try_compile(kiln_env *env, struct kiln_codegen *codegen, kiln_group_info *info,
                                bool search, bool *out_made) {
  KILN_PROTECT(compile(env, codegen, info, search, out_made));
}

bool kiln_group_compile(kiln_env *env, struct kiln_codegen *codegen, kiln_group_info *info,
                        bool search) {
  bool made = false;
  const uint64_t began = kiln_timeline_now(env->timeline);
  kiln_status *status = try_compile(env, codegen, info, search, &made);
  if (status) {
    fail(env, info, status);
    return false;
  }
  const kiln_timeline_arg args[] = {{"kernel", .text = info->hash},
                                    {"operators", .number = info->operators},
                                    {"from", .text = made || !info->code    ? "codegen"
                                                     : info->code->is_found ? "file"
                                                                            : "memory"}};
  if (info->code) kiln_timeline_span(env->timeline, KILN_EVENT_kernel, info->name, began, 3, args);
  KILN_LOG(&env->log, compile, 1, "%s: %u operator%s, kernel %.8s, %.2f ms", info->name,
           info->operators, kiln_plural(info->operators), info->hash,
           (double)info->compile_ns * 1e-6);
  return made;
}

void kiln_groups_release(kiln_group_list groups) {
  for (kiln_group_info *g = groups.first; g; g = g->next) {
    for (int i = 0; i < KILN_GROUP_PACKS; i++) kiln_pack_slot_release(&g->packs[i]);
    kiln_compiled_release(g->code);
    kiln_plan_destroy(g->plan);
  }
}

/* -- Telling -- */

enum { TOLD_NAMES = 12, TOLD_SHAPES = 4 };

/* What counts as an operator of a group. */
static bool is_operator(const kiln_node *n) {
  return !kiln_node_is(n, KILN_OP_prim_Constant) && !kiln_node_is(n, KILN_OP_prim_ListConstruct) &&
         n->op && n->op->cost != KILN_COST_metadata;
}

static void tell_operators(const kiln_graph *graph, kiln_text *text) {
  kiln_str names[TOLD_NAMES];
  int counts[TOLD_NAMES] = {0}, known = 0;
  bool more = false;
  for (const kiln_node *n = graph->top->first; n; n = n->next) {
    if (!is_operator(n)) continue;
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

void kiln_group_tell(kiln_group_info *info, kiln_arena *arena) {
  const kiln_graph *graph = info->graph;
  kiln_text words = kiln_text_in(arena), shapes = kiln_text_in(arena);
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
  info->words = words.data;
  info->shapes = shapes.data;
  for (const kiln_node *n = graph->top->first; n; n = n->next) {
    info->operators += is_operator(n);
    if (!info->loc.line && !kiln_node_is(n, KILN_OP_prim_Constant) && n->range) {
      info->loc = kiln_source_range_loc(n->range);
    }
  }
  if (info->loc.file) info->loc.file = kiln_arena_strdup(arena, info->loc.file);
}

/* -- Describing -- */

static void describe_output(kiln_arena *arena, const kiln_tensor_detail *d,
                            kiln_group_output *out) {
  size_t rank = (size_t)d->rank, bytes = rank * sizeof(int64_t);
  int64_t *dims = KILN_NEW_ARRAY(arena, int64_t, 2 * rank + 1);
  if (rank) {
    memcpy(dims, d->sizes, bytes);
    kiln_tensor_detail_strides(d, dims + rank);
  }
  *out = (kiln_group_output){.dtype = (kiln_dtype)d->dtype,
                             .rank = d->rank,
                             .sizes = dims,
                             .strides = dims + rank,
                             .donor = -1,
                             .border = kiln_physical_border(d->physical),
                             .contiguous = kiln_strides_are_rows(d->rank, dims, dims + rank)};
}

/* Which inputs of the group's node are the tensors `numbers`, bits both; of the first 32. */
static uint32_t operands_of(const kiln_graph *graph, uint32_t numbers) {
  uint32_t operands = 0;
  for (int i = 0, number = 0; i < kiln_graph_input_count(graph) && i < 32; i++) {
    if (!kiln_type_has_dims(kiln_graph_input(graph, i)->type)) continue;
    operands |= (numbers >> number++ & 1) << i;
  }
  return operands;
}

/* Which operand is that tensor among the inputs. */
static int operand_of(const kiln_graph *graph, int tensor) {
  int i = 0;
  for (int number = -1;; i++) {
    number += kiln_type_has_dims(kiln_graph_input(graph, i)->type);
    if (number == tensor) return i;
  }
}

/* Of an output that is written in part; its first element where sizes are numbers. */
static void describe_place(const kiln_graph *graph, int output, kiln_group_output *out) {
  kiln_place place;
  if (!kiln_codegen_place(graph, output, &place)) return;
  out->is_part = true;
  out->whole = place.whole ? place.whole->index : -1;
  if (out->strides) out->begin = place.begin * out->strides[place.dim];
  out->donors = out->whole >= 0 && out->whole < 32 ? UINT32_C(1) << out->whole : 0;
}

static kiln_status *describe_packs(const kiln_node *node, const kiln_graph *graph,
                                   kiln_group_info *info, kiln_arena *arena, kiln_group *out) {
  const kiln_kernel_info *kernel = &info->code->info;
  kiln_group_pack *packs = KILN_NEW_ARRAY(arena, kiln_group_pack, kernel->pack_count + 1);
  KILN_CHECK(kernel->pack_count <= KILN_GROUP_PACKS);
  for (int i = 0; i < kernel->pack_count; i++) {
    packs[i].pack = &kernel->packs[i];
    packs[i].operand = operand_of(graph, kernel->packs[i].input);
    if (packs[i].pack->as_it_lies)
      packs[i].border =
          kiln_physical_border(kiln_graph_input(graph, packs[i].operand)->type->detail->physical);
    if (kiln_ir_value_is_weight(kiln_node_input(node, packs[i].operand)))
      packs[i].slot = &info->packs[i];
  }
  out->pack_count = kernel->pack_count;
  out->packs = packs;
  return NULL;
}

kiln_status *kiln_group_describe(const kiln_node *node, kiln_group_info *info, kiln_arena *arena,
                                 kiln_group *out) {
  const kiln_graph *graph = kiln_node_graph(node, "Subgraph");
  const kiln_kernel_info *kernel = &info->code->info;
  KILN_CHECK(graph &&
             kernel->input_count + kernel->scalar_count == node->input_count + info->is_heavy &&
             kernel->output_count == node->output_count);
  kiln_group_output *outputs = KILN_NEW_ARRAY(arena, kiln_group_output, node->output_count + 1);
  for (int i = 0; i < node->output_count; i++) {
    const kiln_type *type = kiln_graph_output(graph, i)->type;
    KILN_CHECK(kiln_type_has_dims(type));
    if (kernel->shape) {
      outputs[i] = (kiln_group_output){
          .dtype = (kiln_dtype)type->detail->dtype,
          .rank = type->detail->rank,
          .donor = -1,
          .border = kiln_physical_border(type->detail->physical),
          .contiguous = type->detail->physical == KILN_PHYSICAL_ROWS ||
                        kiln__is_row_major(kiln_type_table_dims(graph->types), type->detail)};
    } else {
      KILN_CHECK(kiln_type_is_complete_tensor(type));
      describe_output(arena, type->detail, &outputs[i]);
    }
    if (i < KILN_KERNEL_DONORS && !info->is_heavy) /* which is written before all is read */
      outputs[i].donors = operands_of(graph, kernel->donors[i]);
    describe_place(graph, i, &outputs[i]);
  }
  *out = (kiln_group){.name = info->name,
                      .device = &kiln_device_cpu, /* what codegen has a target for */
                      .fn = info->code->fn,
                      .closure = info->code->closure,
                      .input_count = node->input_count,
                      .output_count = node->output_count,
                      .outputs = outputs,
                      .work = kernel->work,
                      .shape = kernel->shape,
                      .runs = info->runs};
  if (info->is_heavy) {
    KILN_CHECK(info->heavy.pack.form < KILN_GROUP_PACKS);
    info->heavy.slots = info->packs;
    out->heavy = &info->heavy;
  }
  KILN_TRY(describe_packs(node, graph, info, arena, out));
  if (!kernel->shape) return NULL;
  int firsts[KILN_GROUP_VALUES];
  out->dims = sizes_of_outputs(arena, graph, firsts);
  KILN_CHECK(out->dims); /* kiln_group_lower has looked */
  for (int i = 0; i < node->output_count; i++) outputs[i].first = firsts[i];
  return NULL;
}

/* -- Text -- */

/* Where there is no PTX the text says why. */
static kiln_status *dump_code(struct kiln_codegen *codegen, const kiln_loop_fn *fn, bool ruled,
                              kiln_jit_stage stage, kiln_arena *arena, kiln_str *out_text) {
  const kiln_codegen_stage of = stage == KILN_JIT_STAGE_SCHEDULE ? KILN_STAGE_SCHEDULE
                                : stage == KILN_JIT_STAGE_LLVM   ? KILN_STAGE_LLVM
                                : stage == KILN_JIT_STAGE_ASM    ? KILN_STAGE_ASM
                                                                 : KILN_STAGE_PTX;
  kiln_status *status =
      (ruled ? kiln_codegen_dump_ruled : kiln_codegen_dump)(codegen, fn, of, arena, out_text);
  if (of != KILN_STAGE_PTX || kiln_status_code(status) != KILN_UNSUPPORTED) return status;
  *out_text = kiln_str_from(kiln_arena_printf(
      arena, "// %s: %s\n", kiln_reason_sentence(KILN_REASON_no_ptx), kiln_status_message(status)));
  kiln_status_destroy(status);
  return NULL;
}

kiln_status *kiln_group_dump(struct kiln_codegen *codegen, const kiln_group_info *info,
                             const kiln_graph *graph, kiln_jit_stage stage, kiln_text *text) {
  const bool has_code = info->code && info->code->backend == KILN_BACKEND_LLVM;
  const char *comment = stage == KILN_JIT_STAGE_PTX ? "//" : ";";
  if (stage != KILN_JIT_STAGE_LOOP && !has_code) {
    kiln_text_printf(text, "%s %s: no LLVM code: %s\n", comment, info->name,
                     info->code ? "it runs in the evaluator" : kiln_reason_sentence(info->reason));
    return NULL;
  }
  kiln_arena *scratch = kiln_arena_scoped(kiln_arena_mem(text->arena));
  kiln_loop_fn *fn = NULL;
  kiln_reason reason;
  kiln_str out = KILN_STR("; not lowered\n");
  if (info->is_heavy) {
    kiln_text_printf(text, "%s %s: the contraction %s; of its result\n", comment, info->name,
                     kiln__heavy_name(&info->heavy, scratch));
    graph = kiln__heavy_rest((kiln_graph *)(uintptr_t)graph, &info->heavy, scratch);
  }
  kiln_status *status = lower(info, graph, scratch, &reason, &fn);
  if (status) {
    kiln_status_destroy(status);
  } else if (stage == KILN_JIT_STAGE_LOOP) {
    out = kiln_loop_print(fn, scratch);
  } else {
    KILN_TRY(dump_code(codegen, fn, info->is_heavy, stage, scratch, &out));
  }
  kiln_text_printf(text, "%s %s %s\n", comment, info->name, info->hash);
  kiln_text_put(text, out);
  kiln_arena_destroy(scratch);
  return NULL;
}
