/* values.c: types, values and the program's arguments. */
#include <inttypes.h>

#include "export/internal.h"

enum { DEEPEST = 256 }; /* containers in containers */

size_t kiln__export_numbers(kiln__exporter *x, const int32_t *numbers, int count) {
  return count ? kiln__image_put(&x->image, numbers, sizeof *numbers * (size_t)count, 8) : 0;
}

static void point(kiln__exporter *x, size_t at, size_t target) {
  if (target) kiln__image_point(&x->image, at, target);
}

/* -- Types -- */

static size_t put_names(kiln__exporter *x, const kiln_str *names, int count) {
  if (!names || !count) return 0;
  kiln_str *texts = KILN_NEW_ARRAY(x->arena, kiln_str, count);
  for (int i = 0; i < count; i++) texts[i].len = names[i].len;
  const size_t at = kiln__image_put(&x->image, texts, sizeof *texts * (size_t)count, 8);
  for (int i = 0; i < count; i++) {
    const char *text = kiln_arena_str(x->arena, names[i]).data;
    kiln__image_point(&x->image, at + (size_t)i * sizeof *texts + offsetof(kiln_str, data),
                      kiln__image_text(&x->image, text));
  }
  return at;
}

static kiln_status *put_nominal(kiln__exporter *x, kiln__out_type *out) {
  const kiln_class_info *info = out->type->cls;
  int32_t *members = KILN_NEW_ARRAY(x->arena, int32_t, info->member_count);
  out->image.slot_count = info->attribute_count;
  out->image.is_module = info->is_module;
  out->image.member_count = info->member_count;
  for (int i = 0; i < info->member_count; i++)
    KILN_TRY(kiln__export_value(x, info->member_values[i], &members[i]));
  out->members = kiln__export_numbers(x, members, info->member_count);
  out->member_names = put_names(x, info->member_names, info->member_count);
  return NULL;
}

kiln_status *kiln__export_type(kiln__exporter *x, const kiln_type *type, int32_t *out_index) {
  *out_index = -1;
  if (!type) return NULL;
  if (kiln_type_is_tensor(type)) type = kiln_type_basic(KILN_TYPE_TENSOR);
  void *known = kiln_map_find_ptr(&x->type_at, type);
  if (known) {
    *out_index = (int32_t)(uintptr_t)known - 1;
    return NULL;
  }
  if (type->kind == KILN_TYPE_INTERFACE || type->kind == KILN_TYPE_VAR)
    return KILN_ERROR(KILN_UNSUPPORTED, "type " KILN_STR_FMT " has no place in a program",
                      KILN_STR_ARG(type->name));
  kiln__out_type out = {.type = type,
                        .image = {.kind = type->kind, .elem_count = type->elem_count}};
  int32_t *elems = KILN_NEW_ARRAY(x->arena, int32_t, type->elem_count);
  for (int i = 0; i < type->elem_count; i++)
    KILN_TRY(kiln__export_type(x, type->elems[i], &elems[i]));
  out.elems = kiln__export_numbers(x, elems, type->elem_count);
  out.image.name.len = type->name.len;
  if (type->name.len)
    out.name = kiln__image_text(&x->image, kiln_arena_str(x->arena, type->name).data);
  out.names = put_names(x, type->names, type->elem_count);
  if (type->cls) KILN_TRY(put_nominal(x, &out));
  kiln_vec_push(x->arena, &x->types, out);
  kiln_map_set_ptr(&x->type_at, type, (void *)(uintptr_t)x->types.count);
  *out_index = x->types.count - 1;
  return NULL;
}

size_t kiln__export_types_at(kiln__exporter *x) {
  const size_t at = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < x->types.count; i++) KILN__PUT(&x->image, x->types.data[i].image);
  for (int i = 0; i < x->types.count; i++) {
    const kiln__out_type *t = &x->types.data[i];
    const size_t own = at + (size_t)i * sizeof(kiln_aot_type);
    point(x, own + offsetof(kiln_aot_type, elems), t->elems);
    point(x, own + offsetof(kiln_aot_type, name) + offsetof(kiln_str, data), t->name);
    point(x, own + offsetof(kiln_aot_type, names), t->names);
    point(x, own + offsetof(kiln_aot_type, member_names), t->member_names);
    point(x, own + offsetof(kiln_aot_type, members), t->members);
  }
  return at;
}

/* -- Values -- */

static int32_t add(kiln__exporter *x, kiln__out_value value) {
  kiln_vec_push(x->arena, &x->values, value);
  return x->values.count - 1;
}

