/* value_query.c: equality, identity, and what type a value has. */
#include "runtime/value.h"

/* Deeper structures than this count as unequal or unfit rather than overflow the stack. */
enum { QUERY_MAX_DEPTH = 2000 };

/* -- Equality -- */

static bool is_number(kiln_tag tag) {
  return tag == KILN_TAG_INT || tag == KILN_TAG_FLOAT || tag == KILN_TAG_BOOL ||
         tag == KILN_TAG_COMPLEX;
}

/* Exact, as in Python: no rounding of the int. */
static bool int_equals_float(int64_t i, double f) {
  return f >= -0x1p63 && f < 0x1p63 && (double)(int64_t)f == f && (int64_t)f == i;
}

static bool number_equal(kiln_ivalue a, kiln_ivalue b) {
  if (a.tag == KILN_TAG_BOOL) a = kiln_int(a.u.b);
  if (b.tag == KILN_TAG_BOOL) b = kiln_int(b.u.b);
  if (a.tag == KILN_TAG_COMPLEX && b.tag == KILN_TAG_COMPLEX) {
    return a.u.complex->re == b.u.complex->re && a.u.complex->im == b.u.complex->im;
  }
  if (a.tag == KILN_TAG_COMPLEX) {
    return a.u.complex->im == 0 && number_equal(kiln_float(a.u.complex->re), b);
  }
  if (b.tag == KILN_TAG_COMPLEX) return number_equal(b, a);
  if (a.tag == KILN_TAG_INT && b.tag == KILN_TAG_INT) return a.u.i == b.u.i;
  if (a.tag == KILN_TAG_FLOAT && b.tag == KILN_TAG_FLOAT) return a.u.f == b.u.f;
  return a.tag == KILN_TAG_INT ? int_equals_float(a.u.i, b.u.f) : int_equals_float(b.u.i, a.u.f);
}

static bool equal_at(kiln_ivalue a, kiln_ivalue b, int depth);

static bool items_equal(const kiln_ivalue *a, const kiln_ivalue *b, int64_t count, int depth) {
  for (int64_t i = 0; i < count; i++) {
    if (!equal_at(a[i], b[i], depth)) return false;
  }
  return true;
}

static bool dict_equal(const kiln_dict *a, const kiln_dict *b, int depth) {
  if (a->live != b->live) return false;
  int64_t at = 0;
  kiln_ivalue *key, *value;
  while (kiln_dict_next(a, &at, &key, &value)) {
    const kiln_ivalue *other = kiln_dict_find(b, *key);
    if (!other || !equal_at(*value, *other, depth)) return false;
  }
  return true;
}

static bool equal_at(kiln_ivalue a, kiln_ivalue b, int depth) {
  if (is_number((kiln_tag)a.tag) && is_number((kiln_tag)b.tag)) return number_equal(a, b);
  if (a.tag != b.tag || depth > QUERY_MAX_DEPTH) return false;
  switch ((kiln_tag)a.tag) {
    case KILN_TAG_NONE: return true;
    case KILN_TAG_DEVICE:
      return a.u.device.kind == b.u.device.kind && a.u.device.index == b.u.device.index;
    case KILN_TAG_FUNCTION: return a.u.function == b.u.function;
    case KILN_TAG_STRING:
      return kiln_str_equal(kiln_string_view(a.u.string), kiln_string_view(b.u.string));
    case KILN_TAG_LIST:
      return a.u.list == b.u.list ||
             (a.u.list->count == b.u.list->count &&
              items_equal(a.u.list->items, b.u.list->items, a.u.list->count, depth + 1));
    case KILN_TAG_TUPLE:
      return a.u.tuple->count == b.u.tuple->count &&
             items_equal(a.u.tuple->items, b.u.tuple->items, a.u.tuple->count, depth + 1);
    case KILN_TAG_DICT: return a.u.dict == b.u.dict || dict_equal(a.u.dict, b.u.dict, depth + 1);
    case KILN_TAG_ENUM:
      return a.u.enumerator->type == b.u.enumerator->type &&
             a.u.enumerator->member == b.u.enumerator->member;
    default: return a.u.box == b.u.box;
  }
}

bool kiln_ivalue_equal(kiln_ivalue a, kiln_ivalue b) { return equal_at(a, b, 0); }

/* The undefined tensor is None, as in PyTorch. */
static bool is_nothing(kiln_ivalue v) {
  return v.tag == KILN_TAG_NONE ||
         (v.tag == KILN_TAG_TENSOR && v.u.tensor && kiln_tensor_is_undefined(v.u.tensor));
}

