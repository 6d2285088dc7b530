/* shape_index.c: the shape function of advanced indexing, x[:, i, j]. */
#include <string.h>

#include "ir/shape.h"

/* Sizes that are broadcast with those of one tensor more. */
static bool broadcast_sizes(const kiln_shape_query *q, const kiln_tensor_detail *t, int64_t *sizes,
                            int *rank) {
  if (t->rank < 0) return false;
  if (t->rank > *rank) {
    memmove(sizes + t->rank - *rank, sizes, sizeof *sizes * (size_t)*rank);
    for (int d = 0; d < t->rank - *rank; d++) sizes[d] = 1;
    *rank = t->rank;
  }
  int64_t *own = sizes + *rank - t->rank;
  for (int d = 0; d < t->rank; d++)
    if (!kiln__shape_broadcast_dim(q->dims, own[d], t->sizes[d], &own[d])) return false;
  return true;
}
static bool has_rows(const kiln_shape_query *q, const kiln_tensor_detail *t) {
  return t->has_strides && kiln__shape_has_rows(q, t->rank, t->sizes, t->strides);
}
/* Where what is indexed and the indices lie along the dimensions of the result, as PyTorch iterates
 * over them: x stays where it is along those that the indices bring. */
static void lay_indexed(kiln_shape_query *q, const kiln_tensor_detail *self,
                        const kiln_shape_list *list, int first, int ranks) {
  kiln_tensor_detail *out = &q->outs[0],
                     *seen = KILN_NEW_ARRAY(q->arena, kiln_tensor_detail, self->rank + 1);
  const kiln_tensor_detail *operands[KILN_MAX_RANK + 1];
  const int rank = out->rank;
  const int64_t *sizes = out->sizes;
  int count = 0;
  bool rows = has_rows(q, self), wide = true;
  for (int d = 0; d < list->count; d++)
    rows = rows && (list->known[d] || has_rows(q, list->tensors[d]));
  if (rows) kiln__shape_row_major(q, out, rank, sizes);
  for (int i = 0; i < rank; i++)
    wide = wide && sizes[i] != 0 && kiln__shape_is_not_one(q->dims, sizes[i]);
  if (rows || !wide) return; /* strides of dimensions of one element are of their own */
  for (int d = -1; d < list->count; d++) {
    const kiln_tensor_detail *from = d < 0 ? self : list->known[d] ? NULL : list->tensors[d];
    int64_t strides[KILN_MAX_RANK], own_sizes[KILN_MAX_RANK];
    if (!from) continue;
    for (int i = 0, at = 0; i < rank; i++) {
      const bool placed = i >= first && i < first + ranks;
      const int own = i - first - (ranks - from->rank);
      while (d < 0 && !placed && at < list->count && !list->known[at]) at++;
      if (d < 0)
        strides[i] = placed ? 0 : from->has_strides ? from->strides[at++] : KILN_DIM_UNKNOWN;
      else if (!placed || own < 0 || from->sizes[own] != sizes[i])
        strides[i] = !placed || own < 0 || from->sizes[own] == 1 ? 0 : KILN_DIM_UNKNOWN;
      else
        strides[i] = from->has_strides ? from->strides[own] : KILN_DIM_UNKNOWN;
    }
    for (int i = 0; i < rank; i++) { /* of the indices 1, where it shows */
      const bool one = d >= 0 && (i < first || i >= first + ranks) && kiln_dim_is_number(sizes[i]);
      own_sizes[i] = one ? 1 : sizes[i];
    }
    seen[count] = *from;
    kiln__shape_set(q, &seen[count], rank, own_sizes, strides);
    operands[count] = &seen[count];
    count++;
  }
  (void)kiln__shape_broadcast(q, out, operands, count);
}
/* index(self, indices) where all that are given are tensors of integers: their dimensions instead
 * of self's, in front where others stand between. */
bool kiln__shape_index(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  const kiln_shape_list *list = q->arg_count > 1 ? q->lists[1] : NULL;
  int64_t sizes[KILN_MAX_RANK], common[KILN_MAX_RANK];
  int first = -1, last = -1, count = 0, rank = 0, ranks = 0;
  if (!self || !list || !list->tensors || list->count > self->rank) return false;
  for (int i = 0; i < list->count; i++) {
    if (list->known[i]) continue;
    const kiln_tensor_detail *index = list->tensors[i];
    const bool counts = index && (index->dtype == KILN_DTYPE_I64 || index->dtype == KILN_DTYPE_I32);
    if (!counts || !broadcast_sizes(q, index, common, &ranks)) return false;
    if (first < 0) first = i;
    last = i;
    count++;
  }
  if (count == 0 || self->rank - count + ranks > KILN_MAX_RANK) return false;
  if (last - first != count - 1) first = 0; /* in front, where something stands between */
  for (int d = 0; d < self->rank; d++) {
    for (int k = 0; d == first && k < ranks; k++) sizes[rank++] = common[k];
    if (d >= list->count || list->known[d]) sizes[rank++] = self->sizes[d];
  }
  (void)kiln__shape_give(q, 0, self->dtype, rank, sizes, false);
  lay_indexed(q, self, list, first, ranks);
  return true;
}
