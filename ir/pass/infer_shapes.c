/* infer_shapes.c: pass `infer_shapes`: types that follow from the types of inputs, attributes and
 * constants, by shape functions, and by kernels on zeros where there are none.
 *
 * Inside a loop the types are those of the first round: the graph is good for counting what a call
 * costs (pass `cost`), and must not run as if they always held. Results of the loop get the types
 * which that round did not change. The pipeline `one_call` takes turns with folding, so that sizes
 * decide branches and branches decide sizes. */
#include "ir/pass.h"

static void set_type(kiln_pass *pass, kiln_ir_value *value, const kiln_type *type) {
  if (value->type == type || !kiln_type_is_complete_tensor(type)) return;
  value->type = type;
  pass->changed = true;
}

/* Results of an undecided branch have a type where both sides agree, or one only raises. */
static void join_branches(kiln_pass *pass, kiln_node *node) {
  bool first_raises = kiln_block_raises(node->blocks[0]),
       second_raises = kiln_block_raises(node->blocks[1]);
  for (int i = 0; i < node->output_count; i++) {
    const kiln_type *a = kiln_block_output(node->blocks[0], i)->type;
    const kiln_type *b = kiln_block_output(node->blocks[1], i)->type;
    if (first_raises) a = b;
    if (second_raises) b = a;
    if (a == b) set_type(pass, node->outputs[i], a);
  }
}

/* Carried values have the types of the initial values in the first round. */
static void enter_loop(kiln_pass *pass, kiln_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    const kiln_type *type = kiln_node_input(node, i + 2)->type;
    kiln_ir_value *carried = kiln_block_input(node->blocks[0], i + 1);
    if (carried->type->kind == KILN_TYPE_TENSOR) set_type(pass, carried, type);
  }
}

/* Results have the types that this round did not change. */
static void leave_loop(kiln_pass *pass, kiln_node *node) {
  for (int i = 0; i < node->output_count; i++) {
    const kiln_type *first = kiln_node_input(node, i + 2)->type;
    const kiln_type *next = kiln_block_output(node->blocks[0], i + 1)->type;
    if (first == next) set_type(pass, node->outputs[i], next);
  }
}

/* Runs an operator alone whose result its shape function does not know. Where every call reaches it
 * and it refuses its arguments, so would the call. */
static kiln_status *probe(kiln_pass *pass, kiln_node *node) {
  kiln_status *status = kiln_shape_probe(pass, node);
  if (!status) return NULL;
  if (kiln_status_code(status) == KILN_OP_ERROR && node->op->shape &&
      node->block == pass->graph->top) {
    status = kiln_source_range_trace(node->range, status);
    return kiln_status_note(status, "the shapes do not fit " KILN_STR_FMT,
                            KILN_STR_ARG(node->name));
  }
  kiln_status_destroy(status);
  return NULL;
}

static kiln_status *infer(kiln_pass *pass, kiln_node *node) {
  const kiln_type **before = KILN_NEW_ARRAY(pass->scratch, const kiln_type *, node->output_count);
  for (int i = 0; i < node->output_count; i++) before[i] = node->outputs[i]->type;
  const bool known = kiln_shape_infer(pass->graph, node);
  for (int i = 0; i < node->output_count; i++) {
    if (node->outputs[i]->type != before[i]) pass->changed = true;
  }
  return known ? NULL : probe(pass, node);
}

static kiln_status *infer_block(kiln_pass *pass, const kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_Loop)) enter_loop(pass, n);
    for (int i = 0; i < n->block_count; i++) KILN_TRY(infer_block(pass, n->blocks[i]));
    if (kiln_node_is(n, KILN_OP_prim_If)) join_branches(pass, n);
    if (kiln_node_is(n, KILN_OP_prim_Loop)) leave_loop(pass, n);
    KILN_TRY(infer(pass, n));
  }
  return NULL;
}

kiln_status *kiln_pass_infer_shapes(kiln_pass *pass) { return infer_block(pass, pass->graph->top); }
