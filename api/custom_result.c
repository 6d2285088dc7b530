/* custom_result.c: what a custom kernel left becomes what its schema promised.
 *
 * The passes believe the schema: an unmarked result is new memory, which the model may write. So a
 * tensor or container that somebody else still holds (an argument, the host's own, another result)
 * is copied; a kernel that makes its results by kiln_op_result_tensor never pays. */
#include "api/custom.h"

enum { MAX_DEPTH = 100 };

typedef struct owner {
  const kiln_op_call *call;
  uint32_t sets; /* alias sets of the result's marks */
  int depth;
} owner;

static kiln_mem *mem_of(const owner *o) { return o->call->call->env->mem; }

/* -- Who else holds it -- */

static bool holds(kiln_ivalue v, const kiln_storage *storage) {
  return v.tag == KILN_TAG_TENSOR && v.u.tensor->storage == storage;
}

/* The marks say that the result may share this memory with an argument. */
static bool may_share(const owner *o, const kiln_storage *storage) {
  const kiln_schema *s = o->call->schema;
  for (int i = 0; o->sets && i < s->arg_count; i++) {
    const kiln_schema_arg *a = &s->args[i];
    uint32_t sets = a->alias.sets | a->alias.after | a->elem_alias.sets | a->elem_alias.after;
    kiln_ivalue v = o->call->args[i];
    if (!(sets & o->sets)) continue;
    if (holds(v, storage)) return true;
    for (int64_t k = 0; v.tag == KILN_TAG_LIST && k < v.u.list->count; k++) {
      if (holds(v.u.list->items[k], storage)) return true;
    }
  }
  return false;
}

/* The marks say that the result may be this argument, a container. */
static bool may_be(const owner *o, const kiln_box *box) {
  const kiln_schema *s = o->call->schema;
  for (int i = 0; o->sets && i < s->arg_count; i++) {
    const kiln_alias_info *mark = &s->args[i].alias;
    kiln_ivalue v = o->call->args[i];
    if (((mark->sets | mark->after) & o->sets) && v.tag > KILN_TAG_TENSOR && v.u.box == box) {
      return true;
    }
  }
  return false;
}

static bool is_shared(int *refs) { return __atomic_load_n(refs, __ATOMIC_ACQUIRE) > 1; }

/* -- Copies -- */

static kiln_status *copy_tensor(const owner *o, kiln_tensor *t, kiln_ivalue *slot) {
  kiln_tensor *copy = NULL;
  KILN_TRY(kiln_call_tensor(o->call->call, kiln_tensor_dtype(t), kiln_tensor_rank(t),
                            kiln_tensor_sizes(t), &copy));
  kiln_status *status = kiln_tensor_copy(copy, t);
  if (status) {
    kiln_tensor_release(copy);
    return status;
  }
  kiln_tensor_release(t);
  *slot = kiln_of_tensor(copy);
  return NULL;
}

static kiln_status *fill_list(kiln_list *to, const kiln_list *from) {
  for (int64_t i = 0; i < from->count; i++) {
    KILN_TRY(kiln_list_push(to, kiln_ivalue_retain(from->items[i])));
  }
  return NULL;
}

static kiln_status *fill_dict(kiln_dict *to, const kiln_dict *from) {
  kiln_ivalue *key, *value;
  for (int64_t at = 0; kiln_dict_next(from, &at, &key, &value);) {
    KILN_TRY(kiln_dict_set(to, kiln_ivalue_retain(*key), kiln_ivalue_retain(*value)));
  }
  return NULL;
}

/* A new container with the same items. */
static kiln_status *copy_container(kiln_mem *mem, kiln_ivalue *slot) {
  kiln_ivalue from = *slot;
  void *to = NULL;
  kiln_status *status = NULL;
  if (from.tag == KILN_TAG_LIST) {
    const kiln_list *list = from.u.list;
    KILN_TRY(kiln_list_create(mem, list->elem_type, list->count, (kiln_list **)&to));
    status = fill_list(to, list);
  } else if (from.tag == KILN_TAG_TUPLE) {
    const kiln_tuple *tuple = from.u.tuple;
    KILN_TRY(kiln_tuple_create(mem, tuple->type, tuple->count, (kiln_tuple **)&to));
    for (int64_t i = 0; i < tuple->count; i++) {
      ((kiln_tuple *)to)->items[i] = kiln_ivalue_retain(tuple->items[i]);
    }
  } else {
    const kiln_dict *dict = from.u.dict;
    KILN_TRY(kiln_dict_create(mem, dict->key_type, dict->value_type, (kiln_dict **)&to));
    status = fill_dict(to, dict);
  }
  if (status) {
    kiln_ivalue_release(kiln_of_box(to));
    return status;
  }
  kiln_ivalue_release(from);
  *slot = kiln_of_box(to);
  return NULL;
}

/* -- Ownership -- */

static kiln_status *own(owner *o, kiln_ivalue *slot);

