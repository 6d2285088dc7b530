/* type_parse.c: the IR's type syntax, by recursive descent.
 *
 *   type    := base ("[]" | "?")*
 *   base    := "(" types ")" | name | name ("(" types ")" | "[" types "]") | tensor
 *            | "NamedTuple(" (name ":" type),* ")" | ("Enum" | "InterfaceType") "<" name ">"
 *   tensor  := (dtype | dtype "Tensor" | "Tensor") ["(" item,* ")"] ["[Undefined]"]
 *   item    := dim | "strides=[" dim,* "]" | "requires_grad=" number | "device=" name [":" number]
 *   dim     := number | "*" | an expression of symbols (dim.h)
 * It reads all that the printer writes and all that torch._C.parse_ir reads. */
#include <stdio.h>

#include "runtime/tensor.h"
#include "runtime/type_internal.h"

enum { PARSE_MAX_DEPTH = 200 };

typedef struct parser {
  kiln_type_table *table;
  const char *at, *end;
  bool make_classes;
  int depth;
} parser;

/* -- Tokens -- */

static void skip_space(parser *p) {
  while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')) p->at++;
}

static bool accept(parser *p, const char *token) {
  skip_space(p);
  size_t n = strlen(token);
  if ((size_t)(p->end - p->at) < n || memcmp(p->at, token, n) != 0) return false;
  p->at += n;
  return true;
}

static kiln_status *fail(const parser *p, const char *expected) {
  kiln_str rest = kiln_str_make(p->at, (size_t)(p->end - p->at));
  if (rest.len > 40) rest.len = 40;
  for (size_t i = 0; i < rest.len; i++) {
    if (rest.data[i] == '\n') rest.len = i;
  }
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "expected %s at \"" KILN_STR_FMT "\"", expected,
                    KILN_STR_ARG(rest));
}

static kiln_status *expect(parser *p, const char *token) {
  if (accept(p, token)) return NULL;
  char text[16];
  snprintf(text, sizeof text, "'%s'", token);
  return fail(p, text);
}

static bool is_name_byte(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         (!first && ((c >= '0' && c <= '9') || c == '.'));
}

/* Empty when there is none. */
static kiln_str take_name(parser *p) {
  skip_space(p);
  const char *begin = p->at;
  while (p->at < p->end && is_name_byte(*p->at, p->at == begin)) p->at++;
  return kiln_str_make(begin, (size_t)(p->at - begin));
}

static kiln_status *take_number(parser *p, int64_t *out) {
  skip_space(p);
  const char *begin = p->at, *c = begin;
  if (c < p->end && *c == '-') c++;
  while (c < p->end && *c >= '0' && *c <= '9') c++;
  if (!kiln_str_parse_i64(kiln_str_make(begin, (size_t)(c - begin)), out)) {
    return fail(p, "a number");
  }
  p->at = c;
  return NULL;
}

/* -- Lists of types -- */

typedef struct type_list {
  const kiln_type **elems;
  kiln_str *names;
  int count, capacity;
} type_list;

static void push_type(parser *p, type_list *list, const kiln_type *type, kiln_str name) {
  if (list->count == list->capacity) {
    int capacity = list->capacity ? 2 * list->capacity : 8;
    type_list bigger = {
        .elems = kiln__type_table_alloc(p->table, sizeof(kiln_type *) * (size_t)capacity),
        .names = kiln__type_table_alloc(p->table, sizeof(kiln_str) * (size_t)capacity),
        .count = list->count,
        .capacity = capacity};
    if (list->count > 0) {
      memcpy(bigger.elems, list->elems, sizeof(kiln_type *) * (size_t)list->count);
      memcpy(bigger.names, list->names, sizeof(kiln_str) * (size_t)list->count);
    }
    *list = bigger;
  }
  list->elems[list->count] = type;
  list->names[list->count++] = name;
}

static kiln_status *parse_type(parser *p, const kiln_type **out);

