/* emit_expr.c: expressions but calls and subscripts. */
#include <math.h>

#include "frontend/torchscript/emit.h"

kiln_status *kiln__sugar_value(kiln__script_emitter *e, const kiln_ast *ast,
                               const kiln_sugar *sugar, kiln_ir_value **out) {
  switch (sugar->kind) {
    case KILN_SUGAR_VALUE: *out = sugar->value; return NULL;
    case KILN_SUGAR_VALUES: {
      const kiln_node *node = sugar->node;
      *out = kiln__ts_tuple(e, ast, NULL, node->outputs, node->output_count);
      return NULL;
    }
    case KILN_SUGAR_FUNCTION:
      KILN_TRY(kiln__loader_schema(e->l, sugar->function));
      *out = kiln_append_function(e->scope->block, sugar->function);
      return NULL;
    default: return kiln__ts_error(e, ast, "this is not a value");
  }
}

kiln_status *kiln__ts_value(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                            kiln_ir_value **out) {
  kiln_sugar sugar;
  KILN_TRY(kiln__ts_sugar(e, ast, hint, &sugar));
  return kiln__sugar_value(e, ast, &sugar, out);
}

/* -- Truth -- */

kiln_status *kiln__to_bool(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *value,
                           kiln_ir_value **out) {
  *out = value;
  switch (value->type->kind) {
    case KILN_TYPE_BOOL: return NULL;
    case KILN_TYPE_NONE: *out = kiln__ts_bool(e, ast, false); return NULL;
    case KILN_TYPE_LIST:
    case KILN_TYPE_DICT:
    case KILN_TYPE_STR: {
      kiln_ir_value *len;
      KILN_TRY(kiln__ts_op_values(e, ast, "aten::len", &value, 1, &len));
      KILN_TRY(
          kiln__ts_op_values(e, ast, "aten::gt", KILN_VALUES(len, kiln__ts_int(e, ast, 0)), out));
      break;
    }
    case KILN_TYPE_CLASS: {
      kiln_ir_value *found;
      KILN_TRY(kiln__ts_magic(e, ast, value, "__bool__", NULL, 0, &found));
      if (!found) KILN_TRY(kiln__ts_magic(e, ast, value, "__len__", NULL, 0, &found));
      if (!found) break;
      return kiln__to_bool(e, ast, found, out);
    }
    default: KILN_TRY(kiln__ts_op_values(e, ast, "aten::Bool", &value, 1, out)); break;
  }
  return kiln__ts_convert(e, ast, *out, kiln_type_basic(KILN_TYPE_BOOL), "the condition", out);
}

kiln_status *kiln__ts_condition(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value **out) {
  kiln_ir_value *value = NULL;
  KILN_TRY(kiln__ts_value(e, ast, NULL, &value));
  return kiln__to_bool(e, ast, value, out);
}

/* -- Refinement -- */

static bool is_call_of(const kiln_ast *ast, const char *name) {
  return ast->kind == KILN_AST_CALL && ast->kids[0]->kind == KILN_AST_NAME &&
         kiln_str_is(ast->kids[0]->text, name);
}

/* What is left of `type` without the types that are subtypes of `without`. */
static const kiln_type *subtract(kiln__script_emitter *e, const kiln_type *type,
                                 const kiln_type *without) {
  const kiln_type *none = kiln_type_basic(KILN_TYPE_NONE);
  const kiln_type *parts[64];
  int count = 0;
  if (type->kind == KILN_TYPE_OPTIONAL) {
    if (!kiln_type_is_subtype(none, without)) parts[count++] = none;
    if (!kiln_type_is_subtype(type->elems[0], without)) parts[count++] = type->elems[0];
  } else if (type->kind == KILN_TYPE_UNION && type->elem_count <= 64) {
    for (int i = 0; i < type->elem_count; i++) {
      if (!kiln_type_is_subtype(type->elems[i], without)) parts[count++] = type->elems[i];
    }
  } else {
    return NULL;
  }
  return count > 0 ? kiln_type_union(e->l->types, parts, count) : NULL;
}

