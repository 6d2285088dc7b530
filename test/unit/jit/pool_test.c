/* pool_test.c: random pools and pictures of other sizes as groups of their own: their bits are the
 * plain interpreter's. Seeds are fixed. */
#include "test/unit/jit/jit_support.h"

enum { AXES = 3 };

typedef struct pool {
  uint64_t seed;
  int spatial, rank;
  int64_t sizes[AXES + 2];
  char graph[2048];
} pool;

static int draw(pool *p, int below) {
  p->seed = kiln_hash_mix(p->seed, 7);
  return (int)(p->seed % (uint64_t)below);
}

/* A list of constants, of which the name is the value's. */
static void put_list(kiln_text *text, const char *name, const int *items, int count) {
  for (int i = 0; i < count; i++)
    kiln_text_printf(text, "  %%%s%d : int = prim::Constant[value=%d]()\n", name, i, items[i]);
  kiln_text_printf(text, "  %%%s : int[] = prim::ListConstruct(", name);
  for (int i = 0; i < count; i++) kiln_text_printf(text, "%s%%%s%d", i ? ", " : "", name, i);
  kiln_text_puts(text, ")\n");
}

/* Of windows: kernel_size, stride, padding, and dilation where it is one of maxima. */
static void put_windows(pool *p, kiln_text *text, bool is_max) {
  int k[AXES], step[AXES], pad[AXES], apart[AXES];
  for (int d = 0; d < p->spatial; d++) {
    k[d] = 1 + draw(p, p->spatial == 3 ? 2 : 3);
    if (draw(p, 8) == 0) k[d] = (int)p->sizes[p->rank - p->spatial + d];
    step[d] = 1 + draw(p, 3);
    pad[d] = draw(p, k[d] / 2 + 1);
    apart[d] = is_max ? 1 + draw(p, 4) / 3 : 1;
  }
  put_list(text, "k", k, p->spatial);
  put_list(text, "s", step, draw(p, 4) ? p->spatial : 0);
  put_list(text, "p", pad, p->spatial);
  if (is_max) put_list(text, "a", apart, p->spatial);
  kiln_text_printf(text, "  %%ceil : bool = prim::Constant[value=%d]()\n", draw(p, 3) == 0);
}
static void put_call(pool *p, kiln_text *text) {
  const int kind = draw(p, 5), n = p->spatial;
  int out[AXES];
  if (kind < 2) {
    put_windows(p, text, true);
    if (kind == 1)
      kiln_text_printf(text, "  %%y : Tensor, %%i : Tensor = aten::max_pool%dd_with_indices", n);
    else
      kiln_text_printf(text, "  %%y : Tensor = aten::max_pool%dd", n);
    kiln_text_puts(text, "(%x, %k, %s, %p, %a, %ceil)\n");
  } else if (kind == 2) {
    put_windows(p, text, false);
    kiln_text_printf(text, "  %%count : bool = prim::Constant[value=%d]()\n", draw(p, 2));
    if (draw(p, 3))
      kiln_text_puts(text, "  %by : NoneType = prim::Constant()\n");
    else
      kiln_text_puts(text, "  %by : int = prim::Constant[value=3]()\n");
    kiln_text_printf(text,
                     "  %%y : Tensor = aten::avg_pool%dd(%%x, %%k, %%s, %%p, %%ceil, %%count%s", n,
                     n > 1 ? ", %by)\n" : ")\n");
  } else {
    for (int d = 0; d < n; d++) out[d] = 1 + draw(p, 4);
    put_list(text, "o", out, n);
    if (kind == 3)
      kiln_text_printf(text, "  %%y : Tensor = aten::adaptive_avg_pool%dd(%%x, %%o)\n", n);
    else
      kiln_text_printf(text,
                       "  %%y : Tensor, %%i : Tensor = aten::adaptive_max_pool%dd(%%x, %%o)\n", n);
  }
  const bool two = kind == 1 || kind == 4;
  kiln_text_printf(text, "  %%z : Tensor = aten::neg(%%y)\n  return (%%z%s)\n", two ? ", %i" : "");
}

