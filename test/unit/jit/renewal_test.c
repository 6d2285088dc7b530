/* renewal_test.c: streams of shapes: what is equal, or 1, by accident is widened by its first miss,
 * and where a strategy is used up, variants give way to what runs. */
#include <inttypes.h>

#include "base/sanitize.h"
#include "jit/compile_job.h"
#include "test/unit/jit/jit_support.h"

#define DEFAULT "fusion_strategy=STATIC,2;DYNAMIC,10"

/* Calls GRAPH_CHAIN with both arguments of that shape, `times` times. To the windows they take no
 * time, however busy the machine is: it passes by pass_time. */
static void call_shape(model *m, int64_t rows, int64_t columns, int times) {
  kiln_ivalue args[2] = {make_matrix(m, rows, columns, 0.01), make_matrix(m, rows, columns, -0.02)};
  const uint64_t unserved = m->jit->unserved_ns;
  for (int i = 0; i < times; i++) {
    check_call(m, args, 2);
    m->jit->unserved_ns = unserved;
  }
  for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
}

static uint64_t gave_way(const model *m) {
  kiln_jit_refusal r;
  for (int i = 0; kiln_jit_refusal_at(m->jit, i, &r); i++) {
    if (r.reason == KILN_REASON_variant_gave_way) return r.count;
  }
  return 0;
}

/* Windows of all regions end: as much time was spent without a variant. */
static void pass_time(model *m) {
  for (const kiln_executor *ex = m->jit->now->executors.first; ex; ex = ex->next) {
    if (ex->renewal_due_ns != UINT64_MAX && m->jit->unserved_ns < ex->renewal_due_ns)
      m->jit->unserved_ns = ex->renewal_due_ns;
  }
}

/* -- Widening -- */

/* x [4, 4] is one symbol at first, by accident. [4, 5] makes two of it, and then everything runs
 * compiled. */
static void test_equal_by_accident(void **state) {
  (void)state;
  static const char *const strategies[] = {"fusion_strategy=DYNAMIC,4", DEFAULT};
  for (int i = 0; i < 2; i++) {
    model m;
    model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", strategies[i], NULL});
    call_shape(&m, 4, 4, 2);
    call_shape(&m, 4, 5, 2);
    if (i == 1) call_shape(&m, 4, 6, 2); /* the first two levels are static */
    const uint64_t groups = counters(&m).groups, ran = counters(&m).compiled_runs;
    assert_int_equal(groups, i == 1 ? 3 : 2);
    if (i == 0) {
      for (int64_t rows = 2; rows < 12; rows++) call_shape(&m, rows, 14 - rows, 1);
    } else {
      for (int64_t columns = 2; columns < 12; columns++) call_shape(&m, 4, columns, 1);
      assert_int_equal(counters(&m).groups, groups);
      call_shape(&m, 5, 7, 2); /* rows change for the first time: one more */
      for (int64_t rows = 2; rows < 12; rows++) call_shape(&m, rows, 14 - rows, 1);
    }
    assert_int_equal(counters(&m).groups, i == 1 ? 4 : 2);
    assert_int_equal(counters(&m).compiled_runs, ran + (i == 1 ? 21 : 10));
    model_close(&m);
  }
}

/* Operands of different orders in memory: which of them the result has follows for all sizes, so
 * that one kernel serves them. */
static void test_crossing_strides(void **state) {
  (void)state;
  static const char graph[] =
      "graph(%x.1 : Tensor, %y.1 : Tensor):\n  %2 : int = prim::Constant[value=1]()\n"
      "  %3 : Tensor = aten::t(%x.1)\n  %4 : Tensor = aten::sigmoid(%3)\n"
      "  %5 : Tensor = aten::add(%y.1, %4, %2)\n  return (%5)\n";
  model m;
  model_open(&m, graph, (const char *[]){"codegen=eval", "fusion_strategy=DYNAMIC,4", NULL});
  for (int64_t rows = 5, columns = 9; rows < 25; rows += 2, columns += 3) {
    kiln_ivalue args[2] = {make_matrix(&m, rows, columns, 0.01),
                           make_matrix(&m, columns, rows, -0.02)};
    for (int i = 0; i < 2; i++) check_call(&m, args, 2);
    for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
  }
  assert_int_equal(counters(&m).groups, 1);
  assert_int_equal(counters(&m).compiled_runs, 19);
  model_close(&m);
}

