/* read.c: what a value holds. */
#include "api/internal.h"

kiln_kind kiln_value_kind(const kiln_value *value) {
  if (!value) return KILN_KIND_NONE;
  switch ((kiln_tag)value->v.tag) {
    case KILN_TAG_NONE: return KILN_KIND_NONE;
    case KILN_TAG_INT: return KILN_KIND_INT;
    case KILN_TAG_FLOAT: return KILN_KIND_FLOAT;
    case KILN_TAG_BOOL: return KILN_KIND_BOOL;
    case KILN_TAG_DEVICE: return KILN_KIND_DEVICE;
    case KILN_TAG_TENSOR: return KILN_KIND_TENSOR;
    case KILN_TAG_STRING: return KILN_KIND_STRING;
    case KILN_TAG_COMPLEX: return KILN_KIND_COMPLEX;
    case KILN_TAG_LIST: return KILN_KIND_LIST;
    case KILN_TAG_TUPLE: return KILN_KIND_TUPLE;
    case KILN_TAG_DICT: return KILN_KIND_DICT;
    case KILN_TAG_OBJECT: return KILN_KIND_OBJECT;
    default: return KILN_KIND_OTHER;
  }
}

/* -- Numbers and strings -- */

int64_t kiln_value_as_int(const kiln_value *value) {
  return value && value->v.tag == KILN_TAG_INT ? value->v.u.i : 0;
}

double kiln_value_as_float(const kiln_value *value) {
  return value && value->v.tag == KILN_TAG_FLOAT ? value->v.u.f : 0;
}

int kiln_value_as_bool(const kiln_value *value) {
  return value && value->v.tag == KILN_TAG_BOOL && value->v.u.b;
}

void kiln_value_as_complex(const kiln_value *value, double *out_re, double *out_im) {
  if (!out_re || !out_im) return;
  bool is = value && value->v.tag == KILN_TAG_COMPLEX;
  *out_re = is ? value->v.u.complex->re : 0;
  *out_im = is ? value->v.u.complex->im : 0;
}

const char *kiln_value_as_string(const kiln_value *value, size_t *out_size) {
  bool is = value && value->v.tag == KILN_TAG_STRING;
  if (out_size) *out_size = is ? value->v.u.string->len : 0;
  return is ? value->v.u.string->data : NULL;
}

/* -- Containers -- */

int kiln_value_count(const kiln_value *value) {
  int64_t count = 0;
  switch (kiln_value_kind(value)) {
    case KILN_KIND_LIST: count = value->v.u.list->count; break;
    case KILN_KIND_TUPLE: count = value->v.u.tuple->count; break;
    case KILN_KIND_DICT: count = value->v.u.dict->live; break;
    case KILN_KIND_OBJECT: count = value->v.u.object->count; break;
    default: break;
  }
  return count > INT32_MAX ? INT32_MAX : (int)count;
}

/* Pair `index` of a dict; false beyond the last. */
static bool find_pair(const kiln_dict *dict, int index, kiln_ivalue **out_key,
                      kiln_ivalue **out_value) {
  const bool dense = dict->live == dict->count; /* of which none was removed */
  int64_t cursor = dense ? index : 0;
  for (int i = dense ? index : 0; i <= index; i++) {
    if (!kiln_dict_next(dict, &cursor, out_key, out_value)) return false;
  }
  return index >= 0;
}

static kiln_status *no_part(const kiln_value *value, const char *what, int index) {
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "the value has no %s %d: it holds %d", what, index,
                    kiln_value_count(value));
}

static kiln_status *no_keys(const kiln_value *value) {
  const char *type = kiln_value_type(value);
  return KILN_ERROR(KILN_INVALID_ARGUMENT,
                    "a value of type %s has no keys: dicts, objects and NamedTuples have them",
                    type ? type : "None");
}

kiln_status *kiln_value_item(const kiln_value *value, int index, kiln_value **out_item) {
  KILN_NEEDS(out_item);
  kiln_ivalue *key = NULL, *item = NULL;
  *out_item = NULL;
  if (index < 0 || index >= kiln_value_count(value)) return no_part(value, "element", index);
  switch (kiln_value_kind(value)) {
    case KILN_KIND_LIST: item = &value->v.u.list->items[index]; break;
    case KILN_KIND_TUPLE: item = &value->v.u.tuple->items[index]; break;
    case KILN_KIND_OBJECT: item = &value->v.u.object->slots[index]; break;
    default:
      if (!find_pair(value->v.u.dict, index, &key, &item)) return no_part(value, "pair", index);
      break;
  }
  if (item->tag == KILN_TAG_TENSOR && !item->u.tensor) {
    return KILN_ERROR(KILN_NOT_FOUND, "attribute %d is not set yet", index);
  }
  return kiln__value_wrap_like(value, kiln_ivalue_retain(*item), out_item);
}

