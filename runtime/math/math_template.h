/* math_template.h: the functions that are written the same for f32 and f64 (part of math.h).
 *
 * Included twice, with KILN_MATH_F64 0 and 1; no include guard. V is the vector of numbers, I of
 * integers of the same width, T the number. No branches: special values are put in by selection.
 * Constants split into a high part of few bits and the rest make products with small integers
 * exact, which takes the place of fma. */
#if KILN_MATH_F64
#define V kiln_f64v
#define I kiln_i64v
#define T double
#define B int64_t
#define FN(name) kiln_math_##name##_f64v
#define H(name) kiln__math_##name##_f64v
#define COEF(name) KILN_COEF_##name##_F64
#define PICK(f32, f64) (f64)
#else
#define V kiln_f32v
#define I kiln_i32v
#define T float
#define B int32_t
#define FN(name) kiln_math_##name##_f32v
#define H(name) kiln__math_##name##_f32v
#define COEF(name) KILN_COEF_##name##_F32
#define PICK(f32, f64) (f32)
#endif
#define MANTISSA PICK(23, 52)
#define BIAS PICK(127, 1023)
#define SIGN PICK(INT32_MIN, INT64_MIN)
#define INF ((T)__builtin_inff())
#define NOT_A_NUMBER ((T)__builtin_nanf(""))
/* Adding it rounds to an integer, which then stands in the low bits. */
#define MAGIC PICK(0x1.8p23f, 0x1.8p52)

/* -- Helpers -- */

KILN_MATH_INLINE V H(select)(I mask, V a, V b) { return (V)((mask & (I)a) | (~mask & (I)b)); }
KILN_MATH_INLINE V H(splat)(T x) { return x - (V){0}; }
KILN_MATH_INLINE V H(abs)(V x) { return (V)((I)x & ~SIGN); }
KILN_MATH_INLINE V H(copysign)(V x, V sign) { return (V)(((I)x & ~SIGN) | ((I)sign & SIGN)); }
/* Both keep NaN. */
KILN_MATH_INLINE V H(at_most)(V x, T limit) {
  V l = H(splat)(limit);
  return H(select)(l < x, l, x);
}
KILN_MATH_INLINE V H(at_least)(V x, T limit) {
  V l = H(splat)(limit);
  return H(select)(l > x, l, x);
}
/* 2^k, for k such that it is a normal number. */
KILN_MATH_INLINE V H(pow2)(I k) { return (V)((k + BIAS) << MANTISSA); }
/* x * 2^n for any whole n that is not absurd: rounds once, into denormals and infinity. */
KILN_MATH_INLINE V H(scale)(V x, V n) {
#if KILN_MATH_LANES == 16
  return PICK(_mm512_scalef_ps, _mm512_scalef_pd)(x, n);
#else
  I k = (I)(n + MAGIC) - (I)H(splat)(MAGIC), half = k >> 1;
  return x * H(pow2)(half) * H(pow2)(k - half);
#endif
}
/* The same where x * 2^n is a normal number. */
KILN_MATH_INLINE V H(scale_normal)(V x, V n) {
#if KILN_MATH_LANES == 16
  return PICK(_mm512_scalef_ps, _mm512_scalef_pd)(x, n);
#else
  return x * H(pow2)((I)(n + MAGIC) - (I)H(splat)(MAGIC));
#endif
}
/* The upper half of the digits: products of two such are exact. */
KILN_MATH_INLINE V H(upper)(V x) { return (V)((I)x & PICK(~0xfff, ~INT64_C(0x7ffffff))); }
KILN_MATH_INLINE V H(sqrt)(V x) {
#ifdef __clang__
  return __builtin_elementwise_sqrt(x);
#else
  V r;
  KILN_MATH_UNROLL for (int i = 0; i < (int)(sizeof(V) / sizeof(T)); i++) r[i] =
      PICK(__builtin_sqrtf, __builtin_sqrt)(x[i]);
  return r;
#endif
}
/* a * b + c: one rounding in the form with fma, two without. */
KILN_MATH_INLINE V H(madd)(V a, V b, V c) {
#if KILN_MATH_FMA
  return PICK(KILN_MATH_FMA_F32, KILN_MATH_FMA_F64)(a, b, c);
#else
  return a * b + c;
#endif
}
/* c[0] + c[1] x + ...: the even and the odd powers each by Horner's rule, which halves the time
 * that one vector takes from end to end. */
