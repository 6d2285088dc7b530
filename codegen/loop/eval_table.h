/* eval_table.h: the functions over blocks that the evaluator calls: a table for each instruction
 * set, made in eval_isa.c.
 *
 * r may be one of the operands where elements have the same size; else blocks do not overlap. No
 * function touches what lies behind the last element. */
#pragma once

#include "codegen/loop/loop.h"

/* r[i] of x[i], y[i] and z[i]; operands that the opcode does not have are x again. */
typedef void (*eval_fn)(void *r, const void *x, const void *y, const void *z, int n);
typedef void (*eval_copy_fn)(void *r, int64_t r_stride, const void *x, int64_t x_stride, int n);
/* r[i, j] of x[j, i]: r has `rows` rows and `columns` columns, each `r_row` elements behind the one
 * before; x those of the other shape. */
typedef void (*eval_transpose_fn)(void *r, int64_t r_row, const void *x, int64_t x_row, int columns,
                                  int rows);

/* By the rule of reduce.h. An accumulator has KILN_REDUCE_LANES lanes. */
typedef struct eval_reducer {
  /* Of each row: x[0], x[1], ... go to lanes `lane`, `lane` + 1, ... */
  void (*rows)(void *lanes, const void *x, const void *y, int lane, int rows, int columns);
  /* A lane has an element for each column: row r goes to lane `lane` + r. */
  void (*columns)(void *lanes, const void *x, const void *y, int lane, int rows, int columns);
  void (*fold)(void *result, void *lanes, int rows); /* of rows: an element for each */
  /* All of it for rows that have no other elements; lanes begin with `first`. */
  void (*whole)(void *result, const void *first, const void *x, const void *y, int rows,
                int columns);
} eval_reducer;

/* The place of the greatest or least: x[0] or the first row is at place `first`, the next ones at
 * those behind it. Place 0 comes first, and no place twice. */
typedef struct eval_finder {
  void (*row)(void *best, int64_t *place, const void *x, int64_t first, int n);
  void (*columns)(void *best, int64_t *places, const void *x, int64_t first, int rows, int columns);
} eval_finder;

/* r[i] of what is carried and x[i], which is carried on. Of columns: row after row, an element for
 * each column. */
typedef struct eval_scanner {
  void (*row)(void *carried, void *r, const void *x, int n);
  void (*columns)(void *carried, void *r, const void *x, int rows, int columns);
} eval_scanner;

/* The types of operands: X(name, suffix, C type, a type in which it does not overflow, is bool).
 * The fourth is at least as wide as int, so that nothing is promoted to a signed type. */
#define EVAL_TYPES(X)               \
  X(F32, f32, float, float, 0)      \
  X(F64, f64, double, double, 0)    \
  X(U8, u8, uint8_t, uint32_t, 0)   \
  X(I8, i8, int8_t, uint32_t, 0)    \
  X(I16, i16, int16_t, uint32_t, 0) \
  X(I32, i32, int32_t, uint32_t, 0) \
  X(I64, i64, int64_t, uint64_t, 0) \
  X(BOOL, b1, uint8_t, uint32_t, 1)
enum {
#define EVAL_TYPE_ENUM(name, suffix, type, unsigned_type, is_bool) EVAL_TYPE_##name,
  EVAL_TYPES(EVAL_TYPE_ENUM)
#undef EVAL_TYPE_ENUM
      EVAL_TYPE__COUNT
};

/* By the logarithm of an element's size. */
enum { EVAL_SIZES = 4 };

struct kiln_eval_table {
  const eval_fn (*ops)[EVAL_TYPE__COUNT];   /* by the type of the operands */
  const eval_fn (*casts)[EVAL_TYPE__COUNT]; /* from, to */
  eval_fn from_half[2], to_half[2];         /* f16, bf16; to and from f32 */
  eval_fn select[EVAL_SIZES];
  eval_copy_fn copy[EVAL_SIZES];
  eval_transpose_fn transpose[EVAL_SIZES];
  const eval_reducer *const *reducers;            /* of opcodes of rule REDUCE */
  const eval_finder (*finders)[EVAL_TYPE__COUNT]; /* argmax, argmin */
  const eval_scanner *const *scanners;            /* of opcodes of rule SCAN */
};
