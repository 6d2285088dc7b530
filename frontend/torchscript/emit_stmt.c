/* emit_stmt.c: statements but loops. */
#include "frontend/torchscript/emit.h"

/* -- Exits -- */

static bool finds(const kiln_ast *ast, bool of_loop) {
  if (!ast) return false;
  switch ((kiln_ast_kind)ast->kind) {
    case KILN_AST_RETURN: return true;
    case KILN_AST_BREAK:
    case KILN_AST_CONTINUE: return of_loop;
    case KILN_AST_FOR: return finds(ast->kids[2], false);
    case KILN_AST_WHILE: return finds(ast->kids[1], false);
    case KILN_AST_IF: /* of a literal condition only one side is compiled */
      return (ast->kids[0]->kind != KILN_AST_FALSE && finds(ast->kids[1], of_loop)) ||
             (ast->kids[0]->kind != KILN_AST_TRUE && finds(ast->kids[2], of_loop));
    case KILN_AST_WITH: return finds(ast->kids[0], of_loop);
    case KILN_AST_BLOCK:
      for (int i = 0; i < ast->count; i++) {
        if (finds(ast->kids[i], of_loop)) return true;
      }
      return false;
    default: return false;
  }
}

bool kiln__may_exit(const kiln_ast *ast) { return finds(ast, true); }
bool kiln__may_return(const kiln_ast *ast) { return finds(ast, false); }

static kiln_status *emit_return(kiln__script_emitter *e, const kiln_ast *ast) {
  kiln_ir_value *value;
  if (ast->kids[0]) {
    KILN_TRY(kiln__ts_value(e, ast->kids[0], e->return_type, &value));
  } else {
    value = kiln__ts_none(e, ast);
  }
  if (e->return_type) {
    KILN_TRY(kiln__ts_convert(e, ast, value, e->return_type, "the returned value", &value));
  }
  if (e->flags) {
    kiln__set_var(e, KILN_STR("$value"), value);
    kiln__set_var(e, KILN_STR("$return"), kiln__ts_bool(e, ast, true));
    kiln__set_var(e, e->level->skip, kiln__ts_bool(e, ast, true));
  } else {
    e->result = value;
  }
  e->scope->dead = true;
  return NULL;
}

/* The values that the loop carries on, or out, from here. */
static kiln_status *keep_carried(kiln__script_emitter *e, const kiln_ast *ast) {
  const kiln_exit_level *level = e->level;
  for (int i = 0; i < level->carried_count; i++) {
    const kiln_var *var = kiln__find_var(e, level->carried[i]);
    if (!var || !var->value) {
      return kiln__ts_error(e, ast, "'" KILN_STR_FMT "' is not defined at the loop's exit",
                            KILN_STR_ARG(level->carried[i]));
    }
    kiln_ir_value *value;
    const char *what =
        kiln_arena_printf(e->l->ast_arena, "'" KILN_STR_FMT "', which the loop carries,",
                          KILN_STR_ARG(level->carried[i]));
    KILN_TRY(kiln__ts_convert(e, ast, var->value, level->types[i], what, &value));
    kiln__set_var(e, level->kept[i], value);
  }
  return NULL;
}

static kiln_status *emit_break(kiln__script_emitter *e, const kiln_ast *ast, bool stop) {
  if (!e->level || !e->level->outer) return kiln__ts_error(e, ast, "not inside a loop");
  KILN_TRY(keep_carried(e, ast));
  kiln__set_var(e, e->level->skip, kiln__ts_bool(e, ast, true));
  if (stop) kiln__set_var(e, e->level->stop, kiln__ts_bool(e, ast, true));
  e->scope->dead = true;
  return NULL;
}

/* -- Raising -- */

kiln_status *kiln__ts_raise(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *message,
                            const char *class_name) {
  kiln_ir_value *cls;
  if (class_name) {
    KILN_TRY(kiln__ts_string(e, ast, kiln_str_from(class_name), &cls));
  } else {
    cls = kiln__ts_none(e, ast);
  }
  kiln__ts_node(e, ast, KILN_OP_prim_RaiseException, KILN_VALUES(message, cls));
  return NULL;
}

