/* rnn.c: whole recurrent layers: lstm, gru, rnn_tanh and rnn_relu over a sequence, padded or
 * packed. The products with the input are made for all steps at once. Of floats recurrent.h makes
 * the steps, where the state's weight lies in panels, or there are steps enough to put it there; of
 * the rest each step is made of the operators that it would be in a script. */
#include "base/checked.h"
#include "runtime/kernels/composite.h"
#include "runtime/kernels/heavy/recurrent.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/random/random.h"
#include "runtime/kernels/shape/view.h"

/* Fewer steps are over before the panels of a weight are made. */
enum { LEAST_STEPS = 16 };

typedef struct weights {
  kiln_tensor *w_ih, *w_hh, *b_ih, *b_hh; /* biases may be NULL */
  kiln_tensor *w_hr;                      /* the projection of an LSTM's output; or NULL */
} weights;

/* -- One step -- */

/* functor(a, b), or functor(a) where b is NULL. */
static kiln_tensor *apply(kiln__composite *r, kiln_pw_functor functor, kiln_tensor *a,
                          kiln_tensor *b, bool into_a) {
  if (r->status) return NULL;
  kiln_pw pw = {.functor = functor, .in_count = b ? 2 : 1, .common = kiln_tensor_dtype(a)};
  pw.in[0].tensor = a;
  pw.in[1].tensor = b;
  if (b && !into_a) pw.common = kiln_pw_promote(&pw, 0);
  kiln_ivalue result = into_a ? kiln_of_tensor(a) : kiln_none();
  const bool fine = kiln__composite_ok(r, kiln_pw_run(r->call, &pw, &result));
  if (!into_a) (void)kiln__composite_keep(r, kiln__dest(&result));
  return fine ? result.u.tensor : NULL;
}
#define NEW(functor, a, b) apply(r, KILN_PW_##functor, a, b, false)
#define INTO(functor, a, b) apply(r, KILN_PW_##functor, a, b, true) /* a: nobody else's */

static kiln_tensor *linear(kiln__composite *r, kiln_tensor *x, kiln_tensor *w, kiln_tensor *b) {
  return KILN_STEP(r, linear, T(x), T(w), T(b));
}
static kiln_tensor *at(kiln__composite *r, kiln_tensor *t, int64_t i) {
  return t ? KILN_OWN(r, kiln__select(r->call, t, 0, i, &own_tensor)) : NULL;
}
/* The n-th of `count` equal parts of the last dimension. */
static kiln_tensor *part(kiln__composite *r, kiln_tensor *t, int n, int count) {
  const int64_t size = kiln__composite_size(t, -1) / count;
  return kiln__composite_narrow(r, t, kiln__composite_rank(t) - 1, n * size, size);
}

/* x W_ih + b_ih + h W_hh + b_hh */
static kiln_tensor *gates_of(kiln__composite *r, kiln_tensor *x_gates, kiln_tensor *h,
                             const weights *w) {
  return INTO(add, linear(r, h, w->w_hh, w->b_hh), x_gates);
}
/* The new h; the new c is written to c. */
static kiln_tensor *lstm_step(kiln__composite *r, kiln_tensor *x_gates, kiln_tensor *h,
                              kiln_tensor *c, const weights *w) {
  kiln_tensor *gates = gates_of(r, x_gates, h, w);
  kiln_tensor *input = NEW(sigmoid, part(r, gates, 0, 4), NULL);
  kiln_tensor *forget = NEW(sigmoid, part(r, gates, 1, 4), NULL);
  kiln_tensor *cell = NEW(tanh, part(r, gates, 2, 4), NULL);
  kiln_tensor *output = NEW(sigmoid, part(r, gates, 3, 4), NULL);
  c = INTO(add, INTO(mul, c, forget), INTO(mul, input, cell));
  h = INTO(mul, output, NEW(tanh, c, NULL));
  return w->w_hr ? linear(r, h, w->w_hr, NULL) : h;
}
/* h' = (h - n) z + n, n = tanh(x_n + r h_n): written to h. */
static kiln_tensor *gru_step(kiln__composite *r, kiln_tensor *x_gates, kiln_tensor *h,
                             const weights *w) {
  kiln_tensor *h_gates = linear(r, h, w->w_hh, w->b_hh), *x[3], *y[3];
  for (int i = 0; i < 3; i++) { /* reset, update, new */
    x[i] = part(r, x_gates, i, 3);
    y[i] = part(r, h_gates, i, 3);
  }
  kiln_tensor *reset = INTO(sigmoid, NEW(add, x[0], y[0]), NULL);
  kiln_tensor *update = INTO(sigmoid, NEW(add, x[1], y[1]), NULL);
  kiln_tensor *next = INTO(tanh, INTO(add, INTO(mul, reset, y[2]), x[2]), NULL);
  return INTO(add, INTO(mul, INTO(sub, h, next), update), next);
}
static kiln_tensor *step(kiln__composite *r, kiln_cell_kind kind, kiln_tensor *x_gates,
                         kiln_tensor *h, kiln_tensor *c, const weights *w) {
  if (kind == KILN_CELL_LSTM) return lstm_step(r, x_gates, h, c, w);
  if (kind == KILN_CELL_GRU) return gru_step(r, x_gates, h, w);
  kiln_tensor *gates = gates_of(r, x_gates, h, w);
  return kind == KILN_CELL_TANH ? INTO(tanh, gates, NULL) : INTO(relu, gates, NULL);
}

