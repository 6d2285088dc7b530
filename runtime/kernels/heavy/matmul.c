/* matmul.c: matrix products: mm, bmm, mv, dot, matmul, linear, addmm, baddbmm, addmv.
 *
 * All are one product: batches of C = alpha A B + beta D, where A and B are matrices of any strides
 * and D is an expanded tensor or nothing. float and double go to gemm.c; the small
 * floats are widened to float and rounded once; integers (which wrap around) and complex numbers
 * take the plain loop, which is also the twin that tests compare gemm with. */
#include "runtime/kernels/heavy/matmul.h"

#include <complex.h>

#include "base/budget.h"
#include "runtime/kernels/factory/factory.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/strides.h"

/* -- The reference -- */

#define PLAIN_PRODUCT(name, type, sum_type, scale)                                       \
  static void plain_##name(const kiln_gemm_args *g) {                                    \
    const type *a = g->a, *b = g->b;                                                     \
    int64_t left = KILN_BUDGET_ITEMS;                                                    \
    for (int64_t i = 0; i < g->m && !kiln_budget_spent(&left, 1); i++) {                 \
      for (int64_t j = 0; j < g->n && !kiln_budget_spent(&left, g->k); j++) {            \
        sum_type sum = 0;                                                                \
        for (int64_t p = 0, end; (end = kiln_budget_piece(p, g->k)) > p;) {              \
          for (; p < end; p++) {                                                         \
            sum += (sum_type)a[i * g->a_row + p * g->a_col] *                            \
                   (sum_type)b[p * g->b_row + j * g->b_col];                             \
          }                                                                              \
        }                                                                                \
        type *c = (type *)g->c + i * g->c_row + j * g->c_col;                            \
        const type *old_at =                                                             \
            g->init ? (const type *)g->init + i * g->init_row + j * g->init_col : c;     \
        sum_type old =                                                                   \
            g->beta == 0 ? (sum_type)0 : (sum_type)(*old_at) * (sum_type)(scale)g->beta; \
        *c = (type)(old + sum * (sum_type)(scale)g->alpha);                              \
      }                                                                                  \
    }                                                                                    \
  }
PLAIN_PRODUCT(f32, float, double, double)
PLAIN_PRODUCT(f64, double, double, double)
PLAIN_PRODUCT(i64, int64_t, uint64_t, int64_t)
PLAIN_PRODUCT(c128, double complex, double complex, double)

void kiln__matmul_reference(kiln_dtype dtype, const kiln_gemm_args *args) {
  switch (dtype) {
    case KILN_DTYPE_F32: plain_f32(args); break;
    case KILN_DTYPE_F64: plain_f64(args); break;
    case KILN_DTYPE_I64: plain_i64(args); break;
    default: plain_c128(args); break;
  }
}

/* The dtype that products of `dtype` are computed in; NONE: not at all. */
static kiln_dtype compute_dtype(kiln_dtype dtype) {
  switch (kiln_dtype_category_of(dtype)) {
    case KILN_CATEGORY_INT: return KILN_DTYPE_I64;
    case KILN_CATEGORY_FLOAT: return dtype == KILN_DTYPE_F64 ? KILN_DTYPE_F64 : KILN_DTYPE_F32;
    case KILN_CATEGORY_COMPLEX: return KILN_DTYPE_C128;
    default: return KILN_DTYPE_NONE;
  }
}

/* -- One product -- */

/* A matrix, or a batch of them: the last two dimensions are rows and columns. */
typedef struct operand {
  const kiln_tensor *tensor;    /* of the compute dtype: an argument, or: */
  kiln_tensor *made;            /* owned */
  int64_t row, col;             /* strides */
  int64_t batch[KILN_MAX_RANK]; /* strides over the product's batch dimensions */
} operand;

typedef struct product {
  kiln_call *call;
  kiln_dtype dtype, compute;
  int batch_rank;
  int64_t sizes[KILN_MAX_RANK]; /* of the batch, then m, n */
  int64_t k;
  operand a, b;
  operand base; /* what C starts as, expanded: no tensor where it starts as nothing */
  double alpha, beta;
} product;

