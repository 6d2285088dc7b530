/* batch_norm.c: batch_norm, instance_norm, group_norm, and the terms of the first and the last.
 *
 * All are x * scale + shift, with one scale and one shift for each row of an image's positions.
 * Mean and variance follow reduce/reduce.h over the elements in the order (batch, position): the
 * sum divided by n, then the sum of squared differences from that mean. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/nn/nn.h"

/* The input as [batch, channels, inner], contiguous, and what the operator was given. */
typedef struct norm {
  int64_t batch, channels, inner;
  const char *in, *weight, *bias, *mean, *var;
  kiln_tensor *result;
  char *out;
  double eps;
} norm;

/* A per-channel argument. */
static kiln_status *check_channels(const kiln_tensor *t, const char *name, int64_t channels) {
  if (!t || t->numel == channels) return NULL;
  return KILN_OP_FAIL("%s should contain %lld elements not %lld", name, (long long)channels,
                      (long long)t->numel);
}
/* The input's sizes, weight and bias. */
static kiln_status *begin_parameters(kiln__nn *nn, norm *p, const kiln_tensor *input,
                                     kiln_tensor *weight, kiln_tensor *bias) {
  const int64_t *sizes = kiln_tensor_sizes(input);
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(input)));
  KILN_TRY(kiln__nn_check_weight(input, weight));
  KILN_TRY(kiln__nn_check_weight(input, bias));
  p->batch = sizes[0];
  p->channels = sizes[1];
  p->inner = 1;
  for (int d = 2; d < kiln_tensor_rank(input); d++) p->inner *= sizes[d];
  KILN_TRY(kiln__nn_dense(nn, weight, &p->weight));
  return kiln__nn_dense(nn, bias, &p->bias);
}
static kiln_status *begin_norm(kiln__nn *nn, norm *p, kiln_tensor *input, kiln_tensor *weight,
                               kiln_tensor *bias, double eps) {
  KILN_TRY(begin_parameters(nn, p, input, weight, bias));
  p->mean = p->var = NULL;
  p->eps = eps;
  KILN_TRY(kiln__nn_dense(nn, input, &p->in));
  return kiln__nn_new(nn, kiln_tensor_rank(input), kiln_tensor_sizes(input), &p->result, &p->out);
}
/* out = in * scale + shift over n elements from `first`. */
static void affine(const kiln__nn *nn, const norm *p, int64_t first, int64_t n, double scale,
                   double shift) {
  const kiln_dispatch *d = nn->call->dispatch;
  const size_t at = (size_t)first * nn->item;
  (nn->dtype == KILN_DTYPE_F64 ? d->rows_f64 : d->rows_f32)
      ->scale_shift(p->out + at, p->in + at, n, scale, shift);
}
static double weight_of(const kiln__nn *nn, const norm *p, int64_t channel) {
  return p->weight ? kiln__nn_get(nn, p->weight, channel) : 1;
}
static double bias_of(const kiln__nn *nn, const norm *p, int64_t channel) {
  return p->bias ? kiln__nn_get(nn, p->bias, channel) : 0;
}
/* Mean and biased variance of n elements. */
static void moments(const kiln__nn *nn, const char *data, int64_t n, double *mean, double *var) {
  *mean = kiln__nn_reduce(nn, KILN_REDUCE_SUM, data, n, 0) / (double)n;
  *var = kiln__nn_reduce(nn, KILN_REDUCE_SUMSQ, data, n, *mean) / (double)n;
}

/* -- Batch norm -- */

