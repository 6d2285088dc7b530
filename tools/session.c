/* session.c: from the path of a model to calls of it. */
#include "tools/session.h"

int tool_session_open(tool_session *s, const tool_settings *settings, const char *path,
                      const kiln_limits *limits, kiln_print_fn print) {
  kiln_status *status = tool_context(settings, &s->context);
  if (!status) kiln_context_set_print(s->context, print, NULL);
  const double start = tool_now_ms();
  if (!status) status = tool_load(s->context, path, limits, &s->model);
  s->load_ms = tool_now_ms() - start;
  return status ? tool_report(status) : -1;
}

static int take_inputs(tool_session *s, const char *method, const char *file,
                       const tool_list *specs, int64_t seed) {
  if (!file) {
    return tool_inputs_parse(s->context, s->model, method, specs, (uint64_t)seed, &s->inputs);
  }
  kiln_status *status = tool_inputs_read(s->context, file, &s->inputs);
  return status ? tool_report(status) : -1;
}

int tool_session_prepare(tool_session *s, const char *method, const char *file,
                         const tool_list *specs, int64_t seed) {
  if (!kiln_model_method_schema(s->model, method)) return tool_no_method(s->model, method);
  const int exit_status = take_inputs(s, method, file, specs, seed);
  if (exit_status >= 0) return exit_status;
  kiln_status *status = kiln_instance_create(s->model, &s->instance);
  return status ? tool_report(status) : -1;
}

kiln_status *tool_session_call(const tool_session *s, const char *method, const kiln_limits *limits,
                               kiln_value **out_result, double *out_ms) {
  const kiln_call_options call = {.limits = *limits};
  tool_inputs copy;
  kiln_status *status = tool_inputs_clone(&s->inputs, &copy);
  const double start = tool_now_ms();
  if (!status) {
    status = kiln_instance_call(s->instance, method, copy.values, copy.count, &call, out_result);
  }
  if (out_ms) *out_ms = tool_now_ms() - start;
  tool_inputs_free(&copy);
  return status;
}

int tool_session_call_all(tool_session *s, const char *method, const tool_list *files,
                          const tool_list *specs, int64_t seed, int64_t calls,
                          const kiln_limits *limits) {
  kiln_status *status = kiln_instance_create(s->model, &s->instance);
  for (int f = 0; !status && f < (files->count > 0 ? files->count : 1); f++) {
    const int exit_status =
        take_inputs(s, method, files->count > 0 ? files->items[f] : NULL, specs, seed);
    if (exit_status >= 0) return exit_status;
    for (int64_t i = 0; !status && i < calls; i++) {
      kiln_value *result = NULL;
      status = tool_session_call(s, method, limits, &result, NULL);
      kiln_value_destroy(result);
    }
    tool_inputs_free(&s->inputs);
  }
  return status ? tool_report(status) : -1;
}

void tool_session_close(tool_session *s) {
  tool_inputs_free(&s->inputs);
  kiln_instance_release(s->instance);
  kiln_model_release(s->model);
  kiln_context_release(s->context);
}
