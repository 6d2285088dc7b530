/* random.c: operators that draw numbers, from the instance's random state. The stream is Kiln's
 * own: the same seed gives the same numbers everywhere, but not PyTorch's. */
#include <math.h>

#include "runtime/kernels/iter.h"
#include "runtime/kernels/random.h"

#define SELF kiln_arg_tensor(args, 0)

static double draw_uniform(kiln_call *call, const double *p) {
  return p[0] + kiln__uniform(call) * (p[1] - p[0]);
}
/* Box and Muller; the second number of a pair is not kept. */
double kiln__draw_normal(kiln_call *call, const double *p) {
  double u = 1 - kiln__uniform(call), v = kiln__uniform(call);
  return p[0] + sqrt(-2 * log(u)) * cos(2 * M_PI * v) * p[1];
}
double kiln__draw_bernoulli(kiln_call *call, const double *p) { return kiln__uniform(call) < p[0]; }
double kiln__draw_integer(kiln_call *call, const double *p) {
  return p[0] + floor(kiln__uniform(call) * (p[1] - p[0]));
}
static double draw_exponential(kiln_call *call, const double *p) {
  return -log(1 - kiln__uniform(call)) / p[0];
}

kiln_status *kiln__random_fill(kiln_call *call, kiln_tensor *t, kiln__draw draw,
                               const double *params) {
  kiln_dtype dtype = kiln_tensor_dtype(t);
  KILN_TRY(kiln__check_dtype(call, dtype));
  kiln_cast_loop store = call->dispatch->store[KILN_CTYPE_F64][dtype];
  void *data;
  if (t->numel == 0) return NULL;
  KILN_TRY(kiln_tensor_writable_data(t, &data));
  size_t item = kiln_tensor_item_size(t);
  bool plain = kiln_tensor_is_contiguous(t);
  for (int64_t i = 0; i < t->numel; i++) {
    double v = draw(call, params);
    int64_t at = plain ? i
                       : kiln__offset_of(kiln_tensor_rank(t), kiln_tensor_sizes(t),
                                         kiln_tensor_strides(t), i);
    store((char *)data + (size_t)at * item, 0, (const char *)&v, 0, 1);
  }
  return NULL;
}
static kiln_status *make(kiln_call *call, const kiln_ivalue *args, int size_arg, int dtype_arg,
                         kiln_dtype fallback, kiln__draw draw, const double *params,
                         kiln_ivalue *out) {
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  kiln_tensor *t;
  KILN_TRY(kiln__arg_int_list(args, size_arg, sizes, &rank));
  KILN_TRY(kiln_call_tensor(call, kiln__arg_dtype_or(args, dtype_arg, fallback), rank, sizes, &t));
  kiln__give(out, t);
  return kiln__random_fill(call, t, draw, params);
}
static const double unit[2] = {0, 1};
KILN_KERNEL(rand) { return make(call, args, 0, 1, KILN_DTYPE_F32, draw_uniform, unit, outs); }
KILN_KERNEL(randn) { return make(call, args, 0, 1, KILN_DTYPE_F32, kiln__draw_normal, unit, outs); }
KILN_KERNEL(randint) {
  double range[2] = {0, (double)kiln_arg_int(args, 0)};
  if (range[1] <= 0)
    return KILN_OP_FAIL("random_ expects 'from' to be less than 'to', but got from=0 >= to=%lld",
                        (long long)kiln_arg_int(args, 0));
  return make(call, args, 1, 2, KILN_DTYPE_I64, kiln__draw_integer, range, outs);
}
KILN_KERNEL(randint_low) {
  double range[2] = {(double)kiln_arg_int(args, 0), (double)kiln_arg_int(args, 1)};
  if (range[1] <= range[0]) {
    return KILN_OP_FAIL("random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
                        (long long)kiln_arg_int(args, 0), (long long)kiln_arg_int(args, 1));
  }
  return make(call, args, 2, 3, KILN_DTYPE_I64, kiln__draw_integer, range, outs);
}
static kiln_status *like(kiln_call *call, const kiln_ivalue *args, kiln__draw draw,
                         kiln_ivalue *out) {
  kiln_tensor *t;
  KILN_TRY(kiln_call_tensor(call, kiln__arg_dtype_or(args, 1, kiln_tensor_dtype(SELF)),
                            kiln_tensor_rank(SELF), kiln_tensor_sizes(SELF), &t));
  kiln__give(out, t);
  return kiln__random_fill(call, t, draw, unit);
}
KILN_KERNEL(rand_like) { return like(call, args, draw_uniform, outs); }
KILN_KERNEL(randn_like) { return like(call, args, kiln__draw_normal, outs); }
KILN_KERNEL(randperm) {
  int64_t n = kiln_arg_int(args, 0);
  kiln_tensor *t;
  if (n < 0) return KILN_OP_FAIL("n must be non-negative, got%lld", (long long)n);
  KILN_TRY(kiln_call_tensor(call, KILN_DTYPE_I64, 1, &n, &t));
  int64_t *to = (int64_t *)(uintptr_t)kiln_tensor_data(t);
  for (int64_t i = 0; i < n; i++) {
    int64_t j = (int64_t)(kiln__uniform(call) * (double)(i + 1));
    to[i] = to[j];
    to[j] = i;
  }
  kiln_dtype dtype = kiln__arg_dtype_or(args, 1, KILN_DTYPE_I64);
  kiln_tensor *converted;
  kiln_status *status = kiln__as_dtype(call, t, dtype, &converted);
  kiln_tensor_release_to(&call->cache, t);
  KILN_TRY(status);
  kiln__give(outs, converted);
  return NULL;
}
static kiln_status *in_place(kiln_call *call, kiln_tensor *t, kiln__draw draw, const double *params,
                             kiln_ivalue *out) {
  KILN_TRY(kiln__random_fill(call, t, draw, params));
  kiln__give(out, kiln_tensor_retain(t));
  return NULL;
}
KILN_KERNEL(uniform_) {
  double range[2] = {kiln_arg_float(args, 1), kiln_arg_float(args, 2)};
  if (range[0] > range[1]) {
    return KILN_OP_FAIL("uniform_ expects to return a [from, to) range, but found from=%g > to=%g",
                        range[0], range[1]);
  }
  return in_place(call, SELF, draw_uniform, range, outs);
}
KILN_KERNEL(normal_) {
  double params[2] = {kiln_arg_float(args, 1), kiln_arg_float(args, 2)};
  if (params[1] < 0) return KILN_OP_FAIL("normal expects std >= 0.0, but found std %g", params[1]);
  return in_place(call, SELF, kiln__draw_normal, params, outs);
}
KILN_KERNEL(exponential_) {
  double lambda = kiln_arg_float(args, 1);
  return in_place(call, SELF, draw_exponential, &lambda, outs);
}
static kiln_status *check_probability(double p) {
  if (p >= 0 && p <= 1) return NULL;
  return KILN_OP_FAIL("bernoulli_ expects p to be in [0, 1], but got p=%g", p);
}
KILN_KERNEL(bernoulli_float_) {
  double p = kiln_arg_float(args, 1);
  KILN_TRY(check_probability(p));
  return in_place(call, SELF, kiln__draw_bernoulli, &p, outs);
}
KILN_KERNEL(bernoulli_p) {
  double p = kiln_arg_float(args, 1);
  kiln_tensor *t;
  KILN_TRY(check_probability(p));
  KILN_TRY(kiln_call_tensor(call, kiln_tensor_dtype(SELF), kiln_tensor_rank(SELF),
                            kiln_tensor_sizes(SELF), &t));
  kiln__give(outs, t);
  return kiln__random_fill(call, t, kiln__draw_bernoulli, &p);
}
/* Each element is the probability of its own result. */
KILN_KERNEL(bernoulli) {
  kiln_tensor *p, *t;
  KILN_TRY(kiln__as_dtype(call, SELF, KILN_DTYPE_F64, &p));
  kiln_status *status = kiln_call_tensor(call, kiln_tensor_dtype(SELF), kiln_tensor_rank(SELF),
                                         kiln_tensor_sizes(SELF), &t);
  if (!status) {
    kiln__give(outs, t);
    const double *from = kiln_tensor_data(p);
    size_t item = kiln_tensor_item_size(t);
    kiln_cast_loop store = call->dispatch->store[KILN_CTYPE_F64][kiln_tensor_dtype(t)];
    for (int64_t i = 0; i < t->numel && !status; i++) {
      status = check_probability(from[i]);
      double v = kiln__draw_bernoulli(call, &from[i]);
      store((char *)(uintptr_t)kiln_tensor_data(t) + (size_t)i * item, 0, (const char *)&v, 0, 1);
    }
  }
  kiln_tensor_release_to(&call->cache, p);
  return status;
}

