/* lower_rows.c: reductions and softmax, as the interpreter's kernels compute them; what all that
 * reduces is made of. */
#include "codegen/lower_rows.h"

#include <math.h>

/* -- Which rows -- */

/* Dimensions that an argument names; false: they are not known. */
static bool named_dims(const kiln_node *node, int argument, int rank, uint64_t *mask) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, argument));
  const uint64_t all = rank < 64 ? (UINT64_C(1) << rank) - 1 : UINT64_MAX;
  *mask = 0;
  if (!v) return false;
  if (v->tag == KILN_TAG_NONE) *mask = all;
  const bool is_list = v->tag == KILN_TAG_LIST;
  if (is_list && v->u.list->count == 0) *mask = all;
  const int64_t count = is_list ? v->u.list->count : v->tag == KILN_TAG_INT;
  for (int64_t i = 0; i < count; i++) {
    int64_t dim = is_list ? v->u.list->items[i].u.i : v->u.i;
    if (rank == 0 && (dim == 0 || dim == -1)) continue;
    if (dim < 0) dim += rank;
    if (dim < 0 || dim >= rank || (*mask >> dim & 1)) return false; /* that raises */
    *mask |= UINT64_C(1) << dim;
  }
  return true;
}

/* As many last ones as a list has numbers, which are their sizes. */
static bool last_dims(const kiln_node *node, const kiln_tensor_detail *d, uint64_t *mask) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, 1));
  if (!v || v->tag != KILN_TAG_LIST || v->u.list->count > d->rank) return false;
  for (int64_t i = 0; i < v->u.list->count; i++) { /* what differs raises */
    if (v->u.list->items[i].u.i != d->sizes[d->rank - v->u.list->count + i]) return false;
  }
  *mask = ((UINT64_C(1) << d->rank) - 1) & ~((UINT64_C(1) << (d->rank - v->u.list->count)) - 1);
  return true;
}

/* All from the channels on, and above what dimensions there are, where a group has some channels,
 * how many: other groups are other rows. */
static bool group_dims(const kiln_node *node, const kiln_tensor_detail *d, uint64_t *mask) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, 1));
  if (!v || v->tag != KILN_TAG_INT || d->rank < 2) return false;
  const int64_t groups = v->u.i, channels = d->sizes[1];
  if (!kiln_dim_is_number(channels) || groups <= 0 || channels % groups != 0) return false;
  const int64_t part = channels / groups;
  if (part >> 40 != 0) return false;
  *mask = ((UINT64_C(1) << d->rank) - 1) & ~UINT64_C(1);
  if (part == 1) *mask &= ~UINT64_C(2);
  if (part > 1 && groups > 1) *mask |= (uint64_t)part << KILN__ROWS_PART;
  return true;
}

/* The last ones that the operator pools, all of each. */
static bool pooled_dims(const kiln_node *node, const kiln_tensor_detail *d, uint64_t *mask) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, 1));
  const int count = node->op->dims;
  if (!v || v->tag != KILN_TAG_LIST || v->u.list->count != count) return false;
  for (int i = 0; i < count; i++)
    if (v->u.list->items[i].u.i != 1) return false;
  *mask = ((UINT64_C(1) << count) - 1) << (d->rank - count);
  return d->rank == count + 1 || d->rank == count + 2;
}

/* The last ones, where the one window of each, its argument 1, is all of it, and nothing is padded
 * (3) or divided by another number (6). */
static bool window_dims(const kiln_node *node, const kiln_tensor_detail *d, uint64_t *mask) {
  const kiln_ivalue *sizes = kiln_ir_value_constant(kiln_node_input(node, 1));
  const kiln_ivalue *padding = kiln_ir_value_constant(kiln_node_input(node, 3));
  const int count = node->op->dims;
  if (!sizes || sizes->tag != KILN_TAG_LIST || sizes->u.list->count != count || !padding ||
      padding->tag != KILN_TAG_LIST || !kiln__lower_is_none(node, 6)) {
    return false;
  }
  bool all = d->rank == count + 1 || d->rank == count + 2;
  for (int i = 0; all && i < count; i++)
    all = sizes->u.list->items[i].u.i == d->sizes[d->rank - count + i];
  for (int64_t i = 0; i < padding->u.list->count; i++) all &= padding->u.list->items[i].u.i == 0;
  if (all) *mask = ((UINT64_C(1) << count) - 1) << (d->rank - count);
  return all;
}

