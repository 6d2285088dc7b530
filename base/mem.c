/* mem.c: the memory of a context: accounting, limits and size-class lists of large blocks over
 * jemalloc or malloc.
 *
 * Small blocks go to the back end, whose thread caches serve them. Large ones (64 KiB and more)
 * come from size classes, four to a doubling, with a LIFO list each: an allocator that gives them
 * back to the system makes every large tensor pay its page faults anew (10 ms against 0.3 for 16
 * MiB), and even one that does not leaves its thread cache at that size (250 ns). With jemalloc
 * they live in an arena of the context's own whose decay is off, and which is destroyed with it.
 *
 * Accounting. Threads that count every block in one place would move its line to and fro. Each
 * counts in a reserve (stripe.h), of bytes that are charged to the mem and lent to nobody:
 *   bytes 100000, reserves 32000 and 8000: 60000 are lent
 *   thread A is lent 1000 more: its reserve is 31000; thread B gives 500 back: its is 8500
 * and goes to the mem for another reserve, or with what is too much, once in many blocks. What is
 * charged never passes the limit; where only reserves are left below it, they are taken back. */
#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/chunk.h"
#include "base/hash.h"
#include "base/sanitize.h"
#include "base/stripe.h"
#include "base/thread.h"
#include "base/workspace.h"

#ifdef KILN_WITH_JEMALLOC
#include <jemalloc/jemalloc.h>
#ifdef KILN_JEMALLOC_SYSTEM
#define JE(name) name
#else
#define JE(name) je_kiln_##name
#endif
#endif

enum {
  LARGE_LOG = 16, /* 64 KiB */
  LARGE_CLASSES = 4 * (40 - LARGE_LOG),
  HUGE_PAGE = 2 << 20,
  RESERVE = 32 << 10, /* that a stripe begins with, and half of what it keeps */
};
static const size_t large_size = (size_t)1 << LARGE_LOG;
/* Given-back large blocks are kept while they and all that is lent out stay below the peak so far
 * plus this. */
static const size_t keep_slack = (size_t)64 << 20;

typedef struct large_block {
  struct large_block *next;
} large_block;

typedef struct reserve {
  char before[KILN_STRIPE_BYTES / 2];
  _Atomic(size_t) bytes;
  _Atomic(size_t) least; /* that it was since it changed mem->bytes: then most was lent */
  char after[KILN_STRIPE_BYTES / 2 - 2 * sizeof(size_t)];
} reserve;

struct kiln_mem {
  _Atomic(size_t) bytes; /* lent, and in reserves */
  _Atomic(size_t) aside; /* what threads of jobs have taken, less what they gave back */
  _Atomic(size_t) peak;  /* of what was lent, when `bytes` last changed */
  _Atomic(size_t) limit;
  atomic_int references;
  uint32_t facts; /* atomic */
  bool jemalloc;  /* where blocks come from: it, or malloc */
  bool keep;      /* whether large blocks have lists */
  unsigned arena; /* jemalloc's, for large blocks */
  uint64_t hash_seed;
  size_t machine; /* bytes that the machine has, swap included: more are never given at once */

  atomic_bool counting; /* kiln_mem_fail_at was called */
  _Atomic(uint64_t) requests, fail_at;
  atomic_int fill; /* 1 + the byte of kiln_mem_set_fill; 0: none */

  reserve reserves[KILN_STRIPES];

  pthread_mutex_t lock; /* over what follows */
  large_block *free[LARGE_CLASSES];
  size_t kept; /* bytes in the lists */
};

/* -- Back ends -- */

#if KILN_MSAN
__attribute__((visibility("default"))) const char *__msan_default_options(void);
const char *__msan_default_options(void) {
  return "poison_in_malloc=0:poison_in_free=0:allocator_may_return_null=1";
}
#endif

#ifdef KILN_WITH_JEMALLOC

static int jemalloc_flags(const kiln_mem *mem, size_t size) {
  if (size < 16) return MALLOCX_ALIGN(16); /* it has a class of 8 bytes */
  if (size < 64) return 0;
  if (size < large_size) return MALLOCX_ALIGN(64);
  const int place = MALLOCX_ARENA(mem->arena) | MALLOCX_TCACHE_NONE;
  /* All of it but its rest lies in huge pages, then: weights that come from memory miss fewer. */
  return (size < HUGE_PAGE ? MALLOCX_ALIGN(64) : MALLOCX_ALIGN(HUGE_PAGE)) | place;
}

