/* factor.c: factors as results, and solutions from them: QR, LU, Cholesky, triangles. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/kernels/linalg/linalg.h"

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Matrices of b's batches; a tensor of no elements where they are not wanted. */
static z *new_if(kiln__composite *r, bool wanted, const kiln__la_batch *b, int64_t m, int64_t n,
                 kiln_tensor **out) {
  if (wanted) return kiln__la_new(r, b, KILN_DTYPE_C128, m, n, out);
  *out = kiln__composite_empty(r, KILN_DTYPE_C128);
  return NULL;
}

/* -- QR -- */

static kiln_tensor *qr(kiln__composite *r, const char *name, kiln_tensor *t, bool complete,
                       bool only_r, kiln_ivalue *outs) {
  kiln__la_batch b;
  kiln_tensor *q_tensor = NULL, *r_tensor, *room;
  if (!kiln__la_read(r, name, t, false, &b)) return NULL;
  const int64_t k = least(b.m, b.n), columns = complete ? b.m : k;
  z *tau = kiln__composite_new(r, KILN_DTYPE_C128, 1, &k, &room);
  z *q = new_if(r, !only_r, &b, b.m, columns, &q_tensor);
  z *upper = kiln__la_new(r, &b, KILN_DTYPE_C128, columns, b.n, &r_tensor);
  if (r->status) return NULL;
  for (int64_t i = 0; kiln__la_is_left(i, b.count); i++) {
    z *a = b.data + i * b.m * b.n, *to = upper + i * columns * b.n;
    kiln__la_qr(a, b.m, b.n, tau);
    if (!only_r) kiln__la_make_q(a, b.m, b.n, tau, k, q + i * b.m * columns, columns);
    for (int64_t e = 0; e < columns * b.n; e++) to[e] = e / b.n <= e % b.n ? a[e] : (z){0, 0};
  }
  kiln__composite_give(r, &outs[1], kiln__la_columns(r, r_tensor, b.dtype));
  return kiln__la_columns(r, q_tensor, b.dtype);
}
KILN_COMPOSITE(qr) { return qr(r, "torch.linalg.qr", SELF, !kiln_arg_bool(args, 1), false, outs); }
KILN_COMPOSITE(linalg_qr) {
  const kiln_str mode = kiln_arg_str(args, 1);
  const bool complete = kiln_str_is(mode, "complete"), only_r = kiln_str_is(mode, "r");
  if (!complete && !only_r && !kiln_str_is(mode, "reduced")) {
    return FAIL(r,
                "qr received unrecognized mode '" KILN_STR_FMT
                "' but expected one of 'reduced' (default), 'r', or 'complete'",
                KILN_STR_ARG(mode));
  }
  return qr(r, "linalg.qr", SELF, complete, only_r, outs);
}
KILN_COMPOSITE(geqrf) {
  kiln__la_batch b;
  kiln_tensor *taus;
  if (!kiln__la_read(r, "geqrf", SELF, false, &b)) return NULL;
  const int64_t k = least(b.m, b.n);
  z *tau = kiln__la_new(r, &b, KILN_DTYPE_C128, k, -1, &taus);
  for (int64_t i = 0; tau && kiln__la_is_left(i, b.count); i++) {
    kiln__la_qr(b.data + i * b.m * b.n, b.m, b.n, tau + i * k);
  }
  kiln__composite_give(r, &outs[1], kiln__la_result(r, taus, b.dtype));
  return kiln__la_columns(r, b.tensor, b.dtype);
}
/* Reflectors [.., m, n] and their factors [.., k], both read; false after a failure. */
static bool read_reflectors(kiln__composite *r, const char *name, kiln_tensor *t, kiln_tensor *tau,
                            kiln__la_batch *b, const z **out_tau, int64_t *out_k) {
  kiln_tensor *dense;
  if (!kiln__la_read(r, name, t, false, b)) return false;
  *out_tau = kiln__composite_read(r, tau, KILN_DTYPE_C128, &dense);
  *out_k = kiln__composite_size(tau, -1);
  if (!r->status && (*out_k > least(b->m, b->n) || tau->numel != b->count * *out_k ||
                     kiln_tensor_rank(tau) != b->rank - 1)) {
    FAIL(r,
         "%s: Expected tau to have one dimension less than input and at most as many "
         "factors as input has columns or rows",
         name);
  }
  return !r->status;
}
/* Q of reflectors and factors, whole [.., m, m] or its first n columns; false after a failure. */
static bool make_qs(kiln__composite *r, const char *name, const kiln_ivalue *args, bool whole,
                    kiln__la_batch *b, kiln_tensor **out) {
  const z *tau;
  int64_t k;
  if (!read_reflectors(r, name, SELF, ARG(1), b, &tau, &k)) return false;
  if (!whole && b->m < b->n) {
    return FAIL(r, "%s: input.shape[-2] must be greater than or equal to input.shape[-1]", name);
  }
  const int64_t columns = whole ? b->m : b->n;
  z *q = kiln__la_new(r, b, KILN_DTYPE_C128, b->m, columns, out);
  for (int64_t i = 0; q && kiln__la_is_left(i, b->count); i++) {
    kiln__la_make_q(b->data + i * b->m * b->n, b->m, b->n, tau + i * k, k, q + i * b->m * columns,
                    columns);
  }
  return true;
}
KILN_COMPOSITE(linalg_householder_product) {
  kiln__la_batch b;
  kiln_tensor *out;
  if (!make_qs(r, "torch.linalg.householder_product", args, false, &b, &out)) return NULL;
  return kiln__la_columns(r, out, b.dtype);
}
/* reflectors, tau, other, left, transpose */
KILN_COMPOSITE(ormqr) {
  kiln__la_batch b;
  kiln_tensor *out;
  if (!make_qs(r, "torch.ormqr", args, true, &b, &out)) return NULL;
  kiln_tensor *full = kiln__la_result(r, out, b.dtype);
  if (kiln_arg_bool(args, 4)) full = kiln__la_adjoint(r, full);
  full = kiln_arg_bool(args, 3) ? KILN_STEP(r, matmul, T(full), args[2])
                                : KILN_STEP(r, matmul, args[2], T(full));
  return kiln__la_columns(r, full, b.dtype);
}

