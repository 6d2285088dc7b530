/* pool.c: max, mean and adaptive pools over the last one to three dimensions.
 *
 * All are pools of three dimensions: what is not there has size 1. Elements are read row-major in
 * float or double; whole numbers go through double, which is exact up to 2^53. */
#include <math.h>

#include "runtime/kernels/heavy/taps.h"
#include "runtime/kernels/nn/nn.h"

enum { AXES = 3 };

typedef struct pool {
  int spatial; /* dimensions that are pooled: the last of the three */
  bool adaptive;
  int64_t planes, in[AXES], out[AXES], k[AXES], stride[AXES], pad[AXES], dilation[AXES];
  const char *data;
  char *to;
  kiln_tensor *result;
} pool;

static pool new_pool(int spatial) {
  pool p = {.spatial = spatial, .planes = 1};
  for (int d = 0; d < AXES; d++) {
    p.in[d] = p.out[d] = p.k[d] = p.stride[d] = p.dilation[d] = 1;
    p.pad[d] = 0;
  }
  return p;
}

/* One number for all, or one for each; none: `fallback` where given. */
static kiln_status *read_numbers(const pool *p, const kiln_ivalue *args, int i, const char *name,
                                 const int64_t *fallback, int64_t out[AXES]) {
  int64_t values[KILN_MAX_RANK];
  int count;
  KILN_TRY(kiln__arg_int_list(args, i, values, &count));
  for (int d = AXES - p->spatial; d < AXES; d++) {
    if (count == 0 && fallback) {
      out[d] = fallback[d];
      continue;
    }
    if (count != 1 && count != p->spatial) {
      return KILN_OP_FAIL("pool%dd: %s must either be a single int, or a tuple of %d ints",
                          p->spatial, name, p->spatial);
    }
    out[d] = values[count == 1 ? 0 : d - (AXES - p->spatial)];
    if (out[d] > INT32_MAX || out[d] < 0) {
      return KILN_OP_FAIL("pool%dd: %s is out of range", p->spatial, name);
    }
  }
  return NULL;
}
/* `first`: the first dimension that must not be empty. */
static kiln_status *begin_pool(pool *p, kiln_tensor *input, int first) {
  const int rank = kiln_tensor_rank(input);
  const int64_t *sizes = kiln_tensor_sizes(input);
  bool fits = rank == p->spatial + 2 || rank == p->spatial + 1;
  for (int d = first; fits && d < rank; d++) fits = sizes[d] > 0;
  if (!fits) {
    return KILN_OP_FAIL(
        "Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for "
        "input, but got: %s",
        p->spatial + 1, p->spatial + 2, kiln__sizes_of(input).text);
  }
  for (int d = 0; d < rank; d++) {
    if (d < rank - p->spatial)
      p->planes *= sizes[d];
    else
      p->in[AXES - rank + d] = sizes[d];
  }
  return NULL;
}
/* self, kernel_size, stride, padding */
static kiln_status *read_windows(pool *p, const kiln_ivalue *args) {
  KILN_TRY(begin_pool(p, SELF, kiln_tensor_rank(SELF) > p->spatial + 1));
  KILN_TRY(read_numbers(p, args, 1, "kernel_size", NULL, p->k));
  KILN_TRY(read_numbers(p, args, 2, "stride", p->k, p->stride));
  return read_numbers(p, args, 3, "padding", NULL, p->pad);
}
static kiln_status *window_sizes(pool *p, bool ceil_mode) {
  for (int d = AXES - p->spatial; d < AXES; d++) {
    if (p->k[d] <= 0) return KILN_OP_FAIL("kernel size should be greater than zero");
    if (p->stride[d] <= 0) return KILN_OP_FAIL("stride should not be zero");
    if (p->dilation[d] <= 0) return KILN_OP_FAIL("dilation should be greater than zero");
    if (p->pad[d] > p->k[d] / 2) {
      return KILN_OP_FAIL("%s should be at most half of kernel size, but got %s=%lld and "
                          "kernel_size=%lld",
                          p->spatial == 1 ? "max_pool1d() padding" : "pad",
                          p->spatial == 1 ? "padding" : "pad", (long long)p->pad[d],
                          (long long)p->k[d]);
    }
    const int64_t room = p->in[d] + 2 * p->pad[d] - p->dilation[d] * (p->k[d] - 1) - 1;
    const int64_t extra = ceil_mode ? p->stride[d] - 1 : 0;
    p->out[d] = room + extra < 0 ? 0 : (room + extra) / p->stride[d] + 1;
    /* The last window starts within the input or what pads it on the left. */
    if (ceil_mode && (p->out[d] - 1) * p->stride[d] >= p->in[d] + p->pad[d]) p->out[d]--;
    if (p->out[d] < 1) {
      return KILN_OP_FAIL("Given input size: (%lldx%lldx%lld). Output size is too small",
                          (long long)p->planes, (long long)p->in[1], (long long)p->in[2]);
    }
  }
  return NULL;
}
static kiln_status *make_result(kiln__nn *nn, pool *p, kiln_tensor *input) {
  int64_t sizes[AXES + 2];
  const int rank = kiln_tensor_rank(input);
  for (int d = 0; d < rank; d++) {
    sizes[d] = d < rank - p->spatial ? kiln_tensor_sizes(input)[d] : p->out[AXES - rank + d];
  }
  const bool whole = kiln_dtype_is_int(kiln_tensor_dtype(input), false);
  KILN_TRY(kiln__nn_begin(nn, whole ? KILN_DTYPE_F64 : kiln_tensor_dtype(input)));
  KILN_TRY(kiln__nn_dense(nn, input, &p->data));
  return kiln__nn_new(nn, rank, sizes, &p->result, &p->to);
}