static bool open_jemalloc(kiln_mem *mem) {
  size_t size = sizeof mem->arena;
  if (JE(mallctl)("arenas.create", &mem->arena, &size, NULL, 0) != 0) return false;
  char name[64];
  ssize_t never = -1;
  snprintf(name, sizeof name, "arena.%u.dirty_decay_ms", mem->arena);
  JE(mallctl)(name, NULL, NULL, &never, sizeof never);
  snprintf(name, sizeof name, "arena.%u.muzzy_decay_ms", mem->arena);
  JE(mallctl)(name, NULL, NULL, &never, sizeof never);
  return true;
}

static void jemalloc_command(unsigned arena, const char *verb) {
  char name[64];
  snprintf(name, sizeof name, "arena.%u.%s", arena, verb);
  JE(mallctl)(name, NULL, NULL, NULL, 0);
}

/* Those of small blocks, which all share, and its own. Not of all arenas at once: jemalloc would
 * walk into those that other threads destroy. */
static void purge_jemalloc(const kiln_mem *mem) {
  unsigned shared = 0;
  size_t size = sizeof shared;
  JE(mallctl)("opt.narenas", &shared, &size, NULL, 0);
  for (unsigned i = 0; i < shared; i++) jemalloc_command(i, "purge");
  jemalloc_command(mem->arena, "purge");
}

#endif

/* A block of `size` > 0 bytes, or NULL. */
static void *backend_alloc(kiln_mem *mem, size_t size, bool zero) {
#ifdef KILN_WITH_JEMALLOC
  if (mem->jemalloc) {
    return JE(mallocx)(size, jemalloc_flags(mem, size) | (zero ? MALLOCX_ZERO : 0));
  }
#endif
  (void)mem;
  void *block = NULL;
  if (size < 64) {
    block = malloc(size);
  } else if (posix_memalign(&block, 64, size) != 0) {
    return NULL;
  }
  if (block && zero) memset(block, 0, size);
  return block;
}

static void backend_free(kiln_mem *mem, void *block, size_t size) {
#ifdef KILN_WITH_JEMALLOC
  if (mem->jemalloc) {
    JE(sdallocx)(block, size, jemalloc_flags(mem, size));
    return;
  }
#endif
  (void)mem, (void)size;
  free(block);
}

/* -- Large blocks -- */

/* LARGE_CLASSES or more: too large for a list. */
static unsigned large_class(size_t size) {
  size_t last = size - 1;
  unsigned log = 63u - (unsigned)__builtin_clzll(last);
  if (log < LARGE_LOG) return 0;
  return (log - LARGE_LOG) * 4 + (unsigned)(last >> (log - 2) & 3) + 1;
}

static size_t large_class_size(unsigned index) {
  if (index == 0) return large_size;
  return (size_t)(5 + ((index - 1) & 3)) << (LARGE_LOG - 2 + (index - 1) / 4);
}

void kiln_mem_drop_kept(kiln_mem *mem) {
  pthread_mutex_lock(&mem->lock);
  for (unsigned i = 0; i < LARGE_CLASSES; i++) {
    while (mem->free[i]) {
      large_block *block = mem->free[i];
      mem->free[i] = block->next;
      backend_free(mem, block, large_class_size(i));
    }
  }
  mem->kept = 0;
  pthread_mutex_unlock(&mem->lock);
}

void kiln_mem_give_back(kiln_mem *mem) {
  kiln_mem_drop_kept(mem);
#ifdef KILN_WITH_JEMALLOC
  if (mem->jemalloc) purge_jemalloc(mem);
#endif
}

static void *large_alloc(kiln_mem *mem, size_t size, bool zero) {
  unsigned index = large_class(size);
  if (index >= LARGE_CLASSES) return backend_alloc(mem, size, zero);
  size_t class_size = large_class_size(index);
  pthread_mutex_lock(&mem->lock);
  large_block *kept = mem->free[index];
  if (kept) {
    mem->free[index] = kept->next;
    mem->kept -= class_size;
  }
  pthread_mutex_unlock(&mem->lock);
  if (kept) return zero ? memset(kept, 0, size) : kept;

  void *block = backend_alloc(mem, class_size, zero);
  if (!block) {
    kiln_mem_drop_kept(mem);
    block = backend_alloc(mem, class_size, zero);
  }
  if (block && class_size >= HUGE_PAGE) {
    /* First touch is two to three times cheaper, and so are walks of page tables; only whole pages
     * inside the block. */
    uintptr_t begin = ((uintptr_t)block + 4095) & ~(uintptr_t)4095;
    uintptr_t end = ((uintptr_t)block + class_size) & ~(uintptr_t)4095;
    madvise((char *)block + (begin - (uintptr_t)block), end - begin, MADV_HUGEPAGE);
  }
  return block;
}