static kiln_status *begin_product(product *p, kiln_call *call, const kiln_tensor *a,
                                  const kiln_tensor *b) {
  *p = (product){.call = call, .dtype = kiln_tensor_dtype(a), .alpha = 1};
  if (p->dtype != kiln_tensor_dtype(b)) {
    return KILN_OP_FAIL("expected scalar type %s but found %s", kiln_dtype_ir_name(p->dtype),
                        kiln_dtype_ir_name(kiln_tensor_dtype(b)));
  }
  p->compute = compute_dtype(p->dtype);
  if (p->compute == KILN_DTYPE_NONE) {
    const char *name = kiln_dtype_ir_name(p->dtype);
    return KILN_OP_FAIL("\"addmm_impl_cpu_\" not implemented for '%s'", name ? name : "Undefined");
  }
  return NULL;
}

/* Where the dtype is computed in as it is, the tensor is read where it lies; else a copy that lies
 * like it, whatever of a weight is rows. */
static kiln_status *set_operand(product *p, operand *o, kiln_tensor *t) {
  o->tensor = t;
  if (kiln_tensor_dtype(t) == p->compute) return NULL;
  KILN_TRY(kiln__empty_like(p->call, t, p->compute, KILN_FORMAT_PRESERVE, &o->made));
  o->tensor = o->made;
  return kiln_pw_copy(p->call, o->made, t);
}

static void end_product(product *p) {
  kiln_tensor_release_to(&p->call->cache, p->a.made);
  kiln_tensor_release_to(&p->call->cache, p->b.made);
  kiln_tensor_release_to(&p->call->cache, p->base.made);
}

static const char *at_batch(const product *p, const operand *o, int64_t index, size_t item) {
  int64_t offset = kiln__offset_of(p->batch_rank, p->sizes, o->batch, index);
  return (const char *)kiln_tensor_data(o->tensor) + (size_t)offset * item;
}

static kiln_status *cannot_expand(const product *p, const kiln_tensor *base) {
  const int rank = p->batch_rank + 2, pad = rank - kiln_tensor_rank(base);
  char have[256], want[256];
  kiln_sizes_print(kiln_tensor_rank(base), kiln_tensor_sizes(base), have, sizeof have);
  kiln_sizes_print(rank, p->sizes, want, sizeof want);
  int d = rank - 1;
  for (; d > 0 && d > pad; d--) {
    int64_t size = kiln_tensor_sizes(base)[d - pad];
    if (size != p->sizes[d] && size != 1) break;
  }
  if (pad < 0) {
    return KILN_OP_FAIL("expand: the number of sizes provided (%d) must be greater or equal to "
                        "the number of dimensions in the tensor (%d)",
                        rank, kiln_tensor_rank(base));
  }
  return KILN_OP_FAIL("The expanded size of the tensor (%lld) must match the existing size (%lld)"
                      " at non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
                      (long long)p->sizes[d], (long long)kiln_tensor_sizes(base)[d - pad], d, want,
                      have);
}

/* C starts as `t`, expanded to its sizes. */
static kiln_status *set_base(product *p, kiln_tensor *t) {
  const int rank = p->batch_rank + 2, pad = rank - kiln_tensor_rank(t);
  bool fits = pad >= 0;
  for (int i = pad; fits && i < rank; i++) {
    int64_t size = kiln_tensor_sizes(t)[i - pad];
    fits = size == p->sizes[i] || size == 1;
  }
  if (!fits) return cannot_expand(p, t);
  if (p->beta == 0) return NULL; /* its elements are not looked at */
  KILN_TRY(set_operand(p, &p->base, t));
  int64_t strides[KILN_MAX_RANK] = {0};
  for (int i = pad; i < rank; i++) {
    const int64_t size = kiln_tensor_sizes(t)[i - pad];
    strides[i] = size == 1 ? 0 : kiln_tensor_strides(p->base.tensor)[i - pad];
  }
  memcpy(p->base.batch, strides, sizeof strides);
  p->base.row = strides[rank - 2];
  p->base.col = strides[rank - 1];
  return NULL;
}

