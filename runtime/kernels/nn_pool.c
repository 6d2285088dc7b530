/* nn_pool.c: max_pool2d, avg_pool2d, adaptive_avg_pool2d over the last two dimensions. */
#include <math.h>

#include "runtime/kernels/nn.h"

typedef struct pool {
  int64_t planes, in[2], out[2], k[2], stride[2], pad[2], dilation[2];
  const char *data;
  char *to;
  kiln_tensor *result;
} pool;

/* One number for both, or two; none: `fallback` where given. */
static kiln_status *read_pair(const kiln_ivalue *args, int i, const char *name,
                              const int64_t *fallback, int64_t out[2]) {
  int64_t values[KILN_MAX_RANK];
  int count;
  KILN_TRY(kiln__arg_int_list(args, i, values, &count));
  if (count == 0 && fallback) {
    out[0] = fallback[0];
    out[1] = fallback[1];
    return NULL;
  }
  if (count != 1 && count != 2) {
    return KILN_OP_FAIL("pool2d: %s must either be a single int, or a tuple of two ints", name);
  }
  out[0] = values[0];
  out[1] = values[count - 1];
  for (int d = 0; d < 2; d++) {
    if (out[d] > INT32_MAX || out[d] < 0) return KILN_OP_FAIL("pool2d: %s is out of range", name);
  }
  return NULL;
}
static kiln_status *begin_pool(pool *p, kiln_tensor *input) {
  const int rank = kiln_tensor_rank(input);
  const int64_t *sizes = kiln_tensor_sizes(input);
  bool fits = rank == 3 || rank == 4;
  for (int d = rank == 4 ? 1 : 0; fits && d < rank; d++) fits = sizes[d] > 0;
  if (!fits) {
    return KILN_OP_FAIL("Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for "
                        "input, but got: %s",
                        kiln__sizes_of(input).text);
  }
  p->in[0] = sizes[rank - 2];
  p->in[1] = sizes[rank - 1];
  p->planes = rank == 4 ? sizes[0] * sizes[1] : sizes[0];
  return NULL;
}
static kiln_status *window_sizes(pool *p, bool ceil_mode) {
  for (int d = 0; d < 2; d++) {
    if (p->k[d] <= 0) return KILN_OP_FAIL("kernel size should be greater than zero");
    if (p->stride[d] <= 0) return KILN_OP_FAIL("stride should not be zero");
    if (p->dilation[d] <= 0) return KILN_OP_FAIL("dilation should be greater than zero");
    if (p->pad[d] > p->k[d] / 2) {
      return KILN_OP_FAIL("pad should be at most half of kernel size, but got pad=%lld and "
                          "kernel_size=%lld",
                          (long long)p->pad[d], (long long)p->k[d]);
    }
    const int64_t room = p->in[d] + 2 * p->pad[d] - p->dilation[d] * (p->k[d] - 1) - 1;
    const int64_t extra = ceil_mode ? p->stride[d] - 1 : 0;
    p->out[d] = room + extra < 0 ? 0 : (room + extra) / p->stride[d] + 1;
    /* The last window starts within the input or what pads it on the left. */
    if (ceil_mode && (p->out[d] - 1) * p->stride[d] >= p->in[d] + p->pad[d]) p->out[d]--;
    if (p->out[d] < 1) {
      return KILN_OP_FAIL("Given input size: (%lldx%lldx%lld). Output size is too small",
                          (long long)p->planes, (long long)p->in[0], (long long)p->in[1]);
    }
  }
  return NULL;
}
static kiln_status *make_result(kiln__nn *nn, pool *p, kiln_tensor *input) {
  int64_t sizes[4];
  const int rank = kiln_tensor_rank(input);
  for (int d = 0; d < rank; d++) {
    sizes[d] = d < rank - 2 ? kiln_tensor_sizes(input)[d] : p->out[d - rank + 2];
  }
  /* Whole numbers up to 2^53 are exact in double; a mean is cut on the way back. */
  const bool whole = kiln_tensor_dtype(input) == KILN_DTYPE_I64;
  KILN_TRY(kiln__nn_begin(nn, whole ? KILN_DTYPE_F64 : kiln_tensor_dtype(input)));
  KILN_TRY(kiln__nn_dense(nn, input, &p->data));
  return kiln__nn_new(nn, rank, sizes, &p->result, &p->to);
}

/* -- Greatest of a window; NaN wins; the first of equals -- */

