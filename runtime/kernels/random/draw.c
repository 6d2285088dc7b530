/* draw.c: numbers that are drawn by a parameter of each element: chance, mean, rate, weight.
 *
 * Rejection loops give up after MOST_TRIES: only parameters that are no numbers get there. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/random/random.h"
#include "runtime/kernels/composite.h"

enum { MOST_TRIES = 10000, GRAIN = 1024 /* elements between two looks at the limits */ };

static kiln_random *generator(kiln__composite *r, kiln_ivalue v) {
  kiln_random *g = NULL;
  (void)kiln__composite_ok(r, kiln__generator(r->call, v, &g));
  return g;
}

/* -- Chance -- */

void kiln__draw_chance(kiln_random *g, const void *params, void *to, int64_t n) {
  const kiln__chance *c = params;
  double *x = to;
  const double p = c->p, value = c->value;
  kiln__draw_f64s(g, x, n);
  for (int64_t i = 0; i < n; i++) x[i] = x[i] < p ? value : 0;
}
static void by_chance(kiln__composite *r, kiln_random *g, kiln_tensor *t, double p) {
  const kiln__chance c = {p, 1};
  if (r->status) return;
  if (!(p >= 0 && p <= 1)) {
    FAIL(r, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
  } else if (kiln_dtype_is_complex(kiln_tensor_dtype(t))) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, kiln_tensor_dtype(t)));
  } else {
    (void)kiln__composite_ok(
        r, kiln__random_fill(r->call, g, t, kiln__draw_chance, KILN_CTYPE_F64, &c));
  }
}
/* The chances of all elements, in the order in which the elements are drawn. */
typedef struct chances {
  const double *p;
  bool is_double;
} chances;
static void draw_chances(kiln_random *g, const void *params, void *to, int64_t n) {
  chances *c = (chances *)(uintptr_t)params;
  double *x = to;
  if (c->is_double) {
    kiln__draw_f64s(g, x, n);
  } else {
    for (int64_t i = 0; i < n; i++) x[i] = (double)kiln_random_f32(g);
  }
  for (int64_t i = 0; i < n; i++) x[i] = x[i] < c->p[i];
  c->p += n;
}
/* p may have fewer dimensions than t. */
static void by_chances(kiln__composite *r, kiln_random *g, kiln_tensor *t, kiln_tensor *p) {
  const kiln_dtype dtype = kiln_tensor_dtype(p);
  if (!kiln_dtype_is_float(dtype) || kiln_dtype_is_complex(kiln_tensor_dtype(t))) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, dtype));
    return;
  }
  /* Laid out like t, so that its memory has t's order. */
  kiln_tensor *like = KILN_STEP(r, empty_like, T(t), I(KILN_DTYPE_F64), NONE, NONE, NONE, NONE);
  KILN_STEP(r, copy_, T(like), T(p), B(false));
  if (r->status) return;
  chances c = {kiln_tensor_data(like), dtype == KILN_DTYPE_F64}; /* a float is exact in F64 */
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < like->numel && !kiln_budget_spent(&left, 1); i++) {
    if (!(c.p[i] >= 0 && c.p[i] <= 1)) {
      FAIL(r, "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
      return;
    }
  }
  (void)kiln__composite_ok(r, kiln__random_fill(r->call, g, t, draw_chances, KILN_CTYPE_F64, &c));
}
static kiln_tensor *row_major_like(kiln__composite *r, const kiln_tensor *t, kiln_dtype dtype) {
  return KILN_STEP(r, zeros, kiln__composite_ints(r, kiln_tensor_rank(t), kiln_tensor_sizes(t)),
                   I(dtype), NONE, NONE, NONE);
}
KILN_COMPOSITE(bernoulli) {
  kiln_tensor *t = row_major_like(r, SELF, kiln_tensor_dtype(SELF));
  kiln_random *g = generator(r, args[1]);
  if (!r->status) by_chances(r, g, t, SELF);
  return t;
}
KILN_COMPOSITE(bernoulli_p) {
  kiln_tensor *t = row_major_like(r, SELF, kiln_tensor_dtype(SELF));
  by_chance(r, generator(r, args[2]), t, kiln_arg_float(args, 1));
  return t;
}
KILN_COMPOSITE(bernoulli_float_) {
  by_chance(r, generator(r, args[2]), SELF, kiln_arg_float(args, 1));
  return SELF;
}
KILN_COMPOSITE(bernoulli_Tensor_) {
  kiln_random *g = generator(r, args[2]);
  if (!r->status) by_chances(r, g, SELF, ARG(1));
  return SELF;
}

