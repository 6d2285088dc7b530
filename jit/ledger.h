/* ledger.h: what kernels cost and what they save: which level is made, which one first, and which
 * variant is given up.
 *
 * Kept of each executor: how long calls ran in the interpreter since its last level was made. Of
 * each variant: what making it took, the shortest run of the interpreter before it, and the
 * shortest of its own first runs, of arguments of the same types. What it saves in a run is the
 * difference; it breaks even after as many runs as the saving goes into the cost.
 *
 * With compile=async the ledger decides, and never with compile=sync, which does the same whatever
 * time it takes:
 *   - A level is not asked for before calls have spent `compile_after` percent of what it is
 *     expected to take. So a shape that comes once, or an operator of a microsecond, makes no
 *     kernel: a region of 2 us whose level takes 10 ms is compiled after 100 runs, a call of 10 ms
 *     whose level takes 500 ms at once.
 *   - Of jobs that wait, the one is run first for which calls spend most in the interpreter by what
 *     it takes: W. E. Smith, Various optimizers for single-stage production, 1956.
 *   - A variant whose shortest run is longer than the interpreter's is tried against it, in turns;
 *     if it loses, the interpreter serves what its guard lets through.
 *
 * Thread A runs the variant on (8, 64), thread B on (512, 64), where it has sizes that vary: of B's
 * runs none is compared, as the interpreter's were of (8, 64). */
#pragma once

#include "runtime/meter.h"

struct kiln_executor;
struct kiln_variant;
struct kiln_call;
struct kiln_plan;
struct kiln_graph;

/* Of one variant. */
typedef struct kiln_ledger_entry {
  uint64_t made_ns; /* atomic */
  uint64_t hash;    /* of the arguments whose runs are compared */
  kiln_meter interpreted, own;
  uint32_t asked; /* atomic: calls that came while it was metered or tried */
} kiln_ledger_entry;

/* A graph that levels of the executor start from. */
void kiln__ledger_measure(struct kiln_executor *executor, const struct kiln_graph *graph);
/* The next frame of the call runs the executor's interim plan, on arguments of this hash. */
void kiln__ledger_meter(struct kiln_executor *executor, struct kiln_call *call, uint64_t hash);
/* Whether the executor's next level is worth a job by now. */
bool kiln__ledger_pays(const struct kiln_executor *executor);
/* What calls have spent without it, in thousandths of what it is expected to take. */
uint64_t kiln__ledger_worth(const struct kiln_executor *executor);
/* A level was made; its variant is metered from here on. Under the root's lock. */
void kiln__ledger_open(struct kiln_executor *executor, struct kiln_variant *variant, uint64_t ns);
/* The same lock: a variant is run in turns with the executor's plan of calls without JIT. */
void kiln__ledger_try(struct kiln_variant *variant);
/* A variant holds, and its state is not 0: the plan that serves a call of these arguments. Sets
 * *out_doubtful where a trial is to be asked for. */
const struct kiln_plan *kiln__ledger_choose(struct kiln_executor *executor, struct kiln_call *call,
                                            uint64_t hash, struct kiln_variant *variant,
                                            bool *out_doubtful);
