/* products.c: products of vectors and of several matrices, as composites of matmul.c. */
#include "base/checked.h"
#include "runtime/kernels/composite.h"
#include "runtime/kernels/heavy/products.h"

/* -- Products -- */

/* beta * self + alpha * product; beta 0 does not look at self. */
static kiln_tensor *add_product(kiln__composite *r, kiln_tensor *self, kiln_tensor *product,
                                kiln_ivalue beta, kiln_ivalue alpha) {
  if (kiln_dtype_is_int(kiln__composite_dtype(product), true)) { /* whole factors too */
    beta = I(kiln__number_i64(kiln__number(beta)));
    alpha = I(kiln__number_i64(kiln__number(alpha)));
  }
  const kiln_number b = kiln__number(beta);
  if (!product) return NULL;
  self = KILN_STEP(r, expand, T(self),
                   kiln__composite_ints(r, kiln_tensor_rank(product), kiln_tensor_sizes(product)),
                   B(false));
  if (alpha.tag != KILN_TAG_INT || alpha.u.i != 1) product = KILN_STEP(r, mul, T(product), alpha);
  if (b.f == 0 && b.im == 0) return product;
  if (beta.tag != KILN_TAG_INT || b.i != 1) self = KILN_STEP(r, mul, T(self), beta);
  return KILN_STEP(r, add, T(self), T(product), I(1));
}
KILN_COMPOSITE(addbmm) {
  kiln_tensor *a = ARG(1), *b = ARG(2);
  kiln_tensor *product = KILN_STEP(r, bmm, T(a), T(b));
  product = KILN_STEP(r, sum_dim, T(product), INTS(0), B(false), I(kiln__composite_dtype(product)));
  return add_product(r, SELF, product, args[3], args[4]);
}
/* Of bools: beta and self, or alpha and the product. */
static kiln_tensor *add_truth(kiln__composite *r, kiln_tensor *self, kiln_tensor *product,
                              bool beta, bool alpha) {
  product = KILN_STEP(r, mul, T(product), B(alpha));
  self = KILN_STEP(r, mul, T(self), B(beta));
  return KILN_STEP(r, logical_or, T(product), T(self));
}
static bool is_true(kiln_ivalue v) { return kiln__number(v).f != 0; }
KILN_COMPOSITE(addr) {
  kiln_tensor *product = KILN_STEP(r, outer, args[1], args[2]);
  if (product && kiln_tensor_dtype(product) == KILN_DTYPE_BOOL &&
      kiln_tensor_dtype(SELF) == KILN_DTYPE_BOOL) {
    return add_truth(r, SELF, product, is_true(args[3]), is_true(args[4]));
  }
  return add_product(r, SELF, product, args[3], args[4]);
}
KILN_COMPOSITE(vdot) {
  kiln_tensor *a =
      kiln_dtype_is_complex(kiln_tensor_dtype(SELF)) ? KILN_STEP(r, conj, T(SELF)) : SELF;
  return KILN_STEP(r, dot, T(a), T(ARG(1)));
}
KILN_COMPOSITE(linalg_vecdot) {
  kiln_tensor *a =
      kiln_dtype_is_complex(kiln_tensor_dtype(SELF)) ? KILN_STEP(r, conj, T(SELF)) : SELF;
  kiln_tensor *product = KILN_STEP(r, mul, T(a), T(ARG(1)));
  return KILN_STEP(r, sum_dim, T(product), INTS(kiln_arg_int(args, 2)), B(false),
                   I(kiln__composite_dtype(product)));
}
KILN_COMPOSITE(kron) {
  const int ra = kiln_tensor_rank(SELF), rb = kiln_tensor_rank(ARG(1)), rank = ra > rb ? ra : rb;
  int64_t a[KILN_MAX_RANK], b[KILN_MAX_RANK], both[KILN_MAX_RANK];
  if (2 * rank > KILN_MAX_RANK) return FAIL(r, "kron: too many dimensions");
  for (int d = 0; d < rank; d++) {
    a[2 * d] = d < rank - ra ? 1 : kiln_tensor_sizes(SELF)[d - (rank - ra)];
    b[2 * d + 1] = d < rank - rb ? 1 : kiln_tensor_sizes(ARG(1))[d - (rank - rb)];
    a[2 * d + 1] = b[2 * d] = 1;
    if (!kiln_checked_mul_i64(a[2 * d], b[2 * d + 1], &both[d])) {
      return kiln__composite_fail(r, kiln_status_oom());
    }
  }
  kiln_tensor *x = kiln__composite_reshape(r, SELF, 2 * rank, a);
  kiln_tensor *y = kiln__composite_reshape(r, ARG(1), 2 * rank, b);
  return kiln__composite_reshape(r, KILN_STEP(r, mul, T(x), T(y)), rank, both);
}
KILN_COMPOSITE(linalg_cross) {
  kiln_tensor *a = SELF, *b = ARG(1), *rolled[2][2];
  const int rank = kiln_tensor_rank(a);
  int dim = 0, found = kiln_arg_is_none(args, 2) ? 0 : 1;
  if (found) {
    dim = kiln__composite_dim(r, kiln_arg_int(args, 2), rank);
  } else { /* the first of size 3 */
    while (dim < rank && kiln_tensor_sizes(a)[dim] != 3) dim++;
    if (dim == rank) FAIL(r, "no dimension of size 3 in input");
  }
  if (!r->status && (kiln__composite_size(a, dim) != 3 || rank != kiln_tensor_rank(b) ||
                     kiln__composite_size(b, dim) != 3)) {
    FAIL(r, "linalg.cross: inputs dimension %d must have length 3. Got %lld and %lld", dim,
         (long long)kiln__composite_size(a, dim), (long long)kiln__composite_size(b, dim));
  }
  if (r->status) return NULL;
  for (int k = 0; k < 2; k++) {
    kiln_tensor *t = k ? b : a;
    rolled[k][0] = KILN_STEP(r, roll, T(t), INTS(-1), INTS(dim));
    rolled[k][1] = KILN_STEP(r, roll, T(t), INTS(-2), INTS(dim));
  }
  kiln_tensor *plus = KILN_STEP(r, mul, T(rolled[0][0]), T(rolled[1][1]));
  kiln_tensor *minus = KILN_STEP(r, mul, T(rolled[0][1]), T(rolled[1][0]));
  return KILN_STEP(r, sub, T(plus), T(minus), I(1));
}
KILN_COMPOSITE(linalg_multi_dot) {
  const kiln_list *list = kiln_arg_list(args, 0);
  if (list->count < 2) {
    return FAIL(r, "multi_dot(): expected at least 2 tensors but got %lld", (long long)list->count);
  }
  kiln_tensor *t = list->items[0].u.tensor;
  for (int64_t i = 1; i < list->count && !r->status; i++) {
    t = KILN_STEP(r, matmul, T(t), T(list->items[i].u.tensor));
  }
  return t;
}
/* x1, x2, weight [out, in1, in2], bias */
KILN_COMPOSITE(bilinear) {
  kiln_tensor *x = SELF, *y = ARG(1), *w = ARG(2);
  const int rank = kiln_tensor_rank(x);
  if (rank < 1 || rank != kiln_tensor_rank(y) || kiln_tensor_rank(w) != 3 ||
      kiln__composite_size(x, -1) != kiln__composite_size(w, 1) ||
      kiln__composite_size(y, -1) != kiln__composite_size(w, 2)) {
    return FAIL(r, "bilinear(): input sizes do not match weight size");
  }
  const int64_t n = kiln__composite_size(w, 0), a = kiln__composite_size(w, 1),
                b = kiln__composite_size(w, 2);
  int64_t sizes[KILN_MAX_RANK], rows = 1;
  for (int d = 0; d + 1 < rank; d++) rows *= sizes[d] = kiln_tensor_sizes(x)[d];
  sizes[rank - 1] = n;
  x = kiln__composite_reshape(r, x, 2, (const int64_t[]){rows, a});
  y = kiln__composite_reshape(r, y, 3, (const int64_t[]){1, rows, b});
  kiln_tensor *xw = KILN_STEP(r, matmul, T(x), T(w)); /* [n, rows, b] */
  kiln_tensor *t = KILN_STEP(r, sum_dim, T(KILN_STEP(r, mul, T(xw), T(y))), INTS(2), B(false),
                             I(kiln__composite_dtype(xw)));
  t = kiln__composite_copy(r, KILN_STEP(r, transpose, T(t), I(0), I(1)));
  t = kiln__composite_reshape(r, t, rank, sizes);
  if (!kiln_arg_is_none(args, 3)) t = KILN_STEP(r, add, T(t), args[3], I(1));
  return t;
}

