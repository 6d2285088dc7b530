/* dispatch.c: the tables of kernels, one for each instruction set. */
#include "runtime/kernels/dispatch.h"

#include "runtime/kernels/isa.h"

#define TABLE(name, token)                               \
  {.isa = KILN_ISA_##name,                               \
   .loops = {[KILN_CTYPE_BOOL] = kiln__pw_b8_##token,    \
             [KILN_CTYPE_I32] = kiln__pw_i32_##token,    \
             [KILN_CTYPE_I64] = kiln__pw_i64_##token,    \
             [KILN_CTYPE_F32] = kiln__pw_f32_##token,    \
             [KILN_CTYPE_F64] = kiln__pw_f64_##token,    \
             [KILN_CTYPE_C64] = kiln__pw_c64_##token,    \
             [KILN_CTYPE_C128] = kiln__pw_c128_##token}, \
   .load = kiln__load_##token,                           \
   .store = kiln__store_##token,                         \
   .reduce = kiln__reduce_##token,                       \
   .places = kiln__places_##token,                       \
   .rows_f32 = &kiln__rows_f32_##token,                  \
   .rows_f64 = &kiln__rows_f64_##token,                  \
   .gemm_f32 = kiln__gemm_f32_##token,                   \
   .gemm_f64 = kiln__gemm_f64_##token,                   \
   .conv_f32 = kiln__conv_f32_##token,                   \
   .conv_f64 = kiln__conv_f64_##token,                   \
   .blocked = &kiln__blocked_##token,                    \
   .winograd = &kiln__winograd_##token}

/* Those that the build's option isa asks for. */
static const kiln_dispatch tables[] = {
    TABLE(V2, v2),
#if defined(__x86_64__)
    TABLE(AVX2, avx2),
#if KILN_KERNEL_ISAS > 2
    TABLE(AVX512, avx512),
#endif
#endif
};

const kiln_dispatch *kiln_dispatch_select(kiln_isa isa) {
  size_t index = (size_t)isa, count = sizeof tables / sizeof *tables;
  return &tables[index < count ? index : count - 1];
}

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
