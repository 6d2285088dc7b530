/* custom_op_test.c: operators that the host registers: right results with the JIT on and off,
 * kernels that fail or break their promises, lifetimes. The model is test/data/custom; what it must
 * give comes from PyTorch. */
#include "api/internal.h"
#include "kiln/debug.h"
#include "test/unit/api/custom_fixture.h"
#include "test/unit/sweep.h"

/* -- Results -- */

static const struct {
  const char *method, *name;
} recorded[] = {{"forward", "forward"},    {"overloads", "overloads"}, {"several", "several"},
                {"in_place", "in_place"},  {"lists", "lists"},         {"noted", "noted"},
                {"constants", "constants"}};

static void test_results(void **state) {
  static const char *const jits[] = {"off", "on"};
  (void)state;
  for (int j = 0; j < 2; j++) {
    custom_count counts[CUSTOM_CASES] = {{0}};
    subject h;
    open_subject(&h, jits[j], counts);
    for (int run = 0; run < 5; run++) {
      for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        check_recorded(&h, recorded[i].method, recorded[i].name);
      }
    }
    close_subject(&h);
    for (int i = 0; i < CUSTOM_CASES; i++) {
      assert_int_equal(counts[i].destroyed, 1);
      assert_true(counts[i].runs > 0 || i == custom_find("mine::fail"));
    }
  }
}

static void test_between_groups(void **state) {
  custom_count counts[CUSTOM_CASES] = {{0}};
  kiln_counters before, after;
  subject h;
  (void)state;
  open_subject(&h, "on", counts);
  for (int run = 0; run < 4; run++) check_recorded(&h, "forward", "forward");
  kiln_model_counters(h.model, &before);
  assert_int_equal(before.groups, 2); /* tanh(x * 2 + y), and sigmoid(b * y - 1) + b */
  assert_int_equal(before.compile_failures, 0);
  assert_int_equal(before.guard_misses, 0);
  assert_true(before.compiled_runs >= 4);
  for (int run = 0; run < 4; run++) check_recorded(&h, "forward", "wide");
  kiln_model_counters(h.model, &after);
  assert_true(after.guard_misses > 0);
  assert_true(after.compiled_runs > before.compiled_runs);
  check_recorded(&h, "forward", "forward");
  assert_int_equal(counts[custom_find("mine::relu_cap")].runs, 9);
  close_subject(&h);
}

/* Every call of an operator with effects is made; equal calls of a pure one are one. */
static void test_effects(void **state) {
  custom_count counts[CUSTOM_CASES] = {{0}};
  int note = custom_find("mine::note"), scale = custom_find("mine::scale");
  subject h;
  (void)state;
  open_subject(&h, "on", counts);
  for (int run = 1; run <= 4; run++) { /* a loop of 3, with two calls of each */
    int before = counts[scale].runs;
    check_recorded(&h, "noted", "noted");
    assert_int_equal(counts[note].runs, 6 * run);
    assert_true(run < 3 || counts[scale].runs - before == 3);
  }
  close_subject(&h);
}

/* -- IR text -- */

static char *opt(const subject *h, const char *text, const char *passes) {
  char *out = NULL;
  assert_ok(kiln_debug_opt(h->context, text, strlen(text), passes, 3, &out));
  return out;
}

static int occurrences(const char *text, const char *word) {
  int n = 0;
  for (; (text = strstr(text, word)); text++) n++;
  return n;
}

