/* pool.c: a work-stealing thread pool: ranges over a futex, and a queue of tasks.
 *
 * All threads watch one word, the gate. It holds an OPEN bit while a range is out, the number of
 * threads inside, a JOIN bit while the caller sleeps until they are out, and a generation, which
 * every range and every task raises. A thread enters an open gate by one compare-and-swap of the
 * whole word, takes pieces, and leaves. The caller closes the gate when nothing is left to take and
 * waits only for those inside: a thread that sleeps, or that a fork() left behind, delays nobody.
 *
 * Why there is a generation. Worker A finds the gate closed and is about to sleep on the value that
 * it read. Thread B submits a task and sends the wake-up, which finds nobody asleep. Had the gate
 * its old value, A would sleep through the task; B has raised the generation before, so A's wait
 * returns at once. Likewise, A reads an open gate and is preempted before its swap; caller C closes
 * the gate and opens it for another range, with another function. A's swap meets another generation
 * and fails, and A reads again.
 *
 * The range is cut into one slice a participant, so that repeated ranges find their data in the
 * same core's cache; each takes a quarter of what is left of its own slice, then of the others'
 * (guided self-scheduling, Polychronopoulos and Kuck 1987, with stealing), in quanta of at least a
 * grain.
 *
 * Idle threads pause SPINS times (0.2 to 0.4 ms, longer than a network's serial stretches), which
 * keeps a fork-join at 0.4 us, then sleep on the gate; with fewer cores than threads they do not
 * spin. Other systems than Linux sleep on a condition. */
#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/abi.h"
#include "base/budget.h"
#include "base/cpu.h"
#include "base/futex.h"
#include "base/thread.h"

enum { SPINS = 8000, LINE = 64 };
/* Quanta for each participant that are so few that one too many would be felt. */
enum { FEW_QUANTA = 8, ALIGN_MOST = 64 };
/* Under a budget: when a piece is long enough. */
enum { PIECE_NS = 1000000 };

/* The gate. */
#define USERS 0xffffu
#define JOIN 0x10000u
#define OPEN 0x20000u
#define GENERATION 0x40000u /* the lowest of its bits; the highest overflows into nothing */

/* Whom a wake-up on the gate is for. */
enum { WAKE_WORKERS = 1, WAKE_JOINER = 2 };

enum { TASK_QUEUED, TASK_RUNNING, TASK_WAITED, TASK_DONE };

typedef struct worker {
  kiln_pool *pool;
  int index; /* from 1; the caller of a range is 0 */
  pthread_t thread;
} worker;

struct kiln_pool {
  int refs;
  int threads;
  kiln_host_executor executor; /* run NULL: threads of our own */
  int spins;
  bool ready;           /* threads were started, as many as could be; set under `lock` */
  pid_t owner;          /* process that started them: a fork's child has none. Before `ready` */
  int started;          /* written under `lock`, before `ready` */
  int start_limit;      /* for tests */
  worker *workers;      /* [threads - 1] */
  pthread_mutex_t lock; /* of the starting of threads and of the queue */
  kiln_task *first, *last;

  _Alignas(LINE) uint32_t gate;
  uint32_t sleepers; /* threads that sleep on the gate, or are about to */
  uint32_t queued;   /* tasks in the queue */
  bool stop;
  bool busy; /* a caller has the range below */
  kiln_futex futex;

  /* The range that is out. Written by the caller that holds `busy`, before it opens the gate.
   * slices[i] is what is left of participant i's part, in quanta: next in the low half, end in the
   * high. With few threads all of it is one cache line, and one miss for whoever comes. */
  _Alignas(LINE) kiln_range_fn fn;
  void *data;
  kiln_budget *budget;              /* of the caller; NULL: it cannot end */
  int64_t n, grain, align, quantum; /* quantum: in multiples of align */
  uint32_t quanta, longer;
  int slice_count;
  uint64_t slices[]; /* [threads], atomic */
};

/* -- Ranges -- */

