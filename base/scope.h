/* scope.h: protected calls: where lack of memory, and the end of a budget, are caught.
 *
 * A scope is entered where work begins that may fail for memory: at an API entry, a load, a compile
 * job. Inside, arenas (arena.h) and type tables never answer NULL: what fails leaves the scope,
 * from however deep, and the scope answers with a status. So inner code is plain C, under one rule:
 * what an arena does not own (a lock, a tensor, a file) is held by somebody who outlives the scope,
 * or by a cleanup of the scope. Cleanups run when the scope is left either way, the latest first;
 * arenas made by kiln_arena_scoped are such. The failing allocator of the tests keeps that rule.
 *
 *   static kiln_status *read_file(reader *r) { KILN_PROTECT(read_all(r->file, r->text)); }
 *
 * Scopes nest, and the innermost is left. That is for what must be caught: what the JIT cannot
 * compile for memory runs in the interpreter. A scope belongs to its thread.
 *
 * Locks, for example. Thread A makes a type, holds the table's lock by a cleanup, and needs memory.
 * Thread B waits for that lock. There is no memory: the cleanup gives the lock back, then A's scope
 * is left; B goes on, and finds a table without A's type. */
#pragma once

#include <setjmp.h>

#include "base/status.h"

typedef struct kiln_cleanup {
  struct kiln_cleanup *before, *after; /* in its scope, a ring; NULL: not registered */
  void (*run)(void *what);
  void *what;
} kiln_cleanup;

typedef struct kiln_scope {
  jmp_buf jump;
  kiln_status *volatile why; /* it was left by a failure; volatile, as setjmp asks */
  struct kiln_scope *outer;
  struct kiln_budget *budget; /* the thread's, which it has again afterwards */
  kiln_cleanup cleanups;      /* of the ring: before it stands the latest */
} kiln_scope;

/* The whole body of a function: returns what `call` returns, a kiln_status *, or why it failed. A
 * function of its own, since after a jump C knows no local of the function that called setjmp. */
#define KILN_PROTECT(call)                                                            \
  do {                                                                                \
    kiln_scope kiln_scope_;                                                           \
    kiln_scope_enter(&kiln_scope_);                                                   \
    if (setjmp(kiln_scope_.jump) == 0) return kiln_scope_leave(&kiln_scope_, (call)); \
    return kiln_scope_.why;                                                           \
  } while (0)

void kiln_scope_enter(kiln_scope *scope);
/* Runs the cleanups; returns `status`. */
kiln_status *kiln_scope_leave(kiln_scope *scope, kiln_status *status) KILN_MUST_USE;

/* Leaves the innermost scope with a status (taken). Without any that is a fault of ours and stops
 * the program. */
_Noreturn void kiln_scope_fail(kiln_status *why);
/* The same for lack of memory, or a size that cannot be. */
_Noreturn void kiln_scope_oom(void);

/* run(what) when the innermost scope is left. The node is the caller's, and lives for as long as it
 * is registered; without any scope nothing is registered. Must not fail. */
void kiln_scope_defer(kiln_cleanup *node, void (*run)(void *what), void *what);
/* Forgets it, from whichever scope; fine for one that is not registered. */
void kiln_scope_undefer(kiln_cleanup *node);
