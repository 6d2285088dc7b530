/* divide.h: divide and conquer for bidiagonal and symmetric tridiagonal matrices. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Matrices up to this order are not divided, here as in LAPACK; halves may be smaller still. */
enum { KILN__LA_WHOLE = 25 };

typedef struct kiln__la_divide kiln__la_divide;
struct kiln__la_divide {
  int64_t n;       /* more than KILN__LA_WHOLE */
  double *d, *e;   /* the diagonals (an upper bidiagonal matrix); d becomes the values */
  double *u, *v;   /* [n, n], identities; their rows become the vectors. u: singular vectors only */
  double epsilon;  /* what counts as nothing beside 1, as LAPACK's eps */
  double *squares; /* room for 2 n n numbers */
  double *room;    /* room for n n + 11 n */
  /* Solves rows [at, at + n), n <= KILN__LA_WHOLE: d there, ascending, and the vectors. `more`: the
   * bidiagonal matrix has one column more, so v has one row more. false: no convergence. */
  bool (*leaf)(const kiln__la_divide *t, int64_t at, int64_t n, bool more);
};

/* u^T diag(d) v, d descending. false: no convergence. */
bool kiln__la_divide_bidiagonal(const kiln__la_divide *t);
/* v^T diag(d) v, d ascending. */
bool kiln__la_divide_tridiagonal(const kiln__la_divide *t);
/* Rows i and k of x [.., n], which may be NULL. */
void kiln__la_exchange_rows(double *x, int64_t n, int64_t i, int64_t k);
/* out [m, n] += a [m, k] b [k, n], with rows of the given numbers of elements. */
void kiln__la_add_product(double *out, int64_t out_row, const double *a, int64_t a_row,
                          const double *b, int64_t b_row, int64_t m, int64_t k, int64_t n);
