/* callee.c: how a call node names what it calls. */
#include "ir/unit.h"

kiln_ir_value *kiln_append_function(kiln_block *block, kiln_function *function) {
  kiln_node *node = kiln_node_create_id(block->graph, KILN_OP_prim_Constant);
  kiln_node_set_str(node, "name", kiln_str_from(function->qualname));
  kiln_node_set_pointer(node, "function", function);
  kiln_node_append(block, node);
  return kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_FUNCTION));
}

kiln_function *kiln_call_callee(const kiln_node *call) {
  if (kiln_node_is(call, KILN_OP_prim_CallFunction)) {
    const kiln_node *constant = kiln_node_input(call, 0)->node;
    const kiln_attr *attr = kiln_node_attr(constant, "function");
    return attr && attr->kind == KILN_ATTR_POINTER ? attr->u.pointer : NULL;
  }
  if (kiln_node_is(call, KILN_OP_prim_CallMethod)) {
    const kiln_type *self = kiln_node_input(call, 0)->type;
    if (self->kind != KILN_TYPE_CLASS) return NULL;
    return kiln_class_find_method(self, kiln_node_str(call, "name"));
  }
  return NULL;
}
