/* lower_view.c: operators that only change where elements stand: each reads its argument at another
 * map. Joins are in lower_join.c. Sizes are those of the result's type: arguments that decide them
 * are constants in a group. */
#include "codegen/lower.h"

/* -- Arguments -- */

/* A dimension that may count from the end; -1 when it is out of range. */
static int wrap(int64_t dim, int rank) {
  if (dim < 0) dim += rank;
  return dim >= 0 && dim < rank ? (int)dim : -1;
}

static bool refuse(kiln__lowering *l, kiln_reason reason) {
  return kiln__lower_refuse(l, reason) == 0;
}

static int rank_of(const kiln_ir_value *value) {
  return value->type->detail ? value->type->detail->rank : -1;
}

/* A dimension of the first argument, which has `more` more for this purpose. */
static bool dim_arg(kiln__lowering *l, const kiln_node *node, int i, int more, int *out) {
  return kiln__lower_dimension(l, node, i, rank_of(kiln_node_input(node, 0)) + more, out);
}

/* The ints of a list, or one. */
typedef struct ints {
  int count;
  int64_t at[KILN_LOOP_MAX_RANK * 2];
} ints;
static bool ints_arg(kiln__lowering *l, const kiln_node *node, int i, ints *out) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, i));
  *out = (ints){.count = 1};
  if (v && v->tag == KILN_TAG_INT) {
    out->at[0] = v->u.i;
    return true;
  }
  if (!v || v->tag != KILN_TAG_LIST) return refuse(l, KILN_REASON_not_constant);
  if (v->u.list->count > KILN_LOOP_MAX_RANK * 2) return refuse(l, KILN_REASON_rank);
  out->count = (int)v->u.list->count;
  for (int k = 0; k < out->count; k++) out->at[k] = v->u.list->items[k].u.i;
  return true;
}

static kiln__lower_sizes self_sizes(kiln__lowering *l, const kiln_node *node) {
  return kiln__lower_sizes_of(l, kiln_node_input(node, 0));
}

/* The first argument, whose ranks are known. */
static int read_self(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *own) {
  return kiln__lower_value(l, kiln_node_input(node, 0), own);
}

/* -- The same elements -- */

KILN__LOWER(itself) { return read_self(l, node, map); }

/* In another dtype, where casts are the kernel's: not from a float to an int, nor, at once, from
 * what f32 does not hold to a half. */
