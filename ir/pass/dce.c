/* dce.c: passes `dce` and `remove_unused`: remove nodes whose results nobody uses, and dead results
 * of If and Loop.
 *
 * `remove_unused` takes what the source computes and does not use, as PyTorch does, whatever it may
 * raise: also what only a branch that is never taken uses, or a loop whose results are what went in
 * (control_flow.c), which constant_propagation would find later. `dce` comes after passes that know
 * more than the source: what a guard proves of y = embedding(w, i) leaves y.size(0) a number, and y
 * without users. An index out of bounds is told all the same, as the plain interpreter tells it, so
 * what raises by its data stays (kiln_node_raises).
 *
 * Liveness is marked backwards from the graph's results, from nodes with side effects, and from
 * nodes that write memory which a live value may share. The case that defeats counting uses is a
 * loop that carries a value only to itself: its output is dead although the body uses it, so Loop
 * and If results are marked one by one. Writers are added as the memory that they write
 * comes alive (kiln_alias_watch), since a writer that does makes its inputs live too. */
#include "ir/pass.h"

typedef struct marker {
  kiln_pass *pass;
  KILN_VEC(kiln_ir_value *) work; /* live values whose definition is still to be marked */
  KILN_VEC(kiln_ir_value *) live; /* every live value */
  kiln_alias_watch *writers;
  bool keeps_raising;
} marker;

static const char live_mark = 0; /* its address is the mark */

static bool value_is_live(const kiln_ir_value *value) { return value->data == &live_mark; }

static void mark_value(marker *m, kiln_ir_value *value) {
  if (value_is_live(value)) return;
  value->data = (void *)(uintptr_t)&live_mark;
  kiln_vec_push(m->pass->scratch, &m->work, value);
  kiln_vec_push(m->pass->scratch, &m->live, value);
  if (kiln_type_is_mutable(value->type)) kiln_alias_watch_value(m->writers, value);
}

static void mark_node(marker *m, kiln_node *node) {
  if (node->mark) return;
  node->mark = 1;
  bool is_if = kiln_node_is(node, KILN_OP_prim_If);
  bool is_loop = kiln_node_is(node, KILN_OP_prim_Loop);
  int inputs = is_loop ? 2 : node->input_count;
  for (int i = 0; i < inputs; i++) mark_value(m, kiln_node_input(node, i));
  if (is_loop) mark_value(m, kiln_block_output(node->blocks[0], 0));
  for (int b = 0; b < node->block_count && !is_if && !is_loop; b++) {
    for (int i = 0; i < kiln_block_output_count(node->blocks[b]); i++) {
      mark_value(m, kiln_block_output(node->blocks[b], i));
    }
  }
  if (node->block && node->block->owner) mark_node(m, node->block->owner);
}

/* A carried value of a loop: its start, its next value and its result live together. */
static void mark_carried(marker *m, kiln_node *loop, int k) {
  mark_node(m, loop);
  mark_value(m, kiln_node_input(loop, 2 + k));
  mark_value(m, kiln_block_output(loop->blocks[0], 1 + k));
  mark_value(m, kiln_block_input(loop->blocks[0], 1 + k));
}

static void mark_definition(marker *m, const kiln_ir_value *value) {
  kiln_node *node = value->node;
  if (node == node->block->param) {
    kiln_node *owner = node->block->owner;
    if (owner && kiln_node_is(owner, KILN_OP_prim_Loop) && value->index > 0) {
      mark_carried(m, owner, value->index - 1);
    }
    return;
  }
  mark_node(m, node);
  if (kiln_node_is(node, KILN_OP_prim_If)) {
    for (int b = 0; b < 2; b++) mark_value(m, kiln_block_output(node->blocks[b], value->index));
  } else if (kiln_node_is(node, KILN_OP_prim_Loop)) {
    mark_carried(m, node, value->index);
  }
}

static void drain(marker *m) {
  while (m->work.count > 0) mark_definition(m, kiln_vec_pop(&m->work));
}

