/* grouped_isa.c: rows of grouped.h's convolutions for one instruction set.
 *
 * A tile is some outputs side by side, one register for each. Of the rows and columns of its inputs
 * those outside of the image are zeros of this file. Vectors of 4 lanes have no such permutation.
 */
#include "runtime/kernels/heavy/grouped.h"
#include "runtime/kernels/heavy/product_tile.h"

#if KILN_KERNEL_LEVEL > 0

#define NAME(name) KILN_ISA_CAT3(name, _, KILN_KERNEL_ISA)

/* Widths of tiles: what registers hold, what is left of a row, and 1 where a row has fewer. */
#if KILN_KERNEL_LEVEL == 2
enum { WIDE = 14 };
#else
enum { WIDE = 7 };
#endif
enum { NARROW = 7, MOST_STEP = 2, TAPS = 3, MOST_SPAN = (WIDE - 1) * MOST_STEP + TAPS };

/* Channels that a tile's pointers are good for. */
enum { CHANNELS = 1024 };
static const float zeros[CHANNELS] __attribute__((aligned(64)));

typedef kiln_i32v lanes_index;
/* Lane l of the result is lane `from[l]` of the vector at `at`. */
ALWAYS_INLINE V permuted(const float *at, lanes_index from) {
#if KILN_KERNEL_LEVEL == 2
  return (V)_mm512_permutexvar_ps((__m512i)from, _mm512_loadu_ps(at));
#else
  return (V)_mm256_permutevar8x32_ps(_mm256_loadu_ps(at), (__m256i)from);
#endif
}

typedef struct tile {
  const float *x[TAPS][MOST_SPAN]; /* of rows of taps, the inputs of a tile, one beside the other */
  lanes_index group;               /* of each lane, the first lane of its group */
  int64_t each;
  int first, last; /* rows of taps [first, last) are in the image */
} tile;

/* `width` outputs of a vector, whose channels begin `offset` floats behind the pointers. */
ALWAYS_INLINE void sum_tile(const int width, const int step, const tile *t, int64_t offset,
                            const float *u, float *y, int64_t y_step) {
  V sum[WIDE];
  UNROLL for (int p = 0; p < width; p++) sum[p] = (V){0};
  for (int row = t->first; row < t->last; row++) {
    const float *const *x = t->x[row], *w = u + row * t->each * TAPS * LANES;
    lanes_index from = t->group;
    for (int64_t c = 0; c < t->each; c++, w += TAPS * LANES, from += 1) {
      const V *weight = (const V *)w;
      UNROLL for (int i = 0; i < (width - 1) * step + TAPS; i++) {
        const V pixel = permuted(x[i] + offset, from);
        UNROLL for (int tap = 0; tap < TAPS; tap++) {
          const int p = (i - tap) / step;
          if (i >= tap && (i - tap) % step == 0 && p < width)
            sum[p] = FMA(sum[p], weight[tap], pixel);
        }
      }
    }
  }
  UNROLL for (int p = 0; p < width; p++) * (VU *)(y + p * y_step) = sum[p];
}
static void sum_outputs(int64_t width, int64_t step, const tile *t, int64_t offset, const float *u,
                        float *y, int64_t y_step) {
#if KILN_KERNEL_LEVEL == 2
  if (width == WIDE && step == 1) sum_tile(WIDE, 1, t, offset, u, y, y_step);
  if (width == WIDE && step == 2) sum_tile(WIDE, 2, t, offset, u, y, y_step);
#endif
  if (width == NARROW && step == 1) sum_tile(NARROW, 1, t, offset, u, y, y_step);
  if (width == NARROW && step == 2) sum_tile(NARROW, 2, t, offset, u, y, y_step);
  if (width == 1) sum_tile(1, 1, t, offset, u, y, y_step);
}

/* Where the inputs of `width` outputs from `column` on are; x is the image from a channel on. */
static void find_inputs(const kiln_grouped *p, const float *x, int64_t row, int64_t column,
                        int64_t width, tile *t) {
  const int64_t top = row * p->step - p->pad[0], left = column * p->step - p->pad[1];
  t->first = TAPS;
  t->last = 0;
  for (int tap = 0; tap < TAPS; tap++) {
    const int64_t at = top + tap;
    if (at < 0 || at >= p->in[0]) continue;
    if (t->first > tap) t->first = tap;
    t->last = tap + 1;
    for (int64_t i = 0; i < (width - 1) * p->step + TAPS; i++) {
      const int64_t beside = left + i;
      const bool inside = beside >= 0 && beside < p->in[1];
      t->x[tap][i] = inside ? x + at * p->in_axis[0] + beside * p->in_axis[1] : zeros;
    }
  }
}

/* Outputs of the next tile; the last one may begin before `*column`, whose outputs are then made
 * again, and are the same. */
static int64_t width_at(const kiln_grouped *p, int64_t *column) {
  const int64_t left = p->out[1] - *column;
  if (left >= WIDE) return WIDE;
  if (p->out[1] < NARROW) return 1;
  if (left < NARROW) *column = p->out[1] - NARROW;
  return NARROW;
}

static void compute_row(const kiln_grouped *p, int64_t row, const float *x, const float *u,
                        float *y) {
  const int64_t vectors = (p->outputs + LANES - 1) / LANES;
  const int64_t floats = kiln__grouped_floats(p->each, LANES);
  tile t = {.each = p->each};
  for (int i = 0; i < LANES; i++) t.group[i] = (int32_t)(i / p->each * p->each);
  for (int64_t first = 0; first < vectors; first += CHANNELS / LANES) {
    const int64_t begin = kiln__grouped_vector(p->outputs, LANES, first);
    for (int64_t column = 0, width; column < p->out[1]; column += width) {
      width = width_at(p, &column);
      find_inputs(p, x + begin, row, column, width, &t);
      for (int64_t v = first; v < vectors && v < first + CHANNELS / LANES; v++) {
        const int64_t at = kiln__grouped_vector(p->outputs, LANES, v);
        sum_outputs(width, p->step, &t, at - begin, u + v * floats,
                    y + column * p->out_axis[1] + at, p->out_axis[1]);
      }
    }
  }
}

const kiln_grouped_kernels NAME(kiln__grouped) = {.lanes = LANES, .row = compute_row};
#endif
