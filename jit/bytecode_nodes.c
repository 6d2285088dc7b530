/* bytecode_nodes.c: which instruction each kind of node becomes. What has a kernel is an OP; the
 * structural operators stand in one table. */
#include "jit/bytecode_internal.h"
#include "runtime/quant.h"
#include "runtime/structure.h"

/* -- Tables of the plan -- */

static uint32_t add_kernel(kiln__bytecode_emitter *e, const kiln_kernel *kernel) {
  uintptr_t known = (uintptr_t)kiln_map_find_ptr(&e->kernel_index, kernel);
  if (known) return (uint32_t)known - 1;
  kiln_vec_push(e->arena, &e->kernels, kernel);
  kiln_map_set_ptr(&e->kernel_index, kernel, (void *)(uintptr_t)e->kernels.count);
  return (uint32_t)e->kernels.count - 1;
}

/* Types that values keep must belong to the model: tensor details, which belong to the graph, are
 * taken off. */
static uint32_t add_type(kiln__bytecode_emitter *e, const kiln_type *type) {
  kiln_vec_push(e->arena, &e->types, kiln_type_unshaped(e->env->types, type));
  return (uint32_t)e->types.count - 1;
}

static uint32_t add_string(kiln__bytecode_emitter *e, kiln_str s) {
  kiln_str copy = kiln_arena_str(e->arena, s);
  kiln_vec_push(e->arena, &e->strings, copy);
  return (uint32_t)e->strings.count - 1;
}

static uint32_t add_callable(kiln__bytecode_emitter *e, const kiln_callable *callable) {
  kiln_vec_push(e->arena, &e->callables, callable);
  return (uint32_t)e->callables.count - 1;
}

static kiln_status *bad_node(const kiln_node *node, const char *what) {
  return KILN_ERROR(KILN_INTERNAL, KILN_STR_FMT " %s", KILN_STR_ARG(node->name), what);
}

static kiln_status *direct(kiln__bytecode_emitter *e, kiln_node *node, kiln_instr_op op,
                           uint32_t x) {
  return kiln__bytecode_direct(e, node, op, x, 0, node->input_count, node->output_count);
}

/* -- Operators -- */

/* What helps the reader of "operator x is not implemented": the arguments that no overload takes,
 * or who may supply what is not PyTorch's. NULL: nothing. */
static char *missing_hint(kiln__bytecode_emitter *e, const kiln_node *node) {
  kiln_text text = kiln_text_in(e->arena);
  if (kiln_registry_find(node->graph->registry, node->name)) {
    kiln_text_puts(&text, " for (");
    for (int i = 0; i < node->input_count; i++) {
      if (i > 0) kiln_text_puts(&text, ", ");
      kiln_type_print_annotation(&text, kiln_node_input(node, i)->type);
    }
    kiln_text_putc(&text, ')');
  } else if (!kiln_str_starts(node->name, "aten::") && !kiln_str_starts(node->name, "prim::")) {
    kiln_text_puts(&text, "; a host can supply it by kiln_op_register before it loads the model");
  }
  return text.data;
}

static const kiln_kernel *missing_kernel(kiln__bytecode_emitter *e, const kiln_node *node) {
  kiln_kernel *missing = KILN_NEW(e->arena, kiln_kernel);
  missing->name = kiln_arena_str(e->arena, node->name).data;
  missing->dest_arg = -1;
  missing->user = missing_hint(e, node);
  return missing;
}

/* One for each kernel, in a unit with quantised, sparse or nested tensors. */
static const kiln_kernel *wrapped_kernel(kiln__bytecode_emitter *e, const kiln_kernel *kernel) {
  const kiln_kernel *known = kiln_map_find_ptr(&e->wrapped_kernels, kernel);
  if (known) return known;
  known = e->env->quantised ? kiln_quant_wrap(e->arena, kernel) : kernel;
  if (e->env->structured) known = kiln_structure_wrap(e->arena, known);
  kiln_map_set_ptr(&e->wrapped_kernels, kernel, (void *)(uintptr_t)known);
  return known;
}

/* A kernel of its own, with the mark of its place. */
static const kiln_kernel *warning_kernel(kiln__bytecode_emitter *e, const kiln_node *node) {
  kiln_kernel *own = kiln_arena_copy(e->arena, &node->op->kernel, sizeof *own);
  own->user = e->env->warned(e->env->user, node->range);
  return own;
}

