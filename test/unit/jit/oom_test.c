/* oom_test.c: the life of a function (profiled, compiled, run, met by a new shape) with the N-th
 * request for memory failing, for each N. A call answers with a status or with the right result;
 * nothing leaks. Where a failed request cost only a compile, the interpreter has gone on. */
#include "test/unit/jit/jit_support.h"
#include "test/unit/sweep.h"

typedef struct life {
  kiln_registry *registry;
  const char *graph;
  kiln_ivalue inputs[2][2]; /* of two shapes */
  kiln_ivalue wants[2];
  uint64_t compiles; /* the most of one life */
} life;

/* Its own unit, code generator and executor; what was made is given back on every way out. */
static kiln_status *open_parts(model *m, kiln_env *env, life *l) {
  *m = (model){.env = env, .registry = l->registry};
  KILN_TRY(kiln_codegen_create(env, &m->codegen));
  KILN_TRY(model_try_fill(m, l->graph));
  KILN_TRY(kiln_jit_create(env, &env->flags, m->unit, m->codegen, &m->jit));
  KILN_TRY(kiln_call_create(env, &m->call));
  m->call->jit = true;
  m->call->types = m->unit->types;
  return NULL;
}

static bool same(kiln_ivalue got, kiln_ivalue want) {
  const float *x = kiln_tensor_data(got.u.tensor), *y = kiln_tensor_data(want.u.tensor);
  bool good = got.u.tensor->numel == want.u.tensor->numel;
  for (int64_t i = 0; good && i < want.u.tensor->numel; i++) good = fabsf(x[i] - y[i]) <= 1e-5f;
  return good;
}

static kiln_status *live(kiln_env *env, void *arg) {
  life *l = arg;
  static const int order[] = {0, 0, 0, 1, 1, 1, 0};
  model m;
  env->log.level[KILN_LOG_warn] = 0;
  KILN_TRY(kiln_flags_set(&env->flags, "codegen", "eval"));
  KILN_TRY(kiln_flags_set(&env->flags, "compile", "sync"));
  kiln_status *status = open_parts(&m, env, l);
  for (size_t i = 0; !status && i < sizeof order / sizeof *order; i++) {
    kiln_ivalue result = kiln_none();
    kiln_call_begin(m.call, NULL);
    status = kiln_jit_call(m.jit, m.call, m.function, l->inputs[order[i]], 2, &result);
    if (!status && !same(result, l->wants[order[i]])) {
      status = KILN_ERROR(KILN_INTERNAL, "call %d gives something else", (int)i);
    }
    kiln_ivalue_release(result);
  }
  if (m.jit && counters(&m).compiles > l->compiles) l->compiles = counters(&m).compiles;
  if (m.call) kiln_call_destroy(m.call);
  if (m.jit) kiln_jit_destroy(m.jit);
  if (m.codegen) kiln_codegen_destroy(m.codegen);
  if (m.unit) kiln_unit_destroy(m.unit);
  return status;
}

static void sweep_life(const char *graph) {
  model plain; /* makes the inputs and what is expected, in memory that never fails */
  life l = {.graph = graph};
  model_open(&plain, graph, NULL);
  l.registry = plain.registry;
  for (int s = 0; s < 2; s++) {
    l.inputs[s][0] = make_matrix(&plain, 2 + s, 8, 0.01);
    l.inputs[s][1] = make_matrix(&plain, 2 + s, 8, -0.02);
    l.wants[s] = call_plain(&plain, l.inputs[s], 2);
  }
  sweep_env(live, &l, true);
  assert_true(l.compiles >= 2); /* one a shape */
  for (int s = 0; s < 2; s++) {
    kiln_ivalue_release(l.inputs[s][0]);
    kiln_ivalue_release(l.inputs[s][1]);
    kiln_ivalue_release(l.wants[s]);
  }
  model_close(&plain);
}

static void test_chain(void **state) {
  (void)state;
  sweep_life(GRAPH_CHAIN);
}

static void test_loop(void **state) {
  (void)state;
  sweep_life("graph(%x.1 : Tensor,\n"
             "      %y.1 : Tensor):\n"
             "  %n : int = prim::Constant[value=3]()\n"
             "  %one : int = prim::Constant[value=1]()\n"
             "  %true : bool = prim::Constant[value=1]()\n"
             "  %r : Tensor = prim::Loop(%n, %true, %x.1)\n"
             "    block0(%i : int, %h : Tensor):\n"
             "      %odd : bool = aten::gt(%i, %one)\n"
             "      %a : Tensor = prim::If(%odd)\n"
             "        block0():\n"
             "          %b : Tensor = aten::mul(%h, %y.1)\n"
             "          %c : Tensor = aten::tanh(%b)\n"
             "          -> (%c)\n"
             "        block1():\n"
             "          %d : Tensor = aten::add(%h, %y.1, %one)\n"
             "          %e : Tensor = aten::sigmoid(%d)\n"
             "          -> (%e)\n"
             "      -> (%true, %a)\n"
             "  return (%r)\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain), cmocka_unit_test(test_loop)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
