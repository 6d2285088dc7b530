/* node.c: nodes: their place in a block, inputs with use lists, outputs.
 *
 * Places are numbers with gaps: kiln_node_is_before compares two of them. A node that finds no gap
 * spreads its neighbourhood: the smallest aligned range of numbers around it that is thin enough,
 * so that an insertion costs O(log n) on average whatever the pattern (Bender, Cole, Demaine,
 * Farach-Colton, Zito, "Two simplified algorithms for maintaining order in a list", 2002). */
#include "ir/internal.h"

#define POSITION_STEP ((int64_t)1 << 40)

/* -- Making -- */

static kiln_node *node_create(kiln_graph *graph, const kiln_op *op, kiln_str name) {
  kiln_node *node = KILN_NEW(graph->arena, kiln_node);
  node->op = op;
  node->name = name;
  node->graph = graph;
  return node;
}

kiln_node *kiln_node_create(kiln_graph *graph, const kiln_op *op) {
  return node_create(graph, op, op->name);
}

kiln_node *kiln_node_create_id(kiln_graph *graph, kiln_op_id id) {
  return kiln_node_create(graph, kiln_registry_op(graph->registry, id));
}

kiln_node *kiln_node_create_like(const kiln_node *node, kiln_op_id id) {
  kiln_node *n = kiln_node_create_id(node->graph, id);
  n->range = node->range;
  n->scope = node->scope;
  return n;
}

kiln_node *kiln_node_create_unknown(kiln_graph *graph, kiln_str name) {
  return node_create(graph, NULL, kiln_arena_str(graph->arena, name));
}

/* -- Place -- */

static void renumber(kiln_block *block) {
  int64_t position = 0;
  for (kiln_node *n = block->first; n; n = n->next) n->position = position += POSITION_STEP;
}

/* Gives numbers to a node and its neighbours, where there is none left between the two. */
static void spread(kiln_node *node) {
  kiln_node *first = node, *last = node;
  int64_t count = 1, at = node->position = node->prev->position;
  double room = 1;
  for (int bits = 1; bits < 60; bits++) {
    int64_t size = (int64_t)1 << bits, low = at & -size;
    for (; first->prev && first->prev->position >= low; count++) first = first->prev;
    for (; last->next && last->next->position - low < size; count++) last = last->next;
    room *= 1.5; /* between 1 and 2: ranges are the thinner the larger they are */
    if ((double)count >= room) continue;
    int64_t step = size / count;
    for (int64_t k = 0; k < count; k++, first = first->next) first->position = low + k * step;
    return;
  }
  renumber(node->block);
}

/* Gives a linked node a number between those of its neighbours. */
static void place(kiln_node *node) {
  kiln_node *prev = node->prev, *next = node->next;
  const int64_t far = INT64_MAX / 2;
  if (!prev && !next) {
    node->position = 0;
  } else if (!next) {
    node->position = prev->position + POSITION_STEP;
    if (prev->position > far) renumber(node->block);
  } else if (!prev) {
    node->position = next->position - POSITION_STEP;
    if (next->position < -far) renumber(node->block);
  } else if (next->position - prev->position > 1) {
    node->position = prev->position + (next->position - prev->position) / 2;
  } else {
    spread(node);
  }
}

/* Makes the two neighbours; NULL: that end of the block. */
static void join(kiln_block *block, kiln_node *prev, kiln_node *next) {
  if (prev)
    prev->next = next;
  else
    block->first = next;
  if (next)
    next->prev = prev;
  else
    block->last = prev;
}

static void link_between(kiln_node *node, kiln_block *block, kiln_node *prev, kiln_node *next) {
  KILN_ASSERT(node->block == NULL);
  KILN_ASSERT(node->graph == block->graph);
  node->block = block;
  join(block, prev, node);
  join(block, node, next);
  place(node);
}

void kiln_node_append(kiln_block *block, kiln_node *node) {
  link_between(node, block, block->last, NULL);
}

void kiln_node_prepend(kiln_block *block, kiln_node *node) {
  link_between(node, block, NULL, block->first);
}

void kiln_node_insert_before(kiln_node *node, kiln_node *anchor) {
  kiln_block *block = anchor->block;
  if (anchor == block->ret) {
    kiln_node_append(block, node);
  } else {
    link_between(node, block, anchor->prev, anchor);
  }
}

void kiln_node_insert_after(kiln_node *node, kiln_node *anchor) {
  kiln_block *block = anchor->block;
  if (anchor == block->param) {
    kiln_node_prepend(block, node);
  } else {
    link_between(node, block, anchor, anchor->next);
  }
}

void kiln_node_detach(kiln_node *node) {
  kiln_block *block = node->block;
  if (!block) return;
  join(block, node->prev, node->next);
  node->block = NULL;
  node->prev = node->next = NULL;
}

/* Ends everything in a block, users before what they use. */
static void block_destroy(kiln_block *block) {
  kiln_node_remove_all_inputs(block->ret);
  while (block->last) kiln_node_destroy(block->last);
  for (int i = 0; i < block->param->output_count; i++) {
    kiln__value_drop_name(block->param->outputs[i]);
  }
}

void kiln_node_destroy(kiln_node *node) {
  kiln_node_detach(node);
  for (int i = 0; i < node->block_count; i++) block_destroy(node->blocks[i]);
  kiln_node_remove_all_inputs(node);
  for (int i = 0; i < node->output_count; i++) {
    KILN_ASSERT(node->outputs[i]->use_count == 0);
    kiln__value_drop_name(node->outputs[i]);
  }
}

