/* hoist_constants.c: pass `hoist_constants`: what a group computes of weights alone stands in front
 * of it, where it can be kept (keep_constants.c).
 *
 * Batch norm that does not train is x * scale + shift, and what it makes of its four parameters is
 * an operator of its own, kiln::batch_norm_terms. Of y = batch_norm(x, w, b, mean, var), with these
 * four as inputs of the group, becomes
 *   in front:      scale, shift = batch_norm_terms(w, b, mean, var)
 *   in the group:  y = x * scale.unsqueeze(-1) + shift.unsqueeze(-1), as often as x has dimensions
 *                  behind its channels
 * with the same bits. What is made of constants alone (zeros) stays, and has a copy in front where
 * something that goes there reads it. Other operators that read inputs of the group which are
 * weights, or what is made of those, leave it as they are; views go along where they are needed. A
 * result that others than groups see is computed where it was. */
#include "guards/guards.h"
#include "jit/fusion.h"
#include "jit/kept.h"
#include "jit/norm.h"

typedef struct hoister {
  kiln_pass *pass;
  kiln_node *group;
  kiln_graph *body;
  kiln_map fixed; /* values of the body that are made of weights alone */
  kiln_map made;  /* those of them that are made of constants alone */
  kiln_map outer; /* values of the body -> what they are in front of the group */
  kiln_map seen;  /* of the block: kiln__find_seen */
} hoister;

static bool is_constant(const kiln_ir_value *v) {
  return kiln_node_is(v->node, KILN_OP_prim_Constant);
}
static bool is_fixed(const hoister *h, const kiln_ir_value *v) {
  return is_constant(v) || kiln_map_find_ptr(&h->fixed, v);
}
static bool is_list(const kiln_node *n) { return kiln_node_is(n, KILN_OP_prim_ListConstruct); }
static bool is_view(const kiln_node *n) { return is_list(n) || n->op->cost == KILN_COST_view; }

/* -- Batch norm -- */

/* A vector of the channels, in what x is computed in; or None where it may be. */
static bool is_parameter(const hoister *h, const kiln_node *n, int i, const kiln_tensor_detail *x) {
  const kiln_ir_value *v = kiln_node_input(n, i);
  if (kiln_ir_value_is_none(v)) return i < 3;
  if (!is_fixed(h, v) || !kiln_type_is_tensor(v->type) || !kiln_type_is_complete_tensor(v->type))
    return false;
  const kiln_tensor_detail *d = v->type->detail;
  return d->dtype == x->dtype && d->rank == 1 && d->sizes[0] == x->sizes[1];
}

/* A product and a sum have x's strides, batch norm those of rows: where they are the same. */
static bool has_rows(const kiln_tensor_detail *x, const kiln_ir_value *result) {
  if (!kiln_type_has_dims(result->type)) return false;
  const kiln_tensor_detail *d = result->type->detail;
  bool same = d->rank == x->rank && d->dtype == x->dtype;
  for (int i = 0; same && i < x->rank; i++)
    same = kiln_dim_is_known(x->strides[i]) && x->strides[i] == d->strides[i];
  return same;
}

static bool can_take_apart(const hoister *h, const kiln_node *n) {
  if (!kiln__is_trained_norm(n) || !is_constant(kiln_node_input(n, KILN__NORM_EPS))) return false;
  const kiln_type *type = kiln_node_input(n, 0)->type;
  if (!kiln_type_has_dims(type) || type->detail->rank < 2) return false;
  const kiln_tensor_detail *x = type->detail;
  bool good = (x->dtype == KILN_DTYPE_F32 || x->dtype == KILN_DTYPE_F64) &&
              kiln_dim_is_number(x->sizes[1]) && has_rows(x, n->outputs[0]);
  for (int i = 1; i < 5; i++) good = good && is_parameter(h, n, i, x);
  return good;
}

static kiln_node *add_node(kiln_node *like, kiln_op_id id, kiln_ir_value *a, kiln_ir_value *b) {
  kiln_node *n = kiln_node_create_like(like, id);
  if (a) kiln_node_add_input(n, a);
  if (b) kiln_node_add_input(n, b);
  kiln_node_insert_before(n, like);
  return n;
}
static kiln_ir_value *give(kiln_node *n) {
  kiln_ir_value *v = kiln_node_add_output(n, kiln_type_basic(KILN_TYPE_TENSOR));
  (void)kiln_shape_infer(n->graph, n);
  return v;
}

