/* evens.h: every other element of two vectors, the first or the second of each pair, for inputs
 * that are read with a step of 2. */
#pragma once

#include "runtime/math/math.h"

#if KILN_MATH_LANES == 16
#define EVENS_f32(a, b) \
  __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
#define ODDS_f32(a, b) \
  __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31)
#define EVENS_f64(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODDS_f64(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#elif KILN_MATH_LANES == 8
#define EVENS_f32(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODDS_f32(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15)
#define EVENS_f64(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODDS_f64(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#else
#define EVENS_f32(a, b) __builtin_shufflevector(a, b, 0, 2, 4, 6)
#define ODDS_f32(a, b) __builtin_shufflevector(a, b, 1, 3, 5, 7)
#define EVENS_f64(a, b) __builtin_shufflevector(a, b, 0, 2)
#define ODDS_f64(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif
