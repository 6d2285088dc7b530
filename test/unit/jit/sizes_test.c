/* sizes_test.c: what is computed of x.size() is known where x is guarded: views of such sizes are
 * proven, so that one guard is enough for all that follows, for numbers and for symbols. */
#include "test/unit/jit/jit_support.h"

static const char *const strategies[] = {"fusion_strategy=STATIC,8",
                                         "fusion_strategy=STATIC,1;DYNAMIC,3"};

#define CONSTANTS                              \
  "  %0 : int = prim::Constant[value=0]()\n"   \
  "  %1 : int = prim::Constant[value=1]()\n"   \
  "  %2 : int = prim::Constant[value=2]()\n"   \
  "  %4 : int = prim::Constant[value=4]()\n"   \
  "  %m1 : int = prim::Constant[value=-1]()\n" \
  "  %m2 : int = prim::Constant[value=-2]()\n" \
  "  %none : NoneType = prim::Constant()\n"    \
  "  %no : bool = prim::Constant[value=0]()\n"

/* Four heads; then again the sizes of x, which no group reads before that. */
static const char attention[] =
    "graph(%x : Tensor, %w : Tensor):\n" CONSTANTS "  %all : int[] = aten::size(%x)\n"
    "  %b : int, %t : int, %c : int = prim::ListUnpack(%all)\n"
    "  %d : int = aten::floordiv(%c, %4)\n"
    "  %i : Tensor = aten::matmul(%x, %w)\n"
    "  %j : Tensor = aten::tanh(%i)\n"
    "  %k : Tensor = aten::mul(%j, %i)\n"
    "  %l : Tensor = aten::matmul(%k, %w)\n"
    "  %s : int[] = prim::ListConstruct(%b, %t, %4, %d)\n"
    "  %v : Tensor = aten::view(%l, %s)\n"
    "  %h : Tensor = aten::transpose(%v, %1, %2)\n"
    "  %g : Tensor = aten::transpose(%h, %m1, %m2)\n"
    "  %a : Tensor = aten::matmul(%h, %g)\n"
    "  %e : Tensor = aten::mul(%a, %a)\n"
    "  %p : Tensor = aten::softmax(%e, %m1, %none)\n"
    "  %o : Tensor = aten::matmul(%p, %h)\n"
    "  %q : Tensor = aten::transpose(%o, %1, %2)\n"
    "  %n : Tensor = aten::contiguous(%q, %0)\n"
    "  %bt : int = aten::mul(%b, %t)\n"
    "  %u : int[] = prim::ListConstruct(%bt, %m1)\n"
    "  %f : Tensor = aten::view(%n, %u)\n"
    "  %z : Tensor = aten::matmul(%f, %w)\n"
    "  %y : Tensor = aten::sigmoid(%z)\n"
    "  %r : Tensor = aten::mul(%y, %z)\n"
    "  return (%r)\n";

static void test_one_guard(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    model m;
    model_open(&m, attention, (const char *[]){"codegen=eval", strategies[i], NULL});
    for (int64_t n = 2; n < 7; n++) {
      kiln_ivalue args[2] = {make_tensor(&m, 3, (int64_t[]){n, n + 7, 16}, 0.01),
                             make_matrix(&m, 16, 16, 0.02)};
      for (int call = 0; call < 3; call++) {
        const kiln_counters before = counters(&m);
        check_call(&m, args, 2);
        if (call < 2) continue;
        assert_int_equal(counters(&m).compiled_runs, before.compiled_runs + 3);
        assert_int_equal(counters(&m).guard_hits, before.guard_hits + 1);
      }
      for (int k = 0; k < 2; k++) kiln_ivalue_release(args[k]);
    }
    assert_int_equal(counters(&m).groups, i == 0 ? 15 : 6);
    model_close(&m);
  }
}

/* A write between x.size() and the guard, which makes [3, 5] of [5, 3]: the number is x's of
 * before. */
