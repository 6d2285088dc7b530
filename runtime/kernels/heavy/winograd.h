/* winograd.h: convolutions of floats with windows of 3 x 3, or of some planes of 3 x 3, by
 * Winograd's minimal filtering (Lavin and Gray, 2015): step 1, one group, channels last.
 *
 * A square tile of m x m outputs takes (m + 2)^2 products for each channel and output instead of
 * 9 m^2: F4 has 36 for 144, F2 16 for 36. The transformed weights, U, are made once for a constant
 * weight and are 4 (F4) or 1.8 (F2) times its size. For each strip of tiles the inputs are
 * transformed to V [position][tile][channel]; for each panel of outputs and each position M = V U;
 * and the outputs are transforms of M. V and M of a strip stay in the L2 cache. In a volume a
 * plane of outputs sums over the channels of all planes that its windows have: those are the
 * channels of V and U, plane by plane; planes outside, which are zeros, are left out of the sum
 * where no tile of a strip has them.
 *
 * Windows whose taps are `dilation` apart have tiles whose inputs and outputs are: of a dilation of
 * 2 and tiles of 4 x 4 the first one has rows 0, 2, 4, 6, the next one rows 1, 3, 5, 7. A row of
 * tiles is all that make up whole rows of outputs.
 *
 * Points of F4 are 0, +-181/256, +-181/128 and infinity, near 1 / sqrt 2 and sqrt 2: the errors
 * are a quarter of those of 0, +-1, +-2 (docs/numerics.md). F2 has 0, +-1, infinity. One output's
 * bits hang on the form and on whether the instruction set has fma; not on threads, strips, batch,
 * strides or the width of vectors (of a volume with infinite weights, whose products with zeros
 * are NaN, on strips too).
 *
 *   choose form -> kiln_winograd_bytes, _fill (once a weight)
 *               -> kiln_winograd_make_plan (once for sizes and strides) -> kiln_winograd_run */
#pragma once

#include "base/pool.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/heavy/core_machine.h"

typedef enum kiln_winograd_form {
  KILN_WINOGRAD_NONE, /* a direct convolution is the better way */
  KILN_WINOGRAD_F2,
  KILN_WINOGRAD_F4,
  KILN_WINOGRAD__COUNT
} kiln_winograd_form;

/* Outputs of a tile along an axis, and positions. */
static inline int64_t kiln_winograd_tile(kiln_winograd_form form) {
  return form == KILN_WINOGRAD_F4 ? 4 : 2;
}
static inline int64_t kiln_winograd_positions(kiln_winograd_form form) {
  return form == KILN_WINOGRAD_F4 ? 36 : 16;
}

enum { KILN_WINOGRAD_DILATION = 1 << 16 };
/* The problem; of planes, rows and columns: an image is a volume of one plane. Output o of an axis
 * is the sum over taps t, `planes` of the first axis and 3 of the others, of what the input has at
 * o - pad + dilation t (that of planes is 1), or 0 outside of it. All strides are in elements;
 * channels and outputs are contiguous. */
typedef struct kiln_winograd {
  int64_t batch, channels, outputs, planes; /* each at least 1 */
  int64_t in[3], out[3], pad[3];            /* in and out at least 1, pad below a window's size */
  int64_t dilation[2];                      /* of rows and columns, 1 to KILN_WINOGRAD_DILATION */
  int64_t in_batch, in_axis[3];
  int64_t out_batch, out_axis[3];
} kiln_winograd;

/* Planes that an image of outputs, one plane of them, reads: taps [*begin, result) of `planes`. */
static inline int64_t kiln_winograd_taps(const kiln_winograd *p, int64_t plane, int64_t *begin) {
  const int64_t first = plane - p->pad[0], left = p->in[0] - first;
  *begin = first < 0 ? -first : 0;
  return left < p->planes ? left : p->planes;
}

/* Rows (axis 0) or columns of tiles of an image. */
static inline int64_t kiln_winograd_tiles(const kiln_winograd *p, kiln_winograd_form form,
                                          int axis) {
  const int64_t span = kiln_winograd_tile(form) * p->dilation[axis];
  return ((p->out[axis + 1] - 1) / span + 1) * p->dilation[axis];
}

/* Of a constant weight. It does not look at threads: bits would hang on them. */
kiln_winograd_form kiln_winograd_choose(const kiln_winograd *problem,
                                        const kiln_core_machine *machine);

/* -- Weights -- */

/* Where a weight lies: strides in elements. */
typedef struct kiln_winograd_weight {
  const float *data;
  int64_t output, channel, tap[3];
} kiln_winograd_weight;

/* Bytes of U for kernels of `dispatch`. KILN_OUT_OF_MEMORY: no number holds them. */
kiln_status *kiln_winograd_bytes(const kiln_dispatch *dispatch, kiln_winograd_form form,
                                 int64_t planes, int64_t channels, int64_t outputs,
                                 size_t *out_bytes) KILN_MUST_USE;
/* Fills `u`, of so many bytes and at a 64-byte boundary, on the pool (NULL: this thread). Where
 * the thread's budget ends it is not filled and the status says so. */
