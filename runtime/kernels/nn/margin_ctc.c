/* margin_ctc.c: losses that look at all classes of a row: margins, connectionist temporal
 * classification. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/composite.h"
#include "runtime/kernels/reduce/reduce.h"

/* -- Margins: self [n, c] or [c] -- */

static bool check_rows(kiln__composite *r, const char *name, const kiln_tensor *t,
                       const kiln_tensor *target, bool by_class) {
  const int rank = kiln_tensor_rank(t), want = by_class ? rank : rank ? rank - 1 : 0;
  const bool fine = rank <= 2 && t->numel > 0 &&
                    (by_class ? kiln_tensor_rank(target) == want && target->numel == t->numel
                              : kiln_tensor_rank(target) <= 1 &&
                                    target->numel == (rank == 2 ? kiln_tensor_sizes(t)[0] : 1));
  if (kiln_tensor_dtype(target) != KILN_DTYPE_I64) {
    FAIL(r, "expected scalar type Long but found %s",
         kiln_dtype_ir_name(kiln_tensor_dtype(target)));
  } else if (!kiln_dtype_is_float(kiln_tensor_dtype(t))) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, kiln_tensor_dtype(t)));
  } else if (!fine) {
    FAIL(r, "%s: Expected non-empty vector or matrix, and inconsistent target size", name);
  }
  return !r->status;
}
/* self, target, p, margin, weight, reduction */
KILN_COMPOSITE(multi_margin_loss) {
  kiln_tensor *t = SELF, *target = ARG(1), *in, *classes, *scales, *out;
  kiln_tensor *weight = kiln_arg_tensor_opt(args, 4);
  const int64_t how = kiln_arg_int(args, 5), p = kiln__number_i64(kiln__number(args[2]));
  const double margin = kiln__number(args[3]).f;
  if (p != 1 && p != 2) FAIL(r, "only p == 1 and p == 2 supported");
  if (!check_rows(r, "multi_margin_loss", t, target, false)) return NULL;
  const int64_t c = kiln__composite_size(t, -1), n = t->numel / c;
  if (weight && weight->numel != c) return FAIL(r, "inconsistent weight size");
  const double *x = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  const int64_t *want = kiln__composite_read(r, target, KILN_DTYPE_I64, &classes);
  const double *w = weight ? kiln__composite_read(r, weight, KILN_DTYPE_F64, &scales) : NULL;
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, kiln_tensor_rank(target),
                                   kiln_tensor_sizes(target), &out);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; !r->status && i < n && !kiln_budget_spent(&left, 4 * c); i++) {
    if (want[i] < 0 || want[i] >= c) return FAIL(r, "target out of range");
    double sums[KILN_REDUCE_LANES] = {0};
    for (int64_t k = 0; k < c; k++) {
      const double z = margin - x[i * c + want[i]] + x[i * c + k];
      if (k == want[i] || !(z > 0)) continue;
      sums[k % KILN_REDUCE_LANES] += (p == 1 ? z : z * z) * (w ? w[want[i]] : 1);
    }
    to[i] = kiln_reduce_fold(sums) / (double)c;
  }
  return kiln__composite_reduced(r, kiln__composite_to(r, out, kiln_tensor_dtype(t)), how);
}
/* Targets are the classes of a row up to the first -1. */
static kiln_tensor *multilabel(kiln__composite *r, const kiln_ivalue *args, kiln_ivalue *outs,
                               bool with_mask) {
  kiln_tensor *t = SELF, *target = ARG(1), *in, *classes, *out, *mask;
  const int64_t how = kiln_arg_int(args, 2);
  if (!check_rows(r, "multilabel_margin_loss", t, target, true)) return NULL;
  const int rank = kiln_tensor_rank(t);
  const int64_t c = kiln__composite_size(t, -1), n = t->numel / c;
  const double *x = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  const int64_t *want = kiln__composite_read(r, target, KILN_DTYPE_I64, &classes);
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, rank == 2 ? 1 : 0, &n, &out);
  double *is = kiln__composite_new(r, KILN_DTYPE_F64, rank, kiln_tensor_sizes(t), &mask);
  if (r->status) return NULL;
  kiln__zero(is, sizeof *is * (size_t)t->numel);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < n && !kiln_budget_spent(&left, 4 * c); i++) {
    const int64_t *row = want + i * c;
    int64_t count = 0;
    for (int64_t k = 0; k < c; k++) {
      if (row[k] < -1 || row[k] >= c) return FAIL(r, "target is out of range");
    }
    while (count < c && row[count] >= 0) is[i * c + row[count++]] = 1;
    to[i] = 0;
    for (int64_t k = 0; k < count; k++) {
      for (int64_t j = 0; j < c && !kiln_budget_spent(&left, 2); j++) {
        const double z = 1 - x[i * c + row[k]] + x[i * c + j];
        if (is[i * c + j] == 0 && z > 0) to[i] += z / (double)c;
      }
    }
  }
  kiln__composite_give(
      r, outs, kiln__composite_to(r, kiln__composite_reduced(r, out, how), kiln_tensor_dtype(t)));
  if (with_mask)
    kiln__composite_give(r, &outs[1], kiln__composite_to(r, mask, kiln_tensor_dtype(t)));
  return NULL;
}
KILN_COMPOSITE(multilabel_margin_loss) { return multilabel(r, args, outs, false); }
KILN_COMPOSITE(multilabel_margin_loss_forward) { return multilabel(r, args, outs, true); }

