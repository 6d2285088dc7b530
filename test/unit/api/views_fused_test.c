/* views_fused_test.c: views between two pointwise operators become index maps in one kernel, which
 * gives what the interpreter gives: of every dtype and layout, and after a change of sizes. That
 * they are in the kernel is seen by there being one, for groups of one operator are not formed. */
#include "test/unit/api/built.h"

enum { ROWS = 4, COLUMNS = 6, ELEMENTS = 2 * ROWS * COLUMNS, GAP = 2 };

/* What makes %v of %p = x * x; x has (4, 6) or (8, 6). */
typedef struct view_case {
  const char *lines;
  bool fused;
} view_case;

#define INTS(name, list) "  %" name " : int[] = prim::Constant[value=[" list "]]()\n"
#define MAKES(what) "  %v : Tensor = " what "\n"
#define SHAPED(list) INTS("s", list) "  %q : Tensor = aten::reshape(%p, %s)\n"
static const view_case cases[] = {
    {INTS("s", "2, -1, 6") MAKES("aten::reshape(%p, %s)"), true},
    {INTS("s", "-1") MAKES("aten::reshape(%p, %s)"), true},
    {INTS("s", "-1, 3") MAKES("aten::reshape(%p, %s)"), true},
    {SHAPED("-1, 3") INTS("a", "2, -1") MAKES("aten::reshape(%q, %a)"), true},
    {INTS("s", "3, -1") MAKES("aten::reshape(%p, %s)"), false}, /* rows of 8 or 16 in rows of 6 */
    {MAKES("aten::flatten(%p, %i0, %n1)"), true},
    {INTS("s", "2, 3") MAKES("aten::unflatten(%p, %i1, %s)"), true},
    {MAKES("aten::transpose(%p, %i0, %n1)"), true},
    {MAKES("aten::t(%p)"), true},
    {MAKES("aten::numpy_T(%p)"), true},
    {INTS("s", "1, 0") MAKES("aten::permute(%p, %s)"), true},
    {MAKES("aten::movedim(%p, %i0, %n1)"), true},
    {MAKES("aten::swapaxes(%p, %i0, %i1)"), true},
    {MAKES("aten::unsqueeze(%p, %n1)"), true},
    {SHAPED("1, -1, 6, 1") MAKES("aten::squeeze(%q)"), true},
    {MAKES("aten::select(%p, %i1, %n2)"), true},
    {MAKES("aten::slice(%p, %i1, %i1, %none, %i2)"), true},
    {MAKES("aten::slice(%p, %i0, %n2, %none, %i1)"), true},
    {MAKES("aten::narrow(%p, %i1, %i2, %i3)"), true},
    {MAKES("aten::diagonal(%p, %i1, %i0, %i1)"), true},
    {MAKES("aten::unfold(%p, %i1, %i2, %i2)"), true},
    {MAKES("aten::unfold(%p, %i1, %i3, %i1)"), false}, /* elements are read again and again */
    {INTS("s", "2, -1, -1") MAKES("aten::expand(%p, %s, %no)"), false},
    {INTS("s", "2, 1") MAKES("aten::repeat(%p, %s)"), true}, /* without the first product */
    {MAKES("aten::repeat_interleave(%p, %i3, %i1, %none)"), true},
    {INTS("s", "-1, -1, 5") "  %q : Tensor = aten::unsqueeze(%p, %n1)\n" MAKES(
         "aten::expand(%q, %s, %no)"),
     true}, /* along the last dimension alone */
    {MAKES("aten::detach(%p)"), true},
    {MAKES("aten::clone(%p, %none)"), true},
    {"  %c : Tensor = aten::t(%p)\n" MAKES("aten::contiguous(%c, %i0)"), true},
    {MAKES("aten::to(%p, %i7, %no, %no, %none)"), true},
    {"  %a : Tensor, %b : Tensor = prim::ConstantChunk[chunks=2, dim=1](%p)\n" MAKES(
         "aten::mul(%a, %b)"),
     true},
    {INTS("s", "2, 2, 2") "  %l : Tensor[] = aten::split_with_sizes(%p, %s, %i1)\n"
                          "  %a : Tensor, %b : Tensor, %c : Tensor = prim::ListUnpack(%l)\n"
                          "  %d : Tensor = aten::mul(%a, %c)\n" MAKES("aten::mul(%b, %d)"),
     true},
    {"  %l : Tensor[] = aten::split(%p, %i3, %i1)\n"
     "  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)\n" MAKES("aten::mul(%a, %b)"),
     true},
    {"  %q : Tensor = aten::slice(%p, %i1, %i0, %i2, %i1)\n"
     "  %l : Tensor[] = aten::unbind(%q, %i1)\n"
     "  %a : Tensor, %b : Tensor = prim::ListUnpack(%l)\n" MAKES("aten::mul(%a, %b)"),
     true},
    {"  %l : Tensor[] = prim::ListConstruct(%p, %x, %p)\n" MAKES("aten::cat(%l, %i1)"), true},
    {"  %l : Tensor[] = prim::ListConstruct(%p, %x)\n"
     "  %q : Tensor = aten::cat(%l, %i0)\n" MAKES("aten::slice(%q, %i0, %i1, %n1, %i2)"),
     true},
    {"  %l : Tensor[] = prim::ListConstruct(%p, %x)\n" MAKES("aten::stack(%l, %n1)"), true},
    {"  %l : Tensor[] = prim::ListConstruct(%p, %x)\n" MAKES("aten::hstack(%l)"), true},
    {INTS("s", "1, 2, 0, 1") MAKES("aten::constant_pad_nd(%p, %s, %i1)"), true},
    {INTS("s", "-1, 2, 1, -2") MAKES("aten::constant_pad_nd(%p, %s, %i1)"), true},
    {INTS("s", "1, -5") INTS("d", "1, 0") MAKES("aten::roll(%p, %s, %d)"), true},
    {SHAPED("-1, 2, 3") MAKES("aten::pixel_shuffle(%q, %i2)"), true},
    {SHAPED("1, -1, 6") MAKES("aten::pixel_unshuffle(%q, %i2)"), true},
    {SHAPED("1, -1, 6") MAKES("aten::channel_shuffle(%q, %i2)"), true},
};

