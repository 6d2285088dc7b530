/* stream_test.c: random shapes, for long, under the default strategy: nearly every call runs
 * compiled, and memory does not grow. */
#include <inttypes.h>

#include "base/sanitize.h"
#include "test/unit/jit/jit_support.h"

enum { CALLS = KILN_ASAN ? 4000 : 100000, BEGIN = 1000, MEGABYTE = 1 << 20 };
enum { SHAPES = 10, LEVELS = 2, GROUPS = 2 }; /* a static level, and one for all sizes */

#define GRAPH_MLP                                                \
  "graph(%x : Tensor, %w : Tensor, %b : Tensor, %v : Tensor):\n" \
  "  %1 : int = prim::Constant[value=1]()\n"                     \
  "  %h : Tensor = aten::matmul(%x, %w)\n"                       \
  "  %i : Tensor = aten::add(%h, %b, %1)\n"                      \
  "  %j : Tensor = aten::relu(%i)\n"                             \
  "  %k : Tensor = aten::matmul(%j, %v)\n"                       \
  "  %l : Tensor = aten::sigmoid(%k)\n"                          \
  "  %m : Tensor = aten::mul(%k, %l)\n"                          \
  "  %n : Tensor = aten::add(%m, %x, %1)\n"                      \
  "  return (%n)\n"

/* The mask has one row for all batches. */
#define GRAPH_ATTENTION                                             \
  "graph(%q : Tensor, %k : Tensor, %v : Tensor, %mask : Tensor):\n" \
  "  %1 : int = prim::Constant[value=1]()\n"                        \
  "  %last : int = prim::Constant[value=-1]()\n"                    \
  "  %before : int = prim::Constant[value=-2]()\n"                  \
  "  %none : NoneType = prim::Constant()\n"                         \
  "  %scale : float = prim::Constant[value=0.25]()\n"               \
  "  %t : Tensor = aten::transpose(%k, %last, %before)\n"           \
  "  %s : Tensor = aten::matmul(%q, %t)\n"                          \
  "  %a : Tensor = aten::mul(%s, %scale)\n"                         \
  "  %b : Tensor = aten::add(%a, %mask, %1)\n"                      \
  "  %p : Tensor = aten::softmax(%b, %last, %none)\n"               \
  "  %o : Tensor = aten::matmul(%p, %v)\n"                          \
  "  %r : Tensor = aten::add(%o, %q, %1)\n"                         \
  "  %z : Tensor = aten::tanh(%r)\n"                                \
  "  return (%z)\n"

static uint64_t draw(uint64_t *random, uint64_t below) {
  *random = kiln_hash_mix(*random, below);
  return *random % below;
}

/* Sizes that change are `least` or more. */
static void make_mlp(model *m, uint64_t *random, int64_t least, kiln_ivalue *args) {
  args[0] = make_matrix(m, least + (int64_t)draw(random, 64), 16, 0.01);
  args[1] = make_matrix(m, 16, 32, 0.01);
  args[2] = make_tensor(m, 1, (int64_t[]){32}, 0.01);
  args[3] = make_matrix(m, 32, 16, -0.01);
}

static void make_attention(model *m, uint64_t *random, int64_t least, kiln_ivalue *args) {
  const int64_t batch = least + (int64_t)draw(random, 4), rows = least + (int64_t)draw(random, 16),
                seen = least + (int64_t)draw(random, 16);
  args[0] = make_tensor(m, 3, (int64_t[]){batch, rows, 8}, 0.01);
  args[1] = make_tensor(m, 3, (int64_t[]){batch, seen, 8}, 0.02);
  args[2] = make_tensor(m, 3, (int64_t[]){batch, seen, 8}, -0.01);
  args[3] = make_tensor(m, 3, (int64_t[]){1, 1, seen}, 0.02);
}

typedef void (*make_fn)(model *m, uint64_t *random, int64_t least, kiln_ivalue *args);

/* Every 64th call is compared. A size of 1 is one like all others: no group has more than a kernel
 * of each level, and nothing is made once ten shapes were seen. */
