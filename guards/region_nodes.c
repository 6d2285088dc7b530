/* region_nodes.c: what a region may make of a node, whatever is known of its inputs; and how much a
 * guard may check. */
#include "guards/region.h"

/* Terms of dimensions that are no numbers; those of an expression. */
enum { MAX_CHECKS = 1024, MAX_OPEN = 256, MOST_STEPS = KILN_SUM_TERMS };

bool kiln_guards_is_checked(const kiln_block *block) {
  const kiln_node *owner = block->owner;
  if (!owner || !kiln_node_is(owner, KILN_OP_prim_If) || owner->blocks[0] != block) return false;
  return kiln_node_is_type_check(kiln_node_input(owner, 0)->node);
}
bool kiln_guards_is_hit(const kiln_block *block) {
  return kiln_guards_is_checked(block) &&
         !kiln_node_attr(kiln_node_input(block->owner, 0)->node, KILN_ATTR_RANKS);
}

bool kiln__region_is_random(const kiln_node *n) {
  if (kiln_node_is(n, KILN_OP_dropout)) {
    const kiln_ivalue *train = kiln_ir_value_constant(kiln_node_input(n, 2));
    return !train || train->tag != KILN_TAG_BOOL || train->u.b;
  }
  if (kiln_node_is(n, KILN_OP_scaled_dot_product_attention)) {
    const kiln_ivalue *p = kiln_ir_value_constant(kiln_node_input(n, 4));
    return !p || p->tag != KILN_TAG_FLOAT || p->u.f != 0;
  }
  return kiln_node_is_nondeterministic(n);
}

bool kiln__region_can_ask(const kiln_node *n) {
  if (!n->op) return false;
  switch ((kiln_op_id)n->op->id) {
    case KILN_OP_prim_If: return n->output_count == 0;
    case KILN_OP_prim_Constant:
    case KILN_OP_prim_GetAttr:
    case KILN_OP_dim:
    case KILN_OP_size_int: /* which can: it is taken, or keeps what stands before it there */
    case KILN_OP___contains___int_list:
    case KILN_OP_prim_dtype:
    case KILN_OP_prim_is_cpu:
    case KILN_OP_prim_is_cuda:
    case KILN_OP___not__:
    case KILN_OP_add_int:
    case KILN_OP_sub_int:
    case KILN_OP_mul_int:
    case KILN_OP_eq_int:
    case KILN_OP_ne_int:
    case KILN_OP_lt_int:
    case KILN_OP_le_int:
    case KILN_OP_gt_int:
    case KILN_OP_ge_int: return true;
    default: return false;
  }
}

bool kiln__region_reads_any(const kiln_node *n, const kiln_map *values) {
  for (int i = 0; i < n->input_count; i++) {
    if (kiln_map_find_ptr(values, kiln_node_input(n, i))) return true;
  }
  for (int b = 0; b < n->block_count; b++) {
    if (kiln__region_reads_any(n->blocks[b]->ret, values)) return true;
    for (const kiln_node *m = n->blocks[b]->first; m; m = m->next) {
      if (kiln__region_reads_any(m, values)) return true;
    }
  }
  return false;
}

/* About how many steps it takes to work out a dimension. */
static int cost_of(const kiln_dims *dims, kiln_dim d) {
  if (kiln_dim_is_number(d) || !kiln_dim_is_known(d)) return 0;
  return kiln_dim_is_expression(d) ? 1 + kiln_sum_of(dims, d).count : 1;
}

bool kiln__region_has_room(const kiln_guard_checks *checks) {
  int open = 0;
  for (int i = 0; i < checks->types.count; i++) {
    const kiln_tensor_detail *d = checks->types.data[i]->detail;
    for (int k = 0; k < d->rank; k++)
      open += cost_of(d->dims, d->sizes[k]) + cost_of(d->dims, d->strides[k]);
  }
  for (int i = 0; i < checks->order_count; i++) open += 2 * MOST_STEPS;
  return checks->types.count <= MAX_CHECKS && open <= MAX_OPEN;
}