/* By sizes or by factors. */
static void put_upsample(pool *p, kiln_text *text) {
  static const char *const names[][2] = {{"upsample_linear1d", "upsample_nearest1d"},
                                         {"upsample_bilinear2d", "upsample_nearest2d"},
                                         {"upsample_trilinear3d", "_upsample_nearest_exact3d"}};
  static const double factors[] = {1, 2, 3, 0.5, 1.7, 0.3};
  const int n = p->spatial, near = draw(p, 2), by_size = draw(p, 2);
  const char *name = names[n - 1][near];
  int out[AXES];
  if (n == 2 && near && draw(p, 3) == 0) name = "_upsample_nearest_exact2d";
  for (int d = 0; d < n; d++) out[d] = 1 + draw(p, 12);
  if (by_size) put_list(text, "o", out, n);
  if (!by_size) kiln_text_puts(text, "  %o : NoneType = prim::Constant()\n");
  for (int d = 0; d < n; d++)
    kiln_text_printf(text, "  %%f%d : float = prim::Constant[value=%f]()\n", d,
                     factors[draw(p, 6)] * (double)(by_size ? 0 : 1));
  kiln_text_puts(text, "  %f : float[] = prim::ListConstruct(");
  for (int d = 0; d < n; d++) kiln_text_printf(text, "%s%%f%d", d ? ", " : "", d);
  kiln_text_printf(text,
                   ")\n  %%none : NoneType = prim::Constant()\n"
                   "  %%align : bool = prim::Constant[value=%d]()\n",
                   draw(p, 2));
  kiln_text_printf(text, "  %%y : Tensor = aten::%s(%%x, %%o%s, %s)\n", name,
                   near ? "" : ", %align", by_size ? "%none" : "%f");
  kiln_text_puts(text, "  %z0 : Tensor = aten::neg(%y)\n"); /* with few others it has no group */
  for (int i = 1; i < 5; i++)
    kiln_text_printf(text, "  %%z%d : Tensor = aten::neg(%%z%d)\n", i, i - 1);
  kiln_text_puts(text, "  return (%z4)\n");
}

static void make_pool(pool *p, kiln_mem *mem, bool upsamples) {
  kiln_arena *arena;
  assert_ok(kiln_arena_create(mem, &arena));
  kiln_text text = kiln_text_in(arena);
  p->spatial = 1 + draw(p, AXES);
  p->rank = p->spatial + 1 + (upsamples ? 1 : draw(p, 2));
  for (int d = 0; d < p->rank; d++) p->sizes[d] = 1 + draw(p, d < p->rank - p->spatial ? 3 : 9);
  kiln_text_puts(&text, "graph(%x : Tensor):\n");
  (upsamples ? put_upsample : put_call)(p, &text);
  snprintf(p->graph, sizeof p->graph, "%s", text.data);
  kiln_arena_destroy(arena);
}

static kiln_status *try_call(model *m, const kiln_ivalue *args, bool jit, kiln_ivalue *out) {
  *out = kiln_none();
  kiln_call_begin(m->call, NULL);
  m->call->jit = jit;
  kiln_status *status = kiln_jit_call(m->jit, m->call, m->function, args, 1, out);
  m->call->jit = true;
  return status;
}

static void assert_same(const pool *p, kiln_ivalue got, kiln_ivalue want) {
  if (got.tag == KILN_TAG_TUPLE) {
    for (int64_t i = 0; i < want.u.tuple->count; i++)
      assert_same(p, got.u.tuple->items[i], want.u.tuple->items[i]);
    return;
  }
  const kiln_tensor *a = got.u.tensor, *b = want.u.tensor;
  assert_int_equal(a->numel, b->numel);
  for (int64_t i = 0; i < a->numel; i++) {
    const size_t item = kiln_tensor_item_size(a);
    const char *x = (const char *)kiln_tensor_data(a) + (size_t)i * item;
    const char *y = (const char *)kiln_tensor_data(b) + (size_t)i * item;
    const float *f = (const float *)(const void *)x, *g = (const float *)(const void *)y;
    const bool nans = item == 4 && isnan(*f) && isnan(*g);
    if (!nans && memcmp(x, y, item) != 0) fail_msg("element %d of\n%s", (int)i, p->graph);
  }
}