static void large_free(kiln_mem *mem, void *block, size_t size) {
  unsigned index = large_class(size);
  if (index >= LARGE_CLASSES) {
    backend_free(mem, block, size);
    return;
  }
  size_t class_size = large_class_size(index);
  size_t lent = atomic_load_explicit(&mem->bytes, memory_order_relaxed);
  size_t most = atomic_load_explicit(&mem->peak, memory_order_relaxed) + keep_slack;
  size_t limit = atomic_load_explicit(&mem->limit, memory_order_relaxed);
  if (limit && most > limit) most = limit;
  pthread_mutex_lock(&mem->lock);
  bool keep = lent + mem->kept + class_size <= most;
  if (keep) {
    large_block *kept = block;
    kept->next = mem->free[index];
    mem->free[index] = kept;
    mem->kept += class_size;
  }
  pthread_mutex_unlock(&mem->lock);
  if (!keep) backend_free(mem, block, class_size);
}

/* -- Life -- */

/* Where the system has no random bytes to give (yet), the clock and an address have to do. */
static uint64_t random_seed(const kiln_mem *mem) {
  uint64_t seed;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == sizeof seed) return seed;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return kiln_hash_id((uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec, (uint64_t)(uintptr_t)mem);
}

/* The kernel refuses a mapping beyond this too, unless it is told, as jemalloc tells it, to reserve
 * nothing for it: then whoever writes the pages is killed. */
static size_t machine_bytes(void) {
  struct sysinfo info;
  if (sysinfo(&info) != 0) return PTRDIFF_MAX;
  const uint64_t bytes = ((uint64_t)info.totalram + info.totalswap) * info.mem_unit;
  return bytes < PTRDIFF_MAX ? (size_t)bytes : PTRDIFF_MAX;
}

kiln_status *kiln_mem_create(kiln_mem_kind kind, kiln_mem **out_mem) {
  *out_mem = NULL;
  kiln_mem *mem = calloc(1, sizeof *mem);
  if (!mem) return kiln_status_oom();
  if (pthread_mutex_init(&mem->lock, NULL) != 0) {
    free(mem);
    return kiln_status_oom();
  }
  atomic_init(&mem->references, 1);
  mem->hash_seed = random_seed(mem);
  mem->machine = machine_bytes();
  if (kind == KILN_MEM_DEFAULT && !KILN_SANITIZED) {
    mem->keep = true;
#ifdef KILN_WITH_JEMALLOC
    mem->jemalloc = open_jemalloc(mem); /* it has some 4000 arenas; beyond them malloc serves */
#endif
  }
  *out_mem = mem;
  return NULL;
}

void kiln_mem_retain(kiln_mem *mem) {
  atomic_fetch_add_explicit(&mem->references, 1, memory_order_relaxed);
}

void kiln_mem_release(kiln_mem *mem) {
  if (!mem) return;
  if (atomic_fetch_sub_explicit(&mem->references, 1, memory_order_acq_rel) != 1) return;
#ifndef NDEBUG
  if (kiln_mem_bytes(mem) != 0) {
    fprintf(stderr, "kiln: %zu bytes were not given back\n", kiln_mem_bytes(mem));
    abort();
  }
#endif
  kiln_mem_drop_kept(mem);
#ifdef KILN_WITH_JEMALLOC
  if (mem->jemalloc) jemalloc_command(mem->arena, "destroy");
#endif
  pthread_mutex_destroy(&mem->lock);
  free(mem);
}

/* -- Accounting -- */

/* Whether this request is the one that a test wants to fail. */
static bool is_failing(kiln_mem *mem) {
  if (__builtin_expect(!atomic_load_explicit(&mem->counting, memory_order_relaxed), 1))
    return false;
  uint64_t n = atomic_fetch_add_explicit(&mem->requests, 1, memory_order_relaxed) + 1;
  return n == atomic_load_explicit(&mem->fail_at, memory_order_relaxed);
}

void kiln_mem_exceed_begin(void) { kiln__this_thread.exceeding++; }
void kiln_mem_exceed_end(void) { kiln__this_thread.exceeding--; }

/* What was lent at most since `bytes` changed: exact for one thread. Reserves of several may have
 * been at their least one after another, and it says more then. */
