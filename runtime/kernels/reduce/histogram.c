/* histogram.c: counts of points in boxes: histogram (numbers on a line) and histogramdd. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/composite.h"

typedef struct axis {
  kiln_tensor *edges; /* a vector, ascending */
  const double *edge;
  int64_t bins;
} axis;
typedef struct points {
  const char *name; /* of the operator */
  const double *x;  /* [count, dims] */
  int64_t count;
  int dims;
  kiln_dtype dtype;
} points;

/* The bin that x is in, -1: none. The last one has its right edge. */
static int64_t bin_of(const axis *a, double x) {
  int64_t low = 0, high = a->bins + 1;
  if (a->bins == 0 || !(x >= a->edge[0] && x <= a->edge[a->bins])) return -1;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (a->edge[middle] <= x)
      low = middle + 1;
    else
      high = middle;
  }
  return low <= a->bins ? low - 1 : a->bins - 1;
}
static void given_edges(kiln__composite *r, const points *p, kiln_tensor *edges, axis *out) {
  kiln_tensor *dense;
  if (kiln_tensor_rank(edges) != 1 || edges->numel < 1 || kiln_tensor_dtype(edges) != p->dtype) {
    FAIL(r,
         "%s: bins tensor should have one dimension, an element at least and the dtype "
         "of the input",
         p->name);
    return;
  }
  out->edges = edges;
  out->edge = kiln__composite_read(r, edges, KILN_DTYPE_F64, &dense);
  out->bins = edges->numel - 1;
}
/* `bins` equal ones of a range (a list of the ends of all axes, or None: from the least point to
 * the greatest). */