static double window_max(const kiln__nn *nn, const pool *p, int64_t plane, int64_t y, int64_t x,
                         int64_t *out_index) {
  double best = -INFINITY;
  *out_index = -1;
  for (int64_t i = 0; i < p->k[0]; i++) {
    const int64_t row = y * p->stride[0] - p->pad[0] + i * p->dilation[0];
    if (row < 0 || row >= p->in[0]) continue;
    for (int64_t j = 0; j < p->k[1]; j++) {
      const int64_t column = x * p->stride[1] - p->pad[1] + j * p->dilation[1];
      if (column < 0 || column >= p->in[1]) continue;
      const int64_t at = row * p->in[1] + column;
      const double value = kiln__nn_get(nn, p->data, plane * p->in[0] * p->in[1] + at);
      if (*out_index < 0 || value > best || isnan(value)) {
        best = value;
        *out_index = at;
      }
    }
  }
  return best;
}
typedef struct max_rows {
  const kiln__nn *nn;
  const pool *p;
  char *rows; /* `length` elements for each worker: a row of maxima and its padding */
  int64_t length;
} max_rows;
/* Planes [begin, end): the greatest of the window's rows, then of its columns. */
static void max_planes(void *data, int64_t begin, int64_t end, int worker) {
  const max_rows *m = data;
  const kiln__nn *nn = m->nn;
  const pool *p = m->p;
  const int64_t item = (int64_t)nn->item, step = p->stride[1] * item, width = p->in[1];
  char *row = m->rows + worker * m->length * item;
  for (int64_t i = 0; i < m->length; i++) kiln__nn_set(nn, row, i, -(double)INFINITY);
  for (int64_t i = begin * p->out[0]; i < end * p->out[0]; i++) {
    const char *plane = p->data + i / p->out[0] * p->in[0] * width * item;
    char *inside = row + p->pad[1] * item, *out = p->to + i * p->out[1] * item;
    bool any = false;
    for (int64_t k = 0; k < p->k[0]; k++) {
      const int64_t y = i % p->out[0] * p->stride[0] - p->pad[0] + k * p->dilation[0];
      if (y < 0 || y >= p->in[0]) continue;
      const char *from = plane + y * width * item;
      kiln__nn_loop2(nn, KILN_PW_maximum, inside, from, any ? inside : from, true, width);
      any = true;
    }
    for (int64_t x = 0; !any && x < width; x++) kiln__nn_set(nn, inside, x, -(double)INFINITY);
    for (int64_t k = 0; k < p->k[1]; k++) {
      char *from = row + k * p->dilation[1] * item;
      char *operands[] = {out, from, k ? out : from};
      const int64_t strides[] = {item, step, k ? item : step};
      kiln_pw_params params = {0};
      nn->call->dispatch->loops[nn->ctype][KILN_PW_maximum](operands, strides, p->out[1], &params);
    }
  }
}
/* False: the windows reach too far for rows with padding. */
static kiln_status *max_without_indices(kiln__nn *nn, const pool *p, bool *done) {
  const int64_t reach = (p->out[1] - 1) * p->stride[1] + (p->k[1] - 1) * p->dilation[1] + 1;
  max_rows m = {.nn = nn, .p = p, .length = p->in[1] + p->pad[1]};
  if (reach > m.length) m.length = reach;
  *done = m.length <= p->in[1] + (1 << 16);
  if (!*done) return NULL;
  kiln_pool *threads = nn->call->pool;
  const int64_t workers = threads ? kiln_pool_threads(threads) : 1;
  const int64_t work = p->out[0] * (p->in[1] * p->k[0] + p->out[1] * p->k[1]);
  kiln_tensor *rows;
  KILN_TRY(kiln__nn_new(nn, 2, (const int64_t[]){workers, m.length}, &rows, &m.rows));
  kiln_pool_for(threads, p->planes, 1 + (1 << 15) / work, max_planes, &m);
  return NULL;
}
static kiln_status *max_pool(kiln__nn *nn, const kiln_ivalue *args, kiln_ivalue *outs,
                             bool with_indices) {
  kiln_tensor *input = kiln_arg_tensor(args, 0), *indices = NULL;
  pool p;
  void *index_data = NULL;
  KILN_TRY(begin_pool(&p, input));
  KILN_TRY(read_pair(args, 1, "kernel_size", NULL, p.k));
  KILN_TRY(read_pair(args, 2, "stride", p.k, p.stride));
  KILN_TRY(read_pair(args, 3, "padding", NULL, p.pad));
  KILN_TRY(read_pair(args, 4, "dilation", NULL, p.dilation));
  KILN_TRY(window_sizes(&p, kiln_arg_bool(args, 5)));
  KILN_TRY(make_result(nn, &p, input));
  if (with_indices) {
    KILN_TRY(kiln_call_tensor(nn->call, KILN_DTYPE_I64, kiln_tensor_rank(p.result),
                              kiln_tensor_sizes(p.result), &indices));
    KILN_TRY(kiln__nn_keep(nn, indices));
    KILN_TRY(kiln_tensor_writable_data(indices, &index_data));
  }
  bool done = false;
  if (!with_indices && p.result->numel > 0) KILN_TRY(max_without_indices(nn, &p, &done));
  for (int64_t i = 0; !done && i < p.result->numel; i++) {
    const int64_t x = i % p.out[1], y = i / p.out[1] % p.out[0], plane = i / (p.out[0] * p.out[1]);
    int64_t index;
    kiln__nn_set(nn, p.to, i, window_max(nn, &p, plane, y, x, &index));
    if (index_data) ((int64_t *)index_data)[i] = index;
  }
  KILN_TRY(kiln__nn_give(nn, p.result, kiln_tensor_dtype(input), &outs[0]));
  return indices ? kiln__nn_give(nn, indices, KILN_DTYPE_I64, &outs[1]) : NULL;
}
KILN_NN_KERNEL(max_pool2d) { return max_pool(nn, args, outs, false); }
KILN_NN_KERNEL(max_pool2d_with_indices) { return max_pool(nn, args, outs, true); }

