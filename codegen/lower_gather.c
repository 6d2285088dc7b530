/* lower_gather.c: operators that read at places which another tensor, the index, has.
 *
 * The interpreter complains of an index that is out of bounds wherever it stands. A kernel sees
 * those that its loops pass by: all of them, or there is no kernel. */
#include "codegen/lower.h"

/* Whether loops move the dimension over each of `size` elements: of 24, one loop does, or one of 4
 * by 6 with one of 6. */
static bool walks(const kiln__lowering *l, const kiln__lower_dim *at, kiln_dim size) {
  kiln_dim made = 1;
  uint32_t used = 0;
  for (int k = 0; k < KILN_LOOP_MAX_RANK; k++) {
    if (used >> k & 1 || at->steps[k] != made || l->extents[k] == 1) continue;
    made = kiln_dim_product(l->fn->dims, made, l->extents[k]);
    used |= 1u << k;
    k = -1; /* the next step may be of a loop before */
  }
  for (int k = 0; k < KILN_LOOP_MAX_RANK; k++) {
    if (at->steps[k] != 0 && l->extents[k] != 1 && !(used >> k & 1)) return false;
  }
  return made == size && at->offset == 0 && !at->check;
}

/* Whether the nest's loops pass by all elements, of which none moves with another's loop. */
static bool walks_all(kiln__lowering *l, const kiln_ir_value *value, const kiln__lower_map *map) {
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, value);
  uint32_t used = 0;
  for (int d = 0; d < map->rank; d++) {
    if (s.sizes[d] == 1) continue;
    if (!walks(l, &map->dims[d], s.sizes[d])) return false;
    for (int k = 0; k < KILN_LOOP_MAX_RANK; k++) {
      if (map->dims[d].steps[k] == 0 || l->extents[k] == 1) continue;
      if (used >> k & 1) return false;
      used |= 1u << k;
    }
  }
  return true;
}

int kiln__lower_read_index(kiln__lowering *l, const kiln_ir_value *index,
                           const kiln__lower_map *map) {
  const kiln_dtype dtype =
      index->type->detail ? (kiln_dtype)index->type->detail->dtype : KILN_DTYPE_NONE;
  const bool tries = l->output_count == 0; /* of a node alone the first point is looked at */
  if (dtype != KILN_DTYPE_I64 && dtype != KILN_DTYPE_I32)
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (!tries && !walks_all(l, index, map))
    return kiln__lower_refuse(l, KILN_REASON_index_not_all_read);
  return kiln__lower_cast(l, kiln__lower_value(l, index, map), KILN_DTYPE_I64);
}
bool kiln__lower_at_index(kiln__lowering *l, const kiln_node *node, int index, kiln_dim extent,
                          kiln__lower_dim *out) {
  if (index < 0) return false;
  if (!kiln_dim_is_known(extent)) return kiln__lower_refuse(l, KILN_REASON_types_unknown) == 0;
  *out = (kiln__lower_dim){.check = kiln_loop_check(l->fn, l->nest, index, extent) + 1, .times = 1};
  kiln_map_set_ptr(&l->gathered, node, (void *)(uintptr_t)node);
  return true;
}

/* Moves with a tensor at the map, whose numbers are below `extent`; where they wrap, from -extent
 * on. False, with a reason: it cannot. */
static bool move_with(kiln__lowering *l, const kiln_node *node, const kiln_ir_value *index,
                      const kiln__lower_map *map, kiln_dim extent, bool wraps,
                      kiln__lower_dim *out) {
  int value = kiln__lower_read_index(l, index, map);
  if (wraps && value >= 0 && kiln_dim_is_known(extent)) {
    const int size = kiln__lower_size(l, KILN_DTYPE_I64, extent);
    const int zero = kiln__lower_const(l, KILN_DTYPE_I64, 0);
    const int below = kiln__lower_op(l, KILN_LOOP_lt, value, zero, -1);
    const int moved = kiln__lower_op(l, KILN_LOOP_add, value, size, -1);
    value = kiln__lower_op(l, KILN_LOOP_select, below, moved, value);
  }
  return kiln__lower_at_index(l, node, value, extent, out);
}

/* Whether nothing complains that makes the value but is not read, as x in fill(x.view(4, -1), 1):
 * the index of what gathers is read, and other nodes could be lowered. `seen` has values that are
 * known. */
