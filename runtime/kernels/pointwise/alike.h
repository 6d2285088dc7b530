/* alike.h: the commonest pointwise case, without the set-up of iter.h: one or two operands that are
 * tensors of one dtype (stored as it is computed with) and one shape, contiguous and small, and no
 * destination. Inline, so that a kernel is one function around it. */
#pragma once

#include "runtime/kernels/support.h"

/* False: not such a case, nothing is done. `count` is 1 or 2. */
static inline __attribute__((always_inline)) bool kiln__pw_alike(kiln_call *call,
                                                                 kiln_pw_functor functor,
                                                                 const kiln_ivalue *args, int count,
                                                                 kiln_ivalue *out,
                                                                 kiln_status **out_status) {
  /* Whole words: widening bytes to strides would go through memory. */
  static const int64_t item_bytes[KILN_CTYPE__COUNT] = {
      [KILN_CTYPE_BOOL] = 1, [KILN_CTYPE_I32] = 4, [KILN_CTYPE_I64] = 8,   [KILN_CTYPE_F32] = 4,
      [KILN_CTYPE_F64] = 8,  [KILN_CTYPE_C64] = 8, [KILN_CTYPE_C128] = 16,
  };
  if (args[0].tag != KILN_TAG_TENSOR || args[count - 1].tag != KILN_TAG_TENSOR) return false;
  const kiln_tensor *a = args[0].u.tensor, *b = args[count - 1].u.tensor;
  kiln_dtype dtype = kiln_tensor_dtype(a);
  kiln_ctype ctype = (kiln_ctype)(kiln__native_ctypes[(unsigned)dtype & 31] - 1);
  if (a->key.word != b->key.word || !kiln_tensor_is_contiguous(a) || ctype == KILN_CTYPE_NONE ||
      out->tag == KILN_TAG_TENSOR || call->limits.bytes > 0 ||
      (a->numel >= 2 * KILN_PW_GRAIN && (call->pool || kiln_budget_may_end(&call->budget)))) {
    return false;
  }
  for (int i = 0; i < a->key.f.rank; i++) {
    if (a->dims[i] != b->dims[i]) return false;
  }
  kiln_pw_loop loop = call->dispatch->loops[ctype][functor];
  kiln_pw_result kind = (kiln_pw_result)kiln__pw_results[functor];
  if (!loop || kind == KILN_PW_REAL) return false;
  kiln_tensor *dest =
      kiln_tensor_pop_like(&call->cache, a, kind == KILN_PW_BOOL ? KILN_DTYPE_BOOL : dtype);
  if (!dest) return false;
  kiln__give(out, dest);
  const int64_t item = item_bytes[ctype];
  char *data[3] = {dest->storage->data, (char *)a->storage->data + a->offset * item,
                   (char *)b->storage->data + b->offset * item};
  const int64_t strides[3] = {kind == KILN_PW_BOOL ? 1 : item, item, item};
  kiln_pw_params params;
  params.fault = false;
  loop(data, strides, a->numel, &params);
  if (__builtin_expect(params.fault, 0)) *out_status = KILN_OP_FAIL("ZeroDivisionError");
  return true;
}