/* -- Means -- */

static double box_sum(const kiln__nn *nn, const pool *p, int64_t plane, const int64_t from[2],
                      const int64_t to[2]) {
  const int64_t size = p->in[0] * p->in[1];
  if (to[0] - from[0] == p->in[0] && to[1] - from[1] == p->in[1]) {
    return kiln__nn_reduce(nn, KILN_REDUCE_SUM, p->data + (size_t)(plane * size) * nn->item, size,
                           0);
  }
  double sum = 0;
  for (int64_t i = from[0]; i < to[0]; i++) {
    for (int64_t j = from[1]; j < to[1]; j++) {
      sum += kiln__nn_get(nn, p->data, (plane * p->in[0] + i) * p->in[1] + j);
    }
  }
  return sum;
}
KILN_NN_KERNEL(avg_pool2d) {
  kiln_tensor *input = kiln_arg_tensor(args, 0);
  const bool count_pad = kiln_arg_bool(args, 5);
  const int64_t divisor = kiln_arg_int_or(args, 6, 0);
  pool p = {.dilation = {1, 1}};
  KILN_TRY(begin_pool(&p, input));
  KILN_TRY(read_pair(args, 1, "kernel_size", NULL, p.k));
  KILN_TRY(read_pair(args, 2, "stride", p.k, p.stride));
  KILN_TRY(read_pair(args, 3, "padding", NULL, p.pad));
  if (!kiln_arg_is_none(args, 6) && divisor == 0) return KILN_OP_FAIL("divisor must be not zero");
  KILN_TRY(window_sizes(&p, kiln_arg_bool(args, 4)));
  KILN_TRY(make_result(nn, &p, input));
  for (int64_t i = 0; i < p.result->numel; i++) {
    const int64_t at[] = {i / p.out[1] % p.out[0], i % p.out[1]};
    int64_t from[2], to[2], padded = 1, inside = 1;
    for (int d = 0; d < 2; d++) {
      from[d] = at[d] * p.stride[d] - p.pad[d];
      to[d] = from[d] + p.k[d] < p.in[d] + p.pad[d] ? from[d] + p.k[d] : p.in[d] + p.pad[d];
      padded *= to[d] - from[d];
      if (from[d] < 0) from[d] = 0;
      if (to[d] > p.in[d]) to[d] = p.in[d];
      inside *= to[d] > from[d] ? to[d] - from[d] : 0;
    }
    const double count = (double)(divisor ? divisor : count_pad ? padded : inside);
    const double sum = box_sum(nn, &p, i / (p.out[0] * p.out[1]), from, to);
    kiln__nn_set(nn, p.to, i, inside == 0 ? 0 : sum / count);
  }
  return kiln__nn_give(nn, p.result, kiln_tensor_dtype(input), outs);
}
/* Output o covers [floor(o * in / out), ceil((o + 1) * in / out)). */
KILN_NN_KERNEL(adaptive_avg_pool2d) {
  kiln_tensor *input = kiln_arg_tensor(args, 0);
  pool p;
  KILN_TRY(begin_pool(&p, input));
  KILN_TRY(read_pair(args, 1, "output_size", NULL, p.out));
  KILN_TRY(make_result(nn, &p, input));
  for (int64_t i = 0; i < p.result->numel; i++) {
    const int64_t at[] = {i / p.out[1] % p.out[0], i % p.out[1]};
    int64_t from[2], to[2];
    for (int d = 0; d < 2; d++) {
      from[d] = at[d] * p.in[d] / p.out[d];
      to[d] = ((at[d] + 1) * p.in[d] + p.out[d] - 1) / p.out[d];
    }
    const double sum = box_sum(nn, &p, i / (p.out[0] * p.out[1]), from, to);
    kiln__nn_set(nn, p.to, i, sum / (double)((to[0] - from[0]) * (to[1] - from[1])));
  }
  return kiln__nn_give(nn, p.result, kiln_tensor_dtype(input), outs);
}
