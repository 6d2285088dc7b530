/* compose_math.c: distances, losses, sums and products of other kernels, as recipes. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/recipe.h"

#define SELF kiln_arg_tensor(args, 0)
#define OTHER kiln_arg_tensor(args, 1)

/* A float result for whole numbers. */
static kiln_tensor *as_float(kiln__recipe *r, kiln_tensor *t) {
  const kiln_dtype dtype = kiln__recipe_dtype(t);
  return kiln_dtype_is_int(dtype, true) ? kiln__recipe_to(r, t, KILN_DTYPE_F32) : t;
}
/* 0: none, 1: mean, 2: sum */
static kiln_tensor *reduced(kiln__recipe *r, kiln_tensor *t, int64_t how) {
  return how == 1 ? KILN_COOK(r, mean, T(t), NONE) : how == 2 ? KILN_COOK(r, sum, T(t), NONE) : t;
}

/* -- Sums -- */

static kiln_tensor *without_nan(kiln__recipe *r, kiln_tensor *t) {
  return KILN_COOK(r, masked_fill, T(t), T(KILN_COOK(r, isnan, T(t))), I(0));
}
KILN_RECIPE(nansum) {
  const kiln_ivalue list = kiln_arg_is_none(args, 1) ? kiln__recipe_no_list(r) : args[1];
  kiln__recipe_give(r, outs,
                    KILN_COOK(r, sum_dim, T(without_nan(r, SELF)), list, args[2], args[3]));
}
KILN_RECIPE(nanmean) {
  const kiln_ivalue list = kiln_arg_is_none(args, 1) ? kiln__recipe_no_list(r) : args[1];
  if (!kiln_dtype_is_float(kiln_tensor_dtype(SELF)) &&
      !kiln_dtype_is_complex(kiln_tensor_dtype(SELF))) {
    KILN_RECIPE_FAIL(r,
                     "nanmean(): expected input to have floating point or complex dtype but got "
                     "%s",
                     kiln_dtype_ir_name(kiln_tensor_dtype(SELF)));
  }
  kiln_tensor *fine = KILN_COOK(r, logical_not, T(KILN_COOK(r, isnan, T(SELF))));
  kiln_tensor *count = KILN_COOK(r, sum_dim, T(fine), list, args[2], NONE);
  kiln_tensor *sum = KILN_COOK(r, sum_dim, T(without_nan(r, SELF)), list, args[2], args[3]);
  kiln__recipe_give(r, outs, KILN_COOK(r, div, T(sum), T(count)));
}
KILN_RECIPE(sum_to_size) {
  int64_t sizes[KILN_MAX_RANK], over[KILN_MAX_RANK];
  int rank, count = 0;
  const int have = kiln_tensor_rank(SELF);
  if (!kiln__recipe_ok(r, kiln__arg_int_list(args, 1, sizes, &rank))) return;
  bool fits = rank <= have;
  for (int d = 0; fits && d < have; d++) {
    const int64_t n = kiln_tensor_sizes(SELF)[d];
    if (d < have - rank || (sizes[d - (have - rank)] == 1 && n != 1))
      over[count++] = d;
    else
      fits = sizes[d - (have - rank)] == n;
  }
  if (!fits) {
    KILN_RECIPE_FAIL(r, "size {} is not expandable to size of the tensor");
    return;
  }
  kiln_tensor *t = rank ? SELF : KILN_COOK(r, sum, T(SELF), NONE);
  if (rank && count) {
    t = KILN_COOK(r, sum_dim, T(t), kiln__recipe_ints(r, count, over), B(true), NONE);
    t = kiln__recipe_reshape(r, t, rank, sizes);
  }
  kiln__recipe_give(r, outs, t);
}
/* The mean of neighbours times their distance: y, dx or x, dim */
static kiln_tensor *strips(kiln__recipe *r, kiln_tensor *y, kiln_tensor *x, kiln_ivalue dx,
                           int64_t wanted) {
  const int dim = kiln__recipe_dim(r, wanted, kiln__recipe_rank(y));
  if (kiln__recipe_rank(y) == 0) {
    KILN_RECIPE_FAIL(r, "Dimension specified as %lld but tensor has no dimensions",
                     (long long)wanted);
    return NULL;
  }
  const int64_t n = kiln__recipe_size(y, dim) > 0 ? kiln__recipe_size(y, dim) - 1 : 0;
  kiln_tensor *low = kiln__recipe_narrow(r, y, dim, 0, n);
  kiln_tensor *high = kiln__recipe_narrow(r, y, dim, kiln__recipe_size(y, dim) - n, n);
  kiln_tensor *sum = KILN_COOK(r, add, T(low), T(high), I(1));
  if (!x) return KILN_COOK(r, div, T(KILN_COOK(r, mul, T(sum), dx)), F(2));
  /* x has y's rank, or is along the dimension alone. */
  const int at = kiln__recipe_rank(x) == 1 ? 0 : dim - kiln__recipe_rank(y) + kiln__recipe_rank(x);
  if (at < 0 || kiln__recipe_size(x, at) != kiln__recipe_size(y, dim)) {
    KILN_RECIPE_FAIL(r, "trapezoid: There must be one `x` value for each sample point");
    return NULL;
  }
  kiln_tensor *step = KILN_COOK(r, sub, T(kiln__recipe_narrow(r, x, at, n ? 1 : 0, n)),
                                T(kiln__recipe_narrow(r, x, at, 0, n)), I(1));
  if (kiln__recipe_rank(x) == 1 && step) {
    int64_t sizes[KILN_MAX_RANK];
    for (int d = 0; d < kiln__recipe_rank(y); d++) sizes[d] = d == dim ? n : 1;
    step = kiln__recipe_reshape(r, step, kiln__recipe_rank(y), sizes);
  }
  return KILN_COOK(r, div, T(KILN_COOK(r, mul, T(sum), T(step))), F(2));
}
static void trapezoid(kiln__recipe *r, kiln_tensor *y, kiln_tensor *x, kiln_ivalue dx, int64_t dim,
                      kiln_ivalue *outs) {
  const int at = kiln__recipe_dim(r, dim, kiln__recipe_rank(y));
  const bool none = !r->status && kiln__recipe_rank(y) && kiln__recipe_size(y, at) == 0;
  /* Of no samples x is not looked at, and the dtype stays. */
  kiln_tensor *t = none ? y : strips(r, y, x, dx, dim);
  kiln_ivalue dtype = none ? I(kiln_tensor_dtype(y)) : NONE;
  kiln__recipe_give(r, outs, KILN_COOK(r, sum_dim, T(t), INTS(dim), B(false), dtype));
}
KILN_RECIPE(trapezoid_x) { trapezoid(r, SELF, OTHER, NONE, kiln_arg_int(args, 2), outs); }
KILN_RECIPE(trapezoid_dx) { trapezoid(r, SELF, NULL, args[1], kiln_arg_int(args, 2), outs); }
KILN_RECIPE(cumulative_trapezoid_x) {
  kiln_tensor *t = strips(r, SELF, OTHER, NONE, kiln_arg_int(args, 2));
  kiln__recipe_give(r, outs, KILN_COOK(r, cumsum, T(t), args[2], NONE));
}
KILN_RECIPE(cumulative_trapezoid_dx) {
  kiln_tensor *t = strips(r, SELF, NULL, args[1], kiln_arg_int(args, 2));
  kiln__recipe_give(r, outs, KILN_COOK(r, cumsum, T(t), args[2], NONE));
}