/* Instances read the memory of their model: by the memory, not by who reads it. */
static int32_t storage_of(kiln__exporter *x, kiln_storage *storage) {
  const void *at = storage->data ? storage->data : storage;
  void *known = kiln_map_find_ptr(&x->storage_at, at);
  if (known) {
    kiln__out_storage *out = &x->storages.data[(uintptr_t)known - 1];
    if (storage->bytes > out->storage->bytes) out->storage = storage; /* it reaches further */
    return (int32_t)(uintptr_t)known - 1;
  }
  kiln_vec_push(x->arena, &x->storages, (kiln__out_storage){.storage = storage});
  kiln_map_set_ptr(&x->storage_at, at, (void *)(uintptr_t)x->storages.count);
  return x->storages.count - 1;
}

static kiln_status *put_tensor(kiln__exporter *x, const kiln_tensor *t, kiln__out_value *out) {
  kiln_aot_strided image = {.key = t->key, .offset = t->offset};
  const int rank = kiln_tensor_rank(t);
  if (t->sides)
    return KILN_ERROR(KILN_UNSUPPORTED,
                      "quantised, sparse and nested tensors have no place in a program yet");
  if (!kiln_tensor_is_undefined(t)) image.storage = storage_of(x, t->storage);
  const size_t dims = kiln__image_put(&x->image, t->dims, 2 * sizeof(int64_t) * (size_t)rank, 8);
  out->target = KILN__PUT(&x->image, image);
  KILN__POINT(&x->image, out->target, kiln_aot_strided, dims, dims);
  return NULL;
}

typedef struct value_walk {
  kiln__exporter *x;
  int depth;
  const char *name; /* of an argument whose tensors are inputs; NULL: none are */
} value_walk;

static kiln_status *put_value(value_walk *w, kiln_ivalue v, int32_t *out_index);

static kiln_status *put_items(value_walk *w, const kiln_ivalue *items, int64_t count, int64_t step,
                              kiln__out_value *out) {
  int32_t *numbers = KILN_NEW_ARRAY(w->x->arena, int32_t, count);
  const char *name = w->name;
  for (int64_t i = 0; i < count; i++) {
    if (name) w->name = kiln_arena_printf(w->x->arena, "%s[%" PRId64 "]", name, i / step);
    KILN_TRY(put_value(w, items[i], &numbers[i]));
  }
  w->name = name;
  out->value.count = count / step;
  out->items = kiln__export_numbers(w->x, numbers, (int)count);
  return NULL;
}

static kiln_status *put_dict(value_walk *w, const kiln_dict *dict, kiln__out_value *out) {
  kiln_ivalue *items = KILN_NEW_ARRAY(w->x->arena, kiln_ivalue, 2 * dict->live), *key, *value;
  int64_t count = 0;
  for (int64_t i = 0; kiln_dict_next(dict, &i, &key, &value); count += 2) {
    if (key->tag == KILN_TAG_TENSOR)
      return KILN_ERROR(KILN_UNSUPPORTED, "a dict with tensors as keys has no place in a program");
    items[count] = *key;
    items[count + 1] = *value;
  }
  KILN_TRY(kiln__export_type(w->x, dict->key_type, &out->value.type));
  KILN_TRY(kiln__export_type(w->x, dict->value_type, &out->value.second));
  int32_t *numbers = KILN_NEW_ARRAY(w->x->arena, int32_t, count);
  const char *name = w->name;
  for (int64_t i = 0; i < count; i++) {
    w->name = i % 2 && name ? kiln_arena_printf(w->x->arena, "%s[%" PRId64 "]", name, i / 2) : NULL;
    KILN_TRY(put_value(w, items[i], &numbers[i]));
  }
  w->name = name;
  out->value.count = count / 2;
  out->items = kiln__export_numbers(w->x, numbers, (int)count);
  return NULL;
}

