/* lower_product.c: matrix products as contractions: an element of the result is a reduce loop.
 *
 * Both factors are inputs of the group, or views of them: an element of theirs is read once for
 * each row or column of the other, so that what they are computed from would be computed as often.
 */
#include "codegen/lower.h"

#define OP2(name, a, b) kiln__lower_op(l, KILN_LOOP_##name, a, b, -1)

/* What is summed: dimension `a_inner` of one factor at map `a`, `b_inner` of the other at `b`. */
static int contract(kiln__lowering *l, const kiln_node *node, int first, kiln__lower_map *a,
                    int a_inner, kiln__lower_map *b, int b_inner) {
  const kiln_ir_value *x = kiln_node_input(node, first), *y = kiln_node_input(node, first + 1);
  const kiln__lower_sizes xs = kiln__lower_sizes_of(l, x), ys = kiln__lower_sizes_of(l, y);
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  if (l->nest->open > 0) return kiln__lower_refuse(l, KILN_REASON_read_again);
  if (kiln_loop_class(dtype) != KILN_LOOP_CLASS_F ||
      kiln__lower_input_dtype(node, first) != dtype ||
      kiln__lower_input_dtype(node, first + 1) != dtype)
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (xs.sizes[a_inner] != ys.sizes[b_inner] || !kiln_dim_is_known(xs.sizes[a_inner]))
    return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  if (xs.sizes[a_inner] == 0) return kiln__lower_refuse(l, KILN_REASON_zero_size);
  const int loop = kiln__lower_open(l, KILN_LOOP_reduce, xs.sizes[a_inner]);
  if (loop < 0) return -1;
  if (xs.sizes[a_inner] != 1) a->dims[a_inner] = b->dims[b_inner] = kiln__lower_along(loop);
  const int left = kiln__lower_value(l, x, a), right = kiln__lower_value(l, y, b);
  if (left < 0 || right < 0) return -1;
  const int sum = kiln_loop_reduce(l->fn, l->nest, KILN_LOOP_contract, left, right, 1);
  kiln__lower_close(l);
  return sum;
}

/* Its tensor inputs have a rank that is known. */
static bool ranks_of(const kiln_node *node, int first, int *a, int *b) {
  if (!kiln__lower_is_tensor(node, first) || !kiln__lower_is_tensor(node, first + 1)) return false;
  const kiln_tensor_detail *x = kiln_node_input(node, first)->type->detail;
  const kiln_tensor_detail *y = kiln_node_input(node, first + 1)->type->detail;
  *a = x ? x->rank : -1;
  *b = y ? y->rank : -1;
  return *a >= 2 && *b >= 2;
}

/* linear(x (.., k), w (n, k), b (n)) */
KILN__LOWER(linear) {
  int a_rank, b_rank;
  if (!ranks_of(node, 0, &a_rank, &b_rank) || b_rank != 2 || map->rank != a_rank)
    return kiln__lower_refuse(l, KILN_REASON_rank);
  kiln__lower_map *a = kiln__lower_copied(l, map), *b = kiln__lower_new_map(l, 2);
  b->dims[0] = map->dims[map->rank - 1];
  const int sum = contract(l, node, 0, a, a_rank - 1, b, 1);
  if (kiln__lower_is_none(node, 2)) return sum;
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  if (kiln__lower_input_dtype(node, 2) != dtype) return kiln__lower_refuse(l, KILN_REASON_dtype);
  return OP2(add, sum, kiln__lower_input(l, node, 2, map, dtype));
}

/* The batch dimensions of a factor that is broadcast; false, with a reason: what [s0] and [2] are
 * next the operator itself must see. */
static bool broadcast(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                      kiln__lower_map *out) {
  const kiln_tensor_detail *t = kiln_node_input(node, i)->type->detail;
  const kiln_tensor_detail *result = node->outputs[0]->type->detail;
  for (int d = 0; d < out->rank - 2; d++) {
    const int at = map->rank - out->rank + d;
    if (t->sizes[d] == 1) continue;
    if (t->sizes[d] != result->sizes[at])
      return kiln__lower_refuse(l, KILN_REASON_types_unknown) == 0;
    out->dims[d] = map->dims[at];
  }
  return true;
}

/* Factors (.., m, k) and (.., k, n), the first of which is that input. */
static int product(kiln__lowering *l, const kiln_node *node, int first,
                   const kiln__lower_map *map) {
  int a_rank, b_rank;
  if (!ranks_of(node, first, &a_rank, &b_rank) || a_rank > map->rank || b_rank > map->rank)
    return kiln__lower_refuse(l, KILN_REASON_rank);
  kiln__lower_map *a = kiln__lower_new_map(l, a_rank), *b = kiln__lower_new_map(l, b_rank);
  if (!broadcast(l, node, first, map, a) || !broadcast(l, node, first + 1, map, b)) return -1;
  a->dims[a_rank - 2] = map->dims[map->rank - 2];
  b->dims[b_rank - 1] = map->dims[map->rank - 1];
  return contract(l, node, first, a, a_rank - 1, b, b_rank - 2);
}
KILN__LOWER(matmul) { return product(l, node, 0, map); }

/* beta self + alpha product; beta of 0 reads nothing of self. */
KILN__LOWER(addmm) {
  const kiln_dtype dtype = kiln__lower_result_dtype(node, 0);
  double beta, alpha;
  if (!kiln__lower_number(l, node, 3, &beta) || !kiln__lower_number(l, node, 4, &alpha)) return -1;
  int sum = product(l, node, 1, map);
  if (alpha != 1) sum = OP2(mul, sum, kiln__lower_const(l, dtype, alpha));
  if (beta == 0 || sum < 0) return sum;
  if (kiln__lower_input_dtype(node, 0) != dtype) return kiln__lower_refuse(l, KILN_REASON_dtype);
  int more = kiln__lower_input(l, node, 0, map, dtype);
  if (beta != 1) more = OP2(mul, more, kiln__lower_const(l, dtype, beta));
  return OP2(add, sum, more);
}
