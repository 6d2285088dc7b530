/* values.c: types, values and the program's arguments. */
#include <inttypes.h>

#include "export/internal.h"

enum { DEEPEST = 256 }; /* containers in containers */

/* -- Types -- */

static kiln_status *put_nominal(kiln__exporter *x, const kiln_class_info *info,
                                kiln_aot_type *own) {
  int32_t *members = KILN_NEW_ARRAY(x->arena, int32_t, info->member_count);
  own->slot_count = info->attribute_count;
  own->is_module = info->is_module;
  own->member_count = info->member_count;
  for (int i = 0; i < info->member_count; i++)
    KILN_TRY(kiln__export_value(x, info->member_values[i], &members[i]));
  own->members = KILN__ARRAY(&x->image, members, info->member_count);
  if (info->member_names && info->member_count)
    own->member_names = kiln__image_strs(&x->image, info->member_names, info->member_count);
  return NULL;
}

kiln_status *kiln__export_type(kiln__exporter *x, const kiln_type *type, int32_t *out_index) {
  *out_index = -1;
  if (!type) return NULL;
  if (kiln_type_is_tensor(type)) type = kiln_type_basic(KILN_TYPE_TENSOR);
  *out_index = kiln__number_of(&x->type_at, type);
  if (*out_index >= 0) return NULL;
  if (type->kind == KILN_TYPE_INTERFACE || type->kind == KILN_TYPE_VAR)
    return KILN_ERROR(KILN_UNSUPPORTED, "type " KILN_STR_FMT " has no place in a program",
                      KILN_STR_ARG(type->name));
  kiln_aot_type *own = KILN_NEW(x->arena, kiln_aot_type);
  KILN__SAME(own, type, kind), KILN__SAME(own, type, elem_count);
  int32_t *elems = KILN_NEW_ARRAY(x->arena, int32_t, type->elem_count);
  for (int i = 0; i < type->elem_count; i++)
    KILN_TRY(kiln__export_type(x, type->elems[i], &elems[i]));
  own->elems = KILN__ARRAY(&x->image, elems, type->elem_count);
  if (type->name.len) own->name = kiln__image_str(&x->image, type->name);
  if (type->names && type->elem_count)
    own->names = kiln__image_strs(&x->image, type->names, type->elem_count);
  if (type->cls) KILN_TRY(put_nominal(x, type->cls, own));
  kiln_vec_push(x->arena, &x->types, type);
  kiln_vec_push(x->arena, &x->type_images, *own);
  *out_index = x->types.count - 1;
  kiln__set_number(&x->type_at, type, *out_index);
  return NULL;
}

const kiln_aot_type *kiln__export_types_at(kiln__exporter *x) {
  const kiln_aot_type *own = x->type_images.data; /* there is that of self */
  return KILN__PUT(&x->image, own, x->types.count, &own->elems, &own->name.data, &own->names,
                   &own->member_names, &own->members);
}

/* -- Values -- */

static int32_t add(kiln__exporter *x, kiln_aot_value value) {
  kiln_vec_push(x->arena, &x->values, value);
  return x->values.count - 1;
}

/* Instances read the memory of their model: by the memory, not by who reads it. */
static int32_t storage_of(kiln__exporter *x, kiln_storage *storage) {
  const void *at = storage->data ? storage->data : storage;
  const int known = kiln__number_of(&x->storage_at, at);
  if (known >= 0) {
    kiln__out_storage *out = &x->storages.data[known];
    if (storage->bytes > out->storage->bytes) out->storage = storage; /* it reaches further */
    return known;
  }
  kiln__set_number(&x->storage_at, at, x->storages.count);
  kiln_vec_push(x->arena, &x->storages, (kiln__out_storage){.storage = storage});
  return x->storages.count - 1;
}

static kiln_status *put_tensor(kiln__exporter *x, const kiln_tensor *t, kiln_aot_value *out) {
  kiln_aot_strided *own = KILN_NEW(x->arena, kiln_aot_strided);
  const size_t rank = (size_t)kiln_tensor_rank(t);
  if (t->sides)
    return KILN_ERROR(KILN_UNSUPPORTED,
                      "quantised, sparse and nested tensors have no place in a program yet");
  KILN__SAME(own, t, key), KILN__SAME(own, t, offset);
  if (!kiln_tensor_is_undefined(t)) own->storage = storage_of(x, t->storage);
  own->dims = kiln__image_put(&x->image, t->dims, 2 * sizeof *t->dims * rank, 8);
  out->u.tensor = KILN__PUT(&x->image, own, 1, &own->dims);
  return NULL;
}

typedef struct value_walk {
  kiln__exporter *x;
  int depth;
  const char *name; /* of an argument whose tensors are inputs; NULL: none are */
} value_walk;

static kiln_status *put_value(value_walk *w, kiln_ivalue v, int32_t *out_index);

