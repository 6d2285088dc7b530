/* softmax_masked.c: softmax of rows that a mask hides, wholly or in part. */
#include <math.h>

#include "runtime/kernels/composite.h"

/* self, dim, dtype: rows in which all is masked give zeros. */
KILN_COMPOSITE(_safe_softmax) {
  kiln_tensor *t = SELF;
  const kiln_ivalue dim = args[1], dtype = args[2];
  kiln_tensor *y = KILN_STEP(r, softmax, T(t), dim, dtype);
  const kiln_ivalue low = F(-INFINITY);
  kiln_tensor *masked = KILN_STEP(r, eq, T(t), low);
  if (kiln__composite_numel(t) == 0) return y;
  kiln_tensor *lost = KILN_STEP(r, amin, T(masked), INTS(dim.u.i), B(true));
  return KILN_STEP(r, masked_fill, T(y), T(lost), F(0));
}
/* self, mask (true: left out), dim, mask_type: 0 (L, L), 1 (B, L), 2 as self; rows in which all is
 * masked give NaN. */
KILN_COMPOSITE(_masked_softmax) {
  kiln_tensor *mask = ARG(1);
  const int64_t kind = kiln_arg_int_or(args, 3, 2);
  if (kiln_tensor_dtype(mask) != KILN_DTYPE_BOOL) {
    return FAIL(r, "Mask should be a boolean tensor");
  }
  if (kind == 1 && kiln_tensor_rank(mask) == 2 && kiln_tensor_rank(SELF) == 4) {
    const int64_t *sizes = kiln_tensor_sizes(mask), wide[4] = {sizes[0], 1, 1, sizes[1]};
    mask = kiln__composite_reshape(r, mask, 4, wide);
  }
  kiln_tensor *t = KILN_STEP(r, masked_fill, args[0], T(mask), F(-INFINITY));
  if (t && (kiln_tensor_rank(t) != kiln_tensor_rank(SELF) || t->numel != SELF->numel)) {
    FAIL(r, "Mask shape should match input. mask: %d dimensions", kiln_tensor_rank(mask));
  }
  return KILN_STEP(r, softmax, T(t), I(kiln_arg_int_or(args, 2, -1)), NONE);
}
