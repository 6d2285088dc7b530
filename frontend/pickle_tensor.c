/* pickle_tensor.c: storages and tensors of a pickle: what lies where in the archive. */
#include "frontend/pickle_machine.h"
#include "runtime/quant.h"

/* -- Storages -- */

/* The entry's memory itself where it can be read in place, else a copy of it. */
static kiln_status *storage_of_entry(kiln_pickle *p, kiln_str key, size_t bytes,
                                     kiln_storage **out_storage) {
  if (bytes == 0) return kiln_storage_create(p->mem, NULL, 0, out_storage);
  const char *path = kiln_arena_printf(p->arena, "%s/" KILN_STR_FMT, p->name, KILN_STR_ARG(key));
  kiln_zip_entry *entry = kiln_zip_find(p->zip, kiln_str_from(path));
  if (!entry) return KILN_PICKLE_ERROR(p, "the archive has no storage '%s'", path);
  kiln_str data;
  KILN_TRY(kiln_zip_read(p->zip, entry, &data));
  if (data.len < bytes) {
    return KILN_PICKLE_ERROR(p, "storage '%s' has %zu bytes where %zu are needed", path, data.len,
                             bytes);
  }
  if (!entry->deflated && (uintptr_t)data.data % 16 == 0) {
    return kiln_storage_wrap(p->mem, &p->mapping->owner, (void *)(uintptr_t)data.data, bytes,
                             KILN_STORAGE_READ_ONLY, out_storage);
  }
  KILN_TRY(kiln_budget_check(p->hooks->budget, bytes));
  KILN_TRY(kiln_storage_create(p->mem, NULL, bytes, out_storage));
  memcpy((*out_storage)->data, data.data, bytes);
  return NULL;
}

static bool storage_key_is_safe(kiln_str key) {
  for (size_t i = 0; i < key.len; i++) {
    if (!kiln_is_word(key.data[i])) return false;
  }
  return key.len > 0 && key.len < 64;
}

/* Tensors live on the CPU, or a rule puts them there. */
static kiln_status *check_device(kiln_pickle *p, kiln_ivalue location, kiln_str key) {
  if (location.tag != KILN_TAG_STRING) {
    return KILN_PICKLE_ERROR(p, "a persistent id of an unknown form");
  }
  kiln_str device = kiln_string_view(location.u.string);
  if (kiln_str_is(device, "cpu")) return NULL;
  const char *where = kiln_arena_printf(p->arena, "%s/" KILN_STR_FMT, p->name, KILN_STR_ARG(key));
  if (kiln_device_map_apply(p->devices, &device, KILN_REMAP_TENSOR, kiln_str_from(where))) {
    return NULL;
  }
  return KILN_ERROR(KILN_INVALID_FILE,
                    "tensors of the archive lie on device '" KILN_STR_FMT
                    "', which is not here; the option map_device puts them elsewhere: "
                    "map_device=" KILN_STR_FMT "=cpu",
                    KILN_STR_ARG(device), KILN_STR_ARG(device));
}

/* ('storage', type, key, location, element count) */
kiln_status *kiln__pickle_persistent(kiln_pickle *p, kiln_ivalue id) {
  if (id.tag != KILN_TAG_TUPLE || id.u.tuple->count < 5) {
    return KILN_PICKLE_ERROR(p, "a persistent id of an unknown form");
  }
  const kiln_ivalue *item = id.u.tuple->items;
  const kiln_pickle_ref *type = kiln__pickle_ref_of(item[1]);
  if (item[0].tag != KILN_TAG_STRING ||
      !kiln_str_is(kiln_string_view(item[0].u.string), "storage") || !type ||
      type->kind != KILN_REF_STORAGE_TYPE || item[2].tag != KILN_TAG_STRING ||
      item[4].tag != KILN_TAG_INT) {
    return KILN_PICKLE_ERROR(p, "a persistent id of an unknown form");
  }
  kiln_str key = kiln_string_view(item[2].u.string);
  size_t bytes;
  KILN_TRY(check_device(p, item[3], key));
  if (!storage_key_is_safe(key)) return KILN_PICKLE_ERROR(p, "a storage with an odd name");
  if (item[4].u.i < 0 ||
      !kiln_checked_mul_size((size_t)item[4].u.i, kiln_dtype_size(type->dtype), &bytes)) {
    return KILN_PICKLE_ERROR(p, "a storage with an impossible size");
  }
  kiln_pickle_ref *known = kiln_map_find(&p->storages, key);
  if (known && known->storage->bytes >= bytes && known->dtype == type->dtype) {
    return kiln__pickle_push(p, kiln_ivalue_retain(kiln_of_box(known)));
  }
  if (known) return KILN_PICKLE_ERROR(p, "one storage with two sizes or dtypes");
  kiln_str name = kiln_arena_str(p->arena, key);
  kiln_pickle_ref *ref = NULL;
  KILN_TRY(kiln__pickle_ref_create(p, KILN_REF_STORAGE, &ref));
  KILN_TRY(kiln__pickle_add(p, &p->held, kiln_of_box(ref)));
  ref->dtype = type->dtype;
  KILN_TRY(storage_of_entry(p, name, bytes, &ref->storage));
  kiln_map_set(&p->storages, name, ref);
  return kiln__pickle_push(p, kiln_ivalue_retain(kiln_of_box(ref)));
}

