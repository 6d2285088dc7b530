/* spectrum.c: singular values and eigenvalues with their vectors, and what is made of them:
 * pseudo-inverses, ranks, condition numbers, least squares; exponentials of matrices.
 *
 * Vectors are defined up to a sign (a phase); singular vectors and those of Hermitian and
 * of real matrices have LAPACK's, those of other complex ones are free of it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "runtime/kernels/linalg/linalg.h"
#include "runtime/strides.h"

/* -- Singular values -- */

typedef struct parts {
  kiln_tensor *u, *s, *vh; /* complex doubles, doubles, complex doubles */
  kiln_dtype dtype;
} parts;
/* Where `full`, u and vh are square. */
static bool svd(kiln__composite *r, const char *name, kiln_tensor *t, bool full, parts *out) {
  const bool wide =
      kiln__composite_rank(t) >= 2 && kiln__composite_size(t, -2) < kiln__composite_size(t, -1);
  kiln__la_batch b;
  kiln_tensor *u, *vh;
  if (wide) t = kiln__la_adjoint(r, t);
  if (!kiln__la_read(r, name, t, false, &b)) return false;
  z *left = kiln__la_new(r, &b, KILN_DTYPE_C128, b.m, full ? b.m : b.n, &u);
  z *right = kiln__la_new(r, &b, KILN_DTYPE_C128, b.n, b.n, &vh);
  if (r->status || !kiln__la_svd_all(r, name, &b, wide, full, left, right, &out->s)) return false;
  out->dtype = b.dtype;
  out->u = wide ? kiln__la_adjoint(r, vh) : u;
  out->vh = wide ? kiln__la_adjoint(r, u) : vh;
  return !r->status;
}
/* A, full_matrices, driver -> U, S, Vh */
KILN_COMPOSITE(linalg_svd) {
  parts p;
  if (!svd(r, "linalg.svd", SELF, kiln_arg_bool(args, 1), &p)) return NULL;
  kiln__composite_give(r, &outs[1], kiln__composite_to(r, p.s, kiln_dtype_real(p.dtype)));
  kiln__composite_give(r, &outs[2], kiln__la_columns(r, p.vh, p.dtype));
  return kiln__la_columns(r, p.u, p.dtype);
}
static kiln_tensor *zeros_of(kiln__composite *r, const kiln_tensor *t, int64_t side) {
  int64_t sizes[KILN_MAX_RANK];
  const int rank = kiln_tensor_rank(t);
  memcpy(sizes, kiln_tensor_sizes(t), sizeof *sizes * (size_t)rank);
  sizes[rank - 2] = sizes[rank - 1] = side;
  return KILN_STEP(r, zeros, kiln__composite_ints(r, rank, sizes), I(kiln_tensor_dtype(t)), NONE,
                   NONE, NONE);
}
/* self, some, compute_uv -> U, S, V */
KILN_COMPOSITE(svd) {
  parts p;
  const bool vectors = kiln_arg_bool(args, 2);
  if (!svd(r, "linalg.svd", SELF, vectors && !kiln_arg_bool(args, 1), &p)) return NULL;
  kiln__composite_give(r, &outs[1], kiln__composite_to(r, p.s, kiln_dtype_real(p.dtype)));
  kiln__composite_give(r, &outs[2],
                       vectors
                           ? kiln__la_result(r, kiln__la_adjoint(r, p.vh), p.dtype)
                           : kiln__la_turned(r, zeros_of(r, SELF, kiln__composite_size(SELF, -1))));
  return vectors ? kiln__la_columns(r, p.u, p.dtype)
                 : zeros_of(r, SELF, kiln__composite_size(SELF, -2));
}

/* -- Eigenvalues -- */

