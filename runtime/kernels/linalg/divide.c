/* divide.c: divide and conquer for bidiagonal and symmetric tridiagonal matrices.
 *
 * Without one row (an off-diagonal element) the matrix falls into two, which are solved on their
 * own; in the basis of their vectors the whole is diagonal but for that row (for an update of rank
 * 1). Its values are roots of a secular equation, its vectors follow from them: Gu and Eisenstat
 * (1995), who make the vectors orthogonal by taking those of the nearby matrix whose values are
 * exactly the roots that were found.
 *
 * PyTorch's vectors have the signs that LAPACK's bdsdc and stedc give them. They do not depend on
 * how a root is found, nor on the halves' signs, but on where the matrix is cut, on what is
 * deflated, and in which order equal values come: these are LAPACK's. */
#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "runtime/kernels/linalg/divide.h"

/* -- The secular equation -- */

/* 1 / rho + sum weight_i / (p_i - x) = 0, p_i ascending: pole_i, or its square. The last root lies
 * beyond the last pole, each other one between two. */
typedef struct secular {
  int64_t n;
  const double *pole, *weight;
  double inverse; /* 1 / rho */
  bool squares;
} secular;
/* The sums over the poles below a root and above it, and their slopes. */
typedef struct sums {
  double below, above, below_slope, above_slope;
} sums;

static double between(const secular *s, int64_t i, int64_t k) {
  const double gap = s->pole[i] - s->pole[k];
  return s->squares ? gap * (s->pole[i] + s->pole[k]) : gap;
}
/* At x, where the poles are at `from`; gaps[i] becomes from[i] - x. */
static sums sums_at(const secular *s, int64_t root, const double *from, double x, double *gaps) {
  sums r = {0, 0, 0, 0};
  for (int64_t i = 0; i < s->n; i++) gaps[i] = from[i] - x;
  for (int64_t i = 0; i <= root; i++) {
    const double over = 1 / gaps[i], term = s->weight[i] * over;
    r.below += term;
    r.below_slope += term * over;
  }
  for (int64_t i = s->n - 1; i > root; i--) {
    const double over = 1 / gaps[i], term = s->weight[i] * over;
    r.above += term;
    r.above_slope += term * over;
  }
  return r;
}
/* Where c + low / (at_low - x) + high / (at_high - x) is 0, between the two. */
static double two_poles(double c, double low, double at_low, double high, double at_high) {
  const double a = c * (at_low + at_high) + low + high;
  const double b = c * at_low * at_high + low * at_high + high * at_low;
  const double root = sqrt(fabs(a * a - 4 * b * c));
  return a > 0 ? 2 * b / (a + root) : c == 0 ? b / a : (a - root) / (2 * c);
}
static double middle(double low, double high) {
  if (low > 0 && high > 4 * low) return sqrt(low) * sqrt(high);
  if (high < 0 && low < 4 * high) return -sqrt(-low) * sqrt(-high);
  return low + (high - low) / 2;
}
/* The root between poles `root` and root + 1: gaps[i] becomes p_i less the root, to full relative
 * precision (so all is counted from the nearer pole); the value. Each step takes the sums below and
 * above for one pole each that has their value and slope (Bunch, Nielsen and Sorensen, 1978), and
 * the middle of where the root is known to be instead where that leads nowhere. */
