/* cast_isa.c: conversion between every dtype and the compute types.
 *
 * A number becomes a bool by x != 0, a float an integer by truncation, a complex number a real one
 * by dropping its imaginary part. Small integers wrap around. Conversions among real types have a
 * contiguous loop, which the compiler vectorises; those of complex types are plain. */
#include "runtime/half.h"
#include "runtime/kernels/isa.h"
#include "runtime/math/math.h"

#define CAST(name) KILN_ISA_CAT3(cast_##name, _, KILN_KERNEL_ISA)
#define CAST_HEAD(name)                                                                      \
  static void CAST(name)(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, \
                         int64_t n)

typedef struct half_pair {
  uint16_t re, im;
} half_pair;

#define CAST_STRIDED(D, S, expr)                    \
  for (int64_t i = 0; i < n; i++) {                 \
    const S x = *(const S *)(src + i * src_stride); \
    *(D *)(dst + i * dst_stride) = (D)(expr);       \
  }
#define CAST_REAL(name, D, S, expr)                                             \
  CAST_HEAD(name) {                                                             \
    if (dst_stride == (int64_t)sizeof(D) && src_stride == (int64_t)sizeof(S)) { \
      D *d = (D *)dst;                                                          \
      const S *s = (const S *)src;                                              \
      KILN_IVDEP for (int64_t i = 0; i < n; i++) {                              \
        const S x = s[i];                                                       \
        d[i] = (D)(expr);                                                       \
      }                                                                         \
      return;                                                                   \
    }                                                                           \
    CAST_STRIDED(D, S, expr)                                                    \
  }
#define CAST_PLAIN(name, D, S, expr) \
  CAST_HEAD(name) { CAST_STRIDED(D, S, expr) }

static inline float _Complex complex_f32(float re, float im) {
  float _Complex z;
  __real__ z = re;
  __imag__ z = im;
  return z;
}
static inline double _Complex complex_f64(double re, double im) {
  double _Complex z;
  __real__ z = re;
  __imag__ z = im;
  return z;
}

/* X(dtype, type, x as a number) of the real dtypes. */
#define HALF_DTYPES(X)                    \
  X(F16, uint16_t, kiln_half_to_float(x)) \
  X(BF16, uint16_t, kiln_bf16_to_float(x))
#define REAL_DTYPES_BUT_HALVES(X) \
  X(U8, uint8_t, x)               \
  X(I8, int8_t, x)                \
  X(I16, int16_t, x)              \
  X(I32, int32_t, x)              \
  X(I64, int64_t, x)              \
  X(F32, float, x)                \
  X(F64, double, x)               \
  X(U16, uint16_t, x)             \
  X(U32, uint32_t, x)             \
  X(U64, uint64_t, x)
#define REAL_DTYPES(X) REAL_DTYPES_BUT_HALVES(X) HALF_DTYPES(X)
#define COMPLEX_DTYPES(X)                                               \
  X(C32, half_pair, kiln_half_to_float(x.re), kiln_half_to_float(x.im)) \
  X(C64, float _Complex, __real__ x, __imag__ x)                        \
  X(C128, double _Complex, __real__ x, __imag__ x)

/* -- To the compute types -- */

