/* forks.c: which forked functions may run beside the frame that forks them.
 *
 * PyTorch runs them at the same time whatever they do, and leaves the order of what they do to
 * chance. Here a forked function becomes a task only where that cannot be seen: it writes nothing
 * that came from outside, prints nothing, draws no random numbers and calls nothing unknown, and
 * its frame writes nothing that the function may read. All others run in PyTorch's inline order.
 * Answered once for each fork, on inlined graphs, by alias analysis. */
#include "jit/forks.h"

#include "ir/pass.h"

/* -- Types -- */

/* Whether values of the type may hold a future; classes are looked into so deep, and so many types
 * are looked at. */
enum { CLASS_DEPTH = 8, MAX_TYPES = 10000 };
static bool may_hold_future(const kiln_type *type, int depth, int *types) {
  switch (type->kind) {
    case KILN_TYPE_FUTURE:
    case KILN_TYPE_AWAIT:
    case KILN_TYPE_RREF:
    case KILN_TYPE_ANY:
    case KILN_TYPE_ANY_LIST:
    case KILN_TYPE_ANY_TUPLE:
    case KILN_TYPE_ANY_CLASS:
    case KILN_TYPE_INTERFACE:
    case KILN_TYPE_CAPSULE: return true;
    default: break;
  }
  if (depth == 0 || ++*types > MAX_TYPES) return true;
  for (int i = 0; i < type->elem_count; i++) {
    if (may_hold_future(type->elems[i], depth - 1, types)) return true;
  }
  if (!type->cls) return type->kind == KILN_TYPE_CLASS;
  for (int i = 0; i < type->cls->attribute_count; i++) {
    if (may_hold_future(type->cls->attributes[i].type, depth - 1, types)) return true;
  }
  return false;
}

/* -- The forked function -- */

/* The analysis thinks that it may do anything. */
static bool is_wait(const kiln_node *node) { return kiln_node_is(node, KILN_OP_wait); }

static bool is_pure(kiln_arena *scratch, const kiln_graph *graph);

/* Nobody outside can tell when the node runs. */
static bool node_is_pure(kiln_arena *scratch, const kiln_alias *alias, const kiln_graph *graph,
                         const kiln_node *node) {
  if (is_wait(node)) return true;
  if (!node->op) return false;
  switch (node->op->id) {
    case KILN_OP_prim_fork: return is_pure(scratch, kiln_node_graph(node, "Subgraph"));
    case KILN_OP_prim_SetAttr:
    case KILN_OP_prim_RaiseException: break;
    default:
      if (node->op->flags & (KILN_OP_SIDE_EFFECT | KILN_OP_NONDETERMINISTIC)) return false;
  }
  for (int i = 0; i < kiln_graph_input_count(graph) && node->block_count == 0; i++) {
    if (kiln_alias_writes_to(alias, node, kiln_graph_input(graph, i))) return false;
  }
  for (int b = 0; b < node->block_count; b++) {
    for (const kiln_node *n = node->blocks[b]->first; n; n = n->next) {
      if (!node_is_pure(scratch, alias, graph, n)) return false;
    }
  }
  return true;
}
static bool is_pure(kiln_arena *scratch, const kiln_graph *graph) {
  const kiln_alias *alias = kiln_alias_create(scratch, graph);
  for (const kiln_node *n = graph->top->first; n; n = n->next) {
    if (!node_is_pure(scratch, alias, graph, n)) return false;
  }
  return true;
}

/* -- The frame -- */

/* No node of the block, other forks aside, writes what the fork was given. */
static bool leaves_alone(const kiln_alias *alias, const kiln_block *block, const kiln_node *fork) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    const bool plain = n->block_count == 0 && !kiln_node_is(n, KILN_OP_prim_fork) && !is_wait(n);
    for (int i = 0; i < fork->input_count && plain; i++) {
      if (kiln_alias_writes_to(alias, n, kiln_node_input(fork, i))) return false;
    }
    for (int b = 0; b < n->block_count; b++) {
      if (!leaves_alone(alias, n->blocks[b], fork)) return false;
    }
  }
  return true;
}

kiln_fork_flag kiln__fork_purity(kiln_arena *scratch, const kiln_graph *graph,
                                 const kiln_alias *alias, const kiln_node *fork,
                                 const kiln_graph *inlined) {
  if (!is_pure(scratch, inlined)) return KILN_FORK_INLINE;
  if (!leaves_alone(alias, graph->top, fork)) return KILN_FORK_INLINE;
  for (int i = 0, types = 0; i < fork->input_count; i++) {
    if (may_hold_future(kiln_node_input(fork, i)->type, CLASS_DEPTH, &types))
      return KILN_FORK_BESIDE;
  }
  return KILN_FORK_INDEPENDENT;
}
