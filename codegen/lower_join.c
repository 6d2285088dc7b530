/* lower_join.c: operators whose result has parts that are computed in different ways: each part is
 * a nest of its own, which kiln__lower_side asks for. */
#include "codegen/lower.h"

KILN__LOWER_EACH(list_construct) {
  return kiln__lower_value(l, kiln_node_input(node, output), map);
}

/* The list of tensors that is input 0; NULL: it is not made by a node that names them. */
static const kiln_node *list_of(kiln__lowering *l, const kiln_node *node) {
  const kiln_node *list = kiln_node_input(node, 0)->node;
  if (kiln_node_is(list, KILN_OP_prim_ListConstruct) && list->input_count > 0) return list;
  kiln__lower_refuse(l, KILN_REASON_not_constant);
  return NULL;
}

static int item(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *own) {
  const int value = kiln__lower_item(l, kiln_node_input(node, 0), i, own);
  return kiln__lower_cast(l, value, kiln__lower_result_dtype(node, 0));
}

/* Whether the argument has the result's sizes, but for dimension `dim`, which the result alone may
 * have. What symbols are next the operator itself must see. */
static bool fits(const kiln_node *node, const kiln_tensor_detail *d, int dim) {
  const kiln_tensor_detail *result = node->outputs[0]->type->detail;
  if (!d || d->rank < 0 || (d->rank != result->rank && d->rank != result->rank - 1)) return false;
  const int missing = result->rank - d->rank;
  for (int i = 0; i < d->rank; i++) {
    const int at = missing && i >= dim ? i + 1 : i;
    if (at != dim && d->sizes[i] != result->sizes[at]) return false;
  }
  return true;
}

/* Where the arguments of a join begin, and where the last one ends, in one dimension or two; and
 * the one that was found last: parts are asked for in order, so that the next one is that or stands
 * behind it. */
typedef struct joined {
  int count, last;
  kiln_dim *begins[2];
} joined;

/* How a node joins them: along a dimension of tensors of that rank, or in so many chunks of it. */
typedef struct joint {
  const kiln_node *node;
  int dim, rank;
  int64_t chunks;
} joint;
/* How much of the result an argument takes up, in each dimension; false, with a reason. */
typedef bool extents_fn(kiln__lowering *l, const kiln_ir_value *argument, const joint *how,
                        kiln_dim out[2]);

/* NULL, with a reason: some extents are not known. */
static joined *joined_of(kiln__lowering *l, const kiln_node *list, const joint *how,
                         extents_fn *extents) {
  joined *j = kiln_map_find_ptr(&l->joins, how->node);
  if (j) return j;
  j = KILN_NEW(l->arena, joined);
  j->count = list->input_count;
  for (int d = 0; d < 2; d++) j->begins[d] = KILN_NEW_ARRAY(l->arena, kiln_dim, j->count + 1);
  for (int i = 0; i < j->count; i++) {
    kiln_dim own[2] = {0, 0};
    if (!extents(l, kiln_node_input(list, i), how, own)) return NULL;
    for (int d = 0; d < 2; d++)
      j->begins[d][i + 1] = kiln_dim_plus(l->fn->dims, j->begins[d][i], own[d]);
  }
  kiln_map_set_ptr(&l->joins, how->node, j);
  return j;
}
/* Which argument an index of the first dimension is in; -1: other loops are wanted. */
static int part_at(kiln__lowering *l, joined *j, const kiln__lower_dim *index) {
  int i = kiln__lower_is_behind(l, index, j->begins[0][j->last]) ? j->last : 0;
  for (; i + 1 < j->count; i++) {
    const int side = kiln__lower_side(l, index, j->begins[0][i + 1]);
    if (side == 0) return -1;
    if (side < 0) break;
  }
  return j->last = i;
}

