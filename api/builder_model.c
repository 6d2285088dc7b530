/* builder_model.c: textual graphs to builders, builders to models.
 *
 * What a text claims is not believed: sizes and dtypes of tensors are taken off every type (kernels
 * are chosen by them), results must be of the types that operators give, and what only an executor
 * may say is refused. An unchecked cast is believed, as it is in an archive's source. */
#include "api/builder.h"
#include "ir/match.h"

/* -- Checks of nodes -- */

static bool is_self_attribute(const kiln_builder *b, const kiln_node *node) {
  return node->input_count >= 1 && kiln_node_input(node, 0) == kiln_graph_input(b->graph, 0);
}

static kiln_status *refuse(const kiln_node *node) {
  return KILN_ERROR(KILN_UNSUPPORTED, "%.*s cannot stand in a graph that is made for running",
                    KILN_STR_ARG(node->name));
}

static kiln_status *check_node(const kiln_builder *b, const kiln_node *node) {
  for (const kiln_attr *a = node->attrs; a; a = a->next) {
    if (a->kind == KILN_ATTR_GRAPH || a->kind == KILN_ATTR_POINTER) return refuse(node);
  }
  if (!node->op) return NULL; /* unknown: an error when it is reached */
  if (node->op->flags & KILN_OP_QUANTISED) b->unit->quantised = true;
  if (node->op->flags & KILN_OP_STRUCTURES) b->unit->structured = true;
  switch (node->op->id) {
    case KILN_OP_prim_profile:
    case KILN_OP_prim_TypeCheck:
    case KILN_OP_prim_RequiresGradCheck:
    case KILN_OP_prim_TensorExprDynamicGuard:
    case KILN_OP_prim_TensorExprGroup:
    case KILN_OP_prim_FallbackGraph:
    case KILN_OP_prim_DifferentiableGraph:
    case KILN_OP_prim_CallFunction:
    case KILN_OP_prim_CallMethod:
    case KILN_OP_prim_CreateObject:
    case KILN_OP_prim_ModuleContainerIndex:
    case KILN_OP_prim_tolist: /* its result's type is only claimed */
    case KILN_OP_prim_EnumName:
    case KILN_OP_prim_EnumValue:
    case KILN_OP_prim_Enter:
    case KILN_OP_prim_Exit:
    case KILN_OP_prim_fork:
    case KILN_OP_prim_Closure: return refuse(node);
    case KILN_OP_prim_Constant:
      if (kiln_node_output(node, 0)->type->kind == KILN_TYPE_FUNCTION) return refuse(node);
      return NULL;
    case KILN_OP_prim_GetAttr:
    case KILN_OP_prim_SetAttr: return is_self_attribute(b, node) ? NULL : refuse(node);
    default: return NULL;
  }
}

/* -- Types of results that no schema gives -- */

static kiln_status *wrong_type(const kiln_node *node) {
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "a result of %.*s is not of the type that it has",
                    KILN_STR_ARG(node->name));
}

static const kiln_type *plain(kiln_builder *b, const kiln_ir_value *value) {
  return kiln_type_unshaped(b->unit->types, value->type);
}

static bool tuple_index_fits(kiln_builder *b, const kiln_node *node) {
  int64_t i;
  const kiln_type *tuple = plain(b, kiln_node_input(node, 0));
  if (node->input_count != 2 || node->output_count != 1 || tuple->kind != KILN_TYPE_TUPLE ||
      !kiln_ir_value_const_int(kiln_node_input(node, 1), &i)) {
    return false;
  }
  if (i < 0) i += tuple->elem_count;
  return i >= 0 && i < tuple->elem_count &&
         kiln_type_is_subtype(tuple->elems[i], plain(b, kiln_node_output(node, 0)));
}

static bool unpack_fits(kiln_builder *b, const kiln_node *node) {
  const kiln_type *from = node->input_count == 1 ? plain(b, kiln_node_input(node, 0)) : NULL;
  bool is_tuple = from && from->kind == KILN_TYPE_TUPLE;
  if (!from || (!is_tuple && from->kind != KILN_TYPE_LIST)) return false;
  if (is_tuple && from->elem_count != node->output_count) return false;
  for (int i = 0; i < node->output_count; i++) {
    if (!kiln_type_is_subtype(from->elems[is_tuple ? i : 0], plain(b, kiln_node_output(node, i)))) {
      return false;
    }
  }
  return true;
}

static bool dict_fits(kiln_builder *b, const kiln_node *node) {
  if (node->output_count != 1 || node->input_count % 2) return false;
  const kiln_type *dict = plain(b, kiln_node_output(node, 0));
  if (dict->kind != KILN_TYPE_DICT) return false;
  for (int i = 0; i < node->input_count; i++) {
    if (!kiln_type_is_subtype(plain(b, kiln_node_input(node, i)), dict->elems[i % 2])) return false;
  }
  return true;
}