/* -- Normal numbers with a mean or deviation of each -- */

static void fill_normal(kiln__composite *r, kiln_tensor *t, double std, kiln_ivalue generator_arg) {
  kiln_random *g = generator(r, generator_arg);
  if (r->status) return;
  (void)kiln__composite_ok(r, kiln__random_normal(r->call, g, t, 0, std));
}
static void check_std(kiln__composite *r, kiln_tensor *std) {
  kiln_tensor *read;
  if (kiln_dtype_is_complex(kiln_tensor_dtype(std))) {
    FAIL(r, "normal expects standard deviation to be non-complex");
    return;
  }
  const double *x = kiln__composite_read(r, std, KILN_DTYPE_F64, &read);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; x && i < std->numel && !kiln_budget_spent(&left, 1); i++) {
    if (x[i] >= 0) continue;
    FAIL(r, "normal expects all elements of std >= 0.0");
    return;
  }
}
/* t * factor + summand, both in place. */
static kiln_tensor *scale_shift(kiln__composite *r, kiln_tensor *t, kiln_tensor *factor,
                                kiln_tensor *summand) {
  const kiln_dtype dtype = kiln__composite_dtype(t);
  if (factor) t = KILN_STEP(r, mul, T(t), T(factor));
  t = KILN_STEP(r, add, T(t), T(summand), I(1));
  return kiln__composite_to(r, t, dtype);
}
KILN_COMPOSITE(normal_Tensor_float) {
  kiln_tensor *t = row_major_like(r, SELF, kiln_tensor_dtype(SELF));
  fill_normal(r, t, kiln_arg_float(args, 1), args[2]);
  return scale_shift(r, t, NULL, SELF);
}
KILN_COMPOSITE(normal_float_Tensor) {
  kiln_tensor *std = ARG(1);
  check_std(r, std);
  kiln_tensor *t = row_major_like(r, std, kiln_tensor_dtype(std));
  fill_normal(r, t, 1, args[2]);
  return scale_shift(r, t, std, kiln__composite_operand(r, args[0], kiln_tensor_dtype(std)));
}
KILN_COMPOSITE(normal_Tensor_Tensor) {
  kiln_tensor *mean = SELF, *std = ARG(1);
  check_std(r, std);
  kiln_tensor *t = KILN_STEP(r, zeros, kiln__composite_broadcast(r, mean, std),
                             I(kiln_tensor_dtype(mean)), NONE, NONE, NONE);
  fill_normal(r, t, 1, args[2]);
  return scale_shift(r, t, std, mean);
}

/* -- Counts and gammas: new elements, drawn in row-major order -- */

/* false: given up. */
typedef bool (*draw_one)(kiln_random *g, double p, double q, double *to);
static kiln_tensor *each(kiln__composite *r, kiln_random *g, kiln_tensor *p, kiln_tensor *q,
                         kiln_dtype dtype, draw_one draw) {
  kiln_tensor *a, *b, *out;
  const double *x = kiln__composite_read(r, p, KILN_DTYPE_F64, &a);
  const double *y = q ? kiln__composite_read(r, q, KILN_DTYPE_F64, &b) : NULL;
  if (r->status) return NULL;
  double *to =
      kiln__composite_new(r, KILN_DTYPE_F64, kiln_tensor_rank(p), kiln_tensor_sizes(p), &out);
  bool found = true;
  if (!to) return NULL;
  pthread_mutex_lock(&g->lock);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; found && !r->status && i < p->numel && !kiln_budget_spent(&left, 32); i++) {
    found = draw(g, x[i], y ? y[i] : 0, &to[i]);
  }
  pthread_mutex_unlock(&g->lock);
  if (!found) {
    return FAIL(r, "no number was found in %d tries: the parameters are out of range", MOST_TRIES);
  }
  return kiln__composite_to(r, out, dtype);
}
static bool only_f32_f64(kiln__composite *r, const kiln_tensor *t) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  if (dtype == KILN_DTYPE_F32 || dtype == KILN_DTYPE_F64) return true;
  return kiln__composite_ok(r, kiln__not_implemented(r->call, dtype));
}

