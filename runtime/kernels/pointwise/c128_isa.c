/* c128_isa.c: the pointwise loops on pairs of double. Functions are those of libm. */
#include "runtime/kernels/isa.h"

#include <complex.h>
#undef I
#include <math.h>

#define R_OF double
#define CF(name) name
#define FN(name) name
#define KILN_PW_T double _Complex
#define KILN_PW_TAG c128
#define KILN_PW_IS_COMPLEX 1

KILN_ISA_SCALAR_BEGIN
#include "runtime/kernels/pointwise/complex_functors.h"
#include "runtime/kernels/pointwise/loops.h"
KILN_ISA_SCALAR_END