/* -- Layers -- */

typedef struct layers {
  kiln_cell_kind kind;
  const kiln_list *params;
  const kiln_list *panels; /* of the weights w_hh, one for each cell; NULL: none are made yet */
  int per_cell; /* tensors of a cell in params: 2, or 4 with biases; one more with projections */
  int64_t num_layers;
  double dropout;
  bool biases, projections, train, bidirectional, batch_first;
  /* A packed sequence has its steps one after the other: [total, ...], batch[t] rows of step t. */
  int64_t steps;
  const int64_t *batch; /* NULL: not packed */
} layers;

static weights layer_weights(const layers *l, int64_t index) {
  const kiln_ivalue *p = l->params->items + index * l->per_cell;
  return (weights){p[0].u.tensor, p[1].u.tensor, l->biases ? p[2].u.tensor : NULL,
                   l->biases ? p[3].u.tensor : NULL,
                   l->projections ? p[l->per_cell - 1].u.tensor : NULL};
}

/* -- In panels -- */

/* Of F32, row after row. */
static bool is_dense(const kiln_tensor *t, int64_t rows, int64_t columns) {
  return kiln_tensor_dtype(t) == KILN_DTYPE_F32 && !t->sides &&
         kiln_tensor_device(t).kind == KILN_DEVICE_CPU && kiln_tensor_rank(t) == 2 &&
         kiln_tensor_sizes(t)[0] == rows && kiln_tensor_sizes(t)[1] == columns;
}

/* weight (gates H, H) as recurrent.h has it: [ceil(H / 16), H, gates, 16]; [0] of what it does not
 * take. */
KILN_COMPOSITE(recurrent_panels) {
  kiln_tensor *w = SELF;
  const int64_t gates = kiln_arg_int(args, 1), hidden = kiln__composite_size(w, 1);
  const bool is_known = gates == 1 || gates == 3 || gates == 4;
  if (!is_known || hidden == 0 || hidden > INT64_MAX / 4 || !is_dense(w, gates * hidden, hidden))
    return kiln__composite_empty(r, KILN_DTYPE_F32);
  const int64_t blocks = kiln_recurrent_blocks(hidden), block = KILN_RECURRENT_BLOCK;
  w = kiln__composite_reshape(r, w, 3, (const int64_t[]){gates, hidden, hidden});
  if (hidden % block) {
    w = KILN_STEP(r, constant_pad_nd, T(w), INTS(0, 0, 0, blocks * block - hidden), I(0));
  }
  w = kiln__composite_reshape(r, w, 4, (const int64_t[]){gates, blocks, block, hidden});
  return kiln__composite_copy(r, KILN_STEP(r, permute, T(w), INTS(1, 3, 0, 2)));
}