static const char *const modes[][2] = {
    {"eval", "STATIC,12"}, {"llvm", "STATIC,12"}, {"eval", "STATIC,1;DYNAMIC,10"}};

static kiln_model *make(kiln_context *context, const view_case *c) {
  char text[2048];
  const int size = snprintf(
      text, sizeof text,
      "graph(%%x : Tensor):\n"
      "  %%i0 : int = prim::Constant[value=0]()\n  %%i1 : int = prim::Constant[value=1]()\n"
      "  %%i2 : int = prim::Constant[value=2]()\n  %%i3 : int = prim::Constant[value=3]()\n"
      "  %%i7 : int = prim::Constant[value=7]()\n  %%n1 : int = prim::Constant[value=-1]()\n"
      "  %%n2 : int = prim::Constant[value=-2]()\n  %%no : bool = prim::Constant[value=0]()\n"
      "  %%none : NoneType = prim::Constant()\n"
      "  %%p : Tensor = aten::mul(%%x, %%x)\n%s"
      "  %%r : Tensor = aten::mul(%%v, %%v)\n"
      "  return (%%r)\n",
      c->lines);
  return parse_model(context, text, (size_t)size);
}

/* -- Inputs -- */

static const kiln_dtype dtypes[] = {KILN_DTYPE_F32, KILN_DTYPE_F64,  KILN_DTYPE_I32,
                                    KILN_DTYPE_I64, KILN_DTYPE_BOOL, KILN_DTYPE_F16};

static void fill(void *memory, kiln_dtype dtype) {
  for (int i = 0; i < GAP * ELEMENTS; i++) {
    const int n = i * 7 % 31 - 9;
    switch (dtype) {
      case KILN_DTYPE_F32: ((float *)memory)[i] = (float)n * 0.25f; break;
      case KILN_DTYPE_F64: ((double *)memory)[i] = n * 0.1; break;
      case KILN_DTYPE_I32: ((int32_t *)memory)[i] = n; break;
      case KILN_DTYPE_I64: ((int64_t *)memory)[i] = n; break;
      case KILN_DTYPE_BOOL: ((bool *)memory)[i] = n > 0; break;
      default: ((uint16_t *)memory)[i] = (uint16_t)(0x3c00 + 16 * n); break;
    }
  }
}

