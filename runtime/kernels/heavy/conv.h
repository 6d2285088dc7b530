/* conv.h: one description of every convolution, for its fast kernels (conv_isa.c, depthwise_isa.c),
 * its reference (conv_reference.c) and the operators (conv.c).
 *
 * All have three axes; missing ones have one position and one tap. Along an axis, tap t of output o
 * reads the input at first + o * step + t * tap_step, or 0 where that is outside. A transposed
 * convolution is one such problem for each residue of the output's positions modulo the stride, on
 * those taps that reach it. Sums begin with the bias and run over channels, then taps, in order:
 * one rounding order whatever the blocks, the vectors and the threads are. */
#pragma once

#include "base/pool.h"
#include "runtime/kernels/dispatch.h"

/* All strides are in elements. */
typedef struct kiln_conv_axis {
  int64_t in, in_stride;
  int64_t out, out_stride;
  int64_t step, first;           /* step >= 1 */
  int64_t taps, tap_step, w_tap; /* tap_step >= 1; taps may be 0: then the bias alone remains */
} kiln_conv_axis;

/* Where the columns of a product (a row for each channel and tap) come from. */
typedef enum kiln_conv_mode {
  KILN_CONV_EMPTY,     /* nothing to add: the bias alone */
  KILN_CONV_DIRECT,    /* rows of the input are rows of the product */
  KILN_CONV_PADDED,    /* a copy of the input's part with its padding, cut by the step */
  KILN_CONV_GATHER,    /* element by element: the padding would be too large a copy */
  KILN_CONV_DOT,       /* very few columns: dot products along the sum */
  KILN_CONV_DEPTHWISE, /* groups of one channel: planes, depthwise_isa.h */
} kiln_conv_mode;

/* The problem. */
typedef struct kiln_conv {
  kiln_conv_axis axis[3];
  int64_t batch, groups, channels, outputs; /* of a group */
  const void *in, *weight, *bias;           /* bias may be NULL */
  void *out;
  int64_t in_batch, in_channel, out_batch, out_channel; /* a group's follow each other */
  int64_t w_group, w_output, w_channel;
} kiln_conv;

/* How its work is cut, and what each slab does (conv_isa.h), for one instruction set and number of
 * threads. It hangs on no address: one plan serves all problems of these sizes and strides. */
typedef struct kiln_conv_plan {
  kiln_conv_axis axis[3]; /* the problem's: turned and merged so that the last is long */
  kiln_conv_mode mode;
  int64_t segment;                    /* columns that slabs do not reach across */
  int64_t align, parts;               /* a segment is cut into `parts` at multiples of `align` */
  int64_t tile_rows, panel;           /* a tile's outputs and columns */
  int64_t slab_columns, slab_outputs; /* of a slab, at most */
  int64_t slab_rows, slab_groups;     /* instead, of depthwise slabs */
  int64_t column_slabs, output_slabs; /* of a group of an image */
  int64_t slabs;                      /* of all */
  int64_t block_channels, block_taps; /* of a block of the sum; fewer taps than all only when it
                                         has one channel */
  bool a_contiguous;                  /* the weights of an output are in the sum's order */
  int64_t padded;                     /* elements of a channel in the padded tile */
  bool by_tiles; /* parts are tiles of a slab's block, not slabs: else threads would lack work */
  size_t tile_at, spans_at, firsts_at, taps_at, a_at, panels_at, padded_at,
      scratch; /* in bytes: parts of what one thread needs, and all */
} kiln_conv_plan;

/* The work of one call of a kernel: slabs [begin, end); or, by tiles, tiles (outputs x panels) of
 * one slab and one block of the sum, which threads share. Each thread fills panels of its own, once
 * a block: panels that several filled would be read from the others' caches. The first int64_t of
 * a thread's scratch says which block its panels hold, 0 before the first. */
typedef struct kiln_conv_part {
  int64_t begin, end;
  int64_t slab, channel; /* by tiles: which slab, and the block's first channel */
} kiln_conv_part;
typedef void (*kiln_conv_fn)(const kiln_conv *c, const kiln_conv_plan *p,
                             const kiln_conv_part *part, void *scratch);

/* Rows of a tile (the smaller instruction sets take half of them at once), and its bytes; channels
 * of output up to which DIRECT does not copy the input's rows to panels. */
enum { KILN_CONV_MR = 8, KILN_CONV_TILE_BYTES = KILN_CONV_MR * 3 * 64, KILN_CONV_UNPACKED = 64 };
/* Most taps of an axis that the depthwise kernels take. */
enum { KILN_CONV_DEPTHWISE_TAPS = 15 };

/* A run of columns in a panel that lie in one row of the output. */
typedef struct kiln_conv_span {
  int32_t to, count; /* columns from the panel's first */
  int64_t from;      /* elements from the padded tile's first, or the input's */
} kiln_conv_span;

/* How `outs` outputs of an axis lie in a padded tile. Its positions are sorted by what they are
 * modulo the step, so that the inputs of neighbouring outputs are neighbours: tap t of output o
 * (from the first) is number t / period * advance + o of phase t % period, a phase has `length`. */
typedef struct kiln_conv_phasing {
  int64_t phases, length, period, advance;
} kiln_conv_phasing;
void kiln__conv_phase(const kiln_conv_axis *a, int64_t outs, kiln_conv_phasing *phasing);

/* Elements of a phase of a row of a depthwise padded tile: whole vectors, so that rows are written
 * so. */
static inline int64_t kiln__conv_plane_length(const kiln_conv_phasing *phasing) {
  return (phasing->length + 15) / 16 * 16;
}

/* For kernels of `dispatch` and elements of `item` bytes. There is at least one output and one
 * slab. Bits do not depend on `threads`, which only cuts finer. */
void kiln_conv_make_plan(const kiln_conv *c, const kiln_dispatch *dispatch, size_t item,
                         int threads, kiln_conv_plan *out_plan);
/* `threads`, or 1 if it is not worth more. */
int kiln_conv_threads(const kiln_conv *c, int threads);
/* Bytes that kiln_conv_run needs at 64-byte boundaries. The pool has as many threads as there
 * were for the plan, or is NULL. */
size_t kiln_conv_scratch(const kiln_conv_plan *p, int threads);
/* Runs the problem by its plan, on the pool where it is worth that. */
void kiln_conv_run(const kiln_conv *c, const kiln_conv_plan *p, kiln_conv_fn fn, kiln_pool *pool,
                   void *scratch);

/* The reference: F32 (summed in double), F64, I64 (wraps around) or C128. */
void kiln__conv_reference(kiln_dtype dtype, const kiln_conv *c);

/* Of all three axes, however they are arranged. */
static inline int64_t kiln__conv_taps(const kiln_conv_axis *axis) {
  return axis[0].taps * axis[1].taps * axis[2].taps;
}
static inline int64_t kiln__conv_columns(const kiln_conv_axis *axis) {
  return axis[0].out * axis[1].out * axis[2].out;
}
/* Part `index` of all segments: its first column, and how many. */
static inline int64_t kiln__conv_part_columns(const kiln_conv_plan *p, int64_t index,
                                              int64_t *column) {
  const int64_t cuts = (p->segment + p->align - 1) / p->align, part = index % p->parts;
  const int64_t from = part * cuts / p->parts * p->align;
  const int64_t to = (part + 1) * cuts / p->parts * p->align;
  *column = index / p->parts * p->segment + from;
  return (to < p->segment ? to : p->segment) - from;
}