/* values (double) and vectors of the triangle that `upper` says. */
static bool eigh(kiln__composite *r, const char *name, kiln_tensor *t, bool upper,
                 kiln_tensor **values, kiln_tensor **vectors, kiln_dtype *dtype) {
  kiln__la_batch b;
  kiln_tensor *scratch;
  if (!kiln__la_read(r, name, t, true, &b)) return false;
  const int64_t n = b.n, room_size = kiln__la_eigh_room(n, vectors != NULL);
  const bool single = kiln_dtype_real(b.dtype) == KILN_DTYPE_F32;
  z *room = kiln__composite_new(r, KILN_DTYPE_C128, 1, &room_size, &scratch);
  double *w = kiln__la_new(r, &b, KILN_DTYPE_F64, n, -1, values);
  z *v = vectors ? kiln__la_new(r, &b, KILN_DTYPE_C128, n, n, vectors) : NULL;
  if (r->status) return false;
  for (int64_t i = 0; kiln__la_is_left(i, b.count); i++) {
    z *a = b.data + i * n * n;
    for (int64_t e = 0; e < n * n; e++) {
      const int64_t row = e / n, c = e % n;
      if (row == c) a[e].im = 0;
      if (upper ? row > c : row < c) a[e] = z_conj(a[c * n + row]);
    }
    if (kiln__la_eigh(a, n, upper, single, w + i * n, v ? v + i * n * n : NULL, room)) continue;
    return FAIL(r,
                "%s: The algorithm failed to converge because the input matrix is "
                "ill-conditioned or has too many repeated eigenvalues.",
                name);
  }
  *dtype = b.dtype;
  return true;
}
/* "L" or "U" */
static bool read_side(kiln__composite *r, const char *name, kiln_str side, bool *upper) {
  *upper = kiln_str_is(side, "U") || kiln_str_is(side, "u");
  if (*upper || kiln_str_is(side, "L") || kiln_str_is(side, "l")) return true;
  return FAIL(r, "Expected UPLO argument to be 'L' or 'U', but got " KILN_STR_FMT " (%s)",
              KILN_STR_ARG(side), name);
}
static kiln_tensor *give_eigh(kiln__composite *r, const char *name, kiln_tensor *t, bool upper,
                              bool with_vectors, kiln_ivalue *outs) {
  kiln_tensor *w, *v = NULL;
  kiln_dtype dtype;
  if (!eigh(r, name, t, upper, &w, with_vectors ? &v : NULL, &dtype)) return NULL;
  if (v) kiln__composite_give(r, &outs[1], kiln__la_columns(r, v, dtype));
  return kiln__composite_to(r, w, kiln_dtype_real(dtype));
}
KILN_COMPOSITE(linalg_eigh) {
  bool upper;
  if (!read_side(r, "linalg.eigh", kiln_arg_str(args, 1), &upper)) return NULL;
  return give_eigh(r, "linalg.eigh", SELF, upper, true, outs);
}
KILN_COMPOSITE(linalg_eigvalsh) {
  bool upper;
  if (!read_side(r, "linalg.eigvalsh", kiln_arg_str(args, 1), &upper)) return NULL;
  return give_eigh(r, "linalg.eigvalsh", SELF, upper, false, outs);
}
/* self, eigenvectors, upper */
KILN_COMPOSITE(symeig) {
  const bool none = SELF->numel == 0, vectors = kiln_arg_bool(args, 1) && !none;
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  if (!vectors) {
    kiln__composite_give(r, &outs[1],
                         none ? kiln__composite_copy(r, SELF) : kiln__composite_empty(r, dtype));
  }
  return give_eigh(r, "symeig", SELF, kiln_arg_bool(args, 2), vectors, outs);
}
/* Complex values and vectors. */
static kiln_tensor *eig(kiln__composite *r, const char *name, kiln_tensor *t, bool with_vectors,
                        kiln_ivalue *outs) {
  kiln__la_batch b;
  kiln_tensor *values, *vectors = NULL, *scratch;
  if (!kiln__la_read(r, name, t, true, &b)) return NULL;
  const int64_t n = b.n, room_size = 2 * n * n + 2 * n;
  const bool real = !kiln_dtype_is_complex(b.dtype);
  const bool single = kiln_dtype_real(b.dtype) == KILN_DTYPE_F32;
  z *w = kiln__la_new(r, &b, KILN_DTYPE_C128, n, -1, &values);
  z *v = with_vectors ? kiln__la_new(r, &b, KILN_DTYPE_C128, n, n, &vectors) : NULL;
  z *room = kiln__composite_new(r, KILN_DTYPE_C128, 1, &room_size, &scratch);
  if (r->status) return NULL;
  for (int64_t i = 0; i < b.count * n * n; i++) {
    if (isfinite(b.data[i].re) && isfinite(b.data[i].im)) continue;
    return FAIL(r, "torch.%s: input tensor should not contain infs or NaNs.", name);
  }
  for (int64_t i = 0; kiln__la_is_left(i, b.count); i++) {
    z *vectors_of = v ? v + i * n * n : NULL;
    z *a = b.data + i * n * n;
    if (real ? !kiln__la_eig_real(a, n, single, w + i * n, vectors_of, room)
             : !kiln__la_eig(a, n, w + i * n, vectors_of, room)) {
      return FAIL(r, "%s: The algorithm failed to converge.", name);
    }
  }
  const kiln_dtype dtype = single ? KILN_DTYPE_C64 : KILN_DTYPE_C128;
  kiln__composite_give(r, &outs[0], kiln__la_result(r, values, dtype));
  if (v) kiln__composite_give(r, &outs[1], kiln__la_columns(r, vectors, dtype));
  return NULL;
}
KILN_COMPOSITE(linalg_eig) { return eig(r, "linalg.eig", SELF, true, outs); }
KILN_COMPOSITE(linalg_eigvals) { return eig(r, "linalg.eigvals", SELF, false, outs); }

