/* builder_block.c: branches, loops, results.
 *
 * A branch or loop is a node that stands in its block from the beginning, so that what is in it has
 * its place; its results are added when it is closed. Nothing is added before all is checked; what
 * was added when memory ran out the step takes back. */
#include "api/builder.h"

enum { MAX_DEPTH = 1000 }; /* of blocks: as in source */

static kiln_status *check_vars(const kiln_var *vars, int count, const kiln_var *out_vars) {
  if (count >= 0 && (count == 0 || (vars && out_vars))) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "%d values, and no place for them", count);
}

static kiln__open_block *top(kiln_builder *b) {
  return b->open.count > 0 ? &kiln_vec_last(&b->open) : NULL;
}

static kiln_status *bool_value(kiln_builder *b, kiln_var var, kiln_ir_value **out_value) {
  if (var == 0) return kiln__builder_constant(b, kiln_bool(true), out_value);
  KILN_TRY(kiln__builder_value(b, var, out_value));
  if ((*out_value)->type->kind == KILN_TYPE_BOOL) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "a condition is a bool (aten::Bool makes one of a "
                                           "tensor or number)");
}

static kiln_status *check_depth(const kiln_builder *b) {
  if (b->open.count < MAX_DEPTH) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "branches and loops are nested more than %d deep",
                    MAX_DEPTH);
}

static void open_block(kiln_builder *b, kiln_node *node, bool is_loop) {
  kiln__open_block open = {.node = node, .is_loop = is_loop};
  kiln_vec_push(b->unit->arena, &b->open, open);
  b->block = node->blocks[0];
}

/* Adds the node's results and gives their variables, for which there is room. */
static void close_block(kiln_builder *b, const kiln_type *const *types, int count,
                        kiln_var *out_vars) {
  kiln_node *node = top(b)->node;
  for (int i = 0; i < count; i++) (void)kiln_node_add_output(node, types[i]);
  for (int i = 0; i < count; i++) out_vars[i] = kiln__builder_var(b, node->outputs[i]);
  b->open.count--;
  b->block = node->block;
}

/* -- If -- */

static kiln_status *begin_if(kiln_builder *b, kiln_var var) {
  kiln_ir_value *condition;
  KILN_TRY(check_depth(b));
  KILN_TRY(bool_value(b, var, &condition));
  kiln_node *node = kiln_node_create_id(b->graph, KILN_OP_prim_If);
  kiln_node_add_input(node, condition);
  kiln_node_append(b->block, node);
  kiln_node_add_block(node);
  kiln_node_add_block(node);
  open_block(b, node, false);
  return NULL;
}

kiln_status *kiln_builder_if(kiln_builder *b, kiln_var condition) {
  KILN_NEEDS(b);
  KILN__BUILDER_STEP(b, begin_if(b, condition));
}

static kiln_status *begin_else(kiln_builder *b, const kiln_var *results, int count) {
  kiln_ir_value **values;
  KILN_TRY(kiln__builder_values(b, results, count, &values));
  for (int i = 0; i < count; i++) kiln_block_add_output(b->block, values[i]);
  top(b)->in_else = true;
  b->block = top(b)->node->blocks[1];
  return NULL;
}

kiln_status *kiln_builder_else(kiln_builder *b, const kiln_var *results, int count) {
  KILN_NEEDS(b);
  const kiln__open_block *open = top(b);
  if (!open || open->is_loop || open->in_else) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "no branch is open that could have an else");
  }
  KILN__BUILDER_STEP(b, begin_else(b, results, count));
}

static kiln_status *end_if(kiln_builder *b, const kiln_var *results, int count,
                           kiln_var *out_vars) {
  const kiln_block *then = top(b)->node->blocks[0];
  kiln_ir_value **values;
  KILN_TRY(kiln__builder_values(b, results, count, &values));
  if (count != kiln_block_output_count(then)) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "one branch gives %d results, the other %d",
                      kiln_block_output_count(then), count);
  }
  const kiln_type **types = KILN_NEW_ARRAY(b->graph->arena, const kiln_type *, count + 1);
  for (int i = 0; i < count; i++) {
    const kiln_type *a = kiln_type_unshaped(b->unit->types, kiln_block_output(then, i)->type);
    const kiln_type *c = kiln_type_unshaped(b->unit->types, values[i]->type);
    types[i] = kiln_type_unify(b->unit->types, a, c, false);
    if (!types[i]) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "the types of result %d have no join", i);
    }
  }
  kiln_vec_reserve(b->unit->arena, &b->vars, b->vars.count + count);
  for (int i = 0; i < count; i++) kiln_block_add_output(b->block, values[i]);
  close_block(b, types, count, out_vars);
  return NULL;
}

kiln_status *kiln_builder_end_if(kiln_builder *b, const kiln_var *results, int count,
                                 kiln_var *out_vars) {
  KILN_NEEDS(b);
  const kiln__open_block *open = top(b);
  KILN_TRY(check_vars(results, count, out_vars));
  if (!open || open->is_loop || !open->in_else) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "no branch is open, or its else is missing");
  }
  KILN__BUILDER_STEP(b, end_if(b, results, count, out_vars));
}

/* -- Loop -- */

