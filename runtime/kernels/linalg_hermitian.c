/* linalg_hermitian.c: eigenvalues and vectors of Hermitian matrices.
 *
 * Vectors are free up to a sign (a phase), and PyTorch's have LAPACK's. So the way is LAPACK's:
 * Householder's reduction to a tridiagonal matrix from the triangle that is asked for (hetd2), then
 * implicit QL or QR, whichever end is larger, with Wilkinson's shifts (steqr), each rotation with
 * LAPACK's signs before 3.10 (lartg), as the libraries behind PyTorch's packages have them. Where
 * the iteration ends depends on the precision, and the signs with it: `single`. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/kernels/linalg.h"

/* -- To a tridiagonal matrix -- */

double kiln__la_reflector(z *x, int64_t n, int64_t head, z *tau) {
  double most = 0, rest = 0, unit = 1;
  for (int64_t i = 0; i < n; i++) most = fmax(most, fmax(fabs(x[i].re), fabs(x[i].im)));
  if (most > 0 && most < 1e-130) unit = most; /* squares must be exact */
  for (int64_t i = 0; unit != 1 && i < n; i++) x[i] = (z){x[i].re / unit, x[i].im / unit};
  const z alpha = x[head];
  for (int64_t i = 0; i < n; i++) rest += i == head ? 0 : z_size2(x[i]);
  *tau = (z){0, 0};
  if (rest == 0 && alpha.im == 0) {
    for (int64_t i = 0; i < n; i++) x[i] = (z){i == head, 0};
    return alpha.re * unit;
  }
  const double length = sqrt(z_size2(alpha) + rest), beta = signbit(alpha.re) ? length : -length;
  const z scale = {alpha.re - beta, alpha.im};
  for (int64_t i = 0; i < n; i++) x[i] = z_over(x[i], scale);
  x[head] = (z){1, 0};
  *tau = (z){(beta - alpha.re) / beta, -alpha.im / beta};
  return beta * unit;
}
void kiln__la_reflect_rows(z *a, int64_t rows, int64_t n, const z *v, z tau) {
  for (int64_t row = 0; row < rows; row++, a += n) {
    z sum = {0, 0};
    for (int64_t k = 0; k < n; k++) sum = z_add(sum, z_mul(a[k], v[k]));
    sum = z_mul(sum, tau);
    for (int64_t k = 0; k < n; k++) a[k] = z_sub(a[k], z_mul(sum, z_conj(v[k])));
  }
}
void kiln__la_reflect_columns(z *a, int64_t rows, int64_t n, int64_t from, const z *v, z tau,
                              z *sums) {
  for (int64_t c = from; c < n; c++) sums[c] = (z){0, 0};
  for (int64_t k = 0; k < rows; k++) {
    for (int64_t c = from; c < n; c++) {
      sums[c] = z_add(sums[c], z_mul(z_conj(v[k]), a[k * n + c]));
    }
  }
  for (int64_t k = 0; k < rows; k++) {
    const z by = z_mul(z_conj(tau), v[k]);
    for (int64_t c = from; c < n; c++) a[k * n + c] = z_sub(a[k * n + c], z_mul(by, sums[c]));
  }
}
/* d and e: the diagonals; q (may be NULL): a = q t q^H. room holds 2 n. */
static void tridiagonal(z *a, int64_t n, bool upper, double *d, double *e, z *q, z *room) {
  z *x = room, *sums = room + n, tau;
  if (q) kiln__la_identity(q, n);
  memset(e, 0, sizeof *e * (size_t)n);
  for (int64_t step = 0; step + 1 < n && !kiln_budget_leaves_out(); step++) {
    const int64_t i = upper ? n - 2 - step : step, head = upper ? i : i + 1;
    for (int64_t k = 0; k < n; k++) {
      const bool part = upper ? k <= i : k > i;
      x[k] = part ? a[k * n + (upper ? i + 1 : i)] : (z){0, 0};
    }
    e[i] = kiln__la_reflector(x, n, head, &tau);
    if (tau.re == 0 && tau.im == 0) continue;
    kiln__la_reflect_rows(a, n, n, x, tau);
    kiln__la_reflect_columns(a, n, n, 0, x, tau, sums);
    if (q) kiln__la_reflect_rows(q, n, n, x, tau);
  }
  for (int64_t i = 0; i < n; i++) d[i] = a[i * n + i].re;
}

/* -- Its eigenvalues -- */

typedef kiln__la_turn turn;
/* (f, g) to (r, 0) */
static turn turn_for(double f, double g, double *r) {
  if (g == 0) {
    *r = f;
    return (turn){1, 0};
  }
  if (f == 0) {
    *r = g;
    return (turn){0, 1};
  }
  *r = hypot(f, g);
  if (fabs(f) > fabs(g) && f < 0) *r = -*r;
  return (turn){f / *r, g / *r};
}
/* Of [a b; b c]: the eigenvalue of greater size, the other, and the first one's vector (c, s). */
static turn pair_of(double a, double b, double c, double *first, double *second) {
  const double sum = a + c, gap = a - c, twice = b + b, root = hypot(gap, twice);
  const double more = fabs(a) > fabs(c) ? a : c, less = fabs(a) > fabs(c) ? c : a;
  const double cs = gap >= 0 ? gap + root : gap - root;
  turn t;
  *first = sum < 0 ? (sum - root) / 2 : sum > 0 ? (sum + root) / 2 : root / 2;
  *second = sum == 0 ? -root / 2 : more / *first * less - b / *first * b;
  if (fabs(cs) > fabs(twice)) {
    const double ratio = -twice / cs;
    t.s = 1 / sqrt(1 + ratio * ratio);
    t.c = ratio * t.s;
  } else if (twice == 0) {
    t = (turn){1, 0};
  } else {
    const double ratio = -cs / twice;
    t.c = 1 / sqrt(1 + ratio * ratio);
    t.s = ratio * t.c;
  }
  if ((sum < 0) == (gap < 0)) t = (turn){-t.s, t.c};
  return t;
}
typedef struct tridiag {
  int64_t n;
  double *d, *e;
  z *v; /* [n, n], columns turn; may be NULL */
  double epsilon;
} tridiag;
/* Columns j and j + 1. */
static void turn_columns(const tridiag *t, int64_t j, double c, double s) {
  for (int64_t i = 0; t->v && i < t->n; i++) {
    z *x = t->v + i * t->n + j;
    const z low = x[0], high = x[1];
    x[1] = (z){c * high.re - s * low.re, c * high.im - s * low.im};
    x[0] = (z){s * high.re + c * low.re, s * high.im + c * low.im};
  }
}
/* One sweep from m towards l (side 1: m > l; -1: below), whose eigenvalue it brings near. e between
 * i and i + side is e[i], e[i - 1]. */