/* The next piece of a slice, in quanta; false when it is empty. */
static bool take_quanta(uint64_t *slice, uint32_t *out_begin, uint32_t *out_end) {
  uint64_t left = __atomic_load_n(slice, __ATOMIC_RELAXED);
  for (;;) {
    uint32_t next = (uint32_t)left, end = (uint32_t)(left >> 32);
    if (next >= end) return false;
    uint32_t count = (end - next + 3) / 4;
    uint64_t rest = (uint64_t)end << 32 | (next + count);
    if (__atomic_compare_exchange_n(slice, &left, rest, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      *out_begin = next;
      *out_end = next + count;
      return true;
    }
  }
}

/* Where a quantum begins: the first `longer` of them are longer by one align, the last has the
 * rest. */
static int64_t first_of(const kiln_pool *pool, uint32_t quantum) {
  if (quantum == pool->quanta) return pool->n;
  return ((int64_t)quantum * pool->quantum + (quantum < pool->longer ? quantum : pool->longer)) *
         pool->align;
}

/* fn over [begin, end), under a budget in pieces of some ms: they begin with a grain, which may be
 * dear, and double while they are shorter. */
static void run_piece(kiln_range_fn fn, void *data, int64_t begin, int64_t end, int64_t grain,
                      int index, kiln_budget *budget) {
  if (!budget) {
    fn(data, begin, end, index);
    return;
  }
  int64_t count = grain;
  uint64_t last = kiln_now_ns();
  while (begin < end && !kiln_budget_is_over(budget)) {
    int64_t left = end - begin, size = left - grain > count ? count : left;
    fn(data, begin, begin + size, index);
    begin += size;
    uint64_t now = kiln_now_ns();
    if (now - last < PIECE_NS && count <= INT64_MAX / 2) count *= 2;
    last = now;
  }
}

/* Takes pieces until none is left: first those of its own slice. */
static void run_pieces(kiln_pool *pool, int index) {
  kiln_budget *outer = kiln_budget_enter(pool->budget);
  int count = pool->slice_count;
  for (int i = 0; i < count; i++) {
    uint64_t *slice = &pool->slices[(index + i) % count];
    uint32_t begin, end;
    while (take_quanta(slice, &begin, &end)) {
      run_piece(pool->fn, pool->data, first_of(pool, begin), first_of(pool, end), pool->grain,
                index, pool->budget);
    }
  }
  kiln_budget_leave(outer);
}

/* As an executor's piece: which thread runs it is the host's affair. */
static void run_executor_piece(void *data, int index) { run_pieces(data, index); }

/* Equal quanta of at least a grain each; where there are few, as many for each participant. */
static void set_range(kiln_pool *pool, int64_t n, int64_t grain, kiln_range_fn fn, void *data) {
  int64_t align = grain & -grain;
  if (align > ALIGN_MOST) align = ALIGN_MOST;
  int64_t quanta = n / grain < INT32_MAX ? n / grain : INT32_MAX;
  int count = quanta < pool->threads ? (int)quanta : pool->threads;
  if (quanta < FEW_QUANTA * (int64_t)count) quanta -= quanta % count;
  pool->fn = fn;
  pool->data = data;
  pool->n = n;
  pool->grain = grain;
  pool->align = align;
  pool->quantum = n / align / quanta;
  pool->longer = (uint32_t)(n / align % quanta);
  pool->quanta = (uint32_t)quanta;
  pool->slice_count = count;
  for (int i = 0; i < count; i++) {
    uint64_t begin = (uint64_t)(quanta * i / count), end = (uint64_t)(quanta * (i + 1) / count);
    __atomic_store_n(&pool->slices[i], end << 32 | begin, __ATOMIC_RELAXED);
  }
}

static inline void pause_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/* The gate is closed: waits until nobody is inside. */
static void join(kiln_pool *pool, uint32_t gate) {
  for (int i = 0; (gate & USERS) && i < pool->spins; i++) {
    pause_cpu();
    gate = __atomic_load_n(&pool->gate, __ATOMIC_ACQUIRE);
  }
  if ((gate & USERS) == 0) return;
  gate = __atomic_or_fetch(&pool->gate, JOIN, __ATOMIC_ACQ_REL);
  while (gate & USERS) {
    kiln__futex_wait(&pool->futex, &pool->gate, gate, WAKE_JOINER);
    gate = __atomic_load_n(&pool->gate, __ATOMIC_ACQUIRE);
  }
  __atomic_and_fetch(&pool->gate, ~JOIN, __ATOMIC_RELAXED);
}

static void leave(kiln_pool *pool) {
  uint32_t gate = __atomic_sub_fetch(&pool->gate, 1, __ATOMIC_ACQ_REL);
  if ((gate & USERS) == 0 && (gate & JOIN)) {
    kiln__futex_wake(&pool->futex, &pool->gate, 1, WAKE_JOINER);
  }
}

/* After the gate has changed: wakes threads that did not see it. */
static void wake_workers(kiln_pool *pool, int count) {
  if (__atomic_load_n(&pool->sleepers, __ATOMIC_SEQ_CST) > 0) {
    kiln__futex_wake(&pool->futex, &pool->gate, count, WAKE_WORKERS);
  }
}

static void start_all(kiln_pool *pool);

static inline void start_threads(kiln_pool *pool) {
  if (__builtin_expect(!__atomic_load_n(&pool->ready, __ATOMIC_ACQUIRE), 0)) start_all(pool);
}

/* Whether the threads are not this process's but its parent's. After start_threads. */
static inline bool is_forked(const kiln_pool *pool) { return pool->owner != getpid(); }

static void run_range(kiln_pool *pool) {
  if (KILN__FUTEX_LOCKS && is_forked(pool)) {
    run_pieces(pool, 0);
    return;
  }
  __atomic_add_fetch(&pool->gate, GENERATION + OPEN, __ATOMIC_SEQ_CST);
  wake_workers(pool, pool->slice_count - 1);
  run_pieces(pool, 0);
  join(pool, __atomic_and_fetch(&pool->gate, ~OPEN, __ATOMIC_ACQ_REL));
}

void kiln_pool_for(kiln_pool *pool, int64_t n, int64_t grain, kiln_range_fn fn, void *data) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  kiln_budget *own = kiln_budget_current(), *budget = kiln_budget_may_end(own) ? own : NULL;
  if (!pool || pool->threads < 2 || n / 2 < grain ||
      __atomic_exchange_n(&pool->busy, true, __ATOMIC_ACQUIRE)) {
    if (!budget) {
      fn(data, 0, n, 0);
      return;
    }
    run_piece(fn, data, 0, n, grain, 0, budget);
    kiln_budget_settle(budget);
    return;
  }
  set_range(pool, n, grain, fn, data);
  pool->budget = budget;
  if (pool->executor.run) {
    pool->executor.run(pool->executor.user, pool->slice_count, run_executor_piece, pool);
  } else {
    start_threads(pool);
    run_range(pool);
  }
  __atomic_store_n(&pool->busy, false, __ATOMIC_RELEASE);
  if (budget) kiln_budget_settle(budget);
}

