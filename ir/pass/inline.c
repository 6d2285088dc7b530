/* inline.c: pass `inline`: calls of script functions and methods become their bodies.
 *
 * Callees are taken from the model's unit (compiled on demand) and spliced in before the call, then
 * scanned in turn. The case that defeats the simple way is recursion: a callee that is already
 * being inlined stays a call, and so does everything once the graph has grown by MAX_GROWTH nodes
 * (a chain of functions that call the next one twice is exponential). Each copied node remembers
 * the call site, so tracebacks keep their frames. */
#include "ir/pass.h"
#include "ir/unit.h"

enum { MAX_GROWTH = 200000 };

/* The functions being inlined, innermost first. */
typedef struct frame {
  const kiln_function *function;
  const struct frame *outer;
} frame;

typedef struct inliner {
  kiln_pass *pass;
  int growth;
} inliner;

static bool is_active(const frame *stack, const kiln_function *function) {
  for (; stack; stack = stack->outer) {
    if (stack->function == function) return true;
  }
  return false;
}

/* Chains `range` to the call site, copying the ranges that lie between. */
static const kiln_source_range *range_at_call(kiln_arena *arena, const kiln_source_range *range,
                                              const kiln_source_range *call) {
  if (!range) return call;
  kiln_source_range *copy = kiln_arena_copy(arena, range, sizeof *range);
  copy->inlined_at = range->inlined_at ? range_at_call(arena, range->inlined_at, call) : call;
  return copy;
}

static void mark_ranges(kiln_node *node, const kiln_source_range *call) {
  node->range = range_at_call(node->graph->arena, node->range, call);
  for (int b = 0; b < node->block_count; b++) {
    for (kiln_node *n = node->blocks[b]->first; n; n = n->next) mark_ranges(n, call);
  }
}

static kiln_status *inline_nodes(inliner *in, kiln_node *first, const kiln_node *end,
                                 const frame *stack);

static kiln_status *inline_call(inliner *in, kiln_node *call, kiln_function *callee,
                                const frame *stack) {
  kiln_graph *graph = call->graph;
  const kiln_block *body = callee->graph->top;
  int skip = kiln_node_is(call, KILN_OP_prim_CallFunction) ? 1 : 0;
  KILN_CHECK(call->input_count - skip == kiln_block_input_count(body));
  KILN_CHECK(kiln_block_output_count(body) == 1 && call->output_count == 1);

  kiln_map map;
  kiln_map_init(&map, in->pass->scratch);
  for (int i = 0; i < kiln_block_input_count(body); i++) {
    kiln_map_set_ptr(&map, kiln_block_input(body, i), kiln_node_input(call, i + skip));
  }
  kiln_node *first = NULL;
  for (const kiln_node *n = body->first; n; n = n->next) {
    kiln_node *copy = kiln_node_copy(graph, n, &map);
    kiln_node_insert_before(copy, call);
    mark_ranges(copy, call->range);
    if (!first) first = copy;
    in->growth++;
  }
  kiln_ir_value *result = kiln_map_find_ptr(&map, kiln_block_output(body, 0));
  KILN_CHECK(result);
  kiln_ir_value_replace_uses(kiln_node_output(call, 0), result);
  frame inner = {callee, stack};
  if (first) KILN_TRY(inline_nodes(in, first, call, &inner));
  kiln_node_destroy(call);
  return NULL;
}

/* Visits [first, end) of a block; calls are replaced while it walks. */
static kiln_status *inline_nodes(inliner *in, kiln_node *first, const kiln_node *end,
                                 const frame *stack) {
  for (kiln_node *n = first, *next; n && n != end; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) {
      KILN_TRY(inline_nodes(in, n->blocks[b]->first, NULL, stack));
    }
    kiln_function *callee = kiln_call_callee(n);
    if (!callee || is_active(stack, callee) || in->growth > MAX_GROWTH) continue;
    KILN_TRY(kiln_unit_ensure(callee));
    KILN_TRY(inline_call(in, n, callee, stack));
    in->pass->changed = true;
  }
  return NULL;
}

kiln_status *kiln_pass_inline(kiln_pass *pass) {
  inliner in = {.pass = pass};
  return inline_nodes(&in, pass->graph->top->first, NULL, NULL);
}