/* What failed is told once, with the symbol and the size that does not go with it. */
static void test_misses_tell_symbols(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "fusion_strategy=DYNAMIC,2", NULL});
  call_shape(&m, 4, 4, 2);
  call_shape(&m, 4, 5, 4);
  kiln_guard_miss miss;
  assert_true(kiln_jit_guard_miss_at(m.jit, 0, &miss));
  assert_string_equal(miss.value, "x.1");
  assert_string_equal(miss.expected, "Float(s0, s0, strides=[s0, 1], requires_grad=0, device=cpu) "
                                     "with s0 = %x.1.size(0) = 4");
  assert_string_equal(miss.seen, "Float(4, 5, strides=[5, 1], requires_grad=0, device=cpu) "
                                 "whose size(1) differs");
  assert_int_equal(miss.count, 4);
  assert_false(kiln_jit_guard_miss_at(m.jit, 1, &miss));
  model_close(&m);
}

#define GRAPH_BROADCAST                      \
  "graph(%x : Tensor, %y : Tensor):\n"       \
  "  %1 : int = prim::Constant[value=1]()\n" \
  "  %a : Tensor = aten::mul(%x, %y)\n"      \
  "  %b : Tensor = aten::add(%a, %x, %1)\n"  \
  "  %c : Tensor = aten::tanh(%b)\n"         \
  "  return (%c)\n"

static void call_broadcast(model *m, int64_t rows, int64_t other, int times) {
  kiln_ivalue args[2] = {make_matrix(m, rows, 8, 0.01), make_matrix(m, other, 8, -0.02)};
  for (int i = 0; i < times; i++) check_call(m, args, 2);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
}

/* y has one row, which is broadcast, and then as many as x: a case of its own, whose sizes are one
 * symbol although they were not alike before. After both neither misses. */
static void test_one_by_accident(void **state) {
  (void)state;
  static const char *const strategies[] = {"fusion_strategy=DYNAMIC,6", DEFAULT};
  for (int i = 0; i < 2; i++) {
    model m;
    model_open(&m, GRAPH_BROADCAST, (const char *[]){"codegen=eval", strategies[i], NULL});
    call_broadcast(&m, 4, 1, 2);
    call_broadcast(&m, 7, 7, 2);
    call_broadcast(&m, 5, 1, 2);
    call_broadcast(&m, 6, 6, 2);
    const kiln_counters before = counters(&m);
    for (int64_t rows = 2; rows < 12; rows++) {
      call_broadcast(&m, rows, 1, 1);
      call_broadcast(&m, rows, rows, 1);
    }
    const kiln_counters c = counters(&m);
    assert_int_equal(c.groups, before.groups);
    assert_int_equal(c.compiled_runs, before.compiled_runs + 20);
    assert_int_equal(c.max_depth, i == 0 ? 1 : 3);
    model_close(&m);
  }
}

/* PyTorch's letter: each DYNAMIC level is made without a memory of those before. */
static void test_torch_remembers_nothing(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN,
             (const char *[]){"codegen=eval", "compat=torch", "fusion_strategy=DYNAMIC,3", NULL});
  for (int64_t i = 0; i < 3; i++) {
    call_shape(&m, 4, 4, 2);
    call_shape(&m, 5, 4, 2);
  }
  pass_time(&m);
  call_shape(&m, 1, 1, 8);
  assert_int_equal(gave_way(&m), 0);
  model_close(&m);
}

/* More levels than a symbol's history has: other ranks each time. */
static void test_many_levels(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "fusion_strategy=DYNAMIC,20", NULL});
  static const int64_t sizes[] = {2, 1, 3, 1, 2, 3};
  for (int rank = 1; rank < 6; rank++) {
    for (int other = 1; other < 6; other++) {
      kiln_ivalue args[2] = {make_tensor(&m, rank, sizes + 6 - rank, 0.01),
                             make_tensor(&m, other, sizes + 6 - other, -0.02)};
      for (int i = 0; i < 3; i++) check_call(&m, args, 2);
      for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
    }
  }
  assert_true(counters(&m).max_depth > 16);
  model_close(&m);
}

/* -- Giving way -- */

/* Two static levels behind the function's own. Rows 7 come for good; in their window rows 6 ran
 * and rows 5 did not. */
