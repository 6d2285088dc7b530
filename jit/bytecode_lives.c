/* bytecode_lives.c: of which value each is another name, and where each is used last: one walk over
 * the graph, in the order in which its nodes run.
 *
 * A use inside an If or a Loop is one of that node for the block around it, and so on out to the
 * block that defines the value: of x, read in the Ifs A { B { read } }, B is the last node in A,
 * and A in the block of x. Later uses replace earlier ones, and one whose node is known already in
 * a block is known in all around it. */
#include "jit/bytecode_internal.h"

static kiln_ir_value *first_name(const kiln__bytecode_emitter *e, kiln_ir_value *v) {
  const kiln_node *n = v->node;
  const bool same =
      kiln_node_is(n, KILN_OP_prim_unchecked_cast) ||
      kiln_node_is(n, KILN_OP_prim_unchecked_unwrap_optional) ||
      kiln_node_is(n, KILN_OP_prim_profile) ||
      ((kiln_node_is_type_check(n) || kiln_node_is(n, KILN_OP_prim_RequiresGradCheck)) &&
       v->index < n->input_count);
  return same ? kiln__bytecode_root(e, kiln_node_input(n, v->index)) : v;
}

/* An attribute, a constant, or (maybe) a view of one. */
static bool is_held(const kiln__bytecode_emitter *e, const kiln_ir_value *root) {
  const kiln_node *n = root->node;
  if (!n->op) return false;
  if (n->op->id == KILN_OP_prim_Constant || n->op->id == KILN_OP_prim_GetAttr) return true;
  return n->op->cost == KILN_COST_view && n->input_count &&
         kiln__bytecode_is_held(e, kiln_node_input(n, 0));
}

static uint64_t place_of(const kiln__bytecode_emitter *e, const kiln_block *block,
                         const kiln_ir_value *root) {
  const uint64_t number = (uint64_t)(uintptr_t)kiln_map_find_ptr(&e->blocks, block);
  return number << 32 | root->id;
}

static void note_use(kiln__bytecode_emitter *e, kiln_ir_value *v, kiln_node *node) {
  const kiln_ir_value *root = kiln__bytecode_root(e, v);
  if (kiln_node_is(root->node, KILN_OP_prim_Constant)) return;
  for (;;) {
    const kiln_block *block = node->block;
    const uint64_t place = place_of(e, block, root);
    if (kiln_map_find_id(&e->last_uses, place) == node) return;
    kiln_map_set_id(&e->last_uses, place, node);
    if (root->node->block == block) return;
    node = block->owner;
  }
}

static void note_uses(kiln__bytecode_emitter *e, kiln_node *n) {
  for (int i = 0; i < n->input_count; i++) note_use(e, kiln_node_input(n, i), n);
}

static void note_names(kiln__bytecode_emitter *e, const kiln_node *n) {
  for (int i = 0; i < n->output_count; i++) {
    kiln_ir_value *v = n->outputs[i];
    e->roots[v->id] = first_name(e, v);
    e->held[v->id] = is_held(e, e->roots[v->id]);
  }
}

static void walk(kiln__bytecode_emitter *e, const kiln_block *block) {
  kiln_map_set_ptr(&e->blocks, block, (void *)(uintptr_t)(e->blocks.count + 1));
  note_names(e, block->param);
  for (kiln_node *n = block->first; n; n = n->next) {
    note_uses(e, n);
    for (int i = 0; i < n->block_count; i++) walk(e, n->blocks[i]);
    note_names(e, n);
  }
  note_uses(e, block->ret);
}

void kiln__bytecode_find_lives(kiln__bytecode_emitter *e, const kiln_graph *graph) {
  e->roots = KILN_NEW_ARRAY(e->scratch, kiln_ir_value *, graph->next_id + 1);
  e->held = KILN_NEW_ARRAY(e->scratch, uint8_t, graph->next_id + 1);
  e->blocks = kiln_map_in(e->scratch);
  e->last_uses = kiln_map_in(e->scratch);
  walk(e, graph->top);
}

kiln_node *kiln__bytecode_last_use(const kiln__bytecode_emitter *e, const kiln_ir_value *root,
                                   const kiln_block *block) {
  return kiln_map_find_id(&e->last_uses, place_of(e, block, root));
}
