/* lower_pointwise.c: arithmetic, comparisons, selection, one-argument functions. Each follows the
 * interpreter's kernel of that name (runtime/kernels/pointwise/pointwise.def) to the bit: the same
 * operations in the same order, in the same promoted type. */
#include "codegen/lower.h"

#define OP(name, ...) kiln__lower_op(l, KILN_LOOP_##name, __VA_ARGS__)
#define OP1(name, a) OP(name, a, -1, -1)
#define OP2(name, a, b) OP(name, a, b, -1)
#define SELECT(mask, a, b) OP(select, mask, a, b)

/* Input i in `common`; numbers go straight to what is computed in. */
static int operand(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                   kiln_dtype common) {
  if (kiln__lower_is_tensor(node, i)) {
    int value = kiln__lower_input(l, node, i, map, common);
    return kiln__lower_cast(l, value, kiln__lower_compute(common));
  }
  return kiln__lower_input(l, node, i, map, kiln__lower_compute(common));
}

static int typed_const(kiln__lowering *l, int like, double value) {
  return like < 0 ? -1 : kiln__lower_const(l, kiln__lower_dtype_of(l, like), value);
}

/* Back to the type that the operator rounds to. */
static int finish(kiln__lowering *l, int value, kiln_dtype common) {
  return kiln__lower_cast(l, value, common);
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
  return operand(l, node, i, map, common);
}

typedef struct pair {
  kiln_dtype common;
  int a, b;
} pair;
static pair two(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                bool to_float) {
  pair p = {.common = kiln__lower_promote(node, 0, 2), .a = -1, .b = -1};
  if (to_float && p.common != KILN_DTYPE_NONE) p.common = kiln_dtype_to_float(p.common);
  if (!kiln_loop_class(p.common)) {
    kiln__lower_refuse(l, KILN_REASON_dtype);
    return p;
  }
  p.a = operand(l, node, 0, map, p.common);
  p.b = operand(l, node, 1, map, p.common);
  return p;
}

/* Of sums, products and quotients: a second tensor without dimensions is not rounded to a half
 * first. */
static pair two_exact(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                      bool to_float) {
  pair p = two(l, node, map, to_float);
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
  pair p = two_exact(l, node, map, false);
  int b = times_alpha(l, node, map, p.common, p.b);
  return finish(l, p.common == KILN_DTYPE_BOOL ? OP2(or, p.a, b) : OP2(add, p.a, b), p.common);
}
KILN__LOWER(sub) {
  pair p = two_exact(l, node, map, false);
  return finish(l, OP2(sub, p.a, times_alpha(l, node, map, p.common, p.b)), p.common);
}
KILN__LOWER(rsub) {
  pair p = two(l, node, map, false);
  return finish(l, OP2(sub, p.b, times_alpha(l, node, map, p.common, p.a)), p.common);
}
KILN__LOWER(mul) {
  pair p = two_exact(l, node, map, false);
  return finish(l, p.common == KILN_DTYPE_BOOL ? OP2(and, p.a, p.b) : OP2(mul, p.a, p.b), p.common);
}
KILN__LOWER(div) {
  pair p = two_exact(l, node, map, true);
  return finish(l, OP2(div, p.a, p.b), p.common);
}
KILN__LOWER(atan2) {
  pair p = two(l, node, map, true);
  return finish(l, OP2(atan2, p.a, p.b), p.common);
}
KILN__LOWER(copysign) {
  pair p = two(l, node, map, true);
  return finish(l, OP2(copysign, p.a, p.b), p.common);
}
KILN__LOWER(maximum) {
  pair p = two(l, node, map, false);
  return finish(l, p.common == KILN_DTYPE_BOOL ? OP2(or, p.a, p.b) : OP2(max, p.a, p.b), p.common);
}
KILN__LOWER(minimum) {
  pair p = two(l, node, map, false);
  return finish(l, p.common == KILN_DTYPE_BOOL ? OP2(and, p.a, p.b) : OP2(min, p.a, p.b), p.common);
}

