/* hoist_products.c: pass `hoist_products`: what a loop multiplies each step of a tensor by is
 * multiplied for all steps in front of it.
 *
 * A recurrent cell written as a loop has two products in each step, one of what comes in and one of
 * its state. The first needs nothing of the step before. Of x (50, 1, 256) and w (1024, 256),
 *   for t in range(n): y = mm(x[t], w.t())
 * becomes
 *   all, made = steps_of_product(x, 0, n, w, True)
 *   for t in range(n): y = all[t] if made else mm(x[t], w.t())
 * which reads w once and not n times. The operator looks at what its arguments really are: it makes
 * nothing where the products would fail, are of other ranks, or have rows enough of their own
 * (runtime/kernels/heavy/products.c). Then the loop runs as it was written, with its complaints.
 *
 * The loop runs n times, nothing in it writes x or w, and nobody writes y, which shares memory with
 * those of other steps. Bits may be others than a step's own product has: not with KILN_EXACT, and
 * not under KILN_COMPAT=torch. */
#include "jit/fusion.h"
#include "runtime/kernels/heavy/products.h"

typedef struct hoister {
  kiln_pass *pass;
  kiln_node *loop;
  kiln_block *body;
} hoister;

/* A product of the loop's body, or in a branch of it: of x[i], i the loop's counter, and a weight
 * or its transpose. */
typedef struct step {
  kiln_node *product;
  kiln_ir_value *x, *weight;
  int64_t dim;
  bool transposed;
} step;

static bool is_outside(const hoister *h, const kiln_ir_value *v) {
  return v->node != h->body->param && !kiln_node_in_block(v->node, h->body);
}

/* -- What there is -- */

/* Sets attributes, or may. */
static bool has_effects(const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_SetAttr) || kiln_node_is(n, KILN_OP_prim_CallMethod) ||
        kiln_node_is(n, KILN_OP_prim_CallFunction) || !n->op)
      return true;
    for (int b = 0; b < n->block_count; b++)
      if (has_effects(n->blocks[b])) return true;
  }
  return false;
}

/* x[i], or x[:, i]. */
static bool find_step(const hoister *h, const kiln_ir_value *v, step *out) {
  const kiln_node *n = v->node;
  if (n->block != h->body || !kiln_node_is(n, KILN_OP_select_int)) return false;
  out->x = kiln_node_input(n, 0);
  while (out->x->node->block == h->body && kiln_node_is_whole_slice(out->x->node))
    out->x = kiln_node_input(out->x->node, 0);
  return is_outside(h, out->x) && kiln_ir_value_const_int(kiln_node_input(n, 1), &out->dim) &&
         kiln_node_input(n, 2) == kiln_block_input(h->body, 0);
}

/* From outside, or an attribute of what is. */
static bool is_fixed(const hoister *h, const kiln_ir_value *v) {
  while (!is_outside(h, v)) {
    if (v->node->block != h->body || !kiln_node_is(v->node, KILN_OP_prim_GetAttr)) return false;
    v = kiln_node_input(v->node, 0);
  }
  return true;
}

/* As the type says: the operator makes nothing of more, and a group takes the product. */
static bool has_many_rows(const kiln_ir_value *product) {
  const kiln_tensor_detail *d = product->type->detail;
  return kiln_type_has_dims(product->type) && d->rank == 2 &&
         kiln_dim_or(d->sizes[0], 0) > KILN_STEPS_MOST_ROWS;
}

static bool find_product(const hoister *h, kiln_node *n, step *out) {
  const bool is_linear =
      kiln_node_is(n, KILN_OP_linear) && kiln_ir_value_is_none(kiln_node_input(n, 2));
  if (!is_linear && !kiln_node_is(n, KILN_OP_mm) && !kiln_node_is(n, KILN_OP_matmul)) return false;
  if (has_many_rows(kiln_node_output(n, 0))) return false;
  *out = (step){.product = n, .weight = kiln_node_input(n, 1), .transposed = is_linear};
  const kiln_node *turn = out->weight->node;
  if (!is_linear && turn->block == h->body && kiln_node_is(turn, KILN_OP_t)) {
    out->weight = kiln_node_input(turn, 0);
    out->transposed = true;
  }
  return find_step(h, kiln_node_input(n, 0), out) && is_fixed(h, out->weight);
}

/* Nobody writes what is read, or what is given. */
static bool is_quiet(const hoister *h, const step *s) {
  const kiln_alias *alias = kiln_pass_alias(h->pass);
  const kiln_ir_value *given = kiln_node_output(s->product, 0);
  return !kiln_alias_writes_to(alias, h->loop, s->x) &&
         !kiln_alias_writes_to(alias, h->loop, s->weight) &&
         !kiln_alias_has_writers(alias, given) && !kiln_alias_is_wildcard(alias, given);
}

/* -- In front of the loop, and in its place -- */