typedef struct places {
  const product *p;
  char *c;
} places;
static void locate(const void *data, int64_t i, kiln_gemm_args *g) {
  const places *at = data;
  const product *p = at->p;
  const size_t item = kiln_dtype_size(p->compute);
  g->a = at_batch(p, &p->a, i, item);
  g->b = at_batch(p, &p->b, i, item);
  g->c = at->c + (size_t)(i * g->m * g->n) * item;
  if (p->base.tensor) g->init = at_batch(p, &p->base, i, item);
}
static kiln_status *multiply(const product *p, int rank, kiln_tensor *c) {
  int64_t batches = 1;
  void *data;
  KILN_TRY(kiln_tensor_writable_data(c, &data));
  if (c->numel == 0) return NULL; /* of as many matrices as a program says */
  for (int i = 0; i < p->batch_rank; i++) batches *= p->sizes[i];
  const places at = {p, data};
  kiln_gemm_args g = {.m = p->sizes[rank - 2],
                      .n = p->sizes[rank - 1],
                      .k = p->k,
                      .a_row = p->a.row,
                      .a_col = p->a.col,
                      .b_row = p->b.row,
                      .b_col = p->b.col,
                      .c_row = p->sizes[rank - 1],
                      .c_col = 1,
                      .alpha = p->alpha,
                      .beta = p->base.tensor ? p->beta : 0,
                      .init_row = p->base.row,
                      .init_col = p->base.col};
  if (p->compute == KILN_DTYPE_F32 || p->compute == KILN_DTYPE_F64) {
    return kiln__gemm_run_many(p->call, p->compute, &g, batches, locate, &at);
  }
  for (int64_t i = 0; i < batches; i++) {
    locate(&at, i, &g);
    kiln__matmul_reference(p->compute, &g);
  }
  return NULL;
}

/* Runs the product, added to `base` where that is not NULL, and gives it out with `out_sizes`,
 * which hold as many elements. */
static kiln_status *give_product(product *p, kiln_tensor *base, kiln_ivalue *out, int out_rank,
                                 const int64_t *out_sizes) {
  int rank = p->batch_rank + 2;
  kiln_tensor *c = NULL, *converted = NULL, *shaped = NULL;
  kiln_status *status = base ? set_base(p, base) : NULL;
  if (!status) status = kiln_call_tensor(p->call, p->compute, rank, p->sizes, &c);
  if (!status) status = multiply(p, rank, c);
  if (!status && p->compute != p->dtype) {
    status = kiln__as_dtype(p->call, c, p->dtype, &converted);
    if (!status) {
      kiln_tensor_release_to(&p->call->cache, c);
      c = converted;
    }
  }
  if (!status &&
      (out_rank != rank || memcmp(out_sizes, p->sizes, sizeof *out_sizes * (size_t)rank) != 0)) {
    int64_t strides[KILN_MAX_RANK];
    kiln_strides_contiguous(out_rank, out_sizes, strides);
    status = kiln_tensor_view(&p->call->cache, c, out_rank, out_sizes, strides, c->offset, &shaped);
    if (!status) {
      kiln_tensor_release_to(&p->call->cache, c);
      c = shaped;
    }
  }
  end_product(p);
  if (status) {
    kiln_tensor_release_to(&p->call->cache, c);
    return status;
  }
  return kiln__finish(p->call, out, c);
}

/* -- Two matrices -- */

