/* call_test.c: limits of a call, its random numbers, and places in a model's source. */
#include "runtime/call.h"

#include "runtime/source.h"
#include "test/unit/sweep.h"

static kiln_call *make_call(kiln_env **out_env) {
  kiln_call *call = NULL;
  assert_ok(kiln_env_create(NULL, out_env));
  assert_ok(kiln_call_create(*out_env, &call));
  return call;
}

static void limits(void **state) {
  (void)state;
  kiln_env *env;
  kiln_call *call = make_call(&env);
  assert_ok(kiln_call_check(call, UINT64_C(1) << 40)); /* none are set */
  kiln_call_begin(call, &(kiln_limits){.operations = 100, .recursion = 7});
  assert_int_equal(call->limits.recursion, 7);
  assert_ok(kiln_call_check(call, 100));
  assert_error(kiln_call_check(call, 1), KILN_LIMIT, "limit of 100 operations");
  kiln_call_begin(call, &(kiln_limits){.bytes = 100000});
  kiln_budget *outer = kiln_budget_enter(&call->budget); /* as the interpreter does */
  int64_t few = 20000, many = 200000, huge = INT64_MAX / 8;
  kiln_tensor *t, *u;
  assert_error(kiln_call_tensor(call, KILN_DTYPE_F32, 1, &many, &t), KILN_LIMIT, "100000 bytes");
  assert_error(kiln_call_tensor(call, KILN_DTYPE_F32, 1, &huge, &t), KILN_LIMIT, "100000 bytes");
  assert_ok(kiln_call_tensor(call, KILN_DTYPE_F32, 1, &few, &t));
  assert_error(kiln_call_tensor(call, KILN_DTYPE_F32, 1, &few, &u), KILN_LIMIT, NULL);
  assert_ok(kiln_call_check(call, 1));
  kiln_tensor_release_to(&call->cache, t); /* kept by the cache, but not counted */
  assert_ok(kiln_call_tensor(call, KILN_DTYPE_F32, 1, &few, &t));
  kiln_tensor_release_to(&call->cache, t);
  assert_int_equal(kiln_call_bytes(call), 0);
  kiln_budget_leave(outer);
  kiln_call_begin(call, &(kiln_limits){.time_ms = 20});
  kiln_status *status = NULL;
  uint64_t checks = 0;
  while (!status && checks++ < UINT64_C(10000000000)) status = kiln_call_check(call, 1);
  assert_error(status, KILN_LIMIT, "longer than its limit of 20 ms");
  kiln_call_begin(call, NULL);
  assert_ok(kiln_call_check(call, 1)); /* the call object is usable again */
  kiln_call_destroy(call);
  kiln_env_destroy(env);
}

/* A call that no instance lends a generator to makes one of its own, once. */
static void random_numbers(void **state) {
  (void)state;
  kiln_env *env;
  kiln_call *call = make_call(&env);
  kiln_random *first, *second;
  assert_null(call->random);
  assert_ok(kiln_call_random(call, &first));
  assert_ok(kiln_call_random(call, &second));
  assert_ptr_equal(first, second);
  assert_true(first->seed == KILN_RANDOM_SEED && !first->seeded);
  kiln_call_destroy(call);
  kiln_env_destroy(env);
}

static kiln_status *write_text(kiln_call *call, kiln_text *text, void *arg) {
  int *depth = arg;
  kiln_text_puts(text, "outer");
  if (--*depth > 0) KILN_TRY(kiln_call_text(call, write_text, arg));
  if (strcmp(text->data, "outer") != 0) return KILN_ERROR(KILN_INTERNAL, "lost");
  return KILN_ERROR(KILN_RAISED, "from the body");
}

static void scratch_text(void **state) {
  (void)state;
  kiln_env *env;
  kiln_call *call = make_call(&env);
  int depth = 3;
  assert_error(kiln_call_text(call, write_text, &depth), KILN_RAISED, "from the body");
  assert_int_equal(depth, 0);
  assert_int_equal(call->scratch_users, 0);
  kiln_call_destroy(call);
  kiln_env_destroy(env);
}

/* A source that knows its lines tells of each byte what one says that counts them. */
static void indexed_places(void **state) {
  (void)state;
  static const char *const texts[] = {"", "\n", "a\n\nbc\nd", "a\nb\n"};
  kiln_env *env;
  kiln_arena *arena;
  assert_null(kiln_env_create(NULL, &env));
  assert_null(kiln_arena_create(env->mem, &arena));
  for (int i = 0; i < 4; i++) {
    kiln_source counted = {.text = kiln_str_from(texts[i]), .first_line = 3}, indexed = counted;
    kiln_source_index_lines(&indexed, arena);
    for (uint32_t at = 0; at < 12; at++) {
      kiln_source_range a = {.source = &counted, .begin = at},
                        b = {.source = &indexed, .begin = at};
      assert_int_equal(kiln_source_range_loc(&a).line, kiln_source_range_loc(&b).line);
      assert_int_equal(kiln_source_range_loc(&a).column, kiln_source_range_loc(&b).column);
    }
  }
  kiln_arena_destroy(arena);
  kiln_env_destroy(env);
}

static void places(void **state) {
  (void)state;
  static const char text[] = "def f(x):\n  return g(x) + \\\n    1\n";
  kiln_source source = {
      .name = KILN_STR("code/m.py"), .text = kiln_str_from(text), .first_line = 11};
  kiln_source_range outer = {&source, 0, 3, "__torch__.main", NULL};
  kiln_source_range range = {&source, 12, 40, "__torch__.f", &outer};
  kiln_source_loc loc = kiln_source_range_loc(&range);
  assert_string_equal(loc.file, "code/m.py");
  assert_int_equal(loc.line, 12);
  assert_int_equal(loc.column, 3);
  loc = kiln_source_range_loc(&(kiln_source_range){&source, 9, 9, NULL, NULL});
  assert_int_equal(loc.line, 11);
  assert_int_equal(loc.column, 10);
  loc = kiln_source_range_loc(&(kiln_source_range){&source, 5000, 6000, NULL, NULL});
  assert_int_equal(loc.line, 14); /* past the end: at the end */
  assert_int_equal(kiln_source_range_loc(NULL).line, 0);
  kiln_status *status = kiln_source_range_trace(&range, KILN_ERROR(KILN_OP_ERROR, "no"));
  assert_string_equal(kiln_status_location(status), "code/m.py:12:3");
  const char *report = kiln_status_report(status);
  assert_non_null(strstr(report, "__torch__.f"));
  assert_non_null(strstr(report, "__torch__.main"));
  assert_non_null(strstr(report, "return g(x) + \\"));
  assert_non_null(strstr(report, "def f(x):"));
  kiln_status_destroy(status);
}

static kiln_status *life(kiln_env *env, void *arg) {
  (void)arg;
  kiln_call *call;
  KILN_TRY(kiln_call_create(env, &call));
  kiln_tensor *t;
  int64_t n = 10;
  kiln_status *status = kiln_call_tensor(call, KILN_DTYPE_F32, 1, &n, &t);
  if (!status) kiln_tensor_release_to(&call->cache, t);
  kiln_call_destroy(call);
  return status;
}

static void survives_lack_of_memory(void **state) {
  (void)state;
  sweep_env(life, NULL, false);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(limits),       cmocka_unit_test(random_numbers),
      cmocka_unit_test(scratch_text), cmocka_unit_test(indexed_places),
      cmocka_unit_test(places),       cmocka_unit_test(survives_lack_of_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