static const char written[] =
    "graph(%x : Tensor):\n" CONSTANTS "  %c : Tensor = aten::clone(%x, %none)\n"
    "  %n : int = aten::size(%c, %0)\n"
    "  %t : Tensor = aten::t_(%c)\n"
    "  %a : Tensor = aten::mul(%c, %c)\n"
    "  %b : Tensor = aten::tanh(%a)\n"
    "  %d : Tensor = aten::cumsum(%b, %0, %none)\n"
    "  %s : int[] = prim::ListConstruct(%n, %m1)\n"
    "  %v : Tensor = aten::reshape(%d, %s)\n"
    "  %e : Tensor = aten::mul(%v, %v)\n"
    "  %f : Tensor = aten::softmax(%e, %m1, %none)\n"
    "  return (%f)\n";

static void test_sizes_before_a_write(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    model m;
    model_open(&m, written, (const char *[]){"codegen=eval", strategies[i], NULL});
    for (int64_t n = 2; n < 7; n++) {
      kiln_ivalue x = make_matrix(&m, n, n + 2, 0.01);
      for (int call = 0; call < 3; call++) check_call(&m, &x, 1);
      kiln_ivalue_release(x);
    }
    assert_true(counters(&m).compiled_runs > 0);
    model_close(&m);
  }
}

/* z has as many columns as x and y have together. Nothing but the operator says it: the guard asks
 * for it, and one kernel serves all such sizes. */
static const char related[] = "graph(%x : Tensor, %y : Tensor, %z : Tensor):\n" CONSTANTS
                              "  %l : Tensor[] = prim::ListConstruct(%x, %y)\n"
                              "  %c : Tensor = aten::cat(%l, %1)\n"
                              "  %a : Tensor = aten::add(%c, %z, %1)\n"
                              "  %b : Tensor = aten::tanh(%a)\n"
                              "  return (%b)\n";

static void call_related(model *m, int64_t rows, int64_t x, int64_t y, int64_t z) {
  kiln_ivalue args[3] = {make_matrix(m, rows, x, 0.01), make_matrix(m, rows, y, -0.02),
                         make_matrix(m, rows, z, 0.03)};
  check_call(m, args, 3);
  for (int i = 0; i < 3; i++) kiln_ivalue_release(args[i]);
}

static void test_relations(void **state) {
  (void)state;
  model m;
  model_open(&m, related, (const char *[]){"codegen=eval", "fusion_strategy=DYNAMIC,2", NULL});
  for (int i = 0; i < 2; i++) call_related(&m, 2, 5, 7, 12);
  const uint64_t runs = counters(&m).compiled_runs;
  for (int64_t n = 2; n < 9; n++) call_related(&m, n, n + 3, 3 * n, 4 * n + 3);
  assert_int_equal(counters(&m).groups, 1);
  assert_int_equal(counters(&m).guard_misses, 0);
  assert_int_equal(counters(&m).compiled_runs, runs + 7);
  call_related(&m, 3, 5, 7, 1); /* which is broadcast */
  assert_int_equal(counters(&m).guard_misses, 1);
  model_close(&m);
}

/* n // 4 * 4 + n % 4 is n, and all is one region; by another size nothing is known. */
static const char divided[] = "graph(%x : Tensor):\n" CONSTANTS "  %a : Tensor = aten::tanh(%x)\n"
                              "  %c : Tensor = aten::mul(%a, %x)\n"
                              "  %b : int = aten::size(%c, %0)\n"
                              "  %n : int = aten::size(%c, %1)\n"
                              "  %d : int = aten::floordiv(%n, %4)\n"
                              "  %q : int = aten::mul(%d, %4)\n"
                              "  %r : int = aten::remainder(%n, %4)\n"
                              "  %t : int = aten::add(%q, %r)\n"
                              "  %s : int[] = prim::ListConstruct(%b, %t)\n"
                              "  %v : Tensor = aten::view(%c, %s)\n"
                              "  %e : Tensor = aten::exp(%v)\n"
                              "  %k : int = aten::remainder(%n, %b)\n"
                              "  %f : Tensor = aten::mul(%e, %k)\n"
                              "  return (%f)\n";

