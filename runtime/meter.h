/* meter.h: how long runs of plans take, where somebody wants to know (jit/ledger.h).
 *
 * Whoever chooses a callable's plan sets call->meter, and the frame that runs the plan adds its
 * time when it returns; a run that ends in an error adds nothing. Threads A and B run one plan on
 * one meter: sums are exact, the least run is that of either. */
#pragma once

#include "base/base.h"

typedef struct kiln_meter {    /* atomic, relaxed */
  uint64_t runs, ns, least_ns; /* the shortest run; 0: there was none */
} kiln_meter;

static inline void kiln_meter_add(kiln_meter *meter, uint64_t ns) {
  uint64_t least = __atomic_load_n(&meter->least_ns, __ATOMIC_RELAXED);
  ns += ns == 0;
  while ((!least || ns < least) && !__atomic_compare_exchange_n(&meter->least_ns, &least, ns, true,
                                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    continue;
  __atomic_fetch_add(&meter->ns, ns, __ATOMIC_RELAXED);
  __atomic_fetch_add(&meter->runs, 1, __ATOMIC_RELAXED);
}
static inline kiln_meter kiln_meter_read(const kiln_meter *meter) {
  return (kiln_meter){.runs = __atomic_load_n(&meter->runs, __ATOMIC_RELAXED),
                      .ns = __atomic_load_n(&meter->ns, __ATOMIC_RELAXED),
                      .least_ns = __atomic_load_n(&meter->least_ns, __ATOMIC_RELAXED)};
}
static inline void kiln_meter_write(kiln_meter *meter, kiln_meter to) {
  __atomic_store_n(&meter->least_ns, to.least_ns, __ATOMIC_RELAXED);
  __atomic_store_n(&meter->ns, to.ns, __ATOMIC_RELAXED);
  __atomic_store_n(&meter->runs, to.runs, __ATOMIC_RELAXED);
}
