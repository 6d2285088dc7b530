/* decompose_ops.c: pass `decompose_ops`: the bias of a product is added where the group adds up,
 * and group norm beside convolutions is taken apart.
 *
 * linear(x, w, b) and addmm(b, x, y) whose result goes into one pointwise operator become a product
 * and an add: the add joins the operator's group, which passes over the result anyway. (PyTorch's
 * DecomposeOps does it to addmm.) Left alone are dtypes narrower than float32, whose sum would be
 * rounded twice, and results that are read more than once or kept: there the product adds the bias
 * for nothing.
 *
 * Group norm is x * scale + shift. Between convolutions, where channels may be last in memory, a
 * kernel of it would go over all pixels once for each group of channels; the operator
 * kiln::group_norm_terms finds all their statistics at once, and the product and the sum join the
 * groups around.
 *
 * What stands behind views of a convolution, element by element, goes in front of them, where it
 * joins the convolution's kernel. Views around a product, addmm(b, x.view(-1, 768), w).view(1, 128,
 * 768), go where what reads it works element by element: x w + b has x's rows.
 *
 * Products of halves with a weight are products of f32 between casts: of bf16's linear(x, w, b)
 * becomes linear(x.float(), w.float(), b.float()).bfloat16(), where w.float() is kept, x.float()
 * joins the group that makes x, and the rounding the group that is behind. */
#include <string.h>

#include "codegen/codegen.h"
#include "jit/convolution.h"
#include "jit/fusion.h"
#include "jit/kept.h"
#include "jit/layouts.h"
#include "jit/product.h"

static bool is_float(const kiln_ir_value *v, int *out_dtype) {
  if (!kiln_type_has_dims(v->type)) return false;
  const kiln_tensor_detail *d = v->type->detail;
  *out_dtype = d->dtype;
  return (d->dtype == KILN_DTYPE_F32 || d->dtype == KILN_DTYPE_F64) && d->requires_grad != 1;
}

static bool is_elementwise(const kiln_node *n, const kiln_block *block) {
  return n->block == block && n->op && n->op->cost == KILN_COST_pointwise &&
         n->op->variant == KILN_VARIANT_NONE && kiln_codegen_has_lowering(n->op);
}

/* Its one reader is an operator of the same block that may be in a group. */
static bool feeds_group(const kiln_node *n) {
  const kiln_ir_value *result = kiln_node_output(n, 0);
  return result->use_count == 1 && is_elementwise(result->uses->user, n->block);
}

/* The index of its bias, where the operator is one that this pass takes apart; or -1. */
static int bias_of(const kiln_node *n) {
  return kiln__product_is_unscaled(n) ? kiln__product_bias(n) : -1;
}

static bool is_matrix(const kiln_ir_value *v) {
  return kiln_type_has_dims(v->type) && v->type->detail->rank == 2;
}

static bool decompose(kiln_node *n) {
  int index = bias_of(n), dtype, bias_dtype;
  if (index < 0 || !feeds_group(n)) return false;
  kiln_ir_value *bias = kiln_node_input(n, index), *result = kiln_node_output(n, 0);
  if (!is_float(result, &dtype) || !is_float(bias, &bias_dtype) || dtype != bias_dtype)
    return false;
  /* A bias of linear that is no vector broadcasts to rows that are counted through; to the number
   * that a vector of weights gives it is added in place, and that stays a number. */
  if (index == 2 && (bias->type->detail->rank != 1 || !is_matrix(kiln_node_input(n, 1))))
    return false;
  kiln_graph *graph = n->graph;
  kiln_node *add = kiln_node_create_like(n, KILN_OP_add_Tensor);
  kiln_ir_value *sum = kiln_node_add_output(add, result->type);
  kiln_ir_value_replace_uses(result, sum);
  kiln_node_add_input(add, result);
  kiln_node_add_input(add, bias);
  kiln_node_insert_after(add, n);
  kiln_node_add_input(add, kiln_insert_int_before(add, 1));
  if (index == 2) {
    kiln_node_set_input(
        n, 2, kiln_insert_constant_before(n, kiln_none(), kiln_type_basic(KILN_TYPE_NONE)));
  } else {
    for (int i = 4; i >= 3; i--) kiln_node_remove_input(n, i);
    kiln_node_remove_input(n, 0);
    n->op = kiln_registry_op(graph->registry, KILN_OP_mm);
    n->name = n->op->name;
  }
  return true;
}

