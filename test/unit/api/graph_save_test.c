/* graph_save_test.c: built, read and traced graphs saved as archives and loaded again: the source
 * that is printed means the same. Expected results are worked out by hand; what PyTorch makes of
 * such archives is test/make/convert.py's to tell. */
#include "api/internal.h"
#include "test/unit/api/built.h"
#include "test/unit/api/values.h"
#include "test/unit/sweep.h"

/* -- Helpers -- */

static kiln_builder *parse(const char *text) {
  kiln_builder *b = NULL;
  assert_ok(kiln_builder_parse(context, text, strlen(text), &b));
  return b;
}

/* The builder's archive, loaded; `archive` outlives the model. */
static kiln_model *save_and_load(kiln_builder *b, archive_bytes *archive) {
  kiln_model *model = NULL;
  assert_ok(kiln_builder_save_to(b, take_bytes, archive, NULL));
  assert_ok(kiln_model_load_memory(context, archive->data, archive->size, NULL, &model));
  return model;
}

static void assert_runs(kiln_model *model, kiln_value *const *args, int count, const char *want) {
  kiln_instance *instance = instance_of(model);
  assert_calls(instance, args, count, 3, want);
  kiln_instance_release(instance);
}

/* -- Text -- */

static const struct {
  const char *graph;
  int64_t n;
  const char *want;
} cases[] = {
    /* A loop with a limit and a condition: 1 + 2 + 3 < 7, then 10 ends it. */
    {"graph(%n : int):\n"
     "  %0 : int = prim::Constant[value=0]()\n"
     "  %1 : int = prim::Constant[value=1]()\n"
     "  %7 : int = prim::Constant[value=7]()\n"
     "  %t : bool = prim::Constant[value=1]()\n"
     "  %sum : int = prim::Loop(%n, %t, %0)\n"
     "    block0(%i : int, %s : int):\n"
     "      %i1 : int = aten::add(%i, %1)\n"
     "      %s1 : int = aten::add(%s, %i1)\n"
     "      %go : bool = aten::lt(%s1, %7)\n"
     "      -> (%go, %s1)\n"
     "  return (%sum)\n",
     100, "10"},
    {"graph(%n : int):\n" /* the same, which its limit ends */
     "  %0 : int = prim::Constant[value=0]()\n"
     "  %1 : int = prim::Constant[value=1]()\n"
     "  %7 : int = prim::Constant[value=7]()\n"
     "  %t : bool = prim::Constant[value=1]()\n"
     "  %sum : int = prim::Loop(%n, %t, %0)\n"
     "    block0(%i : int, %s : int):\n"
     "      %i1 : int = aten::add(%i, %1)\n"
     "      %s1 : int = aten::add(%s, %i1)\n"
     "      %go : bool = aten::lt(%s1, %7)\n"
     "      -> (%go, %s1)\n"
     "  return (%sum)\n",
     2, "3"},
    /* What is carried changes its place: Fibonacci's numbers. */
    {"graph(%n : int):\n"
     "  %0 : int = prim::Constant[value=0]()\n"
     "  %1 : int = prim::Constant[value=1]()\n"
     "  %t : bool = prim::Constant[value=1]()\n"
     "  %a : int, %b : int = prim::Loop(%n, %t, %0, %1)\n"
     "    block0(%i : int, %x : int, %y : int):\n"
     "      %z : int = aten::add(%x, %y)\n"
     "      -> (%t, %y, %z)\n"
     "  %r : (int, int) = prim::TupleConstruct(%a, %b)\n"
     "  return (%r)\n",
     10, "(55, 89)"},
    /* A loop that counts in its body, without a limit; names that are words of the language. */
    {"graph(%if : int):\n"
     "  %big : int = prim::Constant[value=9223372036854775807]()\n"
     "  %0 : int = prim::Constant[value=0]()\n"
     "  %go.1 : bool = aten::gt(%if, %0)\n"
     "  %torch : int = prim::Loop(%big, %go.1, %0)\n"
     "    block0(%i : int, %while : int):\n"
     "      %in : int = aten::mul(%i, %i)\n"
     "      %def : int = aten::add(%while, %in)\n"
     "      %not : bool = aten::lt(%def, %if)\n"
     "      -> (%not, %def)\n"
     "  return (%torch)\n",
     20, "30"},
    /* Sides of different types, order of effects, an Optional that is tested. */
    {"graph(%n : int):\n"
     "  %0 : int = prim::Constant[value=0]()\n"
     "  %none : NoneType = prim::Constant()\n"
     "  %l : int[] = prim::ListConstruct(%n)\n"
     "  %p : bool = aten::gt(%n, %0)\n"
     "  %o : int? = prim::If(%p)\n"
     "    block0():\n"
     "      %k : int = aten::pop(%l, %0)\n"
     "      -> (%k)\n"
     "    block1():\n"
     "      -> (%none)\n"
     "  %is : bool = aten::__is__(%o, %none)\n"
     "  %len : int = aten::len(%l)\n"
     "  %r : (int?, bool, int, int[]) = prim::TupleConstruct(%o, %is, %len, %l)\n"
     "  return (%r)\n",
     5, "(5, False, 0, [])"},
    {"graph(%n : int):\n" /* constants to the last bit; strings */
     "  %f : float = prim::Constant[value=0.10000000000000001]()\n"
     "  %g : float = prim::Constant[value=1.0000000000000001e-05]()\n"
     "  %i : float = prim::Constant[value=-inf]()\n"
     "  %m : int = prim::Constant[value=-9223372036854775808]()\n"
     "  %s : str = prim::Constant[value=\"a\\n\\\"\\\\b\"]()\n"
     "  %u : str = prim::Constant[value=\"\\303\\251\\r\"]()\n"
     "  %len : int = aten::len(%u)\n"
     "  %eq : bool = aten::eq(%s, %u)\n"
     "  %z : float = aten::mul(%n, %f)\n"
     "  %r : (float, float, float, int, int, bool) = prim::TupleConstruct(%z, %g, %i, %m, %len, "
     "%eq)\n"
     "  return (%r)\n",
     3, "(0.30000000000000004, 1e-05, -inf, -9223372036854775808, 3, False)"},
    {"graph(%n : int):\n" /* a dict, a tuple of one, pieces of tuples */
     "  %k : str = prim::Constant[value=\"k\"]()\n"
     "  %0 : int = prim::Constant[value=0]()\n"
     "  %d : Dict(str, int) = prim::DictConstruct(%k, %n)\n"
     "  %v : int = aten::__getitem__(%d, %k)\n"
     "  %t : (int) = prim::TupleConstruct(%v)\n"
     "  %w : int = prim::TupleUnpack(%t)\n"
     "  %x : int = prim::TupleIndex(%t, %0)\n"
     "  %l : int[] = prim::ListConstruct(%w, %x)\n"
     "  %a : int, %b : int = prim::ListUnpack(%l)\n"
     "  %e : int[] = prim::ListConstruct()\n"
     "  %r : (int, int, int[]) = prim::TupleConstruct(%a, %b, %e)\n"
     "  return (%r)\n",
     4, "(4, 4, [])"},
};

