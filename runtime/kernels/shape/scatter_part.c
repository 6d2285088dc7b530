/* scatter_part.c: copies of a tensor of which a part is written. */
#include <string.h>

#include "runtime/kernels/composite.h"

/* `copy` of self, whose part that `view` makes is written with args[1]. */
static kiln_tensor *scatter_into(kiln__composite *r, kiln_tensor *copy, const kiln_ivalue *args,
                                 kiln_kernel_body view, const kiln_ivalue *view_args, int count) {
  kiln_ivalue own[6];
  kiln_tensor *src = ARG(1);
  if (!copy) return NULL;
  own[0] = T(copy);
  memcpy(own + 1, view_args, sizeof *own * (size_t)count);
  kiln_tensor *part = kiln__composite_step(r, view, count + 1, own);
  if (!part) return NULL;
  if (!kiln_tensor_same_sizes(part, src)) {
    return FAIL(
        r, "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
        kiln__sizes_of(src).text, kiln__sizes_of(part).text);
  }
  (void)KILN_STEP(r, copy_, T(part), T(src), B(false));
  return copy;
}
KILN_COMPOSITE(select_scatter) {
  return scatter_into(r, KILN_STEP(r, clone, T(SELF), NONE), args, KILN_BODY_OF(select), args + 2,
                      2);
}
KILN_COMPOSITE(slice_scatter) {
  return scatter_into(r, KILN_STEP(r, clone, T(SELF), NONE), args, KILN_BODY_OF(slice), args + 2,
                      4);
}
KILN_COMPOSITE(diagonal_scatter) {
  return scatter_into(r, KILN_STEP(r, clone, T(SELF), NONE), args, KILN_BODY_OF(diagonal), args + 2,
                      3);
}
/* A copy of t within one of its storage, where as_strided finds all at the places it has in t. */
static kiln_tensor *copy_in_place(kiln__composite *r, kiln_tensor *t) {
  const int rank = kiln_tensor_rank(t);
  const int64_t *sizes = kiln_tensor_sizes(t), *strides = kiln_tensor_strides(t);
  bool in_place = !kiln_tensor_is_undefined(t); /* and each element has a place of its own */
  for (int d = 0; d < rank; d++) in_place = in_place && (sizes[d] <= 1 || strides[d] != 0);
  if (!in_place) return kiln__composite_copy(r, t);
  const int64_t whole = (int64_t)(t->storage->bytes / kiln_tensor_item_size(t));
  kiln_tensor *all = KILN_STEP(r, as_strided, T(t), INTS(whole), INTS(1), I(0));
  return KILN_STEP(r, as_strided, T(kiln__composite_copy(r, all)),
                   kiln__composite_ints(r, rank, sizes), kiln__composite_ints(r, rank, strides),
                   I(t->offset));
}
KILN_COMPOSITE(as_strided_scatter) {
  return scatter_into(r, copy_in_place(r, SELF), args, KILN_BODY_OF(as_strided), args + 2, 3);
}
