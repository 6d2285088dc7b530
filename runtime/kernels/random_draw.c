/* random_draw.c: numbers of further distributions: whole ones, normal ones with a mean of each,
 * classes by weight, Poisson, binomial, gamma; from the instance's random state, like random.c. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/random.h"
#include "runtime/kernels/recipe.h"

#define SELF kiln_arg_tensor(args, 0)

/* -- In place -- */

static kiln_status *in_place(kiln_call *call, kiln_tensor *t, kiln__draw draw, const double *params,
                             kiln_ivalue *out) {
  KILN_TRY(kiln__random_fill(call, t, draw, params));
  kiln__give(out, kiln_tensor_retain(t));
  return NULL;
}
/* The end of random_(): what the dtype can tell apart. */
static double dtype_end(kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_F16: return 0x1p11 + 1;
    case KILN_DTYPE_BF16: return 0x1p8 + 1;
    case KILN_DTYPE_F32: return 0x1p24 + 1;
    case KILN_DTYPE_F64: return 0x1p53 + 1;
    case KILN_DTYPE_BOOL: return 2;
    case KILN_DTYPE_U8: return 0x1p8;
    case KILN_DTYPE_I8: return 0x1p7;
    case KILN_DTYPE_I16: return 0x1p15;
    case KILN_DTYPE_I32: return 0x1p31;
    default: return 0x1p63;
  }
}
static kiln_status *whole(kiln_call *call, kiln_tensor *t, double from, double to,
                          kiln_ivalue *out) {
  const double params[2] = {from, to};
  if (!(from < to)) {
    return KILN_OP_FAIL("random_ expects 'from' to be less than 'to', but got from=%.0f >= to=%.0f",
                        from, to);
  }
  return in_place(call, t, kiln__draw_integer, params, out);
}
KILN_KERNEL(random_) { return whole(call, SELF, 0, dtype_end(kiln_tensor_dtype(SELF)), outs); }
KILN_KERNEL(random_to_) { return whole(call, SELF, 0, (double)kiln_arg_int(args, 1), outs); }
KILN_KERNEL(random_from_) {
  const double end = kiln_arg_is_none(args, 2) ? dtype_end(kiln_tensor_dtype(SELF))
                                               : (double)kiln_arg_int(args, 2);
  return whole(call, SELF, (double)kiln_arg_int(args, 1), end, outs);
}
static double draw_cauchy(kiln_call *call, const double *p) {
  return p[0] + p[1] * tan(M_PI * (kiln__uniform(call) - 0.5));
}
static double draw_log_normal(kiln_call *call, const double *p) {
  return exp(kiln__draw_normal(call, p));
}
static double draw_geometric(kiln_call *call, const double *p) {
  const double n = ceil(log(1 - kiln__uniform(call)) / log1p(-p[0]));
  return n < 1 ? 1 : n;
}
static kiln_status *check_float(kiln_call *call, const kiln_tensor *t) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  return kiln_dtype_is_float(dtype) ? NULL : kiln__not_implemented(call, dtype);
}
KILN_KERNEL(cauchy_) {
  const double params[2] = {kiln_arg_float(args, 1), kiln_arg_float(args, 2)};
  KILN_TRY(check_float(call, SELF));
  if (!(params[1] > 0)) {
    return KILN_OP_FAIL("cauchy_ expects sigma > 0.0, but found sigma=%g", params[1]);
  }
  return in_place(call, SELF, draw_cauchy, params, outs);
}
KILN_KERNEL(log_normal_) {
  const double params[2] = {kiln_arg_float(args, 1), kiln_arg_float(args, 2)};
  KILN_TRY(check_float(call, SELF));
  if (!(params[1] > 0)) {
    return KILN_OP_FAIL("log_normal_ expects std > 0.0, but found std=%g", params[1]);
  }
  return in_place(call, SELF, draw_log_normal, params, outs);
}
KILN_KERNEL(geometric_) {
  const double p = kiln_arg_float(args, 1);
  if (!(p > 0 && p < 1)) {
    return KILN_OP_FAIL("geometric_ expects p to be in (0, 1), but got p=%g", p);
  }
  return in_place(call, SELF, draw_geometric, &p, outs);
}
/* self, low, high: new ones of self's sizes */
KILN_KERNEL(randint_like_low) {
  kiln_tensor *t;
  KILN_TRY(kiln_call_tensor(call, kiln__arg_dtype_or(args, 3, kiln_tensor_dtype(SELF)),
                            kiln_tensor_rank(SELF), kiln_tensor_sizes(SELF), &t));
  kiln_ivalue same = kiln_none();
  kiln_status *status =
      whole(call, t, (double)kiln_arg_int(args, 1), (double)kiln_arg_int(args, 2), &same);
  kiln_ivalue_release_to(&call->cache, same);
  kiln__give(outs, t);
  return status;
}
KILN_KERNEL(randint_like) {
  kiln_ivalue own[8];
  own[0] = args[0];
  own[1] = kiln_int(0);
  memcpy(own + 2, args + 1, sizeof *own * 6);
  return kiln__kernel_randint_like_low(call, own, outs);
}