/* -- All steps of a loop -- */

enum { MOST_STEPS_BYTES = 64 << 20 };

static bool is_plain(const kiln_tensor *t, kiln_dtype dtype, int rank) {
  return kiln_tensor_rank(t) == rank && kiln_tensor_dtype(t) == dtype && !t->sides &&
         kiln_tensor_device(t).kind == KILN_DEVICE_CPU;
}

/* Whether the product of each step would be made, and gains when all are made at once. */
static bool gains(const kiln_tensor *x, int64_t dim, int64_t steps, const kiln_tensor *weight,
                  bool transposed) {
  const kiln_dtype dtype = kiln_tensor_dtype(x);
  const int64_t *sizes = kiln_tensor_sizes(x), *of_weight = kiln_tensor_sizes(weight);
  if ((dtype != KILN_DTYPE_F32 && dtype != KILN_DTYPE_F64) || !is_plain(x, dtype, 3) ||
      !is_plain(weight, dtype, 2) || steps < 2 || sizes[dim] < steps)
    return false;
  const int64_t m = sizes[dim == 0], k = sizes[dim == 2 ? 1 : 2], n = of_weight[!transposed];
  int64_t bytes;
  return m <= KILN_STEPS_MOST_ROWS && k == of_weight[transposed] &&
         kiln_checked_mul_i64(steps * m, n * (int64_t)kiln_dtype_size(dtype), &bytes) &&
         bytes <= MOST_STEPS_BYTES;
}

