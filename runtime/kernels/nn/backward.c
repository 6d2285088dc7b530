/* backward.c: the gradients that PyTorch has operators for and traces can hold. */
#include "runtime/kernels/composite.h"

/* grad_output, output, dim, input_dtype; of F16 and BF16 in F32. */
static kiln_tensor *softmax_backward(kiln__composite *r, const kiln_ivalue *args, bool of_log) {
  const kiln_dtype own = kiln_tensor_dtype(ARG(1)), wanted = (kiln_dtype)kiln_arg_int(args, 3);
  const kiln_dtype wide = kiln_dtype_is_half(own) ? KILN_DTYPE_F32 : own;
  if (!kiln_dtype_is_valid(kiln_arg_int(args, 3)) ||
      !kiln__composite_ok(r, kiln__check_dtype(r->call, wanted))) {
    return FAIL(r, "softmax_backward_data: input_dtype is no dtype of numbers");
  }
  kiln_tensor *grad = kiln__composite_to(r, SELF, wide),
              *output = kiln__composite_to(r, ARG(1), wide);
  kiln_tensor *each = of_log ? grad : KILN_STEP(r, mul, T(grad), T(output));
  kiln_tensor *sum = KILN_STEP(r, sum_dim, T(each), INTS(kiln_arg_int(args, 2)), B(true), NONE);
  if (of_log) output = KILN_STEP(r, exp, T(output));
  kiln_tensor *part = KILN_STEP(r, mul, T(output), T(sum));
  part = KILN_STEP(r, sub, T(each), T(part), I(1));
  return kiln__composite_to(r, part, wanted);
}
KILN_COMPOSITE(_softmax_backward_data) { return softmax_backward(r, args, false); }
KILN_COMPOSITE(_log_softmax_backward_data) { return softmax_backward(r, args, true); }

/* grad_output, mask, scale */
KILN_COMPOSITE(native_dropout_backward) {
  kiln_tensor *kept = KILN_STEP(r, mul, T(SELF), args[1]);
  return KILN_STEP(r, mul, T(kept), args[2]);
}

/* grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices: each gradient goes
 * to the place in its image that the pool took its element from. */
KILN_COMPOSITE(max_pool2d_with_indices_backward) {
  kiln_tensor *grad = SELF, *t = ARG(1), *places = ARG(7);
  const int rank = kiln_tensor_rank(t);
  if ((rank != 3 && rank != 4) || kiln_tensor_rank(grad) != rank ||
      kiln_tensor_rank(places) != rank || kiln_tensor_dtype(grad) != kiln_tensor_dtype(t) ||
      grad->numel != places->numel) {
    return FAIL(r, "max_pool2d_with_indices_backward: gradient, input and indices do not fit");
  }
  int64_t images = 1;
  for (int d = 0; d < rank - 2; d++) images *= kiln_tensor_sizes(t)[d];
  const int64_t inner = kiln__composite_size(t, -2) * kiln__composite_size(t, -1);
  const int64_t pooled = kiln__composite_size(grad, -2) * kiln__composite_size(grad, -1);
  kiln_tensor *flat =
      KILN_STEP(r, zeros, INTS(images, inner), I(kiln_tensor_dtype(t)), NONE, NONE, NONE);
  grad = kiln__composite_reshape(r, grad, 2, (const int64_t[]){images, pooled});
  places = kiln__composite_reshape(r, places, 2, (const int64_t[]){images, pooled});
  flat = KILN_STEP(r, scatter_add, T(flat), I(1), T(places), T(grad));
  return kiln__composite_reshape(r, flat, rank, kiln_tensor_sizes(t));
}