/* What a list of sizes, argument 1, has not, or has as 1: in front, or in between. */
static bool to_size_dims(const kiln_node *node, const kiln_tensor_detail *d, uint64_t *mask) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, 1));
  if (!v || v->tag != KILN_TAG_LIST || v->u.list->count > d->rank) return false;
  const int missing = d->rank - (int)v->u.list->count;
  *mask = (UINT64_C(1) << missing) - 1;
  for (int at = missing; at < d->rank; at++) {
    const int64_t size = v->u.list->items[at - missing].u.i;
    if (size == d->sizes[at]) continue;
    if (size != 1 || missing > 0) return false;
    *mask |= UINT64_C(1) << at;
  }
  return *mask != 0; /* else it gives its argument */
}

/* All but one; -1 is the last, or of `or_all` none. */
static bool other_dims(const kiln_node *node, int i, int rank, bool or_all, uint64_t *mask) {
  int64_t dim;
  if (!kiln_ir_value_const_int(kiln_node_input(node, i), &dim)) return false;
  if (or_all && dim == -1) return true;
  if (dim < 0) dim += rank;
  if (dim >= 0) *mask &= ~(UINT64_C(1) << dim);
  return dim >= 0 && dim < rank;
}

/* What is no tensor is a constant: a profile's type tells what others did once. */
static bool has_constants(const kiln_node *node) {
  bool all = true;
  for (int i = 1; i < node->input_count; i++)
    all &= kiln__lower_is_tensor(node, i) || kiln_ir_value_constant(kiln_node_input(node, i));
  return all;
}

/* One dimension of two floats, not the last one. */
static bool are_pairs(const kiln_node *node, uint64_t mask) {
  if (!mask || mask & (mask - 1)) return false;
  const kiln_tensor_detail *d = kiln_node_input(node, 0)->type->detail;
  const int dim = __builtin_ctzll(mask);
  const kiln_dtype dtype = kiln__lower_input_dtype(node, 0);
  return dim < d->rank - 1 && d->sizes[dim] == 2 && kiln__lower_result_dtype(node, 0) == dtype &&
         (dtype == KILN_DTYPE_F32 || dtype == KILN_DTYPE_F64);
}

bool kiln__rows_mask(const kiln_node *node, kiln__rows_dims dims, uint64_t *out_mask) {
  const kiln_tensor_detail *d = kiln_node_input(node, 0)->type->detail;
  if (!d || !has_constants(node)) return false;
  const int rank = d->rank >= 0 ? d->rank : 0;
  *out_mask = (UINT64_C(1) << rank) - 1;
  switch (dims) {
    case KILN__ROWS_all: return true;
    case KILN__ROWS_scan:
    case KILN__ROWS_named: return named_dims(node, 1, rank, out_mask);
    case KILN__ROWS_named_2: return named_dims(node, 2, rank, out_mask);
    case KILN__ROWS_named_but_pairs:
      return named_dims(node, 1, rank, out_mask) && !are_pairs(node, *out_mask);
    case KILN__ROWS_last: return last_dims(node, d, out_mask);
    case KILN__ROWS_groups: return group_dims(node, d, out_mask);
    case KILN__ROWS_pool: return rank > node->op->dims && pooled_dims(node, d, out_mask);
    case KILN__ROWS_to_size: return to_size_dims(node, d, out_mask);
    case KILN__ROWS_window: return rank > node->op->dims && window_dims(node, d, out_mask);
    case KILN__ROWS_inner: *out_mask &= ~UINT64_C(3); return rank >= 2;
    case KILN__ROWS_others: return other_dims(node, 2, rank, false, out_mask);
    case KILN__ROWS_others_or_all: return other_dims(node, 2, rank, true, out_mask);
    case KILN__ROWS_row: *out_mask &= ~(*out_mask >> 1); return rank >= 1;
    case KILN__ROWS_loss: break;
  }
  return kiln__rows_reduction(node) > 0;
}

