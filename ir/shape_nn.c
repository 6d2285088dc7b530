/* shape_nn.c: shape functions of matrix products, reductions and neural network layers. */
#include <math.h>

#include "ir/shape.h"

/* -- Matrix products -- */

static bool dims_meet(kiln_dim a, kiln_dim b) {
  return !kiln_dim_is_number(a) || !kiln_dim_is_number(b) || a == b;
}

/* Argument `at` (…, n, k) times the next one (…, k, m), both of `rank` 2 or 3. */
static bool product(kiln_shape_query *q, int at, int rank) {
  const kiln_tensor_detail *a = kiln__shape_ranked(q, at), *b = kiln__shape_ranked(q, at + 1);
  if (!a || !b || a->rank != rank || b->rank != rank) return false;
  kiln_dim sizes[3] = {a->sizes[0]};
  if (!dims_meet(a->sizes[rank - 1], b->sizes[rank - 2])) return false;
  if (rank == 3 && !kiln__shape_join_dim(&sizes[0], b->sizes[0])) return false;
  sizes[rank - 2] = a->sizes[rank - 2];
  sizes[rank - 1] = b->sizes[rank - 1];
  return kiln__shape_give(q, 0, kiln__shape_shared(a, b), rank, sizes, true);
}

/* addmm(self, a, b) and baddbmm: self broadcasts to the product. */
bool kiln__shape_mm(kiln_shape_query *q) { return product(q, 0, 2); }
bool kiln__shape_addmm(kiln_shape_query *q) { return product(q, 1, 2); }
bool kiln__shape_bmm(kiln_shape_query *q) { return product(q, 0, 3); }
bool kiln__shape_baddbmm(kiln_shape_query *q) { return product(q, 1, 3); }

/* Vectors get a dimension that is taken away again; batches broadcast. */
bool kiln__shape_matmul(kiln_shape_query *q) {
  const kiln_tensor_detail *a = kiln__shape_ranked(q, 0), *b = kiln__shape_ranked(q, 1);
  if (!a || !b || a->rank == 0 || b->rank == 0) return false;
  int64_t sizes[KILN_MAX_RANK];
  int batch_a = a->rank > 2 ? a->rank - 2 : 0, batch_b = b->rank > 2 ? b->rank - 2 : 0;
  int batch = batch_a > batch_b ? batch_a : batch_b, rank = batch;
  int64_t inner_a = a->sizes[a->rank - 1], inner_b = b->sizes[b->rank > 1 ? b->rank - 2 : 0];
  if (!dims_meet(inner_a, inner_b)) return false;
  for (int i = 0; i < batch; i++) {
    int at_a = i - (batch - batch_a), at_b = i - (batch - batch_b);
    int64_t size_a = at_a >= 0 ? a->sizes[at_a] : 1, size_b = at_b >= 0 ? b->sizes[at_b] : 1;
    if (!kiln__shape_broadcast_dim(q->dims, size_a, size_b, &sizes[i])) return false;
  }
  if (a->rank > 1) sizes[rank++] = a->sizes[a->rank - 2];
  if (b->rank > 1) sizes[rank++] = b->sizes[b->rank - 1];
  return kiln__shape_give(q, 0, kiln__shape_shared(a, b), rank, sizes, true);
}

/* linear(input (…, k), weight (m, k) or (k), bias). */
bool kiln__shape_linear(kiln_shape_query *q) {
  const kiln_tensor_detail *x = kiln__shape_ranked(q, 0), *w = kiln__shape_ranked(q, 1);
  if (!x || !w || x->rank == 0 || w->rank < 1 || w->rank > 2) return false;
  if (!dims_meet(x->sizes[x->rank - 1], w->sizes[w->rank - 1])) return false;
  int64_t sizes[KILN_MAX_RANK];
  int rank = 0;
  for (int i = 0; i + 1 < x->rank; i++) sizes[rank++] = x->sizes[i];
  if (w->rank == 2) sizes[rank++] = w->sizes[0];
  return kiln__shape_give(q, 0, kiln__shape_shared(x, w), rank, sizes, true);
}

/* -- Reductions -- */

/* What the RESULT column says, or else an argument `dtype`. */
static kiln_dtype reduced_dtype(const kiln_shape_query *q, const kiln_tensor_detail *self) {
  kiln_dtype dtype = (kiln_dtype)self->dtype;
  const bool wide = kiln_dtype_is_valid(dtype) && kiln_dtype_is_int(dtype, true);
  switch (q->op->result) {
    case KILN_RESULT_truth: return dtype == KILN_DTYPE_U8 ? KILN_DTYPE_U8 : KILN_DTYPE_BOOL;
    case KILN_RESULT_index: return KILN_DTYPE_I64;
    case KILN_RESULT_wide: return kiln__shape_dtype(q, wide ? KILN_DTYPE_I64 : dtype);
    case KILN_RESULT_real: {
      const kiln_dtype asked = kiln__shape_dtype(q, dtype);
      const bool parts = kiln_dtype_is_valid(asked) && kiln_dtype_is_complex(asked);
      return !parts ? asked : kiln_dtype_is_valid(dtype) ? kiln_dtype_real(dtype) : KILN_DTYPE_NONE;
    }
    case KILN_RESULT_same: break;
  }
  return kiln__shape_dtype(q, dtype);
}

