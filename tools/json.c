/* json.c: values and counters as JSON. */
#include "tools/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "tools/element.h"

cJSON *tool_json_number(double value) {
  if (isnan(value)) return cJSON_CreateString("nan");
  if (isinf(value)) return cJSON_CreateString(value > 0 ? "inf" : "-inf");
  return cJSON_CreateNumber(value);
}

cJSON *tool_json_int(int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%" PRId64, value);
  return cJSON_CreateRaw(text);
}

static cJSON *complex_pair(double re, double im) {
  cJSON *pair = cJSON_CreateArray();
  cJSON_AddItemToArray(pair, tool_json_number(re));
  cJSON_AddItemToArray(pair, tool_json_number(im));
  return pair;
}

static cJSON *element(kiln_dtype dtype, const void *data, int64_t index) {
  double re, im;
  if (dtype == KILN_DTYPE_BOOL) return cJSON_CreateBool(tool_element_int(dtype, data, index) != 0);
  switch (tool_element_class_of(dtype)) {
    case TOOL_ELEMENT_FLOAT:
      tool_element_float(dtype, data, index, &re, &im);
      return tool_json_number(re);
    case TOOL_ELEMENT_COMPLEX:
      tool_element_float(dtype, data, index, &re, &im);
      return complex_pair(re, im);
    case TOOL_ELEMENT_INT: return tool_json_int(tool_element_int(dtype, data, index));
    default: return cJSON_CreateNull();
  }
}

static cJSON *tensor(const kiln_value *value) {
  cJSON *json = cJSON_CreateObject(), *shape = cJSON_AddArrayToObject(json, "shape");
  kiln_dtype dtype = kiln_value_dtype(value);
  const char *name = kiln_dtype_name(dtype);
  cJSON_AddStringToObject(json, "dtype", name ? name : "none");
  for (int i = 0; i < kiln_value_rank(value); i++) {
    cJSON_AddItemToArray(shape, tool_json_int(kiln_value_sizes(value)[i]));
  }
  kiln_status *status = NULL;
  void *data = dtype == KILN_DTYPE_NONE ? NULL : tool_elements(value, &status);
  cJSON *flat = cJSON_AddArrayToObject(json, "data");
  for (int64_t i = 0; data && i < tool_numel(value); i++) {
    cJSON_AddItemToArray(flat, element(dtype, data, i));
  }
  free(data);
  kiln_status_destroy(status);
  return json;
}

static cJSON *part(const kiln_value *value, int index,
                   kiln_status *(*get)(const kiln_value *, int, kiln_value **)) {
  kiln_value *item = NULL;
  kiln_status *status = get(value, index, &item);
  if (status) {
    kiln_status_destroy(status);
    return cJSON_CreateNull();
  }
  cJSON *json = tool_json_value(item);
  kiln_value_destroy(item);
  return json;
}

static cJSON *sequence(const kiln_value *value, bool dict) {
  cJSON *json = cJSON_CreateArray();
  for (int i = 0; i < kiln_value_count(value); i++) {
    if (!dict) {
      cJSON_AddItemToArray(json, part(value, i, kiln_value_item));
      continue;
    }
    cJSON *pair = cJSON_CreateArray();
    cJSON_AddItemToArray(pair, part(value, i, kiln_value_key));
    cJSON_AddItemToArray(pair, part(value, i, kiln_value_item));
    cJSON_AddItemToArray(json, pair);
  }
  return json;
}

static cJSON *printed(const kiln_value *value) {
  char *text = NULL;
  kiln_status *status = kiln_value_print(value, 1000, &text);
  cJSON *json = status ? cJSON_CreateNull() : cJSON_CreateString(text);
  kiln_status_destroy(status);
  kiln_text_free(text);
  return json;
}

cJSON *tool_json_value(const kiln_value *value) {
  double re = 0, im = 0;
  switch (kiln_value_kind(value)) {
    case KILN_KIND_NONE: return cJSON_CreateNull();
    case KILN_KIND_TENSOR: return tensor(value);
    case KILN_KIND_INT: return tool_json_int(kiln_value_as_int(value));
    case KILN_KIND_FLOAT: return tool_json_number(kiln_value_as_float(value));
    case KILN_KIND_BOOL: return cJSON_CreateBool(kiln_value_as_bool(value));
    case KILN_KIND_COMPLEX: kiln_value_as_complex(value, &re, &im); return complex_pair(re, im);
    case KILN_KIND_STRING: return cJSON_CreateString(kiln_value_as_string(value, NULL));
    case KILN_KIND_LIST:
    case KILN_KIND_TUPLE: return sequence(value, false);
    case KILN_KIND_DICT: return sequence(value, true);
    default: return printed(value);
  }
}

cJSON *tool_json_counters(const kiln_counters *c) {
  cJSON *json = cJSON_CreateObject();
  cJSON_AddItemToObject(json, "calls", tool_json_int((int64_t)c->calls));
  cJSON_AddItemToObject(json, "profiled_runs", tool_json_int((int64_t)c->profiled_runs));
  cJSON_AddItemToObject(json, "groups", tool_json_int((int64_t)c->groups));
  cJSON_AddItemToObject(json, "compiles", tool_json_int((int64_t)c->compiles));
  cJSON_AddItemToObject(json, "compile_failures", tool_json_int((int64_t)c->compile_failures));
  cJSON_AddNumberToObject(json, "compile_ms", (double)c->compile_ns * 1e-6);
  cJSON_AddItemToObject(json, "guard_hits", tool_json_int((int64_t)c->guard_hits));
  cJSON_AddItemToObject(json, "guard_misses", tool_json_int((int64_t)c->guard_misses));
  cJSON_AddItemToObject(json, "fallback_calls", tool_json_int((int64_t)c->fallback_calls));
  cJSON_AddItemToObject(json, "compiled_runs", tool_json_int((int64_t)c->compiled_runs));
  cJSON_AddItemToObject(json, "groups_never_run", tool_json_int((int64_t)c->groups_never_run));
  cJSON_AddItemToObject(json, "max_depth", tool_json_int((int64_t)c->max_depth));
  cJSON_AddItemToObject(json, "simple_plans", tool_json_int((int64_t)c->simple_plans));
  return json;
}

void tool_json_print(cJSON *json, FILE *file) {
  char *text = cJSON_Print(json);
  if (text) {
    fputs(text, file);
    fputc('\n', file);
  }
  cJSON_free(text);
  cJSON_Delete(json);
}
