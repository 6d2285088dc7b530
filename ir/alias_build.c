/* alias_build.c: makes locations and constraints of the alias analysis from the nodes of a graph.
 *
 * Graph inputs, attributes of modules and results of unknown calls are wildcards. Operators follow
 * the alias marks of their schemas. Containers contain what is put into them, and what they contain
 * comes out again, so that a list built in the graph does not make its elements wildcards. */
#include "ir/alias_build.h"

#include "runtime/cycles.h"

/* -- Locations -- */

static int new_location(kiln_alias *a, bucket b) {
  location loc = {.bucket = (uint8_t)b};
  kiln_vec_push(a->arena, &a->locs, loc);
  return a->locs.count - 1;
}

static bool is_single(uint8_t mask) { return mask && !(mask & (mask - 1)); }

static void point_to_wildcards(kiln_alias *a, alias_var *var) {
  (void)kiln__locs_add_wildcards(a->arena, &var->points, var->mask);
}

static const kiln_type *bare(const kiln_type *type) {
  return type->kind == KILN_TYPE_OPTIONAL ? type->elems[0] : type;
}

/* New memory of a type, its elements (if asked for) new memory too; -1 when it cannot be told what
 * it is. */
static int fresh_location(kiln_alias *a, const kiln_type *type, bool with_elements) {
  uint8_t mask = kiln__alias_mask(type);
  if (!is_single(mask)) return -1;
  type = bare(type);
  int loc = new_location(a, (bucket)__builtin_ctz(mask));
  bool contains = type->kind == KILN_TYPE_LIST || type->kind == KILN_TYPE_DICT ||
                  type->kind == KILN_TYPE_TUPLE || type->kind == KILN_TYPE_FUTURE;
  for (int i = 0; contains && with_elements && i < type->elem_count; i++) {
    const uint8_t elem_mask = kiln__alias_mask(type->elems[i]);
    if (!elem_mask) continue;
    int elem = fresh_location(a, type->elems[i], true);
    loc_set *contents = &a->locs.data[loc].contents;
    if (elem >= 0) {
      kiln__locs_add(a->arena, contents, elem);
    } else {
      (void)kiln__locs_add_wildcards(a->arena, contents, elem_mask);
    }
  }
  return loc;
}

alias_var *kiln__alias_var(kiln_alias *a, const kiln_ir_value *value) {
  alias_var *var = kiln_map_find_ptr(&a->vars, value);
  if (var) return var;
  var = KILN_NEW(a->arena, alias_var);
  var->mask = kiln__alias_mask(value->type);
  kiln_map_set_ptr(&a->vars, value, var);
  return var;
}

void kiln__alias_wildcard(kiln_alias *a, const kiln_ir_value *value) {
  point_to_wildcards(a, kiln__alias_var(a, value));
}

int kiln__alias_fresh(kiln_alias *a, const kiln_ir_value *value, bool with_elements) {
  alias_var *var = kiln__alias_var(a, value);
  if (!var->mask) return -1;
  int loc = fresh_location(a, value->type, with_elements);
  if (loc < 0) {
    point_to_wildcards(a, var);
  } else {
    kiln__locs_add(a->arena, &var->points, loc);
  }
  return loc;
}

/* -- Constraints -- */

static void push(kiln_alias *a, constraint c) { kiln_vec_push(a->arena, &a->constraints, c); }

void kiln__alias_constrain(kiln_alias *a, constraint_kind kind, const kiln_ir_value *dst,
                           const kiln_ir_value *src) {
  alias_var *d = kiln__alias_var(a, dst), *s = kiln__alias_var(a, src);
  if (!d->mask || !s->mask) return;
  constraint c = {.kind = kind, .dst = d, .src = s};
  push(a, c);
}

void kiln__alias_into(kiln_alias *a, constraint_kind kind, int loc, const kiln_ir_value *src) {
  alias_var *s = kiln__alias_var(a, src);
  if (loc < 0 || !s->mask) return;
  constraint c = {.kind = kind, .loc = loc, .src = s};
  push(a, c);
}

void kiln__alias_escape(kiln_alias *a, const kiln_ir_value *value) {
  alias_var *s = kiln__alias_var(a, value);
  constraint c = {.kind = ESCAPE, .src = s};
  if (s->mask) push(a, c);
}

