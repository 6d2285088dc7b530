/* linalg.c: batches of matrices; determinants, solutions of triangles, powers, norms.
 * (linalg.h says how they are worked on.) */
#include "runtime/kernels/linalg/linalg.h"

#include <math.h>
#include <string.h>

#include "runtime/strides.h"

/* -- Batches -- */

bool kiln__la_check(kiln__composite *r, const char *name, const kiln_tensor *t) {
  const kiln_dtype dtype = kiln__composite_dtype(t);
  if (r->status) return false;
  if (!kiln_dtype_is_float(dtype) && !kiln_dtype_is_complex(dtype)) {
    FAIL(r, "%s: Expected a floating point or complex tensor as input. Got %s", name,
         kiln_dtype_ir_name(dtype));
  } else if (kiln_dtype_is_half(dtype)) {
    FAIL(r, "%s: Low precision dtypes not supported. Got %s", name, kiln_dtype_ir_name(dtype));
  }
  return !r->status;
}
bool kiln__la_read(kiln__composite *r, const char *name, kiln_tensor *t, bool square,
                   kiln__la_batch *b) {
  const int rank = kiln__composite_rank(t);
  void *data = NULL;
  if (!kiln__la_check(r, name, t)) return false;
  if (rank < 2) {
    return FAIL(r, "%s: The input tensor A must have at least 2 dimensions.", name);
  }
  *b = (kiln__la_batch){.dtype = kiln_tensor_dtype(t), .rank = rank, .count = 1};
  memcpy(b->sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  b->m = b->sizes[rank - 2];
  b->n = b->sizes[rank - 1];
  for (int d = 0; d < rank - 2; d++) b->count *= b->sizes[d];
  if (square && b->m != b->n) {
    return FAIL(r, "%s: A must be batches of square matrices, but they are %lld by %lld matrices",
                name, (long long)b->m, (long long)b->n);
  }
  b->tensor = kiln__composite_copy(r, kiln__composite_to(r, t, KILN_DTYPE_C128));
  if (!b->tensor || !kiln__composite_ok(r, kiln_tensor_writable_data(b->tensor, &data)))
    return false;
  b->data = data;
  return true;
}
void *kiln__la_new(kiln__composite *r, const kiln__la_batch *b, kiln_dtype dtype, int64_t m,
                   int64_t n, kiln_tensor **out) {
  int64_t sizes[KILN_MAX_RANK];
  memcpy(sizes, b->sizes, sizeof sizes);
  sizes[b->rank - 2] = m;
  sizes[b->rank - 1] = n;
  return kiln__composite_new(r, dtype, b->rank - (n < 0) - (m < 0), sizes, out);
}
kiln_tensor *kiln__la_result(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype) {
  if (kiln__is_complex(t) && !kiln_dtype_is_complex(dtype)) {
    t = kiln__composite_copy(r, KILN_STEP(r, real, T(t))); /* not a view of every other number */
  }
  return kiln__composite_to(r, t, dtype);
}
kiln_tensor *kiln__la_columns(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype) {
  int64_t strides[KILN_MAX_RANK];
  if (kiln__is_complex(t) && !kiln_dtype_is_complex(dtype)) t = KILN_STEP(r, real, T(t));
  if (r->status || !t) return NULL;
  kiln_strides_columns(kiln_tensor_rank(t), kiln_tensor_sizes(t), strides);
  return KILN_OWN(r, kiln__lay(r->call, t, dtype, strides, &own_tensor));
}
int64_t *kiln__la_pivots(kiln__composite *r, int64_t n) {
  kiln_tensor *t;
  return kiln__composite_new(r, KILN_DTYPE_I64, 1, &n, &t);
}

void kiln__la_share(kiln__composite *r, kiln_tensor **a, kiln_tensor **b) {
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  if (r->status || !*a || !*b) return;
  kiln_tensor **pair[] = {a, b};
  for (int i = 1; i >= 0; i--) {
    if (kiln_tensor_rank(*pair[i]) < 2) {
      FAIL(r,
           "Expected %s to have at least 2 dimensions, but it has %d dimensions "
           "instead",
           i == 0 ? "A" : "b", kiln_tensor_rank(*pair[i]));
      return;
    }
  }
  if (!kiln__composite_ok(
          r, kiln_broadcast(kiln_tensor_rank(*a) - 2, kiln_tensor_sizes(*a),
                            kiln_tensor_rank(*b) - 2, kiln_tensor_sizes(*b), &rank, sizes))) {
    return;
  }
  for (int i = 0; i < 2; i++) {
    sizes[rank] = kiln__composite_size(*pair[i], -2);
    sizes[rank + 1] = kiln__composite_size(*pair[i], -1);
    *pair[i] =
        KILN_STEP(r, expand, T(*pair[i]), kiln__composite_ints(r, rank + 2, sizes), B(false));
    if (r->status) return;
  }
}
kiln_tensor *kiln__la_turned(kiln__composite *r, kiln_tensor *t) {
  return KILN_STEP(r, transpose, T(t), I(-2), I(-1));
}
kiln_tensor *kiln__la_adjoint(kiln__composite *r, kiln_tensor *t) {
  t = kiln__la_turned(r, t);
  return kiln__is_complex(t) ? KILN_STEP(r, conj, T(t)) : t;
}

/* -- Determinants: outs in the order sign, log of the size; or one of them -- */

typedef enum wanted { DET, SLOGDET, LOGDET } wanted;
static kiln_tensor *determinants(kiln__composite *r, const char *name, kiln_tensor *t, wanted what,
                                 kiln_ivalue *outs) {
  kiln__la_batch b;
  kiln_tensor *det, *logs;
  if (!kiln__la_read(r, name, t, true, &b)) return NULL;
  int64_t *pivot = kiln__la_pivots(r, b.n);
  z *to = kiln__composite_new(r, KILN_DTYPE_C128, b.rank - 2, b.sizes, &det);
  double *size = kiln__composite_new(r, KILN_DTYPE_F64, b.rank - 2, b.sizes, &logs);
  if (r->status) return NULL;
  for (int64_t i = 0; kiln__la_is_left(i, b.count); i++) {
    z *a = b.data + i * b.n * b.n;
    bool odd;
    kiln__la_lu(a, b.n, b.n, pivot, &odd);
    to[i] = (z){odd ? -1 : 1, 0};
    size[i] = 0;
    for (int64_t k = 0; k < b.n; k++) {
      const double length = sqrt(z_size2(a[k * b.n + k]));
      size[i] += log(length);
      if (what != DET && length == 0) to[i] = (z){0, 0};
      if (what != DET && length > 0) {
        to[i] = z_mul(to[i], (z){a[k * b.n + k].re / length, a[k * b.n + k].im / length});
      } else {
        to[i] = z_mul(to[i], a[k * b.n + k]);
      }
    }
  }
  if (what == LOGDET) { /* NaN for negative ones */
    kiln_tensor *sign = kiln__la_result(r, det, b.dtype);
    logs = kiln__composite_to(r, logs, kiln_dtype_real(b.dtype));
    return KILN_STEP(r, add, T(KILN_STEP(r, log, T(sign))), T(logs), I(1));
  }
  kiln__composite_give(r, &outs[0], kiln__la_result(r, det, b.dtype));
  if (what == SLOGDET) {
    kiln__composite_give(r, &outs[1], kiln__composite_to(r, logs, kiln_dtype_real(b.dtype)));
  }
  return NULL;
}
KILN_COMPOSITE(linalg_det) { return determinants(r, "linalg.det", SELF, DET, outs); }
KILN_COMPOSITE(linalg_slogdet) { return determinants(r, "linalg.slogdet", SELF, SLOGDET, outs); }
KILN_COMPOSITE(logdet) { return determinants(r, "logdet", SELF, LOGDET, outs); }

/* -- Solutions -- */

void *kiln__la_mismatch(kiln__composite *r, const char *name, const kiln__la_batch *a,
                        const kiln__la_batch *b) {
  return FAIL(
      r, "%s: Incompatible shapes of A and B for the equation AX = B (%lldx%lld and %lldx%lld)",
      name, (long long)a->m, (long long)a->n, (long long)b->m, (long long)b->n);
}
kiln_tensor *kiln__la_solve_triangular(kiln__composite *r, const char *name, kiln_tensor *a,
                                       kiln_tensor *b, bool upper, bool unit) {
  kiln__la_batch left, right;
  kiln__la_share(r, &a, &b);
  if (!kiln__la_read(r, name, a, true, &left) || !kiln__la_read(r, name, b, false, &right))
    return NULL;
  if (left.n != right.m || left.dtype != right.dtype) {
    return kiln__la_mismatch(r, name, &left, &right);
  }
  for (int64_t i = 0; kiln__la_is_left(i, left.count); i++) {
    kiln__la_substitute(left.data + i * left.n * left.n, left.n, right.data + i * right.m * right.n,
                        right.n, upper, unit);
  }
  return kiln__la_columns(r, right.tensor, right.dtype);
}
/* self, B, upper, left, unitriangular */
KILN_COMPOSITE(linalg_solve_triangular) {
  kiln_tensor *a = SELF, *b = ARG(1);
  const bool left = kiln_arg_bool(args, 3), upper = kiln_arg_bool(args, 2);
  if (kiln_tensor_rank(a) < 2 || kiln_tensor_rank(b) < 2) {
    return FAIL(r, "linalg.solve_triangular: The input tensor A must have at least 2 dimensions.");
  }
  if (!left) {
    a = kiln__la_turned(r, a);
    b = kiln__la_turned(r, b);
  }
  kiln_tensor *x = kiln__la_solve_triangular(r, "linalg.solve_triangular", a, b, upper == left,
                                             kiln_arg_bool(args, 4));
  return left ? x : kiln__la_columns(r, kiln__la_turned(r, x), kiln__composite_dtype(x));
}

/* -- Powers -- */

KILN_COMPOSITE(linalg_matrix_power) {
  kiln__la_batch b;
  kiln_tensor *t = SELF, *result = NULL;
  int64_t n = kiln_arg_int(args, 1);
  if (!kiln__la_read(r, "linalg.matrix_power", t, true, &b)) return NULL;
  if (n < 0) t = kiln__la_inverse(r, "linalg.inv", t);
  for (uint64_t rest = n < 0 ? 0 - (uint64_t)n : (uint64_t)n; rest && !r->status; rest /= 2) {
    if (rest % 2) result = result ? KILN_STEP(r, matmul, T(result), T(t)) : t;
    if (rest > 1) t = KILN_STEP(r, matmul, T(t), T(t));
  }
  if (n == 0) {
    for (int64_t i = 0; kiln__la_is_left(i, b.count); i++)
      kiln__la_identity(b.data + i * b.n * b.n, b.n);
    result = kiln__la_result(r, b.tensor, b.dtype);
  }
  return result == SELF ? kiln__composite_copy(r, result) : result;
}
/* x, N: powers 0 to N - 1 in rows */
KILN_COMPOSITE(linalg_vander) {
  kiln_tensor *t = SELF;
  const int64_t n = kiln_arg_int_or(args, 1, kiln__composite_size(t, -1));
  if (kiln_tensor_rank(t) == 0) t = KILN_STEP(r, unsqueeze, T(t), I(0));
  if (n <= 1) {
    FAIL(r, "N must be greater than 1.");
  } else if (kiln__composite_dtype(t) == KILN_DTYPE_BOOL) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, KILN_DTYPE_BOOL));
  }
  if (r->status) return NULL;
  if (kiln_dtype_is_int(kiln_tensor_dtype(t), true)) t = kiln__composite_to(r, t, KILN_DTYPE_I64);
  t = KILN_STEP(r, unsqueeze, T(t), I(-1));
  int64_t sizes[KILN_MAX_RANK];
  const int rank = kiln__composite_rank(t);
  if (r->status) return NULL;
  memcpy(sizes, kiln_tensor_sizes(t), sizeof(int64_t) * (size_t)rank);
  sizes[rank - 1] = n - 1;
  kiln_tensor *wide = KILN_STEP(r, expand, T(t), kiln__composite_ints(r, rank, sizes), B(false));
  kiln_tensor *parts[] = {KILN_STEP(r, ones_like, T(t), NONE, NONE, NONE, NONE, NONE),
                          KILN_STEP(r, cumprod, T(wide), I(-1), NONE)};
  if (r->status) return NULL;
  return KILN_STEP(r, cat, kiln__composite_tensors(r, 2, parts), I(-1));
}

