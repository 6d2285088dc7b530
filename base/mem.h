/* mem.h: the memory of a context. Every allocation of the library goes through a kiln_mem.
 *
 * Two tiers stand on it: arenas (arena.h) for graphs and passes, and reference counts for tensors
 * and objects. A kiln_mem counts the bytes that it lent out and refuses requests beyond its limit,
 * so a hostile model meets a status, not the kernel's OOM killer. Thread-safe.
 *
 * Blocks carry no header: the caller remembers the size and gives it back. Blocks of 64 bytes and
 * more are 64-byte aligned, smaller ones 16-byte.
 * Large blocks (64 KiB and more) that are given back are kept in lists by size class, because
 * allocators return them to the system and page faults then cost more than the work on them;
 * what is kept is bounded.
 * Back ends: jemalloc with arenas of its own (default), system malloc (KILN_ALLOC=system, always
 * in sanitizer builds), and a test one that fails on the N-th request. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/sanitize.h"
#include "base/status.h"

typedef struct kiln_mem kiln_mem;

typedef enum kiln_mem_kind {
  KILN_MEM_DEFAULT, /* jemalloc where built in, else system */
  KILN_MEM_SYSTEM,  /* malloc of the host */
} kiln_mem_kind;

kiln_status *kiln_mem_create(kiln_mem_kind kind, kiln_mem **out_mem) KILN_MUST_USE;
/* Every block must have been given back; in debug builds a leak stops the program. The object is
 * reference counted so that a tensor may outlive its context. */
void kiln_mem_retain(kiln_mem *mem);
void kiln_mem_release(kiln_mem *mem);

/* Returns NULL when memory or the limit is exhausted: return kiln_status_oom(). size 0 gives a
 * unique pointer. The block is not cleared. */
void *kiln_mem_alloc(kiln_mem *mem, size_t size) __attribute__((malloc, alloc_size(2)));
void *kiln_mem_alloc_zero(kiln_mem *mem, size_t size) __attribute__((malloc, alloc_size(2)));
/* Grows or shrinks a block; on NULL the old block is untouched. */
void *kiln_mem_realloc(kiln_mem *mem, void *block, size_t old_size, size_t new_size);
/* Gives a block back. NULL is fine. `size` is what was asked for. */
void kiln_mem_free(kiln_mem *mem, void *block, size_t size);

/* Blocks that are kept for others of their size become room for any. */
void kiln_mem_drop_kept(kiln_mem *mem);
/* What is kept for requests to come goes back to the system, small blocks of other contexts too;
 * some 0.1 ms for each megabyte. Who asks next takes page faults. */
void kiln_mem_give_back(kiln_mem *mem);

/* Bytes lent out now, and at most so far: exact for one thread, too much by at most 64 KiB a thread
 * where several are at work. The limit in bytes, 0 for none. */
size_t kiln_mem_bytes(const kiln_mem *mem);
/* From now on what this thread takes and gives back is not counted in kiln_mem_bytes_of_calls, or
 * is; what was until now. */
bool kiln_mem_count_aside(bool aside);
/* The bytes but for those of such threads, modulo SIZE_MAX + 1: what they took, others may give
 * back. For differences: what grows is the calls'. */
size_t kiln_mem_bytes_of_calls(const kiln_mem *mem);
size_t kiln_mem_peak_bytes(const kiln_mem *mem);
void kiln_mem_set_limit(kiln_mem *mem, size_t bytes);
/* Up to the limit, more or less what is in reserves; SIZE_MAX: there is none. */
size_t kiln_mem_room(const kiln_mem *mem);
/* Between these the thread's requests pass every limit, and are counted: for what gives memory back
 * and needs some for it, in proportion to what it gives back. They nest. */
void kiln_mem_exceed_begin(void);
void kiln_mem_exceed_end(void);
/* Facts about what was ever made here, for the layers above: bits that are set and stay. */
enum { KILN_MEM_RARE_DTYPES = 1, KILN_MEM_OTHER_DEVICES = 2 };
void kiln_mem_note(kiln_mem *mem, uint32_t facts);
/* To be read atomically. */
const uint32_t *kiln_mem_facts(const kiln_mem *mem);

/* The secret of the hash tables in this memory: random, unless it is set before the first one. */
uint64_t kiln_mem_hash_seed(const kiln_mem *mem);
void kiln_mem_set_hash_seed(kiln_mem *mem, uint64_t seed);

