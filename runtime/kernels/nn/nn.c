/* nn.c: what the kernels of neural network layers share (nn.h). */
#include "runtime/kernels/nn/nn.h"

#include <string.h>

void kiln__nn_release(kiln__nn *nn) {
  for (int i = 0; i < nn->count; i++) kiln_tensor_release_to(&nn->call->cache, nn->temps[i]);
  nn->count = 0;
}

kiln_status *kiln__nn_begin(kiln__nn *nn, kiln_dtype dtype) {
  switch (dtype) {
    case KILN_DTYPE_F16:
    case KILN_DTYPE_BF16:
    case KILN_DTYPE_F32:
      nn->dtype = KILN_DTYPE_F32;
      nn->ctype = KILN_CTYPE_F32;
      nn->item = sizeof(float);
      return NULL;
    case KILN_DTYPE_F64:
      nn->dtype = KILN_DTYPE_F64;
      nn->ctype = KILN_CTYPE_F64;
      nn->item = sizeof(double);
      return NULL;
    default: return kiln__not_implemented(nn->call, dtype);
  }
}

kiln_status *kiln__nn_keep(kiln__nn *nn, kiln_tensor *t) {
  if (nn->count == KILN_NN_TEMPS) {
    kiln_tensor_release_to(&nn->call->cache, t);
    return KILN_ERROR(KILN_INTERNAL, "a kernel keeps more than %d tensors", (int)KILN_NN_TEMPS);
  }
  nn->temps[nn->count++] = t;
  return NULL;
}

kiln_status *kiln__nn_as(kiln__nn *nn, kiln_tensor *t, kiln_dtype dtype, kiln_tensor **out) {
  KILN_TRY(kiln__as_dtype(nn->call, t, dtype, out));
  return kiln__nn_keep(nn, *out);
}
kiln_status *kiln__nn_make(kiln__nn *nn, kiln_dtype dtype, int rank, const int64_t *sizes,
                           kiln_tensor **out_tensor, void **out_data) {
  KILN_TRY(kiln_call_tensor(nn->call, dtype, rank, sizes, out_tensor));
  KILN_TRY(kiln__nn_keep(nn, *out_tensor));
  return kiln_tensor_writable_data(*out_tensor, out_data);
}
kiln_status *kiln__nn_new(kiln__nn *nn, int rank, const int64_t *sizes, kiln_tensor **out_tensor,
                          char **out_data) {
  void *data;
  KILN_TRY(kiln__nn_make(nn, nn->dtype, rank, sizes, out_tensor, &data));
  *out_data = data;
  return NULL;
}

kiln_status *kiln__nn_dense(kiln__nn *nn, kiln_tensor *t, const char **out_data) {
  kiln_tensor *dense;
  *out_data = NULL;
  if (!t) return NULL;
  KILN_TRY(kiln__nn_as(nn, t, nn->dtype, &dense));
  *out_data = kiln_tensor_data(dense);
  return NULL;
}

kiln_status *kiln__nn_check_weight(const kiln_tensor *input, const kiln_tensor *weight) {
  if (!weight) return NULL;
  const kiln_dtype a = kiln_tensor_dtype(input), b = kiln_tensor_dtype(weight);
  if (a == b || (b == KILN_DTYPE_F32 && kiln_dtype_is_half(a))) return NULL;
  return KILN_OP_FAIL("expected scalar type %s but found %s", kiln_dtype_ir_name(a),
                      kiln_dtype_ir_name(b));
}
kiln_status *kiln__nn_give(kiln__nn *nn, kiln_tensor *value, kiln_dtype dtype, kiln_ivalue *out) {
  kiln_tensor *result;
  KILN_TRY(kiln__as_dtype(nn->call, value, dtype, &result));
  return kiln__finish(nn->call, out, result);
}

