/* lower_norm.c: layers that normalise: layer_norm, rms_norm, group_norm, instance_norm, and pools
 * of whole planes, as the interpreter's kernels compute them (runtime/kernels/nn/). */
#include "codegen/lower_rows.h"

/* -- Means of planes -- */

/* The sum, divided as a double. */
ROWS_BEGIN(global_pool) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  const int n = kiln__lower_size(l, KILN_DTYPE_F64, kiln__rows_length(l, node, rows));
  const int sum = kiln__rows_of_first(l, node, rows, KILN_LOOP_sum, dtype);
  if (kiln_dtype_is_int(dtype, true)) kiln__lower_refuse(l, KILN_REASON_raises);
  rows->values[0] =
      kiln__lower_cast(l, OP2(div, kiln__lower_cast(l, sum, KILN_DTYPE_F64), n), dtype);
}
ROW_VALUES(global_pool)

/* -- Layer norm -- */

/* Mean, and 1 / deviation. */
static void begin_layer_norm(kiln__lowering *l, const kiln_node *node, kiln__rows *rows) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  const kiln_dim n = kiln__rows_length(l, node, rows);
  double eps;
  if (!kiln__lower_number(l, node, 4, &eps)) return;
  const int sum = kiln__rows_of_first(l, node, rows, KILN_LOOP_sum, dtype);
  const int mean = rows->values[0] = OP2(div, sum, kiln__lower_size(l, dtype, n));
  const int squares = kiln__rows_squares(l, node, rows, dtype, mean);
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
static int layer_norm_element(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                              const kiln__rows *rows) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  int x = kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, 0), map), dtype);
  x = OP2(mul, OP2(sub, x, rows->values[0]), rows->values[1]);
  if (!kiln__lower_is_none(node, 2)) x = OP2(mul, x, of_columns(l, node, 2, map, dtype));
  if (!kiln__lower_is_none(node, 3)) x = OP2(add, x, of_columns(l, node, 3, map, dtype));
  /* The kernel adds 0 where there is neither: -0 becomes 0. */
  if (kiln__lower_is_none(node, 2) && kiln__lower_is_none(node, 3))
    x = OP2(add, x, kiln__lower_const(l, dtype, 0));
  return x;
}
ROWS_BEGIN(layer_norm) { begin_layer_norm(l, node, rows); }
ROWS(layer_norm) {
  return kiln__lower_cast(l, layer_norm_element(l, node, map, rows),
                          kiln__lower_result_dtype(node, 0));
}
/* And the two numbers of each row. */
ROWS_BEGIN(native_layer_norm) { begin_layer_norm(l, node, rows); }
ROWS(native_layer_norm) {
  const int value = output > 0 ? rows->values[output - 1] : layer_norm_element(l, node, map, rows);
  return kiln__lower_cast(l, value, kiln__lower_result_dtype(node, output));
}

/* -- RMS norm -- */

ROWS_BEGIN(rms_norm) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  const kiln_ivalue *given = kiln_ir_value_constant(kiln_node_input(node, 3));
  double eps = dtype == KILN_DTYPE_F64 ? 0x1p-52 : 0x1p-23;
  if (!given || given->tag != KILN_TAG_NONE) {
    if (!kiln__lower_number(l, node, 3, &eps)) return;
  }
  const int squares = kiln__rows_squares(l, node, rows, dtype, -1);
  const int mean = OP2(div, squares, kiln__lower_size(l, dtype, kiln__rows_length(l, node, rows)));
  rows->values[0] = OP1(sqrt, OP2(add, mean, kiln__lower_const(l, dtype, eps)));
}
ROWS(rms_norm) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  int x = kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, 0), map), dtype);
  x = OP2(div, x, rows->values[0]);
  if (!kiln__lower_is_none(node, 2)) x = OP2(mul, x, of_columns(l, node, 2, map, dtype));
  return kiln__lower_cast(l, x, kiln__lower_result_dtype(node, 0));
}

/* -- Statistics of channels -- */

