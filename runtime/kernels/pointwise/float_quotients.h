/* float_quotients.h: fmod, remainder and floor division of vectors (part of loops.h). No include
 * guard.
 *
 * fmod is exact: |x| - n |y| with the whole part n of the quotient. Division gives n, or n + 1
 * where it rounds up to that; as long as n has few digits one fused product subtracts it without
 * an error. All other lanes, and all lanes without fma, are the C library's. */

#define MATH(name) KILN_ISA_CAT3(kiln__math_, name, KILN_PW_V_SUFFIX)
/* Numbers from here on have no fraction: to add it and to subtract it rounds. */
#define WHOLE ((T)(sizeof(T) == 4 ? 0x1p23 : 0x1p52))

static inline V floor_of(V x) {
  const V a = MATH(abs)(x), near = MATH(copysign)((a + WHOLE) - WHOLE, x);
  return VSEL(a < WHOLE, near - VSEL(near > x, VK(1), VK(0)), x);
}
#if KILN_MATH_FMA
static inline bool is_every(VI mask) {
#if KILN_MATH_LANES == 16
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) == 0xffff;
#else
  return _mm256_movemask_epi8((__m256i)mask) == -1;
#endif
}
#endif
static __attribute__((noinline)) V fmod_by_lanes(V x, V y) {
  V r;
  for (int i = 0; i < LANES; i++) r[i] = FN(fmod)(x[i], y[i]);
  return r;
}
static inline V fmod_of(V x, V y) {
#if KILN_MATH_FMA
  const V a = MATH(abs)(x), b = MATH(abs)(y), quotient = a / b;
  if (__builtin_expect(is_every((quotient < WHOLE / 2) & (b < (T)INFINITY)), 1)) {
    const V r = MATH(madd)(-floor_of(quotient), b, a);
    return MATH(copysign)(VSEL(r < 0, r + b, r), x);
  }
#endif
  return fmod_by_lanes(x, y);
}
/* Python's %: the sign of the divisor. */
static inline V remainder_of(V x, V y) {
  const V mod = fmod_of(x, y);
  return VSEL((mod != 0) & ((y < 0) != (mod < 0)), mod + y, mod);
}
/* Python's //, by fmod, so that it agrees with the remainder. */
static inline V div_floor_of(V x, V y) {
  const V mod = fmod_of(x, y), ratio = x / y;
  V quotient = (x - mod) / y;
  quotient = VSEL((mod != 0) & ((y < 0) != (mod < 0)), quotient - 1, quotient);
  const V down = floor_of(quotient);
  const V nearest = VSEL(quotient - down > (T)0.5, down + 1, down);
  return VSEL(y == 0, ratio, VSEL(quotient == 0, MATH(copysign)(VK(0), ratio), nearest));
}
#undef MATH
#undef WHOLE
