/* emit_call.c: calls: operators by overload resolution, functions, methods, classes. */
#include <string.h>

#include "frontend/torchscript/emit.h"

/* -- Arguments -- */

kiln_status *kiln__ts_args(kiln__script_emitter *e, const kiln_ast *call, kiln_args *out) {
  for (int i = 1; i < call->count; i++) {
    const kiln_ast *kid = call->kids[i];
    if (kid->kind == KILN_AST_STAR) {
      kiln_ir_value *tuple;
      KILN_TRY(kiln__ts_value(e, kid->kids[0], NULL, &tuple));
      if (tuple->type->kind != KILN_TYPE_TUPLE) {
        return kiln__ts_error(e, kid, "only a tuple can be spread");
      }
      kiln_node *node = kiln_node_create_unpack(tuple);
      kiln__ts_append(e, kid, node);
      for (int k = 0; k < node->output_count; k++) {
        kiln_arg arg = {.value = kiln_node_output(node, k)};
        kiln_vec_push(e->l->ast_arena, out, arg);
      }
      continue;
    }
    bool keyword = kid->kind == KILN_AST_KEYWORD;
    const kiln_ast *value = keyword ? kid->kids[0] : kid;
    kiln_arg arg = {.empty_list = value->kind == KILN_AST_LIST && value->count == 0};
    if (keyword) arg.keyword = kid->text;
    KILN_TRY(kiln__ts_value(e, value, NULL, &arg.value));
    kiln_vec_push(e->l->ast_arena, out, arg);
  }
  return NULL;
}

/* -- Filling a schema -- */

typedef struct call_place {
  kiln__script_emitter *e;
  const kiln_ast *ast;
} call_place;

static void append_before(void *user, kiln_node *node) {
  const call_place *p = user;
  if (!kiln_node_is(node, KILN_OP_prim_Constant)) {
    kiln__ts_append(p->e, p->ast, node);
    return;
  }
  kiln_node_append(p->e->scope->block, node);
  if (p->ast == p->e->last_ast) node->range = p->e->last_range;
}

static kiln_status *convert(void *user, const char *op, kiln_ir_value *value, const kiln_type *type,
                            kiln_ir_value **out) {
  const call_place *p = user;
  if (!op) return kiln__ts_error(p->e, p->ast, "an argument cannot be converted");
  KILN_TRY(kiln__ts_op_values(p->e, p->ast, op, &value, 1, out));
  return kiln__ts_convert(p->e, p->ast, *out, type, "the converted argument", out);
}

/* Adds the call's arguments to `node` in the schema's order. */
static kiln_status *fill(kiln__script_emitter *e, const kiln_ast *ast, kiln_node *node,
                         const kiln_schema *schema, const kiln_match_slot *slots,
                         const kiln_arg *args, int count, int varargs) {
  const kiln_filler filler = {&(call_place){e, ast}, e->graph, e->l->ast_arena, append_before,
                              convert};
  kiln_ir_value **inputs;
  int filled;
  KILN_TRY(kiln_fill_args(&filler, schema, slots, args, count, varargs, &inputs, &filled));
  for (int i = 0; i < filled; i++) kiln_node_add_input(node, inputs[i]);
  return NULL;
}

/* -- Operators -- */

static bool any_loose(kiln__script_emitter *e, const kiln_arg *args, int count) {
  for (int i = 0; i < count; i++) {
    if (kiln__is_loose(e, args[i].value)) return true;
  }
  return false;
}

static kiln_status *call_plain_function(kiln__script_emitter *e, const kiln_ast *ast,
                                        kiln_function *function, const kiln_arg *args, int count,
                                        kiln_ir_value **out);