/* -- A parameter for each element -- */

/* New elements of the sizes of p (read in double), in a dtype, of parameters p and q (NULL: none).
 */
static void each(kiln__recipe *r, kiln_tensor *p, kiln_tensor *q, kiln_dtype dtype,
                 double (*draw)(kiln_call *, double, double), kiln_ivalue *outs) {
  kiln_tensor *a, *b, *out;
  const double *x = kiln__recipe_read(r, p, KILN_DTYPE_F64, &a);
  const double *y = q ? kiln__recipe_read(r, q, KILN_DTYPE_F64, &b) : NULL;
  if (r->status) return;
  double *to = kiln__recipe_new(r, KILN_DTYPE_F64, kiln_tensor_rank(p), kiln_tensor_sizes(p), &out);
  for (int64_t i = 0; to && i < p->numel; i++) to[i] = draw(r->call, x[i], y ? y[i] : 0);
  kiln__recipe_give(r, outs, kiln__recipe_to(r, out, dtype));
}
static double draw_normal(kiln_call *call, double mean, double std) {
  const double params[2] = {mean, std};
  return kiln__draw_normal(call, params);
}
static void normal(kiln__recipe *r, kiln_tensor *mean, kiln_tensor *std, kiln_ivalue *outs) {
  kiln_tensor *low;
  const double *each_std = kiln__recipe_read(r, std, KILN_DTYPE_F64, &low);
  for (int64_t i = 0; each_std && i < std->numel; i++) {
    if (each_std[i] < 0) {
      KILN_RECIPE_FAIL(r, "normal expects all elements of std >= 0.0");
      return;
    }
  }
  if (r->status) return;
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  if (!kiln__recipe_ok(
          r, kiln_broadcast(kiln_tensor_rank(mean), kiln_tensor_sizes(mean), kiln_tensor_rank(std),
                            kiln_tensor_sizes(std), &rank, sizes))) {
    return;
  }
  const kiln_ivalue wide = kiln__recipe_ints(r, rank, sizes);
  each(r, KILN_COOK(r, expand, T(mean), wide, B(false)),
       KILN_COOK(r, expand, T(std), wide, B(false)), kiln_tensor_dtype(mean), draw_normal, outs);
}
/* A number as a tensor of the other's dtype. */
static kiln_tensor *number_like(kiln__recipe *r, const kiln_tensor *t, kiln_ivalue number) {
  return KILN_COOK(r, full, kiln__recipe_no_list(r), number, I(kiln_tensor_dtype(t)), NONE, NONE,
                   NONE);
}
KILN_RECIPE(normal_Tensor_Tensor) { normal(r, SELF, kiln_arg_tensor(args, 1), outs); }
KILN_RECIPE(normal_Tensor_float) { normal(r, SELF, number_like(r, SELF, args[1]), outs); }
KILN_RECIPE(normal_float_Tensor) {
  kiln_tensor *std = kiln_arg_tensor(args, 1);
  normal(r, number_like(r, std, args[0]), std, outs);
}
/* mean, std, size, generator, dtype, ... */
KILN_RECIPE(normal_float_float) {
  const double params[2] = {kiln_arg_float(args, 0), kiln_arg_float(args, 1)};
  kiln_tensor *t = KILN_COOK(r, zeros, args[2], args[4], NONE, NONE, NONE);
  if (params[1] < 0) KILN_RECIPE_FAIL(r, "normal expects std >= 0.0, but found std %g", params[1]);
  if (r->status || !kiln__recipe_ok(r, kiln__random_fill(r->call, t, kiln__draw_normal, params))) {
    return;
  }
  kiln__recipe_give(r, outs, t);
}
/* Knuth's products; halves of a large mean are drawn apart, for sums of Poisson are Poisson. */
static double draw_poisson(kiln_call *call, double mean, double unused) {
  double count = 0;
  (void)unused;
  if (mean > 1e6) { /* nearly normal */
    const double params[2] = {mean, sqrt(mean)};
    const double n = floor(kiln__draw_normal(call, params) + 0.5);
    return n < 0 ? 0 : n;
  }
  while (mean > 0) {
    const double part = mean > 500 ? 500 : mean, limit = exp(-part);
    mean -= part;
    for (double product = kiln__uniform(call); product > limit; count++) {
      product *= kiln__uniform(call);
    }
  }
  return count;
}
KILN_RECIPE(poisson) {
  kiln_tensor *in;
  if (!kiln__recipe_ok(r, check_float(r->call, SELF))) return;
  const double *x = kiln__recipe_read(r, SELF, KILN_DTYPE_F64, &in);
  for (int64_t i = 0; x && i < SELF->numel; i++) {
    if (!(x[i] >= 0)) {
      KILN_RECIPE_FAIL(r, "invalid Poisson rate, expected rate to be non-negative");
      return;
    }
  }
  each(r, SELF, NULL, kiln_tensor_dtype(SELF), draw_poisson, outs);
}
static double draw_binomial(kiln_call *call, double count, double p) {
  double found = 0;
  if (count > 1e6) { /* nearly normal */
    const double params[2] = {count * p, sqrt(count * p * (1 - p))};
    const double n = floor(kiln__draw_normal(call, params) + 0.5);
    return n < 0 ? 0 : n > count ? count : n;
  }
  for (int64_t i = 0; (double)i < count; i++) found += kiln__uniform(call) < p;
  return found;
}
KILN_RECIPE(binomial) {
  kiln_tensor *prob = kiln_arg_tensor(args, 1);
  if (kiln_tensor_rank(prob) != kiln_tensor_rank(SELF) || prob->numel != SELF->numel) {
    KILN_RECIPE_FAIL(r, "binomial: count and prob must be of one shape");
    return;
  }
  each(r, SELF, prob, kiln_tensor_dtype(SELF), draw_binomial, outs);
}
/* Marsaglia and Tsang (2000). */
static double draw_gamma(kiln_call *call, double alpha, double unused) {
  static const double unit[2] = {0, 1};
  (void)unused;
  double scale = 1;
  if (!(alpha > 0)) return 0;
  if (alpha > 1e300) return alpha; /* 9 d overflows; the spread is far below the last bit */
  if (alpha < 1) {
    scale = pow(1 - kiln__uniform(call), 1 / alpha);
    alpha += 1;
  }
  const double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
  for (;;) {
    const double x = kiln__draw_normal(call, unit), y = 1 + c * x;
    const double u = 1 - kiln__uniform(call), v = y * y * y;
    if (y > 0 && log(u) < 0.5 * x * x + d * (1 - v + log(v))) return scale * d * v;
  }
}
KILN_RECIPE(_standard_gamma) {
  if (!kiln__recipe_ok(r, check_float(r->call, SELF))) return;
  each(r, SELF, NULL, kiln_tensor_dtype(SELF), draw_gamma, outs);
}
KILN_RECIPE(_sample_dirichlet) {
  kiln_ivalue gamma = kiln_none();
  if (!kiln__recipe_ok(r, check_float(r->call, SELF))) return;
  each(r, SELF, NULL, KILN_DTYPE_F64, draw_gamma, &gamma);
  kiln_tensor *t = gamma.tag == KILN_TAG_TENSOR ? kiln__recipe_keep(r, gamma.u.tensor) : NULL;
  kiln_tensor *sum = KILN_COOK(r, sum_dim, T(t), INTS(-1), B(true), NONE);
  kiln__recipe_give(r, outs,
                    kiln__recipe_to(r, KILN_COOK(r, div, T(t), T(sum)), kiln_tensor_dtype(SELF)));
}
/* self, p (a tensor that broadcasts to self) */
KILN_RECIPE(bernoulli_Tensor_) {
  kiln_tensor *t = SELF;
  kiln_tensor *p =
      KILN_COOK(r, expand, args[1], kiln__recipe_ints(r, kiln_tensor_rank(t), kiln_tensor_sizes(t)),
                B(false));
  kiln_tensor *drawn = KILN_COOK(r, bernoulli, T(kiln__recipe_to(r, p, KILN_DTYPE_F64)), NONE);
  KILN_COOK(r, copy_, T(t), T(drawn), B(false));
  if (!r->status) kiln__give(outs, kiln_tensor_retain(t));
}

