/* math.c: arithmetic on sparse tensors: products with dense ones, sums, element by element.
 */
#include "runtime/kernels/sparse/sparse.h"

#include <string.h>

#include "runtime/kernels/nn/nn.h"

/* -- Products -- */

typedef struct product {
  const int64_t *row, *column; /* of each element */
  const void *values, *dense;  /* dense: [k, n], row-major */
  void *to;                    /* [m, n] */
  int64_t count, n;
} product;

#define ADD_ROWS(name, type)                                                         \
  static kiln_status *name(kiln_call *call, const product *p) {                      \
    const type *values = p->values, *dense = p->dense;                               \
    type *to = p->to;                                                                \
    for (int64_t i = 0; i < p->count; i++) {                                         \
      const type *from = dense + p->column[i] * p->n, factor = values[i];            \
      type *row = to + p->row[i] * p->n;                                             \
      for (int64_t k = 0; k < p->n; k++) row[k] = (type)(row[k] + factor * from[k]); \
      if (i % 256 == 0) KILN_TRY(kiln_call_check(call, 1));                          \
    }                                                                                \
    return NULL;                                                                     \
  }
ADD_ROWS(add_rows_f32, float)
ADD_ROWS(add_rows_f64, double)
ADD_ROWS(add_rows_u64, uint64_t) /* integers wrap around */

/* Places of the elements along dimension `dim`, under the batch that dimension 0 is where `dim`s
 * are 1 and 2: batch * size + place. */
