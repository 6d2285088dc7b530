/* random.h: what the operators that draw numbers share: numbers from the instance's random state.
 */
#ifndef KILN_RUNTIME_KERNELS_RANDOM_H
#define KILN_RUNTIME_KERNELS_RANDOM_H

#include "runtime/kernels/support.h"

/* In [0, 1). */
static inline double kiln__uniform(kiln_call *call) {
  return (double)(kiln_call_random(call) >> 11) * 0x1p-53;
}
typedef double (*kiln__draw)(kiln_call *call, const double *params);
/* Mean and deviation. */
double kiln__draw_normal(kiln_call *call, const double *params);
/* 1 with that chance, else 0. */
double kiln__draw_bernoulli(kiln_call *call, const double *params);
/* Whole numbers in [params[0], params[1]). */
double kiln__draw_integer(kiln_call *call, const double *params);
/* Fills any tensor, element by element in row-major order. */
kiln_status *kiln__random_fill(kiln_call *call, kiln_tensor *t, kiln__draw draw,
                               const double *params) KILN_MUST_USE;

#endif
