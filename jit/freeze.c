/* freeze.c: which attributes are constants, and the methods with them.
 *
 * Objects are followed from self through GetAttr. Flags, numbers and None come first, as they
 * decide branches that need not be looked at. Then every read of an attribute is made a constant,
 * and alias analysis, which knows a constant's memory by its address, says which of them somebody
 * writes. Those reads, all that share memory with them, and attributes that are stored to are put
 * back. The case that defeats asking about the reads themselves: attributes that the
 * analysis cannot tell apart, so that one write would keep them all.
 * Reference: torch/csrc/jit/passes/freeze_module.cpp. */
#include "jit/freeze_internal.h"

#include "runtime/cycles.h"

enum { MAX_ROUNDS = 64, MAX_DEPTH = 64 };

static kiln_status *cannot(const kiln_node *node, const char *why) {
  kiln_status *status = KILN_ERROR(KILN_UNSUPPORTED, "the module cannot be frozen: %s", why);
  return node->range ? kiln_status_at(status, kiln_source_range_loc(node->range)) : status;
}

/* -- Objects -- */

kiln__frozen_object *kiln__frozen_object_of(kiln__freezer *f, kiln_object *object) {
  kiln__frozen_object *o = kiln_map_find_ptr(&f->by_object, object);
  if (o) return o;
  o = KILN_NEW(f->arena, kiln__frozen_object);
  o->object = object;
  o->pinned = KILN_NEW_ARRAY(f->arena, bool, object->count + 1);
  o->changes = KILN_NEW_ARRAY(f->arena, bool, object->count + 1);
  o->needed = KILN_NEW_ARRAY(f->arena, bool, object->count + 1);
  kiln_map_set_ptr(&f->by_object, object, o);
  kiln_vec_push(f->arena, &f->objects, o);
  return o;
}

kiln_ivalue kiln__frozen_value(const kiln__freezer *f, const kiln_object *object, int slot) {
  const kiln_ivalue v = object->slots[slot];
  bool training = f->request->eval && v.tag == KILN_TAG_BOOL &&
                  kiln_str_is(object->type->cls->attributes[slot].name, "training");
  return training ? kiln_bool(false) : v;
}

/* A container may be a part of a constant once: source cannot say that two parts are one, nor that
 * something holds itself. */
static bool is_first_visit(kiln__freezer *f, kiln_ivalue container) {
  if (kiln_map_find_ptr(&f->visited, container.u.box)) return false;
  kiln_map_set_ptr(&f->visited, container.u.box, f);
  return true;
}

static bool part_can_be_constant(kiln__freezer *f, kiln_ivalue v, int depth) {
  if (depth > MAX_DEPTH) return false;
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_TENSOR:
      return v.u.tensor && v.u.tensor->storage && !v.u.tensor->key.f.undefined &&
             v.u.tensor->key.f.device_kind == KILN_DEVICE_CPU &&
             (depth == 0 || !v.u.tensor->key.f.requires_grad);
    case KILN_TAG_LIST:
    case KILN_TAG_TUPLE:
    case KILN_TAG_DICT:
      if (!is_first_visit(f, v)) return false;
      for (int64_t i = 0; i < kiln_child_count(v); i++) {
        if (!part_can_be_constant(f, kiln_child_at(v, i), depth + 1)) return false;
      }
      return true;
    case KILN_TAG_NONE:
    case KILN_TAG_INT:
    case KILN_TAG_FLOAT:
    case KILN_TAG_BOOL:
    case KILN_TAG_DEVICE:
    case KILN_TAG_STRING:
    case KILN_TAG_COMPLEX:
    case KILN_TAG_ENUM: return true;
    default: return false;
  }
}
/* Plain data, on the CPU: what source can say. Parameters in containers stay attributes. */
static bool can_be_constant(kiln__freezer *f, kiln_ivalue v) {
  kiln_map_clear(&f->visited);
  return part_can_be_constant(f, v, 0);
}

/* -- Memory that changes -- */

static bool visit_items(kiln__freezer *f, const kiln_ivalue *items, int64_t count, bool add,
                        int depth);

/* Adds the addresses of what v holds to the map, or tells whether one of them is there. A container
 * that was seen by the same question is not entered again: values may share parts and hold
 * themselves. */