/* The keywords of the last arguments stay beside a node that no schema describes. */
static kiln_status *keep_keywords(kiln__script_emitter *e, kiln_node *node, const kiln_arg *args,
                                  int count) {
  int first = 0;
  while (first < count && args[first].keyword.len == 0) first++;
  if (first == count) return NULL;
  kiln_list *list = NULL;
  KILN_TRY(kiln_list_create(e->l->env->mem, kiln_type_basic(KILN_TYPE_STR), count - first, &list));
  kiln_node_set_value(node, "keywords", kiln_of_box(list)); /* it owns the list from here on */
  for (int i = first; i < count; i++) {
    kiln_string *name = NULL;
    KILN_TRY(kiln_string_create(e->l->env->mem, args[i].keyword, &name));
    KILN_TRY(kiln_list_push(list, kiln_of_box(name)));
  }
  return NULL;
}

/* Keeps a call that cannot be resolved: it fails when it is reached. */
static kiln_status *emit_unresolved(kiln__script_emitter *e, const kiln_ast *ast, const char *name,
                                    const kiln_arg *args, int count, kiln_sugar *out) {
  kiln_node *node = kiln_node_create_unknown(e->graph, kiln_str_from(name));
  for (int i = 0; i < count; i++) kiln_node_add_input(node, args[i].value);
  kiln__ts_append(e, ast, node);
  KILN_TRY(keep_keywords(e, node, args, count));
  out->kind = KILN_SUGAR_VALUE;
  out->value = kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_TENSOR));
  kiln__make_loose(e, out->value);
  return NULL;
}

static kiln_status *emit_structural(kiln__script_emitter *e, const kiln_ast *ast, const kiln_op *op,
                                    const kiln_arg *args, int count, kiln_sugar *out) {
  if (op->id == KILN_OP_prim_RaiseException && count >= 1) {
    out->value = count > 1 ? args[1].value : kiln__ts_none(e, ast);
    kiln__ts_node(e, ast, KILN_OP_prim_RaiseException, KILN_VALUES(args[0].value, out->value));
    out->value = kiln__ts_none(e, ast);
    return NULL;
  }
  const kiln_type *type = count == 1 ? args[0].value->type : NULL;
  const bool unwraps = type && op->id == KILN_OP_prim_unchecked_unwrap_optional;
  const bool waits = type && op->id == KILN_OP_wait && type->kind == KILN_TYPE_FUTURE;
  if (unwraps || waits) {
    if (waits || type->kind == KILN_TYPE_OPTIONAL) type = type->elems[0];
    out->value =
        kiln_node_add_output(kiln__ts_node(e, ast, (kiln_op_id)op->id, &args[0].value, 1), type);
    return NULL;
  }
  return emit_unresolved(e, ast, op->name.data, args, count, out);
}

static void set_results(kiln__script_emitter *e, kiln_node *node, const kiln_schema *schema,
                        kiln_type_env *env, bool loose, kiln_sugar *out) {
  for (int i = 0; i < schema->result_count; i++) {
    const kiln_type *type = kiln_type_env_eval(env, schema->results[i].type);
    if (!type) type = kiln_type_basic(KILN_TYPE_TENSOR);
    kiln_ir_value *value = kiln_node_add_output(node, type);
    if (loose && kiln_type_is_tensor(type)) kiln__make_loose(e, value);
  }
  out->kind = schema->result_count == 1 ? KILN_SUGAR_VALUE : KILN_SUGAR_VALUES;
  out->node = node;
  out->value = schema->result_count == 1 ? kiln_node_output(node, 0) : NULL;
}

