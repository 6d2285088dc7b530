/* model.c: loads archives, and tells about their methods and counters. */
#include "api/builder.h"

#include <stdio.h>

#include "kiln/debug.h"

/* -- Methods of the root -- */

/* "forward(Tensor x, int n=1) -> Tensor": the schema without self. */
static const char *schema_text(kiln_arena *arena, const kiln_function *function) {
  const kiln_schema *s = function->schema;
  kiln_text text = kiln_text_in(arena);
  kiln_text_put(&text, function->name);
  kiln_text_putc(&text, '(');
  for (int i = 1; i < s->arg_count; i++) {
    const kiln_schema_arg *a = &s->args[i];
    if (i > 1) kiln_text_puts(&text, ", ");
    kiln_type_print(&text, a->type, 0);
    kiln_text_putc(&text, ' ');
    kiln_text_put(&text, a->name);
    if (a->has_default) {
      kiln_text_putc(&text, '=');
      kiln__print_value(&text, a->default_value, 16);
    }
  }
  kiln_text_puts(&text, ") -> ");
  if (s->result_count != 1) kiln_text_putc(&text, '(');
  for (int i = 0; i < s->result_count; i++) {
    if (i > 0) kiln_text_puts(&text, ", ");
    kiln_type_print(&text, s->results[i].type, 0);
  }
  if (s->result_count != 1) kiln_text_putc(&text, ')');
  return text.data;
}

static void fill_method(kiln_model *model, kiln__method *method, kiln_function *function) {
  kiln_arena *arena = model->arena;
  const kiln_schema *s = function->schema;
  method->function = function;
  method->name = kiln_arena_str(arena, function->name).data;
  method->schema = schema_text(arena, function);
  method->argument_count = s->arg_count - 1;
  method->arguments = KILN_NEW_ARRAY(arena, kiln_argument, s->arg_count);
  for (int i = 0; i < method->argument_count; i++) {
    const kiln_schema_arg *a = &s->args[i + 1];
    kiln_text text = kiln_text_in(arena);
    kiln_type_print(&text, a->type, 0);
    method->arguments[i] =
        (kiln_argument){kiln_arena_str(arena, a->name).data, text.data, a->has_default};
  }
}

static kiln_status *list_methods(kiln_model *model) {
  const kiln_type *type = model->script->root.u.object->type;
  const kiln_map *methods = &kiln_class_of(type)->methods;
  model->methods = KILN_NEW_ARRAY(model->arena, kiln__method, methods->count + 1);
  for (int i = 0; i < methods->count; i++) {
    kiln_function *function = methods->entries[i].value;
    if (!function || !function->schema || function->schema->arg_count < 1) continue;
    if (kiln_str_is(function->name, "forward")) {
      KILN_TRY(kiln_class_call(kiln_class_of(type), &function));
    }
    fill_method(model, &model->methods[model->method_count++], function);
  }
  return NULL;
}
static kiln_status *try_methods(kiln_model *model) { KILN_PROTECT(list_methods(model)); }

kiln__method *kiln__model_method(const kiln_model *model, const char *name) {
  for (int i = 0; name && i < model->method_count; i++) {
    if (strcmp(model->methods[i].name, name) == 0) return &model->methods[i];
  }
  return NULL;
}

/* -- Loading -- */

kiln_status *kiln__model_make_call(kiln_model *model, kiln_call **out_call) {
  kiln_context *context = model->context;
  kiln_call *call = NULL;
  KILN_TRY(kiln_call_create(context->env, &call));
  call->types = model->script->unit->types;
  call->host = model;
  call->print = context->print;
  call->print_user = context->print_user;
  call->jit = model->flags.jit;
  call->plans_memory = model->flags.memory_plan;
  *out_call = call;
  return NULL;
}

