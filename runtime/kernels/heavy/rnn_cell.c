/* rnn_cell.c: one step of recurrent layers: gru_cell, lstm_cell, rnn_tanh_cell, rnn_relu_cell.
 * Two products give all gates; the rest is pointwise, row by row, with the loops and so the bits of
 * the pointwise operators. */
#include "runtime/kernels/nn/nn.h"

typedef struct cell {
  int64_t batch, hidden;
  int gates;
  kiln_tensor *ih, *hh; /* [batch, gates * hidden] */
} cell;

static kiln_status *check_hidden(const kiln_tensor *input, const kiln_tensor *hx, int64_t hidden) {
  if (kiln_tensor_rank(hx) != 2) {
    return KILN_OP_FAIL("hidden0 must be 2-dimensional, got %s", kiln__sizes_of(hx).text);
  }
  const int64_t *is = kiln_tensor_sizes(input), *hs = kiln_tensor_sizes(hx);
  if (is[0] != hs[0]) {
    return KILN_OP_FAIL("Input batch size %lld doesn't match hidden0 batch size %lld",
                        (long long)is[0], (long long)hs[0]);
  }
  if (hs[1] != hidden) {
    return KILN_OP_FAIL("hidden0 has inconsistent hidden_size: got %lld, expected %lld",
                        (long long)hs[1], (long long)hidden);
  }
  return NULL;
}
/* Checks, and both products. args: input, hidden state(s), w_ih, w_hh, b_ih, b_hh. */
static kiln_status *begin_cell(kiln__nn *nn, cell *c, int gates, const kiln_ivalue *args,
                               kiln_tensor *hx, kiln_tensor *cx) {
  kiln_tensor *input = SELF;
  kiln_tensor *w_ih = ARG(2), *w_hh = ARG(3);
  kiln_tensor *b_ih = kiln_arg_tensor_opt(args, 4), *b_hh = kiln_arg_tensor_opt(args, 5);
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(input)));
  if (kiln_tensor_rank(input) != 2 || kiln_tensor_rank(w_ih) != 2 || kiln_tensor_rank(w_hh) != 2) {
    return KILN_OP_FAIL(
        "a recurrent cell expects a 2-dimensional input and weights, got %s, %s, %s",
        kiln__sizes_of(input).text, kiln__sizes_of(w_ih).text, kiln__sizes_of(w_hh).text);
  }
  const int64_t input_size = kiln_tensor_sizes(w_ih)[1], hidden = kiln_tensor_sizes(w_hh)[1];
  if (kiln_tensor_sizes(input)[1] != input_size) {
    return KILN_OP_FAIL("input has inconsistent input_size: got %lld expected %lld",
                        (long long)kiln_tensor_sizes(input)[1], (long long)input_size);
  }
  KILN_TRY(check_hidden(input, hx, hidden));
  if (cx) KILN_TRY(check_hidden(input, cx, hidden));
  if (kiln_tensor_sizes(w_ih)[0] != kiln_tensor_sizes(w_hh)[0] ||
      kiln_tensor_sizes(w_hh)[0] / gates != hidden || kiln_tensor_sizes(w_hh)[0] % gates != 0) {
    return KILN_OP_FAIL("The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                        "non-singleton dimension 1",
                        (long long)kiln_tensor_sizes(w_ih)[0],
                        (long long)kiln_tensor_sizes(w_hh)[0]);
  }
  c->gates = gates;
  c->batch = kiln_tensor_sizes(input)[0];
  c->hidden = hidden;
  KILN_TRY(kiln__nn_linear(nn, input, w_ih, b_ih, &c->ih));
  return kiln__nn_linear(nn, hx, w_hh, b_hh, &c->hh);
}
/* The gates of one row of a product that begin_cell made. */
static char *row_of(const kiln__nn *nn, const cell *c, kiln_tensor *product, int64_t row) {
  char *data = (char *)product->storage->data + (size_t)product->offset * nn->item;
  return data + (size_t)(row * c->gates * c->hidden) * nn->item;
}

static kiln_status *rnn_cell(kiln__nn *nn, kiln_pw_functor activation, const kiln_ivalue *args,
                             kiln_ivalue *outs) {
  cell c;
  KILN_TRY(begin_cell(nn, &c, 1, args, ARG(1), NULL));
  char *ih = row_of(nn, &c, c.ih, 0);
  const int64_t n = c.batch * c.hidden;
  kiln__nn_loop2(nn, KILN_PW_add, ih, row_of(nn, &c, c.hh, 0), ih, true, n);
  kiln__nn_loop1(nn, activation, ih, ih, n);
  return kiln__nn_give(nn, c.ih, kiln_tensor_dtype(SELF), outs);
}
KILN_NN_KERNEL(rnn_tanh_cell) { return rnn_cell(nn, KILN_PW_tanh, args, outs); }
KILN_NN_KERNEL(rnn_relu_cell) { return rnn_cell(nn, KILN_PW_relu, args, outs); }