kiln_status *kiln__ts_op(kiln__script_emitter *e, const kiln_ast *ast, const char *name,
                         const kiln_arg *args, int count, kiln_sugar *out) {
  *out = (kiln_sugar){.kind = KILN_SUGAR_VALUE};
  KILN_TRY(kiln__ts_map_device(e, ast, name, args, count, &out->value));
  if (out->value) return NULL;
  const kiln_op_set *set = kiln_registry_find(e->l->registry, kiln_str_from(name));
  if (!set || set->count == 0) return emit_unresolved(e, ast, name, args, count, out);
  if (!set->ops[0]->schema) return emit_structural(e, ast, set->ops[0], args, count, out);
  const kiln_actual *actuals = kiln_args_actuals(e->l->ast_arena, e->l->types, args, count);
  kiln_function *old = NULL;
  KILN_TRY(kiln__ts_find_upgrade(e, name, set, actuals, count, &old));
  if (old) return call_plain_function(e, ast, old, args, count, &out->value);
  kiln_type_env env = {.types = e->l->types};
  kiln_match_slot *slots =
      KILN_NEW_ARRAY(e->l->ast_arena, kiln_match_slot, kiln_op_set_max_args(set) + 1);
  int varargs = count;
  const kiln_op *op = kiln_match_overloads(&env, set, actuals, count, slots, &varargs, NULL);
  if (!op) return emit_unresolved(e, ast, name, args, count, out);
  if (count > 0 && kiln__sorts_objects(op, args[0].value)) {
    return kiln__ts_sort(e, ast, op, args[0].value, count > 1 ? args[1].value : NULL, &out->value);
  }
  if (op->flags & KILN_OP_QUANTISED) e->l->unit->quantised = true;
  if (op->flags & KILN_OP_STRUCTURES) e->l->unit->structured = true;
  kiln_node *node = kiln_node_create(e->graph, op);
  KILN_TRY(fill(e, ast, node, op->schema, slots, args, count, varargs));
  kiln__ts_append(e, ast, node);
  set_results(e, node, op->schema, &env, any_loose(e, args, count), out);
  if (op->schema->result_count == 0) {
    out->kind = KILN_SUGAR_VALUE;
    out->value = kiln__ts_none(e, ast);
  }
  return NULL;
}

kiln_status *kiln__ts_op_values(kiln__script_emitter *e, const kiln_ast *ast, const char *name,
                                kiln_ir_value *const *values, int count, kiln_ir_value **out) {
  kiln_arg args[8] = {{.value = NULL}};
  KILN_CHECK(count <= 8);
  for (int i = 0; i < count; i++) args[i].value = values[i];
  kiln_sugar sugar;
  KILN_TRY(kiln__ts_op(e, ast, name, args, count, &sugar));
  return kiln__sugar_value(e, ast, &sugar, out);
}

/* -- Functions and methods -- */

/* Matches `args` and fills `node`; the schema's result becomes its output. */
static kiln_status *call_schema(kiln__script_emitter *e, const kiln_ast *ast, kiln_node *node,
                                kiln_function *function, kiln_arg *args, int count,
                                kiln_ir_value **out) {
  const kiln_schema *schema = function->schema;
  kiln_type_env env = {.types = e->l->types};
  kiln_match_slot *slots = KILN_NEW_ARRAY(e->l->ast_arena, kiln_match_slot, schema->arg_count + 1);
  kiln_text why = kiln_text_in(e->l->ast_arena);
  int varargs = count;
  /* Guessed types are cast to what is declared, so that they match. */
  for (int i = 0; i < count && i < schema->arg_count; i++) {
    if (args[i].keyword.len == 0 && kiln__is_loose(e, args[i].value)) {
      KILN_TRY(kiln__ts_convert(e, ast, args[i].value, schema->args[i].type, "an argument",
                                &args[i].value));
    }
  }
  if (!kiln_match_schema(&env, schema, kiln_args_actuals(e->l->ast_arena, e->l->types, args, count),
                         count, true, slots, &varargs, &why)) {
    return kiln__ts_error(e, ast, "the arguments do not fit %s: %s", function->qualname, why.data);
  }
  KILN_TRY(fill(e, ast, node, schema, slots, args, count, varargs));
  kiln__ts_append(e, ast, node);
  *out = kiln_node_add_output(node, schema->results[0].type);
  kiln_pending_body *body = e->function->pending;
  kiln_vec_push(e->l->ast_arena, &body->calls, function);
  return NULL;
}

