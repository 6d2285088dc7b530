/* copy.c: copies of nodes, blocks and graphs, within a graph and between graphs.
 *
 * Copies go through a map from old values to new; a value that is not in it is kept, which is right
 * for values defined around what is copied. Between graphs, types are taken over into the target's
 * table. A copy of a whole graph also copies source ranges, since it may outlive its original, and
 * keeps names and numbers. */
#include "ir/internal.h"

/* A copy in progress: `values` maps old to new. With `ranges`, source ranges are copied too (old to
 * new); `exact` keeps names and ids as they are. */
typedef struct copier {
  kiln_graph *to;
  const kiln_graph *from;
  kiln_map *values;
  kiln_map *ranges;
  bool exact;
} copier;

/* -- Types -- */

static const kiln_type *import_elems(kiln_graph *graph, const kiln_graph *from,
                                     const kiln_type *type) {
  kiln_arena *arena = kiln_type_table_arena(graph->types);
  const kiln_type **elems = KILN_NEW_ARRAY(arena, const kiln_type *, type->elem_count);
  bool same = true;
  for (int i = 0; i < type->elem_count; i++) {
    elems[i] = kiln_graph_import_type(graph, from, type->elems[i]);
    if (elems[i] != type->elems[i]) same = false;
  }
  if (same) return type;
  switch (type->kind) {
    case KILN_TYPE_LIST: return kiln_type_list(graph->types, elems[0]);
    case KILN_TYPE_OPTIONAL: return kiln_type_optional(graph->types, elems[0]);
    case KILN_TYPE_FUTURE:
    case KILN_TYPE_AWAIT:
    case KILN_TYPE_RREF: return kiln_type_wrap(graph->types, type->kind, elems[0]);
    case KILN_TYPE_DICT: return kiln_type_dict(graph->types, elems[0], elems[1]);
    case KILN_TYPE_UNION: return kiln_type_union(graph->types, elems, type->elem_count);
    case KILN_TYPE_TUPLE:
      if (type->names) return type; /* nominal: its fields have no tensor details */
      return kiln_type_tuple(graph->types, elems, type->elem_count);
    default: return type;
  }
}

const kiln_type *kiln_graph_import_type(kiln_graph *graph, const kiln_graph *from,
                                        const kiln_type *type) {
  if (graph->types == from->types) return type;
  if (type->kind == KILN_TYPE_TENSOR && type->detail) {
    return kiln_type_tensor(graph->types, type->detail);
  }
  if (type->elem_count == 0) return type;
  return import_elems(graph, from, type);
}

/* -- Source ranges -- */

static const kiln_source *copy_source(kiln_arena *arena, const kiln_source *source,
                                      kiln_map *copies) {
  const kiln_source *known = kiln_map_find_ptr(copies, source);
  if (known) return known;
  kiln_source *copy = KILN_NEW(arena, kiln_source);
  copy->name = kiln_arena_str(arena, source->name);
  copy->text = kiln_arena_str(arena, source->text);
  copy->first_line = source->first_line;
  kiln_map_set_ptr(copies, source, copy);
  return copy;
}

const kiln_source_range *kiln_graph_copy_range(const kiln_graph *graph,
                                               const kiln_source_range *range, kiln_arena *arena,
                                               kiln_map *copies) {
  const kiln_source_range *first = NULL, **link = &first;
  for (; range; range = range->inlined_at) { /* which may be a long way */
    const kiln_source_range *known = kiln_map_find_ptr(copies, range);
    *link = known;
    if (known) break;
    kiln_source_range *copy = kiln_arena_copy(arena, range, sizeof *range);
    if (range->source && graph->owns_sources) {
      copy->source = copy_source(arena, range->source, copies);
    }
    kiln_map_set_ptr(copies, range, copy);
    *link = copy;
    link = &copy->inlined_at;
  }
  return first;
}

/* -- Nodes -- */

static kiln_ir_value *mapped(const copier *c, kiln_ir_value *value) {
  kiln_ir_value *found = kiln_map_find_ptr(c->values, value);
  return found ? found : value;
}

static kiln_ir_value *copy_output(copier *c, kiln_node *node, const kiln_ir_value *value) {
  kiln_ir_value *copy =
      kiln_node_add_output(node, kiln_graph_import_type(c->to, c->from, value->type));
  if (c->exact) copy->id = value->id;
  copy->weight = value->weight;
  if (value->name.len) kiln_ir_value_set_name(copy, value->name);
  kiln_map_set_ptr(c->values, value, copy);
  return copy;
}

