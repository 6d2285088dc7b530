/* lower_classes.c: losses of rows of classes of which the target, an index, names one, as the
 * interpreter's kernels compute them (runtime/kernels/nn/loss.c, margin_ctc.c): in double. */
#include "codegen/lower_rows.h"

#define F64(value) kiln__lower_const(l, KILN_DTYPE_F64, value)

static const kiln_tensor_detail *detail_of(const kiln_node *node, int i) {
  return kiln__lower_is_tensor(node, i) ? kiln_node_input(node, i)->type->detail : NULL;
}
/* Input i at a map, as a double. */
static int wide(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map) {
  return kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, i), map), KILN_DTYPE_F64);
}
/* The weight of a class: input i, one for each of them; 1 where it is none. */
static int weight_of(kiln__lowering *l, const kiln_node *node, int i, kiln_dim classes,
                     const kiln__lower_dim *class) {
  const kiln_tensor_detail *w = detail_of(node, i);
  if (kiln__lower_is_none(node, i)) return F64(1);
  if (!w || w->rank != 1 || w->sizes[0] != classes)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  if (w->dtype != (int)kiln__lower_input_dtype(node, 0))
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  kiln__lower_map *at = kiln__lower_new_map(l, 1);
  at->dims[0] = *class;
  return wide(l, node, i, at);
}

/* -- nll_loss(self (N, C, ..), target (N, ..), weight, reduction, ignore_index) -- */

/* Which dimension of self has the classes; -1, with a reason: the target does not fit. */
static int axis_of(kiln__lowering *l, const kiln_node *node) {
  const kiln_tensor_detail *x = detail_of(node, 0), *target = detail_of(node, 1);
  const int axis = x->rank > 1;
  if (!target || x->rank < 1 || target->rank != x->rank - 1)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  for (int d = 0; d < target->rank; d++)
    if (target->sizes[d] != x->sizes[d < axis ? d : d + 1])
      return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  return kiln__lower_is_float((kiln_dtype)x->dtype) ? axis
                                                    : kiln__lower_refuse(l, KILN_REASON_dtype);
}
/* An element of the loss at a map of the target, in what self is computed in, and its weight; both
 * are 0 where the target is the one that is ignored. */
static bool loss_at(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                    int *out_loss, int *out_weight) {
  const kiln_dtype dtype = kiln__lower_compute(kiln__lower_input_dtype(node, 0));
  const int axis = axis_of(l, node);
  int64_t ignored;
  if (axis < 0 || !kiln__lower_int(l, node, 4, 0, &ignored)) return false;
  const kiln_dim classes = kiln__lower_sizes_of(l, kiln_node_input(node, 0)).sizes[axis];
  int class = kiln__lower_read_index(l, kiln_node_input(node, 1), map);
  if (class < 0) return false;
  const int none = kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_I64, ignored);
  const int live = OP2(ne, class, none);
  class = SELECT(live, class, kiln__lower_const(l, KILN_DTYPE_I64, 0));
  kiln__lower_map *own = kiln__lower_new_map(l, map->rank + 1);
  for (int d = 0; d < map->rank; d++) own->dims[d < axis ? d : d + 1] = map->dims[d];
  if (!kiln__lower_at_index(l, node, class, classes, &own->dims[axis])) return false;
  const int weight = weight_of(l, node, 2, classes, &own->dims[axis]);
  const int loss = OP2(mul, OP1(neg, weight), wide(l, node, 0, own));
  *out_loss = kiln__lower_cast(l, SELECT(live, loss, F64(0)), dtype);
  *out_weight = SELECT(live, weight, F64(0));
  return *out_loss >= 0 && *out_weight >= 0;
}
KILN__LOWER(nll_loss) {
  int loss, weight;
  if (kiln__rows_reduction(node) < 0) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (!loss_at(l, node, map, &loss, &weight)) return -1;
  return kiln__lower_cast(l, loss, kiln__lower_result_dtype(node, 0));
}
/* The sum, divided by the sum of the weights or not; and that sum. */
static void begin_nll(kiln__lowering *l, const kiln_node *node, kiln__rows *rows) {
  const kiln_tensor_detail *target = detail_of(node, 1);
  int loss, weight;
  if (axis_of(l, node) < 0) return;
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, kiln_node_input(node, 1));
  kiln__lower_map *map = kiln__lower_new_map(l, target->rank);
  rows->loops = target->rank > 0 ? target->rank : 1;
  for (int d = 0; d < rows->loops; d++) {
    const kiln_dim size = target->rank > 0 ? s.sizes[d] : 1;
    const int loop = kiln__lower_open(l, KILN_LOOP_reduce, size);
    if (loop < 0) return;
    if (size != 1) map->dims[d] = kiln__lower_along(loop);
  }
  if (!loss_at(l, node, map, &loss, &weight)) return;
  const int total = kiln__rows_reduce(l, KILN_LOOP_sum, weight, rows);
  const int sum = kiln__rows_reduce(l, KILN_LOOP_sum, loss, rows);
  kiln__rows_close(l, rows);
  const int wide = kiln__lower_cast(l, sum, KILN_DTYPE_F64);
  rows->values[0] = kiln__rows_reduction(node) == 1 ? OP2(div, wide, total) : wide;
  rows->values[1] = total;
}
ROWS_BEGIN(nll_loss) { begin_nll(l, node, rows); }
ROW_VALUES(nll_loss)

/* -- Margins: self (N, C) or (C), target (N) or one, p, margin, weight, reduction: of rows -- */

ROWS_BEGIN(multi_margin_loss) {
  const kiln_tensor_detail *x = detail_of(node, 0), *target = detail_of(node, 1);
  double p, margin;
  kiln__lower_dim class;
  if (!kiln__lower_number(l, node, 2, &p) || !kiln__lower_number(l, node, 3, &margin)) return;
  if (!target || x->rank > 2 || target->rank != x->rank - 1 || (p != 1 && p != 2) ||
      kiln__rows_reduction(node) != 0 || !kiln__lower_is_float((kiln_dtype)x->dtype)) {
    (void)kiln__lower_refuse(l, KILN_REASON_types_unknown);
    return;
  }
  const int last = x->rank - 1;
  kiln__lower_map *at = kiln__lower_copied(l, &rows->kept), *own = kiln__lower_copied(l, at);
  at->rank = last;
  const kiln_dim classes = kiln__lower_sizes_of(l, kiln_node_input(node, 0)).sizes[last];
  const int wanted = kiln__lower_read_index(l, kiln_node_input(node, 1), at);
  if (wanted < 0 || !kiln__lower_at_index(l, node, wanted, classes, &class)) return;
  own->dims[last] = class;
  const int base = OP2(sub, F64(margin), wide(l, node, 0, own));
  const int weight = weight_of(l, node, 4, classes, &class);
  const kiln__lower_map *map = kiln__rows_open(l, node, rows);
  const kiln__lower_dim *k = &map->dims[last];
  const int other = OP2(ne, kiln_loop_index(l->fn, l->nest, k->offset, k->steps), wanted);
  const int z = OP2(add, base, wide(l, node, 0, map)), zero = F64(0);
  const int term = OP2(mul, p == 1 ? z : OP2(mul, z, z), weight);
  const int counted = OP2(and, other, OP2(gt, z, zero));
  const int sum = kiln__rows_reduce(l, KILN_LOOP_sum, SELECT(counted, term, zero), rows);
  kiln__rows_close(l, rows);
  rows->values[0] = OP2(div, sum, kiln__lower_size(l, KILN_DTYPE_F64, classes));
}
ROW_VALUES(multi_margin_loss)