static void test_text(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    archive_bytes archive = {0};
    kiln_builder *b = parse(cases[i].graph);
    kiln_model *saved = save_and_load(b, &archive), *built = NULL;
    kiln_value *n = int_of(cases[i].n);
    assert_ok(kiln_builder_finish(b, &built)); /* saving has left it as it was */
    assert_runs(built, &n, 1, cases[i].want);
    assert_runs(saved, &n, 1, cases[i].want);
    kiln_value_destroy(n);
    kiln_model_release(built);
    kiln_model_release(saved);
    free(archive.data);
    kiln_builder_destroy(b);
  }
}

/* -- Built: attributes that change, constants of the host -- */

static kiln_builder *build_counter(void) {
  static const float ones[] = {1, 1};
  kiln_builder *b = create_builder(context);
  kiln_value *one = int_of(1), *c = NULL;
  assert_ok(kiln_value_complex(context, -0.0, 2, &c));
  const kiln_var x = input_of(b, "x", "Tensor"), n = attribute_of(b, "count", int_of(10));
  const kiln_var weight = attribute_of(b, "w", vector_of(2, ones));
  const kiln_builder_arg add[2] = {{.var = n}, {.value = one}};
  const kiln_var next = call_with(b, "aten::add", add, 2);
  assert_ok(kiln_builder_set(b, "count", next));
  const kiln_builder_arg by_weight[3] = {{.var = x}, {.var = weight}, {"alpha", next, NULL}};
  const kiln_var sum = call_with(b, "aten::add", by_weight, 3);
  const kiln_var angle = call_with(b, "aten::angle", &(kiln_builder_arg){.value = c}, 1);
  const kiln_var out = call_of(b, "prim::TupleConstruct", sum, angle);
  assert_ok(kiln_builder_return(b, &out, 1));
  kiln_value_destroy(one);
  kiln_value_destroy(c);
  return b;
}

