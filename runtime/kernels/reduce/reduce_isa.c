/* reduce_isa.c: reductions in a compute type, by the rule of reduce.h.
 *
 * One row is reduced with its lanes in registers or cache; many columns at once keep 64 lanes for
 * a block of columns. Both give the same bits. */
#include "runtime/kernels/reduce/reduce.h"

#include <string.h>

#if KILN_KERNEL_LEVEL > 0
#include <immintrin.h>
#endif

#include "runtime/kernels/isa.h"
#include "runtime/kernels/reduce/extreme_rows.h"

/* A block of columns is so many bytes of each lane: near each other in memory, and its lanes in the
 * second cache. */
enum {
  ROWS_AT_ONCE = 4,
  COLUMN_BYTES = 4096,
  LANE_BYTES = 1 << 15,
  GROUPS = LANES * COLUMN_BYTES / LANE_BYTES,
  FEW_BYTES = 512
};
/* What the result's bits hang on beside the elements: nothing; the order of the additions; or that
 * of zeros with a sign. */
enum { ANY_ORDER, IN_ORDER, BUT_ZEROS };
#define NAME(op, tag) KILN_ISA_CAT3(op##_##tag, _, KILN_KERNEL_ISA)

/* Lane j takes lane j + w, if there is such a one: a constant w, for which the loop is unrolled. */
#define FOLD_LANES(A, FOLD, w)                              \
  for (int j = 0; j < (used - w < w ? used - w : w); j++) { \
    const A acc = lanes[j], x = lanes[j + w];               \
    lanes[j] = (A)(FOLD);                                   \
  }
#define TAKE(T, A, STEP, element) \
  {                               \
    const T x = element;          \
    const A acc = sum;            \
    sum = (A)(STEP);              \
  }
/* Whole lines of a row into its lanes: one by one. */
#define EACH_LINE(op, tag, T, A, STEP)     \
  ({                                       \
    int64_t at = 0;                        \
    for (; at + LANES <= n; at += LANES) { \
      if (ahead) FETCH_AHEAD(T, p + at)    \
      for (int j = 0; j < LANES; j++) {    \
        const T x = p[at + j];             \
        const A acc = lanes[j];            \
        lanes[j] = (A)(STEP);              \
      }                                    \
    }                                      \
    at;                                    \
  })
/* `left` elements, fewer than a vector has, and behind them `pad`. */
#if KILN_KERNEL_LEVEL == 2
#define FEW_f32(p, left, pad) \
  ((kiln_f32v)_mm512_mask_loadu_ps((__m512)((pad) - (kiln_f32v){0}), FEW_MASK(16, left), p))
#define FEW_f64(p, left, pad) \
  ((kiln_f64v)_mm512_mask_loadu_pd((__m512d)((pad) - (kiln_f64v){0}), FEW_MASK(8, left), p))