/* -- Connectionist temporal classification (Graves et al., 2006), in logarithms -- */

static double log_add(double a, double b) {
  const double top = a > b ? a : b, low = a > b ? b : a;
  return top == -INFINITY ? top : top + log1p(exp(low - top));
}
/* -log of the chance of `labels`, each with blanks around, of which 2 * count + 1 are kept. */
static double ctc_row(const double *log_probs, int64_t step, int64_t time, const int64_t *labels,
                      int64_t count, int64_t blank, double *alpha, double *next) {
  const int64_t n = 2 * count + 1;
  if (time == 0) return count == 0 ? 0 : INFINITY;
  for (int64_t s = 0; s < n; s++) alpha[s] = -INFINITY;
  alpha[0] = log_probs[blank];
  if (count) alpha[1] = log_probs[labels[0]];
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t t = 1; t < time; t++) {
    const double *p = log_probs + t * step;
    for (int64_t s = 0; s < n && !kiln_budget_spent(&left, 16); s++) {
      const int64_t label = s % 2 ? labels[s / 2] : blank;
      double sum = alpha[s];
      if (s > 0) sum = log_add(sum, alpha[s - 1]);
      if (s % 2 && s > 1 && labels[s / 2 - 1] != label) sum = log_add(sum, alpha[s - 2]);
      next[s] = sum + p[label];
    }
    memcpy(alpha, next, sizeof *alpha * (size_t)n);
  }
  return -(count ? log_add(alpha[n - 1], alpha[n - 2]) : alpha[0]);
}
/* log_probs [t, n, c] or [t, c], targets [n, s] or [sum of lengths] */
static kiln_tensor *ctc(kiln__composite *r, const kiln_ivalue *args, int64_t blank,
                        const int64_t *in_length, const int64_t *target_length, int64_t rows) {
  kiln_tensor *t = SELF, *targets = ARG(1), *in, *labels, *out, *space;
  const bool batch = kiln_tensor_rank(t) == 3;
  if (!kiln_dtype_is_float(kiln_tensor_dtype(t)) || (!batch && kiln_tensor_rank(t) != 2)) {
    return FAIL(r, "ctc_loss: log_probs must be a float tensor of 2 or 3 dimensions");
  }
  const int64_t n = batch ? kiln_tensor_sizes(t)[1] : 1, c = kiln__composite_size(t, -1);
  const int64_t time = kiln_tensor_sizes(t)[0];
  const bool padded = kiln_tensor_rank(targets) == 2 || !batch;
  const int64_t width = kiln__composite_size(targets, -1);
  int64_t longest = 0, all = 0;
  if (rows != n) FAIL(r, "input_lengths must be of size batch_size");
  if (!batch && kiln_tensor_rank(targets) != 1) {
    FAIL(r, "targets of one sequence must have one dimension");
  }
  if (blank < 0 || blank >= c) FAIL(r, "blank must be in label range");
  for (int64_t i = 0; i < n && !r->status; i++) {
    if (in_length[i] < 0 || in_length[i] > time) {
      FAIL(r, "Expected input_lengths to have value at most %lld, but got value %lld",
           (long long)time, (long long)in_length[i]);
    }
    if (target_length[i] < 0 || target_length[i] > targets->numel ||
        (padded && target_length[i] > width)) {
      FAIL(r, "Expected target_lengths to have value at most %lld, but got value %lld",
           (long long)width, (long long)target_length[i]);
    }
    if (target_length[i] > longest) longest = target_length[i];
    if (!r->status) all += target_length[i];
  }
  if (!r->status &&
      (padded ? batch && kiln_tensor_sizes(targets)[0] != n : targets->numel != all)) {
    FAIL(r, "Expected targets to be of shape [batch, s] or of the sum of their lengths");
  }
  const double *p = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  const int64_t *label = kiln__composite_read(r, targets, KILN_DTYPE_I64, &labels);
  const int64_t size = 2 * (2 * longest + 1);
  double *alpha = kiln__composite_new(r, KILN_DTYPE_F64, 1, &size, &space);
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, batch ? 1 : 0, &n, &out);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < targets->numel && !r->status && !kiln_budget_spent(&left, 2); i++) {
    const bool used = !padded || i % width < target_length[i / width];
    if (used && (label[i] < 0 || label[i] >= c)) {
      FAIL(r, "targets must be in label range");
    }
  }
  if (!kiln__composite_goes_on(r)) return NULL; /* were all labels seen? */
  for (int64_t i = 0, at = 0; i < n; i++) {
    const int64_t *own = label + (padded ? i * width : at);
    to[i] = ctc_row(p + i * c, n * c, in_length[i], own, target_length[i], blank, alpha,
                    alpha + 2 * longest + 1);
    at += target_length[i];
  }
  return out;
}
/* Lengths: int[] or a tensor. */
static const int64_t *read_lengths(kiln__composite *r, kiln_ivalue v, int64_t *count) {
  kiln_tensor *t, *dense;
  if (v.tag == KILN_TAG_TENSOR) {
    *count = v.u.tensor->numel;
    return kiln__composite_read(r, v.u.tensor, KILN_DTYPE_I64, &dense);
  }
  *count = v.u.list->count;
  int64_t *out = kiln__composite_new(r, KILN_DTYPE_I64, 1, count, &t);
  for (int64_t i = 0; out && i < *count; i++) out[i] = v.u.list->items[i].u.i;
  return out;
}
/* log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity */
KILN_COMPOSITE(ctc_loss) {
  int64_t rows = 0, others = 0;
  const int64_t *in = read_lengths(r, args[2], &rows), *of = read_lengths(r, args[3], &others);
  const int64_t how = kiln_arg_int(args, 5);
  if (!r->status && rows != others) FAIL(r, "target_lengths must be of size batch_size");
  if (r->status) return NULL;
  kiln_tensor *t = ctc(r, args, kiln_arg_int(args, 4), in, of, rows);
  if (r->status) return NULL;
  double *loss = NULL;
  void *data = NULL;
  if (!kiln__composite_ok(r, kiln_tensor_writable_data(t, &data))) return NULL;
  loss = data;
  for (int64_t i = 0; i < t->numel; i++) {
    if (kiln_arg_bool(args, 6) && isinf(loss[i])) loss[i] = 0;
    if (how == 1) loss[i] /= (double)(of[i] > 1 ? of[i] : 1);
  }
  return kiln__composite_to(r, kiln__composite_reduced(r, t, how), kiln_tensor_dtype(SELF));
}
