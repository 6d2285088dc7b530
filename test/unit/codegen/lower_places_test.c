/* lower_places_test.c: loop IR of what is read at places that are computed: several indices,
 * backwards, around edges; of taps and pairs; and of quotients of integers. */
#include "lower_support.h"

#define I64(sizes, strides) "Long(" sizes ", strides=[" strides "], requires_grad=0, device=cpu)"

/* Of each index the bounds are checked, then their sum, which is an element's number. */
static void test_two_indices(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " F32("2, 5, 7", "35, 7, 1") ", %i : " I64("3, 1", "1, 1") ", %j : " I64(
          "4", "1") "):\n"
                    "  %n : NoneType = prim::Constant()\n"
                    "  %l : Tensor?[] = prim::ListConstruct(%n, %i, %j)\n"
                    "  %y : " F32("2, 3, 4", "12, 4, 1") " = aten::index(%x, %l)\n"
                                                         "  return (%y)\n",
      "kernel {\n"
      "  in b0: f32[2, 5, 7] [35, 7, 1]\n"
      "  in b1: i64[3, 1] [1, 1]\n"
      "  in b2: i64[4] [1]\n"
      "  out b3: f32[2, 3, 4] [12, 4, 1]\n"
      "  nest [2, 3, 4] {\n"
      "    %0 = load i64 b1 + 0 [0, 1, 0]\n"
      "    %1 = const i64 5\n"
      "    %2 = const i64 0\n"
      "    %3 = lt bool %0, %2\n"
      "    %4 = add i64 %0, %1\n"
      "    %5 = select i64 %3, %4, %0\n"
      "    %6 = check i64 %5 below 5\n"
      "    %7 = load i64 b2 + 0 [0, 0, 1]\n"
      "    %8 = const i64 7\n"
      "    %9 = lt bool %7, %2\n"
      "    %10 = add i64 %7, %8\n"
      "    %11 = select i64 %9, %10, %7\n"
      "    %12 = check i64 %11 below 7\n"
      "    %13 = mul i64 %6, %8\n"
      "    %14 = add i64 %13, %12\n"
      "    %15 = check i64 %14 below 35\n"
      "    %16 = gather f32 b0 + 0 [35, 0, 0] at %15 * 1\n"
      "    store f32 b3 + 0 [12, 4, 1], %16\n"
      "  }\n"
      "}\n");
}

/* Of 3 x 3 taps under a dilation of 6, of 4 rows of 7 pixels: the middle row alone reads pixels,
 * its outer taps one each; so zeros stand beside the image, none above it or below. */
static void test_taps(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " F32(
          "1, 2, 4, 7",
          "56, 28, 7, 1") ",\n"
                          "      %w : " F32(
                              "3, 2, 3, 3",
                              "18, 9, 3, 1") "):\n"
                                             "  %n : NoneType = prim::Constant()\n"
                                             "  %g : int = prim::Constant[value=1]()\n"
                                             "  %s : int[] = prim::Constant[value=[1, 1]]()\n"
                                             "  %d : int[] = prim::Constant[value=[6, 6]]()\n"
                                             "  %y : " F32(
                                                 "1, 3, 4, 7",
                                                 "84, 28, 7, 1") " = aten::conv2d(%x, %w, %n, %s, "
                                                                 "%d, %d, %g)\n"
                                                                 "  return (%y)\n",
      "kernel {\n"
      "  in b0: f32[1, 2, 4, 19] [152, 76, 19, 1] copy of [1, 2, 4, 7] [56, 28, 7, 1] "
      "before [0, 0, 0, 6]\n"
      "  in b1: f32[3, 2, 3, 3] [18, 9, 3, 1]\n"
      "  out b2: f32[1, 3, 4, 7] [84, 28, 7, 1]\n"
      "  nest [3, 4, 7] {\n"
      "    reduce 2 {\n"
      "      reduce 3 {\n"
      "        %2 = load f32 b0 + 0 [0, 19, 1, 76, 6]\n"
      "        %3 = load f32 b1 + 3 [18, 0, 0, 9, 1]\n"
      "        %4 = contract f32 %2, %3 over 2\n"
      "      }\n"
      "    }\n"
      "    store f32 b2 + 0 [28, 7, 1], %4\n"
      "  }\n"
      "}\n");
}

/* Two rows are added where they are wanted, 0 first; in the last dimension they are a row, and so
 * are three. */