KILN__LOWER(converted) {
  const kiln_dtype from = kiln__lower_input_dtype(node, 0), to = kiln__lower_result_dtype(node, 0);
  const int a = kiln_loop_class(from), b = kiln_loop_class(to);
  const bool cut = (b & KILN_LOOP_CLASS_I) && (a & (KILN_LOOP_CLASS_F | KILN_LOOP_CLASS_H));
  const bool twice = (b & KILN_LOOP_CLASS_H) && from != KILN_DTYPE_F32 && from != KILN_DTYPE_BOOL;
  if (from != to && (cut || twice)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  return kiln__lower_cast(l, read_self(l, node, map), to);
}

/* -- Other sizes, in the same order -- */

/* Dimensions [a, a_end) and [b, b_end) of the two that have as many elements. */
typedef struct span {
  int a, a_end, b, b_end;
} span;

/* The shortest ones from s->a and s->b on. */
static bool find_span(kiln__lowering *l, const kiln__lower_sizes *from, int from_rank,
                      const kiln__lower_sizes *to, int to_rank, span *s) {
  kiln_dims *dims = l->fn->dims;
  kiln_dim a = from->sizes[s->a], b = to->sizes[s->b];
  s->a_end = s->a + 1;
  s->b_end = s->b + 1;
  while (a != b) {
    const kiln_sum apart = kiln_sum_minus(kiln_sum_of(dims, b), kiln_sum_of(dims, a));
    if (!apart.known) return refuse(l, KILN_REASON_no_affine_map);
    if (kiln_sum_is_natural(dims, apart) && s->a_end < from_rank) {
      a = kiln_dim_product(dims, a, from->sizes[s->a_end++]);
    } else if (kiln_sum_is_natural(dims, kiln_sum_times(apart, -1)) && s->b_end < to_rank) {
      b = kiln_dim_product(dims, b, to->sizes[s->b_end++]);
    } else {
      return refuse(l, KILN_REASON_no_affine_map);
    }
  }
  return true;
}

/* Where in `from` the elements of a span are: their number in it, taken apart again. */
static bool map_span(kiln__lowering *l, const kiln__lower_sizes *from, const kiln__lower_sizes *to,
                     const span *s, const kiln__lower_map *map, kiln__lower_map *own) {
  kiln__lower_dim at = map->dims[s->b];
  for (int d = s->b + 1; d < s->b_end; d++) {
    at = kiln__lower_times(l, &at, to->sizes[d]);
    at = kiln__lower_plus(l, &at, &map->dims[d]);
  }
  for (int d = s->a_end - 1; d > s->a; d--) {
    kiln_dim outer = 1;
    for (int k = s->a; k < d; k++) outer = kiln_dim_product(l->fn->dims, outer, from->sizes[k]);
    const kiln__lower_dim index = at;
    if (!kiln__lower_divide(l, &index, outer, from->sizes[d], &at, &own->dims[d])) return false;
  }
  own->dims[s->a] = at;
  return true;
}

/* Whatever keeps the order of the elements: view, flatten, squeeze, ... */
KILN__LOWER(reshape) {
  const kiln_ir_value *result = kiln_node_output(node, 0);
  const int from_rank = rank_of(kiln_node_input(node, 0)), to_rank = rank_of(result);
  if (from_rank < 0 || to_rank != map->rank)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  const kiln__lower_sizes from = self_sizes(l, node), to = kiln__lower_sizes_of(l, result);
  kiln__lower_map *own = kiln__lower_new_map(l, from_rank);
  span s = {0};
  for (;;) {
    while (s.a < from_rank && from.sizes[s.a] == 1) s.a++;
    while (s.b < to_rank && to.sizes[s.b] == 1) s.b++;
    if (s.a == from_rank && s.b == to_rank) break;
    if (s.a == from_rank || s.b == to_rank) return kiln__lower_refuse(l, KILN_REASON_raises);
    if (!find_span(l, &from, from_rank, &to, to_rank, &s)) return -1;
    if (!map_span(l, &from, &to, &s, map, own)) return -1;
    s.a = s.a_end;
    s.b = s.b_end;
  }
  return read_self(l, node, own);
}

/* expand, expand_as, broadcast_to: what is not there in the argument drops its loops. */
KILN__LOWER(expand) { return kiln__lower_input(l, node, 0, map, KILN_DTYPE_NONE); }

/* -- Order of dimensions -- */

/* Dimension d of the result is dimension order[d] of the argument. */
static int read_ordered(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                        const int *order) {
  kiln__lower_map *own = kiln__lower_new_map(l, map->rank);
  if (rank_of(kiln_node_input(node, 0)) != map->rank)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  for (int d = 0; d < map->rank; d++) own->dims[order[d]] = map->dims[d];
  return read_self(l, node, own);
}

static int read_swapped(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int a,
                        int b) {
  int order[KILN_LOOP_MAX_RANK];
  for (int d = 0; d < map->rank; d++) order[d] = d == a ? b : d == b ? a : d;
  return read_ordered(l, node, map, order);
}

KILN__LOWER(transpose) {
  int a, b;
  if (map->rank == 0) return read_self(l, node, map);
  if (!dim_arg(l, node, 1, 0, &a) || !dim_arg(l, node, 2, 0, &b)) return -1;
  return read_swapped(l, node, map, a, b);
}
/* The last two, where there are two: t, mT. */
KILN__LOWER(matrix_T) {
  if (map->rank < 2) return read_self(l, node, map);
  return read_swapped(l, node, map, map->rank - 2, map->rank - 1);
}
KILN__LOWER(numpy_T) {
  int order[KILN_LOOP_MAX_RANK];
  for (int d = 0; d < map->rank; d++) order[d] = map->rank - 1 - d;
  return read_ordered(l, node, map, order);
}

KILN__LOWER(permute) {
  ints dims;
  int order[KILN_LOOP_MAX_RANK];
  uint32_t seen = 0;
  if (!ints_arg(l, node, 1, &dims)) return -1;
  for (int d = 0; d < dims.count && d < map->rank; d++) {
    order[d] = wrap(dims.at[d], map->rank);
    if (order[d] >= 0) seen |= 1u << order[d];
  }
  if (dims.count != map->rank || seen != (1u << map->rank) - 1)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  return read_ordered(l, node, map, order);
}

KILN__LOWER(movedim) {
  ints from, to;
  int order[KILN_LOOP_MAX_RANK], next = 0;
  uint32_t taken = 0;
  if (!ints_arg(l, node, 1, &from) || !ints_arg(l, node, 2, &to)) return -1;
  for (int d = 0; d < map->rank; d++) order[d] = -1;
  for (int i = 0; i < from.count && from.count == to.count; i++) {
    const int a = wrap(from.at[i], map->rank), b = wrap(to.at[i], map->rank);
    if (a < 0 || b < 0 || (taken >> a & 1) || order[b] >= 0)
      return kiln__lower_refuse(l, KILN_REASON_raises);
    taken |= 1u << a;
    order[b] = a;
  }
  if (from.count != to.count) return kiln__lower_refuse(l, KILN_REASON_raises);
  for (int d = 0; d < map->rank; d++) {
    if (order[d] >= 0) continue;
    while (taken >> next & 1) next++;
    order[d] = next++;
  }
  return read_ordered(l, node, map, order);
}

/* -- Parts -- */

/* With dimension `dim` at `at`, which the result lacks. */
static int read_at(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int dim,
                   kiln_dim at) {
  kiln__lower_map *own = kiln__lower_new_map(l, map->rank + 1);
  for (int d = 0; d < own->rank; d++)
    if (d != dim) own->dims[d] = map->dims[d < dim ? d : d - 1];
  own->dims[dim].offset = at;
  return read_self(l, node, own);
}

/* From element `start` of dimension `dim` on. */
static int read_from(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int dim,
                     kiln_dim start) {
  kiln__lower_map *own = kiln__lower_copied(l, map);
  own->dims[dim] = kiln__lower_moved(l, &own->dims[dim], start, 0);
  return read_self(l, node, own);
}

/* Whether `count` elements from `start` on are there, for certain: where the argument is repeated
 * along `dim`, nothing is read by which it would be seen that they are not. */
static bool has_part(kiln__lowering *l, const kiln_node *node, int dim, kiln_dim start,
                     kiln_dim count) {
  kiln_dims *dims = l->fn->dims;
  const kiln_sum end = kiln_sum_plus(kiln_sum_of(dims, start), kiln_sum_of(dims, count));
  const kiln_sum size = kiln_sum_of(dims, self_sizes(l, node).sizes[dim]);
  return (end.known && size.known && kiln_dims_prove(dims, end, size)) ||
         kiln__lower_refuse(l, KILN_REASON_raises) == 0;
}

KILN__LOWER(select) {
  int dim;
  int64_t index;
  if (!dim_arg(l, node, 1, 0, &dim) || !kiln__lower_int(l, node, 2, 0, &index)) return -1;
  const kiln_dim at = kiln__lower_place(l, self_sizes(l, node).sizes[dim], index);
  return has_part(l, node, dim, at, 1) ? read_at(l, node, map, dim, at) : -1;
}

KILN__LOWER(slice) {
  int dim;
  int64_t start, step;
  if (!dim_arg(l, node, 1, 0, &dim) || !kiln__lower_int(l, node, 2, 0, &start) ||
      !kiln__lower_int(l, node, 4, 1, &step)) {
    return -1;
  }
  const kiln_dim size = self_sizes(l, node).sizes[dim];
  kiln_dim from = kiln__lower_place(l, size, start);
  if (!kiln_dim_is_known(from) && kiln_dim_is_number(size)) from = 0;
  if (!kiln_dim_is_known(from)) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  kiln__lower_map *own = kiln__lower_copied(l, map);
  own->dims[dim] = kiln__lower_times(l, &own->dims[dim], step);
  return read_from(l, node, own, dim, from);
}

KILN__LOWER(narrow) {
  int dim;
  int64_t start;
  if (!dim_arg(l, node, 1, 0, &dim) || !kiln__lower_int(l, node, 2, 0, &start)) return -1;
  const kiln_dim from = kiln__lower_place(l, self_sizes(l, node).sizes[dim], start);
  const kiln_dim count = kiln__lower_sizes_of(l, kiln_node_output(node, 0)).sizes[dim];
  return has_part(l, node, dim, from, count) ? read_from(l, node, map, dim, from) : -1;
}

/* unfold(self, dim, size, step): windows that may overlap. */
KILN__LOWER(unfold) {
  int dim;
  int64_t step;
  if (map->rank < 2) return kiln__lower_refuse(l, KILN_REASON_rank); /* of a number */
  if (!dim_arg(l, node, 1, 0, &dim) || !kiln__lower_int(l, node, 3, 1, &step)) return -1;
  kiln__lower_map *own = kiln__lower_copied(l, map);
  own->rank--;
  const kiln__lower_dim first = kiln__lower_times(l, &map->dims[dim], step);
  own->dims[dim] = kiln__lower_plus(l, &first, &map->dims[own->rank]);
  return read_self(l, node, own);
}

KILN__LOWER(diagonal) {
  int64_t offset;
  int a, b;
  if (!kiln__lower_int(l, node, 1, 0, &offset) || !dim_arg(l, node, 2, 0, &a) ||
      !dim_arg(l, node, 3, 0, &b))
    return -1;
  if (a == b || map->rank < 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  kiln__lower_map *own = kiln__lower_new_map(l, map->rank + 1);
  const kiln__lower_dim *last = &map->dims[map->rank - 1];
  for (int d = 0, at = 0; d < own->rank; d++)
    if (d != a && d != b) own->dims[d] = map->dims[at++];
  own->dims[a] = kiln__lower_moved(l, last, offset < 0 ? -offset : 0, 0);
  own->dims[b] = kiln__lower_moved(l, last, offset > 0 ? offset : 0, 0);
  return read_self(l, node, own);
}

/* -- Lists of parts -- */

/* prim::ConstantChunk[chunks, dim], chunk(self, chunks, dim): an offset of as many whole chunks. */
static int read_chunk(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                      int64_t chunks, int64_t dim, int output) {
  const int at = wrap(dim, map->rank);
  if (at < 0 || chunks < 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  if (rank_of(kiln_node_input(node, 0)) != map->rank)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  kiln_dims *dims = l->fn->dims;
  const kiln_sum size = kiln_sum_of(dims, self_sizes(l, node).sizes[at]);
  const kiln_sum up = kiln_sum_plus(size, kiln_sum_number(chunks - 1));
  const kiln_sum begin = kiln_sum_times(kiln_sum_divided(dims, up, chunks), output);
  return read_from(l, node, map, at, kiln_sum_dim(dims, begin));
}
KILN__LOWER_EACH(constant_chunk) {
  return read_chunk(l, node, map, kiln_node_int(node, "chunks", 1), kiln_node_int(node, "dim", 0),
                    output);
}
KILN__LOWER_EACH(chunk) {
  int64_t chunks, dim;
  if (!kiln__lower_int(l, node, 1, 1, &chunks) || !kiln__lower_int(l, node, 2, 0, &dim)) return -1;
  return read_chunk(l, node, map, chunks, dim, output);
}

/* split(self, size, dim), split_with_sizes(self, sizes, dim). */
KILN__LOWER_EACH(split) {
  ints sizes;
  int dim;
  int64_t start = 0;
  if (!ints_arg(l, node, 1, &sizes) || !dim_arg(l, node, 2, 0, &dim)) return -1;
  const bool is_list = kiln_node_input(node, 1)->type->kind == KILN_TYPE_LIST;
  if (is_list && output >= sizes.count) return kiln__lower_refuse(l, KILN_REASON_raises);
  for (int i = 0; i < output; i++) start += sizes.at[is_list ? i : 0];
  return read_from(l, node, map, dim, start);
}

KILN__LOWER_EACH(unbind) {
  int dim;
  if (!dim_arg(l, node, 1, 0, &dim)) return -1;
  return read_at(l, node, map, dim, output);
}

/* In so many parts: the first ones may have one element more. */
static int read_section(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                        int dim, int output) {
  int64_t sections;
  if (!kiln__lower_int(l, node, 1, 1, &sections)) return -1;
  const kiln_dim size = self_sizes(l, node).sizes[dim];
  if (sections < 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!kiln_dim_is_number(size)) return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
  const int64_t longer = size % sections;
  return read_from(l, node, map, dim,
                   output * (size / sections) + (output < longer ? output : longer));
}
/* In parts that begin there. */
static int read_part(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int dim,
                     int output) {
  ints begins;
  if (!ints_arg(l, node, 1, &begins)) return -1;
  if (output > begins.count) return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln_dim from =
      output == 0 ? 0 : kiln__lower_place(l, self_sizes(l, node).sizes[dim], begins.at[output - 1]);
  if (!kiln_dim_is_known(from)) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  return read_from(l, node, map, dim, from);
}
/* tensor_split(self, sections or indices, dim); of hsplit, vsplit and dsplit the dimension is the
 * columns' (of a vector its own), the rows', the third. */
KILN__LOWER_EACH(tensor_split_sections) {
  int dim;
  return dim_arg(l, node, 2, 0, &dim) ? read_section(l, node, map, dim, output) : -1;
}
KILN__LOWER_EACH(tensor_split_indices) {
  int dim;
  return dim_arg(l, node, 2, 0, &dim) ? read_part(l, node, map, dim, output) : -1;
}
static int split_at(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int dim,
                    int output) {
  if (map->rank <= dim) return kiln__lower_refuse(l, KILN_REASON_raises);
  return kiln_node_input(node, 1)->type->kind == KILN_TYPE_LIST
             ? read_part(l, node, map, dim, output)
             : read_section(l, node, map, dim, output);
}
KILN__LOWER_EACH(hsplit) { return split_at(l, node, map, map->rank > 1, output); }
KILN__LOWER_EACH(vsplit) { return split_at(l, node, map, 0, output); }
KILN__LOWER_EACH(dsplit) { return split_at(l, node, map, 2, output); }

/* meshgrid(tensors, indexing): each goes along a dimension of its own; of "xy" the first two along
 * each other's. */
KILN__LOWER_EACH(meshgrid) {
  const kiln_node *list = kiln_node_input(node, 0)->node;
  bool swaps = false;
  if (!kiln_node_is(list, KILN_OP_prim_ListConstruct))
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (node->input_count > 1) {
    const kiln_ivalue *how = kiln_ir_value_constant(kiln_node_input(node, 1));
    if (!how || how->tag != KILN_TAG_STRING) return kiln__lower_refuse(l, KILN_REASON_not_constant);
    swaps = kiln_str_is(kiln_string_view(how->u.string), "xy") && map->rank > 1;
  }
  const kiln_ir_value *vector = kiln_node_input(list, output);
  const int rank = rank_of(vector);
  if (rank < 0 || rank > 1 || map->rank != list->input_count)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  kiln__lower_map *own = kiln__lower_new_map(l, rank);
  if (rank == 1) own->dims[0] = map->dims[swaps && output < 2 ? 1 - output : output];
  return kiln__lower_value(l, vector, own);
}

/* broadcast_tensors(tensors): what a symbol and 2 are next the operator itself must see. */
KILN__LOWER_EACH(broadcast_tensors) {
  const kiln_node *list = kiln_node_input(node, 0)->node;
  if (!kiln_node_is(list, KILN_OP_prim_ListConstruct))
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  const kiln_ir_value *item = kiln_node_input(list, output);
  const int rank = rank_of(item);
  if (rank < 0 || rank > map->rank) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  kiln__lower_map *own = kiln__lower_new_map(l, rank);
  for (int i = 0; i < list->input_count; i++) {
    const kiln_ir_value *other = kiln_node_input(list, i);
    const int others = rank_of(other);
    if (others < 0) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
    for (int d = 1; d <= rank && d <= others; d++) {
      const kiln_dim size = item->type->detail->sizes[rank - d];
      const kiln_dim wide = other->type->detail->sizes[others - d];
      if (size != wide && size != 1 && wide != 1)
        return kiln__lower_refuse(l, KILN_REASON_types_unknown);
    }
  }
  for (int d = 1; d <= rank; d++) {
    if (item->type->detail->sizes[rank - d] != 1) own->dims[rank - d] = map->dims[map->rank - d];
  }
  return kiln__lower_value(l, item, own);
}

KILN__LOWER_EACH(list_unpack) { return kiln__lower_item(l, kiln_node_input(node, 0), output, map); }

/* -- Elements in other places -- */

/* repeat, tile: in each dimension what is left of a division by the argument's size. */
KILN__LOWER(repeat) {
  const int rank = rank_of(kiln_node_input(node, 0)), pad = map->rank - rank;
  if (rank < 0 || pad < 0) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  const kiln__lower_sizes from = self_sizes(l, node);
  const kiln__lower_sizes to = kiln__lower_sizes_of(l, kiln_node_output(node, 0));
  kiln__lower_map *own = kiln__lower_new_map(l, rank);
  for (int d = 0; d < rank; d++) {
    kiln__lower_dim rounds;
    own->dims[d] = map->dims[pad + d];
    if (from.sizes[d] == to.sizes[pad + d]) continue;
    const kiln_sum times =
        kiln_sum_quotient(l->fn->dims, kiln_sum_of(l->fn->dims, to.sizes[pad + d]),
                          kiln_sum_of(l->fn->dims, from.sizes[d]));
    if (!kiln__lower_divide(l, &map->dims[pad + d], kiln_sum_dim(l->fn->dims, times), from.sizes[d],
                            &rounds, &own->dims[d])) {
      return -1;
    }
  }
  return read_self(l, node, own);
}

/* repeat_interleave(self, repeats, dim). */
KILN__LOWER(repeat_interleave) {
  int64_t times;
  int dim;
  kiln__lower_dim round;
  if (kiln__lower_is_none(node, 2) && map->rank != rank_of(kiln_node_input(node, 0)))
    return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  if (!kiln__lower_int(l, node, 1, 1, &times) || !dim_arg(l, node, 2, 0, &dim)) return -1;
  if (times < 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  kiln__lower_map *own = kiln__lower_copied(l, map);
  const kiln_dim size = self_sizes(l, node).sizes[dim];
  if (!kiln__lower_divide(l, &map->dims[dim], size, times, &own->dims[dim], &round)) return -1;
  return read_self(l, node, own);
}

/* roll(self, shifts, dims): the first elements come from the end. */
KILN__LOWER(roll) {
  ints shifts, dims;
  if (!ints_arg(l, node, 1, &shifts) || !ints_arg(l, node, 2, &dims)) return -1;
  if (dims.count == 0 && shifts.count == 1 && map->rank == 1) dims = (ints){.count = 1};
  if (dims.count != shifts.count) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  const kiln__lower_sizes sizes = self_sizes(l, node);
  kiln__lower_map *own = kiln__lower_copied(l, map);
  for (int i = 0; i < dims.count; i++) {
    const int d = wrap(dims.at[i], map->rank);
    if (d < 0) return kiln__lower_refuse(l, KILN_REASON_raises);
    const kiln_dim size = sizes.sizes[d];
    const bool is_number = kiln_dim_is_number(size);
    /* Under symbols the shift is within the size, which the guard asks. */
    if (!is_number && (shifts.at[i] > INT32_MAX || shifts.at[i] < -INT32_MAX))
      return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
    const int64_t shift = is_number ? (shifts.at[i] % size + size) % size : shifts.at[i];
    const kiln_sum back = kiln_sum_minus(kiln_sum_of(l->fn->dims, size), kiln_sum_number(-shift));
    const kiln_dim first = shift < 0 ? kiln_sum_dim(l->fn->dims, back) : shift;
    const int side = shift == 0 ? 1 : kiln__lower_side(l, &own->dims[d], first);
    if (side == 0) return -1;
    own->dims[d] = side < 0 && shift < 0
                       ? kiln__lower_moved(l, &own->dims[d], -shift, 0)
                       : kiln__lower_moved(l, &own->dims[d], side < 0 ? size : 0, first);
  }
  return read_self(l, node, own);
}

/* Dimensions, a bit each, from their ends on. Of the last one and another, each element would have
 * two checks and their sum's: the interpreter's copy is faster. */
static int flipped(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                   uint32_t dims) {
  const kiln__lower_sizes sizes = self_sizes(l, node);
  kiln__lower_map *own = kiln__lower_copied(l, map);
  if (map->rank > 0 && dims >> (map->rank - 1) > 0 && (dims & (dims - 1)))
    return kiln__lower_refuse(l, KILN_REASON_no_backward_map);
  for (int d = 0; d < map->rank; d++) {
    if (!(dims >> d & 1) || sizes.sizes[d] == 1) continue;
    const kiln_sum size = kiln_sum_of(l->fn->dims, sizes.sizes[d]);
    const kiln_dim last = kiln_sum_dim(l->fn->dims, kiln_sum_minus(size, kiln_sum_number(1)));
    if (!kiln__lower_backward(l, &map->dims[d], last, sizes.sizes[d], &own->dims[d])) return -1;
  }
  return read_self(l, node, own);
}
KILN__LOWER(flip) {
  ints dims;
  uint32_t all = 0;
  if (!ints_arg(l, node, 1, &dims)) return -1;
  for (int i = 0; i < dims.count; i++) {
    const int d = wrap(dims.at[i], map->rank);
    if (d < 0 || all >> d & 1) return kiln__lower_refuse(l, KILN_REASON_raises);
    all |= 1u << d;
  }
  return flipped(l, node, map, all);
}
KILN__LOWER(flipud) {
  return map->rank < 1 ? kiln__lower_refuse(l, KILN_REASON_raises) : flipped(l, node, map, 1);
}
KILN__LOWER(fliplr) {
  return map->rank < 2 ? kiln__lower_refuse(l, KILN_REASON_raises) : flipped(l, node, map, 2);
}

/* (.., c*r*r, h, w) as (.., c, h*r, w*r). */
KILN__LOWER(pixel_shuffle) {
  int64_t r;
  if (!kiln__lower_int(l, node, 1, 1, &r)) return -1;
  if (map->rank < 3 || r < 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  const int h = map->rank - 2, w = map->rank - 1;
  const kiln__lower_sizes sizes = self_sizes(l, node);
  kiln__lower_map *own = kiln__lower_copied(l, map);
  kiln__lower_dim row, column;
  if (!kiln__lower_divide(l, &map->dims[h], sizes.sizes[h], r, &own->dims[h], &row) ||
      !kiln__lower_divide(l, &map->dims[w], sizes.sizes[w], r, &own->dims[w], &column)) {
    return -1;
  }
  kiln__lower_dim channel = kiln__lower_times(l, &map->dims[h - 1], r);
  channel = kiln__lower_plus(l, &channel, &row);
  channel = kiln__lower_times(l, &channel, r);
  own->dims[h - 1] = kiln__lower_plus(l, &channel, &column);
  return read_self(l, node, own);
}

/* The way back. */
KILN__LOWER(pixel_unshuffle) {
  int64_t r;
  if (!kiln__lower_int(l, node, 1, 1, &r)) return -1;
  if (map->rank < 3 || r < 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  const int c = map->rank - 3;
  kiln__lower_map *own = kiln__lower_copied(l, map);
  kiln__lower_dim place, row, column;
  const kiln_dim channels = self_sizes(l, node).sizes[c];
  if (!kiln__lower_divide(l, &map->dims[c], channels, r * r, &own->dims[c], &place) ||
      !kiln__lower_divide(l, &place, r, r, &row, &column)) {
    return -1;
  }
  own->dims[c + 1] = kiln__lower_times(l, &map->dims[c + 1], r);
  own->dims[c + 1] = kiln__lower_plus(l, &own->dims[c + 1], &row);
  own->dims[c + 2] = kiln__lower_times(l, &map->dims[c + 2], r);
  own->dims[c + 2] = kiln__lower_plus(l, &own->dims[c + 2], &column);
  return read_self(l, node, own);
}

/* channel_shuffle(self, groups): (n, groups, c, ..) as (n, c, groups, ..). */
static int shuffle(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map) {
  int64_t groups;
  if (!kiln__lower_int(l, node, 1, 1, &groups)) return -1;
  if (map->rank < 2 || groups < 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln_dim channels = self_sizes(l, node).sizes[1];
  if (!kiln_dim_is_number(channels)) return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
  kiln__lower_map *own = kiln__lower_copied(l, map);
  kiln__lower_dim group, channel;
  if (!kiln__lower_divide(l, &map->dims[1], channels / groups, groups, &channel, &group)) return -1;
  group = kiln__lower_times(l, &group, channels / groups);
  own->dims[1] = kiln__lower_plus(l, &group, &channel);
  return read_self(l, node, own);
}
KILN__LOWER(channel_shuffle) { return shuffle(l, node, map); }
KILN__LOWER(shuffle_groups) {
  int64_t rank;
  if (!kiln__lower_int(l, node, 2, 0, &rank)) return -1;
  return rank == map->rank ? shuffle(l, node, map) : kiln__lower_refuse(l, KILN_REASON_raises);
}