static void test_least_used_gives_way(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "fusion_strategy=STATIC,3", NULL});
  for (int64_t rows = 4; rows <= 6; rows++) call_shape(&m, rows, 8, 3);
  call_shape(&m, 7, 8, 4);
  call_shape(&m, 6, 8, 2);
  assert_int_equal(counters(&m).compiles, 3);
  pass_time(&m);
  call_shape(&m, 7, 8, 3); /* recorded, compiled, run */
  kiln_counters c = counters(&m);
  assert_int_equal(c.compiles, 4);
  assert_int_equal(c.groups, 4);
  assert_int_equal(c.profiled_runs, 4);
  assert_int_equal(gave_way(&m), 1);
  const uint64_t ran = c.compiled_runs;
  call_shape(&m, 7, 8, 1);
  call_shape(&m, 6, 8, 1);
  call_shape(&m, 4, 8, 1);
  assert_int_equal(counters(&m).compiled_runs, ran + 3);
  call_shape(&m, 5, 8, 3); /* it has gone: interpreted */
  assert_int_equal(counters(&m).compiled_runs, ran + 3);
  kiln_group_counters g;
  assert_ok(kiln_jit_group(m.jit, 2, &g)); /* the newest is the last */
  assert_string_equal(g.name, "forward/TensorExprGroup_3");
  assert_int_equal(g.runs, 3);
  assert_int_equal(g.guard_hits, 3);
  assert_int_equal(g.depth, 1);
  assert_error(kiln_jit_group(m.jit, 3, &g), KILN_NOT_FOUND, NULL);
  char *text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, "");
  assert_words(text, "Float(7, 8, strides=[8, 1]");
  assert_null(strstr(text, "Float(5, 8, strides=[8, 1]"));
  free(text);
  pass_time(&m);
  call_shape(&m, 5, 8, 3); /* it comes back, for 6 or 7 */
  assert_int_equal(gave_way(&m), 2);
  assert_int_equal(counters(&m).compiled_runs, ran + 5);
  model_close(&m);
}

/* Also where it stands behind those that are asked first, and the hint of its shape was of what
 * served until then. */
static void test_late_one_is_found(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "fusion_strategy=STATIC,5", NULL});
  for (int64_t rows = 2; rows <= 6; rows++) call_shape(&m, rows, 8, 3);
  call_shape(&m, 7, 8, 4);
  for (int64_t rows = 2; rows <= 5; rows++) call_shape(&m, rows, 8, 1);
  pass_time(&m);
  call_shape(&m, 7, 8, 2); /* recorded, compiled: in the place of 6 rows */
  assert_int_equal(gave_way(&m), 1);
  const uint64_t ran = counters(&m).compiled_runs;
  call_shape(&m, 7, 8, 3);
  for (int64_t rows = 2; rows <= 5; rows++) call_shape(&m, rows, 8, 1);
  assert_int_equal(counters(&m).compiled_runs, ran + 7);
  model_close(&m);
}

/* A region without a level makes its first variant where that pays; then that gives way. */
static void test_first_of_a_region(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "fusion_strategy=DYNAMIC,1", NULL});
  call_shape(&m, 4, 4, 2); /* one symbol, by accident */
  call_shape(&m, 6, 8, 4);
  const kiln_executor *region = m.jit->now->executors.last;
  assert_int_equal(region->base_depth, 1);
  assert_string_equal(kiln_executor_state_name(region->state), "SIMPLE");
  assert_int_equal(counters(&m).compiles, 1);
  assert_true(region->renewal_due_ns >= 32 * region->level_ns && region->level_ns > 0);
  pass_time(&m);
  call_shape(&m, 6, 8, 2); /* recorded, compiled */
  const uint64_t ran = counters(&m).compiled_runs;
  for (int64_t rows = 5; rows < 9; rows++) call_shape(&m, rows, 9, 2);
  assert_int_equal(counters(&m).compiles, 2);
  assert_int_equal(counters(&m).compiled_runs, ran + 8);
  assert_int_equal(gave_way(&m), 0);
  kiln_ivalue args[2] = {make_matrix(&m, 3, 8, 0.01), make_tensor(&m, 1, (int64_t[]){8}, -0.02)};
  for (int i = 0; i < 20; i++) check_call(&m, args, 2);
  pass_time(&m);
  for (int i = 0; i < 3; i++) check_call(&m, args, 2);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
  assert_int_equal(gave_way(&m), 1);
  assert_int_equal(counters(&m).compiled_runs, ran + 10);
  model_close(&m);
}

