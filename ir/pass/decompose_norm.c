/* decompose_norm.c: norms by their inner names, which give what training would keep as well: where
 * nobody reads that they are the usual ones (runtime/kernels/nn/norm_named.c has the steps). */
#include "ir/pass/network.h"

/* -- Batch norm -- */

static bool batch_norm(kiln__maker *m, kiln_node *n, kiln_ir_value *training, int momentum) {
  GIVE(STEP(batch_norm, IN(0), IN(1), IN(2), IN(3), IN(4), training, IN(momentum), IN(momentum + 1),
            BOOL(true)));
  return true;
}
/* input, weight, bias, mean, variance, training, momentum, eps */
KILN__APART(native_batch_norm) {
  return kiln__only_first_read(n) && kiln_ir_value_is_bool(IN(5), false) &&
         batch_norm(m, n, IN(5), 6);
}
/* The same without the training */
KILN__APART(batch_norm_no_training) {
  return kiln__only_first_read(n) && batch_norm(m, n, BOOL(false), 5);
}
/* input, weight, bias, training, momentum, eps */
KILN__APART(batch_norm_no_stats) {
  if (!kiln__only_first_read(n)) return false;
  GIVE(STEP(batch_norm, IN(0), IN(1), IN(2), NONE, NONE, IN(3), IN(4), IN(5), BOOL(true)));
  return true;
}

/* -- Others -- */

/* input, weight, bias, N, C, HxW, groups, eps: N and C are the input's */
KILN__APART(native_group_norm) {
  if (!kiln__only_first_read(n)) return false;
  const kiln__maker outside = *m;
  kiln__ask_where(m, ASK(ge_int, BOOL, RANK(IN(0)), INT(2)));
  kiln_ir_value *fit = BOTH(EQUAL(SIZE(IN(0), 0), IN(3)), EQUAL(SIZE(IN(0), 1), IN(4)));
  kiln__apart_where(m, n, 1, kiln__asked(m, &outside, fit));
  GIVE(STEP(group_norm, IN(0), IN(6), IN(1), IN(2), IN(7), BOOL(true)));
  return true;
}
/* v, g, dim: and the norms */
KILN__APART(_weight_norm_interface) {
  GIVE(STEP(_weight_norm, IN(0), IN(1), IN(2)));
  GIVE(STEP(norm_except_dim, IN(0), INT(2), IN(2)));
  return true;
}
/* self, mask (true: left out), dim, mask_type: a mask of self's sizes */
KILN__APART(_masked_softmax) {
  int64_t dim = -1;
  if (!(kiln_ir_value_is_none(IN(3)) || kiln_ir_value_is_number(IN(3), 2)) ||
      !(kiln_ir_value_is_none(IN(2)) || kiln_ir_value_const_int(IN(2), &dim)))
    return false;
  const kiln_type *ints = kiln__maker_list(m, KILN_TYPE_INT);
  kiln_ir_value *same = ASK(eq_int_list, BOOL, MAKE(size, ints, IN(0)), MAKE(size, ints, IN(1)));
  kiln_ir_value *is_mask = EQUAL(ASK(prim_dtype, INT, IN(1)), INT(KILN_DTYPE_BOOL));
  same = BOTH(same, ASK(is_floating_point, BOOL, IN(0)));
  kiln__apart_where(m, n, 1, BOTH(same, is_mask));
  kiln_ir_value *t = STEP(masked_fill_Scalar, IN(0), IN(1), FLOAT(-__builtin_inf()));
  GIVE(STEP(softmax_int, t, INT(dim), NONE));
  return true;
}
