/* recurrent_isa.c: a step of a recurrent layer (recurrent.h) for one instruction set: products of
 * some rows and hidden units with all their gates in registers, then the cell. */
#include "runtime/kernels/heavy/product_tile.h"
#include "runtime/kernels/heavy/recurrent.h"

#if KILN_KERNEL_LEVEL == 2
enum { SUMS = 24 };
#else
enum { SUMS = 12 };
#endif
/* Units are vectors of hidden units. A tile has one of them with all gates, whose panel is one
 * stream of memory; or several of a cell with one gate, so that its sums do not wait for each
 * other. Cells are computed where those of some rows and units do not wait for each other either.
 */
enum {
  BLOCK = KILN_RECURRENT_BLOCK,
  PARTS = BLOCK / LANES, /* units of a block */
  MOST_ROWS = SUMS / 4,
  MOST_UNITS = 4,
  FEW_ROWS = 3, /* cells of several units are computed together */
  GROUP_SUMS = MOST_UNITS * 4 * FEW_ROWS,
};
#define UNITS(gates) ((gates) == 1 ? MOST_UNITS : 1)

/* -- The product -- */

/* sums[unit][row][gate] = the sum over k of a[row][k] panels[unit][k][gate]. */
ALWAYS_INLINE void multiply(const int gates, const int rows, const int units, const float *a,
                            int64_t k, const float *const *panels, V *sums) {
  V acc[SUMS];
  const float *row[MOST_ROWS], *panel[MOST_UNITS];
  UNROLL for (int i = 0; i < rows; i++) row[i] = a + i * k;
  UNROLL for (int u = 0; u < units; u++) panel[u] = panels[u];
  UNROLL for (int i = 0; i < rows * units * gates; i++) acc[i] = (V){0};
  for (int64_t p = 0; p < k; p++) {
    V w[MOST_ROWS];
    UNROLL for (int i = 0; i < rows; i++) {
      w[i] = row[i][p] - (V){0};
      KILN_IN_REGISTER(w[i]);
    }
    UNROLL for (int u = 0; u < units; u++) {
      UNROLL for (int g = 0; g < gates; g++) {
        V x = *(const VU *)(panel[u] + p * gates * BLOCK + g * BLOCK);
        if (rows > 1) KILN_IN_REGISTER(x);
        UNROLL for (int i = 0; i < rows; i++) {
          V *sum = &acc[(u * rows + i) * gates + g];
          *sum = FMA(*sum, x, w[i]);
        }
      }
    }
  }
  UNROLL for (int i = 0; i < rows * units * gates; i++) sums[i] = acc[i];
}

typedef void (*tile_fn)(const float *a, int64_t k, const float *const *panels, V *sums);
#define TILE(gates, rows)                                                                  \
  static void tile_##gates##_##rows(const float *a, int64_t k, const float *const *panels, \
                                    V *sums) {                                             \
    multiply(gates, rows, UNITS(gates), a, k, panels, sums);                               \
  }
#if KILN_KERNEL_LEVEL == 2
#define EACH_ROWS(each, gates) \
  each(gates, 1) each(gates, 2) each(gates, 3) each(gates, 4) each(gates, 5) each(gates, 6)
#else
#define EACH_ROWS(each, gates) each(gates, 1) each(gates, 2) each(gates, 3)
#endif
EACH_ROWS(TILE, 1)
EACH_ROWS(TILE, 3)
EACH_ROWS(TILE, 4)
#define ENTRY(gates, rows) tile_##gates##_##rows,
/* [gates][rows - 1] */
static const tile_fn tiles[5][MOST_ROWS] = {
    [1] = {EACH_ROWS(ENTRY, 1)}, [3] = {EACH_ROWS(ENTRY, 3)}, [4] = {EACH_ROWS(ENTRY, 4)}};

/* -- The cell -- */

#define SIGMOID kiln_math_sigmoid_f32v
#define TANH kiln_math_tanh_f32v

ALWAYS_INLINE V load(const float *p, int64_t count) {
  if (count >= LANES) return *(const VU *)p;
  return load_part(p, mask_of(count));
}
ALWAYS_INLINE void store(float *p, int64_t count, V v) {
  if (count >= LANES) {
    *(VU *)p = v;
  } else {
    store_part(p, mask_of(count), v);
  }
}

