/* memory_plan.h: where blocks lie in one block, when it is known from when to when each is lent.
 *
 * In an order, each goes into the tightest gap that those leave that are lent at the same time, or
 * behind them. The orders are by falling size (Pisarchyk and Lee, Efficient Memory Management for
 * Deep Neural Net Inference, 2020), by size times lifetime, as they are lent, and again with the
 * block first that ended up highest, until nothing is wasted or a bound of the work is reached.
 * Blocks [0, 4) of 3 units, [1, 2) of 2 and [3, 5) of 2 need 5 units: the last two lie in the same
 * place. Quadratic in the count, which is bounded for it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { KILN_MEMORY_PLAN_MOST = 512 };
typedef struct kiln_lifetime {
  uint32_t from, to; /* of a clock; it is lent in [from, to) */
  uint32_t size;     /* in units of the caller's, at least 1 */
  uint32_t number;   /* the caller's own */
  uint32_t at;       /* set: where it lies, in those units */
  uint32_t tried;    /* of the plan's own */
} kiln_lifetime;

/* Sets where each of up to KILN_MEMORY_PLAN_MOST blocks lies, in another order than they come.
 * Returns the units that all together take up. */
uint32_t kiln_memory_plan(kiln_lifetime *blocks, int count);