static kiln_status *fill(value_walk *w, kiln_ivalue v, kiln__out_value *out) {
  kiln__exporter *x = w->x;
  kiln_aot_value *value = &out->value;
  switch (v.tag) {
    case KILN_TAG_NONE: return NULL;
    case KILN_TAG_INT: value->u.i = v.u.i; return NULL;
    case KILN_TAG_FLOAT: value->u.f[0] = v.u.f; return NULL;
    case KILN_TAG_BOOL: value->u.i = v.u.b; return NULL;
    case KILN_TAG_DEVICE:
      value->u.device.kind = v.u.device.kind;
      value->u.device.index = v.u.device.index;
      return NULL;
    case KILN_TAG_FUNCTION:
      value->u.i = kiln__export_callable_number(x, v.u.function);
      return value->u.i >= 0 ? NULL
                             : KILN_ERROR(KILN_UNSUPPORTED,
                                          "function %s as a value has no place "
                                          "in a program",
                                          v.u.function->name);
    case KILN_TAG_TENSOR:
      if (v.u.tensor) return put_tensor(x, v.u.tensor, out);
      value->tag = KILN_AOT_UNSET;
      return NULL;
    case KILN_TAG_STRING:
      value->count = (int64_t)v.u.string->len;
      out->target = kiln__image_put(&x->image, v.u.string->data, v.u.string->len + 1, 8);
      return NULL;
    case KILN_TAG_COMPLEX:
      value->u.f[0] = v.u.complex->re;
      value->u.f[1] = v.u.complex->im;
      return NULL;
    case KILN_TAG_LIST:
      KILN_TRY(kiln__export_type(x, v.u.list->elem_type, &value->type));
      return put_items(w, v.u.list->items, v.u.list->count, 1, out);
    case KILN_TAG_TUPLE:
      KILN_TRY(kiln__export_type(x, v.u.tuple->type, &value->type));
      return put_items(w, v.u.tuple->items, v.u.tuple->count, 1, out);
    case KILN_TAG_DICT: return put_dict(w, v.u.dict, out);
    case KILN_TAG_OBJECT:
      KILN_TRY(kiln__export_type(x, v.u.object->type, &value->type));
      return put_items(w, v.u.object->slots, v.u.object->count, 1, out);
    case KILN_TAG_ENUM:
      KILN_TRY(kiln__export_type(x, v.u.enumerator->type, &value->type));
      value->u.i = v.u.enumerator->member;
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
  return add(x, (kiln__out_value){
                    .value = {.tag = KILN_AOT_INPUT, .type = -1, .second = -1, .u.i = number}});
}

static kiln_status *put_value(value_walk *w, kiln_ivalue v, int32_t *out_index) {
  kiln__exporter *x = w->x;
  const bool is_shared = v.tag >= KILN_TAG__COUNTED && v.u.box && !w->name;
  if (w->name && is_leaf(v)) {
    *out_index = add_input(x, w->name, v);
    return NULL;
  }
  void *known = is_shared ? kiln_map_find_ptr(&x->value_at, v.u.box) : NULL;
  if (known) {
    *out_index = (int32_t)(uintptr_t)known - 1;
    return NULL;
  }
  if (w->depth == DEEPEST)
    return KILN_ERROR(KILN_UNSUPPORTED, "containers more than %d deep have no place in a program",
                      DEEPEST);
  kiln__out_value out = {.value = {.tag = v.tag, .type = -1, .second = -1}};
  w->depth++;
  KILN_TRY(fill(w, v, &out));
  w->depth--;
  *out_index = add(x, out);
  if (is_shared) kiln_map_set_ptr(&x->value_at, v.u.box, (void *)(uintptr_t)x->values.count);
  return NULL;
}

kiln_status *kiln__export_value(kiln__exporter *x, kiln_ivalue v, int32_t *out_index) {
  value_walk w = {.x = x};
  return put_value(&w, v, out_index);
}

size_t kiln__export_values_at(kiln__exporter *x) {
  const size_t at = kiln__image_put(&x->image, "", 0, 8);
  for (int i = 0; i < x->values.count; i++) KILN__PUT(&x->image, x->values.data[i].value);
  for (int i = 0; i < x->values.count; i++) {
    const kiln__out_value *v = &x->values.data[i];
    const size_t own = at + (size_t)i * sizeof(kiln_aot_value);
    point(x, own + offsetof(kiln_aot_value, items), v->items);
    point(x, own + offsetof(kiln_aot_value, u), v->target);
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
  if (v.tag == KILN_TAG_TUPLE) {
    for (int64_t i = 0; i < v.u.tuple->count; i++)
      KILN_TRY(note_outputs(x, v.u.tuple->items[i], depth + 1));
  } else if (v.tag == KILN_TAG_LIST) {
    for (int64_t i = 0; i < v.u.list->count; i++)
      KILN_TRY(note_outputs(x, v.u.list->items[i], depth + 1));
  } else if (v.tag == KILN_TAG_DICT) {
    kiln_ivalue *key, *value;
    for (int64_t i = 0; kiln_dict_next(v.u.dict, &i, &key, &value);)
      KILN_TRY(note_outputs(x, *value, depth + 1));
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
