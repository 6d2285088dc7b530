/* pickle_check.c: looks at what has been read as a whole: no cycles, not too deep, nothing left
 * that is no value, every object filled; element types. */
#include "frontend/pickle_machine.h"

/* -- The graph of values -- */

/* The map says of each container: open (on the path from the root) or done with its height. */
typedef struct walk {
  kiln_pickle *p;
  kiln_map seen;
} walk;

enum { OPEN = 1, DONE = 2 };

static kiln_status *visit(walk *w, kiln_ivalue v, int depth);

/* `type`, when it is known, is what every item is declared to be. */
static kiln_status *visit_item(walk *w, kiln_ivalue item, const kiln_type *type, int depth) {
  KILN_TRY(visit(w, item, depth + 1));
  /* A program may ask what this is; it must not be two things. */
  if (type && type->kind == KILN_TYPE_ANY) (void)kiln_pickle_settle_types(w->p->types, item);
  if (type && !kiln_ivalue_matches(item, type)) {
    kiln_text text = kiln_text_in(w->p->arena);
    kiln_type_print_annotation(&text, type);
    return KILN_ERROR(KILN_INVALID_FILE, "%s.pkl: a value is not of its declared type %s",
                      w->p->name, text.data);
  }
  return NULL;
}

static bool is_pending(const kiln_pickle *p, const kiln_object *object) {
  return kiln_map_find_ptr(&p->pending_objects, object) != NULL;
}

static kiln_status *visit_object(walk *w, kiln_object *object, int depth) {
  const kiln_class_info *cls = object->type->cls;
  if (is_pending(w->p, object)) return NULL;
  for (int i = 0; i < cls->attribute_count; i++) {
    kiln_ivalue slot = object->slots[i];
    if (slot.tag == KILN_TAG_TENSOR && !slot.u.tensor) {
      return KILN_ERROR(KILN_INVALID_FILE, "%s.pkl: an object of " KILN_STR_FMT " has no state",
                        w->p->name, KILN_STR_ARG(object->type->name));
    }
  }
  for (int i = 0; i < cls->attribute_count; i++) {
    const kiln_class_attribute *attribute = &cls->attributes[i];
    KILN_TRY(kiln_pickle_restore_types(w->p->mem, &object->slots[i], attribute->type));
    KILN_TRY_NOTE(visit_item(w, object->slots[i], attribute->type, depth),
                  "attribute '" KILN_STR_FMT "' of " KILN_STR_FMT, KILN_STR_ARG(attribute->name),
                  KILN_STR_ARG(object->type->name));
  }
  return NULL;
}

static kiln_status *visit_contents(walk *w, kiln_ivalue v, int depth) {
  if (v.tag == KILN_TAG_OBJECT) return visit_object(w, v.u.object, depth);
  if (v.tag == KILN_TAG_LIST) {
    const kiln_list *list = v.u.list;
    for (int64_t i = 0; i < list->count; i++) {
      KILN_TRY(visit_item(w, list->items[i], list->elem_type, depth));
    }
    return NULL;
  }
  if (v.tag == KILN_TAG_TUPLE) {
    const kiln_tuple *tuple = v.u.tuple;
    for (int64_t i = 0; i < tuple->count; i++) {
      KILN_TRY(visit_item(w, tuple->items[i], tuple->type ? tuple->type->elems[i] : NULL, depth));
    }
    return NULL;
  }
  const kiln_dict *dict = v.u.dict;
  int64_t index = 0;
  kiln_ivalue *key, *value;
  while (kiln_dict_next(dict, &index, &key, &value)) {
    KILN_TRY(visit_item(w, *key, dict->key_type, depth));
    KILN_TRY(visit_item(w, *value, dict->value_type, depth));
  }
  return NULL;
}