/* x.sum(1) of x (8, 2, 64) is x[:, 0] + x[:, 1], without a loop. A sum begins with 0: that of two
 * -0 is 0. */
KILN__LOWER(sum_of_pairs) {
  uint64_t mask;
  const kiln_ir_value *x = kiln_node_input(node, 0);
  if (!kiln__rows_mask(node, KILN__ROWS_named, &mask) || !are_pairs(node, mask))
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  const int rank = x->type->detail->rank, dim = __builtin_ctzll(mask), keeps = map->rank == rank;
  kiln__lower_map *own = kiln__lower_new_map(l, rank);
  int pair[2];
  for (int d = 0; d < rank; d++)
    if (d != dim) own->dims[d] = map->dims[d < dim || keeps ? d : d - 1];
  for (int i = 0; i < 2; i++) {
    own->dims[dim] = (kiln__lower_dim){.offset = i};
    pair[i] = kiln__lower_value(l, x, own);
    if (pair[i] < 0) return -1;
  }
  const int zero = kiln__lower_const(l, kiln__lower_result_dtype(node, 0), 0);
  return OP2(add, OP2(add, pair[0], zero), pair[1]);
}

int kiln__rows_reduction(const kiln_node *node) {
  const kiln_schema *s = node->op->schema;
  for (int i = 0; i < s->arg_count && i < node->input_count; i++) {
    if (!kiln_str_is(s->args[i].name, "reduction")) continue;
    const kiln_ivalue *how = kiln_ir_value_constant(kiln_node_input(node, i));
    return how && how->tag == KILN_TAG_INT && how->u.i >= 0 && how->u.i <= 2 ? (int)how->u.i : -1;
  }
  return -1;
}

const kiln__lower_map *kiln__rows_kept(kiln__lowering *l, const kiln_node *node, uint64_t mask,
                                       const kiln__lower_map *map) {
  const kiln_tensor_detail *detail = kiln_node_input(node, 0)->type->detail;
  const int rank = detail->rank;
  kiln__lower_map *kept = kiln__lower_new_map(l, rank);
  for (int d = 0, at = 0; d < rank; d++) {
    const bool reduced = mask >> d & 1;
    if (map->rank == rank) at = d;
    if (!reduced) kept->dims[d] = map->dims[at++];
    if (detail->sizes[d] == 1) kept->dims[d] = (kiln__lower_dim){0};
  }
  const kiln_dim part = kiln__rows_part(mask);
  kiln__lower_dim group, channel;
  if (part == 0) return kept;
  if (!kiln__lower_divide(l, &map->dims[1], detail->sizes[1] / part, part, &group, &channel))
    return NULL;
  kept->dims[1] = kiln__lower_times(l, &group, part);
  return kept;
}

/* -- Parts of a reduction -- */

