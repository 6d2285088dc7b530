/* reduce.h: the rule of floating sums, which every reduction of Kiln follows.
 *
 * The n elements of a reduction are taken in the row-major order of the reduced dimensions. There
 * are 64 lanes; element i is added to lane i % 64, in order, starting from the neutral element.
 * Then the lanes are folded: lane j += lane j + 32, for j < 32; then 16, 8, 4, 2, 1. The result is
 * lane 0. Instruction set, vector width, threads and layout do not enter. f16 and bf16 are summed
 * as f32 and rounded once. */
#pragma once

enum { KILN_REDUCE_LANES = 64 };

/* Lane 0 of lanes that were added to one element at a time. */
static inline double kiln_reduce_fold(double lanes[KILN_REDUCE_LANES]) {
  for (int n = KILN_REDUCE_LANES / 2; n > 0; n /= 2)
    for (int j = 0; j < n; j++) lanes[j] += lanes[j + n];
  return lanes[0];
}