/* Runs the __setstate__ calls that the archive asks for, under the load's limits. */
static kiln_status *run_pending(kiln_model *model, const kiln_limits *limits,
                                const kiln_budget *budget) {
  kiln_torchscript *script = model->script;
  kiln_call *call = NULL;
  if (script->pending_count == 0) return NULL;
  KILN_TRY(kiln__model_make_call(model, &call));
  kiln_call_begin(call, limits);
  call->budget.deadline_ns = budget->deadline_ns;
  call->budget.held_at_start = budget->held_at_start;
  kiln_status *status = NULL;
  for (int i = 0; !status && i < script->pending_count; i++) {
    kiln_pending_call *p = &script->pending[i];
    kiln_ivalue args[2] = {p->object, p->state}, result = kiln_none();
    status = kiln_jit_call(model->jit, call, p->function, args, 2, &result);
    kiln_ivalue_release(result);
    if (status) status = kiln_status_note(status, "in a __setstate__ of the archive");
  }
  kiln_call_destroy(call);
  return status;
}

/* With the flag `profile`. */
static void keep_profiles(kiln_model *model) {
  const char *path = model->flags.profile.text;
  if (!*path || !model->jit || model->at_rest) return;
  kiln_status *status = kiln_jit_write_profiles(model->jit, path, true);
  if (status)
    KILN_LOG(&model->context->env->log, warn, 1, "profile: nothing is kept: %s",
             kiln_status_message(status));
  kiln_status_destroy(status);
}

/* That there is no file yet is no fault. */
static void start_from_profile(kiln_model *model) {
  const char *path = model->flags.profile.text;
  if (!*path || model->at_rest) return;
  kiln_status *status = kiln_model_load_profile(model, path);
  if (status && kiln_status_code(status) != KILN_NOT_FOUND)
    KILN_LOG(&model->context->env->log, warn, 1, "profile: %s", kiln_status_message(status));
  kiln_status_destroy(status);
}

static void enter_list(kiln_model *model) {
  kiln_context *context = model->context;
  pthread_mutex_lock(&context->lock);
  model->is_listed = true;
  model->number = ++context->loads;
  model->next = context->models;
  model->link = &context->models;
  if (model->next) model->next->link = &model->next;
  context->models = model;
  pthread_mutex_unlock(&context->lock);
}
static void leave_list(kiln_model *model) {
  kiln_context *context = model->context;
  if (!model->is_listed) return;
  pthread_mutex_lock(&context->lock);
  *model->link = model->next;
  if (model->next) model->next->link = model->link;
  pthread_mutex_unlock(&context->lock);
}

static void destroy_model(kiln_model *model) {
  kiln_context *context = model->context;
  if (model->is_listed)
    kiln_timeline_mark(context->env->timeline, KILN_EVENT_unload, model->name, 0, NULL);
  leave_list(model);
  keep_profiles(model);
  for (int i = 0; i < model->method_count; i++) kiln_effects_destroy(model->methods[i].effects);
  kiln_jit_destroy(model->jit);
  kiln_torchscript_destroy(model->script);
  kiln_arena_destroy(model->arena);
  if (model->name) kiln_mem_free(context->env->mem, model->name, strlen(model->name) + 1);
  kiln_mem_free(context->env->mem, model, sizeof *model);
  kiln_context_release(context);
}

/* To the caller, or what there is of it (NULL: nothing) away where `status` says why. */
static kiln_status *give_model(kiln_model *model, kiln_status *status, kiln_model **out_model) {
  if (!status) enter_list(model);
  if (!status) *out_model = model;
  if (status && model) destroy_model(model);
  return status;
}

/* What a model has beyond its script. */
static kiln_status *prepare(kiln_model *model) {
  kiln_context *context = model->context;
  KILN_TRY(kiln_arena_create(context->env->mem, &model->arena));
  const kiln_env env = kiln__context_env(context);
  KILN_TRY(
      kiln_jit_create(&env, &model->flags, model->script->unit, context->codegen, &model->jit));
  return try_methods(model);
}

