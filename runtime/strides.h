/* strides.h: where the elements of results lie. Kernels make tensors by these rules and shape
 * functions foretell them; generated code trusts what is foretold, so there is no second copy. */
#pragma once

#include "runtime/tensor.h"
#include "runtime/type.h"

/* Sizes and strides, in elements, of a tensor that is or will be. Borrowed. */
typedef struct kiln_strided {
  int rank;
  const int64_t *sizes, *strides;
} kiln_strided;
static inline kiln_strided kiln_tensor_strided(const kiln_tensor *t) {
  return (kiln_strided){kiln_tensor_rank(t), kiln_tensor_sizes(t), kiln_tensor_strides(t)};
}

/* Row-major; dimensions of one element have any stride. */
bool kiln_strides_are_contiguous(const kiln_strided *t);
/* The elements fill their memory, each its own place. */
bool kiln_strides_are_dense(const kiln_strided *t);
/* Strides of an operand over the broadcast shape; 0 where it is repeated. */
void kiln_strides_spread(int rank, const int64_t *sizes, const kiln_strided *t,
                         int64_t *out_strides);
/* The dimensions from the innermost outwards, as the operands have them; where none tells two
 * apart, as they stand. `strides` are spread. */
void kiln_strides_order(int rank, const int64_t *sizes, int count,
                        const int64_t (*strides)[KILN_MAX_RANK], int *out_order);
/* Dimension 1 is the innermost: of signals (rank 3), images (4) and volumes (5), whatever numbers
 * sizes are. */
void kiln_strides_channels_last(int rank, const int64_t *sizes, int64_t *out_strides);
/* PyTorch's MemoryFormat. */
typedef enum kiln_format {
  KILN_FORMAT_CONTIGUOUS,
  KILN_FORMAT_PRESERVE,
  KILN_FORMAT_CHANNELS_LAST,
  KILN_FORMAT_CHANNELS_LAST_3D,
  KILN_FORMAT_CHANNELS_LAST_1D, /* PyTorch has none: of values between groups alone */
} kiln_format;
/* Images and volumes have one with channels last. */
static inline bool kiln_has_channels_last(int rank) { return rank == 4 || rank == 5; }
/* Between groups signals have it, too. */
static inline bool kiln_may_lie_channels_last(int rank) {
  return rank == 3 || kiln_has_channels_last(rank);
}
/* Whether a tensor of images or volumes suggests channels last (PyTorch's suggest_memory_format):
 * dimension 1 has the least stride, and the others follow as they do in such a tensor, dense or
 * not: (2, 4, 6, 5) in strides (240, 1, 40, 8) is the first half of 8 channels. (2, 1, 6, 5) in
 * strides (30, 1, 5, 1), which is contiguous, suggests it, too. */
bool kiln_strides_suggest_channels_last(const kiln_strided *t);
static inline bool kiln_tensor_suggests_channels_last(const kiln_tensor *t) {
  const kiln_strided strided = kiln_tensor_strided(t);
  return kiln_strides_suggest_channels_last(&strided);
}
/* What argument 0 of an operator and its weight, argument 1, say about its results' format. */
typedef enum kiln_format_from {
  KILN_FORMAT_FROM_nothing, /* strides are the operator's own affair */
  KILN_FORMAT_FROM_self,    /* channels last where argument 0, images or volumes, suggests that */
  KILN_FORMAT_FROM_norm,    /* the same, but for what is contiguous, too: (2, 1, 6, 5) */
  KILN_FORMAT_FROM_image,   /* the same of images (N, C, H, W) alone */
  KILN_FORMAT_FROM_signal,  /* the same of (N, C, L), taken for (N, C, 1, L) */
  /* where images or their weight suggest it; a signal is asked if it is contiguous, for else it is
   * made so first */
  KILN_FORMAT_FROM_convolution,
} kiln_format_from;
/* Which of the two are asked (bits 1 and 2), with so many dimensions: one is enough. */
static inline int kiln_format_asks(kiln_format_from from, int rank, int weight_rank,
                                   bool contiguous) {
  switch (from) {
    case KILN_FORMAT_FROM_self: return kiln_has_channels_last(rank) ? 1 : 0;
    case KILN_FORMAT_FROM_norm: return kiln_has_channels_last(rank) && !contiguous ? 1 : 0;
    case KILN_FORMAT_FROM_image: return rank == 4 ? 1 : 0;
    case KILN_FORMAT_FROM_signal: return rank == 3 ? 1 : 0;
    case KILN_FORMAT_FROM_convolution:
      return weight_rank == 3   ? (rank == 3 && contiguous ? 3 : 2)
             : weight_rank == 4 ? (rank == 4 ? 3 : 2)
                                : 0;
    case KILN_FORMAT_FROM_nothing: break;
  }
  return 0;
}
/* How many dimensions have the format that has channels last; -1: it has not. */
static inline int kiln_format_rank(int64_t format) {
  return format == KILN_FORMAT_CHANNELS_LAST      ? 4
         : format == KILN_FORMAT_CHANNELS_LAST_3D ? 5
         : format == KILN_FORMAT_CHANNELS_LAST_1D ? 3
                                                  : -1;
}
/* Dense strides in that order. */
void kiln_strides_ordered(int rank, const int64_t *sizes, int count,
                          const int64_t (*strides)[KILN_MAX_RANK], int64_t *out_strides);
/* x[i, j, ...] has as many as dimensions and one. */
enum { KILN_STRIDES_MAX_OPERANDS = KILN_MAX_RANK + 1 };
/* Strides of the new result of a pointwise operator, whose sizes are the operands' broadcast ones
 * (PyTorch's TensorIterator): operands of one shape and one dense layout give it to the result,
 * else its dimensions are ordered as theirs, the first operand that can tell two apart deciding. A
 * (2, 3) operand with strides (1, 2) and a row-major (2, 1) one make strides (1, 2). A number is an
 * operand of no dimensions. */
void kiln_strides_pointwise(int rank, const int64_t *sizes, const kiln_strided *operands, int count,
                            int64_t *out_strides);
/* Those of empty_like(t): t's own where it is dense, else dense ones in its order. */
void kiln_strides_like(const kiln_strided *t, int64_t *out_strides);
/* Row-major, but that the last two dimensions are matrices column by column. */
void kiln_strides_columns(int rank, const int64_t *sizes, int64_t *out_strides);
/* Strides of a view of `t` with other sizes of the same product (PyTorch's computeStride); false
 * when there is none. */
bool kiln_strides_view(const kiln_strided *t, int rank, const int64_t *sizes, int64_t *out_strides);
