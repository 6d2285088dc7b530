/* prepare.h: what the first run of a plan would compute of its weights, done before that run: kept
 * results (kept.h) and packed copies (pack.h).
 *
 * The thread of a call collects: it goes over the plan's code once, follows the attributes that the
 * plan reads from its arguments, and takes views of those that such results are made of. Any thread
 * prepares, with these views alone: the call's arguments, and what later calls write, are none of
 * its business. So only memory that is lent for reading is taken, as the weights of a loaded model
 * are: whoever writes such a weight writes a copy. What else there is, the first run computes.
 *
 * Nothing here depends on a branch: what is collected may be more than a run reads, or what it
 * would not read in this order. Kept results and copies are found by the memory that they are of.
 */
#pragma once

#include "runtime/plan.h"

/* Whether plans like this can have something to prepare. */
bool kiln_plan_wants_preparation(const kiln_plan *plan);

/* A tensor of its own on memory that is lent for reading; *out_view is NULL where it is not. */
kiln_status *kiln_weight_view(kiln_mem *mem, const kiln_tensor *t,
                              kiln_tensor **out_view) KILN_MUST_USE;

/* Views of weights, by place: the arguments, then what the instructions GET_ATTR and BORROW_ATTR
 * read, in their order. */
typedef struct kiln_weights kiln_weights;
/* *out_weights is NULL where the plan's results are of constants alone, or of no weights that can
 * be had. Some 0.1 us a weight, and 5 ns an instruction. */
kiln_status *kiln_weights_collect(const kiln_plan *plan, kiln_mem *mem, const kiln_ivalue *args,
                                  int arg_count, kiln_weights **out_weights) KILN_MUST_USE;
/* NULL is fine. */
void kiln_weights_destroy(kiln_weights *weights);
/* Fills the plan's slots (weights NULL: those of constants), under the budget of `call`, which is
 * within the plan's epoch. What fails is left to the first run. */
kiln_status *kiln_plan_prepare(const kiln_plan *plan, kiln_call *call,
                               const kiln_weights *weights) KILN_MUST_USE;
