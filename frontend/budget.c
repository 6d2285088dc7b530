/* budget.c: limits of a load. */
#include "frontend/budget.h"

#include <time.h>

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void kiln_budget_begin(kiln_budget *budget, kiln_mem *mem, const kiln_limits *limits) {
  *budget = (kiln_budget){.mem = mem, .held_at_start = kiln_mem_bytes(mem)};
  if (!limits) return;
  budget->bytes = limits->bytes;
  budget->time_ms = limits->time_ms;
  if (limits->time_ms) budget->deadline_ns = now_ns() + (uint64_t)limits->time_ms * 1000000u;
}

kiln_status *kiln_budget_check(const kiln_budget *budget, uint64_t more) {
  if (!budget) return NULL;
  size_t held = kiln_mem_bytes(budget->mem);
  uint64_t used = held > budget->held_at_start ? held - budget->held_at_start : 0;
  if (budget->bytes && (used > budget->bytes || more > budget->bytes - used)) {
    return KILN_ERROR(KILN_LIMIT, "the load needs more than its limit of %llu bytes",
                      (unsigned long long)budget->bytes);
  }
  if (budget->deadline_ns && now_ns() > budget->deadline_ns) {
    return KILN_ERROR(KILN_LIMIT, "the load took longer than its limit of %u ms", budget->time_ms);
  }
  return NULL;
}