static void test_text(void **state) {
  static const char source[] = "graph(%x : Tensor, %y : Tensor):\n"
                               "  %two : float = prim::Constant[value=2.]()\n"
                               "  %n : int = prim::Constant[value=3]()\n"
                               "  %no : bool = prim::Constant[value=0]()\n"
                               "  %a : Tensor = mine::scale(%x, %two)\n"
                               "  %b : Tensor = mine::scale(%x, %two)\n"
                               "  %c : Tensor = mine::scale(%x, %y)\n"
                               "  %d : Tensor = mine::scale(%x, %n, %no)\n"
                               "  %u : Tensor = mine::note(%x)\n"
                               "  %v : Tensor = mine::note(%x)\n"
                               "  %s : Tensor = mine::weighted2(%a, %b)\n"
                               "  %e : Tensor = mine::add_(%s, %y)\n"
                               "  return (%a, %b, %s)\n";
  custom_count counts[CUSTOM_CASES] = {{0}}, extra = {0};
  subject h;
  (void)state;
  open_context(&h, "on");
  assert_ok(custom_register_all(h.context, counts));
  kiln_op_spec spec = {.struct_size = sizeof spec,
                       .schema = "mine::weighted2(Tensor x, Tensor y) -> Tensor",
                       .kernel = custom_cases[0].kernel,
                       .flags = KILN_OP_SPEC_PURE | KILN_OP_SPEC_NONDETERMINISTIC,
                       .user = &extra};
  assert_ok(kiln_op_register(h.context, &spec));
  char *plain = opt(&h, source, ""), *again = opt(&h, plain, "");
  assert_string_equal(plain, again);
  assert_int_equal(occurrences(plain, "mine::scale("), 4);
  char *dead = opt(&h, source, "dce");
  assert_int_equal(occurrences(dead, "mine::scale("), 2); /* c and d have no users */
  assert_int_equal(occurrences(dead, "mine::note("), 2);
  assert_int_equal(occurrences(dead, "mine::add_("), 1); /* it writes what leaves */
  kiln_text_free(plain);
  kiln_text_free(again);
  kiln_text_free(dead);
  close_subject(&h);
}

static void test_merging(void **state) {
  static const char source[] = "graph(%x : Tensor):\n"
                               "  %two : float = prim::Constant[value=2.]()\n"
                               "  %one : int = prim::Constant[value=1]()\n"
                               "  %a : Tensor = mine::scale(%x, %two)\n"
                               "  %b : Tensor = mine::scale(%x, %two)\n"
                               "  %c : Tensor = aten::add(%a, %b, %one)\n"
                               "  return (%c)\n";
  kiln_op_spec spec = {.struct_size = sizeof spec,
                       .schema = custom_cases[custom_find("mine::scale")].schema,
                       .kernel = custom_cases[custom_find("mine::scale")].kernel};
  static const struct {
    uint32_t flags;
    int left;
  } kinds[] = {
      {KILN_OP_SPEC_PURE, 1}, {0, 2}, {KILN_OP_SPEC_PURE | KILN_OP_SPEC_NONDETERMINISTIC, 2}};
  (void)state;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    subject h;
    open_context(&h, "on");
    spec.flags = kinds[i].flags;
    assert_ok(kiln_op_register(h.context, &spec));
    char *text = opt(&h, source, "cse,dce");
    assert_int_equal(occurrences(text, "mine::scale("), kinds[i].left);
    kiln_text_free(text);
    close_subject(&h);
  }
}

static kiln_status *twice(void *user, kiln_op_call *call) {
  kiln_value *v = NULL;
  (void)user;
  kiln_status *status =
      kiln_value_int(kiln_op_context(call), 2 * kiln_value_as_int(kiln_op_argument(call, 0)), &v);
  if (!status) status = kiln_op_set_result(call, 0, v);
  kiln_value_destroy(v);
  return status;
}

static void test_folding(void **state) {
  static const char source[] = "graph():\n"
                               "  %n : int = prim::Constant[value=21]()\n"
                               "  %a : int = mine::twice(%n)\n"
                               "  return (%a)\n";
  kiln_op_spec spec = {
      .struct_size = sizeof spec, .schema = "mine::twice(int n) -> int", .kernel = twice};
  (void)state;
  for (uint32_t flags = 0; flags <= KILN_OP_SPEC_PURE; flags++) {
    subject h;
    open_context(&h, "on");
    spec.flags = flags;
    assert_ok(kiln_op_register(h.context, &spec));
    char *text = opt(&h, source, "constant_propagation");
    assert_int_equal(occurrences(text, "mine::twice("), flags ? 0 : 1);
    assert_int_equal(occurrences(text, "prim::Constant[value=42]()"), flags ? 1 : 0);
    kiln_text_free(text);
    close_subject(&h);
  }
}