static void refine(kiln__script_emitter *e, const kiln_ast *name, const kiln_type *type) {
  const kiln_var *var = kiln__find_var(e, name->text);
  if (!var || !var->value || !type || type == var->value->type) return;
  if (kiln_type_is_subtype(var->value->type, type)) return;
  kiln__set_var(e, name->text, kiln__ts_cast(e, name, var->value, type));
}

kiln_status *kiln__ts_types(kiln__script_emitter *e, const kiln_ast *list,
                            const kiln_type ***out_types, int *out_count) {
  const bool several = list->kind == KILN_AST_TUPLE;
  *out_count = several ? list->count : 1;
  *out_types = KILN_NEW_ARRAY(e->l->ast_arena, const kiln_type *, *out_count + 1);
  for (int i = 0; i < *out_count; i++) {
    const kiln_ast *item = several ? list->kids[i] : list;
    KILN_TRY(kiln__resolve_type(e->l, e->source, item, &(*out_types)[i]));
  }
  return NULL;
}

static kiln_status *refine_isinstance(kiln__script_emitter *e, const kiln_ast *call, bool branch) {
  const kiln_ast *name = call->kids[1];
  const kiln_var *var = name->kind == KILN_AST_NAME ? kiln__find_var(e, name->text) : NULL;
  if (!var || !var->value) return NULL;
  int count;
  const kiln_type **elems;
  KILN_TRY(kiln__ts_types(e, call->kids[2], &elems, &count));
  for (int i = 0; i < count; i++) {
    if (elems[i]->kind == KILN_TYPE_ANY_LIST || elems[i]->kind == KILN_TYPE_ANY_TUPLE) return NULL;
  }
  if (count == 0) return NULL;
  const kiln_type *whole = kiln_type_union(e->l->types, elems, count);
  refine(e, name, branch ? whole : subtract(e, var->value->type, whole));
  return NULL;
}

kiln_status *kiln__ts_refinements(kiln__script_emitter *e, const kiln_ast *ast, bool branch) {
  switch ((kiln_ast_kind)ast->kind) {
    case KILN_AST_NOT: return kiln__ts_refinements(e, ast->kids[0], !branch);
    case KILN_AST_AND:
    case KILN_AST_OR:
      if (branch != (ast->kind == KILN_AST_AND)) return NULL;
      KILN_TRY(kiln__ts_refinements(e, ast->kids[0], branch));
      return kiln__ts_refinements(e, ast->kids[1], branch);
    case KILN_AST_COMPARE: {
      bool is = ast->op == KILN_COMPARE_IS;
      if (!is && ast->op != KILN_COMPARE_IS_NOT) return NULL;
      const kiln_ast *name = ast->kids[0];
      if (name->kind != KILN_AST_NAME || ast->kids[1]->kind != KILN_AST_NONE) return NULL;
      const kiln_var *var = kiln__find_var(e, name->text);
      if (!var || !var->value) return NULL;
      const kiln_type *none = kiln_type_basic(KILN_TYPE_NONE);
      if (is == branch) {
        if (kiln_type_is_subtype(none, var->value->type)) refine(e, name, none);
      } else {
        refine(e, name, subtract(e, var->value->type, none));
      }
      return NULL;
    }
    default: break;
  }
  if (is_call_of(ast, "isinstance") && ast->count == 3) return refine_isinstance(e, ast, branch);
  return NULL;
}

/* -- Branching expressions -- */

