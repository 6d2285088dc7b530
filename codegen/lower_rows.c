/* lower_rows.c: reductions, softmax, layer norm: as the interpreter's kernels compute them. */
#include "codegen/lower.h"

#include <math.h>

#define OP(name, ...) kiln__lower_op(l, KILN_LOOP_##name, __VA_ARGS__)
#define OP1(name, a) OP(name, a, -1, -1)
#define OP2(name, a, b) OP(name, a, b, -1)
/* Before the loops over the result; then an element of it. */
#define ROWS_BEGIN(name)  \
  KILN__ROWS_TYPES(name); \
  void kiln__rows_begin_##name(kiln__lowering *l, const kiln_node *node, kiln__rows *rows)
#define ROWS(name)                                                                            \
  int kiln__rows_##name(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, \
                        const kiln__rows *rows)

/* Opens a loop for each dimension that is reduced; gives the element of the first input that they
 * stand at. There is one at least. */
static int open_rows(kiln__lowering *l, const kiln_node *node, kiln__rows *rows, kiln_dtype dtype) {
  const kiln_ir_value *self = kiln_node_input(node, 0);
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, self);
  kiln__lower_map *map = kiln__lower_copied(l, &rows->kept);
  rows->loops = 0;
  for (int d = 0; d < map->rank; d++) {
    if (!(rows->mask >> d & 1)) continue;
    const int loop = kiln__lower_open(l, KILN_LOOP_reduce, s.sizes[d]);
    if (loop >= 0 && s.sizes[d] != 1) map->dims[d] = kiln__lower_along(loop);
    rows->loops++;
  }
  if (rows->loops == 0) {
    (void)kiln__lower_open(l, KILN_LOOP_reduce, 1);
    rows->loops = 1;
  }
  return kiln__lower_cast(l, kiln__lower_value(l, self, map), dtype);
}
static int reduce(kiln__lowering *l, kiln_loop_opcode op, int value, const kiln__rows *rows) {
  if (value < 0 || l->reason != KILN_REASON_none) return -1;
  const kiln_dtype dtype = kiln__lower_dtype_of(l, value);
  if (!(kiln_loop_class(dtype) & kiln_loop_ops[op].classes))
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  return kiln_loop_reduce(l->fn, l->nest, op, value, -1, rows->loops);
}
static void close_rows(kiln__lowering *l, const kiln__rows *rows) {
  for (int i = 0; i < rows->loops; i++) kiln__lower_close(l);
}
static kiln_dim length_of(kiln__lowering *l, const kiln_node *node, const kiln__rows *rows) {
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
  kiln_dim n = 1;
  for (int d = 0; d < rows->kept.rank; d++)
    if (rows->mask >> d & 1) n = kiln_dim_product(l->fn->dims, n, s.sizes[d]);
  return n;
}
/* What the result is computed in. */
static kiln_dtype compute_of(const kiln_node *node) {
  return kiln__lower_compute(kiln__lower_result_dtype(node, 0));
}

/* -- One number for each row -- */

