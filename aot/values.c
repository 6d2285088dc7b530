/* values.c: types and values of a program, each behind what it is made of. */
#include "aot/aot.h"

/* -- Types -- */

static const kiln_type *make_nominal(kiln_aot_model *m, const kiln_aot_type *t) {
  kiln_type *type = kiln_type_nominal(m->table, t->kind, t->name);
  kiln_class_info *info = type->cls;
  info->is_module = t->is_module;
  info->attribute_count = t->slot_count;
  info->attributes = KILN_NEW_ARRAY(m->arena, kiln_class_attribute, t->slot_count);
  info->member_count = t->member_count;
  info->member_names =
      kiln_arena_copy(m->arena, t->member_names, sizeof *t->member_names * (size_t)t->member_count);
  info->member_values = KILN_NEW_ARRAY(m->arena, kiln_ivalue, t->member_count);
  return type;
}

static const kiln_type *make_type(kiln_aot_model *m, const kiln_aot_type *t) {
  const kiln_type **elems = KILN_NEW_ARRAY(m->arena, const kiln_type *, t->elem_count);
  for (int i = 0; i < t->elem_count; i++) elems[i] = m->types[t->elems[i]];
  switch (t->kind) {
    case KILN_TYPE_LIST: return kiln_type_list(m->table, elems[0]);
    case KILN_TYPE_OPTIONAL: return kiln_type_optional(m->table, elems[0]);
    case KILN_TYPE_DICT: return kiln_type_dict(m->table, elems[0], elems[1]);
    case KILN_TYPE_UNION: return kiln_type_union(m->table, elems, t->elem_count);
    case KILN_TYPE_FUTURE:
    case KILN_TYPE_AWAIT:
    case KILN_TYPE_RREF: return kiln_type_wrap(m->table, t->kind, elems[0]);
    case KILN_TYPE_TUPLE:
      return t->names ? kiln_type_named_tuple(m->table, t->name, t->names, elems, t->elem_count)
                      : kiln_type_tuple(m->table, elems, t->elem_count);
    case KILN_TYPE_CLASS:
    case KILN_TYPE_ENUM: return make_nominal(m, t);
    default: return kiln_type_basic(t->kind);
  }
}

kiln_status *kiln__aot_make_types(kiln_aot_model *m) {
  const kiln_aot_program *p = m->program;
  m->types = KILN_NEW_ARRAY(m->arena, const kiln_type *, p->type_count);
  for (int i = 0; i < p->type_count; i++) m->types[i] = make_type(m, &p->types[i]);
  return NULL;
}

/* -- Values -- */

static kiln_status *make_storages(kiln_aot_model *m) {
  const kiln_aot_program *p = m->program;
  m->storages = KILN_NEW_ARRAY(m->arena, kiln_storage *, p->storage_count);
  for (int i = 0; i < p->storage_count; i++) {
    const kiln_aot_storage *s = &p->storages[i];
    const char *base = s->is_there ? m->weights : m->absent;
    KILN_TRY(kiln_storage_wrap(m->env->mem, &m->owner, (void *)(uintptr_t)(base + s->at),
                               (size_t)s->bytes, KILN_STORAGE_READ_ONLY, &m->storages[i]));
  }
  return NULL;
}

static kiln_status *make_tensor(const kiln_aot_model *m, const kiln_aot_strided *t,
                                kiln_ivalue *out) {
  kiln_tensor *tensor;
  const int rank = t->key.f.rank;
  if (t->key.f.undefined) {
    KILN_TRY(kiln_tensor_undefined(m->env->mem, &tensor));
  } else {
    KILN_TRY(kiln_tensor_create_on(m->env->mem, NULL, m->storages[t->storage],
                                   (kiln_dtype)t->key.f.dtype, rank, t->dims, t->dims + rank,
                                   t->offset, &tensor));
    tensor->key = t->key;
  }
  *out = kiln_of_tensor(tensor);
  return NULL;
}

static const kiln_type *type_at(const kiln_aot_model *m, int32_t index) {
  return index < 0 ? NULL : m->types[index];
}

static kiln_status *fill_items(const kiln_aot_model *m, const kiln_aot_value *v,
                               const kiln_ivalue *inputs, kiln_ivalue *items) {
  for (int64_t i = 0; i < v->count; i++) {
    KILN_TRY(kiln__aot_value(m, v->items[i], inputs, &items[i])); /* they are empty yet */
  }
  return NULL;
}

static kiln_status *fill_list(const kiln_aot_model *m, const kiln_aot_value *v,
                              const kiln_ivalue *inputs, kiln_list *list) {
  for (int64_t i = 0; i < v->count; i++) {
    kiln_ivalue item;
    KILN_TRY(kiln__aot_value(m, v->items[i], inputs, &item));
    KILN_TRY(kiln_list_push(list, item));
  }
  return NULL;
}

static kiln_status *fill_dict(const kiln_aot_model *m, const kiln_aot_value *v,
                              const kiln_ivalue *inputs, kiln_dict *dict) {
  for (int64_t i = 0; i < v->count; i++) {
    kiln_ivalue key, value;
    KILN_TRY(kiln__aot_value(m, v->items[2 * i], inputs, &key));
    kiln_status *status = kiln__aot_value(m, v->items[2 * i + 1], inputs, &value);
    if (status) {
      kiln_ivalue_release(key);
      return status;
    }
    KILN_TRY(kiln_dict_set(dict, key, value));
  }
  return NULL;
}