/* -- Windows -- */

/* Of one result element: elements first, first + step, ... below end, of each dimension. */
typedef struct window {
  int64_t first[AXES], end[AXES], step[AXES];
  int64_t padded; /* elements with those of the padding */
} window;
/* Output o of an adaptive pool covers [floor(o * in / out), ceil((o + 1) * in / out)). */
static void set_window(const pool *p, int d, int64_t at, window *w) {
  w->step[d] = p->dilation[d];
  if (p->adaptive) {
    w->first[d] = at * p->in[d] / p->out[d];
    w->end[d] = ((at + 1) * p->in[d] + p->out[d] - 1) / p->out[d];
    return;
  }
  const int64_t start = at * p->stride[d] - p->pad[d];
  w->first[d] = start;
  w->end[d] = start + p->dilation[d] * (p->k[d] - 1) + 1;
  const int64_t limit = p->in[d] + p->pad[d];
  w->padded *= (w->end[d] < limit ? w->end[d] : limit) - start;
  if (start < 0) w->first[d] += (-start + w->step[d] - 1) / w->step[d] * w->step[d];
  if (w->end[d] > p->in[d]) w->end[d] = p->in[d];
}

/* NaN wins; the first of equals. */
#define WINDOW_MAX(name, type)                                                                  \
  static void name(const pool *p, const window *w, int64_t plane, int64_t at, int64_t *index) { \
    const type *from =                                                                          \
        (const type *)(const void *)p->data + plane * p->in[0] * p->in[1] * p->in[2];           \
    type best = (type) - INFINITY;                                                              \
    int64_t best_at = -1;                                                                       \
    for (int64_t z = w->first[0]; z < w->end[0]; z += w->step[0]) {                             \
      for (int64_t y = w->first[1]; y < w->end[1]; y += w->step[1]) {                           \
        const int64_t row = (z * p->in[1] + y) * p->in[2];                                      \
        for (int64_t x = w->first[2]; x < w->end[2]; x += w->step[2]) {                         \
          const type value = from[row + x];                                                     \
          if (value > best || best_at < 0 || value != value) {                                  \
            best = value;                                                                       \
            best_at = row + x;                                                                  \
          }                                                                                     \
        }                                                                                       \
      }                                                                                         \
    }                                                                                           \
    ((type *)(void *)p->to)[at] = best;                                                         \
    if (index) index[at] = best_at;                                                             \
  }
