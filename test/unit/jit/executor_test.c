/* executor_test.c: a function from its first call to its last bailout level, read in the printed
 * graphs and the counters. */
#include "base/sanitize.h"
#include "test/unit/jit/jit_support.h"

/* Calls with both arguments of rows x 8. */
static void call_matrices(model *m, int64_t rows, int64_t columns) {
  kiln_ivalue args[2] = {make_matrix(m, rows, columns, 0.01), make_matrix(m, rows, columns, -0.02)};
  check_call(m, args, 2);
  kiln_ivalue_release(args[0]);
  kiln_ivalue_release(args[1]);
}
static void call_rows(model *m, int64_t rows) { call_matrices(m, rows, 8); }

static void test_second_call_is_compiled(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", NULL});
  call_rows(&m, 4);
  assert_int_equal(counters(&m).profiled_runs, 1);
  assert_int_equal(counters(&m).groups, 0);
  char *profiled = dump_stage(&m, KILN_JIT_STAGE_PROFILED, "");
  assert_words(profiled, "prim::profile[profiled_type=Float(4, 8, strides=[8, 1], "
                         "requires_grad=0, device=cpu), seen_none=0](%x.1)");
  assert_int_equal(count_words(profiled, "prim::profile["), 10); /* nine uses and the result */
  call_rows(&m, 4);
  call_rows(&m, 4);
  char *again = dump_stage(&m, KILN_JIT_STAGE_PROFILED, ""); /* the graph itself is gone */
  assert_string_equal(again, profiled);
  free(again);
  free(profiled);
  kiln_counters c = counters(&m);
  assert_int_equal(c.profiled_runs, 1);
  assert_int_equal(c.groups, 1);
  assert_int_equal(c.compiles, 1);
  assert_int_equal(c.compile_failures, 0);
  assert_int_equal(c.compiled_runs, 2);
  assert_int_equal(c.guard_hits, 2);
  assert_int_equal(c.guard_misses, 0);
  assert_int_equal(c.groups_never_run, 0);
  kiln_group_counters g;
  assert_ok(kiln_jit_group(m.jit, 0, &g));
  assert_string_equal(g.name, "forward/TensorExprGroup_0");
  assert_int_equal(g.operators, 6);
  assert_int_equal(g.guard_hits, 2);
  assert_int_equal(g.runs, 2);
  assert_error(kiln_jit_group(m.jit, 1, &g), KILN_NOT_FOUND, "1");
  char *text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_int_equal(count_words(text, "= prim::TypeCheck[types=[Float(4, 8, strides=[8, 1], "), 1);
  assert_int_equal(count_words(text, "prim::TensorExprGroup_0("), 1);
  assert_words(text, "prim::Constant[name=\"fallback_function\", fallback=1]()");
  assert_words(text, " = prim::CallFunction(");
  assert_words(text, "with prim::TensorExprGroup_0 = graph(");
  free(text);
  char *loop = dump_stage(&m, KILN_JIT_STAGE_LOOP, "");
  assert_words(loop, g.hash);
  free(loop);
  model_close(&m);
}

/* A new batch size: a miss, a profile one level down, a compile, then hits; past the depth the
 * interpreter serves and nothing is compiled. */