/* -- Group norm -- */

/* Signals, images or volumes of floats that lie row by row, as the result does. */
static bool is_plain_image(kiln_graph *graph, const kiln_ir_value *v) {
  int dtype;
  if (!is_float(v, &dtype) || !kiln_may_lie_channels_last(v->type->detail->rank)) return false;
  kiln_dims *dims = kiln_type_table_dims(graph->types);
  return kiln__is_row_major(dims, v->type->detail) || kiln__is_channels_last(dims, v->type->detail);
}

static bool has_dtype_of(const kiln_ir_value *weight, const kiln_ir_value *x) {
  int dtype, own;
  return kiln_ir_value_is_none(weight) ||
         (is_float(x, &dtype) && is_float(weight, &own) && own == dtype);
}

static kiln_node *insert(kiln_node *before, kiln_op_id id, kiln_ir_value *a, kiln_ir_value *b) {
  kiln_node *n = kiln_node_create_like(before, id);
  kiln_node_add_input(n, a);
  kiln_node_add_input(n, b);
  kiln_node_insert_before(n, before);
  return n;
}

/* input, num_groups, weight, bias, eps, .. */
static bool take_norm_apart(kiln_node *n) {
  if (!kiln_node_is(n, KILN_OP_group_norm)) return false;
  kiln_ir_value *x = kiln_node_input(n, 0);
  if (!is_plain_image(n->graph, x) || !is_plain_image(n->graph, n->outputs[0]) ||
      !has_dtype_of(kiln_node_input(n, 2), x) || !has_dtype_of(kiln_node_input(n, 3), x))
    return false;
  const kiln_type *tensor = kiln_type_basic(KILN_TYPE_TENSOR);
  kiln_node *terms = insert(n, KILN_OP_group_norm_terms, x, kiln_node_input(n, 1));
  for (int i = 2; i < 5; i++) kiln_node_add_input(terms, kiln_node_input(n, i));
  kiln_ir_value *scale = kiln_node_add_output(terms, tensor);
  kiln_ir_value *shift = kiln_node_add_output(terms, tensor);
  (void)kiln_shape_infer(n->graph, terms);
  kiln_ir_value *product =
      kiln_node_add_output(insert(n, KILN_OP_mul_Tensor, x, scale), n->outputs[0]->type);
  kiln_ir_value *one = kiln_insert_int_before(n, 1);
  kiln_node *add = insert(n, KILN_OP_add_Tensor, product, shift);
  kiln_node_add_input(add, one);
  kiln_ir_value_replace_uses(n->outputs[0], kiln_node_add_output(add, n->outputs[0]->type));
  kiln_node_destroy(n);
  return true;
}

/* -- Views behind convolutions -- */

static bool is_any_view(const kiln_node *n) {
  return n->op && n->op->cost == KILN_COST_view && n->op->variant == KILN_VARIANT_NONE &&
         n->output_count == 1;
}
static bool is_view(const kiln_node *n) {
  if (!is_any_view(n)) return false;
  for (int i = 1; i < n->input_count; i++)
    if (!kiln_ir_value_constant(kiln_node_input(n, i))) return false;
  return true;
}

/* Element by element, of one tensor. */
static bool is_map(const kiln_node *n) {
  if (!n->op || n->op->cost != KILN_COST_pointwise || n->op->variant != KILN_VARIANT_NONE ||
      n->output_count != 1 || n->input_count == 0 || !kiln_codegen_has_lowering(n->op))
    return false;
  for (int i = 1; i < n->input_count; i++)
    if (!kiln_ir_value_constant(kiln_node_input(n, i)) ||
        kiln_type_is_tensor(kiln_node_input(n, i)->type))
      return false;
  return true;
}

