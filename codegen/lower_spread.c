/* lower_spread.c: reductions of more than one step: extremes with their places, variances, norms,
 * counts, losses; as the interpreter's kernels compute them (runtime/kernels/reduce/). */
#include "codegen/lower_rows.h"

#include <math.h>

/* -- Extremes -- */

/* Two numbers of the same elements. */
static void begin_two(kiln__lowering *l, const kiln_node *node, kiln__rows *rows,
                      kiln_loop_opcode a, kiln_loop_opcode b) {
  const kiln_dtype dtype = kiln__lower_compute(kiln__lower_input_dtype(node, 0));
  const int x = kiln__rows_open_first(l, node, rows, dtype);
  rows->values[0] = kiln__rows_reduce(l, a, x, rows);
  rows->values[1] = kiln__rows_reduce(l, b, x, rows);
  kiln__rows_close(l, rows);
}
ROWS_BEGIN(max_dim) { begin_two(l, node, rows, KILN_LOOP_amax, KILN_LOOP_argmax); }
ROW_VALUES(max_dim)
ROWS_BEGIN(min_dim) { begin_two(l, node, rows, KILN_LOOP_amin, KILN_LOOP_argmin); }
ROW_VALUES(min_dim)
ROWS_BEGIN(aminmax) { begin_two(l, node, rows, KILN_LOOP_amin, KILN_LOOP_amax); }
ROW_VALUES(aminmax)

/* -- Variance -- */

/* Of argument 2 (of argument 1, where all is reduced): whether it is unbiased, or what is taken off
 * the count. */
static bool correction_of(kiln__lowering *l, const kiln_node *node, double *out) {
  const int at = node->op->schema->arg_count > 2 ? 2 : 1;
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, at));
  *out = 1;
  return (v && v->tag == KILN_TAG_NONE) || kiln__lower_number(l, node, at, out);
}
/* The variance, or its root, and the mean. */
static void begin_variance(kiln__lowering *l, const kiln_node *node, kiln__rows *rows, bool root) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  const kiln_dim n = kiln__rows_length(l, node, rows);
  double correction;
  if (!correction_of(l, node, &correction)) return;
  if (kiln_dtype_is_int(kiln__lower_input_dtype(node, 0), true)) {
    kiln__lower_refuse(l, KILN_REASON_raises);
    return;
  }
  const int sum = kiln__rows_of_first(l, node, rows, KILN_LOOP_sum, dtype);
  const int mean = rows->values[1] = OP2(div, sum, kiln__lower_size(l, dtype, n));
  const int squares = kiln__rows_squares(l, node, rows, dtype, mean);
  const int zero = kiln__lower_const(l, KILN_DTYPE_F64, 0);
  int rest = OP2(sub, kiln__lower_size(l, KILN_DTYPE_F64, n),
                 kiln__lower_const(l, KILN_DTYPE_F64, correction));
  rest = kiln__lower_cast(l, SELECT(OP2(gt, rest, zero), rest, zero), dtype);
  rows->values[0] = OP2(div, squares, rest);
  if (root) rows->values[0] = OP1(sqrt, rows->values[0]);
}
ROWS_BEGIN(var) { begin_variance(l, node, rows, false); }
ROW_VALUES(var)
ROWS_BEGIN(std) { begin_variance(l, node, rows, true); }
ROW_VALUES(std)

/* -- Norms -- */

