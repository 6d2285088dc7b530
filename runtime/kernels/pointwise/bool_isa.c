/* bool_isa.c: the pointwise loops on bool, stored as the bytes 0 and 1. */
#include "runtime/kernels/dispatch.h"

#define KILN_PW_T uint8_t
#define KILN_PW_TAG b8
#define KILN_PW_IS_BOOL 1
#include "runtime/kernels/pointwise/loops.h"