/* The node, and each node around it, writes. */
void kiln__alias_write(kiln_alias *a, const kiln_node *node, const kiln_ir_value *value,
                       bool elements) {
  write_fact fact = {.node = node, .elements = elements};
  if (value) {
    fact.var = kiln__alias_var(a, value);
    if (!fact.var->mask) return;
  }
  kiln_vec_push(a->arena, &a->write_facts, fact);
  for (int i = 0; i < a->around.count; i++) {
    fact.node = a->around.data[i];
    kiln_vec_push(a->arena, &a->write_facts, fact);
  }
}

/* -- Constants: the same object in two constants is the same memory -- */

static int constant_location(kiln_alias *a, kiln_ivalue v);

static int known_location(kiln_alias *a, const void *memory, bucket b, bool *out_new) {
  int known = (int)(intptr_t)kiln_map_find_ptr(&a->memory, memory);
  *out_new = known == 0;
  if (known) return known - 1;
  int loc = new_location(a, b);
  kiln_map_set_ptr(&a->memory, memory, (void *)(intptr_t)(loc + 1));
  return loc;
}

static int container_location(kiln_alias *a, kiln_ivalue v, bucket b) {
  bool is_new;
  const int loc = known_location(a, v.u.box, b, &is_new);
  for (int64_t i = 0; is_new && i < kiln_child_count(v); i++) {
    int item = constant_location(a, kiln_child_at(v, i));
    if (item >= 0) kiln__locs_add(a->arena, &a->locs.data[loc].contents, item);
  }
  return loc;
}

static int constant_location(kiln_alias *a, kiln_ivalue v) {
  bool is_new;
  switch (v.tag) {
    case KILN_TAG_TENSOR:
      if (!v.u.tensor->storage) return new_location(a, BUCKET_TENSOR);
      return known_location(a, v.u.tensor->storage, BUCKET_TENSOR, &is_new);
    case KILN_TAG_LIST: return container_location(a, v, BUCKET_LIST);
    case KILN_TAG_TUPLE: return container_location(a, v, BUCKET_TUPLE);
    case KILN_TAG_DICT: return container_location(a, v, BUCKET_DICT);
    case KILN_TAG_OBJECT: return BUCKET_OBJECT;
    case KILN_TAG_FUTURE: return BUCKET_FUTURE;
    case KILN_TAG_OTHER: return BUCKET_OTHER;
    default: return -1;
  }
}

static void build_constant(kiln_alias *a, const kiln_node *node) {
  alias_var *var = kiln__alias_var(a, node->outputs[0]);
  const kiln_ivalue *v = kiln_ir_value_constant(node->outputs[0]);
  int loc = v ? constant_location(a, *v) : -1;
  if (loc >= 0) kiln__locs_add(a->arena, &var->points, loc);
}

/* -- Structural operators -- */

static void build_block(kiln_alias *a, const kiln_block *block);

static void build_nested(kiln_alias *a, const kiln_node *node, const kiln_block *block) {
  const int facts = a->write_facts.count;
  kiln_vec_push(a->arena, &a->around, node);
  build_block(a, block);
  (void)kiln_vec_pop(&a->around);
  if (a->write_facts.count == facts) kiln_map_set_ptr(&a->quiet, block, a);
}

static void build_if(kiln_alias *a, const kiln_node *node) {
  for (int b = 0; b < node->block_count; b++) {
    build_nested(a, node, node->blocks[b]);
    for (int i = 0; i < node->output_count; i++) {
      kiln__alias_constrain(a, COPY, node->outputs[i], kiln_block_output(node->blocks[b], i));
    }
  }
}

static void build_loop(kiln_alias *a, const kiln_node *node) {
  const kiln_block *body = node->blocks[0];
  for (int i = 0; i < node->output_count; i++) {
    kiln__alias_constrain(a, COPY, kiln_block_input(body, i + 1), kiln_node_input(node, i + 2));
  }
  build_nested(a, node, body);
  for (int i = 0; i < node->output_count; i++) {
    const kiln_ir_value *next = kiln_block_output(body, i + 1);
    kiln__alias_constrain(a, COPY, kiln_block_input(body, i + 1), next);
    kiln__alias_constrain(a, COPY, node->outputs[i], next);
    kiln__alias_constrain(a, COPY, node->outputs[i], kiln_node_input(node, i + 2));
  }
}