static void test_divided(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    model m;
    model_open(&m, divided, (const char *[]){"codegen=eval", strategies[i], NULL});
    for (int64_t n = 2; n < 7; n++) {
      kiln_ivalue x = make_matrix(&m, n, n + 3, 0.01);
      for (int call = 0; call < 3; call++) {
        const kiln_counters before = counters(&m);
        check_call(&m, &x, 1);
        if (call == 2) assert_int_equal(counters(&m).guard_hits, before.guard_hits + 1);
      }
      kiln_ivalue_release(x);
    }
    assert_true(counters(&m).compiled_runs > 0);
    model_close(&m);
  }
}

/* Of 2 rows none is left: the interpreter has the complaint, whatever kernels others have. */
static void test_no_rows_left(void **state) {
  (void)state;
  static const char before[] =
      "graph(%x : Tensor):\n" CONSTANTS "  %dims : int[] = prim::ListConstruct(%0)\n"
      "  %a : Tensor = aten::mul(%x, %x)\n"
      "  %b : Tensor = aten::slice(%a, %0, %2, %none, %1)\n"
      "  %c : Tensor = aten::";
  static const char *const reductions[] = {"amax(%b, %dims, %no", "amin(%b, %dims, %no",
                                           "argmax(%b, %0, %no", "argmin(%b, %0, %no"};
  for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++) {
    char text[2048];
    model m;
    snprintf(text, sizeof text, "%s%s)\n  %%d : Tensor = aten::neg(%%c)\n  return (%%d)\n", before,
             reductions[i]);
    model_open(&m, text, (const char *[]){"codegen=eval", "fusion_strategy=DYNAMIC,4", NULL});
    for (int call = 0; call < 8; call++) {
      kiln_ivalue x = make_matrix(&m, call == 7 ? 2 : 3 + call % 4, 5, 0.1);
      if (call < 7) {
        check_call(&m, &x, 1);
      } else {
        kiln_ivalue out = kiln_none();
        kiln_call_begin(m.call, NULL);
        assert_error(kiln_jit_call(m.jit, m.call, m.function, &x, 1, &out), KILN_OP_ERROR, "dim 0");
      }
      kiln_ivalue_release(x);
    }
    model_close(&m);
  }
}

/* Of 2 columns none is left: what is joined of none is empty. */
static void test_no_columns_left(void **state) {
  (void)state;
  static const char *const ends[] = {"stack(%l, %0", "cat(%l, %0"};
  static const char *const codegens[] = {"codegen=eval", "codegen=llvm"};
  for (int i = 0; i < 4; i++) {
    char text[2048];
    model m;
    snprintf(text, sizeof text,
             "graph(%%x : Tensor):\n%s"
             "  %%a : Tensor = aten::slice(%%x, %%1, %%2, %%none, %%1)\n"
             "  %%l : Tensor[] = prim::ListConstruct(%%a, %%a)\n"
             "  %%b : Tensor = aten::%s)\n"
             "  %%c : Tensor = aten::neg(%%b)\n"
             "  return (%%c)\n",
             CONSTANTS, ends[i / 2]);
    model_open(&m, text, (const char *[]){codegens[i % 2], "fusion_strategy=DYNAMIC,4", NULL});
    for (int call = 0; call < 9; call++) {
      kiln_ivalue x = make_matrix(&m, 3 + call % 4, call < 7 ? 4 + call % 3 : 2, 0.1);
      check_call(&m, &x, 1);
      kiln_ivalue_release(x);
    }
    if (counters(&m).compiled_runs == 0) fail_msg("%s: no kernel ran", ends[i / 2]);
    model_close(&m);
  }
}

/* A block of a GPT: the causal mask is cut to the length, of which the guard asks that it is at
 * most the mask's. One region, with one guard; a longer input is refused by the interpreter. */
