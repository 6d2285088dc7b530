/* python_print_value.c: names, constants and types in printed source. */
#include <math.h>

#include "frontend/torchscript/parser.h"
#include "frontend/torchscript/python_print.h"

/* -- Names -- */

/* Keywords that the parser reads as names, then the names that printed source itself looks up. */
static const char *const reserved[] = {
    "False", "None",           "True",          "async",     "await", "nonlocal", "torch",
    "ops",   "CONSTANTS",      "__torch__",     "fork",      "int",   "float",    "bool",
    "str",   "print",          "range",         "annotate",  "inf",   "nan",      "getattr",
    "self",  "unchecked_cast", "uninitialized", "isinstance"};
enum { KEYWORDS = 6 };

static bool is_reserved(kiln_str name, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (kiln_str_is(name, reserved[i])) return true;
  }
  return kiln__parse_is_keyword(name);
}

bool kiln__is_identifier(kiln_str name) {
  if (name.len == 0 || kiln_is_digit(name.data[0])) return false;
  for (size_t i = 0; i < name.len; i++) {
    if (!kiln_is_word(name.data[i])) return false;
  }
  return !is_reserved(name, KEYWORDS);
}

char *kiln__body_name(kiln_body *b, kiln_str base) {
  kiln_arena *arena = b->p->arena;
  const char *dot = memchr(base.data, '.', base.len); /* "x.1" */
  if (dot) base.len = (size_t)(dot - base.data);
  bool begins = base.len > 0 && kiln_is_word(base.data[0]) && !kiln_is_digit(base.data[0]);
  char *clean = kiln_arena_printf(arena, "%s" KILN_STR_FMT, begins ? "" : "_", KILN_STR_ARG(base));
  for (char *c = clean; *c; c++) {
    if (!kiln_is_word(*c)) *c = '_';
  }
  kiln_str name = kiln_str_from(clean);
  char *out = clean;
  bool taken = is_reserved(name, sizeof reserved / sizeof *reserved);
  if (taken || kiln_map_find(&b->used, name)) { /* x0, x1, … */
    while (name.len > 1 && kiln_is_digit(name.data[name.len - 1])) name.len--;
    uintptr_t next = (uintptr_t)kiln_map_find(&b->suffixes, name);
    do {
      out = kiln_arena_printf(arena, KILN_STR_FMT "%llu", KILN_STR_ARG(name),
                              (unsigned long long)next++);
    } while (kiln_map_find(&b->used, kiln_str_from(out)));
    kiln_map_set(&b->suffixes, name, (void *)next);
  }
  kiln_map_set(&b->used, kiln_str_from(out), b);
  return out;
}

char *kiln__body_temporary(kiln_body *b) {
  char *name;
  do {
    name = kiln_arena_printf(b->p->arena, "_%d", b->temporaries++);
  } while (kiln_map_find(&b->used, kiln_str_from(name)));
  kiln_map_set(&b->used, kiln_str_from(name), b);
  return name;
}

/* -- Definitions -- */

static kiln_str archive_name(kiln_printer *p, kiln_str name) {
  if (kiln_str_starts(name, "__torch__.")) return name;
  return kiln_str_from(kiln_arena_printf(p->arena, "__torch__." KILN_STR_FMT, KILN_STR_ARG(name)));
}

static bool is_new(kiln_printer *p, kiln_str name) {
  if (kiln_map_find(&p->known, name)) return false;
  kiln_map_set(&p->known, name, p);
  return true;
}

void kiln__need_type(kiln_printer *p, const kiln_type *type) {
  for (int i = 0; i < type->elem_count; i++) kiln__need_type(p, type->elems[i]);
  bool is_class = type->kind == KILN_TYPE_CLASS || type->kind == KILN_TYPE_INTERFACE ||
                  type->kind == KILN_TYPE_ENUM;
  bool is_named = type->kind == KILN_TYPE_TUPLE && type->name.len > 0;
  if ((!is_class && !is_named) || !is_new(p, type->name)) return;
  const kiln_printed_item item = {.qualname = archive_name(p, type->name), .type = type};
  kiln_vec_push(p->arena, &p->items, item);
  for (int i = 0; is_class && i < type->cls->attribute_count; i++) {
    kiln__need_type(p, type->cls->attributes[i].type);
  }
}

kiln_str kiln__need_function(kiln_printer *p, kiln_function *function) {
  const kiln_str name = archive_name(p, kiln_str_from(function->qualname));
  if (is_new(p, name)) {
    const kiln_printed_item item = {.qualname = name, .function = function};
    kiln_vec_push(p->arena, &p->items, item);
  }
  return name;
}