/* -- Tensors -- */

bool kiln__pickle_dims(kiln_ivalue v, int64_t *out_dims, int *out_rank) {
  const kiln_ivalue *items;
  int64_t count;
  if (v.tag == KILN_TAG_TUPLE) {
    items = v.u.tuple->items;
    count = v.u.tuple->count;
  } else if (v.tag == KILN_TAG_LIST) {
    items = v.u.list->items;
    count = v.u.list->count;
  } else {
    return false;
  }
  if (count > KILN_MAX_RANK) return false;
  for (int64_t i = 0; i < count; i++) {
    if (items[i].tag != KILN_TAG_INT || items[i].u.i < 0) return false;
    out_dims[i] = items[i].u.i;
  }
  *out_rank = (int)count;
  return true;
}

/* Elements from the storage's begin to the last one that the geometry reaches, plus one. */
static bool reach(int rank, const int64_t *sizes, const int64_t *strides, int64_t offset,
                  int64_t *out_reach) {
  int64_t last = offset;
  for (int i = 0; i < rank; i++) {
    int64_t span;
    if (sizes[i] == 0) {
      *out_reach = 0;
      return true;
    }
    if (!kiln_checked_mul_i64(sizes[i] - 1, strides[i], &span) ||
        !kiln_checked_add_i64(last, span, &last)) {
      return false;
    }
  }
  return kiln_checked_add_i64(last, 1, out_reach);
}

/* -- Conjugated and negated views --
 *
 * PyTorch marks such tensors and lets their readers conjugate or negate. Kiln has no marks, so the
 * reader does it: on a copy of the storage, which all views with the same marks share. */

enum { MARK_CONJ = 1, MARK_NEG = 2 };

static unsigned view_marks(kiln_ivalue meta) {
  unsigned marks = 0;
  if (meta.tag != KILN_TAG_DICT) return 0;
  int64_t index = 0;
  kiln_ivalue *key, *value;
  while (kiln_dict_next(meta.u.dict, &index, &key, &value)) {
    if (key->tag != KILN_TAG_STRING || value->tag != KILN_TAG_BOOL || !value->u.b) continue;
    kiln_str name = kiln_string_view(key->u.string);
    if (kiln_str_is(name, "conj")) marks |= MARK_CONJ;
    if (kiln_str_is(name, "neg")) marks |= MARK_NEG;
  }
  return marks;
}

/* Flips the sign bits of every `step`-th number of `size` bytes, from number `first` on. */
static void flip_signs(unsigned char *data, size_t bytes, size_t size, size_t first, size_t step) {
  for (size_t i = first; (i + 1) * size <= bytes; i += step) data[(i + 1) * size - 1] ^= 0x80;
}

