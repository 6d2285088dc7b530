/* rnn.c: whole recurrent layers: lstm, gru, rnn_tanh and rnn_relu over a sequence, padded or
 * packed. The products with the input are made for all steps at once. */
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/random/random.h"
#include "runtime/kernels/shape/view.h"

/* -- Small steps. Each takes its operands (released) unless it says "keeps". -- */

static void drop(kiln_call *call, kiln_tensor *t) { kiln_tensor_release_to(&call->cache, t); }
/* A result that is not to be had: whoever called releases what is there. */
static void withdraw(kiln_call *call, kiln_tensor **out) {
  drop(call, *out);
  *out = NULL;
}

/* functor(a, b) or functor(a) where b is NULL; keeps both. */
static kiln_status *keep(kiln_call *call, kiln_pw_functor functor, kiln_tensor *a, kiln_tensor *b,
                         kiln_tensor **out) {
  kiln_pw pw = {.functor = functor, .in_count = b ? 2 : 1};
  pw.in[0].tensor = a;
  pw.in[1].tensor = b;
  pw.common = b ? kiln_pw_promote(&pw, 0) : kiln_tensor_dtype(a);
  kiln_ivalue result = kiln_none();
  kiln_status *status = kiln_pw_run(call, &pw, &result);
  if (status) {
    kiln_ivalue_release_to(&call->cache, result);
    return status;
  }
  *out = result.u.tensor;
  return NULL;
}
/* The same written to a, which must be of the result's shape and nobody else's. */
static kiln_status *into(kiln_call *call, kiln_pw_functor functor, kiln_tensor *a, kiln_tensor *b) {
  kiln_pw pw = {.functor = functor, .in_count = b ? 2 : 1, .common = kiln_tensor_dtype(a)};
  pw.in[0].tensor = a;
  pw.in[1].tensor = b;
  kiln_ivalue result = kiln_of_tensor(a);
  return kiln_pw_run(call, &pw, &result);
}

/* x W^T + b; b may be NULL. Keeps all. */
static kiln_status *linear(kiln_call *call, kiln_tensor *x, kiln_tensor *w, kiln_tensor *b,
                           kiln_tensor **out) {
  const kiln_ivalue args[3] = {kiln_of_tensor(x), kiln_of_tensor(w),
                               b ? kiln_of_tensor(b) : kiln_none()};
  kiln_ivalue result = kiln_none();
  kiln_status *status = kiln_kernel_step(call, KILN_BODY_OF(linear), args, 3, &result);
  if (status) {
    kiln_ivalue_release_to(&call->cache, result);
    return status;
  }
  *out = result.u.tensor;
  return NULL;
}

typedef enum cell_kind { CELL_TANH, CELL_RELU, CELL_LSTM, CELL_GRU } cell_kind;
typedef struct weights {
  kiln_tensor *w_ih, *w_hh, *b_ih, *b_hh; /* biases may be NULL */
  kiln_tensor *w_hr;                      /* the projection of an LSTM's output; or NULL */
} weights;

/* x W_ih + b_ih + h W_hh + b_hh */
static kiln_status *gates_of(kiln_call *call, kiln_tensor *x_gates, kiln_tensor *h,
                             const weights *w, kiln_tensor **out) {
  KILN_TRY(linear(call, h, w->w_hh, w->b_hh, out));
  kiln_status *status = into(call, KILN_PW_add, *out, x_gates);
  if (status) withdraw(call, out);
  return status;
}
/* The n-th of `count` equal parts of the last dimension. */
static kiln_status *part(kiln_call *call, kiln_tensor *t, int n, int count, kiln_tensor **out) {
  int dim = kiln_tensor_rank(t) - 1;
  int64_t size = kiln_tensor_sizes(t)[dim] / count;
  return kiln__narrow(call, t, dim, n * size, size, out);
}

static kiln_status *lstm_step(kiln_call *call, kiln_tensor *x_gates, kiln_tensor *h, kiln_tensor *c,
                              const weights *w, kiln_tensor **out_h, kiln_tensor **out_c) {
  static const kiln_pw_functor functors[4] = {KILN_PW_sigmoid, KILN_PW_sigmoid, KILN_PW_tanh,
                                              KILN_PW_sigmoid};
  kiln_tensor *gates = NULL, *g[4] = {NULL, NULL, NULL, NULL}, *kept = NULL, *added = NULL;
  kiln_tensor *turned = NULL;
  kiln_status *status = gates_of(call, x_gates, h, w, &gates);
  for (int i = 0; i < 4 && !status; i++) { /* input, forget, cell, output */
    kiln_tensor *view;
    status = part(call, gates, i, 4, &view);
    if (status) break;
    status = keep(call, functors[i], view, NULL, &g[i]);
    drop(call, view);
  }
  if (!status) status = keep(call, KILN_PW_mul, g[1], c, &kept);
  if (!status) status = keep(call, KILN_PW_mul, g[0], g[2], &added);
  if (!status) status = into(call, KILN_PW_add, kept, added);
  if (!status) status = keep(call, KILN_PW_tanh, kept, NULL, &turned);
  if (!status) status = keep(call, KILN_PW_mul, g[3], turned, out_h);
  if (!status && w->w_hr) {
    kiln_tensor *wide = *out_h;
    *out_h = NULL;
    status = linear(call, wide, w->w_hr, NULL, out_h);
    drop(call, wide);
  }
  if (!status)
    *out_c = kept;
  else
    drop(call, kept);
  drop(call, gates);
  drop(call, added);
  drop(call, turned);
  for (int i = 0; i < 4; i++) drop(call, g[i]);
  return status;
}