WINDOW_MAX(max_f32, float)
WINDOW_MAX(max_f64, double)
#define WINDOW_SUM(name, type)                                                        \
  static double name(const pool *p, const window *w, int64_t plane) {                 \
    const type *from =                                                                \
        (const type *)(const void *)p->data + plane * p->in[0] * p->in[1] * p->in[2]; \
    double sum = 0;                                                                   \
    for (int64_t z = w->first[0]; z < w->end[0]; z++) {                               \
      for (int64_t y = w->first[1]; y < w->end[1]; y++) {                             \
        const type *row = from + (z * p->in[1] + y) * p->in[2];                       \
        for (int64_t x = w->first[2]; x < w->end[2]; x++) sum += (double)row[x];      \
      }                                                                               \
    }                                                                                 \
    return sum;                                                                       \
  }
WINDOW_SUM(sum_f32, float)
WINDOW_SUM(sum_f64, double)

static int64_t outputs_of(const pool *p) { return p->out[0] * p->out[1] * p->out[2]; }
/* Calls `fn` for all planes, in pieces that are worth a thread. */
static void for_planes(const kiln__nn *nn, const pool *p, kiln_range_fn fn, void *data) {
  const double each = p->adaptive ? 1 : (double)(p->k[0] * p->k[1]) * (double)p->k[2];
  const double reads = (double)outputs_of(p) * each + (double)(p->in[0] * p->in[1] * p->in[2]);
  const double worth = KILN_PW_GRAIN;
  const int64_t grain = reads < worth ? (int64_t)(worth / (reads + 1)) : 0;
  kiln_pool_for(nn->call->pool, p->planes, 1 + grain, fn, data);
}

typedef struct max_run {
  const kiln__nn *nn;
  const pool *p;
  int64_t *index;
} max_run;
static void max_windows_of(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const max_run *m = data;
  const pool *p = m->p;
  const int64_t work = 8 + 2 * p->k[0] * p->k[1] * p->k[2];
  int64_t at = begin * outputs_of(p);
  int64_t left = KILN_BUDGET_ITEMS;
  window w = {.padded = 1};
  for (int64_t plane = begin; plane < end; plane++) {
    for (int64_t z = 0; z < p->out[0]; z++) {
      set_window(p, 0, z, &w);
      for (int64_t y = 0; y < p->out[1]; y++) {
        set_window(p, 1, y, &w);
        for (int64_t x = 0; x < p->out[2]; x++, at++) {
          if (kiln_budget_spent(&left, work)) return;
          set_window(p, 2, x, &w);
          (m->nn->dtype == KILN_DTYPE_F64 ? max_f64 : max_f32)(p, &w, plane, at, m->index);
          w.padded = 1;
        }
      }
    }
  }
}
static void max_windows(const kiln__nn *nn, const pool *p, int64_t *index) {
  max_run run = {nn, p, index};
  for_planes(nn, p, max_windows_of, &run);
}
/* Results of a row of `length` elements whose windows lie apart, from window i on. The order of
 * KILN_PW_maximum. */
#define MAX_ALONG(name, type)                                                              \
  static void name(const pool *p, const void *row, int64_t length, void *out, int64_t i) { \
    const type *from = (const type *)row + i * p->stride[2];                               \
    const int64_t windows = p->out[2], k = p->k[2], apart = p->dilation[2];                \
    (void)length;                                                                          \
    for (; i < windows; i++, from += p->stride[2]) {                                       \
      type best = *from;                                                                   \
      for (int64_t j = 1; j < k; j++) {                                                    \
        const type value = from[j * apart];                                                \
        const type most = value > best ? value : best;                                     \
        best = value != value ? value : most;                                              \
      }                                                                                    \
      ((type *)out)[i] = best;                                                             \
    }                                                                                      \
  }
