/* lower_test.c: groups' graphs to loop IR, and what they compute. Expected values are worked out
 * here by the operators' definitions. */
#include "lower_support.h"

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

/* Chunks read at an offset. */
static void test_chunk(void **unused) {
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
      {"graph(%x : " F32("2", "1") "):\n  %y : " F32("2", "1") ", %z : " F32(
           "2", "1") " = prim::ConstantChunk[chunks=2, dim=4](%x)\n  return (%y)\n",
       KILN_REASON_raises},
      {"graph(%x : " F32(
           "4, 6", "6, 1") "):\n  %l : int[] = prim::Constant[value=[3, 8]]()\n"
                           "  %a : " F32("3, 8",
                                         "8, 1") " = aten::view(%x, %l)\n"
                                                 "  %y : " F32(
                                                     "3, 8",
                                                     "8, 1") " = aten::neg(%a)\n  return (%y)\n",
       KILN_REASON_no_affine_map},
      {"graph(%x : " F32("3, 4", "4, 1") ", %w : " F32(
           "3, 2", "2, 1") "):\n"
                           "  %one : int = prim::Constant[value=1]()\n  %no : bool = "
                           "prim::Constant[value=0]()\n"
                           "  %n : NoneType = prim::Constant()\n"
                           "  %a : " F32(
                               "3, 4",
                               "4, 1") " = aten::softmax(%x, %one, %n)\n"
                                       "  %l : Tensor[] = prim::ListConstruct(%a, %w)\n"
                                       "  %y : " F32(
                                           "3, 6",
                                           "6, 1") " = aten::cat(%l, %one)\n  return (%y)\n",
       KILN_REASON_rows_cut},
      {"graph(%x : " F32("2", "1") "):\n  %k : float = prim::Constant[value=nan]()\n  %y : " F32(
           "2", "1") " = aten::clamp_min(%x, %k)\n  return (%y)\n",
       KILN_REASON_nan},
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

/* Without a lowering the operator's entry says what it waits for. */
static void test_lacks(void **unused) {
  (void)unused;
  static const struct {
    const char *call;
    kiln_reason reason;
  } cases[] = {
      {"aten::tril(%x, %zero)", KILN_REASON_none}, {"aten::fliplr(%x)", KILN_REASON_none},
      {"aten::msort(%x)", KILN_REASON_no_order},   {"aten::lgamma(%x)", KILN_REASON_no_function},
      {"aten::neg(%x)", KILN_REASON_none},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lowered t;
    char source[512];
    snprintf(source, sizeof source,
             "graph(%%x : %s):\n  %%zero : int = prim::Constant[value=0]()\n"
             "  %%y : %s = %s\n  return (%%y)\n",
             F32("2, 3", "3, 1"), F32("2, 3", "3, 1"), cases[i].call);
    kiln_status_destroy(open_graph(&t, source));
    assert_int_equal(kiln_codegen_can_lower(t.graph->top->last), cases[i].reason);
    close_graph(&t);
  }
}

static bool gives_tensor(const kiln_op *op) {
  for (int i = 0; op->schema && i < op->schema->result_count; i++) {
    const kiln_type *type = op->schema->results[i].type;
    if (kiln_type_is_tensor(type->kind == KILN_TYPE_LIST ? type->elems[0] : type)) return true;
  }
  return false;
}
static bool writes(const kiln_op *op) {
  for (int i = 0; i < op->schema->arg_count; i++)
    if (op->schema->args[i].alias.present && op->schema->args[i].alias.is_write) return true;
  return false;
}

/* Each operator that computes a tensor, and writes to none, has a lowering or tells what it waits
 * for. */
static void test_each_lowers_or_lacks(void **unused) {
  (void)unused;
  kiln_env *env;
  kiln_registry *registry;
  assert_ok(kiln_env_create(NULL, &env));
  assert_ok(kiln_registry_create(env, &registry));
  int told = 0;
  for (int id = 0; id < KILN_OP__BUILTIN_COUNT; id++) {
    const kiln_op *op = kiln_registry_op(registry, (kiln_op_id)id);
    if (!op->kernel.body || !gives_tensor(op) || writes(op) || op->cost == KILN_COST_metadata)
      continue;
    const bool lowers = kiln_codegen_has_lowering(op);
    const bool lacks = kiln_codegen_lacks(op) != KILN_REASON_none;
    if (lowers == lacks) fail_msg("%.*s", (int)op->full_name.len, op->full_name.data);
    told++;
  }
  assert_true(told > 1000);
  kiln_registry_destroy(registry);
  kiln_env_destroy(env);
}

/* A group of operators whose results' sizes are not told serves no others: every one that lowers
 * tells them, but for these, which get kernels of numbers. */
static void test_each_tells_its_sizes(void **unused) {
  (void)unused;
  static const char silent[] =
      " ldexp.Tensor float_power.Tensor_Tensor float_power.Tensor_Scalar "
      "float_power.Scalar logaddexp2 special_xlog1py special_xlog1py.other_scalar "
      "special_xlog1py.self_scalar special_entr special_ndtr log_sigmoid_forward "
      "_prelu_kernel aminmax tensordot inner addbmm addr kron cross linalg_cross "
      "norm_except_dim dist margin_ranking_loss "
      "native_dropout_backward _reshape_alias meshgrid meshgrid.indexing split_copy.Tensor "
      "split_with_sizes_copy unbind_copy.int sum_to_size block_diag cartesian_prod "
      "_chunk_cat pad_sequence nll_loss_forward gradient.scalarint gradient.scalararray "
      "gradient.scalarrayint gradient.scalarrayarray gradient.tensorarrayint "
      "gradient.tensorarray gradient.array ";
  kiln_env *env;
  kiln_registry *registry;
  assert_ok(kiln_env_create(NULL, &env));
  assert_ok(kiln_registry_create(env, &registry));
  for (int id = 0; id < KILN_OP__BUILTIN_COUNT; id++) {
    const kiln_op *op = kiln_registry_op(registry, (kiln_op_id)id);
    char word[96];
    if (!kiln_codegen_has_lowering(op) || !op->kernel.body) continue;
    if (strncmp(op->full_name.data, "aten::", 6) != 0) continue;
    snprintf(word, sizeof word, " %.*s ", (int)op->full_name.len - 6, op->full_name.data + 6);
    const bool is_silent = strstr(silent, word) != NULL;
    if (is_silent == (op->shape != NULL)) fail_msg("%s", word);
  }
  kiln_registry_destroy(registry);
  kiln_env_destroy(env);
}

/* Batch norm by its definition: scale and shift in double, rounded once, then in float. */
static void check_batch_norm(bool affine) {
  lowered t;
  char source[1024];
  snprintf(source, sizeof source,
           "graph(%%x : %s, %%w : %s, %%b : %s, %%m : %s, %%v : %s):\n"
           "  %%none : NoneType = prim::Constant()\n"
           "  %%no : bool = prim::Constant[value=0]()\n"
           "  %%f : float = prim::Constant[value=0.001]()\n"
           "  %%y : %s = aten::batch_norm(%%x, %s, %%m, %%v, %%no, %%f, %%f, %%no)\n"
           "  return (%%y)\n",
           F32("2, 3, 5", "15, 5, 1"), F32("3", "1"), F32("3", "1"), F32("3", "1"), F32("3", "1"),
           F32("2, 3, 5", "15, 5, 1"), affine ? "%w, %b" : "%none, %none");
  assert_ok(open_graph(&t, source));
  float x[30], y[30], again[30], expect[30];
  float w[3] = {0.5f, -2.25f, 1.1f}, b[3] = {0, 0.3f, -7}, m[3] = {0.1f, -3, 12.7f},
        v[3] = {1, 0, 1e-4f};
  for (int i = 0; i < 30; i++) {
    int c = i / 5 % 3;
    x[i] = (float)(i * i) * 0.37f - 4;
    double scale = 1 / sqrt((double)v[c] + 0.001) * (affine ? (double)w[c] : 1);
    double shift = (affine ? (double)b[c] : 0) - (double)m[c] * scale;
    expect[i] = x[i] * (float)scale + (float)shift;
  }
  void *data[] = {x, w, b, m, v, y};
  run(&t, data, NULL, again, 5, sizeof y);
  assert_memory_equal(expect, y, sizeof y);
  close_graph(&t);
}
static void test_batch_norm(void **unused) {
  (void)unused;
  check_batch_norm(true);
  check_batch_norm(false);
}

/* -- New tensors -- */

enum { NEW = 12 }; /* elements */
static double seven(int i) { return (void)i, 7; }
static double half(int i) { return (void)i, 0.5; }
static double truth(int i) { return (void)i, 1; }
static double whole_range(int i) { return 3 - 2 * i; }
static double float_range(int i) { return 0.25 + 0.5 * i; }
static double diagonal(int i) { return i / 4 == i % 4; }
static float spaced(int i) {
  const float step = (2.5f - -1.f) / (float)(NEW - 1);
  return i < NEW / 2 ? -1.f + step * (float)i : 2.5f - step * (float)(NEW - 1 - i);
}
static double spaced_evenly(int i) { return (double)spaced(i); }

/* What is made of numbers and places is the operator's definition to the bit. */
static void test_new(void **unused) {
  (void)unused;
  static const struct {
    const char *call, *type;
    int bytes;
    double (*expect)(int i);
  } cases[] = {
      {"aten::full(%sizes, %seven, %n, %n, %n, %n)", "Long(3, 4, strides=[4, 1]", 8, seven},
      {"aten::full_like(%x, %half, %n, %n, %n, %n, %n)", "Float(3, 4, strides=[4, 1]", 4, half},
      {"aten::ones_like(%x, %bool, %n, %n, %n, %n)", "Bool(3, 4, strides=[4, 1]", 1, truth},
      {"aten::new_ones(%x, %sizes, %n, %n, %n, %n)", "Float(3, 4, strides=[4, 1]", 4, truth},
      {"aten::new_full(%x, %sizes, %seven, %n, %n, %n, %n)", "Float(3, 4, strides=[4, 1]", 4,
       seven},
      {"aten::arange(%three, %end, %less, %n, %n, %n, %n)", "Long(12, strides=[1]", 8, whole_range},
      {"aten::arange(%quarter, %stop, %half, %n, %n, %n, %n)", "Float(12, strides=[1]", 4,
       float_range},
      {"aten::eye(%three, %four, %n, %n, %n, %n)", "Float(3, 4, strides=[4, 1]", 4, diagonal},
      {"aten::linspace(%first, %last, %count, %n, %n, %n, %n)", "Float(12, strides=[1]", 4,
       spaced_evenly},
  };
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    lowered t;
    char source[1536];
    union {
      float f[NEW];
      int64_t i[NEW];
      uint8_t b[NEW];
    } y, again;
    float x[NEW] = {0};
    snprintf(source, sizeof source,
             "graph(%%x : %s):\n  %%n : NoneType = prim::Constant()\n"
             "  %%sizes : int[] = prim::Constant[value=[3, 4]]()\n"
             "  %%seven : int = prim::Constant[value=7]()\n"
             "  %%half : float = prim::Constant[value=0.5]()\n"
             "  %%quarter : float = prim::Constant[value=0.25]()\n"
             "  %%stop : float = prim::Constant[value=6.]()\n"
             "  %%three : int = prim::Constant[value=3]()\n"
             "  %%four : int = prim::Constant[value=4]()\n"
             "  %%end : int = prim::Constant[value=-20]()\n"
             "  %%less : int = prim::Constant[value=-2]()\n"
             "  %%bool : int = prim::Constant[value=11]()\n"
             "  %%first : float = prim::Constant[value=-1.]()\n"
             "  %%last : float = prim::Constant[value=2.5]()\n"
             "  %%count : int = prim::Constant[value=12]()\n"
             "  %%y : %s, requires_grad=0, device=cpu) = %s\n  return (%%y)\n",
             F32("3, 4", "4, 1"), cases[c].type, cases[c].call);
    void *data[] = {x, &y};
    assert_ok(open_graph(&t, source));
    run(&t, data, NULL, &again, 1, (size_t)(NEW * cases[c].bytes));
    for (int i = 0; i < NEW; i++) {
      const double got = cases[c].bytes == 8   ? (double)y.i[i]
                         : cases[c].bytes == 4 ? (double)y.f[i]
                                               : y.b[i];
      if (got != cases[c].expect(i)) fail_msg("%s at %d: %g", cases[c].call, i, got);
    }
    close_graph(&t);
  }
}