/* -- Products -- */

/* beta * self + alpha * product; beta 0 does not look at self. */
static void add_product(kiln__recipe *r, kiln_tensor *self, kiln_tensor *product, kiln_ivalue beta,
                        kiln_ivalue alpha, kiln_ivalue *outs) {
  if (kiln_dtype_is_int(kiln__recipe_dtype(product), true)) { /* whole numbers take whole factors */
    beta = I(kiln__number_i64(kiln__number(beta)));
    alpha = I(kiln__number_i64(kiln__number(alpha)));
  }
  const kiln_number b = kiln__number(beta);
  if (!product) return;
  self = KILN_COOK(r, expand, T(self),
                   kiln__recipe_ints(r, kiln_tensor_rank(product), kiln_tensor_sizes(product)),
                   B(false));
  if (alpha.tag != KILN_TAG_INT || alpha.u.i != 1) product = KILN_COOK(r, mul, T(product), alpha);
  if (b.f == 0 && b.im == 0) {
    kiln__recipe_give(r, outs, product);
    return;
  }
  if (beta.tag != KILN_TAG_INT || b.i != 1) self = KILN_COOK(r, mul, T(self), beta);
  kiln__recipe_give(r, outs, KILN_COOK(r, add, T(self), T(product), I(1)));
}
KILN_RECIPE(addbmm) {
  kiln_tensor *a = OTHER, *b = kiln_arg_tensor(args, 2);
  kiln_tensor *product = KILN_COOK(r, bmm, T(a), T(b));
  product = KILN_COOK(r, sum_dim, T(product), INTS(0), B(false), I(kiln__recipe_dtype(product)));
  add_product(r, SELF, product, args[3], args[4], outs);
}
/* Of bools: beta and self, or alpha and the product. */
static void add_truth(kiln__recipe *r, kiln_tensor *self, kiln_tensor *product, bool beta,
                      bool alpha, kiln_ivalue *outs) {
  product = KILN_COOK(r, mul, T(product), B(alpha));
  self = KILN_COOK(r, mul, T(self), B(beta));
  kiln__recipe_give(r, outs, KILN_COOK(r, logical_or, T(product), T(self)));
}
static bool is_true(kiln_ivalue v) { return kiln__number(v).f != 0; }
KILN_RECIPE(addr) {
  kiln_tensor *product = KILN_COOK(r, outer, args[1], args[2]);
  if (product && kiln_tensor_dtype(product) == KILN_DTYPE_BOOL &&
      kiln_tensor_dtype(SELF) == KILN_DTYPE_BOOL) {
    add_truth(r, SELF, product, is_true(args[3]), is_true(args[4]), outs);
    return;
  }
  add_product(r, SELF, product, args[3], args[4], outs);
}
KILN_RECIPE(vdot) {
  kiln_tensor *a =
      kiln_dtype_is_complex(kiln_tensor_dtype(SELF)) ? KILN_COOK(r, conj, T(SELF)) : SELF;
  kiln__recipe_give(r, outs, KILN_COOK(r, dot, T(a), T(OTHER)));
}
KILN_RECIPE(linalg_vecdot) {
  kiln_tensor *a =
      kiln_dtype_is_complex(kiln_tensor_dtype(SELF)) ? KILN_COOK(r, conj, T(SELF)) : SELF;
  kiln_tensor *product = KILN_COOK(r, mul, T(a), T(OTHER));
  kiln__recipe_give(r, outs,
                    KILN_COOK(r, sum_dim, T(product), INTS(kiln_arg_int(args, 2)), B(false),
                              I(kiln__recipe_dtype(product))));
}
KILN_RECIPE(kron) {
  const int ra = kiln_tensor_rank(SELF), rb = kiln_tensor_rank(OTHER), rank = ra > rb ? ra : rb;
  int64_t a[KILN_MAX_RANK], b[KILN_MAX_RANK], both[KILN_MAX_RANK];
  if (2 * rank > KILN_MAX_RANK) {
    KILN_RECIPE_FAIL(r, "kron: too many dimensions");
    return;
  }
  for (int d = 0; d < rank; d++) {
    a[2 * d] = d < rank - ra ? 1 : kiln_tensor_sizes(SELF)[d - (rank - ra)];
    b[2 * d + 1] = d < rank - rb ? 1 : kiln_tensor_sizes(OTHER)[d - (rank - rb)];
    a[2 * d + 1] = b[2 * d] = 1;
    both[d] = a[2 * d] * b[2 * d + 1];
  }
  kiln_tensor *x = kiln__recipe_reshape(r, SELF, 2 * rank, a);
  kiln_tensor *y = kiln__recipe_reshape(r, OTHER, 2 * rank, b);
  kiln__recipe_give(r, outs, kiln__recipe_reshape(r, KILN_COOK(r, mul, T(x), T(y)), rank, both));
}
KILN_RECIPE(linalg_cross) {
  kiln_tensor *a = SELF, *b = OTHER, *rolled[2][2];
  const int rank = kiln_tensor_rank(a);
  int dim = 0, found = kiln_arg_is_none(args, 2) ? 0 : 1;
  if (found) {
    dim = kiln__recipe_dim(r, kiln_arg_int(args, 2), rank);
  } else { /* the first of size 3 */
    while (dim < rank && kiln_tensor_sizes(a)[dim] != 3) dim++;
    if (dim == rank) KILN_RECIPE_FAIL(r, "no dimension of size 3 in input");
  }
  if (!r->status && (kiln__recipe_size(a, dim) != 3 || rank != kiln_tensor_rank(b) ||
                     kiln__recipe_size(b, dim) != 3)) {
    KILN_RECIPE_FAIL(r, "linalg.cross: inputs dimension %d must have length 3. Got %lld and %lld",
                     dim, (long long)kiln__recipe_size(a, dim),
                     (long long)kiln__recipe_size(b, dim));
  }
  if (r->status) return;
  for (int k = 0; k < 2; k++) {
    kiln_tensor *t = k ? b : a;
    rolled[k][0] = KILN_COOK(r, roll, T(t), INTS(-1), INTS(dim));
    rolled[k][1] = KILN_COOK(r, roll, T(t), INTS(-2), INTS(dim));
  }
  kiln_tensor *plus = KILN_COOK(r, mul, T(rolled[0][0]), T(rolled[1][1]));
  kiln_tensor *minus = KILN_COOK(r, mul, T(rolled[0][1]), T(rolled[1][0]));
  kiln__recipe_give(r, outs, KILN_COOK(r, sub, T(plus), T(minus), I(1)));
}
KILN_RECIPE(linalg_multi_dot) {
  const kiln_list *list = kiln_arg_list(args, 0);
  if (list->count < 2) {
    KILN_RECIPE_FAIL(r, "multi_dot(): expected at least 2 tensors but got %lld",
                     (long long)list->count);
    return;
  }
  kiln_tensor *t = list->items[0].u.tensor;
  for (int64_t i = 1; i < list->count && !r->status; i++) {
    t = KILN_COOK(r, matmul, T(t), T(list->items[i].u.tensor));
  }
  kiln__recipe_give(r, outs, t);
}
/* x1, x2, weight [out, in1, in2], bias */
KILN_RECIPE(bilinear) {
  kiln_tensor *x = SELF, *y = OTHER, *w = kiln_arg_tensor(args, 2);
  const int rank = kiln_tensor_rank(x);
  if (rank < 1 || rank != kiln_tensor_rank(y) || kiln_tensor_rank(w) != 3 ||
      kiln__recipe_size(x, -1) != kiln__recipe_size(w, 1) ||
      kiln__recipe_size(y, -1) != kiln__recipe_size(w, 2)) {
    KILN_RECIPE_FAIL(r, "bilinear(): input sizes do not match weight size");
    return;
  }
  const int64_t n = kiln__recipe_size(w, 0), a = kiln__recipe_size(w, 1),
                b = kiln__recipe_size(w, 2);
  int64_t sizes[KILN_MAX_RANK], rows = 1;
  for (int d = 0; d + 1 < rank; d++) rows *= sizes[d] = kiln_tensor_sizes(x)[d];
  sizes[rank - 1] = n;
  x = kiln__recipe_reshape(r, x, 2, (const int64_t[]){rows, a});
  y = kiln__recipe_reshape(r, y, 3, (const int64_t[]){1, rows, b});
  kiln_tensor *xw = KILN_COOK(r, matmul, T(x), T(w)); /* [n, rows, b] */
  kiln_tensor *t = KILN_COOK(r, sum_dim, T(KILN_COOK(r, mul, T(xw), T(y))), INTS(2), B(false),
                             I(kiln__recipe_dtype(xw)));
  t = kiln__recipe_copy(r, KILN_COOK(r, transpose, T(t), I(0), I(1)));
  t = kiln__recipe_reshape(r, t, rank, sizes);
  if (!kiln_arg_is_none(args, 3)) t = KILN_COOK(r, add, T(t), args[3], I(1));
  kiln__recipe_give(r, outs, t);
}
/* v, g, dim: v * (g / |v|) with the norm over all dimensions but one */
KILN_RECIPE(_weight_norm) {
  const int rank = kiln_tensor_rank(SELF), dim = kiln__recipe_dim(r, kiln_arg_int(args, 2), rank);
  int64_t dims[KILN_MAX_RANK];
  int count = 0;
  for (int d = 0; d < rank; d++) {
    if (d != dim || kiln_arg_int(args, 2) == -1) dims[count++] = d;
  }
  kiln_tensor *norm = KILN_COOK(r, linalg_vector_norm, T(SELF), F(2),
                                kiln__recipe_ints(r, count, dims), B(true), NONE);
  kiln_tensor *scale = KILN_COOK(r, div, T(OTHER), T(norm));
  kiln__recipe_give(r, outs, KILN_COOK(r, mul, T(SELF), T(scale)));
}

