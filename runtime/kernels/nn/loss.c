/* loss.c: losses: of two equal shapes (mse, l1, smooth_l1, huber, binary cross entropy), and of
 * classes (nll_loss, cross_entropy_loss). Each element is computed in double and rounded; sums
 * follow reduce/reduce.h. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/nn/nn.h"
#include "runtime/kernels/reduce/reduce.h"
#include "runtime/kernels/shape/view.h"

enum { REDUCTION_NONE = 0, REDUCTION_MEAN = 1, REDUCTION_SUM = 2 };

/* Whose order of memory losses that are not reduced have: a pointwise operator's of these operands,
 * or empty_like's; neither: row-major. */
typedef struct layout {
  int count;
  kiln_tensor *operands[2], *like;
} layout;

/* `losses` as they are, or their sum divided by `count`. */
static kiln_status *give_loss(kiln__nn *nn, kiln_tensor *losses, int64_t reduction, double count,
                              const layout *lies, kiln_dtype dtype, kiln_ivalue *out) {
  if (reduction == REDUCTION_NONE && !kiln__dest(out) && (lies->count || lies->like)) {
    kiln_tensor *laid;
    KILN_TRY(lies->like ? kiln__lay_like(nn->call, losses, dtype, lies->like, &laid)
                        : kiln__lay_pointwise(nn->call, losses, dtype, lies->count, lies->operands,
                                              &laid));
    return kiln__give(out, laid);
  }
  if (reduction == REDUCTION_NONE) return kiln__nn_give(nn, losses, dtype, out);
  double sum = kiln__nn_reduce(nn, KILN_REDUCE_SUM, kiln_tensor_data(losses), losses->numel, 0);
  kiln_tensor *result;
  char *data;
  KILN_TRY(kiln__nn_new(nn, 0, NULL, &result, &data));
  kiln__nn_set(nn, data, 0, reduction == REDUCTION_MEAN ? sum / count : sum);
  return kiln__nn_give(nn, result, dtype, out);
}

/* -- Element by element -- */

typedef double (*loss_fn)(double x, double y, double param);

static kiln_status *expand_dense(kiln__nn *nn, kiln_tensor *t, int rank, const int64_t *sizes,
                                 const char **out) {
  *out = NULL;
  if (!t) return NULL;
  kiln_tensor *wide;
  KILN_TRY(kiln__expand(nn->call, t, rank, sizes, &wide));
  KILN_TRY(kiln__nn_keep(nn, wide));
  return kiln__nn_dense(nn, wide, out);
}
/* `like_self`: losses of self's sizes lie as empty_like(self). */
static kiln_status *pair_loss(kiln__nn *nn, const kiln_ivalue *args, loss_fn fn, double param,
                              kiln_tensor *weight, bool like_self, int64_t reduction,
                              kiln_ivalue *out) {
  kiln_tensor *a = SELF, *b = ARG(1), *losses;
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  kiln_pw pw = {.in_count = 2};
  pw.in[0].tensor = a;
  pw.in[1].tensor = b;
  const kiln_dtype dtype = kiln_pw_promote(&pw, 0);
  KILN_TRY(kiln__nn_begin(nn, dtype));
  KILN_TRY(kiln_tensor_broadcast(a, b, &rank, sizes));
  const char *x, *y, *w;
  char *data;
  KILN_TRY(expand_dense(nn, a, rank, sizes, &x));
  KILN_TRY(expand_dense(nn, b, rank, sizes, &y));
  KILN_TRY(expand_dense(nn, weight, rank, sizes, &w));
  KILN_TRY(kiln__nn_new(nn, rank, sizes, &losses, &data));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < losses->numel && !kiln_budget_spent(&left, 16); i++) {
    const double loss = fn(kiln__nn_get(nn, x, i), kiln__nn_get(nn, y, i), param);
    kiln__nn_set(nn, data, i, w ? loss * kiln__nn_get(nn, w, i) : loss);
  }
  layout lies = {.count = like_self ? 0 : 2, .operands = {a, b}};
  if (like_self && kiln_tensor_same_sizes(a, losses)) lies.like = a;
  return give_loss(nn, losses, reduction, (double)losses->numel, &lies, dtype, out);
}

