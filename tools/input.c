/* input.c: makes the arguments of a call from SPECs or from a file. */
#include "tools/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/element.h"

const char tool_spec_help[] =
    "A SPEC is [name=]VALUE, where VALUE is one of\n"
    "  2x3xf32           a tensor of random elements: floats from -1 to 1, ints from 0 to 9\n"
    "  2x3xf32=0         every element 0; =1,2,3,4,5,6 gives them one by one\n"
    "  2x3xf32=@x.npy    the tensor of a file, of that shape and dtype; @x.npy takes any\n"
    "  f32, f32=1.5      a tensor of no dimensions (i64=, f64= and bool= make plain numbers)\n"
    "  i64=5 f64=0.5 bool=true str=text none\n";

/* -- One value -- */

typedef struct shape {
  int rank;
  int64_t sizes[64];
  kiln_dtype dtype;
} shape;

/* "2x3xf32": false when the text is no shape. */
static bool parse_shape(const char *text, size_t len, shape *out) {
  const char *end = text + len;
  out->rank = 0;
  while (text < end && *text >= '0' && *text <= '9') {
    int64_t size = 0;
    for (; text < end && *text >= '0' && *text <= '9'; text++) {
      if (__builtin_mul_overflow(size, 10, &size) ||
          __builtin_add_overflow(size, *text - '0', &size)) {
        return false;
      }
    }
    if (text == end || *text != 'x' || out->rank == 64) return false;
    text++;
    out->sizes[out->rank++] = size;
  }
  out->dtype = tool_dtype_of_short_name(text, (size_t)(end - text));
  return out->dtype != KILN_DTYPE_NONE;
}

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static double random_element(kiln_dtype dtype, uint64_t *state) {
  uint64_t r = next_random(state);
  if (dtype == KILN_DTYPE_BOOL) return (double)(r & 1);
  if (tool_element_class_of(dtype) == TOOL_ELEMENT_INT) return (double)((r >> 33) % 10);
  return (double)(r >> 11) * 0x1p-52 - 1.0;
}

/* Fills `data` from "1,2,3" (one number for all, or one for each element). */
static bool parse_elements(const char *text, const shape *s, int64_t numel, void *data) {
  int64_t count = 0;
  double value = 0;
  for (const char *p = text;; p++) {
    char *end = NULL;
    errno = 0;
    value = strtod(p, &end);
    if (end == p || (*end && *end != ',')) return false;
    if (count < numel) tool_element_store(s->dtype, data, count, value);
    count++;
    p = end;
    if (!*p) break;
  }
  if (count == 1) {
    for (int64_t i = 1; i < numel; i++) tool_element_store(s->dtype, data, i, value);
    return true;
  }
  return count == numel;
}

static kiln_status *make_tensor(kiln_context *context, const char *spec, const shape *s,
                                const char *elements, uint64_t *seed, kiln_value **out_value) {
  kiln_value *tensor = NULL;
  /* The library checks the sizes, so that the element count cannot overflow here. */
  kiln_status *status = kiln_value_tensor(context, s->dtype, s->rank, s->sizes, NULL, &tensor);
  if (status) return status;
  int64_t numel = tool_numel(tensor);
  void *data = tool_alloc((size_t)numel * kiln_dtype_size(s->dtype));
  bool good = true;
  if (elements) {
    good = parse_elements(elements, s, numel, data);
  } else {
    for (int64_t i = 0; i < numel; i++) {
      tool_element_store(s->dtype, data, i, random_element(s->dtype, seed));
    }
  }
  kiln_value_destroy(tensor);
  if (good) {
    status = kiln_value_tensor(context, s->dtype, s->rank, s->sizes, data, out_value);
  } else {
    tool_usage_error("--input %s: the elements do not parse, or are not %lld", spec,
                     (long long)numel);
  }
  free(data);
  return status;
}

static kiln_status *read_tensor(kiln_context *context, const char *spec, const shape *s,
                                const char *path, kiln_value **out_value) {
  kiln_value *tensor = NULL;
  kiln_status *status = kiln_value_read(context, path, &tensor);
  if (status) return status;
  bool fits = !s || (kiln_value_kind(tensor) == KILN_KIND_TENSOR &&
                     kiln_value_dtype(tensor) == s->dtype && kiln_value_rank(tensor) == s->rank);
  for (int i = 0; fits && s && i < s->rank; i++) fits = kiln_value_sizes(tensor)[i] == s->sizes[i];
  if (!fits) {
    tool_usage_error("--input %s: '%s' holds another shape or dtype", spec, path);
    kiln_value_destroy(tensor);
    return NULL;
  }
  *out_value = tensor;
  return NULL;
}