static void equal_bins(kiln__composite *r, const points *p, int d, int64_t bins, kiln_ivalue range,
                       axis *out) {
  double low = p->count ? p->x[d] : 0, high = p->count ? p->x[d] : 1;
  if (bins <= 0 || bins == INT64_MAX) {
    FAIL(r, "%s: bins must be > 0, but got %lld for dimension %d", p->name, (long long)bins, d);
    return;
  }
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 1; i < p->count && !kiln_budget_spent(&left, 2); i++) {
    const double x = p->x[i * p->dims + d];
    if (x < low || x != x) low = x;
    if (x > high || x != x) high = x;
  }
  if (range.tag == KILN_TAG_LIST) {
    if (range.u.list->count != 2 * p->dims) {
      FAIL(r, "%s: range should have %d elements", p->name, 2 * p->dims);
      return;
    }
    low = range.u.list->items[2 * d].u.f;
    high = range.u.list->items[2 * d + 1].u.f;
  }
  if (!isfinite(low) || !isfinite(high) || low > high) {
    FAIL(r, "%s: range [%g, %g] is not finite, or min > max", p->name, low, high);
    return;
  }
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  kiln_tensor *edges =
      KILN_STEP(r, linspace, F(low), F(high), I(bins + 1), I(p->dtype), NONE, NONE, NONE);
  if (edges) given_edges(r, p, edges, out);
}
/* Counts become densities: of the whole, and of the boxes' size. */
static void divide(const points *p, const axis *axes, double *to, int64_t n) {
  double total = 0;
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < n && !kiln_budget_spent(&left, 1); i++) total += to[i];
  for (int64_t i = 0; i < n && !kiln_budget_spent(&left, 8); i++) {
    int64_t rest = i;
    to[i] /= total;
    for (int d = p->dims - 1; d >= 0; rest /= axes[d].bins, d--) {
      KILN_ASSERT(axes[d].bins > 0);
      const double *edge = axes[d].edge + rest % axes[d].bins;
      to[i] /= edge[1] - edge[0];
    }
  }
}
/* NULL after a failure. */
static kiln_tensor *count(kiln__composite *r, const points *p, const axis *axes,
                          kiln_tensor *weight, bool density) {
  int64_t sizes[KILN_MAX_RANK];
  kiln_tensor *result, *dense;
  for (int d = 0; d < p->dims; d++) sizes[d] = axes[d].bins;
  const double *w = weight ? kiln__composite_read(r, weight, KILN_DTYPE_F64, &dense) : NULL;
  double *to = kiln__composite_new(r, KILN_DTYPE_F64, p->dims, sizes, &result);
  if (r->status) return NULL;
  kiln__zero(to, (size_t)result->numel * sizeof *to);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < p->count && !kiln_budget_spent(&left, 16 * p->dims); i++) {
    int64_t at = 0;
    for (int d = 0; d < p->dims && at >= 0; d++) {
      const int64_t bin = bin_of(&axes[d], p->x[i * p->dims + d]);
      at = bin < 0 ? -1 : at * axes[d].bins + bin;
    }
    if (at >= 0) to[at] += w ? w[i] : 1;
  }
  if (density) divide(p, axes, to, result->numel);
  return kiln__composite_to(r, result, p->dtype);
}
/* t's elements as points of `dims` numbers. */
static bool read_points(kiln__composite *r, const char *name, kiln_tensor *t, int dims,
                        const kiln_tensor *weight, points *p) {
  kiln_tensor *dense;
  *p = (points){.name = name, .dims = dims, .dtype = kiln_tensor_dtype(t)};
  p->count = dims ? t->numel / dims : 0;
  if (p->dtype != KILN_DTYPE_F32 && p->dtype != KILN_DTYPE_F64) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, p->dtype));
  } else if (weight && (weight->numel != p->count || kiln_tensor_dtype(weight) != p->dtype)) {
    FAIL(r,
         "%s: if weight tensor is provided it should have the same shape and dtype as "
         "the input tensor",
         name);
  }
  p->x = kiln__composite_read(r, t, KILN_DTYPE_F64, &dense);
  return !r->status;
}
/* self, bins (edges or their number), then range unless edges are given, weight, density */
KILN_COMPOSITE(histogram) {
  kiln_tensor *edges = args[1].tag == KILN_TAG_TENSOR ? args[1].u.tensor : NULL;
  const int rest = edges ? 2 : 3;
  points p;
  axis one = {0};
  if (!read_points(r, "torch.histogram()", SELF, 1, kiln_arg_tensor_opt(args, rest), &p))
    return NULL;
  if (edges)
    given_edges(r, &p, edges, &one);
  else
    equal_bins(r, &p, 0, kiln_arg_int(args, 1), args[2], &one);
  if (r->status) return NULL;
  kiln__composite_give(r, &outs[1], kiln__composite_copy(r, one.edges));
  return count(r, &p, &one, kiln_arg_tensor_opt(args, rest), kiln_arg_bool(args, rest + 1));
}
/* self, bins (of all axes, of each, or edges of each), range, weight, density -> hist, edges */
KILN_COMPOSITE(histogramdd) {
  const char *name = "torch.histogramdd()";
  const int rank = kiln_tensor_rank(SELF);
  const int64_t dims = kiln__composite_size(SELF, -1);
  const kiln_list *each = args[1].tag == KILN_TAG_LIST ? args[1].u.list : NULL;
  points p;
  axis axes[KILN_MAX_RANK] = {0};
  kiln_list *found;
  if (rank < 2 || dims > KILN_MAX_RANK) {
    FAIL(r, "%s: input tensor should have at least 2 dimensions, and points at most %d", name,
         KILN_MAX_RANK);
  } else if (each && each->count != dims) {
    FAIL(r, "%s: The size of bins must be equal to the innermost dimension of the input", name);
  }
  if (r->status) return NULL;
  if (!read_points(r, name, SELF, (int)dims, kiln_arg_tensor_opt(args, 3), &p)) return NULL;
  for (int d = 0; d < p.dims && !r->status; d++) {
    const kiln_ivalue bins = each ? each->items[d] : args[1];
    if (bins.tag == KILN_TAG_TENSOR)
      given_edges(r, &p, bins.u.tensor, &axes[d]);
    else
      equal_bins(r, &p, d, bins.u.i, args[2], &axes[d]);
  }
  if (r->status ||
      !kiln__composite_ok(r, kiln__new_list(r->call, KILN_TYPE_TENSOR, dims, &found))) {
    return NULL;
  }
  outs[1] = kiln_of_box(found);
  for (int d = 0; d < p.dims; d++) {
    kiln_tensor *copy = kiln__composite_copy(r, axes[d].edges);
    if (!copy ||
        !kiln__composite_ok(r, kiln_list_push(found, kiln_of_tensor(kiln_tensor_retain(copy))))) {
      return NULL;
    }
  }
  return count(r, &p, axes, kiln_arg_tensor_opt(args, 3), kiln_arg_bool(args, 4));
}