MAX_ALONG(max_along_f32, float)
MAX_ALONG(max_along_f64, double)
/* Steps of two, which most nets have: four windows' elements are every other one of eight. */
typedef float four __attribute__((vector_size(16), aligned(4)));
typedef int32_t flags __attribute__((vector_size(16)));
static four every_other(const float *from) {
  return __builtin_shufflevector(*(const four *)from, *(const four *)(from + 4), 0, 2, 4, 6);
}
static void max_by_two_f32(const pool *p, const void *row, int64_t length, void *out, int64_t i) {
  const int64_t reach = (p->k[2] - 1) * p->dilation[2] + 8;
  for (; i + 4 <= p->out[2] && 2 * i + reach <= length; i += 4) {
    const float *from = (const float *)row + 2 * i;
    four best = every_other(from);
    for (int64_t j = 1; j < p->k[2]; j++) {
      const four value = every_other(from + j * p->dilation[2]);
      const flags take = (value > best) | (value != value);
      best = (four)((take & (flags)value) | (~take & (flags)best));
    }
    *(four *)((float *)out + i) = best;
  }
  max_along_f32(p, row, length, out, i);
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
  const int64_t item = (int64_t)nn->item, width = p->in[2];
  char *row = m->rows + worker * m->length * item;
  for (int64_t i = 0; i < m->length; i++) kiln__nn_set(nn, row, i, -(double)INFINITY);
  const int64_t work = 16 + width * p->k[1] + p->out[2] * p->k[2];
  void (*along)(const pool *, const void *, int64_t, void *, int64_t) =
      nn->dtype == KILN_DTYPE_F64 ? max_along_f64
      : p->stride[2] == 2         ? max_by_two_f32
                                  : max_along_f32;
  const kiln_dispatch *table = nn->call->dispatch;
  const kiln_row_kernels *kernels = nn->dtype == KILN_DTYPE_F64 ? table->rows_f64 : table->rows_f32;
  const bool is_alone = p->k[1] == 1 && p->pad[1] == 0 && m->length == width && p->stride[2] > 1;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = begin * p->out[1]; i < end * p->out[1]; i++) {
    if (kiln_budget_spent(&left, work / 8)) return;
    const char *plane = p->data + i / p->out[1] * p->in[1] * width * item;
    char *inside = row + p->pad[2] * item, *out = p->to + i * p->out[2] * item;
    if (is_alone) { /* its own row has no padding: nothing to copy */
      along(p, plane + i % p->out[1] * p->stride[1] * width * item, m->length, out, 0);
      continue;
    }
    int64_t y = i % p->out[1] * p->stride[1] - p->pad[1], rows = p->k[1];
    for (; rows > 0 && y < 0; rows--) y += p->dilation[1];
    while (rows > 0 && y + (rows - 1) * p->dilation[1] >= p->in[1]) rows--;
    if (rows > 0)
      kernels->greatest(inside, plane + y * width * item, p->dilation[1] * width, rows, width);
    for (int64_t x = 0; rows == 0 && x < width; x++) kiln__nn_set(nn, inside, x, -(double)INFINITY);
    if (p->stride[2] > 1) {
      along(p, row, m->length, out, 0);
      continue;
    }
    kernels->greatest(out, row, p->dilation[2], p->k[2], p->out[2]);
  }
}
/* False: the windows reach too far for rows with padding. */
static kiln_status *max_without_indices(kiln__nn *nn, const pool *p, bool *done) {
  const int64_t reach = (p->out[2] - 1) * p->stride[2] + (p->k[2] - 1) * p->dilation[2] + 1;
  max_rows m = {.nn = nn, .p = p, .length = p->in[2] + p->pad[2]};
  if (reach > m.length) m.length = reach;
  *done = m.length <= p->in[2] + (1 << 16);
  if (!*done) return NULL;
  kiln_pool *threads = nn->call->pool;
  const int64_t workers = threads ? kiln_pool_threads(threads) : 1;
  const int64_t work = p->out[1] * (p->in[2] * p->k[1] + p->out[2] * p->k[2]);
  kiln_tensor *rows;
  KILN_TRY(kiln__nn_new(nn, 2, (const int64_t[]){workers, m.length}, &rows, &m.rows));
  kiln_pool_for(threads, p->planes, 1 + (1 << 15) / work, max_planes, &m);
  return NULL;
}
static double window_sum(const kiln__nn *nn, const pool *p, const window *w, int64_t plane,
                         int64_t count) {
  const int64_t size = p->in[0] * p->in[1] * p->in[2];
  if (count == size) {
    return kiln__nn_reduce(nn, KILN_REDUCE_SUM, p->data + (size_t)(plane * size) * nn->item, size,
                           0);
  }
  return nn->dtype == KILN_DTYPE_F64 ? sum_f64(p, w, plane) : sum_f32(p, w, plane);
}
typedef struct mean_run {
  const kiln__nn *nn;
  const pool *p;
  bool count_pad;
  int64_t divisor;
} mean_run;
enum { STRIP = 256 }; /* results whose sums are kept at once */