static double find_root(const secular *s, int64_t root, double epsilon, double *from,
                        double *gaps) {
  const bool last = root + 1 == s->n;
  double width = 0;
  for (int64_t i = 0; last && i < s->n; i++) width += s->weight[i] / s->inverse;
  if (!last) width = between(s, root + 1, root);
  for (int64_t i = 0; i < s->n; i++) from[i] = between(s, i, root);
  /* Beyond the last pole there is one without weight. */
  double next_weight = last ? 0 : s->weight[root + 1], low = 0, high = width * (1 + 4 * epsilon);
  const double next = last ? 2 * width : width;
  sums now = sums_at(s, root, from, width / 2, gaps);
  const double rest = s->inverse + (now.below - s->weight[root] / gaps[root]) +
                      (now.above - (last ? 0 : next_weight / gaps[root + 1]));
  double f = s->inverse + now.below + now.above, before = INFINITY, x;
  const bool up = !last && f <= 0; /* the pole above is the nearer one */
  const int64_t origin = up ? root + 1 : root;
  if (up) {
    low = -width / 2;
    high = fmax(low / 2, next_weight / now.below / 2);
    x = two_poles(rest, s->weight[root], -width, next_weight, 0);
    for (int64_t i = 0; i < s->n; i++) from[i] = between(s, i, origin);
  } else {
    if (f > 0) high = width / 2;
    low = f > 0 ? fmin(high / 2, s->weight[root] / (s->inverse + now.above) / 2) : width / 2;
    x = two_poles(rest, s->weight[root], 0, next_weight, next);
  }
  for (int step = 0, slow = 0; step < 200; step++) {
    if (!(x > low && x < high)) x = middle(low, high);
    now = sums_at(s, root, from, x, gaps);
    f = s->inverse + now.below + now.above;
    if (fabs(f) <= epsilon * (8 * (now.above - now.below) + 2 * s->inverse)) break;
    if (f <= 0)
      low = x;
    else
      high = x;
    if (high - low <= 2 * epsilon * fmax(fabs(low), fabs(high))) break;
    const double gap = gaps[root], beyond = last ? next - x : gaps[root + 1];
    const double c = f - gap * now.below_slope - beyond * now.above_slope;
    const double change =
        two_poles(c, gap * gap * now.below_slope, gap, beyond * beyond * now.above_slope, beyond);
    slow = fabs(f) > fabs(before) / 2 ? slow + 1 : 0;
    before = f;
    if (x + change == x) break;
    x = slow > 2 ? middle(low, high) : x + change;
  }
  const double at = s->pole[origin];
  return s->squares ? at + x / (at + sqrt(fmax(at * at + x, 0))) : at + x;
}

/* -- Products -- */

void kiln__la_add_product(double *out, int64_t out_row, const double *a, int64_t a_row,
                          const double *b, int64_t b_row, int64_t m, int64_t k, int64_t n) {
  enum { ROWS = 32, COLUMNS = 256 }; /* a part of b that stays in the cache */
  for (int64_t first = 0; first < k; first += ROWS) {
    const int64_t end = first + ROWS < k ? first + ROWS : k;
    for (int64_t left = 0; left < n && !kiln_budget_leaves_out(); left += COLUMNS) {
      const int64_t width = left + COLUMNS < n ? COLUMNS : n - left;
      for (int64_t i = 0; i < m; i++) {
        double *restrict to = out + i * out_row + left;
        const double *by = a + i * a_row;
        int64_t r = first;
        for (; r + 4 <= end; r += 4) {
          const double *restrict x0 = b + r * b_row + left, *restrict x1 = x0 + b_row;
          const double *restrict x2 = x1 + b_row, *restrict x3 = x2 + b_row;
          const double y0 = by[r], y1 = by[r + 1], y2 = by[r + 2], y3 = by[r + 3];
          for (int64_t c = 0; c < width; c++) {
            to[c] += (y0 * x0[c] + y1 * x1[c]) + (y2 * x2[c] + y3 * x3[c]);
          }
        }
        for (; r < end; r++) {
          const double *restrict x = b + r * b_row + left;
          for (int64_t c = 0; c < width; c++) to[c] += by[r] * x[c];
        }
      }
    }
  }
}

/* -- Two halves that become one -- */

/* How many epsilons are nothing beside 1: in PyTorch's library. LAPACK's own has come to 64. */
enum { BESIDE_1 = 8 };
/* Which halves a vector has elements in that are not 0; GONE: deflated, it stays as it is. */
enum { LEFT, BOTH, RIGHT, GONE };

typedef struct merge {
  const kiln__la_divide *t;
  int64_t at, n, split; /* rows [at, at + n); columns from at + split on are the right half's */
  int64_t kept, gone, counts[4];
  /* By position, values ascending: */
  double *d, *z;
  int64_t *row, *side;
  /* The positions that are kept, ascending; behind them those that are not, descending: */
  int64_t *slot;
  int64_t *place; /* of those kept: by their sides */
  int64_t *order; /* of all of t: the rows of what is solved already, by their values */
  double *pole, *weight, *from, *values;
} merge;