bool kiln_ivalue_is(kiln_ivalue a, kiln_ivalue b) {
  if (is_nothing(a) && is_nothing(b)) return true;
  if (a.tag != b.tag) return false;
  switch ((kiln_tag)a.tag) {
    case KILN_TAG_TENSOR: return a.u.tensor == b.u.tensor;
    case KILN_TAG_LIST:
    case KILN_TAG_TUPLE:
    case KILN_TAG_DICT:
    case KILN_TAG_OBJECT:
    case KILN_TAG_FUTURE:
    case KILN_TAG_ENUM: /* each mention of Color.RED is one of its own, as in PyTorch */
    case KILN_TAG_OTHER: return a.u.box == b.u.box;
    default: return kiln_ivalue_equal(a, b); /* numbers and strings have no identity */
  }
}

bool kiln_ivalue_same(kiln_ivalue a, kiln_ivalue b) {
  if (a.tag != b.tag) return false;
  switch ((kiln_tag)a.tag) {
    case KILN_TAG_NONE: return true;
    case KILN_TAG_BOOL: return a.u.b == b.u.b;
    case KILN_TAG_DEVICE:
      return a.u.device.kind == b.u.device.kind && a.u.device.index == b.u.device.index;
    case KILN_TAG_STRING:
      return kiln_str_equal(kiln_string_view(a.u.string), kiln_string_view(b.u.string));
    case KILN_TAG_COMPLEX:
      return kiln_ivalue_same(kiln_float(a.u.complex->re), kiln_float(b.u.complex->re)) &&
             kiln_ivalue_same(kiln_float(a.u.complex->im), kiln_float(b.u.complex->im));
    case KILN_TAG_TUPLE:
      if (a.u.tuple->count != b.u.tuple->count) return false;
      for (int64_t i = 0; i < a.u.tuple->count; i++) {
        if (!kiln_ivalue_same(a.u.tuple->items[i], b.u.tuple->items[i])) return false;
      }
      return true;
    default: return a.u.i == b.u.i; /* numbers by bits, objects by address */
  }
}

typedef struct hasher {
  bool lists_by_items;
  int left; /* values to look at: what shares its parts is walked as a tree */
} hasher;

static uint64_t hash_value(hasher *s, uint64_t h, kiln_ivalue v);

static uint64_t hash_items(hasher *s, uint64_t h, const kiln_ivalue *items, int64_t count) {
  for (int64_t i = 0; i < count && s->left > 0; i++) h = hash_value(s, h, items[i]);
  return kiln_hash_mix(h, (uint64_t)count);
}

static uint64_t hash_value(hasher *s, uint64_t h, kiln_ivalue v) {
  h = kiln_hash_mix(h, v.tag);
  s->left--;
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: return h;
    case KILN_TAG_BOOL: return kiln_hash_mix(h, v.u.b);
    case KILN_TAG_DEVICE:
      return kiln_hash_mix(h, (uint64_t)(v.u.device.kind * 65536 + v.u.device.index));
    case KILN_TAG_STRING: return kiln_hash_bytes(h, v.u.string->data, v.u.string->len);
    case KILN_TAG_COMPLEX:
      h = hash_value(s, h, kiln_float(v.u.complex->re));
      return hash_value(s, h, kiln_float(v.u.complex->im));
    case KILN_TAG_TUPLE: return hash_items(s, h, v.u.tuple->items, v.u.tuple->count);
    case KILN_TAG_LIST:
      if (s->lists_by_items) return hash_items(s, h, v.u.list->items, v.u.list->count);
      return kiln_hash_mix(h, (uint64_t)v.u.i);
    default: return kiln_hash_mix(h, (uint64_t)v.u.i);
  }
}

uint64_t kiln_ivalue_hash(uint64_t seed, kiln_ivalue v, bool lists_by_items) {
  hasher s = {lists_by_items, 4096};
  return hash_value(&s, seed, v);
}

/* -- Types -- */

static bool matches_at(kiln_ivalue v, const kiln_type *type, int depth);

/* A container's declared part: lists and dicts are invariant, or one could be written as a list of
 * Any and read as one of ints. */
static bool same_part(const kiln_type *have, const kiln_type *want) {
  return want->kind == KILN_TYPE_VAR || kiln_type_equal_unshaped(have, want);
}

/* A part that was not known yet is from now on what it was found to fit; else an empty list could
 * be a list of two types at once. Several threads may ask. */