/* -- Norms -- */

bool kiln__la_svd_all(kiln__composite *r, const char *name, const kiln__la_batch *b, bool wide,
                      bool full, z *left, z *right, kiln_tensor **out_values) {
  const kiln__la_svd_task task = {.m = b->m,
                                  .n = b->n,
                                  .wide = wide,
                                  .full = full,
                                  .real = !kiln_dtype_is_complex(b->dtype),
                                  .single = kiln_dtype_real(b->dtype) == KILN_DTYPE_F32};
  const int64_t room_size = kiln__la_svd_room(&task), columns = full ? b->m : b->n;
  int64_t sizes[KILN_MAX_RANK];
  kiln_tensor *scratch;
  memcpy(sizes, b->sizes, sizeof sizes);
  sizes[b->rank - 2] = b->n;
  z *room = kiln__composite_new(r, KILN_DTYPE_C128, 1, &room_size, &scratch);
  double *values = kiln__composite_new(r, KILN_DTYPE_F64, b->rank - 1, sizes, out_values);
  for (int64_t i = 0; !r->status && kiln__la_is_left(i, b->count); i++) {
    if (!kiln__la_svd(&task, b->data + i * b->m * b->n, values + i * b->n,
                      left ? left + i * b->m * columns : NULL,
                      left ? right + i * b->n * b->n : NULL, room)) {
      FAIL(r,
           "%s: (Batch element %lld): The algorithm failed to converge because the "
           "input matrix contained non-finite values or is ill-conditioned.",
           name, (long long)i);
    }
  }
  return !r->status;
}
/* The last two dimensions are the matrix: [..., k] values, k the smaller size, in double. */
static kiln_tensor *values_of(kiln__composite *r, const char *name, kiln_tensor *t) {
  kiln__la_batch b;
  kiln_tensor *out;
  if (kiln__composite_size(t, -2) < kiln__composite_size(t, -1)) t = kiln__la_turned(r, t);
  if (!kiln__la_read(r, name, t, false, &b)) return NULL;
  return kiln__la_svd_all(r, name, &b, false, false, NULL, NULL, &out) ? out : NULL;
}
KILN_COMPOSITE(linalg_svdvals) {
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  return kiln__composite_to(r, values_of(r, "linalg.svdvals", SELF), kiln_dtype_real(dtype));
}
/* ord: number or text; the two dimensions are moved to the end, and kept as 1 where wanted */
static kiln_tensor *matrix_norm(kiln__composite *r, kiln_tensor *t, kiln_ivalue ord,
                                const int64_t *dim, bool keepdim, kiln_ivalue dtype) {
  const int rank = kiln_tensor_rank(t);
  if (rank < 2) {
    return FAIL(r, "linalg.matrix_norm: The input tensor A must have at least 2 dimensions.");
  }
  int at[2] = {kiln__composite_dim(r, dim[0], rank), kiln__composite_dim(r, dim[1], rank)};
  if (!r->status && at[0] == at[1]) {
    FAIL(r, "linalg.matrix_norm: dims must be different. Got (%lld, %lld)", (long long)dim[0],
         (long long)dim[1]);
  }
  if (dtype.tag == KILN_TAG_INT) t = kiln__composite_to(r, t, (kiln_dtype)dtype.u.i);
  const kiln_dtype real = kiln_dtype_real(kiln__composite_dtype(t));
  const bool low = kiln_dtype_is_half(real); /* only for singular values */
  if (!low && !kiln__la_check(r, "linalg.matrix_norm", t)) return NULL;
  const bool text = ord.tag == KILN_TAG_STRING;
  const kiln_str name = text ? kiln_string_view(ord.u.string) : KILN_STR("");
  const double p = text ? 0 : kiln__number(ord).f;
  const kiln_ivalue both = INTS(at[0], at[1]);
  if (kiln_str_is(name, "fro")) {
    return KILN_STEP(r, linalg_vector_norm, T(t), F(2), both, B(keepdim), NONE);
  }
  const bool nuclear = kiln_str_is(name, "nuc");
  if (!nuclear && (text || (fabs(p) != 1 && fabs(p) != 2 && !isinf(p)))) {
    return FAIL(r, "linalg.matrix_norm: Order %g not supported.", p);
  }
  if (!nuclear && fabs(p) != 2) { /* sums of columns or rows, then the greatest or least */
    const int over_dim = fabs(p) == 1 ? at[0] : at[1];
    kiln_tensor *sums =
        KILN_STEP(r, sum_dim, T(KILN_STEP(r, abs, T(t))), INTS(over_dim), B(true), NONE);
    const kiln_ivalue rest = INTS(fabs(p) == 1 ? at[1] : at[0]);
    const bool none = kiln__composite_size(sums, fabs(p) == 1 ? at[1] : at[0]) == 0;
    sums = p > 0 && none ? KILN_STEP(r, sum_dim, T(sums), rest, B(true), NONE)
           : p > 0       ? KILN_STEP(r, amax, T(sums), rest, B(true))
                         : KILN_STEP(r, amin, T(sums), rest, B(true));
    return keepdim ? sums : KILN_STEP(r, sum_dim, T(sums), both, B(false), NONE);
  }
  int64_t sizes[KILN_MAX_RANK];
  for (int d = 0; d < rank; d++) {
    sizes[d] = d == at[0] || d == at[1] ? 1 : kiln__composite_size(t, d);
  }
  kiln_tensor *moved = KILN_STEP(r, movedim, T(t), both, INTS(-2, -1));
  kiln_tensor *s = values_of(r, "linalg.matrix_norm", moved);
  const kiln_ivalue last = INTS(-1);
  const bool none = p > 0 && kiln__composite_size(s, -1) == 0; /* the greatest of none is 0 */
  s = nuclear || none ? KILN_STEP(r, sum_dim, T(s), last, B(false), NONE)
      : p > 0         ? KILN_STEP(r, amax, T(s), last, B(false))
                      : KILN_STEP(r, amin, T(s), last, B(false));
  if (keepdim && !r->status) s = kiln__composite_reshape(r, s, rank, sizes);
  return kiln__composite_to(r, s, real);
}
/* self, ord, dim, keepdim, dtype */
KILN_COMPOSITE(linalg_matrix_norm) {
  int64_t dim[KILN_MAX_RANK];
  int count;
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 2, dim, &count))) return NULL;
  if (count != 2) {
    return FAIL(r, "linalg.matrix_norm: dim must be a 2-tuple. Got %d dimensions", count);
  }
  return matrix_norm(r, SELF, args[1], dim, kiln_arg_bool(args, 3), args[4]);
}
/* self, ord, dim, keepdim, dtype: of all elements, of a matrix or along dimensions */
KILN_COMPOSITE(linalg_norm) {
  kiln_tensor *t = SELF;
  const int rank = kiln_tensor_rank(t);
  int64_t dim[KILN_MAX_RANK] = {-2, -1};
  int count = rank;
  const bool none = args[1].tag == KILN_TAG_NONE, text = args[1].tag == KILN_TAG_STRING;
  const bool given = !kiln_arg_is_none(args, 2);
  if (given && !kiln__composite_ok(r, kiln__arg_int_list(args, 2, dim, &count))) return NULL;
  if (text || (!none && count == 2)) {
    if (count != 2) {
      return FAIL(
          r,
          "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.",
          rank);
    }
    return matrix_norm(r, t, args[1], dim, kiln_arg_bool(args, 3), args[4]);
  }
  if (!none && !given && rank != 1) {
    return FAIL(
        r, "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got %dD.",
        rank);
  }
  return KILN_STEP(r, linalg_vector_norm, T(t), none ? F(2) : args[1], args[2], args[3], args[4]);
}