static kiln_status *build_model(kiln_model *model, kiln_mapping *mapping, const kiln_limits *limits,
                                const kiln_budget *budget, bool at_rest) {
  kiln_context *context = model->context;
  kiln_torchscript_options options = {.limits = limits ? *limits : (kiln_limits){0},
                                      .begun = budget,
                                      .crc_warns = model->flags.crc != 0,
                                      .map_device = model->flags.map_device.text,
                                      .lenient = at_rest,
                                      .at_rest = at_rest};
  KILN_TRY(
      kiln_torchscript_load(context->env, context->registry, mapping, &options, &model->script));
  if (model->script->root.tag != KILN_TAG_OBJECT) {
    return KILN_ERROR(KILN_INVALID_FILE, "the archive holds no module");
  }
  KILN_TRY(prepare(model));
  model->at_rest = at_rest;
  if (at_rest) return NULL;
  KILN_TRY(run_pending(model, limits, budget));
  start_from_profile(model);
  return NULL;
}

/* Where an archive comes from. */
typedef struct source {
  const char *path; /* or */
  int fd;           /* or, when it is -1, */
  const void *data;
  size_t size;
} source;

/* A file under limits is not trusted, nor is its staying as it is: the system would answer a read
 * of pages that were cut off with a signal. */
static kiln_map_mode map_mode(const kiln_flags *flags, const kiln_limits *limits) {
  enum { AUTO, MAP }; /* then copy: flags.def */
  if (flags->map != AUTO) return flags->map == MAP ? KILN_MAP_AUTO : KILN_MAP_COPY;
  const bool limited =
      limits && (limits->bytes || limits->operations || limits->recursion || limits->time_ms);
  return limited ? KILN_MAP_COPY : KILN_MAP_AUTO;
}

static kiln_status *open_source(const kiln_model *model, const source *from,
                                const kiln_limits *limits, const kiln_budget *budget,
                                kiln_mapping **out_mapping) {
  kiln_context *context = model->context;
  kiln_mem *mem = context->env->mem;
  kiln_file_options options = {
      .mode = map_mode(&model->flags, limits),
      .table = context->files,
      .max_copy = limits ? limits->bytes : 0,
      .budget = budget,
  };
  if (from->path) return kiln_mapping_open(mem, from->path, &options, out_mapping);
  if (from->fd >= 0) return kiln_mapping_open_fd(mem, from->fd, &options, out_mapping);
  return kiln_mapping_wrap(mem, from->data, from->size, out_mapping);
}

/* An empty model with the settings of now. */
static kiln_status *new_model(kiln_context *context, const char *name, kiln_model **out_model) {
  kiln_mem *mem = context->env->mem;
  kiln_model *model = kiln_mem_alloc_zero(mem, sizeof *model);
  char *own = model ? kiln_mem_alloc(mem, strlen(name) + 1) : NULL;
  if (!own) {
    if (model) kiln_mem_free(mem, model, sizeof *model);
    return kiln_status_oom();
  }
  model->name = strcpy(own, name);
  kiln_refs_init(&model->refs);
  model->context = kiln__context_retain(context);
  pthread_mutex_lock(&context->lock);
  model->flags = context->env->flags;
  pthread_mutex_unlock(&context->lock);
  *out_model = model;
  return NULL;
}

static kiln_status *load(kiln_context *context, const source *from, const kiln_limits *limits,
                         bool at_rest, kiln_model **out_model) {
  kiln_mapping *mapping = NULL;
  *out_model = NULL;
  kiln_model *model = NULL;
  KILN_TRY(new_model(context, from->path ? from->path : "(an archive in memory)", &model));
  kiln_budget budget; /* what comes after opening has its own, with the same begin */
  kiln_budget_begin(&budget, "the load", context->env->mem, limits);
  const uint64_t began = kiln_timeline_now(context->env->timeline);
  kiln_status *status = open_source(model, from, limits, &budget, &mapping);
  if (!status) {
    status = build_model(model, mapping, limits, &budget, at_rest);
    kiln_owner_release(&mapping->owner);
  }
  const kiln_timeline_arg args[] = {{"status", .text = kiln_code_name(kiln_status_code(status))}};
  kiln_timeline_span(context->env->timeline, KILN_EVENT_load, model->name, began, 1, args);
  return give_model(model, status, out_model);
}