static size_t recent_peak(const kiln_mem *mem) {
  size_t bytes = atomic_load_explicit(&mem->bytes, memory_order_relaxed), least = 0;
  if (bytes <= atomic_load_explicit(&mem->peak, memory_order_relaxed)) return 0;
  for (int i = 0; i < KILN_STRIPES; i++) {
    least += atomic_load_explicit(&mem->reserves[i].least, memory_order_relaxed);
  }
  return bytes > least ? bytes - least : 0;
}

/* Before `bytes` changes. */
static void note_peak(kiln_mem *mem) {
  const size_t recent = recent_peak(mem);
  size_t peak = atomic_load_explicit(&mem->peak, memory_order_relaxed);
  while (recent > peak &&
         !atomic_compare_exchange_weak_explicit(&mem->peak, &peak, recent, memory_order_relaxed,
                                                memory_order_relaxed))
    continue;
}
/* After it has. */
static void begin_least(reserve *r) {
  atomic_store_explicit(&r->least, atomic_load_explicit(&r->bytes, memory_order_relaxed),
                        memory_order_relaxed);
}

/* Adds `size` to `bytes`, unless the limit is in the way. */
static bool take(kiln_mem *mem, size_t size) {
  const size_t limit = atomic_load_explicit(&mem->limit, memory_order_relaxed);
  size_t bytes = atomic_load_explicit(&mem->bytes, memory_order_relaxed);
  do {
    if (limit != 0 && bytes + size > limit && !kiln__this_thread.exceeding) return false;
  } while (!atomic_compare_exchange_weak_explicit(&mem->bytes, &bytes, bytes + size,
                                                  memory_order_relaxed, memory_order_relaxed));
  return true;
}

static void take_reserves_back(kiln_mem *mem) {
  for (int i = 0; i < KILN_STRIPES; i++) {
    reserve *r = &mem->reserves[i];
    if (atomic_load_explicit(&r->bytes, memory_order_relaxed) == 0) continue;
    const size_t bytes = atomic_exchange_explicit(&r->bytes, 0, memory_order_relaxed);
    atomic_fetch_sub_explicit(&mem->bytes, bytes, memory_order_relaxed);
    begin_least(r);
  }
}

/* For a reserve that has less: charges the mem with them, and with a new reserve. */
static __attribute__((noinline)) bool charge_more(kiln_mem *mem, reserve *r, size_t size) {
  note_peak(mem);
  if (size <= RESERVE && take(mem, size + RESERVE)) {
    atomic_fetch_add_explicit(&r->bytes, RESERVE, memory_order_relaxed);
  } else if (!take(mem, size)) {
    take_reserves_back(mem);
    if (!take(mem, size)) {
      kiln_status_refused(size, atomic_load_explicit(&mem->limit, memory_order_relaxed));
      return false;
    }
  }
  begin_least(r);
  return true;
}

static bool charge_reserve(kiln_mem *mem, size_t size) {
  reserve *r = &mem->reserves[kiln_stripe_here()];
  size_t had = atomic_load_explicit(&r->bytes, memory_order_relaxed);
  do {
    if (__builtin_expect(had < size, 0)) return charge_more(mem, r, size);
  } while (!atomic_compare_exchange_weak_explicit(&r->bytes, &had, had - size, memory_order_relaxed,
                                                  memory_order_relaxed));
  if (had - size < atomic_load_explicit(&r->least, memory_order_relaxed)) {
    atomic_store_explicit(&r->least, had - size, memory_order_relaxed);
  }
  return true;
}

/* Counts `size` more bytes as lent out; false beyond the limit. */
static bool charge(kiln_mem *mem, size_t size) {
  if (is_failing(mem)) return false;
  if (size > mem->machine) {
    kiln_status_refused(size, 0);
    return false;
  }
  const bool charged = charge_reserve(mem, size);
  if (__builtin_expect(kiln__this_thread.aside, 0) && charged)
    atomic_fetch_add_explicit(&mem->aside, size, memory_order_relaxed);
  return charged;
}

/* Of a large block, or where the reserve has `has`, which is too much. */
static __attribute__((noinline)) void discharge_more(kiln_mem *mem, reserve *r, size_t size,
                                                     size_t has) {
  note_peak(mem);
  while (has > RESERVE) {
    if (atomic_compare_exchange_weak_explicit(&r->bytes, &has, RESERVE, memory_order_relaxed,
                                              memory_order_relaxed)) {
      size += has - RESERVE;
      break;
    }
  }
  atomic_fetch_sub_explicit(&mem->bytes, size, memory_order_relaxed);
  begin_least(r);
}