/* -- Index maps -- */

/* A loop over rows of columns is one of columns and one of rows. */
static void test_split(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " F32(
          "4, 6", "6, 1") "):\n"
                          "  %zero : int = prim::Constant[value=0]()\n"
                          "  %last : int = prim::Constant[value=-1]()\n"
                          "  %a : " F32(
                              "6, 4", "1, 6") " = aten::t(%x)\n"
                                              "  %b : " F32(
                                                  "24", "1") " = aten::flatten(%a, %zero, %last)\n"
                                                             "  %c : " F32("24",
                                                                           "1") " = aten::neg(%b)\n"
                                                                                "  return (%c)\n",
      "kernel {\n"
      "  in b0: f32[4, 6] [6, 1]\n"
      "  out b1: f32[24] [1]\n"
      "  nest [6, 4] {\n"
      "    %0 = load f32 b0 + 0 [1, 6]\n"
      "    %1 = neg f32 %0\n"
      "    store f32 b1 + 0 [4, 1], %1\n"
      "  }\n"
      "}\n");
}

/* Each part of a join is a nest. */
static void test_cut(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " F32("2, 3", "3, 1") ", %w : " F32(
          "2, 2", "2, 1") "):\n"
                          "  %one : int = prim::Constant[value=1]()\n"
                          "  %a : " F32(
                              "2, 3", "3, 1") " = aten::neg(%x)\n"
                                              "  %l : Tensor[] = prim::ListConstruct(%a, %w)\n"
                                              "  %b : " F32(
                                                  "2, 5", "5, 1") " = aten::cat(%l, %one)\n"
                                                                  "  %c : " F32(
                                                                      "2, 5",
                                                                      "5, 1") " = aten::sqrt(%b)\n"
                                                                              "  return (%c)\n",
      "kernel {\n"
      "  in b0: f32[2, 3] [3, 1]\n"
      "  in b1: f32[2, 2] [2, 1]\n"
      "  out b2: f32[2, 5] [5, 1]\n"
      "  nest [2, 3] {\n"
      "    %0 = load f32 b0 + 0 [3, 1]\n"
      "    %1 = neg f32 %0\n"
      "    %2 = sqrt f32 %1\n"
      "    store f32 b2 + 0 [5, 1], %2\n"
      "  }\n"
      "  nest [2, 2] {\n"
      "    %0 = load f32 b1 + 0 [2, 1]\n"
      "    %1 = sqrt f32 %0\n"
      "    store f32 b2 + 3 [5, 1], %1\n"
      "  }\n"
      "}\n");
}

