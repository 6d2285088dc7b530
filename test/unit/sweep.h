/* sweep.h: the failing allocator. Runs a body again and again, the N-th request for memory failing
 * in the N-th run. Each must give back a status (KILN_OUT_OF_MEMORY unless tolerant) and all of its
 * memory. Bodies with more than SWEEP_RUNS requests are sampled evenly, the first and last ones
 * always.
 *
 *   static kiln_status *body(kiln_mem *mem, void *arg) { ... makes, uses and releases things ... }
 *   sweep(body, arg);
 *   sweep_env(body_with_env, arg);    the body gets a kiln_env
 *   sweep_arena(body_in_arena, arg);  the body runs inside a scope and gets an arena
 *
 * The body is run once without failure first, and must succeed. It must not use cmocka's asserts
 * after something was acquired, or a failing one leaks. */
#pragma once

#include "test/unit/unit.h"

enum { SWEEP_RUNS = 2000 };

typedef kiln_status *(*sweep_body)(kiln_mem *mem, void *arg);

/* tolerant: a run whose failed request was made good some other way (a cache that was emptied, an
 * optional thing left out) may succeed. */
static inline void sweep__run(kiln_mem *mem, sweep_body body, void *arg, bool tolerant) {
  size_t before = kiln_mem_bytes(mem);
  kiln_mem_fail_at(mem, 0);
  assert_ok(body(mem, arg));
  uint64_t requests = kiln_mem_fail_at(mem, 0);
  assert_int_equal(kiln_mem_bytes(mem), before);
  uint64_t step = requests / SWEEP_RUNS + 1;
  for (uint64_t i = 0; i * step < requests; i++) {
    uint64_t n = (i + 1) * step < requests ? i * step + 1 : requests;
    kiln_mem_fail_at(mem, n);
    kiln_status *status = body(mem, arg);
    bool reached = kiln_mem_fail_at(mem, 0) >= n;
    kiln_code code = kiln_status_code(status);
    bool good = code == KILN_OUT_OF_MEMORY || (code == KILN_OK && (tolerant || !reached));
    if (!good)
      print_error("request %llu of %llu failed, the answer is %s: %s\n", (unsigned long long)n,
                  (unsigned long long)requests, kiln_code_name(code), kiln_status_report(status));
    kiln_status_destroy(status);
    if (kiln_mem_bytes(mem) != before) {
      print_error("request %llu of %llu failed, %lld bytes were not given back\n",
                  (unsigned long long)n, (unsigned long long)requests,
                  (long long)(kiln_mem_bytes(mem) - before));
      good = false;
    }
    assert_true(good);
  }
}

static inline void sweep__fresh(sweep_body body, void *arg, bool tolerant) {
  kiln_mem *mem = NULL;
  assert_ok(kiln_mem_create(KILN_MEM_DEFAULT, &mem));
  sweep__run(mem, body, arg, tolerant);
  kiln_mem_release(mem);
}

static inline void sweep(sweep_body body, void *arg) { sweep__fresh(body, arg, false); }
static inline void sweep_tolerant(sweep_body body, void *arg) { sweep__fresh(body, arg, true); }

/* -- Bodies that want more than a mem -- */

typedef struct sweep__adapter {
  kiln_env *env;
  kiln_status *(*with_env)(kiln_env *env, void *arg);
  kiln_status *(*in_arena)(kiln_arena *arena, void *arg);
  void *arg;
} sweep__adapter;

static inline kiln_status *sweep__env_body(kiln_mem *mem, void *arg) {
  sweep__adapter *adapter = arg;
  (void)mem;
  return adapter->with_env(adapter->env, adapter->arg);
}

/* The environment is empty: every flag has its default. */
static inline void sweep_env(kiln_status *(*body)(kiln_env *env, void *arg), void *arg,
                             bool tolerant) {
  kiln_env *env = NULL;
  assert_ok(kiln_env_create(NULL, &env));
  sweep__adapter adapter = {.env = env, .with_env = body, .arg = arg};
  sweep__run(env->mem, sweep__env_body, &adapter, tolerant);
  kiln_env_destroy(env);
}

static inline kiln_status *sweep__arena_body(kiln_mem *mem, void *arg) {
  const sweep__adapter *adapter = arg;
  KILN_PROTECT(adapter->in_arena(kiln_arena_scoped(mem), adapter->arg));
}

static inline void sweep_arena(kiln_status *(*body)(kiln_arena *arena, void *arg), void *arg) {
  sweep__adapter adapter = {.in_arena = body, .arg = arg};
  sweep(sweep__arena_body, &adapter);
}
