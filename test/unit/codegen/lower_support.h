/* lower_support.h: a graph as text, lowered, and run on both back ends. */
#pragma once

#include "codegen_support.h"

typedef struct lowered {
  fixture f;
  kiln_registry *registry;
  kiln_graph *graph;
  kiln_codegen *codegen;
  kiln_reason reason;
  kiln_loop_fn *fn;
  kiln_str text;
} lowered;

static inline kiln_status *lower(lowered *t) {
  const kiln_factor_type factors = (kiln_factor_type)t->f.env->flags.matmul;
  KILN_TRY(kiln_codegen_lower(t->graph, factors, t->f.arena, &t->reason, &t->fn));
  t->text = kiln_loop_print(t->fn, t->f.arena);
  return NULL;
}

static inline kiln_status *open_graph(lowered *t, const char *source) {
  memset(t, 0, sizeof *t);
  fixture_open(&t->f);
  assert_ok(kiln_registry_create(t->f.env, &t->registry));
  assert_ok(kiln_codegen_create(t->f.env, &t->codegen));
  assert_ok(kiln_graph_parse(t->f.env->mem, t->registry, kiln_registry_types(t->registry),
                             kiln_str_from(source), &t->graph));
  return lower(t);
}
static inline void close_graph(lowered *t) {
  kiln_graph_release(t->graph);
  kiln_codegen_destroy(t->codegen);
  kiln_registry_destroy(t->registry);
  fixture_close(&t->f);
}

static inline void assert_lowers(const char *source, const char *want) {
  lowered t;
  assert_ok(open_graph(&t, source));
  assert_string_equal(t.text.data, want);
  close_graph(&t);
}

/* Runs on both back ends; all outputs are `bytes` long. */
static inline void run(lowered *t, void **data, const kiln_kernel_scalar *scalars, void *again,
                       int output, size_t bytes) {
  for (int backend = 1; backend >= 0; backend--) {
    kiln_compiled *code;
    assert_ok(kiln_codegen_compile(t->codegen, t->fn,
                                   backend ? KILN_BACKEND_EVAL : KILN_BACKEND_LLVM, &t->reason,
                                   &code, NULL));
    void *scratch = aligned_alloc(64, code->info.work.scratch_bytes / 64 * 64 + 64);
    kiln_kernel_args args = {
        .data = data, .scalars = scalars, .scratch = scratch, .closure = code->closure};
    code->fn(&args, &code->info.work.grid);
    if (backend) memcpy(again, data[output], bytes);
    free(scratch);
    kiln_compiled_release(code);
  }
  assert_memory_equal(again, data[output], bytes);
}

#define F32(sizes, strides) "Float(" sizes ", strides=[" strides "], requires_grad=0, device=cpu)"
