/* blocked.h: products of rows with a constant weight, y = x w^T of floats, in blocks: a weight that
 * was packed once, in slices of the depth that they sum over, so that a slice of the rows stays in
 * the L2 cache while all panels of the weight go over it (Goto and van de Geijn, 2008).
 *
 * Either as they stand, or by one level of Strassen's algorithm (1969): of the halves of rows,
 * depth and outputs seven products of sums are made instead of eight. The weight's sums are made
 * once, and are 7/4 of its size. Halves of rows are the even and the odd ones, so that a strip of
 * rows is complete when its panels are; those of outputs are panels beside each other.
 *
 * Or of factors in bf16, by tiles (runtime/kernels/heavy/tiles.h): then what is multiplied is pairs
 * of them, and half as many.
 *
 * The sums of a slice are added onto those of the slices before, in y. One output's bits hang on
 * the form, the slices and whether the instruction set has fma; not on threads, strips or strides.
 *
 *   choose form -> kiln_blocked_slice, _bytes, _fill (once a weight)
 *               -> kiln_blocked_make_plan (once for sizes and strides) -> kiln_blocked_call */
#pragma once

#include "base/pool.h"
#include "runtime/kernels/dispatch.h"
#include "runtime/kernels/heavy/core_machine.h"

typedef enum kiln_blocked_form {
  KILN_BLOCKED_NONE,
  KILN_BLOCKED_DIRECT,
  KILN_BLOCKED_STRASSEN,
  KILN_BLOCKED_TILES,      /* of bf16, by AMX */
  KILN_BLOCKED_TILES_IN_C, /* the same */
  KILN_BLOCKED__COUNT
} kiln_blocked_form;

/* Rows of a tile, and products of its sums. */
static inline int64_t kiln_blocked_tile(kiln_blocked_form form) {
  return form == KILN_BLOCKED_STRASSEN ? 2 : 1;
}
static inline bool kiln_blocked_is_tiles(kiln_blocked_form form) {
  return form >= KILN_BLOCKED_TILES;
}
static inline int64_t kiln_blocked_positions(kiln_blocked_form form) {
  return form == KILN_BLOCKED_STRASSEN ? 7 : 1;
}

/* y[r][n] = sum over k of x[r][k] w[n][k]; strides of rows in elements. */
typedef struct kiln_blocked {
  int64_t rows, depth, outputs; /* each at least 1 */
  int64_t x_row, y_row;
} kiln_blocked;

/* Whether a product whose weight is constant takes less time in blocks than in one kernel that
 * reads all of a panel's depth for some rows and then the next; Strassen's only if it may.
 * `alone`: nothing else is computed of y, which such a kernel would have in registers. */
kiln_blocked_form kiln_blocked_choose(const kiln_blocked *problem, const kiln_core_machine *machine,
                                      bool alone, bool may_strassen);
/* The same of factors that are rounded to bf16: by tiles where the machine has them, else NONE. */
kiln_blocked_form kiln_blocked_choose_bf16(const kiln_blocked *problem,
                                           const kiln_core_machine *machine);

/* -- Weights -- */

/* Of the depth, how much is summed at once: even but for the last. */
int64_t kiln_blocked_slice(kiln_blocked_form form, int64_t depth, const kiln_core_machine *machine);

/* Where a weight lies, and what becomes of it; strides in elements. */
typedef struct kiln_blocked_weight {
  const float *data;
  int64_t output, along; /* from output to output, along the depth */
  int64_t outputs, depth, slice;
} kiln_blocked_weight;

/* Bytes of the packed weight for kernels of `dispatch`. KILN_OUT_OF_MEMORY: no number holds them.
 */
kiln_status *kiln_blocked_bytes(const kiln_dispatch *dispatch, kiln_blocked_form form,
                                const kiln_blocked_weight *weight, size_t *out_bytes) KILN_MUST_USE;
/* Fills `u`, of so many bytes and at a 64-byte boundary, on the pool (NULL: this thread). Where
 * the thread's budget ends it is not filled and the status says so. */
