/* emit.c: nodes, names, and whole functions. */
#include "frontend/torchscript/emit.h"

kiln_status *kiln__ts_error(kiln__script_emitter *e, const kiln_ast *ast, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  kiln_status *status = kiln_status_create_v(KILN_INVALID_FILE, __FILE__, __LINE__, fmt, args);
  va_end(args);
  kiln_source_range range = {.source = e->source, .begin = ast->begin, .end = ast->end};
  return kiln_status_at(status, kiln_source_range_loc(&range));
}

const char *kiln__ts_type_name(kiln__script_emitter *e, const kiln_type *type) {
  kiln_text text = kiln_text_in(e->l->ast_arena);
  kiln_type_print_annotation(&text, type);
  return text.data;
}

/* -- Nodes -- */

void kiln__ts_append(kiln__script_emitter *e, const kiln_ast *ast, kiln_node *node) {
  if (ast != e->last_ast) {
    kiln_source_range *range = KILN_NEW(e->arena, kiln_source_range);
    range->source = e->source;
    range->begin = ast->begin;
    range->end = ast->end;
    range->function = e->function->qualname;
    e->last_ast = ast;
    e->last_range = range;
  }
  node->range = e->last_range;
  kiln_node_append(e->scope->block, node);
}

kiln_node *kiln__ts_node(kiln__script_emitter *e, const kiln_ast *ast, kiln_op_id id,
                         kiln_ir_value *const *inputs, int count) {
  kiln_node *node = kiln_node_create_id(e->graph, id);
  for (int i = 0; i < count; i++) kiln_node_add_input(node, inputs[i]);
  kiln__ts_append(e, ast, node);
  return node;
}

kiln_ir_value *kiln__ts_constant(kiln__script_emitter *e, const kiln_ast *ast, kiln_ivalue value,
                                 const kiln_type *type) {
  kiln_ir_value *out = kiln_append_constant(e->scope->block, value, type);
  if (ast == e->last_ast) out->node->range = e->last_range;
  return out;
}

kiln_ir_value *kiln__ts_none(kiln__script_emitter *e, const kiln_ast *ast) {
  return kiln__ts_constant(e, ast, kiln_none(), kiln_type_basic(KILN_TYPE_NONE));
}

kiln_ir_value *kiln__ts_int(kiln__script_emitter *e, const kiln_ast *ast, int64_t value) {
  return kiln__ts_constant(e, ast, kiln_int(value), kiln_type_basic(KILN_TYPE_INT));
}

kiln_ir_value *kiln__ts_bool(kiln__script_emitter *e, const kiln_ast *ast, bool value) {
  return kiln__ts_constant(e, ast, kiln_bool(value), kiln_type_basic(KILN_TYPE_BOOL));
}

kiln_status *kiln__ts_string(kiln__script_emitter *e, const kiln_ast *ast, kiln_str text,
                             kiln_ir_value **out) {
  kiln_string *string = NULL;
  KILN_TRY(kiln_string_create(e->l->env->mem, text, &string));
  *out = kiln__ts_constant(e, ast, kiln_of_box(string), kiln_type_basic(KILN_TYPE_STR));
  return NULL;
}

/* A container of a guess is a guess. */
static kiln_ir_value *make_container(kiln__script_emitter *e, const kiln_ast *ast, kiln_op_id id,
                                     const kiln_type *type, kiln_ir_value *const *items,
                                     int count) {
  bool loose = false;
  for (int i = 0; i < count; i++) loose = loose || kiln__is_loose(e, items[i]);
  kiln_ir_value *out = kiln_node_add_output(kiln__ts_node(e, ast, id, items, count), type);
  if (loose) kiln__make_loose(e, out);
  return out;
}

kiln_ir_value *kiln__ts_list(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *elem,
                             kiln_ir_value *const *items, int count) {
  const kiln_type *type = kiln_type_list(e->l->types, elem);
  return make_container(e, ast, KILN_OP_prim_ListConstruct, type, items, count);
}

