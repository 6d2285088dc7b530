/* conv_named.c: convolutions under other names, their arguments in another order. */
#include "runtime/kernels/composite.h"

/* -- Convolution with its padding as a word -- */

KILN_KERNEL(_convolution_mode) {
  switch (kiln_tensor_rank(ARG(1))) {
    case 3: return KILN_BODY_OF(conv1d)(call, args, outs);
    case 4: return KILN_BODY_OF(conv2d)(call, args, outs);
    case 5: return KILN_BODY_OF(conv3d)(call, args, outs);
    default: return KILN_OP_FAIL("convolution expects a weight of 3 to 5 dimensions");
  }
}

/* -- Convolutions by other names -- */

/* self, weight, kernel_size, bias, stride, padding; the one that dilates: dilation */
#define PLAIN(name, dilated, conv)                                                         \
  KILN_COMPOSITE(name) {                                                                   \
    return KILN_STEP(r, conv, args[0], args[1], args[3], args[4], args[5], I(1), I(1));    \
  }                                                                                        \
  KILN_COMPOSITE(dilated) {                                                                \
    return KILN_STEP(r, conv, args[0], args[1], args[3], args[4], args[5], args[6], I(1)); \
  }
PLAIN(thnn_conv2d, slow_conv_dilated2d, conv2d)
PLAIN(slow_conv3d, slow_conv_dilated3d, conv3d)
/* self, weight, kernel_size, bias, stride, padding, output_padding, dilation */
#define TRANSPOSED(name, conv)                                                            \
  KILN_COMPOSITE(name) {                                                                  \
    return KILN_STEP(r, conv, args[0], args[1], args[3], args[4], args[5], args[6], I(1), \
                     args[7]);                                                            \
  }
TRANSPOSED(slow_conv_transpose2d, conv_transpose2d)
TRANSPOSED(slow_conv_transpose3d, conv_transpose3d)
/* self, weight [C, 1, ..], kernel_size, bias, stride, padding, dilation: a group a channel */
#define DEPTHWISE(name, conv)                                                       \
  KILN_COMPOSITE(name) {                                                            \
    return KILN_STEP(r, conv, args[0], args[1], args[3], args[4], args[5], args[6], \
                     I(kiln__composite_size(SELF, -1 - DIMS_##conv)));              \
  }
enum { DIMS_conv2d = 2, DIMS_conv3d = 3 };
DEPTHWISE(_conv_depthwise2d, conv2d)
DEPTHWISE(conv_depthwise3d, conv3d)
/* self [T, B, I], weight [K, I, O], bias [O], pad -> [T', B, O] */
KILN_COMPOSITE(conv_tbc) {
  if (kiln_tensor_rank(SELF) != 3 || kiln_tensor_rank(ARG(1)) != 3 ||
      kiln_tensor_rank(ARG(2)) != 1) {
    return FAIL(r,
                "Input must have 3 dims: time, batch, in_channel; weight tensor must have 3 dims: "
                "kernel_width, in_channels, out_channels; bias must be 1-D");
  }
  kiln_tensor *x = KILN_STEP(r, permute, args[0], INTS(1, 2, 0));
  kiln_tensor *w = KILN_STEP(r, permute, args[1], INTS(2, 1, 0));
  if (kiln__composite_size(x, 1) == 0 && kiln__composite_size(w, 1) == 0) { /* the bias alone */
    x = KILN_STEP(r, constant_pad_nd, T(x), INTS(0, 0, 0, 1), I(0));
    w = KILN_STEP(r, constant_pad_nd, T(w), INTS(0, 0, 0, 1), I(0));
  }
  kiln_tensor *y = KILN_STEP(r, conv1d, T(x), T(w), args[2], I(1), args[3], I(1), I(1));
  return kiln__composite_copy(r, KILN_STEP(r, permute, T(y), INTS(2, 0, 1)));
}
