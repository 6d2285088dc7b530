/* lower_pairs.c: rows of two tensors: products, distances and similarities of rows, and losses,
 * by the steps of the interpreter's composites (runtime/kernels/nn/distance.c, loss_of_pairs.c). Of
 * f32 and f64: those round each step of a half. */
#include <math.h>

#include "codegen/lower_rows.h"

#define LIKE(value) kiln__lower_const(l, dtype, value)

static int at_least(kiln__lowering *l, int x, kiln_dtype dtype, double low) {
  const int bound = LIKE(low);
  return isnan(low) ? bound : SELECT(OP2(lt, x, bound), bound, x);
}

/* Elements of the tensors among the first inputs, at a map of the first, whose sizes and type all
 * have; -1 of what is none. False, with a reason: they differ. */
enum { MOST = 4 };
static bool elements(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                     int out[MOST]) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  for (int i = 0; i < MOST; i++) {
    out[i] = -1;
    if (i >= node->input_count || !kiln__lower_is_tensor(node, i)) continue;
    if (!kiln__lower_has_sizes(l, node, i)) return false;
    if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F || kiln__lower_input_dtype(node, i) != dtype)
      return kiln__lower_refuse(l, KILN_REASON_dtype) == 0;
    out[i] = kiln__lower_value(l, kiln_node_input(node, i), map);
  }
  return l->reason == KILN_REASON_none;
}

/* -- Rows -- */

/* The dimension is argument 2. */
ROWS_BEGIN(linalg_vecdot) {
  int x[MOST];
  if (!elements(l, node, kiln__rows_open(l, node, rows), x)) return;
  rows->values[0] = kiln__rows_reduce(l, KILN_LOOP_sum, OP2(mul, x[0], x[1]), rows);
  kiln__rows_close(l, rows);
}
ROW_VALUES(linalg_vecdot)

/* The norm of the difference and `more`; its order is argument 2. */
static void begin_distance(kiln__lowering *l, const kiln_node *node, kiln__rows *rows,
                           double more) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  double p;
  int x[MOST];
  if (!kiln__lower_number(l, node, 2, &p) || !elements(l, node, kiln__rows_open(l, node, rows), x))
    return;
  int apart = OP2(sub, x[0], x[1]);
  if (more != 0) apart = OP2(add, apart, LIKE(more));
  rows->values[0] = kiln__rows_norm_of(l, rows, apart, p);
}
ROWS_BEGIN(dist) { begin_distance(l, node, rows, 0); }
ROW_VALUES(dist)
ROWS_BEGIN(pairwise_distance) {
  double eps;
  if (kiln__lower_number(l, node, 3, &eps)) begin_distance(l, node, rows, eps);
}
ROW_VALUES(pairwise_distance)

/* Each divided by its norm, which is at least eps, argument 3. */
ROWS_BEGIN(cosine_similarity) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  double eps;
  int x[MOST], norms[2];
  if (!kiln__lower_number(l, node, 3, &eps) ||
      !elements(l, node, kiln__rows_open(l, node, rows), x))
    return;
  const bool one = rows->mask == 0; /* of one element: its norm is no root of a square */
  for (int i = 0; i < 2; i++) {
    const int term = one ? OP1(abs, x[i]) : OP2(mul, x[i], x[i]);
    norms[i] = kiln__rows_reduce(l, KILN_LOOP_sum, term, rows);
  }
  kiln__rows_close(l, rows);
  for (int i = 0; i < 2; i++)
    norms[i] = at_least(l, one ? norms[i] : OP1(sqrt, norms[i]), dtype, eps);
  if (!elements(l, node, kiln__rows_open(l, node, rows), x)) return;
  const int product = OP2(mul, OP2(div, x[0], norms[0]), OP2(div, x[1], norms[1]));
  rows->values[0] = kiln__rows_reduce(l, KILN_LOOP_sum, product, rows);
  kiln__rows_close(l, rows);
}
ROW_VALUES(cosine_similarity)

/* -- Losses of rows: what is reduced more is taken apart before -- */

