/* eval.h: the evaluator of loop IR: a back end that compiles nothing, and the reference of the
 * others. It gives the bits that generated code gives (docs/numerics.md).
 *
 * It works in blocks of at most 1024 iterations. A block is `rows` x `columns` of two loops, chosen
 * so that the values of its instructions stay in the first cache; an instruction runs over the
 * whole block, by one call of a function from the table of its instruction set, before the next one
 * does. Which two loops a nest's block covers:
 *
 *   no loops in the body     rows of the loop before the last, columns of the last
 *   vectors along the body   rows of the nest's last loop, columns of an innermost loop
 *   vectors along the nest   rows of an innermost loop of the body, columns of the nest's last
 *
 * (kiln_loop_strips_body). Where columns are many, a block has one row. Of
 *
 *   nest [1000, 100] {
 *     %0 = load f32 b0 + 0 [1, 0]
 *     %1 = exp f32 %0
 *     %2 = load f32 b1 + 0 [100, 1]
 *     %3 = mul f32 %1, %2
 *     store f32 b2 + 0 [100, 1], %3
 *   }
 *
 * a block is 10 rows of 100 columns. %0 and %1 have a value for each row: exp runs over 10 numbers,
 * which are then spread over the block. %2 is no copy: its 1000 elements lie as the block does, and
 * mul reads them where they are; it writes its result where the store would put it.
 *
 * What does not change in the outer loops is computed outside of them, constants once in a call. A
 * value has a slot of scratch for a block, which others take over when nobody reads it any more. */
#pragma once

#include "base/env.h"
#include "codegen/loop/loop.h"

typedef struct kiln_eval_program kiln_eval_program;

/* The functions of an instruction set; runtime/math gives the bits of its set. */
typedef struct kiln_eval_table kiln_eval_table;
extern const kiln_eval_table kiln__eval_v2, kiln__eval_avx2, kiln__eval_avx512;

/* Copies what it needs of a verified kernel; the table is borrowed. */
kiln_status *kiln_eval_create(const kiln_loop_fn *fn, const kiln_eval_table *table, kiln_mem *mem,
                              kiln_arena *scratch, kiln_eval_program **out_program) KILN_MUST_USE;
void kiln_eval_destroy(kiln_eval_program *program);
/* A kernel_abi.h function; args->closure is the program. */
void kiln_eval_run(const kiln_kernel_args *args, const kiln_kernel_box *box);
/* Bytes of the program. */
size_t kiln_eval_bytes(const kiln_eval_program *program);
/* What kiln_loop_info is to know of it. */
int kiln_eval_columns(void);
int64_t kiln_eval_own_bytes(const kiln_eval_program *program);
