/* pool_threads_test.c: ranges cover exactly once, nesting, several callers, tasks, executors,
 * few threads. */
#include "base/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/unit.h"

enum { LONGEST = 5000 };

static kiln_pool *make(int threads) {
  kiln_pool *pool = NULL;
  assert_ok(kiln_pool_create(threads, &pool));
  assert_int_equal(kiln_pool_threads(pool), threads);
  return pool;
}

/* -- Ranges -- */

typedef struct cover {
  int64_t n, grain;
  int threads;
  unsigned char seen[LONGEST]; /* atomic */
  unsigned char at_work[8];    /* by worker; atomic */
  int pieces, faults;          /* atomic */
} cover;

static void fault(cover *c) { __atomic_fetch_add(&c->faults, 1, __ATOMIC_RELAXED); }

static void mark(void *data, int64_t begin, int64_t end, int worker) {
  cover *c = data;
  if (begin < 0 || end > c->n || begin >= end || worker < 0 || worker >= c->threads) {
    fault(c);
    return;
  }
  int64_t align = c->grain & -c->grain;
  if (begin % (align < 64 ? align : 64) || end - begin < (c->n < c->grain ? c->n : c->grain))
    fault(c);
  if (__atomic_exchange_n(&c->at_work[worker], 1, __ATOMIC_ACQ_REL)) fault(c);
  for (int64_t i = begin; i < end; i++) __atomic_fetch_add(&c->seen[i], 1, __ATOMIC_RELAXED);
  __atomic_store_n(&c->at_work[worker], 0, __ATOMIC_RELEASE);
  __atomic_fetch_add(&c->pieces, 1, __ATOMIC_RELAXED);
}

static int check_cover(kiln_pool *pool, int64_t n, int64_t grain) {
  cover c = {.n = n, .grain = grain, .threads = kiln_pool_threads(pool)};
  kiln_pool_for(pool, n, grain, mark, &c);
  assert_int_equal(c.faults, 0);
  for (int64_t i = 0; i < n; i++) assert_int_equal(c.seen[i], 1);
  return c.pieces;
}

static void every_index_is_visited_once(void **state) {
  (void)state;
  static const int64_t sizes[] = {1, 2, 3, 7, 8, 63, 64, 100, 1000, 4999};
  static const int64_t grains[] = {1, 2, 3, 16, 64, 999, 5000};
  for (int threads = 1; threads <= 5; threads++) {
    kiln_pool *pool = make(threads);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
      for (size_t k = 0; k < sizeof grains / sizeof *grains; k++) {
        int pieces = check_cover(pool, sizes[i], grains[k]);
        assert_true(pieces <= (sizes[i] / grains[k] > 1 ? sizes[i] / grains[k] : 1));
        if (threads == 1 || sizes[i] < 2 * grains[k]) assert_int_equal(pieces, 1);
      }
    }
    kiln_pool_release(pool);
  }
}

static void small_and_empty_ranges_need_no_thread(void **state) {
  (void)state;
  cover c = {.n = 9, .grain = 10, .threads = 1};
  kiln_pool_for(NULL, 9, 10, mark, &c);
  assert_int_equal(c.pieces, 1);
  assert_int_equal(c.faults, 0);
  assert_int_equal(kiln_pool_threads(NULL), 1);
  kiln_pool *pool = make(3);
  kiln_pool_for(pool, 0, 1, mark, &c);
  kiln_pool_for(pool, -5, 1, mark, &c);
  assert_int_equal(c.pieces, 1);
  assert_int_equal(check_cover(pool, 19, 10), 1);
  assert_int_equal(kiln__pool_started(pool), 0); /* started at first use only */
  check_cover(pool, 20, 10);
  assert_int_equal(kiln__pool_started(pool), 2);
  kiln_pool_release(pool);
}

static void count_piece(void *data, int64_t begin, int64_t end, int worker) {
  (void)worker;
  __atomic_fetch_add((int64_t *)data, end - begin, __ATOMIC_RELAXED);
}

static void huge_ranges_have_larger_units(void **state) {
  (void)state;
  kiln_pool *pool = make(3);
  int64_t sum = 0, n = ((int64_t)1 << 40) + 12345;
  kiln_pool_for(pool, n, 1, count_piece, &sum);
  assert_int_equal(sum, n);
  kiln_pool_release(pool);
}

