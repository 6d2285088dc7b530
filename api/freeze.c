/* freeze.c: frozen models: a model whose archive was never on a disk.
 *
 * The frozen module is printed as an archive into memory and loaded from there, so that it is a
 * model like any other: with types of its own, and saved byte for byte. */
#include "jit/freeze.h"

#include "api/internal.h"
#include "base/checked.h"
#include "frontend/torchscript/save.h"

/* -- An archive in memory -- */

typedef struct memory_file {
  kiln_mem *mem;
  char *data;
  size_t size, capacity;
} memory_file;

static kiln_status *append(void *user, const void *data, size_t size) {
  memory_file *file = user;
  if (size > file->capacity - file->size) {
    size_t need, capacity;
    if (!kiln_checked_add_size(file->size, size, &need)) return kiln_status_oom();
    capacity = need > SIZE_MAX / 2 ? need : need + need / 2;
    KILN_TRY(kiln_budget_check(kiln_budget_current(), capacity));
    char *grown = kiln_mem_realloc(file->mem, file->data, file->capacity, capacity);
    if (!grown) return kiln_status_oom();
    file->data = grown;
    file->capacity = capacity;
  }
  memcpy(file->data + file->size, data, size);
  file->size += size;
  return NULL;
}

/* `budget` is the thread's, of the options' limits. */
static kiln_status *write_archive(kiln_instance *instance, const kiln_freeze_options *options,
                                  const kiln_budget *budget, const kiln_sink *sink) {
  kiln_model *model = instance->model;
  kiln_frozen_module frozen;
  kiln_env env = kiln__context_env(model->context);
  env.flags = model->flags;
  const kiln_freeze_request request = {options->preserve, options->preserve_count,
                                       options->eval != 0};
  KILN_TRY(kiln_jit_freeze(&env, model->script->unit, instance->root, &request, &frozen));
  kiln_torchscript script = {
      .unit = frozen.unit, .root = frozen.root, .mapping = model->script->mapping};
  kiln__saver saver = {instance, &options->limits, budget->deadline_ns};
  const kiln_torchscript_save_options save = {
      .reprint = true, .get_state = kiln__object_state, .user = &saver};
  kiln_status *status =
      kiln_torchscript_save(model->context->env, &script, frozen.root, &save, sink);
  kiln_frozen_module_deinit(&frozen);
  return status;
}

/* -- Public -- */

kiln_status *kiln_instance_freeze(kiln_instance *instance, const kiln_freeze_options *given,
                                  kiln_model **out_model) {
  KILN_NEEDS(instance && out_model);
  kiln_freeze_options read, *options = &read;
  kiln_mem *mem = instance->model->context->env->mem;
  memory_file file = {.mem = mem};
  const kiln_sink sink = {&file, append};
  kiln_mapping *mapping = NULL;
  *out_model = NULL;
  KILN_ABI_READ(kiln_freeze_options, given, options);
  if (options->preserve_count < 0 || (options->preserve_count > 0 && !options->preserve)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%d names are to be preserved, and none is given",
                      options->preserve_count);
  }
  KILN_TRY(kiln__instance_occupy(instance, "kiln_instance_freeze"));
  kiln_budget budget;
  kiln_budget_begin(&budget, "freezing", mem, &options->limits);
  kiln_budget *outer = kiln_budget_enter(&budget);
  kiln_status *status = write_archive(instance, options, &budget, &sink);
  kiln_budget_leave(outer);
  kiln__instance_vacate(instance);
  if (!status) status = kiln_mapping_wrap(mem, file.data, file.size, &mapping);
  if (status) {
    kiln_mem_free(mem, file.data, file.capacity);
    return status;
  }
  mapping->block = file.capacity; /* it owns the bytes from here on */
  status = kiln__model_load_mapping(instance->model->context, mapping, &options->limits, &budget,
                                    out_model);
  return status ? kiln_status_note(status, "loading the frozen module") : NULL;
}

kiln_status *kiln_model_freeze(kiln_model *model, const kiln_freeze_options *options,
                               kiln_model **out_model) {
  KILN_NEEDS(model && out_model);
  kiln_instance *instance = NULL;
  *out_model = NULL;
  KILN_TRY(kiln_instance_create(model, &instance));
  kiln_status *status = kiln_instance_freeze(instance, options, out_model);
  kiln_instance_release(instance);
  return status;
}
