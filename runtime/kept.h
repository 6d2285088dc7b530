/* kept.h: results of operators that read weights alone, computed by the first run of a plan and
 * kept for those after it.
 *
 * A slot's records (recall.h) say what the arguments were, by memory and geometry, and the results.
 * A run that has other weights (those that its instance was given, or that were written since)
 * computes, and where they stay, they get a record. It holds the weights' memory (kiln_memory); and
 * nobody writes what is kept: who makes the plan sees to it (jit/keep_constants.c). */
#pragma once

#include "runtime/kernel.h"
#include "runtime/recall.h"

typedef struct kiln_kept_slot {
  kiln_recall records;
} kiln_kept_slot;
void kiln_kept_slot_release(kiln_kept_slot *slot);

/* The results for these arguments, borrowed; NULL: there are none. */
const kiln_ivalue *kiln_kept_find(const kiln_kept_slot *slot, const kiln_ivalue *args, int count);
/* Keeps results (retained) where the slot wants them, there is memory, and the arguments are
 * nobody's but Kiln's to write. */
void kiln_kept_offer(kiln_mem *mem, kiln_epoch *epoch, kiln_kept_slot *slot,
                     const kiln_ivalue *args, int count, const kiln_ivalue *outs, int out_count);

/* An operator of a plan whose results are kept (instruction KEPT). */
typedef struct kiln_kept_op {
  const kiln_kernel *kernel;
  kiln_kept_slot *slot;
} kiln_kept_op;
