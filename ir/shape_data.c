/* shape_data.c: shape functions of operators that make tensors, convert them or put them together.
 */
#include "ir/shape.h"
#include "runtime/strides.h"

/* -- Factories -- */

/* Tensors on the CPU unless a device is asked for. */
static void set_device(const kiln_shape_query *q, kiln_tensor_detail *out) {
  int i = kiln__shape_find(q, "device");
  if (i < 0 || kiln__shape_is_none(q, i)) return;
  bool known = i < q->arg_count && q->constants[i] && q->constants[i]->tag == KILN_TAG_DEVICE;
  out->device = known ? q->constants[i]->u.device.kind : -1;
  out->device_index = known ? q->constants[i]->u.device.index : -1;
}

static void set_requires_grad(const kiln_shape_query *q, kiln_tensor_detail *out) {
  int i = kiln__shape_find(q, "requires_grad");
  bool value;
  if (i < 0 || kiln__shape_is_none(q, i)) return;
  out->requires_grad = kiln__shape_bool(q, i, &value) ? value : -1;
}

/* A new row-major tensor. */
static bool give_sizes(kiln_shape_query *q, kiln_dtype dtype, int rank, const kiln_dim *sizes) {
  kiln_tensor_detail *out = &q->outs[0];
  out->dtype = (int16_t)dtype;
  out->undefined = 0;
  if (out->requires_grad < 0) out->requires_grad = 0;
  set_device(q, out);
  set_requires_grad(q, out);
  kiln__shape_row_major(q, out, rank, sizes);
  return true;
}
/* Of the sizes in argument `arg`. */
static bool give_new(kiln_shape_query *q, int arg, kiln_dtype dtype) {
  kiln_shape_list list;
  int64_t sizes[KILN_MAX_RANK];
  if (!kiln__shape_ints(q, arg, &list)) return false;
  for (int i = 0; i < list.count; i++) {
    if (list.known[i] && list.ints[i] < 0) return false;
    sizes[i] = list.dims[i];
  }
  return give_sizes(q, dtype, list.count, sizes);
}

/* zeros(size), ones(size), empty(size): the default dtype unless said. full(size, value): that of
 * the value. */
bool kiln__shape_factory(kiln_shape_query *q) {
  kiln_dtype dtype = KILN_DTYPE_F32;
  int fill = kiln__shape_find(q, "fill_value");
  if (fill >= 0) {
    const kiln_ivalue *v = fill < q->arg_count ? q->constants[fill] : NULL;
    dtype = !v                         ? KILN_DTYPE_NONE
            : v->tag == KILN_TAG_INT   ? KILN_DTYPE_I64
            : v->tag == KILN_TAG_BOOL  ? KILN_DTYPE_BOOL
            : v->tag == KILN_TAG_FLOAT ? KILN_DTYPE_F32
                                       : KILN_DTYPE_NONE;
  }
  q->outs[0].device = KILN_DEVICE_CPU;
  return give_new(q, 0, kiln__shape_dtype(q, dtype));
}

/* A number as a tensor of no dimensions: of a Python number, and as torch.tensor(2.0) has it, which
 * is of the default dtype. */
static bool give_number(kiln_shape_query *q, kiln_dtype kind) {
  if (kind == KILN_DTYPE_NONE) return false;
  q->outs[0].device = KILN_DEVICE_CPU;
  return give_sizes(q, kind, 0, NULL);
}
bool kiln__shape_number(kiln_shape_query *q) {
  return give_number(q, kiln_ir_number_kind(q->types[0], q->constants[0]));
}
bool kiln__shape_tensor_number(kiln_shape_query *q) {
  kiln_dtype kind = kiln_ir_number_kind(q->types[0], q->constants[0]);
  if (kind == KILN_DTYPE_F64) kind = KILN_DTYPE_F32;
  if (kind == KILN_DTYPE_C128) kind = KILN_DTYPE_C64;
  return give_number(q, kiln__shape_dtype(q, kind));
}