/* h' = (h - n) z + n, n = tanh(x_n + r h_n) */
static kiln_status *gru_step(kiln_call *call, kiln_tensor *x_gates, kiln_tensor *h,
                             const weights *w, kiln_tensor **out_h) {
  kiln_tensor *h_gates = NULL, *x[3] = {0}, *y[3] = {0}, *reset = NULL, *update = NULL,
              *next = NULL, *result = NULL;
  kiln_status *status = linear(call, h, w->w_hh, w->b_hh, &h_gates);
  for (int i = 0; i < 3 && !status; i++) { /* reset, update, new */
    status = part(call, x_gates, i, 3, &x[i]);
    if (!status) status = part(call, h_gates, i, 3, &y[i]);
  }
  if (!status) status = keep(call, KILN_PW_add, x[0], y[0], &reset);
  if (!status) status = into(call, KILN_PW_sigmoid, reset, NULL);
  if (!status) status = keep(call, KILN_PW_add, x[1], y[1], &update);
  if (!status) status = into(call, KILN_PW_sigmoid, update, NULL);
  if (!status) status = keep(call, KILN_PW_mul, reset, y[2], &next);
  if (!status) status = into(call, KILN_PW_add, next, x[2]);
  if (!status) status = into(call, KILN_PW_tanh, next, NULL);
  if (!status) status = keep(call, KILN_PW_sub, h, next, &result);
  if (!status) status = into(call, KILN_PW_mul, result, update);
  if (!status) status = into(call, KILN_PW_add, result, next);
  if (!status)
    *out_h = result;
  else
    drop(call, result);
  drop(call, h_gates);
  drop(call, reset);
  drop(call, update);
  drop(call, next);
  for (int i = 0; i < 3; i++) drop(call, x[i]), drop(call, y[i]);
  return status;
}

static kiln_status *step(kiln_call *call, cell_kind kind, kiln_tensor *x_gates, kiln_tensor *h,
                         kiln_tensor *c, const weights *w, kiln_tensor **out_h,
                         kiln_tensor **out_c) {
  if (kind == CELL_LSTM) return lstm_step(call, x_gates, h, c, w, out_h, out_c);
  if (kind == CELL_GRU) return gru_step(call, x_gates, h, w, out_h);
  KILN_TRY(gates_of(call, x_gates, h, w, out_h));
  kiln_status *status = into(call, kind == CELL_TANH ? KILN_PW_tanh : KILN_PW_relu, *out_h, NULL);
  if (status) withdraw(call, out_h);
  return status;
}

/* -- Layers -- */