static bool is_only_use(const kiln_ir_value *v, const kiln_node *user) {
  return v->use_count == 1 && v->node->block == user->block;
}

/* A convolution's result, or what is made of it element by element. */
static bool is_of_convolution(const kiln_ir_value *v) {
  enum { MOST_MAPS = 8 };
  for (int i = 0; i < MOST_MAPS && is_map(v->node); i++) v = kiln_node_input(v->node, 0);
  return v->node->op && kiln_codegen_convolves(v->node->op);
}

/* gelu(y.flatten(2).transpose(1, 2)) becomes gelu(y).flatten(2).transpose(1, 2), of a convolution's
 * y: its kernel computes it. */
static bool raise_map(kiln_pass *pass, kiln_node *n) {
  enum { MOST_VIEWS = 8 };
  if (!is_map(n)) return false;
  kiln_ir_value *from = kiln_node_input(n, 0), *to = n->outputs[0], *y = from;
  kiln_node *first = NULL;
  const kiln_node *user = n;
  for (int i = 0; i < MOST_VIEWS && is_only_use(y, user) && is_view(y->node); i++) {
    user = first = y->node;
    y = kiln_node_input(y->node, 0);
  }
  if (!first || !is_only_use(y, first) || !is_of_convolution(y) || to->type != from->type ||
      !kiln__has_all_of(from, y) || kiln_alias_has_writers(kiln_pass_alias(pass), y) ||
      kiln_alias_has_writers(kiln_pass_alias(pass), to))
    return false;
  kiln_ir_value_replace_uses(to, from);
  kiln_node_detach(n);
  kiln_node_insert_before(n, first);
  kiln_map none = kiln_map_in(pass->scratch);
  for (int i = 1; i < n->input_count; i++) {
    kiln_node *constant = kiln_node_copy(n->graph, kiln_node_input(n, i)->node, &none);
    kiln_node_insert_before(constant, n);
    kiln_node_set_input(n, i, constant->outputs[0]);
  }
  kiln_node_set_input(n, 0, y);
  to->type = y->type;
  kiln_node_set_input(first, 0, to); /* nobody writes what all of them share, now as before */
  return true;
}

/* -- Views around products -- */

static bool is_row_major(const kiln_ir_value *v) {
  return kiln_type_has_dims(v->type) &&
         kiln__is_row_major(kiln_type_table_dims(v->node->graph->types), v->type->detail);
}

/* Whether v has the rows of x, each of another length. */
static bool has_rows_of(const kiln_ir_value *v, const kiln_ir_value *x) {
  if (!is_row_major(v) || !is_row_major(x)) return false;
  const kiln_tensor_detail *a = v->type->detail, *b = x->type->detail;
  return a->rank == b->rank && a->rank > 2 &&
         memcmp(a->sizes, b->sizes, sizeof *a->sizes * (size_t)(a->rank - 1)) == 0;
}

static bool is_size_of(const kiln_ir_value *v, const kiln_ir_value *x, int dim) {
  int64_t at;
  if (!kiln_node_is(v->node, KILN_OP_size_int) || kiln_node_input(v->node, 0) != x ||
      !kiln_ir_value_const_int(kiln_node_input(v->node, 1), &at))
    return false;
  return (at < 0 ? at + x->type->detail->rank : at) == dim;
}

/* The sizes that a view or reshape asks for; NULL: it is neither. */
static const kiln_ir_value *sizes_of_view(const kiln_node *n) {
  const bool asks = kiln_node_is(n, KILN_OP_view) || kiln_node_is(n, KILN_OP_reshape);
  return asks ? kiln_node_input(n, 1) : NULL;
}