kiln_status *kiln__print_type(kiln_printer *p, kiln_text *text, const kiln_type *type) {
  switch (type->kind) {
    case KILN_TYPE_FUNCTION:
    case KILN_TYPE_CAPSULE:
    case KILN_TYPE_VAR:
      return KILN_ERROR(KILN_UNSUPPORTED, "a value of this type has no form in source");
    default: break;
  }
  kiln__need_type(p, type);
  kiln_type_print_annotation(text, type);
  return NULL;
}

kiln_status *kiln__print_type_between(kiln_printer *p, kiln_text *text, const char *open,
                                      const kiln_type *type, const char *close) {
  kiln_text_puts(text, open);
  KILN_TRY(kiln__print_type(p, text, type));
  kiln_text_puts(text, close);
  return NULL;
}

/* -- Constants -- */

static void print_constant(kiln_printer *p, kiln_text *text, kiln_ivalue v, kiln_map *map,
                           const void *address, kiln_str key) {
  uintptr_t index =
      (uintptr_t)(address ? kiln_map_find_ptr(map, address) : kiln_map_find(map, key));
  if (!index) {
    kiln_vec_push(p->arena, &p->out->constants, v);
    index = (uintptr_t)p->out->constants.count;
    if (address)
      kiln_map_set_ptr(map, address, (void *)index);
    else
      kiln_map_set(map, key, (void *)index);
  }
  kiln_text_printf(text, "CONSTANTS.c%llu", (unsigned long long)index - 1);
}

/* What PyTorch's lexer reads back: plain bytes, and no \r, which it prints but does not read. */
static bool is_plain_text(kiln_str s) {
  for (size_t i = 0; i < s.len; i++) {
    const unsigned char c = (unsigned char)s.data[i];
    if (c == 0 || c == '\r' || c >= 0x7f) return false;
  }
  return true;
}

static void print_string(kiln_printer *p, kiln_text *text, kiln_ivalue v) {
  const kiln_str s = kiln_str_make(v.u.string->data, v.u.string->len);
  if (is_plain_text(s))
    kiln_text_quote(text, s);
  else
    print_constant(p, text, v, &p->strings, NULL, s);
}

static void print_float(kiln_text *text, double value) {
  if (signbit(value) && !isnan(value)) kiln_text_putc(text, '-');
  kiln_text_double(text, fabs(value));
}

static void print_device(kiln_text *text, kiln_device_id device) {
  kiln_text_puts(text, "torch.device(\"");
  kiln_device_print(text, device);
  kiln_text_puts(text, "\")");
}

static kiln_status *print_items(kiln_printer *p, kiln_text *text, const kiln_ivalue *items,
                                int64_t count, const kiln_type *elem,
                                const kiln_type *const *elems) {
  for (int64_t i = 0; i < count; i++) {
    if (i > 0) kiln_text_puts(text, ", ");
    KILN_TRY(kiln__print_literal(p, text, items[i], elems ? elems[i] : elem));
  }
  return NULL;
}

/* [1, 2] reads back as the same list without saying its type. */
static bool says_its_type(const kiln_list *list, const kiln_type *elem) {
  const kiln_tag tag = elem->kind == KILN_TYPE_INT     ? KILN_TAG_INT
                       : elem->kind == KILN_TYPE_FLOAT ? KILN_TAG_FLOAT
                       : elem->kind == KILN_TYPE_BOOL  ? KILN_TAG_BOOL
                       : elem->kind == KILN_TYPE_STR   ? KILN_TAG_STRING
                                                       : KILN_TAG_NONE;
  if (tag == KILN_TAG_NONE || list->count == 0) return false;
  for (int64_t i = 0; i < list->count; i++) {
    if (list->items[i].tag != tag) return false;
  }
  return true;
}

/* annotate(List[int], [1, 2]): constants may have been made with a wider type than they show. */
static kiln_status *print_list(kiln_printer *p, kiln_text *text, const kiln_list *list,
                               const kiln_type *type) {
  const kiln_type *elem = type && type->kind == KILN_TYPE_LIST ? type->elems[0] : list->elem_type;
  if (!elem) elem = kiln_type_basic(KILN_TYPE_TENSOR);
  const bool bare = says_its_type(list, elem);
  if (!bare) KILN_TRY(kiln__print_type_between(p, text, "annotate(List[", elem, "], "));
  kiln_text_putc(text, '[');
  KILN_TRY(print_items(p, text, list->items, list->count, elem, NULL));
  kiln_text_puts(text, bare ? "]" : "])");
  return NULL;
}

