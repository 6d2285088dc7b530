/* remove_tensor_mutation.c: pass `remove_tensor_mutation`: x.relu_() makes a new tensor where
 * nobody can see the difference.
 *
 * Who holds x's memory when the operator runs is found from where the memory was made: by an
 * operator whose schema says that its result is new, through branches, forward over every use that
 * comes before the write (views, tuples, lists, casts). If no holder but x itself is used
 * afterwards, and all later uses of x are reached by way of the write, they take the new result
 * instead. The case that defeats looking at x's own uses is a view taken before the write. What
 * came from outside, is in an attribute, in a container that is read later, or goes around a loop
 * that the write stands in, is left alone.
 *
 * Of x.op_(y) the result has x's dtype, sizes and strides, or it fails; op(x, y) may promote or
 * broadcast, and makes a row-major result of a (1, 2) operand with strides (1, 1). So op_ becomes
 * kiln::op_, which keeps its rules and makes its result in new memory. What draws random numbers
 * has no such form, and becomes op where the table says that dtype and sizes agree
 * (KILN_OP_SAME_TYPE).
 *
 * A write to a part that nobody else reads makes a new whole: of x[:, 1] += y
 *   part = x.select(1, 1); new = kiln::add_(part, y); x' = x.select_scatter(new, 1, 1)
 * and of x[:, 1] = y, where y.expand_as(part) is what is new; later uses of x take x'. A whole is
 * copied for each of its parts, so that of many parts the later ones are written in place. Where
 * nobody reads x any more, the part is all that there is. */
#include "ir/pass.h"

typedef struct proof {
  kiln_arena *arena;
  kiln_node *node;     /* the write */
  kiln_ir_value *self; /* what it writes, or whose part: */
  kiln_node *part;     /* the view that begins at self and leads to the write; NULL: none does */
  kiln_map seen;
  KILN_VEC(kiln_ir_value *) holders;
} proof;

/* -- Which operator it becomes -- */

/* Same arguments, names and defaults aside. */
static bool same_arguments(const kiln_schema *a, const kiln_schema *b) {
  if (a->arg_count != b->arg_count || a->result_count != b->result_count) return false;
  for (int i = 0; i < a->arg_count; i++) {
    if (a->args[i].type != b->args[i].type || b->args[i].alias.present) return false;
  }
  return a->results[0].type == b->results[0].type && !b->results[0].alias.present;
}

/* The operator without the underscore, by the table's own link or by name and schema. */
static const kiln_op *pure_form(const kiln_registry *registry, const kiln_op *op) {
  if (op->variant == KILN_VARIANT_INPLACE) return kiln_registry_op(registry, (kiln_op_id)op->id);
  kiln_str name = {op->name.data, op->name.len - 1};
  const kiln_op_set *set = kiln_registry_find(registry, name);
  for (int i = 0; set && i < set->count; i++) {
    const kiln_op *other = set->ops[i];
    if (other->schema && same_arguments(op->schema, other->schema)) return other;
  }
  return NULL;
}

/* NULL: the node is no operator in place, or has no other form. */
static const kiln_op *functional_form(const kiln_node *node) {
  const kiln_op *op = node->op;
  if (!op || !op->schema || op->id >= KILN_OP__BUILTIN_COUNT) return NULL;
  if (op->variant != KILN_VARIANT_NONE && op->variant != KILN_VARIANT_INPLACE) return NULL;
  const kiln_schema *s = op->schema;
  if (!op->name.len || op->name.data[op->name.len - 1] != '_' || s->arg_count < 1) return NULL;
  if (s->result_count != 1 || !kiln_type_is_tensor(s->args[0].type)) return NULL;
  if (!s->args[0].alias.is_write || !s->results[0].alias.is_write) return NULL;
  const kiln_registry *registry = node->graph->registry;
  const kiln_op *copy = kiln_registry_variant(registry, (kiln_op_id)op->id, KILN_VARIANT_COPY);
  const kiln_op *pure = copy ? NULL : pure_form(registry, op);
  return pure && pure->flags & KILN_OP_SAME_TYPE ? pure : copy;
}

/* -- Memory -- */

static bool may_hold(const kiln_type *type) {
  switch (type->kind) {
    case KILN_TYPE_INT:
    case KILN_TYPE_FLOAT:
    case KILN_TYPE_BOOL:
    case KILN_TYPE_NUMBER:
    case KILN_TYPE_STR:
    case KILN_TYPE_NONE:
    case KILN_TYPE_DEVICE: return false;
    default: return true;
  }
}

