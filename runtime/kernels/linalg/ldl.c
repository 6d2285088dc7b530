/* ldl.c: P L D L^T P^T of symmetric (L^H of Hermitian) matrices, as LAPACK's sytrf gives it,
 * and solutions from it.
 *
 * Bunch and Kaufman's partial pivoting (1977), lower: blocks of D are single numbers or 2 x 2,
 * where the diagonal is small beside the rest of its column and row; so an indefinite matrix is
 * stable. Pivots count from 1; those of a 2 x 2 block are equal and negative. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/linalg/linalg.h"

typedef struct ldl {
  z *a; /* [n, n], row-major; only what is on and below the diagonal counts */
  int64_t n;
  bool hermitian;
} ldl;

static inline z *at(const ldl *f, int64_t row, int64_t column) {
  return f->a + row * f->n + column;
}
static inline z turned(const ldl *f, z x) { return f->hermitian ? z_conj(x) : x; }
/* The size that pivots are chosen by. */
static inline double size_of(z x) { return fabs(x.re) + fabs(x.im); }
static inline double diagonal_size(const ldl *f, int64_t i) {
  return f->hermitian ? fabs(at(f, i, i)->re) : size_of(*at(f, i, i));
}
static inline void swap(z *a, z *b) {
  const z kept = *a;
  *a = *b;
  *b = kept;
}

