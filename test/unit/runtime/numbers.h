/* numbers.h: for units of the heavy kernels: random numbers, whose order is that of the seed, and
 * elements that are of F32 or F64. */
#pragma once

#include <stdlib.h>

#include "runtime/tensor.h"
#include "test/unit/unit.h"

enum { SEED = 88172645 };
static uint64_t random_state = SEED;

static inline int64_t below(int64_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (int64_t)(random_state % (uint64_t)n);
}

/* Of about a normal distribution with a deviation of 1. */
static inline double normal(void) {
  double sum = 0;
  for (int i = 0; i < 12; i++) sum += (double)below(1 << 24) * 0x1p-24;
  return sum - 6;
}

/* Exactly n floats, so that a checker of memory sees a step beyond them. */
static inline float *floats(int64_t n) {
  float *data = malloc((size_t)n * sizeof(float));
  assert_non_null(data);
  return data;
}

static inline double value_of(kiln_dtype dtype, const void *data, int64_t i) {
  return dtype == KILN_DTYPE_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

static inline void set_value(kiln_dtype dtype, void *data, int64_t i, double value) {
  if (dtype == KILN_DTYPE_F32)
    ((float *)data)[i] = (float)value;
  else
    ((double *)data)[i] = value;
}

/* Strides of dense dimensions in this order, or, `mixed`, in a random one; how many elements. */
static inline int64_t lay_in_order(int rank, const int64_t *sizes, bool mixed, int64_t *strides) {
  int order[8];
  int64_t step = 1;
  for (int i = 0; i < rank; i++) order[i] = i;
  for (int i = rank - 1; mixed && i > 0; i--) {
    const int j = (int)below(i + 1), swap = order[i];
    order[i] = order[j];
    order[j] = swap;
  }
  for (int i = rank - 1; i >= 0; i--) {
    strides[order[i]] = step;
    step *= sizes[order[i]];
  }
  return step;
}
