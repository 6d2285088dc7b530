/* lower_pointwise.c: arithmetic, comparisons, selection, one-argument functions. Each follows the
 * interpreter's kernel of that name (runtime/kernels/pointwise/pointwise.def) to the bit: the same
 * operations in the same order, in the same promoted type. */
#include "codegen/lower_pointwise.h"

#include <float.h>
#include <math.h>

#include "runtime/half.h"

int kiln__lower_operand(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                        kiln_dtype common) {
  if (kiln__lower_is_tensor(node, i)) {
    int value = kiln__lower_input(l, node, i, map, common);
    return kiln__lower_cast(l, value, kiln__lower_compute(common));
  }
  return kiln__lower_input(l, node, i, map, kiln__lower_compute(common));
}

/* Input i, a number that is no operand: its dtype must hold it. */
static int parameter(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                     kiln_dtype common) {
  double value;
  if (kiln_dtype_is_int(common, true) || common == KILN_DTYPE_F16) {
    if (!kiln__lower_number(l, node, i, &value)) return -1;
    if (!kiln__lower_holds(common, value)) {
      return kiln__lower_refuse(l, KILN_REASON_number_too_large);
    }
  }
  return kiln__lower_operand(l, node, i, map, common);
}

operands kiln__lower_operands(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                              int count, bool to_float) {
  operands p = {.a = -1, .b = -1, .c = -1};
  p.common = count > 1 ? kiln__lower_promote(node, 0, count) : kiln__lower_input_dtype(node, 0);
  if (to_float && p.common != KILN_DTYPE_NONE) p.common = kiln_dtype_to_float(p.common);
  if (!kiln_loop_class(p.common)) {
    kiln__lower_refuse(l, KILN_REASON_dtype);
    return p;
  }
  p.a = kiln__lower_operand(l, node, 0, map, p.common);
  if (count > 1) p.b = kiln__lower_operand(l, node, 1, map, p.common);
  if (count > 2) p.c = kiln__lower_operand(l, node, 2, map, p.common);
  return p;
}

/* Of sums, products and quotients: a second tensor without dimensions is not rounded to a half
 * first. */
static operands two_exact(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                          bool to_float) {
  operands p = kiln__lower_operands(l, node, map, 2, to_float);
  if (p.b < 0 || !kiln__lower_is_tensor(node, 1)) return p;
  const kiln_tensor_detail *detail = kiln_node_input(node, 1)->type->detail;
  if (detail && detail->rank == 0) {
    p.b = kiln__lower_input(l, node, 1, map, kiln__lower_compute(p.common));
  }
  return p;
}

/* -- Sums and products -- */

/* alpha * value, nothing where alpha is 1. */
static int times_alpha(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                       kiln_dtype common, int value) {
  double alpha;
  const kiln_ivalue *constant =
      node->input_count > 2 ? kiln_ir_value_constant(kiln_node_input(node, 2)) : NULL;
  if (node->input_count <= 2) return value;
  if (constant) {
    if (!kiln__lower_number(l, node, 2, &alpha)) return -1;
    if (alpha == 1) return value;
    if (constant->tag == KILN_TAG_FLOAT && kiln_dtype_is_int(common, true))
      return kiln__lower_refuse(l, KILN_REASON_raises);
  }
  int factor = parameter(l, node, 2, map, common);
  return common == KILN_DTYPE_BOOL ? OP2(and, factor, value) : OP2(mul, factor, value);
}

KILN__LOWER(add) {
  operands p = two_exact(l, node, map, false);
  int b = times_alpha(l, node, map, p.common, p.b);
  return finish(l, p.common == KILN_DTYPE_BOOL ? OP2(or, p.a, b) : OP2(add, p.a, b), p.common);
}
KILN__LOWER(sub) {
  operands p = two_exact(l, node, map, false);
  return finish(l, OP2(sub, p.a, times_alpha(l, node, map, p.common, p.b)), p.common);
}
KILN__LOWER(rsub) {
  operands p = kiln__lower_operands(l, node, map, 2, false);
  return finish(l, OP2(sub, p.b, times_alpha(l, node, map, p.common, p.a)), p.common);
}
KILN__LOWER(mul) {
  operands p = two_exact(l, node, map, false);
  return finish(l, p.common == KILN_DTYPE_BOOL ? OP2(and, p.a, p.b) : OP2(mul, p.a, p.b), p.common);
}
KILN__LOWER(div) {
  operands p = two_exact(l, node, map, true);
  return finish(l, OP2(div, p.a, p.b), p.common);
}
#define FLOATING_PAIR(name)                                   \
  KILN__LOWER(name) {                                         \
    operands p = kiln__lower_operands(l, node, map, 2, true); \
    return finish(l, OP2(name, p.a, p.b), p.common);          \
  }
