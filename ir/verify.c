/* verify.c: checks that a graph is what everything else takes for granted.
 *
 * Structure (links, positions, use lists, dominance), the shape of If and Loop, arguments against
 * schemas, constants against their types, groups against their subgraphs, and that nothing happens
 * between a guard and the If that it decides. Types of tensors are compared without their details:
 * passes may know more on one side of an edge than on the other. Linear in the graph, times
 * nesting. */
#include "ir/internal.h"
#include "ir/match.h"

#include <stdio.h>

/* -- Complaints -- */

/* KILN_INTERNAL with the sentence; the node as a note. */
static kiln_status *complain(const kiln_node *node, const char *fmt, ...)
    KILN_PRINTF(2, 3) KILN_MUST_USE;
static kiln_status *complain(const kiln_node *node, const char *fmt, ...) {
  char what[256];
  va_list args;
  va_start(args, fmt);
  vsnprintf(what, sizeof what, fmt, args);
  va_end(args);
  kiln_arena *arena = kiln_arena_scoped(kiln_arena_mem(node->graph->arena));
  kiln_text text = kiln_text_in(arena);
  kiln_node_print(&text, node, 3);
  kiln_status *status = KILN_ERROR(KILN_INTERNAL, "malformed graph: %s", what);
  status = kiln_status_note(status, KILN_STR_FMT, KILN_STR_ARG(kiln_text_str(&text)));
  kiln_arena_destroy(arena);
  return status;
}

#define REQUIRE(cond, node, ...)                       \
  do {                                                 \
    if (!(cond)) return complain((node), __VA_ARGS__); \
  } while (0)

/* -- Types -- */

/* A value of type `sub` may stand where `super` is said, tensor details aside. */
static bool fits(const kiln_type *sub, const kiln_type *super) {
  if (sub == super || kiln_type_is_subtype(sub, super)) return true;
  if (kiln_type_equal_unshaped(sub, super)) return true;
  if (super->kind == KILN_TYPE_OPTIONAL && sub->kind == KILN_TYPE_OPTIONAL) {
    return fits(sub->elems[0], super->elems[0]);
  }
  if (super->kind == KILN_TYPE_OPTIONAL) return fits(sub, super->elems[0]);
  if (sub->kind != KILN_TYPE_TUPLE || super->kind != KILN_TYPE_TUPLE) return false;
  if (sub->elem_count != super->elem_count) return false;
  for (int i = 0; i < sub->elem_count; i++) {
    if (!fits(sub->elems[i], super->elems[i])) return false;
  }
  return true;
}

static bool is_kind(const kiln_ir_value *value, kiln_type_kind kind) {
  return value->type->kind == kind;
}

/* -- Values and uses -- */

static kiln_status *verify_output(const kiln_node *node, int index) {
  const kiln_ir_value *v = node->outputs[index];
  REQUIRE(v && v->type, node, "result %d is missing or has no type", index);
  REQUIRE(v->node == node && v->index == index, node, "result %d does not know its node", index);
  int count = 0;
  for (const kiln_use *u = v->uses; u; u = u->next) {
    REQUIRE(u->value == v, node, "result %d is not the value of one of its uses", index);
    REQUIRE(u->index < u->user->input_count && u->user->inputs[u->index] == u, node,
            "a use of result %d is not an input", index);
    REQUIRE(!u->next || u->next->prev == u, node, "the use list of result %d is broken", index);
    count++;
  }
  REQUIRE(count == v->use_count, node, "result %d counts %d uses but has %d", index, v->use_count,
          count);
  return NULL;
}

static kiln_status *verify_input(const kiln_node *node, int index) {
  const kiln_use *u = node->inputs[index];
  REQUIRE(u && u->value && u->user == node && u->index == index, node, "input %d is broken", index);
  const kiln_ir_value *v = u->value;
  REQUIRE(u->prev ? u->prev->next == u : v->uses == u, node,
          "input %d is not in the use list of its value", index);
  REQUIRE(v->node->graph == node->graph, node, "input %d comes from another graph", index);
  REQUIRE(kiln_node_dominates(v->node, node), node, "input %d is not defined before its use",
          index);
  return NULL;
}