static kiln_status *print_dict(kiln_printer *p, kiln_text *text, const kiln_dict *dict,
                               const kiln_type *type) {
  bool told = type && type->kind == KILN_TYPE_DICT;
  const kiln_type *key_type = told ? type->elems[0] : dict->key_type;
  const kiln_type *value_type = told ? type->elems[1] : dict->value_type;
  if (!key_type) key_type = kiln_type_basic(KILN_TYPE_STR);
  if (!value_type) value_type = kiln_type_basic(KILN_TYPE_TENSOR);
  KILN_TRY(kiln__print_type_between(p, text, "annotate(Dict[", key_type, ", "));
  KILN_TRY(kiln__print_type_between(p, text, "", value_type, "], {"));
  int64_t index = 0;
  kiln_ivalue *key, *value;
  for (int i = 0; kiln_dict_next(dict, &index, &key, &value); i++) {
    if (i > 0) kiln_text_puts(text, ", ");
    KILN_TRY(kiln__print_literal(p, text, *key, key_type));
    kiln_text_puts(text, ": ");
    KILN_TRY(kiln__print_literal(p, text, *value, value_type));
  }
  kiln_text_puts(text, "})");
  return NULL;
}

/* Numbers and strings, some of which have no form in source: then the tuple is one constant. */
static bool is_table_tuple(const kiln_tuple *tuple) {
  bool needs = false;
  for (int64_t i = 0; i < tuple->count; i++) {
    const kiln_ivalue v = tuple->items[i];
    if (v.tag >= KILN_TAG__COUNTED && v.tag != KILN_TAG_STRING && v.tag != KILN_TAG_COMPLEX) {
      return false;
    }
    needs = needs || v.tag == KILN_TAG_COMPLEX ||
            (v.tag == KILN_TAG_STRING && !is_plain_text(kiln_string_view(v.u.string)));
  }
  return needs && !(tuple->type && tuple->type->name.len > 0);
}

static kiln_status *print_tuple(kiln_printer *p, kiln_text *text, const kiln_tuple *tuple,
                                const kiln_type *type) {
  if (is_table_tuple(tuple)) {
    print_constant(p, text, kiln_of_box((void *)(uintptr_t)tuple), &p->constants, tuple,
                   (kiln_str){0});
    return NULL;
  }
  if (!type || type->kind != KILN_TYPE_TUPLE || type->elem_count != tuple->count) {
    type = tuple->type && tuple->type->elem_count == tuple->count ? tuple->type : NULL;
  }
  if (type && type->name.len > 0) KILN_TRY(kiln__print_type(p, text, type));
  kiln_text_putc(text, '(');
  KILN_TRY(print_items(p, text, tuple->items, tuple->count, NULL, type ? type->elems : NULL));
  bool comma = tuple->count == 1 && !(type && type->name.len > 0);
  kiln_text_puts(text, comma ? ",)" : ")");
  return NULL;
}

static kiln_status *print_enum(kiln_printer *p, kiln_text *text, const kiln_enum *e) {
  KILN_TRY(kiln__print_type(p, text, e->type));
  kiln_text_printf(text, "." KILN_STR_FMT, KILN_STR_ARG(e->type->cls->member_names[e->member]));
  return NULL;
}

kiln_status *kiln__print_literal(kiln_printer *p, kiln_text *text, kiln_ivalue v,
                                 const kiln_type *type) {
  if (type && type->kind == KILN_TYPE_OPTIONAL) type = type->elems[0];
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: kiln_text_puts(text, "None"); return NULL;
    case KILN_TAG_INT: kiln_text_printf(text, "%lld", (long long)v.u.i); return NULL;
    case KILN_TAG_FLOAT: print_float(text, v.u.f); return NULL;
    case KILN_TAG_BOOL: kiln_text_puts(text, v.u.b ? "True" : "False"); return NULL;
    case KILN_TAG_DEVICE: print_device(text, v.u.device); return NULL;
    case KILN_TAG_STRING: print_string(p, text, v); return NULL;
    case KILN_TAG_TENSOR:
      if (!v.u.tensor) break;
      print_constant(p, text, v, &p->constants, v.u.tensor, (kiln_str){0});
      return NULL;
    case KILN_TAG_COMPLEX: /* as a sum it would lose the sign of a zero */
      print_constant(p, text, v, &p->constants, v.u.complex, (kiln_str){0});
      return NULL;
    case KILN_TAG_LIST: return print_list(p, text, v.u.list, type);
    case KILN_TAG_DICT: return print_dict(p, text, v.u.dict, type);
    case KILN_TAG_TUPLE: return print_tuple(p, text, v.u.tuple, type);
    case KILN_TAG_ENUM: return print_enum(p, text, v.u.enumerator);
    default: break;
  }
  kiln_text name = kiln_text_in(p->arena);
  kiln_ivalue_type_name(&name, v);
  return KILN_ERROR(KILN_UNSUPPORTED, "a constant of type %s has no form in source", name.data);
}