static bool settle(const kiln_type **part, const kiln_type *type) {
  const kiln_type *was = NULL;
  if (kiln_type_has_var(type)) return true;
  return __atomic_compare_exchange_n(part, &was, type, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
         same_part(was, type);
}

static bool list_matches(kiln_list *list, const kiln_type *elem, int depth) {
  const kiln_type *have = __atomic_load_n(&list->elem_type, __ATOMIC_RELAXED);
  if (have) return same_part(have, elem);
  for (int64_t i = 0; i < list->count; i++) {
    if (!matches_at(list->items[i], elem, depth)) return false;
  }
  return settle(&list->elem_type, elem);
}

static bool dict_matches(kiln_dict *dict, const kiln_type *type, int depth) {
  const kiln_type *key_type = __atomic_load_n(&dict->key_type, __ATOMIC_RELAXED);
  const kiln_type *value_type = __atomic_load_n(&dict->value_type, __ATOMIC_RELAXED);
  if (key_type && !same_part(key_type, type->elems[0])) return false;
  if (value_type && !same_part(value_type, type->elems[1])) return false;
  if (key_type && value_type) return true;
  int64_t at = 0;
  kiln_ivalue *key, *value;
  while (kiln_dict_next(dict, &at, &key, &value)) {
    if (!matches_at(*key, type->elems[0], depth) || !matches_at(*value, type->elems[1], depth)) {
      return false;
    }
  }
  return settle(&dict->key_type, type->elems[0]) && settle(&dict->value_type, type->elems[1]);
}

static bool tuple_matches(const kiln_tuple *tuple, const kiln_type *type, int depth) {
  if (tuple->count != type->elem_count) return false;
  if (type->names && tuple->type && tuple->type->names &&
      !kiln_type_is_subtype(tuple->type, type)) {
    return false;
  }
  for (int64_t i = 0; i < tuple->count; i++) {
    if (!matches_at(tuple->items[i], type->elems[i], depth)) return false;
  }
  return true;
}

static bool union_matches(kiln_ivalue v, const kiln_type *type, int depth) {
  for (int i = 0; i < type->elem_count; i++) {
    if (matches_at(v, type->elems[i], depth)) return true;
  }
  return false;
}

static bool matches_at(kiln_ivalue v, const kiln_type *type, int depth) {
  kiln_tag tag = (kiln_tag)v.tag;
  if (depth > QUERY_MAX_DEPTH) return false;
  switch (type->kind) {
    case KILN_TYPE_ANY:
    case KILN_TYPE_VAR: return true;
    case KILN_TYPE_TENSOR: return tag == KILN_TAG_TENSOR;
    case KILN_TYPE_INT:
    case KILN_TYPE_QSCHEME: return tag == KILN_TAG_INT;
    case KILN_TYPE_FLOAT: return tag == KILN_TAG_FLOAT;
    case KILN_TYPE_BOOL: return tag == KILN_TAG_BOOL;
    case KILN_TYPE_COMPLEX: return tag == KILN_TAG_COMPLEX;
    case KILN_TYPE_NUMBER:
      return tag == KILN_TAG_INT || tag == KILN_TAG_FLOAT || tag == KILN_TAG_COMPLEX;
    case KILN_TYPE_STR: return tag == KILN_TAG_STRING;
    case KILN_TYPE_NONE: return tag == KILN_TAG_NONE;
    case KILN_TYPE_DEVICE: return tag == KILN_TAG_DEVICE;
    case KILN_TYPE_GENERATOR:
    case KILN_TYPE_STREAM:
    case KILN_TYPE_STORAGE:
    case KILN_TYPE_CAPSULE: return tag == KILN_TAG_OTHER;
    case KILN_TYPE_ANY_LIST: return tag == KILN_TAG_LIST;
    case KILN_TYPE_ANY_TUPLE: return tag == KILN_TAG_TUPLE;
    case KILN_TYPE_ANY_CLASS: return tag == KILN_TAG_OBJECT;
    case KILN_TYPE_ANY_ENUM: return tag == KILN_TAG_ENUM;
    case KILN_TYPE_FUNCTION: return tag == KILN_TAG_FUNCTION;
    case KILN_TYPE_LIST:
      return tag == KILN_TAG_LIST && list_matches(v.u.list, type->elems[0], depth + 1);
    case KILN_TYPE_OPTIONAL:
      return tag == KILN_TAG_NONE || matches_at(v, type->elems[0], depth + 1);
    case KILN_TYPE_FUTURE:
    case KILN_TYPE_AWAIT:
    case KILN_TYPE_RREF:
      return tag == KILN_TAG_FUTURE && v.u.future->elem_type &&
             kiln_type_is_subtype(v.u.future->elem_type, type->elems[0]);
    case KILN_TYPE_DICT: return tag == KILN_TAG_DICT && dict_matches(v.u.dict, type, depth + 1);
    case KILN_TYPE_TUPLE: return tag == KILN_TAG_TUPLE && tuple_matches(v.u.tuple, type, depth + 1);
    case KILN_TYPE_UNION: return union_matches(v, type, depth + 1);
    case KILN_TYPE_CLASS:
    case KILN_TYPE_INTERFACE:
      return tag == KILN_TAG_OBJECT && kiln_type_is_subtype(v.u.object->type, type);
    case KILN_TYPE_ENUM: return tag == KILN_TAG_ENUM && v.u.enumerator->type == type;
  }
  return false;
}

bool kiln_ivalue_matches(kiln_ivalue v, const kiln_type *type) { return matches_at(v, type, 0); }

static const kiln_type *tensor_type(kiln_type_table *table, const kiln_tensor *t) {
  kiln_tensor_detail d = KILN_TENSOR_DETAIL_ANY;
  d.undefined = (int8_t)t->key.f.undefined;
  if (kiln_tensor_is_undefined(t)) return kiln_type_tensor(table, &d);
  d.dtype = t->key.f.dtype;
  d.rank = (int8_t)t->key.f.rank;
  d.requires_grad = (int8_t)t->key.f.requires_grad;
  d.device = t->key.f.device_kind;
  d.device_index = t->key.f.device_index;
  d.has_strides = true;
  d.sizes = kiln_tensor_sizes(t);
  d.strides = kiln_tensor_strides(t);
  return kiln_type_tensor(table, &d);
}

static const kiln_type *type_at(kiln_type_table *table, kiln_ivalue v, int depth);

/* The join of what a container holds, Tensor where it is empty (the type of a bare [] or {}) and
 * Any where there is none. */
static const kiln_type *join(kiln_type_table *table, const kiln_type *so_far, kiln_ivalue v,
                             int depth) {
  const kiln_type *type = kiln_type_unshaped(table, type_at(table, v, depth));
  if (!so_far) return type;
  const kiln_type *both = kiln_type_unify(table, so_far, type, false);
  return both ? both : kiln_type_basic(KILN_TYPE_ANY);
}

static const kiln_type *list_elem(kiln_type_table *table, const kiln_list *list, int depth) {
  const kiln_type *elem = list->elem_type;
  for (int64_t i = 0; i < list->count && !list->elem_type; i++) {
    elem = join(table, elem, list->items[i], depth);
  }
  return elem ? elem : kiln_type_basic(KILN_TYPE_TENSOR);
}

static const kiln_type *dict_type(kiln_type_table *table, const kiln_dict *dict, int depth) {
  const kiln_type *key_type = dict->key_type, *value_type = dict->value_type;
  int64_t at = 0;
  kiln_ivalue *key, *value;
  while ((!dict->key_type || !dict->value_type) && kiln_dict_next(dict, &at, &key, &value)) {
    if (!dict->key_type) key_type = join(table, key_type, *key, depth);
    if (!dict->value_type) value_type = join(table, value_type, *value, depth);
  }
  if (!key_type) key_type = kiln_type_basic(KILN_TYPE_STR);
  if (!value_type) value_type = kiln_type_basic(KILN_TYPE_TENSOR);
  return kiln_type_dict(table, key_type, value_type);
}

static const kiln_type *tuple_type(kiln_type_table *table, const kiln_tuple *tuple, int depth) {
  if (tuple->type) return tuple->type;
  kiln_type_room room;
  const kiln_type **elems = kiln_type_room_open(&room, table, tuple->count);
  for (int64_t i = 0; i < tuple->count; i++) elems[i] = type_at(table, tuple->items[i], depth);
  const kiln_type *type = kiln_type_tuple(table, elems, (int)tuple->count);
  kiln_type_room_close(&room);
  return type;
}

static const kiln_type *type_at(kiln_type_table *table, kiln_ivalue v, int depth) {
  if (depth > QUERY_MAX_DEPTH) return kiln_type_basic(KILN_TYPE_ANY);
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: return kiln_type_basic(KILN_TYPE_NONE);
    case KILN_TAG_INT: return kiln_type_basic(KILN_TYPE_INT);
    case KILN_TAG_FLOAT: return kiln_type_basic(KILN_TYPE_FLOAT);
    case KILN_TAG_BOOL: return kiln_type_basic(KILN_TYPE_BOOL);
    case KILN_TAG_DEVICE: return kiln_type_basic(KILN_TYPE_DEVICE);
    case KILN_TAG_FUNCTION: return kiln_type_basic(KILN_TYPE_FUNCTION);
    case KILN_TAG_TENSOR: return tensor_type(table, v.u.tensor);
    case KILN_TAG_STRING: return kiln_type_basic(KILN_TYPE_STR);
    case KILN_TAG_COMPLEX: return kiln_type_basic(KILN_TYPE_COMPLEX);
    case KILN_TAG_LIST: return kiln_type_list(table, list_elem(table, v.u.list, depth + 1));
    case KILN_TAG_TUPLE: return tuple_type(table, v.u.tuple, depth + 1);
    case KILN_TAG_DICT: return dict_type(table, v.u.dict, depth + 1);
    case KILN_TAG_OBJECT: return v.u.object->type;
    case KILN_TAG_ENUM: return v.u.enumerator->type;
    case KILN_TAG_FUTURE: {
      const kiln_type *elem = v.u.future->elem_type;
      if (!elem && !kiln__future_complete(v.u.future)) elem = kiln_type_basic(KILN_TYPE_NONE);
      return kiln_type_future(table, elem ? elem : type_at(table, v.u.future->value, depth + 1));
    }
    default: return kiln_type_basic(KILN_TYPE_CAPSULE);
  }
}

