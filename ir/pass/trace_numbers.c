/* trace_numbers.c: pass `trace_numbers`: numbers that a trace computes in tensors of no dimensions
 * are computed as numbers.
 *
 * A trace has h = x.size(2) as a tensor, NumToTensor(size), and all that Python computed of it as
 * operators of tensors: int(ceil(h / 2)) is Int(ceil(div(NumToTensor(size), 2))). Behind int() or
 * float() that is a number again, and so are all steps: of ints, or of floats. What PyTorch holds
 * as float32, the quotient of two ints among them, is a float that kiln::to_float32 has rounded
 * behind each operator: of sums, differences, products and quotients of two float32 this has the
 * bits of float32's own (Figueroa, "When is double rounding innocuous?", 1995).
 *
 * Of ints alone pass `peephole` does the same: what is saved has operators of PyTorch's alone.
 *
 * Divisors are literals, and not 0; those of floor_divide and % are positive. */
#include <math.h>

#include "ir/pass/rule.h"

/* What a value holds. A literal with a fraction goes along with what it meets. */
typedef enum kind { NO_NUMBER, WHOLE, LITERAL, SINGLE, DOUBLE } kind;

/* A number in the graph, or one that the trace stored as a tensor: what is left of those
 * (unwrap_numbers.c) has a dtype, float64 if it has a fraction. */
static bool literal_of(const kiln_ir_value *v, kind *out, double *out_number) {
  const kiln_ivalue *c = kiln_ir_value_constant(v);
  if (!c) return false;
  if (c->tag == KILN_TAG_INT || c->tag == KILN_TAG_FLOAT) {
    *out = c->tag == KILN_TAG_INT ? WHOLE : LITERAL;
    *out_number = c->tag == KILN_TAG_INT ? (double)c->u.i : c->u.f;
    return isfinite(*out_number);
  }
  if (!kiln_ir_value_is_wrapped_number(v)) return false;
  const kiln_dtype dtype = kiln_tensor_dtype(c->u.tensor);
  *out = kiln_dtype_is_int(dtype, false) ? WHOLE : DOUBLE;
  if (*out == DOUBLE && dtype != KILN_DTYPE_F64) return false;
  kiln_status *status = kiln_tensor_item_f64(c->u.tensor, out_number);
  kiln_status_destroy(status);
  return !status && fabs(*out_number) <= 0x1p53;
}

/* Tensors' quotient is cut, ints' is rounded down: the same of a size by a positive number. */
static bool is_size_cut(const kiln_node *quotient) {
  const kiln_node *number = kiln_node_input(quotient, 0)->node;
  return kiln_ir_value_is_text(kiln_node_input(quotient, 2), "trunc") &&
         kiln_node_is(number, KILN_OP_prim_NumToTensor_Scalar) &&
         kiln_node_is(kiln_node_input(number, 0)->node, KILN_OP_size_int);
}

/* -- Operators -- */

