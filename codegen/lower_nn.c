/* lower_nn.c: activations, gates, clamping and batch norm, as the interpreter computes them. */
#include "codegen/lower.h"

#include <math.h>

#define OP(name, ...) kiln__lower_op(l, KILN_LOOP_##name, __VA_ARGS__)
#define OP1(name, a) OP(name, a, -1, -1)
#define OP2(name, a, b) OP(name, a, b, -1)
#define SELECT(mask, a, b) OP(select, mask, a, b)
#define K(value) typed_const(l, x, value)

static int typed_const(kiln__lowering *l, int like, double value) {
  return like < 0 ? -1 : kiln__lower_const(l, kiln__lower_dtype_of(l, like), value);
}
/* Input 0 in what its type is computed in; `cls`: the classes of types that it may have. */
static int input_of(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map,
                    int classes) {
  kiln_dtype dtype = kiln__lower_input_dtype(node, 0);
  if (!(kiln_loop_class(dtype) & classes)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  return kiln__lower_input(l, node, 0, map, kiln__lower_compute(dtype));
}
#define FLOATS (KILN_LOOP_CLASS_F | KILN_LOOP_CLASS_H)
#define NUMBERS (FLOATS | KILN_LOOP_CLASS_I)
static int finish(kiln__lowering *l, const kiln_node *node, int value) {
  return kiln__lower_cast(l, value, kiln__lower_result_dtype(node, 0));
}
/* low where x < low, and high where x > high: NaN stays. */
static int at_least(kiln__lowering *l, int x, int low) { return SELECT(OP2(lt, x, low), low, x); }
static int at_most(kiln__lowering *l, int x, int high) { return SELECT(OP2(gt, x, high), high, x); }

/* Of integers only those that a double has. */
static bool read_numbers(kiln__lowering *l, const kiln_node *node, int count, double *p) {
  const kiln_dtype dtype = kiln__lower_input_dtype(node, 0);
  for (int i = 0; i < count; i++) {
    if (!kiln__lower_number(l, node, i + 1, &p[i])) return false;
    const bool exact = !kiln_dtype_is_int(dtype, false) || fabs(p[i]) < 0x1p53;
    if (exact && kiln__lower_holds(dtype, p[i])) continue;
    kiln__lower_refuse(l, KILN_REASON_number_too_large);
    return false;
  }
  return true;
}
/* A function of x with up to three constant numbers p[]. */
#define ACTIVATION(name, classes, count, expression) \
  KILN__LOWER(name) {                                \
    double p[4] = {0};                               \
    if (!read_numbers(l, node, count, p)) return -1; \
    int x = input_of(l, node, map, classes);         \
    if (x < 0) return -1;                            \
    return finish(l, node, expression);              \
  }

ACTIVATION(relu, NUMBERS, 0, SELECT(OP2(lt, x, K(0)), K(0), x))
ACTIVATION(leaky_relu, FLOATS, 1, SELECT(OP2(gt, x, K(0)), x, OP2(mul, x, K(p[0]))))
ACTIVATION(threshold, NUMBERS, 2, SELECT(OP2(le, x, K(p[0])), K(p[1]), x))
ACTIVATION(silu, FLOATS, 0, OP2(mul, x, OP1(sigmoid, x)))
ACTIVATION(hardsigmoid, FLOATS, 0,
           OP2(div, at_most(l, at_least(l, OP2(add, x, K(3)), K(0)), K(6)), K(6)))
ACTIVATION(hardswish, FLOATS, 0,
           OP2(div, OP2(mul, x, at_most(l, at_least(l, OP2(add, x, K(3)), K(0)), K(6))), K(6)))
ACTIVATION(hardshrink, FLOATS, 1,
           SELECT(OP2(and, OP2(ge, x, K(-p[0])), OP2(le, x, K(p[0]))), K(0), x))
ACTIVATION(softshrink, FLOATS, 1,
           SELECT(OP2(gt, x, K(p[0])), OP2(sub, x, K(p[0])),
                  SELECT(OP2(lt, x, K(-p[0])), OP2(add, x, K(p[0])), OP2(mul, x, K(0)))))
ACTIVATION(softplus, FLOATS, 2,
           SELECT(OP2(gt, OP2(mul, x, K(p[0])), K(p[1])), x,
                  OP2(div, OP1(log1p, OP1(exp, OP2(mul, x, K(p[0])))), K(p[0]))))
ACTIVATION(log_sigmoid, FLOATS, 0,
           OP2(sub, SELECT(OP2(ge, x, K(0)), K(0), x), OP1(log1p, OP1(exp, OP1(neg, OP1(abs, x))))))
/* The function, and exp(-|x|). */
KILN__LOWER_EACH(log_sigmoid_forward) {
  if (output == 0) return kiln__lower_log_sigmoid(l, node, map);
  const int x = input_of(l, node, map, FLOATS);
  return x < 0 ? -1 : finish(l, node, OP1(exp, OP1(neg, OP1(abs, x))));
}
ACTIVATION(mish, FLOATS, 0,
           OP2(mul, x,
               OP1(tanh, OP2(add, SELECT(OP2(gt, x, K(0)), x, K(0)),
                             OP1(log1p, OP1(exp, OP1(neg, OP1(abs, x))))))))

/* x <= 0: expm1(x * input) * negative; else x * positive. */
static int elu_of(kiln__lowering *l, int x, double negative, double positive, double input) {
  int below = OP2(mul, OP1(expm1, OP2(mul, x, K(input))), K(negative));
  return SELECT(OP2(le, x, K(0)), below, OP2(mul, x, K(positive)));
}
ACTIVATION(elu, FLOATS, 3, elu_of(l, x, p[0] * p[1], p[1], p[2]))
ACTIVATION(celu, FLOATS, 1, elu_of(l, x, p[0], 1, 1 / p[0]))
ACTIVATION(selu, FLOATS, 0,
           elu_of(l, x, 1.6732632423543772848170429916717 * 1.0507009873554804934193349852946,
                  1.0507009873554804934193349852946, 1))

KILN__LOWER(gelu) {
  const kiln_ivalue *how =
      node->input_count > 1 ? kiln_ir_value_constant(kiln_node_input(node, 1)) : NULL;
  if (!how || how->tag != KILN_TAG_STRING) return kiln__lower_refuse(l, KILN_REASON_not_constant);
  int x = input_of(l, node, map, FLOATS);
  if (x < 0) return -1;
  if (kiln_str_is(kiln_string_view(how->u.string), "tanh")) {
    int cube = OP2(mul, OP2(mul, x, x), x);
    int inner = OP2(mul, K(0.79788456080286535588), OP2(add, x, OP2(mul, K(0.044715), cube)));
    return finish(l, node, OP2(mul, OP2(mul, K(0.5), x), OP2(add, K(1), OP1(tanh, inner))));
  }
  return finish(l, node, OP1(gelu, x));
}

/* The first half of a dimension times the sigmoid of the second, which is rounded. */
KILN__LOWER(glu) {
  const kiln_ir_value *input = kiln_node_input(node, 0);
  const kiln_dtype dtype = kiln__lower_input_dtype(node, 0), compute = kiln__lower_compute(dtype);
  int64_t dim;
  if (!(kiln_loop_class(dtype) & FLOATS)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  if (!kiln_ir_value_const_int(kiln_node_input(node, 1), &dim))
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  if (dim < 0) dim += map->rank;
  if (dim < 0 || dim >= map->rank) return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln_dim half = kiln__lower_sizes_of(l, kiln_node_output(node, 0)).sizes[dim];
  kiln__lower_map *behind = kiln__lower_copied(l, map);
  behind->dims[dim] = kiln__lower_moved(l, &map->dims[dim], half, 0);
  const int x = kiln__lower_cast(l, kiln__lower_value(l, input, map), compute);
  int gate = kiln__lower_cast(l, kiln__lower_value(l, input, behind), compute);
  gate = kiln__lower_cast(l, OP1(sigmoid, gate), dtype);
  return finish(l, node, OP2(mul, x, kiln__lower_cast(l, gate, compute)));
}

/* x, times the weight of its channel where it is not above 0. */
KILN__LOWER(prelu) {
  const kiln_ir_value *weight = kiln_node_input(node, 1);
  const kiln_tensor_detail *w = weight->type->detail;
  const kiln_dtype dtype = kiln__lower_input_dtype(node, 0);
  if (!w || w->rank < 0) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  if (!(kiln_loop_class(dtype) & FLOATS) || w->dtype != (int16_t)dtype)
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  kiln__lower_map *own = kiln__lower_new_map(l, w->rank);
  if (w->rank == 1 && w->sizes[0] != 1) {
    const kiln__lower_sizes x = kiln__lower_sizes_of(l, kiln_node_input(node, 0));
    if (map->rank < 2 || w->sizes[0] != x.sizes[1])
      return kiln__lower_refuse(l, KILN_REASON_raises);
    own->dims[0] = map->dims[1];
  }
  const int x = input_of(l, node, map, FLOATS);
  const int slope =
      kiln__lower_cast(l, kiln__lower_value(l, weight, own), kiln__lower_compute(dtype));
  if (x < 0) return -1;
  return finish(l, node, SELECT(OP2(gt, x, K(0)), x, OP2(mul, x, slope)));
}

/* -- Clamping -- */

/* Bounds at inputs `low` and `high` (-1: none), numbers or tensors, which take part in promotion.
 */
static int clamp_of(kiln__lowering *l, const kiln_node *node, const kiln__lower_map *map, int low,
                    int high) {
  kiln_promotion promotion = KILN_PROMOTION_INIT;
  int bounds[2] = {low, high}, value[2] = {-1, -1};
  kiln_promotion_add_tensor(&promotion, kiln__lower_input_dtype(node, 0),
                            kiln_node_input(node, 0)->type->detail->rank);
  for (int i = 0; i < 2; i++) {
    if (bounds[i] < 0 || kiln__lower_is_none(node, bounds[i])) {
      bounds[i] = -1;
      continue;
    }
    const kiln_ir_value *v = kiln_node_input(node, bounds[i]);
    if (kiln__lower_is_tensor(node, bounds[i])) {
      if (!v->type->detail) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
      kiln_promotion_add_tensor(&promotion, (kiln_dtype)v->type->detail->dtype,
                                v->type->detail->rank);
    } else {
      double number; /* a bound of NaN makes everything NaN: left to the interpreter */
      if (!kiln__lower_number(l, node, bounds[i], &number)) return -1;
      if (number != number) return kiln__lower_refuse(l, KILN_REASON_nan);
      if (!kiln__lower_holds(kiln__lower_input_dtype(node, 0), number)) {
        return kiln__lower_refuse(l, KILN_REASON_number_too_large);
      }
      bool is_float = kiln_ir_value_constant(v)->tag == KILN_TAG_FLOAT;
      kiln_promotion_add_number(&promotion, is_float ? KILN_DTYPE_F64 : KILN_DTYPE_I64);
    }
  }
  kiln_dtype common = kiln_promotion_result(&promotion), compute = kiln__lower_compute(common);
  if (!(kiln_loop_class(common) & NUMBERS)) return kiln__lower_refuse(l, KILN_REASON_dtype);
  int x = kiln__lower_cast(l, kiln__lower_input(l, node, 0, map, common), compute), r;
  bool tensors = false;
  for (int i = 0; i < 2; i++) {
    if (bounds[i] < 0) continue;
    if (kiln__lower_is_tensor(node, bounds[i])) tensors = true;
    value[i] = kiln__lower_input(l, node, bounds[i], map, compute);
  }
  if (tensors && value[0] >= 0 && value[1] >= 0) {
    r = at_most(l, at_least(l, x, value[0]), value[1]);
    for (int i = 1; i >= 0; i--) r = SELECT(OP2(ne, value[i], value[i]), value[i], r);
    r = SELECT(OP2(ne, x, x), x, r);
  } else if (tensors) {
    r = value[0] >= 0 ? OP2(max, x, value[0]) : OP2(min, x, value[1]);
  } else {
    r = value[0] >= 0 ? at_least(l, x, value[0]) : x;
    r = value[1] >= 0 ? at_most(l, r, value[1]) : r;
  }
  return kiln__lower_cast(l, r, common);
}
KILN__LOWER(clamp) { return clamp_of(l, node, map, 1, 2); }
KILN__LOWER(clamp_min) { return clamp_of(l, node, map, 1, -1); }
KILN__LOWER(clamp_max) { return clamp_of(l, node, map, -1, 1); }
KILN__LOWER(hardtanh) {
  if (!(kiln_loop_class(kiln__lower_input_dtype(node, 0)) & FLOATS)) {
    return kiln__lower_refuse(l, KILN_REASON_dtype); /* its bounds are cut to whole numbers */
  }
  return clamp_of(l, node, map, 1, 2);
}
KILN__LOWER(relu6) {
  int x = input_of(l, node, map, NUMBERS);
  if (x < 0) return -1;
  return finish(l, node, at_most(l, at_least(l, x, K(0)), K(6)));
}

/* -- Batch norm that uses given statistics -- */

/* Input i, a vector of that size, at one place, as a double of what is computed in. */
static int vector_at(kiln__lowering *l, const kiln_node *node, int i, kiln_dim size,
                     const kiln__lower_dim *at, kiln_dtype compute) {
  const kiln_ir_value *v = kiln_node_input(node, i);
  const kiln_tensor_detail *d = kiln__lower_is_tensor(node, i) ? v->type->detail : NULL;
  if (!d) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  if (d->rank != 1 || d->sizes[0] != size) return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!(kiln_loop_class((kiln_dtype)d->dtype) & FLOATS)) {
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  }
  kiln__lower_map *own = kiln__lower_new_map(l, 1);
  own->dims[0] = *at;
  int value = kiln__lower_cast(l, kiln__lower_value(l, v, own), compute);
  return kiln__lower_cast(l, value, KILN_DTYPE_F64);
}
int kiln__lower_channel(kiln__lowering *l, const kiln_node *node, int i, const kiln__lower_map *map,
                        kiln_dtype compute) {
  return vector_at(l, node, i, kiln_node_input(node, 0)->type->detail->sizes[1], &map->dims[1],
                   compute);
}
bool kiln__lower_fits_input(const kiln_node *node, int i) {
  if (kiln__lower_is_none(node, i)) return true;
  kiln_dtype x = kiln__lower_input_dtype(node, 0), p = kiln__lower_input_dtype(node, i);
  return p == x || (p == KILN_DTYPE_F32 && kiln_loop_class(x) == KILN_LOOP_CLASS_H);
}

/* Where batch norm's parameters are: weight, bias, mean, variance from `first` on. */
typedef struct norm_inputs {
  int first, eps;
  kiln_dim size;
  const kiln__lower_dim *at;
  kiln_dtype compute;
} norm_inputs;

/* Of x * scale + shift: computed in double, rounded once to what x is computed in. */
static bool norm_terms(kiln__lowering *l, const kiln_node *node, const norm_inputs *in,
                       int *out_scale, int *out_shift) {
  const int first = in->first;
  double eps;
  if (!kiln__lower_number(l, node, in->eps, &eps)) return false;
  const int mean = vector_at(l, node, first + 2, in->size, in->at, in->compute);
  const int var = vector_at(l, node, first + 3, in->size, in->at, in->compute);
  if (mean < 0 || var < 0) return false;
  int one = kiln__lower_const(l, KILN_DTYPE_F64, 1), zero = kiln__lower_const(l, KILN_DTYPE_F64, 0);
  int deviation = OP1(sqrt, OP2(add, var, kiln__lower_const(l, KILN_DTYPE_F64, eps)));
  int scale = OP2(div, one, deviation), bias = zero;
  if (!kiln__lower_is_none(node, first))
    scale = OP2(mul, scale, vector_at(l, node, first, in->size, in->at, in->compute));
  if (!kiln__lower_is_none(node, first + 1))
    bias = vector_at(l, node, first + 1, in->size, in->at, in->compute);
  *out_shift = kiln__lower_cast(l, OP2(sub, bias, OP2(mul, mean, scale)), in->compute);
  *out_scale = kiln__lower_cast(l, scale, in->compute);
  return true;
}
KILN__LOWER(batch_norm) {
  const kiln_tensor_detail *d = kiln_node_input(node, 0)->type->detail;
  const kiln_ivalue *training = kiln_ir_value_constant(kiln_node_input(node, 5));
  int scale, shift;
  if (!training || training->tag != KILN_TAG_BOOL || training->u.b) {
    return kiln__lower_refuse(l, KILN_REASON_not_constant);
  }
  if (!d) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  if (d->rank < 2) return kiln__lower_refuse(l, KILN_REASON_raises);
  if (!kiln__lower_fits_input(node, 1) || !kiln__lower_fits_input(node, 2)) {
    return kiln__lower_refuse(l, KILN_REASON_dtype);
  }
  const kiln_dtype compute = kiln__lower_compute(kiln__lower_input_dtype(node, 0));
  const int x = input_of(l, node, map, FLOATS);
  const norm_inputs in = {1, 7, d->sizes[1], &map->dims[1], compute};
  if (x < 0 || !norm_terms(l, node, &in, &scale, &shift)) return -1;
  return finish(l, node, OP2(add, OP2(mul, x, scale), shift));
}
KILN__LOWER_EACH(batch_norm_terms) {
  const kiln_tensor_detail *d = kiln_node_input(node, 2)->type->detail;
  int scale, shift;
  if (!d) return kiln__lower_refuse(l, KILN_REASON_types_unknown);
  if (d->rank != 1) return kiln__lower_refuse(l, KILN_REASON_raises);
  const kiln_dtype dtype = (kiln_dtype)d->dtype;
  for (int i = 0; i < 2; i++) {
    if (kiln__lower_is_none(node, i)) continue;
    const kiln_dtype own = kiln__lower_input_dtype(node, i);
    if (own != dtype && !(own == KILN_DTYPE_F32 && kiln_loop_class(dtype) == KILN_LOOP_CLASS_H))
      return kiln__lower_refuse(l, KILN_REASON_dtype);
  }
  const norm_inputs in = {0, 4, d->sizes[0], &map->dims[0], kiln__lower_compute(dtype)};
  if (!norm_terms(l, node, &in, &scale, &shift)) return -1;
  return kiln__lower_cast(l, output ? shift : scale, dtype);
}
