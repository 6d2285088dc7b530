/* value.c: values: debug names, uses, constants.
 *
 * Names follow PyTorch: the latest value to ask for "x" gets it, and the one that had it becomes
 * "x.1", "x.2", …; the next free suffix of each base is remembered, so naming is O(1). */
#include "ir/internal.h"
#include "ir/pass.h"

void kiln_ir_value_replace_uses(kiln_ir_value *value, kiln_ir_value *with) {
  if (value == with) return;
  while (value->uses) {
    kiln_use *use = value->uses;
    kiln_node_set_input(use->user, use->index, with);
  }
}

/* -- Names -- */

static bool all_digits(kiln_str text) {
  for (size_t i = 0; i < text.len; i++) {
    if (text.data[i] < '0' || text.data[i] > '9') return false;
  }
  return true;
}

void kiln__value_drop_name(kiln_ir_value *value) {
  if (!value->name.len) return;
  kiln_graph *graph = value->node->graph;
  if (kiln_map_find(&graph->names, value->name) == value) {
    kiln_map_remove(&graph->names, value->name);
  }
  value->name = kiln_str_make("", 0);
}

static void take_name(kiln_ir_value *value, kiln_str name) {
  kiln_graph *graph = value->node->graph;
  value->name = name;
  kiln_map_set(&graph->names, name, value);
}

/* Splits "x.12" into "x" and 12; other names are their own base, with suffix 1. */
static kiln_str split_suffix(kiln_str name, int64_t *out_suffix) {
  *out_suffix = 1;
  size_t dot = kiln_str_behind_last(name, '.');
  if (dot < 2 || dot == name.len) return name;
  kiln_str digits = kiln_str_without(name, dot);
  int64_t suffix;
  if (!all_digits(digits) || digits.len > 15 || !kiln_str_parse_i64(digits, &suffix)) return name;
  *out_suffix = suffix;
  return kiln_str_make(name.data, dot - 1);
}

/* The next name of the base of `name` that nobody has, in the arena. */
static kiln_str free_name(kiln_graph *graph, kiln_str name) {
  int64_t suffix;
  kiln_str base = split_suffix(name, &suffix);
  int64_t next = (int64_t)(intptr_t)kiln_map_find(&graph->suffixes, base);
  if (next > suffix) suffix = next;
  kiln_str found;
  do {
    char *text = kiln_arena_printf(graph->arena, KILN_STR_FMT ".%lld", KILN_STR_ARG(base),
                                   (long long)suffix++);
    found = kiln_str_from(text);
  } while (kiln_map_find(&graph->names, found));
  kiln_map_set(&graph->suffixes, kiln_arena_str(graph->arena, base), (void *)(intptr_t)suffix);
  return found;
}

void kiln_ir_value_set_name(kiln_ir_value *value, kiln_str base) {
  kiln_graph *graph = value->node->graph;
  if (kiln_str_equal(value->name, base)) return;
  kiln_str name = kiln_arena_str(graph->arena, base);
  kiln__value_drop_name(value);
  if (all_digits(name)) return;
  kiln_ir_value *owner = kiln_map_find(&graph->names, name);
  if (owner) {
    kiln_str other = free_name(graph, name);
    kiln__value_drop_name(owner);
    take_name(owner, other);
  }
  take_name(value, name);
}

/* -- Constants -- */

const kiln_ivalue *kiln_ir_value_constant(const kiln_ir_value *value) {
  static const kiln_ivalue none = {.tag = KILN_TAG_NONE};
  const kiln_node *node = value->node;
  if (!kiln_node_is(node, KILN_OP_prim_Constant)) return NULL;
  const kiln_attr *attr = kiln_node_attr(node, "value");
  if (attr) return attr->kind == KILN_ATTR_VALUE ? &attr->u.value : NULL;
  return value->type->kind == KILN_TYPE_FUNCTION ? NULL : &none;
}

