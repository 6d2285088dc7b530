/* lower_test.c: groups' graphs to loop IR, and what they compute. Expected values are worked out
 * here by the operators' definitions. */
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

static kiln_status *lower_body(void *arg) {
  lowered *t = arg;
  KILN_TRY(kiln_codegen_lower(t->graph, t->f.arena, &t->reason, &t->fn));
  t->text = kiln_loop_print(t->fn, t->f.arena);
  return NULL;
}

static kiln_status *open_graph(lowered *t, const char *source) {
  memset(t, 0, sizeof *t);
  fixture_open(&t->f);
  assert_ok(kiln_registry_create(t->f.env, &t->registry));
  assert_ok(kiln_codegen_create(t->f.env, &t->codegen));
  assert_ok(kiln_graph_parse(t->f.env->mem, t->registry, kiln_registry_types(t->registry),
                             kiln_str_from(source), &t->graph));
  return kiln_arena_run(t->f.arena, lower_body, t);
}
static void close_graph(lowered *t) {
  kiln_graph_release(t->graph);
  kiln_codegen_destroy(t->codegen);
  kiln_registry_destroy(t->registry);
  fixture_close(&t->f);
}

/* Runs on both back ends; all outputs are `bytes` long. */
static void run(lowered *t, void **data, const kiln_kernel_scalar *scalars, void *again, int output,
                size_t bytes) {
  for (int backend = 1; backend >= 0; backend--) {
    kiln_compiled *code;
    assert_ok(kiln_codegen_compile(
        t->codegen, t->fn, backend ? KILN_BACKEND_EVAL : KILN_BACKEND_LLVM, &t->reason, &code));
    void *scratch = aligned_alloc(64, code->info.scratch_bytes / 64 * 64 + 64);
    kiln_kernel_args args = {
        .data = data, .scalars = scalars, .scratch = scratch, .closure = code->closure};
    code->fn(&args, 0, code->info.extent);
    if (backend) memcpy(again, data[output], bytes);
    free(scratch);
    kiln_compiled_release(code);
  }
  assert_memory_equal(again, data[output], bytes);
}

#define F32(sizes, strides) "Float(" sizes ", strides=[" strides "], requires_grad=0, device=cpu)"

static void test_x_x_x(void **unused) {
  (void)unused;
  lowered t;
  assert_ok(open_graph(
      &t, "graph(%x : " F32(
              "4, 8", "8, 1") "):\n"
                              "  %one : int = prim::Constant[value=1]()\n"
                              "  %y : " F32(
                                  "4, 8", "8, 1") " = aten::add(%x, %x, %one)\n"
                                                  "  %z : " F32(
                                                      "4, 8", "8, 1") " = aten::add(%y, %x, %one)\n"
                                                                      "  return (%z)\n"));
  assert_string_equal(t.text.data, "kernel {\n"
                                   "  in b0: f32[4, 8] [8, 1]\n"
                                   "  out b1: f32[4, 8] [8, 1]\n"
                                   "  nest [32] {\n"
                                   "    %0 = load f32 b0 + 0 [1]\n"
                                   "    %1 = add f32 %0, %0\n"
                                   "    %2 = add f32 %1, %0\n"
                                   "    store f32 b1 + 0 [1], %2\n"
                                   "  }\n"
                                   "}\n");
  close_graph(&t);
}

/* A deep diamond: x = x*x, forty times, is forty multiplications, not 2^40. */
static void test_diamond(void **unused) {
  (void)unused;
  lowered t;
  char source[8192];
  int n = snprintf(source, sizeof source, "graph(%%x0 : %s):\n", F32("8", "1"));
  for (int i = 0; i < 40; i++)
    n += snprintf(source + n, sizeof source - (size_t)n, "  %%x%d : %s = aten::mul(%%x%d, %%x%d)\n",
                  i + 1, F32("8", "1"), i, i);
  snprintf(source + n, sizeof source - (size_t)n, "  return (%%x40)\n");
  assert_ok(open_graph(&t, source));
  assert_int_equal(t.fn->nests.data[0]->body.count, 42);
  close_graph(&t);
}

