/* special.c: functions of mathematics that models seldom use, element by element in double: Bessel,
 * zeta and polygamma, scaled error functions, the normal distribution.
 *
 * Bessel functions: the power series (all terms of one sign) below SERIES, the asymptotic series
 * above. Zeta: Euler and Maclaurin's sum. */
#include <math.h>

#include "runtime/kernels/composite.h"

#define ROOT_HALF 0.70710678118654752440
#define ROOT_2PI 2.50662827463100050242
#define ROOT_PI 1.77245385090551602730

/* -- Bessel: exp(-|x|) I_order(x) or I_order(x), order 0 or 1 -- */

static double bessel(double x, int order, bool scaled) {
  enum { SERIES = 25 };
  const double a = fabs(x);
  if (!(a < INFINITY)) return scaled && a == a ? 0 : NAN;
  double sum, term = order ? a / 2 : 1;
  if (a < (double)SERIES) {
    sum = term;
    for (int k = 1; term > sum * 1e-17; k++) {
      term *= a / 2 * (a / 2) / ((double)k * (k + order));
      sum += term;
    }
    if (scaled) sum *= exp(-a);
  } else {
    sum = term = 1;
    for (int k = 1; fabs(term) > 1e-17 && k < 2 * SERIES; k++) {
      const double odd = 2 * k - 1;
      term *= (odd * odd - 4 * order) / (8 * a * k);
      sum += term;
    }
    /* In two halves, as exp(a) may be too great before the division. */
    sum *= scaled ? 1 / sqrt(a) : exp(a / 2) / sqrt(a) * exp(a / 2);
    sum /= ROOT_2PI;
  }
  return order && x < 0 ? -sum : sum;
}
static double i0(double x) { return bessel(x, 0, false); }
static double i0e(double x) { return bessel(x, 0, true); }
static double i1(double x) { return bessel(x, 1, false); }
static double i1e(double x) { return bessel(x, 1, true); }

/* -- The normal distribution -- */

/* exp(x * x) erfc(x) */
static double erfcx(double x) {
  if (x < 25) {
    const double square = x * x, rest = fma(x, x, -square), e = exp(square);
    return e < INFINITY ? e * (1 + rest) * erfc(x) : INFINITY;
  }
  const double v = 1 / (x * x); /* 0 for infinity */
  return (1 - v / 2 * (1 - v * 1.5 * (1 - v * 2.5 * (1 - v * 3.5 * (1 - v * 4.5))))) /
         (x * ROOT_PI);
}
static double log_ndtr(double x) {
  if (x < -1) return log(erfcx(-x * ROOT_HALF) / 2) - x * x / 2;
  return log1p(-erfc(x * ROOT_HALF) / 2);
}
/* Where the distribution has p: a start of some nine digits, by rational functions (P. J. Acklam),
 * then two of Halley's steps. */
static double ndtri(double p) {
  static const double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                             1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00},
                      b[] = {-5.447609879822406e+01, 1.615858368580409e+02,  -1.556989798598866e+02,
                             6.680131188771972e+01,  -1.328068155288572e+01, 1},
                      c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                             -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00},
                      d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                             3.754408661415590e+00, 1};
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
  if (p > 0.5) return -ndtri(1 - p);
  double x, above = 0, below = 0;
  const bool tail = p < 0.02425;
  const double q = tail ? sqrt(-2 * log(p)) : p - 0.5, v = tail ? q : q * q;
  for (int i = 0; i < 6; i++) above = above * v + (tail ? c : a)[i];
  for (int i = 0; i < (tail ? 5 : 6); i++) below = below * v + (tail ? d : b)[i];
  x = above / below * (tail ? 1 : q);
  for (int step = 0; step < 2; step++) {
    const double error = erfc(-x * ROOT_HALF) / 2 - p, u = error * ROOT_2PI * exp(x * x / 2);
    x -= u / (1 + x * u / 2);
  }
  return x;
}

/* -- Zeta: the sum of (q + k)^-x -- */

static double zeta(double x, double q) {
  /* (2k)! / B(2k), B Bernoulli's numbers */
  static const double over[] = {12.0,
                                -720.0,
                                30240.0,
                                -1209600.0,
                                47900160.0,
                                -1307674368000.0 / 691,
                                74724249600.0,
                                -10670622842880000.0 / 3617,
                                5109094217170944000.0 / 43867,
                                -802857662698291200000.0 / 174611};
  enum { DIRECT = 9 };
  if (x == 1) return INFINITY;
  if (!(x > 1) || q != q) return NAN;
  if (q <= 0) {
    if (q == floor(q)) return INFINITY;
    if (x != floor(x)) return NAN;
  }
  double sum = pow(q, -x), a = q, power = sum;
  for (int i = 0; i < DIRECT || a <= (double)DIRECT; i++) {
    a += 1;
    power = pow(a, -x);
    sum += power;
    if (fabs(power) < fabs(sum) * 1e-17) return sum;
  }
  sum += power * a / (x - 1) - power / 2;
  double factor = 1;
  for (int i = 0; i < (int)(sizeof over / sizeof *over); i++) {
    factor *= x + 2 * i;
    power /= a;
    const double term = factor * power / over[i];
    sum += term;
    if (fabs(term) < fabs(sum) * 1e-17) break;
    factor *= x + 2 * i + 1;
    power /= a;
  }
  return sum;
}

