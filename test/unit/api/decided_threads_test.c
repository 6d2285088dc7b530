/* decided_threads_test.c: numbers and strings of a module that decide what it does are constants of
 * the plans that are made for them; others are specialised in their turn, up to a limit. */
#include <math.h>
#include <pthread.h>

#include "kiln/debug.h"
#include "test/unit/api/built.h"
#include "test/unit/api/values.h"

/* The value, which may be NULL, is taken. */
static kiln_var call(kiln_builder *b, const char *op, kiln_var x, kiln_value *y) {
  const kiln_builder_arg args[2] = {{.var = x}, {.value = y}};
  const kiln_var out = call_with(b, op, args, y ? 2 : 1);
  kiln_value_destroy(y);
  return out;
}
static kiln_var choose(kiln_builder *b, kiln_var condition, const char *op, kiln_var x) {
  kiln_var out;
  assert_ok(kiln_builder_if(b, condition));
  const kiln_var other = call(b, op, x, NULL);
  assert_ok(kiln_builder_else(b, &other, 1));
  assert_ok(kiln_builder_end_if(b, &x, 1, &out));
  return out;
}

/* relu(x) * scale; its negative where p < 0, and its absolute value where mode is "abs". */
static kiln_instance *make(kiln_model **out_model) {
  kiln_builder *b = create_builder(context);
  const kiln_var x = input_of(b, "x", "Tensor");
  const kiln_var p = attribute_of(b, "p", float_of(0.5)),
                 mode = attribute_of(b, "mode", string_of("no"));
  const kiln_builder_arg args[2] = {{.var = call(b, "aten::relu", x, NULL)},
                                    {.var = attribute_of(b, "scale", float_of(2))}};
  kiln_var y = call_with(b, "aten::mul", args, 2);
  y = choose(b, call(b, "aten::lt", p, float_of(0)), "aten::neg", y);
  y = choose(b, call(b, "aten::eq", mode, string_of("abs")), "aten::abs", y);
  *out_model = finish_with(b, y);
  return instance_of(*out_model);
}

static void set(kiln_instance *instance, const char *name, kiln_value *value) {
  assert_ok(kiln_instance_set(instance, name, value));
  kiln_value_destroy(value);
}
static void check(kiln_instance *instance, const char *want) {
  kiln_value *x = vector_of(3, (const float[]){-1, 1, 3});
  assert_calls(instance, &x, 1, 4, want);
  kiln_value_destroy(x);
}

static void numbers_and_strings_that_decide_are_constants(void **state) {
  (void)state;
  kiln_model *model = NULL;
  kiln_instance *instance = make(&model), *other = NULL;
  char *text = NULL;
  check(instance, "tensor([0., 2., 6.], dtype=float32)");
  assert_ok(kiln_debug_graph(model, "forward", "optimized", NULL, 0, &text));
  assert_non_null(strstr(text, "TensorExprGroup"));
  assert_null(strstr(text, "aten::lt"));
  assert_null(strstr(text, "aten::eq"));
  assert_non_null(strstr(text, "name=\"scale\"")); /* which decides nothing */
  kiln_text_free(text);

  set(instance, "scale", float_of(3));
  check(instance, "tensor([0., 3., 9.], dtype=float32)");
  set(instance, "p", float_of(-1));
  check(instance, "tensor([-0., -3., -9.], dtype=float32)");
  set(instance, "mode", string_of("abs"));
  check(instance, "tensor([0., 3., 9.], dtype=float32)");
  set(instance, "p", float_of(NAN));
  set(instance, "mode", string_of("ab"));
  check(instance, "tensor([0., 3., 9.], dtype=float32)");
  set(instance, "p", float_of(-0.0)); /* no less than 0 */
  check(instance, "tensor([0., 3., 9.], dtype=float32)");
  assert_ok(kiln_instance_create(model, &other));
  set(other, "p", float_of(-2));
  check(other, "tensor([-0., -2., -6.], dtype=float32)");
  set(instance, "p", float_of(0.5));
  set(instance, "mode", string_of("no"));
  check(instance, "tensor([0., 3., 9.], dtype=float32)");
  kiln_instance_release(other);
  kiln_instance_release(instance);
  kiln_model_release(model);
}

