/* tiles.c: the kernels of tiles.h.
 *
 * An element of V and U is a pair of factors that stand one behind the other in the depth: V has
 * [row][pair], U [panel][16 pairs][2 tiles][pair][output]. Of a tile's sum over 16 pairs the first
 * factors are summed apart from the second ones; then both sums are added onto the tile. */
#include "runtime/kernels/heavy/tiles.h"

#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "runtime/half.h"
#include "runtime/kernels/heavy/strips.h"

enum { SIDE = KILN_TILE_SIDE, PAIRS = KILN_TILE_PAIRS, BLOCK = 2 * SIDE, TILE = PAIRS * SIDE };

static uint32_t pair_of(float first, float second) {
  return kiln_float_to_bf16(first) | (uint32_t)kiln_float_to_bf16(second) << 16;
}

/* -- Packing -- */

static void fill(const kiln_blocked_weight *w, float *u, int64_t begin, int64_t end) {
  const int64_t half = kiln_tile_pairs(w->depth);
  for (int64_t panel = begin; panel < end; panel++) {
    if (kiln_budget_leaves_out()) return;
    uint32_t *to = (uint32_t *)(void *)u + panel * half * BLOCK;
    for (int64_t k = 0; k < half * BLOCK; k++) {
      const int64_t at = 2 * (k / (2 * TILE) * PAIRS + k % TILE / SIDE);
      const int64_t output = panel * BLOCK + k / TILE % 2 * SIDE + k % SIDE;
      const bool is = output < w->outputs && at < w->depth;
      const float *from = is ? w->data + output * w->output + at * w->along : NULL;
      to[k] = is ? pair_of(from[0], at + 1 < w->depth ? from[w->along] : 0) : 0;
    }
  }
}

static void gather(const kiln_blocked_part *s) {
  const kiln_blocked_plan *p = s->plan;
  const int64_t rows = parts_of(s->tiles, SIDE) * SIDE, pairs = s->depth / 2;
  for (int64_t i = 0; i < rows; i++) {
    uint32_t *to = (uint32_t *)(void *)(s->gathered + i * p->v_row);
    const float *x = s->x + (s->tile + i) * p->problem.x_row;
    int64_t k = 0;
    if (i < s->tiles) {
      for (; k < pairs; k++) to[k] = pair_of(x[2 * k], x[2 * k + 1]);
      if (s->depth % 2) to[k++] = pair_of(x[s->depth - 1], 0);
    }
    memset(to + k, 0, (size_t)(s->half - k) * sizeof *to);
  }
}

/* -- Sums -- */

/* One or two tiles of rows by two of outputs. */
typedef struct block {
  int tiles;
  int64_t pairs; /* a multiple of PAIRS */
  const uint32_t *v, *u;
  const float *init; /* NULL: zeros; of rows init_row apart */
  float *sums;
  int64_t v_row, init_row, row;
} block;

/* A panel's, block by block; what no whole tile is goes through M. */
static inline __attribute__((always_inline)) void sum_panel(const kiln_blocked_part *s,
                                                            int64_t panel,
                                                            void (*sum)(const block *)) {
  const kiln_blocked_plan *plan = s->plan;
  const kiln_blocked *p = &plan->problem;
  const int64_t first = panel * BLOCK, columns = least(p->outputs - first, BLOCK);
  const float *bias = s->bias ? s->bias + first : NULL;
  for (int64_t i = 0; i < s->tiles; i += BLOCK) {
    const int64_t rows = least(s->tiles - i, BLOCK);
    float *y = s->y + (s->tile + i) * p->y_row + first;
    block b = {.tiles = rows > SIDE ? 2 : 1,
               .pairs = s->half,
               .v = (const uint32_t *)(const void *)(s->v + i * plan->v_row),
               .u = (const uint32_t *)(const void *)s->u + panel * s->half * BLOCK,
               .init = s->add ? y : bias,
               .sums = y,
               .v_row = plan->v_row,
               .init_row = s->add ? p->y_row : 0,
               .row = p->y_row};
    if (columns == BLOCK && rows % SIDE == 0) {
      sum(&b);
      continue;
    }
    memset(s->m, 0, sizeof(float) * BLOCK * BLOCK);
    for (int64_t r = 0; b.init && r < rows; r++)
      memcpy(s->m + r * BLOCK, b.init + r * b.init_row, (size_t)columns * sizeof(float));
    b.init = b.sums = s->m;
    b.init_row = b.row = BLOCK;
    sum(&b);
    for (int64_t r = 0; r < rows; r++)
      memcpy(y + r * p->y_row, s->m + r * BLOCK, (size_t)columns * sizeof(float));
  }
}

