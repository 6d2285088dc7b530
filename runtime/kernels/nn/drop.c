/* drop.c: dropout of elements and features, that which keeps mean and variance, that with its
 * mask, leaky relu of random slope. Without training they change nothing, and draw nothing. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/random/random.h"
#include "runtime/kernels/composite.h"

/* A number as a tensor of no dimensions. */
static kiln_tensor *number(kiln__composite *r, double value, kiln_dtype dtype) {
  return KILN_STEP(r, full, kiln__composite_no_list(r), F(value), I(dtype), NONE, NONE, NONE);
}

/* -- Dropout -- */

/* What an element is multiplied with, of a real dtype: laid out like t, or a number for each
 * feature of each sample. NULL after a failure. */
static kiln_tensor *noise(kiln__composite *r, kiln_tensor *t, bool by_feature, double keep,
                          double value) {
  const int rank = kiln_tensor_rank(t);
  const kiln_dtype own = kiln_tensor_dtype(t);
  const kiln_dtype dtype = own == KILN_DTYPE_C64    ? KILN_DTYPE_F32
                           : own == KILN_DTYPE_C128 ? KILN_DTYPE_F64
                                                    : own;
  const kiln__chance chance = {keep, value};
  int64_t sizes[KILN_MAX_RANK];
  kiln_tensor *to;
  kiln_random *g;
  if (by_feature) {
    for (int d = 0; d < rank; d++) sizes[d] = d > 1 ? 1 : kiln_tensor_sizes(t)[d];
    to = KILN_STEP(r, zeros, kiln__composite_ints(r, rank, sizes), I(dtype), NONE, NONE, NONE);
  } else {
    to = KILN_STEP(r, empty_like, T(t), I(dtype), NONE, NONE, NONE, NONE);
  }
  if (r->status || !kiln__composite_ok(r, kiln_call_random(r->call, &g)) ||
      !kiln__composite_ok(
          r, kiln__random_fill(r->call, g, to, kiln__draw_chance, KILN_CTYPE_F64, &chance))) {
    return NULL;
  }
  return to;
}
/* 1 / (1 - p), divided in the dtype. */
static double scale_of(kiln_dtype dtype, double p) {
  return dtype == KILN_DTYPE_F64 || dtype == KILN_DTYPE_C128 ? 1 / (1 - p)
                                                             : (double)(1 / (float)(1 - p));
}
/* True when there is something to draw; else *out is the input, or nothing of it: the input, p,
 * train. */
static bool active(kiln__composite *r, const kiln_ivalue *args, bool by_feature,
                   kiln_tensor **out) {
  kiln_tensor *t = SELF;
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const double p = kiln_arg_float(args, 1);
  *out = NULL;
  if (!(p >= 0 && p <= 1)) {
    FAIL(r, "dropout probability has to be between 0 and 1, but got %g", p);
  } else if (!kiln_arg_bool(args, 2) || p == 0 || t->numel == 0) {
    *out = t;
  } else if (kiln_ctype_of(dtype) == KILN_CTYPE_NONE) {
    kiln__composite_fail(r, kiln__not_implemented(r->call, dtype));
  } else if (kiln_dtype_is_int(dtype, true)) {
    FAIL(r, "result type Float can't be cast to the desired output type %s",
         kiln_dtype_ir_name(dtype));
  } else if (p == 1) {
    *out = KILN_STEP(r, mul, T(t), T(number(r, 0, dtype)));
  } else if (by_feature && kiln_tensor_rank(t) < 2) {
    FAIL(r, "Feature dropout requires at least 2 dimensions in the input");
  }
  return !r->status && !*out;
}
static kiln_tensor *drop(kiln__composite *r, const kiln_ivalue *args, bool by_feature) {
  const double p = kiln_arg_float(args, 1);
  kiln_tensor *all;
  if (!active(r, args, by_feature, &all)) return all;
  kiln_tensor *factor = noise(r, SELF, by_feature, 1 - p, scale_of(kiln_tensor_dtype(SELF), p));
  return KILN_STEP(r, mul, T(SELF), T(factor));
}
static kiln_tensor *drop_elements(kiln__composite *r, const kiln_ivalue *args,
                                  KILN_UNUSED kiln_ivalue *outs) {
  return drop(r, args, false);
}
KILN_KERNEL(dropout) {
  const double p = kiln_arg_float(args, 1);
  if (kiln_arg_bool(args, 2) || !(p >= 0 && p <= 1)) {
    return kiln__composite_run(call, drop_elements, args, outs);
  }
  kiln__give(outs, kiln_tensor_retain(SELF)); /* at no cost outside training */
  return NULL;
}
KILN_COMPOSITE(dropout_) {
  if (!kiln__dest(outs)) kiln__give(outs, kiln_tensor_retain(SELF));
  return drop(r, args, false);
}
KILN_COMPOSITE(feature_dropout) { return drop(r, args, true); }
kiln_status *kiln__dropout(kiln_call *call, kiln_tensor *t, double p, kiln_tensor **out) {
  const kiln_ivalue args[] = {T(t), F(p), B(true)};
  kiln_ivalue result = kiln_none();
  KILN_TRY(kiln_kernel_step(call, kiln__kernel_dropout, args, 3, &result));
  *out = result.u.tensor;
  return NULL;
}

/* -- Alpha dropout (Klambauer et al., 2017) -- */