/* The schema says that the value is new memory. Custom operators are not taken at their word. */
static bool is_new(const kiln_ir_value *v) {
  const kiln_op *op = v->node->op;
  if (!op || !op->schema || op->id >= KILN_OP__BUILTIN_COUNT) return false;
  if (op->cost == KILN_COST_view || op->flags & KILN_OP_MAY_RETURN_ARG) return false;
  if (v->index >= op->schema->result_count) return false;
  const kiln_schema_arg *result = &op->schema->results[v->index];
  return !result->alias.present && !result->elem_alias.present && !kiln_type_has_var(result->type);
}

/* Its result is its first argument, or may be. */
static bool passes_on(const kiln_node *n) {
  return kiln_node_is(n, KILN_OP_prim_unchecked_cast) ||
         kiln_node_is(n, KILN_OP_prim_unchecked_unwrap_optional) ||
         kiln_node_is(n, KILN_OP_prim_profile) ||
         (n->op && n->op->schema && n->op->flags & KILN_OP_MAY_RETURN_ARG);
}

static void add_holder(proof *p, kiln_ir_value *v) {
  if (!may_hold(v->type) || kiln_map_find_ptr(&p->seen, v)) return;
  kiln_map_set_ptr(&p->seen, v, v);
  kiln_vec_push(p->arena, &p->holders, v);
}

/* Adds the values that v's memory was made as; false when it was not made here. */
static bool add_makers(proof *p, kiln_ir_value *v) {
  if (is_new(v)) {
    add_holder(p, v);
    return true;
  }
  if (kiln_map_find_ptr(&p->seen, v)) return true;
  const kiln_node *n = v->node;
  if (passes_on(n) && n->input_count) {
    add_holder(p, v);
    return add_makers(p, kiln_node_input(n, 0));
  }
  if (!kiln_node_is(n, KILN_OP_prim_If)) return false;
  add_holder(p, v);
  for (int b = 0; b < n->block_count; b++) {
    if (!add_makers(p, kiln_block_output(n->blocks[b], v->index))) return false;
  }
  return true;
}

/* -- Order -- */

/* The nodes of the innermost common block that are `a` and `b`, or hold them. */
static void common_block(kiln_node *a, kiln_node *b, kiln_node **out_a, kiln_node **out_b) {
  for (; a; a = a->block->owner) {
    for (kiln_node *other = b; other; other = other->block->owner) {
      if (other->block != a->block) continue;
      *out_a = a;
      *out_b = other;
      return;
    }
  }
  *out_a = *out_b = NULL;
}

/* The write stands in a loop that `v` was made outside of: what stands before it runs after it. */
static bool in_other_loop(const proof *p, const kiln_ir_value *v) {
  kiln_node *made, *write;
  common_block(v->node, p->node, &made, &write);
  for (const kiln_node *n = p->node; n != write; n = n->block->owner) {
    if (kiln_node_is(n->block->owner, KILN_OP_prim_Loop)) return true;
  }
  return false;
}

static bool runs_after(const proof *p, kiln_node *user, bool *out_reached) {
  kiln_node *a, *b;
  common_block(user, p->node, &a, &b);
  *out_reached = b == p->node;
  if (a == b) return false; /* the other side of a branch */
  return a == a->block->ret || kiln_node_is_before(b, a);
}

/* -- Holders -- */

static bool writes_container(const kiln_node *n) {
  const kiln_schema *s = n->op->schema;
  for (int i = 0; i < s->arg_count && i < n->input_count; i++) {
    bool write = s->args[i].alias.is_write || s->args[i].elem_alias.is_write;
    if (write && !kiln_type_is_tensor(kiln_node_input(n, i)->type)) return true;
  }
  return false;
}

/* What the results of a block become. */
static void follow_result(proof *p, const kiln_use *use) {
  kiln_node *owner = use->user->block->owner;
  if (kiln_node_is(owner, KILN_OP_prim_If)) {
    add_holder(p, owner->outputs[use->index]);
  } else if (use->index > 0) { /* of a loop */
    add_holder(p, owner->outputs[use->index - 1]);
    add_holder(p, kiln_block_input(use->user->block, use->index));
  }
}