/* -- LU -- */

typedef struct lu {
  kiln__la_batch b;
  int64_t k;
  kiln_tensor *pivots, *info; /* int64; pivots from 1 */
} lu;
static bool factor(kiln__composite *r, const char *name, kiln_tensor *t, bool square, bool pivoting,
                   lu *f) {
  if (!pivoting) {
    return FAIL(r, "%s: LU without pivoting is not implemented on the CPU", name);
  }
  if (!kiln__la_read(r, name, t, square, &f->b)) return false;
  f->k = least(f->b.m, f->b.n);
  int64_t *pivot = kiln__la_new(r, &f->b, KILN_DTYPE_I64, f->k, -1, &f->pivots);
  int64_t *info = kiln__la_new(r, &f->b, KILN_DTYPE_I64, -1, -1, &f->info);
  if (r->status) return false;
  for (int64_t i = 0; kiln__la_is_left(i, f->b.count); i++) {
    bool odd;
    info[i] = kiln__la_lu(f->b.data + i * f->b.m * f->b.n, f->b.m, f->b.n, pivot + i * f->k, &odd);
    for (int64_t j = 0; j < f->k; j++) pivot[i * f->k + j]++;
  }
  return true;
}
static void check_info(kiln__composite *r, const char *name, const lu *f) {
  const int64_t *info = kiln_tensor_data(f->info);
  for (int64_t i = 0; kiln__la_is_left(i, f->b.count); i++) {
    if (!info[i] || r->status) continue;
    FAIL(r, "%s: U[%lld,%lld] is zero and using it on lu_solve would result in a division by zero",
         name, (long long)info[i], (long long)info[i]);
  }
}
static kiln_tensor *give_lu(kiln__composite *r, const char *name, kiln_tensor *t, bool pivoting,
                            bool check, bool with_info, kiln_ivalue *outs) {
  lu f;
  if (!factor(r, name, t, false, pivoting, &f)) return NULL;
  if (check) check_info(r, name, &f);
  kiln__composite_give(r, &outs[1], kiln__composite_to(r, f.pivots, KILN_DTYPE_I32));
  if (with_info) kiln__composite_give(r, &outs[2], kiln__composite_to(r, f.info, KILN_DTYPE_I32));
  return kiln__la_columns(r, f.b.tensor, f.b.dtype);
}
KILN_COMPOSITE(linalg_lu_factor) {
  return give_lu(r, "torch.linalg.lu_factor", SELF, kiln_arg_bool(args, 1), true, false, outs);
}
/* self, pivot, check_errors -> LU, pivots, info */
KILN_COMPOSITE(linalg_lu_factor_ex) {
  return give_lu(r, "torch.linalg.lu_factor_ex", SELF, kiln_arg_bool(args, 1),
                 kiln_arg_bool(args, 2), true, outs);
}
/* The triangles and the permutation of factors in place, where they are wanted. */
static kiln_tensor *unpack(kiln__composite *r, kiln_tensor *data, kiln_tensor *pivots,
                           bool with_data, bool with_pivots, kiln_ivalue *outs) {
  kiln__la_batch b;
  kiln_tensor *p, *l, *u, *dense;
  if (!kiln__la_read(r, "torch.lu_unpack", data, false, &b)) return NULL;
  const int64_t k = least(b.m, b.n);
  if (with_pivots && kiln_tensor_dtype(pivots) != KILN_DTYPE_I32) {
    FAIL(r, "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
            "torch.int32 dtype.");
  } else if (with_pivots && pivots->numel != b.count * k) {
    FAIL(r, "torch.lu_unpack: the pivots do not fit LU_data");
  }
  const int64_t *pivot =
      with_pivots ? kiln__composite_read(r, pivots, KILN_DTYPE_I64, &dense) : NULL;
  z *low = new_if(r, with_data, &b, b.m, k, &l), *up = new_if(r, with_data, &b, k, b.n, &u);
  z *turn = new_if(r, with_pivots, &b, b.m, b.m, &p);
  int64_t *order = kiln__la_pivots(r, b.m);
  if (r->status) return NULL;
  for (int64_t i = 0; kiln__la_is_left(i, b.count); i++) {
    const z *a = b.data + i * b.m * b.n;
    for (int64_t e = 0; with_data && e < b.m * k; e++) {
      const int64_t row = e / k, c = e % k;
      low[i * b.m * k + e] = row > c ? a[row * b.n + c] : (z){row == c, 0};
    }
    for (int64_t e = 0; with_data && e < k * b.n; e++) {
      up[i * k * b.n + e] = e / b.n <= e % b.n ? a[e] : (z){0, 0};
    }
    if (!with_pivots) continue;
    for (int64_t j = 0; j < b.m; j++) order[j] = j;
    for (int64_t j = 0; j < k; j++) {
      const int64_t other = pivot[i * k + j] - 1, kept = order[j];
      if (other < 0 || other >= b.m) {
        return FAIL(r, "torch.lu_unpack: pivots out of range");
      }
      order[j] = order[other];
      order[other] = kept;
    }
    for (int64_t e = 0; e < b.m * b.m; e++) turn[i * b.m * b.m + e] = (z){0, 0};
    for (int64_t j = 0; j < b.m; j++) turn[(i * b.m + order[j]) * b.m + j] = (z){1, 0};
  }
  kiln__composite_give(r, &outs[1], kiln__la_result(r, l, b.dtype));
  kiln__composite_give(r, &outs[2], kiln__la_result(r, u, b.dtype));
  return kiln__la_result(r, p, b.dtype);
}
KILN_COMPOSITE(lu_unpack) {
  return unpack(r, SELF, ARG(1), kiln_arg_bool(args, 2), kiln_arg_bool(args, 3), outs);
}
/* A, pivot -> P, L, U */
KILN_COMPOSITE(linalg_lu) {
  lu f;
  if (!factor(r, "linalg.lu", SELF, false, kiln_arg_bool(args, 1), &f)) return NULL;
  return unpack(r, kiln__la_result(r, f.b.tensor, f.b.dtype),
                kiln__composite_to(r, f.pivots, KILN_DTYPE_I32), true, true, outs);
}
/* Solves a x = b from factors, or with a's adjoint; b is to be of the dtype, unless that is NONE.
 */
