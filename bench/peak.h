/* peak.h: the most floating point operations of a core: fused multiply-adds in registers alone. */
#pragma once

#include "base/env.h"
#include "bench/bench.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { PEAK_STEPS = 1 << 18, PEAK_CHAINS = 12 };
#define PEAK(name, isa, type, fma, set)                                                 \
  __attribute__((target(isa))) static double peak_##name(void) {                        \
    type acc[PEAK_CHAINS], x = set(0.999f), y = set(1e-3f);                             \
    for (int i = 0; i < PEAK_CHAINS; i++) acc[i] = set((float)i);                       \
    const double start = bench_seconds();                                               \
    for (int step = 0; step < PEAK_STEPS; step++) {                                     \
      _Pragma("GCC unroll 12") for (int i = 0; i < PEAK_CHAINS; i++) {                  \
        acc[i] = fma(acc[i], x, y);                                                     \
      }                                                                                 \
    }                                                                                   \
    const double time = bench_seconds() - start;                                        \
    for (int i = 0; i < PEAK_CHAINS; i++) __asm__ volatile("" ::"x"(acc[i]));           \
    return 2.0 * (double)(PEAK_STEPS * PEAK_CHAINS * (sizeof(type) / 4)) / time * 1e-9; \
  }
PEAK(avx512, "avx512f", __m512, _mm512_fmadd_ps, _mm512_set1_ps)
PEAK(avx2, "avx2,fma", __m256, _mm256_fmadd_ps, _mm256_set1_ps)
#define SSE_STEP(a, x, y) _mm_add_ps(_mm_mul_ps(a, x), y)
PEAK(v2, "sse4.2", __m128, SSE_STEP, _mm_set1_ps)
#endif

/* GFLOP/s, in float. */
static double bench_peak(kiln_isa isa) {
  double best = 0;
#if defined(__x86_64__)
  for (int i = 0; i < 20; i++) {
    const double rate = isa >= KILN_ISA_AVX512 ? peak_avx512()
                        : isa == KILN_ISA_AVX2 ? peak_avx2()
                                               : peak_v2();
    if (rate > best) best = rate;
  }
#endif
  return best;
}
