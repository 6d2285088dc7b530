/* operands.h: what programs that measure kernels of the core begin with. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"

static inline float *bench_filled(int64_t n) {
  float *data = aligned_alloc(64, ((size_t)n * sizeof(float) + 127) / 64 * 64);
  if (!data) exit(3);
  for (int64_t i = 0; i < n; i++) data[i] = (float)(i % 17) / 8 - 1;
  return data;
}
static inline void bench_must(kiln_status *status) {
  if (!status) return;
  fprintf(stderr, "%s\n", kiln_status_message(status));
  exit(3);
}