/* raise Name("text") or raise Name. */
static kiln_status *emit_raise_statement(kiln__script_emitter *e, const kiln_ast *ast) {
  const kiln_ast *what = ast->kids[0];
  if (!what) return kiln__ts_error(e, ast, "raise needs an exception");
  const kiln_ast *cls = what->kind == KILN_AST_CALL ? what->kids[0] : what;
  kiln_str name = kiln__dotted_name(e->l->ast_arena, cls);
  if (name.len == 0) return kiln__ts_error(e, ast, "raise needs an exception");
  kiln_ir_value *message;
  if (what->kind == KILN_AST_CALL && what->count > 1) {
    KILN_TRY(kiln__ts_value(e, what->kids[1], NULL, &message));
    if (message->type->kind != KILN_TYPE_STR) {
      KILN_TRY(kiln__ts_op_values(e, ast, "aten::str", &message, 1, &message));
    }
  } else {
    KILN_TRY(kiln__ts_string(e, ast, KILN_STR(""), &message));
  }
  const char *class_name =
      kiln_arena_printf(e->l->ast_arena, "builtins." KILN_STR_FMT, KILN_STR_ARG(name));
  KILN_TRY(kiln__ts_raise(e, ast, message, class_name));
  e->scope->dead = true;
  return NULL;
}

static kiln_status *emit_branch(kiln__script_emitter *e, kiln_var_scope *scope, kiln_node *node,
                                const kiln_ast *condition, bool which, const kiln_ast *body) {
  kiln__push_scope(e, scope, kiln_node_add_block(node));
  KILN_TRY(kiln__ts_refinements(e, condition, which));
  if (body) KILN_TRY(kiln__ts_statements(e, body->kids, body->count));
  kiln__pop_scope(e);
  return NULL;
}

/* An If whose true side is empty and whose false side raises. */
static kiln_status *emit_assert(kiln__script_emitter *e, const kiln_ast *ast) {
  kiln_ir_value *condition, *message, *prefix;
  KILN_TRY(kiln__ts_condition(e, ast->kids[0], &condition));
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_If, &condition, 1);
  kiln_var_scope yes, no;
  KILN_TRY(emit_branch(e, &yes, node, ast->kids[0], true, NULL));
  kiln__push_scope(e, &no, kiln_node_add_block(node));
  KILN_TRY(kiln__ts_string(e, ast, KILN_STR("AssertionError: "), &prefix));
  if (ast->kids[1]) {
    KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &message));
    KILN_TRY(kiln__ts_op_values(e, ast, "aten::add", KILN_VALUES(prefix, message), &message));
  } else {
    message = prefix;
  }
  KILN_TRY(kiln__ts_raise(e, ast, message, NULL));
  no.dead = true;
  kiln__pop_scope(e);
  return kiln__join_branches(e, ast, node, &yes, &no);
}

/* -- Assignments -- */

/* Several targets from one value: a tuple's elements, or as many as a list should have. */
static kiln_status *unpack(kiln__script_emitter *e, const kiln_ast *target, kiln_sugar source) {
  int count = target->count;
  kiln_node *node = source.node;
  if (source.kind == KILN_SUGAR_VALUE) {
    kiln_ir_value *value = source.value;
    const kiln_type *type = value->type;
    bool loose = kiln__is_loose(e, value);
    if (type->kind == KILN_TYPE_TUPLE) {
      node = kiln_node_create_unpack(value);
      kiln__ts_append(e, target, node);
      for (int i = 0; i < type->elem_count; i++) {
        kiln_ir_value *out = kiln_node_output(node, i);
        if (loose && kiln_type_is_tensor(out->type)) kiln__make_loose(e, out);
      }
    } else if (loose && !value->node->op && value->node->output_count == 1) {
      /* An unknown operator with as many results as are asked for. */
      node = value->node;
      for (int i = 1; i < count; i++) {
        kiln__make_loose(e, kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_TENSOR)));
      }
    } else {
      if (type->kind == KILN_TYPE_TENSOR && !loose) {
        KILN_TRY(kiln__ts_op_values(e, target, "aten::unbind", &value, 1, &value));
      }
      type = value->type;
      if (type->kind != KILN_TYPE_LIST && !loose) {
        return kiln__ts_error(e, target, "a value of type %s cannot be unpacked",
                              kiln__ts_type_name(e, type));
      }
      const kiln_type *elem = type->kind == KILN_TYPE_LIST ? type->elems[0] : type;
      node = kiln__ts_node(e, target, KILN_OP_prim_ListUnpack, &value, 1);
      for (int i = 0; i < count; i++) {
        kiln_ir_value *out = kiln_node_add_output(node, elem);
        if (loose) kiln__make_loose(e, out);
      }
    }
  }
  if (node->output_count != count) {
    return kiln__ts_error(e, target, "%d value%s cannot be unpacked into %d name%s",
                          node->output_count, kiln_plural((uint64_t)node->output_count), count,
                          kiln_plural((uint64_t)count));
  }
  for (int i = 0; i < count; i++) {
    KILN_TRY(kiln__ts_assign_value(e, target->kids[i], kiln_node_output(node, i)));
  }
  return NULL;
}

