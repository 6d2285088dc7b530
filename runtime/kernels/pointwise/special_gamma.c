/* special_gamma.c: the incomplete gamma functions, Bessel's of the first and second kind, and the
 * gradient of samples.
 *
 * Incomplete gamma (Numerical Composites): the power series below a + 1, Lentz's continued fraction
 * above. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/composite.h"

/* -- Incomplete gamma -- */

enum { MOST_TERMS = 100000 };

/* P(a, x), or Q(a, x) = 1 - P. */
static double incomplete(double a, double x, bool upper) {
  if (a < 0 || x < 0) return NAN;
  if (a == 0) return x > 0 ? !upper : NAN;
  if (x == 0) return upper;
  if (isinf(a)) return isinf(x) ? NAN : upper;
  if (isinf(x)) return !upper;
  if (a != a || x != x) return NAN;
  const double scale = exp(a * log(x) - x - lgamma(a));
  if (x < a + 1) {
    double term = 1 / a, sum = term;
    for (int i = 1; term > sum * 1e-17 && i < MOST_TERMS; i++) sum += term *= x / (a + i);
    return upper ? 1 - sum * scale : sum * scale;
  }
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int i = 1; i < MOST_TERMS; i++) {
    const double n = -i * (i - a);
    b += 2;
    d = n * d + b;
    c = b + n / c;
    if (fabs(d) < 1e-300) d = 1e-300;
    if (fabs(c) < 1e-300) c = 1e-300;
    d = 1 / d;
    h *= d * c;
    if (fabs(d * c - 1) < 1e-16) break;
  }
  return upper ? h * scale : 1 - h * scale;
}
static double lower_gamma(double a, double x) { return incomplete(a, x, false); }
static double upper_gamma(double a, double x) { return incomplete(a, x, true); }
static kiln_tensor *gamma_of(kiln__composite *r, const kiln_ivalue *args, bool upper) {
  const kiln_tensor *both = KILN_STEP(r, add, args[0], args[1], I(1)); /* which dtype */
  if (!both) return NULL;
  const kiln_dtype dtype = kiln_tensor_dtype(both);
  if (!kiln_dtype_is_float(dtype)) {
    return kiln__composite_fail(r, kiln__not_implemented(r->call, dtype));
  }
  return kiln__composite_map2(r, SELF, ARG(1), dtype, upper ? upper_gamma : lower_gamma, 4096);
}
KILN_COMPOSITE(igamma) { return gamma_of(r, args, false); }
KILN_COMPOSITE(igammac) { return gamma_of(r, args, true); }

/* -- Bessel -- */

