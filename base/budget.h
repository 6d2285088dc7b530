/* budget.h: resource budgets: memory, time and operations that a load, a call or a job may use.
 *
 * Whatever a file, a program or a call can make large is done under a kiln_budget: a load, a call,
 * a compile job. It is handed on where that is natural (a call has its own, a loader too); for the
 * rest it is the thread's: between kiln_budget_enter and kiln_budget_leave, arenas ask it whenever
 * they need a block and at every kiln_arena_step, and leave the thread's scope (scope.h) with
 * KILN_LIMIT or KILN_CANCELLED; pools ask it between the pieces of a range, on every thread that
 * works for it, and leave out what is left. So code on arenas and ranges has nothing to do but
 * for this rule: no step over more than some thousand items without one of these.
 *
 * What a range has left out is noticed by the interpreter after the operator, and by
 * kiln_budget_check everywhere else: nobody reads results before.
 *
 * Memory is what the kiln_mem holds beyond what it held at the start, so that work of one context
 * at the same time counts for each other; jobs beside calls (job_queue.h) do not. Pages of a mapped
 * file are not memory in this sense.
 *
 * Threads: a budget belongs to one thread, but for kiln_budget_is_over, which others may ask. */
#pragma once

#include "base/mem.h"

typedef struct kiln_budget {
  const char *what;          /* "the call", "the load": how its sentences begin; static */
  kiln_mem *mem;             /* borrowed; NULL: `charged` counts instead */
  const kiln_cache *cache;   /* whose free blocks do not count; NULL: none */
  size_t held_at_start;      /* in `mem`; where `bytes` is a limit */
  uint64_t charged;          /* bytes of arenas' blocks that were taken under it */
  uint64_t bytes;            /* 0: no limit */
  uint64_t operations;       /* 0: no limit */
  uint64_t deadline_ns;      /* of kiln_now_ns; 0: none */
  uint32_t time_ms;          /* that the deadline came from */
  const kiln_cancel *cancel; /* borrowed; NULL: nobody cancels */
  bool is_quick, has_left;   /* what needs a compiler is not begun, and was left */
  uint64_t done;             /* operations, those that `fuel` was granted for left out */
  int64_t grant;             /* fuel between two looks */
  int64_t granted, fuel;     /* see kiln_budget_burn */
  bool over;                 /* atomic: the deadline has passed or the host has cancelled */
} kiln_budget;

/* Nanoseconds of the monotonic clock. */
uint64_t kiln_now_ns(void);

/* From now on; `limits` may be NULL: none. `what` is kept. */
void kiln_budget_begin(kiln_budget *budget, const char *what, kiln_mem *mem,
                       const kiln_limits *limits);
/* Bytes that are held now beyond the start. */
uint64_t kiln_budget_bytes(const kiln_budget *budget);
uint64_t kiln_budget_operations(const kiln_budget *budget);

/* KILN_LIMIT when the time is over, or what is held and `more` bytes are too much; KILN_CANCELLED.
 * NULL is fine. Some 30 ns where there is a deadline. */
kiln_status *kiln_budget_check(const kiln_budget *budget, uint64_t more) KILN_MUST_USE;
/* `more` bytes alone: neither clock nor cancelling. */
kiln_status *kiln_budget_room(const kiln_budget *budget, uint64_t more) KILN_MUST_USE;
/* The same as _check, after `operations` more, which are counted. */
kiln_status *kiln_budget_work(kiln_budget *budget, uint64_t operations) KILN_MUST_USE;
/* Whether time or patience is over; stays true. NULL is not over. */
bool kiln_budget_is_over(kiln_budget *budget);
/* Whether kiln_budget_is_over can ever be true. */
static inline bool kiln_budget_may_end(const kiln_budget *budget) {
  return budget && (budget->deadline_ns || budget->cancel);
}

/* One operation. False: kiln_budget_work(budget, 0) is to be asked, which grants fuel for some
 * more. What an operation's range has left out takes the fuel away. */
static inline bool kiln_budget_burn(kiln_budget *budget) { return --budget->fuel >= 0; }
/* Looks at the limits `operations` sooner; they are not counted. */
static inline void kiln_budget_skip(kiln_budget *budget, int64_t operations) {
  const int64_t most = budget->fuel > 0 ? budget->fuel : 0;
  const int64_t taken = operations < most ? operations : most;
  budget->fuel -= taken;
  budget->granted -= taken;
}
/* After a range: takes the fuel if something was left out. Of a range within a range, on any thread
 * that works for it: all of them store the same. */
static inline void kiln_budget_settle(kiln_budget *budget) {
  if (__atomic_load_n(&budget->over, __ATOMIC_RELAXED)) {
    __atomic_store_n(&budget->fuel, 0, __ATOMIC_RELAXED);
  }
}

/* For tests: asked at the n-th look from now on (from 1), whoever looks; 0: by kiln_call_cancel
 * alone. */
void kiln_cancel_at_look(kiln_cancel *cancel, uint64_t n);

/* -- The thread's budget -- */

/* NULL: none. */
kiln_budget *kiln_budget_current(void);
/* Between two blocks of a kernel's long loop, on any thread that works for the budget: whether the
 * rest is left out. Nobody reads what it has made then, but for what a later loop would take for an
 * index: that asks kiln_budget_check in between. */
bool kiln_budget_leaves_out(void);
/* Items of such a loop between two of these looks: some 0.1 ms. */
enum { KILN_BUDGET_ITEMS = 1 << 16 };
/* Before each row, or each item that takes long: `work` items are about to be done of the *left
 * (KILN_BUDGET_ITEMS at first) that need no look. Whether they are left out, with the rest. */
static inline bool kiln_budget_spent(int64_t *left, int64_t work) {
  if (__builtin_expect((*left -= work) > 0, 1)) return false;
  const bool over = kiln_budget_leaves_out();
  *left = over ? 0 : KILN_BUDGET_ITEMS; /* over: so is every loop that counts with it */
  return over;
}
/* A loop over [0, n) in pieces: where that which begins at `begin` ends; `begin` itself at the end,
 * or where the rest is left out.
 *   for (int64_t i = 0, end; (end = kiln_budget_piece(i, n)) > i;) {
 *     for (; i < end; i++) ... */
static inline int64_t kiln_budget_piece(int64_t begin, int64_t n) {
  if (begin > 0 && (begin >= n || kiln_budget_leaves_out())) return begin;
  return n - begin < KILN_BUDGET_ITEMS ? n : begin + KILN_BUDGET_ITEMS;
}
/* `budget` (NULL: none) is the thread's until it is left, with what was returned here. */
kiln_budget *kiln_budget_enter(kiln_budget *budget) KILN_MUST_USE;
void kiln_budget_leave(kiln_budget *outer);
/* Where the thread's budget stands, for a call, which enters and leaves with one look-up. */
kiln_budget **kiln_budget_place(void);