static bool visit_value(kiln__freezer *f, kiln_ivalue v, bool add, int depth) {
  const void *address = NULL;
  bool found = false;
  int64_t index = 0;
  kiln_ivalue *key, *value;
  if (depth > MAX_DEPTH) return true;
  if (v.tag == KILN_TAG_TENSOR) {
    address = v.u.tensor ? v.u.tensor->storage : NULL;
  } else if (v.tag == KILN_TAG_OBJECT || v.tag == KILN_TAG_LIST || v.tag == KILN_TAG_TUPLE ||
             v.tag == KILN_TAG_DICT) {
    if (!is_first_visit(f, v)) return false;
    if (v.tag != KILN_TAG_TUPLE) address = v.u.box;
  }
  if (v.tag == KILN_TAG_OBJECT) { /* of a script class */
    found = visit_items(f, v.u.object->slots, v.u.object->count, add, depth);
  } else if (v.tag == KILN_TAG_LIST) {
    found = visit_items(f, v.u.list->items, v.u.list->count, add, depth);
  } else if (v.tag == KILN_TAG_TUPLE) {
    found = visit_items(f, v.u.tuple->items, v.u.tuple->count, add, depth);
  }
  while (v.tag == KILN_TAG_DICT && kiln_dict_next(v.u.dict, &index, &key, &value)) {
    found |= visit_value(f, *value, add, depth + 1);
  }
  if (!address) return found;
  if (add) kiln_map_set_ptr(&f->memory, address, f);
  return found || kiln_map_find_ptr(&f->memory, address);
}
static bool visit_items(kiln__freezer *f, const kiln_ivalue *items, int64_t count, bool add,
                        int depth) {
  bool found = false;
  for (int64_t i = 0; i < count; i++) found |= visit_value(f, items[i], add, depth + 1);
  return found;
}
static bool visit_memory(kiln__freezer *f, kiln_ivalue v, bool add) {
  kiln_map_clear(&f->visited);
  return visit_value(f, v, add, 0);
}

static void set_changes(kiln__freezer *f, kiln__frozen_object *o, int slot) {
  o->changes[slot] = true;
  visit_memory(f, o->object->slots[slot], true);
}

static void pin(kiln__freezer *f, kiln__frozen_object *o, int slot) {
  o->pinned[slot] = true;
  set_changes(f, o, slot);
}

/* -- Names that are preserved -- */

static kiln_str cut_name(kiln_str *rest) {
  size_t dot = 0;
  while (dot < rest->len && rest->data[dot] != '.') dot++;
  const kiln_str name = kiln_str_make(rest->data, dot);
  const size_t used = dot < rest->len ? dot + 1 : dot;
  *rest = kiln_str_make(rest->data + used, rest->len - used);
  return name;
}

static void keep_whole(kiln__freezer *f, kiln_object *object, int depth) {
  kiln__frozen_object *o = kiln__frozen_object_of(f, object);
  if (o->whole || depth > MAX_DEPTH) return;
  o->whole = true;
  for (int i = 0; i < object->count; i++) {
    o->needed[i] = true;
    if (kiln__is_module(object->slots[i]))
      keep_whole(f, object->slots[i].u.object, depth + 1);
    else
      pin(f, o, i);
  }
}

static kiln_status *preserve_name(kiln__freezer *f, const char *whole) {
  kiln_str rest = kiln_str_from(whole);
  kiln_object *object = f->root.u.object;
  kiln_function *method = kiln_class_find_method(object->type, rest);
  if (method) {
    for (int i = 0; i < f->methods.count; i++) {
      if (f->methods.data[i] == method) return NULL;
    }
    kiln_vec_push(f->arena, &f->methods, method);
    return NULL;
  }
  while (rest.len > 0) {
    const kiln_str name = cut_name(&rest);
    const int slot = kiln_type_find_attribute(object->type, name);
    if (slot < 0) break;
    kiln__frozen_object *o = kiln__frozen_object_of(f, object);
    const kiln_ivalue v = object->slots[slot];
    o->needed[slot] = true;
    if (!kiln__is_module(v)) {
      if (rest.len > 0) break;
      pin(f, o, slot);
      return NULL;
    }
    object = v.u.object;
    if (rest.len > 0) continue;
    keep_whole(f, object, 0);
    return NULL;
  }
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "the module has no method or attribute '%s' to preserve",
                    whole);
}