static const char block[] = "graph(%x : Tensor, %w : Tensor, %mask : Tensor):\n" CONSTANTS
                            "  %inf : float = prim::Constant[value=-1000.0]()\n"
                            "  %i : Tensor = aten::matmul(%x, %w)\n"
                            "  %j : Tensor = aten::tanh(%i)\n"
                            "  %l : Tensor = aten::mul(%j, %i)\n"
                            "  %all : int[] = aten::size(%l)\n"
                            "  %b : int, %t : int, %c : int = prim::ListUnpack(%all)\n"
                            "  %d : int = aten::floordiv(%c, %4)\n"
                            "  %s : int[] = prim::ListConstruct(%b, %t, %4, %d)\n"
                            "  %v : Tensor = aten::view(%l, %s)\n"
                            "  %h : Tensor = aten::transpose(%v, %1, %2)\n"
                            "  %g : Tensor = aten::transpose(%h, %m1, %m2)\n"
                            "  %a : Tensor = aten::matmul(%h, %g)\n"
                            "  %m3 : Tensor = aten::slice(%mask, %2, %none, %t, %1)\n"
                            "  %m4 : Tensor = aten::slice(%m3, %m1, %none, %t, %1)\n"
                            "  %k : Tensor = aten::eq(%m4, %0)\n"
                            "  %e : Tensor = aten::masked_fill(%a, %k, %inf)\n"
                            "  %p : Tensor = aten::softmax(%e, %m1, %none)\n"
                            "  %o : Tensor = aten::matmul(%p, %h)\n"
                            "  %q : Tensor = aten::transpose(%o, %1, %2)\n"
                            "  %n : Tensor = aten::contiguous(%q, %0)\n"
                            "  %u : int[] = prim::ListConstruct(%b, %t, %c)\n"
                            "  %f : Tensor = aten::view(%n, %u)\n"
                            "  %z : Tensor = aten::matmul(%f, %w)\n"
                            "  %y : Tensor = aten::sigmoid(%z)\n"
                            "  %r : Tensor = aten::mul(%y, %z)\n"
                            "  return (%r)\n";

static kiln_ivalue make_mask(model *m, int64_t size) {
  kiln_ivalue mask = make_tensor(m, 4, (int64_t[]){1, 1, size, size}, 1);
  float *data = mask.u.tensor->storage->data;
  for (int64_t i = 0; i < size; i++)
    for (int64_t k = 0; k < size; k++) data[i * size + k] = k <= i;
  return mask;
}

static void test_cut_mask(void **state) {
  (void)state;
  static const char *const codegens[] = {"codegen=eval", "codegen=llvm"};
  for (int i = 0; i < 2; i++) {
    model m;
    model_open(&m, block,
               (const char *[]){codegens[i], "fusion_strategy=STATIC,1;DYNAMIC,3", NULL});
    kiln_counters settled = {0};
    for (int64_t n = 2; n <= 24; n++) {
      kiln_ivalue args[3] = {make_tensor(&m, 3, (int64_t[]){2 + n % 3, n, 16}, 0.01),
                             make_matrix(&m, 16, 16, 0.02), make_mask(&m, 24)};
      for (int call = 0; call < 3; call++) {
        const kiln_counters before = counters(&m);
        check_call(&m, args, 3);
        if (n > 3) assert_int_equal(counters(&m).guard_hits, before.guard_hits + 1);
      }
      if (n == 3) settled = counters(&m);
      for (int k = 0; k < 3; k++) kiln_ivalue_release(args[k]);
    }
    assert_int_equal(counters(&m).groups, settled.groups);
    kiln_ivalue args[3] = {make_tensor(&m, 3, (int64_t[]){2, 25, 16}, 0.01),
                           make_matrix(&m, 16, 16, 0.02), make_mask(&m, 24)},
                out = kiln_none();
    kiln_guard_miss miss = {0};
    kiln_call_begin(m.call, NULL);
    kiln_status *status = kiln_jit_call(m.jit, m.call, m.function, args, 3, &out);
    assert_error(status, KILN_OP_ERROR, "24");
    for (int k = 0; kiln_jit_guard_miss_at(m.jit, k, &miss); k++) continue;
    assert_non_null(strstr(miss.seen, "whose size(1) is not within s1 <= 24"));
    for (int k = 0; k < 3; k++) kiln_ivalue_release(args[k]);
    char *text = dump_stage(&m, KILN_JIT_STAGE_OPTIMIZED, NULL);
    assert_non_null(strstr(text, "where=\"s1 <= 24\""));
    free(text);
    model_close(&m);
  }
}