/* r, z = sigmoid(ih + hh); n = tanh(ih + r * hh); h' = (h - n) * z + n */
KILN_NN_KERNEL(gru_cell) {
  cell c;
  const char *h;
  char *out;
  kiln_tensor *result;
  KILN_TRY(begin_cell(nn, &c, 3, args, ARG(1), NULL));
  KILN_TRY(kiln__nn_dense(nn, ARG(1), &h));
  KILN_TRY(kiln__nn_new(nn, 2, (const int64_t[]){c.batch, c.hidden}, &result, &out));
  const int64_t n = c.hidden;
  const size_t step = (size_t)n * nn->item;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < c.batch && !kiln_budget_spent(&left, 16 * n);
       i++, h += step, out += step) {
    char *ih = row_of(nn, &c, c.ih, i), *hh = row_of(nn, &c, c.hh, i);
    char *r = ih, *z = ih + step, *ih_n = ih + 2 * step, *hh_n = hh + 2 * step;
    kiln__nn_loop2(nn, KILN_PW_add, r, hh, r, true, 2 * n);
    kiln__nn_loop1(nn, KILN_PW_sigmoid, r, r, 2 * n);
    kiln__nn_loop2(nn, KILN_PW_mul, hh_n, hh_n, r, true, n);
    kiln__nn_loop2(nn, KILN_PW_add, ih_n, ih_n, hh_n, true, n);
    kiln__nn_loop1(nn, KILN_PW_tanh, ih_n, ih_n, n);
    kiln__nn_loop2(nn, KILN_PW_sub, out, h, ih_n, true, n);
    kiln__nn_loop2(nn, KILN_PW_mul, out, out, z, true, n);
    kiln__nn_loop2(nn, KILN_PW_add, out, out, ih_n, true, n);
  }
  return kiln__nn_give(nn, result, kiln_tensor_dtype(SELF), outs);
}

/* i, f, o = sigmoid; g = tanh; c' = f * c + i * g; h' = o * tanh(c') */
KILN_NN_KERNEL(lstm_cell) {
  const kiln_list *states = kiln_arg_list(args, 1);
  if (states->count != 2) return KILN_OP_FAIL("lstm_cell expects two hidden states");
  kiln_tensor *hx = kiln_arg_tensor(states->items, 0), *cx = kiln_arg_tensor(states->items, 1);
  cell c;
  const char *cell_in;
  char *h, *cell_out;
  kiln_tensor *h_tensor, *c_tensor;
  KILN_TRY(begin_cell(nn, &c, 4, args, hx, cx));
  KILN_TRY(kiln__nn_dense(nn, cx, &cell_in));
  const int64_t n = c.hidden, sizes[] = {c.batch, n};
  KILN_TRY(kiln__nn_new(nn, 2, sizes, &h_tensor, &h));
  KILN_TRY(kiln__nn_new(nn, 2, sizes, &c_tensor, &cell_out));
  const size_t step = (size_t)n * nn->item;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t b = 0; b < c.batch && !kiln_budget_spent(&left, 16 * n);
       b++, cell_in += step, h += step, cell_out += step) {
    char *i = row_of(nn, &c, c.ih, b), *f = i + step, *g = f + step, *o = g + step;
    kiln__nn_loop2(nn, KILN_PW_add, i, row_of(nn, &c, c.hh, b), i, true, 4 * n);
    kiln__nn_loop1(nn, KILN_PW_sigmoid, i, i, 2 * n);
    kiln__nn_loop1(nn, KILN_PW_tanh, g, g, n);
    kiln__nn_loop1(nn, KILN_PW_sigmoid, o, o, n);
    kiln__nn_loop2(nn, KILN_PW_mul, cell_out, f, cell_in, true, n);
    kiln__nn_loop2(nn, KILN_PW_mul, g, i, g, true, n);
    kiln__nn_loop2(nn, KILN_PW_add, cell_out, cell_out, g, true, n);
    kiln__nn_loop1(nn, KILN_PW_tanh, h, cell_out, n);
    kiln__nn_loop2(nn, KILN_PW_mul, h, o, h, true, n);
  }
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  KILN_TRY(kiln__nn_give(nn, h_tensor, dtype, &outs[0]));
  return kiln__nn_give(nn, c_tensor, dtype, &outs[1]);
}

/* input (B, I), hidden (B, H), state, w_ih (gates H, I), w_hh (gates H, H), b_ih (gates H), b_hh,
 * gates: what the cells take without a complaint, in one dtype. */
KILN_KERNEL(cell_fits) {
  enum { INPUT, HIDDEN, STATE, W_IH, W_HH, B_IH, B_HH, GATES };
  const kiln_tensor *t[GATES];
  const int64_t gates = kiln_arg_int(args, GATES);
  bool fits = gates > 0;
  for (int i = 0; i < GATES; i++) {
    t[i] = kiln_arg_tensor_opt(args, i);
    if (!t[i]) continue;
    fits = fits && kiln_tensor_rank(t[i]) == (i < B_IH ? 2 : 1) &&
           kiln_tensor_dtype(t[i]) == kiln_tensor_dtype(t[0]);
  }
  if (fits && kiln_dtype_is_float(kiln_tensor_dtype(t[0]))) {
    const int64_t *in = kiln_tensor_sizes(t[INPUT]), *hidden = kiln_tensor_sizes(t[HIDDEN]);
    const int64_t *w = kiln_tensor_sizes(t[W_IH]), *u = kiln_tensor_sizes(t[W_HH]);
    fits = in[1] == w[1] && in[0] == hidden[0] && hidden[1] == u[1] && w[0] == u[0];
    fits =
        fits && u[0] % kiln_arg_int(args, GATES) == 0 && u[0] / kiln_arg_int(args, GATES) == u[1];
    for (int d = 0; d < 2 && t[STATE]; d++)
      fits = fits && kiln_tensor_sizes(t[STATE])[d] == hidden[d];
    for (int i = B_IH; i <= B_HH; i++) fits = fits && (!t[i] || kiln_tensor_sizes(t[i])[0] == w[0]);
  } else {
    fits = false;
  }
  outs[0] = kiln_bool(fits);
  return NULL;
}