#define POLY(x, ...)                                                                \
  __extension__({                                                                   \
    static const T poly_c[] = {__VA_ARGS__};                                        \
    enum { POLY_N = (int)(sizeof poly_c / sizeof(T)) };                             \
    V poly_x = (x), poly_z = poly_x * poly_x;                                       \
    V poly_a = H(splat)(poly_c[POLY_N - 1]), poly_b = H(splat)(poly_c[POLY_N - 2]); \
    KILN_MATH_UNROLL for (int poly_i = POLY_N - 3; poly_i >= 0; poly_i--) {         \
      V poly_t = H(madd)(poly_a, poly_z, H(splat)(poly_c[poly_i]));                 \
      poly_a = poly_b;                                                              \
      poly_b = poly_t;                                                              \
    }                                                                               \
    H(madd)(poly_a, poly_x, poly_b);                                                \
  })

/* A small integer as a number. */
KILN_MATH_INLINE V H(from_int)(I k) { return (V)(k + (I)H(splat)(MAGIC)) - MAGIC; }

/* In math_f32.h and math_f64.h: x = q * pi/2 + r + low, returns q; a to the power y, a > 0. */
KILN_MATH_INLINE I H(reduce)(V x, V *r, V *low);
KILN_MATH_INLINE V H(pow_core)(V a, V y);

/* -- Exponentials -- */

#define LOG2_E PICK(0x1.715476p+0f, 0x1.71547652b82fep+0)
#define LN2 PICK(0x1.62e43p-1f, 0x1.62e42fefa39efp-1)
#define LN2_HIGH PICK(0x1.62ep-1f, 0x1.62e42feep-1)
#define LN2_LOW PICK(0x1.0bfbe8p-15f, 0x1.a39ef35793c76p-33)
/* Beyond these exp is 0 and infinity. */
#define EXP_MIN PICK(-104.0f, -746.0)
#define EXP_MAX PICK(89.0f, 710.0)
/* The least x whose exp(x) is a normal number. */
#define EXP_NORMAL PICK(-0x1.5d589ep+6f, -0x1.6232bdd7abcd1p+9)

/* exp(x + low) = (1 + result) * 2^*out_n, for x in [EXP_MIN, EXP_MAX] or NaN; low is much smaller.
 */
KILN_MATH_INLINE V H(exp_parts)(V x, V low, V *out_n) {
  V t = H(madd)(x + low, H(splat)(LOG2_E), H(splat)(MAGIC));
  V n = t - MAGIC;
  V r = H(madd)(n, H(splat)(-LN2_LOW), H(madd)(n, H(splat)(-LN2_HIGH), x)) + low;
  *out_n = n;
  return H(madd)(r * r, POLY(r, COEF(EXP)), r);
}

KILN_MATH_PUBLIC V FN(exp)(V x) {
  V n;
  V p = H(exp_parts)(H(at_least)(H(at_most)(x, EXP_MAX), EXP_MIN), H(splat)((T)-0.0), &n);
  return H(scale)(p + 1, n);
}

/* For softmax, whose greatest term is 1: what denormals would add is nothing, and some CPUs take a
 * hundred cycles for each of them, here and in what reads them. PyTorch 2's exp_u20 has the same
 * zeros. */
KILN_MATH_PUBLIC V FN(exp_normal)(V x) {
  return H(select)(x < EXP_NORMAL, H(splat)(0), FN(exp)(H(at_least)(x, EXP_NORMAL)));
}