static kiln_status *cannot_multiply(const kiln_tensor *a, const kiln_tensor *b) {
  const int64_t *x = kiln_tensor_sizes(a), *y = kiln_tensor_sizes(b);
  return KILN_OP_FAIL("mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                      (long long)x[0], (long long)x[1], (long long)y[0], (long long)y[1]);
}

static kiln_status *matrices(kiln_call *call, kiln_tensor *base, kiln_tensor *a, kiln_tensor *b,
                             double beta, double alpha, kiln_ivalue *out) {
  product p;
  if (kiln_tensor_rank(a) != 2 || kiln_tensor_rank(b) != 2) {
    const bool first = kiln_tensor_rank(a) != 2;
    return KILN_OP_FAIL("%s must be a matrix, got %d-D tensor",
                        !first ? "mat2"
                        : base ? "mat1"
                               : "self",
                        kiln_tensor_rank(first ? a : b));
  }
  if (kiln_tensor_sizes(a)[1] != kiln_tensor_sizes(b)[0]) return cannot_multiply(a, b);
  KILN_TRY(begin_product(&p, call, a, b));
  p.beta = beta;
  p.alpha = alpha;
  p.k = kiln_tensor_sizes(a)[1];
  p.sizes[0] = kiln_tensor_sizes(a)[0];
  p.sizes[1] = kiln_tensor_sizes(b)[1];
  kiln_status *status = set_operand(&p, &p.a, a);
  if (!status) status = set_operand(&p, &p.b, b);
  if (status) {
    end_product(&p);
    return status;
  }
  p.a.row = kiln_tensor_strides(p.a.tensor)[0], p.a.col = kiln_tensor_strides(p.a.tensor)[1];
  p.b.row = kiln_tensor_strides(p.b.tensor)[0], p.b.col = kiln_tensor_strides(p.b.tensor)[1];
  return give_product(&p, base, out, 2, p.sizes);
}

KILN_KERNEL(mm) {
  return matrices(call, NULL, kiln_arg_tensor(args, 0), kiln_arg_tensor(args, 1), 0, 1, outs);
}

/* Of beta and alpha of addmm and its kin. */
static bool has_complex_scalar(const kiln_ivalue *args) {
  return kiln__number(args[3]).kind == KILN_DTYPE_C128 ||
         kiln__number(args[4]).kind == KILN_DTYPE_C128;
}

KILN_KERNEL(addmm) {
  if (has_complex_scalar(args)) return KILN_BODY_OF(complex_product_sum)(call, args, outs);
  return matrices(call, kiln_arg_tensor(args, 0), kiln_arg_tensor(args, 1),
                  kiln_arg_tensor(args, 2), kiln_arg_number_f64(args, 3),
                  kiln_arg_number_f64(args, 4), outs);
}

/* -- Any ranks -- */

/* Strides of an operand over the batch, which its own leading dimensions broadcast to. */
static void set_batch(const product *p, operand *o, int matrix_rank) {
  const kiln_tensor *t = o->tensor;
  int own = kiln_tensor_rank(t) - matrix_rank;
  for (int i = 0; i < p->batch_rank; i++) {
    int at = i - (p->batch_rank - own);
    o->batch[i] = at < 0 || kiln_tensor_sizes(t)[at] == 1 ? 0 : kiln_tensor_strides(t)[at];
  }
}

/* A vector on the left is a row, on the right a column. */
static int matrix_rank(const kiln_tensor *t) { return kiln_tensor_rank(t) == 1 ? 1 : 2; }

static void set_matrix(operand *o, bool left) {
  const kiln_tensor *t = o->tensor;
  int rank = kiln_tensor_rank(t);
  const int64_t *strides = kiln_tensor_strides(t);
  if (rank == 1) {
    o->row = left ? 0 : strides[0];
    o->col = left ? strides[0] : 0;
  } else {
    o->row = strides[rank - 2];
    o->col = strides[rank - 1];
  }
}

/* Leading dimensions of a row-major left operand are rows, when the right one has no batch. Where a
 * matrix has one row, that one's stride says nothing of the next matrix. */
static void fold_rows(product *p) {
  if (kiln_tensor_rank(p->b.tensor) > 2 || !kiln_tensor_is_contiguous(p->a.tensor)) return;
  int64_t rows = p->sizes[p->batch_rank], n = p->sizes[p->batch_rank + 1];
  for (int i = 0; i < p->batch_rank; i++) rows *= p->sizes[i];
  p->batch_rank = 0;
  p->sizes[0] = rows;
  p->sizes[1] = n;
  p->a.row = p->k;
  p->a.col = 1;
}

/* Rows of all matrices of a batch taken together. */
static long long rows_of(const kiln_tensor *t) {
  long long rows = 1;
  for (int i = 0; i + 1 < kiln_tensor_rank(t); i++) rows *= (long long)kiln_tensor_sizes(t)[i];
  return rows;
}

/* PyTorch's sentence tells how it would have called its kernels. */
static kiln_status *check_inner(const product *p, const kiln_tensor *a, const kiln_tensor *b,
                                int64_t ka, int64_t kb) {
  if (ka == kb) return NULL;
  if (kiln_tensor_rank(a) == 1 && kiln_tensor_rank(b) == 1) {
    return KILN_OP_FAIL("inconsistent tensor size, expected tensor [%lld] and src [%lld] to have "
                        "the same number of elements, but got %lld and %lld elements respectively",
                        (long long)ka, (long long)kb, (long long)ka, (long long)kb);
  }
  if (kiln_tensor_rank(b) == 1) {
    return KILN_OP_FAIL("size mismatch, got %lld, %lldx%lld,%lld", rows_of(a), rows_of(a),
                        (long long)ka, (long long)kb);
  }
  if (kiln_tensor_rank(b) == 2) {
    return KILN_OP_FAIL("mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                        rows_of(a), (long long)ka, (long long)kb,
                        (long long)kiln_tensor_sizes(b)[1]);
  }
  long long batches = 1;
  for (int i = 0; i < p->batch_rank; i++) batches *= (long long)p->sizes[i];
  return KILN_OP_FAIL("Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] "
                      "but got: [%lld, %lld].",
                      batches, (long long)ka, batches, (long long)kb);
}

/* numpy's matmul: vectors, matrices, batches that broadcast. */
static kiln_status *any_ranks(kiln_call *call, kiln_tensor *base, kiln_tensor *a, kiln_tensor *b,
                              double beta, double alpha, kiln_ivalue *out) {
  product p;
  int ra = kiln_tensor_rank(a), rb = kiln_tensor_rank(b), out_rank = 0;
  const int64_t *x = kiln_tensor_sizes(a), *y = kiln_tensor_sizes(b);
  int64_t out_sizes[KILN_MAX_RANK + 2];
  if (ra == 0 || rb == 0) {
    return KILN_OP_FAIL("both arguments to matmul need to be at least 1D, but they are %dD and %dD",
                        ra, rb);
  }
  KILN_TRY(begin_product(&p, call, a, b));
  KILN_TRY(kiln_broadcast(ra - matrix_rank(a), x, rb - matrix_rank(b), y, &p.batch_rank, p.sizes));
  KILN_TRY(check_inner(&p, a, b, x[ra - 1], rb == 1 ? y[0] : y[rb - 2]));
  if (p.batch_rank + 2 > KILN_MAX_RANK) return KILN_OP_FAIL("matmul of too many dimensions");
  p.beta = beta;
  p.alpha = alpha;
  p.k = x[ra - 1];
  p.sizes[p.batch_rank] = ra == 1 ? 1 : x[ra - 2];
  p.sizes[p.batch_rank + 1] = rb == 1 ? 1 : y[rb - 1];
  for (int i = 0; i < p.batch_rank; i++) out_sizes[out_rank++] = p.sizes[i];
  if (ra > 1) out_sizes[out_rank++] = x[ra - 2];
  if (rb > 1) out_sizes[out_rank++] = y[rb - 1];
  kiln_status *status = set_operand(&p, &p.a, a);
  if (!status) status = set_operand(&p, &p.b, b);
  if (status) {
    end_product(&p);
    return status;
  }
  set_batch(&p, &p.a, matrix_rank(a));
  set_batch(&p, &p.b, matrix_rank(b));
  set_matrix(&p.a, true);
  set_matrix(&p.b, false);
  if (!base && ra > 1) fold_rows(&p);
  return give_product(&p, base, out, out_rank, out_sizes);
}

KILN_KERNEL(matmul) {
  return any_ranks(call, NULL, kiln_arg_tensor(args, 0), kiln_arg_tensor(args, 1), 0, 1, outs);
}

KILN_KERNEL(mv) {
  kiln_tensor *a = kiln_arg_tensor(args, 0), *b = kiln_arg_tensor(args, 1);
  if (kiln_tensor_rank(a) != 2 || kiln_tensor_rank(b) != 1) {
    return KILN_OP_FAIL("vector + matrix @ vector expected, got 1, %d, %d", kiln_tensor_rank(a),
                        kiln_tensor_rank(b));
  }
  return any_ranks(call, NULL, a, b, 0, 1, outs);
}

KILN_KERNEL(dot) {
  kiln_tensor *a = kiln_arg_tensor(args, 0), *b = kiln_arg_tensor(args, 1);
  if (kiln_tensor_rank(a) != 1 || kiln_tensor_rank(b) != 1) {
    return KILN_OP_FAIL("1D tensors expected, but got %dD and %dD tensors", kiln_tensor_rank(a),
                        kiln_tensor_rank(b));
  }
  if (kiln_tensor_dtype(a) != kiln_tensor_dtype(b)) {
    return KILN_OP_FAIL("dot : expected both vectors to have same dtype, but found %s and %s",
                        kiln_dtype_ir_name(kiln_tensor_dtype(a)),
                        kiln_dtype_ir_name(kiln_tensor_dtype(b)));
  }
  return any_ranks(call, NULL, a, b, 0, 1, outs);
}

static kiln_status *check_batches(const kiln_tensor *a, const kiln_tensor *b) {
  if (kiln_tensor_rank(a) != 3) return KILN_OP_FAIL("batch1 must be a 3D tensor");
  if (kiln_tensor_rank(b) != 3) return KILN_OP_FAIL("batch2 must be a 3D tensor");
  const int64_t *x = kiln_tensor_sizes(a), *y = kiln_tensor_sizes(b);
  if (x[0] == y[0] && x[2] == y[1]) return NULL;
  return KILN_OP_FAIL("Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] "
                      "but got: [%lld, %lld].",
                      (long long)x[0], (long long)x[2], (long long)y[0], (long long)y[1]);
}

KILN_KERNEL(bmm) {
  kiln_tensor *a = kiln_arg_tensor(args, 0), *b = kiln_arg_tensor(args, 1);
  KILN_TRY(check_batches(a, b));
  return any_ranks(call, NULL, a, b, 0, 1, outs);
}

KILN_KERNEL(baddbmm) {
  kiln_tensor *a = kiln_arg_tensor(args, 1), *b = kiln_arg_tensor(args, 2);
  KILN_TRY(check_batches(a, b));
  if (has_complex_scalar(args)) return KILN_BODY_OF(complex_product_sum)(call, args, outs);
  return any_ranks(call, kiln_arg_tensor(args, 0), a, b, kiln_arg_number_f64(args, 3),
                   kiln_arg_number_f64(args, 4), outs);
}

/* x as a column of its own, so that a vector to add is one too. */
static kiln_status *column(kiln_call *call, const kiln_tensor *x, kiln_tensor **out_view) {
  return kiln_tensor_view(&call->cache, x, 2, (const int64_t[]){x->numel, 1},
                          (const int64_t[]){x->numel ? kiln_tensor_strides(x)[0] : 1, 1}, x->offset,
                          out_view);
}

KILN_KERNEL(addmv) {
  kiln_tensor *base = kiln_arg_tensor(args, 0), *a = kiln_arg_tensor(args, 1);
  kiln_tensor *x = kiln_arg_tensor(args, 2), *base_column = NULL;
  if (kiln_tensor_rank(a) != 2 || kiln_tensor_rank(x) != 1 || kiln_tensor_rank(base) > 1) {
    return KILN_OP_FAIL("vector + matrix @ vector expected, got %d, %d, %d", kiln_tensor_rank(base),
                        kiln_tensor_rank(a), kiln_tensor_rank(x));
  }
  if (has_complex_scalar(args)) return KILN_BODY_OF(complex_product_sum)(call, args, outs);
  const int64_t m = kiln_tensor_sizes(a)[0], k = kiln_tensor_sizes(a)[1];
  const int64_t size = kiln_tensor_rank(base) == 1 ? base->numel : m;
  if (x->numel != k || (size != m && size != 1)) {
    return KILN_OP_FAIL("size mismatch, got %lld, %lldx%lld,%lld", (long long)size, (long long)m,
                        (long long)k, (long long)x->numel);
  }
  if (kiln_tensor_rank(base) == 1) {
    KILN_TRY(column(call, base, &base_column));
    base = base_column;
  }
  kiln_status *status =
      any_ranks(call, base, a, x, kiln_arg_number_f64(args, 3), kiln_arg_number_f64(args, 4), outs);
  kiln_tensor_release_to(&call->cache, base_column);
  return status;
}

/* input @ weight.T + bias, over the last dimension. */
KILN_KERNEL(linear) {
  kiln_tensor *x = kiln_arg_tensor(args, 0), *w = kiln_arg_tensor(args, 1), *rows = NULL;
  kiln_tensor weight, *bias = kiln_arg_tensor_opt(args, 2);
  int rank = kiln_tensor_rank(x);
  if (kiln_tensor_rank(w) > 2 || kiln_tensor_rank(w) < 1 || rank < 1) {
    return KILN_OP_FAIL("linear expects a weight of 1 or 2 dimensions and an input of at least 1, "
                        "got %d and %d",
                        kiln_tensor_rank(w), rank);
  }
  if (kiln_tensor_rank(w) == 1) { /* a vector: no transposition, one result a row */
    return any_ranks(call, bias, x, w, 1, 1, outs);
  }
  KILN_TRY(kiln_tensor_transposed(w, &weight));
  kiln_status *status = NULL;
  if (rank > 2 || (rank == 1 && bias)) { /* as rows, so that the product is one */
    int64_t k = kiln_tensor_sizes(x)[rank - 1], n = kiln_tensor_sizes(w)[0];
    int64_t out_sizes[KILN_MAX_RANK], count = 1;
    kiln_tensor *dense = NULL, *product_rows = NULL;
    kiln_ivalue result = kiln_none();
    for (int d = 0; d < rank - 1; d++) count *= kiln_tensor_sizes(x)[d]; /* also where k is 0 */
    status = kiln__contiguous(call, x, &dense);
    if (!status) {
      status = kiln_tensor_view(&call->cache, dense, 2, (const int64_t[]){count, k},
                                (const int64_t[]){k, 1}, dense->offset, &rows);
    }
    if (!status) status = matrices(call, bias, rows, &weight, 1, 1, &result);
    memcpy(out_sizes, kiln_tensor_sizes(x), sizeof *out_sizes * (size_t)rank);
    out_sizes[rank - 1] = n;
    if (!status) {
      int64_t out_strides[KILN_MAX_RANK];
      kiln_strides_contiguous(rank, out_sizes, out_strides);
      status = kiln_tensor_view(&call->cache, result.u.tensor, rank, out_sizes, out_strides,
                                result.u.tensor->offset, &product_rows);
    }
    kiln_ivalue_release_to(&call->cache, result);
    kiln_tensor_release_to(&call->cache, dense);
    if (!status) status = kiln__finish(call, outs, product_rows);
  } else {
    status = bias ? matrices(call, bias, x, &weight, 1, 1, outs)
                  : any_ranks(call, NULL, x, &weight, 0, 1, outs);
  }
  kiln_tensor_release_to(&call->cache, rows);
  return status;
}
