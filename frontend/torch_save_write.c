/* torch_save_write.c: values to torch.save archives.
 *
 * The pickle is made in memory first, then the entries are written. Containers and tensors that
 * occur twice are memoised, which keeps aliases; since cycles cannot be memoised in time they are
 * refused by depth. */
#include "frontend/pickle_out.h"
#include "frontend/torch_save.h"

typedef struct writer {
  kiln_mem *mem;
  kiln_ivalue value;
  kiln_pickle_out out;
} writer;

/* -- The pickle -- */

static kiln_status *put_value(writer *w, kiln_ivalue v, int depth);

static kiln_status *put_list(writer *w, const kiln_list *list, int depth) {
  if (kiln__pickle_put_from_memo(&w->out, list)) return NULL;
  kiln__pickle_put_byte(&w->out, ']');
  kiln__pickle_put_memo(&w->out, list);
  kiln__pickle_put_byte(&w->out, '(');
  for (int64_t i = 0; i < list->count; i++) KILN_TRY(put_value(w, list->items[i], depth + 1));
  kiln__pickle_put_byte(&w->out, 'e');
  return NULL;
}

static kiln_status *put_dict(writer *w, const kiln_dict *dict, int depth) {
  if (kiln__pickle_put_from_memo(&w->out, dict)) return NULL;
  kiln__pickle_put_byte(&w->out, '}');
  kiln__pickle_put_memo(&w->out, dict);
  kiln__pickle_put_byte(&w->out, '(');
  int64_t index = 0;
  kiln_ivalue *key, *value;
  while (kiln_dict_next(dict, &index, &key, &value)) {
    KILN_TRY(put_value(w, *key, depth + 1));
    KILN_TRY(put_value(w, *value, depth + 1));
  }
  kiln__pickle_put_byte(&w->out, 'u');
  return NULL;
}

static kiln_status *put_tuple(writer *w, const kiln_tuple *tuple, int depth) {
  if (kiln__pickle_put_from_memo(&w->out, tuple)) return NULL;
  kiln__pickle_put_byte(&w->out, '(');
  for (int64_t i = 0; i < tuple->count; i++) KILN_TRY(put_value(w, tuple->items[i], depth + 1));
  kiln__pickle_put_byte(&w->out, 't');
  kiln__pickle_put_memo(&w->out, tuple);
  return NULL;
}

static void put_device(writer *w, kiln_device_id device) {
  kiln__pickle_put_global(&w->out, "torch\ndevice");
  kiln__pickle_put_byte(&w->out, '(');
  kiln__pickle_put_string(&w->out, kiln_str_from(kiln_device_kind_name(device.kind)));
  if (device.index >= 0) kiln__pickle_put_int(&w->out, device.index);
  kiln_text_puts(&w->out.text, "tR");
}

static kiln_status *put_value(writer *w, kiln_ivalue v, int depth) {
  KILN_TRY(kiln__pickle_check_depth(depth));
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_DEVICE: put_device(w, v.u.device); return NULL;
    case KILN_TAG_TENSOR: return kiln__pickle_put_tensor(&w->out, v.u.tensor);
    case KILN_TAG_LIST: return put_list(w, v.u.list, depth);
    case KILN_TAG_TUPLE: return put_tuple(w, v.u.tuple, depth);
    case KILN_TAG_DICT: return put_dict(w, v.u.dict, depth);
    default: return kiln__pickle_put_leaf(&w->out, v);
  }
}

/* -- The archive -- */

static kiln_status *write_archive(writer *w, const kiln_sink *sink) {
  kiln_arena *arena = kiln_arena_scoped(w->mem);
  kiln__pickle_out_begin(&w->out, arena, false);
  KILN_TRY(put_value(w, w->value, 0));
  kiln__pickle_put_byte(&w->out, '.');
  const kiln_text *pickle = &w->out.text;
  kiln_zip_writer *zip = kiln_zip_writer_create(arena, sink, "archive");
  KILN_TRY(kiln_zip_writer_add(zip, KILN_STR("data.pkl"), pickle->data, pickle->len, false));
  KILN_TRY(kiln_zip_writer_add(zip, KILN_STR("byteorder"), "little", 6, false));
  KILN_TRY(kiln__pickle_add_data(&w->out, "data", zip));
  KILN_TRY(kiln_zip_writer_add(zip, KILN_STR("version"), "3\n", 2, false));
  return kiln_zip_writer_finish(zip);
}

static kiln_status *try_archive(const kiln_sink *sink, void *w) {
  KILN_PROTECT(write_archive(w, sink));
}

kiln_status *kiln_torch_save_write(kiln_env *env, kiln_ivalue value, const char *path) {
  writer w = {.mem = env->mem, .value = value};
  return kiln_file_write(env->mem, path, try_archive, &w);
}
