/* svd.c: singular values and vectors.
 *
 * Vectors are free up to a sign (a phase) that both sides share, and PyTorch's have LAPACK's. So
 * the way is that of gesdd: of matrices much higher than wide the triangle of a QR factorisation
 * first; Householder's reduction to a bidiagonal matrix (gebrd), then implicit zero-shift QR
 * (bdsqr: Demmel and Kahan, 1990), which finds tiny singular values to full relative precision too.
 * Vectors of larger bidiagonal matrices are made by divide and conquer (bdsdc: divide.c),
 * with this at its end. Wide matrices come as their adjoint: LAPACK's reflectors are the same, the
 * bidiagonal matrix is a lower one. Where the iteration ends depends on the precision, and the
 * signs with it: `single`. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/kernels/linalg/linalg.h"
#include "runtime/kernels/linalg/divide.h"

/* -- To a bidiagonal matrix -- */

/* a [m, n], m >= n, was q b p^H with d on b's diagonal and e above it. q [m, columns] and p [n, n]
 * may be NULL. room holds 2 m + n. */
static void bidiagonal(z *a, int64_t m, int64_t n, double *d, double *e, z *q, int64_t columns,
                       z *p, z *room) {
  z *v = room, *sums = room + m, *taus = sums + m, tau;
  if (p) kiln__la_identity(p, n);
  for (int64_t i = 0; i < n; i++) d[i] = 0, taus[i] = (z){0, 0};
  for (int64_t i = 0; i + 1 < n; i++) e[i] = 0;
  for (int64_t i = 0; i < n && !kiln_budget_leaves_out(); i++) {
    for (int64_t k = 0; k < m; k++) v[k] = k < i ? (z){0, 0} : a[k * n + i];
    d[i] = kiln__la_reflector(v, m, i, &taus[i]);
    kiln__la_reflect_columns(a, m, n, i + 1, v, taus[i], sums);
    for (int64_t k = i; k < m; k++) a[k * n + i] = v[k]; /* kept for q */
    if (i + 1 == n) break;
    for (int64_t k = 0; k < n; k++) v[k] = k <= i ? (z){0, 0} : z_conj(a[i * n + k]);
    e[i] = kiln__la_reflector(v, n, i + 1, &tau);
    kiln__la_reflect_rows(a + i * n, m - i, n, v, tau);
    if (p) kiln__la_reflect_rows(p, n, n, v, tau);
  }
  for (int64_t k = 0; q && k < m * columns; k++) q[k] = (z){k / columns == k % columns, 0};
  for (int64_t i = n - 1; q && i >= 0 && !kiln_budget_leaves_out(); i--) {
    for (int64_t k = 0; k < m; k++) v[k] = k < i ? (z){0, 0} : a[k * n + i];
    kiln__la_reflect_columns(q, m, columns, 0, v, z_conj(taus[i]), sums);
  }
}

/* -- Of a bidiagonal matrix of 2 -- */

/* (f, g) to (r, 0), with LAPACK's signs from 3.10 on. */
static kiln__la_turn turn_for(double f, double g, double *r) {
  if (g == 0) {
    *r = f;
    return (kiln__la_turn){1, 0};
  }
  if (f == 0) {
    *r = fabs(g);
    return (kiln__la_turn){0, copysign(1, g)};
  }
  /* Numbers without all their bits make no rotation. */
  const double up = fabs(f) + fabs(g) < 0x1p-900 ? 0x1p500 : 1, length = hypot(f * up, g * up);
  *r = copysign(length, f) / up;
  return (kiln__la_turn){fabs(f * up) / length, g * up / copysign(length, f)};
}

