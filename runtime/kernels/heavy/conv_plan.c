/* conv_plan.c: how a convolution is cut into slabs and blocks (conv.h): which of the ways of
 * conv_isa.h serves it, and how much scratch memory that takes. */
#include "runtime/kernels/heavy/conv.h"

#include <string.h>

#include "base/checked.h"

/* Bytes of a row of columns, of the panels, and of the padded tile (at most, for the last: of a
 * channel alone). */
enum { ROW_BYTES = 1024, PANEL_BYTES = 256 << 10, PADDED_BYTES = 160 << 10, PADDED_MOST = 1 << 20 };
/* Bytes of a depthwise slab's padded tile, and how many outputs are worth a slab. */
enum { PLANE_BYTES = 24 << 10, PLANE_WORK = 1 << 14 };
enum { DOT_COLUMNS = 4, DOT_BYTES = 512 << 10, DIRECT_CHANNELS = 1024 };

/* Multiplications that are worth a piece of a range, about 1.5 microseconds. To read a weight,
 * where few columns share it, costs as much as so many of them. */
enum { GRAIN_PRODUCTS = 75000, WEIGHT_PRODUCTS = 8 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static size_t rounded(size_t bytes) { return (bytes + 63) & ~(size_t)63; }
static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

/* -- Axes -- */

/* One position and one tap of it. */
static bool is_trivial(const kiln_conv_axis *a) {
  return a->in == 1 && a->out == 1 && a->taps == 1 && a->first == 0;
}
/* Output o is input o. */
static bool is_straight(const kiln_conv_axis *a) {
  return a->taps == 1 && a->first == 0 && a->step == 1 && a->in == a->out;
}
/* Rows that the taps of the outer axis alone shift are one long row. */
static bool merge_axes(const kiln_conv_axis *outer, const kiln_conv_axis *inner,
                       kiln_conv_axis *merged) {
  int64_t reach;
  if (!is_straight(inner) || outer->step != 1 || inner->in < 1 ||
      outer->in_stride != inner->in * inner->in_stride ||
      outer->out_stride != inner->out * inner->out_stride ||
      __builtin_mul_overflow(outer->tap_step * (outer->taps + 1), inner->in, &reach) ||
      __builtin_mul_overflow(outer->first, inner->in, &reach)) {
    return false;
  }
  *merged = (kiln_conv_axis){.in = outer->in * inner->in,
                             .in_stride = inner->in_stride,
                             .out = outer->out * inner->out,
                             .out_stride = inner->out_stride,
                             .step = 1,
                             .first = outer->first * inner->in,
                             .taps = outer->taps,
                             .tap_step = outer->tap_step * inner->in,
                             .w_tap = outer->w_tap};
  return true;
}
/* Makes the last axis long. */
static void arrange_axes(kiln_conv_axis axis[3]) {
  for (int turn = 0; turn < 2 && is_trivial(&axis[2]); turn++) {
    const kiln_conv_axis last = axis[2];
    axis[2] = axis[1];
    axis[1] = axis[0];
    axis[0] = last;
  }
  kiln_conv_axis merged;
  for (int turn = 0; turn < 2 && merge_axes(&axis[1], &axis[2], &merged); turn++) {
    const int64_t volume = merged.in * merged.in_stride;
    axis[2] = merged;
    axis[1] = axis[0];
    axis[0] = (kiln_conv_axis){.in = 1,
                               .in_stride = volume,
                               .out = 1,
                               .out_stride = merged.out * merged.out_stride,
                               .step = 1,
                               .taps = 1,
                               .tap_step = 1,
                               .w_tap = 0};
  }
}

/* -- The padded tile -- */

void kiln__conv_phase(const kiln_conv_axis *a, int64_t outs, kiln_conv_phasing *phasing) {
  const int64_t common = kiln_gcd_i64(a->step, a->tap_step);
  phasing->period = a->step / common;
  phasing->advance = a->tap_step / common;
  phasing->phases = least(a->taps, phasing->period);
  phasing->length = outs + (a->taps - 1) / phasing->period * phasing->advance;
}

/* Elements of a channel's padded tile for slabs of p->slab_columns; 0: too many. */
static int64_t padded_size(const kiln_conv_plan *p, size_t item) {
  const kiln_conv_axis *axis = p->axis;
  const int64_t row = axis[2].out, plane = axis[1].out * row;
  int64_t outs[3] = {1, 1, p->slab_columns};
  if (p->segment > row) {
    outs[2] = row;
    outs[1] = least(axis[1].out, (p->slab_columns + row - 2) / row + 1);
  }
  if (p->segment > plane) {
    outs[1] = axis[1].out;
    outs[0] = least(axis[0].out, (p->slab_columns + plane - 2) / plane + 1);
  }
  int64_t size = 1;
  for (int d = 0; d < 3; d++) {
    kiln_conv_phasing phasing;
    kiln__conv_phase(&axis[d], least(outs[d], axis[d].out), &phasing);
    if (phasing.length > PADDED_MOST || phasing.phases > PADDED_MOST) return 0;
    size *= phasing.phases * phasing.length;
    if (size > PADDED_MOST / (int64_t)item) return 0;
  }
  return size;
}

/* -- Planes -- */

/* Depthwise slabs: rows whose padded tile stays in the L1 cache, and as many groups as are worth
 * the set-up. False: not a case for them. */
static bool plan_planes(const kiln_conv *c, kiln_conv_plan *p, size_t item, int threads) {
  const kiln_conv_axis *y = &p->axis[1], *x = &p->axis[2];
  kiln_conv_phasing phasing;
  if (c->channels != 1 || !is_trivial(&p->axis[0]) || x->out_stride != 1) return false;
  if (y->taps < 1 || y->taps > KILN_CONV_DEPTHWISE_TAPS) return false;
  if (x->taps < 1 || x->taps > KILN_CONV_DEPTHWISE_TAPS) return false;
  kiln__conv_phase(x, x->out, &phasing);
  const int64_t reach = (y->taps - 1) * y->tap_step, most = PADDED_MOST / (int64_t)item;
  if (phasing.length > most || reach > most || y->step > most) return false;
  const int64_t pitch = phasing.phases * kiln__conv_plane_length(&phasing);
  const int64_t room = PLANE_BYTES / (int64_t)item / pitch;
  int64_t rows = room > reach ? (room - reach - 1) / y->step + 1 : 1;
  if (rows < 4) rows = 4;
  rows = parts_of(y->out, parts_of(y->out, rows));
  const int64_t padded = ((rows - 1) * y->step + reach + 1) * pitch;
  if (padded > most) return false;
  p->mode = KILN_CONV_DEPTHWISE;
  p->slab_rows = rows;
  const int64_t blocks = parts_of(y->out, rows), work = rows * x->out * c->outputs;
  int64_t groups = parts_of(PLANE_WORK, work);
  if (threads > 1) groups = least(groups, parts_of(c->groups * c->batch * blocks, 4 * threads));
  p->slab_groups = least(groups, c->groups);
  p->slabs = c->batch * blocks * parts_of(c->groups, p->slab_groups);
  p->slab_columns = work * p->slab_groups;
  p->slab_outputs = 1;
  p->scratch = 2 * rounded((size_t)padded * item + 256);
  return true;
}

/* -- Blocks -- */

static bool rows_contiguous(const kiln_conv *c, const kiln_conv_plan *p) {
  const int64_t x = p->axis[2].taps, y = p->axis[1].taps;
  return (p->axis[2].w_tap == 1 || x == 1) && (p->axis[1].w_tap == x || y == 1) &&
         (p->axis[0].w_tap == x * y || p->axis[0].taps == 1) &&
         (c->w_channel == kiln__conv_taps(p->axis) || c->channels == 1);
}
static void choose_mode(const kiln_conv *c, kiln_conv_plan *p, size_t item) {
  const int64_t taps = kiln__conv_taps(p->axis), columns = kiln__conv_columns(p->axis);
  if (taps == 0 || c->channels == 0) {
    p->mode = KILN_CONV_EMPTY;
    return;
  }
  if (columns <= DOT_COLUMNS && p->a_contiguous &&
      c->channels * taps <= DOT_BYTES / DOT_COLUMNS / (int64_t)item) {
    p->mode = KILN_CONV_DOT;
    return;
  }
  p->mode = KILN_CONV_DIRECT;
  for (int d = 0; d < 2; d++) {
    if (!is_trivial(&p->axis[d])) p->mode = KILN_CONV_PADDED;
  }
  if (!is_straight(&p->axis[2]) || p->axis[2].in_stride != 1) p->mode = KILN_CONV_PADDED;
  if (p->mode == KILN_CONV_DIRECT) return;
  p->padded = padded_size(p, item);
  if (p->padded == 0) p->mode = KILN_CONV_GATHER;
}
/* Whether the panels are read where the input lies. */
static bool reads_input(const kiln_conv *c, const kiln_conv_plan *p) {
  return p->mode == KILN_CONV_DIRECT && c->outputs <= KILN_CONV_UNPACKED;
}
static bool has_panels(const kiln_conv_plan *p) {
  return p->mode != KILN_CONV_EMPTY && p->mode != KILN_CONV_DOT;
}
/* Blocks of the sum: as many channels as panels and padded tile have room for. */
static void cut_sum(const kiln_conv *c, kiln_conv_plan *p, size_t item) {
  const int64_t taps = kiln__conv_taps(p->axis);
  p->block_channels = c->channels;
  p->block_taps = taps;
  if (!has_panels(p)) return;
  int64_t most = PANEL_BYTES / (p->slab_columns * (int64_t)item);
  if (reads_input(c, p)) most = DIRECT_CHANNELS;
  int64_t channels = most / taps;
  if (p->mode == KILN_CONV_PADDED)
    channels = least(channels, PADDED_BYTES / (p->padded * (int64_t)item));
  if (channels < 1) channels = 1;
  if (channels > c->channels) channels = c->channels;
  p->block_channels = parts_of(c->channels, parts_of(c->channels, channels));
  if (p->block_channels == 1 && taps > most) p->block_taps = parts_of(taps, parts_of(taps, most));
}
static void size_scratch(kiln_conv_plan *p, size_t item) {
  const size_t sum = (size_t)(p->block_channels * p->block_taps), vector = 64;
  const size_t columns = (size_t)p->slab_columns, panels = rounded(sum * columns * item + vector);
  p->tile_at = 64;
  size_t at = p->tile_at + KILN_CONV_TILE_BYTES;
  p->spans_at = at;
  if (p->mode == KILN_CONV_PADDED) at += rounded(columns * sizeof(kiln_conv_span));
  p->firsts_at = at;
  if (p->mode == KILN_CONV_PADDED) at += rounded((columns + 1) * sizeof(int32_t));
  p->taps_at = at;
  if (p->mode == KILN_CONV_PADDED)
    at += rounded((size_t)kiln__conv_taps(p->axis) * sizeof(int64_t));
  p->a_at = at;
  if (!p->a_contiguous) at += rounded(sum * KILN_CONV_MR * item);
  p->panels_at = at;
  if (p->mode == KILN_CONV_DOT) at += rounded(sum * DOT_COLUMNS * item);
  if (has_panels(p)) at += panels;
  p->padded_at = at;
  if (p->mode == KILN_CONV_PADDED)
    at += rounded((size_t)(p->block_channels * p->padded) * item + vector);
  p->scratch = at;
}

/* -- Threads -- */

/* Vectors of a slab, at least, where columns are cut for threads alone. */
enum { LEAST_VECTORS = 3 };

/* How a segment is cut. With threads, into equal shares of whole vectors for each of them, if there
 * are so many, and else into panels; up to four shares for each, so that a thread whose core is
 * slower takes fewer. True: threads that take slabs are equally busy. */
static bool cut_columns(const kiln_conv *c, kiln_conv_plan *p, int64_t lanes, int64_t most,
                        int64_t segments, int threads) {
  const int64_t vectors = parts_of(p->segment, lanes);
  const int64_t least_parts = parts_of(p->segment, most);
  p->align = 3 * lanes;
  p->parts = least_parts;
  const bool plenty = segments * least_parts >= 8 * (int64_t)threads;
  if (threads == 1 || plenty) return true;
  if (c->outputs >= segments * p->segment)
    return false; /* let each thread read its weights alone */
  int64_t parts = least_parts;
  while (parts * segments % threads && parts < vectors) parts++;
  const int64_t share = parts_of(vectors * segments, threads) * threads;
  if (parts * LEAST_VECTORS > vectors || share * 19 > vectors * segments * 20) return false;
  while (parts * segments < 8 * (int64_t)threads && 2 * parts * LEAST_VECTORS <= vectors)
    parts *= 2;
  p->align = lanes;
  p->parts = parts;
  return true;
}
/* Units of fewer outputs, for threads that would have no columns: some four for each thread, and so
 * many that the threads end together. */
static void cut_outputs(const kiln_conv *c, kiln_conv_plan *p, int64_t by_columns, int threads) {
  const int64_t tiles = parts_of(c->outputs, KILN_CONV_MR);
  int64_t tiles_each = tiles, least_longest = INT64_MAX;
  const int64_t wanted = threads > 1 ? parts_of(8 * (int64_t)threads, by_columns) : 1;
  for (int64_t each = tiles < wanted ? 1 : tiles / wanted; each >= 1; each--) {
    const int64_t longest = parts_of(by_columns * parts_of(tiles, each), threads) * each;
    if (longest >= least_longest) continue;
    least_longest = longest;
    tiles_each = each;
  }
  p->slab_outputs = tiles_each * KILN_CONV_MR;
  p->output_slabs = parts_of(c->outputs, p->slab_outputs);
}

/* -- The plan -- */

/* Bytes of a vector. */
_Static_assert(16 << KILN_ISA_V2 == 16 && 16 << KILN_ISA_AVX2 == 32 && 16 << KILN_ISA_AVX512 == 64,
               "each instruction set has vectors twice as long as the one before");

void kiln_conv_make_plan(const kiln_conv *c, const kiln_dispatch *dispatch, size_t item,
                         int threads, kiln_conv_plan *p) {
  const kiln_isa isa = dispatch->isa;
  const int64_t lanes = (int64_t)((size_t)16 << isa) / (int64_t)item, panel = 3 * lanes;
  *p = (kiln_conv_plan){0};
  memcpy(p->axis, c->axis, sizeof p->axis);
  arrange_axes(p->axis);
  p->panel = panel;
  p->tile_rows = isa == KILN_ISA_AVX512 ? KILN_CONV_MR : KILN_CONV_MR / 2;
  const int64_t row = p->axis[2].out, plane = row * p->axis[1].out;
  const int64_t columns = plane * p->axis[0].out;
  const int64_t most = ROW_BYTES / (int64_t)item / panel * panel;
  p->segment = row >= most ? row : plane >= most / 2 ? plane : columns;
  p->a_contiguous = rows_contiguous(c, p);
  if (plan_planes(c, p, item, threads)) return;
  const int64_t segments = c->batch * c->groups * (columns / p->segment);
  const bool even = cut_columns(c, p, lanes, most, segments, threads);
  p->slab_columns = parts_of(parts_of(p->segment, p->align), p->parts) * p->align;
  p->slab_columns = parts_of(p->slab_columns, panel) * panel;
  choose_mode(c, p, item);
  cut_sum(c, p, item);
  p->column_slabs = columns / p->segment * p->parts;
  p->by_tiles = !even && has_panels(p) && !reads_input(c, p) &&
                p->block_taps == kiln__conv_taps(p->axis) && c->outputs > 2 * KILN_CONV_MR;
  p->output_slabs = 1;
  p->slab_outputs = c->outputs;
  if (!even && !p->by_tiles) cut_outputs(c, p, c->batch * c->groups * p->column_slabs, threads);
  p->slabs = c->batch * c->groups * p->column_slabs * p->output_slabs;
  size_scratch(p, item);
}

/* -- Running -- */

typedef struct work {
  const kiln_conv *c;
  const kiln_conv_plan *p;
  kiln_conv_fn fn;
  kiln_conv_part part;
  char *scratch; /* p->scratch bytes for each worker */
} work;

static void run_part(void *data, int64_t begin, int64_t end, int worker) {
  const work *w = data;
  kiln_conv_part part = w->part;
  part.begin = begin;
  part.end = end;
  w->fn(w->c, w->p, &part, w->scratch + (size_t)worker * w->p->scratch);
}
static int64_t grain_of(double wanted, double each) {
  return wanted <= each ? 1 : (int64_t)(wanted / each) + 1;
}
/* One slab, block by block. */
static void run_tiles(work *w, kiln_pool *pool) {
  const kiln_conv *c = w->c;
  const kiln_conv_plan *p = w->p;
  const int64_t taps = kiln__conv_taps(p->axis);
  int64_t column;
  const int64_t columns = kiln__conv_part_columns(p, w->part.slab % p->column_slabs, &column);
  const int64_t tiles = parts_of(c->outputs, p->tile_rows) * parts_of(columns, p->panel);
  kiln_budget *budget = kiln_budget_current();
  for (int64_t at = 0; at < c->channels && !kiln_budget_is_over(budget); at += p->block_channels) {
    const int64_t channels = least(c->channels - at, p->block_channels);
    const double tile = (double)(channels * taps) * (double)p->tile_rows * (double)p->panel;
    w->part.channel = at;
    kiln_pool_for(pool, tiles, grain_of(GRAIN_PRODUCTS, tile), run_part, w);
  }
}

/* As multiplications. */
static double work_of(const kiln_conv *c, int64_t outputs, int64_t columns) {
  return (double)(columns + WEIGHT_PRODUCTS) * (double)outputs *
         (double)(c->channels * kiln__conv_taps(c->axis));
}

int kiln_conv_threads(const kiln_conv *c, int threads) {
  const double images = (double)(c->batch * c->groups);
  return images * work_of(c, c->outputs, kiln__conv_columns(c->axis)) < 2 * GRAIN_PRODUCTS
             ? 1
             : threads;
}

size_t kiln_conv_scratch(const kiln_conv_plan *p, int threads) {
  return p->scratch * (size_t)threads;
}

void kiln_conv_run(const kiln_conv *c, const kiln_conv_plan *p, kiln_conv_fn fn, kiln_pool *pool,
                   void *scratch) {
  work w = {.c = c, .p = p, .fn = fn, .scratch = scratch};
  if (!p->by_tiles) {
    const int64_t columns =
        p->mode == KILN_CONV_DOT ? kiln__conv_columns(p->axis) : p->slab_columns;
    const double slab = work_of(c, p->slab_outputs, columns);
    kiln_pool_for(pool, p->slabs, grain_of(GRAIN_PRODUCTS, slab), run_part, &w);
    return;
  }
  for (int i = 0; i < kiln_pool_threads(pool); i++) {
    memset(w.scratch + (size_t)i * p->scratch, 0, sizeof(int64_t));
  }
  for (w.part.slab = 0; w.part.slab < p->slabs; w.part.slab++) run_tiles(&w, pool);
}
