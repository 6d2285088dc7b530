/* embedding.c: embedding, one_hot, bags of embeddings. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/index/index.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/nn/nn.h"
#include "runtime/kernels/composite.h"

/* -- Embedding -- */

KILN_NN_KERNEL(embedding) {
  kiln_tensor *weight = SELF, *indices = ARG(1), *dense;
  const kiln_dtype dtype = kiln_tensor_dtype(weight), index_dtype = kiln_tensor_dtype(indices);
  if (kiln_tensor_rank(weight) != 2) return KILN_OP_FAIL("'weight' must be 2-D");
  if (index_dtype != KILN_DTYPE_I64 && index_dtype != KILN_DTYPE_I32) {
    return KILN_OP_FAIL(
        "Expected tensor for argument #1 'indices' to have one of the following "
        "scalar types: Long, Int; but got torch.%sTensor instead (while checking arguments for "
        "embedding)",
        kiln_dtype_ir_name(index_dtype));
  }
  const int rank = kiln_tensor_rank(indices);
  if (rank + 1 > KILN_MAX_RANK) return KILN_OP_FAIL("embedding: indices have too many dimensions");
  KILN_TRY(kiln__nn_as(nn, indices, KILN_DTYPE_I64, &dense));
  const int64_t *index = kiln_tensor_data(dense), *ws = kiln_tensor_sizes(weight);
  const int64_t *strides = kiln_tensor_strides(weight), n = ws[1];
  int64_t sizes[KILN_MAX_RANK];
  for (int d = 0; d < rank; d++) sizes[d] = kiln_tensor_sizes(indices)[d];
  sizes[rank] = n;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < indices->numel && !kiln_budget_spent(&left, 1); i++) {
    if (index[i] < 0 || index[i] >= ws[0]) return KILN_OP_FAIL("index out of range in self");
  }
  kiln_tensor *result;
  KILN_TRY(kiln_budget_check(&nn->call->budget, 0)); /* were all indices seen? */
  void *data;
  KILN_TRY(kiln__nn_make(nn, dtype, rank + 1, sizes, &result, &data));
  const size_t item = kiln_tensor_item_size(weight);
  const char *from = kiln_tensor_data(weight);
  if (strides[1] == 1) {
    kiln__take_blocks(data, from, index, indices->numel, (size_t)strides[0] * item,
                      (size_t)n * item);
  } else {
    char *to = data;
    for (int64_t i = 0; i < indices->numel && !kiln_budget_spent(&left, n); i++) {
      const char *row = from + (size_t)(index[i] * strides[0]) * item;
      for (int64_t k = 0; k < n; k++, to += item) {
        memcpy(to, row + (size_t)(k * strides[1]) * item, item);
      }
    }
  }
  return kiln__nn_give(nn, result, dtype, outs);
}

/* -- One hot -- */

KILN_NN_KERNEL(one_hot) {
  kiln_tensor *t = SELF, *dense, *result;
  int64_t classes = kiln_arg_int(args, 1), least = 0, greatest = -1, sizes[KILN_MAX_RANK];
  const int rank = kiln_tensor_rank(t);
  if (kiln_tensor_dtype(t) != KILN_DTYPE_I64) {
    return KILN_OP_FAIL("one_hot is only applicable to index tensor.");
  }
  if (rank + 1 > KILN_MAX_RANK) return KILN_OP_FAIL("one_hot: too many dimensions");
  KILN_TRY(kiln__nn_as(nn, t, KILN_DTYPE_I64, &dense));
  const int64_t *index = kiln_tensor_data(dense);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < t->numel && !kiln_budget_spent(&left, 1); i++) {
    if (index[i] < least) least = index[i];
    if (index[i] > greatest) greatest = index[i];
  }
  KILN_TRY(kiln_budget_check(&nn->call->budget, 0)); /* were all of them seen? */
  if (t->numel == 0 && classes <= 0) {
    return KILN_OP_FAIL("Can not infer total number of classes from empty tensor.");
  }
  if (least < 0) return KILN_OP_FAIL("Class values must be non-negative.");
  if (classes == -1) {
    if (!kiln_checked_add_i64(greatest, 1, &classes)) {
      return KILN_OP_FAIL("Class values must be smaller than num_classes.");
    }
  } else {
    if (classes <= 0) return KILN_OP_FAIL("num_classes should be positive");
    if (greatest >= classes) {
      return KILN_OP_FAIL("Class values must be smaller than num_classes.");
    }
  }
  for (int d = 0; d < rank; d++) sizes[d] = kiln_tensor_sizes(t)[d];
  sizes[rank] = classes;
  void *data;
  KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_I64, rank + 1, sizes, &result, &data));
  kiln__zero(data, (size_t)result->numel * sizeof(int64_t));
  const int64_t work = classes < 512 ? classes : 512; /* a page of its own for each of many */
  for (int64_t i = 0; i < t->numel && !kiln_budget_spent(&left, work); i++) {
    ((int64_t *)data)[i * classes + index[i]] = 1;
  }
  return kiln__nn_give(nn, result, KILN_DTYPE_I64, outs);
}

