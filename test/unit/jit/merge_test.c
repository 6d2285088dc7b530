/* merge_test.c: groups that share a guard, seen in the counters: how often guards are asked, what a
 * miss costs, and that the answers stay the same. */
#include "test/unit/jit/jit_support.h"

/* The same with a write to something else between, of which the result is wanted. */
static const char with_effect[] = "graph(%x : Tensor, %y : Tensor):\n"
                                  "  %1 : int = prim::Constant[value=1]()\n"
                                  "  %none : NoneType = prim::Constant()\n"
                                  "  %log : Tensor[] = prim::ListConstruct()\n"
                                  "  %a : Tensor = aten::mul(%x, %y)\n"
                                  "  %b : Tensor = aten::add(%a, %x, %1)\n"
                                  "  %c : Tensor = aten::logcumsumexp(%b, %1)\n"
                                  "  %l : Tensor[] = aten::append(%log, %c)\n"
                                  "  %d : Tensor = aten::mul(%c, %y)\n"
                                  "  %e : Tensor = aten::sub(%d, %x, %1)\n"
                                  "  %f : (Tensor, Tensor[]) = prim::TupleConstruct(%e, %l)\n"
                                  "  return (%f)\n";

static void call_rows(model *m, int64_t rows) {
  kiln_ivalue args[2] = {make_matrix(m, rows, 8, 0.01), make_matrix(m, rows, 8, -0.02)};
  kiln_ivalue got = call_model(m, args, 2), want = call_plain(m, args, 2);
  bool is_tuple = got.tag == KILN_TAG_TUPLE;
  assert_close(is_tuple ? got.u.tuple->items[0] : got, is_tuple ? want.u.tuple->items[0] : want);
  if (is_tuple) assert_int_equal(got.u.tuple->items[1].u.list->count, 1);
  kiln_ivalue_release(got);
  kiln_ivalue_release(want);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
}

/* Three calls of one shape: what two compiled runs did. */
static kiln_counters run_three(const char *graph, const char *compat, model *m) {
  model_open(
      m, graph,
      (const char *[]){"codegen=eval", "fusion_strategy=STATIC,3", "verify=on", compat, NULL});
  for (int i = 0; i < 3; i++) call_rows(m, 4);
  kiln_counters c = counters(m);
  assert_int_equal(c.groups, 2);
  assert_int_equal(c.compiled_runs, 4);
  assert_int_equal(c.guard_misses, 0);
  return c;
}

static void test_one_guard_for_two_groups(void **state) {
  (void)state;
  model m;
  assert_int_equal(run_three(GRAPH_TWO_GROUPS, "compat=kiln", &m).guard_hits, 2); /* one a run */
  char *text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_int_equal(count_words(text, "prim::TypeCheck["), 1);
  assert_int_equal(count_words(text, "= prim::CallFunction("), 1);
  free(text);
  kiln_group_counters first, second;
  assert_ok(kiln_jit_group(m.jit, 0, &first));
  assert_ok(kiln_jit_group(m.jit, 1, &second));
  assert_true(first.guard_hits == 2 && second.guard_hits == 2); /* each tells of its guard */
  model_close(&m);
}

static void test_torch_has_one_a_group(void **state) {
  (void)state;
  model m;
  assert_int_equal(run_three(GRAPH_TWO_GROUPS, "compat=torch", &m).guard_hits, 4);
  char *text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_int_equal(count_words(text, "prim::TypeCheck["), 2);
  free(text);
  model_close(&m);
}

static void test_an_effect_keeps_them_apart(void **state) {
  (void)state;
  model m;
  assert_int_equal(run_three(with_effect, "compat=kiln", &m).guard_hits, 4);
  bool told = false;
  kiln_jit_refusal r;
  for (int i = 0; kiln_jit_refusal_at(m.jit, i, &r); i++) {
    if (r.reason != KILN_REASON_guard_effect) continue;
    assert_string_equal(r.detail, "aten::append");
    told = true;
  }
  assert_true(told);
  for (int i = 0; i < 3; i++) call_rows(&m, 5); /* the list has one tensor, whoever misses */
  model_close(&m);
}