/* -- Failures -- */

static void test_failing_kernel(void **state) {
  custom_count counts[CUSTOM_CASES] = {{0}};
  kiln_value *result = NULL;
  subject h;
  (void)state;
  open_subject(&h, "on", counts);
  for (int run = 0; run < 3; run++) {
    kiln_status *status = call_fails(&h, &result);
    assert_int_equal(kiln_status_code(status), KILN_OP_ERROR); /* it said INVALID_ARGUMENT */
    assert_string_equal(kiln_status_message(status), "mine::fail: no such luck");
    assert_non_null(strstr(kiln_status_report(status), "ops.mine.fail("));
    assert_non_null(kiln_status_location(status));
    kiln_status_destroy(status);
    assert_null(result);
  }
  check_recorded(&h, "forward", "forward");
  close_subject(&h);
}

static void test_not_registered(void **state) {
  custom_count counts[CUSTOM_CASES] = {{0}};
  kiln_value *result = NULL;
  subject h;
  (void)state;
  open_context(&h, "on");
  load_subject(&h, DATA "model.pt");
  kiln_status *status = call_recorded(&h, "forward", "forward", &result);
  assert_int_equal(kiln_status_code(status), KILN_MISSING_OP);
  assert_non_null(strstr(kiln_status_message(status), "operator mine::relu_cap"));
  assert_non_null(strstr(kiln_status_message(status), "kiln_op_register"));
  assert_non_null(strstr(kiln_status_report(status), "ops.mine.relu_cap(a, 0.5)"));
  kiln_status_destroy(status);
  /* What is loaded already does not change; what is loaded now does. */
  assert_ok(custom_register_all(h.context, counts));
  assert_error(call_recorded(&h, "forward", "forward", &result), KILN_MISSING_OP, NULL);
  kiln_instance_release(h.instance);
  kiln_model_release(h.model);
  load_subject(&h, DATA "model.pt");
  check_recorded(&h, "forward", "forward");
  close_subject(&h);
}

static void test_no_overload(void **state) {
  custom_count count = {0};
  kiln_value *result = NULL;
  subject h;
  (void)state;
  open_context(&h, "on");
  assert_ok(custom_register(h.context, custom_find("mine::relu_cap"), &count));
  assert_ok(custom_register(h.context, custom_find("mine::scale.int"), &count));
  load_subject(&h, DATA "model.pt");
  assert_error(call_recorded(&h, "overloads", "overloads", &result), KILN_MISSING_OP,
               "operator mine::scale is not implemented for (Tensor)");
  close_subject(&h);
}

/* Promises that a kernel breaks. */
typedef enum breach {
  SETS_NOTHING,
  SETS_INT,
  SETS_TUPLE,
  SETS_NULL,
  SETS_TOO_FAR,
  BAD_DTYPE,
  BAD_SIZE,
  WRITES_UNMARKED,
  LIES_ABOUT_SHAPE,
  BREACHES
} breach;

static kiln_status *set_int(kiln_op_call *call, int index) {
  kiln_value *v = NULL;
  kiln_status *status = kiln_value_int(kiln_op_context(call), 5, &v);
  if (!status) status = kiln_op_set_result(call, index, v);
  kiln_value_destroy(v);
  return status;
}

