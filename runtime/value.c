/* value.c: the counted objects behind ivalues: making, releasing, cloning.
 *
 * Lists and tuples come from the cache of the call that makes them, and go back to that of the one
 * that drops them. Other objects come from the mem and go back to it: a cache that took what it
 * does not give would only grow. The last release of a structure walks it with a list through the
 * dead boxes, not by recursion: nesting depth is the input's choice. */
#include "runtime/value.h"

#include "runtime/block.h"

enum {
  ITEMS_PER_CHECK = 1023, /* of lists: a mask */
  LARGE = 4096            /* bytes for which the budget is asked */
};

static void init_box(kiln_box *box, kiln_mem *mem, kiln_tag tag) {
  *box = (kiln_box){.refs = 1, .tag = tag, .mem = mem};
}

/* The thread's budget has room for `bytes` more; small pieces are not worth the question. */
static inline kiln_status *find_room(const kiln_mem *mem, size_t bytes) {
  if (__builtin_expect(bytes < LARGE, 1)) return NULL;
  const kiln_budget *budget = kiln_budget_current();
  return budget && budget->mem == mem ? kiln_budget_check(budget, bytes) : NULL;
}

/* -- Makers -- */

kiln_status *kiln_string_create(kiln_mem *mem, kiln_str text, kiln_string **out) {
  size_t size;
  if (!kiln_checked_add_size(sizeof(kiln_string) + 1, text.len, &size)) return kiln_status_oom();
  KILN_TRY(find_room(mem, size));
  kiln_string *s = kiln_cache_alloc_mem(mem, size);
  if (!s) return kiln_status_oom();
  init_box(&s->box, mem, KILN_TAG_STRING);
  s->len = text.len;
  if (text.len > 0) memcpy(s->data, text.data, text.len);
  s->data[text.len] = 0;
  *out = s;
  return NULL;
}

kiln_status *kiln_complex_create(kiln_mem *mem, double re, double im, kiln_complex **out) {
  kiln_complex *c = kiln_cache_alloc_mem(mem, sizeof *c);
  if (!c) return kiln_status_oom();
  init_box(&c->box, mem, KILN_TAG_COMPLEX);
  c->re = re, c->im = im;
  *out = c;
  return NULL;
}

static bool items_bytes(int64_t count, size_t item, size_t head, size_t *out_bytes) {
  return count >= 0 && kiln_checked_mul_size((size_t)count, item, out_bytes) &&
         kiln_checked_add_size(*out_bytes, head, out_bytes);
}

/* Moves the items to a block for `capacity` of them. */
static kiln_status *list_reserve(kiln_list *list, kiln_cache *cache, int64_t capacity) {
  size_t bytes;
  if (!items_bytes(capacity, sizeof(kiln_ivalue), 0, &bytes)) return kiln_status_oom();
  KILN_TRY(find_room(list->box.mem, bytes));
  kiln_ivalue *items = kiln__block_alloc(list->box.mem, cache, bytes);
  if (!items) return kiln_status_oom();
  if (list->items) {
    memcpy(items, list->items, (size_t)list->count * sizeof *items);
    kiln__block_free(list->box.mem, cache, list->items, (size_t)list->capacity * sizeof *items);
  }
  list->items = items;
  list->capacity = capacity;
  return NULL;
}

kiln_status *kiln_list_create_in(kiln_mem *mem, kiln_cache *cache, const kiln_type *elem_type,
                                 int64_t reserve, kiln_list **out) {
  kiln_list *list = kiln__block_alloc(mem, cache, sizeof *list);
  if (!list) return kiln_status_oom();
  *list = (kiln_list){.elem_type = elem_type};
  init_box(&list->box, mem, KILN_TAG_LIST);
  if (reserve > 0) {
    kiln_status *status = list_reserve(list, cache, reserve);
    if (status) {
      kiln_ivalue_release(kiln_of_box(list));
      return status;
    }
  }
  *out = list;
  return NULL;
}

/* Now and then, and where there is no room: all makers of lists come by here. */
static kiln_status *go_on(kiln_list *list, kiln_cache *cache) {
  KILN_TRY(kiln_budget_check(kiln_budget_current(), 0));
  if (list->count < list->capacity) return NULL;
  return list_reserve(list, cache, list->capacity < 4 ? 4 : 2 * list->capacity);
}

