/* pickle_write.c: torch's C++ pickler (torch/csrc/jit/serialization/pickler.cpp).
 *
 * What may be reached twice is memoised after it is complete: PyTorch's reader makes an object when
 * it meets BUILD, a typed container when it meets REDUCE. Cycles are met as endless depth, and
 * refused. */
#include "frontend/torchscript/pickle_write.h"

#include "frontend/pickle.h"

enum { MAX_DEPTH = KILN_PICKLE_MAX_DEPTH };

static kiln_status *put_value(kiln_pickle_writer *w, kiln_ivalue v, const kiln_type *declared,
                              int depth);

/* -- Opcodes -- */

static void put_u8(kiln_pickle_writer *w, unsigned value) { kiln_text_putc(&w->out, (char)value); }

static void put_number(kiln_pickle_writer *w, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) put_u8(w, (unsigned)(value >> (8 * i)) & 0xff);
}

static void put_string(kiln_pickle_writer *w, kiln_str text) {
  put_u8(w, 'X');
  put_number(w, text.len, 4);
  kiln_text_put(&w->out, text);
}

static void put_int(kiln_pickle_writer *w, int64_t value) {
  if (value >= 0 && value <= UINT8_MAX) {
    put_u8(w, 'K');
    put_number(w, (uint64_t)value, 1);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    put_u8(w, 'J');
    put_number(w, (uint64_t)value, 4);
  } else {
    put_u8(w, 0x8a);
    put_u8(w, 8);
    put_number(w, (uint64_t)value, 8);
  }
}

static void put_double(kiln_pickle_writer *w, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_u8(w, 'G');
  for (int i = 7; i >= 0; i--) put_u8(w, (unsigned)(bits >> (8 * i)) & 0xff);
}

static void put_bool(kiln_pickle_writer *w, bool value) { put_u8(w, value ? 0x88 : 0x89); }

/* "torch._utils\n_rebuild_tensor_v2". */
static void put_global(kiln_pickle_writer *w, const char *module_and_name) {
  put_u8(w, 'c');
  kiln_text_puts(&w->out, module_and_name);
  put_u8(w, '\n');
}

/* "__torch__.m.C" as module and name. */
static void put_class(kiln_pickle_writer *w, kiln_str qualname) {
  size_t dot = qualname.len;
  while (dot > 0 && qualname.data[dot - 1] != '.') dot--;
  put_u8(w, 'c');
  kiln_text_put(&w->out, kiln_str_make(qualname.data, dot > 0 ? dot - 1 : 0));
  put_u8(w, '\n');
  kiln_text_put(&w->out, kiln_str_make(qualname.data + dot, qualname.len - dot));
  put_u8(w, '\n');
}

/* -- The memo -- */

static void put_memo(kiln_pickle_writer *w, const void *address) {
  uint32_t index = w->memo_count++;
  put_u8(w, index <= UINT8_MAX ? 'q' : 'r');
  put_number(w, index, index <= UINT8_MAX ? 1 : 4);
  kiln_map_set_ptr(&w->memo, address, (void *)(uintptr_t)(index + 1));
}

static bool put_from_memo(kiln_pickle_writer *w, const void *address) {
  uintptr_t found = (uintptr_t)kiln_map_find_ptr(&w->memo, address);
  if (!found) return false;
  uint64_t index = found - 1;
  put_u8(w, index <= UINT8_MAX ? 'h' : 'j');
  put_number(w, index, index <= UINT8_MAX ? 1 : 4);
  return true;
}

/* -- Tensors -- */

static const char *storage_type(kiln_dtype dtype) {
  switch (dtype) {
#define TYPE(id, number, size, storage, python, short_name) \
  case KILN_DTYPE_##id: return "torch\n" storage "Storage";
    KILN_DTYPE_LIST(TYPE)
#undef TYPE
    default: return NULL;
  }
}

/* PyTorch's reader makes a storage for each persistent id that it meets, so a storage that is there
 * already comes from the memo. Its dtype belongs to it: views of another dtype get a copy. */
static void put_storage(kiln_pickle_writer *w, kiln_storage *storage, kiln_dtype dtype) {
  const void *key = (const void *)((uintptr_t)storage ^ ((uintptr_t)(dtype + 1) << 56));
  if (put_from_memo(w, key)) return;
  const char *number = kiln_arena_printf(w->arena, "%d", w->order.count);
  kiln_vec_push(w->arena, &w->order, storage);
  put_u8(w, '(');
  put_string(w, KILN_STR("storage"));
  put_global(w, storage_type(dtype));
  put_string(w, kiln_str_from(number));
  put_string(w, KILN_STR("cpu"));
  put_int(w, (int64_t)(storage->bytes / kiln_dtype_size(dtype)));
  kiln_text_puts(&w->out, "tQ");
  put_memo(w, key);
}

static void put_dims(kiln_pickle_writer *w, const int64_t *dims, int rank) {
  put_u8(w, '(');
  for (int i = 0; i < rank; i++) put_int(w, dims[i]);
  put_u8(w, 't');
}