static void discharge(kiln_mem *mem, size_t size) {
  if (__builtin_expect(kiln__this_thread.aside, 0))
    atomic_fetch_sub_explicit(&mem->aside, size, memory_order_relaxed);
  reserve *r = &mem->reserves[kiln_stripe_here()];
  if (size > RESERVE) {
    discharge_more(mem, r, size, 0);
    return;
  }
  const size_t has = atomic_fetch_add_explicit(&r->bytes, size, memory_order_relaxed) + size;
  if (__builtin_expect(has > 2 * RESERVE, 0)) discharge_more(mem, r, 0, has);
}

size_t kiln_mem_bytes(const kiln_mem *mem) {
  size_t reserved = 0;
  for (int i = 0; i < KILN_STRIPES; i++) {
    reserved += atomic_load_explicit(&mem->reserves[i].bytes, memory_order_relaxed);
  }
  const size_t bytes = atomic_load_explicit(&mem->bytes, memory_order_relaxed);
  return bytes > reserved ? bytes - reserved : 0; /* another thread may be giving some back */
}

bool kiln_mem_count_aside(bool aside) {
  const bool was = kiln__this_thread.aside;
  kiln__this_thread.aside = aside;
  return was;
}

size_t kiln_mem_bytes_of_calls(const kiln_mem *mem) {
  return kiln_mem_bytes(mem) - atomic_load_explicit(&mem->aside, memory_order_relaxed);
}

size_t kiln_mem_peak_bytes(const kiln_mem *mem) {
  const size_t recent = recent_peak(mem);
  const size_t peak = atomic_load_explicit(&mem->peak, memory_order_relaxed);
  return recent > peak ? recent : peak;
}

void kiln_mem_note(kiln_mem *mem, uint32_t facts) {
  if ((__atomic_load_n(&mem->facts, __ATOMIC_RELAXED) & facts) == facts) return;
  __atomic_fetch_or(&mem->facts, facts, __ATOMIC_RELAXED);
}
const uint32_t *kiln_mem_facts(const kiln_mem *mem) { return &mem->facts; }

void kiln_mem_set_limit(kiln_mem *mem, size_t bytes) {
  atomic_store_explicit(&mem->limit, bytes, memory_order_relaxed);
  note_peak(mem);
  take_reserves_back(mem);
}

size_t kiln_mem_room(const kiln_mem *mem) {
  const size_t limit = atomic_load_explicit(&mem->limit, memory_order_relaxed);
  const size_t bytes = atomic_load_explicit(&mem->bytes, memory_order_relaxed);
  return limit == 0 ? SIZE_MAX : bytes < limit ? limit - bytes : 0;
}

uint64_t kiln_mem_hash_seed(const kiln_mem *mem) { return mem->hash_seed; }
void kiln_mem_set_hash_seed(kiln_mem *mem, uint64_t seed) { mem->hash_seed = seed; }

uint64_t kiln_mem_fail_at(kiln_mem *mem, uint64_t n) {
  atomic_store_explicit(&mem->fail_at, n, memory_order_relaxed);
  atomic_store_explicit(&mem->counting, true, memory_order_relaxed);
  return atomic_exchange_explicit(&mem->requests, 0, memory_order_relaxed);
}

void kiln_mem_set_fill(kiln_mem *mem, int byte) {
  atomic_store_explicit(&mem->fill, byte + 1, memory_order_relaxed);
}

/* -- Blocks -- */

static void fill_block(const kiln_mem *mem, void *block, size_t size) {
  const int fill = atomic_load_explicit(&mem->fill, memory_order_relaxed);
  if (__builtin_expect(fill != 0, 0)) memset(block, fill - 1, size);
  kiln_msan_poison(block, size); /* the filling too is nothing that was written */
}
void kiln__mem_fill(const kiln_mem *mem, void *block, size_t size) {
  if (KILN_SANITIZED) fill_block(mem, block, size);
}

static void *alloc_block(kiln_mem *mem, size_t size, bool zero) {
  if (!charge(mem, size)) return NULL;
  void *block = mem->keep && size >= large_size ? large_alloc(mem, size, zero)
                                                : backend_alloc(mem, size ? size : 1, zero);
  if (__builtin_expect(!block, 0)) {
    discharge(mem, size);
    kiln_status_refused(size, 0);
    return NULL;
  }
  if (!zero) fill_block(mem, block, size);
  return block;
}

