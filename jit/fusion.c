/* fusion.c: pass `fuse_groups`: which pointwise nodes of a block become one kernel.
 *
 * The nodes of a block and what orders them (fusion_order.c) form a graph. Clusters are grown from
 * the last node backwards (fusion_cluster.c), and the finished partition of all blocks is put into
 * the graph once (fusion_build.c). Every refusal is told with its reason. */
#include "jit/fusion.h"

#include "codegen/codegen.h"
#include "runtime/strides.h"

/* -- What can be fused -- */

static int64_t numel_of(const kiln_tensor_detail *d) {
  int64_t numel = 1;
  for (int i = 0; i < d->rank; i++) numel *= d->sizes[i];
  return numel;
}

kiln_reason kiln__fusion_check_tensor(const kiln_ir_value *v) {
  if (!kiln_type_has_dims(v->type)) return KILN_REASON_types_unknown;
  const kiln_tensor_detail *d = v->type->detail;
  if (d->undefined != 0) return KILN_REASON_types_unknown;
  if (d->device != KILN_DEVICE_CPU) return KILN_REASON_device; /* codegen has no other target */
  if (d->requires_grad == 1) return KILN_REASON_requires_grad;
  return numel_of(d) == 0 ? KILN_REASON_zero_size : KILN_REASON_none;
}

/* A list that only its reader here sees, of a node that can be in a group. */
static bool is_good_list(const kiln_fusion *f, const kiln_ir_value *v) {
  return v->node->block == f->block && v->node != f->block->param && v->use_count == 1 &&
         f->nodes[v->node->mark - 1].fusible;
}
/* Some of which may be None. */
static bool is_list_of_tensors(const kiln_ir_value *v) {
  if (v->type->kind != KILN_TYPE_LIST) return false;
  const kiln_type *elem = v->type->elems[0];
  return kiln_type_is_tensor(elem->kind == KILN_TYPE_OPTIONAL ? elem->elems[0] : elem);
}

static kiln_reason check_values(const kiln_fusion *f, kiln_node *n, uint64_t sizes) {
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(n, i);
    if (v->type->kind == KILN_TYPE_NUMBER && !kiln_ir_value_constant(v)) {
      return KILN_REASON_number_unknown;
    }
    if (is_list_of_tensors(v) && !is_good_list(f, v)) return KILN_REASON_not_constant;
    /* The profile's type tells what such arguments did, for one value of them. */
    if (kiln__fusion_is_map(n) && !kiln_type_is_tensor(v->type) && !is_list_of_tensors(v) &&
        !kiln_ir_value_constant(v) && !kiln__fusion_is_of_sizes(sizes, i)) {
      return KILN_REASON_not_constant;
    }
    kiln_reason reason =
        kiln_type_is_tensor(v->type) ? kiln__fusion_check_tensor(v) : KILN_REASON_none;
    if (reason != KILN_REASON_none) return reason;
  }
  for (int i = 0; i < n->output_count; i++) {
    if (is_list_of_tensors(kiln_node_output(n, i))) continue;
    kiln_reason reason = kiln__fusion_check_tensor(kiln_node_output(n, i));
    if (reason != KILN_REASON_none) return reason;
  }
  return KILN_REASON_none;
}

static kiln_reason why_not(kiln_fusion *f, kiln_node *n, uint64_t *out_sizes) {
  if (!n->op) return KILN_REASON_no_lowering;
  bool pure = kiln_op_is_functional(n->op);
  if (!pure) return KILN_REASON_mutation;
  if (!kiln_codegen_has_lowering(n->op)) return kiln_codegen_can_lower(n);
  if (kiln_alias_node_writes(kiln_pass_alias(f->pass), n)) return KILN_REASON_mutation;
  /* Without users it is there for its complaint. */
  if (n->output_count == 1 && !n->outputs[0]->uses && kiln_node_raises(n))
    return KILN_REASON_index_not_all_read;
  if (kiln__fusion_is_map(n)) *out_sizes = kiln__fusion_find_sizes(f, n);
  kiln_reason reason = check_values(f, n, *out_sizes);
  if (reason != KILN_REASON_none) return reason;
  if (n->op->variant == KILN_VARIANT_COPY && !kiln_shape_keeps_self(n)) {
    return KILN_REASON_result_type;
  }
  reason = kiln_codegen_can_lower(n);
  return reason == KILN_REASON_none && kiln_codegen_contracts(n->op)
             ? kiln__fusion_check_product(f, n)
             : reason;
}

