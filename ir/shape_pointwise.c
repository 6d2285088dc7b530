/* shape_pointwise.c: shape functions of operators that work element by element.
 *
 * Sizes broadcast; dtypes promote as runtime/dtype.h says; the memory order of the result is what
 * runtime/strides.h says. */
#include "ir/shape.h"
#include "runtime/strides.h"

/* -- Broadcasting -- */

bool kiln__shape_is_not_one(const kiln_dims *dims, kiln_dim d) {
  const kiln_sum sum = kiln_sum_of(dims, d);
  int64_t least, most;
  if (!kiln_sum_range(dims, sum, &least, &most)) return false;
  return least > 1 || most < 1 ||
         kiln_sum_is_natural(dims, kiln_sum_minus(sum, kiln_sum_number(2))); /* a guard asks it */
}

bool kiln__shape_part(const kiln_shape_query *q, kiln_dim size, int64_t count, kiln_dim *out_part) {
  const kiln_sum part = kiln_sum_divided(q->dims, kiln_sum_of(q->dims, size), count);
  *out_part = kiln_sum_dim(q->dims, part);
  if (!kiln_dim_is_known(*out_part) || kiln_dim_product(q->dims, *out_part, count) == size)
    return true;
  *out_part = KILN_DIM_UNKNOWN;
  return !kiln_dim_is_number(size);
}

bool kiln__shape_broadcast_dim(const kiln_dims *dims, kiln_dim a, kiln_dim b, kiln_dim *out) {
  if (a == b || b == 1) {
    *out = a;
  } else if (a == 1) {
    *out = b;
  } else if (kiln_dim_is_number(a) && kiln_dim_is_number(b)) {
    return false;
  } else if (kiln__shape_is_not_one(dims, kiln_dim_is_number(b) ? b : a)) {
    *out = kiln_dim_is_number(b) ? b : a;
  } else {
    *out = kiln__shape_is_not_one(dims, b) ? b : KILN_DIM_UNKNOWN;
  }
  return true;
}

enum { MAX_OPERANDS = KILN_STRIDES_MAX_OPERANDS - 1 };

static bool is_complete(const kiln_tensor_detail *t) {
  return t->rank >= 0 && kiln__shape_static(t->rank, t->sizes) && t->has_strides &&
         kiln__shape_static(t->rank, t->strides);
}

static bool same_dims(int rank, const kiln_dim *a, const kiln_dim *b) {
  return rank == 0 || memcmp(a, b, sizeof *a * (size_t)rank) == 0;
}

/* Strides of a row-major tensor; false: they are too much to say. */
static bool row_major(const kiln_shape_query *q, int rank, const kiln_dim *sizes,
                      kiln_dim *strides) {
  kiln_dim within = 1;
  for (int i = rank - 1; i >= 0; i--) {
    if (!kiln_dim_is_known(within)) return false;
    strides[i] = within;
    if (sizes[i] != 0) within = kiln_dim_product(q->dims, within, sizes[i]);
  }
  return true;
}

/* The stride of an operand along a dimension of the result: 0 where it is repeated. */
static kiln_dim stride_along(const kiln_shape_query *q, const kiln_tensor_detail *t, int rank,
                             const kiln_dim *sizes, int i) {
  const int at = i - (rank - t->rank);
  if (at < 0) return 0;
  if (t->sizes[at] == sizes[i]) return t->strides[at];
  return t->sizes[at] == 1 && kiln__shape_tells_one(q->dims, sizes[i]) ? 0 : KILN_DIM_UNKNOWN;
}

static bool is_at_most(const kiln_dims *dims, kiln_dim a, kiln_dim b, int64_t less) {
  const kiln_sum apart = kiln_sum_minus(kiln_sum_of(dims, b), kiln_sum_of(dims, a));
  return kiln_sum_is_natural(dims, kiln_sum_minus(apart, kiln_sum_number(less)));
}

/* The guard is asked for it, where it is so now. */
static void like_less(kiln_dims *dims, kiln_dim a, kiln_dim b) {
  kiln_dims_like(dims, kiln_sum_plus(kiln_sum_of(dims, a), kiln_sum_number(1)),
                 kiln_sum_of(dims, b));
}