#define GRAPH_WINDOWS                                                                \
  "graph(%x.1 : Tensor):\n"                                                          \
  "  %none : NoneType = prim::Constant()\n"                                          \
  "  %true : bool = prim::Constant[value=1]()\n"                                     \
  "  %size : int[] = prim::Constant[value=[9, 9]]()\n"                               \
  "  %step : int[] = prim::Constant[value=[10, 10]]()\n"                             \
  "  %zero : int[] = prim::Constant[value=[0, 0]]()\n"                               \
  "  %3 : Tensor = aten::mul(%x.1, %x.1)\n"                                          \
  "  %4 : Tensor = aten::sigmoid(%3)\n"                                              \
  "  %8 : Tensor = aten::avg_pool2d(%4, %size, %step, %zero, %true, %true, %none)\n" \
  "  %9 : Tensor = aten::mul(%8, %8)\n"                                              \
  "  %10 : Tensor = aten::tanh(%9)\n"                                                \
  "  return (%10)\n"

static void call_image(model *m, int64_t size, bool other, int times) {
  const int64_t sizes[4] = {1, other ? 3 : 2, 3 * size, 3 * size};
  kiln_ivalue x = make_tensor(m, 4, sizes, 0.01);
  for (int i = 0; i < times; i++) check_call(m, &x, 1);
  kiln_ivalue_release(x);
}

/* No shape function proves with symbols what stands between the groups: the fallback's variant has
 * a region for each of them, without a level that is left. */
static void test_regions_in_a_variant(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_WINDOWS,
             (const char *[]){"codegen=eval", "fusion_strategy=STATIC,1;DYNAMIC,1", NULL});
  call_image(&m, 4, false, 3);
  call_image(&m, 5, false, 3);
  int regions = 0;
  for (const kiln_executor *ex = m.jit->now->executors.first; ex; ex = ex->next)
    regions += ex->base_depth == 2;
  assert_int_equal(regions, 2);
  call_image(&m, 5, true, 4); /* other channels: both regions miss */
  const uint64_t before = counters(&m).compiled_runs;
  call_image(&m, 5, true, 2);
  assert_int_equal(counters(&m).compiled_runs, before);
  for (int i = 0; i < 4; i++) {
    pass_time(&m);
    call_image(&m, 5, true, 3);
  }
  const uint64_t ran = counters(&m).compiled_runs;
  call_image(&m, 5, true, 2); /* both groups */
  call_image(&m, 7, true, 2); /* the first one's kernel has symbols, what is pooled none */
  call_image(&m, 4, false, 1);
  assert_int_equal(counters(&m).compiled_runs, ran + 8);
  model_close(&m);
}

/* No variant gives way to calls that are fewer than its own. */
static void test_what_is_used_stays(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "fusion_strategy=STATIC,2", NULL});
  for (int64_t rows = 4; rows <= 5; rows++) call_shape(&m, rows, 8, 3);
  for (int i = 0; i < 10; i++) {
    call_shape(&m, 6 + i, 8, 1);
    call_shape(&m, 5, 8, 3);
    pass_time(&m);
  }
  assert_int_equal(gave_way(&m), 0);
  model_close(&m);
}

/* Ever new shapes: the more variants were made in vain, the more time has to pass for the next one;
 * the first that serves ends that. */
static void test_windows_grow(void **state) {
  enum { SHARE = 32, ROUNDS = 12, OTHERS = 40, MOST = 1024 };
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN, (const char *[]){"codegen=eval", "fusion_strategy=STATIC,3", NULL});
  for (int64_t rows = 2; rows <= 5; rows++) call_shape(&m, rows, 8, 2);
  const kiln_executor *region = m.jit->now->executors.last;
  for (int round = 0; round < ROUNDS; round++) {
    pass_time(&m);
    const uint64_t unserved = m.jit->unserved_ns;
    call_shape(&m, 6, 9 + round, 2);
    assert_int_equal(gave_way(&m), round + 1);
    const uint32_t patience = round < 10 ? 1u << round : MOST;
    assert_int_equal(region->patience, patience);
    assert_true(region->renewal_due_ns >= unserved + SHARE * region->level_ns * patience);
    assert_true(m.jit->renewal_ns <= unserved / SHARE + region->level_ns);
    for (int i = 0; i < OTHERS; i++) call_shape(&m, 7 + i, 8, 1);
  }
  pass_time(&m);
  call_shape(&m, 6, 8, 40);
  assert_int_equal(gave_way(&m), ROUNDS + 1);
  pass_time(&m);
  call_shape(&m, 7, 8, 1);
  assert_int_equal(region->patience, 1);
  model_close(&m);
}