KILN_MATH_PUBLIC V FN(exp2)(V x) {
  x = H(at_least)(H(at_most)(x, (T)(BIAS + 2)), -(T)(BIAS + MANTISSA + 2));
  V t = x + MAGIC;
  V r = (x - (t - MAGIC)) * LN2;
  V p = H(madd)(r * r, POLY(r, COEF(EXP)), r);
  return H(scale)(p + 1, t - MAGIC);
}

/* exp(x) - 1 = 2 (p 2^(n-1) + (2^(n-1) - 1/2)); n = 0 is p itself, which keeps small x exact. */
KILN_MATH_PUBLIC V FN(expm1)(V x) {
  V n;
  V p = H(exp_parts)(H(at_least)(H(at_most)(x, EXP_MAX), -50), H(splat)((T)-0.0), &n);
  V s = H(scale_normal)(H(splat)(1), n - 1);
  V wide = 2 * (s * p + (s - (T)0.5));
  return H(copysign)(H(select)(n == 0, p, wide), x);
}

/* 1 / (1 + exp(-x)), of which exp(-40) is too little to be seen, and 0 where that is below the
 * least normal number: there PyTorch's is 0 soon, too, for exp(x) is infinite. */
KILN_MATH_PUBLIC V FN(sigmoid)(V x) {
  V n;
  V p = H(exp_parts)(H(at_least)(H(at_most)(-x, -EXP_NORMAL), -40), H(splat)((T)-0.0), &n);
  V s = H(scale_normal)(H(splat)(1), n); /* 1 + exp(-x) = 1 + s + s p, which rounds once or twice */
  return H(select)(x < EXP_NORMAL, H(splat)(0), 1 / H(madd)(p, s, 1 + s));
}

/* Odd polynomial below 0.625, 1 - 2/(exp(2|x|) + 1) above, where that loses nothing. */
KILN_MATH_PUBLIC V FN(tanh)(V x) {
  V n;
  V a = H(abs)(x), z = x * x;
  V b = H(at_most)(a, PICK(10, 20));
  V p = H(exp_parts)(b + b, H(splat)((T)-0.0), &n);
  V e = H(scale_normal)(p + 1, n);
  V large = 1 - 2 / (e + 1);
  V small = H(madd)(a * z, POLY(z, COEF(TANH)), a);
  return H(copysign)(H(select)(a < (T)0.625, small, large), x);
}

/* exp(|x|)/2 in `*e`; its half of the reciprocal is what sinh and cosh subtract and add. */
KILN_MATH_INLINE V H(half_exp)(V a) {
  V n;
  V p = H(exp_parts)(H(at_most)(a, EXP_MAX + 1), H(splat)((T)-0.0), &n);
  return H(scale)(p + 1, n - 1);
}
KILN_MATH_PUBLIC V FN(sinh)(V x) {
  V a = H(abs)(x), z = x * x;
  V e = H(half_exp)(a);
  V large = H(copysign)(e - (T)0.25 / e, x);
  V small = x + x * (z * POLY(z, COEF(SINH)));
  return H(select)(a < 1, small, large);
}
KILN_MATH_PUBLIC V FN(cosh)(V x) {
  V e = H(half_exp)(H(abs)(x));
  return e + (T)0.25 / e;
}

/* -- Logarithms -- */

/* Exponents of numbers in [1/sqrt(2), sqrt(2)) come out 0 after this is added to their bits. */
#define ROOT_HALF PICK(0x3f3504f3, INT64_C(0x3fe6a09e667f3bcd))
#define ONE_BITS PICK(0x3f800000, INT64_C(0x3ff0000000000000))
#define SMALLEST_NORMAL PICK(0x1p-126f, 0x1p-1022)
#define LARGEST PICK(0x1.fffffep127f, 0x1.fffffffffffffp1023)