/* A use before the write: who holds the memory from then on. False: it cannot be told. */
static bool follow(proof *p, const kiln_use *use) {
  kiln_node *n = use->user;
  if (n == n->block->ret) {
    kiln_node *owner = n->block->owner;
    if (!kiln_node_is(owner, KILN_OP_prim_If) && !kiln_node_is(owner, KILN_OP_prim_Loop)) {
      return false;
    }
    follow_result(p, use);
    return true;
  }
  if (!n->op || kiln_op_joins_memory(n->op)) return false;
  if (n->op->schema) {
    if (n->op->id >= KILN_OP__BUILTIN_COUNT || writes_container(n)) return false;
  } else {
    switch (n->op->id) {
      case KILN_OP_prim_Loop:
        if (use->index < 2) return true;
        add_holder(p, kiln_block_input(n->blocks[0], use->index - 1));
        add_holder(p, n->outputs[use->index - 2]);
        return true;
      case KILN_OP_prim_ListConstruct:
      case KILN_OP_prim_TupleConstruct:
      case KILN_OP_prim_DictConstruct:
      case KILN_OP_prim_ListUnpack:
      case KILN_OP_prim_TupleUnpack:
      case KILN_OP_prim_TupleIndex:
      case KILN_OP_prim_TupleSlice:
      case KILN_OP_prim_ConstantChunk:
      case KILN_OP_prim_unchecked_cast:
      case KILN_OP_prim_unchecked_unwrap_optional:
      case KILN_OP_prim_profile:
      case KILN_OP_prim_isinstance:
      case KILN_OP_prim_Print: break;
      default: return false;
    }
  }
  for (int i = 0; i < n->output_count; i++) {
    if (!is_new(n->outputs[i])) add_holder(p, n->outputs[i]);
  }
  return true;
}

/* Nobody but self is looked at after the write, and self only where the write was passed. */
static bool holder_is_done(proof *p, kiln_ir_value *v) {
  if (in_other_loop(p, v)) return false;
  for (const kiln_use *use = v->uses; use; use = use->next) {
    bool reached;
    if (use->user == p->part && v == p->self && use->index == 0) continue;
    if (use->user == p->node) {
      bool harmless = v == p->self && p->node->op->cost == KILN_COST_pointwise;
      if (use->index != 0 && !harmless) return false;
      if (use->index == 0 && v != p->self) return false;
    } else if (runs_after(p, use->user, &reached)) {
      if (v != p->self || !reached) return false;
    } else if (!follow(p, use)) {
      return false;
    }
  }
  return true;
}

static bool is_unseen(proof *p) {
  if (!add_makers(p, p->self)) return false;
  for (int i = 0; i < p->holders.count; i++) {
    if (!holder_is_done(p, p->holders.data[i])) return false;
  }
  return true;
}

/* -- Rewriting -- */

/* What is written, or the part, in new memory. */
static kiln_ir_value *make_new(const proof *p, const kiln_op *op) {
  kiln_node *old = p->node, *node = kiln_node_create(old->graph, op);
  for (int i = 0; i < old->input_count; i++) kiln_node_add_input(node, kiln_node_input(old, i));
  node->range = old->range;
  node->scope = old->scope;
  kiln_ir_value *result = kiln_node_output(old, 0), *out = kiln_node_add_output(node, result->type);
  kiln_node_insert_before(node, old);
  if (result->name.len) kiln_ir_value_set_name(out, result->name);
  kiln_ir_value_replace_uses(result, out);
  return out;
}

typedef KILN_VEC(kiln_use *) use_vec;

/* Uses of self behind the write. */
static use_vec find_later(const proof *p) {
  use_vec later = {0};
  bool reached;
  for (kiln_use *use = p->self->uses; use; use = use->next)
    if (use->user != p->node && runs_after(p, use->user, &reached))
      kiln_vec_push(p->arena, &later, use);
  return later;
}

/* Puts `now` in the write's place. */
static void pass_on(const proof *p, const use_vec *later, kiln_ir_value *now) {
  for (int i = 0; i < later->count; i++)
    kiln_node_set_input(later->data[i]->user, later->data[i]->index, now);
  kiln_node_destroy(p->node);
}

/* -- Parts -- */

enum {
  MOST_VIEWS = 8, /* one in the other */
  MOST_USES = 64, /* of a whole, all of which each of its writes looks at */
  MOST_PARTS = 8  /* of a whole, that are no longer written in place */
};

/* Views and what puts a part back in its place, which has the view's other arguments behind it. */
static kiln_op_id scatter_of(const kiln_node *view) {
  if (kiln_node_is(view, KILN_OP_slice_Tensor)) return KILN_OP_slice_scatter;
  return kiln_node_is(view, KILN_OP_select_int) ? KILN_OP_select_scatter : KILN_OP__CUSTOM;
}