#define FEW_MASK(width, left) ((__mmask##width)((1u << (left)) - 1))
#else
#define FEW_f32(p, left, pad) FEW(float, kiln_f32v, p, left, pad)
#define FEW_f64(p, left, pad) FEW(double, kiln_f64v, p, left, pad)
#define FEW(T, V, p, left, pad)                                    \
  ({                                                               \
    T few[sizeof(V) / sizeof(T)];                                  \
    for (int64_t j = 0; j < (int64_t)(sizeof(V) / sizeof(T)); j++) \
      few[j] = j < (left) ? (p)[j] : (pad);                        \
    *(const V##_u *)few;                                           \
  })
#endif
/* A sum of a row with its lanes in registers, STEP being one of vectors; a lane that takes `pad`
 * keeps its bits. */
#define DEFINE_SUM_OF_LINE(op, tag, T, V, VU, pad, STEP)                                  \
  static T NAME(op##_line, tag)(const T *p, int64_t n, T s) {                             \
    enum { WIDTH = sizeof(V) / sizeof(T), COUNT = LANES / WIDTH };                        \
    const bool ahead = n <= AHEAD_BYTES / (int64_t)sizeof(T);                             \
    V sums[COUNT];                                                                        \
    int64_t at = 0;                                                                       \
    (void)s;                                                                              \
    KILN_MATH_UNROLL for (int v = 0; v < COUNT; v++) sums[v] = (V){0};                    \
    for (; at + LANES <= n; at += LANES) {                                                \
      if (ahead) FETCH_AHEAD(T, p + at)                                                   \
      KILN_MATH_UNROLL for (int v = 0; v < COUNT; v++) {                                  \
        const V x = *(const VU *)(p + at + v * WIDTH), acc = sums[v];                     \
        sums[v] = STEP;                                                                   \
      }                                                                                   \
    }                                                                                     \
    KILN_MATH_UNROLL for (int v = 0; v < COUNT; v++) {                                    \
      const int64_t left = n - at - v * WIDTH;                                            \
      if (left <= 0) break;                                                               \
      const T *from = p + at + v * WIDTH;                                                 \
      const V x = left >= WIDTH ? (V) * (const VU *)from : (V)FEW_##tag(from, left, pad), \
              acc = sums[v];                                                              \
      sums[v] = STEP;                                                                     \
    }                                                                                     \
    KILN_MATH_UNROLL for (int w = COUNT / 2; w > 0; w /= 2)                               \
        KILN_MATH_UNROLL for (int v = 0; v < w; v++) sums[v] += sums[v + w];              \
    T lanes[WIDTH];                                                                       \
    *(VU *)lanes = sums[0];                                                               \
    KILN_MATH_UNROLL for (int w = WIDTH / 2; w > 0; w /= 2)                               \
        KILN_MATH_UNROLL for (int j = 0; j < w; j++) lanes[j] += lanes[j + w];            \
    return lanes[0];                                                                      \
  }

/* acc, x: combine; s: the shift of SUMSQ. order: what of it the result depends on. padded: a
 * neutral lane, folded in, changes no bit, so that short rows are folded as long ones are. */
#define DEFINE_ROW_OF(op, padded, whole, LINES, tag, T, A, neutral, STEP, FOLD)   \
  static A NAME(op##_row, tag)(const char *src, int64_t n, int64_t stride, T s) { \
    A lanes[LANES];                                                               \
    (void)s;                                                                      \
    const int used = padded || n >= LANES ? LANES : (int)n;                       \
    if (n <= 0) return (A)(neutral);                                              \
    for (int j = 0; j < LANES; j++) lanes[j] = (A)(neutral);                      \
    int64_t i = 0;                                                                \
    if (whole && stride == (int64_t)sizeof(T)) {                                  \
      const T *p = (const T *)src;                                                \
      const bool ahead = n <= AHEAD_BYTES / (int64_t)sizeof(T);                   \
      i = LINES(op, tag, T, A, STEP);                                             \
      for (int j = 0; j < n - i; j++) {                                           \
        const T x = p[i + j];                                                     \
        const A acc = lanes[j];                                                   \
        lanes[j] = (A)(STEP);                                                     \
      }                                                                           \
      i = n;                                                                      \
    }                                                                             \
    for (int j = 0; i < n; i++, j = (j + 1) % LANES) {                            \
      const T x = *(const T *)(src + i * stride);                                 \
      const A acc = lanes[j];                                                     \
      lanes[j] = (A)(STEP);                                                       \
    }                                                                             \
    FOLD_LANES(A, FOLD, 32)                                                       \
    FOLD_LANES(A, FOLD, 16)                                                       \
    FOLD_LANES(A, FOLD, 8)                                                        \
    FOLD_LANES(A, FOLD, 4)                                                        \
    FOLD_LANES(A, FOLD, 2)                                                        \
    FOLD_LANES(A, FOLD, 1)                                                        \
    return lanes[0];                                                              \
  }
/* `count` rows that are `apart`, four at once; `s` of a column: its shift. */
#define ADD_ROWS(T, A, STEP, shift_of)                                            \
  for (; count >= 4; count -= 4, src += 4 * apart) {                              \
    const T *p = (const T *)src, *q = (const T *)(src + apart);                   \
    const T *u = (const T *)(src + 2 * apart), *v = (const T *)(src + 3 * apart); \
    KILN_IVDEP for (int64_t c = 0; c < columns; c++) {                            \
      const T s = shift_of;                                                       \
      A sum = lane[c];                                                            \
      (void)s;                                                                    \
      TAKE(T, A, STEP, p[c])                                                      \
      TAKE(T, A, STEP, q[c])                                                      \
      TAKE(T, A, STEP, u[c])                                                      \
      TAKE(T, A, STEP, v[c])                                                      \
      lane[c] = sum;                                                              \
    }                                                                             \
  }                                                                               \
  for (; count > 0; count--, src += apart) {                                      \
    const T *p = (const T *)src;                                                  \
    KILN_IVDEP for (int64_t c = 0; c < columns; c++) {                            \
      const T s = shift_of;                                                       \
      A sum = lane[c];                                                            \
      (void)s;                                                                    \
      TAKE(T, A, STEP, p[c])                                                      \
      lane[c] = sum;                                                              \
    }                                                                             \
  }
enum { SHIFTED_sum, SHIFTED_prod = 0, SHIFTED_max = 0, SHIFTED_min = 0 };
enum { SHIFTED_any, SHIFTED_all = 0, SHIFTED_sumabs = 0, SHIFTED_sumsq = 1 };
#define DEFINE_COLUMNS_OF(order, op, tag, T, A, neutral, STEP, FOLD)                              \
  /* A lane of the columns takes rows; a fresh one begins. Of no loop's own, for it is long. */   \
  static __attribute__((noinline)) void NAME(op##_lane, tag)(                                     \
      A *restrict lane, const char *src, int64_t count, int64_t apart, int64_t columns,           \
      const T *shift, bool fresh) {                                                               \
    for (int64_t c = 0; fresh && c < columns; c++) lane[c] = (A)(neutral);                        \
    if (SHIFTED_##op && shift) {                                                                  \
      ADD_ROWS(T, A, STEP, shift[c])                                                              \
    } else {                                                                                      \
      ADD_ROWS(T, A, STEP, (T)0)                                                                  \
    }                                                                                             \
  }                                                                                               \
  /* Of `all` lanes, `pitch` from one to the next, those that are used into the first. */         \
  static inline void NAME(op##_fold, tag)(A * lanes, int64_t used, int64_t all, int64_t pitch,    \
                                          int64_t columns) {                                      \
    for (int64_t w = all / 2; w > 0; w /= 2) {                                                    \
      for (int64_t j = 0; j < w && j + w < used; j++) {                                           \
        A *to = lanes + j * pitch;                                                                \
        const A *more = to + w * pitch;                                                           \
        KILN_IVDEP for (int64_t c = 0; c < columns; c++) {                                        \
          const A acc = to[c], x = more[c];                                                       \
          to[c] = (A)(FOLD);                                                                      \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  /* Of at most one row a lane: each is folded with that of half the lanes further as it is read. \
   */                                                                                             \
  static void NAME(op##_few, tag)(A * out, const char *src, int64_t rows, int64_t row_stride,     \
                                  int64_t columns) {                                              \
    A lanes[LANES / 2][FEW_BYTES / sizeof(A)];                                                    \
    const int64_t half = LANES / 2, used = rows < half ? rows : half;                             \
    for (int64_t c = 0; c < columns; c++) lanes[0][c] = (A)(neutral);                             \
    for (int64_t j = 0; j < used; j++) {                                                          \
      const T *p = (const T *)(src + j * row_stride);                                             \
      const T *q = j + half < rows ? (const T *)(src + (j + half) * row_stride) : NULL;           \
      A *restrict to = lanes[j];                                                                  \
      if (q) {                                                                                    \
        KILN_IVDEP for (int64_t c = 0; c < columns; c++) {                                        \
          const T s = 0;                                                                          \
          A sum = (A)(neutral), other;                                                            \
          (void)s;                                                                                \
          TAKE(T, A, STEP, q[c])                                                                  \
          other = sum, sum = (A)(neutral);                                                        \
          TAKE(T, A, STEP, p[c])                                                                  \
          const A acc = sum, x = other;                                                           \
          to[c] = (A)(FOLD);                                                                      \
        }                                                                                         \
      } else {                                                                                    \
        NAME(op##_lane, tag)(to, (const char *)p, 1, 0, columns, NULL, true);                     \
      }                                                                                           \
    }                                                                                             \
    NAME(op##_fold, tag)(lanes[0], used, half, FEW_BYTES / sizeof(A), columns);                   \
    for (int64_t c = 0; c < columns; c++) out[c] = lanes[0][c];                                   \
  }                                                                                               \
  static void NAME(op##_block, tag)(A * out, const char *src, int64_t rows, int64_t row_stride,   \
                                    int64_t columns, const T *shift) {                            \
    A lanes[LANE_BYTES / sizeof(A)] __attribute__((aligned(LINE)));                               \
    A parts[GROUPS][COLUMN_BYTES / sizeof(A)];                                                    \
    const int64_t apart = LANES * row_stride, of_line = LINE / (int64_t)sizeof(A);                \
    const int64_t pitch = (columns + of_line - 1) / of_line * of_line;                            \
    int64_t groups = 1;                                                                           \
    while (LANES / groups * pitch * (int64_t)sizeof(A) > LANE_BYTES) groups *= 2;                 \
    for (int64_t c = 0; rows <= 0 && c < columns; c++) out[c] = (A)(neutral);                     \
    for (int64_t k = 0; k < groups && k < rows; k++) {                                            \
      const int64_t all = LANES / groups, left = (rows - k + groups - 1) / groups;                \
      const int64_t used = left < all ? left : all;                                               \
      for (int64_t r = k; r < rows; r += ROWS_AT_ONCE * LANES) {                                  \
        for (int64_t j = 0; j < used && r + j * groups < rows; j++) {                             \
          const int64_t more = (rows - r - j * groups + LANES - 1) / LANES;                       \
          const int64_t count = more < ROWS_AT_ONCE ? more : ROWS_AT_ONCE;                        \
          const char *from = src + (r + j * groups) * row_stride;                                 \
          A *to = lanes + j * pitch;                                                              \
          NAME(op##_lane, tag)(to, from, count, apart, columns, shift, r == k);                   \
        }                                                                                         \
      }                                                                                           \
      NAME(op##_fold, tag)(lanes, used, all, pitch, columns);                                     \
      memcpy(groups > 1 ? parts[k] : out, lanes, (size_t)columns * sizeof(A));                    \
    }                                                                                             \
    if (groups == 1 || rows <= 0) return;                                                         \
    NAME(op##_fold, tag)(parts[0], groups < rows ? groups : rows, groups,                         \
                         COLUMN_BYTES / sizeof(A), columns);                                      \
    for (int64_t c = 0; c < columns; c++) out[c] = parts[0][c];                                   \
  }                                                                                               \
  /* One after the other, where that gives the same bits; false where it may not. */              \
  static bool NAME(op##_in_turn, tag)(A * out, const char *src, int64_t rows, int64_t row_stride, \
                                      int64_t columns) {                                          \
    int zeros = 0;                                                                                \
    if (order == IN_ORDER) return false;                                                          \
    for (int64_t c = 0; rows <= 0 && c < columns; c++) out[c] = (A)(neutral);                     \
    const int64_t part = rows / ROWS_AT_ONCE, rest = part * ROWS_AT_ONCE;                         \
    for (int64_t r = 0; r < part; r++) {                                                          \
      NAME(op##_lane, tag)(out, src + r * row_stride, ROWS_AT_ONCE, part * row_stride, columns,   \
                           NULL, r == 0);                                                         \
    }                                                                                             \
    if (rest < rows)                                                                              \
      NAME(op##_lane, tag)(out, src + rest * row_stride, rows - rest, row_stride, columns, NULL,  \
                           rest == 0);                                                            \
    if (order == ANY_ORDER) return true;                                                          \
    for (int64_t c = 0; c < columns; c++) zeros |= out[c] == 0;                                   \
    return !zeros;                                                                                \
  }                                                                                               \
  static void NAME(op, tag)(char *out, const char *src, int64_t rows, int64_t row_stride,         \
                            int64_t columns, int64_t column_stride, const void *shift) {          \
    A *results = (A *)out;                                                                        \
    const T *shifts = shift;                                                                      \
    if (columns > 1 && column_stride == (int64_t)sizeof(T) && row_stride != (int64_t)sizeof(T)) { \
      const bool few = rows <= LANES && !shift && order == IN_ORDER;                              \
      const int64_t block = (few ? FEW_BYTES : COLUMN_BYTES) / (int64_t)sizeof(A);                \
      for (int64_t c = 0; c < columns; c += block) {                                              \
        const char *from = src + c * (int64_t)sizeof(T);                                          \
        const int64_t count = columns - c < block ? columns - c : block;                          \
        if (few)                                                                                  \
          NAME(op##_few, tag)(results + c, from, rows, row_stride, count);                        \
        else if (!NAME(op##_in_turn, tag)(results + c, from, rows, row_stride, count) &&          \
                 order != ANY_ORDER)                                                              \
          NAME(op##_block, tag)                                                                   \
        (results + c, from, rows, row_stride, count, shifts ? shifts + c : NULL);                 \
      }                                                                                           \
      return;                                                                                     \
    }                                                                                             \
    for (int64_t c = 0; c < columns; c++) {                                                       \
      results[c] = NAME(op##_row, tag)(src + c * column_stride, rows, row_stride,                 \
                                       shifts ? shifts[c] : (T)0);                                \
    }                                                                                             \
  }

#define DEFINE_REDUCE(order, op, tag, T, A, neutral, STEP, FOLD)           \
  DEFINE_ROW_OF(op, true, true, EACH_LINE, tag, T, A, neutral, STEP, FOLD) \
  DEFINE_COLUMNS_OF(order, op, tag, T, A, neutral, STEP, FOLD)
/* A sum, whose STEP is one of vectors too. */
#define DEFINE_SUM(order, op, tag, T, V, pad, STEP)                                               \
  DEFINE_ROW_OF(op##_apart, true, false, EACH_LINE, tag, T, T, 0, STEP, acc + x)                  \
  DEFINE_SUM_OF_LINE(op, tag, T, V, V##_u, pad, STEP)                                             \
  static T NAME(op##_row, tag)(const char *src, int64_t n, int64_t stride, T s) {                 \
    if (n > 0 && stride == (int64_t)sizeof(T)) return NAME(op##_line, tag)((const T *)src, n, s); \
    return NAME(op##_apart_row, tag)(src, n, stride, s);                                          \
  }                                                                                               \
  DEFINE_COLUMNS_OF(order, op, tag, T, T, 0, STEP, acc + x)

/* The greater (less), x of equal ones; a NaN stays, for bits that are all set are one. Compilers
 * make vectors of it, and none of two selections. */
#define EXTREME(T, I, than)          \
  ({                                 \
    union {                          \
      T value;                       \
      I bits;                        \
    } most = {acc than x ? acc : x}; \
    most.bits |= -(I)(acc != acc);   \
    most.value;                      \
  })
#define DEFINE_EXTREME(op, tag, T, I, neutral, than)                                         \
  DEFINE_ROW_OF(op##_apart, true, false, EACH_LINE, tag, T, T, neutral, EXTREME(T, I, than), \
                EXTREME(T, I, than))                                                         \
  static T NAME(op##_row, tag)(const char *src, int64_t n, int64_t stride, T s) {            \
    if (n > 0 && stride == (int64_t)sizeof(T)) return op##_of_row_##tag((const T *)src, n);  \
    return NAME(op##_apart_row, tag)(src, n, stride, s);                                     \
  }                                                                                          \
  DEFINE_COLUMNS_OF(BUT_ZEROS, op, tag, T, T, neutral, EXTREME(T, I, than), EXTREME(T, I, than))
#define FLOAT_REDUCE(tag, T, I, V, FABS)                                                    \
  DEFINE_SUM(IN_ORDER, sum, tag, T, V, 0, acc + x)                                          \
  DEFINE_REDUCE(IN_ORDER, prod, tag, T, T, 1, acc *x, acc *x)                               \
  DEFINE_EXTREME(max, tag, T, I, -INFINITY, >)                                              \
  DEFINE_EXTREME(min, tag, T, I, INFINITY, <)                                               \
  DEFINE_SUM(IN_ORDER, sumsq, tag, T, V, s, acc + (x - s) * (x - s))                        \
  DEFINE_REDUCE(IN_ORDER, sumabs, tag, T, T, 0, acc + FABS(x), acc + x)                     \
  DEFINE_REDUCE(ANY_ORDER, any, tag, T, T, 0, (acc != 0) | (x != 0), (acc != 0) | (x != 0)) \
  DEFINE_REDUCE(ANY_ORDER, all, tag, T, T, 1, (acc != 0) & (x != 0), (acc != 0) & (x != 0))
FLOAT_REDUCE(f32, float, int32_t, kiln_f32v, fabsf)
FLOAT_REDUCE(f64, double, int64_t, kiln_f64v, fabs)

#define INT_REDUCE(tag, T, U, least, greatest)                                              \
  DEFINE_REDUCE(ANY_ORDER, sum, tag, T, T, 0, (U)acc + (U)x, (U)acc + (U)x)                 \
  DEFINE_REDUCE(ANY_ORDER, prod, tag, T, T, 1, (U)acc *(U)x, (U)acc *(U)x)                  \
  DEFINE_REDUCE(ANY_ORDER, max, tag, T, T, least, acc > x ? acc : x, acc > x ? acc : x)     \
  DEFINE_REDUCE(ANY_ORDER, min, tag, T, T, greatest, acc < x ? acc : x, acc < x ? acc : x)  \
  DEFINE_REDUCE(ANY_ORDER, any, tag, T, T, 0, (acc != 0) | (x != 0), (acc != 0) | (x != 0)) \
  DEFINE_REDUCE(ANY_ORDER, all, tag, T, T, 1, (acc != 0) & (x != 0), (acc != 0) & (x != 0))
INT_REDUCE(i32, int32_t, uint32_t, INT32_MIN, INT32_MAX)
INT_REDUCE(i64, int64_t, uint64_t, INT64_MIN, INT64_MAX)

/* Any byte but 0 is true, as a file may have it. */
DEFINE_REDUCE(ANY_ORDER, any, b8, uint8_t, uint8_t, 0, (acc != 0) | (x != 0), (acc != 0) | (x != 0))
DEFINE_REDUCE(ANY_ORDER, all, b8, uint8_t, uint8_t, 1, (acc != 0) & (x != 0), (acc != 0) & (x != 0))

/* A plain product of complex numbers. */
#define COMPLEX_MUL(T)                                                        \
  ({                                                                          \
    T product;                                                                \
    __real__ product = __real__ acc * __real__ x - __imag__ acc * __imag__ x; \
    __imag__ product = __real__ acc * __imag__ x + __imag__ acc * __real__ x; \
    product;                                                                  \
  })
#define DEFINE_COMPLEX(order, op, tag, T, neutral, STEP, FOLD)              \
  DEFINE_ROW_OF(op, false, true, EACH_LINE, tag, T, T, neutral, STEP, FOLD) \
  DEFINE_COLUMNS_OF(order, op, tag, T, T, neutral, STEP, FOLD)
#define COMPLEX_REDUCE(tag, T)                                                            \
  DEFINE_COMPLEX(IN_ORDER, sum, tag, T, 0, acc + x, acc + x)                              \
  DEFINE_COMPLEX(IN_ORDER, prod, tag, T, 1, COMPLEX_MUL(T), COMPLEX_MUL(T))               \
  DEFINE_COMPLEX(ANY_ORDER, any, tag, T, 0, (acc != 0) | (x != 0), (acc != 0) | (x != 0)) \
  DEFINE_COMPLEX(ANY_ORDER, all, tag, T, 1, (acc != 0) & (x != 0), (acc != 0) & (x != 0))
KILN_ISA_SCALAR_BEGIN
COMPLEX_REDUCE(c64, float _Complex)
COMPLEX_REDUCE(c128, double _Complex)
KILN_ISA_SCALAR_END

#define ROW_FLOAT(op, name) \
  [KILN_REDUCE_##op] = {[KILN_CTYPE_F32] = NAME(name, f32), [KILN_CTYPE_F64] = NAME(name, f64)},
#define ROW_REAL(op, name)                                  \
  [KILN_REDUCE_##op] = {[KILN_CTYPE_I32] = NAME(name, i32), \
                        [KILN_CTYPE_I64] = NAME(name, i64), \
                        [KILN_CTYPE_F32] = NAME(name, f32), \
                        [KILN_CTYPE_F64] = NAME(name, f64)},
#define ROW_NUMBER(op, name, ...)                             \
  [KILN_REDUCE_##op] = {[KILN_CTYPE_I32] = NAME(name, i32),   \
                        [KILN_CTYPE_I64] = NAME(name, i64),   \
                        [KILN_CTYPE_F32] = NAME(name, f32),   \
                        [KILN_CTYPE_F64] = NAME(name, f64),   \
                        [KILN_CTYPE_C64] = NAME(name, c64),   \
                        [KILN_CTYPE_C128] = NAME(name, c128), \
                        __VA_ARGS__},
const kiln_reduce_loop KILN_ISA_CAT2(kiln__reduce_,
                                     KILN_KERNEL_ISA)[KILN_REDUCE__COUNT][KILN_CTYPE__COUNT] = {
    ROW_NUMBER(SUM, sum) ROW_NUMBER(PROD, prod) ROW_REAL(MAX, max) ROW_REAL(MIN, min)
        ROW_FLOAT(SUMSQ, sumsq) ROW_FLOAT(ABS, sumabs)
            ROW_NUMBER(ANY, any, [KILN_CTYPE_BOOL] = NAME(any, b8))
                ROW_NUMBER(ALL, all, [KILN_CTYPE_BOOL] = NAME(all, b8))};