/* x.view(-1, K): K is a constant, or x.size(-1). */
static bool makes_rows(const kiln_node *view, const kiln_ir_value *x) {
  const kiln_ir_value *sizes = sizes_of_view(view);
  const kiln_ivalue *all = sizes ? kiln_ir_value_constant(sizes) : NULL;
  int64_t width;
  if (all)
    return all->tag == KILN_TAG_LIST && all->u.list->count == 2 && all->u.list->items[0].u.i == -1;
  const kiln_node *list = sizes ? sizes->node : NULL;
  return list && kiln_node_is(list, KILN_OP_prim_ListConstruct) && list->input_count == 2 &&
         kiln_ir_value_is_number(kiln_node_input(list, 0), -1) &&
         (kiln_ir_value_const_int(kiln_node_input(list, 1), &width) ||
          is_size_of(kiln_node_input(list, 1), x, x->type->detail->rank - 1));
}

/* Whether `rows` are x.view(-1, K), and `back` is y.view(x.size(0), .., N) of a y of N columns: so
 * asked, not only so seen, for no guard stands here yet. An x of other rows than of K fits no such
 * y. */
static bool views_are_of(const kiln_ir_value *x, const kiln_node *rows, const kiln_node *back,
                         int64_t columns) {
  const kiln_ir_value *sizes = sizes_of_view(back);
  const kiln_node *list = sizes ? sizes->node : NULL;
  const int rank = x->type->detail->rank;
  int64_t last;
  if (!makes_rows(rows, x) || !list || !kiln_node_is(list, KILN_OP_prim_ListConstruct) ||
      list->input_count != rank)
    return false;
  for (int d = 0; d < rank - 1; d++)
    if (!is_size_of(kiln_node_input(list, d), x, d)) return false;
  return kiln_ir_value_const_int(kiln_node_input(list, rank - 1), &last) && last == columns;
}

/* What stands there now; NULL: as before. */
static const kiln_node *take_views(kiln_pass *pass, kiln_node *n) {
  int dtype, bias_dtype;
  if (!kiln__is_addmm(n) || bias_of(n) < 0 || n->outputs[0]->use_count != 1) return NULL;
  kiln_ir_value *bias = kiln_node_input(n, 0), *rows = kiln_node_input(n, 1), *y = n->outputs[0];
  kiln_node *last = y->uses->user;
  if (!is_float(y, &dtype) || !is_float(bias, &bias_dtype) || dtype != bias_dtype ||
      bias->type->detail->rank != 1 || !is_any_view(last) || last->block != n->block ||
      !is_any_view(rows->node))
    return NULL;
  kiln_ir_value *x = kiln_node_input(rows->node, 0), *to = last->outputs[0];
  kiln_ir_value *w = kiln_node_input(n, 2);
  if (!has_rows_of(to, x) || !is_row_major(rows) || !kiln__has_all_of(rows, x) ||
      !kiln__has_all_of(to, y) || !is_matrix(w) || !is_matrix(rows) ||
      w->type->detail->dtype != dtype ||
      x->type->detail->sizes[x->type->detail->rank - 1] != rows->type->detail->sizes[1] ||
      !kiln__is_made_of_weights(w) ||
      !views_are_of(x, rows->node, last, w->type->detail->sizes[1]) ||
      kiln_alias_has_writers(kiln_pass_alias(pass), y) ||
      kiln_alias_has_writers(kiln_pass_alias(pass), x))
    return NULL;
  for (const kiln_use *use = to->uses; use; use = use->next)
    if (!is_elementwise(use->user, n->block)) return NULL;
  kiln_node *product = insert(n, KILN_OP_matmul, x, kiln_node_input(n, 2));
  kiln_node *add = insert(n, KILN_OP_add_Tensor, kiln_node_add_output(product, to->type), bias);
  kiln_node_add_input(add, kiln_insert_int_before(add, 1));
  kiln_ir_value_replace_uses(to, kiln_node_add_output(add, to->type));
  kiln_node_destroy(last);
  kiln_node_destroy(n);
  return add;
}

/* -- Products of halves -- */

static bool is_half(const kiln_ir_value *v) {
  if (!kiln_type_is_tensor(v->type) || !kiln_type_has_dims(v->type)) return false;
  const kiln_tensor_detail *d = v->type->detail;
  return kiln_dtype_is_half((kiln_dtype)d->dtype) && d->requires_grad != 1;
}

