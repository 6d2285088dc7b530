/* pickle_out.c: opcodes, in the shortest form that both of torch's own picklers use too. */
#include "frontend/pickle_out.h"

#include "frontend/pickle.h"

static void release_held(void *arg) {
  kiln_pickle_out *out = arg;
  for (int i = 0; i < out->held.count; i++) kiln_ivalue_release(out->held.data[i]);
}

void kiln__pickle_out_begin(kiln_pickle_out *out, kiln_arena *arena) {
  *out = (kiln_pickle_out){.arena = arena};
  kiln_scope_defer(&out->releasing, release_held, out);
  kiln_text_init(&out->text, arena);
  kiln_map_init(&out->memo, arena);
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

void kiln__pickle_put_dims(kiln_pickle_out *out, const int64_t *dims, int rank) {
  kiln__pickle_put_byte(out, '(');
  for (int i = 0; i < rank; i++) kiln__pickle_put_int(out, dims[i]);
  kiln__pickle_put_byte(out, 't');
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
  kiln_text name;
  kiln_text_init(&name, out->arena);
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

/* -- Storages -- */

const char *kiln__pickle_storage_type(kiln_dtype dtype) {
  switch (dtype) {
#define TYPE(id, number, size, storage, python, short_name) \
  case KILN_DTYPE_##id: return "torch\n" storage "Storage";
    KILN_DTYPE_LIST(TYPE)
#undef TYPE
    default: return NULL;
  }
}

void kiln__pickle_put_storage(kiln_pickle_out *out, const char *type, int index, int64_t numel) {
  kiln__pickle_put_byte(out, '(');
  kiln__pickle_put_string(out, KILN_STR("storage"));
  kiln__pickle_put_global(out, type);
  kiln__pickle_put_string(out, kiln_str_from(kiln_arena_printf(out->arena, "%d", index)));
  kiln__pickle_put_string(out, KILN_STR("cpu"));
  kiln__pickle_put_int(out, numel);
  kiln_text_puts(&out->text, "tQ");
}

kiln_status *kiln__pickle_put_quant(kiln_pickle_out *out, const kiln_quant *quant,
                                    kiln_status *(*put_tensor)(void *writer, kiln_tensor *tensor),
                                    void *writer) {
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
    KILN_TRY(put_tensor(writer, column));
  }
  if (channels) kiln__pickle_put_int(out, quant->axis);
  kiln__pickle_put_byte(out, 't');
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