/* eye(n), eye(n, m). */
bool kiln__shape_eye(kiln_shape_query *q) {
  const int columns = kiln__shape_find(q, "m") < 0 ? 0 : 1;
  kiln_dim sizes[2];
  for (int i = 0; i < 2; i++) {
    kiln_sum size;
    if (!kiln__shape_sum(q, i ? columns : 0, &size) || !kiln_sum_is_natural(q->dims, size))
      return false;
    sizes[i] = kiln_sum_dim(q->dims, size);
  }
  q->outs[0].device = KILN_DEVICE_CPU;
  return give_sizes(q, kiln__shape_dtype(q, KILN_DTYPE_F32), 2, sizes);
}

/* new_zeros(self, size). */
bool kiln__shape_factory_new(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  if (!self) return false;
  q->outs[0].device = self->device;
  q->outs[0].device_index = self->device_index;
  return give_new(q, 1, kiln__shape_dtype(q, (kiln_dtype)self->dtype));
}

/* The sizes of argument 0 in a dtype, and the strides of empty_like. */
static bool give_like(kiln_shape_query *q, kiln_dtype dtype) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  if (!self || self->rank < 0) return false;
  kiln_shape_answer(q, 0, dtype, self->rank, self->sizes, false);
  kiln__shape_set_like(q, &q->outs[0], self);
  set_device(q, &q->outs[0]);
  return true;
}

/* zeros_like(self). */
bool kiln__shape_factory_like(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  if (!self || !give_like(q, kiln__shape_dtype(q, (kiln_dtype)self->dtype))) return false;
  int format = kiln__shape_find(q, "memory_format");
  if (format >= 0 && !kiln__shape_is_none(q, format)) q->outs[0].has_strides = false;
  q->outs[0].requires_grad = 0;
  set_requires_grad(q, &q->outs[0]);
  return true;
}

static bool number(const kiln_shape_query *q, int i, double *out, bool *is_int) {
  const kiln_ivalue *v = i < q->arg_count ? q->constants[i] : NULL;
  if (!v || (v->tag != KILN_TAG_INT && v->tag != KILN_TAG_FLOAT)) return false;
  if (v->tag == KILN_TAG_FLOAT) *is_int = false;
  *out = v->tag == KILN_TAG_INT ? (double)v->u.i : v->u.f;
  return true;
}

/* end - start, of ints; no argument `start`: 0. */
static kiln_dim size_between(const kiln_shape_query *q, int at_start, int at_end) {
  kiln_sum start = kiln_sum_number(0), end;
  if (!kiln__shape_sum(q, at_end, &end)) return KILN_DIM_UNKNOWN;
  if (at_start >= 0 && !kiln__shape_sum(q, at_start, &start)) return KILN_DIM_UNKNOWN;
  const kiln_sum size = kiln_sum_minus(end, start);
  return kiln_sum_is_natural(q->dims, size) ? kiln_sum_dim(q->dims, size) : KILN_DIM_UNKNOWN;
}

/* arange(end), (start, end), (start, end, step). */
bool kiln__shape_arange(kiln_shape_query *q) {
  double start = 0, end, step = 1;
  bool is_int = true;
  int at_start = kiln__shape_find(q, "start"), at_step = kiln__shape_find(q, "step");
  int at_end = kiln__shape_find(q, "end");
  const bool numbers =
      number(q, at_end, &end, &is_int) && (at_start < 0 || number(q, at_start, &start, &is_int));
  if (at_step >= 0 && !number(q, at_step, &step, &is_int)) return false;
  kiln_dim size = numbers || step != 1 ? KILN_DIM_UNKNOWN : size_between(q, at_start, at_end);
  const double count = numbers && step != 0 ? __builtin_ceil((end - start) / step) : -1;
  if (count >= 0 && count < 1e15) size = (int64_t)count;
  kiln_dtype dtype = kiln__shape_dtype(q, is_int ? KILN_DTYPE_I64 : KILN_DTYPE_F32);
  if (dtype == KILN_DTYPE_NONE || !kiln_dim_is_known(size)) return false;
  kiln_tensor_detail *out = &q->outs[0];
  out->undefined = 0;
  out->requires_grad = 0;
  out->device = KILN_DEVICE_CPU;
  set_device(q, out);
  out->dtype = (int16_t)dtype;
  kiln__shape_row_major(q, out, 1, &size);
  return true;
}

/* -- Conversion -- */