#define DIM_CHECK(x, number)                                    \
  "  %d" number " : int = aten::dim(" x ")\n"                   \
  "  %c" number " : bool = aten::ne(%d" number ", %2)\n"        \
  "   = prim::If(%c" number ")\n"                               \
  "    block0():\n"                                             \
  "      %m" number " : str = aten::format(%s, %d" number ")\n" \
  "       = prim::RaiseException(%m" number ", %none)\n"        \
  "      -> ()\n"                                               \
  "    block1():\n"                                             \
  "      -> ()\n"
static const char with_checks[] =
    "graph(%x : Tensor, %y : Tensor):\n"
    "  %1 : int = prim::Constant[value=1]()\n"
    "  %2 : int = prim::Constant[value=2]()\n"
    "  %none : NoneType = prim::Constant()\n"
    "  %s : str = prim::Constant[value=\"{} is not 2\"]()\n"
    "  %l : Tensor = aten::logcumsumexp(%x, %1)\n" DIM_CHECK(
        "%l", "0") "  %a : Tensor = aten::mul(%l, %y)\n"
                   "  %b : Tensor = aten::relu(%a)\n"
                   "  %c : Tensor = aten::logcumsumexp(%b, %1)\n" DIM_CHECK(
                       "%c", "1") "  %e : Tensor = aten::sub(%c, %y, %1)\n"
                                  "  %f : Tensor = aten::tanh(%e)\n"
                                  "  return (%f)\n";

/* Checks of what the guard knows are decided by it: they are no effects, and stand in the fallback
 * alone, where they still complain. */
static void test_decided_checks(void **state) {
  (void)state;
  model m;
  assert_int_equal(run_three(with_checks, "compat=kiln", &m).guard_hits, 2);
  char *text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_int_equal(count_words(text, "prim::TypeCheck["), 1);
  assert_null(strstr(text, "aten::dim("));
  free(text);
  kiln_ivalue args[2] = {make_tensor(&m, 3, (int64_t[]){2, 4, 8}, 0.01), make_matrix(&m, 4, 8, 1)};
  for (int i = 0; i < 3; i++) {
    kiln_ivalue result = kiln_none();
    m.call->jit = i < 2;
    kiln_call_begin(m.call, NULL);
    assert_error(kiln_jit_call(m.jit, m.call, m.function, args, 2, &result), KILN_RAISED,
                 "3 is not 2");
  }
  m.call->jit = true;
  for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
  for (int i = 0; i < 3; i++) call_rows(&m, 5);
  text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_words(text, "; fallback_function, depth 1, guarded:\n");
  assert_null(strstr(text, "aten::dim("));
  free(text);
  model_close(&m);
}

/* A new shape misses once, and its region is one: profiled, compiled and guarded as a whole. */
static void test_a_miss_is_one(void **state) {
  (void)state;
  model m;
  (void)run_three(GRAPH_TWO_GROUPS, "compat=kiln", &m);
  call_rows(&m, 5);
  kiln_counters c = counters(&m);
  assert_int_equal(c.guard_misses, 1);
  assert_int_equal(c.fallback_calls, 1);
  assert_int_equal(c.profiled_runs, 2);
  for (int i = 0; i < 3; i++) call_rows(&m, 5);
  c = counters(&m);
  assert_int_equal(c.groups, 4);
  assert_int_equal(c.max_depth, 1);
  assert_int_equal(c.compiled_runs, 4 + 6);
  assert_int_equal(c.guard_misses, 4);
  assert_int_equal(c.guard_hits, 2 + 3); /* of the region's variant */
  char *text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_words(text, "; fallback_function, depth 1, guarded:\n");
  free(text);
  call_rows(&m, 4); /* the first shape still runs compiled */
  assert_int_equal(counters(&m).compiled_runs, 12);
  model_close(&m);
}

