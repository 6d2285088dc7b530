/* call_cost.h: the cost of one call of a function, found by shape propagation instead of a call. */
#pragma once

#include "ir/cost.h"
#include "ir/unit.h"

/* `args`: what the call would get, self first; types of tensors and values of numbers are looked
 * at, no element is. The rows of *out_cost lie in `arena`, which is of the caller's scope. */
kiln_status *kiln_call_cost(kiln_env *env, kiln_function *function, const kiln_ivalue *args,
                            int arg_count, kiln_arena *arena, kiln_cost *out_cost) KILN_MUST_USE;