static void begin_simple(kiln__lowering *l, const kiln_node *node, kiln__rows *rows,
                         kiln_loop_opcode op, kiln_dtype dtype) {
  rows->values[0] = reduce(l, op, open_rows(l, node, rows, dtype), rows);
  close_rows(l, rows);
}
#define SIMPLE(name, op, dtype)                                                     \
  ROWS_BEGIN(name) { begin_simple(l, node, rows, KILN_LOOP_##op, dtype); }          \
  ROWS(name) {                                                                      \
    (void)map;                                                                      \
    return kiln__lower_cast(l, rows->values[0], kiln__lower_result_dtype(node, 0)); \
  }
SIMPLE(sum, sum, compute_of(node))
SIMPLE(prod, prod, compute_of(node))
SIMPLE(amax, amax, compute_of(node))
SIMPLE(amin, amin, compute_of(node))
SIMPLE(any, any, KILN_DTYPE_BOOL)
SIMPLE(all, all, KILN_DTYPE_BOOL)
SIMPLE(argmax, argmax, kiln__lower_compute(kiln__lower_input_dtype(node, 0)))
SIMPLE(argmin, argmin, kiln__lower_compute(kiln__lower_input_dtype(node, 0)))

ROWS_BEGIN(mean) {
  const kiln_dtype dtype = compute_of(node);
  begin_simple(l, node, rows, KILN_LOOP_sum, dtype);
  const int count = kiln__lower_size(l, dtype, length_of(l, node, rows));
  rows->values[0] = OP2(div, rows->values[0], count);
}
ROWS(mean) {
  (void)map;
  return kiln__lower_cast(l, rows->values[0], kiln__lower_result_dtype(node, 0));
}

/* -- softmax -- */

/* The input in the dtype that is asked for, rounded to it, in what that is computed in. */
static int softmax_input(kiln__lowering *l, const kiln_node *node, int value) {
  value = kiln__lower_cast(l, value, kiln__lower_result_dtype(node, 0));
  return kiln__lower_cast(l, value, compute_of(node));
}
static void begin_softmax(kiln__lowering *l, const kiln_node *node, kiln__rows *rows) {
  const kiln_ivalue *third = kiln_ir_value_constant(kiln_node_input(node, 2));
  if (!third) kiln__lower_refuse(l, KILN_REASON_not_constant);
  /* _softmax's half_to_float */
  if (third && third->tag == KILN_TAG_BOOL && third->u.b) kiln__lower_refuse(l, KILN_REASON_raises);
  int x = softmax_input(l, node, open_rows(l, node, rows, KILN_DTYPE_NONE));
  const int most = rows->values[0] = reduce(l, KILN_LOOP_amax, x, rows);
  close_rows(l, rows);
  x = softmax_input(l, node, open_rows(l, node, rows, KILN_DTYPE_NONE));
  rows->values[1] = reduce(l, KILN_LOOP_sum, OP1(exp, OP2(sub, x, most)), rows);
  close_rows(l, rows);
}
static int softmax_element(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map) {
  return softmax_input(l, node, kiln__lower_value(l, kiln_node_input(node, 0), map));
}
ROWS_BEGIN(softmax) { begin_softmax(l, node, rows); }
ROWS(softmax) {
  const int x = softmax_element(l, node, map), e = OP1(exp, OP2(sub, x, rows->values[0]));
  return kiln__lower_cast(l, OP2(div, e, rows->values[1]), kiln__lower_result_dtype(node, 0));
}
ROWS_BEGIN(log_softmax) {
  begin_softmax(l, node, rows);
  rows->values[1] = OP1(log, rows->values[1]);
}
ROWS(log_softmax) {
  const int x = softmax_element(l, node, map);
  return kiln__lower_cast(l, OP2(sub, OP2(sub, x, rows->values[0]), rows->values[1]),
                          kiln__lower_result_dtype(node, 0));
}

/* -- Layer norm -- */

ROWS_BEGIN(layer_norm) {
  const kiln_dtype dtype = compute_of(node);
  const kiln_dim n = length_of(l, node, rows);
  double eps;
  if (!kiln__lower_number(l, node, 4, &eps)) return;
  begin_simple(l, node, rows, KILN_LOOP_sum, dtype);
  const int mean = rows->values[0] = OP2(div, rows->values[0], kiln__lower_size(l, dtype, n));
  const int x = open_rows(l, node, rows, dtype), apart = OP2(sub, x, mean);
  const int squares = reduce(l, KILN_LOOP_sum, OP2(mul, apart, apart), rows);
  close_rows(l, rows);
  const int variance = OP2(div, squares, kiln__lower_size(l, dtype, n));
  const int root = OP1(sqrt, OP2(add, variance, kiln__lower_const(l, dtype, eps)));
  rows->values[1] = OP2(div, kiln__lower_const(l, dtype, 1), root);
}
/* Weight or bias: of the last dimensions, or the operator raises. */
static int of_columns(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                      kiln_dtype dtype) {
  if (!kiln__lower_is_tensor(node, i)) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  const kiln_tensor_detail *d = kiln_node_input(node, i)->type->detail;
  const kiln_tensor_detail *self = kiln_node_input(node, 0)->type->detail;
  const kiln_ivalue *shape = kiln_ir_value_constant(kiln_node_input(node, 1));
  bool same = d && shape && d->rank == shape->u.list->count;
  for (int k = 0; same && k < d->rank; k++)
    same = d->sizes[k] == self->sizes[self->rank - d->rank + k];
  if (!same) return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln_dtype own = kiln__lower_input_dtype(node, i);
  const bool fits = own == kiln__lower_input_dtype(node, 0) || own == dtype;
  return fits ? kiln__lower_input(l, node, i, map, dtype)
              : kiln__lower_refuse(l, KILN_REASON_dtype);
}
ROWS(layer_norm) {
  const kiln_dtype dtype = compute_of(node);
  int x = kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, 0), map), dtype);
  x = OP2(mul, OP2(sub, x, rows->values[0]), rows->values[1]);
  if (!kiln__lower_is_none(node, 2)) x = OP2(mul, x, of_columns(l, node, 2, map, dtype));
  if (!kiln__lower_is_none(node, 3)) x = OP2(add, x, of_columns(l, node, 3, map, dtype));
  /* The kernel adds 0 where there is neither: -0 becomes 0. */
  if (kiln__lower_is_none(node, 2) && kiln__lower_is_none(node, 3))
    x = OP2(add, x, kiln__lower_const(l, dtype, 0));
  return kiln__lower_cast(l, x, kiln__lower_result_dtype(node, 0));
}
