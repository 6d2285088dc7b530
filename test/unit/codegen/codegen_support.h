/* codegen_support.h: a context for code generation, and a source of random numbers. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "codegen/codegen.h"
#include "runtime/kernel_shape.h"
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

/* What the passes make of a kernel, which they leave as it is from then on. */
static inline void check_passes(const char *before, const char *after) {
  fixture f;
  fixture_open(&f);
  kiln_str print, twice;
  parse_loop(&f, before, true, &print);
  if (!kiln_str_is(print, after)) fail_msg("got:\n" KILN_STR_FMT, KILN_STR_ARG(print));
  parse_loop(&f, kiln_arena_str(f.arena, print).data, true, &twice);
  assert_true(kiln_str_equal(print, twice));
  fixture_close(&f);
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

/* Random kernels of a unit: as many for each instruction set as it says, or as the environment
 * wants (LOOP_ROUNDS), with other seeds (LOOP_SEED); LLVM compiles each, or one of so many
 * (LOOP_LLVM). */
static inline int long_option(const char *name, int otherwise) {
  const char *text = getenv(name);
  return text ? atoi(text) : otherwise;
}
static inline int random_rounds(int otherwise) { return long_option("LOOP_ROUNDS", otherwise); }
static inline uint64_t random_seed(uint64_t seed) {
  return seed + (uint64_t)long_option("LOOP_SEED", 0) * UINT64_C(0x9e3779b97f4a7c15);
}
static inline int llvm_step(void) { return long_option("LOOP_LLVM", 1); }
static inline bool llvm_compiles(int n) { return n % llvm_step() == 0; }

/* The instruction sets of this machine. */
static inline int isa_count(void) { return (int)kiln_isa_detect() + 1; }

/* -- What a GPU is to compute -- */

/* Where the environment names a folder (GPU_CASES): the kernel's PTX, and its arguments with what
 * its outputs must be, for test/ptx.py, which says how many random ones it wants (GPU_CASES_COUNT).
 * `data` is of the tensors, spans[i] elements each. */
typedef struct gpu_case {
  kiln_codegen *codegen;
  const kiln_loop_fn *fn;
  char *const *data;
  const int64_t *spans;
  const kiln_kernel_scalar *scalars;
  const int64_t *symbols;
  const uint32_t *fault; /* what comes of it; NULL: it cannot */
} gpu_case;

static inline int gpu_case_count(int otherwise) {
  return long_option("GPU_CASES_COUNT", random_rounds(otherwise));
}
/* Of a unit with random kernels only those whose bits a GPU has are wanted. */
static inline void filter_gpu_cases(void) {
  if (getenv("GPU_CASES")) cmocka_set_test_filter("test_avx2");
}

static inline size_t gpu_scratch_bytes(const gpu_case *c, kiln_arena *arena) {
  kiln_kernel_info info;
  assert_ok(kiln_loop_info(c->fn, 1, 0, arena, &info));
  if (info.shape) assert_true(kiln_kernel_shape_work(info.shape, c->symbols, &info.work));
  return info.work.scratch_bytes;
}

static inline void write_gpu_case(const gpu_case *c, kiln_arena *arena) {
  const char *folder = getenv("GPU_CASES");
  if (!folder) return;
  char path[4096], hex[33];
  kiln_str ptx;
  assert_ok(kiln_codegen_dump(c->codegen, c->fn, KILN_STAGE_PTX, arena, &ptx));
  const kiln_str text = kiln_loop_print(c->fn, arena);
  kiln_digest_format(kiln_digest_bytes(text.data, text.len), hex);
  snprintf(path, sizeof path, "%s/%s.ptx", folder, hex);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fwrite(ptx.data, 1, ptx.len, file);
  fclose(file);
  snprintf(path, sizeof path, "%s/%s.case", folder, hex);
  file = fopen(path, "w");
  assert_non_null(file);
  for (int i = 0; i < c->fn->input_count + c->fn->output_count; i++)
    fprintf(file, "%s %s %lld\n", i < c->fn->input_count ? "in" : "out",
            kiln_loop_dtype_name(c->fn->buffers.data[i].dtype), (long long)c->spans[i]);
  for (int i = 0; i < c->fn->scalars.count; i++)
    fprintf(file, "scalar %s %lld\n", kiln_loop_dtype_name(c->fn->scalars.data[i]),
            (long long)c->scalars[i].i);
  for (int i = 0; i < kiln_loop_symbol_count(c->fn); i++)
    fprintf(file, "symbol i64 %lld\n", (long long)c->symbols[i]);
  if (c->fault) fprintf(file, "fault u32 %u\n", *c->fault);
  fprintf(file, "scratch u8 %zu\n\n", gpu_scratch_bytes(c, arena));
  for (int i = 0; i < c->fn->input_count + c->fn->output_count; i++)
    fwrite(c->data[i], (size_t)kiln_loop_size(c->fn->buffers.data[i].dtype), (size_t)c->spans[i],
           file);
  fclose(file);
}
