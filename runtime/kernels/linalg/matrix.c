/* matrix.c: factorisations of one matrix: LU with partial pivots, Cholesky, QR by
 * Householder's reflectors (signs as LAPACK's), eigenvalues by the shifted QR iteration (Francis,
 * 1961) on the Hessenberg form. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/linalg/linalg.h"

static double size1(z a) { return fabs(a.re) + fabs(a.im); }

int64_t kiln__la_lu(z *a, int64_t m, int64_t n, int64_t *pivot, bool *odd) {
  int64_t singular = 0;
  *odd = false;
  for (int64_t k = 0; k < m && k < n; k++) {
    if (kiln_budget_leaves_out()) {
      for (; k < m && k < n; k++) pivot[k] = k;
      break;
    }
    int64_t best = k;
    for (int64_t i = k + 1; i < m; i++) {
      if (size1(a[i * n + k]) > size1(a[best * n + k])) best = i;
    }
    pivot[k] = best;
    kiln__la_swap_rows(a, n, k, best);
    *odd ^= best != k;
    if (z_size2(a[k * n + k]) == 0) {
      if (!singular) singular = k + 1;
      continue;
    }
    for (int64_t i = k + 1; i < m; i++) {
      const z f = a[i * n + k] = z_over(a[i * n + k], a[k * n + k]);
      for (int64_t j = k + 1; j < n; j++) {
        a[i * n + j] = z_sub(a[i * n + j], z_mul(f, a[k * n + j]));
      }
    }
  }
  return singular;
}
void kiln__la_substitute(const z *a, int64_t n, z *x, int64_t m, bool upper, bool unit) {
  for (int64_t step = 0; step < n && !kiln_budget_leaves_out(); step++) {
    const int64_t i = upper ? n - 1 - step : step;
    for (int64_t k = upper ? i + 1 : 0; k < (upper ? n : i); k++) {
      for (int64_t j = 0; j < m; j++)
        x[i * m + j] = z_sub(x[i * m + j], z_mul(a[i * n + k], x[k * m + j]));
    }
    for (int64_t j = 0; !unit && j < m; j++) x[i * m + j] = z_over(x[i * m + j], a[i * n + i]);
  }
}
void kiln__la_solve_lu(const z *lu, int64_t n, const int64_t *pivot, z *x, int64_t m) {
  for (int64_t i = 0; i < n; i++) kiln__la_swap_rows(x, m, i, pivot[i]);
  kiln__la_substitute(lu, n, x, m, false, true);
  kiln__la_substitute(lu, n, x, m, true, false);
}
int64_t kiln__la_cholesky(z *a, int64_t n) {
  for (int64_t i = 0; i < n && !kiln_budget_leaves_out(); i++) {
    for (int64_t j = 0; j <= i; j++) {
      z sum = a[i * n + j];
      for (int64_t k = 0; k < j; k++) sum = z_sub(sum, z_mul(a[i * n + k], z_conj(a[j * n + k])));
      if (i == j) {
        if (!(sum.re > 0)) return i + 1;
        a[i * n + i] = (z){sqrt(sum.re), 0};
      } else {
        a[i * n + j] = z_over(sum, a[j * n + j]);
      }
    }
    for (int64_t j = i + 1; j < n; j++) a[i * n + j] = (z){0, 0};
  }
  return 0;
}
void kiln__la_identity(z *x, int64_t n) {
  for (int64_t i = 0; i < n * n; i++) x[i] = (z){i % (n + 1) == 0, 0};
}

void kiln__la_multiply(z *out, const z *a, bool a_turned, const z *b, bool b_turned, int64_t m,
                       int64_t k, int64_t n) {
  for (int64_t i = 0; i < m && !kiln_budget_leaves_out(); i++) {
    for (int64_t j = 0; j < n; j++) out[i * n + j] = (z){0, 0};
    for (int64_t l = 0; l < k; l++) {
      const z x = a_turned ? z_conj(a[l * m + i]) : a[i * k + l];
      for (int64_t j = 0; j < n; j++) {
        const z y = b_turned ? z_conj(b[j * k + l]) : b[l * n + j];
        out[i * n + j] = z_add(out[i * n + j], z_mul(x, y));
      }
    }
  }
}

/* -- QR -- */

