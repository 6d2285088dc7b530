/* builder_test.c: graphs built by the host, read from text, and run. Expected numbers are worked
 * out by hand. */
#include "test/unit/api/built.h"
#include "test/unit/api/values.h"

/* -- Helpers -- */

static kiln_builder *make(void) { return create_builder(context); }

/* Makes the model and an instance of it; the builder is gone. */
static kiln_instance *finish(kiln_builder *b) {
  kiln_model *model = finish_model(b);
  kiln_instance *instance = instance_of(model);
  kiln_model_release(model);
  return instance;
}

/* -- Tests -- */

/* relu(x @ w + b) with alpha as a keyword: [1 2] @ [[1 0 -1], [0 1 1]] = [1 2 1]; minus 2 * 1. */
static void test_straight(void **state) {
  static const float w_data[] = {1, 0, -1, 0, 1, 1}, ones[] = {1, 1, 1}, x_data[] = {1, 2};
  kiln_value *w = matrix_of(2, 3, w_data), *bias = matrix_of(1, 3, ones),
             *x = matrix_of(1, 2, x_data);
  kiln_value *alpha = int_of(-2);
  kiln_builder *b = make();
  (void)state;
  kiln_var vx = input_of(b, "x", "Tensor"), vw = 0, sum = 0;
  assert_ok(kiln_builder_attribute(b, "w", w, &vw));
  kiln_var product = call_of(b, "aten::matmul", vx, vw);
  const kiln_builder_arg args[3] = {{.var = product}, {.value = bias}, {"alpha", 0, alpha}};
  assert_ok(kiln_builder_call(b, "aten::add", args, 3, &sum, 1, NULL));
  assert_string_equal(kiln_builder_type(b, sum), "Tensor");
  kiln_var out = call_of(b, "aten::relu", sum, 0);
  assert_ok(kiln_builder_return(b, &out, 1));
  assert_ok(kiln_builder_verify(b));
  assert_text(b, "graph(%self : __torch__.Graph,\n"
                 "      %x : Tensor):\n"
                 "  %w : Tensor = prim::GetAttr[name=\"w\"](%self)\n"
                 "  %3 : Tensor = aten::matmul(%x, %w)\n"
                 "  %4 : Float(1, 3, strides=[3, 1], requires_grad=0, device=cpu) = "
                 "prim::Constant[value={[[1., 1., 1.]]}]()\n"
                 "  %5 : int = prim::Constant[value=-2]()\n"
                 "  %6 : Tensor = aten::add(%3, %4, %5)\n"
                 "  %7 : Tensor = aten::relu(%6)\n"
                 "  return (%7)\n");
  kiln_instance *instance = finish(b);
  assert_calls(instance, &x, 1, 4, "tensor([[0., 0., 0.]], dtype=float32)");
  kiln_value *got = NULL;
  static const float small[] = {3, 5};
  kiln_value *y = matrix_of(1, 2, small); /* [3 5 2] - 2 */
  assert_calls(instance, &y, 1, 4, "tensor([[1., 3., 0.]], dtype=float32)");
  assert_ok(kiln_instance_get(instance, "w", &got));
  kiln_value_destroy(got);
  kiln_instance_release(instance);
  kiln_value_destroy(alpha);
  kiln_value_destroy(w);
  kiln_value_destroy(bias);
  kiln_value_destroy(x);
  kiln_value_destroy(y);
}

