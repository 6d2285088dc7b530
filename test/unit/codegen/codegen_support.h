/* codegen_support.h: a context for code generation, and a source of random numbers. */
#pragma once

#include <math.h>
#include <stdlib.h>

#include "codegen/codegen.h"
#include "test/unit/unit.h"

typedef struct fixture {
  kiln_env *env;
  kiln_arena *arena;
} fixture;

static inline void fixture_open(fixture *f) {
  assert_ok(kiln_env_create(NULL, &f->env));
  assert_ok(kiln_arena_create(f->env->mem, &f->arena));
}
static inline void fixture_close(fixture *f) {
  kiln_arena_destroy(f->arena);
  kiln_env_destroy(f->env);
}

/* Parses and verifies loop IR; NULL status in *out_status when it is fine. */
typedef struct parse_job {
  fixture *f;
  kiln_str text, print;
  kiln_loop_fn *fn;
  bool optimize;
} parse_job;
static inline kiln_status *parse_body(parse_job *job) {
  KILN_TRY(kiln_loop_parse(job->text, job->f->arena, &job->fn));
  if (job->optimize) KILN_TRY(kiln_loop_optimize(job->fn, job->f->arena));
  job->print = kiln_loop_print(job->fn, job->f->arena);
  return kiln_loop_verify(job->fn);
}
static inline kiln_loop_fn *parse_loop(fixture *f, const char *text, bool optimize,
                                       kiln_str *out_print) {
  parse_job job = {.f = f, .text = kiln_str_from(text), .optimize = optimize};
  assert_ok(parse_body(&job));
  if (out_print) *out_print = job.print;
  return job.fn;
}

static inline kiln_kernel_info info_of(fixture *f, const kiln_loop_fn *fn) {
  kiln_kernel_info info;
  assert_ok(kiln_loop_info(fn, KILN_LOOP_LANES, 0, f->arena, &info));
  return info;
}

static inline uint64_t random_next(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}
static inline int random_below(uint64_t *state, int n) {
  return (int)(random_next(state) % (uint64_t)n);
}

/* The instruction sets of this machine. */
static inline int isa_count(void) { return (int)kiln_isa_detect() + 1; }