/* -- Distances -- */

static kiln_tensor *norm_of(kiln__recipe *r, kiln_tensor *t, kiln_ivalue p, int64_t dim,
                            bool keep) {
  return KILN_COOK(r, linalg_vector_norm, T(t), p, INTS(dim), B(keep), NONE);
}
KILN_RECIPE(dist) {
  kiln_tensor *t = KILN_COOK(r, sub, T(SELF), T(OTHER), I(1));
  kiln__recipe_give(r, outs, KILN_COOK(r, linalg_vector_norm, T(t), args[2], NONE, B(false), NONE));
}
static kiln_tensor *pair_distance(kiln__recipe *r, kiln_tensor *a, kiln_tensor *b, kiln_ivalue p,
                                  kiln_ivalue eps, bool keep) {
  kiln_tensor *t = KILN_COOK(r, sub, T(a), T(b), I(1));
  t = KILN_COOK(r, add, T(t), eps, I(1));
  return norm_of(r, t, p, -1, keep);
}
KILN_RECIPE(pairwise_distance) {
  kiln__recipe_give(r, outs,
                    pair_distance(r, SELF, OTHER, args[2], args[3], kiln_arg_bool(args, 4)));
}
/* x1 [..., P, M], x2 [..., R, M], p */
KILN_RECIPE(cdist) {
  const int ra = kiln_tensor_rank(SELF), rb = kiln_tensor_rank(OTHER);
  if (ra < 2 || rb < 2 || kiln__recipe_size(SELF, -1) != kiln__recipe_size(OTHER, -1)) {
    KILN_RECIPE_FAIL(r, "X1 and X2 must have the same number of columns. X1: %lld X2: %lld",
                     (long long)kiln__recipe_size(SELF, -1),
                     (long long)kiln__recipe_size(OTHER, -1));
    return;
  }
  kiln_tensor *a = KILN_COOK(r, unsqueeze, T(SELF), I(-2));
  kiln_tensor *b = KILN_COOK(r, unsqueeze, T(OTHER), I(-3));
  kiln__recipe_give(r, outs, norm_of(r, KILN_COOK(r, sub, T(a), T(b), I(1)), args[2], -1, false));
}
KILN_RECIPE(pdist) {
  const int64_t n = kiln__recipe_size(SELF, 0);
  if (kiln_tensor_rank(SELF) != 2) {
    KILN_RECIPE_FAIL(r, "pdist only supports 2D tensors, got: %dD", kiln_tensor_rank(SELF));
    return;
  }
  kiln_tensor *mask = KILN_COOK(r, ones, INTS(n, n), I(KILN_DTYPE_BOOL), NONE, NONE, NONE);
  mask = KILN_COOK(r, nonzero, T(KILN_COOK(r, triu, T(mask), I(1))));
  kiln_tensor *a =
      KILN_COOK(r, index_select, T(SELF), I(0), T(KILN_COOK(r, select, T(mask), I(1), I(0))));
  kiln_tensor *b =
      KILN_COOK(r, index_select, T(SELF), I(0), T(KILN_COOK(r, select, T(mask), I(1), I(1))));
  kiln__recipe_give(r, outs, norm_of(r, KILN_COOK(r, sub, T(a), T(b), I(1)), args[1], -1, false));
}
/* x1, x2, dim, eps: each is divided by its norm, which is at least eps */
static kiln_tensor *similarity(kiln__recipe *r, kiln_tensor *a, kiln_tensor *b, int64_t dim,
                               double eps) {
  kiln_tensor *x[2] = {as_float(r, a), as_float(r, b)};
  for (int i = 0; i < 2; i++) {
    kiln_tensor *norm = norm_of(r, x[i], I(2), dim, true);
    x[i] = KILN_COOK(r, div, T(x[i]), T(KILN_COOK(r, clamp_min, T(norm), F(eps))));
  }
  return KILN_COOK(r, sum_dim, T(KILN_COOK(r, mul, T(x[0]), T(x[1]))), INTS(dim), B(false), NONE);
}
KILN_RECIPE(cosine_similarity) {
  kiln_tensor *a = SELF, *b = OTHER;
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  if (!kiln__recipe_ok(
          r, kiln_broadcast(kiln_tensor_rank(a), kiln_tensor_sizes(a), kiln_tensor_rank(b),
                            kiln_tensor_sizes(b), &rank, sizes))) {
    return;
  }
  a = KILN_COOK(r, expand, T(a), kiln__recipe_ints(r, rank, sizes), B(false));
  b = KILN_COOK(r, expand, T(b), kiln__recipe_ints(r, rank, sizes), B(false));
  kiln__recipe_give(r, outs, similarity(r, a, b, kiln_arg_int(args, 2), kiln_arg_float(args, 3)));
}
/* self, p, dim, maxnorm: slices along a dimension are scaled down to the norm */
KILN_RECIPE(renorm) {
  const int rank = kiln_tensor_rank(SELF), dim = kiln__recipe_dim(r, kiln_arg_int(args, 2), rank);
  int64_t dims[KILN_MAX_RANK];
  int count = 0;
  for (int d = 0; d < rank; d++) {
    if (d != dim) dims[count++] = d;
  }
  kiln_tensor *norm = KILN_COOK(r, linalg_vector_norm, T(SELF), args[1],
                                kiln__recipe_ints(r, count, dims), B(true), NONE);
  kiln_tensor *over = KILN_COOK(r, gt, T(norm), args[3]);
  kiln_tensor *scale = KILN_COOK(r, add, T(norm), F(1e-7), I(1));
  scale = KILN_COOK(r, mul, T(KILN_COOK(r, reciprocal, T(scale))), args[3]);
  scale = KILN_COOK(r, where, T(over), T(scale), F(1));
  kiln__recipe_give(r, outs, KILN_COOK(r, mul, T(SELF), T(scale)));
}