/* n! by a loop, and 10 more by a branch where n > 3. */
static void test_control(void **state) {
  kiln_builder *b = make();
  kiln_value *one = int_of(1), *three = int_of(3), *ten = int_of(10), *n = int_of(5);
  (void)state;
  kiln_var vn = input_of(b, "n", "int"), vone, vthree, vten, i, carried, next, total, outs[2];
  assert_ok(kiln_builder_constant(b, one, &vone));
  assert_ok(kiln_builder_constant(b, three, &vthree));
  assert_ok(kiln_builder_constant(b, ten, &vten));
  assert_ok(kiln_builder_loop(b, vn, 0, &vone, 1, &i, &carried));
  kiln_var k = call_of(b, "aten::add", i, vone);
  kiln_var product = call_of(b, "aten::mul", carried, k);
  assert_ok(kiln_builder_end_loop(b, 0, &product, 1, &total));
  assert_ok(kiln_builder_if(b, call_of(b, "aten::gt", vn, vthree)));
  kiln_var big = call_of(b, "aten::add", total, vten);
  assert_ok(kiln_builder_else(b, &big, 1));
  assert_ok(kiln_builder_end_if(b, &total, 1, &next));
  outs[0] = next;
  outs[1] = total;
  assert_ok(kiln_builder_return(b, outs, 2));
  assert_text(b, "graph(%self : __torch__.Graph,\n"
                 "      %n : int):\n"
                 "  %2 : int = prim::Constant[value=1]()\n"
                 "  %3 : int = prim::Constant[value=3]()\n"
                 "  %4 : int = prim::Constant[value=10]()\n"
                 "  %5 : bool = prim::Constant[value=1]()\n"
                 "  %11 : int = prim::Loop(%n, %5, %2)\n"
                 "    block0(%6 : int, %7 : int):\n"
                 "      %8 : int = aten::add(%6, %2)\n"
                 "      %9 : int = aten::mul(%7, %8)\n"
                 "      %10 : bool = prim::Constant[value=1]()\n"
                 "      -> (%10, %9)\n"
                 "  %12 : bool = aten::gt(%n, %3)\n"
                 "  %14 : int = prim::If(%12)\n"
                 "    block0():\n"
                 "      %13 : int = aten::add(%11, %4)\n"
                 "      -> (%13)\n"
                 "    block1():\n"
                 "      -> (%11)\n"
                 "  %15 : (int, int) = prim::TupleConstruct(%14, %11)\n"
                 "  return (%15)\n");
  kiln_instance *instance = finish(b);
  assert_calls(instance, &n, 1, 4, "(130, 120)");
  assert_calls(instance, &three, 1, 4, "(6, 6)");
  kiln_instance_release(instance);
  kiln_value_destroy(one);
  kiln_value_destroy(three);
  kiln_value_destroy(ten);
  kiln_value_destroy(n);
}

/* An attribute that each call changes. */
static void test_state(void **state) {
  kiln_builder *b = make();
  kiln_value *zero = int_of(0), *two = int_of(2), *result = NULL;
  (void)state;
  kiln_var count = 0, again = 0;
  assert_ok(kiln_builder_attribute(b, "count", zero, &count));
  const kiln_builder_arg args[2] = {{.var = count}, {.value = two}};
  kiln_var next = 0;
  assert_ok(kiln_builder_call(b, "aten::add.int", args, 2, &next, 1, NULL));
  assert_ok(kiln_builder_set(b, "count", next));
  assert_ok(kiln_builder_get(b, "count", &again));
  assert_ok(kiln_builder_return(b, &again, 1));
  kiln_instance *instance = finish(b);
  for (int i = 1; i <= 3; i++) {
    assert_ok(kiln_instance_call(instance, "forward", NULL, 0, NULL, &result));
    assert_int_equal(kiln_value_as_int(result), 2 * i);
    kiln_value_destroy(result);
  }
  kiln_instance_release(instance);
  kiln_value_destroy(zero);
  kiln_value_destroy(two);
}

/* What PyTorch's compiler inserts: an int for int[2], collected and converted arguments. */
static void test_fits(void **state) {
  kiln_builder *b = make();
  kiln_value *two = int_of(2);
  static const float ones[] = {1, 1, 1, 1};
  kiln_value *x = matrix_of(2, 2, ones);
  (void)state;
  kiln_var vx = input_of(b, "x", "Tensor"), size = 0, list, made, viewed;
  assert_ok(kiln_builder_constant(b, two, &size));
  const kiln_builder_arg zargs[2] = {{.var = size}, {.value = two}};
  assert_ok(kiln_builder_call(b, "aten::zeros", zargs, 2, &made, 1, NULL)); /* zeros(2, 2) */
  list = call_of(b, "prim::ListConstruct", vx, made);
  assert_string_equal(kiln_builder_type(b, list), "Tensor[]");
  kiln_var stacked = call_of(b, "aten::cat", list, 0);
  const kiln_builder_arg view[2] = {{.var = stacked}, {.value = NULL}};
  /* None is no int[]: refused, and nothing stays. */
  assert_error(kiln_builder_call(b, "aten::view", view, 2, &viewed, 1, NULL), KILN_INVALID_ARGUMENT,
               "aten::view");
  assert_ok(kiln_builder_return(b, &stacked, 1));
  kiln_instance *instance = finish(b);
  assert_calls(instance, &x, 1, 4,
               "tensor([[1., 1.],\n        [1., 1.],\n        [0., 0.],\n        [0., 0.]], "
               "dtype=float32)");
  kiln_instance_release(instance);
  kiln_value_destroy(two);
  kiln_value_destroy(x);
}