/* A container, empty and then filled; *out is owned also where that fails. */
static kiln_status *make_container(const kiln_aot_model *m, const kiln_aot_value *v,
                                   const kiln_ivalue *inputs, kiln_ivalue *out) {
  kiln_mem *mem = m->env->mem;
  const kiln_type *type = type_at(m, v->type);
  switch (v->tag) {
    case KILN_TAG_LIST: {
      kiln_list *list;
      KILN_TRY(kiln_list_create(mem, type, v->count, &list));
      *out = kiln_of_box(list);
      return fill_list(m, v, inputs, list);
    }
    case KILN_TAG_TUPLE: {
      kiln_tuple *tuple;
      KILN_TRY(kiln_tuple_create(mem, type, v->count, &tuple));
      *out = kiln_of_box(tuple);
      return fill_items(m, v, inputs, tuple->items);
    }
    case KILN_TAG_DICT: {
      kiln_dict *dict;
      KILN_TRY(kiln_dict_create(mem, type, type_at(m, v->second), &dict));
      *out = kiln_of_box(dict);
      return fill_dict(m, v, inputs, dict);
    }
    default: {
      kiln_object *object;
      KILN_TRY(kiln_object_create(mem, type, &object));
      *out = kiln_of_box(object);
      return fill_items(m, v, inputs, object->slots);
    }
  }
}

static kiln_status *make_value(const kiln_aot_model *m, const kiln_aot_value *v,
                               const kiln_ivalue *inputs, kiln_ivalue *out) {
  kiln_mem *mem = m->env->mem;
  kiln_string *string;
  kiln_complex *complex;
  kiln_enum *enumerator;
  switch (v->tag) {
    case KILN_TAG_NONE: *out = kiln_none(); return NULL;
    case KILN_TAG_INT: *out = kiln_int(v->u.i); return NULL;
    case KILN_TAG_FLOAT: *out = kiln_float(v->u.f[0]); return NULL;
    case KILN_TAG_BOOL: *out = kiln_bool(v->u.i != 0); return NULL;
    case KILN_TAG_DEVICE: *out = kiln_device_value(v->u.device); return NULL;
    case KILN_AOT_UNSET: *out = kiln_of_tensor(NULL); return NULL;
    case KILN_AOT_INPUT: *out = kiln_ivalue_retain(inputs[v->u.i]); return NULL;
    case KILN_TAG_FUNCTION:
      *out = (kiln_ivalue){.tag = KILN_TAG_FUNCTION, .u.function = &m->callables[v->u.i].callable};
      return NULL;
    case KILN_TAG_TENSOR: return make_tensor(m, v->u.tensor, out);
    case KILN_TAG_STRING:
      KILN_TRY(kiln_string_create(mem, kiln_str_make(v->u.text, (size_t)v->count), &string));
      *out = kiln_of_box(string);
      return NULL;
    case KILN_TAG_COMPLEX:
      KILN_TRY(kiln_complex_create(mem, v->u.f[0], v->u.f[1], &complex));
      *out = kiln_of_box(complex);
      return NULL;
    case KILN_TAG_ENUM:
      KILN_TRY(kiln_enum_create(mem, type_at(m, v->type), (int)v->u.i, &enumerator));
      *out = kiln_of_box(enumerator);
      return NULL;
    default: break;
  }
  kiln_status *status = make_container(m, v, inputs, out);
  if (!status) return NULL;
  kiln_ivalue_release(*out);
  *out = kiln_none();
  return status;
}

/* Retains what may be a slot that is not set. */
static kiln_ivalue retained(kiln_ivalue v) {
  return v.tag == KILN_TAG_TENSOR && !v.u.tensor ? v : kiln_ivalue_retain(v);
}

kiln_status *kiln__aot_value(const kiln_aot_model *m, int32_t index, const kiln_ivalue *inputs,
                             kiln_ivalue *out) {
  *out = kiln_none();
  if (m->of_call[index]) return make_value(m, &m->program->values[index], inputs, out);
  *out = retained(m->values[index]);
  return NULL;
}

static bool has_input(const kiln_aot_model *m, const kiln_aot_value *v) {
  const int64_t count = v->items ? v->tag == KILN_TAG_DICT ? 2 * v->count : v->count : 0;
  if (v->tag == KILN_AOT_INPUT) return true;
  for (int64_t i = 0; i < count; i++)
    if (m->of_call[v->items[i]]) return true;
  return false;
}

kiln_status *kiln__aot_make_values(kiln_aot_model *m) {
  const kiln_aot_program *p = m->program;
  KILN_TRY(make_storages(m));
  m->values = KILN_NEW_ARRAY(m->arena, kiln_ivalue, p->value_count);
  m->of_call = KILN_NEW_ARRAY(m->arena, bool, p->value_count);
  for (int i = 0; i < p->value_count; i++) {
    m->of_call[i] = has_input(m, &p->values[i]);
    if (!m->of_call[i]) KILN_TRY(make_value(m, &p->values[i], NULL, &m->values[i]));
  }
  for (int i = 0; i < p->type_count; i++) {
    const kiln_aot_type *t = &p->types[i];
    for (int k = 0; k < t->member_count; k++)
      m->types[i]->cls->member_values[k] = m->values[t->members[k]]; /* borrowed */
  }
  return NULL;
}

void kiln__aot_drop_values(kiln_aot_model *m) {
  for (int i = m->values ? m->program->value_count : 0; i-- > 0;) {
    const kiln_ivalue v = m->values[i];
    if (v.tag != KILN_TAG_TENSOR || v.u.tensor) kiln_ivalue_release(v);
  }
  for (int i = 0; m->storages && i < m->program->storage_count; i++)
    if (m->storages[i]) kiln_storage_release(m->storages[i]);
}
