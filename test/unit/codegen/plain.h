/* plain.h: instructions of loop IR in plain C, one element at a time, which the tests of back ends
 * hold against what these give. */
#pragma once

#include <math.h>

#include "codegen/loop/loop.h"
#include "test/unit/unit.h"

/* As an integer of that type. */
static inline int64_t plain_wrap(kiln_dtype dtype, uint64_t v) {
  switch (dtype) {
    case KILN_DTYPE_U8: return (uint8_t)v;
    case KILN_DTYPE_I8: return (int8_t)v;
    case KILN_DTYPE_I16: return (int16_t)v;
    case KILN_DTYPE_I32: return (int32_t)v;
    case KILN_DTYPE_BOOL: return v & 1;
    default: return (int64_t)v;
  }
}

/* Arithmetic on f32 is done in f64 and rounded twice, which changes nothing: 53 >= 2 x 24 + 2. */
static inline double plain_float(kiln_loop_opcode op, double a, double b) {
  switch (op) {
    case KILN_LOOP_add: return a + b;
    case KILN_LOOP_sub: return a - b;
    case KILN_LOOP_mul: return a * b;
    case KILN_LOOP_div: return a / b;
    case KILN_LOOP_neg: return -a;
    case KILN_LOOP_abs: return fabs(a);
    case KILN_LOOP_min: return isnan(a) ? a : isnan(b) ? b : a < b ? a : b;
    case KILN_LOOP_max: return isnan(a) ? a : isnan(b) ? b : a > b ? a : b;
    case KILN_LOOP_copysign: return copysign(a, b);
    case KILN_LOOP_sqrt: return sqrt(a);
    case KILN_LOOP_floor: return floor(a);
    case KILN_LOOP_ceil: return ceil(a);
    case KILN_LOOP_round: return nearbyint(a);
    case KILN_LOOP_trunc: return trunc(a);
    case KILN_LOOP_exp: return exp(a);
    case KILN_LOOP_exp2: return exp2(a);
    case KILN_LOOP_expm1: return expm1(a);
    case KILN_LOOP_log: return log(a);
    case KILN_LOOP_log1p: return log1p(a);
    case KILN_LOOP_log2: return log2(a);
    case KILN_LOOP_log10: return log10(a);
    case KILN_LOOP_tanh: return tanh(a);
    case KILN_LOOP_sigmoid: return 1 / (1 + exp(-a));
    case KILN_LOOP_erf: return erf(a);
    case KILN_LOOP_erfc: return erfc(a);
    case KILN_LOOP_sin: return sin(a);
    case KILN_LOOP_cos: return cos(a);
    case KILN_LOOP_tan: return tan(a);
    case KILN_LOOP_asin: return asin(a);
    case KILN_LOOP_acos: return acos(a);
    case KILN_LOOP_atan: return atan(a);
    case KILN_LOOP_sinh: return sinh(a);
    case KILN_LOOP_cosh: return cosh(a);
    case KILN_LOOP_atan2: return atan2(a, b);
    case KILN_LOOP_pow: return pow(a, b);
    default: fail_msg("no plain C for %s of floats", kiln_loop_ops[op].name); return 0;
  }
}
