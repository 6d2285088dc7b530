/* eval.h: the evaluator of loop IR: a back end in plain C, and the judge of the others.
 *
 * A kernel is kiln_eval_run with the program as its closure: each instruction runs over a strip of
 * elements before the next one. It gives the bits that generated code gives (docs/numerics.md). */
#ifndef KILN_CODEGEN_LOOP_EVAL_H
#define KILN_CODEGEN_LOOP_EVAL_H

#include "codegen/loop/loop.h"

typedef struct kiln_eval_program kiln_eval_program;

/* Copies what it needs of a verified kernel. *out_scratch: bytes that each call needs. */
kiln_status *kiln_eval_create(const kiln_loop_fn *fn, kiln_mem *mem,
                              kiln_eval_program **out_program, size_t *out_scratch) KILN_MUST_USE;
void kiln_eval_destroy(kiln_eval_program *program);
/* A kiln_kernel_fn: args->closure is the program. */
void kiln_eval_run(const kiln_kernel_args *args, int64_t begin, int64_t end);

#endif
