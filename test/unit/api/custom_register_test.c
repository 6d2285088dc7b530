/* custom_register_test.c: registering operators of the host's own: what is refused, what is listed,
 * contexts that nest, a thread that registers while another loads. */
#include <pthread.h>

#include "kiln/debug.h"
#include "test/unit/api/custom_fixture.h"

/* -- Registering -- */

static kiln_status *never(void *user, kiln_op_call *call) {
  (void)user;
  (void)call;
  return kiln_op_error(KILN_INTERNAL, "it ran");
}

static void test_refused(void **state) {
  static const struct {
    const char *schema, *words;
  } bad[] = {
      {"mine::f", "expected '('"},
      {"", "expected a name"},
      {"mine::f(Tensor x)", "expected '->'"},
      {"mine::f(Tensr x) -> Tensor", "unknown type"},
      {"mine::f(tensor x) -> Tensor", "unknown type of argument 'x'"},
      {"mine::f(Tensor x) -> t", "unknown type of a result"},
      {"mine::f(Tensor x) -> Tensor !", "unexpected text"},
      {"f(Tensor x) -> Tensor", "namespace::name"},
      {"a::b::f(Tensor x) -> Tensor", "namespace::name"},
      {"::f(Tensor x) -> Tensor", "namespace::name"},
      {"mine::(Tensor x) -> Tensor", "namespace::name"},
      {"mine::f(Tensor) -> Tensor", "no name"},
      {"mine::f(Tensor x, Tensor x) -> Tensor", "two arguments 'x'"},
      {"mine::f(Tensor x, ...) -> Tensor", "'...'"},
      {"mine::f(Tensor x) -> ...", "'...'"},
      {"mine::f(int[](a!) x) -> ()", "only tensors can be marked"},
      {"mine::f(Tensor(a!)[] x) -> Tensor(b)", "no argument has the alias set"},
      {"mine::f(int x=1.5) -> ()", "the default is of another type"},
      {"mine::f(Tensor x=3) -> ()", "the default is of another type"},
      {"mine::f(int x=1, int y) -> ()", "without default"},
      {"mine::f(int x) -> (int, int, int, int, int, int, int, int, int)", "more than 8 results"},
      {"aten::relu_cap(Tensor x) -> Tensor", "cannot add to the namespace 'aten'"},
      {"prim::mine(Tensor x) -> Tensor", "cannot add to the namespace 'prim'"},
      {"aten::relu.mine(Tensor x, int y) -> Tensor", "aten::relu is Kiln's own"},
      {"mine::good(int y) -> ()", "mine::good is registered already"},
  };
  custom_count count = {0};
  subject h;
  (void)state;
  open_context(&h, "on");
  kiln_op_spec spec = {.struct_size = sizeof spec,
                       .schema = "mine::good(Tensor x) -> Tensor",
                       .kernel = never,
                       .user = &count};
  assert_ok(kiln_op_register(h.context, &spec));
  size_t bytes = 0;
  for (size_t i = 0; i < 2 * (sizeof bad / sizeof *bad); i++) {
    if (i == sizeof bad / sizeof *bad) bytes = kiln_context_bytes(h.context);
    const size_t at = i % (sizeof bad / sizeof *bad);
    spec.schema = bad[at].schema;
    assert_error(kiln_op_register(h.context, &spec), KILN_INVALID_ARGUMENT, bad[at].words);
    assert_string_equal(kiln_op_registered(h.context, 0), "mine::good(Tensor x) -> Tensor");
    assert_null(kiln_op_registered(h.context, 1));
  }
  assert_int_equal(kiln_context_bytes(h.context), bytes); /* all that they name was there */
  spec.schema = "mine::other() -> ()";
  spec.struct_size = 1;
  assert_error(kiln_op_register(h.context, &spec), KILN_INVALID_ARGUMENT, "kiln_op_spec");
  spec.struct_size = sizeof spec;
  spec.flags = 1u << 20;
  assert_error(kiln_op_register(h.context, &spec), KILN_INVALID_ARGUMENT, "unknown flags");
  spec.flags = 0;
  spec.kernel = NULL;
  assert_error(kiln_op_register(h.context, &spec), KILN_INVALID_ARGUMENT, "needs");
  assert_error(kiln_op_register(h.context, NULL), KILN_INVALID_ARGUMENT, "needs");
  spec.kernel = never;
  spec.schema =
      "mine::good.more(Tensor(a!)[] xs, *, int[2] n=1, str s=\"a\", Scalar? k=None) -> ()";
  assert_ok(kiln_op_register(h.context, &spec));
  assert_string_equal(kiln_op_registered(h.context, 1), spec.schema);
  assert_null(kiln_op_registered(h.context, -1));
  close_subject(&h);
}

typedef struct row_search {
  int found;
} row_search;