/* -- Ranks, pseudo-inverses -- */

static double epsilon_of(kiln_dtype dtype) {
  return kiln_dtype_real(dtype) == KILN_DTYPE_F64 ? DBL_EPSILON : (double)FLT_EPSILON;
}
/* Tolerances that may be absent (None), numbers or tensors over the batch. */
typedef struct tolerance {
  kiln_ivalue absolute, relative;
} tolerance;
/* A number or tensor as a tensor of doubles [..., 1]; NULL for none. */
static kiln_tensor *bound_of(kiln__composite *r, kiln_ivalue v) {
  if (v.tag == KILN_TAG_NONE) return NULL;
  kiln_tensor *t = kiln__composite_operand(r, v, KILN_DTYPE_F64);
  return KILN_STEP(r, unsqueeze, T(kiln__composite_to(r, t, KILN_DTYPE_F64)), I(-1));
}
/* max(absolute, relative * greatest) for values s [..., k]: a tensor [..., 1]. Absent ones: nothing
 * absolute, and epsilon times the greater side unless something absolute is given. */
static kiln_tensor *threshold(kiln__composite *r, kiln_tensor *s, const tolerance *tol,
                              const kiln_tensor *t, kiln_dtype dtype) {
  const int64_t m = kiln__composite_size(t, -2), n = kiln__composite_size(t, -1);
  kiln_tensor *absolute = bound_of(r, tol->absolute), *relative = bound_of(r, tol->relative);
  if (!relative && absolute) { /* only where the absolute one is 0 does the default count */
    const kiln_tensor *a = absolute;
    double value = 0;
    if (a->numel == 1) (void)kiln__composite_ok(r, kiln_tensor_item_f64(a, &value));
    if (value > 0 || a->numel != 1) return absolute;
  }
  if (!relative) relative = bound_of(r, F(epsilon_of(dtype) * (double)(m > n ? m : n)));
  if (kiln__composite_size(s, -1) == 0) return relative;
  kiln_tensor *top = KILN_STEP(r, amax, T(s), INTS(-1), B(true));
  kiln_tensor *least_kept = KILN_STEP(r, mul, T(relative), T(top));
  return absolute ? KILN_STEP(r, maximum, T(absolute), T(least_kept)) : least_kept;
}
/* Sizes of the eigenvalues or singular values [..., k] in double. */
static kiln_tensor *magnitudes(kiln__composite *r, const char *name, kiln_tensor *t, bool hermitian,
                               kiln_dtype *dtype) {
  kiln_tensor *w;
  if (!hermitian) {
    parts p;
    if (!svd(r, name, t, false, &p)) return NULL;
    *dtype = p.dtype;
    return p.s;
  }
  if (!eigh(r, name, t, false, &w, NULL, dtype)) return NULL;
  return KILN_STEP(r, abs, T(w));
}
static kiln_tensor *matrix_rank(kiln__composite *r, kiln_tensor *t, const tolerance *tol,
                                bool hermitian) {
  kiln_dtype dtype = kiln_tensor_dtype(t);
  kiln_tensor *s = magnitudes(r, "linalg.matrix_rank", t, hermitian, &dtype);
  kiln_tensor *kept = KILN_STEP(r, gt, T(s), T(threshold(r, s, tol, t, dtype)));
  return KILN_STEP(r, sum_dim, T(kept), INTS(-1), B(false), NONE);
}
/* self, tol, hermitian: tol is absolute */
KILN_COMPOSITE(linalg_matrix_rank) {
  const tolerance tol = {args[1], F(0)};
  return matrix_rank(r, SELF, &tol, kiln_arg_bool(args, 2));
}
/* self, atol, rtol, hermitian */
KILN_COMPOSITE(linalg_matrix_rank_atol_rtol) {
  const tolerance tol = {args[1], args[2]};
  return matrix_rank(r, SELF, &tol, kiln_arg_bool(args, 3));
}
/* self, tol, symmetric; self, symmetric */
KILN_COMPOSITE(matrix_rank_tol) {
  const tolerance tol = {args[1], F(0)};
  return matrix_rank(r, SELF, &tol, kiln_arg_bool(args, 2));
}
KILN_COMPOSITE(matrix_rank) {
  const tolerance tol = {NONE, NONE};
  return matrix_rank(r, SELF, &tol, kiln_arg_bool(args, 1));
}
/* v s^-1 u^H of what is above the threshold, in complex doubles. */
static kiln_tensor *pseudo_inverse(kiln__composite *r, const char *name, kiln_tensor *t,
                                   const tolerance *tol, bool hermitian, kiln_dtype *dtype) {
  kiln_tensor *u, *s, *vh;
  if (hermitian) {
    if (!eigh(r, name, t, false, &s, &u, dtype)) return NULL;
    vh = kiln__la_adjoint(r, u);
  } else {
    parts p;
    if (!svd(r, name, t, false, &p)) return NULL;
    u = p.u, s = p.s, vh = p.vh, *dtype = p.dtype;
  }
  kiln_tensor *size = KILN_STEP(r, abs, T(s));
  kiln_tensor *kept = KILN_STEP(r, gt, T(size), T(threshold(r, size, tol, t, *dtype)));
  kiln_tensor *over = KILN_STEP(r, where, T(kept), T(KILN_STEP(r, reciprocal, T(s))),
                                T(KILN_STEP(r, zeros_like, T(s), NONE, NONE, NONE, NONE, NONE)));
  kiln_tensor *v =
      KILN_STEP(r, mul, T(kiln__la_adjoint(r, vh)), T(KILN_STEP(r, unsqueeze, T(over), I(-2))));
  return KILN_STEP(r, matmul, T(v), T(kiln__la_adjoint(r, u)));
}
static kiln_tensor *give_pinv(kiln__composite *r, kiln_tensor *t, const tolerance *tol,
                              bool hermitian) {
  kiln_dtype dtype = kiln_tensor_dtype(t);
  kiln_tensor *x = pseudo_inverse(r, "linalg.pinv", t, tol, hermitian, &dtype);
  return kiln__la_result(r, x, dtype);
}
/* self, rcond (relative; a number or tensor), hermitian */
KILN_COMPOSITE(linalg_pinv) {
  const tolerance tol = {F(0), args[1]};
  return give_pinv(r, SELF, &tol, kiln_arg_bool(args, 2));
}
KILN_COMPOSITE(pinverse) {
  const tolerance tol = {F(0), args[1]};
  return give_pinv(r, SELF, &tol, false);
}
/* self, atol, rtol, hermitian */
KILN_COMPOSITE(linalg_pinv_atol_rtol) {
  const tolerance tol = {args[1], args[2]};
  return give_pinv(r, SELF, &tol, kiln_arg_bool(args, 3));
}

