/* lower_composed.c: functions of elements that are made of others: each follows the steps of the
 * interpreter's composite of that name (runtime/kernels/pointwise/composed.c and others) and rounds
 * where those do. */
#include "codegen/lower_pointwise.h"

#include <math.h>

/* -- Functions -- */

/* log2(2^a + 2^b) */
KILN__LOWER(logaddexp2) {
  const operands p = kiln__lower_operands(l, node, map, 2, false);
  const kiln_dtype d = p.common;
  if (!kiln__lower_is_float(d)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  const int apart = step(l, OP2(sub, p.a, p.b), d), most = OP2(max, p.a, p.b);
  int rest = step(l, OP1(exp2, OP1(neg, OP1(abs, apart))), d);
  rest = OP2(mul, step(l, OP1(log1p, rest), d), kiln__lower_like(l, p.a, M_LOG2E));
  const int sum = step(l, OP2(add, most, step(l, rest, d)), d);
  const int infinite = OP2(eq, OP1(abs, p.a), kiln__lower_like(l, p.a, INFINITY));
  const int same = OP2(and, OP2(eq, p.a, p.b), OP2(or, infinite, OP2(ne, p.a, p.a)));
  return finish(l, SELECT(same, p.a, sum), d);
}
/* x log(1 + y), 0 where x is and y is a number; the logarithm in y's type. */
KILN__LOWER(special_xlog1py) {
  const operands p = kiln__lower_operands(l, node, map, 2, true);
  const kiln_dtype d = p.common;
  if (kiln__lower_is_tensor(node, 1) && kiln_dtype_to_float(kiln__lower_input_dtype(node, 1)) != d)
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  const int y = step(l, p.b, d), log = step(l, OP1(log1p, y), d);
  const int zero = kiln__lower_like(l, p.a, 0);
  const int is_zero = OP2(and, OP2(eq, p.a, zero), OP2(eq, y, y));
  return finish(l, SELECT(is_zero, zero, OP2(mul, p.a, log)), d);
}
/* -x log x, 0 at 0, -inf below. */
KILN__LOWER(special_entr) {
  const operands p = kiln__lower_operands(l, node, map, 1, true);
  const int zero = kiln__lower_like(l, p.a, 0), log = step(l, OP1(log, p.a), p.common);
  const int value = SELECT(OP2(eq, p.a, zero), zero, OP1(neg, OP2(mul, p.a, log)));
  return finish(l, SELECT(OP2(lt, p.a, zero), kiln__lower_like(l, p.a, -INFINITY), value),
                p.common);
}
/* The normal distribution function. */
KILN__LOWER(special_ndtr) {
  const operands p = kiln__lower_operands(l, node, map, 1, true);
  const int x = step(l, OP2(mul, p.a, kiln__lower_like(l, p.a, -M_SQRT1_2)), p.common);
  const int tail = step(l, OP1(erfc, x), p.common);
  return finish(l, OP2(mul, tail, kiln__lower_like(l, tail, 0.5)), p.common);
}
/* a 2^b */
KILN__LOWER(ldexp) {
  const operands p = kiln__lower_operands(l, node, map, 2, true);
  const int scale = step(l, OP2(pow, kiln__lower_like(l, p.b, 2), p.b), p.common);
  return finish(l, OP2(mul, p.a, scale), p.common);
}
/* x, times the weight where it is not above 0. */
KILN__LOWER(_prelu_kernel) {
  const operands p = kiln__lower_operands(l, node, map, 2, false);
  if (!kiln__lower_is_float(p.common) ||
      kiln__lower_input_dtype(node, 1) != kiln__lower_input_dtype(node, 0))
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  const int above = OP2(gt, p.a, kiln__lower_like(l, p.a, 0));
  return finish(l, SELECT(above, p.a, OP2(mul, p.a, p.b)), p.common);
}
/* |a - b| <= atol + rtol |b|, in double. */
KILN__LOWER(isclose) {
  double rtol, atol;
  const kiln_ivalue *nans = kiln_ir_value_constant(kiln_node_input(node, 4));
  const kiln_dtype dtype = kiln__lower_input_dtype(node, 0);
  if (!kiln__lower_number(l, node, 2, &rtol) || !kiln__lower_number(l, node, 3, &atol)) return -1;
  if (!nans || nans->tag != KILN_TAG_BOOL) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (!kiln_loop_class(dtype)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (!(rtol >= 0) || !(atol >= 0) || kiln__lower_input_dtype(node, 1) != dtype)
    return kiln__lower_refuse(l, KILN_REASON_raises);
  const int a = kiln__lower_input(l, node, 0, map, KILN_DTYPE_F64);
  const int b = kiln__lower_input(l, node, 1, map, KILN_DTYPE_F64);
  const int error = OP1(abs, OP2(sub, a, b));
  int allowed = OP2(mul, kiln__lower_like(l, a, rtol), OP1(abs, b));
  allowed = OP2(add, kiln__lower_like(l, a, atol), allowed);
  const int finite = OP2(lt, error, kiln__lower_like(l, a, INFINITY));
  int close = OP2(or, OP2(eq, a, b), OP2(and, finite, OP2(le, error, allowed)));
  if (nans->u.b) close = OP2(or, close, OP2(and, OP2(ne, a, a), OP2(ne, b, b)));
  return close;
}
/* Gradient and mask, whose product is scaled. */
KILN__LOWER(native_dropout_backward) {
  const operands p = kiln__lower_operands(l, node, map, 2, false);
  double scale;
  if (!kiln__lower_number(l, node, 2, &scale)) return -1;
  if (!kiln__lower_is_float(p.common)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  const int kept = step(l, OP2(mul, p.a, p.b), p.common);
  return finish(l, OP2(mul, kept, kiln__lower_like(l, kept, scale)), p.common);
}

/* -- Products of elements in other places -- */

/* Input i at a map of its own, rounded to a type, in what that is computed in. */
static int factor(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *own,
                  kiln_dtype common) {
  return step(l, kiln__lower_value(l, kiln_node_input(node, i), own), common);
}
static int product(kiln__lowering *l, int a, int b, kiln_dtype common) {
  return common == KILN_DTYPE_BOOL ? OP2(and, a, b) : OP2(mul, a, b);
}

/* Of two vectors: each product of an element of the one with one of the other; `first` is the
 * input that goes along the rows. In what the promoted type is computed in. */
static int outer_product(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                         int first) {
  const kiln_dtype common = kiln__lower_promote(node, first, 2);
  int x[2];
  if (!kiln_loop_class(common)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  for (int i = 0; i < 2; i++) {
    if (kiln_node_input(node, first + i)->type->detail->rank != 1)
      return kiln__lower_refuse(l, KILN_REASON_raises);
    kiln__lower_map *own = kiln__lower_new_map(l, 1);
    own->dims[0] = map->dims[i];
    x[i] = factor(l, node, first + i, own, common);
  }
  return product(l, x[0], x[1], common);
}
KILN__LOWER(outer) {
  return finish(l, outer_product(l, node, map, 0), kiln__lower_promote(node, 0, 2));
}
/* beta self + alpha (a outer b); beta of 0 reads nothing of self. */
KILN__LOWER(addr) {
  const kiln_dtype d = kiln__lower_result_dtype(node, 0);
  double beta, alpha;
  if (!kiln__lower_number(l, node, 3, &beta) || !kiln__lower_number(l, node, 4, &alpha)) return -1;
  for (int i = 0; i < 3; i++)
    if (!kiln__lower_is_float(d) || kiln__lower_input_dtype(node, i) != d)
      return kiln__lower_refuse(l, KILN_REASON_dtype);
  int sum = step(l, outer_product(l, node, map, 1), d);
  if (alpha != 1) sum = step(l, OP2(mul, sum, kiln__lower_like(l, sum, alpha)), d);
  if (beta == 0) return finish(l, sum, d);
  int self = kiln__lower_operand(l, node, 0, map, d);
  if (beta != 1) self = step(l, OP2(mul, self, kiln__lower_like(l, self, beta)), d);
  return finish(l, OP2(add, self, sum), d);
}

static int rank_of(const kiln_node *node, int i) {
  return kiln_node_input(node, i)->type->detail->rank;
}

/* Each element of the one with all of the other: in each dimension the quotient and what is left of
 * a division by the other's size. */
KILN__LOWER(kron) {
  /* What has no dimensions is promoted as what has some. */
  const kiln_dtype common = kiln__lower_result_dtype(node, 0);
  if (!kiln_loop_class(common)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  const int ranks[2] = {rank_of(node, 0), rank_of(node, 1)};
  kiln__lower_map *own[2];
  for (int i = 0; i < 2; i++) own[i] = kiln__lower_new_map(l, ranks[i]);
  const kiln__lower_sizes a = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
  const kiln__lower_sizes b = kiln__lower_sizes_of(l, kiln_node_input(node, 1));
  for (int d = 1; d <= map->rank; d++) {
    const int at_a = ranks[0] - d, at_b = ranks[1] - d;
    const kiln__lower_dim *index = &map->dims[map->rank - d];
    kiln__lower_dim quotient, rest;
    if (at_b >= 0 && (at_a < 0 || a.sizes[at_a] == 1)) {
      own[1]->dims[at_b] = *index;
    } else if (at_b < 0 || b.sizes[at_b] == 1) {
      own[0]->dims[at_a] = *index;
    } else {
      if (!kiln__lower_divide(l, index, a.sizes[at_a], b.sizes[at_b], &quotient, &rest)) return -1;
      own[0]->dims[at_a] = quotient;
      own[1]->dims[at_b] = rest;
    }
  }
  const int x = factor(l, node, 0, own[0], common), y = factor(l, node, 1, own[1], common);
  return finish(l, product(l, x, y, common), common);
}

/* Which dimension has the three components: argument 2, or the first of 3; -1: none. */
static int cross_dim(const kiln_node *node) {
  const kiln_tensor_detail *t = kiln_node_input(node, 0)->type->detail;
  int64_t dim = 0;
  if (kiln__lower_is_none(node, 2)) {
    while (dim < t->rank && t->sizes[dim] != 3) dim++;
  } else if (!kiln_ir_value_const_int(kiln_node_input(node, 2), &dim)) {
    return -1;
  }
  if (dim < 0) dim += t->rank;
  return dim >= 0 && dim < t->rank && t->sizes[dim] == 3 ? (int)dim : -1;
}
/* a[1] b[2] - a[2] b[1] of components that follow in turn. */
KILN__LOWER(linalg_cross) {
  const kiln_dtype common = kiln__lower_promote(node, 0, 2);
  const int dim = cross_dim(node);
  int x[2][2];
  if (dim < 0) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (!kiln_loop_class(common) || common == KILN_DTYPE_BOOL)
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (!kiln__lower_has_sizes(l, node, 1)) return -1;
  for (int k = 0; k < 2; k++) {
    kiln__lower_map *own = kiln__lower_copied(l, map);
    const int side = kiln__lower_side(l, &map->dims[dim], 2 - k);
    if (side == 0) return -1;
    own->dims[dim] =
        kiln__lower_moved(l, &map->dims[dim], side < 0 ? k + 1 : 0, side < 0 ? 0 : 2 - k);
    for (int i = 0; i < 2; i++) x[i][k] = factor(l, node, i, own, common);
  }
  const int plus = step(l, OP2(mul, x[0][0], x[1][1]), common);
  const int minus = step(l, OP2(mul, x[0][1], x[1][0]), common);
  return finish(l, OP2(sub, plus, minus), common);
}

/* -- Grids and gradients -- */

/* Place i of n between -1 and 1, in double: of n places, or in the middle of n parts. */
static int grid_place(kiln__lowering *l, const kiln__lower_dim *at, int64_t n, bool corners) {
  if (at->check) return kiln__lower_refuse(l, KILN_REASON_no_affine_map);
  const int index = kiln_loop_index(l->fn, l->nest, at->offset, at->steps);
  const int i = kiln__lower_cast(l, index, KILN_DTYPE_F64);
  if (n <= 1) return kiln__lower_like(l, i, 0);
  const int part =
      OP2(div, OP2(mul, i, kiln__lower_like(l, i, 2)), kiln__lower_like(l, i, (double)(n - 1)));
  const int x = OP2(add, part, kiln__lower_like(l, i, -1));
  if (corners) return x;
  return OP2(div, OP2(mul, x, kiln__lower_like(l, i, (double)(n - 1))),
             kiln__lower_like(l, i, (double)n));
}
/* theta (N, k, k + 1), size, align_corners: (N, .., k), coordinates from the last dimension on */
KILN__LOWER(affine_grid_generator) {
  const kiln_ivalue *corners = kiln_ir_value_constant(kiln_node_input(node, 2));
  const int k = map->rank - 2;
  const kiln__lower_sizes sizes = kiln__lower_sizes_of(l, kiln_node_output(node, 0));
  kiln__lower_map *own = kiln__lower_new_map(l, 3);
  if (!corners || corners->tag != KILN_TAG_BOOL)
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (rank_of(node, 0) != 3 || k < 2) return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!kiln__lower_is_float(kiln__lower_input_dtype(node, 0)))
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  own->dims[0] = map->dims[0];
  own->dims[1] = map->dims[k + 1];
  int sum = -1;
  for (int c = -1; c < k; c++) {
    kiln__lower_map *at = kiln__lower_copied(l, own);
    at->dims[2] = (kiln__lower_dim){.offset = c < 0 ? k : c};
    const int x = kiln__lower_value(l, kiln_node_input(node, 0), at);
    const int weight = kiln__lower_cast(l, x, KILN_DTYPE_F64);
    if (c >= 0 && !kiln_dim_is_number(sizes.sizes[k - c]))
      return kiln__lower_refuse(l, KILN_REASON_dynamic_as_static);
    sum = c < 0 ? weight
                : OP2(add, sum,
                      OP2(mul, weight,
                          grid_place(l, &map->dims[k - c], sizes.sizes[k - c], corners->u.b)));
  }
  return finish(l, sum, kiln__lower_result_dtype(node, 0));
}
