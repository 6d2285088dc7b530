/* attention_named.c: attention under its inner names, with the weights as a result. */
#include <math.h>

#include "runtime/kernels/composite.h"

/* q k^T, scaled, under the mask, or below the diagonal where `causal`. */
static kiln_tensor *scores(kiln__composite *r, kiln_tensor *q, kiln_tensor *k, kiln_tensor *mask,
                           bool causal, double scale) {
  kiln_tensor *turned = KILN_STEP(r, transpose, T(k), I(-2), I(-1));
  kiln_tensor *w = KILN_STEP(r, matmul, T(KILN_STEP(r, mul, T(q), F(scale))), T(turned));
  if (causal) {
    kiln_tensor *one =
        KILN_STEP(r, ones, INTS(kiln__composite_size(q, -2), kiln__composite_size(k, -2)),
                  I(KILN_DTYPE_BOOL), NONE, NONE, NONE);
    mask = KILN_STEP(r, tril, T(one), I(0));
  }
  if (!mask) return w;
  return kiln_tensor_dtype(mask) == KILN_DTYPE_BOOL
             ? KILN_STEP(r, masked_fill, T(w), T(KILN_STEP(r, logical_not, T(mask))), F(-INFINITY))
             : KILN_STEP(r, add, T(w), T(mask), I(1));
}
/* query, key, value, dropout_p, is_causal, attn_mask, scale -> output, logsumexp */
KILN_COMPOSITE(_scaled_dot_product_flash_attention_for_cpu) {
  const kiln_dtype own = kiln_tensor_dtype(SELF);
  const kiln_dtype wide = own == KILN_DTYPE_F64 ? own : KILN_DTYPE_F32;
  kiln_tensor *q = kiln__composite_to(r, SELF, wide);
  kiln_tensor *k = kiln__composite_to(r, ARG(1), wide);
  kiln_tensor *v = kiln__composite_to(r, ARG(2), wide);
  kiln_tensor *mask = kiln_arg_tensor_opt(args, 5);
  if (kiln_tensor_rank(SELF) != 4 || kiln__composite_rank(k) != 4 || kiln__composite_rank(v) != 4) {
    FAIL(r, "scaled_dot_product_attention_flash_attention: Accept only 4 dims inputs "
            "shape of {B, H, T, K}");
  } else if (kiln_arg_float(args, 3) != 0) {
    FAIL(r, "scaled_dot_product_attention_flash_attention: Currently do not support "
            "dropout > 0");
  } else if (mask && kiln_arg_bool(args, 4)) {
    FAIL(r, "scaled_dot_product_attention_flash_attention: attn_mask and is_causal are "
            "both set");
  }
  const double size = (double)kiln__composite_size(q, -1);
  const double scale = kiln_arg_is_none(args, 6) ? 1 / sqrt(size) : kiln_arg_float(args, 6);
  kiln_tensor *w = scores(r, q, k, mask, kiln_arg_bool(args, 4), scale);
  kiln__composite_give(r, &outs[1], KILN_STEP(r, logsumexp, T(w), INTS(-1), B(false)));
  w = KILN_STEP(r, matmul, T(KILN_STEP(r, softmax, T(w), I(-1), NONE)), T(v));
  return kiln__composite_to(r, w, own);
}
/* query, key, value, attn_mask, dropout_p, (need_attn_weights,) is_causal -> output, weights */
KILN_COMPOSITE(_scaled_dot_product_attention) {
  kiln_tensor *q = SELF, *k = ARG(1), *mask = kiln_arg_tensor_opt(args, 3);
  const double size = (double)kiln__composite_size(q, -1);
  if (kiln_arg_bool(args, 6) && mask) {
    return FAIL(
        r,
        "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  }
  kiln_tensor *w = scores(r, q, k, mask, kiln_arg_bool(args, 6), 1 / sqrt(size));
  w = KILN_STEP(r, softmax, T(w), I(-1), NONE);
  if (kiln_arg_float(args, 4) > 0) w = KILN_STEP(r, dropout, T(w), args[4], B(true));
  kiln__composite_give(r, &outs[0], KILN_STEP(r, matmul, T(w), args[2]));
  kiln__composite_give(r, &outs[1], w);
  return NULL;
}