/* -- Condition numbers -- */

/* self, p: a number, text or None (2) */
KILN_COMPOSITE(linalg_cond) {
  const bool text = args[1].tag == KILN_TAG_STRING, none = args[1].tag == KILN_TAG_NONE;
  const double p = text || none ? 2 : kiln__number(args[1]).f;
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  const kiln_ivalue dims = INTS(-2, -1);
  if (!kiln__la_check(r, "linalg.cond", SELF)) return NULL;
  if (kiln_tensor_rank(SELF) < 2) {
    return FAIL(r, "linalg.cond: The input tensor A must have at least 2 dimensions.");
  }
  if (!text && fabs(p) == 2) {
    parts s;
    if (!svd(r, "linalg.cond", SELF, false, &s)) return NULL;
    if (kiln__composite_size(s.s, -1) == 0) {
      return kiln__composite_to(r, KILN_STEP(r, sum_dim, T(s.s), INTS(-1), B(false), NONE),
                                kiln_dtype_real(dtype));
    }
    kiln_tensor *top = KILN_STEP(r, select, T(s.s), I(-1), I(0));
    kiln_tensor *low = KILN_STEP(r, select, T(s.s), I(-1), I(-1));
    kiln_tensor *ratio =
        p > 0 ? KILN_STEP(r, div, T(top), T(low)) : KILN_STEP(r, div, T(low), T(top));
    return kiln__composite_to(r, ratio, kiln_dtype_real(dtype));
  }
  if (kiln__composite_size(SELF, -1) != kiln__composite_size(SELF, -2)) {
    return FAIL(r,
                "linalg.cond(ord=%g): A must be batches of square matrices, but "
                "they are %lld by %lld matrices",
                p, (long long)kiln__composite_size(SELF, -2),
                (long long)kiln__composite_size(SELF, -1));
  }
  const kiln_dtype wide = kiln_dtype_is_complex(dtype) ? KILN_DTYPE_C128 : KILN_DTYPE_F64;
  kiln_tensor *a = kiln__composite_to(r, SELF, wide);
  kiln_tensor *both[2] = {NULL, NULL};
  KILN_STEP_MANY(r, linalg_inv_ex, 2, both, T(a), B(false));
  kiln_tensor *norm = KILN_STEP(r, linalg_matrix_norm, T(a), args[1], dims, B(false), NONE);
  kiln_tensor *other = KILN_STEP(r, linalg_matrix_norm, T(both[0]), args[1], dims, B(false), NONE);
  kiln_tensor *result = KILN_STEP(r, mul, T(norm), T(other));
  result = KILN_STEP(r, nan_to_num, T(result), F(INFINITY), F(INFINITY), F(-INFINITY));
  return kiln__composite_to(r, result, kiln_dtype_real(dtype));
}