/* Whatever a variant had goes with it. */
static void test_memory_is_flat(void **state) {
  enum { ROUNDS = 240, SHAPES = 6 };
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN,
             (const char *[]){"codegen=eval", "fusion_strategy=STATIC,3", "code_cache=0", NULL});
  size_t held = 0;
  uint32_t numbers = 0;
  for (int round = 0; round < ROUNDS; round++) {
    pass_time(&m);
    call_shape(&m, 2 + round % SHAPES, 8, 4);
    if (round == ROUNDS / 2) held = kiln_mem_bytes(m.env->mem), numbers = m.jit->book.count;
  }
  printf("%d variants gave way, %zd bytes more\n", (int)gave_way(&m),
         (ssize_t)(kiln_mem_bytes(m.env->mem) - held));
  assert_true(gave_way(&m) > ROUNDS / 4);
  assert_int_equal(m.jit->book.count, numbers);
  if (!KILN_ASAN) assert_true(kiln_mem_bytes(m.env->mem) <= held + 4096);
  model_close(&m);
}

/* A renewal that cannot get memory leaves the variant where it was. */
static void test_memory_runs_out(void **state) {
  (void)state;
  model m;
  model_open(&m, GRAPH_CHAIN,
             (const char *[]){"codegen=eval", "fusion_strategy=STATIC,2", "code_cache=0", NULL});
  for (int64_t rows = 4; rows <= 5; rows++) call_shape(&m, rows, 8, 3);
  kiln_ivalue args[2] = {make_matrix(&m, 6, 8, 0.01), make_matrix(&m, 6, 8, 0.02)};
  check_call(&m, args, 2);
  bool failed = true;
  for (uint64_t n = 1; failed && n < 4000; n += n < 64 ? 1 : 5) {
    for (int i = 0; i < 3; i++) {
      pass_time(&m);
      kiln_ivalue result = kiln_none();
      (void)kiln_mem_fail_at(m.env->mem, n);
      kiln_call_begin(m.call, NULL);
      kiln_status *status = kiln_jit_call(m.jit, m.call, m.function, args, 2, &result);
      failed = kiln_mem_fail_at(m.env->mem, 0) >= n;
      if (status) assert_int_equal(kiln_status_code(status), KILN_OUT_OF_MEMORY);
      kiln_status_destroy(status);
      kiln_ivalue_release(result);
      check_call(&m, args, 2);
    }
    if (gave_way(&m) > 0) break;
  }
  assert_true(gave_way(&m) > 0);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
  model_close(&m);
}

/* -- Renewals that come to nothing -- */

static struct hook {
  const char *words; /* of a line of the log, at which the job's memory ends; NULL: never */
  const kiln_executor *region; /* or: others are asked there whether they want the lock */
  kiln_call *other;
  int asked;
} hook;

static void on_line(void *user, const char *channel, int level, const char *line) {
  (void)user, (void)channel, (void)level;
  if (!hook.words || !strstr(line, hook.words)) return;
  if (!hook.region) {
    kiln_budget_current()->bytes = 1;
    return;
  }
  hook.asked++;
  assert_false(kiln__renewal_wants(hook.region, hook.other));
}

/* Two static levels, both used, and a window that has ended; what the log tells goes to the hook.
 */
static kiln_executor *open_used_up(model *m) {
  hook = (struct hook){0};
  model_open(m, GRAPH_CHAIN,
             (const char *[]){"codegen=eval", "fusion_strategy=STATIC,2", "code_cache=0", NULL});
  kiln_jit_destroy(m->jit);
  m->env->log.callback = on_line;
  m->env->log.level[KILN_LOG_compile] = 1;
  m->env->log.level[KILN_LOG_profile] = 2;
  assert_ok(kiln_jit_create(m->env, &m->env->flags, m->unit, m->codegen, &m->jit));
  for (int64_t rows = 4; rows <= 5; rows++) call_shape(m, rows, 8, 3);
  call_shape(m, 6, 8, 1);
  pass_time(m);
  return m->jit->now->executors.last;
}

/* A call that lends the compiler memory, so that a job which needs more may be tried again. */
static void call_limited(model *m, int64_t rows) {
  kiln_ivalue args[2] = {make_matrix(m, rows, 8, 0.01), make_matrix(m, rows, 8, -0.02)}, result;
  const kiln_limits limits = {.bytes = 1 << 30};
  kiln_call_begin(m->call, &limits);
  assert_ok(kiln_jit_call(m->jit, m->call, m->function, args, 2, &result));
  kiln_ivalue want = call_plain(m, args, 2);
  assert_close(result, want);
  kiln_ivalue_release(want);
  kiln_ivalue_release(result);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(args[i]);
}

