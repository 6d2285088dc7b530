/* scalar_math.c: special functions of one number that runtime/math does not have. */
#include <math.h>

#include "runtime/kernels/isa.h"

/* Giles' single-precision start ("Approximating the erfinv function", 2010), then Newton steps in
 * double. Beyond 0.5 the residual is taken through erfc, where erf - x would cancel. */
double kiln__erfinv(double x) {
  static const double near[] = {2.81022636e-08,  3.43273939e-07, -3.5233877e-06,
                                -4.39150654e-06, 0.00021858087,  -0.00125372503,
                                -0.00417768164,  0.246640727,    1.50140941};
  static const double far[] = {-0.000200214257, 0.000100950558, 0.00134934322,
                               -0.00367342844,  0.00573950773,  -0.0076224613,
                               0.00943887047,   1.00167406,     2.83297682};
  if (x != x || x < -1 || x > 1) return NAN;
  if (x == 1 || x == -1) return copysign(INFINITY, x);
  if (x == 0) return x;
  double w = -log((1 - x) * (1 + x));
  const double *c = w < 5 ? near : far;
  w = w < 5 ? w - 2.5 : sqrt(w) - 3;
  double p = c[0];
  for (int i = 1; i < 9; i++) p = c[i] + p * w;
  double y = p * x;
  for (int step = 0; step < 2; step++) {
    double residual = x > 0.5 ? (1 - x) - erfc(y) : x < -0.5 ? erfc(-y) - (1 + x) : erf(y) - x;
    double slope = 1.12837916709551257390 * exp(-y * y);
    if (slope == 0) break;
    y -= residual / slope;
  }
  return y;
}

/* Reflection for negative numbers, recurrence up to 10, then the asymptotic series. */
double kiln__digamma(double x) {
  if (x == 0) return copysign(INFINITY, -x);
  double shift = 0;
  if (x < 0) {
    if (x == trunc(x)) return NAN;
    double whole;
    shift = -M_PI / tan(M_PI * modf(x, &whole));
    x = 1 - x;
  }
  while (x < 10) {
    shift -= 1 / x;
    x += 1;
  }
  if (x == 10) return shift + 2.25175258906672110764;
  static const double c[] = {8.33333333333333333333e-2, -2.10927960927960927961e-2,
                             7.57575757575757575758e-3, -4.16666666666666666667e-3,
                             3.96825396825396825397e-3, -8.33333333333333333333e-3,
                             8.33333333333333333333e-2};
  double series = 0;
  if (x < 1e17) {
    double z = 1 / (x * x), p = c[0];
    for (int i = 1; i < 7; i++) p = p * z + c[i];
    series = z * p;
  }
  return log(x) - 0.5 / x - series + shift;
}

double kiln__lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}
