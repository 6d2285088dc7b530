/* builder.c: graphs built by the host: making, values, inputs, attributes, constants, looking. */
#include "api/builder.h"

#include "runtime/cycles.h"

/* -- Making and ending -- */

static kiln_status *init(kiln_builder *b) {
  kiln_context *context = b->context;
  b->unit = kiln_unit_create(context->env, context->registry);
  b->cls = kiln_unit_add_class(b->unit, KILN_TYPE_CLASS, KILN_STR("__torch__.Graph"));
  b->cls->type->cls->is_module = true;
  b->graph = kiln_graph_create(context->env->mem, context->registry, b->unit->types);
  kiln_graph_add_input(b->graph, "self", b->cls->type);
  b->block = b->graph->top;
  return NULL;
}
static kiln_status *try_init(kiln_builder *b) { KILN_PROTECT(init(b)); }

kiln_status *kiln_builder_create(kiln_context *context, kiln_builder **out_builder) {
  KILN_NEEDS(context && out_builder);
  *out_builder = NULL;
  kiln_builder *b = kiln_mem_alloc_zero(context->env->mem, sizeof *b);
  if (!b) return kiln_status_oom();
  b->context = kiln__context_retain(context);
  kiln_status *status = try_init(b);
  if (status) {
    kiln_builder_destroy(b);
    return status;
  }
  *out_builder = b;
  return NULL;
}

void kiln_builder_destroy(kiln_builder *b) {
  if (!b) return;
  kiln_context *context = b->context;
  for (int i = 0; i < b->values.count; i++) kiln_ivalue_release(b->values.data[i]);
  if (b->graph) kiln_graph_release(b->graph);
  kiln_unit_destroy(b->unit);
  kiln_mem_free(context->env->mem, b, sizeof *b);
  kiln_context_release(context);
}

/* -- Steps -- */

kiln_status *kiln__builder_mark_set(kiln_builder *b, kiln__builder_mark *mark) {
  if (!b->unit) return KILN_ERROR(KILN_INVALID_ARGUMENT, "the builder gave its model away");
  *mark = (kiln__builder_mark){.b = b,
                               .block = b->block,
                               .last = b->block->last,
                               .vars = b->vars.count,
                               .open = b->open.count,
                               .outputs = kiln_block_output_count(b->block)};
  return NULL;
}

static void go_back(void *arg) {
  const kiln__builder_mark *mark = arg;
  kiln_builder *b = mark->b;
  kiln_block *block = mark->block;
  b->vars.count = mark->vars;
  b->open.count = mark->open;
  b->block = block;
  while (kiln_block_output_count(block) > mark->outputs) {
    kiln_block_remove_output(block, kiln_block_output_count(block) - 1);
  }
  while (block->last != mark->last) kiln_node_destroy(block->last);
  kiln_node *open = block->owner; /* it has no results before it is closed */
  while (open && open->output_count > 0) kiln_node_remove_output(open, open->output_count - 1);
}

void kiln__builder_begin(kiln__builder_mark *mark) {
  kiln_scope_defer(&mark->going_back, go_back, mark);
}

kiln_status *kiln__builder_end(kiln__builder_mark *mark, kiln_status *status) {
  kiln_scope_undefer(&mark->going_back);
  if (status) go_back(mark);
  return status;
}

/* -- Values -- */

kiln_var kiln__builder_var(kiln_builder *b, kiln_ir_value *value) {
  kiln_vec_push(b->unit->arena, &b->vars, value);
  return b->vars.count;
}

kiln_status *kiln__builder_value(kiln_builder *b, kiln_var var, kiln_ir_value **out_value) {
  if (var < 1 || var > b->vars.count) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the builder has no value %d", var);
  }
  kiln_ir_value *value = b->vars.data[var - 1];
  const kiln_block *block = b->block;
  while (block && block != value->node->block) block = block->owner ? block->owner->block : NULL;
  if (!block) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "value %d belongs to a branch or loop that is closed",
                      var);
  }
  *out_value = value;
  return NULL;
}

kiln_status *kiln__builder_values(kiln_builder *b, const kiln_var *vars, int count,
                                  kiln_ir_value ***out_values) {
  if (count < 0 || (count > 0 && !vars)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%d values are wanted, and none is given", count);
  }
  *out_values = KILN_NEW_ARRAY(b->graph->arena, kiln_ir_value *, count + 1);
  for (int i = 0; i < count; i++) KILN_TRY(kiln__builder_value(b, vars[i], &(*out_values)[i]));
  return NULL;
}

const kiln_type *kiln__builder_type_of(kiln_builder *b, kiln_ivalue v) {
  const kiln_type *tensor = kiln_type_basic(KILN_TYPE_TENSOR);
  kiln_type_table *types = b->unit->types;
  if (v.tag == KILN_TAG_LIST && !v.u.list->elem_type && v.u.list->count == 0) {
    return kiln_type_list(types, tensor);
  }
  if (v.tag == KILN_TAG_DICT && !v.u.dict->key_type && v.u.dict->live == 0) {
    return kiln_type_dict(types, kiln_type_basic(KILN_TYPE_STR), tensor);
  }
  return kiln_type_unshaped(types, kiln_ivalue_type(types, v));
}

