/* decompose_cell.c: steps of recurrent layers become two products and what follows of their gates:
 * lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell. A group has the gates then, and the products
 * of an input that a loop does not change go in front of it (hoist_products).
 * runtime/kernels/heavy/rnn_cell.c has the steps. */
#include "ir/pass/network.h"

/* Inputs; HIDDEN of an LSTM is a list of it and the cell's state. */
enum { INPUT, HIDDEN, W_IH, W_HH, B_IH, B_HH };

/* `state` may be NULL. */
static void where_it_fits(kiln__maker *m, kiln_node *n, int gates, kiln_ir_value *hidden,
                          kiln_ir_value *state) {
  kiln__apart_where(m, n, n->output_count,
                    ASK(cell_fits, BOOL, IN(INPUT), hidden, state ? state : NONE, IN(W_IH),
                        IN(W_HH), IN(B_IH), IN(B_HH), INT(gates)));
}

/* The bias is added behind the product, which is one of all steps then, and by the gates' group. */
static kiln_ir_value *product(kiln__maker *m, const kiln_node *n, kiln_ir_value *x, int weight,
                              int bias) {
  if (IN(bias)->type->kind != KILN_TYPE_TENSOR) return STEP(linear, x, IN(weight), IN(bias));
  return SUM(STEP(linear, x, IN(weight), NONE), IN(bias));
}
static kiln_ir_value *of_input(kiln__maker *m, const kiln_node *n) {
  return product(m, n, IN(INPUT), W_IH, B_IH);
}
static kiln_ir_value *of_hidden(kiln__maker *m, const kiln_node *n, kiln_ir_value *hidden) {
  return product(m, n, hidden, W_HH, B_HH);
}
static void chunk(kiln__maker *m, kiln_ir_value *gates, int count, kiln_ir_value **out) {
  kiln_node *node = kiln_node_create_id(m->graph, KILN_OP_prim_ConstantChunk);
  kiln_node_add_input(node, gates);
  kiln_node_set_int(node, "chunks", count);
  kiln_node_set_int(node, "dim", 1);
  out[0] = kiln__maker_put(m, node, kiln_type_basic(KILN_TYPE_TENSOR));
  for (int i = 1; i < count; i++)
    out[i] = kiln_node_add_output(node, kiln_type_basic(KILN_TYPE_TENSOR));
}

KILN__APART(rnn_tanh_cell) {
  where_it_fits(m, n, 1, IN(HIDDEN), NULL);
  GIVE(STEP(tanh, SUM(of_input(m, n), of_hidden(m, n, IN(HIDDEN)))));
  return true;
}
KILN__APART(rnn_relu_cell) {
  where_it_fits(m, n, 1, IN(HIDDEN), NULL);
  GIVE(STEP(relu, SUM(of_input(m, n), of_hidden(m, n, IN(HIDDEN)))));
  return true;
}
/* r, z = sigmoid(ih + hh); n = tanh(ih + r * hh); (h - n) * z + n */
KILN__APART(gru_cell) {
  kiln_ir_value *ih[3], *hh[3];
  where_it_fits(m, n, 3, IN(HIDDEN), NULL);
  chunk(m, of_input(m, n), 3, ih);
  chunk(m, of_hidden(m, n, IN(HIDDEN)), 3, hh);
  kiln_ir_value *r = STEP(sigmoid, SUM(ih[0], hh[0])), *z = STEP(sigmoid, SUM(ih[1], hh[1]));
  kiln_ir_value *next = STEP(tanh, SUM(ih[2], STEP(mul_Tensor, hh[2], r)));
  kiln_ir_value *rest = DIFFERENCE(IN(HIDDEN), next);
  GIVE(SUM(STEP(mul_Tensor, rest, z), next));
  return true;
}
/* i, f, o = sigmoid; g = tanh; c' = f * c + i * g; h' = o * tanh(c') */
KILN__APART(lstm_cell) {
  kiln_ir_value *gate[4];
  const kiln_node *states = kiln__list_of_tensors(n, HIDDEN);
  if (!states || states->input_count != 2) return false;
  kiln_ir_value *hidden = kiln_node_input(states, 0), *state = kiln_node_input(states, 1);
  where_it_fits(m, n, 4, hidden, state);
  chunk(m, SUM(of_input(m, n), of_hidden(m, n, hidden)), 4, gate);
  kiln_ir_value *i = STEP(sigmoid, gate[0]), *f = STEP(sigmoid, gate[1]);
  kiln_ir_value *g = STEP(tanh, gate[2]), *o = STEP(sigmoid, gate[3]);
  state = SUM(STEP(mul_Tensor, f, state), STEP(mul_Tensor, i, g));
  GIVE(STEP(mul_Tensor, o, STEP(tanh, state)));
  GIVE(state);
  return true;
}
