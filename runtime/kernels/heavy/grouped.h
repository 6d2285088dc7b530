/* grouped.h: convolutions of floats in many narrow groups with windows of 3 x 3: of step 1 or 2,
 * dilation 1, as many outputs as channels in a group, channels last.
 *
 * A vector has the outputs of whole groups, of 16 lanes those of 4 groups of 4. Output lane l of
 * group l / 4 wants channel c of its group, for each c: the pixel's 16 channels are one vector,
 * too, of which a permutation puts channel c of each group into the group's lanes.
 *
 *   pixel    a0 a1 a2 a3  b0 b1 b2 b3  ..
 *   c = 1    a1 a1 a1 a1  b1 b1 b1 b1  ..   times the weights of tap and c, one for each output
 *
 * Each permuted vector serves all outputs of a row's tile whose windows have the pixel. One
 * output's bits do not hang on tiles, threads or strides. */
#pragma once

#include "base/pool.h"
#include "runtime/kernels/dispatch.h"

/* Output o of an axis is the sum over taps t of what the input has at step o - pad + t, or 0
 * outside of it. Strides are in elements; channels and outputs are contiguous. */
typedef struct kiln_grouped {
  int64_t batch, outputs, each;        /* of all groups; of a group, as its channels; at least 1 */
  int64_t in[2], out[2], pad[2], step; /* rows and columns; pad at most 2 */
  int64_t in_batch, in_axis[2];
  int64_t out_batch, out_axis[2];
} kiln_grouped;

/* Whether such groups fill vectors of that instruction set, which has such kernels. */
bool kiln_grouped_fits(const kiln_grouped *problem, const kiln_dispatch *dispatch);

/* -- Weights -- */

/* Where a weight lies: strides in elements. */
typedef struct kiln_grouped_weight {
  const float *data;
  int64_t output, channel, tap[2];
} kiln_grouped_weight;

/* Bytes of the weights in the kernel's order. KILN_OUT_OF_MEMORY: no number holds them. */
kiln_status *kiln_grouped_bytes(const kiln_dispatch *dispatch, int64_t outputs, int64_t each,
                                size_t *out_bytes) KILN_MUST_USE;
/* Fills `u`, of so many bytes and at a 64-byte boundary. */
void kiln_grouped_fill(const kiln_dispatch *dispatch, int64_t outputs, int64_t each,
                       const kiln_grouped_weight *weight, float *u);

/* -- Runs -- */

/* A row of an image's outputs is complete, and was just written by this thread. */
typedef void (*kiln_grouped_done)(void *user, int64_t image, int64_t row, int worker);

/* y = x convolved with the weight of `u`; then `done`, if any, for each row. y may not overlap x.
 * When the thread's budget ends, rows are left out. pool NULL: this thread. */
void kiln_grouped_run(const kiln_grouped *problem, const kiln_dispatch *dispatch, const float *x,
                      const float *u, float *y, kiln_grouped_done done, void *user,
                      kiln_pool *pool);

/* -- Between grouped.c and grouped_isa.c -- */

typedef struct kiln_grouped_kernels {
  int64_t lanes;
  /* Row `row` of the outputs of an image: x is the image, y the row. */
  void (*row)(const kiln_grouped *problem, int64_t row, const float *x, const float *u, float *y);
} kiln_grouped_kernels;

/* The last vector ends with the last output: of 104 outputs and 16 lanes it begins at 88. */
static inline int64_t kiln__grouped_vector(int64_t outputs, int64_t lanes, int64_t index) {
  return (index + 1) * lanes < outputs ? index * lanes : outputs - lanes;
}
/* Floats of a vector's weights: [tap row][channel][tap column][lane]. */
static inline int64_t kiln__grouped_floats(int64_t each, int64_t lanes) { return 9 * each * lanes; }