static kiln_status *verify_links(const kiln_node *node) {
  for (int i = 0; i < node->input_count; i++) KILN_TRY(verify_input(node, i));
  for (int i = 0; i < node->output_count; i++) KILN_TRY(verify_output(node, i));
  return NULL;
}

/* -- Structural operators -- */

static kiln_status *verify_if(const kiln_node *node) {
  REQUIRE(node->input_count == 1 && is_kind(kiln_node_input(node, 0), KILN_TYPE_BOOL), node,
          "prim::If takes one bool");
  REQUIRE(node->block_count == 2, node, "prim::If has %d blocks", node->block_count);
  for (int b = 0; b < 2; b++) {
    const kiln_block *block = node->blocks[b];
    REQUIRE(kiln_block_input_count(block) == 0, node, "a block of prim::If has inputs");
    REQUIRE(kiln_block_output_count(block) == node->output_count, node,
            "block %d gives %d results, not %d", b, kiln_block_output_count(block),
            node->output_count);
    for (int i = 0; i < node->output_count; i++) {
      REQUIRE(fits(kiln_block_output(block, i)->type, node->outputs[i]->type), node,
              "result %d of block %d does not fit the type of the node's", i, b);
    }
  }
  return NULL;
}

static kiln_status *verify_loop(const kiln_node *node) {
  REQUIRE(node->block_count == 1, node, "prim::Loop has %d blocks", node->block_count);
  const kiln_block *body = node->blocks[0];
  int carried = node->output_count;
  REQUIRE(node->input_count == carried + 2, node, "prim::Loop has %d inputs for %d results",
          node->input_count, carried);
  REQUIRE(is_kind(kiln_node_input(node, 0), KILN_TYPE_INT) &&
              is_kind(kiln_node_input(node, 1), KILN_TYPE_BOOL),
          node, "prim::Loop takes an int and a bool first");
  REQUIRE(
      kiln_block_input_count(body) == carried + 1 && kiln_block_output_count(body) == carried + 1,
      node, "the body of prim::Loop has %d inputs and %d results for %d carried values",
      kiln_block_input_count(body), kiln_block_output_count(body), carried);
  REQUIRE(is_kind(kiln_block_input(body, 0), KILN_TYPE_INT) &&
              is_kind(kiln_block_output(body, 0), KILN_TYPE_BOOL),
          node, "the body of prim::Loop takes an int and gives a bool first");
  for (int i = 0; i < carried; i++) {
    const kiln_type *type = kiln_block_input(body, i + 1)->type;
    REQUIRE(fits(kiln_node_input(node, i + 2)->type, type), node,
            "the initial value of carried value %d does not fit the body's input", i);
    REQUIRE(fits(kiln_block_output(body, i + 1)->type, type), node,
            "the next value of carried value %d does not fit the body's input", i);
    REQUIRE(fits(kiln_block_output(body, i + 1)->type, node->outputs[i]->type), node,
            "carried value %d does not fit the node's result", i);
  }
  return NULL;
}

static kiln_status *verify_constant(const kiln_node *node) {
  REQUIRE(node->input_count == 0 && node->output_count == 1, node,
          "a constant has no input and one result");
  const kiln_type *type = node->outputs[0]->type;
  const kiln_attr *attr = kiln_node_attr(node, "value");
  if (!attr) {
    REQUIRE(type->kind == KILN_TYPE_NONE || type->kind == KILN_TYPE_OPTIONAL ||
                type->kind == KILN_TYPE_ANY || type->kind == KILN_TYPE_UNION ||
                type->kind == KILN_TYPE_FUNCTION,
            node, "a constant without value");
    return NULL;
  }
  REQUIRE(attr->kind == KILN_ATTR_VALUE, node, "the value of a constant is of another kind");
  if (attr->u.value.tag == KILN_TAG_TENSOR) {
    REQUIRE(fits(kiln_type_basic(KILN_TYPE_TENSOR), type), node,
            "a tensor constant of another type");
    return NULL;
  }
  REQUIRE(attr->u.value.tag == KILN_TAG_FUNCTION || kiln_ivalue_matches(attr->u.value, type), node,
          "the value of a constant is not of its type");
  return NULL;
}