/* x = 2^result * (1 + f), for x > 0; denormals too. */
KILN_MATH_INLINE V H(log_parts)(V x, V *f) {
  I tiny = x < SMALLEST_NORMAL;
  x = H(select)(tiny, x * PICK(0x1p24f, 0x1p54), x);
  I bits = (I)x + (ONE_BITS - ROOT_HALF);
  I k = (bits >> MANTISSA) - BIAS + (tiny & -PICK(24, 54));
  *f = (V)((bits & (((B)1 << MANTISSA) - 1)) + ROOT_HALF) - 1;
  return H(from_int)(k);
}
/* log(1 + f) = f - (f*f/2 - result): Remez' series of atanh in s = f / (2 + f). */
KILN_MATH_INLINE V H(log_series)(V f, V half_square) {
  V s = f / (f + 2), z = s * s;
  return s * (half_square + z * POLY(z, COEF(LOG)));
}
/* What any logarithm is outside its domain: log(0) = -inf, NaN below, inf at inf. */
KILN_MATH_INLINE V H(log_specials)(V r, V x) {
  r = H(select)(x > LARGEST, x, r);
  r = H(select)(x == 0, H(splat)(-INF), r);
  return H(select)(x >= 0, r, H(splat)(NOT_A_NUMBER));
}

KILN_MATH_PUBLIC V FN(log)(V x) {
  V f, k = H(log_parts)(x, &f);
  V h = (T)0.5 * f * f;
  V r = k * LN2_HIGH - ((h - (H(log_series)(f, h) + k * LN2_LOW)) - f);
  return H(log_specials)(r, x);
}

/* 1 + x = 2^k (1 + f) with f = x 2^-k + (2^-k - 1): exact where it matters, without 1 + x. */
KILN_MATH_PUBLIC V FN(log1p)(V x) {
  V u = 1 + x;
  I n = (((I)u + (ONE_BITS - ROOT_HALF)) >> MANTISSA) - BIAS;
  I half = n >> 1;
  V a = H(pow2)(-half), b = H(pow2)(half - n);
  V f = H(select)(n == 0, x, x * a * b + (a * b - 1));
  V h = (T)0.5 * f * f, k = H(from_int)(n);
  V r = k * LN2_HIGH - ((h - (H(log_series)(f, h) + k * LN2_LOW)) - f);
  r = H(select)(x == 0, x, r);
  r = H(select)(x > LARGEST, x, r);
  r = H(select)(x == -1, H(splat)(-INF), r);
  return H(select)(x >= -1, r, H(splat)(NOT_A_NUMBER));
}

/* log(1 + f) as high + low, the high part short enough for exact products. */
KILN_MATH_INLINE V H(log_split)(V f, V *low) {
  V h = (T)0.5 * f * f;
  V high = H(upper)(f - h);
  *low = ((f - high) - h) + H(log_series)(f, h);
  return high;
}
#define LOG2E_HIGH PICK(0x1.714p+0f, 0x1.715476p+0)
#define LOG2E_LOW PICK(0x1.47652cp-12f, 0x1.4ae0bf85ddf44p-26)
KILN_MATH_PUBLIC V FN(log2)(V x) {
  V f, low, k = H(log_parts)(x, &f);
  V high = H(log_split)(f, &low);
  V v = high * LOG2E_HIGH;
  V rest = (low + high) * LOG2E_LOW + low * LOG2E_HIGH;
  V w = k + v;
  return H(log_specials)(((k - w) + v + rest) + w, x);
}
#define LOG10E_HIGH PICK(0x1.bcap-2f, 0x1.bcb7b1p-2)
#define LOG10E_LOW PICK(0x1.7b1526p-14f, 0x1.49b9438ca9aaep-28)
#define LOG10_2_HIGH PICK(0x1.344p-2f, 0x1.34413509f6p-2)
#define LOG10_2_LOW PICK(0x1.3509f8p-18f, 0x1.9fef311f12b36p-42)
KILN_MATH_PUBLIC V FN(log10)(V x) {
  V f, low, k = H(log_parts)(x, &f);
  V high = H(log_split)(f, &low);
  V v = high * LOG10E_HIGH, y = k * LOG10_2_HIGH;
  V rest = k * LOG10_2_LOW + ((low + high) * LOG10E_LOW + low * LOG10E_HIGH);
  V w = y + v;
  return H(log_specials)((((y - w) + v) + rest) + w, x);
}