kiln_status *kiln__ts_method(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *self,
                             kiln_function *method, const kiln_arg *args, int count,
                             kiln_ir_value **out) {
  KILN_TRY(kiln__loader_schema(e->l, method));
  kiln_arg *all = KILN_NEW_ARRAY(e->l->ast_arena, kiln_arg, count + 1);
  all[0].value = self;
  for (int i = 0; i < count; i++) all[i + 1] = args[i];
  kiln_node *node = kiln_node_create_id(e->graph, KILN_OP_prim_CallMethod);
  kiln_node_set_str(node, "name", method->name);
  return call_schema(e, ast, node, method, all, count + 1, out);
}

kiln_status *kiln__ts_magic(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *self,
                            const char *name, kiln_ir_value *const *values, int count,
                            kiln_ir_value **out) {
  kiln_arg args[2] = {{.value = NULL}};
  *out = NULL;
  if (self->type->kind != KILN_TYPE_CLASS) return NULL;
  kiln_function *method = kiln_class_find_method(self->type, kiln_str_from(name));
  if (!method) return NULL;
  for (int i = 0; i < count; i++) args[i].value = values[i];
  return kiln__ts_method(e, ast, self, method, args, count, out);
}

static kiln_status *call_plain_function(kiln__script_emitter *e, const kiln_ast *ast,
                                        kiln_function *function, const kiln_arg *args, int count,
                                        kiln_ir_value **out) {
  kiln_arg *own = KILN_NEW_ARRAY(e->l->ast_arena, kiln_arg, count + 1);
  for (int i = 0; i < count; i++) own[i] = args[i];
  KILN_TRY(kiln__loader_schema(e->l, function));
  kiln_ir_value *constant = kiln_append_function(e->scope->block, function);
  kiln_node *node = kiln_node_create_id(e->graph, KILN_OP_prim_CallFunction);
  kiln_node_add_input(node, constant);
  return call_schema(e, ast, node, function, own, count, out);
}

static kiln_status *call_function(kiln__script_emitter *e, const kiln_ast *ast,
                                  kiln_function *function, kiln_args *args, kiln_ir_value **out) {
  if (function->owner) { /* Class.method(object, …) */
    if (args->count == 0) return kiln__ts_error(e, ast, "a method without self");
    return kiln__ts_method(e, ast, args->data[0].value, function, args->data + 1, args->count - 1,
                           out);
  }
  return call_plain_function(e, ast, function, args->data, args->count, out);
}

/* -- Classes -- */

static kiln_status *make_named_tuple(kiln__script_emitter *e, const kiln_ast *ast,
                                     const kiln_type *type, kiln_args *args, kiln_ir_value **out) {
  kiln_ir_value **items = KILN_NEW_ARRAY(e->l->ast_arena, kiln_ir_value *, type->elem_count + 1);
  for (int i = 0; i < args->count; i++) {
    int at = i;
    if (args->data[i].keyword.len > 0) {
      for (at = 0; at < type->elem_count; at++) {
        if (kiln_str_equal(type->names[at], args->data[i].keyword)) break;
      }
    }
    if (at >= type->elem_count || items[at]) {
      return kiln__ts_error(e, ast, "a field too many for " KILN_STR_FMT, KILN_STR_ARG(type->name));
    }
    const kiln_arg *arg = &args->data[i];
    if (arg->empty_list && type->elems[at]->kind == KILN_TYPE_LIST) {
      items[at] = kiln__ts_list(e, ast, type->elems[at]->elems[0], NULL, 0);
    } else {
      KILN_TRY(kiln__ts_convert(e, ast, arg->value, type->elems[at], "a field", &items[at]));
    }
  }
  for (int i = 0; i < type->elem_count; i++) {
    if (items[i]) continue;
    return kiln__ts_error(e, ast, "field '" KILN_STR_FMT "' is missing",
                          KILN_STR_ARG(type->names[i]));
  }
  *out = kiln__ts_tuple(e, ast, type, items, type->elem_count);
  return NULL;
}