/* The value in front of the loop: attributes are read there. */
static kiln_ir_value *in_front(const hoister *h, kiln_ir_value *v) {
  if (is_outside(h, v)) return v;
  kiln_ir_value *object = in_front(h, kiln_node_input(v->node, 0));
  kiln_map map = kiln_map_in(h->pass->scratch);
  kiln_map_set_ptr(&map, kiln_node_input(v->node, 0), object);
  kiln_node *copy = kiln_node_copy(h->pass->graph, v->node, &map);
  kiln_node_insert_before(copy, h->loop);
  return kiln_node_output(copy, 0);
}

static kiln_node *make_all(const hoister *h, const step *s) {
  const kiln_type *type_bool = kiln_type_basic(KILN_TYPE_BOOL);
  kiln_ir_value *weight = in_front(h, s->weight);
  kiln_node *all = kiln_node_create_like(s->product, KILN_OP_steps_of_product);
  kiln_node_insert_before(all, h->loop);
  kiln_node_add_input(all, s->x);
  kiln_node_add_input(all, kiln_insert_int_before(all, s->dim));
  kiln_node_add_input(all, kiln_node_input(h->loop, 0));
  kiln_node_add_input(all, weight);
  kiln_node_add_input(all, kiln_insert_constant_before(all, kiln_bool(s->transposed), type_bool));
  kiln_node_add_output(all, kiln_type_basic(KILN_TYPE_TENSOR));
  kiln_node_add_output(all, type_bool);
  return all;
}

/* Moves the node to the front of the block, and in front of it what it alone reads. */
static void sink(const hoister *h, kiln_node *n, kiln_block *block) {
  kiln_node_detach(n);
  kiln_node_prepend(block, n);
  for (int i = 0; i < n->input_count; i++) {
    kiln_node *from = kiln_node_input(n, i)->node;
    const bool is_view = kiln_node_is(from, KILN_OP_select_int) || kiln_node_is_whole_slice(from) ||
                         kiln_node_is(from, KILN_OP_t) || kiln_node_is(from, KILN_OP_prim_GetAttr);
    if (from->block != h->body || !is_view || from->outputs[0]->uses->next) continue;
    sink(h, from, block);
  }
}

static void replace(const hoister *h, const step *s) {
  kiln_node *all = make_all(h, s), *product = s->product;
  kiln_node *branch = kiln_node_create_id(h->pass->graph, KILN_OP_prim_If);
  branch->range = product->range;
  kiln_node_insert_before(branch, product);
  kiln_node_add_input(branch, kiln_node_output(all, 1));
  kiln_block *made = kiln_node_add_block(branch), *own = kiln_node_add_block(branch);
  const kiln_type *type = kiln_node_output(product, 0)->type;
  kiln_ir_value_replace_uses(kiln_node_output(product, 0), kiln_node_add_output(branch, type));
  kiln_node *pick = kiln_node_create_id(h->pass->graph, KILN_OP_select_int);
  pick->range = product->range;
  kiln_node_append(made, pick);
  kiln_node_add_input(pick, kiln_node_output(all, 0));
  kiln_node_add_input(pick, kiln_insert_int_before(pick, 0));
  kiln_node_add_input(pick, kiln_block_input(h->body, 0));
  kiln_block_add_output(made, kiln_node_add_output(pick, type));
  sink(h, product, own);
  kiln_block_add_output(own, kiln_node_output(product, 0));
  h->pass->changed = true;
}

typedef KILN_VEC(step) steps;

/* One that this pass has left: the product stands on its other side. */
static bool is_left(const kiln_node *branch) {
  return kiln_node_is(kiln_node_input(branch, 0)->node, KILN_OP_steps_of_product);
}
/* Of the block and of branches in it. */
static void collect(const hoister *h, const kiln_block *block, steps *found) {
  step s;
  for (kiln_node *n = block->first; n; n = n->next) {
    if (find_product(h, n, &s) && is_quiet(h, &s)) kiln_vec_push(h->pass->scratch, found, s);
    if (!kiln_node_is(n, KILN_OP_prim_If) || is_left(n)) continue;
    for (int b = 0; b < n->block_count; b++) collect(h, n->blocks[b], found);
  }
}

static void hoist(kiln_pass *pass, kiln_node *loop) {
  const hoister h = {pass, loop, loop->blocks[0]};
  steps found = {0};
  if (has_effects(h.body)) return;
  collect(&h, h.body, &found);
  for (int i = 0; i < found.count; i++) replace(&h, &found.data[i]);
  if (found.count) kiln_pass_forget_alias(pass);
}

static void visit(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    if (kiln_loop_is_counted(n)) hoist(pass, n);
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b]);
  }
}

kiln_status *kiln_pass_hoist_products(kiln_pass *pass) {
  const kiln_flags *flags = &pass->env->flags;
  if (!flags->exact && flags->compat != KILN_COMPAT_TORCH) visit(pass, pass->graph->top);
  return NULL;
}
