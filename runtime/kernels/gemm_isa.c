/* gemm_isa.c: matrix products of float and double: C = alpha A B + beta C, any strides.
 *
 * The scheme of Goto and van de Geijn: blocks of B (KC x NC) and of A (MC x KC) are packed into
 * panels, and a register tile of MR x NR of C is kept in vectors over the whole of a KC. Products
 * are summed over k in order, in blocks of KC, so the result depends on neither the tile nor m and
 * n. Where the processor has fma, the tile uses it: the one place where instruction sets differ in
 * their last bits (docs/numerics.md). For few rows packing would cost more than the product: they
 * take sums of rows of B, or, where B is a transposed matrix, dot products by the lanes of
 * reduce.h. */
#include <string.h>

#if KILN_KERNEL_LEVEL > 0
#include <immintrin.h>
#endif

#include "runtime/kernels/isa.h"
#include "runtime/kernels/reduce.h"
#include "runtime/math/math.h"

#define NAME(name) KILN_ISA_CAT4(name, _, TAG, KILN_KERNEL_ISA)

/* a + b * x, rounded once where the processor can. */
#if KILN_KERNEL_LEVEL == 2
#define FMA_f32(a, b, x) ((kiln_f32v)_mm512_fmadd_ps((__m512)(b), (__m512)(x), (__m512)(a)))
#define FMA_f64(a, b, x) ((kiln_f64v)_mm512_fmadd_pd((__m512d)(b), (__m512d)(x), (__m512d)(a)))
#elif KILN_KERNEL_LEVEL == 1
#define FMA_f32(a, b, x) ((kiln_f32v)_mm256_fmadd_ps((__m256)(b), (__m256)(x), (__m256)(a)))
#define FMA_f64(a, b, x) ((kiln_f64v)_mm256_fmadd_pd((__m256d)(b), (__m256d)(x), (__m256d)(a)))
#else
#define FMA_f32(a, b, x) ((a) + (b) * (x))
#define FMA_f64(a, b, x) ((a) + (b) * (x))
#endif
#if KILN_KERNEL_LEVEL > 0
#define FMA1_f32(a, b, x) __builtin_fmaf((b), (x), (a))
#define FMA1_f64(a, b, x) __builtin_fma((b), (x), (a))
#else
#define FMA1_f32(a, b, x) ((a) + (b) * (x))
#define FMA1_f64(a, b, x) ((a) + (b) * (x))
#endif
#define FMA KILN_ISA_CAT2(FMA_, TAG)
#define FMA1 KILN_ISA_CAT2(FMA1_, TAG)

enum { KC = KILN_GEMM_KC, MC = KILN_GEMM_MC, NC = KILN_GEMM_NC };

#define TAG f32
#define T float
#define V kiln_f32v
#define VU kiln_f32v_u
#include "runtime/kernels/gemm_isa.h"
#undef TAG
#undef T
#undef V
#undef VU

#define TAG f64
#define T double
#define V kiln_f64v
#define VU kiln_f64v_u
#include "runtime/kernels/gemm_isa.h"
