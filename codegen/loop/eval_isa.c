/* eval_isa.c: the table of block functions of one instruction set; compiled once for each. */
#include <string.h>

#include "codegen/loop/eval.h"
#include "codegen/loop/eval_table.h"
#include "runtime/kernels/isa.h"
#include "runtime/math/math.h"

#include "codegen/loop/eval_ops.h"
#include "codegen/loop/eval_reduce.h"

/* -- Elements of a size -- */

#define SIZE_FNS(type)                                                                            \
  static void copy_##type(void *r, int64_t r_stride, const void *x, int64_t x_stride, int n) {    \
    type *to = r;                                                                                 \
    const type *from = x;                                                                         \
    if (r_stride == 1 && x_stride == 1) {                                                         \
      memmove(to, from, (size_t)n * sizeof *to);                                                  \
    } else if (r_stride == 1 && x_stride == 0) {                                                  \
      const type value = *from;                                                                   \
      for (int i = 0; i < n; i++) to[i] = value;                                                  \
    } else {                                                                                      \
      for (int i = 0; i < n; i++) to[i * r_stride] = from[i * x_stride];                          \
    }                                                                                             \
  }                                                                                               \
  static void transpose_##type(void *r, int64_t r_row, const void *x, int64_t x_row, int columns, \
                               int rows) {                                                        \
    for (int j = 0; j < columns; j++) {                                                           \
      type *to = (type *)r + j;                                                                   \
      const type *from = (const type *)x + j * x_row;                                             \
      for (int i = 0; i < rows; i++) to[i * r_row] = from[i];                                     \
    }                                                                                             \
  }                                                                                               \
  static void select_##type(void *r, const void *x, const void *y, const void *z, int n) {        \
    KILN_IVDEP                                                                                    \
    for (int i = 0; i < n; i++) {                                                                 \
      const type a = ((const type *)y)[i], b = ((const type *)z)[i];                              \
      ((type *)r)[i] = ((const uint8_t *)x)[i] ? a : b;                                           \
    }                                                                                             \
  }
SIZE_FNS(uint8_t)
SIZE_FNS(uint16_t)
SIZE_FNS(uint32_t)
SIZE_FNS(uint64_t)

#define TABLE(isa) KILN_ISA_CAT2(kiln__eval_, isa)
const kiln_eval_table TABLE(KILN_KERNEL_ISA) = {
    .ops = eval_ops,
    .casts = eval_casts,
    .from_half = {cast_f16_to_f32, cast_bf16_to_f32},
    .to_half = {cast_f32_to_f16, cast_f32_to_bf16},
    .select = {select_uint8_t, select_uint16_t, select_uint32_t, select_uint64_t},
    .copy = {copy_uint8_t, copy_uint16_t, copy_uint32_t, copy_uint64_t},
    .transpose = {transpose_uint8_t, transpose_uint16_t, transpose_uint32_t, transpose_uint64_t},
    .reducers = eval_reducers,
    .finders = eval_finders,
    .scanners = eval_scanners,
};
