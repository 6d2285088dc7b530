/* pickle_build.c: the allowlist of globals, and what they make. */
#include "frontend/pickle_machine.h"

/* -- References on the stack -- */

static void destroy_ref(kiln_box *box) {
  kiln_pickle_ref *ref = (kiln_pickle_ref *)box;
  if (ref->storage) kiln_storage_release(ref->storage);
  for (int i = 0; i < 3; i++) {
    if (ref->resolved[i]) kiln_storage_release(ref->resolved[i]);
  }
  kiln_mem_free(box->mem, ref, sizeof *ref);
}

kiln_status *kiln__pickle_ref_create(kiln_pickle *p, kiln_pickle_ref_kind kind,
                                     kiln_pickle_ref **out_ref) {
  kiln_pickle_ref *ref = kiln_mem_alloc_zero(p->mem, sizeof *ref);
  if (!ref) return kiln_status_oom();
  ref->box = (kiln_box){.refs = 1, .tag = KILN_TAG_OTHER, .mem = p->mem, .destroy = destroy_ref};
  ref->kind = kind;
  *out_ref = ref;
  return NULL;
}

static kiln_status *push_ref(kiln_pickle *p, kiln_pickle_ref_kind kind, kiln_pickle_fn call,
                             const kiln_type *type, kiln_dtype dtype) {
  kiln_pickle_ref *ref = NULL;
  KILN_TRY(kiln__pickle_ref_create(p, kind, &ref));
  ref->call = call;
  ref->type = type;
  ref->dtype = dtype;
  return kiln__pickle_push(p, kiln_of_box(ref));
}

/* -- Names -- */

static kiln_dtype dtype_of_storage(kiln_str name) {
  const size_t suffix = sizeof "Storage" - 1;
  if (!kiln_str_ends(name, "Storage")) return KILN_DTYPE_NONE;
  return kiln_dtype_from_ir_name(kiln_str_make(name.data, name.len - suffix));
}

static bool is_qualified_name(kiln_str name) {
  for (size_t i = 0; i < name.len; i++) {
    if (!kiln_is_word(name.data[i]) && name.data[i] != '.') return false;
  }
  return name.len > 0;
}

/* -- Lists, numbers, devices -- */

static kiln_status *typed_list(kiln_pickle *p, const kiln_tuple *args, kiln_type_kind kind,
                               kiln_tag tag) {
  if (args->count != 1 || args->items[0].tag != KILN_TAG_LIST) {
    return KILN_PICKLE_ERROR(p, "a typed list of an unknown form");
  }
  kiln_list *list = args->items[0].u.list;
  for (int64_t i = 0; i < list->count; i++) {
    if (list->items[i].tag != (uint32_t)tag) {
      return KILN_PICKLE_ERROR(p, "a typed list with an item of another type");
    }
  }
  list->elem_type = kiln_type_basic(kind);
  return kiln__pickle_push(p, kiln_ivalue_retain(args->items[0]));
}

static kiln_status *int_list(kiln_pickle *p, const kiln_tuple *args) {
  return typed_list(p, args, KILN_TYPE_INT, KILN_TAG_INT);
}
static kiln_status *float_list(kiln_pickle *p, const kiln_tuple *args) {
  return typed_list(p, args, KILN_TYPE_FLOAT, KILN_TAG_FLOAT);
}
static kiln_status *bool_list(kiln_pickle *p, const kiln_tuple *args) {
  return typed_list(p, args, KILN_TYPE_BOOL, KILN_TAG_BOOL);
}
static kiln_status *tensor_list(kiln_pickle *p, const kiln_tuple *args) {
  return typed_list(p, args, KILN_TYPE_TENSOR, KILN_TAG_TENSOR);
}

