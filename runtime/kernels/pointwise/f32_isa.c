/* f32_isa.c: the pointwise loops on float. */
#include <math.h>

#include "runtime/kernels/dispatch.h"
#include "runtime/math/math.h"

#define FN(name) name##f
#define KILN_PW_T float
#define KILN_PW_TAG f32
#define KILN_PW_IS_FLOAT 1
#define KILN_PW_V kiln_f32v
#define KILN_PW_VU kiln_f32v_u
#define KILN_PW_VI kiln_i32v
#define KILN_PW_V_SUFFIX _f32v
#include "runtime/kernels/pointwise/float_functors.h"
#include "runtime/kernels/pointwise/loops.h"
