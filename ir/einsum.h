/* einsum.h: einsum of two tensors, as a node. */
#pragma once

#include "ir/ir.h"
#include "runtime/einsum.h"

/* What einsum(equation, [a, b]) asks for, and its operands, whose ranks are known; false: the node
 * is no such one, or fails. */
bool kiln_einsum_of(const kiln_node *node, kiln_einsum *out, kiln_ir_value *operands[2]);