/* Transformed rejection (Hoermann, 1993), products of uniform numbers for small rates. */
static bool draw_poisson(kiln_random *g, double rate, double unused, double *to) {
  (void)unused;
  *to = 0;
  if (rate == 0) return true;
  if (rate < 10) {
    const double least = exp(-rate);
    double product = 1;
    for (; *to < (double)MOST_TRIES; ++*to) {
      product *= kiln_random_f64(g);
      if (!(product > least)) return true;
    }
    return false;
  }
  const double root = sqrt(rate), log_rate = log(rate), b = 0.931 + 2.53 * root;
  const double a = -0.059 + 0.02483 * b, inverse = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  for (int i = 0; i < MOST_TRIES; i++) {
    const double u = kiln_random_f64(g) - 0.5, v = kiln_random_f64(g), us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + rate + 0.43);
    *to = k;
    if (us >= 0.07 && v <= v_r) return true;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v) + log(inverse) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma(k + 1)) {
      return true;
    }
  }
  return false;
}
KILN_COMPOSITE(poisson) {
  kiln_tensor *in;
  kiln_random *g = generator(r, args[1]);
  if (!kiln_dtype_is_float(kiln_tensor_dtype(SELF))) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, kiln_tensor_dtype(SELF)));
  }
  const double *x = kiln__composite_read(r, SELF, KILN_DTYPE_F64, &in);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; x && i < SELF->numel && !kiln_budget_spent(&left, 1); i++) {
    if (x[i] >= 0 && x[i] <= 0x1p62) continue;
    return FAIL(r, "invalid Poisson rate, expected rate to be non-negative");
  }
  return each(r, g, SELF, NULL, kiln_tensor_dtype(SELF), draw_poisson);
}

/* ln(k!) less Stirling's formula. */
static double stirling_tail(double k) {
  static const double first[] = {0.0810614667953272,  0.0413406959554092, 0.0276779256849983,
                                 0.02079067210376509, 0.0166446911898211, 0.0138761288230707,
                                 0.0118967099458917,  0.0104112652619720, 0.00925546218271273,
                                 0.00833056343336287};
  if (k <= 9) return first[k >= 0 ? (int)k : 0];
  const double next = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / next) / next) / (k + 1);
}
/* What PyTorch computes in the dtype of the parameters is rounded to it. */
static double in_dtype(bool single, double x) { return single ? (double)(float)x : x; }
/* BTRS (Hoermann, 1993), for count * p >= 10. */
static bool binomial_rejection(kiln_random *g, double count, double p, bool single, double *to) {
  const double q = in_dtype(single, 1 - p), mean = in_dtype(single, count * p);
  const double deviation = in_dtype(single, sqrt(in_dtype(single, mean * q)));
  const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, c = mean + 0.5;
  const double v_r = 0.92 - 4.2 / b, odds = in_dtype(single, p / q);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = floor(in_dtype(single, (count + 1) * p));
  for (int i = 0; i < MOST_TRIES; i++) {
    const double u = kiln_random_f64(g) - 0.5, v = kiln_random_f64(g), us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + c);
    *to = k;
    if (k < 0 || k > count) continue;
    if (us >= 0.07 && v <= v_r) return true;
    const double bound = (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1))) +
                         (count + 1) * log((count - mode + 1) / (count - k + 1)) +
                         (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) + stirling_tail(mode) +
                         stirling_tail(count - mode) - stirling_tail(k) - stirling_tail(count - k);
    if (log(v * alpha / (a / (us * us) + b)) <= bound) return true;
  }
  return false;
}
/* Sums of geometric numbers. */
static bool binomial_waiting(kiln_random *g, double count, double p, bool single, double *to) {
  const double scale = single ? (double)log1pf(-(float)p) : log1p(-p);
  double sum = 0;
  for (*to = 0; *to < (double)MOST_TRIES; ++*to) {
    sum += ceil(log(kiln_random_f64(g)) / scale);
    if (sum > count) return true;
  }
  return false;
}
static bool draw_binomial(kiln_random *g, double count, double p, bool single, double *to) {
  const bool certain = p >= 1, is_common = p > 0.5;
  *to = count <= 0 || p <= 0 ? 0 : certain ? count : p;
  if (count <= 0 || p <= 0 || certain || isnan(p)) return true;
  if (is_common) p = in_dtype(single, 1 - p);
  const bool many = in_dtype(single, count * p) >= 10;
  if (!(many ? binomial_rejection : binomial_waiting)(g, count, p, single, to)) return false;
  if (is_common) *to = count - *to;
  return true;
}
static bool draw_binomial_f32(kiln_random *g, double count, double p, double *to) {
  return draw_binomial(g, count, p, true, to);
}
static bool draw_binomial_f64(kiln_random *g, double count, double p, double *to) {
  return draw_binomial(g, count, p, false, to);
}
KILN_COMPOSITE(binomial) {
  kiln_tensor *p = ARG(1), *count = SELF;
  kiln_random *g = generator(r, args[2]);
  if (!kiln_dtype_is_float(kiln_tensor_dtype(count))) {
    FAIL(r, "binomial only supports floating-point dtypes for count, got: %s",
         kiln_dtype_ir_name(kiln_tensor_dtype(count)));
  } else if (!kiln_dtype_is_float(kiln_tensor_dtype(p))) {
    FAIL(r, "binomial only supports floating-point dtypes for prob, got: %s",
         kiln_dtype_ir_name(kiln_tensor_dtype(p)));
  }
  if (r->status || !only_f32_f64(r, count)) return NULL;
  const kiln_ivalue wide = kiln__composite_broadcast(r, count, p);
  const kiln_dtype dtype = kiln_tensor_dtype(count);
  return each(r, g, KILN_STEP(r, expand, T(count), wide, B(false)),
              KILN_STEP(r, expand, T(p), wide, B(false)), dtype,
              dtype == KILN_DTYPE_F32 ? draw_binomial_f32 : draw_binomial_f64);
}

