/* eig.c: eigenvalues and vectors of real matrices.
 *
 * Their order, and the signs of the vectors, are LAPACK's, so the way is that of geev: balancing
 * (gebal: Parlett and Reinsch, 1969), Householder's reduction to Hessenberg form (gehrd), Francis's
 * double-shift QR iteration (lahqr: Ahues and Tisseur, 1997, say when an element is nothing), each
 * block of two in standard form (lanv2), vectors by substitution (trevc), scaled to length 1; of a
 * complex pair's the greatest part is made real. Where the iteration ends depends on the precision,
 * and the order with it: `single`. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/kernels/linalg/linalg.h"

typedef struct schur {
  int64_t n, low, high; /* rows [low, high] are active */
  double *h, *q;        /* [n, n]; q may be NULL */
  double *scale;        /* of the balanced rows; where they came from outside of them */
  double ulp, small;
  z *w;
} schur;

/* -- Balancing -- */

static void exchange(schur *s, int64_t j, int64_t m) {
  const int64_t n = s->n;
  s->scale[m] = (double)j;
  for (int64_t i = 0; j != m && i <= s->high; i++) {
    const double x = s->h[i * n + j];
    s->h[i * n + j] = s->h[i * n + m];
    s->h[i * n + m] = x;
  }
  for (int64_t i = s->low; j != m && i < n; i++) {
    const double x = s->h[j * n + i];
    s->h[j * n + i] = s->h[m * n + i];
    s->h[m * n + i] = x;
  }
}
/* Whether row (column) j is zero within the active part, but on the diagonal. */
static bool is_alone(const schur *s, int64_t j, bool row) {
  for (int64_t i = s->low; i <= s->high; i++) {
    if (i != j && s->h[row ? j * s->n + i : i * s->n + j] != 0) return false;
  }
  return true;
}
static void isolate(schur *s) {
  for (int64_t j = s->high; j >= 0 && s->high > 0; j--) {
    if (!is_alone(s, j, true)) continue;
    exchange(s, j, s->high);
    j = s->high--; /* begins again */
  }
  for (int64_t j = s->low; j <= s->high && s->low < s->high; j++) {
    if (!is_alone(s, j, false)) continue;
    exchange(s, j, s->low);
    j = s->low++;
  }
}
static double length_of(const double *x, int64_t count, int64_t step) {
  double most = 0, sum = 0;
  for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(x[i * step]));
  for (int64_t i = 0; most > 0 && i < count; i++) {
    sum += x[i * step] / most * (x[i * step] / most);
  }
  return most * sqrt(sum);
}
/* One pass over the rows; true where one was scaled. */
static bool scale_rows(schur *s) {
  const int64_t n = s->n, count = s->high - s->low + 1;
  bool more = false;
  for (int64_t i = s->low; i <= s->high; i++) {
    double c = length_of(s->h + s->low * n + i, count, n);
    double r = length_of(s->h + i * n + s->low, count, 1), f = 1;
    const double sum = c + r;
    if (c == 0 || r == 0) continue;
    for (; c < r / 2 && f < 0x1p900; f *= 2) c *= 2, r /= 2;
    for (; c / 2 >= r && f > 0x1p-900; f /= 2) c /= 2, r *= 2;
    if (c + r >= 0.95 * sum || !(f * s->scale[i] < 0x1p900 && f * s->scale[i] > 0x1p-900)) continue;
    s->scale[i] *= f;
    for (int64_t k = s->low; k < n; k++) s->h[i * n + k] /= f;
    for (int64_t k = 0; k <= s->high; k++) s->h[k * n + i] *= f;
    more = true;
  }
  return more;
}

/* -- Hessenberg form -- */

