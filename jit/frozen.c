/* frozen.c: attributes as constants, and the check that they still are what they were.
 *
 * The check is two flat lists: the objects on the way to the attributes, each a slot of one that
 * stands before it, and the slots that hold the flags. Classes are compared too, so that the slots
 * mean what they meant. */
#include "jit/frozen.h"

enum { MAX_OBJECTS = 2048 };

typedef struct frozen_object {
  int parent, slot; /* of the first object, the caller's self: -1 */
  const kiln_type *type;
} frozen_object;

typedef struct frozen_flag {
  int object, slot;
  kiln_ivalue value; /* a number, a bool or None; of a string and a tensor that it is one */
  kiln_str text;     /* of a string: what it says */
} frozen_flag;

struct kiln_frozen {
  int object_count, flag_count;
  frozen_object *objects;
  frozen_flag *flags;
};

typedef struct freezer {
  kiln_graph *graph;
  kiln_arena *arena, *scratch;
  kiln_ivalue self;
  kiln_map known;      /* value -> index of the object + 1 */
  kiln_map by_slot;    /* parent and slot -> index + 1 */
  kiln_map flags_seen; /* object and slot -> anything */
  kiln_map written;    /* names of attributes that are set */
  bool opaque;         /* something is called that cannot be looked into */
  KILN_VEC(frozen_object) objects;
  KILN_VEC(const kiln_object *) now;
  KILN_VEC(frozen_flag) flags;
  KILN_VEC(kiln_node *) reads; /* with the value of each in `values` */
  KILN_VEC(kiln_ivalue) values;
  kiln_frozen *result;
} freezer;

/* -- What is read -- */

static bool is_harmless(const kiln_type *type) {
  switch (type->kind) {
    case KILN_TYPE_TENSOR:
    case KILN_TYPE_INT:
    case KILN_TYPE_FLOAT:
    case KILN_TYPE_BOOL:
    case KILN_TYPE_NUMBER:
    case KILN_TYPE_STR:
    case KILN_TYPE_NONE: return true;
    case KILN_TYPE_LIST:
    case KILN_TYPE_OPTIONAL: return is_harmless(type->elems[0]);
    default: return false;
  }
}

/* Only through an argument could an unknown operator come at an attribute. */
static bool takes_object(const kiln_node *n) {
  for (int i = 0; i < n->input_count; i++) {
    if (!is_harmless(kiln_node_input(n, i)->type)) return true;
  }
  return false;
}

static void find_writes(freezer *f, const kiln_block *block) {
  for (const kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_SetAttr)) {
      kiln_map_set(&f->written, kiln_node_str(n, "name"), f);
    }
    f->opaque |= (!n->op && takes_object(n)) || kiln_node_is(n, KILN_OP_prim_CallFunction) ||
                 kiln_node_is(n, KILN_OP_prim_CallMethod) || kiln_node_is(n, KILN_OP_prim_Enter) ||
                 kiln_node_is(n, KILN_OP_prim_Exit) || kiln_node_is(n, KILN_OP_prim_fork) ||
                 kiln_node_is(n, KILN_OP_wait);
    for (int b = 0; b < n->block_count; b++) find_writes(f, n->blocks[b]);
  }
}

static uint64_t slot_key(int object, int slot) { return (uint64_t)object << 32 | (uint32_t)slot; }

/* A tensor where there might be none. */
static bool is_there(const kiln_class_attribute *a, kiln_ivalue v) {
  return v.tag == KILN_TAG_TENSOR && a->type->kind == KILN_TYPE_OPTIONAL;
}

/* Whether the model compares it: p < 0. Others may be a host's to turn from call to call, and
 * kernels take them as they come. */
static bool decides(const kiln_ir_value *number) {
  for (const kiln_use *use = number->uses; use; use = use->next) {
    switch (use->user->op ? (kiln_op_id)use->user->op->id : KILN_OP_prim_Constant) {
      case KILN_OP_eq_float:
      case KILN_OP_ne_float:
      case KILN_OP_lt_float:
      case KILN_OP_le_float:
      case KILN_OP_gt_float:
      case KILN_OP_ge_float: return true;
      default: break;
    }
  }
  return false;
}
/* What code sets differs from call to call. */
static bool is_flag(const kiln_node *read, const kiln_class_attribute *a, kiln_ivalue v) {
  if (v.tag == KILN_TAG_BOOL) return true;
  const bool fits = (v.tag == KILN_TAG_INT && a->type->kind == KILN_TYPE_INT) ||
                    (v.tag == KILN_TAG_FLOAT && a->type->kind == KILN_TYPE_FLOAT &&
                     decides(kiln_node_output(read, 0))) ||
                    (v.tag == KILN_TAG_STRING && a->type->kind == KILN_TYPE_STR) ||
                    (v.tag == KILN_TAG_NONE && a->type->kind == KILN_TYPE_OPTIONAL) ||
                    is_there(a, v);
  return fits && !a->is_set;
}