/* Nodes whose refusal is worth telling: those that compute something. */
bool kiln__fusion_is_work(const kiln_node *n) {
  if (!n->op || n->block_count) return false;
  switch (n->op->cost) {
    case KILN_COST_pointwise:
    case KILN_COST_reduction:
    case KILN_COST_heavy:
    case KILN_COST_data: return true;
    default: return false;
  }
}

bool kiln__fusion_is_map(const kiln_node *n) {
  const bool moves = n->op->cost != KILN_COST_pointwise && n->op->cost != KILN_COST_reduction &&
                     n->op->cost != KILN_COST_heavy;
  return moves || n->op->flags & KILN_OP_WINDOWS;
}

/* to(x, dtype) of another one, which is never x itself. */
static bool changes_dtype(const kiln_node *n) {
  if (n->input_count == 0 || n->output_count != 1 || !kiln_type_is_tensor(n->outputs[0]->type) ||
      !kiln_type_is_tensor(kiln_node_input(n, 0)->type))
    return false;
  const kiln_tensor_detail *from = kiln_node_input(n, 0)->type->detail;
  const kiln_tensor_detail *to = n->outputs[0]->type->detail;
  return from && to && kiln_dtype_is_valid(from->dtype) && kiln_dtype_is_valid(to->dtype) &&
         from->dtype != to->dtype;
}

static bool widens(const kiln_node *n) {
  if (n->op->cost != KILN_COST_data || !changes_dtype(n)) return false;
  const int from = kiln_node_input(n, 0)->type->detail->dtype;
  return kiln_dtype_is_half(from) && n->outputs[0]->type->detail->dtype == KILN_DTYPE_F32;
}

/* x.permute(0, 2, 1, 3).reshape(1, 8, 6, 6): no view of its argument has those sizes. With symbols
 * any reshape of what is permuted counts. */
static bool is_reshape_that_copies(const kiln_node *n) {
  if (!kiln_node_is(n, KILN_OP_reshape)) return false;
  const kiln_ir_value *x = kiln_node_input(n, 0);
  const kiln_tensor_detail *from = x->type->detail, *to = n->outputs[0]->type->detail;
  if (!kiln_type_is_complete_tensor(x->type) || !kiln_type_is_complete_tensor(n->outputs[0]->type))
    return kiln_node_is(x->node, KILN_OP_permute) || kiln_node_is(x->node, KILN_OP_transpose_int);
  int64_t strides[KILN_MAX_RANK], ignored[KILN_MAX_RANK];
  kiln_tensor_detail_strides(from, strides);
  return !kiln_strides_view(&(kiln_strided){from->rank, from->sizes, strides}, to->rank, to->sizes,
                            ignored);
}

bool kiln__fusion_moves_pixels(const kiln_node *n) {
  bool moves = false;
  if (!is_reshape_that_copies(n)) return false;
  for (const kiln_use *u = n->outputs[0]->uses; u && !moves; u = u->next)
    moves = u->index == 0 && u->user->op && kiln_codegen_convolves(u->user->op);
  return moves;
}

bool kiln__fusion_is_for_once(const kiln_node *n) {
  return widens(n) || kiln__fusion_moves_pixels(n);
}

/* Its results may be an argument's memory, or are a list; or are made of nothing, and worth it only
 * where nobody else wants them. */
static bool shares(const kiln_node *n) {
  if (!kiln__fusion_is_map(n) || n->op->flags & KILN_OP_WINDOWS) return false;
  if (n->op->cost == KILN_COST_data && changes_dtype(n)) return false;
  if (kiln__fusion_moves_pixels(n)) return false;
  if (kiln_codegen_is_new(n->op)) return true;
  const kiln_schema *s = n->op->schema;
  return n->op->cost != KILN_COST_data || (n->op->flags & KILN_OP_MAY_RETURN_ARG) || !s ||
         s->results[0].alias.present;
}

void kiln__fusion_refuse(kiln_fusion *f, const kiln_node *n, kiln_reason reason) {
  if (kiln_node_is_whole(n)) return; /* its parts tell */
  kiln_str s = n->op && n->op->full_name.len ? n->op->full_name : n->name;
  kiln_pass_refuse(f->pass, n, reason, kiln_arena_str(f->arena, s).data);
}

/* -- Blocks -- */

