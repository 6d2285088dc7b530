/* math.h: the vector math library: transcendental functions over GCC/clang vector types.
 *
 * Header only: one C source (math_template.h, twice: f32 and f64) serves the interpreter's kernels,
 * the evaluator of loop IR, and, compiled by clang to bitcode, the code generator. The width
 * follows the instruction set of the including file, or KILN_MATH_LANES (1, 4, 8 or 16) where that
 * is defined: kiln_f32v has KILN_MATH_LANES floats, kiln_f64v half as many doubles: both fill a
 * register (1: a number of either, for devices whose threads have no vectors).
 * kiln_math_<name>_f32v(kiln_f32v), kiln_math_<name>_f64v(kiln_f64v): every width
 *   kiln_math_<name>_f32(float), kiln_math_<name>_f64(double): the same on one number
 * The names are those of functions.def, which also has the promised accuracy.
 *
 * Bits: only IEEE + - * / sqrt, fma, comparisons and integer operations are used, in one fixed
 * order. There are two forms, with fused multiply-add and without, chosen by KILN_MATH_FMA, which
 * follows the instruction set: 1 for AVX2 and AVX-512, 0 for x86-64-v2. Each form gives the same
 * bits at every width, on every instruction set and from every caller (docs/numerics.md), if the
 * file is compiled with -ffp-contract=off, as the whole project is. NaN in gives NaN out; which NaN
 * is not promised. The default rounding mode is assumed; no exception flags are promised; errno is
 * never touched. */
#pragma once

#include <stdint.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "runtime/math/coefficients.h"

#ifndef KILN_MATH_LANES
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define KILN_MATH_LANES 16
#elif defined(__AVX2__)
#define KILN_MATH_LANES 8
#else
#define KILN_MATH_LANES 4
#endif
#endif

#ifndef KILN_MATH_FMA
#ifdef __FMA__
#define KILN_MATH_FMA 1
#else
#define KILN_MATH_FMA 0
#endif
#endif

#define KILN_MATH_LANES_F64 (KILN_MATH_LANES == 1 ? 1 : KILN_MATH_LANES / 2)

typedef float kiln_f32v __attribute__((vector_size(KILN_MATH_LANES * 4)));
typedef int32_t kiln_i32v __attribute__((vector_size(KILN_MATH_LANES * 4)));
typedef double kiln_f64v __attribute__((vector_size(KILN_MATH_LANES_F64 * 8)));
typedef int64_t kiln_i64v __attribute__((vector_size(KILN_MATH_LANES_F64 * 8)));
/* The same for an address that is only aligned like its elements. */
typedef kiln_f32v kiln_f32v_u __attribute__((aligned(4), may_alias));
typedef kiln_f64v kiln_f64v_u __attribute__((aligned(8), may_alias));

#define KILN_MATH_INLINE static inline __attribute__((always_inline, unused))
#ifdef __clang__
#define KILN_MATH_UNROLL _Pragma("unroll")
#else
#define KILN_MATH_UNROLL _Pragma("GCC unroll 64")
#endif

/* How the bitcode build gives each function a name that can be seen; nothing elsewhere. */
#ifndef KILN_MATH_PUBLIC
#define KILN_MATH_PUBLIC KILN_MATH_INLINE
#endif

/* -- Fused multiply-add of a whole vector -- */

#if KILN_MATH_FMA && KILN_MATH_LANES == 16
#define KILN_MATH_FMA_F32 _mm512_fmadd_ps
#define KILN_MATH_FMA_F64 _mm512_fmadd_pd
#elif KILN_MATH_FMA && KILN_MATH_LANES == 8
#define KILN_MATH_FMA_F32 _mm256_fmadd_ps
#define KILN_MATH_FMA_F64 _mm256_fmadd_pd
#elif KILN_MATH_FMA && KILN_MATH_LANES == 1
KILN_MATH_INLINE kiln_f32v kiln__math_fma_f32(kiln_f32v a, kiln_f32v b, kiln_f32v c) {
  return (kiln_f32v){__builtin_fmaf(a[0], b[0], c[0])};
}
KILN_MATH_INLINE kiln_f64v kiln__math_fma_f64(kiln_f64v a, kiln_f64v b, kiln_f64v c) {
  return (kiln_f64v){__builtin_fma(a[0], b[0], c[0])};
}
#define KILN_MATH_FMA_F32 kiln__math_fma_f32
#define KILN_MATH_FMA_F64 kiln__math_fma_f64
#elif KILN_MATH_FMA
#define KILN_MATH_FMA_F32 _mm_fmadd_ps
#define KILN_MATH_FMA_F64 _mm_fmadd_pd
#endif

/* -- Halves: f32 vectors as pairs of f64 vectors -- */

