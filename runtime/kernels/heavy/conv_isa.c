/* conv_isa.c: convolutions of float and double by implicit matrix products (conv.h).
 *
 * For each slab: outputs [m, columns] = weights [m, k] x columns [k, columns], where k runs over
 * channels and taps. The weights are read where they lie, as broadcast numbers; the columns are
 * copied to panels of three vectors, block by block of k, and stay in the L2 cache; a register tile
 * of outputs and columns is summed over the block. There is never a whole im2col. The panels are
 * filled from a padded tile: a copy of the rows of the input that the slab reads, with the padding,
 * and sorted for strides, so that a row of a panel is a few contiguous copies whatever the stride,
 * the padding and the dilation are. The outputs are written once a block and begin with the bias.
 */
#include <string.h>

#include "runtime/kernels/heavy/conv.h"
#include "runtime/kernels/heavy/evens.h"
#include "runtime/kernels/isa.h"
#include "runtime/kernels/reduce/reduce.h"
#include "runtime/math/math.h"

#define NAME(name) KILN_ISA_CAT4(name, _, TAG, KILN_KERNEL_ISA)

/* a + b * x, rounded once where the processor can. */
#if KILN_KERNEL_LEVEL > 0
#define FMA_f32(a, b, x) ((kiln_f32v)KILN_MATH_FMA_F32(b, x, a))
#define FMA_f64(a, b, x) ((kiln_f64v)KILN_MATH_FMA_F64(b, x, a))
#define FMA1_f32(a, b, x) __builtin_fmaf((b), (x), (a))
#define FMA1_f64(a, b, x) __builtin_fma((b), (x), (a))
#else
#define FMA_f32(a, b, x) ((a) + (b) * (x))
#define FMA_f64(a, b, x) ((a) + (b) * (x))
#define FMA1_f32(a, b, x) ((a) + (b) * (x))
#define FMA1_f64(a, b, x) ((a) + (b) * (x))
#endif
#if KILN_KERNEL_LEVEL == 2 /* half a vector: H, unaligned HU */
typedef float half_f32 __attribute__((vector_size(32)));
typedef double half_f64 __attribute__((vector_size(32)));
typedef half_f32 half_f32_u __attribute__((aligned(4), may_alias));
typedef half_f64 half_f64_u __attribute__((aligned(8), may_alias));
#define HALF_FMA_f32(a, b, x) ((half_f32)_mm256_fmadd_ps((__m256)(b), (__m256)(x), (__m256)(a)))
#define HALF_FMA_f64(a, b, x) ((half_f64)_mm256_fmadd_pd((__m256d)(b), (__m256d)(x), (__m256d)(a)))
#define H KILN_ISA_CAT2(half_, TAG)
#define HU KILN_ISA_CAT3(half_, TAG, _u)
#define FMA_HALF KILN_ISA_CAT2(HALF_FMA_, TAG)
#endif
#define FMA KILN_ISA_CAT2(FMA_, TAG)
#define FMA1 KILN_ISA_CAT2(FMA1_, TAG)

#define EVENS KILN_ISA_CAT2(EVENS_, TAG)

#define TAG f32
#define T float
#define V kiln_f32v
#define VU kiln_f32v_u
#include "runtime/kernels/heavy/conv_isa.h"
#undef TAG
#undef T
#undef V
#undef VU

#define TAG f64
#define T double
#define V kiln_f64v
#define VU kiln_f64v_u
#include "runtime/kernels/heavy/conv_isa.h"