static void test_sum_of_pairs(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " F32("3, 2, 8", "16, 8, 1") "):\n"
                                               "  %n : NoneType = prim::Constant()\n"
                                               "  %f : bool = prim::Constant[value=0]()\n"
                                               "  %d : int[] = prim::Constant[value=[-2]]()\n"
                                               "  %y : " F32(
                                                   "3, 8", "8, 1") " = aten::sum(%x, %d, %f, %n)\n"
                                                                   "  return (%y)\n",
      "kernel {\n"
      "  in b0: f32[3, 2, 8] [16, 8, 1]\n"
      "  out b1: f32[3, 8] [8, 1]\n"
      "  nest [3, 8] {\n"
      "    %0 = load f32 b0 + 0 [16, 1]\n"
      "    %1 = load f32 b0 + 8 [16, 1]\n"
      "    %2 = const f32 0\n"
      "    %3 = add f32 %0, %2\n"
      "    %4 = add f32 %3, %1\n"
      "    store f32 b1 + 0 [8, 1], %4\n"
      "  }\n"
      "}\n");
  static const char *const rows[] = {
      "graph(%x : " F32("3, 3, 8", "24, 8, 1") "):\n"
                                               "  %n : NoneType = prim::Constant()\n"
                                               "  %f : bool = prim::Constant[value=0]()\n"
                                               "  %d : int[] = prim::Constant[value=[1]]()\n"
                                               "  %y : " F32(
                                                   "3, 8", "8, 1") " = aten::sum(%x, %d, %f, %n)\n"
                                                                   "  return (%y)\n",
      "graph(%x : " F32("3, 8, 2", "16, 2, 1") "):\n"
                                               "  %n : NoneType = prim::Constant()\n"
                                               "  %f : bool = prim::Constant[value=0]()\n"
                                               "  %d : int[] = prim::Constant[value=[2]]()\n"
                                               "  %y : " F32(
                                                   "3, 8", "8, 1") " = aten::sum(%x, %d, %f, %n)\n"
                                                                   "  return (%y)\n"};
  for (int i = 0; i < 2; i++) {
    lowered t;
    assert_ok(open_graph(&t, rows[i]));
    assert_non_null(strstr(t.text.data, "reduce"));
    close_graph(&t);
  }
}

static void test_flip(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " F32(
          "3, 8", "8, 1") "):\n"
                          "  %d : int[] = prim::Constant[value=[-1]]()\n"
                          "  %a : " F32("3, 8", "8, 1") " = aten::flip(%x, %d)\n"
                                                        "  %y : " F32("3, 8",
                                                                      "8, 1") " = aten::neg(%a)\n"
                                                                              "  return (%y)\n",
      "kernel {\n"
      "  in b0: f32[3, 8] [8, 1]\n"
      "  out b1: f32[3, 8] [8, 1]\n"
      "  nest [3, 8] {\n"
      "    %0 = index i64 0 [0, 1]\n"
      "    %1 = const i64 7\n"
      "    %2 = sub i64 %1, %0\n"
      "    %3 = check i64 %2 below 8\n"
      "    %4 = gather f32 b0 + 0 [8, 0] at %3 * 1\n"
      "    %5 = neg f32 %4\n"
      "    store f32 b1 + 0 [8, 1], %5\n"
      "  }\n"
      "}\n");
}

/* Inside it is a copy; before it and behind it elements come backwards, or are the last one. */
/* A running product read backwards lies in a local buffer, at places that are computed. */
static void test_flipped_scan(void **unused) {
  (void)unused;
  lowered t;
  kiln_status_destroy(open_graph(
      &t,
      "graph(%x : " F32(
          "3, 8", "8, 1") "):\n"
                          "  %n : NoneType = prim::Constant()\n"
                          "  %d : int = prim::Constant[value=1]()\n"
                          "  %p : " F32("3, 8", "8, 1") " = aten::cumprod(%x, %d, %n)\n"
                                                        "  %y : " F32(
                                                            "3, 8", "8, 1") " = aten::fliplr(%p)\n"
                                                                            "  return (%y)\n"));
  assert_int_equal(t.reason, KILN_REASON_no_local_gather);
  close_graph(&t);
}

