/* complex_functors.h: helpers of the complex functors, on KILN_PW_T with parts of R_OF (see
 * loops.h). Products are the plain four multiplications: infinities are not recovered, as
 * in PyTorch. No include guard. */
#define CRE(v) (__real__(v))
#define CIM(v) (__imag__(v))

static inline KILN_PW_T complex_of(R_OF re, R_OF im) {
  KILN_PW_T z;
  __real__ z = re;
  __imag__ z = im;
  return z;
}
static inline KILN_PW_T CMUL(KILN_PW_T a, KILN_PW_T b) {
  return complex_of(CRE(a) * CRE(b) - CIM(a) * CIM(b), CRE(a) * CIM(b) + CIM(a) * CRE(b));
}
/* Smith's method: scaled by the larger part of the divisor, so that nothing overflows early. */
static inline KILN_PW_T CDIV(KILN_PW_T a, KILN_PW_T b) {
  R_OF c = CRE(b), d = CIM(b), abs_c = FN(fabs)(c), abs_d = FN(fabs)(d);
  if (abs_c >= abs_d) {
    if (abs_c == 0 && abs_d == 0) return complex_of(CRE(a) / abs_c, CIM(a) / abs_d);
    R_OF ratio = d / c, scale = 1 / (c + d * ratio);
    return complex_of((CRE(a) + CIM(a) * ratio) * scale, (CIM(a) - CRE(a) * ratio) * scale);
  }
  R_OF ratio = c / d, scale = 1 / (d + c * ratio);
  return complex_of((CRE(a) * ratio + CIM(a)) * scale, (CIM(a) * ratio - CRE(a)) * scale);
}
static inline bool CINF(KILN_PW_T a) {
  return FN(fabs)(CRE(a)) == (R_OF)INFINITY || FN(fabs)(CIM(a)) == (R_OF)INFINITY;
}
static inline bool CFIN(KILN_PW_T a) {
  return FN(fabs)(CRE(a)) < (R_OF)INFINITY && FN(fabs)(CIM(a)) < (R_OF)INFINITY;
}
