/* fusion_rows.c: what may stand in a group with reductions.
 *
 * A kernel has one set of rows: its reductions go along the same dimensions of inputs of the same
 * sizes. What else is in the group has these sizes, or those without the reduced dimensions, or
 * broadcasts to them: softmax((x + b) * mask).sum(-1) is one group for x of (2, 8, 64), b of (64)
 * and mask of (2, 1, 64).
 *
 * The second of two products, softmax(q k^T) v, has as rows those of its first factor, and takes in
 * what stands between the two, and the first.
 *
 * Any other contraction is one of its kind in its group, without reductions, and what stands behind
 * it has its sizes: relu(linear(x, w) + b). What is before it stays outside: linear(relu(x), w)
 * would take relu of each element once for each column. */

#include "codegen/codegen.h"
#include "jit/fusion.h"

static bool broadcasts_to(const kiln_tensor_detail *t, const kiln_tensor_detail *space) {
  const int pad = space->rank - t->rank;
  bool fits = pad >= 0;
  for (int d = 0; fits && d < t->rank; d++)
    fits = t->sizes[d] == 1 || t->sizes[d] == space->sizes[pad + d];
  return fits;
}

/* The sizes of the rows: without what is reduced. */
static bool is_of_rows(const kiln_tensor_detail *t, const kiln_tensor_detail *space,
                       uint64_t mask) {
  int at = 0;
  for (int d = 0; d < space->rank; d++) {
    if (mask >> d & 1) continue;
    if (at >= t->rank || t->sizes[at] != space->sizes[d]) return false;
    at++;
  }
  return at == t->rank;
}

static bool stands_in(const kiln_tensor_detail *t, const kiln_tensor_detail *space, uint64_t mask) {
  return broadcasts_to(t, space) || is_of_rows(t, space, mask);
}

static bool reduction_fits(const kiln_fusion_rows *rows, const kiln_node *n, uint64_t mask) {
  const kiln_tensor_detail *space = kiln_node_input(n, 0)->type->detail;
  if (rows->product && !rows->chain) return false;
  if (rows->space) return kiln_tensor_detail_same_sizes(rows->space, space) && rows->mask == mask;
  for (int i = 0; i < rows->shape_count; i++)
    if (!stands_in(rows->shapes[i], space, mask)) return false;
  return !rows->many;
}

static kiln_reason product_fits(const kiln_fusion_rows *rows, const kiln_fusion_node *node) {
  const kiln_node *n = node->node;
  if (node->chain == KILN_FUSION_FIRST) {
    const bool fits =
        rows->chain && kiln_tensor_detail_same_sizes(rows->space, n->outputs[0]->type->detail);
    return fits ? KILN_REASON_none : KILN_REASON_product_by_kernel;
  }
  if (rows->space || rows->product) return KILN_REASON_rows_differ;
  for (int i = 0; i < rows->shape_count; i++)
    if (!broadcasts_to(rows->shapes[i], n->outputs[0]->type->detail))
      return KILN_REASON_product_repeated;
  return rows->many ? KILN_REASON_product_repeated : KILN_REASON_none;
}

kiln_reason kiln__fusion_rows_fit(const kiln_fusion_rows *rows, const kiln_fusion_node *node) {
  const kiln_node *n = node->node;
  uint64_t mask;
  if (kiln_codegen_contracts(n->op)) return product_fits(rows, node);
  if (kiln_codegen_reduces(n, &mask))
    return reduction_fits(rows, n, mask) ? KILN_REASON_none : KILN_REASON_rows_differ;
  for (int i = 0; rows->space && i < n->output_count; i++) {
    const kiln_tensor_detail *t = n->outputs[i]->type->detail;
    if (t && !stands_in(t, rows->space, rows->mask)) return KILN_REASON_rows_differ;
  }
  return KILN_REASON_none;
}

bool kiln__fusion_rows_again(const kiln_fusion_rows *rows, const kiln_node *n) {
  const kiln_tensor_detail *t = n->outputs[0]->type->detail;
  return rows->space && !rows->spreads && t && kiln_tensor_detail_same_sizes(rows->space, t);
}

bool kiln__fusion_drops_dims(const kiln_node *n) {
  uint64_t mask;
  const kiln_tensor_detail *t = n->outputs[0]->type->detail;
  return kiln_codegen_reduces(n, &mask) && t && t->rank < kiln_node_input(n, 0)->type->detail->rank;
}

/* Results without the dimensions that are reduced broadcast to the space, but to other dimensions
 * of it than those they are of: of x (3, 3), x + x.sum(1) has at [i, j] the sum of row j. */
static bool is_unclear(const kiln_node *n, const kiln_tensor_detail *space, uint64_t mask) {
  bool trailing = true, unclear = false;
  for (int d = 1; d < space->rank; d++) trailing &= (mask >> d & 1) <= (mask >> (d - 1) & 1);
  for (int i = 0; i < n->output_count; i++) {
    const kiln_tensor_detail *t = n->outputs[i]->type->detail;
    unclear |= t && t->rank > 0 && t->rank < space->rank && broadcasts_to(t, space);
  }
  return unclear && !trailing;
}

void kiln__fusion_rows_take(kiln_fusion_rows *rows, const kiln_fusion_node *node) {
  const kiln_node *n = node->node;
  uint64_t mask;
  kiln_factors of;
  if (node->chain == KILN_FUSION_SECOND && kiln_codegen_factors(n, &of)) {
    rows->chain = true;
    rows->space = of.values[0]->type->detail;
    rows->mask = UINT64_C(1) << (rows->space->rank - 1);
  }
  if (kiln_codegen_reduces(n, &mask)) {
    rows->space = kiln_node_input(n, 0)->type->detail;
    rows->mask = mask;
    rows->spreads |= kiln_tensor_detail_same_sizes(rows->space, n->outputs[0]->type->detail);
    for (int i = 0; i < rows->shape_count; i++) /* of what stands behind it */
      rows->spreads |= kiln_tensor_detail_same_sizes(rows->space, rows->shapes[i]);
    rows->unclear |= is_unclear(n, rows->space, mask);
  }
  rows->product |= kiln_codegen_contracts(n->op);
  rows->windows |= kiln_codegen_convolves(n->op) && !node->lies_last;
  for (int i = 0; i < n->output_count && !node->of_weights; i++) {
    const kiln_tensor_detail *t = n->outputs[i]->type->detail;
    bool known = !t;
    for (int k = 0; k < rows->shape_count && !known; k++)
      known = kiln_tensor_detail_same_sizes(rows->shapes[k], t);
    if (known) continue;
    rows->many |= rows->shape_count == KILN_FUSION_SHAPES;
    if (!rows->many) rows->shapes[rows->shape_count++] = t;
  }
}
