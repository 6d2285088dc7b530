/* region_build.c: puts a region into the graph: its check, the If with the parts on the first side,
 * and on the second one fallback, a graph of plain copies that makes no claim at all.
 *
 * The region stands where its last group stood, so whatever it needs from outside is there. What
 * reads it without being a part follows behind. Constants that the fallback reads are copied into
 * it, and what told sizes: its own passes want to see them (PyTorch hands constant tensors over).
 */
#include "guards/region.h"

typedef struct builder {
  const kiln_region *region;
  kiln_graph *graph, *sub; /* sub: of the fallback */
  kiln_node *branch, *fallback;
  kiln_map plain; /* outer value -> its value in the fallback's graph */
  kiln_map exact; /* checked value -> what the check makes of it */
} builder;

/* -- The fallback -- */

/* A copy that makes no claim; it is to be put into the graph. */
static kiln_node *copy_plain(kiln_graph *to, const kiln_node *n, kiln_map *plain) {
  kiln_node *copy = kiln_node_copy(to, n, plain);
  for (int i = 0; i < n->output_count; i++) {
    if (!kiln_node_is(n, KILN_OP_prim_Constant)) {
      copy->outputs[i]->type = kiln_type_unshaped(to->types, copy->outputs[i]->type);
    }
    kiln_map_set_ptr(plain, n->outputs[i], copy->outputs[i]);
  }
  return copy;
}

static void copy_node(builder *b, const kiln_node *n) {
  kiln_node_append(b->sub->top, copy_plain(b->sub, n, &b->plain));
}

/* What `outer` is inside the fallback: known, a copy, or one more input. */
static kiln_ir_value *plain_value(builder *b, kiln_ir_value *outer) {
  kiln_ir_value *v = kiln_map_find_ptr(&b->plain, outer);
  if (v) return v;
  const bool torch = b->region->pass->env->flags.compat == KILN_COMPAT_TORCH;
  if (!torch && kiln_node_is(outer->node, KILN_OP_prim_Constant)) {
    copy_node(b, outer->node);
    return kiln_map_find_ptr(&b->plain, outer);
  }
  if (kiln_map_find_ptr(b->region->asked, outer->node)) { /* not deeper than it was asked */
    for (int i = 0; i < outer->node->input_count; i++)
      (void)plain_value(b, kiln_node_input(outer->node, i));
    copy_node(b, outer->node);
    return kiln_map_find_ptr(&b->plain, outer);
  }
  v = kiln_graph_add_input(b->sub, NULL, kiln_type_unshaped(b->graph->types, outer->type));
  kiln_ir_value_set_name(v, outer->name);
  v->weight = kiln_ir_value_is_weight(outer);
  kiln_node_add_input(b->fallback, outer);
  kiln_map_set_ptr(&b->plain, outer, v);
  return v;
}

/* Of a node and its blocks: all that they read is there. */
static void bring_inputs(builder *b, const kiln_node *n, const kiln_node *outer) {
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(n, i);
    const kiln_block *block = v->node->block;
    while (block && block->owner != outer) block = block->owner ? block->owner->block : NULL;
    if (!block) (void)plain_value(b, v); /* it is not of the node's own blocks */
  }
  for (int k = 0; k < n->block_count; k++) {
    bring_inputs(b, n->blocks[k]->ret, outer);
    for (const kiln_node *m = n->blocks[k]->first; m; m = m->next) bring_inputs(b, m, outer);
  }
}

/* The nodes that were fused. */
static void copy_group(builder *b, const kiln_node *group) {
  const kiln_graph *body = kiln_node_graph(group, "Subgraph");
  for (int i = 0; i < group->input_count; i++) {
    kiln_ir_value *v = plain_value(b, kiln_node_input(group, i));
    kiln_map_set_ptr(&b->plain, kiln_graph_input(body, i), v);
  }
  for (const kiln_node *n = body->top->first; n; n = n->next) copy_node(b, n);
  for (int i = 0; i < group->output_count; i++) {
    kiln_map_set_ptr(&b->plain, kiln_node_output(group, i),
                     kiln_map_find_ptr(&b->plain, kiln_graph_output(body, i)));
  }
}