/* a and b, a or b: b is evaluated only when it decides. */
static kiln_status *emit_logical(kiln__script_emitter *e, const kiln_ast *ast,
                                 kiln_ir_value **out) {
  bool is_and = ast->kind == KILN_AST_AND;
  kiln_ir_value *left, *right;
  KILN_TRY(kiln__ts_condition(e, ast->kids[0], &left));
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_If, &left, 1);
  for (int side = 0; side < 2; side++) {
    kiln_var_scope scope;
    kiln__push_scope(e, &scope, kiln_node_add_block(node));
    if ((side == 0) == is_and) {
      KILN_TRY(kiln__ts_refinements(e, ast->kids[0], is_and));
      KILN_TRY(kiln__ts_condition(e, ast->kids[1], &right));
    } else {
      right = kiln__ts_bool(e, ast, !is_and);
    }
    kiln_block_add_output(scope.block, right);
    kiln__pop_scope(e);
  }
  *out = kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_BOOL));
  return NULL;
}

static kiln_status *emit_ternary(kiln__script_emitter *e, const kiln_ast *ast,
                                 const kiln_type *hint, kiln_ir_value **out) {
  kiln_ir_value *condition, *values[2];
  KILN_TRY(kiln__ts_condition(e, ast->kids[0], &condition));
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_If, &condition, 1);
  kiln_var_scope scopes[2];
  for (int side = 0; side < 2; side++) {
    kiln__push_scope(e, &scopes[side], kiln_node_add_block(node));
    KILN_TRY(kiln__ts_refinements(e, ast->kids[0], side == 0));
    KILN_TRY(kiln__ts_value(e, ast->kids[1 + side], hint, &values[side]));
    kiln__pop_scope(e);
  }
  const kiln_type *type = kiln_type_unify(e->l->types, values[0]->type, values[1]->type, false);
  if (!type && hint && kiln_type_is_subtype(values[0]->type, hint) &&
      kiln_type_is_subtype(values[1]->type, hint)) {
    type = hint;
  }
  if (type) type = kiln_type_unshaped(e->l->types, type);
  bool loose = kiln__is_loose(e, values[0]) || kiln__is_loose(e, values[1]);
  if (!type && loose) type = values[kiln__is_loose(e, values[0]) ? 1 : 0]->type;
  if (!type) {
    return kiln__ts_error(e, ast, "one side has type %s and the other %s",
                          kiln__ts_type_name(e, values[0]->type),
                          kiln__ts_type_name(e, values[1]->type));
  }
  for (int side = 0; side < 2; side++) {
    e->scope = &scopes[side];
    KILN_TRY(kiln__ts_convert(e, ast, values[side], type, "the value", &values[side]));
    kiln_block_add_output(scopes[side].block, values[side]);
    kiln__pop_scope(e);
  }
  *out = kiln_node_add_output(node, type);
  if (loose) kiln__make_loose(e, *out);
  return NULL;
}

/* -- Operators -- */

static const kiln__ts_operator operators[] = {
    {'+', "aten::add", "aten::add_", "__add__", NULL, "aten::add"},
    {'-', "aten::sub", "aten::sub_", "__sub__", "aten::neg", "aten::add"},
    {'*', "aten::mul", "aten::mul_", "__mul__", NULL, "aten::mul"},
    {'/', "aten::div", "aten::div_", "__truediv__", "aten::reciprocal", "aten::mul"},
    {'%', "aten::remainder", "aten::remainder_", "__mod__", NULL, NULL},
    {'@', "aten::matmul", "aten::matmul", "__matmul__", NULL, NULL},
    {'&', "aten::__and__", "aten::__iand__", "__and__", NULL, NULL},
    {'|', "aten::__or__", "aten::__ior__", "__or__", NULL, NULL},
    {'^', "aten::__xor__", "aten::__ixor__", "__xor__", NULL, NULL},
    {KILN_OP2('*', '*'), "aten::pow", "aten::pow_", "__pow__", NULL, NULL},
    {KILN_OP2('/', '/'), "aten::floordiv", "aten::floor_divide_", "__floordiv__", NULL, NULL},
    {KILN_OP2('<', '<'), "aten::__lshift__", "aten::__ilshift__", "__lshift__", NULL, NULL},
    {KILN_OP2('>', '>'), "aten::__rshift__", "aten::__irshift__", "__rshift__", NULL, NULL},
    {'<', "aten::lt", NULL, "__lt__", NULL, "aten::gt"},
    {'>', "aten::gt", NULL, "__gt__", NULL, "aten::lt"},
    {KILN_OP2('<', '='), "aten::le", NULL, "__le__", NULL, "aten::ge"},
    {KILN_OP2('>', '='), "aten::ge", NULL, "__ge__", NULL, "aten::le"},
    {KILN_OP2('=', '='), "aten::eq", NULL, "__eq__", NULL, "aten::eq"},
    {KILN_OP2('!', '='), "aten::ne", NULL, "__ne__", NULL, "aten::ne"},
};

