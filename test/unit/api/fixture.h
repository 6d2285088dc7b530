/* fixture.h: what units of the public API begin with: a context, what is loaded into it, values
 * that were recorded and compared, and files that go away again. For units that want one context
 * for all their tests: values.h. */
#pragma once

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "kiln/kiln.h"
#include "test/unit/unit.h"

typedef struct setting {
  const char *name, *value; /* NULL: left as it is */
} setting;

/* The settings end with an empty one; the environment is not read. */
static inline kiln_context *context_of(const setting *settings) {
  kiln_options *options = NULL;
  kiln_context *made = NULL;
  assert_ok(kiln_options_create(&options));
  kiln_options_ignore_environment(options);
  for (const setting *s = settings; s->name; s++)
    if (s->value) assert_ok(kiln_options_set(options, s->name, s->value));
  assert_ok(kiln_context_create(options, &made));
  kiln_options_destroy(options);
  return made;
}

/* With one setting, or `name` NULL. Calls compile on their thread, so that what they find does not
 * depend on time. */
static inline kiln_context *context_with(const char *name, const char *value) {
  return context_of((const setting[]){{"compile", "sync"}, {name, value}, {NULL, NULL}});
}

static inline kiln_instance *instance_of(kiln_model *model) {
  kiln_instance *instance = NULL;
  assert_ok(kiln_instance_create(model, &instance));
  return instance;
}

/* A loaded model, one instance of it, and their context. */
typedef struct subject {
  kiln_context *context;
  kiln_model *model;
  kiln_instance *instance;
} subject;

/* Into the context that `s` has. */
static inline void load_subject(subject *s, const char *path) {
  assert_ok(kiln_model_load(s->context, path, NULL, &s->model));
  s->instance = instance_of(s->model);
}

static inline void close_subject(subject *s) {
  kiln_instance_release(s->instance);
  kiln_model_release(s->model);
  kiln_context_release(s->context);
}

static inline kiln_counters counters_of(const kiln_model *model) {
  kiln_counters c;
  kiln_model_counters(model, &c);
  return c;
}

/* -- Values: makers return what the caller destroys -- */

static inline kiln_value *item_of(const kiln_value *value, int i) {
  kiln_value *item = NULL;
  assert_ok(kiln_value_item(value, i, &item));
  return item;
}

/* What the file holds that `format` names. */
KILN_PRINTF(2, 3)
static inline kiln_value *read_recorded(kiln_context *in, const char *format, ...) {
  char path[512];
  kiln_value *value = NULL;
  va_list names;
  va_start(names, format);
  const int len = vsnprintf(path, sizeof path, format, names);
  va_end(names);
  assert_in_range(len, 1, sizeof path - 1);
  assert_ok(kiln_value_read(in, path, &value));
  return value;
}

/* Takes the tuple of a call's arguments apart; how many they are. */
static inline int take_items(kiln_value *tuple, kiln_value **out, int most) {
  const int count = kiln_value_count(tuple);
  assert_in_range(count, 0, most);
  for (int i = 0; i < count; i++) out[i] = item_of(tuple, i);
  kiln_value_destroy(tuple);
  return count;
}

/* The first of them. */
static inline kiln_value *take_first(kiln_value *tuple) {
  kiln_value *first = item_of(tuple, 0);
  kiln_value_destroy(tuple);
  return first;
}

static inline void destroy_values(kiln_value *const *values, int count) {
  for (int i = 0; i < count; i++) kiln_value_destroy(values[i]);
}

/* -- Comparing -- */

/* The elements, which the caller frees. */
static inline float *floats_of(const kiln_value *tensor, size_t *out_count) {
  size_t count = 1;
  assert_int_equal(kiln_value_kind(tensor), KILN_KIND_TENSOR);
  assert_int_equal(kiln_value_dtype(tensor), KILN_DTYPE_F32);
  for (int i = 0; i < kiln_value_rank(tensor); i++) count *= (size_t)kiln_value_sizes(tensor)[i];
  float *data = calloc(count + 1, sizeof *data);
  assert_non_null(data);
  assert_ok(kiln_value_copy_data(tensor, data, count * sizeof *data));
  *out_count = count;
  return data;
}

static inline void assert_tensors_close(const kiln_value *got, const kiln_value *want,
                                        float relative, float absolute) {
  size_t count, same;
  float *a = floats_of(got, &same), *b = floats_of(want, &count);
  assert_int_equal(kiln_value_rank(got), kiln_value_rank(want));
  for (int i = 0; i < kiln_value_rank(want); i++)
    assert_int_equal(kiln_value_sizes(got)[i], kiln_value_sizes(want)[i]);
  for (size_t i = 0; i < count; i++)
    if (!(fabsf(a[i] - b[i]) <= absolute + relative * fabsf(b[i])))
      fail_msg("element %zu is %.9g, not %.9g", i, (double)a[i], (double)b[i]);
  free(a);
  free(b);
}

/* Tensors of float32, of the same sizes, where |got - want| <= absolute + relative |want| for each
 * element; ints that are equal; lists and tuples by item. */
static inline void assert_close(const kiln_value *got, const kiln_value *want, float relative,
                                float absolute) {
  const kiln_kind kind = kiln_value_kind(want);
  assert_int_equal(kiln_value_kind(got), kind);
  if (kind == KILN_KIND_INT) {
    assert_int_equal(kiln_value_as_int(got), kiln_value_as_int(want));
    return;
  }
  if (kind != KILN_KIND_LIST && kind != KILN_KIND_TUPLE) {
    assert_tensors_close(got, want, relative, absolute);
    return;
  }
  assert_int_equal(kiln_value_count(got), kiln_value_count(want));
  for (int i = 0; i < kiln_value_count(want); i++) {
    kiln_value *a = item_of(got, i), *b = item_of(want, i);
    assert_close(a, b, relative, absolute);
    kiln_value_destroy(a);
    kiln_value_destroy(b);
  }
}

/* -- Files -- */

/* What is saved, counted into a size_t. */
static inline int count_bytes(void *user, const void *data, size_t size) {
  (void)data;
  *(size_t *)user += size;
  return 0;
}

/* What is saved, kept; the caller frees `data`. */
typedef struct archive_bytes {
  char *data;
  size_t size, fail_at; /* 0: never */
} archive_bytes;

static inline int take_bytes(void *user, const void *data, size_t size) {
  archive_bytes *b = user;
  if (b->fail_at && b->size + size > b->fail_at) return 1;
  b->data = realloc(b->data, b->size + size);
  if (!b->data) return 1;
  memcpy(b->data + b->size, data, size);
  b->size += size;
  return 0;
}

/* An empty file whose name ends so, which the caller unlinks. */
static inline void temporary_file(char *path, size_t capacity, const char *ending) {
  int len = snprintf(path, capacity, "/tmp/kiln_test_XXXXXX%s", ending);
  assert_in_range(len, 1, capacity - 1);
  int fd = mkstemps(path, (int)strlen(ending));
  assert_true(fd >= 0);
  close(fd);
}