static kiln_tensor *solve_from(kiln__composite *r, const char *name, kiln_tensor *data,
                               kiln_tensor *pivots, kiln_tensor *b, bool adjoint,
                               kiln_dtype dtype) {
  kiln__la_batch left, right;
  kiln_tensor *dense, *room, *column = KILN_STEP(r, unsqueeze, T(pivots), I(-1));
  if (r->status) return NULL;
  if (kiln_tensor_dtype(pivots) != KILN_DTYPE_I32) {
    return FAIL(r, "%s: pivots should be a Tensor of scalar type torch.int32", name);
  }
  kiln__la_share(r, &column, &data);
  kiln__la_share(r, &data, &b);
  kiln__la_share(r, &column, &b);
  if (!kiln__la_read(r, name, data, true, &left) || !kiln__la_read(r, name, b, false, &right)) {
    return NULL;
  }
  const int64_t n = left.n;
  if (right.m != n || kiln__composite_size(column, -2) != n ||
      (dtype != KILN_DTYPE_NONE && right.dtype != dtype)) {
    return kiln__la_mismatch(r, name, &left, &right);
  }
  const int64_t *from = kiln__composite_read(r, column, KILN_DTYPE_I64, &dense), square = n * n;
  int64_t *pivot = kiln__la_pivots(r, n);
  z *turned = kiln__composite_new(r, KILN_DTYPE_C128, 1, &square, &room);
  for (int64_t i = 0; !r->status && kiln__la_is_left(i, left.count); i++) {
    z *a = left.data + i * square, *x = right.data + i * n * right.n;
    for (int64_t j = 0; j < n; j++) {
      pivot[j] = from[i * n + j] - 1;
      if (pivot[j] >= 0 && pivot[j] < n) continue;
      return FAIL(r, "%s: pivots out of range", name);
    }
    if (!adjoint) {
      kiln__la_solve_lu(a, n, pivot, x, right.n);
      continue;
    }
    for (int64_t e = 0; e < square; e++) turned[e] = z_conj(a[e % n * n + e / n]);
    kiln__la_substitute(turned, n, x, right.n, false, false);
    kiln__la_substitute(turned, n, x, right.n, true, true);
    for (int64_t j = n - 1; j >= 0; j--) kiln__la_swap_rows(x, right.n, j, pivot[j]);
  }
  return kiln__la_columns(r, right.tensor, right.dtype);
}
/* LU, pivots, B, left, adjoint */
KILN_COMPOSITE(linalg_lu_solve) {
  const bool left = kiln_arg_bool(args, 3), adjoint = kiln_arg_bool(args, 4);
  kiln_tensor *b = left ? ARG(2) : kiln__la_adjoint(r, ARG(2));
  kiln_tensor *x =
      solve_from(r, "torch.linalg.lu_solve", SELF, ARG(1), b, adjoint == left, KILN_DTYPE_NONE);
  return left ? x : kiln__la_adjoint(r, x);
}
KILN_COMPOSITE(lu_solve) {
  return solve_from(r, "torch.lu_solve", ARG(1), ARG(2), SELF, false, KILN_DTYPE_NONE);
}