/* x as the norm of order p adds or compares it; the reduction is `*op`. */
static int norm_term(kiln__lowering *l, int x, double p, kiln_loop_opcode *op) {
  const kiln_dtype dtype = kiln__lower_dtype_of(l, x);
  *op = isinf(p) ? (p > 0 ? KILN_LOOP_amax : KILN_LOOP_amin) : KILN_LOOP_sum;
  if (p == 2) return OP2(mul, x, x);
  x = OP1(abs, x);
  if (p == 1 || isinf(p)) return x;
  if (p == 0) return kiln__lower_cast(l, OP2(ne, x, kiln__lower_const(l, dtype, 0)), dtype);
  return OP2(pow, x, kiln__lower_const(l, dtype, p));
}
int kiln__rows_norm_of(kiln__lowering *l, const kiln__rows *rows, int x, double p) {
  kiln_loop_opcode op;
  if (x < 0) return -1;
  const kiln_dtype dtype = kiln__lower_dtype_of(l, x);
  if (rows->mask == 0 && p != 0) p = 1; /* as the interpreter's, kernels/reduce/reduction.c */
  const int term = norm_term(l, x, p, &op);
  int value = kiln__rows_reduce(l, op, term, rows);
  kiln__rows_close(l, rows);
  if (p == 2) value = OP1(sqrt, value);
  if (p != 0 && p != 1 && p != 2 && !isinf(p))
    value = OP2(pow, value, kiln__lower_const(l, dtype, 1 / p));
  return value;
}
static void begin_norm(kiln__lowering *l, const kiln_node *node, kiln__rows *rows, double p) {
  const int x = kiln__rows_open_first(l, node, rows, kiln__rows_compute(node));
  rows->values[0] = kiln__rows_norm_of(l, rows, x, p);
}
/* The order is argument 1. */
ROWS_BEGIN(norm) {
  const kiln_ivalue *v = kiln_ir_value_constant(kiln_node_input(node, 1));
  double p = 2;
  if (!(v && v->tag == KILN_TAG_NONE) && !kiln__lower_number(l, node, 1, &p)) return;
  begin_norm(l, node, rows, p);
}
ROW_VALUES(norm)
ROWS_BEGIN(frobenius_norm) { begin_norm(l, node, rows, 2); }
ROW_VALUES(frobenius_norm)

/* -- Norms of all but one dimension -- */

/* Of f32 and f64: the interpreter rounds each step of a half. */
static int norm_of_others(kiln__lowering *l, const kiln_node *node, kiln__rows *rows, double p) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F || kiln__lower_input_dtype(node, 0) != dtype)
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  const int rank = kiln_node_input(node, 0)->type->detail->rank;
  if (rows->mask == 0 && rank == 1) p = 1; /* of each element, whatever the order */
  return kiln__rows_norm_of(l, rows, kiln__rows_open_first(l, node, rows, dtype), p);
}
/* norm_except_dim(v, pow, dim) */
ROWS_BEGIN(norm_except_dim) {
  double p;
  if (kiln__lower_number(l, node, 1, &p)) rows->values[0] = norm_of_others(l, node, rows, p);
}
ROW_VALUES(norm_except_dim)
/* _weight_norm(v, g, dim): v (g / |v|), with one g for each row. */
ROWS_BEGIN(weight_norm) { rows->values[0] = norm_of_others(l, node, rows, 2); }
ROWS(weight_norm) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  const kiln_tensor_detail *v = kiln_node_input(node, 0)->type->detail,
                           *g = kiln_node_input(node, 1)->type->detail;
  if (!g || g->rank != v->rank) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  for (int d = 0; d < v->rank; d++) {
    const bool kept = !(rows->mask >> d & 1);
    if (g->sizes[d] != (kept ? v->sizes[d] : 1))
      return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  }
  if (g->dtype != (int)dtype) return kiln__lower_refuse(l, KILN_REASON_dtype);
  const int size = kiln__lower_value(l, kiln_node_input(node, 1), &rows->kept);
  const int x = kiln__lower_value(l, kiln_node_input(node, 0), map);
  return OP2(mul, x, OP2(div, size, rows->values[0]));
}
/* renorm(self, p, dim, maxnorm): rows of a greater norm get that one. */
ROWS_BEGIN(renorm) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  double p, most;
  if (!kiln__lower_number(l, node, 1, &p) || !kiln__lower_number(l, node, 3, &most)) return;
  const int norm = norm_of_others(l, node, rows, p), one = kiln__lower_const(l, dtype, 1);
  int scale = OP2(div, one, OP2(add, norm, kiln__lower_const(l, dtype, 1e-7)));
  scale = OP2(mul, scale, kiln__lower_const(l, dtype, most));
  rows->values[0] = SELECT(OP2(gt, norm, kiln__lower_const(l, dtype, most)), scale, one);
}
ROWS(renorm) {
  return OP2(mul, kiln__lower_value(l, kiln_node_input(node, 0), map), rows->values[0]);
}

/* -- Sums of functions -- */