/* A group in front of a loop, and two in it; the second one reads what the first region checks. */
static const char with_loop[] = "graph(%x : Tensor, %y : Tensor):\n"
                                "  %1 : int = prim::Constant[value=1]()\n"
                                "  %2 : int = prim::Constant[value=2]()\n"
                                "  %true : bool = prim::Constant[value=1]()\n"
                                "  %none : NoneType = prim::Constant()\n"
                                "  %a : Tensor = aten::mul(%x, %x)\n"
                                "  %b : Tensor = aten::sub(%a, %x, %1)\n"
                                "  %r : Tensor = prim::Loop(%2, %true, %y)\n"
                                "    block0(%i : int, %c : Tensor):\n"
                                "      %d : Tensor = aten::mul(%c, %c)\n"
                                "      %e : Tensor = aten::add(%d, %c, %1)\n"
                                "      %m : Tensor = aten::logcumsumexp(%e, %1)\n"
                                "      %f : Tensor = aten::mul(%m, %x)\n"
                                "      %g : Tensor = aten::add(%f, %m, %1)\n"
                                "      -> (%true, %g)\n"
                                "  %s : (Tensor, Tensor) = prim::TupleConstruct(%r, %b)\n"
                                "  return (%s)\n";

static void call_sizes(model *m, int64_t x_rows, int64_t y_rows) {
  kiln_ivalue args[2] = {make_matrix(m, x_rows, 8, 0.01), make_matrix(m, y_rows, 8, -0.02)};
  kiln_ivalue got = call_model(m, args, 2), want = call_plain(m, args, 2);
  for (int i = 0; i < 2; i++) {
    assert_close(got.u.tuple->items[i], want.u.tuple->items[i]);
    kiln_ivalue_release(args[i]);
  }
  kiln_ivalue_release(got);
  kiln_ivalue_release(want);
}

/* The loop runs behind a check that failed as well: it has to check for itself. */
static void test_a_loop_checks_again(void **state) {
  (void)state;
  model m;
  model_open(&m, with_loop, (const char *[]){"codegen=eval", "fusion_strategy=STATIC,3", NULL});
  for (int i = 0; i < 3; i++) call_sizes(&m, 4, 4);
  assert_int_equal(counters(&m).guard_misses, 0);
  for (int i = 0; i < 4; i++) call_sizes(&m, 1, 4); /* %y is as it was */
  assert_true(counters(&m).guard_misses > 1);
  model_close(&m);
}

/* More variants of a region than there are hints, so that two shapes have one hint: it is asked. */
static void test_hints_are_asked(void **state) {
  enum { SHAPES = 14, TURNS = 5 };
  (void)state;
  model m;
  model_open(&m, GRAPH_TWO_GROUPS,
             (const char *[]){"codegen=eval", "fusion_strategy=STATIC,20", NULL});
  for (int i = 0; i < SHAPES; i++) {
    for (int k = 0; k < 3; k++) call_rows(&m, 1 + i);
  }
  const kiln_counters before = counters(&m);
  assert_int_equal(before.max_depth, SHAPES - 1);
  for (int i = 0; i < TURNS * SHAPES; i++) call_rows(&m, 1 + i % SHAPES);
  const kiln_counters after = counters(&m);
  assert_int_equal(after.profiled_runs, before.profiled_runs); /* each shape found its variant */
  assert_int_equal(after.compiled_runs - before.compiled_runs, 2 * TURNS * SHAPES);
  model_close(&m);
}

static void test_stress(void **state) {
  (void)state;
  static const char *const chances[] = {"stress_bailout=1", "stress_bailout=0.4"};
  for (int k = 0; k < 2; k++) {
    model m;
    model_open(&m, GRAPH_TWO_GROUPS, (const char *[]){"codegen=eval", chances[k], NULL});
    for (int i = 0; i < 20; i++) call_rows(&m, 4 + i % 2);
    kiln_counters c = counters(&m);
    assert_true(c.guard_misses > 0);
    assert_true(k == 0 ? c.compiled_runs == 0 : c.compiled_runs > 0);
    model_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_guard_for_two_groups),
      cmocka_unit_test(test_torch_has_one_a_group),
      cmocka_unit_test(test_an_effect_keeps_them_apart),
      cmocka_unit_test(test_decided_checks),
      cmocka_unit_test(test_a_miss_is_one),
      cmocka_unit_test(test_a_loop_checks_again),
      cmocka_unit_test(test_hints_are_asked),
      cmocka_unit_test(test_stress),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
