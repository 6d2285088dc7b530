/* input.c: makes the arguments of a call from SPECs or from a file. */
#include "tools/input.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* An archive of numpy.savez: its tensors are arguments, in their order. */
static bool is_npz(const char *path) { return tool_ends_with(path, ".npz"); }

/* -- All of them -- */

/* Place of the argument called `name`, or -1. */
static int find_argument(const kiln_model *model, const char *method, const char *name,
                         size_t len) {
  kiln_argument argument;
  for (int i = 0;; i++) {
    kiln_status *status = kiln_model_argument(model, method, i, &argument);
    if (status) {
      kiln_status_destroy(status);
      return -1;
    }
    if (strlen(argument.name) == len && memcmp(argument.name, name, len) == 0) return i;
  }
}

/* Returns -1, or the exit status after a complaint. */
static int parse_one(kiln_context *context, const kiln_model *model, const char *method,
                     const char *spec, uint64_t *seed, int *out_place, kiln_value **out_value) {
  bool is_value = false;
  *out_place = -1;
  kiln_status *status = tool_spec_make(context, spec, spec, seed, &is_value, out_value);
  const char *equal = strchr(spec, '='), *value = spec;
  if (!status && !is_value && equal && (isalpha((unsigned char)*spec) || *spec == '_')) {
    value = equal + 1;
    *out_place = find_argument(model, method, spec, (size_t)(equal - spec));
    if (*out_place < 0) {
      return tool_usage_error("--input %s: '%s' has no argument '%.*s'", spec, method,
                              (int)(equal - spec), spec);
    }
    status = tool_spec_make(context, spec, value, seed, &is_value, out_value);
  }
  if (status) return tool_report(status);
  if (is_value) return *out_value ? -1 : TOOL_USAGE;
  char *name = tool_format("%.*s", (int)(value - spec), spec);
  char *advice = tool_spec_advice(name, value);
  const int exit_status =
      tool_usage_error("--input %s is no SPEC: %s (kiln run --help)", spec, advice);
  free(name);
  free(advice);
  return exit_status;
}

/* Takes the value; false when there is one already. Places that nothing is put into stay NULL: such
 * arguments take their defaults. */
static bool put(tool_inputs *inputs, int place, kiln_value *value) {
  if (place >= inputs->count) {
    inputs->values = tool_grow(inputs->values, sizeof *inputs->values * (size_t)(place + 1));
    while (inputs->count <= place) inputs->values[inputs->count++] = NULL;
  }
  if (inputs->values[place]) {
    kiln_value_destroy(value);
    return false;
  }
  inputs->values[place] = value;
  return true;
}

/* Returns -1, or the exit status after a complaint. */
static int put_all(kiln_context *context, const char *path, int *next, tool_inputs *inputs) {
  tool_inputs all;
  kiln_status *status = tool_inputs_read(context, path, &all);
  if (status) return tool_report(status);
  bool good = true;
  for (int i = 0; i < all.count; i++) good = put(inputs, (*next)++, all.values[i]) && good;
  free(all.values);
  return good ? -1 : tool_usage_error("--input %s: one of its arguments is given already", path);
}

int tool_inputs_parse(kiln_context *context, const kiln_model *model, const char *method,
                      const tool_list *specs, uint64_t seed, tool_inputs *out_inputs) {
  *out_inputs = (tool_inputs){0};
  int next = 0, exit_status = -1;
  for (int i = 0; exit_status < 0 && i < specs->count; i++) {
    const char *spec = specs->items[i];
    if (is_npz(spec) && *spec != '@' && !strchr(spec, '=')) {
      exit_status = put_all(context, spec, &next, out_inputs);
      continue;
    }
    kiln_value *value = NULL;
    int place = -1;
    exit_status = parse_one(context, model, method, spec, &seed, &place, &value);
    if (exit_status >= 0) break;
    if (place < 0) place = next;
    next = place + 1;
    if (!put(out_inputs, place, value)) {
      exit_status = tool_usage_error("--input %s: argument %d of '%s' is given already", spec,
                                     place + 1, method);
    }
  }
  if (exit_status >= 0) tool_inputs_free(out_inputs);
  return exit_status;
}

kiln_status *tool_inputs_unpack(const kiln_value *sequence, tool_inputs *out_inputs) {
  int count = kiln_value_count(sequence);
  *out_inputs = (tool_inputs){tool_alloc(sizeof(kiln_value *) * (size_t)(count + 1)), count};
  for (int i = 0; i < count; i++) {
    kiln_status *status = kiln_value_item(sequence, i, &out_inputs->values[i]);
    if (!status) continue;
    tool_inputs_free(out_inputs);
    return status;
  }
  return NULL;
}

kiln_status *tool_inputs_read(kiln_context *context, const char *path, tool_inputs *out_inputs) {
  kiln_value *value = NULL;
  *out_inputs = (tool_inputs){0};
  kiln_status *status = tool_read_value(context, path, &value);
  if (status) return status;
  if (kiln_value_kind(value) == KILN_KIND_TUPLE || is_npz(path)) {
    status = tool_inputs_unpack(value, out_inputs);
    kiln_value_destroy(value);
    return status;
  }
  /* A single value is the only argument. */
  out_inputs->values = tool_alloc(sizeof(kiln_value *));
  out_inputs->values[0] = value;
  out_inputs->count = 1;
  return NULL;
}

kiln_status *tool_inputs_clone(const tool_inputs *inputs, tool_inputs *out_inputs) {
  *out_inputs = (tool_inputs){tool_alloc(sizeof(kiln_value *) * (size_t)(inputs->count + 1)), 0};
  for (; out_inputs->count < inputs->count; out_inputs->count++) {
    const kiln_value *value = inputs->values[out_inputs->count];
    kiln_value **copy = &out_inputs->values[out_inputs->count];
    *copy = NULL;
    kiln_status *status = value ? kiln_value_clone(value, copy) : NULL;
    if (!status) continue;
    tool_inputs_free(out_inputs);
    return status;
  }
  return NULL;
}

void tool_inputs_free(tool_inputs *inputs) {
  for (int i = 0; i < inputs->count; i++) kiln_value_destroy(inputs->values[i]);
  free(inputs->values);
  *inputs = (tool_inputs){0};
}
