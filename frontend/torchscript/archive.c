/* archive.c: the whole of a load: container, version, constants, objects, bodies, extra files. */
#include <limits.h>

#include "frontend/formats.h"
#include "frontend/pickle.h"
#include "frontend/torchscript/loader.h"
#include "frontend/torchscript/origins.h"

enum { MIN_VERSION = 1, MAX_VERSION = 10 };

typedef struct load {
  kiln_loader l;
  const kiln_torchscript_options *options;
  KILN_VEC(kiln_pending_call) pending;
} load;

/* -- What kind of file it is -- */

static kiln_status *refuse_other_archives(kiln_zip *zip) {
  int row = INT_MAX;
  if (kiln_zip_find(zip, KILN_STR("constants.pkl"))) return NULL;
  for (int i = 0; i < kiln_zip_count(zip); i++) {
    const int of_entry = kiln_format_of_entry(kiln_zip_at(zip, i)->name);
    if (of_entry < row) row = of_entry;
  }
  KILN_TRY(kiln_format_refuse_row(row));
  return KILN_ERROR(KILN_INVALID_FILE, "no TorchScript archive: it has no constants.pkl");
}

static kiln_status *read_version(kiln_zip *zip, int64_t *out_version) {
  kiln_zip_entry *entry = kiln_zip_find(zip, KILN_STR("version"));
  if (!entry) entry = kiln_zip_find(zip, KILN_STR(".data/version"));
  if (!entry) return KILN_ERROR(KILN_INVALID_FILE, "the archive has no version");
  kiln_str text;
  KILN_TRY(kiln_zip_read(zip, entry, &text));
  while (text.len > 0 && (text.data[text.len - 1] == '\n' || text.data[text.len - 1] == '\r')) {
    text.len--;
  }
  if (!kiln_str_parse_i64(text, out_version)) {
    return KILN_ERROR(KILN_INVALID_FILE, "the archive's version is not a number");
  }
  if (*out_version < MIN_VERSION || *out_version > MAX_VERSION) {
    return KILN_ERROR(KILN_INVALID_FILE, "the archive has version %lld; %d to %d can be read",
                      (long long)*out_version, MIN_VERSION, MAX_VERSION);
  }
  return NULL;
}

/* Before 2.1 there is no such entry, and little is meant. */
static kiln_status *check_byte_order(kiln_zip *zip, bool *out_early) {
  kiln_zip_entry *entry = kiln_zip_find(zip, KILN_STR("byteorder"));
  *out_early = !entry;
  if (!entry) return NULL;
  kiln_str text;
  KILN_TRY(kiln_zip_read(zip, entry, &text));
  if (kiln_str_starts(text, "little")) return NULL;
  return KILN_ERROR(KILN_INVALID_FILE, "the archive is not little-endian, which is not supported");
}

/* -- Hooks of the pickle -- */

static kiln_status *find_class(void *user, kiln_str qualname, const kiln_type **out_type) {
  load *ld = user;
  kiln_found found;
  if (kiln__is_custom_class(qualname) && !ld->l.lenient) {
    return KILN_ERROR(KILN_UNSUPPORTED,
                      "objects of the custom class " KILN_STR_FMT " are not supported",
                      KILN_STR_ARG(qualname));
  }
  KILN_TRY(kiln__loader_find(&ld->l, qualname, &found));
  if (!found.type || !found.type->cls || found.type->kind == KILN_TYPE_INTERFACE) {
    return KILN_ERROR(KILN_INVALID_FILE, "the archive has no code for class '" KILN_STR_FMT "'",
                      KILN_STR_ARG(qualname));
  }
  *out_type = found.type;
  return NULL;
}

static kiln_status *parse_type(void *user, kiln_str text, const kiln_type **out_type) {
  load *ld = user;
  kiln_source *source = KILN_NEW(ld->l.ast_arena, kiln_source);
  source->name = KILN_STR("a type in a pickle");
  source->text = kiln_arena_str(ld->l.ast_arena, text);
  source->first_line = 1;
  kiln_ast *ast;
  KILN_TRY(kiln_ast_parse_expression(ld->l.ast_arena, source, &ast));
  return kiln__resolve_type(&ld->l, source, ast, out_type);
}

static bool wants_state(void *user, const kiln_type *type) {
  (void)user;
  if (kiln__is_custom_class(type->cls->qualname)) return true;
  return kiln_class_find_method(type, KILN_STR("__getstate__")) &&
         kiln_class_find_method(type, KILN_STR("__setstate__"));
}

