/* eval_reduce.h: what reduces and scans blocks, for opcodes of rule REDUCE, FIND and SCAN (part of
 * eval_isa.c). */

/* -- Lanes -- */

enum { LANES = KILN_REDUCE_LANES };

/* In `expression` a is what was reduced so far, b and c are the next. */
#define STEP(acc, i, expression)     \
  ({                                 \
    T a = (acc), b = p[i], c = q[i]; \
    (void)b, (void)c;                \
    (T)(expression);                 \
  })
/* Of numbers that models are made of; the others are kept small. */
#define UNROLLED_F KILN_UNROLLED
#define UNROLLED_I
#define UNROLLED_B
/* Of two lanes: those of a sum of products are added. */
#define FOLDED_1(expression) expression
#define FOLDED_2(expression) a + b
#define REDUCE_FNS(name, arity, classes, suffix, type, unsigned_type, class, expression)        \
  static inline void row_##name##_##suffix(void *lanes, const void *x, const void *y, int lane, \
                                           int n) {                                             \
    typedef type T __attribute__((unused));                                                     \
    typedef unsigned_type U __attribute__((unused));                                            \
    T *l = lanes;                                                                               \
    const T *p = x, *q = y;                                                                     \
    for (; n > 0 && lane % LANES != 0; n--, lane++, p++, q++)                                   \
      l[lane % LANES] = STEP(l[lane % LANES], 0, expression);                                   \
    for (; n >= 4 * LANES; n -= 4 * LANES, p += 4 * LANES, q += 4 * LANES) {                    \
      KILN_IVDEP UNROLLED_##class for (int j = 0; j < LANES; j++) {                             \
        T t = STEP(l[j], j, expression);                                                        \
        t = STEP(t, j + LANES, expression);                                                     \
        t = STEP(t, j + 2 * LANES, expression);                                                 \
        l[j] = STEP(t, j + 3 * LANES, expression);                                              \
      }                                                                                         \
    }                                                                                           \
    for (; n >= LANES; n -= LANES, p += LANES, q += LANES) {                                    \
      KILN_IVDEP UNROLLED_##class for (int j = 0; j < LANES; j++) l[j] =                        \
          STEP(l[j], j, expression);                                                            \
    }                                                                                           \
    KILN_IVDEP                                                                                  \
    for (int j = 0; j < n; j++) l[j] = STEP(l[j], j, expression);                               \
  }                                                                                             \
  static void rows_##name##_##suffix(void *lanes, const void *x, const void *y, int lane,       \
                                     int rows, int columns) {                                   \
    typedef type T __attribute__((unused));                                                     \
    const T *p = x, *q = y;                                                                     \
    if (!((classes) & (class))) return;                                                         \
    for (int r = 0; r < rows; r++, p += columns, q += columns)                                  \
      row_##name##_##suffix((T *)lanes + r * LANES, p, q, lane, columns);                       \
  }                                                                                             \
  static void columns_##name##_##suffix(void *lanes, const void *x, const void *y, int lane,    \
                                        int rows, int columns) {                                \
    typedef type T __attribute__((unused));                                                     \
    typedef unsigned_type U __attribute__((unused));                                            \
    const T *p = x, *q = y;                                                                     \
    if (!((classes) & (class))) return;                                                         \
    for (int r = 0; r < rows; r++, p += columns, q += columns) {                                \
      T *l = (T *)lanes + (lane + r) % LANES * columns;                                         \
      KILN_IVDEP                                                                                \
      for (int i = 0; i < columns; i++) l[i] = STEP(l[i], i, expression);                       \
    }                                                                                           \
  }                                                                                             \
  static inline void fold_row_##name##_##suffix(type *l) {                                      \
    typedef type T __attribute__((unused));                                                     \
    typedef unsigned_type U __attribute__((unused));                                            \
    FOLD(32, class, FOLDED_##arity(expression))                                                 \
    FOLD(16, class, FOLDED_##arity(expression))                                                 \
    FOLD(8, class, FOLDED_##arity(expression))                                                  \
    FOLD(4, class, FOLDED_##arity(expression))                                                  \
    FOLD(2, class, FOLDED_##arity(expression))                                                  \
    FOLD(1, class, FOLDED_##arity(expression))                                                  \
  }                                                                                             \
  static void fold_##name##_##suffix(void *result, void *lanes, int rows) {                     \
    type *l = lanes;                                                                            \
    if (!((classes) & (class))) return;                                                         \
    for (int r = 0; r < rows; r++, l += LANES) {                                                \
      fold_row_##name##_##suffix(l);                                                            \
      ((type *)result)[r] = l[0];                                                               \
    }                                                                                           \
  }                                                                                             \
  static void whole_##name##_##suffix(void *result, const void *first, const void *x,           \
                                      const void *y, int rows, int columns) {                   \
    typedef type T __attribute__((unused));                                                     \
    typedef unsigned_type U __attribute__((unused));                                            \
    const T *p = x, *q = y, begin = *(const T *)first;                                          \
    if (!((classes) & (class) & F)) return;                                                     \
    for (int r = 0; r < rows; r++, p += columns, q += columns) {                                \
      T l[LANES];                                                                               \
      UNROLLED_##class for (int j = 0; j < LANES; j++) l[j] = begin;                            \
      row_##name##_##suffix(l, p, q, 0, columns);                                               \
      fold_row_##name##_##suffix(l);                                                            \
      ((T *)result)[r] = l[0];                                                                  \
    }                                                                                           \
  }
#define FOLD(w, class, expression)                                                            \
  {                                                                                           \
    const T *p = l + w, *q = p;                                                               \
    KILN_IVDEP UNROLLED_##class for (int j = 0; j < w; j++) l[j] = STEP(l[j], j, expression); \
  }

#define REDUCED_FLOAT_FI(float_expression, int_expression) float_expression
#define REDUCED_INT_FI(float_expression, int_expression) int_expression
#define REDUCER(name, suffix)                                                 \
  {rows_##name##_##suffix, columns_##name##_##suffix, fold_##name##_##suffix, \
   whole_##name##_##suffix}
#define REDUCERS_REDUCE(name, arity, classes, eval)                                  \
  REDUCE_FNS(name, arity, classes, f32, float, float, F, REDUCED_FLOAT_##eval)       \
  REDUCE_FNS(name, arity, classes, f64, double, double, F, REDUCED_FLOAT_##eval)     \
  REDUCE_FNS(name, arity, classes, u8, uint8_t, uint32_t, I, REDUCED_INT_##eval)     \
  REDUCE_FNS(name, arity, classes, i8, int8_t, uint32_t, I, REDUCED_INT_##eval)      \
  REDUCE_FNS(name, arity, classes, i16, int16_t, uint32_t, I, REDUCED_INT_##eval)    \
  REDUCE_FNS(name, arity, classes, i32, int32_t, uint32_t, I, REDUCED_INT_##eval)    \
  REDUCE_FNS(name, arity, classes, i64, int64_t, uint64_t, I, REDUCED_INT_##eval)    \
  REDUCE_FNS(name, arity, classes, b1, uint8_t, uint32_t, B, REDUCED_INT_##eval)     \
  static const eval_reducer reducers_##name[EVAL_TYPE__COUNT] = {                    \
      REDUCER(name, f32), REDUCER(name, f64), REDUCER(name, u8),  REDUCER(name, i8), \
      REDUCER(name, i16), REDUCER(name, i32), REDUCER(name, i64), REDUCER(name, b1)};
#define REDUCERS_LEAF(name, arity, classes, eval)
#define REDUCERS_STORE(name, arity, classes, eval)
#define REDUCERS_CAST(name, arity, classes, eval)
#define REDUCERS_SAME(name, arity, classes, eval)
#define REDUCERS_COMPARE(name, arity, classes, eval)
#define REDUCERS_SELECT(name, arity, classes, eval)
#define REDUCERS_CHECK(name, arity, classes, eval)
#define REDUCERS_GATHER(name, arity, classes, eval)
#define REDUCERS_FIND(name, arity, classes, eval)
#define REDUCERS_SCAN(name, arity, classes, eval)
#define REDUCERS_OPEN(name, arity, classes, eval)
#define REDUCERS_END(name, arity, classes, eval)
#define KILN_LOOP_OP(name, arity, rule, classes, eval, emit) \
  REDUCERS_##rule(name, arity, classes, eval)
#include "codegen/loop/opcodes.def"
#undef REDUCERS_REDUCE
#define REDUCERS_REDUCE(name, arity, classes, eval) [KILN_LOOP_##name] = reducers_##name,
static const eval_reducer *const eval_reducers[KILN_LOOP__COUNT] = {
#include "codegen/loop/opcodes.def"
};

/* -- Places -- */

/* Of equal ones the first is taken, and so is the first NaN. A row's block is searched only where
 * its greatest is better than what was there: of most rows that is the first block. */
#define FIND_FNS(name, suffix, type, unsigned_type, is_bool) \
  FIND_FN(argmax, suffix, type, >, amax)                     \
  FIND_FN(argmin, suffix, type, <, amin)
#define BETTER(x, best, beats) ((x)beats(best) || ((x) != (x) && (best) == (best)))
#define FIND_FN(op, suffix, type, beats, extreme)                                                \
  static void find_row_##op##_##suffix(void *best, int64_t *place, const void *x, int64_t first, \
                                       int n) {                                                  \
    type lanes[LANES], *b = best;                                                                \
    const type *v = x;                                                                           \
    for (int j = 0; j < LANES; j++) lanes[j] = v[0];                                             \
    rows_##extreme##_##suffix(lanes, v, v, 0, 1, n);                                             \
    fold_##extreme##_##suffix(lanes, lanes, 1);                                                  \
    const type most = lanes[0];                                                                  \
    if (first > 0 && !BETTER(most, *b, beats)) return;                                           \
    int i = 0;                                                                                   \
    while (most == most ? v[i] != most : v[i] == v[i]) i++;                                      \
    *b = most;                                                                                   \
    *place = first + i;                                                                          \
  }                                                                                              \
  static void find_columns_##op##_##suffix(void *best, int64_t *places, const void *x,           \
                                           int64_t first, int rows, int columns) {               \
    type *b = best;                                                                              \
    for (int r = 0; r < rows; r++) {                                                             \
      const type *v = (const type *)x + r * columns;                                             \
      const int64_t place = first + r;                                                           \
      const uint8_t all = place == 0;                                                            \
      KILN_IVDEP                                                                                 \
      for (int i = 0; i < columns; i++) {                                                        \
        const uint8_t takes =                                                                    \
            (uint8_t)((v[i] beats b[i]) | ((v[i] != v[i]) & (b[i] == b[i])) | all);              \
        b[i] = takes ? v[i] : b[i];                                                              \
        places[i] = takes ? place : places[i];                                                   \
      }                                                                                          \
    }                                                                                            \
  }
EVAL_TYPES(FIND_FNS)
#define FINDER(op, suffix) {find_row_##op##_##suffix, find_columns_##op##_##suffix}
#define FINDER_ROW(op)                                                \
  {FINDER(op, f32), FINDER(op, f64), FINDER(op, u8),  FINDER(op, i8), \
   FINDER(op, i16), FINDER(op, i32), FINDER(op, i64), FINDER(op, b1)}
static const eval_finder eval_finders[2][EVAL_TYPE__COUNT] = {FINDER_ROW(argmax),
                                                              FINDER_ROW(argmin)};

/* -- Scans -- */

#define SCAN_FNS(name, classes, suffix, type, unsigned_type, class, expression)               \
  static void scan_row_##name##_##suffix(void *carried, void *r, const void *x, int n) {      \
    typedef type T __attribute__((unused));                                                   \
    typedef unsigned_type U __attribute__((unused));                                          \
    const T *p = x, *q = p;                                                                   \
    T so_far = *(T *)carried, *to = r;                                                        \
    for (int i = 0; i < n; i++) to[i] = so_far = STEP(so_far, i, expression);                 \
    *(T *)carried = so_far;                                                                   \
  }                                                                                           \
  static void scan_columns_##name##_##suffix(void *carried, void *r, const void *x, int rows, \
                                             int columns) {                                   \
    typedef type T __attribute__((unused));                                                   \
    typedef unsigned_type U __attribute__((unused));                                          \
    const T *p = x, *q = p;                                                                   \
    T *so_far = carried, *to = r;                                                             \
    for (int row = 0; row < rows; row++, p += columns, q = p, to += columns) {                \
      KILN_IVDEP                                                                              \
      for (int i = 0; i < columns; i++) to[i] = so_far[i] = STEP(so_far[i], i, expression);   \
    }                                                                                         \
  }
#undef REDUCERS_REDUCE
#define REDUCERS_REDUCE(name, arity, classes, eval)
#undef REDUCERS_SCAN
#define SCANNER(name, suffix) {scan_row_##name##_##suffix, scan_columns_##name##_##suffix}
#define REDUCERS_SCAN(name, arity, classes, eval)                                   \
  SCAN_FNS(name, classes, f32, float, float, F, REDUCED_FLOAT_##eval)               \
  SCAN_FNS(name, classes, f64, double, double, F, REDUCED_FLOAT_##eval)             \
  SCAN_FNS(name, classes, u8, uint8_t, uint32_t, I, REDUCED_INT_##eval)             \
  SCAN_FNS(name, classes, i8, int8_t, uint32_t, I, REDUCED_INT_##eval)              \
  SCAN_FNS(name, classes, i16, int16_t, uint32_t, I, REDUCED_INT_##eval)            \
  SCAN_FNS(name, classes, i32, int32_t, uint32_t, I, REDUCED_INT_##eval)            \
  SCAN_FNS(name, classes, i64, int64_t, uint64_t, I, REDUCED_INT_##eval)            \
  static const eval_scanner scanners_##name[EVAL_TYPE__COUNT] = {                   \
      SCANNER(name, f32), SCANNER(name, f64), SCANNER(name, u8), SCANNER(name, i8), \
      SCANNER(name, i16), SCANNER(name, i32), SCANNER(name, i64)};
#include "codegen/loop/opcodes.def"
#undef REDUCERS_SCAN
#define REDUCERS_SCAN(name, arity, classes, eval) [KILN_LOOP_##name] = scanners_##name,
static const eval_scanner *const eval_scanners[KILN_LOOP__COUNT] = {
#include "codegen/loop/opcodes.def"
};
#undef KILN_LOOP_OP