/* (container, "List[int]") */
static kiln_status *tag_type(kiln_pickle *p, const kiln_tuple *args) {
  if (args->count != 2 || args->items[1].tag != KILN_TAG_STRING || !p->hooks->parse_type) {
    return KILN_PICKLE_ERROR(p, "a type tag of an unknown form");
  }
  const kiln_type *type = NULL;
  KILN_TRY(p->hooks->parse_type(p->hooks->user, kiln_string_view(args->items[1].u.string), &type));
  kiln_ivalue v = args->items[0];
  if (v.tag == KILN_TAG_LIST && type->kind == KILN_TYPE_LIST) {
    v.u.list->elem_type = type->elems[0];
  } else if (v.tag == KILN_TAG_DICT && type->kind == KILN_TYPE_DICT) {
    v.u.dict->key_type = type->elems[0];
    v.u.dict->value_type = type->elems[1];
  } else {
    return KILN_PICKLE_ERROR(p, "a type tag that does not fit its container");
  }
  return kiln__pickle_push(p, kiln_ivalue_retain(v));
}

static bool as_double(kiln_ivalue v, double *out) {
  if (v.tag == KILN_TAG_FLOAT)
    *out = v.u.f;
  else if (v.tag == KILN_TAG_INT)
    *out = (double)v.u.i;
  else
    return false;
  return true;
}

static kiln_status *make_complex(kiln_pickle *p, const kiln_tuple *args) {
  double re, im;
  if (args->count != 2 || !as_double(args->items[0], &re) || !as_double(args->items[1], &im)) {
    return KILN_PICKLE_ERROR(p, "a complex number of an unknown form");
  }
  kiln_complex *number = NULL;
  KILN_TRY(kiln_complex_create(p->mem, re, im, &number));
  return kiln__pickle_push(p, kiln_of_box(number));
}

/* ("cuda:0",) or ("cuda", 0). */
static kiln_status *make_device(kiln_pickle *p, const kiln_tuple *args) {
  if (args->count < 1 || args->items[0].tag != KILN_TAG_STRING) {
    return KILN_PICKLE_ERROR(p, "a device of an unknown form");
  }
  kiln_str text = kiln_string_view(args->items[0].u.string);
  if (args->count > 1 && args->items[1].tag == KILN_TAG_INT) {
    text = kiln_str_from(kiln_arena_printf(p->arena, KILN_STR_FMT ":%lld", KILN_STR_ARG(text),
                                           (long long)args->items[1].u.i));
  }
  kiln_device_id device;
  kiln_device_map_apply(p->devices, &text, KILN_REMAP_VALUE,
                        kiln_str_from(kiln_arena_printf(p->arena, "%s.pkl", p->name)));
  if (!kiln_device_parse(text, &device)) {
    return KILN_PICKLE_ERROR(p, "device '" KILN_STR_FMT "' is not known", KILN_STR_ARG(text));
  }
  return kiln__pickle_push(p, kiln_device_value(device));
}

/* (dims,): a list of ints, as TorchScript has sizes. */
static kiln_status *make_size(kiln_pickle *p, const kiln_tuple *args) {
  int64_t dims[KILN_MAX_RANK];
  int rank;
  if (args->count != 1 || !kiln__pickle_dims(args->items[0], dims, &rank)) {
    return KILN_PICKLE_ERROR(p, "a torch.Size of an unknown form");
  }
  kiln_list *list = NULL;
  KILN_TRY(kiln_list_create(p->mem, kiln_type_basic(KILN_TYPE_INT), rank, &list));
  KILN_TRY(kiln__pickle_push(p, kiln_of_box(list)));
  for (int i = 0; i < rank; i++) KILN_TRY(kiln_list_push(list, kiln_int(dims[i])));
  return NULL;
}

static kiln_status *make_ordered_dict(kiln_pickle *p, const kiln_tuple *args) {
  if (args->count != 0) return KILN_PICKLE_ERROR(p, "an OrderedDict of an unknown form");
  kiln_dict *dict = NULL;
  KILN_TRY(kiln_dict_create(p->mem, NULL, NULL, &dict));
  KILN_TRY(kiln__pickle_add(p, &p->made, kiln_of_box(dict)));
  return kiln__pickle_push(p, kiln_ivalue_retain(kiln_of_box(dict)));
}

/* What is only an argument of another call. */
static kiln_status *no_function(kiln_pickle *p, const kiln_tuple *args) {
  (void)args;
  return KILN_PICKLE_ERROR(p, "a call of what is no function");
}
static kiln_status *a_factory(kiln_pickle *p, const kiln_tuple *args) {
  return no_function(p, args);
}