/* The panels of cell `index`; NULL: it goes without, or a failure. */
static const float *panels_of(kiln__composite *r, const layers *l, int64_t index) {
  const int64_t gates = kiln_cell_gates(l->kind);
  kiln_tensor *w = layer_weights(l, index).w_hh, *panels = NULL;
  if (l->panels) {
    panels = l->panels->items[index].u.tensor;
  } else if (l->steps >= LEAST_STEPS) {
    panels = KILN_STEP(r, recurrent_panels, T(w), I(gates));
  }
  if (!panels || panels->numel == 0) return NULL;
  const int64_t hidden = kiln_tensor_sizes(w)[1];
  const int64_t sizes[] = {kiln_recurrent_blocks(hidden), hidden, gates, KILN_RECURRENT_BLOCK};
  if (kiln_tensor_rank(panels) != 4 || memcmp(kiln_tensor_sizes(panels), sizes, sizeof sizes))
    return FAIL(r, "kiln::recurrent: panels of another weight");
  return kiln__composite_read(r, panels, KILN_DTYPE_F32, &panels);
}

static bool has_panels(const layers *l, const weights *w, const kiln_tensor *input,
                       const kiln_tensor *h, const kiln_tensor *c) {
  const int64_t rows = kiln__composite_size(h, 0), hidden = kiln__composite_size(h, 1),
                width = kiln_cell_gates(l->kind) * hidden;
  const kiln_tensor *b = w->b_hh;
  return hidden > 0 && !w->w_hr && kiln__composite_dtype(input) == KILN_DTYPE_F32 &&
         is_dense(h, rows, hidden) && (!c || is_dense(c, rows, hidden)) &&
         is_dense(w->w_hh, width, hidden) &&
         is_dense(w->w_ih, width, kiln__composite_size(input, -1)) &&
         (!b || (kiln_tensor_rank(b) == 1 && b->numel == width));
}

static float *elements_of(kiln__composite *r, kiln_tensor *t) {
  void *data = NULL;
  if (t) (void)kiln__composite_ok(r, kiln_tensor_writable_data(t, &data));
  return data;
}

/* The directions of the layer whose first cell is `index`, over `input`, where each has panels:
 * writes out, h and c as below. False: nothing was done. */
static bool run_in_panels(kiln__composite *r, const layers *l, int64_t index, int directions,
                          kiln_tensor *input, kiln_tensor *out, kiln_tensor *const *h,
                          kiln_tensor *const *c) {
  const int before = kiln__composite_mark(r);
  kiln_recurrent runs[2];
  for (int d = 0; d < directions; d++) {
    const weights w = layer_weights(l, index + d);
    if (r->status || !has_panels(l, &w, input, h[d], c[d])) return false;
  }
  for (int d = 0; d < directions; d++) {
    const weights w = layer_weights(l, index + d);
    const int64_t hidden = kiln__composite_size(h[d], 1);
    kiln_tensor *made;
    runs[d] = (kiln_recurrent){.kind = l->kind,
                               .reverse = d == 1,
                               .steps = l->steps,
                               .hidden = hidden,
                               .rows = kiln__composite_size(h[d], 0),
                               .batch = l->batch,
                               .panels = panels_of(r, l, index + d),
                               .out_row = hidden * directions};
    if (!runs[d].panels) {
      kiln__composite_drop(r, before);
      return r->status;
    }
    runs[d].input =
        kiln__composite_read(r, linear(r, input, w.w_ih, w.b_ih), KILN_DTYPE_F32, &made);
    if (w.b_hh) runs[d].bias = kiln__composite_read(r, w.b_hh, KILN_DTYPE_F32, &made);
    runs[d].out = elements_of(r, out);
    if (runs[d].out) runs[d].out += d * hidden;
    runs[d].h = elements_of(r, h[d]);
    runs[d].c = elements_of(r, c[d]);
  }
  if (!r->status) kiln_recurrent_run(r->call->dispatch, r->call->pool, runs, directions);
  kiln__composite_drop(r, before);
  return true;
}

/* -- Step by step -- */

/* One direction of one layer over input [T, B, I]: writes outputs to `out` [T, B, H]. h and c are
 * overwritten with the last states; in a packed sequence, row by row, as each one ends. */