/* Of the diagonal of a matrix. */
ROWS_BEGIN(trace) {
  const kiln_tensor_detail *t = kiln_node_input(node, 0)->type->detail;
  const kiln_dtype dtype = kiln__rows_compute(node);
  const kiln__lower_sizes s = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
  kiln_dims *dims = l->fn->dims;
  const kiln_sum rows_less =
      kiln_sum_minus(kiln_sum_of(dims, s.sizes[1]), kiln_sum_of(dims, s.sizes[0]));
  const bool by_rows = kiln_sum_is_natural(dims, rows_less);
  if (t->rank != 2 || !(by_rows || kiln_sum_is_natural(dims, kiln_sum_times(rows_less, -1)))) {
    kiln__lower_refuse(l, t->rank == 2 ? KILN_REASON_dynamic_as_static : KILN_REASON_types_unknown);
    return;
  }
  const kiln_dim size = s.sizes[by_rows ? 0 : 1];
  const int loop = kiln__lower_open(l, KILN_LOOP_reduce, size);
  kiln__lower_map *at = kiln__lower_new_map(l, 2);
  if (loop < 0) return;
  if (size != 1) at->dims[0] = at->dims[1] = kiln__lower_along(loop);
  rows->loops = 1;
  const int x = kiln__lower_value(l, kiln_node_input(node, 0), at);
  rows->values[0] = kiln__rows_reduce(l, KILN_LOOP_sum, kiln__lower_cast(l, x, dtype), rows);
  kiln__rows_close(l, rows);
}
ROW_VALUES(trace)

/* top + log(sum(exp(x - top))), where top, the greatest, is finite. */
ROWS_BEGIN(logsumexp) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  int top = kiln__rows_of_first(l, node, rows, KILN_LOOP_amax, dtype);
  const int infinite = kiln__lower_const(l, dtype, INFINITY);
  top = SELECT(OP2(lt, OP1(abs, top), infinite), top, kiln__lower_const(l, dtype, 0));
  const int x = kiln__rows_open_first(l, node, rows, dtype);
  const int sum = kiln__rows_reduce(l, KILN_LOOP_sum, OP1(exp, OP2(sub, x, top)), rows);
  kiln__rows_close(l, rows);
  rows->values[0] = OP2(add, OP1(log, sum), top);
}
ROW_VALUES(logsumexp)

ROWS_BEGIN(count_nonzero) {
  const int x = kiln__rows_open_first(l, node, rows, KILN_DTYPE_BOOL);
  rows->values[0] =
      kiln__rows_reduce(l, KILN_LOOP_sum, kiln__lower_cast(l, x, KILN_DTYPE_I64), rows);
  kiln__rows_close(l, rows);
}
ROW_VALUES(count_nonzero)

/* x, 0 where it is NaN. */
static int without_nan(kiln__lowering *l, int x) {
  const kiln_dtype dtype = kiln__lower_compute(kiln__lower_dtype_of(l, x));
  if (kiln_dtype_is_int(dtype, true)) return x;
  x = kiln__lower_cast(l, x, dtype);
  return SELECT(OP2(ne, x, x), kiln__lower_const(l, dtype, 0), x);
}
ROWS_BEGIN(nansum) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  const int x = without_nan(l, kiln__rows_open_first(l, node, rows, KILN_DTYPE_NONE));
  rows->values[0] = kiln__rows_reduce(l, KILN_LOOP_sum, kiln__lower_cast(l, x, dtype), rows);
  kiln__rows_close(l, rows);
}
ROW_VALUES(nansum)

/* Divided by how many are none. */
ROWS_BEGIN(nanmean) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  if (!(kiln_loop_class(kiln__lower_input_dtype(node, 0)) & KILN_LOOP_CLASS_F) ||
      kiln__lower_input_dtype(node, 0) != dtype || !kiln__lower_is_none(node, 3)) {
    kiln__lower_refuse(l, KILN_REASON_dtype);
    return;
  }
  const int x = kiln__rows_open_first(l, node, rows, dtype);
  const int fine = kiln__lower_cast(l, OP2(eq, x, x), KILN_DTYPE_I64);
  const int count = kiln__rows_reduce(l, KILN_LOOP_sum, fine, rows);
  const int sum = kiln__rows_reduce(l, KILN_LOOP_sum, without_nan(l, x), rows);
  kiln__rows_close(l, rows);
  rows->values[0] = OP2(div, sum, kiln__lower_cast(l, count, dtype));
}
ROW_VALUES(nanmean)