static kiln_status *begin_loop(kiln_builder *b, kiln_var max_trip, kiln_var condition,
                               const kiln_var *carried, int count, kiln_var *out_iteration,
                               kiln_var *out_carried) {
  kiln_ir_value *trip, *first, **values;
  KILN_TRY(check_depth(b));
  KILN_TRY(kiln__builder_values(b, carried, count, &values));
  if (max_trip) {
    KILN_TRY(kiln__builder_value(b, max_trip, &trip));
  } else {
    KILN_TRY(kiln__builder_constant(b, kiln_int(INT64_MAX), &trip));
  }
  if (trip->type->kind != KILN_TYPE_INT) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the most rounds of a loop are an int");
  }
  KILN_TRY(bool_value(b, condition, &first));
  kiln_node *node = kiln_node_create_id(b->graph, KILN_OP_prim_Loop);
  kiln_node_add_input(node, trip);
  kiln_node_add_input(node, first);
  for (int i = 0; i < count; i++) kiln_node_add_input(node, values[i]);
  kiln_node_append(b->block, node);
  kiln_block *body = kiln_node_add_block(node);
  kiln_vec_reserve(b->unit->arena, &b->vars, b->vars.count + count + 1);
  kiln_ir_value *i = kiln_block_add_input(body, NULL, kiln_type_basic(KILN_TYPE_INT));
  kiln_var iteration = kiln__builder_var(b, i);
  if (out_iteration) *out_iteration = iteration;
  for (int k = 0; k < count; k++) {
    const kiln_type *type = kiln_type_unshaped(b->unit->types, values[k]->type);
    out_carried[k] = kiln__builder_var(b, kiln_block_add_input(body, NULL, type));
  }
  open_block(b, node, true);
  return NULL;
}

kiln_status *kiln_builder_loop(kiln_builder *b, kiln_var max_trip, kiln_var condition,
                               const kiln_var *carried, int count, kiln_var *out_iteration,
                               kiln_var *out_carried) {
  KILN_NEEDS(b);
  KILN_TRY(check_vars(carried, count, out_carried));
  KILN__BUILDER_STEP(
      b, begin_loop(b, max_trip, condition, carried, count, out_iteration, out_carried));
}

static kiln_status *end_loop(kiln_builder *b, kiln_var again, const kiln_var *next, int count,
                             kiln_var *out_vars) {
  const kiln_node *node = top(b)->node;
  kiln_ir_value *condition, **values;
  KILN_TRY(kiln__builder_values(b, next, count, &values));
  if (count != node->input_count - 2) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "the loop carries %d values, not %d",
                      node->input_count - 2, count);
  }
  const kiln_type **types = KILN_NEW_ARRAY(b->graph->arena, const kiln_type *, count + 1);
  for (int i = 0; i < count; i++) {
    types[i] = kiln_block_input(b->block, i + 1)->type;
    if (!kiln_type_is_subtype(kiln_type_unshaped(b->unit->types, values[i]->type), types[i])) {
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "carried value %d would change its type", i);
    }
  }
  KILN_TRY(bool_value(b, again, &condition));
  kiln_vec_reserve(b->unit->arena, &b->vars, b->vars.count + count);
  kiln_block_add_output(b->block, condition);
  for (int i = 0; i < count; i++) kiln_block_add_output(b->block, values[i]);
  close_block(b, types, count, out_vars);
  return NULL;
}

kiln_status *kiln_builder_end_loop(kiln_builder *b, kiln_var condition, const kiln_var *next,
                                   int count, kiln_var *out_vars) {
  KILN_NEEDS(b);
  const kiln__open_block *open = top(b);
  KILN_TRY(check_vars(next, count, out_vars));
  if (!open || !open->is_loop) return KILN_ERROR(KILN_INVALID_ARGUMENT, "no loop is open");
  KILN__BUILDER_STEP(b, end_loop(b, condition, next, count, out_vars));
}

/* -- Results -- */

kiln_status *kiln__builder_join(kiln_builder *b, kiln_ir_value *const *values, int count,
                                kiln_ir_value **out_value) {
  if (count == 0) return kiln__builder_constant(b, kiln_none(), out_value);
  *out_value = values[0];
  if (count == 1) return NULL;
  kiln_arg *items = KILN_NEW_ARRAY(b->graph->arena, kiln_arg, count);
  kiln_node *node;
  for (int i = 0; i < count; i++) items[i].value = values[i];
  KILN_TRY(kiln__builder_call(b, "prim::TupleConstruct", items, count, &node));
  *out_value = kiln_node_output(node, 0);
  return NULL;
}

static kiln_status *give_back(kiln_builder *b, const kiln_var *vars, int count) {
  kiln_ir_value **values, *result;
  KILN_TRY(kiln__builder_values(b, vars, count, &values));
  KILN_TRY(kiln__builder_join(b, values, count, &result));
  kiln_graph_add_output(b->graph, result);
  b->returned = true;
  return NULL;
}

kiln_status *kiln_builder_return(kiln_builder *b, const kiln_var *vars, int count) {
  KILN_NEEDS(b);
  if (b->open.count > 0) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a branch or loop is still open");
  }
  if (b->returned) return KILN_ERROR(KILN_INVALID_ARGUMENT, "the graph has its results already");
  KILN__BUILDER_STEP(b, give_back(b, vars, count));
}
