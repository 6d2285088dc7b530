/* cse.c: pass `cse`: equal computations are done once.
 *
 * Nodes are looked up by operator, inputs, attributes and result types in a table a block; a nested
 * block also sees the tables around it, since what stands there dominates it. Left alone: side
 * effects, random numbers, nodes with blocks, and nodes whose arguments or results somebody writes.
 * The case that defeats the simple way is two fresh tensors that both leave the graph: merged, they
 * would become one memory to the caller. */
#include "ir/pass.h"

typedef struct scope {
  kiln_map table; /* hash -> entry */
  const struct scope *outer;
} scope;

typedef struct entry {
  kiln_node *node;
  struct entry *next;
} entry;

static uint64_t hash_attr(uint64_t h, const kiln_attr *attr) {
  h = kiln_hash_bytes(h, attr->name, strlen(attr->name));
  if (attr->kind == KILN_ATTR_TYPE) return kiln_hash_mix(h, (uint64_t)(uintptr_t)attr->u.type);
  return attr->kind == KILN_ATTR_VALUE ? kiln_ivalue_hash(h, attr->u.value, true) : h;
}

static uint64_t hash_node(uint64_t seed, const kiln_node *node) {
  uint64_t h = kiln_hash_mix(seed, (uint64_t)(uintptr_t)node->op);
  for (int i = 0; i < node->input_count; i++) {
    h = kiln_hash_mix(h, (uint64_t)(uintptr_t)kiln_node_input(node, i));
  }
  for (int i = 0; i < node->output_count; i++) {
    h = kiln_hash_mix(h, (uint64_t)(uintptr_t)kiln_node_output(node, i)->type);
  }
  for (const kiln_attr *a = node->attrs; a; a = a->next) h = hash_attr(h, a);
  return h;
}

/* Lists by their items: may_merge has seen that nobody writes them. */
static bool same_constant(kiln_ivalue a, kiln_ivalue b) {
  if (a.tag != KILN_TAG_LIST || b.tag != KILN_TAG_LIST) return kiln_ivalue_same(a, b);
  if (a.u.list->count != b.u.list->count) return false;
  for (int64_t i = 0; i < a.u.list->count; i++) {
    if (!same_constant(a.u.list->items[i], b.u.list->items[i])) return false;
  }
  return true;
}

static bool same_attr(const kiln_attr *a, const kiln_attr *b) {
  if (a->kind != b->kind || strcmp(a->name, b->name) != 0) return false;
  switch (a->kind) {
    case KILN_ATTR_VALUE: return same_constant(a->u.value, b->u.value);
    case KILN_ATTR_TYPE: return a->u.type == b->u.type;
    case KILN_ATTR_TYPES:
      return a->u.types.count == b->u.types.count &&
             memcmp(a->u.types.data, b->u.types.data,
                    sizeof(*a->u.types.data) * (size_t)a->u.types.count) == 0;
    case KILN_ATTR_GRAPH:
    case KILN_ATTR_POINTER: return a->u.pointer == b->u.pointer;
  }
  return false;
}

static bool same_node(const kiln_node *a, const kiln_node *b) {
  if (a->op != b->op || a->input_count != b->input_count || a->output_count != b->output_count) {
    return false;
  }
  for (int i = 0; i < a->input_count; i++) {
    if (kiln_node_input(a, i) != kiln_node_input(b, i)) return false;
  }
  for (int i = 0; i < a->output_count; i++) {
    if (kiln_node_output(a, i)->type != kiln_node_output(b, i)->type) return false;
  }
  const kiln_attr *x = a->attrs, *y = b->attrs;
  for (; x && y; x = x->next, y = y->next) {
    if (!same_attr(x, y)) return false;
  }
  return !x && !y;
}

static bool may_merge(kiln_pass *pass, const kiln_node *node) {
  if (!node->op || node->block_count > 0 || node->output_count == 0) return false;
  if (kiln_node_has_side_effects(node) || kiln_node_is_nondeterministic(node)) return false;
  if (kiln_node_is(node, KILN_OP_prim_Uninitialized)) return false;
  const kiln_alias *alias = kiln_pass_alias(pass);
  if (kiln_alias_node_writes(alias, node)) return false;
  for (int i = 0; i < node->input_count; i++) {
    if (kiln_alias_has_writers(alias, kiln_node_input(node, i))) return false;
  }
  for (int i = 0; i < node->output_count; i++) {
    if (kiln_alias_has_writers(alias, kiln_node_output(node, i))) return false;
  }
  return true;
}

/* Merging makes the results one memory: not when both may be seen from outside. */
static bool aliasing_allows(kiln_pass *pass, const kiln_node *a, const kiln_node *b) {
  const kiln_alias *alias = kiln_pass_alias(pass);
  for (int i = 0; i < a->output_count; i++) {
    const kiln_ir_value *x = kiln_node_output(a, i), *y = kiln_node_output(b, i);
    if (kiln_type_is_mutable(x->type) && kiln_alias_is_wildcard(alias, x) &&
        kiln_alias_is_wildcard(alias, y)) {
      return false;
    }
  }
  return true;
}

/* Whoever may merge with b may merge with a: of equal nodes that may not merge, one is enough. */
static bool stands_for(kiln_pass *pass, const kiln_node *a, const kiln_node *b) {
  const kiln_alias *alias = kiln_pass_alias(pass);
  for (int i = 0; i < a->output_count; i++) {
    if (kiln_alias_is_wildcard(alias, kiln_node_output(a, i)) &&
        !kiln_alias_is_wildcard(alias, kiln_node_output(b, i))) {
      return false;
    }
  }
  return true;
}

/* An equal node to merge with, or NULL; *out_known: the table need not have this one too. */
static kiln_node *find_equal(kiln_pass *pass, const scope *s, const kiln_node *node, uint64_t hash,
                             bool *out_known) {
  *out_known = false;
  for (; s; s = s->outer) {
    for (entry *e = kiln_map_find_id(&s->table, hash); e; e = e->next) {
      if (!same_node(e->node, node)) continue;
      if (aliasing_allows(pass, e->node, node)) return e->node;
      *out_known = *out_known || stands_for(pass, e->node, node);
    }
  }
  return NULL;
}

static void visit_block(kiln_pass *pass, kiln_block *block, const scope *outer) {
  scope own = {.outer = outer};
  own.table = kiln_map_in(pass->scratch);
  for (kiln_node *n = block->first, *next; n; n = next) {
    next = n->next;
    for (int b = 0; b < n->block_count; b++) visit_block(pass, n->blocks[b], &own);
    if (!may_merge(pass, n)) continue;
    uint64_t hash = hash_node(own.table.seed, n);
    bool known;
    kiln_node *equal = find_equal(pass, &own, n, hash, &known);
    if (equal) {
      for (int i = 0; i < n->output_count; i++) {
        kiln_ir_value_replace_uses(kiln_node_output(n, i), kiln_node_output(equal, i));
      }
      kiln_node_destroy(n);
      pass->changed = true;
      continue;
    }
    if (known) continue;
    entry *e = KILN_NEW(pass->scratch, entry);
    *e = (entry){n, kiln_map_find_id(&own.table, hash)};
    kiln_map_set_id(&own.table, hash, e);
  }
}

kiln_status *kiln_pass_cse(kiln_pass *pass) {
  visit_block(pass, pass->graph->top, NULL);
  return NULL;
}