static void sweep(const tridiag *t, int64_t l, int64_t m, int64_t side, turn *turns) {
  double *d = t->d, *e = side > 0 ? t->e : t->e - 1;
  double p = d[l], g = (d[l + side] - p) / (2 * e[l]), r = hypot(g, 1), s = 1, c = 1;
  g = d[m] - p + e[l] / (g + (g < 0 ? -r : r));
  p = 0;
  for (int64_t i = m - side; side > 0 ? i >= l : i <= l; i -= side) {
    const double f = s * e[i], b = c * e[i];
    const turn now = turn_for(g, f, &r);
    c = now.c;
    s = now.s;
    if (i != m - side) e[i + side] = r;
    g = d[i + side] - p;
    r = (d[i] - g) * s + 2 * c * b;
    p = s * r;
    d[i + side] = g + p;
    g = c * r - b;
    turns[side > 0 ? i : i - 1] = (turn){c, side > 0 ? -s : s};
  }
  if (side > 0) {
    for (int64_t i = m - 1; i >= l; i--) turn_columns(t, i, turns[i].c, turns[i].s);
  } else {
    for (int64_t i = m; i < l; i++) turn_columns(t, i, turns[i].c, turns[i].s);
  }
  d[l] -= p;
  e[l] = g;
}
/* The block from l to `end`; false: no convergence. */
static bool solve_block(const tridiag *t, int64_t l, int64_t end, int64_t *steps, turn *turns) {
  const int64_t side = end > l ? 1 : -1;
  double *d = t->d, *e = side > 0 ? t->e : t->e - 1;
  const double small = t->epsilon * t->epsilon;
  while (side > 0 ? l <= end : l >= end) {
    int64_t m = l;
    while (m != end && !(e[m] * e[m] <= small * fabs(d[m]) * fabs(d[m + side]) + DBL_MIN)) {
      m += side;
    }
    if (m != end) e[m] = 0;
    if (m == l) {
      l += side;
    } else if (m == l + side) {
      const int64_t low = side > 0 ? l : m;
      const turn now = pair_of(d[low], e[l], d[low + 1], &d[low], &d[low + 1]);
      turn_columns(t, low, now.c, now.s);
      e[l] = 0;
      l += 2 * side;
    } else {
      if (kiln_budget_leaves_out()) return true;
      if (--*steps < 0) return false;
      sweep(t, l, m, side, turns);
    }
  }
  return true;
}
static bool diagonalise(const tridiag *t, turn *turns) {
  int64_t steps = 30 * t->n;
  double *d = t->d, *e = t->e;
  for (int64_t begin = 0, end; begin < t->n; begin = end + 1) {
    for (end = begin; end + 1 < t->n; end++) {
      if (fabs(e[end]) <= sqrt(fabs(d[end])) * sqrt(fabs(d[end + 1])) * t->epsilon) break;
    }
    const bool forwards = !(fabs(d[end]) < fabs(d[begin]));
    if (begin < end &&
        !solve_block(t, forwards ? begin : end, forwards ? end : begin, &steps, turns)) {
      return false;
    }
  }
  return true;
}
/* Ascending, by as few exchanges as can be. */
static void put_in_order(const tridiag *t) {
  for (int64_t i = 0; i + 1 < t->n; i++) {
    int64_t least = i;
    for (int64_t k = i + 1; k < t->n; k++) {
      if (t->d[k] < t->d[least]) least = k;
    }
    if (least == i) continue;
    const double kept = t->d[i];
    t->d[i] = t->d[least];
    t->d[least] = kept;
    for (int64_t k = 0; t->v && k < t->n; k++) {
      z *row = t->v + k * t->n;
      const z x = row[i];
      row[i] = row[least];
      row[least] = x;
    }
  }
}
bool kiln__la_eigh(z *a, int64_t n, bool upper, bool single, double *w, z *v, z *room) {
  const tridiag t = {n, w, (double *)(room + 2 * n), v, single ? FLT_EPSILON / 2 : DBL_EPSILON / 2};
  double most = 0, scale = 1;
  for (int64_t i = 0; i < n * n; i++) most = fmax(most, fmax(fabs(a[i].re), fabs(a[i].im)));
  if (most > 1e100 || (most < 1e-100 && most > 0)) { /* squares must be numbers */
    scale = most;
    for (int64_t i = 0; i < n * n; i++) a[i] = (z){a[i].re / scale, a[i].im / scale};
  }
  tridiagonal(a, n, upper, w, t.e, v, room);
  if (!diagonalise(&t, (turn *)room)) return false;
  put_in_order(&t);
  for (int64_t i = 0; i < n; i++) w[i] *= scale;
  return true;
}