/* An attribute of that name and type, for reading or writing. */
static bool attribute_fits(kiln_builder *b, const kiln_node *node, bool is_set) {
  kiln_str name = kiln_node_str(node, "name");
  for (int i = 0; i < b->attributes.count; i++) {
    const kiln_class_attribute *a = &b->attributes.data[i];
    if (!kiln_str_equal(a->name, name)) continue;
    if (is_set) {
      return node->input_count == 2 && node->output_count == 0 &&
             kiln_type_is_subtype(plain(b, kiln_node_input(node, 1)), a->type);
    }
    return node->input_count == 1 && node->output_count == 1 &&
           kiln_type_is_subtype(a->type, plain(b, kiln_node_output(node, 0)));
  }
  return false;
}

/* The schema's results, with its type variables as the arguments bind them. */
static bool results_fit(kiln_builder *b, const kiln_node *node) {
  const kiln_schema *s = node->op->schema;
  kiln_type_env env = {.types = b->unit->types};
  if (s->is_varret) return true;
  for (int i = 0; i < s->arg_count && i < node->input_count; i++) {
    const kiln_type *actual = plain(b, kiln_node_input(node, i));
    if (actual->kind != KILN_TYPE_NONE) kiln_type_env_match(&env, s->args[i].type, actual);
  }
  for (int i = 0; i < s->result_count && i < node->output_count; i++) {
    const kiln_type *type = kiln_type_env_eval(&env, s->results[i].type);
    if (type && !kiln_type_is_subtype(type, plain(b, kiln_node_output(node, i)))) return false;
  }
  return true;
}

static kiln_status *check_types(kiln_builder *b, const kiln_node *node) {
  bool fits = true;
  if (!node->op) return NULL;
  if (node->op->schema) return results_fit(b, node) ? NULL : wrong_type(node);
  switch (node->op->id) {
    case KILN_OP_prim_TupleIndex: fits = tuple_index_fits(b, node); break;
    case KILN_OP_prim_TupleUnpack:
    case KILN_OP_prim_ListUnpack: fits = unpack_fits(b, node); break;
    case KILN_OP_prim_DictConstruct: fits = dict_fits(b, node); break;
    case KILN_OP_prim_isinstance:
      fits = node->output_count == 1 && node->outputs[0]->type->kind == KILN_TYPE_BOOL;
      break;
    case KILN_OP_prim_GetAttr:
    case KILN_OP_prim_SetAttr:
      if (attribute_fits(b, node, node->op->id == KILN_OP_prim_SetAttr)) return NULL;
      return KILN_ERROR(KILN_INVALID_ARGUMENT,
                        "the module has no attribute '%.*s' of the type that the graph wants",
                        KILN_STR_ARG(kiln_node_str(node, "name")));
    default: break;
  }
  return fits ? NULL : wrong_type(node);
}

static kiln_status *check_block(kiln_builder *b, const kiln_block *block, bool types) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    KILN_TRY(types ? check_types(b, n) : check_node(b, n));
    for (int i = 0; i < n->block_count; i++) KILN_TRY(check_block(b, n->blocks[i], types));
  }
  return NULL;
}

static kiln_status *verify(kiln_builder *b) {
  KILN_TRY(kiln_status_as(kiln_graph_verify(b->graph), KILN_INVALID_ARGUMENT, ""));
  KILN_TRY(check_block(b, b->graph->top, false));
  return check_block(b, b->graph->top, true);
}

kiln_status *kiln_builder_verify(kiln_builder *b) {
  KILN_NEEDS(b);
  if (b->open.count > 0) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a branch or loop is still open");
  }
  KILN__BUILDER_STEP(b, verify(b));
}

/* -- From text -- */

static void unshape_values(kiln_builder *b, kiln_ir_value **values, int count) {
  for (int i = 0; i < count; i++) values[i]->type = plain(b, values[i]);
}

static void unshape_block(kiln_builder *b, const kiln_block *block) {
  unshape_values(b, block->param->outputs, block->param->output_count);
  for (kiln_node *n = block->first; n; n = n->next) {
    const kiln_ivalue *c = n->output_count == 1 ? kiln_ir_value_constant(n->outputs[0]) : NULL;
    unshape_values(b, n->outputs, n->output_count);
    if (c && c->tag == KILN_TAG_TENSOR) n->outputs[0]->type = kiln_ivalue_type(b->unit->types, *c);
    for (int i = 0; i < n->block_count; i++) unshape_block(b, n->blocks[i]);
  }
}