static void test_levels(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "fusion_strategy=STATIC,2", NULL});
  for (int i = 0; i < 3; i++) call_rows(&m, 4);
  call_rows(&m, 5); /* misses; profiled at level 1 */
  kiln_counters c = counters(&m);
  assert_int_equal(c.guard_misses, 1);
  assert_int_equal(c.fallback_calls, 1);
  assert_int_equal(c.profiled_runs, 2);
  assert_int_equal(c.compiles, 1);
  assert_int_equal(c.max_depth, 1);
  call_rows(&m, 5); /* compiled at level 1 */
  call_rows(&m, 5);
  c = counters(&m);
  assert_int_equal(c.compiles, 2);
  assert_int_equal(c.compiled_runs, 4);
  kiln_group_counters g;
  assert_ok(kiln_jit_group(m.jit, 1, &g));
  assert_int_equal(g.depth, 1);
  assert_int_equal(g.runs, 2);
  assert_int_equal(g.guard_hits, 2);
  assert_int_equal(g.guard_misses, 0);
  for (int i = 0; i < 3; i++) call_rows(&m, 6); /* the depth is used up */
  c = counters(&m);
  assert_int_equal(c.compiles, 2);
  assert_int_equal(c.profiled_runs, 2);
  assert_int_equal(c.simple_plans, 1);
  assert_int_equal(c.max_depth, 2);
  assert_int_equal(c.compiled_runs, 4);
  assert_ok(kiln_jit_group(m.jit, 1, &g));
  assert_int_equal(g.guard_misses, 3);
  for (int i = 0; i < 2; i++) { /* both kernels still serve their shapes */
    call_rows(&m, 4);
    call_rows(&m, 5);
  }
  assert_int_equal(counters(&m).compiled_runs, 8);
  char *text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_words(text, "; fallback_function, depth 1, guarded:\n");
  assert_words(text, "Float(5, 8, strides=[8, 1], requires_grad=0, device=cpu)");
  assert_words(text, "; fallback_function, depth 2, plain:\n");
  free(text);
  bool told = false;
  kiln_jit_refusal r;
  for (int i = 0; kiln_jit_refusal_at(m.jit, i, &r); i++) {
    told |= r.reason == KILN_REASON_depth_used_up;
  }
  assert_true(told);
  model_close(&m);
}

/* The runs of a pass are counted over all jobs of a model, and so are a root's groups. */
static void test_limits_are_of_the_model(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "pass_limit=fuse_groups=2", NULL});
  for (int64_t rows = 1; rows <= 4; rows++) {
    for (int i = 0; i < 2; i++) call_rows(&m, rows);
  }
  assert_int_equal(counters(&m).groups, 2);
  kiln_group_counters g;
  assert_ok(kiln_jit_group(m.jit, 1, &g));
  assert_string_equal(g.name, "forward/TensorExprGroup_1");
  char *text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_int_equal(count_words(text, "; passes were limited then: this graph is not made again\n"),
                   1);
  assert_int_equal(count_words(text, "prim::TensorExprGroup_0("), 2);
  free(text);
  model_close(&m);
}

/* Groups beyond max_groups are not made. */
static void test_max_groups(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_TWO_GROUPS, (const char *[]){"codegen=eval", "max_groups=1", NULL});
  for (int64_t rows = 2; rows < 4; rows++) {
    for (int i = 0; i < 3; i++) call_rows(&m, rows);
  }
  kiln_counters c = counters(&m);
  assert_int_equal(c.groups, 1);
  assert_int_equal(c.compile_failures, 0);
  kiln_jit_refusal r = {0};
  for (int i = 0; kiln_jit_refusal_at(m.jit, i, &r); i++) {
    if (r.reason == KILN_REASON_too_many_groups) break;
  }
  assert_int_equal(r.reason, KILN_REASON_too_many_groups);
  char *graph = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_int_equal(count_words(graph, "= prim::TensorExprGroup_0("), 1);
  free(graph);
  model_close(&m);
}

/* Of sums that are read along rows and along columns one stays outside of the group, which has a
 * kernel then. */
