/* lower_view.c: operators that only change where elements stand. */
#include "codegen/lower.h"

/* A dimension that may count from the end; -1 when it is out of range. */
static int64_t wrap(int64_t dim, int rank) {
  if (dim < 0) dim += rank;
  return dim >= 0 && dim < rank ? dim : -1;
}

/* prim::ConstantChunk[chunks, dim]: an offset of as many whole chunks. */
KILN__LOWER_EACH(constant_chunk) {
  const kiln_ir_value *self = kiln_node_input(node, 0);
  int64_t dim = wrap(kiln_node_int(node, "dim", 0), map->rank);
  int64_t chunks = kiln_node_int(node, "chunks", 1);
  if (dim < 0 || chunks < 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!self->type->detail || self->type->detail->rank != map->rank)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  const kiln_dim size = kiln__lower_sizes_of(l, self).sizes[dim];
  if (!kiln_dim_is_number(size)) return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
  const int64_t step = (size + chunks - 1) / chunks;
  kiln__lower_map own = *map;
  own.dims[dim].offset += step * output;
  return kiln__lower_value(l, self, &own);
}
