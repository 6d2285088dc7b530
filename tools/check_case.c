/* check_case.c: runs a recorded case: input sets, expected results, changed arguments, errors.
 *
 * Every set is run `repeat` times, then all sets in turn, so that specialising and specialising
 * again are both met. A stateful case runs its sets once in order on a new instance, `repeat`
 * times. Arguments are read anew for each call, since a call may change them; where the case
 * records no after_I.pt they must come out unchanged. */
#include <stdlib.h>
#include <string.h>

#include "tools/check.h"

typedef struct recorded {
  const check_options *options;
  const check_case *c;
  check_result *result;
  kiln_context *context;
  kiln_model *model;
  kiln_instance *instance;
  const char *method;
  int sets;
} recorded;

/* -- Shared by the categories -- */

bool check_fail(check_result *result, char *reason) {
  tool_keep_first(&result->reason, reason);
  result->passed = false;
  return false;
}

bool check_fail_status(check_result *result, const char *what, kiln_status *status) {
  kiln_code code = kiln_status_code(status);
  const char *place = kiln_status_location(status);
  char *at = place ? tool_format(" at %s", place) : tool_format("%s", "");
  char *message = tool_take_message(status);
  char *reason = tool_format("%s: %s: %s%s", what, kiln_code_name(code), message, at);
  free(message);
  free(at);
  return check_fail(result, reason);
}

static void throw_away(void *user, const char *text, size_t size) {
  (void)user;
  (void)text;
  (void)size;
}

kiln_status *check_context(const check_options *options, kiln_context **out_context) {
  tool_settings settings = options->settings;
  settings.environment_is_checked = true;
  if (options->async) {
    settings.compile = "async";
    settings.compile_after = "0"; /* few calls, and all kernels are wanted */
  }
  kiln_status *status = tool_context(&settings, out_context);
  if (!status) kiln_context_set_print(*out_context, throw_away, NULL);
  return status;
}

static double number(const cJSON *json, const char *key, double fallback) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsNumber(item) ? item->valuedouble : fallback;
}

tool_comparison check_tolerance(const check_options *options, const cJSON *json) {
  tool_comparison c = {.rtol = number(json, "rtol", 0), .atol = number(json, "atol", 0)};
  if (options->rtol >= 0 && options->rtol < c.rtol) c.rtol = options->rtol;
  if (options->atol >= 0 && options->atol < c.atol) c.atol = options->atol;
  return c;
}

const char *check_text(const cJSON *json, const char *key, const char *fallback) {
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
  return cJSON_IsString(item) ? item->valuestring : fallback;
}

void check_count(check_result *result, const kiln_model *model) {
  kiln_model_counters(model, &result->counters);
}

kiln_status *check_copy_inputs(const kiln_value *tuple, tool_inputs *out_inputs) {
  kiln_value *copy = NULL;
  kiln_status *status = kiln_value_clone(tuple, &copy);
  *out_inputs = (tool_inputs){0};
  if (!status) status = tool_inputs_unpack(copy, out_inputs);
  kiln_value_destroy(copy);
  return status;
}

/* -- One call -- */

/* The text that the error of this set must hold; NULL when it must not fail. */
static const char *expected_error(const recorded *r, int set) {
  const cJSON *raises = cJSON_GetObjectItemCaseSensitive(r->c->json, "raises"), *item = NULL;
  cJSON_ArrayForEach(item, raises) {
    if ((int)number(item, "input", -1) == set) return check_text(item, "contains", "");
  }
  return NULL;
}

static char *set_path(const recorded *r, const char *what, int set) {
  char *name = tool_format("%s_%d.pt", what, set);
  char *path = tool_join(r->c->folder, name);
  free(name);
  return path;
}

static bool compare_with(const recorded *r, const char *where, const char *label,
                         const kiln_value *want, const kiln_value *got, bool exactly) {
  tool_comparison c = check_tolerance(r->options, r->c->json);
  if (exactly) c.rtol = c.atol = 0;
  bool equal = tool_compare(&c, where, want, got);
  if (!exactly && c.worst > r->result->worst) r->result->worst = c.worst;
  if (equal) return true;
  char *reason = tool_format("%s: %s%s", label, exactly ? "changed by the call: " : "", c.reason);
  free(c.reason);
  return check_fail(r->result, reason);
}

static bool check_value_file(const recorded *r, const char *what, int set, const char *where,
                             const char *label, const kiln_value *got) {
  char *path = set_path(r, what, set);
  kiln_value *want = NULL;
  kiln_status *status = kiln_value_read(r->context, path, &want);
  bool good = status ? check_fail_status(r->result, label, status)
                     : compare_with(r, where, label, want, got, false);
  kiln_value_destroy(want);
  free(path);
  return good;
}

