/* spec.c: one argument of a call from a SPEC: tensors, plain values, and containers of them. */
#include "tools/spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/element.h"

enum { MAX_DEPTH = 64, MAX_RANK = 64 };

const char tool_spec_help[] =
    "A SPEC is [name=]VALUE, where VALUE is one of\n"
    "  2x3xf32           a tensor of random elements: floats from -1 to 1, ints from 0 to 9\n"
    "  2x3xf32=0         every element 0; =1,2,3,4,5,6 gives them one by one (c64: 1+2j)\n"
    "  2x3xf32=@x.npy    the tensor of a file, of that shape and dtype; @x.npy takes any\n"
    "  x.npz:a           the tensor a of an archive of numpy.savez; --input x.npz gives all, in "
    "order\n"
    "  f32, f32=1.5      a tensor of no dimensions (i64=, f64= and bool= make plain numbers)\n"
    "  i64=5 f64=0.5 bool=true str=text none\n"
    "  [a, b] (a, b)     a list, a tuple; {str=k: a, i64=1: b} a dict\n";

/* -- Tensors -- */

typedef struct shape {
  int rank;
  int64_t sizes[MAX_RANK];
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
    if (text == end || *text != 'x' || out->rank == MAX_RANK) return false;
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

/* Fills `data` from "1,2,3" (one for all, or one for each element): NULL, or what is wrong, freed
 * by the caller. */
static char *parse_elements(const char *text, const shape *s, int64_t numel, char *data) {
  const size_t size = kiln_dtype_size(s->dtype);
  char one[16];
  int64_t count = 0;
  for (const char *p = text, *end;; p = end + 1) {
    end = tool_element_parse(s->dtype, p, one);
    if (!end || (*end && *end != ',')) {
      return tool_format("'%.*s' is no element of %s", (int)strcspn(p, ","), p,
                         tool_dtype_short_name(s->dtype));
    }
    if (count < numel) memcpy(data + (size_t)count * size, one, size);
    count++;
    if (!*end) break;
  }
  for (int64_t i = 1; count == 1 && i < numel; i++) memcpy(data + (size_t)i * size, one, size);
  if (count == 1 || count == numel) return NULL;
  return tool_format("there are %lld elements, not %lld", (long long)count, (long long)numel);
}

static kiln_status *make_tensor(kiln_context *context, const char *spec, const shape *s,
                                const char *elements, uint64_t *seed, kiln_value **out_value) {
  kiln_value *tensor = NULL;
  /* The library checks the sizes, so that the element count cannot overflow here. */
  kiln_status *status = kiln_value_tensor(context, s->dtype, s->rank, s->sizes, NULL, &tensor);
  if (status) return status;
  int64_t numel = tool_numel(tensor);
  void *data = tool_alloc((size_t)numel * kiln_dtype_size(s->dtype));
  char *wrong = NULL;
  if (elements) {
    wrong = parse_elements(elements, s, numel, data);
  } else {
    for (int64_t i = 0; i < numel; i++) {
      tool_element_store(s->dtype, data, i, random_element(s->dtype, seed));
    }
  }
  kiln_value_destroy(tensor);
  if (wrong) {
    tool_usage_error("--input %s: %s", spec, wrong);
  } else {
    status = kiln_value_tensor(context, s->dtype, s->rank, s->sizes, data, out_value);
  }
  free(wrong);
  free(data);
  return status;
}

/* Complains of what the file holds instead; false when it is what the SPEC says. */
static bool differs(const char *spec, const shape *s, const char *path, const kiln_value *value) {
  const char *type = kiln_value_type(value);
  if (kiln_value_kind(value) != KILN_KIND_TENSOR) {
    tool_usage_error("--input %s: '%s' holds no tensor but a value of type %s", spec, path,
                     type ? type : "?");
    return true;
  }
  bool shapes = kiln_value_rank(value) == s->rank;
  for (int i = 0; shapes && i < s->rank; i++) shapes = kiln_value_sizes(value)[i] == s->sizes[i];
  const bool dtypes = kiln_value_dtype(value) == s->dtype;
  if (shapes && dtypes) return false;
  char *text = tool_format("%s", "");
  for (int i = 0; i < kiln_value_rank(value); i++) {
    char *longer = tool_format("%s%lldx", text, (long long)kiln_value_sizes(value)[i]);
    free(text);
    text = longer;
  }
  tool_usage_error("--input %s: '%s' has another %s: it holds %s%s", spec, path,
                   shapes   ? "dtype"
                   : dtypes ? "shape"
                            : "shape and dtype",
                   text, tool_dtype_short_name(kiln_value_dtype(value)));
  free(text);
  return true;
}

static kiln_status *read_tensor(kiln_context *context, const char *spec, const shape *s,
                                const char *path, kiln_value **out_value) {
  kiln_value *tensor = NULL;
  kiln_status *status = tool_read_value(context, path, &tensor);
  if (status) return status;
  if (s && differs(spec, s, path, tensor)) {
    kiln_value_destroy(tensor);
    return NULL;
  }
  *out_value = tensor;
  return NULL;
}

/* -- Plain values -- */

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

/* -- Containers -- */

typedef struct maker {
  kiln_context *context;
  const char *spec; /* the whole, for complaints */
  uint64_t *seed;
  int depth;
} maker;

static kiln_status *make_value(maker *m, const char *text, bool *out_is_value,
                               kiln_value **out_value);

/* Length of `text` up to `stop` or its end, brackets skipped. */
static size_t span(const char *text, char stop) {
  int open = 0;
  size_t len = 0;
  for (; text[len] && (open > 0 || text[len] != stop); len++) {
    if (strchr("[({", text[len])) open++;
    if (strchr("])}", text[len])) open--;
  }
  return len;
}

static bool is_number(const char *text, size_t len) {
  char *end = NULL;
  (void)strtod(text, &end);
  return len > 0 && end == text + len;
}

/* Whether it can only belong to a tensor's elements: a number, also a complex one, true or false.
 */
static bool is_element(const char *text, size_t len) {
  static const kiln_dtype widest[] = {KILN_DTYPE_C128, KILN_DTYPE_BOOL};
  char one[16];
  for (size_t i = 0; i < sizeof widest / sizeof *widest; i++) {
    if (len > 0 && tool_element_parse(widest[i], text, one) == text + len) return true;
  }
  return false;
}

static const char *skip_blanks(const char *text) {
  while (isspace((unsigned char)*text)) text++;
  return text;
}

/* The next item of `*cursor`, which moves behind it; freed by the caller. Numbers alone belong to
 * the tensor before them: [2xf32=1,2, i64=3] has two items. */
static char *next_item(const char **cursor) {
  const char *begin = skip_blanks(*cursor), *end = begin + span(begin, ',');
  while (*end) {
    const char *next = skip_blanks(end + 1);
    const size_t len = span(next, ',');
    if (!is_element(next, len)) break;
    end = next + len;
  }
  *cursor = *end ? end + 1 : end;
  while (end > begin && isspace((unsigned char)end[-1])) end--;
  return tool_format("%.*s", (int)(end - begin), begin);
}

typedef struct items {
  kiln_value **keys, **values;
  int count;
} items;

static void free_items(items *all) {
  for (int i = 0; i < all->count; i++) {
    kiln_value_destroy(all->keys[i]);
    kiln_value_destroy(all->values[i]);
  }
  free(all->keys);
  free(all->values);
}

/* Adds the item; of a dict "key: value". Leaves *out_is_value false when it is none. */
static kiln_status *add_item(maker *m, char *text, bool dict, items *all, bool *out_is_value) {
  const int at = all->count;
  const size_t colon = span(text, ':');
  char *value = text;
  all->keys = tool_grow(all->keys, sizeof *all->keys * (size_t)(at + 1));
  all->values = tool_grow(all->values, sizeof *all->values * (size_t)(at + 1));
  all->keys[at] = all->values[at] = NULL;
  all->count++;
  if (dict) {
    *out_is_value = text[colon] == ':';
    if (!*out_is_value) return NULL;
    text[colon] = 0;
    value = text + colon + 1;
    kiln_status *status = make_value(m, text, out_is_value, &all->keys[at]);
    if (status || !*out_is_value || !all->keys[at]) return status;
  }
  return make_value(m, skip_blanks(value), out_is_value, &all->values[at]);
}

static kiln_status *make_container(maker *m, const char *text, bool *out_is_value,
                                   kiln_value **out_value) {
  const char kind = text[0];
  const size_t len = strlen(text);
  kiln_status *status = NULL;
  items all = {0};
  *out_is_value = len > 1 &&
                  text[len - 1] == (kind == '['   ? ']'
                                    : kind == '(' ? ')'
                                                  : '}') &&
                  m->depth < MAX_DEPTH;
  if (!*out_is_value) return NULL;
  char *inside = tool_format("%.*s", (int)(len - 2), text + 1);
  const char *cursor = skip_blanks(inside);
  bool good = true;
  m->depth++;
  while (*cursor && !status && good) {
    char *item = next_item(&cursor);
    status = add_item(m, item, kind == '{', &all, out_is_value);
    free(item);
    good = *out_is_value && all.values[all.count - 1];
    cursor = skip_blanks(cursor);
  }
  m->depth--;
  if (!status && good) {
    status = kind == '[' ? kiln_value_list(m->context, all.values, all.count, out_value)
             : kind == '('
                 ? kiln_value_tuple(m->context, all.values, all.count, out_value)
                 : kiln_value_dict(m->context, all.keys, all.values, all.count, out_value);
  }
  free_items(&all);
  free(inside);
  return status;
}

/* -- Any value -- */

/* Not a VALUE: *out_is_value false. A complaint that was made already leaves *out_value NULL. */
static kiln_status *make_value(maker *m, const char *text, bool *out_is_value,
                               kiln_value **out_value) {
  *out_is_value = true;
  if (strchr("[({", text[0]) && text[0]) return make_container(m, text, out_is_value, out_value);
  if (text[0] == '@') return read_tensor(m->context, m->spec, NULL, text + 1, out_value);
  if (strcmp(text, "none") == 0) return kiln_value_none(m->context, out_value);
  for (size_t i = 0; i < sizeof plain_kinds / sizeof plain_kinds[0]; i++) {
    size_t len = strlen(plain_kinds[i].prefix);
    if (strncmp(text, plain_kinds[i].prefix, len) == 0) {
      return make_plain(m->context, m->spec, plain_kinds[i].kind, text + len, out_value);
    }
  }
  if (strstr(text, TOOL_MEMBER) && !strchr(text, '=')) {
    return read_tensor(m->context, m->spec, NULL, text, out_value);
  }
  shape s;
  size_t len = strcspn(text, "=");
  if (!parse_shape(text, len, &s)) {
    *out_is_value = false;
    return NULL;
  }
  const char *value = text[len] ? text + len + 1 : NULL;
  if (value && value[0] == '@') return read_tensor(m->context, m->spec, &s, value + 1, out_value);
  return make_tensor(m->context, m->spec, &s, value, m->seed, out_value);
}

kiln_status *tool_spec_make(kiln_context *context, const char *spec, const char *text,
                            uint64_t *seed, bool *out_is_value, kiln_value **out_value) {
  maker m = {context, spec, seed, 0};
  *out_value = NULL;
  return make_value(&m, text, out_is_value, out_value);
}

/* -- What is wrong with it -- */

char *tool_spec_advice(const char *name, const char *text) {
  const size_t sizes = strspn(text, "0123456789x"), len = strlen(text);
  const size_t dtype = strcspn(text, "=");
  const char *last = text + sizes;
  if (len == 0) return tool_format("there is no value");
  if (strchr("[({", text[0])) {
    return tool_format("a list is [2x3xf32, i64=5], a tuple (…, …), a dict {str=k: 2xf32}; each "
                       "item is a VALUE");
  }
  if (tool_ends_with(text, ".npy")) return tool_format("a file's tensor is %s@%s", name, text);
  if (tool_ends_with(text, ".npz")) {
    return tool_format("a tensor of an archive is %s%s:NAME, all of them are --input %s", name,
                       text, text);
  }
  if (tool_ends_with(text, ".pt"))
    return tool_format("a file of all arguments is --inputs %s", text);
  if (strspn(text, "-0123456789") == len)
    return tool_format("a number needs its type: %si64=%s", name, text);
  if (is_number(text, len)) return tool_format("a number needs its type: %sf64=%s", name, text);
  if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
    return tool_format("a bool needs its type: %sbool=%s", name, text);
  }
  if (sizes > 0 && sizes == dtype) {
    return tool_format("the dtype is missing: %s%.*s%sf32%s", name, (int)sizes, text,
                       text[sizes - 1] == 'x' ? "" : "x", last);
  }
  if (strspn(text, "0123456789,x ") == len) {
    return tool_format("sizes are joined by x, and the dtype is last: %s2x3xf32", name);
  }
  if (sizes > 0 && tool_dtype_of_short_name(last, dtype - sizes) != KILN_DTYPE_NONE) {
    int rank = 0;
    for (size_t i = 0; i < sizes; i++) rank += text[i] == 'x';
    return rank > MAX_RANK
               ? tool_format("a tensor has at most %d dimensions, not %d", MAX_RANK, rank)
               : tool_format("sizes are numbers of up to 63 bits, each with an x behind it");
  }
  if (sizes > 0) {
    return tool_format("'%.*s' is no dtype; one is f32, i64, bool, …", (int)(dtype - sizes), last);
  }
  if (strpbrk(text, "[(,")) return tool_format("a tensor is SIZExSIZExDTYPE: %s2x3xf32", name);
  return tool_format("it is no tensor (2x3xf32), and text is %sstr=%s", name, text);
}
