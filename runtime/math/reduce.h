/* reduce.h: exact argument reduction for huge angles, one number at a time (part of math.h).
 *
 * Payne and Hanek's method (ACM SIGNUM 18, 1983): x = m * 2^e with an integer m of 53 bits; of the
 * binary digits of 2/pi only a window of 192 bits can matter to the fraction of x * 2/pi, since
 * digits further left give multiples of 4 and those further right vanish. Cody and Waite's
 * subtraction (math_f64.h) is faster, but has no digits left beyond 2^20. */
#pragma once

/* The digits of 2/pi after the point. */
static const uint64_t kiln__math_two_over_pi[] = {
    0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u,
    0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u,
    0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu,
    0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du, 0x7527bac7ebe5f17bu,
    0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu, 0xf0cfbc209af4361du,
    0xa9e391615ee61b08u, 0x6599855f14a06840u};

/* 64 digits of 2/pi from digit `at`, which may be negative (zeros). */
static inline __attribute__((unused)) uint64_t kiln__math_digits(int at) {
  if (at <= -64) return 0;
  if (at < 0) return kiln__math_two_over_pi[0] >> -at;
  int word = at / 64, bit = at % 64;
  uint64_t w = kiln__math_two_over_pi[word] << bit;
  return bit ? w | kiln__math_two_over_pi[word + 1] >> (64 - bit) : w;
}

/* x = q * pi/2 + r[0] + r[1], |r| <= pi/4, for finite |x| >= 1; returns q mod 4. NaN and infinities
 * give NaN. */
static __attribute__((noinline, unused)) int64_t kiln__math_reduce(double x, double *r) {
  union {
    double f;
    uint64_t u;
  } bits = {x};
  int exponent = (int)(bits.u >> 52 & 0x7ff) - 1075;
  if (exponent == 0x7ff - 1075) {
    r[0] = r[1] = x - x;
    return 0;
  }
  uint64_t m = (bits.u & 0xfffffffffffffu) | 0x10000000000000u;
  /* x * 2/pi = m * 2^exponent * 0.digits. Digit i (from 0) weighs 2^(exponent - 1 - i) * m: those
   * of weight 2^2 * m and above drop out. The window begins at digit exponent - 2, so that its
   * first two digits, times m, are units mod 4. */
  int first = exponent - 2;
  uint64_t d2 = kiln__math_digits(first), d1 = kiln__math_digits(first + 64),
           d0 = kiln__math_digits(first + 128);
  /* (d2:d1:d0 * m) mod 2^192, with the point after the top two bits. */
  unsigned __int128 low = (unsigned __int128)d0 * m;
  unsigned __int128 mid = (unsigned __int128)d1 * m + (uint64_t)(low >> 64);
  uint64_t high = d2 * m + (uint64_t)(mid >> 64);
  uint64_t q = high >> 62;
  uint64_t f2 = high << 2 | (uint64_t)mid >> 62;
  uint64_t f1 = (uint64_t)mid << 2 | (uint64_t)low >> 62;
  /* Nearest: a fraction of a half or more is negative of the next quadrant. */
  int negative = f2 >> 63 != 0;
  if (negative) {
    q++;
    f1 = ~f1 + 1;
    f2 = ~f2 + (f1 == 0);
  }
  /* The fraction f2:f1 * 2^-128 as a sum of doubles, after removing leading zeros. */
  int shift = f2 ? __builtin_clzll(f2) : 64 + (f1 ? __builtin_clzll(f1) : 63);
  unsigned __int128 f = ((unsigned __int128)f2 << 64 | f1) << shift;
  uint64_t top = (uint64_t)(f >> 64) >> 11; /* 53 bits */
  uint64_t rest = (uint64_t)(f >> 22) & 0x1fffffffffffffu;
  bits.u = (uint64_t)(1023 - 53 - shift) << 52;
  double scale = bits.f;
  double hi = (double)top * scale;
  double lo = (double)rest * scale * 0x1p-53;
  /* times pi/2, in double-double */
  const double p = 0x1.921fb54442d18p+0, p_lo = 0x1.1a62633145c07p-54;
  const double ch = 0x1.921fb58p+0, cl = p - ch;
  double t = hi * 0x1.0000002p27, hh = t - (t - hi), hl = hi - hh;
  double y = hi * p;
  double e = ((hh * ch - y) + hh * cl + hl * ch) + hl * cl;
  e += hi * p_lo + lo * p;
  double sum = y + e, tail = e - (sum - y);
  int flip = negative != (x < 0);
  r[0] = flip ? -sum : sum;
  r[1] = flip ? -tail : tail;
  return (int64_t)(x < 0 ? (0 - q) & 3 : q & 3);
}
