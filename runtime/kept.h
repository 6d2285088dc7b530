/* kept.h: results of operators that read weights alone, computed by the first run of a plan and
 * kept for those after it.
 *
 * A slot has one record: what the arguments were, by memory and geometry, and the results. It is
 * published by one store and never replaced, so whoever has seen it may use it without counting
 * references until the plan goes. A run that has other weights (those that its instance was given,
 * or that were written since) finds that they differ, and computes. The record holds the weights'
 * memory (kiln_memory); and nobody writes what is kept: who makes the plan sees to it
 * (jit/keep_constants.c). */
#pragma once

#include "runtime/kernel.h"

typedef struct kiln_kept_slot {
  struct kiln__kept *kept; /* atomic; NULL: nothing so far */
} kiln_kept_slot;
void kiln_kept_slot_release(kiln_kept_slot *slot);

/* The results for these arguments, borrowed; NULL: there are none. */
const kiln_ivalue *kiln_kept_find(const kiln_kept_slot *slot, const kiln_ivalue *args, int count);
/* Keeps results (retained) where the slot is empty, there is memory, and the arguments are nobody's
 * but Kiln's to write. */
void kiln_kept_offer(kiln_mem *mem, kiln_kept_slot *slot, const kiln_ivalue *args, int count,
                     const kiln_ivalue *outs, int out_count);

/* An operator of a plan whose results are kept (instruction KEPT). */
typedef struct kiln_kept_op {
  const kiln_kernel *kernel;
  kiln_kept_slot *slot;
} kiln_kept_op;
