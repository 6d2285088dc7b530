/* pickle_write.c: torch's C++ pickler (torch/csrc/jit/serialization/pickler.cpp).
 *
 * What may be reached twice is memoised after it is complete: PyTorch's reader makes an object when
 * it meets BUILD, a typed container when it meets REDUCE. Cycles are met as endless depth, and
 * refused. */
#include "frontend/torchscript/pickle_write.h"

static kiln_status *put_value(kiln_pickle_writer *w, kiln_ivalue v, const kiln_type *declared,
                              int depth);

/* -- Containers -- */

/* The string and the call that end a restore_type_tag: "Dict[str, Tensor]". */
static void put_type_tag(kiln_pickle_writer *w, const char *outer, const kiln_type *a,
                         const kiln_type *b) {
  kiln_text name = kiln_text_in(w->out.arena);
  kiln_text_printf(&name, "%s[", outer);
  kiln_type_print_annotation(&name, a);
  if (b) kiln_text_puts(&name, ", ");
  if (b) kiln_type_print_annotation(&name, b);
  kiln_text_putc(&name, ']');
  kiln__pickle_put_string(&w->out, kiln_text_str(&name));
  kiln_text_puts(&w->out.text, "\x86R");
}

static const char *list_builder(const kiln_type *elem) {
  switch (elem->kind) {
    case KILN_TYPE_INT: return "torch.jit._pickle\nbuild_intlist";
    case KILN_TYPE_FLOAT: return "torch.jit._pickle\nbuild_doublelist";
    case KILN_TYPE_BOOL: return "torch.jit._pickle\nbuild_boollist";
    case KILN_TYPE_TENSOR: return "torch.jit._pickle\nbuild_tensorlist";
    default: return NULL;
  }
}

static kiln_status *put_list(kiln_pickle_writer *w, const kiln_list *list,
                             const kiln_type *declared, int depth) {
  if (kiln__pickle_put_from_memo(&w->out, list)) return NULL;
  const kiln_type *elem = list->elem_type;
  if (!elem && declared && declared->kind == KILN_TYPE_LIST) elem = declared->elems[0];
  if (!elem) elem = kiln_type_basic(KILN_TYPE_TENSOR); /* as an empty list is in TorchScript */
  const char *builder = list_builder(elem);
  kiln__pickle_put_global(&w->out, builder ? builder : "torch.jit._pickle\nrestore_type_tag");
  kiln_text_puts(&w->out.text, "](");
  for (int64_t i = 0; i < list->count; i++) {
    KILN_TRY(put_value(w, list->items[i], elem, depth + 1));
  }
  kiln__pickle_put_byte(&w->out, 'e');
  if (builder) {
    kiln_text_puts(&w->out.text, "\x85R");
  } else {
    put_type_tag(w, "List", elem, NULL);
  }
  kiln__pickle_put_memo(&w->out, list);
  return NULL;
}

static kiln_status *put_dict(kiln_pickle_writer *w, const kiln_dict *dict,
                             const kiln_type *declared, int depth) {
  if (kiln__pickle_put_from_memo(&w->out, dict)) return NULL;
  const kiln_type *key_type = dict->key_type, *value_type = dict->value_type;
  bool told = declared && declared->kind == KILN_TYPE_DICT;
  if (!key_type) key_type = told ? declared->elems[0] : kiln_type_basic(KILN_TYPE_STR);
  if (!value_type) value_type = told ? declared->elems[1] : kiln_type_basic(KILN_TYPE_TENSOR);
  kiln__pickle_put_global(&w->out, "torch.jit._pickle\nrestore_type_tag");
  kiln_text_puts(&w->out.text, "}(");
  int64_t index = 0;
  kiln_ivalue *key, *value;
  while (kiln_dict_next(dict, &index, &key, &value)) {
    KILN_TRY(put_value(w, *key, key_type, depth + 1));
    KILN_TRY(put_value(w, *value, value_type, depth + 1));
  }
  kiln__pickle_put_byte(&w->out, 'u');
  put_type_tag(w, "Dict", key_type, value_type);
  kiln__pickle_put_memo(&w->out, dict);
  return NULL;
}

static kiln_status *put_tuple(kiln_pickle_writer *w, const kiln_tuple *tuple,
                              const kiln_type *declared, int depth) {
  if (kiln__pickle_put_from_memo(&w->out, tuple)) return NULL;
  bool told = declared && declared->kind == KILN_TYPE_TUPLE && declared->elem_count == tuple->count;
  kiln__pickle_put_byte(&w->out, '(');
  for (int64_t i = 0; i < tuple->count; i++) {
    KILN_TRY(put_value(w, tuple->items[i], told ? declared->elems[i] : NULL, depth + 1));
  }
  kiln__pickle_put_byte(&w->out, 't');
  kiln__pickle_put_memo(&w->out, tuple);
  return NULL;
}

/* -- Objects -- */

