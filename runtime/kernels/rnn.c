/* rnn.c: whole recurrent layers: lstm, gru, rnn_tanh and rnn_relu over a sequence. The products
 * with the input are made for all steps at once. */
#include <string.h>

#include "runtime/kernels/iter.h"
#include "runtime/kernels/view.h"

/* -- Small steps. Each takes its operands (released) unless it says "keeps". -- */

static void drop(kiln_call *call, kiln_tensor *t) { kiln_tensor_release_to(&call->cache, t); }

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

kiln_status *kiln__kernel_linear(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs);
/* x W^T + b; b may be NULL. Keeps all. */
static kiln_status *linear(kiln_call *call, kiln_tensor *x, kiln_tensor *w, kiln_tensor *b,
                           kiln_tensor **out) {
  const kiln_ivalue args[3] = {kiln_of_tensor(x), kiln_of_tensor(w),
                               b ? kiln_of_tensor(b) : kiln_none()};
  kiln_ivalue result = kiln_none();
  kiln_status *status = kiln__kernel_linear(call, args, &result);
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
} weights;

/* x W_ih + b_ih + h W_hh + b_hh */
static kiln_status *gates_of(kiln_call *call, kiln_tensor *x_gates, kiln_tensor *h,
                             const weights *w, kiln_tensor **out) {
  KILN_TRY(linear(call, h, w->w_hh, w->b_hh, out));
  kiln_status *status = into(call, KILN_PW_add, *out, x_gates);
  if (status) drop(call, *out);
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
  if (status) drop(call, *out_h);
  return status;
}

/* -- Layers -- */

typedef struct layers {
  cell_kind kind;
  const kiln_list *params;
  int per_cell; /* tensors of a cell in params: 2, or 4 with biases (LSTM projections: not here) */
  int64_t num_layers;
  double dropout;
  bool train, bidirectional, batch_first;
} layers;

static weights layer_weights(const layers *l, int64_t index) {
  const kiln_ivalue *p = l->params->items + index * l->per_cell;
  bool biases = l->per_cell == 4;
  return (weights){p[0].u.tensor, p[1].u.tensor, biases ? p[2].u.tensor : NULL,
                   biases ? p[3].u.tensor : NULL};
}

/* One direction of one layer over input [T, B, I]: writes outputs to `out` [T, B, H]. h and c
 * (owned) become the last states. */
static kiln_status *run_direction(kiln_call *call, const layers *l, const weights *w,
                                  kiln_tensor *input, bool reverse, kiln_tensor *out,
                                  kiln_tensor **h, kiln_tensor **c) {
  int64_t steps = kiln_tensor_sizes(input)[0];
  kiln_tensor *gates; /* of all steps at once */
  KILN_TRY(linear(call, input, w->w_ih, w->b_ih, &gates));
  kiln_status *status = NULL;
  for (int64_t i = 0; i < steps && !status; i++) {
    int64_t t = reverse ? steps - 1 - i : i;
    kiln_tensor *x = NULL, *to = NULL, *new_h = NULL, *new_c = NULL;
    status = kiln_call_check(call, 1);
    if (!status) status = kiln__select(call, gates, 0, t, &x);
    if (!status) status = step(call, l->kind, x, *h, *c, w, &new_h, &new_c);
    drop(call, x);
    if (status) break;
    drop(call, *h);
    *h = new_h;
    if (new_c) {
      drop(call, *c);
      *c = new_c;
    }
    status = kiln__select(call, out, 0, t, &to);
    if (!status) status = kiln_pw_copy(call, to, new_h);
    drop(call, to);
  }
  drop(call, gates);
  return status;
}

/* x * mask / (1 - p), mask random; as a new tensor. */
kiln_status *kiln__dropout(kiln_call *call, kiln_tensor *t, double p, kiln_tensor **out);

