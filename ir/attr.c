/* attr.c: attributes of nodes: a list in the order of setting, which is the order of printing. */
#include "ir/internal.h"

kiln_attr *kiln_node_attr(const kiln_node *node, const char *name) {
  for (kiln_attr *a = node->attrs; a; a = a->next) {
    if (strcmp(a->name, name) == 0) return a;
  }
  return NULL;
}

/* The attribute of that name, made at the end of the list when there is none. */
static kiln_attr *attr_slot(kiln_node *node, const char *name, kiln_attr_kind kind) {
  kiln_attr **link = &node->attrs;
  while (*link && strcmp((*link)->name, name) != 0) link = &(*link)->next;
  if (!*link) {
    kiln_attr *attr = KILN_NEW(node->graph->arena, kiln_attr);
    attr->name = kiln_arena_strdup(node->graph->arena, name);
    *link = attr;
  }
  (*link)->kind = kind;
  return *link;
}

void kiln__node_set_owned(kiln_node *node, const char *name, kiln_ivalue value) {
  attr_slot(node, name, KILN_ATTR_VALUE)->u.value = value;
}

void kiln_node_set_value(kiln_node *node, const char *name, kiln_ivalue value) {
  kiln__node_set_owned(node, name, kiln_graph_own(node->graph, value));
}

void kiln_node_set_int(kiln_node *node, const char *name, int64_t value) {
  kiln_node_set_value(node, name, kiln_int(value));
}

void kiln_node_set_str(kiln_node *node, const char *name, kiln_str value) {
  kiln_string *string = NULL;
  kiln_status *status = kiln_string_create(kiln_arena_mem(node->graph->arena), value, &string);
  if (status) kiln_scope_fail(status);
  kiln_node_set_value(node, name, kiln_of_box(string));
}

void kiln_node_set_type(kiln_node *node, const char *name, const kiln_type *type) {
  attr_slot(node, name, KILN_ATTR_TYPE)->u.type = type;
}

void kiln_node_set_types(kiln_node *node, const char *name, const kiln_type *const *types,
                         int count) {
  const kiln_type **data = KILN_NEW_ARRAY(node->graph->arena, const kiln_type *, count);
  if (count) memcpy(data, types, sizeof *data * (size_t)count);
  kiln_attr *attr = attr_slot(node, name, KILN_ATTR_TYPES);
  attr->u.types.data = data;
  attr->u.types.count = count;
}

void kiln_node_set_graph(kiln_node *node, const char *name, kiln_graph *graph) {
  kiln_graph *root = node->graph->root;
  if (graph->root != root) {
    if (root->retained.count == root->retained.capacity) kiln_scope_oom();
    root->retained.data[root->retained.count++] = kiln_graph_retain(graph);
    kiln_vec_reserve(root->arena, &root->retained, root->retained.count + 1);
  }
  attr_slot(node, name, KILN_ATTR_GRAPH)->u.graph = graph;
}

void kiln_node_set_pointer(kiln_node *node, const char *name, void *pointer) {
  attr_slot(node, name, KILN_ATTR_POINTER)->u.pointer = pointer;
}

int64_t kiln_node_int(const kiln_node *node, const char *name, int64_t fallback) {
  const kiln_attr *attr = kiln_node_attr(node, name);
  if (!attr || attr->kind != KILN_ATTR_VALUE) return fallback;
  if (attr->u.value.tag == KILN_TAG_BOOL) return attr->u.value.u.b;
  return attr->u.value.tag == KILN_TAG_INT ? attr->u.value.u.i : fallback;
}

kiln_str kiln_node_str(const kiln_node *node, const char *name) {
  const kiln_attr *attr = kiln_node_attr(node, name);
  if (!attr || attr->kind != KILN_ATTR_VALUE || attr->u.value.tag != KILN_TAG_STRING) {
    return KILN_STR("");
  }
  return kiln_string_view(attr->u.value.u.string);
}

kiln_graph *kiln_node_graph(const kiln_node *node, const char *name) {
  const kiln_attr *attr = kiln_node_attr(node, name);
  return attr && attr->kind == KILN_ATTR_GRAPH ? attr->u.graph : NULL;
}
