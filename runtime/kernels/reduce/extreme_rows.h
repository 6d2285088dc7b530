/* extreme_rows.h: the greatest and the least of a row of floats, by the rule of reduce.h, in
 * vectors (part of *_isa.c). A NaN beats all; of 0 and -0 the rule's order gives one. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/kernels/isa.h"
#include "runtime/kernels/reduce/reduce.h"
#include "runtime/math/math.h"

/* How far ahead of its loads a row's loop asks for memory: the processor does not look past the end
 * of a page by itself, and the fold of a short row keeps it from running ahead. */
enum { AHEAD_BYTES = 8192, LINE = 64, LANES = KILN_REDUCE_LANES };
#define FETCH_AHEAD(T, p)                                           \
  for (int line = 0; line < LANES * (int)sizeof(T); line += LINE) { \
    __builtin_prefetch((const char *)(p) + AHEAD_BYTES + line);     \
  }

/* a where it is greater (less), else b, also where one is NaN: an instruction. */
#if defined(__AVX512F__)
#define EXTREME_OF(op, s, V, I, than, a, b) _mm512_##op##_##s(a, b)
#elif defined(__AVX__)
#define EXTREME_OF(op, s, V, I, than, a, b) _mm256_##op##_##s(a, b)
#elif defined(__SSE2__)
#define EXTREME_OF(op, s, V, I, than, a, b) _mm_##op##_##s(a, b)
#else
#define EXTREME_OF(op, s, V, I, than, a, b) \
  (V)(((I)(a) & (I)((a)than(b))) | ((I)(b) & ~(I)((a)than(b))))
#endif
/* The same where a NaN stays: bits that are all set are one. */
#define EXTREME_OR_NAN(op, s, V, I, than, a, b) \
  (V)((I)EXTREME_OF(op, s, V, I, than, a, b) | (I)((a) != (a)))

/* Vector v of the n elements that are left, and neutral ones. */
#if defined(__AVX512F__)
#define MASK_ps __mmask16
#define MASK_pd __mmask8
#define REST_BEGIN(few, p, n, T, neutral)
#define REST(s, few, p, n, v, V, loose, neutral)                                      \
  ({                                                                                  \
    const int64_t lanes = (n) - (v) * WIDTH;                                          \
    const unsigned all = (1u << WIDTH) - 1;                                           \
    const unsigned some = lanes >= WIDTH ? all : lanes <= 0 ? 0 : (1u << lanes) - 1;  \
    (V) _mm512_mask_loadu_##s((neutral) - (V){0}, (MASK_##s)some, (p) + (v) * WIDTH); \
  })
#else
#define REST_BEGIN(few, p, n, T, neutral)             \
  for (int j = 0; j < LANES; j++) few[j] = (neutral); \
  memcpy(few, p, (size_t)(n) * sizeof(T));
#define REST(s, few, p, n, v, V, loose, neutral) (*(const loose *)((few) + (v) * WIDTH))
#endif

/* Lanes i and i + 4 of eight, then i and i + 2, i and i + 1: compilers make numbers of short
 * vectors of selections. */
#define FOLD_SHORT(V, I, than, of_a, of_b)      \
  ({                                            \
    const V a = (of_a), b = (of_b);             \
    const I take = (I)(a than b) | (I)(a != a); \
    (V)(((I)a & take) | ((I)b & ~take));        \
  })
#define DEFINE_EXTREME_ROW(op, tag, s, T, B, V, I, neutral, than)                               \
  static T op##_of_row_##tag(const T *p, int64_t n) {                                           \
    enum { WIDTH = sizeof(V) / sizeof(T), COUNT = LANES / WIDTH };                              \
    typedef V loose __attribute__((aligned(sizeof(T)), may_alias));                             \
    typedef T eight __attribute__((vector_size(8 * sizeof(T)), aligned(sizeof(T)), may_alias)); \
    typedef B eight_bits __attribute__((vector_size(8 * sizeof(T))));                           \
    typedef T four __attribute__((vector_size(4 * sizeof(T))));                                 \
    typedef B four_bits __attribute__((vector_size(4 * sizeof(T))));                            \
    V acc[COUNT];                                                                               \
    I nan = {0};                                                                                \
    T few[LANES];                                                                               \
    KILN_MATH_UNROLL for (int v = 0; v < COUNT; v++) acc[v] = (neutral) - (V){0};               \
    for (; n >= LANES; n -= LANES, p += LANES) {                                                \
      FETCH_AHEAD(T, p)                                                                         \
      KILN_MATH_UNROLL for (int v = 0; v < COUNT; v++) {                                        \
        const V x = *(const loose *)(p + v * WIDTH);                                            \
        acc[v] = EXTREME_OF(op, s, V, I, than, acc[v], x);                                      \
        nan |= (I)(x != x);                                                                     \
      }                                                                                         \
    }                                                                                           \
    if (n > 0) {                                                                                \
      REST_BEGIN(few, p, n, T, neutral)                                                         \
      KILN_MATH_UNROLL for (int v = 0; v < COUNT; v++) {                                        \
        const V x = REST(s, few, p, n, v, V, loose, neutral);                                   \
        acc[v] = EXTREME_OF(op, s, V, I, than, acc[v], x);                                      \
        nan |= (I)(x != x);                                                                     \
      }                                                                                         \
    }                                                                                           \
    acc[0] = (V)((I)acc[0] | nan);                                                              \
    KILN_MATH_UNROLL for (int half = COUNT / 2; half * WIDTH > 8; half /= 2) {                  \
      KILN_MATH_UNROLL for (int v = 0; v < half; v++) acc[v] =                                  \
          EXTREME_OR_NAN(op, s, V, I, than, acc[v], acc[v + half]);                             \
    }                                                                                           \
    memcpy(few, acc, 16 * sizeof(T));                                                           \
    const eight low = *(const eight *)few, high = *(const eight *)(few + 8);                    \
    const eight all = FOLD_SHORT(eight, eight_bits, than, low, high);                           \
    four v = __builtin_shufflevector(all, all, 0, 1, 2, 3);                                     \
    v = FOLD_SHORT(four, four_bits, than, v, __builtin_shufflevector(all, all, 4, 5, 6, 7));    \
    v = FOLD_SHORT(four, four_bits, than, v, __builtin_shufflevector(v, v, 2, 3, 0, 1));        \
    v = FOLD_SHORT(four, four_bits, than, v, __builtin_shufflevector(v, v, 1, 0, 3, 2));        \
    return v[0];                                                                                \
  }
DEFINE_EXTREME_ROW(max, f32, ps, float, int32_t, kiln_f32v, kiln_i32v, -INFINITY, >)
DEFINE_EXTREME_ROW(min, f32, ps, float, int32_t, kiln_f32v, kiln_i32v, INFINITY, <)
DEFINE_EXTREME_ROW(max, f64, pd, double, int64_t, kiln_f64v, kiln_i64v, -INFINITY, >)
DEFINE_EXTREME_ROW(min, f64, pd, double, int64_t, kiln_f64v, kiln_i64v, INFINITY, <)