/* Those of a channel over the batch: gathered into `row` where it lies apart. */
static void channel_moments(const kiln__nn *nn, const norm *p, int64_t channel, char *row,
                            double *mean, double *var) {
  const size_t length = (size_t)p->inner * nn->item;
  const char *from = p->in + (size_t)channel * length;
  if (p->batch == 1) {
    moments(nn, from, p->inner, mean, var);
    return;
  }
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t b = 0; b < p->batch && !kiln_budget_spent(&left, 1 + p->inner / 4);
       b++, from += (size_t)p->channels * length) {
    memcpy(row + (size_t)b * length, from, length);
  }
  moments(nn, row, p->batch * p->inner, mean, var);
}
/* running = momentum * new + (1 - momentum) * running, element by element. */
static kiln_status *update_running(kiln__nn *nn, kiln_tensor *running, const char *values,
                                   double momentum) {
  if (!running) return NULL;
  const char *old;
  char *data;
  kiln_tensor *result;
  KILN_TRY(kiln__nn_dense(nn, running, &old));
  KILN_TRY(kiln__nn_new(nn, kiln_tensor_rank(running), kiln_tensor_sizes(running), &result, &data));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t c = 0; c < running->numel && !kiln_budget_spent(&left, 4); c++) {
    kiln__nn_set(
        nn, data, c,
        momentum * kiln__nn_get(nn, values, c) + (1 - momentum) * kiln__nn_get(nn, old, c));
  }
  return kiln_pw_copy(nn->call, running, result);
}

typedef struct batch_norm {
  kiln_tensor *running_mean, *running_var;
  double momentum;
  bool training;
  kiln_tensor *mean, *rstd; /* of the batch, where training */
  char *mean_data, *rstd_data, *unbiased;
} batch_norm;

static kiln_status *check_batch_norm(const norm *p, const batch_norm *bn, const kiln_tensor *weight,
                                     const kiln_tensor *bias) {
  if (!bn->training && (!bn->running_mean || !bn->running_var)) {
    return KILN_OP_FAIL("running_%s must be defined in evaluation mode",
                        bn->running_mean ? "var" : "mean");
  }
  KILN_TRY(check_channels(bn->running_mean, "running_mean", p->channels));
  KILN_TRY(check_channels(bn->running_var, "running_var", p->channels));
  KILN_TRY(check_channels(weight, "weight", p->channels));
  return check_channels(bias, "bias", p->channels);
}
/* input, weight, bias, running_mean, running_var, training, momentum, eps */
static batch_norm read_batch_norm(const kiln_ivalue *args) {
  return (batch_norm){.running_mean = kiln_arg_tensor_opt(args, 3),
                      .running_var = kiln_arg_tensor_opt(args, 4),
                      .training = kiln_arg_bool(args, 5),
                      .momentum = kiln_arg_float(args, 6)};
}
static kiln_status *begin_batch_norm(kiln__nn *nn, const kiln_ivalue *args, const batch_norm *bn,
                                     norm *p) {
  kiln_tensor *weight = kiln_arg_tensor_opt(args, 1), *bias = kiln_arg_tensor_opt(args, 2);
  if (kiln_tensor_rank(SELF) < 2) {
    return KILN_OP_FAIL("Dimension out of range (expected to be in range of [-1, 0], but got 1)");
  }
  KILN_TRY(begin_norm(nn, p, SELF, weight, bias, kiln_arg_float(args, 7)));
  return check_batch_norm(p, bn, weight, bias);
}
/* Statistics of the batch: mean, rstd, and the unbiased variance, for each channel. */
static kiln_status *batch_moments(kiln__nn *nn, const norm *p, batch_norm *bn) {
  const int64_t n = p->batch * p->inner;
  kiln_tensor *temp;
  char *row;
  KILN_TRY(kiln__nn_new(nn, 1, &p->channels, &bn->mean, &bn->mean_data));
  KILN_TRY(kiln__nn_new(nn, 1, &p->channels, &bn->rstd, &bn->rstd_data));
  KILN_TRY(kiln__nn_new(nn, 1, &p->channels, &temp, &bn->unbiased));
  KILN_TRY(kiln__nn_new(nn, 1, &n, &temp, &row));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t c = 0; c < p->channels && !kiln_budget_spent(&left, 16 + n); c++) {
    double mean = 0, var = 0;
    channel_moments(nn, p, c, row, &mean, &var);
    kiln__nn_set(nn, bn->mean_data, c, mean);
    kiln__nn_set(nn, bn->rstd_data, c, 1 / sqrt(var + p->eps));
    kiln__nn_set(nn, bn->unbiased, c, var * (double)n / (double)(n - 1));
  }
  return NULL;
}
/* Calls `fn` for [0, n), each of `length` elements, in pieces that are worth a thread. */
static void share(const kiln__nn *nn, int64_t n, int64_t length, kiln_range_fn fn, void *data) {
  kiln_pool_for(nn->call->pool, n, 1 + KILN_PW_GRAIN / (length + 1), fn, data);
}