/* -- Bags of embeddings -- */

/* Rows of `weight` whose norm is above max_norm are scaled to it; each once, in place. */
KILN_COMPOSITE(embedding_renorm_) {
  kiln_tensor *t = SELF, *indices = ARG(1), *at, *in, *seen_tensor;
  const double most = kiln_arg_float(args, 2), power = kiln_arg_float(args, 3);
  if (kiln_tensor_rank(t) != 2 || !kiln_dtype_is_float(kiln_tensor_dtype(t))) {
    return FAIL(r, "embedding_renorm_: self must be a matrix of floats");
  }
  const int64_t rows = kiln_tensor_sizes(t)[0], n = kiln_tensor_sizes(t)[1];
  const int64_t *index = kiln__composite_read(r, indices, KILN_DTYPE_I64, &at);
  uint8_t *seen = kiln__composite_new(r, KILN_DTYPE_BOOL, 1, &rows, &seen_tensor);
  if (r->status) return NULL;
  kiln__zero(seen, (size_t)rows);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < indices->numel && !kiln_budget_spent(&left, 1); i++)
    if (index[i] < 0 || index[i] >= rows) return FAIL(r, "index out of range in self");
  kiln_tensor *wanted = kiln__composite_reshape(r, indices, 1, &indices->numel);
  wanted = KILN_STEP(r, index_select, T(t), I(0), T(wanted));
  const double *x = r->status ? NULL : kiln__composite_read(r, wanted, KILN_DTYPE_F64, &in);
  for (int64_t i = 0; i < indices->numel && !r->status && !kiln_budget_spent(&left, 4 + n); i++) {
    if (seen[index[i]]++) continue;
    double norm = 0;
    for (int64_t k = 0; k < n; k++) {
      const double a = fabs(x[i * n + k]);
      norm = isinf(power) ? fmax(norm, a) : norm + (power == 2 ? a * a : pow(a, power));
    }
    if (!isinf(power)) norm = power == 2 ? sqrt(norm) : pow(norm, 1 / power);
    if (!(norm > most)) continue;
    kiln_tensor *row = KILN_STEP(r, select, T(t), I(0), I(index[i]));
    kiln_tensor *factor = kiln__composite_operand(r, F(most / (norm + 1e-7)), kiln_tensor_dtype(t));
    kiln_tensor *scaled = KILN_STEP(r, mul, T(row), T(factor));
    KILN_STEP(r, copy_, T(row), T(scaled), B(false));
  }
  return t;
}
enum { BAG_SUM, BAG_MEAN, BAG_MAX };
/* Rows of a table of which few may be wanted: as they lie, or those of the indices, one by one. */
typedef struct table {
  const void *rows;
  bool wide;          /* of double, and not of float */
  bool is_of_indices; /* row i is that of index i */
} table;
static void add_row(const table *t, int64_t at, int64_t n, double scale, double *restrict to) {
  if (t->wide) {
    const double *row = (const double *)t->rows + at * n;
    for (int64_t k = 0; k < n; k++) to[k] += row[k] * scale;
  } else {
    const float *row = (const float *)t->rows + at * n;
    for (int64_t k = 0; k < n; k++) to[k] += (double)row[k] * scale;
  }
}
static double element(const table *t, int64_t at) {
  return t->wide ? ((const double *)t->rows)[at] : (double)((const float *)t->rows)[at];
}
/* One bag: [begin, end) of the indices; the number of rows that count. */
static int64_t one_bag(const table *t, const double *scale, const int64_t *index, int64_t begin,
                       int64_t end, int64_t n, int64_t mode, int64_t skip, double *to,
                       int64_t *places) {
  int64_t count = 0;
  for (int64_t k = 0; k < n; k++) to[k] = 0;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = begin; i < end && !kiln_budget_spent(&left, n); i++) {
    if (index[i] == skip) continue;
    const int64_t at = t->is_of_indices ? i : index[i];
    if (mode != BAG_MAX) add_row(t, at, n, scale ? scale[i] : 1, to);
    for (int64_t k = 0; mode == BAG_MAX && k < n; k++) {
      const double x = element(t, at * n + k);
      if (count > 0 && !(x > to[k])) continue;
      to[k] = x;
      if (places) places[k] = index[i];
    }
    count++;
  }
  for (int64_t k = 0; mode == BAG_MEAN && count && k < n; k++) to[k] /= (double)count;
  return count;
}
/* A table of floats that lies row by row is read where it lies; of others, the rows of the indices,
 * which are checked: its size is no matter. */
