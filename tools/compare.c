/* compare.c: compares a result with what was recorded, value by value. */
#include "tools/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/element.h"

static const char *const kind_names[] = {
    "None",     "a tensor", "an int",  "a float", "a bool",    "a complex number", "a string",
    "a device", "a list",   "a tuple", "a dict",  "an object", "another value"};

static bool differ(tool_comparison *c, char *reason) {
  tool_keep_first(&c->reason, reason);
  return false;
}

static bool failed(tool_comparison *c, const char *where, kiln_status *status) {
  char *message = tool_take_message(status);
  char *reason = tool_format("%s cannot be read: %s", where, message);
  free(message);
  return differ(c, reason);
}

/* The error as a part of the tolerance: 0 equal, above 1 too far. */
static double error_of(const tool_comparison *c, const double want[2], const double got[2]) {
  for (int i = 0; i < 2; i++) {
    if (isnan(want[i]) != isnan(got[i])) return (double)INFINITY;
  }
  /* NaN equals NaN, and infinities of one sign are equal: such parts leave the distance. */
  double d[2], size[2];
  for (int i = 0; i < 2; i++) {
    bool same = want[i] == got[i] || isnan(want[i]);
    d[i] = same ? 0 : got[i] - want[i];
    size[i] = isnan(want[i]) ? 0 : want[i];
  }
  double distance = hypot(d[0], d[1]);
  if (distance == 0) return 0;
  if (!isfinite(distance)) return (double)INFINITY;
  double tolerance = c->atol + c->rtol * hypot(size[0], size[1]);
  return tolerance > 0 ? distance / tolerance : (double)INFINITY;
}

/* -- Tensors -- */

static char *shape_text(const kiln_value *v) {
  char *text = tool_format("[");
  for (int i = 0; i < kiln_value_rank(v); i++) {
    char *longer = tool_format("%s%s%lld", text, i ? ", " : "", (long long)kiln_value_sizes(v)[i]);
    free(text);
    text = longer;
  }
  char *closed = tool_format("%s]", text);
  free(text);
  return closed;
}

static char *index_text(const kiln_value *v, int64_t index) {
  int rank = kiln_value_rank(v);
  char *text = tool_format("]");
  for (int i = rank - 1; i >= 0; i--) {
    int64_t size = kiln_value_sizes(v)[i];
    char *longer = tool_format("%s%lld%s", i ? ", " : "[", (long long)(index % size), text);
    index /= size;
    free(text);
    text = longer;
  }
  if (rank > 0) return text;
  free(text);
  return tool_format("[]");
}

static bool same_shape(const kiln_value *a, const kiln_value *b) {
  int rank = kiln_value_rank(a);
  if (rank != kiln_value_rank(b)) return false;
  for (int i = 0; i < rank; i++) {
    if (kiln_value_sizes(a)[i] != kiln_value_sizes(b)[i]) return false;
  }
  return true;
}

typedef struct difference {
  int64_t count, where; /* elements beyond the tolerance; the worst of them */
  double error;
} difference;

static void find_differences(tool_comparison *c, kiln_dtype dtype, int64_t numel, const void *want,
                             const void *got, difference *out) {
  tool_element_class class = tool_element_class_of(dtype);
  size_t item = kiln_dtype_size(dtype);
  for (int64_t i = 0; i < numel; i++) {
    double error = 0;
    if (class == TOOL_ELEMENT_FLOAT || class == TOOL_ELEMENT_COMPLEX) {
      double w[2], g[2];
      tool_element_float(dtype, want, i, &w[0], &w[1]);
      tool_element_float(dtype, got, i, &g[0], &g[1]);
      error = error_of(c, w, g);
    } else if (memcmp((const char *)want + (size_t)i * item, (const char *)got + (size_t)i * item,
                      item) != 0) {
      error = (double)INFINITY;
    }
    if (error > c->worst) c->worst = error;
    if (error <= 1) continue;
    if (out->count++ == 0 || error > out->error) {
      out->error = error;
      out->where = i;
    }
  }
}

static char *element_text(kiln_dtype dtype, const void *data, int64_t index) {
  double re, im;
  switch (tool_element_class_of(dtype)) {
    case TOOL_ELEMENT_INT:
      return tool_format("%lld", (long long)tool_element_int(dtype, data, index));
    case TOOL_ELEMENT_FLOAT:
      tool_element_float(dtype, data, index, &re, &im);
      return tool_format("%.9g", re);
    case TOOL_ELEMENT_COMPLEX:
      tool_element_float(dtype, data, index, &re, &im);
      return tool_format("%.9g%+.9gj", re, im);
    default: return tool_format("other bytes");
  }
}

static bool report_elements(tool_comparison *c, const char *where, const kiln_value *want,
                            const void *want_data, const void *got_data, const difference *d) {
  kiln_dtype dtype = kiln_value_dtype(want);
  char *w = element_text(dtype, want_data, d->where), *g = element_text(dtype, got_data, d->where);
  char *at = index_text(want, d->where);
  char *reason =
      tool_format("%s: %lld of %lld elements differ, worst at %s: got %s, want %s "
                  "(%.3g of tolerance)",
                  where, (long long)d->count, (long long)tool_numel(want), at, g, w, d->error);
  free(w);
  free(g);
  free(at);
  return differ(c, reason);
}