/* Of a channel. */
typedef struct terms {
  double scale, shift;
} terms;
static terms terms_of(const kiln__nn *nn, const norm *p, int64_t channel, double mean,
                      double rstd) {
  const double scale = rstd * weight_of(nn, p, channel);
  return (terms){scale, bias_of(nn, p, channel) - mean * scale};
}
static terms running_terms(const kiln__nn *nn, const norm *p, int64_t channel) {
  return terms_of(nn, p, channel, kiln__nn_get(nn, p->mean, channel),
                  1 / sqrt(kiln__nn_get(nn, p->var, channel) + p->eps));
}

typedef struct norm_run {
  const kiln__nn *nn;
  const norm *p;
  const batch_norm *bn;
  int64_t groups;
  char *means, *vars; /* of each row; of each group, 1 / deviation, and NULL where not wanted */
} norm_run;

static void norm_channels(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const norm_run *run = data;
  const kiln__nn *nn = run->nn;
  const norm *p = run->p;
  const batch_norm *bn = run->bn;
  for (int64_t c = begin; c < end; c++) {
    const terms t = bn->training ? terms_of(nn, p, c, kiln__nn_get(nn, bn->mean_data, c),
                                            kiln__nn_get(nn, bn->rstd_data, c))
                                 : running_terms(nn, p, c);
    int64_t left = KILN_BUDGET_ITEMS;
    for (int64_t b = 0; b < p->batch && !kiln_budget_spent(&left, 4 + p->inner / 4); b++) {
      affine(nn, p, (b * p->channels + c) * p->inner, p->inner, t.scale, t.shift);
    }
  }
}
/* Rows [begin, end) of channels that lie behind each other. */
typedef struct row_run {
  const kiln__nn *nn;
  const norm *p;
  const char *scales, *shifts;
} row_run;
static void scale_rows(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const row_run *run = data;
  const norm *p = run->p;
  const int64_t bytes = p->channels * (int64_t)run->nn->item;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t b = begin; b < end && !kiln_budget_spent(&left, 4 + p->channels / 4); b++) {
    char *out = p->out + b * bytes;
    kiln__nn_loop2(run->nn, KILN_PW_mul, out, p->in + b * bytes, run->scales, true, p->channels);
    kiln__nn_loop2(run->nn, KILN_PW_add, out, out, run->shifts, true, p->channels);
  }
}
static kiln_status *run_rows(kiln__nn *nn, const norm *p) {
  row_run run = {.nn = nn, .p = p};
  kiln_tensor *temp;
  char *scales, *shifts;
  int64_t left = KILN_BUDGET_ITEMS;
  KILN_TRY(kiln__nn_new(nn, 1, &p->channels, &temp, &scales));
  KILN_TRY(kiln__nn_new(nn, 1, &p->channels, &temp, &shifts));
  for (int64_t c = 0; c < p->channels && !kiln_budget_spent(&left, 4); c++) {
    const terms t = running_terms(nn, p, c);
    kiln__nn_set(nn, scales, c, t.scale);
    kiln__nn_set(nn, shifts, c, t.shift);
  }
  run.scales = scales;
  run.shifts = shifts;
  share(nn, p->batch, p->channels, scale_rows, &run);
  return NULL;
}