/* Results in registers that hold no reference, then those that own what had to be computed. */
static void emit_kept(kiln__bytecode_emitter *e, kiln_node *node, const kiln_kernel *kernel) {
  const kiln_kept_op op = {kernel, KILN_NEW(e->arena, kiln_kept_slot)};
  const int ins = node->input_count, outs = node->output_count;
  kiln_vec_push(e->arena, &e->kept, op);
  const int at =
      kiln__bytecode_instr(e, KILN_INSTR_KEPT, ins, 2 * outs, (uint32_t)e->kept.count - 1);
  for (int i = 0; i < ins; i++) {
    const kiln_operand o = kiln__bytecode_read(e, kiln_node_input(node, i));
    kiln__bytecode_operands(e, at)[i] = o;
  }
  for (int i = 0; i < outs; i++) {
    const uint32_t id = kiln_node_output(node, i)->id;
    kiln__bytecode_operands(e, at)[ins + i] = (kiln_operand)e->regs[id];
    kiln__bytecode_operands(e, at)[ins + outs + i] = (kiln_operand)e->owners[id];
  }
  kiln__bytecode_finish(e, node);
}

static kiln_status *emit_op(kiln__bytecode_emitter *e, kiln_node *node) {
  const kiln_kernel *kernel = node->op ? &node->op->kernel : missing_kernel(e, node);
  if (node->output_count > KILN_MAX_OUTS) return bad_node(node, "has too many results");
  if (e->env->quantised || e->env->structured) kernel = wrapped_kernel(e, kernel);
  if (kiln_node_is(node, KILN_OP_warn) && e->env->warned && node->range) {
    kernel = warning_kernel(e, node);
  }
  if (node->output_count && e->owners[kiln_node_output(node, 0)->id] >= 0) {
    emit_kept(e, node, kernel);
    return NULL;
  }
  bool is_fresh = kiln_op_is_fresh(kernel, node->input_count, node->output_count);
  return direct(e, node, is_fresh ? KILN_INSTR_OP_FRESH : KILN_INSTR_OP, add_kernel(e, kernel));
}

/* Reads tensors through one operator that gives a list: x -> aten::chunk(x, chunks, dim) ->
 * outputs. The interpreter has no instruction for a form that groups are made of. */
static kiln_status *emit_constant_chunk(kiln__bytecode_emitter *e, kiln_node *node) {
  const kiln_op *chunk = kiln_registry_op(node->graph->registry, KILN_OP_chunk);
  const kiln_attr *chunks = kiln_node_attr(node, "chunks"), *dim = kiln_node_attr(node, "dim");
  if (!chunks || !dim) return bad_node(node, "lacks chunks or dim");
  kiln_operand in = kiln__bytecode_read(e, kiln_node_input(node, 0));
  kiln_operand n = kiln__bytecode_constant(e, &chunks->u.value) | KILN_OPERAND_CONSTANT;
  kiln_operand d = kiln__bytecode_constant(e, &dim->u.value) | KILN_OPERAND_CONSTANT;
  int at = kiln__bytecode_instr(e, KILN_INSTR_OP, 3, 1, add_kernel(e, &chunk->kernel));
  kiln_operand *o = kiln__bytecode_operands(e, at);
  o[0] = in, o[1] = n, o[2] = d;
  kiln__bytecode_unpack_of(e, node, at, KILN_INSTR_LIST_UNPACK);
  return NULL;
}

/* -- Calls -- */

static const kiln_callable *own_callable(const kiln_node *node) {
  const kiln_attr *attr = kiln_node_attr(node, KILN_ATTR_CALLABLE);
  return attr && attr->kind == KILN_ATTR_POINTER ? attr->u.pointer : NULL;
}

static kiln_status *find_callable(kiln__bytecode_emitter *e, const kiln_node *node,
                                  const kiln_callable **out) {
  kiln_function *callee = kiln_call_callee(node);
  *out = NULL;
  if (!callee) return NULL;
  if (!e->env->callable) {
    return KILN_ERROR(KILN_UNSUPPORTED, "%s cannot be called here", callee->qualname);
  }
  return e->env->callable(e->env->user, callee, out);
}

