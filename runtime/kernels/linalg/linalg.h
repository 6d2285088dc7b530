/* linalg.h: what the kernels of factorisations share.
 *
 * All is done in complex doubles, one small matrix of a batch after the other, and rounded once at
 * the end. Matrices are row-major. */
#pragma once

#include <math.h>

#include "base/budget.h"
#include "runtime/kernels/spectral/fft.h"
#include "runtime/kernels/composite.h"

/* -- Numbers -- */

static inline double z_size2(z a) { return a.re * a.re + a.im * a.im; }
/* Smith's division (1962): no square that underflows. */
static inline z z_over(z a, z b) {
  if (b.im == 0) return (z){a.re / b.re, a.im / b.re};
  if (fabs(b.re) >= fabs(b.im)) {
    const double r = b.im / b.re, d = b.re + b.im * r;
    return (z){(a.re + a.im * r) / d, (a.im - a.re * r) / d};
  }
  const double r = b.re / b.im, d = b.re * r + b.im;
  return (z){(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}
static inline double z_length(z a) { return hypot(a.re, a.im); }

/* -- Matrices, in place (matrix.c) -- */

/* Rows i and k of a [.., n]. */
static inline void kiln__la_swap_rows(z *a, int64_t n, int64_t i, int64_t k) {
  for (int64_t c = 0; i != k && c < n; c++) {
    const z kept = a[i * n + c];
    a[i * n + c] = a[k * n + c];
    a[k * n + c] = kept;
  }
}
/* a [m, n]: unit lower and upper triangle; pivot[i] is the row that came to i. The first column
 * without a pivot, from 1; 0: none. */
int64_t kiln__la_lu(z *a, int64_t m, int64_t n, int64_t *pivot, bool *odd);
/* x [n, m] becomes the solution of a x = it, a triangular. */
void kiln__la_substitute(const z *a, int64_t n, z *x, int64_t m, bool upper, bool unit);
void kiln__la_solve_lu(const z *lu, int64_t n, const int64_t *pivot, z *x, int64_t m);
/* The lower factor; above it zeros. The order of the first minor that is not positive; 0: none. */
int64_t kiln__la_cholesky(z *a, int64_t n);
void kiln__la_identity(z *x, int64_t n);
/* out [m, n] = a [m, k] b [k, n]; a_turned: of a [k, m], turned and conjugated; b likewise. */
void kiln__la_multiply(z *out, const z *a, bool a_turned, const z *b, bool b_turned, int64_t m,
                       int64_t k, int64_t n);
/* x, 0 outside of its part, becomes v with v[head] = 1, so that I - conj(tau) v v^H takes x to the
 * result at the head (hermitian.c, as the next two). */
double kiln__la_reflector(z *x, int64_t n, int64_t head, z *tau);
/* a [rows, n] = a (I - tau v v^H) */
void kiln__la_reflect_rows(z *a, int64_t rows, int64_t n, const z *v, z tau);
/* Columns [from, n) of a [rows, n] = (I - conj(tau) v v^H) a; sums holds n. */
void kiln__la_reflect_columns(z *a, int64_t rows, int64_t n, int64_t from, const z *v, z tau,
                              z *sums);
typedef struct kiln__la_turn {
  double c, s;
} kiln__la_turn;
typedef struct kiln__la_svd_task {
  int64_t m, n; /* m >= n */
  bool wide;    /* the matrix is the adjoint of the one that is asked for */
  bool full;    /* left is square */
  bool real, single;
} kiln__la_svd_task;
/* Complex numbers in the room that it wants. */
int64_t kiln__la_svd_room(const kiln__la_svd_task *t);
/* a [m, n], which is lost, was left s right, with LAPACK's signs: left [m, n] or [m, m], right
 * [n, n], both NULL or not; s descending. false: not finite, or no convergence (svd.c). */
bool kiln__la_svd(const kiln__la_svd_task *t, z *a, double *s, z *left, z *right, z *room);
/* Householder's: a [m, n] keeps r above and reflectors below the diagonal, as LAPACK's geqrf. */
void kiln__la_qr(z *a, int64_t m, int64_t n, z *tau);
/* The first `columns` of the product of k reflectors in a [m, n]: q [m, columns]. */
void kiln__la_make_q(const z *a, int64_t m, int64_t n, const z *tau, int64_t k, z *q,
                     int64_t columns);
/* Complex numbers in the room that the next one wants. */
int64_t kiln__la_eigh_room(int64_t n, bool vectors);
/* Eigenvalues, ascending, of a Hermitian matrix (both triangles are there), which is lost; v [n, n]
 * (may be NULL) gets the vectors as columns, with LAPACK's signs for the triangle `upper` or lower
 * and the precision. false: no convergence (hermitian.c). */
bool kiln__la_eigh(z *a, int64_t n, bool upper, bool single, double *w, z *v, z *room);
/* Of any square matrix, which is lost, in the order in which they split off; v as above. false: no
 * convergence. `room` holds 2 n n. */
bool kiln__la_eig(z *a, int64_t n, z *w, z *v, z *room);

/* The same of a real one, with LAPACK's order and signs; the values of a complex pair are side by
 * side, the one above the axis first (eig.c). */
bool kiln__la_eig_real(const z *a, int64_t n, bool single, z *w, z *v, z *room);

/* -- Batches (linalg.c) -- */

typedef struct kiln__la_batch {
  kiln_dtype dtype; /* of the operator's argument */
  int rank;         /* all dimensions */
  int64_t count, m, n;
  int64_t sizes[KILN_MAX_RANK];
  z *data;
  kiln_tensor *tensor; /* a fresh copy */
} kiln__la_batch;

/* Whether there is a matrix i of `count`. Those without elements take no memory: there are as many
 * as a program says. */
static inline bool kiln__la_is_left(int64_t i, int64_t count) {
  return i < count && ((i + 1) % KILN_BUDGET_ITEMS || !kiln_budget_leaves_out());
}

/* A real or complex dtype of at least single precision. */
bool kiln__la_check(kiln__composite *r, const char *name, const kiln_tensor *t);
/* A copy of t [..., m, n] in complex doubles. */
bool kiln__la_read(kiln__composite *r, const char *name, kiln_tensor *t, bool square,
                   kiln__la_batch *b);
/* Singular values [..., n] of batches of [m, n], m >= n, and their vectors where left is not NULL:
 * all of them, one after the other. `wide`: as kiln__la_svd_task. */
bool kiln__la_svd_all(kiln__composite *r, const char *name, const kiln__la_batch *b, bool wide,
                      bool full, z *left, z *right, kiln_tensor **out_values);
/* New elements of b's batches: of m x n matrices, vectors of m (n < 0), or numbers (m < 0 too). */
void *kiln__la_new(kiln__composite *r, const kiln__la_batch *b, kiln_dtype dtype, int64_t m,
                   int64_t n, kiln_tensor **out);
/* As the operator's dtype. */
kiln_tensor *kiln__la_result(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype);
/* The same, column by column, as LAPACK gives it. */
kiln_tensor *kiln__la_columns(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype);
/* Memory for the pivots of a matrix. */
int64_t *kiln__la_pivots(kiln__composite *r, int64_t n);
/* Both to the batch sizes that they broadcast to. */
void kiln__la_share(kiln__composite *r, kiln_tensor **a, kiln_tensor **b);
/* The last two dimensions exchanged: a view. */
kiln_tensor *kiln__la_turned(kiln__composite *r, kiln_tensor *t);
/* The last two dimensions exchanged, conjugated. */
kiln_tensor *kiln__la_adjoint(kiln__composite *r, kiln_tensor *t);
/* By LU (factor.c). */
kiln_tensor *kiln__la_inverse(kiln__composite *r, const char *name, kiln_tensor *t);
/* a x = b, a triangular; both matrices. */
kiln_tensor *kiln__la_solve_triangular(kiln__composite *r, const char *name, kiln_tensor *a,
                                       kiln_tensor *b, bool upper, bool unit);
/* Fails: a x = b cannot be. */
void *kiln__la_mismatch(kiln__composite *r, const char *name, const kiln__la_batch *a,
                        const kiln__la_batch *b);
