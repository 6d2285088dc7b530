/* fill.c: filled tensors, casts by name, and what needs no work. */
#include "runtime/kernels/composite.h"

/* -- New tensors -- */

/* self, value: a number or a tensor of no dimensions */
KILN_COMPOSITE(fill) {
  kiln_ivalue value = args[1];
  if (value.tag == KILN_TAG_TENSOR && kiln_tensor_rank(value.u.tensor) != 0) {
    return FAIL(r,
                "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.",
                kiln_tensor_rank(value.u.tensor));
  }
  kiln_tensor *t = KILN_STEP(r, zeros_like, T(SELF), NONE, NONE, NONE, NONE, NONE);
  if (value.tag == KILN_TAG_TENSOR)
    KILN_STEP(r, copy_, T(t), value, B(false));
  else
    KILN_STEP(r, fill_, T(t), value);
  return t;
}
KILN_COMPOSITE(zero) { return KILN_STEP(r, zeros_like, T(SELF), NONE, NONE, NONE, NONE, NONE); }
#define CAST(name, dtype) \
  KILN_COMPOSITE(name) { return kiln__composite_lay_like(r, SELF, dtype, SELF); }
CAST(_cast_Byte, KILN_DTYPE_U8)
CAST(_cast_Char, KILN_DTYPE_I8)
CAST(_cast_Short, KILN_DTYPE_I16)
CAST(_cast_Int, KILN_DTYPE_I32)
CAST(_cast_Long, KILN_DTYPE_I64)
CAST(_cast_Half, KILN_DTYPE_F16)
CAST(_cast_Float, KILN_DTYPE_F32)
CAST(_cast_Double, KILN_DTYPE_F64)
KILN_KERNEL(is_nonzero) {
  if (SELF->numel != 1) {
    return KILN_OP_FAIL("Boolean value of Tensor with %s is ambiguous",
                        SELF->numel ? "more than one value" : "no values");
  }
  double re, im;
  KILN_TRY(kiln_tensor_item_c128(SELF, &re, &im));
  return kiln__give_bool(outs, re != 0 || im != 0);
}

/* -- Written in place -- */

KILN_KERNEL(give_self) { return kiln__give(outs, kiln_tensor_retain(SELF)); }
KILN_KERNEL(give_false) { return kiln__give_bool(outs, false); }