static kiln_status *own_tensor(const owner *o, kiln_ivalue *slot) {
  kiln_tensor *t = slot->u.tensor;
  if (kiln_tensor_is_undefined(t)) return NULL;
  if (!is_shared(&t->refs) && !is_shared(&t->storage->refs)) return NULL;
  return may_share(o, t->storage) ? NULL : copy_tensor(o, t, slot);
}

static kiln_status *own_items(owner *o, kiln_ivalue *items, int64_t count) {
  for (int64_t i = 0; i < count; i++) KILN_TRY(own(o, &items[i]));
  return NULL;
}

static kiln_status *own_container(owner *o, kiln_ivalue *slot) {
  if (may_be(o, slot->u.box)) return NULL;
  if (is_shared(&slot->u.box->refs)) KILN_TRY(copy_container(mem_of(o), slot));
  if (slot->tag == KILN_TAG_LIST) {
    return own_items(o, slot->u.list->items, slot->u.list->count);
  }
  if (slot->tag == KILN_TAG_TUPLE) {
    return own_items(o, slot->u.tuple->items, slot->u.tuple->count);
  }
  kiln_ivalue *key, *value;
  for (int64_t at = 0; kiln_dict_next(slot->u.dict, &at, &key, &value);) KILN_TRY(own(o, value));
  return NULL;
}

/* Gives the value in the slot memory of its own, where marks do not say otherwise. */
static kiln_status *own(owner *o, kiln_ivalue *slot) {
  if (o->depth > MAX_DEPTH) return KILN_OP_FAIL("a result is nested too deeply");
  o->depth++;
  kiln_status *status = NULL;
  switch ((kiln_tag)slot->tag) {
    case KILN_TAG_TENSOR: status = own_tensor(o, slot); break;
    case KILN_TAG_LIST:
    case KILN_TAG_TUPLE:
    case KILN_TAG_DICT: status = own_container(o, slot); break;
    default: break;
  }
  o->depth--;
  return status;
}

/* -- Types and shapes -- */

typedef struct wrong {
  const kiln_op_call *call;
  int index;
} wrong;

static kiln_status *say_wrong_type(kiln_call *call, kiln_text *text, void *arg) {
  const wrong *w = arg;
  bool was_set = w->call->outs_set & 1u << w->index;
  kiln_type_print_annotation(text, w->call->schema->results[w->index].type);
  kiln_text_puts(text, ", not ");
  kiln_ivalue_type_name(text, w->call->outs[w->index]);
  if (!was_set) kiln_text_puts(text, " (the kernel did not set it)");
  return KILN_OP_FAIL("%s: result %d must be %s", call->kernel->name, w->index, text->data);
}

static kiln_status *fit_type(kiln_op_call *call, int index) {
  kiln_ivalue v = call->outs[index];
  bool fits = true;
  call->outs[index] = kiln_none();
  KILN_TRY(kiln__convert(call->custom->context, v, call->schema->results[index].type, &fits,
                         &call->outs[index]));
  wrong w = {call, index};
  return fits ? NULL : kiln_call_text(call->call, say_wrong_type, &w);
}

static bool agrees(const kiln_tensor *t, const kiln_op_tensor_info *told) {
  if (kiln_tensor_is_undefined(t)) return false;
  if (told->dtype != KILN_DTYPE_NONE && told->dtype != kiln_tensor_dtype(t)) return false;
  if (told->rank < 0) return true;
  if (told->rank != kiln_tensor_rank(t)) return false;
  for (int i = 0; i < told->rank; i++) {
    if (told->sizes[i] >= 0 && told->sizes[i] != kiln_tensor_sizes(t)[i]) return false;
  }
  return true;
}

static kiln_status *fit_shape(kiln_op_call *call, int index, const kiln_op_tensor_info *told) {
  kiln_ivalue *slot = &call->outs[index];
  if (slot->tag != KILN_TAG_TENSOR) return NULL;
  kiln_tensor *t = slot->u.tensor, *packed = NULL;
  if (!agrees(t, told)) {
    return KILN_OP_FAIL("%s: result %d is not the tensor that the shape function told",
                        call->call->kernel->name, index);
  }
  if (call->schema->results[index].alias.present || kiln_tensor_is_contiguous(t)) return NULL;
  KILN_TRY(kiln_tensor_contiguous(&call->call->cache, t, &packed));
  kiln_tensor_release(t);
  *slot = kiln_of_tensor(packed);
  return NULL;
}

kiln_status *kiln__custom_finish(kiln_op_call *call, int index, const kiln__custom_answer *answer) {
  const kiln_schema_arg *result = &call->schema->results[index];
  KILN_TRY(fit_type(call, index));
  if (answer) KILN_TRY(fit_shape(call, index, &answer->info));
  owner o = {.call = call, .sets = result->alias.sets | result->elem_alias.sets};
  if (o.sets & KILN_ALIAS_WILDCARD) return NULL;
  return own(&o, &call->outs[index]);
}