/* -- In C -- */

/* The instruction takes denormal numbers for zeros, and makes none. */
static float flushed(float x) { return fabsf(x) < 0x1p-126f ? x * 0 : x; }
/* sum + a b, rounded once: the product is exact in double, and so is what rounds it to float. */
static float fused(float sum, uint32_t a, uint32_t b) {
  const float x = flushed(kiln_bf16_to_float((uint16_t)a));
  const float y = flushed(kiln_bf16_to_float((uint16_t)b));
  return flushed((float)((double)sum + (double)x * (double)y));
}
static void sum_in_c(const block *b) {
  for (int64_t at = 0; at < b->tiles * BLOCK * SIDE; at++) {
    const int64_t r = at / BLOCK, n = at % BLOCK;
    float sum = flushed(b->init ? b->init[r * b->init_row + n] : 0);
    for (int64_t k = 0; k < b->pairs; k += PAIRS) {
      const uint32_t *v = b->v + r * b->v_row + k,
                     *u = b->u + k * BLOCK + n / SIDE * TILE + n % SIDE;
      float first = 0, second = 0;
      for (int64_t i = 0; i < PAIRS; i++) {
        first = fused(first, v[i] & 0xffff, u[i * SIDE] & 0xffff);
        second = fused(second, v[i] >> 16, u[i * SIDE] >> 16);
      }
      sum = flushed(sum + flushed(first + second));
    }
    b->sums[r * b->row + n] = sum;
  }
}
static void panel_in_c(const kiln_blocked_part *s, int64_t panel) { sum_panel(s, panel, sum_in_c); }

const kiln_blocked_kernels kiln_tiles_in_c = {SIDE, SIDE, fill, gather, panel_in_c};

/* -- By AMX -- */

#ifdef __x86_64__
#include <immintrin.h>

#define TILES __attribute__((target("amx-tile,amx-bf16")))

/* Sums are tiles 0 to 3, rows 4 and 5, outputs 6 and 7. */
TILES static void sum_amx(const block *b) {
  const int64_t v_bytes = b->v_row * 4, row = b->row * 4, init = b->init_row * 4;
  const int64_t down = SIDE * b->row, init_down = SIDE * b->init_row;
  const bool two = b->tiles == 2;
  if (b->init) {
    _tile_loadd(0, b->init, init);
    _tile_loadd(1, b->init + SIDE, init);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  if (two && b->init) {
    _tile_loadd(2, b->init + init_down, init);
    _tile_loadd(3, b->init + init_down + SIDE, init);
  } else {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t k = 0; k < b->pairs; k += PAIRS) {
    const uint32_t *v = b->v + k, *u = b->u + k * BLOCK;
    _tile_loadd(6, u, 64);
    _tile_loadd(7, u + TILE, 64);
    _tile_loadd(4, v, v_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (!two) continue;
    _tile_loadd(5, v + SIDE * b->v_row, v_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, b->sums, row);
  _tile_stored(1, b->sums + SIDE, row);
  if (!two) return;
  _tile_stored(2, b->sums + down, row);
  _tile_stored(3, b->sums + down + SIDE, row);
}
/* All tiles are 16 rows of 64 bytes. */
TILES static void panel_amx(const kiln_blocked_part *s, int64_t panel) {
  static const struct {
    uint8_t palette, start, unused[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } shape = {.palette = 1,
             .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
             .rows = {SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE, SIDE}};
  _tile_loadconfig(&shape);
  sum_panel(s, panel, sum_amx);
  _tile_release();
}

const kiln_blocked_kernels kiln_tiles_amx = {SIDE, SIDE, fill, gather, panel_amx};

#else

const kiln_blocked_kernels kiln_tiles_amx = {SIDE, SIDE, fill, gather, panel_in_c};

#endif
