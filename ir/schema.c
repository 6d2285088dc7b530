/* schema.c: operator schemas: parser and printer of
 *   ns::name.overload(Type(alias)[N]? name=default, *, …) -> (Type name, …)
 *
 * A hand-written descent over the bytes: about a microsecond a schema, since a context parses all
 * of them when it is made. Alias sets are single letters, 'a' to 'z'. */
#include "base/cursor.h"
#include "ir/op.h"

typedef struct parser {
  kiln_arena *arena;
  kiln_type_table *types;
  kiln_cursor c; /* its text is terminated */
  kiln_schema *schema;
  int depth;
} parser;

enum { MAX_ARGS = 64, MAX_DEPTH = 16 };

static kiln_status *fail(const parser *p, const char *what) {
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "schema \"%s\": %s at column %d", p->c.begin, what,
                    (int)(p->c.at - p->c.begin) + 1);
}

static kiln_str parse_ident(parser *p) {
  kiln_cursor_skip(&p->c);
  return kiln_cursor_take(&p->c, kiln_is_word);
}

/* -- Alias annotations -- */

/* "a|b", "*", possibly empty. */
static bool parse_sets(parser *p, uint32_t *out) {
  *out = 0;
  do {
    kiln_cursor_skip(&p->c);
    if (*p->c.at == '*') {
      *out |= KILN_ALIAS_WILDCARD;
      p->c.at++;
    } else if (*p->c.at >= 'a' && *p->c.at <= 'z' && !kiln_is_word(p->c.at[1])) {
      *out |= 1u << (*p->c.at++ - 'a');
    } else {
      return false;
    }
  } while (kiln_cursor_accept(&p->c, "|"));
  return true;
}

/* After the '('. */
static kiln_status *parse_alias(parser *p, kiln_alias_info *out) {
  *out = (kiln_alias_info){.present = true};
  if (!parse_sets(p, &out->sets)) return fail(p, "expected an alias set");
  out->after = out->sets;
  out->is_write = kiln_cursor_accept(&p->c, "!");
  if (kiln_cursor_accept(&p->c, "->") && !parse_sets(p, &out->after)) {
    return fail(p, "expected an alias set");
  }
  return kiln_cursor_accept(&p->c, ")") ? NULL : fail(p, "expected ')'");
}

/* -- Types -- */

typedef struct typed {
  const kiln_type *type;
  int fixed_count;
  kiln_alias_info alias, elem_alias;
} typed;

static kiln_status *parse_type(parser *p, typed *out);

/* Words for types, and where they may stand. Enumerations (Layout, ScalarType) are ints in
 * TorchScript. */
enum { IN_SCHEMA = 1, IN_SOURCE = 2, EVERYWHERE = IN_SCHEMA | IN_SOURCE };
static const struct {
  const char *name;
  kiln_type_kind kind;
  int where;
} basic_types[] = {
    {"Tensor", KILN_TYPE_TENSOR, EVERYWHERE},
    {"int", KILN_TYPE_INT, EVERYWHERE},
    {"Scalar", KILN_TYPE_NUMBER, EVERYWHERE},
    {"bool", KILN_TYPE_BOOL, EVERYWHERE},
    {"float", KILN_TYPE_FLOAT, EVERYWHERE},
    {"SymInt", KILN_TYPE_INT, IN_SCHEMA},
    {"ScalarType", KILN_TYPE_INT, EVERYWHERE},
    {"Layout", KILN_TYPE_INT, EVERYWHERE},
    {"MemoryFormat", KILN_TYPE_INT, EVERYWHERE},
    {"Device", KILN_TYPE_DEVICE, EVERYWHERE},
    {"str", KILN_TYPE_STR, EVERYWHERE},
    {"Any", KILN_TYPE_ANY, EVERYWHERE},
    {"number", KILN_TYPE_NUMBER, EVERYWHERE},
    {"complex", KILN_TYPE_COMPLEX, EVERYWHERE},
    {"Generator", KILN_TYPE_GENERATOR, EVERYWHERE},
    {"Dimname", KILN_TYPE_STR, IN_SCHEMA},
    {"NoneType", KILN_TYPE_NONE, EVERYWHERE},
    {"AnyEnumType", KILN_TYPE_ANY_ENUM, EVERYWHERE},
    {"list", KILN_TYPE_ANY_LIST, EVERYWHERE},
    {"tuple", KILN_TYPE_ANY_TUPLE, EVERYWHERE},
    {"AnyClassType", KILN_TYPE_ANY_CLASS, EVERYWHERE},
    {"Stream", KILN_TYPE_STREAM, EVERYWHERE},
    {"Storage", KILN_TYPE_STORAGE, EVERYWHERE},
    {"QScheme", KILN_TYPE_QSCHEME, EVERYWHERE},
    {"SymFloat", KILN_TYPE_FLOAT, IN_SCHEMA},
    {"SymBool", KILN_TYPE_BOOL, IN_SCHEMA},
    {"DeviceIndex", KILN_TYPE_INT, IN_SCHEMA},
    {"Capsule", KILN_TYPE_CAPSULE, EVERYWHERE},
    {"Function", KILN_TYPE_FUNCTION, IN_SCHEMA},
    {"AnyTuple", KILN_TYPE_ANY_TUPLE, IN_SOURCE},
    {"AnyList", KILN_TYPE_ANY_LIST, IN_SOURCE},
    {"Dtype", KILN_TYPE_INT, IN_SOURCE},
};

