/* decompose_product.c: products of several steps, and distances and covariances that are made of
 * one (runtime/kernels/heavy/products.c, nn/distance.c, reduce/statistics.c have the steps). */
#include "ir/pass/network.h"

static kiln_ir_value *turned(kiln__maker *m, kiln_ir_value *matrices) {
  return STEP(transpose_int, matrices, INT(-2), INT(-1));
}

/* -- From left to right -- */

static kiln_ir_value *product(kiln__maker *m, const kiln_node *list, kiln_op_id op) {
  kiln_ir_value *t = kiln_node_input(list, 0);
  for (int i = 1; i < list->input_count; i++)
    t = kiln__maker_step(m, op, kiln_type_basic(KILN_TYPE_TENSOR), 2,
                         (kiln_ir_value *[]){t, kiln_node_input(list, i)});
  return t;
}
KILN__APART(linalg_multi_dot) {
  const kiln_node *list = kiln__list_of_tensors(n, 0);
  if (!list || list->input_count < 2) return false;
  GIVE(product(m, list, KILN_OP_matmul));
  return true;
}
KILN__APART(chain_matmul) {
  const kiln_node *list = kiln__list_of_tensors(n, 0);
  kiln_ir_value *matrices = NULL;
  if (!list || list->input_count < 2) return false;
  for (int i = 0; i < list->input_count; i++)
    matrices = BOTH(matrices, EQUAL(RANK(kiln_node_input(list, i)), INT(2)));
  kiln__apart_where(m, n, 1, matrices);
  GIVE(product(m, list, KILN_OP_mm));
  return true;
}
/* self, n: squares, and their products */
KILN__APART(linalg_matrix_power) {
  int64_t power;
  if (!kiln_ir_value_const_int(IN(1), &power) || power < 2) return false;
  const kiln__maker outside = *m;
  kiln_ir_value *result = NULL, *t = IN(0);
  kiln_ir_value *dtype = ASK(prim_dtype, INT, t);
  kiln_ir_value *is_wide =
      ASK(__or___bool, BOOL, EQUAL(dtype, INT(KILN_DTYPE_F32)), EQUAL(dtype, INT(KILN_DTYPE_F64)));
  kiln__ask_where(m, BOTH(is_wide, EQUAL(RANK(t), INT(2))));
  kiln__apart_where(m, n, 1, kiln__asked(m, &outside, EQUAL(SIZE(t, 0), SIZE(t, 1))));
  for (; power; power /= 2) {
    if (power % 2) result = result ? STEP(mm, result, t) : t;
    if (power > 1) t = STEP(mm, t, t);
  }
  GIVE(result);
  return true;
}

/* x1 (B, I), x2 (B, J), weight (O, I, J), bias */
KILN__APART(bilinear) {
  if (!kiln__is_decided(n, 3)) return false;
  const kiln__maker outside = *m;
  kiln_ir_value *x = IN(0), *y = IN(1), *w = IN(2);
  kiln_ir_value *fit = BOTH(EQUAL(RANK(x), INT(2)), EQUAL(RANK(y), INT(2)));
  kiln__ask_where(m, BOTH(fit, EQUAL(RANK(w), INT(3))));
  fit = BOTH(EQUAL(SIZE(x, 0), SIZE(y, 0)), EQUAL(SIZE(x, 1), SIZE(w, 1)));
  fit = BOTH(fit, EQUAL(SIZE(y, 1), SIZE(w, 2)));
  kiln__apart_where(m, n, 1, kiln__asked(m, &outside, fit));
  kiln_ir_value *t = STEP(mul_Tensor, STEP(matmul, x, w), y); /* (O, B, J) */
  t = STEP(sum_dim_IntList, t, LIST(INT(2)), BOOL(false), NONE);
  t = STEP(contiguous, STEP(t, t), INT(0));
  GIVE(kiln_ir_value_is_none(IN(3)) ? t : SUM(t, IN(3)));
  return true;
}

/* self (T, B, I), weight (K, I, O), bias (O), pad: one convolution along the first dimension */
KILN__APART(conv_tbc) {
  const kiln__maker outside = *m;
  kiln_ir_value *fit = BOTH(EQUAL(RANK(IN(0)), INT(3)), EQUAL(RANK(IN(1)), INT(3)));
  kiln__ask_where(m, BOTH(fit, EQUAL(RANK(IN(2)), INT(1))));
  kiln__apart_where(m, n, 1, kiln__asked(m, &outside, ASK(gt_int, BOOL, SIZE(IN(1), 1), INT(0))));
  kiln_ir_value *x = STEP(permute, IN(0), LIST(INT(1), INT(2), INT(0)));
  kiln_ir_value *w = STEP(permute, IN(1), LIST(INT(2), INT(1), INT(0)));
  kiln_ir_value *y = STEP(conv1d, x, w, IN(2), LIST(INT(1)), LIST(IN(3)), LIST(INT(1)), INT(1));
  GIVE(STEP(contiguous, STEP(permute, y, LIST(INT(2), INT(0), INT(1))), INT(0)));
  return true;
}

