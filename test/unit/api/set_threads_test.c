/* set_threads_test.c: weights that a host sets: what kernels want of them is made beside the calls,
 * and no call waits for it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/internal.h"
#include "codegen/codegen.h"
#include "runtime/pack.h"
#include "test/unit/api/fixture.h"

#define CASE TEST_DATA "/own/blocked/"
static const char *const weights[] = {"window", "start", "back", "bias"};
enum { WEIGHTS = 4, MOST_INPUTS = 8 };

static subject open_async(void) {
  const setting settings[] = {
      {"compile", "async"}, {"compile_after", "0"}, {"max_stall_us", "1000000"}, {NULL, NULL}};
  subject s = {.context = context_of(settings)};
  load_subject(&s, CASE "model.pt");
  return s;
}

static uint64_t made(const subject *s) {
  return kiln__pack_store_made(kiln_codegen_packs(s->context->codegen));
}
static uint64_t compiled_runs(const subject *s) {
  const kiln_counters c = counters_of(s->model);
  assert_int_equal(c.stalls, 0);
  return c.compiled_runs;
}

static int inputs(const subject *s, kiln_value **out) {
  return take_items(read_recorded(s->context, CASE "inputs_0.pt"), out, MOST_INPUTS);
}

/* One call, whose answer is the recorded one; how many groups it ran compiled. */
static uint64_t call(const subject *s) {
  const uint64_t before = compiled_runs(s);
  kiln_value *want = read_recorded(s->context, CASE "expected_0.pt"), *got, *args[MOST_INPUTS];
  const int count = inputs(s, args);
  assert_ok(kiln_instance_call(s->instance, "forward", args, count, NULL, &got));
  assert_close(got, want, 1e-4f, 1e-4f);
  destroy_values(args, count);
  kiln_value_destroy(got);
  kiln_value_destroy(want);
  return compiled_runs(s) - before;
}

static uint64_t warm_up(const subject *s) {
  kiln_value *args[MOST_INPUTS];
  call(s);
  const int count = inputs(s, args);
  assert_ok(kiln_model_warm_up(s->model, "forward", args, count, NULL));
  destroy_values(args, count);
  return call(s);
}

/* The same elements in other memory. */
static void set_weights(const subject *s) {
  for (int i = 0; i < WEIGHTS; i++) {
    kiln_value *old, *new;
    assert_ok(kiln_instance_get(s->instance, weights[i], &old));
    size_t count;
    float *data = floats_of(old, &count);
    assert_ok(kiln_value_tensor(s->context, KILN_DTYPE_F32, kiln_value_rank(old),
                                kiln_value_sizes(old), data, &new));
    assert_ok(kiln_instance_set(s->instance, weights[i], new));
    free(data);
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
    uint64_t ran = call(&s);
    assert_true(ran < groups); /* operators serve for some; the job may be done meanwhile */
    const struct timespec ms = {.tv_nsec = 1000000};
    for (int i = 0; i < 10000 && ran < groups; i++) {
      nanosleep(&ms, NULL);
      ran = call(&s);
    }
    assert_int_equal(ran, groups); /* of the next calls each other one may try the interpreter */
    assert_true(made(&s) > before);
  }
  close_subject(&s);
}

/* A call that waits for what it has asked for. */
static void call_and_wait(const subject *s) {
  (void)call(s);
  assert_ok(kiln_model_wait_idle(s->model, NULL));
}

/* Copies that calls have asked for are there when the wait for jobs ends. */
static void copies_are_waited_for(void **state) {
  (void)state;
  subject s = open_async();
  const uint64_t groups = warm_up(&s);
  set_weights(&s);
  for (int i = 0; i < 6; i++) call_and_wait(&s); /* no constants any more: it falls back, once */
  for (int round = 0; round < 3; round++) {
    const uint64_t before = made(&s);
    set_weights(&s);
    for (int i = 0; i < 2; i++) call_and_wait(&s);
    const uint64_t then = made(&s);
    assert_true(then > before);
    assert_int_equal(call(&s), groups);
    assert_int_equal(made(&s), then);
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
    for (int i = 0; i < calls; i++) (void)call(&s);
    close_subject(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(calls_do_not_pack),
                                     cmocka_unit_test(copies_are_waited_for),
                                     cmocka_unit_test(models_go_meanwhile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
