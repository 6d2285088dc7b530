/* lower_part.c: tensors of which a part is another's: diagonals of zeros, and copies of which a
 * part is written. Where an element stands tells whose it is, or the part is a nest of its own. */
#include <string.h>

#include "codegen/lower.h"

#define OP2(name, a, b) kiln__lower_op(l, KILN_LOOP_##name, a, b, -1)
#define SELECT(mask, a, b) kiln__lower_op(l, KILN_LOOP_select, mask, a, b)

static int rank_of(const kiln_ir_value *value) {
  return value->type->detail ? value->type->detail->rank : -1;
}
/* -- Diagonals -- */

/* Whether an element stands on the diagonal of dimensions a and b, `offset` to the right. */
static int on_diagonal(kiln__lowering *l, const kiln__lower_map *map, int a, int b,
                       int64_t offset) {
  const kiln__lower_dim *i = &map->dims[a], *j = &map->dims[b];
  if (i->check || j->check) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  const int row = kiln_loop_index(l->fn, l->nest, i->offset, i->steps);
  const int column = kiln_loop_index(l->fn, l->nest, j->offset, j->steps);
  const int by = kiln_loop_const_i(l->fn, l->nest, KILN_DTYPE_I64, offset);
  return OP2(eq, OP2(add, row, by), column);
}
/* The last dimension of a value as the diagonal of the result's a and b; elsewhere `other` has the
 * elements, NULL: they are 0. Of rows and columns the one is looked at that the offset lengthens at
 * its end: beside the diagonal some element is read there, and behind the value's size none. */