/* Mean and variance, as doubles, of sums in what the input is computed in. */
static void begin_moments(kiln__lowering *l, const kiln_node *node, kiln__rows *rows) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  const int n = kiln__lower_size(l, KILN_DTYPE_F64, kiln__rows_length(l, node, rows));
  const int sum = kiln__rows_of_first(l, node, rows, KILN_LOOP_sum, dtype);
  const int mean = rows->values[0] = OP2(div, kiln__lower_cast(l, sum, KILN_DTYPE_F64), n);
  const int center = kiln__lower_cast(l, mean, dtype);
  const int squares = kiln__rows_squares(l, node, rows, dtype, center);
  rows->values[1] = OP2(div, kiln__lower_cast(l, squares, KILN_DTYPE_F64), n);
}
static int deviation(kiln__lowering *l, const kiln_node *node, int eps_argument, int variance) {
  double eps;
  if (!kiln__lower_number(l, node, eps_argument, &eps)) return -1;
  return OP1(sqrt, OP2(add, variance, kiln__lower_const(l, KILN_DTYPE_F64, eps)));
}
static int rounded(kiln__lowering *l, int value, kiln_dtype dtype) {
  return kiln__lower_cast(l, kiln__lower_cast(l, value, dtype), KILN_DTYPE_F64);
}
/* Weight or bias at input i, or that number. */
static int channel_or(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                      double number) {
  if (kiln__lower_is_none(node, i)) return kiln__lower_const(l, KILN_DTYPE_F64, number);
  return kiln__lower_channel(l, node, i, map, kiln__rows_compute(node));
}
/* x * scale + bias - mean * scale: what does not move with x in double, and rounded. */
static int scaled(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int scale,
                  int bias, int mean) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  const int shift = kiln__lower_cast(l, OP2(sub, bias, OP2(mul, mean, scale)), dtype);
  int x = kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, 0), map), dtype);
  x = OP2(add, OP2(mul, x, kiln__lower_cast(l, scale, dtype)), shift);
  return kiln__lower_cast(l, x, kiln__lower_result_dtype(node, 0));
}
static bool fits(kiln__lowering *l, const kiln_node *node, int weight) {
  const bool fits =
      kiln__lower_fits_input(node, weight) && kiln__lower_fits_input(node, weight + 1);
  if (!fits) kiln__lower_refuse(l, KILN_REASON_dtype);
  return fits;
}

/* Running statistics would be written. */
ROWS_BEGIN(instance_norm) {
  const kiln_ivalue *own = kiln_ir_value_constant(kiln_node_input(node, 5));
  if (!own || own->tag != KILN_TAG_BOOL || !own->u.b || !kiln__lower_is_none(node, 3) ||
      !kiln__lower_is_none(node, 4)) {
    kiln__lower_refuse(l, KILN_REASON_not_constant);
  } else if (fits(l, node, 1)) {
    begin_moments(l, node, rows);
    rows->values[1] = deviation(l, node, 7, rows->values[1]);
  }
}
ROWS(instance_norm) {
  const int scale = OP2(div, channel_or(l, node, 1, map, 1), rows->values[1]);
  return scaled(l, node, map, scale, channel_or(l, node, 2, map, 0), rows->values[0]);
}

/* Mean and scale are rounded, so that x * scale and mean * scale are alike. */
ROWS_BEGIN(group_norm) {
  if (!fits(l, node, 2)) return;
  begin_moments(l, node, rows);
  const int root = deviation(l, node, 4, rows->values[1]);
  rows->values[0] = rounded(l, rows->values[0], kiln__rows_compute(node));
  rows->values[1] = OP2(div, kiln__lower_const(l, KILN_DTYPE_F64, 1), root);
}
ROWS(group_norm) {
  const int scale = OP2(mul, rows->values[1], channel_or(l, node, 2, map, 1));
  return scaled(l, node, map, rounded(l, scale, kiln__rows_compute(node)),
                channel_or(l, node, 3, map, 0), rows->values[0]);
}
