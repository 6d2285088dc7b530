/* files.c: values from and to files: torch.save archives, .npy and .npz. */
#include "api/internal.h"
#include "frontend/npy.h"
#include "frontend/torch_save.h"

static bool is_npy(const char *path) { return kiln_str_ends(kiln_str_from(path), ".npy"); }

static kiln_status *read_archive(kiln_context *context, kiln_mapping *bytes, kiln_ivalue *out) {
  kiln_env *env = context->env;
  char rules[KILN_FLAG_STRING_MAX];
  pthread_mutex_lock(&context->lock);
  memcpy(rules, env->flags.map_device.text, sizeof rules);
  pthread_mutex_unlock(&context->lock);
  const kiln_torch_save_options options = {.map_device = rules};
  return kiln_torch_save_read(env, kiln_registry_types(context->registry), bytes, &options, out);
}

/* What the file is, it says itself but for .npz, which begins as other archives do. */
static kiln_status *read_bytes(kiln_context *context, const char *path, kiln_mapping *bytes,
                               kiln_ivalue *out) {
  const kiln_str text = kiln_str_make(bytes->data, bytes->size);
  if (kiln_str_ends(kiln_str_from(path), ".npz")) {
    kiln_dict *dict = NULL;
    KILN_TRY(kiln_npz_read(context->env, bytes, &dict));
    *out = kiln_of_box(dict);
  } else if (kiln_npy_is(text)) {
    kiln_tensor *tensor = NULL;
    KILN_TRY(kiln_npy_read(context->env, text, &tensor));
    *out = kiln_of_tensor(tensor);
  } else {
    return read_archive(context, bytes, out);
  }
  return NULL;
}

kiln_status *kiln_value_read(kiln_context *context, const char *path, kiln_value **out_value) {
  KILN_NEEDS(context && out_value);
  kiln_ivalue v = kiln_none();
  kiln_env *env = context->env;
  *out_value = NULL;
  if (!path) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a path is needed");
  if (is_npy(path)) {
    kiln_tensor *tensor = NULL;
    KILN_TRY(kiln_npy_read_file(env, path, &tensor));
    return kiln__value_wrap(context, NULL, kiln_of_tensor(tensor), out_value);
  }
  /* Copied, so that values do not depend on the file any more. */
  kiln_mapping *bytes = NULL;
  KILN_TRY(kiln_mapping_open(env->mem, path, &(kiln_file_options){.mode = KILN_MAP_COPY}, &bytes));
  kiln_status *status = read_bytes(context, path, bytes, &v);
  kiln_owner_release(&bytes->owner);
  if (status) return kiln_status_note(status, "reading %s", path);
  return kiln__value_wrap(context, NULL, v, out_value);
}

kiln_status *kiln_value_write(const kiln_value *value, const char *path) {
  KILN_NEEDS(value);
  if (!path) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a path is needed");
  KILN_TRY(kiln__value_readable(value));
  if (!is_npy(path)) return kiln_torch_save_write(value->context->env, value->v, path);
  if (value->v.tag != KILN_TAG_TENSOR) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "only a tensor can be written as .npy");
  }
  return kiln_npy_write_file(value->v.u.tensor, path);
}
