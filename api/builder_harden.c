/* builder_harden.c: what a graph only claims is made sure before it runs.
 *
 * Archives come from a compiler that has proved its casts; a text or a host has proved nothing. So
 * an unchecked cast is preceded by the check that it leaves out, an unchecked unwrapping becomes
 * the one that raises, and what is uninitialised becomes an empty value of its type. */
#include "api/builder.h"

enum { MAX_DEPTH = 32 };

/* -- Casts -- */

/* if not isinstance(x, T): raise */
static void check_cast(kiln_builder *b, kiln_node *cast) {
  kiln_type_table *types = b->unit->types;
  kiln_ir_value *from = kiln_node_input(cast, 0);
  const kiln_type *type = kiln_type_unshaped(types, kiln_node_output(cast, 0)->type);
  kiln_graph *graph = b->graph;
  if (kiln_type_is_subtype(kiln_type_unshaped(types, from->type), type)) return;
  kiln_node *is = kiln_node_create_id(graph, KILN_OP_prim_isinstance);
  kiln_node_set_types(is, "types", &type, 1);
  kiln_node_add_input(is, from);
  kiln_ir_value *good = kiln_node_add_output(is, kiln_type_basic(KILN_TYPE_BOOL));
  kiln_node *branch = kiln_node_create_id(graph, KILN_OP_prim_If);
  kiln_node_add_input(branch, good);
  kiln_node_insert_before(is, cast);
  kiln_node_insert_before(branch, cast);
  kiln_node_add_block(branch);
  kiln_block *bad = kiln_node_add_block(branch);
  kiln_text text = kiln_text_in(graph->arena);
  kiln_text_puts(&text, "a value is cast to ");
  kiln_type_print(&text, type, 0);
  kiln_text_puts(&text, ", which it is not");
  kiln_node *raise = kiln_node_create_id(graph, KILN_OP_prim_RaiseException);
  kiln_node *message = kiln_node_create_id(graph, KILN_OP_prim_Constant);
  kiln_node_set_str(message, "value", kiln_text_str(&text));
  kiln_node_add_input(raise, kiln_node_add_output(message, kiln_type_basic(KILN_TYPE_STR)));
  kiln_node_append(bad, message);
  kiln_node_add_input(raise,
                      kiln_append_constant(bad, kiln_none(), kiln_type_basic(KILN_TYPE_NONE)));
  kiln_node_append(bad, raise);
}

static kiln_status *check_unwrap(kiln_builder *b, kiln_node *node) {
  const kiln_type *type = kiln_node_input(node, 0)->type;
  if (type->kind != KILN_TYPE_OPTIONAL) {
    check_cast(b, node);
    return NULL;
  }
  kiln_node *made = kiln_node_create_id(b->graph, KILN_OP__unwrap_optional);
  kiln_node_add_input(made, kiln_node_input(node, 0));
  kiln_ir_value *value = kiln_node_add_output(made, type->elems[0]);
  kiln_node_insert_before(made, node);
  kiln_ir_value_replace_uses(kiln_node_output(node, 0), value);
  kiln_node_destroy(node);
  return NULL;
}

/* -- Uninitialised values -- */

static kiln_status *refuse(const kiln_type *type) {
  return KILN_ERROR(KILN_UNSUPPORTED, "an uninitialised value of a type of kind %d cannot be made",
                    (int)type->kind);
}

static kiln_ir_value *constant(kiln_node *anchor, kiln_ivalue v, kiln_type_kind kind) {
  return kiln_insert_constant_before(anchor, v, kiln_type_basic(kind));
}

static kiln_status *make_empty(kiln_builder *b, kiln_node *anchor, const kiln_type *type, int depth,
                               kiln_ir_value **out_value);

static kiln_status *make_empty_tensor(kiln_builder *b, kiln_node *anchor,
                                      kiln_ir_value **out_value) {
  const int64_t sizes[1] = {0};
  kiln_tensor *t = NULL;
  KILN_TRY(kiln_tensor_create(b->context->env->mem, NULL, KILN_DTYPE_F32, 1, sizes, &t));
  *out_value = constant(anchor, kiln_of_tensor(t), KILN_TYPE_TENSOR);
  return NULL;
}

