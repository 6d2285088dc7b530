/* conv_isa.h: convolutions of one type (see conv_isa.c). No include guard. */

enum {
  NAME(W) = (int)(sizeof(V) / sizeof(T)),
  NAME(NR) = 3 * NAME(W),
#if KILN_KERNEL_LEVEL == 2
  NAME(MR) = 8,
#else
  NAME(MR) = 4,
#endif
};

/* Where one thread works. */
typedef struct NAME(slab) {
  const kiln_conv *c;
  const kiln_conv_plan *p;
  const T *in, *weight, *bias; /* of the image and group, of the first output; bias may be NULL */
  T *out;
  int64_t outputs, column, columns; /* the columns' first, and how many */
  int64_t first[3], outs[3];        /* box of outputs that holds the columns */
  kiln_conv_phasing phasings[3];
  int64_t row, plane; /* of the padded tile */
  bool dense;         /* columns are contiguous in the output */
  T *tile, *a, *panels, *padded;
  kiln_conv_span *spans;
  int32_t *firsts; /* of the spans of each panel; one more at the end */
  int64_t *taps;   /* of a padded tile */
} NAME(slab);

/* -- The product -- */

#define PRODUCT multiply
#define P V
#define PU VU
#define PRODUCT_FMA FMA
#include "runtime/kernels/heavy/conv_tile.h"
typedef void (*NAME(multiply_fn))(int64_t k, const T *a, int64_t a_row, const T *b, int64_t b_row,
                                  T *c, int64_t c_row, const T *start, bool first);
#define MULTIPLY(rows, vectors)                                                                   \
  static void NAME(multiply_##rows##_##vectors)(int64_t k, const T *a, int64_t a_row, const T *b, \
                                                int64_t b_row, T *c, int64_t c_row,               \
                                                const T *start, bool first) {                     \
    NAME(multiply)(rows, vectors, k, a, a_row, b, b_row, c, c_row, start, first);                 \
  }
#define MULTIPLY_ROWS(rows) \
  MULTIPLY(rows, 1) MULTIPLY(rows, 2) MULTIPLY(rows, 3) MULTIPLY_HALF(rows)
#if KILN_KERNEL_LEVEL == 2
/* Half a vector: AVX-512 does two of them in the time of a whole one, where a segment of 7 x 7
 * columns, say, leaves one column over. */
#define PRODUCT multiply_half
#define P H
#define PU HU
#define PRODUCT_FMA FMA_HALF
#include "runtime/kernels/heavy/conv_tile.h"
#define MULTIPLY_HALF(rows)                                                                    \
  static void NAME(multiply_##rows##_half)(int64_t k, const T *a, int64_t a_row, const T *b,   \
                                           int64_t b_row, T *c, int64_t c_row, const T *start, \
                                           bool first) {                                       \
    NAME(multiply_half)(rows, 1, k, a, a_row, b, b_row, c, c_row, start, first);               \
  }
