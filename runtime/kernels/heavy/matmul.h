/* matmul.h: the reference of the matrix product, for matmul.c and its tests. */
#pragma once

#include "runtime/kernels/support.h"

/* The product of kiln_gemm_args in plain loops: F32 (summed in double), F64, I64 (wraps around) or
 * C128. */
void kiln__matmul_reference(kiln_dtype dtype, const kiln_gemm_args *args);
