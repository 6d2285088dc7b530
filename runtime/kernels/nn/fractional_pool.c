/* fractional_pool.c: pools whose windows lie at random fractions (Graham, 2014). */
#include <math.h>
#include <string.h>

#include "runtime/kernels/composite.h"

enum { MOST = 3 };
typedef struct pool {
  int n; /* dimensions that are pooled */
  int64_t in[MOST], out[MOST], size[MOST];
  int64_t planes, channels;
} pool;
/* Where a window begins; a number that is no random one must not lead out of the input. */
static int64_t begin_of(double place, double origin, int64_t room) {
  return kiln__place_within(trunc(place) - trunc(origin), room);
}
/* Begins of the windows of one dimension, in the arithmetic of the input's dtype. */
static void place_windows(const pool *p, int d, double sample, bool wide, int64_t *at) {
  const int64_t n = p->out[d], room = p->in[d] - p->size[d];
  const double alpha = n > 1 ? (double)room / (double)(n - 1) : 0;
  const float alpha_f32 = n > 1 ? (float)room / (float)(n - 1) : 0;
  for (int64_t i = 0; i + 1 < n; i++) {
    at[i] = wide ? begin_of(((double)i + sample) * alpha, sample * alpha, room)
                 : begin_of((double)(((float)i + (float)sample) * alpha_f32),
                            (double)((float)sample * alpha_f32), room);
  }
  if (n > 0) at[n - 1] = room;
}
static bool read_pool(kiln__composite *r, const kiln_ivalue *args, int n, pool *p) {
  kiln_tensor *t = SELF, *samples = ARG(3);
  const int rank = kiln_tensor_rank(t);
  int64_t list[2][KILN_MAX_RANK];
  static const char *const names[MOST] = {"width", "height", "time"};
  p->n = n;
  for (int k = 0; k < 2; k++) {
    int count;
    if (!kiln__composite_ok(r, kiln__arg_int_list(args, 1 + k, list[k], &count))) return false;
    for (int d = 1; count == 1 && d < n; d++) list[k][d] = list[k][0];
    if (count != 1 && count != n) {
      return FAIL(r, "fractional_max_pool%dd: %s must either be a single int or tuple of %d ints",
                  n, k ? "output_size" : "kernel_size", n);
    }
  }
  bool empty = rank != n + 1 && rank != n + 2;
  for (int d = rank - n - 1; !empty && d < rank; d++) empty = kiln_tensor_sizes(t)[d] == 0;
  if (empty) {
    return FAIL(r,
                "fractional_max_pool%dd(): Expected %dD or %dD tensor with non-zero "
                "sizes for all dimensions but the batch",
                n, n + 1, n + 2);
  }
  p->channels = kiln_tensor_sizes(t)[rank - n - 1];
  p->planes = p->channels * (rank == n + 2 ? kiln_tensor_sizes(t)[0] : 1);
  for (int d = 0; d < n; d++) {
    p->in[d] = kiln_tensor_sizes(t)[rank - n + d];
    p->size[d] = list[0][d];
    p->out[d] = list[1][d];
    if (p->size[d] < 1 || p->out[d] < 1 || p->size[d] > p->in[d] ||
        p->out[d] - (n == 2) > p->in[d] - p->size[d]) { /* in three one place must be left */
      return FAIL(r, "fractional_max_pool%dd(): pool %s %lld too large relative to input %s %lld",
                  n, names[n - 1 - d], (long long)p->size[d], names[n - 1 - d],
                  (long long)p->in[d]);
    }
  }
  if (kiln_tensor_rank(samples) != 3 || samples->numel != p->planes * n ||
      kiln_tensor_sizes(samples)[2] != n) {
    return FAIL(r, "Expect _random_samples to have %d values for each channel of the batch", n);
  }
  return true;
}
/* The greatest of a window that begins at `from` (one place a dimension), NaN before all others. */
static int64_t greatest(const pool *p, const double *x, const int64_t *from) {
  int64_t at[MOST] = {0}, best = -1;
  for (;;) {
    int64_t place = 0;
    for (int d = 0; d < p->n; d++) place = place * p->in[d] + from[d] + at[d];
    if (best < 0 || x[place] > x[best] || isnan(x[place])) best = place;
    int d = p->n - 1;
    while (d >= 0 && ++at[d] == p->size[d]) at[d--] = 0;
    if (d < 0) return best;
  }
}
/* self, kernel_size, output_size, random_samples [batch, channels, n] -> output, indices */
static kiln_tensor *fractional(kiln__composite *r, const kiln_ivalue *args, int n,
                               kiln_ivalue *outs) {
  kiln_tensor *t = SELF, *in, *numbers, *out, *places, *room;
  const int rank = kiln_tensor_rank(t);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  int64_t sizes[KILN_MAX_RANK], all = 0, *windows[MOST];
  pool p;
  if (!kiln_dtype_is_float(dtype)) {
    return kiln__composite_fail(r, kiln__not_implemented(r->call, dtype));
  }
  if (!read_pool(r, args, n, &p)) return NULL;
  memcpy(sizes, kiln_tensor_sizes(t), sizeof *sizes * (size_t)rank);
  for (int d = 0; d < n; d++) all += sizes[rank - n + d] = p.out[d];
  const double *x = kiln__composite_read(r, t, KILN_DTYPE_F64, &in);
  const double *sample = kiln__composite_read(r, ARG(3), KILN_DTYPE_F64, &numbers);
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, rank, sizes, &out);
  int64_t *index = kiln__composite_new(r, KILN_DTYPE_I64, rank, sizes, &places);
  int64_t *begins = kiln__composite_new(r, KILN_DTYPE_I64, 1, &all, &room);
  if (r->status) return NULL;
  for (int d = 0; d < n; d++) windows[d] = d ? windows[d - 1] + p.out[d - 1] : begins;
  int64_t plane = 1, window = 4;
  for (int d = 0; d < n; d++) plane *= p.in[d], window *= p.size[d];
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < p.planes && !kiln_budget_spent(&left, 4); i++, x += plane, sample += n) {
    for (int d = 0; d < n; d++) { /* in two dimensions, the width has the first number */
      place_windows(&p, d, sample[n == 2 ? 1 - d : d], dtype == KILN_DTYPE_F64, windows[d]);
    }
    int64_t at[MOST] = {0};
    for (int d = 0; d >= 0 && !kiln_budget_spent(&left, window);) {
      int64_t from[MOST] = {0};
      for (int k = 0; k < n; k++) from[k] = windows[k][at[k]];
      *index = greatest(&p, x, from);
      *to++ = x[*index++];
      for (d = n - 1; d >= 0 && ++at[d] == p.out[d]; d--) at[d] = 0;
    }
  }
  kiln__composite_give(r, &outs[1], places);
  return kiln__composite_to(r, out, dtype);
}
KILN_COMPOSITE(fractional_max_pool2d) { return fractional(r, args, 2, outs); }
KILN_COMPOSITE(fractional_max_pool3d) { return fractional(r, args, 3, outs); }