kiln_status *kiln_list_push_in(kiln_list *list, kiln_cache *cache, kiln_ivalue item) {
  if (list->count == list->capacity || (list->count & ITEMS_PER_CHECK) == ITEMS_PER_CHECK) {
    kiln_status *status = go_on(list, cache);
    if (status) {
      kiln_ivalue_release(item);
      return status;
    }
  }
  list->items[list->count++] = item;
  return NULL;
}

kiln_status *kiln_tuple_create_in(kiln_mem *mem, kiln_cache *cache, const kiln_type *type,
                                  int64_t count, kiln_tuple **out) {
  size_t bytes;
  if (!items_bytes(count, sizeof(kiln_ivalue), sizeof(kiln_tuple), &bytes)) {
    return kiln_status_oom();
  }
  KILN_TRY(find_room(mem, bytes));
  kiln_tuple *tuple = kiln__block_alloc(mem, cache, bytes);
  if (!tuple) return kiln_status_oom();
  init_box(&tuple->box, mem, KILN_TAG_TUPLE);
  tuple->type = type;
  tuple->count = count;
  memset(tuple->items, 0, (size_t)count * sizeof(kiln_ivalue));
  *out = tuple;
  return NULL;
}

kiln_status *kiln_object_create(kiln_mem *mem, const kiln_type *type, kiln_object **out) {
  int64_t count = type->cls ? type->cls->attribute_count : 0;
  size_t bytes;
  if (!items_bytes(count, sizeof(kiln_ivalue), sizeof(kiln_object), &bytes)) {
    return kiln_status_oom();
  }
  kiln_object *object = kiln_cache_alloc_mem(mem, bytes);
  if (!object) return kiln_status_oom();
  init_box(&object->box, mem, KILN_TAG_OBJECT);
  object->type = type;
  object->count = count;
  for (int64_t i = 0; i < count; i++) object->slots[i] = kiln_of_tensor(NULL);
  *out = object;
  return NULL;
}

kiln_status *kiln_enum_create(kiln_mem *mem, const kiln_type *type, int member, kiln_enum **out) {
  kiln_enum *e = kiln_cache_alloc_mem(mem, sizeof *e);
  if (!e) return kiln_status_oom();
  init_box(&e->box, mem, KILN_TAG_ENUM);
  e->type = type;
  e->member = member;
  *out = e;
  return NULL;
}

kiln_status *kiln_future_create(kiln_mem *mem, const kiln_type *elem_type, kiln_ivalue value,
                                kiln_status *error, kiln_future **out) {
  kiln_future *f = kiln_cache_alloc_mem(mem, sizeof *f);
  if (!f) {
    kiln_ivalue_release(value);
    kiln_status_destroy(error);
    return kiln_status_oom();
  }
  init_box(&f->box, mem, KILN_TAG_FUTURE);
  f->elem_type = elem_type;
  f->value = value;
  f->error = error;
  f->fork = NULL;
  *out = f;
  return NULL;
}

/* -- Releasing -- */

/* Drops one handle; a tensor goes at once, a box whose last handle it was joins the dead. */
static kiln_box *drop(kiln_cache *cache, kiln_ivalue v, kiln_box *dead) {
  if (v.tag < KILN_TAG__COUNTED) return dead;
  if (v.tag == KILN_TAG_TENSOR) {
    kiln_tensor_release_to(cache, v.u.tensor);
    return dead;
  }
  if (!v.u.box || !kiln__refs_drop(&v.u.box->refs)) return dead;
  if (v.tag == KILN_TAG_OTHER) {
    v.u.box->destroy(v.u.box);
    return dead;
  }
  v.u.box->next_dead = dead;
  return v.u.box;
}

static kiln_box *drop_all(kiln_cache *cache, const kiln_ivalue *items, int64_t count,
                          kiln_box *dead) {
  for (int64_t i = 0; i < count; i++) dead = drop(cache, items[i], dead);
  return dead;
}

