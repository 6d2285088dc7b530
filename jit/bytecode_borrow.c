/* bytecode_borrow.c: what a plan reads without counting a reference: attributes, and results that
 * it keeps itself.
 *
 * The reason and an example with threads stand in plan.h. An attribute stays where it is while the
 * frame runs if its object does and if nobody sets it. The first object is argument 0, which its
 * caller has. Who could set it: the frame itself, by a SetAttr of that name on any object; what it
 * calls that is not inlined, so a graph with such calls borrows nothing; another call on the
 * instance, which does not run at the same time (jit/effects.h). */
#include "jit/bytecode_internal.h"

/* A frame has a register for each. */
enum { MOST_BORROWED = 4096 };

/* Notes which attributes are set; false where a call may set any. */
static bool find_set(const kiln_block *block, kiln_map *set) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    switch (n->op ? n->op->id : -1) {
      case KILN_OP_prim_SetAttr: kiln_map_set(set, kiln_node_str(n, "name"), set); break;
      case KILN_OP_prim_CallMethod:
      case KILN_OP_prim_fork:
      case KILN_OP_prim_Enter:
      case KILN_OP_prim_Exit: return false;
      case KILN_OP_prim_CallFunction: /* a fallback is a part of this graph */
        if (!kiln_node_attr(kiln_node_input(n, 0)->node, KILN_ATTR_CALLABLE)) return false;
        break;
      default: break;
    }
    for (int i = 0; i < n->block_count; i++) {
      if (!find_set(n->blocks[i], set)) return false;
    }
  }
  return true;
}

static void borrow(kiln__bytecode_emitter *e, const kiln_block *block, const kiln_map *set) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_GetAttr) && e->plan->borrowed_count < MOST_BORROWED &&
        kiln__bytecode_is_counted(kiln_node_output(n, 0)) &&
        kiln__bytecode_borrows(e, kiln__bytecode_root(e, kiln_node_input(n, 0))) &&
        !kiln_map_find(set, kiln_node_str(n, "name"))) {
      e->regs[kiln_node_output(n, 0)->id] = kiln__bytecode_register(e); /* it stays taken */
      e->plan->borrowed_count++;
    }
    for (int i = 0; i < n->block_count; i++) borrow(e, n->blocks[i], set);
  }
}

/* Results that the plan keeps: all those of a node, or none. */
static void borrow_kept(kiln__bytecode_emitter *e, const kiln_block *block, kiln_value_vec *kept) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    for (int i = 0; i < n->block_count; i++) borrow_kept(e, n->blocks[i], kept);
    if (!kiln_node_int(n, "kept", 0) || e->plan->borrowed_count + n->output_count > MOST_BORROWED)
      continue;
    for (int i = 0; i < n->output_count; i++) {
      e->regs[kiln_node_output(n, i)->id] = kiln__bytecode_register(e);
      e->plan->borrowed_count++;
      kiln_vec_push(e->scratch, kept, kiln_node_output(n, i));
    }
  }
}

void kiln__bytecode_borrow(kiln__bytecode_emitter *e, const kiln_graph *graph) {
  kiln_map set = kiln_map_in(e->scratch);
  kiln_block *top = graph->top;
  e->plan->borrows_self =
      e->plan->arg_count > 0 && kiln_block_input(top, 0)->type->kind == KILN_TYPE_CLASS;
  kiln_value_vec kept = {0};
  if (e->plan->borrows_self && find_set(top, &set)) borrow(e, top, &set);
  borrow_kept(e, top, &kept);
  for (int i = 0; i < kept.count; i++) /* behind all that is borrowed; they stay taken */
    e->owners[kept.data[i]->id] = kiln__bytecode_register(e);
}