static bool stays(const marker *m, const kiln_node *node) {
  if (!node->op || (node->op->flags & KILN_OP_SIDE_EFFECT)) return true;
  return m->keeps_raising && kiln_node_raises(node);
}

/* What it writes may have come from outside, or gone out. */
static bool writes_outside(kiln_alias *alias, const kiln_node *writer) {
  for (int i = 0; i < writer->input_count; i++) {
    const kiln_ir_value *in = kiln_node_input(writer, i);
    if (kiln_alias_writes_to(alias, writer, in) && kiln_alias_is_wildcard(alias, in)) return true;
  }
  return false;
}

/* Clears the marks, marks what must stay for its own sake and collects the writers. */
static void start(marker *m, kiln_block *block) {
  kiln_alias *alias = kiln_pass_alias(m->pass);
  for (kiln_node *n = block->first; n; n = n->next) {
    n->mark = 0;
    for (int b = 0; b < n->block_count; b++) start(m, n->blocks[b]);
  }
  for (kiln_node *n = block->first; n; n = n->next) {
    if (stays(m, n) || writes_outside(alias, n)) {
      mark_node(m, n);
    } else {
      kiln_alias_watch_node(m->writers, n);
    }
  }
}

static void mark_writers(marker *m) {
  for (kiln_node *n; (n = kiln_alias_watch_next(m->writers));) {
    mark_node(m, n);
    drain(m);
  }
}

static void sweep_results(kiln_pass *pass, kiln_node *node) {
  bool is_loop = kiln_node_is(node, KILN_OP_prim_Loop);
  if (!is_loop && !kiln_node_is(node, KILN_OP_prim_If)) return;
  for (int i = node->output_count - 1; i >= 0; i--) {
    bool carried_live = is_loop && value_is_live(kiln_block_input(node->blocks[0], 1 + i));
    if (value_is_live(kiln_node_output(node, i)) || carried_live) continue;
    kiln_node_remove_output(node, i);
    for (int b = 0; b < node->block_count; b++) {
      kiln_block_remove_output(node->blocks[b], i + (is_loop ? 1 : 0));
    }
    if (is_loop) kiln_node_remove_input(node, 2 + i);
    pass->changed = true;
  }
}

/* Body inputs of loops go last, when the nodes that used them are gone. */
static void sweep_loop_inputs(kiln_node *loop) {
  kiln_block *body = loop->blocks[0];
  for (int i = kiln_block_input_count(body) - 1; i >= 1; i--) {
    if (!value_is_live(kiln_block_input(body, i))) kiln_block_remove_input(body, i);
  }
}

static void sweep(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->last, *prev; n; n = prev) {
    prev = n->prev;
    if (!n->mark) {
      kiln_node_destroy(n);
      pass->changed = true;
      continue;
    }
    n->mark = 0;
    sweep_results(pass, n);
    for (int b = 0; b < n->block_count; b++) sweep(pass, n->blocks[b]);
    if (kiln_node_is(n, KILN_OP_prim_Loop)) sweep_loop_inputs(n);
  }
}

static kiln_status *run(kiln_pass *pass, bool keeps_raising) {
  marker m = {.pass = pass, .keeps_raising = keeps_raising};
  m.writers = kiln_alias_watch_create(kiln_pass_alias(pass), pass->scratch);
  kiln_block *top = pass->graph->top;
  start(&m, top);
  for (int i = 0; i < kiln_block_output_count(top); i++) mark_value(&m, kiln_block_output(top, i));
  drain(&m);
  mark_writers(&m);
  sweep(pass, top);
  for (int i = 0; i < m.live.count; i++) m.live.data[i]->data = NULL;
  return NULL;
}

kiln_status *kiln_pass_dce(kiln_pass *pass) { return run(pass, true); }

kiln_status *kiln_pass_remove_unused(kiln_pass *pass) {
  kiln_simplify_control_flow(pass, NULL);
  return run(pass, false);
}
