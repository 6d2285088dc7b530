/* recurrent.h: the steps of a recurrent layer of floats in one direction, behind the product of its
 * input, which is made for all steps at once.
 *
 * A step is the product of its state and a weight, and the cell, which is pointwise. The weight
 * lies in panels, [block of 16 hidden][hidden][gate][16 of the block]: the sums of all gates of
 * some hidden units are complete together, and the cell takes them from the first cache. A panel is
 * read once a step, so a step of few rows takes the time that the caches take to give the weight.
 *
 * An output's sum goes over the hidden units in order, from 0; its bits hang on whether the
 * instruction set has fma, not on rows, threads or the width of vectors. */
#pragma once

#include "base/pool.h"
#include "runtime/kernels/dispatch.h"

typedef enum kiln_cell_kind {
  KILN_CELL_TANH,
  KILN_CELL_RELU,
  KILN_CELL_LSTM,
  KILN_CELL_GRU,
  KILN_CELL__COUNT
} kiln_cell_kind;

/* LSTM: input, forget, cell, output; GRU: reset, update, new. */
static inline int kiln_cell_gates(kiln_cell_kind kind) {
  return kind == KILN_CELL_LSTM ? 4 : kind == KILN_CELL_GRU ? 3 : 1;
}

enum { KILN_RECURRENT_BLOCK = 16 };
static inline int64_t kiln_recurrent_blocks(int64_t hidden) {
  return (hidden - 1) / KILN_RECURRENT_BLOCK + 1;
}

/* A direction. Rows of `input`, gates * hidden floats each, are those of step 0, then of step 1 ..;
 * rows of `out` too, `out_row` floats apart. */
typedef struct kiln_recurrent {
  kiln_cell_kind kind;
  bool reverse; /* the last step first */
  int64_t steps, hidden;
  int64_t rows;         /* of each step */
  const int64_t *batch; /* rows of step t, none more than `rows`; NULL: all of them */
  const float *input, *panels;
  const float *bias; /* what the state's product adds to, gates * hidden; NULL: nothing */
  float *out;
  int64_t out_row;
  float *h, *c; /* [rows][hidden], the first states, which become the last; c of LSTM alone */
} kiln_recurrent;

/* One step: rows of `input` and `out` are that step's; h is read, c is read and written. */
typedef struct kiln_recurrent_step {
  const kiln_recurrent *layer;
  int64_t rows;
  const float *input;
  float *out;
} kiln_recurrent_step;

/* `count` directions, each beside the others where there are threads; one alone shares its steps
 * among them where these are long. */
void kiln_recurrent_run(const kiln_dispatch *dispatch, kiln_pool *pool,
                        const kiln_recurrent *layers, int count);
