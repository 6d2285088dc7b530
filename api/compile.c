/* compile.c: models as code of C programs: `kiln compile`. */
#include <ctype.h>
#include <stdlib.h>

#include "api/internal.h"
#include "export/export.h"

static bool is_identifier(const char *name) {
  if (!isalpha((unsigned char)*name) && *name != '_') return false;
  for (; *name; name++)
    if (!isalnum((unsigned char)*name) && *name != '_') return false;
  return true;
}

/* The model's file without its folder and ending, as an identifier. */
static void name_from(const char *path, char *name, size_t room) {
  const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path;
  size_t n = strcspn(from, ".");
  n = n < room - 2 ? n : room - 2;
  if (n == 0 || isdigit((unsigned char)*from)) *name++ = 'm';
  for (size_t i = 0; i < n; i++) name[i] = isalnum((unsigned char)from[i]) ? from[i] : '_';
  name[n] = '\0';
}

static kiln_status *export_with(kiln_instance *instance, kiln_call *call, kiln__method *method,
                                const kiln_ivalue *args, int given, const kiln_value *result,
                                const char *folder, const kiln_compile_options *options) {
  kiln_model *model = instance->model;
  const char **names = calloc((size_t)method->argument_count + 1, sizeof *names);
  char name[64];
  if (!names) return kiln_status_oom();
  name_from(model->name, name, sizeof name);
  for (int i = 0; i < given && i < method->argument_count; i++)
    names[i] = method->arguments[i].name;
  const kiln_export request = {
      .jit = model->jit,
      .function = method->function,
      .method_name = method->name,
      .call = call,
      .self = instance->root,
      .name = options->name ? options->name : name,
      .origin = model->name,
      .folder = folder,
      .general = options->general != 0,
      .writes = kiln_effects_may_write(&method->effects, kiln_jit_env(model->jit), method->function,
                                       instance->root),
      .arg_count = method->argument_count,
      .arg_names = names,
      .args = args + 1,
      .result = result->v};
  kiln_status *status = kiln_export_program(&request);
  free(names);
  return status;
}

/* Of an instance that was never called: its attributes are as they were loaded. */
static kiln_status *compile(kiln_instance *instance, kiln__method *method,
                            kiln_value *const *arguments, int count, const kiln_value *result,
                            const char *folder, const kiln_compile_options *options) {
  kiln_call *call;
  kiln_ivalue *args = calloc((size_t)method->argument_count + 1, sizeof *args);
  if (!args) return kiln_status_oom();
  kiln_status *status = kiln__model_make_call(instance->model, &call);
  if (!status) {
    kiln_call_begin(call, NULL);
    status = kiln__arguments_match(instance->model, method, arguments, count, args);
    if (!status) status = export_with(instance, call, method, args, count, result, folder, options);
    for (int i = 1; i <= method->argument_count; i++) kiln_ivalue_release_to(&call->cache, args[i]);
    kiln_call_destroy(call);
  }
  free(args);
  return status;
}

static kiln_status *call_once(kiln_model *model, const char *method, kiln_value *const *arguments,
                              int count, const kiln_call_options *options,
                              kiln_value **out_result) {
  kiln_instance *instance;
  kiln_value **copies = calloc((size_t)count + 1, sizeof *copies);
  if (!copies) return kiln_status_oom();
  kiln_status *status = kiln_instance_create(model, &instance);
  for (int i = 0; !status && i < count; i++)
    if (arguments[i]) status = kiln_value_clone(arguments[i], &copies[i]);
  if (!status) status = kiln_instance_call(instance, method, copies, count, options, out_result);
  for (int i = 0; i < count; i++) kiln_value_destroy(copies[i]);
  free(copies);
  kiln_instance_release(instance);
  return status;
}

kiln_status *kiln_model_compile(kiln_model *model, const char *method, kiln_value *const *arguments,
                                int argument_count, const char *folder,
                                const kiln_compile_options *given) {
  KILN_NEEDS(model && folder && (arguments || argument_count <= 0));
  kiln_compile_options options = {0};
  kiln_instance *instance = NULL;
  kiln_value *result = NULL;
  KILN_ABI_READ(kiln_compile_options, given, &options);
  kiln__method *m = kiln__model_method(model, method);
  if (!m) return kiln__model_no_method(model, method);
  if (options.name && !is_identifier(options.name))
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "'%s' is no name in C", options.name);
  const int count = argument_count < 0 ? 0 : argument_count;
  const kiln_call_options call = {.limits = options.limits, .struct_size = sizeof call};
  KILN_TRY(kiln_model_warm_up(model, method, arguments, count, &call));
  kiln_status *status = call_once(model, method, arguments, count, &call, &result);
  if (!status) status = kiln_instance_create(model, &instance);
  if (!status) status = compile(instance, m, arguments, count, result, folder, &options);
  kiln_value_destroy(result);
  kiln_instance_release(instance);
  return status;
}