/* Marsaglia and Tsang (2000). */
static bool draw_gamma(kiln_random *g, double alpha, double unused, double *to) {
  double scale = 1;
  (void)unused;
  *to = 0;
  if (alpha == 0) return true;
  if (alpha < 1) {
    scale = pow(1 - kiln_random_f64(g), 1 / alpha);
    alpha += 1;
  }
  const double d = alpha - (double)(1.0f / 3.0f), c = 1 / sqrt(9 * d);
  for (int i = 0; i < MOST_TRIES; i++) {
    const double x = kiln_random_normal(g), y = 1 + c * x;
    if (y <= 0) continue;
    const double v = y * y * y, u = 1 - kiln_random_f64(g), xx = x * x;
    *to = scale * d * v;
    if (u < 1 - (double)0.0331f * xx * xx) return true;
    if (log(u) < 0.5 * xx + d * (1 - v + log(v))) return true;
  }
  return false;
}
/* At least the smallest normal number of the dtype. */
static bool draw_gamma_f32(kiln_random *g, double alpha, double unused, double *to) {
  const bool found = draw_gamma(g, alpha, unused, to);
  *to = fmax(*to, 0x1p-126);
  return found;
}
static bool draw_gamma_f64(kiln_random *g, double alpha, double unused, double *to) {
  const bool found = draw_gamma(g, alpha, unused, to);
  *to = fmax(*to, 0x1p-1022);
  return found;
}
KILN_COMPOSITE(_standard_gamma) {
  kiln_random *g = generator(r, args[1]);
  if (r->status || !only_f32_f64(r, SELF)) return NULL;
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  return each(r, g, SELF, NULL, dtype, dtype == KILN_DTYPE_F32 ? draw_gamma_f32 : draw_gamma_f64);
}
KILN_COMPOSITE(_sample_dirichlet) {
  kiln_random *g = generator(r, args[1]);
  if (r->status || !only_f32_f64(r, SELF)) return NULL;
  kiln_tensor *t = each(r, g, SELF, NULL, KILN_DTYPE_F64, draw_gamma);
  kiln_tensor *sum = KILN_STEP(r, sum_dim, T(t), INTS(-1), B(true), NONE);
  return kiln__composite_to(r, KILN_STEP(r, div, T(t), T(sum)), kiln_tensor_dtype(SELF));
}

/* -- Classes by weight -- */