/* -- Error functions -- */

#if KILN_MATH_F64
/* erfc(a) for a >= 0.45: Shepherd and Laframboise (Math. Comp. 36, 1981): (1+2x) exp(x*x) erfc(x)
 * is nearly flat in t = (x-4)/(x+4). The last steps carry their rounding errors along. */
KILN_MATH_INLINE V H(erfc_tail)(V a) {
  a = H(at_most)(a, 27.5);
  V t = (a - 4) / (a + 4);
  static const T c[] = {COEF(ERFCX)};
  V p = H(splat)(c[sizeof c / sizeof(T) - 1]);
  KILN_MATH_UNROLL for (int i = (int)(sizeof c / sizeof(T)) - 2; i > 0; i--) p = p * t + c[i];
  V p_low, d_low, q_low, e_low;
  p = kiln__math_two_sum(H(splat)(c[0]), p * t, &p_low);
  V d = kiln__math_two_sum(H(splat)(1), a + a, &d_low);
  V q = p / d;
  V back = kiln__math_two_product(q, d, &q_low);
  q_low = (((p - back) - q_low) + (p_low - q * d_low)) / d;
  /* exp(-a*a), with a*a as an exact head and a tail */
  V n;
  V head = H(upper)(a);
  V e = H(exp_parts)(-(head * head), -((a - head) * (a + head)), &n);
  V one_e = 1 + e, one_low = e - (one_e - 1);
  V r = kiln__math_two_product(one_e, q, &e_low);
  return H(scale)(r + (e_low + (one_low * q + one_e * q_low)), n);
}
#elif KILN_MATH_FMA
/* The same, where fused products give rounding errors at once: of 1 / p, which is about 0.8, little
 * is needed. */
KILN_MATH_INLINE V H(erfc_tail)(V a) {
  a = H(at_most)(a, 10.5f);
  V t = (a - 4) / (a + 4);
  static const T c[] = {COEF(ERFCX)};
  V u = H(splat)(c[sizeof c / sizeof(T) - 1]);
  KILN_MATH_UNROLL for (int i = (int)(sizeof c / sizeof(T)) - 2; i > 0; i--) u =
      H(madd)(u, t, H(splat)(c[i]));
  u *= t;
  V p = c[0] + u, p_low = u - (p - c[0]);
  V d = 1 + (a + a), d_low = 1 - (d - (a + a)); /* a + a < 1 rounds by less than matters */
  V q = p / d;
  V q_low = H(madd)(-q, d, p) + H(madd)(-q, d_low, p_low);
  q_low *= q * (T)0.8;
  V n, head = H(upper)(a);
  V e = H(exp_parts)(-(head * head), (head - a) * (a + head), &n);
  V one_e = 1 + e, one_low = e - (one_e - 1);
  return H(scale)(H(madd)(one_e, q, H(madd)(one_low, q, one_e * q_low)), n);
}
#endif
#if KILN_MATH_F64 || KILN_MATH_FMA
KILN_MATH_PUBLIC V FN(erfc)(V x) {
  V a = H(abs)(x), z = x * x;
  V tail = H(erfc_tail)(a);
  V small = 1 - (x + x * POLY(z, COEF(ERF)));
  return H(select)(a < (T)0.47, small, H(select)(x < 0, 2 - tail, tail));
}
#else
KILN_MATH_PUBLIC V FN(erfc)(V x) {
  kiln_f64v lo, hi;
  kiln__math_widen(x, &lo, &hi);
  return kiln__math_narrow(kiln_math_erfc_f64v(lo), kiln_math_erfc_f64v(hi));
}
#endif
KILN_MATH_PUBLIC V FN(erf)(V x) {
  V a = H(abs)(x), z = x * x;
#if KILN_MATH_F64
  V large = 1 - H(erfc_tail)(a);
#else
  V b = H(at_most)(a, 4);
  V n;
  V g = POLY(b, COEF(ERFLOG));
  V p = H(exp_parts)(-g, H(splat)((T)-0.0), &n);
  V large = 1 - H(scale_normal)(p + 1, n);
#endif
  V small = x + x * POLY(z, COEF(ERF));
  return H(select)(a < 1, small, H(copysign)(large, x));
}
/* The normal distribution's: erfc(-x / sqrt(2)) / 2, whose argument would lose what x * x must
 * have. Below 0 it is a polynomial in t = (a-4)/(a+4), a = -x, times exp(-a*a/2) / (a+4). */