static kiln_status *assign_name(kiln__script_emitter *e, const kiln_ast *target, kiln_sugar source,
                                const kiln_type *declared) {
  kiln_ir_value *value;
  KILN_TRY(kiln__sugar_value(e, target, &source, &value));
  if (declared) {
    KILN_TRY(kiln__ts_convert(e, target, value, declared, "the value", &value));
  }
  kiln_var *var = kiln__set_var(e, target->text, value);
  if (declared) var->declared = declared;
  return NULL;
}

static kiln_status *assign_attribute(kiln__script_emitter *e, const kiln_ast *target,
                                     kiln_sugar source) {
  kiln_ir_value *object, *value;
  KILN_TRY(kiln__ts_value(e, target->kids[0], NULL, &object));
  KILN_TRY(kiln__sugar_value(e, target, &source, &value));
  int slot = object->type->kind == KILN_TYPE_CLASS
                 ? kiln_type_find_attribute(object->type, target->text)
                 : -1;
  if (slot < 0) {
    return kiln__ts_error(e, target, "%s has no attribute '" KILN_STR_FMT "'",
                          kiln__ts_type_name(e, object->type), KILN_STR_ARG(target->text));
  }
  KILN_TRY(kiln__ts_convert(e, target, value, object->type->cls->attributes[slot].type, "the value",
                            &value));
  kiln_node *node = kiln__ts_node(e, target, KILN_OP_prim_SetAttr, KILN_VALUES(object, value));
  kiln_node_set_str(node, "name", target->text);
  return NULL;
}

kiln_status *kiln__ts_assign(kiln__script_emitter *e, const kiln_ast *target, kiln_sugar source,
                             const kiln_type *declared) {
  switch ((kiln_ast_kind)target->kind) {
    case KILN_AST_NAME: return assign_name(e, target, source, declared);
    case KILN_AST_ATTR: return assign_attribute(e, target, source);
    case KILN_AST_TUPLE:
    case KILN_AST_LIST:
      if (source.kind != KILN_SUGAR_VALUE && source.kind != KILN_SUGAR_VALUES) {
        KILN_TRY(kiln__sugar_value(e, target, &source, &source.value));
      }
      return unpack(e, target, source);
    case KILN_AST_INDEX: {
      kiln_ir_value *value;
      KILN_TRY(kiln__sugar_value(e, target, &source, &value));
      return kiln__ts_index_assign(e, target, value);
    }
    default: return kiln__ts_error(e, target, "this cannot be assigned to");
  }
}

kiln_status *kiln__ts_assign_value(kiln__script_emitter *e, const kiln_ast *target,
                                   kiln_ir_value *value) {
  const kiln_sugar source = {.kind = KILN_SUGAR_VALUE, .value = value};
  return kiln__ts_assign(e, target, source, NULL);
}

/* a, b = x, y: all values first. */
static kiln_status *assign_parallel(kiln__script_emitter *e, const kiln_ast *target,
                                    const kiln_ast *source) {
  kiln_ir_value **values = KILN_NEW_ARRAY(e->l->ast_arena, kiln_ir_value *, source->count + 1);
  for (int i = 0; i < source->count; i++) {
    const kiln_var *var =
        target->kids[i]->kind == KILN_AST_NAME ? kiln__find_var(e, target->kids[i]->text) : NULL;
    KILN_TRY(kiln__ts_value(e, source->kids[i], var ? var->declared : NULL, &values[i]));
  }
  for (int i = 0; i < source->count; i++) {
    KILN_TRY(kiln__ts_assign_value(e, target->kids[i], values[i]));
  }
  return NULL;
}