static double squared(double x, double y, KILN_UNUSED double p) { return (x - y) * (x - y); }
static double absolute(double x, double y, KILN_UNUSED double p) { return fabs(x - y); }
static double smooth_l1(double x, double y, double beta) {
  const double z = fabs(x - y);
  return z < beta ? 0.5 * z * z / beta : z - 0.5 * beta;
}
static double huber(double x, double y, double delta) {
  const double z = fabs(x - y);
  return z <= delta ? 0.5 * z * z : delta * (z - 0.5 * delta);
}
/* Logarithms are kept above -100. */
static double cross_entropy(double x, double y, KILN_UNUSED double p) {
  const double log_x = log(x), log_rest = log1p(-x);
  return (y - 1) * (log_rest < -100 ? -100 : log_rest) - y * (log_x < -100 ? -100 : log_x);
}
KILN_NN_KERNEL(mse_loss) {
  return pair_loss(nn, args, squared, 0, NULL, false, kiln_arg_int(args, 2), outs);
}
KILN_NN_KERNEL(l1_loss) {
  if (kiln__is_complex(SELF) || kiln__is_complex(ARG(1))) {
    return KILN_BODY_OF(complex_l1_loss)(nn->call, args, outs);
  }
  return pair_loss(nn, args, absolute, 0, NULL, false, kiln_arg_int(args, 2), outs);
}
KILN_NN_KERNEL(smooth_l1_loss) {
  const double beta = kiln_arg_float(args, 3);
  if (!(beta >= 0)) {
    return KILN_OP_FAIL("smooth_l1_loss does not support negative values for beta.");
  }
  return pair_loss(nn, args, smooth_l1, beta, NULL, false, kiln_arg_int(args, 2), outs);
}
KILN_NN_KERNEL(huber_loss) {
  const double delta = kiln_arg_float(args, 3);
  if (!(delta > 0)) {
    return KILN_OP_FAIL("huber_loss does not support non-positive values for delta.");
  }
  return pair_loss(nn, args, huber, delta, NULL, true, kiln_arg_int(args, 2), outs);
}
KILN_NN_KERNEL(binary_cross_entropy) {
  kiln_tensor *t = SELF;
  const char *x;
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(t)));
  KILN_TRY(kiln__nn_dense(nn, t, &x));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < t->numel && !kiln_budget_spent(&left, 2); i++) {
    const double value = kiln__nn_get(nn, x, i);
    if (!(value >= 0 && value <= 1)) {
      return KILN_OP_FAIL("all elements of input should be between 0 and 1");
    }
  }
  return pair_loss(nn, args, cross_entropy, 0, kiln_arg_tensor_opt(args, 2), true,
                   kiln_arg_int(args, 3), outs);
}
/* (1 - y) x + (1 + (pos - 1) y) log(1 + e^-x), stable for both signs of x. */
KILN_NN_KERNEL(binary_cross_entropy_with_logits) {
  kiln_tensor *a = SELF, *losses;
  const int rank = kiln_tensor_rank(a);
  const int64_t *sizes = kiln_tensor_sizes(a);
  const char *x, *y, *w, *pos;
  char *data;
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(a)));
  KILN_TRY(kiln__nn_dense(nn, a, &x));
  KILN_TRY(expand_dense(nn, ARG(1), rank, sizes, &y));
  KILN_TRY(expand_dense(nn, kiln_arg_tensor_opt(args, 2), rank, sizes, &w));
  KILN_TRY(expand_dense(nn, kiln_arg_tensor_opt(args, 3), rank, sizes, &pos));
  KILN_TRY(kiln__nn_new(nn, rank, sizes, &losses, &data));
  KILN_ASSERT(y || a->numel == 0);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < a->numel && !kiln_budget_spent(&left, 32); i++) {
    const double xi = kiln__nn_get(nn, x, i), yi = kiln__nn_get(nn, y, i);
    const double factor = pos ? 1 + (kiln__nn_get(nn, pos, i) - 1) * yi : 1;
    const double soft = log1p(exp(-fabs(xi))) + (xi < 0 ? -xi : 0);
    const double loss = (1 - yi) * xi + factor * soft;
    kiln__nn_set(nn, data, i, w ? loss * kiln__nn_get(nn, w, i) : loss);
  }
  const layout lies = {.count = 2, .operands = {NULL, ARG(1)}}; /* as 1 - target */
  return give_loss(nn, losses, kiln_arg_int(args, 4), (double)a->numel, &lies, kiln_tensor_dtype(a),
                   outs);
}

/* -- Of classes -- */

/* Logarithms of probabilities as [batch, classes, inner], and what the operator was given. */
typedef struct classes {
  int64_t batch, count, inner, ignored, reduction;
  const char *log_p, *weight;
  const int64_t *target;
  double smoothing, total_weight;
  kiln_tensor *losses;
  char *data;
} classes;

