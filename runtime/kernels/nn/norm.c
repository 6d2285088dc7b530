/* norm.c: layer_norm, group_norm, batch_norm, instance_norm.
 *
 * Mean and variance follow reduce/reduce.h: the sum over n elements divided by n, then the sum of
 * squared differences from that mean. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/nn/nn.h"
#include "runtime/kernels/shape/view.h"

/* -- Layer norm -- */

typedef struct layer_norm {
  int64_t rows, n;
  int outer; /* dimensions before the normalised ones */
} layer_norm;

static kiln_status *check_affine(const kiln_tensor *t, const char *name, int rank,
                                 const int64_t *sizes) {
  if (!t || kiln_tensor_has_sizes(t, rank, sizes)) return NULL;
  return KILN_OP_FAIL("Expected %s to be of same shape as normalized_shape, but got %s of shape %s "
                      "and normalized_shape = %s",
                      name, name, kiln__sizes_of(t).text, kiln__sizes(rank, sizes).text);
}
static kiln_status *check_layer_norm(const kiln_ivalue *args, layer_norm *ln) {
  const kiln_tensor *input = SELF;
  int64_t shape[KILN_MAX_RANK];
  int count;
  KILN_TRY(kiln__arg_int_list(args, 1, shape, &count));
  if (count < 1) {
    return KILN_OP_FAIL("Expected normalized_shape to be at least 1-dimensional, i.e., containing "
                        "at least one element, but got normalized_shape = []");
  }
  KILN_TRY(check_affine(kiln_arg_tensor_opt(args, 2), "weight", count, shape));
  KILN_TRY(check_affine(kiln_arg_tensor_opt(args, 3), "bias", count, shape));
  ln->outer = kiln_tensor_rank(input) - count;
  ln->rows = ln->n = 1;
  if (ln->outer < 0 ||
      memcmp(kiln_tensor_sizes(input) + ln->outer, shape, (size_t)count * sizeof *shape) != 0) {
    char want[128];
    kiln_sizes_print(count, shape, want, sizeof want);
    return KILN_OP_FAIL(
        "Given normalized_shape=%s, expected input with shape [*, %s, but got input "
        "of size%s",
        want, want + 1, kiln__sizes_of(input).text);
  }
  for (int d = 0; d < ln->outer; d++) ln->rows *= kiln_tensor_sizes(input)[d];
  for (int d = 0; d < count; d++) ln->n *= shape[d];
  return NULL;
}
typedef struct norm_rows {
  const kiln_row_kernels *kernels;
  char *out, *mean, *rstd; /* the latter two may be NULL */
  const char *in, *weight, *bias;
  int64_t n;
  double eps;
  size_t item;
} norm_rows;

static void run_rows(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const norm_rows *r = data;
  const size_t step = (size_t)r->n * r->item;
  for (int64_t i = begin; i < end; i++) {
    r->kernels->layer_norm(r->out + (size_t)i * step, r->in + (size_t)i * step, r->n, r->weight,
                           r->bias, r->eps, r->mean ? r->mean + (size_t)i * r->item : NULL,
                           r->rstd ? r->rstd + (size_t)i * r->item : NULL);
  }
}

/* Statistics go to outs[1] and outs[2] where there are three. */
static kiln_status *run_layer_norm(kiln__nn *nn, const kiln_ivalue *args, kiln_ivalue *outs,
                                   bool statistics) {
  kiln_tensor *input = SELF, *weight = kiln_arg_tensor_opt(args, 2);
  layer_norm ln;
  KILN_TRY(check_layer_norm(args, &ln));
  KILN_TRY(kiln__nn_check_weight(input, weight));
  KILN_TRY(kiln__nn_check_weight(input, kiln_arg_tensor_opt(args, 3)));
  KILN_TRY(kiln__nn_begin(nn, kiln_tensor_dtype(input)));
  const int rank = kiln_tensor_rank(input);
  int64_t sizes[KILN_MAX_RANK];
  for (int d = 0; d < rank; d++) sizes[d] = d < ln.outer ? kiln_tensor_sizes(input)[d] : 1;
  const char *in, *w, *b;
  char *out, *mean = NULL, *rstd = NULL;
  kiln_tensor *result, *mean_tensor = NULL, *rstd_tensor = NULL;
  KILN_TRY(kiln__nn_dense(nn, input, &in));
  KILN_TRY(kiln__nn_dense(nn, weight, &w));
  KILN_TRY(kiln__nn_dense(nn, kiln_arg_tensor_opt(args, 3), &b));
  KILN_TRY(kiln__nn_new(nn, rank, kiln_tensor_sizes(input), &result, &out));
  if (statistics) {
    KILN_TRY(kiln__nn_new(nn, rank, sizes, &mean_tensor, &mean));
    KILN_TRY(kiln__nn_new(nn, rank, sizes, &rstd_tensor, &rstd));
  }
  norm_rows all = {.kernels = nn->dtype == KILN_DTYPE_F64 ? nn->call->dispatch->rows_f64
                                                          : nn->call->dispatch->rows_f32,
                   .out = out,
                   .mean = mean,
                   .rstd = rstd,
                   .in = in,
                   .weight = w,
                   .bias = b,
                   .n = ln.n,
                   .eps = kiln_arg_float(args, 4),
                   .item = nn->item};
  const int64_t grain = ln.n > 0 ? (KILN_PW_GRAIN + ln.n - 1) / ln.n : KILN_PW_GRAIN;
  kiln_pool_for(nn->call->pool, ln.rows, grain, run_rows, &all);
  if (ln.n == 0 && mean)
    memset(mean, 0, (size_t)ln.rows * nn->item); /* PyTorch's mean of nothing */
  KILN_TRY(kiln__nn_give(nn, result, kiln_tensor_dtype(input), &outs[0]));
  if (!statistics) return NULL;
  const kiln_dtype dtype = kiln_tensor_dtype(weight ? weight : input);
  KILN_TRY(kiln__nn_give(nn, mean_tensor, dtype, &outs[1]));
  return kiln__nn_give(nn, rstd_tensor, dtype, &outs[2]);
}
KILN_NN_KERNEL(layer_norm) { return run_layer_norm(nn, args, outs, false); }
KILN_NN_KERNEL(native_layer_norm) { return run_layer_norm(nn, args, outs, true); }