const kiln__ts_operator *kiln__ts_find_operator(uint32_t op) {
  for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
    if (operators[i].op == op) return &operators[i];
  }
  return NULL;
}

static bool is_number(const kiln_type *type) {
  return type->kind == KILN_TYPE_INT || type->kind == KILN_TYPE_FLOAT ||
         type->kind == KILN_TYPE_BOOL || type->kind == KILN_TYPE_NUMBER ||
         type->kind == KILN_TYPE_COMPLEX;
}

static kiln_status *emit_binary(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value **out) {
  kiln_ir_value *args[2];
  KILN_TRY(kiln__ts_value(e, ast->kids[0], NULL, &args[0]));
  KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &args[1]));
  const kiln__ts_operator *op = kiln__ts_find_operator(ast->op);
  if (!op) return kiln__ts_error(e, ast, "an unknown operator");
  KILN_TRY(kiln__ts_magic(e, ast, args[0], op->method, &args[1], 1, out));
  if (*out) return NULL;
  /* Operators take the tensor first (PyTorch's builtin functions do the same). */
  if (op->swapped && is_number(args[0]->type) && kiln_type_is_tensor(args[1]->type) &&
      !kiln__is_loose(e, args[1])) {
    if (op->first) KILN_TRY(kiln__ts_op_values(e, ast, op->first, &args[1], 1, &args[1]));
    return kiln__ts_op_values(e, ast, op->swapped, KILN_VALUES(args[1], args[0]), out);
  }
  bool formats = ast->op == '%' && args[0]->type->kind == KILN_TYPE_STR;
  return kiln__ts_op_values(e, ast, formats ? "aten::percentFormat" : op->name, args, 2, out);
}

static kiln_status *emit_compare(kiln__script_emitter *e, const kiln_ast *ast,
                                 kiln_ir_value **out) {
  switch (ast->op) {
    case KILN_COMPARE_IN:
    case KILN_COMPARE_NOT_IN: {
      kiln_ir_value *args[2];
      KILN_TRY(kiln__ts_value(e, ast->kids[0], NULL, &args[1]));
      KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &args[0]));
      KILN_TRY(kiln__ts_magic(e, ast, args[0], "__contains__", &args[1], 1, out));
      if (!*out) KILN_TRY(kiln__ts_op_values(e, ast, "aten::__contains__", args, 2, out));
      if (ast->op == KILN_COMPARE_IN) return NULL;
      return kiln__ts_op_values(e, ast, "aten::__not__", out, 1, out);
    }
    case KILN_COMPARE_IS:
    case KILN_COMPARE_IS_NOT: {
      kiln_ir_value *args[2];
      bool is = ast->op == KILN_COMPARE_IS;
      KILN_TRY(kiln__ts_value(e, ast->kids[0], NULL, &args[0]));
      KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &args[1]));
      return kiln__ts_op_values(e, ast, is ? "aten::__is__" : "aten::__isnot__", args, 2, out);
    }
    default: return emit_binary(e, ast, out);
  }
}