static bool extent_along(kiln__lowering *l, const kiln_ir_value *argument, const joint *how,
                         kiln_dim out[2]) {
  const kiln_tensor_detail *d = argument->type->detail;
  if (!fits(how->node, d, how->dim) || d->rank != how->rank)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown) == 0;
  out[0] = kiln__lower_sizes_of(l, argument).sizes[how->dim];
  return true;
}
/* One behind the other along a dimension. */
static int join(kiln__lowering *l, const kiln_node *node, const kiln_node *list, int dim,
                const kiln__lower_map *map) {
  joined *j = joined_of(l, list, &(joint){node, dim, map->rank, 0}, extent_along);
  const int i = j ? part_at(l, j, &map->dims[dim]) : -1;
  if (i < 0) return -1;
  kiln__lower_map *own = kiln__lower_copied(l, map);
  own->dims[dim] = kiln__lower_moved(l, &map->dims[dim], 0, j->begins[0][i]);
  return item(l, node, i, own);
}

/* Which of `count` the index is; -1: other loops are wanted. */
static int which(kiln__lowering *l, const kiln__lower_dim *index, int count) {
  int i = kiln_dim_is_number(index->offset) && index->offset < count ? (int)index->offset : 0;
  for (; i + 1 < count; i++) {
    const int side = kiln__lower_side(l, index, i + 1);
    if (side == 0) return -1;
    if (side < 0) break;
  }
  return i;
}
/* One for each element of a new dimension. */
static int pile(kiln__lowering *l, const kiln_node *node, const kiln_node *list, int dim,
                const kiln__lower_map *map) {
  kiln__lower_map *own = kiln__lower_new_map(l, map->rank - 1);
  for (int d = 0; d < own->rank; d++) own->dims[d] = map->dims[d < dim ? d : d + 1];
  const int i = which(l, &map->dims[dim], list->input_count);
  if (i < 0) return -1;
  const kiln_tensor_detail *d = kiln_node_input(list, i)->type->detail;
  if (!fits(node, d, dim) || d->rank != own->rank)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  return item(l, node, i, own);
}

KILN__LOWER(cat) {
  const kiln_node *list = list_of(l, node);
  int dim;
  if (!list || !kiln__lower_dimension(l, node, 1, map->rank, &dim)) return -1;
  return join(l, node, list, dim, map);
}
KILN__LOWER(stack) {
  const kiln_node *list = list_of(l, node);
  int dim;
  if (!list || !kiln__lower_dimension(l, node, 1, map->rank, &dim)) return -1;
  return pile(l, node, list, dim, map);
}
KILN__LOWER(hstack) {
  const kiln_node *list = list_of(l, node);
  return list ? join(l, node, list, map->rank > 1, map) : -1;
}
/* Those that have `rank` dimensions are piled, those that have more joined. */
static int pile_or_join(kiln__lowering *l, const kiln_node *node, int rank, int dim,
                        const kiln__lower_map *map) {
  const kiln_node *list = list_of(l, node);
  const kiln_tensor_detail *d = list ? kiln_node_input(list, 0)->type->detail : NULL;
  if (!d || d->rank < rank || map->rank <= dim)
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  return d->rank == rank ? pile(l, node, list, dim, map) : join(l, node, list, dim, map);
}
/* Of vectors each is a row, or a column; of matrices each a slice of a third dimension. */
KILN__LOWER(vstack) { return pile_or_join(l, node, 1, 0, map); }
KILN__LOWER(column_stack) { return pile_or_join(l, node, 1, 1, map); }
KILN__LOWER(dstack) { return pile_or_join(l, node, 2, 2, map); }

/* -- Blocks along a diagonal -- */

static int zero_of(kiln__lowering *l, const kiln_node *node) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  return kiln__lower_cast(l, kiln__lower_const(l, kiln__lower_compute(dtype), 0), dtype);
}
static bool extents_of_matrix(kiln__lowering *l, const kiln_ir_value *argument,
                              __attribute__((unused)) const joint *how, kiln_dim out[2]) {
  const kiln_tensor_detail *d = argument->type->detail;
  if (!d || d->rank != 2) return kiln__lower_refuse(l, KILN_REASON_rank) == 0;
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, argument);
  for (int k = 0; k < 2; k++) out[k] = s.sizes[k];
  return true;
}
KILN__LOWER(block_diag) {
  const kiln_node *list = list_of(l, node);
  joined *j = list ? joined_of(l, list, &(joint){.node = node}, extents_of_matrix) : NULL;
  const int i = j ? part_at(l, j, &map->dims[0]) : -1;
  if (i < 0) return -1;
  const kiln_dim *columns = j->begins[1];
  const int begun = i == 0 ? 1 : kiln__lower_side(l, &map->dims[1], columns[i]);
  if (begun == 0) return -1;
  if (begun < 0) return zero_of(l, node);
  const int ended = i + 1 == j->count ? -1 : kiln__lower_side(l, &map->dims[1], columns[i + 1]);
  if (ended == 0) return -1;
  if (ended > 0) return zero_of(l, node);
  kiln__lower_map *own = kiln__lower_copied(l, map);
  for (int d = 0; d < 2; d++)
    own->dims[d] = kiln__lower_moved(l, &map->dims[d], 0, j->begins[d][i]);
  return item(l, node, i, own);
}

