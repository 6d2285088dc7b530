/* peephole.c: pass `peephole`: local rewrite rules (rule.h) on numbers, lists, None, and what types
 * say of tensors. */
#include "ir/pass/rule.h"

typedef kiln__trial trial;

/* -- Helpers -- */

static kiln_ir_value *make_bool(kiln_node *at, bool b) {
  return kiln_insert_constant_before(at, kiln_bool(b), kiln_type_basic(KILN_TYPE_BOOL));
}

/* -- None -- */

static bool can_be_none(const kiln_type *type) {
  switch (type->kind) {
    case KILN_TYPE_NONE:
    case KILN_TYPE_OPTIONAL:
    case KILN_TYPE_ANY:
    case KILN_TYPE_VAR: return true;
    case KILN_TYPE_UNION:
      for (int i = 0; i < type->elem_count; i++) {
        if (can_be_none(type->elems[i])) return true;
      }
      return false;
    case KILN_TYPE_TENSOR: return !type->detail || type->detail->undefined != 0;
    default: return false;
  }
}
/* A plain Tensor is never None: only an argument declared Optional is. */
static bool surely_not_none(const kiln_type *type) {
  return type->kind == KILN_TYPE_TENSOR ? true : !can_be_none(type);
}
static kiln_ir_value *compare_none(const trial *t) {
  const bool when_none = t->arg;
  const kiln_type *a = kiln__rule_input(t, 0)->type, *b = kiln__rule_input(t, 1)->type;
  if (a->kind == KILN_TYPE_NONE && b->kind == KILN_TYPE_NONE) return make_bool(t->node, when_none);
  if ((a->kind == KILN_TYPE_NONE && surely_not_none(b)) ||
      (b->kind == KILN_TYPE_NONE && surely_not_none(a))) {
    return make_bool(t->node, !when_none);
  }
  return NULL;
}
/* x op x is `arg`. */
static kiln_ir_value *same_operands(const trial *t) {
  return kiln__rule_input(t, 0) == kiln__rule_input(t, 1) ? make_bool(t->node, t->arg) : NULL;
}
/* A tensor, or None, is itself; a float that is NaN is not. */
static kiln_ir_value *compare_identity(const trial *t) {
  const kiln_type *type = kiln__rule_input(t, 0)->type;
  if (type->kind == KILN_TYPE_OPTIONAL) type = type->elems[0];
  kiln_ir_value *same = type->kind == KILN_TYPE_TENSOR ? same_operands(t) : NULL;
  return same ? same : compare_none(t);
}
static kiln_ir_value *drop_cast(const trial *t) {
  kiln_ir_value *x = kiln__rule_input(t, 0);
  return kiln_type_is_subtype(x->type, kiln_node_output(t->node, 0)->type) ? x : NULL;
}

/* -- Integers -- */

static kiln_ir_value *add_int(const trial *t) {
  kiln_ir_value *a = kiln__rule_input(t, 0), *b = kiln__rule_input(t, 1);
  if (kiln__rule_is_int(b, 0)) return a;
  if (kiln__rule_is_int(a, 0)) return b;
  int64_t outer, inner;
  if (kiln_ir_value_const_int(b, &outer) && kiln_node_is(a->node, KILN_OP_add_int) &&
      kiln_ir_value_const_int(kiln_node_input(a->node, 1), &inner)) {
    kiln_node_set_input(
        t->node, 1, kiln_insert_int_before(t->node, (int64_t)((uint64_t)outer + (uint64_t)inner)));
    kiln_node_set_input(t->node, 0, kiln_node_input(a->node, 0));
    return kiln_node_output(t->node, 0); /* rewritten in place */
  }
  return NULL;
}
/* x op `arg` is x. */
static kiln_ir_value *neutral_int(const trial *t) {
  return kiln__rule_is_int(kiln__rule_input(t, 1), t->arg) ? kiln__rule_input(t, 0) : NULL;
}
static kiln_ir_value *mul_int(const trial *t) {
  if (kiln__rule_is_int(kiln__rule_input(t, 1), 1)) return kiln__rule_input(t, 0);
  return kiln__rule_is_int(kiln__rule_input(t, 0), 1) ? kiln__rule_input(t, 1) : NULL;
}