/* The job of the instrumented plan, or of the new variant, runs out of its budget twice, and is
 * tried again by the next call that wants it; what the tries took counts. */
static void test_renewal_is_tried_again(void **state) {
  (void)state;
  static const char *const lines[] = {"SIMPLE -> EMPTY", "forward/"};
  const uint64_t hour = UINT64_C(3600) * 1000 * 1000 * 1000;
  for (int i = 0; i < 2; i++) {
    model m;
    kiln_executor *region = open_used_up(&m);
    if (i == 1) call_limited(&m, 6); /* is recorded */
    hook.words = lines[i];
    for (int tries = 1; tries < 3; tries++) {
      if (i == 0 && tries == 2) hook.words = "forward/";
      call_limited(&m, 6);
      assert_int_equal(region->tries, i == 0 ? 1 : tries);
      assert_non_null(region->victim);
      assert_true(region->recording);
      if (tries == 1) region->level_ns += hour;
    }
    hook.words = NULL;
    for (int k = 0; k < 2; k++) call_limited(&m, 6);
    assert_true(region->level_ns > hour);
    assert_null(region->victim);
    assert_int_equal(gave_way(&m), 1);
    model_close(&m);
  }
}

/* Out of its budget for the third time it is given up: the old variant stays, nothing is left of
 * the new one, and a later window may try again. */
static void test_renewal_is_given_up(void **state) {
  (void)state;
  enum { ROUNDS = 8 };
  model m;
  size_t held = 0;
  kiln_executor *region = open_used_up(&m);
  for (int round = 0; round < ROUNDS; round++) {
    call_limited(&m, 6);
    hook.words = "forward/";
    for (int tries = 0; tries < KILN__MAX_TRIES; tries++) call_limited(&m, 6);
    hook.words = NULL;
    assert_null(region->victim);
    assert_null(region->building);
    assert_int_equal(region->tries, 0);
    assert_int_equal(region->state, KILN_EXECUTOR_SIMPLE);
    assert_int_equal(gave_way(&m), 0);
    for (int64_t rows = 4; rows <= 5; rows++) call_shape(&m, rows, 8, 1);
    for (int i = 0; i < 4; i++) call_limited(&m, 6); /* more than its victim has */
    pass_time(&m);
    if (round == ROUNDS / 2) held = kiln_mem_bytes(m.env->mem);
  }
  if (!KILN_ASAN) assert_true(kiln_mem_bytes(m.env->mem) <= held);
  for (int i = 0; i < 3; i++) call_limited(&m, 6);
  assert_int_equal(gave_way(&m), 1);
  model_close(&m);
}

/* Who comes while the new variant is compiled is served by the interpreter, and does not wait. */
static void test_others_need_not_wait(void **state) {
  (void)state;
  model m;
  kiln_executor *region = open_used_up(&m);
  kiln_call *other;
  assert_ok(kiln_call_create(m.env, &other));
  call_limited(&m, 6);
  assert_true(kiln__renewal_wants(region, other)); /* to be recorded */
  hook = (struct hook){.words = "forward/", .region = region, .other = other};
  call_limited(&m, 6);
  assert_true(hook.asked > 0);
  assert_int_equal(gave_way(&m), 1);
  kiln_call_destroy(other);
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_equal_by_accident),       cmocka_unit_test(test_one_by_accident),
      cmocka_unit_test(test_crossing_strides),        cmocka_unit_test(test_misses_tell_symbols),
      cmocka_unit_test(test_torch_remembers_nothing), cmocka_unit_test(test_many_levels),
      cmocka_unit_test(test_least_used_gives_way),    cmocka_unit_test(test_late_one_is_found),
      cmocka_unit_test(test_first_of_a_region),       cmocka_unit_test(test_regions_in_a_variant),
      cmocka_unit_test(test_what_is_used_stays),      cmocka_unit_test(test_windows_grow),
      cmocka_unit_test(test_memory_is_flat),          cmocka_unit_test(test_memory_runs_out),
      cmocka_unit_test(test_renewal_is_tried_again),  cmocka_unit_test(test_renewal_is_given_up),
      cmocka_unit_test(test_others_need_not_wait),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