static bool unread_holds(kiln__lowering *l, const kiln_ir_value *value, kiln_map *seen) {
  const bool is_list = value->type->kind == KILN_TYPE_LIST;
  if (!is_list && value->type->kind != KILN_TYPE_TENSOR) return true;
  if (kiln_map_find_ptr(&l->buffers, value) || kiln_map_find_ptr(seen, value)) return true;
  kiln_map_set_ptr(seen, value, (void *)(uintptr_t)value);
  const kiln_node *node = value->node;
  const bool gathers = node->op && node->op->flags & KILN_OP_GATHERS;
  kiln_reason reason = KILN_REASON_none;
  if (gathers && !kiln_map_find_ptr(&l->gathered, node)) reason = KILN_REASON_index_not_all_read;
  if (!gathers && !is_list && !kiln_map_find_ptr(&l->met, node))
    reason = kiln_codegen_can_lower(node);
  if (reason != KILN_REASON_none) return kiln__lower_refuse(l, reason) == 0;
  for (int i = 0; i < node->input_count; i++)
    if (!unread_holds(l, kiln_node_input(node, i), seen)) return false;
  return true;
}

void kiln__lower_look_at_unread(kiln__lowering *l) {
  kiln_map seen = kiln_map_in(l->arena);
  for (int o = 0; o < l->output_count; o++)
    if (!unread_holds(l, l->outputs[o], &seen)) return;
}

static int rank_of(const kiln_node *node, int i) {
  const kiln_tensor_detail *detail = kiln_node_input(node, i)->type->detail;
  return detail ? detail->rank : -1;
}

static int dim_of(const kiln_node *node, int rank) {
  int64_t dim;
  if (!kiln_ir_value_const_int(kiln_node_input(node, 1), &dim)) return -1;
  if (dim < 0) dim += rank;
  return dim >= 0 && dim < rank ? (int)dim : -1;
}

static kiln_dim size_of(kiln__lowering *l, const kiln_node *node, int i, int d) {
  return kiln__lower_sizes_of(l, kiln_node_input(node, i)).sizes[d];
}

/* weight (n, m), indices: row indices[...] of the weight. */
KILN__LOWER(embedding) {
  const int rank = rank_of(node, 1);
  if (rank_of(node, 0) != 2 || rank != map->rank - 1)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  kiln__lower_map *at = kiln__lower_copied(l, map), *own = kiln__lower_new_map(l, 2);
  at->rank = rank;
  if (!move_with(l, node, kiln_node_input(node, 1), at, size_of(l, node, 0, 0), false,
                 &own->dims[0]))
    return -1;
  own->dims[1] = map->dims[rank];
  return kiln__lower_value(l, kiln_node_input(node, 0), own);
}

/* self, dim, index, a vector or a number: self at index[i] along the dimension. */
KILN__LOWER(index_select) {
  const int rank = rank_of(node, 0), dim = dim_of(node, rank), ranks = rank_of(node, 2);
  if (dim < 0 || rank != map->rank || ranks < 0 || ranks > 1)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  kiln__lower_map *at = kiln__lower_new_map(l, ranks), *own = kiln__lower_copied(l, map);
  if (ranks) at->dims[0] = map->dims[dim];
  if (!move_with(l, node, kiln_node_input(node, 2), at, size_of(l, node, 0, dim), false,
                 &own->dims[dim]))
    return -1;
  return kiln__lower_value(l, kiln_node_input(node, 0), own);
}

/* self, dim, index of as many dimensions, no larger along others. */
KILN__LOWER(gather) {
  const int rank = rank_of(node, 0), dim = dim_of(node, rank);
  if (dim < 0 || rank_of(node, 2) != rank || rank != map->rank)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln__lower_sizes self = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
  const kiln__lower_sizes index = kiln__lower_sizes_of(l, kiln_node_input(node, 2));
  for (int d = 0; d < rank; d++) {
    const kiln_sum size = kiln_sum_of(l->fn->dims, self.sizes[d]);
    const kiln_sum more = kiln_sum_minus(size, kiln_sum_of(l->fn->dims, index.sizes[d]));
    if (d != dim && !(more.known && kiln_sum_is_natural(l->fn->dims, more)))
      return kiln__lower_refuse(l, KILN_REASON_raises);
  }
  kiln__lower_map *own = kiln__lower_copied(l, map);
  if (!move_with(l, node, kiln_node_input(node, 2), map, self.sizes[dim], false, &own->dims[dim]))
    return -1;
  return kiln__lower_value(l, kiln_node_input(node, 0), own);
}

