/* emit_builtin.c: names that mean something by themselves: conversions, annotate, isinstance, fork.
 */
#include "frontend/torchscript/emit.h"

/* A call of a name that is no operator: its arguments are the kids of `ast` from 1 on. */
typedef struct builtin_call {
  kiln__script_emitter *e;
  const kiln_ast *ast;
  kiln_str name;
  const kiln_type *hint;
} builtin_call;

static kiln_status *arg_value(const builtin_call *c, int i, kiln_ir_value **out) {
  return kiln__ts_value(c->e, c->ast->kids[i], NULL, out);
}

static kiln_status *need_args(kiln__script_emitter *e, const kiln_ast *ast, int low, int high) {
  if (ast->count - 1 >= low && ast->count - 1 <= high) return NULL;
  return kiln__ts_error(e, ast, "a call with %d argument%s, where %d to %d are allowed",
                        ast->count - 1, kiln_plural((uint64_t)ast->count - 1), low, high);
}

/* -- Conversions -- */

static const struct {
  const char *name, *op, *magic;
  kiln_type_kind kind;
} casts[] = {
    {"int", "aten::Int", "__int__", KILN_TYPE_INT},
    {"float", "aten::Float", "__float__", KILN_TYPE_FLOAT},
    {"str", "aten::str", "__str__", KILN_TYPE_STR},
    {"complex", "aten::Complex", "__complex__", KILN_TYPE_COMPLEX},
};

static kiln_status *do_cast(const builtin_call *c, kiln_ir_value **out) {
  kiln_ir_value *value;
  int i = 0;
  while (!kiln_str_is(c->name, casts[i].name)) i++;
  KILN_TRY(need_args(c->e, c->ast, 1, 1));
  KILN_TRY(arg_value(c, 1, &value));
  if (value->type->kind == casts[i].kind) {
    *out = value;
    return NULL;
  }
  KILN_TRY(kiln__ts_magic(c->e, c->ast, value, casts[i].magic, NULL, 0, out));
  if (*out) return NULL;
  KILN_TRY(kiln__ts_op_values(c->e, c->ast, casts[i].op, &value, 1, out));
  return kiln__ts_convert(c->e, c->ast, *out, kiln_type_basic(casts[i].kind), "the converted value",
                          out);
}

/* Of one value, or of two parts. */
static kiln_status *do_complex(const builtin_call *c, kiln_ir_value **out) {
  if (c->ast->count != 3) return do_cast(c, out);
  kiln_ir_value *parts[2];
  KILN_TRY(arg_value(c, 1, &parts[0]));
  KILN_TRY(arg_value(c, 2, &parts[1]));
  return kiln__ts_op_values(c->e, c->ast, "aten::Complex", parts, 2, out);
}

static kiln_status *do_bool(const builtin_call *c, kiln_ir_value **out) {
  return kiln__ts_condition(c->e, c->ast->kids[1], out);
}

static kiln_status *do_len(const builtin_call *c, kiln_ir_value **out) {
  kiln_ir_value *value;
  KILN_TRY(arg_value(c, 1, &value));
  if (value->type->kind == KILN_TYPE_TUPLE) {
    *out = kiln__ts_int(c->e, c->ast, value->type->elem_count);
    return NULL;
  }
  KILN_TRY(kiln__ts_magic(c->e, c->ast, value, "__len__", NULL, 0, out));
  if (*out) return NULL;
  KILN_TRY(kiln__ts_op_values(c->e, c->ast, "aten::len", &value, 1, out));
  return kiln__ts_convert(c->e, c->ast, *out, kiln_type_basic(KILN_TYPE_INT), "the length", out);
}

static kiln_status *do_abs(const builtin_call *c, kiln_ir_value **out) {
  kiln_ir_value *value;
  KILN_TRY(arg_value(c, 1, &value));
  bool tensor = kiln_type_is_tensor(value->type);
  return kiln__ts_op_values(c->e, c->ast, tensor ? "aten::abs" : "prim::abs", &value, 1, out);
}

static kiln_status *do_tuple(const builtin_call *c, kiln_ir_value **out) {
  if (c->ast->count == 1) {
    *out = kiln__ts_tuple(c->e, c->ast, NULL, NULL, 0);
    return NULL;
  }
  KILN_TRY(need_args(c->e, c->ast, 1, 1));
  KILN_TRY(kiln__ts_value(c->e, c->ast->kids[1], c->hint, out));
  if ((*out)->type->kind == KILN_TYPE_TUPLE) return NULL;
  return kiln__ts_error(c->e, c->ast, "only a tuple's length is known, so only it can become one");
}