/* -- Dropout -- */

kiln_status *kiln__dropout(kiln_call *call, kiln_tensor *t, double p, kiln_tensor **out);
/* x * mask / (1 - p); mask_rank leading dimensions of the mask have the sizes of x, the others 1.
 */
static kiln_status *drop(kiln_call *call, kiln_tensor *t, double p, int mask_rank,
                         kiln_ivalue *out) {
  int64_t sizes[KILN_MAX_RANK];
  int rank = kiln_tensor_rank(t);
  for (int i = 0; i < rank; i++) sizes[i] = i < mask_rank ? kiln_tensor_sizes(t)[i] : 1;
  kiln_tensor *mask;
  double keep = 1 - p;
  KILN_TRY(kiln_call_tensor(call, kiln_tensor_dtype(t), rank, sizes, &mask));
  kiln_status *status = kiln__random_fill(call, mask, kiln__draw_bernoulli, &keep);
  if (!status) {
    kiln_pw pw = {.functor = KILN_PW_dropout,
                  .in_count = 2,
                  .common = kiln_tensor_dtype(t),
                  .in = {{.tensor = t}, {.tensor = mask}}};
    kiln_pw_param(&pw, 0, kiln__number_float(keep == 0 ? 0 : 1 / keep));
    status = kiln_pw_run(call, &pw, out);
  }
  kiln_tensor_release_to(&call->cache, mask);
  return status;
}
kiln_status *kiln__dropout(kiln_call *call, kiln_tensor *t, double p, kiln_tensor **out) {
  kiln_ivalue result = kiln_none();
  kiln_status *status = drop(call, t, p, kiln_tensor_rank(t), &result);
  if (status)
    kiln_ivalue_release_to(&call->cache, result);
  else
    *out = result.u.tensor;
  return status;
}
static kiln_status *dropout(kiln_call *call, const kiln_ivalue *args, int mask_rank,
                            kiln_ivalue *out) {
  kiln_tensor *t = SELF;
  double p = kiln_arg_float(args, 1);
  if (p < 0 || p > 1) {
    return KILN_OP_FAIL("dropout probability has to be between 0 and 1, but got %g", p);
  }
  if (!kiln_arg_bool(args, 2) || p == 0 || t->numel == 0) {
    if (!kiln__dest(out)) kiln__give(out, kiln_tensor_retain(t));
    return NULL;
  }
  return drop(call, t, p, mask_rank, out);
}
KILN_KERNEL(feature_dropout) { return dropout(call, args, 2, outs); }
