/* table_isa.c: the kernels of one instruction set, in a table. Who names a table has its kernels
 * alone: a program made ahead of time runs on one. */
#include "runtime/kernels/isa.h"

#define NAME(stem) KILN_ISA_CAT2(stem, KILN_KERNEL_ISA)
#if KILN_KERNEL_LEVEL > 0
#define GROUPED &NAME(kiln__grouped_)
#else
#define GROUPED NULL
#endif

const kiln_dispatch NAME(kiln__dispatch_) = {.isa = (kiln_isa)KILN_KERNEL_LEVEL,
                                             .loops = {[KILN_CTYPE_BOOL] = NAME(kiln__pw_b8_),
                                                       [KILN_CTYPE_I32] = NAME(kiln__pw_i32_),
                                                       [KILN_CTYPE_I64] = NAME(kiln__pw_i64_),
                                                       [KILN_CTYPE_F32] = NAME(kiln__pw_f32_),
                                                       [KILN_CTYPE_F64] = NAME(kiln__pw_f64_),
                                                       [KILN_CTYPE_C64] = NAME(kiln__pw_c64_),
                                                       [KILN_CTYPE_C128] = NAME(kiln__pw_c128_)},
                                             .load = NAME(kiln__load_),
                                             .store = NAME(kiln__store_),
                                             .reduce = NAME(kiln__reduce_),
                                             .places = NAME(kiln__places_),
                                             .rows_f32 = &NAME(kiln__rows_f32_),
                                             .rows_f64 = &NAME(kiln__rows_f64_),
                                             .gemm_f32 = NAME(kiln__gemm_f32_),
                                             .gemm_f64 = NAME(kiln__gemm_f64_),
                                             .conv_f32 = NAME(kiln__conv_f32_),
                                             .conv_f64 = NAME(kiln__conv_f64_),
                                             .blocked = &NAME(kiln__blocked_),
                                             .winograd = &NAME(kiln__winograd_),
                                             .grouped = GROUPED,
                                             .recurrent = NAME(kiln__recurrent_)};
