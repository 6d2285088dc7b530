/* lower_index.c: operators that ask where an element stands, and places that are computed of it. */
#include "codegen/lower.h"

#define OP2(name, a, b) kiln__lower_op(l, KILN_LOOP_##name, a, b, -1)

/* The number of the element along dimension d of the map. */
static int place_of(kiln__lowering *l, const kiln__lower_map *map, int d) {
  if (map->dims[d].check) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  return kiln_loop_index(l->fn, l->nest, map->dims[d].offset, map->dims[d].steps);
}

/* The lower triangle: columns up to row + diagonal; the upper one: from there on. */
static int triangle(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                    bool upper) {
  const kiln_ivalue *diagonal = kiln_ir_value_constant(kiln_node_input(node, 1));
  const kiln_dtype dtype = kiln__lower_compute(kiln__lower_input_dtype(node, 0));
  const int64_t far = INT64_C(1) << 60; /* beyond all sizes */
  if (map->rank < 2) return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!diagonal || diagonal->tag != KILN_TAG_INT)
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  const int64_t by = diagonal->u.i > far ? far : diagonal->u.i < -far ? -far : diagonal->u.i;
  const int x = kiln__lower_input(l, node, 0, map, dtype);
  const int row = place_of(l, map, map->rank - 2), column = place_of(l, map, map->rank - 1);
  const int edge = OP2(add, row, kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_I64, by));
  const int inside = upper ? OP2(ge, column, edge) : OP2(le, column, edge);
  const int zero = kiln__lower_const(l, dtype, 0);
  return kiln__lower_cast(l, kiln__lower_op(l, KILN_LOOP_select, inside, x, zero),
                          kiln__lower_result_dtype(node, 0));
}
KILN__LOWER(tril) { return triangle(l, node, map, false); }
KILN__LOWER(triu) { return triangle(l, node, map, true); }

bool kiln__lower_backward(kiln__lowering *l, const kiln__lower_dim *index, kiln_dim last,
                          kiln_dim size, kiln__lower_dim *out) {
  if (index->check) return kiln__lower_refuse(l, KILN_REASON_no_affine_map) == 0;
  const int place = kiln_loop_index(l->fn, l->nest, index->offset, index->steps);
  const int from = OP2(sub, kiln__lower_size(l, KILN_DTYPE_I64, last), place);
  if (from < 0) return false;
  *out = (kiln__lower_dim){.check = kiln_loop_check(l->fn, l->nest, from, size) + 1, .times = 1};
  return true;
}