/* The operand makes no two dimensions of the result change places: outer ones have the greater
 * strides, as in a part of a row-major tensor. */
static bool keeps_order(const kiln_shape_query *q, const kiln_tensor_detail *t, int rank,
                        const kiln_dim *sizes) {
  for (int i = 0; i < rank; i++) {
    for (int k = i + 1; k < rank; k++) {
      const kiln_dim outer = stride_along(q, t, rank, sizes, i);
      const kiln_dim inner = stride_along(q, t, rank, sizes, k);
      if (!kiln_dim_is_known(outer) || !kiln_dim_is_known(inner)) return false;
      const bool same = inner == outer && is_at_most(q->dims, sizes[k], sizes[i], 0);
      if (inner == 0 || outer == 0 || same || is_at_most(q->dims, inner, outer, 1)) continue;
      like_less(q->dims, inner, outer);
      return false;
    }
  }
  return true;
}

/* A dimension that may have no element is less than one within it that may have one element, and
 * both may have one stride: then they change places. */
static bool may_change_places(const kiln_shape_query *q, int rank, const kiln_dim *sizes) {
  bool empty = false;
  for (int i = 0; i < rank; i++) {
    int64_t least, most;
    if (empty && !kiln__shape_is_not_one(q->dims, sizes[i])) return true;
    if (!kiln_sum_range(q->dims, kiln_sum_of(q->dims, sizes[i]), &least, &most)) return true;
    empty |= least < 1;
  }
  return false;
}

/* 1: dimension a lies outside of b, -1: inside, 0: no operand says (kiln_strides_order). False:
 * that depends on what symbols are. */
static bool compare_dims(const kiln_shape_query *q, int a, int b, int rank, const kiln_dim *sizes,
                         const kiln_tensor_detail *const *operands, int count, int *out) {
  for (int k = 0; k < count; k++) {
    const kiln_dim x = stride_along(q, operands[k], rank, sizes, a);
    const kiln_dim y = stride_along(q, operands[k], rank, sizes, b);
    if (!kiln_dim_is_known(x) || !kiln_dim_is_known(y)) return false;
    if (x == 0 || y == 0) continue;
    if (!is_at_most(q->dims, 1, x, 0) || !is_at_most(q->dims, 1, y, 0)) return false;
    *out = is_at_most(q->dims, x, y, 1) ? -1 : 1;
    if (*out < 0 || is_at_most(q->dims, y, x, 1)) return true;
    if (x != y) {
      like_less(q->dims, x, y);
      like_less(q->dims, y, x);
      return false;
    }
    if (is_at_most(q->dims, sizes[b], sizes[a], 1)) return true;
    if (!is_at_most(q->dims, sizes[a], sizes[b], 0)) return false;
  }
  *out = 0;
  return true;
}

/* Dense strides in the order of the operands, of dimensions that all have more than one element, or
 * beside a number: then operands of one dense layout, or contiguous ones, have no other order. */
static bool in_order(const kiln_shape_query *q, int rank, const kiln_dim *sizes,
                     const kiln_tensor_detail *const *operands, int count, kiln_dim *strides) {
  int order[KILN_MAX_RANK];
  kiln_dim step = 1;
  bool number = false;
  for (int k = 0; k < count; k++) number |= operands[k]->rank == 0;
  for (int i = 0; i < rank; i++) {
    order[i] = rank - 1 - i;
    if (!number && !is_at_most(q->dims, 2, sizes[i], 0)) return false;
  }
  for (int i = 1; i < rank; i++) {
    for (int j = i - 1, at = i, way = 0; j >= 0 && way >= 0; j--) {
      if (!compare_dims(q, order[j], order[at], rank, sizes, operands, count, &way)) return false;
      if (way <= 0) continue;
      const int swap = order[j];
      order[j] = order[at];
      order[at] = swap;
      at = j;
    }
  }
  for (int i = 0; i < rank; i++) {
    if (!kiln_dim_is_known(step)) return false;
    strides[order[i]] = step;
    step = kiln_dim_product(q->dims, step, sizes[order[i]]);
  }
  return true;
}