FLOATING_PAIR(atan2)
FLOATING_PAIR(copysign)
KILN__LOWER(maximum) {
  operands p = kiln__lower_operands(l, node, map, 2, false);
  return finish(l, p.common == KILN_DTYPE_BOOL ? OP2(or, p.a, p.b) : OP2(max, p.a, p.b), p.common);
}
KILN__LOWER(minimum) {
  operands p = kiln__lower_operands(l, node, map, 2, false);
  return finish(l, p.common == KILN_DTYPE_BOOL ? OP2(and, p.a, p.b) : OP2(min, p.a, p.b), p.common);
}

/* Of a number and NaN the number. */
#define NUMBER_OF_TWO(name, of_bools, beyond)                        \
  KILN__LOWER(name) {                                                \
    operands p = kiln__lower_operands(l, node, map, 2, false);       \
    if (p.common == KILN_DTYPE_BOOL) return OP2(of_bools, p.a, p.b); \
    int first = OP2(or, OP2(beyond, p.a, p.b), OP2(ne, p.b, p.b));   \
    return finish(l, SELECT(first, p.a, p.b), p.common);             \
  }
NUMBER_OF_TWO(fmax, or, gt)
NUMBER_OF_TWO(fmin, and, lt)

KILN__LOWER(heaviside) {
  operands p = kiln__lower_operands(l, node, map, 2, false);
  if (p.common == KILN_DTYPE_BOOL) return OP2(or, p.a, p.b);
  int zero = kiln__lower_like(l, p.a, 0), one = kiln__lower_like(l, p.a, 1);
  return finish(l, SELECT(OP2(eq, p.a, zero), p.b, SELECT(OP2(gt, p.a, zero), one, zero)),
                p.common);
}
/* x * log(y), 0 where x is. */
KILN__LOWER(xlogy) {
  operands p = kiln__lower_operands(l, node, map, 2, true);
  int zero = kiln__lower_like(l, p.a, 0), product = OP2(mul, p.a, OP1(log, p.b));
  int value = SELECT(OP2(eq, p.a, zero), zero, product);
  return finish(l, SELECT(OP2(ne, p.b, p.b), p.b, value), p.common);
}
KILN__LOWER(logaddexp) {
  operands p = kiln__lower_operands(l, node, map, 2, false);
  if (kiln_dtype_is_int(p.common, true)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  int most = SELECT(OP2(lt, p.a, p.b), p.b, p.a), apart = OP1(abs, OP2(sub, p.a, p.b));
  int sum = OP2(add, most, OP1(log1p, OP1(exp, OP1(neg, apart))));
  int infinite = OP2(eq, OP1(abs, p.a), kiln__lower_like(l, p.a, __builtin_inf()));
  return finish(l, SELECT(OP2(and, infinite, OP2(eq, p.a, p.b)), p.a, sum), p.common);
}

/* -- Quotients of whole numbers, remainders -- */

/* Integers by a constant, which cannot be 0: a division by that is an error. Floats have a quotient
 * that is cut; a floor and remainders are made of an exact one. */
typedef enum rounding { CUT, DOWN } rounding;
typedef struct division {
  operands p;
  int quotient, rest; /* of integers: cut, and what is left */
  bool below_zero;    /* the divisor */
} division;
/* By a constant that is not 0. */
static void cut(kiln__lowering *l, division *d) {
  d->quotient = OP2(quot, d->p.a, d->p.b);
  d->rest = OP2(sub, d->p.a, OP2(mul, d->quotient, d->p.b));
}
static bool divide(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                   division *out) {
  double by;
  *out = (division){.p = two_exact(l, node, map, false), .quotient = -1, .rest = -1};
  const kiln_dtype common = out->p.common;
  if (out->p.b < 0 || !kiln_dtype_is_int(common, false)) {
    if (common == KILN_DTYPE_BOOL) kiln__lower_refuse(l, KILN_REASON_raises);
    return l->reason == KILN_REASON_none;
  }
  if (kiln__lower_is_tensor(node, 1)) return kiln__lower_refuse(l, KILN_REASON_no_division) == 0;
  if (!kiln__lower_number(l, node, 1, &by)) return false;
  if (by == 0) return kiln__lower_refuse(l, KILN_REASON_raises) == 0;
  if (!kiln__lower_holds(common, by))
    return kiln__lower_refuse(l, KILN_REASON_number_too_large) == 0;
  out->below_zero = by < 0;
  cut(l, out);
  return true;
}
/* Where the cut quotient of integers is above the exact one. */
static int is_above(kiln__lowering *l, const division *d) {
  const int zero = kiln__lower_like(l, d->rest, 0);
  return d->below_zero ? OP2(gt, d->rest, zero) : OP2(lt, d->rest, zero);
}
static int floor_of(kiln__lowering *l, const division *d) {
  return OP2(sub, d->quotient, kiln__lower_cast(l, is_above(l, d), d->p.common));
}
static int quotient_of(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                       rounding how) {
  division d;
  if (!divide(l, node, map, &d)) return -1;
  if (d.quotient >= 0) return how == CUT ? d.quotient : floor_of(l, &d);
  if (how == DOWN) return kiln__lower_refuse(l, KILN_REASON_no_division);
  return finish(l, OP1(trunc, OP2(div, d.p.a, d.p.b)), d.p.common);
}
KILN__LOWER(floor_divide) { return quotient_of(l, node, map, DOWN); }
KILN__LOWER(div_mode) {
  const kiln_ivalue *mode = kiln_ir_value_constant(kiln_node_input(node, 2));
  if (!mode) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (mode->tag == KILN_TAG_NONE) return kiln__lower_div(l, node, map);
  const kiln_str name = kiln_string_view(mode->u.string);
  if (kiln_str_is(name, "trunc")) return quotient_of(l, node, map, CUT);
  if (kiln_str_is(name, "floor")) return quotient_of(l, node, map, DOWN);
  return kiln__lower_refuse(l, KILN_REASON_raises);
}
/* The sign is the divisor's, or of fmod the dividend's. */
static int rest_of(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                   rounding how) {
  division d;
  if (!divide(l, node, map, &d)) return -1;
  if (d.quotient < 0) return kiln__lower_refuse(l, KILN_REASON_no_division);
  return how == CUT ? d.rest : SELECT(is_above(l, &d), OP2(add, d.rest, d.p.b), d.rest);
}
KILN__LOWER(remainder) { return rest_of(l, node, map, DOWN); }
KILN__LOWER(fmod) { return rest_of(l, node, map, CUT); }

/* By a constant number of bits: a product, and a quotient that goes down. */
static bool read_shift(kiln__lowering *l, const kiln_node *node, kiln_dtype common, int *out) {
  const int bits = 8 * (int)kiln_dtype_bytes(common);
  int64_t by;
  if (!kiln_dtype_is_int(common, false)) return kiln__lower_refuse(l, KILN_REASON_dtype) == 0;
  if (kiln__lower_is_tensor(node, 1)) return kiln__lower_refuse(l, KILN_REASON_no_division) == 0;
  if (!kiln_ir_value_const_int(kiln_node_input(node, 1), &by))
    return kiln__lower_refuse(l, KILN_REASON_not_constant) == 0;
  if (!kiln__lower_holds(common, (double)by))
    return kiln__lower_refuse(l, KILN_REASON_number_too_large) == 0;
  *out = by < 0 || by >= bits ? bits : (int)by;
  return true;
}
static int power_of_two(kiln__lowering *l, int like, int exponent) {
  return kiln_loop_const_i(l->fn, l->nest, kiln__lower_dtype_of(l, like), INT64_C(1) << exponent);
}
KILN__LOWER(shift_left) {
  operands p = kiln__lower_operands(l, node, map, 2, false);
  int by;
  if (p.b < 0 || !read_shift(l, node, p.common, &by)) return -1;
  const int bits = 8 * (int)kiln_dtype_bytes(p.common);
  if (by == bits) return kiln__lower_like(l, p.a, 0);
  if (by == bits - 1 && p.common != KILN_DTYPE_U8)
    return kiln__lower_refuse(l, KILN_REASON_no_division);
  return OP2(mul, p.a, power_of_two(l, p.a, by));
}
KILN__LOWER(shift_right) {
  operands p = kiln__lower_operands(l, node, map, 2, false);
  int by;
  if (p.b < 0 || !read_shift(l, node, p.common, &by)) return -1;
  const int bits = 8 * (int)kiln_dtype_bytes(p.common);
  const int zero = kiln__lower_like(l, p.a, 0), below = OP2(lt, p.a, zero);
  if (by == bits && p.common == KILN_DTYPE_U8) return zero;
  if (by >= bits - 1 && p.common != KILN_DTYPE_U8)
    return SELECT(below, kiln__lower_like(l, p.a, -1), zero);
  division d = {.p = p};
  d.p.b = power_of_two(l, p.a, by);
  cut(l, &d);
  return floor_of(l, &d);
}

/* Cheap powers of constants, as the interpreter chooses them. */
static int power(kiln__lowering *l, const kiln_node *node, operands p) {
  if (!kiln__lower_is_tensor(node, 1)) {
    double e;
    if (!kiln__lower_number(l, node, 1, &e)) return -1;
    if (kiln_dtype_is_half(p.common) && !kiln__lower_holds(p.common, e)) {
      return kiln__lower_refuse(l, KILN_REASON_number_too_large);
    }
    int x = p.a, one;
    if (e == 1) return finish(l, x, p.common);
    if (e == 2) return finish(l, OP2(mul, x, x), p.common);
    if (e == 3) return finish(l, OP2(mul, OP2(mul, x, x), x), p.common);
    if (kiln_dtype_is_int(p.common, true)) return kiln__lower_refuse(l, KILN_REASON_dtype);
    one = kiln__lower_like(l, x, 1);
    if (e == 0.5) return finish(l, OP1(sqrt, x), p.common);
    if (e == -0.5) return finish(l, OP2(div, one, OP1(sqrt, x)), p.common);
    if (e == -1) return finish(l, OP2(div, one, x), p.common);
    if (e == -2) return finish(l, OP2(div, one, OP2(mul, x, x)), p.common);
  }
  return finish(l, OP2(pow, p.a, p.b), p.common);
}
KILN__LOWER(pow) { return power(l, node, kiln__lower_operands(l, node, map, 2, false)); }
KILN__LOWER(float_power) {
  operands p = {.common = KILN_DTYPE_F64};
  p.a = kiln__lower_operand(l, node, 0, map, p.common);
  p.b = kiln__lower_operand(l, node, 1, map, p.common);
  return power(l, node, p);
}

/* -- Comparisons, truth, bits -- */

#define DIRECT(name, opcode)                                   \
  KILN__LOWER(name) {                                          \
    operands p = kiln__lower_operands(l, node, map, 2, false); \
    return OP2(opcode, p.a, p.b);                              \
  }
DIRECT(eq, eq)
DIRECT(ne, ne)
DIRECT(lt, lt)
DIRECT(le, le)
DIRECT(gt, gt)
DIRECT(ge, ge)
DIRECT(bitwise_and, and)
DIRECT(bitwise_or, or)
DIRECT(bitwise_xor, xor)

#define LOGICAL(name, opcode)                                     \
  KILN__LOWER(name) {                                             \
    operands p = kiln__lower_operands(l, node, map, 2, false);    \
    return OP2(opcode, kiln__lower_cast(l, p.a, KILN_DTYPE_BOOL), \
               kiln__lower_cast(l, p.b, KILN_DTYPE_BOOL));        \
  }
LOGICAL(logical_and, and)
LOGICAL(logical_or, or)
LOGICAL(logical_xor, xor)

/* -- One argument -- */

#define FLOATING(name)                                        \
  KILN__LOWER(name) {                                         \
    operands p = kiln__lower_operands(l, node, map, 1, true); \
    return finish(l, OP1(name, p.a), p.common);               \
  }
FLOATING(exp)
FLOATING(exp2)
FLOATING(expm1)
FLOATING(log)
FLOATING(log2)
FLOATING(log10)
FLOATING(log1p)
FLOATING(sqrt)
FLOATING(sin)
FLOATING(cos)
FLOATING(tan)
FLOATING(asin)
FLOATING(acos)
FLOATING(atan)
FLOATING(sinh)
FLOATING(cosh)
FLOATING(tanh)
FLOATING(erf)
FLOATING(erfc)
FLOATING(sigmoid)

/* Integers are whole already. */
#define ROUNDING(name)                                         \
  KILN__LOWER(name) {                                          \
    operands p = kiln__lower_operands(l, node, map, 1, false); \
    if (kiln_dtype_is_int(p.common, false)) return p.a;        \
    return finish(l, OP1(name, p.a), p.common);                \
  }
ROUNDING(floor)
ROUNDING(ceil)
ROUNDING(round)
ROUNDING(trunc)

KILN__LOWER(rsqrt) {
  operands p = kiln__lower_operands(l, node, map, 1, true);
  return finish(l, OP2(div, kiln__lower_like(l, p.a, 1), OP1(sqrt, p.a)), p.common);
}
KILN__LOWER(reciprocal) {
  operands p = kiln__lower_operands(l, node, map, 1, true);
  return finish(l, OP2(div, kiln__lower_like(l, p.a, 1), p.a), p.common);
}
KILN__LOWER(neg) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  return finish(l, OP1(neg, p.a), p.common);
}
KILN__LOWER(abs) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  return p.common == KILN_DTYPE_BOOL ? p.a : finish(l, OP1(abs, p.a), p.common);
}
KILN__LOWER(sign) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  if (p.common == KILN_DTYPE_BOOL) return p.a;
  int zero = kiln__lower_like(l, p.a, 0);
  if (p.common == KILN_DTYPE_U8) {
    return SELECT(OP2(gt, p.a, zero), kiln__lower_like(l, p.a, 1), zero);
  }
  int negative = SELECT(OP2(lt, p.a, zero), kiln__lower_like(l, p.a, -1), zero);
  return finish(l, SELECT(OP2(gt, p.a, zero), kiln__lower_like(l, p.a, 1), negative), p.common);
}
KILN__LOWER(square) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  if (p.common == KILN_DTYPE_BOOL) return p.a;
  return finish(l, OP2(mul, p.a, p.a), p.common);
}
KILN__LOWER(frac) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  return finish(l, OP2(sub, p.a, OP1(trunc, p.a)), p.common);
}
KILN__LOWER(bitwise_not) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  return OP1(not, p.a);
}
KILN__LOWER(logical_not) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  return OP1(not, kiln__lower_cast(l, p.a, KILN_DTYPE_BOOL));
}
KILN__LOWER(isnan) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  return OP2(ne, p.a, p.a);
}
KILN__LOWER(isinf) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  if (kiln_dtype_is_int(p.common, true)) return kiln__lower_const(l, KILN_DTYPE_BOOL, 0);
  return OP2(eq, OP1(abs, p.a), kiln__lower_like(l, p.a, __builtin_inf()));
}
KILN__LOWER(isfinite) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  if (kiln_dtype_is_int(p.common, true)) return kiln__lower_const(l, KILN_DTYPE_BOOL, 1);
  return OP2(lt, OP1(abs, p.a), kiln__lower_like(l, p.a, __builtin_inf()));
}