static void test_rows_that_differ(void **state) {
  (void)state;
  model m;
  model_open(&m,
             "graph(%x : Tensor, %y : Tensor):\n"
             "  %zero : int = prim::Constant[value=0]()\n"
             "  %one : int = prim::Constant[value=1]()\n"
             "  %dims : int[] = prim::Constant[value=[1]]()\n"
             "  %no : bool = prim::Constant[value=0]()\n"
             "  %yes : bool = prim::Constant[value=1]()\n"
             "  %none : NoneType = prim::Constant()\n"
             "  %s : Tensor = aten::sum(%x, %dims, %no, %none)\n"
             "  %k : Tensor = aten::sum(%x, %dims, %yes, %none)\n"
             "  %a : Tensor = aten::add(%x, %s, %one)\n"
             "  %b : Tensor = aten::add(%a, %k, %one)\n"
             "  %c : Tensor = aten::logcumsumexp(%b, %zero)\n"
             "  %d : Tensor = aten::mul(%c, %y)\n"
             "  %e : Tensor = aten::relu(%d)\n"
             "  return (%e)\n",
             (const char *[]){"codegen=eval", NULL});
  kiln_ivalue args[2] = {make_matrix(&m, 3, 3, 0.1), make_matrix(&m, 1, 1, 0.5)};
  for (int i = 0; i < 4; i++) check_call(&m, args, 2);
  kiln_counters c = counters(&m);
  assert_int_equal(c.groups, 2);
  assert_int_equal(c.compiles, 2);
  assert_int_equal(c.compile_failures, 0);
  assert_int_equal(c.compiled_runs, 6);
  bool told = false;
  kiln_jit_refusal r;
  for (int i = 0; kiln_jit_refusal_at(m.jit, i, &r); i++)
    told |= r.reason == KILN_REASON_rows_differ && strstr(r.detail, "aten::sum") != NULL;
  assert_true(told);
  kiln_ivalue_release(args[0]);
  kiln_ivalue_release(args[1]);
  model_close(&m);
}

/* Without any kernel there is nothing to guard: the simple plan serves every shape. */
static void test_no_kernel_at_all(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_TWO_GROUPS, (const char *[]){"llvm=/nowhere/libLLVM.so", NULL});
  for (int64_t rows = 2; rows < 6; rows++) call_rows(&m, rows);
  kiln_counters c = counters(&m);
  assert_int_equal(c.groups, 2);
  assert_int_equal(c.compile_failures, 2);
  assert_int_equal(c.guard_hits + c.guard_misses, 0);
  assert_int_equal(c.profiled_runs, 1);
  char *graph = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_null(strstr(graph, "prim::TypeCheck"));
  assert_words(graph, "aten::logcumsumexp(");
  free(graph);
  char *loop = dump_stage(&m, KILN_JIT_STAGE_LOOP, "");
  assert_int_equal(count_words(loop, "kernel {"), 2); /* they could be lowered */
  free(loop);
  model_close(&m);
}

/* A variant keeps its plan and its profile, and no graph. */
static void test_variants_are_small(void **state) {
  enum { OPERATORS = 200, BYTES_PER_OPERATOR = 1000 };
  (void)state;
  model m;
  char text[64 * (OPERATORS + 8)], *end = text;
  end += sprintf(end, "graph(%%x : Tensor, %%y : Tensor):\n"
                      "  %%zero : int = prim::Constant[value=0]()\n"
                      "  %%none : NoneType = prim::Constant()\n"
                      "  %%z : Tensor = aten::mul(%%x, %%y)\n"
                      "  %%0 : Tensor = aten::relu(%%z)\n");
  for (int i = 0; i < OPERATORS; i++) {
    end += sprintf(end, "  %%%d : Tensor = aten::logcumsumexp(%%%d, %%zero)\n", i + 1, i);
  }
  sprintf(end, "  return (%%%d)\n", OPERATORS);
  model_open(&m, text, (const char *[]){"codegen=eval", "fusion_strategy=STATIC,4", NULL});
  size_t held = 0;
  for (int64_t rows = 1; rows <= 4; rows++) {
    for (int i = 0; i < 3; i++) call_rows(&m, rows);
    const size_t now = kiln_mem_bytes(m.env->mem);
    if (rows == 4) printf("%zu bytes an operator\n", (now - held) / OPERATORS);
    if (rows == 4 && !KILN_ASAN) assert_true(now - held < OPERATORS * BYTES_PER_OPERATOR);
    held = now;
  }
  assert_int_equal(counters(&m).compiles, 4);
  model_close(&m);
}

