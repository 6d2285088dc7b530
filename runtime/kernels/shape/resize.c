/* resize.c: tensors that become others in place: resize_, set_; shapes that are tensors. */
#include <string.h>

#include "runtime/kernels/composite.h"

/* -- Written in place -- */

/* self, size */
KILN_KERNEL(resize_) {
  int64_t sizes[KILN_MAX_RANK];
  int rank;
  KILN_TRY(kiln__arg_int_list(args, 1, sizes, &rank));
  for (int d = 0; d < rank; d++) {
    if (sizes[d] < 0) {
      return KILN_OP_FAIL("Trying to create tensor with negative dimension %lld",
                          (long long)sizes[d]);
    }
  }
  KILN_TRY(kiln_tensor_resize(SELF, rank, sizes));
  return kiln__give(outs, kiln_tensor_retain(SELF));
}
KILN_KERNEL(resize_as_) {
  const kiln_tensor *model = ARG(1);
  KILN_TRY(kiln_tensor_resize(SELF, kiln_tensor_rank(model), kiln_tensor_sizes(model)));
  return kiln__give(outs, kiln_tensor_retain(SELF));
}

/* -- set_: self becomes another tensor over the source's storage -- */

static kiln_status *set_to(kiln_tensor *t, const kiln_tensor *source, int rank,
                           const int64_t *sizes, const int64_t *strides, int64_t offset) {
  if (kiln_tensor_dtype(t) != kiln_tensor_dtype(source)) {
    return KILN_OP_FAIL("Could not set tensor of type %s to a tensor of type %s",
                        kiln_dtype_ir_name(kiln_tensor_dtype(source)),
                        kiln_dtype_name(kiln_tensor_dtype(t)));
  }
  if (kiln_tensor_is_undefined(t) || kiln_tensor_is_undefined(source)) {
    return KILN_OP_FAIL("set_: an undefined tensor has no storage");
  }
  return kiln_tensor_set(t, source->storage, kiln_tensor_dtype(t), rank, sizes, strides, offset);
}
/* self: empty, over no storage of anyone's */
KILN_KERNEL(set_) {
  const int64_t none = 0, one = 1;
  kiln_tensor *empty;
  KILN_TRY(kiln_call_tensor(call, kiln_tensor_dtype(SELF), 1, &none, &empty));
  kiln_status *status = set_to(SELF, empty, 1, &none, &one, 0);
  kiln_tensor_release_to(&call->cache, empty);
  if (!status) kiln__give(outs, kiln_tensor_retain(SELF));
  return status;
}
KILN_KERNEL(set_source) {
  const kiln_tensor *source = ARG(1);
  KILN_TRY(set_to(SELF, source, kiln_tensor_rank(source), kiln_tensor_sizes(source),
                  kiln_tensor_strides(source), source->offset));
  return kiln__give(outs, kiln_tensor_retain(SELF));
}
/* self, source, storage_offset, size, stride */
KILN_KERNEL(set_source_geometry) {
  int64_t sizes[KILN_MAX_RANK], strides[KILN_MAX_RANK];
  int rank, count;
  KILN_TRY(kiln__arg_int_list(args, 3, sizes, &rank));
  KILN_TRY(kiln__arg_int_list(args, 4, strides, &count));
  if (count == 0) kiln_strides_contiguous(rank, sizes, strides);
  if (count != 0 && count != rank) {
    return KILN_OP_FAIL("unequal size length (%d) and stride length (%d)", rank, count);
  }
  KILN_TRY(set_to(SELF, ARG(1), rank, sizes, strides, kiln_arg_int(args, 2)));
  return kiln__give(outs, kiln_tensor_retain(SELF));
}

/* -- New tensors -- */

KILN_COMPOSITE(_shape_as_tensor) {
  const int64_t rank = kiln_tensor_rank(SELF);
  kiln_tensor *out;
  int64_t *to = kiln__composite_new(r, KILN_DTYPE_I64, 1, &rank, &out);
  if (to) memcpy(to, kiln_tensor_sizes(SELF), sizeof *to * (size_t)rank);
  return out;
}
KILN_COMPOSITE(_reshape_from_tensor) {
  kiln_tensor *shape = ARG(1), *dense;
  const int64_t *sizes = kiln__composite_read(r, shape, KILN_DTYPE_I64, &dense);
  if (!r->status && (kiln_tensor_rank(shape) != 1 || shape->numel > KILN_MAX_RANK)) {
    FAIL(r, "_reshape_from_tensor: shape must be a vector");
  }
  if (r->status) return NULL;
  const kiln_ivalue list = kiln__composite_ints(r, (int)shape->numel, sizes);
  return KILN_STEP(r, reshape, T(SELF), list);
}