/* -- Lists -- */

static kiln_ir_value *len_of_list(const trial *t) {
  kiln_ir_value *v = kiln__rule_input(t, 0);
  const kiln_node *list = kiln__rule_list(t->pass, v);
  if (list) return kiln_insert_int_before(t->node, list->input_count);
  if (!kiln_node_is(v->node, KILN_OP_size) || kiln_alias_has_writers(kiln_pass_alias(t->pass), v))
    return NULL;
  kiln_node *dim = kiln_node_create_id(t->node->graph, KILN_OP_dim);
  dim->range = t->node->range;
  kiln_node_add_input(dim, kiln_node_input(v->node, 0));
  kiln_node_insert_before(dim, t->node);
  return kiln_node_add_output(dim, kiln_type_basic(KILN_TYPE_INT));
}
static kiln_ir_value *item_of_list(const trial *t) {
  const kiln_node *list = kiln__rule_list(t->pass, kiln__rule_input(t, 0));
  int64_t i;
  if (!list || !kiln_ir_value_const_int(kiln__rule_input(t, 1), &i)) return NULL;
  if (i < 0) i += list->input_count;
  return i >= 0 && i < list->input_count ? kiln_node_input(list, (int)i) : NULL;
}
/* Several results: done in place, so the caller sees no single value. */
static bool unpack_of_list(kiln_pass *pass, kiln_node *node) {
  const kiln_node *list = kiln__rule_list(pass, kiln_node_input(node, 0));
  if (!list || list->input_count != node->output_count) return false;
  bool any = false;
  for (int i = 0; i < node->output_count; i++) {
    if (kiln_node_output(node, i)->use_count > 0) any = true;
    kiln_ir_value_replace_uses(kiln_node_output(node, i), kiln_node_input(list, i));
  }
  return any;
}

/* -- Properties of tensors whose type is known -- */

/* Convolutions have as many dimensions as their image, which is asked in their place: branches on
 * it are decided before they run. One of which nothing else is read stays: it may raise. */