static kiln_status *emit_call_function(kiln__bytecode_emitter *e, kiln_node *node) {
  const kiln_callable *callable = own_callable(kiln_node_input(node, 0)->node);
  if (!callable) KILN_TRY(find_callable(e, node, &callable));
  if (!callable) return direct(e, node, KILN_INSTR_CALL_VALUE, 0);
  return kiln__bytecode_direct(e, node, KILN_INSTR_CALL, add_callable(e, callable), 1,
                               node->input_count - 1, node->output_count);
}

static kiln_status *emit_call_method(kiln__bytecode_emitter *e, kiln_node *node) {
  const kiln_callable *callable;
  KILN_TRY(find_callable(e, node, &callable));
  if (callable) return direct(e, node, KILN_INSTR_CALL, add_callable(e, callable));
  kiln_str name = kiln_node_str(node, "name");
  return direct(e, node, KILN_INSTR_CALL_METHOD, add_string(e, name));
}

static kiln_status *emit_fork(kiln__bytecode_emitter *e, kiln_node *node) {
  const kiln_callable *callable = own_callable(node);
  if (!callable) return bad_node(node, "has no callable");
  int at = e->code.count;
  const kiln_type *type = kiln_node_output(node, 0)->type;
  uint32_t index = type->kind == KILN_TYPE_FUTURE ? add_type(e, type->elems[0]) + 1 : 0;
  KILN_TRY(direct(e, node, KILN_INSTR_FORK, add_callable(e, callable)));
  if (index <= UINT16_MAX) e->code.data[at].flags = (uint16_t)index;
  return NULL;
}

static kiln_status *emit_enter(kiln__bytecode_emitter *e, kiln_node *node) {
  e->enter_count++;
  return kiln__bytecode_direct(e, node, KILN_INSTR_ENTER, 0, 0, 1, 1);
}

static kiln_status *emit_exit(kiln__bytecode_emitter *e, kiln_node *node) {
  return kiln__bytecode_direct(e, node, KILN_INSTR_EXIT, 0, 0, 0, 1);
}

/* -- Values -- */

static kiln_status *emit_construct(kiln__bytecode_emitter *e, kiln_node *node, kiln_instr_op op) {
  return direct(e, node, op, add_type(e, kiln_node_output(node, 0)->type));
}

static kiln_status *emit_tuple_index(kiln__bytecode_emitter *e, kiln_node *node) {
  const kiln_ivalue *index =
      node->input_count > 1 ? kiln_ir_value_constant(kiln_node_input(node, 1)) : NULL;
  if (node->input_count > 1 && !index) {
    return kiln__bytecode_direct(e, node, KILN_INSTR_TUPLE_ITEM, 0, 0, 2, 1);
  }
  int64_t i = index && index->tag == KILN_TAG_INT ? index->u.i : kiln_node_int(node, "index", 0);
  int count = kiln_node_input(node, 0)->type->elem_count;
  if (i < 0) i += count;
  if (i < 0 || i >= count) return bad_node(node, "has an index out of range");
  return kiln__bytecode_direct(e, node, KILN_INSTR_TUPLE_INDEX, (uint32_t)i, 0, 1, 1);
}

static kiln_status *emit_tuple_slice(kiln__bytecode_emitter *e, kiln_node *node) {
  int64_t begin = kiln_node_int(node, "beg", 0);
  int count = kiln_node_output(node, 0)->type->elem_count;
  if (begin < 0 || begin > UINT16_MAX ||
      begin + count > kiln_node_input(node, 0)->type->elem_count) {
    return bad_node(node, "has a range beyond the tuple");
  }
  int at = e->code.count;
  uint32_t type = add_type(e, kiln_node_output(node, 0)->type);
  KILN_TRY(kiln__bytecode_direct(e, node, KILN_INSTR_TUPLE_SLICE, type, 0, 1, 1));
  e->code.data[at].flags = (uint16_t)begin;
  return NULL;
}

static kiln_status *emit_attr(kiln__bytecode_emitter *e, kiln_node *node, kiln_instr_op op) {
  kiln_str name = kiln_node_str(node, "name");
  int slot = kiln_type_find_attribute(kiln_node_input(node, 0)->type, name);
  if (slot < 0) {
    return KILN_ERROR(KILN_INTERNAL, "no attribute '" KILN_STR_FMT "'", KILN_STR_ARG(name));
  }
  return direct(e, node, op, (uint32_t)slot);
}