/* Of a sort of number that integers have none of. */
#define QUESTION(name, expression)                                                          \
  KILN__LOWER(name) {                                                                       \
    operands p = kiln__lower_operands(l, node, map, 1, false);                              \
    if (kiln_dtype_is_int(p.common, true)) return kiln__lower_const(l, KILN_DTYPE_BOOL, 0); \
    return expression;                                                                      \
  }
QUESTION(isposinf, OP2(eq, p.a, kiln__lower_like(l, p.a, __builtin_inf())))
QUESTION(isneginf, OP2(eq, p.a, kiln__lower_like(l, p.a, -__builtin_inf())))
KILN__LOWER(signbit) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  int zero = p.common == KILN_DTYPE_BOOL ? -1 : kiln__lower_like(l, p.a, 0);
  if (p.common == KILN_DTYPE_BOOL) return kiln__lower_const(l, KILN_DTYPE_BOOL, 0);
  if (kiln_dtype_is_int(p.common, false)) return OP2(lt, p.a, zero);
  return OP2(lt, OP2(copysign, kiln__lower_like(l, p.a, 1), p.a), zero);
}
KILN__LOWER(sinc) {
  operands p = kiln__lower_operands(l, node, map, 1, true);
  int u = OP2(mul, p.a, kiln__lower_like(l, p.a, 3.14159265358979323846));
  int value = OP2(div, OP1(sin, u), u);
  return finish(l, SELECT(OP2(eq, u, kiln__lower_like(l, u, 0)), kiln__lower_like(l, u, 1), value),
                p.common);
}
#define SCALED(name, factor)                                                     \
  KILN__LOWER(name) {                                                            \
    operands p = kiln__lower_operands(l, node, map, 1, true);                    \
    return finish(l, OP2(mul, p.a, kiln__lower_like(l, p.a, factor)), p.common); \
  }
