/* complex_math.h: kernels of several families for complex numbers, where these go another way. */
#ifndef KILN_RUNTIME_KERNELS_POINTWISE_COMPLEX_MATH_H
#define KILN_RUNTIME_KERNELS_POINTWISE_COMPLEX_MATH_H

#include "runtime/kernels/support.h"

/* The operator's own arguments and results. */
#define KILN_COMPLEX_KERNELS(X) \
  X(nan_to_num)                 \
  X(l1_loss)                    \
  X(logaddexp)                  \
  X(logsumexp)                  \
  X(product_sum)
#define KILN_COMPLEX_DECLARE(name)                                                               \
  kiln_status *kiln__complex_##name(kiln_call *call, const kiln_ivalue *args, kiln_ivalue *outs) \
      KILN_MUST_USE;
/* product_sum: base * beta + a @ b * alpha (addmm, baddbmm, addmv). */
KILN_COMPLEX_KERNELS(KILN_COMPLEX_DECLARE)

static inline bool kiln__is_complex(const kiln_tensor *t) {
  return kiln_dtype_is_complex(kiln_tensor_dtype(t));
}

#endif