bool kiln_ir_value_is_weight(const kiln_ir_value *value) {
  while (kiln_node_is(value->node, KILN_OP_prim_TypeCheck) ||
         kiln_node_is(value->node, KILN_OP_prim_TensorExprDynamicGuard)) {
    if (value->index >= value->node->input_count) return false;
    value = kiln_node_input(value->node, value->index);
  }
  return value->weight || kiln_node_is(value->node, KILN_OP_prim_GetAttr) ||
         kiln_node_is(value->node, KILN_OP_prim_Constant) || kiln_node_int(value->node, "kept", 0);
}
bool kiln_ir_value_is_of_weights(const kiln_ir_value *value) {
  const kiln_node *n = value->node;
  if (!kiln_node_is(n, KILN_OP_prim_ListConstruct))
    return kiln_node_is(n, KILN_OP_prim_Constant) ||
           (kiln_type_is_tensor(value->type) && kiln_ir_value_is_weight(value));
  for (int i = 0; i < n->input_count; i++) {
    const kiln_ir_value *item = kiln_node_input(n, i);
    if (kiln_node_is(item->node, KILN_OP_prim_ListConstruct) || !kiln_ir_value_is_of_weights(item))
      return false;
  }
  return n->input_count > 0 && kiln_shape_list_stays(value);
}
bool kiln_node_is_whole_slice(const kiln_node *n) {
  int64_t begin = 0, end = INT64_MAX, by;
  if (!kiln_node_is(n, KILN_OP_slice_Tensor)) return false;
  const kiln_ir_value *from = kiln_node_input(n, 2), *to = kiln_node_input(n, 3);
  return (kiln_ir_value_is_none(from) || kiln_ir_value_const_int(from, &begin)) &&
         (kiln_ir_value_is_none(to) || kiln_ir_value_const_int(to, &end)) && begin == 0 &&
         end == INT64_MAX && kiln_ir_value_const_int(kiln_node_input(n, 4), &by) && by == 1;
}
bool kiln_node_writes_stats(const kiln_node *node) {
  if (!node->op || !node->op->stats.mean) return false;
  const kiln_op_stats stats = node->op->stats;
  if (stats.training >= node->input_count) return false;
  return !kiln_ir_value_is_bool(kiln_node_input(node, stats.training), false) &&
         (!kiln_ir_value_is_none(kiln_node_input(node, stats.mean)) ||
          !kiln_ir_value_is_none(kiln_node_input(node, stats.variance)));
}
bool kiln_ir_value_is_none(const kiln_ir_value *value) {
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  return constant && constant->tag == KILN_TAG_NONE;
}

kiln_dtype kiln_ir_number_kind(const kiln_type *type, const kiln_ivalue *constant) {
  switch (type->kind) {
    case KILN_TYPE_INT: return KILN_DTYPE_I64;
    case KILN_TYPE_FLOAT: return KILN_DTYPE_F64;
    case KILN_TYPE_BOOL: return KILN_DTYPE_BOOL;
    case KILN_TYPE_COMPLEX: return KILN_DTYPE_C128;
    default: break;
  }
  switch (constant ? constant->tag : KILN_TAG_NONE) {
    case KILN_TAG_INT: return KILN_DTYPE_I64;
    case KILN_TAG_FLOAT: return KILN_DTYPE_F64;
    case KILN_TAG_BOOL: return KILN_DTYPE_BOOL;
    case KILN_TAG_COMPLEX: return KILN_DTYPE_C128;
    default: return KILN_DTYPE_NONE;
  }
}

bool kiln_ir_value_const_int(const kiln_ir_value *value, int64_t *out_int) {
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  if (!constant || constant->tag != KILN_TAG_INT) return false;
  *out_int = constant->u.i;
  return true;
}

bool kiln_ir_value_is_bool(const kiln_ir_value *value, bool wanted) {
  const kiln_ivalue *constant = kiln_ir_value_constant(value);
  return constant && constant->tag == KILN_TAG_BOOL && constant->u.b == wanted;
}