/* Which row comes to the next place, and whether the block has `wide` 2. -1: the column is 0. */
static int64_t choose(const ldl *f, int64_t k, bool *wide) {
  const double alpha = (1 + sqrt(17)) / 8, own = diagonal_size(f, k);
  int64_t most = k;
  double column = 0, row = 0;
  *wide = false;
  for (int64_t i = k + 1; i < f->n; i++) {
    if (size_of(*at(f, i, k)) > column) column = size_of(*at(f, i, k)), most = i;
  }
  if (own != own || (own == 0 && column == 0)) return -1;
  if (own >= alpha * column) return k;
  for (int64_t j = k; j < most; j++) row = fmax(row, size_of(*at(f, most, j)));
  for (int64_t i = most + 1; i < f->n; i++) row = fmax(row, size_of(*at(f, i, most)));
  if (own >= alpha * column * (column / row)) return k;
  *wide = !(diagonal_size(f, most) >= alpha * row);
  return most;
}
/* Rows and columns `low` and `high` are exchanged, from the column k on. */
static void exchange(const ldl *f, int64_t k, int64_t low, int64_t high) {
  for (int64_t i = high + 1; i < f->n; i++) swap(at(f, i, low), at(f, i, high));
  for (int64_t j = low + 1; j < high; j++) {
    const z kept = turned(f, *at(f, j, low));
    *at(f, j, low) = turned(f, *at(f, high, j));
    *at(f, high, j) = kept;
  }
  *at(f, high, low) = turned(f, *at(f, high, low));
  swap(at(f, low, low), at(f, high, high));
  if (low > k) swap(at(f, low, k), at(f, high, k));
}
/* The rest loses what a single pivot explains; the column becomes L's. */
static void eliminate_one(const ldl *f, int64_t k) {
  const z pivot = *at(f, k, k);
  for (int64_t j = k + 1; j < f->n; j++) {
    const z factor = turned(f, z_over(*at(f, j, k), pivot));
    for (int64_t i = j; i < f->n; i++) {
      *at(f, i, j) = z_sub(*at(f, i, j), z_mul(*at(f, i, k), factor));
    }
    if (f->hermitian) at(f, j, j)->im = 0;
  }
  for (int64_t i = k + 1; i < f->n; i++) *at(f, i, k) = z_over(*at(f, i, k), pivot);
}
/* x [2] becomes the solution of the block at k times it, scaled by its off-diagonal number. */
static void solve_block(const ldl *f, int64_t k, z *x, z *y) {
  const z off = *at(f, k + 1, k), turned_off = turned(f, off);
  const z first = z_over(*at(f, k, k), turned_off), last = z_over(*at(f, k + 1, k + 1), off);
  const z below = z_sub(z_mul(first, last), (z){1, 0});
  const z p = z_over(*x, turned_off), q = z_over(*y, off);
  *x = z_over(z_sub(z_mul(last, p), q), below);
  *y = z_over(z_sub(z_mul(first, q), p), below);
}
static void eliminate_two(const ldl *f, int64_t k) {
  for (int64_t j = k + 2; j < f->n; j++) {
    z x = turned(f, *at(f, j, k)), y = turned(f, *at(f, j, k + 1));
    solve_block(f, k, &x, &y);
    for (int64_t i = j; i < f->n; i++) {
      const z part = z_add(z_mul(*at(f, i, k), x), z_mul(*at(f, i, k + 1), y));
      *at(f, i, j) = z_sub(*at(f, i, j), part);
    }
    *at(f, j, k) = turned(f, x);
    *at(f, j, k + 1) = turned(f, y);
    if (f->hermitian) at(f, j, j)->im = 0;
  }
}
/* The order of the first block that is 0, from 1; 0: none. */
static int64_t factor(const ldl *f, int64_t *pivot) {
  int64_t info = 0;
  bool wide;
  for (int64_t i = 0; f->hermitian && i < f->n; i++) at(f, i, i)->im = 0;
  for (int64_t k = 0; k < f->n; k += 1 + wide) {
    int64_t from = choose(f, k, &wide);
    if (from < 0) {
      if (!info) info = k + 1;
      pivot[k] = k + 1;
      continue;
    }
    if (from != k + wide) exchange(f, k, k + wide, from);
    if (wide) {
      pivot[k] = pivot[k + 1] = -(from + 1);
      eliminate_two(f, k);
    } else {
      pivot[k] = from + 1;
      eliminate_one(f, k);
    }
  }
  return info;
}
static kiln_tensor *give_factors(kiln__composite *r, const char *name, const kiln_ivalue *args,
                                 bool check, bool with_info, kiln_ivalue *outs) {
  kiln__la_batch b;
  kiln_tensor *pivots, *infos;
  if (!kiln__la_read(r, name, SELF, true, &b)) return NULL;
  int64_t *pivot = kiln__la_new(r, &b, KILN_DTYPE_I64, b.n, -1, &pivots);
  int64_t *info = kiln__la_new(r, &b, KILN_DTYPE_I64, -1, -1, &infos);
  if (r->status) return NULL;
  const bool hermitian = kiln_arg_bool(args, 1) && kiln_dtype_is_complex(b.dtype);
  for (int64_t i = 0; kiln__la_is_left(i, b.count); i++) {
    const ldl f = {b.data + i * b.n * b.n, b.n, hermitian};
    info[i] = factor(&f, pivot + i * b.n);
    for (int64_t e = 0; e < b.n * b.n; e++) {
      if (e / b.n < e % b.n) f.a[e] = (z){0, 0};
    }
    if (!check || !info[i]) continue;
    return FAIL(r,
                "%s: The factorization could not be completed because the input is "
                "singular: D[%lld,%lld] is zero",
                name, (long long)info[i], (long long)info[i]);
  }
  kiln__composite_give(r, &outs[0], kiln__la_columns(r, b.tensor, b.dtype));
  kiln__composite_give(r, &outs[1], kiln__composite_to(r, pivots, KILN_DTYPE_I32));
  if (with_info) kiln__composite_give(r, &outs[2], kiln__composite_to(r, infos, KILN_DTYPE_I32));
  return NULL;
}
/* self, hermitian -> LD, pivots */
KILN_COMPOSITE(linalg_ldl_factor) {
  return give_factors(r, "torch.linalg.ldl_factor", args, true, false, outs);
}
/* self, hermitian, check_errors -> LD, pivots, info */
KILN_COMPOSITE(linalg_ldl_factor_ex) {
  return give_factors(r, "torch.linalg.ldl_factor_ex", args, kiln_arg_bool(args, 2), true, outs);
}

/* -- Solutions: x [n, m] in place -- */

