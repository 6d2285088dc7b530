/* hermitian.c: eigenvalues and vectors of Hermitian matrices.
 *
 * Vectors are free up to a sign (a phase), and PyTorch's have LAPACK's. So the way is LAPACK's:
 * Householder's reduction to a tridiagonal matrix from the triangle that is asked for (hetd2), then
 * implicit QL or QR, whichever end is larger, with Wilkinson's shifts (steqr), each rotation with
 * LAPACK's signs before 3.10 (lartg), as the libraries behind PyTorch's packages have them. Where
 * the iteration ends depends on the precision, and the signs with it: `single`. Vectors of larger
 * matrices are made by divide and conquer (stedc: divide.c), with this at its end. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/kernels/linalg/linalg.h"
#include "runtime/kernels/linalg/divide.h"

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
typedef struct tridiag {
  int64_t n;
  double *d, *e; /* the diagonals */
  double *v;     /* the rows are the vectors, of `width` numbers: n, or n complex; may be NULL */
  int64_t width, first, end; /* rows and columns [first, end) are still to be reduced */
  double epsilon;
} tridiag;
/* The reflector that leaves e between what is reduced and the rest of that row of a. */
static z reflect_next(tridiag *t, bool upper, z *x) {
  const int64_t i = upper ? --t->end - 1 : t->first++;
  z tau;
  t->e[i] = kiln__la_reflector(x + t->first, t->end - t->first, upper ? i : 0, &tau);
  return tau;
}
/* Both (hetd2, by an update of rank 2): a = q t q^H, q's columns to t->v, which is the identity.
 * a's rows are its columns, conjugated, so all inner loops are along rows. room holds 2 n. */
