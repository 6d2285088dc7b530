/* f64_isa.c: the pointwise loops on double. */
#include <math.h>

#include "runtime/kernels/isa.h"
#include "runtime/math/math.h"

#define FN(name) name
#define KILN_PW_T double
#define KILN_PW_TAG f64
#define KILN_PW_IS_FLOAT 1
#define KILN_PW_V kiln_f64v
#define KILN_PW_VU kiln_f64v_u
#define KILN_PW_VI kiln_i64v
#define KILN_PW_V_SUFFIX _f64v
static inline double hypot_of(double x, double y) { return hypot(x, y); }
static inline kiln_f64v erfinv_of(kiln_f64v x) {
  for (int i = 0; i < KILN_MATH_LANES_F64; i++) x[i] = kiln__erfinv(x[i]);
  return x;
}
#include "runtime/kernels/pointwise/loops.h"