static kiln_status *make_object(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *type,
                                kiln_ir_value **out) {
  if (type->kind != KILN_TYPE_CLASS) {
    return kiln__ts_error(e, ast, "objects of " KILN_STR_FMT " cannot be made",
                          KILN_STR_ARG(type->name));
  }
  *out = kiln_node_add_output(kiln__ts_node(e, ast, KILN_OP_prim_CreateObject, NULL, 0), type);
  return NULL;
}

static kiln_status *call_class(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *type,
                               kiln_args *args, kiln_ir_value **out) {
  if (type->kind == KILN_TYPE_TUPLE) return make_named_tuple(e, ast, type, args, out);
  KILN_TRY(make_object(e, ast, type, out));
  kiln_function *init = kiln_class_find_method(type, KILN_STR("__init__"));
  if (!init) return NULL;
  kiln_ir_value *ignored;
  return kiln__ts_method(e, ast, *out, init, args->data, args->count, &ignored);
}

/* Calling a value: a function that was given a name, an object's __call__, a module's forward. */
static kiln_status *call_value(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *value,
                               kiln_args *args, kiln_ir_value **out) {
  const kiln_attr *attr =
      value->type->kind == KILN_TYPE_FUNCTION ? kiln_node_attr(value->node, "function") : NULL;
  if (attr && attr->kind == KILN_ATTR_POINTER) {
    return call_function(e, ast, attr->u.pointer, args, out);
  }
  kiln_function *method = NULL;
  if (value->type->cls) {
    method = kiln_class_find_method(value->type, KILN_STR("__call__"));
    if (!method) method = kiln_class_find_method(value->type, KILN_STR("forward"));
  }
  if (!method) {
    return kiln__ts_error(e, ast, "a value of type %s cannot be called",
                          kiln__ts_type_name(e, value->type));
  }
  return kiln__ts_method(e, ast, value, method, args->data, args->count, out);
}

/* -- Dispatch -- */

static kiln_status *call_op(kiln__script_emitter *e, const kiln_ast *ast, const kiln_sugar *callee,
                            kiln_args *args, kiln_sugar *out) {
  const char *name = kiln_arena_str(e->l->ast_arena, callee->name).data;
  if (!callee->value) return kiln__ts_op(e, ast, name, args->data, args->count, out);
  kiln_arg *all = KILN_NEW_ARRAY(e->l->ast_arena, kiln_arg, args->count + 1);
  all[0].value = callee->value;
  for (int i = 0; i < args->count; i++) all[i + 1] = args->data[i];
  return kiln__ts_op(e, ast, name, all, args->count + 1, out);
}

kiln_status *kiln__ts_call(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                           kiln_sugar *out) {
  kiln_sugar callee;
  *out = (kiln_sugar){.kind = KILN_SUGAR_VALUE};
  KILN_TRY(kiln__ts_sugar(e, ast->kids[0], NULL, &callee));
  if (callee.kind == KILN_SUGAR_BUILTIN) {
    return kiln__ts_builtin(e, ast, callee.name, hint, out);
  }
  if (callee.kind == KILN_SUGAR_OP && callee.value && kiln_str_is(callee.name, "aten::tolist")) {
    return kiln__ts_tolist(e, ast, callee.value, hint, &out->value);
  }
  if (callee.kind == KILN_SUGAR_NEW) return make_object(e, ast, callee.type, &out->value);
  kiln_args args = {0};
  KILN_TRY(kiln__ts_args(e, ast, &args));
  switch (callee.kind) {
    case KILN_SUGAR_OP: return call_op(e, ast, &callee, &args, out);
    case KILN_SUGAR_FUNCTION: return call_function(e, ast, callee.function, &args, &out->value);
    case KILN_SUGAR_METHOD:
      return kiln__ts_method(e, ast, callee.value, callee.function, args.data, args.count,
                             &out->value);
    case KILN_SUGAR_CLASS: return call_class(e, ast, callee.type, &args, &out->value);
    case KILN_SUGAR_VALUE: return call_value(e, ast, callee.value, &args, &out->value);
    default: return kiln__ts_error(e, ast, "this cannot be called");
  }
}
