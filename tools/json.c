/* json.c: values and counters as JSON. */
#include "tools/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* A value that holds itself, or the same one many times at every level, has no end as JSON. */
enum { MAX_DEPTH = 100, MAX_VALUES = 1 << 22 };
typedef struct extent {
  int depth, values;
} extent;

static cJSON *any(const kiln_value *value, extent *e);

/* Adds the part to the array; false when there is no end of it. */
static bool add_part(cJSON *array, const kiln_value *value, int index, extent *e,
                     kiln_status *(*get)(const kiln_value *, int, kiln_value **)) {
  kiln_value *item = NULL;
  kiln_status *status = get(value, index, &item);
  cJSON *json = status ? cJSON_CreateNull() : any(item, e);
  kiln_status_destroy(status);
  kiln_value_destroy(item);
  return json && cJSON_AddItemToArray(array, json);
}

static bool add_pair(cJSON *array, const kiln_value *value, int index, extent *e) {
  cJSON *pair = cJSON_CreateArray();
  cJSON_AddItemToArray(array, pair);
  return add_part(pair, value, index, e, kiln_value_key) &&
         add_part(pair, value, index, e, kiln_value_item);
}

static cJSON *sequence(const kiln_value *value, bool dict, extent *e) {
  cJSON *json = cJSON_CreateArray();
  bool ends = ++e->depth <= MAX_DEPTH;
  for (int i = 0; ends && i < kiln_value_count(value); i++) {
    ends = ++e->values <= MAX_VALUES &&
           (dict ? add_pair(json, value, i, e) : add_part(json, value, i, e, kiln_value_item));
  }
  e->depth--;
  if (ends) return json;
  cJSON_Delete(json);
  return NULL;
}

static cJSON *printed(const kiln_value *value) {
  char *text = NULL;
  kiln_status *status = kiln_value_print(value, 1000, &text);
  cJSON *json = status ? cJSON_CreateNull() : cJSON_CreateString(text);
  kiln_status_destroy(status);
  kiln_text_free(text);
  return json;
}

/* With what cJSON would end at: a zero in the text. */
static cJSON *string(const kiln_value *value) {
  size_t size = 0, len = 0;
  const char *text = kiln_value_as_string(value, &size);
  if (strlen(text) == size) return cJSON_CreateString(text);
  char *raw = tool_alloc(6 * size + 3);
  raw[len++] = '"';
  for (size_t i = 0; i < size; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (c < ' ' || c == '"' || c == '\\') {
      len += (size_t)sprintf(raw + len, "\\u%04x", c);
    } else {
      raw[len++] = text[i];
    }
  }
  raw[len] = '"';
  cJSON *json = cJSON_CreateRaw(raw);
  free(raw);
  return json;
}

static cJSON *any(const kiln_value *value, extent *e) {
  double re = 0, im = 0;
  switch (kiln_value_kind(value)) {
    case KILN_KIND_NONE: return cJSON_CreateNull();
    case KILN_KIND_TENSOR: return tensor(value);
    case KILN_KIND_INT: return tool_json_int(kiln_value_as_int(value));
    case KILN_KIND_FLOAT: return tool_json_number(kiln_value_as_float(value));
    case KILN_KIND_BOOL: return cJSON_CreateBool(kiln_value_as_bool(value));
    case KILN_KIND_COMPLEX: kiln_value_as_complex(value, &re, &im); return complex_pair(re, im);
    case KILN_KIND_STRING: return string(value);
    case KILN_KIND_LIST:
    case KILN_KIND_TUPLE: return sequence(value, false, e);
    case KILN_KIND_DICT: return sequence(value, true, e);
    default: return printed(value);
  }
}

cJSON *tool_json_value(const kiln_value *value) { return any(value, &(extent){0}); }

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
  cJSON_AddItemToObject(json, "jobs", tool_json_int((int64_t)c->jobs));
  cJSON_AddItemToObject(json, "stalls", tool_json_int((int64_t)c->stalls));
  cJSON_AddNumberToObject(json, "worst_stall_ms", (double)c->worst_stall_ns * 1e-6);
  cJSON_AddItemToObject(json, "plan_bytes", tool_json_int((int64_t)c->plan_bytes));
  cJSON_AddItemToObject(json, "code_bytes", tool_json_int((int64_t)c->code_bytes));
  cJSON_AddItemToObject(json, "retired", tool_json_int((int64_t)c->retired));
  cJSON_AddItemToObject(json, "dropped", tool_json_int((int64_t)c->dropped));
  return json;
}

/* Bytes of the UTF-8 character that begins here; 0: it is none. */
static size_t utf8_length(const char *text) {
  const unsigned char *s = (const unsigned char *)text;
  const unsigned char least = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
  const unsigned char most = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
  if (s[0] < 0x80) return 1;
  if (s[0] < 0xc2 || s[0] > 0xf4 || s[1] < least || s[1] > most) return 0;
  const size_t len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
  for (size_t i = 2; i < len; i++) {
    if (s[i] < 0x80 || s[i] > 0xbf) return 0;
  }
  return len;
}

/* Strings of a model may hold any bytes, JSON only UTF-8: U+FFFD stands for each that is none. */
void tool_json_print(cJSON *json, FILE *file) {
  char *text = cJSON_Print(json);
  for (const char *at = text; at && *at;) {
    const char *begin = at;
    size_t len = 0;
    while (*at && (len = utf8_length(at)) > 0) at += len;
    fwrite(begin, 1, (size_t)(at - begin), file);
    if (*at) {
      fputs("\xef\xbf\xbd", file);
      at++;
    }
  }
  if (text) fputc('\n', file);
  cJSON_free(text);
  cJSON_Delete(json);
}