#define HALF(rows) NAME(multiply_##rows##_half)
#else
#define MULTIPLY_HALF(rows)
#define HALF(rows) NAME(multiply_##rows##_1)
#endif
#define ROWS_ENTRY(rows) \
  {HALF(rows), NAME(multiply_##rows##_1), NAME(multiply_##rows##_2), NAME(multiply_##rows##_3)}
MULTIPLY_ROWS(1)
MULTIPLY_ROWS(2)
MULTIPLY_ROWS(4)
#if KILN_KERNEL_LEVEL == 2
MULTIPLY_ROWS(8)
#endif
/* [rank of the rows][vectors, 0: half a vector] */
static const NAME(multiply_fn) NAME(multiplies)[][4] = {
    ROWS_ENTRY(1),
    ROWS_ENTRY(2),
    ROWS_ENTRY(4),
#if KILN_KERNEL_LEVEL == 2
    ROWS_ENTRY(8),
#endif
};
#undef MULTIPLY
#undef MULTIPLY_ROWS
#undef ROWS_ENTRY
#undef MULTIPLY_HALF
#undef HALF

/* -- Where columns lie -- */

static inline void NAME(locate)(const kiln_conv_plan *p, int64_t column, int64_t out[3]) {
  out[2] = column % p->axis[2].out;
  out[1] = column / p->axis[2].out % p->axis[1].out;
  out[0] = column / p->axis[2].out / p->axis[1].out;
}
static inline T *NAME(out_at)(const NAME(slab) * u, int64_t column) {
  const kiln_conv_plan *p = u->p;
  int64_t at[3];
  if (u->dense) return u->out + column;
  NAME(locate)(u->p, column, at);
  return u->out + at[0] * p->axis[0].out_stride + at[1] * p->axis[1].out_stride +
         at[2] * p->axis[2].out_stride;
}
/* The smallest box of outputs around the columns. */
static void NAME(find_box)(NAME(slab) * u) {
  const kiln_conv_plan *p = u->p;
  int64_t last[3];
  NAME(locate)(p, u->column, u->first);
  NAME(locate)(p, u->column + u->columns - 1, last);
  for (int d = 0; d < 3; d++) {
    for (int before = 0; before < d; before++) {
      if (u->first[before] == last[before]) continue;
      u->first[d] = 0;
      last[d] = p->axis[d].out - 1;
    }
    u->outs[d] = last[d] - u->first[d] + 1;
    kiln__conv_phase(&p->axis[d], u->outs[d], &u->phasings[d]);
  }
  u->row = u->phasings[2].phases * u->phasings[2].length;
  u->plane = u->phasings[1].phases * u->phasings[1].length * u->row;
}

/* -- The padded tile -- */

static void NAME(copy_row)(T *to, const T *from, int64_t stride, int64_t n) {
  int64_t i = 0;
  if (stride == 1) {
    for (; i + NAME(W) <= n; i += NAME(W)) *(VU *)(to + i) = *(const VU *)(from + i);
  } else if (stride == 2) { /* one less: the second vector may end beyond the last */
    for (; i + NAME(W) < n; i += NAME(W)) {
      const V low = *(const VU *)(from + 2 * i), high = *(const VU *)(from + 2 * i + NAME(W));
      *(VU *)(to + i) = EVENS(low, high);
    }
  }
  for (; i < n; i++) to[i] = from[i * stride];
}
/* A row of the padded tile: the phases of the last axis. NULL: padding. */
static void NAME(fill_row)(const NAME(slab) * u, T *to, const T *from) {
  const kiln_conv_axis *x = &u->p->axis[2];
  const int64_t n = u->phasings[2].length;
  if (!from) {
    memset(to, 0, sizeof(T) * (size_t)u->row);
    return;
  }
  for (int64_t phase = 0; phase < u->phasings[2].phases; phase++, to += n) {
    const int64_t base = x->first + u->first[2] * x->step + phase * x->tap_step;
    int64_t begin = base < 0 ? (-base + x->step - 1) / x->step : 0;
    int64_t end = base < x->in ? (x->in - base + x->step - 1) / x->step : 0;
    if (begin > n) begin = n;
    if (end > n) end = n;
    if (end < begin) end = begin;
    for (int64_t i = 0; i < begin; i++) to[i] = 0;
    if (end > begin) {
      NAME(copy_row)
      (to + begin, from + (base + begin * x->step) * x->in_stride, x->step * x->in_stride,
       end - begin);
    }
    for (int64_t i = end; i < n; i++) to[i] = 0;
  }
}
/* The input position of index `i` of a phasing, or -1. */
static inline int64_t NAME(lane_at)(const NAME(slab) * u, int d, int64_t i) {
  const kiln_conv_axis *a = &u->p->axis[d];
  const int64_t phase = i / u->phasings[d].length, index = i % u->phasings[d].length;
  const int64_t at = a->first + (u->first[d] + index) * a->step + phase * a->tap_step;
  return at >= 0 && at < a->in ? at : -1;
}
/* Some channels, to the padded tile's beginning. */
static void NAME(fill_padded)(const NAME(slab) * u, int64_t channel, int64_t channels) {
  const kiln_conv *c = u->c;
  const kiln_conv_plan *p = u->p;
  const int64_t planes = u->phasings[0].phases * u->phasings[0].length;
  const int64_t rows = u->phasings[1].phases * u->phasings[1].length;
  T *to = u->padded;
  for (int64_t i = channel; i < channel + channels; i++) {
    for (int64_t z = 0; z < planes; z++) {
      const int64_t at_z = NAME(lane_at)(u, 0, z);
      for (int64_t y = 0; y < rows; y++, to += u->row) {
        const int64_t at_y = NAME(lane_at)(u, 1, y);
        NAME(fill_row)
        (u, to,
         at_z < 0 || at_y < 0 ? NULL
                              : u->in + i * c->in_channel + at_z * p->axis[0].in_stride +
                                    at_y * p->axis[1].in_stride);
      }
    }
  }
  *(VU *)to = (V){0}; /* copies of the last row run on into it */
}

/* -- Panels -- */

/* Lanes beyond the columns take part in sums that nobody reads. They are zeros or numbers of the
 * input, never what the scratch held before: its integers are subnormal numbers, and these cost a
 * hundred cycles each. */
static void NAME(clear_last)(T *to, int64_t k, int64_t columns) {
  to += columns / NAME(W) * NAME(W);
  for (int64_t i = 0; i < k; i++, to += NAME(NR)) *(VU *)to = (V){0};
}

/* Where each tap's inputs are in a padded tile, from those of the first output on. */
static void NAME(find_taps)(const NAME(slab) * u) {
  const kiln_conv_axis *axis = u->p->axis;
  const int64_t pitches[] = {u->plane, u->row, 1};
  int64_t *to = u->taps, at[3];
  for (at[0] = 0; at[0] < axis[0].taps; at[0]++) {
    for (at[1] = 0; at[1] < axis[1].taps; at[1]++) {
      for (at[2] = 0; at[2] < axis[2].taps; at[2]++) {
        *to = 0;
        for (int d = 0; d < 3; d++) {
          const kiln_conv_phasing *phasing = &u->phasings[d];
          *to += pitches[d] * (at[d] % phasing->period * phasing->length +
                               at[d] / phasing->period * phasing->advance);
        }
        to++;
      }
    }
  }
}
/* The spans of the columns, panel by panel. */
static void NAME(find_spans)(const NAME(slab) * u) {
  const kiln_conv_plan *p = u->p;
  kiln_conv_span *span = u->spans;
  int32_t *first = u->firsts;
  int64_t at[3];
  NAME(locate)(p, u->column, at);
  for (int64_t panel = 0; panel < u->columns; panel += NAME(NR)) {
    const int64_t left = u->columns - panel, columns = left < NAME(NR) ? left : NAME(NR);
    *first++ = (int32_t)(span - u->spans);
    for (int64_t done = 0; done < columns;) {
      int64_t n = p->axis[2].out - at[2];
      if (n > columns - done) n = columns - done;
      const int64_t from =
          (at[0] - u->first[0]) * u->plane + (at[1] - u->first[1]) * u->row + (at[2] - u->first[2]);
      *span++ = (kiln_conv_span){(int32_t)done, (int32_t)n, from};
      done += n;
      at[2] += n;
      for (int d = 2; d > 0 && at[d] == p->axis[d].out; d--) at[d] = 0, at[d - 1]++;
    }
  }
  *first = (int32_t)(span - u->spans);
}
/* Copies run on to the end of their last vector: what they spoil is written after them. */
static __attribute__((noinline)) void NAME(pack_taps)(T *to, const T *padded,
                                                      const kiln_conv_span *spans, int count,
                                                      const int64_t *taps, int64_t tap_count) {
  for (int64_t t = 0; t < tap_count; t++, to += NAME(NR)) {
    const T *from = padded + taps[t];
    for (int i = 0; i < count; i++) {
      const kiln_conv_span span = spans[i];
      T *at = to + span.to;
      const T *source = from + span.from;
      *(VU *)at = *(const VU *)source;
      if (span.count <= NAME(W)) continue;
      *(VU *)(at + NAME(W)) = *(const VU *)(source + NAME(W));
      if (span.count <= 2 * NAME(W)) continue;
      *(VU *)(at + 2 * NAME(W)) = *(const VU *)(source + 2 * NAME(W));
    }
  }
}
/* Some channels of the padded tile. */
static void NAME(pack_padded)(const NAME(slab) * u, T *to, int64_t panel, int64_t channels,
                              int64_t tap, int64_t taps) {
  const int64_t size = u->phasings[0].phases * u->phasings[0].length * u->plane;
  const int32_t *first = u->firsts + panel / NAME(NR);
  const T *from = u->padded;
  for (int64_t i = 0; i < channels; i++, to += taps * NAME(NR), from += size) {
    NAME(pack_taps)(to, from, u->spans + first[0], first[1] - first[0], u->taps + tap, taps);
  }
}
static void NAME(pack_direct)(const NAME(slab) * u, T *to, int64_t panel, int64_t columns,
                              int64_t channel, int64_t channels) {
  const T *from = u->in + channel * u->c->in_channel + u->column + panel;
  const int64_t whole = columns / NAME(W) * NAME(W);
  for (int64_t i = 0; i < channels; i++, to += NAME(NR), from += u->c->in_channel) {
    for (int64_t j = 0; j < whole; j += NAME(W)) *(VU *)(to + j) = *(const VU *)(from + j);
    for (int64_t j = whole; j < columns; j++) to[j] = from[j];
  }
}
/* The input of a tap for the output at `at`, or 0. */
static inline T NAME(gather_one)(const NAME(slab) * u, const T *in, const int64_t at[3], int64_t z,
                                 int64_t y, int64_t x) {
  const kiln_conv_axis *axis = u->p->axis;
  const int64_t tap[3] = {z, y, x};
  int64_t offset = 0;
  for (int d = 0; d < 3; d++) {
    const int64_t position = axis[d].first + at[d] * axis[d].step + tap[d] * axis[d].tap_step;
    if (position < 0 || position >= axis[d].in) return 0;
    offset += position * axis[d].in_stride;
  }
  return in[offset];
}
/* Columns one by one: element (k, column) goes to to[k * k_step + column * column_step]. */
static void NAME(pack_gather)(const NAME(slab) * u, T *to, int64_t k_step, int64_t column_step,
                              int64_t panel, int64_t columns, int64_t channel, int64_t channels,
                              int64_t tap, int64_t taps) {
  const kiln_conv *c = u->c;
  const kiln_conv_plan *p = u->p;
  const int64_t nx = p->axis[2].taps, ny = p->axis[1].taps;
  for (int64_t j = 0; j < columns; j++) {
    int64_t at[3];
    T *put = to + j * column_step;
    NAME(locate)(p, u->column + panel + j, at);
    for (int64_t i = channel; i < channel + channels; i++) {
      const T *in = u->in + i * c->in_channel;
      for (int64_t t = tap; t < tap + taps; t++, put += k_step) {
        *put = NAME(gather_one)(u, in, at, t / nx / ny, t / nx % ny, t % nx);
      }
    }
  }
}

/* -- Weights -- */

/* Those of `rows` outputs and a block of the sum, in its order. */
static void NAME(pack_weights)(const NAME(slab) * u, int64_t output, int64_t rows, int64_t channel,
                               int64_t channels, int64_t tap, int64_t taps) {
  const kiln_conv *c = u->c;
  const kiln_conv_plan *p = u->p;
  const kiln_conv_axis *axis = p->axis;
  const int64_t first_x = tap % axis[2].taps, first_y = tap / axis[2].taps % axis[1].taps;
  const int64_t first_z = tap / axis[2].taps / axis[1].taps;
  T *to = u->a;
  for (int64_t r = 0; r < rows; r++) {
    const T *row = u->weight + (output + r) * c->w_output;
    for (int64_t i = channel; i < channel + channels; i++) {
      const T *of = row + i * c->w_channel;
      int64_t x = first_x, y = first_y, z = first_z;
      for (const T *end = to + taps; to < end;) {
        const T *from = of + z * axis[0].w_tap + y * axis[1].w_tap;
        for (; x < axis[2].taps && to < end; x++) *to++ = from[x * axis[2].w_tap];
        x = 0;
        if (++y < axis[1].taps) continue;
        y = 0;
        z++;
      }
    }
  }
}

/* -- Tiles -- */

/* A panel that does not lie in the output as it is goes by way of a small tile. */
static void NAME(move_tile)(const NAME(slab) * u, int64_t output, int64_t rows, int64_t panel,
                            int64_t columns, bool load) {
  if (load) memset(u->tile, 0, KILN_CONV_TILE_BYTES);
  for (int64_t j = 0; j < columns; j++) {
    T *to = NAME(out_at)(u, u->column + panel + j) + output * u->c->out_channel;
    T *tile = u->tile + j;
    for (int64_t r = 0; r < rows; r++, to += u->c->out_channel, tile += NAME(NR)) {
      if (load)
        *tile = *to;
      else
        *to = *tile;
    }
  }
}
typedef struct NAME(block) {
  int64_t channel, channels, tap, taps;
} NAME(block);
static void NAME(tile)(const NAME(slab) * u, const NAME(block) * block, int64_t output, int rank,
                       const T *a, int64_t a_row, int64_t panel, const T *b, int64_t b_row) {
  const int64_t left = u->columns - panel, rows = (int64_t)1 << rank;
  const int64_t columns = left < NAME(NR) ? left : NAME(NR);
  const int vectors = (int)((columns + NAME(W) - 1) / NAME(W));
  const bool first = block->channel == 0 && block->tap == 0;
  const bool whole = u->dense && columns == vectors * NAME(W);
  T *c = u->tile;
  int64_t c_row = NAME(NR);
  if (whole) {
    c = u->out + output * u->c->out_channel + u->column + panel;
    c_row = u->c->out_channel;
  } else if (!first) {
    NAME(move_tile)(u, output, rows, panel, columns, true);
  }
  NAME(multiplies)
  [rank][columns <= NAME(W) / 2 ? 0 : vectors](block->channels * block->taps, a, a_row, b, b_row, c,
                                               c_row, u->bias ? u->bias + output : NULL, first);
  if (!whole) NAME(move_tile)(u, output, rows, panel, columns, false);
}
static inline bool NAME(reads_input)(const kiln_conv *c, const kiln_conv_plan *p) {
  return p->mode == KILN_CONV_DIRECT && c->outputs <= KILN_CONV_UNPACKED;
}
static void NAME(pack)(const NAME(slab) * u, const NAME(block) * block) {
  const kiln_conv *c = u->c;
  const kiln_conv_plan *p = u->p;
  const int64_t channels = block->channels, size = channels * block->taps * NAME(NR);
  T *to = u->panels;
  if (p->mode == KILN_CONV_PADDED && block->tap == 0)
    NAME(fill_padded)(u, block->channel, channels);
  for (int64_t j = 0; j < u->columns; j += NAME(NR), to += size) {
    const int64_t left = u->columns - j, columns = left < NAME(NR) ? left : NAME(NR);
    if (NAME(reads_input)(c, p) && columns % NAME(W) == 0) continue;
    if (columns % NAME(W)) NAME(clear_last)(to, channels * block->taps, columns);
    if (p->mode == KILN_CONV_DIRECT) {
      NAME(pack_direct)(u, to, j, columns, block->channel, channels);
    } else if (p->mode == KILN_CONV_PADDED) {
      NAME(pack_padded)(u, to, j, channels, block->tap, block->taps);
    } else {
      NAME(pack_gather)
      (u, to, NAME(NR), 1, j, columns, block->channel, channels, block->tap, block->taps);
    }
  }
}
/* Products [begin, end) of the block: a group of outputs with a panel each, panel after panel. */
static void NAME(multiply_block)(const NAME(slab) * u, const NAME(block) * block, int64_t begin,
                                 int64_t end) {
  const kiln_conv *c = u->c;
  const kiln_conv_plan *p = u->p;
  const int64_t k = block->channels * block->taps;
  const int64_t panels = (u->columns + NAME(NR) - 1) / NAME(NR);
  const T *in = u->in + block->channel * c->in_channel + u->column;
  for (int64_t index = begin; index < end; index++) {
    const int64_t output = index / panels * NAME(MR), j = index % panels * NAME(NR);
    const int64_t below = u->outputs - output, outputs = below < NAME(MR) ? below : NAME(MR);
    const int64_t left = u->columns - j;
    const bool lies = NAME(reads_input)(c, p) && (left >= NAME(NR) || left % NAME(W) == 0);
    const T *a = u->weight + output * c->w_output;
    int64_t a_row = c->w_output;
    a += block->channel * kiln__conv_taps(p->axis) + block->tap;
    if (!p->a_contiguous) {
      if (index == begin || j == 0) {
        NAME(pack_weights)
        (u, output, outputs, block->channel, block->channels, block->tap, block->taps);
      }
      a = u->a;
      a_row = k;
    }
    int rank = NAME(MR) == 8 ? 3 : 2;
    for (int64_t i = 0; i < outputs; i += (int64_t)1 << rank) {
      while (outputs - i < (int64_t)1 << rank) rank--;
      NAME(tile)
      (u, block, output + i, rank, a + i * a_row, a_row, j, lies ? in + j : u->panels + j * k,
       lies ? c->in_channel : NAME(NR));
    }
  }
}

/* -- Few columns -- */

/* By the lanes and the tree of reduce/reduce.h; what is left at the end is taken with zeros to 64
 * bytes.
 */
static T NAME(conv_dot)(const T *a, const T *b, int64_t n) {
  enum { VECTORS = KILN_REDUCE_LANES / NAME(W), GROUP = 64 / (int)sizeof(T), G = GROUP / NAME(W) };
  V lanes[VECTORS];
#pragma GCC unroll 32
  for (int q = 0; q < VECTORS; q++) lanes[q] = (V){0};
  int64_t i = 0;
  for (; i + KILN_REDUCE_LANES <= n; i += KILN_REDUCE_LANES) {
#pragma GCC unroll 32
    for (int q = 0; q < VECTORS; q++) {
      lanes[q] = FMA(lanes[q], *(const VU *)(b + i + q * NAME(W)),
                     (V) * (const VU *)(a + i + q * NAME(W)));
    }
  }
#pragma GCC unroll 32
  for (int q = 0; q < VECTORS; q += G) {
    T rest[2][GROUP];
    const T *x = a + i, *y = b + i;
    if (i >= n) break;
    if (i + GROUP > n) {
      memset(rest, 0, sizeof rest);
      x = memcpy(rest[0], x, (size_t)(n - i) * sizeof(T));
      y = memcpy(rest[1], y, (size_t)(n - i) * sizeof(T));
    }
#pragma GCC unroll 32
    for (int g = 0; g < G; g++) {
      lanes[q + g] =
          FMA(lanes[q + g], *(const VU *)(y + g * NAME(W)), (V) * (const VU *)(x + g * NAME(W)));
    }
    i += GROUP;
  }
#pragma GCC unroll 32
  for (int w = VECTORS / 2; w > 0; w /= 2) {
#pragma GCC unroll 32
    for (int q = 0; q < w; q++) lanes[q] += lanes[q + w];
  }
  T sums[NAME(W)];
  memcpy(sums, lanes, sizeof sums);
#pragma GCC unroll 32
  for (int w = NAME(W) / 2; w > 0; w /= 2) {
#pragma GCC unroll 32
    for (int j = 0; j < w; j++) sums[j] += sums[j + w];
  }
  return sums[0];
}
static void NAME(run_dots)(const NAME(slab) * u) {
  const kiln_conv *c = u->c;
  const kiln_conv_plan *p = u->p;
  const int64_t taps = kiln__conv_taps(p->axis), k = c->channels * taps;
  const T *columns = u->panels;
  const bool lies = taps == 1 && u->columns == 1 && c->in_channel == 1 && p->axis[0].in == 1 &&
                    p->axis[1].in == 1 && p->axis[2].in == 1 && p->axis[0].first == 0 &&
                    p->axis[1].first == 0 && p->axis[2].first == 0;
  if (lies)
    columns = u->in;
  else
    NAME(pack_gather)(u, u->panels, 1, k, 0, u->columns, 0, c->channels, 0, taps);
  for (int64_t i = 0; i < u->outputs; i++) {
    const T start = u->bias ? u->bias[i] : 0;
    for (int64_t j = 0; j < u->columns; j++) {
      NAME(out_at)
      (u, u->column + j)[i * c->out_channel] =
          start + NAME(conv_dot)(u->weight + i * c->w_output, columns + j * k, k);
    }
  }
}

/* -- Units -- */

static void NAME(run_empty)(const NAME(slab) * u) {
  for (int64_t i = 0; i < u->outputs; i++) {
    for (int64_t j = 0; j < u->columns; j++) {
      NAME(out_at)(u, u->column + j)[i * u->c->out_channel] = u->bias ? u->bias[i] : 0;
    }
  }
}
static void NAME(begin_slab)(NAME(slab) * u, int64_t index) {
  const kiln_conv *c = u->c;
  const kiln_conv_plan *p = u->p;
  const int64_t part = index % p->column_slabs, rest = index / p->column_slabs;
  const int64_t output = rest % p->output_slabs * p->slab_outputs;
  const int64_t group = rest / p->output_slabs % c->groups;
  const int64_t image = rest / p->output_slabs / c->groups;
  u->columns = kiln__conv_part_columns(p, part, &u->column);
  u->outputs = c->outputs - output < p->slab_outputs ? c->outputs - output : p->slab_outputs;
  const int64_t channel = group * c->outputs + output;
  u->in = (const T *)c->in + image * c->in_batch + group * c->channels * c->in_channel;
  u->weight = (const T *)c->weight + group * c->w_group + output * c->w_output;
  u->bias = c->bias ? (const T *)c->bias + channel : NULL;
  u->out = (T *)c->out + image * c->out_batch + channel * c->out_channel;
}
static void NAME(find_columns)(NAME(slab) * u) {
  NAME(find_box)(u);
  if (u->p->mode != KILN_CONV_PADDED) return;
  NAME(find_taps)(u);
  NAME(find_spans)(u);
}
static NAME(block)
    NAME(block_at)(const kiln_conv *c, const kiln_conv_plan *p, int64_t channel, int64_t tap) {
  const int64_t taps = kiln__conv_taps(p->axis);
  return (NAME(block)){
      .channel = channel,
      .channels =
          c->channels - channel < p->block_channels ? c->channels - channel : p->block_channels,
      .tap = tap,
      .taps = taps - tap < p->block_taps ? taps - tap : p->block_taps,
  };
}
static void NAME(run_slab)(NAME(slab) * u) {
  const kiln_conv *c = u->c;
  const kiln_conv_plan *p = u->p;
  const int64_t taps = kiln__conv_taps(p->axis);
  const int64_t products =
      (u->outputs + NAME(MR) - 1) / NAME(MR) * ((u->columns + NAME(NR) - 1) / NAME(NR));
  NAME(find_columns)(u);
  for (int64_t channel = 0; channel < c->channels; channel += p->block_channels) {
    for (int64_t tap = 0; tap < taps; tap += p->block_taps) {
      const NAME(block) block = NAME(block_at)(c, p, channel, tap);
      NAME(pack)(u, &block);
      NAME(multiply_block)(u, &block, 0, products);
    }
  }
}
void KILN_ISA_CAT4(kiln__conv_, TAG, _,
                   KILN_KERNEL_ISA)(const kiln_conv *c, const kiln_conv_plan *p,
                                    const kiln_conv_part *part, void *scratch) {
  if (p->mode == KILN_CONV_DEPTHWISE) {
    KILN_ISA_CAT4(kiln__depthwise_, TAG, _, KILN_KERNEL_ISA)(c, p, part->begin, part->end, scratch);
    return;
  }
  char *base = scratch;
  NAME(slab)
  u = {.c = c,
       .p = p,
       .tile = (T *)(void *)(base + p->tile_at),
       .a = (T *)(void *)(base + p->a_at),
       .panels = (T *)(void *)(base + p->panels_at),
       .padded = (T *)(void *)(base + p->padded_at),
       .spans = (kiln_conv_span *)(void *)(base + p->spans_at),
       .firsts = (int32_t *)(void *)(base + p->firsts_at),
       .taps = (int64_t *)(void *)(base + p->taps_at)};
  u.dense = p->axis[2].out_stride == 1 &&
            (p->axis[1].out == 1 || p->axis[1].out_stride == p->axis[2].out) &&
            (p->axis[0].out == 1 || p->axis[0].out_stride == p->axis[1].out * p->axis[2].out);
  if (p->by_tiles) {
    const NAME(block) block = NAME(block_at)(c, p, part->channel, 0);
    int64_t *filled = scratch, wanted = part->slab * c->channels + part->channel + 1;
    NAME(begin_slab)(&u, part->slab);
    if (*filled != wanted) {
      NAME(find_columns)(&u);
      NAME(pack)(&u, &block);
      *filled = wanted;
    }
    NAME(multiply_block)(&u, &block, part->begin, part->end);
    return;
  }
  for (int64_t index = part->begin; index < part->end; index++) {
    NAME(begin_slab)(&u, index);
    if (p->mode == KILN_CONV_EMPTY)
      NAME(run_empty)(&u);
    else if (p->mode == KILN_CONV_DOT)
      NAME(run_dots)(&u);
    else
      NAME(run_slab)(&u);
  }
}
