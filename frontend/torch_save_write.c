/* torch_save_write.c: values to torch.save archives.
 *
 * The pickle is made in memory first, then minizip writes the records: data.pkl, version,
 * byteorder, data/<k>. Each record's bytes begin at a multiple of 64, by padding in the local
 * header, as torch's own writer does; so others can map the file too. Containers and tensors that
 * occur twice are memoised, which keeps aliases; since cycles cannot be memoised in time they are
 * refused by depth. */
#include <errno.h>
#include <minizip/zip.h>

#include "frontend/pickle.h"
#include "frontend/torch_save.h"

enum { ALIGNMENT = 64, MAX_DEPTH = KILN_PICKLE_MAX_DEPTH };

typedef struct writer {
  kiln_env *env;
  kiln_arena *arena;
  const char *path;
  kiln_ivalue value;
  kiln_text out; /* the pickle */
  kiln_map memo; /* box or tensor -> memo index + 1 */
  uint32_t memo_count;
  kiln_map storages; /* storage -> index + 1 */
  KILN_VEC(kiln_storage *) order;
  zipFile zip;
  uint64_t offset; /* bytes of the file so far */
} writer;

/* -- The pickle -- */

static void put_u8(writer *w, unsigned value) { kiln_text_putc(&w->out, (char)value); }

static void put_u32(writer *w, uint32_t value) {
  for (int i = 0; i < 4; i++) put_u8(w, (value >> (8 * i)) & 0xff);
}

static void put_string(writer *w, kiln_str text) {
  put_u8(w, 'X');
  put_u32(w, (uint32_t)text.len);
  kiln_text_put(&w->out, text);
}

static void put_int(writer *w, int64_t value) {
  if (value >= INT32_MIN && value <= INT32_MAX) {
    put_u8(w, 'J');
    put_u32(w, (uint32_t)(int32_t)value);
    return;
  }
  put_u8(w, 0x8a);
  put_u8(w, 8);
  for (int i = 0; i < 8; i++) put_u8(w, (unsigned)((uint64_t)value >> (8 * i)) & 0xff);
}

static void put_double(writer *w, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  put_u8(w, 'G');
  for (int i = 7; i >= 0; i--) put_u8(w, (unsigned)(bits >> (8 * i)) & 0xff);
}

static void put_global(writer *w, const char *module_and_name) {
  put_u8(w, 'c');
  kiln_text_puts(&w->out, module_and_name);
  put_u8(w, '\n');
}

/* Memoises what is on top under the key of `address`. */
static void put_memo(writer *w, const void *address) {
  uint32_t index = w->memo_count++;
  put_u8(w, 'r');
  put_u32(w, index);
  kiln_map_set_ptr(&w->memo, address, (void *)(uintptr_t)(index + 1));
}

static bool put_from_memo(writer *w, const void *address) {
  uintptr_t index = (uintptr_t)kiln_map_find_ptr(&w->memo, address);
  if (!index) return false;
  put_u8(w, 'j');
  put_u32(w, (uint32_t)(index - 1));
  return true;
}

static const char *storage_type(kiln_dtype dtype) {
  switch (dtype) {
#define TYPE(id, number, size, storage, python, short_name) \
  case KILN_DTYPE_##id: return "torch\n" storage "Storage";
    KILN_DTYPE_LIST(TYPE)
#undef TYPE
    default: return NULL;
  }
}

/* Dtypes for which torch.save has no typed storage: _rebuild_tensor_v3 over untyped bytes. */
static bool needs_v3(kiln_dtype dtype) {
  return dtype == KILN_DTYPE_F8E5M2 || dtype == KILN_DTYPE_F8E4M3 || dtype == KILN_DTYPE_U16 ||
         dtype == KILN_DTYPE_U32 || dtype == KILN_DTYPE_U64;
}

static void put_storage(writer *w, kiln_storage *storage, kiln_dtype dtype) {
  uintptr_t index = (uintptr_t)kiln_map_find_ptr(&w->storages, storage);
  if (!index) {
    kiln_vec_push(w->arena, &w->order, storage);
    index = (uintptr_t)w->order.count;
    kiln_map_set_ptr(&w->storages, storage, (void *)index);
  }
  bool untyped = needs_v3(dtype);
  put_u8(w, '(');
  put_string(w, KILN_STR("storage"));
  put_global(w, untyped ? "torch.storage\nUntypedStorage" : storage_type(dtype));
  put_string(w, kiln_str_from(kiln_arena_printf(w->arena, "%zu", (size_t)index - 1)));
  put_string(w, KILN_STR("cpu"));
  put_int(w, (int64_t)(storage->bytes / (untyped ? 1 : kiln_dtype_size(dtype))));
  kiln_text_puts(&w->out, "tQ");
}

