/* pool.h: threads for ranges and tasks: one kiln_pool, shared by the contexts that are given it.
 *
 * A range is work on [0, n) that can be cut anywhere: kiln_pool_for gives pieces of it to the
 * caller and to the pool's threads and returns when all is done. A task is one function: submitted,
 * it runs on a thread of the pool, or on the thread that waits for it if none has begun it.
 *
 * Threads: everything here may be called by several threads at once, and from inside ranges and
 * tasks. One range at a time has the pool's threads; a range that comes while another has them, or
 * from inside a range, runs whole on its calling thread, so nothing ever waits for the pool to
 * become free and nesting cannot deadlock. The pool's threads start with the first range or task
 * that is worth one; where one cannot be started the pool goes on with fewer. A caller does all
 * work that no thread takes: it never waits for a thread to wake up.
 *
 * Results must not depend on how a range was cut: the pieces follow from timing.
 *
 * A range is worked for under the budget of its caller's thread (budget.h), on all threads: where
 * that can end, pieces are made short, and when it is over what is left is not worked on. The
 * results are then worth nothing; whoever has the budget sees that nobody takes them for some.
 *
 * fork(): the pool's threads stay with the parent; in the child, ranges and tasks run whole on the
 * thread that asks (tasks submitted before the fork stay the parent's). The public part (create,
 * release) is in include/kiln/kiln.h. */
#pragma once

#include "base/status.h"

/* At most so many threads, callers included (the flag `threads` has the same bound). */
enum { KILN_POOL_MAX_THREADS = 1024 };

void kiln_pool_retain(kiln_pool *pool);

/* -- Ranges -- */

/* Works on [begin, end). `worker` is below kiln_pool_threads and differs between the pieces of one
 * range that run at the same time: the index of a scratch block that belongs to this range. */
typedef void (*kiln_range_fn)(void *data, int64_t begin, int64_t end, int worker);

/* Runs `fn` over [0, n), every index exactly once, in pieces of at least `grain` (n itself where n
 * is smaller), and returns when all have returned; what they wrote is then visible. Pieces begin at
 * multiples of the greatest power of two that divides the grain, or of 64 where that is greater:
 * rows of elements stay aligned. The grain should be worth 1 us or more: a fork and join costs
 * about 0.4 us while the threads are awake and several us when they sleep. pool NULL, or n below
 * two grains: on the calling thread, as worker 0, and in one piece where no budget can end. n <= 0
 * does nothing. */
void kiln_pool_for(kiln_pool *pool, int64_t n, int64_t grain, kiln_range_fn fn, void *data);

/* -- Tasks -- */

typedef void (*kiln_task_fn)(void *data);

/* Lives at its owner's, from kiln_pool_submit until kiln_pool_wait has returned. */
typedef struct kiln_task {
  kiln_task_fn fn;
  void *data;
  bool lone;                     /* it waits for no task but those that it submits itself */
  uint32_t state;                /* atomic */
  struct kiln_task *prev, *next; /* in the queue, under the pool's lock */
} kiln_task;

/* Hands `task` over, its fn, data and lone set. pool NULL: it runs here and now. */
void kiln_pool_submit(kiln_pool *pool, kiln_task *task);
/* Returns when the task has run, and runs it on this thread if nobody has begun it. While another
 * thread runs it, this one takes queued tasks that are `lone`; any other could wait for what stands
 * below it on this stack. Every task is waited for, by any number of threads, before its memory
 * goes. */
void kiln_pool_wait(kiln_pool *pool, kiln_task *task);
/* True when the task has run. */
bool kiln_task_done(const kiln_task *task);

/* -- For tests -- */

/* Threads that run now (0 before the first use; the callers are not counted). */
int kiln__pool_started(const kiln_pool *pool);
/* From now on starting a thread fails when `limit` have been started; -1: no limit. */
void kiln__pool_limit_start(kiln_pool *pool, int limit);
