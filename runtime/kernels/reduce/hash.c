/* hash.c: hash_tensor: elements as 64 bits (whole numbers as int64, others as doubles), combined by
 * exclusive or. */
#include "runtime/kernels/composite.h"
#include "runtime/kernels/reduce/reduction.h"

/* self, dim, keepdim, mode */
KILN_KERNEL(hash_tensor) {
  kiln_tensor *t = SELF, *result;
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const bool whole = kiln_dtype_is_int(dtype, true);
  uint64_t mask;
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  kiln_folded folded;
  if (!whole && !kiln_dtype_is_float(dtype)) return kiln__not_implemented(call, dtype);
  if (kiln_arg_int(args, 3) != 0) return KILN_OP_FAIL("Unknown hash_tensor mode");
  KILN_TRY(kiln__arg_dims(args, 1, kiln_tensor_rank(t), &mask));
  kiln__reduced_sizes(t, mask, kiln_arg_bool(args, 2), &rank, sizes);
  if (t->numel == 0 && mask == kiln__all_dims(t)) {
    return KILN_OP_FAIL("hash_tensor: Expected reduction dim to be specified for input.numel() == "
                        "0. Specify the reduction dim with the 'dim' argument.");
  }
  KILN_TRY(kiln__fold(call, t, mask, whole ? KILN_DTYPE_I64 : KILN_DTYPE_F64, &folded));
  kiln_status *status = kiln_call_tensor(call, KILN_DTYPE_U64, rank, sizes, &result);
  if (!status) {
    const uint64_t *from = kiln_tensor_data(folded.tensor);
    uint64_t *to = (uint64_t *)(uintptr_t)kiln_tensor_data(result);
    int64_t left = KILN_BUDGET_ITEMS;
    for (int64_t o = 0; o < folded.outer; o++) {
      for (int64_t c = 0; c < folded.inner && !kiln_budget_spent(&left, 1); c++) {
        uint64_t all = 0;
        for (int64_t i = 0; i < folded.length && !kiln_budget_spent(&left, 1); i++) {
          all ^= from[(o * folded.length + i) * folded.inner + c];
        }
        to[o * folded.inner + c] = all;
      }
    }
    status = kiln__finish(call, outs, result);
  }
  kiln_tensor_release_to(&call->cache, folded.tensor);
  return status;
}