/* Those of a dict are keys and values in turn: `step` is 2, and keys are no inputs. */
static kiln_status *put_items(value_walk *w, const kiln_ivalue *items, int64_t count, int step,
                              kiln_aot_value *out) {
  int32_t *numbers = KILN_NEW_ARRAY(w->x->arena, int32_t, count);
  const char *name = w->name;
  for (int64_t i = 0; i < count; i++) {
    const bool is_named = name && i % step == step - 1;
    w->name = is_named ? kiln_arena_printf(w->x->arena, "%s[%" PRId64 "]", name, i / step) : NULL;
    KILN_TRY(put_value(w, items[i], &numbers[i]));
  }
  w->name = name;
  out->count = count / step;
  out->items = KILN__ARRAY(&w->x->image, numbers, count);
  return NULL;
}

static kiln_status *put_dict(value_walk *w, const kiln_dict *dict, kiln_aot_value *out) {
  kiln_ivalue *items = KILN_NEW_ARRAY(w->x->arena, kiln_ivalue, 2 * dict->live), *key, *value;
  int64_t count = 0;
  for (int64_t i = 0; kiln_dict_next(dict, &i, &key, &value); count += 2) {
    if (key->tag == KILN_TAG_TENSOR)
      return KILN_ERROR(KILN_UNSUPPORTED, "a dict with tensors as keys has no place in a program");
    items[count] = *key;
    items[count + 1] = *value;
  }
  KILN_TRY(kiln__export_type(w->x, dict->key_type, &out->type));
  KILN_TRY(kiln__export_type(w->x, dict->value_type, &out->second));
  return put_items(w, items, count, 2, out);
}

static kiln_status *fill(value_walk *w, kiln_ivalue v, kiln_aot_value *out) {
  kiln__exporter *x = w->x;
  switch (v.tag) {
    case KILN_TAG_NONE: return NULL;
    case KILN_TAG_INT: out->u.i = v.u.i; return NULL;
    case KILN_TAG_FLOAT: out->u.f[0] = v.u.f; return NULL;
    case KILN_TAG_BOOL: out->u.i = v.u.b; return NULL;
    case KILN_TAG_DEVICE:
      out->u.device.kind = v.u.device.kind;
      out->u.device.index = v.u.device.index;
      return NULL;
    case KILN_TAG_FUNCTION:
      out->u.i = kiln__export_callable_number(x, v.u.function);
      return out->u.i >= 0 ? NULL
                           : KILN_ERROR(KILN_UNSUPPORTED,
                                        "function %s as a value has no place "
                                        "in a program",
                                        v.u.function->name);
    case KILN_TAG_TENSOR:
      if (v.u.tensor) return put_tensor(x, v.u.tensor, out);
      out->tag = KILN_AOT_UNSET;
      return NULL;
    case KILN_TAG_STRING:
      out->count = (int64_t)v.u.string->len;
      out->u.text = kiln__image_put(&x->image, v.u.string->data, v.u.string->len + 1, 8);
      return NULL;
    case KILN_TAG_COMPLEX:
      out->u.f[0] = v.u.complex->re;
      out->u.f[1] = v.u.complex->im;
      return NULL;
    case KILN_TAG_LIST:
      KILN_TRY(kiln__export_type(x, v.u.list->elem_type, &out->type));
      return put_items(w, v.u.list->items, v.u.list->count, 1, out);
    case KILN_TAG_TUPLE:
      KILN_TRY(kiln__export_type(x, v.u.tuple->type, &out->type));
      return put_items(w, v.u.tuple->items, v.u.tuple->count, 1, out);
    case KILN_TAG_DICT: return put_dict(w, v.u.dict, out);
    case KILN_TAG_OBJECT:
      KILN_TRY(kiln__export_type(x, v.u.object->type, &out->type));
      return put_items(w, v.u.object->slots, v.u.object->count, 1, out);
    case KILN_TAG_ENUM:
      KILN_TRY(kiln__export_type(x, v.u.enumerator->type, &out->type));
      out->u.i = v.u.enumerator->member;
      return NULL;
    default:
      return KILN_ERROR(KILN_UNSUPPORTED,
                        "a value that is no tensor, number, text or container of such has no "
                        "place in a program");
  }
}

static const char *words_of(kiln__exporter *x, kiln_ivalue v) {
  kiln_text text = kiln_text_in(x->arena);
  if (v.tag == KILN_TAG_TENSOR && !kiln_tensor_is_undefined(v.u.tensor)) {
    const kiln_tensor *t = v.u.tensor;
    const kiln_tensor_detail detail = {.dtype = (int16_t)kiln_tensor_dtype(t),
                                       .rank = (int8_t)kiln_tensor_rank(t),
                                       .requires_grad = -1,
                                       .undefined = -1,
                                       .device = -1,
                                       .device_index = -1,
                                       .sizes = kiln_tensor_sizes(t)};
    kiln_tensor_detail_print(&text, &detail, 1);
  } else {
    kiln_ivalue_type_name(&text, v);
  }
  return text.data;
}