/* Types up to `close`, with "name :" before each when `named`. */
static kiln_status *parse_types(parser *p, const char *close, bool named, type_list *out) {
  *out = (type_list){0};
  if (accept(p, close)) return NULL;
  for (;;) {
    kiln_str name = {"", 0};
    if (named) {
      name = take_name(p);
      if (name.len == 0) return fail(p, "the name of a field");
      KILN_TRY(expect(p, ":"));
    }
    const kiln_type *type = NULL;
    KILN_TRY(parse_type(p, &type));
    push_type(p, out, type, name);
    if (accept(p, close)) return NULL;
    KILN_TRY(expect(p, ","));
  }
}

/* -- Tensors -- */

typedef struct tensor_parts {
  kiln_tensor_detail detail;
  kiln_dim sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  int rank, stride_count;
} tensor_parts;

static kiln_status *parse_device(parser *p, kiln_tensor_detail *d) {
  kiln_str name = take_name(p);
  for (int kind = 0; kind < KILN_DEVICE__COUNT; kind++) {
    if (kiln_str_is(name, kiln_device_kind_name(kind))) d->device = (int8_t)kind;
  }
  if (d->device < 0) {
    p->at = name.data;
    return fail(p, "a device (cpu, cuda, meta)");
  }
  if (!accept(p, ":")) return NULL;
  int64_t index = 0;
  KILN_TRY(take_number(p, &index));
  if (index < 0 || index > INT16_MAX) return fail(p, "a device's number before this");
  d->device_index = (int16_t)index;
  return NULL;
}

static kiln_status *take_dim(parser *p, tensor_parts *t, const char *what, kiln_dim *out) {
  kiln_str rest = kiln_str_make(p->at, (size_t)(p->end - p->at));
  if (!kiln__type_table_parse_dim(p->table, &rest, out, &t->detail.dims)) return fail(p, what);
  p->at = rest.data;
  return NULL;
}

static kiln_status *parse_strides(parser *p, tensor_parts *t) {
  t->detail.has_strides = true;
  if (accept(p, "]")) return NULL;
  for (;;) {
    kiln_dim stride;
    KILN_TRY(take_dim(p, t, "a stride", &stride));
    if (t->stride_count == KILN_MAX_RANK) return fail(p, "at most 64 strides");
    t->strides[t->stride_count++] = stride;
    if (accept(p, "]")) return NULL;
    KILN_TRY(expect(p, ","));
  }
}

static kiln_status *parse_dim(parser *p, tensor_parts *t) {
  kiln_dim dim;
  KILN_TRY(take_dim(p, t, "a size", &dim));
  if (t->rank == KILN_MAX_RANK) return fail(p, "at most 64 sizes");
  t->sizes[t->rank++] = dim;
  return NULL;
}

static kiln_status *parse_item(parser *p, tensor_parts *t) {
  if (accept(p, "strides=[")) return parse_strides(p, t);
  if (accept(p, "device=")) return parse_device(p, &t->detail);
  if (!accept(p, "requires_grad=")) return parse_dim(p, t);
  int64_t flag = 0;
  KILN_TRY(take_number(p, &flag));
  if (flag != 0 && flag != 1) return fail(p, "requires_grad=0 or 1 before this");
  t->detail.requires_grad = (int8_t)flag;
  return NULL;
}

