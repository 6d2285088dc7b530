/* sink_text.c: pass `sink_text`: numbers and text that one branch alone reads are made in it.
 *
 *   s = format("expected {} rows, but got {}", n, rows)    If(ok): nothing
 *   If(ok): nothing                                   to   else: s = format(..)
 *   else: raise AssertionError(s)                                raise AssertionError(s)
 *
 * So a check that holds costs no text. Not under KILN_COMPAT=torch. */
#include "ir/pass.h"

/* A number or text, of which nobody has a part. */
static bool is_scalar(const kiln_type *type) {
  switch (type->kind) {
    case KILN_TYPE_INT:
    case KILN_TYPE_FLOAT:
    case KILN_TYPE_BOOL:
    case KILN_TYPE_STR:
    case KILN_TYPE_NONE: return true;
    default: return false;
  }
}

/* It makes such of such, and does nothing else. */
static bool makes_scalars(const kiln_node *n) {
  if (!n->op || n->block_count || n->op->cost != KILN_COST_metadata || !n->output_count ||
      kiln_node_is(n, KILN_OP_prim_Constant) || !kiln_op_is_functional(n->op) ||
      kiln_node_has_side_effects(n) || kiln_node_is_nondeterministic(n) || kiln_node_raises(n))
    return false;
  for (int i = 0; i < n->input_count; i++)
    if (!is_scalar(kiln_node_input(n, i)->type)) return false;
  for (int i = 0; i < n->output_count; i++)
    if (!is_scalar(n->outputs[i]->type)) return false;
  return true;
}

static int depth_of(const kiln_block *block) {
  int depth = 0;
  for (; block->owner; block = block->owner->block) depth++;
  return depth;
}

/* The innermost block that both stand in. */
static kiln_block *common_block(kiln_block *a, kiln_block *b) {
  int above = depth_of(a) - depth_of(b);
  for (; above > 0; above--) a = a->owner->block;
  for (; above < 0; above++) b = b->owner->block;
  for (; a != b; a = a->owner->block) b = b->owner->block;
  return a;
}

/* The innermost block with all that reads what the node makes, as far as branches alone lead there
 * from the node's own; NULL: none does. */
static kiln_block *only_side(const kiln_node *n) {
  kiln_block *readers = NULL;
  for (int i = 0; i < n->output_count; i++)
    for (const kiln_use *use = n->outputs[i]->uses; use; use = use->next)
      readers = readers ? common_block(readers, use->user->block) : use->user->block;
  kiln_block *side = readers;
  for (kiln_block *b = readers; b && b != n->block; b = b->owner->block)
    if (!kiln_node_is(b->owner, KILN_OP_prim_If)) side = b->owner->block;
  return side == n->block ? NULL : side;
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->last, *previous; n; n = previous) { /* what is read last goes first */
    previous = n->prev;
    kiln_block *side = makes_scalars(n) ? only_side(n) : NULL;
    if (!side) continue;
    kiln_node_detach(n);
    kiln_node_prepend(side, n);
    pass->changed = true;
  }
  for (kiln_node *n = block->first; n; n = n->next)
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
}

kiln_status *kiln_pass_sink_text(kiln_pass *pass) {
  if (pass->env->flags.compat != KILN_COMPAT_TORCH) visit_block(pass, pass->graph->top);
  return NULL;
}
