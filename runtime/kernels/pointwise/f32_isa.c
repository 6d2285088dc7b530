/* f32_isa.c: the pointwise loops on float. */
#include <math.h>

#include "runtime/kernels/isa.h"
#include "runtime/math/math.h"

#define FN(name) name##f
#define KILN_PW_T float
#define KILN_PW_TAG f32
#define KILN_PW_IS_FLOAT 1
#define KILN_PW_V kiln_f32v
#define KILN_PW_VU kiln_f32v_u
#define KILN_PW_VI kiln_i32v
#define KILN_PW_V_SUFFIX _f32v
/* In double, where squares and their sum do not overflow. */
static inline float hypot_of(float x, float y) {
  const float root = (float)sqrt((double)x * (double)x + (double)y * (double)y);
  return ((fabsf(x) == INFINITY) | (fabsf(y) == INFINITY)) ? INFINITY : root;
}
/* x times a polynomial of w = -log(1 - x^2), as Giles has it ("Approximating the erfinv function",
 * 2010), or from 5 on of its root; of interpolation in Chebyshev's points. At most 3 units in the
 * last place. */
static inline kiln_f32v erfinv_of(kiln_f32v x) {
  static const float near[] = {4.67193251e-10f, -2.0418842e-08f, 3.44010149e-07f,  -2.69653347e-06f,
                               6.5314308e-06f,  3.89816374e-05f, -0.000120025701f, -0.00234002708f,
                               0.0115509007f,   0.232013473f,    0.886226929f};
  static const float far[] = {-3.46924967e-05f, 0.000168902741f, -0.000272365251f, -0.000131791477f,
                              0.00147398885f,   -0.00356146666f, 0.00568757875f,   -0.00764378311f,
                              0.00944533714f,   1.00167529f,     2.8329768f};
  const kiln_f32v w = -kiln_math_log_f32v((1 - x) * (1 + x));
  const kiln_i32v is_near = w < 5;
  const kiln_f32v root = kiln__math_sqrt_f32v(w);
  const kiln_f32v rest = kiln__math_madd_f32v(-root, root, w) / (root + root);
  const kiln_f32v t = kiln__math_select_f32v(is_near, w, (root - 3) + rest);
  kiln_f32v p = {0};
  for (int i = 0; i < 11; i++) {
    const kiln_f32v c =
        kiln__math_select_f32v(is_near, near[i] - (kiln_f32v){0}, far[i] - (kiln_f32v){0});
    p = kiln__math_madd_f32v(p, t, c);
  }
  const kiln_i32v is_end = kiln__math_abs_f32v(x) == 1;
  return kiln__math_select_f32v(is_end, x * INFINITY, p * x);
}
#include "runtime/kernels/pointwise/loops.h"
