/* arena.c: bump allocation in a chain of blocks that grow by doubling. */
#include "base/arena.h"

#include <stdio.h>
#include <string.h>

#include "base/arena_limit.h"
#include "base/budget.h"
#include "base/sanitize.h"
#include "base/thread.h"

enum {
  FIRST_BLOCK = 4 << 10,
  LAST_BLOCK = 256 << 10,
  /* Sanitizer builds leave a poisoned gap after each piece. */
  GAP = KILN_ASAN ? 16 : 0,
  KEPT = 256 << 10, /* bytes that a reset leaves */
  STEPS = 1024,     /* between two questions to the budget */
};

typedef struct arena_block {
  struct arena_block *next;
  size_t size; /* with this header */
  _Alignas(64) char data[];
} arena_block;

struct kiln_arena {
  kiln_mem *mem;                 /* retained */
  kiln_cleanup cleanup;          /* of its scope, if it has one */
  arena_block *first, *current;  /* those after `current` are free */
  char *at, *end;                /* free space of `current` */
  size_t next_size, used_before; /* bytes lent out by the blocks before `current` */
  size_t held;                   /* in all blocks */
  size_t limit;                  /* of bytes lent out; 0: none */
  bool limit_met;
  unsigned steps;
};

/* Takes bytes off the thread's budget. */
static void discharge(size_t bytes) {
  kiln_budget *budget = kiln_budget_current();
  if (budget) budget->charged -= bytes < budget->charged ? bytes : budget->charged;
}

/* -- Life -- */

static kiln_arena *make_arena(kiln_mem *mem) {
  kiln_arena *arena = kiln_mem_alloc_zero(mem, sizeof *arena);
  if (!arena) return NULL;
  kiln_mem_retain(mem);
  arena->mem = mem;
  arena->next_size = FIRST_BLOCK;
  return arena;
}

kiln_status *kiln_arena_create(kiln_mem *mem, kiln_arena **out_arena) {
  *out_arena = make_arena(mem);
  return *out_arena ? NULL : kiln_status_oom();
}

static void destroy(void *arena) { kiln_arena_destroy(arena); }

kiln_arena *kiln_arena_scoped(kiln_mem *mem) {
  kiln_arena *arena = make_arena(mem);
  if (!arena) kiln_scope_oom();
  kiln_scope_defer(&arena->cleanup, destroy, arena);
  return arena;
}

void kiln_arena_keep(kiln_arena *arena) { kiln_scope_undefer(&arena->cleanup); }

void kiln_arena_destroy(kiln_arena *arena) {
  if (!arena) return;
  kiln_scope_undefer(&arena->cleanup);
  kiln_mem *mem = arena->mem;
  discharge(arena->held);
  for (arena_block *block = arena->first, *next; block; block = next) {
    next = block->next;
    kiln_asan_unpoison(block, block->size);
    kiln_mem_free(mem, block, block->size);
  }
  kiln_mem_free(mem, arena, sizeof *arena);
  kiln_mem_release(mem);
}

/* Asks the thread's budget, with `more` bytes. */
static void ask_budget(size_t more) {
  const kiln__thread *thread = &kiln__this_thread;
  if (!thread->budget) return;
  kiln_status *why = thread->scope ? kiln_budget_check(thread->budget, more) : NULL;
  if (why) kiln_scope_fail(why);
  thread->budget->charged += more;
}

void kiln_arena_step(kiln_arena *arena) {
  if (++arena->steps % STEPS == 0) ask_budget(0);
}

/* -- Blocks -- */

static void enter_block(kiln_arena *arena, arena_block *block) {
  arena->current = block;
  arena->at = block->data;
  arena->end = (char *)block + block->size;
  kiln_asan_poison(block->data, (size_t)(arena->end - arena->at));
  kiln_msan_poison(block->data, (size_t)(arena->end - arena->at));
}

/* Frees the blocks behind those that make up KEPT. */
static void drop_blocks(kiln_arena *arena) {
  size_t kept = arena->first->size, held = arena->held;
  arena_block *last = arena->first;
  for (; last->next && kept + last->next->size <= KEPT; last = last->next) kept += last->next->size;
  for (arena_block *block = last->next, *next; block; block = next) {
    next = block->next;
    arena->held -= block->size;
    kiln_asan_unpoison(block, block->size);
    kiln_mem_free(arena->mem, block, block->size);
  }
  last->next = NULL;
  discharge(held - arena->held);
}