static void build_subgraph(kiln_alias *a, const kiln_node *node, const kiln_graph *sub) {
  for (int i = 0; i < node->input_count && i < kiln_graph_input_count(sub); i++) {
    kiln__alias_constrain(a, COPY, kiln_graph_input(sub, i), kiln_node_input(node, i));
  }
  build_nested(a, node, sub->top);
  for (int i = 0; i < node->output_count && i < kiln_graph_output_count(sub); i++) {
    kiln__alias_constrain(a, COPY, node->outputs[i], kiln_graph_output(sub, i));
  }
}

/* It may keep, change and give back everything that it can reach. */
static void build_unknown(kiln_alias *a, const kiln_node *node) {
  for (int i = 0; i < node->input_count; i++) kiln__alias_escape(a, kiln_node_input(node, i));
  for (int b = 0; b < node->block_count; b++) {
    const kiln_block *block = node->blocks[b];
    for (int i = 0; i < kiln_block_input_count(block); i++) {
      kiln__alias_wildcard(a, kiln_block_input(block, i));
    }
    build_nested(a, node, block);
    for (int i = 0; i < kiln_block_output_count(block); i++) {
      kiln__alias_escape(a, kiln_block_output(block, i));
    }
  }
  for (int i = 0; i < node->output_count; i++) kiln__alias_wildcard(a, node->outputs[i]);
  kiln__alias_write(a, node, NULL, false);
}

/* All outputs are made by `kind` from all inputs. */
static void build_each(kiln_alias *a, constraint_kind kind, const kiln_node *node) {
  for (int o = 0; o < node->output_count; o++) {
    for (int i = 0; i < node->input_count; i++) {
      kiln__alias_constrain(a, kind, node->outputs[o], kiln_node_input(node, i));
    }
  }
}

static void build_construct(kiln_alias *a, const kiln_node *node) {
  int loc = kiln__alias_fresh(a, node->outputs[0], false);
  for (int i = 0; i < node->input_count; i++) {
    kiln__alias_into(a, INTO, loc, kiln_node_input(node, i));
  }
}

static void build_structural(kiln_alias *a, const kiln_node *node) {
  switch (node->op->id) {
    case KILN_OP_prim_Constant: build_constant(a, node); return;
    case KILN_OP_prim_If: build_if(a, node); return;
    case KILN_OP_prim_Loop: build_loop(a, node); return;
    case KILN_OP_prim_ListConstruct:
    case KILN_OP_prim_TupleConstruct:
    case KILN_OP_prim_DictConstruct: build_construct(a, node); return;
    case KILN_OP_prim_ListUnpack:
    case KILN_OP_prim_TupleUnpack:
    case KILN_OP_prim_TupleIndex:
    case KILN_OP_prim_ModuleContainerIndex:
    case KILN_OP_prim_GetAttr: build_each(a, LOAD, node); return;
    case KILN_OP_prim_TupleSlice:
      kiln__alias_into(a, INTO_CONTENTS, kiln__alias_fresh(a, node->outputs[0], false),
                       kiln_node_input(node, 0));
      return;
    case KILN_OP_prim_CreateObject: kiln__alias_fresh(a, node->outputs[0], false); return;
    case KILN_OP_prim_SetAttr:
      kiln__alias_constrain(a, STORE, kiln_node_input(node, 0), kiln_node_input(node, 1));
      kiln__alias_write(a, node, kiln_node_input(node, 0), false);
      return;
    case KILN_OP_prim_tolist: kiln__alias_fresh(a, node->outputs[0], true); return;
    case KILN_OP_prim_unchecked_cast:
    case KILN_OP_prim_unchecked_unwrap_optional:
    case KILN_OP_prim_profile:
    case KILN_OP_prim_ConstantChunk: build_each(a, COPY, node); return;
    case KILN_OP_prim_TypeCheck:
    case KILN_OP_prim_TensorExprDynamicGuard:
    case KILN_OP_prim_RequiresGradCheck:
      for (int i = 0; i + 1 < node->output_count && i < node->input_count; i++) {
        kiln__alias_constrain(a, COPY, node->outputs[i], kiln_node_input(node, i));
      }
      return;
    case KILN_OP_prim_Uninitialized:
    case KILN_OP_prim_Print:
    case KILN_OP_prim_RaiseException:
    case KILN_OP_prim_isinstance:
    case KILN_OP_prim_EnumName:
    case KILN_OP_prim_EnumValue:
      for (int i = 0; i < node->output_count; i++) kiln__alias_var(a, node->outputs[i]);
      return;
    default: break;
  }
  const kiln_graph *sub = kiln_node_graph(node, "Subgraph");
  bool runs_it = kiln_node_is_group(node) || kiln_node_is(node, KILN_OP_prim_FallbackGraph) ||
                 kiln_node_is(node, KILN_OP_prim_DifferentiableGraph);
  if (sub && runs_it)
    build_subgraph(a, node, sub);
  else
    build_unknown(a, node);
}

