/* fusion_sizes.c: ints that are made of tensors' sizes: y = interpolate(x, size=skip.shape[2:]).
 *
 * Of the argument a group's kernel needs nothing but the sizes that the result has by it. So the
 * group has copies of the nodes that make it, and reads the tensor whose sizes they are: the guard
 * that checks the tensor's type then decides on the result's. */
#include "jit/fusion.h"

enum { MAX_DEPTH = 32, MAX_NODES = 512 }; /* of such an argument */

static bool is_ints(const kiln_type *type) {
  if (type->kind == KILN_TYPE_OPTIONAL) type = type->elems[0];
  return type->kind == KILN_TYPE_INT ||
         (type->kind == KILN_TYPE_LIST && type->elems[0]->kind == KILN_TYPE_INT);
}

static bool makes_sizes(const kiln_node *n) {
  if (!n->op) return false;
  switch ((kiln_op_id)n->op->id) {
    case KILN_OP_size:
    case KILN_OP_size_int:
    case KILN_OP_dim:
    case KILN_OP_len_t:
    case KILN_OP_slice_t:
    case KILN_OP_list_t:
    case KILN_OP_add_t:
    case KILN_OP___getitem___t:
    case KILN_OP_prim_ListConstruct:
    case KILN_OP_prim_ListUnpack:
    case KILN_OP_add_int:
    case KILN_OP_sub_int:
    case KILN_OP_mul_int:
    case KILN_OP_floordiv_int:
    case KILN_OP_remainder_int:
    case KILN_OP_neg_int:
    case KILN_OP_prim_max_int:
    case KILN_OP_prim_min_int:
    case KILN_OP_Float_Scalar: /* a trace's quotients */
    case KILN_OP_to_float32:
    case KILN_OP_neg_float:
    case KILN_OP_add_float:
    case KILN_OP_sub_float:
    case KILN_OP_mul_float:
    case KILN_OP_div_float:
    case KILN_OP_floordiv_float:
    case KILN_OP_prim_max_float:
    case KILN_OP_prim_min_float:
    case KILN_OP_ceil_float:
    case KILN_OP_floor_float:
    case KILN_OP_Int_float: return true;
    default: return false;
  }
}

/* A tensor whose type is what the guard will have checked when the argument is made. */
static bool is_source(const kiln_fusion *f, const kiln_ir_value *v) {
  return kiln_type_is_complete_tensor(v->type) &&
         kiln__fusion_check_tensor(v) == KILN_REASON_none &&
         !kiln_alias_has_writers(kiln_pass_alias(f->pass), v);
}

static bool is_made(const kiln_fusion *f, const kiln_ir_value *v, int depth, int *left) {
  if (kiln_type_is_tensor(v->type)) return is_source(f, v);
  if (kiln__fusion_is_inline(v)) return true;
  const bool is_number = v->type->kind == KILN_TYPE_INT || v->type->kind == KILN_TYPE_FLOAT;
  if ((!is_number && !is_ints(v->type)) || depth == MAX_DEPTH || --*left < 0 ||
      !makes_sizes(v->node))
    return false;
  if (!is_number && !kiln_shape_list_stays(v)) return false;
  for (int i = 0; i < v->node->input_count; i++) {
    if (!is_made(f, kiln_node_input(v->node, i), depth + 1, left)) return false;
  }
  return true;
}

uint64_t kiln__fusion_find_sizes(const kiln_fusion *f, const kiln_node *n) {
  uint64_t found = 0;
  for (int i = 0; i < n->input_count && i < 64; i++) {
    const kiln_ir_value *v = kiln_node_input(n, i);
    int left = MAX_NODES;
    if (is_ints(v->type) && !kiln__fusion_is_inline(v) && is_made(f, v, 0, &left))
      found |= UINT64_C(1) << i;
  }
  return found;
}

static void add_sources(const kiln_fusion *f, kiln_ir_value *v, kiln_fusion_reads *out) {
  if (kiln__fusion_is_inline(v)) return;
  if (kiln_type_is_tensor(v->type)) {
    kiln_vec_push(f->arena, out, v);
    return;
  }
  for (int i = 0; i < v->node->input_count; i++) add_sources(f, kiln_node_input(v->node, i), out);
}

void kiln__fusion_add_reads(const kiln_fusion *f, const kiln_fusion_node *n,
                            kiln_fusion_reads *out) {
  for (int i = 0; i < n->node->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(n->node, i);
    if (kiln__fusion_is_of_sizes(n->sizes, i)) {
      add_sources(f, v, out);
    } else if (!kiln__fusion_is_inline(v)) {
      kiln_vec_push(f->arena, out, v);
    }
  }
}

void kiln__fusion_copy_sizes(kiln_graph *sub, kiln_ir_value *v, kiln_map *map) {
  if (kiln_map_find_ptr(map, v)) return;
  for (int i = 0; i < v->node->input_count; i++)
    kiln__fusion_copy_sizes(sub, kiln_node_input(v->node, i), map);
  kiln_node *copy = kiln_node_copy(sub, v->node, map);
  kiln_node_append(sub->top, copy);
  for (int i = 0; i < copy->output_count; i++)
    kiln_map_set_ptr(map, v->node->outputs[i], copy->outputs[i]);
}
