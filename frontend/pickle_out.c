/* pickle_out.c: opcodes, in the shortest form that both of torch's own picklers use too. */
#include "frontend/pickle_out.h"

#include "frontend/pickle.h"
#include "runtime/structure.h"

static void release_held(void *arg) {
  kiln_pickle_out *out = arg;
  for (int i = 0; i < out->held.count; i++) kiln_ivalue_release(out->held.data[i]);
}

void kiln__pickle_out_begin(kiln_pickle_out *out, kiln_arena *arena, bool for_script) {
  *out = (kiln_pickle_out){.arena = arena, .for_script = for_script};
  kiln_scope_defer(&out->releasing, release_held, out);
  out->text = kiln_text_in(arena);
  out->memo = kiln_map_in(arena);
  out->numbers = kiln_map_in(arena);
  kiln_text_puts(&out->text, "\x80\x02");
}

static void put_number(kiln_pickle_out *out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) kiln__pickle_put_byte(out, (unsigned)(value >> (8 * i)) & 0xff);
}

/* -- Values -- */

void kiln__pickle_put_string(kiln_pickle_out *out, kiln_str text) {
  kiln__pickle_put_byte(out, 'X');
  put_number(out, text.len, 4);
  kiln_text_put(&out->text, text);
}

void kiln__pickle_put_int(kiln_pickle_out *out, int64_t value) {
  if (value >= 0 && value <= UINT8_MAX) {
    kiln__pickle_put_byte(out, 'K');
    put_number(out, (uint64_t)value, 1);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    kiln__pickle_put_byte(out, 'J');
    put_number(out, (uint64_t)value, 4);
  } else {
    kiln__pickle_put_byte(out, 0x8a);
    kiln__pickle_put_byte(out, 8);
    put_number(out, (uint64_t)value, 8);
  }
}

static void put_double(kiln_pickle_out *out, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  kiln__pickle_put_byte(out, 'G');
  for (int i = 7; i >= 0; i--) kiln__pickle_put_byte(out, (unsigned)(bits >> (8 * i)) & 0xff);
}

void kiln__pickle_put_bool(kiln_pickle_out *out, bool value) {
  kiln__pickle_put_byte(out, value ? 0x88 : 0x89);
}

void kiln__pickle_put_global(kiln_pickle_out *out, const char *module_and_name) {
  kiln__pickle_put_byte(out, 'c');
  kiln_text_puts(&out->text, module_and_name);
  kiln__pickle_put_byte(out, '\n');
}

kiln_status *kiln__pickle_put_leaf(kiln_pickle_out *out, kiln_ivalue v) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_NONE: kiln__pickle_put_byte(out, 'N'); return NULL;
    case KILN_TAG_INT: kiln__pickle_put_int(out, v.u.i); return NULL;
    case KILN_TAG_FLOAT: put_double(out, v.u.f); return NULL;
    case KILN_TAG_BOOL: kiln__pickle_put_bool(out, v.u.b); return NULL;
    case KILN_TAG_STRING:
      if (v.u.string->len > UINT32_MAX) break;
      kiln__pickle_put_string(out, kiln_string_view(v.u.string));
      return NULL;
    case KILN_TAG_COMPLEX:
      kiln__pickle_put_global(out, "builtins\ncomplex");
      put_double(out, v.u.complex->re);
      put_double(out, v.u.complex->im);
      kiln_text_puts(&out->text, "\x86R");
      return NULL;
    default: break;
  }
  kiln_text name = kiln_text_in(out->arena);
  kiln_ivalue_type_name(&name, v);
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "a value of type %s cannot be saved", name.data);
}

/* -- The memo -- */

void kiln__pickle_put_memo(kiln_pickle_out *out, const void *address) {
  uint32_t index = out->memo_count++;
  kiln__pickle_put_byte(out, index <= UINT8_MAX ? 'q' : 'r');
  put_number(out, index, index <= UINT8_MAX ? 1 : 4);
  kiln_map_set_ptr(&out->memo, address, (void *)((uintptr_t)index + 1));
}

