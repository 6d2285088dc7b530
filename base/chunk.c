/* chunk.c: pieces of memory that one thread lends in blocks: bits of grains, first fit, strays.
 *
 * An owner's take and give are without locks. A stray goes to a list under the chunk's lock; so
 * does the leaving, after which every block that comes back is counted there. */
#include "base/chunk.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/sanitize.h"

/* In front of a block. */
typedef struct head {
  kiln_chunk *chunk;
} head;
_Static_assert(sizeof(head) <= KILN_CHUNK_HEAD, "a head has its room");
_Static_assert(KILN_CHUNK_GRAIN % 64 == 0 && KILN_CHUNK_HEAD % 64 == 0, "blocks are aligned");

/* In a stray. */
typedef struct stray {
  struct stray *next;
  size_t bytes;
} stray;

struct kiln_chunk {
  kiln_mem *mem;
  char *data;
  uint32_t grains, free_grains;
  uint32_t lent;        /* blocks; once it is left, under the lock */
  uint32_t first;       /* no word in front of this one has a free grain */
  pthread_mutex_t lock; /* over strays and left */
  _Atomic(stray *) strays;
  bool left;
  uint64_t taken[]; /* a bit a grain; those behind the last are set */
};

/* -- Bits -- */

/* The bits of word w among [from, from + count). */
static uint64_t mask_of(uint32_t w, uint32_t from, uint32_t count) {
  uint64_t mask = ~(uint64_t)0;
  if (w == from / 64) mask <<= from % 64;
  if (w == (from + count - 1) / 64) mask &= ~(uint64_t)0 >> (63 - (from + count - 1) % 64);
  return mask;
}
static bool is_free(const uint64_t *bits, uint32_t from, uint32_t count) {
  uint64_t any = 0;
  for (uint32_t w = from / 64; w <= (from + count - 1) / 64; w++)
    any |= bits[w] & mask_of(w, from, count);
  return any == 0;
}
static void flip(uint64_t *bits, uint32_t from, uint32_t count) {
  for (uint32_t w = from / 64; w <= (from + count - 1) / 64; w++)
    bits[w] ^= mask_of(w, from, count);
}
/* The first grain at or behind `from` whose bit is `set`, or `grains`. */
static uint32_t next_grain(const uint64_t *bits, uint32_t grains, uint32_t from, bool set) {
  const uint64_t other = set ? 0 : ~(uint64_t)0;
  for (uint32_t w = from / 64; w < (grains + 63) / 64; w++) {
    uint64_t found = bits[w] ^ other;
    if (w == from / 64) found &= ~(uint64_t)0 << from % 64;
    if (found) {
      const uint32_t grain = w * 64 + (uint32_t)__builtin_ctzll(found);
      return grain < grains ? grain : grains;
    }
  }
  return grains;
}

/* -- Life -- */

static size_t struct_bytes(uint32_t grains) {
  return sizeof(kiln_chunk) + ((size_t)grains + 63) / 64 * sizeof(uint64_t);
}

kiln_chunk *kiln_chunk_create(kiln_mem *mem, uint32_t grains) {
  kiln_chunk *chunk = kiln_mem_alloc_zero(mem, struct_bytes(grains));
  char *data = chunk ? kiln_mem_alloc(mem, kiln_chunk_bytes(grains)) : NULL;
  if (!data || pthread_mutex_init(&chunk->lock, NULL) != 0) {
    kiln_status_refused(0, 0);
    if (data) kiln_mem_free(mem, data, kiln_chunk_bytes(grains));
    if (chunk) kiln_mem_free(mem, chunk, struct_bytes(grains));
    return NULL;
  }
  chunk->mem = mem;
  chunk->data = data;
  chunk->grains = chunk->free_grains = grains;
  if (grains % 64) chunk->taken[grains / 64] = ~(uint64_t)0 << grains % 64;
  kiln_asan_poison(data, kiln_chunk_bytes(chunk->grains));
  return chunk;
}
static void destroy(kiln_chunk *chunk) {
  kiln_asan_unpoison(chunk->data, kiln_chunk_bytes(chunk->grains));
  kiln_mem_free(chunk->mem, chunk->data, kiln_chunk_bytes(chunk->grains));
  pthread_mutex_destroy(&chunk->lock);
  kiln_mem_free(chunk->mem, chunk, struct_bytes(chunk->grains));
}

uint32_t kiln_chunk_size(const kiln_chunk *chunk) { return chunk->grains; }
uint32_t kiln_chunk_free(const kiln_chunk *chunk) { return chunk->free_grains; }
bool kiln_chunk_lends(const kiln_chunk *chunk) { return chunk->lent > 0; }