static void read_attribute(freezer *f, kiln_node *n) {
  int parent = (int)(intptr_t)kiln_map_find_ptr(&f->known, kiln_node_input(n, 0)) - 1;
  if (parent < 0) return;
  kiln_str name = kiln_node_str(n, "name");
  const kiln_object *object = f->now.data[parent];
  int slot = kiln_type_find_attribute(object->type, name);
  if (slot < 0 || slot >= object->count || kiln_map_find(&f->written, name)) return;
  uint64_t key = slot_key(parent, slot);
  kiln_ivalue v = object->slots[slot];
  if (v.tag == KILN_TAG_TENSOR) v.u.i = 0; /* whichever it is */
  if (is_flag(n, &object->type->cls->attributes[slot], v)) {
    kiln_vec_push(f->scratch, &f->reads, n);
    kiln_vec_push(f->scratch, &f->values, v);
    if (kiln_map_find_id(&f->flags_seen, key)) return;
    kiln_map_set_id(&f->flags_seen, key, f);
    const bool is_text = v.tag == KILN_TAG_STRING;
    const kiln_str text =
        is_text ? kiln_arena_str(f->arena, kiln_string_view(v.u.string)) : (kiln_str){0};
    kiln_vec_push(f->scratch, &f->flags, ((frozen_flag){parent, slot, v, text}));
  } else if (v.tag == KILN_TAG_OBJECT && v.u.object) {
    intptr_t index = (intptr_t)kiln_map_find_id(&f->by_slot, key);
    if (!index) {
      if (f->objects.count == MAX_OBJECTS) return;
      kiln_vec_push(f->scratch, &f->objects, ((frozen_object){parent, slot, v.u.object->type}));
      kiln_vec_push(f->scratch, &f->now, v.u.object);
      index = f->objects.count;
      kiln_map_set_id(&f->by_slot, key, (void *)index);
    }
    kiln_map_set_ptr(&f->known, kiln_node_output(n, 0), (void *)index);
  }
}

static void find_reads(freezer *f, const kiln_block *block) {
  for (kiln_node *n = block->first; n; n = n->next) {
    if (kiln_node_is(n, KILN_OP_prim_GetAttr)) read_attribute(f, n);
    for (int b = 0; b < n->block_count; b++) find_reads(f, n->blocks[b]);
  }
}

/* -- Replacing -- */

static void replace(freezer *f) {
  for (int i = 0; i < f->reads.count; i++) {
    kiln_node *n = f->reads.data[i];
    const kiln_ivalue v = f->values.data[i];
    if (v.tag == KILN_TAG_TENSOR) {
      kiln_ir_value *read = kiln_node_output(n, 0);
      read->type = read->type->elems[0];
      continue;
    }
    const kiln_type *type = kiln_ivalue_type(f->graph->types, v);
    kiln_ir_value *flag = kiln_insert_constant_before(n, kiln_ivalue_retain(v), type);
    kiln_ir_value_replace_uses(kiln_node_output(n, 0), flag);
    kiln_node_destroy(n);
  }
}

static void look(freezer *f) {
  f->known = kiln_map_in(f->scratch);
  f->by_slot = kiln_map_in(f->scratch);
  f->flags_seen = kiln_map_in(f->scratch);
  f->written = kiln_map_in(f->scratch);
  find_writes(f, f->graph->top);
  if (f->opaque) return;
  kiln_vec_push(f->scratch, &f->objects, ((frozen_object){-1, -1, f->self.u.object->type}));
  kiln_vec_push(f->scratch, &f->now, f->self.u.object);
  kiln_map_set_ptr(&f->known, kiln_graph_input(f->graph, 0), (void *)(intptr_t)1);
  find_reads(f, f->graph->top);
  if (f->reads.count == 0) return;
  kiln_frozen *r = KILN_NEW(f->arena, kiln_frozen);
  r->object_count = f->objects.count;
  r->flag_count = f->flags.count;
  r->objects =
      kiln_arena_copy(f->arena, f->objects.data, sizeof *r->objects * (size_t)r->object_count);
  r->flags = kiln_arena_copy(f->arena, f->flags.data, sizeof *r->flags * (size_t)r->flag_count);
  replace(f);
  f->result = r;
}

kiln_frozen *kiln__freeze_flags(kiln_graph *graph, kiln_ivalue self, kiln_arena *arena,
                                kiln_arena *scratch) {
  freezer f = {.graph = graph, .arena = arena, .scratch = scratch, .self = self};
  if (self.tag != KILN_TAG_OBJECT || kiln_graph_input_count(graph) == 0) return NULL;
  look(&f);
  kiln_arena_reset(scratch);
  return f.result;
}

/* -- The check -- */

bool kiln__frozen_holds(const kiln_frozen *frozen, kiln_ivalue self) {
  const kiln_object *objects[MAX_OBJECTS];
  if (self.tag != KILN_TAG_OBJECT || self.u.object->type != frozen->objects[0].type) return false;
  objects[0] = self.u.object;
  for (int i = 1; i < frozen->object_count; i++) {
    const frozen_object *o = &frozen->objects[i];
    kiln_ivalue v = objects[o->parent]->slots[o->slot];
    if (v.tag != KILN_TAG_OBJECT || !v.u.object || v.u.object->type != o->type) return false;
    objects[i] = v.u.object;
  }
  for (int i = 0; i < frozen->flag_count; i++) {
    const frozen_flag *flag = &frozen->flags[i];
    kiln_ivalue v = objects[flag->object]->slots[flag->slot];
    if (v.tag != flag->value.tag) return false;
    if (v.tag == KILN_TAG_BOOL && v.u.b != flag->value.u.b) return false;
    if ((v.tag == KILN_TAG_INT || v.tag == KILN_TAG_FLOAT) && v.u.i != flag->value.u.i)
      return false; /* of floats the bits */
    if (v.tag == KILN_TAG_STRING && !kiln_str_equal(kiln_string_view(v.u.string), flag->text))
      return false;
  }
  return true;
}