/* All forms of `to`, and type_as(self, other). */
bool kiln__shape_to_dtype(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_tensor(q, 0);
  if (!self || self->rank < 0) return false;
  const kiln_tensor_detail *other = kiln__shape_tensor(q, 1);
  kiln_dtype dtype =
      other ? (kiln_dtype)other->dtype : kiln__shape_dtype(q, (kiln_dtype)self->dtype);
  int copy = kiln__shape_find(q, "copy");
  bool copies = copy >= 0 && !kiln__shape_is_none(q, copy);
  if (copies) (void)kiln__shape_bool(q, copy, &copies); /* what is no constant may copy */
  if (!give_like(q, dtype)) return false;
  kiln_tensor_detail *out = &q->outs[0];
  if (other) out->device = other->device, out->device_index = other->device_index;
  bool same = dtype != KILN_DTYPE_NONE && dtype == (kiln_dtype)self->dtype && !copies &&
              out->device == self->device && self->device >= 0;
  const int format = kiln__shape_find(q, "memory_format");
  const bool asked = format >= 0 && !kiln__shape_is_none(q, format);
  if (same && !asked)
    kiln__shape_set(q, out, self->rank, self->sizes, self->has_strides ? self->strides : NULL);
  else if (asked || dtype == KILN_DTYPE_NONE || dtype == (kiln_dtype)self->dtype)
    out->has_strides = false;
  return true;
}

/* -- Lists of tensors -- */

/* cat leaves out empty tensors of one dimension. */
static bool is_skipped(const kiln_tensor_detail *t) { return t->rank == 1 && t->sizes[0] == 0; }

static const kiln_shape_list *tensors_of(const kiln_shape_query *q) {
  const kiln_shape_list *list = q->arg_count > 0 ? q->lists[0] : NULL;
  if (!list || !list->tensors || list->count == 0) return NULL;
  for (int i = 0; i < list->count; i++) {
    if (!list->tensors[i] || list->tensors[i]->rank < 0) return NULL;
  }
  return list;
}

static kiln_dtype promoted(const kiln_shape_list *list) {
  kiln_promotion p = KILN_PROMOTION_INIT;
  for (int i = 0; i < list->count; i++) {
    const kiln_tensor_detail *t = list->tensors[i];
    if (t->dtype == KILN_DTYPE_NONE) return KILN_DTYPE_NONE;
    kiln_promotion_add_tensor(&p, (kiln_dtype)t->dtype, t->rank);
  }
  return kiln_promotion_result(&p);
}

/* Of so many dimensions; what is skipped counts too. */
static kiln_truth all_suggest_last(const kiln_shape_query *q, const kiln_shape_list *list,
                                   int rank) {
  kiln_truth all = kiln_has_channels_last(rank) ? KILN_YES : KILN_NO;
  for (int i = 0; all != KILN_NO && i < list->count; i++) {
    const kiln_tensor_detail *t = list->tensors[i];
    const kiln_truth found = t->rank == rank ? kiln__shape_suggests_last(q, t) : KILN_NO;
    if (found != KILN_YES) all = found;
  }
  return all;
}

/* Channels last is kept where all have it; anything else becomes row-major. */
static bool give_joined(kiln_shape_query *q, const kiln_shape_list *list, int rank,
                        const kiln_dim *sizes) {
  const kiln_truth last = all_suggest_last(q, list, rank);
  kiln_dim strides[KILN_MAX_RANK];
  kiln_shape_answer(q, 0, promoted(list), rank, sizes, last == KILN_NO);
  if (last == KILN_YES) {
    kiln_physical_dims(q->dims, KILN_PHYSICAL_CHANNELS_LAST, rank, sizes, strides);
    kiln__shape_set(q, &q->outs[0], rank, sizes, strides);
  }
  return true;
}
/* Joined along `dim`, which becomes two; behind the last dimension images are none any more, and
 * what becomes one has its new dimension, of one element, as the innermost. */
