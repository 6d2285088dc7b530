/* gemm_isa.c: matrix products of float and double: C = alpha A B + beta D, any strides (gemm.h).
 *
 * A register tile of C, MR rows and up to three vectors wide, is summed over a block of k: elements
 * of the left factor are spread over a vector and multiply vectors of the right one. It differs
 * from the scheme of Goto and van de Geijn in that nothing is copied without need: the left factor
 * is read where it lies (its rows run along k), the right one too when rows are few; else a panel
 * of it at a time is copied and serves all rows of a block. Remainders are tiles of their own.
 *
 * Sums over k are made in order, in blocks of KILN_GEMM_KC, so they depend on neither the tile nor
 * m and n. Where the processor has fma, the tile uses it: the one place where instruction sets
 * differ in their last bits (docs/numerics.md). Few rows times a transposed matrix are dot products
 * (gemm_dot.h): copying would cost more than the product. */
#include <string.h>

#if KILN_KERNEL_LEVEL > 0
#include <immintrin.h>
#endif

#include "runtime/kernels/isa.h"
#include "runtime/math/math.h"

#define NAME(name) KILN_ISA_CAT4(name, _, TAG, KILN_KERNEL_ISA)
#define ALWAYS_INLINE static inline __attribute__((always_inline))

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

/* The vector is in a register from here on: else GCC loads it again for each use. */
#if KILN_KERNEL_LEVEL == 2
#define KEEP(x) __asm__("" : "+v"(x))
#elif defined(__x86_64__)
#define KEEP(x) __asm__("" : "+x"(x))
#else
#define KEEP(x) (void)(x)
#endif

/* f(0, ...), f(1, ...), ... for the lanes of a vector. */
#define LANES2(f, ...) f(0, __VA_ARGS__), f(1, __VA_ARGS__)
#define LANES4(f, ...) LANES2(f, __VA_ARGS__), f(2, __VA_ARGS__), f(3, __VA_ARGS__)
#define LANES8(f, ...) \
  LANES4(f, __VA_ARGS__), f(4, __VA_ARGS__), f(5, __VA_ARGS__), f(6, __VA_ARGS__), f(7, __VA_ARGS__)
#define LANES16(f, ...)                                                               \
  LANES8(f, __VA_ARGS__), f(8, __VA_ARGS__), f(9, __VA_ARGS__), f(10, __VA_ARGS__),   \
      f(11, __VA_ARGS__), f(12, __VA_ARGS__), f(13, __VA_ARGS__), f(14, __VA_ARGS__), \
      f(15, __VA_ARGS__)

/* The larger registers, the more rows: accumulators, three vectors of the right factor and one of
 * the left must fit into 32 or 16 of them. */
#if KILN_KERNEL_LEVEL == 2
enum { MR = 8, NV = 3 };
#elif KILN_KERNEL_LEVEL == 1
enum { MR = 4, NV = 3 };
#else
enum { MR = 4, NV = 2 };
#endif
/* Up to so many rows the right factor is read where it lies. */
enum { UNPACKED_ROWS = KILN_KERNEL_LEVEL == 2 ? 32 : 16 };
enum { KC = KILN_GEMM_KC, MC = KILN_GEMM_MC };
/* Rows of the right factor that are asked for before they are read: of pages that all lie in the
 * same sets, which the first cache has eight or twelve of. */
enum { AHEAD = 8 };

#define TAG f32
#define T float
#define V kiln_f32v
#define VU kiln_f32v_u
#define VI kiln_i32v
#define WIDTH KILN_MATH_LANES
#include "runtime/kernels/heavy/gemm_isa.h"
#undef TAG
#undef T
#undef V
#undef VU
#undef VI
#undef WIDTH
#undef LANES

#define TAG f64
#define T double
#define V kiln_f64v
#define VU kiln_f64v_u
#define VI kiln_i64v
#define WIDTH KILN_MATH_LANES_F64
#include "runtime/kernels/heavy/gemm_isa.h"