/* Columns [from, n) of rows [k, m) times the reflector in column k: I - tau v v^H, v[k] = 1. */
static void reflect(const z *a, int64_t m, int64_t n, int64_t k, z tau, z *to, int64_t width,
                    int64_t from) {
  for (int64_t j = from; j < width; j++) {
    z sum = to[k * width + j];
    for (int64_t i = k + 1; i < m; i++) {
      sum = z_add(sum, z_mul(z_conj(a[i * n + k]), to[i * width + j]));
    }
    sum = z_mul(tau, sum);
    to[k * width + j] = z_sub(to[k * width + j], sum);
    for (int64_t i = k + 1; i < m; i++) {
      to[i * width + j] = z_sub(to[i * width + j], z_mul(a[i * n + k], sum));
    }
  }
}
void kiln__la_qr(z *a, int64_t m, int64_t n, z *tau) {
  for (int64_t k = 0; k < m && k < n; k++) {
    tau[k] = (z){0, 0};
    if (kiln_budget_leaves_out()) continue;
    double below = 0, most = 0;
    const z alpha = a[k * n + k];
    for (int64_t i = k; i < m; i++) most = fmax(most, size1(a[i * n + k]));
    for (int64_t i = k + 1; i < m && most > 0; i++) {
      below += z_size2((z){a[i * n + k].re / most, a[i * n + k].im / most});
    }
    if (below == 0 && alpha.im == 0) continue;
    const double length = hypot(sqrt(below) * most, z_length(alpha));
    const double beta = signbit(alpha.re) ? length : -length;
    tau[k] = (z){(beta - alpha.re) / beta, -alpha.im / beta};
    const z scale = z_over((z){1, 0}, (z){alpha.re - beta, alpha.im});
    for (int64_t i = k + 1; i < m; i++) a[i * n + k] = z_mul(a[i * n + k], scale);
    reflect(a, m, n, k, z_conj(tau[k]), a, n, k + 1);
    a[k * n + k] = (z){beta, 0};
  }
}
void kiln__la_make_q(const z *a, int64_t m, int64_t n, const z *tau, int64_t k, z *q,
                     int64_t columns) {
  for (int64_t i = 0; i < m * columns; i++) q[i] = (z){i / columns == i % columns, 0};
  while (k-- > 0 && !kiln_budget_leaves_out()) reflect(a, m, n, k, tau[k], q, columns, 0);
}

/* -- Eigenvalues of any matrix -- */