/* The first columns of what has as many: where it has fewer, all are taken. */
static const char first_columns[] =
    "graph(%x : Tensor):\n" CONSTANTS "  %a : Tensor = aten::tanh(%x)\n"
    "  %b : Tensor = aten::slice(%a, %1, %none, %4, %1)\n"
    "  %c : Tensor = aten::mul(%b, %b)\n"
    "  return (%c)\n";

static void test_first_columns(void **state) {
  (void)state;
  static const char *const codegens[] = {"codegen=eval", "codegen=llvm"};
  for (int i = 0; i < 2; i++) {
    model m;
    model_open(&m, first_columns, (const char *[]){codegens[i], "fusion_strategy=DYNAMIC,4", NULL});
    for (int64_t n = 9; n >= 4; n--) {
      kiln_ivalue x = make_matrix(&m, n + 3, n, 0.01);
      for (int call = 0; call < 3; call++) check_call(&m, &x, 1);
      kiln_ivalue_release(x);
    }
    assert_int_equal(counters(&m).groups, 1);
    assert_int_equal(counters(&m).guard_misses, 0);
    for (int64_t n = 3; n > 0; n--) {
      kiln_ivalue x = make_matrix(&m, 5, n, 0.01);
      for (int call = 0; call < 3; call++) check_call(&m, &x, 1);
      kiln_ivalue_release(x);
    }
    assert_true(counters(&m).guard_misses > 0);
    model_close(&m);
  }
}

/* No rows of one element: of equal strides the greater size is the outer one, as in PyTorch. */
static void test_strides_of_nothing(void **state) {
  (void)state;
  static const char cut[] = "graph(%x : Tensor, %y : Tensor):\n" CONSTANTS
                            "  %a : Tensor = aten::slice(%x, %0, %2, %none, %1)\n"
                            "  %b : Tensor = aten::neg(%a)\n"
                            "  %c : Tensor = aten::mul(%b, %y)\n"
                            "  return (%c)\n";
  for (int i = 0; i < 2; i++) {
    model m;
    model_open(&m, cut, (const char *[]){"codegen=eval", strategies[i], NULL});
    for (int call = 0; call < 8; call++) {
      kiln_ivalue args[2] = {make_matrix(&m, call < 6 ? 3 + call / 2 : 2, 1, 0.1),
                             make_matrix(&m, 1, 1, 0.2)};
      kiln_ivalue got = call_model(&m, args, 2), want = call_plain(&m, args, 2);
      assert_close(got, want);
      for (int d = 0; d < 4; d++) assert_int_equal(got.u.tensor->dims[d], want.u.tensor->dims[d]);
      if (call >= 6) assert_int_equal(kiln_tensor_strides(got.u.tensor)[1], 0);
      kiln_ivalue_release(got);
      kiln_ivalue_release(want);
      for (int k = 0; k < 2; k++) kiln_ivalue_release(args[k]);
    }
    assert_true(counters(&m).compiled_runs > 0);
    model_close(&m);
  }
}

/* Sizes of 1 among others: one kernel serves them all. */
static const char ones[] = /* x [a, b], y [a, c], z [1, c] */
    "graph(%x : Tensor, %y : Tensor, %z : Tensor):\n" CONSTANTS
    "  %u : Tensor = aten::unsqueeze(%x, %2)\n"
    "  %v : Tensor = aten::unsqueeze(%y, %1)\n"
    "  %a : Tensor = aten::mul(%u, %v)\n"
    "  %b : Tensor = aten::add(%a, %z, %1)\n"
    "  %p : Tensor = aten::softmax(%b, %m1, %none)\n"
    "  %l : int[] = prim::ListConstruct(%1)\n"
    "  %s : Tensor = aten::amax(%p, %l, %no)\n"
    "  %r : Tensor = aten::mul(%s, %y)\n"
    "  return (%r)\n";

