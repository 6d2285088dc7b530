/* builder_call.c: calls of operators: overload resolution, and the nodes of the call. */
#include "api/builder.h"

typedef struct call_site {
  kiln_builder *b;
  const kiln_arg *actuals;
  int count;
} call_site;

/* -- Small nodes -- */

static kiln_node *append(kiln_builder *b, kiln_node *node) {
  kiln_node_append(b->block, node);
  return node;
}

/* -- Arguments -- */

static void append_node(void *b, kiln_node *node) { append(b, node); }

static kiln_status *convert(void *b, const char *op, kiln_ir_value *value, const kiln_type *type,
                            kiln_ir_value **out_value) {
  kiln_arg arg = {.value = value};
  kiln_node *node;
  (void)type;
  if (!op) return KILN_ERROR(KILN_INVALID_ARGUMENT, "an argument cannot be converted");
  KILN_TRY(kiln__builder_call(b, op, &arg, 1, &node));
  *out_value = kiln_node_output(node, 0);
  return NULL;
}

/* A node of `op` with these inputs, appended: nothing is left behind where this is not reached. */
static kiln_node *make_node(kiln_builder *b, const kiln_op *op, kiln_ir_value *const *inputs,
                            int count) {
  kiln_node *node = kiln_node_create(b->graph, op);
  for (int i = 0; i < count; i++) kiln_node_add_input(node, inputs[i]);
  return append(b, node);
}

/* -- Operators without a schema -- */

static kiln_status *list_type(const call_site *site, const kiln_type **out_type) {
  kiln_type_table *types = site->b->unit->types;
  const kiln_type *elem = NULL;
  for (int i = 0; i < site->count; i++) {
    const kiln_type *type = kiln_type_unshaped(types, site->actuals[i].value->type);
    elem = i == 0 ? type : kiln_type_unify(types, elem, type, false);
    if (!elem) break;
  }
  if (!elem) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "prim::ListConstruct takes values of one type");
  }
  *out_type = kiln_type_list(types, elem);
  return NULL;
}

static const kiln_type *tuple_type(const call_site *site) {
  kiln_type_table *types = site->b->unit->types;
  const kiln_type **elems =
      KILN_NEW_ARRAY(site->b->graph->arena, const kiln_type *, site->count + 1);
  for (int i = 0; i < site->count; i++) {
    elems[i] = kiln_type_unshaped(types, site->actuals[i].value->type);
  }
  return kiln_type_tuple(types, elems, site->count);
}

static kiln_status *call_structural(const call_site *site, const kiln_op *op,
                                    kiln_node **out_node) {
  kiln_builder *b = site->b;
  const kiln_type *type = NULL, *first = site->count > 0 ? site->actuals[0].value->type : NULL;
  int count = site->count;
  kiln_ir_value **inputs = KILN_NEW_ARRAY(b->graph->arena, kiln_ir_value *, count + 2);
  for (int i = 0; i < count; i++) {
    inputs[i] = site->actuals[i].value;
    if (site->actuals[i].keyword.len > 0) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s takes no keywords", op->name.data);
    }
  }
  switch (op->id) {
    case KILN_OP_prim_ListConstruct: KILN_TRY(list_type(site, &type)); break;
    case KILN_OP_prim_TupleConstruct: type = tuple_type(site); break;
    case KILN_OP_prim_TupleUnpack:
      if (count != 1 || first->kind != KILN_TYPE_TUPLE) {
        return KILN_ERROR(KILN_INVALID_ARGUMENT, "prim::TupleUnpack takes a tuple");
      }
      *out_node = append(b, kiln_node_create_unpack(inputs[0]));
      return NULL;
    case KILN_OP_prim_RaiseException:
      if (count != 1 || first->kind != KILN_TYPE_STR) {
        return KILN_ERROR(KILN_INVALID_ARGUMENT, "prim::RaiseException takes a message");
      }
      KILN_TRY(kiln__builder_constant(b, kiln_none(), &inputs[count++]));
      break;
    default:
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s cannot be called by its name", op->name.data);
  }
  *out_node = make_node(b, op, inputs, count);
  if (type) kiln_node_add_output(*out_node, type);
  return NULL;
}

/* -- Calls -- */