/* Which operand is the weight; -1: it is no product that this pass widens. */
static int weight_of(const kiln_node *n) {
  if (kiln__is_addmm(n)) return kiln__product_is_unscaled(n) ? kiln__product_w(n) : -1;
  const bool product = kiln_node_is(n, KILN_OP_linear) || kiln_node_is(n, KILN_OP_mm) ||
                       kiln_node_is(n, KILN_OP_matmul);
  return product || kiln__convolution_groups(n) > 0 ? 1 : -1;
}

static const kiln_type *with_dtype(const kiln_type *type, kiln_graph *graph, kiln_dtype dtype) {
  kiln_tensor_detail d = *type->detail;
  d.dtype = (int8_t)dtype;
  return kiln_type_tensor(graph->types, &d);
}

/* to(v, dtype) beside a node. */
static kiln_ir_value *cast(kiln_ir_value *v, kiln_dtype dtype, kiln_node *at, bool behind) {
  kiln_node *n = kiln_node_create_like(at, KILN_OP_to_dtype);
  (behind ? kiln_node_insert_after : kiln_node_insert_before)(n, at);
  kiln_node_add_input(n, v);
  kiln_node_add_input(n, kiln_insert_int_before(n, dtype));
  for (int i = 0; i < 2; i++) /* non_blocking, copy */
    kiln_node_add_input(
        n, kiln_insert_constant_before(n, kiln_bool(false), kiln_type_basic(KILN_TYPE_BOOL)));
  kiln_node_add_input(n,
                      kiln_insert_constant_before(n, kiln_none(), kiln_type_basic(KILN_TYPE_NONE)));
  return kiln_node_add_output(n, with_dtype(v->type, at->graph, dtype));
}

/* linear(x, w, b) of halves, which sums in f32 and rounds once, is linear of them as f32, rounded:
 * a kernel, and a weight that is widened once. */
static bool widen(kiln_node *n) {
  const int weight = weight_of(n);
  if (weight < 0 || !is_half(n->outputs[0]) ||
      !kiln__is_made_of_weights(kiln_node_input(n, weight)))
    return false;
  const kiln_dtype dtype = (kiln_dtype)n->outputs[0]->type->detail->dtype;
  for (int i = 0; i < n->input_count; i++) {
    const kiln_ir_value *v = kiln_node_input(n, i);
    if (kiln_type_is_tensor(v->type) && (!is_half(v) || v->type->detail->dtype != (int8_t)dtype))
      return false;
  }
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(n, i);
    if (kiln_type_is_tensor(v->type)) kiln_node_set_input(n, i, cast(v, KILN_DTYPE_F32, n, false));
  }
  kiln_ir_value *y = n->outputs[0], *rounded = cast(y, dtype, n, true);
  y->type = with_dtype(y->type, n->graph, KILN_DTYPE_F32);
  for (kiln_use *use = y->uses, *next; use; use = next) {
    next = use->next;
    if (use->user != rounded->node) kiln_node_set_input(use->user, use->index, rounded);
  }
  return true;
}

/* Where no kernel convolves, statistics are best found by the kernel that reads them. */
static bool is_convolved(const kiln_pass *pass, const kiln_block *block) {
  const kiln_flags *flags = &pass->env->flags;
  return flags->layouts && !flags->exact && flags->codegen == (int)KILN_BACKEND_LLVM &&
         flags->compat != KILN_COMPAT_TORCH && kiln__has_convolution(block);
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  const bool convolved = is_convolved(pass, block);
  const bool widens = !pass->env->flags.exact && pass->env->flags.compat != KILN_COMPAT_TORCH;
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    if (widens && widen(n)) {
      pass->changed = true;
      next = n->next;
    }
    const kiln_node *made = take_views(pass, n);
    if (made) next = made->next;
    if (made || (convolved && (take_norm_apart(n) || raise_map(pass, n))) || decompose(n))
      pass->changed = true;
  }
}

kiln_status *kiln_pass_decompose_ops(kiln_pass *pass) {
  visit_block(pass, pass->graph->top);
  if (pass->changed) kiln_pass_forget_alias(pass);
  return NULL;
}
