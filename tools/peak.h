/* peak.h: the most that a core of this machine does, measured: what kernels are compared with. */
#pragma once

#include <stddef.h>

/* Vectors of 4, 8 or 16 floats. */
typedef enum tool_isa { TOOL_V2, TOOL_AVX2, TOOL_AVX512 } tool_isa;
tool_isa tool_isa_of_cpu(void);

/* GFLOP/s of fused multiply-adds on f32 in registers alone. About 0.1 s. */
double tool_peak_fma(tool_isa isa);

/* GB/s that reading `bytes` again and again gives: those of the cache that holds them, or of
 * memory. At least 256. */
double tool_peak_read(size_t bytes);
