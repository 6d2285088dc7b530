/* decompose_places.c: operators that are made of slices and joins of their arguments: integrals by
 * trapezoids, powers of a vector, lists (runtime/kernels/reduce/sums.c, linalg/, shape/join.c have
 * the steps). */
#include "ir/pass/network.h"

/* -- Trapezoids: the mean of neighbours times their distance -- */

static kiln_ir_value *part(kiln__maker *m, const kiln_node *n, kiln_ir_value *t, bool is_high) {
  return STEP(slice_Tensor, t, IN(2), INT(is_high), is_high ? NONE : INT(-1), INT(1));
}
static kiln_ir_value *strips(kiln__maker *m, const kiln_node *n, kiln_ir_value *distance) {
  kiln_ir_value *sum = SUM(part(m, n, IN(0), false), part(m, n, IN(0), true));
  sum = kiln_type_is_tensor(distance->type) ? STEP(mul_Tensor, sum, distance)
                                            : STEP(mul_Scalar, sum, distance);
  return STEP(div_Scalar, sum, FLOAT(2));
}
static kiln_ir_value *is_float_of_some_dims(kiln__maker *m, const kiln_node *n) {
  return BOTH(ASK(is_floating_point, BOOL, IN(0)), ASK(gt_int, BOOL, RANK(IN(0)), INT(0)));
}
/* y, dx, dim */
static kiln_ir_value *strips_of_one_width(kiln__maker *m, kiln_node *n) {
  kiln__apart_where(m, n, 1, is_float_of_some_dims(m, n));
  return strips(m, n, IN(1));
}
/* y, x, dim: x of y's type and sizes, or a vector along the last dimension. */
static kiln_ir_value *strips_between(kiln__maker *m, kiln_node *n) {
  const kiln__maker outside = *m;
  const kiln_type *ints = kiln__maker_list(m, KILN_TYPE_INT);
  kiln__ask_where(m, is_float_of_some_dims(m, n));
  kiln_ir_value *own = MAKE(size, ints, IN(1)), *sizes = MAKE(size, ints, IN(0));
  kiln_ir_value *fit = ASK(eq_int_list, BOOL, own, sizes);
  kiln_ir_value *same = EQUAL(ASK(prim_dtype, INT, IN(0)), ASK(prim_dtype, INT, IN(1)));
  if (kiln_ir_value_is_number(IN(2), -1)) {
    kiln_ir_value *last = MAKE(slice_t, ints, sizes, INT(-1), NONE, INT(1));
    fit = ASK(__or___bool, BOOL, fit, ASK(eq_int_list, BOOL, own, last));
  }
  kiln__apart_where(m, n, 1, kiln__asked(m, &outside, BOTH(fit, same)));
  kiln_ir_value *x = IN(1);
  return strips(m, n, DIFFERENCE(part(m, n, x, true), part(m, n, x, false)));
}
static bool give_sum(kiln__maker *m, kiln_node *n, kiln_ir_value *strips) {
  GIVE(STEP(sum_dim_IntList, strips, LIST(IN(2)), BOOL(false), NONE));
  return true;
}
static bool give_sums(kiln__maker *m, kiln_node *n, kiln_ir_value *strips) {
  GIVE(STEP(cumsum, strips, IN(2), NONE));
  return true;
}
KILN__APART(trapezoid_x) { return give_sum(m, n, strips_between(m, n)); }
KILN__APART(trapezoid_dx) { return give_sum(m, n, strips_of_one_width(m, n)); }
KILN__APART(cumulative_trapezoid_x) { return give_sums(m, n, strips_between(m, n)); }
KILN__APART(cumulative_trapezoid_dx) { return give_sums(m, n, strips_of_one_width(m, n)); }

/* -- Powers 0 to N - 1 of a vector's elements, in rows -- */

static bool powers(kiln__maker *m, kiln_node *n, bool falling) {
  int64_t count;
  if (!kiln_ir_value_const_int(IN(1), &count) || count < 2) return false;
  kiln_ir_value *x = IN(0);
  kiln__apart_where(m, n, 1, BOTH(ASK(is_floating_point, BOOL, x), EQUAL(RANK(x), INT(1))));
  kiln_ir_value *column = STEP(unsqueeze, x, INT(1));
  kiln_ir_value *ones = STEP(ones_like, column, NONE, NONE, NONE, NONE, NONE);
  kiln_ir_value *rest = STEP(expand, column, LIST(INT(-1), INT(count - 1)), BOOL(false));
  rest = STEP(cat, LIST_OF(TENSOR, ones, STEP(cumprod, rest, INT(1), NONE)), INT(1));
  GIVE(falling ? STEP(flip, rest, LIST(INT(1))) : rest);
  return true;
}
/* x, N, increasing */
KILN__APART(vander) {
  const bool falling = kiln_ir_value_is_bool(IN(2), false);
  return (falling || kiln_ir_value_is_bool(IN(2), true)) && powers(m, n, falling);
}
KILN__APART(linalg_vander) { return powers(m, n, false); }

/* -- Lists -- */

enum { MANY = 64 };
static kiln_ir_value *list_of(kiln__maker *m, int count, kiln_ir_value *const *items) {
  return kiln__maker_step(m, KILN_OP_prim_ListConstruct, kiln__maker_list(m, KILN_TYPE_TENSOR),
                          count, items);
}
KILN__APART(flatten_dense_tensors) {
  kiln_ir_value *items[MANY];
  const kiln_node *list = kiln__list_of_tensors(n, 0);
  if (!list || list->input_count > MANY) return false;
  for (int i = 0; i < list->input_count; i++)
    items[i] = STEP(reshape, kiln_node_input(list, i), LIST(INT(-1)));
  GIVE(STEP(cat, list_of(m, list->input_count, items), INT(0)));
  return true;
}
/* The operator of one tensor, for each. */
static bool of_each(kiln__maker *m, kiln_node *n, kiln_op_id op) {
  kiln_ir_value *items[MANY];
  const kiln_node *list = kiln__list_of_tensors(n, 0);
  if (!list || list->input_count > MANY) return false;
  for (int i = 0; i < list->input_count; i++) {
    kiln_ir_value *item = kiln_node_input(list, i);
    items[i] = kiln__maker_step(m, op, kiln_type_basic(KILN_TYPE_TENSOR), 1, &item);
  }
  GIVE(list_of(m, list->input_count, items));
  return true;
}
KILN__APART(atleast_1d_Sequence) { return of_each(m, n, KILN_OP_atleast_1d); }
KILN__APART(atleast_2d_Sequence) { return of_each(m, n, KILN_OP_atleast_2d); }
KILN__APART(atleast_3d_Sequence) { return of_each(m, n, KILN_OP_atleast_3d); }