static kiln_status *emit_assignment(kiln__script_emitter *e, const kiln_ast *ast) {
  const kiln_ast *source = ast->kids[0], *first = ast->kids[2];
  if (ast->count == 3 && first->kind == KILN_AST_TUPLE && source->kind == KILN_AST_TUPLE &&
      first->count == source->count) {
    return assign_parallel(e, first, source);
  }
  const kiln_type *declared = NULL, *hint = NULL;
  if (ast->kids[1]) {
    KILN_TRY(kiln__resolve_type(e->l, e->source, ast->kids[1], &declared));
    hint = declared;
  } else if (first->kind == KILN_AST_NAME) {
    const kiln_var *var = kiln__find_var(e, first->text);
    hint = var ? var->declared : NULL;
  }
  kiln_sugar value;
  KILN_TRY(kiln__ts_sugar(e, source, hint, &value));
  for (int i = 2; i < ast->count; i++) {
    if (i == 3) { /* chained: one value for all */
      KILN_TRY(kiln__sugar_value(e, source, &value, &value.value));
      value.kind = KILN_SUGAR_VALUE;
    }
    KILN_TRY(kiln__ts_assign(e, ast->kids[i], value, declared));
  }
  return NULL;
}

/* x += y: in place for tensors and lists, else x = x + y. */
static kiln_status *emit_augmented(kiln__script_emitter *e, const kiln_ast *ast) {
  const kiln_ast *target = ast->kids[0];
  kiln_ir_value *values[2], *out;
  KILN_TRY(kiln__ts_value(e, target, NULL, &values[0]));
  KILN_TRY(kiln__ts_value(e, ast->kids[1], values[0]->type, &values[1]));
  bool in_place =
      values[0]->type->kind == KILN_TYPE_TENSOR || values[0]->type->kind == KILN_TYPE_LIST;
  const kiln__ts_operator *op = kiln__ts_find_operator(ast->op);
  if (!op || !op->in_place) return kiln__ts_error(e, ast, "an unknown operator");
  KILN_TRY(kiln__ts_op_values(e, ast, in_place ? op->in_place : op->name, values, 2, &out));
  return kiln__ts_assign_value(e, target, out);
}

/* -- If, with -- */

static kiln_status *emit_if(kiln__script_emitter *e, const kiln_ast *ast) {
  kiln_ir_value *condition;
  if (ast->kids[0]->kind == KILN_AST_FALSE || ast->kids[0]->kind == KILN_AST_TRUE) {
    /* A literal condition: the other side is not even compiled. */
    const kiln_ast *body = ast->kids[ast->kids[0]->kind == KILN_AST_TRUE ? 1 : 2];
    return body ? kiln__ts_statements(e, body->kids, body->count) : NULL;
  }
  KILN_TRY(kiln__ts_condition(e, ast->kids[0], &condition));
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_If, &condition, 1);
  kiln_var_scope yes, no;
  KILN_TRY(emit_branch(e, &yes, node, ast->kids[0], true, ast->kids[1]));
  KILN_TRY(emit_branch(e, &no, node, ast->kids[0], false, ast->kids[2]));
  return kiln__join_branches(e, ast, node, &yes, &no);
}

/* The interpreter calls __enter__(self) and __exit__(self, None, None, None) by name. */
static kiln_status *check_context(kiln__script_emitter *e, const kiln_ast *ast,
                                  const kiln_type *type, const kiln_type **out_type) {
  const bool has_methods = type->kind == KILN_TYPE_CLASS || type->kind == KILN_TYPE_INTERFACE;
  kiln_function *enter = NULL, *exit = NULL;
  if (has_methods) enter = kiln_class_find_method(type, KILN_STR("__enter__"));
  if (has_methods) exit = kiln_class_find_method(type, KILN_STR("__exit__"));
  if (!enter || !exit) return kiln__ts_error(e, ast, "the object has no __enter__ and __exit__");
  KILN_TRY(kiln__loader_schema(e->l, enter));
  KILN_TRY(kiln__loader_schema(e->l, exit));
  bool good = enter->schema->arg_count == 1 && exit->schema->arg_count == 4;
  for (int i = 1; i < 4 && good; i++) {
    good = kiln_type_is_subtype(kiln_type_basic(KILN_TYPE_NONE), exit->schema->args[i].type);
  }
  if (!good)
    return kiln__ts_error(e, ast, "__enter__ or __exit__ has arguments that it cannot get");
  *out_type = enter->schema->results[0].type;
  return NULL;
}