/* -- Types in expressions -- */

static kiln_status *type_arg(const builtin_call *c, const kiln_type **out_type) {
  return kiln__resolve_type(c->e->l, c->e->source, c->ast->kids[1], out_type);
}

static kiln_status *do_annotate(const builtin_call *c, kiln_ir_value **out) {
  const kiln_type *type;
  KILN_TRY(type_arg(c, &type));
  KILN_TRY(kiln__ts_value(c->e, c->ast->kids[2], type, out));
  /* It converts implicitly, as an argument would: annotate(int, tensor). */
  kiln_type_env env = {.types = c->e->l->types};
  kiln_schema_arg formal = {.type = type};
  const kiln_type *fitted = NULL;
  kiln_fit fit = kiln_match_arg(&env, &formal, (*out)->type, false, true, &fitted);
  const char *op = fit == KILN_FIT_SAME || fit == KILN_FIT_NO ? NULL : kiln_fit_op_name(fit);
  if (op) KILN_TRY(kiln__ts_op_values(c->e, c->ast, op, out, 1, out));
  return kiln__ts_convert(c->e, c->ast, *out, type, "the annotated value", out);
}

static kiln_status *do_unchecked_cast(const builtin_call *c, kiln_ir_value **out) {
  const kiln_type *type;
  KILN_TRY(type_arg(c, &type));
  KILN_TRY(kiln__ts_value(c->e, c->ast->kids[2], type, out));
  *out = kiln__ts_cast(c->e, c->ast, *out, type);
  return NULL;
}

static kiln_status *do_uninitialized(const builtin_call *c, kiln_ir_value **out) {
  const kiln_type *type;
  KILN_TRY(type_arg(c, &type));
  *out = kiln__ts_uninitialized(c->e, c->ast, type);
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

static kiln_status *do_isinstance(const builtin_call *c, kiln_ir_value **out) {
  kiln_ir_value *value;
  KILN_TRY(arg_value(c, 1, &value));
  int count;
  const kiln_type **types;
  KILN_TRY(kiln__ts_types(c->e, c->ast->kids[2], &types, &count));
  int known = kiln__is_loose(c->e, value) ? -1 : static_isinstance(value->type, types, count);
  if (known >= 0) {
    *out = kiln__ts_bool(c->e, c->ast, known == 1);
    return NULL;
  }
  kiln_node *node = kiln__ts_node(c->e, c->ast, KILN_OP_prim_isinstance, &value, 1);
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
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_tolist, KILN_VALUES(value, dims, type));
  *out = kiln_node_add_output(node, hint);
  return NULL;
}

/* -- Attributes by name, printing -- */

static kiln_status *do_getattr(const builtin_call *c, kiln_ir_value **out) {
  if (c->ast->kids[2]->kind != KILN_AST_STRING) {
    return kiln__ts_error(c->e, c->ast, "getattr needs a literal name");
  }
  kiln_sugar base = {.kind = KILN_SUGAR_VALUE}, found;
  KILN_TRY(arg_value(c, 1, &base.value));
  KILN_TRY(kiln__ts_attribute(c->e, c->ast, base, c->ast->kids[2]->text, &found));
  return kiln__sugar_value(c->e, c->ast, &found, out);
}

static kiln_status *do_hasattr(const builtin_call *c, kiln_ir_value **out) {
  kiln_ir_value *value;
  KILN_TRY(arg_value(c, 1, &value));
  bool has = c->ast->kids[2]->kind == KILN_AST_STRING && value->type->kind == KILN_TYPE_CLASS &&
             (kiln_type_find_attribute(value->type, c->ast->kids[2]->text) >= 0 ||
              kiln_class_find_method(value->type, c->ast->kids[2]->text));
  *out = kiln__ts_bool(c->e, c->ast, has);
  return NULL;
}

static kiln_status *do_print(const builtin_call *c, kiln_ir_value **out) {
  kiln_args args = {0};
  KILN_TRY(kiln__ts_args(c->e, c->ast, &args));
  kiln_node *node = kiln__ts_node(c->e, c->ast, KILN_OP_prim_Print, NULL, 0);
  for (int i = 0; i < args.count; i++) kiln_node_add_input(node, args.data[i].value);
  *out = kiln__ts_none(c->e, c->ast);
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
  kiln_node *node = kiln__ts_node(e, ast, KILN_OP_prim_fork, NULL, 0);
  kiln_graph *graph = kiln_graph_create_sub(e->graph);
  kiln__script_emitter inner = {.l = e->l,
                                .function = e->function,
                                .file = e->file,
                                .source = e->source,
                                .graph = graph,
                                .arena = graph->arena,
                                .outer = e,
                                .capturing = node};
  inner.loose = kiln_map_in(e->l->ast_arena);
  KILN_TRY(emit_closure(&inner, closure));
  kiln_node_set_graph(node, "Subgraph", graph);
  *out = kiln_node_add_output(node, kiln_type_future(e->l->types, inner.result->type));
  return NULL;
}