static void search_row(void *user, const char *const *columns, int count) {
  assert_true(count > 4);
  if (strcmp(columns[0], "mine::scale.Tensor") != 0) return;
  assert_string_equal(columns[count - 1], "mine::scale.Tensor(Tensor x, Tensor by) -> Tensor");
  ((row_search *)user)->found++;
}

static void test_listed(void **state) {
  custom_count counts[CUSTOM_CASES] = {{0}};
  row_search search = {0};
  subject h;
  (void)state;
  open_subject(&h, "on", counts);
  assert_ok(kiln_debug_list(h.context, "ops", search_row, &search));
  assert_int_equal(search.found, 1);
  close_subject(&h);
}

/* -- Contexts, threads, nesting -- */

static kiln_status *times_ten(void *user, kiln_op_call *call) {
  const kiln_value *x = kiln_op_argument(call, 0);
  float *out;
  (void)user;
  kiln_status *status =
      kiln_op_result_tensor(call, 0, KILN_DTYPE_F32, 2, kiln_value_sizes(x), (void **)&out);
  for (int i = 0; !status && i < 6; i++) out[i] = ((const float *)kiln_value_data(x))[i] * 10;
  return status;
}

/* Runs the same method of another context's model. */
static kiln_status *ask_other(void *user, kiln_op_call *call) {
  subject *other = user;
  kiln_value *x = NULL, *y = NULL;
  float data[6], *out;
  kiln_status *status = kiln_value_copy_data(kiln_op_argument(call, 0), data, sizeof data);
  if (!status) {
    status = kiln_value_tensor(other->context, KILN_DTYPE_F32, 2,
                               kiln_value_sizes(kiln_op_argument(call, 0)), data, &x);
  }
  if (!status) status = kiln_instance_call(other->instance, "fails", &x, 1, NULL, &y);
  if (!status) {
    status = kiln_op_result_tensor(call, 0, KILN_DTYPE_F32, 2, kiln_value_sizes(y), (void **)&out);
  }
  if (!status) status = kiln_value_copy_data(y, out, sizeof data);
  kiln_value_destroy(x);
  kiln_value_destroy(y);
  return status;
}

static void test_two_contexts(void **state) {
  subject inner, outer;
  kiln_value *result = NULL;
  kiln_op_spec spec = {.struct_size = sizeof spec,
                       .schema = "mine::fail(Tensor x, str why) -> Tensor",
                       .kernel = times_ten};
  (void)state;
  open_context(&inner, "on");
  open_context(&outer, "on");
  assert_ok(kiln_op_register(inner.context, &spec));
  spec.kernel = ask_other;
  spec.user = &inner;
  assert_ok(kiln_op_register(outer.context, &spec));
  load_subject(&inner, DATA "model.pt");
  load_subject(&outer, DATA "model.pt");
  for (int run = 0; run < 4; run++) { /* x[0] is 1: (1 + 1) * 10, and ((1 + 1) + 1) * 10 */
    assert_ok(call_fails(&inner, &result));
    assert_true(((const float *)kiln_value_data(result))[0] == 20);
    kiln_value_destroy(result);
    assert_ok(call_fails(&outer, &result));
    assert_true(((const float *)kiln_value_data(result))[0] == 30);
    kiln_value_destroy(result);
  }
  close_subject(&outer);
  close_subject(&inner);
}

static void *register_many(void *arg) {
  kiln_context *context = arg;
  for (int i = 0; i < 200; i++) {
    char schema[64];
    snprintf(schema, sizeof schema, "many::f%d.o%d(Tensor x) -> Tensor", i % 20, i);
    kiln_op_spec spec = {.struct_size = sizeof spec, .schema = schema, .kernel = never};
    kiln_status *status = kiln_op_register(context, &spec);
    if (status) return status;
  }
  return NULL;
}

/* One thread registers while another loads and calls. */
static void test_registering_beside_loads(void **state) {
  custom_count counts[CUSTOM_CASES] = {{0}};
  pthread_t thread;
  void *status = NULL;
  subject h;
  (void)state;
  open_subject(&h, "on", counts);
  assert_int_equal(pthread_create(&thread, NULL, register_many, h.context), 0);
  for (int run = 0; run < 10; run++) {
    kiln_instance_release(h.instance);
    kiln_model_release(h.model);
    load_subject(&h, DATA "model.pt");
    check_recorded(&h, "overloads", "overloads");
  }
  pthread_join(thread, &status);
  assert_ok(status);
  assert_string_equal(kiln_op_registered(h.context, CUSTOM_CASES + 199),
                      "many::f19.o199(Tensor x) -> Tensor");
  assert_null(kiln_op_registered(h.context, CUSTOM_CASES + 200));
  close_subject(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_listed),
      cmocka_unit_test(test_two_contexts),
      cmocka_unit_test(test_registering_beside_loads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