static table read_table(kiln__composite *r, kiln_tensor *weight, kiln_tensor *indices) {
  const kiln_dtype dtype = kiln_tensor_dtype(weight);
  const bool wide = dtype != KILN_DTYPE_F32;
  kiln_tensor *in = NULL;
  if ((!wide || dtype == KILN_DTYPE_F64) && kiln_tensor_is_contiguous(weight))
    return (table){.rows = kiln_tensor_data(weight), .wide = wide};
  kiln_tensor *rows = KILN_STEP(r, index_select, T(weight), I(0), T(indices));
  if (r->status) return (table){0};
  const void *data = kiln__composite_read(r, rows, wide ? KILN_DTYPE_F64 : KILN_DTYPE_F32, &in);
  return (table){.rows = data, .wide = wide, .is_of_indices = true};
}
/* weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
 * include_last_offset; an index that is `skip` counts for nothing */
static kiln_tensor *bag(kiln__composite *r, const kiln_ivalue *args, int64_t skip,
                        kiln_ivalue *outs) {
  kiln_tensor *weight = SELF, *indices = ARG(1), *at, *starts, *scales;
  kiln_tensor *offsets = ARG(2), *samples = kiln_arg_tensor_opt(args, 6);
  kiln_tensor *result[4];
  const int64_t mode = kiln_arg_int(args, 4);
  const bool last = kiln_arg_bool(args, 7);
  const kiln_dtype dtype = kiln_tensor_dtype(weight);
  if (kiln_tensor_rank(weight) != 2 || kiln_tensor_rank(indices) != 1 ||
      kiln_tensor_rank(offsets) != 1 || !kiln_dtype_is_float(dtype)) {
    return FAIL(r, "embedding_bag: expected a matrix of floats and vectors of indices and offsets");
  }
  const int64_t rows = kiln_tensor_sizes(weight)[0], n = kiln_tensor_sizes(weight)[1];
  const int64_t bags = offsets->numel - last, count = indices->numel;
  if (samples && (mode != BAG_SUM || samples->numel != count)) {
    FAIL(r, "embedding_bag: per_sample_weights was not None, which is only supported "
            "for mode='sum' and with the shape of the input");
  }
  if (bags < 0) FAIL(r, "include_last_offset: number of offset should be at least 1");
  const int64_t *index = kiln__composite_read(r, indices, KILN_DTYPE_I64, &at);
  const int64_t *start = kiln__composite_read(r, offsets, KILN_DTYPE_I64, &starts);
  const double *scale = samples ? kiln__composite_read(r, samples, KILN_DTYPE_F64, &scales) : NULL;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < count && !r->status && !kiln_budget_spent(&left, 1); i++) {
    if (index[i] >= 0 && index[i] < rows) continue;
    FAIL(r,
         "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to "
         "be %lld",
         (long long)index[i]);
  }
  for (int64_t i = 0; i < offsets->numel && !r->status && !kiln_budget_spent(&left, 1); i++) {
    if (i == 0 ? start[i] == 0 : start[i] >= start[i - 1] && start[i] <= count) continue;
    FAIL(r, i == 0 ? "offsets[0] has to be 0, i.e., the first sequence in the "
                     "mini-batch has to start from position 0"
                   : "offsets must ascend, up to the length of the indices");
  }
  const int64_t sizes[] = {bags, n};
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, 2, sizes, &result[0]);
  int64_t *of = kiln__composite_new(r, KILN_DTYPE_I64, 1, &count, &result[1]);
  int64_t *size = kiln__composite_new(r, KILN_DTYPE_I64, 1, &bags, &result[2]);
  int64_t *places = kiln__composite_new(r, KILN_DTYPE_I64, mode == BAG_MAX ? 2 : 1,
                                        mode == BAG_MAX ? sizes : &bags, &result[3]);
  const table t = read_table(r, weight, indices);
  if (r->status) return NULL;
  if (of) kiln__zero(of, sizeof *of * (size_t)count);
  if (places) kiln__zero(places, sizeof *places * (size_t)result[3]->numel);
  for (int64_t b = 0; b < bags && !kiln_budget_spent(&left, 4); b++) {
    const int64_t end = b + 1 < offsets->numel ? start[b + 1] : count;
    KILN_ASSERT(of || start[b] == end);
    for (int64_t i = start[b]; i < end && !kiln_budget_spent(&left, 1); i++) of[i] = b;
    size[b] = one_bag(&t, scale, index, start[b], end, n, mode, skip, to + b * n,
                      mode == BAG_MAX ? places + b * n : NULL);
  }
  kiln__composite_give(r, &outs[0], kiln__composite_to(r, result[0], dtype));
  for (int i = 1; i < 4; i++) kiln__composite_give(r, &outs[i], result[i]);
  return NULL;
}
KILN_COMPOSITE(embedding_bag) { return bag(r, args, -1, outs); }
KILN_COMPOSITE(_embedding_bag) { return bag(r, args, kiln_arg_int(args, 8), outs); }
/* A negative padding_idx counts from the end. */
KILN_COMPOSITE(embedding_bag_padding_idx) {
  int64_t skip = kiln_arg_int_or(args, 8, -1);
  if (args[8].tag == KILN_TAG_INT && skip < 0) skip += kiln__composite_size(SELF, 0);
  return bag(r, args, skip, outs);
}
