/* lower_scan.c: running sums, products and extremes, as the interpreter's kernels compute them:
 * sums of floats in double, in the order of the dimension.
 *
 * y = cumsum(x) + 1 is one loop where all that is wanted of the scan is wanted in its order; else,
 * as of cumsum(x) / cumsum(x).sum(), a loop stores the results to a local buffer, and others load
 * them. */
#include "codegen/lower_rows.h"

/* The dimension; -1: of one element. */
static int dim_of(const kiln_node *node, const kiln__rows *rows) {
  const kiln_tensor_detail *d = kiln_node_input(node, 0)->type->detail;
  const int dim = rows->mask ? __builtin_ctzll(rows->mask) : -1;
  return dim < 0 || d->sizes[dim] == 1 ? -1 : dim;
}

/* Of a sum or product; `alone`: the dimension has one element. */
static int running_sum(kiln__lowering *l, const kiln_node *node, int x, kiln_loop_opcode op,
                       bool alone) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  x = kiln__lower_cast(l, x, dtype);
  if (dtype == KILN_DTYPE_BOOL) return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (alone) return x;
  if (!kiln_dtype_is_int(dtype, true)) x = kiln__lower_cast(l, x, KILN_DTYPE_F64);
  return kiln__lower_cast(l, kiln__lower_op(l, op, x, -1, -1), dtype);
}
/* The greatest or least so far, or its place: where it was equal last, or NaN. */
static int running_extreme(kiln__lowering *l, const kiln_node *node, int x, kiln_loop_opcode op,
                           const kiln__lower_dim *along, int output) {
  const kiln_dtype dtype = kiln__lower_compute(kiln__lower_input_dtype(node, 0));
  const int zero = kiln__lower_const(l, KILN_DTYPE_I64, 0);
  x = kiln__lower_cast(l, x, dtype);
  if (!along) return output == 0 ? x : zero;
  const int most = kiln__lower_op(l, op, x, -1, -1);
  if (output == 0 || most < 0) return most;
  int same = OP2(eq, x, most);
  if (!kiln_dtype_is_int(dtype, true)) same = OP2(or, same, OP2(ne, x, x));
  const int place = kiln_loop_index(l->fn, l->nest, along->offset, along->steps);
  return OP1(cummax, SELECT(same, place, zero));
}
/* An element of the result in a scan loop that goes along dimension `dim` (`op` is of rule SCAN);
 * -1: one that has one element. */
static int running(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int dim,
                   kiln_loop_opcode op, int output) {
  const int x = kiln__lower_value(l, kiln_node_input(node, 0), map);
  const int value = node->output_count == 1
                        ? running_sum(l, node, x, op, dim < 0)
                        : running_extreme(l, node, x, op, dim < 0 ? NULL : &map->dims[dim], output);
  return kiln__lower_cast(l, value, kiln__lower_result_dtype(node, output));
}

/* In a loop of its own: the values are local buffers. */
static void begin_scan(kiln__lowering *l, const kiln_node *node, kiln__rows *rows,
                       kiln_loop_opcode op) {
  const int dim = dim_of(node, rows);
  if (l->scans || dim < 0) return;
  const kiln_dim length = kiln__lower_sizes_of(l, kiln_node_input(node, 0)).sizes[dim], one = 1;
  kiln_dim strides[KILN_LOOP_MAX_RANK] = {0};
  const int loop = kiln__lower_open(l, KILN_LOOP_scan, length);
  if (loop < 0) return;
  kiln__lower_map *map = kiln__lower_copied(l, &rows->kept);
  map->dims[dim] = kiln__lower_along(loop);
  strides[loop] = 1;
  for (int o = 0; o < node->output_count; o++) {
    const int value = running(l, node, map, dim, op, o);
    if (value < 0) return;
    rows->values[o] = kiln_loop_add_local(l->fn, kiln__lower_dtype_of(l, value), 1, &length, &one);
    kiln_loop_store(l->fn, l->nest, rows->values[o], 0, strides, value);
  }
  kiln__lower_close(l);
}

/* Whether the loop of scans that is open goes along the dimension, and nothing else does. */
static bool goes_along(const kiln__lowering *l, const kiln__lower_map *map, int dim) {
  const int loop = l->nest->rank;
  const kiln__lower_dim along = kiln__lower_along(loop);
  bool fits = l->scanning && map->dims[dim].offset == 0;
  for (int k = 0; fits && k < KILN_LOOP_MAX_RANK; k++)
    fits = map->dims[dim].steps[k] == along.steps[k];
  for (int d = 0; fits && d < map->rank; d++) fits = d == dim || map->dims[d].steps[loop] == 0;
  return fits;
}
static int scan_element(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                        const kiln__rows *rows, kiln_loop_opcode op, int output) {
  const int dim = dim_of(node, rows);
  if (dim < 0) return running(l, node, map, dim, op, output);
  if (l->scans && !goes_along(l, map, dim)) return kiln__lower_refuse(l, KILN_REASON_rows_differ);
  if (l->scans) return running(l, node, map, dim, op, output);
  if (map->dims[dim].check) return kiln__lower_refuse(l, KILN_REASON_no_local_gather);
  return kiln_loop_load(l->fn, l->nest, rows->values[output], map->dims[dim].offset,
                        map->dims[dim].steps);
}

#define SCAN(name)                                                  \
  ROWS_BEGIN(name) { begin_scan(l, node, rows, KILN_LOOP_##name); } \
  ROWS(name) { return scan_element(l, node, map, rows, KILN_LOOP_##name, output); }
SCAN(cumsum)
SCAN(cumprod)
SCAN(cummax)
SCAN(cummin)