/* -- Tasks -- */

static void unlink_task(kiln_pool *pool, kiln_task *task) {
  *(task->prev ? &task->prev->next : &pool->first) = task->next;
  *(task->next ? &task->next->prev : &pool->last) = task->prev;
  __atomic_sub_fetch(&pool->queued, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&task->state, TASK_RUNNING, __ATOMIC_RELAXED);
}

/* The task may be gone as soon as its state is DONE: whoever waits frees it. */
static void run_task(kiln_pool *pool, kiln_task *task) {
  task->fn(task->data);
  if (__atomic_exchange_n(&task->state, TASK_DONE, __ATOMIC_ACQ_REL) == TASK_WAITED) {
    kiln__futex_wake(&pool->futex, &task->state, INT32_MAX, WAKE_WORKERS);
  }
}

static bool run_queued_task(kiln_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  kiln_task *task = pool->first;
  if (task) unlink_task(pool, task);
  pthread_mutex_unlock(&pool->lock);
  if (task) run_task(pool, task);
  return task != NULL;
}

/* Whether a task may go to the queue: there are threads, and they are this process's. */
static bool has_threads(kiln_pool *pool) {
  if (!pool || pool->threads < 2 || pool->executor.run) return false;
  start_threads(pool);
  return pool->started > 0 && !is_forked(pool);
}

void kiln_pool_submit(kiln_pool *pool, kiln_task *task) {
  if (!has_threads(pool)) {
    task->fn(task->data);
    __atomic_store_n(&task->state, TASK_DONE, __ATOMIC_RELEASE);
    return;
  }
  __atomic_store_n(&task->state, TASK_QUEUED, __ATOMIC_RELAXED);
  pthread_mutex_lock(&pool->lock);
  task->next = NULL;
  task->prev = pool->last;
  *(pool->last ? &pool->last->next : &pool->first) = task;
  pool->last = task;
  __atomic_add_fetch(&pool->queued, 1, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&pool->lock);
  __atomic_add_fetch(&pool->gate, GENERATION, __ATOMIC_SEQ_CST);
  wake_workers(pool, 1);
}