/* [C, 1, …] beside x: behind its channels come dimensions of 1. */
static kiln_ir_value *beside(kiln_node *before, kiln_ir_value *v, const kiln_tensor_detail *x,
                             kiln_ir_value *last) {
  for (int i = 2; i < x->rank; i++) v = give(add_node(before, KILN_OP_unsqueeze, v, last));
  return v;
}

static void take_apart(kiln_node *n) {
  const kiln_tensor_detail *x = kiln_node_input(n, 0)->type->detail;
  kiln_node *terms = add_node(n, KILN_OP_batch_norm_terms, NULL, NULL);
  for (int i = 1; i < 5; i++) kiln_node_add_input(terms, kiln_node_input(n, i));
  kiln_node_add_input(terms, kiln_node_input(n, KILN__NORM_EPS));
  kiln_ir_value *scale = kiln_node_add_output(terms, kiln_type_basic(KILN_TYPE_TENSOR));
  kiln_ir_value *shift = give(terms), *last = x->rank > 2 ? kiln_insert_int_before(n, -1) : NULL;
  scale = beside(n, scale, x, last);
  shift = beside(n, shift, x, last);
  kiln_ir_value *product = give(add_node(n, KILN_OP_mul_Tensor, kiln_node_input(n, 0), scale));
  kiln_ir_value *one = kiln_insert_int_before(n, 1);
  kiln_node *add = add_node(n, KILN_OP_add_Tensor, product, shift);
  kiln_node_add_input(add, one);
  kiln_ir_value_replace_uses(n->outputs[0], kiln_node_add_output(add, n->outputs[0]->type));
  kiln_node_destroy(n);
}

/* -- What is fixed -- */

/* A result of the group that others see stays its own. */
static bool is_given_out(const hoister *h, const kiln_ir_value *v) {
  for (const kiln_use *use = v->uses; use; use = use->next) {
    if (use->user == h->body->top->ret &&
        kiln_map_find_ptr(&h->seen, kiln_node_output(h->group, use->index)))
      return true;
  }
  return false;
}

/* What reads nothing but constants is made of the loops' own counters. */
static bool is_made(const hoister *h, const kiln_node *n) {
  for (int i = 0; i < n->input_count; i++) {
    const kiln_ir_value *v = kiln_node_input(n, i);
    if (!is_constant(v) && !kiln_map_find_ptr(&h->made, v)) return false;
  }
  return true;
}

static bool may_hoist(const hoister *h, const kiln_node *n) {
  for (int i = 0; i < n->input_count; i++)
    if (!is_fixed(h, kiln_node_input(n, i))) return false;
  for (int i = 0; !is_view(n) && i < n->output_count; i++)
    if (is_given_out(h, n->outputs[i])) return false;
  return is_list(n) || kiln__is_keepable(n);
}

static void find_fixed(hoister *h) {
  int room = KILN_GROUP_VALUES - h->group->input_count - h->group->output_count;
  for (int i = 0; i < h->group->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(h->group, i), *own = kiln_graph_input(h->body, i);
    if (!kiln_type_is_tensor(v->type) || !kiln__is_made_of_weights(v)) continue;
    kiln_map_set_ptr(&h->fixed, own, own);
    kiln_map_set_ptr(&h->outer, own, v);
  }
  for (kiln_node *n = h->body->top->first, *next; n; n = next) {
    next = n->next;
    if (kiln_node_is(n, KILN_OP_prim_Constant) || !n->op || n->output_count > room) continue;
    if (can_take_apart(h, n) && room >= 2) {
      kiln_node *before = n->prev;
      take_apart(n);
      h->pass->changed = true;
      next = before ? before->next : h->body->top->first;
    } else if (may_hoist(h, n)) {
      const bool made = is_made(h, n);
      for (int i = 0; i < n->output_count; i++) {
        kiln_map_set_ptr(&h->fixed, n->outputs[i], n->outputs[i]);
        if (made) kiln_map_set_ptr(&h->made, n->outputs[i], n->outputs[i]);
      }
      room -= made || is_view(n) ? 0 : n->output_count;
    }
  }
}

/* -- Putting it in front -- */