/* -- The operators -- */

static kiln_dtype float_of(kiln_dtype dtype) {
  return kiln_dtype_is_int(dtype, true) ? KILN_DTYPE_F32 : dtype;
}
static kiln_tensor *unary(kiln__composite *r, kiln_tensor *t, double (*fn)(double)) {
  const kiln_dtype dtype = float_of(kiln_tensor_dtype(t));
  if (!kiln_dtype_is_float(dtype)) {
    return kiln__composite_fail(r, kiln__not_implemented(r->call, dtype));
  }
  return kiln__composite_map(r, t, dtype, fn);
}
#define UNARY(name) \
  KILN_COMPOSITE(special_##name) { return unary(r, SELF, name); }
UNARY(i0)
UNARY(i0e)
UNARY(i1)
UNARY(i1e)
UNARY(erfcx)
UNARY(log_ndtr)
UNARY(ndtri)

/* Two tensors, or one and a number, which has the dtype of the tensor. */
KILN_COMPOSITE(special_zeta) {
  kiln_tensor *pair[2];
  for (int i = 0; i < 2; i++) {
    const kiln_tensor *other = kiln_arg_tensor_opt(args, 1 - i);
    pair[i] = kiln__composite_operand(r, args[i], float_of(kiln__composite_dtype(other)));
  }
  /* add broadcasts, promotes and complains */
  const kiln_tensor *sum = KILN_STEP(r, add, T(pair[0]), T(pair[1]), I(1));
  const kiln_dtype dtype = float_of(kiln__composite_dtype(sum));
  if (!kiln_dtype_is_float(dtype)) {
    return kiln__composite_fail(r, kiln__not_implemented(r->call, dtype));
  }
  return kiln__composite_map2(r, pair[0], pair[1], dtype, zeta, 128);
}

/* Reflected below a half, where sin(pi x) of a whole x is not quite 0: then as large as PyTorch's.
 */
#define TRIGAMMA(T, sine)                                                                     \
  static T trigamma_##T(T x) {                                                                \
    const T pi = (T)M_PI;                                                                     \
    const bool below = x < (T)0.5;                                                            \
    T sum = 0;                                                                                \
    if (below) {                                                                              \
      const T s = sine(pi * x);                                                               \
      sum = -(pi * pi) / (s * s);                                                             \
      x = 1 - x;                                                                              \
    }                                                                                         \
    for (int i = 0; i < 6; i++, x += 1) sum += 1 / (x * x);                                   \
    const T y = 1 / (x * x);                                                                  \
    sum += (1 + 1 / (2 * x) + y * ((T)(1. / 6) - y * ((T)(1. / 30) - y * (T)(1. / 42)))) / x; \
    return below ? -sum : sum;                                                                \
  }
TRIGAMMA(float, sinf)
TRIGAMMA(double, sin)

static kiln_tensor *polygamma(kiln__composite *r, kiln_tensor *t, int64_t n) {
  kiln_tensor *in, *out;
  const kiln_dtype dtype = float_of(kiln_tensor_dtype(t));
  if (n < 0) FAIL(r, "polygamma(n, x) does not support negative n.");
  if (n == 0) return KILN_STEP(r, digamma, T(t));
  if (!kiln_dtype_is_float(dtype)) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, dtype));
  }
  const double *from = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  double *to =
      kiln__composite_new(r, KILN_DTYPE_F64, kiln_tensor_rank(t), kiln_tensor_sizes(t), &out);
  if (r->status) return NULL;
  const double factor = (n % 2 ? 1 : -1) * tgamma((double)n + 1);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < t->numel && !kiln_budget_spent(&left, 128); i++) {
    to[i] = n > 1                     ? factor * zeta((double)n + 1, from[i])
            : dtype == KILN_DTYPE_F64 ? trigamma_double(from[i])
                                      : (double)trigamma_float((float)from[i]);
  }
  return kiln__composite_lay_pointwise(r, out, dtype, 1, &t);
}
KILN_COMPOSITE(polygamma) { return polygamma(r, ARG(1), kiln_arg_int(args, 0)); }
KILN_COMPOSITE(polygamma_) { return polygamma(r, SELF, kiln_arg_int(args, 1)); }

/* Mantissa in [0.5, 1) and exponent. */
KILN_COMPOSITE(frexp_Tensor) {
  kiln_tensor *in, *mantissa, *exponent, *t = SELF;
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  if (!kiln_dtype_is_float(dtype)) {
    FAIL(r, "torch.frexp() only supports floating-point dtypes");
  }
  const double *from = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  const int rank = kiln_tensor_rank(t);
  double *m = kiln__composite_new(r, KILN_DTYPE_F64, rank, kiln_tensor_sizes(t), &mantissa);
  int32_t *e = kiln__composite_new(r, KILN_DTYPE_I32, rank, kiln_tensor_sizes(t), &exponent);
  if (r->status) return NULL;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < t->numel && !kiln_budget_spent(&left, 4); i++) {
    e[i] = 0;
    m[i] = frexp(from[i], &e[i]);
  }
  kiln__composite_give(r, &outs[1], kiln__composite_lay_like(r, exponent, KILN_DTYPE_I32, t));
  return kiln__composite_lay_like(r, mantissa, dtype, t);
}