/* After the name. `dtype_only`: "Float", of which "(" without sizes means rank 0. */
static kiln_status *parse_tensor(parser *p, kiln_dtype dtype, bool dtype_only,
                                 const kiln_type **out) {
  tensor_parts t = {.detail = KILN_TENSOR_DETAIL_ANY};
  t.detail.dtype = (int16_t)dtype;
  if (accept(p, "(")) {
    bool first = true;
    for (; !accept(p, ")"); first = false) {
      if (!first) KILN_TRY(expect(p, ","));
      KILN_TRY(parse_item(p, &t));
    }
    if (t.rank > 0 || dtype_only) t.detail.rank = (int8_t)t.rank;
    if (t.detail.has_strides && t.stride_count != t.rank) return fail(p, "a stride for each size");
  }
  if (accept(p, "[Undefined]")) {
    t.detail.undefined = 1;
  } else if (t.detail.rank >= 0 && dtype != KILN_DTYPE_NONE) {
    t.detail.undefined = 0; /* what has a dtype and sizes is a tensor */
  }
  t.detail.sizes = t.sizes;
  t.detail.strides = t.strides;
  *out = kiln_type_tensor(p->table, &t.detail);
  return NULL;
}

/* -- Names -- */

static const kiln_type *find_basic(kiln_str name) {
  static const struct {
    const char *name;
    kiln_type_kind kind;
  } others[] = {{"None", KILN_TYPE_NONE},        {"number", KILN_TYPE_NUMBER},
                {"Layout", KILN_TYPE_INT},       {"ScalarType", KILN_TYPE_INT},
                {"MemoryFormat", KILN_TYPE_INT}, {"AnyClass", KILN_TYPE_ANY_CLASS},
                {"AnyEnum", KILN_TYPE_ANY_ENUM}, {"DeviceObjType", KILN_TYPE_DEVICE}};
  for (int kind = 0; kind <= KILN_TYPE_CAPSULE; kind++) {
    if (kiln_str_is(name, kiln__type_basic_name((kiln_type_kind)kind))) {
      return kiln_type_basic((kiln_type_kind)kind);
    }
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    if (kiln_str_is(name, others[i].name)) return kiln_type_basic(others[i].kind);
  }
  return NULL;
}

static kiln_status *find_nominal(parser *p, kiln_type_kind kind, kiln_str name,
                                 const kiln_type **out) {
  *out = kiln_type_find(p->table, name);
  if (!*out && kind == KILN_TYPE_INTERFACE) *out = kiln__type_find_interface(p->table, name);
  if (*out) return NULL;
  if (!p->make_classes) {
    p->at = name.data;
    return fail(p, "a known type");
  }
  *out = kiln_type_nominal(p->table, kind, name);
  return NULL;
}

/* "Dict(", "Future[" and so on: *out stays NULL when `name` is none of them. */
static kiln_status *parse_generic(parser *p, kiln_str name, const kiln_type **out) {
  static const struct {
    const char *name;
    kiln_type_kind kind;
    int count; /* of parts; 0: any but none */
  } kinds[] = {{"Dict", KILN_TYPE_DICT, 2},   {"Future", KILN_TYPE_FUTURE, 1},
               {"Await", KILN_TYPE_AWAIT, 1}, {"RRef", KILN_TYPE_RREF, 1},
               {"Union", KILN_TYPE_UNION, 0}, {"Optional", KILN_TYPE_OPTIONAL, 1},
               {"List", KILN_TYPE_LIST, 1},   {"Tuple", KILN_TYPE_TUPLE, 0}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!kiln_str_is(name, kinds[i].name)) continue;
    type_list parts;
    bool round = accept(p, "(");
    if (!round && !accept(p, "[")) return fail(p, "'('");
    KILN_TRY(parse_types(p, round ? ")" : "]", false, &parts));
    if (parts.count == 0 || (kinds[i].count > 0 && parts.count != kinds[i].count)) {
      return fail(p, "another number of types before this");
    }
    switch (kinds[i].kind) {
      case KILN_TYPE_DICT: *out = kiln_type_dict(p->table, parts.elems[0], parts.elems[1]); break;
      case KILN_TYPE_TUPLE: *out = kiln_type_tuple(p->table, parts.elems, parts.count); break;
      case KILN_TYPE_UNION: *out = kiln_type_union(p->table, parts.elems, parts.count); break;
      case KILN_TYPE_OPTIONAL: *out = kiln_type_optional(p->table, parts.elems[0]); break;
      case KILN_TYPE_LIST: *out = kiln_type_list(p->table, parts.elems[0]); break;
      default: *out = kiln_type_wrap(p->table, kinds[i].kind, parts.elems[0]); break;
    }
    return NULL;
  }
  return NULL;
}