/* -- Nesting and several callers -- */

typedef struct nest {
  kiln_pool *pool;
  cover inner[8]; /* one for each index of the outer range */
} nest;

static void run_inner(void *data, int64_t begin, int64_t end, int worker) {
  nest *n = data;
  (void)worker;
  for (int64_t i = begin; i < end; i++) kiln_pool_for(n->pool, 1000, 10, mark, &n->inner[i]);
}

static void nested_ranges_run_inline(void **state) {
  (void)state;
  nest *n = calloc(1, sizeof *n);
  n->pool = make(3);
  for (int i = 0; i < 8; i++) {
    n->inner[i] = (cover){.n = 1000, .grain = 10, .threads = 3};
  }
  kiln_pool_for(n->pool, 8, 1, run_inner, n);
  for (int i = 0; i < 8; i++) {
    assert_int_equal(n->inner[i].faults, 0);
    assert_int_equal(n->inner[i].pieces, 1);
    for (int k = 0; k < 1000; k++) assert_int_equal(n->inner[i].seen[k], 1);
  }
  kiln_pool_release(n->pool);
  free(n);
}

enum { CALLERS = 4, ROUNDS = 300 };

static void *call_often(void *arg) {
  kiln_pool *pool = arg;
  cover *c = malloc(sizeof *c);
  intptr_t faults = 0;
  for (int round = 0; round < ROUNDS; round++) {
    *c = (cover){.n = 500 + round, .grain = 7, .threads = 3};
    kiln_pool_for(pool, c->n, c->grain, mark, c);
    faults += c->faults;
    for (int64_t i = 0; i < c->n; i++) faults += c->seen[i] != 1;
  }
  free(c);
  return (void *)faults;
}

static void several_callers_at_once(void **state) {
  (void)state;
  kiln_pool *pool = make(3);
  pthread_t threads[CALLERS];
  for (int i = 0; i < CALLERS; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, call_often, pool), 0);
  }
  for (int i = 0; i < CALLERS; i++) {
    void *faults;
    pthread_join(threads[i], &faults);
    assert_null(faults);
  }
  kiln_pool_release(pool);
}

/* What threads wrote is seen by the caller without atomics: TSan would complain. */
static void double_range(void *data, int64_t begin, int64_t end, int worker) {
  int *values = data;
  (void)worker;
  for (int64_t i = begin; i < end; i++) values[i] *= 2;
}

static void ranges_follow_each_other(void **state) {
  (void)state;
  enum { N = 1000, TIMES = 20 };
  int *values = malloc(N * sizeof *values);
  kiln_pool *pool = make(4);
  for (int i = 0; i < N; i++) values[i] = i % 13;
  for (int round = 0; round < TIMES; round++) {
    kiln_pool_for(pool, N, 8, double_range, values);
    if (round % 7 == 3) usleep(20000); /* long enough for the threads to sleep */
  }
  for (int i = 0; i < N; i++) assert_int_equal(values[i], (i % 13) << TIMES);
  kiln_pool_release(pool);
  free(values);
}

/* -- Tasks -- */

typedef struct fib {
  kiln_pool *pool;
  int n;
  int64_t result;
} fib;

/* Waits for what it submitted: every level either helps or finds it done. */
static void run_fib(void *data) {
  fib *f = data;
  if (f->n < 2) {
    f->result = f->n;
    return;
  }
  fib a = {.pool = f->pool, .n = f->n - 1}, b = {.pool = f->pool, .n = f->n - 2};
  kiln_task task = {.fn = run_fib, .data = &a, .lone = f->n % 3 != 0};
  kiln_pool_submit(f->pool, &task);
  run_fib(&b);
  kiln_pool_wait(f->pool, &task);
  assert_true(kiln_task_done(&task));
  f->result = a.result + b.result;
}

static void tasks_wait_for_tasks(void **state) {
  (void)state;
  for (int threads = 1; threads <= 4; threads++) {
    kiln_pool *pool = make(threads);
    fib f = {.pool = pool, .n = 16};
    run_fib(&f);
    assert_int_equal(f.result, 987);
    kiln_pool_release(pool);
  }
  fib f = {.n = 10};
  run_fib(&f);
  assert_int_equal(f.result, 55);
}

