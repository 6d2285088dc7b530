/* inline.c: pass `inline`: calls of script functions and methods become their bodies.
 *
 * Callees are taken from the model's unit (compiled on demand) and spliced in before the call, then
 * scanned in turn, without recursion: a chain of functions may be as long as a file. The cases that
 * defeat the simple way: a callee that is already being inlined stays a call, so does everything
 * once the graph has grown by MAX_GROWTH nodes (a chain of functions that call the next one twice
 * is exponential), and so does what stands MAX_DEPTH blocks deep (each function of a chain may
 * call the next one inside of blocks, and whatever looks at blocks recurs). Each copied node
 * remembers the call site, so tracebacks keep their frames. */
#include "ir/pass.h"
#include "ir/unit.h"

enum { MAX_GROWTH = 200000, MAX_DEPTH = 500 };

/* The functions being inlined, innermost first. */
typedef struct frame {
  kiln_function *function;
  const kiln_node *end; /* what stands behind its body; NULL: the end of the block */
  struct frame *outer;
} frame;

typedef struct inliner {
  kiln_pass *pass;
  kiln_map active; /* functions being inlined */
  frame *top, *unused;
  int growth;
} inliner;

static void enter(inliner *in, kiln_function *function, const kiln_node *end) {
  frame *f = in->unused;
  if (f) {
    in->unused = f->outer;
  } else {
    f = KILN_NEW(in->pass->scratch, frame);
  }
  *f = (frame){function, end, in->top};
  in->top = f;
  kiln_map_set_ptr(&in->active, function, f);
}

static void leave(inliner *in) {
  frame *f = in->top;
  kiln_map_remove_ptr(&in->active, f->function);
  in->top = f->outer;
  f->outer = in->unused;
  in->unused = f;
}

/* Chains `range` to the call site, copying the ranges that lie between. */
static const kiln_source_range *range_at_call(kiln_arena *arena, const kiln_source_range *range,
                                              const kiln_source_range *call) {
  const kiln_source_range *first = call, **link = &first;
  for (; range; range = range->inlined_at) {
    kiln_source_range *copy = kiln_arena_copy(arena, range, sizeof *range);
    copy->inlined_at = call;
    *link = copy;
    link = &copy->inlined_at;
  }
  return first;
}

static void mark_ranges(kiln_node *node, const kiln_source_range *call) {
  node->range = range_at_call(node->graph->arena, node->range, call);
  for (int b = 0; b < node->block_count; b++) {
    for (kiln_node *n = node->blocks[b]->first; n; n = n->next) mark_ranges(n, call);
  }
}

/* Gives the first node of the body, or what stood behind the call. */
static kiln_status *inline_call(inliner *in, kiln_node *call, kiln_function *callee,
                                kiln_node **out_next) {
  kiln_graph *graph = call->graph;
  const kiln_block *body = callee->graph->top;
  int skip = kiln_node_is(call, KILN_OP_prim_CallFunction) ? 1 : 0;
  KILN_CHECK(call->input_count - skip == kiln_block_input_count(body));
  KILN_CHECK(kiln_block_output_count(body) == 1 && call->output_count == 1);

  kiln_map map = kiln_map_in(in->pass->scratch);
  for (int i = 0; i < kiln_block_input_count(body); i++) {
    kiln_map_set_ptr(&map, kiln_block_input(body, i), kiln_node_input(call, i + skip));
  }
  kiln_node *const behind = call->next, *first = NULL;
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
  kiln_node_destroy(call);
  if (first) enter(in, callee, behind);
  *out_next = first ? first : behind;
  in->pass->changed = true;
  return NULL;
}

/* Calls are replaced while it walks. `depth` of the block. */
static kiln_status *inline_block(inliner *in, const kiln_block *block, int depth) {
  const frame *base = in->top;
  for (kiln_node *n = block->first, *next; n; n = next) {
    while (in->top != base && in->top->end == n) leave(in);
    next = n->next;
    for (int b = 0; b < n->block_count; b++) {
      KILN_TRY(inline_block(in, n->blocks[b], depth + 1));
    }
    kiln_function *callee = kiln_call_callee(n);
    if (!callee || kiln_map_find_ptr(&in->active, callee)) continue;
    if (in->growth > MAX_GROWTH || depth >= MAX_DEPTH) continue;
    KILN_TRY(kiln_unit_ensure(callee));
    KILN_TRY(inline_call(in, n, callee, &next));
  }
  while (in->top != base) leave(in);
  return NULL;
}

kiln_status *kiln_pass_inline(kiln_pass *pass) {
  inliner in = {.pass = pass};
  in.active = kiln_map_in(pass->scratch);
  return inline_block(&in, pass->graph->top, 0);
}
