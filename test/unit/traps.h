/* traps.h: scratch whose use shows. Signalling NaNs set the processor's invalid flag where they
 * take part in arithmetic, and become NaN where a result depends on them. */
#pragma once

#include <fenv.h>
#include <stdint.h>
#include <string.h>

#include "runtime/type.h"

/* Fills `bytes`, a multiple of 8, and clears the flag. */
static inline void traps_set(kiln_dtype dtype, void *scratch, size_t bytes) {
  const uint64_t trap = dtype == KILN_DTYPE_F32 ? 0x7fa000007fa00000 : 0x7ff4000000000000;
  for (size_t i = 0; i < bytes; i += sizeof trap) memcpy((char *)scratch + i, &trap, sizeof trap);
  feclearexcept(FE_INVALID);
}
static inline bool traps_were_used(void) { return fetestexcept(FE_INVALID) != 0; }