kiln_status *kiln__model_load_mapping(kiln_context *context, kiln_mapping *mapping,
                                      const kiln_limits *limits, const kiln_budget *budget,
                                      kiln_model **out_model) {
  kiln_model *model = NULL;
  *out_model = NULL;
  kiln_status *status = new_model(context, "(built)", &model);
  if (!status) status = build_model(model, mapping, limits, budget, false);
  kiln_owner_release(&mapping->owner);
  return give_model(model, status, out_model);
}

kiln_status *kiln__model_create(kiln_context *context, kiln_torchscript *script,
                                kiln_model **out_model) {
  kiln_model *model = NULL;
  kiln_status *status = new_model(context, "(built)", &model);
  if (status) {
    kiln_torchscript_destroy(script);
    return status;
  }
  model->script = script;
  status = prepare(model);
  return give_model(model, status, out_model);
}

static kiln_status *load_path(kiln_context *context, const char *path, const kiln_limits *limits,
                              bool at_rest, kiln_model **out_model) {
  *out_model = NULL;
  if (!path) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a path is needed");
  kiln_status *status =
      load(context, &(source){.path = path, .fd = -1}, limits, at_rest, out_model);
  return status ? kiln_status_note(status, "loading %s", path) : NULL;
}

kiln_status *kiln_model_load(kiln_context *context, const char *path, const kiln_limits *limits,
                             kiln_model **out_model) {
  KILN_NEEDS(context && out_model);
  return load_path(context, path, limits, false, out_model);
}

kiln_status *kiln_debug_model_open(kiln_context *context, const char *path,
                                   const kiln_limits *limits, kiln_model **out_model) {
  KILN_NEEDS(context && out_model);
  return load_path(context, path, limits, true, out_model);
}

kiln_status *kiln_model_load_fd(kiln_context *context, int fd, const kiln_limits *limits,
                                kiln_model **out_model) {
  KILN_NEEDS(context && out_model);
  *out_model = NULL;
  if (fd < 0) return KILN_ERROR(KILN_INVALID_ARGUMENT, "a file descriptor is needed");
  return load(context, &(source){.fd = fd}, limits, false, out_model);
}

kiln_status *kiln_model_load_memory(kiln_context *context, const void *data, size_t size,
                                    const kiln_limits *limits, kiln_model **out_model) {
  KILN_NEEDS(context && out_model);
  *out_model = NULL;
  if (!data && size > 0) return KILN_ERROR(KILN_INVALID_ARGUMENT, "an archive is needed");
  return load(context, &(source){.fd = -1, .data = data, .size = size}, limits, false, out_model);
}

kiln_model *kiln__model_retain(kiln_model *model) {
  kiln_refs_retain(&model->refs);
  return model;
}

void kiln_model_release(kiln_model *model) {
  if (model && kiln_refs_release(&model->refs)) destroy_model(model);
}

void kiln__model_give(kiln_model *model, uint32_t stripe) {
  if (kiln_refs_give(&model->refs, stripe)) destroy_model(model);
}

/* -- Questions -- */

kiln_status *kiln_model_extra_file(const kiln_model *model, int index, kiln_extra *out_file) {
  KILN_NEEDS(model && out_file);
  const kiln_torchscript *script = model->script;
  *out_file = (kiln_extra){0};
  if (index < 0 || index >= script->extra_count) {
    return KILN_ERROR(KILN_NOT_FOUND, "the archive has no extra file %d", index);
  }
  const kiln_extra_file *file = &script->extras[index];
  *out_file = (kiln_extra){file->name.data, file->data.data, file->data.len};
  return NULL;
}

