/* built.h: models of graphs that units build, or have as text. */
#pragma once

#include "kiln/kiln_graph.h"
#include "test/unit/api/fixture.h"

static inline kiln_builder *create_builder(kiln_context *in) {
  kiln_builder *b = NULL;
  assert_ok(kiln_builder_create(in, &b));
  return b;
}

static inline kiln_var input_of(kiln_builder *b, const char *name, const char *type) {
  kiln_var out = 0;
  assert_ok(kiln_builder_input(b, name, type, &out));
  assert_true(out > 0);
  return out;
}

/* Takes the value. */
static inline kiln_var attribute_of(kiln_builder *b, const char *name, kiln_value *value) {
  kiln_var out = 0;
  assert_ok(kiln_builder_attribute(b, name, value, &out));
  kiln_value_destroy(value);
  return out;
}

/* An operator with one result. */
static inline kiln_var call_with(kiln_builder *b, const char *op, const kiln_builder_arg *args,
                                 int count) {
  kiln_var out = 0;
  int results = 0;
  assert_ok(kiln_builder_call(b, op, args, count, &out, 1, &results));
  assert_int_equal(results, 1);
  return out;
}

/* Of two values of the graph; the second may be 0. */
static inline kiln_var call_of(kiln_builder *b, const char *op, kiln_var x, kiln_var y) {
  return call_with(b, op, (const kiln_builder_arg[]){{.var = x}, {.var = y}}, y ? 2 : 1);
}

/* The builder is gone. */
static inline kiln_model *finish_model(kiln_builder *b) {
  kiln_model *model = NULL;
  assert_ok(kiln_builder_finish(b, &model));
  kiln_builder_destroy(b);
  return model;
}

static inline kiln_model *finish_with(kiln_builder *b, kiln_var result) {
  assert_ok(kiln_builder_return(b, &result, 1));
  return finish_model(b);
}

static inline kiln_model *parse_model(kiln_context *in, const char *text, size_t size) {
  kiln_builder *b = NULL;
  assert_ok(kiln_builder_parse(in, text, size, &b));
  return finish_model(b);
}

static inline void assert_text(kiln_builder *b, const char *want) {
  char *text = NULL;
  assert_ok(kiln_builder_print(b, 3, &text));
  assert_string_equal(text, want);
  kiln_text_free(text);
}