static kiln_status *broken(void *user, kiln_op_call *call) {
  const int64_t sizes[2] = {2, 2}, negative[1] = {-2};
  const kiln_value *x = kiln_op_argument(call, 0);
  kiln_value *v = NULL;
  void *data;
  kiln_status *status = NULL;
  switch (*(breach *)user) {
    case SETS_INT: return set_int(call, 0);
    case SETS_TUPLE:
      status = kiln_value_tuple(kiln_op_context(call), NULL, 0, &v);
      if (!status) status = kiln_op_set_result(call, 0, v);
      kiln_value_destroy(v);
      return status;
    case SETS_NULL: return kiln_op_set_result(call, 0, NULL);
    case SETS_TOO_FAR: return set_int(call, 1);
    case BAD_DTYPE: return kiln_op_result_tensor(call, 0, (kiln_dtype)29 + 1, 2, sizes, &data);
    case BAD_SIZE: return kiln_op_result_tensor(call, 0, KILN_DTYPE_F32, 1, negative, &data);
    case WRITES_UNMARKED: return kiln_op_writable(call, 0, -1, &data);
    case LIES_ABOUT_SHAPE: return kiln_op_set_result(call, 0, x);
    default: return NULL;
  }
}

static int lying_shape(void *user, kiln_op_shape *shape) {
  const int64_t sizes[2] = {2, 7};
  if (*(breach *)user != LIES_ABOUT_SHAPE) return 0;
  kiln_op_shape_set(shape, 0, KILN_DTYPE_F32, 2, sizes);
  return 1;
}

static void test_broken_promises(void **state) {
  static const char *const words[BREACHES] = {
      [SETS_NOTHING] = "result 0 must be Tensor, not None (the kernel did not set it)",
      [SETS_INT] = "mine::fail: result 0 must be Tensor, not int",
      [SETS_TUPLE] = "result 0 must be Tensor, not",
      [SETS_NULL] = "result 0 is a NULL handle",
      [SETS_TOO_FAR] = "has no result 1",
      [BAD_DTYPE] = "no tensor has dtype 30",
      [BAD_SIZE] = "negative",
      [WRITES_UNMARKED] = "argument 0 is no tensor that its schema marks",
      [LIES_ABOUT_SHAPE] = "not the tensor that the shape function told"};
  static const char *const jits[] = {"off", "on"};
  (void)state;
  for (int i = 0; i < 2 * BREACHES; i++) {
    breach kind = (breach)(i / 2);
    kiln_value *result = NULL;
    subject h;
    open_context(&h, jits[i % 2]);
    kiln_op_spec spec = {.struct_size = sizeof spec,
                         .schema = "mine::fail(Tensor x, str why) -> Tensor",
                         .kernel = broken,
                         .shape = lying_shape,
                         .user = &kind};
    assert_ok(kiln_op_register(h.context, &spec));
    load_subject(&h, DATA "model.pt");
    for (int run = 0; run < 3; run++) {
      assert_error(call_fails(&h, &result), KILN_OP_ERROR, words[kind]);
    }
    close_subject(&h);
  }
}

/* -- Memory of results -- */

typedef struct keeper {
  kiln_value *kept; /* NULL: the argument is returned */
  const void *argument_data;
} keeper;

static kiln_status *give_kept(void *user, kiln_op_call *call) {
  keeper *k = user;
  const kiln_value *x = kiln_op_argument(call, 0);
  k->argument_data = kiln_value_data(x);
  return kiln_op_set_result(call, 0, k->kept ? k->kept : x);
}