void *kiln_mem_alloc(kiln_mem *mem, size_t size) { return alloc_block(mem, size, false); }

void *kiln_mem_alloc_zero(kiln_mem *mem, size_t size) { return alloc_block(mem, size, true); }

void kiln_mem_free(kiln_mem *mem, void *block, size_t size) {
  if (!block) return;
  kiln_msan_unpoison(block, size); /* it may be a library's next */
  discharge(mem, size);
  if (mem->keep && size >= large_size) {
    large_free(mem, block, size);
  } else {
    backend_free(mem, block, size ? size : 1);
  }
}

/* Whether a block of one size serves for the other as it is. */
static bool is_same_class(const kiln_mem *mem, size_t a, size_t b) {
  if (!mem->keep || a < large_size || b < large_size) return a == b;
  unsigned index = large_class(a);
  return index < LARGE_CLASSES && index == large_class(b);
}

void *kiln_mem_realloc(kiln_mem *mem, void *block, size_t old_size, size_t new_size) {
  if (!block) return kiln_mem_alloc(mem, new_size);
  if (is_same_class(mem, old_size, new_size)) {
    if (new_size > old_size && !charge(mem, new_size - old_size)) return NULL;
    if (new_size < old_size) discharge(mem, old_size - new_size);
    return block;
  }
  void *moved = kiln_mem_alloc(mem, new_size);
  if (!moved) return NULL;
  memcpy(moved, block, old_size < new_size ? old_size : new_size);
  kiln_mem_free(mem, block, old_size);
  return moved;
}

/* -- Caches -- */

#define OCTAVE(log) 5u << (log), 6u << (log), 7u << (log), 8u << (log)
const uint32_t kiln__cache_class_sizes[KILN_CACHE_CLASSES] = {
    16,         32,         48,         64,         OCTAVE(4),  OCTAVE(5),  OCTAVE(6),
    OCTAVE(7),  OCTAVE(8),  OCTAVE(9),  OCTAVE(10), OCTAVE(11), OCTAVE(12), OCTAVE(13),
    OCTAVE(14), OCTAVE(15), OCTAVE(16), OCTAVE(17), OCTAVE(18),
};
#undef OCTAVE

void kiln_cache_init(kiln_cache *cache, kiln_mem *mem, size_t keep_bytes) {
  *cache = (kiln_cache){.mem = mem, .keep_bytes = KILN_SANITIZED ? 0 : keep_bytes};
  kiln_mem_retain(mem);
}

void kiln_cache_trim(kiln_cache *cache) {
  for (unsigned i = 0; i < KILN_CACHE_CLASSES; i++) {
    while (cache->free[i]) {
      kiln_cache_block *block = cache->free[i];
      cache->free[i] = block->next;
      kiln_mem_free(cache->mem, block, kiln__cache_class_size(i));
      cache->bytes -= kiln__cache_class_size(i);
    }
  }
  kiln_workspace_trim(cache);
}

void kiln_cache_deinit(kiln_cache *cache) {
  if (!cache->mem) return;
  kiln_workspace_deinit(cache);
  kiln_cache_trim(cache);
  kiln_mem_release(cache->mem);
  *cache = (kiln_cache){0};
}

/* What is asked of the mem for a block of `size`. In sanitizer builds it is the size itself, so
 * that a read past it is seen. */
static size_t rounded_size(size_t size) {
  unsigned index = kiln__cache_class(size);
  return KILN_SANITIZED || index >= KILN_CACHE_CLASSES ? size : kiln__cache_class_size(index);
}

void *kiln__cache_alloc_slow(kiln_cache *cache, size_t size) {
  size_t rounded = rounded_size(size);
  void *block = kiln_mem_alloc(cache->mem, rounded);
  if (!block && cache->bytes > 0) {
    kiln_cache_trim(cache); /* what it keeps counts as lent out */
    block = kiln_mem_alloc(cache->mem, rounded);
    if (block) kiln_status_refused(0, 0);
  }
  return block;
}

void kiln__cache_free_slow(kiln_cache *cache, void *block, size_t size) {
  kiln_cache_free_mem(cache->mem, block, size);
}

void *kiln_cache_alloc_mem(kiln_mem *mem, size_t size) {
  return kiln_mem_alloc(mem, rounded_size(size));
}

void kiln_cache_free_mem(kiln_mem *mem, void *block, size_t size) {
  kiln_mem_free(mem, block, rounded_size(size));
}