/* Argument 0 without (or with 1 for) the dimensions of the mask. */
static void give_reduced(kiln_shape_query *q, int index, kiln_dtype dtype, uint64_t mask,
                         bool keep) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  int64_t sizes[KILN_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < self->rank; i++) {
    bool reduced = mask >> i & 1;
    if (reduced && !keep) continue;
    sizes[rank++] = reduced ? 1 : self->sizes[i];
  }
  /* Another layout may show in the result. */
  kiln__shape_give(q, index, dtype, rank, sizes, kiln__shape_is_contiguous(q, self));
}

static bool keepdim_of(const kiln_shape_query *q, bool *out) {
  int i = kiln__shape_find(q, "keepdim");
  *out = false;
  return i < 0 || kiln__shape_bool(q, i, out);
}

/* f(self): one element; of two results the other has self's type. */
bool kiln__shape_reduce_all(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  if (!self) return false;
  if (q->op->schema->result_count > 1) kiln__shape_give(q, 1, self->dtype, 0, NULL, true);
  return kiln__shape_give(q, 0, reduced_dtype(q, self), 0, NULL, true);
}

/* f(self, int[] dim, keepdim): None and [] are all dimensions; of two results the other has self's
 * type. */
bool kiln__shape_reduce_dims(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  const int at = kiln__shape_find(q, "dim");
  kiln_shape_list dims = {0};
  bool keep;
  uint64_t mask = 0;
  if (!self || !keepdim_of(q, &keep)) return false;
  if (!kiln__shape_is_none(q, at) && !kiln__shape_ints(q, at, &dims)) return false;
  for (int i = 0; i < dims.count; i++) {
    int64_t bound = self->rank ? self->rank : 1;
    int64_t dim = dims.ints[i] < 0 ? dims.ints[i] + bound : dims.ints[i];
    if (!dims.known[i] || dim < 0 || dim >= bound || (mask >> dim & 1)) return false;
    mask |= (uint64_t)1 << dim;
  }
  if (dims.count == 0) mask = ~(uint64_t)0;
  give_reduced(q, 0, reduced_dtype(q, self), mask, keep);
  if (q->op->schema->result_count > 1) give_reduced(q, 1, (kiln_dtype)self->dtype, mask, keep);
  return true;
}
/* The same of an operator that makes floats of whole numbers: what those become is not told. */
bool kiln__shape_reduce_floats(kiln_shape_query *q) {
  if (!kiln__shape_reduce_dims(q)) return false;
  const kiln_dtype dtype = (kiln_dtype)q->outs[0].dtype;
  if (!kiln_dtype_is_valid(dtype) || !kiln_dtype_is_float(dtype))
    q->outs[0].dtype = KILN_DTYPE_NONE;
  return true;
}

/* diff(self, n, dim, prepend, append) */
bool kiln__shape_diff(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  kiln_dim sizes[KILN_MAX_RANK];
  int64_t n;
  int dim;
  if (!self || !kiln__shape_int(q, 1, &n) || n < 0 ||
      !kiln__shape_sized_dim(q, 2, self->rank, &dim) || !kiln__shape_is_none(q, 3) ||
      !kiln__shape_is_none(q, 4))
    return false;
  for (int d = 0; d < self->rank; d++) sizes[d] = self->sizes[d];
  const kiln_dim size = sizes[dim];
  const kiln_sum rest = kiln_sum_minus(kiln_sum_of(q->dims, size), kiln_sum_number(n));
  sizes[dim] = kiln_sum_is_natural(q->dims, rest) ? kiln_sum_dim(q->dims, rest)
               : kiln_dim_is_number(size)         ? 0
                                                  : KILN_DIM_UNKNOWN;
  return kiln__shape_give(q, 0, self->dtype, self->rank, sizes, kiln__shape_is_row_major(q, self));
}

/* f(self, int? dim, keepdim), with one result or (values, int64 indices). */
bool kiln__shape_reduce_dim(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int dim = 0;
  bool keep;
  if (!self || !keepdim_of(q, &keep)) return false;
  bool all = kiln__shape_is_none(q, 1);
  if (!all && !kiln__shape_dim(q, 1, self->rank, &dim)) return false;
  uint64_t mask = all ? ~(uint64_t)0 : (uint64_t)1 << dim;
  give_reduced(q, 0, reduced_dtype(q, self), mask, keep);
  if (q->op->schema->result_count > 1) give_reduced(q, 1, KILN_DTYPE_I64, mask, keep);
  return true;
}

/* -- Layers -- */

/* softmax(self, dim, dtype), log_softmax, cumsum: self's shape. */
bool kiln__shape_softmax(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  /* Row-major, whatever its argument's layout is. */
  return self && kiln__shape_give(q, 0, reduced_dtype(q, self), self->rank, self->sizes, true);
}