static void run_direction(kiln__composite *r, const layers *l, const weights *w, kiln_tensor *input,
                          bool reverse, kiln_tensor *out, kiln_tensor *h, kiln_tensor *c) {
  const int before = kiln__composite_mark(r);
  int64_t row = reverse ? kiln__composite_size(input, 0) : 0;
  /* Of all steps at once. */
  kiln_tensor *gates = linear(r, input, w->w_ih, w->b_ih);
  for (int64_t i = 0; i < l->steps && !r->status; i++) {
    const int mark = kiln__composite_mark(r);
    const int64_t t = reverse ? l->steps - 1 - i : i, rows = l->batch ? l->batch[t] : 0;
    kiln_tensor *x, *to, *now = h, *cell = c;
    (void)kiln__composite_ok(r, kiln_call_check(r->call, 1));
    if (reverse) row -= rows;
    if (l->batch) {
      x = kiln__composite_narrow(r, gates, 0, row, rows);
      to = kiln__composite_narrow(r, out, 0, row, rows);
      now = kiln__composite_narrow(r, h, 0, 0, rows);
      cell = kiln__composite_narrow(r, c, 0, 0, rows);
    } else {
      x = at(r, gates, t);
      to = at(r, out, t);
    }
    kiln_tensor *new_h = step(r, l->kind, x, now, cell, w);
    (void)kiln__composite_put(r, to, new_h);
    if (new_h != now) (void)kiln__composite_put(r, now, new_h);
    if (!reverse) row += rows;
    kiln__composite_drop(r, mark);
  }
  kiln__composite_drop(r, before);
}

/* The place of a cell's last state, which begins as its first one. */
static kiln_tensor *last_state(kiln__composite *r, kiln_tensor *first, kiln_tensor *all,
                               int64_t i) {
  if (!first) return NULL;
  kiln_tensor *to = at(r, all, i);
  (void)kiln__composite_put(r, to, at(r, first, i));
  return to;
}

/* All layers over [T, B, I]; h0, c0 [layers * directions, B, H]; h_n, c_n are written to. */
static kiln_tensor *run_layers(kiln__composite *r, const layers *l, kiln_tensor *x, kiln_tensor *h0,
                               kiln_tensor *c0, kiln_tensor *h_n, kiln_tensor *c_n) {
  const int directions = l->bidirectional ? 2 : 1;
  const int64_t hidden = kiln__composite_size(h0, 2);
  for (int64_t layer = 0; layer < l->num_layers && !r->status; layer++) {
    const int last = kiln_tensor_rank(x) - 1;
    int64_t sizes[3] = {kiln_tensor_sizes(x)[0], kiln_tensor_sizes(x)[1]};
    kiln_tensor *y;
    sizes[last] = hidden * directions;
    (void)kiln__composite_new(r, kiln_tensor_dtype(x), last + 1, sizes, &y);
    const int64_t first = layer * directions;
    kiln_tensor *h[2], *c[2];
    for (int d = 0; d < directions; d++) {
      h[d] = last_state(r, h0, h_n, first + d);
      c[d] = last_state(r, c0, c_n, first + d);
    }
    const bool done = run_in_panels(r, l, first, directions, x, y, h, c);
    for (int d = 0; !done && d < directions; d++) {
      const weights w = layer_weights(l, first + d);
      kiln_tensor *half = kiln__composite_narrow(r, y, last, d * hidden, hidden);
      run_direction(r, l, &w, x, d == 1, half, h[d], c[d]);
    }
    x = y;
    if (x && l->train && l->dropout > 0 && layer + 1 < l->num_layers) {
      x = KILN_OWN(r, kiln__dropout(r->call, x, l->dropout, &own_tensor));
    }
  }
  return x;
}