static void test_ones(void **state) {
  (void)state;
  static const char *const codegens[] = {"codegen=eval", "codegen=llvm"};
  for (int i = 0; i < 2; i++) {
    model m;
    model_open(&m, ones, (const char *[]){codegens[i], "fusion_strategy=STATIC,1;DYNAMIC,4", NULL});
    kiln_counters before = {0};
    for (int call = 0; call < 80; call++) {
      const int64_t a = call < 4 ? 3 + call / 2 : 1 + call % 3,
                    b = call < 4 ? 5 + call / 2 : 1 + call / 3 % 3,
                    c = call < 4 ? 7 + call / 2 : 1 + call / 9 % 3;
      kiln_ivalue args[3] = {make_matrix(&m, a, b, 0.01), make_matrix(&m, a, c, -0.02),
                             make_matrix(&m, 1, c, 0.03)};
      if (call == 4) before = counters(&m);
      check_call(&m, args, 3);
      for (int k = 0; k < 3; k++) kiln_ivalue_release(args[k]);
    }
    const kiln_counters c = counters(&m);
    const uint64_t groups = before.compiled_runs / 2; /* two of the calls were compiled */
    assert_true(groups > 0);
    assert_int_equal(c.groups, before.groups);
    assert_int_equal(c.compiled_runs, before.compiled_runs + 76 * groups);
    assert_int_equal(c.max_depth, 1);
    model_close(&m);
  }
}

/* What leads to a group that is refused may lead to the next one: of %e, which is not proven, the
 * next group wants a size alone. */
static const char led[] =
    "graph(%x : Tensor, %w : Tensor, %c : Tensor, %s : Tensor):\n" CONSTANTS
    "  %y : int = aten::size(%s, %0)\n"
    "  %z : int = aten::size(%c, %0)\n"
    "  %o : int[] = prim::ListConstruct(%y, %z)\n"
    "  %p : Tensor = aten::expand(%s, %o, %no)\n"
    "  %a : Tensor = aten::div(%x, %w)\n"
    "  %n : int = aten::size(%a, %1)\n"
    "  %m : int = aten::size(%c, %1)\n"
    "  %l : int[] = prim::ListConstruct(%n, %m)\n"
    "  %e : Tensor = aten::expand(%c, %l, %no)\n"
    "  %r : int = aten::size(%e, %0)\n"
    "  %q : int = aten::size(%c, %0)\n"
    "  %k : int[] = prim::ListConstruct(%q, %r)\n"
    "  %f : Tensor = aten::expand(%p, %k, %no)\n"
    "  %b : Tensor = aten::mul(%e, %e)\n"
    "  %d : Tensor = aten::abs(%f)\n"
    "  %g : Tensor, %h : Tensor = aten::cummax(%d, %1)\n"
    "  %t : (Tensor, Tensor, Tensor, Tensor) = prim::TupleConstruct(%g, %d, %b, %f)\n"
    "  return (%t)\n";

/* Elements as they lie, `apart` numbers from each other. */
static kiln_ivalue make_apart(model *m, int rank, const int64_t *sizes, int64_t apart,
                              bool turned) {
  int64_t strides[3];
  kiln_tensor *t;
  for (int i = 0, at = 1; i < rank; i++) {
    const int d = turned ? i : rank - 1 - i;
    strides[d] = at * apart;
    at *= (int)sizes[d];
  }
  assert_ok(
      kiln_tensor_create_strided(m->env->mem, NULL, KILN_DTYPE_F32, rank, sizes, strides, &t));
  float *data = t->storage->data;
  for (size_t i = 0; i < t->storage->bytes / sizeof *data; i++) data[i] = (float)(i % 7) - 2.5f;
  return kiln_of_tensor(t);
}
static void test_led_by_refused(void **state) {
  (void)state;
  model m;
  model_open(&m, led,
             (const char *[]){"codegen=eval", "fusion_strategy=DYNAMIC,4", "verify=on",
                              "min_group_size=1", NULL});
  for (int call = 0; call < 6; call++) {
    const int64_t n = call < 2 ? 1 : 5 + call, k = call < 2 ? 1 : 3, apart = call < 3 ? 2 : 1;
    kiln_ivalue args[4] = {
        make_apart(&m, 3, (int64_t[]){call < 2 ? 7 : 3, n, k}, call == 2 ? 2 : 1, false),
        make_apart(&m, 2, (int64_t[]){n, k}, 1, false),
        make_apart(&m, 2, (int64_t[]){n, 1}, apart, false),
        make_apart(&m, 2, (int64_t[]){n, n}, 1, call == 2)};
    kiln_ivalue_release(call_model(&m, args, 4));
    for (int i = 0; i < 4; i++) kiln_ivalue_release(args[i]);
  }
  assert_int_equal(counters(&m).compile_failures, 0);
  model_close(&m);
}

