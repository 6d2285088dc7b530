/* budget_threads_test.c: what was made for models goes, by kiln_context_trim and by the option
 * jit_memory, and is made anew: between calls and beside them. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "api/internal.h"
#include "codegen/codegen.h"
#include "runtime/pack.h"
#include "test/unit/api/fixture.h"

#define CASE TEST_DATA "/own/mlp/"
#define INPUTS CASE "inputs_0.pt"
#define WANTED CASE "expected_0.pt"
enum { MODELS = 3 };

typedef struct host {
  kiln_context *context;
  kiln_model *models[MODELS];
  kiln_instance *instances[MODELS];
} host;

static char events[1 << 16];
static pthread_mutex_t events_lock = PTHREAD_MUTEX_INITIALIZER;

static void note_event(void *user, const char *line) {
  (void)user;
  pthread_mutex_lock(&events_lock);
  const size_t used = strlen(events);
  if (strstr(line, "jit_memory")) snprintf(events + used, sizeof events - used, "%s\n", line);
  pthread_mutex_unlock(&events_lock);
}

static host open_host(const char *compile, const char *most) {
  const setting settings[] = {{"codegen", "eval"},
                              {"compile", compile},
                              {"compile_after", "0"},
                              {"jit_memory", most},
                              {NULL, NULL}};
  host h = {.context = context_of(settings)};
  assert_ok(kiln_context_set_events(h.context, note_event, NULL));
  events[0] = '\0';
  for (int i = 0; i < MODELS; i++) {
    assert_ok(kiln_model_load(h.context, CASE "model.pt", NULL, &h.models[i]));
    assert_ok(kiln_instance_create(h.models[i], &h.instances[i]));
  }
  return h;
}

static void close_host(host *h) {
  for (int i = 0; i < MODELS; i++) {
    kiln_instance_release(h->instances[i]);
    kiln_model_release(h->models[i]);
  }
  kiln_context_release(h->context);
}

static kiln_counters counters(const host *h, int model) { return counters_of(h->models[model]); }

/* A status of none or of lack of memory; else the answer is the recorded one. */
static kiln_status *call_with(const host *h, int model, const kiln_value *inputs,
                              const kiln_value *want) {
  kiln_value *x = NULL, *got = NULL;
  kiln_status *status = kiln_value_item(inputs, 0, &x);
  if (!status) status = kiln_instance_call(h->instances[model], "forward", &x, 1, NULL, &got);
  kiln_value_destroy(x);
  if (!status) assert_close(got, want, 1e-4f, 1e-5f);
  kiln_value_destroy(got);
  return status;
}

static void call(const host *h, int model, int times) {
  kiln_value *inputs = read_recorded(h->context, INPUTS), *want = read_recorded(h->context, WANTED);
  for (int i = 0; i < times; i++) assert_ok(call_with(h, model, inputs, want));
  kiln_value_destroy(want);
  kiln_value_destroy(inputs);
}
/* Until its groups run compiled. */
static void warm(const host *h, int model) {
  for (int i = 0; i < 4; i++) {
    call(h, model, 2);
    assert_ok(kiln_model_wait_idle(h->models[model], NULL));
  }
}

static uint64_t made(const host *h, int model) { return kiln_jit_bytes(h->models[model]->jit); }

static void what_was_made_goes_and_comes_back(void **state) {
  static const char *const ways[] = {"sync", "async"};
  (void)state;
  for (int way = 0; way < 2; way++) {
    host h = open_host(ways[way], "0");
    for (int i = 0; i < MODELS; i++) warm(&h, i);
    const size_t held = kiln_context_bytes(h.context);
    const kiln_counters before = counters(&h, 0);
    const uint64_t packed = kiln_pack_store_bytes(kiln_codegen_packs(h.context->codegen));
    assert_true(before.groups > 0 && before.compiled_runs > 0 && made(&h, 0) > 0);
    assert_ok(kiln_context_trim(h.context, 0));
    for (int i = 0; i < MODELS; i++) assert_int_equal(made(&h, i), 0);
    assert_true(kiln_context_bytes(h.context) < held);
    assert_true(packed == 0 || kiln_pack_store_bytes(kiln_codegen_packs(h.context->codegen)) == 0);
    const kiln_counters gone = counters(&h, 0); /* what was counted stays */
    assert_int_equal(gone.dropped, 1);
    assert_int_equal(gone.groups, before.groups);
    assert_int_equal(gone.compiled_runs, before.compiled_runs);
    assert_int_equal(gone.guard_hits, before.guard_hits);
    assert_int_equal(gone.profiled_runs, before.profiled_runs);
    assert_true(gone.plan_bytes + gone.code_bytes < before.plan_bytes + before.code_bytes);
    assert_ok(kiln_context_trim(h.context, 0)); /* there is nothing left */
    assert_int_equal(counters(&h, 0).dropped, 1);
    warm(&h, 0);
    assert_true(counters(&h, 0).compiled_runs > before.compiled_runs);
    assert_int_equal(counters(&h, 0).groups, 2 * before.groups);
    assert_int_equal(made(&h, 1), 0);
    close_host(&h);
  }
}

/* The model that was called longest ago goes first, and no more than has to. */
static void the_longest_ago_goes(void **state) {
  (void)state;
  host h = open_host("sync", "0");
  for (int i = 0; i < MODELS; i++) warm(&h, i);
  const uint64_t each = made(&h, 0);
  assert_ok(kiln_context_trim(h.context, UINT64_MAX)); /* a look */
  call(&h, 1, 1);
  assert_ok(kiln_context_trim(h.context, UINT64_MAX));
  call(&h, 2, 1);
  assert_ok(kiln_context_trim(h.context, 2 * each + each / 2));
  assert_int_equal(made(&h, 0), 0);
  assert_true(made(&h, 1) > 0 && made(&h, 2) > 0);
  assert_ok(kiln_context_trim(h.context, each + each / 2));
  assert_int_equal(made(&h, 1), 0);
  assert_true(made(&h, 2) > 0);
  close_host(&h);
}