kiln_ir_value *kiln__ts_tuple(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *type,
                              kiln_ir_value *const *items, int count) {
  if (!type) {
    const kiln_type **elems = KILN_NEW_ARRAY(e->l->ast_arena, const kiln_type *, count + 1);
    for (int i = 0; i < count; i++) {
      elems[i] = kiln_type_unshaped(e->l->types, items[i]->type);
    }
    type = kiln_type_tuple(e->l->types, elems, count);
  }
  return make_container(e, ast, KILN_OP_prim_TupleConstruct, type, items, count);
}

kiln_ir_value *kiln__ts_cast(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *value,
                             const kiln_type *type) {
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_unchecked_cast, &value, 1);
  return kiln_node_add_output(node, type);
}

kiln_ir_value *kiln__ts_uninitialized(kiln__script_emitter *e, const kiln_ast *ast,
                                      const kiln_type *type) {
  return kiln_node_add_output(kiln__ts_node(e, ast, KILN_OP_prim_Uninitialized, NULL, 0), type);
}

bool kiln__is_loose(const kiln__script_emitter *e, const kiln_ir_value *value) {
  return kiln_map_find_ptr(&e->loose, value) != NULL;
}

void kiln__make_loose(kiln__script_emitter *e, const kiln_ir_value *value) {
  kiln_map_set_ptr(&e->loose, value, e);
}

kiln_status *kiln__ts_convert(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *value,
                              const kiln_type *type, const char *what, kiln_ir_value **out) {
  *out = value;
  if (kiln_type_is_subtype(value->type, type)) return NULL;
  if (kiln__is_loose(e, value)) {
    *out = kiln__ts_cast(e, ast, value, type);
    return NULL;
  }
  return kiln__ts_error(e, ast, "%s has type %s where %s is wanted", what,
                        kiln__ts_type_name(e, value->type), kiln__ts_type_name(e, type));
}

/* -- Names -- */

static kiln_var *find_in_scopes(kiln__script_emitter *e, kiln_str name) {
  for (kiln_var_scope *s = e->scope; s; s = s->outer) {
    kiln_var *var = kiln_map_find(&s->vars, name);
    if (var) return var;
  }
  return NULL;
}

/* A closure's own names first, then the surrounding function's, which it captures by value. */
kiln_var *kiln__find_var(kiln__script_emitter *e, kiln_str name) {
  kiln_var *var = find_in_scopes(e, name);
  if (var || !e->outer) return var;
  kiln_var *outer = kiln__find_var(e->outer, name);
  if (!outer || !outer->value) return outer;
  kiln_node_add_input(e->capturing, outer->value);
  kiln_ir_value *input = kiln_graph_add_input(e->graph, "", outer->value->type);
  if (kiln__is_loose(e->outer, outer->value)) kiln__make_loose(e, input);
  kiln_var_scope *top = e->scope;
  while (top->outer) top = top->outer;
  var = KILN_NEW(e->l->ast_arena, kiln_var);
  var->value = input;
  kiln_map_set(&top->vars, name, var);
  return var;
}

/* Temporaries of the printer (_0) keep their number. */
static bool is_meaningful(kiln_str name) {
  if (name.len == 0 || name.data[0] == '$') return false;
  for (size_t i = 0; i < name.len; i++) {
    if (name.data[i] != '_' && (name.data[i] < '0' || name.data[i] > '9')) return true;
  }
  return false;
}

kiln_var *kiln__set_var(kiln__script_emitter *e, kiln_str name, kiln_ir_value *value) {
  kiln_var *old = find_in_scopes(e, name);
  kiln_var *var = KILN_NEW(e->l->ast_arena, kiln_var);
  var->value = value;
  if (old) var->declared = old->declared;
  if (value && value->name.len == 0 && is_meaningful(name)) kiln_ir_value_set_name(value, name);
  kiln_map_set(&e->scope->vars, name, var);
  return var;
}

void kiln__push_scope(kiln__script_emitter *e, kiln_var_scope *scope, kiln_block *block) {
  memset(scope, 0, sizeof *scope);
  scope->outer = e->scope;
  scope->block = block;
  scope->vars = kiln_map_in(e->l->ast_arena);
  e->scope = scope;
}

