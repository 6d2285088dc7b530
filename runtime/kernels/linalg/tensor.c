/* tensor.c: tensors as matrices: inverses, solutions; nuclear norms, powers of a vector. */
#include "runtime/kernels/composite.h"

/* -- Norms -- */

static kiln_tensor *nuclear_norm(kiln__composite *r, kiln_tensor *t, kiln_ivalue dims,
                                 kiln_ivalue keepdim) {
  return KILN_STEP(r, linalg_matrix_norm, T(t), kiln__composite_text(r, "nuc"), dims, keepdim,
                   NONE);
}
/* self, keepdim */
KILN_COMPOSITE(nuclear_norm) {
  if (kiln_tensor_rank(SELF) != 2) {
    return FAIL(r,
                "Expected a tensor with 2 dimensions, but got a tensor with %d dimensions instead.",
                kiln_tensor_rank(SELF));
  }
  return nuclear_norm(r, SELF, INTS(0, 1), args[1]);
}
/* self, dim, keepdim */
KILN_COMPOSITE(nuclear_norm_dim) { return nuclear_norm(r, SELF, args[1], args[2]); }
/* self, ind */
KILN_COMPOSITE(linalg_tensorinv) {
  const int rank = kiln_tensor_rank(SELF);
  const int64_t ind = kiln_arg_int(args, 1), *sizes = kiln_tensor_sizes(SELF);
  int64_t square[2] = {1, 1}, turned[KILN_MAX_RANK];
  if (ind <= 0) {
    return FAIL(r, "Expected a strictly positive integer for 'ind', but got %lld", (long long)ind);
  }
  for (int d = 0; d < rank; d++) square[d >= ind] *= sizes[d];
  if (square[0] != square[1] || ind > rank) {
    return FAIL(r,
                "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                "prod(self.shape[:ind]), but got %lld != %lld",
                (long long)square[1], (long long)square[0]);
  }
  for (int d = 0; d < rank; d++) turned[d] = sizes[(d + ind) % rank];
  kiln_tensor *x = KILN_STEP(r, linalg_inv, T(kiln__composite_reshape(r, SELF, 2, square)));
  return kiln__composite_reshape(r, x, rank, turned);
}
/* A, B, dims */
KILN_COMPOSITE(linalg_tensorsolve) {
  kiln_tensor *a = SELF, *b = ARG(1);
  const int rank = kiln_tensor_rank(a), b_rank = kiln_tensor_rank(b);
  int64_t dims[KILN_MAX_RANK], order[KILN_MAX_RANK], sizes[KILN_MAX_RANK];
  int count = 0, n = 0;
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 2, dims, &count))) return NULL;
  for (int d = 0; d < rank; d++) {
    bool moved = false;
    for (int k = 0; k < count; k++) moved |= kiln__composite_dim(r, dims[k], rank) == d;
    if (!moved) order[n++] = d;
  }
  for (int k = 0; k < count && n < rank; k++) order[n++] = kiln__composite_dim(r, dims[k], rank);
  if (r->status) return NULL;
  if (count > 0) a = KILN_STEP(r, permute, T(a), kiln__composite_ints(r, rank, order));
  if (!a || b_rank > rank) {
    return FAIL(r, "linalg.tensorsolve: B has more dimensions than A");
  }
  const int left = rank - b_rank;
  int64_t product = 1;
  for (int d = 0; d < left; d++) product *= sizes[d] = kiln_tensor_sizes(a)[b_rank + d];
  if (product != b->numel) {
    return FAIL(r,
                "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                "prod(self.shape[:other.ndim]), but got %lld != %lld",
                (long long)product, (long long)b->numel);
  }
  const int64_t square[2] = {product, product};
  kiln_tensor *flat = kiln__composite_flat(r, b);
  kiln_tensor *x =
      KILN_STEP(r, linalg_solve, T(kiln__composite_reshape(r, a, 2, square)), T(flat), B(true));
  return kiln__composite_reshape(r, x, left, sizes);
}

/* -- New tensors -- */

/* x, N, increasing */
KILN_COMPOSITE(vander) {
  kiln_tensor *t = SELF;
  if (kiln_tensor_rank(t) != 1) {
    return FAIL(r, "x must be a one-dimensional tensor.");
  }
  const int64_t n = kiln_arg_int_or(args, 1, t->numel);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  if (n < 0) return FAIL(r, "N must be non-negative.");
  if (kiln_dtype_is_int(dtype, true)) t = kiln__composite_to(r, t, KILN_DTYPE_I64);
  const int64_t sizes[2] = {kiln__composite_numel(t), n};
  kiln_tensor *out = KILN_STEP(r, ones, kiln__composite_ints(r, 2, sizes),
                               I(kiln__composite_dtype(t)), NONE, NONE, NONE);
  if (n > 1) {
    kiln_tensor *rest = kiln__composite_narrow(r, out, 1, 1, n - 1);
    KILN_STEP(r, copy_, T(rest), T(KILN_STEP(r, unsqueeze, T(t), I(1))), B(false));
    KILN_STEP(r, copy_, T(rest), T(KILN_STEP(r, cumprod, T(rest), I(1), NONE)), B(false));
  }
  if (!kiln_arg_bool(args, 2)) out = KILN_STEP(r, flip, T(out), INTS(1));
  return out;
}