static void test_edges(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " F32("3, 8", "8, 1") "):\n"
                                        "  %p : int[] = prim::Constant[value=[2, 1]]()\n"
                                        "  %y : " F32("3, 11",
                                                      "11, 1") " = aten::reflection_pad1d(%x, %p)\n"
                                                               "  return (%y)\n",
      "kernel {\n"
      "  in b0: f32[3, 8] [8, 1]\n"
      "  out b1: f32[3, 11] [11, 1]\n"
      "  nest [3, 2] {\n"
      "    %0 = index i64 0 [0, 1]\n"
      "    %1 = const i64 2\n"
      "    %2 = sub i64 %1, %0\n"
      "    %3 = check i64 %2 below 8\n"
      "    %4 = gather f32 b0 + 0 [8, 0] at %3 * 1\n"
      "    store f32 b1 + 0 [11, 1], %4\n"
      "  }\n"
      "  nest [3, 8] {\n"
      "    %0 = load f32 b0 + 0 [8, 1]\n"
      "    store f32 b1 + 2 [11, 1], %0\n"
      "  }\n"
      "  nest [3] {\n"
      "    %0 = index i64 8 [0]\n"
      "    %1 = const i64 14\n"
      "    %2 = sub i64 %1, %0\n"
      "    %3 = check i64 %2 below 8\n"
      "    %4 = gather f32 b0 + 0 [8] at %3 * 1\n"
      "    store f32 b1 + 10 [11], %4\n"
      "  }\n"
      "}\n");
  assert_lowers(
      "graph(%x : " F32("3, 8", "8, 1") "):\n"
                                        "  %p : int[] = prim::Constant[value=[2, 1]]()\n"
                                        "  %y : " F32(
                                            "3, 11", "11, 1") " = aten::replication_pad1d(%x, %p)\n"
                                                              "  return (%y)\n",
      "kernel {\n"
      "  in b0: f32[3, 8] [8, 1]\n"
      "  out b1: f32[3, 11] [11, 1]\n"
      "  nest [3, 2] {\n"
      "    %0 = load f32 b0 + 0 [8, 0]\n"
      "    store f32 b1 + 0 [11, 1], %0\n"
      "  }\n"
      "  nest [3, 8] {\n"
      "    %0 = load f32 b0 + 0 [8, 1]\n"
      "    store f32 b1 + 2 [11, 1], %0\n"
      "  }\n"
      "  nest [3] {\n"
      "    %0 = load f32 b0 + 7 [8]\n"
      "    store f32 b1 + 10 [11], %0\n"
      "  }\n"
      "}\n");
}

static void test_one_hot(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " I64("6", "1") "):\n"
                                  "  %c : int = prim::Constant[value=4]()\n"
                                  "  %y : " I64("6, 4", "4, 1") " = aten::one_hot(%x, %c)\n"
                                                                "  return (%y)\n",
      "kernel {\n"
      "  in b0: i64[6] [1]\n"
      "  out b1: i64[6, 4] [4, 1]\n"
      "  nest [6, 4] {\n"
      "    %0 = load i64 b0 + 0 [1, 0]\n"
      "    %1 = check i64 %0 below 4\n"
      "    %2 = index i64 0 [0, 1]\n"
      "    %3 = eq bool %1, %2\n"
      "    %4 = cast i64 %3\n"
      "    store i64 b1 + 0 [4, 1], %4\n"
      "  }\n"
      "}\n");
}

/* A cut quotient, one less where it is above the exact one. */
static void test_floor_divide(void **unused) {
  (void)unused;
  assert_lowers(
      "graph(%x : " I64("6", "1") "):\n"
                                  "  %c : int = prim::Constant[value=4]()\n"
                                  "  %y : " I64("6", "1") " = aten::floor_divide(%x, %c)\n"
                                                          "  return (%y)\n",
      "kernel {\n"
      "  in b0: i64[6] [1]\n"
      "  out b1: i64[6] [1]\n"
      "  nest [6] {\n"
      "    %0 = load i64 b0 + 0 [1]\n"
      "    %1 = const i64 4\n"
      "    %2 = quot i64 %0, %1\n"
      "    %3 = mul i64 %2, %1\n"
      "    %4 = sub i64 %0, %3\n"
      "    %5 = const i64 0\n"
      "    %6 = lt bool %4, %5\n"
      "    %7 = cast i64 %6\n"
      "    %8 = sub i64 %2, %7\n"
      "    store i64 b1 + 0 [1], %8\n"
      "  }\n"
      "}\n");
}

