/* product_tile.h: a product in registers for one instruction set, of rows as they lie and a panel
 * of two vectors that was packed before: what Winograd's convolutions and products in blocks share.
 * Behind KILN_KERNEL_ISA; static code of the file that includes it. */
#pragma once

#if KILN_KERNEL_LEVEL > 0
#include <immintrin.h>
#endif

#include "runtime/kernels/isa.h"
#include "runtime/math/math.h"

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 36")
#define V kiln_f32v
#define VU kiln_f32v_u
enum { LANES = KILN_MATH_LANES, VECTORS = 2, PANEL = VECTORS * LANES };

/* a + b * x, rounded once where the processor can; b may be a number. */
#if KILN_KERNEL_LEVEL > 0
#define FMA(a, b, x) ((V)KILN_MATH_FMA_F32((V)((b) - (V){0}), (V)(x), (V)(a)))
#else
#define FMA(a, b, x) ((a) + (b) * (x))
#endif

/* Accumulators, a panel's vectors and one number of V fit into the registers. */
#if KILN_KERNEL_LEVEL == 2
enum { ROWS = 14 };
#else
enum { ROWS = 6 };
#endif

/* -- Parts of a vector -- */

#if KILN_KERNEL_LEVEL == 2
typedef __mmask16 lanes_mask;
ALWAYS_INLINE lanes_mask mask_of(int64_t n) { return (lanes_mask)((1u << n) - 1); }
ALWAYS_INLINE V load_part(const float *p, lanes_mask m) { return (V)_mm512_maskz_loadu_ps(m, p); }
ALWAYS_INLINE void store_part(float *p, lanes_mask m, V v) {
  _mm512_mask_storeu_ps(p, m, (__m512)v);
}
#elif KILN_KERNEL_LEVEL == 1
typedef __m256i lanes_mask;
ALWAYS_INLINE lanes_mask mask_of(int64_t n) {
  return (__m256i)((int)n > (kiln_i32v){0, 1, 2, 3, 4, 5, 6, 7});
}
ALWAYS_INLINE V load_part(const float *p, lanes_mask m) { return (V)_mm256_maskload_ps(p, m); }
ALWAYS_INLINE void store_part(float *p, lanes_mask m, V v) { _mm256_maskstore_ps(p, m, (__m256)v); }
#else
typedef int64_t lanes_mask;
ALWAYS_INLINE lanes_mask mask_of(int64_t n) { return n; }
ALWAYS_INLINE V load_part(const float *p, lanes_mask n) {
  V v = {0};
  for (int64_t i = 0; i < n; i++) v[i] = p[i];
  return v;
}
ALWAYS_INLINE void store_part(float *p, lanes_mask n, V v) {
  for (int64_t i = 0; i < n; i++) p[i] = v[i];
}
#endif

/* -- The product -- */

/* Rows `a_row` floats apart, and [k][vectors of lanes]. */
typedef struct tile_factors {
  int64_t k, a_row, ahead_step;
  const float *a, *b, *ahead;
} tile_factors;

/* c[rows][vectors] = init[rows][vectors] + a[rows][k] b[k][vectors]; init NULL: zeros. `ahead` is
 * what will be read next: its lines come into the second cache, `ahead_step` floats for each k. */
ALWAYS_INLINE void multiply(const int rows, const int vectors, const tile_factors *f, float *c,
                            int64_t c_row, const float *init, int64_t init_row) {
  V acc[ROWS][VECTORS];
  const float *a = f->a, *b = f->b, *ahead = f->ahead;
  const int64_t a_row = f->a_row, k = f->k, ahead_step = f->ahead_step;
  UNROLL for (int i = 0; i < rows; i++) {
    UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = (V){0};
  }
  if (init) {
    UNROLL for (int i = 0; i < rows; i++) {
      UNROLL for (int j = 0; j < vectors; j++) acc[i][j] =
          *(const VU *)(init + i * init_row + j * LANES);
    }
  }
  UNROLL for (int i = 0; i < rows; i++) { /* lines that will be written are on their way */
    UNROLL for (int j = 0; j * 16 < vectors * LANES; j++)
      __builtin_prefetch(c + i * c_row + j * 16, 1, 3);
  }
  const float *const a3 = a + 3 * a_row, *const a6 = a3 + 3 * a_row, *const a9 = a6 + 3 * a_row,
                     *const a12 = a9 + 3 * a_row;
  for (int64_t p = 0; p < k; p++, b += vectors * LANES, ahead += ahead_step) {
    V x[VECTORS];
    UNROLL for (int j = 0; j < vectors; j++) {
      x[j] = *(const VU *)(b + j * LANES);
      KILN_IN_REGISTER(x[j]);
      if (j * LANES % 16 == 0) __builtin_prefetch(ahead + j * LANES, 0, 2);
    }
    UNROLL for (int i = 0; i < rows; i++) {
      const float *from = i < 3    ? a + i * a_row
                          : i < 6  ? a3 + (i - 3) * a_row
                          : i < 9  ? a6 + (i - 6) * a_row
                          : i < 12 ? a9 + (i - 9) * a_row
                                   : a12 + (i - 12) * a_row;
      const V w = from[p] - (V){0};
      UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = FMA(acc[i][j], x[j], w);
    }
  }
  UNROLL for (int i = 0; i < rows; i++) {
    UNROLL for (int j = 0; j < vectors; j++) * (VU *)(c + i * c_row + j * LANES) = acc[i][j];
  }
}
typedef void (*multiply_fn)(const tile_factors *f, float *c, int64_t c_row, const float *init,
                            int64_t init_row);
#define MULTIPLY(rows, vectors)                                                           \
  static void multiply_##rows##_##vectors(const tile_factors *f, float *c, int64_t c_row, \
                                          const float *init, int64_t init_row) {          \
    multiply(rows, vectors, f, c, c_row, init, init_row);                                 \
  }
#define ROWS_OF(rows) MULTIPLY(rows, 1) MULTIPLY(rows, 2)
#define ROWS_ENTRY(rows) {multiply_##rows##_1, multiply_##rows##_2},
#if KILN_KERNEL_LEVEL == 2
#define LARGER(each) each(7) each(8) each(9) each(10) each(11) each(12) each(13) each(14)
#else
#define LARGER(each)
#endif
#define EACH_ROWS(each) each(1) each(2) each(3) each(4) each(5) each(6) LARGER(each)
EACH_ROWS(ROWS_OF)
/* [rows - 1][vectors - 1] */
static const multiply_fn multiplies[ROWS][VECTORS] = {EACH_ROWS(ROWS_ENTRY)};