/* -- Rows of elements of several vectors -- */

/* Vectors: each row has an element of each, of which the last moves first. */
KILN__LOWER(cartesian_prod) {
  const kiln_node *list = list_of(l, node);
  if (!list) return -1;
  if (list->input_count == 1) return kiln__lower_refuse(l, KILN_REASON_no_work);
  const int i = which(l, &map->dims[1], list->input_count);
  if (i < 0) return -1;
  kiln__lower_dim row = map->dims[0], of_one;
  kiln_dim inner = kiln__lower_sizes_of(l, kiln_node_output(node, 0)).sizes[0];
  for (int k = 0; k <= i; k++) {
    const kiln_ir_value *v = kiln_node_input(list, k);
    const kiln_dim size = kiln__lower_sizes_of(l, v).sizes[0];
    if (!kiln_dim_is_number(size) || !kiln_dim_is_number(inner) || size == 0)
      return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
    inner /= size;
    kiln__lower_dim rest;
    if (!kiln__lower_divide(l, &row, size, inner, &of_one, &rest)) return -1;
    row = rest;
  }
  kiln__lower_map *own = kiln__lower_new_map(l, 1);
  own->dims[0] = of_one;
  return item(l, node, i, own);
}

/* -- Padding -- */

static int padding_value(kiln__lowering *l, const kiln_node *node, int i) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  const bool is_int = kiln_dtype_is_int(dtype, true);
  double value = 0;
  if (!kiln__lower_is_none(node, i) && !kiln__lower_number(l, node, i, &value)) return -1;
  if (is_int &&
      (value != (double)(int64_t)value || (dtype == KILN_DTYPE_BOOL && value * value != value)))
    return kiln__lower_refuse(l, KILN_REASON_number_too_large);
  return kiln__lower_cast(l, kiln__lower_const(l, kiln__lower_compute(dtype), value), dtype);
}

typedef enum padding { CONSTANT, REFLECT, REPLICATE, CIRCULAR } padding;

/* What stands around an argument of `size` elements: element `index` before it, where there are
 * `before`, or behind it. */
static bool fold(kiln__lowering *l, padding how, bool behind, int64_t before, kiln_dim size,
                 kiln__lower_dim *at) {
  const kiln__lower_dim index = *at;
  const kiln_sum end = kiln_sum_minus(kiln_sum_of(l->fn->dims, size), kiln_sum_number(1));
  const kiln_dim last = kiln_sum_dim(l->fn->dims, end);
  const kiln_dim twice = kiln_dim_plus(l->fn->dims, last, last);
  switch (how) {
    case REFLECT: return kiln__lower_backward(l, &index, behind ? twice : before, size, at);
    case REPLICATE: *at = (kiln__lower_dim){.offset = behind ? last : 0}; return true;
    case CIRCULAR:
      *at = behind ? kiln__lower_moved(l, &index, 0, size)
                   : kiln__lower_moved(l, &index, size, before);
      return true;
    case CONSTANT: break;
  }
  return false;
}