static kiln_status *choose(kiln__freezer *f) {
  const kiln_object *root = f->root.u.object;
  const kiln_class *cls = kiln_class_of(root->type);
  const int training = kiln_type_find_attribute(root->type, KILN_STR("training"));
  if (training >= 0 && root->slots[training].tag == KILN_TAG_BOOL && root->slots[training].u.b &&
      !f->request->eval) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "only a module in eval mode can be frozen; this one is in training mode");
  }
  if (cls->forward_pre_hooks.count + cls->forward_hooks.count > 0) {
    return KILN_ERROR(KILN_UNSUPPORTED, "the module cannot be frozen: it has hooks of its own");
  }
  kiln_function *forward = kiln_class_find_method(root->type, KILN_STR("forward"));
  if (forward) kiln_vec_push(f->arena, &f->methods, forward);
  for (int i = 0; i < f->request->preserve_count; i++) {
    KILN_TRY(preserve_name(f, f->request->preserve[i]));
  }
  if (f->methods.count > 0) return NULL;
  return KILN_ERROR(KILN_INVALID_ARGUMENT, "the module has no forward, and no method to preserve");
}

/* -- Reads -- */

static kiln__frozen_object *known(const kiln__freezer *f, const kiln_ir_value *value) {
  return kiln_map_find_ptr(&f->known, value);
}

static bool is_module_type(const kiln_type *type) { return type->cls && type->cls->is_module; }

static kiln_status *see_attribute(kiln__freezer *f, kiln_graph *graph, kiln_node *n, bool stores) {
  kiln__frozen_object *o = known(f, kiln_node_input(n, 0));
  if (!o) {
    if (!is_module_type(kiln_node_input(n, 0)->type)) return NULL;
    return cannot(n, "only a run knows which module this is");
  }
  const int slot = kiln_type_find_attribute(o->object->type, kiln_node_str(n, "name"));
  if (slot < 0 || slot >= o->object->count) return cannot(n, "it has no such attribute");
  const kiln_ivalue v = o->object->slots[slot];
  if (stores) {
    if (kiln__is_module(v)) return cannot(n, "it stores a module");
    set_changes(f, o, slot);
  } else if (kiln__is_module(v)) {
    kiln_map_set_ptr(&f->known, kiln_node_output(n, 0), kiln__frozen_object_of(f, v.u.object));
    kiln_node_output(n, 0)->type = v.u.object->type; /* behind an interface too */
  } else if (can_be_constant(f, v)) {
    const kiln__frozen_read read = {.graph = graph, .get = n, .object = o, .slot = slot};
    kiln_vec_push(f->arena, &f->reads, read);
  } else {
    set_changes(f, o, slot); /* it stays, and what shares its memory */
  }
  return NULL;
}

/* Modules may only be read, stored to, called, and captured by forks. */
static kiln_status *see_uses(kiln__freezer *f, const kiln_node *n) {
  const bool has_self =
      n->op && (kiln_node_is(n, KILN_OP_prim_GetAttr) || kiln_node_is(n, KILN_OP_prim_SetAttr) ||
                kiln_node_is(n, KILN_OP_prim_CallMethod));
  if (n->op && kiln_node_is(n, KILN_OP_prim_fork)) return NULL;
  for (int i = has_self ? 1 : 0; i < n->input_count; i++) {
    if (!known(f, kiln_node_input(n, i)) && !is_module_type(kiln_node_input(n, i)->type)) continue;
    /* Arguments of calls that the next round inlines. */
    if (n->op &&
        (kiln_node_is(n, KILN_OP_prim_CallMethod) || kiln_node_is(n, KILN_OP_prim_CallFunction))) {
      continue;
    }
    return cannot(n, "a module is used as a value, or chosen by a run");
  }
  return NULL;
}

static kiln_status *see_graph(kiln__freezer *f, kiln_graph *graph);

