/* fixture.h: what units of the public API begin with: a context, what is loaded into it, and files
 * that go away again. For units that want one context for all their tests: values.h. */
#pragma once

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

/* A loaded model, one instance of it, and their context. */
typedef struct subject {
  kiln_context *context;
  kiln_model *model;
  kiln_instance *instance;
} subject;

/* Into the context that `s` has. */
static inline void load_subject(subject *s, const char *path) {
  assert_ok(kiln_model_load(s->context, path, NULL, &s->model));
  assert_ok(kiln_instance_create(s->model, &s->instance));
}

static inline void close_subject(subject *s) {
  kiln_instance_release(s->instance);
  kiln_model_release(s->model);
  kiln_context_release(s->context);
}

/* An empty file whose name ends so, which the caller unlinks. */
static inline void temporary_file(char *path, size_t capacity, const char *ending) {
  int len = snprintf(path, capacity, "/tmp/kiln_test_XXXXXX%s", ending);
  assert_in_range(len, 1, capacity - 1);
  int fd = mkstemps(path, (int)strlen(ending));
  assert_true(fd >= 0);
  close(fd);
}