/* (factory,), which only matters to those who miss a key in Python. */
static kiln_status *make_default_dict(kiln_pickle *p, const kiln_tuple *args) {
  static const kiln_tuple none = {.count = 0};
  const kiln_pickle_ref *factory = args->count == 1 ? kiln__pickle_ref_of(args->items[0]) : NULL;
  bool known = factory && factory->kind == KILN_REF_FUNCTION &&
               (factory->call == a_factory || factory->call == make_ordered_dict);
  if (args->count != 0 && !known && !(args->count == 1 && args->items[0].tag == KILN_TAG_NONE)) {
    return KILN_PICKLE_ERROR(p, "a defaultdict of an unknown form");
  }
  return make_ordered_dict(p, &none);
}

/* ("torch.strided",): a layout, an int in TorchScript. */
static kiln_status *make_layout(kiln_pickle *p, const kiln_tuple *args) {
  static const char *const names[] = {"torch.strided",    "torch.sparse_coo", "torch.sparse_csr",
                                      "torch._mkldnn",    "torch.sparse_csc", "torch.sparse_bsr",
                                      "torch.sparse_bsc", "torch.jagged"};
  for (int i = 0; i < 8 && args->count == 1 && args->items[0].tag == KILN_TAG_STRING; i++) {
    if (kiln_str_is(kiln_string_view(args->items[0].u.string), names[i])) {
      return kiln__pickle_push(p, kiln_int(i));
    }
  }
  return KILN_PICKLE_ERROR(p, "an unknown layout");
}

static kiln_status *make_enum(kiln_pickle *p, const kiln_type *type, kiln_ivalue value) {
  if (value.tag == KILN_TAG_TUPLE && value.u.tuple->count == 1) value = value.u.tuple->items[0];
  for (int i = 0; i < type->cls->member_count; i++) {
    if (!kiln_ivalue_equal(type->cls->member_values[i], value)) continue;
    kiln_enum *enumerator = NULL;
    KILN_TRY(kiln_enum_create(p->mem, type, i, &enumerator));
    return kiln__pickle_push(p, kiln_of_box(enumerator));
  }
  return KILN_PICKLE_ERROR(p, "a value that " KILN_STR_FMT " does not have",
                           KILN_STR_ARG(type->name));
}

/* -- Calls -- */

/* (function, type, args, state) */
static kiln_status *rebuild_from_type(kiln_pickle *p, const kiln_tuple *args) {
  const kiln_pickle_ref *inner = args->count == 4 ? kiln__pickle_ref_of(args->items[0]) : NULL;
  if (!inner || inner->kind != KILN_REF_FUNCTION || inner->call == rebuild_from_type ||
      args->items[2].tag != KILN_TAG_TUPLE) {
    return KILN_PICKLE_ERROR(p, "a tensor of an unknown class");
  }
  return inner->call(p, args->items[2].u.tuple);
}

kiln_status *kiln__pickle_reduce(kiln_pickle *p, kiln_ivalue callee, kiln_ivalue args) {
  const kiln_pickle_ref *ref = kiln__pickle_ref_of(callee);
  if (ref && ref->kind == KILN_REF_CLASS && ref->type->kind == KILN_TYPE_ENUM) {
    return make_enum(p, ref->type, args);
  }
  if (!ref || ref->kind != KILN_REF_FUNCTION) return KILN_PICKLE_ERROR(p, "a call of no function");
  if (args.tag != KILN_TAG_TUPLE) return KILN_PICKLE_ERROR(p, "a call without arguments");
  return ref->call(p, args.u.tuple);
}

/* -- Globals -- */

