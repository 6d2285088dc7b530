/* nn_drop.c: dropout that keeps mean and variance, dropout with its mask, leaky relu of random
 * slope. Without training they change nothing, and draw nothing. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/random.h"
#include "runtime/kernels/recipe.h"

#define SELF kiln_arg_tensor(args, 0)

/* A number as a tensor of no dimensions. */
static kiln_tensor *number(kiln__recipe *r, double value, kiln_dtype dtype) {
  return KILN_COOK(r, full, kiln__recipe_no_list(r), F(value), I(dtype), NONE, NONE, NONE);
}

/* -- Alpha dropout (Klambauer et al., 2017) -- */

/* What is dropped becomes the saturated value of selu; then scaled back to mean 0, variance 1. */
static void alpha_drop(kiln__recipe *r, const kiln_ivalue *args, bool by_feature,
                       kiln_ivalue *outs) {
  kiln_tensor *t = SELF;
  const double p = kiln_arg_float(args, 1), alpha = 1.7580993408473766;
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const int rank = kiln_tensor_rank(t);
  int64_t sizes[KILN_MAX_RANK];
  if (!(p >= 0 && p <= 1)) {
    KILN_RECIPE_FAIL(r, "dropout probability has to be between 0 and 1, but got %g", p);
    return;
  }
  if (!kiln_arg_bool(args, 2) || p == 0 || t->numel == 0) {
    if (!kiln__dest(outs)) kiln__give(outs, kiln_tensor_retain(t));
    return;
  }
  if (by_feature && rank < 2) {
    KILN_RECIPE_FAIL(r, "Feature dropout requires at least 2 dimensions in the input");
    return;
  }
  for (int d = 0; d < rank; d++) sizes[d] = by_feature && d > 1 ? 1 : kiln_tensor_sizes(t)[d];
  kiln_tensor *mask =
      KILN_COOK(r, zeros, kiln__recipe_ints(r, rank, sizes), I(dtype), NONE, NONE, NONE);
  const double keep = 1 - p, a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
  if (!mask || !kiln__recipe_ok(r, kiln__random_fill(r->call, mask, kiln__draw_bernoulli, &keep))) {
    return;
  }
  if (p == 1) {
    kiln__recipe_give(r, outs, KILN_COOK(r, mul, T(t), T(number(r, 0, dtype))));
    return;
  }
  kiln_tensor *shift = KILN_COOK(r, mul, T(mask), T(number(r, alpha * a, dtype)));
  shift = KILN_COOK(r, add, T(shift), T(number(r, alpha * a * (p - 1), dtype)), I(1));
  kiln_tensor *kept =
      KILN_COOK(r, mul, T(t), T(KILN_COOK(r, mul, T(mask), T(number(r, a, dtype)))));
  kiln__recipe_give(r, outs, KILN_COOK(r, add, T(kept), T(shift), I(1)));
}
KILN_RECIPE(alpha_dropout) { alpha_drop(r, args, false, outs); }
KILN_RECIPE(feature_alpha_dropout) { alpha_drop(r, args, true, outs); }

/* input, p, train (None: yes) -> output, mask */
KILN_RECIPE(native_dropout) {
  kiln_tensor *t = SELF;
  const double p = kiln_arg_float(args, 1), keep = 1 - p;
  const bool train = kiln_arg_is_none(args, 2) || kiln_arg_bool(args, 2);
  const kiln_ivalue sizes = kiln__recipe_ints(r, kiln_tensor_rank(t), kiln_tensor_sizes(t));
  kiln_tensor *mask = KILN_COOK(r, ones, sizes, I(KILN_DTYPE_BOOL), NONE, NONE, NONE);
  if (train && !(p >= 0 && p <= 1)) {
    KILN_RECIPE_FAIL(r, "bernoulli_ expects p to be in [0, 1], but got p=%g", keep);
  }
  if (r->status) return;
  if (!train) {
    kiln__recipe_give(r, &outs[0], KILN_COOK(r, clone, T(t), NONE));
    kiln__recipe_give(r, &outs[1], mask);
    return;
  }
  if (!kiln__recipe_ok(r, kiln__random_fill(r->call, mask, kiln__draw_bernoulli, &keep))) return;
  kiln_tensor *kept = KILN_COOK(r, mul, T(t), T(mask));
  kiln__recipe_give(
      r, &outs[0],
      KILN_COOK(r, mul, T(kept), T(number(r, keep == 0 ? 0 : 1 / keep, kiln_tensor_dtype(t)))));
  kiln__recipe_give(r, &outs[1], mask);
}

/* -- Randomised leaky relu -- */

/* self, noise (NULL: nobody wants the slopes), lower, upper, training */
static void rrelu(kiln__recipe *r, kiln_tensor *t, kiln_tensor *noise, const kiln_ivalue *rest,
                  kiln_ivalue *outs) {
  const double range[2] = {kiln__number(rest[0]).f, kiln__number(rest[1]).f};
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  if (!kiln_dtype_is_float(dtype)) {
    (void)kiln__recipe_ok(r, kiln__not_implemented(r->call, dtype));
    return;
  }
  if (!(range[0] <= range[1])) {
    KILN_RECIPE_FAIL(r, "Lower bound should be less than or equal to the upper bound");
    return;
  }
  kiln_tensor *slope = number(r, (range[0] + range[1]) / 2, dtype);
  kiln_tensor *low = KILN_COOK(r, le, T(t), I(0));
  if (rest[2].u.b) {
    kiln_tensor *in, *slopes;
    const uint8_t *is_low = kiln__recipe_read(r, low, KILN_DTYPE_BOOL, &in);
    double *to =
        kiln__recipe_new(r, KILN_DTYPE_F64, kiln_tensor_rank(t), kiln_tensor_sizes(t), &slopes);
    for (int64_t i = 0; !r->status && i < t->numel; i++) {
      to[i] = is_low[i] ? range[0] + kiln__uniform(r->call) * (range[1] - range[0]) : 1;
    }
    slope = kiln__recipe_to(r, slopes, dtype);
    if (noise) KILN_COOK(r, copy_, T(noise), T(slope), B(false));
  }
  kiln_tensor *scaled = KILN_COOK(r, mul, T(t), T(slope));
  kiln__recipe_give(r, outs, KILN_COOK(r, where, T(low), T(scaled), T(t)));
}
KILN_RECIPE(rrelu) { rrelu(r, SELF, NULL, args + 1, outs); }
KILN_RECIPE(rrelu_with_noise) { rrelu(r, SELF, kiln_arg_tensor(args, 1), args + 2, outs); }