static bool is_leaf(kiln_ivalue v) {
  return (v.tag == KILN_TAG_TENSOR && v.u.tensor && !kiln_tensor_is_undefined(v.u.tensor)) ||
         v.tag == KILN_TAG_INT || v.tag == KILN_TAG_FLOAT || v.tag == KILN_TAG_BOOL;
}

static int32_t add_input(kiln__exporter *x, const char *name, kiln_ivalue v) {
  kiln_vec_push(x->arena, &x->inputs, (kiln_aot_input){.name = name, .tag = v.tag});
  kiln_vec_push(x->arena, &x->input_words, words_of(x, v));
  const int64_t number = x->inputs.count - 1;
  return add(x, (kiln_aot_value){.tag = KILN_AOT_INPUT, .type = -1, .second = -1, .u.i = number});
}

static kiln_status *put_value(value_walk *w, kiln_ivalue v, int32_t *out_index) {
  kiln__exporter *x = w->x;
  const bool is_shared = v.tag >= KILN_TAG__COUNTED && v.u.box && !w->name;
  if (w->name && is_leaf(v)) {
    *out_index = add_input(x, w->name, v);
    return NULL;
  }
  *out_index = is_shared ? kiln__number_of(&x->value_at, v.u.box) : -1;
  if (*out_index >= 0) return NULL;
  if (w->depth == DEEPEST)
    return KILN_ERROR(KILN_UNSUPPORTED, "containers more than %d deep have no place in a program",
                      DEEPEST);
  kiln_aot_value out = {.tag = v.tag, .type = -1, .second = -1};
  w->depth++;
  KILN_TRY(fill(w, v, &out));
  w->depth--;
  *out_index = add(x, out);
  if (is_shared) kiln__set_number(&x->value_at, v.u.box, *out_index);
  return NULL;
}

kiln_status *kiln__export_value(kiln__exporter *x, kiln_ivalue v, int32_t *out_index) {
  value_walk w = {.x = x};
  return put_value(&w, v, out_index);
}

const kiln_aot_value *kiln__export_values_at(kiln__exporter *x) {
  kiln_aot_value *at = KILN__ARRAY(&x->image, x->values.data, x->values.count);
  for (int i = 0; i < x->values.count; i++) {
    const kiln_aot_value *v = &x->values.data[i];
    kiln__image_set(&x->image, &at[i].items, v->items);
    if (v->tag == KILN_TAG_STRING) kiln__image_set(&x->image, &at[i].u.text, v->u.text);
    if (v->tag == KILN_TAG_TENSOR) kiln__image_set(&x->image, &at[i].u.tensor, v->u.tensor);
  }
  return at;
}

/* -- Arguments and results -- */

static kiln_status *note_outputs(kiln__exporter *x, kiln_ivalue v, int depth) {
  if (depth == DEEPEST) return KILN_ERROR(KILN_UNSUPPORTED, "the result is too deep");
  if (is_leaf(v)) {
    const bool is_tensor = v.tag == KILN_TAG_TENSOR;
    const size_t bytes = is_tensor ? (size_t)v.u.tensor->numel * kiln_tensor_item_size(v.u.tensor)
                         : v.tag == KILN_TAG_BOOL ? 1
                                                  : 8;
    kiln_vec_push(x->arena, &x->output_words, words_of(x, v));
    kiln_vec_push(x->arena, &x->output_bytes, bytes);
    return NULL;
  }
  if (v.tag == KILN_TAG_TUPLE || v.tag == KILN_TAG_LIST || v.tag == KILN_TAG_DICT) {
    const int step = v.tag == KILN_TAG_DICT ? 2 : 1; /* of a dict the values */
    for (int64_t i = step - 1; i < kiln_child_count(v); i += step)
      KILN_TRY(note_outputs(x, kiln_child_at(v, i), depth + 1));
  } else if (v.tag != KILN_TAG_NONE) {
    return KILN_ERROR(KILN_UNSUPPORTED,
                      "the result holds a %s: a program gives tensors and numbers, in tuples, "
                      "lists and dicts",
                      words_of(x, v));
  }
  return NULL;
}

kiln_status *kiln__export_arguments(kiln__exporter *x) {
  const kiln_export *r = x->request;
  for (int i = 0; i < r->arg_count; i++) {
    value_walk w = {.x = x, .name = r->arg_names[i]};
    int32_t number;
    KILN_TRY(put_value(&w, r->args[i], &number));
    kiln_vec_push(x->arena, &x->args, number);
  }
  return note_outputs(x, r->result, 0);
}
