/* special_bessel.c: modified Bessel functions of the second kind, K0 and K1, and Airy's Ai.
 *
 * K: below 2 the power series with its logarithm, above Temme's continued fraction (1975), which
 * gives both orders. Ai: Maclaurin's series in long double where |2/3 x^1.5| is small (its terms
 * cancel), above K of order 1/3 by the same fraction, far to the left the asymptotic series; errors
 * are 1e-13 of the amplitude at most, next to that border. */
#include <math.h>

#include "runtime/kernels/composite.h"

#define EULER 0.57721566490153286061

/* exp(x) K of order `mu` (0 or 1/3) and of mu + 1, x >= 2. */
static void fraction(double mu, double x, double out[2]) {
  const double first = 0.25 - mu * mu;
  double b = 2 * (1 + x), d = 1 / b, step = d, h = d, q1 = 0, q2 = 1, c = first, q = c, a = -c;
  double sum = 1 + q * step;
  for (int i = 2; i < 10000; i++) {
    a -= 2 * (i - 1);
    c = -a * c / i;
    const double q3 = (q1 - b * q2) / a;
    q1 = q2;
    q2 = q3;
    q += c * q3;
    b += 2;
    d = 1 / (b + a * d);
    step *= b * d - 1;
    h += step;
    sum += q * step;
    if (fabs(q * step) < fabs(sum) * 1e-17) break;
  }
  out[0] = sqrt(M_PI / (2 * x)) / sum;
  out[1] = out[0] * (mu + x + 0.5 - first * h) / x;
}
static double modified(double x, int order, bool scaled) {
  double both[2];
  if (!(x > 0)) return x == 0 ? INFINITY : NAN;
  if (isinf(x)) return 0;
  if (x > 2) {
    fraction(0, x, both);
    return scaled ? both[order] : both[order] * exp(-x);
  }
  const double y = x * x / 4, logarithm = log(x / 2);
  double term = order ? x / 2 : 1, harmonic = order ? 0.5 - EULER : -EULER, sum = 0;
  for (int k = 0; k < 40; k++) { /* harmonic: of order 1 the mean of psi(k + 1) and psi(k + 2) */
    sum += term * (harmonic - logarithm);
    term *= y / ((k + 1.0) * (k + 1.0 + order));
    harmonic += order ? (1 / (k + 1.0) + 1 / (k + 2.0)) / 2 : 1 / (k + 1.0);
  }
  if (order) sum = 1 / x - sum;
  return scaled ? sum * exp(x) : sum;
}
static double k0(double x) { return modified(x, 0, false); }
static double k1(double x) { return modified(x, 1, false); }
static double k0_scaled(double x) { return modified(x, 0, true); }
static double k1_scaled(double x) { return modified(x, 1, true); }

static double airy(double x) {
  enum { SERIES = 15 };
  if (isinf(x) || x != x) return NAN; /* PyTorch has no limit either */
  const double root = sqrt(fabs(x)), zeta = 2.0 / 3 * fabs(x) * root;
  if (x > 0 && zeta > 2) {
    double both[2];
    fraction(1.0 / 3, zeta, both);
    return sqrt(x / 3) / M_PI * both[0] * exp(-zeta);
  }
  if (zeta > (double)SERIES) {
    double even = 1, odd = 0, term = 1;
    for (int k = 1; k < 60; k++) {
      const double factor =
          (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2.0 * k - 1) * zeta);
      if (factor > 1 || fabs(term) < 1e-17) break;
      term *= factor;
      if (k % 2)
        odd += k % 4 == 1 ? term : -term;
      else
        even += k % 4 == 0 ? term : -term;
    }
    const double angle = zeta - M_PI / 4;
    return (cos(angle) * even + sin(angle) * odd) / sqrt(M_PI * root);
  }
  const long double cube = (long double)x * x * x;
  long double f = 1, g = x, u = 1, v = x;
  for (int k = 1; k < 60; k++) {
    u *= cube / ((3.0L * k - 1) * (3.0L * k));
    v *= cube / ((3.0L * k) * (3.0L * k + 1));
    f += u;
    g += v;
  }
  return (double)(0.355028053887817239260063L * f - 0.258819403792806798405184L * g);
}

static kiln_tensor *each(kiln__composite *r, kiln_tensor *t, double (*f)(double)) {
  const kiln_dtype dtype = kiln_dtype_to_float(kiln_tensor_dtype(t));
  if (dtype != KILN_DTYPE_F32 && dtype != KILN_DTYPE_F64) {
    return kiln__composite_fail(r, kiln__not_implemented(r->call, dtype));
  }
  return kiln__composite_map(r, t, dtype, f);
}
KILN_COMPOSITE(special_modified_bessel_k0) { return each(r, SELF, k0); }
KILN_COMPOSITE(special_modified_bessel_k1) { return each(r, SELF, k1); }
KILN_COMPOSITE(special_scaled_modified_bessel_k0) { return each(r, SELF, k0_scaled); }
KILN_COMPOSITE(special_scaled_modified_bessel_k1) { return each(r, SELF, k1_scaled); }
KILN_COMPOSITE(special_airy_ai) { return each(r, SELF, airy); }