static merge room_for(const kiln__la_divide *t) {
  double *x = t->room + t->n * t->n;
  int64_t *y = (int64_t *)(x + 6 * t->n);
  const int64_t n = t->n;
  return (merge){.t = t,
                 .d = x,
                 .z = x + n,
                 .pole = x + 2 * n,
                 .weight = x + 3 * n,
                 .from = x + 4 * n,
                 .values = x + 5 * n,
                 .row = y,
                 .side = y + n,
                 .slot = y + 2 * n,
                 .place = y + 3 * n,
                 .order = y + 4 * n};
}
/* Two lists of rows whose values ascend to one; the second goes by `step`. */
static void interleave(const double *d, const int64_t *a, int64_t count, const int64_t *b,
                       int64_t others, int step, int64_t *out) {
  while (count + others > 0) {
    const bool first = others == 0 || (count > 0 && d[*a] <= d[*b]);
    *out++ = first ? *a++ : *b;
    if (first)
      count--;
    else
      b += step, others--;
  }
}
/* Rows x and y of m [n, n], elements [at, at + count). */
static void turn(double *m, int64_t n, int64_t x, int64_t y, int64_t at, int64_t count, double c,
                 double s) {
  double *restrict one = m + x * n + at, *restrict two = m + y * n + at;
  for (int64_t i = 0; i < count; i++) {
    const double a = one[i], b = two[i];
    one[i] = c * a + s * b;
    two[i] = c * b - s * a;
  }
}
/* Position p is not kept: those that are not lie at the end of the slots, descending. */
static void leave_out(merge *m, int64_t p) {
  int64_t *slot = m->slot + m->n - ++m->gone;
  m->side[p] = GONE;
  for (int64_t left = m->gone - 1; left > 0; left--, slot++) {
    if (m->t->u ? p > slot[1] : m->d[p] >= m->d[slot[1]]) break;
    *slot = slot[1];
  }
  *slot = p;
}
/* Takes the weight off position p, whose value is as good as that of q, onto q. */
static void unite(merge *m, int64_t p, int64_t q, int64_t width) {
  const kiln__la_divide *t = m->t;
  const double length = hypot(m->z[p], m->z[q]), c = m->z[q] / length, s = -m->z[p] / length;
  m->z[q] = length;
  m->z[p] = 0;
  if (t->u) turn(t->u, t->n, m->row[p], m->row[q], m->at, m->n, c, s);
  turn(t->v, t->n, m->row[p], m->row[q], m->at, width, c, s);
  if (m->side[p] != m->side[q]) m->side[q] = BOTH;
}
/* The slots of those that are kept, and where their rows come to lie: those of the left half first,
 * those of the right one last. */
static void take_kept(merge *m) {
  int64_t next[3] = {0, 0, 0};
  memset(m->counts, 0, sizeof m->counts);
  m->kept = 0;
  for (int64_t p = 0; p < m->n; p++) {
    m->counts[m->side[p]]++;
    if (m->side[p] != GONE) m->slot[m->kept++] = p;
  }
  next[BOTH] = m->counts[LEFT];
  next[RIGHT] = next[BOTH] + m->counts[BOTH];
  for (int64_t i = 0; i < m->kept; i++) {
    m->place[i] = next[m->side[m->slot[i]]]++;
    m->pole[i] = m->d[m->slot[i]];
  }
}
/* The values of those kept; gaps[j, i] are p_i less the root j, and z becomes that of the matrix
 * whose roots these are. */
static void solve_secular(merge *m, double rho, double *gaps) {
  const int64_t k = m->kept;
  const double epsilon = 0x1p-53;
  double *z = m->z, *product = m->from;
  const secular s = {k, m->pole, m->weight, 1 / rho, m->t->u != NULL};
  for (int64_t i = 0; i < k; i++) {
    z[i] = z[m->slot[i]]; /* slots ascend */
    m->weight[i] = z[i] * z[i];
  }
  for (int64_t j = 0; j < k && !kiln_budget_leaves_out(); j++) {
    m->values[j] = find_root(&s, j, epsilon, m->from, gaps + j * k);
  }
  for (int64_t i = 0; i < k; i++) product[i] = gaps[(k - 1) * k + i];
  for (int64_t j = 0; j + 1 < k; j++) {
    for (int64_t i = 0; i < k; i++) {
      product[i] *= gaps[j * k + i] / between(&s, i, j < i ? j : j + 1);
    }
  }
  for (int64_t i = 0; i < k; i++) z[i] = copysign(sqrt(fabs(product[i])), z[i]);
}
/* The vectors of those kept in the basis of the halves' vectors, as rows of out [kept, kept].
 * left: the left singular ones. */
