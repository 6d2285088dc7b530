/* storage.c: the memory under tensors: owned, lent by an owner, or shared copy-on-write.
 *
 * Up to INLINE_BYTES the data stands behind the struct in one block. A larger owned block that gets
 * shared moves to a `block_owner`, from which the last storage that is left takes it back without a
 * copy. Nothing but this file replaces storage->data. A block is taken where the thread's budget
 * has room for it. */
#include "base/budget.h"
#include "base/workspace.h"
#include "runtime/binding.h"
#include "runtime/block.h"
#include "runtime/tensor_internal.h"

_Static_assert(sizeof(kiln_storage) == 64, "inline data stays 64-byte aligned");

enum { INLINE_BYTES = 4096 - (int)sizeof(kiln_storage) };

/* An owned block that several storages read. */
typedef struct block_owner {
  kiln_owner base;
  const kiln_device *device;
  kiln_mem *mem;
  void *data;
  size_t bytes;
  uint32_t flags; /* of the storage that had it */
} block_owner;

void kiln_owner_retain(kiln_owner *owner) {
  if (owner) __atomic_fetch_add(&owner->refs, 1, __ATOMIC_RELAXED);
}

void kiln_owner_release(kiln_owner *owner) {
  if (owner && kiln__refs_drop(&owner->refs)) owner->destroy(owner);
}

/* A block of a storage with those flags goes back to where it is from. */
static void give_back(const kiln_device *device, kiln_mem *mem, kiln_cache *cache, void *data,
                      size_t bytes, uint32_t flags) {
  if (cache) kiln_workspace_gone(cache, data);
  if (flags & KILN__STORAGE_PLANNED) {
    kiln_workspace_give(cache, data, bytes);
  } else {
    device->release(device, mem, cache, data, bytes);
  }
}

static void destroy_block_owner(kiln_owner *owner) {
  block_owner *block = (block_owner *)owner;
  give_back(block->device, block->mem, NULL, block->data, block->bytes, block->flags);
  kiln_cache_free_mem(block->mem, block, sizeof *block);
}

kiln_status *kiln_storage_create_on(const kiln_device *device, kiln_mem *mem, kiln_cache *cache,
                                    size_t bytes, kiln_storage **out_storage) {
  const bool elsewhere = device->id.kind != KILN_DEVICE_CPU;
  if (elsewhere) kiln_mem_note(mem, KILN_MEM_OTHER_DEVICES);
  if (bytes <= INLINE_BYTES && !elsewhere) {
    size_t size = sizeof(kiln_storage) + bytes;
    kiln_storage *s = kiln__block_alloc(mem, cache, size);
    if (!s) return kiln_status_oom();
    kiln__storage_init(s, device, mem, s + 1, bytes, size, 0);
    *out_storage = s;
    return NULL;
  }
  const bool may_plan = cache && cache->mem == mem && !elsewhere;
  if (may_plan && __builtin_expect(cache->binding != NULL, 0)) {
    *out_storage = kiln__binding_take(cache, bytes);
    if (*out_storage) return NULL;
  }
  KILN_TRY(kiln_budget_room(kiln_budget_current(), bytes));
  kiln_storage *s = kiln__block_alloc(mem, cache, sizeof *s);
  if (!s) return kiln_status_oom();
  void *planned = may_plan ? kiln_workspace_take(cache, bytes) : NULL;
  void *data = planned ? planned : device->allocate(device, mem, cache, bytes);
  if (!data) {
    kiln__block_free(mem, cache, s, sizeof *s);
    return kiln_status_oom();
  }
  if (may_plan) kiln_workspace_note(cache, data);
  if (may_plan && __builtin_expect(cache->binding != NULL, 0)) kiln__binding_note(cache, data);
  kiln__storage_init(s, device, mem, data, bytes, sizeof *s, 0);
  if (planned) s->flags |= KILN__STORAGE_PLANNED;
  *out_storage = s;
  return NULL;
}

static kiln_status *wrap(const kiln_device *device, kiln_mem *mem, kiln_owner *owner, void *data,
                         size_t bytes, uint32_t flags, kiln_storage **out_storage) {
  kiln_storage *s = kiln_cache_alloc_mem(mem, sizeof *s);
  if (!s) return kiln_status_oom();
  kiln__storage_init(s, device, mem, data, bytes, sizeof *s, 0);
  s->flags = flags;
  s->owner = owner;
  kiln_owner_retain(owner);
  *out_storage = s;
  return NULL;
}

kiln_status *kiln_storage_wrap(kiln_mem *mem, kiln_owner *owner, void *data, size_t bytes,
                               uint32_t flags, kiln_storage **out_storage) {
  return wrap(&kiln_device_cpu, mem, owner, data, bytes, flags, out_storage);
}

/* Gives back what the storage has its data from. */
static void drop_data(kiln_storage *s, kiln_cache *cache) {
  if (s->owner) {
    kiln_owner_release(s->owner);
  } else if (!kiln__storage_is_inline(s)) {
    give_back(s->device, s->mem, cache, s->data, s->bytes, s->flags);
  }
}

void kiln__storage_destroy(kiln_storage *s, kiln_cache *cache) {
  drop_data(s, cache);
  kiln__block_free(s->mem, cache, (char *)s - s->block_offset, s->alloc_size);
}

