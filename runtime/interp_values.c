/* interp_values.c: instructions that construct values and take them apart: lists, tuples, dicts,
 * objects, isinstance. Off the interpreter's hot path. */
#include "runtime/interp_internal.h"

static kiln_status *make_list(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                              const kiln_operand *o) {
  kiln_list *list;
  KILN_TRY(kiln_list_create_in(call->env->mem, &call->cache, f->plan->types[in->x]->elems[0],
                               in->in_count, &list));
  kiln_status *status = NULL;
  for (int i = 0; i < in->in_count && !status; i++) {
    status = kiln_list_push(list, kiln_ivalue_retain(*kiln__frame_read(f, o[i])));
  }
  kiln__frame_release_moved(call, f, o, in->in_count);
  if (status) {
    kiln_ivalue_release(kiln_of_box(list));
    return status;
  }
  kiln__frame_write(call, f, o[in->in_count], kiln_of_box(list));
  return NULL;
}

static kiln_status *make_tuple(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                               const kiln_operand *o) {
  kiln_tuple *tuple;
  KILN_TRY(kiln_tuple_create_in(call->env->mem, &call->cache, f->plan->types[in->x], in->in_count,
                                &tuple));
  /* What is read without MOVE comes first: an operand may stand twice. */
  for (int i = 0; i < in->in_count; i++) {
    if (!(o[i] & KILN_OPERAND_MOVE)) tuple->items[i] = kiln__frame_take(f, o[i]);
  }
  for (int i = 0; i < in->in_count; i++) {
    if (o[i] & KILN_OPERAND_MOVE) tuple->items[i] = kiln__frame_take(f, o[i]);
  }
  kiln__frame_write(call, f, o[in->in_count], kiln_of_box(tuple));
  return NULL;
}

static kiln_status *make_dict(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                              const kiln_operand *o) {
  const kiln_type *type = f->plan->types[in->x];
  kiln_dict *dict;
  KILN_TRY(kiln_dict_create(call->env->mem, type->elems[0], type->elems[1], &dict));
  for (int i = 0; i < in->in_count; i += 2) {
    kiln_ivalue key = kiln_ivalue_retain(*kiln__frame_read(f, o[i]));
    kiln_ivalue value = kiln_ivalue_retain(*kiln__frame_read(f, o[i + 1]));
    kiln_status *status = kiln_dict_set(dict, key, value);
    if (status) {
      kiln_ivalue_release(kiln_of_box(dict));
      return status;
    }
  }
  kiln__frame_release_moved(call, f, o, in->in_count);
  kiln__frame_write(call, f, o[in->in_count], kiln_of_box(dict));
  return NULL;
}

/* Writes count items (None where NULL), then releases the container if it was moved in. */
static void unpack(kiln_call *call, kiln_frame *f, const kiln_operand *o, const kiln_ivalue *items,
                   int count) {
  kiln_ivalue container = kiln__frame_take(f, o[0]);
  for (int i = 0; i < count; i++) {
    if ((o[1 + i] & KILN_OPERAND_INDEX) != KILN_OPERAND_NONE) {
      kiln__frame_write(call, f, o[1 + i], items ? kiln_ivalue_retain(items[i]) : kiln_none());
    }
  }
  kiln_ivalue_release_to(&call->cache, container);
}

static kiln_status *unpack_list(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                const kiln_operand *o) {
  const kiln_ivalue *v = kiln__frame_read(f, o[0]);
  KILN_CHECK(v->tag == KILN_TAG_LIST);
  if (v->u.list->count != in->out_count) {
    return KILN_OP_FAIL("Expected %d elements in a list but found %lld", in->out_count,
                        (long long)v->u.list->count);
  }
  unpack(call, f, o, v->u.list->items, in->out_count);
  return NULL;
}

static kiln_status *unpack_tuple(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                 const kiln_operand *o) {
  const kiln_ivalue *v = kiln__frame_read(f, o[0]);
  if (v->tag == KILN_TAG_NONE) { /* not initialised on this way: nobody looks at the elements */
    unpack(call, f, o, NULL, in->out_count);
    return NULL;
  }
  KILN_CHECK(v->tag == KILN_TAG_TUPLE && v->u.tuple->count == in->out_count);
  unpack(call, f, o, v->u.tuple->items, in->out_count);
  return NULL;
}