/* A list of tensors that has one reader stands right before it, so that they join together. */
static void move_lists(kiln_fusion *f) {
  for (kiln_node *n = f->block->first, *next; n; n = next) {
    next = n->next;
    const kiln_ir_value *list = n->output_count == 1 ? n->outputs[0] : NULL;
    if (!kiln_node_is(n, KILN_OP_prim_ListConstruct) || list->use_count != 1) continue;
    kiln_node *user = list->uses->user;
    if (!is_list_of_tensors(list) || user->block != f->block || user == next ||
        user == f->block->ret || !kiln_codegen_has_lowering(user->op)) {
      continue;
    }
    kiln_node_detach(n);
    kiln_node_insert_before(n, user);
    f->pass->changed = true;
  }
}

/* Whether weights and constants alone make it. */
static bool is_of_weights(const kiln_fusion *f, const kiln_node *n) {
  for (int i = 0; i < n->input_count; i++) {
    const kiln_ir_value *v = kiln_node_input(n, i);
    const bool inside = v->node->block == f->block && v->node != f->block->param;
    if (!kiln_ir_value_is_of_weights(v) && !kiln_ir_value_constant(v) &&
        !(inside && f->nodes[v->node->mark - 1].of_weights))
      return false;
  }
  return n->input_count > 0;
}

/* False: there is nothing to fuse. */
static bool find_nodes(kiln_fusion *f) {
  int count = 0;
  move_lists(f);
  for (kiln_node *n = f->block->first; n; n = n->next) n->mark = (uint32_t)++count;
  f->count = count;
  f->nodes = KILN_NEW_ARRAY(f->arena, kiln_fusion_node, count + 1);
  bool any = false;
  int i = 0;
  for (kiln_node *n = f->block->first; n; n = n->next, i++) {
    f->nodes[i].node = n;
    f->nodes[i].cluster = i;
    f->nodes[i].next_member = -1;
    if (n->block_count || kiln_node_is(n, KILN_OP_prim_Constant)) continue;
    kiln_reason reason = why_not(f, n, &f->nodes[i].sizes);
    f->nodes[i].fusible = reason == KILN_REASON_none;
    f->nodes[i].is_view = f->nodes[i].fusible && shares(n);
    f->nodes[i].of_weights = f->nodes[i].fusible && is_of_weights(f, n);
    any |= f->nodes[i].fusible && !f->nodes[i].is_view;
    if (reason != KILN_REASON_none && kiln__fusion_is_work(n)) kiln__fusion_refuse(f, n, reason);
  }
  return any;
}

typedef KILN_VEC(kiln_fusion) kiln_fusion_list;

/* The partitions of the block and those in it, inner ones first. */
static void find_groups(kiln_pass *pass, kiln_block *block, kiln_fusion_list *list) {
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) find_groups(pass, n->blocks[b], list);
  }
  kiln_fusion f = {.pass = pass, .arena = pass->scratch, .block = block};
  if (!find_nodes(&f)) return;
  kiln__fusion_order(&f);
  if (!kiln__fusion_partition(&f)) return;
  kiln_vec_push(pass->scratch, list, f);
}

static void infer(kiln_pass *pass, kiln_node *n) {
  const kiln_type *before[KILN_MAX_OUTS];
  const int count = n->output_count < KILN_MAX_OUTS ? n->output_count : KILN_MAX_OUTS;
  for (int i = 0; i < count; i++) before[i] = n->outputs[i]->type;
  (void)kiln_shape_infer(n->graph, n);
  for (int i = 0; i < count; i++) pass->changed |= n->outputs[i]->type != before[i];
}
/* What the profile did not see follows from what it saw. */
static void learn_block(kiln_pass *pass, kiln_numbers *numbers, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) learn_block(pass, numbers, n->blocks[b]);
    if (n->op && n->block_count == 0) infer(pass, n);
    kiln_numbers_learn(numbers, n);
  }
}

kiln_status *kiln_pass_fuse_groups(kiln_pass *pass) {
  kiln_fusion_list list = {0};
  kiln_numbers numbers;
  kiln_numbers_begin(&numbers, pass->graph, pass->scratch);
  learn_block(pass, &numbers, pass->graph->top);
  find_groups(pass, pass->graph->top, &list);
  kiln_numbers_end(&numbers);
  for (int i = 0; i < list.count; i++) kiln__fusion_build(&list.data[i]);
  if (list.count) kiln_pass_forget_alias(pass);
  return NULL;
}
