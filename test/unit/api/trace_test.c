/* trace_test.c: operators called by the host, with and without a trace; what was recorded, printed
 * and run on other values. Expected numbers are worked out by hand. */
#include "api/internal.h"
#include "test/unit/api/built.h"
#include "test/unit/api/values.h"
#include "test/unit/sweep.h"

static kiln_value *tensor(float a, float b, float c, float d) {
  return matrix_of(2, 2, (const float[]){a, b, c, d});
}

/* A call with one result; y may be NULL. */
static kiln_value *call(kiln_trace *trace, const char *op, const kiln_value *x,
                        const kiln_value *y) {
  const kiln_call_arg args[2] = {{NULL, x}, {NULL, y}};
  kiln_value *result = NULL;
  int count = 0;
  assert_ok(kiln_operator_call(context, trace, op, args, y ? 2 : 1, &result, 1, &count));
  assert_int_equal(count, 1);
  return result;
}

/* The builder is gone. */
static void assert_runs(kiln_builder *b, kiln_value *const *args, int count, const char *want) {
  kiln_model *model = finish_model(b);
  kiln_instance *instance = instance_of(model);
  assert_calls(instance, args, count, 3, want);
  kiln_instance_release(instance);
  kiln_model_release(model);
}

static void test_eager(void **state) {
  kiln_value *x = tensor(1, -2, 3, -4), *two = int_of(2), *y, *results[2] = {NULL};
  (void)state;
  y = call(NULL, "aten::relu", x, NULL);
  assert_prints(y, "tensor([[1., 0.],\n        [3., 0.]], dtype=float32)");
  kiln_value_destroy(y);
  /* other and alpha as keywords, the overload chosen by the types. */
  const kiln_call_arg args[3] = {{NULL, x}, {"other", x}, {"alpha", two}};
  assert_ok(kiln_operator_call(context, NULL, "aten::add", args, 3, results, 1, NULL));
  assert_prints(results[0], "tensor([[3., -6.],\n        [9., -12.]], dtype=float32)");
  kiln_value_destroy(results[0]);
  /* Two results. */
  kiln_value *one = int_of(1);
  const kiln_call_arg max[2] = {{NULL, x}, {NULL, one}};
  int count = 0;
  assert_ok(kiln_operator_call(context, NULL, "aten::max", max, 2, results, 2, &count));
  assert_int_equal(count, 2);
  assert_prints(results[0], "tensor([1., 3.], dtype=float32)");
  assert_prints(results[1], "tensor([0, 0], dtype=int64)");
  kiln_value_destroy(results[0]);
  kiln_value_destroy(results[1]);
  /* In place. */
  y = call(NULL, "aten::neg_", x, NULL);
  assert_prints(x, "tensor([[-1., 2.],\n        [-3., 4.]], dtype=float32)");
  kiln_value_destroy(y);
  /* Ints. */
  kiln_value *minus = int_of(-7);
  y = call(NULL, "aten::floordiv", minus, two);
  assert_prints(y, "-4");
  kiln_value_destroy(y);
  kiln_value_destroy(minus);
  kiln_value_destroy(one);
  kiln_value_destroy(two);
  kiln_value_destroy(x);
}

static void test_eager_refused(void **state) {
  kiln_value *x = tensor(1, 2, 3, 4), *out = NULL, *five = int_of(5);
  const kiln_call_arg one[1] = {{NULL, x}}, bad[2] = {{NULL, x}, {NULL, five}};
  const kiln_call_arg late[2] = {{"self", x}, {NULL, x}};
  (void)state;
  assert_error(kiln_operator_call(context, NULL, "aten::nosuch", one, 1, &out, 1, NULL),
               KILN_NOT_FOUND, "aten::nosuch");
  assert_error(kiln_operator_call(context, NULL, "aten::matmul", one, 1, &out, 1, NULL),
               KILN_INVALID_ARGUMENT, "do not fit");
  assert_error(kiln_operator_call(context, NULL, "aten::softmax", late, 2, &out, 1, NULL),
               KILN_INVALID_ARGUMENT, "after a keyword");
  assert_error(kiln_operator_call(context, NULL, "aten::unsqueeze", bad, 2, &out, 1, NULL),
               KILN_OP_ERROR, "out of range");
  assert_error(kiln_operator_call(context, NULL, "aten::relu", one, 1, NULL, 0, NULL),
               KILN_INVALID_ARGUMENT, "room for 0");
  assert_null(out);
  kiln_value_destroy(five);
  kiln_value_destroy(x);
}