/* The parsed graph becomes the builder's: its module is ours, or ours comes first. */
static kiln_status *adopt(kiln_builder *b, const kiln_graph *from) {
  int inputs = kiln_graph_input_count(from);
  int first = inputs > 0 && kiln_graph_input(from, 0)->type->kind == KILN_TYPE_CLASS ? 1 : 0;
  kiln_map map = kiln_map_in(b->graph->arena);
  if (first) kiln_map_set_ptr(&map, kiln_graph_input(from, 0), kiln_graph_input(b->graph, 0));
  for (int i = first; i < inputs; i++) {
    const kiln_ir_value *value = kiln_graph_input(from, i);
    if (value->type->kind == KILN_TYPE_CLASS) {
      return KILN_ERROR(KILN_UNSUPPORTED, "only the first input of a graph can be a module");
    }
    const char *name = kiln_arena_str(b->graph->arena, value->name).data;
    const kiln_type *type = plain(b, value);
    kiln_map_set_ptr(&map, value, kiln_graph_add_input(b->graph, name, type));
  }
  kiln_block_copy_into(b->graph->top, from->top, &map);
  for (int i = 0; i < kiln_graph_output_count(from); i++) {
    kiln_graph_add_output(b->graph, kiln_map_find_ptr(&map, kiln_graph_output(from, i)));
  }
  b->returned = true;
  unshape_block(b, b->graph->top);
  return check_block(b, b->graph->top, false);
}

static kiln_status *adopt_verified(kiln_builder *b, const kiln_graph *graph) {
  KILN_TRY(
      kiln_status_as(kiln_graph_verify(graph), KILN_INVALID_FILE, "the graph does not verify: "));
  return adopt(b, graph);
}

static kiln_status *parse(kiln_builder *b, kiln_str text) {
  const kiln_context *context = b->context;
  kiln_graph *graph = NULL;
  kiln_cleanup releasing;
  KILN_TRY(kiln_graph_parse(context->env->mem, context->registry, b->unit->types, text, &graph));
  kiln_graph_defer(graph, &releasing);
  kiln_status *status = adopt_verified(b, graph);
  kiln_scope_undefer(&releasing);
  kiln_graph_release(graph);
  return status;
}
static kiln_status *try_parse(kiln_builder *b, kiln_str text) {
  KILN__BUILDER_STEP(b, parse(b, text));
}

kiln_status *kiln_builder_parse(kiln_context *context, const char *text, size_t size,
                                kiln_builder **out_builder) {
  KILN_NEEDS(context && out_builder);
  kiln_builder *b = NULL;
  *out_builder = NULL;
  if (!text) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a text is needed");
  KILN_TRY(kiln_builder_create(context, &b));
  kiln_status *status = try_parse(b, kiln_str_make(text, size));
  if (status) {
    kiln_builder_destroy(b);
    return status;
  }
  *out_builder = b;
  return NULL;
}

/* -- Copies -- */

static kiln_status *copy_builder(kiln_builder *b, const kiln_builder *from) {
  kiln_arena *arena = b->unit->arena;
  kiln_vec_reserve(arena, &b->attributes, from->attributes.count);
  kiln_vec_reserve(arena, &b->values, from->values.count);
  for (int i = 0; i < from->attributes.count; i++) {
    kiln_class_attribute a = from->attributes.data[i]; /* types of attributes are the context's */
    a.name = kiln_arena_str(arena, a.name);
    b->attributes.data[b->attributes.count++] = a;
    b->values.data[b->values.count++] = kiln_ivalue_retain(from->values.data[i]);
  }
  return adopt(b, from->graph);
}
static kiln_status *try_copy(kiln_builder *b, const kiln_builder *from) {
  KILN__BUILDER_STEP(b, copy_builder(b, from));
}

kiln_status *kiln__builder_copy(kiln_builder *from, kiln_builder **out_builder) {
  kiln_builder *b = NULL;
  *out_builder = NULL;
  KILN_TRY(kiln_builder_verify(from));
  KILN_TRY(kiln_builder_create(from->context, &b));
  kiln_status *status = try_copy(b, from);
  if (status) {
    kiln_builder_destroy(b);
    return status;
  }
  b->returned = from->returned;
  *out_builder = b;
  return NULL;
}

/* -- To a model -- */

static kiln_str argument_name(kiln_builder *b, const kiln_ir_value *value, int index) {
  kiln_str name = value->name;
  const char *dot = name.len > 0 ? memchr(name.data, '.', name.len) : NULL; /* "x.1" */
  if (dot) name.len = (size_t)(dot - name.data);
  const char *text = name.len > 0 ? kiln_arena_str(b->unit->arena, name).data
                                  : kiln_arena_printf(b->unit->arena, "x%d", index - 1);
  return kiln_str_from(text);
}

