/* lower_view.c: operators that only change where elements stand or what type they have. */
#include "codegen/lower.h"

/* to.dtype, type_as, float(), …: the result's type says it all. */
KILN__LOWER(to) {
  return kiln__lower_input(l, node, 0, map, kiln__lower_result_dtype(node, output));
}

static int64_t size_at(const kiln_ir_value *value, int64_t dim) {
  return value->type->detail->sizes[dim];
}
/* A dimension that may count from the end; -1 when it is out of range. */
static int64_t wrap(int64_t dim, int rank) {
  if (dim < 0) dim += rank;
  return dim >= 0 && dim < rank ? dim : -1;
}

/* prim::ConstantChunk[chunks, dim]: an offset of as many whole chunks. */
KILN__LOWER(constant_chunk) {
  const kiln_ir_value *self = kiln_node_input(node, 0);
  int64_t dim = wrap(kiln_node_int(node, "dim", 0), map->rank);
  int64_t chunks = kiln_node_int(node, "chunks", 1);
  if (dim < 0 || chunks < 1 || !self->type->detail || self->type->detail->rank != map->rank)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  int64_t size = size_at(self, dim), step = (size + chunks - 1) / chunks;
  kiln__lower_map own = *map;
  own.dims[dim].offset += step * output;
  return kiln__lower_value(l, self, &own);
}

KILN__LOWER(unsqueeze) {
  (void)output;
  double at;
  if (!kiln__lower_number(l, node, 1, &at)) return -1;
  int64_t dim = wrap((int64_t)at, map->rank);
  if (dim < 0) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  kiln__lower_map own = {.rank = map->rank - 1};
  for (int d = 0; d < own.rank; d++) own.dims[d] = map->dims[d < dim ? d : d + 1];
  return kiln__lower_value(l, kiln_node_input(node, 0), &own);
}

/* A tensor of one dimension and no elements, which cat leaves out whatever the others are. */
static bool is_skipped(const kiln_ir_value *piece) {
  return piece->type->detail->rank == 1 && piece->type->detail->sizes[0] == 0;
}

/* The piece in which the domain begins; where the domain goes on beyond it, it is cut. */
KILN__LOWER(cat) {
  const kiln_node *list = kiln_node_input(node, 0)->node;
  double at;
  if (!list->op || list->op->id != KILN_OP_prim_ListConstruct)
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (!kiln__lower_number(l, node, 1, &at)) return -1;
  int64_t dim = wrap((int64_t)at, map->rank), begin = 0;
  if (dim < 0) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  kiln__lower_dim where = map->dims[dim];
  int64_t length = where.loop >= 0 ? l->nest->extents[where.loop] : 1;
  for (int i = 0; i < list->input_count; i++) {
    const kiln_ir_value *piece = kiln_node_input(list, i);
    if (!piece->type->detail) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
    if (is_skipped(piece)) continue;
    if (piece->type->detail->rank != map->rank)
      return kiln__lower_refuse(l, KILN_REASON_types_unknown);
    int64_t end = begin + size_at(piece, dim);
    if (where.offset < end) {
      if (where.offset + length > end) {
        l->split_loop = where.loop;
        l->split_at = end - where.offset;
        return -1;
      }
      kiln__lower_map own = *map;
      own.dims[dim].offset -= begin;
      return kiln__lower_cast(l, kiln__lower_value(l, piece, &own),
                              kiln__lower_result_dtype(node, output));
    }
    begin = end;
  }
  return kiln__lower_refuse(l, KILN_REASON_types_unknown);
}