/* -- Blocks -- */

static void *lend(kiln_chunk *chunk, uint32_t at, uint32_t grains, size_t bytes) {
  flip(chunk->taken, at, grains);
  chunk->lent++;
  chunk->free_grains -= grains;
  char *block = chunk->data + kiln_chunk_bytes(at) + KILN_CHUNK_HEAD;
  head *h = (head *)(block - KILN_CHUNK_HEAD);
  kiln_asan_unpoison(h, sizeof *h);
  h->chunk = chunk;
  kiln_asan_poison(h, sizeof *h);
  kiln_asan_unpoison(block, bytes);
  kiln__mem_fill(chunk->mem, block, bytes);
  return block;
}
void *kiln_chunk_take_at(kiln_chunk *chunk, uint32_t at, size_t bytes) {
  const uint32_t grains = kiln_chunk_grains(bytes);
  if (at + grains > chunk->grains || !is_free(chunk->taken, at, grains)) return NULL;
  return lend(chunk, at, grains, bytes);
}
void *kiln_chunk_take(kiln_chunk *chunk, size_t bytes) {
  const uint32_t grains = kiln_chunk_grains(bytes);
  if (grains > chunk->free_grains) return NULL;
  uint32_t at = next_grain(chunk->taken, chunk->grains, chunk->first * 64, false);
  chunk->first = at / 64;
  while (at < chunk->grains) {
    const uint32_t end = next_grain(chunk->taken, chunk->grains, at, true);
    if (end - at >= grains) return lend(chunk, at, grains, bytes);
    at = next_grain(chunk->taken, chunk->grains, end, false);
  }
  return NULL;
}

kiln_chunk *kiln_chunk_of(const void *block) {
  const head *h = (const head *)((const char *)block - KILN_CHUNK_HEAD);
  kiln_asan_unpoison(h, sizeof *h);
  kiln_chunk *chunk = h->chunk;
  kiln_asan_poison(h, sizeof *h);
  return chunk;
}
/* Its bits. */
static void take_back(kiln_chunk *chunk, const void *block, size_t bytes) {
  const uint32_t at = (uint32_t)((size_t)((const char *)block - chunk->data) / KILN_CHUNK_GRAIN);
  const uint32_t grains = kiln_chunk_grains(bytes);
  flip(chunk->taken, at, grains);
  chunk->lent--;
  chunk->free_grains += grains;
  if (at / 64 < chunk->first) chunk->first = at / 64;
}
void kiln_chunk_give(kiln_chunk *chunk, void *block, size_t bytes) {
  kiln_asan_poison(block, bytes);
  take_back(chunk, block, bytes);
}

/* -- Strays -- */

void kiln_chunk_give_stray(void *block, size_t bytes) {
  kiln_chunk *chunk = kiln_chunk_of(block);
  stray *s = block;
  pthread_mutex_lock(&chunk->lock);
  const bool last = chunk->left && --chunk->lent == 0;
  if (!chunk->left) {
    *s = (stray){atomic_load_explicit(&chunk->strays, memory_order_relaxed), bytes};
    atomic_store_explicit(&chunk->strays, s, memory_order_relaxed);
  }
  kiln_asan_poison(block, bytes);
  pthread_mutex_unlock(&chunk->lock);
  if (!last) return;
  kiln_mem *mem = chunk->mem;
  destroy(chunk);
  kiln_mem_drop_kept(mem); /* its owner has long had room elsewhere */
}

/* Under the lock. */
static void collect(kiln_chunk *chunk) {
  stray *next = atomic_exchange_explicit(&chunk->strays, NULL, memory_order_relaxed);
  while (next) {
    const stray *s = next;
    kiln_asan_unpoison(s, sizeof *s);
    next = s->next;
    take_back(chunk, s, s->bytes);
    kiln_asan_poison(s, sizeof *s);
  }
}
void kiln_chunk_collect(kiln_chunk *chunk) {
  if (!atomic_load_explicit(&chunk->strays, memory_order_relaxed)) return;
  pthread_mutex_lock(&chunk->lock);
  collect(chunk);
  pthread_mutex_unlock(&chunk->lock);
}
void kiln_chunk_leave(kiln_chunk *chunk) {
  pthread_mutex_lock(&chunk->lock);
  collect(chunk);
  chunk->left = chunk->lent > 0;
  const bool last = !chunk->left;
  pthread_mutex_unlock(&chunk->lock);
  if (last) destroy(chunk);
}