const kiln_type *kiln_type_of_word(kiln_str word, bool source) {
  const int where = source ? IN_SOURCE : IN_SCHEMA;
  for (size_t i = 0; i < sizeof basic_types / sizeof *basic_types; i++) {
    if ((basic_types[i].where & where) && kiln_str_is(word, basic_types[i].name)) {
      return kiln_type_basic(basic_types[i].kind);
    }
  }
  return NULL;
}

static kiln_status *parse_elem(parser *p, const kiln_type **out) {
  typed t;
  KILN_TRY(parse_type(p, &t));
  *out = t.type;
  return NULL;
}

static kiln_status *parse_dict(parser *p, const kiln_type **out) {
  const kiln_type *key, *value;
  if (!kiln_cursor_accept(&p->c, "(")) return fail(p, "expected '('");
  KILN_TRY(parse_elem(p, &key));
  if (!kiln_cursor_accept(&p->c, ",")) return fail(p, "expected ','");
  KILN_TRY(parse_elem(p, &value));
  if (!kiln_cursor_accept(&p->c, ")")) return fail(p, "expected ')'");
  *out = kiln_type_dict(p->types, key, value);
  return NULL;
}

/* "Future(t)" or, as types print, "Future[t]". */
static kiln_status *parse_wrapped(parser *p, kiln_type_kind kind, const kiln_type **out) {
  const kiln_type *elem;
  bool square = kiln_cursor_accept(&p->c, "[");
  if (!square && !kiln_cursor_accept(&p->c, "(")) return fail(p, "expected '('");
  KILN_TRY(parse_elem(p, &elem));
  if (!kiln_cursor_accept(&p->c, square ? "]" : ")")) return fail(p, "expected ')'");
  *out = kiln_type_wrap(p->types, kind, elem);
  return NULL;
}

/* After the '('. */
static kiln_status *parse_tuple(parser *p, const kiln_type **out) {
  const kiln_type *elems[MAX_ARGS];
  int count = 0;
  if (!kiln_cursor_accept(&p->c, ")")) {
    do {
      if (count == MAX_ARGS) return fail(p, "too many elements");
      KILN_TRY(parse_elem(p, &elems[count++]));
    } while (kiln_cursor_accept(&p->c, ","));
    if (!kiln_cursor_accept(&p->c, ")")) return fail(p, "expected ')'");
  }
  *out = kiln_type_tuple(p->types, elems, count);
  return NULL;
}

static kiln_status *parse_named_type(parser *p, const kiln_type **out) {
  kiln_str name = parse_ident(p);
  if (name.len == 0) return fail(p, "expected a type");
  *out = kiln_type_of_word(name, false);
  if (*out) return NULL;
  if (kiln_str_is(name, "Dict")) return parse_dict(p, out);
  if (kiln_str_is(name, "Future")) return parse_wrapped(p, KILN_TYPE_FUTURE, out);
  if (kiln_str_is(name, "Await")) return parse_wrapped(p, KILN_TYPE_AWAIT, out);
  if (kiln_str_is(name, "RRef")) return parse_wrapped(p, KILN_TYPE_RREF, out);
  if (name.data[0] == 't') { /* PyTorch's rule for type variables */
    *out = kiln_type_var(p->types, name);
    return NULL;
  }
  if (kiln_str_is(name, "__torch__")) {
    while (*p->c.at == '.') {
      p->c.at++;
      kiln_str part = parse_ident(p);
      name.len = (size_t)(part.data + part.len - name.data);
    }
    *out = kiln_type_find(p->types, name);
    if (*out) return NULL;
  }
  return fail(p, "unknown type");
}

