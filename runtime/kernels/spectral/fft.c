/* fft.c: discrete Fourier transforms by factors (Cooley and Tukey, decimation in time), and as a
 * convolution (Bluestein) where a prime factor is so large that its square would cost too much.
 *
 * Each twiddle factor is computed by itself, from an angle in the first octant: the error grows
 * only with the logarithm of the length. */
#include "runtime/kernels/spectral/fft.h"

#include <math.h>
#include <string.h>

enum { LARGEST_FACTOR = 61 };

static int64_t next_factor(int64_t n) {
  static const int64_t first[] = {4, 2, 3, 5};
  for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
    if (n % first[i] == 0) return first[i];
  }
  for (int64_t p = 7; p * p <= n; p += 2) {
    if (n % p == 0) return p;
  }
  return n;
}
static bool has_small_factors(int64_t n) {
  while (n > 1) {
    const int64_t p = next_factor(n);
    if (p > LARGEST_FACTOR) return false;
    n /= p;
  }
  return true;
}
/* exp(-2 pi i k / n) for 0 <= k < n */
static z turn(int64_t k, int64_t n) {
  const int64_t octant = 8 * k / n;
  int64_t rest = 8 * k - octant * n;    /* of the octant, in parts of n */
  if (octant % 2 == 1) rest = n - rest; /* seen from its other end */
  const double angle = 0.78539816339744830962 * ((double)rest / (double)n);
  const double c = cos(angle), s = sin(angle);
  switch (octant) {
    case 0: return (z){c, -s};
    case 1: return (z){s, -c};
    case 2: return (z){-s, -c};
    case 3: return (z){-c, -s};
    case 4: return (z){-c, s};
    case 5: return (z){-s, c};
    case 6: return (z){s, c};
    default: return (z){c, s};
  }
}

/* -- By factors -- */

/* The p results of p parts that are already turned. */
static void few_points(int64_t p, const z *t, z *out, int64_t out_step, const z *turns,
                       int64_t turn_step) {
  if (p == 2) {
    out[0] = z_add(t[0], t[1]);
    out[out_step] = z_sub(t[0], t[1]);
    return;
  }
  if (p == 4) {
    const z a = z_add(t[0], t[2]), b = z_sub(t[0], t[2]), c = z_add(t[1], t[3]),
            d = z_sub(t[1], t[3]);
    out[0] = z_add(a, c);
    out[out_step] = (z){b.re + d.im, b.im - d.re};
    out[2 * out_step] = z_sub(a, c);
    out[3 * out_step] = (z){b.re - d.im, b.im + d.re};
    return;
  }
  for (int64_t q = 0; q < p; q++) {
    z sum = t[0];
    for (int64_t r = 1; r < p; r++) sum = z_add(sum, z_mul(t[r], turns[q * r % p * turn_step]));
    out[q * out_step] = sum;
  }
}
enum { SMALL = 1024 }; /* points without a look at the budget */
/* in[0], in[step], ...: n of them; turns[k * turn_step] is exp(-2 pi i k / n). */
static void by_factors(int64_t n, const z *in, int64_t step, z *out, const z *turns,
                       int64_t turn_step) {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  const int64_t p = next_factor(n), m = n / p;
  z t[LARGEST_FACTOR + 1];
  for (int64_t r = 0; r < p; r++) {
    by_factors(m, in + r * step, step * p, out + r * m, turns, turn_step * p);
  }
  if (n > SMALL && kiln_budget_leaves_out()) return;
  for (int64_t k = 0, end; (end = kiln_budget_piece(k, m)) > k;) {
    for (; k < end; k++) {
      t[0] = out[k];
      for (int64_t r = 1; r < p; r++) t[r] = z_mul(out[r * m + k], turns[r * k * turn_step]);
      few_points(p, t, out + k, m, turns, m * turn_step);
    }
  }
}

/* -- Plans -- */

kiln_status *kiln__fft_init(kiln_call *call, int64_t n, kiln__fft *fft) {
  *fft = (kiln__fft){.n = n};
  if (n < 1 || n > (INT64_C(1) << 40)) return KILN_OP_FAIL("fft: %lld points", (long long)n);
  if (!has_small_factors(n)) {
    for (fft->conv = 1; fft->conv < 2 * n - 1;) fft->conv *= 2;
  }
  const int64_t length = fft->conv ? fft->conv : n;
  fft->bytes = sizeof(z) * (size_t)(fft->conv ? 3 * length + n : n);
  fft->turns = kiln_cache_alloc(&call->cache, fft->bytes);
  if (!fft->turns) return kiln_status_oom();
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t k = 0; k < length && !kiln_budget_spent(&left, 16); k++) {
    fft->turns[k] = turn(k, length);
  }
  if (!fft->conv) return NULL;
  z *folded = fft->turns + length; /* only until its spectrum is known */
  fft->spectrum = folded + length;
  fft->chirp = fft->spectrum + length;
  kiln__zero(folded, sizeof *folded * (size_t)length);
  int64_t square = 0; /* j * j mod 2n */
  for (int64_t j = 0; j < n && !kiln_budget_spent(&left, 16); j++) {
    fft->chirp[j] = turn(square, 2 * n);
    folded[j] = folded[j ? length - j : 0] = z_conj(fft->chirp[j]);
    square = (square + 2 * j + 1) % (2 * n);
  }
  by_factors(length, folded, 1, fft->spectrum, fft->turns, 1);
  return NULL;
}
void kiln__fft_deinit(kiln_call *call, kiln__fft *fft) {
  if (fft->turns) kiln_cache_free(&call->cache, fft->turns, fft->bytes);
  fft->turns = NULL;
}
void kiln__fft_run(const kiln__fft *fft, const z *in, z *out, z *scratch) {
  const int64_t n = fft->n, length = fft->conv;
  if (!length) {
    by_factors(n, in, 1, out, fft->turns, 1);
    return;
  }
  z *a = scratch, *b = scratch + length;
  for (int64_t j = 0; j < n; j++) a[j] = z_mul(in[j], fft->chirp[j]);
  kiln__zero(a + n, sizeof *a * (size_t)(length - n));
  by_factors(length, a, 1, b, fft->turns, 1);
  for (int64_t j = 0; j < length; j++) b[j] = z_conj(z_mul(b[j], fft->spectrum[j]));
  by_factors(length, b, 1, a, fft->turns, 1);
  const double scale = 1 / (double)length;
  for (int64_t k = 0; k < n; k++) {
    out[k] = z_mul((z){a[k].re * scale, -a[k].im * scale}, fft->chirp[k]);
  }
}