/* Of layout 0 the rows lie behind each other, of 1 the columns, of 2 there are gaps. */
static kiln_value *tensor_of(kiln_context *context, kiln_dtype dtype, int rows, int layout,
                             void *memory) {
  const int64_t sizes[2] = {rows, COLUMNS};
  const int64_t strides[3][2] = {{COLUMNS, 1}, {1, rows}, {GAP * COLUMNS, GAP}};
  kiln_value *v = NULL;
  assert_ok(kiln_value_tensor_over(context, dtype, 2, sizes, strides[layout], memory,
                                   8 * GAP * ELEMENTS, NULL, NULL, &v));
  return v;
}

/* -- Runs -- */

static void call(kiln_context *context, kiln_instance *instance, kiln_value *x, char *out,
                 size_t capacity) {
  kiln_value *result = NULL;
  char *text = NULL;
  (void)context;
  kiln_status *status = kiln_instance_call(instance, "forward", &x, 1, NULL, &result);
  if (status) {
    snprintf(out, capacity, "%s", kiln_code_name(kiln_status_code(status)));
  } else {
    assert_ok(kiln_value_print(result, 1000, &text));
    assert_true(strlen(text) < capacity);
    strcpy(out, text);
    kiln_text_free(text);
  }
  kiln_status_destroy(status);
  kiln_value_destroy(result);
}

/* In one mode against the plain interpreter. */
static void check_case(kiln_context *plain, kiln_context *jit, const view_case *c, kiln_dtype dtype,
                       int layout) {
  static double memory[GAP * ELEMENTS];
  static char want[1 << 14], got[1 << 14];
  kiln_context *contexts[2] = {plain, jit};
  kiln_model *models[2];
  kiln_instance *instances[2];
  fill(memory, dtype);
  for (int i = 0; i < 2; i++) {
    models[i] = make(contexts[i], c);
    instances[i] = instance_of(models[i]);
  }
  for (int i = 0; i < 6; i++) {
    const int rows = i < 3 ? ROWS : 2 * ROWS;
    for (int k = 0; k < 2; k++) {
      kiln_value *x = tensor_of(contexts[k], dtype, rows, layout, memory);
      call(contexts[k], instances[k], x, k ? got : want, sizeof want);
      kiln_value_destroy(x);
    }
    if (strcmp(want, got) != 0)
      fail_msg("%scall %d, layout %d: %s\n, not %s", c->lines, i + 1, layout, got, want);
  }
  const kiln_counters counters = counters_of(models[1]);
  if ((counters.compiled_runs > 0) != c->fused || counters.compile_failures > 0)
    fail_msg("%sis %sin a kernel", c->lines, c->fused ? "not " : "");
  for (int i = 0; i < 2; i++) {
    kiln_instance_release(instances[i]);
    kiln_model_release(models[i]);
  }
}

static void check_mode(int mode) {
  const setting settings[] = {{"codegen", modes[mode][0]},
                              {"fusion_strategy", modes[mode][1]},
                              {"compile", "sync"},
                              {NULL, NULL}};
  kiln_context *plain = context_with("jit", "off"), *jit = context_of(settings);
  const int count = mode == 1 ? 1 : (int)(sizeof dtypes / sizeof *dtypes); /* LLVM takes its time */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int d = 0; d < count; d++) {
      for (int layout = 0; layout < 3; layout++)
        check_case(plain, jit, &cases[i], dtypes[d], layout);
    }
  }
  kiln_context_release(jit);
  kiln_context_release(plain);
}

static void test_evaluator(void **state) { (void)state, check_mode(0); }
static void test_llvm(void **state) { (void)state, check_mode(1); }
static void test_symbolic(void **state) { (void)state, check_mode(2); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_evaluator), cmocka_unit_test(test_llvm),
                                     cmocka_unit_test(test_symbolic)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
