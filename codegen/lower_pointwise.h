/* lower_pointwise.h: what lowerings of functions of elements are made of (lower_pointwise.c,
 * lower_composed.c, lower_gradient.c). */
#pragma once

#include "codegen/lower.h"

#define OP(name, ...) kiln__lower_op(l, KILN_LOOP_##name, __VA_ARGS__)
#define OP1(name, a) OP(name, a, -1, -1)
#define OP2(name, a, b) OP(name, a, b, -1)
#define SELECT(mask, a, b) OP(select, mask, a, b)

/* The first `count` inputs in their common type, or in the default float type where that is an
 * integer's. Beyond them, and of what is refused, -1. */
typedef struct operands {
  kiln_dtype common;
  int a, b, c;
} operands;
operands kiln__lower_operands(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                              int count, bool to_float);
/* Input i in `common`; numbers go straight to what is computed in. */
int kiln__lower_operand(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                        kiln_dtype common);

/* A number of an instruction's type. */
static inline int kiln__lower_like(kiln__lowering *l, int like, double value) {
  return like < 0 ? -1 : kiln__lower_const(l, kiln__lower_dtype_of(l, like), value);
}
/* Back to the type that the operator rounds to. */
static inline int finish(kiln__lowering *l, int value, kiln_dtype common) {
  return kiln__lower_cast(l, value, common);
}
/* A step of several: rounded, and what the next one computes with. */
static inline int step(kiln__lowering *l, int value, kiln_dtype common) {
  return kiln__lower_cast(l, kiln__lower_cast(l, value, common), kiln__lower_compute(common));
}