static kiln_status *run_batch_norm(kiln__nn *nn, norm *p, batch_norm *bn) {
  if (bn->training) {
    KILN_TRY(batch_moments(nn, p, bn));
  } else {
    KILN_TRY(kiln__nn_dense(nn, bn->running_mean, &p->mean));
    KILN_TRY(kiln__nn_dense(nn, bn->running_var, &p->var));
    if (p->inner == 1 && p->batch > 1) return run_rows(nn, p);
  }
  norm_run run = {.nn = nn, .p = p, .bn = bn};
  share(nn, p->channels, p->batch * p->inner, norm_channels, &run);
  return NULL;
}
static kiln_status *batch_norm_of(kiln__nn *nn, const kiln_ivalue *args, kiln_ivalue *outs,
                                  bool statistics) {
  kiln_tensor *input = SELF;
  const kiln_dtype dtype = kiln_tensor_dtype(input);
  batch_norm bn = read_batch_norm(args);
  norm p;
  if (input->numel == 0 && !statistics) { /* of the rest PyTorch looks at channel 0 alone */
    for (int i = 1; i < 3; i++) {
      const kiln_tensor *t = kiln_arg_tensor_opt(args, i);
      if (t && t->numel == 0) {
        return KILN_OP_FAIL("select(): index 0 out of range for tensor of size [0] at dimension 0");
      }
    }
    return kiln__nn_give(nn, input, dtype, &outs[0]);
  }
  KILN_TRY(begin_batch_norm(nn, args, &bn, &p));
  if (input->numel == 0 && bn.training) {
    return KILN_OP_FAIL("input tensor must have at least one element, but got input_sizes = %s",
                        kiln__sizes_of(input).text);
  }
  if (input->numel > 0) {
    KILN_TRY(run_batch_norm(nn, &p, &bn));
    if (bn.training) {
      KILN_TRY(update_running(nn, bn.running_mean, bn.mean_data, bn.momentum));
      KILN_TRY(update_running(nn, bn.running_var, bn.unbiased, bn.momentum));
    }
  }
  KILN_TRY(kiln__nn_give(nn, p.result, dtype, &outs[0]));
  if (!statistics) return NULL;
  const int64_t none = 0;
  char *data;
  if (!bn.mean) {
    KILN_TRY(kiln__nn_new(nn, 1, &none, &bn.mean, &data));
    KILN_TRY(kiln__nn_new(nn, 1, &none, &bn.rstd, &data));
  }
  const kiln_tensor *weight = kiln_arg_tensor_opt(args, 1);
  const kiln_dtype kept = weight ? kiln_tensor_dtype(weight) : dtype;
  KILN_TRY(kiln__nn_give(nn, bn.mean, kept, &outs[1]));
  return kiln__nn_give(nn, bn.rstd, kept, &outs[2]);
}
KILN_NN_KERNEL(batch_norm) { return batch_norm_of(nn, args, outs, false); }
KILN_NN_KERNEL(native_batch_norm) { return batch_norm_of(nn, args, outs, true); }

/* weight, bias, running_mean, running_var, eps */
KILN_NN_KERNEL(batch_norm_terms) {
  kiln_tensor *weight = kiln_arg_tensor_opt(args, 0), *bias = kiln_arg_tensor_opt(args, 1);
  kiln_tensor *mean = kiln_arg_tensor(args, 2), *var = kiln_arg_tensor(args, 3), *scale, *shift;
  const kiln_dtype dtype = kiln_tensor_dtype(mean);
  char *scales, *shifts;
  norm p = {.channels = mean->numel, .eps = kiln_arg_float(args, 4)};
  if (kiln_tensor_rank(mean) != 1) {
    return KILN_OP_FAIL("running_mean should be a vector but has %d dimensions",
                        kiln_tensor_rank(mean));
  }
  KILN_TRY(kiln__nn_begin(nn, dtype));
  KILN_TRY(kiln__nn_check_weight(mean, weight));
  KILN_TRY(kiln__nn_check_weight(mean, bias));
  KILN_TRY(check_channels(var, "running_var", p.channels));
  KILN_TRY(check_channels(weight, "weight", p.channels));
  KILN_TRY(check_channels(bias, "bias", p.channels));
  KILN_TRY(kiln__nn_dense(nn, weight, &p.weight));
  KILN_TRY(kiln__nn_dense(nn, bias, &p.bias));
  KILN_TRY(kiln__nn_dense(nn, mean, &p.mean));
  KILN_TRY(kiln__nn_dense(nn, var, &p.var));
  KILN_TRY(kiln__nn_new(nn, 1, &p.channels, &scale, &scales));
  KILN_TRY(kiln__nn_new(nn, 1, &p.channels, &shift, &shifts));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t c = 0; c < p.channels && !kiln_budget_spent(&left, 4); c++) {
    const terms t = running_terms(nn, &p, c);
    kiln__nn_set(nn, scales, c, t.scale);
    kiln__nn_set(nn, shifts, c, t.shift);
  }
  KILN_TRY(kiln__nn_give(nn, scale, dtype, &outs[0]));
  return kiln__nn_give(nn, shift, dtype, &outs[1]);
}