static void test_refused(void **state) {
  kiln_builder *b = make();
  kiln_model *model = NULL;
  char *before = NULL;
  (void)state;
  kiln_var x = input_of(b, "x", "Tensor"), out = 0, i = 0, carried = 0;
  assert_ok(kiln_builder_print(b, 3, &before));
  assert_error(kiln_builder_input(b, "x", "Tensor", &out), KILN_INVALID_ARGUMENT, "already");
  assert_error(kiln_builder_input(b, "y.1", "Tensor", &out), KILN_INVALID_ARGUMENT, "no name");
  assert_error(kiln_builder_input(b, "y", "Tensr", &out), KILN_INVALID_ARGUMENT, "type");
  assert_error(kiln_builder_input(b, "y", "Tensor x", &out), KILN_INVALID_ARGUMENT, "no type");
  assert_error(kiln_builder_get(b, "w", &out), KILN_NOT_FOUND, "attribute 'w'");
  const kiln_builder_arg unknown[1] = {{.var = 77}}, one_arg[1] = {{.var = x}};
  const kiln_builder_arg late[2] = {{"x", x, NULL}, {NULL, x, NULL}};
  const kiln_builder_arg wrong[2] = {{.var = x}, {"beta", x, NULL}};
  assert_error(kiln_builder_call(b, "aten::relu", unknown, 1, &out, 1, NULL), KILN_INVALID_ARGUMENT,
               "no value 77");
  assert_error(kiln_builder_call(b, "aten::nosuch", one_arg, 1, &out, 1, NULL), KILN_NOT_FOUND,
               "aten::nosuch");
  assert_error(kiln_builder_call(b, "aten::relu", one_arg, 1, &out, 0, NULL), KILN_INVALID_ARGUMENT,
               "room for 0");
  assert_error(kiln_builder_call(b, "aten::relu", late, 2, &out, 1, NULL), KILN_INVALID_ARGUMENT,
               "after a keyword");
  assert_error(kiln_builder_call(b, "aten::add", wrong, 2, &out, 1, NULL), KILN_INVALID_ARGUMENT,
               "do not fit");
  assert_error(kiln_builder_call(b, "prim::If", one_arg, 1, &out, 1, NULL), KILN_INVALID_ARGUMENT,
               "by its name");
  assert_error(kiln_builder_if(b, x), KILN_INVALID_ARGUMENT, "bool");
  assert_error(kiln_builder_else(b, NULL, 0), KILN_INVALID_ARGUMENT, "no branch");
  assert_error(kiln_builder_end_loop(b, 0, NULL, 0, NULL), KILN_INVALID_ARGUMENT, "no loop");
  assert_text(b, before); /* nothing of it stays */
  assert_error(kiln_builder_finish(b, &model), KILN_INVALID_ARGUMENT, "returns nothing");
  assert_ok(kiln_builder_loop(b, 0, 0, &x, 1, &i, &carried));
  assert_error(kiln_builder_return(b, &x, 1), KILN_INVALID_ARGUMENT, "open");
  assert_error(kiln_builder_verify(b), KILN_INVALID_ARGUMENT, "open");
  assert_error(kiln_builder_end_loop(b, 0, &i, 1, &out), KILN_INVALID_ARGUMENT, "change its type");
  assert_error(kiln_builder_end_loop(b, 0, NULL, 0, NULL), KILN_INVALID_ARGUMENT, "carries 1");
  assert_ok(kiln_builder_end_loop(b, 0, &carried, 1, &out));
  const kiln_builder_arg inner[1] = {{.var = carried}};
  assert_error(kiln_builder_call(b, "aten::relu", inner, 1, &out, 1, NULL), KILN_INVALID_ARGUMENT,
               "closed");
  kiln_text_free(before);
  kiln_builder_destroy(b);
}

