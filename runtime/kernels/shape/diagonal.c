/* diagonal.c: diagonals, read, made and written. */
#include "runtime/kernels/composite.h"

/* -- Diagonals -- */

KILN_COMPOSITE(trace) {
  if (kiln_tensor_rank(SELF) != 2) {
    return FAIL(r, "trace: expected a matrix, but got tensor with dim %d", kiln_tensor_rank(SELF));
  }
  return KILN_STEP(r, sum, T(KILN_STEP(r, diagonal, T(SELF), I(0), I(0), I(1))), NONE);
}
/* A new tensor with t's last dimension as the diagonal of the dimensions a < b. */
static kiln_tensor *embed(kiln__composite *r, kiln_tensor *t, int64_t offset, int64_t dim1,
                          int64_t dim2) {
  const int rank = kiln__composite_rank(t) + 1;
  const int a = kiln__composite_dim(r, dim1, rank), b = kiln__composite_dim(r, dim2, rank);
  int64_t sizes[KILN_MAX_RANK + 1];
  if (!r->status && (a == b || rank > KILN_MAX_RANK)) {
    FAIL(r, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1, (long long)dim2);
  }
  if (r->status || !t) return NULL;
  int64_t n;
  if (offset == INT64_MIN ||
      !kiln_checked_add_i64(kiln__composite_size(t, -1), offset < 0 ? -offset : offset, &n)) {
    return FAIL(r, "a diagonal at %lld is too far away", (long long)offset);
  }
  for (int d = 0, from = 0; d < rank; d++) {
    sizes[d] = d == a || d == b ? n : kiln_tensor_sizes(t)[from++];
  }
  kiln_tensor *to = KILN_STEP(r, zeros, kiln__composite_ints(r, rank, sizes),
                              I(kiln__composite_dtype(t)), NONE, NONE, NONE);
  kiln_tensor *line = KILN_STEP(r, diagonal, T(to), I(offset), I(a), I(b));
  (void)KILN_STEP(r, copy_, T(line), T(t), B(false));
  return to;
}
KILN_COMPOSITE(diag_embed) {
  if (kiln_tensor_rank(SELF) == 0) {
    return FAIL(r, "diag_embed expects a tensor of at least one dimension");
  }
  return embed(r, SELF, kiln_arg_int(args, 1), kiln_arg_int(args, 2), kiln_arg_int(args, 3));
}
KILN_COMPOSITE(diagflat) {
  return embed(r, kiln__composite_flat(r, SELF), kiln_arg_int(args, 1), 0, 1);
}
KILN_COMPOSITE(diag) {
  const int rank = kiln_tensor_rank(SELF);
  if (rank == 1) return embed(r, SELF, kiln_arg_int(args, 1), 0, 1);
  if (rank == 2) {
    kiln_tensor *line = KILN_STEP(r, diagonal, T(SELF), args[1], I(0), I(1));
    return kiln__composite_copy(r, line);
  }
  return FAIL(r, "diag(): Supports 1D or 2D tensors. Got %dD", rank);
}

/* -- set_: self becomes another tensor over the source's storage -- */

/* self, fill_value, wrap: in tall matrices the diagonal may begin again */
KILN_COMPOSITE(fill_diagonal_) {
  kiln_tensor *t = SELF;
  const int rank = kiln_tensor_rank(t);
  int64_t least = INT64_MAX, step = 0, sizes[1], strides[1];
  if (rank < 2) return FAIL(r, "dimensions must larger than 1");
  for (int d = 0; d < rank; d++) {
    if (kiln_tensor_sizes(t)[d] < least) least = kiln_tensor_sizes(t)[d];
    step += kiln_tensor_strides(t)[d];
    if (rank > 2 && kiln_tensor_sizes(t)[d] != kiln_tensor_sizes(t)[0]) {
      return FAIL(r, "all dimensions of input must be of equal length");
    }
  }
  sizes[0] = least;
  strides[0] = step;
  kiln_tensor *line = KILN_STEP(r, as_strided, T(t), kiln__composite_ints(r, 1, sizes),
                                kiln__composite_ints(r, 1, strides), NONE);
  KILN_STEP(r, fill_, T(line), args[1]);
  const int64_t rows = kiln_tensor_sizes(t)[0], columns = kiln_tensor_sizes(t)[1];
  const int64_t begin = columns + 1;
  if (kiln_arg_bool(args, 2) && rank == 2 && rows > begin) {
    for (int64_t at = begin; at < rows && !r->status; at += begin) {
      kiln_tensor *rest = kiln__composite_narrow(r, t, 0, at, rows - at);
      kiln_tensor *more = KILN_STEP(r, diagonal, T(rest), I(0), I(0), I(1));
      KILN_STEP(r, fill_, T(more), args[1]);
    }
  }
  return t;
}
