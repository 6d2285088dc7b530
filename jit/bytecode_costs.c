/* bytecode_costs.c: what the instructions of a timed plan compute and move, as far as types say it:
 * FLOPs, and bytes of tensors (ir/cost.h). Of a group behind a guard of symbols with the sizes that
 * these had when the plan was made. */
#include "guards/guards.h"
#include "ir/cost.h"
#include "jit/bytecode_internal.h"
#include "runtime/dim_program.h"

/* The type with numbers for its symbols. */
static const kiln_type *with_numbers(kiln_arena *arena, kiln_type_table *types,
                                     const kiln_type *type, const int64_t *now) {
  const kiln_tensor_detail *d = type->kind == KILN_TYPE_TENSOR ? type->detail : NULL;
  if (!d || d->rank < 0) return type;
  kiln_tensor_detail numbers = *d;
  int64_t *sizes = KILN_NEW_ARRAY(arena, int64_t, d->rank + 1);
  kiln_dim *dims = KILN_NEW_ARRAY(arena, kiln_dim, d->rank + 1);
  for (int i = 0; i < d->rank; i++)
    if (!kiln_dim_is_known(d->sizes[i])) return type;
  const kiln_dim_program *p = kiln_dim_program_create(
      arena, d->dims ? d->dims : kiln_type_table_dims(types), d->sizes, d->rank);
  int64_t *room = KILN_NEW_ARRAY(arena, int64_t, kiln_dim_program_room(p) + 1);
  if (!kiln_dim_program_run(p, now, room, sizes)) return type;
  for (int i = 0; i < d->rank; i++) dims[i] = sizes[i];
  numbers.sizes = dims;
  numbers.strides = NULL;
  numbers.has_strides = false;
  return kiln_type_tensor(types, &numbers);
}

static void put_numbers(kiln_arena *arena, kiln_graph *graph, const int64_t *now) {
  for (int i = 0; i < kiln_graph_input_count(graph); i++) {
    kiln_ir_value *v = kiln_graph_input(graph, i);
    v->type = with_numbers(arena, graph->types, v->type, now);
  }
  for (kiln_node *n = graph->top->first; n; n = n->next)
    for (int i = 0; i < n->output_count; i++)
      n->outputs[i]->type = with_numbers(arena, graph->types, n->outputs[i]->type, now);
}

/* Of a group, with the sizes that its symbols have now: of a copy that has them as numbers. */
static void weigh_at(const kiln__bytecode_emitter *e, const kiln_graph *body, const int64_t *now,
                     kiln_instr_time *cost) {
  kiln_graph *copy = kiln_graph_copy(body, kiln_arena_mem(e->arena), e->graph->types);
  kiln_cleanup releasing;
  kiln_graph_defer(copy, &releasing);
  put_numbers(e->scratch, copy, now);
  (void)kiln_cost_of_group(e->scratch, copy, &cost->flops, &cost->bytes);
  kiln_scope_undefer(&releasing);
  kiln_graph_release(copy);
}

kiln_instr_time kiln__bytecode_cost(const kiln__bytecode_emitter *e, kiln_instr_op op) {
  kiln_instr_time cost = {0};
  const kiln_node *node = e->node;
  if (op == KILN_INSTR_GROUP) {
    const kiln_graph *body = kiln_node_graph(node, "Subgraph");
    const kiln_attr *now = kiln_node_attr(node, KILN_ATTR_NOW);
    if (now) {
      weigh_at(e, body, now->u.pointer, &cost);
    } else {
      (void)kiln_cost_of_group(e->scratch, body, &cost.flops, &cost.bytes);
    }
  } else if (op == KILN_INSTR_OP || op == KILN_INSTR_OP_FRESH) {
    const bool known = kiln_cost_of_node(node, &cost.flops, &cost.bytes);
    cost.unweighed = !known && node->op && node->op->cost != KILN_COST_none;
    if (cost.unweighed) cost.flops = cost.bytes = 0;
  }
  return cost;
}