static void test_many_variants(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "fusion_strategy=STATIC,8", NULL});
  for (int64_t rows = 1; rows <= 6; rows++) {
    for (int i = 0; i < 2; i++) call_rows(&m, rows);
  }
  uint64_t before = counters(&m).compiled_runs;
  assert_int_equal(counters(&m).compiles, 6);
  for (int round = 0; round < 3; round++) {
    for (int64_t rows = 6; rows >= 1; rows--) call_rows(&m, rows);
  }
  assert_int_equal(counters(&m).compiled_runs, before + 18);
  assert_int_equal(counters(&m).compiles, 6);
  model_close(&m);
}

/* Where a region's dispatch looks first for arguments of rows x 8. */
static size_t slot_of(model *m, int64_t rows) {
  kiln_ivalue args[2] = {make_matrix(m, rows, 8, 0.01), make_matrix(m, rows, 8, -0.02)};
  const uint64_t hash = kiln_guard_hash(args, 2, false);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
  return (size_t)(hash % (sizeof m->jit->now->executors.first->hints / sizeof(uint16_t)));
}

/* The first two variants are asked before the hint, which another shape may have left: 6 rows have
 * their own although those of all rows would do. */
static void test_hint_of_another_shape(void **state) {
  (void)state;
  model m;
  kiln_group_counters before, after;
  model_open(&m, GRAPH_CHAIN,
             (const char *[]){"codegen=eval", "fusion_strategy=STATIC,3;DYNAMIC,2", NULL});
  for (int64_t rows = 4; rows <= 7; rows++) {
    for (int i = 0; i < 2; i++) call_rows(&m, rows);
  }
  int64_t other = 8;
  while (slot_of(&m, other) != slot_of(&m, 6)) other++;
  call_rows(&m, other);
  assert_int_equal(counters(&m).compiles, 4); /* the last one serves it */
  assert_ok(kiln_jit_group(m.jit, 2, &before));
  call_rows(&m, 6);
  assert_ok(kiln_jit_group(m.jit, 2, &after));
  assert_int_equal(after.runs, before.runs + 1);
  model_close(&m);
}

static void test_no_depth_is_simple(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "bailout_depth=0", NULL});
  for (int i = 0; i < 3; i++) call_rows(&m, 4);
  kiln_counters c = counters(&m);
  assert_int_equal(c.profiled_runs, 0);
  assert_int_equal(c.groups, 0);
  assert_int_equal(c.simple_plans, 1);
  model_close(&m);
}

static void test_jit_off(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"jit=off", NULL});
  for (int i = 0; i < 3; i++) call_rows(&m, 4);
  kiln_counters c = counters(&m);
  assert_int_equal(c.profiled_runs, 0);
  assert_int_equal(c.simple_plans, 0);
  assert_false(kiln_codegen_llvm_is_open(m.codegen));
  model_close(&m);
}

/* Two runs of different shapes agree on nothing: no group, for good. */
static void test_profiled_runs_merge(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "num_profiled_runs=2", NULL});
  call_rows(&m, 2);
  call_rows(&m, 4);
  call_rows(&m, 4);
  kiln_counters c = counters(&m);
  assert_int_equal(c.profiled_runs, 2);
  assert_int_equal(c.groups, 0);
  kiln_jit_refusal r;
  assert_true(kiln_jit_refusal_at(m.jit, 0, &r));
  assert_int_equal(r.reason, KILN_REASON_types_unknown);
  model_close(&m);
}

/* A run that fails is not counted and leaves no types. */
static void test_failed_run_leaves_no_trace(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", NULL});
  kiln_ivalue bad[2] = {make_matrix(&m, 3, 8, 1), make_matrix(&m, 3, 5, 1)}, result = kiln_none();
  kiln_call_begin(m.call, NULL);
  assert_error(kiln_jit_call(m.jit, m.call, m.function, bad, 2, &result), KILN_OP_ERROR, NULL);
  kiln_ivalue_release(bad[0]);
  kiln_ivalue_release(bad[1]);
  assert_int_equal(counters(&m).profiled_runs, 0);
  for (int i = 0; i < 3; i++) call_rows(&m, 4);
  kiln_counters c = counters(&m);
  assert_int_equal(c.groups, 1);
  assert_int_equal(c.guard_hits, 2);
  model_close(&m);
}

