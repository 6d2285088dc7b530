/* math_f32.h: what f32 does by way of f64: angle reduction and the heart of pow (part of math.h).
 * A product of two floats is exact there. */

KILN_MATH_INLINE kiln_f64v kiln__math_reduce_half(kiln_f64v x, kiln_f64v *n) {
  *n = (x * KILN_MATH_TWO_OVER_PI + KILN_MATH_ROUND) - KILN_MATH_ROUND;
  return (x - *n * KILN_MATH_PI_2_1) - *n * 0x1.0b4611a626331p-34;
}
KILN_MATH_INLINE kiln_i32v kiln__math_reduce_f32v(kiln_f32v x, kiln_f32v *r, kiln_f32v *low) {
  kiln_i32v huge = kiln__math_abs_f32v(x) > 0x1p20f;
  kiln_f64v a, b, n, m;
  kiln__math_widen(x, &a, &b);
  a = kiln__math_reduce_half(a, &n);
  b = kiln__math_reduce_half(b, &m);
  *r = kiln__math_narrow(a, b);
  *low = -(kiln_f32v){0};
  kiln_i32v q = (kiln_i32v)(kiln__math_narrow(n, m) + 0x1.8p23f);
  int32_t any = 0;
  KILN_MATH_UNROLL for (int i = 0; i < KILN_MATH_LANES; i++) any |= huge[i];
  if (__builtin_expect(any != 0, 0)) {
    for (int i = 0; i < KILN_MATH_LANES; i++) {
      double pair[2];
      if (!huge[i]) continue;
      q[i] = (int32_t)kiln__math_reduce((double)x[i], pair);
      (*r)[i] = (float)pair[0];
    }
  }
  return q;
}

KILN_MATH_INLINE kiln_f64v kiln__math_pow_half(kiln_f64v a, kiln_f64v y) {
  kiln_f64v x = y * kiln_math_log_f64v(a);
  return kiln_math_exp_f64v(x);
}
KILN_MATH_INLINE kiln_f32v kiln__math_pow_core_f32v(kiln_f32v a, kiln_f32v y) {
  kiln_f64v a0, a1, y0, y1;
  kiln__math_widen(a, &a0, &a1);
  kiln__math_widen(y, &y0, &y1);
  return kiln__math_narrow(kiln__math_pow_half(a0, y0), kiln__math_pow_half(a1, y1));
}
