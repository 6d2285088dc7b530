/* distance.c: distances and similarities of rows and the losses made of them, as composites. */
#include "runtime/kernels/composite.h"

/* -- Distances -- */

static kiln_tensor *norm_of(kiln__composite *r, kiln_tensor *t, kiln_ivalue p, int64_t dim,
                            bool keep) {
  return KILN_STEP(r, linalg_vector_norm, T(t), p, INTS(dim), B(keep), NONE);
}
KILN_COMPOSITE(dist) {
  kiln_tensor *t = KILN_STEP(r, sub, T(SELF), T(ARG(1)), I(1));
  return KILN_STEP(r, linalg_vector_norm, T(t), args[2], NONE, B(false), NONE);
}
static kiln_tensor *pair_distance(kiln__composite *r, kiln_tensor *a, kiln_tensor *b, kiln_ivalue p,
                                  kiln_ivalue eps, bool keep) {
  kiln_tensor *t = KILN_STEP(r, sub, T(a), T(b), I(1));
  t = KILN_STEP(r, add, T(t), eps, I(1));
  return norm_of(r, t, p, -1, keep);
}
KILN_COMPOSITE(pairwise_distance) {
  return pair_distance(r, SELF, ARG(1), args[2], args[3], kiln_arg_bool(args, 4));
}
/* Of two matrices, by |a|^2 + |b|^2 - 2 a b: one product instead of a difference for each pair.
 * What is small beside the norms is lost, as in PyTorch. */
static kiln_tensor *by_product(kiln__composite *r, kiln_tensor *a, kiln_tensor *b) {
  kiln_tensor *norms[2], *x[] = {a, b};
  for (int i = 0; i < 2; i++) {
    kiln_tensor *t = KILN_STEP(r, mul, T(x[i]), T(x[i]));
    norms[i] = KILN_STEP(r, sum_dim, T(t), INTS(-1), B(true), NONE);
  }
  kiln_tensor *sum =
      KILN_STEP(r, add, T(norms[0]), T(KILN_STEP(r, transpose, T(norms[1]), I(-2), I(-1))), I(1));
  kiln_tensor *products =
      KILN_STEP(r, matmul, T(a), T(KILN_STEP(r, transpose, T(b), I(-2), I(-1))));
  kiln_tensor *t = KILN_STEP(r, sub, T(sum), T(products), I(2));
  return KILN_STEP(r, sqrt, T(KILN_STEP(r, clamp_min, T(t), I(0))));
}
enum { IF_MANY, BY_PRODUCT, MANY = 25 }; /* compute_mode; rows */

/* x1 [..., P, M], x2 [..., R, M], p, compute_mode */
KILN_COMPOSITE(cdist) {
  const int ra = kiln_tensor_rank(SELF), rb = kiln_tensor_rank(ARG(1));
  if (ra < 2 || rb < 2 || kiln__composite_size(SELF, -1) != kiln__composite_size(ARG(1), -1)) {
    return FAIL(r, "X1 and X2 must have the same number of columns. X1: %lld X2: %lld",
                (long long)kiln__composite_size(SELF, -1),
                (long long)kiln__composite_size(ARG(1), -1));
  }
  const int64_t mode = kiln_arg_is_none(args, 3) ? IF_MANY : kiln_arg_int(args, 3);
  const bool many =
      kiln__composite_size(SELF, -2) > MANY || kiln__composite_size(ARG(1), -2) > MANY;
  if (kiln_arg_float(args, 2) == 2 && SELF->numel > 0 && ARG(1)->numel > 0 &&
      (mode == BY_PRODUCT || (mode == IF_MANY && many))) {
    return by_product(r, SELF, ARG(1));
  }
  kiln_tensor *a = KILN_STEP(r, unsqueeze, T(SELF), I(-2));
  kiln_tensor *b = KILN_STEP(r, unsqueeze, T(ARG(1)), I(-3));
  return norm_of(r, KILN_STEP(r, sub, T(a), T(b), I(1)), args[2], -1, false);
}
KILN_COMPOSITE(pdist) {
  const int64_t n = kiln__composite_size(SELF, 0);
  if (kiln_tensor_rank(SELF) != 2) {
    return FAIL(r, "pdist only supports 2D tensors, got: %dD", kiln_tensor_rank(SELF));
  }
  kiln_tensor *mask = KILN_STEP(r, ones, INTS(n, n), I(KILN_DTYPE_BOOL), NONE, NONE, NONE);
  mask = KILN_STEP(r, nonzero, T(KILN_STEP(r, triu, T(mask), I(1))));
  kiln_tensor *a =
      KILN_STEP(r, index_select, T(SELF), I(0), T(KILN_STEP(r, select, T(mask), I(1), I(0))));
  kiln_tensor *b =
      KILN_STEP(r, index_select, T(SELF), I(0), T(KILN_STEP(r, select, T(mask), I(1), I(1))));
  return norm_of(r, KILN_STEP(r, sub, T(a), T(b), I(1)), args[1], -1, false);
}
/* x1, x2, dim, eps: each is divided by its norm, which is at least eps */
static kiln_tensor *similarity(kiln__composite *r, kiln_tensor *a, kiln_tensor *b, int64_t dim,
                               double eps) {
  kiln_tensor *x[2] = {kiln__composite_as_float(r, a), kiln__composite_as_float(r, b)};
  for (int i = 0; i < 2; i++) {
    kiln_tensor *norm = norm_of(r, x[i], I(2), dim, true);
    x[i] = KILN_STEP(r, div, T(x[i]), T(KILN_STEP(r, clamp_min, T(norm), F(eps))));
  }
  return KILN_STEP(r, sum_dim, T(KILN_STEP(r, mul, T(x[0]), T(x[1]))), INTS(dim), B(false), NONE);
}
KILN_COMPOSITE(cosine_similarity) {
  kiln_tensor *a = SELF, *b = ARG(1);
  const kiln_ivalue wide = kiln__composite_broadcast(r, a, b);
  a = KILN_STEP(r, expand, T(a), wide, B(false));
  b = KILN_STEP(r, expand, T(b), wide, B(false));
  return similarity(r, a, b, kiln_arg_int(args, 2), kiln_arg_float(args, 3));
}