/* -- Losses; the last argument is the reduction -- */

KILN_RECIPE(kl_div) {
  kiln_tensor *x = SELF, *y = OTHER, *loss;
  if (kiln_arg_bool(args, 3)) {
    loss = KILN_COOK(r, mul, T(KILN_COOK(r, exp, T(y))), T(KILN_COOK(r, sub, T(y), T(x), I(1))));
  } else {
    kiln_tensor *product = KILN_COOK(r, mul, T(y), T(x));
    loss = KILN_COOK(r, sub, T(KILN_COOK(r, xlogy, T(y), T(y))), T(product), I(1));
  }
  kiln__recipe_give(r, outs, reduced(r, loss, kiln_arg_int(args, 2)));
}
KILN_RECIPE(margin_ranking_loss) {
  kiln_tensor *t = KILN_COOK(r, sub, T(SELF), T(OTHER), I(1));
  t = KILN_COOK(r, mul, T(KILN_COOK(r, neg, args[2])), T(t));
  t = KILN_COOK(r, clamp_min, T(KILN_COOK(r, add, T(t), args[3], I(1))), I(0));
  kiln__recipe_give(r, outs, reduced(r, t, kiln_arg_int(args, 4)));
}
KILN_RECIPE(hinge_embedding_loss) {
  kiln_tensor *margin =
      KILN_COOK(r, sub, T(KILN_COOK(r, neg, T(SELF))), F(-kiln_arg_float(args, 2)), I(1));
  margin = KILN_COOK(r, clamp_min, T(margin), I(0));
  kiln_tensor *zero = KILN_COOK(r, mul, T(SELF), I(0));
  kiln_tensor *a = KILN_COOK(r, where, T(KILN_COOK(r, ne, T(OTHER), I(1))), T(margin), T(zero));
  kiln_tensor *b = KILN_COOK(r, where, T(KILN_COOK(r, ne, T(OTHER), I(-1))), T(SELF), T(zero));
  kiln__recipe_give(r, outs,
                    reduced(r, KILN_COOK(r, add, T(a), T(b), I(1)), kiln_arg_int(args, 3)));
}
KILN_RECIPE(soft_margin_loss) {
  kiln_tensor *t = KILN_COOK(r, mul, T(KILN_COOK(r, neg, T(OTHER))), T(SELF));
  t = KILN_COOK(r, log1p, T(KILN_COOK(r, exp, T(t))));
  kiln__recipe_give(r, outs, reduced(r, t, kiln_arg_int(args, 2)));
}
KILN_RECIPE(poisson_nll_loss) {
  kiln_tensor *x = SELF, *y = OTHER, *loss;
  if (kiln_arg_bool(args, 2)) {
    loss = KILN_COOK(r, sub, T(KILN_COOK(r, exp, T(x))), T(KILN_COOK(r, mul, T(y), T(x))), I(1));
  } else {
    kiln_tensor *log = KILN_COOK(r, log, T(KILN_COOK(r, add, T(x), args[4], I(1))));
    loss = KILN_COOK(r, sub, T(x), T(KILN_COOK(r, mul, T(y), T(log))), I(1));
  }
  if (kiln_arg_bool(args, 3)) { /* Stirling's approximation where the target is above 1 */
    kiln_tensor *log = KILN_COOK(r, log, T(y));
    kiln_tensor *half = KILN_COOK(r, log, T(KILN_COOK(r, mul, T(y), F(2 * M_PI))));
    kiln_tensor *term = KILN_COOK(r, sub, T(KILN_COOK(r, mul, T(y), T(log))), T(y), I(1));
    term = KILN_COOK(r, add, T(term), T(KILN_COOK(r, mul, T(half), F(0.5))), I(1));
    term = KILN_COOK(r, masked_fill, T(term), T(KILN_COOK(r, le, T(y), I(1))), I(0));
    loss = KILN_COOK(r, add, T(loss), T(term), I(1));
  }
  kiln__recipe_give(r, outs, reduced(r, loss, kiln_arg_int(args, 5)));
}
/* anchor, positive, negative, margin, p, eps, swap, reduction */
KILN_RECIPE(triplet_margin_loss) {
  kiln_tensor *near = pair_distance(r, SELF, OTHER, args[4], args[5], false);
  kiln_tensor *far = pair_distance(r, SELF, kiln_arg_tensor(args, 2), args[4], args[5], false);
  if (kiln_arg_bool(args, 6)) {
    kiln_tensor *swapped =
        pair_distance(r, OTHER, kiln_arg_tensor(args, 2), args[4], args[5], false);
    far = KILN_COOK(r, minimum, T(far), T(swapped));
  }
  kiln_tensor *t = KILN_COOK(r, sub, T(KILN_COOK(r, add, T(near), args[3], I(1))), T(far), I(1));
  kiln__recipe_give(r, outs,
                    reduced(r, KILN_COOK(r, clamp_min, T(t), I(0)), kiln_arg_int(args, 7)));
}
/* input1, input2, target, margin, reduction */
KILN_RECIPE(cosine_embedding_loss) {
  kiln_tensor *a = as_float(r, SELF), *b = as_float(r, OTHER), *y = kiln_arg_tensor(args, 2);
  const int64_t dim = kiln_tensor_rank(y) == 0 ? 0 : 1;
  kiln_tensor *product =
      KILN_COOK(r, sum_dim, T(KILN_COOK(r, mul, T(a), T(b))), INTS(dim), B(false), NONE);
  kiln_tensor *aa =
      KILN_COOK(r, sum_dim, T(KILN_COOK(r, mul, T(a), T(a))), INTS(dim), B(false), NONE);
  kiln_tensor *bb =
      KILN_COOK(r, sum_dim, T(KILN_COOK(r, mul, T(b), T(b))), INTS(dim), B(false), NONE);
  aa = KILN_COOK(r, add, T(aa), F(1e-12), I(1));
  bb = KILN_COOK(r, add, T(bb), F(1e-12), I(1));
  kiln_tensor *cosine =
      KILN_COOK(r, div, T(product), T(KILN_COOK(r, sqrt, T(KILN_COOK(r, mul, T(aa), T(bb))))));
  kiln_tensor *zero = KILN_COOK(r, mul, T(cosine), I(0));
  kiln_tensor *same = KILN_COOK(r, sub, T(KILN_COOK(r, add, T(zero), I(1), I(1))), T(cosine), I(1));
  kiln_tensor *apart =
      KILN_COOK(r, clamp_min, T(KILN_COOK(r, sub, T(cosine), args[3], I(1))), I(0));
  same = KILN_COOK(r, where, T(KILN_COOK(r, eq, T(y), I(1))), T(same), T(zero));
  apart = KILN_COOK(r, where, T(KILN_COOK(r, eq, T(y), I(-1))), T(apart), T(zero));
  kiln__recipe_give(r, outs,
                    reduced(r, KILN_COOK(r, add, T(same), T(apart), I(1)), kiln_arg_int(args, 4)));
}