static void test_small_group_is_refused(void **state) {
  (void)state;
  model m;
  static const char one[] = "graph(%x : Tensor):\n"
                            "  %y : Tensor = aten::tanh(%x)\n"
                            "  return (%y)\n";
  model_open(&m, one, (const char *[]){"codegen=eval", NULL});
  kiln_ivalue x = make_matrix(&m, 2, 3, 0.1);
  for (int i = 0; i < 3; i++) check_call(&m, &x, 1);
  assert_int_equal(counters(&m).groups, 0);
  kiln_jit_refusal r;
  assert_true(kiln_jit_refusal_at(m.jit, 0, &r));
  assert_int_equal(r.reason, KILN_REASON_group_too_small);
  kiln_ivalue_release(x);
  model_close(&m);
  model_open(&m, one, (const char *[]){"codegen=eval", "min_group_size=1", NULL});
  x = make_matrix(&m, 2, 3, 0.1);
  for (int i = 0; i < 3; i++) check_call(&m, &x, 1);
  assert_int_equal(counters(&m).groups, 1);
  kiln_ivalue_release(x);
  model_close(&m);
}

/* Guards that fail at random lead to the fallback, which agrees. */
static void test_stress_bailout(void **state) {
  (void)state;
  model m;
  model_open(
      &m, GRAPH_CHAIN,
      (const char *[]){"codegen=eval", "stress_bailout=0.5", "fusion_strategy=STATIC,3", NULL});
  for (int i = 0; i < 40; i++) call_rows(&m, 4);
  kiln_counters c = counters(&m);
  assert_true(c.guard_misses > 5);
  assert_true(c.guard_hits > 5);
  assert_int_equal(c.max_depth, 3);
  model_close(&m);
}

static bool says_dynamic(const model *m) {
  kiln_jit_refusal r;
  for (int i = 0; kiln_jit_refusal_at(m->jit, i, &r); i++) {
    if (r.reason == KILN_REASON_dynamic_as_static) return true;
  }
  return false;
}

/* One kernel for every number of rows from 2 on; one row is a level of its own. */
static void test_dynamic_level(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "fusion_strategy=DYNAMIC,2", NULL});
  for (int64_t rows = 2; rows < 40; rows++) call_rows(&m, rows);
  assert_int_equal(counters(&m).groups, 1);
  assert_int_equal(counters(&m).compiled_runs, 37);
  assert_int_equal(counters(&m).guard_misses, 0);
  assert_false(says_dynamic(&m));
  for (int i = 0; i < 3; i++) call_rows(&m, 1);
  assert_int_equal(counters(&m).groups, 2);
  assert_int_equal(counters(&m).compiled_runs, 39);
  model_close(&m);
}

/* What differs between levels becomes symbols. The second static level is for sizes that come
 * again: of 2, 3, 4, ... rows the 3 do not, and the first DYNAMIC level takes its place, but in
 * PyTorch's executor; of 2, 3, 3, 4, ... they do. */
static void test_dynamic_after_static(void **state) {
  (void)state;
  static const struct {
    const char *compat;
    int again, groups;
  } cases[] = {{"compat=kiln", 0, 2}, {"compat=torch", 0, 3}, {"compat=kiln", 3, 3}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    model m;
    model_open(&m, GRAPH_CHAIN,
               (const char *[]){"codegen=eval", "fusion_strategy=STATIC,2;DYNAMIC,5",
                                cases[i].compat, NULL});
    for (int64_t rows = 2; rows < 40; rows++) {
      call_rows(&m, rows);
      if (rows == cases[i].again) call_rows(&m, rows);
    }
    const kiln_counters c = counters(&m);
    assert_int_equal(c.groups, cases[i].groups);
    assert_int_equal(c.profiled_runs, cases[i].groups);
    assert_int_equal(c.max_depth, 2);
    model_close(&m);
  }
}

