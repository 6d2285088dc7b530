/* special_polynomial.c: orthogonal polynomials of a degree that is data: Chebyshev's of four kinds
 * and their shifted forms, Hermite's, Laguerre's, Legendre's.
 *
 * They follow their recurrences in the dtype of the result, and Chebyshev's of a high degree within
 * (-1, 1) their trigonometric forms, as PyTorch's do: so they lose digits and overflow alike. A
 * degree is cut to a whole number; a negative one gives 0. */
#include <float.h>
#include <math.h>

#include "runtime/kernels/composite.h"

typedef enum family {
  CHEBYSHEV_T,
  CHEBYSHEV_U,
  CHEBYSHEV_V,
  CHEBYSHEV_W,
  HERMITE_H,
  HERMITE_HE,
  LAGUERRE_L,
  LEGENDRE_P,
} family;

enum { LOOK = 1 << 14 }; /* degrees between two looks at the limits */

/* The polynomials' values at the ends of [-1, 1] by the side, the second and later degrees in terms
 * of the two before, and cosines: for T floats and its functions. */
#define POLYNOMIALS(T, f)                                                                   \
  static T end_##T(family kind, bool right, int64_t n) {                                    \
    const T sign = right || n % 2 == 0 ? 1 : -1, many = (T)n;                               \
    switch (kind) {                                                                         \
      case CHEBYSHEV_U: return sign * (many + 1);                                           \
      case CHEBYSHEV_V: return right ? 1 : sign * (many + many + 1);                        \
      case CHEBYSHEV_W: return right ? many + many + 1 : sign;                              \
      default: return sign;                                                                 \
    }                                                                                       \
  }                                                                                         \
  static T by_angle_##T(family kind, T x, int64_t n) {                                      \
    const T angle = acos##f(x), many = (T)n;                                                \
    switch (kind) {                                                                         \
      case CHEBYSHEV_U: return sin##f((many + 1) * angle) / sin##f(angle);                  \
      case CHEBYSHEV_V: return cos##f((many + (T)0.5) * angle) / cos##f(angle / 2);         \
      case CHEBYSHEV_W: return sin##f((many + (T)0.5) * angle) / sin##f(angle / 2);         \
      default: return cos##f(many * angle);                                                 \
    }                                                                                       \
  }                                                                                         \
  static T first_##T(family kind, T x) {                                                    \
    switch (kind) {                                                                         \
      case CHEBYSHEV_U:                                                                     \
      case HERMITE_H: return x + x;                                                         \
      case CHEBYSHEV_V: return x + x - 1;                                                   \
      case CHEBYSHEV_W: return x + x + 1;                                                   \
      case LAGUERRE_L: return 1 - x;                                                        \
      default: return x;                                                                    \
    }                                                                                       \
  }                                                                                         \
  /* Degree k + 1 from q of degree k and p of the one before. */                            \
  static inline T next_##T(family kind, T x, T k, T q, T p) {                               \
    switch (kind) {                                                                         \
      case HERMITE_H: return (x + x) * q - (k + k) * p;                                     \
      case HERMITE_HE: return x * q - k * p;                                                \
      case LAGUERRE_L: return ((k + k + (1 - x)) * q - k * p) / (k + 1);                    \
      case LEGENDRE_P: return ((k + k + 1) * x * q - k * p) / (k + 1);                      \
      default: return (x + x) * q - p;                                                      \
    }                                                                                       \
  }                                                                                         \
  static kiln_status *value_##T(kiln_call *call, family kind, T x, T degree, T *out) {      \
    const int64_t n = fabs##f(degree) < (T)9e18 ? (int64_t)degree : -1;                     \
    const bool chebyshev = kind <= CHEBYSHEV_W;                                             \
    const bool hermite = kind == HERMITE_H || kind == HERMITE_HE;                           \
    T p = 1, q = first_##T(kind, x);                                                        \
    *out = n == 0 ? 1 : q;                                                                  \
    if (n < 0) *out = 0;                                                                    \
    if (n > 0 && (chebyshev || kind == LEGENDRE_P) && fabs##f(x) == 1) {                    \
      *out = end_##T(kind, x > 0, n);                                                       \
      return NULL;                                                                          \
    }                                                                                       \
    if (chebyshev && fabs##f(x) < 1 && n > (kind == CHEBYSHEV_T ? 6 : 8)) {                 \
      *out = by_angle_##T(kind, x, n);                                                      \
      return NULL;                                                                          \
    }                                                                                       \
    if (hermite && n > (sizeof(T) == sizeof(float) ? 128 : 512)) { /* beyond the numbers */ \
      *out = NAN;                                                                           \
      return NULL;                                                                          \
    }                                                                                       \
    for (int64_t k = 1; k < n && q == q; k++) {                                             \
      if (k % LOOK == 0) KILN_TRY(kiln_call_check(call, 0));                                \
      *out = next_##T(kind, x, (T)k, q, p);                                                 \
      p = q;                                                                                \
      q = *out;                                                                             \
    }                                                                                       \
    return NULL;                                                                            \
  }                                                                                         \
  static kiln_status *fill_##T(kiln_call *call, family kind, bool shifted, const void *xs,  \
                               const void *degrees, void *to, int64_t n) {                  \
    int64_t left = KILN_BUDGET_ITEMS;                                                       \
    for (int64_t i = 0; i < n; i++) {                                                       \
      const T x = ((const T *)xs)[i], degree = ((const T *)degrees)[i];                     \
      const int64_t steps = degree >= 0 && degree < (T)LOOK ? (int64_t)degree : 0;          \
      if (kiln_budget_spent(&left, 64 + 4 * steps)) break;                                  \
      KILN_TRY(value_##T(call, kind, shifted ? x + x - 1 : x, degree, (T *)to + i));        \
    }                                                                                       \
    return NULL;                                                                            \
  }
POLYNOMIALS(float, f)
POLYNOMIALS(double, )

/* x and the degree: tensors, or one of them a number. */
static kiln_tensor *polynomial(kiln__composite *r, const kiln_ivalue *args, family kind,
                               bool shifted) {
  kiln_tensor *both = KILN_STEP(r, mul, args[args[0].tag == KILN_TAG_TENSOR ? 0 : 1],
                                args[args[0].tag == KILN_TAG_TENSOR ? 1 : 0]); /* sizes, dtype */
  kiln_tensor *in[2], *out;
  const void *data[2];
  if (!both) return NULL;
  const kiln_dtype dtype = kiln_dtype_to_float(kiln_tensor_dtype(both));
  if (dtype != KILN_DTYPE_F32 && dtype != KILN_DTYPE_F64) {
    return kiln__composite_fail(r, kiln__not_implemented(r->call, dtype));
  }
  const int rank = kiln_tensor_rank(both);
  const kiln_ivalue sizes = kiln__composite_ints(r, rank, kiln_tensor_sizes(both));
  for (int i = 0; i < 2; i++) {
    kiln_tensor *t = kiln__composite_operand(r, args[i], dtype);
    data[i] = kiln__composite_read(r, KILN_STEP(r, expand, T(t), sizes, B(false)), dtype, &in[i]);
  }
  void *to = kiln__composite_new(r, dtype, rank, kiln_tensor_sizes(both), &out);
  if (r->status) return NULL;
  kiln_status *status = dtype == KILN_DTYPE_F32
                            ? fill_float(r->call, kind, shifted, data[0], data[1], to, out->numel)
                            : fill_double(r->call, kind, shifted, data[0], data[1], to, out->numel);
  return kiln__composite_ok(r, status) ? kiln__composite_lay_like(r, out, dtype, both) : NULL;
}
#define POLYNOMIAL(name, kind, shifted) \
  KILN_COMPOSITE(special_##name) { return polynomial(r, args, kind, shifted); }
POLYNOMIAL(chebyshev_polynomial_t, CHEBYSHEV_T, false)
POLYNOMIAL(chebyshev_polynomial_u, CHEBYSHEV_U, false)
POLYNOMIAL(chebyshev_polynomial_v, CHEBYSHEV_V, false)
POLYNOMIAL(chebyshev_polynomial_w, CHEBYSHEV_W, false)
POLYNOMIAL(shifted_chebyshev_polynomial_t, CHEBYSHEV_T, true)
POLYNOMIAL(shifted_chebyshev_polynomial_u, CHEBYSHEV_U, true)
POLYNOMIAL(shifted_chebyshev_polynomial_v, CHEBYSHEV_V, true)
POLYNOMIAL(shifted_chebyshev_polynomial_w, CHEBYSHEV_W, true)
POLYNOMIAL(hermite_polynomial_h, HERMITE_H, false)
POLYNOMIAL(hermite_polynomial_he, HERMITE_HE, false)
POLYNOMIAL(laguerre_polynomial_l, LAGUERRE_L, false)
POLYNOMIAL(legendre_polynomial_p, LEGENDRE_P, false)