/* The rule of runtime/strides.h where it does not depend on what symbols are. Operands of one shape
 * that are contiguous give a row-major result, and those of one dense layout give that. Of others
 * dimensions of one element, whose strides are any, may change the order: all operands that are
 * exactly row-major (where no dimension is less than what is in it), or keep that order, give a
 * row-major result; those of one dense layout without such dimensions, beside operands with one
 * dimension of more elements, that layout. Else they are compared as PyTorch does it, where there
 * are no such dimensions. */
static bool find_strides(const kiln_shape_query *q, int rank, const kiln_dim *sizes,
                         const kiln_tensor_detail *const *operands, int count, kiln_dim *strides) {
  const kiln_tensor_detail *first = NULL;
  bool one_shape = true, contiguous = true, exact = true, one_layout = true, ones = false;
  bool ordered = true;
  bool open = false; /* a dimension may have one element: s0//2 */
  for (int i = 0; i < rank; i++) {
    ones |= sizes[i] == 1;
    open |= sizes[i] != 1 && !kiln__shape_is_not_one(q->dims, sizes[i]);
  }
  for (int k = 0; k < count; k++) {
    const kiln_tensor_detail *t = operands[k];
    int wide = 0;
    if (!t->has_strides && t->rank > 0) return false;
    one_shape &= t->rank == rank && same_dims(rank, t->sizes, sizes);
    contiguous &= kiln__shape_is_contiguous(q, t);
    exact &= kiln__shape_has_rows(q, t->rank, t->sizes, t->strides);
    ordered = ordered && keeps_order(q, t, rank, sizes);
    for (int i = 0; i < t->rank; i++) wide += t->sizes[i] != 1;
    if (wide <= 1 && !one_shape) continue;
    if (!first) first = t;
    one_layout = one_layout && t->rank == rank && same_dims(rank, t->sizes, sizes) &&
                 same_dims(rank, t->strides, first->strides);
  }
  exact = exact && !may_change_places(q, rank, sizes);
  if ((one_shape && contiguous) || exact || ordered) return row_major(q, rank, sizes, strides);
  if (open || !first || !one_layout || (ones && !one_shape) ||
      !kiln__shape_is_dense(q, first, false))
    return in_order(q, rank, sizes, operands, count, strides);
  memcpy(strides, first->strides, sizeof *strides * (size_t)rank);
  return true;
}

bool kiln__shape_broadcast(kiln_shape_query *q, kiln_tensor_detail *out,
                           const kiln_tensor_detail *const *operands, int count) {
  int rank = 0;
  bool complete = true;
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  kiln_strided dims[KILN_STRIDES_MAX_OPERANDS];
  for (int k = 0; k < count; k++) {
    if (operands[k]->rank < 0) return true; /* the dtype may be known all the same */
    if (operands[k]->rank > rank) rank = operands[k]->rank;
    complete &= is_complete(operands[k]);
    dims[k] = (kiln_strided){operands[k]->rank, operands[k]->sizes, operands[k]->strides};
  }
  for (int i = 0; i < rank; i++) {
    sizes[i] = 1;
    for (int k = 0; k < count; k++) {
      int at = i - (rank - operands[k]->rank);
      if (at < 0) continue;
      if (!kiln__shape_broadcast_dim(q->dims, sizes[i], operands[k]->sizes[at], &sizes[i])) {
        return false;
      }
    }
  }
  if (complete)
    kiln_strides_pointwise(rank, sizes, dims, count, strides);
  else
    complete = find_strides(q, rank, sizes, operands, count, strides);
  kiln__shape_set(q, out, rank, sizes, complete ? strides : NULL);
  return true;
}