static bool keeps_rank(const kiln_node *n) {
  static const kiln_op_id ops[] = {
      KILN_OP_conv1d,
      KILN_OP_conv2d,
      KILN_OP_conv3d,
      KILN_OP_conv1d_padding,
      KILN_OP_conv2d_padding,
      KILN_OP_conv3d_padding,
      KILN_OP_conv_transpose1d,
      KILN_OP_conv_transpose2d_input,
      KILN_OP_conv_transpose3d_input,
  };
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (kiln_node_is(n, ops[i])) return true;
  return false;
}
static kiln_ir_value *known_dim(const trial *t) {
  const kiln_tensor_detail *d = kiln__rule_detail(kiln__rule_input(t, 0));
  if (d && d->rank >= 0) return kiln_insert_int_before(t->node, d->rank);
  const kiln_node *from = kiln__rule_input(t, 0)->node;
  if (!keeps_rank(from) || kiln__rule_input(t, 0)->use_count == 1 ||
      kiln_alias_has_writers(kiln_pass_alias(t->pass), kiln__rule_input(t, 0)) ||
      kiln_alias_has_writers(kiln_pass_alias(t->pass), kiln_node_input(from, 0)))
    return NULL;
  kiln_node_set_input(t->node, 0, kiln_node_input(from, 0));
  return kiln_node_output(t->node, 0); /* rewritten in place */
}
static kiln_ir_value *known_size(const trial *t) {
  const kiln_tensor_detail *d = kiln__rule_detail(kiln__rule_input(t, 0));
  int64_t dim;
  if (!d || d->rank <= 0 || !kiln_ir_value_const_int(kiln__rule_input(t, 1), &dim)) return NULL;
  if (dim < 0) dim += d->rank;
  return dim >= 0 && dim < d->rank && d->sizes[dim] >= 0
             ? kiln_insert_int_before(t->node, d->sizes[dim])
             : NULL;
}
static kiln_ir_value *known_sizes(const trial *t) {
  const kiln_type *type = kiln__rule_input(t, 0)->type;
  if (!kiln_type_is_complete_tensor(type)) return NULL;
  kiln_node *list = kiln_node_create_id(t->node->graph, KILN_OP_prim_ListConstruct);
  for (int i = 0; i < type->detail->rank; i++) {
    kiln_node_add_input(list, kiln_insert_int_before(t->node, type->detail->sizes[i]));
  }
  kiln_ir_value *made = kiln_node_add_output(list, kiln_node_output(t->node, 0)->type);
  kiln_node_insert_before(list, t->node);
  return made;
}
static kiln_ir_value *known_numel(const trial *t) {
  const kiln_type *type = kiln__rule_input(t, 0)->type;
  int64_t numel;
  bool known = kiln_type_is_complete_tensor(type) &&
               kiln_numel(type->detail->rank, type->detail->sizes, &numel);
  return known ? kiln_insert_int_before(t->node, numel) : NULL;
}
static kiln_ir_value *known_dtype(const trial *t) {
  const kiln_tensor_detail *d = kiln__rule_detail(kiln__rule_input(t, 0));
  return d && d->dtype != KILN_DTYPE_NONE ? kiln_insert_int_before(t->node, d->dtype) : NULL;
}
static kiln_ir_value *known_device(const trial *t) {
  const kiln_tensor_detail *d = kiln__rule_detail(kiln__rule_input(t, 0));
  if (!d || d->device < 0) return NULL;
  kiln_ivalue device = kiln_device_value((kiln_device_id){d->device, d->device_index});
  return kiln_insert_constant_before(t->node, device, kiln_type_basic(KILN_TYPE_DEVICE));
}
/* Whether it is on a device of kind `arg`. */
static kiln_ir_value *is_on(const trial *t) {
  const kiln_tensor_detail *d = kiln__rule_detail(kiln__rule_input(t, 0));
  return d && d->device >= 0 ? make_bool(t->node, d->device == t->arg) : NULL;
}

/* -- Tensors -- */

static kiln_ir_value *transpose_twice(const trial *t) {
  const kiln_ir_value *inner = kiln__rule_input(t, 0);
  if (!kiln_node_is(inner->node, KILN_OP_t)) return NULL;
  kiln_ir_value *x = kiln_node_input(inner->node, 0);
  return kiln__rule_may_replace(t->pass, x, kiln_node_output(t->node, 0)) ? x : NULL;
}
/* x op `arg` is x. */
static kiln_ir_value *neutral_operand(const trial *t) {
  kiln_ir_value *x = kiln__rule_input(t, 0);
  const kiln_ivalue *c = kiln_ir_value_constant(kiln__rule_input(t, 1));
  if (!kiln_ir_value_is_number(kiln__rule_input(t, 1), t->arg) || !kiln__rule_keeps_dtype(x, c))
    return NULL;
  return kiln__rule_may_replace(t->pass, x, kiln_node_output(t->node, 0)) ? x : NULL;
}
static kiln_ir_value *divided_by_one(const trial *t) {
  const kiln_tensor_detail *d = kiln__rule_detail(kiln__rule_input(t, 0));
  if (!d || !kiln_dtype_is_float((kiln_dtype)d->dtype)) return NULL; /* int / 1 is a float */
  return neutral_operand(t);
}

/* The kernel gives its argument back, so the two were one memory before. */
static kiln_ir_value *dropout_off(const trial *t) {
  const kiln_ivalue *p = kiln_ir_value_constant(kiln__rule_input(t, 1));
  bool off = p && p->tag == KILN_TAG_FLOAT && p->u.f >= 0 && p->u.f <= 1 &&
             kiln_ir_value_is_bool(kiln__rule_input(t, 2), false);
  return off ? kiln__rule_input(t, 0) : NULL;
}