/* A product of symbols is taken apart as a number is. */
static void test_symbolic_split(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " F32(
          "s0, s1", "s1, 1") "):\n"
                             "  %zero : int = prim::Constant[value=0]()\n"
                             "  %last : int = prim::Constant[value=-1]()\n"
                             "  %a : " F32("s1, s0",
                                           "1, s1") " = aten::t(%x)\n"
                                                    "  %b : " F32(
                                                        "s0*s1",
                                                        "1") " = aten::flatten(%a, %zero, %last)\n"
                                                             "  %c : " F32("s0*s1",
                                                                           "1") " = aten::neg(%b)\n"
                                                                                "  return (%c)\n",
      "kernel {\n"
      "  in b0: f32[s0, s1] [s1, 1]\n"
      "  out b1: f32[s0*s1] [1]\n"
      "  nest [s1, s0] {\n"
      "    %0 = load f32 b0 + 0 [1, s1]\n"
      "    %1 = neg f32 %0\n"
      "    store f32 b1 + 0 [s0, 1], %1\n"
      "  }\n"
      "}\n");
}

/* Of symbols a place is proved to be inside, or the group is not lowered. */
static void test_symbolic_parts(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " F32(
          "s0, 8", "8, 1") "):\n"
                           "  %zero : int = prim::Constant[value=0]()\n"
                           "  %one : int = prim::Constant[value=1]()\n"
                           "  %last : int = prim::Constant[value=-1]()\n"
                           "  %a : " F32(
                               "8", "1") " = aten::select(%x, %zero, %last)\n"
                                         "  %b : " F32(
                                             "8", "1") " = aten::select(%x, %zero, %one)\n"
                                                       "  %c : " F32("8",
                                                                     "1") " = aten::mul(%a, %b)\n"
                                                                          "  return (%c)\n",
      "kernel {\n"
      "  in b0: f32[s0, 8] [8, 1]\n"
      "  out b1: f32[8] [1]\n"
      "  nest [8] {\n"
      "    %0 = load f32 b0 + 8*s0 - 8 [1]\n"
      "    %1 = load f32 b0 + 8 [1]\n"
      "    %2 = mul f32 %0, %1\n"
      "    store f32 b1 + 0 [1], %2\n"
      "  }\n"
      "}\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_x_x_x),
      cmocka_unit_test(test_diamond),
      cmocka_unit_test(test_mixed),
      cmocka_unit_test(test_chunk),
      cmocka_unit_test(test_reasons),
      cmocka_unit_test(test_each_lowers_or_lacks),
      cmocka_unit_test(test_each_tells_its_sizes),
      cmocka_unit_test(test_batch_norm),
      cmocka_unit_test(test_new),
      cmocka_unit_test(test_lacks),
      cmocka_unit_test(test_split),
      cmocka_unit_test(test_cut),
      cmocka_unit_test(test_symbolic_split),
      cmocka_unit_test(test_symbolic_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
