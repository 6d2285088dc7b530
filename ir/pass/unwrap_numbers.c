/* unwrap_numbers.c: pass `unwrap_numbers`: numbers that traces keep as tensors are numbers again.
 *
 * A trace has no place for the 0.5 of `x * 0.5`: it stores a tensor of no dimensions, and PyTorch's
 * executor takes such a literal, where it is the second operand of add, sub, mul or div, for the
 * number that it was. That decides on dtypes, for a number has none of its own: int64 times 0.5 is
 * float32, times a tensor float64. Which constants may be numbers is a property of theirs
 * (`wrapped`), given by who reads the archive: what folding or freezing makes constant is a tensor,
 * however it looks. Every pipeline has this pass before those that fold. */
#include "ir/pass.h"

/* add(x, tensor(2)) => add(x, 2) */
static const struct {
  kiln_op_id tensor, scalar;
} forms[] = {
    {KILN_OP_add_Tensor, KILN_OP_add_Scalar},
    {KILN_OP_sub_Tensor, KILN_OP_sub_Scalar},
    {KILN_OP_mul_Tensor, KILN_OP_mul_Scalar},
    {KILN_OP_div_Tensor, KILN_OP_div_Scalar},
};

static const kiln_op *scalar_form(const kiln_node *node) {
  if (!node->op || node->op->variant != KILN_VARIANT_NONE) return NULL;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    if (node->op->id == (int)forms[i].tensor) {
      return kiln_registry_op(node->graph->registry, forms[i].scalar);
    }
  }
  return NULL;
}

/* The item, owned by the caller. */
static kiln_status *item_of(kiln_pass *pass, const kiln_tensor *t, kiln_ivalue *out) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  *out = kiln_none();
  if (kiln_dtype_is_complex(dtype)) {
    double re = 0, im = 0;
    kiln_complex *box = NULL;
    KILN_TRY(kiln_tensor_item_c128(t, &re, &im));
    KILN_TRY(kiln_complex_create(pass->env->mem, re, im, &box));
    *out = kiln_of_box(box);
    return NULL;
  }
  if (kiln_dtype_is_float(dtype)) {
    *out = kiln_float(0);
    return kiln_tensor_item_f64(t, &out->u.f);
  }
  *out = kiln_int(0);
  return kiln_tensor_item_i64(t, &out->u.i);
}

static const kiln_type *number_type(kiln_ivalue item) {
  return kiln_type_basic(item.tag == KILN_TAG_INT     ? KILN_TYPE_INT
                         : item.tag == KILN_TAG_FLOAT ? KILN_TYPE_FLOAT
                                                      : KILN_TYPE_COMPLEX);
}

static kiln_status *unwrap(kiln_pass *pass, kiln_node *node) {
  const kiln_op *op = scalar_form(node);
  const kiln_ir_value *other = op ? kiln_node_input(node, 1) : NULL;
  if (!other || !kiln_ir_value_is_wrapped_number(other)) return NULL;
  /* Room now: between making and owning the item nothing may be allocated. */
  kiln_vec_reserve(node->graph->arena, &node->graph->owned, node->graph->owned.count + 1);
  kiln_ivalue item;
  KILN_TRY(item_of(pass, kiln_ir_value_constant(other)->u.tensor, &item));
  kiln_node_set_input(node, 1, kiln_insert_constant_before(node, item, number_type(item)));
  node->op = op;
  pass->changed = true;
  return NULL;
}

static kiln_status *visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) KILN_TRY(visit_block(pass, n->blocks[b]));
    KILN_TRY(unwrap(pass, n));
  }
  return NULL;
}

kiln_status *kiln_pass_unwrap_numbers(kiln_pass *pass) {
  return visit_block(pass, pass->graph->top);
}
