/* dtype.h: facts about element types and PyTorch's type promotion. One implementation serves the
 * interpreter's kernels, shape functions and lowering. */
#pragma once

#include "base/base.h"

/* Categories order promotion: bool < integral < floating < complex. */
typedef enum kiln_dtype_category {
  KILN_CATEGORY_BOOL,
  KILN_CATEGORY_INT,
  KILN_CATEGORY_FLOAT,
  KILN_CATEGORY_COMPLEX,
  KILN_CATEGORY_OTHER, /* quantised, float8 */
} kiln_dtype_category;

bool kiln_dtype_is_valid(int64_t number);
extern const uint8_t kiln__dtype_sizes[32];
/* kiln_dtype_size for a dtype that is known to be valid, inlined. */
static inline size_t kiln_dtype_bytes(kiln_dtype dtype) {
  return kiln__dtype_sizes[(unsigned)dtype & 31];
}
kiln_dtype_category kiln_dtype_category_of(kiln_dtype dtype);
static inline bool kiln_dtype_is_float(kiln_dtype d) {
  return kiln_dtype_category_of(d) == KILN_CATEGORY_FLOAT;
}
static inline bool kiln_dtype_is_complex(kiln_dtype d) {
  return kiln_dtype_category_of(d) == KILN_CATEGORY_COMPLEX;
}
/* Integral, with or without bool. */
static inline bool kiln_dtype_is_int(kiln_dtype d, bool or_bool) {
  kiln_dtype_category c = kiln_dtype_category_of(d);
  return c == KILN_CATEGORY_INT || (or_bool && c == KILN_CATEGORY_BOOL);
}
/* Of two bytes: their sums are of f32. */
static inline bool kiln_dtype_is_half(kiln_dtype d) {
  return d == KILN_DTYPE_F16 || d == KILN_DTYPE_BF16;
}
/* Quantised and float8: few kernels take them, and no other knows them (kiln_kernel.refuses). */
#define KILN_RARE_DTYPES                                                                           \
  (1u << KILN_DTYPE_QI8 | 1u << KILN_DTYPE_QU8 | 1u << KILN_DTYPE_QI32 | 1u << KILN_DTYPE_F8E5M2 | \
   1u << KILN_DTYPE_F8E4M3)
static inline bool kiln_dtype_is_rare(kiln_dtype d) {
  return (unsigned)d < 32 && (KILN_RARE_DTYPES >> d & 1);
}
/* Name in IR types ("Float") and in errors ("float"). Static. */
const char *kiln_dtype_ir_name(kiln_dtype dtype);
const char *kiln_dtype_short_name(kiln_dtype dtype);
/* KILN_DTYPE_NONE when no dtype has that IR name, or that name in Python ("float32"). */
kiln_dtype kiln_dtype_from_ir_name(kiln_str name);
kiln_dtype kiln_dtype_from_name(kiln_str name);

/* The dtype that holds both (c10::promoteTypes); NONE when there is none. */
kiln_dtype kiln_dtype_promote(kiln_dtype a, kiln_dtype b);
/* True when a result of dtype `from` may be written to a tensor of `to` by an in-place or out=
 * operator: never complex to real, float to integral, or non-bool to bool. */
bool kiln_dtype_can_cast(kiln_dtype from, kiln_dtype to);

/* Promotion over mixed operands (at::result_type): tensors with dimensions win over 0-dim tensors,
 * those over Python numbers, unless a later class has a higher category. Start from
 * KILN_PROMOTION_INIT, add every operand, read the result. */
typedef struct kiln_promotion {
  kiln_dtype dim, zero_dim, number;
} kiln_promotion;
#define KILN_PROMOTION_INIT ((kiln_promotion){KILN_DTYPE_NONE, KILN_DTYPE_NONE, KILN_DTYPE_NONE})
void kiln_promotion_add_tensor(kiln_promotion *promotion, kiln_dtype dtype, int rank);
/* A Python number: I64, F64, BOOL or C128 stand for int, float, bool and complex. Their dtype is
 * the default one of the category (I64, F32, BOOL, C64) when they decide. */
void kiln_promotion_add_number(kiln_promotion *promotion, kiln_dtype kind);
kiln_dtype kiln_promotion_result(const kiln_promotion *promotion);

/* The default float dtype (F32) for integral and bool, else `dtype` itself: unary float functions
 * and true division. */
kiln_dtype kiln_dtype_to_float(kiln_dtype dtype);
/* Real part's dtype of a complex dtype; others unchanged. */
kiln_dtype kiln_dtype_real(kiln_dtype dtype);
