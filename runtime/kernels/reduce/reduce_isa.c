/* reduce_isa.c: reductions in a compute type, by the rule of reduce.h.
 *
 * One row is reduced with its lanes in registers or cache; many columns at once keep 64 lanes for
 * a block of columns. Both give the same bits. */
#include "runtime/kernels/reduce/reduce.h"

#include <math.h>

#include "runtime/kernels/isa.h"

/* A block of columns is so many bytes of each lane: near each other in memory, and its lanes in the
 * second cache. */
enum { LANES = KILN_REDUCE_LANES, COLUMN_BYTES = 512, ROWS_AT_ONCE = 4 };
#define NAME(op, tag) KILN_ISA_CAT3(op##_##tag, _, KILN_KERNEL_ISA)

/* Lane j takes lane j + w, if there is such a one: a constant w, for which the loop is unrolled. */
#define FOLD_LANES(T, A, FOLD, w)                           \
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
/* acc, x: combine; s: the shift of SUMSQ. padded: a neutral lane, folded in, changes no bit, so
 * that short rows are folded as long ones are. */
#define DEFINE_REDUCE_OF(padded, chain, op, tag, T, A, neutral, STEP, FOLD)                       \
  static A NAME(op##_row, tag)(const char *src, int64_t n, int64_t stride, T s) {                 \
    A lanes[LANES];                                                                               \
    (void)s;                                                                                      \
    const int used = padded || n >= LANES ? LANES : (int)n;                                       \
    if (n <= 0) return (A)(neutral);                                                              \
    for (int j = 0; j < LANES; j++) lanes[j] = (A)(neutral);                                      \
    int64_t i = 0;                                                                                \
    if (stride == (int64_t)sizeof(T)) {                                                           \
      const T *p = (const T *)src;                                                                \
      for (; i + LANES <= n; i += LANES) {                                                        \
        for (int j = 0; j < LANES; j++) {                                                         \
          const T x = p[i + j];                                                                   \
          const A acc = lanes[j];                                                                 \
          lanes[j] = (A)(STEP);                                                                   \
        }                                                                                         \
      }                                                                                           \
      for (int j = 0; j < n - i; j++) {                                                           \
        const T x = p[i + j];                                                                     \
        const A acc = lanes[j];                                                                   \
        lanes[j] = (A)(STEP);                                                                     \
      }                                                                                           \
      i = n;                                                                                      \
    }                                                                                             \
    for (int j = 0; i < n; i++, j = (j + 1) % LANES) {                                            \
      const T x = *(const T *)(src + i * stride);                                                 \
      const A acc = lanes[j];                                                                     \
      lanes[j] = (A)(STEP);                                                                       \
    }                                                                                             \
    FOLD_LANES(T, A, FOLD, 32)                                                                    \
    FOLD_LANES(T, A, FOLD, 16)                                                                    \
    FOLD_LANES(T, A, FOLD, 8)                                                                     \
    FOLD_LANES(T, A, FOLD, 4)                                                                     \
    FOLD_LANES(T, A, FOLD, 2)                                                                     \
    FOLD_LANES(T, A, FOLD, 1)                                                                     \
    return lanes[0];                                                                              \
  }                                                                                               \
  /* A lane of the columns takes `count` rows that are `apart`, four at once; a fresh one begins. \
   */                                                                                             \
  static inline __attribute__((always_inline)) void NAME(op##_lane, tag)(                         \
      A *restrict lane, const char *src, int64_t count, int64_t apart, int64_t columns,           \
      const T *shift, bool fresh) {                                                               \
    for (; chain && count >= 4; count -= 4, src += 4 * apart, fresh = false) {                    \
      const T *p = (const T *)src, *q = (const T *)(src + apart);                                 \
      const T *u = (const T *)(src + 2 * apart), *v = (const T *)(src + 3 * apart);               \
      KILN_IVDEP for (int64_t c = 0; c < columns; c++) {                                          \
        const T s = shift ? shift[c] : (T)0;                                                      \
        A sum = fresh ? (A)(neutral) : lane[c];                                                   \
        (void)s;                                                                                  \
        TAKE(T, A, STEP, p[c])                                                                    \
        TAKE(T, A, STEP, q[c])                                                                    \
        TAKE(T, A, STEP, u[c])                                                                    \
        TAKE(T, A, STEP, v[c])                                                                    \
        lane[c] = sum;                                                                            \
      }                                                                                           \
    }                                                                                             \
    for (; count > 0; count--, src += apart, fresh = false) {                                     \
      const T *p = (const T *)src;                                                                \
      KILN_IVDEP for (int64_t c = 0; c < columns; c++) {                                          \
        const T s = shift ? shift[c] : (T)0;                                                      \
        A sum = fresh ? (A)(neutral) : lane[c];                                                   \
        (void)s;                                                                                  \
        TAKE(T, A, STEP, p[c])                                                                    \
        lane[c] = sum;                                                                            \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  static void NAME(op##_block, tag)(A * out, const char *src, int64_t rows, int64_t row_stride,   \
                                    int64_t columns, const T *shift) {                            \
    A lanes[LANES][COLUMN_BYTES / sizeof(A)];                                                     \
    const int64_t used = rows < LANES ? rows : LANES, apart = LANES * row_stride;                 \
    const int64_t half = LANES / 2, fresh = rows <= LANES && !shift ? used : 0;                   \
    for (int64_t c = 0; c < columns; c++) lanes[0][c] = (A)(neutral);                             \
    for (int64_t j = 0; j < fresh && j < half; j++) {                                             \
      const T *p = (const T *)(src + j * row_stride);                                             \
      const T *q = j + half < used ? (const T *)(src + (j + half) * row_stride) : NULL;           \
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
    for (int64_t r = 0; !fresh && r < rows; r += ROWS_AT_ONCE * LANES) {                          \
      for (int64_t j = 0; j < used && r + j < rows; j++) {                                        \
        const int64_t left = (rows - r - j + LANES - 1) / LANES;                                  \
        const int64_t count = left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE;                          \
        const char *from = src + (r + j) * row_stride;                                            \
        if (shift)                                                                                \
          NAME(op##_lane, tag)(lanes[j], from, count, apart, columns, shift, r == 0);             \
        else                                                                                      \
          NAME(op##_lane, tag)(lanes[j], from, count, apart, columns, NULL, r == 0);              \
      }                                                                                           \
    }                                                                                             \
    for (int64_t w = fresh ? half / 2 : half; w > 0; w /= 2) {                                    \
      for (int64_t j = 0; j < w && j + w < used; j++) {                                           \
        A *restrict to = lanes[j];                                                                \
        KILN_IVDEP for (int64_t c = 0; c < columns; c++) {                                        \
          const A acc = to[c], x = lanes[j + w][c];                                               \
          to[c] = (A)(FOLD);                                                                      \
        }                                                                                         \
      }                                                                                           \
    }                                                                                             \
    for (int64_t c = 0; c < columns; c++) out[c] = lanes[0][c];                                   \
  }                                                                                               \
  static void NAME(op, tag)(char *out, const char *src, int64_t rows, int64_t row_stride,         \
                            int64_t columns, int64_t column_stride, const void *shift) {          \
    A *results = (A *)out;                                                                        \
    const T *shifts = shift;                                                                      \
    if (columns > 1 && column_stride == (int64_t)sizeof(T) && row_stride != (int64_t)sizeof(T)) { \
      const int64_t block = COLUMN_BYTES / (int64_t)sizeof(A);                                    \
      for (int64_t c = 0; c < columns; c += block) {                                              \
        NAME(op##_block, tag)                                                                     \
        (results + c, src + c * (int64_t)sizeof(T), rows, row_stride,                             \
         columns - c < block ? columns - c : block, shifts ? shifts + c : NULL);                  \
      }                                                                                           \
      return;                                                                                     \
    }                                                                                             \
    for (int64_t c = 0; c < columns; c++) {                                                       \
      results[c] = NAME(op##_row, tag)(src + c * column_stride, rows, row_stride,                 \
                                       shifts ? shifts[c] : (T)0);                                \
    }                                                                                             \
  }

#define DEFINE_REDUCE(...) DEFINE_REDUCE_OF(true, true, __VA_ARGS__)
/* GCC makes no good vectors of several selections in a row. */
#define DEFINE_SELECT(...) DEFINE_REDUCE_OF(true, false, __VA_ARGS__)

/* In two steps, the first of which is an instruction. */
#define EXTREME(T, than)                 \
  ({                                     \
    const T most = acc than x ? acc : x; \
    acc != acc ? acc : most;             \
  })
#define FLOAT_REDUCE(tag, T, FABS)                                               \
  DEFINE_REDUCE(sum, tag, T, T, 0, acc + x, acc + x)                             \
  DEFINE_REDUCE(prod, tag, T, T, 1, acc *x, acc *x)                              \
  DEFINE_SELECT(max, tag, T, T, -INFINITY, EXTREME(T, >), EXTREME(T, >))         \
  DEFINE_SELECT(min, tag, T, T, INFINITY, EXTREME(T, <), EXTREME(T, <))          \
  DEFINE_REDUCE(sumsq, tag, T, T, 0, acc + (x - s) * (x - s), acc + x)           \
  DEFINE_REDUCE(sumabs, tag, T, T, 0, acc + FABS(x), acc + x)                    \
  DEFINE_REDUCE(any, tag, T, T, 0, (acc != 0) | (x != 0), (acc != 0) | (x != 0)) \
  DEFINE_REDUCE(all, tag, T, T, 1, (acc != 0) & (x != 0), (acc != 0) & (x != 0))
FLOAT_REDUCE(f32, float, fabsf)
FLOAT_REDUCE(f64, double, fabs)

#define INT_REDUCE(tag, T, U, least, greatest)                                   \
  DEFINE_REDUCE(sum, tag, T, T, 0, (U)acc + (U)x, (U)acc + (U)x)                 \
  DEFINE_REDUCE(prod, tag, T, T, 1, (U)acc *(U)x, (U)acc *(U)x)                  \
  DEFINE_REDUCE(max, tag, T, T, least, acc > x ? acc : x, acc > x ? acc : x)     \
  DEFINE_REDUCE(min, tag, T, T, greatest, acc < x ? acc : x, acc < x ? acc : x)  \
  DEFINE_REDUCE(any, tag, T, T, 0, (acc != 0) | (x != 0), (acc != 0) | (x != 0)) \
  DEFINE_REDUCE(all, tag, T, T, 1, (acc != 0) & (x != 0), (acc != 0) & (x != 0))
INT_REDUCE(i32, int32_t, uint32_t, INT32_MIN, INT32_MAX)
INT_REDUCE(i64, int64_t, uint64_t, INT64_MIN, INT64_MAX)

/* Any byte but 0 is true, as a file may have it. */
DEFINE_REDUCE(any, b8, uint8_t, uint8_t, 0, (acc != 0) | (x != 0), (acc != 0) | (x != 0))
DEFINE_REDUCE(all, b8, uint8_t, uint8_t, 1, (acc != 0) & (x != 0), (acc != 0) & (x != 0))

/* A plain product of complex numbers. */
#define COMPLEX_MUL(T)                                                        \
  ({                                                                          \
    T product;                                                                \
    __real__ product = __real__ acc * __real__ x - __imag__ acc * __imag__ x; \
    __imag__ product = __real__ acc * __imag__ x + __imag__ acc * __real__ x; \
    product;                                                                  \
  })
#define COMPLEX_REDUCE(tag, T)                                                                   \
  DEFINE_REDUCE_OF(false, true, sum, tag, T, T, 0, acc + x, acc + x)                             \
  DEFINE_REDUCE_OF(false, true, prod, tag, T, T, 1, COMPLEX_MUL(T), COMPLEX_MUL(T))              \
  DEFINE_REDUCE_OF(false, true, any, tag, T, T, 0, (acc != 0) | (x != 0), (acc != 0) | (x != 0)) \
  DEFINE_REDUCE_OF(false, true, all, tag, T, T, 1, (acc != 0) & (x != 0), (acc != 0) & (x != 0))
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