typedef enum number_form {
  UNARY,
  PLAIN,
  ALPHA,    /* an alpha of 1 */
  REVERSED, /* of 7 - x a trace makes rsub(x, 7), with alpha */
  QUOTIENT,
  DIVIDES,
  ROUNDS, /* to a whole number, of the same dtype */
  AT_LEAST,
  AT_MOST,
  BETWEEN, /* of two bounds, None among them */
  CONVERTS,
} number_form;
#define NONE KILN_OP_prim_Constant /* no operator of numbers */
typedef struct number_op {
  kiln_op_id of_tensor, of_scalar, of_ints, of_floats; /* NONE: of none */
  number_form form;
} number_op;
static const number_op number_ops[] = {
    {KILN_OP_neg, KILN_OP_neg, KILN_OP_neg_int, KILN_OP_neg_float, UNARY},
    {KILN_OP_add_Tensor, KILN_OP_add_Scalar, KILN_OP_add_int, KILN_OP_add_float, ALPHA},
    {KILN_OP_sub_Tensor, KILN_OP_sub_Scalar, KILN_OP_sub_int, KILN_OP_sub_float, ALPHA},
    {KILN_OP_rsub_Tensor, KILN_OP_rsub_Scalar, KILN_OP_sub_int, KILN_OP_sub_float, REVERSED},
    {KILN_OP_mul_Tensor, KILN_OP_mul_Scalar, KILN_OP_mul_int, KILN_OP_mul_float, PLAIN},
    {KILN_OP_div_Tensor, KILN_OP_div_Scalar, NONE, KILN_OP_div_float, QUOTIENT},
    {KILN_OP_div_Tensor_mode, KILN_OP_div_Tensor_mode, KILN_OP_floordiv_int, NONE, DIVIDES},
    {KILN_OP_floor_divide, KILN_OP_floor_divide_Scalar, KILN_OP_floordiv_int,
     KILN_OP_floordiv_float, DIVIDES},
    {KILN_OP_remainder_Tensor, KILN_OP_remainder_Scalar, KILN_OP_remainder_int,
     KILN_OP_remainder_float, DIVIDES},
    {KILN_OP_ceil, KILN_OP_ceil, NONE, KILN_OP_ceil_float, ROUNDS},
    {KILN_OP_floor, KILN_OP_floor, NONE, KILN_OP_floor_float, ROUNDS},
    {KILN_OP_trunc, KILN_OP_trunc, NONE, KILN_OP_Int_float, ROUNDS},
    {KILN_OP_clamp_min, KILN_OP_clamp_min, KILN_OP_prim_max_int, KILN_OP_prim_max_float, AT_LEAST},
    {KILN_OP_clamp_max, KILN_OP_clamp_max, KILN_OP_prim_min_int, KILN_OP_prim_min_float, AT_MOST},
    {KILN_OP_clamp, KILN_OP_clamp, KILN_OP_prim_max_int, KILN_OP_prim_max_float, BETWEEN},
    {KILN_OP_to_dtype, KILN_OP_to_dtype, NONE, NONE, CONVERTS},
};

static const number_op *op_of(const kiln_node *n) {
  const size_t count = sizeof number_ops / sizeof *number_ops;
  for (size_t i = 0; i < count && n->op && n->op->variant == KILN_VARIANT_NONE; i++)
    if (kiln_node_is(n, number_ops[i].of_tensor) || kiln_node_is(n, number_ops[i].of_scalar))
      return &number_ops[i];
  return NULL;
}

/* The dtype of x op y, where both have no dimensions. */
static kind promoted(kind a, kind b) {
  if (a == NO_NUMBER || b == NO_NUMBER) return NO_NUMBER;
  if (a == DOUBLE || b == DOUBLE) return DOUBLE;
  if (a == SINGLE || b == SINGLE) return SINGLE;
  if (a == LITERAL && b == LITERAL) return NO_NUMBER;
  return a == LITERAL || b == LITERAL ? SINGLE : WHOLE;
}

enum { MOST_NUMBERS = 128 }; /* operators of one number, each as often as it is read */
typedef struct walk {
  bool floats; /* else of ints alone */
  int left;    /* operators to look at */
} walk;
static kind kind_of(const kiln_ir_value *v, walk *w);

/* By literals, as far as x's own dtype has them; without any the operator raises. */
static bool is_bounded(const kiln_node *n, const number_op *op, kind of) {
  bool any = op->form != BETWEEN;
  for (int i = 1; i < n->input_count; i++) {
    const kiln_ir_value *v = kiln_node_input(n, i);
    kind bound;
    double number;
    if (kiln_ir_value_is_none(v)) continue;
    if (!literal_of(v, &bound, &number) || (bound != WHOLE && of == WHOLE)) return false;
    any = true;
  }
  return any;
}
static kind converted(const kiln_node *n) {
  int64_t dtype;
  if (!kiln_ir_value_const_int(kiln_node_input(n, 1), &dtype)) return NO_NUMBER;
  switch (dtype) {
    case KILN_DTYPE_I64: return WHOLE;
    case KILN_DTYPE_F32: return SINGLE;
    case KILN_DTYPE_F64: return DOUBLE;
    default: return NO_NUMBER;
  }
}
static kind quotient_of(const kiln_node *n, const number_op *op, kind a) {
  kind by;
  double number;
  if (a == LITERAL || !literal_of(kiln_node_input(n, 1), &by, &number)) return NO_NUMBER;
  if (op->form == QUOTIENT) {
    const kind result = promoted(a, by);
    return number == 0 ? NO_NUMBER : result == WHOLE ? SINGLE : result;
  }
  if (number <= 0 || (op->of_floats == NONE && !(by == WHOLE && a == WHOLE && is_size_cut(n))))
    return NO_NUMBER;
  return promoted(a, by);
}
static kind kind_of_op(const kiln_node *n, const number_op *op, walk *w) {
  const kind a = kind_of(kiln_node_input(n, 0), w);
  if (a == NO_NUMBER) return NO_NUMBER;
  switch (op->form) {
    case UNARY:
    case ROUNDS: return a == LITERAL ? NO_NUMBER : a;
    case CONVERTS: return a == LITERAL ? NO_NUMBER : converted(n);
    case QUOTIENT:
    case DIVIDES: return quotient_of(n, op, a);
    case AT_LEAST:
    case AT_MOST:
    case BETWEEN: return a != LITERAL && is_bounded(n, op, a) ? a : NO_NUMBER;
    case ALPHA:
    case REVERSED:
      if (!kiln__rule_is_int(kiln_node_input(n, 2), 1)) return NO_NUMBER;
      break;
    case PLAIN: break;
  }
  return promoted(a, kind_of(kiln_node_input(n, 1), w));
}

