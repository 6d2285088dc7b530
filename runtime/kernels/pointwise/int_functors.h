/* int_functors.h: scalar helpers of the integer functors, on KILN_PW_T and its unsigned twin
 * KILN_PW_U (see loops.h). Arithmetic wraps around; a division by zero sets params->fault.
 * No include guard. */
#define U KILN_PW_U
#define WRAP_ADD(a, b) ((KILN_PW_T)((U)(a) + (U)(b)))
#define WRAP_SUB(a, b) ((KILN_PW_T)((U)(a) - (U)(b)))
#define WRAP_MUL(a, b) ((KILN_PW_T)((U)(a) * (U)(b)))

static inline KILN_PW_T int_div_trunc(KILN_PW_T x, KILN_PW_T y, kiln_pw_params *params) {
  if (y == 0) {
    params->fault = true;
    return 0;
  }
  return y == -1 ? WRAP_SUB(0, x) : x / y;
}
static inline KILN_PW_T int_fmod(KILN_PW_T x, KILN_PW_T y, kiln_pw_params *params) {
  if (y == 0) {
    params->fault = true;
    return 0;
  }
  return y == -1 ? 0 : x % y;
}
static inline KILN_PW_T int_div_floor(KILN_PW_T x, KILN_PW_T y, kiln_pw_params *params) {
  KILN_PW_T quotient = int_div_trunc(x, y, params);
  return y != 0 && (x < 0) != (y < 0) && WRAP_MUL(quotient, y) != x ? quotient - 1 : quotient;
}
static inline KILN_PW_T int_remainder(KILN_PW_T x, KILN_PW_T y, kiln_pw_params *params) {
  KILN_PW_T mod = int_fmod(x, y, params);
  return mod != 0 && (y < 0) != (mod < 0) ? mod + y : mod;
}
/* Negative powers are 0 but for bases 1 and -1. */
static inline KILN_PW_T int_pow(KILN_PW_T x, KILN_PW_T y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
  KILN_PW_T result = 1;
  for (; y; y >>= 1) {
    if (y & 1) result = WRAP_MUL(result, x);
    x = WRAP_MUL(x, x);
  }
  return result;
}
static inline KILN_PW_T int_gcd(KILN_PW_T x, KILN_PW_T y) {
  U a = x < 0 ? (U)0 - (U)x : (U)x, b = y < 0 ? (U)0 - (U)y : (U)y;
  while (a) {
    U rest = b % a;
    b = a;
    a = rest;
  }
  return (KILN_PW_T)b;
}
static inline KILN_PW_T int_lcm(KILN_PW_T x, KILN_PW_T y) {
  KILN_PW_T g = int_gcd(x, y);
  if (g == 0) return 0;
  KILN_PW_T product = WRAP_MUL(g == -1 ? WRAP_SUB(0, x) : x / g, y);
  return product < 0 ? WRAP_SUB(0, product) : product;
}
