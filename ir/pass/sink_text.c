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

/* The block of the node's own that the user stands in; NULL: beside it. */
static kiln_block *child_of(const kiln_block *block, const kiln_node *user) {
  kiln_block *b = user->block;
  while (b && b != block && b->owner && b->owner->block != block) b = b->owner->block;
  return b == block ? NULL : b;
}

/* The one side of a branch that reads what the node makes; NULL: there is none. */
static kiln_block *only_side(const kiln_node *n) {
  kiln_block *side = NULL;
  for (int i = 0; i < n->output_count; i++) {
    for (const kiln_use *use = n->outputs[i]->uses; use; use = use->next) {
      kiln_block *b = child_of(n->block, use->user);
      if (!b || !kiln_node_is(b->owner, KILN_OP_prim_If) || (side && b != side)) return NULL;
      side = b;
    }
  }
  return side;
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
