/* literal.c: parses constants in attributes: numbers, strings, devices, lists, tuples, dicts;
 * literal_tensor.c has the tensors.
 *
 * What is made is given to the graph before it is filled, so that nothing leaks when memory runs
 * out; containers retain their items in addition. */
#include "ir/reader.h"

#include <math.h>

/* -- Numbers -- */

static const kiln_type *bare(const kiln_type *hint) {
  return hint && hint->kind == KILN_TYPE_OPTIONAL ? hint->elems[0] : hint;
}

static bool hint_is(const kiln_type *hint, kiln_type_kind kind) {
  return hint && hint->kind == kind;
}

static const kiln_type *hint_elem(const kiln_type *hint, kiln_type_kind kind, int index) {
  return hint_is(hint, kind) && index < hint->elem_count ? hint->elems[index] : NULL;
}

/* Sign, digits, point, exponent; stops before what cannot belong to the number. */
static kiln_str number_token(kiln__reader *r) {
  const char *begin = r->c.at;
  if (r->c.at < r->c.end && (*r->c.at == '-' || *r->c.at == '+')) r->c.at++;
  if (r->c.end - r->c.at >= 3 &&
      (memcmp(r->c.at, "inf", 3) == 0 || memcmp(r->c.at, "nan", 3) == 0)) {
    r->c.at += 3;
    return kiln_str_make(begin, (size_t)(r->c.at - begin));
  }
  for (; r->c.at < r->c.end; r->c.at++) {
    char c = *r->c.at;
    bool exponent_sign = (c == '-' || c == '+') && (r->c.at[-1] == 'e' || r->c.at[-1] == 'E');
    if (!(kiln_is_digit(c) || c == '.' || c == 'e' || c == 'E' || exponent_sign)) break;
    if (exponent_sign && r->c.at == begin) break;
  }
  return kiln_str_make(begin, (size_t)(r->c.at - begin));
}

static bool token_double(kiln_str token, double *out) {
  if (token.len > 0 && token.data[0] == '+') token.data++, token.len--;
  if (kiln_str_is(token, "inf")) return *out = INFINITY, true;
  if (kiln_str_is(token, "-inf")) return *out = -INFINITY, true;
  if (kiln_str_is(token, "nan") || kiln_str_is(token, "-nan")) return *out = NAN, true;
  return kiln_str_parse_f64(token, out);
}

static kiln_status *make_complex(kiln__reader *r, double re, double im, kiln_ivalue *out) {
  kiln_complex *complex;
  KILN_TRY(kiln_complex_create(kiln_arena_mem(r->arena), re, im, &complex));
  *out = kiln_graph_own(r->root, kiln_of_box(complex));
  return NULL;
}

/* "1.+2.j" after its first part, or "2.j". */
static kiln_status *parse_imaginary(kiln__reader *r, double re, kiln_ivalue *out) {
  double im;
  if (!token_double(number_token(r), &im)) return kiln__reader_fail(r, "expected a number");
  KILN_TRY(kiln__reader_expect(r, "j"));
  return make_complex(r, re, im, out);
}

static kiln_status *parse_number(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  kiln_str token = number_token(r);
  int64_t i;
  double f;
  bool is_int = kiln_str_parse_i64(token, &i);
  if (!is_int && !token_double(token, &f)) {
    r->c.at = token.data;
    return kiln__reader_fail(r, "expected a value");
  }
  if (is_int) f = (double)i;
  int next = kiln_cursor_peek(&r->c);
  if (next == 'j') {
    r->c.at++;
    return make_complex(r, 0, f, out);
  }
  if (next == '+' || next == '-') return parse_imaginary(r, f, out);
  if (hint_is(hint, KILN_TYPE_COMPLEX)) return make_complex(r, f, 0, out);
  if (hint_is(hint, KILN_TYPE_BOOL) && is_int && (i == 0 || i == 1)) {
    *out = kiln_bool(i);
  } else if (hint_is(hint, KILN_TYPE_FLOAT) || !is_int) {
    *out = kiln_float(f);
  } else {
    *out = kiln_int(i);
  }
  return NULL;
}

/* -- Strings and devices -- */

