/* peak.h: the most that a core of this machine does, measured: what kernels are compared with. */
#pragma once

#include <stddef.h>

/* Vectors of 4, 8 or 16 floats. */
typedef enum tool_isa { TOOL_V2, TOOL_AVX2, TOOL_AVX512 } tool_isa;
tool_isa tool_isa_of_cpu(void);

/* GFLOP/s of fused multiply-adds on f32 in registers alone, the most of so many runs of about half
 * a millisecond. A core's clock changes with what it and its neighbours do, by a third within
 * seconds: shares of it want it measured in turns with what is compared. */
enum { TOOL_PEAK_RUNS = 50 };
double tool_peak_fma(tool_isa isa, int runs);

/* GB/s that reading `bytes` again and again gives: those of the cache that holds them, or of
 * memory. At least 256. */
double tool_peak_read(size_t bytes);
