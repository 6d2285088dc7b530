/* hooks.c: what calling a module does where it has forward hooks: hooks before, each with the tuple
 * of inputs, which it may replace; forward; hooks after, each with inputs and result. Calls of
 * submodules are printed with their hooks; only a root's are left to whoever calls it
 * (torch::jit::Module::operator()). */
#include "ir/unit.h"

static const kiln_type *result_of(const kiln_function *function) {
  return function->schema->result_count == 1 ? function->schema->results[0].type : NULL;
}

static bool is_none(const kiln_type *type) { return type->kind == KILN_TYPE_NONE; }

/* A call of `method` on self and inputs, appended; its output. */
static kiln_ir_value *append_call(kiln_graph *graph, kiln_function *method,
                                  kiln_ir_value *const *inputs, int count) {
  kiln_ir_value *callee = kiln_append_function(graph->top, method);
  kiln_node *node = kiln_node_create_id(graph, KILN_OP_prim_CallFunction);
  kiln_node_add_input(node, callee);
  for (int i = 0; i < count; i++) kiln_node_add_input(node, inputs[i]);
  kiln_node_append(graph->top, node);
  return kiln_node_add_output(node, result_of(method));
}

static kiln_ir_value *append_tuple(kiln_graph *graph, kiln_ir_value *const *items, int count) {
  const kiln_type **types = KILN_NEW_ARRAY(graph->arena, const kiln_type *, count + 1);
  kiln_node *node = kiln_node_create_id(graph, KILN_OP_prim_TupleConstruct);
  for (int i = 0; i < count; i++) {
    kiln_node_add_input(node, items[i]);
    types[i] = items[i]->type;
  }
  kiln_node_append(graph->top, node);
  return kiln_node_add_output(node, kiln_type_tuple(graph->types, types, count));
}

static bool fits(const kiln_function *hook, kiln_ir_value *const *arguments, int count) {
  const kiln_schema *schema = hook->schema;
  if (!schema || schema->arg_count != count || !result_of(hook)) return false;
  for (int i = 0; i < count; i++) {
    if (!kiln_type_is_subtype(arguments[i]->type, schema->args[i].type)) return false;
  }
  return true;
}

static kiln_status *misfit(const kiln_function *hook) {
  return KILN_ERROR(KILN_INVALID_FILE, "%s does not fit the forward() that it is a hook of",
                    hook->qualname);
}

/* forward(self, *inputs), of the tuple's elements. */
static kiln_status *append_forward(kiln_graph *graph, kiln_function *forward, kiln_ir_value *self,
                                   kiln_ir_value *inputs, kiln_ir_value **out) {
  const int count = inputs->type->elem_count;
  kiln_node *unpack = kiln_node_create_unpack(inputs);
  kiln_ir_value **arguments = KILN_NEW_ARRAY(graph->arena, kiln_ir_value *, count + 1);
  kiln_node_append(graph->top, unpack);
  arguments[0] = self;
  for (int i = 0; i < count; i++) arguments[i + 1] = kiln_node_output(unpack, i);
  if (!fits(forward, arguments, count + 1)) return misfit(forward);
  *out = append_call(graph, forward, arguments, count + 1);
  return NULL;
}

static kiln_status *fill(kiln_graph *graph, const kiln_class *cls, kiln_function *forward) {
  const kiln_schema *schema = forward->schema;
  kiln_ir_value **given = KILN_NEW_ARRAY(graph->arena, kiln_ir_value *, schema->arg_count);
  for (int i = 0; i < schema->arg_count; i++) {
    const char *name = kiln_arena_str(graph->arena, schema->args[i].name).data;
    given[i] = kiln_graph_add_input(graph, name, schema->args[i].type);
  }
  kiln_ir_value *values[3] = {given[0], append_tuple(graph, given + 1, schema->arg_count - 1)};
  for (int i = 0; i < cls->forward_pre_hooks.count; i++) {
    kiln_function *hook = cls->forward_pre_hooks.data[i];
    if (!fits(hook, values, 2)) return misfit(hook);
    kiln_ir_value *result = append_call(graph, hook, values, 2);
    if (is_none(result->type)) continue;
    values[1] = result->type->kind == KILN_TYPE_TUPLE ? result : append_tuple(graph, &result, 1);
  }
  KILN_TRY(append_forward(graph, forward, values[0], values[1], &values[2]));
  for (int i = 0; i < cls->forward_hooks.count; i++) {
    kiln_function *hook = cls->forward_hooks.data[i];
    if (!fits(hook, values, 3)) return misfit(hook);
    kiln_ir_value *result = append_call(graph, hook, values, 3);
    if (!is_none(result->type)) values[2] = result;
  }
  kiln_graph_add_output(graph, values[2]);
  return NULL;
}

/* A function as forward is, but for its graph and the type of its result. */
kiln_status *kiln_class_call(kiln_class *cls, kiln_function **out) {
  kiln_unit *unit = cls->unit;
  kiln_function *forward = kiln_class_find_method(cls->type, KILN_STR("forward"));
  *out = forward;
  if (!forward || cls->forward_pre_hooks.count + cls->forward_hooks.count == 0) return NULL;
  if (!forward->schema || !result_of(forward)) return misfit(forward);
  cls->call_graph = kiln_graph_create(unit->env->mem, unit->registry, unit->types);
  KILN_TRY(fill(cls->call_graph, cls, forward));
  kiln_function *function = *out = KILN_NEW(unit->arena, kiln_function);
  *function = (kiln_function){.name = forward->name,
                              .qualname = forward->qualname,
                              .owner = forward->owner,
                              .schema = KILN_NEW(unit->arena, kiln_schema),
                              .graph = cls->call_graph,
                              .unit = unit,
                              .state = 2};
  *function->schema = *forward->schema; /* whose arguments it borrows */
  function->schema->results = KILN_NEW(unit->arena, kiln_schema_arg);
  function->schema->results[0] = forward->schema->results[0];
  function->schema->results[0].type = kiln_graph_output(function->graph, 0)->type;
  return NULL;
}
