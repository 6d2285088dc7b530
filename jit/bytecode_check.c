/* bytecode_check.c: where a plan must look at a value because its static type is only claimed.
 *
 * Two things claim: an unchecked cast, and an uninitialised value. A cast that the graph proves
 * costs nothing: the value's type says it, or an If around the cast has asked (isinstance, is None;
 * values are in single assignment, so an answer holds wherever it is dominated). Any other cast is
 * a CHECK. What may be uninitialised is followed through Ifs, loops and tuples, where honest
 * programs carry it without looking, not counting branches that end in an exception; whoever else
 * uses it is preceded by a CHECK. Who trusts casts and marks instead crashes on a file whose author
 * has written them by hand. */
#include "jit/bytecode_internal.h"

/* -- What the Ifs around a node have found out -- */

/* Asked: is it of one of `types`, and which answer is wanted for the proof. */
typedef struct question {
  const kiln__bytecode_emitter *e;
  const kiln_ir_value *root;
  const kiln_type *type;           /* to be proved */
  const kiln_type *const *members; /* that the value may be of */
  bool *excluded;
  int count;
  int left; /* conditions that are looked at: they may share parts, c and c, at each depth */
} question;

static bool fits_all(const kiln_type *const *types, int count, const kiln_type *type) {
  for (int i = 0; i < count; i++) {
    if (!kiln_type_is_subtype(types[i], type)) return false;
  }
  return count > 0;
}

static void exclude(question *q, const kiln_type *type) {
  for (int i = 0; i < q->count; i++) {
    q->excluded[i] = q->excluded[i] || kiln_type_is_subtype(q->members[i], type);
  }
}

static bool is_none_constant(const kiln_ir_value *v) {
  const kiln_ivalue *c = kiln_ir_value_constant(v);
  return c && c->tag == KILN_TAG_NONE;
}

/* x is None (`none` true) or is not: `holds` is what the condition came to. */
static void learn_identity(question *q, const kiln_node *n, bool is_none) {
  if (n->input_count != 2 || kiln__bytecode_root(q->e, kiln_node_input(n, 0)) != q->root ||
      !is_none_constant(kiln__bytecode_root(q->e, kiln_node_input(n, 1)))) {
    return;
  }
  const kiln_type *none = kiln_type_basic(KILN_TYPE_NONE);
  if (!is_none) {
    exclude(q, none);
    return;
  }
  for (int i = 0; i < q->count; i++) {
    if (!kiln_type_is_subtype(none, q->members[i])) q->excluded[i] = true;
  }
}

static bool learn_isinstance(question *q, const kiln_node *n, bool holds) {
  const kiln_attr *attr = kiln_node_attr(n, "types");
  if (n->input_count != 1 || kiln__bytecode_root(q->e, kiln_node_input(n, 0)) != q->root || !attr ||
      attr->kind != KILN_ATTR_TYPES) {
    return false;
  }
  if (holds) return fits_all(attr->u.types.data, attr->u.types.count, q->type);
  for (int i = 0; i < attr->u.types.count; i++) exclude(q, attr->u.types.data[i]);
  return false;
}

enum { MOST_CONDITIONS = 256 };

/* What `condition` being `holds` says; true when it proves all. */
static bool learn(question *q, kiln_ir_value *condition, bool holds) {
  const kiln_node *n = condition->node;
  if (--q->left < 0) return false;
  if (kiln_node_is(n, KILN_OP_prim_isinstance)) return learn_isinstance(q, n, holds);
  if (kiln_node_is(n, KILN_OP___is__)) learn_identity(q, n, holds);
  if (kiln_node_is(n, KILN_OP___isnot__)) learn_identity(q, n, !holds);
  if (kiln_node_is(n, KILN_OP___not__)) {
    return learn(q, kiln_node_input(n, 0), !holds);
  }
  if (!kiln_node_is(n, KILN_OP_prim_If)) return false;
  /* a and b: if a: b else False; a or b: if a: True else b */
  int other = holds ? 1 : 0;
  const kiln_ir_value *said =
      kiln__bytecode_root(q->e, kiln_block_output(n->blocks[other], condition->index));
  if (!kiln_ir_value_is_bool(said, !holds)) return false;
  return learn(q, kiln_node_input(n, 0), holds) ||
         learn(q, kiln_block_output(n->blocks[!other], condition->index), holds);
}

bool kiln__bytecode_is_proved(kiln__bytecode_emitter *e, const kiln_node *cast) {
  question q = {.e = e, .type = kiln_node_output(cast, 0)->type, .left = MOST_CONDITIONS};
  const kiln_ir_value *from = kiln_node_input(cast, 0);
  q.root = kiln__bytecode_root(e, kiln_node_input(cast, 0));
  if (kiln_type_is_subtype(from->type, q.type)) return true;
  const bool optional = from->type->kind == KILN_TYPE_OPTIONAL;
  const kiln_type *both[2] = {from->type, kiln_type_basic(KILN_TYPE_NONE)};
  q.members = both;
  q.count = 1;
  if (optional) {
    both[0] = from->type->elems[0];
    q.count = 2;
  } else if (from->type->kind == KILN_TYPE_UNION) {
    q.members = from->type->elems;
    q.count = from->type->elem_count;
  }
  q.excluded = KILN_NEW_ARRAY(e->scratch, bool, q.count);
  for (const kiln_block *b = cast->block; b && b->owner; b = b->owner->block) {
    if (!kiln_node_is(b->owner, KILN_OP_prim_If)) continue;
    if (learn(&q, kiln_node_input(b->owner, 0), b == b->owner->blocks[0])) return true;
  }
  for (int i = 0; i < q.count; i++) {
    if (!q.excluded[i] && !kiln_type_is_subtype(q.members[i], q.type)) return false;
  }
  return true;
}