/* x becomes v with v[0] = 1, so that I - tau v v^T takes it to beta at the head. */
static double reflector(double *x, int64_t n, double *tau) {
  const double alpha = x[0], rest = length_of(x + 1, n - 1, 1);
  *tau = 0;
  if (rest == 0) return alpha;
  const double beta = -copysign(hypot(alpha, rest), alpha);
  *tau = (beta - alpha) / beta;
  for (int64_t i = 1; i < n; i++) x[i] /= alpha - beta;
  return beta;
}
/* v[0] = 1, of `count`, for rows (columns) from `at` on, in columns (rows) [from, to). */
static void reflect(double *h, int64_t n, const double *v, int64_t count, double tau, int64_t at,
                    int64_t from, int64_t to, bool rows) {
  for (int64_t j = from; j < to; j++) {
    double *x = h + (rows ? at * n + j : j * n + at), sum = x[0];
    const int64_t step = rows ? n : 1;
    for (int64_t k = 1; k < count; k++) sum += v[k] * x[k * step];
    sum *= tau;
    x[0] -= sum;
    for (int64_t k = 1; k < count; k++) x[k * step] -= sum * v[k];
  }
}
static void to_hessenberg(schur *s, double *v) {
  const int64_t n = s->n;
  for (int64_t i = s->low; i + 1 <= s->high && !kiln_budget_leaves_out(); i++) {
    const int64_t count = s->high - i;
    double tau;
    for (int64_t k = 0; k < count; k++) v[k] = s->h[(i + 1 + k) * n + i];
    s->h[(i + 1) * n + i] = reflector(v, count, &tau);
    for (int64_t k = 1; k < count; k++) s->h[(i + 1 + k) * n + i] = 0;
    reflect(s->h, n, v, count, tau, i + 1, 0, s->high + 1, false);
    reflect(s->h, n, v, count, tau, i + 1, i + 1, n, true);
    if (s->q) reflect(s->q, n, v, count, tau, i + 1, 0, n, false);
  }
}

/* -- A block of two in standard form -- */

typedef struct block {
  double a, b, c, d;
  kiln__la_turn turn;
} block;
/* Upper triangular, or with equal elements on the diagonal and others of unlike sign. */
static void standardise(block *k, double ulp) {
  const double gap = k->a - k->d, p = gap / 2;
  const double most = fmax(fabs(k->b), fabs(k->c));
  const double least = fmin(fabs(k->b), fabs(k->c)) * copysign(1, k->b) * copysign(1, k->c);
  const double scale = fmax(fabs(p), most);
  k->turn = (kiln__la_turn){1, 0};
  if (k->c == 0 || (k->b != 0 && gap == 0 && signbit(k->b) != signbit(k->c))) return;
  if (k->b == 0) {
    *k = (block){k->d, -k->c, 0, k->a, {0, 1}};
    return;
  }
  const double x = p / scale * p + most / scale * least;
  if (x >= 4 * ulp) { /* real values */
    const double root = p + copysign(sqrt(scale) * sqrt(x), p), length = hypot(k->c, root);
    *k = (block){
        k->d + root, k->b - k->c, 0, k->d - most / root * least, {root / length, k->c / length}};
    return;
  }
  const double sigma = k->b + k->c, length = hypot(sigma, gap);
  double cs = sqrt((1 + fabs(sigma) / length) / 2);
  double sn = -(p / (length * cs)) * copysign(1, sigma);
  const double aa = k->a * cs + k->b * sn, bb = -k->a * sn + k->b * cs;
  const double cc = k->c * cs + k->d * sn, dd = -k->c * sn + k->d * cs;
  const double a = aa * cs + cc * sn, b = bb * cs + dd * sn;
  const double c = -aa * sn + cc * cs, d = -bb * sn + dd * cs, mean = (a + d) / 2;
  *k = (block){mean, b, c, mean, {cs, sn}};
  if (c != 0 && b == 0) {
    *k = (block){mean, -c, 0, mean, {-sn, cs}};
  } else if (c != 0 && signbit(b) == signbit(c)) { /* real after all */
    const double rb = sqrt(fabs(b)), rc = sqrt(fabs(c)), y = copysign(rb * rc, c);
    const double by = 1 / sqrt(fabs(b + c)), c1 = rb * by, s1 = rc * by;
    *k = (block){mean + y, b - c, 0, mean - y, {cs * c1 - sn * s1, cs * s1 + sn * c1}};
  }
}
static void turn_rows(double *x, double *y, int64_t count, int64_t step, kiln__la_turn t) {
  for (int64_t k = 0; k < count; k++) {
    const double a = x[k * step], b = y[k * step];
    x[k * step] = t.c * a + t.s * b;
    y[k * step] = t.c * b - t.s * a;
  }
}
static void split_pair(schur *s, int64_t i) { /* rows i - 1 and i */
  const int64_t n = s->n;
  double *h = s->h, *row = h + (i - 1) * n;
  block k = {row[i - 1], row[i], row[n + i - 1], row[n + i], {1, 0}};
  standardise(&k, s->ulp);
  row[i - 1] = k.a;
  row[i] = k.b;
  row[n + i - 1] = k.c;
  row[n + i] = k.d;
  turn_rows(row + i + 1, row + n + i + 1, n - i - 1, 1, k.turn);
  turn_rows(h + i - 1, h + i, i - 1, n, k.turn);
  if (s->q) turn_rows(s->q + i - 1, s->q + i, n, n, k.turn);
  const double im = k.c == 0 ? 0 : sqrt(fabs(k.b)) * sqrt(fabs(k.c));
  s->w[i - 1] = (z){k.a, im};
  s->w[i] = (z){k.d, im == 0 ? 0 : -im};
}