/* A level learns from the call that asks for it: the columns were 64 in what was recorded, and are
 * 32 in this call, so that they are a symbol too. */
static void test_dynamic_by_the_call(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", NULL});
  call_matrices(&m, 8, 64);
  call_matrices(&m, 8, 64);
  call_matrices(&m, 5, 64);
  for (int64_t columns = 32; columns > 2; columns--) call_matrices(&m, 5, columns);
  assert_int_equal(counters(&m).groups, 2);
  assert_int_equal(counters(&m).compiled_runs, 1 + 30);
  model_close(&m);
}

/* The depth caps the strategy from behind: what is left of it is its first, static level. */
static void test_bailout_depth_keeps_the_first_levels(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN,
             (const char *[]){"codegen=eval", "fusion_strategy=STATIC,1;DYNAMIC,5",
                              "bailout_depth=1", NULL});
  for (int i = 0; i < 3; i++) call_rows(&m, 4);
  assert_int_equal(counters(&m).compiled_runs, 2);
  assert_false(says_dynamic(&m));
  model_close(&m);
}

/* Groups in a loop's body, over carried values, and values that die in branches. */
static void test_loop_and_if(void **state) {
  (void)state;
  model m;
  static const char text[] = "graph(%x : Tensor, %w : Tensor, %n : int):\n"
                             "  %one : int = prim::Constant[value=1]()\n"
                             "  %two : int = prim::Constant[value=2]()\n"
                             "  %true : bool = prim::Constant[value=1]()\n"
                             "  %h : Tensor, %c : Tensor = prim::Loop(%n, %true, %x, %w)\n"
                             "    block0(%i : int, %h.1 : Tensor, %c.1 : Tensor):\n"
                             "      %a : Tensor = aten::mul(%h.1, %w)\n"
                             "      %b : Tensor = aten::add(%a, %c.1, %one)\n"
                             "      %t : Tensor = aten::tanh(%b)\n"
                             "      %late : bool = aten::ge(%i, %two)\n"
                             "      %r : Tensor = prim::If(%late)\n"
                             "        block0():\n"
                             "          %r.1 : Tensor = aten::sigmoid(%t)\n"
                             "          %r.2 : Tensor = aten::mul(%r.1, %h.1)\n"
                             "          -> (%r.2)\n"
                             "        block1():\n"
                             "          -> (%t)\n"
                             "      -> (%true, %r, %h.1)\n"
                             "  %out : (Tensor, Tensor) = prim::TupleConstruct(%h, %c)\n"
                             "  return (%out)\n";
  model_open(&m, text, (const char *[]){"codegen=eval", NULL});
  kiln_ivalue args[3] = {make_matrix(&m, 3, 5, 0.02), make_matrix(&m, 3, 5, 0.01), kiln_int(5)};
  for (int i = 0; i < 4; i++) check_call(&m, args, 3);
  args[2] = kiln_int(0);
  check_call(&m, args, 3);
  assert_int_equal(args[0].u.tensor->refs, 1);
  assert_int_equal(args[1].u.tensor->refs, 1);
  kiln_counters c = counters(&m);
  assert_int_equal(c.groups, 2);
  assert_int_equal(c.compiled_runs, 3 * (5 + 3));
  assert_int_equal(c.guard_misses, 0);
  kiln_ivalue_release(args[0]);
  kiln_ivalue_release(args[1]);
  model_close(&m);
}

/* The n-th allocation of a model's first calls fails, for each n: a call either works or says that
 * memory is exhausted, later calls work, and nothing leaks. */
/* Six numbers from 0, of float or int64. */
static kiln_ivalue counted(model *m, kiln_dtype dtype) {
  kiln_tensor *t;
  assert_ok(kiln_tensor_create(m->env->mem, NULL, dtype, 1, (int64_t[]){6}, &t));
  for (int i = 0; i < 6; i++) {
    if (dtype == KILN_DTYPE_F32) ((float *)t->storage->data)[i] = (float)i;
    if (dtype == KILN_DTYPE_I64) ((int64_t *)t->storage->data)[i] = i;
  }
  return kiln_of_tensor(t);
}

