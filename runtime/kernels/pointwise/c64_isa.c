/* c64_isa.c: the pointwise loops on pairs of float. Functions are those of libm. */
#include "runtime/kernels/isa.h"

#include <complex.h>
#undef I
#include <math.h>

#define R_OF float
#define CF(name) name##f
#define FN(name) name##f
#define KILN_PW_T float _Complex
#define KILN_PW_TAG c64
#define KILN_PW_IS_COMPLEX 1

KILN_ISA_SCALAR_BEGIN
#include "runtime/kernels/pointwise/complex_functors.h"
#include "runtime/kernels/pointwise/loops.h"
KILN_ISA_SCALAR_END