static bool compare_tensors(tool_comparison *c, const char *where, const kiln_value *want,
                            const kiln_value *got) {
  kiln_dtype dtype = kiln_value_dtype(want);
  if (dtype != kiln_value_dtype(got)) {
    const char *w = kiln_dtype_name(dtype), *g = kiln_dtype_name(kiln_value_dtype(got));
    return differ(c,
                  tool_format("%s: got dtype %s, want %s", where, g ? g : "none", w ? w : "none"));
  }
  if (!same_shape(want, got)) {
    char *w = shape_text(want), *g = shape_text(got);
    char *reason = tool_format("%s: got shape %s, want %s", where, g, w);
    free(w);
    free(g);
    return differ(c, reason);
  }
  if (dtype == KILN_DTYPE_NONE) return true; /* both undefined */
  kiln_status *status = NULL;
  void *want_data = tool_elements(want, &status);
  if (!want_data) return failed(c, where, status);
  void *got_data = tool_elements(got, &status);
  if (!got_data) {
    free(want_data);
    return failed(c, where, status);
  }
  difference d = {0, 0, 0};
  find_differences(c, dtype, tool_numel(want), want_data, got_data, &d);
  bool equal = d.count == 0 || report_elements(c, where, want, want_data, got_data, &d);
  free(want_data);
  free(got_data);
  return equal;
}

/* -- Containers -- */

static bool compare_parts(tool_comparison *c, const char *where, const kiln_value *want,
                          const kiln_value *got, int index,
                          kiln_status *(*part)(const kiln_value *, int, kiln_value **)) {
  kiln_value *w = NULL, *g = NULL;
  kiln_status *status = part(want, index, &w);
  if (!status) status = part(got, index, &g);
  bool equal = status ? failed(c, where, status) : tool_compare(c, where, w, g);
  kiln_value_destroy(w);
  kiln_value_destroy(g);
  return equal;
}

static bool compare_sequences(tool_comparison *c, const char *where, const kiln_value *want,
                              const kiln_value *got) {
  int count = kiln_value_count(want);
  bool dict = kiln_value_kind(want) == KILN_KIND_DICT, equal = true;
  if (count != kiln_value_count(got)) {
    return differ(c, tool_format("%s: got %d %s, want %d", where, kiln_value_count(got),
                                 dict ? "entries" : "elements", count));
  }
  for (int i = 0; i < count; i++) {
    char *part = tool_format(dict ? "%s key %d" : "%s[%d]", where, i);
    if (dict) {
      equal = compare_parts(c, part, want, got, i, kiln_value_key) && equal;
      free(part);
      part = tool_format("%s value %d", where, i);
    }
    equal = compare_parts(c, part, want, got, i, kiln_value_item) && equal;
    free(part);
  }
  return equal;
}

/* -- Plain values -- */

static bool compare_numbers(tool_comparison *c, const char *where, const kiln_value *want,
                            const kiln_value *got) {
  double w[2] = {0, 0}, g[2] = {0, 0};
  if (kiln_value_kind(want) == KILN_KIND_COMPLEX) {
    kiln_value_as_complex(want, &w[0], &w[1]);
    kiln_value_as_complex(got, &g[0], &g[1]);
  } else {
    w[0] = kiln_value_as_float(want);
    g[0] = kiln_value_as_float(got);
  }
  double error = error_of(c, w, g);
  if (error > c->worst) c->worst = error;
  if (error <= 1) return true;
  return differ(c, tool_format("%s: got %.17g%+.17gj, want %.17g%+.17gj (%.3g of tolerance)", where,
                               g[0], g[1], w[0], w[1], error));
}

static bool compare_texts(tool_comparison *c, const char *where, const kiln_value *want,
                          const kiln_value *got) {
  size_t want_size = 0, got_size = 0;
  const char *w = kiln_value_as_string(want, &want_size);
  const char *g = kiln_value_as_string(got, &got_size);
  if (want_size == got_size && memcmp(w, g, want_size) == 0) return true;
  return differ(c, tool_format("%s: got '%.60s', want '%.60s'", where, g, w));
}

/* Kinds without a reader of their own, by what they print. */
static bool compare_prints(tool_comparison *c, const char *where, const kiln_value *want,
                           const kiln_value *got) {
  char *w = NULL, *g = NULL;
  kiln_status *status = kiln_value_print(want, 100, &w);
  if (!status) status = kiln_value_print(got, 100, &g);
  bool equal = true;
  if (status) {
    equal = failed(c, where, status);
  } else if (strcmp(w, g) != 0) {
    equal = differ(c, tool_format("%s: got %s, want %s", where, g, w));
  }
  kiln_text_free(w);
  kiln_text_free(g);
  return equal;
}

bool tool_compare(tool_comparison *c, const char *where, const kiln_value *want,
                  const kiln_value *got) {
  kiln_kind kind = kiln_value_kind(want);
  if (kind != kiln_value_kind(got)) {
    return differ(c, tool_format("%s: got %s, want %s", where, kind_names[kiln_value_kind(got)],
                                 kind_names[kind]));
  }
  switch (kind) {
    case KILN_KIND_NONE: return true;
    case KILN_KIND_TENSOR: return compare_tensors(c, where, want, got);
    case KILN_KIND_INT:
      if (kiln_value_as_int(want) == kiln_value_as_int(got)) return true;
      return differ(c,
                    tool_format("%s: got %lld, want %lld", where, (long long)kiln_value_as_int(got),
                                (long long)kiln_value_as_int(want)));
    case KILN_KIND_BOOL:
      if (kiln_value_as_bool(want) == kiln_value_as_bool(got)) return true;
      return differ(
          c, tool_format("%s: got %s, want %s", where, kiln_value_as_bool(got) ? "True" : "False",
                         kiln_value_as_bool(want) ? "True" : "False"));
    case KILN_KIND_FLOAT:
    case KILN_KIND_COMPLEX: return compare_numbers(c, where, want, got);
    case KILN_KIND_STRING: return compare_texts(c, where, want, got);
    case KILN_KIND_LIST:
    case KILN_KIND_TUPLE:
    case KILN_KIND_DICT: return compare_sequences(c, where, want, got);
    default: return compare_prints(c, where, want, got);
  }
}