/* In the examples M is a matrix whose type is known: Float(2, 3, strides=[3, 1], ...). */
static kiln_ir_value *rules(kiln_pass *pass, kiln_node *node) {
  switch (node->op->id) {
    RULE_OF(__is__, compare_identity, true,
            "x: int | bool aten::__is__(x, None) => False / "
            "x: Tensor | bool aten::__is__(x, x) => True");
    RULE_OF(__isnot__, compare_identity, false,
            "x: int | bool aten::__isnot__(x, None) => True / "
            "x: Tensor | bool aten::__isnot__(x, x) => False");
    RULE(prim_unchecked_cast, drop_cast, "x: int | int prim::unchecked_cast(x) => x");
    RULE(_unwrap_optional, drop_cast, "x: int | int aten::_unwrap_optional(x) => x");
    RULE(prim_unchecked_unwrap_optional, drop_cast,
         "x: int | int prim::unchecked_unwrap_optional(x) => x");
    RULE(add_int, add_int,
         "x: int | int aten::add(x, 0) => x / "
         "x: int | int aten::add(0, x) => x / "
         "x: int | int aten::add(int aten::add(x, 2), 3) => int aten::add(x, 5)");
    RULE_OF(sub_int, neutral_int, 0, "x: int | int aten::sub(x, 0) => x");
    RULE(mul_int, mul_int,
         "x: int | int aten::mul(x, 1) => x / "
         "x: int | int aten::mul(1, x) => x");
    RULE_OF(floordiv_int, neutral_int, 1, "x: int | int aten::floordiv(x, 1) => x");
    RULE_OF(eq_int, same_operands, true, "x: int | bool aten::eq(x, x) => True");
    RULE_OF(ne_int, same_operands, false, "x: int | bool aten::ne(x, x) => False");
    RULE_OF(le_int, same_operands, true, "x: int | bool aten::le(x, x) => True");
    RULE_OF(ge_int, same_operands, true, "x: int | bool aten::ge(x, x) => True");
    RULE_OF(lt_int, same_operands, false, "x: int | bool aten::lt(x, x) => False");
    RULE_OF(gt_int, same_operands, false, "x: int | bool aten::gt(x, x) => False");
    RULE(Int_Tensor, kiln__rule_number_of_trace,
         "i: int | int aten::Int(Tensor prim::NumToTensor(i)) => i / "
         "i: int; j: int | int aten::Int(Tensor aten::mul(Tensor prim::NumToTensor(i), "
         "Tensor prim::NumToTensor(j))) => int aten::mul(i, j) / "
         "i: int | int aten::Int(Tensor aten::floor_divide(Tensor prim::NumToTensor(i), 8)) => "
         "int aten::floordiv(i, 8)");
    RULE(Float_Tensor, kiln__rule_number_of_trace,
         "f: float | float aten::Float(Tensor prim::NumToTensor(f)) => f");
    RULE(ScalarImplicit, kiln__rule_number_of_trace,
         "i: int | Scalar aten::ScalarImplicit(Tensor prim::NumToTensor(i)) => i");
    RULE(IntImplicit, kiln__rule_number_of_trace,
         "i: int | int aten::IntImplicit(Tensor prim::NumToTensor(i)) => i");
    RULE(len_t, len_of_list,
         "a: int; b: int | int aten::len(int[] prim::ListConstruct(a, b)) => 2 / "
         "x: Tensor | int aten::len(int[] aten::size(x)) => int aten::dim(x)");
    RULE(__getitem___t, item_of_list,
         "a: int; b: int | int aten::__getitem__(int[] prim::ListConstruct(a, b), 1) => b / "
         "a: int; b: int | int aten::__getitem__(int[] prim::ListConstruct(a, b), -2) => a");
    RULE(dim, known_dim,
         "x: M | int aten::dim(x) => 2 / "
         "x: Tensor; w: Tensor; l: int[] | "
         "int aten::size(Tensor aten::conv2d(x, w, None, l, l, l, 1), "
         "int aten::dim(Tensor aten::conv2d(x, w, None, l, l, l, 1))) => "
         "int aten::size(Tensor aten::conv2d(x, w, None, l, l, l, 1), int aten::dim(x))");
    RULE(size_int, known_size,
         "x: M | int aten::size(x, 1) => 3 / "
         "x: M | int aten::size(x, -2) => 2");
    RULE(size, known_sizes, "x: M | int[] aten::size(x) => int[] prim::ListConstruct(2, 3)");
    RULE(numel, known_numel, "x: M | int aten::numel(x) => 6");
    RULE(prim_dtype, known_dtype, "x: M | int prim::dtype(x) => 6");
    RULE(prim_device, known_device, "x: M | Device prim::device(x) => cpu");
    RULE_OF(prim_is_cpu, is_on, KILN_DEVICE_CPU, "x: M | bool prim::is_cpu(x) => True");
    RULE_OF(prim_is_cuda, is_on, KILN_DEVICE_CUDA, "x: M | bool prim::is_cuda(x) => False");
    RULE(t, transpose_twice,
         "x: M | Tensor aten::relu(Tensor aten::t(Tensor aten::t(Tensor aten::abs(x)))) => "
         "Tensor aten::relu(Tensor aten::abs(x))");
    RULE_OF(mul_Scalar, neutral_operand, 1,
            "x: M | Tensor aten::relu(Tensor aten::mul(x, 1)) => Tensor aten::relu(x)");
    RULE_OF(div_Scalar, divided_by_one, 1,
            "x: M | Tensor aten::relu(Tensor aten::div(x, 1)) => Tensor aten::relu(x)");
    RULE_OF(sub_Scalar, neutral_operand, 0,
            "x: M | Tensor aten::relu(Tensor aten::sub(x, 0, 1)) => Tensor aten::relu(x)");
    RULE(dropout, dropout_off, "x: M | Tensor aten::dropout(x, 0.5, False) => x");
    RULE(feature_dropout, dropout_off, "x: M | Tensor aten::feature_dropout(x, 0.5, False) => x");
    default: return NULL;
  }
}