static kiln_status *index_tuple(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                const kiln_operand *o) {
  const kiln_ivalue *v = kiln__frame_read(f, o[0]);
  KILN_CHECK(v->tag == KILN_TAG_TUPLE && in->x < (uint64_t)v->u.tuple->count);
  unpack(call, f, o, v->u.tuple->items + in->x, 1);
  return NULL;
}

static kiln_status *item_of_tuple(kiln_call *call, kiln_frame *f, const kiln_operand *o) {
  const kiln_ivalue *v = kiln__frame_read(f, o[0]);
  int64_t i = kiln__frame_read(f, o[1])->u.i;
  KILN_CHECK(v->tag == KILN_TAG_TUPLE);
  if (i < 0) i += v->u.tuple->count;
  if (i < 0 || i >= v->u.tuple->count) {
    return KILN_ERROR(KILN_OP_ERROR, "Tuple list index out of range");
  }
  kiln_ivalue item = kiln_ivalue_retain(v->u.tuple->items[i]);
  kiln__frame_release_moved(call, f, o, 2);
  kiln__frame_write(call, f, o[2], item);
  return NULL;
}

static kiln_status *slice_tuple(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                const kiln_operand *o) {
  const kiln_ivalue *v = kiln__frame_read(f, o[0]);
  const kiln_type *type = f->plan->types[in->x];
  KILN_CHECK(v->tag == KILN_TAG_TUPLE && in->flags + type->elem_count <= v->u.tuple->count);
  kiln_tuple *tuple;
  KILN_TRY(kiln_tuple_create_in(call->env->mem, &call->cache, type, type->elem_count, &tuple));
  for (int i = 0; i < type->elem_count; i++) {
    tuple->items[i] = kiln_ivalue_retain(v->u.tuple->items[in->flags + i]);
  }
  kiln__frame_release_moved(call, f, o, 1);
  kiln__frame_write(call, f, o[1], kiln_of_box(tuple));
  return NULL;
}

/* -- Objects -- */

static kiln_status *make_object(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                const kiln_operand *o) {
  kiln_object *object;
  KILN_TRY(kiln_object_create(call->env->mem, f->plan->types[in->x], &object));
  kiln__frame_write(call, f, o[0], kiln_of_box(object));
  return NULL;
}

static kiln_status *find_attr(const kiln_frame *f, const kiln_instr *in, const kiln_operand *o,
                              const kiln_ivalue **out_slot) {
  const kiln_ivalue *v = kiln__frame_read(f, o[0]);
  KILN_CHECK(v->tag == KILN_TAG_OBJECT && in->x < (uint64_t)v->u.object->count);
  const kiln_ivalue *slot = &v->u.object->slots[in->x];
  if (slot->tag == KILN_TAG_TENSOR && !slot->u.tensor) {
    const kiln_class_info *cls = v->u.object->type->cls;
    kiln_str name =
        cls && in->x < (uint32_t)cls->attribute_count ? cls->attributes[in->x].name : KILN_STR("?");
    return KILN_OP_FAIL("attribute '" KILN_STR_FMT "' is used before it is set",
                        KILN_STR_ARG(name));
  }
  *out_slot = slot;
  return NULL;
}

static kiln_status *get_attr(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                             const kiln_operand *o) {
  const kiln_ivalue *slot;
  KILN_TRY(find_attr(f, in, o, &slot));
  unpack(call, f, o, slot, 1);
  return NULL;
}

static kiln_status *borrow_attr(kiln_frame *f, const kiln_instr *in, const kiln_operand *o) {
  const kiln_ivalue *slot;
  KILN_TRY(find_attr(f, in, o, &slot));
  if (o[1] != KILN_OPERAND_NONE) kiln__value_copy(&f->regs[o[1]], slot);
  return NULL;
}

static kiln_status *set_attr(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                             const kiln_operand *o) {
  kiln_ivalue object = kiln__frame_take(f, o[0]);
  kiln_ivalue value = kiln__frame_take(f, o[1]);
  if (object.tag != KILN_TAG_OBJECT || in->x >= (uint64_t)object.u.object->count) {
    kiln_ivalue_release(object);
    kiln_ivalue_release(value);
    return KILN_ERROR(KILN_INTERNAL, "SET_ATTR without an object");
  }
  kiln_ivalue *slot = &object.u.object->slots[in->x];
  kiln_ivalue old = *slot;
  const kiln_class_info *cls = object.u.object->type->cls;
  kiln_status *status = kiln_cycle_note(
      call->env->mem, &call->roots, &object.u.object->box,
      cls && in->x < (uint32_t)cls->attribute_count ? cls->attributes[in->x].type : NULL, value);
  if (status) {
    kiln_ivalue_release(object);
    kiln_ivalue_release(value);
    return status;
  }
  *slot = value;
  kiln_ivalue_release_to(&call->cache, old);
  kiln_ivalue_release_to(&call->cache, object);
  return NULL;
}

