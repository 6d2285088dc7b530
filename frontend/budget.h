/* budget.h: what one load may use of memory and time: kiln_limits.bytes and .time_ms.
 *
 * Memory is what the context holds beyond what it held at the start, so loads of one context at the
 * same time count for each other. Pages of a mapped file are not memory in this sense. */
#ifndef KILN_FRONTEND_BUDGET_H
#define KILN_FRONTEND_BUDGET_H

#include "base/mem.h"

typedef struct kiln_budget {
  kiln_mem *mem;
  size_t held_at_start;
  uint64_t bytes;       /* 0: no limit */
  uint64_t deadline_ns; /* of the monotonic clock; 0: none */
  uint32_t time_ms;
} kiln_budget;

/* `limits` may be NULL: none. */
void kiln_budget_begin(kiln_budget *budget, kiln_mem *mem, const kiln_limits *limits);
/* KILN_LIMIT when the time is over, or what is held and `more` bytes are too much. NULL is fine. */
kiln_status *kiln_budget_check(const kiln_budget *budget, uint64_t more) KILN_MUST_USE;

#endif