/* -- The iteration -- */

/* Whether the element before row k is nothing beside its neighbours. */
static bool is_nothing(const schur *s, int64_t k) {
  const int64_t n = s->n;
  const double *h = s->h + k * n + k, below = fabs(h[-1]), gap = fabs(h[-n - 1] - h[0]);
  double near = fabs(h[-n - 1]) + fabs(h[0]);
  if (below <= s->small) return true;
  if (near == 0) {
    if (k - 2 >= s->low) near += fabs(h[-n - 2]);
    if (k + 1 <= s->high) near += fabs(h[n]);
  }
  if (below > s->ulp * near) return false;
  const double ab = fmax(below, fabs(h[-n])), ba = fmin(below, fabs(h[-n]));
  const double aa = fmax(fabs(h[0]), gap), bb = fmin(fabs(h[0]), gap), sum = aa + ab;
  return ba * (ab / sum) <= fmax(s->small, s->ulp * (bb * (aa / sum)));
}
/* The two shifts of the block [l, i]; odd ones at times, to get on. */
static void shifts_of(const schur *s, int64_t l, int64_t i, int64_t steps, z *one, z *two) {
  const int64_t n = s->n;
  const double *h = s->h;
  double a = h[(i - 1) * n + i - 1], b = h[(i - 1) * n + i], c = h[i * n + i - 1], d = h[i * n + i];
  if (steps % 10 == 0) {
    const bool end = steps % 20 == 0;
    const double odd = end ? fabs(c) + fabs(h[(i - 1) * n + i - 2])
                           : fabs(h[(l + 1) * n + l]) + fabs(h[(l + 2) * n + l + 1]);
    a = d = 0.75 * odd + (end ? d : h[l * n + l]);
    b = -0.4375 * odd;
    c = odd;
  }
  const double sum = fabs(a) + fabs(b) + fabs(c) + fabs(d);
  *one = *two = (z){0, 0};
  if (sum == 0) return;
  a /= sum, b /= sum, c /= sum, d /= sum;
  const double mean = (a + d) / 2, det = (a - mean) * (d - mean) - b * c, root = sqrt(fabs(det));
  if (det >= 0) {
    *one = (z){mean * sum, root * sum};
    *two = z_conj(*one);
  } else {
    const double more = mean + root, less = mean - root;
    one->re = two->re = (fabs(more - d) <= fabs(less - d) ? more : less) * sum;
  }
}
static void sweep(schur *s, int64_t l, int64_t i, int64_t steps) {
  const int64_t n = s->n;
  double *h = s->h, v[3], tau;
  z one, two;
  shifts_of(s, l, i, steps, &one, &two);
  int64_t m = i - 2;
  for (;; m--) {
    const double *x = h + m * n + m;
    double sum = fabs(x[0] - two.re) + fabs(two.im) + fabs(x[n]);
    const double below = x[n] / sum;
    v[0] = below * x[1] + (x[0] - one.re) * ((x[0] - two.re) / sum) - one.im * (two.im / sum);
    v[1] = below * (x[0] + x[n + 1] - one.re - two.re);
    v[2] = below * x[2 * n + 1];
    sum = fabs(v[0]) + fabs(v[1]) + fabs(v[2]);
    for (int k = 0; k < 3; k++) v[k] /= sum;
    if (m == l) break;
    const double near = fabs(x[-n - 1]) + fabs(x[0]) + fabs(x[n + 1]);
    if (fabs(x[-1]) * (fabs(v[1]) + fabs(v[2])) <= s->ulp * fabs(v[0]) * near) break;
  }
  for (int64_t k = m; k < i; k++) {
    const int64_t count = i - k + 1 < 3 ? i - k + 1 : 3;
    for (int64_t r = 0; k > m && r < count; r++) v[r] = h[(k + r) * n + k - 1];
    const double beta = reflector(v, count, &tau);
    if (k > m) {
      h[k * n + k - 1] = beta;
      for (int64_t r = 1; r < count; r++) h[(k + r) * n + k - 1] = 0;
    } else if (m > l) {
      h[k * n + k - 1] *= 1 - tau;
    }
    reflect(h, n, v, count, tau, k, k, n, true);
    reflect(h, n, v, count, tau, k, 0, (k + 3 < i ? k + 3 : i) + 1, false);
    if (s->q) reflect(s->q, n, v, count, tau, k, 0, n, false);
  }
}
/* false: no convergence. */
static bool iterate(schur *s) {
  const int64_t n = s->n, active = s->high - s->low + 1;
  for (int64_t i = 0; i < n; i++) {
    if (i < s->low || i > s->high) s->w[i] = (z){s->h[i * n + i], 0};
  }
  for (int64_t i = s->high, steps = 0; i >= s->low && !kiln_budget_leaves_out();) {
    int64_t l = i;
    while (l > s->low && !is_nothing(s, l)) l--;
    if (l > s->low) s->h[l * n + l - 1] = 0;
    if (l >= i - 1) {
      if (l == i)
        s->w[i] = (z){s->h[i * n + i], 0};
      else
        split_pair(s, i);
      i = l - 1;
      steps = 0;
      continue;
    }
    if (++steps > 30 * (active > 10 ? active : 10)) return false;
    sweep(s, l, i, steps);
  }
  return true;
}

