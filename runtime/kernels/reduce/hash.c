/* hash.c: hash_tensor: elements as 64 bits (whole numbers as int64, others as doubles), combined by
 * exclusive or. */
#include "runtime/kernels/reduce/reduction.h"

/* self, dim, keepdim, mode */
KILN_COMPOSITE(hash_tensor) {
  kiln_tensor *t = SELF, *result;
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const bool whole = kiln_dtype_is_int(dtype, true);
  uint64_t mask;
  int rank;
  int64_t sizes[KILN_MAX_RANK], left = KILN_BUDGET_ITEMS;
  kiln_folded folded;
  if (!whole && !kiln_dtype_is_float(dtype)) {
    return kiln__composite_fail(r, kiln__not_implemented(r->call, dtype));
  }
  if (kiln_arg_int(args, 3) != 0) return FAIL(r, "Unknown hash_tensor mode");
  if (!kiln__composite_ok(r, kiln__arg_dims(args, 1, kiln_tensor_rank(t), &mask))) return NULL;
  kiln__reduced_sizes(t, mask, kiln_arg_bool(args, 2), &rank, sizes);
  if (t->numel == 0 && mask == kiln__all_dims(t)) {
    return FAIL(r, "hash_tensor: Expected reduction dim to be specified for "
                   "input.numel() == 0. Specify the reduction dim with the 'dim' "
                   "argument.");
  }
  const uint64_t *from =
      kiln__composite_fold(r, t, mask, whole ? KILN_DTYPE_I64 : KILN_DTYPE_F64, &folded);
  uint64_t *to = kiln__composite_new(r, KILN_DTYPE_U64, rank, sizes, &result);
  for (int64_t o = 0; !r->status && o < folded.outer && !kiln_budget_spent(&left, 1); o++) {
    for (int64_t c = 0; c < folded.inner && !kiln_budget_spent(&left, 1); c++) {
      uint64_t all = 0;
      for (int64_t i = 0; i < folded.length && !kiln_budget_spent(&left, 1); i++) {
        all ^= from[(o * folded.length + i) * folded.inner + c];
      }
      to[o * folded.inner + c] = all;
    }
  }
  return result;
}