/* "[N]" or "[]" after the '['. */
static kiln_status *parse_brackets(parser *p, typed *out) {
  int count = 0;
  kiln_cursor_skip(&p->c);
  while (kiln_is_digit(*p->c.at)) {
    if (count > 100000) return fail(p, "list size is too large");
    count = 10 * count + (*p->c.at++ - '0');
  }
  if (!kiln_cursor_accept(&p->c, "]")) return fail(p, "expected ']'");
  out->type = kiln_type_list(p->types, out->type);
  out->fixed_count = count;
  out->elem_alias = out->alias;
  out->alias = (kiln_alias_info){.present = false};
  return NULL;
}

static kiln_status *parse_type(parser *p, typed *out) {
  memset(out, 0, sizeof *out);
  if (++p->depth > MAX_DEPTH) return fail(p, "nested too deeply");
  if (kiln_cursor_accept(&p->c, "(")) {
    KILN_TRY(parse_tuple(p, &out->type));
  } else {
    KILN_TRY(parse_named_type(p, &out->type));
  }
  for (;;) {
    if (*p->c.at == '(') {
      p->c.at++;
      KILN_TRY(parse_alias(p, &out->alias));
    } else if (*p->c.at == '[') {
      p->c.at++;
      KILN_TRY(parse_brackets(p, out));
    } else if (*p->c.at == '?') {
      p->c.at++;
      out->type = kiln_type_optional(p->types, out->type);
    } else {
      break;
    }
  }
  p->depth--;
  return NULL;
}

/* -- Default values -- */

static kiln_status *parse_string(parser *p, char quote, kiln_ivalue *out) {
  const char *begin = p->c.at;
  while (*p->c.at && *p->c.at != quote) p->c.at++;
  if (!*p->c.at) return fail(p, "unterminated string");
  kiln_string *string;
  KILN_TRY(kiln_string_create(kiln_arena_mem(p->arena),
                              kiln_str_make(begin, (size_t)(p->c.at - begin)), &string));
  p->c.at++;
  *out = kiln_of_box(string);
  return NULL;
}

static const struct {
  const char *name;
  kiln_ivalue value;
} named_values[] = {
    {"None", {.tag = KILN_TAG_NONE}},
    {"True", {.tag = KILN_TAG_BOOL, .u.i = 1}},
    {"False", {.tag = KILN_TAG_BOOL}},
    {"Mean", {.tag = KILN_TAG_INT, .u.i = 1}},
    {"Sum", {.tag = KILN_TAG_INT, .u.i = 2}},
    {"contiguous_format", {.tag = KILN_TAG_INT, .u.i = 0}},
    {"preserve_format", {.tag = KILN_TAG_INT, .u.i = 1}},
    {"strided", {.tag = KILN_TAG_INT, .u.i = 0}},
    {"long", {.tag = KILN_TAG_INT, .u.i = KILN_DTYPE_I64}},
    {"float", {.tag = KILN_TAG_INT, .u.i = KILN_DTYPE_F32}},
};

static kiln_status *parse_scalar_default(parser *p, const kiln_type *type, kiln_ivalue *out) {
  if (kiln_cursor_accept(&p->c, "\"")) return parse_string(p, '"', out);
  if (kiln_cursor_accept(&p->c, "'")) return parse_string(p, '\'', out);
  kiln_cursor_skip(&p->c);
  const char *begin = p->c.at;
  while (kiln_is_word(*p->c.at) || *p->c.at == '.' || *p->c.at == '-' || *p->c.at == '+') p->c.at++;
  kiln_str token = kiln_str_make(begin, (size_t)(p->c.at - begin));
  for (size_t i = 0; i < sizeof named_values / sizeof *named_values; i++) {
    if (!kiln_str_is(token, named_values[i].name)) continue;
    *out = named_values[i].value;
    return NULL;
  }
  int64_t i;
  double f;
  const kiln_type *bare = type->kind == KILN_TYPE_OPTIONAL ? type->elems[0] : type;
  if (kiln_str_parse_i64(token, &i)) {
    *out = bare->kind == KILN_TYPE_FLOAT ? kiln_float((double)i) : kiln_int(i);
  } else if (token.len && kiln_str_parse_f64(token, &f)) {
    *out = kiln_float(f);
  } else {
    return fail(p, "unknown default value");
  }
  return NULL;
}

