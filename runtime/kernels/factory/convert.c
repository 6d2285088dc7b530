/* convert.c: to(), clone, contiguous, and the properties of tensors. */
#include <string.h>

#include "runtime/kernels/factory/factory.h"
#include "runtime/kernels/pointwise/iter.h"
#include "runtime/strides.h"

static bool has_format(const kiln_tensor *t, int64_t format) {
  if (format == KILN_FORMAT_PRESERVE) return true;
  if (format == KILN_FORMAT_CONTIGUOUS) return kiln_tensor_is_contiguous(t);
  const int rank = kiln_tensor_rank(t);
  if (rank != kiln_format_rank(format)) return false;
  if (t->key.f.layout == KILN_LAYOUT_CHANNELS_LAST) return true;
  const int64_t *s = kiln_tensor_sizes(t), *d = kiln_tensor_strides(t);
  int64_t want[KILN_MAX_RANK];
  kiln_strides_channels_last(rank, s, want);
  for (int i = 0; i < rank; i++) {
    if (s[i] != 1 && d[i] != want[i]) return false;
  }
  return true;
}

/* A copy in another dtype and memory format. */
static kiln_status *copy_as(kiln_call *call, kiln_tensor *t, kiln_dtype dtype, int64_t format,
                            kiln_ivalue *out) {
  kiln_tensor *to;
  KILN_TRY(kiln__empty_like(call, t, dtype, format, &to));
  kiln__give(out, to);
  return kiln_pw_copy(call, to, t);
}

/* Channels last of images, volumes and signals; a lone image's, (C, H, W), are those of a batch of
 * one. */
static void strides_last(int rank, const int64_t *sizes, bool lone, int64_t *out_strides) {
  int64_t batch[KILN_MAX_RANK + 1] = {1}, strides[KILN_MAX_RANK + 1];
  memcpy(batch + lone, sizes, sizeof *sizes * (size_t)rank);
  kiln_strides_channels_last(rank + lone, batch, strides);
  memcpy(out_strides, strides + lone, sizeof *sizes * (size_t)rank);
}
enum { TRANSPOSED = 6 /* of aten::convolution, whose transposed ones are row-major */ };
kiln_status *kiln__lay_results(kiln_call *call, kiln_format_from from, const kiln_ivalue *args,
                               kiln_ivalue *outs) {
  const bool convolves = from == KILN_FORMAT_FROM_convolution;
  const kiln_tensor *weight = convolves ? ARG(1) : NULL;
  const int rank = kiln_tensor_rank(SELF), weight_rank = weight ? kiln_tensor_rank(weight) : 0;
  const int asks = kiln_format_asks(from, rank, weight_rank, kiln_tensor_is_contiguous(SELF));
  if (convolves && call->kernel->arg_count > TRANSPOSED && args[TRANSPOSED].tag == KILN_TAG_BOOL &&
      args[TRANSPOSED].u.b)
    return NULL;
  if (!((asks & 1 && kiln_tensor_suggests_channels_last(SELF)) ||
        (asks & 2 && kiln_tensor_suggests_channels_last(weight))))
    return NULL;
  for (int i = 0; i < call->kernel->out_count; i++) {
    kiln_tensor *t = kiln__dest(&outs[i]), *to;
    int64_t strides[KILN_MAX_RANK];
    if (!t || kiln_tensor_rank(t) != rank) continue;
    strides_last(rank, kiln_tensor_sizes(t), convolves && weight_rank == rank + 1, strides);
    KILN_TRY(kiln__lay(call, t, kiln_tensor_dtype(t), strides, &to));
    outs[i] = kiln_of_tensor(to);
    kiln_tensor_release_to(&call->cache, t);
  }
  return NULL;
}

/* suggest_memory_format. */
static int64_t suggested(const kiln_tensor *t) {
  const int rank = kiln_tensor_rank(t);
  const bool last = kiln_has_channels_last(rank) && kiln_tensor_suggests_channels_last(t);
  return !last       ? KILN_FORMAT_CONTIGUOUS
         : rank == 4 ? KILN_FORMAT_CHANNELS_LAST
                     : KILN_FORMAT_CHANNELS_LAST_3D;
}