void kiln_arena_reset(kiln_arena *arena) {
  if (arena->held > KEPT) drop_blocks(arena);
  arena->used_before = 0;
#if KILN_ASAN
  for (arena_block *block = arena->first; block; block = block->next)
    kiln_asan_poison(block->data, block->size - sizeof *block);
#endif
  if (arena->first) enter_block(arena, arena->first);
}

/* Makes `current` a block with room for `size` bytes: a kept one, or a new one. */
static void next_block(kiln_arena *arena, size_t size) {
  size_t need;
  if (__builtin_add_overflow(size, sizeof(arena_block), &need) || need > PTRDIFF_MAX)
    kiln_scope_oom();
  if (arena->limit && (need > arena->limit || arena->used_before > arena->limit - need)) {
    arena->limit_met = true;
    kiln_scope_oom();
  }
  arena_block *last = arena->current;
  arena_block *block = last ? last->next : NULL;
  if (!block || block->size < need) {
    size_t block_size = need > arena->next_size ? need : arena->next_size;
    ask_budget(block_size);
    block = kiln_mem_alloc(arena->mem, block_size);
    if (!block) kiln_scope_oom();
    if (arena->next_size < LAST_BLOCK) arena->next_size *= 2;
    block->size = block_size;
    arena->held += block_size;
    block->next = last ? last->next : NULL;
    *(last ? &last->next : &arena->first) = block;
  }
  if (last) arena->used_before += (size_t)(arena->at - last->data);
  enter_block(arena, block);
}

size_t kiln_arena_bytes(const kiln_arena *arena) {
  size_t bytes = arena->used_before;
  if (arena->current) bytes += (size_t)(arena->at - arena->current->data);
  return bytes;
}

kiln_mem *kiln_arena_mem(const kiln_arena *arena) { return arena->mem; }

void kiln_arena_set_limit(kiln_arena *arena, size_t bytes) {
  arena->limit = bytes;
  arena->limit_met = false;
}

bool kiln_arena_limit_met(const kiln_arena *arena) { return arena->limit_met; }

/* -- Allocation -- */

/* Not cleared. */
static inline char *allocate(kiln_arena *arena, size_t size, size_t align) {
  KILN_ASSERT(align && align <= 64 && (align & (align - 1)) == 0);
  size_t pad = -(uintptr_t)arena->at & (align - 1);
  size_t room = (size_t)(arena->end - arena->at);
  if (__builtin_expect(size > room || pad + GAP > room - size || !arena->at, 0)) {
    if (size > PTRDIFF_MAX) kiln_scope_oom();
    next_block(arena, size + GAP); /* a block's data is aligned to 64 */
    pad = 0;
  }
  char *piece = arena->at + pad;
  arena->at = piece + size + GAP;
  kiln_asan_unpoison(piece, size);
  return piece;
}

void *kiln_arena_alloc_aligned(kiln_arena *arena, size_t size, size_t align) {
  return memset(allocate(arena, size, align), 0, size);
}

void *kiln_arena_alloc(kiln_arena *arena, size_t size) {
  return memset(allocate(arena, size, 16), 0, size);
}

void *kiln_arena_copy(kiln_arena *arena, const void *data, size_t size) {
  char *copy = allocate(arena, size, 16);
  if (size) memcpy(copy, data, size);
  return copy;
}

kiln_str kiln_arena_str(kiln_arena *arena, kiln_str text) {
  if (text.len == SIZE_MAX) kiln_scope_oom();
  char *copy = allocate(arena, text.len + 1, 1);
  if (text.len) memcpy(copy, text.data, text.len);
  copy[text.len] = 0;
  return kiln_str_make(copy, text.len);
}

char *kiln_arena_strdup(kiln_arena *arena, const char *text) {
  const size_t size = strlen(text) + 1;
  return memcpy(allocate(arena, size, 1), text, size);
}

char *kiln_arena_printf(kiln_arena *arena, const char *fmt, ...) {
  va_list args, again;
  va_start(args, fmt);
  va_copy(again, args);
  int len = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  char *text = allocate(arena, len > 0 ? (size_t)len + 1 : 1, 1);
  text[0] = 0;
  if (len > 0) vsnprintf(text, (size_t)len + 1, fmt, args);
  va_end(args);
  return text;
}
