/* binding.c: which block of a call is its result's, and what becomes of guesses. */
#include "runtime/binding.h"

enum { LEAST = 4096, MOST_BLOCKS = 4096, ALIGNMENT = 64 };

/* Lends the memory of a host's tensor to the storage of a block. */
typedef struct lender {
  kiln_owner base;
  kiln_mem *mem;
  kiln_storage *of; /* retained */
} lender;

typedef struct bound {
  kiln_tensor *tensor; /* borrowed; NULL: not bound */
  void *data;
  size_t bytes;
  bool may_take;    /* its memory, for a block */
  int number;       /* of the block that was the result's the last time; -1: none was */
  lender *lender;   /* retained: of a block that was given out, with: */
  kiln_storage *of; /* there as long as the lender has another reference */
} bound;

struct kiln_binding {
  int count;
  int asked;  /* blocks, of this call */
  int copied; /* outputs, of the last one */
  bound outputs[KILN_BINDING_OUTPUTS];
  const void *blocks[MOST_BLOCKS]; /* where they lie */
};

static void destroy_lender(kiln_owner *owner) {
  lender *l = (lender *)owner;
  kiln_storage_release(l->of);
  kiln_mem_free(l->mem, l, sizeof *l);
}

bool kiln_binding_is_alone(const kiln_tensor *t) {
  return __atomic_load_n(&t->refs, __ATOMIC_ACQUIRE) == 1 && t->storage &&
         __atomic_load_n(&t->storage->refs, __ATOMIC_ACQUIRE) == 1;
}

/* -- Before the call -- */

static bool overlaps(const bound *b, kiln_ivalue v) {
  if (v.tag != KILN_TAG_TENSOR || !v.u.tensor || !v.u.tensor->storage) return false;
  const uintptr_t own = (uintptr_t)b->data, other = (uintptr_t)v.u.tensor->storage->data;
  return own < other + v.u.tensor->storage->bytes && other < own + b->bytes;
}

static kiln_status *bind(bound *b, kiln_tensor *t, bool alone, const kiln_ivalue *args, int count) {
  const int number = b->number;
  *b = (bound){.tensor = t, .number = number};
  if (!t) return NULL;
  if (kiln_tensor_is_undefined(t) || !kiln_tensor_is_contiguous(t) || t->sides ||
      t->storage->device != &kiln_device_cpu)
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "an output is no dense, row-major tensor of the CPU");
  KILN_TRY(kiln_tensor_writable_data(t, &b->data));
  b->bytes = (size_t)t->numel * kiln_tensor_item_size(t);
  b->may_take = alone && b->bytes >= LEAST && (uintptr_t)b->data % ALIGNMENT == 0;
  for (int i = 0; b->may_take && i < count; i++) b->may_take = !overlaps(b, args[i]);
  return NULL;
}

kiln_status *kiln_binding_begin(kiln_call *call, kiln_tensor *const *outputs, int count,
                                uint64_t alone, const kiln_ivalue *args, int arg_count) {
  kiln_binding *binding = call->binding;
  if (count > KILN_BINDING_OUTPUTS)
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "%d outputs: a call has at most %d", count,
                      KILN_BINDING_OUTPUTS);
  if (!binding) {
    binding = call->binding = kiln_mem_alloc_zero(call->env->mem, sizeof *binding);
    if (!binding) return kiln_status_oom();
    for (int i = 0; i < KILN_BINDING_OUTPUTS; i++) binding->outputs[i].number = -1;
  }
  binding->count = count;
  binding->asked = binding->copied = 0;
  for (int i = 0; i < count; i++)
    KILN_TRY(bind(&binding->outputs[i], outputs[i], alone >> i & 1, args, arg_count));
  call->cache.binding = binding;
  return NULL;
}

int kiln__binding_copied(const kiln_call *call) { return call->binding->copied; }

void kiln_binding_destroy(kiln_call *call) {
  if (call->binding) kiln_mem_free(call->env->mem, call->binding, sizeof *call->binding);
  call->binding = NULL;
}

/* -- Blocks -- */

static kiln_storage *give_out(kiln_mem *mem, bound *b) {
  lender *l = kiln_mem_alloc(mem, sizeof *l);
  kiln_storage *storage = NULL;
  if (!l) return NULL;
  *l = (lender){.base = {.refs = 1, .destroy = destroy_lender},
                .mem = mem,
                .of = kiln_storage_retain(b->tensor->storage)};
  kiln_status *status =
      kiln_storage_wrap(mem, &l->base, b->data, b->bytes, KILN_STORAGE_BOUND, &storage);
  if (status) {
    kiln_status_destroy(status);
    kiln_owner_release(&l->base);
    return NULL;
  }
  b->lender = l;
  b->of = storage;
  return storage;
}

