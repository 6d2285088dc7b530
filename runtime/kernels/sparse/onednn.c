/* onednn.c: oneDNN's tensors (torch.utils.mkldnn) are read as plain ones: what is put into that
 * layout is a copy, and the layers on it are the usual ones with their arguments in another order.
 */
#include "runtime/kernels/composite.h"

/* self, dtype: in row-major order, in new memory */
KILN_COMPOSITE(to_mkldnn) {
  const kiln_dtype dtype = kiln_tensor_dtype(SELF), to = kiln__arg_dtype_or(args, 1, dtype);
  if (!kiln_dtype_is_float(dtype) || !kiln_dtype_is_float(to)) {
    return FAIL(r, "dense_to_mkldnn expects float, bfloat16 or half tensor input");
  }
  kiln_tensor *t = to == dtype ? SELF : kiln__composite_to(r, SELF, to);
  return t == SELF ? kiln__composite_copy(r, t) : t;
}
/* self, and sizes that the layout would be chosen for */
KILN_COMPOSITE(mkldnn_reorder_weight) { return kiln__composite_copy(r, SELF); }
/* self, dtype, masked_grad: of a tensor that is dense */
KILN_COMPOSITE(to_dense) {
  const kiln_dtype dtype = kiln_tensor_dtype(SELF), to = kiln__arg_dtype_or(args, 1, dtype);
  kiln_tensor *t = to == dtype ? SELF : kiln__composite_to(r, SELF, to);
  return t == SELF ? kiln__composite_copy(r, t) : t;
}

static kiln_tensor *convolve(kiln__composite *r, const kiln_ivalue *args, int stride, int padding) {
  return KILN_STEP(r, convolution, args[0], args[1], args[2], args[stride], args[padding], args[5],
                   B(false), INTS(0), args[6]);
}
/* self, weight, bias, padding, stride, dilation, groups */
KILN_COMPOSITE(mkldnn_convolution) { return convolve(r, args, 4, 3); }
/* prim's has the stride first */
KILN_COMPOSITE(prim_mkldnn_convolution) { return convolve(r, args, 3, 4); }
