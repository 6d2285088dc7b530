/* fft.h: discrete Fourier transforms of complex doubles, of any length. */
#pragma once

#include "runtime/kernels/support.h"

/* A struct, as C's own products of complex numbers stop for NaN. */
typedef struct kiln__z {
  double re, im;
} kiln__z;
typedef kiln__z z;
static inline z z_add(z a, z b) { return (z){a.re + b.re, a.im + b.im}; }
static inline z z_sub(z a, z b) { return (z){a.re - b.re, a.im - b.im}; }
static inline z z_mul(z a, z b) {
  return (z){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
static inline z z_conj(z a) { return (z){a.re, -a.im}; }

/* What a length needs; its memory comes from the call's cache. */
typedef struct kiln__fft {
  int64_t n, conv;           /* conv: length of Bluestein's convolution; 0: n has small factors */
  kiln__z *turns;            /* exp(-2 pi i k / n), of `conv` where that is set */
  kiln__z *chirp, *spectrum; /* Bluestein's: [n], and of its conjugate [conv] */
  size_t bytes;
} kiln__fft;

/* n > 0 */
kiln_status *kiln__fft_init(kiln_call *call, int64_t n, kiln__fft *fft) KILN_MUST_USE;
void kiln__fft_deinit(kiln_call *call, kiln__fft *fft);
/* Elements of scratch that a run needs; they may be 0. */
static inline int64_t kiln__fft_scratch(const kiln__fft *fft) { return 2 * fft->conv; }
/* out[k] = sum of in[j] exp(-2 pi i jk / n); in, out and scratch do not overlap. */
void kiln__fft_run(const kiln__fft *fft, const kiln__z *in, kiln__z *out, kiln__z *scratch);
