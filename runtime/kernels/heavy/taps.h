/* taps.h: which taps of a convolution's window read its input at all. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether a tap reads one of `in` elements, wherever the window stands: it is at element `at`,
 * which may be before the first, and `step` further on for each of `out` results. step >= 1. */
static inline bool kiln_tap_reads(int64_t at, int64_t step, int64_t out, int64_t in) {
  const int64_t place = at >= 0 ? 0 : (step - 1 - at) / step; /* the first that is not before it */
  return place < out && at + place * step < in;
}
