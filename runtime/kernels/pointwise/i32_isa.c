/* i32_isa.c: the pointwise loops on int32_t; smaller integers are computed in int32. */
#include "runtime/kernels/dispatch.h"

#define KILN_PW_T int32_t
#define KILN_PW_U uint32_t
#define KILN_PW_TAG i32
#define KILN_PW_IS_INT 1
#include "runtime/kernels/pointwise/int_functors.h"
#include "runtime/kernels/pointwise/loops.h"