/* Adds to the sums of results [at, at + count) of a row what the window's rows have, in the order
 * of one window's elements: z, y, x. Rows of windows that overlap are widened once, with the zeros
 * around them. And quotients of sums of windows that have as many elements. */
#define MEANS(name, type)                                                                       \
  static void add_rows_##name(const pool *p, const window *w, int64_t plane, int64_t at,        \
                              int64_t count, double *sums) {                                    \
    const type *from =                                                                          \
        (const type *)(const void *)p->data + plane * p->in[0] * p->in[1] * p->in[2];           \
    const int64_t stride = p->stride[2], k = p->k[2], first = at * stride - p->pad[2];          \
    const bool overlap = stride == 1 && k > 1 && k <= STRIP;                                    \
    const int64_t end = first + count + k - 1 < p->in[2] ? first + count + k - 1 : p->in[2];    \
    double wide[2 * STRIP];                                                                     \
    for (int64_t x = 0; overlap && x < count + k - 1; x++) wide[x] = 0;                         \
    for (int64_t z = w->first[0]; z < w->end[0]; z++) {                                         \
      for (int64_t y = w->first[1]; y < w->end[1]; y++) {                                       \
        const type *row = from + (z * p->in[1] + y) * p->in[2];                                 \
        if (!overlap) {                                                                         \
          for (int64_t j = 0; j < k; j++) {                                                     \
            int64_t i, last;                                                                    \
            kiln_tap_range(first + j, stride, count, p->in[2], &i, &last);                      \
            for (; i < last; i++) sums[i] += (double)row[first + j + i * stride];               \
          }                                                                                     \
          continue;                                                                             \
        }                                                                                       \
        for (int64_t x = first < 0 ? 0 : first; x < end; x++) wide[x - first] = (double)row[x]; \
        int64_t j = 0;                                                                          \
        for (; j + 3 <= k; j += 3)                                                              \
          for (int64_t i = 0; i < count; i++)                                                   \
            sums[i] = sums[i] + wide[i + j] + wide[i + j + 1] + wide[i + j + 2];                \
        for (; j < k; j++)                                                                      \
          for (int64_t i = 0; i < count; i++) sums[i] += wide[i + j];                           \
      }                                                                                         \
    }                                                                                           \
  }                                                                                             \
  static void give_##name(const double *sums, int64_t count, double divisor, void *to) {        \
    for (int64_t i = 0; i < count; i++) ((type *)to)[i] = (type)(sums[i] / divisor);            \
  }
MEANS(f32, float)
MEANS(f64, double)

