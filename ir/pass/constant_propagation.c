/* constant_propagation.c: pass `constant_propagation`: what is constant is computed now.
 *
 * In one walk in order: an operator whose arguments are all constants is run by its own kernel, and
 * a constant tuple is taken apart; a decided If is replaced by its branch; a Loop that never runs
 * goes; results of an If that are the same on both sides, and values that a Loop carries unchanged,
 * become what they are. Left alone: side effects, random numbers, structural operators that have no
 * kernel, results that somebody writes or that leave the graph while they are mutable (a constant
 * is shared by all calls), and tensors above MAX_ELEMENTS, and everything once constants have taken
 * the bytes that the model may fold (flag fold_memory). A kernel's error leaves the node as it is,
 * to be raised when it is reached. */
#include "ir/pass.h"
#include "runtime/quant.h"

enum { MAX_ELEMENTS = 1 << 16, MAX_ARGS = 64, MAX_FOLDED_BYTES = 16 << 20 };

/* -- Operators -- */

static bool gather_constants(const kiln_node *node, kiln_ivalue *args) {
  if (node->input_count > MAX_ARGS) return false;
  for (int i = 0; i < node->input_count; i++) {
    const kiln_ivalue *c = kiln_ir_value_constant(kiln_node_input(node, i));
    if (!c || (c->tag == KILN_TAG_TENSOR && c->u.tensor->key.f.requires_grad)) return false;
    args[i] = *c;
  }
  return true;
}

/* A constant is one object for all calls, so a mutable one must not be seen or changed by anyone
 * else. */
static bool results_may_be_shared(kiln_pass *pass, const kiln_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    const kiln_ir_value *out = kiln_node_output(node, i);
    if (!kiln_type_is_mutable(out->type)) continue;
    const kiln_alias *alias = kiln_pass_alias(pass);
    if (kiln_alias_has_writers(alias, out) || kiln_alias_is_wildcard(alias, out)) return false;
  }
  return true;
}

static bool is_foldable(kiln_pass *pass, const kiln_node *node) {
  if (!node->op || node->block_count > 0 || node->output_count == 0 ||
      node->output_count > KILN_MAX_OUTS || (node->op->flags & KILN_OP_NO_FOLD) ||
      kiln_node_has_side_effects(node) || kiln_node_is_nondeterministic(node)) {
    return false;
  }
  return results_may_be_shared(pass, node);
}

static bool is_small(kiln_ivalue v) {
  if (v.tag == KILN_TAG_TENSOR) {
    return v.u.tensor->numel <= MAX_ELEMENTS && !v.u.tensor->key.f.undefined;
  }
  if (v.tag == KILN_TAG_LIST) {
    if (v.u.list->count > 1024) return false;
    for (int64_t i = 0; i < v.u.list->count; i++) {
      if (!is_small(v.u.list->items[i])) return false;
    }
    return true;
  }
  return v.tag != KILN_TAG_DICT && v.tag != KILN_TAG_OBJECT && v.tag != KILN_TAG_FUTURE &&
         v.tag != KILN_TAG_OTHER;
}

/* Roughly: views count as if they were copies. */
static uint64_t bytes_of(kiln_ivalue v) {
  uint64_t bytes = sizeof v;
  if (v.tag == KILN_TAG_TENSOR) {
    const kiln_tensor *t = v.u.tensor;
    bytes += sizeof *t + (uint64_t)t->numel * kiln_tensor_item_size(t);
  }
  if (v.tag == KILN_TAG_STRING) bytes += v.u.string->len;
  for (int64_t i = 0; v.tag == KILN_TAG_LIST && i < v.u.list->count; i++) {
    bytes += bytes_of(v.u.list->items[i]);
  }
  return bytes;
}