/* No objects of classes, no futures: nothing that has no form of its own in a graph. */
static bool is_plain(kiln_ivalue v, int depth) {
  if (depth > 64) return false;
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_LIST:
    case KILN_TAG_TUPLE:
    case KILN_TAG_DICT:
      for (int64_t i = 0; i < kiln_child_count(v); i++) {
        if (!is_plain(kiln_child_at(v, i), depth + 1)) return false;
      }
      return true;
    default:
      return v.tag < KILN_TAG_FUNCTION || v.tag == KILN_TAG_TENSOR || v.tag == KILN_TAG_STRING ||
             v.tag == KILN_TAG_COMPLEX;
  }
}

static kiln_status *check_plain(kiln_ivalue v) {
  if (is_plain(v, 0)) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "an object, enum or future cannot stand in a graph");
}

kiln_status *kiln__builder_constant(kiln_builder *b, kiln_ivalue v, kiln_ir_value **out_value) {
  KILN_TRY(check_plain(v));
  const kiln_type *type =
      v.tag == KILN_TAG_TENSOR ? kiln_ivalue_type(b->unit->types, v) : kiln__builder_type_of(b, v);
  kiln_ivalue copy = kiln_none();
  KILN_TRY(kiln_ivalue_clone(b->context->env->mem, v, &copy));
  *out_value = kiln_append_constant(b->block, copy, type);
  return NULL;
}

static kiln_status *constant(kiln_builder *b, kiln_ivalue v, kiln_var *out_var) {
  kiln_ir_value *value;
  KILN_TRY(kiln__builder_constant(b, v, &value));
  *out_var = kiln__builder_var(b, value);
  return NULL;
}

kiln_status *kiln_builder_constant(kiln_builder *b, const kiln_value *value, kiln_var *out_var) {
  KILN_NEEDS(b && out_var);
  *out_var = 0;
  if (!value) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a constant needs a value");
  KILN__BUILDER_STEP(b, constant(b, value->v, out_var));
}

/* -- Inputs and attributes -- */

static bool is_name(const char *name) {
  if (!name || !*name || kiln_is_digit(*name)) return false;
  while (kiln_is_word(*name)) name++;
  return !*name;
}

static kiln_status *check_name(const char *name) {
  if (is_name(name)) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "'%s' is no name", name ? name : "");
}

kiln_status *kiln__builder_check_argument(const kiln_builder *b, const char *name) {
  KILN_TRY(check_name(name));
  const kiln_ir_value *same = kiln_map_find(&b->graph->names, kiln_str_from(name));
  if (!same || same->node != b->graph->top->param) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "there is an argument '%s' already", name);
}

static kiln_status *input(kiln_builder *b, const char *name, const char *text, kiln_var *out_var) {
  const char *cursor = text, *end = text + strlen(text);
  const kiln_type *type;
  KILN_TRY(kiln_type_parse(b->unit->types, &cursor, end, false, &type));
  if (cursor != end) return KILN_ERROR(KILN_INVALID_ARGUMENT, "'%s' is no type", text);
  KILN_TRY(kiln__builder_check_argument(b, name));
  type = kiln_type_unshaped(b->unit->types, type);
  kiln_vec_reserve(b->unit->arena, &b->vars, b->vars.count + 1);
  *out_var = kiln__builder_var(b, kiln_graph_add_input(b->graph, name, type));
  return NULL;
}

kiln_status *kiln_builder_input(kiln_builder *b, const char *name, const char *type,
                                kiln_var *out_var) {
  KILN_NEEDS(b && out_var);
  *out_var = 0;
  KILN__BUILDER_STEP(b, input(b, name, type ? type : "Tensor", out_var));
}

static int find_attribute(const kiln_builder *b, const char *name) {
  for (int i = 0; i < b->attributes.count; i++) {
    if (kiln_str_is(b->attributes.data[i].name, name)) return i;
  }
  return -1;
}

static kiln_ir_value *get_attribute(kiln_builder *b, int index) {
  const kiln_class_attribute *a = &b->attributes.data[index];
  kiln_node *node = kiln_node_create_id(b->graph, KILN_OP_prim_GetAttr);
  kiln_node_set_str(node, "name", a->name);
  kiln_node_add_input(node, kiln_graph_input(b->graph, 0));
  kiln_ir_value *value = kiln_node_add_output(node, a->type);
  kiln_ir_value_set_name(value, a->name);
  kiln_node_append(b->block, node);
  return value;
}