static void vectors_of(const merge *m, const double *gaps, bool left, double *out) {
  const int64_t k = m->kept;
  double *x = m->from;
  for (int64_t j = 0; j < k; j++, gaps += k, out += k) {
    double length = 0;
    for (int64_t i = 0; i < k; i++) {
      x[i] = m->z[i] / gaps[i];
      if (left) x[i] = i == 0 ? -1 : m->pole[i] * x[i];
      length += x[i] * x[i];
    }
    length = sqrt(length);
    for (int64_t i = 0; i < k; i++) out[m->place[i]] = x[i] / length;
  }
}
/* The halves' vectors in x, combined by `by` [kept, kept]; `width` elements of each. */
static void combine(const merge *m, double *x, int64_t width, const double *by) {
  const int64_t n = m->t->n, k = m->kept, *counts = m->counts, left = counts[LEFT];
  const size_t bytes = sizeof *x * (size_t)width;
  double *rows = m->t->room, *to = x + m->at * n + m->at;
  for (int64_t i = 0; i < m->n; i++) {
    memcpy(rows + (i < k ? m->place[i] : i) * width, x + m->row[m->slot[i]] * n + m->at, bytes);
  }
  for (int64_t i = 0; i < k; i++) memset(to + i * n, 0, bytes);
  for (int64_t i = k; i < m->n; i++) memcpy(to + i * n, rows + i * width, bytes);
  kiln__la_add_product(to, n, by, k, rows, width, k, left + counts[BOTH], m->split);
  kiln__la_add_product(to + m->split, n, by + left, k, rows + left * width + m->split, width, k,
                       k - left, width - m->split);
}
/* The values to t, and their order. */
static void put_values(const merge *m, double scale) {
  double *d = m->t->d + m->at;
  for (int64_t i = 0; i < m->n; i++) {
    d[i] = scale * (i < m->kept ? m->values[i] : m->d[m->slot[i]]);
  }
  for (int64_t i = 0; i < m->n; i++) m->row[i] = m->at + i;
  interleave(m->t->d, m->row, m->kept, m->row + m->n - 1, m->n - m->kept, -1, m->order + m->at);
}
void kiln__la_exchange_rows(double *x, int64_t n, int64_t i, int64_t k) {
  for (int64_t c = 0; x && c < n; c++) {
    const double kept = x[i * n + c];
    x[i * n + c] = x[k * n + c];
    x[k * n + c] = kept;
  }
}
/* All values, by as few exchanges as can be. */
static void put_in_order(const kiln__la_divide *t, double sign) {
  for (int64_t i = 0; i < t->n && !kiln_budget_leaves_out(); i++) {
    int64_t best = i;
    for (int64_t k = i + 1; k < t->n; k++) {
      if (sign * t->d[k] > sign * t->d[best]) best = k;
    }
    if (best == i) continue;
    const double kept = t->d[i];
    t->d[i] = t->d[best];
    t->d[best] = kept;
    kiln__la_exchange_rows(t->u, t->n, i, best);
    kiln__la_exchange_rows(t->v, t->n, i, best);
  }
}

/* -- Bidiagonal matrices (LAPACK: bdsdc, lasd0 to lasd3) -- */

/* The row between the halves is z[0], in a matrix that is otherwise diagonal (0, d). Where there is
 * a column more, a rotation of the halves' last rows of v leaves one z for both; m has n + more. */