/* -- Losses of two tensors: each element in double, rounded -- */

typedef int (*loss_fn)(kiln__lowering *l, int difference, double parameter);
#define CONST(value) kiln__lower_const(l, KILN_DTYPE_F64, value)
static int squared(kiln__lowering *l, int d, __attribute__((unused)) double p) {
  return OP2(mul, d, d);
}
static int absolute(kiln__lowering *l, int d, __attribute__((unused)) double p) {
  return OP1(abs, d);
}
static int smooth_l1(kiln__lowering *l, int d, double beta) {
  const int z = OP1(abs, d), near = OP2(mul, OP2(mul, CONST(0.5), z), z);
  if (!(beta >= 0)) return kiln__lower_refuse(l, KILN_REASON_raises);
  return SELECT(OP2(lt, z, CONST(beta)), OP2(div, near, CONST(beta)),
                OP2(sub, z, CONST(0.5 * beta)));
}
static int huber(kiln__lowering *l, int d, double delta) {
  const int z = OP1(abs, d), near = OP2(mul, OP2(mul, CONST(0.5), z), z);
  if (!(delta > 0)) return kiln__lower_refuse(l, KILN_REASON_raises);
  return SELECT(OP2(le, z, CONST(delta)), near,
                OP2(mul, CONST(delta), OP2(sub, z, CONST(0.5 * delta))));
}

static int loss_at(kiln__lowering *l, const kiln_node *node, int x, int y, loss_fn fn) {
  const kiln_dtype dtype = kiln__rows_compute(node);
  double parameter = 0;
  if (node->input_count > 3 && !kiln__lower_number(l, node, 3, &parameter)) return -1;
  if (!(kiln_loop_class(dtype) & KILN_LOOP_CLASS_F))
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  x = kiln__lower_cast(l, kiln__lower_cast(l, x, dtype), KILN_DTYPE_F64);
  y = kiln__lower_cast(l, kiln__lower_cast(l, y, dtype), KILN_DTYPE_F64);
  return kiln__lower_cast(l, fn(l, OP2(sub, x, y), parameter), dtype);
}
static int loss_element(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                        loss_fn fn) {
  if (kiln__rows_reduction(node) < 0) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  const int x = kiln__lower_input(l, node, 0, map, KILN_DTYPE_NONE);
  const int y = kiln__lower_input(l, node, 1, map, KILN_DTYPE_NONE);
  return kiln__lower_cast(l, loss_at(l, node, x, y, fn), kiln__lower_result_dtype(node, 0));
}
int kiln__rows_sum_or_mean(kiln__lowering *l, const kiln_node *node, const kiln__rows *rows,
                           int sum, kiln_dtype quotient) {
  if (kiln__rows_reduction(node) != 1) return sum;
  const int n = kiln__lower_size(l, quotient, kiln__rows_length(l, node, rows));
  return kiln__lower_cast(l, OP2(div, kiln__lower_cast(l, sum, quotient), n),
                          kiln__rows_compute(node));
}
static void begin_loss(kiln__lowering *l, const kiln_node *node, kiln__rows *rows, loss_fn fn) {
  if (!kiln__lower_has_sizes(l, node, 1)) return;
  const kiln__lower_map *map = kiln__rows_open(l, node, rows);
  const int x = kiln__lower_value(l, kiln_node_input(node, 0), map);
  const int y = kiln__lower_value(l, kiln_node_input(node, 1), map);
  const int sum = kiln__rows_reduce(l, KILN_LOOP_sum, loss_at(l, node, x, y, fn), rows);
  kiln__rows_close(l, rows);
  rows->values[0] = kiln__rows_sum_or_mean(l, node, rows, sum, KILN_DTYPE_F64);
}
#define LOSS(name, fn)                                         \
  KILN__LOWER(name) { return loss_element(l, node, map, fn); } \
  ROWS_BEGIN(name) { begin_loss(l, node, rows, fn); }          \
  ROW_VALUES(name)
LOSS(mse_loss, squared)
LOSS(l1_loss, absolute)
LOSS(smooth_l1_loss, smooth_l1)
LOSS(huber_loss, huber)
