/* nn.h: what the kernels of neural network layers share: temporaries that are released together,
 * loops over contiguous elements of a compute type, products, softmax.
 *
 * These kernels compute in F32 (for f16 and bf16 too, which are rounded once at the end) or F64. */
#pragma once

#include "runtime/kernels/support.h"

enum { KILN_NN_TEMPS = 32 };
/* Tensors owned by a kernel until it ends. */
typedef struct kiln__nn {
  kiln_call *call;
  kiln_dtype dtype; /* computed in: F32 or F64 */
  kiln_ctype ctype;
  size_t item; /* bytes of an element of it */
  int count;
  kiln_tensor *temps[KILN_NN_TEMPS];
} kiln__nn;

/* Opens a kernel with `nn` whose temporaries are released when its body returns. */
#define KILN_NN_KERNEL(name)                                                               \
  static kiln_status *nn_##name(kiln__nn *nn, const kiln_ivalue *args, kiln_ivalue *outs); \
  KILN_KERNEL(name) {                                                                      \
    kiln__nn nn;                                                                           \
    nn.call = call;                                                                        \
    nn.count = 0;                                                                          \
    kiln_status *status = nn_##name(&nn, args, outs);                                      \
    kiln__nn_release(&nn);                                                                 \
    return status;                                                                         \
  }                                                                                        \
  static kiln_status *nn_##name(kiln__nn *nn, KILN_UNUSED const kiln_ivalue *args,         \
                                KILN_UNUSED kiln_ivalue *outs)

void kiln__nn_release(kiln__nn *nn);
/* Sets what is computed in for elements of `dtype`; KILN_OP_ERROR where it is not a real float. */
kiln_status *kiln__nn_begin(kiln__nn *nn, kiln_dtype dtype) KILN_MUST_USE;
/* Takes `t` over. */
kiln_status *kiln__nn_keep(kiln__nn *nn, kiln_tensor *t) KILN_MUST_USE;
/* t, contiguous, in a dtype: kept. */
kiln_status *kiln__nn_as(kiln__nn *nn, kiln_tensor *t, kiln_dtype dtype,
                         kiln_tensor **out) KILN_MUST_USE;
/* New contiguous temporary, and its data. */
kiln_status *kiln__nn_make(kiln__nn *nn, kiln_dtype dtype, int rank, const int64_t *sizes,
                           kiln_tensor **out_tensor, void **out_data) KILN_MUST_USE;
/* The same of nn->dtype. */
kiln_status *kiln__nn_new(kiln__nn *nn, int rank, const int64_t *sizes, kiln_tensor **out_tensor,
                          char **out_data) KILN_MUST_USE;
/* The elements of t, contiguous, in nn->dtype; NULL for no tensor. */
kiln_status *kiln__nn_dense(kiln__nn *nn, kiln_tensor *t, const char **out_data) KILN_MUST_USE;
/* Weights are of the input's dtype, or F32 for a smaller float; NULL is fine. */
kiln_status *kiln__nn_check_weight(const kiln_tensor *input,
                                   const kiln_tensor *weight) KILN_MUST_USE;
/* Makes `value` (a temporary), converted to dtype, the result. */
kiln_status *kiln__nn_give(kiln__nn *nn, kiln_tensor *value, kiln_dtype dtype,
                           kiln_ivalue *out) KILN_MUST_USE;

/* out[i] = functor(a[i], b[i]) over n elements; b_step 0 repeats one element. */
static inline void kiln__nn_loop2(const kiln__nn *nn, kiln_pw_functor functor, char *out,
                                  const char *a, const char *b, bool b_step, int64_t n) {
  char *data[] = {out, (char *)(uintptr_t)a, (char *)(uintptr_t)b};
  const int64_t item = (int64_t)nn->item, strides[] = {item, item, b_step ? item : 0};
  kiln_pw_params params = {0};
  nn->call->dispatch->loops[nn->ctype][functor](data, strides, n, &params);
}
static inline void kiln__nn_loop1(const kiln__nn *nn, kiln_pw_functor functor, char *out,
                                  const char *a, int64_t n) {
  char *data[] = {out, (char *)(uintptr_t)a};
  const int64_t item = (int64_t)nn->item, strides[] = {item, item};
  kiln_pw_params params = {0};
  nn->call->dispatch->loops[nn->ctype][functor](data, strides, n, &params);
}
/* An element of the compute type. */
static inline double kiln__nn_get(const kiln__nn *nn, const char *data, int64_t i) {
  return nn->dtype == KILN_DTYPE_F64 ? ((const double *)(const void *)data)[i]
                                     : (double)((const float *)(const void *)data)[i];
}
static inline void kiln__nn_set(const kiln__nn *nn, char *data, int64_t i, double value) {
  if (nn->dtype == KILN_DTYPE_F64)
    ((double *)(void *)data)[i] = value;
  else
    ((float *)(void *)data)[i] = (float)value;
}
/* Of n contiguous elements, by the rule of reduce/reduce.h. `shift` serves SUMSQ. */
double kiln__nn_reduce(const kiln__nn *nn, kiln_reduce_op op, const char *data, int64_t n,
                       double shift);

/* Runs it with scratch memory; m, n and k are above 0. */
kiln_status *kiln__nn_gemm(kiln__nn *nn, kiln_gemm_args *gemm) KILN_MUST_USE;
/* x [m, k] times the transposed w [n, k], plus b [n] (may be NULL): a temporary [m, n]. */
kiln_status *kiln__nn_linear(kiln__nn *nn, kiln_tensor *x, kiln_tensor *w, kiln_tensor *b,
                             kiln_tensor **out_tensor) KILN_MUST_USE;
/* softmax or its logarithm over a wrapped dimension: a contiguous temporary. */
kiln_status *kiln__nn_softmax(kiln__nn *nn, kiln_tensor *t, int dim, bool is_log,
                              kiln_tensor **out_tensor) KILN_MUST_USE;