static kiln_status *see_block(kiln__freezer *f, kiln_graph *graph, const kiln_block *block,
                              bool *calls) {
  for (kiln_node *n = block->first; n; n = n->next) {
    KILN_TRY(see_uses(f, n));
    if (kiln_node_is(n, KILN_OP_prim_GetAttr)) KILN_TRY(see_attribute(f, graph, n, false));
    if (kiln_node_is(n, KILN_OP_prim_SetAttr)) KILN_TRY(see_attribute(f, graph, n, true));
    if (kiln_node_is(n, KILN_OP_prim_CallMethod) || kiln_node_is(n, KILN_OP_prim_CallFunction)) {
      for (int i = 0; i < n->input_count; i++) {
        *calls |= is_module_type(kiln_node_input(n, i)->type);
      }
    }
    kiln_graph *sub = kiln_node_graph(n, "Subgraph");
    for (int i = 0; sub && i < n->input_count && i < kiln_graph_input_count(sub); i++) {
      kiln__frozen_object *o = known(f, kiln_node_input(n, i));
      if (!o) continue;
      kiln_map_set_ptr(&f->known, kiln_graph_input(sub, i), o);
      kiln_graph_input(sub, i)->type = o->object->type;
    }
    if (sub) KILN_TRY(see_graph(f, sub));
    for (int b = 0; b < n->block_count; b++) KILN_TRY(see_block(f, graph, n->blocks[b], calls));
  }
  return see_uses(f, block->ret);
}

/* Inlines until no call of a module is left, then looks at what it reads. */
static kiln_status *see_graph(kiln__freezer *f, kiln_graph *graph) {
  bool calls = true;
  for (int round = 0; calls; round++) {
    const int reads = f->reads.count, graphs = f->graphs.count;
    calls = false;
    KILN_TRY(kiln_pass_run(&f->runner, graph, KILN_PASS_inline));
    KILN_TRY(kiln_pass_run(&f->runner, graph, KILN_PASS_unwrap_numbers));
    KILN_TRY(see_block(f, graph, graph->top, &calls));
    if (!calls) break;
    f->reads.count = reads;
    f->graphs.count = graphs;
    if (round == MAX_ROUNDS) {
      return KILN_ERROR(KILN_UNSUPPORTED,
                        "the module cannot be frozen: a call of a module cannot be inlined");
    }
  }
  kiln_vec_push(f->arena, &f->graphs, graph);
  return NULL;
}

/* -- Constants for reads -- */

/* The value as a constant, owned by the caller. */
static kiln_status *constant_of(kiln__freezer *f, kiln_ivalue v, kiln_ivalue *out) {
  *out = v;
  if (v.tag == KILN_TAG_TENSOR && v.u.tensor->key.f.requires_grad) {
    kiln_tensor *t = kiln_map_find_ptr(&f->detached, v.u.tensor);
    if (!t) {
      kiln_vec_reserve(f->to->arena, &f->to->owned, f->to->owned.count + 1);
      KILN_TRY(kiln_tensor_alias(NULL, v.u.tensor, &t));
      f->to->owned.data[f->to->owned.count++] = kiln_of_tensor(t);
      kiln_map_set_ptr(&f->detached, v.u.tensor, t);
    }
    *out = kiln_of_tensor(t);
  }
  kiln_ivalue_retain(*out);
  return NULL;
}

/* Containers are of the declared type, all else of the type that the value has. */
static const kiln_type *constant_type(const kiln__frozen_read *read, kiln_ivalue v) {
  const kiln_type *declared = kiln_node_output(read->get, 0)->type;
  if (declared->kind == KILN_TYPE_OPTIONAL) declared = declared->elems[0];
  const bool container =
      v.tag == KILN_TAG_LIST || v.tag == KILN_TAG_DICT || v.tag == KILN_TAG_TUPLE;
  const bool told = declared->kind == KILN_TYPE_LIST || declared->kind == KILN_TYPE_DICT ||
                    declared->kind == KILN_TYPE_TUPLE;
  return container && told ? declared : kiln_ivalue_type(read->graph->types, v);
}

/* Reads become constants: all, or those that no write can change. */
static kiln_status *insert_constants(kiln__freezer *f, bool all) {
  for (int i = 0; i < f->reads.count; i++) {
    kiln__frozen_read *read = &f->reads.data[i];
    kiln_ir_value *out = kiln_node_output(read->get, 0);
    const kiln_ivalue now = kiln__frozen_value(f, read->object->object, read->slot);
    kiln_ivalue v = kiln_none();
    bool plain = now.tag < KILN_TAG__COUNTED || now.tag == KILN_TAG_STRING;
    if (read->object->changes[read->slot] || (!all && !plain)) continue;
    const kiln_type *type = constant_type(read, now);
    KILN_TRY(constant_of(f, now, &v));
    read->constant = kiln_insert_constant_before(read->get, v, type);
    read->constant->node->range = read->get->range;
    kiln_ir_value_replace_uses(out, read->constant);
  }
  return NULL;
}