static kiln_status *put_tensor(kiln_pickle_writer *w, kiln_tensor *tensor) {
  if (put_from_memo(w, tensor)) return NULL;
  kiln_dtype dtype = kiln_tensor_dtype(tensor);
  if (kiln_tensor_is_undefined(tensor) || !tensor->storage) {
    put_u8(w, 'N');
    return NULL;
  }
  if (!storage_type(dtype) || (dtype >= KILN_DTYPE_QI8 && dtype <= KILN_DTYPE_QI32) ||
      tensor->key.f.device_kind != KILN_DEVICE_CPU) {
    return KILN_ERROR(KILN_UNSUPPORTED, "a tensor of dtype %s on device %d cannot be saved",
                      kiln_dtype_name(dtype), tensor->key.f.device_kind);
  }
  put_global(w, "torch._utils\n_rebuild_tensor_v2");
  put_u8(w, '(');
  put_storage(w, tensor->storage, dtype);
  put_int(w, tensor->offset);
  put_dims(w, kiln_tensor_sizes(tensor), kiln_tensor_rank(tensor));
  put_dims(w, kiln_tensor_strides(tensor), kiln_tensor_rank(tensor));
  put_bool(w, tensor->key.f.requires_grad);
  put_global(w, "collections\nOrderedDict");
  kiln_text_puts(&w->out, ")RtR");
  put_memo(w, tensor);
  return NULL;
}

/* -- Containers -- */

/* The string and the call that end a restore_type_tag: "Dict[str, Tensor]". */
static void put_type_tag(kiln_pickle_writer *w, const char *outer, const kiln_type *a,
                         const kiln_type *b) {
  kiln_text name;
  kiln_text_init(&name, w->arena);
  kiln_text_printf(&name, "%s[", outer);
  kiln_type_print_annotation(&name, a);
  if (b) kiln_text_puts(&name, ", ");
  if (b) kiln_type_print_annotation(&name, b);
  kiln_text_putc(&name, ']');
  put_string(w, kiln_text_str(&name));
  kiln_text_puts(&w->out, "\x86R");
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
  if (put_from_memo(w, list)) return NULL;
  const kiln_type *elem = list->elem_type;
  if (!elem && declared && declared->kind == KILN_TYPE_LIST) elem = declared->elems[0];
  if (!elem) elem = kiln_type_basic(KILN_TYPE_TENSOR); /* as an empty list is in TorchScript */
  const char *builder = list_builder(elem);
  put_global(w, builder ? builder : "torch.jit._pickle\nrestore_type_tag");
  kiln_text_puts(&w->out, "](");
  for (int64_t i = 0; i < list->count; i++) {
    KILN_TRY(put_value(w, list->items[i], elem, depth + 1));
  }
  put_u8(w, 'e');
  if (builder) {
    kiln_text_puts(&w->out, "\x85R");
  } else {
    put_type_tag(w, "List", elem, NULL);
  }
  put_memo(w, list);
  return NULL;
}

static kiln_status *put_dict(kiln_pickle_writer *w, const kiln_dict *dict,
                             const kiln_type *declared, int depth) {
  if (put_from_memo(w, dict)) return NULL;
  const kiln_type *key_type = dict->key_type, *value_type = dict->value_type;
  bool told = declared && declared->kind == KILN_TYPE_DICT;
  if (!key_type) key_type = told ? declared->elems[0] : kiln_type_basic(KILN_TYPE_STR);
  if (!value_type) value_type = told ? declared->elems[1] : kiln_type_basic(KILN_TYPE_TENSOR);
  put_global(w, "torch.jit._pickle\nrestore_type_tag");
  kiln_text_puts(&w->out, "}(");
  int64_t index = 0;
  kiln_ivalue *key, *value;
  while (kiln_dict_next(dict, &index, &key, &value)) {
    KILN_TRY(put_value(w, *key, key_type, depth + 1));
    KILN_TRY(put_value(w, *value, value_type, depth + 1));
  }
  put_u8(w, 'u');
  put_type_tag(w, "Dict", key_type, value_type);
  put_memo(w, dict);
  return NULL;
}

static kiln_status *put_tuple(kiln_pickle_writer *w, const kiln_tuple *tuple,
                              const kiln_type *declared, int depth) {
  if (put_from_memo(w, tuple)) return NULL;
  bool told = declared && declared->kind == KILN_TYPE_TUPLE && declared->elem_count == tuple->count;
  put_u8(w, '(');
  for (int64_t i = 0; i < tuple->count; i++) {
    KILN_TRY(put_value(w, tuple->items[i], told ? declared->elems[i] : NULL, depth + 1));
  }
  put_u8(w, 't');
  put_memo(w, tuple);
  return NULL;
}