static kiln_status *emit_isinstance(kiln__bytecode_emitter *e, kiln_node *node) {
  const kiln_attr *attr = kiln_node_attr(node, "types");
  if (!attr || attr->kind != KILN_ATTR_TYPES) return bad_node(node, "has no types");
  int count = attr->u.types.count;
  const kiln_type **types = KILN_NEW_ARRAY(e->arena, const kiln_type *, count + 1);
  for (int i = 0; i < count; i++) {
    types[i] = kiln_type_unshaped(e->env->types, attr->u.types.data[i]);
  }
  kiln_vec_push(e->arena, &e->type_lists, (kiln_type_span){count, types});
  return kiln__bytecode_direct(e, node, KILN_INSTR_ISINSTANCE, (uint32_t)e->type_lists.count - 1, 0,
                               1, 1);
}

static kiln_status *emit_raise(kiln__bytecode_emitter *e, kiln_node *node) {
  int count = node->input_count < 2 ? node->input_count : 2;
  return kiln__bytecode_direct(e, node, KILN_INSTR_RAISE, 0, 0, count, 0);
}

void kiln__bytecode_check(kiln__bytecode_emitter *e, kiln_ir_value *v, const kiln_type *type) {
  kiln_operand o = kiln__bytecode_read(e, v);
  int at = kiln__bytecode_instr(e, KILN_INSTR_CHECK, 1, 0, add_type(e, type));
  kiln__bytecode_operands(e, at)[0] = o;
}

/* The result is the argument under another name. */
static void emit_cast(kiln__bytecode_emitter *e, kiln_node *node) {
  if (!kiln__bytecode_is_proved(e, node)) {
    kiln__bytecode_check(e, kiln_node_input(node, 0), kiln_node_output(node, 0)->type);
  }
  kiln__bytecode_finish(e, node);
}

/* -- What the executor put in -- */

static kiln_status *emit_profile(kiln__bytecode_emitter *e, kiln_node *node) {
  if (node->input_count == 0) return NULL; /* the run counter: RET commits */
  int record = e->record_count++;
  if (!e->env->sink) {
    kiln__bytecode_finish(e, node);
    return NULL;
  }
  return kiln__bytecode_direct(e, node, KILN_INSTR_PROFILE, (uint32_t)record, 0, 1, 0);
}

static kiln_status *emit_typecheck(kiln__bytecode_emitter *e, kiln_node *node) {
  if (e->env->guard) { /* it holds */
    kiln__bytecode_finish(e, node);
    return NULL;
  }
  const kiln_attr *attr = kiln_node_attr(node, "types");
  if (!attr || attr->kind != KILN_ATTR_TYPES || attr->u.types.count != node->input_count) {
    return bad_node(node, "has no type for each input");
  }
  const kiln_guard_checks checks = kiln_guard_checks_of(e->scratch, node);
  kiln_guard_desc guard;
  kiln_guard_make(&e->env->guards, e->arena, &checks, kiln__bytecode_range(e, node->range), &guard);
  node->mark = (uint32_t)e->guards.count;
  guard.symbols_at = e->plan->symbol_count;
  if (guard.symbols) e->plan->symbol_count += guard.symbols->symbol_count;
  kiln_vec_push(e->arena, &e->guards, guard);
  return kiln__bytecode_direct(e, node, KILN_INSTR_TYPECHECK, node->mark, 0, node->input_count, 1);
}

/* What lets the block be entered: the plan's guard, or the check of its If, whose number is on the
 * node. */
static const kiln_guard_desc *guard_of(const kiln__bytecode_emitter *e, const kiln_block *block) {
  if (e->env->guard || !kiln_guards_is_hit(block)) return e->env->guard;
  return &e->guards.data[kiln_node_input(block->owner, 0)->node->mark];
}

/* A group that has no kernel is called, with its results in one tuple where they are several. */
static kiln_status *call_group(kiln__bytecode_emitter *e, kiln_node *node,
                               const kiln_callable *interpreted) {
  const uint32_t callee = add_callable(e, interpreted);
  if (node->output_count == 1) return direct(e, node, KILN_INSTR_CALL, callee);
  const int at = kiln__bytecode_instr(e, KILN_INSTR_CALL, node->input_count, 1, callee);
  for (int i = 0; i < node->input_count; i++) {
    const kiln_operand o = kiln__bytecode_read(e, kiln_node_input(node, i));
    kiln__bytecode_operands(e, at)[i] = o;
  }
  kiln__bytecode_unpack_of(e, node, at, KILN_INSTR_TUPLE_UNPACK);
  return NULL;
}

