/* attention.c: scaled_dot_product_attention, _native_multi_head_attention and the encoder layer.
 *
 * One head at a time, in strips of rows: scores = scale * Q Kt, mask, softmax, P V. The scratch is
 * a strip of scores (STRIP_BYTES, or one row), so that it stays in a core's cache; where the
 * weights are wanted, the strip is a place in them. Q, K and V are read where they lie. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/pointwise/iter.h"
#include "runtime/kernels/nn/nn.h"
#include "runtime/kernels/sparse/nested.h"
#include "runtime/kernels/composite.h"
#include "runtime/kernels/shape/view.h"

enum { STRIP_BYTES = 256 << 10, LEAST_STRIP = 16 };

/* Tensors of the compute type; all but `mask` have the batch dimensions `batch`, then rows and
 * columns. Strides of broadcast dimensions are 0. */
typedef struct heads {
  int batch_rank;
  int64_t batch[KILN_MAX_RANK];
  int64_t rows, keys, depth, width; /* L, S, E, Ev */
  kiln_tensor *q, *k, *v;
  kiln_tensor *mask;    /* NULL, or of the compute type (added) or bool */
  bool keep_where_true; /* of a bool mask; else true hides */
  bool causal, safe;    /* safe: a row without keys gives 0, not NaN */
  double scale, drop;
  kiln_random *random;  /* locked, where drop > 0 */
  kiln_tensor *out;     /* rows, width */
  kiln_tensor *weights; /* NULL or rows, keys */
} heads;

/* Elements to the batch'th matrix of t, whose batch dimensions are those of h. */
static int64_t batch_offset(const heads *h, const kiln_tensor *t, int64_t batch) {
  return kiln__offset_of(h->batch_rank, h->batch, kiln_tensor_strides(t), batch);
}
static const char *at_batch(const heads *h, const kiln_tensor *t, int64_t batch) {
  return (const char *)kiln_tensor_data(t) +
         (size_t)batch_offset(h, t, batch) * kiln_tensor_item_size(t);
}
static int64_t row_stride(const heads *h, const kiln_tensor *t) {
  return kiln_tensor_strides(t)[h->batch_rank];
}
static int64_t column_stride(const heads *h, const kiln_tensor *t) {
  return kiln_tensor_strides(t)[h->batch_rank + 1];
}

/* Hides or adds to the scores of one row. */
static void mask_row(const kiln__nn *nn, const heads *h, const char *mask, char *scores,
                     int64_t row) {
  if (mask) {
    const int64_t step = column_stride(h, h->mask);
    const size_t item = kiln_tensor_item_size(h->mask);
    const char *m = mask + (size_t)(row * row_stride(h, h->mask)) * item;
    if (kiln_tensor_dtype(h->mask) == KILN_DTYPE_BOOL) {
      for (int64_t j = 0; j < h->keys; j++) {
        if ((m[j * step] != 0) != h->keep_where_true) kiln__nn_set(nn, scores, j, -INFINITY);
      }
    } else if (step == 0 || step == 1) {
      kiln__nn_loop2(nn, KILN_PW_add, scores, scores, m, step == 1, h->keys);
    } else {
      for (int64_t j = 0; j < h->keys; j++) {
        const double sum = kiln__nn_get(nn, scores, j) + kiln__nn_get(nn, m, j * step);
        kiln__nn_set(nn, scores, j, sum);
      }
    }
  }
  for (int64_t j = row + 1; h->causal && j < h->keys; j++) kiln__nn_set(nn, scores, j, -INFINITY);
}
static void softmax_row(const kiln__nn *nn, const heads *h, char *row) {
  if ((h->mask || h->causal) && h->safe && kiln__nn_get(nn, row, 0) == -INFINITY &&
      kiln__nn_reduce(nn, KILN_REDUCE_MAX, row, h->keys, 0) == -INFINITY) {
    memset(row, 0, (size_t)h->keys * nn->item);
    return;
  }
  (nn->dtype == KILN_DTYPE_F64 ? nn->call->dispatch->rows_f64 : nn->call->dispatch->rows_f32)
      ->softmax(row, row, h->keys);
}
static void drop_row(const kiln__nn *nn, const heads *h, char *row) {
  const double scale = nn->dtype == KILN_DTYPE_F64 ? 1 / (1 - h->drop) : 1 / (float)(1 - h->drop);
  for (int64_t j = 0; j < h->keys; j++) {
    const bool stays = h->drop < 1 && kiln_random_f64(h->random) < 1 - h->drop;
    kiln__nn_set(nn, row, j, stays ? kiln__nn_get(nn, row, j) * scale : 0);
  }
}