static kiln_status *verify_construct(const kiln_node *node) {
  REQUIRE(node->output_count == 1, node, "a construction has one result");
  const kiln_type *type = node->outputs[0]->type;
  const bool list = type->kind == KILN_TYPE_LIST;
  REQUIRE(list || type->kind == KILN_TYPE_TUPLE, node, "the result has another type");
  REQUIRE(list || type->elem_count == node->input_count, node, "the tuple type has %d elements",
          type->elem_count);
  for (int i = 0; i < node->input_count; i++) {
    REQUIRE(fits(kiln_node_input(node, i)->type, type->elems[list ? 0 : i]), node,
            "element %d does not fit the %s", i, list ? "list" : "tuple");
  }
  return NULL;
}

static bool is_effect(const kiln_node *node) {
  if (kiln_node_has_side_effects(node) && node->op && !kiln_node_is(node, KILN_OP_prim_profile)) {
    return true;
  }
  const kiln_schema *s = node->op ? node->op->schema : NULL;
  for (int i = 0; s && i < s->arg_count; i++) {
    if (s->args[i].alias.is_write) return true;
  }
  return false;
}

/* "s0 <= 64" of a guard's symbols, which sizes of its types bind; of a group's. */
static kiln_status *verify_where(const kiln_node *node) {
  const kiln_str text = kiln_node_str(node, "where");
  const kiln_attr *types = kiln_node_attr(node, "types");
  kiln_dims *dims = kiln_type_table_dims(node->graph->types);
  kiln_dim_order orders[KILN_DIMS_ASSUMED];
  uint64_t bound = 0, asked = 0;
  int count;
  REQUIRE(kiln_dim_orders_parse(dims, text, orders, &count), node,
          "'" KILN_STR_FMT "' is no list of relations such as s0 <= 64", KILN_STR_ARG(text));
  for (int i = 0; types && i < types->u.types.count; i++) {
    const kiln_tensor_detail *d = types->u.types.data[i]->detail;
    for (int k = 0; d && k < d->rank; k++)
      if (kiln_dim_is_symbol(d->sizes[k])) bound |= kiln_dim_symbols(dims, d->sizes[k]);
  }
  for (int i = 0; i < count; i++) {
    const uint64_t symbols =
        kiln_dim_symbols(dims, orders[i].less) | kiln_dim_symbols(dims, orders[i].more);
    REQUIRE(symbols, node, "a relation without symbols");
    asked |= symbols;
  }
  REQUIRE(!types || !(asked & ~bound), node, "a relation of symbols that no size binds");
  return NULL;
}

/* A fallback restarts its region: so nothing may have happened since the guard looked. */
static kiln_status *verify_guard(const kiln_node *node) {
  REQUIRE(node->output_count > 0 && is_kind(node->outputs[node->output_count - 1], KILN_TYPE_BOOL),
          node, "a guard gives a bool last");
  const kiln_attr *types = kiln_node_attr(node, "types");
  REQUIRE(!types || types->kind != KILN_ATTR_TYPES || types->u.types.count == node->input_count,
          node, "a guard has %d types for %d inputs", types->u.types.count, node->input_count);
  REQUIRE(node->output_count == 1 || node->output_count == node->input_count + 1, node,
          "a guard has %d results for %d inputs", node->output_count, node->input_count);
  KILN_TRY(verify_where(node));
  const kiln_ir_value *ok = node->outputs[node->output_count - 1];
  for (const kiln_use *u = ok->uses; u; u = u->next) {
    if (!kiln_node_is(u->user, KILN_OP_prim_If) || u->user->block != node->block) continue;
    for (const kiln_node *n = node->next; n && n != u->user; n = n->next) {
      REQUIRE(!is_effect(n), n, "an effect stands between a guard and what it decides");
    }
  }
  return NULL;
}