/* After the '['. The list belongs to `arg` from the start. */
static kiln_status *parse_list_default(parser *p, const kiln_type *elem, kiln_schema_arg *arg) {
  kiln_list *list;
  KILN_TRY(kiln_list_create(kiln_arena_mem(p->arena), elem, 0, &list));
  arg->default_value = kiln_of_box(list);
  if (kiln_cursor_accept(&p->c, "]")) return NULL;
  do {
    kiln_ivalue item;
    KILN_TRY(parse_scalar_default(p, elem, &item));
    KILN_TRY(kiln_list_push(list, item));
  } while (kiln_cursor_accept(&p->c, ","));
  return kiln_cursor_accept(&p->c, "]") ? NULL : fail(p, "expected ']'");
}

static kiln_status *parse_default(parser *p, kiln_schema_arg *arg) {
  arg->has_default = true;
  const kiln_type *type = arg->type;
  if (type->kind == KILN_TYPE_OPTIONAL) type = type->elems[0];
  const kiln_type *elem = type->kind == KILN_TYPE_LIST ? type->elems[0] : NULL;
  if (kiln_cursor_accept(&p->c, "[")) {
    if (!elem) return fail(p, "a list for what is not a list");
    return parse_list_default(p, elem, arg);
  }
  kiln_ivalue value;
  KILN_TRY(parse_scalar_default(p, elem ? elem : arg->type, &value));
  if (!elem || value.tag == KILN_TAG_NONE) {
    arg->default_value = value;
    return NULL;
  }
  kiln_list *list; /* int[2] stride=1: each element */
  if (value.tag >= KILN_TAG__COUNTED) {
    kiln_ivalue_release(value);
    return fail(p, "unknown default value");
  }
  KILN_TRY(kiln_list_create(kiln_arena_mem(p->arena), elem, arg->fixed_count, &list));
  arg->default_value = kiln_of_box(list);
  for (int i = 0; i < (arg->fixed_count ? arg->fixed_count : 1); i++) {
    KILN_TRY(kiln_list_push(list, value));
  }
  return NULL;
}

/* -- The whole -- */

/* Room for the schema's arguments; those after what was counted stay unused. */
static int count_commas(const char *text) {
  int n = 1;
  for (; *text; text++) n += *text == ',';
  return n;
}

static void set_type(kiln_schema_arg *arg, const typed *t) {
  arg->type = t->type;
  arg->fixed_count = t->fixed_count;
  arg->alias = t->alias;
  arg->elem_alias = t->elem_alias;
}

static kiln_status *parse_args(parser *p) {
  kiln_schema *s = p->schema;
  bool kwarg_only = false;
  if (kiln_cursor_accept(&p->c, ")")) return NULL;
  do {
    if (kiln_cursor_accept(&p->c, "...")) {
      s->is_vararg = true;
      break;
    }
    if (kiln_cursor_accept(&p->c, "*")) {
      if (kwarg_only) return fail(p, "a second '*'");
      kwarg_only = true;
      continue;
    }
    typed t;
    KILN_TRY(parse_type(p, &t));
    kiln_schema_arg *arg = &s->args[s->arg_count++];
    set_type(arg, &t);
    arg->kwarg_only = kwarg_only;
    arg->name = parse_ident(p);
    if (kiln_cursor_accept(&p->c, "=")) KILN_TRY(parse_default(p, arg));
  } while (kiln_cursor_accept(&p->c, ","));
  return kiln_cursor_accept(&p->c, ")") ? NULL : fail(p, "expected ')'");
}

static kiln_status *parse_result(parser *p) {
  kiln_schema *s = p->schema;
  typed t;
  KILN_TRY(parse_type(p, &t));
  set_type(&s->results[s->result_count], &t);
  return NULL;
}