/* -- What sizes do not allow -- */

/* Operators that take some sizes and complain of others, in plans for all sizes: what the plain
 * interpreter says of each. Of the first the result is not read, and it complains all the same. */
static const char *const particular[] = {
    "  %d : int = aten::size(%x, %1)\n"
    "  %h : int = aten::floordiv(%d, %2)\n"
    "  %n : int = aten::size(%x, %0)\n"
    "  %s : int[] = prim::ListConstruct(%n, %2, %h)\n"
    "  %v : Tensor = aten::reshape(%x, %s)\n"
    "  %f : Tensor = aten::fill(%v, %1)\n"
    "  %r : Tensor = aten::neg(%f)\n",
    "  %g : Tensor = aten::glu(%x, %1)\n"
    "  %r : Tensor = aten::neg(%g)\n",
    "  %p : int[] = prim::Constant[value=[4, 1, 4, 0]]()\n"
    "  %g : Tensor = aten::_pad_circular(%x, %p)\n"
    "  %r : Tensor = aten::neg(%g)\n",
    "  %p : int[] = prim::Constant[value=[3, 2]]()\n"
    "  %u : Tensor = aten::unsqueeze(%x, %0)\n"
    "  %g : Tensor = aten::reflection_pad1d(%u, %p)\n"
    "  %r : Tensor = aten::neg(%g)\n",
    "  %r : Tensor = aten::slice_scatter(%x, %x, %1, %0, %4, %1)\n",
    "  %u : Tensor = aten::unsqueeze(%x, %0)\n"
    "  %w : Tensor = aten::unsqueeze(%u, %0)\n"
    "  %g : Tensor = aten::pixel_unshuffle(%w, %2)\n"
    "  %r : Tensor = aten::neg(%g)\n",
};

static void test_what_sizes_do_not_allow(void **state) {
  (void)state;
  static const int64_t sizes[] = {8, 8, 8, 9, 10, 4, 4, 2, 3, 16, 7, 1, 6};
  for (size_t g = 0; g < sizeof particular / sizeof *particular; g++) {
    char text[2048];
    model m;
    snprintf(text, sizeof text, "graph(%%x : Tensor):\n%s%s  return (%%r)\n", CONSTANTS,
             particular[g]);
    model_open(
        &m, text,
        (const char *[]){"codegen=eval", "fusion_strategy=DYNAMIC,4", "min_group_size=1", NULL});
    int failed = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      kiln_ivalue x = make_matrix(&m, sizes[i], sizes[i], 0.01), results[2];
      kiln_status *status[2];
      for (int jit = 0; jit < 2; jit++) {
        m.call->jit = jit;
        results[jit] = kiln_none();
        kiln_call_begin(m.call, NULL);
        status[jit] = kiln_jit_call(m.jit, m.call, m.function, &x, 1, &results[jit]);
      }
      failed += status[0] != NULL;
      assert_true(!status[0] == !status[1]);
      if (status[0])
        assert_string_equal(kiln_status_message(status[0]), kiln_status_message(status[1]));
      if (!status[0]) assert_close(results[1], results[0]);
      for (int jit = 0; jit < 2; jit++) {
        kiln_ivalue_release(results[jit]);
        kiln_status_destroy(status[jit]);
      }
      kiln_ivalue_release(x);
    }
    assert_true(failed > 0);
    model_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_guard),          cmocka_unit_test(test_sizes_before_a_write),
      cmocka_unit_test(test_relations),          cmocka_unit_test(test_divided),
      cmocka_unit_test(test_no_rows_left),       cmocka_unit_test(test_no_columns_left),
      cmocka_unit_test(test_cut_mask),           cmocka_unit_test(test_first_columns),
      cmocka_unit_test(test_strides_of_nothing), cmocka_unit_test(test_ones),
      cmocka_unit_test(test_led_by_refused),     cmocka_unit_test(test_what_sizes_do_not_allow)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