/* -- Vectors -- */

static double size1(z a) { return fabs(a.re) + fabs(a.im); }
/* -(row i of h) x, over columns (from, last]. */
static z rest_of(const schur *s, int64_t i, int64_t from, int64_t last, const z *x) {
  z sum = {0, 0};
  for (int64_t j = from + 1; j <= last; j++) {
    sum.re -= s->h[i * s->n + j] * x[j].re;
    sum.im -= s->h[i * s->n + j] * x[j].im;
  }
  return sum;
}
/* The vector in x[0, k] of w, whose block of two begins at k - 1 where w is complex. */
static void substitute(const schur *s, int64_t k, z w, z *x) {
  const int64_t n = s->n;
  const double *h = s->h, least = fmax(s->ulp * size1(w), 1e-200);
  int64_t i = k - 1;
  x[k] = (z){1, 0};
  if (w.im != 0) {
    const double b = h[(k - 1) * n + k], c = h[k * n + k - 1];
    x[k - 1] = (z){fabs(b) >= fabs(c) ? 1 : -w.im / c, 0};
    x[k] = (z){0, fabs(b) >= fabs(c) ? w.im / b : 1};
    i--;
  }
  for (int64_t rows; i >= 0; i -= rows) {
    const z d = {h[i * n + i] - w.re, -w.im}, sum = rest_of(s, i, i, k, x);
    rows = i > 0 && h[i * n + i - 1] != 0 ? 2 : 1;
    if (rows == 1) {
      x[i] = z_over(sum, size1(d) < least ? (z){least, 0} : d);
    } else { /* rows i - 1 and i together: [a b; c d] [x y] = [other sum] */
      const double b = h[(i - 1) * n + i], c = h[i * n + i - 1];
      const z a = {h[(i - 1) * n + i - 1] - w.re, -w.im}, other = rest_of(s, i - 1, i, k, x);
      const double least2 = least * (size1(a) + fabs(b) + fabs(c) + size1(d));
      z det = z_sub(z_mul(a, d), (z){b * c, 0});
      if (size1(det) < least2) det = (z){least2, 0};
      x[i] = z_over(z_sub(z_mul(a, sum), (z){c * other.re, c * other.im}), det);
      x[i - 1] = z_over(z_sub(z_mul(d, other), (z){b * sum.re, b * sum.im}), det);
    }
    const double most = fmax(size1(x[i]), rows == 2 ? size1(x[i - 1]) : 0);
    for (int64_t j = i + 1 - rows; most > 1e100 && j <= k; j++) {
      x[j] = (z){x[j].re / most, x[j].im / most};
    }
  }
}
/* Undoes the balancing of a column of v. */
static void unbalance(const schur *s, z *v) {
  for (int64_t i = s->low; i <= s->high; i++) {
    v[i] = (z){v[i].re * s->scale[i], v[i].im * s->scale[i]};
  }
  for (int64_t step = 0; step < s->n; step++) {
    const int64_t i = step < s->low ? s->low - 1 - step : step;
    if (step >= s->low && step <= s->high) continue;
    const int64_t from = (int64_t)s->scale[i];
    const z x = v[i];
    v[i] = v[from];
    v[from] = x;
  }
}
/* To length 1, the greatest part real: negative where its real part is, in double precision only
 * where that is the greater one too (LAPACK from 3.10 on, and before). */