SCALED(deg2rad, 3.14159265358979323846 / 180)
SCALED(rad2deg, 180 / 3.14159265358979323846)

/* log(x / (1 - x)), of x between eps and 1 - eps where there is an eps. */
KILN__LOWER(logit) {
  double eps = -1;
  if (!kiln__lower_is_none(node, 1) && !kiln__lower_number(l, node, 1, &eps)) return -1;
  operands p = kiln__lower_operands(l, node, map, 1, true);
  int x = p.a, one = kiln__lower_like(l, x, 1);
  if (eps != eps) return kiln__lower_refuse(l, KILN_REASON_nan);
  if (eps >= 0) {
    int low = kiln__lower_like(l, x, eps), high = OP2(sub, one, low);
    x = SELECT(OP2(lt, x, low), low, SELECT(OP2(gt, x, high), high, x));
  }
  return finish(l, OP1(log, OP2(div, x, OP2(sub, one, x))), p.common);
}
/* nan, posinf, neginf: None stands for 0 and the greatest numbers of the type. */
KILN__LOWER(nan_to_num) {
  operands p = kiln__lower_operands(l, node, map, 1, false);
  if (kiln_dtype_is_int(p.common, true)) return p.a;
  const double most = kiln_float_greatest(p.common);
  double numbers[3] = {0, most, -most};
  for (int i = 0; i < 3; i++) {
    const bool given = !kiln__lower_is_none(node, i + 1);
    if (given && !kiln__lower_number(l, node, i + 1, &numbers[i])) return -1;
  }
  int infinity = kiln__lower_like(l, p.a, __builtin_inf());
  int x = SELECT(OP2(eq, p.a, OP1(neg, infinity)), kiln__lower_like(l, p.a, numbers[2]), p.a);
  x = SELECT(OP2(eq, p.a, infinity), kiln__lower_like(l, p.a, numbers[1]), x);
  return finish(l, SELECT(OP2(ne, p.a, p.a), kiln__lower_like(l, p.a, numbers[0]), x), p.common);
}
KILN__LOWER(round_decimals) {
  double decimals;
  if (!kiln__lower_number(l, node, 1, &decimals)) return -1;
  if (decimals == 0) return kiln__lower_round(l, node, map);
  operands p = kiln__lower_operands(l, node, map, 1, false);
  if (kiln_dtype_is_int(p.common, true)) return kiln__lower_refuse(l, KILN_REASON_raises);
  int scale = kiln__lower_like(l, p.a, pow(10, fabs(decimals)));
  int value = decimals < 0 ? OP2(mul, OP1(round, OP2(div, p.a, scale)), scale)
                           : OP2(div, OP1(round, OP2(mul, p.a, scale)), scale);
  return finish(l, value, p.common);
}

