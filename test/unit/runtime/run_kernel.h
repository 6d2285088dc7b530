/* run_kernel.h: kernels called like functions from unit tests; include after those are declared. */
#pragma once

#include <stdlib.h>

#include "runtime/kernels/composite.h"
#include "test/unit/unit.h"

typedef struct fixture {
  kiln_env *env;
  kiln_call *call;
} fixture;
static inline int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  assert_ok(kiln_env_create(NULL, &f->env));
  assert_ok(kiln_call_create(f->env, &f->call));
  kiln_call_begin(f->call, NULL);
  *state = f;
  return 0;
}
static inline int teardown(void **state) {
  fixture *f = *state;
  kiln_call_destroy(f->call);
  kiln_env_destroy(f->env);
  free(f);
  return 0;
}

/* Result 0; where `results` is not 1, second[] gets the others. */
static inline kiln_tensor *run(fixture *f, kiln_kernel_body body, int results, int count,
                               const kiln_ivalue *args, kiln_tensor **second) {
  kiln_ivalue outs[KILN_MAX_OUTS];
  for (int i = 0; i < KILN_MAX_OUTS; i++) outs[i] = kiln_none();
  assert_ok(kiln_kernel_step(f->call, body, args, count, outs));
  for (int i = 1; i < results; i++) second[i - 1] = outs[i].u.tensor;
  return outs[0].u.tensor;
}
#define RUN(name, ...)                                       \
  run(f, KILN_BODY_OF(name), 1, KILN_ARG_COUNT(__VA_ARGS__), \
      (const kiln_ivalue[]){__VA_ARGS__, NONE, NONE}, NULL)
static inline void drop(fixture *f, kiln_tensor *t) { kiln_tensor_release_to(&f->call->cache, t); }
