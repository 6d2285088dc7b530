/* decompose_ops.c: pass `decompose_ops`: the bias of a product is added where the group adds up.
 *
 * linear(x, w, b) and addmm(b, x, y) whose result goes into one pointwise operator become a product
 * and an add: the add joins the operator's group, which passes over the result anyway. (PyTorch's
 * DecomposeOps does it to addmm.) Left alone are dtypes narrower than float32, whose sum would be
 * rounded twice, and results that are read more than once or kept: there the product adds the bias
 * for nothing. */
#include "codegen/codegen.h"
#include "jit/fusion.h"

static bool is_float(const kiln_ir_value *v, int *out_dtype) {
  if (!kiln_type_has_dims(v->type)) return false;
  const kiln_tensor_detail *d = v->type->detail;
  *out_dtype = d->dtype;
  return (d->dtype == KILN_DTYPE_F32 || d->dtype == KILN_DTYPE_F64) && d->requires_grad != 1;
}

/* Its one reader is an operator of the same block that may be in a group. */
static bool feeds_group(const kiln_node *n) {
  const kiln_ir_value *result = kiln_node_output(n, 0);
  if (result->use_count != 1) return false;
  const kiln_node *user = result->uses->user;
  return user->block == n->block && user->op && user->op->cost == KILN_COST_pointwise &&
         user->op->variant == KILN_VARIANT_NONE && kiln_codegen_has_lowering(user->op);
}

/* The index of its bias, where the operator is one that this pass takes apart; or -1. */
static int bias_of(const kiln_node *n) {
  if (kiln_node_is(n, KILN_OP_linear)) return 2;
  if (!kiln_node_is(n, KILN_OP_addmm)) return -1;
  const bool plain = kiln_ir_value_is_number(kiln_node_input(n, 3), 1) &&
                     kiln_ir_value_is_number(kiln_node_input(n, 4), 1);
  return plain ? 0 : -1;
}

static bool decompose(kiln_node *n) {
  int index = bias_of(n), dtype, bias_dtype;
  if (index < 0 || !feeds_group(n)) return false;
  kiln_ir_value *bias = kiln_node_input(n, index), *result = kiln_node_output(n, 0);
  if (!is_float(result, &dtype) || !is_float(bias, &bias_dtype) || dtype != bias_dtype)
    return false;
  /* A bias of linear that is no vector broadcasts to rows that are counted through. */
  if (index == 2 && bias->type->detail->rank != 1) return false;
  kiln_graph *graph = n->graph;
  kiln_node *add = kiln_node_create_id(graph, KILN_OP_add_Tensor);
  kiln_ir_value *sum = kiln_node_add_output(add, result->type);
  kiln_ir_value_replace_uses(result, sum);
  kiln_node_add_input(add, result);
  kiln_node_add_input(add, bias);
  kiln_node_insert_after(add, n);
  kiln_node_add_input(
      add, kiln_insert_constant_before(add, kiln_int(1), kiln_type_basic(KILN_TYPE_INT)));
  add->range = n->range;
  add->scope = n->scope;
  if (index == 2) {
    kiln_node_set_input(
        n, 2, kiln_insert_constant_before(n, kiln_none(), kiln_type_basic(KILN_TYPE_NONE)));
  } else {
    for (int i = 4; i >= 3; i--) kiln_node_remove_input(n, i);
    kiln_node_remove_input(n, 0);
    n->op = kiln_registry_op(graph->registry, KILN_OP_mm);
    n->name = n->op->name;
  }
  return true;
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    if (decompose(n)) pass->changed = true;
  }
}

kiln_status *kiln_pass_decompose_ops(kiln_pass *pass) {
  visit_block(pass, pass->graph->top);
  return NULL;
}