const kiln_type *kiln_ivalue_type(kiln_type_table *table, kiln_ivalue v) {
  return type_at(table, v, 0);
}

/* -- Names, for errors -- */

static void name_at(kiln_text *text, kiln_ivalue v, int depth) {
  if (depth > 8) {
    kiln_text_puts(text, "...");
    return;
  }
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: kiln_text_puts(text, "None"); break;
    case KILN_TAG_INT: kiln_text_puts(text, "int"); break;
    case KILN_TAG_FLOAT: kiln_text_puts(text, "float"); break;
    case KILN_TAG_BOOL: kiln_text_puts(text, "bool"); break;
    case KILN_TAG_DEVICE: kiln_text_puts(text, "Device"); break;
    case KILN_TAG_FUNCTION: kiln_text_puts(text, "Function"); break;
    case KILN_TAG_TENSOR: kiln_text_puts(text, "Tensor"); break;
    case KILN_TAG_STRING: kiln_text_puts(text, "str"); break;
    case KILN_TAG_COMPLEX: kiln_text_puts(text, "complex"); break;
    case KILN_TAG_LIST:
      kiln_text_puts(text, "List[");
      if (v.u.list->elem_type) {
        kiln_type_print_annotation(text, v.u.list->elem_type);
      } else if (v.u.list->count > 0) {
        name_at(text, v.u.list->items[0], depth + 1);
      }
      kiln_text_putc(text, ']');
      break;
    case KILN_TAG_TUPLE:
      if (v.u.tuple->type) {
        kiln_type_print_annotation(text, v.u.tuple->type);
        break;
      }
      kiln_text_puts(text, "Tuple[");
      for (int64_t i = 0; i < v.u.tuple->count; i++) {
        if (i > 0) kiln_text_puts(text, ", ");
        name_at(text, v.u.tuple->items[i], depth + 1);
      }
      kiln_text_putc(text, ']');
      break;
    case KILN_TAG_DICT: {
      kiln_ivalue *key, *value;
      int64_t at = 0;
      kiln_text_puts(text, "Dict[");
      if (v.u.dict->key_type && v.u.dict->value_type) {
        kiln_type_print_annotation(text, v.u.dict->key_type);
        kiln_text_puts(text, ", ");
        kiln_type_print_annotation(text, v.u.dict->value_type);
      } else if (kiln_dict_next(v.u.dict, &at, &key, &value)) {
        name_at(text, *key, depth + 1);
        kiln_text_puts(text, ", ");
        name_at(text, *value, depth + 1);
      }
      kiln_text_putc(text, ']');
      break;
    }
    case KILN_TAG_OBJECT: kiln_type_print_annotation(text, v.u.object->type); break;
    case KILN_TAG_ENUM: kiln_type_print_annotation(text, v.u.enumerator->type); break;
    case KILN_TAG_FUTURE: kiln_text_puts(text, "Future"); break;
    default: kiln_text_puts(text, "capsule"); break;
  }
}

void kiln_ivalue_type_name(kiln_text *text, kiln_ivalue v) { name_at(text, v, 0); }