static kiln_tensor *each(kiln__composite *r, kiln_tensor *t, double (*f)(double)) {
  const kiln_dtype own = kiln_tensor_dtype(t), dtype = kiln_dtype_to_float(own);
  if (kiln_dtype_is_complex(own) || kiln_dtype_is_half(own)) {
    return kiln__composite_fail(r, kiln__not_implemented(r->call, own));
  }
  return kiln__composite_map(r, t, dtype, f);
}
static double spherical_j0(double x) {
  if (isinf(x)) return 0;
  return fabs(x) < 1e-4 ? 1 - x * x / 6 : sin(x) / x;
}
/* Where the argument is infinite PyTorch has no limit but NaN. */
#define BESSEL(name)                                                         \
  static double finite_##name(double x) { return isinf(x) ? NAN : name(x); } \
  KILN_COMPOSITE(special_bessel_##name) { return each(r, SELF, finite_##name); }
BESSEL(j0)
BESSEL(j1)
BESSEL(y0)
BESSEL(y1)
KILN_COMPOSITE(special_spherical_bessel_j0) { return each(r, SELF, spherical_j0); }

/* -- Gradients of samples -- */

/* A number as a tensor that leaves the dtype of floats as it is. */
static kiln_tensor *number_like(kiln__composite *r, const kiln_tensor *t, kiln_ivalue v) {
  const kiln_dtype dtype = kiln__composite_dtype(t);
  return KILN_STEP(r, full, kiln__composite_no_list(r), v,
                   kiln_dtype_is_float(dtype) ? I(dtype) : NONE, NONE, NONE, NONE);
}
/* a f[0] + b f[1] + c f[2]: the weights are tensors that broadcast. */
static kiln_tensor *weigh(kiln__composite *r, kiln_tensor *const *f, kiln_tensor *const *weight) {
  kiln_tensor *sum = KILN_STEP(r, mul, T(f[0]), T(weight[0]));
  for (int i = 1; i < 3; i++) {
    sum = KILN_STEP(r, add, T(sum), T(KILN_STEP(r, mul, T(f[i]), T(weight[i]))), I(1));
  }
  return sum;
}
/* Weights of a derivative at the middle of three places, gaps x and y before and after it; at the
 * end where `end` is set, the gap next to it first. */
static void weights_of(kiln__composite *r, kiln_tensor *x, kiln_tensor *y, bool end,
                       kiln_tensor *out[3]) {
  kiln_tensor *both = KILN_STEP(r, add, T(x), T(y), I(1));
  kiln_tensor *xy = KILN_STEP(r, mul, T(x), T(y));
  kiln_tensor *first = KILN_STEP(r, mul, T(x), T(both)), *last = KILN_STEP(r, mul, T(y), T(both));
  if (end) {
    kiln_tensor *sum = KILN_STEP(r, add, T(both), T(x), I(1));
    out[0] = KILN_STEP(r, neg, T(KILN_STEP(r, div, T(sum), T(first))));
    out[1] = KILN_STEP(r, div, T(both), T(xy));
    out[2] = KILN_STEP(r, neg, T(KILN_STEP(r, div, T(x), T(last))));
  } else {
    out[0] = KILN_STEP(r, neg, T(KILN_STEP(r, div, T(y), T(first))));
    out[1] = KILN_STEP(r, div, T(KILN_STEP(r, sub, T(y), T(x), I(1))), T(xy));
    out[2] = KILN_STEP(r, div, T(x), T(last));
  }
}
/* Element `at` (from the end where negative) along dim, kept as a dimension. */
static kiln_tensor *pick(kiln__composite *r, kiln_tensor *t, int dim, int64_t at) {
  const int64_t n = kiln__composite_size(t, dim);
  return kiln__composite_narrow(r, t, dim, at < 0 ? at + n : at, 1);
}
/* gaps [n - 1, 1, ...]: distances of neighbours along dim. */
static kiln_tensor *gradient_along(kiln__composite *r, kiln_tensor *t, int dim, kiln_tensor *gaps,
                                   int64_t order) {
  const int64_t n = kiln__composite_size(t, dim);
  kiln_tensor *parts[3] = {NULL, NULL, NULL}, *w[3];
  for (int side = 0; side < 2; side++) {
    const int64_t near = side ? -1 : 0, step = side ? -1 : 1;
    kiln_tensor *f[3] = {pick(r, t, dim, near), pick(r, t, dim, near + step), NULL};
    kiln_tensor *x = pick(r, gaps, 0, near);
    if (order == 1) {
      kiln_tensor *rise = KILN_STEP(r, sub, T(f[!side]), T(f[side]), I(1));
      x = kiln__composite_reshape(r, x, 0, NULL);
      parts[side ? 2 : 0] = KILN_STEP(r, div, T(rise), T(x));
      continue;
    }
    f[2] = pick(r, t, dim, near + 2 * step);
    x = kiln__composite_reshape(r, x, 0, NULL);
    kiln_tensor *y = kiln__composite_reshape(r, pick(r, gaps, 0, near + step), 0, NULL);
    weights_of(r, x, y, true, w);
    parts[side ? 2 : 0] = weigh(r, f, w);
    if (side) parts[2] = KILN_STEP(r, neg, T(parts[2]));
  }
  kiln_tensor *x = kiln__composite_narrow(r, gaps, 0, 0, n - 2);
  kiln_tensor *y = kiln__composite_narrow(r, gaps, 0, 1, n - 2);
  kiln_tensor *f[3];
  for (int i = 0; i < 3; i++) f[i] = kiln__composite_narrow(r, t, dim, i, n - 2);
  weights_of(r, x, y, false, w);
  parts[1] = weigh(r, f, w);
  if (r->status) return NULL;
  return KILN_STEP(r, cat, kiln__composite_tensors(r, 3, parts), I(dim));
}
/* spacing: None, a number, or a list of numbers or of tensors of places; dims: None, one or some */
static kiln_tensor *gradient(kiln__composite *r, kiln_tensor *t, kiln_ivalue spacing,
                             kiln_ivalue dim, int64_t order, kiln_ivalue *outs) {
  const int rank = kiln_tensor_rank(t);
  int64_t dims[KILN_MAX_RANK];
  int count = rank;
  for (int d = 0; d < rank; d++) dims[d] = d;
  if (dim.tag == KILN_TAG_INT) dims[0] = dim.u.i, count = 1;
  if (dim.tag == KILN_TAG_LIST &&
      !kiln__composite_ok(r, kiln__arg_int_list(&dim, 0, dims, &count))) {
    return NULL;
  }
  const bool list = spacing.tag == KILN_TAG_LIST;
  if (order != 1 && order != 2) {
    FAIL(r, "torch.gradient only supports edge_order=1 and edge_order=2.");
  } else if (list && spacing.u.list->count != count) {
    FAIL(r,
         "torch.gradient expected spacing to be unspecified, a scalar or a list of "
         "length equal to 'len(dim)', but got %lld values",
         (long long)spacing.u.list->count);
  }
  kiln_tensor *results[KILN_MAX_RANK];
  kiln_list *found;
  for (int i = 0; i < count && !r->status; i++) {
    const int at = kiln__composite_dim(r, dims[i], rank);
    const int64_t n = kiln__composite_size(t, at);
    if (r->status) return NULL;
    if (n < order + 1) {
      return FAIL(r, "torch.gradient expected each dimension size to be at least edge_order+1");
    }
    const kiln_ivalue own = list ? spacing.u.list->items[i] : spacing;
    kiln_tensor *gaps;
    int64_t sizes[KILN_MAX_RANK] = {n - 1};
    for (int d = 1; d < rank - at; d++) sizes[d] = 1;
    if (own.tag == KILN_TAG_TENSOR) {
      kiln_tensor *places = own.u.tensor;
      if (kiln_tensor_rank(places) != 1 || places->numel != n) {
        return FAIL(
            r, "torch.gradient expected the coordinates of a dimension to be a vector of its size");
      }
      gaps = KILN_STEP(r, sub, T(kiln__composite_narrow(r, places, 0, 1, n - 1)),
                       T(kiln__composite_narrow(r, places, 0, 0, n - 1)), I(1));
    } else {
      gaps = KILN_STEP(r, expand, T(number_like(r, t, own.tag == KILN_TAG_NONE ? F(1) : own)),
                       INTS(n - 1), B(false));
    }
    results[i] =
        gradient_along(r, t, at, kiln__composite_reshape(r, gaps, rank - at, sizes), order);
  }
  if (r->status ||
      !kiln__composite_ok(r, kiln__new_list(r->call, KILN_TYPE_TENSOR, count, &found))) {
    return NULL;
  }
  outs[0] = kiln_of_box(found);
  for (int i = 0; i < count; i++) {
    if (!kiln__composite_ok(r,
                            kiln_list_push(found, kiln_of_tensor(kiln_tensor_retain(results[i])))))
      return NULL;
  }
  return NULL;
}
/* self, spacing, dim, edge_order */
KILN_COMPOSITE(gradient) {
  return gradient(r, SELF, args[1], args[2], kiln_arg_int(args, 3), outs);
}
/* self, dim, edge_order */
KILN_COMPOSITE(gradient_array) {
  return gradient(r, SELF, NONE, args[1], kiln_arg_int(args, 2), outs);
}
