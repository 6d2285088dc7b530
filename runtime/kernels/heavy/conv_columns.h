/* conv_columns.h: transposed convolutions as a matrix product and sums (conv_columns.c). */
#pragma once

#include "runtime/kernels/heavy/conv.h"
#include "runtime/kernels/nn/nn.h"

/* Of the problem as conv.c sets it, whose axes have the transposed convolution's stride, padding
 * and dilation: whether it gains, elements of so many bytes. */
bool kiln__conv_has_columns(const kiln_conv *p, size_t item);
/* All of it, in nn->dtype, which is F32 or F64. */
kiln_status *kiln__conv_by_columns(kiln__nn *nn, const kiln_conv *p) KILN_MUST_USE;