kiln_status *kiln_blocked_fill(const kiln_dispatch *dispatch, kiln_blocked_form form,
                               const kiln_blocked_weight *weight, float *u,
                               kiln_pool *pool) KILN_MUST_USE;

/* -- Runs -- */

/* Rows [first, first + count) are complete and were just written, by this thread or by several.
 * Each row is given once; calls for different rows may come at the same time, then from different
 * workers. */
typedef void (*kiln_blocked_done)(void *user, int64_t first, int64_t count, int worker);

/* How the work is cut, for one instruction set and number of threads. It hangs on no address. */
typedef struct kiln_blocked_plan {
  kiln_blocked problem;
  kiln_blocked_form form;
  const struct kiln_blocked_kernels *kernels; /* static */
  int threads;
  int64_t slice, slices;        /* of the depth */
  int64_t half;                 /* what a product sums over: a slice, or half of one; of tiles
                                   pairs, and zeros up to whole tiles */
  int64_t tiles, strip, strips; /* of rows; of a strip at most */
  int64_t panels;               /* of outputs: two vectors, of Strassen's both halves */
  bool by_panels;               /* threads share a strip's panels, not the strips */
  bool in_place;                /* V is x itself: there are no sums, and its rows lie well */
  int64_t v_row, v_position;    /* strides of V, the rows' sums: [position][tile][half] */
  int64_t m_position;           /* of M: [position][tile][panel] */
  size_t v_at, m_at, scratch;   /* bytes, of what a thread needs */
} kiln_blocked_plan;

/* For `threads` of a pool. KILN_OUT_OF_MEMORY: sizes overflow. */
kiln_status *kiln_blocked_make_plan(const kiln_blocked *problem, kiln_blocked_form form,
                                    int64_t slice, const kiln_dispatch *dispatch,
                                    const kiln_core_machine *machine, int threads,
                                    kiln_blocked_plan *out_plan) KILN_MUST_USE;
/* Bytes that kiln_blocked_run needs at a 64-byte boundary. */
size_t kiln_blocked_scratch(const kiln_blocked_plan *plan);
/* y = x times the weight of `u`, and a bias for each output or NULL; then `done`, if any, for all
 * rows. y may not overlap x. The pool has as many threads as there were for the plan, or is NULL.
 * When the thread's budget ends, rows are left out, also of those that `done` gets. */
void kiln_blocked_run(const kiln_blocked_plan *plan, const float *x, const float *u,
                      const float *bias, float *y, kiln_blocked_done done, void *user,
                      kiln_pool *pool, void *scratch);
/* The same on the call's pool, with scratch of its cache. */
kiln_status *kiln_blocked_call(kiln_call *call, const kiln_blocked_plan *plan, const float *x,
                               const float *u, const float *bias, float *y, kiln_blocked_done done,
                               void *user) KILN_MUST_USE;

/* -- Between blocked.c and blocked_isa.c -- */

/* Tiles [tile, tile + tiles) of rows, in one slice of the depth. */
typedef struct kiln_blocked_part {
  const kiln_blocked_plan *plan;
  const float *x, *u; /* both of the slice: x at its first column */
  float *y;
  int64_t tile, tiles;
  int64_t depth, half; /* of the slice; what a product sums over */
  bool add;            /* onto what y has; else onto the bias */
  const float *bias;   /* NULL: zeros */
  const float *v;      /* what is multiplied: the first tile's row */
  float *gathered, *m;
} kiln_blocked_part;
/* Of one form. */
typedef struct kiln_blocked_kernels {
  int64_t lanes, rows; /* floats of a vector, of which a panel has two; most tiles of a product */
  /* Of one slice, panels [begin, end): [panel][position][half][2 vectors]. */
  void (*fill)(const kiln_blocked_weight *slice, float *u, int64_t begin, int64_t end);
  void (*gather)(const kiln_blocked_part *part);               /* x to V */
  void (*panel)(const kiln_blocked_part *part, int64_t panel); /* V to M to y */
} kiln_blocked_kernels;
typedef struct kiln_blocked_set {
  kiln_blocked_kernels forms[KILN_BLOCKED_TILES]; /* NONE has none */
} kiln_blocked_set;