/* Dimension 0 of a tensor without dimensions may be asked for, but has no size. */
static void test_no_dimensions(void **state) {
  const float five = 5;
  kiln_value *x = NULL, *list = NULL, *out = NULL, *zero = int_of(0);
  (void)state;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 0, NULL, &five, &x));
  assert_ok(kiln_value_list(context, (kiln_value *const[]){zero, zero}, 2, &list));
  const kiln_call_arg unflatten[3] = {{NULL, x}, {NULL, zero}, {NULL, list}};
  const kiln_call_arg roll[3] = {{NULL, x}, {NULL, list}, {NULL, list}};
  assert_error(kiln_operator_call(context, NULL, "aten::unflatten", unflatten, 3, &out, 1, NULL),
               KILN_OP_ERROR, "tensor has no dimensions");
  assert_error(kiln_operator_call(context, NULL, "aten::roll", roll, 3, &out, 1, NULL),
               KILN_OP_ERROR, "tensor has no dimensions");
  assert_null(out);
  kiln_value_destroy(list);
  kiln_value_destroy(zero);
  kiln_value_destroy(x);
}

/* relu(x @ x + c) with c unknown to the trace: a constant. */
static void test_trace(void **state) {
  kiln_value *x = tensor(1, 2, 0, 1), *c = tensor(-1, 0, 0, -1), *other = tensor(0, 1, 1, 0);
  kiln_trace *trace = NULL;
  kiln_builder *b = NULL;
  const char *names[1] = {"x"};
  (void)state;
  assert_ok(kiln_trace_begin(context, &x, names, 1, &trace));
  kiln_value *product = call(trace, "aten::matmul", x, x); /* [[1 4] [0 1]] */
  kiln_value *sum = call(trace, "aten::add", product, c);
  kiln_value *out = call(trace, "aten::relu", sum, NULL);
  kiln_value *unused = call(NULL, "aten::neg", out, NULL); /* not recorded */
  assert_prints(out, "tensor([[0., 4.],\n        [0., 0.]], dtype=float32)");
  assert_ok(kiln_trace_end(trace, &out, 1, &b));
  assert_text(b, "graph(%self : __torch__.Graph,\n"
                 "      %x : Tensor):\n"
                 "  %2 : Tensor = aten::matmul(%x, %x)\n"
                 "  %3 : Float(2, 2, strides=[2, 1], requires_grad=0, device=cpu) = "
                 "prim::Constant[value={[[-1., 0.], [0., -1.]]}]()\n"
                 "  %4 : int = prim::Constant[value=1]()\n"
                 "  %5 : Tensor = aten::add(%2, %3, %4)\n"
                 "  %6 : Tensor = aten::relu(%5)\n"
                 "  return (%6)\n");
  /* [[1 0] [0 1]] + c = 0; the host's later changes of c are not seen. */
  kiln_value_destroy(call(NULL, "aten::add_", c, x));
  assert_runs(b, &other, 1, "tensor([[0., 0.],\n        [0., 0.]], dtype=float32)");
  kiln_value_destroy(unused);
  kiln_value_destroy(out);
  kiln_value_destroy(sum);
  kiln_value_destroy(product);
  kiln_value_destroy(other);
  kiln_value_destroy(c);
  kiln_value_destroy(x);
}