static kiln_schema *make_schema(kiln_builder *b, const char *qualname) {
  kiln_arena *arena = b->unit->arena;
  kiln_schema *schema = KILN_NEW(arena, kiln_schema);
  schema->name = kiln_str_from(qualname);
  schema->arg_count = kiln_graph_input_count(b->graph);
  schema->args = KILN_NEW_ARRAY(arena, kiln_schema_arg, schema->arg_count);
  for (int i = 0; i < schema->arg_count; i++) {
    const kiln_ir_value *value = kiln_graph_input(b->graph, i);
    schema->args[i].type = plain(b, value);
    schema->args[i].name = i == 0 ? KILN_STR("self") : argument_name(b, value, i);
  }
  schema->result_count = 1;
  schema->results = KILN_NEW(arena, kiln_schema_arg);
  schema->results[0].type = plain(b, kiln_graph_output(b->graph, 0));
  return schema;
}

/* A text may have several results; a method has one. */
static kiln_status *join_outputs(kiln_builder *b) {
  int count = kiln_graph_output_count(b->graph);
  if (count == 1) return NULL;
  kiln_ir_value **values = KILN_NEW_ARRAY(b->graph->arena, kiln_ir_value *, count + 1), *result;
  for (int i = 0; i < count; i++) values[i] = kiln_graph_output(b->graph, i);
  KILN_TRY(kiln__builder_join(b, values, count, &result));
  while (kiln_graph_output_count(b->graph) > 0) {
    kiln_block_remove_output(b->graph->top, kiln_graph_output_count(b->graph) - 1);
  }
  kiln_graph_add_output(b->graph, result);
  return NULL;
}

static kiln_status *declare(kiln_builder *b, kiln_function **out_function) {
  KILN_TRY(kiln__builder_harden(b, b->graph->top));
  KILN_TRY(join_outputs(b));
  kiln_class_info *info = b->cls->type->cls;
  kiln_class_set_attributes(info, b->unit->arena, b->attributes.data, b->attributes.count);
  kiln_function *function =
      kiln_unit_add_function(b->unit, KILN_STR("__torch__.Graph.forward"), b->cls->type);
  function->schema = make_schema(b, function->qualname);
  function->state = 2;
  *out_function = function;
  return NULL;
}
static kiln_status *try_declare(kiln_builder *b, kiln_function **out_function) {
  KILN__BUILDER_STEP(b, declare(b, out_function));
}

static kiln_status *make_root(kiln_builder *b, kiln_ivalue *out_root) {
  kiln_object *object = NULL;
  KILN_TRY(kiln_object_create(b->context->env->mem, b->cls->type, &object));
  *out_root = kiln_of_box(object);
  for (int i = 0; i < b->values.count; i++) {
    KILN_TRY(kiln_ivalue_clone(b->context->env->mem, b->values.data[i], &object->slots[i]));
  }
  return NULL;
}

/* What a load would give; takes unit and graph when it succeeds, and with the unit's arena all that
 * the builder kept there. */
static kiln_status *make_script(kiln_builder *b, kiln_function *function,
                                kiln_torchscript **out_script) {
  kiln_mem *mem = b->context->env->mem;
  kiln_ivalue root = kiln_none();
  kiln_mapping *nothing = NULL;
  kiln_status *status = make_root(b, &root);
  if (!status) status = kiln_mapping_wrap(mem, NULL, 0, &nothing);
  kiln_torchscript *script = status ? NULL : kiln_mem_alloc_zero(mem, sizeof *script);
  if (!script) {
    if (nothing) kiln_owner_release(&nothing->owner);
    kiln_ivalue_release(root);
    return status ? status : kiln_status_oom();
  }
  function->graph = b->graph;
  *script = (kiln_torchscript){.unit = b->unit, .root = root, .mapping = nothing, .version = 10};
  for (int i = 0; i < b->values.count; i++) kiln_ivalue_release(b->values.data[i]);
  b->values.count = b->vars.count = b->open.count = 0;
  b->graph = NULL;
  b->unit = NULL;
  *out_script = script;
  return NULL;
}

kiln_status *kiln_builder_finish(kiln_builder *b, kiln_model **out_model) {
  KILN_NEEDS(b && out_model);
  kiln_function *function = NULL;
  kiln_torchscript *script = NULL;
  *out_model = NULL;
  KILN_TRY(kiln_builder_verify(b));
  if (!b->returned) return KILN_ERROR(KILN_INVALID_ARGUMENT, "the graph returns nothing yet");
  KILN_TRY(try_declare(b, &function));
  KILN_ASSERT(function);
  KILN_TRY(kiln_builder_verify(b));
  KILN_TRY(make_script(b, function, &script));
  return kiln__model_create(b->context, script, out_model);
}