bool kiln__pickle_put_from_memo(kiln_pickle_out *out, const void *address) {
  uintptr_t found = (uintptr_t)kiln_map_find_ptr(&out->memo, address);
  if (!found) return false;
  uint64_t index = found - 1;
  kiln__pickle_put_byte(out, index <= UINT8_MAX ? 'h' : 'j');
  put_number(out, index, index <= UINT8_MAX ? 1 : 4);
  return true;
}

kiln_status *kiln__pickle_check_depth(int depth) {
  if (depth <= KILN_PICKLE_MAX_DEPTH) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "values nested deeper than %d cannot be saved",
                    KILN_PICKLE_MAX_DEPTH);
}

/* -- Tensors -- */

/* Dtypes for which torch.save has no typed storage: _rebuild_tensor_v3 over untyped bytes. */
static bool is_untyped(const kiln_pickle_out *out, kiln_dtype dtype) {
  return !out->for_script &&
         (dtype == KILN_DTYPE_C32 || dtype == KILN_DTYPE_F8E5M2 || dtype == KILN_DTYPE_F8E4M3 ||
          dtype == KILN_DTYPE_U16 || dtype == KILN_DTYPE_U32 || dtype == KILN_DTYPE_U64);
}

/* A persistent id: storage `index` as one of elements of the dtype. */
static void put_storage_id(kiln_pickle_out *out, const kiln_storage *storage, int index,
                           kiln_dtype dtype) {
  const bool untyped = is_untyped(out, dtype);
  kiln__pickle_put_byte(out, '(');
  kiln__pickle_put_string(out, KILN_STR("storage"));
  kiln__pickle_put_global(
      out, untyped ? "torch.storage\nUntypedStorage"
                   : kiln_arena_printf(out->arena, "torch\n%sStorage", kiln_dtype_ir_name(dtype)));
  kiln__pickle_put_string(out, kiln_str_from(kiln_arena_printf(out->arena, "%d", index)));
  kiln__pickle_put_string(out, KILN_STR("cpu"));
  kiln__pickle_put_int(out, (int64_t)(storage->bytes / (untyped ? 1 : kiln_dtype_size(dtype))));
  kiln_text_puts(&out->text, "tQ");
}

static int add_storage(kiln_pickle_out *out, kiln_storage *storage) {
  kiln_vec_push(out->arena, &out->storages, storage);
  return out->storages.count - 1;
}

/* TorchScript's reader makes a storage for each persistent id that it meets, so a storage that is
 * there already comes from the memo. Its dtype belongs to it: views of another dtype get a copy.
 * torch.load knows storages by their numbers. */
static void put_storage(kiln_pickle_out *out, kiln_storage *storage, kiln_dtype dtype) {
  if (out->for_script) {
    const void *key = (const void *)((uintptr_t)storage ^ ((uintptr_t)(dtype + 1) << 56));
    if (kiln__pickle_put_from_memo(out, key)) return;
    put_storage_id(out, storage, add_storage(out, storage), dtype);
    kiln__pickle_put_memo(out, key);
    return;
  }
  uintptr_t number = (uintptr_t)kiln_map_find_ptr(&out->numbers, storage);
  if (!number) {
    number = (uintptr_t)add_storage(out, storage) + 1;
    kiln_map_set_ptr(&out->numbers, storage, (void *)number);
  }
  put_storage_id(out, storage, (int)number - 1, dtype);
}

/* A tuple of sizes or strides. */
static void put_dims(kiln_pickle_out *out, const int64_t *dims, int rank) {
  kiln__pickle_put_byte(out, '(');
  for (int i = 0; i < rank; i++) kiln__pickle_put_int(out, dims[i]);
  kiln__pickle_put_byte(out, 't');
}

