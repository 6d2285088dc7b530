/* float_functors.h: scalar helpers of the floating functors, on KILN_PW_T (see loops.h).
 * No include guard. */

/* Python's %: the sign of the divisor. */
static inline KILN_PW_T float_remainder(KILN_PW_T x, KILN_PW_T y) {
  KILN_PW_T mod = FN(fmod)(x, y);
  if (mod != 0 && (y < 0) != (mod < 0)) mod += y;
  return mod;
}
/* Python's //, by fmod, so that it agrees with the remainder. */
static inline KILN_PW_T float_div_floor(KILN_PW_T x, KILN_PW_T y) {
  if (y == 0) return x / y;
  KILN_PW_T mod = FN(fmod)(x, y), quotient = (x - mod) / y;
  if (mod != 0 && (y < 0) != (mod < 0)) quotient -= 1;
  if (quotient == 0) return FN(copysign)(0, x / y);
  KILN_PW_T down = FN(floor)(quotient);
  return quotient - down > (KILN_PW_T)0.5 ? down + 1 : down;
}
