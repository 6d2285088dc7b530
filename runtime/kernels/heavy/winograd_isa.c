/* winograd_isa.c: the kernels of winograd.h for one instruction set.
 *
 * Channels and outputs are the lanes of a vector. Both transforms are in registers: that of the
 * inputs makes two rows of positions at a time, those of a point and of its negative, which share
 * their terms. A product is a register tile of up to ROWS tiles and two vectors of outputs, whose
 * sum runs over the channels in order. The panel of U that comes next is prefetched meanwhile. */
#include <string.h>

#include "runtime/kernels/heavy/product_tile.h"
#include "runtime/kernels/heavy/winograd.h"

#define NAME(name) KILN_ISA_CAT3(name, _, KILN_KERNEL_ISA)

/* M of a panel, all positions: tiles in groups of nearly the same size. Each group asks for its
 * part of what the next position reads, so that this arrives evenly. */
static void multiply_panel(const kiln_winograd_strip *s, int64_t positions, int64_t vectors,
                           const float *u) {
  const kiln_winograd_plan *p = s->plan;
  const int64_t k = (s->last_tap - s->first_tap) * p->pitch;
  const int64_t before = s->first_tap * p->pitch, next = p->depth * vectors * LANES;
  const int64_t groups = (s->tiles + ROWS - 1) / ROWS;
  const int64_t ahead_step = (vectors * LANES + groups - 1) / groups;
  for (int64_t position = 0; position < positions; position++, u += next) {
    const float *a = s->v + position * p->v_position + before, *b = u + before * vectors * LANES;
    float *c = s->m + position * p->m_position;
    for (int64_t group = 0; group < groups; group++) {
      const int64_t from = group * s->tiles / groups, to = (group + 1) * s->tiles / groups;
      const tile_factors f = {.k = k,
                              .a_row = p->v_row,
                              .ahead_step = ahead_step,
                              .a = a + from * p->v_row,
                              .b = b,
                              .ahead = b + next + group * ahead_step * k};
      multiplies[to - from - 1][vectors - 1](&f, c + from * PANEL, PANEL, NULL, 0);
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

const kiln_winograd_set NAME(kiln__winograd) = {
    {[KILN_WINOGRAD_F2] = KERNELS(2), [KILN_WINOGRAD_F4] = KERNELS(4)}};