/* -- Statistics -- */

/* self [n, m] or [m], correction, fweights, aweights */
KILN_RECIPE(cov) {
  kiln_tensor *x = SELF, *w = NULL;
  const int rank = kiln_tensor_rank(x);
  if (rank > 2) {
    KILN_RECIPE_FAIL(r,
                     "cov(): expected input to have two or fewer dimensions but got an input with "
                     "%d dimensions",
                     rank);
    return;
  }
  const int64_t n = rank == 0 ? 1 : kiln__recipe_size(x, -1),
                rows = rank == 2 ? kiln__recipe_size(x, 0) : 1;
  x = as_float(r, kiln__recipe_reshape(r, x, 2, (const int64_t[]){rows, n}));
  if (!kiln_arg_is_none(args, 2)) w = kiln_arg_tensor(args, 2);
  if (!kiln_arg_is_none(args, 3)) {
    w = w ? KILN_COOK(r, mul, T(w), args[3]) : kiln_arg_tensor(args, 3);
  }
  kiln_tensor *count, *mean, *weighted;
  if (w) {
    count = KILN_COOK(r, sum, T(w), NONE);
    weighted = KILN_COOK(r, mul, T(x), T(w));
    mean =
        KILN_COOK(r, div, T(KILN_COOK(r, sum_dim, T(weighted), INTS(1), B(true), NONE)), T(count));
  } else {
    count = KILN_COOK(r, full, kiln__recipe_no_list(r), I(n), I(KILN_DTYPE_I64), NONE, NONE, NONE);
    mean = KILN_COOK(r, div, T(KILN_COOK(r, sum_dim, T(x), INTS(1), B(true), NONE)), T(count));
  }
  kiln_tensor *norm;
  const kiln_ivalue correction = args[1];
  if (w && !kiln_arg_is_none(args, 3) && kiln__number(correction).f != 0) {
    kiln_tensor *wa = KILN_COOK(r, sum, T(KILN_COOK(r, mul, T(w), args[3])), NONE);
    wa = KILN_COOK(r, mul, T(KILN_COOK(r, div, T(wa), T(count))), correction);
    norm = KILN_COOK(r, sub, T(count), T(wa), I(1));
  } else {
    norm = KILN_COOK(r, sub, T(count), correction, I(1));
  }
  norm = KILN_COOK(r, clamp_min, T(norm), I(0));
  x = KILN_COOK(r, sub, T(x), T(mean), I(1));
  kiln_tensor *y = w ? KILN_COOK(r, mul, T(x), T(w)) : x;
  y = KILN_COOK(r, transpose, T(y), I(0), I(1));
  if (kiln_dtype_is_complex(kiln__recipe_dtype(y))) y = KILN_COOK(r, conj, T(y));
  kiln_tensor *c = KILN_COOK(r, mm, T(x), T(y));
  c = KILN_COOK(r, div, T(c), T(norm));
  if (rows == 1) c = kiln__recipe_reshape(r, c, 0, NULL);
  kiln__recipe_give(r, outs, c);
}
KILN_RECIPE(corrcoef) {
  const kiln_ivalue own[] = {T(SELF), I(1), NONE, NONE};
  kiln_tensor *c = kiln__recipe_cook(r, kiln__kernel_cov, own);
  if (kiln__recipe_rank(c) == 0) {
    kiln__recipe_give(r, outs, KILN_COOK(r, div, T(c), T(c)));
    return;
  }
  const bool complex = kiln_dtype_is_complex(kiln__recipe_dtype(c));
  kiln_tensor *d = KILN_COOK(r, diagonal, T(c), I(0), I(0), I(1));
  if (complex) d = KILN_COOK(r, real, T(d));
  d = KILN_COOK(r, sqrt, T(d));
  c = KILN_COOK(r, div, T(c), T(KILN_COOK(r, unsqueeze, T(d), I(1))));
  c = KILN_COOK(r, div, T(c), T(KILN_COOK(r, unsqueeze, T(d), I(0))));
  if (complex) {
    c = KILN_COOK(r, complex, T(KILN_COOK(r, clamp, T(KILN_COOK(r, real, T(c))), I(-1), I(1))),
                  T(KILN_COOK(r, clamp, T(KILN_COOK(r, imag, T(c))), I(-1), I(1))));
  } else {
    c = KILN_COOK(r, clamp, T(c), I(-1), I(1));
  }
  kiln__recipe_give(r, outs, c);
}

