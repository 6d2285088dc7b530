/* winograd_isa.c: the kernels of winograd.h for one instruction set.
 *
 * Channels and outputs are the lanes of a vector. Both transforms are in registers: that of the
 * inputs makes two rows of positions at a time, those of a point and of its negative, which share
 * their terms. A product is a register tile of up to ROWS tiles and two vectors of outputs, whose
 * sum runs over the channels in order. The panel of U that comes next is prefetched meanwhile. */
#include <string.h>

#if KILN_KERNEL_LEVEL > 0
#include <immintrin.h>
#endif

#include "runtime/kernels/heavy/winograd.h"
#include "runtime/kernels/isa.h"
#include "runtime/math/math.h"

#define NAME(name) KILN_ISA_CAT3(name, _, KILN_KERNEL_ISA)
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

/* c[rows][PANEL] = a[rows][k] b[k][vectors]; `ahead` is what will be read next, as long as b. */
ALWAYS_INLINE void multiply(const int rows, const int vectors, int64_t k, const float *a,
                            int64_t a_row, const float *b, float *c, const float *ahead) {
  V acc[ROWS][VECTORS];
  UNROLL for (int i = 0; i < rows; i++) {
    UNROLL for (int j = 0; j < vectors; j++) acc[i][j] = (V){0};
  }
  const float *const a3 = a + 3 * a_row, *const a6 = a3 + 3 * a_row, *const a9 = a6 + 3 * a_row,
                     *const a12 = a9 + 3 * a_row;
  for (int64_t p = 0; p < k; p++, b += vectors * LANES, ahead += vectors * LANES) {
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
    UNROLL for (int j = 0; j < vectors; j++) * (V *)(c + i * PANEL + j * LANES) = acc[i][j];
  }
}
typedef void (*multiply_fn)(int64_t k, const float *a, int64_t a_row, const float *b, float *c,
                            const float *ahead);
#define MULTIPLY(rows, vectors)                                                           \
  static void multiply_##rows##_##vectors(int64_t k, const float *a, int64_t a_row,       \
                                          const float *b, float *c, const float *ahead) { \
    multiply(rows, vectors, k, a, a_row, b, c, ahead);                                    \
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

/* M of a panel, all positions: tiles in groups of nearly the same size. */
static void multiply_panel(const kiln_winograd_strip *s, int64_t positions, int64_t vectors,
                           const float *u) {
  const kiln_winograd_plan *p = s->plan;
  const int64_t k = p->problem.channels, next = k * vectors * LANES;
  const int64_t groups = (s->tiles + ROWS - 1) / ROWS;
  for (int64_t position = 0; position < positions; position++, u += next) {
    const float *a = s->v + position * p->v_position;
    float *c = s->m + position * p->m_position;
    for (int64_t group = 0; group < groups; group++) {
      const int64_t from = group * s->tiles / groups, to = (group + 1) * s->tiles / groups;
      multiplies[to - from - 1][vectors - 1](k, a + from * p->v_row, p->v_row, u, c + from * PANEL,
                                             group == 0 ? u + next : u);
    }
  }
}

/* -- Transforms of a line -- */

/* The points of F4, beside their negatives and 0: POINT and 2 POINT. Squares and cubes are exact.
 */
#define POINT (181.0f / 256)
#define NEAR_SQUARE (POINT * POINT)
#define FAR_SQUARE (4 * NEAR_SQUARE)

/* Pairs of positions from the inputs of a line: those of the points 0 and infinity,
 * of POINT and its negative, of 2 POINT. */
ALWAYS_INLINE void gather_ends_4(const V d[6], V *low, V *high) {
  *low = FMA(FMA(d[4], -5 * NEAR_SQUARE, d[2]), 4 * NEAR_SQUARE * NEAR_SQUARE, d[0]);
  *high = FMA(FMA(d[5], -5 * NEAR_SQUARE, d[3]), 4 * NEAR_SQUARE * NEAR_SQUARE, d[1]);
}
ALWAYS_INLINE void gather_near_4(const V d[6], V *plus, V *minus) {
  const V even = FMA(d[4], -FAR_SQUARE, d[2]), odd = FMA(d[3], -FAR_SQUARE, d[1]);
  *plus = FMA(even, POINT, odd);
  *minus = FMA(even, -POINT, odd);
}
ALWAYS_INLINE void gather_far_4(const V d[6], V *plus, V *minus) {
  const V even = FMA(d[4], -NEAR_SQUARE, d[2]), odd = FMA(d[3], -NEAR_SQUARE, d[1]);
  *plus = FMA(even, 2 * POINT, odd);
  *minus = FMA(even, -2 * POINT, odd);
}
/* Outputs from the positions of a line. */
ALWAYS_INLINE void give_4(const V m[6], V y[4]) {
  const V near_sum = m[1] + m[2], near = m[1] - m[2], far_sum = m[3] + m[4], far = m[3] - m[4];
  y[0] = m[0] + (near_sum + far_sum);
  y[1] = POINT * FMA(near, 2, far);
  y[2] = NEAR_SQUARE * FMA(near_sum, 4, far_sum);
  y[3] = FMA(m[5], NEAR_SQUARE * POINT, FMA(near, 8, far));
}
ALWAYS_INLINE void gather_ends_2(const V d[4], V *low, V *high) {
  *low = d[0] - d[2];
  *high = d[1] - d[3];
}
ALWAYS_INLINE void gather_near_2(const V d[4], V *plus, V *minus) {
  *plus = d[1] + d[2];
  *minus = d[2] - d[1];
}
ALWAYS_INLINE void give_2(const V m[4], V y[2]) {
  const V sum = m[1] + m[2];
  y[0] = m[0] + sum;
  y[1] = m[1] - m[2] - m[3];
}

/* What the taps of a line are at the positions, in double. */
#define A (181.0 / 256)
#define B (2 * A)
#define AT_NEAR (1 / (2 * A * A * (A * A - B * B)))
#define AT_FAR (1 / (2 * B * B * (B * B - A * A)))
static const double weights_4[6][3] = {
    {1 / (A * A * B * B), 0, 0},           {AT_NEAR, AT_NEAR *A, AT_NEAR *A *A},
    {AT_NEAR, -AT_NEAR *A, AT_NEAR *A *A}, {AT_FAR, AT_FAR *B, AT_FAR *B *B},
    {AT_FAR, -AT_FAR *B, AT_FAR *B *B},    {0, 0, 1},
};
#undef A
#undef B
static const double weights_2[4][3] = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}};

#define FORM 4
#include "runtime/kernels/heavy/winograd_isa.h"
#undef FORM
#define FORM 2
#include "runtime/kernels/heavy/winograd_isa.h"
#undef FORM

#define KERNELS(form)                      \
  {.lanes = LANES,                         \
   .rows = ROWS,                           \
   .fill = KILN_ISA_CAT2(fill_, form),     \
   .gather = KILN_ISA_CAT2(gather_, form), \
   .panel = KILN_ISA_CAT2(panel_, form)}
const kiln_winograd_set NAME(kiln__winograd) = {
    {[KILN_WINOGRAD_F2] = KERNELS(2), [KILN_WINOGRAD_F4] = KERNELS(4)}};