typedef struct turns2 {
  double least, most;
  kiln__la_turn left, right;
} turns2;
/* Of the triangle [f g; 0 h]: most, with its sign, becomes the first element. */
static turns2 of_triangle(double f, double g, double h, double epsilon) {
  const bool swap = fabs(h) > fabs(f);
  const double ft = swap ? h : f, ht = swap ? f : h, fa = fabs(ft), ha = fabs(ht), ga = fabs(g);
  double clt = 1, crt = 1, slt = 0, srt = 0;
  turns2 t = {ha, fa, {1, 0}, {1, 0}};
  int greatest = swap ? 3 : 1;
  if (ga > fa) greatest = 2;
  if (ga > fa && fa / ga < epsilon) {
    t.most = ga;
    t.least = ha > 1 ? fa / (ga / ha) : fa / ga * ha;
    slt = ht / g;
    srt = 1;
    crt = ft / g;
  } else if (ga > 0) {
    const double gap = fa - ha, l = gap == fa ? 1 : gap / fa, m = g / ft, mm = m * m;
    const double s = sqrt((2 - l) * (2 - l) + mm), r = l == 0 ? fabs(m) : sqrt(l * l + mm);
    const double a = (s + r) / 2;
    double u = (m / (s + 2 - l) + m / (r + l)) * (1 + a);
    if (mm == 0)
      u = l == 0 ? copysign(2, ft) * copysign(1, g) : g / copysign(gap, ft) + m / (2 - l);
    const double length = sqrt(u * u + 4);
    t.least = ha / a;
    t.most = fa * a;
    crt = 2 / length;
    srt = u / length;
    clt = (crt + srt * m) / a;
    slt = ht / ft * srt / a;
  }
  t.left = swap ? (kiln__la_turn){srt, crt} : (kiln__la_turn){clt, slt};
  t.right = swap ? (kiln__la_turn){slt, clt} : (kiln__la_turn){crt, srt};
  const double sign =
      greatest == 1   ? copysign(1, t.right.c) * copysign(1, t.left.c) * copysign(1, f)
      : greatest == 2 ? copysign(1, t.right.s) * copysign(1, t.left.c) * copysign(1, g)
                      : copysign(1, t.right.s) * copysign(1, t.left.s) * copysign(1, h);
  t.most = copysign(t.most, sign);
  t.least = copysign(t.least, sign * copysign(1, f) * copysign(1, h));
  return t;
}
/* Its lesser singular value alone. */
static double least_of(double f, double g, double h) {
  const double fa = fabs(f), ga = fabs(g), ha = fabs(h), low = fmin(fa, ha), high = fmax(fa, ha);
  if (low == 0) return 0;
  const double as = 1 + low / high, at = (high - low) / high;
  if (ga < high) {
    const double au = ga / high * (ga / high);
    return low * (2 / (sqrt(as * as + au) + sqrt(at * at + au)));
  }
  const double au = high / ga;
  if (au == 0) return low * high / ga;
  return 2 * (low * (1 / (sqrt(1 + as * au * (as * au)) + sqrt(1 + at * au * (at * au)))) * au);
}

/* -- Of any bidiagonal matrix -- */

typedef struct bidiag {
  int64_t n;
  double *d, *e;
  double *u, *v; /* [n, n] and [width, width], the rows are vectors; may be NULL */
  int64_t width; /* n, or n + 1 where there is a column more */
  double epsilon, tolerance, threshold;
} bidiag;

/* Rows j and j + 1. */
static void turn_pair(double *rows, int64_t n, int64_t j, kiln__la_turn t) {
  double *low = rows ? rows + j * n : NULL;
  for (int64_t k = 0; rows && k < n; k++) {
    const double x = low[k], y = low[n + k];
    low[n + k] = t.c * y - t.s * x;
    low[k] = t.s * y + t.c * x;
  }
}
/* The side of `right` turns is that of the row that is chased from: where the sweep runs upwards
 * the sides change. */
