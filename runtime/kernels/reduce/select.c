/* select.c: the k-th smallest of rows: kthvalue, median, nanmedian; the most frequent: mode.
 *
 * Quickselect (Hoare; the middle of three as pivot, as in Numerical Composites): which of several
 * equal elements kthvalue finds follows from its exchanges, so they are PyTorch's; the medians take
 * equal ones in the order of their places. NaN is the greatest.
 */
#include <math.h>
#include <string.h>

#include "runtime/kernels/composite.h"
#include "runtime/kernels/reduce/reduction.h"

/* Whole numbers or reals, with their places. */
typedef struct row {
  bool is_whole, by_place; /* the place decides between equal ones */
  int64_t *whole;
  double *real;
  int64_t *places;
  int64_t *left; /* of kiln_budget_spent; what is left out leaves the elements in the row */
} row;
static bool is_greater(const row *k, int64_t a, int64_t b) {
  if (k->is_whole) {
    if (k->whole[a] != k->whole[b]) return k->whole[a] > k->whole[b];
  } else {
    const double x = k->real[a], y = k->real[b];
    if (x != x || y != y) {
      if ((x != x) != (y != y)) return x != x;
    } else if (x != y) {
      return x > y;
    }
  }
  return k->by_place && k->places[a] > k->places[b];
}
static bool is_equal(const row *k, int64_t a, int64_t b) {
  return k->is_whole ? k->whole[a] == k->whole[b] : k->real[a] == k->real[b];
}
static void swap(const row *k, int64_t a, int64_t b) {
  const int64_t place = k->places[a];
  k->places[a] = k->places[b];
  k->places[b] = place;
  if (k->is_whole) {
    const int64_t x = k->whole[a];
    k->whole[a] = k->whole[b];
    k->whole[b] = x;
  } else {
    const double x = k->real[a];
    k->real[a] = k->real[b];
    k->real[b] = x;
  }
}
/* Afterwards element `at` is what stands there in order. */
static void quickselect(const row *k, int64_t n, int64_t at) {
  int64_t left = 0, right = n - 1;
  while (right > left) {
    if (right == left + 1) {
      if (is_greater(k, left, right)) swap(k, left, right);
      return;
    }
    swap(k, (left + right) >> 1, left + 1);
    if (is_greater(k, left + 1, right)) swap(k, left + 1, right);
    if (is_greater(k, left, right)) swap(k, left, right);
    if (is_greater(k, left + 1, left)) swap(k, left + 1, left);
    int64_t i = left + 1, j = right; /* the pivot stands at left */
    for (;;) {
      do i++;
      while (is_greater(k, left, i));
      do j--;
      while (is_greater(k, j, left));
      if (j < i) break;
      if (kiln_budget_spent(k->left, 8)) return;
      swap(k, i, j);
    }
    swap(k, left, j);
    if (j <= at) left = i;
    if (j >= at) right = j - 1;
  }
}

/* -- Introsort (Musser, 1997), with the exchanges of GNU's std::sort --
 *
 * Which of equal elements comes last is seen in mode()'s places. */

enum { SMALL = 16 }; /* left to the insertion sort at the end */