/* A tensor of no dimensions, or a number beside one: a number that became a tensor, a literal, or
 * computed of such. */
static kind kind_of(const kiln_ir_value *v, walk *w) {
  kind literal;
  double number;
  if (literal_of(v, &literal, &number)) return literal;
  if (v->type->kind == KILN_TYPE_INT) return WHOLE;
  if (kiln_node_is(v->node, KILN_OP_prim_NumToTensor_Scalar))
    return kiln_node_input(v->node, 0)->type->kind == KILN_TYPE_INT ? WHOLE : NO_NUMBER;
  const number_op *op = op_of(v->node);
  const kind own = op && --w->left >= 0 ? kind_of_op(v->node, op, w) : NO_NUMBER;
  return own == WHOLE || w->floats ? own : NO_NUMBER;
}

/* -- As numbers -- */

typedef struct maker {
  kiln_node *at;         /* what is made stands in front of it */
  const kiln_node *like; /* and has its source line */
} maker;

static kiln_ir_value *put(const maker *m, kiln_op_id id, kiln_ir_value *a, kiln_ir_value *b,
                          kiln_type_kind type) {
  kiln_node *n = kiln_node_create_like(m->like, id);
  kiln_node_add_input(n, a);
  if (b) kiln_node_add_input(n, b);
  kiln_node_insert_before(n, m->at);
  return kiln_node_add_output(n, kiln_type_basic(type));
}
static kiln_ir_value *float_of(const maker *m, double number) {
  return kiln_insert_constant_before(m->at, kiln_float(number), kiln_type_basic(KILN_TYPE_FLOAT));
}
/* The number, in the dtype that it has now, in another one. */
static kiln_ir_value *convert(const maker *m, kiln_ir_value *v, kind from, kind to) {
  if (from == to) return v;
  if (to == WHOLE) return put(m, KILN_OP_Int_float, v, NULL, KILN_TYPE_INT);
  if (from == WHOLE) v = put(m, KILN_OP_Float_Scalar, v, NULL, KILN_TYPE_FLOAT);
  return to == SINGLE ? put(m, KILN_OP_to_float32, v, NULL, KILN_TYPE_FLOAT) : v;
}

static kiln_ir_value *make(kiln_node *at, kiln_ir_value *v, kind to);

static kiln_ir_value *make_bounded(const maker *m, const number_op *op, const kiln_node *n,
                                   kiln_ir_value *x, kind own) {
  const kiln_op_id least[] = {KILN_OP_prim_max_int, KILN_OP_prim_max_float},
                   most[] = {KILN_OP_prim_min_int, KILN_OP_prim_min_float};
  const bool is_float = own != WHOLE;
  const kiln_type_kind type = is_float ? KILN_TYPE_FLOAT : KILN_TYPE_INT;
  for (int i = 1; i < n->input_count; i++) {
    if (kiln_ir_value_is_none(kiln_node_input(n, i))) continue;
    const bool is_least = op->form == AT_LEAST || (op->form == BETWEEN && i == 1);
    x = put(m, (is_least ? least : most)[is_float], x, make(m->at, kiln_node_input(n, i), own),
            type);
  }
  return x;
}