static void is_instance(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                        const kiln_operand *o) {
  kiln_ivalue v = *kiln__frame_read(f, o[0]);
  kiln_type_span list = f->plan->type_lists[in->x];
  bool matches = false;
  for (int i = 0; i < list.count && !matches; i++) matches = kiln_ivalue_matches(v, list.types[i]);
  kiln__frame_release_moved(call, f, o, 1);
  kiln__frame_write(call, f, o[1], kiln_bool(matches));
}

/* -- Checks -- */

static kiln_status *tell_wrong_value(kiln_mem *mem, kiln_ivalue value, const kiln_type *type) {
  kiln_arena *arena = kiln_arena_scoped(mem);
  kiln_text have, want;
  have = kiln_text_in(arena);
  want = kiln_text_in(arena);
  kiln_ivalue_type_name(&have, value);
  kiln_type_print_annotation(&want, type);
  if (value.tag == KILN_TAG_NONE) {
    return KILN_OP_FAIL("None, or a value that was never set, is used as %s", want.data);
  }
  return KILN_OP_FAIL("a value of type %s is used as %s", have.data, want.data);
}
static kiln_status *wrong_value(kiln_mem *mem, kiln_ivalue value, const kiln_type *type) {
  KILN_PROTECT(tell_wrong_value(mem, value, type));
}

static kiln_status *check_type(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                               const kiln_operand *o) {
  const kiln_ivalue value = *kiln__frame_read(f, o[0]);
  const kiln_type *type = f->plan->types[in->x];
  return kiln_ivalue_matches(value, type) ? NULL : wrong_value(call->env->mem, value, type);
}

/* -- Exceptions -- */

static kiln_status *raise(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                          const kiln_operand *o) {
  (void)call;
  const kiln_ivalue *message = kiln__frame_read(f, o[0]);
  kiln_str text =
      message->tag == KILN_TAG_STRING ? kiln_string_view(message->u.string) : KILN_STR("");
  kiln_status *status = KILN_ERROR(KILN_RAISED, KILN_STR_FMT, KILN_STR_ARG(text));
  if (in->in_count == 2 && kiln__frame_read(f, o[1])->tag == KILN_TAG_STRING) {
    return kiln_status_set_exception(status, kiln__frame_read(f, o[1])->u.string->data);
  }
  return kiln_status_set_exception(status, "torch.jit.Error");
}

kiln_status *kiln__interp_value(kiln_call *call, kiln_frame *f, const kiln_instr *in,
                                const kiln_operand *o) {
  switch ((kiln_instr_op)in->op) {
    case KILN_INSTR_LIST: return make_list(call, f, in, o);
    case KILN_INSTR_TUPLE: return make_tuple(call, f, in, o);
    case KILN_INSTR_DICT: return make_dict(call, f, in, o);
    case KILN_INSTR_LIST_UNPACK: return unpack_list(call, f, in, o);
    case KILN_INSTR_TUPLE_UNPACK: return unpack_tuple(call, f, in, o);
    case KILN_INSTR_TUPLE_INDEX: return index_tuple(call, f, in, o);
    case KILN_INSTR_TUPLE_ITEM: return item_of_tuple(call, f, o);
    case KILN_INSTR_TUPLE_SLICE: return slice_tuple(call, f, in, o);
    case KILN_INSTR_OBJECT: return make_object(call, f, in, o);
    case KILN_INSTR_GET_ATTR: return get_attr(call, f, in, o);
    case KILN_INSTR_BORROW_ATTR: return borrow_attr(f, in, o);
    case KILN_INSTR_SET_ATTR: return set_attr(call, f, in, o);
    case KILN_INSTR_ISINSTANCE: is_instance(call, f, in, o); return NULL;
    case KILN_INSTR_RAISE: return raise(call, f, in, o);
    case KILN_INSTR_CHECK: return check_type(call, f, in, o);
    default: return KILN_ERROR(KILN_INTERNAL, "unknown instruction %d", in->op);
  }
}