/* The middle of a, b and c goes to `to`. */
static void middle_to(const row *k, int64_t to, int64_t a, int64_t b, int64_t c) {
  if (is_greater(k, b, a))
    swap(k, to, is_greater(k, c, b) ? b : is_greater(k, c, a) ? c : a);
  else
    swap(k, to, is_greater(k, c, a) ? a : is_greater(k, c, b) ? c : b);
}
static int64_t partition(const row *k, int64_t first, int64_t last) {
  middle_to(k, first, first + 1, first + (last - first) / 2, last - 1);
  int64_t i = first + 1, j = last; /* the pivot stands at first */
  for (;;) {
    while (is_greater(k, first, i)) i++;
    j--;
    while (is_greater(k, j, first)) j--;
    if (i >= j || kiln_budget_spent(k->left, 8)) return i;
    swap(k, i++, j);
  }
}
static void sift_down(const row *k, int64_t first, int64_t n, int64_t i) {
  for (int64_t child; (child = 2 * i + 1) < n; i = child) {
    if (child + 1 < n && is_greater(k, first + child + 1, first + child)) child++;
    if (!is_greater(k, first + child, first + i)) return;
    swap(k, first + i, first + child);
  }
}
static void heap_sort(const row *k, int64_t first, int64_t last) {
  const int64_t n = last - first;
  for (int64_t i = n / 2 - 1; i >= 0 && !kiln_budget_spent(k->left, 16); i--) {
    sift_down(k, first, n, i);
  }
  for (int64_t i = n - 1; i > 0 && !kiln_budget_spent(k->left, 64); i--) {
    swap(k, first, first + i);
    sift_down(k, first, i, 0);
  }
}
/* Sorts all but runs of SMALL; the depth bounds the recursion. */
static void intro_sort(const row *k, int64_t first, int64_t last, int depth) {
  while (last - first > SMALL && !kiln_budget_spent(k->left, SMALL)) {
    if (depth-- == 0) {
      heap_sort(k, first, last);
      return;
    }
    const int64_t cut = partition(k, first, last);
    intro_sort(k, cut, last, depth);
    last = cut;
  }
}
static void sort_row(const row *k, int64_t n) {
  int depth = 0;
  for (int64_t m = n; m > 1; m >>= 1) depth += 2;
  intro_sort(k, 0, n, depth);
  if (kiln_budget_spent(k->left, 1)) return; /* insertion is quick only where all else is done */
  for (int64_t i = 1; i < n && !kiln_budget_spent(k->left, 16); i++) { /* equal ones in order */
    for (int64_t j = i; j > 0 && is_greater(k, j - 1, j); j--) swap(k, j - 1, j);
  }
}

typedef enum pick_kind { KTH, MEDIAN, NAN_MEDIAN, MODE } pick_kind;

/* Index in the row of the wanted element; the row may be reordered. */
static int64_t find_rank(const row *k, int64_t n, pick_kind kind, int64_t wanted) {
  int64_t nans = 0;
  if (kind == KTH) {
    quickselect(k, n, wanted - 1);
    return wanted - 1;
  }
  for (int64_t i = 0; !k->is_whole && i < n; i++) {
    if (k->real[i] == k->real[i]) continue;
    if (kind == MEDIAN) return i; /* the first NaN */
    nans++;
  }
  const int64_t middle = nans == n ? 0 : (n - nans - 1) / 2;
  const row ordered = {k->is_whole, true, k->whole, k->real, k->places, k->left};
  quickselect(&ordered, n, middle);
  return middle;
}
/* The most frequent value, the least of several; NaN is equal to none. The place of its last one.
 */