static bool is_of_rows(kiln__lowering *l, const kiln_node *node) {
  return kiln__rows_reduction(node) == 0 || kiln__lower_refuse(l, KILN_REASON_in_parts) == 0;
}
static int distance(kiln__lowering *l, const kiln_node *node, kiln__rows *rows, int a, int b) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  double p, eps;
  int x[MOST];
  if (!kiln__lower_number(l, node, 4, &p) || !kiln__lower_number(l, node, 5, &eps) ||
      !elements(l, node, kiln__rows_open(l, node, rows), x))
    return -1;
  return kiln__rows_norm_of(l, rows, OP2(add, OP2(sub, x[a], x[b]), LIKE(eps)), p);
}
/* anchor, positive, negative, margin, p, eps, swap, reduction */
ROWS_BEGIN(triplet_margin_loss) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  const kiln_ivalue *swap = kiln_ir_value_constant(kiln_node_input(node, 6));
  double margin;
  if (!is_of_rows(l, node) || !kiln__lower_number(l, node, 3, &margin)) return;
  const int near = distance(l, node, rows, 0, 1);
  int far = distance(l, node, rows, 0, 2);
  if (!swap || (swap->u.b && l->reason == KILN_REASON_none))
    far = OP2(min, far, distance(l, node, rows, 1, 2));
  rows->values[0] = at_least(l, OP2(sub, OP2(add, near, LIKE(margin)), far), dtype, 0);
}
ROW_VALUES(triplet_margin_loss)

/* input1 (N, D) or (D), input2, target (N) or one, margin, reduction */
ROWS_BEGIN(cosine_embedding_loss) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  const kiln_ir_value *target = kiln_node_input(node, 2);
  const int rank = kiln_node_input(node, 0)->type->detail->rank;
  double margin;
  int x[2], sums[3];
  if (!is_of_rows(l, node) || !kiln__lower_number(l, node, 3, &margin) ||
      !kiln__lower_has_sizes(l, node, 1))
    return;
  for (int i = 0; i < 2; i++)
    if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F || kiln__lower_input_dtype(node, i) != dtype)
      (void)kiln__lower_refuse(l, KILN_REASON_dtype);
  if (!target->type->detail || target->type->detail->rank != rank - 1 || rank > 2)
    (void)kiln__lower_refuse(l, KILN_REASON_types_unknown);
  if (l->reason != KILN_REASON_none) return;
  kiln__lower_map *at = kiln__lower_copied(l, &rows->kept);
  at->rank = rank - 1;
  for (int d = 0; d < at->rank; d++) { /* one target may be for all rows */
    const int64_t size = target->type->detail->sizes[d];
    if (size == 1) at->dims[d] = (kiln__lower_dim){0};
    if (size != 1 && size != kiln_node_input(node, 0)->type->detail->sizes[d])
      (void)kiln__lower_refuse(l, KILN_REASON_types_unknown);
  }
  if (l->reason != KILN_REASON_none) return;
  const kiln__lower_map *map = kiln__rows_open(l, node, rows);
  for (int i = 0; i < 2; i++) x[i] = kiln__lower_value(l, kiln_node_input(node, i), map);
  for (int i = 0; i < 3; i++)
    sums[i] = kiln__rows_reduce(l, KILN_LOOP_sum, OP2(mul, x[i == 2], x[i > 0]), rows);
  kiln__rows_close(l, rows);
  const int aa = OP2(add, sums[0], LIKE(1e-12)), bb = OP2(add, sums[2], LIKE(1e-12));
  const int cosine = OP2(div, sums[1], OP1(sqrt, OP2(mul, aa, bb)));
  const int y = kiln__lower_cast(l, kiln__lower_value(l, target, at), KILN_DTYPE_F64);
  const int same = OP2(eq, y, kiln__lower_const(l, KILN_DTYPE_F64, 1));
  const int apart = OP2(eq, y, kiln__lower_const(l, KILN_DTYPE_F64, -1));
  const int far = at_least(l, OP2(sub, cosine, LIKE(margin)), dtype, 0), zero = LIKE(0);
  rows->values[0] = SELECT(same, OP2(sub, LIKE(1), cosine), SELECT(apart, far, zero));
}
ROW_VALUES(cosine_embedding_loss)