static int64_t inside_of(const window *w) {
  int64_t inside = 1;
  for (int d = 0; d < AXES; d++) inside *= w->end[d] > w->first[d] ? w->end[d] - w->first[d] : 0;
  return inside;
}
/* Row `row` of a plane's results. */
static void mean_row(const mean_run *m, int64_t plane, int64_t row, int64_t *left) {
  const pool *p = m->p;
  const int64_t length = p->out[2], work = p->k[0] * p->k[1] * p->k[2];
  window w = {.padded = 1};
  set_window(p, 0, row / p->out[1], &w);
  set_window(p, 1, row % p->out[1], &w);
  const int64_t padded = w.padded;
  for (int64_t at = 0; at < length; at += STRIP) {
    const int64_t count = length - at < STRIP ? length - at : STRIP;
    if (kiln_budget_spent(left, count * (1 + work / 8))) return;
    double sums[STRIP];
    for (int64_t i = 0; i < count; i++) sums[i] = 0;
    (m->nn->dtype == KILN_DTYPE_F64 ? add_rows_f64 : add_rows_f32)(p, &w, plane, at, count, sums);
    for (int64_t x = at, same; x < at + count; x += same) {
      const int64_t start = x * p->stride[2] - p->pad[2], room = p->in[2] - p->k[2] - start;
      w.padded = padded;
      set_window(p, 2, x, &w);
      const int64_t inside = inside_of(&w);
      same = start >= 0 && room >= 0 ? room / p->stride[2] + 1 : 1; /* whole windows */
      if (same > at + count - x) same = at + count - x;
      const double divisor = (double)(m->divisor ? m->divisor : m->count_pad ? w.padded : inside);
      char *to =
          p->to + ((plane * p->out[0] * p->out[1] + row) * length + x) * (int64_t)m->nn->item;
      if (inside == 0) {
        memset(to, 0, (size_t)same * m->nn->item);
      } else {
        (m->nn->dtype == KILN_DTYPE_F64 ? give_f64 : give_f32)(sums + (x - at), same, divisor, to);
      }
    }
  }
}
static void mean_rows_of(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const mean_run *m = data;
  const int64_t rows = m->p->out[0] * m->p->out[1];
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = begin * rows; i < end * rows && !kiln_budget_leaves_out(); i++)
    mean_row(m, i / rows, i % rows, &left);
}
/* The window of a plane's result i; how many elements it has. */
static int64_t place_window(const pool *p, int64_t i, window *w) {
  w->padded = 1;
  set_window(p, 0, i / (p->out[1] * p->out[2]), w);
  set_window(p, 1, i / p->out[2] % p->out[1], w);
  set_window(p, 2, i % p->out[2], w);
  return inside_of(w);
}
static void mean_windows_of(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  const mean_run *m = data;
  const pool *p = m->p;
  const int64_t outputs = outputs_of(p);
  window w;
  int64_t inside = 0, left = KILN_BUDGET_ITEMS;
  for (int64_t plane = begin; plane < end; plane++) {
    for (int64_t i = 0; i < outputs && !kiln_budget_spent(&left, 8 + inside); i++) {
      if (outputs > 1 || plane == begin) inside = place_window(p, i, &w);
      const double sum = window_sum(m->nn, p, &w, plane, inside);
      const double count = (double)(m->divisor ? m->divisor : m->count_pad ? w.padded : inside);
      kiln__nn_set(m->nn, p->to, plane * outputs + i, inside == 0 ? 0 : sum / count);
    }
  }
}
static void mean_windows(const kiln__nn *nn, const pool *p, bool count_pad, int64_t divisor) {
  mean_run run = {nn, p, count_pad, divisor};
  bool whole = true; /* where a window may have all of a plane, which is summed as reductions are */
  for (int d = 0; d < AXES; d++) whole &= p->adaptive || p->k[d] >= p->in[d];
  for_planes(nn, p, whole ? mean_windows_of : mean_rows_of, &run);
}

/* -- The operators -- */

static kiln_status *give_max(kiln__nn *nn, pool *p, kiln_tensor *input, kiln_ivalue *outs,
                             bool with_indices) {
  kiln_tensor *indices = NULL;
  void *index_data = NULL;
  KILN_TRY(make_result(nn, p, input));
  if (with_indices) {
    KILN_TRY(kiln__nn_make(nn, KILN_DTYPE_I64, kiln_tensor_rank(p->result),
                           kiln_tensor_sizes(p->result), &indices, &index_data));
  }
  bool done = p->result->numel == 0;
  if (!done && !with_indices && p->spatial < AXES) KILN_TRY(max_without_indices(nn, p, &done));
  if (!done) max_windows(nn, p, index_data);
  KILN_TRY(kiln__nn_give(nn, p->result, kiln_tensor_dtype(input), &outs[0]));
  return indices ? kiln__nn_give(nn, indices, KILN_DTYPE_I64, &outs[1]) : NULL;
}
static kiln_status *max_pool(kiln__nn *nn, const kiln_ivalue *args, int spatial, kiln_ivalue *outs,
                             bool with_indices) {
  kiln_tensor *input = SELF;
  pool p = new_pool(spatial);
  KILN_TRY(read_windows(&p, args));
  KILN_TRY(read_numbers(&p, args, 4, "dilation", NULL, p.dilation));
  KILN_TRY(window_sizes(&p, kiln_arg_bool(args, 5)));
  return give_max(nn, &p, input, outs, with_indices);
}
KILN_NN_KERNEL(max_pool1d) { return max_pool(nn, args, 1, outs, false); }
KILN_NN_KERNEL(max_pool2d) { return max_pool(nn, args, 2, outs, false); }
KILN_NN_KERNEL(max_pool3d) { return max_pool(nn, args, 3, outs, false); }
KILN_NN_KERNEL(max_pool1d_with_indices) { return max_pool(nn, args, 1, outs, true); }
KILN_NN_KERNEL(max_pool2d_with_indices) { return max_pool(nn, args, 2, outs, true); }
KILN_NN_KERNEL(max_pool3d_with_indices) { return max_pool(nn, args, 3, outs, true); }