/* -- Instance norm: statistics of each (image, channel); the running ones get their mean -- */

static kiln_status *instance_running(kiln__nn *nn, const norm *p, const batch_norm *bn,
                                     const char *means, const char *vars) {
  kiln_tensor *temp;
  char *mean, *var;
  KILN_TRY(kiln__nn_new(nn, 1, &p->channels, &temp, &mean));
  KILN_TRY(kiln__nn_new(nn, 1, &p->channels, &temp, &var));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t c = 0; c < p->channels && !kiln_budget_spent(&left, 4); c++) {
    double sum = 0, sum_var = 0;
    for (int64_t b = 0; b < p->batch; b++) {
      sum += kiln__nn_get(nn, means, b * p->channels + c);
      sum_var += kiln__nn_get(nn, vars, b * p->channels + c);
    }
    kiln__nn_set(nn, mean, c, sum / (double)p->batch);
    kiln__nn_set(nn, var, c, sum_var / (double)p->batch);
  }
  KILN_TRY(update_running(nn, bn->running_mean, mean, bn->momentum));
  return update_running(nn, bn->running_var, var, bn->momentum);
}
static void norm_rows(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const norm_run *run = data;
  const kiln__nn *nn = run->nn;
  const norm *p = run->p;
  const int64_t n = p->inner;
  for (int64_t i = begin; i < end; i++) {
    double mean, var;
    moments(nn, p->in + (size_t)(i * n) * nn->item, n, &mean, &var);
    const double scale = weight_of(nn, p, i % p->channels) / sqrt(var + p->eps);
    affine(nn, p, i * n, n, scale, bias_of(nn, p, i % p->channels) - mean * scale);
    kiln__nn_set(nn, run->means, i, mean);
    kiln__nn_set(nn, run->vars, i, var * (double)n / (double)(n - 1));
  }
}
static kiln_status *run_instance_norm(kiln__nn *nn, const norm *p, const batch_norm *bn) {
  const int64_t rows = p->batch * p->channels;
  kiln_tensor *temp;
  norm_run run = {.nn = nn, .p = p};
  KILN_TRY(kiln__nn_new(nn, 1, &rows, &temp, &run.means));
  KILN_TRY(kiln__nn_new(nn, 1, &rows, &temp, &run.vars));
  share(nn, rows, p->inner, norm_rows, &run);
  return instance_running(nn, p, bn, run.means, run.vars);
}
KILN_NN_KERNEL(instance_norm) {
  kiln_tensor *input = SELF;
  batch_norm bn = read_batch_norm(args);
  if (!bn.training && (!bn.running_mean || !bn.running_var)) {
    return KILN_OP_FAIL("Expected running_mean and running_var to be defined when "
                        "use_input_stats is false");
  }
  norm p;
  KILN_TRY(begin_batch_norm(nn, args, &bn, &p));
  if (input->numel > 0) {
    KILN_TRY(bn.training ? run_instance_norm(nn, &p, &bn) : run_batch_norm(nn, &p, &bn));
  }
  return kiln__nn_give(nn, p.result, kiln_tensor_dtype(input), outs);
}

/* -- Group norm -- */