/* What is dropped becomes the saturated value of selu; then scaled back to mean 0, variance 1. */
static kiln_tensor *alpha_drop(kiln__composite *r, const kiln_ivalue *args, bool by_feature) {
  const double p = kiln_arg_float(args, 1), alpha = 1.7580993408473766;
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  kiln_tensor *all;
  if (!active(r, args, by_feature, &all)) return all;
  const double a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
  kiln_tensor *mask = noise(r, SELF, by_feature, 1 - p, 1);
  kiln_tensor *shift = KILN_STEP(r, add, T(mask), T(number(r, -1, dtype)), I(1));
  shift = KILN_STEP(r, mul, T(shift), T(number(r, alpha * a, dtype)));
  shift = KILN_STEP(r, add, T(shift), T(number(r, alpha * a * p, dtype)), I(1));
  mask = KILN_STEP(r, mul, T(mask), T(number(r, a, dtype)));
  return KILN_STEP(r, add, T(KILN_STEP(r, mul, T(SELF), T(mask))), T(shift), I(1));
}
KILN_COMPOSITE(alpha_dropout) { return alpha_drop(r, args, false); }
KILN_COMPOSITE(feature_alpha_dropout) { return alpha_drop(r, args, true); }

/* input, p, train (None: yes) -> output, mask */
KILN_COMPOSITE(native_dropout) {
  kiln_tensor *t = SELF;
  const double p = kiln_arg_float(args, 1), keep = 1 - p;
  const bool train = kiln_arg_is_none(args, 2) || kiln_arg_bool(args, 2);
  const kiln_ivalue sizes = kiln__composite_ints(r, kiln_tensor_rank(t), kiln_tensor_sizes(t));
  kiln_tensor *mask = KILN_STEP(r, ones, sizes, I(KILN_DTYPE_BOOL), NONE, NONE, NONE);
  if (train && !(p >= 0 && p <= 1)) {
    FAIL(r, "bernoulli_ expects p to be in [0, 1], but got p=%g", keep);
  }
  if (r->status) return NULL;
  if (!train) {
    kiln__composite_give(r, &outs[0], KILN_STEP(r, clone, T(t), NONE));
    kiln__composite_give(r, &outs[1], mask);
    return NULL;
  }
  const kiln__chance chance = {keep, 1};
  kiln_random *g;
  if (!kiln__composite_ok(r, kiln_call_random(r->call, &g)) ||
      !kiln__composite_ok(
          r, kiln__random_fill(r->call, g, mask, kiln__draw_chance, KILN_CTYPE_F64, &chance))) {
    return NULL;
  }
  kiln_tensor *kept = KILN_STEP(r, mul, T(t), T(mask));
  kiln__composite_give(
      r, &outs[0],
      KILN_STEP(r, mul, T(kept), T(number(r, keep == 0 ? 0 : 1 / keep, kiln_tensor_dtype(t)))));
  kiln__composite_give(r, &outs[1], mask);
  return NULL;
}

/* -- Randomised leaky relu -- */

/* A slope for each element that is not above 0, in row-major order; 1 for the others. */
static kiln_tensor *draw_slopes(kiln__composite *r, kiln_tensor *t, kiln_random *g, double lower,
                                double upper) {
  kiln_tensor *in, *slopes;
  const double *x = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  double *to =
      kiln__composite_new(r, KILN_DTYPE_F64, kiln_tensor_rank(t), kiln_tensor_sizes(t), &slopes);
  if (r->status) return NULL;
  pthread_mutex_lock(&g->lock);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < t->numel && !kiln_budget_spent(&left, 4); i++) {
    to[i] = x[i] <= 0 ? kiln_random_f64(g) * (upper - lower) + lower : 1;
  }
  pthread_mutex_unlock(&g->lock);
  return slopes;
}
/* self, noise (NULL: nobody wants the slopes), lower, upper, training, generator */
static kiln_tensor *rrelu(kiln__composite *r, kiln_tensor *t, kiln_tensor *noise,
                          const kiln_ivalue *rest) {
  const double lower = kiln__number(rest[0]).f, upper = kiln__number(rest[1]).f;
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  kiln_random *g;
  if (!kiln_dtype_is_float(dtype)) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, dtype));
  } else if (!(lower <= upper)) {
    FAIL(r, "Lower bound should be less than or equal to the upper bound");
  }
  if (r->status || !kiln__composite_ok(r, kiln__generator(r->call, rest[3], &g))) return NULL;
  const kiln_dtype wide = dtype == KILN_DTYPE_F64 ? dtype : KILN_DTYPE_F32;
  kiln_tensor *slope = number(r, (lower + upper) / 2, wide);
  if (rest[2].u.b) {
    slope = kiln__composite_to(r, draw_slopes(r, t, g, lower, upper), wide);
    if (noise) KILN_STEP(r, copy_, T(noise), T(slope), B(false));
  }
  t = kiln__composite_to(r, t, dtype); /* row-major, as PyTorch's */
  kiln_tensor *scaled =
      kiln__composite_to(r, KILN_STEP(r, mul, T(kiln__composite_to(r, t, wide)), T(slope)), dtype);
  return KILN_STEP(r, where, T(KILN_STEP(r, le, T(t), I(0))), T(scaled), T(t));
}
KILN_COMPOSITE(rrelu) { return rrelu(r, SELF, NULL, args + 1); }
KILN_COMPOSITE(rrelu_with_noise) { return rrelu(r, SELF, ARG(1), args + 2); }
