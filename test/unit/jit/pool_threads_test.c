/* pool_threads_test.c: large pointwise, row and generated kernels give the same bits with 1, 2 and
 * 3 threads, and their threads are at work. */
#include "runtime/kernels/support.h"
#include "test/unit/jit/jit_support.h"

enum { MOST = 3 };

/* Element by element: plain, broadcast over rows, transposed, with conversion. */
static const char pointwise[] =
    "graph(%x : Tensor,\n"
    "      %y : Tensor,\n"
    "      %z : Tensor):\n"
    "  %1 : int = prim::Constant[value=1]()\n"
    "  %0 : int = prim::Constant[value=0]()\n"
    "  %7 : int = prim::Constant[value=7]()\n"
    "  %2 : float = prim::Constant[value=0.3]()\n"
    "  %a : Tensor = aten::mul(%x, %y)\n"
    "  %b : Tensor = aten::add(%a, %2, %1)\n"
    "  %c : Tensor = aten::tanh(%b)\n"
    "  %d : Tensor = aten::add(%c, %z, %1)\n"
    "  %e : Tensor = aten::transpose(%y, %0, %1)\n"
    "  %f : Tensor = aten::exp(%e)\n"
    "  %t : Tensor = aten::transpose(%x, %0, %1)\n"
    "  %g : Tensor = aten::sub(%f, %t, %1)\n"
    "  %h : Tensor = aten::gt(%x, %z)\n"
    "  %i : Tensor = aten::mul(%h, %y)\n"
    "  %l : (Tensor, Tensor, Tensor) = prim::TupleConstruct(%d, %g, %i)\n"
    "  return (%l)\n";

/* Sums of rows, columns, middles and all; softmax and layer norm of rows. */
static const char rows[] = "graph(%x : Tensor,\n"
                           "      %y : Tensor,\n"
                           "      %z : Tensor):\n"
                           "  %0 : int = prim::Constant[value=0]()\n"
                           "  %1 : int = prim::Constant[value=1]()\n"
                           "  %m : int = prim::Constant[value=-1]()\n"
                           "  %n : NoneType = prim::Constant()\n"
                           "  %k : bool = prim::Constant[value=0]()\n"
                           "  %d0 : int[] = prim::ListConstruct(%0)\n"
                           "  %d1 : int[] = prim::ListConstruct(%1)\n"
                           "  %a : Tensor = aten::sum(%x, %d1, %k, %n)\n"
                           "  %b : Tensor = aten::mean(%x, %d0, %k, %n)\n"
                           "  %c : Tensor = aten::sum(%y, %n)\n"
                           "  %d : Tensor = aten::var(%x, %d0, %k, %k)\n"
                           "  %e : Tensor = aten::amax(%y, %d1, %k)\n"
                           "  %f : Tensor = aten::softmax(%x, %m, %n)\n"
                           "  %s : Tensor = aten::sum(%f, %d0, %k, %n)\n"
                           "  %l : (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor) = "
                           "prim::TupleConstruct(%a, %b, %c, %d, %e, %s)\n"
                           "  return (%l)\n";

/* The bytes of a tuple's tensors. */
typedef struct bits {
  char *data;
  size_t size;
} bits;

static void add_bits(bits *b, kiln_ivalue tuple) {
  assert_int_equal(tuple.tag, KILN_TAG_TUPLE);
  for (int64_t i = 0; i < tuple.u.tuple->count; i++) {
    const kiln_tensor *t = tuple.u.tuple->items[i].u.tensor;
    size_t size = (size_t)t->numel * kiln_tensor_item_size(t);
    assert_true(size > 0);
    b->data = realloc(b->data, b->size + size);
    memcpy(b->data + b->size, kiln_tensor_data(t), size);
    b->size += size;
  }
  kiln_ivalue_release(tuple);
}

/* Results with so many threads: interpreted, then of the third call with the JIT. */
static bits run_model(const char *text, const char *codegen, int threads) {
  model m;
  bits b = {0};
  model_open(&m, text, (const char *[]){codegen, NULL});
  if (threads > 1) assert_ok(kiln_pool_create(threads, &m.env->pool));
  m.call->pool = m.env->pool;
  /* Sizes that no number of threads, lanes or grain divides. */
  kiln_ivalue args[3] = {make_matrix(&m, 331, 617, 0.013), make_matrix(&m, 331, 617, -0.021),
                         make_matrix(&m, 1, 617, 0.005)};
  assert_true(331 * 617 >= 2 * KILN_PW_GRAIN * MOST);
  add_bits(&b, call_plain(&m, args, 3));
  if (threads > 1) assert_int_equal(kiln__pool_started(m.env->pool), threads - 1);
  for (int i = 0; i < 2; i++) kiln_ivalue_release(call_model(&m, args, 3));
  add_bits(&b, call_model(&m, args, 3));
  assert_int_equal(counters(&m).compile_failures, 0);
  assert_true(counters(&m).compiled_runs > 0 || text == rows);
  for (int i = 0; i < 3; i++) kiln_ivalue_release(args[i]);
  model_close(&m);
  return b;
}

static void check_threads(const char *text, const char *codegen) {
  bits want = run_model(text, codegen, 1);
  for (int threads = 2; threads <= MOST; threads++) {
    bits got = run_model(text, codegen, threads);
    assert_int_equal(got.size, want.size);
    assert_memory_equal(got.data, want.data, want.size);
    free(got.data);
  }
  free(want.data);
}

static void pointwise_kernels_do_not_see_threads(void **state) {
  (void)state;
  check_threads(pointwise, "codegen=eval");
  check_threads(pointwise, "codegen=llvm");
}

static void row_kernels_do_not_see_threads(void **state) {
  (void)state;
  check_threads(rows, "codegen=eval");
}

/* An integer division by zero in one piece is seen by the caller. */
static void faults_come_back_from_threads(void **state) {
  (void)state;
  model m;
  model_open(&m,
             "graph(%x : Tensor,\n"
             "      %y : Tensor):\n"
             "  %1 : Tensor = aten::floor_divide(%x, %y)\n"
             "  return (%1)\n",
             NULL);
  assert_ok(kiln_pool_create(3, &m.env->pool));
  m.call->pool = m.env->pool;
  kiln_tensor *t[2];
  kiln_ivalue args[2], result = kiln_none();
  for (int k = 0; k < 2; k++) {
    assert_ok(kiln_tensor_create(m.env->mem, NULL, KILN_DTYPE_I64, 1, (int64_t[]){200000}, &t[k]));
    for (int i = 0; i < 200000; i++) ((int64_t *)t[k]->storage->data)[i] = i + 1;
    args[k] = kiln_of_tensor(t[k]);
  }
  m.call->jit = false;
  result = call_model(&m, args, 2);
  assert_int_equal(((const int64_t *)kiln_tensor_data(result.u.tensor))[199999], 1);
  kiln_ivalue_release(result);
  result = kiln_none();
  ((int64_t *)t[1]->storage->data)[123456] = 0;
  assert_error(kiln_jit_call(m.jit, m.call, m.function, args, 2, &result), KILN_OP_ERROR,
               "ZeroDivisionError");
  for (int k = 0; k < 2; k++) kiln_ivalue_release(args[k]);
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pointwise_kernels_do_not_see_threads),
      cmocka_unit_test(row_kernels_do_not_see_threads),
      cmocka_unit_test(faults_come_back_from_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