static kiln_status *wrap_name(const kiln_value *value, kiln_str name, kiln_value **out_key) {
  kiln_string *string = NULL;
  KILN_TRY(kiln_string_create(value->context->env->mem, name, &string));
  return kiln__value_wrap_like(value, kiln_of_box(string), out_key);
}

kiln_status *kiln_value_key(const kiln_value *value, int index, kiln_value **out_key) {
  KILN_NEEDS(out_key);
  kiln_ivalue *key = NULL, *item = NULL;
  *out_key = NULL;
  const kiln_str *name = NULL;
  const bool is_within = index >= 0 && index < kiln_value_count(value);
  switch (kiln_value_kind(value)) {
    case KILN_KIND_OBJECT:
      if (is_within) name = &value->v.u.object->type->cls->attributes[index].name;
      break;
    case KILN_KIND_TUPLE:
      if (!value->v.u.tuple->type || !value->v.u.tuple->type->names) return no_keys(value);
      if (is_within) name = &value->v.u.tuple->type->names[index];
      break;
    case KILN_KIND_DICT: break;
    default: return no_keys(value);
  }
  if (name) return wrap_name(value, *name, out_key);
  if (!is_within || !find_pair(value->v.u.dict, index, &key, &item)) {
    return no_part(value, "key", index);
  }
  return kiln__value_wrap_like(value, kiln_ivalue_retain(*key), out_key);
}

/* -- Tensors -- */

/* NULL for anything but a defined tensor. */
static const kiln_tensor *tensor_of(const kiln_value *value) {
  if (!value || value->v.tag != KILN_TAG_TENSOR) return NULL;
  return value->v.u.tensor->key.f.undefined ? NULL : value->v.u.tensor;
}

/* What the runtime says of a defined tensor by the same name, else `none`. */
#define TENSOR_FACT(type, name, none)               \
  type kiln_value_##name(const kiln_value *value) { \
    const kiln_tensor *t = tensor_of(value);        \
    return t ? kiln_tensor_##name(t) : none;        \
  }
TENSOR_FACT(kiln_dtype, dtype, KILN_DTYPE_NONE)
TENSOR_FACT(int, rank, 0)
TENSOR_FACT(const int64_t *, sizes, NULL)
TENSOR_FACT(const int64_t *, strides, NULL)

const void *kiln_value_data(const kiln_value *value) {
  const kiln_tensor *t = tensor_of(value);
  return t && t->numel > 0 ? kiln_tensor_data(t) : NULL;
}

int kiln_value_requires_grad(const kiln_value *value) {
  const kiln_tensor *t = tensor_of(value);
  return t && t->key.f.requires_grad;
}

kiln_status *kiln_value_copy_data(const kiln_value *value, void *data, size_t size) {
  const kiln_tensor *t = tensor_of(value);
  if (!t) return KILN_ERROR(KILN_INVALID_ARGUMENT, "the value is no tensor with elements");
  size_t need = (size_t)t->numel * kiln_tensor_item_size(t);
  if (size != need) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the tensor's elements are %zu bytes, not %zu", need,
                      size);
  }
  if (need == 0) return NULL;
  KILN_NEEDS(data);
  kiln_tensor *packed = NULL;
  KILN_TRY(kiln__value_readable(value));
  KILN_TRY(kiln_tensor_contiguous(NULL, value->v.u.tensor, &packed));
  memcpy(data, kiln_tensor_data(packed), need);
  kiln_tensor_release(packed);
  return NULL;
}

/* -- Types -- */

static kiln_status *print_type(const kiln_value *value, char **out_text, size_t *out_size) {
  kiln_type_table *table = kiln__value_types(value);
  kiln_text text = kiln__text_begin(value->context);
  kiln_type_print(&text, kiln_type_unshaped(table, kiln_ivalue_type(table, value->v)), 0);
  *out_size = text.len + 1;
  *out_text = kiln_mem_alloc(value->context->env->mem, *out_size);
  if (!*out_text) return kiln_status_oom();
  memcpy(*out_text, text.data, *out_size);
  return NULL;
}
static kiln_status *try_type(const kiln_value *value, char **out_text, size_t *out_size) {
  KILN_PROTECT(print_type(value, out_text, out_size));
}

const char *kiln_value_type(const kiln_value *value) {
  if (!value) return NULL;
  kiln_value *v = (kiln_value *)value; /* the text is made once, and published by one store */
  char *known = __atomic_load_n(&v->type_text, __ATOMIC_ACQUIRE), *text = NULL;
  size_t size = 0;
  if (known) return known;
  kiln_status *status = try_type(value, &text, &size);
  if (status) {
    kiln_status_destroy(status);
    return "";
  }
  if (!__atomic_compare_exchange_n(&v->type_text, &known, text, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    kiln_mem_free(value->context->env->mem, text, size);
    return known;
  }
  return text;
}