/* `value`: the input that has the number. Negative padding takes away. */
static int pad(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int value,
               padding how) {
  const kiln_shape_list *ints = kiln__lower_ints(l, node, 1);
  if (!ints) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  const int64_t count = ints->count;
  if (count % 2 || count / 2 > map->rank) return kiln__lower_refuse(l, KILN_REASON_raises);
  const int64_t planes = map->rank - count / 2;
  const bool strict = how == REFLECT || how == REPLICATE;
  if (strict && (count == 0 || planes < 1 || planes > 2)) /* channels are left, and a batch */
    return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln__lower_sizes sizes = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
  for (int d = planes == 2; d < map->rank && strict; d++)
    if (sizes.sizes[d] == 0) return kiln__lower_refuse(l, KILN_REASON_raises);
  kiln__lower_map *own = kiln__lower_copied(l, map);
  for (int i = 0; i < (int)count / 2; i++) {
    const int d = map->rank - 1 - i;
    const kiln_dim size = sizes.sizes[d];
    const int64_t before = ints->ints[2 * i];
    /* Of what is no number the types say how much it is: all behind the argument. */
    const bool is_open = !ints->known[2 * i + 1];
    if (!ints->known[2 * i] || (is_open && how != CONSTANT))
      return kiln__lower_refuse(l, KILN_REASON_not_constant);
    const int64_t after = is_open ? 1 : ints->ints[2 * i + 1];
    /* What is cut off is not wrapped around. */
    if (how == CIRCULAR && (before < 0 || after < 0))
      return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
    /* As many elements there must be, and one more where the outermost is not repeated. */
    const int64_t most = before > after ? before : after, least = how == REFLECT ? most + 1 : most;
    if ((how == CIRCULAR || how == REFLECT) &&
        !kiln_dims_prove(l->fn->dims, kiln_sum_number(least), kiln_sum_of(l->fn->dims, size)))
      return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
    int side = before > 0 ? kiln__lower_side(l, &own->dims[d], before) : 1;
    if (side == 0) return -1;
    if (side < 0 && how == CONSTANT) return padding_value(l, node, value);
    if (side < 0) {
      if (!fold(l, how, false, before, size, &own->dims[d])) return -1;
      continue;
    }
    own->dims[d] =
        kiln__lower_moved(l, &own->dims[d], before < 0 ? -before : 0, before > 0 ? before : 0);
    side = after > 0 ? kiln__lower_side(l, &own->dims[d], size) : -1;
    if (side == 0) return -1;
    if (side > 0 && how == CONSTANT) return padding_value(l, node, value);
    if (side > 0 && !fold(l, how, true, before, size, &own->dims[d])) return -1;
  }
  return kiln__lower_value(l, kiln_node_input(node, 0), own);
}

KILN__LOWER(constant_pad_nd) { return pad(l, node, map, 2, CONSTANT); }
KILN__LOWER(reflection_pad) { return pad(l, node, map, 0, REFLECT); }
KILN__LOWER(pad_circular) { return pad(l, node, map, 0, CIRCULAR); }
KILN__LOWER(replication_pad) { return pad(l, node, map, 0, REPLICATE); }
KILN__LOWER(pad) {
  static const struct {
    const char *name;
    padding how;
  } modes[] = {{"constant", CONSTANT},
               {"reflect", REFLECT},
               {"replicate", REPLICATE},
               {"circular", CIRCULAR}};
  const kiln_ivalue *mode = kiln_ir_value_constant(kiln_node_input(node, 2));
  if (!mode || mode->tag != KILN_TAG_STRING) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (kiln_str_is(kiln_string_view(mode->u.string), modes[i].name))
      return pad(l, node, map, 3, modes[i].how);
  return kiln__lower_refuse(l, KILN_REASON_raises);
}

/* sequences (L, ..), batch_first, padding_value, padding_side: one after the other, each filled up
 * to the longest. */