/* Without replacement, or one of each row: the greatest of weight / exponential number. */
static kiln_tensor *race(kiln__composite *r, kiln_random *g, kiln_tensor *t, int64_t count) {
  kiln_tensor *in, *found[2];
  const int64_t n = kiln__composite_size(t, -1), rows = n ? t->numel / n : 0;
  const double *x = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; x && i < rows && !kiln_budget_spent(&left, n); i++) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) {
      const double weight = x[i * n + k];
      if (!(weight >= 0) || isinf(weight)) {
        return FAIL(r, "probability tensor contains either `inf`, `nan` or element < 0");
      }
      sum += weight;
    }
    if (sum == 0) {
      return FAIL(r, "invalid multinomial distribution (sum of probabilities <= 0)");
    }
  }
  kiln_tensor *q = KILN_STEP(r, empty_like, T(t), NONE, NONE, NONE, NONE, NONE);
  if (r->status || !kiln__composite_ok(r, kiln__random_exponential(r->call, g, q, 1))) return NULL;
  q = KILN_STEP(r, div, T(t), T(q));
  if (count == 1) {
    found[1] = KILN_STEP(r, argmax, T(q), I(-1), B(true));
  } else {
    KILN_STEP_MANY(r, topk, 2, found, T(q), I(count), I(-1), B(true), B(true));
  }
  return found[1];
}
/* The running sums of a row, divided by the last, in F32 or F64 as PyTorch keeps them. */
static bool sum_up(kiln__composite *r, const double *weight, int64_t n, bool single, double *sums) {
  double sum = 0;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t k = 0; k < n && !kiln_budget_spent(&left, 1); k++) {
    if (!(weight[k] >= 0)) {
      return FAIL(r, "invalid multinomial distribution (encountering probability entry < 0)");
    }
    if (isinf(weight[k])) {
      return FAIL(
          r, "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
    }
    sum = single ? (double)((float)sum + (float)weight[k]) : sum + weight[k];
    sums[k] = sum;
  }
  if (!(sum > 0)) {
    return FAIL(r, "invalid multinomial distribution (sum of probabilities <= 0)");
  }
  for (int64_t k = 0; k < n && !kiln_budget_spent(&left, 2); k++) {
    sums[k] = single ? (double)((float)sums[k] / (float)sum) : sums[k] / sum;
  }
  sums[n - 1] = 1;
  return true;
}
static int64_t first_not_below(const double *sums, int64_t n, double x) {
  int64_t low = 0;
  while (low < n) {
    const int64_t middle = low + (n - low) / 2;
    if (sums[middle] < x) {
      low = middle + 1;
    } else {
      n = middle;
    }
  }
  return low;
}
static kiln_tensor *with_replacement(kiln__composite *r, kiln_random *g, kiln_tensor *t,
                                     int64_t count) {
  kiln_tensor *in, *cumulated, *out;
  const int rank = kiln_tensor_rank(t);
  const int64_t n = kiln__composite_size(t, -1), rows = rank == 2 ? kiln_tensor_sizes(t)[0] : 1;
  const int64_t sizes[2] = {rank == 2 ? rows : count, count};
  const double *x = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  double *sums = kiln__composite_new(r, KILN_DTYPE_F64, 1, &n, &cumulated);
  int64_t *to = kiln__composite_new(r, KILN_DTYPE_I64, rank, sizes, &out);
  if (r->status) return NULL;
  pthread_mutex_lock(&g->lock);
  for (int64_t i = 0; i < rows && kiln__composite_ok(r, kiln_call_check(r->call, 0)); i++) {
    if (!sum_up(r, x + i * n, n, kiln_tensor_dtype(t) != KILN_DTYPE_F64, sums)) break;
    int64_t left = KILN_BUDGET_ITEMS;
    for (int64_t k = 0; k < count && !kiln_budget_spent(&left, 16); k++)
      to[i * count + k] = first_not_below(sums, n, kiln_random_f64(g));
  }
  pthread_mutex_unlock(&g->lock);
  return out;
}
/* self [n] or [rows, n], num_samples, replacement, generator */
KILN_COMPOSITE(multinomial) {
  kiln_tensor *t = SELF;
  const int rank = kiln_tensor_rank(t);
  const int64_t count = kiln_arg_int(args, 1), n = kiln__composite_size(t, -1);
  const bool again = kiln_arg_bool(args, 2);
  kiln_random *g = generator(r, args[3]);
  if (rank < 1 || rank > 2) {
    FAIL(r, "prob_dist must be 1 or 2 dim");
  } else if (!kiln_dtype_is_float(kiln_tensor_dtype(t))) {
    FAIL(r, "multinomial only supports floating-point dtypes for input, got: %s",
         kiln_dtype_ir_name(kiln_tensor_dtype(t)));
  } else if (count <= 0) {
    FAIL(r, "cannot sample n_sample <= 0 samples");
  } else if (!again && count > n) {
    FAIL(r, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  } else if (n == 0) {
    FAIL(r, "invalid multinomial distribution (sum of probabilities <= 0)");
  }
  if (r->status) return NULL;
  if (!again || count == 1) return race(r, g, t, count);
  return with_replacement(r, g, t, count);
}
