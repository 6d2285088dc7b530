/* blocked_isa.c: the kernels of blocked.h for one instruction set. */
#include <string.h>

#include "runtime/kernels/heavy/product_tile.h"
#include "runtime/kernels/heavy/blocked.h"

#define NAME(name) KILN_ISA_CAT3(name, _, KILN_KERNEL_ISA)

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* -- The product of a panel -- */

/* Tiles in groups of nearly the same size. All of them together bring the next panel, as long as
 * this one, into the second cache. `claim`: c lies where the result will be, not in scratch memory.
 */
static void multiply_tiles(const kiln_blocked_part *s, const float *v, const float *u, float *c,
                           int64_t c_row, const float *init, int64_t init_row, bool claim) {
  const kiln_blocked_plan *p = s->plan;
  const int64_t groups = (s->tiles + ROWS - 1) / ROWS, step = (PANEL + groups - 1) / groups;
  for (int64_t group = 0; group < groups; group++) {
    const int64_t from = group * s->tiles / groups, to = (group + 1) * s->tiles / groups;
    const tile_factors f = {.k = s->half,
                            .a_row = p->v_row,
                            .ahead_step = step,
                            .a = v + from * p->v_row,
                            .b = u,
                            .ahead = u + s->half * (PANEL + group * step),
                            .claim = claim};
    multiplies[to - from - 1][VECTORS - 1](&f, c + from * c_row, c_row,
                                           init ? init + from * init_row : NULL, init_row);
  }
}

/* A vector, of which `left` floats are there and the others are 0; NULL: zeros. */
ALWAYS_INLINE V some(const float *from, int64_t left) {
  if (!from || left <= 0) return (V){0};
  return left >= LANES ? (V) * (const VU *)from : load_part(from, mask_of(left));
}
ALWAYS_INLINE void put(float *to, V v, int64_t left) {
  if (left >= LANES)
    *(VU *)to = v;
  else if (left > 0)
    store_part(to, mask_of(left), v);
}
/* What is summed onto: what y has, or the bias of that output, or NULL. */
ALWAYS_INLINE const float *onto(const kiln_blocked_part *s, const float *y, int64_t output) {
  return s->add ? y : s->bias ? s->bias + output : NULL;
}

/* -- Products as they stand -- */

static void fill_direct(const kiln_blocked_weight *w, float *u, int64_t begin, int64_t end) {
  for (int64_t panel = begin; panel < end; panel++) {
    if (kiln_budget_leaves_out()) return;
    const int64_t first = panel * PANEL, count = least(w->outputs - first, PANEL);
    float *to = u + panel * w->depth * PANEL;
    for (int64_t k = 0; k < w->depth; k++, to += PANEL) {
      const float *from = w->data + first * w->output + k * w->along;
      for (int64_t n = 0; n < PANEL; n++) to[n] = n < count ? from[n * w->output] : 0;
    }
  }
}
static void gather_direct(const kiln_blocked_part *s) {
  const kiln_blocked_plan *p = s->plan;
  for (int64_t i = 0; i < s->tiles; i++)
    memcpy(s->gathered + i * p->v_row, s->x + (s->tile + i) * p->problem.x_row,
           (size_t)s->depth * sizeof(float));
}
static void panel_direct(const kiln_blocked_part *s, int64_t panel) {
  const kiln_blocked *p = &s->plan->problem;
  const int64_t first = panel * PANEL, left = p->outputs - first;
  const float *u = s->u + panel * s->half * PANEL;
  float *y = s->y + s->tile * p->y_row + first;
  if (left >= PANEL) {
    multiply_tiles(s, s->v, u, y, p->y_row, onto(s, y, first), s->add ? p->y_row : 0, true);
    return;
  }
  for (int64_t i = 0; i < s->tiles; i++)
    for (int64_t n = 0; n < PANEL; n += LANES)
      *(VU *)(s->m + i * PANEL + n) = some(onto(s, y + i * p->y_row + n, first + n), left - n);
  multiply_tiles(s, s->v, u, s->m, PANEL, s->m, PANEL, false);
  for (int64_t i = 0; i < s->tiles; i++)
    for (int64_t n = 0; n < left; n += LANES)
      put(y + i * p->y_row + n, *(const VU *)(s->m + i * PANEL + n), left - n);
}

