/* merge_build.c: makes one guarded region of several: the check over the union, the If with their
 * groups and what stands between them on its first side, and on its second one fallback, whose
 * graph is that of all fallbacks with plain copies of what stands between.
 *
 * The region stands where the last one stood, so whatever they need from outside is there. What
 * depends on a region without being needed by a later one follows behind. Constants that the
 * fallback reads are copied into it: its own passes want to see them. */
#include "guards/merge.h"

kiln_node *kiln__guard_check_create(kiln_graph *graph, const kiln_guard_checks *list,
                                    kiln_map *refined) {
  kiln_node *check = kiln_node_create_id(graph, KILN_OP_prim_TypeCheck);
  for (int i = 0; i < list->values.count; i++) {
    kiln_node_add_input(check, list->values.data[i]);
    kiln_ir_value *out = kiln_node_add_output(check, list->types.data[i]);
    if (refined) kiln_map_set_ptr(refined, list->values.data[i], out);
  }
  kiln_node_add_output(check, kiln_type_basic(KILN_TYPE_BOOL));
  kiln_node_set_types(check, "types", list->types.data, list->types.count);
  return check;
}

typedef struct joiner {
  kiln_guard_run *run;
  kiln_graph *graph, *sub; /* sub: of the fallback */
  kiln_node *check, *branch, *fallback;
  kiln_map plain; /* outer value -> its value in the fallback's graph */
  kiln_map exact; /* outer value -> its value on the compiled side */
} joiner;

/* -- The fallback -- */

static void copy_node(joiner *j, const kiln_node *n) {
  kiln_node *copy = kiln_node_copy(j->sub, n, &j->plain);
  kiln_node_append(j->sub->top, copy);
  for (int i = 0; i < n->output_count; i++) {
    if (!kiln_node_is(n, KILN_OP_prim_Constant)) {
      copy->outputs[i]->type = kiln_type_unshaped(j->graph->types, copy->outputs[i]->type);
    }
    kiln_map_set_ptr(&j->plain, n->outputs[i], copy->outputs[i]);
  }
}

/* What `outer` is inside the fallback: known, a constant, or one more input. */
static kiln_ir_value *plain_value(joiner *j, kiln_ir_value *outer) {
  kiln_ir_value *v = kiln_map_find_ptr(&j->plain, outer);
  if (v) return v;
  if (kiln_node_is(outer->node, KILN_OP_prim_Constant)) {
    copy_node(j, outer->node);
    return kiln_map_find_ptr(&j->plain, outer);
  }
  v = kiln_graph_add_input(j->sub, NULL, kiln_type_unshaped(j->graph->types, outer->type));
  if (outer->name.len) kiln_ir_value_set_name(v, outer->name);
  kiln_node_add_input(j->fallback, outer);
  kiln_map_set_ptr(&j->plain, outer, v);
  return v;
}

/* The body of one of the two fallbacks; what its If gives is known afterwards. */
static void copy_fallback(joiner *j, const kiln_guarded *r) {
  const kiln_graph *body = kiln_node_graph(r->fallback, "Subgraph");
  for (int i = 0; i < r->fallback->input_count; i++) {
    kiln_ir_value *v = plain_value(j, kiln_node_input(r->fallback, i));
    kiln_map_set_ptr(&j->plain, kiln_graph_input(body, i), v);
  }
  for (const kiln_node *n = body->top->first; n; n = n->next) copy_node(j, n);
  for (int i = 0; i < r->branch->output_count; i++) {
    int at = kiln_block_output(r->branch->blocks[1], i)->index;
    kiln_map_set_ptr(&j->plain, kiln_node_output(r->branch, i),
                     kiln_map_find_ptr(&j->plain, kiln_graph_output(body, at)));
  }
}

static void build_fallback(joiner *j) {
  const kiln_guard_run *run = j->run;
  j->fallback = kiln_node_create_id(j->graph, KILN_OP_prim_FallbackGraph);
  j->fallback->range = kiln_vec_last(&run->parts).region.fallback->range;
  j->sub = kiln_graph_create_sub(j->graph);
  for (int i = 0; i < run->parts.count; i++) {
    const kiln_node *n = run->parts.data[i].inner;
    if (!n) {
      copy_fallback(j, &run->parts.data[i].region);
      continue;
    }
    for (int k = 0; k < n->input_count; k++) (void)plain_value(j, kiln_node_input(n, k));
    copy_node(j, n);
  }
  kiln_node_set_graph(j->fallback, "Subgraph", j->sub);
}

/* -- The compiled side -- */

static kiln_ir_value *exact_value(joiner *j, kiln_ir_value *outer) {
  kiln_ir_value *v = kiln_map_find_ptr(&j->exact, outer);
  return v ? v : outer;
}

