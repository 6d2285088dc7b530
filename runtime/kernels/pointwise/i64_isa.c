/* i64_isa.c: the pointwise loops on int64_t; smaller integers are computed in int32. */
#include "runtime/kernels/dispatch.h"

#define KILN_PW_T int64_t
#define KILN_PW_U uint64_t
#define KILN_PW_TAG i64
#define KILN_PW_IS_INT 1
#include "runtime/kernels/pointwise/int_functors.h"
#include "runtime/kernels/pointwise/loops.h"
