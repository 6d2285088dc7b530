/* block.h: how runtime objects get and give back their blocks: from a call's cache where there is
 * one (of the same mem), else straight from the mem, in the sizes that caches use, so that either
 * way back is open. */
#pragma once

#include "base/mem.h"

static inline void *kiln__block_alloc(kiln_mem *mem, kiln_cache *cache, size_t size) {
  if (cache && cache->mem == mem) return kiln_cache_alloc(cache, size);
  return kiln_cache_alloc_mem(mem, size);
}
static inline void kiln__block_free(kiln_mem *mem, kiln_cache *cache, void *block, size_t size) {
  if (cache && cache->mem == mem) {
    kiln_cache_free(cache, block, size);
  } else {
    kiln_cache_free_mem(mem, block, size);
  }
}

/* The same where the class of the size is known, and only where the lists will do: NULL and false
 * leave it to the others. */
static inline void *kiln__cache_pop(kiln_cache *cache, unsigned index) {
  kiln_cache_block *block = cache->free[index];
  if (__builtin_expect(!block, 0)) return NULL;
  cache->free[index] = block->next;
  cache->bytes -= kiln__cache_class_size(index);
  return block;
}
static inline bool kiln__cache_push(kiln_cache *cache, void *block, unsigned index) {
  size_t bytes = cache->bytes + kiln__cache_class_size(index);
  if (__builtin_expect(bytes > cache->keep_bytes, 0)) return false;
  kiln_cache_block *free_block = (kiln_cache_block *)block;
  free_block->next = cache->free[index];
  cache->free[index] = free_block;
  cache->bytes = bytes;
  return true;
}

/* Drops a reference; true when it was the last. A sole holder pays no atomic operation: nobody else
 * can take a reference meanwhile. */
static inline bool kiln__refs_drop(int *refs) {
  if (__atomic_load_n(refs, __ATOMIC_ACQUIRE) == 1) return true;
  return __atomic_fetch_sub(refs, 1, __ATOMIC_ACQ_REL) == 1;
}
