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
    case KILN_LOOP_exp_normal: return exp(a);
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
    case KILN_LOOP_ndtr:
      return (double)(erfcl(-(long double)a * 0.70710678118654752440084436L) / 2);
    case KILN_LOOP_gelu:
      return (double)(erfcl(-(long double)a * 0.70710678118654752440084436L) / 2 * (long double)a);
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

/* -- An instruction that computes with numbers -- */

/* Of a float type `f`, of all others `i`. */
typedef union plain_element {
  double f;
  int64_t i;
} plain_element;

static inline bool plain_is_float(kiln_dtype dtype) {
  return kiln_loop_class(dtype) == KILN_LOOP_CLASS_F;
}
static inline int64_t plain_int(kiln_loop_opcode op, kiln_dtype dtype, int64_t a, int64_t b) {
  const uint64_t u = (uint64_t)a, v = (uint64_t)b;
  switch (op) {
    case KILN_LOOP_add: return plain_wrap(dtype, u + v);
    case KILN_LOOP_sub: return plain_wrap(dtype, u - v);
    case KILN_LOOP_mul: return plain_wrap(dtype, u * v);
    case KILN_LOOP_quot: return b == 0 ? 0 : plain_wrap(dtype, b == -1 ? 0 - u : (uint64_t)(a / b));
    case KILN_LOOP_neg: return plain_wrap(dtype, 0 - u);
    case KILN_LOOP_abs: return plain_wrap(dtype, a < 0 ? 0 - u : u);
    case KILN_LOOP_min: return a < b ? a : b;
    case KILN_LOOP_max: return a > b ? a : b;
    case KILN_LOOP_and: return a & b;
    case KILN_LOOP_or: return a | b;
    case KILN_LOOP_xor: return a ^ b;
    case KILN_LOOP_not: return plain_wrap(dtype, ~u);
    default: fail_msg("no plain C for %s of integers", kiln_loop_ops[op].name); return 0;
  }
}
/* Of numbers of which one is less (-1), both are equal (0) or one is greater (1); 2: neither. */
static inline bool plain_compare(kiln_loop_opcode op, int order) {
  switch (op) {
    case KILN_LOOP_eq: return order == 0;
    case KILN_LOOP_ne: return order != 0;
    case KILN_LOOP_lt: return order == -1;
    case KILN_LOOP_le: return order == -1 || order == 0;
    case KILN_LOOP_gt: return order == 1;
    default: return order == 1 || order == 0;
  }
}
static inline int plain_order(kiln_dtype dtype, plain_element a, plain_element b) {
  if (!plain_is_float(dtype)) return a.i < b.i ? -1 : a.i > b.i;
  return a.f < b.f ? -1 : a.f > b.f ? 1 : a.f == b.f ? 0 : 2;
}
static inline plain_element plain_cast(kiln_dtype from, kiln_dtype to, plain_element a) {
  const double d = plain_is_float(from) ? a.f : (double)a.i;
  if (to == KILN_DTYPE_F64) return (plain_element){.f = d};
  if (to == KILN_DTYPE_F32)
    return (plain_element){.f = plain_is_float(from) ? (double)(float)d : (double)(float)a.i};
  if (to == KILN_DTYPE_BOOL) return (plain_element){.i = d != 0};
  return (plain_element){.i = plain_wrap(to, (uint64_t)a.i)};
}
/* Of operands of the type `from`: constants, casts, and rules SAME, COMPARE and SELECT. */
static inline plain_element plain_inst(const kiln_loop_inst *inst, kiln_dtype from, plain_element a,
                                       plain_element b, plain_element c) {
  const kiln_loop_rule rule = kiln_loop_ops[inst->op].rule;
  if (inst->op == KILN_LOOP_const) return (plain_element){.i = inst->imm.i};
  if (rule == KILN_LOOP_RULE_SELECT) return a.i ? b : c;
  if (rule == KILN_LOOP_RULE_CAST) return plain_cast(from, inst->dtype, a);
  if (rule == KILN_LOOP_RULE_COMPARE)
    return (plain_element){.i = plain_compare(inst->op, plain_order(from, a, b))};
  if (!plain_is_float(inst->dtype))
    return (plain_element){.i = plain_int(inst->op, inst->dtype, a.i, b.i)};
  const double f = plain_float(inst->op, a.f, b.f);
  return (plain_element){.f = inst->dtype == KILN_DTYPE_F32 ? (double)(float)f : f};
}