#define OUT(nodes)                           \
  "graph(%x : Tensor):\n"                    \
  "  %0 : int = prim::Constant[value=0]()\n" \
  "  %1 : int = prim::Constant[value=1]()\n" \
  "  %3 : int = prim::Constant[value=3]()\n" \
  "  %4 : int = prim::Constant[value=4]()\n" \
  "  %6 : int = prim::Constant[value=6]()\n" \
  "  %a : Tensor = aten::slice(%x, %0, %0, %3, %1)\n" nodes "  return (%x)\n"

/* out= lies in memory that the operator reads, also through a list: all is read before it is
 * written. A result that does not fit is refused, and nothing is written. */
static void test_out_is_also_read(void **state) {
  (void)state;
  static const struct {
    const char *graph;
    float want[6];
  } rows[] = {
      {OUT("  %b : Tensor = aten::slice(%x, %0, %1, %4, %1)\n"
           "  %r : Tensor = aten::add(%a, %a, %1, %b)\n"),
       {0, 0, 2, 4, 4, 5}},
      {OUT("  %b : Tensor = aten::slice(%x, %0, %3, %6, %1)\n"
           "  %l : Tensor[] = prim::ListConstruct(%b, %a)\n"
           "  %r : Tensor = aten::cat(%l, %0, %x)\n"),
       {3, 4, 5, 0, 1, 2}},
  };
  model m;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    model_open(&m, rows[i].graph, NULL);
    kiln_ivalue x = counted(&m, KILN_DTYPE_F32), result = call_plain(&m, &x, 1);
    assert_memory_equal(kiln_tensor_data(result.u.tensor), rows[i].want, sizeof rows[i].want);
    kiln_ivalue_release(result);
    kiln_ivalue_release(x);
    model_close(&m);
  }
  model_open(&m, OUT("  %r : Tensor = aten::div(%x, %x, %x)\n"), NULL);
  kiln_ivalue x = counted(&m, KILN_DTYPE_I64), result = kiln_none();
  m.call->jit = false;
  kiln_call_begin(m.call, NULL);
  assert_error(kiln_jit_call(m.jit, m.call, m.function, &x, 1, &result), KILN_OP_ERROR,
               "can't be cast to the desired output type Long");
  for (int i = 0; i < 6; i++) assert_int_equal(((int64_t *)x.u.tensor->storage->data)[i], i);
  kiln_ivalue_release(x);
  model_close(&m);
}

/* A result goes where out= says: the call needs no room for another one. */
static void test_out_needs_no_room(void **state) {
  (void)state;
  model m;
  model_open(&m,
             "graph(%x : Tensor, %y : Tensor):\n"
             "  %one : int = prim::Constant[value=1]()\n"
             "  %r : Tensor = aten::add(%x, %x, %one, %y)\n"
             "  return (%r)\n",
             NULL);
  kiln_ivalue args[] = {make_matrix(&m, 512, 512, 1), make_matrix(&m, 512, 512, 0)};
  kiln_ivalue result = kiln_none();
  m.call->jit = false;
  kiln_call_begin(m.call, &(kiln_limits){.bytes = 512 << 10}); /* half of a matrix */
  assert_ok(kiln_jit_call(m.jit, m.call, m.function, args, 2, &result));
  assert_ptr_equal(result.u.tensor->storage, args[1].u.tensor->storage);
  const float *x = kiln_tensor_data(args[0].u.tensor), *y = kiln_tensor_data(result.u.tensor);
  for (int i = 0; i < 512 * 512; i++) assert_true(y[i] == 2 * x[i]);
  kiln_ivalue_release(result);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
  model_close(&m);
}

/* A function of nothing has no object whose flags could be constants. */
static void test_no_arguments(void **state) {
  (void)state;
  model m;
  model_open(&m,
             "graph():\n"
             "  %1 : int = prim::Constant[value=4]()\n"
             "  return (%1)\n",
             NULL);
  for (int i = 0; i < 3; i++) assert_int_equal(call_model(&m, NULL, 0).u.i, 4);
  model_close(&m);
}