const kiln__lower_map *kiln__rows_open(kiln__lowering *l, const kiln_node *node, kiln__rows *rows) {
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
  kiln__lower_map *map = kiln__lower_copied(l, &rows->kept);
  rows->loops = 0;
  rows->has_elements = true;
  for (int d = 0; d < map->rank; d++) {
    if (!(rows->mask >> d & 1)) continue;
    const kiln_dim extent = d == 1 && rows->part ? rows->part : s.sizes[d];
    const kiln_sum rest = kiln_sum_minus(kiln_sum_of(l->fn->dims, extent), kiln_sum_number(1));
    rows->has_elements &= kiln_sum_is_natural(l->fn->dims, rest);
    const int loop = kiln__lower_open(l, KILN_LOOP_reduce, extent);
    const kiln__lower_dim along = kiln__lower_along(loop < 0 ? 0 : loop);
    if (extent != 1) map->dims[d] = kiln__lower_plus(l, &map->dims[d], &along);
    rows->loops++;
  }
  if (rows->loops == 0) {
    (void)kiln__lower_open(l, KILN_LOOP_reduce, 1);
    rows->loops = 1;
  }
  return map;
}
int kiln__rows_open_first(kiln__lowering *l, const kiln_node *node, kiln__rows *rows,
                          kiln_dtype dtype) {
  const kiln__lower_map *map = kiln__rows_open(l, node, rows);
  return kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, 0), map), dtype);
}
/* Of no elements there is none, which operators complain of: a row of s0 - 2 may have none. */
static bool is_of_some(kiln_loop_opcode op) {
  return op == KILN_LOOP_amax || op == KILN_LOOP_amin || op == KILN_LOOP_argmax ||
         op == KILN_LOOP_argmin;
}
int kiln__rows_reduce(kiln__lowering *l, kiln_loop_opcode op, int value, const kiln__rows *rows) {
  if (value < 0 || l->reason != KILN_REASON_none) return -1;
  const kiln_dtype dtype = kiln__lower_dtype_of(l, value);
  if (!(kiln_loop_class(dtype) & kiln_loop_ops[op].classes))
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (!rows->has_elements && is_of_some(op)) return kiln__lower_refuse(l, KILN_REASON_raises);
  return kiln_loop_reduce(l->fn, l->nest, op, value, -1, rows->loops);
}
void kiln__rows_close(kiln__lowering *l, const kiln__rows *rows) {
  for (int i = 0; i < rows->loops; i++) kiln__lower_close(l);
}
int kiln__rows_of_first(kiln__lowering *l, const kiln_node *node, kiln__rows *rows,
                        kiln_loop_opcode op, kiln_dtype dtype) {
  const int value = kiln__rows_reduce(l, op, kiln__rows_open_first(l, node, rows, dtype), rows);
  kiln__rows_close(l, rows);
  return value;
}
int kiln__rows_squares(kiln__lowering *l, const kiln_node *node, kiln__rows *rows, kiln_dtype dtype,
                       int center) {
  const int x = kiln__rows_open_first(l, node, rows, dtype);
  const int apart = center < 0 ? x : OP2(sub, x, center);
  const int sum = kiln__rows_reduce(l, KILN_LOOP_sum, OP2(mul, apart, apart), rows);
  kiln__rows_close(l, rows);
  return sum;
}
kiln_dim kiln__rows_length(kiln__lowering *l, const kiln_node *node, const kiln__rows *rows) {
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
  kiln_dim n = 1;
  for (int d = 0; d < rows->kept.rank; d++) {
    const kiln_dim size = d == 1 && rows->part ? rows->part : s.sizes[d];
    if (rows->mask >> d & 1) n = kiln_dim_product(l->fn->dims, n, size);
  }
  return n;
}

/* -- One number for each row -- */

#define SIMPLE(name, op, dtype)                                                  \
  ROWS_BEGIN(name) {                                                             \
    rows->values[0] = kiln__rows_of_first(l, node, rows, KILN_LOOP_##op, dtype); \
  }                                                                              \
  ROW_VALUES(name)
SIMPLE(sum, sum, kiln__rows_compute(node))
SIMPLE(sum_to_size, sum, kiln__rows_compute(node))
SIMPLE(prod, prod, kiln__rows_compute(node))
SIMPLE(amax, amax, kiln__rows_compute(node))
SIMPLE(amin, amin, kiln__rows_compute(node))
SIMPLE(any, any, KILN_DTYPE_BOOL)
SIMPLE(all, all, KILN_DTYPE_BOOL)
SIMPLE(argmax, argmax, kiln__lower_compute(kiln__lower_input_dtype(node, 0)))
SIMPLE(argmin, argmin, kiln__lower_compute(kiln__lower_input_dtype(node, 0)))

ROWS_BEGIN(mean) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  const int sum = kiln__rows_of_first(l, node, rows, KILN_LOOP_sum, dtype);
  rows->values[0] = OP2(div, sum, kiln__lower_size(l, dtype, kiln__rows_length(l, node, rows)));
}
ROW_VALUES(mean)

/* -- softmax -- */