static void turn_both(const bidiag *b, int64_t j, bool down, kiln__la_turn right,
                      kiln__la_turn left) {
  if (!down) right.s = -right.s, left.s = -left.s;
  turn_pair(b->v, b->width, j, down ? right : left);
  turn_pair(b->u, b->n, j, down ? left : right);
}
/* Sweeps over the block [low, high], downwards or upwards; e between i and i + side is e[i]. */
static void sweep_unshifted(const bidiag *b, int64_t low, int64_t high, bool down) {
  const int64_t first = down ? low : high, last = down ? high : low, side = down ? 1 : -1;
  double *d = b->d, *e = down ? b->e : b->e - 1, r;
  kiln__la_turn now = {1, 0}, before = {1, 0};
  for (int64_t i = first; i != last; i += side) {
    now = turn_for(d[i] * now.c, e[i], &r);
    if (i != first) e[i - side] = before.s * r;
    before = turn_for(before.c * r, d[i + side] * now.s, &d[i]);
    turn_both(b, down ? i : i - 1, down, now, before);
  }
  const double h = d[last] * now.c;
  d[last] = h * before.c;
  e[last - side] = h * before.s;
  if (fabs(e[last - side]) <= b->threshold) e[last - side] = 0;
}
static void sweep_shifted(const bidiag *b, int64_t low, int64_t high, bool down, double shift) {
  const int64_t first = down ? low : high, last = down ? high : low, side = down ? 1 : -1;
  double *d = b->d, *e = down ? b->e : b->e - 1, r;
  double f = (fabs(d[first]) - shift) * (copysign(1, d[first]) + shift / d[first]), g = e[first];
  for (int64_t i = first; i != last; i += side) {
    const kiln__la_turn right = turn_for(f, g, &r);
    if (i != first) e[i - side] = r;
    f = right.c * d[i] + right.s * e[i];
    e[i] = right.c * e[i] - right.s * d[i];
    g = right.s * d[i + side];
    d[i + side] = right.c * d[i + side];
    const kiln__la_turn left = turn_for(f, g, &r);
    d[i] = r;
    f = left.c * e[i] + left.s * d[i + side];
    d[i + side] = left.c * d[i + side] - left.s * e[i];
    if (i + side != last) {
      g = left.s * e[i + side];
      e[i + side] = left.c * e[i + side];
    }
    turn_both(b, down ? i : i - 1, down, right, left);
  }
  e[last - side] = fabs(f) <= b->threshold ? 0 : f;
}
/* Whether an element between the block's ones is nothing beside them, and is now 0; else the least
 * singular value, about. */
