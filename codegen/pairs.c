/* pairs.c: `vdpbf16ps` beside `vfmadd231ps`. It does two products in each lane; an Intel Xeon with
 * AMX takes four times as long for it, and widening the factors for two fused products is sooner
 * done. CPUID tells that a CPU has the instruction, not how long it takes. */
#include "codegen/pairs.h"

#include <stdint.h>

#include "base/budget.h"

#if defined(__x86_64__)

enum { TURNS = 200, ROUNDS = 5 };

/* Eight chains, more than either instruction needs to be busy, of zeros. */
#define ZERO(n) "vpxord %%zmm" #n ", %%zmm" #n ", %%zmm" #n "\n"
#define EIGHT(op)                                                                                 \
  op " %%zmm8, %%zmm8, %%zmm0\n" op " %%zmm8, %%zmm8, %%zmm1\n" op " %%zmm8, %%zmm8, %%zmm2\n" op \
     " %%zmm8, %%zmm8, %%zmm3\n" op " %%zmm8, %%zmm8, %%zmm4\n" op " %%zmm8, %%zmm8, %%zmm5\n" op \
     " %%zmm8, %%zmm8, %%zmm6\n" op " %%zmm8, %%zmm8, %%zmm7\n"
#define RUN(name, features, op)                                                                   \
  __attribute__((target(features), noinline)) static void name(void) {                            \
    int turns = TURNS;                                                                            \
    __asm__ volatile(ZERO(0) ZERO(1) ZERO(2) ZERO(3) ZERO(4) ZERO(5) ZERO(6) ZERO(7)              \
                         ZERO(8) "1:\n" EIGHT(op) EIGHT(op) "decl %0\njnz 1b\nvzeroupper\n"       \
                     : "+r"(turns)::"cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", \
                       "xmm7", "xmm8");                                                           \
  }
RUN(run_products, "avx512f", "vfmadd231ps")
RUN(run_pairs, "avx512f,avx512bf16", "vdpbf16ps")

static uint64_t least_of(void (*run)(void)) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < ROUNDS; i++) {
    const uint64_t begin = kiln_now_ns();
    run();
    const uint64_t time = kiln_now_ns() - begin;
    if (time < least) least = time;
  }
  return least;
}

/* Widening takes two fused products, and something of the ports besides. */
bool kiln__pairs_pay(void) { return 2 * least_of(run_pairs) <= 5 * least_of(run_products); }

#else

bool kiln__pairs_pay(void) { return false; }

#endif