/* The storage of `ref` with the marks resolved, in the ref's list of those. */
static kiln_status *resolve_marks(kiln_pickle *p, kiln_pickle_ref *ref, kiln_dtype dtype,
                                  unsigned marks, kiln_storage **out_storage) {
  bool complex = kiln_dtype_is_complex(dtype);
  if (!complex) marks &= MARK_NEG; /* conj of a real number is itself */
  *out_storage = ref->storage;
  if (marks == 0 || ref->storage->bytes == 0) return NULL;
  if (!complex && !kiln_dtype_is_float(dtype)) {
    return KILN_ERROR(KILN_UNSUPPORTED, "%s.pkl holds a negated view of dtype %s", p->name,
                      kiln_dtype_name(dtype));
  }
  kiln_storage **known = &ref->resolved[marks - 1];
  if (!*known) {
    KILN_TRY(kiln_budget_check(p->hooks->budget, ref->storage->bytes));
    KILN_TRY(kiln_storage_create(p->mem, NULL, ref->storage->bytes, known));
    size_t bytes = ref->storage->bytes, size = kiln_dtype_bytes(dtype) / (complex ? 2 : 1);
    memcpy((*known)->data, ref->storage->data, bytes);
    if (marks & MARK_CONJ) flip_signs((*known)->data, bytes, size, 1, 2);
    if (marks & MARK_NEG) flip_signs((*known)->data, bytes, size, 0, 1);
  }
  *out_storage = *known;
  return NULL;
}

/* `flag`: which argument is requires_grad. */
static kiln_status *make_tensor(kiln_pickle *p, const kiln_tuple *args, bool v3, int flag,
                                kiln_tensor **out_tensor) {
  const kiln_ivalue *arg = args->items;
  kiln_pickle_ref *ref = (kiln_pickle_ref *)(uintptr_t)kiln__pickle_ref_of(arg[0]);
  if (!ref || ref->kind != KILN_REF_STORAGE) {
    return KILN_PICKLE_ERROR(p, "a tensor without storage");
  }
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK], reached;
  int rank, stride_rank;
  if (arg[1].tag != KILN_TAG_INT || arg[1].u.i < 0 || arg[flag].tag != KILN_TAG_BOOL) {
    return KILN_PICKLE_ERROR(p, "a tensor with an impossible offset or flag");
  }
  if (!kiln__pickle_dims(arg[2], sizes, &rank) ||
      !kiln__pickle_dims(arg[3], strides, &stride_rank) || rank != stride_rank) {
    return KILN_PICKLE_ERROR(p, "a tensor with impossible sizes or strides");
  }
  kiln_dtype dtype = ref->dtype;
  if (v3) {
    if (arg[6].tag != KILN_TAG_INT || !kiln_dtype_is_valid(arg[6].u.i)) {
      return KILN_PICKLE_ERROR(p, "a tensor with an unknown dtype");
    }
    dtype = (kiln_dtype)arg[6].u.i;
  }
  size_t elements = ref->storage->bytes / kiln_dtype_size(dtype);
  if (!reach(rank, sizes, strides, arg[1].u.i, &reached) || (uint64_t)reached > elements) {
    return KILN_PICKLE_ERROR(p, "a tensor that reaches past its storage");
  }
  if (kiln_dtype_is_quant(dtype) != (flag == 5)) {
    return KILN_PICKLE_ERROR(p, "a tensor of dtype %s that is %squantised", kiln_dtype_name(dtype),
                             flag == 5 ? "" : "not ");
  }
  unsigned marks = !v3 && flag == 4 && args->count > 6 ? view_marks(arg[6]) : 0;
  kiln_storage *storage = NULL;
  kiln_tensor *tensor = NULL;
  KILN_TRY(resolve_marks(p, ref, dtype, marks, &storage));
  KILN_TRY(kiln_tensor_create_on(p->mem, NULL, storage, dtype, rank, sizes, strides, arg[1].u.i,
                                 &tensor));
  tensor->key.f.requires_grad = flag == 4 && arg[4].u.b;
  *out_tensor = tensor;
  return NULL;
}

static kiln_status *push_tensor(kiln_pickle *p, const kiln_tuple *args, bool v3) {
  kiln_tensor *tensor = NULL;
  if (args->count < (v3 ? 7 : 5)) return KILN_PICKLE_ERROR(p, "a tensor with too few arguments");
  KILN_TRY(make_tensor(p, args, v3, 4, &tensor));
  return kiln__pickle_push(p, kiln_of_tensor(tensor));
}

kiln_status *kiln__pickle_tensor(kiln_pickle *p, const kiln_tuple *args) {
  return push_tensor(p, args, false);
}

