/* decompose_names.c: convolutions by the names of their kernels and of oneDNN: the usual ones, with
 * their arguments in another order (runtime/kernels/heavy/conv_named.c,
 * sparse/onednn.c). */
#include "ir/pass/network.h"

/* Of floats: of others the operator complains by its own name. */
#define RENAMED(name, op, ...)                                       \
  KILN__APART(name) {                                                \
    kiln__apart_where(m, n, 1, ASK(is_floating_point, BOOL, IN(0))); \
    GIVE(STEP(op, __VA_ARGS__));                                     \
    return true;                                                     \
  }
#define ONES_2 LIST(INT(1), INT(1))
#define ONES_3 LIST(INT(1), INT(1), INT(1))

/* self, weight, kernel_size, bias, stride, padding, dilation */
RENAMED(conv2d_of_size, conv2d, IN(0), IN(1), IN(3), IN(4), IN(5), ONES_2, INT(1))
RENAMED(conv3d_of_size, conv3d, IN(0), IN(1), IN(3), IN(4), IN(5), ONES_3, INT(1))
RENAMED(conv2d_dilated, conv2d, IN(0), IN(1), IN(3), IN(4), IN(5), IN(6), INT(1))
RENAMED(conv3d_dilated, conv3d, IN(0), IN(1), IN(3), IN(4), IN(5), IN(6), INT(1))
/* self, weight, kernel_size, bias, stride, padding, output_padding, dilation */
RENAMED(conv_transpose2d_of_size, conv_transpose2d_input, IN(0), IN(1), IN(3), IN(4), IN(5), IN(6),
        INT(1), IN(7))
RENAMED(conv_transpose3d_of_size, conv_transpose3d_input, IN(0), IN(1), IN(3), IN(4), IN(5), IN(6),
        INT(1), IN(7))

/* self, weight, bias, padding, stride, dilation, groups; prim's has the stride first */
RENAMED(mkldnn_convolution, convolution, IN(0), IN(1), IN(2), IN(4), IN(3), IN(5), BOOL(false),
        LIST(INT(0)), IN(6))
RENAMED(prim_mkldnn_convolution, convolution, IN(0), IN(1), IN(2), IN(3), IN(4), IN(5), BOOL(false),
        LIST(INT(0)), IN(6))

KILN__APART(prim_abs) {
  GIVE(STEP(abs, IN(0)));
  return true;
}