/* The overload that the call means, with its slots. */
static kiln_status *resolve(const call_site *site, const char *name, kiln_type_env *env,
                            const kiln_op **out_op, kiln_match_slot **out_slots, int *out_varargs) {
  const kiln_registry *registry = site->b->context->registry;
  kiln_arena *arena = site->b->graph->arena;
  const kiln_op_set *set = kiln_registry_find(registry, kiln_str_from(name));
  const kiln_op *op = NULL;
  const kiln_actual *actuals =
      kiln_args_actuals(arena, site->b->unit->types, site->actuals, site->count);
  kiln_text why = kiln_text_in(arena);
  *out_varargs = site->count;
  if (set && set->count > 0 && set->ops[0]->schema) {
    *out_slots = KILN_NEW_ARRAY(arena, kiln_match_slot, kiln_op_set_max_args(set) + 1);
    op = kiln_match_overloads(env, set, actuals, site->count, *out_slots, out_varargs, &why);
  } else if (set && set->count > 0) {
    *out_op = set->ops[0];
    return NULL;
  } else {
    op = kiln_registry_find_exact(registry, kiln_str_from(name));
    if (!op || !op->schema) {
      return KILN_ERROR(KILN_NOT_FOUND, "there is no operator '%s'", name);
    }
    *out_slots = KILN_NEW_ARRAY(arena, kiln_match_slot, op->schema->arg_count + 1);
    if (!kiln_match_schema(env, op->schema, actuals, site->count, true, *out_slots, out_varargs,
                           &why)) {
      op = NULL;
    }
  }
  *out_op = op;
  if (op) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "the arguments do not fit %s: %s", name, why.data);
}

kiln_status *kiln__builder_call(kiln_builder *b, const char *name, kiln_arg *actuals, int count,
                                kiln_node **out_node) {
  const call_site site = {b, actuals, count};
  kiln_type_env env = {.types = b->unit->types};
  kiln_match_slot *slots = NULL;
  const kiln_op *op = NULL;
  int varargs = count;
  KILN_TRY(resolve(&site, name, &env, &op, &slots, &varargs));
  if (!op->schema) return call_structural(&site, op, out_node);
  kiln_ir_value **inputs;
  int input_count;
  const kiln_filler filler = {b, b->graph, b->graph->arena, append_node, convert};
  KILN_TRY(
      kiln_fill_args(&filler, op->schema, slots, actuals, count, varargs, &inputs, &input_count));
  kiln_node *node = make_node(b, op, inputs, input_count);
  for (int i = 0; i < op->schema->result_count; i++) {
    const kiln_type *type = kiln_type_env_eval(&env, op->schema->results[i].type);
    kiln_node_add_output(node, type ? type : kiln_type_basic(KILN_TYPE_TENSOR));
  }
  *out_node = node;
  return NULL;
}

kiln_status *kiln__builder_host_actual(kiln_builder *b, const kiln_value *value,
                                       kiln_arg *out_actual) {
  kiln_ivalue v = value ? value->v : kiln_none();
  out_actual->empty_list = v.tag == KILN_TAG_LIST && v.u.list->count == 0 && !v.u.list->elem_type;
  return kiln__builder_constant(b, v, &out_actual->value);
}

/* -- The public call -- */

static kiln_status *call(kiln_builder *b, const char *op, const kiln_builder_arg *args, int count,
                         kiln_var *out_vars, int max_results, int *out_count) {
  kiln_arg *actuals = KILN_NEW_ARRAY(b->graph->arena, kiln_arg, count + 1);
  for (int i = 0; i < count; i++) {
    if (args[i].name) actuals[i].keyword = kiln_str_from(args[i].name);
    if (args[i].var) {
      KILN_TRY(kiln__builder_value(b, args[i].var, &actuals[i].value));
    } else {
      KILN_TRY(kiln__builder_host_actual(b, args[i].value, &actuals[i]));
    }
  }
  kiln_node *node;
  KILN_TRY(kiln__builder_call(b, op, actuals, count, &node));
  if (node->output_count > max_results) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%s gives %d results, and there is room for %d", op,
                      node->output_count, max_results);
  }
  for (int i = 0; i < node->output_count; i++) {
    out_vars[i] = kiln__builder_var(b, kiln_node_output(node, i));
  }
  if (out_count) *out_count = node->output_count;
  return NULL;
}

kiln_status *kiln_builder_call(kiln_builder *b, const char *op, const kiln_builder_arg *args,
                               int count, kiln_var *out_vars, int max_results, int *out_count) {
  KILN_NEEDS(b);
  if (out_count) *out_count = 0;
  if (!op || count < 0 || (count > 0 && !args)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a call needs an operator and its arguments");
  }
  for (int i = 1; i < count; i++) {
    if (args[i].name || !args[i - 1].name) continue;
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "argument %d comes after a keyword", i);
  }
  KILN__BUILDER_STEP(b, call(b, op, args, count, out_vars, out_vars ? max_results : 0, out_count));
}
