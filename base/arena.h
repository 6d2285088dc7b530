/* arena.h: memory that dies at once. Graphs, passes, parsers and compile jobs live in arenas.
 *
 * Nothing in an arena needs a destructor. Allocation from an arena never returns NULL: when memory
 * is short it jumps to the kiln_arena_run that is under way, which returns kiln_status_oom(), or
 * what the thread's budget says. So code that works on arenas has no error paths for memory, under
 * one rule: between acquiring something an arena does not own (a tensor, a file, a lock, a status)
 * and handing it to its owner, do not allocate from an arena. The failing allocator of the tests
 * keeps that rule.
 *
 * An arena belongs to one thread at a time. Sanitizer builds poison free space. */
#ifndef KILN_BASE_ARENA_H
#define KILN_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/status.h"

typedef struct kiln_arena kiln_arena;

kiln_status *kiln_arena_create(kiln_mem *mem, kiln_arena **out_arena) KILN_MUST_USE;
/* Frees the arena, everything in it and its children. NULL is fine. */
void kiln_arena_destroy(kiln_arena *arena);
/* A child shares its parent's handler and dies with it or earlier; made inside kiln_arena_run. */
kiln_arena *kiln_arena_create_child(kiln_arena *parent);
/* Forgets everything in the arena, and keeps its blocks, up to some MiB. */
void kiln_arena_reset(kiln_arena *arena);
size_t kiln_arena_bytes(const kiln_arena *arena);
kiln_mem *kiln_arena_mem(const kiln_arena *arena);

/* Runs body(arg) so that allocation from `arena` and its children may fail: returns what body
 * returns, or the out-of-memory status, or KILN_LIMIT or KILN_CANCELLED of the budget. Runs may
 * nest, on one arena or several; the innermost run that covers the failing arena is returned from.
 * `arena` NULL covers all: for whoever calls hooks that allocate from arenas of their own, and has
 * to clean up behind them. Children made inside it live until their parent dies. Outside of any
 * run, an allocation that fails is a fault of ours and stops the program. */
kiln_status *kiln_arena_run(kiln_arena *arena, kiln_status *(*body)(void *arg),
                            void *arg) KILN_MUST_USE;

/* Zeroed, aligned to 16 (or `align`, a power of two up to 64). */
void *kiln_arena_alloc(kiln_arena *arena, size_t size)
    __attribute__((returns_nonnull, alloc_size(2)));
void *kiln_arena_alloc_aligned(kiln_arena *arena, size_t size, size_t align)
    __attribute__((returns_nonnull, alloc_size(2)));
/* Jumps as a failed allocation does: for code that works on an arena and ran out of memory
 * elsewhere, or was asked for a size that cannot be. */
_Noreturn void kiln_arena_fail(const kiln_arena *arena);
/* The same with a status (taken) of what failed. */
_Noreturn void kiln_arena_fail_with(const kiln_arena *arena, kiln_status *status);
/* One more item of a loop that may be long and need not allocate: now and then the thread's budget
 * (budget.h) is asked, as whenever the arena needs a block. When it is over the run that covers the
 * arena is returned from, with what the budget says; outside of any run nothing happens. */
void kiln_arena_step(kiln_arena *arena);
/* `count` elements of `size` bytes; a product that overflows is out of memory. */
static inline void *kiln_arena_alloc_array(kiln_arena *arena, size_t size, size_t count) {
  size_t bytes;
  if (__builtin_mul_overflow(size, count, &bytes)) kiln_arena_fail(arena);
  return kiln_arena_alloc(arena, bytes);
}
void *kiln_arena_copy(kiln_arena *arena, const void *data, size_t size)
    __attribute__((returns_nonnull));
char *kiln_arena_strdup(kiln_arena *arena, const char *text) __attribute__((returns_nonnull));
char *kiln_arena_strndup(kiln_arena *arena, const char *text, size_t len)
    __attribute__((returns_nonnull));
char *kiln_arena_printf(kiln_arena *arena, const char *fmt, ...) KILN_PRINTF(2, 3)
    __attribute__((returns_nonnull));

#define KILN_NEW(arena, type) ((type *)kiln_arena_alloc((arena), sizeof(type)))
#define KILN_NEW_ARRAY(arena, type, n) \
  ((type *)kiln_arena_alloc_array((arena), sizeof(type), (size_t)(n)))

#endif
