/* keep_constants.c: pass `keep_constants`: what reads weights and constants alone is computed once.
 *
 * Behind a guard nothing is written, so an operator that reads weights gives the same in each run
 * until somebody writes a weight between two runs. It is marked `kept=1`: the plan then keeps its
 * results for the weights that the first run had (runtime/kept.h). What it gives counts as a weight
 * itself, so views of it and what is made of it are kept too, and kernels have copies of it in
 * their own order once.
 *
 * Results that leave the block are computed each time, since whoever gets them may write them. */
#include "guards/guards.h"
#include "jit/fusion.h"
#include "jit/kept.h"

/* Elements that results may have beyond those of the arguments: masks, biases of positions, which
 * 12 heads of 256 pixels have 786,432 of. */
enum { MOST_MORE = 1 << 20 };

/* -- What may be kept -- */

static bool is_whole(const kiln_ir_value *v) {
  return kiln_type_is_tensor(v->type) && kiln_type_is_complete_tensor(v->type) &&
         v->type->detail->requires_grad != 1 && v->type->detail->undefined == 0;
}

/* Elements in memory: an expanded tensor shows some of them again. */
static double numel_of(const kiln_ir_value *v) {
  const kiln_tensor_detail *d = v->type->detail;
  double count = 1;
  for (int i = 0; i < d->rank; i++) count *= d->strides[i] ? (double)d->sizes[i] : 1;
  return count;
}

bool kiln__is_keepable(const kiln_node *n) {
  const uint32_t never = KILN_OP_SIDE_EFFECT | KILN_OP_NONDETERMINISTIC | KILN_OP_UNINITIALISED |
                         KILN_OP_STRUCTURES | KILN_OP_QUANTISED | KILN_OP_WRITES;
  const kiln_op *op = n->op;
  if (!op || !op->schema || !op->kernel.body || op->variant != KILN_VARIANT_NONE ||
      op->id == KILN_OP__CUSTOM || op->flags & never || kiln_node_writes_stats(n) ||
      n->block_count || n->output_count == 0 || n->output_count > KILN_MAX_OUTS)
    return false;
  if (op->cost == KILN_COST_none || op->cost == KILN_COST_free || op->cost == KILN_COST_metadata)
    return false;
  double read = MOST_MORE;
  for (int i = 0; i < n->input_count; i++) {
    const kiln_ir_value *v = kiln_node_input(n, i);
    if (kiln_type_is_tensor(v->type) && is_whole(v)) read += numel_of(v);
  }
  for (int i = 0; i < n->output_count; i++) {
    if (!is_whole(n->outputs[i])) return false;
    if (!kiln__may_share(n)) read -= numel_of(n->outputs[i]);
  }
  return read >= 0;
}

bool kiln__may_share(const kiln_node *n) {
  const kiln_schema *s = n->op ? n->op->schema : NULL;
  if (kiln_node_is_group(n)) return false;
  if (!s || n->op->id == KILN_OP__CUSTOM || n->op->cost == KILN_COST_view ||
      n->op->flags & KILN_OP_MAY_RETURN_ARG)
    return true;
  for (int i = 0; i < s->result_count; i++)
    if (s->results[i].alias.present || s->results[i].elem_alias.present) return true;
  return false;
}

/* -- Who sees it -- */

static bool is_seen(const kiln_ir_value *v, const kiln_block *block, const kiln_map *seen) {
  for (const kiln_use *use = v->uses; use; use = use->next) {
    const kiln_node *user = use->user;
    if (user->block != block || user == block->ret || user->block_count) return true;
    if (kiln_node_graph(user, "Subgraph") && !kiln_node_is_group(user)) return true;
    if (user->op && user->op->flags & KILN_OP_WRITES) return true;
    for (int i = 0; kiln__may_share(user) && i < user->output_count; i++)
      if (kiln_map_find_ptr(seen, user->outputs[i])) return true;
  }
  return false;
}

/* Last nodes first: of a view it is known then. */
void kiln__find_seen(kiln_block *block, kiln_map *seen) {
  for (kiln_node *n = block->last; n; n = n->prev) {
    for (int i = 0; i < n->output_count; i++)
      if (is_seen(n->outputs[i], block, seen)) kiln_map_set_ptr(seen, n->outputs[i], n->outputs[i]);
  }
}

/* -- What is made of weights -- */

enum { MOST_STEPS = 128 }; /* operators that a value is made by */

static bool is_made(const kiln_ir_value *v, int *steps) {
  if (kiln_ir_value_is_weight(v)) return true;
  const kiln_node *n = v->node;
  const bool is_list = kiln_node_is(n, KILN_OP_prim_ListConstruct);
  if (++*steps > MOST_STEPS || !n->op ||
      (!is_list && n->op->cost != KILN_COST_view && !kiln__is_keepable(n)))
    return false;
  for (int i = 0; i < n->input_count; i++)
    if (!is_made(kiln_node_input(n, i), steps)) return false;
  return n->input_count > 0;
}

bool kiln__is_made_of_weights(const kiln_ir_value *v) {
  int steps = 0;
  return is_made(v, &steps);
}

/* -- The pass -- */

static bool reads_weights(const kiln_node *n) {
  for (int i = 0; i < n->input_count; i++)
    if (!kiln_ir_value_is_of_weights(kiln_node_input(n, i))) return false;
  return true;
}

static bool is_seen_by_others(const kiln_node *n, const kiln_map *seen) {
  for (int i = 0; i < n->output_count; i++)
    if (kiln_map_find_ptr(seen, n->outputs[i])) return true;
  return false;
}

static void keep_block(kiln_pass *pass, kiln_block *block) {
  kiln_map seen = kiln_map_in(pass->scratch);
  kiln__find_seen(block, &seen);
  for (kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_int(n, "kept", 0) || !kiln__is_keepable(n) || !reads_weights(n) ||
        is_seen_by_others(n, &seen))
      continue;
    kiln_node_set_int(n, "kept", 1);
    pass->changed = true;
  }
}

static void visit(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next)
    for (int b = 0; b < n->block_count; b++) visit(pass, n->blocks[b]);
  if (kiln_guards_is_hit(block)) keep_block(pass, block);
}

kiln_status *kiln_pass_keep_constants(kiln_pass *pass) {
  const kiln_flags *flags = &pass->env->flags;
  if (flags->keep && flags->compat != KILN_COMPAT_TORCH) visit(pass, pass->graph->top);
  return NULL;
}