kiln_status *kiln_model_remap(const kiln_model *model, int index, kiln_remap *out_remap) {
  KILN_NEEDS(model && out_remap);
  static const char *const kinds[] = {"storages", "values", "code"};
  const kiln_device_map *map = model->script->devices;
  *out_remap = (kiln_remap){0};
  if (index < 0 || !map || index >= map->rows.count) {
    return KILN_ERROR(KILN_NOT_FOUND, "the load moved no device %d", index);
  }
  const kiln_remap_row *row = &map->rows.data[index];
  *out_remap = (kiln_remap){.from = row->from.data,
                            .to = row->to.data,
                            .kind = kinds[row->kind],
                            .count = row->count,
                            .where = row->where.data};
  return NULL;
}

int kiln_model_method_count(const kiln_model *model) {
  if (!model) return 0;
  return model->method_count;
}

const char *kiln_model_method_name(const kiln_model *model, int index) {
  if (!model) return NULL;
  return index >= 0 && index < model->method_count ? model->methods[index].name : NULL;
}

kiln_status *kiln__model_no_method(const kiln_model *model, const char *name) {
  char names[400] = "";
  size_t len = 0;
  for (int i = 0; i < model->method_count && len < sizeof names; i++) {
    len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", i ? ", " : "; it has ",
                            model->methods[i].name);
  }
  return KILN_ERROR(KILN_NOT_FOUND, "the model has no method '%s'%s", name ? name : "", names);
}

const char *kiln_model_method_schema(const kiln_model *model, const char *name) {
  if (!model) return NULL;
  const kiln__method *method = kiln__model_method(model, name);
  return method ? method->schema : NULL;
}

kiln_status *kiln_model_argument_sized(const kiln_model *model, const char *method, int index,
                                       kiln_argument *out_argument, size_t struct_size) {
  KILN_NEEDS(model && out_argument);
  const kiln__method *m = kiln__model_method(model, method);
  if (!m) return kiln__model_no_method(model, method);
  if (index < 0 || index >= m->argument_count) {
    return KILN_ERROR(KILN_NOT_FOUND, "%s() has no argument %d", method, index);
  }
  kiln_abi_write(out_argument, struct_size, &m->arguments[index], sizeof *out_argument);
  return NULL;
}

void kiln_model_counters_sized(const kiln_model *model, kiln_counters *out_counters,
                               size_t struct_size) {
  if (!model || !out_counters) return;
  kiln_counters counters = {0};
  kiln_jit_counters(model->jit, &counters);
  kiln_abi_write(out_counters, struct_size, &counters, sizeof counters);
}

kiln_status *kiln_model_group_sized(const kiln_model *model, int index,
                                    kiln_group_counters *out_group, size_t struct_size) {
  KILN_NEEDS(model && out_group);
  kiln_group_counters group = {0};
  kiln_status *status = kiln_jit_group(model->jit, index, &group);
  kiln_abi_write(out_group, struct_size, &group, sizeof group);
  return status;
}

/* The same for hosts that look a function up by its name. */
kiln_status *(kiln_model_argument)(const kiln_model *model, const char *method, int index,
                                   kiln_argument *out_argument) {
  KILN_NEEDS(model && out_argument);
  return kiln_model_argument(model, method, index, out_argument);
}
void(kiln_model_counters)(const kiln_model *model, kiln_counters *out_counters) {
  if (!model || !out_counters) return;
  kiln_model_counters(model, out_counters);
}
kiln_status *(kiln_model_group)(const kiln_model *model, int index,
                                kiln_group_counters *out_group) {
  KILN_NEEDS(model && out_group);
  return kiln_model_group(model, index, out_group);
}