/* Rows [from, from + count) of one head; `scores` is row-major with h->keys columns. */
static kiln_status *attend_strip(kiln__nn *nn, const heads *h, int64_t batch, int64_t from,
                                 int64_t count, char *scores) {
  const char *mask = h->mask ? at_batch(h, h->mask, batch) : NULL;
  kiln_gemm_args gemm = {
      .m = count,
      .n = h->keys,
      .k = h->depth,
      .a = at_batch(h, h->q, batch) + (size_t)(from * row_stride(h, h->q)) * nn->item,
      .b = at_batch(h, h->k, batch),
      .c = scores,
      .a_row = row_stride(h, h->q),
      .a_col = column_stride(h, h->q),
      .b_row = column_stride(h, h->k),
      .b_col = row_stride(h, h->k),
      .c_row = h->keys,
      .c_col = 1,
      .alpha = h->scale};
  if (h->depth == 0) {
    memset(scores, 0, (size_t)(count * h->keys) * nn->item);
  } else {
    KILN_TRY(kiln__nn_gemm(nn, &gemm));
  }
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < count && !kiln_budget_spent(&left, h->keys); i++) {
    char *row = scores + (size_t)(i * h->keys) * nn->item;
    mask_row(nn, h, mask, row, from + i);
    softmax_row(nn, h, row);
    if (h->drop > 0) drop_row(nn, h, row);
  }
  if (h->width == 0) return NULL;
  gemm = (kiln_gemm_args){.m = count,
                          .n = h->width,
                          .k = h->keys,
                          .a = scores,
                          .b = at_batch(h, h->v, batch),
                          .c = (char *)(uintptr_t)at_batch(h, h->out, batch) +
                               (size_t)(from * row_stride(h, h->out)) * nn->item,
                          .a_row = h->keys,
                          .a_col = 1,
                          .b_row = row_stride(h, h->v),
                          .b_col = column_stride(h, h->v),
                          .c_row = row_stride(h, h->out),
                          .c_col = column_stride(h, h->out),
                          .alpha = 1};
  return kiln__nn_gemm(nn, &gemm);
}
static kiln_status *attend(kiln__nn *nn, const heads *h) {
  int64_t batches = 1, strip = h->rows;
  for (int d = 0; d < h->batch_rank; d++) batches *= h->batch[d];
  if (batches == 0 || h->rows == 0) return NULL;
  if (h->keys == 0) return kiln_pw_fill(nn->call, h->out, kiln__number_int(0));
  const int64_t fits = STRIP_BYTES / (h->keys * (int64_t)nn->item);
  if (strip > fits) strip = fits < LEAST_STRIP ? LEAST_STRIP : fits;
  if (strip > h->rows) strip = h->rows;
  char *scratch = NULL;
  kiln_tensor *block;
  if (!h->weights) {
    KILN_TRY(kiln__nn_new(nn, 2, (const int64_t[]){strip, h->keys}, &block, &scratch));
  }
  for (int64_t b = 0; b < batches; b++) {
    for (int64_t from = 0; from < h->rows && !kiln_budget_leaves_out(); from += strip) {
      const int64_t count = h->rows - from < strip ? h->rows - from : strip;
      char *scores = h->weights ? (char *)(uintptr_t)at_batch(h, h->weights, b) +
                                      (size_t)(from * h->keys) * nn->item
                                : scratch;
      KILN_TRY(attend_strip(nn, h, b, from, count, scores));
    }
    KILN_TRY(kiln_call_check(nn->call, 1));
  }
  return NULL;
}

/* -- scaled_dot_product_attention -- */