static bool give_stacked(kiln_shape_query *q, const kiln_shape_list *list, int rank, int dim,
                         const kiln_dim *sizes) {
  const kiln_truth last = dim < rank ? all_suggest_last(q, list, rank) : KILN_NO;
  kiln_dim joined[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  kiln_shape_answer(q, 0, promoted(list), rank + 1, sizes, last == KILN_NO);
  if (last != KILN_YES) return true;
  for (int d = 0; d < rank; d++) joined[d] = sizes[d < dim ? d : d + 1];
  joined[dim] = kiln_dim_product(q->dims, joined[dim], sizes[dim]);
  kiln_physical_dims(q->dims, KILN_PHYSICAL_CHANNELS_LAST, rank, joined, strides);
  for (int d = rank; d > dim; d--) strides[d] = strides[d - 1];
  strides[dim] = kiln_dim_product(q->dims, strides[dim], sizes[dim + 1]);
  kiln__shape_set(q, &q->outs[0], rank + 1, sizes, strides);
  return true;
}

enum { ARGUMENT = -100 }; /* the dimension is argument 1 */

/* One behind the other along a dimension. */
static bool cat_along(kiln_shape_query *q, int along) {
  const kiln_shape_list *list = tensors_of(q);
  kiln_dim sizes[KILN_MAX_RANK], sum = 0;
  int rank = -1, dim = along;
  if (!list) return false;
  for (int i = 0; i < list->count; i++) {
    const kiln_tensor_detail *t = list->tensors[i];
    if (is_skipped(t)) continue;
    if (rank < 0) {
      rank = t->rank;
      if (rank == 0 || (along == ARGUMENT && !kiln__shape_dim(q, 1, rank, &dim)) || dim >= rank)
        return false;
      for (int d = 0; d < rank; d++) sizes[d] = t->sizes[d];
    }
    if (t->rank != rank) return false;
    for (int d = 0; d < rank; d++) {
      if (d != dim && !kiln__shape_join_dim(&sizes[d], t->sizes[d])) return false;
    }
    sum = kiln_dim_plus(q->dims, sum, t->sizes[dim]);
  }
  if (rank < 0) return false;
  sizes[dim] = sum;
  return give_joined(q, list, rank, sizes);
}
/* One for each element of a new dimension. */
static bool stack_along(kiln_shape_query *q, int along) {
  const kiln_shape_list *list = tensors_of(q);
  int64_t sizes[KILN_MAX_RANK];
  int dim = along;
  if (!list || list->tensors[0]->rank >= KILN_MAX_RANK - 1) return false;
  int rank = list->tensors[0]->rank;
  if (along == ARGUMENT && !kiln__shape_dim(q, 1, rank + 1, &dim)) return false;
  KILN_ASSERT(dim >= 0 && dim <= rank);
  for (int d = 0; d < rank; d++) sizes[d] = list->tensors[0]->sizes[d];
  for (int i = 1; i < list->count; i++) {
    if (list->tensors[i]->rank != rank) return false;
    for (int d = 0; d < rank; d++) {
      if (!kiln__shape_join_dim(&sizes[d], list->tensors[i]->sizes[d])) return false;
    }
  }
  for (int d = rank; d > dim; d--) sizes[d] = sizes[d - 1];
  sizes[dim] = list->count;
  return give_stacked(q, list, rank, dim, sizes);
}
bool kiln__shape_cat(kiln_shape_query *q) { return cat_along(q, ARGUMENT); }
bool kiln__shape_stack(kiln_shape_query *q) { return stack_along(q, ARGUMENT); }

/* The rank that all have: cat leaves out what is empty, but not when it got a dimension before. */
static int shared_rank(const kiln_shape_list *list) {
  if (!list) return -1;
  for (int i = 1; i < list->count; i++)
    if (list->tensors[i]->rank != list->tensors[0]->rank) return -1;
  return list->tensors[0]->rank;
}
/* vstack, column_stack, dstack: of tensors that have the dimensions already, or all lack the last
 * of them. */
static bool join_at(kiln_shape_query *q, int dim) {
  const int rank = shared_rank(tensors_of(q));
  if (rank > dim) return cat_along(q, dim);
  return rank == dim && rank > 0 && stack_along(q, dim);
}
bool kiln__shape_hstack(kiln_shape_query *q) {
  const kiln_shape_list *list = tensors_of(q);
  return list && cat_along(q, list->tensors[0]->rank > 1);
}
bool kiln__shape_vstack(kiln_shape_query *q) {
  const int rank = shared_rank(tensors_of(q));
  return rank == 1 ? stack_along(q, 0) : rank > 1 && cat_along(q, 0);
}
bool kiln__shape_column_stack(kiln_shape_query *q) { return join_at(q, 1); }
bool kiln__shape_dstack(kiln_shape_query *q) { return join_at(q, 2); }

/* -- Windows, given strides -- */

static bool give_length(kiln_shape_query *q, int arg) {
  int64_t size;
  if (!kiln__shape_int(q, arg, &size) || size < 0) size = KILN_DIM_UNKNOWN;
  kiln_shape_answer(q, 0, kiln__shape_dtype(q, KILN_DTYPE_F32), 1, &size, true);
  kiln_tensor_detail *out = &q->outs[0];
  const int device = kiln__shape_find(q, "device");
  out->device = device < 0 || kiln__shape_is_none(q, device) ? KILN_DEVICE_CPU : -1;
  if (out->requires_grad < 0) out->requires_grad = 0;
  return true;
}
/* hann_window(length, ...) and its kin. */
bool kiln__shape_window(kiln_shape_query *q) { return give_length(q, 0); }
/* linspace(start, end, steps, ...), logspace. */
bool kiln__shape_window_steps(kiln_shape_query *q) { return give_length(q, 2); }

/* empty_strided(size, stride), new_empty_strided(self, size, stride). */
bool kiln__shape_strided(kiln_shape_query *q) {
  const int at = kiln__shape_find(q, "size");
  const kiln_tensor_detail *self = at > 0 ? kiln__shape_tensor(q, 0) : NULL;
  kiln_shape_list size, stride;
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  if (at < 0 || !kiln__shape_ints(q, at, &size) || !kiln__shape_ints(q, at + 1, &stride)) {
    return false;
  }
  if (size.count != stride.count) return false;
  bool known = true;
  for (int d = 0; d < size.count; d++) {
    sizes[d] = size.known[d] && size.ints[d] >= 0 ? size.ints[d] : KILN_DIM_UNKNOWN;
    strides[d] = stride.ints[d];
    known &= stride.known[d] && stride.ints[d] >= 0;
  }
  kiln_tensor_detail *out = kiln__shape_result(q, 0);
  out->dtype = (int16_t)kiln__shape_dtype(q, self      ? (kiln_dtype)self->dtype
                                             : at == 0 ? KILN_DTYPE_F32
                                                       : KILN_DTYPE_NONE);
  if (!self) out->device = KILN_DEVICE_CPU;
  if (out->requires_grad < 0) out->requires_grad = 0;
  kiln__shape_set(q, out, size.count, sizes, known ? strides : NULL);
  return true;
}

/* -- Draws -- */

/* multinomial(self (n) or (rows, n), num_samples): int64. */
bool kiln__shape_multinomial(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  int64_t count;
  if (!self || self->rank < 1 || self->rank > 2) return false;
  if (!kiln__shape_int(q, 1, &count) || count < 0) count = KILN_DIM_UNKNOWN;
  const int64_t sizes[2] = {self->rank == 2 ? self->sizes[0] : count, count};
  return kiln__shape_give(q, 0, KILN_DTYPE_I64, self->rank, sizes, true);
}

/* native_dropout(input) -> output, mask. */
bool kiln__shape_native_dropout(kiln_shape_query *q) {
  const kiln_tensor_detail *self = kiln__shape_ranked(q, 0);
  if (!self || !kiln__shape_is_contiguous(q, self)) return false;
  return kiln__shape_give(q, 0, self->dtype, self->rank, self->sizes, true) &&
         kiln__shape_give(q, 1, KILN_DTYPE_BOOL, self->rank, self->sizes, true);
}

/* -- What a view shows, copied -- */

/* The view's sizes, row-major. */
#define COPIED(view)                                           \
  bool kiln__shape_##view##_copy(kiln_shape_query *q) {        \
    kiln_tensor_detail *out = &q->outs[0];                     \
    if (!kiln__shape_##view(q) || out->rank < 0) return false; \
    kiln__shape_row_major(q, out, out->rank, out->sizes);      \
    return true;                                               \
  }
COPIED(alias)
COPIED(diagonal)
COPIED(expand)
COPIED(narrow)
COPIED(permute)
COPIED(view)
COPIED(select_int)
COPIED(slice)
COPIED(squeeze)
COPIED(squeeze_dims)
COPIED(t)
COPIED(transpose)
COPIED(unfold)
COPIED(unsqueeze)
