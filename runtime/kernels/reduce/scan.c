/* scan.c: running extremes with their places, and running logarithms of sums. */
#include <math.h>

#include "runtime/kernels/composite.h"

#include <complex.h> /* last: its words are not for other headers */
#undef I             /* of complex.h: here it makes an argument */
#define I(i) kiln_int(i)

/* Rows along a dimension: element i of row `row` is at first_of(row) + i * inner. */
typedef struct lines {
  int64_t length, inner, count;
} lines;
static lines lines_of(const kiln_tensor *t, int dim) {
  lines l = {.length = kiln__composite_size(t, dim), .inner = 1};
  for (int d = dim + 1; d < kiln_tensor_rank(t); d++) l.inner *= kiln_tensor_sizes(t)[d];
  l.count = l.length ? t->numel / l.length : 0;
  return l;
}
static int64_t first_of(const lines *l, int64_t row) {
  return row / l->inner * l->length * l->inner + row % l->inner;
}

/* The later of equal elements is the place; NaN stays from where it is met. */
static kiln_tensor *running_extreme(kiln__composite *r, kiln_tensor *t, int64_t wanted,
                                    bool largest, kiln_ivalue *outs) {
  const int rank = kiln_tensor_rank(t), dim = kiln__composite_dim(r, wanted, rank);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const bool whole = kiln_dtype_is_int(dtype, true);
  kiln_tensor *in, *values, *indices;
  if (kiln_dtype_is_complex(dtype)) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, dtype));
  }
  const kiln_dtype work = whole ? KILN_DTYPE_I64 : KILN_DTYPE_F64;
  const int64_t *from = kiln__composite_read(r, t, work, &in); /* 8 bytes of either kind */
  int64_t *to = kiln__composite_new(r, work, rank, kiln_tensor_sizes(t), &values);
  int64_t *place = kiln__composite_new(r, KILN_DTYPE_I64, rank, kiln_tensor_sizes(t), &indices);
  if (r->status) return NULL;
  const lines l = lines_of(t, dim);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t row = 0; row < l.count; row++) {
    const int64_t first = first_of(&l, row);
    int64_t best = 0;
    for (int64_t i = 0; i < l.length && !kiln_budget_spent(&left, 4); i++) {
      const int64_t at = first + i * l.inner, was = first + best * l.inner;
      bool better;
      if (whole) {
        better = largest ? from[at] >= from[was] : from[at] <= from[was];
      } else {
        const double x = ((const double *)(const void *)from)[at],
                     y = ((const double *)(const void *)from)[was];
        better = x != x || (largest ? x >= y : x <= y);
      }
      if (better) best = i;
      to[at] = from[first + best * l.inner];
      place[at] = best;
    }
  }
  kiln__composite_give(r, &outs[1], indices);
  return kiln__composite_to(r, values, dtype);
}
KILN_COMPOSITE(cummax) { return running_extreme(r, SELF, kiln_arg_int(args, 1), true, outs); }
KILN_COMPOSITE(cummin) { return running_extreme(r, SELF, kiln_arg_int(args, 1), false, outs); }

/* log(exp(a) + exp(b)); a and b of one infinite kind give it back. */
static double log_add(double a, double b) {
  const double top = a != a || a > b ? a : b, low = top == a ? b : a;
  return top != top || isinf(top) ? top + (low != low ? low : 0) : top + log1p(exp(low - top));
}
static double _Complex log_add_complex(double _Complex a, double _Complex b) {
  const double _Complex top = creal(a) < creal(b) ? b : a, low = top == a ? b : a;
  if (creal(top) == -(double)INFINITY) return top;
  return top + clog(1 + cexp(low - top));
}
KILN_COMPOSITE(logcumsumexp) {
  kiln_tensor *t = SELF, *in, *out;
  const int rank = kiln_tensor_rank(t), dim = kiln__composite_dim(r, kiln_arg_int(args, 1), rank);
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const bool parts = kiln_dtype_is_complex(dtype);
  if (!kiln_dtype_is_float(dtype) && !parts) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, dtype));
  }
  const kiln_dtype work = parts ? KILN_DTYPE_C128 : KILN_DTYPE_F64;
  const double *from = kiln__composite_read(r, t, work, &in);
  double *to = kiln__composite_new(r, work, rank, kiln_tensor_sizes(t), &out);
  if (r->status) return NULL;
  const lines l = lines_of(t, dim);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t row = 0; row < l.count; row++) {
    const int64_t first = first_of(&l, row);
    double sum = -INFINITY;
    double _Complex whole = -INFINITY;
    for (int64_t i = 0; parts && i < l.length && !kiln_budget_spent(&left, 32); i++) {
      whole = log_add_complex(whole,
                              ((const double _Complex *)(const void *)from)[first + i * l.inner]);
      ((double _Complex *)(void *)to)[first + i * l.inner] = whole;
    }
    if (parts) continue;
    for (int64_t i = 0; i < l.length && !kiln_budget_spent(&left, 16); i++) {
      sum = log_add(sum, from[first + i * l.inner]);
      to[first + i * l.inner] = sum;
    }
  }
  return kiln__composite_to(r, out, dtype);
}

/* Combinations of r elements of a vector, in order: places, and then the elements. */
KILN_COMPOSITE(combinations) {
  const int64_t n = SELF->numel, k = kiln_arg_int(args, 1);
  const bool again = kiln_arg_bool(args, 2);
  int64_t place[64], sizes[2] = {0, k};
  kiln_tensor *places;
  if (kiln_tensor_rank(SELF) != 1) {
    FAIL(r, "Expect a 1D vector, but got shape %s", kiln__sizes_of(SELF).text);
  } else if (k < 0) {
    FAIL(r, "Expect a non-negative number, but got %lld", (long long)k);
  } else if (k > 64) {
    FAIL(r, "combinations of more than 64 elements are not supported");
  }
  if (r->status) return NULL;
  if (k == 0) return kiln__composite_empty(r, kiln_tensor_dtype(SELF));
  const int64_t from = again ? n + k - 1 : n; /* the count is the binomial of from and k */
  sizes[0] = n > 0 && from >= k;
  for (int64_t i = 0; i < k && sizes[0]; i++) {
    if (!kiln_checked_mul_i64(sizes[0], from - i, &sizes[0])) {
      return FAIL(r, "too many combinations");
    }
    sizes[0] /= i + 1;
  }
  int64_t *to = kiln__composite_new(r, KILN_DTYPE_I64, 2, sizes, &places);
  if (!to) return NULL;
  for (int64_t i = 0; i < k; i++) place[i] = again ? 0 : i;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t row = 0; row < sizes[0] && !kiln_budget_spent(&left, 2 * k); row++) {
    for (int64_t i = 0; i < k; i++) to[row * k + i] = place[i];
    int64_t i = k - 1;
    while (i >= 0 && place[i] == (again ? n - 1 : n - k + i)) i--;
    if (i < 0) break;
    place[i]++;
    for (int64_t j = i + 1; j < k; j++) place[j] = again ? place[i] : place[j - 1] + 1;
  }
  kiln_tensor *line = kiln__composite_flat(r, places);
  line = KILN_STEP(r, index_select, T(SELF), I(0), T(line));
  return kiln__composite_reshape(r, line, 2, sizes);
}