static const struct {
  const char *module, *name;
  kiln_pickle_fn call;
  const char *lacking; /* what PyTorch writes so and Kiln does not have */
} allowed[] = {
    {"torch._utils", "_rebuild_tensor_v2", kiln__pickle_tensor, NULL},
    {"torch._utils", "_rebuild_tensor_v3", kiln__pickle_tensor_v3, NULL},
    {"torch._utils", "_rebuild_parameter", kiln__pickle_parameter, NULL},
    {"torch._tensor", "_rebuild_from_type_v2", rebuild_from_type, NULL},
    {"torch._utils", "_rebuild_qtensor", kiln__pickle_qtensor, NULL},
    {"torch._utils", "_rebuild_sparse_tensor", NULL, "sparse tensors"},
    {"torch._utils", "_rebuild_sparse_csr_tensor", NULL, "sparse tensors"},
    {"torch._utils", "_rebuild_nested_tensor", NULL, "nested tensors"},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", NULL, "tensors without data"},
    {"torch.serialization", "_get_layout", make_layout, NULL},
    {"torch.jit._pickle", "build_tensor_from_id", NULL, "tensor tables"},
    {"collections", "OrderedDict", make_ordered_dict, NULL},
    {"collections", "defaultdict", make_default_dict, NULL},
    {"builtins", "list", a_factory, NULL},
    {"__builtin__", "list", a_factory, NULL},
    {"builtins", "dict", a_factory, NULL},
    {"__builtin__", "dict", a_factory, NULL},
    {"builtins", "int", a_factory, NULL},
    {"__builtin__", "int", a_factory, NULL},
    {"builtins", "float", a_factory, NULL},
    {"__builtin__", "float", a_factory, NULL},
    {"torch.jit._pickle", "build_intlist", int_list, NULL},
    {"torch.jit._pickle", "build_doublelist", float_list, NULL},
    {"torch.jit._pickle", "build_boollist", bool_list, NULL},
    {"torch.jit._pickle", "build_tensorlist", tensor_list, NULL},
    {"torch.jit._pickle", "restore_type_tag", tag_type, NULL},
    {"builtins", "complex", make_complex, NULL},
    {"__builtin__", "complex", make_complex, NULL},
    {"torch", "device", make_device, NULL},
    {"torch", "Size", make_size, NULL},
    {"torch", "Tensor", no_function, NULL},
    {"torch.nn.parameter", "Parameter", no_function, NULL},
};

static kiln_status *push_class(kiln_pickle *p, kiln_str module, kiln_str name) {
  const kiln_type *type = NULL;
  const char *qualname = kiln_arena_printf(p->arena, KILN_STR_FMT "." KILN_STR_FMT,
                                           KILN_STR_ARG(module), KILN_STR_ARG(name));
  KILN_TRY(p->hooks->find_class(p->hooks->user, kiln_str_from(qualname), &type));
  return push_ref(p, KILN_REF_CLASS, NULL, type, KILN_DTYPE_NONE);
}

kiln_status *kiln__pickle_global(kiln_pickle *p, kiln_str module, kiln_str name) {
  if (!is_qualified_name(module) || !is_qualified_name(name) || module.len + name.len > 4096) {
    return KILN_PICKLE_ERROR(p, "a global with an odd name");
  }
  for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
    if (!kiln_str_is(module, allowed[i].module) || !kiln_str_is(name, allowed[i].name)) continue;
    if (!allowed[i].lacking) {
      return push_ref(p, KILN_REF_FUNCTION, allowed[i].call, NULL, KILN_DTYPE_NONE);
    }
    return KILN_ERROR(KILN_UNSUPPORTED, "%s.pkl at byte %zu: '%s.%s': %s are not supported",
                      p->name, p->at, allowed[i].module, allowed[i].name, allowed[i].lacking);
  }
  if (kiln_str_is(module, "torch")) {
    if (kiln_str_is(name, "per_tensor_affine")) return kiln__pickle_push(p, kiln_int(0));
    if (kiln_str_is(name, "per_channel_affine")) return kiln__pickle_push(p, kiln_int(1));
    kiln_dtype dtype = kiln_dtype_from_name(name);
    if (dtype != KILN_DTYPE_NONE) return kiln__pickle_push(p, kiln_int(dtype));
    dtype = dtype_of_storage(name);
    if (dtype != KILN_DTYPE_NONE) return push_ref(p, KILN_REF_STORAGE_TYPE, NULL, NULL, dtype);
  }
  if (kiln_str_is(module, "torch.storage") && kiln_str_is(name, "UntypedStorage")) {
    return push_ref(p, KILN_REF_STORAGE_TYPE, NULL, NULL, KILN_DTYPE_U8);
  }
  bool script = kiln_str_is(module, "__torch__") || kiln_str_starts(module, "__torch__.");
  if (script && p->hooks->find_class) return push_class(p, module, name);
  /* Of a file of values: what to write instead. */
  const char *advice = p->hooks->find_class ? ""
                       : kiln_str_starts(module, "numpy")
                           ? "; an array of numpy goes in by torch.from_numpy(array) or as .npy"
                           : "; a file of values holds tensors, numbers, strings, None, and lists, "
                             "tuples and dicts of them (a NamedTuple goes in as a tuple)";
  return KILN_PICKLE_ERROR(p, "global '" KILN_STR_FMT "." KILN_STR_FMT "' is not allowed%s",
                           KILN_STR_ARG(module), KILN_STR_ARG(name), advice);
}

