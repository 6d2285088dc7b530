/* complex.c: complex tensors made of real ones, and their parts. */
#include "runtime/kernels/composite.h"
#include "runtime/kernels/pointwise/iter.h"

static kiln_dtype complex_of(kiln_dtype real) {
  return real == KILN_DTYPE_F64   ? KILN_DTYPE_C128
         : real == KILN_DTYPE_F16 ? KILN_DTYPE_C32
         : real == KILN_DTYPE_F32 ? KILN_DTYPE_C64
                                  : KILN_DTYPE_NONE;
}
/* A view of the same storage in another dtype, strides and offset in its elements. */
static kiln_status *reinterpret(kiln_call *call, kiln_tensor *t, kiln_dtype dtype, int rank,
                                const int64_t *sizes, const int64_t *strides, int64_t offset,
                                kiln_ivalue *out) {
  kiln_tensor *view;
  KILN_TRY(kiln_tensor_create_on(call->env->mem, &call->cache, t->storage, dtype, rank, sizes,
                                 strides, offset, &view));
  return kiln__give(out, view);
}
KILN_KERNEL(view_as_real) {
  kiln_tensor *t = SELF;
  int rank = kiln_tensor_rank(t);
  int64_t sizes[KILN_MAX_RANK + 1], strides[KILN_MAX_RANK + 1];
  if (!kiln_dtype_is_complex(kiln_tensor_dtype(t))) {
    return KILN_OP_FAIL("view_as_real is only supported for complex tensors");
  }
  if (rank >= KILN_MAX_RANK) return KILN_OP_FAIL("view_as_real: too many dimensions");
  for (int i = 0; i < rank; i++) {
    sizes[i] = kiln_tensor_sizes(t)[i];
    strides[i] = 2 * kiln_tensor_strides(t)[i];
  }
  sizes[rank] = 2;
  strides[rank] = 1;
  return reinterpret(call, t, kiln_dtype_real(kiln_tensor_dtype(t)), rank + 1, sizes, strides,
                     2 * t->offset, outs);
}
KILN_KERNEL(view_as_complex) {
  kiln_tensor *t = SELF;
  int rank = kiln_tensor_rank(t);
  kiln_dtype dtype = complex_of(kiln_tensor_dtype(t));
  int64_t strides[KILN_MAX_RANK];
  if (dtype == KILN_DTYPE_NONE) {
    return KILN_OP_FAIL(
        "view_as_complex is only supported for half, float and double tensors, but got "
        "a tensor of scalar type: %s",
        kiln_dtype_ir_name(kiln_tensor_dtype(t)));
  }
  if (rank == 0) return KILN_OP_FAIL("Input tensor must have one or more dimensions");
  if (kiln_tensor_sizes(t)[rank - 1] != 2) {
    return KILN_OP_FAIL("Tensor must have a last dimension of size 2");
  }
  bool fits = kiln_tensor_strides(t)[rank - 1] == 1 && t->offset % 2 == 0;
  for (int i = 0; i < rank - 1; i++) {
    fits = fits && (kiln_tensor_strides(t)[i] % 2 == 0 || kiln_tensor_sizes(t)[i] < 2);
    strides[i] = kiln_tensor_strides(t)[i] / 2;
  }
  if (!fits) {
    return KILN_OP_FAIL(
        "Tensor must have a last dimension with stride 1, and strides and a storage "
        "offset that are divisible by 2");
  }
  return reinterpret(call, t, dtype, rank - 1, kiln_tensor_sizes(t), strides, t->offset / 2, outs);
}
static kiln_status *part(kiln_call *call, kiln_tensor *t, int64_t which, kiln_ivalue *out) {
  int64_t strides[KILN_MAX_RANK];
  for (int i = 0; i < kiln_tensor_rank(t); i++) strides[i] = 2 * kiln_tensor_strides(t)[i];
  return reinterpret(call, t, kiln_dtype_real(kiln_tensor_dtype(t)), kiln_tensor_rank(t),
                     kiln_tensor_sizes(t), strides, 2 * t->offset + which, out);
}
KILN_KERNEL(real) {
  if (kiln_dtype_is_complex(kiln_tensor_dtype(SELF))) return part(call, SELF, 0, outs);
  return kiln__give(outs, kiln_tensor_retain(SELF));
}
KILN_KERNEL(imag) {
  if (kiln_dtype_is_complex(kiln_tensor_dtype(SELF))) return part(call, SELF, 1, outs);
  return KILN_OP_FAIL("imag is not implemented for tensors with non-complex dtypes.");
}
/* The conjugate is always a copy here; that of a real tensor is the tensor. */
KILN_KERNEL(conj) {
  kiln_tensor *t = SELF;
  if (!kiln_dtype_is_complex(kiln_tensor_dtype(t))) {
    if (!kiln__dest(outs)) {
      return kiln__give(outs, kiln_tensor_retain(t));
    }
    kiln_tensor *same;
    KILN_TRY(kiln_tensor_alias(&call->cache, t, &same));
    return kiln__finish(call, outs, same);
  }
  kiln_pw pw = {.functor = KILN_PW_conj,
                .in_count = 1,
                .common = kiln_tensor_dtype(t),
                .in = {{.tensor = t}}};
  return kiln_pw_run(call, &pw, outs);
}
KILN_COMPOSITE(_conj_physical) { /* never the tensor itself */
  kiln_tensor *const t = SELF;
  if (kiln__is_complex(t)) return KILN_STEP(r, conj, T(t));
  return kiln__composite_lay_pointwise(r, KILN_STEP(r, clone, T(t), NONE), kiln_tensor_dtype(t), 1,
                                       &t);
}
KILN_COMPOSITE(matrix_H) {
  const int rank = kiln_tensor_rank(SELF);
  if (rank == 1) {
    return FAIL(r,
                "tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.");
  }
  return KILN_STEP(r, conj, T(rank ? KILN_STEP(r, transpose, T(SELF), I(-2), I(-1)) : SELF));
}
/* complex(re, im), polar(abs, angle): both of one float dtype, broadcast. */
static kiln_tensor *join(kiln__composite *r, const kiln_ivalue *args, bool polar) {
  kiln_tensor *in[2] = {SELF, ARG(1)}, *result;
  const kiln_dtype real = kiln_tensor_dtype(in[0]), dtype = complex_of(real);
  int rank;
  int64_t sizes[KILN_MAX_RANK];
  if (dtype == KILN_DTYPE_NONE || real != kiln_tensor_dtype(in[1])) {
    return FAIL(r, "Expected both inputs to be Half, Float or Double tensors but got %s and %s",
                kiln_dtype_ir_name(real), kiln_dtype_ir_name(kiln_tensor_dtype(in[1])));
  }
  if (!kiln__composite_ok(r, kiln_tensor_broadcast(in[0], in[1], &rank, sizes))) return NULL;
  (void)kiln__composite_new(r, dtype, rank, sizes, &result);
  for (int k = 0; k < 2; k++) {
    kiln_tensor *half = k ? KILN_STEP(r, imag, T(result)) : KILN_STEP(r, real, T(result));
    kiln_tensor *value = in[k];
    if (polar) {
      value = k ? KILN_STEP(r, sin, T(in[1])) : KILN_STEP(r, cos, T(in[1]));
      value = KILN_STEP(r, mul, T(in[0]), T(value));
    }
    (void)kiln__composite_put(r, half, value);
  }
  return kiln__composite_lay_pointwise(r, result, dtype, 2, in);
}
KILN_COMPOSITE(complex) { return join(r, args, false); }
KILN_COMPOSITE(polar) { return join(r, args, true); }
KILN_KERNEL(angle) {
  kiln_pw pw = {.functor = KILN_PW_angle, .in_count = 1, .in = {{.tensor = SELF}}};
  pw.common = kiln_dtype_to_float(kiln_tensor_dtype(SELF));
  return kiln__is_complex(SELF) ? kiln_pw_run_rows(call, &pw, outs) : kiln_pw_run(call, &pw, outs);
}
KILN_COMPOSITE(isreal) {
  kiln_tensor *t = SELF;
  if (kiln__is_complex(t)) return KILN_STEP(r, eq, T(KILN_STEP(r, imag, T(t))), F(0));
  return KILN_STEP(r, ones_like, T(t), I(KILN_DTYPE_BOOL), NONE, NONE, NONE, NONE);
}
