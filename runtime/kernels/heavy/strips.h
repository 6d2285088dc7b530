/* strips.h: what winograd.c and blocked.c share of cutting work into strips whose sums stay in a
 * cache: sizes, pieces for threads, and a call's scratch. */
#pragma once

#include "base/checked.h"
#include "runtime/call.h"
#include "runtime/tensor.h"

enum { LINE = 16 }; /* floats of a line of the caches */

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t parts_of(int64_t n, int64_t part) { return n / part + (n % part > 0); }

/* The next odd number of lines: what lies so far apart takes turns in all sets of a cache. */
static inline bool odd_lines(int64_t floats, int64_t *out) {
  return kiln_checked_mul_i64(parts_of(floats, LINE) | 1, LINE, out);
}

/* Multiplications that are worth a thread, and the grain of pieces of `each`. */
#define GRAIN_PRODUCTS 250e3
static inline int64_t grain_of(double each) {
  return each >= GRAIN_PRODUCTS ? 1 : (int64_t)(GRAIN_PRODUCTS / each) + 1;
}

/* Scratch of the call's cache, of whole floats; the caller gives the block back
 * (kiln_tensor_release_to). */
static inline kiln_status *take_scratch(kiln_call *call, size_t bytes, kiln_tensor **out_block,
                                        void **out_data) {
  const int64_t items = (int64_t)(bytes / sizeof(float));
  KILN_TRY(kiln_call_tensor(call, KILN_DTYPE_F32, 1, &items, out_block));
  kiln_status *status = kiln_tensor_writable_data(*out_block, out_data);
  if (status) kiln_tensor_release_to(&call->cache, *out_block);
  return status;
}
