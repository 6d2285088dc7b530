/* npz.c: .npz: .npy files as the entries of a zip archive that has no folder. */
#include "frontend/npy.h"
#include "frontend/zip.h"

typedef struct reader {
  kiln_env *env;
  kiln_mapping *mapping;
  kiln_dict *dict;
} reader;

static kiln_status *add_member(reader *r, kiln_str name, kiln_str bytes) {
  kiln_string *key = NULL;
  kiln_tensor *tensor = NULL;
  KILN_TRY(kiln_npy_read(r->env, bytes, &tensor));
  kiln_status *status = kiln_string_create(r->env->mem, name, &key);
  if (!status) return kiln_dict_set(r->dict, kiln_of_box(key), kiln_of_tensor(tensor));
  kiln_tensor_release(tensor);
  return status;
}

static kiln_status *read_members(reader *r) {
  static const kiln_str end = KILN_STR(".npy");
  kiln_zip *zip;
  KILN_TRY(kiln_zip_open(kiln_arena_scoped(r->env->mem), r->mapping,
                         &(kiln_zip_options){.flat = true}, &zip));
  for (int i = 0; i < kiln_zip_count(zip); i++) {
    kiln_zip_entry *entry = kiln_zip_at(zip, i);
    const kiln_str name = entry->name;
    kiln_str bytes;
    if (name.len <= end.len || !kiln_str_ends(name, end.data)) {
      return KILN_ERROR(KILN_INVALID_FILE, ".npz: member '" KILN_STR_FMT "' is no .npy",
                        KILN_STR_ARG(name));
    }
    KILN_TRY(kiln_zip_read(zip, entry, &bytes));
    KILN_TRY_NOTE(add_member(r, kiln_str_make(name.data, name.len - end.len), bytes),
                  "in member '" KILN_STR_FMT "'", KILN_STR_ARG(name));
  }
  return NULL;
}
static kiln_status *try_members(reader *r) { KILN_PROTECT(read_members(r)); }

kiln_status *kiln_npz_read(kiln_env *env, kiln_mapping *mapping, kiln_dict **out_dict) {
  reader r = {.env = env, .mapping = mapping};
  *out_dict = NULL;
  kiln_status *status = kiln_dict_create(env->mem, kiln_type_basic(KILN_TYPE_STR),
                                         kiln_type_basic(KILN_TYPE_TENSOR), &r.dict);
  if (!status) status = try_members(&r);
  if (status) {
    if (r.dict) kiln_ivalue_release(kiln_of_box(r.dict));
    return status;
  }
  *out_dict = r.dict;
  return NULL;
}
