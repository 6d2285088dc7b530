/* taps.h: where taps of windows, of convolutions and the like, read their input. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Places [first, last) of 0 to `out` where a tap reads one of `in` elements; none: last <= first.
 * It is at element `at`, which may be before the first, and `step` further on for each. step >= 1.
 */
static inline void kiln_tap_range(int64_t at, int64_t step, int64_t out, int64_t in, int64_t *first,
                                  int64_t *last) {
  *first = at >= 0 ? 0 : (step - 1 - at) / step;
  *last = at >= in ? 0 : (in - 1 - at) / step + 1;
  if (*last > out) *last = out;
}

/* Whether a tap reads one of `in` elements, wherever the window stands: it is at element `at`,
 * which may be before the first, and `step` further on for each of `out` results. step >= 1. */
static inline bool kiln_tap_reads(int64_t at, int64_t step, int64_t out, int64_t in) {
  const int64_t place = at >= 0 ? 0 : (step - 1 - at) / step; /* the first that is not before it */
  return place < out && at + place * step < in;
}