bool kiln__shape_broadcast_with(kiln_shape_query *q, kiln_tensor_detail *out,
                                const kiln_tensor_detail *const *operands, int count, bool number) {
  static const kiln_tensor_detail one = {.rank = 0, .has_strides = true};
  const kiln_tensor_detail *all[MAX_OPERANDS + 1];
  int n = 0;
  bool complete = true, rows = true;
  for (; n < count; n++) {
    const kiln_tensor_detail *t = all[n] = operands[n];
    complete = complete && is_complete(t);
    rows = rows && t->rank >= 0 && t->has_strides &&
           kiln__shape_has_rows(q, t->rank, t->sizes, t->strides);
  }
  if (number && (complete || !rows)) all[n++] = &one;
  return kiln__shape_broadcast(q, out, all, n);
}
void kiln__shape_set_like(kiln_shape_query *q, kiln_tensor_detail *out,
                          const kiln_tensor_detail *t) {
  const kiln_strided own = {t->rank, t->sizes, t->strides};
  int64_t strides[KILN_MAX_RANK];
  bool known = t->has_strides || t->rank == 0;
  bool all_wide = true; /* then the order of dimensions is all that there is to say */
  for (int i = 0; i < t->rank && known; i++) {
    known = kiln_dim_is_known(t->strides[i]);
    all_wide = all_wide && is_at_most(q->dims, 2, t->sizes[i], 0);
  }
  if (is_complete(t)) {
    kiln_strides_like(&own, strides);
    kiln__shape_set(q, out, t->rank, t->sizes, strides);
  } else if (known && (kiln__shape_is_contiguous(q, t) || kiln__shape_is_dense(q, t, false))) {
    kiln__shape_set(q, out, t->rank, t->sizes, t->strides);
  } else if (known && all_wide) {
    (void)kiln__shape_broadcast(q, out, &t, 1);
  } else {
    kiln__shape_set(q, out, t->rank, t->sizes, NULL);
  }
}

/* -- Dtypes -- */

/* Promotion of arguments [first, end); None is left out. */
static kiln_dtype promoted(const kiln_shape_query *q, int first, int end) {
  kiln_promotion p = KILN_PROMOTION_INIT;
  for (int i = first; i < end && i < q->arg_count; i++) {
    const kiln_tensor_detail *t = kiln__shape_tensor(q, i);
    if (!t && kiln__shape_is_none(q, i)) continue;
    if (t && (t->dtype == KILN_DTYPE_NONE || t->rank < 0)) return KILN_DTYPE_NONE;
    kiln_dtype kind = t ? (kiln_dtype)t->dtype : kiln_ir_number_kind(q->types[i], q->constants[i]);
    if (kind == KILN_DTYPE_NONE) return KILN_DTYPE_NONE;
    if (t)
      kiln_promotion_add_tensor(&p, kind, t->rank);
    else
      kiln_promotion_add_number(&p, kind);
  }
  return kiln_promotion_result(&p);
}

static kiln_dtype to_float(kiln_dtype dtype) {
  return dtype == KILN_DTYPE_NONE ? dtype : kiln_dtype_to_float(dtype);
}

/* Broadcasts the tensors among arguments [0, end), and the numbers; `number`: there is one more. */
static bool finish_with(kiln_shape_query *q, int end, kiln_dtype dtype, bool number) {
  const kiln_tensor_detail *operands[MAX_OPERANDS];
  int count = 0;
  for (int i = 0; i < end && i < q->arg_count; i++) {
    const kiln_tensor_detail *t = kiln__shape_tensor(q, i);
    if (t)
      operands[count++] = t;
    else
      number |= kiln_ir_number_kind(q->types[i], q->constants[i]) != KILN_DTYPE_NONE;
  }
  if (count == 0) return false;
  kiln_tensor_detail *out = kiln__shape_result(q, 0);
  out->dtype = (int16_t)dtype;
  if (kiln_dtype_is_valid(dtype) && !kiln_dtype_is_float(dtype) && !kiln_dtype_is_complex(dtype)) {
    out->requires_grad = 0;
  }
  return kiln__shape_broadcast_with(q, out, operands, count, number);
}
static bool finish(kiln_shape_query *q, int end, kiln_dtype dtype) {
  return finish_with(q, end, dtype, false);
}

static kiln_dtype own_dtype(const kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  return self ? (kiln_dtype)self->dtype : KILN_DTYPE_NONE;
}

/* -- The functions -- */

/* The written argument itself; a gradient may come from the others. */
bool kiln__shape_self(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  if (!self) return false;
  int8_t requires_grad = kiln__shape_result(q, 0)->requires_grad;
  q->outs[0] = *self;
  if (requires_grad != 0) q->outs[0].requires_grad = -1;
  return true;
}

/* What a bool becomes differs from operator to operator. */
bool kiln__shape_same(kiln_shape_query *q) {
  kiln_dtype dtype = own_dtype(q);
  return finish(q, 1, dtype == KILN_DTYPE_BOOL ? KILN_DTYPE_NONE : dtype);
}

