/* rows_isa.c: kernels over contiguous rows: softmax, log_softmax, layer norm, scale and shift, the
 * greatest of several. */
#include <math.h>
#include <string.h>

#include "runtime/kernels/isa.h"
#include "runtime/math/math.h"

#define JOIN(name) KILN_ISA_CAT4(name, _, TAG, KILN_KERNEL_ISA)
#define VF(name) KILN_ISA_CAT3(kiln_math_, name, V_SUFFIX)
#define VS(name) KILN_ISA_CAT4(kiln_math_, name, _, TAG)

#define TAG f32
#define T float
#define V kiln_f32v
#define VU kiln_f32v_u
#define V_SUFFIX _f32v
#define SQRT sqrtf
#define CTYPE KILN_CTYPE_F32
#include "runtime/kernels/nn/rows_isa.h"
#undef TAG
#undef T
#undef V
#undef VU
#undef V_SUFFIX
#undef SQRT
#undef CTYPE

#define TAG f64
#define T double
#define V kiln_f64v
#define VU kiln_f64v_u
#define V_SUFFIX _f64v
#define SQRT sqrt
#define CTYPE KILN_CTYPE_F64
#include "runtime/kernels/nn/rows_isa.h"
