/* unique.c: the distinct elements or slices of a tensor: _unique2, unique_dim, unique_consecutive.
 *
 * Slices are rows of keys (int64 for whole numbers, else double); where order does not matter to
 * the operator they are sorted first, by a stable merge sort of their indices. Runs of equal rows
 * are then one. NaN is equal to nothing. */
#include <string.h>

#include "runtime/kernels/composite.h"

typedef struct rows {
  const int64_t *whole; /* one of the two */
  const double *real;
  int64_t count, width;
} rows;

static int compare_rows(const rows *k, int64_t a, int64_t b) {
  for (int64_t i = 0; i < k->width; i++) {
    if (k->whole) {
      const int64_t x = k->whole[a * k->width + i], y = k->whole[b * k->width + i];
      if (x != y) return x < y ? -1 : 1;
    } else {
      const double x = k->real[a * k->width + i], y = k->real[b * k->width + i];
      if (x < y) return -1;
      if (x > y) return 1;
      if (x != y) { /* NaN is the greatest, and differs from itself */
        const bool nx = x != x, ny = y != y;
        if (nx != ny) return nx ? 1 : -1;
        return 2;
      }
    }
  }
  return 0;
}
/* What is left out leaves an order all the same. */
static void sort_rows(const rows *k, int64_t *order, int64_t *spare) {
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t width = 1; width < k->count; width *= 2) {
    for (int64_t from = 0; from < k->count; from += 2 * width) {
      const int64_t middle = from + width < k->count ? from + width : k->count;
      const int64_t end = from + 2 * width < k->count ? from + 2 * width : k->count;
      int64_t a = from, b = middle;
      for (int64_t i = from; i < end; i++) {
        if (kiln_budget_spent(&left, 2 + k->width)) return;
        const bool right = a >= middle || (b < end && compare_rows(k, order[b], order[a]) == -1);
        spare[i] = right ? order[b++] : order[a++];
      }
    }
    memcpy(order, spare, sizeof(int64_t) * (size_t)k->count);
  }
}

typedef struct unique {
  kiln_tensor *keys; /* [count, width] after reading */
  int64_t count;
  kiln_tensor *firsts, *inverse, *counts; /* firsts: of each run, the index of its first row */
} unique;