/* -- Text -- */

static kiln_status *parse(const char *text, kiln_builder **out) {
  return kiln_builder_parse(context, text, strlen(text), out);
}

static void test_parse(void **state) {
  /* Sizes that a text claims do not bind: 2 rows are told, 1 comes. */
  static const float data[] = {1, 7};
  kiln_builder *b = NULL;
  (void)state;
  static const char good[] =
      "graph(%x : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu),\n"
      "      %n.1 : int):\n"
      "  %2 : bool = prim::Constant[value=0]()\n"
      "  %y : Tensor, %i : Tensor = aten::max(%x, %n.1, %2)\n"
      "  return (%y, %i)\n";
  assert_ok(parse(good, &b));
  assert_text(b, "graph(%self : __torch__.Graph,\n"
                 "      %x : Tensor,\n"
                 "      %n.1 : int):\n"
                 "  %3 : bool = prim::Constant[value=0]()\n"
                 "  %y : Tensor, %i : Tensor = aten::max(%x, %n.1, %3)\n"
                 "  return (%y, %i)\n");
  kiln_value *args[2] = {matrix_of(1, 2, data), int_of(1)};
  kiln_instance *instance = finish(b);
  assert_calls(instance, args, 2, 4, "(tensor([7.], dtype=float32), tensor([1], dtype=int64))");
  kiln_instance_release(instance);
  kiln_value_destroy(args[0]);
  kiln_value_destroy(args[1]);
}

static void test_parse_refused(void **state) {
  static const struct {
    const char *text, *words;
    kiln_code code;
  } cases[] = {
      {"graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%y)\n  return (%1)\n", "line 2",
       KILN_INVALID_FILE},
      {"", "line 1", KILN_INVALID_FILE},
      {"graph(%x : Tensor):\n  %1 : Tensor = prim::profile[profiled_type=Tensor, seen_none=0](%x)\n"
       "  return (%1)\n",
       "prim::profile", KILN_UNSUPPORTED},
      {"graph(%self : __torch__.M, %x : Tensor):\n  %1 : Tensor = "
       "prim::CallMethod[name=\"f\"](%self, %x)\n"
       "  return (%1)\n",
       "prim::CallMethod", KILN_UNSUPPORTED},
      {"graph(%x : Tensor):\n  %1 : Tensor = prim::G_0(%x)\n  return (%1)\n"
       "with prim::G_0 = graph(%x : Tensor):\n  return (%x)\n",
       "prim::G", KILN_UNSUPPORTED},
  };
  kiln_builder *b = NULL;
  kiln_model *model = NULL;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_error(parse(cases[i].text, &b), cases[i].code, cases[i].words);
    assert_null(b);
  }
  /* Types that the operators do not give. */
  static const char *const lies[] = {
      "graph(%t : (int, Tensor)):\n  %1 : int, %2 : int = prim::TupleUnpack(%t)\n  return (%2)\n",
      "graph(%x : Tensor):\n  %1 : int = aten::relu(%x)\n  return (%1)\n",
      "graph(%x : Tensor[]):\n  %1 : int = prim::ListUnpack(%x)\n  return (%1)\n",
      "graph(%self : __torch__.M):\n  %1 : int = prim::GetAttr[name=\"w\"](%self)\n  return (%1)\n",
  };
  for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
    kiln_status *status = parse(lies[i], &b);
    if (!status) {
      status = kiln_builder_finish(b, &model);
      kiln_builder_destroy(b);
    }
    assert_non_null(status);
    kiln_status_destroy(status);
  }
}

/* A module's attribute is given after its graph was read. */
static void test_parse_attribute(void **state) {
  static const char text[] = "graph(%self : __torch__.M,\n      %x : Tensor):\n"
                             "  %w : Tensor = prim::GetAttr[name=\"w\"](%self)\n"
                             "  %2 : Tensor = aten::mul(%x, %w)\n  return (%2)\n";
  static const float data[] = {2, 3};
  kiln_builder *b = NULL;
  kiln_value *w = matrix_of(1, 2, data), *five = int_of(5);
  kiln_model *model = NULL;
  (void)state;
  assert_ok(parse(text, &b));
  assert_error(kiln_builder_finish(b, &model), KILN_INVALID_ARGUMENT, "'w'");
  assert_ok(kiln_builder_attribute(b, "w", w, NULL));
  kiln_instance *instance = finish(b);
  assert_calls(instance, &w, 1, 4, "tensor([[4., 9.]], dtype=float32)");
  kiln_instance_release(instance);
  assert_ok(parse(text, &b));
  assert_ok(kiln_builder_attribute(b, "w", five, NULL));
  assert_error(kiln_builder_finish(b, &model), KILN_INVALID_ARGUMENT, "'w'");
  kiln_builder_destroy(b);
  kiln_value_destroy(w);
  kiln_value_destroy(five);
}