static kiln_status *avg_pool(kiln__nn *nn, const kiln_ivalue *args, int spatial,
                             kiln_ivalue *outs) {
  kiln_tensor *input = SELF;
  const kiln_dtype dtype = kiln_tensor_dtype(input);
  if (kiln_dtype_is_int(dtype, false) && dtype != KILN_DTYPE_I64) {
    return kiln__not_implemented(nn->call, dtype);
  }
  const bool has_divisor = spatial > 1 && !kiln_arg_is_none(args, 6);
  const int64_t divisor = has_divisor ? kiln_arg_int(args, 6) : 0;
  pool p = new_pool(spatial);
  KILN_TRY(read_windows(&p, args));
  if (has_divisor && divisor == 0) return KILN_OP_FAIL("divisor must be not zero");
  KILN_TRY(window_sizes(&p, kiln_arg_bool(args, 4)));
  KILN_TRY(make_result(nn, &p, input));
  mean_windows(nn, &p, kiln_arg_bool(args, 5), divisor);
  return kiln__nn_give(nn, p.result, kiln_tensor_dtype(input), outs);
}
KILN_NN_KERNEL(avg_pool1d) { return avg_pool(nn, args, 1, outs); }
KILN_NN_KERNEL(avg_pool2d) { return avg_pool(nn, args, 2, outs); }
KILN_NN_KERNEL(avg_pool3d) { return avg_pool(nn, args, 3, outs); }

static kiln_status *adaptive(kiln__nn *nn, const kiln_ivalue *args, int spatial, bool is_max,
                             kiln_ivalue *outs) {
  kiln_tensor *input = SELF;
  pool p = new_pool(spatial);
  p.adaptive = true;
  KILN_TRY(read_numbers(&p, args, 1, "output_size", NULL, p.out));
  /* PyTorch looks at all dimensions but the first; a mean takes no channels too (up to two
   * dimensions), and anything where it is one of all. */
  const int rank = kiln_tensor_rank(input);
  const bool whole = p.out[0] == 1 && p.out[1] == 1 && p.out[2] == 1;
  KILN_TRY(begin_pool(&p, input, is_max ? 1 : whole ? rank : spatial == 3 ? 1 : rank - spatial));
  if (kiln_dtype_is_int(kiln_tensor_dtype(input), false)) {
    return kiln__not_implemented(nn->call, kiln_tensor_dtype(input));
  }
  if (is_max) return give_max(nn, &p, input, outs, true);
  KILN_TRY(make_result(nn, &p, input));
  for (int64_t i = 0; input->numel == 0 && i < p.result->numel; i++) {
    kiln__nn_set(nn, p.to, i, NAN);
  }
  if (input->numel > 0) mean_windows(nn, &p, false, 0);
  return kiln__nn_give(nn, p.result, kiln_tensor_dtype(input), outs);
}
KILN_NN_KERNEL(adaptive_avg_pool1d) { return adaptive(nn, args, 1, false, outs); }
KILN_NN_KERNEL(adaptive_avg_pool2d) { return adaptive(nn, args, 2, false, outs); }
KILN_NN_KERNEL(adaptive_avg_pool3d) { return adaptive(nn, args, 3, false, outs); }
KILN_NN_KERNEL(adaptive_max_pool1d) { return adaptive(nn, args, 1, true, outs); }
KILN_NN_KERNEL(adaptive_max_pool2d) { return adaptive(nn, args, 2, true, outs); }
KILN_NN_KERNEL(adaptive_max_pool3d) { return adaptive(nn, args, 3, true, outs); }