/* Device (maybe None), dtype, copy, memory format. */
static kiln_status *to(kiln_call *call, kiln_tensor *t, kiln_ivalue device, kiln_dtype dtype,
                       bool copy, int64_t format, kiln_ivalue *out) {
  KILN_TRY(kiln__check_device(device));
  const bool lies_so = format == KILN_FORMAT_PRESERVE || format == suggested(t);
  if (!copy && dtype == kiln_tensor_dtype(t) && lies_so)
    return kiln__give(out, kiln_tensor_retain(t));
  return copy_as(call, t, dtype, format, out);
}
KILN_KERNEL(to_device) { /* device, dtype, non_blocking, copy, format */
  return to(call, SELF, args[1], (kiln_dtype)kiln_arg_int(args, 2), kiln_arg_bool(args, 4),
            kiln_arg_int_or(args, 5, KILN_FORMAT_PRESERVE), outs);
}
KILN_KERNEL(to_dtype) { /* dtype, non_blocking, copy, format */
  return to(call, SELF, kiln_none(), (kiln_dtype)kiln_arg_int(args, 1), kiln_arg_bool(args, 3),
            kiln_arg_int_or(args, 4, KILN_FORMAT_PRESERVE), outs);
}
KILN_KERNEL(to_other) { /* other, non_blocking, copy, format */
  return to(call, SELF, kiln_none(), kiln_tensor_dtype(ARG(1)), kiln_arg_bool(args, 3),
            kiln_arg_int_or(args, 4, KILN_FORMAT_PRESERVE), outs);
}
KILN_KERNEL(to_dtype_layout) { /* dtype, layout, device, pin_memory, non_blocking, copy, format */
  return to(call, SELF, args[3], kiln__arg_dtype_or(args, 1, kiln_tensor_dtype(SELF)),
            kiln_arg_bool(args, 6), kiln_arg_int_or(args, 7, KILN_FORMAT_PRESERVE), outs);
}
KILN_KERNEL(chalf) { /* format */
  return to(call, SELF, kiln_none(), KILN_DTYPE_C32, false,
            kiln_arg_int_or(args, 1, KILN_FORMAT_PRESERVE), outs);
}
KILN_KERNEL(to_cpu) {
  return to(call, SELF, kiln_none(), kiln_tensor_dtype(SELF), false, KILN_FORMAT_PRESERVE, outs);
}
KILN_KERNEL(to_cuda) { return KILN_ERROR(KILN_UNSUPPORTED, "no device but the CPU is available"); }
KILN_KERNEL(to_prim_device) { /* device, dtype, non_blocking, copy */
  return to(call, SELF, args[1], kiln__arg_dtype_or(args, 2, kiln_tensor_dtype(SELF)),
            kiln_arg_bool(args, 4), KILN_FORMAT_PRESERVE, outs);
}
KILN_KERNEL(to_prim_dtype) { /* dtype, non_blocking, copy */
  return to(call, SELF, kiln_none(), kiln__arg_dtype_or(args, 1, kiln_tensor_dtype(SELF)),
            kiln_arg_bool(args, 3), KILN_FORMAT_PRESERVE, outs);
}
KILN_KERNEL(to_prim_other) { /* non_blocking, copy */
  return to(call, SELF, kiln_none(), kiln_tensor_dtype(SELF), kiln_arg_bool(args, 2),
            KILN_FORMAT_PRESERVE, outs);
}
KILN_KERNEL(type_as) {
  return to(call, SELF, kiln_none(), kiln_tensor_dtype(ARG(1)), false, KILN_FORMAT_PRESERVE, outs);
}
KILN_KERNEL(contiguous) {
  int64_t format = kiln_arg_int_or(args, 1, KILN_FORMAT_CONTIGUOUS);
  if (format == KILN_FORMAT_PRESERVE) {
    return KILN_OP_FAIL("preserve memory format is unsupported by the contiguous operator");
  }
  if (has_format(SELF, format)) return kiln__give(outs, kiln_tensor_retain(SELF));
  return copy_as(call, SELF, kiln_tensor_dtype(SELF), format, outs);
}
KILN_KERNEL(clone) {
  return copy_as(call, SELF, kiln_tensor_dtype(SELF),
                 kiln_arg_int_or(args, 1, KILN_FORMAT_PRESERVE), outs);
}
KILN_KERNEL(detach) {
  kiln_tensor *view;
  KILN_TRY(kiln_tensor_alias(&call->cache, SELF, &view));
  return kiln__give(outs, view);
}