static const int64_t *places(kiln__composite *r, const kiln_tensor *t, bool batched, int dim) {
  const kiln_sparse *s = kiln_tensor_sparse(t);
  kiln_tensor *out;
  if (!batched) return kiln__sparse_row(s, dim);
  const int64_t count = kiln__sparse_count(s), size = kiln_tensor_sizes(t)[dim];
  int64_t *to = kiln__composite_new(r, KILN_DTYPE_I64, 1, &count, &out);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0; i < count && to && !kiln_budget_spent(&left, 2); i++) {
    to[i] = kiln__sparse_row(s, 0)[i] * size + kiln__sparse_row(s, dim)[i];
  }
  return to;
}
/* A sparse matrix (or batch of them) times a dense one. */
static kiln_tensor *multiply(kiln__composite *r, kiln_tensor *a, kiln_tensor *b) {
  const kiln_sparse *s = kiln_tensor_sparse(a);
  const int rank = kiln_tensor_rank(a);
  kiln_tensor *values, *dense, *result;
  if (!s || kiln_tensor_is_structured(b)) {
    FAIL(r, "only a product of a sparse and a dense matrix is implemented");
  } else if (kiln__sparse_dims(s) != rank || kiln_tensor_rank(b) != rank || rank < 2 || rank > 3) {
    FAIL(r, "matrices expected, got %dD and %dD tensors", rank, kiln_tensor_rank(b));
  } else if (kiln__composite_size(a, -1) != kiln__composite_size(b, -2) ||
             (rank == 3 && kiln__composite_size(a, 0) != kiln__composite_size(b, 0))) {
    FAIL(r, "addmm: Argument #3 (dense): Expected dim %d size %lld, got %lld", rank - 2,
         (long long)kiln__composite_size(a, -1), (long long)kiln__composite_size(b, -2));
  } else if (kiln_tensor_dtype(a) != kiln_tensor_dtype(b)) {
    FAIL(r, "expected scalar type %s but found %s", kiln_dtype_ir_name(kiln_tensor_dtype(a)),
         kiln_dtype_ir_name(kiln_tensor_dtype(b)));
  } else if (kiln_dtype_is_complex(kiln_tensor_dtype(a))) {
    (void)kiln__composite_ok(r, kiln__not_implemented(r->call, kiln_tensor_dtype(a)));
  }
  if (r->status) return NULL;
  const kiln_dtype dtype = kiln_tensor_dtype(a);
  const kiln_dtype in = dtype == KILN_DTYPE_F64      ? KILN_DTYPE_F64
                        : kiln_dtype_is_float(dtype) ? KILN_DTYPE_F32
                                                     : KILN_DTYPE_I64;
  product p = {.count = kiln__sparse_count(s), .n = kiln__composite_size(b, -1)};
  int64_t sizes[3] = {kiln__composite_size(a, 0), kiln__composite_size(a, -2), p.n};
  p.row = places(r, a, rank == 3, rank - 2);
  p.column = places(r, a, rank == 3, rank - 1);
  p.values = kiln__composite_read(r, s->values, in, &values);
  p.dense = kiln__composite_read(r, b, in, &dense);
  p.to = kiln__composite_new(r, in, rank, rank == 3 ? sizes : sizes + 1, &result);
  if (r->status) return NULL;
  if (result->numel > 0) kiln__zero(p.to, (size_t)result->numel * kiln_tensor_item_size(result));
  kiln_status *(*run)(kiln_call *, const product *) = in == KILN_DTYPE_F64   ? add_rows_f64
                                                      : in == KILN_DTYPE_F32 ? add_rows_f32
                                                                             : add_rows_u64;
  return kiln__composite_ok(r, run(r->call, &p)) ? kiln__composite_to(r, result, dtype) : NULL;
}
static kiln_tensor *swapped(kiln__composite *r, kiln_tensor *t, int a, int b);
/* Either may be the sparse one. */
static kiln_tensor *matrix_product(kiln__composite *r, kiln_tensor *a, kiln_tensor *b) {
  if (kiln_tensor_sparse(a) || !kiln_tensor_sparse(b) || kiln_tensor_rank(a) != 2 ||
      kiln_tensor_rank(b) != 2) {
    return multiply(r, a, b);
  }
  kiln_tensor *first = swapped(r, b, 0, 1), *second = KILN_STEP(r, t, T(a));
  return r->status ? NULL : KILN_STEP(r, t, T(multiply(r, first, second)));
}
KILN_COMPOSITE(sparse_mm) { return matrix_product(r, SELF, ARG(1)); }
KILN_COMPOSITE(sparse_mv) {
  if (kiln_tensor_rank(ARG(1)) != 1) {
    return FAIL(r, "vector expected, got a %dD tensor", kiln_tensor_rank(ARG(1)));
  }
  kiln_tensor *column = KILN_STEP(r, unsqueeze, T(ARG(1)), I(1));
  if (column) column = multiply(r, SELF, column);
  return KILN_STEP(r, squeeze_dim, T(column), I(1));
}
KILN_COMPOSITE(sparse_matmul) {
  if (kiln_tensor_rank(ARG(1)) == 1 && !kiln_tensor_sparse(ARG(1)))
    return composite_sparse_mv(r, args, outs);
  return composite_sparse_mm(r, args, outs);
}
/* self, mat1, mat2, beta, alpha */
KILN_COMPOSITE(sparse_addmm) {
  if (kiln_tensor_is_structured(SELF)) {
    return FAIL(r, "addmm: only a dense tensor can be added to a product");
  }
  kiln_tensor *both = matrix_product(r, ARG(1), ARG(2));
  both = KILN_STEP(r, mul, T(both), args[4]);
  kiln_tensor *more = KILN_STEP(r, mul, T(SELF), args[3]);
  return KILN_STEP(r, add, T(more), T(both), I(1));
}

/* -- Element by element -- */

/* f(0) is 0: the kernel itself, on the values. */
KILN_COMPOSITE(sparse_unary) {
  kiln_tensor *t = kiln__sparse_coalesced(r, SELF);
  if (!t) return NULL;
  enum { MOST = 8 };
  kiln_ivalue own[MOST] = {{0}};
  const int count = r->call->arg_count;
  if (count > MOST) {
    return FAIL(r, "%s has too many arguments", r->call->kernel->name);
  }
  memcpy(own, args, sizeof *own * (size_t)count);
  own[0] = T(kiln_tensor_sparse(t)->values);
  kiln_tensor *values = kiln__composite_step(r, r->call->kernel->body, count, own);
  return values ? kiln__sparse_with(r, t, values) : NULL;
}
/* self, dtype, ... */
KILN_COMPOSITE(sparse_to_dtype) {
  kiln_tensor *values =
      kiln__composite_to(r, kiln_tensor_sparse(SELF)->values, (kiln_dtype)kiln_arg_int(args, 1));
  return values ? kiln__sparse_with(r, SELF, values) : NULL;
}
KILN_COMPOSITE(sparse_clone) {
  const kiln_sparse *s = kiln_tensor_sparse(SELF);
  kiln_tensor *indices = kiln__composite_copy(r, s->indices),
              *values = kiln__composite_copy(r, s->values);
  return kiln__sparse_new(r, kiln_tensor_rank(SELF), kiln_tensor_sizes(SELF), indices, values,
                          s->coalesced);
}
KILN_COMPOSITE(sparse_detach) {
  return kiln__sparse_with(r, SELF, kiln_tensor_sparse(SELF)->values);
}