/* A '(' begins the list of results, unless it is a tuple type that goes on: (str, t)[]. */
static bool starts_result_list(const parser *p) {
  const char *q = p->c.at;
  int depth = 0;
  if (*q != '(') return false;
  for (; *q; q++) {
    depth += *q == '(' ? 1 : *q == ')' ? -1 : 0;
    if (depth == 0) break;
  }
  return !*q || (q[1] != '[' && q[1] != '?' && q[1] != '(');
}

static kiln_status *parse_results(parser *p) {
  kiln_schema *s = p->schema;
  if (kiln_cursor_accept(&p->c, "...")) {
    s->is_varret = true;
    return NULL;
  }
  kiln_cursor_skip(&p->c);
  if (!starts_result_list(p)) {
    KILN_TRY(parse_result(p));
    s->result_count++;
    return NULL;
  }
  p->c.at++;
  if (kiln_cursor_accept(&p->c, ")")) return NULL;
  do {
    if (kiln_cursor_accept(&p->c, "...")) {
      s->is_varret = true;
      break;
    }
    KILN_TRY(parse_result(p));
    s->results[s->result_count++].name = parse_ident(p);
  } while (kiln_cursor_accept(&p->c, ","));
  return kiln_cursor_accept(&p->c, ")") ? NULL : fail(p, "expected ')'");
}

static kiln_status *parse_name(parser *p) {
  const char *begin = p->c.at, *dot = NULL;
  for (; kiln_is_word(*p->c.at) || *p->c.at == ':' || *p->c.at == '.'; p->c.at++) {
    if (*p->c.at == '.') dot = p->c.at;
  }
  if (p->c.at == begin) return fail(p, "expected a name");
  kiln_schema *s = p->schema;
  /* "aten::add.Tensor"; a function's own name ("__torch__.m.f") has no overload. */
  bool has_namespace = memchr(begin, ':', (size_t)(p->c.at - begin)) != NULL;
  const char *end = dot && has_namespace ? dot : p->c.at;
  s->name = kiln_str_make(begin, (size_t)(end - begin));
  s->overload = kiln_str_make("", 0);
  if (end == dot) s->overload = kiln_str_make(dot + 1, (size_t)(p->c.at - dot - 1));
  return NULL;
}

static kiln_status *parse_all(parser *p) {
  int room = count_commas(p->c.begin);
  if (room > 2 * MAX_ARGS) return fail(p, "too many arguments");
  p->schema->args = KILN_NEW_ARRAY(p->arena, kiln_schema_arg, room);
  KILN_TRY(parse_name(p));
  if (!kiln_cursor_accept(&p->c, "(")) return fail(p, "expected '('");
  KILN_TRY(parse_args(p));
  if (!kiln_cursor_accept(&p->c, "->")) return fail(p, "expected '->'");
  p->schema->results = KILN_NEW_ARRAY(p->arena, kiln_schema_arg, count_commas(p->c.at));
  KILN_TRY(parse_results(p));
  kiln_cursor_skip(&p->c);
  return *p->c.at ? fail(p, "unexpected text") : NULL;
}

kiln_status *kiln_schema_parse(kiln_arena *arena, kiln_type_table *types, const char *text,
                               kiln_schema **out_schema) {
  const char *copy = kiln_arena_strdup(arena, text);
  parser p = {.arena = arena, .types = types, .c = kiln_cursor_of(kiln_str_from(copy))};
  p.schema = *out_schema = KILN_NEW(arena, kiln_schema);
  kiln_status *status = parse_all(&p);
  if (!status) return NULL;
  kiln_schema_deinit(p.schema);
  *out_schema = NULL;
  return status;
}

bool kiln_schema_writes(const kiln_schema *schema) {
  for (int i = 0; i < schema->arg_count; i++) {
    if (schema->args[i].alias.is_write || schema->args[i].elem_alias.is_write) return true;
  }
  return false;
}

void kiln_schema_deinit(kiln_schema *schema) {
  if (!schema) return;
  for (int i = 0; i < schema->arg_count; i++) {
    kiln_ivalue_release(schema->args[i].default_value);
    schema->args[i].default_value = kiln_none();
  }
}
