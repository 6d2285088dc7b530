/* check_language.c: runs a recorded sequence of calls: methods of one model with inputs, and for
 * each the result and what was printed, or the error: its class, text and place.
 *
 * The sequence runs in order on one instance, since calls may change attributes; it is repeated on
 * new instances. All calls are tried; the first difference is told. */
#include <stdlib.h>
#include <string.h>

#include "tools/check.h"

/* A record of samples.pt. The last three are None where no error is expected; the class is also
 * None where PyTorch raises its own errors, the place (a frame that the
 * traceback must have) where PyTorch tells none. */
enum { METHOD, INPUTS, EXPECTED, PRINTED, CLASS, MESSAGE, PLACE, FIELDS };

typedef struct sequence {
  const check_options *options;
  const check_case *c;
  check_result *result;
  kiln_context *context;
  kiln_model *model;
  kiln_value *list;
  char *printed;
  size_t printed_size;
} sequence;

static void collect_print(void *user, const char *text, size_t size) {
  sequence *s = user;
  s->printed = tool_grow(s->printed, s->printed_size + size + 1);
  memcpy(s->printed + s->printed_size, text, size);
  s->printed_size += size;
  s->printed[s->printed_size] = 0;
}

/* NULL when the error is the recorded one, else why not. */
static char *compare_error(kiln_status *status, kiln_value *const *fields) {
  const char *message = kiln_value_as_string(fields[MESSAGE], NULL);
  const char *class_name = kiln_value_as_string(fields[CLASS], NULL);
  const char *place = kiln_value_as_string(fields[PLACE], NULL);
  const char *got_class = kiln_status_exception(status);
  if (!message) return tool_format("failed: %s", kiln_status_message(status));
  if (!strstr(kiln_status_message(status), message)) {
    return tool_format("error '%s', want '%s'", kiln_status_message(status), message);
  }
  if (class_name && (!got_class || strcmp(class_name, got_class) != 0)) {
    return tool_format("raised %s, want %s", got_class ? got_class : "no class", class_name);
  }
  if (place && !strstr(kiln_status_report(status), place)) {
    return tool_format("the traceback lacks '%s': %s", place, kiln_status_report(status));
  }
  return NULL;
}

static char *compare_result(sequence *s, const kiln_value *got, kiln_value *const *fields) {
  const char *message = kiln_value_as_string(fields[MESSAGE], NULL);
  if (message) return tool_format("no error, want '%s'", message);
  size_t size = 0;
  const char *text = kiln_value_as_string(fields[PRINTED], &size);
  if (text && (size != s->printed_size || (size && memcmp(text, s->printed, size) != 0))) {
    return tool_format("printed '%s', want '%s'", s->printed_size ? s->printed : "", text);
  }
  tool_comparison c = check_tolerance(s->options, s->c->json);
  tool_compare(&c, "result", fields[EXPECTED], got);
  if (c.worst > s->result->worst) s->result->worst = c.worst;
  return c.reason;
}

static char *run_call(sequence *s, kiln_instance *instance, kiln_value *const *fields) {
  tool_inputs inputs = {0};
  kiln_value *got = NULL;
  char *reason = NULL;
  kiln_status *status = check_copy_inputs(fields[INPUTS], &inputs);
  if (status) {
    reason = tool_take_message(status);
  } else {
    const char *method = kiln_value_as_string(fields[METHOD], NULL);
    s->printed_size = 0;
    status =
        kiln_instance_call(instance, method ? method : "", inputs.values, inputs.count, NULL, &got);
    reason = status ? compare_error(status, fields) : compare_result(s, got, fields);
    kiln_status_destroy(status);
  }
  kiln_value_destroy(got);
  tool_inputs_free(&inputs);
  return reason;
}

static char *run_record(sequence *s, kiln_instance *instance, int index) {
  kiln_value *record = NULL, *fields[FIELDS] = {NULL};
  kiln_status *status = kiln_value_item(s->list, index, &record);
  for (int i = 0; !status && i < FIELDS; i++) status = kiln_value_item(record, i, &fields[i]);
  char *reason = status ? tool_take_message(status) : run_call(s, instance, fields);
  if (reason) {
    const char *method = kiln_value_as_string(fields[METHOD], NULL);
    char *longer = tool_format("call %d, %s: %s", index, method ? method : "?", reason);
    free(reason);
    reason = longer;
  }
  for (int i = 0; i < FIELDS; i++) kiln_value_destroy(fields[i]);
  kiln_value_destroy(record);
  return reason;
}

static void run_sequence(sequence *s) {
  kiln_instance *instance = NULL;
  kiln_status *status = kiln_instance_create(s->model, &instance);
  if (status) {
    check_fail_status(s->result, "instance", status);
    return;
  }
  int failed = 0, count = kiln_value_count(s->list);
  char *first = NULL;
  for (int i = 0; i < count; i++) {
    char *reason = run_record(s, instance, i);
    if (reason) failed++;
    tool_keep_first(&first, reason);
  }
  if (failed) {
    check_fail(s->result, tool_format("%d of %d calls: %s", failed, count, first));
    free(first);
  }
  kiln_instance_release(instance);
}

void check_run_language(const check_options *options, const check_case *c, check_result *result) {
  sequence s = {.options = options, .c = c, .result = result};
  char *path = tool_join(c->folder, "model.pt"), *samples = tool_join(c->folder, "samples.pt");
  const cJSON *calls = cJSON_GetObjectItemCaseSensitive(c->json, "calls");
  result->passed = true;
  result->exempt_from_groups = true;
  kiln_status *status = check_context(options, &s.context);
  if (!status) {
    kiln_context_set_print(s.context, collect_print, &s);
    status = kiln_model_load(s.context, path, NULL, &s.model);
  }
  if (!status) status = kiln_value_read(s.context, samples, &s.list);
  if (status) {
    check_fail_status(result, "load", status);
  } else if (kiln_value_count(s.list) == 0 || !cJSON_IsNumber(calls) ||
             calls->valueint != kiln_value_count(s.list)) {
    check_fail(result, tool_format("case.json and samples.pt have different numbers of calls"));
  } else {
    for (int64_t i = 0; !result->reason && i < options->repeat; i++) run_sequence(&s);
    check_count(result, s.model);
  }
  kiln_value_destroy(s.list);
  kiln_model_release(s.model);
  kiln_context_release(s.context);
  free(s.printed);
  free(path);
  free(samples);
}