static kiln_status *set_state(void *user, kiln_ivalue object, kiln_ivalue state) {
  load *ld = user;
  if (kiln__is_custom_class(object.u.object->type->cls->qualname)) return NULL; /* of a look only */
  kiln_vec_reserve(ld->l.arena, &ld->pending, ld->pending.count + 1);
  kiln_pending_call call = {
      .function = kiln_class_find_method(object.u.object->type, KILN_STR("__setstate__")),
      .object = kiln_ivalue_retain(object),
      .state = kiln_ivalue_retain(state)};
  ld->pending.data[ld->pending.count++] = call;
  ld->l.model->pending = ld->pending.data;
  ld->l.model->pending_count = ld->pending.count;
  return NULL;
}

static kiln_status *check_pickle(void *user, size_t bytes) {
  load *ld = user;
  ld->l.object_bytes = bytes;
  return kiln__loader_check(&ld->l, 0);
}

/* -- Steps -- */

static kiln_status *read_pickle(load *ld, const char *name, kiln_ivalue *out_value) {
  kiln_loader *l = &ld->l;
  kiln_pickle_hooks hooks = {.user = ld,
                             .budget = &l->budget,
                             .devices = l->model->devices,
                             .quantised = &l->unit->quantised,
                             .find_class = find_class,
                             .parse_type = parse_type,
                             .wants_state = wants_state,
                             .set_state = set_state,
                             .check = check_pickle};
  return kiln_pickle_read(l->env, l->arena, l->types, l->zip, l->mapping, name, &hooks, out_value);
}

static kiln_status *read_constants(load *ld) {
  kiln_ivalue *constants = &ld->l.model->constants;
  KILN_TRY(read_pickle(ld, "constants", constants));
  ld->l.constants = *constants;
  if (constants->tag != KILN_TAG_TUPLE) {
    return KILN_ERROR(KILN_INVALID_FILE, "constants.pkl holds no tuple");
  }
  (void)kiln_pickle_settle_types(ld->l.types, *constants);
  return NULL;
}

static kiln_status *read_root(load *ld) {
  KILN_TRY(read_pickle(ld, "data", &ld->l.model->root));
  if (ld->l.model->root.tag == KILN_TAG_OBJECT) return NULL;
  return KILN_ERROR(KILN_INVALID_FILE, "data.pkl holds no module");
}

/* What __setstate__ gets must be what it declares. */
static kiln_status *check_pending(load *ld) {
  for (int i = 0; i < ld->pending.count; i++) {
    kiln_pending_call *call = &ld->pending.data[i];
    KILN_TRY(kiln__loader_schema(&ld->l, call->function));
    const kiln_schema *schema = call->function->schema;
    if (schema->arg_count < 2) {
      return KILN_ERROR(KILN_INVALID_FILE, "%s takes no state", call->function->qualname);
    }
    KILN_TRY(kiln_pickle_restore_types(ld->l.env->mem, &call->state, schema->args[1].type));
    if (!kiln_ivalue_matches(call->state, schema->args[1].type)) {
      return KILN_ERROR(KILN_INVALID_FILE, "the state for %s is not of its declared type",
                        call->function->qualname);
    }
    (void)kiln_pickle_settle_types(ld->l.types, call->state);
  }
  return NULL;
}

/* The entries below `folder`, named without their first `skip` bytes. */
static kiln_status *read_folder(load *ld, const char *folder, size_t skip,
                                kiln_extra_file **out_files, int *out_count) {
  KILN_VEC(kiln_extra_file) files = {0};
  for (int i = 0; i < kiln_zip_count(ld->l.zip); i++) {
    kiln_zip_entry *entry = kiln_zip_at(ld->l.zip, i);
    if (!kiln_str_starts(entry->name, folder)) continue;
    const kiln_str name = {entry->name.data + skip, entry->name.len - skip};
    kiln_extra_file file = {.name = kiln_arena_str(ld->l.arena, name)};
    KILN_TRY(kiln_zip_read(ld->l.zip, entry, &file.data));
    kiln_vec_push(ld->l.arena, &files, file);
  }
  *out_files = files.data;
  *out_count = files.count;
  return NULL;
}

static kiln_status *read_sources(load *ld) {
  kiln_torchscript *model = ld->l.model;
  int count = 0;
  KILN_TRY(read_folder(ld, "code/", 0, &model->sources, &count));
  for (int i = 0; i < count; i++) {
    if (kiln_str_ends(model->sources[i].name, ".py")) {
      model->sources[model->source_count++] = model->sources[i];
    }
  }
  return NULL;
}

