/* dispatch.h: the kernels that exist once for each instruction set, behind one table.
 *
 * Files named *_isa.c are compiled for x86-64-v2, AVX2 and AVX-512 (runtime/meson.build). Each set
 * fills a kiln_dispatch; a call points to that of its processor. All sets give the same bits: no
 * contraction, reductions by lanes and a fixed tree (reduce/reduce.h). The exceptions are matmul
 * and the functions of runtime/math, which use fma where the processor has it (AVX2 and AVX-512,
 * alike).
 *
 * Pointwise kernels compute in a few types only (kiln_ctype): the small integers in I32, the small
 * floats in F32. The iterator converts on the way in and out. */
#pragma once

#include "runtime/call.h"
#include "runtime/kernels/heavy/gemm.h"

struct kiln_conv;
struct kiln_conv_plan;
struct kiln_conv_part;
struct kiln_blocked_set;
struct kiln_winograd_set;
struct kiln_grouped_kernels;
struct kiln_recurrent_step;

typedef enum kiln_ctype {
  KILN_CTYPE_BOOL,
  KILN_CTYPE_I32,
  KILN_CTYPE_I64,
  KILN_CTYPE_F32,
  KILN_CTYPE_F64,
  KILN_CTYPE_C64,
  KILN_CTYPE_C128,
  KILN_CTYPE__COUNT,
  KILN_CTYPE_NONE = -1
} kiln_ctype;

/* What a functor's result is: of the type it computes in, a bool, or the real part's type. */
typedef enum kiln_pw_result { KILN_PW_SAME, KILN_PW_BOOL, KILN_PW_REAL } kiln_pw_result;

#include "runtime/kernels/pointwise/classes.h"
typedef enum kiln_pw_functor {
#define KILN_PW(name, arity, result) KILN_PW_##name,
#include "runtime/kernels/pointwise/pointwise.def"
#undef KILN_PW
  KILN_PW__COUNT
} kiln_pw_functor;

/* Numbers that a functor takes besides its operands. Complex ones use f[2k], f[2k + 1]. */
typedef struct kiln_pw_params {
  double f[8];
  int64_t i[4];
  bool fault; /* set by a loop: integer division by zero */
} kiln_pw_params;

/* kiln_pw_result of each functor. */
extern const uint8_t kiln__pw_results[KILN_PW__COUNT];

/* n elements: data[0] is the result, then the operands; strides in bytes, 0 repeats an element.
 * The result may be one of the operands, element for element. */
typedef void (*kiln_pw_loop)(char *const *data, const int64_t *strides, int64_t n,
                             kiln_pw_params *params);

/* dst[i * dst_stride] = src[i * src_stride], converted. */
typedef void (*kiln_cast_loop)(char *dst, int64_t dst_stride, const char *src, int64_t src_stride,
                               int64_t n);

/* Reductions of one row (n elements `stride` bytes apart) or of many columns at once. */
typedef enum kiln_reduce_op {
  KILN_REDUCE_SUM,
  KILN_REDUCE_PROD,
  KILN_REDUCE_MAX, /* NaN wins */
  KILN_REDUCE_MIN,
  KILN_REDUCE_SUMSQ, /* sum of (x - params[0])^2 */
  KILN_REDUCE_ABS,   /* sum of |x| */
  KILN_REDUCE_ANY,   /* result 0 or 1, in the type itself */
  KILN_REDUCE_ALL,
  KILN_REDUCE__COUNT
} kiln_reduce_op;
/* out[c] for c < columns, over `rows` elements each: element (r, c) is at
 * src + r * row_stride + c * column_stride. `shift` serves SUMSQ: shift[c]. */
typedef void (*kiln_reduce_loop)(char *out, const char *src, int64_t rows, int64_t row_stride,
                                 int64_t columns, int64_t column_stride, const void *shift);

/* places[c]: which row of column c, of rows >= 1, has its greatest or its least element: the first
 * of equal ones, a NaN before all. values[c]: that element. The rows lie side by side, or the
 * columns. Of 0 and -0 the value is not always KILN_REDUCE_MAX's. */
