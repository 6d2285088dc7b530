/* emit_builtin.c: names that mean something by themselves: conversions, annotate, isinstance, fork.
 */
#include "frontend/torchscript/emit.h"

/* -- Names that are plain operators -- */

static const struct {
  const char *name, *op;
} plain[] = {
    {"min", "prim::min"},
    {"max", "prim::max"},
    {"all", "aten::all"},
    {"any", "aten::any"},
    {"sum", "aten::sum"},
    {"divmod", "aten::divmod"},
    {"list", "aten::list"},
    {"dict", "aten::dict"},
    {"ord", "aten::ord"},
    {"chr", "aten::chr"},
    {"bin", "aten::bin"},
    {"hex", "aten::hex"},
    {"oct", "aten::oct"},
    {"round", "aten::round"},
    {"pow", "aten::pow"},
    {"hash", "prim::hash"},
    {"id", "prim::id"},
    {"sorted", "aten::sorted"},
    {"rangelist", "prim::rangelist"},
    {"device", "aten::device"},
};

typedef kiln_status *(*builtin_fn)(kiln__script_emitter *e, const kiln_ast *ast,
                                   const kiln_type *hint, kiln_ir_value **out);

static kiln_status *need_args(kiln__script_emitter *e, const kiln_ast *ast, int low, int high) {
  if (ast->count - 1 >= low && ast->count - 1 <= high) return NULL;
  return kiln__ts_error(e, ast, "a call with %d argument%s, where %d to %d are allowed",
                        ast->count - 1, kiln_plural((uint64_t)ast->count - 1), low, high);
}

/* -- Conversions -- */

static kiln_status *cast_to(kiln__script_emitter *e, const kiln_ast *ast, kiln_type_kind kind,
                            const char *op, kiln_ir_value **out) {
  kiln_ir_value *value;
  KILN_TRY(need_args(e, ast, 1, 1));
  KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &value));
  *out = value;
  if (value->type->kind == kind) return NULL;
  if (value->type->kind == KILN_TYPE_CLASS) {
    const char *magic = kind == KILN_TYPE_INT     ? "__int__"
                        : kind == KILN_TYPE_FLOAT ? "__float__"
                        : kind == KILN_TYPE_STR   ? "__str__"
                                                  : "__complex__";
    kiln_function *method = kiln_class_find_method(value->type, kiln_str_from(magic));
    if (method) return kiln__ts_method(e, ast, value, method, NULL, 0, out);
  }
  KILN_TRY(kiln__ts_op_values(e, ast, op, &value, 1, out));
  return kiln__ts_convert(e, ast, *out, kiln_type_basic(kind), "the converted value", out);
}

static kiln_status *do_int(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                           kiln_ir_value **out) {
  (void)hint;
  return cast_to(e, ast, KILN_TYPE_INT, "aten::Int", out);
}
static kiln_status *do_float(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                             kiln_ir_value **out) {
  (void)hint;
  return cast_to(e, ast, KILN_TYPE_FLOAT, "aten::Float", out);
}
static kiln_status *do_str(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                           kiln_ir_value **out) {
  (void)hint;
  return cast_to(e, ast, KILN_TYPE_STR, "aten::str", out);
}
static kiln_status *do_complex(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                               kiln_ir_value **out) {
  (void)hint;
  if (ast->count != 3) return cast_to(e, ast, KILN_TYPE_COMPLEX, "aten::Complex", out);
  kiln_ir_value *parts[2];
  KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &parts[0]));
  KILN_TRY(kiln__ts_value(e, ast->kids[2], NULL, &parts[1]));
  return kiln__ts_op_values(e, ast, "aten::Complex", parts, 2, out);
}
static kiln_status *do_bool(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                            kiln_ir_value **out) {
  (void)hint;
  KILN_TRY(need_args(e, ast, 1, 1));
  return kiln__ts_condition(e, ast->kids[1], out);
}

