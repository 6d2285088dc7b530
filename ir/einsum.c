/* einsum.c: einsum of two tensors: what its node asks for, and its result's type. */
#include "ir/einsum.h"

#include <string.h>

#include "ir/shape.h"
#include "runtime/strides.h"

static bool read_equation(const kiln_ivalue *equation, const kiln_tensor_detail *a,
                          const kiln_tensor_detail *b, kiln_einsum *out) {
  if (!equation || equation->tag != KILN_TAG_STRING || !a || !b || a->rank < 0 || b->rank < 0)
    return false;
  kiln_status *status =
      kiln_einsum_read(kiln_string_view(equation->u.string), 2, (int[]){a->rank, b->rank}, out);
  const bool fits = !status;
  kiln_status_destroy(status);
  return fits;
}

bool kiln_einsum_of(const kiln_node *node, kiln_einsum *out, kiln_ir_value *operands[2]) {
  if (!kiln_node_is(node, KILN_OP_einsum)) return false;
  const kiln_node *list = kiln_node_input(node, 1)->node;
  if (!kiln_node_is(list, KILN_OP_prim_ListConstruct) || list->input_count != 2) return false;
  const kiln_tensor_detail *details[2];
  for (int i = 0; i < 2; i++) {
    operands[i] = kiln_node_input(list, i);
    details[i] = operands[i]->type->kind == KILN_TYPE_TENSOR ? operands[i]->type->detail : NULL;
  }
  return read_equation(kiln_ir_value_constant(kiln_node_input(node, 0)), details[0], details[1],
                       out);
}

/* -- The result -- */

/* The sizes of an operand by its labels' places; false: repeated ones differ. */
static bool place_sizes(const kiln_einsum *e, int i, const kiln_tensor_detail *t, kiln_dim *out) {
  bool seen[KILN_MAX_RANK] = {false};
  for (int p = 0; p < e->rank; p++) out[p] = 1;
  for (int d = 0; d < t->rank; d++) {
    const int p = e->places[i][d];
    if (seen[p] && out[p] != t->sizes[d]) return false;
    seen[p] = true;
    out[p] = t->sizes[d];
  }
  return true;
}

/* The kernel's product has the labels of both in front, then those of each, and ones at the end:
 * the result is a view of that. False: the sizes do not tell which are which. */
static bool einsum_strides(const kiln_shape_query *q, const kiln_einsum *e, const kiln_dim *a,
                           const kiln_dim *b, const kiln_dim *sizes, kiln_dim *out) {
  kiln_dim full[KILN_MAX_RANK], strides[KILN_MAX_RANK], within = 1;
  bool numbers = true, ones = false;
  for (int p = 0; p < e->rank; p++) {
    full[p] = p < e->out_rank ? sizes[p] : 1;
    numbers &= kiln_dim_is_number(full[p]);
    ones |= p < e->out_rank && full[p] == 1;
    if (full[p] != 1 && !kiln__shape_is_not_one(q->dims, full[p])) return false;
    if (a[p] != b[p] && a[p] != 1 && b[p] != 1) return false;
  }
  for (int role = 0; role < 4; role++) { /* from the innermost outwards */
    for (int p = e->rank - 1; p >= 0; p--) {
      const int own = full[p] == 1 ? 0 : a[p] == 1 ? 1 : b[p] == 1 ? 2 : 3;
      if (own != role) continue;
      strides[p] = within;
      if (full[p] != 0) within = kiln_dim_product(q->dims, within, full[p]);
    }
  }
  if (e->rank == e->out_rank || (!numbers && !ones)) {
    memcpy(out, strides, sizeof *out * (size_t)e->out_rank);
    return true;
  }
  const kiln_strided product = {e->rank, full, strides};
  return numbers && kiln_strides_view(&product, e->out_rank, sizes, out);
}

/* einsum(equation, [a, b], path): of floats of one dtype. */
bool kiln__shape_einsum(kiln_shape_query *q) {
  const kiln_shape_list *list = q->lists[1];
  kiln_einsum e;
  kiln_dim a[KILN_MAX_RANK], b[KILN_MAX_RANK], sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  if (!list || !list->tensors || list->count != 2) return false;
  const kiln_tensor_detail *x = list->tensors[0], *y = list->tensors[1];
  if (!read_equation(q->constants[0], x, y, &e) || x->dtype != y->dtype ||
      !kiln_dtype_is_float((kiln_dtype)x->dtype))
    return false;
  if (!place_sizes(&e, 0, x, a) || !place_sizes(&e, 1, y, b)) return false;
  for (int p = 0; p < e.rank; p++) {
    if (!kiln__shape_broadcast_dim(q->dims, a[p], b[p], &sizes[p])) return false;
  }
  kiln_tensor_detail *out = kiln__shape_result(q, 0);
  out->dtype = x->dtype;
  const bool told = e.rank > e.out_rank && einsum_strides(q, &e, a, b, sizes, strides);
  kiln__shape_set(q, out, e.out_rank, sizes, told ? strides : NULL);
  return true;
}