static kiln_status *attribute(kiln_builder *b, const char *name, kiln_ivalue v, kiln_var *out_var) {
  kiln_arena *arena = b->unit->arena;
  if (find_attribute(b, name) >= 0) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "there is an attribute '%s' already", name);
  }
  KILN_TRY(check_plain(v));
  bool is_tensor = v.tag == KILN_TAG_TENSOR;
  bool grad = is_tensor && v.u.tensor->key.f.requires_grad;
  kiln_class_attribute a = {.name = kiln_str_from(kiln_arena_strdup(arena, name)),
                            .type = kiln__builder_type_of(b, v),
                            .is_parameter = grad,
                            .is_buffer = is_tensor && !grad};
  kiln_vec_reserve(arena, &b->attributes, b->attributes.count + 1);
  kiln_vec_reserve(arena, &b->values, b->values.count + 1);
  kiln_vec_reserve(arena, &b->vars, b->vars.count + 1);
  b->attributes.data[b->attributes.count] = a;
  if (out_var) {
    b->attributes.count++; /* for get_attribute, which may run out of memory */
    kiln_ir_value *value = get_attribute(b, b->attributes.count - 1);
    *out_var = kiln__builder_var(b, value);
    b->attributes.count--;
  }
  b->attributes.count++;
  b->values.data[b->values.count++] = kiln_ivalue_retain(v);
  return NULL;
}
static kiln_status *try_attribute(kiln_builder *b, const char *name, kiln_ivalue v,
                                  kiln_var *out_var) {
  KILN__BUILDER_STEP(b, attribute(b, name, v, out_var));
}

kiln_status *kiln_builder_attribute(kiln_builder *b, const char *name, const kiln_value *value,
                                    kiln_var *out_var) {
  KILN_NEEDS(b);
  if (out_var) *out_var = 0;
  KILN_TRY(check_name(name));
  if (!value) return KILN_ERROR(KILN_INVALID_ARGUMENT, "an attribute needs a value");
  kiln_status *status = try_attribute(b, name, value->v, out_var);
  if (status) b->attributes.count = b->values.count;
  return status;
}

static kiln_status *get(kiln_builder *b, const char *name, kiln_var *out_var) {
  int index = find_attribute(b, name);
  if (index < 0) return KILN_ERROR(KILN_NOT_FOUND, "the module has no attribute '%s'", name);
  *out_var = kiln__builder_var(b, get_attribute(b, index));
  return NULL;
}

kiln_status *kiln_builder_get(kiln_builder *b, const char *name, kiln_var *out_var) {
  KILN_NEEDS(b && out_var);
  *out_var = 0;
  KILN_TRY(check_name(name));
  KILN__BUILDER_STEP(b, get(b, name, out_var));
}

static kiln_status *set(kiln_builder *b, const char *name, kiln_var var) {
  int index = find_attribute(b, name);
  kiln_ir_value *value;
  if (index < 0) return KILN_ERROR(KILN_NOT_FOUND, "the module has no attribute '%s'", name);
  KILN_TRY(kiln__builder_value(b, var, &value));
  const kiln_type *type = kiln_type_unshaped(b->unit->types, value->type);
  if (!kiln_type_is_subtype(type, b->attributes.data[index].type)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the value is not of the type of attribute '%s'",
                      name);
  }
  kiln_node *node = kiln_node_create_id(b->graph, KILN_OP_prim_SetAttr);
  kiln_node_set_str(node, "name", b->attributes.data[index].name);
  kiln_node_add_input(node, kiln_graph_input(b->graph, 0));
  kiln_node_add_input(node, value);
  kiln_node_append(b->block, node);
  return NULL;
}

kiln_status *kiln_builder_set(kiln_builder *b, const char *name, kiln_var var) {
  KILN_NEEDS(b);
  KILN_TRY(check_name(name));
  KILN__BUILDER_STEP(b, set(b, name, var));
}

/* -- Looking -- */

static kiln_status *print_type(const kiln_builder *b, kiln_var var, const char **out_text) {
  if (var < 1 || var > b->vars.count) return NULL;
  kiln_text text = kiln_text_in(b->unit->arena);
  kiln_type_print(&text, b->vars.data[var - 1]->type, 3);
  *out_text = text.data;
  return NULL;
}
static kiln_status *try_type(kiln_builder *b, kiln_var var, const char **out_text) {
  KILN__BUILDER_STEP(b, print_type(b, var, out_text));
}

const char *kiln_builder_type(kiln_builder *b, kiln_var var) {
  const char *text = NULL;
  if (b) kiln_status_destroy(try_type(b, var, &text));
  return text;
}

static kiln_status *print(const kiln_builder *b, int verbosity, char **out_text) {
  kiln_text text = kiln__text_begin(b->context);
  kiln_graph_print(&text, b->graph, verbosity, false);
  return kiln__text_give(&text, out_text);
}

kiln_status *kiln_builder_print(kiln_builder *b, int verbosity, char **out_text) {
  KILN_NEEDS(b && out_text);
  *out_text = NULL;
  if (!b->unit) return KILN_ERROR(KILN_INVALID_ARGUMENT, "the builder gave its model away");
  KILN_PROTECT(print(b, verbosity < 0 ? 0 : verbosity > 4 ? 4 : verbosity, out_text));
}