typedef struct layers {
  cell_kind kind;
  const kiln_list *params;
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

/* What one step reads and writes. */
typedef struct moment {
  kiln_tensor *gates, *h, *c, *out; /* views */
} moment;
static void end_moment(kiln_call *call, moment *m) {
  drop(call, m->gates);
  drop(call, m->h);
  drop(call, m->c);
  drop(call, m->out);
}
/* Step t, whose rows begin at `row` of a packed sequence. */
static kiln_status *begin_moment(kiln_call *call, const layers *l, int64_t t, int64_t row,
                                 kiln_tensor *gates, kiln_tensor *out, kiln_tensor *h,
                                 kiln_tensor *c, moment *m) {
  *m = (moment){0};
  if (!l->batch) {
    m->h = kiln_tensor_retain(h);
    m->c = c ? kiln_tensor_retain(c) : NULL;
    KILN_TRY(kiln__select(call, gates, 0, t, &m->gates));
    return kiln__select(call, out, 0, t, &m->out);
  }
  KILN_TRY(kiln__narrow(call, gates, 0, row, l->batch[t], &m->gates));
  KILN_TRY(kiln__narrow(call, out, 0, row, l->batch[t], &m->out));
  KILN_TRY(kiln__narrow(call, h, 0, 0, l->batch[t], &m->h));
  return c ? kiln__narrow(call, c, 0, 0, l->batch[t], &m->c) : NULL;
}

/* One direction of one layer over input [T, B, I]: writes outputs to `out` [T, B, H]. h and c are
 * overwritten with the last states; in a packed sequence, row by row, as each one ends. */
static kiln_status *run_direction(kiln_call *call, const layers *l, const weights *w,
                                  kiln_tensor *input, bool reverse, kiln_tensor *out,
                                  kiln_tensor *h, kiln_tensor *c) {
  int64_t row = reverse ? kiln_tensor_sizes(input)[0] : 0;
  kiln_tensor *gates; /* of all steps at once */
  KILN_TRY(linear(call, input, w->w_ih, w->b_ih, &gates));
  kiln_status *status = NULL;
  for (int64_t i = 0; i < l->steps && !status; i++) {
    int64_t t = reverse ? l->steps - 1 - i : i;
    kiln_tensor *new_h = NULL, *new_c = NULL;
    moment m = {0};
    if (reverse && l->batch) row -= l->batch[t];
    status = kiln_call_check(call, 1);
    if (!status) status = begin_moment(call, l, t, row, gates, out, h, c, &m);
    if (!status) status = step(call, l->kind, m.gates, m.h, m.c, w, &new_h, &new_c);
    if (!status) status = kiln_pw_copy(call, m.out, new_h);
    if (!status) status = kiln_pw_copy(call, m.h, new_h);
    if (!status && new_c) status = kiln_pw_copy(call, m.c, new_c);
    if (!reverse && l->batch) row += l->batch[t];
    drop(call, new_h);
    drop(call, new_c);
    end_moment(call, &m);
  }
  drop(call, gates);
  return status;
}

/* The place of a cell's last state, which begins as its first one. */
static kiln_status *last_state(kiln_call *call, kiln_tensor *first, kiln_tensor *all, int64_t at,
                               kiln_tensor **out) {
  kiln_tensor *from;
  KILN_TRY(kiln__select(call, first, 0, at, &from));
  kiln_status *status = kiln__select(call, all, 0, at, out);
  if (!status) status = kiln_pw_copy(call, *out, from);
  drop(call, from);
  return status;
}

/* All layers over [T, B, I]; h0, c0 [layers * directions, B, H]; h_n, c_n are written to. */
static kiln_status *run_layers(kiln_call *call, const layers *l, kiln_tensor *input,
                               kiln_tensor *h0, kiln_tensor *c0, kiln_tensor *h_n, kiln_tensor *c_n,
                               kiln_tensor **out) {
  int directions = l->bidirectional ? 2 : 1;
  kiln_tensor *x = kiln_tensor_retain(input);
  kiln_status *status = NULL;
  for (int64_t layer = 0; layer < l->num_layers && !status; layer++) {
    int64_t hidden = kiln_tensor_sizes(h0)[2];
    const int last = kiln_tensor_rank(x) - 1;
    int64_t sizes[3] = {kiln_tensor_sizes(x)[0], kiln_tensor_sizes(x)[1]};
    kiln_tensor *y = NULL;
    sizes[last] = hidden * directions;
    status = kiln_call_tensor(call, kiln_tensor_dtype(x), last + 1, sizes, &y);
    for (int d = 0; d < directions && !status; d++) {
      int64_t at = layer * directions + d;
      weights w = layer_weights(l, at);
      kiln_tensor *h = NULL, *c = NULL, *half = NULL;
      status = last_state(call, h0, h_n, at, &h);
      if (!status && c0) status = last_state(call, c0, c_n, at, &c);
      if (!status) status = kiln__narrow(call, y, last, d * hidden, hidden, &half);
      if (!status) status = run_direction(call, l, &w, x, d == 1, half, h, c);
      drop(call, h);
      drop(call, c);
      drop(call, half);
    }
    drop(call, x);
    x = y;
    if (!status && l->train && l->dropout > 0 && layer + 1 < l->num_layers) {
      kiln_tensor *dropped;
      status = kiln__dropout(call, x, l->dropout, &dropped);
      if (!status) {
        drop(call, x);
        x = dropped;
      }
    }
  }
  if (status) {
    drop(call, x);
    return status;
  }
  *out = x;
  return NULL;
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
  if (l->kind == CELL_LSTM && kiln_tensor_sizes(h0)[2] == 0) {
    return KILN_OP_FAIL("LSTM: expected a hidden size larger than 0"); /* as PyTorch's oneDNN */
  }
  return NULL;
}

/* The whole operator: layout of the input, states, and back. */
static kiln_status *recurrent(kiln_call *call, layers *l, kiln_tensor *input, kiln_tensor *h0,
                              kiln_tensor *c0, kiln_ivalue *outs) {
  KILN_TRY(check_layers(l, input, h0));
  if (!l->batch) l->steps = kiln_tensor_sizes(input)[l->batch_first ? 1 : 0];
  kiln_tensor *x = NULL, *h_n = NULL, *c_n = NULL, *y = NULL, *result = NULL;
  kiln_status *status = NULL;
  if (l->batch_first)
    status = kiln__transpose(call, input, 0, 1, &x);
  else
    x = kiln_tensor_retain(input);
  if (!status) {
    status = kiln_call_tensor(call, kiln_tensor_dtype(h0), 3, kiln_tensor_sizes(h0), &h_n);
  }
  if (!status && c0) {
    status = kiln_call_tensor(call, kiln_tensor_dtype(c0), 3, kiln_tensor_sizes(c0), &c_n);
  }
  if (!status) status = run_layers(call, l, x, h0, c0, h_n, c_n, &y);
  if (!status && l->batch_first)
    status = kiln__transpose(call, y, 0, 1, &result);
  else if (!status)
    result = kiln_tensor_retain(y);
  drop(call, x);
  drop(call, y);
  if (status) {
    drop(call, h_n);
    drop(call, c_n);
    return status;
  }
  kiln__give(&outs[0], result);
  kiln__give(&outs[1], h_n);
  if (c_n) kiln__give(&outs[2], c_n);
  return NULL;
}
/* params at args[at], has_biases, num_layers, dropout, train, bidirectional */
static layers layers_of(const kiln_ivalue *args, int at, cell_kind kind, const kiln_tensor *h0,
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
static kiln_status *two_states(const kiln_list *hx, kiln_tensor **h0, kiln_tensor **c0) {
  if (hx->count != 2) return KILN_OP_FAIL("lstm expects two hidden states");
  *h0 = hx->items[0].u.tensor;
  *c0 = hx->items[1].u.tensor;
  return NULL;
}
/* input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first */
KILN_KERNEL(lstm_input) {
  kiln_tensor *h0, *c0;
  KILN_TRY(two_states(kiln_arg_list(args, 1), &h0, &c0));
  layers l = layers_of(args, 2, CELL_LSTM, h0, c0);
  l.batch_first = kiln_arg_bool(args, 8);
  return recurrent(call, &l, kiln_arg_tensor(args, 0), h0, c0, outs);
}
/* data, batch_sizes, hx, then as above without batch_first */
static kiln_status *packed(kiln_call *call, const kiln_ivalue *args, cell_kind kind,
                           kiln_tensor *h0, kiln_tensor *c0, kiln_ivalue *outs) {
  layers l = layers_of(args, 3, kind, h0, c0);
  kiln_tensor *sizes;
  const kiln_tensor *data = kiln_arg_tensor(args, 0);
  KILN_TRY(kiln__as_dtype(call, kiln_arg_tensor(args, 1), KILN_DTYPE_I64, &sizes));
  int64_t rows = 0;
  bool fits = kiln_tensor_rank(sizes) == 1 && sizes->numel > 0 && kiln_tensor_rank(data) == 2;
  l.batch = kiln_tensor_data(sizes);
  l.steps = sizes->numel;
  for (int64_t t = 0; fits && t < l.steps; t++) { /* they do not grow */
    fits =
        l.batch[t] > 0 && l.batch[t] <= l.batch[0] && kiln_checked_add_i64(rows, l.batch[t], &rows);
  }
  kiln_status *status =
      fits && rows == kiln_tensor_sizes(data)[0]
          ? recurrent(call, &l, kiln_arg_tensor(args, 0), h0, c0, outs)
          : KILN_OP_FAIL("RNN: batch_sizes do not fit the packed data of %lld rows",
                         (long long)(kiln_tensor_rank(data) ? kiln_tensor_sizes(data)[0] : 1));
  drop(call, sizes);
  return status;
}
KILN_KERNEL(lstm_data) {
  kiln_tensor *h0, *c0;
  KILN_TRY(two_states(kiln_arg_list(args, 2), &h0, &c0));
  return packed(call, args, CELL_LSTM, h0, c0, outs);
}
#define LAYERS(name, cell_of)                                                 \
  KILN_KERNEL(name##_input) {                                                 \
    kiln_tensor *h0 = kiln_arg_tensor(args, 1);                               \
    layers l = layers_of(args, 2, cell_of, h0, NULL);                         \
    l.batch_first = kiln_arg_bool(args, 8);                                   \
    return recurrent(call, &l, kiln_arg_tensor(args, 0), h0, NULL, outs);     \
  }                                                                           \
  KILN_KERNEL(name##_data) {                                                  \
    return packed(call, args, cell_of, kiln_arg_tensor(args, 2), NULL, outs); \
  }
LAYERS(gru, CELL_GRU)
LAYERS(rnn_tanh, CELL_TANH)
LAYERS(rnn_relu, CELL_RELU)