/* -- What may be uninitialised -- */

/* Uninitialised values that are marked, and what is found out about blocks meanwhile. */
typedef struct unset_walk {
  kiln__bytecode_emitter *e;
  kiln_value_vec found; /* each once */
  kiln_map raises;      /* block -> RAISES or GOES_ON */
} unset_walk;

static const char RAISES = 1, GOES_ON = 0;

static bool always_raises(unset_walk *w, const kiln_block *block) {
  const void *known = kiln_map_find_ptr(&w->raises, block);
  if (known) return known == &RAISES;
  bool raises = false;
  for (const kiln_node *n = block->first; n && !raises; n = n->next) {
    raises = kiln_node_is(n, KILN_OP_prim_RaiseException) ||
             (kiln_node_is(n, KILN_OP_prim_If) && always_raises(w, n->blocks[0]) &&
              always_raises(w, n->blocks[1]));
  }
  kiln_map_set_ptr(&w->raises, block, (void *)(uintptr_t)(raises ? &RAISES : &GOES_ON));
  return raises;
}

/* Numbers that are uninitialised are 0, the others None: where None is a value nothing can go
 * wrong. */
static void mark(unset_walk *w, kiln_ir_value *v) {
  kiln__bytecode_emitter *e = w->e;
  const kiln_type_kind kind = v->type->kind;
  if (e->unset[v->id] || kind == KILN_TYPE_INT || kind == KILN_TYPE_FLOAT ||
      kind == KILN_TYPE_BOOL || kiln_type_is_subtype(kiln_type_basic(KILN_TYPE_NONE), v->type))
    return;
  e->unset[v->id] = 1;
  kiln_vec_push(e->scratch, &w->found, v);
}

/* Nodes that hand a value on without looking at it. */
static bool passes_on(const kiln_node *n) {
  return kiln_node_is(n, KILN_OP_prim_unchecked_cast) ||
         kiln_node_is(n, KILN_OP_prim_unchecked_unwrap_optional) ||
         kiln_node_is(n, KILN_OP_prim_profile) || kiln_node_is(n, KILN_OP_prim_TupleUnpack);
}

/* The loop's i-th carried value, in each step and behind it. */
static void mark_carried(unset_walk *w, const kiln_node *loop, int i) {
  if (i < 0) return;
  mark(w, kiln_block_input(loop->blocks[0], i + 1));
  mark(w, loop->outputs[i]);
}

static void mark_user(unset_walk *w, const kiln_use *use) {
  kiln_node *n = use->user, *owner = n->block->owner;
  const bool is_result = n == n->block->ret && owner;
  if (is_result && kiln_node_is(owner, KILN_OP_prim_If)) {
    if (!always_raises(w, n->block)) mark(w, owner->outputs[use->index]);
  } else if (is_result && kiln_node_is(owner, KILN_OP_prim_Loop)) {
    mark_carried(w, owner, use->index - 1);
  } else if (kiln_node_is(n, KILN_OP_prim_Loop)) {
    mark_carried(w, n, use->index - 2);
  } else if (passes_on(n) && use->index == 0) {
    for (int i = 0; i < n->output_count; i++) mark(w, n->outputs[i]);
  }
}

static void mark_uninitialized(unset_walk *w, const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    for (int i = 0; kiln_node_is(n, KILN_OP_prim_Uninitialized) && i < n->output_count; i++)
      mark(w, n->outputs[i]);
    for (int i = 0; i < n->block_count; i++) mark_uninitialized(w, n->blocks[i]);
  }
}

void kiln__bytecode_find_unset(kiln__bytecode_emitter *e, const kiln_graph *graph) {
  unset_walk w = {.e = e, .raises = kiln_map_in(e->scratch)};
  e->unset = KILN_NEW_ARRAY(e->scratch, uint8_t, graph->next_id + 1);
  mark_uninitialized(&w, graph->top);
  for (int i = 0; i < w.found.count; i++)
    for (const kiln_use *use = w.found.data[i]->uses; use; use = use->next) mark_user(&w, use);
}

void kiln__bytecode_check_unset(kiln__bytecode_emitter *e, const kiln_node *node) {
  if (passes_on(node) || kiln_node_is_type_check(node)) return;
  for (int i = 0; i < node->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(node, i);
    if (e->unset[v->id]) kiln__bytecode_check(e, v, v->type);
  }
}