static void move_in(joiner *j, kiln_node *n) {
  kiln_node_detach(n);
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(n, i), *exact = exact_value(j, v);
    if (exact != v) kiln_node_set_input(n, i, exact);
  }
  kiln_node_append(j->branch->blocks[0], n);
}

static void move_region(joiner *j, const kiln_guarded *r) {
  kiln_block *hit = kiln__guarded_hit(r);
  for (int i = 0; i < r->check->input_count; i++) {
    kiln_map_set_ptr(&j->exact, kiln_node_output(r->check, i),
                     exact_value(j, kiln_node_input(r->check, i)));
  }
  for (int i = 0; i < r->branch->output_count; i++) {
    kiln_map_set_ptr(&j->exact, kiln_node_output(r->branch, i),
                     exact_value(j, kiln_block_output(hit, i)));
  }
  kiln_node_remove_all_inputs(hit->ret);
  for (kiln_node *n = hit->first, *next; n; n = next) {
    next = n->next;
    move_in(j, n);
  }
}

/* -- What the region gives -- */

/* A result of the new If in place of `old` wherever it is used outside. */
static void give_out(joiner *j, kiln_ir_value *old) {
  kiln_ir_value *out = NULL;
  for (kiln_use *use = old->uses, *next; use; use = next) {
    next = use->next;
    if (kiln_node_in_block(use->user, j->branch->blocks[0])) continue;
    if (!out) out = kiln_node_add_output(j->branch, kiln_type_unshaped(j->graph->types, old->type));
    kiln_node_set_input(use->user, use->index, out);
  }
  if (!out) return;
  const kiln_type *claim = kiln_map_find_ptr(j->run->claims, old);
  if (!claim && kiln_type_is_tensor(old->type) && old->type->detail) claim = old->type;
  kiln_map_set_ptr(j->run->claims, out, (void *)(uintptr_t)claim);
  kiln_block_add_output(j->branch->blocks[0], exact_value(j, old));
  kiln_ir_value *plain = kiln_map_find_ptr(&j->plain, old);
  kiln_graph_add_output(j->sub, plain);
  const kiln_type *type = kiln_type_unshaped(j->graph->types, plain->type);
  kiln_block_add_output(j->branch->blocks[1], kiln_node_add_output(j->fallback, type));
}

static void give_results(joiner *j) {
  const kiln_guard_run *run = j->run;
  for (int i = 0; i < run->parts.count; i++) {
    const kiln_guard_part *part = &run->parts.data[i];
    const kiln_node *n = part->inner ? part->inner : part->region.branch;
    for (int k = 0; k < n->output_count; k++) give_out(j, kiln_node_output(n, k));
  }
}

static void forget(const kiln_guarded *r) {
  kiln_node_remove_all_inputs(r->fallback);
  kiln_node_remove_all_inputs(r->branch->blocks[1]->ret);
  kiln_node_remove_all_inputs(r->check);
}

static void move_behind(const kiln_guard_run *run) {
  kiln_node *place = kiln_vec_last(&run->parts).region.branch;
  for (int i = 0; i < run->behind.count; i++) {
    kiln_node_detach(run->behind.data[i]);
    kiln_node_insert_after(run->behind.data[i], place);
    place = run->behind.data[i];
  }
}

void kiln__guards_join(kiln_guard_run *run) {
  const kiln_guarded *last = &kiln_vec_last(&run->parts).region;
  joiner j = {.run = run, .graph = run->pass->graph};
  kiln_map_init(&j.plain, run->pass->scratch);
  kiln_map_init(&j.exact, run->pass->scratch);
  build_fallback(&j);
  j.check = kiln__guard_check_create(j.graph, &run->checks, &j.exact);
  j.branch = kiln_node_create_id(j.graph, KILN_OP_prim_If);
  j.check->range = j.branch->range = last->branch->range;
  kiln_node_add_input(j.branch, kiln_node_output(j.check, j.check->output_count - 1));
  (void)kiln_node_add_block(j.branch);
  kiln_node_append(kiln_node_add_block(j.branch), j.fallback);
  kiln_node_insert_before(j.check, last->check);
  kiln_node_insert_before(j.branch, last->check);
  move_behind(run);
  for (int i = 0; i < run->parts.count; i++) {
    kiln_guard_part *part = &run->parts.data[i];
    if (part->inner) {
      move_in(&j, part->inner);
    } else {
      move_region(&j, &part->region);
      forget(&part->region);
    }
  }
  give_results(&j);
  for (int i = run->parts.count - 1; i >= 0; i--) {
    if (run->parts.data[i].inner) continue;
    kiln_node_destroy(run->parts.data[i].region.branch);
    kiln_node_destroy(run->parts.data[i].region.check);
  }
}
