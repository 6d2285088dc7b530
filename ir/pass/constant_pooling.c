/* constant_pooling.c: pass `constant_pooling`: constants stand at the top of the graph, each once.
 *
 * Equal means the same type and the same bits: 0.0 and -0.0 differ, 1 and True differ, NaN equals
 * itself. Tensors and lists are equal only when they are the same object, for they could be told
 * apart by writing to them. */
#include "ir/pass.h"

typedef struct entry {
  kiln_node *node;
  struct entry *next;
} entry;

typedef struct pool {
  kiln_pass *pass;
  kiln_map table;    /* hash -> entry */
  kiln_node *anchor; /* the last pooled constant; NULL at the start */
} pool;

static bool is_plain_constant(const kiln_node *node) {
  return kiln_node_is(node, KILN_OP_prim_Constant) && !kiln_node_attr(node, "function") &&
         !kiln_node_attr(node, "fallback");
}

static kiln_ivalue value_of(const kiln_node *node) {
  const kiln_attr *attr = kiln_node_attr(node, "value");
  return attr ? attr->u.value : kiln_none();
}

static void place(pool *p, kiln_node *node) {
  kiln_block *top = p->pass->graph->top;
  kiln_node *after = p->anchor;
  p->anchor = node;
  if (node->block == top && node->prev == after) return;
  kiln_node_detach(node);
  kiln_node_insert_after(node, after ? after : top->param);
  p->pass->changed = true;
}

static void pool_constant(pool *p, kiln_node *node) {
  kiln_ir_value *value = kiln_node_output(node, 0);
  uint64_t hash = kiln_hash_mix(p->table.seed, (uint64_t)(uintptr_t)value->type);
  hash = kiln_ivalue_hash(hash, value_of(node), false);
  entry *chain = kiln_map_find_id(&p->table, hash);
  for (entry *e = chain; e; e = e->next) {
    kiln_ir_value *old = kiln_node_output(e->node, 0);
    if (old->type != value->type || !kiln_ivalue_same(value_of(e->node), value_of(node)) ||
        kiln_ir_value_is_wrapped_number(old) != kiln_ir_value_is_wrapped_number(value)) {
      continue;
    }
    kiln_ir_value_replace_uses(value, old);
    kiln_node_destroy(node);
    p->pass->changed = true;
    return;
  }
  entry *e = KILN_NEW(p->pass->scratch, entry);
  *e = (entry){node, chain};
  kiln_map_set_id(&p->table, hash, e);
  place(p, node);
}

static void visit_block(pool *p, kiln_block *block) {
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit_block(p, n->blocks[b]);
    if (is_plain_constant(n)) pool_constant(p, n);
  }
}

kiln_status *kiln_pass_constant_pooling(kiln_pass *pass) {
  pool p = {.pass = pass};
  p.table = kiln_map_in(pass->scratch);
  visit_block(&p, pass->graph->top);
  return NULL;
}