kiln_status *kiln__pickle_tensor_v3(kiln_pickle *p, const kiln_tuple *args) {
  return push_tensor(p, args, true);
}

/* -- Quantised tensors -- */

/* A contiguous tensor of `count` elements of that dtype. */
static bool is_column(kiln_ivalue v, kiln_dtype dtype, int64_t count) {
  return v.tag == KILN_TAG_TENSOR && !kiln_tensor_is_undefined(v.u.tensor) &&
         kiln_tensor_dtype(v.u.tensor) == dtype && kiln_tensor_rank(v.u.tensor) == 1 &&
         v.u.tensor->numel == count && kiln_tensor_is_contiguous(v.u.tensor);
}

/* (scheme, scale, zero point) or (scheme, scales, zero points, axis). */
static kiln_status *read_parameters(kiln_pickle *p, const kiln_tensor *tensor, kiln_ivalue v,
                                    kiln_quant **out_quant) {
  const kiln_tuple *q = v.tag == KILN_TAG_TUPLE ? v.u.tuple : NULL;
  const kiln_dtype dtype = kiln_tensor_dtype(tensor);
  if (!q || q->count < 3 || q->items[0].tag != KILN_TAG_INT) {
    return KILN_PICKLE_ERROR(p, "quantisation parameters of an unknown form");
  }
  const kiln_ivalue *item = q->items;
  if (item[0].u.i == KILN_QSCHEME_PER_TENSOR && item[1].tag == KILN_TAG_FLOAT &&
      item[2].tag == KILN_TAG_INT) {
    return kiln_quant_create(p->mem, dtype, item[1].u.f, item[2].u.i, out_quant);
  }
  int64_t axis = q->count > 3 && item[3].tag == KILN_TAG_INT ? item[3].u.i : -1;
  if (item[0].u.i != KILN_QSCHEME_PER_CHANNEL || axis < 0 || axis >= kiln_tensor_rank(tensor)) {
    return KILN_PICKLE_ERROR(p, "quantisation parameters of an unknown form");
  }
  const int64_t count = kiln_tensor_sizes(tensor)[axis];
  if (!is_column(item[1], KILN_DTYPE_F64, count) || !is_column(item[2], KILN_DTYPE_I64, count) ||
      count == 0) {
    return KILN_PICKLE_ERROR(p, "quantisation parameters that do not fit their tensor");
  }
  return kiln_quant_create_channels(p->mem, dtype, (int)axis, count,
                                    kiln_tensor_data(item[1].u.tensor),
                                    kiln_tensor_data(item[2].u.tensor), out_quant);
}

kiln_status *kiln__pickle_qtensor(kiln_pickle *p, const kiln_tuple *args) {
  kiln_tensor *tensor = NULL;
  kiln_quant *quant = NULL;
  if (args->count < 6) return KILN_PICKLE_ERROR(p, "a tensor with too few arguments");
  KILN_TRY(make_tensor(p, args, false, 5, &tensor));
  kiln_status *status = read_parameters(p, tensor, args->items[4], &quant);
  if (status) {
    kiln_tensor_release(tensor);
    kiln_code code = kiln_status_code(status);
    if (code != KILN_OP_ERROR) return status;
    kiln_status_destroy(status);
    return KILN_PICKLE_ERROR(p, "impossible quantisation parameters");
  }
  kiln_tensor_attach(tensor, &quant->side);
  if (p->hooks->quantised) *p->hooks->quantised = true;
  return kiln__pickle_push(p, kiln_of_tensor(tensor));
}

/* (tensor, requires_grad, hooks): the tensor itself, with its flag. */
kiln_status *kiln__pickle_parameter(kiln_pickle *p, const kiln_tuple *args) {
  if (args->count < 2 || args->items[0].tag != KILN_TAG_TENSOR ||
      args->items[1].tag != KILN_TAG_BOOL) {
    return KILN_PICKLE_ERROR(p, "a parameter of an unknown form");
  }
  kiln_tensor *tensor = args->items[0].u.tensor;
  tensor->key.f.requires_grad = args->items[1].u.b && !kiln_tensor_is_quant(tensor);
  return kiln__pickle_push(p, kiln_ivalue_retain(args->items[0]));
}
