/* product_tile.h: a product in registers for one instruction set, of rows as they lie and a panel
 * of two vectors that was packed before (product_isa.c), and parts of vectors: what Winograd's
 * convolutions and products in blocks share. Behind KILN_KERNEL_ISA. */
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
  bool claim; /* the lines of c are asked for before the sums */
} tile_factors;

/* c[rows][vectors] = init[rows][vectors] + a[rows][k] b[k][vectors]; init NULL: zeros. `ahead` is
 * what will be read next: its lines come into the second cache, `ahead_step` floats for each k. */
typedef void (*multiply_fn)(const tile_factors *f, float *c, int64_t c_row, const float *init,
                            int64_t init_row);
/* [rows - 1][vectors - 1] */
#define multiplies KILN_ISA_CAT2(kiln__multiplies_, KILN_KERNEL_ISA)
extern const multiply_fn multiplies[ROWS][VECTORS];

/* -- A form -- */

/* What both families have of one: fill_FORM, gather_FORM, panel_FORM. */
#define KERNELS(form)                      \
  {.lanes = LANES,                         \
   .rows = ROWS,                           \
   .fill = KILN_ISA_CAT2(fill_, form),     \
   .gather = KILN_ISA_CAT2(gather_, form), \
   .panel = KILN_ISA_CAT2(panel_, form)}