static kiln_status *emit_with(kiln__script_emitter *e, const kiln_ast *ast) {
  KILN_VEC(kiln_ir_value *) contexts = {0};
  for (int i = 1; i + 1 < ast->count; i += 2) {
    kiln_ir_value *context;
    KILN_TRY(kiln__ts_value(e, ast->kids[i], NULL, &context));
    const kiln_type *type;
    KILN_TRY(check_context(e, ast, context->type, &type));
    kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_Enter, &context, 1);
    kiln_ir_value *entered = kiln_node_add_output(node, type);
    if (ast->kids[i + 1]) KILN_TRY(kiln__ts_assign_value(e, ast->kids[i + 1], entered));
    kiln_vec_push(e->l->ast_arena, &contexts, context);
  }
  KILN_TRY(kiln__ts_statements(e, ast->kids[0]->kids, ast->kids[0]->count));
  for (int i = contexts.count - 1; i >= 0; i--) {
    kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_Exit, &contexts.data[i], 1);
    kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_NONE));
  }
  return NULL;
}

/* -- Lists of statements -- */

enum { STATEMENTS_PER_CHECK = 64, MAX_RESTS = 1000 };

static kiln_status *emit_statement(kiln__script_emitter *e, const kiln_ast *ast) {
  switch ((kiln_ast_kind)ast->kind) {
    case KILN_AST_EXPR: {
      kiln_sugar ignored;
      return kiln__ts_sugar(e, ast->kids[0], NULL, &ignored);
    }
    case KILN_AST_ASSIGN: return emit_assignment(e, ast);
    case KILN_AST_AUGMENTED: return emit_augmented(e, ast);
    case KILN_AST_IF: return emit_if(e, ast);
    case KILN_AST_FOR: return kiln__ts_for(e, ast);
    case KILN_AST_WHILE: return kiln__ts_while(e, ast);
    case KILN_AST_WITH: return emit_with(e, ast);
    case KILN_AST_RETURN: return emit_return(e, ast);
    case KILN_AST_BREAK: return emit_break(e, ast, true);
    case KILN_AST_CONTINUE: return emit_break(e, ast, false);
    case KILN_AST_RAISE: return emit_raise_statement(e, ast);
    case KILN_AST_ASSERT: return emit_assert(e, ast);
    case KILN_AST_PASS: return NULL;
    case KILN_AST_DELETE:
      for (int i = 0; i < ast->count; i++) KILN_TRY(kiln__ts_delete(e, ast->kids[i]));
      return NULL;
    case KILN_AST_DEF: {
      kiln_var *var = kiln__set_var(e, ast->text, NULL);
      var->closure = ast;
      return NULL;
    }
    case KILN_AST_DECLARE: {
      kiln_var *var =
          ast->kids[0]->kind == KILN_AST_NAME ? kiln__set_var(e, ast->kids[0]->text, NULL) : NULL;
      if (!var) return kiln__ts_error(e, ast, "this cannot be declared");
      var->why = "it is declared, but has no value";
      return kiln__resolve_type(e->l, e->source, ast->kids[1], &var->declared);
    }
    default: return kiln__ts_error(e, ast, "this statement is not supported");
  }
}

/* The statements after one that may have left the body: only when its flag is not set. */
static kiln_status *emit_rest(kiln__script_emitter *e, const kiln_ast *after,
                              kiln_ast *const *items, int count) {
  const kiln_var *flag = kiln__find_var(e, e->level->skip);
  if (!flag || !flag->value) return kiln__ts_statements(e, items, count);
  if (++e->rests > MAX_RESTS) {
    return kiln__ts_error(e, after, "more than %d early exits follow one another", MAX_RESTS);
  }
  kiln_node *node = kiln__ts_node(e, after, KILN_OP_prim_If, &flag->value, 1);
  kiln_var_scope left, rest;
  kiln__push_scope(e, &left, kiln_node_add_block(node));
  left.dead = true;
  kiln__pop_scope(e);
  kiln__push_scope(e, &rest, kiln_node_add_block(node));
  KILN_TRY(kiln__ts_statements(e, items, count));
  kiln__pop_scope(e);
  e->rests--;
  return kiln__join_branches(e, after, node, &left, &rest);
}

kiln_status *kiln__ts_statements(kiln__script_emitter *e, kiln_ast *const *items, int count) {
  for (int i = 0; i < count; i++) {
    if (++e->l->statements % STATEMENTS_PER_CHECK == 0) {
      KILN_TRY(kiln__loader_check(e->l, kiln_arena_bytes(e->arena)));
    }
    KILN_TRY(emit_statement(e, items[i]));
    if (e->scope->dead) return NULL;
    bool flagged = e->flags || (e->level && e->level->outer);
    if (flagged && i + 1 < count && kiln__may_exit(items[i])) {
      return emit_rest(e, items[i], items + i + 1, count - i - 1);
    }
  }
  return NULL;
}