static void join_middle(merge *m, double z, bool more, double tolerance) {
  const kiln__la_divide *t = m->t;
  const int64_t n = t->n, mid = m->at + m->split - 1, last = m->at + m->n;
  m->z[0] = fabs(z) <= tolerance ? tolerance : z;
  if (!more) return;
  const double other = t->e[mid] * t->v[last * n + mid + 1], length = hypot(z, other);
  double c = 1, s = 0;
  m->z[0] = length <= tolerance ? tolerance : length;
  if (length > tolerance) c = z / length, s = other / length;
  turn(t->v, n, mid, last, m->at, m->n + 1, c, s);
}
static void merge_bidiagonal(merge *m, int64_t at, int64_t left, int64_t right, bool more) {
  const kiln__la_divide *t = m->t;
  const int64_t n = t->n, mid = at + left;
  double *d = t->d, norm = fmax(fabs(d[mid]), fabs(t->e[mid]));
  const double alpha = d[mid];
  m->at = at, m->n = left + right + 1, m->split = left + 1, m->gone = 0;
  d[mid] = 0;
  for (int64_t i = at; i < at + m->n; i++) norm = fmax(norm, fabs(d[i]));
  for (int64_t i = at; i < at + m->n; i++) d[i] /= norm;
  t->e[mid] /= norm;
  m->row[0] = mid;
  interleave(d, m->order + at, left, m->order + mid + 1, right, 1, m->row + 1);
  for (int64_t p = 0; p < m->n; p++) {
    const int64_t row = m->row[p];
    m->d[p] = d[row];
    m->z[p] = row <= mid ? alpha / norm * t->v[row * n + mid] : t->e[mid] * t->v[row * n + mid + 1];
    m->side[p] = row == mid ? BOTH : row < mid ? LEFT : RIGHT;
  }
  const double tolerance = (double)BESIDE_1 * t->epsilon; /* the norm is 1 */
  for (int64_t p = 1, before = 0; p < m->n; p++) {
    if (fabs(m->z[p]) <= tolerance) {
      leave_out(m, p);
      continue;
    }
    if (before && m->d[p] - m->d[before] <= tolerance) {
      unite(m, before, p, m->n + more);
      leave_out(m, before);
    }
    before = p;
  }
  join_middle(m, m->z[0], more, tolerance);
  take_kept(m);
  if (m->d[m->slot[1]] <= tolerance / 2) {
    m->d[m->slot[1]] = tolerance / 2;
    m->pole[1] = tolerance / 2;
  }
  double *gaps = t->squares, *by = gaps + n * n;
  if (m->kept == 1) {
    m->values[0] = fabs(m->z[0]);
    *by = m->z[0] > 0 ? 1 : -1;
    combine(m, t->u, m->n, by);
    *by = 1;
  } else {
    solve_secular(m, 1, gaps);
    vectors_of(m, gaps, true, by);
    combine(m, t->u, m->n, by);
    vectors_of(m, gaps, false, by);
  }
  combine(m, t->v, m->n + more, by);
  put_values(m, norm);
}
/* Rows [at, at + n), of n columns or one more; it is divided `depth` times. */
static bool solve_bidiagonal(merge *m, int64_t at, int64_t n, bool more, int depth) {
  if (depth == 0) {
    for (int64_t i = at; i < at + n; i++) m->order[i] = i;
    return m->t->leaf(m->t, at, n, more);
  }
  const int64_t left = n / 2, right = n - left - 1;
  if (!solve_bidiagonal(m, at, left, true, depth - 1) ||
      !solve_bidiagonal(m, at + left + 1, right, more, depth - 1)) {
    return false;
  }
  merge_bidiagonal(m, at, left, right, more);
  return true;
}
bool kiln__la_divide_bidiagonal(const kiln__la_divide *t) {
  const int64_t n = t->n;
  const double least = 0.9 * t->epsilon;
  double norm = 0;
  merge m = room_for(t);
  for (int64_t i = 0; i < n; i++) norm = fmax(norm, fmax(fabs(t->d[i]), fabs(t->e[i])));
  if (norm == 0) return true;
  for (int64_t i = 0; i < n; i++) {
    t->d[i] /= norm;
    t->e[i] /= norm;
    if (fabs(t->d[i]) < least) t->d[i] = copysign(least, t->d[i]);
  }
  for (int64_t begin = 0, end; begin < n; begin = end) {
    for (end = begin + 1; end < n && fabs(t->e[end - 1]) >= least; end++) continue;
    if (begin + 1 == n) { /* alone at the end: here the left vector gets the sign */
      t->u[begin * n + begin] = copysign(1, t->d[begin]);
      t->d[begin] = fabs(t->d[begin]);
      break;
    }
    int depth = 0;
    if (end - begin > KILN__LA_WHOLE) {
      while (end - begin >= (int64_t)(KILN__LA_WHOLE + 1) << depth) depth++;
    }
    if (!solve_bidiagonal(&m, begin, end - begin, false, depth)) return false;
  }
  for (int64_t i = 0; i < n; i++) t->d[i] *= norm;
  put_in_order(t, 1);
  return true;
}

/* -- Symmetric tridiagonal matrices (LAPACK: stedc, laed0 to laed3) -- */

/* The element between the halves is an update of rank 1, rho z z^T, where it is taken off the
 * diagonal as well. */