/* Row `to` loses `factor` times row `from`. */
static void take(z *x, int64_t m, int64_t to, z by, int64_t from) {
  for (int64_t c = 0; c < m; c++) x[to * m + c] = z_sub(x[to * m + c], z_mul(by, x[from * m + c]));
}
static void solve(const ldl *f, const int64_t *pivot, z *x, int64_t m) {
  for (int64_t k = 0, wide; k < f->n; k += 1 + wide) {
    wide = pivot[k] < 0;
    kiln__la_swap_rows(x, m, k + wide, (wide ? -pivot[k] : pivot[k]) - 1);
    for (int64_t i = k + 1 + wide; i < f->n; i++) {
      take(x, m, i, *at(f, i, k), k);
      if (wide) take(x, m, i, *at(f, i, k + 1), k + 1);
    }
    for (int64_t c = 0; c < m; c++) {
      if (wide)
        solve_block(f, k, x + k * m + c, x + (k + 1) * m + c);
      else
        x[k * m + c] = z_over(x[k * m + c], *at(f, k, k));
    }
  }
  for (int64_t k = f->n - 1, wide; k >= 0; k -= 1 + wide) {
    wide = pivot[k] < 0;
    for (int64_t i = k + 1; i < f->n; i++) {
      take(x, m, k, turned(f, *at(f, i, k)), i);
      if (wide) take(x, m, k - 1, turned(f, *at(f, i, k - 1)), i);
    }
    kiln__la_swap_rows(x, m, k, (wide ? -pivot[k] : pivot[k]) - 1);
  }
}
/* Pivots that a factorisation can have given. */
static bool check_pivots(kiln__composite *r, const int64_t *pivot, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const int64_t row = pivot[k] < -n ? 0 : pivot[k] < 0 ? -pivot[k] : pivot[k];
    const bool pair = pivot[k] < 0;
    if (row >= 1 && row <= n && (!pair || (k + 1 < n && pivot[k + 1] == pivot[k]))) {
      k += pair;
      continue;
    }
    return FAIL(r, "torch.linalg.ldl_solve: pivots out of range");
  }
  return true;
}
/* LD, pivots, B, hermitian */
KILN_COMPOSITE(linalg_ldl_solve) {
  const char *name = "torch.linalg.ldl_solve";
  kiln_tensor *factors = SELF, *pivots = ARG(1), *b = ARG(2), *dense;
  kiln__la_batch left, right;
  const int rank = kiln_tensor_rank(factors);
  if (!kiln__la_read(r, name, factors, true, &left)) return NULL;
  bool fits =
      kiln_tensor_rank(b) >= 2 && kiln_tensor_rank(pivots) == rank - 1 &&
      memcmp(kiln_tensor_sizes(pivots), left.sizes, sizeof(int64_t) * (size_t)(rank - 1)) == 0;
  if (!fits || kiln__composite_size(b, -2) != left.n) {
    return FAIL(r, "%s: Expected LD, pivots and B of fitting shapes", name);
  }
  if (kiln_tensor_dtype(b) != left.dtype) {
    return FAIL(r, "%s: LD and B must have the same dtype", name);
  }
  pivots = KILN_STEP(r, unsqueeze, T(pivots), I(-1)); /* so that batches broadcast */
  kiln__la_share(r, &factors, &b);
  kiln__la_share(r, &pivots, &b);
  const int64_t *pivot = kiln__composite_read(r, pivots, KILN_DTYPE_I64, &dense);
  if (!pivot || !kiln__la_read(r, name, factors, true, &left) ||
      !kiln__la_read(r, name, b, false, &right)) {
    return NULL;
  }
  const bool hermitian = kiln_arg_bool(args, 3) && kiln_dtype_is_complex(left.dtype);
  for (int64_t i = 0; kiln__la_is_left(i, right.count); i++) {
    const ldl f = {left.data + i * left.n * left.n, left.n, hermitian};
    if (!check_pivots(r, pivot + i * left.n, left.n)) return NULL;
    solve(&f, pivot + i * left.n, right.data + i * left.n * right.n, right.n);
  }
  return kiln__la_columns(r, right.tensor, right.dtype);
}
