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

static const char *without_folder(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* The model's file without its folder and ending, as an identifier. */
static void name_from(const char *path, char *name, size_t room) {
  const char *from = without_folder(path);
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
      .origin = without_folder(model->name),
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

/* -- Arguments as the program takes them: tensors that lie row by row -- */

static kiln_status *set_rows(kiln_ivalue *v) {
  kiln_tensor *t = v->u.tensor, *rows;
  int64_t strides[KILN_MAX_RANK];
  if (kiln_tensor_has_rows(t)) return NULL;
  kiln_strides_contiguous(kiln_tensor_rank(t), kiln_tensor_sizes(t), strides);
  KILN_TRY(kiln_tensor_view(NULL, t, kiln_tensor_rank(t), kiln_tensor_sizes(t), strides, t->offset,
                            &rows));
  kiln_tensor_release(t);
  v->u.tensor = rows;
  return NULL;
}

static kiln_status *make_dense(kiln_ivalue *v) {
  kiln_ivalue *key, *value;
  kiln_tensor *dense;
  switch (v->tag) {
    case KILN_TAG_TENSOR:
      if (kiln_tensor_is_undefined(v->u.tensor)) return NULL;
      KILN_TRY(kiln_tensor_contiguous(NULL, v->u.tensor, &dense));
      kiln_tensor_release(v->u.tensor);
      v->u.tensor = dense;
      return set_rows(v);
    case KILN_TAG_LIST:
      for (int64_t i = 0; i < v->u.list->count; i++) KILN_TRY(make_dense(&v->u.list->items[i]));
      return NULL;
    case KILN_TAG_TUPLE:
      for (int64_t i = 0; i < v->u.tuple->count; i++) KILN_TRY(make_dense(&v->u.tuple->items[i]));
      return NULL;
    case KILN_TAG_DICT:
      for (int64_t i = 0; kiln_dict_next(v->u.dict, &i, &key, &value);) KILN_TRY(make_dense(value));
      return NULL;
    default: return NULL;
  }
}

/* Copies, so that containers are nobody else's. */
static kiln_status *copy_dense(kiln_value *const *arguments, int count, kiln_value **copies) {
  kiln_status *status = NULL;
  for (int i = 0; !status && i < count; i++) {
    if (!arguments[i]) continue;
    status = kiln_value_clone(arguments[i], &copies[i]);
    if (!status) status = make_dense(&copies[i]->v);
  }
  return status;
}

static void destroy_values(kiln_value **values, int count) {
  for (int i = 0; i < count; i++) kiln_value_destroy(values[i]);
  free(values);
}

static kiln_status *call_once(kiln_model *model, const char *method, kiln_value *const *arguments,
                              int count, const kiln_call_options *options,
                              kiln_value **out_result) {
  kiln_instance *instance;
  kiln_value **copies = calloc((size_t)count + 1, sizeof *copies);
  if (!copies) return kiln_status_oom();
  kiln_status *status = kiln_instance_create(model, &instance);
  if (!status) status = copy_dense(arguments, count, copies);
  if (!status) status = kiln_instance_call(instance, method, copies, count, options, out_result);
  destroy_values(copies, count);
  kiln_instance_release(instance);
  return status;
}

static kiln_status *write_program(kiln_model *model, const char *method,
                                  kiln_value *const *arguments, int count,
                                  const kiln_call_options *call, const char *folder,
                                  const kiln_compile_options *options) {
  kiln_instance *instance = NULL;
  kiln_value *result = NULL;
  kiln_status *status = call_once(model, method, arguments, count, call, &result);
  if (!status) status = kiln_instance_create(model, &instance);
  if (!status)
    status = compile(instance, kiln__model_method(model, method), arguments, count, result, folder,
                     options);
  kiln_value_destroy(result);
  kiln_instance_release(instance);
  return status;
}

kiln_status *kiln_model_compile(kiln_model *model, const char *method, kiln_value *const *arguments,
                                int argument_count, const char *folder,
                                const kiln_compile_options *given) {
  KILN_NEEDS(model && (arguments || argument_count <= 0));
  kiln_compile_options options = {0};
  KILN_ABI_READ(kiln_compile_options, given, &options);
  if (!kiln__model_method(model, method)) return kiln__model_no_method(model, method);
  if (options.name && !is_identifier(options.name))
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "'%s' is no name in C", options.name);
  const int count = argument_count < 0 ? 0 : argument_count;
  const kiln_call_options call = {.limits = options.limits, .struct_size = sizeof call};
  kiln_value **dense = calloc((size_t)count + 1, sizeof *dense);
  if (!dense) return kiln_status_oom();
  kiln_status *status = copy_dense(arguments, count, dense);
  if (!status) status = kiln_model_warm_up(model, method, dense, count, &call);
  if (!status && folder)
    status = write_program(model, method, dense, count, &call, folder, &options);
  destroy_values(dense, count);
  return status;
}
