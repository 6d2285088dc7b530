/* save.c: the members of a TorchScript archive, in torch's order: extra files, data, code,
 * constants, version, byteorder. */
#include "frontend/torchscript/save.h"

#include "frontend/torchscript/pickle_write.h"
#include "frontend/zip.h"
#include "frontend/zip_write.h"

typedef struct save {
  kiln_env *env;
  const kiln_torchscript *script;
  kiln_ivalue root;
  const kiln_torchscript_save_options *options;
  const kiln_sink *sink;
  kiln_arena *arena;
  kiln_zip *in;
  kiln_zip_writer *out;
  kiln_pickle_writer pickle;
} save;

static kiln_status *add_extras(save *s) {
  const kiln_torchscript_save_options *o = s->options;
  for (int i = 0; i < o->extra_count; i++) {
    const kiln_extra *extra = &o->extras[i];
    if (!extra->name || !*extra->name || (extra->size > 0 && !extra->data)) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "an extra file needs a name and its bytes");
    }
    const char *name = kiln_arena_printf(s->arena, "extra/%s", extra->name);
    KILN_TRY(kiln_zip_writer_add(s->out, kiln_str_from(name), extra->data, extra->size, false));
  }
  return NULL;
}

static kiln_status *copy_record(save *s, kiln_zip_record *record, bool deflate) {
  kiln_str data;
  KILN_TRY(kiln_zip_read(s->in, record, &data));
  return kiln_zip_writer_add(s->out, record->name, data.data, data.len, deflate);
}

/* Every member of the loaded archive below `folder` that is not there already. */
static kiln_status *copy_folder(save *s, const char *folder, bool deflate) {
  for (int i = 0; i < kiln_zip_count(s->in); i++) {
    kiln_zip_record *record = kiln_zip_at(s->in, i);
    if (!kiln_str_starts(record->name, folder)) continue;
    if (kiln_zip_writer_has(s->out, record->name)) continue;
    KILN_TRY(copy_record(s, record, deflate));
  }
  return NULL;
}

static kiln_status *add_members(save *s) {
  KILN_TRY(add_extras(s));
  if (!s->options->drop_extras) KILN_TRY(copy_folder(s, "extra/", false));
  KILN_TRY(kiln__pickle_add_data(&s->pickle.out, s->out));
  const kiln_text *pickle = &s->pickle.out.text;
  KILN_TRY(kiln_zip_writer_add(s->out, KILN_STR("data.pkl"), pickle->data, pickle->len, false));
  KILN_TRY(copy_folder(s, "code/", true));
  KILN_TRY(copy_folder(s, "constants/", false));
  kiln_zip_record *constants = kiln_zip_find(s->in, KILN_STR("constants.pkl"));
  if (constants) KILN_TRY(copy_record(s, constants, false));
  const char *version = kiln_arena_printf(s->arena, "%lld\n", (long long)s->script->version);
  KILN_TRY(kiln_zip_writer_add(s->out, KILN_STR("version"), version, strlen(version), false));
  KILN_TRY(kiln_zip_writer_add(s->out, KILN_STR("byteorder"), "little", 6, false));
  return kiln_zip_writer_finish(s->out);
}

static kiln_status *save_all(void *arg) {
  save *s = arg;
  if (s->script->mapping->size == 0) {
    return KILN_ERROR(KILN_UNSUPPORTED, "a model that was not loaded from an archive has no "
                                        "source to save");
  }
  kiln_zip_options zip_options = {.crc_warns = true}; /* the load has judged them */
  KILN_TRY(kiln_zip_open(s->arena, s->script->mapping, &zip_options, &s->in));
  s->pickle.options = s->options;
  KILN_TRY(kiln__pickle_write(&s->pickle, s->arena, s->root));
  s->out = kiln_zip_writer_create(s->arena, s->sink, "archive");
  return add_members(s);
}

kiln_status *kiln_torchscript_save(kiln_env *env, const kiln_torchscript *script, kiln_ivalue root,
                                   const kiln_torchscript_save_options *options,
                                   const kiln_sink *sink) {
  save s = {.env = env, .script = script, .root = root, .options = options, .sink = sink};
  KILN_TRY(kiln_arena_create(env->mem, &s.arena));
  kiln_status *status = kiln_arena_run(s.arena, save_all, &s);
  kiln__pickle_writer_deinit(&s.pickle);
  kiln_zip_close(s.in);
  kiln_arena_destroy(s.arena);
  return status;
}