static kiln_status *do_len(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                           kiln_ir_value **out) {
  (void)hint;
  kiln_ir_value *value;
  KILN_TRY(need_args(e, ast, 1, 1));
  KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &value));
  if (value->type->kind == KILN_TYPE_TUPLE) {
    *out = kiln__ts_int(e, ast, value->type->elem_count);
    return NULL;
  }
  kiln_function *method = value->type->kind == KILN_TYPE_CLASS
                              ? kiln_class_find_method(value->type, KILN_STR("__len__"))
                              : NULL;
  if (method) return kiln__ts_method(e, ast, value, method, NULL, 0, out);
  KILN_TRY(kiln__ts_op_values(e, ast, "aten::len", &value, 1, out));
  return kiln__ts_convert(e, ast, *out, kiln_type_basic(KILN_TYPE_INT), "the length", out);
}

static kiln_status *do_abs(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                           kiln_ir_value **out) {
  (void)hint;
  kiln_ir_value *value;
  KILN_TRY(need_args(e, ast, 1, 1));
  KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &value));
  bool tensor = kiln_type_is_tensor(value->type);
  return kiln__ts_op_values(e, ast, tensor ? "aten::abs" : "prim::abs", &value, 1, out);
}

static kiln_status *do_tuple(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                             kiln_ir_value **out) {
  if (ast->count == 1) {
    *out = kiln__ts_tuple(e, ast, NULL, NULL, 0);
    return NULL;
  }
  KILN_TRY(need_args(e, ast, 1, 1));
  KILN_TRY(kiln__ts_value(e, ast->kids[1], hint, out));
  if ((*out)->type->kind == KILN_TYPE_TUPLE) return NULL;
  return kiln__ts_error(e, ast, "only a tuple's length is known, so only it can become one");
}

/* -- Types in expressions -- */

static kiln_status *type_arg(kiln__script_emitter *e, const kiln_ast *ast,
                             const kiln_type **out_type) {
  return kiln__resolve_type(e->l, e->source, ast->kids[1], out_type);
}

static kiln_status *do_annotate(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                                kiln_ir_value **out) {
  (void)hint;
  const kiln_type *type;
  KILN_TRY(need_args(e, ast, 2, 2));
  KILN_TRY(type_arg(e, ast, &type));
  KILN_TRY(kiln__ts_value(e, ast->kids[2], type, out));
  /* It converts implicitly, as an argument would: annotate(int, tensor). */
  kiln_type_env env = {.types = e->l->types};
  kiln_schema_arg formal = {.type = type};
  const kiln_type *fitted = NULL;
  kiln_fit fit = kiln_match_arg(&env, &formal, (*out)->type, false, true, &fitted);
  const char *op = fit == KILN_FIT_SAME || fit == KILN_FIT_NO ? NULL : kiln_fit_op_name(fit);
  if (op) KILN_TRY(kiln__ts_op_values(e, ast, op, out, 1, out));
  return kiln__ts_convert(e, ast, *out, type, "the annotated value", out);
}

static kiln_status *do_unchecked_cast(kiln__script_emitter *e, const kiln_ast *ast,
                                      const kiln_type *hint, kiln_ir_value **out) {
  (void)hint;
  const kiln_type *type;
  KILN_TRY(need_args(e, ast, 2, 2));
  KILN_TRY(type_arg(e, ast, &type));
  KILN_TRY(kiln__ts_value(e, ast->kids[2], type, out));
  *out = kiln__ts_cast(e, ast, *out, type);
  return NULL;
}

static kiln_status *do_uninitialized(kiln__script_emitter *e, const kiln_ast *ast,
                                     const kiln_type *hint, kiln_ir_value **out) {
  (void)hint;
  const kiln_type *type;
  KILN_TRY(need_args(e, ast, 1, 1));
  KILN_TRY(type_arg(e, ast, &type));
  *out = kiln__ts_uninitialized(e, ast, type);
  return NULL;
}

/* 1 always, 0 never, -1 only the run knows. */
static int static_isinstance(const kiln_type *type, const kiln_type *const *types, int count) {
  for (int i = 0; i < count; i++) {
    if (kiln_type_is_subtype(type, types[i])) return 1;
  }
  switch (type->kind) {
    case KILN_TYPE_TENSOR:
    case KILN_TYPE_INT:
    case KILN_TYPE_FLOAT:
    case KILN_TYPE_BOOL:
    case KILN_TYPE_STR:
    case KILN_TYPE_NONE: return 0;
    default: return -1;
  }
}