/* Of a bool a bool. */
bool kiln__shape_own(kiln_shape_query *q) { return finish(q, 1, own_dtype(q)); }

bool kiln__shape_same_if_float(kiln_shape_query *q) {
  kiln_dtype dtype = own_dtype(q);
  bool floats = kiln_dtype_is_valid(dtype) && kiln_dtype_is_float(dtype);
  return finish(q, 1, floats ? dtype : KILN_DTYPE_NONE);
}

bool kiln__shape_float(kiln_shape_query *q) { return finish(q, 1, to_float(own_dtype(q))); }

/* The same of what is multiplied by a number of the operator's own. */
bool kiln__shape_scaled(kiln_shape_query *q) {
  return finish_with(q, 1, to_float(own_dtype(q)), true);
}

bool kiln__shape_real(kiln_shape_query *q) {
  kiln_dtype dtype = own_dtype(q);
  return finish(q, 1, dtype == KILN_DTYPE_NONE ? dtype : kiln_dtype_real(dtype));
}

bool kiln__shape_promote(kiln_shape_query *q) { return finish(q, 2, promoted(q, 0, 2)); }

/* Numbers that are no operands, as exponents and bounds. */
bool kiln__shape_promote_one(kiln_shape_query *q) { return finish(q, 1, promoted(q, 0, 2)); }
bool kiln__shape_promote3_one(kiln_shape_query *q) { return finish(q, 1, promoted(q, 0, 3)); }

/* Numbers to the power of a tensor: a row-major one of its sizes. */
bool kiln__shape_promote_rows(kiln_shape_query *q) {
  const kiln_tensor_detail *exponent = kiln__shape_ranked(q, 1);
  return exponent &&
         kiln__shape_give(q, 0, promoted(q, 0, 2), exponent->rank, exponent->sizes, true);
}

bool kiln__shape_promote3(kiln_shape_query *q) { return finish(q, 3, promoted(q, 0, 3)); }

/* Ends are of one dtype, which a number does not change, and a tensor only without dimensions. */
bool kiln__shape_lerp(kiln_shape_query *q) {
  const kiln_tensor_detail *end = kiln__shape_tensor(q, 1), *weight = kiln__shape_tensor(q, 2);
  const kiln_dtype dtype = own_dtype(q), common = promoted(q, 0, 3);
  if (common == KILN_DTYPE_NONE || !end || end->dtype != (int16_t)dtype) {
    return finish(q, weight ? 3 : 2, KILN_DTYPE_NONE);
  }
  return finish(q, weight ? 3 : 2, weight && weight->rank == 0 ? common : dtype);
}

bool kiln__shape_promote_float(kiln_shape_query *q) {
  return finish(q, 2, to_float(promoted(q, 0, 2)));
}

/* v * (g / |v|) of row-major copies of both: where v has all dimensions, each of more than one
 * element, it decides; else what lies between has a say, too. */
bool kiln__shape_weight_norm(kiln_shape_query *q) {
  if (!kiln__shape_promote_float(q)) return false;
  kiln_tensor_detail *out = &q->outs[0];
  const kiln_tensor_detail *v = kiln__shape_tensor(q, 0);
  bool rows = v->rank >= 0 && v->rank == out->rank, decides = true;
  for (int d = 0; d < v->rank && rows; d++) {
    rows = v->sizes[d] == out->sizes[d];
    decides = decides && is_at_most(q->dims, 2, v->sizes[d], 0);
  }
  if (rows && decides) {
    kiln__shape_row_major(q, out, v->rank, v->sizes);
    return true;
  }
  for (int i = 0; i < 2; i++) {
    const kiln_tensor_detail *t = kiln__shape_tensor(q, i);
    if (!kiln__shape_is_row_major(q, t)) out->has_strides = false;
  }
  return true;
}

bool kiln__shape_bool_result(kiln_shape_query *q) { return finish(q, 2, KILN_DTYPE_BOOL); }