static bool same_sizes(kiln__composite *r, const kiln_tensor *a, const kiln_tensor *b) {
  if (kiln_tensor_same_sizes(a, b)) return true;
  return FAIL(r,
              "expected 'self' and 'other' to have same size, but self has size %s while "
              "other has size %s",
              kiln__sizes_of(a).text, kiln__sizes_of(b).text);
}
/* a + alpha b, both sparse. */
static kiln_tensor *join(kiln__composite *r, kiln_tensor *a, kiln_tensor *b, kiln_ivalue alpha) {
  const kiln_sparse *s = kiln_tensor_sparse(a), *other = kiln_tensor_sparse(b);
  if (!same_sizes(r, a, b)) return NULL;
  if (kiln__sparse_dims(s) != kiln__sparse_dims(other)) {
    return FAIL(r, "the tensors have different numbers of sparse dimensions");
  }
  kiln_tensor *more = KILN_STEP(r, mul, T(other->values), alpha);
  kiln_tensor *indices = KILN_STEP(
      r, cat, kiln__composite_tensors(r, 2, (kiln_tensor *const[]){s->indices, other->indices}),
      I(1));
  kiln_tensor *parts[] = {s->values, more}, *values = NULL;
  if (more) values = KILN_STEP(r, cat, kiln__composite_tensors(r, 2, parts), I(0));
  kiln_tensor *sum =
      kiln__sparse_new(r, kiln_tensor_rank(a), kiln_tensor_sizes(a), indices, values, false);
  return sum && s->coalesced && other->coalesced ? kiln__sparse_coalesced(r, sum) : sum;
}
static kiln_tensor *add(kiln__composite *r, kiln_tensor *a, kiln_ivalue b, kiln_ivalue alpha) {
  if (b.tag != KILN_TAG_TENSOR || (!kiln_tensor_sparse(b.u.tensor) && kiln_tensor_sparse(a))) {
    return FAIL(r, "add(sparse, dense) is not supported. Use add(dense, sparse) instead.");
  }
  if (kiln_tensor_sparse(a)) return join(r, a, b.u.tensor, alpha);
  kiln_tensor *dense = kiln__sparse_dense(r, b.u.tensor);
  return KILN_STEP(r, add, T(a), T(dense), alpha);
}
KILN_COMPOSITE(sparse_add) { return add(r, SELF, args[1], args[2]); }
KILN_COMPOSITE(sparse_sub) {
  const kiln_number alpha = kiln__number(args[2]);
  if (alpha.kind != KILN_DTYPE_I64 && alpha.kind != KILN_DTYPE_F64) {
    return FAIL(r, "sub: alpha must be a real number");
  }
  const kiln_ivalue minus =
      alpha.kind == KILN_DTYPE_I64 ? I((int64_t)(0 - (uint64_t)alpha.i)) : F(-alpha.f);
  return add(r, SELF, args[1], minus);
}
/* Elements that both have: two rising lists are walked once. */
static kiln_tensor *intersect(kiln__composite *r, kiln_tensor *a, kiln_tensor *b) {
  if (!same_sizes(r, a, b)) return NULL;
  a = kiln__sparse_coalesced(r, a);
  b = a ? kiln__sparse_coalesced(r, b) : NULL;
  if (!a || !b) return NULL;
  const kiln_sparse *s = kiln_tensor_sparse(a), *other = kiln_tensor_sparse(b);
  const int dims = kiln__sparse_dims(s);
  if (dims != kiln__sparse_dims(other)) {
    return FAIL(r, "the tensors have different numbers of sparse dimensions");
  }
  kiln_tensor *keys = kiln__sparse_keys(r, s, kiln_tensor_sizes(a), dims);
  kiln_tensor *others = kiln__sparse_keys(r, other, kiln_tensor_sizes(a), dims), *at[2];
  const int64_t n = kiln__sparse_count(s), m = kiln__sparse_count(other);
  const int64_t most = n < m ? n : m;
  int64_t *first = kiln__composite_new(r, KILN_DTYPE_I64, 1, &most, &at[0]);
  int64_t *second = kiln__composite_new(r, KILN_DTYPE_I64, 1, &most, &at[1]), count = 0;
  if (r->status) return NULL;
  const int64_t *x = kiln_tensor_data(keys), *y = kiln_tensor_data(others);
  int64_t left = KILN_BUDGET_ITEMS;
  for (int64_t i = 0, k = 0; i < n && k < m && !kiln_budget_spent(&left, 2);) {
    if (x[i] == y[k]) first[count] = i, second[count++] = k;
    const bool low = x[i] <= y[k], high = x[i] >= y[k];
    i += low;
    k += high;
  }
  for (int i = 0; i < 2; i++) at[i] = kiln__composite_narrow(r, at[i], 0, 0, count);
  kiln_tensor *indices = KILN_STEP(r, index_select, T(s->indices), I(1), T(at[0]));
  kiln_tensor *u = KILN_STEP(r, index_select, T(s->values), I(0), T(at[0]));
  kiln_tensor *v = KILN_STEP(r, index_select, T(other->values), I(0), T(at[1]));
  kiln_tensor *values = KILN_STEP(r, mul, T(u), T(v));
  return kiln__sparse_new(r, kiln_tensor_rank(a), kiln_tensor_sizes(a), indices, values, true);
}
KILN_COMPOSITE(sparse_mul) {
  kiln_tensor *a = SELF, *b = args[1].tag == KILN_TAG_TENSOR ? ARG(1) : NULL;
  if (b && !kiln_tensor_sparse(a)) a = ARG(1), b = SELF;
  const kiln_sparse *s = kiln_tensor_sparse(a);
  if (b && kiln_tensor_sparse(b)) return intersect(r, a, b);
  kiln_tensor *values;
  if (b && kiln_tensor_rank(b) > 0) {
    a = kiln__sparse_coalesced(r, a);
    if (!a) return NULL;
    s = kiln_tensor_sparse(a);
    values = KILN_STEP(r, mul, T(s->values), T(kiln__sparse_gather(r, b, a)));
  } else {
    values = KILN_STEP(r, mul, T(s->values), b ? T(b) : args[1]);
  }
  return values ? kiln__sparse_with(r, a, values) : NULL;
}
KILN_COMPOSITE(sparse_div) {
  const bool number = args[1].tag != KILN_TAG_TENSOR;
  if (!kiln_tensor_sparse(SELF) ||
      (!number && (kiln_tensor_is_structured(ARG(1)) || kiln_tensor_rank(ARG(1)) > 0))) {
    return FAIL(r, "Sparse division requires a scalar or zero-dim dense tensor divisor");
  }
  kiln_tensor *t = kiln__sparse_coalesced(r, SELF);
  if (!t) return NULL;
  kiln_tensor *values = KILN_STEP(r, div, T(kiln_tensor_sparse(t)->values), args[1]);
  return values ? kiln__sparse_with(r, t, values) : NULL;
}