/* -- What is written -- */

/* A normalisation that is not training leaves its running values alone. */
static bool writes_nothing(const kiln_node *n) {
  const kiln_schema *s = n->op ? n->op->schema : NULL;
  for (int i = 0; s && i < s->arg_count && i < n->input_count; i++) {
    if (!kiln_str_is(s->args[i].name, "training") && !kiln_str_is(s->args[i].name, "train") &&
        !kiln_str_is(s->args[i].name, "use_input_stats")) {
      continue;
    }
    return kiln_ir_value_is_bool(kiln_node_input(n, i), false);
  }
  return false;
}

static void mark_writes(const kiln_alias *alias, const kiln_block *block, kiln_alias_marks *marks) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    for (int b = 0; b < n->block_count; b++) mark_writes(alias, n->blocks[b], marks);
    if (n->block_count == 0 && !writes_nothing(n)) kiln_alias_mark_writes(alias, n, marks);
  }
}

typedef struct graph_writes {
  kiln_alias *alias;
  kiln_alias_marks marks;
} graph_writes;

static const graph_writes *writes_of(kiln__freezer *f, kiln_map *known, const kiln_graph *graph) {
  graph_writes *w = kiln_map_find_ptr(known, graph);
  if (w) return w;
  w = KILN_NEW(f->arena, graph_writes);
  w->alias = kiln_alias_create(f->arena, graph);
  w->marks = kiln_alias_marks_create(w->alias, f->arena);
  mark_writes(w->alias, graph->top, &w->marks);
  kiln_map_set_ptr(known, graph, w);
  return w;
}

/* Attributes whose memory their graph writes. */
static void find_writes(kiln__freezer *f) {
  kiln_map known = kiln_map_in(f->arena);
  for (int i = 0; i < f->reads.count; i++) {
    const kiln__frozen_read *read = &f->reads.data[i];
    const graph_writes *w = writes_of(f, &known, read->graph);
    if (read->constant && kiln_alias_is_marked(w->alias, &w->marks, read->constant))
      set_changes(f, read->object, read->slot);
  }
}

/* What is written, and what shares its memory, is put back. */
static void take_back(kiln__freezer *f) {
  find_writes(f);
  for (bool again = true; again;) {
    again = false;
    for (int i = 0; i < f->reads.count; i++) {
      const kiln__frozen_read *read = &f->reads.data[i];
      if (read->object->changes[read->slot] ||
          !visit_memory(f, read->object->object->slots[read->slot], false)) {
        continue;
      }
      set_changes(f, read->object, read->slot);
      again = true;
    }
  }
  for (int i = 0; i < f->reads.count; i++) {
    kiln__frozen_read *read = &f->reads.data[i];
    if (!read->constant || !read->object->changes[read->slot]) continue;
    kiln_ir_value_replace_uses(read->constant, kiln_node_output(read->get, 0));
    kiln_node_destroy(read->constant->node);
    read->constant = NULL;
  }
}

/* -- The methods -- */

static kiln_status *copy_methods(kiln__freezer *f) {
  for (int i = 0; i < f->methods.count; i++) {
    kiln_function *method = f->methods.data[i];
    KILN_TRY(kiln_unit_ensure(method));
    kiln_vec_reserve(f->arena, &f->frozen, f->frozen.count + 1);
    kiln_graph *graph = kiln_graph_copy(method->graph, f->env->mem, f->to->types);
    f->frozen.data[f->frozen.count++] = graph;
  }
  return NULL;
}

/* Reads and stores of all methods as they are now. */
static kiln_status *see_methods(kiln__freezer *f) {
  kiln__frozen_object *root = kiln__frozen_object_of(f, f->root.u.object);
  f->reads.count = f->graphs.count = 0;
  kiln_map_clear(&f->memory);
  for (int i = 0; i < f->objects.count; i++) {
    kiln__frozen_object *o = f->objects.data[i];
    for (int s = 0; s < o->object->count; s++) {
      o->changes[s] = false;
      if (o->pinned[s]) set_changes(f, o, s);
    }
  }
  for (int i = 0; i < f->frozen.count; i++) {
    kiln_graph *graph = f->frozen.data[i];
    kiln_map_set_ptr(&f->known, kiln_graph_input(graph, 0), root);
    KILN_TRY_NOTE(see_graph(f, graph), "in %s", f->methods.data[i]->qualname);
  }
  return NULL;
}