static kiln_status *check_group_param(const kiln_tensor *input, const kiln_tensor *t,
                                      const char *name) {
  if (!t || (kiln_tensor_rank(t) == 1 && t->numel == kiln_tensor_sizes(input)[1])) return NULL;
  return KILN_OP_FAIL(
      "Expected %s to be a vector of size equal to the number of channels in input, "
      "but got %s of shape %s and input of shape %s",
      name, name, kiln__sizes_of(t).text, kiln__sizes_of(input).text);
}
/* Mean and scale are rounded, so that x * scale and mean * scale are alike. */
static terms group_terms(const kiln__nn *nn, const norm *p, int64_t channel, double mean,
                         double rstd) {
  double scale = rstd * weight_of(nn, p, channel);
  if (nn->dtype == KILN_DTYPE_F32) {
    mean = (float)mean;
    scale = (float)scale;
  }
  return (terms){scale, bias_of(nn, p, channel) - mean * scale};
}
static void norm_groups(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const norm_run *run = data;
  const kiln__nn *nn = run->nn;
  const norm *p = run->p;
  const int64_t per_group = p->channels / run->groups, n = per_group * p->inner;
  for (int64_t g = begin; g < end; g++) {
    double mean, var;
    moments(nn, p->in + (size_t)(g * n) * nn->item, n, &mean, &var);
    const double rstd = 1 / sqrt(var + p->eps);
    for (int64_t k = 0; k < per_group; k++) {
      const terms t = group_terms(nn, p, g % run->groups * per_group + k, mean, rstd);
      affine(nn, p, g * n + k * p->inner, p->inner, t.scale, t.shift);
    }
    if (run->means) kiln__nn_set(nn, run->means, g, mean);
    if (run->vars) kiln__nn_set(nn, run->vars, g, rstd);
  }
}
/* means and rstds may be NULL. */
static void run_groups(kiln__nn *nn, norm *p, int64_t groups, char *means, char *rstds) {
  norm_run run = {.nn = nn, .p = p, .groups = groups, .means = means, .vars = rstds};
  share(nn, p->batch * groups, p->channels / groups * p->inner, norm_groups, &run);
}
static kiln_status *check_groups(const kiln_tensor *input, int64_t groups,
                                 const kiln_tensor *weight, const kiln_tensor *bias) {
  if (kiln_tensor_rank(input) < 2) {
    return KILN_OP_FAIL("Expected at least 2 dimensions for input tensor but received %d",
                        kiln_tensor_rank(input));
  }
  if (groups <= 0) {
    return KILN_OP_FAIL("Expected num groups to be greater than 0, got %lld", (long long)groups);
  }
  if (kiln_tensor_sizes(input)[1] % groups != 0) {
    return KILN_OP_FAIL(
        "Expected number of channels in input to be divisible by num_groups, but got "
        "input of shape %s and num_groups=%lld",
        kiln__sizes_of(input).text, (long long)groups);
  }
  KILN_TRY(check_group_param(input, weight, "weight"));
  KILN_TRY(check_group_param(input, bias, "bias"));
  for (int d = 1; d < kiln_tensor_rank(input); d++) {
    if (kiln_tensor_sizes(input)[d] > 0) continue;
    return KILN_OP_FAIL("Expected %s to be greater than 0, got 0",
                        d == 1 ? "number of channels" : "HxW");
  }
  return NULL;
}
/* weight and bias are args[weights] and the next one. */
static kiln_status *begin_groups(kiln__nn *nn, const kiln_ivalue *args, int weights, int64_t groups,
                                 double eps, norm *p) {
  kiln_tensor *input = SELF, *weight = kiln_arg_tensor_opt(args, weights);
  kiln_tensor *bias = kiln_arg_tensor_opt(args, weights + 1);
  KILN_TRY(check_groups(input, groups, weight, bias));
  return begin_norm(nn, p, input, weight, bias, eps);
}
KILN_NN_KERNEL(group_norm) {
  const int64_t groups = kiln_arg_int(args, 1);
  norm p;
  KILN_TRY(begin_groups(nn, args, 2, groups, kiln_arg_float(args, 4), &p));
  if (SELF->numel > 0) run_groups(nn, &p, groups, NULL, NULL);
  return kiln__nn_give(nn, p.result, kiln_tensor_dtype(SELF), outs);
}
/* input, weight, bias, N, C, HxW, group, eps: the sizes are the input's own */
KILN_NN_KERNEL(native_group_norm) {
  kiln_tensor *input = SELF, *mean, *rstd;
  const int64_t groups = kiln_arg_int(args, 6);
  const kiln_dtype dtype = kiln_tensor_dtype(input);
  char *means, *rstds;
  norm p;
  KILN_TRY(begin_groups(nn, args, 1, groups, kiln_arg_float(args, 7), &p));
  if (kiln_arg_int(args, 3) != p.batch || kiln_arg_int(args, 4) != p.channels) {
    return KILN_OP_FAIL("native_group_norm: N and C must be the sizes of input");
  }
  KILN_TRY(kiln__nn_new(nn, 2, (const int64_t[]){p.batch, groups}, &mean, &means));
  KILN_TRY(kiln__nn_new(nn, 2, (const int64_t[]){p.batch, groups}, &rstd, &rstds));
  if (input->numel > 0) run_groups(nn, &p, groups, means, rstds);
  KILN_TRY(kiln__nn_give(nn, p.result, dtype, &outs[0]));
  KILN_TRY(kiln__nn_give(nn, mean, dtype, &outs[1]));
  return kiln__nn_give(nn, rstd, dtype, &outs[2]);
}