/* Numbers that operators gave flow on; elements of a list are known by what they are; an unpacking
 * that nobody used is not there. */
static void test_flow(void **state) {
  kiln_value *x = tensor(1, 2, 3, 4), *zero = int_of(0), *two = int_of(2), *item = NULL;
  const float data[6] = {1, 2, 3, 4, 5, 6};
  const int64_t sizes[2] = {3, 2};
  kiln_value *other = NULL;
  kiln_trace *trace = NULL;
  kiln_builder *b = NULL;
  (void)state;
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F32, 2, sizes, data, &other));
  assert_ok(kiln_trace_begin(context, &x, NULL, 1, &trace));
  kiln_value *rows = call(trace, "aten::size", x, zero);
  kiln_value *scaled = call(trace, "aten::mul", x, rows); /* 2x */
  const kiln_call_arg chunk[3] = {{NULL, scaled}, {NULL, two}, {"dim", int_of(1)}};
  kiln_value *list = NULL;
  assert_ok(kiln_operator_call(context, trace, "aten::chunk", chunk, 3, &list, 1, NULL));
  assert_ok(kiln_value_item(list, 1, &item)); /* [[4] [8]] */
  kiln_value *sum = call(trace, "aten::sum", item, NULL);
  kiln_value *unused = NULL;
  assert_ok(kiln_operator_call(context, trace, "aten::chunk", chunk, 2, &unused, 1, NULL));
  kiln_value *results[2] = {sum, rows};
  assert_ok(kiln_trace_end(trace, results, 2, &b));
  char *text = NULL;
  assert_ok(kiln_builder_print(b, 3, &text));
  assert_non_null(strstr(text, "prim::ListUnpack"));
  assert_null(strstr(strstr(text, "prim::ListUnpack") + 1, "prim::ListUnpack"));
  kiln_text_free(text);
  /* 3 rows: 3 * (2 + 4 + 6). */
  assert_runs(b, &other, 1, "(tensor(36., dtype=float32), 3)");
  kiln_value_destroy((kiln_value *)(uintptr_t)chunk[2].value);
  kiln_value *all[] = {unused, sum, item, list, scaled, rows, other, two, zero, x};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) kiln_value_destroy(all[i]);
}

/* A call that fails is not in the trace, which goes on. */
static void test_failure(void **state) {
  kiln_value *x = tensor(1, 2, 3, 4), *five = int_of(5), *out = NULL;
  const kiln_call_arg bad[2] = {{NULL, x}, {NULL, five}};
  kiln_trace *trace = NULL;
  kiln_builder *b = NULL;
  (void)state;
  assert_ok(kiln_trace_begin(context, &x, NULL, 1, &trace));
  assert_error(kiln_operator_call(context, trace, "aten::unsqueeze", bad, 2, &out, 1, NULL),
               KILN_OP_ERROR, "out of range");
  out = call(trace, "aten::add", x, five);
  assert_ok(kiln_trace_end(trace, &out, 1, &b));
  assert_text(b, "graph(%self : __torch__.Graph,\n"
                 "      %x0 : Tensor):\n"
                 "  %4 : int = prim::Constant[value=5]()\n"
                 "  %5 : int = prim::Constant[value=1]()\n"
                 "  %6 : Tensor = aten::add(%x0, %4, %5)\n"
                 "  return (%6)\n");
  assert_runs(b, &x, 1, "tensor([[6., 7.],\n        [8., 9.]], dtype=float32)");
  kiln_value_destroy(out);
  /* A trace without an end. */
  assert_ok(kiln_trace_begin(context, &x, NULL, 1, &trace));
  kiln_value_destroy(call(trace, "aten::relu", x, NULL));
  kiln_trace_destroy(trace);
  kiln_value_destroy(five);
  kiln_value_destroy(x);
}