/* isnan and its like: of integers the answer may be a new plain tensor, whatever their layout. */
bool kiln__shape_bool_test(kiln_shape_query *q) {
  if (!finish(q, 1, KILN_DTYPE_BOOL)) return false;
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  bool floats =
      kiln_dtype_is_valid(self->dtype) && !kiln_dtype_is_int((kiln_dtype)self->dtype, true);
  if (!floats && !kiln__shape_is_contiguous(q, self)) q->outs[0].has_strides = false;
  return true;
}

/* div(a, b, rounding_mode): true division without a mode. */
bool kiln__shape_div_mode(kiln_shape_query *q) {
  kiln_dtype dtype = promoted(q, 0, 2);
  if (kiln__shape_is_none(q, 2)) return finish(q, 2, to_float(dtype));
  bool rounds = q->constants[2] && q->constants[2]->tag == KILN_TAG_STRING;
  bool same = dtype != KILN_DTYPE_NONE && to_float(dtype) == dtype;
  return finish(q, 2, rounds || same ? dtype : KILN_DTYPE_NONE);
}

/* prelu(self, weight): the weight is one number, or lies along the channels. */
bool kiln__shape_prelu(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0), *weight = kiln__shape_tensor(q, 1);
  if (!self || !weight || self->rank < 0 || weight->rank < 0 || weight->rank > 1) return false;
  const bool is_one = weight->rank == 0 || weight->sizes[0] == 1;
  if (!is_one && (self->rank < 2 || weight->sizes[0] != self->sizes[1])) return false;
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  for (int i = 0; i < self->rank && !is_one; i++) {
    sizes[i] = i == 1 ? weight->sizes[0] : 1;
    strides[i] = i == 1 && weight->has_strides ? weight->strides[0] : 0;
  }
  kiln_tensor_detail *out = kiln__shape_result(q, 0), along = *weight;
  along.rank = self->rank;
  along.sizes = sizes;
  along.strides = strides;
  const kiln_tensor_detail *operands[] = {self, is_one ? weight : &along};
  out->dtype = self->dtype;
  return kiln__shape_broadcast(q, out, operands, 2);
}

/* outer(a, b): of a column and a row. */
bool kiln__shape_outer(kiln_shape_query *q) {
  const kiln_tensor_detail *a = kiln__shape_tensor(q, 0), *b = kiln__shape_tensor(q, 1);
  if (!a || !b || a->rank != 1 || b->rank != 1) return false;
  const int64_t sizes[] = {a->sizes[0], 1}, strides[] = {a->has_strides ? a->strides[0] : 1, 1};
  kiln_tensor_detail column = *a;
  column.rank = 2;
  column.sizes = sizes;
  column.strides = strides;
  const kiln_tensor_detail *operands[] = {&column, b};
  kiln_tensor_detail *out = kiln__shape_result(q, 0);
  out->dtype = (int16_t)promoted(q, 0, 2);
  return kiln__shape_broadcast(q, out, operands, 2);
}

/* masked_fill(self, mask, value): a choice by mask, which is the first operand; self's dtype. */
bool kiln__shape_masked(kiln_shape_query *q) {
  const kiln_tensor_detail *operands[] = {kiln__shape_tensor(q, 1), kiln__shape_tensor(q, 0)};
  if (!operands[0] || !operands[1]) return false;
  kiln_tensor_detail *out = kiln__shape_result(q, 0);
  out->dtype = operands[1]->dtype;
  if (!kiln__shape_broadcast(q, out, operands, 2)) return false;
  if (q->op->variant == KILN_VARIANT_NONE && out->rank >= 0) { /* a new one is row-major */
    int64_t sizes[KILN_MAX_RANK];
    memcpy(sizes, out->sizes, sizeof *sizes * (size_t)out->rank);
    kiln__shape_row_major(q, out, out->rank, sizes);
  }
  return true;
}

/* where(condition, a, b). */
bool kiln__shape_select(kiln_shape_query *q) { return finish(q, 3, promoted(q, 1, 3)); }

/* promote, but that complex results (made of other operators) may lie otherwise. */
bool kiln__shape_promote_real(kiln_shape_query *q) {
  if (!kiln__shape_promote(q)) return false;
  const int16_t dtype = q->outs[0].dtype;
  if (dtype == KILN_DTYPE_NONE || kiln_dtype_is_complex((kiln_dtype)dtype)) {
    q->outs[0].has_strides = false;
  }
  return true;
}