static void normalise(z *v, int64_t n, bool single) {
  double most = 0, length = 0;
  z top = {1, 0};
  for (int64_t i = 0; i < n; i++) most = fmax(most, fmax(fabs(v[i].re), fabs(v[i].im)));
  for (int64_t i = 0; i < n; i++) {
    v[i] = (z){v[i].re / most, v[i].im / most};
    length += z_size2(v[i]);
  }
  most = 0;
  for (int64_t i = 0; i < n; i++) {
    if (z_size2(v[i]) > most) most = z_size2(v[i]), top = v[i];
  }
  const bool turned = top.re < 0 && (single || fabs(top.re) > fabs(top.im));
  const double by = (turned ? -1 : 1) / sqrt(length) / sqrt(most);
  const z turn = {top.re * by, -top.im * by};
  for (int64_t i = 0; i < n; i++) {
    const bool is_top = v[i].re == top.re && v[i].im == top.im;
    v[i] = z_mul(v[i], turn);
    if (is_top) v[i].im = 0;
  }
}
static void vectors_of(const schur *s, z *v, z *room) {
  const int64_t n = s->n;
  z *x = room, *column = room + n;
  for (int64_t k = n - 1; k >= 0 && !kiln_budget_leaves_out(); k--) {
    const bool pair = s->w[k].im != 0;
    const z w = pair ? s->w[k - 1] : s->w[k]; /* above the axis */
    substitute(s, k, w, x);
    for (int64_t i = 0; i < n; i++) {
      column[i] = (z){0, 0};
      for (int64_t j = 0; j <= k; j++) {
        column[i].re += s->q[i * n + j] * x[j].re;
        column[i].im += s->q[i * n + j] * x[j].im;
      }
    }
    unbalance(s, column);
    if (pair) {
      normalise(column, n, s->ulp == FLT_EPSILON);
    } else {
      double sum = 0, most = 0;
      for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(column[i].re));
      for (int64_t i = 0; i < n; i++) sum += column[i].re / most * (column[i].re / most);
      for (int64_t i = 0; i < n; i++) column[i] = (z){column[i].re / most / sqrt(sum), 0};
    }
    for (int64_t i = 0; i < n; i++) {
      v[i * n + k] = pair ? z_conj(column[i]) : column[i];
      if (pair) v[i * n + k - 1] = column[i];
    }
    k -= pair;
  }
}

bool kiln__la_eig_real(const z *a, int64_t n, bool single, z *w, z *v, z *room) {
  double *h = (double *)room, *q = h + n * n, *work = q + n * n;
  schur s = {.n = n, .high = n - 1, .h = h, .q = v ? q : NULL, .scale = work, .w = w};
  double most = 0, unit = 1;
  if (n == 0) return true;
  for (int64_t i = 0; i < n * n; i++) most = fmax(most, fabs(a[i].re));
  if (most > 1e100 || (most < 1e-100 && most > 0)) unit = most;
  for (int64_t i = 0; i < n * n; i++) {
    h[i] = a[i].re / unit;
    q[i] = i % (n + 1) == 0;
  }
  s.ulp = single ? FLT_EPSILON : DBL_EPSILON;
  isolate(&s);
  for (int64_t i = s.low; i <= s.high; i++) s.scale[i] = 1;
  for (int pass = 0; pass < 100 && !kiln_budget_leaves_out() && scale_rows(&s); pass++) {
  }
  s.small = (single ? FLT_MIN : DBL_MIN) * ((double)(s.high - s.low + 1) / s.ulp);
  to_hessenberg(&s, work + n);
  if (!iterate(&s)) return false;
  if (v) vectors_of(&s, v, room + n * n + n);
  for (int64_t i = 0; i < n; i++) w[i] = (z){w[i].re * unit, w[i].im * unit};
  return true;
}