void kiln__pop_scope(kiln__script_emitter *e) { e->scope = e->scope->outer; }

/* -- Joins -- */

/* What the branch gives for a name: its own variable, or the outer one. */
static kiln_var *var_at_end(kiln__script_emitter *e, kiln_var_scope *branch, kiln_str name) {
  kiln_var *var = kiln_map_find(&branch->vars, name);
  return var ? var : kiln__find_var(e, name);
}

static void set_undefined(kiln__script_emitter *e, kiln_str name, const char *why) {
  kiln_var *var = KILN_NEW(e->l->ast_arena, kiln_var);
  var->why = why;
  kiln_map_set(&e->scope->vars, name, var);
}

/* The value as an output of its branch. */
static kiln_ir_value *branch_value(kiln__script_emitter *e, const kiln_ast *ast,
                                   kiln_var_scope *branch, kiln_ir_value *value,
                                   const kiln_type *type) {
  bool cast = value && !kiln_type_is_subtype(value->type, type);
  if (value && !cast) return value;
  kiln_var_scope *saved = e->scope;
  e->scope = branch;
  kiln_ir_value *out =
      cast ? kiln__ts_cast(e, ast, value, type) : kiln__ts_uninitialized(e, ast, type);
  e->scope = saved;
  return out;
}

static const char *type_clash(kiln__script_emitter *e, kiln_str name, const kiln_type *a,
                              const kiln_type *b) {
  return kiln_arena_printf(e->l->ast_arena,
                           "'" KILN_STR_FMT "' is %s in the true branch and %s in the false branch",
                           KILN_STR_ARG(name), kiln__ts_type_name(e, a), kiln__ts_type_name(e, b));
}

static void join_name(kiln__script_emitter *e, const kiln_ast *ast, kiln_node *node,
                      kiln_var_scope *a, kiln_var_scope *b, kiln_str name) {
  kiln_var *var_a = var_at_end(e, a, name), *var_b = var_at_end(e, b, name);
  kiln_ir_value *value_a = var_a && !a->dead ? var_a->value : NULL;
  kiln_ir_value *value_b = var_b && !b->dead ? var_b->value : NULL;
  /* Flags say why a branch is dead, so its values of them count. */
  if (name.data[0] == '$') {
    value_a = var_a ? var_a->value : NULL;
    value_b = var_b ? var_b->value : NULL;
  }
  if ((!value_a && !a->dead) || (!value_b && !b->dead)) {
    set_undefined(
        e, name,
        kiln_arena_printf(e->l->ast_arena, "'" KILN_STR_FMT "' is not defined in the %s branch",
                          KILN_STR_ARG(name), value_a ? "false" : "true"));
    return;
  }
  if (value_a == value_b) {
    if (value_a) kiln__set_var(e, name, value_a);
    return;
  }
  const kiln_type *type_a = value_a ? value_a->type : NULL;
  const kiln_type *type_b = value_b ? value_b->type : type_a;
  if (!type_a) type_a = type_b;
  bool loose_a = value_a && kiln__is_loose(e, value_a);
  bool loose_b = value_b && kiln__is_loose(e, value_b);
  const kiln_type *declared = var_a && var_a->declared ? var_a->declared : NULL;
  type_a = kiln_type_unshaped(e->l->types, type_a);
  type_b = kiln_type_unshaped(e->l->types, type_b);
  const kiln_type *type = kiln_type_unify(e->l->types, type_a, type_b, false);
  if (loose_a != loose_b && type_a != type_b) {
    type = loose_a ? type_b : type_a;
  } else if (declared && (!type || !kiln_type_is_subtype(type, declared)) &&
             kiln_type_is_subtype(type_a, declared) && kiln_type_is_subtype(type_b, declared)) {
    type = declared;
  }
  if (!type) {
    set_undefined(e, name, type_clash(e, name, type_a, type_b));
    return;
  }
  kiln_block_add_output(a->block, branch_value(e, ast, a, value_a, type));
  kiln_block_add_output(b->block, branch_value(e, ast, b, value_b, type));
  kiln_ir_value *out = kiln_node_add_output(node, type);
  if (loose_a && (loose_b || !value_b)) kiln__make_loose(e, out);
  if (loose_b && !value_a) kiln__make_loose(e, out);
  kiln__set_var(e, name, out)->declared = declared;
}

