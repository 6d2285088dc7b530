/* decompose_composites.c: pass `decompose_composites`: operators that are made of others become
 * these, so that groups are made of them: nn.TransformerEncoderLayer calls one operator for all
 * that it does, nn.LSTMCell one for a step. The tables' column APART names the function that does
 * it (decompose_*.c).
 *
 * An operator does more than its network: for nested tensors, under masks, and it complains. So
 * y = op(x, mask) becomes
 *
 *   if mask is None and not x.is_nested and sizes fit: y = network(x)
 *   else:                                              y = op(x, mask)
 *
 * where the network's complaints are not the operator's own. The network's steps are those of the
 * operator's kernel. Not under KILN_COMPAT=torch. */
#include "ir/pass.h"
#include "ir/pass/network.h"

#include "ir/ops_columns.h"
#undef APART
#define APART(name) KILN__APART_TYPE(name);
#define KILN_OP(id, schema, ...) __VA_ARGS__
#include "ir/ops.def"
#undef KILN_OP

static kiln__apart_fn apart_of(const kiln_op *op) {
#include "ir/ops_columns.h"
#undef APART
#define APART(name) return kiln__apart_##name;
  if (!op || op->variant != KILN_VARIANT_NONE) return NULL;
  switch (op->id) {
#define KILN_OP(id, schema, ...) \
  case KILN_OP_##id: __VA_ARGS__ break;
#include "ir/ops.def"
#undef KILN_OP
    default: break;
  }
  return NULL;
}

/* -- Branches -- */

/* It stands beside its network. */
static const char whole[] = "whole";
bool kiln_node_is_whole(const kiln_node *node) { return kiln_node_attr(node, whole) != NULL; }

void kiln__ask_where(kiln__maker *m, kiln_ir_value *condition) {
  kiln_node *branch = kiln_node_create_id(m->graph, KILN_OP_prim_If);
  kiln_node_add_input(branch, condition);
  (void)kiln__maker_put(m, branch, kiln_type_basic(KILN_TYPE_BOOL));
  kiln_block *yes = kiln_node_add_block(branch), *no = kiln_node_add_block(branch);
  kiln_block_add_output(
      no, kiln_append_constant(no, kiln_bool(false), kiln_type_basic(KILN_TYPE_BOOL)));
  *m = (kiln__maker){m->graph, yes, NULL, m->from, 0};
}
kiln_ir_value *kiln__asked(kiln__maker *m, const kiln__maker *outside, kiln_ir_value *answer) {
  kiln_block_add_output(m->block, answer);
  kiln_ir_value *result = kiln_node_output(m->block->owner, 0);
  *m = *outside;
  return result;
}

void kiln__apart_where(kiln__maker *m, kiln_node *n, int results, kiln_ir_value *condition) {
  kiln_node *branch = kiln_node_create_like(n, KILN_OP_prim_If);
  kiln_node_add_input(branch, condition);
  kiln_node_insert_before(branch, n);
  kiln_block *network = kiln_node_add_block(branch), *other = kiln_node_add_block(branch);
  for (int i = 0; i < results; i++) {
    kiln_ir_value *given = kiln_node_output(n, i);
    kiln_ir_value_replace_uses(given, kiln_node_add_output(branch, given->type));
  }
  kiln_node_detach(n);
  kiln_node_append(other, n);
  kiln_node_set_int(n, whole, 1);
  for (int i = 0; i < results; i++) kiln_block_add_output(other, kiln_node_output(n, i));
  *m = (kiln__maker){n->graph, network, NULL, n, 0};
}
void kiln__apart_give(kiln__maker *m, kiln_node *n, kiln_ir_value *result) {
  if (m->block) {
    kiln_block_add_output(m->block, result);
    return;
  }
  kiln_ir_value_replace_uses(kiln_node_output(n, m->given++), result);
}

/* -- Arguments -- */

bool kiln__only_first_read(const kiln_node *n) {
  for (int i = 1; i < n->output_count; i++)
    if (kiln_node_output(n, i)->use_count > 0) return false;
  return true;
}
const kiln_node *kiln__list_of_tensors(const kiln_node *n, int input) {
  const kiln_node *list = kiln_node_input(n, input)->node;
  return kiln_node_is(list, KILN_OP_prim_ListConstruct) && list->input_count > 0 &&
                 kiln_shape_list_stays(list->outputs[0])
             ? list
             : NULL;
}
bool kiln__is_decided(const kiln_node *n, int input) {
  const kiln_ir_value *v = kiln_node_input(n, input);
  return kiln_ir_value_is_none(v) || v->type->kind == KILN_TYPE_TENSOR;
}

/* -- The pass -- */

static void visit_block(kiln_pass *pass, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b]);
    const kiln__apart_fn fn = apart_of(n->op);
    if (!fn || kiln_node_is_whole(n)) continue;
    kiln_node *before = n->prev;
    kiln__maker m = {n->graph, NULL, n, n, 0};
    if (!fn(&m, n)) continue;
    if (!m.block) kiln_node_destroy(n);
    pass->changed = true;
    next = before ? before->next : block->first; /* a part may have parts */
  }
}

kiln_status *kiln_pass_decompose_composites(kiln_pass *pass) {
  if (pass->env->flags.compat != KILN_COMPAT_TORCH) visit_block(pass, pass->graph->top);
  return NULL;
}