static kiln_status *make_empty_container(kiln_builder *b, kiln_node *anchor, const kiln_type *type,
                                         int depth, kiln_ir_value **out_value) {
  const kiln_op_id id = type->kind == KILN_TYPE_LIST   ? KILN_OP_prim_ListConstruct
                        : type->kind == KILN_TYPE_DICT ? KILN_OP_prim_DictConstruct
                                                       : KILN_OP_prim_TupleConstruct;
  int count = type->kind == KILN_TYPE_TUPLE ? type->elem_count : 0;
  kiln_ir_value **items = KILN_NEW_ARRAY(b->graph->arena, kiln_ir_value *, count + 1);
  for (int i = 0; i < count; i++) {
    KILN_TRY(make_empty(b, anchor, type->elems[i], depth + 1, &items[i]));
  }
  kiln_node *node = kiln_node_create_id(b->graph, id);
  for (int i = 0; i < count; i++) kiln_node_add_input(node, items[i]);
  *out_value = kiln_node_add_output(node, type);
  kiln_node_insert_before(node, anchor);
  return NULL;
}

static kiln_status *make_empty(kiln_builder *b, kiln_node *anchor, const kiln_type *type, int depth,
                               kiln_ir_value **out_value) {
  if (depth > MAX_DEPTH) return refuse(type);
  switch (type->kind) {
    case KILN_TYPE_TENSOR: return make_empty_tensor(b, anchor, out_value);
    case KILN_TYPE_INT:
    case KILN_TYPE_NUMBER: *out_value = constant(anchor, kiln_int(0), KILN_TYPE_INT); break;
    case KILN_TYPE_FLOAT: *out_value = constant(anchor, kiln_float(0), KILN_TYPE_FLOAT); break;
    case KILN_TYPE_BOOL: *out_value = constant(anchor, kiln_bool(false), KILN_TYPE_BOOL); break;
    case KILN_TYPE_STR: {
      kiln_node *node = kiln_node_create_id(b->graph, KILN_OP_prim_Constant);
      kiln_node_set_str(node, "value", KILN_STR(""));
      *out_value = kiln_node_add_output(node, type);
      kiln_node_insert_before(node, anchor);
      break;
    }
    case KILN_TYPE_NONE:
    case KILN_TYPE_ANY:
    case KILN_TYPE_OPTIONAL: *out_value = constant(anchor, kiln_none(), KILN_TYPE_NONE); break;
    case KILN_TYPE_LIST:
    case KILN_TYPE_DICT:
    case KILN_TYPE_TUPLE: return make_empty_container(b, anchor, type, depth, out_value);
    default: return refuse(type);
  }
  return NULL;
}

static kiln_status *fill_uninitialized(kiln_builder *b, kiln_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value *value;
    const kiln_type *type = kiln_type_unshaped(b->unit->types, node->outputs[i]->type);
    KILN_TRY(make_empty(b, node, type, 0, &value));
    kiln_ir_value_replace_uses(node->outputs[i], value);
  }
  kiln_node_destroy(node);
  return NULL;
}

/* -- All -- */

kiln_status *kiln__builder_harden(kiln_builder *b, const kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int i = 0; i < n->block_count; i++) KILN_TRY(kiln__builder_harden(b, n->blocks[i]));
    if (!n->op) continue;
    switch (n->op->id) {
      case KILN_OP_prim_unchecked_cast:
        if (n->input_count != 1 || n->output_count != 1) {
          return KILN_ERROR(KILN_INVALID_ARGUMENT, "a cast has one input and one result");
        }
        check_cast(b, n);
        break;
      case KILN_OP_prim_unchecked_unwrap_optional:
        if (n->input_count != 1 || n->output_count != 1) {
          return KILN_ERROR(KILN_INVALID_ARGUMENT, "an unwrapping has one input and one result");
        }
        KILN_TRY(check_unwrap(b, n));
        break;
      case KILN_OP_prim_Uninitialized: KILN_TRY(fill_uninitialized(b, n)); break;
      default: break;
    }
  }
  return NULL;
}