/* Some elements are equal, zeros of both signs, infinite or no numbers. */
static kiln_ivalue make_input(pool *p, model *m) {
  static const float special[] = {0.0f, -0.0f, 1, INFINITY, -INFINITY, NAN};
  kiln_ivalue x = make_tensor(m, p->rank, p->sizes, 0.01);
  float *data = x.u.tensor->storage->data;
  const bool odd = draw(p, 2);
  for (int64_t i = 0; odd && i < x.u.tensor->numel; i++)
    if (draw(p, 4) == 0) data[i] = special[draw(p, 6)];
  return x;
}

/* Whether it was a group's. */
static bool run_pool(uint64_t seed, const char *codegen, bool upsamples) {
  static const char *const strategies[] = {"fusion_strategy=STATIC,2", "fusion_strategy=DYNAMIC,2"};
  pool p = {.seed = seed};
  model m;
  kiln_env *env;
  assert_ok(kiln_env_create(NULL, &env));
  make_pool(&p, env->mem, upsamples);
  kiln_env_destroy(env);
  model_open(&m, p.graph, (const char *[]){codegen, strategies[seed % 2], NULL});
  for (int i = 0; i < 6; i++) {
    kiln_ivalue x = make_input(&p, &m), got, want;
    kiln_status *status = try_call(&m, &x, false, &want), *same = try_call(&m, &x, true, &got);
    assert_true(!status == !same);
    if (!status) assert_same(&p, got, want);
    kiln_status_destroy(status);
    kiln_status_destroy(same);
    kiln_ivalue_release(x);
    kiln_ivalue_release(got);
    kiln_ivalue_release(want);
    for (int d = p.rank - p.spatial; i > 1 && d < p.rank; d++) p.sizes[d] = 1 + draw(&p, 12);
  }
  assert_int_equal(counters(&m).compile_failures, 0);
  const bool compiled = counters(&m).compiled_runs > 0;
  model_close(&m);
  return compiled;
}

static void run_pools(const char *codegen, int count, bool upsamples) {
  int compiled = 0;
  for (int i = 1; i <= count; i++) compiled += run_pool((uint64_t)i * 977, codegen, upsamples);
  assert_true(compiled > count / 2);
}
static void test_eval(void **state) {
  (void)state;
  run_pools("codegen=eval", 600, false);
}
static void test_llvm(void **state) {
  (void)state;
  run_pools("codegen=llvm", 12, false);
}
static void test_upsample_eval(void **state) {
  (void)state;
  run_pools("codegen=eval", 400, true);
}
static void test_upsample_llvm(void **state) {
  (void)state;
  run_pools("codegen=llvm", 12, true);
}

/* Where no element moves, the result is new memory all the same. */
static void test_new_memory(void **state) {
  (void)state;
  static const char *const calls[] = {"aten::pixel_shuffle(%x, %1)",
                                      "aten::repeat_interleave(%x, %1, %1, %none)"};
  const int64_t sizes[] = {2, 3, 4};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    char graph[512];
    model m;
    snprintf(graph, sizeof graph,
             "graph(%%x : Tensor):\n  %%1 : int = prim::Constant[value=1]()\n"
             "  %%none : NoneType = prim::Constant()\n  %%y : Tensor = %s\n  return (%%y)\n",
             calls[i]);
    model_open(&m, graph, (const char *[]){"codegen=eval", "min_group_size=1", NULL});
    kiln_ivalue x = make_tensor(&m, 3, sizes, 0.01);
    for (int n = 0; n < 3; n++) {
      kiln_ivalue y = n ? call_model(&m, &x, 1) : call_plain(&m, &x, 1);
      assert_true(y.u.tensor->storage != x.u.tensor->storage);
      assert_close(y, x);
      kiln_ivalue_release(y);
    }
    kiln_ivalue_release(x);
    model_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_eval), cmocka_unit_test(test_llvm),
                                     cmocka_unit_test(test_upsample_eval),
                                     cmocka_unit_test(test_upsample_llvm),
                                     cmocka_unit_test(test_new_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