/* The input in the dtype that is asked for, rounded to it, in what that is computed in. */
static int softmax_input(kiln__lowering *l, const kiln_node *node, int value) {
  value = kiln__lower_cast(l, value, kiln__lower_result_dtype(node, 0));
  return kiln__lower_cast(l, value, kiln__rows_compute(node));
}
static void begin_softmax(kiln__lowering *l, const kiln_node *node, kiln__rows *rows) {
  const kiln_ivalue *third = kiln_ir_value_constant(kiln_node_input(node, 2));
  if (!third) kiln__lower_refuse(l, KILN_REASON_not_constant);
  /* _softmax's half_to_float */
  if (third && third->tag == KILN_TAG_BOOL && third->u.b) kiln__lower_refuse(l, KILN_REASON_raises);
  int x = softmax_input(l, node, kiln__rows_open_first(l, node, rows, KILN_DTYPE_NONE));
  const int most = rows->values[0] = kiln__rows_reduce(l, KILN_LOOP_amax, x, rows);
  kiln__rows_close(l, rows);
  x = softmax_input(l, node, kiln__rows_open_first(l, node, rows, KILN_DTYPE_NONE));
  rows->values[1] = kiln__rows_reduce(l, KILN_LOOP_sum, OP1(exp_normal, OP2(sub, x, most)), rows);
  kiln__rows_close(l, rows);
}
static int softmax_element(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map) {
  return softmax_input(l, node, kiln__lower_value(l, kiln_node_input(node, 0), map));
}
static int softmax_quotient(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                            const kiln__rows *rows) {
  const int x = softmax_element(l, node, map), e = OP1(exp_normal, OP2(sub, x, rows->values[0]));
  return OP2(div, e, rows->values[1]);
}
ROWS_BEGIN(softmax) { begin_softmax(l, node, rows); }
ROWS(softmax) {
  return kiln__lower_cast(l, softmax_quotient(l, node, map, rows),
                          kiln__lower_result_dtype(node, 0));
}
/* Zeros where all is -inf. */
ROWS_BEGIN(safe_softmax) { begin_softmax(l, node, rows); }
ROWS(safe_softmax) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  const int none = OP2(eq, rows->values[0], kiln__lower_const(l, dtype, -INFINITY));
  const int quotient = softmax_quotient(l, node, map, rows);
  return kiln__lower_cast(l, SELECT(none, kiln__lower_const(l, dtype, 0), quotient),
                          kiln__lower_result_dtype(node, 0));
}
ROWS_BEGIN(log_softmax) {
  begin_softmax(l, node, rows);
  rows->values[1] = OP1(log, rows->values[1]);
}
ROWS(log_softmax) {
  const int x = softmax_element(l, node, map);
  return kiln__lower_cast(l, OP2(sub, OP2(sub, x, rows->values[0]), rows->values[1]),
                          kiln__lower_result_dtype(node, 0));
}

/* -- What softmax's gradient is made of -- */

/* grad_output, output, dim, input_dtype */
static void begin_softmax_backward(kiln__lowering *l, const kiln_node *node, kiln__rows *rows,
                                   bool of_log) {
  const kiln_dtype dtype = kiln__lower_compute(kiln__lower_input_dtype(node, 1));
  if (!kiln__lower_has_sizes(l, node, 1)) return;
  if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F) {
    (void)kiln__lower_refuse(l, KILN_REASON_dtype);
    return;
  }
  const kiln__lower_map *map = kiln__rows_open(l, node, rows);
  int each = kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, 0), map), dtype);
  if (!of_log) {
    const int y = kiln__lower_value(l, kiln_node_input(node, 1), map);
    each = OP2(mul, each, kiln__lower_cast(l, y, dtype));
  }
  rows->values[0] = kiln__rows_reduce(l, KILN_LOOP_sum, each, rows);
  kiln__rows_close(l, rows);
}
static int softmax_backward(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                            const kiln__rows *rows, bool of_log) {
  const kiln_dtype dtype = kiln__lower_compute(kiln__lower_input_dtype(node, 1));
  int each = kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, 0), map), dtype);
  int y = kiln__lower_cast(l, kiln__lower_value(l, kiln_node_input(node, 1), map), dtype);
  if (!of_log) each = OP2(mul, each, y);
  if (of_log) y = OP1(exp, y);
  return kiln__lower_cast(l, OP2(sub, each, OP2(mul, y, rows->values[0])),
                          kiln__lower_result_dtype(node, 0));
}
ROWS_BEGIN(softmax_backward) { begin_softmax_backward(l, node, rows, false); }
ROWS(softmax_backward) { return softmax_backward(l, node, map, rows, false); }
ROWS_BEGIN(log_softmax_backward) { begin_softmax_backward(l, node, rows, true); }
ROWS(log_softmax_backward) { return softmax_backward(l, node, map, rows, true); }
