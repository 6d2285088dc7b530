/* softmax.c: softmax and log_softmax over any dimension: along rows, after a transposition where
 * the dimension is not the last. */
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/nn/nn.h"
#include "runtime/kernels/shape/view.h"

typedef struct softmax_rows {
  void (*kernel)(void *out, const void *in, int64_t n);
  char *out;
  const char *in;
  int64_t n;
  size_t item;
} softmax_rows;

static void run_rows(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const softmax_rows *rows = data;
  for (int64_t i = begin; i < end; i++) {
    const size_t at = (size_t)(i * rows->n) * rows->item;
    rows->kernel(rows->out + at, rows->in + at, rows->n);
  }
}

kiln_status *kiln__nn_softmax(kiln__nn *nn, kiln_tensor *t, int dim, bool is_log,
                              kiln_tensor **out_tensor) {
  const int rank = kiln_tensor_rank(t);
  const int64_t n = rank == 0 ? 1 : kiln_tensor_sizes(t)[dim];
  kiln_tensor *rows = t, *result;
  const char *in;
  char *out;
  const bool turned = rank > 0 && dim != rank - 1;
  if (turned) {
    KILN_TRY(kiln__transpose(nn->call, t, dim, rank - 1, &rows));
    KILN_TRY(kiln__nn_keep(nn, rows));
  }
  KILN_TRY(kiln__nn_dense(nn, rows, &in));
  KILN_TRY(kiln__nn_new(nn, rank, kiln_tensor_sizes(rows), &result, &out));
  const kiln_row_kernels *kernels =
      nn->dtype == KILN_DTYPE_F64 ? nn->call->dispatch->rows_f64 : nn->call->dispatch->rows_f32;
  softmax_rows all = {is_log ? kernels->log_softmax : kernels->softmax, out, in, n, nn->item};
  const int64_t grain = n > 0 ? (KILN_PW_GRAIN + n - 1) / n : 1;
  kiln_pool_for(nn->call->pool, n > 0 ? t->numel / n : 0, grain, run_rows, &all);
  *out_tensor = result;
  if (!turned) return NULL;
  kiln_tensor *back, *dense;
  KILN_TRY(kiln__transpose(nn->call, result, dim, rank - 1, &back));
  KILN_TRY(kiln__nn_keep(nn, back));
  int64_t strides[KILN_MAX_RANK]; /* row-major also where a dimension of size 1 was turned */
  kiln_strides_contiguous(rank, kiln_tensor_sizes(back), strides);
  KILN_TRY(kiln_tensor_is_contiguous(back)
               ? kiln_tensor_view(&nn->call->cache, back, rank, kiln_tensor_sizes(back), strides,
                                  back->offset, &dense)
               : kiln__contiguous(nn->call, back, &dense));
  *out_tensor = dense;
  return kiln__nn_keep(nn, dense);
}

static kiln_status *softmax(kiln__nn *nn, const kiln_ivalue *args, bool is_log, kiln_dtype dtype,
                            kiln_ivalue *outs) {
  kiln_tensor *t = SELF, *result;
  int dim;
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), kiln_tensor_rank(t), &dim));
  KILN_TRY(kiln__nn_begin(nn, dtype));
  if (kiln_tensor_dtype(t) != dtype) { /* converted first: rounds, and integers are allowed */
    KILN_TRY(kiln__nn_as(nn, t, dtype, &t));
  }
  KILN_TRY(kiln__nn_softmax(nn, t, dim, is_log, &result));
  return kiln__nn_give(nn, result, dtype, outs);
}
static kiln_dtype dtype_of(const kiln_ivalue *args) {
  return kiln__arg_dtype_or(args, 2, kiln_tensor_dtype(SELF));
}
KILN_NN_KERNEL(softmax) { return softmax(nn, args, false, dtype_of(args), outs); }
KILN_NN_KERNEL(log_softmax) { return softmax(nn, args, true, dtype_of(args), outs); }

/* half_to_float: f16 gives f32, on devices that have it. */
static kiln_status *raw_softmax(kiln__nn *nn, const kiln_ivalue *args, bool is_log,
                                kiln_ivalue *outs) {
  if (kiln_arg_bool(args, 2)) {
    return KILN_OP_FAIL("softmax with half to float conversion is not supported on CPU");
  }
  return softmax(nn, args, is_log, kiln_tensor_dtype(SELF), outs);
}
KILN_NN_KERNEL(_softmax) { return raw_softmax(nn, args, false, outs); }
KILN_NN_KERNEL(_log_softmax) { return raw_softmax(nn, args, true, outs); }