/* -- Of differences -- */

/* x1 (.., P, M), x2 (.., R, M), p, compute_mode: of many rows, or where mode 1 asks for it, by the
 * squares of both and their product. */
KILN__APART(cdist) {
  enum { MANY = 25 };
  const kiln__maker outside = *m;
  kiln_ir_value *a = IN(0), *b = IN(1), *norms[2], *x[] = {a, b};
  const bool always = kiln_ir_value_is_number(IN(3), 1);
  if (!kiln_ir_value_is_number(IN(2), 2) ||
      !(always || kiln_ir_value_is_none(IN(3)) || kiln_ir_value_is_number(IN(3), 0)))
    return false;
  kiln_ir_value *fit = EQUAL(ASK(prim_dtype, INT, a), ASK(prim_dtype, INT, b));
  fit = BOTH(fit, ASK(is_floating_point, BOOL, a));
  fit = BOTH(fit, ASK(ge_int, BOOL, RANK(a), INT(2)));
  kiln__ask_where(m, BOTH(fit, ASK(ge_int, BOOL, RANK(b), INT(2))));
  fit = EQUAL(SIZE(a, -1), SIZE(b, -1));
  if (!always)
    fit = BOTH(fit, ASK(__or___bool, BOOL, ASK(gt_int, BOOL, SIZE(a, -2), INT(MANY)),
                        ASK(gt_int, BOOL, SIZE(b, -2), INT(MANY))));
  kiln__apart_where(m, n, 1, kiln__asked(m, &outside, fit));
  for (int i = 0; i < 2; i++)
    norms[i] = STEP(sum_dim_IntList, STEP(mul_Tensor, x[i], x[i]), LIST(INT(-1)), BOOL(true), NONE);
  kiln_ir_value *sum = SUM(norms[0], turned(m, norms[1]));
  kiln_ir_value *t = STEP(sub_Tensor, sum, STEP(matmul, a, turned(m, b)), INT(2));
  GIVE(STEP(sqrt, STEP(clamp_min, t, INT(0))));
  return true;
}

/* Of a matrix of several rows. */
static void where_it_has_rows(kiln__maker *m, kiln_node *n) {
  const kiln__maker outside = *m;
  kiln_ir_value *x = IN(0);
  kiln__ask_where(m, BOTH(ASK(is_floating_point, BOOL, x), EQUAL(RANK(x), INT(2))));
  kiln_ir_value *several = ASK(gt_int, BOOL, SIZE(x, 0), INT(1));
  kiln__apart_where(m, n, 1, kiln__asked(m, &outside, several));
}
/* self (n, m), correction, without weights: of the rows' distances from their means */
KILN__APART(cov) {
  kiln_ir_value *x = IN(0);
  if (!kiln_ir_value_is_none(IN(2)) || !kiln_ir_value_is_none(IN(3))) return false;
  where_it_has_rows(m, n);
  kiln_ir_value *count = SIZE(x, 1);
  kiln_ir_value *sum = STEP(sum_dim_IntList, x, LIST(INT(1)), BOOL(true), NONE);
  x = DIFFERENCE(x, STEP(div_Scalar, sum, count));
  count = ASK(prim_max_int, INT, ASK(sub_int, INT, count, IN(1)), INT(0));
  GIVE(STEP(div_Scalar, STEP(mm, x, STEP(t, x)), count));
  return true;
}
KILN__APART(corrcoef) {
  kiln_ir_value *x = IN(0);
  where_it_has_rows(m, n);
  kiln_ir_value *c = STEP(cov, x, INT(1), NONE, NONE);
  kiln_ir_value *d = STEP(sqrt, STEP(diagonal, c, INT(0), INT(0), INT(1)));
  c = STEP(div_Tensor, c, STEP(unsqueeze, d, INT(1)));
  c = STEP(div_Tensor, c, STEP(unsqueeze, d, INT(0)));
  GIVE(STEP(clamp, c, INT(-1), INT(1)));
  return true;
}