/* What of the shape is not classes: sizes of the target. */
static int rest_of(const kiln_tensor *t, int64_t *sizes) {
  const int rank = kiln_tensor_rank(t);
  int count = 0;
  for (int d = 0; d < rank; d++) {
    if (d != (rank > 1 ? 1 : 0)) sizes[count++] = kiln_tensor_sizes(t)[d];
  }
  return count;
}
static kiln_status *begin_classes(kiln__nn *nn, classes *c, kiln_tensor *log_p,
                                  kiln_tensor *weight) {
  const int rank = kiln_tensor_rank(log_p);
  int64_t sizes[KILN_MAX_RANK];
  if (rank < 1) return KILN_OP_FAIL("Expected 1 or more dimensions (got 0)");
  c->batch = rank > 1 ? kiln_tensor_sizes(log_p)[0] : 1;
  c->count = kiln_tensor_sizes(log_p)[rank > 1 ? 1 : 0];
  c->inner = 1;
  for (int d = 2; d < rank; d++) c->inner *= kiln_tensor_sizes(log_p)[d];
  if (weight && (kiln_tensor_rank(weight) != 1 || weight->numel != c->count)) {
    return KILN_OP_FAIL("weight tensor should be defined either for all %lld classes or no classes "
                        "but got weight tensor of shape: %s",
                        (long long)c->count, kiln__sizes_of(weight).text);
  }
  KILN_TRY(kiln__nn_dense(nn, log_p, &c->log_p));
  KILN_TRY(kiln__nn_dense(nn, weight, &c->weight));
  const int rest = rest_of(log_p, sizes);
  return kiln__nn_new(nn, rest, sizes, &c->losses, &c->data);
}
static kiln_status *read_target(kiln__nn *nn, classes *c, const kiln_tensor *log_p,
                                kiln_tensor *target) {
  if (kiln_tensor_dtype(target) != KILN_DTYPE_I64) {
    return KILN_OP_FAIL("expected scalar type Long but found %s",
                        kiln_dtype_ir_name(kiln_tensor_dtype(target)));
  }
  int64_t sizes[KILN_MAX_RANK];
  const int rank = rest_of(log_p, sizes);
  const bool same = kiln_tensor_has_sizes(target, rank, sizes);
  const bool lone = rank == 0 && target->numel == 1;
  if (!same && !lone) {
    if (kiln_tensor_rank(target) > 0 && rank > 0 && kiln_tensor_sizes(target)[0] != sizes[0]) {
      return KILN_OP_FAIL("Expected input batch_size (%lld) to match target batch_size (%lld).",
                          (long long)sizes[0], (long long)kiln_tensor_sizes(target)[0]);
    }
    return KILN_OP_FAIL("size mismatch (got input: %s, target: %s)", kiln__sizes_of(log_p).text,
                        kiln__sizes_of(target).text);
  }
  kiln_tensor *dense;
  KILN_TRY(kiln__nn_as(nn, target, KILN_DTYPE_I64, &dense));
  c->target = kiln_tensor_data(dense);
  return NULL;
}
static double weight_of(const kiln__nn *nn, const classes *c, int64_t k) {
  return c->weight ? kiln__nn_get(nn, c->weight, k) : 1;
}
static double log_p_of(const kiln__nn *nn, const classes *c, int64_t b, int64_t k, int64_t i) {
  return kiln__nn_get(nn, c->log_p, (b * c->count + k) * c->inner + i);
}
static kiln_status *index_losses(kiln__nn *nn, classes *c) {
  double weights[KILN_REDUCE_LANES] = {0};
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t at = 0; at < c->batch * c->inner &&
                       !kiln_budget_spent(&left, 4 + (c->smoothing > 0 ? 4 * c->count : 0));
       at++) {
    const int64_t b = at / c->inner, i = at % c->inner, k = c->target[at];
    if (k == c->ignored) {
      kiln__nn_set(nn, c->data, at, 0);
      continue;
    }
    if (k < 0 || k >= c->count) {
      return KILN_OP_FAIL("Target %lld is out of bounds.", (long long)k);
    }
    double loss = -weight_of(nn, c, k) * log_p_of(nn, c, b, k, i);
    if (c->smoothing > 0) {
      double all = 0;
      for (int64_t j = 0; j < c->count; j++) {
        all -= log_p_of(nn, c, b, j, i) * weight_of(nn, c, j);
      }
      loss = (1 - c->smoothing) * loss + c->smoothing / (double)c->count * all;
    }
    kiln__nn_set(nn, c->data, at, loss);
    weights[at % KILN_REDUCE_LANES] += weight_of(nn, c, k);
  }
  c->total_weight = kiln_reduce_fold(weights);
  return NULL;
}
static kiln_status *nll_loss(kiln__nn *nn, const kiln_ivalue *args, classes *c, kiln_ivalue *out) {
  kiln_tensor *log_p = SELF;
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(log_p)));
  c->reduction = kiln_arg_int(args, 3);
  c->ignored = kiln_arg_int(args, 4);
  c->smoothing = 0;
  KILN_TRY(begin_classes(nn, c, log_p, kiln_arg_tensor_opt(args, 2)));
  KILN_TRY(read_target(nn, c, log_p, ARG(1)));
  KILN_TRY(index_losses(nn, c));
  return give_loss(nn, c->losses, c->reduction, c->total_weight, &(layout){0},
                   kiln_tensor_dtype(log_p), out);
}
KILN_NN_KERNEL(nll_loss) {
  classes c;
  return nll_loss(nn, args, &c, outs);
}
/* And the sum of the weights of the targets. */
KILN_NN_KERNEL(nll_loss_forward) {
  classes c;
  kiln_tensor *total;
  char *data;
  KILN_TRY(nll_loss(nn, args, &c, outs));
  KILN_TRY(kiln__nn_new(nn, 0, NULL, &total, &data));
  kiln__nn_set(nn, data, 0, c.reduction == REDUCTION_NONE ? 0 : c.total_weight);
  return kiln__nn_give(nn, total, kiln_tensor_dtype(SELF), &outs[1]);
}