typedef struct plain_kind {
  const char *prefix;
  char kind;
} plain_kind;
static const plain_kind plain_kinds[] = {
    {"i64=", 'i'}, {"f64=", 'f'}, {"bool=", 'b'}, {"str=", 's'}};

static kiln_status *make_plain(kiln_context *context, const char *spec, char kind, const char *text,
                               kiln_value **out_value) {
  char *end = NULL;
  errno = 0;
  if (kind == 's') return kiln_value_string(context, text, strlen(text), out_value);
  if (kind == 'i') {
    long long i = strtoll(text, &end, 10);
    if (end != text && !*end && !errno) return kiln_value_int(context, i, out_value);
  } else if (kind == 'f') {
    double f = strtod(text, &end);
    if (end != text && !*end) return kiln_value_float(context, f, out_value);
  } else {
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "True") == 0 || strcmp(text, "1") == 0;
    bool no = strcmp(text, "false") == 0 || strcmp(text, "False") == 0 || strcmp(text, "0") == 0;
    if (yes || no) return kiln_value_bool(context, yes, out_value);
  }
  tool_usage_error("--input %s: '%s' is no such value", spec, text);
  return NULL;
}

/* Makes a value of VALUE. Not a VALUE: *out_is_value false. A complaint that was made already
 * leaves *out_value NULL. */
static kiln_status *make_value(kiln_context *context, const char *spec, const char *text,
                               uint64_t *seed, bool *out_is_value, kiln_value **out_value) {
  *out_is_value = true;
  if (text[0] == '@') return read_tensor(context, spec, NULL, text + 1, out_value);
  if (strcmp(text, "none") == 0) return kiln_value_none(context, out_value);
  for (size_t i = 0; i < sizeof plain_kinds / sizeof plain_kinds[0]; i++) {
    size_t len = strlen(plain_kinds[i].prefix);
    if (strncmp(text, plain_kinds[i].prefix, len) == 0) {
      return make_plain(context, spec, plain_kinds[i].kind, text + len, out_value);
    }
  }
  shape s;
  size_t len = strcspn(text, "=");
  if (!parse_shape(text, len, &s)) {
    *out_is_value = false;
    return NULL;
  }
  const char *value = text[len] ? text + len + 1 : NULL;
  if (value && value[0] == '@') return read_tensor(context, spec, &s, value + 1, out_value);
  return make_tensor(context, spec, &s, value, seed, out_value);
}

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
  kiln_status *status = make_value(context, spec, spec, seed, &is_value, out_value);
  const char *equal = strchr(spec, '=');
  if (!status && !is_value && equal) {
    *out_place = find_argument(model, method, spec, (size_t)(equal - spec));
    if (*out_place < 0) {
      return tool_usage_error("--input %s: '%s' has no argument '%.*s'", spec, method,
                              (int)(equal - spec), spec);
    }
    status = make_value(context, spec, equal + 1, seed, &is_value, out_value);
  }
  if (status) return tool_report(status);
  if (!is_value) return tool_usage_error("--input %s is no SPEC (kiln run --help)", spec);
  return *out_value ? -1 : TOOL_USAGE;
}

static void put(tool_inputs *inputs, int place, kiln_value *value) {
  if (place >= inputs->count) {
    inputs->values = tool_grow(inputs->values, sizeof *inputs->values * (size_t)(place + 1));
    while (inputs->count <= place) inputs->values[inputs->count++] = NULL;
  }
  kiln_value_destroy(inputs->values[place]);
  inputs->values[place] = value;
}

int tool_inputs_parse(kiln_context *context, const kiln_model *model, const char *method,
                      const tool_list *specs, uint64_t seed, tool_inputs *out_inputs) {
  *out_inputs = (tool_inputs){0};
  int next = 0;
  for (int i = 0; i < specs->count; i++) {
    kiln_value *value = NULL;
    int place = -1;
    int exit_status = parse_one(context, model, method, specs->items[i], &seed, &place, &value);
    if (exit_status >= 0) {
      tool_inputs_free(out_inputs);
      return exit_status;
    }
    if (place < 0) place = next;
    put(out_inputs, place, value);
    next = place + 1;
  }
  for (int i = 0; i < out_inputs->count; i++) {
    if (out_inputs->values[i]) continue;
    tool_inputs_free(out_inputs);
    return tool_usage_error("argument %d of '%s' is left out between others", i + 1, method);
  }
  return -1;
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
  kiln_status *status = kiln_value_read(context, path, &value);
  if (status) return status;
  if (kiln_value_kind(value) == KILN_KIND_TUPLE) {
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

void tool_inputs_free(tool_inputs *inputs) {
  for (int i = 0; i < inputs->count; i++) kiln_value_destroy(inputs->values[i]);
  free(inputs->values);
  *inputs = (tool_inputs){0};
}