/* Rows of t, which is contiguous with the slices in front. */
static bool find_runs(kiln__composite *r, kiln_tensor *t, int64_t count, bool sorted, unique *u) {
  const kiln_dtype dtype = kiln__composite_dtype(t);
  const bool whole = kiln_dtype_is_int(dtype, true);
  kiln_tensor *keys, *block;
  if (!kiln__composite_ok(r, kiln_dtype_is_complex(dtype) ? kiln__not_implemented(r->call, dtype)
                                                          : kiln__check_dtype(r->call, dtype))) {
    return false;
  }
  const void *data = kiln__composite_read(r, t, whole ? KILN_DTYPE_I64 : KILN_DTYPE_F64, &keys);
  int64_t *order = kiln__composite_new(r, KILN_DTYPE_I64, 1, (const int64_t[]){3 * count}, &block);
  int64_t *inverse = kiln__composite_new(r, KILN_DTYPE_I64, 1, &count, &u->inverse);
  if (r->status) return false;
  const rows k = {whole ? data : NULL, whole ? NULL : data, count, count ? keys->numel / count : 0};
  int64_t *spare = order + count, *starts = order + 2 * count, runs = 0;
  for (int64_t i = 0; i < count; i++) order[i] = i;
  if (sorted) sort_rows(&k, order, spare);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < count && !kiln_budget_spent(&left, 2 + k.width); i++) {
    if (i == 0 || compare_rows(&k, order[i - 1], order[i]) != 0) starts[runs++] = i;
    inverse[order[i]] = runs - 1;
  }
  int64_t *firsts = kiln__composite_new(r, KILN_DTYPE_I64, 1, &runs, &u->firsts);
  int64_t *counts = kiln__composite_new(r, KILN_DTYPE_I64, 1, &runs, &u->counts);
  if (r->status) return false;
  for (int64_t i = 0; i < runs && !kiln_budget_spent(&left, 2); i++) {
    firsts[i] = order[starts[i]];
    counts[i] = (i + 1 < runs ? starts[i + 1] : count) - starts[i];
  }
  u->count = runs;
  return true;
}
static kiln_tensor *give_unique(kiln__composite *r, const unique *u, kiln_tensor *values,
                                bool inverse, bool counts, kiln_ivalue *outs) {
  kiln_tensor *nothing = kiln__composite_empty(r, KILN_DTYPE_I64);
  kiln__composite_give(r, &outs[1], inverse ? u->inverse : nothing);
  kiln__composite_give(r, &outs[2], counts ? u->counts : nothing);
  return values;
}
static kiln_tensor *unique_flat(kiln__composite *r, kiln_tensor *t, bool sorted, bool inverse,
                                bool counts, kiln_ivalue *outs) {
  unique u = {0};
  const int64_t n = t->numel;
  kiln_tensor *flat = kiln__composite_flat(r, t);
  if (!find_runs(r, flat, n, sorted, &u)) return NULL;
  u.inverse = kiln__composite_reshape(r, u.inverse, kiln_tensor_rank(t), kiln_tensor_sizes(t));
  return give_unique(r, &u, KILN_STEP(r, index_select, T(flat), I(0), T(u.firsts)), inverse, counts,
                     outs);
}
static kiln_tensor *unique_slices(kiln__composite *r, kiln_tensor *t, int64_t wanted, bool sorted,
                                  bool inverse, bool counts, kiln_ivalue *outs) {
  unique u = {0};
  const int rank = kiln_tensor_rank(t), dim = kiln__composite_dim(r, wanted, rank);
  if (r->status) return NULL;
  const int64_t n = rank ? kiln_tensor_sizes(t)[dim] : 1;
  int zeros = 0;
  for (int d = 0; d < rank; d++) zeros += d != dim && kiln_tensor_sizes(t)[d] == 0;
  if (zeros && n != 0) {
    return FAIL(
        r,
        "There are %d zero-sized dimensions, and they aren't selected, so unique cannot be applied",
        zeros);
  }
  if (rank == 0) return unique_flat(r, t, sorted, inverse, counts, outs);
  kiln_tensor *turned = KILN_STEP(r, movedim, T(t), I(dim), I(0));
  if (!find_runs(r, turned, n, sorted, &u)) return NULL;
  /* slice by slice in memory, as PyTorch's */
  kiln_tensor *slices = KILN_STEP(r, index_select, T(turned), I(0), T(u.firsts));
  return give_unique(r, &u, KILN_STEP(r, movedim, T(slices), I(0), I(dim)), inverse, counts, outs);
}
/* self, sorted, return_inverse, return_counts: always sorted. */
KILN_COMPOSITE(_unique2) {
  return unique_flat(r, SELF, true, kiln_arg_bool(args, 2), kiln_arg_bool(args, 3), outs);
}
KILN_COMPOSITE(unique_dim) {
  return unique_slices(r, SELF, kiln_arg_int(args, 1), true, kiln_arg_bool(args, 3),
                       kiln_arg_bool(args, 4), outs);
}
KILN_COMPOSITE(unique_consecutive) {
  const bool inverse = kiln_arg_bool(args, 1), counts = kiln_arg_bool(args, 2);
  if (kiln_arg_is_none(args, 3)) return unique_flat(r, SELF, false, inverse, counts, outs);
  return unique_slices(r, SELF, kiln_arg_int(args, 3), false, inverse, counts, outs);
}
/* self, sorted, return_inverse -> values, inverse */
KILN_COMPOSITE(_unique) {
  kiln_tensor *both[3];
  KILN_STEP_MANY(r, _unique2, 3, both, args[0], args[1], args[2], B(false));
  kiln__composite_give(r, &outs[1], both[1]);
  return both[0];
}