static void reduce_complex(tridiag *t, z *a, bool upper, z *room) {
  const int64_t n = t->n;
  z *x = room, *w = room + n;
  while (t->end - t->first > 1 && !kiln_budget_leaves_out()) {
    const z *row = a + (upper ? t->end - 1 : t->first) * n;
    for (int64_t k = t->first; k < t->end; k++) x[k] = z_conj(row[k]);
    const z tau = reflect_next(t, upper, x);
    const int64_t from = t->first, to = t->end;
    if (tau.re == 0 && tau.im == 0) continue;
    memset(w + from, 0, sizeof *w * (size_t)(to - from));
    for (int64_t k = from; k < to; k++) {
      for (int64_t c = from; c < to; c++) w[c] = z_add(w[c], z_mul(z_conj(a[k * n + c]), x[k]));
    }
    z dot = {0, 0};
    for (int64_t k = from; k < to; k++) {
      w[k] = z_mul(w[k], tau);
      dot = z_add(dot, z_mul(z_conj(w[k]), x[k]));
    }
    const z half = z_mul((z){tau.re / 2, tau.im / 2}, dot);
    for (int64_t k = from; k < to; k++) w[k] = z_sub(w[k], z_mul(half, x[k]));
    for (int64_t k = from; k < to; k++) {
      for (int64_t c = from; c < to; c++) {
        const z both = z_add(z_mul(x[k], z_conj(w[c])), z_mul(w[k], z_conj(x[c])));
        a[k * n + c] = z_sub(a[k * n + c], both);
      }
    }
    for (int64_t k = from; k < to; k++) x[k] = z_conj(x[k]);
    if (!t->v) continue;
    kiln__la_reflect_columns((z *)t->v + from * n, to - from, n, 0, x + from, z_conj(tau), w);
  }
  for (int64_t i = 0; i < n; i++) t->d[i] = a[i * n + i].re;
}
static void reduce_real(tridiag *t, double *a, bool upper, z *room) {
  const int64_t n = t->n;
  double *x = (double *)(room + n), *w = x + n;
  KILN_ASSERT(a);
  while (t->end - t->first > 1 && !kiln_budget_leaves_out()) {
    const double *row = a + (upper ? t->end - 1 : t->first) * n;
    for (int64_t k = t->first; k < t->end; k++) room[k] = (z){row[k], 0};
    const double tau = reflect_next(t, upper, room).re;
    const int64_t from = t->first, to = t->end;
    if (tau == 0) continue;
    memset(w + from, 0, sizeof *w * (size_t)(to - from));
    for (int64_t k = from; k < to; k++) {
      x[k] = room[k].re;
      for (int64_t c = from; c < to; c++) w[c] += a[k * n + c] * x[k];
    }
    double half = 0;
    for (int64_t k = from; k < to; k++) half += w[k] * x[k];
    half *= tau * tau / 2;
    for (int64_t k = from; k < to; k++) w[k] = tau * w[k] - half * x[k];
    for (int64_t k = from; k < to; k++) {
      for (int64_t c = from; c < to; c++) a[k * n + c] -= x[k] * w[c] + w[k] * x[c];
    }
    if (!t->v) continue;
    memset(w, 0, sizeof *w * (size_t)n);
    for (int64_t k = from; k < to; k++) {
      for (int64_t c = 0; c < n; c++) w[c] += x[k] * t->v[k * n + c];
    }
    for (int64_t k = from; k < to; k++) {
      for (int64_t c = 0; c < n; c++) t->v[k * n + c] -= tau * x[k] * w[c];
    }
  }
  for (int64_t i = 0; i < n; i++) t->d[i] = a[i * n + i];
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
/* Vectors j and j + 1. */
static void turn_rows(const tridiag *t, int64_t j, double c, double s) {
  if (!t->v) return;
  double *restrict low = t->v + j * t->width, *restrict high = low + t->width;
  for (int64_t i = 0; i < t->width; i++) {
    const double x = low[i], y = high[i];
    high[i] = c * y - s * x;
    low[i] = s * y + c * x;
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
    for (int64_t i = m - 1; i >= l; i--) turn_rows(t, i, turns[i].c, turns[i].s);
  } else {
    for (int64_t i = m; i < l; i++) turn_rows(t, i, turns[i].c, turns[i].s);
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
      turn_rows(t, low, now.c, now.s);
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
    if (!t->v) continue;
    double *one = t->v + i * t->width, *two = t->v + least * t->width;
    for (int64_t k = 0; k < t->width; k++) {
      const double x = one[k];
      one[k] = two[k];
      two[k] = x;
    }
  }
}
/* A part of the matrix that is divided no more. */
static bool solve_leaf(const kiln__la_divide *whole, int64_t at, int64_t n, bool more) {
  (void)more;
  double v[KILN__LA_WHOLE * KILN__LA_WHOLE];
  turn turns[KILN__LA_WHOLE];
  const tridiag t = {.n = n,
                     .d = whole->d + at,
                     .e = whole->e + at,
                     .v = v,
                     .width = n,
                     .epsilon = whole->epsilon};
  for (int64_t i = 0; i < n * n; i++) v[i] = i % (n + 1) == 0;
  if (!diagonalise(&t, turns)) return false;
  put_in_order(&t);
  for (int64_t i = 0; i < n; i++) {
    memcpy(whole->v + (at + i) * whole->n + at, v + i * n, sizeof *v * (size_t)n);
  }
  return true;
}
/* As stedc: the tridiagonal matrix's own vectors, then those times q, which is in t->v. */
static bool divide(const tridiag *t, double *room) {
  const int64_t n = t->n;
  double *more = room + 2 * n * n, *own = more + n * n + 11 * n;
  const kiln__la_divide whole = {n, t->d, t->e, NULL, own, t->epsilon, room, more, solve_leaf};
  for (int64_t i = 0; i < n * n; i++) own[i] = i % (n + 1) == 0;
  if (!kiln__la_divide_tridiagonal(&whole)) return false;
  memset(room, 0, sizeof *room * (size_t)(n * t->width));
  kiln__la_add_product(room, t->width, own, n, t->v, t->width, n, n, t->width);
  memcpy(t->v, room, sizeof *room * (size_t)(n * t->width));
  return true;
}
/* The rows of t->v to the columns of v, where complex rows are already. */
static void turn_over(const tridiag *t, bool real, z *v) {
  const int64_t n = t->n;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t k = real ? 0 : i; k < n; k++) {
      const z x = v[i * n + k];
      v[i * n + k] = real ? (z){t->v[k * n + i], 0} : v[k * n + i];
      if (!real) v[k * n + i] = x;
    }
  }
}
int64_t kiln__la_eigh_room(int64_t n, bool vectors) {
  return 3 * n + (vectors && n > KILN__LA_WHOLE ? 2 * n * n + 6 * n : 0);
}
bool kiln__la_eigh(z *a, int64_t n, bool upper, bool single, double *w, z *v, z *room) {
  tridiag t = {.n = n, .d = w, .e = (double *)(room + 2 * n), .end = n};
  double most = 0, *real_a = (double *)a, scale = 1;
  bool real = true;
  t.epsilon = single ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
  for (int64_t i = 0; i < n * n; i++) {
    most = fmax(most, fmax(fabs(a[i].re), fabs(a[i].im)));
    real = real && a[i].im == 0;
  }
  if (most > 1e100 || (most < 1e-100 && most > 0)) { /* squares must be numbers */
    scale = most;
    for (int64_t i = 0; i < n * n; i++) a[i] = (z){a[i].re / scale, a[i].im / scale};
  }
  for (int64_t i = 0; real && i < n * n; i++) real_a[i] = a[i].re;
  t.width = real ? n : 2 * n;
  t.v = !v ? NULL : real ? real_a + n * n : (double *)v; /* a's other half */
  if (t.v) memset(t.v, 0, sizeof *t.v * (size_t)(n * t.width));
  for (int64_t i = 0; t.v && i < n; i++) t.v[i * (t.width + t.width / n)] = 1;
  memset(t.e, 0, sizeof *t.e * (size_t)n);
  if (real)
    reduce_real(&t, real_a, upper, room);
  else
    reduce_complex(&t, a, upper, room);
  if (v && n > KILN__LA_WHOLE) {
    if (!divide(&t, (double *)(room + 3 * n))) return false;
  } else {
    if (!diagonalise(&t, (turn *)room)) return false;
    put_in_order(&t);
  }
  if (v) turn_over(&t, real, v);
  for (int64_t i = 0; i < n; i++) w[i] *= scale;
  return true;
}