/* What a text only claims is checked when it runs. */
static void test_claims(void **state) {
  static const char cast[] = "graph(%x : Any):\n  %s : str = prim::unchecked_cast(%x)\n"
                             "  %y : str = aten::add(%s, %s)\n  return (%y)\n";
  static const char unwrap[] = "graph(%x : int?):\n"
                               "  %i : int = prim::unchecked_unwrap_optional(%x)\n"
                               "  %y : int = aten::add(%i, %i)\n  return (%y)\n";
  static const char nothing[] =
      "graph():\n  %s : str = prim::Uninitialized()\n  %y : str = aten::add(%s, %s)\n"
      "  %t : (int, Tensor[]) = prim::Uninitialized()\n  %i : int, %l : Tensor[] = "
      "prim::TupleUnpack(%t)\n  %n : int = aten::len(%l)\n  return (%y, %i, %n)\n";
  kiln_builder *b = NULL;
  kiln_value *text = NULL, *five = int_of(5), *none = NULL, *result = NULL;
  (void)state;
  assert_ok(kiln_value_string(context, "ab", 2, &text));
  assert_ok(kiln_value_none(context, &none));
  assert_ok(parse(cast, &b));
  kiln_instance *instance = finish(b);
  assert_calls(instance, &text, 1, 4, "'abab'");
  assert_error(kiln_instance_call(instance, "forward", &five, 1, NULL, &result), KILN_RAISED,
               "cast to str");
  kiln_instance_release(instance);
  assert_ok(parse(unwrap, &b));
  instance = finish(b);
  assert_calls(instance, &five, 1, 4, "10");
  kiln_status *status = kiln_instance_call(instance, "forward", &none, 1, NULL, &result);
  assert_non_null(status);
  kiln_status_destroy(status);
  kiln_instance_release(instance);
  assert_ok(parse(nothing, &b));
  instance = finish(b);
  assert_calls(instance, NULL, 0, 4, "('', 0, 0)");
  kiln_instance_release(instance);
  kiln_value_destroy(text);
  kiln_value_destroy(five);
  kiln_value_destroy(none);
}

static void test_finished(void **state) {
  kiln_builder *b = make();
  kiln_model *model = NULL;
  (void)state;
  kiln_var x = input_of(b, "x", "Tensor");
  kiln_value *one = int_of(1);
  assert_ok(kiln_builder_attribute(b, "one", one, NULL));
  kiln_value_destroy(one);
  assert_ok(kiln_builder_return(b, &x, 1));
  assert_ok(kiln_builder_finish(b, &model));
  assert_string_equal(kiln_model_method_schema(model, "forward"), "forward(Tensor x) -> Tensor");
  kiln_model_release(model); /* before the builder, which has nothing of it any more */
  assert_error(kiln_builder_verify(b), KILN_INVALID_ARGUMENT, "gave its model away");
  assert_error(kiln_builder_if(b, x), KILN_INVALID_ARGUMENT, "gave its model away");
  assert_error(kiln_builder_end_if(b, NULL, 0, NULL), KILN_INVALID_ARGUMENT, "no branch");
  assert_null(kiln_builder_type(b, x));
  kiln_builder_destroy(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_straight),      cmocka_unit_test(test_control),
      cmocka_unit_test(test_state),         cmocka_unit_test(test_fits),
      cmocka_unit_test(test_refused),       cmocka_unit_test(test_parse),
      cmocka_unit_test(test_parse_refused), cmocka_unit_test(test_parse_attribute),
      cmocka_unit_test(test_finished),      cmocka_unit_test(test_claims),
  };
  return cmocka_run_group_tests(tests, open_eval, close_context);
}