/* -- Losses; the last argument is the reduction -- */

/* anchor, positive, negative, margin, p, eps, swap, reduction */
KILN_COMPOSITE(triplet_margin_loss) {
  kiln_tensor *near = pair_distance(r, SELF, ARG(1), args[4], args[5], false);
  kiln_tensor *far = pair_distance(r, SELF, ARG(2), args[4], args[5], false);
  if (kiln_arg_bool(args, 6)) {
    kiln_tensor *swapped = pair_distance(r, ARG(1), ARG(2), args[4], args[5], false);
    far = KILN_STEP(r, minimum, T(far), T(swapped));
  }
  kiln_tensor *t = KILN_STEP(r, sub, T(KILN_STEP(r, add, T(near), args[3], I(1))), T(far), I(1));
  return kiln__composite_reduced(r, KILN_STEP(r, clamp_min, T(t), I(0)), kiln_arg_int(args, 7));
}
/* input1, input2, target, margin, reduction */
KILN_COMPOSITE(cosine_embedding_loss) {
  kiln_tensor *a = kiln__composite_as_float(r, SELF), *b = kiln__composite_as_float(r, ARG(1)),
              *y = ARG(2);
  const int64_t dim = kiln_tensor_rank(y) == 0 ? 0 : 1;
  kiln_tensor *product =
      KILN_STEP(r, sum_dim, T(KILN_STEP(r, mul, T(a), T(b))), INTS(dim), B(false), NONE);
  kiln_tensor *aa =
      KILN_STEP(r, sum_dim, T(KILN_STEP(r, mul, T(a), T(a))), INTS(dim), B(false), NONE);
  kiln_tensor *bb =
      KILN_STEP(r, sum_dim, T(KILN_STEP(r, mul, T(b), T(b))), INTS(dim), B(false), NONE);
  aa = KILN_STEP(r, add, T(aa), F(1e-12), I(1));
  bb = KILN_STEP(r, add, T(bb), F(1e-12), I(1));
  kiln_tensor *cosine =
      KILN_STEP(r, div, T(product), T(KILN_STEP(r, sqrt, T(KILN_STEP(r, mul, T(aa), T(bb))))));
  kiln_tensor *zero = KILN_STEP(r, zeros_like, T(cosine), NONE, NONE, NONE, NONE, NONE);
  kiln_tensor *same = KILN_STEP(r, sub, T(KILN_STEP(r, add, T(zero), I(1), I(1))), T(cosine), I(1));
  kiln_tensor *apart =
      KILN_STEP(r, clamp_min, T(KILN_STEP(r, sub, T(cosine), args[3], I(1))), I(0));
  same = KILN_STEP(r, where, T(KILN_STEP(r, eq, T(y), I(1))), T(same), T(zero));
  apart = KILN_STEP(r, where, T(KILN_STEP(r, eq, T(y), I(-1))), T(apart), T(zero));
  return kiln__composite_reduced(r, KILN_STEP(r, add, T(same), T(apart), I(1)),
                                 kiln_arg_int(args, 4));
}
