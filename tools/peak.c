/* peak.c: see peak.h. */
#include "tools/peak.h"

#include <immintrin.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

tool_isa tool_isa_of_cpu(void) {
  if (__builtin_cpu_supports("avx512f")) return TOOL_AVX512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? TOOL_AVX2 : TOOL_V2;
}

/* -- Products -- */

enum { STEPS = 1 << 18, CHAINS = 12 };
#define PEAK(name, isa, type, fma, set)                                                         \
  __attribute__((target(isa))) static double peak_##name(void) {                                \
    type acc[CHAINS], x = set(0.999f), y = set(1e-3f);                                          \
    for (int i = 0; i < CHAINS; i++) acc[i] = set((float)i);                                    \
    const double start = now_ms();                                                              \
    for (int step = 0; step < STEPS; step++) {                                                  \
      _Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) { acc[i] = fma(acc[i], x, y); } \
    }                                                                                           \
    const double ms = now_ms() - start;                                                         \
    for (int i = 0; i < CHAINS; i++) __asm__ volatile("" ::"x"(acc[i]));                        \
    return 2.0 * (double)(STEPS * CHAINS * (sizeof(type) / 4)) / ms * 1e-6;                     \
  }
PEAK(avx512, "avx512f", __m512, _mm512_fmadd_ps, _mm512_set1_ps)
PEAK(avx2, "avx2,fma", __m256, _mm256_fmadd_ps, _mm256_set1_ps)
#define SSE_STEP(a, x, y) _mm_add_ps(_mm_mul_ps(a, x), y)
PEAK(v2, "sse4.2", __m128, SSE_STEP, _mm_set1_ps)

double tool_peak_fma(tool_isa isa, int runs) {
  double best = 0;
  for (int i = 0; i < runs; i++) {
    const double rate = isa == TOOL_AVX512 ? peak_avx512()
                        : isa == TOOL_AVX2 ? peak_avx2()
                                           : peak_v2();
    if (rate > best) best = rate;
  }
  return best;
}

/* -- Reading -- */

enum { RUNS = 20, STEP = 256, LEAST_TURN = 1 << 22 };

#define READ(name, isa, type, load, both)                                                   \
  __attribute__((target(isa))) static void read_##name(const char *from, size_t bytes) {    \
    type acc[STEP / 32] = {0};                                                              \
    for (size_t at = 0; at < bytes; at += STEP) {                                           \
      _Pragma("GCC unroll 8") for (size_t i = 0; i < STEP / sizeof(type); i++) {            \
        acc[i % (STEP / 32)] =                                                              \
            both(acc[i % (STEP / 32)], load((const void *)(from + at + i * sizeof(type)))); \
      }                                                                                     \
    }                                                                                       \
    for (int i = 0; i < STEP / 32; i++) __asm__ volatile("" ::"x"(acc[i]));                 \
  }
READ(avx2, "avx2", __m256i, _mm256_load_si256, _mm256_or_si256)
READ(avx512, "avx512f", __m512i, _mm512_load_si512, _mm512_or_si512)
READ(v2, "sse4.2", __m128i, _mm_load_si128, _mm_or_si128)

double tool_peak_read(size_t bytes) {
  bytes = bytes / STEP * STEP;
  char *from = aligned_alloc(64, bytes);
  if (!from) return 0;
  memset(from, 1, bytes);
  static void (*const reads[])(const char *, size_t) = {
      [TOOL_V2] = read_v2, [TOOL_AVX2] = read_avx2, [TOOL_AVX512] = read_avx512};
  void (*const read)(const char *, size_t) = reads[tool_isa_of_cpu()];
  const int turns = (int)(LEAST_TURN / bytes) + 1;
  double best = 0;
  for (int run = 0; run < RUNS; run++) {
    const double start = now_ms();
    for (int i = 0; i < turns; i++) read(from, bytes);
    const double rate = (double)turns * (double)bytes / (now_ms() - start) * 1e-6;
    if (rate > best) best = rate;
  }
  free(from);
  return best;
}