static void run_stream(const char *graph, make_fn make) {
  model m;
  model_open(&m, graph, (const char *[]){"codegen=eval", NULL});
  uint64_t random = 1, runs = 0, most = 0, fewer = 0, made = 0, changed = 0;
  size_t held = 0, most_held = 0;
  for (int i = 0; i < CALLS; i++) {
    kiln_ivalue args[4], got;
    make(&m, &random, 1, args);
    got = call_model(&m, args, 4);
    const kiln_counters c = counters(&m);
    if (c.compiled_runs - runs > most) most = c.compiled_runs - runs;
    fewer += c.compiled_runs - runs < most;
    runs = c.compiled_runs;
    if (c.compiles + c.profiled_runs != made) changed = (uint64_t)i;
    made = c.compiles + c.profiled_runs;
    if (i % 64 == 0) {
      kiln_ivalue want = call_plain(&m, args, 4);
      assert_close(got, want);
      kiln_ivalue_release(want);
    }
    kiln_ivalue_release(got);
    for (int k = 0; k < 4; k++) kiln_ivalue_release(args[k]);
    const size_t now = kiln_mem_bytes(m.env->mem);
    if (i == BEGIN) held = now, fewer = 0;
    if (i >= BEGIN && now > most_held) most_held = now;
  }
  const kiln_counters c = counters(&m);
  printf("%d calls: %d with fewer than %d compiled runs after the first %d, %d kernels, the last "
         "change with call %d, level %d, %zd bytes more\n",
         CALLS, (int)fewer, (int)most, BEGIN, (int)c.compiles, (int)changed, (int)c.max_depth,
         (ssize_t)(most_held - held));
  assert_int_equal(c.compiles, LEVELS * GROUPS);
  assert_true(changed < SHAPES);
  assert_true(most > 0 && fewer <= (CALLS - BEGIN) / 1000);
  if (!KILN_ASAN) assert_true(most_held < held + MEGABYTE);
  model_close(&m);
}

/* The same of shapes without ones: a first level that is DYNAMIC takes these for numbers. */
static void run_settled(const char *graph, make_fn make, const char *strategy, int levels) {
  model m;
  model_open(&m, graph, (const char *[]){"codegen=eval", strategy, NULL});
  uint64_t random = 1, runs = 0, changed = 0, served = 0;
  kiln_counters before = {0};
  for (int i = 0; i < CALLS; i++) {
    kiln_ivalue args[4];
    make(&m, &random, 2, args);
    kiln_ivalue_release(call_model(&m, args, 4));
    for (int k = 0; k < 4; k++) kiln_ivalue_release(args[k]);
    const kiln_counters c = counters(&m);
    const bool same = c.compiles == before.compiles && c.profiled_runs == before.profiled_runs;
    if (!same) changed = (uint64_t)i;
    if (c.compiled_runs - runs == GROUPS) served++;
    runs = c.compiled_runs;
    before = c;
  }
  printf("%s: %d of %d calls served by kernels, %d kernels, the last change with call %d\n",
         strategy, (int)served, CALLS, (int)before.compiles, (int)changed);
  assert_true(served * 1000 >= (uint64_t)CALLS * 999);
  assert_true(changed < SHAPES);
  assert_int_equal(before.compiles, GROUPS * levels);
  model_close(&m);
}
static void test_settled(void **state) {
  (void)state;
  static const struct {
    const char *strategy;
    int levels;
  } cases[] = {{"fusion_strategy=DYNAMIC,10", 1},
               {"fusion_strategy=STATIC,1;DYNAMIC,10", 2},
               {"fusion_strategy=STATIC,2;DYNAMIC,10", 2}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_settled(GRAPH_MLP, make_mlp, cases[i].strategy, cases[i].levels);
    run_settled(GRAPH_ATTENTION, make_attention, cases[i].strategy, cases[i].levels);
  }
}

static void test_mlp(void **state) {
  (void)state;
  run_stream(GRAPH_MLP, make_mlp);
}
static void test_attention(void **state) {
  (void)state;
  run_stream(GRAPH_ATTENTION, make_attention);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_mlp), cmocka_unit_test(test_attention),
                                     cmocka_unit_test(test_settled)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
