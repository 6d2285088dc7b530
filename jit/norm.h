/* norm.h: where batch_norm has its operands: x, weight, bias, mean, var, training, momentum, eps,
 * .. */
#pragma once

#include "ir/ir.h"

enum { KILN__NORM_TRAINING = 5, KILN__NORM_EPS = 7 };

/* It is one, and goes by what it was trained to. */
static inline bool kiln__is_trained_norm(const kiln_node *n) {
  return kiln_node_is(n, KILN_OP_batch_norm) &&
         kiln_ir_value_is_bool(kiln_node_input(n, KILN__NORM_TRAINING), false);
}