static bool is_refused(kiln_model *model, const char *reason) {
  kiln_debug_refusal_info r;
  kiln_status *status = NULL;
  bool found = false;
  for (int i = 0; !found && !(status = kiln_debug_refusal(model, i, &r)); i++)
    found = strcmp(r.reason, reason) == 0;
  kiln_status_destroy(status);
  return found;
}

static void changed_flags_are_specialised_again(void **state) {
  (void)state;
  kiln_model *model = NULL;
  kiln_instance *instance = make(&model);
  char *text = NULL;
  check(instance, "tensor([0., 2., 6.], dtype=float32)");
  assert_int_equal(counters_of(model).groups, 1);
  set(instance, "p", float_of(-1));
  check(instance, "tensor([-0., -2., -6.], dtype=float32)");
  const kiln_counters second = counters_of(model);
  assert_int_equal(second.groups, 2);
  assert_int_equal(second.compiled_runs, 6); /* the first of four records types */
  assert_ok(kiln_debug_graph(model, "forward", "optimized", NULL, 0, &text));
  assert_non_null(strstr(text, "forward@2: for flags that were changed\n"));
  kiln_text_free(text);
  kiln_group_counters group;
  assert_ok(kiln_model_group(model, 1, &group));
  assert_string_equal(group.name, "forward@2/TensorExprGroup_0");
  assert_int_equal(group.runs, 3);
  assert_ok(kiln_debug_graph(model, "forward", "loop", group.name, 0, &text));
  kiln_text_free(text);

  set(instance, "p", float_of(0.5)); /* the first plans serve again */
  check(instance, "tensor([0., 2., 6.], dtype=float32)");
  assert_int_equal(counters_of(model).groups, 2);
  assert_int_equal(counters_of(model).compiled_runs, 10);

  set(instance, "mode", string_of("abs"));
  check(instance, "tensor([0., 2., 6.], dtype=float32)");
  set(instance, "p", float_of(-1));
  check(instance, "tensor([0., 2., 6.], dtype=float32)");
  assert_int_equal(counters_of(model).groups, 4);
  assert_false(is_refused(model, "flags_changed"));
  set(instance, "p", float_of(-2)); /* a fifth setting */
  check(instance, "tensor([0., 2., 6.], dtype=float32)");
  assert_int_equal(counters_of(model).groups, 4);
  assert_true(is_refused(model, "flags_changed"));
  kiln_instance_release(instance);
  kiln_model_release(model);
}

enum { SETTINGS = 6, CALLS = 40 };

typedef struct caller {
  pthread_t thread;
  kiln_instance *instance;
  float want; /* of the last element */
  int wrong;
} caller;

static void *run(void *arg) {
  caller *c = arg;
  kiln_value *x = vector_of(3, (const float[]){-1, 1, 3}), *result = NULL;
  for (int i = 0; i < CALLS; i++) {
    float got[3] = {0};
    kiln_status *status = kiln_instance_call(c->instance, "forward", &x, 1, NULL, &result);
    if (!status) status = kiln_value_copy_data(result, got, sizeof got);
    c->wrong += status || got[2] != c->want;
    kiln_status_destroy(status);
    kiln_value_destroy(result);
    result = NULL;
  }
  kiln_value_destroy(x);
  return NULL;
}

/* Whose first call comes first is the first setting, so each thread may meet plans of another's. */
static void settings_of_threads_do_not_mix(void **state) {
  (void)state;
  kiln_model *model = NULL;
  kiln_instance *first = make(&model);
  caller callers[SETTINGS];
  for (int i = 0; i < SETTINGS; i++) {
    callers[i] = (caller){.want = i % 2 ? -6 : 6};
    assert_ok(kiln_instance_create(model, &callers[i].instance));
    set(callers[i].instance, "p", float_of(i % 2 ? -i : i));
  }
  for (int i = 0; i < SETTINGS; i++)
    assert_int_equal(pthread_create(&callers[i].thread, NULL, run, &callers[i]), 0);
  for (int i = 0; i < SETTINGS; i++) pthread_join(callers[i].thread, NULL);
  for (int i = 0; i < SETTINGS; i++) {
    assert_int_equal(callers[i].wrong, 0);
    kiln_instance_release(callers[i].instance);
  }
  kiln_instance_release(first);
  kiln_model_release(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_and_strings_that_decide_are_constants),
      cmocka_unit_test(changed_flags_are_specialised_again),
      cmocka_unit_test(settings_of_threads_do_not_mix),
  };
  return cmocka_run_group_tests(tests, open_context, close_context);
}