kiln_storage *kiln__binding_take(kiln_cache *cache, size_t bytes) {
  kiln_binding *binding = cache->binding;
  if (bytes < LEAST || binding->asked == MOST_BLOCKS) return NULL;
  const int number = binding->asked++;
  for (int i = 0; i < binding->count; i++) {
    bound *b = &binding->outputs[i];
    if (b->number != number || b->bytes != bytes || !b->may_take || b->lender) continue;
    binding->blocks[number] = b->data;
    return give_out(cache->mem, b);
  }
  binding->blocks[number] = NULL;
  return NULL;
}

void kiln__binding_note(kiln_cache *cache, const void *data) {
  kiln_binding *binding = cache->binding;
  if (binding->asked > 0 && !binding->blocks[binding->asked - 1])
    binding->blocks[binding->asked - 1] = data;
}

/* -- Behind the call -- */

/* The last block that lay there: the same memory may have been several. */
static int number_of(const kiln_binding *binding, const void *data) {
  for (int i = binding->asked - 1; i >= 0; i--)
    if (binding->blocks[i] == data) return i;
  return -1;
}

static kiln_status *check(const bound *b, int index, kiln_ivalue item) {
  if (item.tag != KILN_TAG_TENSOR || kiln_tensor_is_undefined(item.u.tensor))
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "output %d is for what is no tensor", index);
  if (kiln_tensor_dtype(item.u.tensor) != kiln_tensor_dtype(b->tensor) ||
      !kiln_tensor_same_sizes(item.u.tensor, b->tensor))
    return KILN_ERROR(KILN_INVALID_ARGUMENT,
                      "output %d has another dtype or other sizes than the result", index);
  return NULL;
}

static bool is_in_place(const bound *b, const kiln_tensor *made) {
  return kiln_tensor_data(made) == b->data && kiln_tensor_is_contiguous(made);
}

/* Whoever has a storage in the host's memory gets memory of its own. */
static kiln_status *move_out(bound *b) {
  if (!b->lender || __atomic_load_n(&b->lender->base.refs, __ATOMIC_ACQUIRE) == 1) return NULL;
  return kiln_storage_move_out(b->of);
}

static kiln_status *put(kiln_binding *binding, bound *b, kiln_ivalue *item) {
  kiln_tensor *made = item->u.tensor;
  if (!is_in_place(b, made)) {
    b->number = number_of(binding, made->storage->data);
    KILN_TRY(kiln_tensor_copy(b->tensor, made));
    binding->copied++;
  }
  kiln_tensor_release(made);
  *item = kiln_of_tensor(kiln_tensor_retain(b->tensor));
  return NULL;
}

/* What a result of several holds. */
typedef struct items {
  kiln_ivalue *items;
  int64_t count;
  bool shared; /* somebody else has the tuple or list too: it stays as it is */
} items;
static items items_of(kiln_ivalue *result) {
  if (result->tag == KILN_TAG_TUPLE) {
    kiln_tuple *t = result->u.tuple;
    return (items){t->items, t->count, __atomic_load_n(&t->box.refs, __ATOMIC_ACQUIRE) != 1};
  }
  if (result->tag == KILN_TAG_LIST) {
    kiln_list *l = result->u.list;
    return (items){l->items, l->count, __atomic_load_n(&l->box.refs, __ATOMIC_ACQUIRE) != 1};
  }
  return (items){result, 1, false};
}

/* First what lies in the memory of another output than its own moves out of it: two results of
 * equal sizes may have changed places. */
static kiln_status *put_all(kiln_binding *binding, kiln_ivalue *result) {
  const items all = items_of(result);
  for (int i = 0; i < binding->count; i++) {
    bound *b = &binding->outputs[i];
    if (!b->tensor) continue;
    if (i >= all.count)
      return KILN_ERROR(KILN_INVALID_ARGUMENT, "output %d: the result has %lld item%s", i,
                        (long long)all.count, kiln_plural((uint64_t)all.count));
    KILN_TRY(check(b, i, all.items[i]));
    if (!is_in_place(b, all.items[i].u.tensor)) KILN_TRY(move_out(b));
  }
  for (int i = 0; i < binding->count; i++) {
    if (!binding->outputs[i].tensor) continue;
    kiln_ivalue item = kiln_ivalue_retain(all.items[i]);
    kiln_ivalue *place = all.shared ? &item : &all.items[i];
    kiln_status *status = put(binding, &binding->outputs[i], place);
    kiln_ivalue_release(item);
    KILN_TRY(status);
  }
  return NULL;
}

static kiln_status *take_back(bound *b) {
  kiln_status *status = move_out(b);
  if (b->lender) kiln_owner_release(&b->lender->base);
  b->lender = NULL; /* without memory to move to, the host's tensor stays with who has it */
  b->of = NULL;
  return status;
}

kiln_status *kiln_binding_end(kiln_call *call, kiln_ivalue *result) {
  kiln_binding *binding = call->binding;
  if (!call->cache.binding) return NULL; /* it was not begun */
  call->cache.binding = NULL;
  kiln_status *status = result ? put_all(binding, result) : NULL;
  for (int i = 0; i < binding->count; i++) {
    kiln_status *more = take_back(&binding->outputs[i]);
    if (status)
      kiln_status_destroy(more);
    else
      status = more;
  }
  return status;
}