static kiln_status *emit_unary(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value **out) {
  kiln_ir_value *value;
  /* A constant with its sign is one constant. */
  const kiln_ast *kid = ast->kids[0];
  if (ast->op == '-' && kid->kind == KILN_AST_NAME && kiln_str_is(kid->text, "inf") &&
      !kiln__find_var(e, kid->text)) {
    *out = kiln__ts_constant(e, ast, kiln_float(-INFINITY), kiln_type_basic(KILN_TYPE_FLOAT));
    return NULL;
  }
  KILN_TRY(kiln__ts_value(e, kid, NULL, &value));
  if (ast->op == '+') {
    *out = value;
    return NULL;
  }
  const bool negates = ast->op == '-';
  KILN_TRY(kiln__ts_magic(e, ast, value, negates ? "__neg__" : "__invert__", NULL, 0, out));
  if (*out) return NULL;
  return kiln__ts_op_values(e, ast, negates ? "aten::neg" : "aten::bitwise_not", &value, 1, out);
}

static kiln_status *emit_not(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value **out) {
  kiln_ir_value *value;
  KILN_TRY(kiln__ts_condition(e, ast->kids[0], &value));
  KILN_TRY(kiln__ts_op_values(e, ast, "aten::__not__", &value, 1, out));
  return kiln__ts_convert(e, ast, *out, kiln_type_basic(KILN_TYPE_BOOL), "not", out);
}

/* -- Displays -- */

/* The list type that a hint asks for, or NULL. A Union's only list counts. */
static const kiln_type *hint_of_kind(const kiln_type *hint, kiln_type_kind kind) {
  if (!hint) return NULL;
  if (hint->kind == kind) return hint;
  const kiln_type *found = NULL;
  if (hint->kind == KILN_TYPE_OPTIONAL || hint->kind == KILN_TYPE_UNION) {
    for (int i = 0; i < hint->elem_count; i++) {
      if (hint->elems[i]->kind != kind) continue;
      if (found) return NULL;
      found = hint->elems[i];
    }
  }
  return found;
}

/* The join of the items' types, as far as there is one. */
static const kiln_type *join_types(kiln__script_emitter *e, kiln_ir_value *const *items, int stride,
                                   int count) {
  const kiln_type *type = NULL;
  for (int i = 0; i < count; i += stride) {
    if (kiln__is_loose(e, items[i]) && type) continue;
    type = type ? kiln_type_unify(e->l->types, type, items[i]->type, true) : items[i]->type;
    if (!type) return NULL;
  }
  return type ? kiln_type_unshaped(e->l->types, type) : NULL;
}

static kiln_status *emit_list_display(kiln__script_emitter *e, const kiln_ast *ast,
                                      const kiln_type *hint, kiln_ir_value **out) {
  const kiln_type *list = hint_of_kind(hint, KILN_TYPE_LIST);
  const kiln_type *elem = list ? list->elems[0] : NULL;
  kiln_ir_value **items = KILN_NEW_ARRAY(e->l->ast_arena, kiln_ir_value *, ast->count + 1);
  for (int i = 0; i < ast->count; i++) {
    KILN_TRY(kiln__ts_value(e, ast->kids[i], elem, &items[i]));
  }
  bool fits = elem != NULL;
  for (int i = 0; i < ast->count && fits; i++) {
    fits = kiln_type_is_subtype(items[i]->type, elem) || kiln__is_loose(e, items[i]);
  }
  if (!fits && ast->count > 0) elem = join_types(e, items, 1, ast->count);
  if (!fits && ast->count == 0) elem = kiln_type_basic(KILN_TYPE_TENSOR);
  if (!elem) return kiln__ts_error(e, ast, "the items of a list have types that do not join");
  for (int i = 0; i < ast->count; i++) {
    KILN_TRY(kiln__ts_convert(e, ast->kids[i], items[i], elem, "an item", &items[i]));
  }
  *out = kiln__ts_list(e, ast, elem, items, ast->count);
  return NULL;
}