/* -- Group norm's terms -- */

/* Where channels are last each image is cut into parts, and these into chunks that stay in the
 * first cache: of a chunk the channels' means, then the sums of squared differences from these. */
enum { CHUNK_ITEMS = 1 << 13, PART_ITEMS = 1 << 17 };

/* Pixels that lie `step` elements apart, each with its channels beside each other. */
typedef struct pixels {
  const kiln__nn *nn;
  const char *data;
  int64_t batch, channels, count, step, image; /* count, image: pixels, elements of an image */
  int64_t chunk, part, parts;                  /* pixels; parts of an image */
  double *sums, *squares;                      /* [batch][part][channel] */
  char *means, *values;                        /* [batch][part][channel]: of a chunk */
} pixels;

/* False: the input lies otherwise. */
static bool read_pixels(const kiln__nn *nn, const kiln_tensor *t, pixels *out) {
  const int rank = kiln_tensor_rank(t);
  const int64_t *sizes = kiln_tensor_sizes(t), *strides = kiln_tensor_strides(t);
  if (kiln_tensor_dtype(t) != nn->dtype || rank < 3 || strides[1] != 1 || sizes[1] == 1)
    return false;
  *out = (pixels){.nn = nn,
                  .data = kiln_tensor_data(t),
                  .batch = sizes[0],
                  .channels = sizes[1],
                  .count = 1,
                  .step = strides[rank - 1],
                  .image = strides[0]};
  for (int d = rank - 1; d >= 2; d--) {
    if (sizes[d] != 1 && strides[d] != out->count * out->step) return false;
    out->count *= sizes[d];
  }
  out->chunk = 1 + CHUNK_ITEMS / out->channels;
  out->part = (1 + PART_ITEMS / out->channels / out->chunk) * out->chunk;
  out->parts = (out->count + out->part - 1) / out->part;
  return true;
}

/* What a chunk of `n` pixels adds: to the sums n * mean, to the sums of squares n * mean^2 and the
 * squared differences from that mean, which is rounded. */
static void add_chunk(const pixels *p, const char *from, int64_t n, int64_t at) {
  const kiln__nn *nn = p->nn;
  const kiln_dispatch *d = nn->call->dispatch;
  const kiln_row_kernels *rows = nn->dtype == KILN_DTYPE_F64 ? d->rows_f64 : d->rows_f32;
  const int64_t item = (int64_t)nn->item;
  char *means = p->means + at * item, *values = p->values + at * item;
  rows->add_rows(means, from, p->step, n, p->channels, NULL);
  for (int64_t c = 0; c < p->channels; c++)
    kiln__nn_set(nn, means, c, kiln__nn_get(nn, means, c) / (double)n);
  rows->add_rows(values, from, p->step, n, p->channels, means);
  for (int64_t c = 0; c < p->channels; c++) {
    const double mean = kiln__nn_get(nn, means, c);
    p->sums[at + c] += (double)n * mean;
    p->squares[at + c] += (double)n * mean * mean + kiln__nn_get(nn, values, c);
  }
}
static void add_parts(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const pixels *p = data;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = begin; i < end; i++) {
    const int64_t first = i % p->parts * p->part, at = i * p->channels;
    const int64_t last = first + p->part < p->count ? first + p->part : p->count;
    const char *image = p->data + i / p->parts * p->image * (int64_t)p->nn->item;
    for (int64_t c = 0; c < p->channels; c++) p->sums[at + c] = p->squares[at + c] = 0;
    for (int64_t k = first; k < last; k += p->chunk) {
      const int64_t n = last - k < p->chunk ? last - k : p->chunk;
      if (kiln_budget_spent(&left, 1 + n * p->channels / 4)) return;
      add_chunk(p, image + k * p->step * (int64_t)p->nn->item, n, at);
    }
  }
}
static kiln_status *sum_pixels(kiln__nn *nn, pixels *p) {
  const int64_t sizes[] = {p->batch, p->parts, p->channels};
  kiln_tensor *temp;
  void *sums, *squares;
  KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_F64, 3, sizes, &temp, &sums));
  KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_F64, 3, sizes, &temp, &squares));
  KILN_TRY(kiln__nn_new(nn, 3, sizes, &temp, &p->means));
  KILN_TRY(kiln__nn_new(nn, 3, sizes, &temp, &p->values));
  p->sums = sums;
  p->squares = squares;
  share(nn, p->batch * p->parts, p->part * p->channels, add_parts, p);
  return NULL;
}
/* Of group `g` of all images: mean and biased variance. */
static void moments_of_pixels(const pixels *p, int64_t g, int64_t per_group, double *mean,
                              double *var) {
  const int64_t groups = p->channels / per_group, first = g % groups * per_group;
  const double n = (double)(per_group * p->count);
  double sum = 0, squares = 0;
  for (int64_t part = 0; part < p->parts; part++) {
    const int64_t at = (g / groups * p->parts + part) * p->channels + first;
    for (int64_t c = at; c < at + per_group; c++) {
      sum += p->sums[c];
      squares += p->squares[c];
    }
  }
  *mean = sum / n;
  *var = fmax(squares / n - *mean * *mean, 0);
}