static void copy_graph_into(kiln_graph *to, const kiln_graph *from, kiln_map *ranges,
                            kiln_arena *scratch);

static void copy_attrs(copier *c, kiln_node *node, const kiln_node *from) {
  for (const kiln_attr *a = from->attrs; a; a = a->next) {
    switch (a->kind) {
      case KILN_ATTR_VALUE:
        kiln_node_set_value(node, a->name, kiln_ivalue_retain(a->u.value));
        break;
      case KILN_ATTR_TYPE:
        kiln_node_set_type(node, a->name, kiln_graph_import_type(c->to, c->from, a->u.type));
        break;
      case KILN_ATTR_TYPES: {
        kiln_node_set_types(node, a->name, a->u.types.data, a->u.types.count);
        kiln_attr *copy = kiln_node_attr(node, a->name);
        for (int i = 0; i < a->u.types.count; i++) {
          copy->u.types.data[i] = kiln_graph_import_type(c->to, c->from, a->u.types.data[i]);
        }
        break;
      }
      case KILN_ATTR_GRAPH: {
        kiln_graph *sub = kiln_graph_create_sub(c->to);
        copy_graph_into(sub, a->u.graph, c->ranges, c->values->arena);
        kiln_node_set_graph(node, a->name, sub);
        break;
      }
      case KILN_ATTR_POINTER: kiln_node_set_pointer(node, a->name, a->u.pointer); break;
    }
  }
}

static void copy_block(copier *c, kiln_block *to, const kiln_block *from);

static kiln_node *copy_node(copier *c, const kiln_node *node) {
  kiln_node *copy =
      node->op ? kiln_node_create(c->to, node->op) : kiln_node_create_unknown(c->to, node->name);
  copy->range = c->ranges ? kiln_graph_copy_range(c->from, node->range, c->to->arena, c->ranges)
                          : node->range;
  if (node->scope.len) {
    copy->scope = kiln_arena_str(c->to->arena, node->scope);
  }
  copy_attrs(c, copy, node);
  for (int i = 0; i < node->input_count; i++) {
    kiln_node_add_input(copy, mapped(c, kiln_node_input(node, i)));
  }
  for (int b = 0; b < node->block_count; b++) {
    copy_block(c, kiln_node_add_block(copy), node->blocks[b]);
  }
  for (int i = 0; i < node->output_count; i++) copy_output(c, copy, node->outputs[i]);
  return copy;
}

static void copy_block(copier *c, kiln_block *to, const kiln_block *from) {
  const kiln_node *param = from->param;
  for (int i = 0; i < param->output_count; i++) copy_output(c, to->param, param->outputs[i]);
  for (const kiln_node *n = from->first; n; n = n->next) kiln_node_append(to, copy_node(c, n));
  for (int i = 0; i < kiln_block_output_count(from); i++) {
    kiln_block_add_output(to, mapped(c, kiln_block_output(from, i)));
  }
}

kiln_node *kiln_node_copy(kiln_graph *graph, const kiln_node *node, kiln_map *map) {
  copier c = {.to = graph, .from = node->graph, .values = map};
  return copy_node(&c, node);
}

void kiln_block_copy_into(kiln_block *dst, const kiln_block *src, kiln_map *map) {
  copier c = {.to = dst->graph, .from = src->graph, .values = map};
  const kiln_node *last = src->last; /* src may be dst */
  for (const kiln_node *n = src->first; n; n = n->next) {
    kiln_node_append(dst, copy_node(&c, n));
    if (n == last) break;
  }
}

/* -- Graphs -- */

static void copy_graph_into(kiln_graph *to, const kiln_graph *from, kiln_map *ranges,
                            kiln_arena *scratch) {
  kiln_map values = kiln_map_in(scratch);
  copier c = {.to = to, .from = from, .values = &values, .ranges = ranges, .exact = true};
  copy_block(&c, to->top, from->top);
  if (to->next_id < from->next_id) to->next_id = from->next_id;
}

kiln_graph *kiln_graph_copy(const kiln_graph *graph, kiln_mem *mem, kiln_type_table *types) {
  kiln_graph *to = kiln_graph_create(mem, graph->registry, types);
  kiln_cleanup releasing;
  kiln_graph_defer(to, &releasing);
  kiln_arena *scratch = kiln_arena_scoped(mem);
  kiln_map ranges = kiln_map_in(scratch);
  to->owns_sources = graph->owns_sources;
  copy_graph_into(to, graph, &ranges, scratch);
  kiln_arena_destroy(scratch);
  kiln_scope_undefer(&releasing);
  return to;
}