KILN__LOWER(pad_sequence) {
  const kiln_node *list = list_of(l, node);
  const kiln_ivalue *first = kiln_ir_value_constant(kiln_node_input(node, 1));
  const kiln_ivalue *side = kiln_ir_value_constant(kiln_node_input(node, 3));
  if (!list || !first || first->tag != KILN_TAG_BOOL || !side || side->tag != KILN_TAG_STRING ||
      map->rank < 2)
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  const int batch = first->u.b ? 0 : 1;
  const int i = which(l, &map->dims[batch], list->input_count);
  if (i < 0) return -1;
  const kiln_dim size = kiln__lower_sizes_of(l, kiln_node_input(list, i)).sizes[0];
  const kiln_dim longest = kiln__lower_sizes_of(l, kiln_node_output(node, 0)).sizes[1 - batch];
  if (!kiln_dim_is_number(size) || !kiln_dim_is_number(longest))
    return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
  const kiln_dim begin = kiln_str_is(kiln_string_view(side->u.string), "left") ? longest - size : 0;
  const kiln__lower_dim *at = &map->dims[1 - batch];
  const int begun = begin > 0 ? kiln__lower_side(l, at, begin) : 1;
  if (begun == 0) return -1;
  const int ended =
      begun > 0 && begin + size < longest ? kiln__lower_side(l, at, begin + size) : -1;
  if (ended == 0) return -1;
  if (begun < 0 || ended > 0) return padding_value(l, node, 2);
  kiln__lower_map *own = kiln__lower_new_map(l, map->rank - 1);
  own->dims[0] = kiln__lower_moved(l, at, 0, begin);
  for (int d = 1; d < own->rank; d++) own->dims[d] = map->dims[d + 1];
  return item(l, node, i, own);
}

/* Elements of a dimension in each of so many chunks. */
static int64_t chunk_of(const kiln_tensor_detail *t, int dim, int64_t chunks) {
  return t->sizes[dim] / chunks + (t->sizes[dim] % chunks != 0);
}
static int64_t behind(const kiln_tensor_detail *t, int dim) {
  int64_t length = 1;
  for (int d = dim + 1; d < t->rank; d++) length *= t->sizes[d];
  return length;
}
static bool extent_of_chunks(kiln__lowering *l, const kiln_ir_value *argument, const joint *how,
                             kiln_dim out[2]) {
  const kiln_tensor_detail *t = argument->type->detail;
  bool known = t && t->rank > how->dim;
  for (int d = 0; known && d < t->rank; d++)
    known = kiln_dim_is_number(t->sizes[d]) && t->sizes[d] > 0;
  if (!known) return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static) == 0;
  out[0] = chunk_of(t, how->dim, how->chunks) * behind(t, how->dim);
  return true;
}
/* tensors, dim, num_chunks: each is filled up with zeros to equal chunks along dim, which become
 * rows of what follows them; row by row they are joined. */
KILN__LOWER(_chunk_cat) {
  const kiln_node *list = list_of(l, node);
  const int dim = map->rank - 2;
  int64_t given, chunks;
  if (!list || !kiln__lower_int(l, node, 1, 0, &given) || !kiln__lower_int(l, node, 2, 0, &chunks))
    return -1;
  if (dim < 0 || (given >= 0 && given != dim) || chunks < 1 || chunks > INT32_MAX)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln__lower_dim *at = &map->dims[dim + 1];
  joined *j = joined_of(l, list, &(joint){node, dim, 0, chunks}, extent_of_chunks);
  const int i = j ? part_at(l, j, at) : -1;
  if (i < 0) return -1;
  const kiln_tensor_detail *t = kiln_node_input(list, i)->type->detail;
  const int64_t each = chunk_of(t, dim, chunks), size = t->sizes[dim];
  kiln__lower_map *own = kiln__lower_new_map(l, t->rank);
  kiln__lower_dim rest = kiln__lower_moved(l, at, 0, j->begins[0][i]);
  for (int d = 0; d < dim; d++) own->dims[d] = map->dims[d];
  for (int d = dim; d < t->rank; d++) {
    const kiln__lower_dim now = rest;
    if (!kiln__lower_divide(l, &now, d == dim ? each : t->sizes[d], behind(t, d), &own->dims[d],
                            &rest))
      return -1;
  }
  const kiln__lower_dim first = kiln__lower_times(l, &map->dims[dim], each);
  own->dims[dim] = kiln__lower_plus(l, &first, &own->dims[dim]);
  const int inside = each * chunks > size ? kiln__lower_side(l, &own->dims[dim], size) : -1;
  if (inside == 0) return -1;
  return inside > 0 ? zero_of(l, node) : item(l, node, i, own);
}