/* -- Structure -- */

/* if c: True else: False => c */
static kiln_ir_value *bool_if(kiln_node *node) {
  if (node->output_count != 1) return NULL;
  const bool same = kiln_ir_value_is_bool(kiln_block_output(node->blocks[0], 0), true) &&
                    kiln_ir_value_is_bool(kiln_block_output(node->blocks[1], 0), false);
  return same ? kiln_node_input(node, 0) : NULL;
}

kiln_ir_value *kiln_peephole_try(kiln_pass *pass, kiln_node *node) {
  if (kiln_node_is(node, KILN_OP_prim_If)) return bool_if(node);
  return kiln__rule_try(rules, pass, node);
}

/* prim::Constant for every result that can only be None. */
static bool none_results(kiln_node *node) {
  bool changed = false;
  if (kiln_node_is(node, KILN_OP_prim_Constant)) return false;
  for (int i = 0; i < node->output_count; i++) {
    kiln_ir_value *out = kiln_node_output(node, i);
    if (out->type->kind != KILN_TYPE_NONE || out->use_count == 0) continue;
    kiln_ir_value *none = kiln_insert_constant_before(node, kiln_none(), out->type);
    kiln_ir_value_replace_uses(out, none);
    changed = true;
  }
  return changed;
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    next = n->next;
    if (none_results(n)) pass->changed = true;
    if (kiln_node_is(n, KILN_OP_prim_ListUnpack)) {
      if (unpack_of_list(pass, n)) pass->changed = true;
      continue;
    }
    kiln_ir_value *value = kiln_peephole_try(pass, n);
    if (value) kiln__rule_take(pass, n, value);
  }
}

kiln_status *kiln_pass_peephole(kiln_pass *pass) {
  visit_block(pass, pass->graph->top);
  return NULL;
}