static void test_memory_runs_out(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN,
             (const char *[]){"codegen=eval", "fusion_strategy=STATIC,2", "code_cache=0", NULL});
  bool failed = true;
  uint64_t lost = 0;
  for (uint64_t n = 1; failed; n += n < 64 ? 1 : 7) {
    model_make_anew(&m);
    kiln_ivalue args[4] = {make_matrix(&m, 4, 8, 0.01), make_matrix(&m, 4, 8, 0.02),
                           make_matrix(&m, 5, 8, 0.01), make_matrix(&m, 5, 8, 0.02)};
    (void)kiln_mem_fail_at(m.env->mem, n);
    for (int i = 0; i < 4; i++) {
      kiln_ivalue result = kiln_none();
      kiln_call_begin(m.call, NULL);
      kiln_status *status =
          kiln_jit_call(m.jit, m.call, m.function, i < 2 ? args : args + 2, 2, &result);
      if (status) assert_int_equal(kiln_status_code(status), KILN_OUT_OF_MEMORY);
      kiln_status_destroy(status);
      kiln_ivalue_release(result);
    }
    failed = kiln_mem_fail_at(m.env->mem, 0) >= n;
    lost += counters(&m).compile_failures;
    kiln_jit_refusal r;
    for (int i = 0; kiln_jit_refusal_at(m.jit, i, &r); i++) {
      if (r.reason == KILN_REASON_out_of_memory) assert_true(counters(&m).compile_failures > 0);
    }
    check_call(&m, args, 2);
    for (int i = 0; i < 4; i++) kiln_ivalue_release(args[i]);
  }
  assert_true(lost > 0); /* some of them in a compilation, which is counted */
  model_close(&m);
}

/* Flags are an object's: what is called on something else has none. */
static void test_flags_of_no_object(void **state) {
  (void)state;
  model m;
  kiln_arena *arena, *scratch;
  model_open(&m, "graph(%x : int):\n  return (%x)\n", NULL);
  assert_ok(kiln_arena_create(m.env->mem, &arena));
  assert_ok(kiln_arena_create(m.env->mem, &scratch));
  assert_null(kiln__freeze_flags(m.function->graph, kiln_int(1), arena, scratch));
  assert_null(kiln__freeze_flags(m.function->graph, kiln_none(), arena, scratch));
  kiln_arena_destroy(scratch);
  kiln_arena_destroy(arena);
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_second_call_is_compiled),
      cmocka_unit_test(test_levels),
      cmocka_unit_test(test_limits_are_of_the_model),
      cmocka_unit_test(test_max_groups),
      cmocka_unit_test(test_rows_that_differ),
      cmocka_unit_test(test_no_kernel_at_all),
      cmocka_unit_test(test_variants_are_small),
      cmocka_unit_test(test_many_variants),
      cmocka_unit_test(test_hint_of_another_shape),
      cmocka_unit_test(test_no_depth_is_simple),
      cmocka_unit_test(test_jit_off),
      cmocka_unit_test(test_profiled_runs_merge),
      cmocka_unit_test(test_failed_run_leaves_no_trace),
      cmocka_unit_test(test_small_group_is_refused),
      cmocka_unit_test(test_stress_bailout),
      cmocka_unit_test(test_dynamic_level),
      cmocka_unit_test(test_dynamic_after_static),
      cmocka_unit_test(test_dynamic_by_the_call),
      cmocka_unit_test(test_bailout_depth_keeps_the_first_levels),
      cmocka_unit_test(test_loop_and_if),
      cmocka_unit_test(test_no_arguments),
      cmocka_unit_test(test_out_needs_no_room),
      cmocka_unit_test(test_out_is_also_read),
      cmocka_unit_test(test_memory_runs_out),
      cmocka_unit_test(test_flags_of_no_object),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