void kiln_storage_release(kiln_storage *s) {
  if (s && kiln__refs_drop(&s->refs)) kiln__storage_destroy(s, NULL);
}

void kiln_storage_release_to(kiln_cache *cache, kiln_storage *s) {
  if (s && kiln__refs_drop(&s->refs)) kiln__storage_destroy(s, cache);
}

kiln_status *kiln_storage_freeze(kiln_storage *s) {
  if (s->owner || kiln__storage_is_inline(s)) return NULL; /* lent, or never shared but by copy */
  block_owner *block = kiln_cache_alloc_mem(s->mem, sizeof *block);
  if (!block) return kiln_status_oom();
  *block = (block_owner){.base = {.refs = 1, .destroy = destroy_block_owner},
                         .device = s->device,
                         .mem = s->mem,
                         .data = s->data,
                         .bytes = s->bytes,
                         .flags = s->flags};
  s->owner = &block->base;
  s->flags |= KILN_STORAGE_READ_ONLY;
  return NULL;
}

kiln_status *kiln_storage_share(kiln_storage *base, kiln_storage **out_storage) {
  if (!base->owner && !kiln__storage_is_inline(base)) KILN_TRY(kiln_storage_freeze(base));
  if (base->owner && (base->flags & KILN_STORAGE_READ_ONLY)) {
    return wrap(base->device, base->mem, base->owner, base->data, base->bytes,
                KILN_STORAGE_READ_ONLY, out_storage);
  }
  /* Small, or memory that its lender may change at any time. */
  KILN_TRY(kiln_storage_create_on(base->device, base->mem, NULL, base->bytes, out_storage));
  base->device->copy(base->device, (*out_storage)->data, base->data, base->bytes);
  return NULL;
}

/* New owned memory of `bytes` with what fits of the old contents. */
static kiln_status *replace_data(kiln_storage *s, size_t bytes) {
  KILN_TRY(kiln_budget_room(kiln_budget_current(), bytes));
  void *data = s->device->allocate(s->device, s->mem, NULL, bytes);
  if (!data) return kiln_status_oom();
  s->device->copy(s->device, data, s->data, bytes < s->bytes ? bytes : s->bytes);
  drop_data(s, NULL);
  s->owner = NULL;
  s->data = data;
  s->bytes = bytes;
  s->flags &= ~(uint32_t)(KILN_STORAGE_READ_ONLY | KILN_STORAGE_BOUND | KILN__STORAGE_INLINE |
                          KILN__STORAGE_PLANNED);
  return NULL;
}

kiln_status *kiln_storage_make_writable(kiln_storage *s) {
  if (s->flags & KILN_STORAGE_READ_ONLY) {
    kiln_owner *owner = s->owner;
    if (owner && owner->destroy == destroy_block_owner &&
        __atomic_load_n(&owner->refs, __ATOMIC_ACQUIRE) == 1) {
      s->owner = NULL; /* the last reader takes the block itself */
      s->flags &= ~(uint32_t)KILN_STORAGE_READ_ONLY;
      kiln_cache_free_mem(((block_owner *)owner)->mem, owner, sizeof(block_owner));
    } else {
      KILN_TRY(replace_data(s, s->bytes));
    }
  }
  __atomic_store_n(&s->version, s->version + 1, __ATOMIC_RELAXED);
  return NULL;
}

kiln_status *kiln_storage_move_out(kiln_storage *s) { return replace_data(s, s->bytes); }

kiln_status *kiln_storage_grow(kiln_storage *s, size_t bytes) {
  if (bytes <= s->bytes) return NULL;
  return replace_data(s, bytes);
}

/* -- Memory that is to be known again -- */

bool kiln_memory_can_hold(const kiln_tensor *t) {
  return t->storage && (!t->storage->owner || kiln_storage_is_lent(t->storage));
}

static void count_hold(kiln_storage *s, int by) {
  uint16_t was = __atomic_load_n(&s->holds, __ATOMIC_RELAXED), now;
  do {
    now = was == UINT16_MAX ? was : (uint16_t)(was + by);
  } while (
      !__atomic_compare_exchange_n(&s->holds, &was, now, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* An owner that is held is not alone, so no storage takes its block to write there. */
kiln_memory kiln_memory_hold(const kiln_tensor *t) {
  kiln_storage *s = t->storage;
  const void *data = kiln_tensor_data(t);
  if (!kiln_storage_is_lent(s)) {
    (void)kiln_storage_retain(s);
    count_hold(s, 1);
    return (kiln_memory){.storage = s, .version = s->version, .data = data};
  }
  kiln_owner_retain(s->owner);
  return (kiln_memory){.owner = s->owner, .data = data};
}

void kiln_memory_give_back(const kiln_memory *memory, size_t bytes) {
  kiln_owner *owner = memory->owner;
  if (owner && owner->give_back) owner->give_back(owner, memory->data, bytes);
}

void kiln_memory_release(kiln_memory *memory) {
  kiln_owner_release(memory->owner);
  if (memory->storage) count_hold(memory->storage, -1);
  kiln_storage_release(memory->storage);
  *memory = (kiln_memory){0};
}
