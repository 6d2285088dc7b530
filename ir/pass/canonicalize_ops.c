/* canonicalize_ops.c: pass `canonicalize_ops`: one form where the language has several.
 *
 * A second operand that is a constant tensor of no dimensions (so traces keep the numbers of
 * Python) becomes the Scalar overload with its item, as in PyTorch's executor: a number has no
 * dtype of its own, so that int64 times 0.5 is float32; `aten::chunk` with constant arguments whose
 * list is only taken apart becomes prim::ConstantChunk, which fusion understands. */
#include "ir/pass.h"

/* -- add(x, tensor(2)) => add(x, 2) -- */

static const struct {
  const char *tensor, *scalar;
} scalar_forms[] = {
    {"aten::add.Tensor", "aten::add.Scalar"},
    {"aten::sub.Tensor", "aten::sub.Scalar"},
    {"aten::mul.Tensor", "aten::mul.Scalar"},
    {"aten::div.Tensor", "aten::div.Scalar"},
};

static bool item_of(const kiln_tensor *t, kiln_ivalue *out) {
  if (kiln_tensor_rank(t) != 0 || t->key.f.undefined || t->key.f.requires_grad) return false;
  kiln_status *status = NULL;
  if (kiln_dtype_is_float(kiln_tensor_dtype(t))) {
    double f = 0;
    status = kiln_tensor_item_f64(t, &f);
    *out = kiln_float(f);
  } else if (kiln_dtype_is_int(kiln_tensor_dtype(t), false)) {
    int64_t i = 0;
    status = kiln_tensor_item_i64(t, &i);
    *out = kiln_int(i);
  } else {
    return false; /* bools and complex numbers stay tensors */
  }
  bool ok = !status;
  kiln_status_destroy(status);
  return ok;
}

static bool to_scalar_form(kiln_pass *pass, kiln_node *node) {
  for (size_t i = 0; i < sizeof scalar_forms / sizeof *scalar_forms; i++) {
    if (!kiln_str_is(node->op->full_name, scalar_forms[i].tensor)) continue;
    const kiln_op *scalar =
        kiln_registry_find_exact(pass->graph->registry, kiln_str_from(scalar_forms[i].scalar));
    const kiln_ivalue *c = kiln_ir_value_constant(kiln_node_input(node, 1));
    kiln_ivalue item;
    if (!scalar || !c || c->tag != KILN_TAG_TENSOR || !item_of(c->u.tensor, &item)) {
      return false;
    }
    const kiln_type *type =
        kiln_type_basic(item.tag == KILN_TAG_INT ? KILN_TYPE_INT : KILN_TYPE_FLOAT);
    kiln_node_set_input(node, 1, kiln_insert_constant_before(node, item, type));
    node->op = scalar;
    return true;
  }
  return false;
}

/* -- chunk => ConstantChunk -- */

static bool to_constant_chunk(kiln_node *node) {
  if (!kiln_str_is(node->op->full_name, "aten::chunk")) return false;
  int64_t chunks, dim;
  kiln_ir_value *list = kiln_node_output(node, 0);
  if (!kiln_ir_value_const_int(kiln_node_input(node, 1), &chunks) ||
      !kiln_ir_value_const_int(kiln_node_input(node, 2), &dim) || list->use_count != 1) {
    return false;
  }
  KILN_ASSERT(list->uses);
  kiln_node *unpack = list->uses->user;
  if (!kiln_node_is(unpack, KILN_OP_prim_ListUnpack) || unpack->output_count != chunks)
    return false;
  kiln_node *chunk = kiln_node_create_id(node->graph, KILN_OP_prim_ConstantChunk);
  kiln_node_add_input(chunk, kiln_node_input(node, 0));
  kiln_node_set_int(chunk, "chunks", chunks);
  kiln_node_set_int(chunk, "dim", dim);
  chunk->range = node->range;
  chunk->scope = node->scope;
  kiln_node_insert_before(chunk, node);
  for (int i = 0; i < unpack->output_count; i++) {
    kiln_ir_value *old = kiln_node_output(unpack, i);
    kiln_ir_value *out = kiln_node_add_output(chunk, old->type);
    if (old->name.len > 0) kiln_ir_value_set_name(out, old->name);
    kiln_ir_value_replace_uses(old, out);
  }
  kiln_node_destroy(unpack);
  kiln_node_destroy(node);
  return true;
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    next = n->next;
    if (!n->op) continue;
    /* The unpack that goes with the chunk may be the next node. */
    bool next_is_user = next && n->output_count == 1 && kiln_node_output(n, 0)->uses &&
                        kiln_node_output(n, 0)->uses->user == next;
    kiln_node *after = next_is_user ? next->next : next;
    if (to_constant_chunk(n)) {
      next = after;
      pass->changed = true;
    } else if (to_scalar_form(pass, n)) {
      pass->changed = true;
    }
  }
}

kiln_status *kiln_pass_canonicalize_ops(kiln_pass *pass) {
  visit_block(pass, pass->graph->top);
  return NULL;
}
