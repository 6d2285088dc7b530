/* match_fill.c: the nodes between a call's arguments and what its schema takes: defaults, lists,
 * and implicit conversions. */
#include "ir/match.h"

static kiln_ir_value *append(const kiln_filler *f, kiln_node *node) {
  f->append(f->user, node);
  return node->output_count > 0 ? kiln_node_output(node, 0) : NULL;
}

static kiln_ir_value *make_list(const kiln_filler *f, const kiln_type *elem,
                                kiln_ir_value *const *items, int count) {
  kiln_node *node = kiln_node_create_id(f->graph, KILN_OP_prim_ListConstruct);
  for (int i = 0; i < count; i++) kiln_node_add_input(node, items[i]);
  kiln_node_add_output(node, kiln_type_list(f->graph->types, elem));
  return append(f, node);
}

static const kiln_type *constant_type(kiln_ivalue value, const kiln_type *formal) {
  if (formal->kind == KILN_TYPE_OPTIONAL) formal = formal->elems[0];
  switch ((kiln_tag)value.tag) {
    case KILN_TAG_NONE: return kiln_type_basic(KILN_TYPE_NONE);
    case KILN_TAG_INT: return kiln_type_basic(KILN_TYPE_INT);
    case KILN_TAG_FLOAT: return kiln_type_basic(KILN_TYPE_FLOAT);
    case KILN_TAG_BOOL: return kiln_type_basic(KILN_TYPE_BOOL);
    case KILN_TAG_COMPLEX: return kiln_type_basic(KILN_TYPE_COMPLEX);
    default: return formal;
  }
}

static kiln_status *collect(const kiln_filler *f, const kiln_match_slot *slot, const kiln_arg *args,
                            kiln_ir_value **out) {
  const kiln_type *elem = kiln_match_elem(slot);
  kiln_ir_value **items = KILN_NEW_ARRAY(f->arena, kiln_ir_value *, slot->collect + 1);
  for (int i = 0; i < slot->collect; i++) {
    items[i] = args[slot->actual + i].value;
    if (kiln_type_is_subtype(items[i]->type, elem)) continue;
    KILN_TRY(
        f->convert(f->user, kiln_fit_op_name(KILN_FIT_TENSOR_TO_INT), items[i], elem, &items[i]));
  }
  *out = make_list(f, elem, items, slot->collect);
  return NULL;
}

static kiln_status *fill_slot(const kiln_filler *f, const kiln_schema_arg *formal,
                              const kiln_match_slot *slot, const kiln_arg *args,
                              kiln_ir_value **out) {
  if (slot->fit == KILN_FIT_DEFAULT) {
    const kiln_type *type = constant_type(formal->default_value, formal->type);
    *out = append(
        f, kiln_node_create_constant(f->graph, kiln_ivalue_retain(formal->default_value), type));
    return NULL;
  }
  KILN_ASSERT(args && slot->actual >= 0);
  kiln_ir_value *value = args[slot->actual].value;
  switch (slot->fit) {
    case KILN_FIT_SAME: *out = value; return NULL;
    case KILN_FIT_EMPTY_LIST: *out = make_list(f, kiln_match_elem(slot), NULL, 0); return NULL;
    case KILN_FIT_REPEAT: {
      kiln_ir_value **items = KILN_NEW_ARRAY(f->arena, kiln_ir_value *, formal->fixed_count + 1);
      for (int i = 0; i < formal->fixed_count; i++) items[i] = value;
      *out = make_list(f, value->type, items, formal->fixed_count);
      return NULL;
    }
    case KILN_FIT_TUPLE_TO_LIST: {
      kiln_node *node = kiln_node_create_unpack(value);
      append(f, node);
      *out = make_list(f, kiln_match_elem(slot), node->outputs, node->output_count);
      return NULL;
    }
    case KILN_FIT_COLLECT: return collect(f, slot, args, out);
    default: return f->convert(f->user, kiln_fit_op_name(slot->fit), value, slot->type, out);
  }
}

kiln_status *kiln_fill_args(const kiln_filler *f, const kiln_schema *schema,
                            const kiln_match_slot *slots, const kiln_arg *args, int count,
                            int varargs, kiln_ir_value ***out_inputs, int *out_count) {
  kiln_ir_value **inputs = KILN_NEW_ARRAY(f->arena, kiln_ir_value *, schema->arg_count + count + 1);
  int filled = 0;
  for (int i = 0; i < schema->arg_count; i++) {
    KILN_TRY(fill_slot(f, &schema->args[i], &slots[i], args, &inputs[filled++]));
  }
  for (int i = varargs; i < count; i++) inputs[filled++] = args[i].value;
  *out_inputs = inputs;
  *out_count = filled;
  return NULL;
}

kiln_actual *kiln_args_actuals(kiln_arena *arena, kiln_type_table *types, const kiln_arg *args,
                               int count) {
  kiln_actual *out = KILN_NEW_ARRAY(arena, kiln_actual, count + 1);
  for (int i = 0; i < count; i++) {
    out[i].keyword = args[i].keyword;
    out[i].type = kiln_type_unshaped(types, args[i].value->type);
    out[i].empty_list = args[i].empty_list;
  }
  return out;
}