bool kiln_node_is_before(const kiln_node *a, const kiln_node *b) {
  return a->position < b->position;
}

kiln_node *kiln_node_in_block(kiln_node *node, const kiln_block *block) {
  while (node && node->block != block) node = node->block ? node->block->owner : NULL;
  return node;
}

bool kiln_node_dominates(const kiln_node *a, const kiln_node *b) {
  while (b && b->block != a->block) b = b->block ? b->block->owner : NULL;
  return b && kiln_node_is_before(a, b);
}

/* -- Inputs -- */

static void link_use(kiln_use *use, kiln_ir_value *value) {
  use->value = value;
  use->prev = NULL;
  use->next = value->uses;
  if (value->uses) value->uses->prev = use;
  value->uses = use;
  value->use_count++;
}

static void unlink_use(kiln_use *use) {
  kiln_ir_value *value = use->value;
  if (use->prev)
    use->prev->next = use->next;
  else
    value->uses = use->next;
  if (use->next) use->next->prev = use->prev;
  value->use_count--;
}

static void grow_inputs(kiln_node *node) {
  if (node->input_count < node->input_capacity) return;
  int capacity = node->input_capacity ? 2 * node->input_capacity : 4;
  kiln_use **inputs = KILN_NEW_ARRAY(node->graph->arena, kiln_use *, capacity);
  if (node->input_count) {
    memcpy(inputs, node->inputs, sizeof *inputs * (size_t)node->input_count);
  }
  node->inputs = inputs;
  node->input_capacity = capacity;
}

void kiln_node_insert_input(kiln_node *node, int index, kiln_ir_value *value) {
  KILN_ASSERT(index >= 0 && index <= node->input_count);
  grow_inputs(node);
  kiln_use *use = KILN_NEW(node->graph->arena, kiln_use);
  use->user = node;
  for (int i = node->input_count; i > index; i--) {
    node->inputs[i] = node->inputs[i - 1];
    node->inputs[i]->index = i;
  }
  node->inputs[index] = use;
  node->input_count++;
  use->index = index;
  link_use(use, value);
}

int kiln_node_add_input(kiln_node *node, kiln_ir_value *value) {
  kiln_node_insert_input(node, node->input_count, value);
  return node->input_count - 1;
}

void kiln_node_set_input(kiln_node *node, int index, kiln_ir_value *value) {
  kiln_use *use = node->inputs[index];
  if (use->value == value) return;
  unlink_use(use);
  link_use(use, value);
}

void kiln_node_remove_input(kiln_node *node, int index) {
  KILN_ASSERT(index >= 0 && index < node->input_count);
  unlink_use(node->inputs[index]);
  node->input_count--;
  for (int i = index; i < node->input_count; i++) {
    node->inputs[i] = node->inputs[i + 1];
    node->inputs[i]->index = i;
  }
}

void kiln_node_remove_all_inputs(kiln_node *node) {
  for (int i = 0; i < node->input_count; i++) unlink_use(node->inputs[i]);
  node->input_count = 0;
}

/* -- Outputs -- */

void kiln__node_push_output(kiln_node *node, kiln_ir_value *value) {
  if (node->output_count == node->output_capacity) {
    int capacity = node->output_capacity ? 2 * node->output_capacity : 1;
    kiln_ir_value **outputs = KILN_NEW_ARRAY(node->graph->arena, kiln_ir_value *, capacity);
    if (node->output_count) {
      memcpy(outputs, node->outputs, sizeof *outputs * (size_t)node->output_count);
    }
    node->outputs = outputs;
    node->output_capacity = capacity;
  }
  value->node = node;
  value->index = node->output_count;
  node->outputs[node->output_count++] = value;
}

kiln_ir_value *kiln_node_add_output(kiln_node *node, const kiln_type *type) {
  kiln_ir_value *value = kiln__value_create(node->graph, type);
  kiln__node_push_output(node, value);
  return value;
}

void kiln_node_remove_output(kiln_node *node, int index) {
  KILN_ASSERT(index >= 0 && index < node->output_count);
  KILN_ASSERT(node->outputs[index]->use_count == 0);
  kiln__value_drop_name(node->outputs[index]);
  node->output_count--;
  for (int i = index; i < node->output_count; i++) {
    node->outputs[i] = node->outputs[i + 1];
    node->outputs[i]->index = i;
  }
}

/* -- Facts -- */

static bool any_in_blocks(const kiln_node *node, bool (*test)(const kiln_node *)) {
  for (int b = 0; b < node->block_count; b++) {
    for (const kiln_node *n = node->blocks[b]->first; n; n = n->next) {
      if (test(n)) return true;
    }
  }
  return false;
}

bool kiln_node_has_side_effects(const kiln_node *node) {
  if (!node->op || (node->op->flags & KILN_OP_SIDE_EFFECT)) return true;
  return any_in_blocks(node, kiln_node_has_side_effects);
}

bool kiln_node_is_nondeterministic(const kiln_node *node) {
  if (!node->op || (node->op->flags & KILN_OP_NONDETERMINISTIC)) return true;
  return any_in_blocks(node, kiln_node_is_nondeterministic);
}

bool kiln_node_raises(const kiln_node *node) {
  const kiln_graph *group = kiln_node_graph(node, "Subgraph");
  for (const kiln_node *n = group ? group->top->first : NULL; n; n = n->next) {
    if (kiln_node_raises(n)) return true;
  }
  const int arg = node->op ? node->op->raises - 1 : -1;
  return arg >= 0 && !kiln_ir_value_constant(kiln_node_input(node, arg));
}
