/* renewal_threads_test.c: variants give way while other threads run them, and while somebody looks
 * at them. */
#include <pthread.h>

#include "test/unit/jit/jit_support.h"

enum { THREADS = 4, SHAPES = 6, CALLS = 6000, LOOKS = 60 };

typedef struct caller {
  pthread_t thread;
  model m; /* a copy, with its own call */
  uint64_t random;
  kiln_ivalue args[SHAPES][2], want[SHAPES];
} caller;

static void caller_open(caller *c, const model *m, uint64_t seed) {
  *c = (caller){.m = *m, .random = seed};
  assert_ok(kiln_call_create(m->env, &c->m.call));
  c->m.call->jit = true;
  c->m.call->types = m->unit->types;
  for (int i = 0; i < SHAPES; i++) {
    for (int k = 0; k < 2; k++) c->args[i][k] = make_matrix(&c->m, 2 + i, 8, k ? -0.02 : 0.01);
    c->want[i] = call_plain(&c->m, c->args[i], 2);
  }
}

static void caller_close(caller *c) {
  pthread_join(c->thread, NULL);
  for (int i = 0; i < SHAPES; i++) {
    for (int k = 0; k < 2; k++) kiln_ivalue_release(c->args[i][k]);
    kiln_ivalue_release(c->want[i]);
  }
  kiln_call_destroy(c->m.call);
}

/* Most of its calls are of two shapes, which change; all windows end at once. */
static void *run(void *arg) {
  caller *c = arg;
  for (int i = 0; i < CALLS; i++) {
    c->random = kiln_hash_mix(c->random, (uint64_t)i);
    const int shape = (int)(c->random % 8 ? ((uint64_t)i / 100 + c->random / 8 % 2) % SHAPES
                                          : c->random / 8 % SHAPES);
    const kiln_executor *region = __atomic_load_n(&c->m.jit->now->executors.last, __ATOMIC_RELAXED);
    if (region) {
      const uint64_t due = __atomic_load_n(&region->renewal_due_ns, __ATOMIC_RELAXED);
      if (due != UINT64_MAX) /* none is giving way */
        __atomic_fetch_add(&c->m.jit->unserved_ns, due / 16, __ATOMIC_RELAXED);
    }
    kiln_ivalue got = call_model(&c->m, c->args[shape], 2);
    assert_close(got, c->want[shape]);
    kiln_ivalue_release(got);
  }
  return NULL;
}

static void look(model *m) {
  kiln_group_counters g;
  for (int i = 0; i < 8; i++) {
    kiln_status *status = kiln_jit_group(m->jit, i, &g);
    if (!status) assert_true(strlen(g.name) > 8 && (*g.hash == 0 || strlen(g.hash) == 32));
    kiln_status_destroy(status);
  }
  char *text = dump_stage(m, KILN_JIT_STAGE_LOOP, "");
  assert_int_equal(count_words(text, "kernel {"), count_words(text, "forward/TensorExprGroup_"));
  free(text);
  free(dump_stage(m, KILN_JIT_STAGE_OPTIMIZED, ""));
}

static void test_beside_runs(void **state) {
  (void)state;
  model m;
  caller callers[THREADS];
  model_open(&m, GRAPH_CHAIN,
             (const char *[]){"codegen=eval", "fusion_strategy=STATIC,3", "code_cache=0", NULL});
  caller_open(&callers[0], &m, 1);
  for (int i = 0; i < 4; i++) { /* the region's executor is there before threads look for it */
    for (int k = 0; k < 2; k++) kiln_ivalue_release(call_model(&m, callers[0].args[i], 2));
  }
  for (int i = 1; i < THREADS; i++) caller_open(&callers[i], &m, (uint64_t)i + 1);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&callers[i].thread, NULL, run, &callers[i]), 0);
  uint64_t ran = 0;
  for (int i = 0; i < LOOKS; i++) {
    look(&m);
    const kiln_counters c = counters(&m);
    assert_true(c.compiled_runs >= ran); /* no count goes with its variant */
    ran = c.compiled_runs;
  }
  for (int i = 0; i < THREADS; i++) caller_close(&callers[i]);
  kiln_jit_refusal r;
  uint64_t gave_way = 0;
  for (int i = 0; kiln_jit_refusal_at(m.jit, i, &r); i++) {
    if (r.reason == KILN_REASON_variant_gave_way) gave_way = r.count;
  }
  printf("%d variants gave way\n", (int)gave_way);
  assert_true(gave_way > 2);
  model_close(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_beside_runs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