/* -- Properties -- */

KILN_KERNEL(size) {
  return kiln__give_ints(call, kiln_tensor_rank(SELF), kiln_tensor_sizes(SELF), outs);
}
KILN_KERNEL(stride) {
  return kiln__give_ints(call, kiln_tensor_rank(SELF), kiln_tensor_strides(SELF), outs);
}
/* self, dim: that one's of the sizes or strides. */
static kiln_status *of_dim(const kiln_ivalue *args, const int64_t *of_all, kiln_ivalue *out) {
  int dim, rank = kiln_tensor_rank(SELF);
  if (rank == 0) {
    return KILN_OP_FAIL("dimension specified as %lld but tensor has no dimensions",
                        (long long)kiln_arg_int(args, 1));
  }
  KILN_TRY(kiln_wrap_dim(kiln_arg_int(args, 1), rank, &dim));
  return kiln__give_int(out, of_all[dim]);
}
KILN_KERNEL(size_int) { return of_dim(args, kiln_tensor_sizes(SELF), outs); }
KILN_KERNEL(stride_int) { return of_dim(args, kiln_tensor_strides(SELF), outs); }
#define INT_PROPERTY(name, expr) \
  KILN_KERNEL(name) { return kiln__give_int(outs, expr); }
#define BOOL_PROPERTY(name, expr) \
  KILN_KERNEL(name) { return kiln__give_bool(outs, expr); }
INT_PROPERTY(dim, kiln_tensor_rank(SELF))
INT_PROPERTY(numel, SELF->numel)
INT_PROPERTY(storage_offset, SELF->offset)
INT_PROPERTY(element_size, (int64_t)kiln_tensor_item_size(SELF))
INT_PROPERTY(dtype, kiln_tensor_dtype(SELF))
INT_PROPERTY(layout, 0)
BOOL_PROPERTY(is_cpu, SELF->key.f.device_kind == KILN_DEVICE_CPU)
BOOL_PROPERTY(is_cuda, SELF->key.f.device_kind == KILN_DEVICE_CUDA)
BOOL_PROPERTY(is_meta, SELF->key.f.device_kind == KILN_DEVICE_META)
BOOL_PROPERTY(never, false)
BOOL_PROPERTY(requires_grad, SELF->key.f.requires_grad != 0)
BOOL_PROPERTY(is_leaf, true) /* no gradient is recorded */
BOOL_PROPERTY(is_floating_point, kiln_dtype_is_float(kiln_tensor_dtype(SELF)))
BOOL_PROPERTY(is_complex, kiln_dtype_is_complex(kiln_tensor_dtype(SELF)))
BOOL_PROPERTY(is_signed, kiln_tensor_dtype(SELF) != KILN_DTYPE_U8 &&
                             kiln_tensor_dtype(SELF) != KILN_DTYPE_BOOL)