static bool parts(const bidiag *b, int64_t low, int64_t high, bool down, double *least) {
  const int64_t first = down ? low : high, last = down ? high : low, side = down ? 1 : -1;
  double *d = b->d, *e = down ? b->e : b->e - 1;
  if (fabs(e[last - side]) <= b->tolerance * fabs(d[last])) {
    e[last - side] = 0;
    return true;
  }
  double mu = *least = fabs(d[first]);
  for (int64_t i = first; i != last; i += side) {
    if (fabs(e[i]) <= b->tolerance * mu) {
      e[i] = 0;
      return true;
    }
    mu = fabs(d[i + side]) * (mu / (mu + fabs(e[i])));
    *least = fmin(*least, mu);
  }
  return false;
}
static void solve_pair(const bidiag *b, int64_t i) {
  const turns2 t = of_triangle(b->d[i], b->e[i], b->d[i + 1], b->epsilon);
  b->d[i] = t.most;
  b->e[i] = 0;
  b->d[i + 1] = t.least;
  turn_pair(b->v, b->width, i, t.right);
  turn_pair(b->u, b->n, i, t.left);
}
static void step(const bidiag *b, int64_t low, int64_t high, bool down, double least, double most) {
  const double *d = b->d, *e = b->e, edge = fabs(d[down ? low : high]);
  double shift = 0;
  if ((double)b->n * b->tolerance * (least / most) > fmax(b->epsilon, 0.01 * b->tolerance)) {
    shift =
        down ? least_of(d[high - 1], e[high - 1], d[high]) : least_of(d[low], e[low], d[low + 1]);
    if (edge > 0 && shift / edge * (shift / edge) < b->epsilon) shift = 0;
  }
  if (shift == 0)
    sweep_unshifted(b, low, high, down);
  else
    sweep_shifted(b, low, high, down, shift);
}
/* false: no convergence. */
static bool diagonalise(const bidiag *b) {
  int64_t high = b->n - 1, old_low = -1, old_high = -1;
  bool down = true;
  for (int64_t work = 6 * b->n * b->n; high > 0 && !kiln_budget_leaves_out();) {
    double most = fabs(b->d[high]), least;
    int64_t low = high;
    while (low > 0 && fabs(b->e[low - 1]) > b->threshold) {
      low--;
      most = fmax(most, fmax(fabs(b->d[low]), fabs(b->e[low])));
    }
    if (low > 0) b->e[low - 1] = 0;
    if (low == high) {
      high--;
      continue;
    }
    if (low + 1 == high) {
      solve_pair(b, low);
      high -= 2;
      continue;
    }
    if (low > old_high || high < old_low) down = fabs(b->d[low]) >= fabs(b->d[high]);
    if (parts(b, low, high, down, &least)) continue;
    old_low = low;
    old_high = high;
    work -= high - low;
    if (work < 0) return false;
    step(b, low, high, down, least, most);
  }
  return true;
}
static void exchange(const bidiag *b, int64_t i, int64_t k) {
  const double kept = b->d[i];
  b->d[i] = b->d[k];
  b->d[k] = kept;
  kiln__la_exchange_rows(b->u, b->n, i, k);
  kiln__la_exchange_rows(b->v, b->width, i, k);
}
/* Positive, descending. */
static void put_in_order(const bidiag *b) {
  double *d = b->d;
  for (int64_t i = 0; i < b->n; i++) {
    for (int64_t k = 0; d[i] < 0 && b->v && k < b->width; k++) b->v[i * b->width + k] *= -1;
    d[i] = fabs(d[i]);
  }
  for (int64_t last = b->n - 1; last > 0; last--) {
    int64_t least = 0;
    for (int64_t i = 1; i <= last; i++) least = d[i] <= d[least] ? i : least;
    if (least != last) exchange(b, least, last);
  }
}
/* To the transposed form: a lower one to an upper one, an upper one with a column more to a lower
 * one without it. The rotations are of the other side's columns, or in `turns`. */