/* embedding(weight (n, m), indices): indices' shape and m. */
bool kiln__shape_embedding(kiln_shape_query *q) {
  const kiln_tensor_detail *w = kiln__shape_ranked(q, 0), *indices = kiln__shape_ranked(q, 1);
  if (!w || !indices || w->rank != 2 || indices->rank >= KILN_MAX_RANK - 1) return false;
  int64_t sizes[KILN_MAX_RANK];
  for (int i = 0; i < indices->rank; i++) sizes[i] = indices->sizes[i];
  sizes[indices->rank] = w->sizes[1];
  kiln__shape_give(q, 0, w->dtype, indices->rank + 1, sizes, true);
  q->outs[0].requires_grad = w->requires_grad == 0 ? 0 : -1;
  return true;
}

/* scaled_dot_product_attention(q (…, L, E), k, v (…, S, Ev)): (…, L, Ev), where the batches of the
 * three are equal. Two dimensions of batches lie as heads are joined later: [B, L, H, Ev]. */
bool kiln__shape_attention(kiln_shape_query *q) {
  const kiln_tensor_detail *a = kiln__shape_ranked(q, 0), *k = kiln__shape_ranked(q, 1),
                           *v = kiln__shape_ranked(q, 2), *mask = kiln__shape_ranked(q, 3);
  kiln_dim sizes[KILN_MAX_RANK], joined[4];
  if (!a || !k || !v || a->rank < 2 || a->rank != k->rank || a->rank != v->rank) return false;
  if (!kiln__shape_is_none(q, 3) && (!mask || mask->rank > a->rank)) return false;
  for (int d = 0; d + 2 < a->rank; d++) {
    const int m = mask ? d - (a->rank - mask->rank) : -1;
    if (!kiln_dim_is_known(a->sizes[d]) || a->sizes[d] != k->sizes[d] ||
        a->sizes[d] != v->sizes[d] ||
        (m >= 0 && mask->sizes[m] != 1 && mask->sizes[m] != a->sizes[d])) {
      return false;
    }
    sizes[d] = a->sizes[d];
  }
  sizes[a->rank - 2] = a->sizes[a->rank - 2];
  sizes[a->rank - 1] = v->sizes[a->rank - 1];
  kiln__shape_give(q, 0, a->dtype, a->rank, sizes, a->rank != 4);
  if (a->rank != 4) return true;
  const kiln_dim in_memory[] = {sizes[0], sizes[2], sizes[1], sizes[3]};
  kiln__shape_row_major(q, &q->outs[0], 4, in_memory);
  memcpy(joined, q->outs[0].strides, sizeof joined);
  const kiln_dim strides[] = {joined[0], joined[2], joined[1], joined[3]};
  kiln__shape_set(q, &q->outs[0], 4, sizes, strides);
  return true;
}

/* What a factor makes of a size: of a symbol where it is a whole number, or one over a power of 2.
 */
static kiln_dim scaled(kiln_dims *dims, kiln_dim size, double factor) {
  const double most = (double)KILN_DIM_MOST, by = 1 / factor;
  if (!(factor > 0 && factor < most && by < most)) return KILN_DIM_UNKNOWN;
  if (kiln_dim_is_number(size)) {
    const double wanted = (double)size * factor;
    return wanted < most ? (int64_t)wanted : KILN_DIM_UNKNOWN;
  }
  if (factor == floor(factor)) return kiln_dim_product(dims, size, (int64_t)factor);
  const bool halves = by == floor(by) && ((int64_t)by & ((int64_t)by - 1)) == 0;
  return halves ? kiln_sum_dim(dims, kiln_sum_divided(dims, kiln_sum_of(dims, size), (int64_t)by))
                : KILN_DIM_UNKNOWN;
}

/* upsample_*(input, output_size, ..), or by a list of factors. */
bool kiln__shape_upsample(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  kiln_shape_list list = {0};
  int64_t sizes[KILN_MAX_RANK];
  if (!self || self->rank < 3) return false;
  const int spatial = self->rank - 2, by = kiln__shape_find(q, "scale_factors");
  const bool given = !kiln__shape_is_none(q, 1) && kiln__shape_ints(q, 1, &list);
  const kiln_ivalue *factors = by >= 0 ? q->constants[by] : NULL;
  const bool scales = kiln__shape_is_none(q, 1) && factors && factors->tag == KILN_TAG_LIST &&
                      factors->u.list->count == spatial;
  for (int d = 0; d < self->rank; d++) {
    const bool fits = given && d >= 2 && (list.count == spatial || list.count == 1);
    sizes[d] = d < 2 ? self->sizes[d] : KILN_DIM_UNKNOWN;
    if (fits) sizes[d] = list.dims[list.count == 1 ? 0 : d - 2];
    if (scales && d >= 2)
      sizes[d] = scaled(q->dims, self->sizes[d], factors->u.list->items[d - 2].u.f);
  }
  return kiln__shape_give(q, 0, self->dtype, self->rank, sizes, true);
}