KILN_MATH_PUBLIC V FN(ndtr)(V x) {
  V a = H(at_most)(H(abs)(x), PICK(14.5f, 38.8)), n;
  V r = 1 / (a + 4), t = (a - 4) * r, head = H(upper)(a);
  V q = POLY(t, COEF(NDTR)) * r;
  V e = H(exp_parts)((T)-0.5 * (head * head), (T)0.5 * ((head - a) * (a + head)), &n);
  V tail = H(scale)(H(madd)(e, q, q), n);
  return H(select)(x < 0, tail, 1 - tail);
}

/* x ndtr(x). An error of a few units of what 1 + erf(x / sqrt(2)) loses by rounding is none: so
 * ndtr's is a polynomial up to the argument at which that is 0, in [-1, 1], times an exponential
 * whose argument is rounded. */
KILN_MATH_PUBLIC V FN(gelu)(V x) {
#if KILN_MATH_F64
  return x * FN(ndtr)(x);
#else
  V a = H(at_most)(H(abs)(x), 14.5f);
  V q = POLY(H(madd)(H(at_most)(a, 5.6f), H(splat)(1 / 2.8f), H(splat)(-1)), COEF(GELU));
  V t = a * (a * (-0.5f * LOG2_E)), n = (t + MAGIC) - MAGIC, r = (t - n) * LN2;
  V e = H(madd)(r * r, POLY(r, COEF(EXP)), r);
  V tail = H(scale)(H(madd)(e, q, q), n);
  return x * H(select)(x < 0, tail, 1 - tail);
#endif
}
/* -- Circular functions -- */

/* sin and cos of r + low, |r| <= pi/4. */
KILN_MATH_INLINE V H(sin_part)(V r, V low) {
  V z = r * r;
  return r + (r * (z * POLY(z, COEF(SIN))) + low * (1 - (T)0.5 * z));
}
KILN_MATH_INLINE V H(cos_part)(V r, V low) {
  V z = r * r, h = (T)0.5 * z, w = 1 - h;
  return w + (((1 - w) - h) + (z * z * POLY(z, COEF(COS)) - r * low));
}
KILN_MATH_PUBLIC V FN(sin)(V x) {
  V r, low;
  I q = H(reduce)(x, &r, &low);
  V s = H(select)((q & 1) != 0, H(cos_part)(r, low), H(sin_part)(r, low));
  return H(select)(x == 0, x, (V)((I)s ^ (q << (MANTISSA + PICK(7, 10)) & SIGN)));
}
KILN_MATH_PUBLIC V FN(cos)(V x) {
  V r, low;
  I q = H(reduce)(x, &r, &low) + 1;
  V s = H(select)((q & 1) != 0, H(cos_part)(r, low), H(sin_part)(r, low));
  return (V)((I)s ^ (q << (MANTISSA + PICK(7, 10)) & SIGN));
}
#if KILN_MATH_F64
/* The quotient of sine and cosine, each with its rounding error. */
KILN_MATH_PUBLIC V FN(tan)(V x) {
  V r, low;
  I q = H(reduce)(x, &r, &low);
  V z = r * r, h = (T)0.5 * z, w = 1 - h;
  V s_rest = r * (z * POLY(z, COEF(SIN))) + low * (1 - h);
  V c_rest = ((1 - w) - h) + (z * z * POLY(z, COEF(COS)) - r * low);
  V s = r + s_rest, c = w + c_rest;
  s_rest = (r - s) + s_rest;
  c_rest = (w - c) + c_rest;
  I odd = (q & 1) != 0;
  V num = H(select)(odd, -c, s), num_rest = H(select)(odd, -c_rest, s_rest);
  V den = H(select)(odd, s, c), den_rest = H(select)(odd, s_rest, c_rest);
  V t = num / den, back_low, back = kiln__math_two_product(t, den, &back_low);
  t += (((num - back) - back_low) + (num_rest - t * den_rest)) / den;
  return H(select)(x == 0, x, t);
}
#else
KILN_MATH_PUBLIC V FN(tan)(V x) {
  kiln_f64v lo, hi;
  kiln__math_widen(x, &lo, &hi);
  return kiln__math_narrow(kiln_math_tan_f64v(lo), kiln_math_tan_f64v(hi));
}
#endif

