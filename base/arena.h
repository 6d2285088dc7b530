/* arena.h: memory that dies at once. Graphs, passes, parsers and compile jobs live in arenas.
 *
 * Nothing in an arena needs a destructor. Allocation from an arena never returns NULL: when memory
 * is short, or the thread's budget is over, the thread's innermost scope (scope.h) is left, which
 * answers with kiln_status_oom() or what the budget says. So code that works on arenas has no error
 * paths for memory.
 *
 * An arena belongs to one thread at a time. Sanitizer builds poison free space. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/scope.h"
#include "base/str.h"

typedef struct kiln_arena kiln_arena;

/* For whoever owns it for longer than a scope. */
kiln_status *kiln_arena_create(kiln_mem *mem, kiln_arena **out_arena) KILN_MUST_USE;
/* One that is a cleanup of the innermost scope, and never NULL: it dies with the scope if it is not
 * destroyed before, or kept. */
kiln_arena *kiln_arena_scoped(kiln_mem *mem) __attribute__((returns_nonnull));
/* From now on its owner destroys it. */
void kiln_arena_keep(kiln_arena *arena);
/* Frees the arena and everything in it. NULL is fine. */
void kiln_arena_destroy(kiln_arena *arena);
/* Forgets everything in the arena, and keeps its blocks, up to some MiB. */
void kiln_arena_reset(kiln_arena *arena);
size_t kiln_arena_bytes(const kiln_arena *arena);
kiln_mem *kiln_arena_mem(const kiln_arena *arena);

/* Zeroed, aligned to 16 (or `align`, a power of two up to 64). */
void *kiln_arena_alloc(kiln_arena *arena, size_t size)
    __attribute__((returns_nonnull, alloc_size(2)));
void *kiln_arena_alloc_aligned(kiln_arena *arena, size_t size, size_t align)
    __attribute__((returns_nonnull, alloc_size(2)));
/* One more item of a loop that may be long and need not allocate: now and then the thread's budget
 * (budget.h) is asked, as whenever the arena needs a block. When it is over the scope is left with
 * what the budget says; outside of any scope nothing happens. */
void kiln_arena_step(kiln_arena *arena);
/* `count` elements of `size` bytes; a product that overflows is out of memory. */
static inline void *kiln_arena_alloc_array(kiln_arena *arena, size_t size, size_t count) {
  size_t bytes;
  if (__builtin_mul_overflow(size, count, &bytes)) kiln_scope_oom();
  return kiln_arena_alloc(arena, bytes);
}
void *kiln_arena_copy(kiln_arena *arena, const void *data, size_t size)
    __attribute__((returns_nonnull));
char *kiln_arena_strdup(kiln_arena *arena, const char *text) __attribute__((returns_nonnull));
/* A copy, terminated. */
kiln_str kiln_arena_str(kiln_arena *arena, kiln_str text);
char *kiln_arena_printf(kiln_arena *arena, const char *fmt, ...) KILN_PRINTF(2, 3)
    __attribute__((returns_nonnull));

#define KILN_NEW(arena, type) ((type *)kiln_arena_alloc((arena), sizeof(type)))
#define KILN_NEW_ARRAY(arena, type, n) \
  ((type *)kiln_arena_alloc_array((arena), sizeof(type), (size_t)(n)))