bool kiln_ir_value_is_text(const kiln_ir_value *value, const char *wanted) {
  const kiln_ivalue *c = kiln_ir_value_constant(value);
  return c && c->tag == KILN_TAG_STRING && kiln_str_is(kiln_string_view(c->u.string), wanted);
}

bool kiln_ir_value_is_number(const kiln_ir_value *value, int64_t wanted) {
  const kiln_ivalue *c = kiln_ir_value_constant(value);
  return c && ((c->tag == KILN_TAG_INT && c->u.i == wanted) ||
               (c->tag == KILN_TAG_FLOAT && c->u.f == (double)wanted));
}

/* A bool is no number to PyTorch's executor, and what has a gradient is no constant. */
static bool is_number_tensor(const kiln_ivalue *c) {
  if (!c || c->tag != KILN_TAG_TENSOR) return false;
  const kiln_tensor *t = c->u.tensor;
  const kiln_dtype_category category = kiln_dtype_category_of(kiln_tensor_dtype(t));
  return kiln_tensor_rank(t) == 0 && !t->key.f.undefined && !t->key.f.requires_grad &&
         category != KILN_CATEGORY_BOOL && category != KILN_CATEGORY_OTHER;
}

bool kiln_ir_value_is_wrapped_number(const kiln_ir_value *value) {
  return is_number_tensor(kiln_ir_value_constant(value)) &&
         kiln_node_int(value->node, "wrapped", 0) != 0;
}

void kiln_ir_value_set_wrapped_number(kiln_ir_value *value) {
  if (is_number_tensor(kiln_ir_value_constant(value))) kiln_node_set_int(value->node, "wrapped", 1);
}

kiln_node *kiln_node_create_constant(kiln_graph *graph, kiln_ivalue value, const kiln_type *type) {
  kiln_graph_own(graph, value);
  kiln_node *node = kiln_node_create_id(graph, KILN_OP_prim_Constant);
  if (value.tag != KILN_TAG_NONE) {
    kiln_attr *attr = KILN_NEW(graph->arena, kiln_attr);
    attr->name = "value";
    attr->kind = KILN_ATTR_VALUE;
    attr->u.value = value;
    node->attrs = attr;
  }
  kiln_node_add_output(node, type);
  return node;
}

kiln_ir_value *kiln_insert_constant_before(kiln_node *anchor, kiln_ivalue value,
                                           const kiln_type *type) {
  kiln_node *node = kiln_node_create_constant(anchor->graph, value, type);
  kiln_node_insert_before(node, anchor);
  return kiln_node_output(node, 0);
}

kiln_ir_value *kiln_insert_int_before(kiln_node *anchor, int64_t value) {
  return kiln_insert_constant_before(anchor, kiln_int(value), kiln_type_basic(KILN_TYPE_INT));
}

kiln_node *kiln_insert_list_before(kiln_node *anchor) {
  kiln_node *list = kiln_node_create_like(anchor, KILN_OP_prim_ListConstruct);
  kiln_node_insert_before(list, anchor);
  return list;
}
kiln_ir_value *kiln_list_give(kiln_node *list, const kiln_type *elem) {
  return kiln_node_add_output(list, kiln_type_list(list->graph->types, elem));
}

kiln_node *kiln_node_create_unpack(kiln_ir_value *tuple) {
  kiln_node *node = kiln_node_create_id(tuple->node->graph, KILN_OP_prim_TupleUnpack);
  kiln_node_add_input(node, tuple);
  for (int i = 0; i < tuple->type->elem_count; i++) {
    kiln_node_add_output(node, tuple->type->elems[i]);
  }
  return node;
}

kiln_ir_value *kiln_append_constant(kiln_block *block, kiln_ivalue value, const kiln_type *type) {
  kiln_node *node = kiln_node_create_constant(block->graph, value, type);
  kiln_node_append(block, node);
  return kiln_node_output(node, 0);
}