static kiln_status *do_isinstance(kiln__script_emitter *e, const kiln_ast *ast,
                                  const kiln_type *hint, kiln_ir_value **out) {
  (void)hint;
  kiln_ir_value *value;
  KILN_TRY(need_args(e, ast, 2, 2));
  KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &value));
  const kiln_ast *list = ast->kids[2];
  int count = list->kind == KILN_AST_TUPLE ? list->count : 1;
  const kiln_type **types = KILN_NEW_ARRAY(e->arena, const kiln_type *, count + 1);
  for (int i = 0; i < count; i++) {
    const kiln_ast *item = list->kind == KILN_AST_TUPLE ? list->kids[i] : list;
    KILN_TRY(kiln__resolve_type(e->l, e->source, item, &types[i]));
  }
  int known = kiln__is_loose(e, value) ? -1 : static_isinstance(value->type, types, count);
  if (known >= 0) {
    *out = kiln__ts_bool(e, ast, known == 1);
    return NULL;
  }
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_isinstance);
  kiln_node_add_input(node, value);
  kiln_node_set_types(node, "types", types, count);
  *out = kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_BOOL));
  return NULL;
}

/* x.tolist() under annotate(List[List[float]], …): prim::tolist(x, depth, element code), codes as
 * PyTorch's: 0 int, 1 float, 2 complex, 3 bool. */
kiln_status *kiln__ts_tolist(kiln__script_emitter *e, const kiln_ast *ast, kiln_ir_value *value,
                             const kiln_type *hint, kiln_ir_value **out) {
  int64_t depth = 0;
  const kiln_type *elem = hint;
  while (elem && elem->kind == KILN_TYPE_LIST) {
    elem = elem->elems[0];
    depth++;
  }
  int64_t code = !elem                             ? -1
                 : elem->kind == KILN_TYPE_INT     ? 0
                 : elem->kind == KILN_TYPE_FLOAT   ? 1
                 : elem->kind == KILN_TYPE_COMPLEX ? 2
                 : elem->kind == KILN_TYPE_BOOL    ? 3
                                                   : -1;
  if (code < 0) return kiln__ts_error(e, ast, "tolist needs an annotated type of its result");
  kiln_ir_value *dims = kiln__ts_int(e, ast, depth), *type = kiln__ts_int(e, ast, code);
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_tolist);
  kiln_node_add_input(node, value);
  kiln_node_add_input(node, dims);
  kiln_node_add_input(node, type);
  *out = kiln_node_add_output(node, hint);
  return NULL;
}

/* -- Attributes by name, printing -- */

static kiln_status *do_getattr(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                               kiln_ir_value **out) {
  (void)hint;
  KILN_TRY(need_args(e, ast, 2, 3));
  if (ast->kids[2]->kind != KILN_AST_STRING) {
    return kiln__ts_error(e, ast, "getattr needs a literal name");
  }
  kiln_sugar base = {.kind = KILN_SUGAR_VALUE}, found;
  KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &base.value));
  KILN_TRY(kiln__ts_attribute(e, ast, base, ast->kids[2]->text, &found));
  return kiln__sugar_value(e, ast, &found, out);
}

static kiln_status *do_hasattr(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                               kiln_ir_value **out) {
  (void)hint;
  kiln_ir_value *value;
  KILN_TRY(need_args(e, ast, 2, 2));
  KILN_TRY(kiln__ts_value(e, ast->kids[1], NULL, &value));
  bool has = ast->kids[2]->kind == KILN_AST_STRING && value->type->kind == KILN_TYPE_CLASS &&
             (kiln_type_find_attribute(value->type, ast->kids[2]->text) >= 0 ||
              kiln_class_find_method(value->type, ast->kids[2]->text));
  *out = kiln__ts_bool(e, ast, has);
  return NULL;
}

static kiln_status *do_print(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                             kiln_ir_value **out) {
  (void)hint;
  kiln_args args = {0};
  KILN_TRY(kiln__ts_args(e, ast, &args));
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_Print);
  for (int i = 0; i < args.count; i++) kiln_node_add_input(node, args.data[i].value);
  *out = kiln__ts_none(e, ast);
  return NULL;
}

/* -- Fork -- */

enum { MAX_FORK_NESTING = 32 };