/* -- Inverse circular functions -- */

#define TAN_PI_8 PICK(0x1.a8279ap-2f, 0x1.a827999fcef32p-2)
#define TAN_3PI_8 PICK(0x1.3504f4p+1f, 0x1.3504f333f9de6p+1)
#define PI_2 PICK(0x1.921fb6p+0f, 0x1.921fb54442d18p+0)
#define PI_2_LOW PICK(-0x1.777a5cp-25f, 0x1.1a62633145c07p-54)

/* atan(b / a) for a, b >= 0, not both 0 or infinite. The range is cut in three, at tan(pi/8) and
 * tan(3pi/8): atan(z) with z = b/a, pi/4 + atan((b-a)/(b+a)), pi/2 - atan(a/b). */
KILN_MATH_INLINE V H(atan_ratio)(V b, V a) {
  I middle = b > a * TAN_PI_8, high = b > a * TAN_3PI_8;
  V num = H(select)(high, -a, H(select)(middle, b - a, b));
  V den = H(select)(high, b, H(select)(middle, b + a, a));
  V base = H(select)(high, H(splat)(PI_2), (V)((I)H(splat)((T)0.5 * PI_2) & middle));
  V low = H(select)(high, H(splat)(PI_2_LOW), (V)((I)H(splat)((T)0.5 * PI_2_LOW) & middle));
  V t = num / den, z = t * t;
  return base + (t + (t * (z * POLY(z, COEF(ATAN))) + low));
}
KILN_MATH_PUBLIC V FN(atan)(V x) {
  V a = H(at_most)(H(abs)(x), PICK(0x1p100f, 0x1p1000));
  return H(copysign)(H(atan_ratio)(a, H(splat)(1)), x);
}
KILN_MATH_PUBLIC V FN(atan2)(V y, V x) {
  V b = H(abs)(y), a = H(abs)(x);
  I unordered = (b != b) | (a != a);  // NOLINT(misc-redundant-expression): NaN
  /* Sums must not overflow; two infinities or zeros are as 1/1 and 0/1. */
  I infinite = (b > LARGEST) & (a > LARGEST), zero = (b == 0) & (a == 0);
  I big = (b > LARGEST / 8) | (a > LARGEST / 8);
  I small = (b < SMALLEST_NORMAL * 4) & (a < SMALLEST_NORMAL * 4);
  V factor = H(select)(big, H(splat)((T)0.125),
                       H(select)(small, H(splat)(PICK(0x1p30f, 0x1p60)), H(splat)(1)));
  V one = H(splat)(1);
  V bb = H(select)(infinite, one, b * factor);
  V aa = H(select)(infinite | zero, one, a * factor);
  V r = H(atan_ratio)(bb, aa);
  I negative = ((I)x & SIGN) != 0;
  r = H(select)(negative, 2 * PI_2 - (r - 2 * PI_2_LOW), r);
  r = H(copysign)(r, y);
  return H(select)(unordered, x + y, r);
}