/* -- Objects -- */

enum { BYTES_PER_CHECK = 1 << 16 };

kiln_status *kiln__pickle_new_object(kiln_pickle *p, kiln_ivalue cls, kiln_ivalue args) {
  const kiln_pickle_ref *ref = kiln__pickle_ref_of(cls);
  if (!ref || ref->kind != KILN_REF_CLASS || ref->type->kind != KILN_TYPE_CLASS ||
      args.tag != KILN_TAG_TUPLE) {
    return KILN_PICKLE_ERROR(p, "an object of no class");
  }
  kiln_object *object = NULL;
  /* A class of many attributes makes objects that are larger than what asks for them. */
  size_t bytes = sizeof *object + (size_t)ref->type->cls->attribute_count * sizeof(kiln_ivalue);
  p->object_bytes += bytes;
  if (bytes > BYTES_PER_CHECK ||
      p->object_bytes / BYTES_PER_CHECK != (p->object_bytes - bytes) / BYTES_PER_CHECK) {
    KILN_TRY(kiln__pickle_ask(p));
  }
  KILN_TRY(kiln_object_create(p->mem, ref->type, &object));
  KILN_TRY(kiln__pickle_add(p, &p->made, kiln_of_box(object)));
  return kiln__pickle_push(p, kiln_ivalue_retain(kiln_of_box(object)));
}

/* Sets every attribute of the class from the dict; others in it are ignored. */
static kiln_status *fill_object(kiln_pickle *p, kiln_object *object, const kiln_dict *state) {
  const kiln_class_info *cls = object->type->cls;
  for (int i = 0; i < cls->attribute_count; i++) {
    const kiln_class_attribute *attribute = &cls->attributes[i];
    kiln_string *name = NULL;
    KILN_TRY(kiln_string_create(p->mem, attribute->name, &name));
    kiln_ivalue *found = kiln_dict_find(state, kiln_of_box(name));
    kiln_ivalue_release(kiln_of_box(name));
    if (!found) {
      return KILN_PICKLE_ERROR(
          p, "an object of " KILN_STR_FMT " lacks the attribute '" KILN_STR_FMT "'",
          KILN_STR_ARG(object->type->name), KILN_STR_ARG(attribute->name));
    }
    kiln_ivalue old = object->slots[i];
    object->slots[i] = kiln_ivalue_retain(*found);
    if (old.tag != KILN_TAG_TENSOR || old.u.tensor) kiln_ivalue_release(old);
  }
  return NULL;
}

kiln_status *kiln__pickle_build(kiln_pickle *p, kiln_ivalue target, kiln_ivalue state) {
  /* An OrderedDict's own attributes (a state dict's _metadata) are of no interest. */
  if (target.tag == KILN_TAG_DICT && state.tag == KILN_TAG_DICT) return NULL;
  if (target.tag != KILN_TAG_OBJECT) return KILN_PICKLE_ERROR(p, "state set on no object");
  kiln_object *object = target.u.object;
  if (p->hooks->wants_state && p->hooks->wants_state(p->hooks->user, object->type)) {
    kiln_map_set_ptr(&p->pending_objects, object, object);
    KILN_TRY(kiln__pickle_add(p, &p->pending, kiln_ivalue_retain(target)));
    return kiln__pickle_add(p, &p->pending, kiln_ivalue_retain(state));
  }
  if (state.tag != KILN_TAG_DICT) return KILN_PICKLE_ERROR(p, "an object's state is no dict");
  return fill_object(p, object, state.u.dict);
}
