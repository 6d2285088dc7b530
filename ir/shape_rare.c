/* shape_rare.c: shape functions of operators that few models use: windows, draws, fractional pools,
 * factorisations. */
#include "ir/shape.h"

static const kiln_tensor_detail *ranked(const kiln_shape_query *q, int i) {
  const kiln_tensor_detail *t = kiln__shape_tensor(q, i);
  return t && t->rank >= 0 ? t : NULL;
}
/* A new row-major result on the CPU (or where the tensor arguments are). */
static kiln_tensor_detail *give(kiln_shape_query *q, int index, kiln_dtype dtype, int rank,
                                const int64_t *sizes) {
  kiln_tensor_detail *out = kiln__shape_result(q, index);
  out->dtype = (int16_t)dtype;
  kiln__shape_row_major(q, out, rank, sizes);
  return out;
}

/* -- Factories -- */

static bool give_length(kiln_shape_query *q, int arg) {
  int64_t size;
  if (!kiln__shape_int(q, arg, &size) || size < 0) size = KILN_DIM_UNKNOWN;
  kiln_tensor_detail *out = give(q, 0, kiln__shape_dtype(q, KILN_DTYPE_F32), 1, &size);
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
  const kiln_tensor_detail *self = ranked(q, 0);
  int64_t count;
  if (!self || self->rank < 1 || self->rank > 2) return false;
  if (!kiln__shape_int(q, 1, &count) || count < 0) count = KILN_DIM_UNKNOWN;
  const int64_t sizes[2] = {self->rank == 2 ? self->sizes[0] : count, count};
  give(q, 0, KILN_DTYPE_I64, self->rank, sizes)->requires_grad = 0;
  return true;
}

/* native_dropout(input) -> output, mask. */
bool kiln__shape_native_dropout(kiln_shape_query *q) {
  const kiln_tensor_detail *self = ranked(q, 0);
  if (!self || !kiln__shape_is_plain(self)) return false;
  give(q, 0, (kiln_dtype)self->dtype, self->rank, self->sizes);
  give(q, 1, KILN_DTYPE_BOOL, self->rank, self->sizes)->requires_grad = 0;
  return true;
}

/* -- Grids -- */

/* affine_grid_generator(theta, size (N, C, ...)): (N, ..., k). */
bool kiln__shape_affine_grid(kiln_shape_query *q) {
  const kiln_tensor_detail *theta = kiln__shape_tensor(q, 0);
  kiln_shape_list list;
  int64_t sizes[KILN_MAX_RANK];
  int rank = 0;
  if (!theta || !kiln__shape_ints(q, 1, &list) || list.count < 4 || list.count > 5) return false;
  for (int i = 0; i < list.count; i++) {
    if (i == 1) continue;
    sizes[rank++] = list.known[i] && list.ints[i] >= 0 ? list.ints[i] : KILN_DIM_UNKNOWN;
  }
  sizes[rank++] = list.count - 2;
  give(q, 0, (kiln_dtype)theta->dtype, rank, sizes);
  return true;
}

/* promote, but that complex results (made of other operators) may lie otherwise. */
bool kiln__shape_promote_real(kiln_shape_query *q) {
  if (!kiln__shape_promote(q)) return false;
  const int16_t dtype = q->outs[0].dtype;
  if (dtype == KILN_DTYPE_NONE || kiln_dtype_is_complex((kiln_dtype)dtype)) {
    q->outs[0].has_strides = false;
  }
  return true;
}