BOOL_PROPERTY(is_contiguous, kiln_tensor_is_contiguous(SELF))
BOOL_PROPERTY(is_contiguous_format, has_format(SELF, kiln_arg_int(args, 1)))
BOOL_PROPERTY(is_same_size, kiln_tensor_same_sizes(SELF, ARG(1)))
KILN_KERNEL(device) {
  kiln_device_id device = kiln_tensor_device(SELF);
  return kiln__give_value(outs, kiln_device_value(device));
}
KILN_KERNEL(get_device) {
  const bool cpu = SELF->key.f.device_kind == KILN_DEVICE_CPU;
  return kiln__give_int(outs, cpu ? -1 : SELF->key.f.device_index);
}
KILN_KERNEL(len_tensor) {
  if (kiln_tensor_rank(SELF) == 0) return KILN_OP_FAIL("len() of a 0-d tensor");
  return kiln__give_int(outs, kiln_tensor_sizes(SELF)[0]);
}
KILN_KERNEL(requires_grad_) {
  kiln_tensor *t = SELF;
  bool on = kiln_arg_bool(args, 1);
  if (on && !kiln_dtype_is_float(kiln_tensor_dtype(t)) &&
      !kiln_dtype_is_complex(kiln_tensor_dtype(t))) {
    return KILN_OP_FAIL("only Tensors of floating point dtype can require gradients");
  }
  t->key.f.requires_grad = on;
  return kiln__give(outs, kiln_tensor_retain(t));
}
KILN_KERNEL(result_type) {
  kiln_pw pw = {.in_count = 2};
  pw.in[0] = kiln_pw_arg_of(args[0]);
  pw.in[1] = kiln_pw_arg_of(args[1]);
  return kiln__give_int(outs, kiln_pw_promote(&pw, 0));
}
/* The tensor's single element as a number. */
static kiln_status *item(kiln_tensor *t, kiln_call *call, kiln_ivalue *out) {
  if (t->numel == 1) return kiln__element(call, t, 0, out);
  return KILN_OP_FAIL("a Tensor with %lld elements cannot be converted to Scalar",
                      (long long)t->numel);
}
KILN_KERNEL(item) { return item(SELF, call, outs); }

/* Implicit conversions of a tensor argument. */
static kiln_status *check_implicit(const kiln_tensor *t) {
  if (kiln_tensor_is_undefined(t)) return KILN_OP_FAIL("an undefined tensor has no elements");
  if (t->key.f.requires_grad) {
    return KILN_OP_FAIL("Cannot input a tensor that requires grad as a scalar argument");
  }
  if (kiln_tensor_rank(t) != 0) {
    return KILN_OP_FAIL("Cannot input a tensor of dimension other than 0 as a scalar argument");
  }
  return NULL;
}
KILN_KERNEL(IntImplicit) {
  KILN_TRY(check_implicit(SELF));
  if (!kiln_dtype_is_int(kiln_tensor_dtype(SELF), true)) {
    return KILN_OP_FAIL("Cannot input a tensor of type %s as an integral argument",
                        kiln_dtype_ir_name(kiln_tensor_dtype(SELF)));
  }
  return kiln__give_int(outs, kiln__element_i64(SELF, 0));
}
KILN_KERNEL(FloatImplicit) {
  KILN_TRY(check_implicit(SELF));
  return kiln__give_float(outs, kiln__element_f64(SELF, 0));
}
KILN_KERNEL(ScalarImplicit) {
  KILN_TRY(check_implicit(SELF));
  return item(SELF, call, outs);
}
KILN_KERNEL(Int_tensor) {
  int64_t i;
  if (kiln_dtype_is_int(kiln_tensor_dtype(SELF), true)) {
    KILN_TRY(kiln_tensor_item_i64(SELF, &i));
  } else {
    double f;
    KILN_TRY(kiln_tensor_item_f64(SELF, &f));
    i = kiln__number_i64(kiln__number_float(f));
  }
  return kiln__give_int(outs, i);
}
KILN_KERNEL(Float_tensor) {
  double f;
  KILN_TRY(kiln_tensor_item_f64(SELF, &f));
  return kiln__give_float(outs, f);
}
KILN_KERNEL(Bool_tensor) {
  kiln_tensor *t = SELF;
  if (t->numel == 0) {
    return KILN_OP_FAIL("Boolean value of Tensor with no values is ambiguous");
  }
  if (t->numel > 1) {
    return KILN_OP_FAIL("Boolean value of Tensor with more than one value is ambiguous");
  }
  return kiln__give_bool(outs, kiln_dtype_is_int(kiln_tensor_dtype(t), true)
                                   ? kiln__element_i64(t, 0) != 0
                                   : kiln__element_f64(t, 0) != 0);
}
