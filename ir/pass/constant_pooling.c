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

static uint64_t hash_constant(const kiln_node *node) {
  kiln_ivalue v = value_of(node);
  uint64_t h = kiln_hash_mix(v.tag, (uint64_t)(uintptr_t)kiln_node_output(node, 0)->type);
  if (v.tag == KILN_TAG_STRING) {
    return kiln_hash_mix(h, kiln_hash_bytes(v.u.string->data, v.u.string->len));
  }
  if (v.tag == KILN_TAG_NONE) return h;
  if (v.tag == KILN_TAG_BOOL) return kiln_hash_mix(h, v.u.b);
  if (v.tag == KILN_TAG_DEVICE) return kiln_hash_mix(h, (uint64_t)v.u.device.kind);
  if (v.tag == KILN_TAG_COMPLEX || v.tag == KILN_TAG_TUPLE) return h;
  return kiln_hash_mix(h, (uint64_t)v.u.i); /* numbers by bits, objects by address */
}

static void place(pool *p, kiln_node *node) {
  kiln_block *top = p->pass->graph->top;
  kiln_node *after = p->anchor;
  p->anchor = node;
  if (node->block == top && node->prev == after) return;
  kiln_node_detach(node);
  if (after) {
    kiln_node_insert_after(node, after);
  } else {
    kiln_node_prepend(top, node);
  }
  p->pass->changed = true;
}

static void pool_constant(pool *p, kiln_node *node) {
  uint64_t hash = hash_constant(node);
  kiln_ir_value *value = kiln_node_output(node, 0);
  entry *chain = kiln_map_find_id(&p->table, hash);
  for (entry *e = chain; e; e = e->next) {
    kiln_ir_value *old = kiln_node_output(e->node, 0);
    if (old->type != value->type || !kiln_ivalue_same(value_of(e->node), value_of(node))) continue;
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
  kiln_map_init(&p.table, pass->scratch);
  visit_block(&p, pass->graph->top);
  return NULL;
}
