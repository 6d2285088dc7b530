/* shape_format.c: results whose memory format is that of an argument (op.h, FORMAT). What decides
 * of numbers is in runtime/strides.h; of symbols it is proved here, or else the strides are not
 * known.
 */
#include <string.h>

#include "ir/shape.h"
#include "runtime/strides.h"

/* a <= b for certain; KILN_YES or KILN_OPEN. */
static bool is_at_most(const kiln_shape_query *q, kiln_sum a, kiln_sum b) {
  return a.known && b.known && kiln_sum_is_natural(q->dims, kiln_sum_minus(b, a));
}
/* kiln_strides_suggest_channels_last of expressions. */
static kiln_truth suggests_last(const kiln_shape_query *q, const kiln_tensor_detail *t) {
  if (t->rank == 0 || !t->has_strides) return KILN_OPEN;
  if (kiln__shape_static(t->rank, t->sizes) && kiln__shape_static(t->rank, t->strides)) {
    const kiln_strided numbers = {t->rank, t->sizes, t->strides};
    return kiln_strides_suggest_channels_last(&numbers) ? KILN_YES : KILN_NO;
  }
  const kiln_sum one = kiln_sum_number(1);
  kiln_sum before = one; /* strides are no less than this */
  bool certain = true;
  for (int k = 0, d = 1; k < t->rank; k++, d = d == 1 ? t->rank - 1 : d == 2 ? 0 : d - 1) {
    const kiln_sum stride = kiln_sum_of(q->dims, t->strides[d]);
    if (t->rank == 3 && d == 0) { /* (N, C, L) is (N, C, 1, L): less than a row's is no batch's */
      const kiln_sum row =
          kiln_sum_of(q->dims, kiln_dim_product(q->dims, t->strides[2], t->sizes[2]));
      certain = certain && is_at_most(q, before, row);
      before = row;
    }
    if (t->sizes[d] == 0 || is_at_most(q, kiln_sum_plus(stride, one), before)) return KILN_NO;
    certain = certain && is_at_most(q, before, stride) &&
              is_at_most(q, one, kiln_sum_of(q->dims, t->sizes[d]));
    before = kiln_sum_of(q->dims, kiln_dim_product(q->dims, t->strides[d], t->sizes[d]));
  }
  /* Of one element but for the batch it is none. */
  return certain && kiln__shape_is_not_one(q->dims, t->sizes[1]) ? KILN_YES : KILN_OPEN;
}

kiln_truth kiln__shape_suggests_last(const kiln_shape_query *q, const kiln_tensor_detail *t) {
  const kiln_truth found = suggests_last(q, t);
  if (found != KILN_OPEN || !t->has_strides) return found;
  const kiln_sum row = kiln_sum_of(q->dims, t->strides[t->rank - 1]);
  const kiln_sum plane = kiln_sum_of(q->dims, t->strides[1]);
  if (row.known && plane.known)
    kiln_dims_like(q->dims, kiln_sum_plus(row, kiln_sum_number(1)), plane);
  return KILN_OPEN;
}

/* Whether symbols may make it contiguous and channels last at once, or not, where that counts: of
 * one channel, or of one pixel. */
static bool may_be_both(const kiln_shape_query *q, kiln_format_from from,
                        const kiln_tensor_detail *self) {
  const bool counts =
      from == KILN_FORMAT_FROM_norm || (from == KILN_FORMAT_FROM_convolution && self->rank == 3);
  bool pixels = false;
  if (!counts || self->rank < 3 || kiln__shape_static(self->rank, self->sizes)) return false;
  for (int d = 2; d < self->rank; d++) pixels |= kiln__shape_is_not_one(q->dims, self->sizes[d]);
  return !pixels || !kiln__shape_is_not_one(q->dims, self->sizes[1]);
}

static kiln_truth wants_last(const kiln_shape_query *q, kiln_format_from from) {
  const bool convolves = from == KILN_FORMAT_FROM_convolution;
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  const kiln_tensor_detail *weight = convolves ? kiln__shape_ranked(q, 1) : NULL;
  if (!self || (convolves && !weight)) return KILN_OPEN;
  const int at = convolves ? kiln__shape_find(q, "transposed") : -1;
  bool transposed = false;
  const bool both = may_be_both(q, from, self);
  const bool contiguous = both ? convolves : kiln__shape_is_contiguous(q, self);
  const int asks = kiln_format_asks(from, self->rank, weight ? weight->rank : 0, contiguous);
  const kiln_truth of_self = asks & 1 ? kiln__shape_suggests_last(q, self) : KILN_NO;
  const kiln_truth of_weight = asks & 2 ? kiln__shape_suggests_last(q, weight) : KILN_NO;
  if (of_self == KILN_NO && of_weight == KILN_NO) return KILN_NO;
  if (both && of_self != KILN_NO && of_weight != KILN_YES) return KILN_OPEN;
  if (at >= 0 && !kiln__shape_bool(q, at, &transposed)) return KILN_OPEN;
  if (transposed) return KILN_NO;
  return of_self == KILN_YES || of_weight == KILN_YES ? KILN_YES : KILN_OPEN;
}

void kiln__shape_lay(kiln_shape_query *q, kiln_format_from from) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  const kiln_truth last = wants_last(q, from);
  if (last == KILN_NO || !self) return;
  for (int i = 0; i < q->op->kernel.out_count && i < KILN_MAX_OUTS; i++) {
    kiln_tensor_detail *out = &q->outs[i];
    kiln_dim sizes[KILN_MAX_RANK + 1] = {1}, strides[KILN_MAX_RANK + 1];
    if (out->rank < 0 || out->rank != self->rank || !out->has_strides) continue;
    const kiln_tensor_detail *weight =
        from == KILN_FORMAT_FROM_convolution ? kiln__shape_ranked(q, 1) : NULL;
    const int lone = weight && weight->rank == out->rank + 1;
    memcpy(sizes + lone, out->sizes, sizeof *sizes * (size_t)out->rank);
    if (last == KILN_YES)
      kiln_physical_dims(q->dims, KILN_PHYSICAL_CHANNELS_LAST, out->rank + lone, sizes, strides);
    kiln__shape_set(q, out, out->rank, sizes + lone, last == KILN_YES ? strides + lone : NULL);
  }
}
