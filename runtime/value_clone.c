/* value_clone.c: copies that share no mutable container with their source, and keep its aliasing:
 * what was one list, tensor or storage in the source is one in the copy. */
#include "runtime/block.h"
#include "runtime/value.h"

enum { CLONE_MAX_DEPTH = 2000 };

/* Source to copy, by address; open addressing. */
typedef struct memo_slot {
  const void *from;
  void *to;
} memo_slot;
typedef struct cloner {
  kiln_mem *mem;
  memo_slot *slots;
  size_t count, capacity;
  int depth;
} cloner;

static memo_slot *memo_probe(memo_slot *slots, size_t capacity, const void *from) {
  size_t i = (size_t)kiln_hash_id(0, (uint64_t)(uintptr_t)from) & (capacity - 1);
  while (slots[i].from && slots[i].from != from) i = (i + 1) & (capacity - 1);
  return &slots[i];
}

static void *memo_find(const cloner *c, const void *from) {
  return c->capacity ? memo_probe(c->slots, c->capacity, from)->to : NULL;
}

static kiln_status *memo_set(cloner *c, const void *from, void *to) {
  if (2 * (c->count + 1) > c->capacity) {
    size_t capacity = c->capacity ? 2 * c->capacity : 32;
    memo_slot *slots = kiln_mem_alloc_zero(c->mem, capacity * sizeof *slots);
    if (!slots) return kiln_status_oom();
    for (size_t i = 0; i < c->capacity; i++) {
      if (c->slots[i].from) *memo_probe(slots, capacity, c->slots[i].from) = c->slots[i];
    }
    kiln_mem_free(c->mem, c->slots, c->capacity * sizeof *slots);
    c->slots = slots;
    c->capacity = capacity;
  }
  *memo_probe(c->slots, c->capacity, from) = (memo_slot){from, to};
  c->count++;
  return NULL;
}

static kiln_status *clone_value(cloner *c, kiln_ivalue v, kiln_ivalue *out);

static kiln_status *clone_storage(cloner *c, kiln_storage *from, kiln_storage **out) {
  kiln_storage *known = memo_find(c, from);
  if (known) {
    *out = kiln_storage_retain(known);
    return NULL;
  }
  KILN_TRY(kiln_storage_share(from, out));
  kiln_status *status = memo_set(c, from, *out);
  if (status) kiln_storage_release(*out);
  return status;
}

static kiln_status *clone_tensor(cloner *c, const kiln_tensor *t, kiln_tensor **out) {
  if (kiln_tensor_is_undefined(t)) return kiln_tensor_undefined(c->mem, out);
  kiln_storage *storage;
  KILN_TRY(clone_storage(c, t->storage, &storage));
  kiln_status *status =
      kiln_tensor_create_on(c->mem, NULL, storage, kiln_tensor_dtype(t), kiln_tensor_rank(t),
                            kiln_tensor_sizes(t), kiln_tensor_strides(t), t->offset, out);
  kiln_storage_release(storage);
  if (!status) (*out)->key = t->key;
  if (!status) kiln_tensor_share_sides(*out, t);
  return status;
}

static kiln_status *clone_items(cloner *c, const kiln_ivalue *from, int64_t count,
                                kiln_ivalue *to) {
  for (int64_t i = 0; i < count; i++) KILN_TRY(clone_value(c, from[i], &to[i]));
  return NULL;
}

static kiln_status *fill_list(cloner *c, const kiln_list *from, kiln_list *to) {
  for (int64_t i = 0; i < from->count; i++) {
    kiln_ivalue item;
    KILN_TRY(clone_value(c, from->items[i], &item));
    KILN_TRY(kiln_list_push(to, item));
  }
  return NULL;
}