static kiln_tensor *all_steps(kiln__composite *r, const kiln_ivalue *args,
                              KILN_UNUSED kiln_ivalue *outs) {
  const int64_t dim = kiln_arg_int(args, 1), steps = kiln_arg_int(args, 2);
  kiln_tensor *x = kiln__composite_narrow(r, ARG(0), (int)dim, 0, steps), *weight = ARG(3);
  if (dim == 1) x = KILN_STEP(r, permute, T(x), INTS(1, 0, 2));
  if (dim == 2) x = KILN_STEP(r, permute, T(x), INTS(2, 0, 1));
  const int64_t m = kiln__composite_size(x, 1), k = kiln__composite_size(x, 2);
  if (kiln_arg_bool(args, 4)) weight = KILN_STEP(r, t, T(weight));
  x = kiln__composite_reshape(r, x, 2, (const int64_t[]){steps * m, k});
  kiln_tensor *products = KILN_STEP(r, mm, T(x), T(weight));
  return kiln__composite_reshape(r, products, 3,
                                 (const int64_t[]){steps, m, kiln__composite_size(products, 1)});
}

static kiln_tensor *no_steps(kiln__composite *r, const kiln_ivalue *args,
                             KILN_UNUSED kiln_ivalue *outs) {
  (void)args;
  return kiln__composite_empty(r, KILN_DTYPE_F32);
}

/* What fails here, for want of memory, is tried by each step. */
KILN_KERNEL(steps_of_product) {
  const kiln_tensor *x = ARG(0);
  kiln_ivalue given[5];
  memcpy(given, args, sizeof given);
  int64_t dim = kiln_arg_int(args, 1);
  if (dim < 0) dim += 3;
  given[1] = I(dim);
  bool made =
      dim >= 0 && dim < 3 && gains(x, dim, kiln_arg_int(args, 2), ARG(3), kiln_arg_bool(args, 4));
  if (made) {
    kiln_status *status = kiln__composite_run(call, all_steps, given, outs);
    made = !status;
    kiln_status_destroy(status);
  }
  if (!made) KILN_TRY(kiln__composite_run(call, no_steps, given, outs));
  outs[1] = kiln_bool(made);
  return NULL;
}

/* -- Several tensors -- */

/* Tensor[] matrices */
KILN_COMPOSITE(chain_matmul) {
  const kiln_list *list = kiln_arg_list(args, 0);
  if (list->count == 0) {
    return FAIL(r, "chain_matmul(): Expected one or more matrices");
  }
  kiln_tensor *t = list->items[0].u.tensor;
  for (int64_t i = 0; i < list->count; i++) {
    if (kiln_tensor_rank(list->items[i].u.tensor) == 2) continue;
    return FAIL(r, "Tensor dimension is %d, expected 2 instead.",
                kiln_tensor_rank(list->items[i].u.tensor));
  }
  for (int64_t i = 1; i < list->count; i++) t = KILN_STEP(r, mm, T(t), list->items[i]);
  return t;
}