/* -- Elements -- */

/* In double, or complex double. */
KILN_RECIPE(float_power) {
  kiln_ivalue both[2];
  bool complex = false;
  for (int i = 0; i < 2; i++) {
    complex |= args[i].tag == KILN_TAG_TENSOR
                   ? kiln_dtype_is_complex(kiln_tensor_dtype(args[i].u.tensor))
                   : args[i].tag == KILN_TAG_COMPLEX;
  }
  const kiln_dtype dtype = complex ? KILN_DTYPE_C128 : KILN_DTYPE_F64;
  for (int i = 0; i < 2; i++) {
    both[i] =
        args[i].tag == KILN_TAG_TENSOR ? T(kiln__recipe_to(r, args[i].u.tensor, dtype)) : args[i];
  }
  kiln__recipe_give(r, outs, KILN_COOK(r, pow, both[0], both[1]));
}
/* log2(2^a + 2^b) */
KILN_RECIPE(logaddexp2) {
  kiln_tensor *a = SELF, *b = OTHER;
  kiln_tensor *most = KILN_COOK(r, maximum, T(a), T(b));
  kiln_tensor *gap =
      KILN_COOK(r, neg, T(KILN_COOK(r, abs, T(KILN_COOK(r, sub, T(a), T(b), I(1))))));
  kiln_tensor *rest =
      KILN_COOK(r, mul, T(KILN_COOK(r, log1p, T(KILN_COOK(r, exp2, T(gap))))), F(M_LOG2E));
  kiln_tensor *sum = KILN_COOK(r, add, T(most), T(rest), I(1));
  kiln_tensor *infinite = KILN_COOK(r, eq, T(a), T(b));
  infinite = KILN_COOK(r, logical_and, T(infinite),
                       T(KILN_COOK(r, logical_not, T(KILN_COOK(r, isfinite, T(a))))));
  kiln__recipe_give(r, outs, KILN_COOK(r, where, T(infinite), T(a), T(sum)));
}
KILN_RECIPE(msort) {
  kiln__recipe_give(r, outs, KILN_COOK(r, sort_stable, T(SELF), B(true), I(0), B(false)));
}
KILN_RECIPE(special_xlog1py) {
  kiln_tensor *y = args[1].tag == KILN_TAG_TENSOR ? OTHER
                                                  : KILN_COOK(r, full, kiln__recipe_no_list(r),
                                                              args[1], NONE, NONE, NONE, NONE);
  kiln_tensor *log = KILN_COOK(r, log1p, T(y));
  kiln_tensor *product = KILN_COOK(r, mul, args[0], T(log));
  kiln_tensor *zero =
      args[0].tag == KILN_TAG_TENSOR
          ? KILN_COOK(r, eq, args[0], I(0))
          : KILN_COOK(r, full, kiln__recipe_no_list(r), B(kiln__number(args[0]).f == 0),
                      I(KILN_DTYPE_BOOL), NONE, NONE, NONE);
  zero = KILN_COOK(r, logical_and, T(zero),
                   T(KILN_COOK(r, logical_not, T(KILN_COOK(r, isnan, T(y))))));
  kiln__recipe_give(r, outs, KILN_COOK(r, masked_fill, T(product), T(zero), I(0)));
}
/* -x log x, 0 at 0, -inf below */
KILN_RECIPE(special_entr) {
  kiln_tensor *x = as_float(r, SELF);
  kiln_tensor *t = KILN_COOK(r, neg, T(KILN_COOK(r, mul, T(x), T(KILN_COOK(r, log, T(x))))));
  t = KILN_COOK(r, masked_fill, T(t), T(KILN_COOK(r, eq, T(x), I(0))), I(0));
  kiln__recipe_give(r, outs,
                    KILN_COOK(r, masked_fill, T(t), T(KILN_COOK(r, lt, T(x), I(0))), F(-INFINITY)));
}
/* The normal distribution function. */
KILN_RECIPE(special_ndtr) {
  kiln_tensor *x = KILN_COOK(r, mul, T(as_float(r, SELF)), F(-M_SQRT1_2));
  kiln__recipe_give(r, outs, KILN_COOK(r, mul, T(KILN_COOK(r, erfc, T(x))), F(0.5)));
}
KILN_RECIPE(mvlgamma) {
  const int64_t p = kiln_arg_int(args, 1);
  if (p < 1 || p > 1 << 20) {
    KILN_RECIPE_FAIL(r, "p has to be greater than or equal to 1");
    return;
  }
  kiln_tensor *x = as_float(r, SELF), *sum = NULL;
  for (int64_t k = 0; k < p && !r->status; k++) {
    kiln_tensor *t = KILN_COOK(r, lgamma, T(KILN_COOK(r, sub, T(x), F((double)k / 2), I(1))));
    sum = sum ? KILN_COOK(r, add, T(sum), T(t), I(1)) : t;
  }
  kiln__recipe_give(r, outs,
                    KILN_COOK(r, add, T(sum), F((double)(p * (p - 1)) * log(M_PI) / 4), I(1)));
}
/* rms_norm(input, normalized_shape, weight, eps) */
KILN_RECIPE(rms_norm) {
  int64_t shape[KILN_MAX_RANK], dims[KILN_MAX_RANK];
  int count;
  const int rank = kiln_tensor_rank(SELF);
  if (!kiln__recipe_ok(r, kiln__arg_int_list(args, 1, shape, &count))) return;
  bool fits = count > 0 && count <= rank;
  for (int d = 0; fits && d < count; d++) {
    fits = shape[d] == kiln_tensor_sizes(SELF)[rank - count + d];
    dims[d] = rank - count + d;
  }
  if (!fits) {
    KILN_RECIPE_FAIL(r, "Given normalized_shape, expected input with the same last dimensions");
    return;
  }
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  const double eps = kiln_arg_is_none(args, 3) ? (dtype == KILN_DTYPE_F64 ? 0x1p-52 : 0x1p-23)
                                               : kiln_arg_float(args, 3);
  kiln_tensor *x = dtype == KILN_DTYPE_F16 || dtype == KILN_DTYPE_BF16
                       ? kiln__recipe_to(r, SELF, KILN_DTYPE_F32)
                       : SELF;
  kiln_tensor *mean = KILN_COOK(r, mean_dim, T(KILN_COOK(r, square, T(x))),
                                kiln__recipe_ints(r, count, dims), B(true), NONE);
  kiln_tensor *root = KILN_COOK(r, sqrt, T(KILN_COOK(r, add, T(mean), F(eps), I(1))));
  kiln_tensor *t = KILN_COOK(r, div, T(x), T(root));
  if (!kiln_arg_is_none(args, 2)) t = KILN_COOK(r, mul, T(t), args[2]);
  kiln__recipe_give(r, outs, kiln__recipe_to(r, t, dtype));
}
