/* set_threads_test.c: weights that a host sets: what kernels want of them is made beside the calls,
 * and no call waits for it. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/internal.h"
#include "codegen/codegen.h"
#include "runtime/pack.h"
#include "test/unit/api/fixture.h"

#define CASE TEST_DATA "/own/blocked/"
static const char *const weights[] = {"window", "start", "back", "bias"};
enum { WEIGHTS = 4 };

static subject open_async(void) {
  const setting settings[] = {
      {"compile", "async"}, {"compile_after", "0"}, {"max_stall_us", "1000000"}, {NULL, NULL}};
  subject s = {.context = context_of(settings)};
  load_subject(&s, CASE "model.pt");
  return s;
}

static kiln_value *read_value(const subject *s, const char *name) {
  char file[256];
  kiln_value *value;
  snprintf(file, sizeof file, CASE "%s_0.pt", name);
  assert_ok(kiln_value_read(s->context, file, &value));
  return value;
}

static uint64_t made(const subject *s) {
  return kiln__pack_store_made(kiln_codegen_packs(s->context->codegen));
}
static uint64_t compiled_runs(const subject *s) {
  kiln_counters c;
  kiln_model_counters(s->model, &c);
  assert_int_equal(c.stalls, 0);
  return c.compiled_runs;
}

static void compare(const kiln_value *a, const kiln_value *b) {
  if (kiln_value_kind(a) == KILN_KIND_TENSOR) {
    size_t count = 1;
    for (int i = 0; i < kiln_value_rank(a); i++) count *= (size_t)kiln_value_sizes(a)[i];
    float *x = test_malloc(count * sizeof *x), *y = test_malloc(count * sizeof *y);
    assert_ok(kiln_value_copy_data(a, x, count * sizeof *x));
    assert_ok(kiln_value_copy_data(b, y, count * sizeof *y));
    for (size_t i = 0; i < count; i++)
      assert_true(fabsf(x[i] - y[i]) <= 1e-4f + 1e-4f * fabsf(y[i]));
    test_free(x);
    test_free(y);
    return;
  }
  for (int i = 0; i < kiln_value_count(a); i++) {
    kiln_value *x, *y;
    assert_ok(kiln_value_item(a, i, &x));
    assert_ok(kiln_value_item(b, i, &y));
    compare(x, y);
    kiln_value_destroy(x);
    kiln_value_destroy(y);
  }
}

/* One call, whose answer is the recorded one; how many groups it ran compiled. */
static uint64_t call(const subject *s, kiln_value **out_arguments, int *out_count) {
  const uint64_t before = compiled_runs(s);
  kiln_value *inputs = read_value(s, "inputs"), *want = read_value(s, "expected"), *got, *args[8];
  const int count = kiln_value_count(inputs);
  for (int i = 0; i < count; i++) assert_ok(kiln_value_item(inputs, i, &args[i]));
  if (out_arguments) {
    memcpy(out_arguments, args, sizeof *args * (size_t)count);
    *out_count = count;
  }
  assert_ok(kiln_instance_call(s->instance, "forward", args, count, NULL, &got));
  compare(got, want);
  for (int i = 0; i < count && !out_arguments; i++) kiln_value_destroy(args[i]);
  kiln_value_destroy(got);
  kiln_value_destroy(want);
  kiln_value_destroy(inputs);
  return compiled_runs(s) - before;
}

static uint64_t warm_up(const subject *s) {
  kiln_value *args[8];
  int count;
  call(s, args, &count);
  assert_ok(kiln_model_warm_up(s->model, "forward", args, count, NULL));
  for (int i = 0; i < count; i++) kiln_value_destroy(args[i]);
  return call(s, NULL, NULL);
}

/* The same elements in other memory. */
static void set_weights(const subject *s) {
  for (int i = 0; i < WEIGHTS; i++) {
    kiln_value *old, *new;
    assert_ok(kiln_instance_get(s->instance, weights[i], &old));
    size_t bytes = sizeof(float);
    for (int d = 0; d < kiln_value_rank(old); d++) bytes *= (size_t)kiln_value_sizes(old)[d];
    void *data = test_malloc(bytes);
    assert_ok(kiln_value_copy_data(old, data, bytes));
    assert_ok(kiln_value_tensor(s->context, KILN_DTYPE_F32, kiln_value_rank(old),
                                kiln_value_sizes(old), data, &new));
    assert_ok(kiln_instance_set(s->instance, weights[i], new));
    test_free(data);
    kiln_value_destroy(old);
    kiln_value_destroy(new);
  }
}

static void calls_do_not_pack(void **state) {
  (void)state;
  subject s = open_async();
  const uint64_t groups = warm_up(&s);
  assert_true(groups > 0);
  for (int round = 0; round < 3; round++) {
    const uint64_t before = made(&s);
    set_weights(&s);
    assert_true(call(&s, NULL, NULL) < groups); /* operators serve for some */
    assert_int_equal(made(&s), before);
    const struct timespec ms = {.tv_nsec = 1000000};
    for (int i = 0; i < 10000 && call(&s, NULL, NULL) < groups; i++) nanosleep(&ms, NULL);
    assert_int_equal(call(&s, NULL, NULL), groups);
    assert_true(made(&s) > before);
  }
  close_subject(&s);
}

/* Copies that nobody has taken go with the model, whatever their jobs do. */
static void models_go_meanwhile(void **state) {
  (void)state;
  for (int calls = 0; calls < 5; calls++) {
    subject s = open_async();
    (void)warm_up(&s);
    set_weights(&s);
    for (int i = 0; i < calls; i++) (void)call(&s, NULL, NULL);
    close_subject(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(calls_do_not_pack),
                                     cmocka_unit_test(models_go_meanwhile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