static kiln_status *visit(walk *w, kiln_ivalue v, int depth) {
  if (v.tag == KILN_TAG_OTHER) {
    return KILN_ERROR(KILN_INVALID_FILE, "%s.pkl: a function or storage where a value is expected",
                      w->p->name);
  }
  bool container = v.tag == KILN_TAG_LIST || v.tag == KILN_TAG_TUPLE || v.tag == KILN_TAG_DICT ||
                   v.tag == KILN_TAG_OBJECT;
  if (!container) return NULL;
  if (depth > KILN_PICKLE_MAX_DEPTH) {
    return KILN_ERROR(KILN_INVALID_FILE, "%s.pkl: values are nested deeper than %d", w->p->name,
                      KILN_PICKLE_MAX_DEPTH);
  }
  uintptr_t state = (uintptr_t)kiln_map_find_ptr(&w->seen, v.u.box);
  if (state == OPEN) {
    return KILN_ERROR(KILN_INVALID_FILE, "%s.pkl: a value contains itself", w->p->name);
  }
  if (state == DONE) return NULL;
  kiln_map_set_ptr(&w->seen, v.u.box, (void *)(uintptr_t)OPEN);
  KILN_TRY(visit_contents(w, v, depth));
  kiln_map_set_ptr(&w->seen, v.u.box, (void *)(uintptr_t)DONE);
  return NULL;
}

kiln_status *kiln__pickle_check(kiln_pickle *p) {
  walk w = {.p = p};
  w.seen = kiln_map_in(p->arena);
  KILN_TRY(visit(&w, p->result, 0));
  for (size_t i = 0; i < p->pending.count; i++) KILN_TRY(visit(&w, p->pending.data[i], 0));
  /* Mark what the result does not reach, for kiln__pickle_dismantle. */
  size_t kept = 0;
  for (size_t i = 0; i < p->made.count; i++) {
    kiln_ivalue v = p->made.data[i];
    if (!kiln_map_find_ptr(&w.seen, v.u.box)) {
      p->made.data[i] = p->made.data[kept];
      p->made.data[kept++] = v;
    }
  }
  p->unreached = kept;
  return NULL;
}

void kiln__pickle_dismantle(kiln_pickle *p) {
  for (size_t i = 0; i < p->unreached && i < p->made.count; i++) {
    kiln_container_empty(p->made.data[i]);
  }
}

/* -- Element types -- */

static kiln_status *restore_items(kiln_mem *mem, kiln_ivalue *items, int64_t count,
                                  const kiln_type *type) {
  for (int64_t i = 0; i < count; i++) KILN_TRY(kiln_pickle_restore_types(mem, &items[i], type));
  return NULL;
}

kiln_status *kiln_pickle_restore_types(kiln_mem *mem, kiln_ivalue *value, const kiln_type *type) {
  if (type->kind == KILN_TYPE_OPTIONAL) {
    return value->tag == KILN_TAG_NONE ? NULL
                                       : kiln_pickle_restore_types(mem, value, type->elems[0]);
  }
  for (int i = 0; type->kind == KILN_TYPE_UNION && i < type->elem_count; i++) {
    if (!kiln_ivalue_matches(*value, type->elems[i])) continue;
    return kiln_pickle_restore_types(mem, value, type->elems[i]);
  }
  switch ((kiln_tag)value->tag) {
    case KILN_TAG_NONE:
      if (kiln_type_is_tensor(type)) {
        kiln_tensor *tensor = NULL;
        KILN_TRY(kiln_tensor_undefined(mem, &tensor));
        *value = kiln_of_tensor(tensor);
      }
      return NULL;
    case KILN_TAG_LIST:
      if (type->kind != KILN_TYPE_LIST || value->u.list->elem_type) return NULL;
      value->u.list->elem_type = type->elems[0];
      return restore_items(mem, value->u.list->items, value->u.list->count, type->elems[0]);
    case KILN_TAG_TUPLE:
      if (type->kind != KILN_TYPE_TUPLE || type->elem_count != value->u.tuple->count) return NULL;
      if (value->u.tuple->type) return NULL;
      value->u.tuple->type = type;
      for (int i = 0; i < type->elem_count; i++) {
        KILN_TRY(kiln_pickle_restore_types(mem, &value->u.tuple->items[i], type->elems[i]));
      }
      return NULL;
    case KILN_TAG_DICT: {
      if (type->kind != KILN_TYPE_DICT) return NULL;
      kiln_dict *dict = value->u.dict;
      if (dict->key_type) return NULL; /* what knows its type has been here */
      dict->key_type = type->elems[0];
      dict->value_type = type->elems[1];
      int64_t index = 0;
      kiln_ivalue *key, *item;
      while (kiln_dict_next(dict, &index, &key, &item)) {
        KILN_TRY(kiln_pickle_restore_types(mem, item, type->elems[1]));
      }
      return NULL;
    }
    default: return NULL;
  }
}

