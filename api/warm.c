/* warm.c: models before their first request: waiting for jobs, calls that make plans, profiles of
 * other processes. */
#include <stdlib.h>

#include "api/internal.h"

kiln_status *kiln_model_wait_idle(kiln_model *model, const kiln_limits *limits) {
  KILN_NEEDS(model);
  kiln_budget budget;
  kiln_budget_begin(&budget, "the wait", NULL, limits);
  return kiln_jit_wait_idle(model->jit, &budget);
}

/* On copies, so that nothing is left of it but the model's plans. */
static kiln_status *call_once(kiln_instance *instance, const char *method,
                              kiln_value *const *arguments, int count,
                              const kiln_call_options *options) {
  kiln_value *result = NULL;
  kiln_status *status = NULL;
  kiln_value **copies = calloc((size_t)count + 1, sizeof *copies);
  if (!copies) return kiln_status_oom();
  for (int i = 0; !status && i < count; i++)
    if (arguments[i]) status = kiln_value_clone(arguments[i], &copies[i]);
  if (!status) status = kiln_instance_call(instance, method, copies, count, options, &result);
  kiln_value_destroy(result);
  for (int i = 0; i < count; i++) kiln_value_destroy(copies[i]);
  free(copies);
  return status;
}

static kiln_status *warm_up(kiln_instance *instance, const char *method,
                            kiln_value *const *arguments, int count,
                            const kiln_call_options *options) {
  /* A call that asks for nothing, when enough were recorded, finds all that there is to make. */
  enum { MOST = 1000 };
  kiln_model *model = instance->model;
  const int recorded = (int)model->flags.num_profiled_runs;
  const kiln_limits *limits = options ? &options->limits : NULL;
  for (int i = 0, quiet = 0; i < recorded + MOST && quiet < 2; i++) {
    const uint64_t asks = kiln_jit_asks(model->jit);
    KILN_TRY(call_once(instance, method, arguments, count, options));
    KILN_TRY(kiln_model_wait_idle(model, limits));
    quiet = i >= recorded && kiln_jit_asks(model->jit) == asks ? quiet + 1 : 0;
  }
  return NULL;
}

kiln_status *kiln_model_warm_up(kiln_model *model, const char *method, kiln_value *const *arguments,
                                int argument_count, const kiln_call_options *options) {
  KILN_NEEDS(model && (arguments || argument_count <= 0));
  kiln_instance *instance;
  kiln_call_options read;
  if (options) {
    KILN_ABI_READ(kiln_call_options, options, &read);
    options = &read;
  }
  KILN_TRY(kiln_instance_create(model, &instance));
  kiln_jit_hurry(model->jit, true);
  kiln_status *status =
      warm_up(instance, method, arguments, argument_count < 0 ? 0 : argument_count, options);
  kiln_jit_hurry(model->jit, false);
  kiln_instance_release(instance);
  return status;
}

/* -- Profiles -- */

kiln_status *kiln_model_load_profile(kiln_model *model, const char *path) {
  KILN_NEEDS(model && path);
  KILN_TRY(kiln_jit_read_profiles(model->jit, path));
  for (int i = 0; i < model->method_count; i++)
    kiln_jit_start(model->jit, model->methods[i].function, model->script->root, true);
  return NULL;
}

kiln_status *kiln_model_save_profile(kiln_model *model, const char *path) {
  KILN_NEEDS(model && path);
  return kiln_jit_write_profiles(model->jit, path, false);
}