static bool is_view(const kiln_node *n) {
  return n->op && n->op->cost == KILN_COST_view && n->op->id < KILN_OP__BUILTIN_COUNT &&
         n->output_count == 1 && n->input_count > 0 &&
         kiln_type_is_tensor(kiln_node_input(n, 0)->type) &&
         kiln_type_is_tensor(n->outputs[0]->type);
}

/* The views that lead to the write, the last one first, each read by the next alone. */
static int find_views(const kiln_node *write, kiln_node **out) {
  int count = 0;
  for (kiln_ir_value *v = kiln_node_input(write, 0); is_view(v->node);
       v = kiln_node_input(v->node, 0)) {
    if (count == MOST_VIEWS || v->use_count != 1 || v->node->block != write->block) return 0;
    out[count++] = v->node;
  }
  return count;
}

/* How many parts have made the value: the whole, a whole before it, .. */
static int parts_of(const kiln_ir_value *v) {
  int parts = 0;
  for (; parts < MOST_PARTS && (kiln_node_is(v->node, KILN_OP_slice_scatter) ||
                                kiln_node_is(v->node, KILN_OP_select_scatter));
       v = kiln_node_input(v->node, 0))
    parts++;
  return parts;
}

/* Of part.copy_(y): y in the part's sizes. */
static kiln_ir_value *expand_source(kiln_node *copy) {
  kiln_node *n = kiln_node_create_like(copy, KILN_OP_expand_as);
  kiln_node_add_input(n, kiln_node_input(copy, 1));
  kiln_node_add_input(n, kiln_node_input(copy, 0));
  kiln_node_insert_before(n, copy);
  return kiln_node_add_output(n, kiln_type_basic(KILN_TYPE_TENSOR));
}

static bool rewrite_part(kiln_pass *pass, kiln_node *write, const kiln_op *op) {
  kiln_node *views[MOST_VIEWS];
  const int count = find_views(write, views);
  if (count == 0) return false;
  proof p = {.arena = pass->scratch,
             .node = write,
             .self = kiln_node_input(views[count - 1], 0),
             .part = views[count - 1]};
  p.seen = kiln_map_in(pass->scratch);
  if (p.self->use_count > MOST_USES || !is_unseen(&p)) return false;
  const use_vec later = find_later(&p);
  if (later.count == 0) { /* what is written is all that is read */
    pass_on(&p, &later, make_new(&p, op));
    return true;
  }
  if (write->outputs[0]->uses || parts_of(p.self) == MOST_PARTS) return false;
  for (int i = 0; i < count; i++)
    if (scatter_of(views[i]) == KILN_OP__CUSTOM) return false;
  bool is_part = false; /* else what is new is the whole */
  for (int i = 0; i < count; i++) is_part |= !kiln_node_is_whole_slice(views[i]);
  kiln_ir_value *now =
      is_part && kiln_node_is(write, KILN_OP_copy_) ? expand_source(write) : make_new(&p, op);
  for (int i = 0; i < count; i++) {
    if (kiln_node_is_whole_slice(views[i])) continue;
    kiln_node *put = kiln_node_create_like(write, scatter_of(views[i]));
    kiln_node_insert_before(put, write);
    kiln_node_add_input(put, kiln_node_input(views[i], 0));
    kiln_node_add_input(put, now);
    for (int k = 1; k < views[i]->input_count; k++)
      kiln_node_add_input(put, kiln_node_input(views[i], k));
    now = kiln_node_add_output(put, kiln_type_basic(KILN_TYPE_TENSOR));
  }
  pass_on(&p, &later, now);
  return true;
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    const kiln_op *op = functional_form(n);
    if (!op) continue;
    proof p = {.arena = pass->scratch, .node = n, .self = kiln_node_input(n, 0)};
    p.seen = kiln_map_in(pass->scratch);
    if (is_unseen(&p)) {
      const use_vec later = find_later(&p);
      pass_on(&p, &later, make_new(&p, op));
    } else if (!rewrite_part(pass, n, op)) {
      kiln_pass_refuse(pass, n, KILN_REASON_mutation, n->op->kernel.name);
      continue;
    }
    pass->changed = true;
  }
}

kiln_status *kiln_pass_remove_tensor_mutation(kiln_pass *pass) {
  /* PyTorch's executor has no such step. */
  if (pass->env->flags.compat == KILN_COMPAT_TORCH) return NULL;
  visit_block(pass, pass->graph->top);
  return NULL;
}
