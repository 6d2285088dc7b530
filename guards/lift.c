/* lift.c: one guard before a plan in place of the checks inside it: a region whose groups follow
 * from its inputs is guarded as a whole. Regions write nothing, so a value that several checks look
 * at is the same each time, and one check of it is enough. */
#include "guards/guards.h"

kiln_guard_checks kiln_guard_checks_of(kiln_arena *arena, const kiln_node *check) {
  kiln_guard_checks all = {0};
  for (int i = 0; i < check->input_count; i++) {
    kiln_vec_push(arena, &all.values, kiln_node_input(check, i));
    kiln_vec_push(arena, &all.types, kiln_node_attr(check, "types")->u.types.data[i]);
  }
  kiln_dims *dims = kiln_type_table_dims(check->graph->types);
  const bool good = kiln_dim_orders_parse(dims, kiln_node_str(check, KILN_ATTR_WHERE), all.orders,
                                          &all.order_count);
  all.dims = dims;
  KILN_ASSERT(good); /* it was verified */
  return all;
}

/* Adds the orders that are not there; false: they are too many. */
static bool add_orders(kiln_guard_checks *to, const kiln_guard_checks *from) {
  to->dims = from->dims;
  for (int i = 0; i < from->order_count; i++) {
    const kiln_dim_order order = from->orders[i];
    int at = 0;
    while (at < to->order_count &&
           (to->orders[at].less != order.less || to->orders[at].more != order.more))
      at++;
    if (at == KILN_DIMS_ASSUMED) return false;
    to->orders[at] = order;
    if (at == to->order_count) to->order_count++;
  }
  return true;
}

/* Puts what the block's checks ask for at the graph's inputs; false: one looks at something else,
 * or two cannot hold both. */
static bool collect(kiln_arena *scratch, const kiln_block *block, const kiln_type **asked,
                    kiln_guard_checks *all) {
  const kiln_node *param = block->graph->top->param;
  for (const kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) {
      if (!collect(scratch, n->blocks[b], asked, all)) return false;
    }
    if (!kiln_node_is_type_check(n)) continue;
    const kiln_guard_checks checks = kiln_guard_checks_of(scratch, n);
    if (!add_orders(all, &checks)) return false;
    for (int i = 0; i < checks.values.count; i++) {
      const kiln_ir_value *v = checks.values.data[i];
      if (v->node != param) return false;
      const kiln_type *type = checks.types.data[i], **known = &asked[v->index];
      if (*known && kiln_type_is_subtype(*known, type)) continue;
      if (*known && !kiln_type_is_subtype(type, *known)) return false;
      *known = type;
    }
  }
  return true;
}

kiln_guard_desc *kiln_guard_lift(const kiln_guard_maker *maker, kiln_arena *arena,
                                 const kiln_graph *graph, kiln_arena *scratch) {
  const int inputs = kiln_graph_input_count(graph);
  const kiln_type **asked = KILN_NEW_ARRAY(scratch, const kiln_type *, inputs + 1);
  kiln_guard_checks checks = {0};
  if (!collect(scratch, graph->top, asked, &checks)) return NULL;
  kiln_operand *at = KILN_NEW_ARRAY(arena, kiln_operand, inputs + 1);
  for (int i = 0; i < inputs; i++) {
    if (!asked[i]) continue;
    at[checks.values.count] = (kiln_operand)i;
    kiln_vec_push(scratch, &checks.values, kiln_graph_input(graph, i));
    kiln_vec_push(scratch, &checks.types, asked[i]);
  }
  if (checks.values.count == 0) return NULL;
  kiln_guard_desc *guard = KILN_NEW(arena, kiln_guard_desc);
  kiln_guard_make(maker, arena, &checks, NULL, guard);
  guard->at = at;
  return guard;
}
