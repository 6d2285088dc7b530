/* dispatch.c: what the kernels of all instruction sets have in common. */
#include "runtime/kernels/dispatch.h"

const uint8_t kiln__pw_results[KILN_PW__COUNT] = {
#define KILN_PW(name, arity, result) KILN_PW_##result,
#include "runtime/kernels/pointwise/pointwise.def"
#undef KILN_PW
};

kiln_ctype kiln_ctype_of(kiln_dtype dtype) {
  static const int8_t ctypes[KILN_DTYPE__COUNT] = {
      [KILN_DTYPE_U8] = KILN_CTYPE_I32 + 1,    [KILN_DTYPE_I8] = KILN_CTYPE_I32 + 1,
      [KILN_DTYPE_I16] = KILN_CTYPE_I32 + 1,   [KILN_DTYPE_I32] = KILN_CTYPE_I32 + 1,
      [KILN_DTYPE_I64] = KILN_CTYPE_I64 + 1,   [KILN_DTYPE_F16] = KILN_CTYPE_F32 + 1,
      [KILN_DTYPE_F32] = KILN_CTYPE_F32 + 1,   [KILN_DTYPE_F64] = KILN_CTYPE_F64 + 1,
      [KILN_DTYPE_C32] = KILN_CTYPE_C64 + 1,   [KILN_DTYPE_C64] = KILN_CTYPE_C64 + 1,
      [KILN_DTYPE_C128] = KILN_CTYPE_C128 + 1, [KILN_DTYPE_BOOL] = KILN_CTYPE_BOOL + 1,
      [KILN_DTYPE_BF16] = KILN_CTYPE_F32 + 1,  [KILN_DTYPE_U16] = KILN_CTYPE_I32 + 1,
      [KILN_DTYPE_U32] = KILN_CTYPE_I64 + 1,   [KILN_DTYPE_U64] = KILN_CTYPE_I64 + 1,
  };
  if (dtype < 0 || dtype >= KILN_DTYPE__COUNT) return KILN_CTYPE_NONE;
  return (kiln_ctype)(ctypes[dtype] - 1);
}

#define NATIVE(dtype) [KILN_DTYPE_##dtype] = KILN_CTYPE_##dtype + 1
_Static_assert(KILN_DTYPE__COUNT <= 31, "the undefined tensor's dtype, -1, reads the last entry");
const int8_t kiln__native_ctypes[32] = {
    NATIVE(BOOL), NATIVE(I32), NATIVE(I64), NATIVE(F32), NATIVE(F64), NATIVE(C64), NATIVE(C128),
};

kiln_dtype kiln_ctype_dtype(kiln_ctype ctype) {
  static const int8_t dtypes[KILN_CTYPE__COUNT] = {
      [KILN_CTYPE_BOOL] = KILN_DTYPE_BOOL, [KILN_CTYPE_I32] = KILN_DTYPE_I32,
      [KILN_CTYPE_I64] = KILN_DTYPE_I64,   [KILN_CTYPE_F32] = KILN_DTYPE_F32,
      [KILN_CTYPE_F64] = KILN_DTYPE_F64,   [KILN_CTYPE_C64] = KILN_DTYPE_C64,
      [KILN_CTYPE_C128] = KILN_DTYPE_C128};
  return ctype == KILN_CTYPE_NONE ? KILN_DTYPE_NONE : (kiln_dtype)dtypes[ctype];
}

size_t kiln_ctype_size(kiln_ctype ctype) { return kiln_dtype_bytes(kiln_ctype_dtype(ctype)); }
