/* jit_support.h: a model made of textual graphs, and calls of it. */
#ifndef TEST_UNIT_JIT_SUPPORT_H
#define TEST_UNIT_JIT_SUPPORT_H

#include <math.h>
#include <stdlib.h>

#include "jit/executor.h"
#include "test/unit/graphs.h"
#include "test/unit/unit.h"

typedef struct model {
  kiln_env *env;
  kiln_registry *registry;
  kiln_unit *unit;
  kiln_codegen *codegen;
  kiln_jit *jit;
  kiln_call *call;
  kiln_function *function;
} model;

/* Registry and env are there. */
static inline kiln_status *model_fill(model *m, const char *graph) {
  m->unit = kiln_unit_create(m->env, m->registry);
  m->function = kiln_unit_add_function(m->unit, KILN_STR("__torch__.M.forward"), NULL);
  KILN_TRY(kiln_graph_parse(m->env->mem, m->registry, m->unit->types, kiln_str_from(graph),
                            &m->function->graph));
  m->function->state = 2;
  return NULL;
}
static inline kiln_status *model_try_fill(model *m, const char *graph) {
  KILN_PROTECT(model_fill(m, graph));
}

static inline void model_make_jit(model *m) {
  assert_ok(kiln_jit_create(m->env, &m->env->flags, m->unit, m->codegen, &m->jit));
  assert_ok(kiln_call_create(m->env, &m->call));
  m->call->jit = true;
  m->call->types = m->unit->types;
}
/* As if nothing had been called. */
static inline void model_make_anew(model *m) {
  kiln_call_destroy(m->call); /* its cache, and what it counted for the model */
  kiln_jit_destroy(m->jit);
  model_make_jit(m);
}

/* One function, `forward`, of that graph. Flags: "name=value", NULL at the end. */
static inline void model_open(model *m, const char *graph, const char *const *flags) {
  *m = (model){0};
  assert_ok(kiln_env_create(NULL, &m->env));
  m->env->log.level[KILN_LOG_warn] = 0;
  assert_ok(kiln_flags_set(&m->env->flags, "compile", "sync"));
  for (; flags && *flags; flags++) {
    const char *equals = strchr(*flags, '=');
    char name[64] = {0};
    memcpy(name, *flags, (size_t)(equals - *flags));
    assert_ok(kiln_flags_set(&m->env->flags, name, equals + 1));
  }
  assert_ok(kiln_registry_create(m->env, &m->registry));
  assert_ok(kiln_codegen_create(m->env, &m->codegen));
  assert_ok(model_try_fill(m, graph));
  model_make_jit(m);
}

static inline void model_close(model *m) {
  kiln_call_destroy(m->call);
  kiln_jit_destroy(m->jit);
  kiln_codegen_destroy(m->codegen);
  kiln_unit_destroy(m->unit);
  kiln_registry_destroy(m->registry);
  kiln_env_destroy(m->env); /* debug builds stop here on a leak */
}

static inline kiln_ivalue make_tensor(model *m, int rank, const int64_t *sizes, double scale) {
  kiln_tensor *t;
  assert_ok(kiln_tensor_create(m->env->mem, NULL, KILN_DTYPE_F32, rank, sizes, &t));
  float *data = t->storage->data;
  for (int64_t i = 0; i < t->numel; i++)
    data[i] = (float)(scale * (double)((i * 7919) % 201 - 100));
  return kiln_of_tensor(t);
}
static inline kiln_ivalue make_matrix(model *m, int64_t rows, int64_t columns, double scale) {
  return make_tensor(m, 2, (int64_t[]){rows, columns}, scale);
}

static inline kiln_ivalue call_model(model *m, const kiln_ivalue *args, int count) {
  kiln_ivalue result = kiln_none();
  kiln_call_begin(m->call, NULL);
  assert_ok(kiln_jit_call(m->jit, m->call, m->function, args, count, &result));
  return result;
}

/* The same by the plain interpreter. */
static inline kiln_ivalue call_plain(model *m, const kiln_ivalue *args, int count) {
  m->call->jit = false;
  kiln_ivalue result = call_model(m, args, count);
  m->call->jit = true;
  return result;
}

static inline void assert_close(kiln_ivalue a, kiln_ivalue b) {
  assert_int_equal(a.tag, b.tag);
  if (a.tag == KILN_TAG_TUPLE) {
    assert_int_equal(a.u.tuple->count, b.u.tuple->count);
    for (int64_t i = 0; i < a.u.tuple->count; i++) {
      assert_close(a.u.tuple->items[i], b.u.tuple->items[i]);
    }
    return;
  }
  if (a.tag != KILN_TAG_TENSOR) {
    assert_true(kiln_ivalue_equal(a, b));
    return;
  }
  assert_int_equal(a.u.tensor->numel, b.u.tensor->numel);
  assert_int_equal(kiln_tensor_dtype(a.u.tensor), kiln_tensor_dtype(b.u.tensor));
  const float *x = kiln_tensor_data(a.u.tensor), *y = kiln_tensor_data(b.u.tensor);
  assert_true(kiln_tensor_is_contiguous(a.u.tensor) && kiln_tensor_is_contiguous(b.u.tensor));
  for (int64_t i = 0; i < a.u.tensor->numel; i++) {
    if (!(fabsf(x[i] - y[i]) <= 1e-5f + 1e-5f * fabsf(y[i])) && !(isnan(x[i]) && isnan(y[i]))) {
      fail_msg("element %d: %g, not %g", (int)i, (double)x[i], (double)y[i]);
    }
  }
}

/* Calls with and without JIT, compares, releases. */
static inline void check_call(model *m, const kiln_ivalue *args, int count) {
  kiln_ivalue got = call_model(m, args, count), want = call_plain(m, args, count);
  assert_close(got, want);
  kiln_ivalue_release(got);
  kiln_ivalue_release(want);
}

static inline kiln_counters counters(model *m) {
  kiln_counters c = {0};
  kiln_jit_counters(m->jit, &c);
  return c;
}

/* The text of a stage, freed with free(). */
static inline char *dump_stage(model *m, kiln_jit_stage stage, const char *site) {
  kiln_arena *arena;
  assert_ok(kiln_arena_create(m->env->mem, &arena));
  kiln_text text = kiln_text_in(arena);
  assert_ok(kiln_jit_dump(m->jit, m->function, stage, kiln_str_from(site), false, &text));
  char *copy = strdup(text.data);
  kiln_arena_destroy(arena);
  return copy;
}

static inline int count_words(const char *text, const char *words) {
  int count = 0;
  for (const char *at = text; (at = strstr(at, words)) != NULL; at += strlen(words)) count++;
  return count;
}
#define assert_words(text, words)                                               \
  do {                                                                          \
    if (!strstr((text), (words))) fail_msg("lacks '%s':\n%s", (words), (text)); \
  } while (0)

#endif
