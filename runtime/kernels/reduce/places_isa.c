/* places_isa.c: where the greatest or the least stands: the first of equal ones; a NaN beats all.
 *
 * Of a row the extreme of each block is taken first (reduce_isa.c); only the block that has the
 * row's is searched. Columns keep what is best so far, with its row, and read the rows one after
 * the other, counted in numbers of an element's size from one look at the budget to the next. */
#include <string.h>

#include "base/budget.h"
#include "runtime/kernels/isa.h"

/* A row's block is in the first cache when it is searched; a block of columns is a page wide. */
enum { BLOCK = 4096, STEP = 64, COLUMN_BYTES = 4096 };
#define NAME(op, tag) KILN_ISA_CAT3(op##_##tag, _, KILN_KERNEL_ISA)
#define REDUCE KILN_ISA_CAT2(kiln__reduce_, KILN_KERNEL_ISA)

/* Compilers would take two rows at once; but the processor fetches ahead what is read in turn. */
#define ONE_ROW_AT_A_TIME __asm__ volatile("" ::: "memory")

/* Whether x is better than b: one of `than` and its contrary `reach`, in which NaN are the same. */
#define BEYOND_FLOAT(x, b, than, reach) (!((x)reach(b)) & ((b) == (b)))
#define BEYOND_INT(x, b, than, reach) ((x)than(b))
/* x where the mask has ones, else b: compilers make vectors of it. */
#define PICK_FLOAT(T, I, mask, x, b)                          \
  ({                                                          \
    union {                                                   \
      T value;                                                \
      I bits;                                                 \
    } of_x = {x}, of_b = {b};                                 \
    of_x.bits = (of_x.bits & (mask)) | (of_b.bits & ~(mask)); \
    of_x.value;                                               \
  })
#define PICK_INT(T, I, mask, x, b) ((T)(((x) & (mask)) | ((b) & ~(mask))))
#define SAME(x) (x)
#define TRUTH(x) ((x) != 0) /* any byte but 0, as a file may have it */

/* The first x that is hit; n where none is. Whole steps are asked first, then which of a step's. */
#define DEFINE_FIND(name, tag, T, load, is_hit)                                      \
  static int64_t NAME(name, tag)(const T *p, int64_t n, T most) {                    \
    int64_t at = 0;                                                                  \
    (void)most;                                                                      \
    for (; at + STEP <= n; at += STEP) {                                             \
      int hit = 0;                                                                   \
      for (int j = 0; j < STEP; j++) {                                               \
        const T x = load(p[at + j]);                                                 \
        hit |= is_hit;                                                               \
      }                                                                              \
      if (!hit) continue;                                                            \
      int32_t first = STEP;                                                          \
      for (int32_t j = 0; j < STEP; j++) {                                           \
        const T x = load(p[at + j]);                                                 \
        const int32_t mask = -(int32_t)(is_hit), here = (j & mask) | (STEP & ~mask); \
        first = here < first ? here : first;                                         \
      }                                                                              \
      return at + first;                                                             \
    }                                                                                \
    for (; at < n; at++) {                                                           \
      const T x = load(p[at]);                                                       \
      if (is_hit) break;                                                             \
    }                                                                                \
    return at;                                                                       \
  }