/* The counter was 10; each call adds one and returns x + count * w. */
static void test_built(void **state) {
  static const float data[] = {1, 2};
  archive_bytes archive = {0};
  kiln_builder *b = build_counter();
  kiln_model *model = save_and_load(b, &archive);
  kiln_instance *instance = NULL;
  kiln_value *x = vector_of(2, data);
  (void)state;
  assert_ok(kiln_instance_create(model, &instance));
  for (int i = 1; i <= 3; i++) {
    kiln_value *result = NULL;
    float got[2] = {0};
    assert_ok(kiln_instance_call(instance, "forward", &x, 1, NULL, &result));
    kiln_value *first = take_first(result);
    assert_ok(kiln_value_copy_data(first, got, sizeof got));
    assert_true(got[0] == (float)(11 + i) && got[1] == (float)(12 + i));
    kiln_value_destroy(first);
  }
  kiln_value_destroy(x);
  kiln_instance_release(instance);
  kiln_model_release(model);
  free(archive.data);
  kiln_builder_destroy(b);
}

/* -- Traced -- */

static void test_traced(void **state) {
  static const float data[] = {1, -2, 3}, other[] = {-4, 5, 6};
  kiln_trace *trace = NULL;
  kiln_builder *b = NULL;
  kiln_value *x = vector_of(3, data), *y = NULL, *z = NULL, *two = int_of(2);
  const char *name = "lambda"; /* no name for an argument in source */
  (void)state;
  assert_ok(kiln_trace_begin(context, &x, &name, 1, &trace));
  const kiln_call_arg relu[1] = {{NULL, x}};
  assert_ok(kiln_operator_call(context, trace, "aten::relu", relu, 1, &y, 1, NULL));
  const kiln_call_arg mul[2] = {{NULL, y}, {NULL, two}};
  assert_ok(kiln_operator_call(context, trace, "aten::mul", mul, 2, &z, 1, NULL));
  assert_ok(kiln_trace_end(trace, &z, 1, &b));
  archive_bytes archive = {0};
  kiln_model *model = save_and_load(b, &archive);
  assert_string_equal(kiln_model_method_schema(model, "forward"),
                      "forward(Tensor lambda0) -> Tensor");
  kiln_value *again = vector_of(3, other);
  assert_runs(model, &again, 1, "tensor([0., 10., 12.], dtype=float32)");
  kiln_value_destroy(again);
  kiln_value_destroy(x);
  kiln_value_destroy(y);
  kiln_value_destroy(z);
  kiln_value_destroy(two);
  kiln_model_release(model);
  free(archive.data);
  kiln_builder_destroy(b);
}

/* -- What cannot be saved -- */

static void test_refused(void **state) {
  kiln_builder *b = NULL;
  kiln_var n, f;
  archive_bytes archive = {0};
  (void)state;
  assert_ok(kiln_builder_create(context, &b));
  assert_ok(kiln_builder_input(b, "n", "int", &n));
  assert_error(kiln_builder_save_to(b, take_bytes, &archive, NULL), KILN_INVALID_ARGUMENT,
               "returns nothing yet");
  assert_error(kiln_builder_save(b, "", NULL), KILN_INVALID_ARGUMENT, "returns nothing yet");
  /* neg of an int by its name is neg.int. */
  const kiln_builder_arg arg = {.var = n};
  assert_ok(kiln_builder_call(b, "aten::neg.Scalar", &arg, 1, &f, 1, NULL));
  assert_ok(kiln_builder_return(b, &f, 1));
  assert_error(kiln_builder_save_to(b, take_bytes, &archive, NULL), KILN_UNSUPPORTED,
               "aten::neg.Scalar");
  assert_null(archive.data);
  kiln_builder_destroy(b);
}

/* -- Memory -- */

static kiln_status *save_all(kiln_mem *mem, void *arg) {
  archive_bytes archive = {0};
  (void)mem;
  kiln_status *status = kiln_builder_save_to(arg, take_bytes, &archive, NULL);
  free(archive.data);
  return status;
}

static void test_memory(void **state) {
  (void)state;
  kiln_builder *b = build_counter();
  kiln_status_destroy(save_all(NULL, b)); /* types that it makes stay with the context */
  sweep__run(context->env->mem, save_all, b, true);
  kiln_builder_destroy(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_text),    cmocka_unit_test(test_built),  cmocka_unit_test(test_traced),
      cmocka_unit_test(test_refused), cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
