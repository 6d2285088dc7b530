/* assume_guards.c: splices the compiled side of every guard: for a plan that is only entered when
 * its guards hold (a region's variant, whose guard is compared before the plan starts). */
#include "guards/guards.h"

static void splice(kiln_node *branch) {
  kiln_block *hit = branch->blocks[0];
  for (kiln_node *n = hit->first, *next; n; n = next) {
    next = n->next;
    kiln_node_detach(n);
    kiln_node_insert_before(n, branch);
  }
  for (int i = 0; i < branch->output_count; i++) {
    kiln_ir_value_replace_uses(kiln_node_output(branch, i), kiln_block_output(hit, i));
  }
  kiln_node_destroy(branch);
}

static void assume_in(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) assume_in(pass, n->blocks[b]);
    if (!kiln_node_is(n, KILN_OP_prim_TypeCheck)) continue;
    kiln_ir_value *ok = kiln_node_output(n, n->output_count - 1);
    while (ok->uses && kiln_node_is(ok->uses->user, KILN_OP_prim_If)) {
      kiln_node *branch = ok->uses->user;
      if (next == branch) next = branch->blocks[0]->first ? branch->blocks[0]->first : branch->next;
      splice(branch);
    }
    for (int i = 0; i < n->input_count; i++) {
      kiln_ir_value *v = kiln_node_input(n, i), *refined = kiln_node_output(n, i);
      if (kiln_type_is_subtype(refined->type, v->type)) v->type = refined->type;
      kiln_ir_value_replace_uses(refined, v);
    }
    if (!ok->uses) kiln_node_destroy(n);
    pass->changed = true;
  }
}

kiln_status *kiln_pass_assume_guards(kiln_pass *pass) {
  assume_in(pass, pass->graph->top);
  return NULL;
}