static int64_t find_mode(const row *k, int64_t n) {
  int64_t best = 0, best_count = 0;
  sort_row(k, n);
  for (int64_t i = 0; i < n;) {
    int64_t end = i + 1;
    while (end < n && is_equal(k, end, i)) end++;
    if (end - i > best_count) {
      best_count = end - i;
      best = end - 1;
    }
    i = end;
  }
  return best;
}
/* Values and places of one element of each row along `mask`'s dimension (or of all elements). */
static kiln_tensor *pick_rows(kiln__composite *r, kiln_tensor *t, uint64_t mask, bool keepdim,
                              pick_kind kind, int64_t wanted, kiln_ivalue *outs, bool with_places) {
  const kiln_dtype dtype = kiln_tensor_dtype(t);
  const bool whole = kiln_dtype_is_int(dtype, true);
  kiln_folded folded;
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  kiln_tensor *values, *places, *scratch;
  const kiln_dtype wide = whole ? KILN_DTYPE_I64 : KILN_DTYPE_F64;
  if (!kiln__composite_check_real(r, t)) return NULL;
  kiln__reduced_sizes(t, mask, keepdim, &rank, sizes);
  /* 8-byte elements of either kind */
  const int64_t *from = kiln__composite_fold(r, t, mask, wide, &folded);
  if (!from) return NULL;
  const int64_t n = folded.length, two = 2 * n;
  void *to = kiln__composite_new(r, wide, rank, sizes, &values);
  int64_t *at = kiln__composite_new(r, KILN_DTYPE_I64, rank, sizes, &places);
  int64_t *block = kiln__composite_new(r, KILN_DTYPE_I64, 1, &two, &scratch);
  if (r->status) return NULL;
  const int64_t rows = n > 0 ? folded.outer * folded.inner : 0;
  int64_t left = KILN_BUDGET_ITEMS;
  const row k = {whole, false, block, (double *)(void *)block, block + n, &left};
  for (int64_t e = 0; e < rows && !kiln_budget_spent(&left, n); e++) {
    const int64_t o = e / folded.inner, c = e % folded.inner;
    for (int64_t i = 0; i < n; i++) {
      block[i] = from[(o * n + i) * folded.inner + c];
      block[n + i] = i;
    }
    const int64_t found = kind == MODE ? find_mode(&k, n) : find_rank(&k, n, kind, wanted);
    ((int64_t *)to)[e] = block[found];
    at[e] = block[n + found];
  }
  kiln__composite_give(r, &outs[0], kiln__composite_to(r, values, dtype));
  if (with_places) kiln__composite_give(r, &outs[1], places);
  return NULL;
}
static kiln_tensor *pick_dim(kiln__composite *r, kiln_tensor *t, int64_t wanted_dim, bool keepdim,
                             pick_kind kind, int64_t k, const char *name, kiln_ivalue *outs) {
  const int rank = kiln_tensor_rank(t), dim = kiln__composite_dim(r, wanted_dim, rank);
  const int64_t n = rank ? kiln__composite_size(t, dim) : 1;
  KILN_ASSERT(dim >= 0);
  if (r->status) return NULL;
  if (kind == KTH && (k < 1 || k > n)) {
    return FAIL(r, "kthvalue(): selected number k out of range for dimension %d", dim);
  }
  if (n == 0) {
    return FAIL(r, "%s(): Expected reduction dim %d to have non-zero size.", name, dim);
  }
  return pick_rows(r, t, rank ? 1ull << dim : 0, keepdim, kind, k, outs, true);
}
static kiln_tensor *pick_all(kiln__composite *r, kiln_tensor *t, pick_kind kind,
                             kiln_ivalue *outs) {
  if (t->numel == 0) { /* NaN, or the least whole number */
    kiln_tensor *none;
    void *data = kiln__composite_new(r, kiln_tensor_dtype(t), 0, NULL, &none);
    if (data) kiln__number_store(kiln__number_float(NAN), kiln_tensor_dtype(t), data);
    return none;
  }
  kiln_tensor *flat = kiln__composite_flat(r, t);
  return flat ? pick_rows(r, flat, 1, false, kind, 0, outs, false) : NULL;
}
KILN_COMPOSITE(kthvalue) {
  return pick_dim(r, SELF, kiln_arg_int(args, 2), kiln_arg_bool(args, 3), KTH,
                  kiln_arg_int(args, 1), "kthvalue", outs);
}
KILN_COMPOSITE(median) { return pick_all(r, SELF, MEDIAN, outs); }
KILN_COMPOSITE(nanmedian) { return pick_all(r, SELF, NAN_MEDIAN, outs); }
KILN_COMPOSITE(median_dim) {
  return pick_dim(r, SELF, kiln_arg_int(args, 1), kiln_arg_bool(args, 2), MEDIAN, 0, "median",
                  outs);
}
KILN_COMPOSITE(nanmedian_dim) {
  return pick_dim(r, SELF, kiln_arg_int(args, 1), kiln_arg_bool(args, 2), NAN_MEDIAN, 0,
                  "nanmedian", outs);
}
KILN_COMPOSITE(mode) {
  return pick_dim(r, SELF, kiln_arg_int(args, 1), kiln_arg_bool(args, 2), MODE, 0, "mode", outs);
}