/* Cheap powers of constants, as the interpreter chooses them. */
KILN__LOWER(pow) {
  pair p = two(l, node, map, false);
  if (!kiln__lower_is_tensor(node, 1)) {
    double e;
    if (!kiln__lower_number(l, node, 1, &e)) return -1;
    if ((p.common == KILN_DTYPE_F16 || p.common == KILN_DTYPE_BF16) &&
        !kiln__lower_holds(p.common, e)) {
      return kiln__lower_refuse(l, KILN_REASON_number_too_large);
    }
    int x = p.a, one;
    if (e == 1) return finish(l, x, p.common);
    if (e == 2) return finish(l, OP2(mul, x, x), p.common);
    if (e == 3) return finish(l, OP2(mul, OP2(mul, x, x), x), p.common);
    if (kiln_dtype_is_int(p.common, true)) return kiln__lower_refuse(l, KILN_REASON_dtype);
    one = typed_const(l, x, 1);
    if (e == 0.5) return finish(l, OP1(sqrt, x), p.common);
    if (e == -0.5) return finish(l, OP2(div, one, OP1(sqrt, x)), p.common);
    if (e == -1) return finish(l, OP2(div, one, x), p.common);
    if (e == -2) return finish(l, OP2(div, one, OP2(mul, x, x)), p.common);
  }
  return finish(l, OP2(pow, p.a, p.b), p.common);
}

/* -- Comparisons, truth, bits -- */

#define COMPARISON(name)               \
  KILN__LOWER(name) {                  \
    pair p = two(l, node, map, false); \
    return OP2(name, p.a, p.b);        \
  }
COMPARISON(eq)
COMPARISON(ne)
COMPARISON(lt)
COMPARISON(le)
COMPARISON(gt)
COMPARISON(ge)

#define LOGICAL(name, opcode)                                     \
  KILN__LOWER(name) {                                             \
    pair p = two(l, node, map, false);                            \
    return OP2(opcode, kiln__lower_cast(l, p.a, KILN_DTYPE_BOOL), \
               kiln__lower_cast(l, p.b, KILN_DTYPE_BOOL));        \
  }
LOGICAL(logical_and, and)
LOGICAL(logical_or, or)
LOGICAL(logical_xor, xor)

#define BITWISE(name, opcode)          \
  KILN__LOWER(name) {                  \
    pair p = two(l, node, map, false); \
    return OP2(opcode, p.a, p.b);      \
  }
BITWISE(bitwise_and, and)
BITWISE(bitwise_or, or)
BITWISE(bitwise_xor, xor)

/* -- One argument -- */

/* The input in its own type, or in the default float type for integers. */
typedef struct single {
  kiln_dtype common;
  int x;
} single;
static single one(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                  bool to_float) {
  single s = {.common = kiln__lower_input_dtype(node, 0), .x = -1};
  if (to_float && s.common != KILN_DTYPE_NONE) s.common = kiln_dtype_to_float(s.common);
  if (!kiln_loop_class(s.common)) {
    kiln__lower_refuse(l, KILN_REASON_dtype);
    return s;
  }
  s.x = operand(l, node, 0, map, s.common);
  return s;
}

