/* math_f64.h: what f64 does in its own way: angle reduction and the heart of pow (part of math.h).
 * Both carry about 106 bits in pairs of numbers. */

#define KILN_MATH_TWO_OVER_PI 0x1.45f306dc9c883p-1
#define KILN_MATH_PI_2_1 0x1.921fb544p+0 /* pi/2 in pieces of 33 digits */
#define KILN_MATH_PI_2_2 0x1.0b4611a6p-34
#define KILN_MATH_PI_2_3 0x1.3198a2ep-69
#define KILN_MATH_PI_2_4 0x1.b839a252049c1p-104
#define KILN_MATH_ROUND 0x1.8p52

/* Cody and Waite's reduction, exact to 2^20; beyond, kiln__math_reduce for the whole vector. */
KILN_MATH_INLINE kiln_i64v kiln__math_reduce_f64v(kiln_f64v x, kiln_f64v *r, kiln_f64v *low) {
  kiln_i64v huge = kiln__math_abs_f64v(x) > 0x1p20;
  kiln_f64v t = x * KILN_MATH_TWO_OVER_PI + KILN_MATH_ROUND, n = t - KILN_MATH_ROUND;
  kiln_f64v e1, e2, e3;
  kiln_f64v a = x - n * KILN_MATH_PI_2_1;
  kiln_f64v b = kiln__math_two_sum(a, -(n * KILN_MATH_PI_2_2), &e1);
  kiln_f64v c = kiln__math_two_sum(b, -(n * KILN_MATH_PI_2_3), &e2);
  *r = kiln__math_two_sum(c, (e1 + e2) - n * KILN_MATH_PI_2_4, &e3);
  *low = e3;
  kiln_i64v q = (kiln_i64v)t;
  int64_t any = 0;
  KILN_MATH_UNROLL for (int i = 0; i < KILN_MATH_LANES_F64; i++) any |= huge[i];
  if (__builtin_expect(any != 0, 0)) {
    for (int i = 0; i < KILN_MATH_LANES_F64; i++) {
      double pair[2];
      if (!huge[i]) continue;
      q[i] = kiln__math_reduce(x[i], pair);
      (*r)[i] = pair[0];
      (*low)[i] = pair[1];
    }
  }
  return q;
}

/* a to the power y: exp(y log(a)), with the logarithm to 2^-64: the first two terms of atanh's
 * series in pairs. `a` is positive and finite; y may be anything. */
KILN_MATH_INLINE kiln_f64v kiln__math_pow_core_f64v(kiln_f64v a, kiln_f64v y) {
  const double third = 0x1.5555555555555p-1, third_low = 0x1.5555555555555p-55; /* 2/3 */
  kiln_f64v f, k = kiln__math_log_parts_f64v(a, &f);
  kiln_f64v d = f + 2, d_low = f - (d - 2), s = f / d, p_low, z_low, t_low, u_low, e1, e2, low;
  kiln_f64v p = kiln__math_two_product(s, d, &p_low);
  kiln_f64v s_low = (((f - p) - p_low) - s * d_low) / d;
  kiln_f64v z = kiln__math_two_product(s, s, &z_low);
  z_low += 2 * s * s_low;
  kiln_f64v t = kiln__math_two_product(z, s, &t_low);
  t_low += z * s_low + z_low * s;
  kiln_f64v u = kiln__math_two_product(t, third - (kiln_f64v){0}, &u_low);
  u_low += t_low * third + t * third_low;
  static const double c[] = {KILN_COEF_POW_F64};
  kiln_f64v w = c[sizeof c / sizeof *c - 1] - (kiln_f64v){0};
  KILN_MATH_UNROLL for (int i = (int)(sizeof c / sizeof *c) - 2; i >= 0; i--) w = w * z + c[i];
  w *= s * z * z;
  kiln_f64v h = kiln__math_two_sum(k * 0x1.62e42feep-1, 2 * s, &e1);
  h = kiln__math_two_sum(h, u, &e2);
  low = (e1 + e2) + (k * 0x1.a39ef35793c76p-33 + (2 * s_low + (u_low + w)));
  kiln_f64v log = kiln__math_two_sum(h, low, &e1);
  y = kiln__math_at_least_f64v(kiln__math_at_most_f64v(y, 0x1p70), -0x1p70);
  kiln_f64v x = kiln__math_two_product(y, log, &low);
  low += y * e1;
  low = kiln__math_select_f64v(kiln__math_abs_f64v(x) < 800, low, (kiln_f64v){0});
  x = kiln__math_at_least_f64v(kiln__math_at_most_f64v(x, 711), -747);
  kiln_f64v n, e = kiln__math_exp_parts_f64v(x, low, &n);
  return kiln__math_scale_f64v(e + 1, n);
}