static void merge_tridiagonal(merge *m, int64_t at, int64_t left, int64_t right) {
  const kiln__la_divide *t = m->t;
  const int64_t mid = at + left;
  const double e = t->e[mid - 1], rho = 2 * fabs(e), half = copysign(sqrt(0.5), e);
  double most = 0;
  m->at = at, m->n = left + right, m->split = left, m->gone = 0;
  interleave(t->d, m->order + at, left, m->order + mid, right, 1, m->row);
  for (int64_t p = 0; p < m->n; p++) {
    const int64_t row = m->row[p];
    const double *v = t->v + row * t->n + mid;
    m->d[p] = t->d[row];
    m->z[p] = row < mid ? v[-1] * sqrt(0.5) : v[0] * half;
    m->side[p] = row < mid ? LEFT : RIGHT;
    most = fmax(most, fmax(fabs(m->d[p]), fabs(m->z[p])));
  }
  const double tolerance = (double)BESIDE_1 * t->epsilon * most;
  for (int64_t p = 0, before = -1; p < m->n; p++) {
    if (rho * fabs(m->z[p]) <= tolerance) {
      leave_out(m, p);
      continue;
    }
    if (before >= 0) {
      const double low = m->d[before], high = m->d[p], length = hypot(m->z[p], m->z[before]);
      const double c = m->z[p] / length, s = m->z[before] / length;
      if (fabs((high - low) * c * s) <= tolerance) {
        unite(m, before, p, m->n);
        m->d[before] = low * c * c + high * s * s;
        m->d[p] = low * s * s + high * c * c;
        leave_out(m, before);
      }
    }
    before = p;
  }
  take_kept(m);
  double *gaps = t->squares, *by = gaps + t->n * t->n;
  if (m->kept == 1) {
    m->values[0] = m->pole[0] + rho * m->z[m->slot[0]] * m->z[m->slot[0]];
    *by = 1;
  } else if (m->kept > 1) {
    solve_secular(m, rho, gaps);
    vectors_of(m, gaps, false, by);
  }
  combine(m, t->v, m->n, by);
  put_values(m, 1);
}
static bool solve_tridiagonal(merge *m, int64_t at, int64_t n, int depth) {
  if (depth == 0) {
    for (int64_t i = at; i < at + n; i++) m->order[i] = i;
    return m->t->leaf(m->t, at, n, false);
  }
  const int64_t left = n / 2, mid = at + left;
  m->t->d[mid - 1] -= fabs(m->t->e[mid - 1]);
  m->t->d[mid] -= fabs(m->t->e[mid - 1]);
  if (!solve_tridiagonal(m, at, left, depth - 1) ||
      !solve_tridiagonal(m, mid, n - left, depth - 1)) {
    return false;
  }
  merge_tridiagonal(m, at, left, n - left);
  return true;
}
/* Rows [begin, end), which nothing joins to others. */
static bool solve_block(merge *m, int64_t begin, int64_t end) {
  const kiln__la_divide *t = m->t;
  double norm = 0, *d = t->d, *rows = t->room;
  int depth = 0;
  if (end - begin <= KILN__LA_WHOLE) return t->leaf(t, begin, end - begin, false);
  for (int64_t left = end - begin; left > KILN__LA_WHOLE; left = (left + 1) / 2) depth++;
  for (int64_t i = begin; i < end; i++) norm = fmax(norm, fmax(fabs(d[i]), fabs(t->e[i])));
  for (int64_t i = begin; i < end; i++) d[i] /= norm, t->e[i] /= norm;
  if (!solve_tridiagonal(m, begin, end - begin, depth)) return false;
  for (int64_t i = begin; i < end; i++) {
    const int64_t row = m->order[i];
    m->values[i] = d[row] * norm;
    memcpy(rows + i * t->n, t->v + row * t->n, sizeof *rows * (size_t)t->n);
  }
  memcpy(d + begin, m->values + begin, sizeof *d * (size_t)(end - begin));
  memcpy(t->v + begin * t->n, rows + begin * t->n, sizeof *rows * (size_t)((end - begin) * t->n));
  return true;
}
bool kiln__la_divide_tridiagonal(const kiln__la_divide *t) {
  const double *d = t->d;
  merge m = room_for(t);
  for (int64_t begin = 0, end; begin < t->n; begin = end) {
    for (end = begin + 1; end < t->n; end++) {
      const double near = sqrt(fabs(d[end - 1])) * sqrt(fabs(d[end]));
      if (fabs(t->e[end - 1]) <= t->epsilon * near) break;
    }
    t->e[end - 1] = 0;
    if (end - begin > 1 && !solve_block(&m, begin, end)) return false;
  }
  put_in_order(t, -1);
  return true;
}