static void build_block(kiln_alias *a, const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (!n->op) {
      build_unknown(a, n);
    } else if (n->op->schema) {
      kiln__alias_build_schema(a, n);
    } else {
      build_structural(a, n);
    }
  }
}

/* -- The whole -- */

static void mark_written(kiln_alias *a, loc_set *all, const loc_set *locs) {
  for (int i = 0; i < locs->count; i++) {
    a->locs.data[locs->items[i]].written = true;
    kiln__locs_add(a->arena, all, locs->items[i]);
  }
}

static void resolve_writes(kiln_alias *a) {
  loc_set wildcards = {0};
  (void)kiln__locs_add_wildcards(a->arena, &wildcards, ALL_BUCKETS);
  for (int i = 0; i < a->write_facts.count; i++) {
    const write_fact *fact = &a->write_facts.data[i];
    loc_set *all = kiln_map_find_ptr(&a->writes, fact->node);
    if (!all) {
      all = KILN_NEW(a->arena, loc_set);
      kiln_map_set_ptr(&a->writes, fact->node, all);
    }
    if (!fact->var) {
      mark_written(a, all, &wildcards);
    } else if (!fact->elements) {
      mark_written(a, all, &fact->var->points);
    } else {
      for (int k = 0; k < fact->var->points.count; k++) {
        loc_set contents = a->locs.data[fact->var->points.items[k]].contents;
        mark_written(a, all, &contents);
      }
    }
  }
}

static void find_written(kiln_alias *a) {
  for (int i = 0; i < a->locs.count; i++) {
    location *loc = &a->locs.data[i];
    for (int d = 0; d < loc->deep.count; d++) {
      int part = loc->deep.items[d];
      if (a->locs.data[part].written) kiln__locs_add(a->arena, &loc->written_deep, part);
    }
  }
}

static void mark_leaving(kiln_alias *a) {
  for (int i = 0; i < kiln_graph_output_count(a->graph); i++) {
    const alias_var *var = kiln_map_find_ptr(&a->vars, kiln_graph_output(a->graph, i));
    for (int k = 0; var && k < var->points.count; k++) {
      const loc_set *deep = &a->locs.data[var->points.items[k]].deep;
      for (int d = 0; d < deep->count; d++) a->locs.data[deep->items[d]].leaves = true;
    }
  }
}

kiln_alias *kiln_alias_create(kiln_arena *arena, const kiln_graph *graph) {
  kiln_alias *a = KILN_NEW(arena, kiln_alias);
  a->arena = arena;
  a->graph = graph;
  a->vars = kiln_map_in(arena);
  a->writes = kiln_map_in(arena);
  a->quiet = kiln_map_in(arena);
  a->memory = kiln_map_in(arena);
  for (int b = 0; b < BUCKET__COUNT; b++) {
    new_location(a, (bucket)b);
    a->locs.data[b].escaped = true;
  }
  for (int i = 0; i < kiln_graph_input_count(graph); i++) {
    kiln__alias_wildcard(a, kiln_graph_input(graph, i));
  }
  build_block(a, graph->top);
  kiln__alias_solve(a);
  resolve_writes(a);
  find_written(a);
  mark_leaving(a);
  return a;
}