/* Results are kept of what depends on weights and constants alone, and nobody is given them. */
static kiln_status *verify_kept(const kiln_node *node) {
  if (!kiln_node_int(node, "kept", 0)) return NULL;
  REQUIRE(node->op && node->op->schema && node->op->variant == KILN_VARIANT_NONE &&
              node->block_count == 0 && !is_effect(node) && !kiln_node_is_nondeterministic(node),
          node, "results are kept of what has effects, or is not the same each time");
  for (int i = 0; i < node->input_count; i++)
    REQUIRE(kiln_ir_value_is_of_weights(kiln_node_input(node, i)), node,
            "results are kept, but input %d is no weight", i);
  for (int i = 0; i < node->output_count; i++) {
    for (const kiln_use *u = node->outputs[i]->uses; u; u = u->next)
      REQUIRE(u->user->block == node->block && u->user != node->block->ret, node,
              "result %d is kept, and leaves its block", i);
  }
  return NULL;
}

static int layout_of(const kiln_ir_value *v) {
  return v->type->detail ? v->type->detail->physical : KILN_PHYSICAL_STRIDED;
}

/* Layouts stay between groups, and what turns one into another, or asks no layout of its first
 * argument. */
static kiln_status *verify_layouts(const kiln_node *node) {
  if (kiln_node_is_group(node) || kiln_node_is(node, KILN_OP_contiguous)) return NULL;
  const bool any = node->op && (node->op->flags & KILN_OP_ANY_LAYOUT);
  for (int i = any; i < node->input_count; i++)
    REQUIRE(!layout_of(kiln_node_input(node, i)), node, "input %d has a layout", i);
  for (int i = 0; i < node->output_count; i++)
    REQUIRE(!layout_of(node->outputs[i]), node, "result %d has a layout", i);
  return NULL;
}

/* A group's values lie as those of its subgraph, whose inner ones have no layout. */
static kiln_status *verify_group_layouts(const kiln_node *node, const kiln_graph *sub) {
  for (int i = 0; i < node->input_count; i++)
    REQUIRE(layout_of(kiln_node_input(node, i)) == layout_of(kiln_graph_input(sub, i)), node,
            "input %d does not lie as in the subgraph", i);
  for (int i = 0; i < node->output_count; i++)
    REQUIRE(layout_of(node->outputs[i]) == layout_of(kiln_graph_output(sub, i)), node,
            "result %d does not lie as in the subgraph", i);
  return NULL;
}

static kiln_status *verify_subgraphs(const kiln_node *node) {
  for (const kiln_attr *a = node->attrs; a; a = a->next) {
    if (a->kind == KILN_ATTR_GRAPH) KILN_TRY(kiln_graph_verify(a->u.graph));
  }
  const kiln_graph *sub = kiln_node_graph(node, "Subgraph");
  if (!sub || !kiln_node_is_group(node)) return NULL;
  REQUIRE(kiln_graph_input_count(sub) == node->input_count, node,
          "the group has %d inputs, its subgraph %d", node->input_count,
          kiln_graph_input_count(sub));
  REQUIRE(kiln_graph_output_count(sub) == node->output_count, node,
          "the group has %d results, its subgraph %d", node->output_count,
          kiln_graph_output_count(sub));
  return verify_group_layouts(node, sub);
}

/* -- Schemas -- */