/* -- Dimensions -- */

static kiln_tensor *swapped(kiln__composite *r, kiln_tensor *t, int a, int b) {
  const kiln_sparse *s = kiln_tensor_sparse(t);
  int64_t sizes[KILN_MAX_RANK];
  const int dims = kiln__sparse_dims(s), rank = kiln_tensor_rank(t);
  if (a == b) return t;
  if (a >= dims || b >= dims) {
    return FAIL(r, "transpose(): can only transpose sparse dimensions of a sparse tensor");
  }
  memcpy(sizes, kiln_tensor_sizes(t), sizeof *sizes * (size_t)rank);
  sizes[a] = kiln_tensor_sizes(t)[b];
  sizes[b] = kiln_tensor_sizes(t)[a];
  const int64_t count = kiln__sparse_count(s);
  kiln_tensor *indices = kiln__composite_copy(r, s->indices);
  void *data;
  if (!indices || !kiln__composite_ok(r, kiln_tensor_writable_data(indices, &data))) return NULL;
  int64_t *to = data;
  if (count > 0) {
    memcpy(to + a * count, kiln__sparse_row(s, b), (size_t)count * sizeof *to);
    memcpy(to + b * count, kiln__sparse_row(s, a), (size_t)count * sizeof *to);
  }
  return kiln__sparse_new(r, rank, sizes, indices, s->values, false);
}
KILN_COMPOSITE(sparse_transpose) {
  const int rank = kiln_tensor_rank(SELF), a = kiln__composite_dim(r, kiln_arg_int(args, 1), rank);
  const int b = kiln__composite_dim(r, kiln_arg_int(args, 2), rank);
  return !r->status ? swapped(r, SELF, a, b) : NULL;
}
KILN_COMPOSITE(sparse_t) {
  if (kiln_tensor_rank(SELF) > 2) {
    return FAIL(r, "t() expects a tensor with <= 2 dimensions, but self is %dD",
                kiln_tensor_rank(SELF));
  }
  return kiln_tensor_rank(SELF) < 2 ? SELF : swapped(r, SELF, 0, 1);
}
/* self, dtype (at 1, where `typed`) */
static kiln_tensor *values_of(kiln__composite *r, kiln_tensor *t, kiln_dtype dtype) {
  const kiln_sparse *s = kiln__sparse_arg(r, t);
  return s ? kiln__composite_to(r, s->values, dtype) : NULL;
}
static kiln_tensor *sum_all(kiln__composite *r, kiln_tensor *t, kiln_ivalue dtype) {
  const kiln_sparse *s = kiln__sparse_arg(r, t);
  return s ? KILN_STEP(r, sum, T(s->values), dtype) : NULL;
}
KILN_COMPOSITE(sparse_sum) { return sum_all(r, SELF, NONE); }
KILN_COMPOSITE(sparse_sum_dtype) { return sum_all(r, SELF, args[1]); }
/* Sums over the dimensions of `mask`: sparse, unless no sparse dimension is left. */
static kiln_tensor *sum_over(kiln__composite *r, kiln_tensor *t, kiln_tensor *values,
                             uint64_t mask) {
  const kiln_sparse *s = kiln_tensor_sparse(t);
  const int dims = kiln__sparse_dims(s), rank = kiln_tensor_rank(t);
  int64_t over[KILN_MAX_RANK + 1], sizes[KILN_MAX_RANK], kept[KILN_MAX_RANK];
  int overs = 0, left = 0, sparse_left = 0;
  for (int d = 0; d < rank; d++) {
    if (!(mask >> d & 1)) sizes[left++] = kiln_tensor_sizes(t)[d];
    if (!(mask >> d & 1) && d < dims) kept[sparse_left++] = d;
    if (mask >> d & 1 && d >= dims) over[overs++] = d - dims + 1;
  }
  if (sparse_left == 0) over[overs++] = 0;
  if (overs > 0) {
    values = KILN_STEP(r, sum_dim, T(values), kiln__composite_ints(r, overs, over), B(false), NONE);
  }
  if (sparse_left == 0 || r->status) return values;
  kiln_tensor *rows, *indices;
  int64_t *to = kiln__composite_new(r, KILN_DTYPE_I64, 1, (const int64_t[]){sparse_left}, &rows);
  if (!to) return NULL;
  memcpy(to, kept, sizeof *kept * (size_t)sparse_left);
  indices = KILN_STEP(r, index_select, T(s->indices), I(0), T(rows));
  kiln_tensor *sum = kiln__sparse_new(r, left, sizes, indices, values, false);
  return sum ? kiln__sparse_coalesced(r, sum) : NULL;
}
static kiln_tensor *give_sum(kiln__composite *r, const kiln_ivalue *args, kiln_dtype dtype) {
  uint64_t mask;
  kiln_tensor *values = values_of(r, SELF, dtype);
  return values && kiln__composite_ok(r, kiln__arg_dims(args, 1, kiln_tensor_rank(SELF), &mask))
             ? sum_over(r, SELF, values, mask)
             : NULL;
}
/* self, dim */
KILN_COMPOSITE(sparse_sum_dim) { return give_sum(r, args, kiln_tensor_dtype(SELF)); }
/* self, dim, dtype */
KILN_COMPOSITE(sparse_sum_dim_dtype) {
  return give_sum(r, args, kiln__arg_dtype_or(args, 2, kiln_tensor_dtype(SELF)));
}
/* self, dim, keepdim, dtype */
KILN_COMPOSITE(sparse_sum_dims) {
  if (kiln_arg_bool(args, 2)) {
    return FAIL(r, "sum(): keepdim is not supported on sparse tensors");
  }
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  return give_sum(r, args,
                  kiln__arg_dtype_or(args, 3, kiln_dtype_is_float(dtype) ? dtype : KILN_DTYPE_I64));
}