static kiln_status *emit_dict_display(kiln__script_emitter *e, const kiln_ast *ast,
                                      const kiln_type *hint, kiln_ir_value **out) {
  const kiln_type *type = hint_of_kind(hint, KILN_TYPE_DICT);
  kiln_ir_value **items = KILN_NEW_ARRAY(e->l->ast_arena, kiln_ir_value *, ast->count + 1);
  for (int i = 0; i < ast->count; i++) {
    KILN_TRY(kiln__ts_value(e, ast->kids[i], type ? type->elems[i % 2] : NULL, &items[i]));
  }
  if (!type && ast->count == 0) {
    type = kiln_type_dict(e->l->types, kiln_type_basic(KILN_TYPE_STR),
                          kiln_type_basic(KILN_TYPE_TENSOR));
  } else if (!type) {
    const kiln_type *key = join_types(e, items, 2, ast->count);
    const kiln_type *value = join_types(e, items + 1, 2, ast->count - 1);
    if (!key || !value) {
      return kiln__ts_error(e, ast, "the items of a dict have types that do not join");
    }
    type = kiln_type_dict(e->l->types, key, value);
  }
  for (int i = 0; i < ast->count; i++) {
    KILN_TRY(kiln__ts_convert(e, ast->kids[i], items[i], type->elems[i % 2], "an item", &items[i]));
  }
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_DictConstruct, items, ast->count);
  *out = kiln_node_add_output(node, type);
  return NULL;
}

static kiln_status *emit_tuple_display(kiln__script_emitter *e, const kiln_ast *ast,
                                       const kiln_type *hint, kiln_ir_value **out) {
  const kiln_type *type = hint_of_kind(hint, KILN_TYPE_TUPLE);
  if (type && type->elem_count != ast->count) type = NULL;
  kiln_ir_value **items = KILN_NEW_ARRAY(e->l->ast_arena, kiln_ir_value *, ast->count + 1);
  for (int i = 0; i < ast->count; i++) {
    KILN_TRY(kiln__ts_value(e, ast->kids[i], type ? type->elems[i] : NULL, &items[i]));
    if (type && kiln__is_loose(e, items[i])) {
      KILN_TRY(kiln__ts_convert(e, ast->kids[i], items[i], type->elems[i], "an item", &items[i]));
    }
  }
  *out = kiln__ts_tuple(e, ast, NULL, items, ast->count);
  /* Tuples of the same tuple twice double their type with every line. */
  const int64_t most = KILN_TS_MAX_TYPE_WEIGHT + 16 * (int64_t)ast->count;
  if (kiln_type_weight((*out)->type) > most)
    return kiln__ts_error(e, ast, "the type of this tuple is too large");
  return NULL;
}

/* -- Names -- */

static kiln_status *emit_complex(kiln__script_emitter *e, const kiln_ast *ast, double im,
                                 kiln_ir_value **out) {
  kiln_complex *number = NULL;
  KILN_TRY(kiln_complex_create(e->l->env->mem, 0, im, &number));
  *out = kiln__ts_constant(e, ast, kiln_of_box(number), kiln_type_basic(KILN_TYPE_COMPLEX));
  return NULL;
}