static void transpose(const bidiag *b, bool more, double *rows, int64_t width,
                      kiln__la_turn *turns) {
  for (int64_t i = 0; i + !more < b->n; i++) {
    const kiln__la_turn t = turn_for(b->d[i], b->e[i], &b->d[i]);
    const bool last = i + 1 == b->n;
    b->e[i] = last ? 0 : t.s * b->d[i + 1];
    if (!last) b->d[i + 1] *= t.c;
    turn_pair(rows, width, i, t);
    if (turns) turns[i] = t;
  }
}
static void set_precision(bidiag *b, bool single) {
  b->epsilon = single ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
  b->tolerance = fmax(10, fmin(100, pow(b->epsilon, -0.125))) * b->epsilon;
}
/* An upper one, by the iteration. */
static bool iterate(bidiag *b) {
  const double tiny = b->epsilon > DBL_EPSILON ? FLT_MIN : DBL_MIN;
  double mu = fabs(b->d[0]), least = mu;
  for (int64_t i = 1; i < b->n && least != 0; i++) {
    mu = fabs(b->d[i]) * (mu / (mu + fabs(b->e[i - 1])));
    least = fmin(least, mu);
  }
  b->threshold =
      fmax(b->tolerance * (least / sqrt((double)b->n)), 6 * ((double)b->n * ((double)b->n * tiny)));
  if (!diagonalise(b)) return false;
  put_in_order(b);
  return true;
}
/* A part of the matrix that is divided no more (LAPACK: lasdq). */
static bool solve_leaf(const kiln__la_divide *t, int64_t at, int64_t n, bool more) {
  double u[KILN__LA_WHOLE * KILN__LA_WHOLE], v[(KILN__LA_WHOLE + 1) * (KILN__LA_WHOLE + 1)];
  bidiag b = {.n = n, .d = t->d + at, .e = t->e + at, .u = u, .v = v, .width = n + more};
  for (int64_t i = 0; i < n * n; i++) u[i] = i % (n + 1) == 0;
  for (int64_t i = 0; i < b.width * b.width; i++) v[i] = i % (b.width + 1) == 0;
  set_precision(&b, t->epsilon > DBL_EPSILON);
  if (more) {
    transpose(&b, true, v, b.width, NULL);
    transpose(&b, false, u, n, NULL);
  }
  if (!iterate(&b)) return false;
  for (int64_t i = 0; i < n; i++) {
    int64_t least = i;
    for (int64_t k = i + 1; k < n; k++) least = b.d[k] < b.d[least] ? k : least;
    if (least != i) exchange(&b, i, least);
  }
  for (int64_t i = 0; i < n; i++) {
    memcpy(t->u + (at + i) * t->n + at, u + i * n, sizeof *u * (size_t)n);
  }
  for (int64_t i = 0; i < b.width; i++) {
    memcpy(t->v + (at + i) * t->n + at, v + i * b.width, sizeof *v * (size_t)b.width);
  }
  return true;
}
/* d and e, which are a lower bidiagonal matrix where `lower`; u and v become its vectors, as rows.
 * turns holds n, squares and more 2 n n numbers each. */
static bool solve_bidiagonal(bidiag *b, bool lower, bool single, kiln__la_turn *turns,
                             double *squares, double *more) {
  const int64_t n = b->width = b->n;
  set_precision(b, single);
  for (int64_t i = 0; b->v && i < n * n; i++) b->u[i] = b->v[i] = i % (n + 1) == 0;
  if (n == 1) { /* the one place where the left vector gets the sign */
    if (b->v && signbit(b->d[0])) b->u[0] = -1;
    b->d[0] = fabs(b->d[0]);
    return true;
  }
  if (lower) transpose(b, false, NULL, n, turns);
  if (b->v && n > KILN__LA_WHOLE) {
    const kiln__la_divide t = {n, b->d, b->e, b->u, b->v, b->epsilon, squares, more, solve_leaf};
    b->e[n - 1] = 0;
    if (!kiln__la_divide_bidiagonal(&t)) return false;
  } else if (!iterate(b)) {
    return false;
  }
  for (int64_t k = 0; lower && b->v && k < n; k++) { /* the elements of u's vectors */
    for (int64_t j = n - 2; j >= 0; j--) {
      double *x = b->u + k * n + j;
      const double low = x[0], high = x[1];
      x[1] = turns[j].c * high + turns[j].s * low;
      x[0] = turns[j].c * low - turns[j].s * high;
    }
  }
  return true;
}

/* -- Of any matrix -- */