/* Modules that a fork captured and no longer reads. */
static void drop_captures(kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    kiln_graph *sub = kiln_node_graph(n, "Subgraph");
    for (int b = 0; b < n->block_count; b++) drop_captures(n->blocks[b]);
    if (!sub) continue;
    drop_captures(sub->top);
    for (int i = n->input_count - 1; i >= 0 && i < kiln_graph_input_count(sub); i--) {
      if (kiln_graph_input(sub, i)->use_count > 0) continue;
      kiln_node_remove_input(n, i);
      kiln_block_remove_input(sub->top, i);
    }
  }
}

static kiln_status *simplify(kiln__freezer *f) {
  static const kiln_pass_id passes[] = {
      KILN_PASS_peephole, KILN_PASS_constant_propagation, KILN_PASS_dce,
      KILN_PASS_peephole, KILN_PASS_lower_simple_tuples,  KILN_PASS_constant_propagation,
      KILN_PASS_dce};
  for (int g = 0; g < f->graphs.count; g++) { /* those of forks stand before what holds them */
    kiln_graph *graph = f->graphs.data[g];
    for (size_t p = 0; p < sizeof passes / sizeof *passes; p++) {
      KILN_TRY(kiln_pass_run(&f->runner, graph, passes[p]));
      if (p == 2) drop_captures(graph->top);
    }
  }
  return NULL;
}

static kiln_status *freeze_all(kiln__freezer *f, kiln_ivalue *out_root) {
  KILN_TRY(choose(f));
  KILN_TRY(copy_methods(f));
  KILN_TRY(see_methods(f));
  KILN_TRY(insert_constants(f, false));
  KILN_TRY(simplify(f));
  KILN_TRY(see_methods(f));
  KILN_TRY(insert_constants(f, true));
  take_back(f);
  KILN_TRY(simplify(f));
  return kiln__freeze_make_module(f, out_root);
}

/* -- All -- */

/* A unit whose types stand on those of `from`. */
static kiln_status *create_unit(kiln__freezer *f) {
  f->to = kiln_unit_create(f->env, f->from->registry);
  kiln_type_table_destroy(f->to->types);
  f->to->types = NULL;
  return kiln_type_table_create(f->env->mem, f->from->types, &f->to->types);
}

static kiln_status *freeze(kiln__freezer *f, kiln_ivalue *out_root) {
  KILN_TRY(create_unit(f));
  f->by_object = kiln_map_in(f->arena);
  f->known = kiln_map_in(f->arena);
  f->visited = kiln_map_in(f->arena);
  f->memory = kiln_map_in(f->arena);
  f->detached = kiln_map_in(f->arena);
  return freeze_all(f, out_root);
}
static kiln_status *try_freeze(kiln__freezer *f, kiln_ivalue *out_root) {
  KILN_PROTECT(freeze(f, out_root));
}

kiln_status *kiln_jit_freeze(kiln_env *env, kiln_unit *unit, kiln_ivalue root,
                             const kiln_freeze_request *request, kiln_frozen_module *out_module) {
  kiln__freezer f = {.env = env, .from = unit, .root = root, .request = request};
  kiln_ivalue frozen_root = kiln_none();
  *out_module = (kiln_frozen_module){0};
  KILN_TRY(kiln_pass_runner_init(&f.runner, env, NULL));
  kiln_status *status = kiln_arena_create(env->mem, &f.arena);
  if (!status) status = try_freeze(&f, &frozen_root);
  for (int i = 0; i < f.frozen.count; i++) kiln_graph_release(f.frozen.data[i]);
  kiln_pass_runner_deinit(&f.runner);
  kiln_arena_destroy(f.arena);
  if (status) {
    kiln_ivalue_release(frozen_root);
    kiln_unit_destroy(f.to);
    return status;
  }
  *out_module = (kiln_frozen_module){f.to, frozen_root};
  return NULL;
}

void kiln_frozen_module_deinit(kiln_frozen_module *module) {
  kiln_ivalue_release(module->root);
  kiln_unit_destroy(module->unit);
  *module = (kiln_frozen_module){0};
}
