/* nn_misc.c: embedding, one_hot. */
#include <string.h>

#include "runtime/kernels/iter.h"
#include "runtime/kernels/nn.h"

/* -- Embedding -- */

KILN_NN_KERNEL(embedding) {
  kiln_tensor *weight = kiln_arg_tensor(args, 0), *indices = kiln_arg_tensor(args, 1), *dense;
  const kiln_dtype dtype = kiln_tensor_dtype(weight), index_dtype = kiln_tensor_dtype(indices);
  if (kiln_tensor_rank(weight) != 2) return KILN_OP_FAIL("'weight' must be 2-D");
  if (index_dtype != KILN_DTYPE_I64 && index_dtype != KILN_DTYPE_I32) {
    return KILN_OP_FAIL(
        "Expected tensor for argument #1 'indices' to have one of the following "
        "scalar types: Long, Int; but got torch.%sTensor instead (while checking arguments for "
        "embedding)",
        kiln_dtype_ir_name(index_dtype));
  }
  const int rank = kiln_tensor_rank(indices);
  if (rank + 1 > KILN_MAX_RANK) return KILN_OP_FAIL("embedding: indices have too many dimensions");
  KILN_TRY(kiln__as_dtype(nn->call, indices, KILN_DTYPE_I64, &dense));
  KILN_TRY(kiln__nn_keep(nn, dense));
  const int64_t *index = kiln_tensor_data(dense), *ws = kiln_tensor_sizes(weight);
  const int64_t *strides = kiln_tensor_strides(weight), n = ws[1];
  int64_t sizes[KILN_MAX_RANK];
  for (int d = 0; d < rank; d++) sizes[d] = kiln_tensor_sizes(indices)[d];
  sizes[rank] = n;
  for (int64_t i = 0; i < indices->numel; i++) {
    if (index[i] < 0 || index[i] >= ws[0]) return KILN_OP_FAIL("index out of range in self");
  }
  kiln_tensor *result;
  KILN_TRY(kiln_call_tensor(nn->call, dtype, rank + 1, sizes, &result));
  KILN_TRY(kiln__nn_keep(nn, result));
  void *data;
  KILN_TRY(kiln_tensor_writable_data(result, &data));
  const size_t item = kiln_tensor_item_size(weight);
  const char *from = kiln_tensor_data(weight);
  char *to = data;
  for (int64_t i = 0; i < indices->numel; i++, to += (size_t)n * item) {
    const char *row = from + (size_t)(index[i] * strides[0]) * item;
    if (strides[1] == 1) {
      memcpy(to, row, (size_t)n * item);
    } else {
      for (int64_t k = 0; k < n; k++) {
        memcpy(to + (size_t)k * item, row + (size_t)(k * strides[1]) * item, item);
      }
    }
  }
  return kiln__nn_give(nn, result, dtype, outs);
}

/* -- One hot -- */

KILN_NN_KERNEL(one_hot) {
  kiln_tensor *t = kiln_arg_tensor(args, 0), *dense, *result;
  int64_t classes = kiln_arg_int(args, 1), least = 0, greatest = -1, sizes[KILN_MAX_RANK];
  const int rank = kiln_tensor_rank(t);
  if (kiln_tensor_dtype(t) != KILN_DTYPE_I64) {
    return KILN_OP_FAIL("one_hot is only applicable to index tensor.");
  }
  if (rank + 1 > KILN_MAX_RANK) return KILN_OP_FAIL("one_hot: too many dimensions");
  KILN_TRY(kiln__contiguous(nn->call, t, &dense));
  KILN_TRY(kiln__nn_keep(nn, dense));
  const int64_t *index = kiln_tensor_data(dense);
  for (int64_t i = 0; i < t->numel; i++) {
    if (index[i] < least) least = index[i];
    if (index[i] > greatest) greatest = index[i];
  }
  if (t->numel == 0 && classes <= 0) {
    return KILN_OP_FAIL("Can not infer total number of classes from empty tensor.");
  }
  if (least < 0) return KILN_OP_FAIL("Class values must be non-negative.");
  if (classes == -1) {
    if (!kiln_checked_add_i64(greatest, 1, &classes)) {
      return KILN_OP_FAIL("Class values must be smaller than num_classes.");
    }
  } else {
    if (classes <= 0) return KILN_OP_FAIL("num_classes should be positive");
    if (greatest >= classes) {
      return KILN_OP_FAIL("Class values must be smaller than num_classes.");
    }
  }
  for (int d = 0; d < rank; d++) sizes[d] = kiln_tensor_sizes(t)[d];
  sizes[rank] = classes;
  KILN_TRY(kiln_call_tensor(nn->call, KILN_DTYPE_I64, rank + 1, sizes, &result));
  KILN_TRY(kiln__nn_keep(nn, result));
  void *data;
  KILN_TRY(kiln_tensor_writable_data(result, &data));
  memset(data, 0, (size_t)result->numel * sizeof(int64_t));
  for (int64_t i = 0; i < t->numel; i++) ((int64_t *)data)[i * classes + index[i]] = 1;
  return kiln__nn_give(nn, result, KILN_DTYPE_I64, outs);
}