#define DEFINE_PLACES(op, tag, kind, T, I, load, extreme, than, reach)                             \
  static int64_t NAME(op##_row, tag)(const T *row, int64_t n, T *value) {                          \
    int64_t block = 0, left = KILN_BUDGET_ITEMS, count;                                            \
    T best = load(row[0]), most;                                                                   \
    for (int64_t first = 0; first < n && best == best; first += BLOCK) {                           \
      if (kiln_budget_spent(&left, first > 0 ? BLOCK : 0)) break;                                  \
      count = n - first < BLOCK ? n - first : BLOCK;                                               \
      REDUCE extreme((char *)&most, (const char *)(row + first), count, sizeof(T), 1, 0, NULL);    \
      if (first > 0 && !(BEYOND_##kind(most, best, than, reach))) continue;                        \
      best = most;                                                                                 \
      block = first;                                                                               \
    }                                                                                              \
    most = *value = best;                                                                          \
    count = n - block < BLOCK ? n - block : BLOCK;                                                 \
    return block + (most == most ? NAME(find, tag)(row + block, count, most)                       \
                                 : NAME(find_nan, tag)(row + block, count, most));                 \
  }                                                                                                \
  static void NAME(op##_columns, tag)(int64_t *places, T *values, const char *src, int64_t rows,   \
                                      int64_t row_stride, int64_t columns) {                       \
    T best[COLUMN_BYTES / sizeof(T)];                                                              \
    I at[COLUMN_BYTES / sizeof(T)];                                                                \
    for (int64_t c = 0; c < columns; c++) {                                                        \
      best[c] = load(((const T *)src)[c]);                                                         \
      places[c] = 0;                                                                               \
    }                                                                                              \
    const int64_t some = KILN_BUDGET_ITEMS / columns;                                              \
    int64_t left = KILN_BUDGET_ITEMS;                                                              \
    for (int64_t first = 0, count; first < rows; first += count) {                                 \
      if (kiln_budget_spent(&left, first > 0 ? some * columns : 0)) break;                         \
      count = rows - first < some ? rows - first : some;                                           \
      for (int64_t c = 0; c < columns; c++) at[c] = -1;                                            \
      for (int64_t r = 0; r < count; r++) {                                                        \
        ONE_ROW_AT_A_TIME;                                                                         \
        const T *from = (const T *)(src + (first + r) * row_stride);                               \
        const I here = (I)r;                                                                       \
        KILN_IVDEP for (int64_t c = 0; c < columns; c++) {                                         \
          const T x = load(from[c]), b = best[c];                                                  \
          const I take = -(I)(BEYOND_##kind(x, b, than, reach));                                   \
          best[c] = PICK_##kind(T, I, take, x, b);                                                 \
          at[c] = (here & take) | (at[c] & ~take);                                                 \
        }                                                                                          \
      }                                                                                            \
      for (int64_t c = 0; c < columns; c++) places[c] = at[c] < 0 ? places[c] : first + at[c];     \
    }                                                                                              \
    memcpy(values, best, (size_t)columns * sizeof(T));                                             \
  }                                                                                                \
  static void NAME(op, tag)(int64_t *places, char *values, const char *src, int64_t rows,          \
                            int64_t row_stride, int64_t columns, int64_t column_stride) {          \
    T *to = (T *)values;                                                                           \
    const int64_t some = row_stride == (int64_t)sizeof(T) ? 1 : COLUMN_BYTES / (int64_t)sizeof(T); \
    for (int64_t c = 0; c < columns; c += some) {                                                  \
      const char *from = src + c * column_stride;                                                  \
      if (row_stride == (int64_t)sizeof(T))                                                        \
        places[c] = NAME(op##_row, tag)((const T *)from, rows, to + c);                            \
      else                                                                                         \
        NAME(op##_columns, tag)                                                                    \
      (places + c, to + c, from, rows, row_stride, columns - c < some ? columns - c : some);       \
    }                                                                                              \
  }
#define DEFINE_BOTH(tag, kind, T, I, load, most_op, least_op)    \
  DEFINE_FIND(find, tag, T, load, x == most)                     \
  DEFINE_FIND(find_nan, tag, T, load, x != x)                    \
  DEFINE_PLACES(greatest, tag, kind, T, I, load, most_op, >, <=) \
  DEFINE_PLACES(least, tag, kind, T, I, load, least_op, <, >=)
DEFINE_BOTH(f32, FLOAT, float, int32_t,
            SAME, [KILN_REDUCE_MAX][KILN_CTYPE_F32], [KILN_REDUCE_MIN][KILN_CTYPE_F32])
DEFINE_BOTH(f64, FLOAT, double, int64_t,
            SAME, [KILN_REDUCE_MAX][KILN_CTYPE_F64], [KILN_REDUCE_MIN][KILN_CTYPE_F64])
DEFINE_BOTH(i32, INT, int32_t, int32_t,
            SAME, [KILN_REDUCE_MAX][KILN_CTYPE_I32], [KILN_REDUCE_MIN][KILN_CTYPE_I32])
DEFINE_BOTH(i64, INT, int64_t, int64_t,
            SAME, [KILN_REDUCE_MAX][KILN_CTYPE_I64], [KILN_REDUCE_MIN][KILN_CTYPE_I64])
DEFINE_BOTH(b8, INT, uint8_t, int32_t,
            TRUTH, [KILN_REDUCE_ANY][KILN_CTYPE_BOOL], [KILN_REDUCE_ALL][KILN_CTYPE_BOOL])

#define ROW(name)                      \
  {[KILN_CTYPE_BOOL] = NAME(name, b8), \
   [KILN_CTYPE_I32] = NAME(name, i32), \
   [KILN_CTYPE_I64] = NAME(name, i64), \
   [KILN_CTYPE_F32] = NAME(name, f32), \
   [KILN_CTYPE_F64] = NAME(name, f64)}
const kiln_place_loop KILN_ISA_CAT2(kiln__places_, KILN_KERNEL_ISA)[2][KILN_CTYPE__COUNT] = {
    ROW(least), ROW(greatest)};