/* (scheme, scale, zero point), or (scheme, scales, zero points, axis). */
static kiln_status *put_quant(kiln_pickle_out *out, const kiln_quant *quant) {
  const bool channels = quant->scheme == KILN_QSCHEME_PER_CHANNEL;
  kiln__pickle_put_byte(out, '(');
  kiln__pickle_put_global(out, channels ? "torch\nper_channel_affine" : "torch\nper_tensor_affine");
  if (!channels) {
    put_double(out, quant->scale);
    kiln__pickle_put_int(out, quant->zero_point);
  }
  for (int i = 0; i < 2 && channels; i++) {
    kiln_tensor *column = NULL;
    kiln_vec_reserve(out->arena, &out->held, out->held.count + 1);
    KILN_TRY(kiln_quant_column(quant, i == 1, &column));
    out->held.data[out->held.count++] = kiln_of_tensor(column);
    KILN_TRY(kiln__pickle_put_tensor(out, column));
  }
  if (channels) kiln__pickle_put_int(out, quant->axis);
  kiln__pickle_put_byte(out, 't');
  return NULL;
}

static kiln_status *check_tensor(const kiln_pickle_out *out, const kiln_tensor *tensor) {
  const kiln_code code = out->for_script ? KILN_UNSUPPORTED : KILN_INVALID_ARGUMENT;
  const kiln_dtype dtype = kiln_tensor_dtype(tensor);
  if (kiln_tensor_is_structured(tensor)) {
    return KILN_ERROR(code, "a sparse or nested tensor cannot be saved");
  }
  if ((kiln_dtype_is_quant(dtype) && !kiln_tensor_quant(tensor)) ||
      tensor->key.f.device_kind != KILN_DEVICE_CPU) {
    return KILN_ERROR(code, "a tensor of dtype %s on device %d cannot be saved",
                      kiln_dtype_name(dtype), tensor->key.f.device_kind);
  }
  return NULL;
}

kiln_status *kiln__pickle_put_tensor(kiln_pickle_out *out, kiln_tensor *tensor) {
  if (kiln__pickle_put_from_memo(out, tensor)) return NULL;
  if (kiln_tensor_is_undefined(tensor) || !tensor->storage) {
    kiln__pickle_put_byte(out, 'N');
    return NULL;
  }
  KILN_TRY(check_tensor(out, tensor));
  const kiln_dtype dtype = kiln_tensor_dtype(tensor);
  const bool untyped = is_untyped(out, dtype);
  const kiln_quant *quant = kiln_tensor_quant(tensor);
  kiln__pickle_put_global(out, quant     ? "torch._utils\n_rebuild_qtensor"
                               : untyped ? "torch._utils\n_rebuild_tensor_v3"
                                         : "torch._utils\n_rebuild_tensor_v2");
  kiln__pickle_put_byte(out, '(');
  put_storage(out, tensor->storage, dtype);
  kiln__pickle_put_int(out, tensor->offset);
  put_dims(out, kiln_tensor_sizes(tensor), kiln_tensor_rank(tensor));
  put_dims(out, kiln_tensor_strides(tensor), kiln_tensor_rank(tensor));
  if (quant) KILN_TRY(put_quant(out, quant));
  kiln__pickle_put_bool(out, tensor->key.f.requires_grad);
  kiln__pickle_put_global(out, "collections\nOrderedDict");
  kiln_text_puts(&out->text, ")R");
  if (untyped) {
    kiln__pickle_put_global(out,
                            kiln_arena_printf(out->arena, "torch\n%s", kiln_dtype_name(dtype)));
  }
  kiln_text_puts(&out->text, "tR");
  kiln__pickle_put_memo(out, tensor);
  return NULL;
}

kiln_status *kiln__pickle_add_data(const kiln_pickle_out *out, const char *folder,
                                   kiln_zip_writer *zip) {
  for (int i = 0; i < out->storages.count; i++) {
    const kiln_storage *storage = out->storages.data[i];
    const char *name = kiln_arena_printf(out->arena, "%s/%d", folder, i);
    KILN_TRY(kiln_zip_writer_add(zip, kiln_str_from(name), storage->data, storage->bytes, false));
  }
  return NULL;
}