typedef struct terms_run {
  const kiln__nn *nn;
  const norm *p;
  const pixels *pixels; /* NULL: the input's rows are dense */
  int64_t groups;
  char *scales, *shifts;
} terms_run;
static void find_terms(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const terms_run *run = data;
  const kiln__nn *nn = run->nn;
  const norm *p = run->p;
  const int64_t per_group = p->channels / run->groups, n = per_group * p->inner;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t g = begin; g < end && !kiln_budget_spent(&left, 8 + per_group); g++) {
    double mean, var;
    if (run->pixels)
      moments_of_pixels(run->pixels, g, per_group, &mean, &var);
    else
      moments(nn, p->in + (size_t)(g * n) * nn->item, n, &mean, &var);
    for (int64_t k = 0; k < per_group; k++) {
      const int64_t c = g % run->groups * per_group + k;
      const terms t = group_terms(nn, p, c, mean, 1 / sqrt(var + p->eps));
      kiln__nn_set(nn, run->scales, g * per_group + k, t.scale);
      kiln__nn_set(nn, run->shifts, g * per_group + k, t.shift);
    }
  }
}
/* input, num_groups, weight, bias, eps */
KILN_NN_KERNEL(group_norm_terms) {
  kiln_tensor *input = SELF, *weight = kiln_arg_tensor_opt(args, 2), *scale, *shift;
  kiln_tensor *bias = kiln_arg_tensor_opt(args, 3);
  const int rank = kiln_tensor_rank(input);
  int64_t sizes[KILN_MAX_RANK];
  norm p = {.eps = kiln_arg_float(args, 4), .inner = 1};
  terms_run run = {.nn = nn, .p = &p, .groups = kiln_arg_int(args, 1)};
  pixels last;
  KILN_TRY(check_groups(input, run.groups, weight, bias));
  KILN_TRY(begin_parameters(nn, &p, input, weight, bias));
  for (int d = 0; d < rank; d++) sizes[d] = d < 2 ? kiln_tensor_sizes(input)[d] : 1;
  KILN_TRY(kiln__nn_new(nn, rank, sizes, &scale, &run.scales));
  KILN_TRY(kiln__nn_new(nn, rank, sizes, &shift, &run.shifts));
  if (read_pixels(nn, input, &last)) {
    run.pixels = &last;
    KILN_TRY(sum_pixels(nn, &last));
  } else {
    KILN_TRY(kiln__nn_dense(nn, input, &p.in));
  }
  const int64_t each = run.pixels ? 1 : p.channels / run.groups * p.inner;
  share(nn, p.batch * run.groups, each, find_terms, &run);
  KILN_TRY(kiln__nn_give(nn, scale, nn->dtype, &outs[0]));
  return kiln__nn_give(nn, shift, nn->dtype, &outs[1]);
}