static kiln_status *read_extras(load *ld) {
  kiln_torchscript *model = ld->l.model;
  model->entry_count = kiln_zip_count(ld->l.zip);
  for (int i = 0; i < model->entry_count; i++) {
    model->deflated_count += kiln_zip_at(ld->l.zip, i)->deflated;
  }
  KILN_TRY(read_folder(ld, "extra/", sizeof "extra/" - 1, &model->extras, &model->extra_count));
  return ld->options && ld->options->at_rest ? read_sources(ld) : NULL;
}

static kiln_status *load_all(load *ld) {
  kiln_loader *l = &ld->l;
  l->unit = l->model->unit = kiln_unit_create(l->env, l->registry);
  l->arena = l->unit->arena;
  l->types = l->unit->types;
  l->unit->frontend = l;
  l->ast_arena = kiln_arena_scoped(l->env->mem);
  l->files = kiln_map_in(l->arena);
  l->defining = kiln_map_in(l->ast_arena);
  KILN_TRY(kiln_format_refuse_model(l->mapping->data, l->mapping->size));
  KILN_TRY(kiln_device_map_parse(l->arena, ld->options ? ld->options->map_device : NULL,
                                 &l->model->devices));
  kiln_zip_options zip_options = {.budget = &l->budget,
                                  .inflate_cap = l->memory,
                                  .crc_warns = ld->options && ld->options->crc_warns};
  KILN_TRY(kiln_zip_open(l->arena, l->mapping, &zip_options, &l->zip));
  KILN_TRY(refuse_other_archives(l->zip));
  KILN_TRY(read_version(l->zip, &l->model->version));
  KILN_TRY(check_byte_order(l->zip, &l->model->early));
  KILN_TRY(read_constants(ld));
  KILN_TRY(read_root(ld));
  KILN_TRY(kiln__loader_compile_all(l));
  KILN_TRY(check_pending(ld));
  KILN_TRY(read_extras(ld));
  KILN_TRY(kiln_zip_check_all(l->zip));
  kiln_zip_report(l->zip, l->env);
  kiln_device_map_report(l->model->devices, l->env);
  return kiln_mapping_check(l->mapping, true);
}

static kiln_status *try_all(load *ld) { KILN_PROTECT(load_all(ld)); }

/* What a load may take where no limit says it: much more than honest archives of that size need,
 * and too little for a small one to hurt. */
static uint64_t default_memory(size_t archive_bytes) {
  return ((uint64_t)256 << 20) + 64 * (uint64_t)archive_bytes;
}

/* After it nothing points to the loader, nor into the trees, which are gone. */
static void forget_loader(kiln_unit *unit) {
  for (int i = 0; i < unit->all.count; i++) unit->all.data[i]->pending = NULL;
  unit->frontend = NULL;
}

kiln_status *kiln_torchscript_load(kiln_env *env, const kiln_registry *registry,
                                   kiln_mapping *mapping, const kiln_torchscript_options *options,
                                   kiln_torchscript **out_model) {
  kiln_torchscript *model = kiln_mem_alloc_zero(env->mem, sizeof *model);
  if (!model) return kiln_status_oom();
  model->mapping = mapping;
  kiln_owner_retain(&mapping->owner);
  load ld = {.options = options};
  ld.l = (kiln_loader){.env = env, .registry = registry, .mapping = mapping, .model = model};
  ld.l.lenient = options && options->lenient;
  if (options && options->begun) {
    ld.l.budget = *options->begun;
  } else {
    kiln_budget_begin(&ld.l.budget, "the load", env->mem, options ? &options->limits : NULL);
  }
  ld.l.memory =
      options && options->limits.bytes ? options->limits.bytes : default_memory(mapping->size);
  kiln_budget *outer = kiln_budget_enter(&ld.l.budget);
  kiln_status *status = try_all(&ld);
  kiln_budget_leave(outer);
  if (model->unit) forget_loader(model->unit);
  if (status) {
    kiln_torchscript_destroy(model);
    return status;
  }
  *out_model = model;
  return NULL;
}

void kiln_torchscript_destroy(kiln_torchscript *model) {
  if (!model) return;
  kiln_mem *mem = model->mapping->mem;
  kiln_mem_retain(mem);
  for (int i = 0; i < model->pending_count; i++) {
    kiln_ivalue_release(model->pending[i].object);
    kiln_ivalue_release(model->pending[i].state);
  }
  kiln_ivalue_release(model->root);
  kiln_ivalue_release(model->constants);
  for (int i = 0; i < model->origins.count; i++) kiln__origins_deinit(model->origins.data[i]);
  kiln_unit_destroy(model->unit);
  kiln_owner_release(&model->mapping->owner);
  kiln_mem_free(mem, model, sizeof *model);
  kiln_mem_release(mem);
}