/* -- Least squares -- */

/* self, b, rcond, driver -> solution, residuals, rank, singular_values */
KILN_COMPOSITE(linalg_lstsq) {
  kiln_tensor *a = SELF, *b = ARG(1);
  const int rank = kiln_tensor_rank(a);
  const kiln_str driver =
      args[3].tag == KILN_TAG_STRING ? kiln_string_view(args[3].u.string) : KILN_STR("gelsy");
  const bool gels = kiln_str_is(driver, "gels"), plain = kiln_str_is(driver, "gelsy");
  if (!gels && !plain && !kiln_str_is(driver, "gelsd") && !kiln_str_is(driver, "gelss")) {
    return FAIL(
        r, "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  }
  if (rank < 2) {
    return FAIL(r, "torch.linalg.lstsq: input must have at least 2 dimensions.");
  }
  const bool vector = kiln_tensor_rank(b) == rank - 1;
  if (vector) b = KILN_STEP(r, unsqueeze, T(b), I(-1));
  const int64_t m = kiln__composite_size(a, -2), n = kiln__composite_size(a, -1);
  if (!r->status && (kiln__composite_rank(b) < 2 || kiln__composite_size(b, -2) != m)) {
    FAIL(r, "torch.linalg.lstsq: input.size(-2) should match other.size(%d)", vector ? -1 : -2);
  }
  const tolerance tol = {F(0), args[2]};
  parts p;
  kiln_dtype dtype = kiln_tensor_dtype(a);
  kiln_tensor *inverse = pseudo_inverse(r, "torch.linalg.lstsq", a, &tol, false, &dtype);
  kiln_tensor *x = KILN_STEP(r, matmul, T(inverse), T(kiln__composite_to(r, b, KILN_DTYPE_C128)));
  if (!svd(r, "torch.linalg.lstsq", a, false, &p)) return NULL;
  kiln_tensor *kept = KILN_STEP(r, gt, T(p.s), T(threshold(r, p.s, &tol, a, dtype)));
  kiln_tensor *ranks = KILN_STEP(r, sum_dim, T(kept), INTS(-1), B(false), NONE);
  bool full = !r->status && m > n && !plain; /* gelsy leaves them out */
  const int64_t *each = full ? kiln_tensor_data(ranks) : NULL;
  for (int64_t i = 0; full && i < ranks->numel; i++) full = each[i] == n;
  const kiln_dtype real = kiln_dtype_real(dtype);
  kiln_tensor *empty = kiln__composite_empty(r, real), *residuals = empty;
  if (full) {
    kiln_tensor *wide = kiln__composite_to(r, a, KILN_DTYPE_C128);
    kiln_tensor *gap = KILN_STEP(r, sub, T(KILN_STEP(r, matmul, T(wide), T(x))),
                                 T(kiln__composite_to(r, b, KILN_DTYPE_C128)), I(1));
    gap = KILN_STEP(r, square, T(KILN_STEP(r, abs, T(gap))));
    residuals =
        kiln__composite_to(r, KILN_STEP(r, sum_dim, T(gap), INTS(-2), B(false), NONE), real);
    if (vector) residuals = KILN_STEP(r, squeeze_dim, T(residuals), I(-1));
  }
  x = kiln__la_columns(r, x, dtype);
  kiln__composite_give(r, &outs[0], vector ? KILN_STEP(r, squeeze_dim, T(x), I(-1)) : x);
  kiln__composite_give(r, &outs[1], residuals);
  kiln__composite_give(r, &outs[2], gels ? kiln__composite_empty(r, KILN_DTYPE_I64) : ranks);
  kiln__composite_give(r, &outs[3], gels || plain ? empty : kiln__composite_to(r, p.s, real));
  return NULL;
}

/* -- Roots -- */

/* A, no wider than high -> U, H with A = U H, H positive semidefinite */
KILN_COMPOSITE(linalg_polar) {
  const int64_t m = kiln__composite_size(SELF, -2), n = kiln__composite_size(SELF, -1);
  parts p;
  if (kiln_tensor_rank(SELF) >= 2 && m < n) {
    return FAIL(r,
                "linalg.polar: input must have at least as many rows as columns, "
                "but got %lld by %lld matrices",
                (long long)m, (long long)n);
  }
  if (!svd(r, "linalg.polar", SELF, false, &p)) return NULL;
  kiln_tensor *v = kiln__la_adjoint(r, p.vh), *u = KILN_STEP(r, matmul, T(p.u), T(p.vh));
  v = KILN_STEP(r, mul, T(v), T(KILN_STEP(r, unsqueeze, T(p.s), I(-2))));
  kiln__composite_give(r, &outs[1],
                       kiln__la_result(r, KILN_STEP(r, matmul, T(v), T(p.vh)), p.dtype));
  return kiln__la_result(r, u, p.dtype);
}
/* The root of a Hermitian matrix; negative eigenvalues count as 0. */
KILN_COMPOSITE(linalg_matrix_sqrth) {
  kiln_tensor *w, *v;
  kiln_dtype dtype;
  if (!eigh(r, "linalg.matrix_sqrth", SELF, false, &w, &v, &dtype)) return NULL;
  w = KILN_STEP(r, sqrt, T(KILN_STEP(r, clamp_min, T(w), I(0))));
  kiln_tensor *scaled = KILN_STEP(r, mul, T(v), T(KILN_STEP(r, unsqueeze, T(w), I(-2))));
  kiln_tensor *root = KILN_STEP(r, matmul, T(scaled), T(kiln__la_adjoint(r, v)));
  return kiln__la_result(r, root, dtype);
}

/* -- Exponentials: Taylor's series of a scaled matrix, squared (Higham, 2005, without Pade) -- */

/* a becomes exp(a); room holds two matrices. */
static void exponential(z *a, int64_t n, z *room) {
  z *term = room, *next = room + n * n;
  double norm = 0;
  int squarings = 0;
  for (int64_t i = 0; i < n; i++) {
    double row = 0;
    for (int64_t j = 0; j < n; j++) row += sqrt(z_size2(a[i * n + j]));
    norm = fmax(norm, row);
  }
  if (!isfinite(norm)) {
    for (int64_t i = 0; i < n * n; i++) a[i] = (z){NAN, 0};
    return;
  }
  while (norm > 0.5 && squarings < 1100) norm /= 2, squarings++;
  const double scale = ldexp(1, -squarings);
  for (int64_t i = 0; i < n * n; i++) a[i] = (z){a[i].re * scale, a[i].im * scale};
  /* In place of a: the sum, begun with the last term that counts (Horner). */
  memcpy(term, a, sizeof *a * (size_t)(n * n));
  kiln__la_identity(a, n);
  for (int k = 18; k > 0; k--) {
    kiln__la_multiply(next, term, false, a, false, n, n, n);
    for (int64_t i = 0; i < n * n; i++) {
      a[i] = (z){next[i].re / k + (i % (n + 1) == 0), next[i].im / k};
    }
  }
  for (; squarings > 0; squarings--) {
    kiln__la_multiply(next, a, false, a, false, n, n, n);
    memcpy(a, next, sizeof *a * (size_t)(n * n));
  }
}
/* Its strides, of a t whose batches are a view: PyTorch's result is like that view. */
static void strides_of_exponential(const kiln_tensor *t, int64_t *out_strides) {
  const kiln_strided own = kiln_tensor_strided(t);
  int64_t seen[3], laid[3], sizes[3] = {1, 0, 0};
  for (int d = 0; d < own.rank; d++) {
    if (d < own.rank - 2)
      sizes[0] *= own.sizes[d];
    else
      sizes[d - own.rank + 3] = own.sizes[d];
  }
  const kiln_strided view = {3, sizes, seen}, like = {3, sizes, laid};
  if (!kiln_strides_view(&own, 3, sizes, seen)) {
    kiln_strides_contiguous(own.rank, own.sizes, out_strides);
    return;
  }
  kiln_strides_like(&view, laid);
  if (!kiln_strides_view(&like, own.rank, own.sizes, out_strides))
    kiln_strides_contiguous(own.rank, own.sizes, out_strides);
}
KILN_COMPOSITE(linalg_matrix_exp) {
  kiln__la_batch b;
  kiln_tensor *scratch;
  const kiln_dtype low = kiln_tensor_dtype(SELF);
  const bool half = kiln_dtype_is_half(low);
  kiln_tensor *t = half ? kiln__composite_to(r, SELF, KILN_DTYPE_F32) : SELF;
  if (!kiln__la_read(r, "linalg.matrix_exp", t, true, &b)) return NULL;
  const int64_t size = 2 * b.n * b.n;
  z *room = kiln__composite_new(r, KILN_DTYPE_C128, 1, &size, &scratch);
  for (int64_t i = 0; room && kiln__la_is_left(i, b.count); i++)
    exponential(b.data + i * b.n * b.n, b.n, room);
  kiln_tensor *result = kiln__la_result(r, b.tensor, low);
  int64_t strides[KILN_MAX_RANK];
  if (r->status) return NULL;
  strides_of_exponential(SELF, strides);
  return KILN_OWN(r, kiln__lay(r->call, result, low, strides, &own_tensor));
}