/* Broadcasting, an integer operand, a number given at run time, and a bool result beside. */
static void test_mixed(void **unused) {
  (void)unused;
  lowered t;
  assert_ok(open_graph(
      &t, "graph(%x : " F32(
              "3, 5",
              "5, 1") ", %n : Long(5, strides=[1], requires_grad=0, device=cpu),"
                      " %s : float):\n"
                      "  %one : int = prim::Constant[value=1]()\n"
                      "  %y : " F32(
                          "3, 5",
                          "5, 1") " = aten::sub(%x, %n, %one)\n"
                                  "  %z : " F32(
                                      "3, 5",
                                      "5, 1") " = aten::mul(%y, %s)\n"
                                              "  %m : Bool(3, 5, strides=[5, 1], requires_grad=0, "
                                              "device=cpu) = aten::lt(%z, %x)\n"
                                              "  return (%z, %m)\n"));
  assert_int_equal(t.fn->nests.count, 1); /* both outputs have one domain */
  float x[15], z[15], again[15];
  int64_t n[5];
  bool m[15];
  for (int i = 0; i < 15; i++) x[i] = (float)(i * i % 11) - 3;
  for (int i = 0; i < 5; i++) n[i] = i - 2;
  void *data[] = {x, n, z, m};
  kiln_kernel_scalar s = {.f = 0.3};
  run(&t, data, &s, again, 2, sizeof z);
  for (int i = 0; i < 15; i++) {
    float want = (x[i] - (float)n[i % 5]) * 0.3f;
    assert_true(z[i] == want && m[i] == (want < x[i]));
  }
  close_graph(&t);
}

/* Chunks read at an offset; cat writes in as many nests as it has pieces. */
static void test_chunk_cat(void **unused) {
  (void)unused;
  lowered t;
  assert_ok(open_graph(
      &t,
      "graph(%x : " F32("2, 6", "6, 1") ", %w : " F32(
          "2, 1", "1, 1") "):\n"
                          "  %dim : int = prim::Constant[value=1]()\n"
                          "  %a : " F32("2, 3", "6, 1") ", %b : " F32(
                              "2, 3", "6, 1") " = prim::ConstantChunk[chunks=2, dim=1](%x)\n"
                                              "  %c : " F32("2, 3", "3, 1") " = aten::mul(%a, %b)\n"
                                                                            "  return (%c)\n"));
  float x[12], w[2] = {10, 20}, c[6], again[6];
  for (int i = 0; i < 12; i++) x[i] = (float)(i + 1);
  void *data[] = {x, w, c};
  run(&t, data, NULL, again, 2, sizeof c);
  for (int i = 0; i < 6; i++) assert_true(c[i] == x[i / 3 * 6 + i % 3] * x[i / 3 * 6 + 3 + i % 3]);
  close_graph(&t);
}

/* What cannot be lowered is told by its reason. */
static void test_reasons(void **unused) {
  (void)unused;
  static const struct {
    const char *source;
    kiln_reason reason;
  } cases[] = {
      {"graph(%x : Tensor):\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n",
       KILN_REASON_types_unknown},
      {"graph(%x : ComplexFloat(2, strides=[1], requires_grad=0, device=cpu)):\n"
       "  %y : ComplexFloat(2, strides=[1], requires_grad=0, device=cpu) = aten::neg(%x)\n"
       "  return (%y)\n",
       KILN_REASON_dtype},
      {"graph(%x : " F32("2", "1") "):\n  %y : " F32("2",
                                                     "1") " = aten::lgamma(%x)\n  return (%y)\n",
       KILN_REASON_no_lowering},
      {"graph(%x : " F32("2", "1") ", %k : Scalar):\n  %y : " F32(
           "2", "1") " = aten::mul(%x, %k)\n  return (%y)\n",
       KILN_REASON_number_unknown},
      {"graph(%x : " F32("2", "1") ", %k : float):\n  %y : " F32(
           "2", "1") " = aten::leaky_relu(%x, %k)\n  return (%y)\n",
       KILN_REASON_not_constant},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lowered t;
    kiln_status *status = open_graph(&t, cases[i].source);
    assert_non_null(status);
    if (t.reason != cases[i].reason)
      fail_msg("case %zu: %s, not %s", i, kiln_reason_id(t.reason),
               kiln_reason_id(cases[i].reason));
    kiln_status_destroy(status);
    close_graph(&t);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_x_x_x),   cmocka_unit_test(test_diamond),
      cmocka_unit_test(test_mixed),   cmocka_unit_test(test_chunk_cat),
      cmocka_unit_test(test_reasons),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