/* Takes the results off what may be folded; false when they are too large. */
static bool afford(kiln_pass *pass, const kiln_node *node, const kiln_ivalue *outs) {
  uint64_t bytes = 0;
  for (int i = 0; i < node->output_count; i++) {
    if (!is_small(outs[i])) return false;
    bytes += bytes_of(outs[i]);
  }
  if (!pass->fold_left) return true;
  uint64_t left = __atomic_load_n(pass->fold_left, __ATOMIC_RELAXED);
  while (bytes <= left && !__atomic_compare_exchange_n(pass->fold_left, &left, left - bytes, true,
                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return bytes <= left;
}

/* A few schemas say less than their operators give: div of a complex number is said to be a float,
 * a Scalar may be a bool. */
static bool fit_types(const kiln_node *node, const kiln_ivalue *outs) {
  for (int i = 0; i < node->output_count; i++) {
    if (outs[i].tag == KILN_TAG_TENSOR || outs[i].tag == KILN_TAG_NONE) continue;
    if (!kiln_ivalue_matches(outs[i], kiln_node_output(node, i)->type)) return false;
  }
  return true;
}

/* Gives the node's results constant values; takes them. False, and nothing done, if one is too
 * large, or not of its type. */
static bool replace_by_constants(kiln_pass *pass, kiln_node *node, kiln_ivalue *outs) {
  if (!fit_types(node, outs) || !afford(pass, node, outs)) {
    for (int k = 0; k < node->output_count; k++) kiln_ivalue_release(outs[k]);
    return false;
  }
  for (int i = 0; i < node->output_count; i++) kiln_graph_own(node->graph, outs[i]);
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value *out = kiln_node_output(node, i);
    kiln_ir_value *constant =
        kiln_insert_constant_before(node, kiln_ivalue_retain(outs[i]), out->type);
    if (out->name.len > 0) kiln_ir_value_set_name(constant, out->name);
    constant->node->range = node->range;
    kiln_ir_value_replace_uses(out, constant);
  }
  kiln_node_destroy(node);
  return true;
}

static bool fold_kernel(kiln_pass *pass, kiln_node *node, const kiln_ivalue *args) {
  const kiln_kernel *kernel = &node->op->kernel;
  for (int i = 0; i < node->input_count; i++) {
    if (kiln_ivalue_holds_quant(args[i])) return false; /* only plans guard operators from them */
  }
  if (!kernel->body || kernel->dest_arg >= 0 || kernel->out_count != node->output_count) {
    return false;
  }
  kiln_ivalue outs[KILN_MAX_OUTS] = {{0}};
  /* A model may ask for any amount; what is too large to be kept need not be made. */
  const kiln_budget *budget = kiln_budget_current();
  kiln_call_begin(pass->call, &(kiln_limits){.bytes = MAX_FOLDED_BYTES});
  if (budget) {
    pass->call->budget.deadline_ns = budget->deadline_ns;
    pass->call->budget.cancel = budget->cancel;
  }
  kiln_budget *outer = kiln_budget_enter(&pass->call->budget);
  kiln_status *status = kiln_kernel_run(pass->call, kernel, args, node->input_count, outs);
  kiln_budget_leave(outer);
  if (!status) status = kiln_budget_check(budget, 0); /* ranges may have been left out */
  if (status) {
    for (int i = 0; i < node->output_count; i++) kiln_ivalue_release(outs[i]);
    kiln_status_destroy(status);
    return false;
  }
  return replace_by_constants(pass, node, outs);
}

/* A list or tuple of `args`, of the type that is given; on failure *out may hold a part of it. */
static kiln_status *construct(kiln_mem *mem, const kiln_type *type, const kiln_ivalue *args,
                              int count, kiln_ivalue *out) {
  if (type->kind == KILN_TYPE_LIST) {
    kiln_list *list = NULL;
    KILN_TRY(kiln_list_create(mem, type->elems[0], count, &list));
    *out = kiln_of_box(list);
    for (int i = 0; i < count; i++) KILN_TRY(kiln_list_push(list, kiln_ivalue_retain(args[i])));
    return NULL;
  }
  kiln_tuple *tuple = NULL;
  KILN_TRY(kiln_tuple_create(mem, type, count, &tuple));
  *out = kiln_of_box(tuple);
  for (int i = 0; i < count; i++) tuple->items[i] = kiln_ivalue_retain(args[i]);
  return NULL;
}

/* prim::ListConstruct and prim::TupleConstruct of constants. */
static bool fold_construct(kiln_pass *pass, kiln_node *node, const kiln_ivalue *args) {
  const kiln_type *type = kiln_node_output(node, 0)->type;
  const bool is_list = kiln_node_is(node, KILN_OP_prim_ListConstruct);
  if (is_list != (type->kind == KILN_TYPE_LIST)) return false;
  if (kiln_type_is_mutable(is_list ? type->elems[0] : type)) return false;
  kiln_ivalue out = kiln_none();
  kiln_status *status = construct(pass->env->mem, type, args, node->input_count, &out);
  if (!status) return replace_by_constants(pass, node, &out);
  kiln_ivalue_release(out);
  kiln_status_destroy(status);
  return false;
}

/* prim::TupleUnpack and prim::TupleIndex of a constant. */
static bool fold_elements(kiln_pass *pass, kiln_node *node, const kiln_ivalue *args) {
  kiln_ivalue outs[KILN_MAX_OUTS];
  if (args[0].tag != KILN_TAG_TUPLE) return false;
  const kiln_tuple *tuple = args[0].u.tuple;
  int64_t first = 0;
  if (kiln_node_is(node, KILN_OP_prim_TupleIndex)) {
    first = args[1].u.i < 0 ? args[1].u.i + tuple->count : args[1].u.i;
  } else if (tuple->count != node->output_count) {
    return false;
  }
  if (first < 0 || first + node->output_count > tuple->count) return false;
  for (int i = 0; i < node->output_count; i++) {
    if (kiln_type_is_mutable(kiln_node_output(node, i)->type)) return false;
  }
  for (int i = 0; i < node->output_count; i++)
    outs[i] = kiln_ivalue_retain(tuple->items[first + i]);
  return replace_by_constants(pass, node, outs);
}

static bool fold_constant(kiln_pass *pass, kiln_node *node) {
  kiln_ivalue args[MAX_ARGS];
  if (!is_foldable(pass, node) || !gather_constants(node, args)) return false;
  /* Room for the results now: between making and owning them nothing may be allocated. */
  kiln_vec_reserve(node->graph->arena, &node->graph->owned,
                   node->graph->owned.count + 2 * KILN_MAX_OUTS);
  if (kiln_node_is(node, KILN_OP_prim_ListConstruct) ||
      kiln_node_is(node, KILN_OP_prim_TupleConstruct)) {
    return fold_construct(pass, node, args);
  }
  if (kiln_node_is(node, KILN_OP_prim_TupleUnpack) || kiln_node_is(node, KILN_OP_prim_TupleIndex)) {
    return fold_elements(pass, node, args);
  }
  return fold_kernel(pass, node, args);
}

kiln_status *kiln_pass_constant_propagation(kiln_pass *pass) {
  kiln_simplify_control_flow(pass, fold_constant);
  return NULL;
}
