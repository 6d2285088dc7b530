/* files.c: values from and to files: torch.save archives, and .npy by its ending. */
#include "api/internal.h"
#include "frontend/npy.h"
#include "frontend/torch_save.h"

static bool is_npy(const char *path) {
  size_t len = strlen(path);
  return len >= 4 && strcmp(path + len - 4, ".npy") == 0;
}

/* A file's bytes in memory of ours, so that values do not depend on the file any more. */
static void destroy_bytes(kiln_owner *owner) {
  kiln_mapping *bytes = (kiln_mapping *)owner;
  kiln_mem *mem = bytes->mem;
  kiln_mem_free(mem, (void *)(uintptr_t)bytes->data, bytes->size);
  kiln_mem_free(mem, bytes, sizeof *bytes);
  kiln_mem_release(mem);
}

static kiln_status *read_bytes(kiln_mem *mem, const char *path, kiln_mapping **out_bytes) {
  kiln_mapping *mapping = NULL;
  KILN_TRY(kiln_mapping_open(mem, path, &mapping));
  kiln_mapping *bytes = kiln_mem_alloc_zero(mem, sizeof *bytes);
  void *data = kiln_mem_alloc(mem, mapping->size);
  if (!bytes || !data) {
    if (bytes) kiln_mem_free(mem, bytes, sizeof *bytes);
    if (data) kiln_mem_free(mem, data, mapping->size);
    kiln_owner_release(&mapping->owner);
    return kiln_status_oom();
  }
  memcpy(data, mapping->data, mapping->size);
  kiln_mem_retain(mem);
  *bytes = (kiln_mapping){.owner = {.refs = 1, .destroy = destroy_bytes},
                          .mem = mem,
                          .data = data,
                          .size = mapping->size};
  kiln_owner_release(&mapping->owner);
  *out_bytes = bytes;
  return NULL;
}

kiln_status *kiln_value_read(kiln_context *context, const char *path, kiln_value **out_value) {
  kiln_ivalue v = kiln_none();
  kiln_env *env = context->env;
  *out_value = NULL;
  if (!path) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a path is needed");
  if (is_npy(path)) {
    kiln_tensor *tensor = NULL;
    KILN_TRY(kiln_npy_read_file(env, path, &tensor));
    return kiln__value_wrap(context, NULL, kiln_of_tensor(tensor), out_value);
  }
  kiln_mapping *bytes = NULL;
  KILN_TRY(read_bytes(env->mem, path, &bytes));
  kiln_status *status =
      kiln_torch_save_read(env, kiln_registry_types(context->registry), bytes, &v);
  kiln_owner_release(&bytes->owner);
  if (status) return kiln_status_note(status, "reading %s", path);
  return kiln__value_wrap(context, NULL, v, out_value);
}

kiln_status *kiln_value_write(const kiln_value *value, const char *path) {
  if (!path) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a path is needed");
  if (!is_npy(path)) return kiln_torch_save_write(value->context->env, value->v, path);
  if (value->v.tag != KILN_TAG_TENSOR) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "only a tensor can be written as .npy");
  }
  return kiln_npy_write_file(value->v.u.tensor, path);
}