static kiln_status *emit_closure(kiln__script_emitter *e, const kiln_ast *closure) {
  kiln_var_scope top;
  kiln_exit_level level = {.skip = KILN_STR("$skip")};
  const kiln_ast *body = closure->kids[1];
  e->level = &level;
  for (int i = 0; i < body->count; i++) {
    bool last = i + 1 == body->count && body->kids[i]->kind == KILN_AST_RETURN;
    if (!last && kiln__may_return(body->kids[i])) {
      return kiln__ts_error(e, body->kids[i], "an early return in a forked function");
    }
  }
  kiln__push_scope(e, &top, e->graph->top);
  KILN_TRY(kiln__ts_statements(e, body->kids, body->count));
  if (!e->result) e->result = kiln__ts_none(e, closure);
  kiln_graph_add_output(e->graph, e->result);
  return NULL;
}

kiln_status *kiln__ts_fork(kiln__script_emitter *e, const kiln_ast *ast, const kiln_ast *closure,
                           kiln_ir_value **out) {
  if (closure->count != 2) return kiln__ts_error(e, ast, "a forked function with parameters");
  int nesting = 1; /* a function that forks itself has no end */
  for (const kiln__script_emitter *outer = e->outer; outer; outer = outer->outer) nesting++;
  if (nesting > MAX_FORK_NESTING) {
    return kiln__ts_error(e, ast, "forks are nested deeper than %d", MAX_FORK_NESTING);
  }
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_fork);
  kiln_graph *graph = kiln_graph_create_sub(e->graph);
  kiln__script_emitter inner = {.l = e->l,
                                .function = e->function,
                                .file = e->file,
                                .source = e->source,
                                .graph = graph,
                                .arena = graph->arena,
                                .outer = e,
                                .capturing = node};
  kiln_map_init(&inner.loose, e->l->ast_arena);
  KILN_TRY(emit_closure(&inner, closure));
  kiln_node_set_graph(node, "Subgraph", graph);
  *out = kiln_node_add_output(node, kiln_type_future(e->l->types, inner.result->type));
  return NULL;
}

static kiln_status *do_fork(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                            kiln_ir_value **out) {
  (void)hint;
  KILN_TRY(need_args(e, ast, 1, 1));
  const kiln_var *var =
      ast->kids[1]->kind == KILN_AST_NAME ? kiln__find_var(e, ast->kids[1]->text) : NULL;
  if (!var || !var->closure) return kiln__ts_error(e, ast, "fork needs a nested function");
  return kiln__ts_fork(e, ast, var->closure, out);
}

static kiln_status *refuse(kiln__script_emitter *e, const kiln_ast *ast, const kiln_type *hint,
                           kiln_ir_value **out) {
  (void)hint;
  (void)out;
  return kiln__ts_error(e, ast, "this call is not supported here");
}

static const struct {
  const char *name;
  builtin_fn emit;
} special[] = {
    {"int", do_int},
    {"float", do_float},
    {"str", do_str},
    {"complex", do_complex},
    {"bool", do_bool},
    {"len", do_len},
    {"abs", do_abs},
    {"tuple", do_tuple},
    {"annotate", do_annotate},
    {"unchecked_cast", do_unchecked_cast},
    {"uninitialized", do_uninitialized},
    {"isinstance", do_isinstance},
    {"getattr", do_getattr},
    {"hasattr", do_hasattr},
    {"print", do_print},
    {"fork", do_fork},
    {"awaitable", refuse},
    {"range", refuse},
    {"enumerate", refuse},
    {"zip", refuse},
};

bool kiln__is_builtin(kiln_str name) {
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    if (kiln_str_is(name, plain[i].name)) return true;
  }
  for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
    if (kiln_str_is(name, special[i].name)) return true;
  }
  return false;
}

kiln_status *kiln__ts_builtin(kiln__script_emitter *e, const kiln_ast *ast, kiln_str name,
                              const kiln_type *hint, kiln_sugar *out) {
  out->kind = KILN_SUGAR_VALUE;
  for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
    if (kiln_str_is(name, special[i].name)) return special[i].emit(e, ast, hint, &out->value);
  }
  kiln_args args = {0};
  KILN_TRY(kiln__ts_args(e, ast, &args));
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    if (!kiln_str_is(name, plain[i].name)) continue;
    return kiln__ts_op(e, ast, plain[i].op, args.data, args.count, out);
  }
  return kiln__ts_error(e, ast, "'" KILN_STR_FMT "' is not a function", KILN_STR_ARG(name));
}