static kiln_ir_value *outer_of(hoister *h, kiln_ir_value *v);

static void copy_out(hoister *h, const kiln_node *n) {
  for (int i = 0; i < n->input_count; i++) (void)outer_of(h, kiln_node_input(n, i));
  kiln_node *copy = kiln_node_copy(h->pass->graph, n, &h->outer);
  kiln_node_insert_before(copy, h->group);
  for (int i = 0; i < n->output_count; i++)
    kiln_map_set_ptr(&h->outer, n->outputs[i], copy->outputs[i]);
}

/* What it is in front of the group; nodes that it takes are copied there, views one by one. */
static kiln_ir_value *outer_of(hoister *h, kiln_ir_value *v) {
  if (!kiln_map_find_ptr(&h->outer, v)) copy_out(h, v->node);
  return kiln_map_find_ptr(&h->outer, v);
}

static void give_directly(hoister *h, int output) {
  kiln_ir_value *v = kiln_graph_output(h->body, output);
  if (!kiln_map_find_ptr(&h->fixed, v) || kiln_map_find_ptr(&h->made, v) ||
      v->node == h->body->top->param || is_view(v->node))
    return;
  kiln_ir_value_replace_uses(kiln_node_output(h->group, output), outer_of(h, v));
  kiln_block_remove_output(h->body->top, output);
  kiln_node_remove_output(h->group, output);
}

/* It becomes an input of the group. */
static void take_in(hoister *h, kiln_ir_value *v) {
  if (!v->uses) return;
  kiln_ir_value *own = kiln_graph_add_input(h->body, NULL, v->type);
  kiln_ir_value_replace_uses(v, own);
  kiln_node_add_input(h->group, outer_of(h, v));
}

static bool is_used(const kiln_node *n) {
  for (int i = 0; i < n->output_count; i++)
    if (n->outputs[i]->uses) return true;
  return false;
}

static void clear_body(hoister *h) {
  for (kiln_node *n = h->body->top->last, *prev; n; n = prev) {
    prev = n->prev;
    const bool constant = kiln_node_is(n, KILN_OP_prim_Constant) ||
                          (n->output_count && kiln_map_find_ptr(&h->made, n->outputs[0]));
    if (!constant && !(n->output_count && kiln_map_find_ptr(&h->fixed, n->outputs[0]))) continue;
    for (int i = 0; !constant && !is_view(n) && i < n->output_count; i++) take_in(h, n->outputs[i]);
    if (!is_used(n)) kiln_node_destroy(n);
  }
  for (int i = kiln_graph_input_count(h->body) - 1; i >= 0; i--) {
    if (kiln_graph_input(h->body, i)->uses) continue;
    kiln_block_remove_input(h->body->top, i);
    kiln_node_remove_input(h->group, i);
  }
}

static void hoist_from(hoister *h) {
  bool any = false;
  find_fixed(h);
  for (const kiln_node *n = h->body->top->first; n; n = n->next) {
    if (!n->output_count || !kiln_map_find_ptr(&h->fixed, n->outputs[0]) || is_view(n)) continue;
    (void)outer_of(h, n->outputs[0]);
    any = true;
  }
  if (!any) return;
  h->pass->changed = true;
  for (int i = h->group->output_count - 1; i >= 0; i--) give_directly(h, i);
  clear_body(h);
  if (h->group->output_count == 0) kiln_node_destroy(h->group);
}

/* -- The pass -- */

static void visit(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next)
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b]);
  if (!kiln_guards_is_hit(block)) return;
  kiln_map seen = kiln_map_in(pass->scratch);
  kiln__find_seen(block, &seen);
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    if (!kiln_node_is_group(n)) continue;
    hoister h = {.pass = pass, .group = n, .body = kiln_node_graph(n, "Subgraph"), .seen = seen};
    h.fixed = kiln_map_in(pass->scratch);
    h.made = kiln_map_in(pass->scratch);
    h.outer = kiln_map_in(pass->scratch);
    hoist_from(&h);
  }
}

kiln_status *kiln_pass_hoist_constants(kiln_pass *pass) {
  const kiln_flags *flags = &pass->env->flags;
  if (flags->keep && flags->compat != KILN_COMPAT_TORCH) visit(pass, pass->graph->top);
  return NULL;
}