static kiln_status *check_layers(const layers *l, const kiln_tensor *input, const kiln_tensor *h0) {
  int64_t cells, params;
  if (!kiln_checked_mul_i64(l->num_layers, l->bidirectional ? 2 : 1, &cells) ||
      !kiln_checked_mul_i64(cells, l->per_cell, &params)) {
    return KILN_OP_FAIL("RNN: %lld layers", (long long)l->num_layers);
  }
  if (l->params->count != params) {
    return KILN_OP_FAIL("RNN: %lld parameters where %lld were expected",
                        (long long)l->params->count, (long long)params);
  }
  const int rank = l->batch ? 2 : 3;
  if (kiln_tensor_rank(input) != rank || kiln_tensor_rank(h0) != 3) {
    return KILN_OP_FAIL(
        "RNN: expected input and hidden state to be %d-D and 3-D, got %d-D and %d-D", rank,
        kiln_tensor_rank(input), kiln_tensor_rank(h0));
  }
  const int64_t batch = l->batch ? l->batch[0] : kiln_tensor_sizes(input)[l->batch_first ? 0 : 1];
  if (kiln_tensor_sizes(h0)[0] != cells || kiln_tensor_sizes(h0)[1] != batch) {
    return KILN_OP_FAIL("Expected hidden size (%lld, %lld, ...), got [%lld, %lld, ...]",
                        (long long)cells, (long long)batch, (long long)kiln_tensor_sizes(h0)[0],
                        (long long)kiln_tensor_sizes(h0)[1]);
  }
  if (!l->batch && kiln_tensor_sizes(input)[l->batch_first ? 1 : 0] == 0) {
    return KILN_OP_FAIL("Expected sequence length to be larger than 0 in RNN");
  }
  if (l->kind == KILN_CELL_LSTM && kiln_tensor_sizes(h0)[2] == 0) {
    return KILN_OP_FAIL("LSTM: expected a hidden size larger than 0"); /* as PyTorch's oneDNN */
  }
  return NULL;
}