/* Hidden units from `at` on of one row, whose sums are complete. */
ALWAYS_INLINE void cell(const kiln_cell_kind kind, const kiln_recurrent_step *s, int64_t row,
                        int64_t at, const V *sums) {
  const kiln_recurrent *l = s->layer;
  const int gates = kiln_cell_gates(kind);
  const int64_t hidden = l->hidden, count = hidden - at, state = row * hidden + at;
  const float *input = s->input + row * gates * hidden + at;
  V x[4], y[4], h;
  UNROLL for (int g = 0; g < gates; g++) {
    x[g] = load(input + g * hidden, count);
    y[g] = l->bias ? sums[g] + load(l->bias + g * hidden + at, count) : sums[g];
  }
  if (kind == KILN_CELL_LSTM) {
    const V in = SIGMOID(y[0] + x[0]), forget = SIGMOID(y[1] + x[1]), new = TANH(y[2] + x[2]),
            out = SIGMOID(y[3] + x[3]);
    const V c = load(l->c + state, count) * forget + in * new;
    store(l->c + state, count, c);
    h = out * TANH(c);
  } else if (kind == KILN_CELL_GRU) {
    const V reset = SIGMOID(x[0] + y[0]), update = SIGMOID(x[1] + y[1]);
    const V new = TANH(reset * y[2] + x[2]);
    h = (load(l->h + state, count) - new) * update + new;
  } else {
    const V sum = y[0] + x[0];
    h = kind == KILN_CELL_TANH ? TANH(sum) : kiln__math_select_f32v(sum < 0, (V){0}, sum);
  }
  store(s->out + row * l->out_row + at, count, h);
}

/* Rows from `row` on and units from `unit` on. */
ALWAYS_INLINE void cells(const kiln_cell_kind kind, const kiln_recurrent_step *s, int64_t row,
                         int rows, int64_t unit, int units, const V *sums) {
  for (int u = 0; u < units; u++) {
    const int64_t at = (unit + u) * LANES;
    for (int i = 0; i < rows; i++, sums += kiln_cell_gates(kind))
      if (at < s->layer->hidden) cell(kind, s, row + i, at, sums);
  }
}
#define CELLS(name, kind)                                                                     \
  static void cells_##name(const kiln_recurrent_step *s, int64_t row, int rows, int64_t unit, \
                           int units, const V *sums) {                                        \
    cells(kind, s, row, rows, unit, units, sums);                                             \
  }
CELLS(tanh, KILN_CELL_TANH)
CELLS(relu, KILN_CELL_RELU)
CELLS(lstm, KILN_CELL_LSTM)
CELLS(gru, KILN_CELL_GRU)
static void (*const cells_of[KILN_CELL__COUNT])(const kiln_recurrent_step *s, int64_t row, int rows,
                                                int64_t unit, int units,
                                                const V *sums) = {[KILN_CELL_TANH] = cells_tanh,
                                                                  [KILN_CELL_RELU] = cells_relu,
                                                                  [KILN_CELL_LSTM] = cells_lstm,
                                                                  [KILN_CELL_GRU] = cells_gru};

/* -- A step -- */

static int rows_of_tile(int64_t left) {
  const int64_t tiles_left = (left + MOST_ROWS - 1) / MOST_ROWS;
  return (int)((left + tiles_left - 1) / tiles_left);
}

/* All rows of some units; few rows of several of them, or a unit whose panel stays in the first
 * cache. */
static void run_units(const kiln_recurrent_step *s, int64_t unit, int units) {
  const kiln_recurrent *l = s->layer;
  const int gates = kiln_cell_gates(l->kind);
  const float *panels[MOST_UNITS];
  V sums[GROUP_SUMS];
  for (int u = 0; u < MOST_UNITS; u++) { /* of what is not there another one is multiplied */
    const int64_t from = unit + (u < units ? u : 0);
    panels[u] = l->panels + from / PARTS * l->hidden * gates * BLOCK + from % PARTS * LANES;
  }
  for (int64_t row = 0; row < s->rows;) {
    const int rows = rows_of_tile(s->rows - row);
    const float *h = l->h + row * l->hidden;
    for (int u = 0; u < units; u += UNITS(gates))
      tiles[gates][rows - 1](h, l->hidden, panels + u, sums + u * rows * gates);
    cells_of[l->kind](s, row, rows, unit, units, sums);
    row += rows;
  }
}

void KILN_ISA_CAT2(kiln__recurrent_, KILN_KERNEL_ISA)(const kiln_recurrent_step *s, int64_t begin,
                                                      int64_t end) {
  const int64_t last = end * PARTS;
  const bool is_one = kiln_cell_gates(s->layer->kind) > 1 && s->rows > FEW_ROWS;
  const int most = is_one ? 1 : MOST_UNITS;
  for (int64_t u = begin * PARTS; u < last; u += most)
    run_units(s, u, last - u < most ? (int)(last - u) : most);
}