static kiln_status *emit_name(kiln__script_emitter *e, const kiln_ast *ast, kiln_sugar *out) {
  static const struct {
    const char *name;
    kiln_sugar_kind kind;
  } roots[] = {{"torch", KILN_SUGAR_TORCH},
               {"ops", KILN_SUGAR_OPS},
               {"CONSTANTS", KILN_SUGAR_CONSTANTS},
               {"__torch__", KILN_SUGAR_PATH}};
  const kiln_var *var = kiln__find_var(e, ast->text);
  *out = (kiln_sugar){.kind = KILN_SUGAR_VALUE, .name = ast->text};
  if (var && var->closure) {
    out->kind = KILN_SUGAR_CLOSURE;
    out->closure = var->closure;
    return NULL;
  }
  if (var && var->value) {
    out->value = var->value;
    return NULL;
  }
  if (var) return kiln__ts_error(e, ast, "%s", var->why ? var->why : "it has no value");
  for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
    if (!kiln_str_is(ast->text, roots[i].name)) continue;
    out->kind = roots[i].kind;
    return NULL;
  }
  if (kiln_str_is(ast->text, "inf") || kiln_str_is(ast->text, "nan")) {
    double value = ast->text.data[0] == 'i' ? INFINITY : NAN;
    out->value = kiln__ts_constant(e, ast, kiln_float(value), kiln_type_basic(KILN_TYPE_FLOAT));
    return NULL;
  }
  if (kiln_str_is(ast->text, "infj") || kiln_str_is(ast->text, "nanj")) {
    return emit_complex(e, ast, ast->text.data[0] == 'i' ? INFINITY : NAN, &out->value);
  }
  if (kiln__is_builtin(ast->text)) {
    out->kind = KILN_SUGAR_BUILTIN;
    return NULL;
  }
  return kiln__ts_error(e, ast, "undefined name '" KILN_STR_FMT "'", KILN_STR_ARG(ast->text));
}

/* -- Dispatch -- */

static kiln_status *emit_plain(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                               kiln_ir_value **out) {
  switch ((kiln_ast_kind)ast->kind) {
    case KILN_AST_INT: *out = kiln__ts_int(e, ast, ast->u.integer); return NULL;
    case KILN_AST_FLOAT:
      *out = kiln__ts_constant(e, ast, kiln_float(ast->u.number), kiln_type_basic(KILN_TYPE_FLOAT));
      return NULL;
    case KILN_AST_IMAGINARY: return emit_complex(e, ast, ast->u.number, out);
    case KILN_AST_STRING: return kiln__ts_string(e, ast, ast->text, out);
    case KILN_AST_TRUE: *out = kiln__ts_bool(e, ast, true); return NULL;
    case KILN_AST_FALSE: *out = kiln__ts_bool(e, ast, false); return NULL;
    case KILN_AST_NONE: *out = kiln__ts_none(e, ast); return NULL;
    case KILN_AST_INDEX: return kiln__ts_index(e, ast, hint, out);
    case KILN_AST_TUPLE: return emit_tuple_display(e, ast, hint, out);
    case KILN_AST_LIST: return emit_list_display(e, ast, hint, out);
    case KILN_AST_DICT: return emit_dict_display(e, ast, hint, out);
    case KILN_AST_BINARY: return emit_binary(e, ast, out);
    case KILN_AST_COMPARE: return emit_compare(e, ast, out);
    case KILN_AST_UNARY: return emit_unary(e, ast, out);
    case KILN_AST_NOT: return emit_not(e, ast, out);
    case KILN_AST_AND:
    case KILN_AST_OR: return emit_logical(e, ast, out);
    case KILN_AST_TERNARY: return emit_ternary(e, ast, hint, out);
    case KILN_AST_LIST_COMP:
    case KILN_AST_DICT_COMP: return kiln__ts_comprehension(e, ast, hint, out);
    default: return kiln__ts_error(e, ast, "this expression is not supported here");
  }
}

kiln_status *kiln__ts_sugar(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                            kiln_sugar *out) {
  *out = (kiln_sugar){.kind = KILN_SUGAR_VALUE};
  if (ast->kind == KILN_AST_NAME) return emit_name(e, ast, out);
  if (ast->kind == KILN_AST_CALL) return kiln__ts_call(e, ast, hint, out);
  if (ast->kind == KILN_AST_ATTR) {
    kiln_sugar base;
    KILN_TRY(kiln__ts_sugar(e, ast->kids[0], NULL, &base));
    return kiln__ts_attribute(e, ast, base, ast->text, out);
  }
  return emit_plain(e, ast, hint, &out->value);
}