/* The N-th request for memory fails, for each N. */
static kiln_status *trace_once(kiln_mem *mem, void *arg) {
  kiln_value *x = arg, *y = NULL, *z = NULL;
  kiln_trace *trace = NULL;
  kiln_builder *b = NULL;
  kiln_model *model = NULL;
  (void)mem;
  kiln_status *status = kiln_trace_begin(context, &x, NULL, 1, &trace);
  const kiln_call_arg args[2] = {{NULL, x}, {NULL, x}};
  if (!status) status = kiln_operator_call(context, trace, "aten::add", args, 2, &y, 1, NULL);
  const kiln_call_arg next[1] = {{NULL, y}};
  if (!status) status = kiln_operator_call(context, trace, "aten::relu", next, 1, &z, 1, NULL);
  if (!status) {
    status = kiln_trace_end(trace, &z, 1, &b);
  } else {
    kiln_trace_destroy(trace);
  }
  if (!status) status = kiln_builder_finish(b, &model);
  kiln_model_release(model);
  kiln_builder_destroy(b);
  kiln_value_destroy(z);
  kiln_value_destroy(y);
  return status;
}

static void test_memory(void **state) {
  kiln_value *x = tensor(1, 2, 3, 4);
  (void)state;
  sweep__run(context->env->mem, trace_once, x, false);
  kiln_value_destroy(x);
}

/* Kernels that compute never see a dtype that they do not know; those that move elements do. */
static void test_rare_dtypes(void **state) {
  (void)state;
  kiln_value *f8 = NULL, *result = NULL;
  const int64_t sizes[] = {3};
  const uint8_t ones[] = {0x38, 0x38, 0x38};
  assert_ok(kiln_value_tensor(context, KILN_DTYPE_F8E4M3, 1, sizes, ones, &f8));
  const kiln_call_arg arg[] = {{NULL, f8}};
  int count = 0;
  static const char *const computes[] = {
      "aten::sum",    "aten::median", "aten::relu", "aten::exp",  "aten::neg",
      "aten::argmax", "aten::sqrt",   "aten::var",  "aten::tril", "aten::special_erf"};
  for (size_t i = 0; i < sizeof computes / sizeof *computes; i++) {
    assert_error(kiln_operator_call(context, NULL, computes[i], arg, 1, &result, 1, &count),
                 KILN_OP_ERROR, "not implemented for 'Float8_e4m3fn'");
  }
  static const char *const moves[] = {"aten::contiguous", "aten::detach", "aten::numel"};
  for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
    assert_ok(kiln_operator_call(context, NULL, moves[i], arg, 1, &result, 1, &count));
    kiln_value_destroy(result);
  }
  kiln_value_destroy(f8);
}

static void test_names(void **state) {
  static const char *const bad[] = {"", "a b", "%a", "\xc3\xa9", "1a", "a.b"};
  kiln_value *x[2] = {tensor(1, 2, 3, 4), tensor(1, 2, 3, 4)};
  kiln_trace *trace = NULL;
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_error(kiln_trace_begin(context, x, &bad[i], 1, &trace), KILN_INVALID_ARGUMENT,
                 "is no name");
    assert_null(trace);
  }
  const char *const same[2] = {"a", "a"}, *const second[2] = {"x1", NULL};
  assert_error(kiln_trace_begin(context, x, same, 2, &trace), KILN_INVALID_ARGUMENT,
               "there is an argument 'a' already");
  assert_error(kiln_trace_begin(context, x, second, 2, &trace), KILN_INVALID_ARGUMENT,
               "there is an argument 'x1' already");
  for (int i = 0; i < 2; i++) kiln_value_destroy(x[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rare_dtypes),   cmocka_unit_test(test_eager),
      cmocka_unit_test(test_eager_refused), cmocka_unit_test(test_no_dimensions),
      cmocka_unit_test(test_trace),         cmocka_unit_test(test_flow),
      cmocka_unit_test(test_failure),       cmocka_unit_test(test_memory),
      cmocka_unit_test(test_names),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
