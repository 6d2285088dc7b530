/* freeze_module.c: what is left of a module after its attributes became constants: classes with the
 * attributes that are still needed, objects of them, and the methods.
 *
 * Classes keep their names, each with the attributes that one of its objects needs. A module that
 * is preserved as a whole keeps its class, and so do all others of that class. */
#include "jit/freeze_internal.h"

typedef struct maker {
  kiln__freezer *f;
  kiln_map classes; /* old type -> frozen_class */
} maker;

typedef struct frozen_class {
  const kiln_type *old, *made; /* made NULL while it is under way; the old one of whole modules */
  bool *needed;
  bool whole;
} frozen_class;

/* -- What is needed -- */

static void need_chain(kiln__freezer *f, const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    const kiln_graph *sub = kiln_node_graph(n, "Subgraph");
    if (sub) need_chain(f, sub->top);
    for (int b = 0; b < n->block_count; b++) need_chain(f, n->blocks[b]);
    if (!kiln_node_is(n, KILN_OP_prim_GetAttr) && !kiln_node_is(n, KILN_OP_prim_SetAttr)) continue;
    kiln__frozen_object *o = kiln_map_find_ptr(&f->known, kiln_node_input(n, 0));
    if (!o) continue;
    const int slot = kiln_type_find_attribute(o->object->type, kiln_node_str(n, "name"));
    if (slot >= 0) o->needed[slot] = true;
  }
}

static frozen_class *class_entry(maker *m, const kiln_type *old) {
  frozen_class *c = kiln_map_find_ptr(&m->classes, old);
  if (c) return c;
  c = KILN_NEW(m->f->arena, frozen_class);
  c->old = old;
  c->needed = KILN_NEW_ARRAY(m->f->arena, bool, old->cls->attribute_count + 1);
  kiln_map_set_ptr(&m->classes, old, c);
  return c;
}

static void gather_classes(maker *m) {
  for (int i = 0; i < m->f->objects.count; i++) {
    const kiln__frozen_object *o = m->f->objects.data[i];
    frozen_class *c = class_entry(m, o->object->type);
    c->whole |= o->whole;
    for (int s = 0; s < o->object->count; s++) c->needed[s] |= o->needed[s];
  }
}

/* -- Classes and objects -- */

static kiln_status *make_object(maker *m, kiln_object *old, kiln_object **out_object);

/* The type of a slot that holds `v` in one of the objects. */
static kiln_status *slot_type(maker *m, const kiln_class_attribute *a, kiln_ivalue v,
                              const kiln_type **out_type) {
  *out_type = a->type;
  if (!kiln__is_module(v)) return NULL;
  kiln_object *object = NULL;
  KILN_TRY(make_object(m, v.u.object, &object));
  *out_type = object->type;
  return NULL;
}

static kiln_status *make_class(maker *m, frozen_class *c, const kiln_object *object) {
  kiln_unit *unit = m->f->to;
  const kiln_class_info *old = c->old->cls;
  kiln_class_attribute *attributes =
      KILN_NEW_ARRAY(unit->arena, kiln_class_attribute, old->attribute_count + 1);
  int count = 0;
  for (int i = 0; i < old->attribute_count; i++) {
    if (!c->needed[i]) continue;
    attributes[count] = old->attributes[i];
    KILN_TRY(slot_type(m, &old->attributes[i], object->slots[i], &attributes[count].type));
    count++;
  }
  kiln_class *cls = kiln_unit_add_class(unit, KILN_TYPE_CLASS, old->qualname);
  cls->type->cls->is_module = true;
  kiln_class_set_attributes(cls->type->cls, unit->arena, attributes, count);
  c->made = cls->type;
  return NULL;
}

static kiln_status *fill_object(maker *m, const frozen_class *c, const kiln_object *old,
                                kiln_object *made) {
  int at = 0;
  for (int i = 0; i < c->old->cls->attribute_count; i++) {
    if (!c->needed[i]) continue;
    const kiln_class_attribute *a = &made->type->cls->attributes[at];
    kiln_ivalue v = kiln__frozen_value(m->f, old, i);
    if (kiln__is_module(v)) {
      kiln_object *object = NULL;
      KILN_TRY(make_object(m, v.u.object, &object));
      if (object->type != a->type) {
        return KILN_ERROR(KILN_UNSUPPORTED,
                          "the module cannot be frozen: '" KILN_STR_FMT "' of " KILN_STR_FMT
                          " has modules of different classes",
                          KILN_STR_ARG(a->name), KILN_STR_ARG(c->old->name));
      }
      v = kiln_of_box(object);
    }
    const bool unset = v.tag == KILN_TAG_TENSOR && !v.u.tensor; /* and stays so */
    made->slots[at++] = unset ? v : kiln_ivalue_retain(v);
  }
  return NULL;
}

/* Borrowed: of the unit's list, or the old one. */
static kiln_status *make_object(maker *m, kiln_object *old, kiln_object **out_object) {
  kiln__frozen_object *o = kiln__frozen_object_of(m->f, old);
  frozen_class *c = class_entry(m, old->type);
  if (!o->made && c->whole) o->made = old;
  *out_object = o->made;
  if (o->made) return NULL;
  if (!c->made) KILN_TRY(make_class(m, c, old));
  kiln_unit *unit = m->f->to;
  kiln_object *made = NULL;
  kiln_vec_reserve(unit->arena, &unit->owned, unit->owned.count + 1);
  KILN_TRY(kiln_object_create(m->f->env->mem, c->made, &made));
  unit->owned.data[unit->owned.count++] = kiln_of_box(made);
  o->made = *out_object = made;
  return fill_object(m, c, old, made);
}

/* -- Methods -- */

static kiln_schema *copy_schema(kiln_unit *unit, const kiln_schema *old, const char *qualname,
                                const kiln_type *self) {
  kiln_schema *schema = kiln_arena_copy(unit->arena, old, sizeof *old);
  const size_t size = sizeof *old->args * (size_t)old->arg_count;
  schema->name = kiln_str_from(qualname);
  schema->args = kiln_arena_copy(unit->arena, old->args, size);
  schema->results = kiln_arena_copy(unit->arena, old->results, sizeof *old->results);
  for (int i = 0; i < schema->arg_count; i++) kiln_ivalue_retain(schema->args[i].default_value);
  schema->args[0].type = self;
  return schema;
}

static kiln_status *make_methods(kiln__freezer *f, const kiln_type *self) {
  for (int i = 0; i < f->methods.count; i++) {
    const kiln_function *old = f->methods.data[i];
    kiln_function *made = kiln_unit_add_function(f->to, kiln_str_from(old->qualname), self);
    made->schema = copy_schema(f->to, old->schema, made->qualname, self);
    made->graph = kiln_graph_retain(f->frozen.data[i]);
    made->state = 2;
  }
  return NULL;
}

kiln_status *kiln__freeze_make_module(kiln__freezer *f, kiln_ivalue *out_root) {
  maker m = {.f = f};
  kiln_object *root = NULL;
  m.classes = kiln_map_in(f->arena);
  for (int i = 0; i < f->frozen.count; i++) need_chain(f, f->frozen.data[i]->top);
  gather_classes(&m);
  if (class_entry(&m, f->root.u.object->type)->whole) {
    return KILN_ERROR(KILN_UNSUPPORTED,
                      "the module cannot be frozen: one of its own class is to be preserved");
  }
  KILN_TRY(make_object(&m, f->root.u.object, &root));
  KILN_TRY(make_methods(f, root->type));
  *out_root = kiln_ivalue_retain(kiln_of_box(root));
  return NULL;
}
