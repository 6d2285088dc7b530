/* flatten_raises.c: pass `flatten_raises`: what a branch does, whose other side raises, stands
 * behind it:
 *
 *   y = If(c): a(x) else: raise   becomes   If(c): nothing else: raise; y = a(x)
 *
 * So the ladders of nn.functional (if x.dim() == 4: .. else: raise) are checks and straight lines:
 * groups are made across them, and a guard decides the check. Inner branches come first: of a
 * ladder each step is flat by the time that the one around it is looked at. Not under
 * KILN_COMPAT=torch. */
#include "ir/pass.h"

static void flatten(kiln_node *node, int side) {
  kiln_block *stays = node->blocks[side];
  for (int i = node->output_count - 1; i >= 0; i--) {
    kiln_ir_value_replace_uses(kiln_node_output(node, i), kiln_block_output(stays, i));
    kiln_node_remove_output(node, i);
    for (int b = 0; b < 2; b++) kiln_block_remove_output(node->blocks[b], i);
  }
  kiln_node *place = node;
  while (stays->first) {
    kiln_node *n = stays->first;
    kiln_node_detach(n);
    kiln_node_insert_after(n, place);
    place = n;
  }
}

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->last, *previous; n; n = previous) {
    previous = n->prev;
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    if (!kiln_node_is(n, KILN_OP_prim_If) ||
        kiln_block_raises(n->blocks[0]) == kiln_block_raises(n->blocks[1]))
      continue;
    const int side = kiln_block_raises(n->blocks[0]) ? 1 : 0;
    if (n->output_count == 0 && !n->blocks[side]->first) continue;
    flatten(n, side);
    pass->changed = true;
  }
}

kiln_status *kiln_pass_flatten_raises(kiln_pass *pass) {
  if (pass->env->flags.compat != KILN_COMPAT_TORCH) visit_block(pass, pass->graph->top);
  return NULL;
}