/* -- Objects -- */

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
  kiln_vec_reserve(w->arena, &w->states, w->states.count + 1);
  kiln_ivalue state = kiln_none();
  KILN_TRY(o->get_state(o->user, kiln_of_box(object), &state));
  w->states.data[w->states.count++] = state;
  const kiln_function *set = kiln_class_find_method(object->type, KILN_STR("__setstate__"));
  const kiln_schema *schema = set->schema;
  return put_value(w, state, schema && schema->arg_count > 1 ? schema->args[1].type : NULL,
                   depth + 1);
}

static kiln_status *put_attributes(kiln_pickle_writer *w, const kiln_object *object, int depth) {
  const kiln_class_info *cls = object->type->cls;
  kiln_text_puts(&w->out, "}(");
  for (int i = 0; i < cls->attribute_count; i++) {
    const kiln_class_attribute *a = &cls->attributes[i];
    kiln_ivalue v = object->slots[i];
    if (v.tag == KILN_TAG_TENSOR && !v.u.tensor) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT,
                        "attribute '" KILN_STR_FMT "' of an object of " KILN_STR_FMT " is not set",
                        KILN_STR_ARG(a->name), KILN_STR_ARG(object->type->name));
    }
    put_string(w, a->name);
    KILN_TRY_NOTE(put_value(w, v, a->type, depth + 1), "in attribute '" KILN_STR_FMT "'",
                  KILN_STR_ARG(a->name));
  }
  put_u8(w, 'u');
  return NULL;
}

static kiln_status *put_object(kiln_pickle_writer *w, kiln_object *object, int depth) {
  if (put_from_memo(w, object)) return NULL;
  put_class(w, object->type->cls->qualname);
  kiln_text_puts(&w->out, ")\x81");
  KILN_TRY(has_state_methods(object->type) ? put_state(w, object, depth)
                                           : put_attributes(w, object, depth));
  put_u8(w, 'b');
  put_memo(w, object);
  return NULL;
}

/* -- Other values -- */

static void put_device(kiln_pickle_writer *w, kiln_device device) {
  static const char *const names[] = {"cpu", "cuda", "meta"};
  const char *name = names[device.kind];
  if (device.index >= 0) name = kiln_arena_printf(w->arena, "%s:%d", name, device.index);
  put_global(w, "torch\ndevice");
  put_string(w, kiln_str_from(name));
  kiln_text_puts(&w->out, "\x85R");
}

static kiln_status *put_enum(kiln_pickle_writer *w, const kiln_enum *e, int depth) {
  put_class(w, e->type->cls->qualname);
  KILN_TRY(put_value(w, e->type->cls->member_values[e->member], NULL, depth + 1));
  put_u8(w, 'R');
  return NULL;
}

static kiln_status *put_value(kiln_pickle_writer *w, kiln_ivalue v, const kiln_type *declared,
                              int depth) {
  if (depth > MAX_DEPTH) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "values nested deeper than %d cannot be saved",
                      MAX_DEPTH);
  }
  if (declared && declared->kind == KILN_TYPE_OPTIONAL) declared = declared->elems[0];
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: put_u8(w, 'N'); return NULL;
    case KILN_TAG_INT: put_int(w, v.u.i); return NULL;
    case KILN_TAG_FLOAT: put_double(w, v.u.f); return NULL;
    case KILN_TAG_BOOL: put_bool(w, v.u.i != 0); return NULL;
    case KILN_TAG_DEVICE: put_device(w, v.u.device); return NULL;
    case KILN_TAG_TENSOR: return put_tensor(w, v.u.tensor);
    case KILN_TAG_STRING:
      if (v.u.string->len > UINT32_MAX) break;
      put_string(w, kiln_string_view(v.u.string));
      return NULL;
    case KILN_TAG_COMPLEX:
      put_global(w, "builtins\ncomplex");
      put_double(w, v.u.complex->re);
      put_double(w, v.u.complex->im);
      kiln_text_puts(&w->out, "\x86R");
      return NULL;
    case KILN_TAG_LIST: return put_list(w, v.u.list, declared, depth);
    case KILN_TAG_TUPLE: return put_tuple(w, v.u.tuple, declared, depth);
    case KILN_TAG_DICT: return put_dict(w, v.u.dict, declared, depth);
    case KILN_TAG_OBJECT: return put_object(w, v.u.object, depth);
    case KILN_TAG_ENUM: return put_enum(w, v.u.enumerator, depth);
    default: break;
  }
  kiln_text name;
  kiln_text_init(&name, w->arena);
  kiln_ivalue_type_name(&name, v);
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "a value of type %s cannot be saved", name.data);
}

kiln_status *kiln__pickle_write(kiln_pickle_writer *w, kiln_ivalue value) {
  kiln_text_init(&w->out, w->arena);
  kiln_map_init(&w->memo, w->arena);
  kiln_text_puts(&w->out, "\x80\x02");
  KILN_TRY(put_value(w, value, NULL, 0));
  put_u8(w, '.');
  return NULL;
}

void kiln__pickle_writer_deinit(kiln_pickle_writer *w) {
  for (int i = 0; i < w->states.count; i++) kiln_ivalue_release(w->states.data[i]);
  w->states.count = 0;
}