/* -- Each with its twin, whose second result is a number for the failure instead of it -- */

/* "(Batch element 2): " for errors; nothing of a single matrix. */
typedef struct which {
  char text[64];
} which;
static which which_of(const kiln__la_batch *b, int64_t i) {
  which w = {""};
  if (b->rank > 2) snprintf(w.text, sizeof w.text, "(Batch element %lld): ", (long long)i);
  return w;
}
/* `info_out` NULL: the numbers are not wanted. */
static kiln_tensor *cholesky(kiln__composite *r, const char *name, kiln_tensor *t, bool upper,
                             bool check, kiln_ivalue *info_out) {
  kiln__la_batch b;
  kiln_tensor *infos;
  if (!kiln__la_read(r, name, t, true, &b)) return NULL;
  int64_t *info = kiln__la_new(r, &b, KILN_DTYPE_I64, -1, -1, &infos);
  for (int64_t i = 0; info && kiln__la_is_left(i, b.count); i++) {
    z *a = b.data + i * b.n * b.n;
    for (int64_t k = 0; upper && k < b.n * b.n; k++) { /* from the upper half */
      if (k / b.n > k % b.n) a[k] = z_conj(a[k % b.n * b.n + k / b.n]);
    }
    info[i] = kiln__la_cholesky(a, b.n);
    if (!info[i] || !check) continue;
    return FAIL(r,
                "%s: %sThe factorization could not be completed because the input is not "
                "positive-definite (the leading minor of order %lld is not positive-definite).",
                name, which_of(&b, i).text, (long long)info[i]);
  }
  t = upper ? kiln__la_adjoint(r, b.tensor) : b.tensor;
  if (info_out) kiln__composite_give(r, info_out, kiln__composite_to(r, infos, KILN_DTYPE_I32));
  return kiln__la_columns(r, t, b.dtype);
}
/* self, upper */
KILN_COMPOSITE(linalg_cholesky) {
  return cholesky(r, "linalg.cholesky", SELF, kiln_arg_bool(args, 1), true, NULL);
}
KILN_COMPOSITE(cholesky) {
  kiln_tensor *t = cholesky(r, "cholesky", SELF, kiln_arg_bool(args, 1), true, NULL);
  return t && t->numel == 0 ? kiln__composite_copy(r, t) : t; /* row-major */
}
/* self, upper, check_errors -> L, info */
KILN_COMPOSITE(linalg_cholesky_ex) {
  return cholesky(r, "linalg.cholesky_ex", SELF, kiln_arg_bool(args, 1), kiln_arg_bool(args, 2),
                  &outs[1]);
}
/* x of a x = b; the identity is b where `inverse`. */
static kiln_tensor *solve(kiln__composite *r, const char *name, kiln_tensor *a, kiln_tensor *b,
                          bool inverse, bool check, kiln_ivalue *info_out) {
  lu f;
  if (!factor(r, name, a, true, true, &f)) return NULL;
  kiln_tensor *x = solve_from(r, name, f.b.tensor, kiln__composite_to(r, f.pivots, KILN_DTYPE_I32),
                              b, false, f.b.dtype);
  const int64_t *info = kiln_tensor_data(f.info);
  for (int64_t i = 0; check && !r->status && kiln__la_is_left(i, f.b.count); i++) {
    if (!info[i]) continue;
    const which w = which_of(&f.b, i);
    if (!inverse) {
      return FAIL(r, "torch.%s: %sThe solver failed because the input matrix is singular.", name,
                  w.text);
    }
    return FAIL(r,
                "%s: %sThe diagonal element %lld is zero, the inversion could not "
                "be completed because the input matrix is singular.",
                name, w.text, (long long)info[i]);
  }
  if (info_out) kiln__composite_give(r, info_out, kiln__composite_to(r, f.info, KILN_DTYPE_I32));
  return x;
}
static kiln_tensor *inverse(kiln__composite *r, const char *name, kiln_tensor *t, bool check,
                            kiln_ivalue *info_out) {
  if (!kiln__la_check(r, name, t)) return NULL;
  kiln_tensor *eye =
      KILN_STEP(r, eye, I(kiln__composite_size(t, -1)), I(kiln_tensor_dtype(t)), NONE, NONE, NONE);
  return solve(r, name, t, eye, true, check, info_out);
}
kiln_tensor *kiln__la_inverse(kiln__composite *r, const char *name, kiln_tensor *t) {
  return inverse(r, name, t, true, NULL);
}
KILN_COMPOSITE(linalg_inv) { return inverse(r, "linalg.inv", SELF, true, NULL); }
/* A, check_errors -> inverse, info */
KILN_COMPOSITE(linalg_inv_ex) {
  return inverse(r, "linalg.inv_ex", SELF, kiln_arg_bool(args, 1), &outs[1]);
}
/* A, B, left */
static kiln_tensor *solve_side(kiln__composite *r, const char *name, const kiln_ivalue *args,
                               bool check, kiln_ivalue *info_out) {
  kiln_tensor *a = SELF, *b = ARG(1);
  const int rank = kiln_tensor_rank(a);
  const bool left = kiln_arg_bool(args, 2);
  const bool vector = kiln_tensor_rank(b) == 1 ||
                      (rank > 0 && kiln_tensor_has_sizes(b, rank - 1, kiln_tensor_sizes(a)));
  if (rank < 2) {
    return FAIL(r, "%s: The input tensor A must have at least 2 dimensions.", name);
  }
  if (vector && !left) {
    return FAIL(r, "%s: Vector broadcasting of the left hand side is not supported for left=False.",
                name);
  }
  if (vector) b = KILN_STEP(r, unsqueeze, T(b), I(-1));
  if (!left) a = kiln__la_turned(r, a), b = kiln__la_turned(r, b);
  kiln_tensor *x = solve(r, name, a, b, false, check, info_out);
  if (vector) { /* PyTorch takes the vectors for columns of one matrix */
    x = KILN_STEP(r, squeeze_dim, T(x), I(-1));
    return kiln__la_columns(r, x, kiln__composite_dtype(x));
  }
  return left ? x : kiln__la_turned(r, x);
}
KILN_COMPOSITE(linalg_solve) { return solve_side(r, "linalg.solve", args, true, NULL); }
/* A, B, left, check_errors -> result, info */
KILN_COMPOSITE(linalg_solve_ex) {
  return solve_side(r, "linalg.solve_ex", args, kiln_arg_bool(args, 3), &outs[1]);
}

