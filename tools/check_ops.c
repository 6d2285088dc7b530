/* check_ops.c: runs an operator's samples: methods s0… of one model, each with inputs, expected
 * result and tolerance of its own. All samples are tried; the first difference is told. */
#include <stdlib.h>
#include <string.h>

#include "tools/check.h"

typedef struct samples {
  const check_options *options;
  const check_case *c;
  check_result *result;
  kiln_context *context;
  kiln_instance *instance;
  kiln_value *list; /* of (method, inputs, expected) */
} samples;

/* Runs a sample once; NULL when it is as recorded, else why not (freed by the caller). */
static char *run_once(samples *s, const cJSON *json, const kiln_value *parts[3]) {
  tool_inputs inputs = {0};
  kiln_value *got = NULL;
  kiln_status *status = check_copy_inputs(parts[1], &inputs);
  if (!status) {
    status = kiln_instance_call(s->instance, kiln_value_as_string(parts[0], NULL), inputs.values,
                                inputs.count, NULL, &got);
  }
  char *reason = NULL;
  if (status) {
    reason = tool_take_message(status);
  } else {
    tool_comparison c = check_tolerance(s->options, json);
    tool_compare(&c, "result", parts[2], got);
    if (c.worst > s->result->worst) s->result->worst = c.worst;
    reason = c.reason;
  }
  kiln_value_destroy(got);
  tool_inputs_free(&inputs);
  return reason;
}

static char *run_sample(samples *s, const cJSON *json, int index, int64_t runs) {
  kiln_value *sample = NULL, *parts[3] = {NULL, NULL, NULL};
  kiln_status *status = kiln_value_item(s->list, index, &sample);
  char *reason = NULL;
  for (int i = 0; !status && i < 3; i++) status = kiln_value_item(sample, i, &parts[i]);
  if (status) {
    reason = tool_take_message(status);
  } else if (strcmp(
                 kiln_value_as_string(parts[0], NULL) ? kiln_value_as_string(parts[0], NULL) : "",
                 check_text(json, "method", "?")) != 0) {
    reason = tool_format("case.json and samples.pt name different methods");
  }
  const kiln_value *const_parts[3] = {parts[0], parts[1], parts[2]};
  for (int64_t i = 0; !reason && i < runs; i++) {
    reason = run_once(s, json, const_parts);
    if (!reason) continue;
    char *longer =
        tool_format("%s, run %lld: %s", check_text(json, "method", "?"), (long long)i + 1, reason);
    free(reason);
    reason = longer;
  }
  for (int i = 0; i < 3; i++) kiln_value_destroy(parts[i]);
  kiln_value_destroy(sample);
  return reason;
}

/* Every sample `repeat` times, then the good ones in turn. */
static void run_samples(samples *s, const cJSON *list, int count) {
  int failed = 0, index = 0;
  char *first = NULL;
  bool *bad = tool_alloc((size_t)count);
  for (int round = 0; round < 2; round++) {
    const cJSON *json = NULL;
    index = 0;
    cJSON_ArrayForEach(json, list) {
      int i = index++;
      char *reason = bad[i] ? NULL : run_sample(s, json, i, round ? 1 : s->options->repeat);
      if (!reason) continue;
      bad[i] = true;
      failed++;
      tool_keep_first(&first, reason);
    }
  }
  free(bad);
  if (failed) {
    check_fail(s->result, tool_format("%d of %d samples: %s", failed, count, first));
    free(first);
  }
}

static void check_samples(samples *s) {
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(s->c->json, "samples");
  int count = cJSON_IsArray(list) ? cJSON_GetArraySize(list) : 0;
  char *path = tool_join(s->c->folder, "samples.pt");
  kiln_status *status = kiln_value_read(s->context, path, &s->list);
  free(path);
  if (status) {
    check_fail_status(s->result, "samples.pt", status);
  } else if (count == 0 || count != kiln_value_count(s->list)) {
    check_fail(s->result, tool_format("case.json has %d samples, samples.pt has %d", count,
                                      kiln_value_count(s->list)));
  } else {
    run_samples(s, list, count);
  }
}

void check_run_ops(const check_options *options, const check_case *c, check_result *result) {
  samples s = {.options = options, .c = c, .result = result};
  kiln_model *model = NULL;
  char *path = tool_join(c->folder, "model.pt");
  result->passed = true;
  result->exempt_from_groups = true;
  kiln_status *status = check_context(options, &s.context);
  if (!status) status = kiln_model_load(s.context, path, NULL, &model);
  if (!status) status = kiln_instance_create(model, &s.instance);
  if (status) {
    check_fail_status(result, "load", status);
  } else {
    check_samples(&s);
    check_count(result, model);
  }
  kiln_value_destroy(s.list);
  kiln_instance_release(s.instance);
  kiln_model_release(model);
  kiln_context_release(s.context);
  free(path);
}