static z root(z a) {
  const double x = sqrt((z_length(a) + fabs(a.re)) / 2);
  if (x == 0) return (z){0, 0};
  const double y = a.im / (2 * x);
  return a.re >= 0 ? (z){x, y} : (z){fabs(y), a.im < 0 ? -x : x};
}
/* a becomes q^H a q, zero below the first subdiagonal; q begins as the identity. */
static void to_hessenberg(z *a, int64_t n, z *q) {
  kiln__la_identity(q, n);
  for (int64_t k = 0; k + 2 < n && !kiln_budget_leaves_out(); k++) {
    for (int64_t i = n - 1; i > k + 1; i--) { /* row i against row i - 1 */
      const z x = a[(i - 1) * n + k], y = a[i * n + k];
      const double length = hypot(z_length(x), z_length(y));
      if (z_length(y) == 0) continue;
      const z c = {x.re / length, -x.im / length}, s = {y.re / length, -y.im / length};
      for (int64_t j = 0; j < n; j++) {
        const z u = a[(i - 1) * n + j], v = a[i * n + j];
        a[(i - 1) * n + j] = z_add(z_mul(c, u), z_mul(s, v));
        a[i * n + j] = z_sub(z_mul(z_conj(c), v), z_mul(z_conj(s), u));
      }
      for (int64_t j = 0; j < n; j++) {
        z *rows[2] = {a + j * n, q + j * n};
        for (int half = 0; half < 2; half++) {
          const z u = rows[half][i - 1], v = rows[half][i];
          rows[half][i - 1] = z_add(z_mul(z_conj(c), u), z_mul(z_conj(s), v));
          rows[half][i] = z_sub(z_mul(c, v), z_mul(s, u));
        }
      }
    }
  }
}
/* The eigenvalue of the last 2x2 block of [.., end) that is nearer its last element. */
static z shift_of(const z *a, int64_t n, int64_t end) {
  const z p = a[(end - 2) * n + end - 2], d = a[(end - 1) * n + end - 1];
  const z bc = z_mul(a[(end - 2) * n + end - 1], a[(end - 1) * n + end - 2]);
  const z half = {(p.re - d.re) / 2, (p.im - d.im) / 2};
  const z r = root(z_add(z_mul(half, half), bc));
  const z plus = z_add(half, r), minus = z_sub(half, r);
  const z best = z_length(plus) > z_length(minus) ? plus : minus;
  return z_length(best) == 0 ? d : z_sub(d, z_over(bc, best));
}
/* One step of the iteration on the active block [begin, end), by rotations. */
static void qr_step(z *a, int64_t n, int64_t begin, int64_t end, z shift, z *q, z *turns) {
  for (int64_t i = begin; i < end; i++) a[i * n + i] = z_sub(a[i * n + i], shift);
  for (int64_t i = begin; i + 1 < end; i++) {
    const z x = a[i * n + i], y = a[(i + 1) * n + i];
    const double length = hypot(z_length(x), z_length(y));
    z c = {1, 0}, s = {0, 0};
    if (length > 0) {
      c = (z){x.re / length, -x.im / length};
      s = (z){y.re / length, -y.im / length};
    }
    turns[2 * i] = c;
    turns[2 * i + 1] = s;
    for (int64_t j = i; j < n; j++) {
      const z u = a[i * n + j], v = a[(i + 1) * n + j];
      a[i * n + j] = z_add(z_mul(c, u), z_mul(s, v));
      a[(i + 1) * n + j] = z_sub(z_mul(z_conj(c), v), z_mul(z_conj(s), u));
    }
  }
  for (int64_t i = begin; i + 1 < end; i++) {
    const z c = turns[2 * i], s = turns[2 * i + 1];
    for (int half = 0; half < 2; half++) {
      z *m = half ? q : a;
      const int64_t rows = half ? n : (i + 3 < end ? i + 3 : end);
      for (int64_t j = 0; j < rows; j++) {
        const z u = m[j * n + i], v = m[j * n + i + 1];
        m[j * n + i] = z_add(z_mul(z_conj(c), u), z_mul(z_conj(s), v));
        m[j * n + i + 1] = z_sub(z_mul(c, v), z_mul(s, u));
      }
    }
  }
  for (int64_t i = begin; i < end; i++) a[i * n + i] = z_add(a[i * n + i], shift);
}
/* Vectors of the upper triangle t, by substitution, through q, of length 1. */
static void schur_vectors(const z *t, int64_t n, const z *q, z *v, z *x) {
  double norm = 0;
  for (int64_t i = 0; i < n * n; i++) norm = fmax(norm, size1(t[i]));
  for (int64_t k = 0; k < n && !kiln_budget_leaves_out(); k++) {
    for (int64_t i = 0; i < n; i++) x[i] = (z){i == k, 0};
    for (int64_t i = k - 1; i >= 0; i--) {
      z sum = {0, 0}, d = z_sub(t[k * n + k], t[i * n + i]);
      for (int64_t j = i + 1; j <= k; j++) sum = z_add(sum, z_mul(t[i * n + j], x[j]));
      if (size1(d) <= 1e-16 * norm) d = (z){1e-16 * norm + 1e-300, 0};
      x[i] = z_over(sum, d);
    }
    double length = 0, most = -1;
    z top = {1, 0};
    for (int64_t i = 0; i < n; i++) {
      z sum = {0, 0};
      for (int64_t j = 0; j <= k; j++) sum = z_add(sum, z_mul(q[i * n + j], x[j]));
      v[i * n + k] = sum;
      length += z_size2(sum);
      if (z_size2(sum) > most * (1 + 1e-12)) most = z_size2(sum), top = sum;
    }
    /* The greatest part is made real, as LAPACK does. */
    const double most1 = sqrt(z_size2(top)), scale = 1 / sqrt(length);
    const z turn = {top.re / most1 * scale, -top.im / most1 * scale};
    for (int64_t i = 0; i < n; i++) v[i * n + k] = z_mul(v[i * n + k], turn);
  }
}
bool kiln__la_eig(z *a, int64_t n, z *w, z *v, z *room) {
  z *q = room, *turns = room + n * n;
  to_hessenberg(a, n, q);
  int64_t steps = 0;
  for (int64_t end = n; end > 1 && !kiln_budget_leaves_out();) {
    int64_t begin = end - 1;
    for (; begin > 0; begin--) {
      z *below = &a[begin * n + begin - 1];
      const double near = size1(a[begin * n + begin]) + size1(a[(begin - 1) * n + begin - 1]);
      if (size1(*below) > 1e-16 * near && size1(*below) > 1e-300) continue;
      *below = (z){0, 0};
      break;
    }
    if (begin == end - 1) {
      end--;
      steps = 0;
      continue;
    }
    if (++steps > 300) return false;
    z shift = shift_of(a, n, end);
    if (steps % 10 == 0) shift.re += size1(a[(end - 1) * n + end - 2]); /* an odd one, to get on */
    qr_step(a, n, begin, end, shift, q, turns);
  }
  for (int64_t i = 0; i < n; i++) w[i] = a[i * n + i];
  if (v) schur_vectors(a, n, q, v, turns);
  return true;
}