/* -- Solutions from Cholesky's factor, triangles -- */

/* self (b), input2 (the factor), upper */
KILN_COMPOSITE(cholesky_solve) {
  kiln_tensor *low = kiln_arg_bool(args, 2) ? kiln__la_adjoint(r, ARG(1)) : ARG(1);
  kiln_tensor *y = kiln__la_solve_triangular(r, "cholesky_solve", low, SELF, false, false);
  return kiln__la_solve_triangular(r, "cholesky_solve", kiln__la_adjoint(r, low), y, true, false);
}
KILN_COMPOSITE(cholesky_inverse) {
  kiln_tensor *low = kiln_arg_bool(args, 1) ? kiln__la_adjoint(r, SELF) : SELF;
  kiln_tensor *eye = KILN_STEP(r, eye, I(kiln__composite_size(SELF, -1)),
                               I(kiln_tensor_dtype(SELF)), NONE, NONE, NONE);
  kiln_tensor *y = kiln__la_solve_triangular(r, "cholesky_inverse", low, eye, false, false);
  return kiln__la_solve_triangular(r, "cholesky_inverse", kiln__la_adjoint(r, low), y, true, false);
}
/* self (b), A, upper, transpose, unitriangular -> solution, A's copy */
KILN_COMPOSITE(triangular_solve) {
  const bool turn = kiln_arg_bool(args, 3), upper = kiln_arg_bool(args, 2);
  kiln_tensor *a = turn ? kiln__la_turned(r, ARG(1)) : ARG(1), *copied = ARG(1), *b = SELF;
  kiln__la_share(r, &copied, &b);
  kiln_tensor *columns = kiln__la_columns(r, copied, kiln__composite_dtype(copied));
  if (columns == copied) columns = KILN_STEP(r, clone, T(columns), NONE);
  kiln__composite_give(r, &outs[1], columns);
  return kiln__la_solve_triangular(r, "triangular_solve", a, SELF, upper != turn,
                                   kiln_arg_bool(args, 4));
}