static kiln_status *verify_schema(const kiln_node *node) {
  const kiln_schema *s = node->op->schema;
  REQUIRE(node->input_count == s->arg_count || (s->is_vararg && node->input_count > s->arg_count),
          node, "%s takes %d arguments, not %d", node->op->kernel.name, s->arg_count,
          node->input_count);
  REQUIRE(s->is_varret || node->output_count == s->result_count, node,
          "%s gives %d results, not %d", node->op->kernel.name, s->result_count,
          node->output_count);
  kiln_type_env env = {.types = node->graph->types};
  for (int i = 0; i < s->arg_count; i++) {
    const kiln_type *formal = s->args[i].type, *actual = kiln_node_input(node, i)->type;
    if (kiln_type_has_var(formal)) {
      if (formal->kind == KILN_TYPE_OPTIONAL && actual->kind == KILN_TYPE_NONE) continue;
      bool bound = kiln_type_env_match(&env, formal, actual);
      formal = bound ? kiln_type_env_eval(&env, formal) : NULL;
    }
    bool optional_list = formal && formal->kind == KILN_TYPE_LIST &&
                         actual->kind == KILN_TYPE_LIST && fits(actual->elems[0], formal->elems[0]);
    REQUIRE(formal && (fits(actual, formal) || optional_list), node,
            "argument " KILN_STR_FMT " of %s has another type", KILN_STR_ARG(s->args[i].name),
            node->op->kernel.name);
  }
  return NULL;
}

/* -- Nodes, blocks, graphs -- */

static kiln_status *verify_block(const kiln_block *block, const kiln_graph *graph,
                                 const kiln_node *owner);

static kiln_status *verify_kind(const kiln_node *node) {
  if (node->op->schema) return verify_schema(node);
  switch (node->op->id) {
    case KILN_OP_prim_If: return verify_if(node);
    case KILN_OP_prim_Loop: return verify_loop(node);
    case KILN_OP_prim_Constant: return verify_constant(node);
    case KILN_OP_prim_ListConstruct:
    case KILN_OP_prim_TupleConstruct: return verify_construct(node);
    case KILN_OP_prim_TypeCheck:
    case KILN_OP_prim_RequiresGradCheck:
    case KILN_OP_prim_TensorExprDynamicGuard: return verify_guard(node);
    case KILN_OP_prim_TensorExprGroup: return verify_where(node);
    default: return NULL;
  }
}

static kiln_status *verify_node(const kiln_node *node, const kiln_block *block) {
  REQUIRE(node->block == block && node->graph == block->graph, node,
          "the node does not know its block");
  REQUIRE(!node->next || (node->next->prev == node && kiln_node_is_before(node, node->next)), node,
          "the order of nodes is broken");
  KILN_TRY(verify_links(node));
  KILN_TRY(verify_kept(node));
  if (node->graph->owns_arena) KILN_TRY(verify_layouts(node)); /* a group's own nodes may */
  for (int i = 0; i < node->block_count; i++) {
    KILN_TRY(verify_block(node->blocks[i], node->graph, node));
  }
  if (node->op) KILN_TRY(verify_kind(node));
  return verify_subgraphs(node);
}

static kiln_status *verify_block(const kiln_block *block, const kiln_graph *graph,
                                 const kiln_node *owner) {
  const kiln_node *param = block->param, *ret = block->ret;
  REQUIRE(block->graph == graph && block->owner == owner, param, "a block does not know its place");
  REQUIRE(param->block == block && ret->block == block && param->input_count == 0 &&
              ret->output_count == 0,
          param, "the pseudo nodes of a block are broken");
  KILN_TRY(verify_links(param));
  REQUIRE(!block->first || !block->first->prev, param, "the first node has one before it");
  const kiln_node *last = NULL;
  for (const kiln_node *n = block->first; n; n = n->next) {
    KILN_TRY(verify_node(n, block));
    last = n;
  }
  REQUIRE(block->last == last, param, "the last node is another one");
  return verify_links(ret);
}

kiln_status *kiln_graph_verify(const kiln_graph *graph) {
  return verify_block(graph->top, graph, NULL);
}
