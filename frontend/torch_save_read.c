/* torch_save_read.c: torch.save archives to values. */
#include "frontend/formats.h"
#include "frontend/pickle.h"
#include "frontend/torch_save.h"

typedef struct reader {
  kiln_env *env;
  kiln_type_table *types;
  kiln_mapping *mapping;
  const kiln_torch_save_options *options;
  kiln_budget budget;
  kiln_arena *arena;
  kiln_zip *zip;
  kiln_ivalue value;
} reader;

static kiln_status *read_archive(reader *r) {
  r->arena = kiln_arena_scoped(r->env->mem);
  KILN_TRY(kiln_format_refuse_values(r->mapping->data, r->mapping->size));
  kiln_pickle_hooks hooks = {.budget = &r->budget};
  KILN_TRY(
      kiln_device_map_parse(r->arena, r->options ? r->options->map_device : NULL, &hooks.devices));
  kiln_zip_options options = {.budget = &r->budget, .crc_warns = true};
  KILN_TRY(kiln_zip_open(r->arena, r->mapping, &options, &r->zip));
  kiln_zip_entry *order = kiln_zip_find(r->zip, KILN_STR("byteorder"));
  if (order) {
    kiln_str text;
    KILN_TRY(kiln_zip_read(r->zip, order, &text));
    if (!kiln_str_starts(text, "little")) {
      return KILN_ERROR(KILN_INVALID_FILE, "the archive is big-endian, which is not supported");
    }
  }
  kiln_status *status =
      kiln_pickle_read(r->env, r->arena, r->types, r->zip, r->mapping, "data", &hooks, &r->value);
  if (status && kiln_zip_find(r->zip, KILN_STR("constants.pkl"))) {
    status = kiln_status_note(status, "this is a TorchScript archive, not a file of values");
  }
  if (status) return status;
  KILN_TRY(kiln_zip_check_all(r->zip));
  kiln_zip_report(r->zip, r->env);
  kiln_device_map_report(hooks.devices, r->env);
  kiln_pickle_infer_types(r->types, r->value);
  return NULL;
}
static kiln_status *try_archive(reader *r) { KILN_PROTECT(read_archive(r)); }

kiln_status *kiln_torch_save_read(kiln_env *env, kiln_type_table *types, kiln_mapping *mapping,
                                  const kiln_torch_save_options *options, kiln_ivalue *out_value) {
  reader r = {.env = env, .types = types, .mapping = mapping, .options = options};
  kiln_budget_begin(&r.budget, "the reading", env->mem, options ? &options->limits : NULL);
  kiln_budget *outer = kiln_budget_enter(&r.budget);
  kiln_status *status = try_archive(&r);
  kiln_budget_leave(outer);
  if (status) {
    kiln_ivalue_release(r.value);
    return status;
  }
  *out_value = r.value;
  return NULL;
}