kiln_status *kiln_winograd_fill(const kiln_dispatch *dispatch, kiln_winograd_form form,
                                int64_t planes, int64_t channels, int64_t outputs,
                                const kiln_winograd_weight *weight, float *u,
                                kiln_pool *pool) KILN_MUST_USE;

/* -- Runs -- */

/* Rows [first_row, first_row + rows) of an image's output, or of a plane's, which are counted over
 * the batch, are complete and were just written by
 * this thread or, of strips that threads shared, by several. Each row is given once; calls for
 * different rows may come at the same time, then from different workers. */
typedef void (*kiln_winograd_done)(void *user, int64_t image, int64_t first_row, int64_t rows,
                                   int worker);

/* How the work is cut, for one instruction set and number of threads. It hangs on no address: one
 * plan serves all problems of these sizes and strides, at the same time too. */
typedef struct kiln_winograd_plan {
  kiln_winograd problem;
  kiln_winograd_form form;
  const struct kiln_winograd_kernels *kernels; /* static */
  int threads;
  int64_t images;             /* planes of outputs */
  int64_t pitch, depth;       /* of a product's sum: channels of a plane, of all of a window's */
  int64_t lines, columns;     /* tiles of an image, one below and one beside the other */
  int64_t rows, row_tiles;    /* rows of tiles of an image; tiles of one of them */
  int64_t block_rows, blocks; /* rows of tiles of a block (of any images), which one thread
                                 works on, or all at once; blocks */
  int64_t strip;              /* tiles of a strip, at most: a block is cut into such */
  int64_t panel, panels;      /* outputs of a panel */
  bool by_panels;             /* threads share a strip's panels, not the blocks */
  int64_t v_row, v_position;  /* strides of V: of tiles, of positions */
  int64_t m_position;         /* of M, whose tiles are `panel` apart */
  size_t v_at, m_at, scratch; /* bytes, of what a thread needs */
} kiln_winograd_plan;

/* For `threads` of a pool. KILN_OUT_OF_MEMORY: sizes overflow. */
kiln_status *kiln_winograd_make_plan(const kiln_winograd *problem, kiln_winograd_form form,
                                     const kiln_dispatch *dispatch,
                                     const kiln_core_machine *machine, int threads,
                                     kiln_winograd_plan *out_plan) KILN_MUST_USE;
/* Bytes that kiln_winograd_run needs at a 64-byte boundary. */
size_t kiln_winograd_scratch(const kiln_winograd_plan *plan);
/* y = x convolved with the weight of `u`; then `done`, if any, for all rows. y may not overlap x.
 * The pool has as many threads as there were for the plan, or is NULL. When the thread's budget
 * ends, rows are left out, also of those that `done` gets. */
void kiln_winograd_run(const kiln_winograd_plan *plan, const float *x, const float *u, float *y,
                       kiln_winograd_done done, void *user, kiln_pool *pool, void *scratch);
/* The same on the call's pool, with scratch of its cache. */
kiln_status *kiln_winograd_call(kiln_call *call, const kiln_winograd_plan *plan, const float *x,
                                const float *u, float *y, kiln_winograd_done done,
                                void *user) KILN_MUST_USE;

/* -- Between winograd.c and winograd_isa.c -- */

/* Panels [begin, end) of U. */
typedef struct kiln_winograd_filling {
  const kiln_winograd_weight *weight;
  int64_t planes, channels, outputs;
  float *u;
} kiln_winograd_filling;
/* Tiles [tile, tile + tiles), counted over images, rows and columns; at most plan->strip. */
typedef struct kiln_winograd_strip {
  const kiln_winograd_plan *plan;
  const float *x, *u;
  float *y;
  int64_t tile, tiles;
  int64_t first_tap, last_tap; /* of planes [first_tap, last_tap) some tile has an input */
  float *v, *m;
} kiln_winograd_strip;
/* Of one form. */
typedef struct kiln_winograd_kernels {
  int64_t lanes, rows; /* floats of a vector, of which a panel has two; most tiles of a product */
  void (*fill)(const kiln_winograd_filling *filling, int64_t begin, int64_t end);
  void (*gather)(const kiln_winograd_strip *strip);               /* x to V */
  void (*panel)(const kiln_winograd_strip *strip, int64_t panel); /* V to M to y */
} kiln_winograd_kernels;
typedef struct kiln_winograd_set {
  kiln_winograd_kernels forms[KILN_WINOGRAD__COUNT]; /* NONE has none */
} kiln_winograd_set;

/* Channels of a plane in V and U, where several of them follow each other: whole vectors, whose
 * last ones are zeros. */
static inline int64_t kiln__winograd_pitch(int64_t planes, int64_t channels, int64_t lanes) {
  return planes == 1 ? channels : (channels + lanes - 1) / lanes * lanes;
}
/* Floats of U before a panel begins. */
static inline int64_t kiln__winograd_panel_at(int64_t positions, int64_t depth, int64_t panel_width,
                                              int64_t panel) {
  return positions * depth * panel_width * panel;
}
