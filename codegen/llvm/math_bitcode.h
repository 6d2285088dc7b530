/* math_bitcode.h: runtime/math as LLVM bitcode, embedded by embed_math.py at build time. */
#pragma once

#include <stddef.h>

extern const unsigned char kiln__math_bitcode_v2[], kiln__math_bitcode_avx2[],
    kiln__math_bitcode_avx512[], kiln__math_bitcode_nvptx[];
extern const size_t kiln__math_bitcode_v2_size, kiln__math_bitcode_avx2_size,
    kiln__math_bitcode_avx512_size, kiln__math_bitcode_nvptx_size;
