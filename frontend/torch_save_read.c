/* torch_save_read.c: torch.save archives to values. */
#include "frontend/pickle.h"
#include "frontend/torch_save.h"

typedef struct reader {
  kiln_env *env;
  kiln_type_table *types;
  kiln_mapping *mapping;
  kiln_arena *arena;
  kiln_zip *zip;
  kiln_ivalue value;
} reader;

static kiln_status *infer(void *arg) {
  reader *r = arg;
  kiln_pickle_infer_types(r->types, r->value);
  return NULL;
}

/* Says what else the file may be. */
static kiln_status *refuse_other_formats(const kiln_mapping *mapping) {
  static const unsigned char legacy[] = {0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46};
  if (mapping->size >= sizeof legacy && memcmp(mapping->data, legacy, sizeof legacy) == 0) {
    return KILN_ERROR(KILN_INVALID_FILE,
                      "a torch.save file of the format before 1.6, which is not supported; save it "
                      "again with a newer torch");
  }
  return NULL;
}

static kiln_status *read_archive(void *arg) {
  reader *r = arg;
  KILN_TRY(refuse_other_formats(r->mapping));
  /* torch.save may write other sums than CRC32 (set_crc32_options), so they tell nothing. */
  kiln_zip_options options = {.ignore_crc = true};
  KILN_TRY(kiln_zip_open(r->arena, r->mapping, &options, &r->zip));
  kiln_zip_record *order = kiln_zip_find(r->zip, KILN_STR("byteorder"));
  if (order) {
    kiln_str text;
    KILN_TRY(kiln_zip_read(r->zip, order, &text));
    if (!kiln_str_starts(text, "little")) {
      return KILN_ERROR(KILN_INVALID_FILE, "the archive is big-endian, which is not supported");
    }
  }
  KILN_TRY(
      kiln_pickle_read(r->env, r->arena, r->types, r->zip, r->mapping, "data", NULL, &r->value));
  return kiln_type_table_run(r->types, infer, r);
}

kiln_status *kiln_torch_save_read(kiln_env *env, kiln_type_table *types, kiln_mapping *mapping,
                                  kiln_ivalue *out_value) {
  reader r = {.env = env, .types = types, .mapping = mapping};
  KILN_TRY(kiln_arena_create(env->mem, &r.arena));
  kiln_status *status = kiln_arena_run(r.arena, read_archive, &r);
  kiln_zip_close(r.zip);
  kiln_arena_destroy(r.arena);
  if (status) {
    kiln_ivalue_release(r.value);
    return status;
  }
  *out_value = r.value;
  return NULL;
}

kiln_status *kiln_torch_save_read_file(kiln_env *env, kiln_type_table *types, const char *path,
                                       kiln_ivalue *out_value) {
  kiln_mapping *mapping = NULL;
  KILN_TRY(kiln_mapping_open(env->mem, path, &mapping));
  kiln_status *status = kiln_torch_save_read(env, types, mapping, out_value);
  kiln_owner_release(&mapping->owner);
  return status ? kiln_status_note(status, "reading '%s'", path) : NULL;
}
