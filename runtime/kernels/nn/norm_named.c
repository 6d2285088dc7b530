/* norm_named.c: norms under their inner names, with what training would keep; rms_norm. */
#include "runtime/kernels/composite.h"

/* -- Layers by their inner names -- */

/* -> output, mean, inverse deviation, reserve, which implementation */
KILN_COMPOSITE(_batch_norm_impl_index) {
  kiln_tensor *parts[3];
  kiln__composite_step_many(r, KILN_BODY_OF(native_batch_norm), 8, args, 3, parts);
  for (int i = 0; i < 3; i++) kiln__composite_give(r, &outs[i], parts[i]);
  kiln__composite_give(r, &outs[3], kiln__composite_empty(r, KILN_DTYPE_U8));
  if (!r->status) outs[4] = kiln_int(0);
  return NULL;
}
/* input, weight, bias, training, momentum, eps */
KILN_COMPOSITE(_native_batch_norm_legit_no_stats) {
  kiln_tensor *parts[3];
  KILN_STEP_MANY(r, native_batch_norm, 3, parts, args[0], args[1], args[2], NONE, NONE, args[3],
                 args[4], args[5]);
  for (int i = 0; i < 3; i++) kiln__composite_give(r, &outs[i], parts[i]);
  return NULL;
}
/* input, weight, bias, running_mean, running_var, momentum, eps -> three, and a reserve */
static kiln_tensor *norm_kept(kiln__composite *r, const kiln_ivalue *args, bool training,
                              bool reserve, kiln_ivalue *outs) {
  kiln_tensor *parts[3];
  KILN_STEP_MANY(r, native_batch_norm, 3, parts, args[0], args[1], args[2], args[3], args[4],
                 B(training), args[5], args[6]);
  for (int i = 0; i < 3; i++) kiln__composite_give(r, &outs[i], parts[i]);
  if (reserve) kiln__composite_give(r, &outs[3], kiln__composite_empty(r, KILN_DTYPE_U8));
  return NULL;
}
KILN_COMPOSITE(_native_batch_norm_legit_no_training) {
  return norm_kept(r, args, false, false, outs);
}
KILN_COMPOSITE(_batch_norm_with_update) { return norm_kept(r, args, true, true, outs); }
KILN_COMPOSITE(_batch_norm_no_update) { return norm_kept(r, args, false, true, outs); }

/* -- Elements -- */

/* rms_norm(input, normalized_shape, weight, eps) */
KILN_COMPOSITE(rms_norm) {
  int64_t shape[KILN_MAX_RANK], dims[KILN_MAX_RANK];
  int count;
  const int rank = kiln_tensor_rank(SELF);
  if (!kiln__composite_ok(r, kiln__arg_int_list(args, 1, shape, &count))) return NULL;
  bool fits = count > 0 && count <= rank;
  for (int d = 0; fits && d < count; d++) {
    fits = shape[d] == kiln_tensor_sizes(SELF)[rank - count + d];
    dims[d] = rank - count + d;
  }
  if (!fits) {
    return FAIL(r, "Given normalized_shape, expected input with the same last dimensions");
  }
  const kiln_dtype dtype = kiln_tensor_dtype(SELF);
  const double eps = kiln_arg_is_none(args, 3) ? (dtype == KILN_DTYPE_F64 ? 0x1p-52 : 0x1p-23)
                                               : kiln_arg_float(args, 3);
  kiln_tensor *x = kiln_dtype_is_half(dtype) ? kiln__composite_to(r, SELF, KILN_DTYPE_F32) : SELF;
  kiln_tensor *mean = KILN_STEP(r, mean_dim, T(KILN_STEP(r, square, T(x))),
                                kiln__composite_ints(r, count, dims), B(true), NONE);
  kiln_tensor *root = KILN_STEP(r, sqrt, T(KILN_STEP(r, add, T(mean), F(eps), I(1))));
  kiln_tensor *t = KILN_STEP(r, div, T(x), T(root));
  if (!kiln_arg_is_none(args, 2)) t = KILN_STEP(r, mul, T(t), args[2]);
  return kiln__composite_to(r, t, dtype);
}