typedef void (*kiln_place_loop)(int64_t *places, char *values, const char *src, int64_t rows,
                                int64_t row_stride, int64_t columns, int64_t column_stride);

/* Rows of n contiguous elements, F32 or F64. */
typedef struct kiln_row_kernels {
  void (*softmax)(void *out, const void *in, int64_t n);
  void (*log_softmax)(void *out, const void *in, int64_t n);
  /* weight and bias may be NULL; mean and rstd (one element each) too. */
  void (*layer_norm)(void *out, const void *in, int64_t n, const void *weight, const void *bias,
                     double eps, void *mean, void *rstd);
  /* out = in * scale + shift, the product rounded first. */
  void (*scale_shift)(void *out, const void *in, int64_t n, double scale, double shift);
  /* Of `rows` rows, at least 1, that lie `apart` elements apart: each place's, as
   * KILN_PW_maximum has it. */
  void (*greatest)(void *out, const void *in, int64_t apart, int64_t rows, int64_t n);
  /* Of such rows: each place's sum, or, around `means` (else NULL), that of squared differences.
   * Row i is added to sum i % 4, in order; then (0 + 1) + (2 + 3). */
  void (*add_rows)(void *out, const void *in, int64_t apart, int64_t rows, int64_t n,
                   const void *means);
} kiln_row_kernels;

typedef struct kiln_dispatch {
  kiln_isa isa;
  const kiln_pw_loop *loops[KILN_CTYPE__COUNT];        /* [functor]; NULL: not for that type */
  const kiln_cast_loop (*load)[KILN_CTYPE__COUNT];     /* [dtype]: to a compute type */
  const kiln_cast_loop (*store)[KILN_DTYPE__COUNT];    /* [ctype]: back */
  const kiln_reduce_loop (*reduce)[KILN_CTYPE__COUNT]; /* [kiln_reduce_op] */
  const kiln_place_loop (*places)[KILN_CTYPE__COUNT];  /* [greatest]; NULL: not for that type */
  const kiln_row_kernels *rows_f32, *rows_f64;
  kiln_gemm_fn gemm_f32, gemm_f64;
  /* A part of a planned convolution, heavy/conv.h. */
  void (*conv_f32)(const struct kiln_conv *c, const struct kiln_conv_plan *p,
                   const struct kiln_conv_part *part, void *scratch);
  void (*conv_f64)(const struct kiln_conv *c, const struct kiln_conv_plan *p,
                   const struct kiln_conv_part *part, void *scratch);
  const struct kiln_blocked_set *blocked;     /* heavy/blocked.h */
  const struct kiln_winograd_set *winograd;   /* heavy/winograd.h */
  const struct kiln_grouped_kernels *grouped; /* heavy/grouped.h */
  /* Blocks of a step of a recurrent layer, heavy/recurrent.h. */
  void (*recurrent)(const struct kiln_recurrent_step *s, int64_t begin, int64_t end);
} kiln_dispatch;

/* One for each instruction set that the build's option isa asks for. */
extern const kiln_dispatch kiln__dispatch_v2, kiln__dispatch_avx2, kiln__dispatch_avx512;
/* The table of an instruction set: of one without kernels of its own, the last before it. */
const kiln_dispatch *kiln_dispatch_select(kiln_isa isa);
/* The last instruction set with kernels of its own that this machine runs. */
static inline kiln_isa kiln_dispatch_last(void) {
  return kiln_dispatch_select(kiln_isa_detect())->isa;
}

/* The compute type of a dtype; NONE for those without (float8, quantised). */
kiln_ctype kiln_ctype_of(kiln_dtype dtype);
/* By dtype & 31: one more than its compute type where elements are stored as that, else 0. */
extern const int8_t kiln__native_ctypes[32];
/* Bytes of an element of a compute type. */
size_t kiln_ctype_size(kiln_ctype ctype);
/* The dtype whose elements are stored as that compute type. */
kiln_dtype kiln_ctype_dtype(kiln_ctype ctype);