/* Tensors of integers among the indices of a list, the others being None. */
typedef struct indices {
  const kiln_node *list;
  int count, ranks, at[KILN_LOOP_MAX_RANK]; /* their greatest rank; which dimensions they are of */
  int first;                                /* dimension of the result that is the tensors' */
} indices;
static bool read_indices(kiln__lowering *l, const kiln_node *node, indices *x) {
  const kiln_node *list = kiln_node_input(node, 1)->node;
  *x = (indices){.list = list};
  if (!kiln_node_is(list, KILN_OP_prim_ListConstruct))
    return kiln__lower_refuse(l, KILN_REASON_not_constant) == 0;
  for (int i = 0; i < list->input_count; i++) {
    if (kiln__lower_is_none(list, i)) continue;
    const kiln_dtype dtype =
        kiln__lower_is_tensor(list, i) ? kiln__lower_input_dtype(list, i) : KILN_DTYPE_BOOL;
    if (dtype == KILN_DTYPE_BOOL || dtype == KILN_DTYPE_U8) /* a mask */
      return kiln__lower_refuse(l, KILN_REASON_no_indirect_load) == 0;
    const int rank = rank_of(list, i);
    if (rank < 0 || i >= rank_of(node, 0))
      return kiln__lower_refuse(l, KILN_REASON_types_unknown) == 0;
    if (rank > x->ranks) x->ranks = rank;
    x->at[x->count++] = i;
  }
  if (x->count == 0) return kiln__lower_refuse(l, KILN_REASON_no_indirect_load) == 0;
  const bool together = x->at[x->count - 1] - x->at[0] == x->count - 1;
  x->first = together ? x->at[0] : 0;
  return true;
}
/* Where index k stands for an element of the result: broadcast to the others. */
static bool map_index(kiln__lowering *l, const kiln_node *node, const indices *x, int k,
                      const kiln__lower_map *map, kiln__lower_map *out) {
  const kiln__lower_sizes own = kiln__lower_sizes_of(l, kiln_node_input(x->list, x->at[k]));
  const kiln__lower_sizes all = kiln__lower_sizes_of(l, kiln_node_output(node, 0));
  const int missing = x->ranks - out->rank + x->first;
  for (int d = 0; d < out->rank; d++) {
    if (own.sizes[d] == 1) continue;
    if (own.sizes[d] != all.sizes[missing + d])
      return kiln__lower_refuse(l, KILN_REASON_types_unknown) == 0;
    out->dims[d] = map->dims[missing + d];
  }
  return true;
}
/* self, indices: these are read for an element each, and stand together in the result, where they
 * stand in self, or in front where something is between them. */
KILN__LOWER(index) {
  indices x;
  if (!read_indices(l, node, &x)) return -1;
  const int rank = rank_of(node, 0);
  if (map->rank != rank - x.count + x.ranks)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  kiln__lower_map *own = kiln__lower_new_map(l, rank);
  for (int d = 0, k = 0, from = 0; d < rank; d++) {
    if (from == x.first) from += x.ranks;
    if (k == x.count || x.at[k] != d) {
      own->dims[d] = map->dims[from++];
      continue;
    }
    kiln__lower_map *at = kiln__lower_new_map(l, rank_of(x.list, d));
    if (!map_index(l, node, &x, k++, map, at)) return -1;
    const kiln_ir_value *index = kiln_node_input(x.list, d);
    if (!move_with(l, node, index, at, size_of(l, node, 0, d), true, &own->dims[d])) return -1;
  }
  return kiln__lower_value(l, kiln_node_input(node, 0), own);
}

/* self, index: elements by their number, where they lie in that order. A vector has it so. */
KILN__LOWER(take) {
  if (rank_of(node, 0) != 1) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  if (kiln__lower_input_dtype(node, 1) != KILN_DTYPE_I64)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  kiln__lower_map *own = kiln__lower_new_map(l, 1);
  if (!move_with(l, node, kiln_node_input(node, 1), map, size_of(l, node, 0, 0), true,
                 &own->dims[0]))
    return -1;
  return kiln__lower_value(l, kiln_node_input(node, 0), own);
}

/* self, a number of classes: 1 where the last dimension's counter is self's number, else 0. */
KILN__LOWER(one_hot) {
  const int rank = rank_of(node, 0);
  kiln__lower_dim class;
  int64_t given;
  if (kiln__lower_input_dtype(node, 0) != KILN_DTYPE_I64)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!kiln_ir_value_const_int(kiln_node_input(node, 1), &given) || rank != map->rank - 1)
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (given < 1) return kiln__lower_refuse(l, KILN_REASON_no_data_loop); /* data tells it */
  const kiln__lower_dim *counter = &map->dims[rank];
  kiln__lower_map *at = kiln__lower_copied(l, map);
  at->rank = rank;
  const kiln_dim classes = kiln__lower_sizes_of(l, kiln_node_output(node, 0)).sizes[rank];
  if (counter->check) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  if (!move_with(l, node, kiln_node_input(node, 0), at, classes, false, &class)) return -1;
  const int place = kiln_loop_index(l->fn, l->nest, counter->offset, counter->steps);
  const int same = kiln__lower_op(l, KILN_LOOP_eq, (int)class.check - 1, place, -1);
  return kiln__lower_cast(l, same, KILN_DTYPE_I64);
}