static kiln_status *parse_angle(parser *p, kiln_type_kind kind, const kiln_type **out) {
  KILN_TRY(expect(p, "<"));
  kiln_str name = take_name(p);
  if (name.len == 0) return fail(p, "a name");
  KILN_TRY(find_nominal(p, kind, name, out));
  return expect(p, ">");
}

static kiln_status *parse_named(parser *p, kiln_str name, const kiln_type **out) {
  if (kiln_str_is(name, "NamedTuple")) {
    type_list fields;
    KILN_TRY(expect(p, "("));
    KILN_TRY(parse_types(p, ")", true, &fields));
    *out = kiln_type_named_tuple(p->table, KILN_STR(""), fields.names, fields.elems, fields.count);
    return NULL;
  }
  if (kiln_str_is(name, "Enum")) return parse_angle(p, KILN_TYPE_ENUM, out);
  if (kiln_str_is(name, "InterfaceType")) return parse_angle(p, KILN_TYPE_INTERFACE, out);
  if (kiln_str_is(name, "Tensor")) return parse_tensor(p, KILN_DTYPE_NONE, false, out);
  kiln_dtype dtype = kiln_dtype_from_ir_name(name);
  if (dtype != KILN_DTYPE_NONE) {
    skip_space(p);
    bool open = p->at < p->end && *p->at == '(';
    return parse_tensor(p, dtype, open, out);
  }
  if (name.len > 6 && memcmp(name.data + name.len - 6, "Tensor", 6) == 0) {
    dtype = kiln_dtype_from_ir_name(kiln_str_make(name.data, name.len - 6));
    if (dtype != KILN_DTYPE_NONE) return parse_tensor(p, dtype, false, out);
  }
  KILN_TRY(parse_generic(p, name, out));
  if (!*out) *out = find_basic(name);
  if (*out) return NULL;
  bool dotted = memchr(name.data, '.', name.len) != NULL;
  if (!dotted && name.data[0] >= 'a' && name.data[0] <= 'z') {
    *out = kiln_type_var(p->table, name);
    return NULL;
  }
  return find_nominal(p, KILN_TYPE_CLASS, name, out);
}

static kiln_status *parse_base(parser *p, const kiln_type **out) {
  if (accept(p, "(")) {
    type_list elems;
    KILN_TRY(parse_types(p, ")", false, &elems));
    *out = kiln_type_tuple(p->table, elems.elems, elems.count);
    return NULL;
  }
  kiln_str name = take_name(p);
  if (name.len == 0) return fail(p, "a type");
  return parse_named(p, name, out);
}

static kiln_status *parse_type(parser *p, const kiln_type **out) {
  if (++p->depth > PARSE_MAX_DEPTH) return fail(p, "a type that is nested less deeply");
  *out = NULL;
  KILN_TRY(parse_base(p, out));
  for (int suffixes = 0;; suffixes++) {
    if (p->at < p->end && *p->at == '?') {
      p->at++;
      *out = kiln_type_optional(p->table, *out);
    } else if (p->end - p->at >= 2 && p->at[0] == '[' && p->at[1] == ']') {
      if (suffixes > PARSE_MAX_DEPTH) return fail(p, "a type that is nested less deeply");
      p->at += 2;
      *out = kiln_type_list(p->table, *out);
    } else {
      break;
    }
  }
  p->depth--;
  return NULL;
}

kiln_status *kiln_type_parse(kiln_type_table *table, const char **cursor, const char *end,
                             bool make_classes, const kiln_type **out_type) {
  parser p = {table, *cursor, end, make_classes, 0};
  KILN_TRY(parse_type(&p, out_type));
  *cursor = p.at;
  return NULL;
}