static void put_dims(writer *w, const int64_t *dims, int rank) {
  put_u8(w, '(');
  for (int i = 0; i < rank; i++) put_int(w, dims[i]);
  put_u8(w, 't');
}

static const char *dtype_global(kiln_dtype dtype) {
  switch (dtype) {
#define NAME(id, number, size, storage, python, short_name) \
  case KILN_DTYPE_##id: return "torch\n" python;
    KILN_DTYPE_LIST(NAME)
#undef NAME
    default: return NULL;
  }
}

static kiln_status *put_tensor(writer *w, kiln_tensor *tensor) {
  if (put_from_memo(w, tensor)) return NULL;
  kiln_dtype dtype = kiln_tensor_dtype(tensor);
  kiln_dtype_category category = kiln_dtype_category_of(dtype);
  if (tensor->key.f.undefined || !tensor->storage) {
    put_u8(w, 'N');
    return NULL;
  }
  if (!storage_type(dtype) || (category == KILN_CATEGORY_OTHER && !needs_v3(dtype)) ||
      tensor->key.f.device_kind != KILN_DEVICE_CPU) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a tensor of dtype %d on device %d cannot be saved",
                      (int)dtype, tensor->key.f.device_kind);
  }
  bool v3 = needs_v3(dtype);
  put_global(w, v3 ? "torch._utils\n_rebuild_tensor_v3" : "torch._utils\n_rebuild_tensor_v2");
  put_u8(w, '(');
  put_storage(w, tensor->storage, dtype);
  put_int(w, tensor->offset);
  put_dims(w, kiln_tensor_sizes(tensor), kiln_tensor_rank(tensor));
  put_dims(w, kiln_tensor_strides(tensor), kiln_tensor_rank(tensor));
  put_u8(w, tensor->key.f.requires_grad ? 0x88 : 0x89);
  put_global(w, "collections\nOrderedDict");
  kiln_text_puts(&w->out, ")R");
  if (v3) put_global(w, dtype_global(dtype));
  kiln_text_puts(&w->out, "tR");
  put_memo(w, tensor);
  return NULL;
}

static kiln_status *put_value(writer *w, kiln_ivalue v, int depth);

static kiln_status *put_list(writer *w, const kiln_list *list, int depth) {
  if (put_from_memo(w, list)) return NULL;
  put_u8(w, ']');
  put_memo(w, list);
  put_u8(w, '(');
  for (int64_t i = 0; i < list->count; i++) KILN_TRY(put_value(w, list->items[i], depth + 1));
  put_u8(w, 'e');
  return NULL;
}

static kiln_status *put_dict(writer *w, const kiln_dict *dict, int depth) {
  if (put_from_memo(w, dict)) return NULL;
  put_u8(w, '}');
  put_memo(w, dict);
  put_u8(w, '(');
  int64_t index = 0;
  kiln_ivalue *key, *value;
  while (kiln_dict_next(dict, &index, &key, &value)) {
    KILN_TRY(put_value(w, *key, depth + 1));
    KILN_TRY(put_value(w, *value, depth + 1));
  }
  put_u8(w, 'u');
  return NULL;
}

static kiln_status *put_tuple(writer *w, const kiln_tuple *tuple, int depth) {
  if (put_from_memo(w, tuple)) return NULL;
  put_u8(w, '(');
  for (int64_t i = 0; i < tuple->count; i++) KILN_TRY(put_value(w, tuple->items[i], depth + 1));
  put_u8(w, 't');
  put_memo(w, tuple);
  return NULL;
}

static void put_device(writer *w, kiln_device device) {
  const char *name = device.kind == KILN_DEVICE_CPU    ? "cpu"
                     : device.kind == KILN_DEVICE_CUDA ? "cuda"
                                                       : "meta";
  put_global(w, "torch\ndevice");
  put_u8(w, '(');
  put_string(w, kiln_str_from(name));
  if (device.index >= 0) put_int(w, device.index);
  kiln_text_puts(&w->out, "tR");
}