static const kiln_type *common(const kiln_type *a, const kiln_type *b) {
  if (!a || a == b) return b;
  return kiln_type_basic(KILN_TYPE_ANY);
}

/* `empty`: what has no elements gets a type too, that of a bare [] or {}. */
static const kiln_type *infer(kiln_type_table *types, kiln_ivalue v, bool empty);

static const kiln_type *infer_list(kiln_type_table *types, kiln_list *list, bool empty) {
  const kiln_type *elem = empty && list->count == 0 ? kiln_type_basic(KILN_TYPE_TENSOR) : NULL;
  for (int64_t i = 0; !list->elem_type && i < list->count; i++) {
    elem = common(elem, infer(types, list->items[i], empty));
  }
  if (!list->elem_type) list->elem_type = elem;
  elem = list->elem_type ? list->elem_type : kiln_type_basic(KILN_TYPE_ANY);
  return kiln_type_list(types, elem);
}

static const kiln_type *infer_dict(kiln_type_table *types, kiln_dict *dict, bool empty) {
  const kiln_type *key_type = NULL, *value_type = NULL;
  int64_t index = 0;
  kiln_ivalue *key, *value;
  if (empty && dict->live == 0) {
    key_type = kiln_type_basic(KILN_TYPE_STR);
    value_type = kiln_type_basic(KILN_TYPE_TENSOR);
  }
  while (!dict->key_type && kiln_dict_next(dict, &index, &key, &value)) {
    key_type = common(key_type, infer(types, *key, empty));
    value_type = common(value_type, infer(types, *value, empty));
  }
  if (!dict->key_type) {
    dict->key_type = key_type;
    dict->value_type = value_type;
  }
  const kiln_type *any = kiln_type_basic(KILN_TYPE_ANY);
  return kiln_type_dict(types, dict->key_type ? dict->key_type : any,
                        dict->value_type ? dict->value_type : any);
}

static const kiln_type *infer_tuple(kiln_type_table *types, kiln_tuple *tuple, bool empty) {
  kiln_type_room room;
  const kiln_type **elems = kiln_type_room_open(&room, types, tuple->count);
  for (int64_t i = 0; !tuple->type && i < tuple->count; i++) {
    elems[i] = infer(types, tuple->items[i], empty);
  }
  if (!tuple->type) tuple->type = kiln_type_tuple(types, elems, (int)tuple->count);
  kiln_type_room_close(&room);
  return tuple->type;
}

static const kiln_type *infer(kiln_type_table *types, kiln_ivalue v, bool empty) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_LIST: return infer_list(types, v.u.list, empty);
    case KILN_TAG_TUPLE: return infer_tuple(types, v.u.tuple, empty);
    case KILN_TAG_DICT: return infer_dict(types, v.u.dict, empty);
    case KILN_TAG_TENSOR: return kiln_type_basic(KILN_TYPE_TENSOR);
    default: return kiln_type_unshaped(types, kiln_ivalue_type(types, v));
  }
}

const kiln_type *kiln_pickle_infer_types(kiln_type_table *types, kiln_ivalue v) {
  return infer(types, v, false);
}

const kiln_type *kiln_pickle_settle_types(kiln_type_table *types, kiln_ivalue v) {
  return infer(types, v, true);
}
