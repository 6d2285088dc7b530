/* product.h: what a pass asks of a matrix product, where each name has its operands: linear(x, w,
 * bias), mm(x, w), matmul(x, w), addmm(bias, x, w, beta, alpha). */
#pragma once

#include "ir/ir.h"

static inline bool kiln__is_addmm(const kiln_node *n) { return kiln_node_is(n, KILN_OP_addmm); }
/* Neither operand nor bias is scaled. */
static inline bool kiln__product_is_unscaled(const kiln_node *n) {
  return !kiln__is_addmm(n) || (kiln_ir_value_is_number(kiln_node_input(n, 3), 1) &&
                                kiln_ir_value_is_number(kiln_node_input(n, 4), 1));
}
static inline int kiln__product_x(const kiln_node *n) { return kiln__is_addmm(n); }
static inline int kiln__product_w(const kiln_node *n) { return 1 + kiln__is_addmm(n); }
/* -1: this product has none, ever. */
static inline int kiln__product_bias(const kiln_node *n) {
  return kiln__is_addmm(n) ? 0 : kiln_node_is(n, KILN_OP_linear) ? 2 : -1;
}
