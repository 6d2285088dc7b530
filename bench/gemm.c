/* gemm.c: the speed of the core's matrix product: GFLOP/s and the fraction of the processor's FMA
 * peak, measured in the same run, for each shape. B lies as [k, n] or, like a layer's weight, as
 * [n, k].
 *
 *   taskset -c 0 build/bench/gemm [--isa v2|avx2|avx512] [--f64] [M N K]
 *
 * Medians of many calls on the same data, so B is in the cache where it fits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/peak.h"
#include "base/cpu.h"
#include "runtime/kernels/dispatch.h"

typedef struct shape {
  int64_t m, n, k;
} shape;
static const shape shapes[] = {
    {1, 1024, 1024},  {2, 1024, 1024},  {3, 1024, 1024},  {4, 1024, 1024},    {5, 1024, 1024},
    {6, 1024, 1024},  {7, 1024, 1024},  {8, 1024, 1024},  {12, 1024, 1024},   {16, 1024, 1024},
    {20, 1024, 1024}, {24, 1024, 1024}, {32, 1024, 1024}, {1, 1024, 256},     {16, 1024, 256},
    {128, 768, 768},  {128, 3072, 768}, {128, 768, 3072}, {512, 512, 512},    {1024, 1024, 1024},
    {64, 64, 64},     {197, 64, 197},   {197, 197, 64},   {1000, 1000, 1000},
};

typedef struct bench {
  const kiln_dispatch *dispatch;
  bool f64;
  int64_t l2_bytes;
} bench;

static void product(const bench *b, const kiln_gemm_args *g, void *scratch) {
  const kiln_gemm_plan plan = kiln_gemm_make_plan(g, b->f64 ? 8 : 4, b->l2_bytes);
  const kiln_gemm_args whole = kiln__gemm_planned(g, &plan);
  (b->f64 ? b->dispatch->gemm_f64 : b->dispatch->gemm_f32)(&whole, &plan, scratch);
}

static double gflops(const bench *b, shape s, bool transposed) {
  const size_t item = b->f64 ? 8 : 4;
  kiln_gemm_args g = {.m = s.m, .n = s.n, .k = s.k, .alpha = 1};
  g.a_row = s.k, g.a_col = 1, g.c_row = s.n, g.c_col = 1;
  g.b_row = transposed ? 1 : s.n, g.b_col = transposed ? s.k : 1;
  const size_t elements = (size_t)(s.m * s.k + s.k * s.n + s.m * s.n + 192);
  char *memory = aligned_alloc(64, (elements * item + 63) / 64 * 64);
  void *scratch = aligned_alloc(64, kiln_gemm_make_plan(&g, item, 0).scratch + 64);
  if (!memory || !scratch) exit(3);
  for (size_t i = 0; i < elements; i++) {
    const double value = (double)(i * 7919 % 17) / 8 - 1;
    if (b->f64) {
      ((double *)memory)[i] = value;
    } else {
      ((float *)memory)[i] = (float)value;
    }
  }
  char *at = memory;
  g.a = at, at += ((size_t)(s.m * s.k) * item + 63) / 64 * 64;
  g.b = at, at += ((size_t)(s.k * s.n) * item + 63) / 64 * 64;
  g.c = at;
  const double flops = 2.0 * (double)s.m * (double)s.n * (double)s.k;
  enum { TIMES = 101 };
  double times[TIMES];
  int64_t calls = (int64_t)(2e7 / flops) + 1;
  int runs = 0;
  for (double begin = bench_seconds(); runs < TIMES && (runs < 7 || bench_seconds() - begin < 0.25);
       runs++) {
    const double start = bench_seconds();
    for (int64_t i = 0; i < calls; i++) product(b, &g, scratch);
    times[runs] = (bench_seconds() - start) / (double)calls;
  }
  free(scratch);
  free(memory);
  return flops / bench_median(times, runs) * 1e-9;
}

int main(int argc, char **argv) {
  bench b = {.dispatch = kiln_dispatch_select(kiln_isa_detect()),
             .l2_bytes = kiln_cpu_find_caches().l2};
  int at = 1;
  for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
    if (!strcmp(argv[at], "--f64")) {
      b.f64 = true;
    } else if (!strcmp(argv[at], "--isa") && at + 1 < argc) {
      const char *name = argv[++at];
      b.dispatch = kiln_dispatch_select(!strcmp(name, "v2")     ? KILN_ISA_V2
                                        : !strcmp(name, "avx2") ? KILN_ISA_AVX2
                                                                : KILN_ISA_AVX512);
    } else {
      fprintf(stderr, "gemm: what is %s?\n", argv[at]);
      return 2;
    }
  }
  const double most = bench_peak(b.dispatch->isa) / (b.f64 ? 2 : 1);
  printf("%s, %s, peak %.1f GFLOP/s\n", kiln_isa_name(b.dispatch->isa), b.f64 ? "f64" : "f32",
         most);
  if (argc - at >= 3) {
    const shape s = {atoll(argv[at]), atoll(argv[at + 1]), atoll(argv[at + 2])};
    printf("%.1f %.1f\n", gflops(&b, s, false), gflops(&b, s, true));
    return 0;
  }
  printf("| m, n, k | B [k, n] | of peak | B [n, k] | of peak |\n|---|---|---|---|---|\n");
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const double kn = gflops(&b, shapes[i], false), nk = gflops(&b, shapes[i], true);
    printf("| %lld, %lld, %lld | %.1f | %.0f %% | %.1f | %.0f %% |\n", (long long)shapes[i].m,
           (long long)shapes[i].n, (long long)shapes[i].k, kn, 100 * kn / most, nk,
           100 * nk / most);
    fflush(stdout);
  }
  return 0;
}