static kiln_status *fill_dict(cloner *c, const kiln_dict *from, kiln_dict *to) {
  int64_t at = 0;
  kiln_ivalue *key, *value, new_key, new_value;
  while (kiln_dict_next(from, &at, &key, &value)) {
    KILN_TRY(clone_value(c, *key, &new_key));
    kiln_status *status = clone_value(c, *value, &new_value);
    if (status) {
      kiln_ivalue_release(new_key);
      return status;
    }
    KILN_TRY(kiln_dict_set(to, new_key, new_value));
  }
  return NULL;
}

/* An empty copy of a container, and what fills it. It is in the memo before it is filled, so that
 * cycles end. */
static kiln_status *make_empty(cloner *c, kiln_ivalue v, void **out) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_LIST:
      return kiln_list_create(c->mem, v.u.list->elem_type, v.u.list->count, (kiln_list **)out);
    case KILN_TAG_TUPLE:
      return kiln_tuple_create(c->mem, v.u.tuple->type, v.u.tuple->count, (kiln_tuple **)out);
    case KILN_TAG_OBJECT: return kiln_object_create(c->mem, v.u.object->type, (kiln_object **)out);
    default:
      return kiln_dict_create(c->mem, v.u.dict->key_type, v.u.dict->value_type, (kiln_dict **)out);
  }
}

static kiln_status *fill(cloner *c, kiln_ivalue v, void *to) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_LIST: return fill_list(c, v.u.list, (kiln_list *)to);
    case KILN_TAG_TUPLE:
      return clone_items(c, v.u.tuple->items, v.u.tuple->count, ((kiln_tuple *)to)->items);
    case KILN_TAG_OBJECT: {
      kiln_object *object = (kiln_object *)to;
      int64_t count = v.u.object->count < object->count ? v.u.object->count : object->count;
      return clone_items(c, v.u.object->slots, count, object->slots);
    }
    default: return fill_dict(c, v.u.dict, (kiln_dict *)to);
  }
}

static kiln_status *clone_container(cloner *c, kiln_ivalue v, kiln_ivalue *out) {
  if (c->depth >= CLONE_MAX_DEPTH) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a value is nested more than %d levels deep",
                      (int)CLONE_MAX_DEPTH);
  }
  void *to;
  KILN_TRY(make_empty(c, v, &to));
  c->depth++;
  kiln_status *status = memo_set(c, v.u.box, to);
  if (!status) status = fill(c, v, to);
  c->depth--;
  if (status) {
    kiln_ivalue_release(kiln_of_box(to));
    return status;
  }
  *out = kiln_of_box(to);
  return NULL;
}

static kiln_status *clone_value(cloner *c, kiln_ivalue v, kiln_ivalue *out) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_TENSOR:
    case KILN_TAG_LIST:
    case KILN_TAG_TUPLE:
    case KILN_TAG_DICT:
    case KILN_TAG_OBJECT: break;
    default: *out = kiln_ivalue_retain(v); return NULL; /* immutable, or not ours to copy */
  }
  if (!v.u.box) {
    *out = v; /* an attribute that is not set yet */
    return NULL;
  }
  void *known = memo_find(c, v.u.box);
  if (known) {
    *out = kiln_ivalue_retain((kiln_ivalue){.tag = v.tag, .u.box = (kiln_box *)known});
    return NULL;
  }
  if (v.tag != KILN_TAG_TENSOR) return clone_container(c, v, out);
  kiln_tensor *t;
  KILN_TRY(clone_tensor(c, v.u.tensor, &t));
  kiln_status *status = memo_set(c, v.u.tensor, t);
  if (status) {
    kiln_tensor_release(t);
    return status;
  }
  *out = kiln_of_tensor(t);
  return NULL;
}

kiln_status *kiln_ivalue_clone(kiln_mem *mem, kiln_ivalue v, kiln_ivalue *out) {
  cloner c = {.mem = mem};
  kiln_status *status = clone_value(&c, v, out);
  kiln_mem_free(mem, c.slots, c.capacity * sizeof *c.slots);
  return status;
}
