/* eval.h: the evaluator of loop IR: a back end in portable C, and the reference of the others.
 *
 * A kernel is the back end's `run` with the program as its closure: each instruction runs over a
 * strip of elements before the next one. It gives the bits that generated code gives
 * (docs/numerics.md). */
#pragma once

#include "base/env.h"
#include "codegen/loop/loop.h"

typedef struct kiln_eval_program kiln_eval_program;

typedef struct kiln_eval_backend {
  /* Copies what it needs of a verified kernel. */
  kiln_status *(*create)(const kiln_loop_fn *fn, kiln_mem *mem, kiln_arena *scratch,
                         kiln_eval_program **out_program);
  kiln_kernel_fn run; /* args->closure is the program */
} kiln_eval_backend;

/* Compiled once for each instruction set, as runtime/math gives the bits of its set. */
extern const kiln_eval_backend kiln__eval_v2, kiln__eval_avx2, kiln__eval_avx512;

void kiln_eval_destroy(kiln_eval_program *program);
/* Bytes of the program. */
size_t kiln_eval_bytes(const kiln_eval_program *program);
/* What kiln_loop_info is to know of it. */
int kiln_eval_lanes(const kiln_eval_program *program);
int64_t kiln_eval_own_bytes(const kiln_eval_program *program);