bool kiln_task_done(const kiln_task *task) {
  return __atomic_load_n(&task->state, __ATOMIC_ACQUIRE) == TASK_DONE;
}

/* How many tasks this thread has taken while it waited: one inside another would let its stack
 * grow with the queue. */
static _Thread_local int helping;

/* Runs a lone task from the queue; false when there is none. */
static bool help(kiln_pool *pool) {
  if (helping > 0 || __atomic_load_n(&pool->queued, __ATOMIC_RELAXED) == 0) return false;
  pthread_mutex_lock(&pool->lock);
  kiln_task *task = pool->first;
  while (task && !task->lone) task = task->next;
  if (task) unlink_task(pool, task);
  pthread_mutex_unlock(&pool->lock);
  if (!task) return false;
  helping++;
  run_task(pool, task);
  helping--;
  return true;
}

void kiln_pool_wait(kiln_pool *pool, kiln_task *task) {
  if (kiln_task_done(task)) return;
  pthread_mutex_lock(&pool->lock);
  bool ours = __atomic_load_n(&task->state, __ATOMIC_RELAXED) == TASK_QUEUED;
  if (ours) unlink_task(pool, task);
  pthread_mutex_unlock(&pool->lock);
  if (ours) {
    run_task(pool, task);
    return;
  }
  while (!kiln_task_done(task) && help(pool)) continue;
  for (int i = 0; i < pool->spins; i++) {
    if (kiln_task_done(task)) return;
    pause_cpu();
  }
  for (;;) {
    uint32_t state = TASK_RUNNING;
    __atomic_compare_exchange_n(&task->state, &state, TASK_WAITED, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    if (state == TASK_DONE) return;
    kiln__futex_wait(&pool->futex, &task->state, TASK_WAITED, WAKE_WORKERS);
  }
}

/* -- Threads -- */

/* Enters the gate if it is open with a generation that this thread has not seen to the end. */
static bool try_enter(kiln_pool *pool, uint32_t *seen) {
  uint32_t gate = __atomic_load_n(&pool->gate, __ATOMIC_ACQUIRE);
  while ((gate & OPEN) && gate / GENERATION != *seen) {
    if (__atomic_compare_exchange_n(&pool->gate, &gate, gate + 1, true, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      *seen = gate / GENERATION;
      return true;
    }
  }
  return false;
}

static bool work_once(kiln_pool *pool, int index, uint32_t *seen) {
  if (try_enter(pool, seen)) {
    run_pieces(pool, index);
    leave(pool);
    return true;
  }
  return __atomic_load_n(&pool->queued, __ATOMIC_RELAXED) > 0 && run_queued_task(pool);
}

/* Sleeps unless something has come since `gate` was read. */
static void sleep_on_gate(kiln_pool *pool, const uint32_t *seen) {
  __atomic_add_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
  uint32_t gate = __atomic_load_n(&pool->gate, __ATOMIC_SEQ_CST);
  bool idle = !((gate & OPEN) && gate / GENERATION != *seen) &&
              __atomic_load_n(&pool->queued, __ATOMIC_RELAXED) == 0 &&
              !__atomic_load_n(&pool->stop, __ATOMIC_RELAXED);
  if (idle) kiln__futex_wait(&pool->futex, &pool->gate, gate, WAKE_WORKERS);
  __atomic_sub_fetch(&pool->sleepers, 1, __ATOMIC_SEQ_CST);
}

static void *run_worker(void *arg) {
  const worker *w = arg;
  kiln_pool *pool = w->pool;
  uint32_t seen = UINT32_MAX; /* no generation has this number */
  int spins = 0;
  while (!__atomic_load_n(&pool->stop, __ATOMIC_ACQUIRE)) {
    if (work_once(pool, w->index, &seen)) {
      spins = 0;
    } else if (spins < pool->spins) {
      spins++;
      pause_cpu();
    } else {
      sleep_on_gate(pool, &seen);
      spins = 0;
    }
  }
  return NULL;
}

static int start_one(kiln_pool *pool, worker *w) {
  if (pool->start_limit >= 0 && pool->started >= pool->start_limit) return EAGAIN;
  return kiln__thread_start(&w->thread, run_worker, w);
}

/* Once: after a failure the pool stays with those that it has. */
static void start_all(kiln_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  if (!pool->ready) {
    pool->owner = getpid();
    for (; pool->started < pool->threads - 1; pool->started++) {
      worker *w = &pool->workers[pool->started];
      *w = (worker){.pool = pool, .index = pool->started + 1};
      if (start_one(pool, w) != 0) break;
    }
    __atomic_store_n(&pool->ready, true, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&pool->lock);
}

int kiln__pool_started(const kiln_pool *pool) {
  return __atomic_load_n(&pool->ready, __ATOMIC_ACQUIRE) ? pool->started : 0;
}

void kiln__pool_limit_start(kiln_pool *pool, int limit) { pool->start_limit = limit; }

/* -- Life -- */

static kiln_status *create(int threads, const kiln_host_executor *executor, kiln_pool **out_pool) {
  size_t count = (size_t)threads;
  size_t bytes = sizeof(kiln_pool) + count * sizeof(uint64_t);
  kiln_pool *pool = aligned_alloc(LINE, (bytes + LINE - 1) & ~(size_t)(LINE - 1));
  worker *workers = calloc(count, sizeof *workers);
  if (!pool || !workers) {
    free(pool);
    free(workers);
    return kiln_status_oom();
  }
  *pool = (kiln_pool){.refs = 1,
                      .threads = threads,
                      .spins = threads <= kiln_cpu_count(false) ? SPINS : 0,
                      .workers = workers,
                      .start_limit = -1};
  if (executor) pool->executor = *executor;
  pthread_mutex_init(&pool->lock, NULL);
  kiln__futex_init(&pool->futex);
  *out_pool = pool;
  return NULL;
}

kiln_status *kiln_pool_create(int threads, kiln_pool **out_pool) {
  KILN_NEEDS(out_pool);
  *out_pool = NULL;
  if (threads < 0 || threads > KILN_POOL_MAX_THREADS) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "a pool has 0 to %d threads, not %d",
                      KILN_POOL_MAX_THREADS, threads);
  }
  if (threads == 0) threads = kiln_cpu_count(true);
  return create(threads, NULL, out_pool);
}

kiln_status *kiln_pool_create_over(const kiln_host_executor *given, kiln_pool **out_pool) {
  KILN_NEEDS(out_pool);
  kiln_host_executor read, *executor = &read;
  *out_pool = NULL;
  KILN_ABI_READ(kiln_host_executor, given, executor);
  if (!executor->run || executor->threads < 1 || executor->threads > KILN_POOL_MAX_THREADS) {
    return KILN_ERROR(KILN_INVALID_ARGUMENT, "an executor needs a function and 1 to %d threads",
                      KILN_POOL_MAX_THREADS);
  }
  return create(executor->threads, executor, out_pool);
}

int kiln_pool_threads(const kiln_pool *pool) { return pool ? pool->threads : 1; }

void kiln_pool_retain(kiln_pool *pool) {
  if (pool) __atomic_add_fetch(&pool->refs, 1, __ATOMIC_RELAXED);
}

static void stop_threads(kiln_pool *pool) {
  KILN_ASSERT(!pool->first && !pool->busy);
  __atomic_store_n(&pool->stop, true, __ATOMIC_RELEASE);
  __atomic_add_fetch(&pool->gate, GENERATION, __ATOMIC_SEQ_CST);
  kiln__futex_wake(&pool->futex, &pool->gate, INT32_MAX, WAKE_WORKERS);
  for (int i = 0; i < pool->started; i++) pthread_join(pool->workers[i].thread, NULL);
}

void kiln_pool_release(kiln_pool *pool) {
  if (!pool || __atomic_sub_fetch(&pool->refs, 1, __ATOMIC_ACQ_REL) > 0) return;
  bool forked = pool->started > 0 && is_forked(pool);
  if (!forked) { /* else the parent's threads, as copied, still hold or await these */
    if (pool->started > 0) stop_threads(pool);
    kiln__futex_deinit(&pool->futex);
    pthread_mutex_destroy(&pool->lock);
  }
  free(pool->workers);
  free(pool);
}