#if KILN_MATH_LANES == 1
/* The number twice: what is computed of both is computed once. */
KILN_MATH_INLINE void kiln__math_widen(kiln_f32v x, kiln_f64v *lo, kiln_f64v *hi) {
  *lo = *hi = __builtin_convertvector(x, kiln_f64v);
}
KILN_MATH_INLINE kiln_f32v kiln__math_narrow(kiln_f64v lo, kiln_f64v hi) {
  (void)hi;
  return __builtin_convertvector(lo, kiln_f32v);
}
#else
typedef float kiln__f32h __attribute__((vector_size(KILN_MATH_LANES * 2)));
typedef int32_t kiln__i32h __attribute__((vector_size(KILN_MATH_LANES * 2)));

#define KILN_MATH_HALF_2 0, 1
#define KILN_MATH_HALF_4 0, 1, 2, 3
#define KILN_MATH_HALF_8 0, 1, 2, 3, 4, 5, 6, 7
#define KILN_MATH_HIGH_2 2, 3
#define KILN_MATH_HIGH_4 4, 5, 6, 7
#define KILN_MATH_HIGH_8 8, 9, 10, 11, 12, 13, 14, 15
#if KILN_MATH_LANES == 4
#define KILN_MATH_LOW KILN_MATH_HALF_2
#define KILN_MATH_HIGH KILN_MATH_HIGH_2
#elif KILN_MATH_LANES == 8
#define KILN_MATH_LOW KILN_MATH_HALF_4
#define KILN_MATH_HIGH KILN_MATH_HIGH_4
#else
#define KILN_MATH_LOW KILN_MATH_HALF_8
#define KILN_MATH_HIGH KILN_MATH_HIGH_8
#endif

KILN_MATH_INLINE void kiln__math_widen(kiln_f32v x, kiln_f64v *lo, kiln_f64v *hi) {
  kiln__f32h a = __builtin_shufflevector(x, x, KILN_MATH_LOW);
  kiln__f32h b = __builtin_shufflevector(x, x, KILN_MATH_HIGH);
  *lo = __builtin_convertvector(a, kiln_f64v);
  *hi = __builtin_convertvector(b, kiln_f64v);
}
KILN_MATH_INLINE kiln_f32v kiln__math_narrow(kiln_f64v lo, kiln_f64v hi) {
  kiln__f32h a = __builtin_convertvector(lo, kiln__f32h);
  kiln__f32h b = __builtin_convertvector(hi, kiln__f32h);
  return __builtin_shufflevector(a, b, KILN_MATH_LOW, KILN_MATH_HIGH);
}
#endif

/* -- Pairs: Knuth's exact sum and Dekker's exact product (Numer. Math. 18, 1971) -- */

KILN_MATH_INLINE kiln_f64v kiln__math_two_sum(kiln_f64v a, kiln_f64v b, kiln_f64v *error) {
  kiln_f64v s = a + b, bb = s - a;
  *error = (a - (s - bb)) + (b - bb);
  return s;
}
KILN_MATH_INLINE kiln_f64v kiln__math_two_product(kiln_f64v a, kiln_f64v b, kiln_f64v *error) {
  kiln_f64v ta = a * 0x1.0000002p27, tb = b * 0x1.0000002p27;
  kiln_f64v ah = ta - (ta - a), bh = tb - (tb - b), al = a - ah, bl = b - bh;
  kiln_f64v p = a * b;
  *error = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
  return p;
}

/* -- The functions -- */

#include "runtime/math/reduce.h"

#define KILN_MATH_F64 1
#include "runtime/math/math_template.h"
#include "runtime/math/math_f64.h"
#undef KILN_MATH_F64
#define KILN_MATH_F64 0
#include "runtime/math/math_template.h"
#include "runtime/math/math_f32.h"
#undef KILN_MATH_F64
#include "runtime/math/half.h"

/* -- One number -- */

#define KILN_MATH_SCALAR_1(name)                             \
  KILN_MATH_INLINE float kiln_math_##name##_f32(float x) {   \
    return kiln_math_##name##_f32v(x - (kiln_f32v){0})[0];   \
  }                                                          \
  KILN_MATH_INLINE double kiln_math_##name##_f64(double x) { \
    return kiln_math_##name##_f64v(x - (kiln_f64v){0})[0];   \
  }
#define KILN_MATH_SCALAR_2(name)                                               \
  KILN_MATH_INLINE float kiln_math_##name##_f32(float x, float y) {            \
    return kiln_math_##name##_f32v(x - (kiln_f32v){0}, y - (kiln_f32v){0})[0]; \
  }                                                                            \
  KILN_MATH_INLINE double kiln_math_##name##_f64(double x, double y) {         \
    return kiln_math_##name##_f64v(x - (kiln_f64v){0}, y - (kiln_f64v){0})[0]; \
  }
#define KILN_MATH_FN(name, arity, ulp_f32, ulp_f64) KILN_MATH_SCALAR_##arity(name)
#include "runtime/math/functions.def"
#undef KILN_MATH_FN