/* Whether a QR factorisation comes first: where it does in the LAPACK of PyTorch's packages. */
static bool is_high(const kiln__la_svd_task *t) {
  if (t->n == 0 || (t->real && t->wide)) return false;
  return t->m >= (int64_t)((double)t->n * (t->real ? 1.5 : 17.0 / 9));
}
int64_t kiln__la_svd_room(const kiln__la_svd_task *t) {
  return 5 * t->n * t->n + 2 * t->m + 4 * t->n;
}
/* Squares must be numbers: what a is divided by for that; 0: not finite. */
static double scale_for(const z *a, int64_t count) {
  double most = 0;
  for (int64_t i = 0; i < count; i++) {
    if (!isfinite(a[i].re) || !isfinite(a[i].im)) return 0;
    most = fmax(most, fmax(fabs(a[i].re), fabs(a[i].im)));
  }
  return most > 1e100 || (most < 1e-100 && most > 0) ? most : 1;
}
/* The triangle of the QR factorisation that is in a [m, n]; its adjoint. */
static void take_triangle(const z *a, int64_t n, bool turned, z *to) {
  for (int64_t i = 0; i < n * n; i++) {
    const int64_t row = i / n, c = i % n;
    const z x = row > c ? (z){0, 0} : a[i];
    to[turned ? c * n + row : i] = turned ? z_conj(x) : x;
  }
}
/* out [n, n] = q, or the identity, times the vectors in the rows of v. */
static __attribute__((nonnull(1))) void combine(z *out, const z *q, const double *v, int64_t n) {
  for (int64_t i = 0; i < n && !kiln_budget_leaves_out(); i++) {
    for (int64_t j = 0; j < n; j++) {
      z sum = {v[j * n + i], 0};
      for (int64_t k = 0; q && k < n; k++) {
        if (k == 0) sum.re = 0;
        sum.re += q[i * n + k].re * v[j * n + k];
        sum.im += q[i * n + k].im * v[j * n + k];
      }
      out[i * n + j] = sum;
    }
  }
}
/* The first n columns of a [m, columns] times b [n, n]. */
static void multiply_into(z *a, int64_t m, int64_t columns, const z *b, int64_t n, z *row) {
  for (int64_t i = 0; i < m && !kiln_budget_leaves_out(); i++, a += columns) {
    for (int64_t j = 0; j < n; j++) row[j] = (z){0, 0};
    for (int64_t k = 0; k < n; k++) {
      for (int64_t j = 0; j < n; j++) row[j] = z_add(row[j], z_mul(a[k], b[k * n + j]));
    }
    memcpy(a, row, sizeof *a * (size_t)n);
  }
}
bool kiln__la_svd(const kiln__la_svd_task *t, z *a, double *s, z *left, z *right, z *room) {
  const int64_t m = t->m, n = t->n, columns = t->full ? m : n, square = n * n;
  const bool high = is_high(t), vectors = left != NULL;
  z *q = room, *p = q + square, *core = p + square, *whole = core + 2 * square;
  z *rest = whole + square;
  double *rows = (double *)(core + square);
  bidiag b = {.n = n, .d = s, .e = (double *)(rest + 2 * m + n)};
  const double scale = scale_for(a, m * n);
  if (scale == 0) return false;
  for (int64_t i = 0; scale != 1 && i < m * n; i++) a[i] = (z){a[i].re / scale, a[i].im / scale};
  if (vectors) b.u = rows, b.v = rows + square;
  if (n == 0) {
    for (int64_t i = 0; vectors && i < m * columns; i++) left[i] = (z){i % (columns + 1) == 0, 0};
    return true;
  }
  if (high) {
    kiln__la_qr(a, m, n, rest);
    take_triangle(a, n, t->wide, core);
    if (vectors) kiln__la_make_q(a, m, n, rest, n, left, columns);
    bidiagonal(core, n, n, s, b.e, vectors ? q : NULL, n, vectors ? p : NULL, rest);
  } else {
    bidiagonal(a, m, n, s, b.e, left, columns, vectors ? p : NULL, rest);
  }
  if (!solve_bidiagonal(&b, t->wide && !high, t->single, (kiln__la_turn *)(b.e + n), (double *)core,
                        (double *)whole)) {
    return false;
  }
  for (int64_t i = 0; i < n; i++) s[i] *= scale;
  if (!vectors) return true;
  /* Of a wide matrix both sides are exchanged; so are they of its triangle. */
  combine(whole, !high ? NULL : t->wide ? p : q, t->wide ? b.v : b.u, n);
  multiply_into(left, m, columns, whole, n, rest);
  combine(whole, high && t->wide ? q : p, t->wide ? b.u : b.v, n);
  for (int64_t i = 0; i < square; i++) right[i] = z_conj(whole[i % n * n + i / n]);
  return true;
}
