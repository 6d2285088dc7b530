/* take.c: elements by their place in row-major order, under masks, or clamped. */
#include <string.h>

#include "runtime/kernels/composite.h"

/* -- Elements by their place in row-major order -- */

KILN_COMPOSITE(take) {
  kiln_tensor *index = ARG(1), *at, *safe;
  const int64_t n = SELF->numel;
  if (kiln_tensor_dtype(index) != KILN_DTYPE_I64) {
    return FAIL(r, "take(): Expected a long tensor for index, but got %s",
                kiln_dtype_ir_name(kiln_tensor_dtype(index)));
  }
  const int64_t *from = kiln__composite_read(r, index, KILN_DTYPE_I64, &at);
  int64_t *to = kiln__composite_new(r, KILN_DTYPE_I64, 1, &index->numel, &safe);
  if (r->status) return NULL;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < index->numel && !kiln_budget_spent(&left, 1); i++) {
    if (from[i] < -n || from[i] >= n) {
      return FAIL(r, "out of range: tried to access index %lld on a tensor of %lld elements.",
                  (long long)from[i], (long long)n);
    }
    to[i] = from[i] < 0 ? from[i] + n : from[i];
  }
  kiln_tensor *flat = kiln__composite_flat(r, SELF);
  flat = KILN_STEP(r, index_select, T(flat), I(0), T(safe));
  return kiln__composite_reshape(r, flat, kiln_tensor_rank(index), kiln_tensor_sizes(index));
}
/* self, index, source, accumulate */
KILN_COMPOSITE(put) {
  kiln_tensor *index = ARG(1), *src = ARG(2);
  if (kiln_tensor_dtype(index) != KILN_DTYPE_I64) {
    FAIL(r, "put_(): Expected a long tensor for index, but got %s",
         kiln_dtype_ir_name(kiln_tensor_dtype(index)));
  } else if (kiln_tensor_dtype(src) != kiln_tensor_dtype(SELF)) {
    FAIL(r, "put_(): self and source expected to have the same dtype");
  } else if (src->numel != index->numel) {
    FAIL(r, "put_(): Expected source and index to have the same number of elements");
  }
  if (r->status) return NULL;
  kiln_tensor *flat = kiln__composite_flat(r, kiln__composite_copy(r, SELF));
  index = kiln__composite_flat(r, index);
  src = kiln__composite_flat(r, src);
  if (r->status) return NULL;
  const kiln_ivalue list = kiln__composite_tensors(r, 1, &index);
  flat = KILN_STEP(r, index_put, T(flat), list, T(src), args[3]);
  flat = kiln__composite_reshape(r, flat, kiln_tensor_rank(SELF), kiln_tensor_sizes(SELF));
  return kiln__composite_lay_like(r, flat, kiln_tensor_dtype(SELF), SELF);
}
/* `to` and the mask, of its sizes, are contiguous. */
static void scatter_masked(kiln__composite *r, kiln_tensor *to, kiln_tensor *mask,
                           kiln_tensor *src) {
  kiln_tensor *flags, *from;
  int64_t next = 0;
  const uint8_t *flag = kiln__composite_read(r, mask, KILN_DTYPE_BOOL, &flags);
  const char *data = kiln__composite_read(r, src, kiln__composite_dtype(src), &from);
  void *target = NULL;
  if (r->status || !kiln__composite_ok(r, kiln_tensor_writable_data(to, &target))) return;
  const size_t item = kiln_tensor_item_size(to);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < to->numel && !kiln_budget_spent(&left, 1); i++) {
    if (!flag[i]) continue;
    if (next == src->numel) {
      FAIL(r, "masked_scatter: Number of elements of source < number of ones in mask");
      return;
    }
    memcpy((char *)target + (size_t)i * item, data + (size_t)next++ * item, item);
  }
}
/* self, mask, source: elements of source where the mask holds, in row-major order. (Versions before
 * 2 went in the order of self's memory where self was written.) */
KILN_COMPOSITE(masked_scatter) {
  kiln_tensor *mask = ARG(1), *src = ARG(2);
  if (kiln_tensor_dtype(src) != kiln_tensor_dtype(SELF)) {
    return FAIL(r, "masked_scatter: expected self and source to have same dtypes but got %s and %s",
                kiln_dtype_ir_name(kiln_tensor_dtype(SELF)),
                kiln_dtype_ir_name(kiln_tensor_dtype(src)));
  }
  if (kiln_tensor_dtype(mask) != KILN_DTYPE_BOOL && kiln_tensor_dtype(mask) != KILN_DTYPE_U8) {
    return FAIL(r, "masked_scatter: expected BoolTensor or ByteTensor for mask");
  }
  const bool in_place = kiln__dest(outs) && kiln_kernel_is_in_place(r->call);
  const kiln_ivalue wide = kiln__composite_broadcast(r, SELF, in_place ? SELF : mask);
  kiln_tensor *to = KILN_STEP(r, expand, T(SELF), wide, B(false));
  mask = KILN_STEP(r, expand, T(mask), wide, B(false));
  to = kiln__composite_copy(r, to);
  if (to) scatter_masked(r, to, mask, src);
  return to;
}

/* -- Under a mask: indices are clamped into the dimensions, in their order -- */

static kiln_ivalue clamped_indices(kiln__composite *r, const kiln_tensor *t,
                                   const kiln_list *from) {
  const kiln_ivalue found = kiln__composite_tensors(r, 0, NULL);
  for (int64_t i = 0; !r->status && i < from->count; i++) {
    const int64_t n = kiln__composite_size(t, (int)(i < kiln_tensor_rank(t) ? i : 0));
    kiln_ivalue index = from->items[i];
    if (index.tag == KILN_TAG_TENSOR) index = T(KILN_STEP(r, clamp, index, I(-n), I(n - 1)));
    if (!r->status)
      (void)kiln__composite_ok(r, kiln_list_push(found.u.list, kiln_ivalue_retain(index)));
  }
  return found;
}
/* self, mask, indices, fill */
KILN_COMPOSITE(_unsafe_masked_index) {
  kiln_tensor *hidden = KILN_STEP(r, logical_not, args[1]);
  const kiln_ivalue indices = clamped_indices(r, SELF, kiln_arg_list(args, 2));
  kiln_tensor *found = KILN_STEP(r, index, args[0], indices);
  return KILN_STEP(r, masked_fill, T(found), T(hidden), args[3]);
}
/* self, mask, indices, values */
KILN_COMPOSITE(_unsafe_masked_index_put_accumulate) {
  kiln_tensor *hidden = KILN_STEP(r, logical_not, args[1]);
  kiln_tensor *added = KILN_STEP(r, masked_fill, args[3], T(hidden), I(0));
  if (SELF->numel == 0) return kiln__composite_copy(r, SELF);
  const kiln_ivalue indices = clamped_indices(r, SELF, kiln_arg_list(args, 2));
  return KILN_STEP(r, index_put, args[0], indices, T(added), B(true));
}