/* asin(x) = x + x z P(z) to 1/2; beyond, pi/2 - 2 asin(sqrt((1-x)/2)), the root with its error. */
KILN_MATH_INLINE V H(asin_root)(V a, V *low, V *z) {
  *z = (1 - a) * (T)0.5;
  V s = H(sqrt)(*z), head = H(upper)(s);
  V c = (*z - head * head) / (s + head);
  c = H(select)(*z > 0, c, H(splat)(0));
  *low = c;
  return head;
}
KILN_MATH_PUBLIC V FN(asin)(V x) {
  V a = H(abs)(x), c, z;
  V head = H(asin_root)(a, &c, &z);
  I small = a < (T)0.5;
  V zz = H(select)(small, x * x, z);
  V p = zz * POLY(zz, COEF(ASIN));
  V s = head + c;
  /* pi/4 - ((2 s p - (pi/2_low - 2 c)) - (pi/4 - 2 head)) */
  V large = (T)0.5 * PI_2 - ((2 * s * p - (PI_2_LOW - 2 * c)) - ((T)0.5 * PI_2 - 2 * head));
  return H(select)(small, x + x * p, H(copysign)(large, x));
}
KILN_MATH_PUBLIC V FN(acos)(V x) {
  V a = H(abs)(x), c, z;
  V head = H(asin_root)(a, &c, &z);
  I small = a < (T)0.5;
  V zz = H(select)(small, x * x, z);
  V p = zz * POLY(zz, COEF(ASIN));
  V s = head + c;
  V middle = PI_2 - (x - (PI_2_LOW - x * p));
  V right = 2 * (head + (c + s * p));
  V left = 2 * (PI_2 - (head + (s * p + c - PI_2_LOW)));
  return H(select)(small, middle, H(select)(x < 0, left, right));
}

/* -- Powers -- */

/* 1: v is an even integer, -1: an odd one, 0: none. */
KILN_MATH_INLINE I H(is_integer)(V v) {
  V big = H(splat)(PICK(0x1p23f, 0x1p52)), a = H(abs)(v);
  return (a >= big) | ((a + big) - big == a);
}
/* pow's special cases, around r = |x| to the power y for finite |x| > 0, != 1. */
KILN_MATH_INLINE V H(pow_specials)(V r, V x, V y) {
  V a = H(abs)(x);
  I integer = H(is_integer)(y), odd = integer & ~H(is_integer)((T)0.5 * y);
  I ends = (a == 0) | (a > LARGEST);
  I grows = ((y > 0) & (a > 1)) | ((y < 0) & (a < 1));
  r = H(select)(ends, H(select)(grows, H(splat)(INF), H(splat)(0)), r);
  r = H(select)(a == 1, H(splat)(1), r);
  I negative = ((I)x & SIGN) != 0;
  r = (V)((I)r ^ (odd & negative & SIGN));
  r = H(select)((x < 0) & (a <= LARGEST) & ~integer, H(splat)(NOT_A_NUMBER), r);
  r = H(select)((x != x) | (y != y), x + y, r);  // NOLINT(misc-redundant-expression): NaN
  return H(select)((y == 0) | (x == 1), H(splat)(1), r);
}
KILN_MATH_PUBLIC V FN(pow)(V x, V y) {
  V a = H(abs)(x);
  a = H(select)((a > 0) & (a <= LARGEST), a, H(splat)(1));
  return H(pow_specials)(H(pow_core)(a, y), x, y);
}

#undef V
#undef I
#undef T
#undef B
#undef FN
#undef H
#undef COEF
#undef PICK
#undef MANTISSA
#undef BIAS
#undef SIGN
#undef INF
#undef NOT_A_NUMBER
#undef MAGIC
#undef POLY
#undef LOG2_E
#undef LN2
#undef LN2_HIGH
#undef LN2_LOW
#undef EXP_MIN
#undef EXP_NORMAL
#undef EXP_MAX
#undef ROOT_HALF
#undef ONE_BITS
#undef SMALLEST_NORMAL
#undef LARGEST
#undef LOG2E_HIGH
#undef LOG2E_LOW
#undef LOG10E_HIGH
#undef LOG10E_LOW
#undef LOG10_2_HIGH
#undef LOG10_2_LOW
#undef TAN_PI_8
#undef TAN_3PI_8
#undef PI_2
#undef PI_2_LOW
