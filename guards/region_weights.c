/* region_weights.c: what a group reads that operators make of weights alone, w * g / |w|: a region
 * has copies of these operators, so that they are computed once (jit/keep_constants.c). The others
 * go where nobody reads them any more. */
#include "guards/region.h"

enum { MOST_STEPS = 64 }; /* operators that lead to an input */

/* Whether it may be computed later, where the group stands, or never: it has no effects, and what
 * it gives nobody writes. */
static bool is_plain(kiln_pass *pass, const kiln_node *n, const kiln_node *since) {
  const kiln_op *op = n->op;
  if (kiln_node_is(n, KILN_OP_prim_ListConstruct)) return kiln_shape_list_stays(n->outputs[0]);
  if (!op || !op->schema || op->variant != KILN_VARIANT_NONE || !n->output_count ||
      op->flags & (KILN_OP_WRITES | KILN_OP_UNINITIALISED) || kiln_node_writes_stats(n) ||
      kiln_node_has_side_effects(n) || kiln__region_is_random(n) ||
      (since && !kiln_node_is_before(since, n)))
    return false;
  for (int i = 0; i < n->output_count; i++)
    if (kiln_alias_has_writers(kiln_pass_alias(pass), n->outputs[i])) return false;
  return true;
}

typedef struct makers {
  kiln_pass *pass;
  kiln_region_weights *weights;
  const kiln_map *in_region;
  const kiln_block *block;
  const kiln_node *since;
  int count; /* of nodes that were met */
  kiln_map met;
} makers;

/* Whether weights and constants alone lead to it, and sizes of tensors, which are constants where
 * the region asks for them. */
static bool find_makers(makers *m, kiln_ir_value *v) {
  kiln_node *n = v->node;
  if (kiln_ir_value_is_weight(v) || kiln_map_find_ptr(&m->met, n) ||
      kiln_map_find_ptr(&m->weights->copies, v))
    return true;
  if (m->count == MOST_STEPS || n->block != m->block || !is_plain(m->pass, n, m->since))
    return false;
  kiln_map_set_ptr(&m->met, n, n);
  m->count++;
  if (kiln_node_is(n, KILN_OP_size_int) &&
      !kiln_map_find_ptr(m->in_region, kiln_node_input(n, 0)) &&
      kiln_ir_value_constant(kiln_node_input(n, 1)))
    return true;
  for (int i = 0; i < n->input_count; i++)
    if (!find_makers(m, kiln_node_input(n, i))) return false;
  return n->input_count > 0;
}

static kiln_ir_value *copy_of(makers *m, kiln_map *claims, kiln_ir_value *v, kiln_node *group) {
  kiln_map *copies = &m->weights->copies;
  kiln_ir_value *known = kiln_map_find_ptr(copies, v);
  if (known || !kiln_map_find_ptr(&m->met, v->node)) return known ? known : v;
  kiln_node *n = v->node;
  kiln_map inputs = kiln_map_in(m->pass->scratch);
  for (int i = 0; i < n->input_count; i++) {
    kiln_ir_value *input = kiln_node_input(n, i);
    kiln_map_set_ptr(&inputs, input, copy_of(m, claims, input, group));
  }
  kiln_node *copy = kiln_node_copy(group->graph, n, &inputs);
  kiln_node_insert_before(copy, group);
  kiln_vec_push(m->pass->scratch, &m->weights->from, n);
  kiln_vec_push(m->pass->scratch, &m->weights->made, copy);
  for (int i = 0; i < n->output_count; i++) {
    kiln_ir_value *own = copy->outputs[i];
    own->type = n->outputs[i]->type;
    kiln_map_set_ptr(copies, n->outputs[i], own);
    void *claim = kiln_map_find_ptr(claims, n->outputs[i]);
    if (claim) kiln_map_set_ptr(claims, own, claim);
  }
  return kiln_map_find_ptr(copies, v);
}

kiln_ir_value **kiln__region_copy_weights(kiln_pass *pass, kiln_region_weights *weights,
                                          kiln_map *claims, const kiln_map *in_region,
                                          kiln_node *group, const kiln_node *since) {
  kiln_ir_value **originals =
      KILN_NEW_ARRAY(pass->scratch, kiln_ir_value *, group->input_count + 1);
  for (int i = 0; i < group->input_count; i++) {
    kiln_ir_value *v = kiln_node_input(group, i);
    makers m = {pass, weights, in_region, group->block, since, 0, kiln_map_in(pass->scratch)};
    if (!kiln_type_is_tensor(v->type) || kiln_ir_value_is_weight(v) || !find_makers(&m, v))
      continue;
    originals[i] = v;
    kiln_node_set_input(group, i, copy_of(&m, claims, v, group));
  }
  return originals;
}

void kiln__region_leave_weights(kiln_region_weights *weights, int count, kiln_node *group,
                                kiln_ir_value **originals) {
  for (int i = 0; i < group->input_count; i++)
    if (originals[i]) kiln_node_set_input(group, i, originals[i]);
  while (weights->made.count > count) {
    const kiln_node *from = kiln_vec_pop(&weights->from);
    for (int i = 0; i < from->output_count; i++)
      (void)kiln_map_remove_ptr(&weights->copies, from->outputs[i]);
    kiln_node_destroy(kiln_vec_pop(&weights->made));
  }
}

static bool may_drop(const kiln_node *n) {
  for (int i = 0; i < n->output_count; i++)
    if (n->outputs[i]->uses) return false;
  return kiln_node_is(n, KILN_OP_prim_ListConstruct) || kiln_type_is_tensor(n->outputs[0]->type);
}

/* What raises by its data is not removed as dead; but the copy raises in its place. Ints are left,
 * which a check in front of the next region may read. */
void kiln__region_drop_weights(kiln_region_weights *weights) {
  for (int i = weights->from.count - 1; i >= 0; i--) {
    kiln_node *n = weights->from.data[i];
    if (may_drop(n)) kiln_node_destroy(n);
  }
}