/* t, in the compute type, with the batch dimensions of h in front of its own last two. */
static kiln_status *expand_heads(kiln__nn *nn, const heads *h, kiln_tensor *t, int64_t rows,
                                 int64_t columns, kiln_dtype dtype, kiln_tensor **out) {
  int64_t sizes[KILN_MAX_RANK];
  for (int d = 0; d < h->batch_rank; d++) sizes[d] = h->batch[d];
  sizes[h->batch_rank] = rows;
  sizes[h->batch_rank + 1] = columns;
  if (kiln_tensor_dtype(t) != dtype) {
    KILN_TRY(kiln__nn_as(nn, t, dtype, &t));
  }
  KILN_TRY(kiln__expand(nn->call, t, h->batch_rank + 2, sizes, out));
  return kiln__nn_keep(nn, *out);
}
static kiln_status *check_operands(const kiln_tensor *q, const kiln_tensor *k,
                                   const kiln_tensor *v) {
  if (kiln_tensor_dtype(q) != kiln_tensor_dtype(k) ||
      kiln_tensor_dtype(q) != kiln_tensor_dtype(v)) {
    return KILN_OP_FAIL("Expected query, key, and value to have the same dtype, but got "
                        "query.dtype: %s key.dtype: %s and value.dtype: %s instead.",
                        kiln_dtype_short_name(kiln_tensor_dtype(q)),
                        kiln_dtype_short_name(kiln_tensor_dtype(k)),
                        kiln_dtype_short_name(kiln_tensor_dtype(v)));
  }
  if (kiln_tensor_rank(q) < 2 || kiln_tensor_rank(k) < 2 || kiln_tensor_rank(v) < 2) {
    return KILN_OP_FAIL("Expected query, key, and value to all be  at least 2 dimensional, but got "
                        "query.dim: %d, key.dim: %d and value.dim: %d instead.",
                        kiln_tensor_rank(q), kiln_tensor_rank(k), kiln_tensor_rank(v));
  }
  return NULL;
}
/* Each head of t `times` in turn, as a view where one is possible. */
static kiln_status *repeat_heads(kiln__nn *nn, kiln_tensor **t, int64_t heads_wanted) {
  const int rank = kiln_tensor_rank(*t);
  int64_t sizes[KILN_MAX_RANK];
  kiln_tensor *wide, *flat;
  const int64_t have = rank >= 3 ? kiln_tensor_sizes(*t)[rank - 3] : 0;
  if (have == heads_wanted) return NULL;
  if (rank + 1 > KILN_MAX_RANK || have == 0 || heads_wanted % have != 0) {
    return KILN_OP_FAIL(
        "Number of heads in key and value must divide the number of heads in query");
  }
  KILN_TRY(kiln__unsqueeze(nn->call, *t, rank - 2, &wide));
  KILN_TRY(kiln__nn_keep(nn, wide));
  memcpy(sizes, kiln_tensor_sizes(wide), sizeof(int64_t) * (size_t)(rank + 1));
  sizes[rank - 2] = heads_wanted / have;
  KILN_TRY(kiln__expand(nn->call, wide, rank + 1, sizes, &wide));
  KILN_TRY(kiln__nn_keep(nn, wide));
  memcpy(sizes, kiln_tensor_sizes(*t), sizeof(int64_t) * (size_t)rank);
  sizes[rank - 3] = heads_wanted;
  KILN_TRY(kiln__reshape(nn->call, wide, rank, sizes, &flat));
  KILN_TRY(kiln__nn_keep(nn, flat));
  *t = flat;
  return NULL;
}
/* Sizes of the call, from q, k and v. */
static kiln_status *set_sizes(heads *h, const kiln_tensor *q, const kiln_tensor *k,
                              const kiln_tensor *v) {
  const int rq = kiln_tensor_rank(q), rk = kiln_tensor_rank(k), rv = kiln_tensor_rank(v);
  int64_t both[KILN_MAX_RANK];
  int both_rank;
  h->rows = kiln_tensor_sizes(q)[rq - 2];
  h->depth = kiln_tensor_sizes(q)[rq - 1];
  h->keys = kiln_tensor_sizes(k)[rk - 2];
  h->width = kiln_tensor_sizes(v)[rv - 1];
  if (kiln_tensor_sizes(k)[rk - 1] != h->depth || kiln_tensor_sizes(v)[rv - 2] != h->keys) {
    return KILN_OP_FAIL(
        "scaled_dot_product_attention: shapes do not fit: query %s, key %s, value %s",
        kiln__sizes_of(q).text, kiln__sizes_of(k).text, kiln__sizes_of(v).text);
  }
  KILN_TRY(
      kiln_broadcast(rq - 2, kiln_tensor_sizes(q), rk - 2, kiln_tensor_sizes(k), &both_rank, both));
  return kiln_broadcast(both_rank, both, rv - 2, kiln_tensor_sizes(v), &h->batch_rank, h->batch);
}
/* The mask's batch dimensions may be more than those of q, k and v. */
static kiln_status *add_mask(heads *h, const kiln_tensor *mask, kiln_dtype dtype) {
  const int rank = kiln_tensor_rank(mask);
  int64_t sizes[KILN_MAX_RANK];
  int out_rank;
  if (kiln_tensor_dtype(mask) != KILN_DTYPE_BOOL && kiln_tensor_dtype(mask) != dtype) {
    return KILN_OP_FAIL("Expected attn_mask dtype to be bool or float or to match query dtype, but "
                        "got attn_mask.dtype: %s and  query.dtype: %s instead.",
                        kiln_dtype_short_name(kiln_tensor_dtype(mask)),
                        kiln_dtype_short_name(dtype));
  }
  if (rank <= 2) return NULL;
  KILN_TRY(
      kiln_broadcast(h->batch_rank, h->batch, rank - 2, kiln_tensor_sizes(mask), &out_rank, sizes));
  h->batch_rank = out_rank;
  memcpy(h->batch, sizes, sizeof(int64_t) * (size_t)out_rank);
  return NULL;
}
/* A result whose heads lie as they are joined later: [B, L, H, E] in memory. */
static kiln_status *make_joined(kiln__nn *nn, heads *h, kiln_tensor **out_base) {
  const int rank = h->batch_rank + 2;
  int64_t sizes[KILN_MAX_RANK];
  char *data;
  const bool turned = h->batch_rank == 2;
  for (int d = 0; d < h->batch_rank; d++) sizes[d] = h->batch[d];
  sizes[rank - 2] = h->rows;
  sizes[rank - 1] = h->width;
  if (turned) {
    sizes[1] = h->rows;
    sizes[2] = h->batch[1];
  }
  KILN_TRY(kiln__nn_new(nn, rank, sizes, out_base, &data));
  if (!turned) {
    h->out = *out_base;
    return NULL;
  }
  KILN_TRY(kiln__transpose(nn->call, *out_base, 1, 2, &h->out));
  return kiln__nn_keep(nn, h->out);
}
static kiln_status *attend_and_drop(kiln__nn *nn, heads *h) {
  if (!(h->drop > 0)) return attend(nn, h);
  KILN_TRY(kiln_call_random(nn->call, &h->random));
  pthread_mutex_lock(&h->random->lock);
  kiln_status *status = attend(nn, h);
  pthread_mutex_unlock(&h->random->lock);
  return status;
}
KILN_NN_KERNEL(scaled_dot_product_attention) {
  kiln_tensor *q = SELF, *k = ARG(1), *base, *result;
  kiln_tensor *v = ARG(2), *mask = kiln_arg_tensor_opt(args, 3);
  heads h = {.causal = kiln_arg_bool(args, 5), .drop = kiln_arg_float(args, 4), .safe = true};
  const kiln_dtype dtype = kiln_tensor_dtype(q);
  KILN_TRY(check_operands(q, k, v));
  if (mask && h.causal) {
    return KILN_OP_FAIL("_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                        "is_causal=True");
  }
  KILN_TRY(kiln__nn_begin(nn, dtype));
  if (kiln_arg_bool(args, 7) && kiln_tensor_rank(q) >= 3) {
    const int64_t wanted = kiln_tensor_sizes(q)[kiln_tensor_rank(q) - 3];
    KILN_TRY(repeat_heads(nn, &k, wanted));
    KILN_TRY(repeat_heads(nn, &v, wanted));
  }
  KILN_TRY(set_sizes(&h, q, k, v));
  if (mask) KILN_TRY(add_mask(&h, mask, dtype));
  if (h.batch_rank + 2 > KILN_MAX_RANK) return KILN_OP_FAIL("too many dimensions");
  h.scale = kiln_arg_is_none(args, 6) ? 1 / sqrt((double)h.depth) : kiln_arg_float(args, 6);
  KILN_TRY(expand_heads(nn, &h, q, h.rows, h.depth, nn->dtype, &h.q));
  KILN_TRY(expand_heads(nn, &h, k, h.keys, h.depth, nn->dtype, &h.k));
  KILN_TRY(expand_heads(nn, &h, v, h.keys, h.width, nn->dtype, &h.v));
  if (mask) {
    const bool is_bool = kiln_tensor_dtype(mask) == KILN_DTYPE_BOOL;
    h.keep_where_true = true;
    KILN_TRY(
        expand_heads(nn, &h, mask, h.rows, h.keys, is_bool ? KILN_DTYPE_BOOL : nn->dtype, &h.mask));
  }
  KILN_TRY(make_joined(nn, &h, &base));
  KILN_TRY(attend_and_drop(nn, &h));
  if (dtype == nn->dtype) return kiln__finish(nn->call, outs, kiln_tensor_retain(h.out));
  KILN_TRY(kiln__as_dtype(nn->call, base, dtype, &result));
  if (h.batch_rank == 2) {
    KILN_TRY(kiln__nn_keep(nn, result));
    KILN_TRY(kiln__transpose(nn->call, result, 1, 2, &result));
  }
  return kiln__finish(nn->call, outs, result);
}

/* -- Multi-head attention -- */

/* Three [B, T, D] projections of the query, key and value. */
static void project(kiln__composite *r, const kiln_ivalue *args, int64_t dim, kiln_tensor *out[3]) {
  kiln_tensor *q = SELF, *k = ARG(1);
  kiln_tensor *v = ARG(2), *w = ARG(5);
  kiln_tensor *b = ARG(6), *from[3] = {q, k, v};
  if (q == k && k == v) {
    kiln_tensor *all = KILN_STEP(r, linear, T(q), T(w), T(b));
    for (int i = 0; i < 3; i++) out[i] = kiln__composite_narrow(r, all, 2, i * dim, dim);
    return;
  }
  for (int i = 0; i < 3; i++) {
    kiln_tensor *part = kiln__composite_narrow(r, w, 0, i * dim, dim);
    kiln_tensor *bias = kiln__composite_narrow(r, b, 0, i * dim, dim);
    out[i] = KILN_STEP(r, linear, T(from[i]), T(part), T(bias));
  }
}
static kiln_tensor *split_heads(kiln__composite *r, kiln_tensor *t, int64_t count) {
  const int64_t b = kiln__composite_size(t, 0), n = kiln__composite_size(t, 1);
  const int64_t sizes[] = {b, n, count, kiln__composite_size(t, 2) / count};
  return KILN_STEP(r, transpose, T(kiln__composite_reshape(r, t, 4, sizes)), I(1), I(2));
}
/* As [B or 1, H or 1, L or 1, S]: type 0 is (L, S), 1 is (B, S), 2 has all four. */
static kiln_tensor *shape_mask(kiln__composite *r, kiln_tensor *mask, bool per_batch) {
  if (kiln__composite_rank(mask) != 2 || !per_batch) return mask;
  const int64_t sizes[] = {kiln__composite_size(mask, 0), 1, 1, kiln__composite_size(mask, 1)};
  return kiln__composite_reshape(r, mask, 4, sizes);
}
static kiln_status *run_heads(kiln__nn *nn, kiln_tensor *const qkv[3], kiln_tensor *mask,
                              bool with_weights, kiln_tensor **out, kiln_tensor **weights) {
  heads h = {.safe = false};
  kiln_tensor *base;
  const kiln_dtype dtype = kiln_tensor_dtype(qkv[0]);
  KILN_TRY(kiln__nn_begin(nn, dtype));
  KILN_TRY(set_sizes(&h, qkv[0], qkv[1], qkv[2]));
  h.scale = 1 / sqrt((double)h.depth);
  KILN_TRY(expand_heads(nn, &h, qkv[0], h.rows, h.depth, nn->dtype, &h.q));
  KILN_TRY(expand_heads(nn, &h, qkv[1], h.keys, h.depth, nn->dtype, &h.k));
  KILN_TRY(expand_heads(nn, &h, qkv[2], h.keys, h.width, nn->dtype, &h.v));
  if (mask) {
    KILN_TRY(expand_heads(nn, &h, mask, h.rows, h.keys, KILN_DTYPE_BOOL, &h.mask));
  }
  KILN_TRY(make_joined(nn, &h, &base));
  if (with_weights) {
    const int64_t sizes[] = {h.batch[0], h.batch[1], h.rows, h.keys};
    char *data;
    KILN_TRY(kiln__nn_new(nn, 4, sizes, &h.weights, &data));
  }
  KILN_TRY(attend(nn, &h));
  const int64_t joined[] = {h.batch[0], h.rows, h.batch[1] * h.width};
  KILN_TRY(kiln__nn_as(nn, base, dtype, &base));
  KILN_TRY(kiln__reshape(nn->call, base, 3, joined, out));
  if (!with_weights) return NULL;
  kiln_status *status = kiln__as_dtype(nn->call, h.weights, dtype, weights);
  if (status) kiln_tensor_release_to(&nn->call->cache, *out);
  return status;
}
typedef struct mha {
  int64_t dim, count;
  kiln_tensor *proj_weight, *proj_bias, *mask;
  int64_t mask_type;
  bool with_weights, average;
} mha;
/* The projected result; *weights where they are wanted. */
static kiln_tensor *attend_all(kiln__composite *r, const mha *m, kiln_tensor *const parts[3],
                               kiln_tensor **weights) {
  kiln_tensor *qkv[3], *mask = m->mask, *out = NULL;
  for (int i = 0; i < 3; i++) qkv[i] = split_heads(r, parts[i], m->count);
  /* Numbers mask where they are not 0, as PyTorch reads them: they are not added. */
  if (mask) mask = shape_mask(r, kiln__composite_to(r, mask, KILN_DTYPE_BOOL), m->mask_type == 1);
  if (r->status) return NULL;
  kiln__nn nn = {.call = r->call};
  const bool fine =
      kiln__composite_ok(r, run_heads(&nn, qkv, mask, m->with_weights, &out, weights));
  kiln__nn_release(&nn);
  if (!fine) return NULL;
  out = kiln__composite_keep(r, out);
  if (m->with_weights) {
    *weights = kiln__composite_keep(r, *weights);
    if (m->average) *weights = KILN_STEP(r, mean_dim, T(*weights), INTS(1), B(false), NONE);
  }
  return KILN_STEP(r, linear, T(out), T(m->proj_weight), T(m->proj_bias));
}
static bool check_mha(kiln__composite *r, const mha *m, const kiln_tensor *q, const kiln_tensor *k,
                      const kiln_tensor *v, const kiln_tensor *w) {
  if (kiln_tensor_rank(q) != 3 || kiln_tensor_rank(k) != 3 || kiln_tensor_rank(v) != 3) {
    FAIL(r, "expected 3-D `query`, got %d-D tensor", kiln_tensor_rank(q));
  } else if (!kiln_tensor_same_sizes(q, k) || !kiln_tensor_same_sizes(q, v)) {
    FAIL(r, "expected `query`/`key`/`value` shapes to match");
  } else if (kiln_tensor_sizes(q)[2] != m->dim) {
    FAIL(r, "passed-in embed_dim %lld didn't match last dim of query %lld", (long long)m->dim,
         (long long)kiln_tensor_sizes(q)[2]);
  } else if (kiln_tensor_rank(w) != 2 || kiln_tensor_sizes(w)[0] != 3 * m->dim) {
    FAIL(r, "expected `qkv_weight` first dim to be 3x embed_dim");
  } else if (m->count <= 0 || m->dim % m->count != 0) {
    FAIL(r, "`embed_dim` must divide evenly by `num_heads`");
  } else if (m->mask && m->mask_type != 0 && m->mask_type != 1 && m->mask_type != 2) {
    FAIL(r, "Mask Type should be 0 (src_mask), 1 (src_key_padding_mask), or 2 "
            "(default_mask)");
  }
  return !r->status;
}
KILN_COMPOSITE(_native_multi_head_attention) {
  const mha m = {.dim = kiln_arg_int(args, 3),
                 .count = kiln_arg_int(args, 4),
                 .proj_weight = ARG(7),
                 .proj_bias = ARG(8),
                 .mask = kiln_arg_tensor_opt(args, 9),
                 .mask_type = kiln_arg_int_or(args, 12, 2),
                 .with_weights = kiln_arg_bool(args, 10),
                 .average = kiln_arg_bool(args, 11)};
  kiln_tensor *parts[3], *weights = NULL, *out = NULL;
  if (!check_mha(r, &m, SELF, ARG(1), ARG(2), ARG(5))) {
    return NULL;
  }
  const bool none = SELF->numel == 0; /* of nothing there are no weights */
  if (none) {
    out = kiln__composite_copy(r, SELF);
  } else {
    project(r, args, m.dim, parts);
    out = attend_all(r, &m, parts, &weights);
  }
  if ((none || !m.with_weights) && !r->status &&
      kiln__composite_ok(r, kiln_tensor_undefined(r->call->env->mem, &weights))) {
    weights = kiln__composite_keep(r, weights);
  }
  kiln__composite_give(r, &outs[1], weights);
  return out;
}

/* src, embed_dim, num_heads, qkv w b, proj w b, use_gelu, norm_first, eps, norm 1 w b, norm 2 w b,
 * ffn 1 w b, ffn 2 w b, mask, mask_type */
static kiln_tensor *norm(kiln__composite *r, kiln_tensor *x, int64_t dim, const kiln_ivalue *weight,
                         double eps) {
  return KILN_STEP(r, layer_norm, T(x), INTS(dim), weight[0], weight[1], F(eps), B(true));
}
/* A nested batch is a padded one with a mask; its result is nested again. */
KILN_COMPOSITE(_transformer_encoder_layer_fwd) {
  kiln_tensor *src = SELF, *parts[3], *unused = NULL;
  const kiln_nested *nested = kiln_tensor_nested(src);
  const bool use_gelu = kiln_arg_bool(args, 7), norm_first = kiln_arg_bool(args, 8);
  const double eps = kiln_arg_float(args, 9);
  mha m = {.dim = kiln_arg_int(args, 1),
           .count = kiln_arg_int(args, 2),
           .proj_weight = ARG(5),
           .proj_bias = ARG(6),
           .mask = kiln_arg_tensor_opt(args, 18),
           .mask_type = kiln_arg_int_or(args, 19, 2)};
  if (nested && m.mask) {
    return FAIL(r, "NestedTensor with mask is not supported yet");
  }
  if (nested) {
    src = kiln__nested_padded(r, src);
    m.mask = kiln__nested_padding(r, nested, kiln__composite_size(src, 1));
    m.mask_type = 1;
  }
  if (!src || !check_mha(r, &m, src, src, src, ARG(3))) return NULL;
  kiln_tensor *x = src;
  if (norm_first) x = norm(r, x, m.dim, args + 10, eps);
  kiln_tensor *all = KILN_STEP(r, linear, T(x), args[3], args[4]);
  for (int i = 0; i < 3; i++) parts[i] = kiln__composite_narrow(r, all, 2, i * m.dim, m.dim);
  x = attend_all(r, &m, parts, &unused);
  x = KILN_STEP(r, add, T(x), T(src), I(1));
  if (!norm_first) x = norm(r, x, m.dim, args + 10, eps);
  kiln_tensor *before = x;
  if (norm_first) x = norm(r, x, m.dim, args + 12, eps);
  x = KILN_STEP(r, linear, T(x), args[14], args[15]);
  x = use_gelu ? KILN_STEP(r, gelu, T(x), kiln__composite_text(r, "none"))
               : KILN_STEP(r, relu, T(x));
  x = KILN_STEP(r, linear, T(x), args[16], args[17]);
  x = KILN_STEP(r, add, T(x), T(before), I(1));
  if (!norm_first) x = norm(r, x, m.dim, args + 12, eps);
  return nested ? kiln__nested_with(r, x, nested->lengths) : x;
}