static kiln_status *put_value(writer *w, kiln_ivalue v, int depth) {
  if (depth > MAX_DEPTH) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "values nested deeper than %d cannot be saved",
                      MAX_DEPTH);
  }
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: put_u8(w, 'N'); return NULL;
    case KILN_TAG_INT: put_int(w, v.u.i); return NULL;
    case KILN_TAG_FLOAT: put_double(w, v.u.f); return NULL;
    case KILN_TAG_BOOL: put_u8(w, v.u.i ? 0x88 : 0x89); return NULL;
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
    case KILN_TAG_LIST: return put_list(w, v.u.list, depth);
    case KILN_TAG_TUPLE: return put_tuple(w, v.u.tuple, depth);
    case KILN_TAG_DICT: return put_dict(w, v.u.dict, depth);
    default: break;
  }
  kiln_text name;
  kiln_text_init(&name, w->arena);
  kiln_ivalue_type_name(&name, v);
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "a value of type %s cannot be saved", name.data);
}

/* -- The archive -- */

static kiln_status *write_record(writer *w, const char *name, const void *data, uint64_t size) {
  char full[96];
  int length = snprintf(full, sizeof full, "archive/%s", name);
  bool zip64 = size >= 0xffff0000u;
  /* minizip appends 20 bytes of its own to the local extra field for zip64. */
  uint64_t begin = w->offset + 30 + (uint64_t)length + (zip64 ? 20 : 0) + 4;
  unsigned pad = (unsigned)((ALIGNMENT - begin % ALIGNMENT) % ALIGNMENT);
  unsigned char extra[4 + ALIGNMENT] = {'F', 'B', (unsigned char)pad, 0};
  memset(extra + 4, 'Z', pad);
  zip_fileinfo info = {0};
  int result =
      zipOpenNewFileInZip4_64(w->zip, full, &info, extra, pad + 4, NULL, 0, NULL, 0, 0, 0,
                              -MAX_WBITS, DEF_MEM_LEVEL, Z_DEFAULT_STRATEGY, NULL, 0, 0, 0, zip64);
  const char *at = data;
  for (uint64_t left = size; result == ZIP_OK && left > 0;) {
    unsigned step = left > (1u << 30) ? 1u << 30 : (unsigned)left;
    result = zipWriteInFileInZip(w->zip, at, step);
    at += step;
    left -= step;
  }
  int closed = zipCloseFileInZip(w->zip);
  if (result != ZIP_OK || closed != ZIP_OK) {
    return KILN_ERROR(KILN_INVALID_FILE, "cannot write '%s': %s", w->path,
                      errno ? strerror(errno) : "the zip writer failed");
  }
  w->offset = begin + pad + size;
  return NULL;
}

static kiln_status *write_records(writer *w) {
  KILN_TRY(write_record(w, "data.pkl", w->out.data, w->out.len));
  KILN_TRY(write_record(w, "byteorder", "little", 6));
  for (int i = 0; i < w->order.count; i++) {
    char name[48];
    snprintf(name, sizeof name, "data/%d", i);
    KILN_TRY(write_record(w, name, w->order.data[i]->data, w->order.data[i]->bytes));
  }
  return write_record(w, "version", "3\n", 2);
}

static kiln_status *write_archive(void *arg) {
  writer *w = arg;
  kiln_text_init(&w->out, w->arena);
  kiln_map_init(&w->memo, w->arena);
  kiln_map_init(&w->storages, w->arena);
  kiln_text_puts(&w->out, "\x80\x02");
  KILN_TRY(put_value(w, w->value, 0));
  put_u8(w, '.');
  errno = 0;
  w->zip = zipOpen64(w->path, APPEND_STATUS_CREATE);
  if (!w->zip) {
    return KILN_ERROR(KILN_INVALID_FILE, "cannot write '%s': %s", w->path, strerror(errno));
  }
  return write_records(w);
}

kiln_status *kiln_torch_save_write(kiln_env *env, kiln_ivalue value, const char *path) {
  writer w = {.env = env, .path = path, .value = value};
  KILN_TRY(kiln_arena_create(env->mem, &w.arena));
  kiln_status *status = kiln_arena_run(w.arena, write_archive, &w);
  if (w.zip && zipClose(w.zip, NULL) != ZIP_OK && !status) {
    status = KILN_ERROR(KILN_INVALID_FILE, "cannot write '%s'", path);
  }
  kiln_arena_destroy(w.arena);
  return status;
}