static kiln_ir_value *make_op(const maker *m, const kiln_node *n, const number_op *op, kind own) {
  walk w = {true, MOST_NUMBERS};
  kiln_ir_value *first = kiln_node_input(n, 0);
  const kind of_first = op->form == CONVERTS ? kind_of(first, &w) : own;
  kiln_ir_value *x = make(m->at, first, of_first);
  const kiln_type_kind type = own == WHOLE ? KILN_TYPE_INT : KILN_TYPE_FLOAT;
  switch (op->form) {
    case CONVERTS: return convert(m, x, of_first, own);
    case AT_LEAST:
    case AT_MOST:
    case BETWEEN: return make_bounded(m, op, n, x, own);
    case ROUNDS:
      if (own == WHOLE) return x;
      x = put(m, op->of_floats, x, NULL, KILN_TYPE_INT);
      return put(m, KILN_OP_Float_Scalar, x, NULL, KILN_TYPE_FLOAT);
    case UNARY: return put(m, own == WHOLE ? op->of_ints : op->of_floats, x, NULL, type);
    default: break;
  }
  kiln_ir_value *y = make(m->at, kiln_node_input(n, 1), own);
  const bool reversed = op->form == REVERSED;
  x = put(m, own == WHOLE ? op->of_ints : op->of_floats, reversed ? y : x, reversed ? x : y, type);
  return own == SINGLE ? put(m, KILN_OP_to_float32, x, NULL, KILN_TYPE_FLOAT) : x;
}

/* What kind_of found, in front of `at`, in the dtype `to`. */
static kiln_ir_value *make(kiln_node *at, kiln_ir_value *v, kind to) {
  const maker m = {at, v->node};
  walk w = {true, MOST_NUMBERS};
  kind own;
  double number;
  if (to == WHOLE && v->type->kind == KILN_TYPE_INT) return v;
  if (literal_of(v, &own, &number)) {
    if (to == WHOLE) return kiln_insert_int_before(at, (int64_t)number);
    return float_of(&m, to == SINGLE ? (double)(float)number : number);
  }
  own = kind_of(v, &w);
  kiln_ir_value *made = v;
  if (kiln_node_is(v->node, KILN_OP_prim_NumToTensor_Scalar)) {
    made = kiln_node_input(v->node, 0);
  } else if (v->type->kind != KILN_TYPE_INT) {
    made = make_op(&m, v->node, op_of(v->node), own);
  }
  return convert(&m, made, own, to);
}

/* The number in the tensor that int() or its kin reads; NULL: it is none. */
static kiln_ir_value *number_of(kiln_node *n, bool floats) {
  kiln_ir_value *v = kiln_node_input(n, 0);
  const kiln_type *type = kiln_node_output(n, 0)->type;
  walk w = {floats, MOST_NUMBERS};
  if (kiln_node_is(v->node, KILN_OP_prim_NumToTensor_Scalar)) {
    kiln_ir_value *number = kiln_node_input(v->node, 0);
    return kiln_type_is_subtype(number->type, type) ? number : NULL;
  }
  if (!op_of(v->node)) return NULL;
  const kind own = kind_of(v, &w);
  if (own == NO_NUMBER || (own != WHOLE && kiln_node_is(n, KILN_OP_IntImplicit))) return NULL;
  if (own == WHOLE && type->kind == KILN_TYPE_FLOAT) return make(n, v, DOUBLE);
  return make(n, v, type->kind == KILN_TYPE_INT ? WHOLE : own);
}
kiln_ir_value *kiln__rule_number_of_trace(const kiln__trial *t) {
  return number_of(t->node, false);
}

/* -- The pass -- */

static bool reads_number(const kiln_node *n) {
  return kiln_node_is(n, KILN_OP_Int_Tensor) || kiln_node_is(n, KILN_OP_Float_Tensor) ||
         kiln_node_is(n, KILN_OP_IntImplicit) || kiln_node_is(n, KILN_OP_ScalarImplicit);
}
static void visit(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b]);
    next = n->next;
    kiln_ir_value *number = reads_number(n) ? number_of(n, true) : NULL;
    if (number) kiln__rule_take(pass, n, number);
  }
}

kiln_status *kiln_pass_trace_numbers(kiln_pass *pass) {
  visit(pass, pass->graph->top);
  return NULL;
}
