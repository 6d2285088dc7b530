/* onednn.c: oneDNN's tensors (torch.utils.mkldnn) are read as plain ones: what is put into that
 * layout is a copy, and the layers on it are the usual ones with their arguments in another order.
 */
#include "runtime/kernels/recipe.h"

#define SELF kiln_arg_tensor(args, 0)

/* self, dtype: in row-major order, in new memory */
KILN_RECIPE(to_mkldnn) {
  const kiln_dtype dtype = kiln_tensor_dtype(SELF), to = kiln__arg_dtype_or(args, 1, dtype);
  if (!kiln_dtype_is_float(dtype) || !kiln_dtype_is_float(to)) {
    KILN_RECIPE_FAIL(r, "dense_to_mkldnn expects float, bfloat16 or half tensor input");
    return;
  }
  kiln_tensor *t = to == dtype ? SELF : kiln__recipe_to(r, SELF, to);
  kiln__recipe_give(r, outs, t == SELF ? kiln__recipe_copy(r, t) : t);
}
/* self, and sizes that the layout would be chosen for */
KILN_RECIPE(mkldnn_reorder_weight) { kiln__recipe_give(r, outs, kiln__recipe_copy(r, SELF)); }
/* self, dtype, masked_grad: of a tensor that is dense */
KILN_RECIPE(to_dense) {
  const kiln_dtype dtype = kiln_tensor_dtype(SELF), to = kiln__arg_dtype_or(args, 1, dtype);
  kiln_tensor *t = to == dtype ? SELF : kiln__recipe_to(r, SELF, to);
  kiln__recipe_give(r, outs, t == SELF ? kiln__recipe_copy(r, t) : t);
}

static void convolve(kiln__recipe *r, const kiln_ivalue *args, int stride, int padding,
                     kiln_ivalue *outs) {
  kiln__recipe_give(r, outs,
                    KILN_COOK(r, convolution, args[0], args[1], args[2], args[stride],
                              args[padding], args[5], B(false), INTS(0), args[6]));
}
/* self, weight, bias, padding, stride, dilation, groups */
KILN_RECIPE(mkldnn_convolution) { convolve(r, args, 4, 3, outs); }
/* prim's has the stride first */
KILN_RECIPE(prim_mkldnn_convolution) { convolve(r, args, 3, 4, outs); }