/* Of a row of each, broadcast in front: x1 (.., P, M), x2 (.., R, M), p */
KILN__LOWER(cdist) {
  enum { MANY = 25 };
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  kiln__lower_map *own[2];
  kiln__rows rows = {.loops = 1, .mask = (uint64_t)1 << (map->rank - 1)};
  double p;
  int x[2];
  if (!kiln__lower_number(l, node, 2, &p)) return -1;
  /* Of many rows it is made of a product, and so are its bits (ir/pass/decompose_product.c). */
  if (p == 2 && !kiln_node_int(node, "whole", 0)) {
    int64_t mode;
    bool few = kiln__lower_int(l, node, 3, 0, &mode) && mode != 1;
    for (int i = 0; i < 2 && few && mode != 2; i++) {
      const kiln_tensor_detail *t = kiln_node_input(node, i)->type->detail;
      few = t && t->rank >= 2 && kiln_dim_is_number(t->sizes[t->rank - 2]) &&
            t->sizes[t->rank - 2] <= MANY;
    }
    if (!few) return kiln__lower_refuse(l, KILN_REASON_product_by_kernel);
  }
  for (int i = 0; i < 2; i++) {
    const kiln_tensor_detail *t = kiln_node_input(node, i)->type->detail;
    if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F || kiln__lower_input_dtype(node, i) != dtype)
      return kiln__lower_refuse(l, KILN_REASON_dtype);
    if (!t || t->rank != map->rank) return kiln__lower_refuse(l, KILN_REASON_rank);
    own[i] = kiln__lower_copied(l, map);
    own[i]->dims[t->rank - 2] = map->dims[map->rank - 2 + i];
    for (int d = 0; d < t->rank - 1; d++)
      if (t->sizes[d] == 1) own[i]->dims[d] = (kiln__lower_dim){0};
  }
  const kiln_dim size = kiln__lower_sizes_of(l, kiln_node_input(node, 0)).sizes[map->rank - 1];
  const kiln_sum rest = kiln_sum_minus(kiln_sum_of(l->fn->dims, size), kiln_sum_number(1));
  rows.has_elements = kiln_sum_is_natural(l->fn->dims, rest);
  const int loop = kiln__lower_open(l, KILN_LOOP_reduce, size);
  if (loop < 0) return -1;
  for (int i = 0; i < 2; i++) {
    own[i]->dims[map->rank - 1] = (kiln__lower_dim){0};
    if (size != 1) own[i]->dims[map->rank - 1] = kiln__lower_along(loop);
    x[i] = kiln__lower_value(l, kiln_node_input(node, i), own[i]);
  }
  return kiln__rows_norm_of(l, &rows, OP2(sub, x[0], x[1]), p);
}

/* -- Losses -- */

static bool flag(const kiln_node *node, int i) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, i));
  return v && v->tag == KILN_TAG_BOOL && v->u.b;
}
static double number(kiln__lowering *l, const kiln_node *node, int i) {
  double value = 0;
  (void)kiln__lower_number(l, node, i, &value);
  return value;
}

/* An element of a loss, of those of its tensors. */
typedef int (*element_fn)(kiln__lowering *l, const kiln_node *node, const int *x, kiln_dtype dtype);

