/* save.c: the members of a TorchScript archive, in torch's order: extra files, data, code,
 * constants, version, byteorder. */
#include "frontend/torchscript/save.h"

#include "frontend/torchscript/pickle_write.h"
#include "frontend/torchscript/python_print.h"
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
  bool prints; /* source and constants are made anew */
  kiln_printed printed;
  kiln_pickle_writer constants_pickle;
  kiln_tuple *constants; /* owned */
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

static kiln_status *copy_entry(save *s, kiln_zip_entry *entry, bool deflate) {
  kiln_str data;
  KILN_TRY(kiln_zip_read(s->in, entry, &data));
  return kiln_zip_writer_add(s->out, entry->name, data.data, data.len, deflate);
}

/* Every member of the loaded archive below `folder` that is not there already. */
static kiln_status *copy_folder(save *s, const char *folder, bool deflate) {
  for (int i = 0; i < kiln_zip_count(s->in); i++) {
    kiln_zip_entry *entry = kiln_zip_at(s->in, i);
    if (!kiln_str_starts(entry->name, folder)) continue;
    if (kiln_zip_writer_has(s->out, entry->name)) continue;
    KILN_TRY(copy_entry(s, entry, deflate));
  }
  return NULL;
}

static kiln_status *add_pickle(save *s, const kiln_pickle_out *out, const char *folder) {
  KILN_TRY(kiln__pickle_add_data(out, folder, s->out));
  const kiln_str name = kiln_str_from(kiln_arena_printf(s->arena, "%s.pkl", folder));
  return kiln_zip_writer_add(s->out, name, out->text.data, out->text.len, false);
}

/* Source and constants of the loaded archive, byte for byte. */
static kiln_status *copy_source(save *s) {
  KILN_TRY(copy_folder(s, "code/", true));
  KILN_TRY(copy_folder(s, "constants/", false));
  kiln_zip_entry *constants = kiln_zip_find(s->in, KILN_STR("constants.pkl"));
  return constants ? copy_entry(s, constants, false) : NULL;
}

/* The same as printed from the graphs. */
static kiln_status *add_printed(save *s) {
  for (int i = 0; i < s->printed.files.count; i++) {
    const kiln_printed_file *file = s->printed.files.data[i];
    KILN_TRY(kiln_zip_writer_add(s->out, file->name, file->text.data, file->text.len, true));
  }
  return add_pickle(s, &s->constants_pickle.out, "constants");
}

static kiln_status *add_members(save *s) {
  KILN_TRY(add_extras(s));
  if (s->in && !s->options->drop_extras) KILN_TRY(copy_folder(s, "extra/", false));
  KILN_TRY(add_pickle(s, &s->pickle.out, "data"));
  KILN_TRY(s->prints ? add_printed(s) : copy_source(s));
  const int64_t number = s->prints ? s->printed.version : s->script->version;
  const char *version = kiln_arena_printf(s->arena, "%lld\n", (long long)number);
  KILN_TRY(kiln_zip_writer_add(s->out, KILN_STR("version"), version, strlen(version), false));
  if (s->prints || !s->script->has_early_calls) { /* else the source keeps its old meaning */
    KILN_TRY(kiln_zip_writer_add(s->out, KILN_STR("byteorder"), "little", 6, false));
  }
  return kiln_zip_writer_finish(s->out);
}

static kiln_status *print_source(save *s) {
  KILN_TRY(kiln__python_print(s->arena, s->root, &s->printed));
  const int count = s->printed.constants.count;
  KILN_TRY(kiln_tuple_create(s->env->mem, NULL, count, &s->constants));
  for (int i = 0; i < count; i++) {
    s->constants->items[i] = kiln_ivalue_retain(s->printed.constants.data[i]);
  }
  s->constants_pickle.options = s->options;
  return kiln__pickle_write(&s->constants_pickle, s->arena, kiln_of_box(s->constants));
}

static kiln_status *save_all(save *s) {
  s->arena = kiln_arena_scoped(s->env->mem);
  kiln_mapping *mapping = s->script->mapping;
  s->prints = s->options->reprint || mapping->size == 0;
  if (s->prints) KILN_TRY(print_source(s));
  kiln_zip_options zip_options = {.crc_warns = true}; /* the load has judged them */
  if (mapping->size > 0) KILN_TRY(kiln_zip_open(s->arena, mapping, &zip_options, &s->in));
  s->pickle.options = s->options;
  KILN_TRY(kiln__pickle_write(&s->pickle, s->arena, s->root));
  s->out = kiln_zip_writer_create(s->arena, s->sink, "archive");
  return add_members(s);
}
static kiln_status *try_all(save *s) { KILN_PROTECT(save_all(s)); }

kiln_status *kiln_torchscript_save(kiln_env *env, const kiln_torchscript *script, kiln_ivalue root,
                                   const kiln_torchscript_save_options *options,
                                   const kiln_sink *sink) {
  save s = {.env = env, .script = script, .root = root, .options = options, .sink = sink};
  kiln_status *status = try_all(&s);
  if (s.constants) kiln_ivalue_release(kiln_of_box(s.constants));
  return status;
}