#define LOAD_REAL(dtype, S, value)                                              \
  CAST_REAL(dtype##_to_bool, uint8_t, S, (value) != 0)                          \
  CAST_REAL(dtype##_to_i32, int32_t, S, value)                                  \
  CAST_REAL(dtype##_to_i64, int64_t, S, value)                                  \
  CAST_REAL(dtype##_to_f32, float, S, value)                                    \
  CAST_REAL(dtype##_to_f64, double, S, value)                                   \
  CAST_PLAIN(dtype##_to_c64, float _Complex, S, complex_f32((float)(value), 0)) \
  CAST_PLAIN(dtype##_to_c128, double _Complex, S, complex_f64((double)(value), 0))
REAL_DTYPES(LOAD_REAL)
/* Any byte but 0 reads as true. */
LOAD_REAL(BOOL, uint8_t, x != 0)
#define LOAD_COMPLEX(dtype, S, re, im)                                                 \
  CAST_PLAIN(dtype##_to_bool, uint8_t, S, (re) != 0 || (im) != 0)                      \
  CAST_PLAIN(dtype##_to_i32, int32_t, S, re)                                           \
  CAST_PLAIN(dtype##_to_i64, int64_t, S, re)                                           \
  CAST_PLAIN(dtype##_to_f32, float, S, re)                                             \
  CAST_PLAIN(dtype##_to_f64, double, S, re)                                            \
  CAST_PLAIN(dtype##_to_c64, float _Complex, S, complex_f32((float)(re), (float)(im))) \
  CAST_PLAIN(dtype##_to_c128, double _Complex, S, complex_f64((double)(re), (double)(im)))
COMPLEX_DTYPES(LOAD_COMPLEX)

/* -- And back -- */

#define X_FROM(ctype, S, value)                                                              \
  CAST_REAL(ctype##_to_U8, uint8_t, S, TO_SMALL(value))                                      \
  CAST_REAL(ctype##_to_I8, int8_t, S, TO_SMALL(value))                                       \
  CAST_REAL(ctype##_to_I16, int16_t, S, TO_SMALL(value))                                     \
  CAST_REAL(ctype##_to_I32, int32_t, S, value)                                               \
  CAST_REAL(ctype##_to_I64, int64_t, S, value)                                               \
  CAST_REAL(ctype##_to_F16, uint16_t, S, kiln_float_to_half((float)(value)))                 \
  CAST_REAL(ctype##_to_F32, float, S, value)                                                 \
  CAST_REAL(ctype##_to_F64, double, S, value)                                                \
  CAST_REAL(ctype##_to_BF16, uint16_t, S, kiln_float_to_bf16((float)(value)))                \
  CAST_REAL(ctype##_to_U16, uint16_t, S, TO_SMALL(value))                                    \
  CAST_REAL(ctype##_to_U32, uint32_t, S, (int64_t)(value))                                   \
  CAST_REAL(ctype##_to_U64, uint64_t, S, (int64_t)(value))                                   \
  CAST_PLAIN(                                                                                \
      ctype##_to_C32, half_pair, S,                                                          \
      ((half_pair){kiln_float_to_half((float)(value)), kiln_float_to_half((float)IMAG(x))})) \
  CAST_PLAIN(ctype##_to_C64, float _Complex, S, complex_f32((float)(value), (float)IMAG(x))) \
  CAST_PLAIN(ctype##_to_C128, double _Complex, S, complex_f64((double)(value), (double)IMAG(x)))
#define STORE_REAL(ctype, S, value) \
  CAST_REAL(ctype##_to_BOOL, uint8_t, S, (value) != 0) X_FROM(ctype, S, value)
#define IMAG(x) 0.0f
#define TO_SMALL(x) x
STORE_REAL(BOOL, uint8_t, x)
STORE_REAL(I32, int32_t, x)
STORE_REAL(I64, int64_t, x)
#undef TO_SMALL
#define TO_SMALL(x) (int32_t)(x)
STORE_REAL(F32, float, x)
STORE_REAL(F64, double, x)
#undef IMAG
#define IMAG(x) __imag__(x)
#define STORE_COMPLEX(ctype, S) \
  CAST_PLAIN(ctype##_to_BOOL, uint8_t, S, __real__ x != 0 || __imag__ x != 0)
STORE_COMPLEX(C64, float _Complex)
X_FROM(C64, float _Complex, __real__ x)
STORE_COMPLEX(C128, double _Complex)
X_FROM(C128, double _Complex, __real__ x)

/* -- Halves and f32 beside each other: in vectors, then what is left -- */

#define CAST_VECTORS(name, D, S, rest, convert)                                            \
  CAST_HEAD(name) {                                                                        \
    int64_t i = 0;                                                                         \
    if (dst_stride == (int64_t)sizeof(D) && src_stride == (int64_t)sizeof(S)) {            \
      for (; i + KILN_MATH_LANES <= n; i += KILN_MATH_LANES) {                             \
        convert((D *)dst + i, (const S *)src + i);                                         \
      }                                                                                    \
    }                                                                                      \
    CAST(rest)(dst + i * dst_stride, dst_stride, src + i * src_stride, src_stride, n - i); \
  }
typedef uint16_t halves __attribute__((vector_size(KILN_MATH_LANES * 2), aligned(2), may_alias));
/* Vectors without a NaN, of which all become the same: an instruction has the rest of it. */
static inline bool CAST(narrow_plain)(uint16_t *to, const float *from) {
#if KILN_KERNEL_LEVEL == 1
  const __m256 x = _mm256_loadu_ps(from);
  if (_mm256_movemask_ps(_mm256_cmp_ps(x, x, _CMP_UNORD_Q))) return false;
  _mm_storeu_si128((__m128i *)(void *)to, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
  return true;
#else
  (void)to, (void)from;
  return false;
#endif
}
#define VECTORS_OF(dtype, name, plain)                                                      \
  static inline void CAST(widen_##dtype)(float *to, const uint16_t *from) {                 \
    const kiln_i32v wide = __builtin_convertvector(*(const halves *)from, kiln_i32v);       \
    *(kiln_f32v_u *)to = kiln_math_from_##name##_f32v(wide);                                \
  }                                                                                         \
  static inline void CAST(narrow_##dtype)(uint16_t *to, const float *from) {                \
    if (plain) return;                                                                      \
    const kiln_i32v wide = kiln_math_to_##name##_f32v(*(const kiln_f32v_u *)from);          \
    *(halves *)to = __builtin_convertvector(wide, halves);                                  \
  }                                                                                         \
  CAST_VECTORS(dtype##_to_f32_beside, float, uint16_t, dtype##_to_f32, CAST(widen_##dtype)) \
  CAST_VECTORS(F32_to_##dtype##_beside, uint16_t, float, F32_to_##dtype, CAST(narrow_##dtype))
VECTORS_OF(F16, f16, CAST(narrow_plain)(to, from))
VECTORS_OF(BF16, bf16, false)

/* -- Tables -- */

#define LOAD_ROW(dtype, ...) LOAD_ROW_OF(dtype, CAST(dtype##_to_f32))
#define LOAD_HALF_ROW(dtype, ...) LOAD_ROW_OF(dtype, CAST(dtype##_to_f32_beside))
#define LOAD_ROW_OF(dtype, to_f32)                                                        \
  [KILN_DTYPE_##dtype] = {                                                                \
      [KILN_CTYPE_BOOL] = CAST(dtype##_to_bool), [KILN_CTYPE_I32] = CAST(dtype##_to_i32), \
      [KILN_CTYPE_I64] = CAST(dtype##_to_i64),   [KILN_CTYPE_F32] = to_f32,               \
      [KILN_CTYPE_F64] = CAST(dtype##_to_f64),   [KILN_CTYPE_C64] = CAST(dtype##_to_c64), \
      [KILN_CTYPE_C128] = CAST(dtype##_to_c128)},
const kiln_cast_loop KILN_ISA_CAT2(kiln__load_,
                                   KILN_KERNEL_ISA)[KILN_DTYPE__COUNT][KILN_CTYPE__COUNT] = {
    REAL_DTYPES_BUT_HALVES(LOAD_ROW) HALF_DTYPES(LOAD_HALF_ROW) COMPLEX_DTYPES(LOAD_ROW)
        LOAD_ROW(BOOL)};

#define STORE_TO(ctype, dtype) [KILN_DTYPE_##dtype] = CAST(ctype##_to_##dtype),
#define STORE_ROW(ctype) STORE_ROW_OF(ctype, CAST(ctype##_to_F16), CAST(ctype##_to_BF16))
#define STORE_ROW_OF(ctype, to_f16, to_bf16)                                                      \
  [KILN_CTYPE_##ctype] = {                                                                        \
      [KILN_DTYPE_F16] = to_f16,                                                                  \
      [KILN_DTYPE_BF16] = to_bf16,                                                                \
      STORE_TO(ctype, U8) STORE_TO(ctype, I8) STORE_TO(ctype, I16) STORE_TO(ctype, I32)           \
          STORE_TO(ctype, I64) STORE_TO(ctype, F32) STORE_TO(ctype, F64) STORE_TO(ctype, U16)     \
              STORE_TO(ctype, U32) STORE_TO(ctype, U64) STORE_TO(ctype, C32) STORE_TO(ctype, C64) \
                  STORE_TO(ctype, C128) STORE_TO(ctype, BOOL)},
const kiln_cast_loop KILN_ISA_CAT2(kiln__store_,
                                   KILN_KERNEL_ISA)[KILN_CTYPE__COUNT][KILN_DTYPE__COUNT] = {
    STORE_ROW(BOOL) STORE_ROW(I32) STORE_ROW(I64)
        STORE_ROW_OF(F32, CAST(F32_to_F16_beside), CAST(F32_to_BF16_beside)) STORE_ROW(F64)
            STORE_ROW(C64) STORE_ROW(C128)};
