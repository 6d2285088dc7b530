/* places_test.c: diagonals, windows and written parts of tensors of any sizes: one kernel serves
 * them, once the guard has asked which of the sizes is the greater. */
#include "test/unit/jit/jit_support.h"

static const char constants[] = "  %0 : int = prim::Constant[value=0]()\n"
                                "  %1 : int = prim::Constant[value=1]()\n"
                                "  %2 : int = prim::Constant[value=2]()\n"
                                "  %3 : int = prim::Constant[value=3]()\n"
                                "  %4 : int = prim::Constant[value=4]()\n"
                                "  %m1 : int = prim::Constant[value=-1]()\n"
                                "  %m2 : int = prim::Constant[value=-2]()\n"
                                "  %m3 : int = prim::Constant[value=-3]()\n"
                                "  %h : float = prim::Constant[value=0.5]()\n"
                                "  %none : NoneType = prim::Constant()\n"
                                "  %no : bool = prim::Constant[value=0]()\n";

/* %b of %a, which has the sizes of x. */
static const char *const places[] = {
    "  %b : Tensor = aten::diagonal(%a, %0, %0, %1)\n",
    "  %b : Tensor = aten::diagonal(%a, %2, %0, %1)\n",
    "  %b : Tensor = aten::diagonal(%a, %m2, %0, %1)\n",
    "  %b : Tensor = aten::diag(%a, %1)\n",
    "  %b : Tensor = aten::trace(%a)\n",
    "  %v : Tensor = aten::select(%a, %0, %1)\n"
    "  %b : Tensor = aten::diag(%v, %0)\n",
    "  %v : Tensor = aten::select(%a, %0, %1)\n"
    "  %b : Tensor = aten::diagflat(%v, %m2)\n",
    "  %b : Tensor = aten::diag_embed(%a, %0, %m2, %m1)\n",
    "  %b : Tensor = aten::diag_embed(%a, %2, %0, %m1)\n",
    "  %b : Tensor = aten::unfold(%a, %1, %3, %2)\n",
    "  %b : Tensor = aten::unfold(%a, %0, %2, %1)\n",
    "  %n : int = aten::size(%x, %0)\n"
    "  %e : Tensor = aten::eye(%n, %none, %none, %none, %none)\n"
    "  %b : Tensor = aten::matmul(%e, %a)\n",
    "  %n : int = aten::size(%x, %0)\n"
    "  %m : int = aten::size(%x, %1)\n"
    "  %e : Tensor = aten::eye(%n, %m, %none, %none, %none, %none)\n"
    "  %b : Tensor = aten::add(%e, %a, %1)\n",
    "  %v : Tensor = aten::select(%x, %1, %0)\n"
    "  %b : Tensor = aten::select_scatter(%a, %v, %1, %2)\n",
    "  %v : Tensor = aten::select(%x, %0, %0)\n"
    "  %b : Tensor = aten::select_scatter(%a, %v, %0, %m1)\n",
    "  %v : Tensor = aten::slice(%x, %1, %0, %3, %1)\n"
    "  %b : Tensor = aten::slice_scatter(%a, %v, %1, %1, %4, %1)\n",
    "  %v : Tensor = aten::slice(%x, %0, %0, %3, %1)\n"
    "  %b : Tensor = aten::slice_scatter(%a, %v, %0, %m3, %none, %1)\n",
    "  %v : Tensor = aten::diagonal(%x, %0, %0, %1)\n"
    "  %b : Tensor = aten::diagonal_scatter(%a, %v, %0, %0, %1)\n",
    "  %n : Tensor = aten::mul(%x, %h)\n"
    "  %k : Tensor = aten::isclose(%a, %n, %h, %h, %no)\n"
    "  %b : Tensor = aten::where(%k, %a, %n)\n",
};

static void call_once(model *m, int64_t rows, int64_t columns) {
  kiln_ivalue x = make_matrix(m, rows, columns, 0.01);
  check_call(m, &x, 1);
  kiln_ivalue_release(x);
}

static void test_places(void **state) {
  (void)state;
  static const char *const codegens[] = {"codegen=eval", "codegen=llvm"};
  for (size_t i = 0; i < 2 * (sizeof places / sizeof *places); i++) {
    char text[2048];
    model m;
    snprintf(text, sizeof text,
             "graph(%%x : Tensor):\n%s  %%y : Tensor = aten::tanh(%%x)\n"
             "  %%a : Tensor = aten::mul(%%y, %%x)\n%s"
             "  %%c : Tensor = aten::exp(%%b)\n"
             "  %%d : Tensor = aten::mul(%%c, %%c)\n"
             "  %%f : Tensor = aten::contiguous(%%d, %%0)\n  return (%%f)\n",
             constants, places[i / 2]);
    model_open(&m, text, (const char *[]){codegens[i % 2], "fusion_strategy=DYNAMIC,4", NULL});
    call_once(&m, 5, 9);
    for (int64_t n = 4; n < 11; n++) call_once(&m, n, n + 4);
    if (counters(&m).guard_misses != 0 || counters(&m).guard_hits < 7)
      fail_msg("%s%d misses, %d hits", places[i / 2], (int)counters(&m).guard_misses,
               (int)counters(&m).guard_hits);
    for (int64_t n = 5; n < 9; n++) call_once(&m, n + 7, n); /* more rows than columns */
    for (int64_t n = 5; n < 9; n++) call_once(&m, n, n);
    model_close(&m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_places)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