static kiln_box *destroy_dict(kiln_cache *cache, kiln_dict *dict, kiln_box *dead) {
  kiln_mem *mem = dict->box.mem;
  for (int64_t i = 0; i < dict->count; i++) {
    if (!dict->entries[i].live) continue;
    dead = drop(cache, dict->entries[i].key, dead);
    dead = drop(cache, dict->entries[i].value, dead);
  }
  if (dict->entries) {
    kiln_cache_free_mem(mem, dict->entries, (size_t)dict->capacity * sizeof *dict->entries);
  }
  if (dict->slots) {
    kiln_cache_free_mem(mem, dict->slots, (size_t)dict->slot_count * sizeof *dict->slots);
  }
  kiln_cache_free_mem(mem, dict, sizeof *dict);
  return dead;
}

void kiln_container_empty(kiln_ivalue v) {
  switch ((kiln_tag)v.tag) {
    case KILN_TAG_LIST:
      while (v.u.list->count > 0) kiln_ivalue_release(v.u.list->items[--v.u.list->count]);
      break;
    case KILN_TAG_TUPLE:
      for (int64_t i = 0; i < v.u.tuple->count; i++) {
        kiln_ivalue item = v.u.tuple->items[i];
        v.u.tuple->items[i] = kiln_none();
        kiln_ivalue_release(item);
      }
      break;
    case KILN_TAG_OBJECT:
      for (int64_t i = 0; i < v.u.object->count; i++) {
        kiln_ivalue slot = v.u.object->slots[i];
        v.u.object->slots[i] = kiln_of_tensor(NULL);
        if (slot.tag != KILN_TAG_TENSOR || slot.u.tensor) kiln_ivalue_release(slot);
      }
      break;
    case KILN_TAG_DICT: kiln_dict_clear(v.u.dict); break;
    case KILN_TAG_FUTURE: {
      kiln_ivalue value = v.u.future->value;
      v.u.future->value = kiln_none();
      kiln_ivalue_release(value);
      break;
    }
    default: break;
  }
}

/* Frees one dead box; what it held may join the dead. */
static kiln_box *destroy_box(kiln_cache *cache, kiln_box *box, kiln_box *dead) {
  kiln_mem *mem = box->mem;
  size_t size = 0;
  switch ((kiln_tag)box->tag) {
    case KILN_TAG_STRING: size = sizeof(kiln_string) + ((kiln_string *)box)->len + 1; break;
    case KILN_TAG_COMPLEX: size = sizeof(kiln_complex); break;
    case KILN_TAG_ENUM: size = sizeof(kiln_enum); break;
    case KILN_TAG_LIST: {
      kiln_list *list = (kiln_list *)box;
      dead = drop_all(cache, list->items, list->count, dead);
      if (list->items) {
        kiln__block_free(mem, cache, list->items, (size_t)list->capacity * sizeof *list->items);
      }
      kiln__block_free(mem, cache, list, sizeof *list);
      return dead;
    }
    case KILN_TAG_TUPLE: {
      kiln_tuple *tuple = (kiln_tuple *)box;
      dead = drop_all(cache, tuple->items, tuple->count, dead);
      size = sizeof *tuple + (size_t)tuple->count * sizeof(kiln_ivalue);
      kiln__block_free(mem, cache, tuple, size);
      return dead;
    }
    case KILN_TAG_OBJECT: {
      kiln_object *object = (kiln_object *)box;
      dead = drop_all(cache, object->slots, object->count, dead);
      size = sizeof *object + (size_t)object->count * sizeof(kiln_ivalue);
      break;
    }
    case KILN_TAG_FUTURE: {
      kiln_future *future = (kiln_future *)box;
      dead = drop(cache, future->value, dead);
      kiln_status_destroy(future->error);
      kiln__fork_destroy(mem, future->fork);
      size = sizeof *future;
      break;
    }
    default: return destroy_dict(cache, (kiln_dict *)box, dead);
  }
  kiln_cache_free_mem(mem, box, size);
  return dead;
}

void kiln__ivalue_release_slow(kiln_cache *cache, kiln_ivalue v) {
  kiln_box *dead = drop(cache, v, NULL);
  while (dead) {
    kiln_box *box = dead;
    dead = destroy_box(cache, box, box->next_dead);
  }
}