/* -- Strassen's seven --
 *
 *   1: (a11 + a22) (b11 + b22)   2: (a21 + a22) b11   3: a11 (b12 - b22)   4: a22 (b21 - b11)
 *   5: (a11 + a12) b22   6: (a21 - a11) (b11 + b12)   7: (a12 - a22) (b21 + b22)
 *   c11 = 1 + 4 - 5 + 7   c12 = 3 + 5   c21 = 2 + 4   c22 = 1 - 2 + 3 + 6 */

static void fill_strassen(const kiln_blocked_weight *w, float *u, int64_t begin, int64_t end) {
  const int64_t half = (w->depth + 1) / 2, step = half * PANEL;
  for (int64_t panel = begin; panel < end; panel++) {
    if (kiln_budget_leaves_out()) return;
    float *to = u + panel * 7 * step;
    const int64_t first = panel * 2 * PANEL;
    for (int64_t k = 0; k < half; k++, to += PANEL) {
      const bool low = half + k < w->depth;
      const float *from = w->data + first * w->output + k * w->along;
      for (int64_t n = 0; n < PANEL; n++, from += w->output) {
        const bool near = first + n < w->outputs, far = first + PANEL + n < w->outputs;
        const float b11 = near ? *from : 0, b21 = near && low ? from[half * w->along] : 0;
        const float b12 = far ? from[PANEL * w->output] : 0;
        const float b22 = far && low ? from[PANEL * w->output + half * w->along] : 0;
        const float sums[] = {b11 + b22, b11, b12 - b22, b21 - b11, b22, b11 + b12, b21 + b22};
        for (int position = 0; position < 7; position++) to[position * step + n] = sums[position];
      }
    }
  }
}
static void gather_strassen(const kiln_blocked_part *s) {
  const kiln_blocked_plan *p = s->plan;
  const int64_t step = p->v_position, low = s->depth - s->half;
  for (int64_t i = 0; i < s->tiles; i++) {
    const int64_t row = (s->tile + i) * 2;
    const float *x = s->x + row * p->problem.x_row;
    const bool odd = row + 1 < p->problem.rows;
    float *to = s->gathered + i * p->v_row;
    for (int64_t k = 0; k < s->half; k += LANES) {
      const V a11 = some(x + k, s->half - k), a12 = some(x + s->half + k, low - k);
      const V a21 = some(odd ? x + p->problem.x_row + k : NULL, s->half - k);
      const V a22 = some(odd ? x + p->problem.x_row + s->half + k : NULL, low - k);
      const V sums[] = {a11 + a22, a21 + a22, a11, a22, a11 + a12, a21 - a11, a12 - a22};
      UNROLL for (int position = 0; position < 7; position++) * (V *)(to + position * step + k) =
          sums[position];
    }
  }
}
/* A vector of y, from one output on. */
ALWAYS_INLINE void put_sum(const kiln_blocked_part *s, float *to, V v, int64_t output) {
  const int64_t left = s->plan->problem.outputs - output;
  put(to, v + some(onto(s, to, output), left), left);
}
static void panel_strassen(const kiln_blocked_part *s, int64_t panel) {
  const kiln_blocked_plan *plan = s->plan;
  const kiln_blocked *p = &plan->problem;
  const int64_t first = panel * 2 * PANEL;
  const float *u = s->u + panel * 7 * s->half * PANEL;
  for (int64_t position = 0; position < 7; position++, u += s->half * PANEL)
    multiply_tiles(s, s->v + position * plan->v_position, u, s->m + position * plan->m_position,
                   PANEL, NULL, 0, false);
  for (int64_t i = 0; i < s->tiles; i++) {
    const int64_t row = (s->tile + i) * 2;
    float *even = s->y + row * p->y_row + first;
    for (int64_t n = 0; n < PANEL; n += LANES) {
      V m[7];
      UNROLL for (int position = 0; position < 7; position++) m[position] =
          *(const VU *)(s->m + position * plan->m_position + i * PANEL + n);
      put_sum(s, even + n, m[0] + m[3] - m[4] + m[6], first + n);
      put_sum(s, even + PANEL + n, m[2] + m[4], first + PANEL + n);
      if (row + 1 == p->rows) continue;
      put_sum(s, even + p->y_row + n, m[1] + m[3], first + n);
      put_sum(s, even + p->y_row + PANEL + n, m[0] - m[1] + m[2] + m[5], first + PANEL + n);
    }
  }
}

const kiln_blocked_set NAME(kiln__blocked) = {
    {[KILN_BLOCKED_DIRECT] = KERNELS(direct), [KILN_BLOCKED_STRASSEN] = KERNELS(strassen)}};