/* A new one of the same sizes; NULL of NULL. */
static kiln_tensor *new_like(kiln__composite *r, const kiln_tensor *t) {
  kiln_tensor *out = NULL;
  if (t) {
    (void)kiln__composite_new(r, kiln_tensor_dtype(t), 3, kiln_tensor_sizes(t), &out);
  }
  return out;
}
/* The whole operator: layout of the input, states, and back. */
static kiln_tensor *recurrent(kiln__composite *r, layers *l, kiln_tensor *x, kiln_tensor *h0,
                              kiln_tensor *c0, kiln_ivalue *outs) {
  if (!kiln__composite_ok(r, check_layers(l, x, h0))) return NULL;
  if (!l->batch) l->steps = kiln_tensor_sizes(x)[l->batch_first ? 1 : 0];
  if (l->batch_first) x = KILN_STEP(r, transpose, T(x), I(0), I(1));
  kiln_tensor *h_n = new_like(r, h0), *c_n = new_like(r, c0);
  x = run_layers(r, l, x, h0, c0, h_n, c_n);
  if (l->batch_first) x = KILN_STEP(r, transpose, T(x), I(0), I(1));
  kiln__composite_give(r, &outs[1], h_n);
  if (c_n) kiln__composite_give(r, &outs[2], c_n);
  return x;
}
/* params at args[at], has_biases, num_layers, dropout, train, bidirectional */
static layers layers_of(const kiln_ivalue *args, int at, kiln_cell_kind kind, const kiln_tensor *h0,
                        const kiln_tensor *c0) {
  layers l = {.kind = kind,
              .params = kiln_arg_list(args, at),
              .biases = kiln_arg_bool(args, at + 1),
              .num_layers = kiln_arg_int(args, at + 2),
              .dropout = kiln_arg_float(args, at + 3),
              .train = kiln_arg_bool(args, at + 4),
              .bidirectional = kiln_arg_bool(args, at + 5)};
  l.projections = c0 && kiln_tensor_rank(h0) == 3 && kiln_tensor_rank(c0) == 3 &&
                  kiln_tensor_sizes(h0)[2] != kiln_tensor_sizes(c0)[2];
  l.per_cell = (l.biases ? 4 : 2) + l.projections;
  return l;
}
static bool two_states(kiln__composite *r, const kiln_list *hx, kiln_tensor **h0,
                       kiln_tensor **c0) {
  if (hx->count != 2) return FAIL(r, "lstm expects two hidden states");
  *h0 = hx->items[0].u.tensor;
  *c0 = hx->items[1].u.tensor;
  return true;
}
/* input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first */
static kiln_tensor *padded(kiln__composite *r, const kiln_ivalue *args, kiln_cell_kind kind,
                           kiln_tensor *h0, kiln_tensor *c0, kiln_ivalue *outs) {
  layers l = layers_of(args, 2, kind, h0, c0);
  l.batch_first = kiln_arg_bool(args, 8);
  return recurrent(r, &l, SELF, h0, c0, outs);
}
/* Rows of each step of packed data. */
static bool set_batch(kiln__composite *r, layers *l, const kiln_tensor *data,
                      kiln_tensor *batch_sizes) {
  kiln_tensor *sizes;
  l->batch = kiln__composite_read(r, batch_sizes, KILN_DTYPE_I64, &sizes);
  if (r->status) return false;
  int64_t rows = 0;
  bool fits = kiln_tensor_rank(sizes) == 1 && sizes->numel > 0 && kiln_tensor_rank(data) == 2;
  l->steps = sizes->numel;
  for (int64_t t = 0; fits && t < l->steps; t++) { /* they do not grow */
    fits = l->batch[t] > 0 && l->batch[t] <= l->batch[t ? t - 1 : 0] &&
           kiln_checked_add_i64(rows, l->batch[t], &rows);
  }
  if (fits && rows == kiln_tensor_sizes(data)[0]) return true;
  return FAIL(r, "RNN: batch_sizes do not fit the packed data of %lld rows",
              (long long)(kiln_tensor_rank(data) ? kiln_tensor_sizes(data)[0] : 1));
}
/* data, batch_sizes, hx, then as above without batch_first */
static kiln_tensor *packed(kiln__composite *r, const kiln_ivalue *args, kiln_cell_kind kind,
                           kiln_tensor *h0, kiln_tensor *c0, kiln_ivalue *outs) {
  layers l = layers_of(args, 3, kind, h0, c0);
  return set_batch(r, &l, SELF, ARG(1)) ? recurrent(r, &l, SELF, h0, c0, outs) : NULL;
}
KILN_COMPOSITE(lstm_input) {
  kiln_tensor *h0, *c0;
  if (!two_states(r, kiln_arg_list(args, 1), &h0, &c0)) return NULL;
  return padded(r, args, KILN_CELL_LSTM, h0, c0, outs);
}
KILN_COMPOSITE(lstm_data) {
  kiln_tensor *h0, *c0;
  if (!two_states(r, kiln_arg_list(args, 2), &h0, &c0)) return NULL;
  return packed(r, args, KILN_CELL_LSTM, h0, c0, outs);
}
#define LAYERS(name, cell_of)                                                           \
  KILN_COMPOSITE(name##_input) { return padded(r, args, cell_of, ARG(1), NULL, outs); } \
  KILN_COMPOSITE(name##_data) { return packed(r, args, cell_of, ARG(2), NULL, outs); }
LAYERS(gru, KILN_CELL_GRU)
LAYERS(rnn_tanh, KILN_CELL_TANH)
LAYERS(rnn_relu, KILN_CELL_RELU)

/* As lstm.input, then batch_sizes (None: not packed), the cell and the panels; of a cell with one
 * state the last result is empty. */
KILN_COMPOSITE(recurrent) {
  const kiln_list *hx = kiln_arg_list(args, 1), *panels = kiln_arg_list(args, 11);
  const int64_t kind = kiln_arg_int(args, 10);
  kiln_tensor *h0 = NULL, *c0 = NULL;
  if (kind < 0 || kind >= KILN_CELL__COUNT) return FAIL(r, "kiln::recurrent: no such cell");
  if (kind == KILN_CELL_LSTM) {
    if (!two_states(r, hx, &h0, &c0)) return NULL;
  } else {
    if (hx->count != 1) return FAIL(r, "kiln::recurrent: the cell has one state");
    h0 = hx->items[0].u.tensor;
    kiln__composite_give(r, &outs[2], kiln__composite_empty(r, KILN_DTYPE_F32));
  }
  layers l = layers_of(args, 2, (kiln_cell_kind)kind, h0, c0);
  l.batch_first = kiln_arg_bool(args, 8);
  if (panels->count > 0 && panels->count != l.params->count / l.per_cell)
    return FAIL(r, "kiln::recurrent: panels of other cells");
  if (panels->count > 0) l.panels = panels;
  if (!kiln_arg_is_none(args, 9) && !set_batch(r, &l, SELF, ARG(9))) return NULL;
  return recurrent(r, &l, SELF, h0, c0, outs);
}