#define FLOATING(name)                          \
  KILN__LOWER(name) {                           \
    single s = one(l, node, map, true);         \
    return finish(l, OP1(name, s.x), s.common); \
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
#define ROUNDING(name)                                  \
  KILN__LOWER(name) {                                   \
    single s = one(l, node, map, false);                \
    if (kiln_dtype_is_int(s.common, false)) return s.x; \
    return finish(l, OP1(name, s.x), s.common);         \
  }
ROUNDING(floor)
ROUNDING(ceil)
ROUNDING(round)
ROUNDING(trunc)

KILN__LOWER(rsqrt) {
  single s = one(l, node, map, true);
  return finish(l, OP2(div, typed_const(l, s.x, 1), OP1(sqrt, s.x)), s.common);
}
KILN__LOWER(reciprocal) {
  single s = one(l, node, map, true);
  return finish(l, OP2(div, typed_const(l, s.x, 1), s.x), s.common);
}
KILN__LOWER(neg) {
  single s = one(l, node, map, false);
  return finish(l, OP1(neg, s.x), s.common);
}
KILN__LOWER(abs) {
  single s = one(l, node, map, false);
  return s.common == KILN_DTYPE_BOOL ? s.x : finish(l, OP1(abs, s.x), s.common);
}
KILN__LOWER(sign) {
  single s = one(l, node, map, false);
  if (s.common == KILN_DTYPE_BOOL) return s.x;
  int zero = typed_const(l, s.x, 0);
  if (s.common == KILN_DTYPE_U8) {
    return SELECT(OP2(gt, s.x, zero), typed_const(l, s.x, 1), zero);
  }
  int negative = SELECT(OP2(lt, s.x, zero), typed_const(l, s.x, -1), zero);
  return finish(l, SELECT(OP2(gt, s.x, zero), typed_const(l, s.x, 1), negative), s.common);
}
KILN__LOWER(square) {
  single s = one(l, node, map, false);
  if (s.common == KILN_DTYPE_BOOL) return s.x;
  return finish(l, OP2(mul, s.x, s.x), s.common);
}
KILN__LOWER(frac) {
  single s = one(l, node, map, false);
  return finish(l, OP2(sub, s.x, OP1(trunc, s.x)), s.common);
}
KILN__LOWER(bitwise_not) {
  single s = one(l, node, map, false);
  return OP1(not, s.x);
}
KILN__LOWER(logical_not) {
  single s = one(l, node, map, false);
  return OP1(not, kiln__lower_cast(l, s.x, KILN_DTYPE_BOOL));
}
KILN__LOWER(isnan) {
  single s = one(l, node, map, false);
  return OP2(ne, s.x, s.x);
}
KILN__LOWER(isinf) {
  single s = one(l, node, map, false);
  if (kiln_dtype_is_int(s.common, true)) return kiln__lower_const(l, KILN_DTYPE_BOOL, 0);
  return OP2(eq, OP1(abs, s.x), typed_const(l, s.x, __builtin_inf()));
}
KILN__LOWER(isfinite) {
  single s = one(l, node, map, false);
  if (kiln_dtype_is_int(s.common, true)) return kiln__lower_const(l, KILN_DTYPE_BOOL, 1);
  return OP2(lt, OP1(abs, s.x), typed_const(l, s.x, __builtin_inf()));
}

/* -- Selection -- */

KILN__LOWER(where) {
  kiln_dtype common = kiln__lower_promote(node, 1, 2);
  if (!kiln_loop_class(common)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  int mask = kiln__lower_input(l, node, 0, map, KILN_DTYPE_BOOL);
  int a = operand(l, node, 1, map, common), b = operand(l, node, 2, map, common);
  return finish(l, SELECT(mask, a, b), common);
}
KILN__LOWER(masked_fill) {
  kiln_dtype common = kiln__lower_input_dtype(node, 0);
  if (!kiln_loop_class(common)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  int mask = kiln__lower_input(l, node, 1, map, KILN_DTYPE_BOOL);
  int self = operand(l, node, 0, map, common);
  int value = kiln__lower_is_tensor(node, 2) ? operand(l, node, 2, map, common)
                                             : parameter(l, node, 2, map, common);
  return finish(l, SELECT(mask, value, self), common);
}

/* -- Three arguments -- */

KILN__LOWER(addcmul) {
  kiln_dtype common = kiln__lower_promote(node, 0, 3);
  if (!kiln_loop_class(common)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  int x = operand(l, node, 0, map, common), y = operand(l, node, 1, map, common),
      z = operand(l, node, 2, map, common), value = parameter(l, node, 3, map, common);
  bool whole = kiln_dtype_is_int(common, true);
  int product = whole ? OP2(mul, value, OP2(mul, y, z)) : OP2(mul, OP2(mul, value, y), z);
  return finish(l, OP2(add, x, product), common);
}
KILN__LOWER(addcdiv) {
  kiln_dtype common = kiln__lower_promote(node, 0, 3);
  if (!kiln_loop_class(common)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  int x = operand(l, node, 0, map, common), y = operand(l, node, 1, map, common),
      z = operand(l, node, 2, map, common), value = parameter(l, node, 3, map, common);
  return finish(l, OP2(add, x, OP2(div, OP2(mul, value, y), z)), common);
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
  kiln_dtype common = kiln__lower_promote(node, 0, 3);
  if (!kiln__lower_is_tensor(node, 2) && common != kiln__lower_input_dtype(node, 0)) {
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  }
  if (!kiln_loop_class(common)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  int x = operand(l, node, 0, map, common), y = operand(l, node, 1, map, common),
      z = operand(l, node, 2, map, common);
  int step = OP2(sub, y, x);
  int near = OP2(add, x, OP2(mul, z, step));
  int far = OP2(sub, y, OP2(mul, step, OP2(sub, typed_const(l, z, 1), z)));
  return finish(l, SELECT(OP2(lt, z, typed_const(l, z, 0.5)), near, far), common);
}