/* The arguments after the call are those of after_I.pt, or what they were. */
static bool check_arguments(const recorded *r, int set, const char *label,
                            const tool_inputs *inputs) {
  kiln_value *tuple = NULL, *before = NULL;
  char *after = set_path(r, "after", set), *path = set_path(r, "inputs", set);
  bool changed = tool_exists(after), good;
  kiln_status *status = kiln_value_tuple(r->context, inputs->values, inputs->count, &tuple);
  if (!status && !changed) status = kiln_value_read(r->context, path, &before);
  if (status) {
    good = check_fail_status(r->result, label, status);
  } else if (changed) {
    good = check_value_file(r, "after", set, "arguments", label, tuple);
  } else {
    good = compare_with(r, "arguments", label, before, tuple, true);
  }
  kiln_value_destroy(tuple);
  kiln_value_destroy(before);
  free(after);
  free(path);
  return good;
}

static bool check_error(const recorded *r, const char *label, const char *contains,
                        kiln_status *status) {
  if (!status) {
    return check_fail(r->result,
                      tool_format("%s: did not fail, want an error with '%s'", label, contains));
  }
  int exit_status = tool_exit_status(kiln_status_code(status));
  bool holds = strstr(kiln_status_message(status), contains) != NULL;
  if (holds && exit_status == TOOL_DIFFERENT) {
    kiln_status_destroy(status);
    return true;
  }
  char *message = tool_take_message(status);
  char *reason = tool_format("%s: failed with '%s', want an error of the model with '%s'", label,
                             message, contains);
  free(message);
  return check_fail(r->result, reason);
}

static bool call_set(const recorded *r, int set, const char *label) {
  char *path = set_path(r, "inputs", set);
  const char *contains = expected_error(r, set);
  tool_inputs inputs = {0};
  kiln_value *got = NULL;
  kiln_status *status = tool_inputs_read(r->context, path, &inputs);
  bool good = true;
  free(path);
  if (status) {
    good = check_fail_status(r->result, label, status);
  } else {
    status = kiln_instance_call(r->instance, r->method, inputs.values, inputs.count, NULL, &got);
    if (contains) {
      good = check_error(r, label, contains, status);
    } else if (status) {
      good = check_fail_status(r->result, label, status);
    } else {
      good = check_value_file(r, "expected", set, "result", label, got) &&
             check_arguments(r, set, label, &inputs);
    }
  }
  kiln_value_destroy(got);
  tool_inputs_free(&inputs);
  return good;
}

/* -- The order of calls -- */

static bool new_instance(recorded *r) {
  kiln_instance_release(r->instance);
  r->instance = NULL;
  kiln_status *status = kiln_instance_create(r->model, &r->instance);
  return status ? check_fail_status(r->result, "instance", status) : true;
}

/* What calls have asked for is there. */
static bool settle(const recorded *r) {
  kiln_status *status = kiln_model_wait_idle(r->model, NULL);
  return status ? check_fail_status(r->result, "wait", status) : true;
}

static bool run_in_turn(recorded *r, int64_t round) {
  bool good = true;
  for (int set = 0; good && set < r->sets; set++) {
    char *label = round < 0 ? tool_format("set %d, in turn", set)
                            : tool_format("set %d, round %lld", set, (long long)round + 1);
    good = call_set(r, set, label);
    free(label);
  }
  return good;
}

static bool run_sets(recorded *r) {
  bool good = true;
  const int64_t runs = r->options->repeat * (r->options->async ? 2 : 1);
  if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(r->c->json, "stateful"))) {
    for (int64_t i = 0; good && i < runs; i++) {
      good = new_instance(r) && run_in_turn(r, i) && (i < r->options->repeat || settle(r));
    }
    return good;
  }
  if (!new_instance(r)) return false;
  for (int set = 0; good && set < r->sets; set++) {
    for (int64_t i = 0; good && i < runs; i++) {
      char *label = tool_format("set %d, run %lld", set, (long long)i + 1);
      good = call_set(r, set, label) && (i < r->options->repeat || settle(r));
      free(label);
    }
  }
  return good && run_in_turn(r, -1);
}

void check_run_recorded(const check_options *options, const check_case *c, check_result *result) {
  recorded r = {.options = options, .c = c, .result = result};
  r.method = check_text(c->json, "method", "forward");
  r.sets = (int)number(c->json, "n_cases", 0);
  char *path = tool_join(c->folder, "model.pt");
  result->passed = true;
  if (r.sets < 1) {
    check_fail(result, tool_format("case.json has no input sets (n_cases)"));
  } else {
    kiln_status *status = check_context(options, &r.context);
    if (!status) status = kiln_model_load(r.context, path, NULL, &r.model);
    if (status) {
      check_fail_status(result, "load", status);
    } else {
      run_sets(&r);
      check_count(result, r.model);
    }
  }
  kiln_instance_release(r.instance);
  kiln_model_release(r.model);
  kiln_context_release(r.context);
  free(path);
}