/* What no form expresses, by values of arguments. */
static void test_reasons(void **unused) {
  (void)unused;
  static const struct {
    const char *node;
    kiln_reason reason;
  } cases[] = {
      {"aten::floor_divide(%x, %four)", KILN_REASON_none},
      {"aten::floor_divide(%x, %zero)", KILN_REASON_raises},
      {"aten::floor_divide(%x, %x)", KILN_REASON_no_division},
      {"aten::remainder(%x, %four)", KILN_REASON_none},
      {"aten::bitwise_right_shift(%x, %four)", KILN_REASON_none},
      {"aten::bitwise_right_shift(%x, %x)", KILN_REASON_no_division},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    lowered t;
    char source[512];
    snprintf(source, sizeof source,
             "graph(%%x : %s):\n  %%zero : int = prim::Constant[value=0]()\n"
             "  %%four : int = prim::Constant[value=4]()\n"
             "  %%y : %s = %s\n  return (%%y)\n",
             I64("6", "1"), I64("6", "1"), cases[i].node);
    kiln_status_destroy(open_graph(&t, source));
    assert_int_equal(kiln_codegen_can_lower(t.graph->top->last), cases[i].reason);
    close_graph(&t);
  }
}

/* A pool's picture of (s0 + 1)//2 columns, as a convolution in steps of two leaves it: its windows
 * of 3 end over the edge, or before it, where that is odd or even. One kernel has both, if one
 * window is whole, which whoever listens to the graph's dimensions is told. */
static void test_asked_of_pools(void **state) {
  (void)state;
  lowered t;
  static const char source[] = "graph(%x : " F32(
      "1, 4, 8, (s0 + 1)//2",
      "32*((s0 + 1)//2), 8*((s0 + 1)//2), (s0 + 1)//2, "
      "1") "):\n"
           "  %no : bool = prim::Constant[value=0]()\n"
           "  %three : int[] = prim::Constant[value=[3, "
           "3]]()\n"
           "  %two : int[] = prim::Constant[value=[2, "
           "2]]()\n"
           "  %ones : int[] = prim::Constant[value=[1, "
           "1]]()\n"
           "  %q : " F32("1, 4, 4, (s0 + 3)//4", "16*((s0 + 3)//4), 4*((s0 + 3)//4), (s0 "
                                                 "+ 3)//4, 1") " = aten::max_pool2d(%x, "
                                                               "%three, %two, %ones, "
                                                               "%ones, %no)\n  return "
                                                               "(%q)\n";
  kiln_status_destroy(open_graph(&t, source));
  assert_int_equal(t.reason, KILN_REASON_no_affine_map);
  kiln_ir_value *values[] = {kiln_graph_input(t.graph, 0), kiln_graph_output(t.graph, 0)};
  kiln_dims *dims = kiln_type_table_dims(t.graph->types);
  static const char *const asked[] = {"2 <= (s0 + 1)//2", "1 <= (s0 + 1)//4"};
  for (int i = 0; i <= 2; i++) {
    kiln_dim_wishes wishes = {0};
    kiln_dims_listen(dims, &wishes, NULL);
    assert_int_equal(
        kiln_codegen_can_lower_values(values, 1, values + 1, 1, KILN_FACTORS_F32, t.f.env->mem),
        i < 2 ? KILN_REASON_no_affine_map : KILN_REASON_none);
    kiln_dims_listen(dims, NULL, NULL);
    assert_int_equal(wishes.count, i < 2);
    if (i == 2) break;
    kiln_text text = kiln_text_in(t.f.arena);
    kiln_dim_orders_print(&text, dims, wishes.all, 1);
    assert_string_equal(text.data, asked[i]);
    assert_true(kiln_dims_assume(dims, wishes.all[0]));
  }
  kiln_dims_forget(dims, 0);
  close_graph(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_two_indices),  cmocka_unit_test(test_taps),
      cmocka_unit_test(test_sum_of_pairs), cmocka_unit_test(test_flipped_scan),
      cmocka_unit_test(test_flip),         cmocka_unit_test(test_edges),
      cmocka_unit_test(test_one_hot),      cmocka_unit_test(test_floor_divide),
      cmocka_unit_test(test_reasons),      cmocka_unit_test(test_asked_of_pools)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
