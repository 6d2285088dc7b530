/* split.c: splits along a dimension by sections or indices, as composites. */
#include "runtime/kernels/composite.h"

static kiln_tensor *split_at(kiln__composite *r, const kiln_ivalue *args, const char *name,
                             int least, int dim, kiln_ivalue *outs) {
  const int rank = kiln_tensor_rank(SELF);
  if (rank < least) {
    return FAIL(r,
                "torch.%s requires a tensor with at least %d dimension, but got a "
                "tensor with %d dimensions!",
                name, least, rank);
  }
  if (least == 1 && rank == 1) dim = 0;
  if (args[1].tag != KILN_TAG_INT) {
    return kiln__composite_give_list(
        r, outs, KILN_STEP_LIST(r, tensor_split_indices, T(SELF), args[1], I(dim)));
  }
  const int64_t n = kiln__composite_size(SELF, dim), parts = args[1].u.i;
  if (parts == 0 || n % parts != 0) {
    return FAIL(r,
                "torch.%s attempted to split along dimension %d, but the size of "
                "the dimension %lld is not divisible by the split_size %lld!",
                name, dim, (long long)n, (long long)parts);
  }
  return kiln__composite_give_list(
      r, outs, KILN_STEP_LIST(r, tensor_split_sections, T(SELF), args[1], I(dim)));
}
KILN_COMPOSITE(hsplit) { return split_at(r, args, "hsplit", 1, 1, outs); }
KILN_COMPOSITE(vsplit) { return split_at(r, args, "vsplit", 2, 0, outs); }
KILN_COMPOSITE(dsplit) { return split_at(r, args, "dsplit", 3, 2, outs); }
/* self, sections (no dimensions) or indices (one), dim */
KILN_COMPOSITE(tensor_split_tensor) {
  kiln_tensor *how = ARG(1), *dense;
  if (kiln_tensor_dtype(how) != KILN_DTYPE_I64 || kiln_tensor_rank(how) > 1) {
    return FAIL(r, "tensor_split expected tensor_indices_or_sections to be a "
                   "zero-dimensional or one-dimensional tensor of dtype long");
  }
  const int64_t *at = kiln__composite_read(r, how, KILN_DTYPE_I64, &dense);
  if (!at) return NULL;
  if (kiln_tensor_rank(how) == 0) {
    return kiln__composite_give_list(
        r, outs, KILN_STEP_LIST(r, tensor_split_sections, T(SELF), I(at[0]), args[2]));
  }
  const kiln_ivalue list = kiln__composite_ints(r, (int)how->numel, at);
  return kiln__composite_give_list(r, outs,
                                   KILN_STEP_LIST(r, tensor_split_indices, T(SELF), list, args[2]));
}