/* All layers over [T, B, I]; h0, c0 [layers * directions, B, H]; h_n, c_n are written to. */
static kiln_status *run_layers(kiln_call *call, const layers *l, kiln_tensor *input,
                               kiln_tensor *h0, kiln_tensor *c0, kiln_tensor *h_n, kiln_tensor *c_n,
                               kiln_tensor **out) {
  int directions = l->bidirectional ? 2 : 1;
  kiln_tensor *x = kiln_tensor_retain(input);
  kiln_status *status = NULL;
  for (int64_t layer = 0; layer < l->num_layers && !status; layer++) {
    int64_t hidden = kiln_tensor_sizes(h0)[2];
    int64_t sizes[3] = {kiln_tensor_sizes(x)[0], kiln_tensor_sizes(x)[1], hidden * directions};
    kiln_tensor *y = NULL;
    status = kiln_call_tensor(call, kiln_tensor_dtype(x), 3, sizes, &y);
    for (int d = 0; d < directions && !status; d++) {
      int64_t at = layer * directions + d;
      weights w = layer_weights(l, at);
      kiln_tensor *h = NULL, *c = NULL, *half = NULL, *last = NULL;
      status = kiln__select(call, h0, 0, at, &h);
      if (!status && c0) status = kiln__select(call, c0, 0, at, &c);
      if (!status) status = kiln__narrow(call, y, 2, d * hidden, hidden, &half);
      if (!status) status = run_direction(call, l, &w, x, d == 1, half, &h, &c);
      for (int k = 0; k < (c0 ? 2 : 1) && !status; k++) {
        status = kiln__select(call, k ? c_n : h_n, 0, at, &last);
        if (!status) status = kiln_pw_copy(call, last, k ? c : h);
        drop(call, last);
        last = NULL;
      }
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
    return KILN_ERROR(KILN_UNSUPPORTED,
                      "recurrent layers with projections: %lld parameters where "
                      "%lld were expected",
                      (long long)l->params->count, (long long)params);
  }
  if (kiln_tensor_rank(input) != 3 || kiln_tensor_rank(h0) != 3) {
    return KILN_OP_FAIL("RNN: expected input and hidden state to be 3-D, got %d-D and %d-D",
                        kiln_tensor_rank(input), kiln_tensor_rank(h0));
  }
  int64_t batch = kiln_tensor_sizes(input)[l->batch_first ? 0 : 1];
  if (kiln_tensor_sizes(h0)[0] != cells || kiln_tensor_sizes(h0)[1] != batch) {
    return KILN_OP_FAIL("Expected hidden size (%lld, %lld, ...), got [%lld, %lld, ...]",
                        (long long)cells, (long long)batch, (long long)kiln_tensor_sizes(h0)[0],
                        (long long)kiln_tensor_sizes(h0)[1]);
  }
  if (kiln_tensor_sizes(input)[l->batch_first ? 1 : 0] == 0) {
    return KILN_OP_FAIL("Expected sequence length to be larger than 0 in RNN");
  }
  return NULL;
}

/* The whole operator: layout of the input, states, and back. */
static kiln_status *recurrent(kiln_call *call, const layers *l, kiln_tensor *input, kiln_tensor *h0,
                              kiln_tensor *c0, kiln_ivalue *outs) {
  KILN_TRY(check_layers(l, input, h0));
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
/* input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first */
static layers layers_of(const kiln_ivalue *args, cell_kind kind) {
  return (layers){.kind = kind,
                  .params = kiln_arg_list(args, 2),
                  .per_cell = kiln_arg_bool(args, 3) ? 4 : 2,
                  .num_layers = kiln_arg_int(args, 4),
                  .dropout = kiln_arg_float(args, 5),
                  .train = kiln_arg_bool(args, 6),
                  .bidirectional = kiln_arg_bool(args, 7),
                  .batch_first = kiln_arg_bool(args, 8)};
}
KILN_KERNEL(lstm_input) {
  const kiln_list *hx = kiln_arg_list(args, 1);
  if (hx->count != 2) return KILN_OP_FAIL("lstm expects two hidden states");
  layers l = layers_of(args, CELL_LSTM);
  return recurrent(call, &l, kiln_arg_tensor(args, 0), hx->items[0].u.tensor, hx->items[1].u.tensor,
                   outs);
}
#define LAYERS(name, cell_of)                                                                   \
  KILN_KERNEL(name) {                                                                           \
    layers l = layers_of(args, cell_of);                                                        \
    return recurrent(call, &l, kiln_arg_tensor(args, 0), kiln_arg_tensor(args, 1), NULL, outs); \
  }
LAYERS(gru_input, CELL_GRU)
LAYERS(rnn_tanh_input, CELL_TANH)
LAYERS(rnn_relu_input, CELL_RELU)