/* The target is a probability for each class. */
static kiln_status *probability_losses(kiln__nn *nn, classes *c, kiln_tensor *target) {
  if (!kiln_dtype_is_float(kiln_tensor_dtype(target))) {
    return KILN_OP_FAIL("Expected floating point type for target with class probabilities, got %s",
                        kiln_dtype_ir_name(kiln_tensor_dtype(target)));
  }
  const char *p;
  KILN_TRY(kiln__nn_dense(nn, target, &p));
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t at = 0; at < c->batch * c->inner && !kiln_budget_spent(&left, 4 * c->count); at++) {
    const int64_t b = at / c->inner, i = at % c->inner;
    double loss = 0;
    for (int64_t k = 0; k < c->count; k++) {
      double want = kiln__nn_get(nn, p, (b * c->count + k) * c->inner + i);
      want = want * (1 - c->smoothing) + c->smoothing / (double)c->count;
      loss -= want * log_p_of(nn, c, b, k, i) * weight_of(nn, c, k);
    }
    kiln__nn_set(nn, c->data, at, loss);
  }
  c->total_weight = (double)(c->batch * c->inner);
  return NULL;
}
KILN_NN_KERNEL(cross_entropy_loss) {
  kiln_tensor *input = SELF, *target = ARG(1), *log_p;
  const int rank = kiln_tensor_rank(input);
  classes c = {.reduction = kiln_arg_int(args, 3),
               .ignored = kiln_arg_int(args, 4),
               .smoothing = kiln_arg_float(args, 5)};
  if (!(c.smoothing >= 0 && c.smoothing <= 1)) {
    return KILN_OP_FAIL("label_smoothing must be between 0.0 and 1.0. Got: %g", c.smoothing);
  }
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(input)));
  KILN_TRY(kiln__nn_softmax(nn, input, rank > 1 ? 1 : 0, true, &log_p));
  KILN_TRY(kiln__nn_as(nn, log_p, kiln_tensor_dtype(input), &log_p)); /* log_softmax rounds */
  KILN_TRY(begin_classes(nn, &c, log_p, kiln_arg_tensor_opt(args, 2)));
  if (kiln_tensor_same_sizes(input, target)) {
    if (c.ignored >= 0) {
      return KILN_OP_FAIL("ignore_index is not supported for floating point target");
    }
    KILN_TRY(probability_losses(nn, &c, target));
  } else {
    KILN_TRY(read_target(nn, &c, log_p, target));
    KILN_TRY(index_losses(nn, &c));
  }
  return give_loss(nn, c.losses, c.reduction, c.total_weight, &(layout){0},
                   kiln_tensor_dtype(input), outs);
}