double kiln__nn_reduce(const kiln__nn *nn, kiln_reduce_op op, const char *data, int64_t n,
                       double shift) {
  double result = 0, wide = shift;
  float narrow = (float)shift;
  nn->call->dispatch->reduce[op][nn->ctype](
      (char *)&result, data, n, (int64_t)nn->item, 1, 0,
      nn->dtype == KILN_DTYPE_F64 ? (const void *)&wide : (const void *)&narrow);
  return kiln__nn_get(nn, (const char *)&result, 0);
}

/* -- Products -- */

static kiln_status *check_linear(const kiln_tensor *x, const kiln_tensor *w, const kiln_tensor *b) {
  if (kiln_tensor_rank(x) != 2 || kiln_tensor_rank(w) != 2) {
    return KILN_OP_FAIL("mat1 and mat2 must be matrices, got %dD and %dD tensors",
                        kiln_tensor_rank(x), kiln_tensor_rank(w));
  }
  const int64_t *xs = kiln_tensor_sizes(x), *ws = kiln_tensor_sizes(w);
  if (xs[1] != ws[1]) {
    return KILN_OP_FAIL("mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                        (long long)xs[0], (long long)xs[1], (long long)ws[1], (long long)ws[0]);
  }
  if (kiln_tensor_dtype(x) != kiln_tensor_dtype(w) ||
      (b && kiln_tensor_dtype(b) != kiln_tensor_dtype(x))) {
    const kiln_tensor *other = kiln_tensor_dtype(x) != kiln_tensor_dtype(w) ? w : b;
    return KILN_OP_FAIL("expected m1 and m2 to have the same dtype, but got: %s != %s",
                        kiln_dtype_ir_name(kiln_tensor_dtype(x)),
                        kiln_dtype_ir_name(kiln_tensor_dtype(other)));
  }
  if (b && (kiln_tensor_rank(b) != 1 || kiln_tensor_sizes(b)[0] != ws[0])) {
    return KILN_OP_FAIL("The expanded size of the tensor (%lld) must match the existing size %s",
                        (long long)ws[0], kiln__sizes_of(b).text);
  }
  return NULL;
}
kiln_status *kiln__nn_gemm(kiln__nn *nn, kiln_gemm_args *gemm) {
  return kiln__gemm_run(nn->call, nn->dtype, gemm);
}
/* A tensor that the product can read with its strides. */
static kiln_status *readable(kiln__nn *nn, kiln_tensor *t, kiln_tensor **out) {
  *out = t;
  return kiln_tensor_dtype(t) == nn->dtype ? NULL : kiln__nn_as(nn, t, nn->dtype, out);
}
kiln_status *kiln__nn_linear(kiln__nn *nn, kiln_tensor *x, kiln_tensor *w, kiln_tensor *b,
                             kiln_tensor **out_tensor) {
  KILN_TRY(check_linear(x, w, b));
  KILN_TRY(readable(nn, x, &x));
  KILN_TRY(readable(nn, w, &w));
  const char *bias;
  KILN_TRY(kiln__nn_dense(nn, b, &bias));
  const int64_t m = kiln_tensor_sizes(x)[0], k = kiln_tensor_sizes(x)[1];
  const int64_t n = kiln_tensor_sizes(w)[0];
  char *c;
  KILN_TRY(kiln__nn_new(nn, 2, (const int64_t[]){m, n}, out_tensor, &c));
  if (m == 0 || n == 0) return NULL;
  kiln_gemm_args gemm = {.m = m,
                         .n = n,
                         .k = k,
                         .a = kiln_tensor_data(x),
                         .b = kiln_tensor_data(w),
                         .c = c,
                         .a_row = kiln_tensor_strides(x)[0],
                         .a_col = kiln_tensor_strides(x)[1],
                         .b_row = kiln_tensor_strides(w)[1],
                         .b_col = kiln_tensor_strides(w)[0],
                         .c_row = n,
                         .c_col = 1,
                         .alpha = 1,
                         .beta = bias ? 1 : 0,
                         .init = bias,
                         .init_row = 0,
                         .init_col = 1};
  return kiln__nn_gemm(nn, &gemm);
}