static int hex_digit(int c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* One escape after its backslash, moving the cursor; -1 when it is not one. */
static int parse_escape(kiln__reader *r) {
  if (r->c.at == r->c.end) return -1;
  char c = *r->c.at++;
  static const char from[] = "nrtabfv\\\"'", to[] = "\n\r\t\a\b\f\v\\\"'";
  const char *simple = c ? strchr(from, c) : NULL;
  if (simple) return (unsigned char)to[simple - from];
  if (c >= '0' && c <= '7') {
    int value = c - '0';
    for (int i = 0; i < 2 && r->c.at < r->c.end && *r->c.at >= '0' && *r->c.at <= '7'; i++) {
      value = 8 * value + (*r->c.at++ - '0');
    }
    return value & 255;
  }
  if (c == 'x' && r->c.end - r->c.at >= 2 && hex_digit(r->c.at[0]) >= 0 &&
      hex_digit(r->c.at[1]) >= 0) {
    int value = 16 * hex_digit(r->c.at[0]) + hex_digit(r->c.at[1]);
    r->c.at += 2;
    return value;
  }
  return -1;
}

/* Bytes between the quotes, escapes not counted out: room enough. */
static size_t quoted_room(const kiln__reader *r, char quote) {
  const char *p = r->c.at;
  while (p < r->c.end && *p != quote && *p != '\n') p += *p == '\\' && p + 1 < r->c.end ? 2 : 1;
  return (size_t)(p - r->c.at);
}

static kiln_status *parse_quoted(kiln__reader *r, kiln_str *out) {
  char quote = *r->c.at++;
  char *data = kiln_arena_alloc(r->arena, quoted_room(r, quote) + 1);
  size_t len = 0;
  while (r->c.at < r->c.end && *r->c.at != quote && *r->c.at != '\n') {
    int c = (unsigned char)*r->c.at++;
    if (c == '\\' && (c = parse_escape(r)) < 0) return kiln__reader_fail(r, "unknown escape");
    data[len++] = (char)c;
  }
  if (r->c.at == r->c.end || *r->c.at != quote) return kiln__reader_fail(r, "unterminated string");
  r->c.at++;
  *out = kiln_str_make(data, len);
  return NULL;
}

static kiln_status *parse_text(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  kiln_str text;
  KILN_TRY(parse_quoted(r, &text));
  kiln_device_id device;
  if (hint_is(hint, KILN_TYPE_DEVICE)) {
    if (!kiln_device_parse(text, &device)) return kiln__reader_fail(r, "unknown device");
    *out = kiln_device_value(device);
    return NULL;
  }
  kiln_string *string;
  KILN_TRY(kiln_string_create(kiln_arena_mem(r->arena), text, &string));
  *out = kiln_graph_own(r->root, kiln_of_box(string));
  return NULL;
}

/* -- Containers -- */

static kiln_status *parse_list(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  const kiln_type *elem = hint_elem(hint, KILN_TYPE_LIST, 0);
  kiln_list *list;
  KILN_TRY(kiln_list_create(kiln_arena_mem(r->arena), elem, 0, &list));
  *out = kiln_graph_own(r->root, kiln_of_box(list));
  if (kiln_cursor_accept(&r->c, "]")) return NULL;
  do {
    kiln_ivalue item;
    KILN_TRY(kiln__literal_parse(r, elem, &item));
    KILN_TRY(kiln_list_push(list, kiln_ivalue_retain(item)));
  } while (kiln_cursor_accept(&r->c, ","));
  if (!list->elem_type) list->elem_type = kiln_ivalue_type(r->types, list->items[0]);
  return kiln__reader_expect(r, "]");
}

static kiln_status *parse_tuple(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  KILN_VEC(kiln_ivalue) items = {0}; /* each owned by the graph already */
  while (!kiln_cursor_accept(&r->c, ")")) {
    kiln_ivalue item;
    KILN_TRY(kiln__literal_parse(r, hint_elem(hint, KILN_TYPE_TUPLE, items.count), &item));
    kiln_vec_push(r->arena, &items, item);
    if (kiln_cursor_accept(&r->c, ",")) continue;
    KILN_TRY(kiln__reader_expect(r, ")"));
    break;
  }
  const kiln_type *type =
      hint_is(hint, KILN_TYPE_TUPLE) && hint->elem_count == items.count ? hint : NULL;
  kiln_tuple *tuple;
  KILN_TRY(kiln_tuple_create(kiln_arena_mem(r->arena), type, items.count, &tuple));
  for (int i = 0; i < items.count; i++) tuple->items[i] = kiln_ivalue_retain(items.data[i]);
  *out = kiln_graph_own(r->root, kiln_of_box(tuple));
  if (!type) tuple->type = kiln_ivalue_type(r->types, *out);
  return NULL;
}

static kiln_status *parse_dict(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  const kiln_type *key_type = hint_elem(hint, KILN_TYPE_DICT, 0);
  const kiln_type *value_type = hint_elem(hint, KILN_TYPE_DICT, 1);
  kiln_dict *dict;
  KILN_TRY(kiln_dict_create(kiln_arena_mem(r->arena), key_type, value_type, &dict));
  *out = kiln_graph_own(r->root, kiln_of_box(dict));
  if (kiln_cursor_accept(&r->c, "}")) return NULL;
  do {
    kiln_ivalue key, value;
    KILN_TRY(kiln__literal_parse(r, key_type, &key));
    if (!kiln_ivalue_is_key(key)) return kiln__reader_fail(r, "this cannot be a key");
    KILN_TRY(kiln__reader_expect(r, ":"));
    KILN_TRY(kiln__literal_parse(r, value_type, &value));
    KILN_TRY(kiln_dict_set(dict, kiln_ivalue_retain(key), kiln_ivalue_retain(value)));
    if (!dict->key_type) dict->key_type = kiln_ivalue_type(r->types, key);
    if (!dict->value_type) dict->value_type = kiln_ivalue_type(r->types, value);
  } while (kiln_cursor_accept(&r->c, ","));
  return kiln__reader_expect(r, "}");
}

/* -- Any -- */

/* annotate(List[int], []), after its name: the type of what is empty. */
static kiln_status *parse_annotate(kiln__reader *r, kiln_ivalue *out) {
  const kiln_type *type;
  KILN_TRY(kiln__reader_expect(r, "("));
  KILN_TRY(kiln__reader_type(r, &type));
  KILN_TRY(kiln__reader_expect(r, ","));
  KILN_TRY(kiln__literal_parse(r, type, out));
  return kiln__reader_expect(r, ")");
}

static kiln_status *parse_word(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  const char *begin = r->c.at;
  kiln_str word = kiln__reader_word(r);
  if (kiln_str_is(word, "annotate")) return parse_annotate(r, out);
  if (kiln_str_is(word, "torch.device")) { /* within a list or tuple of PyTorch's */
    KILN_TRY(kiln__reader_expect(r, "("));
    kiln_cursor_skip(&r->c);
    KILN_TRY(kiln__literal_parse(r, kiln_type_basic(KILN_TYPE_DEVICE), out));
    if (out->tag != KILN_TAG_DEVICE) return kiln__reader_fail(r, "expected a device");
    return kiln__reader_expect(r, ")");
  }
  if (kiln_str_is(word, "None")) {
    *out = kiln_none();
  } else if (kiln_str_is(word, "True") || kiln_str_is(word, "False")) {
    *out = kiln_bool(word.data[0] == 'T');
  } else {
    r->c.at = begin;
    return parse_number(r, hint, out); /* inf, nan */
  }
  return NULL;
}

static bool starts_number(int c) {
  return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.';
}

/* After a '{': a tensor, not a dict. */
static bool starts_tensor(kiln__reader *r, const kiln_type *hint) {
  if (hint_is(hint, KILN_TYPE_TENSOR)) return true;
  kiln_cursor_skip(&r->c);
  int first = kiln_cursor_peek(&r->c);
  if (hint_is(hint, KILN_TYPE_DICT) || !starts_number(first)) return !hint && first == '[';
  const char *begin = r->c.at;
  number_token(r);
  bool alone = kiln_cursor_accept(&r->c, "}");
  r->c.at = begin;
  return alone;
}

/* "CPUFloatType{" after the '[' of a dump's tail. */
static bool is_dump_tail(const char *p, const char *end) {
  while (p < end && *p == ' ') p++;
  const char *word = p;
  while (p < end && kiln_is_word(*p)) p++;
  return p - word > 4 && p < end && *p == '{' && memcmp(p - 4, "Type", 4) == 0;
}

/* PyTorch's dump of a small tensor: numbers, "(1,.,.) = " before each matrix, "1e+03 *" before all,
 * then "[ CPUFloatType{2,3} ]". */
static bool starts_dump(const kiln__reader *r) {
  for (const char *p = r->c.at; p < r->c.end; p++) {
    if (*p == '[') return is_dump_tail(p + 1, r->c.end);
    if (!strchr("0123456789.+-einfaj*(),= \n\t", *p) || *p == 0) return false;
    if (*p == ',' && (p + 1 == r->c.end || !strchr(".0123456789", p[1]) || p[1] == 0)) return false;
  }
  return false;
}

static kiln_status *parse_any(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  int c = kiln_cursor_peek(&r->c);
  if ((starts_number(c) || c == '(' || c == '[' || c == 'n' || c == 'i') && !r->in_dump &&
      starts_dump(r)) {
    return kiln__literal_parse_dump(r, hint_is(hint, KILN_TYPE_TENSOR) ? hint : NULL, out);
  }
  if (c == '"' || c == '\'') return parse_text(r, hint, out);
  if (kiln_cursor_accept(&r->c, "[")) return parse_list(r, hint, out);
  if (kiln_cursor_accept(&r->c, "(")) return parse_tuple(r, hint, out);
  if (kiln_cursor_accept(&r->c, "<Tensor>")) return kiln__literal_make_tensor(r, hint, out);
  if (kiln_cursor_accept(&r->c, "{")) {
    return starts_tensor(r, hint) ? kiln__literal_parse_tensor(r, hint, out)
                                  : parse_dict(r, hint, out);
  }
  if (starts_number(c)) return parse_number(r, hint, out);
  return parse_word(r, hint, out);
}

kiln_status *kiln__literal_parse(kiln__reader *r, const kiln_type *hint, kiln_ivalue *out) {
  *out = kiln_none();
  if (++r->depth > KILN__MAX_NESTING) return kiln__reader_fail(r, "nested too deeply");
  kiln_cursor_skip(&r->c);
  KILN_TRY(parse_any(r, bare(hint), out));
  r->depth--;
  return NULL;
}