/* target, reduction, log_target */
static int kl_div(kiln__lowering *l, const kiln_node *node, const int *x, kiln_dtype dtype) {
  const int y = x[1], zero = LIKE(0);
  if (flag(node, 3)) return OP2(mul, OP1(exp, y), OP2(sub, y, x[0]));
  const int own = SELECT(OP2(eq, y, zero), zero, OP2(mul, y, OP1(log, y)));
  return OP2(sub, own, OP2(mul, y, x[0]));
}
/* input 2, target, margin */
static int margin_ranking(kiln__lowering *l, const kiln_node *node, const int *x,
                          kiln_dtype dtype) {
  const int apart = OP2(mul, OP1(neg, x[2]), OP2(sub, x[0], x[1]));
  return at_least(l, OP2(add, apart, LIKE(number(l, node, 3))), dtype, 0);
}
/* target, margin */
static int hinge_embedding(kiln__lowering *l, const kiln_node *node, const int *x,
                           kiln_dtype dtype) {
  const int margin = at_least(l, OP2(sub, OP1(neg, x[0]), LIKE(-number(l, node, 2))), dtype, 0);
  const int zero = LIKE(0);
  const int a = SELECT(OP2(ne, x[1], LIKE(1)), margin, zero);
  return OP2(add, a, SELECT(OP2(ne, x[1], LIKE(-1)), x[0], zero));
}
static int soft_margin(kiln__lowering *l, __attribute__((unused)) const kiln_node *node,
                       const int *x, __attribute__((unused)) kiln_dtype dtype) {
  return OP1(log1p, OP1(exp, OP2(mul, OP1(neg, x[1]), x[0])));
}
/* target, log_input, full, eps: Stirling's approximation where the target is above 1 */
static int poisson_nll(kiln__lowering *l, const kiln_node *node, const int *x, kiln_dtype dtype) {
  const int y = x[1];
  int loss;
  if (flag(node, 2)) {
    loss = OP2(sub, OP1(exp, x[0]), OP2(mul, y, x[0]));
  } else {
    const int log = OP1(log, OP2(add, x[0], LIKE(number(l, node, 4))));
    loss = OP2(sub, x[0], OP2(mul, y, log));
  }
  if (!flag(node, 3)) return loss;
  const int half = OP2(mul, OP1(log, OP2(mul, y, LIKE(2 * M_PI))), LIKE(0.5));
  const int term = OP2(add, OP2(sub, OP2(mul, y, OP1(log, y)), y), half);
  return OP2(add, loss, SELECT(OP2(le, y, LIKE(1)), LIKE(0), term));
}
/* target, weight, pos_weight: (1 - y) x + (1 + (pos - 1) y) log(1 + e^-x), in double, and rounded.
 */
static int bce_with_logits(kiln__lowering *l, __attribute__((unused)) const kiln_node *node,
                           const int *in, kiln_dtype result) {
  const kiln_dtype dtype = KILN_DTYPE_F64;
  int wide[MOST];
  if (result == dtype) return kiln__lower_refuse(l, KILN_REASON_dtype); /* the last bit is libm's */
  for (int i = 0; i < MOST; i++) wide[i] = in[i] < 0 ? -1 : kiln__lower_cast(l, in[i], dtype);
  const int x = wide[0], y = wide[1], zero = LIKE(0), one = LIKE(1);
  int soft = OP1(log1p, OP1(exp, OP1(neg, OP1(abs, x))));
  soft = OP2(add, soft, SELECT(OP2(lt, x, zero), OP1(neg, x), zero));
  if (wide[3] >= 0) soft = OP2(mul, OP2(add, one, OP2(mul, OP2(sub, wide[3], one), y)), soft);
  int loss = OP2(add, OP2(mul, OP2(sub, one, y), x), soft);
  if (wide[2] >= 0) loss = OP2(mul, loss, wide[2]);
  return kiln__lower_cast(l, loss, result);
}

static int loss_element(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                        element_fn fn) {
  int x[MOST];
  if (kiln__rows_reduction(node) < 0) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  return elements(l, node, map, x) ? fn(l, node, x, kiln__lower_result_dtype(node, 0)) : -1;
}
static void begin_loss(kiln__lowering *l, const kiln_node *node, kiln__rows *rows, element_fn fn) {
  const kiln__lower_map *map = kiln__rows_open(l, node, rows);
  const int element = loss_element(l, node, map, fn);
  const int sum = kiln__rows_reduce(l, KILN_LOOP_sum, element, rows);
  kiln__rows_close(l, rows);
  const kiln_dtype quotient =
      fn == bce_with_logits ? KILN_DTYPE_F64 : kiln__lower_result_dtype(node, 0);
  rows->values[0] = kiln__rows_sum_or_mean(l, node, rows, sum, quotient);
}
#define LOSS(name, fn)                                         \
  KILN__LOWER(name) { return loss_element(l, node, map, fn); } \
  ROWS_BEGIN(name) { begin_loss(l, node, rows, fn); }          \
  ROW_VALUES(name)
LOSS(kl_div, kl_div)
LOSS(margin_ranking_loss, margin_ranking)
LOSS(hinge_embedding_loss, hinge_embedding)
LOSS(soft_margin_loss, soft_margin)
LOSS(poisson_nll_loss, poisson_nll)
LOSS(binary_cross_entropy_with_logits, bce_with_logits)