/* -- Selection -- */

KILN__LOWER(where) {
  kiln_dtype common = kiln__lower_promote(node, 1, 2);
  if (!kiln_loop_class(common)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  int mask = kiln__lower_input(l, node, 0, map, KILN_DTYPE_BOOL);
  int a = kiln__lower_operand(l, node, 1, map, common),
      b = kiln__lower_operand(l, node, 2, map, common);
  return finish(l, SELECT(mask, a, b), common);
}
/* Whether an element of the tensor may not fit into the dtype, of which the interpreter complains.
 * A double that a trace keeps for float32 is known. */
static bool may_overflow(const kiln_node *node, int i, kiln_dtype dtype) {
  const kiln_dtype own = kiln__lower_input_dtype(node, i);
  const kiln_ivalue *c = kiln_ir_value_constant(kiln_node_input(node, i));
  double value = 0;
  if (kiln_dtype_promote(own, dtype) == dtype) return false;
  if (!c || c->tag != KILN_TAG_TENSOR || c->u.tensor->numel != 1 || own != KILN_DTYPE_F64 ||
      dtype != KILN_DTYPE_F32)
    return true;
  kiln_status *status = kiln_tensor_item_f64(c->u.tensor, &value);
  kiln_status_destroy(status);
  return status || (fabs(value) > (double)FLT_MAX && !isinf(value));
}
KILN__LOWER(masked_fill) {
  kiln_dtype common = kiln__lower_input_dtype(node, 0);
  if (!kiln_loop_class(common)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (kiln__lower_is_tensor(node, 2) && may_overflow(node, 2, common))
    return kiln__lower_refuse(l, KILN_REASON_no_complaint);
  int mask = kiln__lower_input(l, node, 1, map, KILN_DTYPE_BOOL);
  int self = kiln__lower_operand(l, node, 0, map, common);
  int value = kiln__lower_is_tensor(node, 2) ? kiln__lower_operand(l, node, 2, map, common)
                                             : parameter(l, node, 2, map, common);
  return finish(l, SELECT(mask, value, self), common);
}

/* -- Three arguments -- */

KILN__LOWER(addcmul) {
  operands p = kiln__lower_operands(l, node, map, 3, false);
  int value = parameter(l, node, 3, map, p.common);
  bool whole = kiln_dtype_is_int(p.common, true);
  int product = whole ? OP2(mul, value, OP2(mul, p.b, p.c)) : OP2(mul, OP2(mul, value, p.b), p.c);
  return finish(l, OP2(add, p.a, product), p.common);
}
KILN__LOWER(addcdiv) {
  operands p = kiln__lower_operands(l, node, map, 3, false);
  int value = parameter(l, node, 3, map, p.common);
  return finish(l, OP2(add, p.a, OP2(div, OP2(mul, value, p.b), p.c)), p.common);
}
KILN__LOWER(lerp) {
  /* What is refused, and what becomes of numbers, the interpreter knows. */
  for (int i = 1; i < 3; i++) {
    if (!kiln__lower_is_tensor(node, i)) continue;
    const kiln_tensor_detail *detail = kiln_node_input(node, i)->type->detail;
    if ((i == 1 || !detail || detail->rank > 0) &&
        kiln__lower_input_dtype(node, i) != kiln__lower_input_dtype(node, 0)) {
      return kiln__lower_refuse(l, KILN_REASON_dtype);
    }
  }
  if (!kiln__lower_is_tensor(node, 2) &&
      kiln__lower_promote(node, 0, 3) != kiln__lower_input_dtype(node, 0)) {
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  }
  operands p = kiln__lower_operands(l, node, map, 3, false);
  int step = OP2(sub, p.b, p.a);
  int near = OP2(add, p.a, OP2(mul, p.c, step));
  int far = OP2(sub, p.b, OP2(mul, step, OP2(sub, kiln__lower_like(l, p.c, 1), p.c)));
  return finish(l, SELECT(OP2(lt, p.c, kiln__lower_like(l, p.c, 0.5)), near, far), p.common);
}