/* -- Classes by weight -- */

/* One class by weight; the last one that has any where rounding runs past the end. */
static int64_t pick(kiln_call *call, const double *weight, int64_t n, double sum) {
  double left = kiln__uniform(call) * sum;
  int64_t last = 0;
  for (int64_t k = 0; k < n; k++) {
    if (!(weight[k] > 0)) continue;
    last = k;
    left -= weight[k];
    if (left < 0) break;
  }
  return last;
}
static bool draw_row(kiln__recipe *r, double *weight, int64_t n, int64_t count, bool again,
                     int64_t *to) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) {
    if (!(weight[k] >= 0) || isinf(weight[k])) {
      KILN_RECIPE_FAIL(r, "probability tensor contains either `inf`, `nan` or element < 0");
      return false;
    }
    sum += weight[k];
  }
  for (int64_t i = 0; i < count; i++) {
    if (!(sum > 0)) {
      KILN_RECIPE_FAIL(r, "invalid multinomial distribution (sum of probabilities <= 0)");
      return false;
    }
    to[i] = pick(r->call, weight, n, sum);
    if (again) continue;
    weight[to[i]] = 0;
    sum = 0;
    for (int64_t k = 0; k < n; k++) sum += weight[k];
    for (int64_t k = 0; sum == 0 && i + 1 < count && k < n; k++) { /* the rest: any not yet drawn */
      bool drawn = false;
      for (int64_t j = 0; j <= i; j++) drawn |= to[j] == k;
      weight[k] = !drawn;
      if (k + 1 == n) sum = (double)(n - i - 1);
    }
  }
  return true;
}
/* self [n] or [rows, n], num_samples, replacement */
KILN_RECIPE(multinomial) {
  kiln_tensor *t = SELF, *out;
  const int rank = kiln_tensor_rank(t);
  const int64_t count = kiln_arg_int(args, 1), n = kiln__recipe_size(t, -1);
  const bool again = kiln_arg_bool(args, 2);
  if (rank < 1 || rank > 2) {
    KILN_RECIPE_FAIL(r, "prob_dist must be 1 or 2 dim");
  } else if (!kiln_dtype_is_float(kiln_tensor_dtype(t))) {
    KILN_RECIPE_FAIL(r, "multinomial only supports floating-point dtypes for input, got: %s",
                     kiln_dtype_ir_name(kiln_tensor_dtype(t)));
  } else if (count <= 0) {
    KILN_RECIPE_FAIL(r, "cannot sample n_sample <= 0 samples");
  } else if (!again && count > n) {
    KILN_RECIPE_FAIL(r, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  }
  if (r->status) return;
  const int64_t rows = rank == 2 ? kiln_tensor_sizes(t)[0] : 1;
  const int64_t sizes[2] = {rank == 2 ? rows : count, count};
  kiln_tensor *weights = kiln__recipe_copy(r, kiln__recipe_to(r, t, KILN_DTYPE_F64));
  int64_t *to = kiln__recipe_new(r, KILN_DTYPE_I64, rank, sizes, &out);
  void *data = NULL;
  if (r->status || !kiln__recipe_ok(r, kiln_tensor_writable_data(weights, &data))) return;
  for (int64_t i = 0; i < rows; i++) {
    if (!draw_row(r, (double *)data + i * n, n, count, again, to + i * count)) return;
  }
  kiln__recipe_give(r, outs, out);
}