static void build_fallback(builder *b) {
  b->fallback = kiln_node_create_id(b->graph, KILN_OP_prim_FallbackGraph);
  b->fallback->range = b->region->last->range;
  b->sub = kiln_graph_create_sub(b->graph);
  for (int i = 0; i < b->region->parts.count; i++) {
    const kiln_node *n = b->region->parts.data[i];
    if (kiln_node_is_group(n)) {
      copy_group(b, n);
      continue;
    }
    bring_inputs(b, n, n);
    copy_node(b, n);
  }
  kiln_node_set_graph(b->fallback, "Subgraph", b->sub);
}

kiln_node *kiln_guards_dissolve(kiln_pass *pass, kiln_node *group) {
  const kiln_graph *body = kiln_node_graph(group, "Subgraph");
  kiln_map copies = kiln_map_in(pass->scratch);
  kiln_node *first = NULL;
  for (int i = 0; i < group->input_count; i++)
    kiln_map_set_ptr(&copies, kiln_graph_input(body, i), kiln_node_input(group, i));
  for (const kiln_node *n = body->top->first; n; n = n->next) {
    kiln_node *copy = copy_plain(group->graph, n, &copies);
    kiln_node_insert_before(copy, group);
    if (!first) first = copy;
  }
  for (int i = 0; i < group->output_count; i++)
    kiln_ir_value_replace_uses(kiln_node_output(group, i),
                               kiln_map_find_ptr(&copies, kiln_graph_output(body, i)));
  if (!first) first = group->next;
  kiln_node_destroy(group);
  return first;
}

/* -- The check and the compiled side -- */

static void say_orders(builder *b, kiln_node *node) {
  const kiln_guard_checks *list = &b->region->checks;
  kiln_text text = kiln_text_in(b->region->pass->scratch);
  if (list->order_count == 0) return;
  kiln_dim_orders_print(&text, kiln_type_table_dims(b->graph->types), list->orders,
                        list->order_count);
  kiln_node_set_str(node, KILN_ATTR_WHERE, kiln_text_str(&text));
}

static void say_symbols(builder *b) {
  const kiln_symbols *s = b->region->symbols;
  if (!s) return;
  int64_t *now = KILN_NEW_ARRAY(b->graph->arena, int64_t, s->count);
  for (int i = 0; i < s->count; i++) now[i] = s->all[i].now;
  for (int i = 0; i < b->region->parts.count; i++) {
    kiln_node *part = b->region->parts.data[i];
    if (kiln_node_is_group(part)) kiln_node_set_pointer(part, KILN_ATTR_NOW, now);
  }
}

static kiln_node *create_check(builder *b) {
  const kiln_guard_checks *list = &b->region->checks;
  const kiln_op_id id =
      b->region->symbols ? KILN_OP_prim_TensorExprDynamicGuard : KILN_OP_prim_TypeCheck;
  kiln_node *check = kiln_node_create_id(b->graph, id);
  for (int i = 0; i < list->values.count; i++) {
    kiln_node_add_input(check, list->values.data[i]);
    kiln_ir_value *out = kiln_node_add_output(check, list->types.data[i]);
    kiln_map_set_ptr(&b->exact, list->values.data[i], out);
  }
  kiln_node_add_output(check, kiln_type_basic(KILN_TYPE_BOOL));
  kiln_node_set_types(check, "types", list->types.data, list->types.count);
  say_orders(b, check);
  return check;
}

/* -- Sizes in groups -- */

/* Sizes that arguments are made of are numbers, and so is what is made of them alone: what the
 * group reads for them it reads no more. */
static void settle_sizes(kiln_pass *pass, kiln_node *group) {
  kiln_graph *body = kiln_node_graph(group, "Subgraph");
  bool any = false;
  kiln_numbers numbers;
  kiln_numbers_begin(&numbers, body, pass->scratch);
  for (kiln_node *n = body->top->first; n; n = n->next) {
    if (n->output_count != 1) continue;
    kiln_numbers_learn(&numbers, n);
    kiln_ir_value *own = kiln_node_output(n, 0);
    const kiln_ivalue *number = kiln_map_find_ptr(&numbers.facts, own);
    if (!number) continue;
    kiln_ir_value_replace_uses(own, kiln_insert_constant_before(n, *number, own->type));
    any = true;
  }
  kiln_numbers_end(&numbers);
  if (!any) return;
  for (kiln_node *n = body->top->last, *prev; n; n = prev) {
    prev = n->prev;
    if (n->output_count == 1 && !kiln_node_output(n, 0)->uses && !kiln_node_has_side_effects(n))
      kiln_node_destroy(n);
  }
  for (int i = group->input_count - 1; i >= 0; i--) {
    if (kiln_graph_input(body, i)->uses) continue;
    kiln_block_remove_input(body->top, i);
    kiln_node_remove_input(group, i);
  }
}