/* Neither an argument nor what the host keeps becomes memory of the model, unless it is marked. */
static void test_shared_results(void **state) {
  static const struct {
    const char *schema;
    bool keeps, shares;
  } cases[] = {{"mine::fail(Tensor x, str why) -> Tensor", true, false},
               {"mine::fail(Tensor x, str why) -> Tensor", false, false},
               {"mine::fail(Tensor(a) x, str why) -> Tensor(a)", true, false},
               {"mine::fail(Tensor(a) x, str why) -> Tensor(a)", false, true}};
  const float data[2] = {8, 9};
  const int64_t sizes[1] = {2};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    keeper k = {NULL, NULL};
    kiln_value *result = NULL;
    subject h;
    open_context(&h, "off");
    if (cases[i].keeps) {
      assert_ok(kiln_value_tensor(h.context, KILN_DTYPE_F32, 1, sizes, data, &k.kept));
    }
    kiln_op_spec spec = {.struct_size = sizeof spec,
                         .schema = cases[i].schema,
                         .kernel = give_kept,
                         .flags = KILN_OP_SPEC_PURE,
                         .user = &k};
    assert_ok(kiln_op_register(h.context, &spec));
    load_subject(&h, DATA "model.pt");
    assert_ok(call_fails(&h, &result));
    const void *got = kiln_value_data(result), *kept = k.kept ? kiln_value_data(k.kept) : NULL;
    if (cases[i].shares) {
      assert_ptr_equal(got, k.argument_data);
    } else {
      assert_ptr_not_equal(got, k.argument_data);
      assert_ptr_not_equal(got, kept);
    }
    assert_true(((const float *)got)[0] == (k.kept ? 8 : 2)); /* x + 1 begins with 2 */
    kiln_value_destroy(result);
    kiln_value_destroy(k.kept);
    close_subject(&h);
  }
}

/* -- Limits and memory -- */

static kiln_status *spin(void *user, kiln_op_call *call) {
  (void)user;
  for (;;) {
    kiln_status *status = kiln_op_check(call, 1000);
    if (status) return status;
  }
}

static void test_limits(void **state) {
  subject h;
  kiln_value *x = NULL, *result = NULL;
  const int64_t sizes[1] = {4};
  kiln_call_options options = {.limits = {.operations = 100000}};
  kiln_op_spec spec = {.struct_size = sizeof spec,
                       .schema = "mine::fail(Tensor x, str why) -> Tensor",
                       .kernel = spin};
  (void)state;
  open_context(&h, "on");
  assert_ok(kiln_op_register(h.context, &spec));
  load_subject(&h, DATA "model.pt");
  assert_ok(kiln_value_tensor(h.context, KILN_DTYPE_F32, 1, sizes, NULL, &x));
  assert_error(kiln_instance_call(h.instance, "fails", &x, 1, &options, &result), KILN_LIMIT, NULL);
  kiln_value_destroy(x);
  close_subject(&h);
}

typedef struct sweeping {
  subject *h;
  const char *method;
  kiln_value *args[2];
  int count;
} sweeping;

static kiln_status *call_once(kiln_mem *mem, void *arg) {
  sweeping *s = arg;
  kiln_instance *instance = NULL;
  kiln_value *result = NULL;
  (void)mem;
  KILN_TRY(kiln_instance_create(s->h->model, &instance));
  kiln_status *status = kiln_instance_call(instance, s->method, s->args, s->count, NULL, &result);
  kiln_value_destroy(result);
  kiln_instance_release(instance);
  return status;
}

static void test_memory(void **state) {
  static const char *const methods[] = {"forward", "overloads", "several", "in_place", "lists"};
  custom_count counts[CUSTOM_CASES] = {{0}};
  subject h;
  (void)state;
  open_subject(&h, "off", counts);
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    sweeping s = {.h = &h, .method = methods[i]};
    s.count = take_items(read_recorded(h.context, DATA "%s_in.pt", methods[i]), s.args, 2);
    assert_ok(call_once(NULL, &s)); /* the method's plan is made by the first call */
    sweep__run(h.context->env->mem, call_once, &s, true);
    destroy_values(s.args, s.count);
  }
  close_subject(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_results),        cmocka_unit_test(test_between_groups),
      cmocka_unit_test(test_effects),        cmocka_unit_test(test_text),
      cmocka_unit_test(test_merging),        cmocka_unit_test(test_folding),
      cmocka_unit_test(test_failing_kernel), cmocka_unit_test(test_not_registered),
      cmocka_unit_test(test_no_overload),    cmocka_unit_test(test_broken_promises),
      cmocka_unit_test(test_shared_results), cmocka_unit_test(test_limits),
      cmocka_unit_test(test_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