/* With compile=async a job does it. */
static void wait_for_event(const char *words) {
  const struct timespec ms = {.tv_nsec = 1000000};
  bool found = false;
  for (int i = 0; i < 10000 && !found; i++) {
    pthread_mutex_lock(&events_lock);
    found = strstr(events, words) != NULL;
    pthread_mutex_unlock(&events_lock);
    if (!found) nanosleep(&ms, NULL);
  }
  assert_true(found);
}

static void the_option_bounds_it(void **state) {
  char most[32];
  (void)state;
  host h = open_host("sync", "0");
  warm(&h, 0);
  const uint64_t each = made(&h, 0);
  close_host(&h);
  snprintf(most, sizeof most, "%llu", (unsigned long long)(2 * each + each / 2));
  for (int way = 0; way < 2; way++) {
    h = open_host(way ? "async" : "sync", most);
    warm(&h, 0);
    warm(&h, 1);
    assert_int_equal(counters(&h, 0).dropped, 0);
    warm(&h, 2);
    wait_for_event("\"evicted\"");
    /* Beside the calls the job may come to look when both had been called. */
    assert_int_equal(counters(&h, 0).dropped + (way ? counters(&h, 1).dropped : 0), 1);
    assert_int_equal(counters(&h, 2).dropped + (way ? 0 : counters(&h, 1).dropped), 0);
    close_host(&h);
  }
  h = open_host("sync", "1"); /* what one model has is not taken from it */
  warm(&h, 0);
  assert_true(made(&h, 0) > 0);
  assert_int_equal(counters(&h, 0).dropped, 0);
  wait_for_event("\"limit\"");
  close_host(&h);
}

static void without_memory_all_stays(void **state) {
  (void)state;
  host h = open_host("sync", "0");
  kiln_value *inputs = read_recorded(h.context, INPUTS), *want = read_recorded(h.context, WANTED);
  bool failed = true;
  for (uint64_t n = 1; failed; n++) {
    warm(&h, 0);
    (void)kiln_mem_fail_at(h.context->env->mem, n);
    kiln_status *status = kiln_context_trim(h.context, 0);
    kiln_status *called = call_with(&h, 0, inputs, want);
    failed = kiln_mem_fail_at(h.context->env->mem, 0) >= n;
    if (status) assert_int_equal(kiln_status_code(status), KILN_OUT_OF_MEMORY);
    if (called) assert_int_equal(kiln_status_code(called), KILN_OUT_OF_MEMORY);
    kiln_status_destroy(status);
    kiln_status_destroy(called);
    n += n > 64 ? 7 : 0;
  }
  kiln_value_destroy(want);
  kiln_value_destroy(inputs);
  close_host(&h);
}

/* -- Beside calls -- */

typedef struct caller {
  pthread_t thread;
  const host *h;
  int first;
  bool stop;
} caller;

static void *call_all(void *data) {
  const caller *c = data;
  kiln_value *inputs = read_recorded(c->h->context, INPUTS);
  kiln_value *want = read_recorded(c->h->context, WANTED);
  for (int i = 0; i < 300 || !__atomic_load_n(&c->stop, __ATOMIC_RELAXED); i++)
    assert_ok(call_with(c->h, (c->first + i / 20) % MODELS, inputs, want));
  kiln_value_destroy(want);
  kiln_value_destroy(inputs);
  return NULL;
}

static void calls_go_on(void **state) {
  static const char *const ways[] = {"sync", "async"};
  enum { THREADS = 4 };
  (void)state;
  for (int way = 0; way < 2; way++) {
    host h = open_host(ways[way], "0");
    caller callers[THREADS];
    for (int i = 0; i < THREADS; i++) {
      callers[i] = (caller){.h = &h, .first = i};
      pthread_create(&callers[i].thread, NULL, call_all, &callers[i]);
    }
    for (int i = 0; i < 60 || (i < 5000 && counters(&h, 0).dropped == 0); i++) {
      const struct timespec ms = {.tv_nsec = 2000000};
      assert_ok(kiln_context_trim(h.context, i % 3 ? 0 : 100000));
      nanosleep(&ms, NULL);
    }
    for (int i = 0; i < THREADS; i++) __atomic_store_n(&callers[i].stop, true, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) pthread_join(callers[i].thread, NULL);
    for (int i = 0; i < MODELS; i++) warm(&h, i);
    assert_true(counters(&h, 0).dropped > 0);
    close_host(&h);
  }
}

/* A context under its option, whose models take turns, holds no more in the end than early on. */
static void memory_is_flat(void **state) {
  (void)state;
  host h = open_host("sync", "1");
  size_t held = 0;
  for (int round = 0; round < 60; round++) {
    for (int i = 0; i < MODELS; i++) warm(&h, i);
    if (round == 19) held = kiln_context_bytes(h.context);
  }
  assert_true(counters(&h, 0).dropped >= 50);
  if (kiln_context_bytes(h.context) > held + held / 20)
    fail_msg("%zu bytes, then %zu", held, kiln_context_bytes(h.context));
  close_host(&h);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_made_goes_and_comes_back),
                                     cmocka_unit_test(the_longest_ago_goes),
                                     cmocka_unit_test(the_option_bounds_it),
                                     cmocka_unit_test(without_memory_all_stays),
                                     cmocka_unit_test(calls_go_on),
                                     cmocka_unit_test(memory_is_flat)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