/* A check that the guard decides takes the side that has nothing to do, whatever led to it. */
static void settle_check(builder *b, kiln_node *n) {
  const kiln_ivalue side = kiln_bool(!n->blocks[0]->first);
  kiln_node_set_input(
      n, 0, kiln_append_constant(b->branch->blocks[0], side, kiln_type_basic(KILN_TYPE_BOOL)));
}

static void move_in(builder *b, kiln_node *n) {
  kiln_node_detach(n);
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *exact = kiln_map_find_ptr(&b->exact, kiln_node_input(n, i));
    if (exact) kiln_node_set_input(n, i, exact);
  }
  kiln_node_append(b->branch->blocks[0], n);
}

/* -- What the region gives -- */

/* At any depth: a check that is a part has blocks. */
static bool stands_in(const kiln_node *n, const kiln_block *block) {
  const kiln_block *at = n->block;
  while (at && at != block) at = at->owner ? at->owner->block : NULL;
  return at;
}

/* A result of the If in place of `old` wherever it is used outside; the profile's claim goes with
 * it. */
static void give_out(builder *b, kiln_ir_value *old) {
  kiln_ir_value *out = NULL;
  for (kiln_use *use = old->uses, *next; use; use = next) {
    next = use->next;
    if (stands_in(use->user, b->branch->blocks[0])) continue;
    if (!out) out = kiln_node_add_output(b->branch, kiln_type_unshaped(b->graph->types, old->type));
    kiln_node_set_input(use->user, use->index, out);
  }
  if (!out) return;
  const kiln_type *claim = kiln_map_find_ptr(b->region->claims, old);
  if (!claim) claim = old->type;
  kiln_map_set_ptr(b->region->claims, out, (void *)(uintptr_t)claim);
  kiln_map_set_ptr(b->region->proven, out, (void *)(uintptr_t)old->type);
  kiln_block_add_output(b->branch->blocks[0], old);
  kiln_ir_value *plain = kiln_map_find_ptr(&b->plain, old);
  kiln_graph_add_output(b->sub, plain);
  const kiln_type *type = kiln_type_unshaped(b->graph->types, plain->type);
  kiln_block_add_output(b->branch->blocks[1], kiln_node_add_output(b->fallback, type));
}

static void move_behind(const kiln_region *region, kiln_node *place) {
  for (int i = 0; i < region->behind.count; i++) {
    kiln_node_detach(region->behind.data[i]);
    kiln_node_insert_after(region->behind.data[i], place);
    place = region->behind.data[i];
  }
}

void kiln__region_build(kiln_region *region) {
  builder b = {.region = region, .graph = region->pass->graph};
  b.plain = kiln_map_in(region->pass->scratch);
  b.exact = kiln_map_in(region->pass->scratch);
  for (int i = 0; i < region->ahead.count; i++) {
    kiln_node *n = region->ahead.data[i];
    if (kiln_node_is_before(n, region->last)) continue;
    kiln_node_detach(n);
    kiln_node_insert_before(n, region->last);
  }
  build_fallback(&b);
  kiln_node *check = create_check(&b);
  b.branch = kiln_node_create_id(b.graph, KILN_OP_prim_If);
  check->range = b.branch->range = region->last->range;
  kiln_node_add_input(b.branch, kiln_node_output(check, check->output_count - 1));
  (void)kiln_node_add_block(b.branch);
  kiln_node_append(kiln_node_add_block(b.branch), b.fallback);
  kiln_node_insert_before(check, region->last);
  kiln_node_insert_before(b.branch, region->last);
  move_behind(region, b.branch);
  for (int i = 0; i < region->parts.count; i++) {
    const bool is_check = kiln_node_is(region->parts.data[i], KILN_OP_prim_If);
    if (is_check) settle_check(&b, region->parts.data[i]);
    move_in(&b, region->parts.data[i]);
    if (!kiln_node_is_group(region->parts.data[i])) continue;
    say_orders(&b, region->parts.data[i]);
    if (!region->symbols) settle_sizes(region->pass, region->parts.data[i]);
  }
  say_symbols(&b);
  for (int i = 0; i < region->parts.count; i++) {
    const kiln_node *n = region->parts.data[i];
    for (int k = 0; k < n->output_count; k++) give_out(&b, kiln_node_output(n, k));
  }
}