static kiln_status *do_fork(const builtin_call *c, kiln_ir_value **out) {
  const kiln_var *var =
      c->ast->kids[1]->kind == KILN_AST_NAME ? kiln__find_var(c->e, c->ast->kids[1]->text) : NULL;
  if (!var || !var->closure) return kiln__ts_error(c->e, c->ast, "fork needs a nested function");
  return kiln__ts_fork(c->e, c->ast, var->closure, out);
}

static kiln_status *refuse(const builtin_call *c, kiln_ir_value **out) {
  (void)out;
  return kiln__ts_error(c->e, c->ast, "this call is not supported here");
}

/* -- The names -- */

typedef struct builtin {
  const char *name, *op; /* a plain operator, or else: */
  kiln_status *(*emit)(const builtin_call *c, kiln_ir_value **out);
  int low, high; /* how many arguments; 0: it says so itself */
} builtin;

static const builtin builtins[] = {
    {"min", "prim::min", NULL, 0, 0},
    {"max", "prim::max", NULL, 0, 0},
    {"all", "aten::all", NULL, 0, 0},
    {"any", "aten::any", NULL, 0, 0},
    {"sum", "aten::sum", NULL, 0, 0},
    {"divmod", "aten::divmod", NULL, 0, 0},
    {"list", "aten::list", NULL, 0, 0},
    {"dict", "aten::dict", NULL, 0, 0},
    {"ord", "aten::ord", NULL, 0, 0},
    {"chr", "aten::chr", NULL, 0, 0},
    {"bin", "aten::bin", NULL, 0, 0},
    {"hex", "aten::hex", NULL, 0, 0},
    {"oct", "aten::oct", NULL, 0, 0},
    {"round", "aten::round", NULL, 0, 0},
    {"pow", "aten::pow", NULL, 0, 0},
    {"hash", "prim::hash", NULL, 0, 0},
    {"id", "prim::id", NULL, 0, 0},
    {"sorted", "aten::sorted", NULL, 0, 0},
    {"rangelist", "prim::rangelist", NULL, 0, 0},
    {"device", "aten::device", NULL, 0, 0},
    {"int", NULL, do_cast, 0, 0},
    {"float", NULL, do_cast, 0, 0},
    {"str", NULL, do_cast, 0, 0},
    {"complex", NULL, do_complex, 0, 0},
    {"bool", NULL, do_bool, 1, 1},
    {"len", NULL, do_len, 1, 1},
    {"abs", NULL, do_abs, 1, 1},
    {"tuple", NULL, do_tuple, 0, 0},
    {"annotate", NULL, do_annotate, 2, 2},
    {"unchecked_cast", NULL, do_unchecked_cast, 2, 2},
    {"uninitialized", NULL, do_uninitialized, 1, 1},
    {"isinstance", NULL, do_isinstance, 2, 2},
    {"getattr", NULL, do_getattr, 2, 3},
    {"hasattr", NULL, do_hasattr, 2, 2},
    {"print", NULL, do_print, 0, 0},
    {"fork", NULL, do_fork, 1, 1},
    {"awaitable", NULL, refuse, 0, 0},
    {"range", NULL, refuse, 0, 0},
    {"enumerate", NULL, refuse, 0, 0},
    {"zip", NULL, refuse, 0, 0},
};

static const builtin *find_builtin(kiln_str name) {
  for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
    if (kiln_str_is(name, builtins[i].name)) return &builtins[i];
  }
  return NULL;
}

bool kiln__is_builtin(kiln_str name) { return find_builtin(name) != NULL; }

kiln_status *kiln__ts_builtin(kiln__script_emitter *e, const kiln_ast *ast, kiln_str name,
                              const kiln_type *hint, kiln_sugar *out) {
  const builtin *b = find_builtin(name);
  kiln_args args = {0};
  out->kind = KILN_SUGAR_VALUE;
  KILN_CHECK(b);
  if (b->high) KILN_TRY(need_args(e, ast, b->low, b->high));
  if (b->emit) return b->emit(&(builtin_call){e, ast, name, hint}, &out->value);
  KILN_TRY(kiln__ts_args(e, ast, &args));
  return kiln__ts_op(e, ast, b->op, args.data, args.count, out);
}
