/* weight_norm.c: weights as a direction and a size: norms over all dimensions but one. */
#include "runtime/kernels/composite.h"

/* -- Norms -- */

/* All dimensions but one. */
static kiln_ivalue others(kiln__composite *r, int rank, int64_t dim) {
  int64_t dims[KILN_MAX_RANK];
  int count = 0;
  for (int d = 0; d < rank; d++) {
    if (d != dim) dims[count++] = d;
  }
  return kiln__composite_ints(r, count, dims);
}
/* v, pow, dim: over all other dimensions, which stay as 1; dim -1: of all */
static kiln_tensor *norm_except(kiln__composite *r, kiln_tensor *v, double p, int64_t dim) {
  const int rank = kiln_tensor_rank(v);
  if (dim < -1) dim += rank;
  if (dim == -1) return KILN_STEP(r, linalg_vector_norm, T(v), F(p), NONE, B(false), NONE);
  if (dim < 0 || dim >= rank) {
    return FAIL(r, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)",
                -rank, rank - 1, (long long)dim);
  }
  if (rank == 1) return KILN_STEP(r, abs, T(v));
  return KILN_STEP(r, linalg_vector_norm, T(v), F(p), others(r, rank, dim), B(true), NONE);
}
KILN_COMPOSITE(norm_except_dim) {
  return norm_except(r, SELF, (double)kiln_arg_int(args, 1), kiln_arg_int(args, 2));
}
/* v, g, dim -> w, norms */
KILN_COMPOSITE(_weight_norm_interface) {
  kiln_tensor *v = kiln__composite_to(r, SELF, kiln_tensor_dtype(SELF));
  kiln_tensor *norms = norm_except(r, SELF, 2, kiln_arg_int(args, 2));
  kiln_tensor *scale = KILN_STEP(r, div, args[1], T(norms));
  kiln__composite_give(r, &outs[0], KILN_STEP(r, mul, T(v), T(scale)));
  if (norms && kiln_tensor_same_sizes(norms, ARG(1)))
    norms = kiln__composite_lay_like(r, norms, kiln_tensor_dtype(norms), ARG(1));
  kiln__composite_give(r, &outs[1], norms);
  return NULL;
}

/* -- Products -- */

/* v, g, dim: v * (g / |v|) with the norm over all dimensions but one */
KILN_COMPOSITE(_weight_norm) {
  kiln_tensor *v = kiln__composite_to(r, SELF, kiln_tensor_dtype(SELF));
  kiln_tensor *g = kiln__composite_to(r, ARG(1), kiln_tensor_dtype(ARG(1)));
  kiln_tensor *norm = norm_except(r, SELF, 2, kiln_arg_int(args, 2));
  return KILN_STEP(r, mul, T(v), T(KILN_STEP(r, div, T(g), T(norm))));
}

/* -- Distances -- */

/* self, p, dim, maxnorm: slices along a dimension are scaled down to the norm */
KILN_COMPOSITE(renorm) {
  const int rank = kiln_tensor_rank(SELF),
            dim = kiln__composite_dim(r, kiln_arg_int(args, 2), rank);
  if (rank < 2)
    return FAIL(r, "renorm: input needs at least 2 dimensions, got %d dimensions", rank);
  kiln_tensor *norm =
      KILN_STEP(r, linalg_vector_norm, T(SELF), args[1], others(r, rank, dim), B(true), NONE);
  kiln_tensor *over = KILN_STEP(r, gt, T(norm), args[3]);
  kiln_tensor *scale = KILN_STEP(r, add, T(norm), F(1e-7), I(1));
  scale = KILN_STEP(r, mul, T(KILN_STEP(r, reciprocal, T(scale))), args[3]);
  scale = KILN_STEP(r, where, T(over), T(scale), F(1));
  kiln_tensor *rows =
      kiln__composite_to(r, SELF, kiln_tensor_dtype(SELF)); /* and the result, too */
  kiln_tensor *result = KILN_STEP(r, mul, T(rows), T(scale));
  int64_t strides[KILN_MAX_RANK];
  if (!result) return NULL;
  kiln_strides_contiguous(rank, kiln_tensor_sizes(SELF), strides);
  return KILN_OWN(r, kiln__lay(r->call, result, kiln_tensor_dtype(result), strides, &own_tensor));
}