/* "__torch__.m.C" as module and name. */
static void put_class(kiln_pickle_writer *w, kiln_str qualname) {
  size_t dot = kiln_str_behind_last(qualname, '.');
  kiln__pickle_put_byte(&w->out, 'c');
  kiln_text_put(&w->out.text, kiln_str_make(qualname.data, dot > 0 ? dot - 1 : 0));
  kiln__pickle_put_byte(&w->out, '\n');
  kiln_text_put(&w->out.text, kiln_str_without(qualname, dot));
  kiln__pickle_put_byte(&w->out, '\n');
}

static bool has_state_methods(const kiln_type *type) {
  return kiln_class_find_method(type, KILN_STR("__getstate__")) &&
         kiln_class_find_method(type, KILN_STR("__setstate__"));
}

static kiln_status *put_state(kiln_pickle_writer *w, kiln_object *object, int depth) {
  const kiln_torchscript_save_options *o = w->options;
  if (!o->get_state) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "an object of " KILN_STR_FMT " cannot be saved without running its "
                      "__getstate__",
                      KILN_STR_ARG(object->type->name));
  }
  kiln_vec_reserve(w->out.arena, &w->out.held, w->out.held.count + 1);
  kiln_ivalue state = kiln_none();
  KILN_TRY(o->get_state(o->user, kiln_of_box(object), &state));
  w->out.held.data[w->out.held.count++] = state;
  const kiln_function *set = kiln_class_find_method(object->type, KILN_STR("__setstate__"));
  const kiln_schema *schema = set->schema;
  return put_value(w, state, schema && schema->arg_count > 1 ? schema->args[1].type : NULL,
                   depth + 1);
}

static kiln_status *put_attributes(kiln_pickle_writer *w, const kiln_object *object, int depth) {
  const kiln_class_info *cls = object->type->cls;
  kiln_text_puts(&w->out.text, "}(");
  for (int i = 0; i < cls->attribute_count; i++) {
    const kiln_class_attribute *a = &cls->attributes[i];
    kiln_ivalue v = object->slots[i];
    if (v.tag == KILN_TAG_TENSOR && !v.u.tensor) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT,
                        "attribute '" KILN_STR_FMT "' of an object of " KILN_STR_FMT " is not set",
                        KILN_STR_ARG(a->name), KILN_STR_ARG(object->type->name));
    }
    kiln__pickle_put_string(&w->out, a->name);
    KILN_TRY_NOTE(put_value(w, v, a->type, depth + 1), "in attribute '" KILN_STR_FMT "'",
                  KILN_STR_ARG(a->name));
  }
  kiln__pickle_put_byte(&w->out, 'u');
  return NULL;
}

static kiln_status *put_object(kiln_pickle_writer *w, kiln_object *object, int depth) {
  if (kiln__pickle_put_from_memo(&w->out, object)) return NULL;
  put_class(w, object->type->cls->qualname);
  kiln_text_puts(&w->out.text, ")\x81");
  KILN_TRY(has_state_methods(object->type) ? put_state(w, object, depth)
                                           : put_attributes(w, object, depth));
  kiln__pickle_put_byte(&w->out, 'b');
  kiln__pickle_put_memo(&w->out, object);
  return NULL;
}

/* -- Other values -- */

static void put_device(kiln_pickle_writer *w, kiln_device_id device) {
  kiln_text name = kiln_text_in(w->out.arena);
  kiln_device_print(&name, device);
  kiln__pickle_put_global(&w->out, "torch\ndevice");
  kiln__pickle_put_string(&w->out, kiln_str_from(name.data));
  kiln_text_puts(&w->out.text, "\x85R");
}

static kiln_status *put_enum(kiln_pickle_writer *w, const kiln_enum *e, int depth) {
  put_class(w, e->type->cls->qualname);
  KILN_TRY(put_value(w, e->type->cls->member_values[e->member], NULL, depth + 1));
  kiln__pickle_put_byte(&w->out, 'R');
  return NULL;
}

static kiln_status *put_value(kiln_pickle_writer *w, kiln_ivalue v, const kiln_type *declared,
                              int depth) {
  KILN_TRY(kiln__pickle_check_depth(depth));
  if (declared && declared->kind == KILN_TYPE_OPTIONAL) declared = declared->elems[0];
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_DEVICE: put_device(w, v.u.device); return NULL;
    case KILN_TAG_TENSOR: return kiln__pickle_put_tensor(&w->out, v.u.tensor);
    case KILN_TAG_LIST: return put_list(w, v.u.list, declared, depth);
    case KILN_TAG_TUPLE: return put_tuple(w, v.u.tuple, declared, depth);
    case KILN_TAG_DICT: return put_dict(w, v.u.dict, declared, depth);
    case KILN_TAG_OBJECT: return put_object(w, v.u.object, depth);
    case KILN_TAG_ENUM: return put_enum(w, v.u.enumerator, depth);
    default: return kiln__pickle_put_leaf(&w->out, v);
  }
}

kiln_status *kiln__pickle_write(kiln_pickle_writer *w, kiln_arena *arena, kiln_ivalue value) {
  kiln__pickle_out_begin(&w->out, arena, true);
  KILN_TRY(put_value(w, value, NULL, 0));
  kiln__pickle_put_byte(&w->out, '.');
  return NULL;
}