static int diagonal(kiln__lowering *l, const kiln_ir_value *value, const kiln_ir_value *other,
                    const kiln__lower_map *map, int a, int b, int64_t offset) {
  const int last = map->rank - 2, along = offset < 0 ? b : a;
  if (a == b || rank_of(value) != map->rank - 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln_dtype dtype = (kiln_dtype)value->type->detail->dtype;
  if (!kiln_loop_class(dtype)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  const int side =
      kiln__lower_side(l, &map->dims[along], kiln__lower_sizes_of(l, value).sizes[last]);
  if (side == 0) return -1;
  const int rest =
      other ? kiln__lower_value(l, other, map)
            : kiln__lower_cast(l, kiln__lower_const(l, kiln__lower_compute(dtype), 0), dtype);
  if (side > 0) return rest;
  kiln__lower_map *own = kiln__lower_new_map(l, map->rank - 1);
  for (int d = 0, at = 0; d < map->rank; d++)
    if (d != a && d != b) own->dims[at++] = map->dims[d];
  own->dims[last] = map->dims[along];
  const int x = kiln__lower_value(l, value, own), on = on_diagonal(l, map, a, b, offset);
  return x < 0 || on < 0 ? -1 : SELECT(on, x, rest);
}
static int embed(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int a, int b,
                 int64_t offset) {
  return diagonal(l, kiln_node_input(node, 0), NULL, map, a, b, offset);
}
/* The offset is input `first`, the dimensions are the next two. */
static bool read_diagonal(kiln__lowering *l, const kiln_node *node, int first, int rank,
                          int64_t *offset, int *a, int *b) {
  return kiln__lower_int(l, node, first, 0, offset) &&
         kiln__lower_dimension(l, node, first + 1, rank, a) &&
         kiln__lower_dimension(l, node, first + 2, rank, b);
}
KILN__LOWER(diag_embed) {
  int64_t offset;
  int a, b;
  if (!read_diagonal(l, node, 1, map->rank, &offset, &a, &b)) return -1;
  return embed(l, node, map, a, b, offset);
}
/* diag(self, diagonal) of a vector; of a matrix its diagonal. */
KILN__LOWER(diag) {
  int64_t offset;
  if (!kiln__lower_int(l, node, 1, 0, &offset)) return -1;
  if (map->rank == 2) return embed(l, node, map, 0, 1, offset);
  kiln__lower_map *own = kiln__lower_new_map(l, 2);
  if (map->rank != 1 || rank_of(kiln_node_input(node, 0)) != 2)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  own->dims[0] = kiln__lower_moved(l, &map->dims[0], offset < 0 ? -offset : 0, 0);
  own->dims[1] = kiln__lower_moved(l, &map->dims[0], offset > 0 ? offset : 0, 0);
  return kiln__lower_value(l, kiln_node_input(node, 0), own);
}
/* Of a vector; what is flattened has no map. */
KILN__LOWER(diagflat) {
  int64_t offset;
  if (!kiln__lower_int(l, node, 1, 0, &offset)) return -1;
  if (rank_of(kiln_node_input(node, 0)) != 1)
    return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  return embed(l, node, map, 0, 1, offset);
}

/* -- Copies of which a part is written -- */

/* Self, but for elements [start, end) of a dimension, which are the part's at `own`. */
static int scattered(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int dim,
                     kiln_dim start, kiln_dim count, const kiln__lower_map *own) {
  kiln_dims *dims = l->fn->dims;
  const kiln_dim size = kiln__lower_sizes_of(l, kiln_node_input(node, 0)).sizes[dim];
  const kiln_dim end = kiln_dim_plus(dims, start, count);
  const kiln__lower_dim *at = &map->dims[dim];
  if (kiln__lower_input_dtype(node, 0) != kiln__lower_input_dtype(node, 1))
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (!kiln_dim_is_known(start) || !kiln_dim_is_known(end))
    return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln_sum behind = kiln_sum_minus(kiln_sum_of(dims, size), kiln_sum_of(dims, end));
  if (!kiln_sum_is_natural(dims, behind)) {
    const bool numbers = kiln_dim_is_number(size) && kiln_dim_is_number(end);
    return kiln__lower_refuse(l, numbers ? KILN_REASON_raises : KILN_REASON_dynamic_as_static);
  }
  const int begun = start == 0 ? 1 : kiln__lower_side(l, at, start);
  if (begun == 0) return -1;
  const int ended = begun < 0 ? 1 : end == size ? -1 : kiln__lower_side(l, at, end);
  if (ended == 0) return -1;
  return ended > 0 ? kiln__lower_value(l, kiln_node_input(node, 0), map)
                   : kiln__lower_value(l, kiln_node_input(node, 1), own);
}

/* Whether a part has the sizes of self's diagonal of dimensions a and b, for certain. */
static bool is_diagonal(kiln__lowering *l, const kiln_node *node, int rank, int a, int b,
                        int64_t offset) {
  kiln_dims *dims = l->fn->dims;
  const kiln__lower_sizes self = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
  const kiln__lower_sizes part = kiln__lower_sizes_of(l, kiln_node_input(node, 1));
  kiln_sum down = kiln_sum_of(dims, self.sizes[a]), along = kiln_sum_of(dims, self.sizes[b]);
  if (offset < 0) down = kiln_sum_plus(down, kiln_sum_number(offset));
  if (offset > 0) along = kiln_sum_minus(along, kiln_sum_number(offset));
  if (!kiln_sum_is_natural(dims, kiln_sum_minus(along, down))) {
    if (!kiln_sum_is_natural(dims, kiln_sum_minus(down, along))) return false;
    down = along;
  }
  int at = 0;
  for (int d = 0; d < rank; d++)
    if (d != a && d != b && self.sizes[d] != part.sizes[at++]) return false;
  return kiln_sum_is_natural(dims, down) && kiln_sum_dim(dims, down) == part.sizes[at];
}

/* Whether the part has self's sizes but along `dim`, which it may lack; else, with a reason, it may
 * not, and the operator complain. */
static bool part_fits(kiln__lowering *l, const kiln_node *node, int rank, int dim, bool lacks) {
  const kiln__lower_sizes self = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
  const kiln__lower_sizes part = kiln__lower_sizes_of(l, kiln_node_input(node, 1));
  for (int d = 0; d < rank; d++) {
    const kiln_dim a = self.sizes[d], b = part.sizes[d - (lacks && d > dim)];
    if (d == dim || a == b) continue;
    const bool numbers = kiln_dim_is_number(a) && kiln_dim_is_number(b);
    return kiln__lower_refuse(l, numbers ? KILN_REASON_raises : KILN_REASON_dynamic_as_static) == 0;
  }
  return true;
}

/* -- Parts that are written where they are -- */

static bool same_dims(const kiln_tensor_detail *a, const kiln_tensor_detail *b, int but) {
  bool same = a->rank == b->rank && a->dtype == b->dtype;
  for (int d = 0; same && d < a->rank; d++) same = d == but || a->sizes[d] == b->sizes[d];
  return same;
}

static bool lies_alike(const kiln_tensor_detail *a, const kiln_tensor_detail *b) {
  const size_t bytes = sizeof *a->strides * (size_t)a->rank;
  return a->physical == b->physical && a->has_strides && b->has_strides &&
         (bytes == 0 || memcmp(a->strides, b->strides, bytes) == 0);
}

bool kiln_codegen_place(const kiln_graph *graph, int output, kiln_place *out) {
  const kiln_ir_value *result = kiln_graph_output(graph, output);
  const kiln_node *n = result->node;
  int64_t dim, begin = 0, end;
  if (!kiln_node_is(n, KILN_OP_slice_scatter) || result->use_count != 1) return false;
  const kiln_ir_value *whole = kiln_node_input(n, 0), *part = kiln_node_input(n, 1);
  const bool is_new = kiln_node_is(whole->node, KILN_OP_new_empty);
  if (whole->use_count != 1 || !(is_new || whole->node == graph->top->param) ||
      !kiln_type_has_dims(result->type) || !kiln_type_has_dims(whole->type) ||
      !kiln_type_has_dims(part->type))
    return false;
  const kiln_tensor_detail *all = result->type->detail, *d = part->type->detail;
  if (!same_dims(all, whole->type->detail, -1) ||
      !(is_new || lies_alike(all, whole->type->detail)) ||
      !kiln_ir_value_const_int(kiln_node_input(n, 2), &dim) ||
      !kiln_ir_value_const_int(kiln_node_input(n, 3), &begin) ||
      !kiln_ir_value_const_int(kiln_node_input(n, 4), &end) ||
      !kiln_ir_value_is_number(kiln_node_input(n, 5), 1))
    return false;
  if (dim < 0) dim += all->rank;
  if (dim < 0 || dim >= all->rank || !same_dims(all, d, (int)dim) ||
      !kiln_dim_is_number(all->sizes[dim]) || begin < 0 || end > all->sizes[dim] ||
      end - begin != d->sizes[dim])
    return false;
  *out = (kiln_place){part, is_new ? NULL : whole, (int)dim, begin};
  return true;
}

/* -- The others -- */

/* select_scatter(self, src, dim, index) */
KILN__LOWER(select_scatter) {
  int64_t index;
  int dim;
  if (!kiln__lower_dimension(l, node, 2, map->rank, &dim) ||
      !kiln__lower_int(l, node, 3, 0, &index))
    return -1;
  if (rank_of(kiln_node_input(node, 1)) != map->rank - 1)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!part_fits(l, node, map->rank, dim, true)) return -1;
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
  kiln__lower_map *own = kiln__lower_new_map(l, map->rank - 1);
  for (int d = 0; d < own->rank; d++) own->dims[d] = map->dims[d < dim ? d : d + 1];
  return scattered(l, node, map, dim, kiln__lower_place(l, s.sizes[dim], index), 1, own);
}
/* slice_scatter(self, src, dim, start, end, step): parts of neighbours. */
KILN__LOWER(slice_scatter) {
  const kiln_tensor_detail *src = kiln_node_input(node, 1)->type->detail;
  int64_t start, stop, step;
  int dim;
  if (!kiln__lower_dimension(l, node, 2, map->rank, &dim) ||
      !kiln__lower_int(l, node, 3, 0, &start) ||
      !kiln__lower_int(l, node, 4, KILN_DIM_MOST, &stop) || !kiln__lower_int(l, node, 5, 1, &step))
    return -1;
  if (step != 1 || !src || src->rank != map->rank)
    return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  const kiln_dim size = kiln__lower_sizes_of(l, kiln_node_input(node, 0)).sizes[dim];
  const kiln_dim count = kiln__lower_sizes_of(l, kiln_node_input(node, 1)).sizes[dim];
  kiln_dim from = kiln__lower_place(l, size, start);
  if (!kiln_dim_is_known(from) && kiln_dim_is_number(size)) from = 0;
  kiln_dim to = stop >= KILN_DIM_MOST ? size : kiln__lower_place(l, size, stop);
  if (kiln_dim_is_number(size) && to > size) to = size;
  if (!kiln_dim_is_known(from) || kiln_dim_plus(l->fn->dims, from, count) != to)
    return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
  if (!part_fits(l, node, map->rank, dim, false)) return -1;
  kiln__lower_map *own = kiln__lower_copied(l, map);
  own->dims[dim] = kiln__lower_moved(l, &map->dims[dim], 0, from);
  return scattered(l, node, map, dim, from, count, own);
}
/* diagonal_scatter(self, src, offset, dim1, dim2) */
KILN__LOWER(diagonal_scatter) {
  const kiln_ir_value *self = kiln_node_input(node, 0), *src = kiln_node_input(node, 1);
  int64_t offset;
  int a, b;
  if (!read_diagonal(l, node, 2, map->rank, &offset, &a, &b)) return -1;
  if (rank_of(src) != map->rank - 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!is_diagonal(l, node, map->rank, a, b, offset))
    return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
  if (kiln__lower_input_dtype(node, 0) != kiln__lower_input_dtype(node, 1))
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  return diagonal(l, src, self, map, a, b, offset);
}
