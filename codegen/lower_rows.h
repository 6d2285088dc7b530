/* lower_rows.h: what lowerings of reductions are made of (lower_rows.c, lower_norm.c,
 * lower_spread.c).
 *
 * ROWS_BEGIN(x) reduces rows of the first input, in loops of the body, and keeps numbers of them in
 * rows->values; ROWS(x) is an element of a result. */
#pragma once

#include "codegen/lower.h"

#define OP(name, ...) kiln__lower_op(l, KILN_LOOP_##name, __VA_ARGS__)
#define OP1(name, a) OP(name, a, -1, -1)
#define OP2(name, a, b) OP(name, a, b, -1)
#define SELECT(mask, a, b) OP(select, mask, a, b)
#define ROWS_BEGIN(name)  \
  KILN__ROWS_TYPES(name); \
  void kiln__rows_begin_##name(kiln__lowering *l, const kiln_node *node, kiln__rows *rows)
#define ROWS(name)                                                                  \
  int kiln__rows_##name(                                                            \
      kiln__lowering *l, const kiln_node *node, __attribute__((unused)) int output, \
      __attribute__((unused)) const kiln__lower_map *map, const kiln__rows *rows)

/* A result is the number that is kept for it, rounded to its type. */
static inline int kiln__rows_value(kiln__lowering *l, const kiln_node *node, int output,
                                   const kiln__rows *rows) {
  return kiln__lower_cast(l, rows->values[output], kiln__lower_result_dtype(node, output));
}
#define ROW_VALUES(name) \
  ROWS(name) { return kiln__rows_value(l, node, output, rows); }

/* Opens a loop for each dimension that is reduced, one at least; gives the map of the element of
 * the first input that they stand at. */
const kiln__lower_map *kiln__rows_open(kiln__lowering *l, const kiln_node *node, kiln__rows *rows);
/* The same; gives the element, in a type (NONE: its own). */
int kiln__rows_open_first(kiln__lowering *l, const kiln_node *node, kiln__rows *rows,
                          kiln_dtype dtype);
/* What a value in all loops that are open for the rows is reduced to. */
int kiln__rows_reduce(kiln__lowering *l, kiln_loop_opcode op, int value, const kiln__rows *rows);
void kiln__rows_close(kiln__lowering *l, const kiln__rows *rows);
/* All of it: what the first input's elements, in a type, are reduced to. */
int kiln__rows_of_first(kiln__lowering *l, const kiln_node *node, kiln__rows *rows,
                        kiln_loop_opcode op, kiln_dtype dtype);
/* The sum of the squares of their distances from a number of that type (-1: from 0). */
int kiln__rows_squares(kiln__lowering *l, const kiln_node *node, kiln__rows *rows, kiln_dtype dtype,
                       int center);
/* What a constant argument `reduction` of a loss asks for: 0 each element, 1 the mean, 2 the sum;
 * -1: it is none. */
int kiln__rows_reduction(const kiln_node *node);
/* A sum over all rows of such a loss, or their mean: the quotient in that type. */
int kiln__rows_sum_or_mean(kiln__lowering *l, const kiln_node *node, const kiln__rows *rows,
                           int sum, kiln_dtype quotient);
/* The norm of order p of a value in the loops that are open for the rows, which it closes. */
int kiln__rows_norm_of(kiln__lowering *l, const kiln__rows *rows, int x, double p);
/* How many elements a row has. */
kiln_dim kiln__rows_length(kiln__lowering *l, const kiln_node *node, const kiln__rows *rows);
/* What result 0 is computed in. */
static inline kiln_dtype kiln__rows_compute(const kiln_node *node) {
  return kiln__lower_compute(kiln__lower_result_dtype(node, 0));
}
