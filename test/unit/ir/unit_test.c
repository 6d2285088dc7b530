/* unit_test.c: units: functions and methods by name, bodies on demand, errors that stay; reasons.
 */
#include "ir/unit.h"

#include "ir/reason.h"
#include "test/unit/ir/ir_support.h"
#include "test/unit/sweep.h"

typedef struct unit_args {
  kiln_unit *unit;
  kiln_function *function, *method;
  kiln_class *cls;
} unit_args;

static kiln_status *define(fixture *f, kiln_env *env, unit_args *a) {
  a->unit = kiln_unit_create(env, f->registry);
  a->function = kiln_unit_add_function(a->unit, KILN_STR("__torch__.m.helper"), NULL);
  a->cls = kiln_unit_add_class(a->unit, KILN_TYPE_CLASS, KILN_STR("__torch__.m.Net"));
  a->method = kiln_unit_add_function(a->unit, KILN_STR("__torch__.m.Net.forward"), a->cls->type);
  return NULL;
}
static kiln_status *try_define(fixture *f, kiln_env *env, unit_args *a) {
  KILN_PROTECT(define(f, env, a));
}

static void test_names(void **state) {
  fixture *f = *state;
  unit_args a = {0};
  assert_ok(try_define(f, f->env, &a));
  assert_ptr_equal(kiln_unit_find_function(a.unit, KILN_STR("__torch__.m.helper")), a.function);
  assert_null(kiln_unit_find_function(a.unit, KILN_STR("helper")));
  assert_true(kiln_str_is(a.function->name, "helper"));
  assert_string_equal(a.method->qualname, "__torch__.m.Net.forward");
  assert_ptr_equal(kiln_class_find_method(a.cls->type, KILN_STR("forward")), a.method);
  assert_null(kiln_class_find_method(a.cls->type, KILN_STR("backward")));
  assert_ptr_equal(kiln_class_of(a.cls->type), a.cls);
  assert_ptr_equal(kiln_type_find(a.unit->types, KILN_STR("__torch__.m.Net")), a.cls->type);
  kiln_unit_destroy(a.unit);
}

static int compiled;
static kiln_status *compile(kiln_unit *unit, kiln_function *function) {
  compiled++;
  if (kiln_str_is(function->name, "forward")) {
    function->error = KILN_ERROR(KILN_UNSUPPORTED, "no such thing");
    return NULL;
  }
  function->graph = kiln_graph_create(unit->env->mem, unit->registry, unit->types);
  function->state = 2;
  return NULL;
}

/* A body is compiled once; one that fails keeps its error, which every caller gets a copy of. */
static void test_ensure(void **state) {
  fixture *f = *state;
  unit_args a = {0};
  compiled = 0;
  assert_ok(try_define(f, f->env, &a));
  assert_error(kiln_unit_ensure(a.function), KILN_INTERNAL, "has no body");
  a.unit->ensure = compile;
  assert_ok(kiln_unit_ensure(a.function));
  assert_ok(kiln_unit_ensure(a.function));
  assert_int_equal(compiled, 1);
  assert_error(kiln_unit_ensure(a.method), KILN_UNSUPPORTED, "no such thing");
  assert_error(kiln_unit_ensure(a.method), KILN_UNSUPPORTED, "no such thing");
  assert_int_equal(compiled, 2);
  kiln_unit_destroy(a.unit);
}

static kiln_status *make_unit(kiln_env *env, void *arg) {
  fixture *f = arg;
  unit_args a = {0};
  kiln_status *status = try_define(f, env, &a);
  kiln_unit_destroy(a.unit);
  return status;
}

static void test_sweep(void **state) { sweep_env(make_unit, *state, false); }

static void test_reasons(void **state) {
  (void)state;
  assert_string_equal(kiln_reason_id(KILN_REASON_no_lowering), "no_lowering");
  for (int i = 0; i < KILN_REASON__COUNT; i++) {
    assert_true(strlen(kiln_reason_id((kiln_reason)i)) > 0);
    assert_true(strlen(kiln_reason_sentence((kiln_reason)i)) > 10);
  }
  assert_string_equal(kiln_reason_id((kiln_reason)9999), "none");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_ensure),
      cmocka_unit_test(test_sweep),
      cmocka_unit_test(test_reasons),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