typedef struct note {
  int *order, *next;
  int number;
} note;

static void take_note(void *data) {
  note *n = data;
  n->order[(*n->next)++] = n->number;
}

static void one_thread_runs_tasks_at_once_in_order(void **state) {
  (void)state;
  int order[3] = {0}, next = 0;
  note notes[3];
  kiln_task tasks[3];
  for (int i = 0; i < 3; i++) {
    notes[i] = (note){order, &next, i + 1};
    tasks[i] = (kiln_task){.fn = take_note, .data = &notes[i]};
    kiln_pool_submit(NULL, &tasks[i]);
    assert_int_equal(next, i + 1);
  }
  for (int i = 2; i >= 0; i--) kiln_pool_wait(NULL, &tasks[i]);
  for (int i = 0; i < 3; i++) assert_int_equal(order[i], i + 1);
}

typedef struct gate {
  int open; /* atomic */
  cover cover;
  kiln_pool *pool;
} gate;

static void range_when_open(void *data) {
  gate *g = data;
  while (!__atomic_load_n(&g->open, __ATOMIC_ACQUIRE)) usleep(100);
  kiln_pool_for(g->pool, g->cover.n, g->cover.grain, mark, &g->cover);
}

static void a_running_task_is_waited_for(void **state) {
  (void)state;
  gate *g = calloc(1, sizeof *g);
  g->pool = make(2);
  g->cover = (cover){.n = 1000, .grain = 10, .threads = 2};
  kiln_task task = {.fn = range_when_open, .data = g};
  kiln_pool_submit(g->pool, &task);
  usleep(20000); /* most likely the thread has begun it */
  assert_false(kiln_task_done(&task));
  assert_int_equal(check_cover(g->pool, 100, 1) > 0, 1); /* ranges go on meanwhile */
  __atomic_store_n(&g->open, 1, __ATOMIC_RELEASE);
  kiln_pool_wait(g->pool, &task);
  kiln_pool_wait(g->pool, &task); /* again is fine */
  assert_int_equal(g->cover.faults, 0);
  for (int i = 0; i < 1000; i++) assert_int_equal(g->cover.seen[i], 1);
  kiln_pool_release(g->pool);
  free(g);
}

static void open_gate(void *data) { __atomic_store_n(&((gate *)data)->open, 1, __ATOMIC_RELEASE); }

/* The pool's one thread is in a task that ends when another has run, which is in the queue. */
static void who_waits_takes_lone_tasks(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) {
    gate *g = calloc(1, sizeof *g);
    g->pool = make(2);
    g->cover = (cover){.n = 100, .grain = 10, .threads = 2};
    kiln_task first = {.fn = range_when_open, .data = g};
    kiln_task second = {.fn = open_gate, .data = g, .lone = true};
    kiln_pool_submit(g->pool, &first);
    if (i % 2) usleep(2000); /* most likely the thread has begun it */
    kiln_pool_submit(g->pool, &second);
    kiln_pool_wait(g->pool, &first);
    kiln_pool_wait(g->pool, &second);
    assert_int_equal(g->cover.faults, 0);
    kiln_pool_release(g->pool);
    free(g);
  }
}

/* -- Few threads -- */

static void threads_that_cannot_start_are_done_without(void **state) {
  (void)state;
  for (int limit = 0; limit < 3; limit++) {
    kiln_pool *pool = make(4);
    kiln__pool_limit_start(pool, limit);
    for (int i = 0; i < 10; i++) check_cover(pool, 1000, 3);
    assert_int_equal(kiln__pool_started(pool), limit);
    fib f = {.pool = pool, .n = 10};
    run_fib(&f);
    assert_int_equal(f.result, 55);
    kiln_pool_release(pool);
  }
}

static void a_child_process_works_alone(void **state) {
  (void)state;
  kiln_pool *pool = make(3);
  check_cover(pool, 1000, 1);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    cover c = {.n = 1000, .grain = 1, .threads = 3};
    alarm(20);
    kiln_pool_for(pool, 1000, 1, mark, &c);
    for (int i = 0; i < 1000; i++) c.faults += c.seen[i] != 1;
    fib f = {.pool = pool, .n = 8};
    run_fib(&f);
    kiln_pool_release(pool);
    _exit(c.faults || f.result != 21);
  }
  int result;
  assert_int_equal(waitpid(child, &result, 0), child);
  assert_int_equal(result, 0);
  check_cover(pool, 1000, 1);
  kiln_pool_release(pool);
}

