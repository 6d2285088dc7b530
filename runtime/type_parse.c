/* type_parse.c: the IR's type syntax, by recursive descent.
 *
 *   type    := base ("[]" | "?")*
 *   base    := "(" types ")" | name | name ("(" types ")" | "[" types "]") | tensor
 *            | "NamedTuple(" (name ":" type),* ")" | ("Enum" | "InterfaceType") "<" name ">"
 *   tensor  := (dtype | dtype "Tensor" | "Tensor") ["(" item,* ")"] ["[Undefined]"]
 *   item    := dim | "strides=[" dim,* "]" | "rank=0" | "requires_grad=" number | "device=" name
 * [":" number] dim     := number | "*" | an expression of symbols (dim.h) It reads all that the
 * printer writes and all that torch._C.parse_ir reads. */
#include <stdio.h>

#include "base/cursor.h"
#include "runtime/tensor.h"
#include "runtime/type_internal.h"

enum { PARSE_MAX_DEPTH = 200 };

typedef struct parser {
  kiln_type_table *table;
  kiln_cursor c;
  bool make_classes;
  int depth;
} parser;

/* -- Tokens -- */

static kiln_status *fail(const parser *p, const char *expected) {
  kiln_str rest = kiln_cursor_rest(&p->c);
  if (rest.len > 40) rest.len = 40;
  for (size_t i = 0; i < rest.len; i++) {
    if (rest.data[i] == '\n') rest.len = i;
  }
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "expected %s at \"" KILN_STR_FMT "\"", expected,
                    KILN_STR_ARG(rest));
}

static kiln_status *expect(parser *p, const char *token) {
  if (kiln_cursor_accept(&p->c, token)) return NULL;
  char text[16];
  snprintf(text, sizeof text, "'%s'", token);
  return fail(p, text);
}

static bool is_name_byte(char c) { return kiln_is_word(c) || c == '.'; }

/* Empty when there is none. */
static kiln_str take_name(parser *p) {
  kiln_cursor_skip(&p->c);
  const int first = kiln_cursor_peek(&p->c);
  if (first == '.' || kiln_is_digit((char)first)) return kiln_str_make(p->c.at, 0);
  return kiln_cursor_take(&p->c, is_name_byte);
}

static kiln_status *take_number(parser *p, int64_t *out) {
  kiln_cursor_skip(&p->c);
  kiln_cursor behind = p->c;
  if (kiln_cursor_peek(&behind) == '-') behind.at++;
  (void)kiln_cursor_take(&behind, kiln_is_digit);
  if (!kiln_str_parse_i64(kiln_str_make(p->c.at, (size_t)(behind.at - p->c.at)), out)) {
    return fail(p, "a number");
  }
  p->c = behind;
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
  if (kiln_cursor_accept(&p->c, close)) return NULL;
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
    if (kiln_cursor_accept(&p->c, close)) return NULL;
    KILN_TRY(expect(p, ","));
  }
}

/* -- Tensors -- */

typedef struct tensor_parts {
  kiln_tensor_detail detail;
  kiln_dim sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  int rank, stride_count;
  bool is_bare; /* of rank 0, said so */
} tensor_parts;

static kiln_status *parse_device(parser *p, kiln_tensor_detail *d) {
  kiln_str name = take_name(p);
  for (int kind = 0; kind < KILN_DEVICE__COUNT; kind++) {
    if (kiln_str_is(name, kiln_device_kind_name(kind))) d->device = (int8_t)kind;
  }
  if (d->device < 0) {
    p->c.at = name.data;
    return fail(p, "a device (cpu, cuda, meta)");
  }
  if (!kiln_cursor_accept(&p->c, ":")) return NULL;
  int64_t index = 0;
  KILN_TRY(take_number(p, &index));
  if (index < 0 || index > INT16_MAX) return fail(p, "a device's number before this");
  d->device_index = (int16_t)index;
  return NULL;
}

static kiln_status *take_dim(parser *p, tensor_parts *t, const char *what, kiln_dim *out) {
  kiln_str rest = kiln_cursor_rest(&p->c);
  if (!kiln__type_table_parse_dim(p->table, &rest, out, &t->detail.dims)) return fail(p, what);
  p->c.at = rest.data;
  return NULL;
}

static kiln_status *parse_strides(parser *p, tensor_parts *t) {
  t->detail.has_strides = true;
  if (kiln_cursor_accept(&p->c, "]")) return NULL;
  for (;;) {
    kiln_dim stride;
    KILN_TRY(take_dim(p, t, "a stride", &stride));
    if (t->stride_count == KILN_MAX_RANK) return fail(p, "at most 64 strides");
    t->strides[t->stride_count++] = stride;
    if (kiln_cursor_accept(&p->c, "]")) return NULL;
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

static kiln_status *parse_layout(parser *p, kiln_tensor_detail *d) {
  const kiln_str name = take_name(p);
  for (int i = 0; i < KILN_PHYSICAL__COUNT; i++) {
    if (!kiln_str_is(name, kiln_physical_name(i))) continue;
    d->physical = (int8_t)i;
    return NULL;
  }
  p->c.at = name.data;
  return fail(p, "a layout (strided, channels_last)");
}

static kiln_status *parse_item(parser *p, tensor_parts *t) {
  if (kiln_cursor_accept(&p->c, "strides=[")) return parse_strides(p, t);
  if (kiln_cursor_accept(&p->c, "rank=0")) {
    t->is_bare = true;
    return NULL;
  }
  if (kiln_cursor_accept(&p->c, "device=")) return parse_device(p, &t->detail);
  if (kiln_cursor_accept(&p->c, "layout=")) return parse_layout(p, &t->detail);
  if (!kiln_cursor_accept(&p->c, "requires_grad=")) return parse_dim(p, t);
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
  if (kiln_cursor_accept(&p->c, "(")) {
    bool first = true;
    for (; !kiln_cursor_accept(&p->c, ")"); first = false) {
      if (!first) KILN_TRY(expect(p, ","));
      KILN_TRY(parse_item(p, &t));
    }
    if (t.rank > 0 || dtype_only || t.is_bare) t.detail.rank = (int8_t)t.rank;
    if (t.detail.has_strides && t.stride_count != t.rank) return fail(p, "a stride for each size");
  }
  if (kiln_cursor_accept(&p->c, "[Undefined]")) {
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
    p->c.at = name.data;
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
    bool round = kiln_cursor_accept(&p->c, "(");
    if (!round && !kiln_cursor_accept(&p->c, "[")) return fail(p, "'('");
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
    kiln_cursor_skip(&p->c);
    return parse_tensor(p, dtype, kiln_cursor_peek(&p->c) == '(', out);
  }
  if (kiln_str_ends(name, "Tensor")) {
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
  if (kiln_cursor_accept(&p->c, "(")) {
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
    if (kiln_cursor_peek(&p->c) == '?') {
      p->c.at++;
      *out = kiln_type_optional(p->table, *out);
    } else if (kiln_str_starts(kiln_cursor_rest(&p->c), "[]")) {
      if (suffixes > PARSE_MAX_DEPTH) return fail(p, "a type that is nested less deeply");
      p->c.at += 2;
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
  parser p = {.table = table,
              .c = kiln_cursor_of(kiln_str_make(*cursor, (size_t)(end - *cursor))),
              .make_classes = make_classes};
  KILN_TRY(parse_type(&p, out_type));
  *cursor = p.c.at;
  return NULL;
}