static kiln_status *emit_group(kiln__bytecode_emitter *e, kiln_node *node) {
  if (!e->env->group) return bad_node(node, "cannot be compiled here");
  kiln_group group = {0};
  const kiln_callable *interpreted = NULL;
  const kiln_guard_desc *guard = guard_of(e, node->block);
  KILN_TRY(e->env->group(e->env->user, node, guard, e->arena, &group, &interpreted));
  if (interpreted) return call_group(e, node, interpreted);
  if (group.shape) {
    KILN_CHECK(guard && guard->symbols);
    group.symbols_at = guard->symbols_at;
  }
  kiln_vec_push(e->arena, &e->groups, group);
  return direct(e, node, KILN_INSTR_GROUP, (uint32_t)e->groups.count - 1);
}

/* What is no future raises when it is reached: there is no kernel. */
static kiln_status *emit_wait(kiln__bytecode_emitter *e, kiln_node *node) {
  const bool waits = node->input_count == 1 && node->output_count == 1 &&
                     kiln_node_input(node, 0)->type->kind == KILN_TYPE_FUTURE;
  return waits ? direct(e, node, KILN_INSTR_WAIT, 0) : emit_op(e, node);
}

static kiln_status *emit_structural(kiln__bytecode_emitter *e, kiln_node *node) {
  switch ((kiln_op_id)node->op->id) {
    case KILN_OP_prim_Constant:
    case KILN_OP_prim_Uninitialized: return NULL;
    case KILN_OP_prim_unchecked_cast:
    case KILN_OP_prim_unchecked_unwrap_optional: emit_cast(e, node); return NULL;
    case KILN_OP_prim_ListConstruct: return emit_construct(e, node, KILN_INSTR_LIST);
    case KILN_OP_prim_TupleConstruct: return emit_construct(e, node, KILN_INSTR_TUPLE);
    case KILN_OP_prim_DictConstruct: return emit_construct(e, node, KILN_INSTR_DICT);
    case KILN_OP_prim_CreateObject: return emit_construct(e, node, KILN_INSTR_OBJECT);
    case KILN_OP_prim_ListUnpack: return direct(e, node, KILN_INSTR_LIST_UNPACK, 0);
    case KILN_OP_prim_TupleUnpack: return direct(e, node, KILN_INSTR_TUPLE_UNPACK, 0);
    case KILN_OP_prim_TupleIndex: return emit_tuple_index(e, node);
    case KILN_OP_prim_TupleSlice: return emit_tuple_slice(e, node);
    case KILN_OP_prim_GetAttr:
      return emit_attr(e, node,
                       kiln__bytecode_borrows(e, kiln_node_output(node, 0)) ? KILN_INSTR_BORROW_ATTR
                                                                            : KILN_INSTR_GET_ATTR);
    case KILN_OP_prim_SetAttr: return emit_attr(e, node, KILN_INSTR_SET_ATTR);
    case KILN_OP_prim_isinstance: return emit_isinstance(e, node);
    case KILN_OP_prim_CallFunction: return emit_call_function(e, node);
    case KILN_OP_prim_CallMethod: return emit_call_method(e, node);
    case KILN_OP_prim_fork: return emit_fork(e, node);
    case KILN_OP_wait: return emit_wait(e, node);
    case KILN_OP_prim_Enter: return emit_enter(e, node);
    case KILN_OP_prim_Exit: return emit_exit(e, node);
    case KILN_OP_prim_RaiseException: return emit_raise(e, node);
    case KILN_OP_prim_profile: return emit_profile(e, node);
    case KILN_OP_prim_TypeCheck:
    case KILN_OP_prim_TensorExprDynamicGuard: return emit_typecheck(e, node);
    case KILN_OP_prim_TensorExprGroup: return emit_group(e, node);
    case KILN_OP_prim_ConstantChunk: return emit_constant_chunk(e, node);
    default: return emit_op(e, node);
  }
}

kiln_status *kiln__bytecode_node(kiln__bytecode_emitter *e, kiln_node *node) {
  kiln__bytecode_check_unset(e, node);
  if (node->op && node->op->variant == KILN_VARIANT_NONE && !node->op->schema) {
    return emit_structural(e, node);
  }
  return emit_op(e, node);
}