static void idle_threads_end_with_the_pool(void **state) {
  (void)state;
  for (int i = 0; i < 6; i++) {
    kiln_pool *pool = make(3);
    kiln_pool_retain(pool);
    check_cover(pool, 1000, 1);
    kiln_pool_release(pool);
    if (i % 2) usleep(20000); /* asleep, or still spinning */
    kiln_pool_release(pool);
  }
  kiln_pool_release(make(3)); /* never used */
  kiln_pool_release(NULL);
}

static void wrong_numbers_are_refused(void **state) {
  (void)state;
  kiln_pool *pool;
  kiln_host_executor executor = {.threads = 2};
  assert_error(kiln_pool_create(-1, &pool), KILN_INVALID_ARGUMENT, "1024");
  assert_error(kiln_pool_create(1025, &pool), KILN_INVALID_ARGUMENT, "1024");
  assert_error(kiln_pool_create_over(&executor, &pool), KILN_INVALID_ARGUMENT, "function");
  assert_error(kiln_pool_create_over(NULL, &pool), KILN_INVALID_ARGUMENT, "function");
  assert_ok(kiln_pool_create(0, &pool)); /* the cores that we may use */
  assert_in_range(kiln_pool_threads(pool), 1, sysconf(_SC_NPROCESSORS_CONF));
  kiln_pool_release(pool);
}

/* -- The host's threads -- */

typedef struct host {
  bool threads, backwards;
  int calls;
} host;
typedef struct host_piece {
  void (*piece)(void *data, int index);
  void *data;
  int index;
} host_piece;

static void *run_host_piece(void *arg) {
  host_piece *p = arg;
  p->piece(p->data, p->index);
  return NULL;
}

static void run_host(void *user, int count, void (*piece)(void *data, int index), void *data) {
  host *h = user;
  pthread_t threads[4];
  host_piece pieces[4];
  h->calls++;
  assert_in_range(count, 2, 4);
  for (int i = 0; i < count; i++) {
    int index = h->backwards ? count - 1 - i : i;
    pieces[i] = (host_piece){piece, data, index};
    if (h->threads)
      assert_int_equal(pthread_create(&threads[i], NULL, run_host_piece, &pieces[i]), 0);
    else
      run_host_piece(&pieces[i]);
  }
  for (int i = 0; i < count && h->threads; i++) pthread_join(threads[i], NULL);
}

static void a_hosts_executor_does_the_work(void **state) {
  (void)state;
  for (int kind = 0; kind < 4; kind++) {
    host h = {.threads = kind & 1, .backwards = kind & 2};
    kiln_host_executor executor = {.user = &h, .threads = 4, .run = run_host};
    kiln_pool *pool;
    assert_ok(kiln_pool_create_over(&executor, &pool));
    assert_int_equal(kiln_pool_threads(pool), 4);
    for (int i = 0; i < 20; i++) check_cover(pool, 3 + 97 * i, 2);
    assert_int_equal(h.calls, 19); /* the first is one piece */
    fib f = {.pool = pool, .n = 8};
    run_fib(&f);
    assert_int_equal(f.result, 21);
    assert_int_equal(kiln__pool_started(pool), 0);
    kiln_pool_release(pool);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_index_is_visited_once),
      cmocka_unit_test(small_and_empty_ranges_need_no_thread),
      cmocka_unit_test(huge_ranges_have_larger_units),
      cmocka_unit_test(nested_ranges_run_inline),
      cmocka_unit_test(several_callers_at_once),
      cmocka_unit_test(ranges_follow_each_other),
      cmocka_unit_test(tasks_wait_for_tasks),
      cmocka_unit_test(one_thread_runs_tasks_at_once_in_order),
      cmocka_unit_test(a_running_task_is_waited_for),
      cmocka_unit_test(who_waits_takes_lone_tasks),
      cmocka_unit_test(threads_that_cannot_start_are_done_without),
      cmocka_unit_test(a_child_process_works_alone),
      cmocka_unit_test(idle_threads_end_with_the_pool),
      cmocka_unit_test(wrong_numbers_are_refused),
      cmocka_unit_test(a_hosts_executor_does_the_work),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