/* For tests: request number `n` (from 1, counted from this call) fails, and only that one;
 * 0 switches it off. Returns how many requests were made since the last call (the first call starts
 * the count). */
uint64_t kiln_mem_fail_at(kiln_mem *mem, uint64_t n);
/* For tests: blocks are filled with this byte before they are lent; -1 leaves them as they are.
 * Caches hand on what they keep, so sanitizer builds, where they keep nothing, see all of it. */
void kiln_mem_set_fill(kiln_mem *mem, int byte);

/* -- kiln_cache: one call's private free lists in front of a kiln_mem -- */

/* Size-class LIFO lists used by one thread at a time, so that an interpreter in its steady state
 * allocates without locks or malloc. It keeps at most `keep_bytes`. The owner embeds it. Classes
 * are 16, 32, 48 and 64 bytes, then four to a doubling up to 2 MiB; larger blocks pass through, and
 * in sanitizer builds all do. */
enum { KILN_CACHE_CLASSES = 64 };
typedef struct kiln_cache_block {
  struct kiln_cache_block *next;
} kiln_cache_block;
typedef struct kiln_cache {
  kiln_mem *mem; /* retained */
  kiln_cache_block *free[KILN_CACHE_CLASSES];
  size_t bytes, keep_bytes;           /* in the lists, and of the workspace what is not lent */
  struct kiln_workspaces *workspaces; /* workspace.h; NULL: no plan */
  struct kiln_binding *binding;       /* runtime/binding.h; NULL: results are as they come */
  const void *tag;                    /* what asks, for records of plans */
} kiln_cache;

void kiln_cache_init(kiln_cache *cache, kiln_mem *mem, size_t keep_bytes);
void kiln_cache_deinit(kiln_cache *cache); /* gives everything back */
/* Gives the kept blocks back to the mem. */
void kiln_cache_trim(kiln_cache *cache);

/* The class of a size, KILN_CACHE_CLASSES or more for sizes beyond them (and 0); a class's size. */
static inline unsigned kiln__cache_class(size_t size) {
  size_t last = size - 1;
  if (last < 64) return (unsigned)(last >> 4);
  unsigned log = 63u - (unsigned)__builtin_clzll(last);
  return (log - 5) * 4 + (unsigned)(last >> (log - 2) & 3);
}
extern const uint32_t kiln__cache_class_sizes[KILN_CACHE_CLASSES] KILN_HIDDEN;
static inline size_t kiln__cache_class_size(unsigned index) {
  return kiln__cache_class_sizes[index];
}
void *kiln__cache_alloc_slow(kiln_cache *cache, size_t size);
void kiln__cache_free_slow(kiln_cache *cache, void *block, size_t size);

/* Blocks of a cache may be given back to any cache of the same mem, or by kiln_cache_free_mem
 * straight to the mem; all need the size that was asked for. NULL when memory is exhausted. */
static inline void *kiln_cache_alloc(kiln_cache *cache, size_t size) {
  unsigned index = kiln__cache_class(size);
  if (__builtin_expect(index < KILN_CACHE_CLASSES && cache->free[index], 1)) {
    kiln_cache_block *block = cache->free[index];
    cache->free[index] = block->next;
    cache->bytes -= kiln__cache_class_size(index);
    return block;
  }
  return kiln__cache_alloc_slow(cache, size);
}
static inline void kiln_cache_free(kiln_cache *cache, void *block, size_t size) {
  unsigned index = kiln__cache_class(size);
  if (__builtin_expect(index < KILN_CACHE_CLASSES && block, 1)) {
    size_t bytes = cache->bytes + kiln__cache_class_size(index);
    if (__builtin_expect(bytes <= cache->keep_bytes, 1)) {
      kiln_cache_block *free_block = (kiln_cache_block *)block;
      free_block->next = cache->free[index];
      cache->free[index] = free_block;
      cache->bytes = bytes;
      return;
    }
  }
  kiln__cache_free_slow(cache, block, size);
}
void kiln_cache_free_mem(kiln_mem *mem, void *block, size_t size);
/* A block as a cache would give it, straight from the mem: to be given back in either way. */
void *kiln_cache_alloc_mem(kiln_mem *mem, size_t size);