kiln_status *kiln__join_branches(kiln__script_emitter *e, const kiln_ast *ast, kiln_node *node,
                                 kiln_var_scope *a, kiln_var_scope *b) {
  kiln_map joined = kiln_map_in(e->l->ast_arena);
  for (int side = 0; side < 2; side++) {
    const kiln_map *vars = side == 0 ? &a->vars : &b->vars;
    for (int i = 0; i < vars->count; i++) {
      kiln_str name = vars->entries[i].key;
      const kiln_var *var = vars->entries[i].value;
      if (!var || kiln_map_find(&joined, name)) continue;
      kiln_map_set(&joined, name, e);
      join_name(e, ast, node, a, b, name);
    }
  }
  if (a->dead && b->dead) e->scope->dead = true;
  return NULL;
}

/* -- Functions -- */

/* A return that is not the last statement of the body. */
static bool returns_early(const kiln_ast *body) {
  for (int i = 0; i < body->count; i++) {
    const kiln_ast *item = body->kids[i];
    if (item->kind == KILN_AST_RETURN) {
      if (i + 1 < body->count) return true;
    } else if (kiln__may_return(item)) {
      return true;
    }
  }
  return false;
}

static void begin_flags(kiln__script_emitter *e, const kiln_ast *def) {
  const kiln_type *none = kiln_type_basic(KILN_TYPE_NONE);
  e->flags = true;
  kiln__set_var(e, KILN_STR("$return"), kiln__ts_bool(e, def, false));
  kiln__set_var(e, e->level->skip, kiln__ts_bool(e, def, false));
  kiln_ir_value *value = kiln_type_is_subtype(none, e->return_type)
                             ? kiln__ts_none(e, def)
                             : kiln__ts_uninitialized(e, def, e->return_type);
  kiln__set_var(e, KILN_STR("$value"), value)->declared = e->return_type;
}

static kiln_status *emit_body(kiln__script_emitter *e) {
  const kiln_pending_body *body = e->function->pending;
  const kiln_ast *def = body->def;
  const kiln_schema *schema = e->function->schema;
  kiln_var_scope top;
  kiln_exit_level level = {.skip = KILN_STR("$skip")};
  e->level = &level;
  e->loose = kiln_map_in(e->l->ast_arena);
  kiln__push_scope(e, &top, e->graph->top);
  for (int i = 0; i < schema->arg_count; i++) {
    const char *name = kiln_arena_str(e->arena, schema->args[i].name).data;
    kiln_ir_value *input = kiln_graph_add_input(e->graph, name, schema->args[i].type);
    kiln__set_var(e, schema->args[i].name, input)->declared = schema->args[i].type;
  }
  const kiln_ast *block = def->kids[1];
  if (returns_early(block)) begin_flags(e, def);
  KILN_TRY(kiln__ts_statements(e, block->kids, block->count));
  kiln_ir_value *result = e->result;
  if (e->flags) result = kiln__find_var(e, KILN_STR("$value"))->value;
  if (!result && top.dead) result = kiln__ts_uninitialized(e, def, e->return_type);
  if (!result) {
    KILN_TRY(kiln__ts_convert(e, def, kiln__ts_none(e, def), e->return_type,
                              "a function without return", &result));
  }
  KILN_TRY(kiln__ts_convert(e, def, result, e->return_type, "the result", &result));
  kiln_graph_add_output(e->graph, result);
  return NULL;
}

kiln_status *kiln__ts_function(kiln_loader *l, kiln_function *function) {
  kiln_pending_body *body = function->pending;
  function->graph = kiln_graph_create(l->env->mem, l->registry, l->types);
  kiln__script_emitter e = {.l = l,
                            .function = function,
                            .file = body->file,
                            .source = &body->file->source,
                            .graph = function->graph,
                            .arena = function->graph->arena,
                            .return_type = function->schema->results[0].type};
  return emit_body(&e);
}
